"""Run an answer where there is no key: ``python alone.py NAME FILE SECONDS MEGABYTES``.

It is called by messages, one a line in JSON: arguments come on the standard input, what it returns
goes out on the standard output. Functions among the arguments stay where they are, and are called
by messages too. This file imports nothing of the course, and refuses to.
"""

from __future__ import annotations

import base64
import contextlib
import json
import linecache
import os
import re
import signal
import sys
import sysconfig
import traceback
from collections.abc import Callable, Mapping, Sequence, Set
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).resolve().parent
COURSE = ("bbb_course", "bbb_studies")
CLOSED = tuple(str(FOLDER.parent / name) + os.sep for name in COURSE)
# Files whose lines are not the answer's: of libraries, and those that call it
NOT_ITS_OWN = (
    "<frozen",
    str(Path(np.__path__[0]).parent),
    *(
        sysconfig.get_path(name)
        for name in ("stdlib", "platstdlib", "purelib", "platlib")
    ),
    *(str(Path(__file__).with_name(name)) for name in ("alone.py", "exercise.py")),
)
MAX_LETTERS = 500  # of what an error says
NUMBERS = re.compile(r"[<>|=]?[biufc]\d+")


class Unusable(Exception):
    """The answer cannot be graded, and why."""


# --- what an answer may not have


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


