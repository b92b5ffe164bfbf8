"""What a process for a group of chains is told and answers, byte by byte, in this process.

Processes themselves, their cores and their ends are the matter of test_cores.
"""

import io
import os
import pickle
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from queue import Empty
from threading import Thread
from types import SimpleNamespace

import numpy as np
import pytest
from targets import correlated

from bbb_numpy import MLP, GaussianLikelihood, GaussianPrior, Model
from bbb_numpy.model.log_joint import LogJoint
from bbb_numpy.numeric.threads import ONE_THREAD
from bbb_numpy.sampling import workers
from bbb_numpy.sampling.mcmc import NUTS
from bbb_numpy.sampling.resuming import stacked, unstacked
from bbb_numpy.sampling.stepping import Course, begin, stretch
from bbb_numpy.sampling.workers import (
    Answer,
    Died,
    NotSent,
    Processes,
    Task,
    check_cores,
    serve,
    usable,
)

HILL = correlated()


def loaded(data):
    """Yield the objects in a stream of pickles."""
    stream = io.BytesIO(data)
    while stream.tell() < len(data):
        yield pickle.load(stream)


def served(*requests):
    """Run `serve` on objects or bytes; return its answers, and what else came by descriptor 2."""
    told = b"".join(one if isinstance(one, bytes) else pickle.dumps(one) for one in requests)
    kept = [os.dup(number) for number in (0, 1, 2)]
    with (
        tempfile.TemporaryFile() as nothing,
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as errors,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(told)))
        try:
            for number, file in enumerate((nothing, out, errors)):
                os.dup2(file.fileno(), number)
            serve()
        finally:
            for number, copy in enumerate(kept):
                os.dup2(copy, number)
                os.close(copy)
        for file in (out, errors):
            file.seek(0)
        read = [file.read() for file in (out, errors)]
    return list(loaded(read[0])), read[1]


@dataclass(frozen=True)
class Loud:
    """A hill that prints past Python, as a library does, and is no density beyond 100."""

    def __call__(self, position):
        os.write(1, b"here I am")
        if np.abs(position).max() > 100.0:
            raise ArithmeticError("no such density")
        return HILL(position)


def course(target=HILL, warm_up=3):
    return Course(target, NUTS(0.5), warm_up, 1, 50, False, None)


def begun(task, seed=0):
    start = np.random.default_rng(1).standard_normal((2, 3))
    state = task.kernel.init(HILL, start)
    return begin(task, np.random.default_rng(seed), state)


def test_a_process_says_that_it_is_ready_and_ends_with_its_input():
    assert served(course()) == ([Answer()], b"")


def test_a_process_answers_each_task_with_the_new_draws_of_its_group():
    (ready, *answers), _ = served(
        course(), Task(7, begun(course(), 0), 4), Task(2, begun(course(), 5), 6)
    )
    assert ready == Answer()
    for (group, wanted, seed), answer in zip([(7, 4, 0), (2, 6, 5)], answers, strict=True):
        assert answer.group == group
        assert answer.error is None
        assert answer.run.kept == answer.run.infos == [], "they come in one array each"
        here = stretch(course(), begun(course(), seed), wanted, 1000.0)
        kept, infos = unstacked(answer.draws)
        assert len(kept) == len(infos) == wanted
        for one, other in zip((*kept, *infos), (*here.kept, *here.infos), strict=True):
            assert all(map(np.array_equal, one, other))
        assert answer.run.rng.bit_generator.state == here.rng.bit_generator.state
        assert answer.run.steps == here.steps == 3 + wanted


def test_what_a_target_prints_does_not_disturb_the_answers():
    answers, printed = served(course(Loud(), 0), Task(0, begun(course(warm_up=0)), 2))
    assert len(answers) == 2
    assert set(printed.split(b"here I am")) == {b""}
    assert printed.count(b"here I am") > 0


def test_a_course_that_cannot_be_imported_is_refused_and_nothing_follows():
    unknown = pickle.dumps(course(Loud())).replace(b"test_workers", b"test_wirkers")
    [answer], _ = served(unknown, Task(0, begun(course()), 2))
    assert isinstance(answer.error, NotSent)
    assert "ModuleNotFoundError: No module named" in str(answer.error)


