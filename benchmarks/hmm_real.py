"""Real sequences: likelihood and time against five runs of hmmlearn (marks: ten of our own EM).

python benchmarks/hmm_real.py --data FOLDER

hmmlearn runs at most 100 iterations from each of five random states, in its fast implementation
("scaling") where it has one for symbols; the time of its default one is that of five iterations,
times twenty. Marks have no peer with binary vectors: plain EM steps of this library from ten random
starts, 100 steps each.
"""

from __future__ import annotations

import csv
import gzip
import logging
import warnings
from pathlib import Path

import numpy as np
from common import arguments, timed, write_table

from thirdmoment import BernoulliHMM, CategoricalHMM, GaussianHMM
from thirdmoment._array import single_threaded_blas
from thirdmoment.refinement.chains import MarkovProblem, project

RUNS, SENTENCES = 5, 10_000


def letters(data: Path) -> tuple[np.ndarray, np.ndarray]:
    with gzip.open(data / "letters_moby_dick" / "letters.txt.gz", "rt") as file:
        chapters = file.read().splitlines()
    number = np.zeros(256, dtype=np.int64)
    number[[ord(c) for c in " abcdefghijklmnopqrstuvwxyz"]] = np.arange(27)
    X = np.concatenate([number[np.frombuffer(c.encode(), np.uint8)] for c in chapters])
    return X[:, None], np.array([len(c) for c in chapters])


