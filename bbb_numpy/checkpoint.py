"""Fitted learners in one file: a versioned ``.npz`` without pickle (above the learners).

The file holds a JSON header (`FORMAT`, `VERSION`, constructor arguments, the model, the
generator's state) and plain arrays (theta, the optimizer's memory, history, or draws; scalers).
Nothing in it is executed, and every field is checked before a learner is made of it: what a
field may hold by `encoding`, the file itself by `storage`, which reads versions 1 and 2 too.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .base_learner import Learner
from .classifier import BayesianMLPClassifier
from .discrete import BernoulliLikelihood
from .drawn import DrawnWeights
from .encoding import (
    KINDS,
    NAMED,
    CheckpointError,
    decode,
    decode_classes,
    decode_parts,
    encode,
    encode_classes,
    same_names,
    take_array,
    whole_number,
)
from .estimators import Estimator
from .families import Family
from .learners import BayesianMLPRegressor
from .model import Model
from .optimizers import State
from .plans import check_plan
from .storage import FORMAT, VERSION, read, write
from .storage_draws import decode_drawn, pack_draws, unpack_draws
from .training import Epoch, Training
from .validation import NotFittedError
from .version import __version__

__all__ = ["FORMAT", "VERSION", "CheckpointError", "load", "save"]

Array = NDArray[Any]
LEARNERS: dict[str, Any] = {
    kind.__name__: kind for kind in (BayesianMLPRegressor, BayesianMLPClassifier)
}
MEMORIES: tuple[set[str], ...] = (set(), {"velocity"}, {"m", "v"})  # SGD, Momentum, Adam
STOPPED = ("", "early stopping", "interrupted")
SCALERS = ("x_mean", "x_scale", "y_mean", "y_scale")
FITTED = {"n_features_in_", "predict_seed_", "feature_names_in_", "rng_", "steps", "stopped"}
OWN = {"BayesianMLPRegressor": {"n_outputs_", "y_ndim_"}, "BayesianMLPClassifier": {"classes_"}}


def save(model: BayesianMLPRegressor | BayesianMLPClassifier, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to `path`, replacing an older file only when all is written.

    Parameters
    ----------
    model : BayesianMLPRegressor or BayesianMLPClassifier
        Fitted. Its arguments must be of the package's own classes. Of a sampled posterior
        the draws are stored, not the data.
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
    if LEARNERS.get(type(model).__name__) is not type(model):
        raise TypeError(f"model must be a {' or '.join(LEARNERS)}; got {type(model).__name__}")
    if "estimator_" not in vars(model):
        raise NotFittedError("model is not fitted: there is nothing to save; call fit first")
    draws, arrays = pack_draws(model.draws_) if "draws_" in vars(model) else (None, _trained(model))
    header = np.frombuffer(_header(model, draws).encode(), np.uint8)
    scalers = {name: getattr(model, f"{name}_") for name in SCALERS}
    write(Path(os.path.realpath(path)), {"header": header, **arrays, **scalers})


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model written by `save`.

    It predicts, and if trained goes on with `partial_fit`, bit-identically to the one saved.

    Parameters
    ----------
    path : path-like

    Returns
    -------
    BayesianMLPRegressor or BayesianMLPClassifier

    Raises
    ------
    CheckpointError
        Naming the file and the field: not a checkpoint, truncated, of another version, with
        missing, unknown, mistyped, misshapen or non-finite fields.
    OSError
        If there is no such file or it cannot be read.
    """
    try:
        return _learner(*read(Path(path)))
    except CheckpointError as error:
        raise CheckpointError(f"{os.fspath(path)}: {error}") from None


