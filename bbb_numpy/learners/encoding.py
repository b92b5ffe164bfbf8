"""Between objects and what JSON holds exactly, checked in both directions (for `checkpoint`).

Nothing that is read is executed: classes and functions are looked up in the fixed tables below.
"""

from __future__ import annotations

import os
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..gradients.catalogue import LIKELIHOODS, OBJECTIVES, POSTERIORS, PRIORS, kinds
from ..gradients.closed_form import ClosedFormKL
from ..gradients.flipout import Flipout
from ..gradients.importance import DoublyReparameterised, SelfNormalised
from ..gradients.local_reparameterisation import LocalReparameterisation
from ..gradients.reparameterised import Reparameterised, StickingTheLanding
from ..model import kl_weights
from ..parts.hyperpriors import HalfCauchy, HalfNormal, LogNormal
from ..parts.network import MLP
from ..parts.priors import LayerwiseGaussianPrior
from ..sampling import mcmc
from ..training import EarlyStopping, optimizers
from ..training.optimizers import SGD, Adam, Cosine, Momentum, StepDecay
from .inference import Sampling

__all__ = [
    "KINDS",
    "CheckpointError",
    "decode",
    "decode_classes",
    "decode_parts",
    "encode",
    "encode_classes",
    "same_names",
    "take_array",
    "whole_number",
]

Array = NDArray[Any]
SCHEDULES = (optimizers.Constant, Cosine, StepDecay)
KERNELS = (mcmc.NUTS, mcmc.HMC, mcmc.MetropolisHastings)
WALKS = (mcmc.GaussianWalk, mcmc.StudentWalk, mcmc.LogNormalWalk, mcmc.Langevin)
# The kinds of object that may stand in each place of a model
KINDS: dict[str, tuple[type, ...]] = {
    "network": (MLP,),
    "prior": kinds(PRIORS),
    "likelihood": kinds(LIKELIHOODS),
    "posterior": kinds(POSTERIORS),
    "objective": kinds(OBJECTIVES),
}
_CLASSES = (
    *(kind for accepted in KINDS.values() for kind in accepted),
    *(SGD, Momentum, Adam, EarlyStopping, *SCHEDULES),
    *(kl_weights.NoWarmUp, kl_weights.LinearWarmUp, kl_weights.CyclicalWarmUp),
    *(Sampling, LogNormal, HalfNormal, HalfCauchy, *KERNELS, *WALKS),
)
CLASSES: dict[str, Any] = {kind.__name__: kind for kind in _CLASSES}
CAREFUL = (Sampling, LogNormal, LayerwiseGaussianPrior)  # check all their arguments themselves
LABELS = {kind: label for label, kind in CLASSES.items()}
# Classes and functions that are arguments themselves
NAMED: dict[str, Any] = {
    thing.__name__: thing
    for thing in (
        *(Reparameterised, StickingTheLanding, DoublyReparameterised, SelfNormalised),
        *(ClosedFormKL, LocalReparameterisation, Flipout),
        *(kl_weights.proportional_kl_weights, kl_weights.geometric_kl_weights),
    )
}
GENERATORS = {kind.__name__: kind for kind in (np.random.PCG64, np.random.PCG64DXSM)}
PLAIN = (bool, int, float, str)  # class labels that JSON holds exactly


class CheckpointError(ValueError):
    """A file is not a checkpoint that this version can read, or a model cannot be one."""


