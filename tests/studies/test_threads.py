"""threads: BLAS's kernels have a name."""

import threadpoolctl

from bbb_studies.threads import blas_kernels


def test_the_kernels_of_blas_are_named_where_they_can_be_asked(monkeypatch):
    pools = [{"user_api": "openmp"}, {"user_api": "blas", "architecture": "Planted"}]
    monkeypatch.setattr(threadpoolctl, "threadpool_info", lambda: pools)
    assert blas_kernels().endswith(" Planted")
    name = blas_kernels().removesuffix(" Planted")
    monkeypatch.setattr(threadpoolctl, "threadpool_info", lambda: pools[:1])
    assert blas_kernels() == name
