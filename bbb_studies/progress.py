"""How far a long computation is: its parts are counted on one bar, or in lines of a log."""

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from bbb_numpy.progress import tqdm

__all__ = ["ReportWork", "counted", "ignore_work", "steps"]

T = TypeVar("T")
ReportWork = Callable[[float], object]  # is told how much work has just been done


def ignore_work(work: float) -> None:
    """Count nothing, where nobody watches."""


@contextmanager
def steps(total: float, progress: bool | None = None) -> Iterator[ReportWork]:
    """Show how much of a computation is done, and the time left, on stderr.

    The context is a function to call with the work of each part after it.

    Parameters
    ----------
    total : float
        Work of all parts.
    progress : bool, optional
        By default (None) the bar is shown only to a person; True writes a line at every tenth
        where stderr is no terminal.
    """
    if progress and sys.stderr is not None and not sys.stderr.isatty():
        yield _log_tenths(total)
        return
    layout = "{percentage:3.0f}% |{bar}| {elapsed}, {remaining} left"
    with tqdm(total=total, bar_format=layout, progress=progress) as bar:
        yield bar.update


def _log_tenths(total: float) -> ReportWork:
    """Return what is told of work, and writes a line on stderr for each tenth of `total`."""
    start = time.monotonic()
    finished = 0.0
    printed = 0

    def update(work: float) -> None:
        nonlocal finished, printed
        finished += work
        tenths = int(10 * finished / total + 1e-9)
        if tenths > printed:
            printed = tenths
            minutes, seconds = divmod(round(time.monotonic() - start), 60)
            print(
                f"{10 * tenths} % after {minutes}:{seconds:02}",
                file=sys.stderr,
                flush=True,
            )

    return update


def counted(parts: Iterable[T], report: ReportWork, work: float = 1) -> Iterator[T]:
    """Yield `parts`, and report the same work after each.

    Parameters
    ----------
    parts : iterable
        What to go through.
    report : callable
        Called with `work`.
    work : float
        Work of one part.
    """
    for part in parts:
        yield part
        report(work)
