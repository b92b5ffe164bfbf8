"""Fitted learners in one file: a versioned ``.npz`` without pickle.

What the file looks like, and that nothing in it is executed, is said in `numeric.storing`. Here
stands which classes a file of a learner may hold.
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
from .fit_report import FitReport
from .inference import Sampling
from .regressor import BayesianMLPRegressor
from .state import FittedState

__all__ = ["CheckpointError", "load", "save"]

LEARNERS: dict[str, Any] = {
    kind.__name__: kind for kind in (BayesianMLPRegressor, BayesianMLPClassifier)
}


class Stored(NamedTuple):
    """What the file of a learner holds."""

    learner: str
    parameters: dict[str, Any]  # of the constructor, as they were given
    fitted: dict[str, Any]  # attributes; their names end in _


# What a fit leaves, beside what has a name
STATES = (
    *(MLP, Model, Training, Epoch, OptimizerState, Laplace, Linearised),
    *(Sampling, DrawnWeights, Draws, Layout, FitReport, Column),
    StepDecay,  # deprecated: it has no name any more, but files have it
)


def _format() -> Format:
    return Format("bbb_numpy.learner", 2, (*classes(), *STATES))


def save(
    model: BayesianMLPRegressor | BayesianMLPClassifier, path: str | os.PathLike[str]
) -> None:
    """Write a fitted model to `path`, replacing an older file only when all is written.

    Parameters
    ----------
    model : BayesianMLPRegressor or BayesianMLPClassifier
        Fitted. Its arguments must be of classes of the package, or of registered ones
        (`bbb_numpy.register`). Of a sampled posterior the draws are stored, not the data.
    path : path-like
        Used as given; ``.npz`` is not appended.

    Raises
    ------
    NotFittedError
        If the model is not fitted.
    CheckpointError
        If an argument cannot be stored (a class that is not registered, an old `RandomState`).
    TypeError
        If `model` is no learner.
    OSError
        If the file cannot be written; an older file is untouched.
    """
    label, place = type(model).__name__, Path(PATH("path", path))
    if LEARNERS.get(label) is not type(model):
        raise TypeError(f"model must be a {' or '.join(LEARNERS)}; got {label}")
    check_is_fitted(
        model, msg="model is not fitted: there is nothing to save; call fit first"
    )
    if place.exists() and not place.is_file():
        raise OSError(f"path {place} is no regular file; name a file for the model")
    fitted = model.fitted_.found()
    if "draws_" in fitted:
        fitted["draws_"] = replace(fitted["draws_"], target=fitted["estimator_"])
    write_state(place, Stored(label, model.get_params(deep=False), fitted), _format())


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model written by `save`: it predicts and trains on bit for bit on the same machine.

    Returns
    -------
    BayesianMLPRegressor or BayesianMLPClassifier

    Raises
    ------
    CheckpointError
        Naming the file: no checkpoint, damaged, or of another version.
    OSError
        If there is no such file or it cannot be read.
    """
    PATH("path", path)
    label, parameters, fitted = read_state(Path(path), Stored, _format())
    try:
        model = LEARNERS[label](**parameters)
        model.fitted_ = FittedState(**fitted)
        model._check_predicts()
    except Exception as error:  # a changed part can upset whatever uses it
        raise CheckpointError(f"{os.fspath(path)} {damaged(error)}") from None
    return model
