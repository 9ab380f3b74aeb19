"""Devices of torch: which one is meant, how arrays get there, and what is said when one is full."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from thirdmoment._array.threads import effective_threads, map_in_order
from thirdmoment._constants import Work
from thirdmoment.exceptions import InvalidInput

# Numbers of an array that are copied to a device at once: threads of the host fill pinned blocks
# while those before are on their way.
SENT: Work[int] = 8_000_000


def find_device(name: Any) -> Any:
    """The device that is asked for; one sentence where there is none."""
    try:
        import torch
    except ImportError:
        raise InvalidInput(
            f"device={name!r} needs PyTorch: pip install 'thirdmoment[gpu]', in the build for your "
            "GPU."
        ) from None
    try:
        device = torch.device(name)
    except (RuntimeError, TypeError):
        raise InvalidInput(
            f"device={name!r} is no device; give 'cuda', 'cuda:1' or 'cpu', or leave it out."
        ) from None
    if device.type == "cuda" and not torch.cuda.is_available():
        raise InvalidInput(
            f"device={name!r}: PyTorch {torch.__version__} finds no GPU here. Leave device out, or "
            "install PyTorch in the build for your GPU."
        )
    return device


def sent(array: np.ndarray, device: Any, dtype: Any) -> Any:
    """A copy of an array of the host as a tensor on a device."""
    import torch

    out = torch.empty(array.shape, dtype=dtype, device=device)
    rows = max(1, SENT // max(1, array[:1].size))
    cuts = list(itertools.pairwise([*range(0, len(array), rows), len(array)]))
    pinned = out.device.type == "cuda"

    def filled(cut: tuple[int, int]) -> Any:
        part = array[cut[0] : cut[1]]
        block = torch.empty(part.shape, dtype=dtype, pin_memory=pinned)
        np.copyto(block.numpy(), part, casting="unsafe")
        return block

    blocks = map_in_order(filled, cuts, n_threads=effective_threads(None), blas=False)
    for (a, b), block in zip(cuts, blocks, strict=True):
        out[a:b].copy_(block, non_blocking=True)
    return out


@contextlib.contextmanager
def told_memory() -> Iterator[None]:
    """Says in one sentence that a GPU ran out of memory."""
    try:
        yield
    except RuntimeError as error:
        if type(error).__name__ != "OutOfMemoryError":
            raise
        raise MemoryError(
            "The GPU has too little memory for these documents: a fit of 100 topics takes about 55 "
            "bytes for each stored count. Leave device out, or fit fewer documents."
        ) from error
