"""A function that limits BLAS to one thread.

Two threads may add the terms of a matrix product in another order than one thread. If the products
are small, or the cores are busy, two threads wait for each other, and are up to ten times slower
(measured).
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

__all__ = ["one_blas_thread"]


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
