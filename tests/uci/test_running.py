"""A run: killed, broken, crowded or interrupted, it ends with the numbers of a quiet one."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import working
from working import Settings, Trial, noted, quick, trials

from bbb_numpy.uci import crew, running
from bbb_numpy.uci.crew import ExecutorError
from bbb_numpy.uci.executors import processes
from bbb_numpy.uci.journal import FILE, open_journal, read
from bbb_numpy.uci.output import BusyError
from bbb_numpy.uci.running import run

TWO_THREADS = partial(ThreadPoolExecutor, 2)


def go(work, out, measure=quick, executor=TWO_THREADS, **rest):
    return run(work, out, executor, measure, progress=False, **rest)


def numbers(records):
    """What must not depend on how a trial was run."""
    kept = sorted(records, key=lambda record: record["key"])
    drop = ("seconds", "settings")
    return json.dumps([{k: v for k, v in r.items() if k not in drop} for r in kept])


@contextmanager
def start(*arguments):
    """A run in a process of its own, which does not outlive its test."""
    environment = os.environ | {"PYTHONPATH": working.PATH, "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, working.__file__, *map(str, arguments)]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def children(process):
    """Return the processes that another one started, in /proc."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except (OSError, ValueError):
            continue
        if entry.name.isdigit() and int(fields[1]) == process:
            found.append(int(entry.name))
    return found


def wait_for(what, seconds=60.0):
    end = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < end
        time.sleep(0.02)
    return found