def test_an_error_is_answered_with_its_lines_and_the_next_task_goes_on():
    run = begun(course(warm_up=0))
    far = run._replace(state=run.state._replace(position=1e3 * run.state.position))
    task = course(Loud(), 0)
    (_, failed, right), _ = served(task, Task(0, far, 2), Task(1, run, 2))
    assert isinstance(failed.error, ArithmeticError)
    assert failed.run is failed.draws is None
    [note] = failed.error.__notes__
    assert note.startswith("In a process that samples a group of chains:\nTraceback")
    assert "test_workers.py" in note
    assert (right.group, right.error) == (1, None)


def no_error(name):
    raise TypeError(f"{name} does not come out of a pickle")


class Demanding(Exception):
    """Goes into a pickle, and does not come out again, whatever Dask has taught pickle."""

    def __reduce__(self):
        return no_error, self.args


def test_an_error_that_cannot_be_sent_is_told_in_words():
    class Unknown(Exception):
        """Not even goes in."""

    for error in (Demanding("a"), Unknown("a")):
        sent = workers._portable(error)
        assert type(sent) is RuntimeError
        assert str(sent).startswith(f"{type(error).__name__} in a process that samples:\n")
        assert str(pickle.loads(pickle.dumps(sent))) == str(sent)


def test_an_answer_leaves_at_once_and_one_that_nobody_hears_ends_the_process(monkeypatch):
    raw = io.BytesIO()
    writer = io.BufferedWriter(raw, 10**6)
    workers._say(writer, Answer(3))
    assert list(loaded(raw.getvalue())) == [Answer(3)]

    class Gone:
        """A pipe whose reader has ended."""

        def write(self, data):
            raise BrokenPipeError

    codes = []
    monkeypatch.setattr(workers.os, "_exit", codes.append)
    workers._say(Gone(), Answer(3))
    assert codes == [0]


def test_a_run_that_cannot_be_sent_is_an_error_here_and_leaves_no_process():
    kept = begun(course())._replace(adaptation=lambda: None)
    with Processes(course(), 1) as processes:
        processes.send(Task(0, kept, 2))
        with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
            processes.receive()
    assert processes.processes[0].poll() is not None


@pytest.mark.parametrize("group", [0, 2])
def test_a_death_is_told_by_group_and_exit_code(group):
    error = Died(group, -9)
    assert str(error) == f"the process of group {group} died with exit code -9"
    assert (error.group, error.code) == (group, -9)


# --- the side that asks ----------------------------------------------------------------------


class Ears(io.RawIOBase):
    """What a played process hears."""

    def __init__(self):
        self.heard = b""

    def writable(self):
        return True

    def write(self, data):
        self.heard += bytes(data)
        return len(data)


class Mouth:
    """What a played process says: one answer, object or bytes, whenever it has heard more."""

    def __init__(self, ears, answers):
        self.ears, self.answers, self.known = ears, list(answers), 0
        self.now, self.closed = io.BytesIO(), False

    def read(self, size):
        data = self.now.read(size)
        if data or not self.answers or len(self.ears.heard) == self.known:
            return data
        self.known, answer = len(self.ears.heard), self.answers.pop(0)
        self.now = io.BytesIO(answer if isinstance(answer, bytes) else pickle.dumps(answer))
        return self.now.read(size)

    def readline(self):
        return self.now.readline()

    def close(self):
        self.closed = True


class Played:
    """A process, played here: what it will say is known, what it is told is kept."""

    def __init__(self, answers, arguments, options):
        self.arguments, self.options, self.events = arguments, options, []
        self.ears = Ears()
        self.stdin = io.BufferedWriter(self.ears, 10**6)
        self.stdout = Mouth(self.ears, answers)

    def kill(self):
        self.events.append("kill")

    def wait(self):
        self.events.append("wait")
        return 3


