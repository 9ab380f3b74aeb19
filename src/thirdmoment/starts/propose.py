"""The starts of a fit: the moments, and others where these are not trusted."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from thirdmoment._constants import Choice
from thirdmoment.exceptions import UnusableMoments
from thirdmoment.refinement.race import FINALISTS
from thirdmoment.starts.given import GIVEN
from thirdmoment.starts.start import Start

# Starts from spread-out rows that race against moments which are not clear.
SPREAD_STARTS: Choice[int] = 12


def propose(
    moments: Callable[[], list[Start]],
    others: Callable[[int | None], list[Start]],
    *,
    rows: float,
    n_starts: int | str,
    refining: bool,
    given: Start | None = None,
) -> tuple[list[Start], list[str]]:
    """The starts of a fit, the moments first, and why moments could not be used.

    ``others`` gives so many starts without moments, or with None as many as the model holds to be
    enough. They race where the moments of so many ``rows`` are not trusted, or where ``n_starts``
    asks for them; a ``given`` start always does. Without refinement there are the moments alone,
    and unusable ones are an error.
    """
    found: list[Start] = []
    notes: list[str] = []
    try:
        found = moments()
    except UnusableMoments as error:
        if not refining:
            raise
        notes.append(str(error))
    if not refining:
        return found, notes
    facts = found[0].facts if found else None
    clear = facts is not None and facts.trusted(rows)
    found += [] if given is None else [given]
    if n_starts == "auto":
        return found + ([] if clear else others(None)), notes
    count = max(int(n_starts), 0 if found else 1)  # at least one start of any kind
    return found + (others(count) if count else []), notes


def finalists(n_starts: int | str, least: int = FINALISTS) -> int:
    """Starts that are run to the end: more where a user asks for many."""
    return least if isinstance(n_starts, str) else max(least, n_starts // 3)


def by_hand_or_first(candidates: Sequence[Start]) -> Start:
    """The start to take as it is where nothing is refined."""
    return next((one for one in candidates if one.name == GIVEN), candidates[0])
