"""Devices of torch: which one is meant, how arrays get there, and what is said when one is full."""

from __future__ import annotations

import contextlib
import importlib.util
import itertools
import os
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np

from thirdmoment._array.threads import effective_threads, map_in_order
from thirdmoment._constants import Work
from thirdmoment.exceptions import InvalidInput

# Numbers of an array that are copied to a device at once: threads of the host fill pinned blocks
# while those before are on their way.
SENT: Work[int] = 8_000_000
COPYING: Work[int] = 4  # such blocks at a time

# Blocks of fewer rows are not halved for want of memory.
LEAST_ROWS: Work[int] = 1_000

# Rows that kernels sum in single precision: eight million equal numbers, added one after the other,
# lose up to a tenth, so many at a time a quarter of a percent (docs/decisions/gpu.md).
SUMMED: Work[int] = 250_000

Part = TypeVar("Part")


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
    if device.type not in ("cpu", "cuda"):
        raise InvalidInput(f"device={name!r} cannot be used here; give 'cuda' or 'cpu'.")
    if device.type == "cuda" and not torch.cuda.is_available():
        raise InvalidInput(
            f"device={name!r}: PyTorch {torch.__version__} finds no GPU here. Leave device out "
            "(fitted or loaded models: set_params(device=None)), or install PyTorch in the build "
            "for your GPU."
        )
    if device.type == "cuda" and not (device.index or 0) < torch.cuda.device_count():
        found = torch.cuda.device_count()
        raise InvalidInput(f"device={name!r}: there are {found} GPUs, numbered from 0.")
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

    blocks = map_in_order(
        filled, cuts, n_threads=min(COPYING, effective_threads(None)), blas=False, waiting=COPYING,
        pool="copies",
    )  # fmt: skip
    for (a, b), block in zip(cuts, blocks, strict=True):
        out[a:b].copy_(block, non_blocking=True)
    return out


def sent_rows(rows: Any, device: Any) -> Any:
    """Dense rows on a device, in their precision; None leaves them where they are.

    Those of CuPy become tensors of torch that share their memory.
    """
    of_cupy = type(rows).__module__.split(".")[0] == "cupy"
    if device is None and not of_cupy:
        return rows.detach() if hasattr(rows, "detach") else rows
    import torch

    if not isinstance(rows, np.ndarray):
        rows = rows.detach() if isinstance(rows, torch.Tensor) else torch.from_dlpack(rows)
        return rows if device is None else rows.to(device)
    return sent(rows, device, torch.float32 if rows.dtype == np.float32 else torch.float64)


def brought(rows: Any) -> Any:
    """A tensor of a GPU in pinned memory of the host, which a copy fills many times faster; all
    else as it is.
    """
    if getattr(getattr(rows, "device", None), "type", "") != "cuda":
        return rows
    import torch

    out = torch.empty(rows.shape, dtype=rows.dtype, pin_memory=True)
    return out.copy_(rows.detach())


def sent_index(index: np.ndarray, device: Any) -> Any:
    """Whole numbers below 2^31 as a tensor on a device."""
    import torch

    return sent(index, device, torch.int32)


def has_kernels(array: Any) -> bool:
    """Whether the kernels of _triton.py run on what holds an array: a GPU, or Triton's interpreter
    anywhere.
    """
    interpreted = os.environ.get("TRITON_INTERPRET") == "1"
    if not (interpreted or getattr(array.device, "type", "") == "cuda"):
        return False
    return importlib.util.find_spec("triton") is not None


def in_fixed_order() -> bool:
    """Whether sums on a device have to be the same in every run, as PyTorch was told."""
    import torch

    return torch.are_deterministic_algorithms_enabled()


def current(array: Any) -> contextlib.AbstractContextManager[Any]:
    """Context in which the device of an array is the one that kernels start on."""
    if getattr(array.device, "type", "") != "cuda":
        return contextlib.nullcontext()
    import torch

    return torch.cuda.device(array.device)


def by_halves(
    work: Callable[[int, int], Part], stop: int, start: int = 0, *, least: int = LEAST_ROWS
) -> Iterator[Part]:
    """``work(start, stop)`` on rows start..stop-1; where a device has too little memory for them,
    on one half after the other. What it changes it has to change last.
    """
    found: list[Part] = []
    try:
        found.append(work(start, stop))
    except RuntimeError as error:
        if not is_full(error) or stop - start < least:
            raise
    if found:
        yield found.pop()
        return
    note_full()
    middle = (start + stop) // 2
    yield from by_halves(work, middle, start, least=least)
    yield from by_halves(work, stop, middle, least=least)


def made_by_halves(work: Callable[[int, int], Any], n: int) -> Any:
    """The n rows of tensors that ``work(start, stop)`` makes; on the host where a device has no
    room for all.
    """
    import torch

    out, place = None, 0
    for part in by_halves(work, n):
        if len(part) == n:
            return part
        if out is None:  # pinned: it goes up and down in every step
            pinned = part.device.type == "cuda"
            out = torch.empty((n, *part.shape[1:]), dtype=part.dtype, pin_memory=pinned)
        out[place : place + len(part)] = part
        place += len(part)
    return out


def if_room(make: Callable[[], Part], otherwise: Callable[[], Part]) -> Part:
    """What ``make`` makes on a device, or another thing where it has no room."""
    try:
        return make()
    except RuntimeError as error:
        if not is_full(error):
            raise
    note_full()
    return otherwise()


def copied(array: Any) -> Any:
    """A copy of a tensor; on the host where its device has no room for it and as much again."""
    return if_room(lambda: with_room(array.clone), lambda: brought(array))


def with_room(make: Callable[[], Any]) -> Any:
    """The tensor that ``make`` makes, if a device has as much room again for work with it."""
    found = make()
    found.new_empty(found.shape)
    return found


class Room:
    """Memory of a device during a fit: how often blocks of rows were halved for want of it."""

    def __init__(self) -> None:
        self.before = _halvings[0]

    @property
    def halvings(self) -> int:
        return _halvings[0] - self.before


_halvings = [0]  # of this process; blocks are halved on any of its threads


def is_full(error: BaseException) -> bool:
    """Whether an error says that a device has too little memory."""
    told = ("CUBLAS_STATUS_ALLOC_FAILED", "CUDA]: out of memory", "CUDA error: out of memory")
    return type(error).__name__ == "OutOfMemoryError" or any(one in str(error) for one in told)


def is_too_large(error: BaseException) -> bool:
    """Whether an error says that a kernel needs more shared memory than a GPU has."""
    return type(error).__name__ == "OutOfResources"


def note_full() -> None:
    """Count that a block is halved, and give back what is kept for later."""
    import torch

    _halvings[0] += 1
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


@contextlib.contextmanager
def told_memory() -> Iterator[Room]:
    """Says in one sentence that a device ran out of memory, whatever the size of blocks."""
    try:
        yield Room()
    except RuntimeError as error:
        if not is_full(error):
            raise
        raise MemoryError(
            "The GPU has too little memory for this, even in small blocks of rows. Work on the "
            "host (arrays of NumPy, without device), or give fewer rows or components."
        ) from error
