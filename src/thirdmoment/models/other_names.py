"""Arguments that users of other libraries try first, and ours for them."""

from __future__ import annotations

import inspect
import re
from typing import Any

from thirdmoment.exceptions import UnknownArgument

STEPS = "max_refine_iter is the largest number of steps; most fits need far fewer"
STARTS = "starts are chosen and judged for you; n_starts sets how many race against the moments"
KNOWN = "what is known goes into the arguments that end in _init, where a model has them"
COUNT = "n_components is the number of components"
FIXED = "it belongs to another algorithm and has no counterpart"
PRIOR = "there is no such prior; prior_count, where a model has it, is a count for every category"

# What to say for each name, where the model has no such argument itself.
SENTENCES = {
    "max_iter": STEPS,
    "n_iter": STEPS,
    "iterations": STEPS,
    "passes": STEPS,
    "n_init": STARTS,
    "init_params": STARTS,
    "warm_start": KNOWN,
    "init": KNOWN,
    "params": "all parameters are learned",
    "n_topics": COUNT,
    "num_topics": COUNT,
    "n_clusters": COUNT,
    "n_states": COUNT,
    "k": COUNT,
    "doc_topic_prior": "concentration is the total over all topics, n_components times as large",
    "alpha": "concentration is the total over all topics, n_components times as large",
    "topic_word_prior": "the smoothing of words is chosen by the fit",
    "eta": "the smoothing of words is chosen by the fit",
    "beta": "the smoothing of words is chosen by the fit",
    "id2word": "give the words to fit: fit(X, feature_names=words)",
    "vocabulary": "give the words to fit: fit(X, feature_names=words)",
    "feature_names": "give the words to fit: fit(X, feature_names=words)",
    "corpus": "give the counts to fit: fit(X)",
    "learning_method": "there is one method, which needs no batches",
    "batch_size": "there is one method, which needs no batches",
    "learning_decay": FIXED,
    "learning_offset": FIXED,
    "max_doc_update_iter": FIXED,
    "mean_change_tol": "tol ends the refinement",
    "perp_tol": "tol ends the refinement",
    "evaluate_every": "held-out documents watch every fit; verbose=1 shows them",
    "total_samples": FIXED,
    "verbose_interval": "verbose=1 shows the progress",
    "algorithm": "decode(X, algorithm='map') or 'viterbi' chooses how states are decoded",
    "implementation": FIXED,
    "min_covar": "reg_covar is the smallest variance",
    "startprob_prior": PRIOR,
    "transmat_prior": PRIOR,
    "emissionprob_prior": PRIOR,
    "means_prior": PRIOR,
    "means_weight": PRIOR,
    "covars_prior": "reg_covar is the smallest variance",
    "covars_weight": "reg_covar is the smallest variance",
    "whiten": "rows are always whitened",
    "whiten_solver": "rows are always whitened",
    "fun": "order=3 or 4 chooses the cumulant",
    "fun_args": FIXED,
    "w_init": FIXED,
    "workers": "n_jobs is the number of threads",
    "seed": "random_state is the seed",
    "random_seed": "random_state is the seed",
}

# Arguments that the sentences name; a model without them gets the list of its own.
ARGUMENTS = {"max_refine_iter", "n_starts", "concentration", "reg_covar", "tol", "order"}


def check_names(model: type, names: dict[str, Any]) -> None:
    """Refuse arguments that a model does not have, in a sentence that names ours."""
    known = inspect.signature(model).parameters
    if any(one.kind is one.VAR_KEYWORD for one in known.values()):  # of a subclass
        return
    for name in names:
        if name in known:
            continue
        sentence = SENTENCES.get(name)
        ours = ARGUMENTS.intersection(re.findall(r"\w+", sentence or ""))
        if sentence is None or not ours <= set(known):
            listed = ", ".join(known)
            raise UnknownArgument(f"{model.__name__} has no argument {name!r}. It has {listed}.")
        text = f"{model.__name__} has no argument {name!r}: {sentence}."
        raise UnknownArgument(text)
