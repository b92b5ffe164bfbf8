"""How far a long computation is: its parts are counted on one bar."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from bbb_numpy.progress import tqdm

__all__ = ["Done", "counted", "steps", "unseen"]

T = TypeVar("T")
Done = Callable[[float], object]  # is told how much work has just been done


def unseen(work: float) -> None:
    """Count nothing, where nobody watches."""


@contextmanager
def steps(total: float, progress: bool | None = None) -> Iterator[Done]:
    """Show how much of `total` work is done, and the time left, on stderr.

    Yields what is to be called with the work of each part after it. ``progress=None`` shows the
    bar only to a person.
    """
    hidden = None if progress is None else not progress
    layout = "{percentage:3.0f}% |{bar}| {elapsed}, {remaining} left"
    with tqdm(total=total, bar_format=layout, disable=hidden, leave=False) as bar:
        yield bar.update


def counted(parts: Iterable[T], done: Done, work: float = 1) -> Iterator[T]:
    """Yield the parts, and say after each that so much work is done."""
    for part in parts:
        yield part
        done(work)
