"""Time of the moment fit against n, nnz, d and k, with the slope on a log-log plot.

python benchmarks/scaling.py
"""

from __future__ import annotations

import numpy as np
from common import TABLES, arguments, timed, write_table

import thirdmoment as tm
from thirdmoment.datasets import make_lda_corpus

BASE = {"n": 40_000, "d": 4000, "k": 20, "words": 100}
SERIES = {
    "n": [20_000, 40_000, 80_000, 160_000],
    "words": [50, 100, 200, 400],
    "d": [1000, 2000, 4000, 8000, 16_000],
    "k": [5, 10, 20, 40, 80],
}
NAMES = {
    "n": "documents n",
    "words": "nonzeros (longer documents)",
    "d": "words d",
    "k": "topics k",
}


def main() -> None:
    arguments(__doc__ or "").parse_args()
    run({**BASE, "n": 8000})  # compile
    rows, curves = [], {}
    for name, values in SERIES.items():
        points = [run({**BASE, name: value}) for value in values]
        size = [p[0] for p in points] if name == "words" else values
        time = [p[1] for p in points]
        slope = float(np.polyfit(np.log(size), np.log(time), 1)[0])
        curves[name] = size, time, slope
        cells = ", ".join(f"{s:,}: {t:.2f}" for s, t in zip(size, time, strict=True))
        rows.append([NAMES[name], cells, f"{slope:.2f}"])
        print(rows[-1], flush=True)
    note = (
        "Seconds of LatentDirichletAllocation(k, refine='none', concentration=1.0), best of three, "
        "around n = 40,000, d = 4,000, k = 20, 100 words a document."
    )
    write_table("scaling", ["varied", "size: seconds", "slope"], rows, note)
    draw(curves)


def run(size):
    corpus = make_lda_corpus(
        size["n"], size["d"], size["k"], mean_length=size["words"], random_state=0
    )
    model = tm.LatentDirichletAllocation(size["k"], refine="none", concentration=1.0)
    return corpus.X.nnz, min(timed(lambda: model.fit(corpus.X))[1] for _ in range(3))


def draw(curves) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 2.9), layout="constrained")
    for ax, (name, (size, time, slope)) in zip(figure.subplots(1, 4), curves.items(), strict=True):
        ax.loglog(size, time, "o-", color="#1f3a5f")
        ax.set(xlabel=NAMES[name], title=f"slope {slope:.2f}")
    figure.axes[0].set_ylabel("seconds")
    figure.savefig(TABLES / "scaling.png", dpi=120)


if __name__ == "__main__":
    main()
