"""What a fitted learner shows of itself: weights by layer, loss curve, importances, HTML.

Weights are those of the network, which sees inputs and targets in training's units; with
``standardize=True`` these are standard deviations from the mean.
"""

from __future__ import annotations

from html import escape
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..evaluation.pruning import signal_to_noise_of
from ..model.objectives import FreeEnergy
from ..parts.posteriors import MeanField
from ..sampling.draws import DrawnWeights

__all__ = ["fitted_html", "importances", "layer_means"]

Array = NDArray[Any]


def layer_means(estimator: Any, theta: Array) -> tuple[list[Array], list[Array]]:
    """Return the posterior means of all weights: matrices (d_in, d_out) and biases (d_out,)."""
    layout = estimator.model.layout
    if isinstance(estimator, DrawnWeights):
        flat = theta[:, : layout.size].mean(axis=0)
    else:
        flat = estimator.layout.views(theta)["mu"]
    blocks = list(layout.views(np.array(flat, np.float64)).values())
    return blocks[0::2], blocks[1::2]


def importances(estimator: Any, theta: Array) -> Array:
    """Return the share (d_in,) of each input in the signal-to-noise of the first layer.

    The squares of ``|mu| / sigma`` are summed over the weights that leave an input: where the
    posterior is the prior, hidden units do not listen, and such weights add nothing. This says how
    surely the network uses an input, not how much the prediction changes with it.

    Raises
    ------
    AttributeError
        For a posterior whose weights cannot be judged one by one.
    """
    if isinstance(estimator, DrawnWeights):
        raise AttributeError(
            "feature_importances_ is not defined for draws: they visit permutations of the hidden "
            "units, so that the mean of a weight says nothing about it. Use "
            "sklearn.inspection.permutation_importance"
        )
    if not isinstance(estimator.posterior, MeanField):
        raise AttributeError(
            "feature_importances_ needs independent weights with standard deviations, inference="
            f"'mean-field'; got {type(estimator.posterior).__name__}. Use "
            "sklearn.inspection.permutation_importance"
        )
    try:
        ratio = signal_to_noise_of(estimator, theta)
    except ValueError as error:  # a property must not break dir() and the tools that look there
        raise AttributeError(f"feature_importances_: {error}") from None
    ratio = ratio / (ratio.max() or 1.0)  # whose square cannot overflow
    power = np.square(estimator.model.layout.views(ratio)["W0"]).sum(axis=1)  # (d_in,)
    if not power.any():
        raise AttributeError("feature_importances_: the first layer has no signal at all")
    return power / power.sum()


def fitted_html(learner: Any) -> str:
    """Return a table of what a fitted learner is made of and how its fit went, as HTML."""
    rows = "".join(
        f'<tr><th style="{CELL}">{escape(name)}</th><td style="{CELL}">{escape(text)}</td></tr>'
        for name, text in _facts(learner).items()
    )
    return f'<div class="bbb-numpy-fitted"><table>{rows}</table></div>'


CELL = "text-align: left; vertical-align: top; padding: 0 1em 0 0; max-width: 60em"


def _facts(learner: Any) -> dict[str, str]:
    estimator, model = learner.estimator_, learner.estimator_.model
    sizes = " \N{RIGHTWARDS ARROW} ".join(map(str, model.network.sizes))
    learned = sum(prod(shape) for _, shape in model.learned())
    facts = {
        "network": f"{sizes}, {model.network.activation}: {model.layout.size:,} weights",
        "prior": repr(model.prior),
        "likelihood": repr(model.likelihood),
    }
    if isinstance(estimator, DrawnWeights):
        facts["posterior"] = learner.draws_.summary()
        facts["learned"] = f"{estimator.layout.size:,} numbers in every draw"
    else:
        facts["posterior"] = repr(estimator.posterior)
        facts["learned"] = f"{len(learner.theta_):,} numbers, {learned:,} of them not of weights"
        cost = "free energy" if estimator.objective == FreeEnergy() else "objective"
        facts["objective"] = repr(estimator.objective)
        facts["trained"] = f"{learner.n_iter_:,} epochs, {cost} {learner.loss_:.6g} nats"
    if (noise := getattr(learner, "noise_scale_", None)) is not None:
        facts["noise"] = ", ".join(f"{scale:.4g}" for scale in noise) + " (units of y)"
    if (report := getattr(learner, "fit_report_", None)) is not None:
        facts["log density"] = (
            f"{report.log_density:.4g} nats per training row; without X {report.base:.4g}"
        )
        facts["warning" if report.message else "warnings"] = report.message or "none"
    return facts
