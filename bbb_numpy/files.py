"""Files of arrays, written whole or not at all (floor 0)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

__all__ = ["write_arrays"]


def write_arrays(path: Path, arrays: dict[str, NDArray[Any]]) -> None:
    """Write `arrays` as .npz, replacing an older file only when all is written.

    Raises
    ------
    OSError
        If the file cannot be written; an older file is untouched.
    """
    unfinished = path.with_name(f".{path.name}.{uuid4().hex}")
    try:
        with open(unfinished, "xb") as file:
            np.savez(file, allow_pickle=False, **arrays)
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)
