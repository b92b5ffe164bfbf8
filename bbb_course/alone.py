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
# Files of libraries, and those that call the answer: their lines are not the answer's
LIBRARY_PREFIXES = (
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
    """An import hook that refuses the modules of the course."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> None:
        """Raise ImportError for modules of the course; leave others to the next finder.

        Parameters
        ----------
        fullname : str
            Name of the module, with its packages.
        path, target
            As the import system passes them; not used.

        Raises
        ------
        ImportError
            If the module belongs to the course.
        """
        if fullname.split(".")[0] in COURSE:
            raise ImportError(f"an answer cannot import {fullname}")


def hide() -> None:
    """Refuse every import of the course from now on in this process."""
    sys.meta_path.insert(0, Refused())
    for name in [name for name in sys.modules if name.split(".")[0] in COURSE]:
        del sys.modules[name]


def close_files(answer_file: Path) -> None:
    """Refuse to open the course's files from now on in this process, except the answer's own."""
    opened = os.path.realpath(answer_file)

    def refuse(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and isinstance(arguments[0], str | bytes):
            path = os.path.realpath(os.fsdecode(arguments[0]))
            if path.startswith(CLOSED) and path != opened:
                raise PermissionError("an answer cannot read the course's files")

    sys.addaudithook(refuse)  # which nobody can take away


def limit(seconds: float, megabytes: int) -> None:
    """Limit this process: its time, memory, and the size of files that it writes.

    Parameters
    ----------
    seconds : float
        Until it is ended by SIGALRM.
    megabytes : int
        Beyond what it holds now, where the system can limit memory.
    """
    try:
        import resource
    except ImportError:  # on Windows whoever started this process limits the time
        return
    signal.setitimer(signal.ITIMER_REAL, seconds)  # then it ends by SIGALRM
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000_000, 10_000_000))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            n_bytes_in_use = int(file.read().split()[0]) * resource.getpagesize()
        max_bytes = n_bytes_in_use + megabytes * 2**20
        resource.setrlimit(resource.RLIMIT_AS, (max_bytes, max_bytes))
    except (OSError, ValueError):  # no such limit on this system
        pass


def take_channels() -> tuple[int, int]:
    """Return copies of the descriptors of standard input and output, which are replaced.

    From now on the standard input is empty, and prints go to the standard error, line by line.
    """
    requests = os.dup(0)
    replies = os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    return requests, replies


# --- an answer and its errors


def define(name: str, path: Path) -> Any:
    """Run a file and return what it defines under a name.

    Parameters
    ----------
    name : str
        Name of the exercise.
    path : Path
        File of the answer.

    Raises
    ------
    Unusable
        If the file raises, or does not define the name.
    """
    scope: dict[str, Any] = {"__name__": name, "__file__": str(path)}
    try:
        text = path.read_text(encoding="utf-8-sig")  # some editors write its mark
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
        message = f"{type(error).__name__}: {error}{_advice(error, path.parent)}"
        raise Unusable(f"it cannot be imported: {message}") from None
    if name not in scope:
        raise Unusable(f"it does not define {name}")
    return scope[name]


def describe(error: BaseException) -> str:
    """Return a sentence with the error of an answer, and in which of its lines it was raised."""
    frames = traceback.extract_tb(error.__traceback__)
    frames_of_answer = [
        frame for frame in frames if not frame.filename.startswith(LIBRARY_PREFIXES)
    ]
    location = "".join(
        f" in line {last_frame.lineno}, `{last_frame.line}`"
        for last_frame in frames_of_answer[-1:]
        if last_frame.line
    )
    folder = Path(frames_of_answer[-1].filename).parent if frames_of_answer else Path()
    message = f"{error}"[:MAX_LETTERS]
    return (
        f"it raises {type(error).__name__}{location}: {message}{_advice(error, folder)}"
    )


def _advice(error: BaseException, folder: Path) -> str:
    """Return what to do about a module that is missing; '' for other errors."""
    if not isinstance(error, ModuleNotFoundError) or error.name is None:
        return ""
    name = error.name.partition(".")[0]
    siblings = (
        file for file in folder.glob("*") if file.stem.lstrip("0123456789_") == name
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
    """Return a value in a form that JSON can hold; `decode` undoes it.

    Parameters
    ----------
    value : Any
        Numbers, text, arrays, and collections of them.
    functions : list of callable, optional
        Functions in `value` are appended to it, and stand as their number.

    Raises
    ------
    Unusable
        If it holds anything else.
    """
    if isinstance(value, complex | np.ndarray | np.generic):
        array = np.asarray(value)
        if not NUMBERS.fullmatch(array.dtype.str):
            return encode(array.tolist(), functions)
        data = base64.b64encode(array.tobytes()).decode()
        return {"dtype": array.dtype.str, "shape": array.shape, "data": data}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Mapping):
        pairs = [[encode(item, functions) for item in pair] for pair in value.items()]
        return {"pairs": pairs}
    if isinstance(value, Sequence | Set):
        items = [encode(item, functions) for item in value]
        if isinstance(value, tuple):
            return {"tuple": items}
        return items
    if callable(value) and functions is not None:
        functions.append(value)
        return {"function": len(functions) - 1}
    if hasattr(value, "__array__"):
        return encode(np.asarray(value), functions)
    raise Unusable(f"it returns what is no number: {type(value).__name__}")


def decode(value: Any, function: Callable[[int], Any] | None = None) -> Any:
    """Return the value that `encode` made a message of.

    Parameters
    ----------
    value : Any
        What was read of JSON.
    function : callable, optional
        Makes a function of its number.

    Raises
    ------
    ValueError, TypeError or KeyError
        If `encode` did not make it.
    """
    if isinstance(value, list):
        return [decode(item, function) for item in value]
    if not isinstance(value, dict):
        return value
    if "dtype" in value:
        if not NUMBERS.fullmatch(value["dtype"]):
            raise ValueError("no numbers")
        data = base64.b64decode(value["data"])
        return np.frombuffer(data, value["dtype"]).reshape(value["shape"]).copy()[()]
    if "pairs" in value:
        return {decode(key): decode(item, function) for key, item in value["pairs"]}
    if "tuple" in value:
        return tuple(decode(item, function) for item in value["tuple"])
    if function is None:
        raise ValueError("no function")
    return function(value["function"])


def error_message(error: BaseException) -> dict[str, str]:
    """Return the message that tells the grader of an error of an answer."""
    for error_type in (NotImplementedError, MemoryError, SystemExit):
        if isinstance(error, error_type):
            return {"raised": error_type.__name__}
    if isinstance(error, Unusable):
        return {"raised": "Unusable", "says": str(error)}
    return {"raised": "Exception", "says": describe(error)}


def serve(name: str, path: Path, requests: int, replies: int) -> None:
    """Run an answer's file, and call what it defines for every request.

    Parameters
    ----------
    name : str
        Name of the exercise.
    path : Path
        File of the answer.
    requests, replies : int
        Descriptors from which requests are read and to which replies are written.
    """
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
        if callable(answer):
            send({"callable": True})
        else:
            send({"value": encode(answer)})
    except BaseException as error:
        send(error_message(error))
    for line in stream:
        try:
            arguments = decode(json.loads(line), function)
            with np.errstate(all="ignore"):
                returned = answer(*arguments)
            message = {"returned": encode(returned)}
        except BaseException as error:
            message = error_message(error)
        send(message)


def main(name: str, path: str, seconds: str, megabytes: str) -> None:
    """Serve an answer within its limits.

    The arguments are strings, as they come from the command line.

    Parameters
    ----------
    name : str
        Name of the exercise.
    path : str
        File of the answer.
    seconds : str
        Time limit in seconds; a real number.
    megabytes : str
        Memory limit in megabytes beyond what this process holds; a whole number.
    """
    requests, replies = take_channels()
    sys.path[:] = [
        folder for folder in sys.path if os.path.realpath(folder) != str(FOLDER)
    ]
    hide()
    limit(float(seconds), int(megabytes))
    close_files(Path(path))
    serve(name, Path(path), requests, replies)


if __name__ == "__main__":
    main(*sys.argv[1:])
