"""Files in, files out."""

from thirdmoment.io.bag_of_words import BagOfWords, load_bag_of_words
from thirdmoment.io.sources import source

__all__ = ["BagOfWords", "load_bag_of_words", "source"]
