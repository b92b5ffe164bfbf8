"""Standard output and standard error that always exist, and escape control characters."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from typing import Any

__all__ = ["safe_streams", "visible"]

# Characters that control a terminal or reverse the direction of text; tab and newline are kept
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
CURSOR_UP = "\x1b[A"  # sequence by which tqdm moves between the lines of several bars


def visible(text: str) -> str:
    r"""Return `text` with its control characters escaped, such as ``\x1b``."""
    return CONTROLS.sub(
        lambda control: control[0].encode("unicode_escape").decode(), text
    )


class _Visible:
    """Wrapper of a stream that escapes control characters in the text that is written.

    Carriage returns at either end of a text, and the movement of the cursor up a line, are written
    unchanged, since progress bars use them.
    """

    def __init__(self, stream: Any) -> None:
        """Set the stream to write to."""
        self._stream = stream

    def write(self, text: str) -> int:
        """Write text with control characters escaped; return the number of characters written."""
        if text.strip("\n").replace(CURSOR_UP, ""):
            inside = text.strip("\r")
            text = text.replace(inside, visible(inside)) if inside else text
        written: int = self._stream.write(text)
        return written

    def __getattr__(self, name: str) -> Any:
        """Return any other attribute of the wrapped stream."""
        return getattr(self._stream, name)


@contextmanager
def safe_streams() -> Iterator[None]:
    """Escape control characters in all text that the block prints.

    A stream that the system does not provide is replaced by one that discards its text. Without
    that, `print` to a missing standard error would write messages to standard output.
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
