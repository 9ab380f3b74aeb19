"""A CSV of a gigabyte in bounded memory: seconds and memory next to pandas and CountVectorizer.

python benchmarks/texts_large.py [--data FOLDER] [--megabytes N]

Reviews of IMDb, their words in random order, again and again until the file is large enough; one in
a hundred words is a new one, so that the vocabulary grows as that of real texts. Every reader runs
in a process of its own; memory is the largest that the process ever held.
"""

from __future__ import annotations

import csv
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from common import arguments, write_table

PEER = """
import pandas as pd
from sklearn.feature_extraction.text import CountVectorizer
X = CountVectorizer(stop_words="english", min_df=20).fit_transform(pd.read_csv(path)["text"])
n, d = X.shape
"""
OURS = """
import thirdmoment as tm
n, d = tm.text.read(path, text="text", min_documents=20{more}).shape
"""
TIMED = """
import resource, sys, time, warnings
warnings.simplefilter("ignore")
path, begin = sys.argv[1], time.perf_counter()
{body}
memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(time.perf_counter() - begin, memory / 1e6, n, d)
"""


def write(path: Path, data: Path, size: float) -> None:
    folder = data / "imdb50k"
    X = sp.csr_array(sp.load_npz(folder / "counts.npz"))
    words = np.array((folder / "vocab.txt").read_text("utf-8").splitlines())
    rng, new = np.random.default_rng(0), 0
    with path.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["number", "text"])
        row = 0
        while file.tell() < size:
            for _ in range(5000):
                a, b = X.indptr[row % X.shape[0]], X.indptr[row % X.shape[0] + 1]
                own = rng.permutation(np.repeat(words[X.indices[a:b]], X.data[a:b].astype(int)))
                fresh = rng.random(len(own)) < 0.01
                own = own.astype(object)
                own[fresh] = [_word(int(new * rng.random() ** 3) + i) for i in range(fresh.sum())]
                new += int(fresh.sum())
                table.writerow([row, " ".join(own)])
                row += 1


def _word(number: int) -> str:
    """Letters that are a number."""
    out = "x"
    while number:
        number, rest = divmod(number, 26)
        out += chr(97 + rest)
    return out + "q"


def run(body: str, path: Path) -> tuple[float, float, int, int]:
    code = TIMED.format(body=body)
    out = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True
    ).stdout.split()
    return float(out[0]), float(out[1]), int(out[2]), int(out[3])


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--megabytes", type=float, default=1000)
    options = parser.parse_args()
    ways = {
        "pandas.read_csv and CountVectorizer": PEER,
        "text.read": OURS.format(more=""),
        "text.read, stream=True": OURS.format(more=", stream=True"),
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "reviews.csv"
        write(path, options.data, options.megabytes * 1e6)
        found = {name: run(body, path) for name, body in ways.items()}
        size = path.stat().st_size / 1e6
    first = next(iter(found.values()))[0]
    rows = [
        [name, f"{took:.0f}", f"{took / first:.2f}", f"{memory:.1f} GB", f"{n:,}", f"{d:,}"]
        for name, (took, memory, n, d) in found.items()
    ]
    columns = ["reader", "seconds", "ratio", "memory", "documents", "words"]
    write_table("texts_large", columns, rows, f"{size:,.0f} MB, each once.")


if __name__ == "__main__":
    main()
