"""EM accelerated by squared extrapolation (SQUAREM), with a monotone safeguard.

Written once for all models: a model gives one function, its EM step, and a projection back to valid
parameters. The objective never falls below that of the start.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from thirdmoment.likelihood.mixture import Parameters

# Parameters -> (parameters after one EM step, objective at the parameters given)
Step = Callable[[Parameters], tuple[Parameters, float]]


class EMResult(NamedTuple):
    """Where EM ended, and the objective before each step and at the end."""

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
