"""A run: killed, broken, crowded or interrupted, it ends with the numbers of a quiet one."""

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace

import psutil
import pytest
import toy_trials
from distributed import KilledWorker
from toy_trials import Settings, Trial, noted, numbers, quick, trials, wait_for
from uci_trials import dask

from bbb_studies.uci import running
from bbb_studies.uci.records import RECORDS_FOLDER, line, path_of, read
from bbb_studies.uci.running import run

pytestmark = dask
KILLED = "KilledWorker: its worker died, repeatedly"


@pytest.fixture
def go(threads):
    def go(work, out, measure=quick, workers=threads, **rest):
        return run(work, out, workers, measure, progress=False, **rest)

    return go


def recorded(out):
    return read(out / RECORDS_FOLDER)


@contextmanager
def start(*arguments):
    """A run in a process of its own, which does not outlive its test."""
    environment = os.environ | {"PYTHONPATH": toy_trials.PATH, "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, toy_trials.__file__, *map(str, arguments)]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def alive(process):
    """Whether a process of psutil runs; one that nobody has waited for does not."""
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_finished_trials_are_not_run_again(tmp_path, go):
    out, work = tmp_path / "out", trials(6, folder=str(tmp_path))
    go(work[:4], out)
    outcome = go(work, out)
    assert sorted(noted(tmp_path)) == [0, 1, 2, 3, 4, 5]
    assert (outcome.done, len(outcome.records)) == (2, 6)
    assert [record["split"] for record in outcome.records] == [0, 1, 2, 3, 4, 5]
    assert go(work, out, workers=lambda: pytest.fail("nothing is left to do")).done == 0


def test_records_that_do_not_count_are_named_and_kept_aside(tmp_path, go):
    """Those of other settings, of another version, and damaged ones."""
    out, work = tmp_path / "out", trials(5, folder=str(tmp_path))
    quiet = go(work, out)
    go([Trial(2, Settings(seed=7))], tmp_path / "seed")
    other = recorded(tmp_path / "seed")[0]
    old = {**quiet.records[3], "versions": {"bbb_numpy": "0.0.1"}}
    path_of(out, other["key"]).write_text(line(other))
    path_of(out, old["key"]).write_text(line(old))
    damaged = path_of(out, "toy/sum/01")
    damaged.write_text(damaged.read_text().replace('"ok"', '"no"'))
    aside = damaged.read_bytes()
    outcome = go(work, out)
    assert sorted(noted(tmp_path)) == [0, 1, 1, 2, 2, 3, 3, 4]
    (message,) = outcome.messages
    assert message.startswith("3 recorded trials do not count and are run again: ")
    assert "toy/sum/01 (damaged: its checksum" in message
    assert "toy/sum/02 (seed 7, now 0, folder , now " in message
    assert "toy/sum/03 (bbb_numpy 0.0.1, now " in message
    kept = out / "records.previous-1"
    assert message.endswith(f"Their records are kept in {kept}")
    assert (kept / "toy/sum/01.json").read_bytes() == aside
    assert read(kept / "toy/sum/02.json") == [other]
    assert read(kept / "toy/sum/03.json") == [old]
    assert numbers(outcome.records) == numbers(quiet.records) == numbers(recorded(out))
    again = go(work, out)
    assert (again.done, again.messages) == (0, ())


@pytest.mark.parametrize("where", ["threads", pytest.param("processes", marks=pytest.mark.slow)])
def test_a_failing_trial_is_recorded_with_its_error_and_stops_no_other(
    tmp_path, go, where, request, capsys
):
    workers = request.getfixturevalue(where)
    outcome = go(trials(6), tmp_path, toy_trials.failing, workers)
    assert [record["split"] for record in outcome.records] == [0, 4, 5]
    errors = {record["split"]: record["error"] for record in outcome.failed}
    assert errors[1] == "UnpicklableError: one and two"
    assert errors[2].startswith("ValueError: Out of range float values")
    assert errors[3] == "TypeError: Object of type ndarray is not JSON serializable"
    assert all(record["metrics"] is None for record in outcome.failed)
    assert "toy/sum/01 failed: UnpicklableError: one and two" in capsys.readouterr().err


def test_a_trial_of_which_dask_says_that_it_killed_its_worker_is_a_failed_one(
    tmp_path, go, monkeypatch
):
    """For workers in threads, which cannot die; below they do."""

    def dies(measure, trial):
        if trial.split == 1:
            raise KilledWorker("trial", SimpleNamespace(address="gone"), 1)
        return attempt(measure, trial)

    attempt = running.attempt
    monkeypatch.setattr(running, "attempt", dies)
    outcome = go(trials(3), tmp_path)
    assert [record["split"] for record in outcome.records] == [0, 2]
    assert [record["error"] for record in outcome.failed] == [KILLED]


def test_the_longest_trials_begin_first(tmp_path, go, thread):
    rows = [1 + split % 10 for split in range(20)]
    work = [Trial(k, Settings(rows=n, folder=str(tmp_path))) for k, n in enumerate(rows)]
    go(work, tmp_path / "out", workers=thread)
    assert noted(tmp_path) == sorted(range(20), key=lambda split: (-(split % 10), split))


@pytest.mark.slow
def test_killed_at_random_times_a_run_loses_nothing_finished_and_ends_the_same(tmp_path, go):
    out, count, jobs, kills, rng = tmp_path / "out", 120, 2, 12, random.Random(5)
    finished = {}
    for killed in range(kills):
        with start(out, tmp_path, count, 0.05, jobs) as process:
            before = len(finished)
            # of every third not even the start is waited for
            if killed % 3 < 2:
                wait_for(lambda b=before: len(list(out.rglob("*.json"))) > b)
            time.sleep(rng.uniform(0.0, 0.15))
            process.kill()
        found = {record["key"]: record for record in recorded(out)}  # none is damaged
        assert finished.items() <= found.items()  # never a finished one
        finished = found
    assert len(finished) < count
    with start(out, tmp_path, count, 0.05, jobs) as process:
        process.wait(60)
        assert process.returncode == 0, process.stderr.read()
    # At a kill each worker has one trial running and, of a busy machine, two not yet on disk
    assert len(noted(tmp_path)) <= count + 3 * jobs * kills
    work = trials(count, folder=str(tmp_path), seconds=0.05)
    assert go(work, out, workers=lambda: pytest.fail("nothing is left")).done == 0
    quiet = go([replace(t, settings=Settings()) for t in work], tmp_path / "quiet")
    assert numbers(recorded(out)) == numbers(quiet.records)


@pytest.mark.slow
def test_workers_do_not_outlive_a_killed_run(tmp_path):
    with start(tmp_path / "out", tmp_path, 4, 60.0, 2) as process:
        children = psutil.Process(process.pid).children
        started = wait_for(lambda: len(children()) >= 3 and children())
        time.sleep(0.8)  # they are in the middle of a trial, or nearly
        process.kill()
    wait_for(lambda: not any(map(alive, started)))


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_trials_whose_worker_dies_are_run_again_and_a_deadly_one_is_named(tmp_path, go, processes):
    work = trials(9, folder=str(tmp_path))
    outcome = go(work, tmp_path / "out", toy_trials.deadly, processes)
    assert [record["split"] for record in outcome.records] == [0, 1, 2, 4, 5, 6, 7, 8]
    (failed,) = outcome.failed
    assert (failed["split"], failed["metrics"]) == (3, None)
    assert failed["error"] == KILLED
    assert (noted(tmp_path, "death").count(5), noted(tmp_path, "death").count(3)) == (1, 2)
    quiet = go([trial for trial in work if trial.split != 3], tmp_path / "quiet")
    assert numbers(outcome.records) == numbers(quiet.records)


@pytest.mark.slow
def test_ctrl_c_records_what_is_finished_and_ends_at_once(tmp_path):
    out = tmp_path / "out"
    with start(out, tmp_path, 40, 0.0, 2, 60.0) as process:
        wait_for(lambda: (out / RECORDS_FOLDER).exists() and len(recorded(out)) == 4)
        started = psutil.Process(process.pid).children()
        for one in (process, *started):  # as a terminal sends it
            one.send_signal(signal.SIGINT)
        process.wait(30)  # others of its trials take a minute
        said = process.stderr.read()
    assert said.rstrip().endswith("KeyboardInterrupt"), "and nothing of semaphores after it"
    assert said.count("Traceback") == 1
    assert process.returncode != 0
    assert len(recorded(out)) == 4
    wait_for(lambda: not any(map(alive, started)))


@pytest.mark.slow
def test_ctrl_c_while_the_workers_start_ends_in_one_traceback_and_leaves_none(tmp_path):
    with start(tmp_path / "out", tmp_path, 40, 60.0, 2) as process:
        started = wait_for(
            lambda: len(found := psutil.Process(process.pid).children()) > 1 and found
        )
        for one in (process, *started):
            one.send_signal(signal.SIGINT)
        process.wait(30)
        said = process.stderr.read()
    assert said.rstrip().endswith("KeyboardInterrupt")
    assert said.count("Traceback") == 1
    wait_for(lambda: not any(map(alive, started)))


def test_ctrl_c_loses_no_trial_that_has_just_finished(tmp_path, go, threads, monkeypatch):
    beats = []
    with threads() as client:

        def interrupt(*_):
            beats.append(1)
            wait_for(lambda: all(one.status != "pending" for one in client.futures.values()))
            raise KeyboardInterrupt

        monkeypatch.setattr(running.tqdm, "refresh", interrupt)
        with pytest.raises(KeyboardInterrupt):
            go(trials(8, seconds=0.02), tmp_path)
    assert beats == [1]
    assert len(recorded(tmp_path)) == 8
