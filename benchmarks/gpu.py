"""Topics on one GPU: moments and fits of corpora with the shape of NYTimes and PubMed.

Counts are drawn on the GPU (100 topics, words by Zipf's law, alpha0 = 1 known) and fitted where
they are; the first fit compiles and is not counted, the second is. Errors are mean L1 distances of
a topic from the truth, 0 to 2; a topic counts as found below 0.4. Needs CUDA and Triton.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp
import torch
from scipy.optimize import linear_sum_assignment

sys.path.insert(0, str(Path(__file__).parent))

import thirdmoment as tm
from thirdmoment.metrics import align

SHAPES = {"NYTimes": (300_000, 102_660, 330), "PubMed": (8_200_000, 141_043, 90)}
K, STEP = 100, 500_000


def drawn(n: int, d: int, length: float, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Counts (n, d) as CSR on the GPU, and the topics (k, d) they were drawn from."""
    g = torch.Generator("cuda").manual_seed(seed)
    base = 1 / torch.arange(1, d + 1, device="cuda").float() ** 0.9
    base /= base.sum()
    topics = torch._sample_dirichlet((base * d * 0.05).expand(K, d).contiguous(), generator=g)
    topics = topics.clamp(min=1e-12)
    topics /= topics.sum(1, keepdim=True)
    edges = topics.double().cumsum(1)
    parts = [_part(min(STEP, n - s), d, length, edges, g) for s in range(0, n, STEP)]
    sizes, columns, counts = (torch.cat(part) for part in zip(*parts, strict=True))
    starts = torch.zeros(n + 1, dtype=torch.int64, device="cuda")
    starts[1:] = sizes.cumsum(0)
    return torch.sparse_csr_tensor(starts, columns.long(), counts, (n, d)), topics


def _part(m: int, d: int, length: float, edges: torch.Tensor, g: torch.Generator) -> tuple:
    shares = torch._sample_dirichlet(torch.full((m, K), 1.0 / K, device="cuda"), generator=g)
    shares = shares.cumsum(1)
    sizes = torch.poisson(torch.full((m,), float(length), device="cuda"), generator=g)
    sizes = sizes.clamp(min=3).long()
    rows = torch.repeat_interleave(torch.arange(m, device="cuda"), sizes)
    u = torch.rand(len(rows), device="cuda", generator=g)
    topic = torch.zeros(len(rows), dtype=torch.int16, device="cuda")
    for a in range(0, len(rows), 20_000_000):
        own = slice(a, a + 20_000_000)
        for j in range(K - 1):
            topic[own] += (u[own] > shares[rows[own], j]).to(torch.int16)
    order = torch.argsort(topic)
    ends = torch.bincount(topic.long(), minlength=K).cumsum(0).tolist()
    u = torch.rand(len(rows), device="cuda", generator=g).double()
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


def seconds(work) -> tuple[object, float]:
    torch.cuda.synchronize()
    start = time.perf_counter()
    found = work()
    torch.cuda.synchronize()
    return found, time.perf_counter() - start


def errors(topics: np.ndarray, truth: torch.Tensor) -> tuple[float, float]:
    """Mean L1 error, and the share of topics that are found."""
    found = torch.as_tensor(np.asarray(topics), dtype=torch.float32, device="cuda")
    distance = torch.cdist(found, truth, p=1).cpu().numpy()
    i, j = linear_sum_assignment(distance)
    return float(distance[i, j].mean()), float(np.mean(distance[i, j] < 0.4))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shapes", nargs="+", default=list(SHAPES), choices=list(SHAPES))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--fits", nargs="+", default=["moments", "18 sweeps", "default"])
    parser.add_argument("--host", action="store_true", help="counts in host memory")
    parser.add_argument("--profile", action="store_true")
    given = parser.parse_args()
    warnings.filterwarnings("ignore")
    kinds = {
        "moments": {"refine": "none", "weighting": "none"},
        "weighted moments": {"refine": "none"},
        "18 sweeps": {"max_refine_iter": 18},
        "default": {},
    }
    for name in given.shapes:
        for seed in range(given.seeds):
            X, truth = drawn(*SHAPES[name], seed)
            stored = X.values().shape[0]
            if given.host:
                X = on_host(X)
            for kind in given.fits:
                lda = tm.LatentDirichletAllocation(K, concentration=1.0, **kinds[kind])
                lda.device = "cuda" if given.host else None
                lda.fit(X)
                torch.cuda.empty_cache()
                if given.profile:
                    import cProfile
                    import pstats

                    profile = cProfile.Profile()
                    profile.runcall(lda.fit, X)
                    pstats.Stats(profile).sort_stats("cumtime").print_stats(45)
                before = lda.components_
                took = min(seconds(lambda model=lda, rows=X: model.fit(rows))[1] for _ in range(2))
                error, share = errors(lda.components_, truth)
                order = align(before, lda.components_, metric="cosine")
                apart = float(np.abs(lda.components_ - before[order]).sum(axis=1).mean())
                memory = torch.cuda.max_memory_allocated() / 1e9
                print(
                    f"{name} seed {seed} {kind}: {took:.3f} s, L1 {error:.3f}, found {share:.0%}, "
                    f"sweeps {lda.n_iter_}, {stored:,} stored, {memory:.1f} GB, "
                    f"two runs differ by {apart:.1e}",
                    flush=True,
                )
            del X, truth
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
