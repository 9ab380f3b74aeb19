"""Does `topic_trust_` tell which topics come back with other documents of the same source?

    python benchmarks/trust.py [--data FOLDER] [--corpora KOS AP ...] [--topics 20 50]

Topics of the default fit are matched with those of fits to bootstrap samples of the documents. The
table has the mean share of the ten top words that come back, the mean of `topic_trust_`, which
estimates it, their rank correlation over topics, the topics that are called unstable, and how many
of these truly lose more than half of their words. The weights of `topic_trust_` were chosen on the
first five corpora and not looked at again on the other four.
"""

from __future__ import annotations

import warnings

import numpy as np
from common import arguments, load_words, write_table
from scipy.stats import spearmanr

import thirdmoment as tm
from thirdmoment.metrics import align, npmi_coherence

CHOSEN_ON = ("docstrings", "AP", "KOS", "Reuters", "we8there")
OTHERS = ("20 Newsgroups", "NIPS", "NYT", "IMDb")


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--corpora", nargs="+", default=[*CHOSEN_ON, *OTHERS])
    parser.add_argument("--topics", nargs="+", type=int, default=[20, 50])
    parser.add_argument("--samples", type=int, default=6)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = []
    for name in options.corpora:
        X, words = load_words(name, options.data)
        for k in options.topics:
            rows.append(compare(name, X, words, k, options.samples))
            print(rows[-1], flush=True)
    header = [
        "corpus",
        "weights chosen on it",
        "topics",
        "overlap",
        "trust",
        "rank correlation",
        "of NPMI alone",
        "called unstable",
        "of these truly",
        "verdict",
    ]
    note = (
        f"Share of the ten top words that come back in {options.samples} bootstrap samples. "
        "`benchmarks/trust.py`."
    )
    write_table("trust", header, rows, note)


def compare(name, X, words, k, samples):
    model = tm.LatentDirichletAllocation(k).fit(X, feature_names=words)
    overlap = np.mean([again(X, k, model.components_, seed) for seed in range(samples)], axis=0)
    trust = model.topic_trust_
    unstable = trust < 0.5
    return [
        name,
        "yes" if name in CHOSEN_ON else "no",
        k,
        f"{overlap.mean():.2f}",
        f"{trust.mean():.2f}",
        f"{spearmanr(trust, overlap).statistic:.2f}",
        f"{spearmanr(npmi_coherence(model.components_, X), overlap).statistic:.2f}",
        int(unstable.sum()),
        int((overlap[unstable] < 0.5).sum()),
        model.report_.level,
    ]


def again(X, k, topics, seed):
    """Share of the top words of each topic that a fit to a bootstrap sample has as well."""
    draws = np.random.default_rng(seed).integers(X.shape[0], size=X.shape[0])
    weight = np.bincount(draws, minlength=X.shape[0]).astype(float)
    found = tm.LatentDirichletAllocation(k).fit(X, sample_weight=weight).components_
    found = found[align(found, topics)]
    top, other = (np.argsort(-part, axis=1)[:, :10] for part in (topics, found))
    return np.array([np.isin(a, b).mean() for a, b in zip(top, other, strict=True)])


if __name__ == "__main__":
    main()
