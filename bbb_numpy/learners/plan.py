"""Check the constructor arguments of a learner, and resolve them to parts.

An argument is a part (a prior, a likelihood, an optimizer, ...), the short name of one, or None for
the default. `check_plan` returns a `Plan`, which has the part that each argument stands for, and
whose method `recipe` returns the training recipe for a number of rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator, RandomState
from sklearn.utils._param_validation import (
    Interval,
    StrOptions,
    validate_parameter_constraints,
)

from ..model.joint import Likelihood, Model
from ..model.kl_weights import NoWarmUp
from ..model.objectives import FreeEnergy, Renyi
from ..numeric.validation import (
    COUNT,
    DTYPE,
    MAX_SAMPLES,
    MAX_STEPS,
    SAMPLES,
    STEPS,
    fraction,
)
from ..parts.likelihoods import HeteroscedasticLikelihood
from ..parts.network import MLP
from ..parts.relevance import ARDPrior
from ..registry import FAMILIES
from ..training import EarlyStopping, Recipe
from ..training.schedules import TrainingSchedule, schedule_for
from .defaults import (
    DEFAULTS,
    NOISE_HEAD_SCALE,
    SCHEDULED_ARGUMENTS,
    TRAINED,
    n_products,
    strategy_for,
)
from .ensemble import Ensemble
from .inference import default_chains, inferences, method_for
from .methods import Method
from .target_scale import TARGET_SCALES

__all__ = [
    "Plan",
    "check_plan",
    "constraints",
    "names_of",
    "resolve_defaults",
]

# arguments that accept a name in the registry, or an object of a registered class
NAMED_ARGUMENTS = (
    "prior",
    "likelihood",
    "objective",
    "kl_weights",
    "kl_warm_up",
    "optimizer",
    "sampler",
)
# registered objects by argument and name; `register` adds to these tables
TABLES = {name: FAMILIES[name].named for name in NAMED_ARGUMENTS}
# checks that convert NumPy integers to int, since products of int8 or int16 would overflow
COUNTS = {
    "epochs": STEPS,
    "batch_size": COUNT,
    "samples": SAMPLES,
    "predict_samples": SAMPLES,
}
AT_LEAST_1 = Interval(Integral, 1, None, closed="left")
UP_TO_MAX_SAMPLES = Interval(Integral, 1, MAX_SAMPLES, closed="both")
UP_TO_MAX_STEPS = Interval(Integral, 1, MAX_STEPS, closed="both")
CONSTRAINTS: dict[str, Any] = {
    # Iterators are refused: a second fit would find them empty, which means no hidden layer
    "hidden_layer_sizes": [tuple, list, np.ndarray, AT_LEAST_1, None],
    "epochs": [UP_TO_MAX_STEPS, None],
    "batch_size": [AT_LEAST_1, None],
    "samples": [UP_TO_MAX_SAMPLES, None],
    "predict_samples": [UP_TO_MAX_SAMPLES, None],
    "standardize": ["boolean"],
    "target": [StrOptions(set(TARGET_SCALES)), None],
    "early_stopping": [EarlyStopping, None],
    # `check_plan` checks the range, since scikit-learn's Interval fails for a Fraction
    "validation_fraction": [Real],
    "random_state": [
        Interval(Integral, 0, None, closed="left"),
        Generator,
        RandomState,
        None,
    ],
    "progress": ["boolean", None],
    "verbose": ["verbose"],
    "warm_start": ["boolean"],
    "class_weight": [StrOptions({"balanced"}), dict, None],
}


def names_of(argument: str) -> Mapping[str, Any]:
    """Return the objects that names given as `argument` stand for; empty if it takes no names."""
    if argument == "inference":
        return inferences()
    return TABLES.get(argument, {})


@cache
def constraints(target_kinds: tuple[str, ...], n_registered: int) -> dict[str, Any]:
    """Return scikit-learn's parameter constraints of a learner, by name of the argument.

    Parameters
    ----------
    target_kinds : tuple of str
        Kinds of targets, 'real', 'count' or 'class', whose likelihoods are allowed.
    n_registered : int
        Number of registered names. It is a key of the cache, so that the table is made anew after a
        registration.
    """
    likelihoods = {
        name: likelihood
        for name, likelihood in names_of("likelihood").items()
        if likelihood.target_kind in target_kinds
    }
    table = CONSTRAINTS | {
        "activation": [StrOptions(set(FAMILIES["activation"].named)), None],
        "gradient_estimator": [
            StrOptions(set(FAMILIES["estimator"].named)),
            type,
            None,
        ],
        "inference": [*_names_or_types(inferences()), Ensemble, None],
        "likelihood": [*_names_or_types(likelihoods), None],
    }
    for name in ("prior", "objective", "optimizer"):
        table[name] = [*_names_or_types(names_of(name)), None]
    for name in ("kl_weights", "kl_warm_up"):
        table[name] = [StrOptions(set(names_of(name))), callable, None]
    return table


def _names_or_types(table: Mapping[str, Any]) -> list[Any]:
    """Return constraints that accept names in a table, or objects of the types of its values."""
    return [StrOptions(set(table)), *dict.fromkeys(map(type, table.values()))]


class Plan(NamedTuple):
    """Arguments of a learner's constructor, and the parts that they stand for.

    Parameters
    ----------
    task : {'regression', 'classification'}
    method : Method
        The method of inference.
    params : mapping
        Arguments as the user has given them, by name.
    parts : dict
        Parts and numbers in place of names and of None, by the name of the argument.
    """

    task: str
    method: Method
    params: Mapping[str, Any]
    parts: dict[str, Any]

    def recipe(
        self,
        n_rows: int,
        epochs: int | None = None,
        *,
        from_scratch: bool,
        stops_early: bool,
    ) -> Recipe | None:
        """Return the training recipe for `n_rows` training rows, or None if the method samples.

        Parameters
        ----------
        n_rows : int
            Number of training rows.
        epochs : int, optional
            Number of epochs of a call of `partial_fit`. By default it is the argument of the
            constructor or, if that is None, the number of the schedule.
        from_scratch : bool
            Whether training starts from scratch. If it continues, there is no warm-up by default.
        stops_early : bool
            Whether the argument `early_stopping` is used.
        """
        if self.method.is_sampled:
            return None
        parts = self.parts
        if epochs is None and self.params["epochs"] is None:
            parts = parts | self._scheduled(n_rows)
        warm_up = parts["kl_warm_up"]
        if self.params["kl_warm_up"] is None and not from_scratch:
            warm_up = NoWarmUp()
        return Recipe(
            parts["optimizer"],
            epochs=epochs or parts["epochs"],
            batch_size=parts["batch_size"],
            samples=parts["samples"],
            kl_weights=parts["kl_weights"],
            warm_up=warm_up,
            early_stopping=parts["early_stopping"] if stops_early else None,
        )

    def schedule(self, n_rows: int) -> TrainingSchedule:
        """Return the default training schedule for `n_rows` rows, used if `epochs` is None."""
        batch_size = None
        if self.params["batch_size"] is not None:
            batch_size = self.parts["batch_size"]
        group = self.method.schedule(self.parts)
        return schedule_for(self.task, group, n_rows, batch_size)

    def _scheduled(self, n_rows: int) -> dict[str, Any]:
        """Return the schedule's values, for `n_rows` rows, of arguments that the user left at None.

        The keys are those of 'epochs', 'batch_size', 'samples' and 'optimizer' that are None.
        """
        schedule = self.schedule(n_rows)
        scheduled: dict[str, Any] = {
            name: getattr(schedule, name)
            for name in SCHEDULED_ARGUMENTS
            if self.params[name] is None
        }
        rate = schedule.learning_rate
        if self.params["optimizer"] is None and rate is not None:
            optimizer = replace(self.parts["optimizer"], learning_rate=rate)
            scheduled["optimizer"] = optimizer
        return scheduled

    def build(
        self, inputs: int, targets: int, likelihood: Likelihood, **settings: Any
    ) -> Any:
        """Build the model, and return the object that computes its posterior; see `Method.build`.

        Parameters
        ----------
        inputs, targets : int
            Number of columns of X and of y.
        likelihood : Likelihood
            Likelihood of the plan, or the one that the learner has chosen for its classes.
        **settings
            Further fields of the network, `offset` and `ceiling` where counts have them.
        """
        sizes = (inputs, *self.parts["hidden_layer_sizes"], likelihood.heads(targets))
        network = MLP(sizes, self.parts["activation"], **settings)
        prior = self.parts["prior"]
        is_default = self.params["prior"] is None and isinstance(prior, ARDPrior)
        if is_default and isinstance(likelihood, HeteroscedasticLikelihood):
            # The noise is drawn to a constant, from which the rows may move it (D68)
            factors = (1.0,) * targets + (NOISE_HEAD_SCALE,) * targets
            prior = replace(prior, output_scales=factors)
        model = Model(network, prior, likelihood)
        return self.method.build(model, self.parts)


def resolve_defaults(
    task: str, params: Mapping[str, Any], shape: tuple[int, int] | None = None
) -> Plan:
    """Return a plan in which names and None among a learner's arguments are replaced by values.

    Parameters
    ----------
    task : {'regression', 'classification'}
        Task, which determines the defaults.
    params : mapping
        All arguments of the constructor by name: parts, short names of parts, or None. They are not
        checked.
    shape : tuple of int, optional
        Shape (N, d_in) of the training rows, on which the default of `inference` depends. Without
        it, the default is that of training, 'mean-field'.
    """
    strategy = TRAINED
    if params["inference"] is None:
        if shape is not None:
            strategy = strategy_for(task, params, *shape)
        params = {**params, "inference": "mean-field"}
    parts = dict(params)
    tables = TABLES | {"inference": inferences()}
    for name, value in params.items():
        if isinstance(value, str):
            parts[name] = tables.get(name, {}).get(value, value)
    defaults = {**DEFAULTS[task], **strategy.parts}
    if strategy.name == "chains" and shape is not None:
        likelihood = parts["likelihood"] or defaults["likelihood"]
        products = n_products(params["hidden_layer_sizes"], *shape)
        parts["inference"] = default_chains(products, likelihood)
    elif strategy.name == "ensemble":
        parts["inference"] = Ensemble()
    if strategy is not TRAINED:
        params = {**params, "inference": parts["inference"]}
    method = method_for(params["inference"], parts["inference"])
    defaults["objective"] = method.default_objective
    if isinstance(parts["likelihood"], HeteroscedasticLikelihood):
        # Gradients are clipped: for rare weight samples the noise is tiny at a row where the mean
        # is wrong, whose gradient is hundreds of times as long as that of all others (D3)
        defaults["optimizer"] = replace(defaults["optimizer"], clip=20.0)
    if parts["objective"] is not None:
        defaults["objective"] = parts["objective"]
    # Objectives other than the free energy have no KL term to warm up
    if not isinstance(defaults["objective"], FreeEnergy):
        defaults["kl_warm_up"] = NoWarmUp()
    defaults |= method.defaults[task]
    for name, value in params.items():
        if value is None:
            parts[name] = defaults.get(name)
    if not method.is_sampled:
        few_rows = schedule_for(task, method.schedule(parts), 1)
        for name in SCHEDULED_ARGUMENTS:
            if parts[name] is None:
                parts[name] = getattr(few_rows, name)
    return Plan(task, method, params, parts)


def check_plan(learner: Any, shape: tuple[int, int] | None = None) -> Plan:
    """Check all constructor arguments of a learner, and return the plan that they describe.

    Parameters
    ----------
    learner : Learner
        The learner, fitted or not.
    shape : tuple of int, optional
        Shape (N, d_in) of the training rows, as for `resolve_defaults`.

    Raises
    ------
    TypeError, ValueError
        If an argument, which the message names, has a wrong type, is out of range, or contradicts
        another one. scikit-learn's `InvalidParameterError` is both.
    """
    params = learner.get_params(deep=False)
    for name, value in params.items():
        # np.timedelta64 derives from NumPy's integers, so that scikit-learn would accept it
        if isinstance(value, np.timedelta64):
            raise TypeError(
                f"{name} must not be a time difference; got {value!r}: give a plain number"
            )
    validate_parameter_constraints(
        learner._parameter_constraints, params, caller_name=type(learner).__name__
    )
    plan = resolve_defaults(learner.task, params, shape)
    parts = plan.parts
    parts["dtype"] = DTYPE("dtype", params["dtype"])
    for name, rule in COUNTS.items():
        if parts[name] is not None and type(parts[name]) is not int:
            parts[name] = rule(name, parts[name])
    parts["validation_fraction"] = fraction(
        "validation_fraction", params["validation_fraction"]
    )
    sizes = np.atleast_1d(np.asarray(parts["hidden_layer_sizes"]))
    integers = sizes.dtype.kind in "iu" and sizes.ndim == 1
    if sizes.size and not (integers and sizes.min() >= 1):
        raise ValueError(
            "hidden_layer_sizes must be a tuple of whole numbers >= 1, e.g. (100, 100), or () for "
            f"no hidden layer; got {params['hidden_layer_sizes']!r}"
        )
    parts["hidden_layer_sizes"] = tuple(sizes.tolist())
    for name in ("kl_weights", "kl_warm_up"):
        # a class is callable, so that scikit-learn's check accepts it
        if isinstance(params[name], type):
            raise TypeError(
                f"{name} must be a function or an instance, not a class; got {params[name]!r}"
            )
    if isinstance(parts["objective"], Renyi) and parts["objective"].alpha == 1.0:
        # The Renyi bound of alpha = 1 is the free energy, for which more gradient estimators exist
        parts["objective"] = FreeEnergy()
    if params["warm_start"] and params["validation_fraction"] > 0:
        raise ValueError(
            "warm_start=True cannot hold rows out, since an earlier fit may have trained on them; "
            f"leave validation_fraction={params['validation_fraction']!r} out"
        )
    plan.method.check(plan.params, parts)
    return plan
