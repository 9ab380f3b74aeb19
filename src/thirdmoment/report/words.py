"""Words of a corpus, which may be anything, as a reader can see them."""

from __future__ import annotations


def shown(word: object) -> str:
    """A word with control characters written out, so that none of them reaches a terminal."""
    return "".join(
        ch if ch.isprintable() else ch.encode("unicode_escape").decode() for ch in str(word)
    )


def drawn(word: object) -> str:
    """A word for a picture: dollar signs stand for themselves, not for formulas."""
    return shown(word).replace("$", r"\$")
