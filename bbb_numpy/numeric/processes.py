"""Child processes: Ctrl-C reaches the parent alone, and they end when the parent does."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from multiprocessing import resource_tracker
from threading import Thread

__all__ = ["exit_with_parent", "starting_processes"]

PARENT_POLL_INTERVAL_S = 0.5  # time between two checks that the parent still runs


@contextmanager
def starting_processes() -> Iterator[None]:
    """Let child processes that start in a with block ignore the Ctrl-C of a terminal.

    A terminal sends Ctrl-C to all processes. Those started here inherit the signal mask of this
    thread, in which it is blocked, as do threads started here and processes that replace others. If
    there is no standard output or error, as under ``pythonw``, a null device takes its place,
    because joblib flushes both.
    """
    with ExitStack() as stack:
        for name, redirect in (
            ("stdout", redirect_stdout),
            ("stderr", redirect_stderr),
        ):
            if getattr(sys, name) is None:
                null_device = stack.enter_context(
                    open(os.devnull, "w", encoding="utf-8")
                )
                stack.enter_context(redirect(null_device))
        stack.enter_context(_sigint_blocked())
        yield


@contextmanager
def _sigint_blocked() -> Iterator[None]:
    """Block Ctrl-C (SIGINT) in this thread within a with statement; do nothing on Windows."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows has no signal mask
        yield
        return
    # the resource tracker is started now, because its start unblocks the signal
    resource_tracker.ensure_running()
    former_mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, former_mask)


def exit_with_parent(parent: int) -> None:
    """End this process within a second of the end of `parent`, the process that started it.

    Processes of a pool would otherwise wait for work from a parent that was killed. `parent` is the
    process id; it is an argument because the parent may have ended before this is called.
    """
    Thread(
        target=_end_with, args=(parent,), name="exit_with_parent", daemon=True
    ).start()


def _end_with(parent: int) -> None:
    """Wait until the process with the id `parent` has ended, then end this process."""
    # on Windows the parent's id does not change when the parent ends
    if os.name == "nt":
        if (process := multiprocessing.parent_process()) is not None:
            process.join()
            os._exit(1)
        return
    while os.getppid() == parent:
        time.sleep(PARENT_POLL_INTERVAL_S)
    os._exit(1)
