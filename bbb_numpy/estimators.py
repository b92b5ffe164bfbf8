"""The union of the gradient estimators, for annotations (floor 3)."""

from __future__ import annotations

from .closed_form import ClosedFormKL, Flipout, LocalReparameterisation
from .gradients import (
    DoublyReparameterised,
    Reparameterised,
    SelfNormalised,
    StickingTheLanding,
)

__all__ = ["Estimator"]

Estimator = (
    Reparameterised
    | StickingTheLanding
    | DoublyReparameterised
    | SelfNormalised
    | ClosedFormKL
    | LocalReparameterisation
    | Flipout
)
