"""Chunk sources and the one fold over them."""

from thirdmoment.streaming.chunks import Corpus, corpus, documents, row_ranges
from thirdmoment.streaming.fold import fold

__all__ = ["Corpus", "corpus", "documents", "fold", "row_ranges"]
