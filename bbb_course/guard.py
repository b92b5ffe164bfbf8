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
# A process that was killed takes a moment to end, and may start another one meanwhile
N_ROUNDS = 50
PAUSE_S = 0.005


def relatives(ancestor: int, mark: str) -> set[int]:
    """Return the process ids of an ancestor's descendants, and of processes with a mark.

    Parameters
    ----------
    ancestor : int
        Its process id; it is left out, and so is this process.
    mark : str
        Value of the environment variable `MARK`.

    Returns
    -------
    set of int
        Empty where there is no /proc.
    """
    parents = {}
    marked = set()
    entries = os.listdir("/proc") if os.path.isdir("/proc/self") else []
    for entry in entries:
        try:
            pid = int(entry)
            with open(f"/proc/{pid}/stat", "rb") as file:
                state, parent = file.read().rpartition(b")")[2].split()[:2]
            if state in (b"Z", b"X"):  # it has ended
                continue
            parents[pid] = int(parent)
            with open(f"/proc/{pid}/environ", "rb") as file:
                if f"{MARK}={mark}".encode() in file.read().split(b"\0"):
                    marked.add(pid)
        # no process, or one that has ended or belongs to another user
        except (ValueError, OSError):
            continue
    number = -1
    while number != len(marked):
        number = len(marked)
        marked |= {
            pid
            for pid, parent in parents.items()
            if parent == ancestor or parent in marked
        }
    return marked - {ancestor, os.getpid()}


def end_relatives(ancestor: int, mark: str) -> None:
    """Kill all `relatives` of a process, again until there are none.

    Parameters
    ----------
    ancestor : int
        Its process id; it is not killed, nor is this process.
    mark : str
        Value of the environment variable `MARK`.
    """
    for _ in range(N_ROUNDS):
        processes = relatives(ancestor, mark)
        if not processes:
            return
        for pid in processes:
            with contextlib.suppress(OSError):  # it has ended
                os.kill(pid, signal.SIGKILL)
        time.sleep(PAUSE_S)


def adopt_orphans() -> None:
    """Make this process the parent of its descendants' orphans; Linux only."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(ADOPT_ORPHANS, 1, 0, 0, 0)


def end_with(lifeline: int, mark: str) -> None:
    """Wait until the grader closes the lifeline, or ends, and end everything.

    Parameters
    ----------
    lifeline : int
        Descriptor of the reading end of a pipe.
    mark : str
        Value of the environment variable `MARK`.
    """
    while os.read(lifeline, 1):
        pass
    end_relatives(os.getpid(), mark)
    os._exit(1)


def main(lifeline: int, mark: str, program: list[str]) -> None:
    """Run a program to its end, and exit as a shell does.

    The exit status is that of the program, or 128 and the number of the signal that ended it.

    Parameters
    ----------
    lifeline : int
        Descriptor of a pipe; when it is closed, everything ends.
    mark : str
        Value of `MARK` in the environment of what the program starts.
    program : list of str
        Path and arguments.
    """
    adopt_orphans()
    os.set_inheritable(lifeline, False)
    child = os.posix_spawn(program[0], program, os.environ)
    _thread.start_new_thread(end_with, (lifeline, mark))
    pid = 0
    status = 0
    while pid != child:
        pid, status = os.wait()
    end_relatives(os.getpid(), mark)
    code = os.waitstatus_to_exitcode(status)
    os._exit(code if code >= 0 else 128 - code)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3:])
