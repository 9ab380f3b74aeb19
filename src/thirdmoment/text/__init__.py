"""Texts in: files, folders, frames and lists as word counts that keep their documents."""

from thirdmoment.text.corpus import TextCorpus, read

__all__ = ["TextCorpus", "read"]
