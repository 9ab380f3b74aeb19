"""Hostile input from a number: tables, sequences, sparse matrices, files and arguments.

`case(number)` makes everything of one case from its number alone, so that a failure is a number to
come back to.
"""

from __future__ import annotations

import gzip
import itertools
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

import thirdmoment as tm

SOLVERS = ["auto", "tensor", "power", "eig", "schur", "joint-schur", "joint"]
TOPICS = ["LatentDirichletAllocation", "SingleTopicModel", "PoissonTopicModel", "TopicSearch"]
TABLES = ["GaussianMixture", "MultiViewMixture", "KernelMixture", "IndependentFactors",
          "SubspaceClustering", "GaussianSearch", "SubspaceSearch"]  # fmt: skip
REGRESSIONS = ["MixedLinearRegression", "RegressionSearch"]
CODES = ["CategoricalMixture", "CategoricalHMM", "BernoulliHMM"]
CHAINS = ["CategoricalHMM", "BernoulliHMM", "GaussianHMM"]
MODELS = [*TOPICS, *TABLES, *REGRESSIONS, *CODES, "GaussianHMM"]


@dataclass
class Case:
    """A model, what it is fitted to, and what it is asked afterwards."""

    name: str
    arguments: dict[str, Any]
    X: Any
    extras: dict[str, Any]  # y, sample_weight, lengths
    later: Any  # rows for predictions
    notes: list[str] = field(default_factory=list)

    def model(self) -> Any:
        return getattr(tm, self.name)(**self.arguments)

    def __str__(self) -> str:
        shape = getattr(self.X, "shape", None)
        arguments = ", ".join(f"{key}={value!r}" for key, value in self.arguments.items())
        return f"{self.name}({arguments}) on {shape} {' '.join(self.notes)} {sorted(self.extras)}"


class Draw:
    """Random choices, noted down."""

    def __init__(self, number: int) -> None:
        self.rng = np.random.default_rng([2026, number])
        self.notes: list[str] = []

    def one_of(self, options: Any, note: bool = True) -> Any:
        found = options[int(self.rng.integers(len(options)))]
        if note:
            self.notes.append(str(found))
        return found

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)


def case(number: int) -> Case:
    draw = Draw(number)
    name = MODELS[number % len(MODELS)]
    n = int(draw.one_of([1, 3, 10, 25, 40, 60, 80, 120, 200, 300], note=False))
    k = int(draw.one_of([1, 2, 2, 3, 3, 5], note=False))
    if name in TOPICS:
        X = counts(draw, n)
    elif name in CODES:
        X = codes(draw, n, 1 if name == "CategoricalHMM" else 4, binary=name == "BernoulliHMM")
    else:
        X = table(draw, n)
    extras: dict[str, Any] = {}
    if name in REGRESSIONS:
        extras["y"] = target(draw, X)
    if name in CHAINS:
        if draw.chance(0.3) and len(X) > 2:
            cut = int(draw.rng.integers(1, len(X)))
            extras["lengths"] = draw.one_of([[cut, len(X) - cut], [len(X)], [cut], [0, len(X)]])
    elif draw.chance(0.5):
        extras["sample_weight"] = weights(draw, X.shape[0])
    later = X if draw.chance(0.7) else hostile_later(draw, X)
    return Case(name, arguments(draw, name, k, X), X, extras, later, draw.notes)


