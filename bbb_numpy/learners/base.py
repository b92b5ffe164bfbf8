"""What the regressor and the classifier share: fitting, going on, and what they keep."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from functools import update_wrapper
from types import FunctionType
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, MultiOutputMixin, RegressorMixin
    from sklearn.utils import check_consistent_length
    from sklearn.utils.metaestimators import available_if
    from sklearn.utils.validation import check_is_fitted
except ImportError:
    raise ImportError(
        "the learners need scikit-learn; install it with: pip install 'bbb_numpy[learners]'"
    ) from None

from ..gradients.catalogue import Estimator
from ..model.joint import Likelihood
from ..numeric.arguments import MOST_SAMPLES, whole
from ..numeric.randomness import check_generator
from ..numeric.standardisation import standardised
from ..parts.posteriors import PointMass
from ..sampling.draws import DrawnWeights, Draws
from ..training import Epoch, NonFiniteError, Recipe, Training
from ..training.loop import start, train
from ..training.recipe import Rows
from .cautions import warn_of_collapse
from .columns import Column
from .inference import is_sampled, short
from .plan import REGRESSION, Plan, Task, check_plan
from .rows import (
    Prepared,
    check_inputs,
    held_out_rows,
    prepared,
)

__all__ = [
    "ClassifierMixin",
    "Learner",
    "MultiOutputMixin",
    "RegressorMixin",
    "Targets",
    "check_consistent_length",
    "check_is_fitted",
    "trains",
]

Array = NDArray[Any]
Self = TypeVar("Self", bound="Learner")


class Targets(NamedTuple):
    """Targets of a first fit, as the likelihood takes them."""

    numbers: Array  # (N, K) float64
    likelihood: Likelihood
    real: bool  # whether they have units, and can be standardised
    fitted: dict[str, Any]  # attributes that describe them


def _is_trained(learner: Any) -> bool:
    """Whether a learner trains, or raise AttributeError that says why it cannot go on."""
    if is_sampled(learner.inference):
        raise AttributeError(
            f"{type(learner).__name__} has no partial_fit with inference="
            f"{short(learner.inference)}: draws of one posterior cannot go on to that of other "
            "rows. Call fit with all rows, or use inference='mean-field'"
        )
    return True


trains = available_if(_is_trained)


class Learner(BaseEstimator):
    """What both learners do with rows; each has targets and predictions of its own."""

    task: ClassVar[Task] = REGRESSION

    def __init_subclass__(cls, **options: Any) -> None:
        """Give each learner shared methods of its own, so that Python's errors name its class."""
        super().__init_subclass__(**options)
        for name in ("__init__", "fit"):
            method = getattr(cls, name)
            if name not in vars(cls):
                own = FunctionType(
                    method.__code__,
                    method.__globals__,
                    name,
                    method.__defaults__,
                    method.__closure__,
                )
                own.__kwdefaults__ = method.__kwdefaults__
                setattr(cls, name, update_wrapper(own, method, updated=()))
                own.__qualname__ = f"{cls.__qualname__}.{name}"
                vars(own).pop("__wrapped__")

    training_: Training
    draws_: Draws
    estimator_: Estimator | DrawnWeights
    n_features_in_: int
    x_mean_: Array
    x_scale_: Array
    y_mean_: Array
    y_scale_: Array
    rng_: np.random.Generator
    predict_seed_: int
    columns_: tuple[Column, ...]  # only of a learner that the command line fitted to a table

    def __init__(
        self,
        hidden_layer_sizes: Any = None,
        *,
        activation: str = "relu",
        prior: Any = None,
        likelihood: Any = None,
        inference: Any = "mean-field",
        estimator: Any = None,
        objective: Any = None,
        kl_weights: Any = None,
        warm_up: Any = None,
        optimizer: Any = None,
        epochs: int | None = None,
        batch_size: int = 32,
        samples: int | None = None,
        predict_samples: int | None = None,
        standardize: bool = True,
        early_stopping: Any = None,
        validation_fraction: float = 0.0,
        dtype: Any = "float64",
        random_state: Any = None,
        progress: bool | None = None,
    ) -> None:
        """Take note of the settings; `fit` checks them.

        Parameters
        ----------
        hidden_layer_sizes : tuple of int, optional
            Widths of the hidden layers; ``()`` for none. Default (20,), for classes (50,). Under a
            mean-field posterior every unit, used or not, adds about noise variance / N to the
            predictive variance: take more for many rows or little noise.
        activation : {'relu', 'tanh'}
        prior : str or object, optional
            Of the names or classes in `bbb_numpy.gradients.catalogue`, as the other parts. Default
            ``GaussianPrior(0.5)``; for classes ``GaussianPrior(1.5)``, since certain classes need
            large logits.
        likelihood : str or object, optional
            Default ``GaussianLikelihood(0.1, learn=True)``. 'heteroscedastic' learns noise that
            depends on X, 'student-t' and 'student-t-learned' are for outliers, 'poisson' models
            counts by their log rate; 'bernoulli' (columns of 0 and 1) and 'categorical' (rows of
            probabilities) work too. With ``standardize=True`` scales are in units of the
            standardised target. The classifier takes the last two alone; default: one logit for
            two classes, one logit per class for more.
        inference : {'mean-field', 'full-rank', 'map', 'mle', 'hmc', 'nuts'} or an object
            What stands for the posterior. The first four are trained: a `MeanField`, a `FullRank`
            (for small networks), or a `PointMass` with or without the prior. The last two draw
            from the posterior itself, weights together with the scales that are learned: slower,
            but without a family's restrictions. Objects have the settings, e.g.
            ``MeanField(rho_offset=-1.0)`` or ``Sampling("nuts", chains=8)``. While sampling all
            rows are used at every step; estimator, objective, kl_weights, warm_up, optimizer,
            early_stopping and validation_fraction are refused, epochs, batch_size and samples
            unused.
        estimator : str or class, optional
            Of the gradient, e.g. 'local-reparameterisation' or ``Flipout``. Default:
            'reparameterised', for the EUBO 'self-normalised'.
        objective : str or FreeEnergy, Renyi, EUBO, optional
            Default ``FreeEnergy()``, the ELBO; for a point mass ``MAP()``. Renyi (IWAE) and the
            EUBO are biased on minibatches (D30): prefer a `batch_size` of all rows, and many
            `samples`.
        kl_weights : {'proportional', 'geometric'} or callable, optional
            How the minibatches of an epoch share the KL term.
        warm_up : {'none', 'linear', 'cyclical'} or LinearWarmUp, CyclicalWarmUp, optional
            Factor on the KL term that rises to 1 during training; 'none' for none. By default `fit`
            of a regressor uses ``LinearWarmUp(0.5)`` where there is a KL term (`FreeEnergy`).
            One that is given runs over the epochs of each call, as a schedule does; 'map' has
            its prior weighed by it.
        optimizer : Adam, SGD or Momentum, optional
            Default ``Adam(1e-2, schedule=Cosine())``. A schedule runs over the epochs of one
            call of `fit` or `partial_fit`.
        epochs : int, optional
            Passes over the data; default 1000, for classes 100. Few data need many epochs, since
            every weight's deviation has to grow towards the prior's; many data need fewer.
        batch_size : int
            Rows per step.
        samples, predict_samples : int, optional
            Weight samples per training step, and per prediction: so many of the draws, if sampled.
            Default 1 and 100, for classes 4 and 500: few samples underestimate the probability of
            the classes that only a few of them favour.
        standardize : bool
            Bring inputs and real targets to mean 0 and deviation 1 for training (constant columns
            to 0); undone in everything that is returned. Counts, zeros and ones stay as they are.
        early_stopping : EarlyStopping, optional
        validation_fraction : float
            Share of the rows held out by `fit` to record (and stop by) a validation loss, >= 0
            and < 1. `partial_fit` trains on all its rows.
        dtype : {'float64', 'float32'}
            Of training and prediction; results are float64.
        random_state : None, int, numpy.random.Generator or numpy.random.RandomState
            With a whole number, the same data give bit-identical results on the same machine.
        progress : bool, optional
            Show a progress bar; by default only in a terminal or notebook.
        """
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.prior = prior
        self.likelihood = likelihood
        self.inference = inference
        self.estimator = estimator
        self.objective = objective
        self.kl_weights = kl_weights
        self.warm_up = warm_up
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
        """Everything learned, one flat vector; after sampling, all draws, one a row."""
        check_is_fitted(self)
        return self.draws_.flat if "draws_" in self.__dict__ else self.training_.theta

    @property
    def history_(self) -> list[Epoch]:
        """One entry for each epoch trained."""
        check_is_fitted(self)
        if "draws_" in self.__dict__:
            raise AttributeError(
                "a sampled posterior has no epochs; draws_.stats has the statistics of its steps, "
                "draws_.summary() a line of them"
            )
        return self.training_.history

    @property
    def n_iter_(self) -> int:
        """Number of epochs trained; after sampling, of draws of each chain."""
        check_is_fitted(self)
        return len(self.draws_.positions if "draws_" in self.__dict__ else self.history_)

    def fit(self: Self, X: Any, y: Any) -> Self:
        """Train, or sample, from scratch.

        Parameters
        ----------
        X : array-like (N, d_in)
        y : array-like (N,), for a regressor also (N, K)

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
            After Ctrl-C, which ends training or sampling but not the program; when a learned
            prior has collapsed; and when many draws diverged.
        """
        plan = self._plan()
        fitted, data = self._begin(X, lambda: self._first_targets(y, plan), plan, held_out=True)
        if plan.sampling is not None:
            model, rng = fitted["estimator_"].model, fitted["rng_"]
            draws = plan.sampling.run(model, *data.training, rng, plan.dtype, plan.progress)
            return self._take_over({**fitted, "draws_": draws})
        return self._train(fitted, data, plan.recipe(self.task), plan.progress)

    def _first_targets(self, y: Any, plan: Plan) -> Targets:
        """Read the targets of a first fit."""
        raise NotImplementedError

    def _next_targets(self, y: Any, dtype: Any) -> Array:
        """Read targets like those of the first fit: (N, K) in training's units and dtype."""
        raise NotImplementedError

    def _plan(self) -> Plan:
        return check_plan(self.get_params(deep=False), self.task)

    def _plan_to_go_on(self) -> Plan:
        """Return the plan of a `partial_fit`."""
        if "draws_" in self.__dict__:
            raise ValueError(
                "the model holds draws of its posterior, which partial_fit cannot train further; "
                "call fit to start anew"
            )
        return self._plan()

    def _begin(
        self, X: Any, read_targets: Callable[[], Targets], plan: Plan, held_out: bool
    ) -> tuple[dict[str, Any], Prepared]:
        """Return the fitted attributes before the first epoch, and the rows, ready for training."""
        noted = type(self)()  # scikit-learn's notes on X, as long as nothing is trained
        x = check_inputs(noted, X, first=True)
        targets = read_targets()
        y = targets.numbers
        check_consistent_length(x, y)
        rows = held_out_rows(len(x), plan.validation_fraction if held_out else 0.0)
        estimator = plan.build(x.shape[1], y.shape[1], targets.likelihood)
        rng = check_generator(self.random_state)
        seed = int(rng.integers(2**63))
        fitted = {**targets.fitted, "predict_seed_": seed, **_features(noted)}
        real = plan.standardize and targets.real
        data = prepared(x, y, rows, rng, plan.standardize, real, plan.dtype)
        fitted |= {**data.units, "estimator_": estimator, "rng_": rng}
        if not isinstance(estimator, DrawnWeights):
            fitted["training_"] = start(estimator, rng, plan.optimizer, plan.dtype)
        return fitted, data

    def _go_on(self: Self, X: Any, y: Any, plan: Plan, epochs: int) -> Self:
        """Train further from where an earlier call ended."""
        data = Prepared(self._check_pair(X, y), None, {})
        fitted: dict[str, Any] = {
            "training_": self.training_,
            "estimator_": self._same_model(plan),
            "rng_": copy.deepcopy(self.rng_),
        }
        return self._train(fitted, data, plan.recipe_to_go_on(epochs), plan.progress)

    def _train(
        self: Self, fitted: dict[str, Any], data: Prepared, recipe: Recipe, progress: bool | None
    ) -> Self:
        """Train from ``fitted['training_']`` on, then take over all of `fitted` at once."""
        before, failure = fitted["training_"], None
        try:
            state: Training = train(
                fitted["estimator_"],
                before,
                data.training,
                recipe,
                fitted["rng_"],
                data.held_out,
                progress,
            )
        except NonFiniteError as error:
            state, failure = error.training, error
        finished = len(state.history) > len(before.history)
        if finished or "estimator_" not in self.__dict__:
            self._take_over({**fitted, "training_": state})
        if failure is not None:
            raise failure
        if state.stopped == "interrupted":
            done = len(state.history) - len(before.history)
            warnings.warn(
                f"Training interrupted by user after {done} of {recipe.epochs} epochs; "
                "the model holds the state after the last finished epoch",
                UserWarning,
                stacklevel=3,
            )
        warn_of_collapse(fitted["estimator_"], state)
        return self

    def _take_over(self: Self, fitted: dict[str, Any]) -> Self:
        """Replace what an earlier fit has left."""
        if "x_mean_" in fitted:  # a new start: what is not replaced is void
            for name in ("feature_names_in_", "training_", "draws_", "columns_"):
                self.__dict__.pop(name, None)
        self.__dict__.update(fitted)
        return self

    def _same_model(self, plan: Plan) -> Estimator:
        """Return the plan's estimator for the fitted model, or say what has changed."""
        old: Any = self.estimator_
        likelihood = old.model.likelihood if plan.likelihood is None else plan.likelihood
        new: Any = plan.build(self.n_features_in_, old.model.outputs, likelihood)
        pairs = {
            "hidden_layer_sizes or activation": (new.model.network, old.model.network),
            "prior": (new.model.prior, old.model.prior),
            "likelihood": (new.model.likelihood, old.model.likelihood),
            "inference": (type(new.posterior), type(old.posterior)),
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
        return new

    def _check_rows(self, X: Any) -> Array:
        """Return `X` standardised as in `fit`."""
        check_is_fitted(self)
        x = check_inputs(self, X)
        return standardised(x, self.x_mean_, self.x_scale_, self.theta_.dtype, "X")

    def _check_pair(self, X: Any, y: Any) -> Rows:
        x = self._check_rows(X)
        targets = self._next_targets(y, x.dtype)
        check_consistent_length(x, targets)
        return Rows(x, targets)

    def _generator(self) -> np.random.Generator:
        return np.random.default_rng(self.predict_seed_)

    def _predict_samples(self) -> int:
        given = self.task.predict_samples if self.predict_samples is None else self.predict_samples
        samples = whole("predict_samples", given, 1, MOST_SAMPLES)
        point = isinstance(getattr(self.estimator_, "posterior", None), PointMass)
        return 1 if point else samples


def _features(noted: BaseEstimator) -> dict[str, Any]:
    """Return what scikit-learn has noted of the features: their number, and names if any."""
    return {name: value for name, value in vars(noted).items() if name.endswith("_in_")}
