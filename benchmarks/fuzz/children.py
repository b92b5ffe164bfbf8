"""Child processes with limits: what hangs or crashes is noted, and the run goes on."""

from __future__ import annotations

import faulthandler
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

__all__ = ["GROWN", "Overtime", "grown", "limited", "run_all", "work"]

ROOT = Path(__file__).resolve().parents[2]
ADDRESSES = 6 << 30  # bytes of a child
SECONDS = 20  # of one call, which Python's own code notices
SILENCE = {"kills": 900, "interrupts": 900}  # before a child is killed; of others:
ONE_CALL = 90  # the time went in one call of C
GROWN = 1 << 30  # bytes by which one call may let a process grow


class Overtime(BaseException):
    """A call took too long; no handler of Exception or KeyboardInterrupt catches this."""


def limited() -> None:
    """Set the limits of this process, and let a crash write where it happened."""
    faulthandler.enable()
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGALRM, _overtime)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background shell ignores it


def _overtime(*_: Any) -> None:
    raise Overtime


@contextmanager
def grown(seconds: float = SECONDS) -> Iterator[Callable[[], int]]:
    """Limit the time, and yield a function that tells the growth of memory at its peak."""
    Path("/proc/self/clear_refs").write_text("5")  # the peak is now what is in use
    before = _peak()
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield lambda: _peak() - before
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _peak() -> int:
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith("VmHWM"))


def run_all(kind: str, seed: int, count: int, jobs: int) -> Iterator[dict[str, Any]]:
    """Yield what became of the trials 0 to `count` - 1 of one kind, in no order."""
    with tempfile.TemporaryDirectory() as folder:
        shares = [Share(kind, seed, count, jobs, job, Path(folder)) for job in range(jobs)]
        while shares:
            time.sleep(0.2)
            for share in list(shares):
                yield from share.news()
                if share.next >= count:
                    share.end()
                    shares.remove(share)


class Share:
    """Every so manieth trial, in one child after another."""

    def __init__(self, kind: str, seed: int, count: int, jobs: int, job: int, at: Path) -> None:
        self.kind, self.seed, self.count, self.jobs, self.next = kind, seed, count, jobs, job
        self.notes, self.errors = at / f"{job}.jsonl", at / f"{job}.err"
        self.read = 0
        self.place = at / str(job)  # where calls may write files
        self.place.mkdir()
        self.begin()

    def begin(self) -> None:
        """Start a child with the trial that comes next."""
        self.notes.touch()
        self.heard = time.monotonic()
        words = ["--worker", self.kind, self.seed, self.next, self.count, self.jobs, self.notes]
        with self.errors.open("wb") as errors:
            self.child = subprocess.Popen(
                [sys.executable, "-m", "benchmarks.fuzz", *map(str, words)],
                cwd=self.place,
                stderr=errors,
                stdout=subprocess.DEVNULL,
                env={
                    **os.environ,
                    "PYTHONPATH": str(ROOT),
                    "OPENBLAS_NUM_THREADS": "1",
                    "MPLBACKEND": "agg",
                },
            )

    def news(self) -> list[dict[str, Any]]:
        """Return the trials that have ended since, among them one that took its child along."""
        ended = self.child.poll() is not None  # before the notes are read, so that none is missed
        data = self.notes.read_bytes()[self.read :]
        data = data[: data.rfind(b"\n") + 1]
        self.read += len(data)
        found: list[dict[str, Any]] = [json.loads(line) for line in data.splitlines()]
        if found:
            self.heard = time.monotonic()
            self.next = found[-1]["trial"] + self.jobs
        limit = SILENCE.get(self.kind, ONE_CALL)
        silent = time.monotonic() - self.heard > limit
        if self.next < self.count and (ended or silent):
            self.end()
            said = self.errors.read_text("utf-8", "replace")[-2000:]
            if self.child.returncode == 1:  # an exception outside of a trial: an error of ours
                raise RuntimeError(said)
            why = f"hang of {limit} s" if silent else f"crash, status {self.child.returncode}"
            found.append({"trial": self.next, "what": "", "defect": why, "text": said})
            self.next += self.jobs
            if self.next < self.count:
                self.begin()
        return found

    def end(self) -> None:
        """End the child."""
        self.child.kill()
        self.child.wait()


def work(trial: Callable[[int, int], dict[str, Any]], words: list[str]) -> None:
    """Be a child: make every so manieth trial, and note each when it has ended."""
    seed, first, count, jobs = map(int, words[:4])
    parent = os.getppid()
    limited()
    with open(words[4], "a") as notes:
        for i in range(first, count, jobs):
            if os.getppid() != parent:
                return  # who waits for the notes has gone
            notes.write(json.dumps({"trial": i, **trial(seed, i)}) + "\n")
            notes.flush()
