"""Save a fitted learner, or a calibration of one, to one versioned ``.npz`` without pickle.

`numeric.storing` describes the format, and why loading a file executes nothing of it. This module
lists the classes that the file of a learner may hold.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from ..model.joint import Model
from ..numeric.layout import Layout
from ..numeric.reading import damaged
from ..numeric.storing import CheckpointError, Format, read_state, write_state
from ..numeric.validation import PATH
from ..parts.network import MLP
from ..registry import classes
from ..sampling.draws import DrawnWeights, Draws
from ..training import Epoch, Training
from ..training.laplace import Laplace, Linearised
from ..training.optimizers import OptimizerState, StepDecay
from .base import check_is_fitted
from .classifier import BayesianMLPClassifier
from .columns import Column
from .ensemble import Ensemble
from .fit_report import FitReport
from .inference import Sampling
from .novelty import TrainingRegion
from .recalibrated import Conformal, HeldOutCalibration, Recalibrated
from .regressor import BayesianMLPRegressor
from .state import FittedState

__all__ = ["CheckpointError", "load", "save"]

LEARNERS: dict[str, Any] = {
    "BayesianMLPRegressor": BayesianMLPRegressor,
    "BayesianMLPClassifier": BayesianMLPClassifier,
    "Conformal": Conformal,
    "Recalibrated": Recalibrated,
}


class Stored(NamedTuple):
    """The content of the file of a learner, or of a calibration around another `Stored`.

    Parameters
    ----------
    learner : str
        Name of its class.
    parameters : dict
        Constructor arguments by name, as the user has given them.
    fitted : dict
        Fields of its `FittedState` that are not None, or fitted attributes of a calibration, by
        name; empty if it is not fitted. A calibration without ``estimator_`` has ``estimator``.
    """

    learner: str
    parameters: dict[str, Any]
    fitted: dict[str, Any]


# Classes of fitted attributes that a file may hold; classes of parts are in the registry
STATE_CLASSES = (
    Stored,
    MLP,
    Model,
    Training,
    Epoch,
    OptimizerState,
    Laplace,
    Linearised,
    Sampling,
    Ensemble,
    DrawnWeights,
    Draws,
    Layout,
    FitReport,
    TrainingRegion,
    Column,
    StepDecay,  # deprecated and not registered, but files of earlier versions hold it
)


def _format() -> Format:
    """Return the file format of learners: its name, version, and the classes that it may hold."""
    return Format("bbb_numpy.learner", 2, (*classes(), *STATE_CLASSES))


def save(
    model: BayesianMLPRegressor | BayesianMLPClassifier | HeldOutCalibration,
    path: str | os.PathLike[str],
) -> None:
    """Save a fitted model to a file, which replaces an existing file once it is complete.

    Parameters
    ----------
    model : BayesianMLPRegressor, BayesianMLPClassifier, Conformal or Recalibrated
        A fitted model; a calibration must be one of such a model. Its arguments must be of classes
        of the package or of registered ones (`bbb_numpy.register`). The draws of a sampled
        posterior are stored, the data are not.
    path : path-like
        The file, used as given: ``.npz`` is not appended.

    Raises
    ------
    NotFittedError
        If the model is not fitted.
    CheckpointError
        If an argument cannot be stored, such as an object of a class that is not registered, or
        a `RandomState`.
    TypeError
        If `model` is no learner, and no calibration of one.
    OSError
        If the file cannot be written; an older file is untouched.
    """
    file = Path(PATH("path", path))
    stored = _to_stored("model", model)
    check_is_fitted(
        model, msg="model is not fitted: there is nothing to save; call fit first"
    )
    if file.exists() and not file.is_file():
        raise OSError(
            f"path must be a regular file; got {file}, which is not one: name another"
        )
    write_state(file, stored, _format())


def _to_stored(name: str, model: Any) -> Stored:
    """Return what a file holds of a learner or calibration, fitted or not; `name` is for errors."""
    class_name = type(model).__name__
    if LEARNERS.get(class_name) is not type(model):
        raise TypeError(f"{name} must be a {' or '.join(LEARNERS)}; got {class_name}")
    parameters = model.get_params(deep=False)
    if not isinstance(model, HeldOutCalibration):
        fitted = model.fitted_.attributes()
        if "draws_" in fitted:
            fitted["draws_"] = replace(fitted["draws_"], target=fitted["estimator_"])
        return Stored(class_name, parameters, fitted)
    fitted = {
        name: value for name, value in vars(model).items() if name in model.fitted_names
    }
    parameters["estimator"] = _to_stored(f"{name}.estimator", model.estimator)
    # `calibrate` leaves one learner in both places, which is stored once
    learner = fitted.pop("estimator_", model.estimator)
    if learner is not model.estimator:
        fitted["estimator_"] = _to_stored(f"{name}.estimator_", learner)
    return Stored(class_name, parameters, fitted)


def load(path: str | os.PathLike[str]) -> Any:
    """Load a fitted model from a file that `save` has written.

    On the same machine it predicts, and continues training, bit for bit as the saved one.

    Parameters
    ----------
    path : path-like
        File that `save` has written.

    Returns
    -------
    BayesianMLPRegressor, BayesianMLPClassifier, Conformal or Recalibrated
        The fitted model.

    Raises
    ------
    CheckpointError
        If `save` has not written the file, or it is damaged or of another version. The message
        names the file.
    OSError
        If there is no such file or it cannot be read.
    """
    PATH("path", path)
    stored = read_state(Path(path), Stored, _format())
    try:
        model = _from_stored(stored)
        check_is_fitted(model)
    except Exception as error:  # damaged values can raise any error
        raise CheckpointError(f"{os.fspath(path)} {damaged(error)}") from None
    return model


def _from_stored(stored: Stored) -> Any:
    """Return the learner or calibration that `_to_stored` described; raise an error if damaged."""
    learner_class = LEARNERS[stored.learner]
    if not issubclass(learner_class, HeldOutCalibration):
        model = learner_class(**stored.parameters)
        if stored.fitted:
            model.fitted_ = FittedState(**stored.fitted)
            model._check_predicts()
        return model
    estimator = _from_stored(stored.parameters["estimator"])
    model = learner_class(**stored.parameters | {"estimator": estimator})
    fitted = dict(stored.fitted)
    if not fitted:
        return model
    model.estimator_ = estimator
    if "estimator_" in fitted:
        model.estimator_ = _from_stored(fitted.pop("estimator_"))
    for name, value in fitted.items():
        if name not in model.fitted_names:
            raise ValueError(f"{name} is no attribute of {stored.learner}")
        setattr(model, name, value)
    model._check_predicts()
    return model
