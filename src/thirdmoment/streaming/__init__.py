"""Chunk sources and the one fold over them."""

from thirdmoment.streaming.fold import Corpus, corpus, documents, fold, row_ranges
from thirdmoment.streaming.source import Chunk, Source, from_matrix

__all__ = [
    "Chunk",
    "Corpus",
    "Source",
    "corpus",
    "documents",
    "fold",
    "from_matrix",
    "row_ranges",
]
