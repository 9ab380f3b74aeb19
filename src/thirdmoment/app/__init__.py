"""A page to look around in: topics, documents and a search for one word."""

from thirdmoment.app.explorer import Explorer
from thirdmoment.app.prepare import explore

__all__ = ["Explorer", "explore"]
