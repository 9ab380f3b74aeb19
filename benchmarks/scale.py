"""Scale: moments of word counts in memory, from files and on Dask, in units of SciPy's products.

python benchmarks/scale.py [--nytimes N] [--gigabytes G] [--dask N]
python benchmarks/scale.py --device cuda    # all models on one GPU: gpu.py and gpu_models.py

Counts have the shapes of UCI NYTimes (102,660 words, some 230 different ones a document) and PubMed
(141,043 words, some 50 a document): 50 topics with Zipf frequencies, each with an order of words of
its own. Everything runs in processes of its own, with two threads, ``refine="none"``. Memory is the
largest anonymous memory (not the page cache) of the process.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from common import arguments, write_table

SHAPES = {"NYTimes": (102_660, 300), "PubMed": (141_043, 60)}
TOPICS = 50


def counts(name: str, n: int, seed: int = 0) -> sp.csr_array:
    """n documents with the width and the lengths of a corpus."""
    d, length = SHAPES[name]
    rng = np.random.default_rng(1)  # topics are the same for all parts
    orders = np.stack([rng.permutation(d) for _ in range(TOPICS)]).astype(np.int32)
    cdf = np.cumsum(1 / np.arange(3, d + 3))
    rng = np.random.default_rng(seed)
    lengths = rng.poisson(length, n)
    own = rng.integers(TOPICS, size=(n, 3))  # three topics a document
    row = np.repeat(np.arange(n, dtype=np.int32), lengths)
    topic = own[row, rng.integers(3, size=len(row))]
    rank = np.searchsorted(cdf, cdf[-1] * rng.random(len(row)))
    X = sp.coo_array((np.ones(len(row), np.float32), (row, orders[topic, rank])), shape=(n, d))
    X = X.tocsr()
    X.sum_duplicates()
    return sp.csr_array((X.data, X.indices.astype(np.int32), X.indptr), shape=X.shape)


def write_parts(folder: Path, name: str, gigabytes: float, size: int = 100_000) -> tuple[int, int]:
    """Files of ``size`` documents until there are so many bytes; returns documents and entries."""
    n = nnz = part = 0
    while 8 * nnz < gigabytes * 1e9:
        X = counts(name, size, seed=part)
        sp.save_npz(folder / f"{part}.npz", X, compressed=False)
        n, nnz, part = n + size, nnz + X.nnz, part + 1
    return n, nnz


HEAD = """
import json, sys, time, threading, warnings
from pathlib import Path
import numpy as np, scipy.sparse as sp
import thirdmoment as tm
warnings.simplefilter("ignore")
sys.path.insert(0, {here!r})
import scale
peak = [0]
def watch():
    while True:
        for line in open("/proc/self/status"):
            if line.startswith("RssAnon"):
                peak[0] = max(peak[0], int(line.split()[1]))
        time.sleep(0.02)
threading.Thread(target=watch, daemon=True).start()
small = {small!r}  # a warm-up in single precision leaves memory behind
tm.LatentDirichletAllocation(3, refine="none").fit(
    tm.datasets.make_lda_corpus(500, 50, 3).X if small else scale.counts("PubMed", 20_000))
model = tm.LatentDirichletAllocation(50, refine="none")
out, peak[0] = {{}}, 0  # of the fit alone
"""
TAIL = """
out["memory"] = peak[0] / 1e6
out["passes"] = int(model.report_.passes)
print(json.dumps(out))
"""
PRODUCTS = """
X = scale.counts("NYTimes", {n})
Y = sp.csr_array(X, dtype=np.float64)
Q = np.random.default_rng(0).normal(size=(X.shape[1], 60))
t = time.perf_counter(); Y.T @ (Y @ Q); out["round trip"] = time.perf_counter() - t
t = time.perf_counter(); Z = Y.data.copy(); took = time.perf_counter() - t
out["copy GB/s"] = 16 * len(Z) / took / 1e9
del Y, Z
t = time.perf_counter(); model.fit(X); out["seconds"] = time.perf_counter() - t
out["nnz"] = int(X.nnz)
"""
MEMORY = """
t = time.perf_counter()
parts = [sp.load_npz(p) for p in sorted(Path({folder!r}).glob("*.npz"), key=lambda p: int(p.stem))]
X = sp.csr_array(sp.vstack(parts, format="csr")); del parts
model.fit(X); out["seconds"] = time.perf_counter() - t
"""
FILES = """
t = time.perf_counter()
model.fit(tm.source({folder!r})); out["seconds"] = time.perf_counter() - t
"""
DASK = """
import dask, dask.array as da, distributed
def rows(i): return scale.counts("PubMed", {size}, seed=i)
if __name__ == "__main__":
    if {workers}:
        cluster = distributed.LocalCluster(n_workers={workers}, threads_per_worker=1,
                                           dashboard_address=None, memory_limit="6GB")
        client = distributed.Client(cluster)
        blocks = [dask.delayed(sp.load_npz)(str(p)) for p in sorted(Path({folder!r}).glob("*.npz"))]
        parts = [da.from_delayed(b, (np.nan, 141_043), np.float32) for b in blocks]
        X = da.concatenate(parts, allow_unknown_chunksizes=True).persist()
        distributed.wait(X)
    else:
        parts = [sp.load_npz(p) for p in sorted(Path({folder!r}).glob("*.npz"))]
        X = sp.csr_array(sp.vstack(parts))
    t = time.perf_counter(); model.fit(X); out["seconds"] = time.perf_counter() - t
