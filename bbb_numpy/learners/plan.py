"""What a learner's constructor arguments may be, and the parts that they stand for.

An argument is a part, the short name of one, or None for a default. Fields of parts are parameters
too, for `set_params` and grid searches: ``prior__scale``, ``optimizer__learning_rate``. Parts are
frozen, so that a part is replaced by another one, never changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
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
from ..registry import FAMILIES
from ..training import EarlyStopping, Recipe
from ..training.schedules import TrainingSchedule, schedule_for
from .defaults import DEFAULTS, SCHEDULED_ARGUMENTS
from .inference import inferences, method_for
from .methods import Method

__all__ = [
    "Plan",
    "check_plan",
    "constraints",
    "resolve_defaults",
    "updated",
    "with_fields",
]

# Arguments that take the name of an entry of the registry, or an object of its classes
NAMED = (
    "prior",
    "likelihood",
    "objective",
    "kl_weights",
    "kl_warm_up",
    "optimizer",
    "sampler",
)
TABLES = {name: FAMILIES[name].named for name in NAMED}  # which a registration adds to


def _named(argument: str) -> Mapping[str, Any]:
    """Return what an argument can name, by name; nothing if it takes no names."""
    if argument == "inference":
        return inferences()
    return TABLES.get(argument, {})


COUNTS = {
    "epochs": STEPS,
    "batch_size": COUNT,
    "samples": SAMPLES,
    "predict_samples": SAMPLES,
}


def _count(most: int | None) -> Interval:
    return Interval(Integral, 1, most, closed="left" if most is None else "both")


CONSTRAINTS: dict[str, Any] = {
    # no iterator: it would be empty in the second fit, and () means that there is no hidden layer
    "hidden_layer_sizes": [tuple, list, np.ndarray, _count(None), None],
    "epochs": [_count(MAX_STEPS), None],
    "batch_size": [_count(None), None],
    "samples": [_count(MAX_SAMPLES), None],
    "predict_samples": [_count(MAX_SAMPLES), None],
    "standardize": ["boolean"],
    "early_stopping": [EarlyStopping, None],
    "validation_fraction": [Real],  # a range would ask NumPy whether a Fraction is nan
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


@cache
def constraints(target_kinds: tuple[str, ...], n_registered: int) -> dict[str, Any]:
    """Return what scikit-learn checks of a learner for targets of these kinds.

    It is made anew when a name has been registered, of which there are `n_registered`.
    """
    named = FAMILIES["likelihood"].named.items()
    likelihoods = {name: one for name, one in named if one.target_kind in target_kinds}
    estimators, activations = FAMILIES["estimator"].named, FAMILIES["activation"].named
    return {
        **CONSTRAINTS,
        "activation": [StrOptions(set(activations))],
        "gradient_estimator": [StrOptions(set(estimators)), type, None],
        "inference": _part(inferences()),
        "likelihood": [*_part(likelihoods), None],
        **{
            name: [*_part(_named(name)), None]
            for name in ("prior", "objective", "optimizer")
        },
        **{
            name: [StrOptions(set(_named(name))), callable, None]
            for name in ("kl_weights", "kl_warm_up")
        },
    }


def _part(table: Mapping[str, Any]) -> list[Any]:
    return [StrOptions(set(table)), *dict.fromkeys(map(type, table.values()))]


class Plan(NamedTuple):
    """The arguments of a constructor, and the parts that they stand for.

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
        self, n_rows: int, epochs: int | None = None, *, anew: bool, stops: bool
    ) -> Recipe | None:
        """Return the training recipe for `n_rows` rows; None for what is sampled.

        Parameters
        ----------
        n_rows : int
            Number of training rows.
        epochs : int, optional
            Number of epochs of this call, as `partial_fit` is given it. By default the argument
            of the constructor or, if that is None, the schedule.
        anew : bool
            Whether training starts from scratch. If it goes on, there is no default warm-up.
        stops : bool
            Whether `early_stopping` is heeded.
        """
        if self.method.is_sampled:
            return None
        parts = self.parts
        if epochs is None and self.params["epochs"] is None:
            parts = parts | self._scheduled(n_rows)
        no_warm_up = self.params["kl_warm_up"] is None and not anew
        return Recipe(
            parts["optimizer"],
            epochs=epochs or parts["epochs"],
            batch_size=parts["batch_size"],
            samples=parts["samples"],
            kl_weights=parts["kl_weights"],
            warm_up=NoWarmUp() if no_warm_up else parts["kl_warm_up"],
            early_stopping=parts["early_stopping"] if stops else None,
        )

    def schedule(self, n_rows: int) -> TrainingSchedule:
        """Return how `n_rows` rows are trained on if `epochs` is not given."""
        given = self.params["batch_size"] is not None
        batch_size = self.parts["batch_size"] if given else None
        group = self.method.schedule(self.parts)
        return schedule_for(self.task, group, n_rows, batch_size)

    def _scheduled(self, n_rows: int) -> dict[str, Any]:
        """Return the parts that the schedule for `n_rows` rows decides."""
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

    def build(self, inputs: int, targets: int, likelihood: Likelihood) -> Any:
        """Return what stands for the posterior, see `Method.build`.

        Parameters
        ----------
        inputs, targets : int
            Columns of X and of y.
        likelihood : Likelihood
            That of the plan, or what the learner has chosen for its classes.
        """
        sizes = (inputs, *self.parts["hidden_layer_sizes"], likelihood.heads(targets))
        network = MLP(sizes, self.parts["activation"])
        model = Model(network, self.parts["prior"], likelihood)
        return self.method.build(model, self.parts)


