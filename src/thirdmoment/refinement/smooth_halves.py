"""What either half of the rows makes of a mixture of smooth densities."""

from __future__ import annotations

import numpy as np

from thirdmoment._array import posterior_of
from thirdmoment.likelihood.mixture import Parameters
from thirdmoment.refinement.halves import (
    LEAST_ROWS,
    STEPS,
    Examined,
    Explained,
    Pieces,
    examine,
    shares_of_first,
)
from thirdmoment.refinement.race import Refined
from thirdmoment.refinement.smooth import FoldedData, SmoothTables, fold_sums, smooth_step


class SmoothPart:
    """Half of the rows; the folds stay, so that densities are held out within the half as well."""

    def __init__(
        self, family: SmoothTables, data: FoldedData, share: np.ndarray, n_threads: int
    ) -> None:
        chunks = [c._replace(weights=share[c.place] * c.weights) for c in data.chunks]
        self.family, self.data, self.n_threads = family, FoldedData(chunks), n_threads
        self.used = [chunk.weights > 0 for chunk in chunks]
        counts = [chunk.weights[used] for chunk, used in zip(chunks, self.used, strict=True)]
        self.pieces = Pieces(np.concatenate(counts), np.ones(sum(map(len, counts))))

    def run(self, parameters: Parameters) -> Parameters:
        for _ in range(STEPS):  # not the best of them, for the start has seen the other half
            parameters, _ = smooth_step(
                self.family, self.data, parameters, n_threads=self.n_threads
            )
        return parameters

    def explain(self, parameters: Parameters) -> Explained:
        family = self.family if len(parameters[0]) > 1 else self._alone()
        log_weights = np.log(np.maximum(parameters[0], 1e-300))[:, None]
        shares, scores = [], []
        for chunk, used in zip(self.data.chunks, self.used, strict=True):
            joint = family.log_density(parameters, chunk) + log_weights
            posterior, value = posterior_of(joint)
            shares.append((posterior * chunk.weights).T[used])
            scores.append(value[used])
        return Explained(np.concatenate(shares), np.concatenate(scores))

    def simpler(self, parameters: Parameters) -> dict[str, Parameters]:
        """One component; where sharper densities predict better within this half, with those."""
        one, tries = self._alone(), []
        flat = np.ones(1), np.ones((1, one.folds, one.size))
        sums = fold_sums(one, self.data, flat, n_threads=self.n_threads)[0]  # of any densities
        for share in (1.0, 0.5, 0.25):
            one = self._alone(share)
            law = one.maximise(sums)
            value = fold_sums(one, self.data, law, n_threads=self.n_threads)[1]
            tries.append((value, law))
        return {"by a single component": max(tries, key=lambda pair: pair[0])[1]}

    def _alone(self, share: float = 1.0) -> SmoothTables:
        return self.family.tuned(share * self.family.multipliers.mean(axis=1, keepdims=True))


def examine_smooth(
    family: SmoothTables,
    data: FoldedData,
    refined: Refined,
    rng: np.random.Generator,
    *,
    n_threads: int,
) -> Examined | None:
    """What either half of the rows makes of the answer."""
    k, total = len(refined.parameters[0]), data.total
    if k == 1 or total < LEAST_ROWS * k:
        return None
    weights = np.empty(sum(len(chunk.weights) for chunk in data.chunks))
    for chunk in data.chunks:
        weights[chunk.place] = chunk.weights
    first = shares_of_first(weights, rng)
    parts = [SmoothPart(family, data, share, n_threads) for share in (first, 1 - first)]
    rival = refined.contest.rival
    return examine(parts, refined.parameters, unit="row", rival=rival)
