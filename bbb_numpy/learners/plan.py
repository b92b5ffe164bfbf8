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
from sklearn.utils._param_validation import Interval, StrOptions

from ..gradients.estimator import GradientEstimator, is_linear
from ..gradients.estimator import GradientEstimator as Estimator
from ..model.joint import Likelihood, Model
from ..model.kl_weights import LinearWarmUp, NoWarmUp, proportional_kl_weights
from ..model.objectives import EUBO, MAP, MLE, FreeEnergy, Renyi
from ..numeric.validation import (
    COUNT,
    DTYPE,
    MAX_SAMPLES,
    MAX_STEPS,
    SAMPLES,
    STEPS,
    fraction,
)
from ..parts.likelihoods import GaussianLikelihood, HeteroscedasticLikelihood
from ..parts.network import MLP
from ..parts.posteriors import MeanField, PointMass
from ..parts.priors import ClosedFormPrior, GaussianPrior, LayerwiseGaussianPrior
from ..registry import FAMILIES
from ..sampling.draws import DrawnWeights
from ..training import EarlyStopping, Recipe
from ..training.laplace import Laplace, Linearised
from ..training.optimizers import IVON, Adam, Cosine
from ..training.schedules import TrainingSchedule, schedule_for
from .inference import Sampling, inferences

__all__ = [
    "DEFAULTS",
    "Plan",
    "check_plan",
    "constraints",
    "resolve_defaults",
    "updated",
    "with_fields",
]


# Defaults of the arguments, by task; those of `epochs`, `batch_size` and `samples` are in the table
# `SCHEDULES`. Chosen on splits of four of the tables of benchmarks/tables.py, as it says: little
# noise to start with, and a KL term that comes in slowly, let the network fit before the prior
# prunes units that it has not used yet; sigma starts above the report's 0.0067, so that few steps
# are enough for it to grow where there are few data.
REGRESSION: dict[str, Any] = {
    "hidden_layer_sizes": (20,),
    "prior": GaussianPrior(0.5),
    "likelihood": GaussianLikelihood(0.1, learn=True),
    "kl_weights": proportional_kl_weights,
    "kl_warm_up": LinearWarmUp(0.5),  # of `fit`, where the objective has a KL term
    "optimizer": Adam(learning_rate=1e-2, schedule=Cosine()),
    "predict_samples": 100,
}
CLASSIFICATION = REGRESSION | {
    "hidden_layer_sizes": (50,),
    "prior": GaussianPrior(1.5),
    "likelihood": None,  # chosen from the number of classes
    "kl_warm_up": NoWarmUp(),
    "predict_samples": 500,
}
DEFAULTS = {"regression": REGRESSION, "classification": CLASSIFICATION}
# The noise that Laplace's approximation starts with: the first MAP estimate is made with it
LAPLACE_LIKELIHOOD = GaussianLikelihood(0.5, learn=True)
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
# Arguments that only training has
TRAINING = (
    *(
        "gradient_estimator",
        "objective",
        "kl_weights",
        "kl_warm_up",
        "optimizer",
        "epochs",
    ),
    *("samples", "early_stopping", "validation_fraction", "warm_start"),
)


