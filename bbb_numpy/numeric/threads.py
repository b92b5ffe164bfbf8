"""One thread for BLAS.

Two threads may sum a product of matrices in a different order than one. Where the products are
small or the cores are busy they wait for each other, up to ten times slower (measured).
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

__all__ = ["one_blas_thread"]


def one_blas_thread() -> AbstractContextManager[Any]:
    """Set each loaded BLAS library to one thread: in a ``with`` block, or for good when called.

    Nothing happens without threadpoolctl, which scikit-learn installs; nor, since its version 3.8,
    while another Python thread that has set the number is alive.
    """
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:
        return nullcontext()
    limits: AbstractContextManager[Any] = threadpool_limits(1, "blas")
    return limits
