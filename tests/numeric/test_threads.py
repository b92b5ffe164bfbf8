import os
import subprocess
import sys

import pytest

from bbb_numpy.numeric.threads import ONE_THREAD, blas_kernels, one_blas_thread, one_thread_later

COUNTED = """
import numpy
from threadpoolctl import threadpool_info
from bbb_numpy.numeric.threads import one_blas_thread

def count():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}

assert count() == {2}
with one_blas_thread():
    assert count() == {1}
assert count() == {2}
one_blas_thread()
assert count() == {1}
"""


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="BLAS has one thread anyway")
def test_blas_has_one_thread_in_the_block_and_without_one_for_good():
    pytest.importorskip("threadpoolctl")
    environment = os.environ | dict.fromkeys(ONE_THREAD, "2")
    subprocess.run([sys.executable, "-c", COUNTED], env=environment, check=True)


def test_of_all_libraries_blas_alone_is_asked_for_one_thread(monkeypatch):
    threadpoolctl = pytest.importorskip("threadpoolctl")
    asked = []
    # Not the limits themselves: the thread that sets them first, a worker of another test, keeps
    # them as long as it lives
    monkeypatch.setattr(threadpoolctl, "threadpool_limits", lambda *limits: asked.append(limits))
    one_blas_thread()
    assert asked == [(1, "blas")]


def test_without_threadpoolctl_the_block_still_runs(monkeypatch):
    monkeypatch.setitem(sys.modules, "threadpoolctl", None)
    with one_blas_thread():
        pass


def test_the_environment_has_one_thread_in_the_block_and_is_as_before_after_it(monkeypatch):
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "7")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    before = dict(os.environ)
    with one_thread_later():
        assert {name: os.environ[name] for name in ONE_THREAD} == dict.fromkeys(ONE_THREAD, "1")
    assert dict(os.environ) == before


def test_the_kernels_of_blas_are_named_where_they_can_be_asked(monkeypatch):
    threadpoolctl = pytest.importorskip("threadpoolctl")
    pools = [{"user_api": "openmp"}, {"user_api": "blas", "architecture": "Planted"}]
    monkeypatch.setattr(threadpoolctl, "threadpool_info", lambda: pools)
    assert blas_kernels().endswith(" Planted")
    name = blas_kernels().removesuffix(" Planted")
    monkeypatch.setattr(threadpoolctl, "threadpool_info", lambda: pools[:1])
    assert blas_kernels() == name
    monkeypatch.setitem(sys.modules, "threadpoolctl", None)
    assert blas_kernels() == name
