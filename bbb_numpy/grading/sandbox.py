"""Grade files in processes of their own, with limits of time and memory.

An answer is code that is run. The limits are against accidents, an endless loop or an array of a
terabyte; they are no jail: what a stranger sent belongs into a container.

One process imports what all need and forks once for each file, where the system can fork, so that
no answer sees what another left behind. Elsewhere each file has a process of its own.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ..numeric.threads import ONE_THREAD
from .exercise import Finding, Verdict
from .judging import judge
from .keys import find, name_of

__all__ = ["FORKS", "grade_file", "grade_files"]

# macOS: its BLAS may hang in a fork
FORKS = hasattr(os, "fork") and sys.platform != "darwin"
ENDED = "its process ended before it was graded"
SIGXCPU = getattr(signal, "SIGXCPU", -1)
SPARE = 10.0  # seconds that a process may take to start, beyond the limit of its files


def grade_files(
    paths: Sequence[Path], seconds: float = 20.0, megabytes: int = 1024
) -> Iterator[Verdict]:
    """Grade files, each in a process of its own; yield the verdicts in the order of the files.

    Parameters
    ----------
    paths : sequence of Path
        Named as the exercises.
    seconds : float
        Time for each file. Exercises that are scored by running the answer often have
        more: a multiple that they say.
    megabytes : int
        Memory beyond what the grader itself holds, where the system can limit it.
    """
    groups = [list(paths)] if FORKS else [[path] for path in paths]
    for group in groups:
        if group:
            yield from _served(group, seconds, megabytes)


def _served(group: list[Path], seconds: float, megabytes: int) -> Iterator[Verdict]:
    request = json.dumps([[str(path) for path in group], seconds, megabytes, FORKS])
    environment = {**os.environ, **ONE_THREAD}
    root = str(Path(__file__).resolve().parents[2])  # the same package, installed or not
    paths = [root, *filter(None, [environment.get("PYTHONPATH")])]
    environment["PYTHONPATH"] = os.pathsep.join(paths)
    with subprocess.Popen(
        [sys.executable, "-m", "bbb_numpy.grading.worker", request],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        env=environment,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            for path in group:
                late = _allowed(path, seconds)
                yield _read(path, process.stdout.readline() if FORKS else _line(process, late))
        finally:
            process.terminate()  # which ends the fork of an answer, too


def _line(process: subprocess.Popen[str], seconds: float) -> str:
    """Return what a process that cannot fork says within a time."""
    try:
        said = process.communicate(timeout=seconds + SPARE)[0].strip().rpartition("\n")[2]
    except subprocess.TimeoutExpired:
        process.kill()
        return _stopped(_late(seconds)).decode()
    by = -process.returncode
    return said or _stopped(_late(seconds) if by == SIGXCPU else ENDED).decode()


def _read(path: Path, line: str) -> Verdict:
    name = name_of(path)
    try:
        found: dict[str, Any] = json.loads(line)
    except json.JSONDecodeError:
        found = {"stopped": ENDED}
    if "stopped" in found:
        return Verdict(name, False, "stopped", found["stopped"])
    found["findings"] = tuple(Finding(**one) for one in found["findings"])
    return Verdict(**found)


def _allowed(path: Path, seconds: float) -> float:
    """Return the time for a file: scored exercises run an answer many times."""
    return seconds * find(name_of(path)).patience


# --- in the process of the grader


def serve(paths: Sequence[str], seconds: float, megabytes: int, forks: bool) -> None:
    """Grade files one after the other, each in a fork, and print a line of JSON for each.

    Without `forks` there is one file, and the limits are those of this process.
    """
    for path in map(Path, paths):
        allowed = _allowed(path, seconds)
        if forks:
            line = _in_fork(path, allowed, megabytes)
        else:
            out = os.dup(1)
            _limit(allowed, megabytes)
            _silence()
            line = _safely_graded(path)
        os.write(1 if forks else out, line + b"\n")


def _in_fork(path: Path, seconds: float, megabytes: int) -> bytes:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            os.setsid()
            _limit(seconds, megabytes)
            _silence()
            with os.fdopen(writing, "wb") as pipe:
                pipe.write(_safely_graded(path))
        finally:
            os._exit(0)
    os.close(writing)
    text, until = b"", time.monotonic() + seconds
    try:
        with os.fdopen(reading, "rb", buffering=0) as pipe:
            while (left := until - time.monotonic()) > 0:
                ready, _, _ = select.select([pipe], [], [], left)
                piece = pipe.read(65536) if ready else b""
                if ready and not piece:
                    break
                text += piece
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child, signal.SIGKILL)  # and what it has started
        _, status = os.waitpid(child, 0)
    late = left <= 0
    if text and not late:
        return text
    by = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    if late or by == SIGXCPU:
        return _stopped(_late(seconds))
    why = f" by signal {by}" if by not in (0, signal.SIGKILL) else ""
    return _stopped(ENDED.replace("ended", f"ended{why}"))


def _late(seconds: float) -> str:
    return f"it took more than {seconds:g} s: an endless loop?"


def _stopped(why: str) -> bytes:
    return json.dumps({"stopped": why}).encode()


def _limit(seconds: float, megabytes: int) -> None:
    """Limit this process: time of the processor, memory, and the size of files it writes."""
    try:
        import resource
    except ImportError:  # not on Windows: the time is limited by who started this process
        return
    soft = int(seconds) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (soft, soft + 1))
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000_000, 10_000_000))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            held = int(file.read().split()[0]) * resource.getpagesize()
        most = held + megabytes * 2**20
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    except (OSError, ValueError):  # no such limit on this system
        pass


def _silence() -> None:
    """Send what an answer prints nowhere: the grader's lines stay readable."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)


def _safely_graded(path: Path) -> bytes:
    try:
        return json.dumps(grade_file(path).as_dict()).encode()
    except BaseException as error:  # of the grader, or one that nobody expects
        return _stopped(f"grading it failed: {type(error).__name__}: {error}")


def grade_file(path: Path) -> Verdict:
    """Grade one file in this process, without limits.

    Parameters
    ----------
    path : Path
        Named as the exercise, digits before it aside; it defines a function, or a table, of the
        exercise's name.

    Returns
    -------
    Verdict
    """
    name = name_of(path)
    find(name)
    scope: dict[str, Any] = {"__name__": name, "__file__": str(path)}
    try:
        exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), scope)
    except NotImplementedError:
        return Verdict(name, False, "not answered", "it is not answered yet")
    except MemoryError:
        return Verdict(name, False, "stopped", "it needs more memory than the limit")
    except SystemExit:
        return Verdict(name, False, "stopped", "it ends its process: leave out exit()")
    except SyntaxError as error:
        return Verdict(name, False, "unusable", f"line {error.lineno}: {error.msg}")
    except Exception as error:
        said = f"it cannot be imported: {type(error).__name__}: {error}"
        return Verdict(name, False, "unusable", said)
    if name not in scope:
        return Verdict(name, False, "unusable", f"it does not define {name}")
    try:
        return judge(name, scope[name])
    except MemoryError:
        return Verdict(name, False, "stopped", "it needs more memory than the limit")
    except SystemExit:
        return Verdict(name, False, "stopped", "it ends its process: leave out exit()")
