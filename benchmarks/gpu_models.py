"""Mixtures and chains on one GPU: fits, and one EM step against what it cannot do without.

python benchmarks/gpu_models.py [--rows 10000000] [--device cuda] [--models gaussian symbols kernel]

Data are drawn on the device and fitted where they are; the first fit compiles and is not counted.
A step is timed inside the fit, over all rows, with the device waited for before and after.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parent))

from gpu import seconds, wait, write_profile

import thirdmoment as tm
from thirdmoment.metrics import recovery_error
from thirdmoment.refinement import chains, mixture, smooth

PROFILE: list[Path] = []  # where the calls of a fit are written


@contextmanager
def timed(module: Any, name: str, total: float, device: str) -> Iterator[list[float]]:
    """Seconds of the calls of a function of a module whose data are all rows."""
    whole, found = getattr(module, name), []

    def call(family: Any, data: Any, *args: Any, **given: Any) -> Any:
        wait(device)
        start = time.perf_counter()
        result = whole(family, data, *args, **given)
        wait(device)
        size = data.n if hasattr(data, "n") else data.total
        if size == total:
            found.append(time.perf_counter() - start)
        return result

    setattr(module, name, call)
    try:
        yield found
    finally:
        setattr(module, name, whole)


def fitted(model: Any, X: Any, place: tuple[Any, str], device: str, **given: Any) -> str:
    """A first fit, a second one that is timed, and a third whose steps are."""
    model.fit(X, **given)
    took = seconds(lambda: model.fit(X, **given), device)
    if PROFILE:
        write_profile(PROFILE[0], type(model).__name__, lambda: model.fit(X, **given))
    with timed(*place, float(len(X)), device) as steps:
        model.fit(X, **given)
    each = f"{1e3 * np.median(steps):.1f} ms" if steps else "none"
    return f"fit {took:.2f} s, {len(steps)} steps over all rows, the median {each}"


def bandwidth(device: str) -> float:
    """Bytes read and written a second by a copy."""
    source = torch.empty(250_000_000 if device != "cpu" else 25_000_000, device=device)
    target = torch.empty_like(source)
    target.copy_(source)
    return 8 * len(source) / seconds(lambda: target.copy_(source), device, 5)


def products(n: int, q: int, k: int, device: str) -> float:
    """Seconds of the product that gives all densities and of the one that gives all sums."""
    features, given = torch.randn(n, q, device=device), torch.randn(k, q, device=device)
    shares = given @ features.T
    first = seconds(lambda: given @ features.T, device, 5)
    return first + seconds(lambda: shares @ features, device, 5)


def gaussian(n: int, device: str, g: torch.Generator) -> None:
    d, k = 32, 64
    means = 3 * torch.randn(k, d, device=device, generator=g)
    spreads = 0.5 + torch.rand(k, d, device=device, generator=g)
    z = torch.randint(0, k, (n,), device=device, generator=g)
    X = torch.randn(n, d, device=device, generator=g)
    X *= spreads[z]
    X += means[z]
    two = products(n, 2 * d + 1, k, device)
    model = tm.GaussianMixture(k, covariance_type="diag")
    text = fitted(model, X, (mixture, "expectation"), device)
    error = recovery_error(model.means_, means.cpu().numpy())
    print(f"Gaussian, {n:,} x {d}, k={k}, diag, float32: {text}; its two products "
          f"{1e3 * two:.1f} ms; L1 error of a mean {error:.3f}", flush=True)  # fmt: skip


def symbols(n: int, device: str, g: torch.Generator) -> None:
    length, d, k = 100, 1000, 20
    m = n // length
    concentration = torch.full((k, d), 0.1, device=device)
    laws = torch._sample_dirichlet(concentration, generator=g).double()
    T = torch._sample_dirichlet(torch.full((k, k), 0.3, device=device), generator=g).double()
    T = 0.6 * torch.eye(k, device=device) + 0.4 * T
    state = torch.randint(0, k, (m,), device=device, generator=g)
    code = torch.empty((m, length), dtype=torch.int64, device=device)
    steps, edges = T.cumsum(1), laws.cumsum(1)
    for t in range(length):
        if t:
            u = torch.rand(m, 1, device=device, generator=g, dtype=torch.float64)
            state = (u > steps[state]).sum(1).clamp(max=k - 1)
        u = torch.rand(m, device=device, generator=g, dtype=torch.float64)
        for j in range(k):
            own = state == j
            code[own, t] = torch.searchsorted(edges[j].contiguous(), u[own]).clamp(max=d - 1)
    X, lengths = code.reshape(-1, 1), np.full(m, length)
    plain = tm.CategoricalHMM(k, refine="none", n_features=d)
    plain.fit(X, lengths=lengths)
    moments = seconds(lambda: plain.fit(X, lengths=lengths), device, 2)
    model = tm.CategoricalHMM(k, n_features=d)
    text = fitted(model, X, (chains, "expectation"), device, lengths=lengths)
    truth = laws.cpu().numpy()
    errors = [recovery_error(one.emissionprob_, truth) for one in (plain, model)]
    print(f"CategoricalHMM, {m:,} sequences of {length}, d={d}, k={k}: moments {moments:.2f} s, "
          f"L1 error of a state {errors[0]:.3f}; {text}; error {errors[1]:.3f}, start "
          f"{model.report_.start}", flush=True)  # fmt: skip


def kernel(n: int, device: str, g: torch.Generator) -> None:
    k, copy = 3, bandwidth(device)
    z = torch.randint(0, k, (n,), device=device, generator=g)
    X = torch.empty(n, 3, device=device, dtype=torch.float64)
    X.exponential_(generator=g)
    X += 2.5 * torch.randn(k, 3, device=device, generator=g, dtype=torch.float64)[z]
    model = tm.KernelMixture(k)
    text = fitted(model, X, (smooth, "fold_sums"), device)
    ms = float(text.rsplit(" ", 2)[1]) if not text.endswith("none") else np.nan
    # read and counted: two nodes of 12 bytes for each view; k shares written and read
    held = n * (2 * 3 * 2 * 12 + 2 * 8 * k)
    print(f"KernelMixture, {n:,} x 3, k={k}: {text}; a step reads and writes {held / 1e9:.1f} GB "
          f"once, {held / copy / ms * 1e3:.0%} of copying ({copy / 1e12:.2f} TB/s)",
          flush=True)  # fmt: skip


MODELS = {"gaussian": gaussian, "symbols": symbols, "kernel": kernel}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--profile", type=Path, help="a file for the calls of one more fit")
    given = parser.parse_args()
    PROFILE.extend([given.profile] if given.profile else [])
    warnings.filterwarnings("ignore")
    for name in given.models:
        generator = torch.Generator(given.device).manual_seed(given.seed)
        MODELS[name](given.rows, given.device, generator)


if __name__ == "__main__":
    main()
