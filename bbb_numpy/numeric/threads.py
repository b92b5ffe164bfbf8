"""BLAS: its kernels, and one thread for it.

Two threads may sum a product of matrices in another order than one, and where the products are
small or the cores busy they wait for each other: ten times slower was measured.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import numpy as np

__all__ = ["ONE_THREAD", "blas_kernels", "one_blas_thread", "one_thread_later"]

LIBRARIES = ("OPENBLAS_NUM", "OMP_NUM", "MKL_NUM", "BLIS_NUM", "VECLIB_MAXIMUM")
# The environment of a process with one thread: read when a library is loaded
ONE_THREAD = {f"{library}_THREADS": "1" for library in LIBRARIES}


def one_blas_thread() -> AbstractContextManager[Any]:
    """Give this process one BLAS thread in each library that is loaded by now.

    Without threadpoolctl, which scikit-learn brings, nothing happens; nor, since its version 3.8,
    while another thread of Python that set the number first is alive.

    Returns
    -------
    context manager
        At its end the threads are as they were before; without ``with`` this is for good.
    """
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:
        return nullcontext()
    limits: AbstractContextManager[Any] = threadpool_limits(1, "blas")
    return limits


def blas_kernels() -> str:
    """Name the BLAS of NumPy and its kernels: the last bits of a product are theirs.

    Kernels are those of a processor family, such as Haswell; the variable OPENBLAS_CORETYPE
    chooses others than the processor's own. Without threadpoolctl they are not named.
    """
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    name = f"{blas['name']} {blas['version']}"
    try:
        from threadpoolctl import threadpool_info
    except ImportError:
        return name
    kernels = [pool.get("architecture") for pool in threadpool_info() if pool["user_api"] == "blas"]
    return f"{name} {kernels[0]}" if kernels and kernels[0] else name


@contextmanager
def one_thread_later() -> Iterator[None]:
    """Give one thread to libraries that are loaded in the block: SciPy has a BLAS of its own."""
    before = {name: os.environ.get(name) for name in ONE_THREAD}
    os.environ.update(ONE_THREAD)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