def resolve_defaults(task: str, params: Mapping[str, Any]) -> Plan:
    """Return the arguments of a learner with the part or number that each stands for.

    Parameters
    ----------
    task : {'regression', 'classification'}
    params : mapping
        All arguments of the constructor by name: parts, short names of parts, or None.
    """
    parts = dict(params)
    tables = TABLES | {"inference": inferences()}
    for name, value in params.items():
        if isinstance(value, str):
            parts[name] = tables.get(name, {}).get(value, value)
    method = method_for(params["inference"], parts["inference"])
    defaults = {**DEFAULTS[task], "objective": method.usual_objective}
    if isinstance(parts["likelihood"], HeteroscedasticLikelihood):
        # Rare weights are sure of a wrong mean: one row is hundreds of times as steep as all (D3)
        defaults["optimizer"] = replace(defaults["optimizer"], clip=20.0)
    if parts["objective"] is not None:
        defaults["objective"] = parts["objective"]
    if not isinstance(defaults["objective"], FreeEnergy):  # without a KL term
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


def check_plan(learner: Any) -> Plan:
    """Check all constructor arguments of a learner, and return what they stand for."""
    params = learner.get_params(deep=False)
    for name, value in params.items():
        if isinstance(value, np.timedelta64):  # which is one of NumPy's whole numbers
            raise TypeError(
                f"{name} must be no span of time; got {value!r}: give a plain number"
            )
    validate_parameter_constraints(
        learner._parameter_constraints, params, caller_name=type(learner).__name__
    )
    plan = resolve_defaults(learner.task, params)
    parts = plan.parts
    parts["dtype"] = DTYPE("dtype", params["dtype"])
    # products of NumPy's small integers would overflow
    for name, rule in COUNTS.items():
        if parts[name] is not None and type(parts[name]) is not int:
            parts[name] = rule(name, parts[name])
    parts["validation_fraction"] = fraction(
        "validation_fraction", params["validation_fraction"]
    )
    hidden = np.atleast_1d(np.asarray(parts["hidden_layer_sizes"]))
    if hidden.size and (
        hidden.dtype.kind not in "iu" or hidden.ndim > 1 or hidden.min() < 1
    ):
        raise ValueError(
            "hidden_layer_sizes must be a tuple of whole numbers >= 1, e.g. (100, 100), or () for "
            f"no hidden layer; got {params['hidden_layer_sizes']!r}"
        )
    parts["hidden_layer_sizes"] = tuple(hidden.tolist())
    for name in ("kl_weights", "kl_warm_up"):
        if isinstance(params[name], type):  # which can be called, too
            raise TypeError(
                f"{name} must be a function or an object of one; got {params[name]!r}"
            )
    if isinstance(parts["objective"], Renyi) and parts["objective"].alpha == 1.0:
        # its limit, with the estimators that this one allows
        parts["objective"] = FreeEnergy()
    if params["warm_start"] and params["validation_fraction"] > 0:
        raise ValueError(
            "warm_start=True cannot hold rows out, since an earlier fit may have trained on them; "
            f"leave validation_fraction={params['validation_fraction']!r} out"
        )
    plan.method.check(params, parts)
    return plan


def _part_named(name: str, value: Any) -> Any:
    """Return the part that an argument or a field of one is, maybe by its name; else None."""
    # 'mle' is no part but a posterior and an objective together
    if isinstance(value, str):
        value = None if value == "mle" else _named(name).get(value)
    return value if is_dataclass(value) and not isinstance(value, type) else None


def _fields(name: str, value: Any) -> dict[str, Any]:
    """Return the fields of the part that a value is or names; of all else none."""
    part = _part_named(name, value)
    return (
        {}
        if part is None
        else {one.name: getattr(part, one.name) for one in fields(part)}
    )


def with_fields(held: Mapping[str, Any], parts: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is held, and the fields of its parts by names such as ``prior__scale``.

    Where a learner holds None, the part is the one that this stands for.
    """
    found = dict(held)
    for name, value in held.items():
        inside = _fields(name, parts[name] if value is None else value)
        deeper = with_fields(inside, inside)
        found |= {f"{name}__{field}": inner for field, inner in deeper.items()}
    return found


def updated(
    owner: str,
    held: Mapping[str, Any],
    changes: Mapping[str, Any],
    task: str | None = None,
) -> dict[str, Any]:
    """Return the values that an owner holds, with changes to them or to fields of their parts.

    A part is replaced: ``{"prior": "laplace", "prior__scale": 0.2}`` makes ``LaplacePrior(0.2)``.
    Where a learner holds None, the part is the default of its `task`.
    """
    found, inside = dict(held), dict[str, dict[str, Any]]()
    for name, value in changes.items():
        head, deeper, rest = name.partition("__")
        if head not in held:
            raise ValueError(
                f"Invalid parameter {head!r} for {owner}. Valid parameters are: {list(held)!r}."
            )
        if deeper:
            inside.setdefault(head, {})[rest] = value
        else:
            found[head] = value
    parts = found if task is None else resolve_defaults(task, found).parts
    for name, more in inside.items():
        given = parts[name] if found[name] is None else found[name]
        changed = updated(f"{name}={given!r}", _fields(name, given), more)
        found[name] = replace(_part_named(name, given), **changed)
    return found
