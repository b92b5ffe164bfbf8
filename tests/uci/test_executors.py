"""The same numbers, bit for bit, wherever trials run; clear words where they cannot."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial

import pytest
import working
from working import noted, quick, real, trials

from bbb_numpy.uci import executors
from bbb_numpy.uci.crew import ExecutorError
from bbb_numpy.uci.executors import BLAS_VARIABLES, processes, scheduler, usable_cpus
from bbb_numpy.uci.journal import FILE, read
from bbb_numpy.uci.running import run
from tests.uci.test_running import numbers, wait_for

# dask's own habits, which are none of ours: it leaves sockets and event loops to the collector
dask = pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore:.*:pytest.PytestUnraisableExceptionWarning"
)


def go(work, out, executor, measure=quick):
    return run(work, out, executor, measure, progress=False)


class Cluster:
    """A scheduler and two workers without nannies: processes of their own."""

    def __init__(self, stack, folder):
        self.stack, self.folder = stack, folder
        self.file = folder / "scheduler.json"
        self.scheduler = self.start("dask_scheduler", "--port", "0", "--no-dashboard")
        wait_for(self.file.exists)
        self.address = json.loads(wait_for(self.file.read_text))["address"]
        self.workers = [self.worker() for _ in range(2)]

    def worker(self):
        return self.start("dask_worker", "--nthreads", "1", "--no-nanny", "--no-dashboard")

    def start(self, what, *options):
        environment = {k: v for k, v in os.environ.items() if k not in BLAS_VARIABLES}
        module = ["-m", f"distributed.cli.{what}", "--scheduler-file", str(self.file)]
        process = subprocess.Popen(
            [sys.executable, *module, *options, "--host", "127.0.0.1"],
            env=environment | {"PYTHONPATH": working.PATH},
            cwd=self.folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.stack.callback(process.wait)
        self.stack.callback(process.kill)
        return process


@pytest.fixture
def cluster(tmp_path):
    pytest.importorskip("distributed")
    (tmp_path / "dask").mkdir()
    with ExitStack() as stack:
        yield Cluster(stack, tmp_path / "dask")


def test_a_real_fit_gives_the_same_bits_in_threads_and_in_one_or_two_processes(tmp_path):
    work = trials(4)
    outcomes = [
        go(work, tmp_path / "threads", partial(ThreadPoolExecutor, 3), real),
        go(work, tmp_path / "one", partial(processes, 1), real),
        go(work[::-1], tmp_path / "two", partial(processes, 2), real),
    ]
    assert not any(outcome.failed for outcome in outcomes)
    first, *others = [numbers(outcome.records) for outcome in outcomes]
    assert others == [first, first]
    assert len({json.dumps(record["metrics"]) for record in outcomes[0].records}) == 4


@dask
def test_on_a_cluster_a_real_fit_gives_the_same_bits_and_blas_has_one_thread(tmp_path, cluster):
    pytest.importorskip("threadpoolctl")
    work = trials(4)
    there = go(work, tmp_path / "there", partial(scheduler, cluster.address), real)
    here = go(work, tmp_path / "here", partial(ThreadPoolExecutor, 1), real)
    assert not there.failed
    assert numbers(there.records) == numbers(here.records)
    counted = go(work, tmp_path / "threads", partial(scheduler, cluster.address), working.threads)
    assert [record["metrics"]["most"] for record in counted.records] == [1] * 4


@dask
def test_a_cluster_that_loses_a_worker_finishes_with_the_same_numbers(tmp_path, cluster):
    work = trials(16, folder=str(tmp_path), seconds=0.1)

    def measured_by_then():
        return len(noted(tmp_path)) >= 4

    with ThreadPoolExecutor(1) as aside:
        running = aside.submit(
            go, work, tmp_path / "there", partial(scheduler, cluster.address), quick
        )
        wait_for(measured_by_then)
        cluster.workers[0].send_signal(signal.SIGKILL)
        outcome = running.result(60)
    assert cluster.workers[0].wait() == -signal.SIGKILL
    assert (len(outcome.records), outcome.failed) == (16, ())
    quiet = go(work, tmp_path / "here", partial(ThreadPoolExecutor, 4))
    assert numbers(outcome.records) == numbers(quiet.records)


@dask
def test_a_cluster_whose_scheduler_dies_ends_the_run_with_its_records(tmp_path, cluster):
    work, out = trials(200, folder=str(tmp_path), seconds=0.05), tmp_path / "out"
    with ThreadPoolExecutor(1) as aside:
        running = aside.submit(go, work, out, partial(scheduler, cluster.address), quick)
        wait_for(lambda: len(noted(tmp_path)) >= 4)
        cluster.scheduler.kill()
        with pytest.raises(ExecutorError, match="what is finished is recorded"):
            running.result(60)
    assert len(read(out / FILE).records) >= 2


def test_an_address_without_a_scheduler_is_named_at_once():
    pytest.importorskip("distributed")
    begun = time.monotonic()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        with pytest.raises(ConnectionError, match=rf"no dask .* tcp://127.0.0.1:{port} within 0.5"):
            scheduler(f"127.0.0.1:{port}", 0.5)
    with pytest.raises(ConnectionError, match=rf"127.0.0.1:{port} .*refused.*`dask scheduler`"):
        scheduler(f"tcp://127.0.0.1:{port}")
    assert time.monotonic() - begun < 5.0


@pytest.mark.parametrize("address", ["", "nonsense", "tcp://host", "tcp://host:port", "x://host:1"])
def test_what_is_no_address_is_refused(address):
    pytest.importorskip("distributed")
    with pytest.raises(ValueError, match="must be like tcp://HOST:PORT; got"):
        scheduler(address)


def test_without_dask_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ImportError, match=r"pip install 'bbb-numpy\[cluster\]'"):
        scheduler("tcp://127.0.0.1:8786")


def test_each_process_has_one_blas_thread_and_the_parent_keeps_its_environment(
    tmp_path, monkeypatch
):
    pytest.importorskip("threadpoolctl")
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "2")
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(executors, "limit_blas", lambda: None)
    before = dict(os.environ)
    outcome = go(trials(2), tmp_path, partial(processes, 2), working.threads)
    assert dict(os.environ) == before
    assert [record["metrics"]["most"] for record in outcome.records] == [1, 1]
    assert [r["notes"]["OPENBLAS_NUM_THREADS"] for r in outcome.records] == ["1", "1"]


def test_threads_of_this_process_share_one_blas_thread_meanwhile(tmp_path):
    threadpoolctl = pytest.importorskip("threadpoolctl")
    with threadpoolctl.threadpool_limits(2):
        before = threadpoolctl.threadpool_info()
        outcome = go(trials(2), tmp_path, partial(ThreadPoolExecutor, 2), working.threads)
        assert [record["metrics"]["most"] for record in outcome.records] == [1, 1]
        assert threadpoolctl.threadpool_info() == before


def test_there_are_as_many_processes_as_usable_cpus_unless_said_otherwise():
    with processes() as pool:
        assert executors.width(pool) == usable_cpus() >= 1
    with processes(3) as pool:
        assert executors.width(pool) == 3
    for wrong in (0, -1, 1.5):
        with pytest.raises(ValueError, match="jobs must be a whole number >= 1"):
            processes(wrong)
