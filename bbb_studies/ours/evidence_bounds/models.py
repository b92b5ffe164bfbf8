"""A linear regression whose evidence is known, and four q from the prior to its posterior."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bbb_numpy.gradients.catalogue import Estimator
from bbb_numpy.gradients.reparameterised import Reparameterised
from bbb_numpy.parts.full_rank import FullRank
from bbb_numpy.parts.posteriors import MeanField
from bbb_studies import linear_gaussian as exact
from bbb_studies.linear_gaussian import Exact, Gaussian, Regression

__all__ = ["choices", "place", "problem"]

Array = NDArray[Any]


def problem(seed: int = 0) -> Regression:
    """Draw 20 rows with two correlated inputs, small enough for the prior to be a q."""
    return exact.draw(np.random.default_rng(seed), rows=20, noise=0.5, prior=1.0)


def choices(truth: Exact, prior_scale: float) -> dict[str, Gaussian]:
    """Return the four q, from the prior to the posterior."""
    size = len(truth.precision)
    return {
        "the prior": Gaussian(np.zeros(size), prior_scale**2 * np.eye(size)),
        "reverse-KL mean field": exact.reverse_optimum(truth),
        "inclusive-KL mean field": exact.inclusive_optimum(truth),
        "full rank": truth.posterior,
    }


def place(data: Regression, q: Gaussian) -> tuple[Estimator, Array]:
    """Return an estimator whose family has `q`, and the theta that is `q`."""
    if np.array_equal(q.covariance, np.diag(np.diag(q.covariance))):
        family = MeanField()
        return Reparameterised(data.model, family), family.pack(q.mean, q.deviation)
    full = FullRank()
    return Reparameterised(data.model, full), full.pack(q.mean, q.covariance)
