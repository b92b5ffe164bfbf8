"""One thread for BLAS.

Two threads may sum a product of matrices in another order than one, and where the products are
small or the cores busy they wait for each other: ten times slower was measured.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

__all__ = ["ONE_THREAD", "one_blas_thread"]

LIBRARIES = ("OPENBLAS_NUM", "OMP_NUM", "MKL_NUM", "BLIS_NUM", "VECLIB_MAXIMUM")
# The environment of a process with one thread: read when a library is loaded
ONE_THREAD = {f"{library}_THREADS": "1" for library in LIBRARIES}


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
