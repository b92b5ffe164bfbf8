"""What scikit-learn wants its regressors to inherit, or a stand-in where it is missing."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

__all__ = ["Base", "Parameters"]


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


Base = Parameters
if not TYPE_CHECKING:
    try:
        from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
    except ImportError:
        pass
    else:

        class Base(MultiOutputMixin, RegressorMixin, BaseEstimator):
            """What scikit-learn wants its regressors to inherit."""
