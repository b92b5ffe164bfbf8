"""Start a program, and end all that it has started: ``python guard.py LIFELINE MARK PROGRAM ...``.

The guard stands between the grader and an answer. It ends what the answer left behind when the
answer ends, and everything when the grader does, whose end of the pipe LIFELINE closes then. On
Linux orphans of the answer become the guard's children, whatever session they began; those of an
answer that ended its guard are known by MARK, which is in the environment that they inherited.
"""

from __future__ import annotations

import _thread
import contextlib
import os
import signal
import sys
import time

MARK = "BBB_COURSE_ANSWER"  # variable of the environment
ADOPT_ORPHANS = 36  # PR_SET_CHILD_SUBREAPER of prctl(2)
# a process that was killed takes a moment to go, and may start another before
ROUNDS = 50
PAUSE_S = 0.005


def relatives(ancestor: int, mark: str) -> set[int]:
    """Return the living processes below an ancestor, and those that carry a mark; Linux only."""
    parents, found = {}, set()
    for entry in os.listdir("/proc") if os.path.isdir("/proc/self") else ():
        try:
            pid = int(entry)
            with open(f"/proc/{pid}/stat", "rb") as file:
                state, parent = file.read().rpartition(b")")[2].split()[:2]
            if state in (b"Z", b"X"):  # it has ended
                continue
            parents[pid] = int(parent)
            with open(f"/proc/{pid}/environ", "rb") as file:
                if f"{MARK}={mark}".encode() in file.read().split(b"\0"):
                    found.add(pid)
        except (
            ValueError,
            OSError,
        ):  # no process, or one that has ended or is another user's
            continue
    number = -1
    while number != len(found):
        number = len(found)
        found |= {
            pid
            for pid, parent in parents.items()
            if parent == ancestor or parent in found
        }
    return found - {ancestor, os.getpid()}


def end_relatives(ancestor: int, mark: str) -> None:
    """Kill what `relatives` finds, until it finds nothing."""
    for _ in range(ROUNDS):
        found = relatives(ancestor, mark)
        if not found:
            return
        for pid in found:
            with contextlib.suppress(OSError):  # it has ended
                os.kill(pid, signal.SIGKILL)
        time.sleep(PAUSE_S)


def adopt_orphans() -> None:
    """Make this process the parent of what its descendants leave behind, where that can be."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(ADOPT_ORPHANS, 1, 0, 0, 0)


def end_with(lifeline: int, mark: str) -> None:
    """Wait until the grader closes its end, or ends, and end everything."""
    while os.read(lifeline, 1):
        pass
    end_relatives(os.getpid(), mark)
    os._exit(1)


def main(lifeline: int, mark: str, program: list[str]) -> None:
    """Run a program to its end, and exit as a shell does: with its status, or 128 and a signal."""
    adopt_orphans()
    os.set_inheritable(lifeline, False)
    child = os.posix_spawn(program[0], program, os.environ)
    _thread.start_new_thread(end_with, (lifeline, mark))
    pid = status = 0
    while pid != child:
        pid, status = os.wait()
    end_relatives(os.getpid(), mark)
    code = os.waitstatus_to_exitcode(status)
    os._exit(code if code >= 0 else 128 - code)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3:])