def _header(model: Learner, draws: dict[str, Any] | None) -> str:
    plan = check_plan(model.get_params(deep=False), model.task)
    parameters = model.get_params(deep=False) | {
        "hidden_layer_sizes": plan.hidden,
        "dtype": plan.dtype.name,
        **{name: getattr(plan, name) for name in ("epochs", "batch_size", "samples")},
        "predict_samples": plan.predict_samples,
        "standardize": plan.standardize,
        "validation_fraction": plan.validation_fraction,
        "progress": plan.progress,
    }
    estimator, label = model.estimator_, type(model).__name__
    parts: dict[str, Any] = {"posterior": None, "objective": None}
    if not isinstance(estimator, DrawnWeights):
        parts = {name: encode(name, getattr(estimator, name)) for name in parts}
    elif draws is None:
        raise CheckpointError("draws_ is missing beside an estimator_ of draws")
    if draws is None and NAMED.get(type(estimator).__name__) is not type(estimator):
        raise CheckpointError(f"estimator_ of type {type(estimator).__name__} cannot be saved")
    names = vars(model).get("feature_names_in_")
    own: dict[str, Any] = {name: getattr(model, name) for name in sorted(OWN[label])}
    if "classes_" in own:
        own["classes_"] = encode_classes(own["classes_"])
    content = {
        "format": FORMAT,
        "version": VERSION,
        "learner": label,
        "written_by": __version__,
        "parameters": {name: encode(name, value) for name, value in parameters.items()},
        "model": {
            "network": encode("network", estimator.model.network),
            "prior": encode("prior", estimator.model.prior),
            "likelihood": encode("likelihood", estimator.model.likelihood),
            **parts,
            "estimator": type(estimator).__name__,
            "antithetic": getattr(estimator, "antithetic", False),
        },
        "fitted": {
            **own,
            "n_features_in_": model.n_features_in_,
            "predict_seed_": model.predict_seed_,
            "feature_names_in_": None if names is None else [str(name) for name in names],
            "rng_": encode("rng_", model.rng_),
            "steps": 0 if draws else model.training_.optimizer_state.steps,
            "stopped": "" if draws else model.training_.stopped,
        },
        "draws": draws,
    }
    return json.dumps(content, allow_nan=False)


def _trained(model: Learner) -> dict[str, Array]:
    state = model.training_
    memory = state.optimizer_state.arrays
    return {
        "theta": state.theta,
        "history": np.array(state.history, np.float64).reshape(-1, len(Epoch._fields)),
        **{f"optimizer.{name}": array for name, array in memory.items()},
    }


def _learner(header: dict[str, Any], arrays: dict[str, Array]) -> Learner:
    """Check every field and build the learner."""
    label = header["learner"]
    if not isinstance(label, str) or label not in LEARNERS:
        raise CheckpointError(f"learner must be {' or '.join(LEARNERS)}; got {label!r}")
    model: Learner = LEARNERS[label]()
    same_names("parameters", header["parameters"], set(model.get_params(deep=False)))
    parameters = {name: decode(name, value) for name, value in header["parameters"].items()}
    try:
        check_plan(parameters, model.task)
    except (TypeError, ValueError) as error:
        raise CheckpointError(f"parameters: {error}") from None
    sampled = header["draws"] is not None
    estimator = decode_drawn(header["model"]) if sampled else _estimator(header["model"])
    if not isinstance(estimator.model.likelihood, model.task.likelihoods):
        raise CheckpointError(
            f"model: likelihood {estimator.model.likelihood} is none of a {label}"
        )
    fitted = _fitted(header["fitted"], label, estimator)
    if isinstance(estimator, DrawnWeights):
        fitted["draws_"] = unpack_draws(header["draws"], arrays, estimator)
    else:
        fitted["training_"] = _state(header["fitted"], estimator, arrays)
    for name in SCALERS:
        width = estimator.model.network.sizes[0] if name[0] == "x" else estimator.model.outputs
        array = take_array(arrays, name, (width,), (np.float64,))
        if name.endswith("scale") and not (array > 0).all():
            raise CheckpointError(f"{name} must be positive; got {array.min():g}")
        fitted[f"{name}_"] = array
    if arrays:
        raise CheckpointError(f"has unknown entries {sorted(arrays)}")
    model.set_params(**parameters)
    vars(model).update(fitted, estimator_=estimator)
    return model


