"""Ctrl-C ends the command with one line and the exit code 130, even while it is imported.

The package is imported before `main` is, and what it needs for seconds; a KeyboardInterrupt there
is a traceback, or is caught by whoever is being imported. So the package's own first import is this
module, which does something only in the process of the command.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import PurePath
from typing import Any

__all__ = ["at_once", "in_order"]


def _is_command() -> bool:
    """Whether this process is ``bbb-numpy`` or ``python -m bbb_numpy``, and none of its workers."""
    typed, name = sys.orig_argv, sys.argv[0] if sys.argv else ""
    if name == "-m":  # as Python says while it looks for the module
        return "bbb_numpy" in typed or "-mbbb_numpy" in typed
    return PurePath(name).stem == "bbb-numpy" and name in typed


def _leave(*signal_and_frame: Any) -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:  # closed, or interrupted while it writes
            continue
    os.write(2, b"bbb-numpy: interrupted\n")
    os._exit(130)


def at_once() -> None:
    """Let Ctrl-C end the process where it stands, if it is that of the command."""
    if ACTIVE:
        signal.signal(signal.SIGINT, _leave)


def in_order() -> None:
    """Let Ctrl-C raise KeyboardInterrupt again."""
    if ACTIVE:
        signal.signal(signal.SIGINT, signal.default_int_handler)


# Not if Ctrl-C is ignored, as by a shell that started the command in the background
ACTIVE = _is_command() and signal.getsignal(signal.SIGINT) is signal.default_int_handler
at_once()
