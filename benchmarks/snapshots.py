"""What a process holds by name, to compare before and after a proof: it has to be the same."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

__all__ = ["identities", "snapshot"]

# Tools of the tests, which count in their own modules whenever memory is collected
TOOLS = ("hypothesis", "_hypothesis", "pytest", "_pytest", "xdist", "execnet")


def snapshot() -> dict[str, dict[str, Any]]:
    """Return the names of all modules, and of classes of NumPy whose methods a proof needs."""
    owners = {
        name: module
        for name, module in [*sys.modules.items()]
        if hasattr(module, "__dict__") and not name.startswith(TOOLS)
    }
    classes = {"np.vectorize": np.vectorize, "np.ma.MaskedArray": np.ma.MaskedArray}
    return {name: dict(vars(owner)) for name, owner in [*owners.items(), *classes.items()]}


def identities(names: dict[str, dict[str, Any]]) -> dict[str, dict[str, int]]:
    """Return a snapshot that can be compared with ``==``, and keeps none of the objects alive."""
    return {
        owner: {key: id(value) for key, value in own_names.items()}
        for owner, own_names in names.items()
    }
