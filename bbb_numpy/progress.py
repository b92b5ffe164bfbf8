"""The progress bar of tqdm."""

import sys
import warnings
from typing import Any

from tqdm import TqdmWarning

with warnings.catch_warnings():  # a notebook without ipywidgets gets the plain bar
    warnings.simplefilter("ignore", TqdmWarning)
    from tqdm.auto import tqdm as _tqdm

__all__ = ["tqdm"]


class tqdm(_tqdm):  # type: ignore[misc]  # it has no types
    """A bar that is not shown, and a line that is not written, where there is no stream for it.

    So it is under ``pythonw`` and for services: `sys.stderr` and `sys.stdout` are None.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        if sys.stderr is None and options.get("file") is None:
            options["disable"] = True
        super().__init__(*arguments, **options)

    @classmethod
    def write(
        cls, s: str, file: Any = None, end: str = "\n", nolock: bool = False
    ) -> None:
        """Write a line above the bars."""
        if file is not None or sys.stdout is not None:
            super().write(s, file, end, nolock)