def alive(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")


def test_every_trial_is_recorded_with_what_it_is_and_what_it_gave(tmp_path):
    outcome = go(trials(3), tmp_path)
    assert sorted(map(json.dumps, read(tmp_path / FILE).records)) == sorted(
        map(json.dumps, outcome.records)
    )
    first = outcome.records[0]
    assert {name: first[name] for name in ("key", "split", "status", "error", "settings")} == {
        "key": "toy/sum/00",
        "split": 0,
        "status": "ok",
        "error": None,
        "settings": {"seed": 0, "rows": 30, "seconds": 0.0, "folder": ""},
    }
    assert first["metrics"] == quick(Trial(0))["metrics"]
    assert (outcome.done, outcome.failed, outcome.damaged, outcome.messages) == (3, (), (), ())


def test_finished_trials_are_not_run_again(tmp_path):
    out, work = tmp_path / "out", trials(6, folder=str(tmp_path))
    go(work[:4], out)
    outcome = go(work, out)
    assert sorted(noted(tmp_path)) == [0, 1, 2, 3, 4, 5]
    assert (outcome.done, len(outcome.records)) == (2, 6)
    assert [record["split"] for record in outcome.records] == [0, 1, 2, 3, 4, 5]
    assert go(work, out, executor=lambda: pytest.fail("nothing is left to do")).done == 0


def test_records_of_other_settings_or_versions_do_not_count_and_are_named(tmp_path):
    before = go([Trial(0), Trial(1), Trial(2, Settings(seed=7))], tmp_path)
    old = {**before.records[1], "versions": {"bbb_numpy": "0.0.1"}, "key": "toy/sum/03", "split": 3}
    with open_journal(tmp_path) as journal:
        journal.append(old)
    outcome = go(trials(4), tmp_path)
    assert outcome.done == 2
    (message,) = outcome.messages
    assert "2 recorded trials do not count" in message
    assert "toy/sum/02 (seed 7, now 0)" in message
    assert "toy/sum/03 (bbb_numpy 0.0.1, now " in message
    assert [record["settings"]["seed"] for record in outcome.records] == [0] * 4
    assert len(read(tmp_path / FILE).records) == 6  # the others are kept
    again = go(trials(4), tmp_path)
    assert (again.done, again.messages) == (0, ())
    assert go([Trial(2, Settings(seed=7))], tmp_path).done == 0


def test_of_several_records_of_a_trial_the_last_that_succeeded_counts(tmp_path):
    record = go([Trial(0)], tmp_path).records[0]
    with open_journal(tmp_path) as journal:
        journal.append({**record, "metrics": "second"})
        journal.append({**record, "status": "failed", "metrics": None})
    outcome = go([Trial(0)], tmp_path)
    assert (outcome.records[0]["metrics"], outcome.failed, outcome.done) == ("second", (), 0)


@pytest.mark.parametrize("executor", [TWO_THREADS, partial(processes, 2)])
def test_a_failing_trial_is_recorded_with_its_error_and_stops_no_other(tmp_path, executor):
    told = []
    outcome = go(trials(6), tmp_path, working.failing, executor, tell=told.append)
    assert [record["split"] for record in outcome.records] == [0, 4, 5]
    errors = {record["split"]: record["error"] for record in outcome.failed}
    assert errors == {
        1: "Odd: one and two",
        2: "ValueError: Out of range float values are not JSON compliant: nan",
        3: "TypeError: Object of type ndarray is not JSON serializable",
    } or errors[2].startswith("ValueError: Out of range float values")
    assert all(record["metrics"] is None for record in outcome.failed)
    assert "toy/sum/01 failed: Odd: one and two" in told


def test_failed_trials_are_run_again_only_on_request(tmp_path):
    go(trials(6), tmp_path, working.failing)
    again = go(trials(6), tmp_path, quick)
    assert (again.done, len(again.failed)) == (0, 3)
    retried = go(trials(6), tmp_path, quick, retry_failed=True)
    assert (retried.done, len(retried.failed), len(retried.records)) == (3, 0, 6)
    assert numbers(retried.records) == numbers(go(trials(6), tmp_path / "other").records)


def test_a_new_beginning_runs_everything_again(tmp_path):
    out, work = tmp_path / "out", trials(2, folder=str(tmp_path))
    go(work, out)
    assert go(work, out, resume=False).done == 2
    assert sorted(noted(tmp_path)) == [0, 0, 1, 1]
    assert len(read(out / "records.previous-1.jsonl").records) == 2


def test_only_trials_whose_records_are_damaged_are_run_again_and_named(tmp_path):
    out, work = tmp_path / "out", trials(5, folder=str(tmp_path))
    quiet = go(work, out, executor=partial(ThreadPoolExecutor, 1))
    path = out / FILE
    lines = path.read_bytes().split(b"\n")
    lines[3] = lines[3].replace(b'"status":"ok"', b'"status":"no"')
    path.write_bytes(b"\n".join(lines))
    outcome = go(work, out)
    assert sorted(noted(tmp_path)) == [0, 1, 2, 2, 3, 4]
    assert outcome.damaged == (4,)
    assert "line 4 (toy/sum/02)" in outcome.messages[0]
    assert outcome.messages[1] == "run again, their records were damaged: toy/sum/02"
    assert numbers(outcome.records) == numbers(quiet.records)


def test_the_longest_trials_begin_first_and_at_most_a_few_are_submitted_ahead(tmp_path):
    work = trials(20, folder=str(tmp_path))

    class Counting(ThreadPoolExecutor):
        submitted, most = 0, 0

        def submit(self, *rest):
            self.submitted += 1
            self.most = max(self.most, self.submitted - len(noted(tmp_path)))
            return super().submit(*rest)

    with Counting(1) as executor:
        go(work, tmp_path / "out", executor=executor, cost=lambda trial: 1 + trial.split % 10)
    assert executor.most <= 3
    order = noted(tmp_path)
    assert order == sorted(range(20), key=lambda split: (-(split % 10), split))


def test_the_bar_counts_expected_cost(tmp_path, capsys):
    def tell_cost(trial):
        return 3.0 if trial.split == 0 else 1.0

    run(trials(2), tmp_path, partial(ThreadPoolExecutor, 1), quick, progress=True, cost=tell_cost)
    shown = capsys.readouterr().err
    assert "75%" in shown
    assert "3/4" in shown


def test_trials_given_twice_or_without_a_positive_cost_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"given once; got toy/sum/00 again"):
        go([Trial(0), Trial(0, Settings(seed=1))], tmp_path)
    with pytest.raises(ValueError, match="cost must be positive and finite"):
        go([Trial(0)], tmp_path, cost=lambda trial: 0)
    assert not os.listdir(tmp_path)


