"""Attributes computed from a fitted learner: weights by layer, loss curve, importances, HTML.

Weights are those of the network, whose inputs and outputs are in the units of training; with
``standardize=True`` these are standard deviations from the mean.
"""

from __future__ import annotations

from html import escape
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator
from sklearn.utils import estimator_html_repr
from sklearn.utils.validation import check_is_fitted

from ..evaluation.pruning import signal_to_noise_of
from ..model.objectives import FreeEnergy
from ..numeric.elementary import softplus
from ..numeric.layout import Array
from ..parts.posteriors import MeanField
from ..sampling.draws import DrawnWeights, Draws
from ..training import Epoch, Training
from .columns import Column
from .fit_report import FitReport
from .novelty import TrainingRegion
from .state import Stateful

__all__ = ["Fitted"]

CELL_STYLE = (
    "text-align: left; vertical-align: top; padding: 0 1em 0 0; max-width: 60em"
)


class Fitted(Stateful, BaseEstimator):
    """The attributes of a fitted learner that are computed from what it stores."""

    # scikit-learn's HTML shows docstrings of parameters only beside a link, so a link to "#" is set
    _doc_link_module = "bbb_numpy"
    _doc_link_template = "#"

    if TYPE_CHECKING:
        training_: Training
        draws_: Draws
        estimator_: Any  # `Problem.source`, which computes the posterior
        n_features_in_: int
        x_mean_: Array
        x_scale_: Array
        x_axes_: Array  # (d_in, d_in) principal axes, if inputs were rotated (D60)
        y_mean_: Array
        y_scale_: Array
        exposure_scale_: float  # only if `fit` was given an exposure
        n_outputs_: int
        y_ndim_: int
        rng_: np.random.Generator
        predict_seed_: int
        classes_: Array  # (C,) labels, of a classifier only
        fit_report_: FitReport
        training_region_: TrainingRegion
        # columns of the table, only if not all of its cells were numbers
        columns_: tuple[Column, ...]

    @property
    def theta_(self) -> Array:
        """All learned numbers as one vector; after sampling, draws (T, D) of all D numbers."""
        check_is_fitted(self)
        if hasattr(self, "draws_"):
            return self.draws_.flat
        return self.training_.theta

    @property
    def history_(self) -> list[Epoch]:
        """Records of all epochs trained, one `Epoch` for each; not after sampling."""
        check_is_fitted(self)
        if hasattr(self, "draws_"):
            raise AttributeError(
                "a sampled posterior has no epochs: use draws_.stats for the statistics of its "
                "steps, or draws_.summary() for a summary in one line"
            )
        return self.training_.history

    @property
    def n_iter_(self) -> int:
        """Number of epochs trained; after sampling, number of draws of each chain."""
        if hasattr(self, "draws_"):
            return len(self.draws_.positions)
        return len(self.history_)

    @property
    def loss_curve_(self) -> list[float]:
        """Objective of each epoch as a list, in nats; by default the free energy of all rows."""
        return [epoch.objective for epoch in self.history_]

    @property
    def loss_(self) -> float:
        """Objective of the last epoch, in nats."""
        return self.history_[-1].objective

    def _layer_means(self) -> list[Array]:
        """Return posterior means [weights, biases, weights, ...] of all layers, first to last."""
        theta = self.theta_
        layout = self.estimator_.model.layout
        if isinstance(self.estimator_, DrawnWeights):
            flat = theta[:, : layout.size].mean(axis=0)
        else:
            flat = self.estimator_.layout.views(theta)["mu"]
        means = list(layout.views(np.array(flat, np.float64)).values())
        if hasattr(self, "x_axes_"):
            means[0] = self.x_axes_ @ means[0]  # weights of the original inputs (D60)
        return means

    @property
    def coefs_(self) -> list[Array]:
        """Posterior means of each layer's weights, (d_in, d_out), for standardised X and y."""
        return self._layer_means()[0::2]

    @property
    def intercepts_(self) -> list[Array]:
        """Posterior means of each layer's biases, (d_out,), for standardised X and y."""
        return self._layer_means()[1::2]

    @property
    def feature_importances_(self) -> Array:
        """Importance (d_in,) of each input: its share of the first layer's sum of (mu / sigma)^2.

        mu and sigma are the posterior mean and standard deviation of a weight. Weights whose
        posterior equals the prior add almost nothing. The share measures how certain it is that the
        network uses an input, not how much y changes with it.

        Raises
        ------
        AttributeError
            If the posterior is not mean-field, so that weights cannot be judged one by one.
        """
        theta, estimator = self.theta_, self.estimator_
        if isinstance(estimator, DrawnWeights) or not isinstance(
            estimator.posterior, MeanField
        ):
            raise AttributeError(
                "feature_importances_ needs independent weights with standard deviations, "
                "inference='mean-field'; draws visit permutations of the hidden units, so that the "
                "mean of a weight says nothing. Use sklearn.inspection.permutation_importance"
            )
        try:
            ratio = signal_to_noise_of(estimator, theta)
        except ValueError as error:
            # hasattr, and tools that read all attributes, expect a property to raise AttributeError
            raise AttributeError(f"feature_importances_: {error}") from None
        layout = estimator.model.layout
        # ratios are divided by the largest, so that their squares do not overflow
        ratio = ratio / (ratio.max() or 1.0)
        # (d_in,) sums of the squared ratios of all weights of an input
        power = np.square(layout.views(ratio)["W0"]).sum(axis=1)
        # A weight of an original input is a sum of independent weights of rotated inputs, whose
        # variances add up
        if hasattr(self, "x_axes_"):  # if inputs were rotated (D60)
            rho = layout.views(estimator.layout.views(theta)["rho"])["W0"]
            sigma = softplus(np.asarray(rho, np.float64))
            variance = np.square(self.x_axes_) @ np.square(sigma)
            power = (np.square(self.coefs_[0]) / variance).sum(axis=1)
        if not power.any():
            raise AttributeError(
                "feature_importances_ is undefined: every mean weight of the first layer is 0"
            )
        return power / power.sum()

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Return the names (d_in,) of the network's inputs, those that encode columns included.

        Parameters
        ----------
        input_features : ignored
            Present because scikit-learn's transformers have it.
        """
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", None)
        if hasattr(self, "columns_"):
            names = [name for column in self.columns_ for name in column.features]
        if names is None:
            names = [f"x{index}" for index in range(self.n_features_in_)]
        return np.array(names, dtype=object)

    def _repr_html_inner(self) -> str:
        """Return scikit-learn's diagram as HTML and, if fitted, a table of the fit's results."""
        diagram: str = estimator_html_repr(self)
        if not hasattr(self, "estimator_"):
            return diagram
        style = f'style="{CELL_STYLE}"'
        rows = "".join(
            f"<tr><th {style}>{escape(name)}</th><td {style}>{escape(text)}</td></tr>"
            for name, text in self._facts().items()
        )
        return f'{diagram}<div class="bbb-numpy-fitted"><table>{rows}</table></div>'

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        """Return representations of the learner for a notebook, text and HTML, by MIME type."""
        bundle = {"text/plain": repr(self)}
        if get_config()["display"] == "diagram":
            bundle["text/html"] = self._repr_html_inner()
        return bundle

    def _facts(self) -> dict[str, str]:
        """Return the rows of the HTML table: text on the model and the fit, by label."""
        estimator = self.estimator_
        model = estimator.model
        sizes = " \N{RIGHTWARDS ARROW} ".join(map(str, model.network.sizes))
        n_others = sum(prod(shape) for _, shape in model.learned())
        facts = {
            "network": f"{sizes}, {model.network.activation}: {model.layout.size:,} weights",
            "prior": repr(model.prior),
            "likelihood": repr(model.likelihood),
        }
        if isinstance(estimator, DrawnWeights):
            facts["posterior"] = self.draws_.summary()
            facts["learned"] = f"{estimator.layout.size:,} numbers in every draw"
        else:
            facts["posterior"] = repr(estimator.posterior)
            facts["learned"] = (
                f"{len(self.theta_):,} numbers, {n_others:,} of them not of weights"
            )
            cost = "objective"
            if estimator.objective == FreeEnergy():
                cost = "free energy"
            facts["objective"] = repr(estimator.objective)
            facts["trained"] = f"{self.n_iter_:,} epochs, {cost} {self.loss_:.6g} nats"
        if (noise_scale := getattr(self, "noise_scale_", None)) is not None:
            scales = ", ".join(f"{scale:.4g}" for scale in noise_scale)
            unit = self.fitted_.units.noise_unit.format("y")
            facts["noise"] = f"{scales} ({unit})"
        if (report := getattr(self, "fit_report_", None)) is not None:
            facts["log density"] = (
                f"{report.log_density:.4g} nats per training row; without X "
                f"{report.baseline_density:.4g}"
            )
            facts["warning" if report.message else "warnings"] = (
                report.message or "none"
            )
        return facts
