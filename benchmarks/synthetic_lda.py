"""Synthetic LDA with known truth: topic error and time against scikit-learn and tomotopy.

    python benchmarks/synthetic_lda.py [--seeds 5] [--without-peers]

n = 20,000 documents of 100 words over d = 2,000, k = 10, alpha0 = 1. The oracle counts words with
their true topics. scikit-learn runs once (its fit takes minutes) in the same process.
"""

from __future__ import annotations

import warnings

import numpy as np
from common import arguments, mean_spread, timed, tomotopy_topics, write_table
from sklearn.decomposition import LatentDirichletAllocation as ScikitLearn

import thirdmoment as tm
from thirdmoment.datasets import make_lda_corpus
from thirdmoment.metrics import recovery_error

SETTINGS = {
    "moments, alpha0 known": {"refine": "none", "concentration": 1.0},
    'moments, alpha0 "auto"': {"refine": "none"},
    "plain moments of the paper": {"refine": "none", "weighting": "none", "concentration": 1.0},
    "default fit": {},
}


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--without-peers", action="store_true")
    options = parser.parse_args()
    warnings.filterwarnings("ignore", message="The training result may differ")
    tm.LatentDirichletAllocation(10).fit(make_lda_corpus(8000, 300, 10).X)  # compile
    errors = {name: [] for name in [*SETTINGS, "oracle"]}
    seconds = {name: [] for name in SETTINGS}
    found = []
    for seed in range(options.seeds):
        corpus = make_lda_corpus(20_000, 2000, 10, random_state=seed)
        oracle = corpus.topic_counts / corpus.topic_counts.sum(axis=1, keepdims=True)
        errors["oracle"].append(recovery_error(oracle, corpus.topics))
        for name, setting in SETTINGS.items():
            model, time = timed(
                lambda s=setting: tm.LatentDirichletAllocation(10, **s).fit(corpus.X)
            )
            errors[name].append(recovery_error(model.components_, corpus.topics))
            seconds[name].append(time)
            if "auto" in name:
                found.append(float(model.concentration_.sum()))
        print(seed, {name: round(value[-1], 4) for name, value in errors.items()}, flush=True)
    rows, base = [], None
    if not options.without_peers:
        peers = run_peers(make_lda_corpus(20_000, 2000, 10, random_state=0))
        base = peers["scikit-learn, 10 iterations"][1]
    for name in SETTINGS:
        time = np.median(seconds[name])
        ratio = f"{base / time:.0f} × less" if base else ""
        rows.append([name, mean_spread(errors[name], 4), f"{time:.2f}", ratio])
    if base:
        for name, (error, time) in peers.items():
            ratio = f"{base / time:.0f} × less" if time < base else ""
            rows.append([name, f"{error:.4f}", f"{time:.1f}", ratio])
    rows.append(["oracle: true token labels", mean_spread(errors["oracle"], 4), "", ""])
    note = (
        f"n = 20,000, d = 2,000, k = 10, 100 words a document, alpha0 = 1; {options.seeds} seeds "
        f'(peers one). Mean L1 topic error ± half range. alpha0 "auto": '
        f"{mean_spread(found, 3)}. Time ratios are to scikit-learn in the same run."
    )
    write_table("synthetic_lda", ["fit", "topic error", "seconds", "time"], rows, note)


def run_peers(corpus):
    X = corpus.X
    results = {}
    model, time = timed(lambda: ScikitLearn(10, max_iter=10, random_state=0).fit(X))
    topics = model.components_ / model.components_.sum(axis=1, keepdims=True)
    results["scikit-learn, 10 iterations"] = recovery_error(topics, corpus.topics), time
    topics, time = timed(lambda: tomotopy_topics(X, 10))
    results["tomotopy, 200 iterations"] = recovery_error(topics, corpus.topics), time
    return results


if __name__ == "__main__":
    main()