def arguments(draw: Draw, name: str, k: int, X: Any) -> dict[str, Any]:
    """Mostly valid; now and then a wrong value."""
    options: dict[str, list[Any]] = {
        "refine": ["auto", "auto", "auto", "none"],
        "solver": ["auto", "auto", *SOLVERS],
        "weighting": ["auto", "auto", "none"],
        "n_starts": ["auto", "auto", 0, 2],
        "max_refine_iter": [0, 1, 5, 40],
        "covariance_type": {"GaussianMixture": ["spherical", "diag", "full", "tied", "block"],
                            "GaussianHMM": ["diag", "full", "spherical"],
                            "MultiViewMixture": ["auto", "diag", "full"]}.get(name, []),
        "common_variance": [False, True],
        "exchangeable": [False, False, True] if name == "KernelMixture" else [],
        "kernel": ["rbf", "rbf", "laplace", "linear", "delta"],
        "bandwidth": ["auto", "auto", "cv", 0.5, 1e-200],
        "subspace_dim": [1, 1, 2] if name == "SubspaceSearch" else [1, 1, 2, "auto", [1, 2]],
        "affine": [False, True],
        "order": ["auto", 3, 4],
        "lift": [1, 1, 2],
        "concentration": ["auto", "auto", 0.5, 50.0] if name in TOPICS else [None, None, 2.0],
        "reg_covar": [1e-6, 1e-6, 0.0, 1e-3],
        "tol": [1e-3, 0.0],
    }  # fmt: skip
    wrong = [None, -1, 0, 1.5, "nonsense", np.nan, [], {}, True, 10**9]
    accepted = getattr(tm, name)().get_params()
    found: dict[str, Any] = {"n_components": k}
    for key, values in options.items():
        if key in accepted and values and draw.chance(0.4):
            found[key] = draw.one_of(values, note=False)
    if draw.chance(0.04):
        key = draw.one_of(sorted(accepted), note=False)
        if key not in ("n_jobs", "verbose", "random_state", "n_starts", "max_refine_iter", "rank"):
            found[key] = draw.one_of(wrong, note=False)
    return found


