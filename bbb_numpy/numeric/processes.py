"""Processes that this one starts: Ctrl-C is for this one to hear, and they end when it does."""

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

POLL_INTERVAL_S = 0.5


@contextmanager
def starting_processes() -> Iterator[None]:
    """Let processes that start here not hear Ctrl-C, which a terminal sends to all of them.

    They, and the threads that start here and others in their place, inherit the mask of this
    thread. Where there is no standard output or error, as under ``pythonw``, joblib flushes it.
    """
    with ExitStack() as stack:
        for name, redirect in (
            ("stdout", redirect_stdout),
            ("stderr", redirect_stderr),
        ):
            if getattr(sys, name) is None:
                nowhere = stack.enter_context(open(os.devnull, "w", encoding="utf-8"))
                stack.enter_context(redirect(nowhere))
        stack.enter_context(_masked())
        yield


@contextmanager
def _masked() -> Iterator[None]:
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    resource_tracker.ensure_running()  # later it would unblock the signal as it starts
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def exit_with_parent(parent: int) -> None:
    """End this process within a second of the end of `parent`, the process that started it.

    A killed parent tells nobody: processes of a pool would wait for its work. `parent` is told by
    number, as it may have ended before this is called.
    """
    Thread(
        target=_end_with, args=(parent,), name="exit_with_parent", daemon=True
    ).start()


def _end_with(parent: int) -> None:
    if os.name == "nt":  # where the number of an ended parent stays
        if (process := multiprocessing.parent_process()) is not None:
            process.join()
            os._exit(1)
        return
    while os.getppid() == parent:
        time.sleep(POLL_INTERVAL_S)
    os._exit(1)
