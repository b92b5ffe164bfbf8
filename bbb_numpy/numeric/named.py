"""Tables NAMED, in which modules list the objects that they define, by family and name.

For example ``NAMED = {"prior": {"laplace": (LaplacePrior(0.35), LaplacePrior(0.25))}}``. The name
stands for the first object; the second has numbers of about unit size, for checks. A single object
stands for both. If the first object is None, only checks use the name.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
from typing import Any

__all__ = ["Names", "names_in"]

Names = dict[str, dict[str, tuple[Any, Any]]]


def names_in(package: ModuleType) -> Names:
    """Return the tables `NAMED` of a package's modules: pairs of objects by family and name."""
    names: Names = {}
    for module in iter_modules(package.__path__, f"{package.__name__}."):
        for family, table in getattr(import_module(module.name), "NAMED", {}).items():
            for name, entry in table.items():
                pair = entry if isinstance(entry, tuple) else (entry, entry)
                names.setdefault(family, {})[name] = pair
    return {family: dict(sorted(table.items())) for family, table in names.items()}
