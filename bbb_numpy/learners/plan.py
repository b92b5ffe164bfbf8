"""A learner's constructor arguments: their defaults, and checks that name the argument."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import replace
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from ..gradients.catalogue import (
    ACTIVATIONS,
    ESTIMATORS,
    KL_WEIGHTS,
    LIKELIHOODS,
    OBJECTIVES,
    PRIORS,
    WARM_UPS,
    Estimator,
    kinds,
    named,
)
from ..gradients.family import Family, Posterior
from ..model.joint import Likelihood, Model, Prior
from ..model.kl_weights import LinearWarmUp, NoWarmUp, Shares, WarmUp, proportional_kl_weights
from ..model.objectives import EUBO, MLE, FreeEnergy, Objective, Renyi
from ..numeric.validation import (
    DTYPE,
    MOST_SAMPLES,
    MOST_STEPS,
    OneOf,
    Optional,
    check_random_state,
    flag,
    instead,
    real,
    whole,
)
from ..parts.discrete import BernoulliLikelihood, CategoricalLikelihood
from ..parts.likelihoods import GaussianLikelihood
from ..parts.network import MLP
from ..parts.priors import GaussianPrior
from ..sampling.draws import DrawnWeights
from ..training import EarlyStopping, Recipe
from ..training.optimizers import SGD, Adam, Cosine, Momentum, Optimizer
from .inference import (
    Sampling,
    check_inference,
    check_objective,
    natural_objective,
    refuse_training,
)

__all__ = [
    "CLASSIFICATION",
    "REGRESSION",
    "Plan",
    "Task",
    "check_class_weight",
    "check_function",
    "check_part",
    "check_plan",
    "check_sizes",
    "check_verbose",
]


class Task(NamedTuple):
    """What distinguishes the two learners' arguments."""

    prior: Any  # the default
    likelihood: Any  # the default; None: chosen from the number of classes
    kl_warm_up: WarmUp  # the default of `fit`, where the objective allows one
    likelihoods: tuple[type, ...]  # what is accepted
    elsewhere: str  # what to do about the others
    hidden: tuple[int, ...]  # the other defaults that differ
    epochs: int
    samples: int
    predict_samples: int


# Measured, see benchmarks/defaults.py. Little noise to start with, and a KL term that comes in
# slowly, let the network fit before the prior prunes units that it has not used yet; sigma starts
# above the report's 0.0067, so that few steps are enough for it to grow where there are few data.
REGRESSION = Task(
    GaussianPrior(0.5),
    GaussianLikelihood(0.1, learn=True),
    LinearWarmUp(0.5),
    kinds(LIKELIHOODS),
    "",
    hidden=(20,),
    epochs=1000,
    samples=1,
    predict_samples=100,
)
CLASSIFICATION = Task(
    GaussianPrior(1.5),
    None,
    NoWarmUp(),
    (BernoulliLikelihood, CategoricalLikelihood),
    " For numbers and counts use BayesianMLPRegressor",
    hidden=(50,),
    epochs=100,
    samples=4,
    predict_samples=500,
)
OPTIMIZER = Adam(learning_rate=1e-2, schedule=Cosine())
# Without a wish of the user: the first that goes with the other parts
AUTOMATIC = ("reparameterised", "self-normalised")


