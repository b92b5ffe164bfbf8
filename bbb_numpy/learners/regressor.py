"""A Bayesian MLP for regression, a scikit-learn estimator.

The learner for classes is in `classifier`, what both share in `base`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..evaluation import predictive
from ..evaluation.predictive import Predictive
from ..numeric.arguments import MOST_SAMPLES, MOST_STEPS, flag, whole
from ..numeric.randomness import check_generator
from ..numeric.standardisation import standardised
from .base import Learner, MultiOutputMixin, RegressorMixin, Targets, trains
from .cautions import need_finite
from .plan import Plan
from .rows import check_counts, check_targets

__all__ = ["BayesianMLPRegressor"]

Array = NDArray[Any]


class BayesianMLPRegressor(MultiOutputMixin, RegressorMixin, Learner):
    """Bayesian multilayer perceptron for regression, by variational inference or sampling.

    Every weight has a posterior distribution; predictions average over it and come with
    deviations: epistemic (what more data would remove) and aleatoric (noise).

    The settings are those of `Learner`, which the constructor documents.

    Attributes
    ----------
    theta_ : ndarray
        Everything learned, flat, in the blocks of ``estimator_.layout``; after sampling the
        draws of all chains, (T, D).
    estimator_ : Reparameterised, LocalReparameterisation, ... or DrawnWeights
        Model, posterior, objective and gradient; after sampling, of the model alone.
    training_ : Training
        theta, the optimizer's memory and the history; not after sampling.
    draws_ : Draws
        Only after sampling: draws, statistics of the steps, and in ``draws_.target`` the data,
        standardised. `bbb_numpy.evaluation.arviz_export` judges whether the chains have converged.
    history_ : list of Epoch
        Not after sampling.
    n_iter_ : int
        Epochs trained; after sampling, draws of each chain.
    noise_scale_ : ndarray (K,)
        Noise deviation of each output, in units of y, its mean over the draws if sampled; of
        Student's t its scale, smaller than the deviation. Not where the noise depends on X.
    n_features_in_, n_outputs_, y_ndim_ : int
        Widths of X and y in `fit`, and the number of axes of y.
    feature_names_in_ : ndarray (d_in,) of str
        Only after fitting a data frame with text column names.
    x_mean_, x_scale_, y_mean_, y_scale_ : ndarray
        Shift and scale of inputs (d_in,) and targets (K,): 0 and 1 where nothing is
        standardised.
    rng_ : numpy.random.Generator
        From which `partial_fit` goes on drawing.
    predict_seed_ : int
        Seed of the weight samples of all predictions, so that they can be repeated and a
        row's prediction does not depend on the other rows.

    Notes
    -----
    Arguments are checked by `fit`, not by the constructor. A call that fails leaves an
    earlier fit as it was, with one exception: after `NonFiniteError`, and after Ctrl-C, the
    model holds the state after the last finished epoch (if no epoch was finished, an earlier
    fit is kept). Ctrl-C while sampling leaves the draws so far; before the first draw it is
    raised, and an earlier fit is kept.
    """

    n_outputs_: int
    y_ndim_: int

    @property
    def noise_scale_(self) -> Array:
        """Noise deviation, or scale of Student's t, of each output (K,), in units of y."""
        theta, likelihood = self.theta_, self.estimator_.model.likelihood
        if not hasattr(likelihood, "noise_scale"):
            raise AttributeError(
                f"{type(likelihood).__name__} has no one noise scale: its noise depends on X. Use "
                "predict_distribution(X).aleatoric"
            )
        blocks = self.estimator_.layout.views(theta)
        scale = likelihood.noise_scale(blocks, self.n_outputs_).reshape(-1, self.n_outputs_)
        return scale.mean(axis=0) * self.y_scale_

    @trains
    def partial_fit(self, X: Any, y: Any, epochs: int = 1) -> BayesianMLPRegressor:
        """Go on training, with the optimizer's memory and the generator as they were left.

        Not with a sampled posterior. The first call sets the standardisation, as `fit` does.
        Estimator, objective, KL weights, batch size and learning rate may have been changed.

        Parameters
        ----------
        X, y : array-like (N, d_in), (N,) or (N, K)
            Of the same widths as before.
        epochs : int
            Passes over these rows, >= 1.

        Returns
        -------
        self

        Raises
        ------
        TypeError, ValueError, NonFiniteError
            As `fit`; also when arguments that shape the model were changed since.
        """
        plan = self._plan_to_go_on()
        epochs = whole("epochs", epochs, 1, MOST_STEPS)
        if "training_" in self.__dict__:
            return self._go_on(X, y, plan, epochs)
        fitted, data = self._begin(X, lambda: self._first_targets(y, plan), plan, held_out=False)
        return self._train(fitted, data, plan.recipe_to_go_on(epochs), plan.progress)

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Return the predictive mean, and on request the total deviation, in units of y.

        Parameters
        ----------
        X : array-like (N, d_in)
        return_std : bool
            Also return the deviation of a new y; `predict_distribution` splits it.

        Returns
        -------
        mean : ndarray (N,) or (N, K)
        std : ndarray, same shape
            Only with ``return_std=True``.

        Raises
        ------
        ValueError
            Also if the network overflows for a row far from those of `fit`.
        """
        flag("return_std", return_std)
        distribution = self.predict_distribution(X)
        return (distribution.mean, distribution.total) if return_std else distribution.mean

    def predict_distribution(self, X: Any) -> Predictive:
        """Return mean, epistemic and aleatoric deviation in units of y, (N,) or (N, K) each.

        Under Student's t with df <= 2 the aleatoric deviation, and so the total, is infinite.
        """
        x = self._check_rows(X)
        with np.errstate(over="ignore", invalid="ignore"):
            p = predictive.predict(
                self.estimator_,
                self.theta_,
                x,
                rng=self._generator(),
                samples=self._predict_samples(),
            )
            mean = p.mean * self.y_scale_ + self.y_mean_
            scaled = (mean, p.epistemic * self.y_scale_, p.aleatoric * self.y_scale_)
        moments = scaled[:2] if self.estimator_.model.likelihood.heavy_tails else scaled
        need_finite("the prediction", np.concatenate(moments, axis=1), x)
        return Predictive(*(self._like_y(part) for part in scaled))

    def sample_functions(self, X: Any, n_samples: int = 1, random_state: Any = None) -> Array:
        """Return functions drawn from the posterior, evaluated at `X`, in units of y.

        Parameters
        ----------
        X : array-like (N, d_in)
        n_samples : int
            Number of functions S.
        random_state : None, int, numpy.random.Generator or numpy.random.RandomState
            None gives the functions that `predict` averages, the same at every call.

        Returns
        -------
        ndarray (N, S) or (N, K, S)
        """
        return self._sample(predictive.sample_functions, X, n_samples, random_state)

    def sample_y(self, X: Any, n_samples: int = 1, random_state: Any = None) -> Array:
        """Return targets drawn from the predictive distribution; as `sample_functions`."""
        return self._sample(predictive.sample_targets, X, n_samples, random_state)

    def log_predictive_density(self, X: Any, y: Any) -> Array:
        """Return log P(y|x, D) of each row (N,), in nats per row, for y in its own units (D5)."""
        x, targets = self._check_pair(X, y)
        with np.errstate(over="ignore", invalid="ignore"):
            found = predictive.log_predictive_density(
                self.estimator_,
                self.theta_,
                x,
                targets,
                rng=self._generator(),
                samples=self._predict_samples(),
            )
        need_finite("the log density of y", found, x)
        return found - np.log(self.y_scale_).sum()  # density of y = density of z dz/dy

    def _first_targets(self, y: Any, plan: Plan) -> Targets:
        likelihood = plan.likelihood
        assert likelihood is not None  # a regressor's default
        if likelihood.target_kind == "count":
            check_counts(y)
        array = check_targets(y)
        numbers = array.reshape(len(array), -1)  # (N, K)
        likelihood.check_targets(numbers, plan.dtype)
        real = likelihood.target_kind == "real"
        fitted = {"y_ndim_": array.ndim, "n_outputs_": numbers.shape[1]}
        return Targets(numbers, likelihood, real, fitted)

    def _next_targets(self, y: Any, dtype: Any) -> Array:
        likelihood = self.estimator_.model.likelihood
        if likelihood.target_kind == "count":
            check_counts(y)
        array = check_targets(y)
        array = array.reshape(len(array), -1)  # (N, K)
        if array.shape[1] != self.n_outputs_:
            raise ValueError(
                f"y has {array.shape[1]} outputs, the model was fitted with {self.n_outputs_}"
            )
        likelihood.check_targets(array, dtype)
        return standardised(array, self.y_mean_, self.y_scale_, dtype, "y")

    def _sample(self, draw: Any, X: Any, n_samples: int, random_state: Any) -> Array:
        x = self._check_rows(X)
        n_samples = whole("n_samples", n_samples, 1, MOST_SAMPLES)
        rng = self._generator() if random_state is None else check_generator(random_state)
        with np.errstate(over="ignore", invalid="ignore"):
            drawn = draw(self.estimator_, self.theta_, x, rng=rng, samples=n_samples)  # (S, N, K)
            drawn = np.moveaxis(drawn * self.y_scale_ + self.y_mean_, 0, -1)
        need_finite("a function drawn from the posterior", drawn, x)
        return self._like_y(drawn)

    def _like_y(self, array: Array) -> Array:
        """Drop the axis of outputs (N, K, ...) when y had none."""
        return array[:, 0] if self.y_ndim_ == 1 else array
