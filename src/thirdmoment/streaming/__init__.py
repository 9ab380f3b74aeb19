"""Chunk sources and the one fold over them."""

from thirdmoment.streaming.fold import (
    AnyCorpus,
    Corpus,
    Pass,
    Streamed,
    StreamedCorpus,
    corpus,
    documents,
    fold,
    kept,
    part_of,
    row_ranges,
)
from thirdmoment.streaming.source import Chunk, Source, from_matrix

__all__ = [
    "AnyCorpus",
    "Chunk",
    "Corpus",
    "Pass",
    "Source",
    "Streamed",
    "StreamedCorpus",
    "corpus",
    "documents",
    "fold",
    "from_matrix",
    "kept",
    "part_of",
    "row_ranges",
]
