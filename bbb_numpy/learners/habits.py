"""What scikit-learn wants its learners to inherit, or stand-ins where it is missing."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, NoReturn

__all__ = [
    "Base",
    "ClassifierHabits",
    "DataConversionWarning",
    "NoProbabilities",
    "Parameters",
    "RegressorHabits",
    "UndefinedMetricWarning",
]


class Parameters:
    """`get_params`, `set_params` and a repr from the constructor's signature."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the constructor's arguments; `deep` is accepted for scikit-learn's sake."""
        names = list(inspect.signature(type(self).__init__).parameters)[1:]
        return {name: getattr(self, name) for name in names}

    def set_params(self, **params: Any) -> Any:
        """Set constructor arguments by name and return self; they are checked in `fit`."""
        valid = list(self.get_params())
        for name in params:
            if name not in valid:
                raise ValueError(f"Invalid parameter {name!r}; valid parameters are {valid}")
        self.__dict__.update(params)
        return self

    def __repr__(self) -> str:
        given = self.get_params().items()
        defaults = inspect.signature(type(self).__init__).parameters
        changed = [f"{k}={v!r}" for k, v in given if repr(v) != repr(defaults[k].default)]
        return f"{type(self).__name__}({', '.join(changed)})"


try:
    from sklearn.exceptions import DataConversionWarning, UndefinedMetricWarning
except ImportError:

    class DataConversionWarning(UserWarning):  # type: ignore[no-redef]
        """Data were read in another shape than they have."""

    class UndefinedMetricWarning(UserWarning):  # type: ignore[no-redef]
        """A score has no value for these data."""


class NoProbabilities:
    """Stands where a classifier has probabilities, and says that a regressor has none."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: type) -> NoReturn:
        raise AttributeError(
            f"{owner.__name__} predicts numbers and has no {self.name}; predict_distribution has "
            "its uncertainty. For the probabilities of classes use BayesianMLPClassifier"
        )


Base = Parameters


class RegressorHabits:
    """What makes a learner a regressor for scikit-learn."""


class ClassifierHabits:
    """What makes a learner a classifier for scikit-learn."""


if not TYPE_CHECKING:
    try:
        from sklearn.base import BaseEstimator, ClassifierMixin, MultiOutputMixin, RegressorMixin
    except ImportError:
        pass
    else:
        Base, ClassifierHabits = BaseEstimator, ClassifierMixin

        class RegressorHabits(MultiOutputMixin, RegressorMixin):
            """What makes a learner a regressor for scikit-learn."""
