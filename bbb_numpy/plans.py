"""A learner's constructor arguments: their defaults, and checks that name the argument."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from .arguments import real, whole
from .gradients import Reparameterised
from .likelihoods import GaussianLikelihood
from .model import Model
from .network import ACTIVATIONS, MLP
from .optimizers import SGD, Adam, Cosine, Momentum, Optimizer
from .posteriors import MeanField
from .priors import GaussianPrior
from .training import EarlyStopping

__all__ = [
    "DEFAULTS",
    "KINDS",
    "Plan",
    "check_flag",
    "check_generator",
    "check_object",
    "check_plan",
    "check_random_state",
    "check_sizes",
]

# Measured on standardised real data of 30 to 1,400 rows. Little noise to start with lets the
# network fit before the prior prunes units it has not used; sigma starts above the report's
# 0.0067, so that few steps are enough for it to grow where there are few data.
DEFAULTS: dict[str, Any] = {
    "prior": GaussianPrior(scale=0.5),
    "likelihood": GaussianLikelihood(scale=0.1, learn=True),
    "posterior": MeanField(rho_offset=-4.0),
    "optimizer": Adam(learning_rate=1e-2, schedule=Cosine()),
}
KINDS: dict[str, tuple[type, ...]] = {
    "prior": (GaussianPrior,),
    "likelihood": (GaussianLikelihood,),
    "posterior": (MeanField,),
    "optimizer": (Adam, SGD, Momentum),
    "early_stopping": (EarlyStopping,),
}


class Plan(NamedTuple):
    """The constructor's arguments, checked, with defaults in place of None."""

    hidden: tuple[int, ...]
    activation: str
    prior: GaussianPrior
    likelihood: GaussianLikelihood
    posterior: MeanField
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

    def estimator(self, inputs: int, outputs: int) -> Reparameterised:
        """Return the estimator for data of these widths."""
        network = MLP((inputs, *self.hidden, outputs), self.activation)
        return Reparameterised(Model(network, self.prior, self.likelihood), self.posterior)


def check_flag(name: str, value: Any, accepted: tuple[bool | None, ...] = (True, False)) -> Any:
    """Return a bool (or None, if accepted), or raise TypeError."""
    if value is None and None in accepted:
        return None
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be one of {accepted}; got {value!r}")
    return bool(value)


def check_object(name: str, value: Any, kinds: tuple[type, ...]) -> Any:
    """Return `value`, or raise TypeError unless it is an object of one of `kinds`."""
    if isinstance(value, kinds):
        return value
    accepted = " or ".join(kind.__name__ for kind in kinds)
    if isinstance(value, type):
        given = f"the class {value.__name__}; make an object of it: {value.__name__}()"
    else:
        given = f"{value!r} of type {type(value).__name__}"
    raise TypeError(f"{name} must be None or an object of type {accepted}; got {given}")


def check_sizes(name: str, value: Any) -> tuple[int, ...]:
    """Return layer widths as a tuple of int; one number stands for one layer, () for none."""
    if isinstance(value, Integral):
        value = (value,)
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise TypeError(
            f"{name} must be a tuple of whole numbers >= 1, e.g. (50,) or (100, 100), or () for "
            f"no hidden layer; got {value!r}"
        )
    return tuple(whole(f"{name}[{i}]", width, 1) for i, width in enumerate(value))


def check_generator(random_state: Any, name: str = "random_state") -> np.random.Generator:
    """Return a generator of one's own for None, a whole number >= 0 or a generator.

    An object (`numpy.random.Generator` or the older `RandomState`) is asked for a seed, and
    so moves on: the next call gives another generator.
    """
    check_random_state(random_state, name)
    if isinstance(random_state, np.random.Generator):
        return np.random.default_rng(random_state.integers(2**32, size=4))
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31, size=4))
    return np.random.default_rng(None if random_state is None else int(random_state))


def check_random_state(random_state: Any, name: str = "random_state") -> None:
    """Raise unless `check_generator` can use `random_state`; draws nothing."""
    if random_state is None or isinstance(
        random_state, (np.random.Generator, np.random.RandomState)
    ):
        return
    try:
        whole(name, random_state, 0)
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"{name} must be None, a whole number >= 0, a numpy.random.Generator or a "
            f"numpy.random.RandomState; got {random_state!r}"
        ) from None


def check_plan(params: dict[str, Any]) -> Plan:
    """Check all constructor arguments of a learner and fill in the defaults.

    Raises
    ------
    TypeError, ValueError
        Naming the argument, what was given and what is accepted.
    """
    given = {name: value for name, value in params.items() if value is not None}
    checked: dict[str, Any] = {
        name: check_object(name, given[name], kinds) if name in given else DEFAULTS.get(name)
        for name, kinds in KINDS.items()
    }
    activation = params["activation"]
    if not isinstance(activation, str) or activation not in ACTIVATIONS:
        raise ValueError(f"activation must be one of {ACTIVATIONS}; got {activation!r}")
    for name in ("epochs", "batch_size", "samples", "predict_samples"):
        checked[name] = whole(name, params[name], 1)
    check_random_state(params["random_state"])
    return Plan(
        hidden=check_sizes("hidden_layer_sizes", params["hidden_layer_sizes"]),
        activation=activation,
        standardize=check_flag("standardize", params["standardize"]),
        validation_fraction=real("validation_fraction", params["validation_fraction"], 0, 1),
        dtype=_dtype(params["dtype"]),
        progress=check_flag("progress", params["progress"], (None, True, False)),
        **checked,
    )


def _dtype(value: Any) -> np.dtype[Any]:
    try:
        dtype = np.dtype(value)
    except TypeError:
        dtype = np.dtype(object)
    if value is None or dtype not in (np.float32, np.float64):
        raise ValueError(f"dtype must be 'float64' or 'float32'; got {value!r}")
    return dtype
