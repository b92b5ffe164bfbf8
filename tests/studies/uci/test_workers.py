"""The same numbers, bit for bit, wherever work is done; clear words where it cannot be."""

import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, nullcontext
from functools import partial
from importlib import import_module

import psutil
import pytest
import toy_trials
from toy_trials import noted, numbers, quick, real, trials, wait_for
from uci_trials import dask

from bbb_studies.uci import records, workers
from bbb_studies.uci.running import run
from bbb_studies.uci.workers import WorkersError, cluster

pytestmark = dask
BLAS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
BEFORE = set(os.environ)  # Dask changes those of the process that starts others


def go(todo, out, where, measure=quick):
    return run(todo, out, where, measure, progress=False)


class Cluster:
    """A scheduler and two workers without nannies: processes of their own."""

    def __init__(self, stack, folder):
        self.stack, self.folder = stack, folder
        self.file = folder / "scheduler.json"
        self.scheduler = self.start("dask_scheduler", "--port", "0", "--no-dashboard")
        self.workers = [self.worker() for _ in range(2)]  # which wait for the file
        wait_for(self.file.exists)
        self.address = json.loads(wait_for(self.file.read_text))["address"]

    def worker(self):
        return self.start("dask_worker", "--nthreads", "1", "--no-nanny", "--no-dashboard")

    def start(self, what, *options):
        environment = {k: v for k, v in os.environ.items() if k not in BLAS}
        module = ["-m", f"distributed.cli.{what}", "--scheduler-file", str(self.file)]
        process = subprocess.Popen(
            [sys.executable, *module, *options, "--host", "127.0.0.1"],
            env=environment | {"PYTHONPATH": toy_trials.PATH},
            cwd=self.folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.stack.callback(process.wait)
        self.stack.callback(process.kill)
        return process


@pytest.fixture
def there(tmp_path):
    (tmp_path / "dask").mkdir()
    with ExitStack() as stack:
        yield Cluster(stack, tmp_path / "dask")


@pytest.fixture
def in_threads(tmp_path, threads):
    """The numbers of four real fits, by workers in threads of this process."""
    outcome = go(trials(4), tmp_path / "threads", threads, real)
    assert len({json.dumps(record["metrics"]) for record in outcome.records}) == 4
    return numbers(outcome.records)


def assert_the_same(in_threads, tmp_path, workers):
    """The same bits of other workers, whose BLAS has one thread though nobody told them."""
    found = go(trials(4)[::-1], tmp_path / "backward", workers, real).records
    assert numbers(found) == in_threads
    counted = go(trials(4), tmp_path / "counted", workers, toy_trials.threads).records
    assert [record["metrics"]["most"] for record in counted] == [1] * 4


def test_a_real_fit_gives_the_same_bits_in_threads_and_processes(tmp_path, in_threads, processes):
    assert_the_same(in_threads, tmp_path, processes)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_a_cluster_gives_the_same_bits_and_loses_nothing_with_a_worker(
    tmp_path, there, threads, in_threads
):
    assert_the_same(in_threads, tmp_path, partial(cluster, there.address))
    todo = trials(16, folder=str(tmp_path), seconds=0.1)
    with ThreadPoolExecutor(1) as aside:
        running = aside.submit(go, todo, tmp_path / "lost", partial(cluster, there.address))
        wait_for(lambda: len(noted(tmp_path)) >= 4)
        there.workers[0].send_signal(signal.SIGKILL)
        outcome = running.result(60)
    assert there.workers[0].wait() == -signal.SIGKILL
    assert (len(outcome.records), outcome.failed) == (16, ())
    quiet = go(trials(16, folder=str(tmp_path), seconds=0.1), tmp_path / "quiet", threads)
    assert numbers(outcome.records) == numbers(quiet.records)


@pytest.mark.slow
def test_a_cluster_whose_scheduler_dies_ends_the_run_with_its_records(tmp_path, there):
    todo, out = trials(200, folder=str(tmp_path), seconds=0.05), tmp_path / "out"
    with ThreadPoolExecutor(1) as aside:
        running = aside.submit(go, todo, out, partial(cluster, there.address))
        wait_for(lambda: len(list(out.rglob("*.json"))) >= 2)
        there.scheduler.kill()
        with pytest.raises(WorkersError, match="the scheduler is gone; finished trials are rec"):
            running.result(60)
    assert len(records.read(out / records.RECORDS_FOLDER)) >= 2


def test_workers_have_one_blas_thread_and_the_malloc_of_everybody(processes):
    def variables() -> dict[str, str]:  # of a worker: Dask sends the function itself
        return dict(os.environ)

    with processes() as client:
        there = client.run(variables)
    for environment in there.values():
        assert all(environment[name] == "1" for name in BLAS)
        limits = {name for name in environment if name.startswith("MALLOC_")}
        assert limits <= BEFORE, "Dask's own makes training slower by a fifth"


def test_no_other_machine_reaches_the_scheduler_and_its_workers(processes):
    with processes():
        here = psutil.Process()
        connections = [
            one
            for process in (here, *here.children(recursive=True))
            for one in process.net_connections("inet")
        ]
    listening = [one.laddr.ip for one in connections if one.status == psutil.CONN_LISTEN]
    assert len(listening) > 2
    assert set(listening) == {"127.0.0.1"}


def work_with(press, seen):
    """Note what is done of starting workers, working and ending them; press Ctrl-C at one time."""
    with workers._interrupts_put_off() as heard:
        for name in ("start", "work", "end"):
            with heard() if name == "work" else nullcontext():
                if press == name:
                    signal.raise_signal(signal.SIGINT)
                seen.append(name)


@pytest.mark.parametrize(
    ("press", "done"),
    [("start", ["start"]), ("work", ["start"]), ("end", ["start", "work", "end"])],
)
def test_ctrl_c_is_heard_when_the_workers_are_there_or_gone(press, done):
    usual, seen = signal.getsignal(signal.SIGINT), []
    with pytest.raises(KeyboardInterrupt):
        work_with(press, seen)
    assert seen == done
    assert signal.getsignal(signal.SIGINT) is usual


class Missing:
    """What a worker cannot unpickle."""

    def __reduce__(self):
        return import_module, ("missing",)

    def __call__(self, trial):
        raise AssertionError


def test_a_worker_that_lacks_a_package_is_named(tmp_path, processes):
    said = r"(?s)a worker cannot run a trial \(.*is bbb_numpy installed there\? finished tri"
    with pytest.raises(WorkersError, match=said):
        go(trials(1), tmp_path, processes, Missing())
