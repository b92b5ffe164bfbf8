"""threads: BLAS's kernels have a name, and libraries that are loaded later one thread."""

import os

import threadpoolctl

from bbb_studies.threads import ONE_THREAD, blas_kernels, one_thread_later


def test_the_environment_has_one_thread_in_the_block_and_is_as_before_after_it(monkeypatch):
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "7")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    before = dict(os.environ)
    with one_thread_later():
        assert {name: os.environ[name] for name in ONE_THREAD} == dict.fromkeys(ONE_THREAD, "1")
    assert dict(os.environ) == before


def test_the_kernels_of_blas_are_named_where_they_can_be_asked(monkeypatch):
    pools = [{"user_api": "openmp"}, {"user_api": "blas", "architecture": "Planted"}]
    monkeypatch.setattr(threadpoolctl, "threadpool_info", lambda: pools)
    assert blas_kernels().endswith(" Planted")
    name = blas_kernels().removesuffix(" Planted")
    monkeypatch.setattr(threadpoolctl, "threadpool_info", lambda: pools[:1])
    assert blas_kernels() == name
