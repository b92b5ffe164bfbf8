"""BLAS of a study: its kernels, and one thread for libraries that are loaded later."""

from __future__ import annotations

import numpy as np

LIBRARIES = ("OPENBLAS_NUM", "OMP_NUM", "MKL_NUM", "BLIS_NUM", "VECLIB_MAXIMUM")
# The environment of a process with one thread: read when a library is loaded
ONE_THREAD = {f"{library}_THREADS": "1" for library in LIBRARIES}


def blas_kernels() -> str:
    """Name the BLAS of NumPy and its kernels: the last bits of a product are theirs.

    Kernels are those of a processor family, such as Haswell; the variable OPENBLAS_CORETYPE
    chooses others than the processor's own.
    """
    from threadpoolctl import threadpool_info

    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    kernels = [
        pool.get("architecture")
        for pool in threadpool_info()
        if pool["user_api"] == "blas"
    ]
    return " ".join([blas["name"], blas["version"], *filter(None, kernels[:1])])
