"""Chunk sources and the one fold over them."""

from thirdmoment.streaming.fold import Corpus, corpus, documents, fold, row_ranges

__all__ = ["Corpus", "corpus", "documents", "fold", "row_ranges"]
