"""What a fit by moments costs: primitives of this machine, a model made of them, and three fits.

python benchmarks/scale_model.py

Counts with the shape of UCI NYTimes, k = 50, ``refine="none"``, two threads. Measured first: rates
of copies, of products of counts with a block (``gram``), of dense blocks, and of the cubes of
documents. The model counts the work of every step and divides it by these rates; nothing is fitted
to the times.
"""

from __future__ import annotations

import time
import warnings

import numpy as np
import scale
from common import arguments, write_table

import thirdmoment as tm
from thirdmoment._array import as_rows, single_threaded_blas
from thirdmoment.linalg import add_symmetric_cube

K, Q = 50, 60  # topics, and columns of a block
PRODUCTS, GAUGES, GAUGE = 4, 6, 8  # products of blocks, and of the eight columns for the noise


def best(work, repeats: int = 3) -> float:
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return min(times)


def primitives() -> dict[str, float]:
    """Rates of one core."""
    rng = np.random.default_rng(0)
    X = scale.counts("NYTimes", 4_000).astype(np.float32)
    d, rows = X.shape[1], as_rows(X)
    B = rng.normal(size=(d, Q)).astype(np.float32)
    narrow, w = B[:, :GAUGE].copy(), np.ones(X.shape[0])
    Y, ones = rng.normal(size=(4_000, K)).astype(np.float32), np.ones(4_000, np.float32)
    big = rng.normal(size=40_000_000 // 8)
    with single_threaded_blas():
        rows.gram(w, B)
        rows.gram(w, narrow)
        cube = np.zeros((K, K, K), np.float32)
        return {
            "copy": 2 * big.nbytes / best(lambda: big.copy()),
            "gram": 4 * X.nnz * Q / best(lambda: rows.gram(w, B)),
            "narrow": 4 * X.nnz * GAUGE / best(lambda: rows.gram(w, narrow)),
            "matrix": 2 * d * Q * Q / best(lambda: B.T @ B),
            "skinny": 2 * 4096 * (K // 2) * K / best(lambda: (B[:4096, : K // 2]).T @ B[:4096, :K]),
            "cube": len(Y) * K**3 / best(lambda: add_symmetric_cube(cube, ones, Y)),
        }


def work(n: float, nnz: float, d: float) -> dict[str, tuple[str, float, float]]:
    """Steps: the primitive, how much of it, and bytes that are read from the counts."""
    # a block against the j before it, twice, and orthonormal in itself, twice; the Ritz vectors
    blocks = sum((12 * j + 18) * d * Q * Q for j in range(1, PRODUCTS + 1))
    # a pass clears, fills and merges an accumulator for each of eight chunks; triples have two
    merged = 8 * 3 * 4 * d * Q * (PRODUCTS + 2 + GAUGES * GAUGE / Q)
    # topics: made, projected, weighed by least squares, and their top words found
    topics = 8 * d * K * 40
    return {
        "looking at counts": ("copy", 250 * nnz, 0.0),  # keys of documents: some thirty arrays
        "accumulators": ("copy", merged, 0.0),
        "topics": ("copy", topics, 0.0),
        "products of blocks": ("gram", PRODUCTS * 4 * nnz * Q, PRODUCTS * 8 * nnz),
        "noise": ("narrow", GAUGES * 4 * nnz * GAUGE, GAUGES * 8 * nnz),
        "triples of words": ("gram", 1.5 * 4 * nnz * Q, 3 * 8 * nnz),
        "triples of documents": ("cube", n * K**3, 0.0),
        "dense blocks": ("matrix", blocks + 2 * d * K * K, 0.0),
        "diagonals of triples": ("skinny", 2 * d * K**3, 0.0),
    }


def predicted(n: float, nnz: float, d: float, rates: dict[str, float], cores: float) -> float:
    """Seconds; what hangs on words alone runs on one core, everything else on all."""
    alone = ("dense blocks", "accumulators", "topics", "diagonals of triples")
    total = 0.0
    for name, (primitive, amount, size) in work(n, nnz, d).items():
        here = 1.0 if name in alone else cores
        total += max(amount / rates[primitive] / here, size / rates["copy"])
    return total


def main() -> None:
    arguments(__doc__ or "").parse_args()
    warnings.simplefilter("ignore")
    rates, rows = primitives(), []
    tm.LatentDirichletAllocation(3, refine="none").fit(scale.counts("PubMed", 20_000))
    shown = ", ".join(f"{name} {rate / 1e9:.1f}" for name, rate in rates.items())
    for n in (30_000, 60_000, 120_000):
        X = scale.counts("NYTimes", n)
        model = tm.LatentDirichletAllocation(K, refine="none")
        took = best(lambda: model.fit(X), 2)
        said = predicted(n, X.nnz, X.shape[1], rates, 2)
        rows.append([f"{n:,} documents, {X.nnz / 1e6:.0f} M counts, two cores", f"{said:.1f}",
                     f"{took:.1f}", f"{said / took:.2f}"])  # fmt: skip
    per = 80  # different words a document
    for n, cores in ((8.2e6, 2), (1e9, 1_000)):
        said = predicted(n, n * per, 141_043, rates, cores)
        rows.append([f"{n:,.0f} documents, {n * per / 1e9:.1f} G counts, {cores:,} cores",
                     f"{said:.0f}", "", ""])  # fmt: skip
    header = ["fit", "seconds by the model", "measured", "ratio"]
    write_table("scale_model", header, rows, f"Rates of one core, in G a second: {shown}.")


if __name__ == "__main__":
    main()
