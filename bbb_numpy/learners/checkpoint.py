"""Fitted learners in one file: a versioned ``.npz`` without pickle.

The file holds a JSON header (`FORMAT`, `VERSION`, constructor arguments, the model, the
generator's state) and plain arrays (theta, the optimizer's memory, history, or draws; scalers).
Nothing in it is executed, and every field is checked before a learner is made of it: what a
field may hold by `encoding`, the file itself by `read`, which takes versions 1 and 2 too.
"""

from __future__ import annotations

import json
import os
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from ..gradients.catalogue import Estimator
from ..gradients.family import Family
from ..model.joint import Model
from ..numeric.files import write_arrays
from ..numeric.layout import Layout
from ..parts.discrete import BernoulliLikelihood
from ..sampling.draws import STATISTICS, DrawnWeights, Draws
from ..sampling.mcmc import DenseMetric, DiagonalMetric
from ..sampling.mcmc.adaptation import retuned, tunable
from ..training import Epoch, Training
from ..training.optimizers import Memory
from ..version import __version__
from .base import Learner, check_is_fitted
from .classifier import BayesianMLPClassifier
from .encoding import (
    KERNELS,
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
from .plan import check_plan
from .regressor import BayesianMLPRegressor

__all__ = [
    "FORMAT",
    "VERSION",
    "CheckpointError",
    "StoredTarget",
    "decode_drawn",
    "load",
    "pack_draws",
    "read",
    "save",
    "unpack_draws",
    "write",
]


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
    check_is_fitted(model, msg="model is not fitted: there is nothing to save; call fit first")
    draws, arrays = pack_draws(model.draws_) if "draws_" in vars(model) else (None, _trained(model))
    header = np.frombuffer(_header(model, draws).encode(), np.uint8)
    scalers = {name: getattr(model, f"{name}_") for name in SCALERS}
    write(Path(os.path.realpath(path)), {"header": header, **arrays, **scalers})


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model written by `save`.

    It predicts, and if trained goes on with `partial_fit`, bit-identically to the one saved if it
    is on the same machine.

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
    parameters = model.get_params(deep=False) | {"dtype": plan.dtype.name}
    if parameters["hidden_layer_sizes"] is not None:
        parameters["hidden_layer_sizes"] = plan.hidden
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
    model.__dict__.update(fitted, estimator_=estimator)
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
    return Training(theta, Memory(steps, memory), epochs, record["stopped"])


# The file: written whole or not at all, read without trust.

FORMAT = "bbb_numpy.learner"
VERSION = 3
FORMAT_1 = "bbb_numpy.BayesianMLPRegressor"  # of version 1
HEADER = {"format", "version", "learner", "written_by", "parameters", "model", "fitted", "draws"}


def write(path: Path, arrays: dict[str, Array]) -> None:
    """Write `arrays`, replacing an older file only when all is written.

    Raises
    ------
    OSError
        If the file cannot be written; an older file is untouched.
    """
    if path.exists() and not path.is_file():
        raise OSError(f"{path} is no regular file; name a file for the model")
    write_arrays(path, arrays)


def read(path: Path) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return header and arrays of a file, or say why it is no checkpoint.

    Raises
    ------
    CheckpointError
        For anything but a file that `write` has written, of version 1 to 3.
    OSError
        If there is no such file or it cannot be read.
    """
    with open(path, "rb") as file:
        if file.read(6) == b"\x93NUMPY":
            raise CheckpointError("is a single .npy array, not a checkpoint written by save")
        if not zipfile.is_zipfile(file):
            raise CheckpointError("cannot be read; it is no .npz file, or was cut short")
        file.seek(0)
        try:
            content = np.load(file, allow_pickle=False)
            arrays, names = dict(content), content.files
        except Exception as error:  # damage can upset every layer from zip to number format
            why = "it holds objects, not plain arrays" if "pickle" in str(error) else error
            raise CheckpointError(
                f"cannot be read; it is no checkpoint, or damaged ({why})"
            ) from None
    if len(set(names)) != len(names):
        raise CheckpointError("has two entries of the same name")
    strange = [name for name, array in arrays.items() if not isinstance(array, np.ndarray)]
    if strange or "header" not in arrays:
        raise CheckpointError("has no header: not a checkpoint written by save")
    try:
        header = json.loads(arrays.pop("header").tobytes().decode())
    except ValueError as error:
        raise CheckpointError(f"header is not JSON: {error}") from None
    if not isinstance(header, dict) or header.get("format") not in (FORMAT, FORMAT_1):
        raise CheckpointError(f"header: format must be {FORMAT!r}: not a checkpoint of a learner")
    version = header.get("version")
    wanted = (1,) if header["format"] == FORMAT_1 else (2, VERSION)
    if version not in wanted or isinstance(version, bool):
        raise CheckpointError(
            f"header: version {version!r} is not supported, this package reads "
            f"versions up to {VERSION}; the file was written by bbb_numpy "
            f"{header.get('written_by')!r}"
        )
    if version == 1:
        same_names("header", header, HEADER - {"learner", "draws"})
        header, version = _upgraded(header), 2
    if version == 2:
        same_names("header", header, HEADER - {"draws"})
        header = _with_inference(header)
    same_names("header", header, HEADER)
    return header, arrays


def _upgraded(header: dict[str, Any]) -> dict[str, Any]:
    """Turn a header of version 1 into one of version 2, with what it took for granted."""
    header = _with_learn(header)
    given, parts = header["parameters"], header["model"]
    same_names("model", parts, {"network", "prior", "likelihood", "posterior"})
    if not isinstance(given, dict):
        raise CheckpointError(f"parameters must be a table of names; got {given!r}")
    # Defaults may have changed since: those of the time are the fitted model's
    given |= {name: part for name, part in parts.items() if name in given and given[name] is None}
    if given.get("optimizer", "") is None:
        cosine = {"class": "Cosine", "arguments": {"final": 0.0}}
        numbers = {"learning_rate": 1e-2, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8}
        given["optimizer"] = {"class": "Adam", "arguments": numbers | {"schedule": cosine}}
    given |= dict.fromkeys(("objective", "kl_weights"))
    given |= {"estimator": "reparameterised", "warm_up": "none"}
    parts |= {"estimator": "Reparameterised", "antithetic": False}
    parts["objective"] = {"class": "FreeEnergy", "arguments": {"beta": 1.0}}
    return header | {"format": FORMAT, "version": 2, "learner": "BayesianMLPRegressor"}


def _with_inference(header: dict[str, Any]) -> dict[str, Any]:
    """Turn a header of version 2 into one of version 3: nothing was sampled then."""
    given = header["parameters"]
    if not isinstance(given, dict) or "inference" in given:
        raise CheckpointError(f"parameters must be a table of those of version 2; got {given!r}")
    return header | {"version": VERSION, "draws": None, "parameters": given | {"inference": None}}


def _with_learn(value: Any) -> Any:
    """Add to every Gaussian prior that it is not learned."""
    if isinstance(value, list):
        return [_with_learn(item) for item in value]
    if not isinstance(value, dict):
        return value
    value = {key: _with_learn(item) for key, item in value.items()}
    if value.get("class") == "GaussianPrior" and isinstance(value.get("arguments"), dict):
        value["arguments"] = {"learn": False} | value["arguments"]
    return value


# Draws of a posterior, without the data they are of.

RECORD = {"kernel", "warm_up", "warm_up_divergent", "finished"}
REAL = (np.float64, np.float32)
TYPES: dict[str, tuple[Any, ...]] = {"acceptance": REAL, "energy": REAL, "accepted": (np.bool_,)}


@dataclass(frozen=True)
class StoredTarget:
    """Stands for the density of which stored draws are: without data it has no value.

    Parameters
    ----------
    model : Model
    """

    model: Model

    @property
    def layout(self) -> Layout:
        """The blocks of one draw."""
        return DrawnWeights(self.model).layout

    def __call__(self, position: Array) -> NoReturn:
        """Raise ValueError."""
        raise ValueError(
            "a stored model holds its draws, not the data of fit, so that their density cannot be "
            "evaluated; make it with LogJoint(model, x, y), data standardised as in fit"
        )


def decode_drawn(parts: Any) -> DrawnWeights:
    """Return the model of which the draws are."""
    made = decode_parts(parts, ("network", "prior", "likelihood"))
    rest = {name: part for name, part in parts.items() if name not in made}
    wanted = {"posterior": None, "objective": None, "estimator": "DrawnWeights"}
    if rest != wanted | {"antithetic": False}:
        raise CheckpointError(f"model: draws have no posterior, objective or gradient; got {rest}")
    try:
        return DrawnWeights(Model(**made))
    except ValueError as error:
        raise CheckpointError(f"model: {error}") from None


def pack_draws(draws: Draws) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return what of the draws goes into the header, and arrays.

    Raises
    ------
    CheckpointError
        For a kernel of one's own.
    """
    arrays = {"positions": draws.positions, "log_density": draws.log_density}
    for name in STATISTICS:
        stat = draws.stats[name]
        arrays[f"stats.{name}"] = stat if name in TYPES else stat.astype(np.int64)
    kernel, part = draws.kernel, tunable(draws.kernel)
    if part is not None and part.metric is not None:
        metric: Any = part.metric
        dense = isinstance(metric, DenseMetric)
        arrays["metric"] = metric.covariance if dense else metric.variance
        kernel = _with_metric(kernel, None)
    record = {
        "kernel": encode("the kernel of draws_", kernel),
        "warm_up": draws.warm_up,
        "warm_up_divergent": draws.warm_up_divergent,
        "finished": draws.finished,
    }
    return record, arrays


def unpack_draws(record: Any, arrays: dict[str, Array], drawn: DrawnWeights) -> Draws:
    """Undo `pack_draws`, taking what belongs to the draws out of `arrays`.

    Raises
    ------
    CheckpointError
        Naming the first field that is not what `pack_draws` leaves.
    """
    same_names("draws", record, RECORD)
    size = drawn.layout.size
    positions = take_array(arrays, "positions", (None, None, size), REAL)
    shape = positions.shape[:2]
    if not all(shape):
        raise CheckpointError(f"positions must hold at least one draw; got shape {shape}")
    log_density = take_array(arrays, "log_density", shape, REAL)
    stats = {
        name: take_array(arrays, f"stats.{name}", shape, TYPES.get(name, (np.int64,)), nan=True)
        for name in STATISTICS
    }
    kernel = decode("kernel", record["kernel"])
    if not isinstance(kernel, KERNELS):
        raise CheckpointError(f"draws: kernel must be a sampler of the package; got {kernel!r}")
    if "metric" in arrays:
        width = (size, size) if arrays["metric"].ndim == 2 else (size,)
        values = take_array(arrays, "metric", width, REAL)
        try:
            metric = DenseMetric(values) if values.ndim == 2 else DiagonalMetric(values)
        except ValueError as error:
            raise CheckpointError(f"metric: {error}") from None
        kernel = _with_metric(kernel, metric)
    if not isinstance(record["finished"], bool):
        raise CheckpointError(f"finished must be true or false; got {record['finished']!r}")
    return Draws(
        *(positions, log_density, stats, kernel),
        target=StoredTarget(drawn.model),
        layout=drawn.layout,
        warm_up=whole_number("warm_up", record["warm_up"]),
        warm_up_divergent=whole_number("warm_up_divergent", record["warm_up_divergent"]),
        finished=record["finished"],
    )


def _with_metric(kernel: Any, metric: Any) -> Any:
    """Return the kernel with another metric, or None."""
    part = tunable(kernel)
    if part is None:
        raise CheckpointError(f"draws: {type(kernel).__name__} has no metric")
    return retuned(kernel, part.step_size, metric)