def close_files(own: Path) -> None:
    """Let nothing that runs from now on in this process open the course's files but its own."""
    opened = os.path.realpath(own)

    def refuse(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and isinstance(arguments[0], str | bytes):
            path = os.path.realpath(os.fsdecode(arguments[0]))
            if path.startswith(CLOSED) and path != opened:
                raise PermissionError("an answer cannot read the course's files")

    sys.addaudithook(refuse)  # which nobody can take away


def limit(seconds: float, megabytes: int) -> None:
    """Limit this process: its time, memory, and the size of files that it writes."""
    try:
        import resource
    except (
        ImportError
    ):  # not on Windows: the time is limited by who started this process
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


def take_channels() -> tuple[int, int]:
    """Return descriptors of the standard input and output, which are others from now on.

    Nothing can be read any more, and what is printed goes to the standard error, line by line.
    """
    requests, replies = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    return requests, replies


# --- an answer and its errors


def define(name: str, path: Path) -> Any:
    """Run a file and return what it defines under this name."""
    scope: dict[str, Any] = {"__name__": name, "__file__": str(path)}
    try:
        text = path.read_text(encoding="utf-8")
        linecache.cache[str(path)] = (
            len(text),
            None,
            text.splitlines(keepends=True),
            str(path),
        )
        exec(compile(text, str(path), "exec"), scope)
    except (NotImplementedError, MemoryError):
        raise
    except SyntaxError as error:
        raise Unusable(f"line {error.lineno}: {error.msg}") from None
    except Exception as error:
        says = f"{type(error).__name__}: {error}{_advice(error, path.parent)}"
        raise Unusable(f"it cannot be imported: {says}") from None
    if name not in scope:
        raise Unusable(f"it does not define {name}")
    return scope[name]


def describe(error: BaseException) -> str:
    """Return what an answer raises, and in which of its lines."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not frame.filename.startswith(NOT_ITS_OWN)]
    place = "".join(
        f" in line {one.lineno}, `{one.line}`" for one in own[-1:] if one.line
    )
    folder = Path(own[-1].filename).parent if own else Path()
    says = f"{error}"[:MAX_LETTERS]
    return f"it raises {type(error).__name__}{place}: {says}{_advice(error, folder)}"


def _advice(error: BaseException, folder: Path) -> str:
    """Return what to do about a module that was not found; '' for other errors."""
    if not isinstance(error, ModuleNotFoundError) or error.name is None:
        return ""
    name = error.name.partition(".")[0]
    siblings = (
        one for one in folder.glob("*") if one.stem.lstrip("0123456789_") == name
    )
    sibling = next(siblings, None)
    if sibling is None:
        return "; all exercises can be answered with NumPy and Python's own modules"
    return (
        f"; each answer is graded alone, without {sibling.name} beside it: copy what it needs "
        "into its file"
    )


# --- messages


def encode(value: Any, functions: list[Callable[..., Any]] | None = None) -> Any:
    """Return a value as JSON can hold it; its functions are appended to a list, if there is one."""
    if isinstance(value, complex | np.ndarray | np.generic):
        array = np.asarray(value)
        if not NUMBERS.fullmatch(array.dtype.str):
            return encode(array.tolist(), functions)
        data = base64.b64encode(array.tobytes()).decode()
        return {"dtype": array.dtype.str, "shape": array.shape, "data": data}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Mapping):
        pairs = [[encode(one, functions) for one in pair] for pair in value.items()]
        return {"pairs": pairs}
    if isinstance(value, Sequence | Set):
        items = [encode(one, functions) for one in value]
        return {"tuple": items} if isinstance(value, tuple) else items
    if callable(value) and functions is not None:
        functions.append(value)
        return {"function": len(functions) - 1}
    if hasattr(value, "__array__"):
        return encode(np.asarray(value), functions)
    raise Unusable(f"it returns what is no number: {type(value).__name__}")


def decode(value: Any, function: Callable[[int], Any] | None = None) -> Any:
    """Return what was encoded; ValueError, TypeError or KeyError if nothing was."""
    if isinstance(value, list):
        return [decode(one, function) for one in value]
    if not isinstance(value, dict):
        return value
    if "dtype" in value:
        if not NUMBERS.fullmatch(value["dtype"]):
            raise ValueError("no numbers")
        data = base64.b64decode(value["data"])
        return np.frombuffer(data, value["dtype"]).reshape(value["shape"]).copy()[()]
    if "pairs" in value:
        return {decode(key): decode(one, function) for key, one in value["pairs"]}
    if "tuple" in value:
        return tuple(decode(one, function) for one in value["tuple"])
    if function is None:
        raise ValueError("no function")
    return function(value["function"])


def said_of(error: BaseException) -> dict[str, str]:
    """Return the message about an error of an answer."""
    for kind in (NotImplementedError, MemoryError, SystemExit):
        if isinstance(error, kind):
            return {"raised": kind.__name__}
    if isinstance(error, Unusable):
        return {"raised": "Unusable", "says": str(error)}
    return {"raised": "Exception", "says": describe(error)}


def serve(name: str, path: Path, requests: int, replies: int) -> None:
    """Run the file, say that it is there, and call what it defines as often as it is asked."""
    stream = os.fdopen(requests, "rb")

    def send(message: dict[str, Any]) -> None:
        with contextlib.suppress(Exception):  # an answer may have closed it
            sys.stdout.flush()
        line = json.dumps(message).encode() + b"\n"
        while line:
            line = line[os.write(replies, line) :]

    def function(index: int) -> Callable[..., Any]:
        def called(*arguments: Any) -> Any:
            send({"call": index, "arguments": encode(arguments)})
            reply = json.loads(stream.readline())
            if "raised" in reply:
                raise RuntimeError(reply["raised"])
            return decode(reply["returned"])

        return called

    try:
        answer = define(name, path)
        send({"callable": True} if callable(answer) else {"value": encode(answer)})
    except BaseException as error:
        send(said_of(error))
    for line in stream:
        try:
            arguments = decode(json.loads(line), function)
            with np.errstate(all="ignore"):
                returned = answer(*arguments)
            message = {"returned": encode(returned)}
        except BaseException as error:
            message = said_of(error)
        send(message)


def main(name: str, path: str, seconds: str, megabytes: str) -> None:
    """Serve an answer within its limits."""
    requests, replies = take_channels()
    sys.path[:] = [
        place for place in sys.path if os.path.realpath(place) != str(FOLDER)
    ]
    hide()
    limit(float(seconds), int(megabytes))
    close_files(Path(path))
    serve(name, Path(path), requests, replies)


if __name__ == "__main__":
    main(*sys.argv[1:])
