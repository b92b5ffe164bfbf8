"""The union of the gradient estimators, for annotations (floor 3)."""

from __future__ import annotations

from .closed_form import ClosedFormKL
from .flipout import Flipout
from .gradients import Reparameterised, StickingTheLanding
from .importance import DoublyReparameterised, SelfNormalised
from .local_reparameterisation import LocalReparameterisation

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