"""


def run(body: str, **values: object) -> dict[str, float]:
    """A script in a process of its own."""
    here = str(Path(__file__).resolve().parent)
    head = HEAD.format(here=here, small=body == FILES)
    code = head + body.format(**values) + TAIL
    if "__name__" in body:  # workers import the script
        tail = "".join(f"    {line}\n" for line in TAIL.strip().splitlines())
        code = head + body.format(**values) + tail
    with tempfile.NamedTemporaryFile("w", suffix=".py") as script:
        script.write(code)
        script.flush()
        done = subprocess.run([sys.executable, script.name], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr[-3000:])
    return json.loads(done.stdout.splitlines()[-1])


def on_device(device: str) -> None:
    """Topics, mixtures and chains on a device, in processes of their own."""
    here = Path(__file__).resolve().parent
    topics = "gpu.py"
    for name, *more in (
        [topics], [topics, "--fixed-order"], [topics, "--host", "--seeds", "1"], ["gpu_models.py"],
    ):  # fmt: skip
        command = [sys.executable, str(here / name), "--device", device, *more]
        subprocess.run(command, check=True)


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--nytimes", type=int, default=60_000, help="documents, 0 for none")
    parser.add_argument("--gigabytes", type=float, default=4.0, help="of files, 0 for none")
    parser.add_argument("--dask", type=int, default=2_000_000, help="documents, 0 for none")
    parser.add_argument("--device", help="what is measured runs there instead")
    options = parser.parse_args()
    if options.device:
        on_device(options.device)
        return
    rows = []
    if options.nytimes:
        found = run(PRODUCTS, n=options.nytimes)
        ratio = found["seconds"] / found["round trip"]
        flops = 4 * found["nnz"] * 60 * found["passes"] / found["seconds"] / 1e9
        what = f"NYTimes, {options.nytimes:,} documents, in memory"
        rows.append([what, f"{found['seconds']:.1f}",
                     f"{ratio:.2f} SciPy round trips", found["passes"], f"{found['memory']:.2f} GB",
                     f"{flops:.0f} Gflop/s"])  # fmt: skip
    if options.gigabytes:
        with tempfile.TemporaryDirectory() as folder:
            n, nnz = write_parts(Path(folder), "PubMed", options.gigabytes)
            whole, parts = run(MEMORY, folder=folder), run(FILES, folder=folder)
        for name, found in (("in memory, with loading", whole), ("from files", parts)):
            flops = 4 * nnz * 60 * found["passes"] / found["seconds"] / 1e9
            rows.append([f"PubMed, {n:,} documents, {name}", f"{found['seconds']:.1f}",
                         f"{found['seconds'] / whole['seconds']:.2f}", found["passes"],
                         f"{found['memory']:.2f} GB", f"{flops:.0f} Gflop/s"])  # fmt: skip
    if options.dask:
        with tempfile.TemporaryDirectory() as folder:
            for part in range(20):
                X = counts("PubMed", options.dask // 20, seed=part)
                sp.save_npz(Path(folder) / f"{part}.npz", X, compressed=False)
            size = options.dask // 20
            whole = run(DASK, folder=folder, workers=0, size=size)
            spread = run(DASK, folder=folder, workers=2, size=size)
        for name, found in (("two threads", whole), ("Dask, two processes", spread)):
            rows.append([f"PubMed, {options.dask:,} documents, {name}", f"{found['seconds']:.1f}",
                         f"{found['seconds'] / whole['seconds']:.2f}", found["passes"],
                         f"{found['memory']:.2f} GB", ""])  # fmt: skip
    header = ["what", "seconds", "ratio", "passes", "anonymous memory", "rate of products"]
    write_table("scale", header, rows, "k = 50; each once; the rate counts 60 columns a pass.")


if __name__ == "__main__":
    main()
