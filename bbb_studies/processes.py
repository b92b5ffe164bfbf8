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
    """Yield the results of a function for each tuple of arguments, computed in several processes.

    The processes leave Ctrl-C to this one and end with it.

    Parameters
    ----------
    jobs : int
        Number of processes; 1 calls the function in this one.
    function : callable
        Can be pickled.
    arguments : iterable of tuple
        Positional arguments of each call, in whose order results come.

    Raises
    ------
    ModuleNotFoundError
        Without joblib, which comes with scikit-learn.
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
