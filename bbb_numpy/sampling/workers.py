"""Processes that sample groups of chains, one core and one BLAS thread each.

A process is a Python of its own that gets a group as it is between two steps, makes steps for a
moment, and sends the group back. So this process always knows all that has been drawn: it shows
progress, writes checkpoints, and after Ctrl-C or the death of a process has what came before.

They are plain subprocesses on pipes. `multiprocessing` would run the user's script again in each
of them, unless its lines stand under ``if __name__ == "__main__"``; dask is an extra, and takes
seconds to begin.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import subprocess
import sys
import traceback
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Thread
from types import TracebackType
from typing import Any, BinaryIO, NamedTuple

from ..numeric.threads import ONE_THREAD
from ..numeric.validation import whole
from .resuming import Run, Stretch, stacked, unstacked
from .stepping import Course, stretch

__all__ = ["Died", "NotSent", "Processes", "check_cores", "serve", "usable"]

MOST_CORES = 1024
TURN = 0.25  # seconds that a process samples before it answers
START = """
import pickle, sys
sys.path[:] = pickle.load(sys.stdin.buffer)
from bbb_numpy.sampling.workers import serve
serve()
"""


class NotSent(ValueError):
    """What is to be sampled cannot go to another process."""


class Died(ChildProcessError):
    """The process that sampled a group has ended; group -1: it had none yet."""

    def __init__(self, group: int, code: int | None) -> None:
        who = "a new process" if group < 0 else f"the process of group {group}"
        super().__init__(f"{who} died with exit code {code}")
        self.group, self.code = group, code


class Task(NamedTuple):
    """A group to go on with."""

    group: int
    run: Run  # without draws
    wanted: int  # draws


class Answer(NamedTuple):
    """What comes back: a group with its new draws, or an error; nothing before the first group."""

    group: int | None = None
    run: Run | None = None  # without draws
    draws: Stretch | None = None  # None: there are none
    error: BaseException | None = None


def usable() -> int:
    """Return the number of cores for this process.

    One of a pool has 1, since its others have work; so has a program without a Python of its own
    (frozen, embedded), which would start itself again.
    """
    alone = not sys.executable or getattr(sys, "frozen", False)
    if alone or multiprocessing.parent_process() is not None:
        return 1
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def check_cores(name: str, cores: Any) -> int | None:
    """Return a number of cores, or None for what the machine has."""
    return None if cores is None else whole(name, cores, 1, MOST_CORES)


class Processes:
    """Processes for groups of chains; all of them end with the block.

    Parameters
    ----------
    course : Course
    count : int

    Raises
    ------
    NotSent
        If target or kernel cannot be pickled, or the new process cannot import them.
    """

    def __init__(self, course: Course, count: int) -> None:
        try:
            self.course = pickle.dumps(course, pickle.HIGHEST_PROTOCOL)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise NotSent(str(error)) from None
        self.count = count
        self.answers: SimpleQueue[tuple[int, Answer]] = SimpleQueue()
        self.tasks: list[SimpleQueue[Task | None]] = []
        self.processes: list[subprocess.Popen[bytes]] = []
        self.threads: list[Thread] = []
        self.idle: list[int] = []

    def __enter__(self) -> Processes:
        try:
            for worker in range(self.count):
                self._start(worker)
            while len(self.idle) < self.count:  # each says that it is ready
                answer = self._next()
                if answer.error is not None:
                    raise NotSent(str(answer.error)) from None
        except OSError as error:
            self._end()
            raise NotSent(f"no process could be started: {error}") from None
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end()

    def send(self, task: Task) -> None:
        """Give a task to an idle process."""
        self.tasks[self.idle.pop()].put(task)

    def receive(self) -> tuple[int, Run]:
        """Return a group that has come back, with its new draws alone.

        Raises
        ------
        Died
            If its process has ended.
        Exception
            Those of target and kernel, as if they were called here.
        """
        answer = self._next()
        if answer.error is not None:
            raise answer.error
        assert answer.group is not None
        assert answer.run is not None
        kept, infos = unstacked(answer.draws)
        return answer.group, answer.run._replace(kept=kept, infos=infos)

    def _next(self) -> Answer:
        while True:
            with suppress(Empty):  # with an end, that Ctrl-C is heard on every system
                worker, answer = self.answers.get(timeout=1.0)
                self.idle.append(worker)
                return answer

    def _start(self, worker: int) -> None:
        """Start a process, which does not hear the Ctrl-C of this one's terminal."""
        apart: dict[str, Any] = {"start_new_session": True}
        if sys.platform == "win32":
            apart = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}
        process = subprocess.Popen(
            [sys.executable, "-c", START],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **ONE_THREAD},
            **apart,
        )
        self.processes.append(process)
        self.tasks.append(SimpleQueue())
        self.threads.append(Thread(target=self._carry, args=(worker,), daemon=True))
        self.threads[-1].start()

    def _carry(self, worker: int) -> None:
        """Carry tasks to a process and its answers back, until either ends."""
        process, group = self.processes[worker], -1
        stdin, stdout = process.stdin, process.stdout
        assert stdin is not None
        assert stdout is not None
        try:
            stdin.write(pickle.dumps(sys.path) + self.course)
            task: Task | None
            while True:
                stdin.flush()
                self.answers.put((worker, pickle.load(stdout)))
                task = self.tasks[worker].get()
                if task is None:
                    return
                group = task.group
                pickle.dump(task, stdin, pickle.HIGHEST_PROTOCOL)
        except (OSError, EOFError, pickle.UnpicklingError):
            self.answers.put((worker, Answer(error=Died(group, process.wait()))))
        except BaseException as error:
            self.answers.put((worker, Answer(error=error)))

    def _end(self) -> None:
        """End all processes, wherever they are."""
        for process in self.processes:
            process.kill()
        for tasks in self.tasks:
            tasks.put(None)
        for process in self.processes:
            process.wait()
        for thread in self.threads:
            thread.join()
        for process in self.processes:
            for pipe in (process.stdin, process.stdout):
                with suppress(OSError):  # what was left to write
                    pipe.close()  # type: ignore[union-attr]


def serve() -> None:
    """Sample what comes by standard input until it ends: the life of a process."""
    with os.fdopen(os.dup(1), "wb") as answers:
        os.dup2(2, 1)  # what a target prints
        _answer_all(sys.stdin.buffer, answers)


def _answer_all(requests: BinaryIO, answers: BinaryIO) -> None:
    try:
        course: Course = pickle.load(requests)
    except Exception as error:
        _say(answers, Answer(error=NotSent(f"{type(error).__name__}: {error}")))
        return
    _say(answers, Answer())
    while True:
        try:
            task: Task = pickle.load(requests)
        except EOFError:
            return
        try:
            run = stretch(course, task.run, task.wanted, TURN)
            answer = Answer(task.group, run._replace(kept=[], infos=[]), stacked(run))
        except BaseException as error:
            answer = Answer(error=_portable(error))
        _say(answers, answer)


def _say(answers: Any, answer: Answer) -> None:
    try:
        pickle.dump(answer, answers, pickle.HIGHEST_PROTOCOL)
        answers.flush()
    except BrokenPipeError:  # the process that asked is gone
        os._exit(0)


def _portable(error: BaseException) -> BaseException:
    """Return an error that can be sent, with the lines where it was raised."""
    lines = "".join(traceback.format_exception(error))
    error.add_note(f"In a process that samples a group of chains:\n{lines}")
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__} in a process that samples:\n{lines}")
    return error
