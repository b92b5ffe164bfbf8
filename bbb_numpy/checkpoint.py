"""Fitted learners in one file: a versioned ``.npz`` without pickle (above the learners).

The file holds a JSON header (`FORMAT`, `VERSION`, constructor arguments, the model, the
generator's state) and plain arrays (theta, the optimizer's memory, history, scalers).
Nothing in it is executed: classes are looked up in a fixed table, and every field is checked
before a learner is made of it.
"""

from __future__ import annotations

import json
import os
from dataclasses import fields
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from .gradients import Reparameterised
from .learners import BayesianMLPRegressor
from .likelihoods import GaussianLikelihood
from .model import Model
from .network import MLP
from .optimizers import SGD, Adam, Constant, Cosine, Momentum, State, StepDecay
from .plans import check_plan
from .posteriors import MeanField
from .priors import GaussianPrior
from .training import EarlyStopping, Epoch, Training
from .validation import NotFittedError
from .version import __version__

__all__ = ["FORMAT", "VERSION", "CheckpointError", "load", "save"]

Array = NDArray[Any]
FORMAT = "bbb_numpy.BayesianMLPRegressor"
VERSION = 1
SCHEDULES = (Constant, Cosine, StepDecay)
MEMORIES: tuple[set[str], ...] = (set(), {"velocity"}, {"m", "v"})  # SGD, Momentum, Adam
CLASSES: dict[str, Any] = {
    kind.__name__: kind
    for kind in (
        *(MLP, GaussianPrior, GaussianLikelihood, MeanField, EarlyStopping),
        *(SGD, Momentum, Adam),
        *SCHEDULES,
    )
}
GENERATORS = {kind.__name__: kind for kind in (np.random.PCG64, np.random.PCG64DXSM)}
STOPPED = ("", "early stopping", "interrupted")
SCALERS = ("x_mean", "x_scale", "y_mean", "y_scale")
FITTED = {"n_features_in_", "n_outputs_", "y_ndim_", "predict_seed_"}
HEADER = {"format", "version", "written_by", "parameters", "model", "fitted"}


class CheckpointError(ValueError):
    """A file is not a checkpoint that this version can read, or a model cannot be one."""


