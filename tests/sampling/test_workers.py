"""What a process for a group of chains is told and answers, byte by byte, in this process.

Processes themselves, their cores and their ends are the matter of test_cores.
"""

import io
import os
import pickle
import sys
import tempfile
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest
from targets import correlated

from bbb_numpy.sampling import workers
from bbb_numpy.sampling.mcmc import NUTS
from bbb_numpy.sampling.resuming import unstacked
from bbb_numpy.sampling.stepping import Course, begin, stretch
from bbb_numpy.sampling.workers import Answer, Died, NotSent, Processes, Task, serve

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


class Demanding(Exception):
    """Goes into a pickle, and does not come out again."""

    def __init__(self, one, two):
        super().__init__(one)


def test_an_error_that_cannot_be_sent_is_told_in_words():
    class Unknown(Exception):
        """Not even goes in."""

    for error in (Demanding("a", "b"), Unknown("a")):
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


def test_a_death_is_told_by_group_and_exit_code():
    error = Died(2, -9)
    assert str(error) == "the process of group 2 died with exit code -9"
    assert (error.group, error.code) == (2, -9)