def encode(name: str, value: Any) -> Any:
    """Return `value` as something JSON holds exactly."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, (np.generic, int, float)):
        return value.item() if isinstance(value, np.generic) else value
    if isinstance(value, tuple):
        return [encode(f"{name}[{i}]", item) for i, item in enumerate(value)]
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, dict):
        pairs = {str(key): encode(f"{name}[{key!r}]", item) for key, item in value.items()}
        return {"class": "table", "arguments": pairs}
    if isinstance(value, np.random.Generator):
        state = value.bit_generator.state
        if state["bit_generator"] in GENERATORS:
            return {"class": "Generator", "arguments": dict(state)}
    elif type(value) in LABELS:
        pairs = {f.name: encode(f"{name}.{f.name}", getattr(value, f.name)) for f in fields(value)}
        return {"class": LABELS[type(value)], "arguments": pairs}
    elif NAMED.get(label := getattr(value, "__name__", "")) is value:
        return {"class": "named", "arguments": {"name": label}}
    raise CheckpointError(
        f"{name} = {value!r} cannot be saved; accepted are numbers, text, the package's own "
        f"{', '.join([*CLASSES, *NAMED])} and generators on {' or '.join(GENERATORS)}"
    )


def decode(name: str, value: Any) -> Any:
    """Undo `encode`; objects are made only of the classes in the tables above."""
    if isinstance(value, list):
        return tuple(decode(f"{name}[{i}]", item) for i, item in enumerate(value))
    if not isinstance(value, dict):
        return value
    same_names(name, value, {"class", "arguments"})
    label, arguments = value["class"], value["arguments"]
    if label == "Generator":
        return _generator(name, arguments)
    if label == "table" and isinstance(arguments, dict):
        return {key: decode(f"{name}[{key!r}]", item) for key, item in arguments.items()}
    if label == "named":
        same_names(name, arguments, {"name"})
        thing = NAMED.get(arguments["name"]) if isinstance(arguments["name"], str) else None
        if thing is None:
            raise CheckpointError(f"{name}: unknown name {arguments['name']!r}")
        return thing
    kind = CLASSES.get(label) if isinstance(label, str) else None
    if kind is None:
        raise CheckpointError(f"{name}: unknown class {label!r}; known are {', '.join(CLASSES)}")
    defaults = {f.name: f.default for f in fields(kind)}
    same_names(f"{name}: {label}", arguments, set(defaults))
    made = {key: decode(f"{name}.{key}", item) for key, item in arguments.items()}
    for key, item in made.items():
        if not (kind in CAREFUL or _like(defaults[key], item)):
            raise CheckpointError(f"{name}: {label}.{key} has the wrong type: {item!r}")
    try:
        return kind(**made)
    except (TypeError, ValueError) as error:
        raise CheckpointError(f"{name}: {label}: {error}") from None


def _like(default: Any, item: Any) -> bool:
    """Whether `item` may stand where a class has `default`."""
    if default is None:
        return item is None
    if isinstance(default, bool):
        return isinstance(item, bool)
    if isinstance(default, int):
        return type(item) is int
    if isinstance(default, float):
        return type(item) in (int, float)
    if isinstance(default, str):
        return isinstance(item, str)
    if isinstance(default, SCHEDULES):
        return isinstance(item, SCHEDULES)
    if isinstance(default, WALKS):
        return isinstance(item, WALKS)
    return isinstance(item, tuple) and all(type(size) is int for size in item)  # MLP.sizes


def _generator(name: str, state: Any) -> np.random.Generator:
    try:
        bits = GENERATORS[state["bit_generator"]]()
        bits.state = state
    except (TypeError, KeyError, ValueError, OverflowError) as error:
        raise CheckpointError(f"{name}: not the state of a generator ({error!r})") from None
    if bits.state != state:
        raise CheckpointError(f"{name}: not the state of a generator")
    return np.random.Generator(bits)


def decode_parts(parts: Any, wanted: tuple[str, ...]) -> dict[str, Any]:
    """Return the objects that a model is made of."""
    same_names("model", parts, {*KINDS, "estimator", "antithetic"})
    made = {name: decode(name, parts[name]) for name in wanted}
    for name in wanted:
        if type(made[name]) not in KINDS[name]:
            accepted = " or ".join(kind.__name__ for kind in KINDS[name])
            raise CheckpointError(f"model: {name} must be a {accepted}; got {made[name]!r}")
    return made


def encode_classes(labels: Array) -> dict[str, Any]:
    """Return class labels (C,) as their number type and a list."""
    values = labels.tolist()
    if labels.dtype.kind not in "biufUO" or any(type(value) not in PLAIN for value in values):
        raise CheckpointError(
            f"classes_ of type {type(values[0]).__name__} cannot be saved; accepted are text, "
            "numbers and truth values"
        )
    return {"dtype": labels.dtype.str, "values": values}


def decode_classes(record: Any) -> Array:
    """Undo `encode_classes`: at least two labels of one type, sorted."""
    same_names("classes_", record, {"dtype", "values"})
    values = record["values"]
    kinds = {type(value) for value in values} if isinstance(values, list) else set()
    if len(kinds) != 1 or not kinds <= set(PLAIN):
        raise CheckpointError(f"classes_ must be a list of labels of one type; got {values!r}")
    try:
        dtype = np.dtype(record["dtype"])
        labels = np.array(values, dtype)
        back = labels.tolist()
    except (TypeError, ValueError, OverflowError):
        raise CheckpointError(f"classes_ cannot be of type {record['dtype']!r}") from None
    same = dtype.kind in "biufUO" and back == values and {type(value) for value in back} == kinds
    if not same or len(labels) < 2 or not (labels[:-1] < labels[1:]).all():
        raise CheckpointError(
            f"classes_ must be at least two sorted labels of type {record['dtype']!r}; got {values}"
        )
    return labels


def same_names(where: str, given: Any, expected: set[str]) -> None:
    """Raise unless `given` is a table of exactly these names."""
    if not isinstance(given, dict):
        raise CheckpointError(f"{where} must be a table of names; got {given!r}")
    missing, unknown = sorted(expected - set(given)), sorted(set(given) - expected)
    if missing or unknown:
        raise CheckpointError(f"{where}: missing {missing}, unknown {unknown}")


def whole_number(name: str, value: Any) -> int:
    """Return a whole number >= 0 that fits in 63 bits, or raise."""
    if type(value) is not int or not 0 <= value < 2**63:
        raise CheckpointError(f"{name} must be a whole number >= 0; got {value!r}")
    return value


def take_array(
    arrays: dict[str, Array],
    name: str,
    shape: tuple[int | None, ...],
    dtypes: tuple[Any, ...],
    nan: bool = False,
) -> Array:
    """Take one array out of `arrays`, checked."""
    if name not in arrays:
        raise CheckpointError(f"{name} is missing")
    array = arrays.pop(name)
    if array.dtype not in dtypes:
        accepted = " or ".join(np.dtype(dtype).name for dtype in dtypes)
        raise CheckpointError(f"{name} must have dtype {accepted}; got {array.dtype}")
    if len(array.shape) != len(shape) or any(
        wanted not in (None, given) for wanted, given in zip(shape, array.shape, strict=True)
    ):
        raise CheckpointError(f"{name} must have shape {shape}; got {array.shape}")
    if not nan and not np.isfinite(array).all():
        raise CheckpointError(f"{name} holds nan or infinity")
    return array
