"""Accelerated EM: squared extrapolation while gains are large, Anderson mixing for the slow tail.

Written once for all models: a model gives one function, its EM step, and a projection back to valid
parameters. The objective never falls below that of the start.

Squared extrapolation is quick far from the optimum and stalls near it when some directions
converge a hundred times slower than others, as they do in hidden Markov models. Mixing the last few
steps so that their residual is least squares takes over there (docs/decisions/markov.md).
Probabilities move as logarithms: a mixture of steps then stays positive.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from thirdmoment._constants import Work
from thirdmoment.likelihood.mixture import Parameters

# Parameters -> (parameters after one EM step, objective at the parameters given)
Step = Callable[[Parameters], tuple[Parameters, float]]


class EMResult(NamedTuple):
    """Where EM ended, and the objective at the start of each step."""

    parameters: Parameters
    path: tuple[float, ...]
    converged: bool
    steps: int


def accelerated_em(
    step: Step,
    start: Parameters,
    project: Callable[[Parameters], Parameters],
    *,
    tol: float = 1e-6,
    atol: float = 0.0,
    max_steps: int = 100,
) -> EMResult:
    """Run EM from ``start`` until a cycle gains less than ``tol`` relatively or ``atol``.

    A cycle takes two EM steps x0 -> x1 -> x2 and jumps along them by the SQUAREM length
    -‖r‖/‖v‖, r = x1 - x0, v = x2 - 2 x1 + x0. The jump is kept only if the next objective is no
    lower than that at x1; otherwise the cycle ends at x2 and plain EM is what remains.
    """
    x0, path, steps, converged = start, [], 0, False
    x1, f0 = step(x0)
    steps += 1
    path.append(f0)
    while steps < max_steps:
        x2, f1 = step(x1)
        jump = project(_extrapolate(x0, x1, x2))
        after_jump, f_jump = step(jump)
        steps += 2
        if f_jump >= f1:
            x0, x1, f_new = jump, after_jump, f_jump
        else:
            x1, f_new = step(x2)
            x0 = x2
            steps += 1
        path.append(f_new)
        if abs(f_new - f0) <= max(atol, tol * abs(f_new)):
            converged = True
            break
        f0 = f_new
    return EMResult(x1, tuple(path), converged, steps)


def _extrapolate(x0: Parameters, x1: Parameters, x2: Parameters) -> Parameters:
    r = [b - a for a, b in zip(x0, x1, strict=True)]
    v = [c - 2 * b + a for a, b, c in zip(x0, x1, x2, strict=True)]
    size_r = float(np.sqrt(sum(np.sum(part**2) for part in r)))
    size_v = float(np.sqrt(sum(np.sum(part**2) for part in v)))
    length = -max(1.0, size_r / size_v) if size_v > 0 else -1.0
    return tuple(a - 2 * length * dr + length**2 * dv for a, dr, dv in zip(x0, r, v, strict=True))


# Steps that are mixed.
MEMORY: Work[int] = 8

# Steps whose mean gain decides whether to stop.
QUIET: Work[int] = 4

# Logarithms below this are as good as minus infinity.
LOWEST = np.log(1e-10)


class Logarithms:
    """Coordinates of parameters whose arrays are all probabilities, rows summing to one."""

    def __init__(self, like: Parameters) -> None:
        self.shapes = [array.shape for array in like]
        self.cuts = np.cumsum([array.size for array in like])[:-1]

    def vector(self, parameters: Parameters) -> np.ndarray:
        flat = np.concatenate([array.ravel() for array in parameters])
        return np.maximum(np.log(np.maximum(flat, 1e-300)), LOWEST)

    def weights(self, vector: np.ndarray) -> np.ndarray:
        """How much a residual counts: between even and the Fisher metric, which is √p."""
        return np.exp(vector / 4)

    def parameters(self, vector: np.ndarray) -> Parameters:
        parts = np.split(np.exp(np.clip(vector, -50.0, 5.0)), self.cuts)
        arrays = (part.reshape(shape) for part, shape in zip(parts, self.shapes, strict=True))
        return tuple(array / array.sum(axis=-1, keepdims=True) for array in arrays)


def anderson_em(
    step: Step,
    start: Parameters,
    chart: Logarithms,
    *,
    tol: float,
    atol: float,
    max_steps: int,
) -> EMResult:
    """Run EM from ``start`` until steps gain less than ``tol`` relatively or ``atol`` each.

    Gains are uneven, so the mean over the last few counts. A mixture that lowers the objective is
    dropped, and with it the memory: plain EM remains.
    """
    after, value = step(start)
    path, steps, converged = [value], 1, False
    points: deque[np.ndarray] = deque([chart.vector(start)], MEMORY + 1)
    images: deque[np.ndarray] = deque([chart.vector(after)], MEMORY + 1)
    while steps < max_steps:
        mixed = len(points) > 1
        trial = chart.parameters(_mix(points, images, chart)) if mixed else after
        following, found = step(trial)
        steps += 1
        if mixed and not found >= value:
            trial = after
            following, found = step(trial)
            steps += 1
            points, images = deque([points[-1]], MEMORY + 1), deque([images[-1]], MEMORY + 1)
        value, after = found, following
        path.append(value)
        points.append(chart.vector(trial))
        images.append(chart.vector(after))
        gain = (value - path[-1 - QUIET]) / QUIET if len(path) > QUIET else np.inf
        if gain <= max(atol, tol * abs(value)):
            converged = True
            break
    return EMResult(after, tuple(path), converged, steps)


def _mix(points: deque[np.ndarray], images: deque[np.ndarray], chart: Logarithms) -> np.ndarray:
    """The combination of images whose residual, image less point, is smallest."""
    residuals = [b - a for a, b in zip(points, images, strict=True)]
    change = np.stack([b - a for a, b in itertools.pairwise(residuals)], axis=1)
    moved = np.stack([b - a for a, b in itertools.pairwise(images)], axis=1)
    w = chart.weights(images[-1])
    A = change * w[:, None]
    gram = A.T @ A
    gram += (1e-8 * np.trace(gram) + 1e-300) * np.eye(len(gram))
    return images[-1] - moved @ np.linalg.solve(gram, A.T @ (w * residuals[-1]))