SCHEDULED = ("epochs", "batch_size", "samples")  # defaults are in `SCHEDULES`


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
    params : mapping
        Arguments as the user has given them, by name.
    parts : dict
        Parts and numbers in place of names and of None, by the name of the argument.
    """

    task: str
    params: Mapping[str, Any]
    parts: dict[str, Any]

    @property
    def sampling(self) -> Sampling | None:
        """How the posterior is sampled; None where it is trained."""
        inference = self.parts["inference"]
        return inference if isinstance(inference, Sampling) else None

    @property
    def rotates_inputs(self) -> bool:
        """Whether collinear inputs are rotated to their principal axes (D60).

        An isotropic prior is the same in all directions, and so does not notice.
        """
        isotropic = isinstance(
            self.parts["prior"], GaussianPrior | LayerwiseGaussianPrior
        )
        return isotropic and isinstance(self.parts["inference"], MeanField | Sampling)

    def recipe(
        self, n_rows: int, epochs: int | None = None, *, anew: bool, stops: bool
    ) -> Recipe:
        """Return the training recipe for `n_rows` rows.

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
        group = schedule_group(self.params, self.parts)
        return schedule_for(self.task, group, n_rows, batch_size)

    def _scheduled(self, n_rows: int) -> dict[str, Any]:
        """Return the parts that the schedule for `n_rows` rows decides."""
        schedule = self.schedule(n_rows)
        scheduled: dict[str, Any] = {
            name: getattr(schedule, name)
            for name in SCHEDULED
            if self.params[name] is None
        }
        rate = schedule.learning_rate
        if self.params["optimizer"] is None and rate is not None:
            optimizer = replace(self.parts["optimizer"], learning_rate=rate)
            scheduled["optimizer"] = optimizer
        return scheduled

    def build(
        self, inputs: int, targets: int, likelihood: Likelihood
    ) -> Estimator | DrawnWeights:
        """Return the estimator for data of these widths, or what stands for it if sampled."""
        sizes = (inputs, *self.parts["hidden_layer_sizes"], likelihood.heads(targets))
        model = Model(
            MLP(sizes, self.parts["activation"]), self.parts["prior"], likelihood
        )
        if isinstance(self.parts["inference"], Sampling):
            return DrawnWeights(model)
        if isinstance(self.parts["inference"], Laplace):
            return Linearised(model, self.parts["inference"])
        make, objective = self.parts["gradient_estimator"], self.parts["objective"]
        if make is None:
            make = (
                "self-normalised" if isinstance(objective, EUBO) else "reparameterised"
            )
            known = isinstance(model.prior, ClosedFormPrior) and isinstance(
                objective, FreeEnergy
            )
            if known and isinstance(self.parts["optimizer"], IVON):
                make = "local-reparameterisation"  # less noise in the curvature
        if isinstance(make, str):
            make = FAMILIES["estimator"].named[make]
        built: Estimator = make(model, self.parts["inference"], objective)
        return built


def schedule_group(params: Mapping[str, Any], parts: Mapping[str, Any]) -> str:
    """Return the key of `schedules.INFERENCES` by which a learner trains."""
    if isinstance(parts["optimizer"], IVON):
        return "ivon" if params["inference"] == "ivon" else "ivon-optimizer"
    if isinstance(parts["inference"], Laplace) or not is_linear(parts["objective"]):
        return "exact"
    return "point" if isinstance(parts["inference"], PointMass) else "variational"


