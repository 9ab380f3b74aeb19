"""A fitted model as that of scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import digamma


def as_sklearn(model: Any) -> Any:
    """The topics as a fitted `sklearn.decomposition.LatentDirichletAllocation`."""
    from sklearn.decomposition import LatentDirichletAllocation as Peer

    alpha0 = float(np.sum(model.concentration_))
    peer = Peer(model.n_components, doc_topic_prior=alpha0 / model.n_components)
    pseudo = np.asarray(model.components_, dtype=np.float64) * 1e5 + 1e-2
    peer.components_ = pseudo
    expected = digamma(pseudo) - digamma(pseudo.sum(axis=1, keepdims=True))
    peer.exp_dirichlet_component_ = np.exp(expected)
    peer.n_features_in_ = model.n_features_in_
    peer._n_components = model.n_components
    peer.doc_topic_prior_ = alpha0 / model.n_components
    peer.topic_word_prior_ = 1e-2
    peer.n_batch_iter_, peer.n_iter_ = 1, model.n_iter_
    peer.random_state_ = np.random.RandomState(0)
    if hasattr(model, "feature_names_in_"):
        peer.feature_names_in_ = model.feature_names_in_
    return peer
