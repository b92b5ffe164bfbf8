"""Run an answer where no key can be imported: ``python alone.py NAME FILE SECONDS MEGABYTES``.

Arguments come as JSON on the standard input, what the answer returns goes out as JSON. This file
imports nothing of the course, and refuses to.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import Any

import numpy as np

COURSE = ("bbb_course", "bbb_studies")


class Refused(MetaPathFinder):
    """Finds nothing of the course."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> None:
        """Raise ImportError for its modules, and leave others to those who come after."""
        if fullname.split(".")[0] in COURSE:
            raise ImportError(f"an answer cannot import {fullname}")


def hide() -> None:
    """Let nothing that runs from now on in this process import the course."""
    sys.meta_path.insert(0, Refused())
    for name in [name for name in sys.modules if name.split(".")[0] in COURSE]:
        del sys.modules[name]


def limit(seconds: float, megabytes: int) -> None:
    """Limit this process: its time, memory, and the size of files that it writes."""
    try:
        import resource
    except ImportError:  # not on Windows: the time is limited by who started this process
        return
    signal.setitimer(signal.ITIMER_REAL, seconds)  # then it ends by SIGALRM
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000_000, 10_000_000))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            held = int(file.read().split()[0]) * resource.getpagesize()
        most = held + megabytes * 2**20
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    except (OSError, ValueError):  # no such limit on this system
        pass


def received(argument: Any) -> Any:
    """Return an argument: an array by its kind and numbers, a function by its source."""
    if isinstance(argument, dict) and "array" in argument:
        return np.array(argument["array"], argument["kind"])
    if isinstance(argument, dict):
        scope: dict[str, Any] = {"np": np, "Any": Any}
        exec(argument["source"], scope)
        return scope[argument["name"]]
    return argument


def plain(returned: Any) -> Any:
    """Return what JSON can hold of arrays, in tuples or alone."""
    if isinstance(returned, Sequence):
        return [plain(one) for one in returned]
    return np.asarray(returned, float).tolist()


def main(name: str, path: str, seconds: str, megabytes: str) -> None:
    """Read cases, run the answer on each, write what it returns."""
    out, cases = os.dup(1), json.load(sys.stdin)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what the answer prints
    hide()
    limit(float(seconds), int(megabytes))
    scope: dict[str, Any] = {"__name__": name, "__file__": path}
    exec(compile(Path(path).read_text(encoding="utf-8"), path, "exec"), scope)
    with np.errstate(all="ignore"):
        found = [plain(scope[name](*map(received, case))) for case in cases]
    with os.fdopen(out, "w") as pipe:
        pipe.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
