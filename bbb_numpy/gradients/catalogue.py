"""The tables of `bbb_numpy.registry` by the name that they had before."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from .estimator import GradientEstimator

Estimator = GradientEstimator


def __getattr__(name: str) -> Any:
    """Return the attribute `name` of `bbb_numpy.registry`, such as the table PRIORS."""
    return getattr(import_module("bbb_numpy.registry"), name)
