"""Grade files in processes of their own, with limits of time and memory.

An answer is code that is run. The limits are against accidents, an endless loop or an array of a
terabyte; they are no jail: what a stranger sent belongs into a container. But whatever an answer
does to its process, to that process's parent or to its group, the others get their grades.
"""

from __future__ import annotations

import contextlib
import inspect
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Timer
from typing import Any

import numpy as np

from bbb_studies.threads import ONE_THREAD

from . import alone
from .exercise import Finding, Formula, Unusable, Verdict
from .judging import PATHS, agrees, judge
from .keys import find, name_of

__all__ = ["grade_file", "grade_files", "work"]

WORK = [sys.executable, "-c", "from bbb_course.sandbox import work; work()"]
# A shell between the command and the answer, which may end its parent: then the shell ends
GUARD = [] if os.name == "nt" else ["sh", "-c", '"$@"; exit $?', "sh"]
SIGALRM = getattr(signal, "SIGALRM", -1)
SPARE = 10.0  # seconds that a process may take to start, beyond the limit of its file


def grade_files(
    paths: Sequence[Path], seconds: float = 20.0, megabytes: int = 1024
) -> Iterator[Verdict]:
    """Grade files, each in a process of its own; yield the verdicts in the order of the files.

    Files are named as their exercises, and have so many seconds each, those that run an answer
    often a multiple that they say; megabytes are those beyond what the grader itself holds, where
    the system can limit them.
    """
    running: set[subprocess.Popen[bytes]] = set()

    def graded(path: Path) -> Verdict:
        return _graded(path, seconds * find(name_of(path)).patience, megabytes, running)

    pool = ThreadPoolExecutor(os.cpu_count())
    try:
        yield from pool.map(graded, paths)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        for process in [*running]:
            _end(process)


def _graded(
    path: Path, seconds: float, megabytes: int, running: set[subprocess.Popen[bytes]]
) -> Verdict:
    """Return what a new process says of a file, or why it says nothing."""
    limits = [str(path), f"{seconds}", f"{megabytes}"]
    line, by, late = _said([*WORK, *limits], seconds + SPARE, running)
    try:
        found: dict[str, Any] = json.loads(line)
        findings = tuple(Finding(**one) for one in found.pop("findings"))
        verdict = Verdict(**found, findings=findings)
    except (ValueError, TypeError, KeyError, AttributeError):
        why = f"its process ended{f' by signal {by}' if by > 0 else ''} before it was graded"
        if late or by == SIGALRM:
            why = f"it took more than {seconds:g} s: an endless loop?"
        return Verdict(name_of(path), False, "stopped", why)
    exercise = find(verdict.exercise)
    if not verdict.passed or not isinstance(exercise, Formula):
        return verdict
    # Its numbers once more, of a process that cannot import the keys, compared here
    cases = [exercise.draw(seed) for seed in PATHS]
    sent = json.dumps([[_sent(one) for one in case] for case in cases]).encode()
    command = [sys.executable, alone.__file__, exercise.name, *limits]
    line, _, _ = _said(command, seconds + SPARE, running, sent)
    try:
        said = zip(json.loads(line), cases, strict=True)
        if all(agrees(exercise, case, returned) for returned, case in said):
            return verdict
    except (ValueError, TypeError, Unusable):
        pass
    return Verdict(verdict.exercise, False, "stopped", "it is right only where there is a key")


def _said(
    command: list[str], seconds: float, running: set[subprocess.Popen[bytes]], given: bytes = b""
) -> tuple[bytes, int, bool]:
    """Return the first line of a process's output, the signal that ended it, and if it was late."""
    root = str(Path(__file__).resolve().parents[1])  # the same package, installed or not
    places = os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])
    with subprocess.Popen(
        [*GUARD, *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **ONE_THREAD, "PYTHONPATH": places},
        start_new_session=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        running.add(process)
        began, timer = time.monotonic(), Timer(seconds, _end, [process])
        timer.start()
        try:
            with contextlib.suppress(BrokenPipeError), process.stdin as pipe:
                pipe.write(given)
            line = process.stdout.readline()
            by = 0 if line else process.wait() - 128  # as a shell counts
        finally:
            late = time.monotonic() - began > seconds
            timer.cancel()
            _end(process)
            running.remove(process)
    return line, by, late


def _sent(argument: Any) -> Any:
    if callable(argument):
        return {"name": argument.__name__, "source": inspect.getsource(argument)}
    if isinstance(argument, np.ndarray):
        return {"array": argument.tolist(), "kind": argument.dtype.str}
    return argument.item() if isinstance(argument, np.generic) else argument


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process and what it has started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if os.name == "nt":
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL)


# --- in the process of an answer


def work() -> None:
    """Grade the file of the command line within its limits, and print the verdict as JSON."""
    path, seconds, megabytes = sys.argv[1:]
    out = os.dup(1)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)  # what the answer prints
    alone.limit(float(seconds), int(megabytes))
    try:
        find(name_of(Path(path)))  # all keys are there
        alone.hide()
        verdict = grade_file(Path(path))
    except BaseException as error:  # of the grader, or one that nobody expects
        said = f"grading it failed: {type(error).__name__}: {error}"
        verdict = Verdict(name_of(Path(path)), False, "stopped", said)
    os.write(out, json.dumps(verdict.as_dict()).encode() + b"\n")


def grade_file(path: Path) -> Verdict:
    """Grade one file in this process, without limits: a function, or a table, of its name."""
    name = name_of(path)
    find(name)
    try:
        return judge(name, _defined(name, path))
    except NotImplementedError:
        return Verdict(name, False, "not answered", "it is not answered yet")
    except Unusable as error:
        return Verdict(name, False, "unusable", str(error))
    except MemoryError:
        return Verdict(name, False, "stopped", "it needs more memory than the limit")
    except SystemExit:
        return Verdict(name, False, "stopped", "it ends its process: leave out exit()")


def _defined(name: str, path: Path) -> Any:
    """Run a file and return what it defines under this name."""
    scope: dict[str, Any] = {"__name__": name, "__file__": str(path)}
    try:
        exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), scope)
    except (NotImplementedError, MemoryError):
        raise
    except SyntaxError as error:
        raise Unusable(f"line {error.lineno}: {error.msg}") from None
    except Exception as error:
        raise Unusable(f"it cannot be imported: {type(error).__name__}: {error}") from None
    if name not in scope:
        raise Unusable(f"it does not define {name}")
    return scope[name]
