"""The progress bar of tqdm."""

import sys
import warnings
from typing import Any

from tqdm import TqdmWarning

with warnings.catch_warnings():  # no warning if ipywidgets is missing
    warnings.simplefilter("ignore", TqdmWarning)
    from tqdm.auto import tqdm as _tqdm

__all__ = ["tqdm"]


class tqdm(_tqdm):  # type: ignore[misc]  # tqdm ships no type annotations
    """Progress bar that is not shown, and whose `write` does nothing, if there is no output stream.

    That is so under ``pythonw`` and in services, where `sys.stderr` and `sys.stdout` are None.
    """

    def __init__(
        self, *arguments: Any, progress: bool | None = None, **options: Any
    ) -> None:
        """Make a bar with the arguments of `tqdm.tqdm`, which vanishes when it is closed.

        Parameters
        ----------
        *arguments, **options
            As of `tqdm.tqdm`, apart from `disable` and `leave`.
        progress : bool, optional
            Whether the bar is shown. By default it is shown in a terminal or notebook only.
        """
        hidden = None if progress is None else not progress
        if sys.stderr is None and options.get("file") is None:
            hidden = True
        super().__init__(*arguments, disable=hidden, leave=False, **options)

    @classmethod
    def write(
        cls, s: str, file: Any = None, end: str = "\n", nolock: bool = False
    ) -> None:
        """Write a line of text above the progress bars; do nothing without an output stream.

        Parameters
        ----------
        s : str
            Text to write.
        file : file, optional
            Stream to write to; by default standard output, if there is one.
        end : str
            Text that is written after `s`.
        nolock : bool
            If true, do not acquire the lock that protects the bars.
        """
        if file is not None or sys.stdout is not None:
            super().write(s, file, end, nolock)
