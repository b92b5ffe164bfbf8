"""Threads: elementwise work on the two halves of a long vector, and BLAS limited to one thread.

NumPy lets other Python threads run while it works on an array. A function of each number by itself
is computed for the halves of a vector by two threads, if the vector is long and there are two cores
(`on_halves`). The halves are the same without a second thread, and so is every bit.

Two threads of BLAS may add the terms of a matrix product in another order than one thread. If the
products are small, or the cores are busy, two threads wait for each other, and are up to ten times
slower (measured).
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from contextvars import copy_context
from functools import cache, partial
from typing import Any, TypeVar

__all__ = ["both", "on_halves", "one_blas_thread"]

First = TypeVar("First")
Second = TypeVar("Second")

# Length of the shortest vector whose halves are computed apart: waking a thread takes about 50
# microseconds, and so do 2^17 additions
MIN_SHARED_SIZE = 2**17
# Variables by which a user keeps BLAS, and so these threads, to one core
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@cache
def _second_thread() -> ThreadPoolExecutor | None:
    """Return the thread that computes second halves; None if this process has one core.

    A process of a pool has one, since the others of the pool have work too.
    """
    is_alone = multiprocessing.current_process().name == "MainProcess"
    limits = [os.environ.get(name) for name in THREAD_VARIABLES]
    n_cores = os.cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):
        n_cores = len(os.sched_getaffinity(0))
    if n_cores == 1 or "1" in limits or not is_alone:
        return None
    return ThreadPoolExecutor(1, thread_name_prefix="second-half")


if hasattr(os, "register_at_fork"):  # a forked child has no thread but its own
    os.register_at_fork(after_in_child=_second_thread.cache_clear)


def on_halves(function: Callable[[slice], None], size: int) -> None:
    """Call `function` with slices that cover 0 to `size`: one, or two at once for a long vector.

    Parameters
    ----------
    function : callable
        Function of a slice that writes to these elements of arrays, and to no others.
    size : int
        Length of the arrays.
    """
    if size < MIN_SHARED_SIZE:
        function(slice(0, size))
        return
    middle = size // 2
    both(partial(function, slice(0, middle)), partial(function, slice(middle, size)))


def both(
    first: Callable[[], First], second: Callable[[], Second]
) -> tuple[First, Second]:
    """Return the results of two functions, which run at once if this process has two cores.

    An error of one is raised when both have ended.
    """
    thread = _second_thread()
    if thread is None:
        return first(), second()
    # The context holds NumPy's `errstate`
    finished = thread.submit(copy_context().run, second)
    try:
        result = first()
    finally:
        second_result = finished.result()
    return result, second_result


def one_blas_thread() -> AbstractContextManager[Any]:
    """Limit each loaded BLAS library to one thread; return a context manager that ends the limit.

    The limit begins with the call; without a ``with`` block it stays. The function does nothing
    without threadpoolctl, which scikit-learn installs; nor, since version 3.8 of threadpoolctl,
    while another Python thread is alive that has set the number.
    """
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:
        return nullcontext()
    limits: AbstractContextManager[Any] = threadpool_limits(1, "blas")
    return limits
