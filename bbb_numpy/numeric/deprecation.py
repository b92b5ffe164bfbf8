"""Public names that were renamed: the old ones work for one release, with a warning."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import wraps
from importlib import import_module
from typing import Any, ParamSpec, TypeVar

__all__ = [
    "accept_old_attributes",
    "accept_old_members",
    "renamed_arguments",
    "renamed_names",
]

Arguments = ParamSpec("Arguments")
Returned = TypeVar("Returned")


def renamed_names(module: str, names: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a ``__getattr__`` for a module, which looks up old names by their new ones.

    Parameters
    ----------
    module : str
        Module that defines the new names: ``__name__``, unless they moved to another one.
    names : mapping of str to str
        New name of each old name.

    Returns
    -------
    callable
        Function to be bound to ``__getattr__``. It emits a `DeprecationWarning` with the new name,
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
    """Return a decorator that lets a function accept keyword arguments by their old names.

    A call with an old name emits a `DeprecationWarning`.

    Parameters
    ----------
    **new_names : str
        New name of each old name: ``renamed_arguments(old="new")``.
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
    """Let attributes of a class's objects be read by their old names, with a warning.

    Parameters
    ----------
    owner : type
        The class, whose ``__getattr__`` is replaced.
    names : mapping of str to str or None
        New name of each old name; None for a name without a successor, which raises
        AttributeError.
    """

    def __getattr__(self: Any, name: str) -> Any:
        label, new_name = type(self).__name__, names.get(name)
        if new_name is None:
            raise AttributeError(f"{label!r} object has no attribute {name!r}")
        _warn(f"attribute {name} of {label}", new_name, 3)
        return getattr(self, new_name)

    owner.__getattr__ = __getattr__  # type: ignore[attr-defined]


def accept_old_members(owner: type, names: Mapping[str, str]) -> None:
    """Let a class define methods and values by their old names, and call methods by either name.

    A member that `owner` defines by its old name has the new one too, with a warning. A method that
    it defines by the new name can be called by the old one, with a warning at each call. The
    function is called in the `__init_subclass__` of a base class whose members were renamed.

    Parameters
    ----------
    owner : type
        The class, which is changed in place.
    names : mapping of str to str
        New name of each old name.
    """
    members = vars(owner)
    for old, new in names.items():
        if new not in members and old in members:
            _warn(f"member {old} of {owner.__name__}", new, 4)
            setattr(owner, new, members[old])
        elif callable(members.get(new)):
            setattr(owner, old, _by_old_name(old, new, members[new]))


def _by_old_name(old: str, new: str, method: Any) -> Any:
    """Return `method`, called `new` today, with a warning for calls by the name `old`."""

    @wraps(method)
    def with_warning(*args: Any, **kwargs: Any) -> Any:
        _warn(f"method {old}", new, 3)
        return method(*args, **kwargs)

    return with_warning


def _warn(old: str, new: str, stacklevel: int) -> None:
    """Emit a DeprecationWarning that `old`, e.g. "argument x of f", is now called `new`."""
    warnings.warn(
        f"{old} is now called {new}. The old name goes with version 0.2",
        DeprecationWarning,
        stacklevel=stacklevel,
    )