def _estimator(parts: Any) -> Estimator:
    made = decode_parts(parts, tuple(KINDS))
    label, antithetic = parts["estimator"], parts["antithetic"]
    kind = NAMED.get(label) if isinstance(label, str) else None
    if not isinstance(kind, type) or not issubclass(kind, Family):
        raise CheckpointError(f"model: unknown estimator {label!r}")
    if not isinstance(antithetic, bool) or (antithetic and not hasattr(kind, "antithetic")):
        raise CheckpointError(f"model: antithetic must be true or false; got {antithetic!r}")
    options = {"antithetic": True} if antithetic else {}
    try:
        model = Model(made["network"], made["prior"], made["likelihood"])
        built: Any = kind(model, made["posterior"], made["objective"], **options)
    except ValueError as error:
        raise CheckpointError(f"model: {error}") from None
    return built


def _fitted(record: Any, label: str, estimator: Estimator | DrawnWeights) -> dict[str, Any]:
    same_names("fitted", record, FITTED | OWN[label])
    width, outputs = estimator.model.network.sizes[0], estimator.model.outputs
    fitted: dict[str, Any] = {
        name: whole_number(name, record[name])
        for name in ("n_features_in_", "predict_seed_", "n_outputs_", "y_ndim_")
        if name in record
    }
    sizes = estimator.model.network.sizes
    if (fitted["n_features_in_"], fitted.get("n_outputs_", outputs)) != (width, outputs):
        raise CheckpointError(f"n_features_in_ and n_outputs_ must be the ends of sizes {sizes}")
    if "y_ndim_" in fitted and (fitted["y_ndim_"], outputs > 1) not in (
        (1, False),
        (2, False),
        (2, True),
    ):
        raise CheckpointError(f"y_ndim_ {fitted['y_ndim_']} does not fit {outputs} outputs")
    if "classes_" in record:
        fitted["classes_"] = decode_classes(record["classes_"])
        single = isinstance(estimator.model.likelihood, BernoulliLikelihood)
        if (len(fitted["classes_"]), outputs) != ((2, 1) if single else (outputs, outputs)):
            raise CheckpointError(f"{len(fitted['classes_'])} classes_ do not fit sizes {sizes}")
    fitted["rng_"] = decode("rng_", record["rng_"])
    if not isinstance(fitted["rng_"], np.random.Generator):
        raise CheckpointError(f"rng_ must be a generator; got {record['rng_']!r}")
    names = record["feature_names_in_"]
    if names is not None:
        if not isinstance(names, list) or [type(name) for name in names] != [str] * width:
            raise CheckpointError(f"feature_names_in_ must be {width} texts; got {names!r}")
        fitted["feature_names_in_"] = np.array(names, dtype=object)
    return fitted


def _state(record: Any, estimator: Estimator, arrays: dict[str, Array]) -> Training:
    size = estimator.layout.size
    theta = take_array(arrays, "theta", (size,), (np.float64, np.float32))
    names = {name.removeprefix("optimizer.") for name in arrays if name.startswith("optimizer.")}
    if names not in MEMORIES:
        raise CheckpointError(f"optimizer has memory {sorted(names)}, which no optimizer keeps")
    memory = {
        name: take_array(arrays, f"optimizer.{name}", (size,), (theta.dtype,))
        for name in sorted(names)
    }
    if "v" in memory and (memory["v"] < 0).any():
        raise CheckpointError("optimizer.v holds mean squares and must not be negative")
    history = take_array(arrays, "history", (None, len(Epoch._fields)), (np.float64,), nan=True)
    for column, name in enumerate(Epoch._fields):
        if name != "validation" and not np.isfinite(history[:, column]).all():
            raise CheckpointError(f"history: {name} must be finite")
    if record["stopped"] not in STOPPED:
        raise CheckpointError(f"stopped must be one of {STOPPED}; got {record['stopped']!r}")
    epochs = [Epoch(*row) for row in history.tolist()]
    steps = whole_number("steps", record["steps"])
    return Training(theta, State(steps, memory), epochs, record["stopped"])
