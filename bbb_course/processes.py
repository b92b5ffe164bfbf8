"""Run a program that may do anything: what it says is bounded, and what it starts ends with it."""

from __future__ import annotations

import contextlib
import os
import secrets
import select
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from threading import Thread, Timer
from types import TracebackType

from . import guard

__all__ = ["Ended", "Process", "printable"]

MAX_MESSAGE_BYTES = 2**20  # bytes of one message
MAX_OUTPUT_BYTES = 10 * 2**20  # bytes
LARGE_OUTPUT_BYTES = 10**5  # printing more may be why time ran out
LAST_OUTPUT_BYTES = 2**14  # bytes of what was printed last
MAX_SHOWN_LINES = 20
MAX_LINE_LENGTH = 200
# what a pipe takes at once when it is ready
PIPE_BYTES = getattr(select, "PIPE_BUF", 512)
POLL_INTERVAL_MS = 100
START_ALLOWANCE_S = 10.0  # to start a process, beyond its time limit
SIGALRM = getattr(signal, "SIGALRM", -1)
POSIX = os.name != "nt"


class Ended(Exception):
    """A program ended, or was ended, before it answered; the text says why."""


def printable(text: str) -> str:
    """Return a text without characters that a terminal would obey."""
    return "".join(letter if letter.isprintable() else " " for letter in text)


class Process:
    """A program that is spoken to line by line; use it in a ``with`` statement.

    Parameters
    ----------
    command : sequence of str
        The program by its path, and its arguments.
    seconds : float
        Its time limit. It should end itself then, and is ended `START_ALLOWANCE_S` later.
    environment : mapping
        Variables besides those of this process.
    """

    def __init__(
        self, command: Sequence[str], seconds: float, environment: Mapping[str, str]
    ) -> None:
        self.seconds = seconds
        self.mark = secrets.token_hex(16)
        self.reason = ""  # why it was ended
        self._has_ended = False
        self._received = bytearray()
        self._n_printed = 0
        self._last_printed = b""
        lifeline, self._lifeline = os.pipe()
        printed, prints = os.pipe()
        guard_command = [
            sys.executable,
            "-I",
            "-S",
            guard.__file__,
            str(lifeline),
            self.mark,
        ]
        try:
            self._process = subprocess.Popen(
                [*(guard_command if POSIX else []), *command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=prints,
                env={**os.environ, **environment, guard.MARK: self.mark},
                pass_fds=[lifeline] if POSIX else [],
                start_new_session=True,
                bufsize=0,
            )
        finally:
            os.close(lifeline)
            os.close(prints)
        self._timer = Timer(seconds + START_ALLOWANCE_S, self._stop_late)
        self._reader = Thread(target=self._read_printed, args=[printed], daemon=True)
        self._timer.start()
        self._reader.start()

    def __enter__(self) -> Process:
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._timer.cancel()
        self.end()
        os.close(self._lifeline)
        with contextlib.suppress(BrokenPipeError):
            self._process.__exit__(error_type, error, traceback)
        self._reader.join(1.0)

    def send(self, line: bytes) -> None:
        """Write a line to its standard input; nothing happens if it has ended."""
        assert self._process.stdin is not None
        pipe = self._process.stdin.fileno()
        unsent = memoryview(line + b"\n")
        with contextlib.suppress(BrokenPipeError):
            while unsent and self._is_ready(pipe, "POLLOUT"):
                unsent = unsent[os.write(pipe, unsent[:PIPE_BYTES]) :]

    def receive(self) -> bytes:
        """Return a line of its standard output.

        Raises
        ------
        Ended
            If there is none, or it is longer than `MAX_MESSAGE_BYTES`.
        """
        assert self._process.stdout is not None
        pipe = self._process.stdout.fileno()
        while (line_end := self._received.find(b"\n")) < 0:
            if len(self._received) > MAX_MESSAGE_BYTES:
                self._stop("it writes more than 1 MB where its answer is read")
            chunk = b""
            if self._is_ready(pipe, "POLLIN"):
                chunk = os.read(pipe, 2**16)
            if not chunk:
                raise Ended(self._why())
            self._received += chunk
        line = bytes(self._received[: line_end + 1])
        del self._received[: line_end + 1]
        return line

    def _is_ready(self, pipe: int, event: str) -> bool:
        """Wait until a pipe can be read or written; return False if the program is ended before.

        Waiting must end, since a process that escaped may hold the other end of the pipe.
        """
        if not POSIX:  # where pipes cannot be waited for
            return True
        poll = select.poll()
        poll.register(pipe, getattr(select, event))
        while not self._has_ended:
            if poll.poll(POLL_INTERVAL_MS):
                return True
        return False

    def end(self) -> None:
        """Kill it, and what it has started."""
        self._has_ended = True
        pid = self._process.pid
        guard.end_relatives(pid, self.mark)  # while its guard adopts their children
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if POSIX:
                os.killpg(pid, signal.SIGKILL)
            else:
                self._process.kill()

    @property
    def last_lines(self) -> tuple[str, ...]:
        """The last lines that it printed."""
        lines = self._last_printed.decode(errors="replace").splitlines()
        return tuple(
            printable(line[:MAX_LINE_LENGTH]) for line in lines[-MAX_SHOWN_LINES:]
        )

    def _stop(self, reason: str) -> None:
        self.reason = self.reason or reason
        self.end()

    def _stop_late(self) -> None:
        self._stop(self._late())

    def _late(self) -> str:
        took = f"it took more than {self.seconds:g} s"
        if self._n_printed > LARGE_OUTPUT_BYTES:
            return (
                f"{took} and printed {self._n_printed:,} bytes meanwhile: take its prints out, "
                "and see if it ends"
            )
        return f"{took}: an endless loop?"

    def _why(self) -> str:
        signal_number = self._process.wait() - 128  # as a shell counts
        if self.reason:
            return self.reason
        if signal_number == SIGALRM:
            return self._late()
        signalled = f" by signal {signal_number}" if signal_number > 0 else ""
        return f"its process ended{signalled} before it was graded"

    def _read_printed(self, pipe: int) -> None:
        while chunk := os.read(pipe, 2**16):
            self._n_printed += len(chunk)
            self._last_printed = (self._last_printed + chunk)[-LAST_OUTPUT_BYTES:]
            if self._n_printed > MAX_OUTPUT_BYTES and not self.reason:
                self._stop("it printed more than 10 MB: take its prints out")
        os.close(pipe)
