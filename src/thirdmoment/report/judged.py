"""What the two halves of the data said about a fit, as findings and fields of its report."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from thirdmoment.refinement.halves import Examined
from thirdmoment.report.findings import (
    About,
    Finding,
    few_rows,
    gain_findings,
    stable_findings,
)


class Judged(NamedTuple):
    """A fit that was examined, or could not be."""

    examined: Examined | None  # None where nothing was checked
    labels: tuple[str, ...] = ()  # each component in a few words, in the fitted order
    about: About = About()
    instead: str = "Use fewer components."  # where data that was set aside asks for less
    weights: np.ndarray | None = None  # (k,) of the components, in the fitted order

    @property
    def checked(self) -> bool:
        return self.examined is not None and not np.isnan(self.examined.trust).all()

    def findings(self, k: int, *, refining: bool = True) -> list[Finding]:
        """Where components are not stable, no better than something simpler, or not to check."""
        gains = () if self.examined is None else self.examined.gains
        found = gain_findings(gains, self.instead, self.about)
        if self.examined is None or not self.checked:
            return found + (few_rows(self.about) if refining and k > 1 else [])
        stable = stable_findings(self.examined.trust, self.about, self.weights)
        if found:  # says all there is to do
            stable = [one._replace(action="", level="note") for one in stable]
        return [*found, *stable]

    def fields(self, k: int) -> dict[str, Any]:
        """Fields of the report."""
        nothing = Examined(np.full(k, 1.0 if k == 1 else np.nan), ())
        examined = self.examined or nothing
        return {
            "trust": examined.trust,
            "gains": examined.gains,
            "labels": self.labels,
            "about": self.about,
        }
