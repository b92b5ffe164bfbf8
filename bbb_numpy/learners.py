"""A Bayesian MLP with scikit-learn's habits (floor 5); scikit-learn itself is optional."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import predictive, training
from .arguments import whole
from .gradients import Reparameterised
from .likelihoods import GaussianLikelihood
from .optimizers import Optimizer
from .plans import Plan, check_generator, check_plan
from .posteriors import MeanField
from .predictive import Predictive
from .priors import GaussianPrior
from .scaling import moments, standardised
from .sklearn_base import Base
from .training import EarlyStopping, Epoch, NonFiniteError, Training
from .validation import (
    NotFittedError,
    check_columns,
    check_inputs,
    check_same_rows,
    check_targets,
    column_names,
)

__all__ = ["BayesianMLPRegressor"]

Array = NDArray[Any]


class BayesianMLPRegressor(Base):
    """Bayesian multilayer perceptron for regression, trained by Bayes by Backprop.

    Every weight has a Gaussian posterior; predictions average over it and come with
    deviations: epistemic (what more data would remove) and aleatoric (noise).

    Parameters
    ----------
    hidden_layer_sizes : tuple of int
        Widths of the hidden layers; ``()`` for none.
    activation : {'relu', 'tanh'}
    prior : GaussianPrior, optional
        Default ``GaussianPrior(0.5)``.
    likelihood : GaussianLikelihood, optional
        Default ``GaussianLikelihood(0.1, learn=True)``. With ``standardize=True`` its scale
        is in units of the standardised target.
    posterior : MeanField, optional
        Default ``MeanField(rho_offset=-4.0)``.
    optimizer : Adam, SGD or Momentum, optional
        Default ``Adam(1e-2, schedule=Cosine())``. A schedule runs over the epochs of one
        call of `fit` or `partial_fit`.
    epochs, batch_size : int
        Passes over the data; rows per step. Few data need many epochs, since every weight's
        deviation has to grow towards the prior's; many data need fewer.
    samples, predict_samples : int
        Weight samples per training step, and per prediction.
    standardize : bool
        Bring inputs and targets to mean 0 and deviation 1 for training (constant columns to
        0); undone in everything that is returned.
    early_stopping : EarlyStopping, optional
    validation_fraction : float
        Share of the rows held out by `fit` to record (and stop by) a validation loss, >= 0
        and < 1. `partial_fit` trains on all its rows.
    dtype : {'float64', 'float32'}
        Of training and prediction; results are float64.
    random_state : None, int, numpy.random.Generator or numpy.random.RandomState
        With a whole number, the same data give bit-identical results.
    progress : bool, optional
        Show a progress bar; by default only in a terminal or notebook.

    Attributes
    ----------
    theta_ : ndarray
        Everything learned, flat, in the blocks of ``estimator_.layout``.
    estimator_ : Reparameterised
    training_ : Training
        theta, the optimizer's memory and the history.
    history_ : list of Epoch
    n_iter_ : int
        Epochs trained.
    noise_scale_ : ndarray (K,)
        Noise deviation of each output, in units of y.
    n_features_in_, n_outputs_, y_ndim_ : int
        Widths of X and y in `fit`, and the number of axes of y.
    feature_names_in_ : ndarray (d_in,) of str
        Only after fitting a data frame with text column names.
    x_mean_, x_scale_, y_mean_, y_scale_ : ndarray
        Shift and scale of inputs (d_in,) and targets (K,): 0 and 1 with
        ``standardize=False``.
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
    fit is kept).
    """

    training_: Training
    estimator_: Reparameterised
    n_features_in_: int
    n_outputs_: int
    y_ndim_: int
    x_mean_: Array
    x_scale_: Array
    y_mean_: Array
    y_scale_: Array
    rng_: np.random.Generator
    predict_seed_: int

    def __init__(
        self,
        hidden_layer_sizes: Any = (50,),
        *,
        activation: str = "relu",
        prior: GaussianPrior | None = None,
        likelihood: GaussianLikelihood | None = None,
        posterior: MeanField | None = None,
        optimizer: Optimizer | None = None,
        epochs: int = 1000,
        batch_size: int = 32,
        samples: int = 1,
        predict_samples: int = 100,
        standardize: bool = True,
        early_stopping: EarlyStopping | None = None,
        validation_fraction: float = 0.0,
        dtype: Any = "float64",
        random_state: Any = None,
        progress: bool | None = None,
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.prior = prior
        self.likelihood = likelihood
        self.posterior = posterior
        self.optimizer = optimizer
        self.epochs = epochs
        self.batch_size = batch_size
        self.samples = samples
        self.predict_samples = predict_samples
        self.standardize = standardize
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.dtype = dtype
        self.random_state = random_state
        self.progress = progress

    @property
    def theta_(self) -> Array:
        """Everything learned, one flat vector."""
        return self.training_.theta

    @property
    def history_(self) -> list[Epoch]:
        """One entry for each epoch trained."""
        return self.training_.history

    @property
    def n_iter_(self) -> int:
        """Number of epochs trained."""
        return len(self.training_.history)

    @property
    def noise_scale_(self) -> Array:
        """Noise deviation of each output (K,), in units of y."""
        blocks = self.estimator_.layout.views(self.theta_)
        likelihood = self.estimator_.model.likelihood
        return likelihood.noise_scale(blocks, self.n_outputs_) * self.y_scale_

    def fit(self, X: Any, y: Any) -> BayesianMLPRegressor:
        """Train from scratch.

        Parameters
        ----------
        X : array-like (N, d_in)
        y : array-like (N,) or (N, K)
            Predictions have as many axes as `y`.

        Returns
        -------
        self

        Raises
        ------
        TypeError, ValueError
            For arguments or data that cannot be used; nothing has changed then.
        NonFiniteError
            When the free energy is nan or infinite; see the class's notes.

        Warns
        -----
        UserWarning
            After Ctrl-C, which ends training but not the program.
        """
        plan = check_plan(self.get_params(deep=False))
        fitted, (x, targets), held_out = self._begin(X, y, plan, plan.validation_fraction)
        return self._advance(
            fitted,
            x,
            targets,
            plan,
            epochs=plan.epochs,
            early_stopping=plan.early_stopping,
            validation=held_out if len(held_out[0]) else None,
        )

    def partial_fit(self, X: Any, y: Any, epochs: int = 1) -> BayesianMLPRegressor:
        """Go on training, with the optimizer's memory and the generator as they were left.

        The first call sets the standardisation, as `fit` does.

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
        plan = check_plan(self.get_params(deep=False))
        epochs = whole("epochs", epochs, 1)
        if "training_" not in self.__dict__:
            fitted, (x, targets), _ = self._begin(X, y, plan, held_out=0.0)
        else:
            x, targets = self._check_pair(X, y)
            self._check_unchanged(plan)
            fitted = {"training_": self.training_, "estimator_": self.estimator_}
            fitted["rng_"] = copy.deepcopy(self.rng_)
        return self._advance(fitted, x, targets, plan, epochs=epochs)

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
        """
        distribution = self.predict_distribution(X)
        return (distribution.mean, distribution.total) if return_std else distribution.mean

    def predict_distribution(self, X: Any) -> Predictive:
        """Return mean, epistemic and aleatoric deviation in units of y, (N,) or (N, K) each."""
        x = self._check_rows(X)
        p = predictive.predict(
            self.estimator_, self.theta_, x, rng=self._generator(), samples=self._predict_samples()
        )
        mean = p.mean * self.y_scale_ + self.y_mean_
        scaled = (mean, p.epistemic * self.y_scale_, p.aleatoric * self.y_scale_)
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
        standardised = predictive.log_predictive_density(
            self.estimator_,
            self.theta_,
            x,
            targets,
            rng=self._generator(),
            samples=self._predict_samples(),
        )
        return standardised - np.log(self.y_scale_).sum()  # density of y = density of z dz/dy

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return R^2 of the predictive mean, averaged over outputs; 1 is best.

        Parameters
        ----------
        X, y : array-like (N, d_in), (N,) or (N, K)
        sample_weight : array-like (N,), optional
            Weights >= 0 of the rows.

        Returns
        -------
        float
            nan, with a warning, for a single row. For a constant y, 1.0 if it is predicted
            exactly and else 0.0.
        """
        self._check_pair(X, y)
        y = check_targets(y).reshape(-1, self.n_outputs_)  # (N, K)
        weight = (
            np.ones(len(y))
            if sample_weight is None
            else check_targets(sample_weight, "sample_weight")
        )
        if weight.ndim != 1 or weight.min() < 0 or weight.sum() == 0:
            raise ValueError("sample_weight must be one number >= 0 per row, not all of them 0")
        check_same_rows(y=y, sample_weight=weight)
        if len(y) < 2:
            warnings.warn("R^2 is not defined for fewer than two rows", UserWarning, stacklevel=2)
            return float("nan")
        residual = weight @ (y - self.predict(X).reshape(y.shape)) ** 2  # (K,)
        spread = weight @ (y - np.average(y, axis=0, weights=weight)) ** 2
        exact = np.where(residual == 0, 1.0, 0.0)
        r2 = 1.0 - residual / np.where(spread == 0, 1.0, spread)
        return float(np.where(spread == 0, exact, r2).mean())

    def _begin(
        self, X: Any, y: Any, plan: Plan, held_out: float
    ) -> tuple[dict[str, Any], tuple[Array, Array], tuple[Array, Array]]:
        """Return the fitted attributes before the first epoch, training and held-out rows.

        The rows are standardised by the moments of the training rows alone.
        """
        x, names = check_inputs(X), column_names(X)
        targets = check_targets(y)
        check_same_rows(X=x, y=targets)
        ndim, targets = targets.ndim, targets.reshape(len(targets), -1)  # (N, K)
        rows = int(np.ceil(held_out * len(x)))
        if rows >= len(x):
            raise ValueError(
                f"validation_fraction {held_out:g} of {len(x)} rows leaves none to train on; "
                "use a smaller fraction or more rows"
            )
        rng = check_generator(self.random_state)
        fitted: dict[str, Any] = {
            "predict_seed_": int(rng.integers(2**63)),
            "y_ndim_": ndim,
            "n_features_in_": x.shape[1],
            "n_outputs_": targets.shape[1],
        }
        if names is not None:
            fitted["feature_names_in_"] = names
        order = rng.permutation(len(x)) if rows else np.arange(len(x))
        scaled = []
        for name, array in (("X", x), ("y", targets)):
            mean, scale = moments(array[order[rows:]], plan.standardize)
            fitted |= {f"{name.lower()}_mean_": mean, f"{name.lower()}_scale_": scale}
            scaled.append(standardised(array, mean, scale, plan.dtype, name)[order])
        estimator = plan.estimator(x.shape[1], targets.shape[1])
        start = training.start(estimator, rng, plan.optimizer, plan.dtype)
        fitted |= {"estimator_": estimator, "training_": start, "rng_": rng}
        x, targets = scaled
        return fitted, (x[rows:], targets[rows:]), (x[:rows], targets[:rows])

    def _advance(
        self, fitted: dict[str, Any], x: Array, targets: Array, plan: Plan, **options: Any
    ) -> BayesianMLPRegressor:
        """Train from ``fitted['training_']`` on, then take over all of `fitted` at once."""
        before, failure = fitted["training_"], None
        try:
            state: Training = training.fit(
                fitted["estimator_"],
                before,
                x,
                targets,
                rng=fitted["rng_"],
                optimizer=plan.optimizer,
                batch_size=plan.batch_size,
                samples=plan.samples,
                progress=plan.progress,
                **options,
            )
        except NonFiniteError as error:
            state, failure = error.training, error
        finished = len(state.history) > len(before.history)
        if finished or "training_" not in self.__dict__:
            fitted["training_"] = state
            if "x_mean_" in fitted:  # a new start: names of an earlier fit are void
                self.__dict__.pop("feature_names_in_", None)
            self.__dict__.update(fitted)
        if failure is not None:
            raise failure
        if state.stopped == "interrupted":
            done = len(state.history) - len(before.history)
            warnings.warn(
                f"Training interrupted by user after {done} of {options['epochs']} epochs; "
                "the model holds the state after the last finished epoch",
                UserWarning,
                stacklevel=3,
            )
        return self

    def _check_unchanged(self, plan: Plan) -> None:
        new, old = plan.estimator(self.n_features_in_, self.n_outputs_), self.estimator_
        pairs = {
            "hidden_layer_sizes or activation": (new.model.network, old.model.network),
            "prior": (new.model.prior, old.model.prior),
            "likelihood": (new.model.likelihood, old.model.likelihood),
            "dtype": (np.dtype(plan.dtype), self.theta_.dtype),
            "optimizer (its memory)": (
                set(plan.optimizer.init(self.theta_).arrays),
                set(self.training_.optimizer_state.arrays),
            ),
        }
        changed = [name for name, (now, then) in pairs.items() if now != then]
        if changed:
            raise ValueError(
                f"{', '.join(changed)} changed since the model was fitted, so partial_fit cannot "
                "go on from it; set it back, or call fit to start anew"
            )

    def _check_rows(self, X: Any) -> Array:
        """Return `X` standardised as in `fit`."""
        if "training_" not in self.__dict__:
            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet; call fit(X, y) first"
            )
        x = check_inputs(X)
        names = self.__dict__.get("feature_names_in_")
        check_columns(X, x, self.n_features_in_, names, type(self).__name__)
        return standardised(x, self.x_mean_, self.x_scale_, self.theta_.dtype, "X")

    def _check_pair(self, X: Any, y: Any) -> tuple[Array, Array]:
        x, targets = self._check_rows(X), check_targets(y)
        check_same_rows(X=x, y=targets)
        targets = targets.reshape(len(targets), -1)  # (N, K)
        if targets.shape[1] != self.n_outputs_:
            raise ValueError(
                f"y has {targets.shape[1]} outputs, the model was fitted with {self.n_outputs_}"
            )
        return x, standardised(targets, self.y_mean_, self.y_scale_, self.theta_.dtype, "y")

    def _sample(self, draw: Any, X: Any, n_samples: int, random_state: Any) -> Array:
        x = self._check_rows(X)
        n_samples = whole("n_samples", n_samples, 1)
        rng = self._generator() if random_state is None else check_generator(random_state)
        drawn = draw(self.estimator_, self.theta_, x, rng=rng, samples=n_samples)  # (S, N, K)
        return self._like_y(np.moveaxis(drawn * self.y_scale_ + self.y_mean_, 0, -1))

    def _generator(self) -> np.random.Generator:
        return np.random.default_rng(self.predict_seed_)

    def _predict_samples(self) -> int:
        return whole("predict_samples", self.predict_samples, 1)

    def _like_y(self, array: Array) -> Array:
        """Drop the axis of outputs (N, K, ...) when y had none."""
        return array[:, 0] if self.y_ndim_ == 1 else array
