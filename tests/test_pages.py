"""Pages that are made from the source are up to date, and every number is marked."""

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "docs"), str(ROOT / "benchmarks")]

from pages import KINDS, PACKAGE, PAGES  # noqa: E402


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_is_what_the_source_says(page):
    assert page.read_text("utf-8") == PAGES[page](), "run python docs/pages.py"


def test_every_number_at_the_top_of_a_file_is_marked():
    for path in PACKAGE.rglob("*.py"):
        for node in ast.parse(path.read_text("utf-8")).body:
            plain = isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
            if not plain or not node.targets[0].id.isupper():
                continue
            number = isinstance(node.value, ast.Constant) and isinstance(
                node.value.value, int | float
            )
            assert not number, f"{path.name}: {node.targets[0].id} needs one of {list(KINDS)}"


def test_every_choice_has_its_reason():
    from constants import constants

    for one in constants(PACKAGE):
        if one.kind != "Choice":
            continue
        assert len(one.reason.split()) >= 3, f"{one.full} needs a comment that says why"
