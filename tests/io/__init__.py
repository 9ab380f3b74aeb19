"""What tests of files share."""

import mmap


def on_disk(array):
    """Whether the numbers of an array are those of a mapped file."""
    while array is not None and not isinstance(array, mmap.mmap):
        array = array.base if hasattr(array, "base") else None
    return array is not None
