"""Fitted learners in one file: a versioned ``.npz`` without pickle.

What the file looks like, and that nothing in it is executed, is said in `numeric.storing`. Here
stands what a file of a learner may hold, and what of it must go together before a learner is made
of it: shapes, finite numbers, positive scales, sorted labels.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, get_type_hints

import numpy as np
from numpy.typing import NDArray

from ..gradients.catalogue import (
    ESTIMATORS,
    KL_WEIGHTS,
    LIKELIHOODS,
    OBJECTIVES,
    POSTERIORS,
    PRIORS,
    WARM_UPS,
    kinds,
)
from ..model.joint import Model
from ..numeric.layout import Layout
from ..numeric.storing import (
    CheckpointError,
    Format,
    check_type,
    read_state,
    same_names,
    write_state,
)
from ..numeric.validation import PATH
from ..parts.discrete import BernoulliLikelihood
from ..parts.hyperpriors import HalfCauchy, HalfNormal, LogNormal
from ..parts.network import MLP
from ..sampling import mcmc
from ..sampling.draws import STATISTICS, DrawnWeights, Draws
from ..sampling.mcmc.adaptation import tunable
from ..training import EarlyStopping, Epoch, Training
from ..training.optimizers import SGD, Adam, Constant, Cosine, Memory, Momentum, StepDecay
from .base import Learner, check_is_fitted
from .classifier import BayesianMLPClassifier
from .columns import Column
from .fit_report import FitReport
from .inference import Sampling
from .plan import check_plan
from .regressor import BayesianMLPRegressor

__all__ = ["FORMAT", "CheckpointError", "StoredTarget", "load", "save"]

Array = NDArray[Any]
LEARNERS: dict[str, Any] = {
    kind.__name__: kind for kind in (BayesianMLPRegressor, BayesianMLPClassifier)
}


class Stored(NamedTuple):
    """What the file of a learner holds."""

    learner: str
    parameters: dict[str, Any]  # of the constructor, as they were given
    fitted: dict[str, Any]  # attributes


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


SCHEDULES = (Constant, Cosine, StepDecay)
KERNELS = (
    mcmc.NUTS,
    mcmc.ChEES,
    mcmc.HMC,
    mcmc.MAMS,
    mcmc.MCLMC,
    mcmc.MetropolisHastings,
)
WALKS = (mcmc.GaussianWalk, mcmc.StudentWalk, mcmc.LogNormalWalk, mcmc.Langevin)
METRICS = (mcmc.DiagonalMetric, mcmc.DenseMetric)
CLASSES = (
    MLP,
    Model,
    *kinds(PRIORS),
    *kinds(LIKELIHOODS),
    *kinds(POSTERIORS),
    *kinds(OBJECTIVES),
    *kinds(WARM_UPS),
    *KL_WEIGHTS.values(),
    *(make.func if isinstance(make, partial) else make for make in ESTIMATORS.values()),
    Training,
    Memory,
    Epoch,
    EarlyStopping,
    SGD,
    Momentum,
    Adam,
    *SCHEDULES,
    Sampling,
    FitReport,
    LogNormal,
    HalfNormal,
    HalfCauchy,
    DrawnWeights,
    Draws,
    StoredTarget,
    Layout,
    *KERNELS,
    *WALKS,
    *METRICS,
    Column,
)
FORMAT = Format("bbb_numpy.learner", 1, tuple(dict.fromkeys(CLASSES)))

SCALERS = ("x_mean_", "x_scale_", "y_mean_", "y_scale_")
FITTED = {"n_features_in_", "predict_seed_", "rng_", "estimator_", *SCALERS}
OWN = {"BayesianMLPRegressor": {"n_outputs_", "y_ndim_"}, "BayesianMLPClassifier": {"classes_"}}
NAMES = {"feature_names_in_", "columns_"}
SOMETIMES = {"training_", "draws_", "fit_report_", *NAMES}
MEMORIES: tuple[set[str], ...] = (set(), {"velocity"}, {"m", "v"})  # SGD, Momentum, Adam
REAL = (np.float64, np.float32)
DTYPES: dict[str, tuple[Any, ...]] = {"acceptance": REAL, "energy": REAL, "accepted": (np.bool_,)}


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
    PATH("path", path)
    label = type(model).__name__
    if LEARNERS.get(label) is not type(model):
        raise TypeError(f"model must be a {' or '.join(LEARNERS)}; got {label}")
    check_is_fitted(model, msg="model is not fitted: there is nothing to save; call fit first")
    held = vars(model)
    parameters = model.get_params(deep=False)
    check_plan(parameters, model.task)
    fitted = {name: held[name] for name in FITTED | OWN[label] | SOMETIMES if name in held}
    if "draws_" in held:
        target = StoredTarget(held["estimator_"].model)
        fitted["draws_"] = replace(held["draws_"], target=target)
    place = Path(os.path.realpath(path))
    if place.exists() and not place.is_file():
        raise OSError(f"path {place} is no regular file; name a file for the model")
    stored = _with_pairs(parameters)
    write_state(place, Stored(label, stored, dict(sorted(fitted.items()))), FORMAT)


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
    PATH("path", path)
    try:
        return _learner(read_state(Path(path), Stored, FORMAT))
    except CheckpointError as error:
        raise CheckpointError(f"{os.fspath(path)}: {error}") from None


def _learner(stored: Stored) -> Learner:
    """Check what must go together, and build the learner."""
    label, parameters, fitted = stored
    if label not in LEARNERS:
        raise CheckpointError(f"learner must be {' or '.join(LEARNERS)}; got {label!r}")
    model: Learner = LEARNERS[label]()
    parameters = _without_pairs(parameters)
    _check_parameters(model, parameters)
    sampled = isinstance(fitted.get("estimator_"), DrawnWeights)
    rest = {"draws_" if sampled else "training_"}
    rest |= {"fit_report_", *NAMES} & set(fitted)
    same_names("fitted", fitted, FITTED | OWN[label] | rest)
    hints = get_type_hints(type(model))
    for name, value in fitted.items():
        check_type(f"fitted.{name}", value, hints.get(name, np.ndarray))
    _check_model(model, fitted["estimator_"])
    _check_widths(fitted)
    if sampled:
        _check_draws(fitted["draws_"], fitted["estimator_"])
    else:
        _check_training(fitted["training_"], fitted["estimator_"].layout.size)
    model.set_params(**parameters)
    model.__dict__.update(fitted)
    return model


def _with_pairs(parameters: dict[str, Any]) -> dict[str, Any]:
    """Return `parameters` with a dict of class weights as pairs: its keys are not always text."""
    given = parameters.get("class_weight")
    pairs = tuple(given.items()) if isinstance(given, Mapping) else given
    return {**parameters, "class_weight": pairs} if "class_weight" in parameters else parameters


def _without_pairs(parameters: dict[str, Any]) -> dict[str, Any]:
    """Undo `_with_pairs`."""
    pairs = parameters.get("class_weight")
    if not isinstance(pairs, tuple):
        return parameters
    place = "parameters.class_weight"
    for pair in pairs:
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise CheckpointError(f"{place} must hold pairs of label and weight; got {pair!r}")
        if not isinstance(pair[0], (str, bool, int, float)):
            raise CheckpointError(f"{place} must hold labels; got {pair[0]!r}")
    return {**parameters, "class_weight": dict(pairs)}


def _check_parameters(model: Learner, parameters: dict[str, Any]) -> None:
    same_names("parameters", parameters, set(model.get_params(deep=False)))
    try:
        plan = check_plan(parameters, model.task)
    except (TypeError, ValueError) as error:
        raise CheckpointError(f"parameters: {error}") from None
    _need("parameters.optimizer.schedule", plan.optimizer.schedule, SCHEDULES)
    if plan.kl_warm_up is not None:
        _need("parameters.kl_warm_up", plan.kl_warm_up, kinds(WARM_UPS))


def _check_model(model: Learner, estimator: Any) -> None:
    place, parts = "fitted.estimator_", estimator.model
    _need(f"{place}.model.prior", parts.prior, kinds(PRIORS))
    _need(f"{place}.model.likelihood", parts.likelihood, model.task.likelihoods)
    if not isinstance(estimator, DrawnWeights):
        _need(f"{place}.posterior", estimator.posterior, kinds(POSTERIORS))
        _need(f"{place}.objective", estimator.objective, kinds(OBJECTIVES))


def _check_widths(fitted: dict[str, Any]) -> None:
    """Check columns, outputs, classes and units against the network."""
    model = fitted["estimator_"].model
    sizes, outputs = model.network.sizes, model.outputs
    for name in ("predict_seed_", "n_features_in_", "n_outputs_", "y_ndim_"):
        _need_whole(f"fitted.{name}", fitted.get(name, 0))
    if (fitted["n_features_in_"], fitted.get("n_outputs_", outputs)) != (sizes[0], outputs):
        raise CheckpointError(f"n_features_in_ and n_outputs_ must be the ends of sizes {sizes}")
    if fitted.get("y_ndim_", 2) not in ((1, 2) if outputs == 1 else (2,)):
        raise CheckpointError(f"y_ndim_ {fitted['y_ndim_']} does not fit {outputs} outputs")
    if "classes_" in fitted:
        _check_classes(fitted["classes_"], model)
    if "feature_names_in_" in fitted:
        names = fitted["feature_names_in_"].tolist()
        if [type(name) for name in names] != [str] * sizes[0]:
            raise CheckpointError(f"feature_names_in_ must be {sizes[0]} texts; got {names}")
    if "columns_" in fitted:
        features = [feature for column in fitted["columns_"] for feature in column.features]
        if not features or features != fitted.get("feature_names_in_", np.zeros(0)).tolist():
            raise CheckpointError("columns_ do not give the features of feature_names_in_")
    for name in SCALERS:
        shape = (sizes[0] if name.startswith("x") else outputs,)
        _need_array(f"fitted.{name}", fitted[name], shape, (np.float64,))
        if name.endswith("scale_") and not (fitted[name] > 0).all():
            raise CheckpointError(f"fitted.{name} must be positive; got {fitted[name].min():g}")


def _check_classes(labels: Array, model: Model) -> None:
    single = isinstance(model.likelihood, BernoulliLikelihood)
    if labels.shape != (2 if single else model.outputs,):
        sizes = model.network.sizes
        raise CheckpointError(f"classes_ of shape {labels.shape} do not fit sizes {sizes}")
    alike = len({type(label) for label in labels.tolist()}) == 1
    if not alike or len(labels) < 2 or not (labels[:-1] < labels[1:]).all():
        raise CheckpointError(
            f"classes_ must be at least two sorted labels of one type; got {labels.tolist()}"
        )


def _check_training(training: Training, size: int) -> None:
    place, memory = "fitted.training_", training.optimizer_state
    _need_array(f"{place}.theta", training.theta, (size,), REAL)
    if set(memory.arrays) not in MEMORIES:
        names = sorted(memory.arrays)
        raise CheckpointError(f"{place}: memory of {names}, which no optimizer keeps")
    for name, array in memory.arrays.items():
        where = f"{place}.optimizer_state.arrays.{name}"
        _need_array(where, array, (size,), (training.theta.dtype,))
        if name == "v" and (array < 0).any():
            raise CheckpointError(f"{where} holds mean squares and must not be negative")
    _need_whole(f"{place}.optimizer_state.steps", memory.steps)
    for name in Epoch._fields:
        if name != "validation" and not np.isfinite(training.column(name)).all():
            raise CheckpointError(f"{place}.history: {name} must be finite")


def _check_draws(draws: Draws, drawn: DrawnWeights) -> None:
    place, size = "fitted.draws_", drawn.layout.size
    if (draws.target, draws.layout) != (StoredTarget(drawn.model), drawn.layout):
        raise CheckpointError(f"{place}: target and layout must be those of the model")
    _need_array(f"{place}.positions", draws.positions, (None, None, size), REAL)
    shape = draws.positions.shape[:2]
    if not all(shape):
        raise CheckpointError(f"{place}.positions must hold at least one draw; got shape {shape}")
    _need_array(f"{place}.log_density", draws.log_density, shape, REAL)
    same_names(f"{place}.stats", draws.stats, set(STATISTICS))
    for name, stat in draws.stats.items():
        dtypes = DTYPES.get(name, (np.int64,))
        _need_array(f"{place}.stats.{name}", stat, shape, dtypes, nan=True)
    _need_whole(f"{place}.warm_up", draws.warm_up)
    _need_whole(f"{place}.warm_up_divergent", draws.warm_up_divergent)
    _check_kernel(f"{place}.kernel", draws.kernel, size)
    for number, kernel in enumerate(draws.other_kernels):
        _check_kernel(f"{place}.other_kernels[{number}]", kernel, size)


def _check_kernel(place: str, kernel: Any, size: int) -> None:
    _need(place, kernel, KERNELS)
    metric: Any = getattr(tunable(kernel), "metric", None)
    if metric is not None:
        [name] = (field.name for field in fields(metric))
        numbers = getattr(metric, name)
        _need_array(f"{place}.metric.{name}", numbers, (size,) * numbers.ndim, REAL)


def _need(place: str, value: Any, classes: tuple[type, ...]) -> None:
    """Raise unless `value` is of exactly one of these classes."""
    if type(value) not in classes:
        accepted = " or ".join(kind.__name__ for kind in classes)
        raise CheckpointError(f"{place} must be a {accepted}; got {value!r}")


def _need_whole(place: str, value: int) -> None:
    """Raise unless a number is >= 0 and fits in 63 bits."""
    if not 0 <= value < 2**63:
        raise CheckpointError(f"{place} must be a whole number >= 0; got {value!r}")


def _need_array(
    place: str,
    array: Array,
    shape: tuple[int | None, ...],
    dtypes: tuple[Any, ...],
    nan: bool = False,
) -> None:
    """Raise unless `array` has this shape (None: any length), dtype and finite numbers."""
    if array.dtype not in dtypes:
        accepted = " or ".join(np.dtype(dtype).name for dtype in dtypes)
        raise CheckpointError(f"{place} must have dtype {accepted}; got {array.dtype}")
    if len(array.shape) != len(shape) or any(
        wanted not in (None, given) for wanted, given in zip(shape, array.shape, strict=True)
    ):
        raise CheckpointError(f"{place} must have shape {shape}; got {array.shape}")
    if not nan and not np.isfinite(array).all():
        raise CheckpointError(f"{place} holds nan or infinity")