class Plan(NamedTuple):
    """The constructor's arguments, checked, with defaults in place of None."""

    hidden: tuple[int, ...]
    activation: str
    prior: Prior
    likelihood: Likelihood | None  # None: chosen from the number of classes
    posterior: Posterior | None  # None: it is sampled
    gradient_estimator: str | type | None  # None: chosen from the other parts
    objective: Objective
    kl_weights: Shares
    kl_warm_up: WarmUp | None  # None: that of the task in `fit`, none in `partial_fit`
    optimizer: Optimizer
    epochs: int
    batch_size: int
    samples: int
    predict_samples: int
    standardize: bool
    early_stopping: EarlyStopping | None
    validation_fraction: float
    dtype: Any
    progress: bool | None
    verbose: int  # every how many epochs a line is printed; 0 for none
    warm_start: bool
    sampling: Sampling | None  # None: what follows from the other arguments is trained

    def warm_up_in_fit(self, task: Task) -> WarmUp:
        """Return what `fit` does without a wish of the user: only FreeEnergy has a KL term."""
        natural = task.kl_warm_up if isinstance(self.objective, FreeEnergy) else NoWarmUp()
        return natural if self.kl_warm_up is None else self.kl_warm_up

    def recipe(self, task: Task) -> Recipe:
        """Return how `fit` trains."""
        warm_up = self.warm_up_in_fit(task)
        return replace(self.recipe_to_fit_on(), warm_up=warm_up)

    def recipe_to_fit_on(self) -> Recipe:
        """Return how `fit` trains on from an earlier one."""
        return replace(self.recipe_to_go_on(self.epochs), early_stopping=self.early_stopping)

    def recipe_to_go_on(self, epochs: int) -> Recipe:
        """Return how `partial_fit` trains."""
        return Recipe(
            self.optimizer,
            epochs=epochs,
            batch_size=self.batch_size,
            samples=self.samples,
            kl_weights=self.kl_weights,
            warm_up=self.kl_warm_up or NoWarmUp(),
        )

    def build(self, inputs: int, targets: int, likelihood: Likelihood) -> Estimator | DrawnWeights:
        """Return the estimator for data of these widths, or what stands for it if sampled.

        Raises
        ------
        ValueError
            If posterior, prior, likelihood, estimator and objective do not go together, or the
            posterior's parameters would not fit in memory; the message says why.
        """
        network = MLP((inputs, *self.hidden, likelihood.heads(targets)), self.activation)
        model, refusal = Model(network, self.prior, likelihood), ValueError()
        if self.sampling is not None:
            return DrawnWeights(model)
        for wish in AUTOMATIC if self.gradient_estimator is None else (self.gradient_estimator,):
            make = ESTIMATORS[wish] if isinstance(wish, str) else wish
            try:
                built: Estimator = make(model, self.posterior, self.objective)
                return built
            except ValueError as error:
                refusal = error
        parts = {
            "gradient_estimator": getattr(
                self.gradient_estimator, "__name__", self.gradient_estimator
            ),
            "inference": self.posterior,
            "prior": self.prior,
            "objective": self.objective,
        }
        given = ", ".join(f"{name}={part}" for name, part in parts.items() if part is not None)
        raise ValueError(f"{refusal} (given: {given})")


def check_plan(params: Mapping[str, Any], task: Task = REGRESSION) -> Plan:
    """Check all constructor arguments of a learner and fill in the defaults.

    Raises
    ------
    TypeError, ValueError
        Naming the argument, what was given and what is accepted.
    """
    inference = check_inference(params["inference"])
    sampling = inference if isinstance(inference, Sampling) else None
    if sampling is not None:
        refuse_training(params, sampling)

    def part(
        name: str, default: Any, accepted: tuple[type, ...], table: Mapping[str, Any] | None = None
    ) -> Any:
        value = params[name]
        return default if value is None else check_part(name, value, accepted, table)

    activation, hidden = params["activation"], params["hidden_layer_sizes"]
    OneOf(*ACTIVATIONS)("activation", activation)
    objective = FreeEnergy()
    if sampling is None:
        natural = natural_objective(params["inference"])
        objective = part("objective", natural, kinds(OBJECTIVES), OBJECTIVES)
        check_objective(params["inference"], objective)
    if isinstance(objective, Renyi) and objective.alpha == 1.0:
        objective = FreeEnergy()  # its limit, with the estimators that this one allows

    def count(name: str, most: int) -> int:
        value = params[name]
        return whole(name, getattr(task, name) if value is None else value, 1, most)

    samples = count("samples", MOST_SAMPLES)
    if isinstance(objective, EUBO) and samples == 1:
        raise ValueError(
            "samples must be at least 2 for the EUBO, better 100: the weight of a single "
            "sample is 1 whatever the data say, so that nothing would be learned; got 1"
        )
    warm_up = check_function("kl_warm_up", params["kl_warm_up"], None, WARM_UPS)
    idle = warm_up is not None and not isinstance(warm_up, NoWarmUp)
    if isinstance(objective, MLE) and (idle or params["kl_weights"] is not None):
        raise ValueError(
            f"the objective MLE has no prior term for {'kl_warm_up' if idle else 'kl_weights'} to "
            "weigh; leave that out, or use inference='map'"
        )
    check_random_state(params["random_state"])
    check_class_weight(params.get("class_weight"))
    return Plan(
        hidden=task.hidden if hidden is None else check_sizes("hidden_layer_sizes", hidden),
        activation=activation,
        prior=part("prior", task.prior, kinds(PRIORS), PRIORS),
        likelihood=_likelihood(params["likelihood"], task),
        posterior=None if sampling is not None else inference,
        gradient_estimator=_estimator(params["gradient_estimator"]),
        objective=objective,
        kl_weights=check_function(
            "kl_weights", params["kl_weights"], proportional_kl_weights, KL_WEIGHTS
        ),
        kl_warm_up=warm_up,
        optimizer=part("optimizer", OPTIMIZER, (Adam, SGD, Momentum)),
        samples=samples,
        standardize=flag("standardize", params["standardize"]),
        early_stopping=part("early_stopping", None, (EarlyStopping,)),
        validation_fraction=real("validation_fraction", params["validation_fraction"], 0, 1),
        dtype=DTYPE("dtype", params["dtype"]),
        progress=Optional(flag)("progress", params["progress"]),
        verbose=check_verbose(params["verbose"]),
        warm_start=_warm_start(params),
        sampling=sampling,
        epochs=count("epochs", MOST_STEPS),
        batch_size=whole("batch_size", params["batch_size"], 1),
        predict_samples=count("predict_samples", MOST_SAMPLES),
    )