def test_a_folder_in_use_is_refused_before_any_work(tmp_path):
    out = tmp_path / "out"
    with open_journal(out), pytest.raises(BusyError, match="another run"):
        go(trials(1, folder=str(tmp_path)), out)
    with pytest.raises(NotADirectoryError):
        go(trials(1, folder=str(tmp_path)), out / FILE)
    assert noted(tmp_path) == []


@needs_proc
def test_killed_at_random_times_a_run_loses_nothing_finished_and_ends_the_same(tmp_path):
    out, count = tmp_path / "out", 40
    quiet = go(trials(count, folder=str(tmp_path / "quiet"), seconds=0.0), tmp_path / "quiet")
    path, rng = out / FILE, random.Random(5)
    work = trials(count, folder=str(tmp_path), seconds=0.05)
    kills, finished = 0, {}
    while len(finished) < count:
        with start(out, tmp_path, count, 0.05, 2) as process:
            before = len(finished)
            if kills < 5:
                wait_for(lambda b=before: path.exists() and len(read(path).records) > b)
                time.sleep(rng.uniform(0.0, 0.15))
                process.kill()
                kills += 1
            else:
                process.wait(30)
                assert process.returncode == 0, process.stderr.read()
        found = {record["key"]: record for record in read(path).records}
        assert read(path).damaged == ()
        assert finished.items() <= found.items()  # never a finished one
        finished = found
    runs = noted(tmp_path)
    assert kills == 5
    assert len(runs) <= count + 2 * kills  # only those that ran at a kill are run again
    assert len(read(path).records) == count
    outcome = go(work, out)
    assert outcome.done == 0
    assert numbers(outcome.records) == numbers(quiet.records)


@needs_proc
def test_workers_do_not_outlive_a_killed_run(tmp_path):
    with start(tmp_path / "out", tmp_path, 4, 60.0, 2) as process:
        started = wait_for(lambda: len(children(process.pid)) >= 3 and children(process.pid))
        time.sleep(0.8)  # they are in the middle of a trial
        process.kill()
    wait_for(lambda: not any(map(alive, started)), 10.0)


def test_trials_whose_worker_dies_are_run_again_and_a_deadly_one_is_named(tmp_path):
    work = trials(9, folder=str(tmp_path))
    outcome = go(work, tmp_path / "out", working.deadly, partial(processes, 2))
    assert [record["split"] for record in outcome.records] == [0, 1, 2, 4, 5, 6, 7, 8]
    (failed,) = outcome.failed
    assert (failed["split"], failed["metrics"]) == (3, None)
    assert failed["error"].startswith(
        "BrokenProcessPool: its worker died, again while it ran alone"
    )
    assert noted(tmp_path, "death").count(5) == 1
    assert noted(tmp_path, "death").count(3) <= 4
    quiet = go([trial for trial in work if trial.split != 3], tmp_path / "quiet")
    assert numbers(outcome.records) == numbers(quiet.records)


@needs_proc
def test_a_worker_killed_from_outside_costs_only_its_trials(tmp_path):
    out = tmp_path / "out"
    with start(out, tmp_path, 12, 0.2, 2) as process:
        wait_for(lambda: noted(tmp_path))
        workers = [
            child
            for child in children(process.pid)
            if b"resource_tracker" not in Path(f"/proc/{child}/cmdline").read_bytes()
        ]
        os.kill(workers[0], signal.SIGKILL)
        process.wait(30)
        assert process.returncode == 0, process.stderr.read()
    quiet = go(trials(12, folder=str(tmp_path)), tmp_path / "quiet")
    assert numbers(read(out / FILE).records) == numbers(quiet.records)


