import os
import subprocess
import sys
import threading

import numpy as np
import pytest

from bbb_numpy.numeric import elementary, threads
from bbb_numpy.numeric.threads import on_halves, one_blas_thread
from bbb_numpy.training.optimizers import Adam
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


@pytest.fixture
def second_thread(monkeypatch):
    """Return the second thread, whatever this process is; vectors of 1,000 numbers are long."""
    monkeypatch.setattr(threads, "MIN_SHARED_SIZE", 1000)
    monkeypatch.setattr(elementary, "MIN_SHARED_SIZE", 1000)
    with threads.ThreadPoolExecutor(1) as executor:
        monkeypatch.setattr(threads, "_second_thread", lambda: executor)
        yield executor


def results():
    """Return what is computed by halves, of vectors whose length is odd."""
    rng = np.random.default_rng(3)
    noise = elementary.standard_normal(rng, np.empty(4097, np.float32))
    theta, grad = 5.0 * noise, noise[::-1].copy()
    into = np.stack([noise, theta])
    elementary.add_scaled(into, np.stack([theta, noise]), np.array([[0.3], [7.0]], np.float32))
    parts = elementary.softplus_parts(theta)
    adam = Adam()
    state = adam.init(theta)
    for _ in range(3):
        adam.update(theta, grad.copy(), state, 1.0)
    return [noise, into, *parts, theta, *state.arrays.values()]


@pytest.mark.usefixtures("second_thread")
def test_a_second_thread_changes_no_bit(monkeypatch):
    monkeypatch.setattr(elementary, "CACHE_BLOCK", 512)
    shared = results()
    monkeypatch.setattr(threads, "_second_thread", lambda: None)
    for ours, alone in zip(shared, results(), strict=True):
        np.testing.assert_array_equal(ours, alone)


@pytest.mark.parametrize("size", [0, 7, 999, 1000, 4097])
@pytest.mark.usefixtures("second_thread")
def test_halves_cover_everything_once_and_know_numpys_error_state(size):
    counts, names = np.zeros(size), set()

    def count(block):
        counts[block] += 1
        names.add(threading.current_thread().name)
        assert np.geterr()["over"] == "raise"

    with np.errstate(over="raise"):
        on_halves(count, size)
    assert (counts == 1).all()
    assert len(names) == 1 + (size >= 1000)


@pytest.mark.parametrize("half", ["first", "second"])
@pytest.mark.usefixtures("second_thread")
def test_an_error_in_a_half_is_raised_when_both_have_ended(half):
    def fail(block):
        if (block.start == 0) == (half == "first"):
            raise ValueError(half)

    with pytest.raises(ValueError, match=half):
        on_halves(fail, 2000)


def test_one_core_a_wish_for_one_thread_and_a_pool_have_no_second_thread(monkeypatch):
    second_thread = threads._second_thread.__wrapped__
    for name in threads.THREAD_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1}, raising=False)
    process = threads.multiprocessing.current_process()
    monkeypatch.setattr(process, "_name", "MainProcess")
    second_thread().shutdown()
    monkeypatch.setattr(process, "_name", "LokyProcess-1")
    assert second_thread() is None
    monkeypatch.setattr(process, "_name", "MainProcess")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert second_thread() is None
    monkeypatch.delenv("OMP_NUM_THREADS")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    assert second_thread() is None


FORKED = """
import os
import numpy as np
from bbb_numpy.numeric import elementary, threads

x = np.linspace(-5.0, 5.0, 2 * threads.MIN_SHARED_SIZE)
value = elementary.softplus(x)
if os.fork() == 0:
    os._exit(not np.array_equal(elementary.softplus(x), value))
assert os.waitstatus_to_exitcode(os.wait()[1]) == 0
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forked children")
def test_a_forked_child_starts_a_thread_of_its_own():
    environment = {name: os.environ[name] for name in os.environ if name not in ONE_THREAD}
    command = [sys.executable, "-W", "ignore", "-c", FORKED]
    subprocess.run(command, env=environment, check=True, timeout=60)
