"""The fitted state of a learner: one frozen object, which the next fit replaces as a whole.

So a call that fails leaves the old state unchanged.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

from ..evaluation.target_units import TARGET_UNITS, TargetUnits
from ..numeric.layout import Array
from ..sampling.draws import Draws
from ..training import Training
from .columns import Column
from .fit_report import FitReport
from .novelty import TrainingRegion

__all__ = ["FittedState", "Stateful"]


@dataclass(frozen=True, eq=False, repr=False)
class FittedState:
    """Results of a fit, which are the fitted attributes of a learner.

    The docstrings of the learners describe the fields. A field that is None does not apply, such as
    `draws_` after training, and the learner has no such attribute.
    """

    estimator_: Any = None
    training_: Training | None = None  # None if the posterior was sampled
    draws_: Draws | None = None  # None if the posterior was trained
    log_evidence_: float | None = None
    inference_: Any = None  # the part that the argument `inference` stood for
    rng_: Any = None  # numpy.random.Generator, as the fit left it
    predict_seed_: int | None = None
    x_mean_: Array | None = None
    x_scale_: Array | None = None
    x_axes_: Array | None = None
    y_mean_: Any = None  # ndarray (K,), as the next in units of y, or of log y
    y_scale_: Any = None
    exposure_scale_: float | None = None  # exposure in which one count is expected
    target_: str | None = (
        None  # scale on which y is modelled; None stands for 'identity'
    )
    n_features_in_: int | None = None
    feature_names_in_: Array | None = None
    n_outputs_: int | None = None
    y_ndim_: int | None = None
    classes_: Array | None = None
    columns_: tuple[Column, ...] | None = None
    fit_report_: FitReport | None = None
    training_region_: TrainingRegion | None = None

    def __repr__(self) -> str:
        """Return the names of the fields that are set, without their values."""
        return f"FittedState({', '.join(self.attributes())})"

    @property
    def units(self) -> TargetUnits:
        """Units of y: the map from the standardised numbers of training to targets."""
        return TARGET_UNITS[self.target_ or "identity"](self.y_mean_, self.y_scale_)

    def attributes(self) -> dict[str, Any]:
        """Return the fitted attributes: the fields that are not None, by name."""
        return {name: value for name, value in vars(self).items() if value is not None}


class Stateful:
    """Base class of learners: their fitted attributes are the fields of `fitted_`."""

    fitted_ = FittedState()


class _FittedAttribute:
    """Descriptor of a learner's attribute that is stored as the field `name` of `fitted_`."""

    def __init__(self, name: str) -> None:
        """Set the name of the field."""
        self.name = name

    def __get__(self, learner: Stateful | None, owner: type) -> Any:
        """Return the value of the field; raise AttributeError if it is None."""
        if learner is None:
            return self
        value = getattr(learner.fitted_, self.name)
        if value is None:
            raise AttributeError(f"{owner.__name__} has no attribute {self.name!r}")
        return value

    def __set__(self, learner: Stateful, value: Any) -> None:
        """Replace `fitted_` by a state with another value of the field."""
        learner.fitted_ = replace(learner.fitted_, **{self.name: value})


for _field in fields(FittedState):
    setattr(Stateful, _field.name, _FittedAttribute(_field.name))
