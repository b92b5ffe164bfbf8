"""A Bayesian MLP for regression, a scikit-learn estimator.

The learner for classes is in `classifier`, what both share in `base`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..evaluation.predictive import Predictive
from ..evaluation.quantiles import check_levels, quantiles
from ..evaluation.target_units import TARGET_UNITS
from ..numeric.layout import Array
from ..numeric.standardisation import standardise
from ..parts.likelihoods import GaussianLikelihood, HeteroscedasticLikelihood
from .base import (
    Learner,
    MultiOutputMixin,
    RegressorMixin,
    Targets,
    available_if_trained,
    r2_score,
)
from .plan import Plan
from .target_scale import choose_target

__all__ = ["BayesianMLPRegressor"]


@dataclass(eq=False, repr=False, kw_only=True)
class BayesianMLPRegressor(MultiOutputMixin, RegressorMixin, Learner):
    """Bayesian multilayer perceptron for regression, by variational inference or sampling.

    Every weight has a posterior distribution. Predictions average over it and come with two
    standard deviations: epistemic, which falls with more data, and aleatoric, that of the noise.

    Parameters
    ----------
    {parameters of Learner}
    target : {'identity', 'log', 'auto'}, default=None
        Scale on which y is modelled. 'log' is for positive targets that vary by factors, such as
        prices and durations: log y is standardised and modelled, and every prediction is in units
        of y (D73). `predict` then returns the mean of y, which is above its median,
        ``predict_quantiles(X, 0.5)``; intervals hold positive numbers alone, and the noise is
        relative. Where the noise depends on X, it counts for mean and standard deviations at most
        as log y varies over the training rows. Where it is Student's t, y has no mean: `predict`
        returns the median of y given the weights, averaged over them, and standard deviations are
        infinite. 'auto' is 'log' where y > 0 in at least 38 rows and a line for log y has a larger
        density of y than one for y, by 0.05 nats a row and by 5 nats in all (`choose_target`);
        `target_` says which it was.

    Attributes
    ----------
    theta_ : ndarray
        All learned numbers in one vector (P,), in the blocks of ``estimator_.layout``; after
        sampling the draws of all chains, (T, D).
    estimator_ : Reparameterised, LocalReparameterisation, ..., Linearised or DrawnWeights
        The model with its posterior, objective and gradient estimator; after sampling, the model
        with draws.
    log_evidence_ : float
        Only after ``inference="laplace"``: log P(D) by Laplace's approximation, in nats for y in
        its own units. Of two models of the same data, the one with the larger evidence is favoured.
    training_ : Training
        theta, the state of the optimizer and the history; not after sampling.
    inference_ : object
        What `inference` stood for: a posterior such as `MeanField`, a `Sampling`, or an `Ensemble`.
    draws_ : Draws
        Only after sampling: draws, statistics of the steps, and in ``draws_.target`` the data.
    n_iter_ : int
        Number of epochs trained; after sampling, of draws of each chain.
    history_, loss_curve_, loss_ : list of Epoch, list of float, float
        Every epoch trained, the objective in it (the free energy of all rows, by default), and the
        last objective.
    coefs_, intercepts_ : list of ndarray (d_in, d_out), (d_out,)
        Posterior means of weights and biases, layer by layer, from standardised X to y.
    feature_importances_ : ndarray (d_in,)
        Share of each input in the squares of ``|mu| / sigma`` of the first layer: how surely the
        network uses it, not how much y changes with it. Mean-field posteriors only.
    fit_report_ : FitReport
        Measurements of the fit on training rows; printed, each number with its threshold. Not after
        `partial_fit`.
    training_region_ : TrainingRegion
        Where the training rows lie, for `novelty`. Not after `partial_fit`.
    noise_scale_ : ndarray (K,)
        Noise standard deviation of each output, in units of y, its mean over the draws if
        sampled; of Student's t its scale, which is smaller. With ``target="log"`` that of log y: a
        relative noise, 0.1 for about 10 %. Not where the noise depends on X.
    target_ : str
        Scale on which y was modelled: 'identity' or 'log'.
    fitted_ : FittedState
        All results of the fit, in one frozen object, which the next fit replaces. Attributes of the
        learner such as `training_` and `draws_` are its fields.
    n_features_in_, n_outputs_, y_ndim_ : int
        Number of columns of X and of y in `fit`, and the number of axes of y.
    feature_names_in_ : ndarray (n_features_in_,) of str
        Only after fitting a data frame with text column names.
    columns_ : tuple of Column
        Only after fitting a data frame in which not all cells are numbers: how each of its columns
        is encoded. `get_feature_names_out` returns the names of the d_in inputs of the network.
    x_mean_, x_scale_, y_mean_, y_scale_ : ndarray
        Shift and scale of inputs (d_in,) and targets (K,), with ``target="log"`` of log y: 0 and 1
        where nothing is standardised.
    exposure_scale_ : float
        Only if `fit` had an exposure: the exposure in which one count is expected on average.
    x_axes_ : ndarray (d_in, d_in)
        Only where standardised inputs were nearly collinear: the principal axes to which they
        were rotated.
    rng_, predict_seed_ : numpy.random.Generator, int
        Generator from which `partial_fit` continues to draw, and seed of the weights that
        predictions draw.

    Notes
    -----
    Numbers inside parts are parameters too, for `set_params` and grid searches:
    ``prior__scale``, ``optimizer__learning_rate``, see `get_params`.

    {defaults}

    {schedules}

    Arguments are checked by `fit`, not by the constructor. A call that fails leaves an earlier fit
    as it was. But after `NonFiniteError`, and after Ctrl-C, the model holds the state after the
    last finished epoch, or the draws so far; if there are none, an earlier fit is kept.
    """

    target: str | None = None

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags of this learner, for its checks and searches."""
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = self.target == "log"
        return tags

    @property
    def noise_scale_(self) -> Array:
        """Noise scale (K,) of each output, in units of y or of log y: its sd if Gaussian."""
        theta, likelihood = self.theta_, self.estimator_.model.likelihood
        if not likelihood.noise_name:
            raise AttributeError(
                f"{type(likelihood).__name__} has no single noise scale: its noise depends on X. "
                "Use predict_distribution(X).aleatoric"
            )
        blocks = self.estimator_.layout.views(theta)
        # If the fit has diverged this may overflow; `fit` has warned of that already
        with np.errstate(over="ignore"):
            scale = likelihood.noise_scale(blocks, self.n_outputs_)
            scale = scale.reshape(-1, self.n_outputs_)
            return scale.mean(axis=0) * self.y_scale_

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, exposure: Any = None
    ) -> BayesianMLPRegressor:
        """Fit the posterior of the weights; with ``warm_start=True`` continue from the last fit.

        Parameters
        ----------
        X : array-like (N, d_in) or DataFrame
            Inputs. Of a data frame, columns that are not numbers are encoded: categories and text
            as 0 and 1, dates as days; missing cells are filled in, and an input of 0 and 1 tells
            them (`columns.describe_columns`). Predictions then take data frames with these columns.
        y : array-like (N,) or (N, K)
            Targets.
        sample_weight : array-like (N,), optional
            Number of times that each row counts, >= 0: 2 for a row that occurs twice, 0 for one
            that is left out (D45). By default each row counts once. The sum of the weights matters:
            it is the number of rows whose likelihood is weighed against the prior.
        exposure : float or array-like (N,), optional
            Time, area or number of persons over which each row's events were counted, > 0, for a
            likelihood of counts: the expected count is exposure times rate, log rate the output of
            the network (D72). Predictions are then rates, counts of exposure 1, unless they are
            given an exposure too.

        Returns
        -------
        self

        Raises
        ------
        TypeError, ValueError
            For arguments or data that cannot be used; the learner is then unchanged.
        NonFiniteError
            If the free energy becomes nan or infinite; see the notes of the class.

        Warns
        -----
        UserWarning
            After Ctrl-C, or if more than 0.1 % of the draws diverged.
        ConvergenceWarning
            If the fit has failed. It names the likely cause and a remedy, from `fit_report_`.
        """
        return self._fit(X, y, sample_weight, exposure)

    @available_if_trained
    def partial_fit(
        self,
        X: Any,
        y: Any,
        epochs: int = 1,
        sample_weight: Any = None,
        exposure: Any = None,
    ) -> BayesianMLPRegressor:
        """Continue training for `epochs` epochs on these rows; the first call starts training.

        The optimizer and the random generator continue too. The first call sets the
        standardisation, as `fit` does. Estimator, objective, KL weights, batch size and learning
        rate may have been changed since the last call. The method does not exist for a sampled
        posterior and for Laplace's approximation.

        Parameters
        ----------
        X, y : array-like (N, d_in), (N,) or (N, K)
            Inputs and targets, with as many columns as in earlier calls.
        epochs : int
            Number of passes over these rows, >= 1.
        sample_weight : array-like (N,), optional
            Number of times that each row counts, as in `fit`.
        exposure : float or array-like (N,), optional
            Exposure of each row, as in `fit`; in all calls or in none.

        Returns
        -------
        self

        Raises
        ------
        TypeError, ValueError, NonFiniteError
            As `fit`; also if arguments that define the model have changed since the last fit.
        """
        return self._partial_fit(X, y, epochs, sample_weight, exposure=exposure)

    def predict(
        self,
        X: Any,
        return_std: bool = False,
        return_cov: bool = False,
        exposure: Any = None,
        return_novelty: bool = False,
    ) -> Any:
        """Return the predictive mean and, if requested, the standard deviation or covariance of y.

        The first arguments are those of scikit-learn's `GaussianProcessRegressor`.

        Parameters
        ----------
        X : array-like (N, d_in)
            Inputs.
        return_std : bool
            Whether to return also the standard deviation of a new y; `predict_distribution` splits
            it into epistemic and aleatoric.
        return_cov : bool
            Whether to return also the covariance of new y between the rows of `X`: N^2 numbers.
        exposure : float or array-like (N,), optional
            Exposure of each row, if `fit` had one; by default 1, for which predictions are rates.
        return_novelty : bool
            Whether to return last, for each row, whether it is unlike the training rows.

        Returns
        -------
        mean : ndarray (N,) or (N, K)
            Predictive mean.
        std : ndarray (N,) or (N, K)
            Predictive standard deviation, if `return_std`.
        cov : ndarray (N, N) or (N, N, K)
            Covariance, if `return_cov`. Its diagonal is std^2, which is infinite under Student's t
            with df <= 2.
        novelty : Novelty
            `outside` (N,) and `column` (N,), as `novelty` returns them, if `return_novelty`.

        Raises
        ------
        RuntimeError
            If both `return_std` and `return_cov` are True.
        ValueError
            For rows that cannot be used, or at which the prediction overflows.
        """
        if return_std and return_cov:
            raise RuntimeError(
                "At most one of return_std or return_cov can be requested."
            )
        distribution = self.predict_distribution(X, exposure)
        results: list[Any] = [distribution.mean]
        if return_cov:
            results.append(self._covariance(X, exposure))
        if return_std:
            results.append(distribution.total)
        if return_novelty:
            results.append(self.novelty(X))
        if len(results) == 1:
            return distribution.mean
        return tuple(results)

    def score(
        self, X: Any, y: Any, sample_weight: Any = None, exposure: Any = None
    ) -> float:
        """Return R^2 of the predictive means: 1 - sum (y - mean)^2 / sum (y - average of y)^2.

        Parameters
        ----------
        X : array-like (N, d_in)
            Inputs.
        y : array-like (N,) or (N, K)
            Targets; R^2 is averaged over columns.
        sample_weight : array-like (N,), optional
            Weight of each row.
        exposure : float or array-like (N,), optional
            Exposure of each row; needed if `fit` had one.
        """
        self._need_exposure(exposure)
        mean = self.predict(X, exposure=exposure)
        return float(r2_score(y, mean, sample_weight=sample_weight))

    def predict_interval(
        self, X: Any, coverage: Any = 0.9, exposure: Any = None
    ) -> Array:
        """Return central predictive intervals of probability `coverage` for a new y, in units of y.

        The ends are the quantiles (1 - coverage)/2 and (1 + coverage)/2 of the predictive mixture
        itself; no normal approximation is made. Intervals of counts, whose ends are whole numbers,
        have at least the probability `coverage`.

        Parameters
        ----------
        X : array-like (N, d_in)
            Inputs.
        coverage : float or list of float
            Probabilities in [0, 1].
        exposure : float or array-like (N,), optional
            Exposure of each row, if `fit` had one; by default 1, for which predictions are rates.

        Returns
        -------
        ndarray (N, 2) or (N, K, 2)
            Lower and upper end, in units of y; for a list of C coverages (N, C, 2) or (N, K, C, 2).

        Raises
        ------
        TypeError, ValueError
            If `coverage` is not a number between 0 and 1, and as `predict`.
        """
        levels = check_levels("coverage", coverage)
        # (2,) or (C, 2) probabilities of which the two ends are quantiles
        ends = np.stack([0.5 - 0.5 * levels, 0.5 + 0.5 * levels], axis=-1)
        bounds = self.predict_quantiles(X, ends.ravel(), exposure)
        return bounds.reshape(*bounds.shape[:-1], *ends.shape)

    @np.errstate(over="ignore", invalid="ignore")
    def predict_quantiles(self, X: Any, q: Any = 0.5, exposure: Any = None) -> Array:
        """Return quantiles of the predictive distribution, in units of y (D46).

        They are exact for the mixture over weight samples, without a normal approximation. The
        q-quantile of an output is its smallest y with P(y' <= y) >= q; for counts it is a whole
        number. Under Student's t with less than about 0.1 degrees of freedom it may be infinite.

        Parameters
        ----------
        X : array-like (N, d_in)
            Inputs.
        q : float or list of float
            Probabilities in [0, 1]. For 0 the quantile is the smallest possible y (-inf, for
            counts 0), for 1 the largest.
        exposure : float or array-like (N,), optional
            Exposure of each row, if `fit` had one; by default 1, for which predictions are rates.

        Returns
        -------
        ndarray (N,) or (N, K)
            For a list of Q probabilities (N, Q) or (N, K, Q).

        Raises
        ------
        TypeError, ValueError
            If `q` is not a number between 0 and 1, and as `predict`.
        """
        levels = check_levels("q", q)
        x = self._check_rows(X, exposure)
        y = self._posterior_predict(quantiles, x, levels)  # (Q, N, K) quantiles
        # (N, K, Q) quantiles in units of y
        y = np.moveaxis(self.fitted_.units.to_y(y), 0, -1)
        heavy = self.estimator_.model.likelihood.heavy_tails
        may_be_infinite = heavy | (levels.ravel() == 0.0) | (levels.ravel() == 1.0)
        overflow = np.where(np.isinf(y) & may_be_infinite, 0.0, y)
        self._need_finite("a quantile", overflow, x)
        y = self._like_y(y)
        if levels.ndim:
            return y
        return y[..., 0]

    @np.errstate(over="ignore", invalid="ignore")
    def _covariance(self, X: Any, exposure: Any) -> Array:
        """Return the covariance of new targets between rows of `X`, (N, N) or (N, N, K)."""
        x = self._check_rows(X, exposure)
        # (N, N, K) covariance in squared units of y
        cov = self._posterior_predict(self.fitted_.units.covariance, x)
        may_be_infinite = self.estimator_.model.likelihood.heavy_tails
        overflow = np.where(np.isinf(cov) & may_be_infinite, 0.0, cov)
        self._need_finite("the covariance", overflow, x)
        if self.y_ndim_ == 1:
            return cov[..., 0]
        return cov

    @np.errstate(over="ignore", invalid="ignore")
    def predict_distribution(self, X: Any, exposure: Any = None) -> Predictive:
        """Return the predictive mean, and the epistemic and aleatoric standard deviation, of y.

        Parameters
        ----------
        X : array-like (N, d_in)
            Inputs.
        exposure : float or array-like (N,), optional
            Exposure of each row, if `fit` had one; by default 1, for which predictions are rates.

        Returns
        -------
        Predictive
            `mean`, `epistemic`, `aleatoric` and `total`, (N,) or (N, K) each, in units of y. Under
            Student's t with df <= 2, `aleatoric` and so `total` are infinite.
        """
        x = self._check_rows(X, exposure)
        moments = self._posterior_predict(self.fitted_.units.predict, x)
        finite: tuple[Array, ...] = moments
        if self.estimator_.model.likelihood.heavy_tails:
            finite = moments[:2]
        self._need_finite("the prediction", np.concatenate(finite, axis=1), x)
        return Predictive._make(map(self._like_y, moments))

    def sample_y(
        self,
        X: Any,
        n_samples: int = 1,
        random_state: Any = None,
        exposure: Any = None,
    ) -> Array:
        """Draw targets from the predictive distribution at `X`, in units of y.

        Parameters
        ----------
        X : array-like (N, d_in)
            Inputs.
        n_samples : int
            Number of draws S at each row, each with weights of its own.
        random_state : None, int, numpy.random.Generator or numpy.random.RandomState
            Source of the draws. By default they are the same at every call.
        exposure : float or array-like (N,), optional
            Exposure of each row, if `fit` had one; by default 1, for which predictions are rates.

        Returns
        -------
        ndarray (N, S) or (N, K, S)
            Drawn targets.
        """
        draw = self.fitted_.units.sample_targets
        return self._sample(draw, X, n_samples, random_state, exposure)

    def _first_targets(
        self, x: Array, y: Array, plan: Plan, classes: Any, counted: Array
    ) -> Targets:
        """Return targets (N, K), their likelihood, and a dict with `y_ndim_` and `n_outputs_`."""
        likelihood = plan.parts["likelihood"]
        numbers: Array = y.reshape(len(y), -1)  # (N, K) targets
        likelihood.check_targets(numbers, plan.parts["dtype"])
        notes = {"y_ndim_": y.ndim, "n_outputs_": numbers.shape[1]}
        target = self.target
        if target is None:
            is_default = self.inference is None and self.likelihood is None
            target = "auto" if is_default and plan.method.is_sampled else "identity"
        is_gaussian = isinstance(
            likelihood, GaussianLikelihood | HeteroscedasticLikelihood
        )
        can_be_log = is_gaussian or likelihood.heavy_tails
        if target == "auto":
            target = "identity"
            if can_be_log:
                target = choose_target(x[counted], numbers[counted])
            # Rows of weight 0 are left out later, whatever they hold (D45)
            numbers = np.where(counted[:, None], numbers, numbers[counted.argmax()])
        if target == "log" and not can_be_log:
            raise ValueError(
                "target='log' models log y with Gaussian or Student's t noise; got likelihood="
                f"{self.likelihood!r}. Leave one of the two out"
            )
        return (
            TARGET_UNITS[target].from_y(numbers),
            likelihood,
            {**notes, "target_": target},
        )

    def _next_targets(self, y: Array, dtype: Any) -> Array:
        """Return targets `y`, (N,) or (N, K), standardised as in the fit: (N, K) in `dtype`."""
        y = y.reshape(len(y), -1)  # (N, K) targets
        if y.shape[1] != self.n_outputs_:
            raise ValueError(
                f"y must have {self.n_outputs_} columns, as in fit; got {y.shape[1]}"
            )
        self.estimator_.model.likelihood.check_targets(y, dtype)
        numbers = self.fitted_.units.from_y(y)
        return standardise(numbers, self.y_mean_, self.y_scale_, dtype, "y")

    def _like_y(self, array: Array) -> Array:
        """Return predictions `array` (N, K, ...), as (N, ...) if y in `fit` was one-dimensional."""
        if self.y_ndim_ == 1:
            return array[:, 0]
        return array
