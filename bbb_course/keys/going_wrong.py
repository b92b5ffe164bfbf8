"""Chapter 12: what can go wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..cards import Cards
from ..checks import Check, gradients
from ..exercise import formula, real

Array = NDArray[Any]


def _softplus_cases(*cases: Array) -> list[tuple[Array, Array]]:
    """Return each rho (P,) with its softplus, to the last digits."""
    return [(rho, np.maximum(rho, 0) + np.log1p(np.exp(-np.abs(rho)))) for rho in cases]


@formula(
    rho=real("P"),
    returns="sigma",
    tags="D7 K3",
    wrong={
        "np.log(1 + np.exp(rho))": {
            "np.exp(rho)": "this is exp(rho), not softplus.",
            "rho * (rho > 0)": "this is ReLU, softplus's limit: sigma would be 0 for negative rho.",
            "abs(rho) + np.log(1 + np.exp(-abs(rho)))": "|rho| stands where max(rho, 0) belongs.",
            "np.log(1 + np.exp(-abs(rho)))": "max(rho, 0) is missing.",
        },
    },
    extremes=_softplus_cases(
        np.array([800.0]),
        np.array([-40.0]),
        np.array([-700.0]),
        # limits to other formulas
        *(np.array([rho]) for rho in np.arange(-39.75, 40, 0.5)),
        *(
            np.array([rho])
            for rho in (-600.0, -300.0, -100.0, 100.0, 300.0, 600.0, 709.0, 710.0)
        ),
        np.array([800.0, -700.0, 1.0]),  # each by itself
    ),
)
def stable_softplus(rho: Any) -> Any:
    """Return the standard deviation of a weight, for every rho that a float can be."""
    return np.log(1 + np.exp(rho))


@formula(
    log_weights=real("S"),
    returns="share",
    tags="G7",
    sizes={"S": 4},
    wrong={
        "np.exp(log_weights) / np.sum(np.exp(log_weights))": {
            "np.exp(log_weights + np.min(log_weights))": (
                "as printed: the minimum is added, and the sum is not divided by."
            ),
            "np.exp(log_weights - np.max(log_weights))": "they are not divided by their sum.",
            "log_weights / np.sum(log_weights)": (
                "the logarithms are divided by their sum; exponentiate first."
            ),
        },
    },
    extremes=[
        (np.array([-1000.0, -1000.0]), np.array([0.5, 0.5])),
        (np.array([800.0, 800.0]), np.array([0.5, 0.5])),
        (np.array([800.0, 0.0]), np.array([1.0, np.exp(-800.0)])),
        # a shift by their mean, median, first or last leaves one that overflows
        (np.array([800.0, -1000.0]), np.array([1.0, 0.0])),
        (np.array([-1000.0, 800.0]), np.array([0.0, 1.0])),
        (np.array([-1000.0, 800.0, -1000.0]), np.array([0.0, 1.0, 0.0])),
        # small, and not 0
        (np.array([-600.0, 0.0]), np.array([np.exp(-600.0), 1.0])),
        (np.array([-40.0, 0.0]), np.array([np.exp(-40.0), 1.0])),
    ],
)
def normalised_weights(log_weights: Any) -> Any:
    """Return importance weights that add up to 1."""
    return np.exp(log_weights) / np.sum(np.exp(log_weights))


check_a_gradient = Check(
    name="check_a_gradient", tags=("D9", "D44"), subjects=gradients
)
which_detector_sees_it = Cards(
    name="which_detector_sees_it", tags=("K18", "K30", "D6", "D21")
)
