import os
import subprocess
import sys

import pytest

from bbb_numpy.numeric.threads import one_blas_thread
from bbb_studies.threads import ONE_THREAD

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


def test_without_threadpoolctl_the_block_still_runs(monkeypatch):
    monkeypatch.setitem(sys.modules, "threadpoolctl", None)
    with one_blas_thread():
        pass
