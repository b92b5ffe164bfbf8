"""What the regressor and the classifier share: fitting, going on, and what they keep."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..gradients.catalogue import Estimator
from ..model.joint import Likelihood
from ..numeric.arguments import whole
from ..numeric.randomness import check_generator
from ..parts.posteriors import PointMass
from ..sampling.draws import DrawnWeights, Draws
from ..training import Epoch, NonFiniteError, Recipe, Training
from ..training.loop import start, train
from ..training.recipe import Rows
from .cautions import warn_of_collapse
from .habits import Base
from .plan import REGRESSION, Plan, Task, check_plan
from .rows import (
    NotFittedError,
    Prepared,
    check_columns,
    check_inputs,
    check_same_rows,
    column_names,
    held_out_rows,
    prepared,
    standardised,
)

__all__ = ["Learner", "Targets"]

Array = NDArray[Any]
Self = TypeVar("Self", bound="Learner")


class Targets(NamedTuple):
    """Targets of a first fit, as the likelihood takes them."""

    numbers: Array  # (N, K) float64
    likelihood: Likelihood
    real: bool  # whether they have units, and can be standardised
    fitted: dict[str, Any]  # attributes that describe them


class Learner(Base):
    """A learner without targets of its own; `BayesianMLPRegressor` documents the arguments."""

    task: ClassVar[Task] = REGRESSION
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
    # the constructor's, as far as predictions need them
    predict_samples: Any
    random_state: Any

    @property
    def theta_(self) -> Array:
        """Everything learned, one flat vector; after sampling, all draws, one a row."""
        self._need_fit()
        return self.draws_.flat if "draws_" in self.__dict__ else self.training_.theta

    @property
    def history_(self) -> list[Epoch]:
        """One entry for each epoch trained."""
        self._need_fit()
        if "draws_" in self.__dict__:
            raise AttributeError(
                "a sampled posterior has no epochs; draws_.stats has the statistics of its steps, "
                "draws_.summary() a line of them"
            )
        return self.training_.history

    @property
    def n_iter_(self) -> int:
        """Number of epochs trained; after sampling, of draws of each chain."""
        self._need_fit()
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

    def _need_fit(self) -> None:
        if "estimator_" not in self.__dict__:
            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet; call fit(X, y) first"
            )

    def _begin(
        self, X: Any, read_targets: Callable[[], Targets], plan: Plan, held_out: bool
    ) -> tuple[dict[str, Any], Prepared]:
        """Return the fitted attributes before the first epoch, and the rows, ready for training."""
        x, names = check_inputs(X), column_names(X)
        targets = read_targets()
        y = targets.numbers
        check_same_rows(X=x, y=y)
        rows = held_out_rows(len(x), plan.validation_fraction if held_out else 0.0)
        estimator = plan.build(x.shape[1], y.shape[1], targets.likelihood)
        rng = check_generator(self.random_state)
        seed = int(rng.integers(2**63))
        fitted = {**targets.fitted, "predict_seed_": seed, "n_features_in_": x.shape[1]}
        if names is not None:
            fitted["feature_names_in_"] = names
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
                *(fitted["estimator_"], before, data.training, recipe, fitted["rng_"]),
                *(data.held_out, progress),
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
            for name in ("feature_names_in_", "training_", "draws_"):
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
            "posterior": (type(new.posterior), type(old.posterior)),
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
        dtype = self.theta_.dtype
        x = check_inputs(X)
        names = self.__dict__.get("feature_names_in_")
        check_columns(X, x, self.n_features_in_, names, type(self).__name__)
        return standardised(x, self.x_mean_, self.x_scale_, dtype, "X")

    def _check_pair(self, X: Any, y: Any) -> Rows:
        x = self._check_rows(X)
        targets = self._next_targets(y, x.dtype)
        check_same_rows(X=x, y=targets)
        return Rows(x, targets)

    def _generator(self) -> np.random.Generator:
        return np.random.default_rng(self.predict_seed_)

    def _predict_samples(self) -> int:
        samples = whole("predict_samples", self.predict_samples, 1)
        point = isinstance(getattr(self.estimator_, "posterior", None), PointMass)
        return 1 if point else samples
