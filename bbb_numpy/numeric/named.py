"""Tables NAMED, in which modules list what they define, by family and name.

For example ``NAMED = {"prior": {"laplace": (LaplacePrior(0.35), LaplacePrior(0.25))}}``. The first
object is what the name stands for, the second has numbers of about unit size, for checks; a single
object is both. With None in the first place only checks know the name.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
from typing import Any

__all__ = ["Names", "names_in"]

Names = dict[str, dict[str, tuple[Any, Any]]]


def names_in(package: ModuleType) -> Names:
    """Return the entries of the tables NAMED of a package's modules, by family, sorted by name."""
    found: Names = {}
    for module in iter_modules(package.__path__, f"{package.__name__}."):
        for family, table in getattr(import_module(module.name), "NAMED", {}).items():
            pairs = {
                name: one if isinstance(one, tuple) else (one, one)
                for name, one in table.items()
            }
            found.setdefault(family, {}).update(pairs)
    return {family: dict(sorted(table.items())) for family, table in found.items()}