def test_an_executor_that_breaks_and_cannot_be_made_again_ends_the_run_with_its_records(tmp_path):
    work, out = trials(9, folder=str(tmp_path)), tmp_path / "out"
    with (
        processes(1) as executor,
        pytest.raises(ExecutorError, match=r"a worker died .* finished is recorded, the same"),
    ):
        go(work, out, working.deadly, executor)
    assert [record["split"] for record in read(out / FILE).records] == [0, 1, 2]


def test_what_cannot_be_sent_to_a_worker_ends_the_run(tmp_path):
    with pytest.raises(ExecutorError, match=r"cannot run toy/sum/0[01] \(\w+: .*local"):
        go(trials(2), tmp_path, lambda trial: {}, partial(processes, 1))


@needs_proc
def test_ctrl_c_records_what_is_finished_and_ends_at_once(tmp_path):
    out = tmp_path / "out"
    with start(out, tmp_path, 40, 0.0, 2, 60.0) as process:
        wait_for(lambda: (out / FILE).exists() and len(read(out / FILE).records) == 4)
        started = children(process.pid)
        begun = time.monotonic()
        process.send_signal(signal.SIGINT)
        process.wait(30)
        assert time.monotonic() - begun < 20.0
        assert process.stderr.read().rstrip().endswith("KeyboardInterrupt")
    assert process.returncode != 0
    assert read(out / FILE).damaged == ()
    assert len(read(out / FILE).records) == 4
    wait_for(lambda: not any(map(alive, started)), 10.0)


def test_ctrl_c_loses_no_trial_that_has_just_finished(tmp_path, monkeypatch):
    work, out = trials(8), tmp_path / "out"
    with ThreadPoolExecutor(8) as executor:
        beats = []

        def interrupt(*_):
            beats.append(1)
            time.sleep(0.2)  # meanwhile all that was submitted is finished
            raise KeyboardInterrupt

        monkeypatch.setattr(running.tqdm, "refresh", interrupt)
        with pytest.raises(KeyboardInterrupt):
            go(work, out, executor=executor)
    assert beats == [1]
    assert len(read(out / FILE).records) == 8


def test_the_order_of_submission_does_not_matter(tmp_path):
    work = trials(8)
    one = go(work, tmp_path / "one")
    other = go(work[::-1], tmp_path / "other", cost=lambda trial: 1 + trial.split)
    assert numbers(one.records) == numbers(other.records)
    changed = [replace(trial, settings=Settings(seed=1)) for trial in work]
    assert numbers(go(changed, tmp_path / "seed").records) != numbers(one.records)


class KilledWorker(Exception):
    """Named as dask's, which has given a trial up on several workers."""


class Doubtful(ThreadPoolExecutor):
    """Says of trial 3 always, and of trial 4 once, that its workers died."""

    def __init__(self):
        super().__init__(2)
        self.doubted = set()

    def submit(self, task, trial):
        def doubted(trial):
            if trial.split == 3 or (trial.split == 4 and trial.split not in self.doubted):
                self.doubted.add(trial.split)
                raise KilledWorker
            return task(trial)

        return super().submit(doubted, trial)


def test_a_trial_that_dask_gives_up_is_run_alone_before_it_is_blamed(tmp_path):
    outcome = go(trials(6), tmp_path, executor=Doubtful)
    assert [record["split"] for record in outcome.records] == [0, 1, 2, 4, 5]
    (failed,) = outcome.failed
    assert failed["key"] == "toy/sum/03"
    assert failed["error"] == "KilledWorker: its worker died, again while it ran alone"


def test_a_cluster_that_no_longer_answers_ends_the_run_with_its_records(tmp_path, monkeypatch):
    answers = iter([1])

    def width(executor):
        for answer in answers:
            return answer
        raise OSError("closed")

    monkeypatch.setattr(crew, "width", width)
    with pytest.raises(ExecutorError, match="the scheduler is gone; what is finished is recorded"):
        go(trials(9), tmp_path)
    # two were on their way; which of two threads is first is for the machine to say
    kept = [record["split"] for record in read(tmp_path / FILE).records]
    assert kept in ([0], [1], [0, 1], [1, 0])
