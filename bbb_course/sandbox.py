"""Grade files in processes of their own, with limits of time and memory.

An answer is code that is run. What it says of itself is believed where it fails. That it passes is
found out in this process, which runs none of it: it asks another process, where there is no key,
for the answer's numbers, and compares them here. The limits are against accidents, an endless loop
or an array of a terabyte; they are no jail: what a stranger sent belongs into a container.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from bbb_studies.threads import ONE_THREAD

from . import alone
from .exercise import VERDICTS, Exercise, Finding, Formula, Raised, Unusable, Verdict
from .judging import judge, right_in_floats
from .keys import find, name_of
from .processes import Ended, Process, printable
from .variants import find_variant, n_variants, seed_of

__all__ = ["grade_file", "grade_files", "work"]

WORK = [sys.executable, "-c", "from bbb_course.sandbox import work; work()"]
RAISED = {"NotImplementedError": NotImplementedError, "MemoryError": MemoryError}
# A function of the grader, which an answer calls, runs here without a limit of time
MAX_NUMBERS = 4096
NO_MESSAGE = "it writes what is no message where its answer is read"


def grade_files(
    paths: Sequence[Path],
    seconds: float = 20.0,
    megabytes: int = 1024,
    variant: str = "",
) -> Iterator[Verdict]:
    """Grade files, each in processes of its own, and yield the verdicts in order.

    Parameters
    ----------
    paths : sequence of Path
        Files named as their exercises.
    seconds : float
        Time limit of each; exercises that run an answer often multiply it (`Exercise.patience`).
    megabytes : int
        Memory limit of each, beyond what the grader itself holds, where the system has one.
    variant : str
        Seed of the variants that are graded: an answer to another one, or to the exercise of
        the book, does not pass. By default each file is graded as the variant that it names.

    Yields
    ------
    Verdict
    """
    running: set[Process] = set()

    def graded(path: Path) -> Verdict:
        start = time.monotonic()
        name = name_of(path)
        seed = seed_of(path)
        if variant and n_variants(name) and seed != variant:
            verdict = Verdict(name, False, "unusable", _of_another(seed, variant))
        else:
            limit = seconds * find(name).patience
            seed = seed if n_variants(name) else ""
            verdict = _graded(path, seed, limit, megabytes, running)
        return replace(verdict, variant=seed, seconds=time.monotonic() - start)

    pool = ThreadPoolExecutor(os.cpu_count())
    try:
        yield from pool.map(graded, paths)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        for process in [*running]:
            process.end()


def _of_another(seed: str, variant: str) -> str:
    """Return the sentence about a file of another variant than the one that is graded."""
    named = (
        f"its statement is that of variant {seed}" if seed else "it names no variant"
    )
    return (
        f"{named}, and variant {variant} is graded; `bbb-numpy grade --copy FOLDER --variant "
        f"{variant}` writes that"
    )


def _graded(
    path: Path, seed: str, seconds: float, megabytes: int, running: set[Process]
) -> Verdict:
    """Return the verdict on a file, whose name is that of its exercise."""
    exercise = find_variant(name_of(path), seed)
    limits = [str(path), f"{seconds}", f"{megabytes}"]

    def run(command: list[str], verdict_of: Callable[[Process], Verdict]) -> Verdict:
        with Process([*command, *limits], seconds, _environment()) as process:
            running.add(process)
            try:
                verdict = _verdict_or_reason(exercise.name, lambda: verdict_of(process))
            finally:
                process.end()
                running.remove(process)
        return replace(verdict, printed=process.last_lines)

    answer_alone = [sys.executable, alone.__file__, exercise.name]
    if not isinstance(exercise, Formula):
        return run(
            answer_alone, lambda process: judge(exercise.name, _answer_of(process))
        )
    verdict = run(
        [*WORK, seed], lambda process: _verdict_of(exercise, process.receive())
    )
    if not verdict.passed:
        return verdict

    def compare_in_floats(process: Process) -> Verdict:
        if right_in_floats(exercise, _answer_of(process)):
            return verdict
        head = "it is right only where there is a key"
        return Verdict(exercise.name, False, "stopped", head)

    return run(answer_alone, compare_in_floats)


def _environment() -> dict[str, str]:
    # the process imports the same package, installed or not
    root = str(Path(__file__).resolve().parents[1])
    search_path = os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**ONE_THREAD, "PYTHONPATH": search_path}


def _verdict_of(exercise: Exercise, line: bytes) -> Verdict:
    """Return the verdict that a process wrote, which the answer may have written itself."""
    try:
        fields = _printable(json.loads(line))
        verdict = Verdict(
            exercise.name,
            {True: True, False: False}[fields["passed"]],
            VERDICTS[VERDICTS.index(fields["verdict"])],
            str(fields["headline"]),
            tuple(
                Finding(str(finding["block"]), str(finding["says"]))
                for finding in fields["findings"]
            ),
            {str(block): dict(case) for block, case in fields["cases"].items()},
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise Ended(NO_MESSAGE) from None
    return verdict


def _printable(value: Any) -> Any:
    """Return what was read of JSON without characters that a terminal would obey."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        return {printable(key): _printable(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_printable(item) for item in value]
    return value


