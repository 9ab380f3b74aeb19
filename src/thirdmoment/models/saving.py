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
MAPPED = ("TopicSearch", "Explorer")

# Fitted arrays and their axes: components, columns, or any size.
SHAPES: dict[str, tuple[str, ...]] = {
    "weights_": ("k",),
    "startprob_": ("k",),
    "transmat_": ("k", "k"),
    "stationary_": ("k",),
    "components_": ("k", "d"),
    "word_share_": ("k",),
    "concentration_": ("k",),
    "coef_": ("k", "d"),
    "intercept_": ("k",),
    "means_": ("k", "d"),
}
PROBABILITIES = ("weights_", "startprob_", "transmat_", "stationary_")


class SavedModel:
    """``save`` and ``load`` of every model."""

    def save(self, path: str | Path) -> None:
        """Write the fitted model to one file: plain arrays and a header, nothing that can run code.

        `thirdmoment.load`, or ``load`` of the class, reads it back, with equal answers to the last
        bit. The file is replaced as a whole or not at all.
        """
        if hasattr(self, "fit"):
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
        sizes = {"d": getattr(self, "n_features_in_", None)}
        for name, axes in SHAPES.items():
            array = getattr(self, name, None)
            if (
                array is None
                or (name == "means_" and isinstance(array, list))
                or type(array) is float
            ):
                continue
            if not isinstance(array, np.ndarray) or array.dtype.kind != "f":
                raise InvalidInput(f"its {name} is no array of numbers")
            if array.ndim != len(axes):
                raise InvalidInput(f"its {name} has {array.ndim} axes")
            for axis, size in zip(axes, array.shape, strict=True):
                if sizes.setdefault(axis, size) != size:
                    raise InvalidInput(f"its {name} has shape {array.shape}, not {sizes}")
            if name in PROBABILITIES and not (np.isfinite(array).all() and array.min() >= 0):
                raise InvalidInput(f"its {name} has entries that are no probabilities")
        covariances = getattr(self, "covariances_", None)
        if isinstance(covariances, np.ndarray) and len(covariances) not in (sizes["k"], sizes["d"]):
            raise InvalidInput(f"its covariances_ has shape {covariances.shape}")


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
        if hasattr(found, "fit"):
            check_is_fitted(found)
        found._check_loaded()
    except (
        InvalidInput, ValueError, TypeError, AttributeError, IndexError, KeyError, MemoryError,
    ) as error:  # fmt: skip
        raise InvalidInput(f"{path} is no saved model, or it is damaged: {error}.") from error
    return found
