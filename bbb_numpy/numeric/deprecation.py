"""Public names that were renamed: the old ones work for one release, with a warning."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import wraps
from importlib import import_module
from typing import Any, ParamSpec, TypeVar

__all__ = [
    "accept_old_attributes",
    "accept_old_methods",
    "renamed_arguments",
    "renamed_names",
]

Arguments = ParamSpec("Arguments")
Returned = TypeVar("Returned")


def renamed_names(module: str, names: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a module, in which old names lead to the new ones.

    Parameters
    ----------
    module : str
        Where the new names are defined: ``__name__`` unless they moved to another module.
    names : mapping of str to str
        From old names to new ones.

    Returns
    -------
    callable
        To be bound to ``__getattr__``. It emits a `DeprecationWarning` that says the new name,
        and raises `AttributeError` for any name that is not in `names`.
    """

    def __getattr__(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        warnings.warn(
            f"{name} is now called {names[name]}; import it from {module}. The old name goes "
            "with version 0.2",
            DeprecationWarning,
            stacklevel=2,
        )
        return getattr(import_module(module), names[name])

    return __getattr__


def renamed_arguments(
    **new_names: str,
) -> Callable[[Callable[Arguments, Returned]], Callable[Arguments, Returned]]:
    """Return a decorator: the function accepts keyword arguments by their old names.

    Parameters
    ----------
    **new_names : str
        From old names to new ones.
    """

    def decorate(
        function: Callable[Arguments, Returned],
    ) -> Callable[Arguments, Returned]:
        @wraps(function)
        def with_new_names(
            *args: Arguments.args, **kwargs: Arguments.kwargs
        ) -> Returned:
            for old in new_names.keys() & kwargs.keys():
                _warn(f"argument {old} of {function.__name__}", new_names[old], 3)
                kwargs[new_names[old]] = kwargs.pop(old)
            return function(*args, **kwargs)

        return with_new_names

    return decorate


def accept_old_attributes(owner: type, names: Mapping[str, str | None]) -> None:
    """Let attributes of objects be read by their old names.

    Parameters
    ----------
    owner : type
        The class, which is changed in place.
    names : mapping of str to str
        From old names to new ones.
    """

    def __getattr__(self: Any, name: str) -> Any:
        label, new_name = type(self).__name__, names.get(name)
        if new_name is None:
            raise AttributeError(f"{label!r} object has no attribute {name!r}")
        _warn(f"attribute {name} of {label}", new_name, 3)
        return getattr(self, new_name)

    owner.__getattr__ = __getattr__  # type: ignore[attr-defined]


def accept_old_methods(owner: type, names: Mapping[str, str]) -> None:
    """Let a class be written, and its methods be called, by old names of methods.

    A method that `owner` defines by its old name can be called by the new one, and the other way
    round. It belongs into `__init_subclass__` of a base class whose methods were renamed.

    Parameters
    ----------
    owner : type
        The class, which is changed in place.
    names : mapping of str to str
        From old names to new ones.
    """
    for old, new in names.items():
        if new in vars(owner):
            setattr(owner, old, _by_old_name(old, new, vars(owner)[new]))
        elif old in vars(owner):
            _warn(f"method {old} of {owner.__name__}", new, 4)
            setattr(owner, new, vars(owner)[old])


def _by_old_name(old: str, new: str, method: Any) -> Any:
    @wraps(method)
    def with_warning(*args: Any, **kwargs: Any) -> Any:
        _warn(f"method {old}", new, 3)
        return method(*args, **kwargs)

    return with_warning


def _warn(old: str, new: str, stacklevel: int) -> None:
    warnings.warn(
        f"{old} is now called {new}. The old name goes with version 0.2",
        DeprecationWarning,
        stacklevel=stacklevel,
    )
