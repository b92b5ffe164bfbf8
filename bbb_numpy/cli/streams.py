"""What the command line prints to: there even where the system gives nothing, and text alone."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from typing import Any

__all__ = ["safe_streams", "visible"]

# Characters that a terminal obeys, or that reverse the order of others; tabs and lines stay
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
CURSOR_UP = "\x1b[A"  # by which tqdm has several bars


def visible(text: str) -> str:
    r"""Return `text` with control characters as Python writes them, such as ``\x1b``."""
    return CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


class _Visible:
    """A stream that writes control characters of names and cells as `visible` does.

    Of progress bars the carriage return at either end of what is written stays, and the movement
    between their lines.
    """

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        if text.strip("\n").replace(CURSOR_UP, ""):
            inside = text.strip("\r")
            text = text.replace(inside, visible(inside)) if inside else text
        written: int = self._stream.write(text)
        return written

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def safe_streams() -> Iterator[None]:
    """Let what is printed in the block go to where it is text, or nowhere if there is no stream.

    Without standard error, `print` would write to standard output, among the data.
    """
    with ExitStack() as stack:
        for name, redirect in (
            ("stdout", redirect_stdout),
            ("stderr", redirect_stderr),
        ):
            stream = getattr(sys, name)
            if stream is None:
                stream = stack.enter_context(open(os.devnull, "w", encoding="utf-8"))
            redirected: Any = redirect(_Visible(stream))
            stack.enter_context(redirected)
        yield