def brown(data: Path, sentences: int | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Words, lengths of sentences and tags; of the first sentences their own words only."""
    tokens = np.load(data / "brown_pos" / "tokens.npz")
    lengths = tokens["sentence_length"].astype(np.int64)[:sentences]
    n = int(lengths.sum())
    words = np.unique(tokens["word"][:n], return_inverse=True)[1]
    return words[:, None], lengths, tokens["tag"][:n]


def marks(data: Path) -> tuple[np.ndarray, np.ndarray]:
    table = np.load(data / "chromhmm_chr11" / "marks.npz")
    lines = [table["GM12878"], table["K562"]]
    return np.concatenate(lines), np.array([len(line) for line in lines])


def series(data: Path) -> dict[str, tuple[np.ndarray, list[int] | None]]:
    def read(name: str, *columns: str) -> np.ndarray:
        with (data / "hmm_series" / f"{name}.csv").open() as file:
            return np.array([[float(row[c]) for c in columns] for row in csv.DictReader(file)])

    elk = read("elk", "Easting", "Northing")
    with (data / "hmm_series" / "elk.csv").open() as file:
        owner = [row["ID"] for row in csv.DictReader(file)]
    lengths = [owner.count(name) for name in dict.fromkeys(owner)]
    ends = np.cumsum(lengths)
    steps = [np.diff(elk[a:b], axis=0) for a, b in zip(ends - lengths, ends, strict=True)]
    distance = np.concatenate([np.log1p(np.hypot(*step.T))[:, None] for step in steps])
    with gzip.open(data / "mocap6" / "frames.csv.gz", "rt") as file:
        frames = list(csv.reader(file))[1:]
    takes = [row[0] for row in frames]
    return {
        "geyser": (read("geyser", "waiting", "duration"), None),
        "sp500": (read("sp500", "logret"), None),
        "speed": (read("speed", "rt"), [168, 134, 137]),
        "earthquakes": (read("earthquakes", "count"), None),
        "elk": (distance, [n - 1 for n in lengths]),
        "mocap6": (
            np.array([[float(v) for v in row[2:14]] for row in frames]),
            [takes.count(name) for name in dict.fromkeys(takes)],
        ),
    }


def many_to_one(states: np.ndarray, tags: np.ndarray) -> float:
    """Share of tokens whose tag is the most frequent one of their state."""
    table = np.zeros((states.max() + 1, tags.max() + 1))
    np.add.at(table, (states, tags), 1)
    return float(table.max(axis=1).sum() / len(states))


def peers(make, X, lengths) -> tuple[list, np.ndarray, np.ndarray]:
    """Five hmmlearn fits, their log-likelihoods and seconds."""
    found, seconds = [], []
    for seed in range(RUNS):
        model, t = timed(lambda: make(random_state=seed, n_iter=100).fit(X, lengths))
        found.append(model)
        seconds.append(t)
    return found, np.array([m.score(X, lengths) for m in found]), np.array(seconds)


def line(name, k, ours, seconds, values, times, start, more="") -> list[str]:
    best, middle = values.max(), np.median(values)
    verdict = "above" if ours > best + 0.5 else "level" if ours > best - 0.5 else (
        "between median and best" if ours > middle - 0.5 else "below the median")  # fmt: skip
    row = [name, str(k), f"{ours:,.1f}", f"{best:,.1f}", f"{middle:,.1f}", verdict,
           f"{seconds:.2f} s", f"{seconds / np.median(times):.3f}", start, more]  # fmt: skip
    print(row, flush=True)
    return row


def symbols(name, X, lengths, k, tags=None) -> list[str]:
    from hmmlearn.hmm import CategoricalHMM as Peer

    model, seconds = timed(lambda: CategoricalHMM(k).fit(X, lengths=lengths))
    found, values, times = peers(
        lambda **options: Peer(k, implementation="scaling", **options), X, lengths
    )
    default = timed(lambda: Peer(k, n_iter=5, tol=0, random_state=0).fit(X, lengths))[1] * 20
    more = f"{seconds / default:.3f} of hmmlearn's default"
    if tags is not None:
        ours = many_to_one(model.predict(X, lengths), tags)
        theirs = max(
            (value, many_to_one(peer.predict(X, lengths), tags))
            for peer, value in zip(found, values, strict=True)
        )[1]
        more += f"; many-to-one {ours:.3f}, hmmlearn's best run {theirs:.3f}"
    if k == 2:
        order = [np.argsort(-law)[:8] for law in model.emissionprob_]
        classes = [("".join("_abcdefghijklmnopqrstuvwxyz"[i] for i in o)) for o in order]
        more += f"; {' and '.join(classes)}"
    value = model.log_likelihood(X, lengths)
    return line(name, k, value, seconds, values, times, model.report_.start, more)


def binary(X, lengths, k) -> list[str]:
    model, seconds = timed(lambda: BernoulliHMM(k).fit(X, lengths=lengths))
    family = model._prepare(model._read(X, reset=True))
    rows = model._observations(family, X.astype(np.int64), lengths)
    problem = MarkovProblem(family, rows, 0.0, 2)
    values, times = [], []
    share = X.mean(axis=0)
    for seed in range(10):
        rng = np.random.default_rng(seed)
        p = np.clip(share * rng.gamma(1.0, size=(k, X.shape[1])), 1e-3, 0.9)
        tables = np.stack([1 - p, p], axis=2).reshape(k, -1)
        start = project(family, (np.full(k, 1 / k), rng.dirichlet(np.ones(k), size=k), tables))

        def run(parameters=start):
            with single_threaded_blas():
                for _ in range(100):
                    parameters, value = problem.step(parameters)
            return value * len(X)

        value, t = timed(run)
        values.append(value)
        times.append(t)
    ours = model.log_likelihood(X, lengths)
    start_name = model.report_.start
    return line("chromatin marks", k, ours, seconds, np.array(values), times, start_name,
                "peer: ten random starts of our EM")  # fmt: skip


def vectors(name, X, lengths, k, kind) -> list[str]:
    from hmmlearn.hmm import GaussianHMM as Peer

    model, seconds = timed(lambda: GaussianHMM(k, covariance_type=kind).fit(X, lengths=lengths))
    _, values, times = peers(lambda **options: Peer(k, covariance_type=kind, **options), X, lengths)
    ours = model.log_likelihood(X, lengths)
    return line(f"{name}, {kind}", k, ours, seconds, values, times, model.report_.start)


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--only", default="", help="letters, brown, marks or series")
    chosen = parser.parse_args()
    data, only = chosen.data, chosen.only
    logging.getLogger("hmmlearn").setLevel(logging.CRITICAL)
    warnings.simplefilter("ignore")
    rows = []
    if only in ("", "letters"):
        X, lengths = letters(data)
        CategoricalHMM(2).fit(X[:3000])  # compile
        rows += [symbols("letters", X, lengths, k) for k in (2, 6)]
    if only in ("", "brown"):
        X, lengths, tags = brown(data, SENTENCES)
        rows.append(symbols(f"Brown, {SENTENCES:,} sentences", X, lengths, 12, tags))
        X, lengths, tags = brown(data, None)
        model, seconds = timed(lambda: CategoricalHMM(12).fit(X, lengths=lengths))
        accuracy = many_to_one(model.predict(X, lengths), tags)
        value = model.log_likelihood(X, lengths)
        rows.append(["Brown, all", "12", f"{value:,.1f}", "", "", "", f"{seconds:.1f} s", "",
                     model.report_.start, f"many-to-one {accuracy:.3f}"])  # fmt: skip
        print(rows[-1], flush=True)
    if only in ("", "marks"):
        rows.append(binary(*marks(data), 10))
    if only in ("", "series"):
        for name, (X, lengths) in series(data).items():
            for kind in ("diag", "full") if X.shape[1] > 1 else ("diag",):
                for k in (6, 12) if name == "mocap6" else (2, 3):
                    rows.append(vectors(name, X, lengths, k, kind))
    note = (
        "Log-likelihood of the training sequences; hmmlearn's best and median of five runs; time "
        "over the median time of one run."
    )
    header = ["data", "states", "ours", "best", "median", "ours is", "time", "over one run",
              "start", "more"]  # fmt: skip
    if not only:
        write_table("hmm_real", header, rows, note)


if __name__ == "__main__":
    main()
