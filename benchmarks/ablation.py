"""What each choice of the default fit is worth: one constant changed at a time.

    python benchmarks/ablation.py [--data FOLDER] [--corpora KOS AP ...] [--splits 0 1 2]

On text, the change of held-out perplexity (ratio) and NPMI (difference) to the default, on the
splits the constants were chosen on. On corpora drawn from the model, the ratio of topic errors to
the default's, in median over k in {5, 20, 50} and two seeds. The decision pages quote such runs.
"""

from __future__ import annotations

import contextlib
import itertools
import warnings
from unittest import mock

import numpy as np
from common import arguments, load_corpus, split, timed, write_table
from sklearn.exceptions import ConvergenceWarning

import thirdmoment as tm
from thirdmoment.datasets import make_lda_corpus
from thirdmoment.metrics import npmi_coherence, perplexity, recovery_error
from thirdmoment.refinement import topics as refine
from thirdmoment.starts import word_components as solve
from thirdmoment.starts import words as start

K = 20
TEXT = {
    "default": {},
    "prior count 0.1": {"refine.UNTRUSTED": refine.UNTRUSTED._replace(eta=0.1)},
    "prior count 0.5": {"refine.UNTRUSTED": refine.UNTRUSTED._replace(eta=0.5)},
    "prior count 2": {"refine.UNTRUSTED": refine.UNTRUSTED._replace(eta=2.0)},
    "words not scaled": {"start.WORD_POWER": 0.0},
    "words scaled by power 1/2": {"start.WORD_POWER": 0.5},
    "half length 50": {"start.HALF_LENGTH": 50.0},
    "rank k only": {"start.DROP": 2.0},
    "best rank, no margin": {"refine.AS_GOOD": 0.0},
    "start at alpha0 = 1": {"start.UNTRUSTED_ALPHA0": 1.0},
    "18 sweeps at most": {"max_refine_iter": 18},
    "sweeps to a quarter of the gain": {"tol": 1e-4},
}
MODEL = {
    "default": {},
    "prior count 1": {"refine.TRUSTED": refine.TRUSTED._replace(eta=1.0)},
    "all of the Dirichlet parameters": {"refine.TRUSTED": refine.TRUSTED._replace(share=1.0)},
    "a tenth of them": {"refine.TRUSTED": refine.TRUSTED._replace(share=0.1)},
    "10 sweeps at least": {"refine.TRUSTED": refine.TRUSTED._replace(least=10)},
    "50 sweeps at least": {"refine.TRUSTED": refine.TRUSTED._replace(least=50)},
    "sweeps alone": {"refine.CLEARLY": -np.inf},
    "start alone": {"max_refine_iter": 0},
    "trusted up to 1.0 times the noise": {"solve.EXPLAINED": 1.0},
    "trusted up to 1.5 times the noise": {"solve.EXPLAINED": 1.5},
    "never trusted": {"solve.EXPLAINED": 0.0},
}
CELLS = [(2000, 0.1), (2000, 1.0), (5000, 3.0), (5000, 8.0), (20_000, 1.0), (20_000, 8.0)]


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--corpora", nargs="+", default=["docstrings", "AP", "KOS", "we8there"])
    parser.add_argument("--splits", nargs="+", type=int, default=[0, 1, 2])
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    rows = {name: [name] for name in TEXT}
    for corpus in options.corpora:
        X = load_corpus(corpus, options.data)
        results = {
            name: np.mean([on_text(X, seed, change) for seed in options.splits], axis=0)
            for name, change in TEXT.items()
        }
        base = results["default"]
        for name, (value, coherence, seconds) in results.items():
            rows[name].append(
                f"{value / base[0]:.3f}, {coherence - base[1]:+.3f} ({seconds:.1f} s)"
            )
            print(corpus, rows[name][0], rows[name][-1], flush=True)
    note = f"Perplexity ratio and NPMI difference to the default, k = {K}, splits {options.splits}."
    write_table("ablation", ["change", *options.corpora], rows.values(), note)
    on_the_model()


def on_the_model() -> None:
    """Topic errors on corpora drawn from the model."""
    rows = {name: [name] for name in MODEL}
    for n, alpha0 in CELLS:
        errors = {name: [] for name in MODEL}
        for k, seed in itertools.product((5, 20, 50), (0, 1)):
            data = make_lda_corpus(n, 1000, k, concentration=alpha0, random_state=seed)
            for name, change in MODEL.items():
                model, _ = fit(data.X, k, change)
                errors[name].append(recovery_error(model.components_, data.topics))
        for name, found in errors.items():
            ratio = np.median(np.array(found) / np.array(errors["default"]))
            rows[name].append(f"{ratio:.2f}")
        print(n, alpha0, {name: row[-1] for name, row in rows.items()}, flush=True)
    header = ["change", *(f"n = {n:,}, alpha0 = {alpha0:g}" for n, alpha0 in CELLS)]
    note = "Topic error over the default's, d = 1,000, median over k in {5, 20, 50}, seeds 0 and 1."
    write_table("ablation_model", header, rows.values(), note)


def fit(X, k, change):
    modules = {"refine": refine, "solve": solve, "start": start}
    with contextlib.ExitStack() as stack:
        settings = {}
        for name, value in change.items():
            if "." not in name:
                settings[name] = value
                continue
            module, constant = name.split(".")
            stack.enter_context(mock.patch.object(modules[module], constant, value))
        return timed(lambda: tm.LatentDirichletAllocation(k, **settings).fit(X))


def on_text(X, seed, change):
    train, test = split(X, seed)
    model, seconds = fit(train, K, change)
    return (
        perplexity(model.components_, test),
        npmi_coherence(model.components_, X).mean(),
        seconds,
    )


if __name__ == "__main__":
    main()
