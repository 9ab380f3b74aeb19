"""Topics on one GPU: moments and fits of corpora with the shape of NYTimes and PubMed.

Counts are drawn on the GPU (100 topics, words by Zipf's law, alpha0 = 1 known) and fitted where
they are; the first fit of a kind compiles and is not counted. Errors are mean L1 distances of a
topic from the truth, 0 to 2; a topic counts as found below 0.4. Needs CUDA and Triton.
"""

from __future__ import annotations

import argparse
import cProfile
import os
import pstats
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from scipy.optimize import linear_sum_assignment

sys.path.insert(0, str(Path(__file__).parent))

import thirdmoment as tm
from thirdmoment.metrics import align

SHAPES = {
    "NYTimes": (300_000, 102_660, 330),
    "PubMed": (8_200_000, 141_043, 90),
    "tiny": (4_000, 900, 60),
}
K, STEP = 100, 500_000
KINDS: dict[str, dict[str, Any]] = {
    "moments": {"refine": "none", "weighting": "none"},
    "weighted moments": {"refine": "none"},
    "18 sweeps": {"max_refine_iter": 18},
    "default": {},
}


def drawn(
    n: int, d: int, length: float, seed: int, device: str
) -> tuple[torch.Tensor, torch.Tensor]:
    """Counts (n, d) as CSR on the device, and the topics (k, d) they were drawn from."""
    g = torch.Generator(device).manual_seed(seed)
    base = 1 / torch.arange(1, d + 1, device=device).float() ** 0.9
    base /= base.sum()
    topics = torch._sample_dirichlet((base * d * 0.05).expand(K, d).contiguous(), generator=g)
    topics = topics.clamp(min=1e-12)
    topics /= topics.sum(1, keepdim=True)
    edges = topics.double().cumsum(1)
    parts = [_part(min(STEP, n - s), d, length, edges, g) for s in range(0, n, STEP)]
    sizes, columns, counts = (torch.cat(part) for part in zip(*parts, strict=True))
    starts = torch.zeros(n + 1, dtype=torch.int64, device=device)
    starts[1:] = sizes.cumsum(0)
    return torch.sparse_csr_tensor(starts, columns.long(), counts, (n, d)), topics


def _part(m: int, d: int, length: float, edges: torch.Tensor, g: torch.Generator) -> tuple:
    device = g.device
    shares = torch._sample_dirichlet(torch.full((m, K), 1.0 / K, device=device), generator=g)
    shares = shares.cumsum(1)
    sizes = torch.poisson(torch.full((m,), float(length), device=device), generator=g)
    sizes = sizes.clamp(min=3).long()
    rows = torch.repeat_interleave(torch.arange(m, device=device), sizes)
    u = torch.rand(len(rows), device=device, generator=g)
    topic = torch.zeros(len(rows), dtype=torch.int16, device=device)
    for a in range(0, len(rows), 20_000_000):
        own = slice(a, a + 20_000_000)
        for j in range(K - 1):
            topic[own] += (u[own] > shares[rows[own], j]).to(torch.int16)
    order = torch.argsort(topic)
    ends = torch.bincount(topic.long(), minlength=K).cumsum(0).tolist()
    u = torch.rand(len(rows), device=device, generator=g).double()
    words, begin = torch.empty_like(rows), 0
    for j, end in enumerate(ends):
        own = order[begin:end]
        words[own] = torch.searchsorted(edges[j].contiguous(), u[own]).clamp(max=d - 1)
        begin = end
    key, counts = torch.unique(rows * d + words, return_counts=True)
    found = torch.bincount(key // d, minlength=m)
    return found, (key % d).int(), counts.float()


def on_host(X: torch.Tensor) -> sp.csr_array:
    parts = X.values(), X.col_indices().int(), X.crow_indices()
    return sp.csr_array(tuple(part.cpu().numpy() for part in parts), shape=tuple(X.shape))


def wait(device: str) -> None:
    if device != "cpu":
        torch.cuda.synchronize()


def seconds(work: Callable[[], Any], device: str, repeats: int = 1) -> float:
    """The least of a few runs, with the device waited for."""
    found = []
    for _ in range(repeats):
        wait(device)
        start = time.perf_counter()
        work()
        wait(device)
        found.append(time.perf_counter() - start)
    return min(found)


def errors(topics: np.ndarray, truth: torch.Tensor) -> tuple[float, float]:
    """Mean L1 error, and the share of topics that are found."""
    found = torch.as_tensor(np.asarray(topics), dtype=torch.float32, device=truth.device)
    distance = torch.cdist(found, truth, p=1).cpu().numpy()
    i, j = linear_sum_assignment(distance)
    return float(distance[i, j].mean()), float(np.mean(distance[i, j] < 0.4))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--shapes", nargs="+", default=["NYTimes", "PubMed"], choices=list(SHAPES))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument(
        "--fits", nargs="+", default=["moments", "18 sweeps", "default"], choices=list(KINDS)
    )
    parser.add_argument("--host", action="store_true", help="counts in host memory")
    parser.add_argument(
        "--fixed-order", action="store_true", help="sums that are the same in every run"
    )
    parser.add_argument("--profile", type=Path, help="a file for the calls of one more fit")
    given = parser.parse_args()
    warnings.filterwarnings("ignore")
    if given.fixed_order:
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    for name in given.shapes:
        for seed in range(given.seeds):
            X, truth = drawn(*SHAPES[name], seed, given.device)
            stored = X.values().shape[0]
            X = on_host(X) if given.host else X
            torch.use_deterministic_algorithms(given.fixed_order)
            for kind in given.fits:
                lda = tm.LatentDirichletAllocation(K, concentration=1.0, **KINDS[kind])
                lda.device = given.device if given.host else None
                print(f"{name} seed {seed} {kind}: {fitted(lda, X, truth, first=seed == 0)}, "
                      f"{stored:,} stored", flush=True)  # fmt: skip
            if given.profile and seed == given.seeds - 1:
                write_profile(given.profile, name, lambda model=lda, rows=X: model.fit(rows))
            torch.use_deterministic_algorithms(False)  # draws need not be the same
            del X, truth
            torch.cuda.empty_cache()


def fitted(lda: tm.LatentDirichletAllocation, X: Any, truth: torch.Tensor, *, first: bool) -> str:
    """What a fit took and found; the first of its kind compiles, and another one is timed."""
    apart, device = "", truth.device.type
    if first:
        lda.fit(X)
        before = lda.components_
        torch.cuda.empty_cache()
    if device != "cpu":
        torch.cuda.reset_peak_memory_stats()
    took = seconds(lambda: lda.fit(X), device)
    error, share = errors(lda.components_, truth)
    if first:
        order = align(before, lda.components_, metric="cosine")
        difference = np.abs(lda.components_ - before[order]).sum(axis=1).mean()
        apart = f", two fits differ by {difference:.1e}"
    memory = torch.cuda.max_memory_allocated() / 1e9
    return (
        f"{took:.3f} s, L1 {error:.3f}, found {share:.0%}, sweeps {lda.n_iter_}, {memory:.1f} GB"
        f"{apart}"
    )


def write_profile(file: Path, name: str, work: Callable[[], Any]) -> None:
    """Where the host and the device spend the time of a fit."""
    profile = cProfile.Profile()
    profile.runcall(work)
    with torch.profiler.profile() as found:
        work()
    with file.open("a", encoding="utf-8") as out:
        out.write(f"{name}\n")
        pstats.Stats(profile, stream=out).sort_stats("cumtime").print_stats(60)
        out.write(found.key_averages().table(sort_by="self_device_time_total", row_limit=25))


if __name__ == "__main__":
    main()