# --- an answer in another process


def _answer_of(process: Process) -> Any:
    """Return what a process serves: a function that asks it, or a table."""
    message = _message(process)
    if not message.get("callable"):
        return _decoded(message, "value")

    def answer(*arguments: Any) -> Any:
        functions: list[Callable[..., Any]] = []
        _send(process, alone.encode(arguments, functions))
        while "call" in (message := _message(process)):
            _send(process, _called(functions, message))
        return _decoded(message, "returned")

    return answer


def _send(process: Process, message: Any) -> None:
    process.send(json.dumps(message).encode())


def _message(process: Process) -> dict[str, Any]:
    """Return the next message of a process, or raise what it says that its answer raised."""
    try:
        message = json.loads(process.receive())
    except (ValueError, RecursionError):
        raise Ended(NO_MESSAGE) from None
    if not isinstance(message, dict):
        raise Ended(NO_MESSAGE)
    if "raised" not in message:
        return message
    error_name = message["raised"]
    text = printable(f"{message.get('says')}")
    if error_name == "SystemExit":
        raise SystemExit
    if error_name in ("NotImplementedError", "MemoryError"):
        raise RAISED[error_name]
    if error_name == "Unusable":
        raise Unusable(text)
    raise Raised(text)


def _decoded(message: dict[str, Any], key: str) -> Any:
    try:
        return alone.decode(message[key])
    except (
        ValueError,
        TypeError,
        KeyError,
        AttributeError,
        RecursionError,
        MemoryError,
    ):
        raise Ended(NO_MESSAGE) from None


def _called(
    functions: Sequence[Callable[..., Any]], message: dict[str, Any]
) -> dict[str, Any]:
    """Call a function among the answer's arguments, and return the message of what it returns."""
    arguments = _decoded(message, "arguments")
    try:
        if sum(map(np.size, arguments)) > MAX_NUMBERS:
            raise ValueError(f"it is called with more than {MAX_NUMBERS} numbers")
        return {"returned": alone.encode(functions[message["call"]](*arguments))}
    except Exception as error:  # the answer called it wrongly, and is told
        return {"raised": f"{type(error).__name__}: {error}"}


# --- in the process of an answer


def work() -> None:
    """Grade the file of the command line within its limits, and print the verdict as JSON."""
    seed, path, seconds, megabytes = sys.argv[1:]
    _, replies = alone.take_channels()
    alone.limit(float(seconds), int(megabytes))
    try:
        find_variant(name_of(Path(path)), seed)  # all keys are there
        alone.hide()
        verdict = grade_file(Path(path), seed)
    except BaseException as error:  # of the grader, or one that nobody expects
        headline = f"grading it failed: {type(error).__name__}: {error}"
        verdict = Verdict(name_of(Path(path)), False, "stopped", headline)
    sys.stdout.flush()
    os.write(replies, json.dumps(verdict.as_dict()).encode() + b"\n")


def grade_file(path: Path, variant: str = "") -> Verdict:
    """Grade one file in this process, without limits: a function, or a table, of its name.

    Parameters
    ----------
    path : Path
        File named as its exercise.
    variant : str
        Seed of the variant that it answers; '' for the exercise of the book.
    """
    name = name_of(path)
    find(name)
    return _verdict_or_reason(
        name, lambda: judge(name, alone.define(name, path), variant)
    )


def _verdict_or_reason(name: str, verdict_of: Callable[[], Verdict]) -> Verdict:
    """Return a verdict, or one that says why there is none."""
    try:
        return verdict_of()
    except NotImplementedError:
        return Verdict(name, False, "not answered", "it is not answered yet")
    except (Unusable, Raised) as error:
        return Verdict(name, False, "unusable", str(error))
    except Ended as error:
        return Verdict(name, False, "stopped", str(error))
    except MemoryError:
        return Verdict(name, False, "stopped", "it needs more memory than the limit")
    except SystemExit:
        return Verdict(name, False, "stopped", "it ends its process: leave out exit()")
    except Exception as error:  # what it returned cannot be judged
        headline = f"grading it failed: {type(error).__name__}: {error}"
        return Verdict(name, False, "stopped", headline)