@pytest.fixture
def played(monkeypatch):
    """Let processes give these answers; return the list of those that are started."""
    started, joined = [], []

    class Noted(Thread):
        def join(self, timeout=None):
            joined.append(self)
            super().join(timeout)

    def answering(*answers):
        def popen(arguments, **options):
            started.append(Played(answers, arguments, options))
            return started[-1]

        monkeypatch.setattr(workers.subprocess, "Popen", popen)
        return started

    monkeypatch.setattr(workers, "Thread", Noted)
    yield answering
    for process in started:
        assert "kill" in process.events
        assert process.events[-1] == "wait", "or it would stay in the system's list"
        assert process.stdin.closed
        assert process.stdout.closed
    assert len(joined) == len(started)
    assert not any(thread.is_alive() for thread in joined)


def test_processes_have_one_thread_a_session_of_their_own_and_the_course(played):
    started = played(Answer())
    with Processes(course(), 2) as processes:
        assert sorted(processes.idle) == [0, 1]
        assert all(thread.daemon for thread in processes.threads), "no exit waits for them"
        told = [list(loaded(process.ears.heard)) for process in started]
    assert len(started) == 2
    for process, (path, sent) in zip(started, told, strict=True):
        options = process.options
        assert process.arguments == [sys.executable, "-c", workers.START]
        assert options["stdin"] == options["stdout"] == subprocess.PIPE
        assert ONE_THREAD.items() <= options["env"].items()
        assert os.environ.keys() <= options["env"].keys()
        assert options["start_new_session"] is True
        assert path == sys.path
        assert repr(sent[1:]) == repr(course()[1:])


def test_on_windows_a_process_has_a_group_of_its_own(played, monkeypatch):
    started = played(Answer())
    monkeypatch.setattr(workers.subprocess, "CREATE_NEW_PROCESS_GROUP", 512, raising=False)
    system = SimpleNamespace(platform="win32", executable="python.exe", path=["here"])
    monkeypatch.setattr(workers, "sys", system)
    with Processes(course(), 1):
        [process] = started
        assert process.options["creationflags"] == 512
        assert "start_new_session" not in process.options


def test_a_task_goes_to_an_idle_process_and_comes_back_with_its_draws(played):
    run = stretch(course(), begun(course()), 4, 1000.0)
    bare = run._replace(kept=[], infos=[])
    started = played(Answer(), Answer(5, bare, stacked(run)), Answer(6, bare))
    with Processes(course(), 1) as processes:
        for group, here in ((5, run), (6, bare)):
            processes.send(Task(group, begun(course()), 4))
            assert processes.idle == []
            found, back = processes.receive()
            assert (found, processes.idle) == (group, [0])
            assert (len(back.kept), len(back.infos)) == (len(here.kept), len(here.infos))
            for one, other in zip(
                (*back.kept, *back.infos), (*here.kept, *here.infos), strict=True
            ):
                assert all(map(np.array_equal, one, other))
            assert back.steps == run.steps
        _, _, *tasks = loaded(started[0].ears.heard)
    assert [task.group for task in tasks] == [5, 6]


@pytest.mark.parametrize("end", [b"", b"no pickle"])
def test_a_process_that_dies_at_work_is_told_with_its_group_and_code(end, played):
    played(Answer(), end)
    with Processes(course(), 1) as processes:
        processes.send(Task(5, begun(course()), 4))
        with pytest.raises(Died) as error:
            processes.receive()
    assert (error.value.group, error.value.code) == (5, 3)


def test_an_error_of_the_target_is_raised_where_its_group_was_asked_for(played):
    played(Answer(), Answer(error=ArithmeticError("no such density")))
    with Processes(course(), 1) as processes:
        processes.send(Task(5, begun(course()), 4))
        with pytest.raises(ArithmeticError, match="no such density"):
            processes.receive()


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        ([Answer(error=NotSent("ModuleNotFoundError: mine"))], "^ModuleNotFoundError: mine$"),
        ([], "^a new process died with exit code 3$"),
    ],
)
def test_a_process_that_does_not_get_ready_cannot_have_the_course(answers, words, played):
    started = played(*answers)
    with pytest.raises(NotSent, match=words), Processes(course(), 2):
        raise AssertionError("it is not ready")
    assert len(started) == 2


