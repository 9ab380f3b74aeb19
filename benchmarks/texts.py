"""Texts of CSV and Parquet files as word counts: seconds next to pandas and CountVectorizer.

python benchmarks/texts.py [--data FOLDER]

20,000 reviews of IMDb, their words in random order, one process, the best of three.
"""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse as sp
from common import arguments, timed, write_table
from sklearn.feature_extraction.text import CountVectorizer

import thirdmoment as tm


def reviews(data: Path, n: int = 20_000) -> list[str]:
    folder = data / "imdb50k"
    X = sp.csr_array(sp.load_npz(folder / "counts.npz"))[:n]
    words = np.array((folder / "vocab.txt").read_text("utf-8").splitlines())
    rng, out = np.random.default_rng(0), []
    for a, b in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        own = np.repeat(words[X.indices[a:b]], X.data[a:b].astype(int))
        out.append(" ".join(rng.permutation(own)))
    return out


def peer(path: Path) -> sp.csr_matrix:
    read = pd.read_csv if path.suffix == ".csv" else pd.read_parquet
    texts = read(path)["text"]
    return CountVectorizer(stop_words="english", min_df=20).fit_transform(texts)


def main() -> None:
    options = arguments(__doc__ or "").parse_args()
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "reviews.csv"
        frame = pd.DataFrame({"text": reviews(options.data)})
        frame.to_csv(path, index=False)
        packed = path.with_suffix(".parquet")
        frame.to_parquet(packed)
        ways = {
            "pandas.read_csv and CountVectorizer": lambda: peer(path),
            "text.read of the CSV": lambda: tm.text.read(path),
            "the same, phrases=False": lambda: tm.text.read(path, phrases=False),
            "the same, stream=True": lambda: tm.text.read(path, stream=True),
            "pandas.read_parquet and CountVectorizer": lambda: peer(packed),
            "text.read of the Parquet file": lambda: tm.text.read(packed),
        }
        seconds = {name: min(timed(way)[1] for _ in range(3)) for name, way in ways.items()}
        size = path.stat().st_size / 1e6
    first = next(iter(seconds.values()))
    rows = [[name, f"{took:.2f}", f"{took / first:.2f}"] for name, took in seconds.items()]
    note = f"20,000 reviews, {size:.0f} MB, the best of three; ratios to the first line."
    write_table("texts", ["reader", "seconds", "ratio"], rows, note)


if __name__ == "__main__":
    main()
