"""Word counts from files: seconds next to the fastest public reader of each format.

python benchmarks/readers.py [--documents N]

Counts with the shape of news (200 words a document, 50,000 different ones), written once and read
by each, one process, the best of three. Peers give tables or matrices that are not checked.
"""

from __future__ import annotations

import gzip
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.io
import scipy.sparse as sp
from common import arguments, timed, write_table
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

import thirdmoment as tm


def corpus(n: int, d: int = 50_000, words: int = 200) -> sp.csr_array:
    rng = np.random.default_rng(0)
    columns = (d * rng.random((n, words)) ** 3).astype(int)
    rows = np.repeat(np.arange(n), words)
    X = sp.coo_array((np.ones(n * words), (rows, columns.ravel())), shape=(n, d)).tocsr()
    X.sum_duplicates()
    return X


def write(X: sp.csr_array, folder: Path) -> dict[str, Path]:
    """The same counts in four formats."""
    table, n = X.tocoo(), X.shape[0]
    entries = np.stack([table.coords[0] + 1, table.coords[1] + 1, table.data], 1).astype(int)
    plain, packed = folder / "docword.a.txt", folder / "docword.b.txt.gz"
    with plain.open("w") as file:
        file.write(f"{n}\n{X.shape[1]}\n{X.nnz}\n")
        pd.DataFrame(entries).to_csv(file, sep=" ", header=False, index=False)
    packed.write_bytes(gzip.compress(plain.read_bytes(), compresslevel=6))
    scipy.io.mmwrite(folder / "a.mtx", X.astype(int))
    small = sp.csr_matrix((X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)), X.shape)
    dump_svmlight_file(small, np.zeros(n), str(folder / "a.svmlight"))
    return {
        "docword": plain,
        "docword.gz": packed,
        "Matrix Market": folder / "a.mtx",
        "svmlight": folder / "a.svmlight",
    }


def peers(files: dict[str, Path]) -> dict[str, tuple[str, object]]:
    def docword(path: Path) -> sp.csr_array:
        t = pd.read_csv(path, sep=" ", skiprows=3, header=None, engine="c").to_numpy()
        return sp.coo_array((t[:, 2], (t[:, 0] - 1, t[:, 1] - 1))).tocsr()

    return {
        "docword": ("pandas.read_csv", lambda: docword(files["docword"])),
        "docword.gz": ("pandas.read_csv", lambda: docword(files["docword.gz"])),
        "Matrix Market": (
            "scipy.io.mmread",
            lambda: scipy.io.mmread(files["Matrix Market"]).tocsr(),
        ),
        "svmlight": ("load_svmlight_file", lambda: load_svmlight_file(str(files["svmlight"]))),
    }


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--documents", type=int, default=20_000)
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        files = write(corpus(options.documents), Path(folder))
        for name, (peer, read) in peers(files).items():
            ours = {
                "whole": lambda path=files[name]: tm.source(path).gather(),
                "in chunks": lambda path=files[name]: sum(c.rows.nnz for c in tm.source(path)),
            }
            theirs = min(timed(read)[1] for _ in range(3))
            took = [min(timed(way)[1] for _ in range(3)) for way in ours.values()]
            size = files[name].stat().st_size / 1e6
            rows.append([name, f"{size:.0f} MB", peer, f"{theirs:.2f}"]
                        + [f"{t:.2f} ({t / theirs:.2f})" for t in took])  # fmt: skip
    note = (
        f"{options.documents:,} documents; seconds, the best of three, and the ratio to the peer."
    )
    write_table(
        "readers", ["format", "size", "peer", "its seconds", "whole", "in chunks"], rows, note
    )


if __name__ == "__main__":
    main()