def test_a_process_without_a_task_has_no_group(played):
    played()
    processes = Processes(course(), 1)
    processes._start(0)
    assert processes._next().error.group == -1
    processes._end()


@pytest.mark.parametrize(
    ("stops", "error", "words"),
    [
        (OSError("no room"), NotSent, "^no process could be started: no room$"),
        (KeyboardInterrupt("now"), KeyboardInterrupt, "^now$"),
    ],
)
def test_if_not_all_processes_start_those_that_did_are_ended(
    stops, error, words, played, monkeypatch
):
    started = played(Answer())
    popen = workers.subprocess.Popen

    def second_stops(*arguments, **options):
        if started:
            raise stops
        return popen(*arguments, **options)

    monkeypatch.setattr(workers.subprocess, "Popen", second_stops)
    with pytest.raises(error, match=words), Processes(course(), 2):
        raise AssertionError("it is not ready")
    assert len(started) == 1


def test_the_wait_for_an_answer_is_broken_off_and_begins_anew():
    """Or Ctrl-C would not be heard on every system; but not so often that a core is busy."""
    processes, waits = Processes(course(), 1), []

    def get(timeout):
        waits.append(timeout)
        if len(waits) < 3:
            raise Empty
        return 0, Answer(5)

    processes.answers = SimpleNamespace(get=get)
    assert processes._next() == Answer(5)
    assert len(waits) == 3
    assert all(0.1 <= wait <= 3.0 for wait in waits)


def test_buffers_of_a_network_s_density_are_not_sent():
    model = Model(MLP((1, 30, 1)), GaussianPrior(), GaussianLikelihood(0.3))
    target = LogJoint(model, np.zeros((50, 1)), np.zeros((50, 1)))
    target(np.zeros((9, model.layout.size)))  # 9 chains, 30 units, 50 rows
    sent = len(Processes(course(target), 1).course)
    assert max(sent, len(pickle.dumps(target))) < 8 * 30 * 50  # what one layer of them takes


# --- cores -----------------------------------------------------------------------------------


def test_a_number_of_cores_is_one_or_more_or_left_to_the_machine():
    assert [check_cores("cores", cores) for cores in (None, 1, 3)] == [None, 1, 3]
    with pytest.raises(ValueError, match=r"^cores must be a whole number >= 1; got 0"):
        check_cores("cores", 0)


@pytest.mark.parametrize(
    ("cores", "counted", "found"), [({3, 5, 6}, 8, 3), (None, 8, 8), (None, None, 1)]
)
def test_usable_cores_are_those_that_the_system_gives_to_this_process(
    cores, counted, found, monkeypatch
):
    monkeypatch.setattr(workers.multiprocessing, "parent_process", lambda: None)
    system = SimpleNamespace(cpu_count=lambda: counted)
    if cores is not None:
        system.sched_getaffinity = {0: cores}.__getitem__  # 0 is this process
    monkeypatch.setattr(workers, "os", system)
    monkeypatch.setattr(workers, "sys", SimpleNamespace(executable="python"))
    assert usable() == found
    monkeypatch.setattr(workers, "sys", SimpleNamespace(executable="python", frozen=False))
    assert usable() == found


@pytest.mark.parametrize(
    ("executable", "frozen", "parent"),
    [("", False, None), ("python", True, None), ("python", False, "parent")],
)
def test_without_a_python_of_its_own_or_in_a_pool_a_program_keeps_to_one_core(
    executable, frozen, parent, monkeypatch
):
    monkeypatch.setattr(workers.multiprocessing, "parent_process", lambda: parent)
    monkeypatch.setattr(workers, "os", SimpleNamespace(cpu_count=lambda: 8))
    monkeypatch.setattr(workers, "sys", SimpleNamespace(executable=executable, frozen=frozen))
    assert usable() == 1


def test_as_many_processes_as_any_machine_has_may_be_asked_for():
    assert check_cores("cores", 1024) == 1024
    with pytest.raises(ValueError, match=r"cores must be .* <= 1024; got 1025"):
        check_cores("cores", 1025)
