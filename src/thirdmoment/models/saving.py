"""Models to files and back; `io.saved` has the format."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from thirdmoment._version import __version__
from thirdmoment.exceptions import InvalidInput
from thirdmoment.io import saved

# Prepared corpora stay on disk; models are small and may learn on.
MAPPED = ("TopicSearch",)

# Fitted arrays, the axis of the components and that of the columns (None: no such axis).
SHAPES = {
    "weights_": (0, None),
    "components_": (0, 1),
    "concentration_": (0, None),
    "startprob_": (0, None),
    "transmat_": (0, None),
    "stationary_": (0, None),
    "coef_": (0, 1),
    "intercept_": (0, None),
    "probabilities_": (None, None),
}


class SavedModel:
    """``save`` and ``load`` of every model."""

    def save(self, path: str | Path) -> None:
        """Write the fitted model to one file: plain arrays and a header, nothing that can run code.

        `thirdmoment.load`, or ``load`` of the class, reads it back, with equal answers to the last
        bit. The file is replaced as a whole or not at all.
        """
        check_is_fitted(self)
        saved.save(self, path, __version__)

    @classmethod
    def load(cls, path: str | Path) -> Any:
        """A model written by ``save``; another class, release or a damaged file is an error."""
        found = load(path)
        if not isinstance(found, cls):
            raise InvalidInput(f"{path} holds a {type(found).__name__}, not a {cls.__name__}.")
        return found

    def _check_loaded(self) -> None:
        """Raise where fitted arrays do not belong together, as in a file that someone made up."""
        k, d = None, getattr(self, "n_features_in_", None)
        for name, (components, columns) in SHAPES.items():
            array = getattr(self, name, None)
            if not isinstance(array, np.ndarray):
                continue
            if array.dtype.kind != "f" or array.ndim < 1:
                raise InvalidInput(f"its {name} is no array of numbers")
            if components is not None:
                k = array.shape[0] if k is None else k
                if array.shape[0] != k:
                    raise InvalidInput(f"its {name} has {array.shape[0]} components, not {k}")
            if columns is not None and array.shape[columns:] != (d,):
                raise InvalidInput(f"its {name} has shape {array.shape}, with {d} columns")


def load(path: str | Path) -> Any:
    """A model or search that was written by its ``save``.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    estimator
        Of the class that was saved. A prepared `TopicSearch` stays on disk and is read as queries
        need it.

    Examples
    --------
    >>> import tempfile, thirdmoment as tm
    >>> from pathlib import Path
    >>> model = tm.LatentDirichletAllocation(3).fit(tm.datasets.make_lda_corpus(300, 50, 3).X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(Path(folder) / "topics.tm")
    ...     tm.load(Path(folder) / "topics.tm")
    LatentDirichletAllocation(n_components=3)
    """
    found = saved.load(path, mapped=MAPPED.__contains__, version=__version__)
    if not isinstance(found, SavedModel):
        raise InvalidInput(f"{path} holds a {type(found).__name__}, which is no model.")
    try:
        check_is_fitted(found)
        found._check_loaded()
    except (InvalidInput, ValueError, TypeError, AttributeError, IndexError) as error:
        raise InvalidInput(f"{path} is no saved model, or it is damaged: {error}.") from error
    return found
