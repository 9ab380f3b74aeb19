"""What each choice of the default fit is worth: one constant changed at a time.

    python benchmarks/ablation.py [--data FOLDER] [--corpora KOS AP ...] [--splits 0 1 2]

Prints the change of held-out perplexity (ratio) and NPMI (difference) against the default, on the
splits the constants were chosen on. The decision pages quote such runs.
"""

from __future__ import annotations

import contextlib
from unittest import mock

import numpy as np
from common import arguments, load_corpus, split, timed, write_table

import thirdmoment as tm
from thirdmoment.metrics import npmi_coherence, perplexity
from thirdmoment.models.topics import refine, start

K = 20
VARIANTS = {
    "default": {},
    "prior count 0.1": {"refine.ETA": 0.1},
    "prior count 0.5": {"refine.ETA": 0.5},
    "prior count 2": {"refine.ETA": 2.0},
    "words not scaled": {"start.WORD_POWER": 0.0},
    "words scaled by power 1/2": {"start.WORD_POWER": 0.5},
    "half length 50": {"start.HALF_LENGTH": 50.0},
    "rank k only": {"start.DROP": 2.0},
    "start at alpha0 = 1": {"start.UNTRUSTED_ALPHA0": 1.0},
    "40 sweeps": {"max_refine_iter": 40},
}


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--corpora", nargs="+", default=["docstrings", "AP", "KOS", "we8there"])
    parser.add_argument("--splits", nargs="+", type=int, default=[0, 1, 2])
    options = parser.parse_args()
    rows = {name: [name] for name in VARIANTS}
    for corpus in options.corpora:
        X = load_corpus(corpus, options.data)
        results = {
            name: np.mean([fit(X, seed, change) for seed in options.splits], axis=0)
            for name, change in VARIANTS.items()
        }
        base = results["default"]
        for name, (value, coherence, seconds) in results.items():
            rows[name].append(
                f"{value / base[0]:.3f}, {coherence - base[1]:+.3f} ({seconds:.1f} s)"
            )
            print(corpus, rows[name][0], rows[name][-1], flush=True)
    note = f"Perplexity ratio and NPMI difference to the default, k = {K}, splits {options.splits}."
    write_table("ablation", ["change", *options.corpora], rows.values(), note)


def fit(X, seed, change):
    train, test = split(X, seed)
    modules = {"refine": refine, "start": start}
    with contextlib.ExitStack() as stack:
        settings = {}
        for name, value in change.items():
            if "." not in name:
                settings[name] = value
                continue
            module, constant = name.split(".")
            stack.enter_context(mock.patch.object(modules[module], constant, value))
        model, seconds = timed(lambda: tm.LatentDirichletAllocation(K, **settings).fit(train))
    return (
        perplexity(model.components_, test),
        npmi_coherence(model.components_, X).mean(),
        seconds,
    )


if __name__ == "__main__":
    main()