def resolve_defaults(task: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part or number that each argument stands for, None where that is nothing.

    Parameters
    ----------
    task : {'regression', 'classification'}
    params : mapping
        All arguments of the constructor by name: parts, short names of parts, or None.
    """
    named = dict(params)
    tables = TABLES | {"inference": inferences()}
    for name, value in params.items():
        if isinstance(value, str):
            named[name] = tables.get(name, {}).get(value, value)
    usual_objective = FAMILIES["objective"].named["elbo"]
    if isinstance(named["inference"], PointMass | Laplace):
        usual_objective = MLE() if params["inference"] == "mle" else MAP()
    defaults = {**DEFAULTS[task], "objective": usual_objective}
    if isinstance(named["inference"], Laplace):
        defaults["prior"] = replace(defaults["prior"], learn=True)
        if defaults["likelihood"] is not None:
            defaults["likelihood"] = LAPLACE_LIKELIHOOD
    if isinstance(named["likelihood"], HeteroscedasticLikelihood):
        # Rare weights are sure of a wrong mean: one row is hundreds of times as steep as all (D3)
        defaults["optimizer"] = replace(defaults["optimizer"], clip=20.0)
    objective = usual_objective if named["objective"] is None else named["objective"]
    if not isinstance(objective, FreeEnergy):  # without a KL term
        defaults["kl_warm_up"] = NoWarmUp()
    if isinstance(params["inference"], str) and params["inference"] == "ivon":
        # the curvature of classes vanishes as they are separated
        trust = 0.5 if task == "classification" else 30.0
        defaults["optimizer"] = IVON(trust=trust, schedule=Cosine())
    if isinstance(named["inference"], Sampling):
        defaults |= dict.fromkeys(TRAINING)
    parts = {**named}
    for name, value in named.items():
        if value is None:
            parts[name] = defaults.get(name)
    if not isinstance(named["inference"], Sampling):
        few_rows = schedule_for(task, schedule_group(params, parts), 1)
        for name in SCHEDULED:
            if parts[name] is None:
                parts[name] = getattr(few_rows, name)
    return parts


def check_plan(learner: Any) -> Plan:
    """Check all constructor arguments of a learner, and return what they stand for."""
    params = learner.get_params(deep=False)
    for name, value in params.items():
        if isinstance(value, np.timedelta64):  # which is one of NumPy's whole numbers
            raise TypeError(
                f"{name} must be no span of time; got {value!r}: give a plain number"
            )
    learner._validate_params()  # by its `_parameter_constraints`
    parts = resolve_defaults(learner.task, params)
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
    plan = Plan(learner.task, params, parts)
    _check_together(plan)
    return plan


def _check_together(plan: Plan) -> None:
    """Raise ValueError for arguments that contradict each other."""
    params, parts = plan.params, plan.parts
    if params["warm_start"] and params["validation_fraction"] > 0:
        raise ValueError(
            "warm_start=True cannot hold rows out, since an earlier fit may have trained on them; "
            f"leave validation_fraction={params['validation_fraction']!r} out"
        )
    _check_unused(params, parts["inference"])
    if params["inference"] == "ivon" and not isinstance(parts["optimizer"], IVON):
        raise ValueError(
            f"inference='ivon' is trained by IVON; got optimizer={params['optimizer']!r}. Leave it "
            "out, or use inference='mean-field'"
        )
    if isinstance(parts["inference"], Sampling | Laplace):
        return
    kind = params["gradient_estimator"]
    if isinstance(kind, type) and not issubclass(kind, GradientEstimator):
        raise TypeError(
            f"gradient_estimator must be a class such as Reparameterised, or its name; got {kind}"
        )
    inference, objective = params["inference"], parts["objective"]
    point = isinstance(parts["inference"], PointMass)
    wanted = (
        {"map": MAP, "mle": MLE}.get(inference) if isinstance(inference, str) else None
    )
    if isinstance(objective, MLE | MAP) != point or (
        wanted and not isinstance(objective, wanted)
    ):
        trains = "a single value" if point else "a distribution"
        raise ValueError(
            f"inference={inference!r} trains {trains} of each weight, which contradicts "
            f"objective={objective}; leave one of the two out, or use inference='map' or 'mle' for "
            "single values"
        )
    if isinstance(objective, EUBO) and parts["samples"] == 1:
        raise ValueError(
            "samples must be at least 2 for the EUBO, better 100: the weight of a single "
            "sample is 1 whatever the data say, so that nothing would be learned; got 1"
        )


def _check_unused(params: Mapping[str, Any], inference: Any) -> None:
    """Refuse what says nothing to a sampler, or to Laplace, rather than ignore it."""
    sampled = isinstance(inference, Sampling)
    if not sampled and not isinstance(inference, Laplace):
        return
    used = ("warm_start",) if sampled else ("optimizer", "epochs")
    unused = [name for name in TRAINING if params[name] and name not in used]
    if unused:
        given = ", ".join(f"{name}={params[name]!r}" for name in unused)
        does = (
            "draws from the posterior and trains nothing"
            if sampled
            else "trains to MAP alone"
        )
        raise ValueError(
            f"inference={params['inference']!r} {does}, so it cannot use {given}; leave that out, "
            "or use inference='mean-field'"
        )
    seed = params["random_state"]
    if sampled and inference.checkpoint is not None and not isinstance(seed, Integral):
        raise ValueError(
            "random_state must be a whole number with Sampling(checkpoint=...): without, the same "
            f"call begins another run, which cannot go on from there; got {seed!r}"
        )


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
    parts = found if task is None else resolve_defaults(task, found)
    for name, more in inside.items():
        given = parts[name] if found[name] is None else found[name]
        changed = updated(f"{name}={given!r}", _fields(name, given), more)
        found[name] = replace(_part_named(name, given), **changed)
    return found
