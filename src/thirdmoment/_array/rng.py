"""Random numbers: one explicit NumPy generator, its draws carried to the array's device."""

from __future__ import annotations

from typing import Any

import numpy as np

from thirdmoment._array.namespace import Array, array_namespace


def random_normal(rng: np.random.Generator, shape: tuple[int, ...], *, like: Array) -> Array:
    """Standard normal draws with the dtype and on the device of ``like``.

    Drawn by NumPy on the host, so that every backend sees the same numbers for the same seed.
    """
    xp = array_namespace(like)
    draws: Any = rng.standard_normal(shape)
    return xp.astype(xp.asarray(draws, device=_device(like)), like.dtype)


def _device(like: Array) -> Any:
    return getattr(like, "device", None)


def row_signs(start: int, stop: int) -> np.ndarray:
    """Signs ±1 of rows start..stop-1: the halves of the split-half noise gauge (N-11).

    A hash of the row number alone, so that a row falls in the same half however the data is cut
    into chunks.
    """
    bits = scrambled(np.arange(start, stop, dtype=np.uint64)) & np.uint64(1)
    return 1.0 - 2.0 * bits.astype(np.float64)


def scrambled(z: np.ndarray) -> np.ndarray:
    """Well-mixed 64 bits of each number (splitmix64); equal numbers stay equal."""
    with np.errstate(over="ignore"):
        z = z + np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
