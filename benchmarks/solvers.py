"""Solvers on orthogonal tensors with noise: accuracy and time over k; what "auto" is based on.

python benchmarks/solvers.py
"""

from __future__ import annotations

import numpy as np
from common import arguments, timed, write_table
from scipy.optimize import linear_sum_assignment

from thirdmoment.decomposition import decompose
from thirdmoment.decomposition.tensor import jacobi, simultaneous
from thirdmoment.exceptions import ComplexSpectrum
from thirdmoment.linalg import symmetrise

SIZES = {5: 10, 10: 10, 20: 10, 50: 5, 100: 3, 200: 3}  # k: seeds
NOISE = [0.0, 0.2, 0.5]  # operator-norm scale: noise entries are this over sqrt(k)
SOLVERS = {
    "jacobi": lambda T, rng: jacobi(T),
    "simultaneous": simultaneous,
    **{
        name: (lambda T, rng, name=name: decompose(T, name, rng))
        for name in ("power", "eig", "schur", "joint-schur", "joint")
    },
}
LARGEST = {"joint-schur": 50, "joint": 100, "power": 100}


def main() -> None:
    arguments(__doc__ or "").parse_args()
    rows = []
    for k, seeds in SIZES.items():
        for noise in NOISE:
            row = [k, noise]
            for name, solver in SOLVERS.items():
                row.append(measure(solver, k, noise, seeds) if k <= LARGEST.get(name, 200) else "")
            rows.append(row)
            print(row, flush=True)
    note = (
        "Median over seeds of the mean distance of a component from the truth, and median seconds. "
        "Tensor Σ λ_i θ_i⊗θ_i⊗θ_i, λ uniform in [1, 3], symmetric Gaussian noise with entries of "
        "size noise/√k. `tensor` is jacobi or simultaneous."
    )
    write_table("solvers", ["k", "noise", *SOLVERS], rows, note)


def measure(solver, k, noise, seeds):
    errors, seconds = [], []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        V = np.linalg.qr(rng.standard_normal((k, k)))[0]
        values = rng.uniform(1, 3, size=k)
        T = np.einsum("i,ai,bi,ci->abc", values, V, V, V, optimize=True)
        T += noise / np.sqrt(k) * symmetrise(rng.standard_normal((k, k, k)))
        solver(T[:2, :2, :2].copy(), np.random.default_rng(0))  # compile
        try:
            found, time = timed(lambda T=T: solver(T, np.random.default_rng(0)))
        except ComplexSpectrum:
            return "complex"
        overlap = found.vectors.T @ V
        i, j = linear_sum_assignment(-overlap)
        errors.append(np.linalg.norm(found.vectors[:, i] - V[:, j], axis=0).mean())
        seconds.append(time)
    return f"{np.median(errors):.2g} ({np.median(seconds):.2g} s)"


if __name__ == "__main__":
    main()
