"""Public names that were renamed: the old ones work for one release, with a warning."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any, ParamSpec, TypeVar

__all__ = ["renamed_arguments", "renamed_names", "warn_renamed"]

Arguments = ParamSpec("Arguments")
Returned = TypeVar("Returned")


def warn_renamed(old: str, new: str) -> None:
    """Warn with a DeprecationWarning that the name `old` has been replaced by `new`.

    The warning shows the line that calls the caller of this function.

    Parameters
    ----------
    old, new : str
        The name that was used, and the one to use.
    """
    warnings.warn(
        f"{old} is now called {new}. The old name will be removed in version 0.2",
        DeprecationWarning,
        stacklevel=3,
    )


def renamed_arguments(
    **new_names: str,
) -> Callable[[Callable[Arguments, Returned]], Callable[Arguments, Returned]]:
    """Return a decorator that lets a function accept keyword arguments by their old names, too.

    An argument that is passed by its old name emits a DeprecationWarning.

    Parameters
    ----------
    **new_names : str
        Old names as keywords, new names as values: ``points="n_points"``.
    """

    def accepting_old_names(
        function: Callable[Arguments, Returned],
    ) -> Callable[Arguments, Returned]:
        @functools.wraps(function)
        def renamed(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Returned:
            __tracebackhide__ = True
            for old in kwargs.keys() & new_names.keys():
                warn_renamed(old, new_names[old])
                kwargs[new_names[old]] = kwargs.pop(old)
            return function(*args, **kwargs)

        return renamed

    return accepting_old_names


def renamed_names(module: str, new_names: dict[str, str]) -> Callable[[str], Any]:
    """Return a ``__getattr__`` with which a module's renamed objects are found by their old names.

    It emits a DeprecationWarning for an old name, and raises AttributeError for an unknown one.

    Parameters
    ----------
    module : str
        The module's ``__name__``.
    new_names : dict of str to str
        Old names as keys, new names as values.
    """

    def __getattr__(name: str) -> Any:
        if name not in new_names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        warn_renamed(name, new_names[name])
        return getattr(import_module(module), new_names[name])

    return __getattr__
