"""Forward-backward of hidden Markov models: compiled loops, packed arrays, and torch on a GPU.

python benchmarks/hmm_torch.py

One E-step in milliseconds for three shapes of data; float64. The packed form is one matrix product
a time step over all sequences, long ones cut into linked blocks.
"""

from __future__ import annotations

import time

import numpy as np

from thirdmoment.likelihood import packed

SHAPES = {  # sequences, length, states
    "5,000 x 20, k=5": (5000, 20, 5),
    "50,000 x 20, k=12": (50_000, 20, 12),
    "1 x 1,000,000, k=10": (1, 1_000_000, 10),
}


def problem(sequences: int, length: int, k: int):
    rng = np.random.default_rng(0)
    T = 0.5 * rng.dirichlet(np.ones(k), size=k) + 0.5 * np.eye(k)
    table = rng.dirichlet(np.full(50, 0.3), size=k).T.copy()
    code = rng.integers(0, 50, size=sequences * length)
    offsets = np.arange(0, sequences * length + 1, length)
    return np.full(k, 1 / k), T, table, code, offsets


def best_of(work, repeats: int = 5) -> float:
    work()
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def compiled(start, T, table, code, offsets) -> float:
    from thirdmoment._array import single_threaded_blas
    from thirdmoment.likelihood.chains import Chain, expected_counts
    from thirdmoment.likelihood.packed import sequences

    chain, where, scratch = Chain(start, T, table, code), sequences(np.diff(offsets)), {}
    with single_threaded_blas():
        return best_of(lambda: expected_counts(chain, where, n_threads=2, scratch=scratch))


def on_torch(start, T, table, code, offsets, device: str) -> tuple[float, float]:
    """Seconds, and the log-likelihood to compare."""
    import torch

    layout = packed.pack(offsets)
    rows, T, start = (torch.asarray(a, device=device) for a in (table[code], T, start))
    found = []

    def work():
        found[:] = [packed.forward_backward(rows, T, start, layout)]
        if device != "cpu":
            torch.cuda.synchronize()

    seconds = best_of(work)
    return seconds, float(found[0].log_likelihood.sum())


def main() -> None:
    import torch

    for name, shape in SHAPES.items():
        given = problem(*shape)
        start, T, table, code, offsets = given
        layout = packed.pack(offsets)
        plain = best_of(lambda: packed.forward_backward(table[code], T, start, layout), 3)
        value = float(packed.forward_backward(table[code], T, start, layout).log_likelihood.sum())
        line = {"packed NumPy": plain}
        try:
            line["compiled"] = compiled(*given)
        except ImportError:  # a machine without numba
            line["compiled"] = np.nan
        line["torch CPU"], other = on_torch(*given, "cpu")
        if torch.cuda.is_available():
            line["torch GPU"], other = on_torch(*given, "cuda")
        text = ", ".join(f"{key} {1e3 * t:.1f} ms" for key, t in line.items())
        print(f"{name}: {text}; log-likelihoods differ by {abs(other - value) / abs(value):.1e}")


if __name__ == "__main__":
    main()
