"""Parts of a study in processes of joblib, which brings each its large arrays only once."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from bbb_numpy.numeric.processes import exit_with_parent, starting_processes

__all__ = ["in_processes"]

T = TypeVar("T")


def in_processes(
    jobs: int, function: Callable[..., T], arguments: Iterable[tuple[Any, ...]]
) -> Iterator[T]:
    """Yield what a function returns for each tuple of arguments, in their order.

    It is called in `jobs` processes at a time, which leave Ctrl-C to this one and end with it.
    Without joblib, which comes with scikit-learn: ModuleNotFoundError.
    """
    from joblib import Parallel, delayed  # the extra `learners`

    initialisation = (
        {"initializer": _begin, "initargs": (os.getpid(),)} if jobs != 1 else {}
    )
    with starting_processes():
        results = Parallel(n_jobs=jobs, return_as="generator", **initialisation)(
            delayed(function)(*call_arguments) for call_arguments in arguments
        )
    yield from results


def _begin(parent: int) -> None:
    exit_with_parent(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
