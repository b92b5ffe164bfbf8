"""One thread for BLAS.

Two threads may sum a product of matrices in another order than one, and where the products are
small or the cores busy they wait for each other: ten times slower was measured.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

__all__ = ["one_blas_thread"]


def one_blas_thread() -> AbstractContextManager[Any]:
    """Give this process one BLAS thread in each library that is loaded, in a block or for good.

    Without threadpoolctl, which scikit-learn brings, nothing happens; nor, since its version 3.8,
    while another thread of Python that set the number first is alive.
    """
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:
        return nullcontext()
    limits: AbstractContextManager[Any] = threadpool_limits(1, "blas")
    return limits