def table(draw: Draw, n: int) -> Any:
    """Real numbers of every kind that users have been seen to give."""
    rng = draw.rng
    d = int(draw.one_of([1, 2, 3, 4, 6, 9], note=False))
    kind = draw.one_of(["clusters", "normal", "constant", "equal rows", "collinear", "integers",
                        "outlier", "zeros", "few values", "lines", "heavy"])  # fmt: skip
    X = rng.normal(size=(n, d))
    if kind == "clusters":
        X += 6 * rng.normal(size=(3, d))[rng.integers(3, size=n)]
    elif kind == "constant":
        X[:, rng.integers(d)] = rng.normal() * 10.0 ** rng.integers(-3, 8)
    elif kind == "equal rows":
        X = X[rng.integers(max(n // 4, 1), size=n)]
    elif kind == "collinear":
        X[:, -1] = X[:, 0] * 3 + 1e-9 * rng.normal(size=n)
    elif kind == "integers":
        X = np.round(3 * X)
    elif kind == "outlier":
        X[rng.integers(n), rng.integers(d)] = 10.0 ** rng.integers(2, 130)
    elif kind == "zeros":
        X[:] = 0
    elif kind == "few values":
        X = np.sign(X)
    elif kind == "lines":
        X = rng.normal(size=(n, 1)) * rng.normal(size=(2, d))[rng.integers(2, size=n)]
    elif kind == "heavy":
        X = rng.standard_cauchy(size=(n, d)) ** 3
    if draw.chance(0.3):  # a column that is constant but for rounding
        j = rng.integers(d)
        X[:, j] = 0.1 + 1e-17 * X[:, j] if draw.chance(0.5) else 1e3 * (1 + 2e-16 * X[:, j])
    with np.errstate(all="ignore"):
        if draw.chance(0.5):
            X = X * draw.one_of([1e-3, 1e-9, 1e-90, 1e-140, 1e9, 1e90, 1e140])
        elif draw.chance(0.1):
            X = X * draw.one_of([1e-160, 1e-310, 1e154, 1e300])
        if draw.chance(0.3):
            X = X + draw.one_of([1e3, 1e6, 1e12, 1e16, -1e8])
        if draw.chance(0.2):
            X = X * 10.0 ** rng.integers(-12, 12, size=d)
    return dressed(draw, X)


def dressed(draw: Draw, X: np.ndarray) -> Any:
    """The same numbers in other clothes, and now and then with holes."""
    rng, n = draw.rng, len(X)
    if draw.chance(0.06) and X.size:
        X = X.astype(float)
        X[rng.integers(n), rng.integers(X.shape[1])] = draw.one_of([np.nan, np.inf, -np.inf])
    with np.errstate(all="ignore"):
        if draw.chance(0.3):
            kind = draw.one_of(["float32", "float16", "int64", "int8", "uint8", "bool", "object",
                                "longdouble"])  # fmt: skip
            X = (
                np.nan_to_num(X).astype(kind)
                if kind not in ("object", "float32")
                else X.astype(kind)
            )
    if draw.chance(0.2):
        X = np.asfortranarray(X)
    if draw.chance(0.1):
        X = np.repeat(X, 2, axis=0)[::2]
    if draw.chance(0.03):
        X = draw.one_of([X[:0], X[:, :0], X.ravel(), X[None], X.tolist()], note=False)
        X = X if isinstance(X, np.ndarray) else np.array(X, dtype=object)
    if draw.chance(0.1) and isinstance(X, np.ndarray):
        X.flags.writeable = False
    return X


def counts(draw: Draw, n: int) -> Any:
    rng = draw.rng
    d = int(draw.one_of([1, 2, 5, 12, 40], note=False))
    kind = draw.one_of(["topics", "poisson", "constant", "one word", "zeros", "blocks", "short",
                        "one huge"])  # fmt: skip
    X = rng.poisson(rng.choice([0.1, 0.7, 3.0]), size=(n, d)).astype(float)
    if kind == "topics":
        laws = rng.dirichlet(np.full(d, 0.2), size=3)
        mix = rng.dirichlet(np.full(3, 0.3), size=n) @ laws
        X = rng.poisson(30 * mix).astype(float)
    elif kind == "constant":
        X[:] = 2
    elif kind == "one word":
        X[:, 1:] = 0
    elif kind == "zeros":
        X[:] = 0
    elif kind == "blocks":
        X[: n // 2, : d // 2] = 0
        X[n // 2 :, d // 2 :] = 0
    elif kind == "short":
        X = np.eye(d)[rng.integers(d, size=n)]
    elif kind == "one huge":
        X[rng.integers(n)] *= 10.0 ** rng.integers(1, 13)
    with np.errstate(all="ignore"):
        if draw.chance(0.25):
            X = X * draw.one_of([0.3, 1e-8, 1e8, 1e-100, 1e100, -1.0, 1e-300, 1e300])
    if draw.chance(0.06) and X.size:
        X[rng.integers(n), rng.integers(d)] = draw.one_of([np.nan, np.inf, -1.0, 1e18])
    form = draw.one_of(["dense", "csr_array", "csr_matrix", "csc_array", "coo_array", "lil_array",
                        "int64", "unsorted", "duplicates", "broken"])  # fmt: skip
    if form == "dense":
        return dressed(draw, X)
    with np.errstate(all="ignore"):
        if draw.chance(0.3):
            X = np.nan_to_num(X).astype(draw.one_of(["float32", "int32", "uint16", "bool", "int8"]))
    if form not in ("int64", "unsorted", "duplicates", "broken"):
        return getattr(sp, form)(X)
    S = sp.csr_array(X)
    if form == "int64":
        S.indices, S.indptr = S.indices.astype(np.int64), S.indptr.astype(np.int64)
    elif form == "unsorted" and S.nnz:
        for a, b in itertools.pairwise(S.indptr):
            S.indices[a:b], S.data[a:b] = S.indices[a:b][::-1].copy(), S.data[a:b][::-1].copy()
        S.has_sorted_indices = False
    elif form == "duplicates" and S.nnz:
        S.indices[:] = np.minimum(S.indices, S.indices.min() + 1)
        S.has_canonical_format = False
    elif form == "broken" and S.nnz:
        S.indices[rng.integers(S.nnz)] = draw.one_of([-1, d, 10**6, -(2**31)])
    return S


def codes(draw: Draw, n: int, width: int, *, binary: bool) -> Any:
    rng = draw.rng
    d = width if width == 1 else int(draw.one_of([1, 2, 3, 4, 7], note=False))
    top = 2 if binary else int(draw.one_of([1, 2, 4, 30], note=False))
    X = rng.integers(top, size=(n, d))
    if draw.chance(0.3):
        X = (X + rng.integers(2, size=(n, 1))) % max(top, 1)
    kind = draw.one_of(["plain", "plain", "missing", "float", "constant", "large", "negative",
                        "fractions", "text", "from one"])  # fmt: skip
    if kind == "missing":
        X = np.where(rng.random(X.shape) < rng.choice([0.1, 0.6]), np.nan, X)
    elif kind == "float":
        X = X.astype(float)
    elif kind == "constant":
        X[:, 0] = 0
    elif kind == "large":
        X[rng.integers(n), 0] = draw.one_of([10**4, 10**7, 2**53, 2**62, np.iinfo(np.int64).max])
    elif kind == "negative":
        X[rng.integers(n), 0] = -1
    elif kind == "fractions":
        X = X + draw.one_of([0.5, 1e-12, 1e19, 1e300])
    elif kind == "text":
        X = X.astype(str).astype(object)
    elif kind == "from one":
        X = X + 1
    return dressed(draw, X) if draw.chance(0.3) else X


def target(draw: Draw, X: Any) -> Any:
    rng, n = draw.rng, len(X)
    y = rng.normal(size=n)
    with np.errstate(all="ignore"):
        if X.ndim == 2 and X.dtype.kind == "f" and X.shape[1]:
            side = np.where(rng.random(n) < 0.5, 1.0, -1.0)
            y = side * np.nan_to_num(X[:, 0].astype(float), posinf=0, neginf=0) + 0.1 * y
        if draw.chance(0.3):
            y = y * draw.one_of([1e-200, 1e-9, 1e9, 1e160, 0.0])
    if draw.chance(0.1):
        with np.errstate(all="ignore"):
            y = draw.one_of([y[:-1], y[:, None], y.astype("float32"), np.full(n, np.nan),
                             np.array(["a"] * n)], note=False)  # fmt: skip
    return y


def weights(draw: Draw, n: int) -> Any:
    rng = draw.rng
    n = max(n, 1)
    kind = draw.one_of(["ones", "random", "some zero", "mostly zero", "huge", "tiny", "uneven",
                        "integers"])  # fmt: skip
    if draw.chance(0.08):
        kind = draw.one_of(["negative", "nan", "short", "all zero"])
    w = np.ones(n)
    if kind in ("random", "huge", "tiny"):
        w = rng.random(n) + 0.01
        w = w * {"random": 1.0, "huge": 1e300, "tiny": 1e-300}[kind]
    elif kind == "some zero":
        w[rng.random(n) < 0.3] = 0
    elif kind == "mostly zero":
        w[rng.random(n) < 0.9] = 0
    elif kind == "uneven":
        w = 10.0 ** rng.uniform(-12, 12, size=n)
    elif kind == "negative":
        w[0] = -1
    elif kind == "nan":
        w[0] = np.nan
    elif kind == "short":
        w = w[:-1]
    elif kind == "all zero":
        w[:] = 0
    elif kind == "integers":
        w = rng.integers(0, 4, size=n)
    return w


def hostile_later(draw: Draw, X: Any) -> Any:
    """Rows that the model was not fitted to: shifted, scaled, far away, of another kind."""
    if sp.issparse(X):
        return X[:1] if X.format in ("csr", "csc", "lil") and X.shape[0] else X
    if X.dtype.kind not in "fiu" or X.size == 0:
        return X
    with np.errstate(all="ignore"):
        return draw.one_of([
            X.astype(float) * 1e6, X.astype(float) + 1e-9, X[:1], X.astype("float32"),
            np.full(X.shape, 1e200), np.full(X.shape, -1e-300), X.astype(float) * 1e-30,
        ], note=False)  # fmt: skip


def file_of_counts(number: int) -> tuple[str, bytes]:
    """Name and content of a file that may be anything from sound to malicious."""
    draw = Draw(number)
    rng = draw.rng
    n, d = (int(value) for value in rng.integers(1, 12, size=2))
    X = sp.coo_array(rng.poisson(0.8, size=(n, d)))
    lines = [f"{r + 1} {c + 1} {v}" for r, c, v in zip(*X.coords, X.data, strict=True)]
    market = draw.chance(0.5)
    field_ = draw.one_of(["integer", "real", "complex", "pattern"], note=False)
    head = [str(n), str(d), str(X.nnz)]
    if market:
        head = [f"%%MatrixMarket matrix coordinate {field_} general", f"{n} {d} {X.nnz}"]
    text = "\n".join([*head, *lines, ""])
    if draw.chance(0.7):  # damage it
        junk = ["-1", "1e300", "nan", "10000000000000", "", "x", "\0", "9" * 400, " ", "0"]
        words = text.split(" ")
        words[rng.integers(len(words))] = str(draw.one_of(junk, note=False))
        text = " ".join(words)
    content = text.encode()
    if draw.chance(0.3):
        position = int(rng.integers(len(content)))
        content = content[:position] + bytes([int(rng.integers(256))]) + content[position + 1 :]
    name = "counts.mtx" if market else "docword.case.txt"
    if draw.chance(0.4):
        name, content = f"{name}.gz", gzip.compress(content)
        if draw.chance(0.3):
            position = int(rng.integers(len(content)))
            content = content[:position] + bytes([int(rng.integers(256))]) + content[position:]
    return name, content
