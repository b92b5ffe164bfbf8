"""Former names of the public API, accepted for one release with a DeprecationWarning.

What files hold under a former name is another table, `old_names`.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, ParamSpec, TypeVar

__all__ = ["accept_old_methods", "old_attributes", "renamed_arguments"]

Arguments = ParamSpec("Arguments")
Returned = TypeVar("Returned")


def warn_renamed(old: str, new: str, stacklevel: int = 3) -> None:
    """Warn that `old` is a former name of `new`.

    Parameters
    ----------
    old, new : str
        Names as a user types them.
    stacklevel : int
        Of `warnings.warn`: 3 shows the line that called the caller of this function.
    """
    warnings.warn(
        f"{old} is now called {new}; the old name goes with version 0.2",
        DeprecationWarning,
        stacklevel=stacklevel,
    )


def old_attributes(module: str, new_names: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a module some of whose names have changed.

    Parameters
    ----------
    module : str
        ``__name__`` of the module.
    new_names : mapping
        From each former name to the name of today.
    """

    def __getattr__(name: str) -> Any:
        if name not in new_names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        warn_renamed(f"{module}.{name}", new_names[name])
        return getattr(sys.modules[module], new_names[name])

    return __getattr__


def renamed_arguments(
    **new_names: str,
) -> Callable[[Callable[Arguments, Returned]], Callable[Arguments, Returned]]:
    """Return a decorator: the function accepts keyword arguments by their former names."""

    def decorate(
        function: Callable[Arguments, Returned],
    ) -> Callable[Arguments, Returned]:
        @wraps(function)
        def with_new_names(
            *args: Arguments.args, **kwargs: Arguments.kwargs
        ) -> Returned:
            for old in new_names.keys() & kwargs.keys():
                warn_renamed(f"argument {old} of {function.__name__}", new_names[old])
                kwargs[new_names[old]] = kwargs.pop(old)
            return function(*args, **kwargs)

        return with_new_names

    return decorate


def accept_old_methods(cls: type, new_names: Mapping[str, str]) -> None:
    """Let a class be written, and its methods be called, by former names of methods.

    A method that `cls` defines by its former name is what today's name means as well; one that
    it defines by today's name can be called by the former one.

    Parameters
    ----------
    cls : type
        The class, which is changed in place.
    new_names : mapping
        From each former name of a method to the name of today.
    """
    for old, new in new_names.items():
        if new in vars(cls):
            setattr(cls, old, _renamed_method(old, new, vars(cls)[new]))
        elif old in vars(cls):
            warn_renamed(f"method {old} of {cls.__name__}", new, stacklevel=4)
            setattr(cls, new, vars(cls)[old])


def _renamed_method(old: str, new: str, method: Any) -> Any:
    @wraps(method)
    def by_old_name(*args: Any, **kwargs: Any) -> Any:
        warn_renamed(f"method {old}", new)
        return method(*args, **kwargs)

    return by_old_name
