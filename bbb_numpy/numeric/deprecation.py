"""Public names that were renamed: the old ones work for one release, with a warning."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

__all__ = ["renamed_names"]


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
