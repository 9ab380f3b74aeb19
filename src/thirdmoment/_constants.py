"""What a number at the top of a file is for; docs/constants.md is made from these marks.

A number that changes answers is a `Choice`: it has its reason beside it, and
``benchmarks/constants.py`` shows what halving and doubling it does.
"""

from typing import Annotated, TypeVar

T = TypeVar("T")

Choice = Annotated[T, "changes answers"]
Wording = Annotated[T, "changes what the report says"]
Limit = Annotated[T, "refuses input"]
Work = Annotated[T, "changes time or memory, answers by rounding only"]
Floor = Annotated[T, "keeps rounding harmless"]