def _likelihood(value: Any, task: Task) -> Any:
    if value is None:
        return task.likelihood
    fitting = {n: one for n, one in LIKELIHOODS.items() if isinstance(one, task.likelihoods)}
    table = (
        LIKELIHOODS if isinstance(value, str) and value in LIKELIHOODS else fitting
    )  # a misspelt name: what would fit
    found = named("likelihood", value, table) if isinstance(value, str) else value
    try:
        return check_part("likelihood", found, task.likelihoods)
    except TypeError as error:
        raise TypeError(f"{error}.{task.elsewhere}") from None


def _estimator(value: Any) -> Any:
    """Return a name, a class of gradient estimators, or None."""
    if value is None:
        return None
    if isinstance(value, str):
        named("gradient_estimator", value, ESTIMATORS)
        return value
    if isinstance(value, type) and issubclass(value, Family) and hasattr(value, "value_and_grad"):
        return value
    names = ", ".join(map(repr, ESTIMATORS))
    raise TypeError(
        f"gradient_estimator must be None, one of the names {names}, or a class such as "
        f"Reparameterised; "
        f"got {value!r}"
    )


def check_class_weight(value: Any) -> None:
    """Raise unless the classifier's `class_weight` is of a type that can be one."""
    if isinstance(value, str) and value != "balanced":
        raise ValueError(f"class_weight must be 'balanced', or a dict; got {value!r}")
    if value is not None and not isinstance(value, str | Mapping):
        raise TypeError(
            f"class_weight must be None, 'balanced', or a dict of label to weight; got {value!r}"
        )


def check_verbose(value: Any) -> int:
    """Return every how many epochs a line is printed: False is never, True is always."""
    return int(value) if isinstance(value, bool | np.bool_) else whole("verbose", value, 0)


def _warm_start(params: Mapping[str, Any]) -> bool:
    warm_start = flag("warm_start", params["warm_start"])
    if warm_start and params["validation_fraction"] > 0:
        raise ValueError(
            "warm_start=True cannot hold rows out, since an earlier fit may have trained on them; "
            f"leave validation_fraction={params['validation_fraction']!r} out"
        )
    return warm_start


def check_part(
    name: str, value: Any, kinds: tuple[type, ...], table: Mapping[str, Any] | None = None
) -> Any:
    """Return a part of the model: `value`, or the entry of `table` that it names.

    Raises
    ------
    TypeError
        Unless it is an object of one of `kinds`, or text.
    ValueError
        If no entry has this name.
    """
    if isinstance(value, kinds):
        return value
    if isinstance(value, str) and table is not None:
        return named(name, value, table)
    accepted = " or ".join(kind.__name__ for kind in kinds)
    if table is not None:
        accepted += f", or one of the names {', '.join(map(repr, table))}"
    raise TypeError(f"{name} must be None or an object of type {accepted}; got {instead(value)}")


def check_sizes(name: str, value: Any) -> tuple[int, ...]:
    """Return layer widths as a tuple of int; one number stands for one layer, () for none."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    if isinstance(value, Integral):
        value = (value,)
    # An iterator would be empty in the second fit, and () means that there is no hidden layer
    if isinstance(value, str | Mapping | Set | Iterator) or not isinstance(value, Iterable):
        raise TypeError(
            f"{name} must be a tuple of whole numbers >= 1, e.g. (50,) or (100, 100), or () for "
            f"no hidden layer; got {value!r}"
            + (", which can be read only once" if isinstance(value, Iterator) else "")
        )
    return tuple(whole(f"{name}[{i}]", width, 1) for i, width in enumerate(value))


def check_function(name: str, value: Any, default: Any, table: Mapping[str, Any]) -> Any:
    """Return the entry of `table` that `value` names, or `value` if it can be called."""
    if value is None:
        return default
    if isinstance(value, str):
        return named(name, value, table)
    if isinstance(value, (type, *kinds(OBJECTIVES))) or not callable(value):
        example = "function" if name == "kl_weights" else "LinearWarmUp(0.5)"
        raise TypeError(
            f"{name} must be None, one of {', '.join(map(repr, table))}, or a {example} like those "
            f"of bbb_numpy.model.kl_weights; got {value!r}"
        )
    return value
