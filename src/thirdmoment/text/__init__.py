"""Texts in: files, folders, frames and lists as word counts that keep their documents."""

from thirdmoment.text.corpus import TextCorpus, read
from thirdmoment.text.stream import TextStream

__all__ = ["TextCorpus", "TextStream", "read"]