def save(model: BayesianMLPRegressor, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to `path`, replacing an older file only when all is written.

    Parameters
    ----------
    model : BayesianMLPRegressor
        Fitted. Its arguments must be of the package's own classes.
    path : path-like
        Used as given; ``.npz`` is not appended.

    Raises
    ------
    NotFittedError
        If the model is not fitted.
    CheckpointError
        If an argument cannot be stored (a class of one's own, an old `RandomState`).
    TypeError, ValueError
        If `model` is no learner, or its arguments are invalid.
    OSError
        If the file cannot be written; an older file is untouched.
    """
    if type(model) is not BayesianMLPRegressor:
        raise TypeError(f"model must be a BayesianMLPRegressor; got {type(model).__name__}")
    if "training_" not in vars(model):
        raise NotFittedError("model is not fitted: there is nothing to save; call fit first")
    arrays = {"header": np.frombuffer(_header(model).encode(), np.uint8), **_arrays(model)}
    path = Path(os.path.realpath(path))
    if path.exists() and not path.is_file():
        raise OSError(f"{path} is no regular file; name a file for the model")
    unfinished = path.with_name(f".{path.name}.{uuid4().hex}")
    try:
        with open(unfinished, "xb") as file:
            np.savez(file, allow_pickle=False, **arrays)
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


def load(path: str | os.PathLike[str]) -> BayesianMLPRegressor:
    """Read a model written by `save`.

    It predicts, and goes on training with `partial_fit`, bit-identically to the one saved.

    Parameters
    ----------
    path : path-like

    Returns
    -------
    BayesianMLPRegressor

    Raises
    ------
    CheckpointError
        Naming the file and the field: not a checkpoint, truncated, of another version, with
        missing, unknown, mistyped, misshapen or non-finite fields.
    OSError
        If there is no such file or it cannot be read.
    """
    try:
        return _model(_read(Path(path)))
    except CheckpointError as error:
        raise CheckpointError(f"{os.fspath(path)}: {error}") from None


def _header(model: BayesianMLPRegressor) -> str:
    plan = check_plan(model.get_params(deep=False))
    parameters = model.get_params(deep=False) | {
        "hidden_layer_sizes": plan.hidden,
        "dtype": plan.dtype.name,
        **{name: getattr(plan, name) for name in ("epochs", "batch_size", "samples")},
        "predict_samples": plan.predict_samples,
        "standardize": plan.standardize,
        "validation_fraction": plan.validation_fraction,
        "progress": plan.progress,
    }
    estimator, state = model.estimator_, model.training_
    names = vars(model).get("feature_names_in_")
    content = {
        "format": FORMAT,
        "version": VERSION,
        "written_by": __version__,
        "parameters": {name: _encode(name, value) for name, value in parameters.items()},
        "model": {
            "network": _encode("network", estimator.model.network),
            "prior": _encode("prior", estimator.model.prior),
            "likelihood": _encode("likelihood", estimator.model.likelihood),
            "posterior": _encode("posterior", estimator.posterior),
        },
        "fitted": {
            **{name: getattr(model, name) for name in sorted(FITTED)},
            "feature_names_in_": None if names is None else [str(name) for name in names],
            "rng_": _encode("rng_", model.rng_),
            "steps": state.optimizer_state.steps,
            "stopped": state.stopped,
        },
    }
    return json.dumps(content, allow_nan=False)


def _arrays(model: BayesianMLPRegressor) -> dict[str, Array]:
    state = model.training_
    memory = state.optimizer_state.arrays
    return {
        "theta": state.theta,
        "history": np.array(state.history, np.float64).reshape(-1, len(Epoch._fields)),
        **{f"optimizer.{name}": array for name, array in memory.items()},
        **{name: getattr(model, f"{name}_") for name in SCALERS},
    }


def _encode(name: str, value: Any) -> Any:
    """Return `value` as something JSON holds exactly."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, (np.generic, int, float)):
        return value.item() if isinstance(value, np.generic) else value
    if isinstance(value, tuple):
        return [_encode(f"{name}[{i}]", item) for i, item in enumerate(value)]
    if isinstance(value, np.random.Generator):
        state = value.bit_generator.state
        if state["bit_generator"] in GENERATORS:
            return {"class": "Generator", "arguments": dict(state)}
    elif CLASSES.get(type(value).__name__) is type(value):
        pairs = {f.name: _encode(f"{name}.{f.name}", getattr(value, f.name)) for f in fields(value)}
        return {"class": type(value).__name__, "arguments": pairs}
    raise CheckpointError(
        f"{name} = {value!r} cannot be saved; accepted are numbers, text, the package's own "
        f"{', '.join(CLASSES)} and generators on {' or '.join(GENERATORS)}"
    )


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return header and arrays of a file, or say why it is no checkpoint."""
    with open(path, "rb") as file:
        try:
            content = np.load(file, allow_pickle=False)
            arrays = dict(content) if isinstance(content, np.lib.npyio.NpzFile) else None
            names = content.files if arrays is not None else []
        except Exception as error:  # damage can upset every layer from zip to number format
            raise CheckpointError(
                f"cannot be read; it is no .npz file, or was cut short or damaged ({error})"
            ) from None
    if arrays is None:
        raise CheckpointError("is a single .npy array, not a checkpoint written by save")
    if len(set(names)) != len(names):
        raise CheckpointError("has two entries of the same name")
    strange = [name for name, array in arrays.items() if not isinstance(array, np.ndarray)]
    if strange or "header" not in arrays:
        raise CheckpointError("has no header: not a checkpoint written by save")
    try:
        header = json.loads(arrays.pop("header").tobytes().decode())
    except ValueError as error:
        raise CheckpointError(f"header is not JSON: {error}") from None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise CheckpointError(f"header: format must be {FORMAT!r}: not a checkpoint of a learner")
    if header.get("version") != VERSION or isinstance(header["version"], bool):
        raise CheckpointError(
            f"header: version {header.get('version')!r} is not supported, this package reads "
            f"version {VERSION}; the file was written by bbb_numpy {header.get('written_by')!r}"
        )
    _same_names("header", header, HEADER)
    return header, arrays


def _model(content: tuple[dict[str, Any], dict[str, Array]]) -> BayesianMLPRegressor:
    """Check every field and build the learner."""
    header, arrays = content
    model = BayesianMLPRegressor()
    _same_names("parameters", header["parameters"], set(model.get_params(deep=False)))
    parameters = {name: _decode(name, value) for name, value in header["parameters"].items()}
    try:
        check_plan(parameters)
    except (TypeError, ValueError) as error:
        raise CheckpointError(f"parameters: {error}") from None
    estimator = _estimator(header["model"])
    fitted = _fitted(header["fitted"], estimator)
    state = _state(header["fitted"], estimator, arrays)
    for name in SCALERS:
        width = estimator.model.network.sizes[0 if name.startswith("x") else -1]
        array = _array(arrays, name, (width,), (np.float64,))
        if name.endswith("scale") and not (array > 0).all():
            raise CheckpointError(f"{name} must be positive; got {array.min():g}")
        fitted[f"{name}_"] = array
    if arrays:
        raise CheckpointError(f"has unknown entries {sorted(arrays)}")
    model.set_params(**parameters)
    vars(model).update(fitted, training_=state, estimator_=estimator)
    return model


def _estimator(parts: Any) -> Reparameterised:
    kinds = {
        "network": MLP,
        "prior": GaussianPrior,
        "likelihood": GaussianLikelihood,
        "posterior": MeanField,
    }
    _same_names("model", parts, set(kinds))
    made = {name: _decode(name, part) for name, part in parts.items()}
    for name, kind in kinds.items():
        if type(made[name]) is not kind:
            raise CheckpointError(f"model: {name} must be a {kind.__name__}; got {made[name]!r}")
    model = Model(made["network"], made["prior"], made["likelihood"])
    return Reparameterised(model, made["posterior"])


def _fitted(record: Any, estimator: Reparameterised) -> dict[str, Any]:
    _same_names("fitted", record, FITTED | {"feature_names_in_", "rng_", "steps", "stopped"})
    sizes = estimator.model.network.sizes
    fitted: dict[str, Any] = {name: _whole(name, record[name]) for name in sorted(FITTED)}
    if (fitted["n_features_in_"], fitted["n_outputs_"]) != (sizes[0], sizes[-1]):
        raise CheckpointError(f"n_features_in_ and n_outputs_ must be the ends of sizes {sizes}")
    if fitted["y_ndim_"] not in (1, 2) or (fitted["y_ndim_"] == 1 and sizes[-1] != 1):
        raise CheckpointError(f"y_ndim_ {fitted['y_ndim_']} does not fit {sizes[-1]} outputs")
    fitted["rng_"] = _decode("rng_", record["rng_"])
    if not isinstance(fitted["rng_"], np.random.Generator):
        raise CheckpointError(f"rng_ must be a generator; got {record['rng_']!r}")
    names = record["feature_names_in_"]
    if names is not None:
        if not isinstance(names, list) or [type(name) for name in names] != [str] * sizes[0]:
            raise CheckpointError(f"feature_names_in_ must be {sizes[0]} texts; got {names!r}")
        fitted["feature_names_in_"] = np.array(names, dtype=object)
    return fitted


def _state(record: Any, estimator: Reparameterised, arrays: dict[str, Array]) -> Training:
    size = estimator.layout.size
    theta = _array(arrays, "theta", (size,), (np.float64, np.float32))
    names = {name.removeprefix("optimizer.") for name in arrays if name.startswith("optimizer.")}
    if names not in MEMORIES:
        raise CheckpointError(f"optimizer has memory {sorted(names)}, which no optimizer keeps")
    memory = {
        name: _array(arrays, f"optimizer.{name}", (size,), (theta.dtype,)) for name in sorted(names)
    }
    if "v" in memory and (memory["v"] < 0).any():
        raise CheckpointError("optimizer.v holds mean squares and must not be negative")
    history = _array(arrays, "history", (None, len(Epoch._fields)), (np.float64,), nan=True)
    for column, name in enumerate(Epoch._fields):
        if name != "validation" and not np.isfinite(history[:, column]).all():
            raise CheckpointError(f"history: {name} must be finite")
    if record["stopped"] not in STOPPED:
        raise CheckpointError(f"stopped must be one of {STOPPED}; got {record['stopped']!r}")
    epochs = [Epoch(*row) for row in history.tolist()]
    return Training(
        theta, State(_whole("steps", record["steps"]), memory), epochs, record["stopped"]
    )


def _decode(name: str, value: Any) -> Any:
    """Undo `_encode`; objects are made only of the classes in the tables above."""
    if isinstance(value, list):
        return tuple(_decode(f"{name}[{i}]", item) for i, item in enumerate(value))
    if not isinstance(value, dict):
        return value
    _same_names(name, value, {"class", "arguments"})
    label, arguments = value["class"], value["arguments"]
    if label == "Generator":
        return _generator(name, arguments)
    kind = CLASSES.get(label) if isinstance(label, str) else None
    if kind is None:
        raise CheckpointError(f"{name}: unknown class {label!r}; known are {', '.join(CLASSES)}")
    defaults = {f.name: f.default for f in fields(kind)}
    _same_names(f"{name}: {label}", arguments, set(defaults))
    made = {key: _decode(f"{name}.{key}", item) for key, item in arguments.items()}
    for key, item in made.items():
        if not _like(defaults[key], item):
            raise CheckpointError(f"{name}: {label}.{key} has the wrong type: {item!r}")
    try:
        return kind(**made)
    except (TypeError, ValueError) as error:
        raise CheckpointError(f"{name}: {label}: {error}") from None


def _like(default: Any, item: Any) -> bool:
    """Whether `item` may stand where a class has `default`."""
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


def _same_names(where: str, given: Any, expected: set[str]) -> None:
    if not isinstance(given, dict):
        raise CheckpointError(f"{where} must be a table of names; got {given!r}")
    missing, unknown = sorted(expected - set(given)), sorted(set(given) - expected)
    if missing or unknown:
        raise CheckpointError(f"{where}: missing {missing}, unknown {unknown}")


def _whole(name: str, value: Any) -> int:
    if type(value) is not int or not 0 <= value < 2**63:
        raise CheckpointError(f"{name} must be a whole number >= 0; got {value!r}")
    return value


def _array(
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
