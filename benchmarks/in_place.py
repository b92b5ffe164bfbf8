"""Judge mutants inside the process that has collected the tests: the function's code is swapped.

One process imports everything and runs all tests once, noting which functions each of them calls
and how long it takes. A mutant of a function then costs a fork, in which the function gets the
changed code (all who imported it hold the same object), the exact proof, and the tests that call
it, the shortest first: 0.1 s for most, where a new import and a module's tests take seconds.

It cannot judge what is done once, when modules are imported: constants, the bodies of classes, and
functions that are called then. Of these a mutant that nothing here noticed is asked about again, by
`mutation`, in a process that has never seen the original.
"""

from __future__ import annotations

import ast
import functools
import gc
import inspect
import multiprocessing
import os
import sys
import threading
import time
import types
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.mutants import Mutant, keyed
from benchmarks.oracles import (
    PROOF,
    PYTEST,
    STOPPED,
    SURVIVED,
    TESTS,
    Combinations,
    in_a_fork,
    proved,
    tree_of,
)  # fmt: skip

__all__ = ["NOT_IN_PLACE", "Answers", "functions_of", "swap"]

NOT_IN_PLACE = 13  # a mutant that cannot be judged in place


Place = tuple[str, str, int]  # a function: its file, its name, its line


def place_of(code: types.CodeType) -> Place:
    """Return where the function of a code object is defined."""
    return code.co_filename, code.co_qualname, code.co_firstlineno


class Calls:
    """Notes which functions of files below one of `home` are called, in any thread."""

    def __init__(self, home: tuple[str, ...]) -> None:
        self.home = home

    def start(self) -> None:
        """Start to note calls, from an empty set."""
        codes = self.codes = set[types.CodeType]()

        def note(frame: types.FrameType, event: str, _: Any) -> None:
            if event == "call":
                codes.add(frame.f_code)

        threading.setprofile(note)
        sys.setprofile(note)

    def stop(self) -> set[Place]:
        """Stop, and return the functions that were called."""
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
        return {place_of(code) for code in self.codes if code.co_filename.startswith(self.home)}


def changes(
    original: types.CodeType, changed: types.CodeType
) -> Iterator[tuple[types.CodeType, types.CodeType]]:
    """Yield the pairs of code that differ, from the whole to the smallest part of it."""
    yield original, changed
    pairs = list(zip(original.co_consts, changed.co_consts, strict=False))
    inside = [(old, new) for old, new in pairs if isinstance(new, types.CodeType) and old != new]
    constants = (new if isinstance(new, types.CodeType) else old for old, new in pairs)
    if len(inside) == 1 and original.replace(co_consts=tuple(constants)) == changed:
        yield from changes(*inside[0])


def functions_of(home: tuple[str, ...]) -> dict[types.CodeType, list[types.FunctionType]]:
    """Return all functions that there are, by their code: also lambdas, closures and methods."""
    functions: dict[types.CodeType, list[types.FunctionType]] = {}
    for obj in gc.get_objects():
        if type(obj) is types.FunctionType and obj.__code__.co_filename.startswith(home):
            functions.setdefault(obj.__code__, []).append(obj)
    return functions


def swap(
    mutant: Mutant,
    path: Path,
    tree: ast.Module,
    functions: dict[types.CodeType, list[types.FunctionType]],
) -> Place | None:
    """Give functions the code of the changed tree; None where a module or a class changes.

    Returns the place of the innermost function that changes. Those around it get theirs too: they
    make it anew.
    """
    original = compile(tree, str(path), "exec", dont_inherit=True)
    mutant.apply()
    changed = compile(ast.fix_missing_locations(tree), str(path), "exec", dont_inherit=True)
    _, *pairs = changes(original, changed)
    if not pairs or not pairs[-1][0].co_flags & inspect.CO_OPTIMIZED:
        return None  # computed once: constants, defaults, the bodies of classes
    if any(old.co_freevars != new.co_freevars for old, new in pairs):
        return None
    for old, new in pairs:
        for function in functions.get(old, ()):
            function.__code__ = new
    return place_of(pairs[-1][0])


def passes(item: pytest.Function) -> bool:
    """Run one test, with all its fixtures and filters of warnings; return whether none failed."""
    item._initrequest()
    failed = item.session.testsfailed
    item.ihook.pytest_runtest_protocol(item=item, nextitem=None)
    return item.session.testsfailed == failed


class Judge:
    """A plugin of pytest that runs no tests of its own accord, but answers about mutants."""

    def __init__(self, connection: Any, home: tuple[str, ...]) -> None:
        self.connection = connection
        self.calls = Calls(home)
        self.calls.start()  # all that comes before the tests is done once, at import
        self.tests: dict[Place, list[tuple[float, pytest.Function]]] = {}

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run every test once, and alone, then answer until there is no question."""
        self.at_import = self.calls.stop()
        gc.unfreeze()  # tests/conftest.py hides what was there before them
        objects = gc.get_objects()
        self.functions = functions_of(self.calls.home)
        # by type(): isinstance asks an object for its __class__, and deprecated ones warn then
        self.caches = [obj for obj in objects if type(obj) is functools._lru_cache_wrapper]
        gc.freeze()  # or each fork would copy what its collector touches
        usable = 0
        for item in session.items:
            start_time = time.process_time()
            self.calls.start()
            is_passed = passes(item)
            functions = self.calls.stop()
            seconds = time.process_time() - start_time
            # what fails alone, without any change, can judge nothing
            if (
                not is_passed
                or self.alone(lambda item=item: (SURVIVED, passes(item)), 600)[1] is not True
            ):
                continue
            usable += 1
            for function in functions:
                self.tests.setdefault(function, []).append((seconds, item))
        self.connection.send((len(session.items), usable))
        while (question := self.connection.recv()) is not None:
            method, *arguments = question
            self.connection.send(getattr(self, method)(*arguments))
        return True

    def chosen(self, function: Place, mirror: str, max_seconds: float) -> list[pytest.Function]:
        """Choose tests that call a function: the module's own first, then the shortest."""
        candidates = sorted(
            self.tests.get(function, ()),
            key=lambda candidate: (mirror not in candidate[1].nodeid, candidate[0]),
        )
        totals = np.cumsum([seconds for seconds, _ in candidates])
        return [
            item for (_, item), total in zip(candidates, totals, strict=True) if total < max_seconds
        ]

    def alone(self, work: Any, max_seconds: float) -> tuple[int | None, Any]:
        """Run `work` in a fork that remembers nothing of what the original computed."""

        def forgetful() -> Any:
            for cache in self.caches:
                cache.cache_clear()
            return work()

        return in_a_fork(forgetful, 15 + 2 * round(max_seconds))

    def fate(
        self, module: str, key: str, proofs: Combinations, max_seconds: float
    ) -> tuple[int, None]:
        """Change this process; return which oracle notices, or NOT_IN_PLACE."""
        path, tree = tree_of(module)
        function = swap(keyed(tree)[key], path, tree, self.functions)
        if function is None:
            return NOT_IN_PLACE, None
        try:
            if proofs and not proved(proofs):
                return PROOF, None
        except Exception:
            return PROOF, None
        folder, _, name = module.rpartition("/")
        if not all(map(passes, self.chosen(function, f"{folder}/test_{name}.py", max_seconds))):
            return TESTS, None
        is_judged_here = function not in self.at_import and function in self.tests
        return SURVIVED if is_judged_here else NOT_IN_PLACE, None

    def failing(self, module: str, key: str, max_seconds: float) -> tuple[int, list[str]]:
        """Change this process; return the names of all tests that notice.

        The exact proof is one of them. The list is empty where nothing notices, or where the mutant
        cannot be judged in place.
        """
        path, tree = tree_of(module)
        function = swap(keyed(tree)[key], path, tree, self.functions)
        if function is None:
            return NOT_IN_PLACE, []
        tests = self.chosen(function, "", max_seconds)
        return TESTS, [item.nodeid for item in tests if not passes(item)]

    def killers(self, module: str, keys: Sequence[str], max_seconds: float) -> dict[str, list[str]]:
        """Return for each mutant of a module all tests that fail, each asked in a fork."""
        names = {}
        for key in keys:
            work = functools.partial(self.failing, module, key, max_seconds)
            _, names[key] = self.alone(work, max_seconds)
        return {key: failing for key, failing in names.items() if failing}

    def fates(
        self, module: str, proofs_by_key: dict[str, Combinations], max_seconds: float
    ) -> dict[str, int]:
        """Return the fate of mutants of a module."""
        statuses = {}
        for key, proofs in proofs_by_key.items():
            status, _ = self.alone(
                functools.partial(self.fate, module, key, proofs, max_seconds), max_seconds
            )
            statuses[key] = {None: STOPPED, 1: NOT_IN_PLACE}.get(status, status)  # 1: it raised
        return statuses


class Answers:
    """A process that has collected `tests`, and answers about mutants."""

    def __init__(self, tests: Sequence[str], home: tuple[str, ...]) -> None:
        context = multiprocessing.get_context("fork")
        self.connection, their_end = context.Pipe()
        self.process = context.Process(
            target=self.serve, args=(self.connection, their_end, tests, home)
        )
        self.process.start()
        their_end.close()  # or `recv` would wait for ever for a process that was killed
        self.collected, self.usable = self.connection.recv()

    @staticmethod
    def serve(
        parent_end: Any, connection: Any, tests: Sequence[str], home: tuple[str, ...]
    ) -> None:
        """Import, collect, and answer."""
        parent_end.close()  # so that this process ends with theirs
        devnull = os.open(os.devnull, os.O_WRONLY)
        os.dup2(devnull, 1)
        os.dup2(devnull, 2)
        pytest.main([*PYTEST, "-s", *tests], plugins=[Judge(connection, home)])

    def ask(self, *arguments: Any) -> dict[str, int]:
        """Return the fate of each mutant of a module: `Judge.fates`."""
        fates: dict[str, int] = self._answer("fates", *arguments)
        return fates

    def killers(self, *arguments: Any) -> dict[str, list[str]]:
        """Return all tests that notice each mutant of a module: `Judge.killers`."""
        names: dict[str, list[str]] = self._answer("killers", *arguments)
        return names

    def _answer(self, *question: Any) -> Any:
        """Ask the process a question, and return its answer.

        Raises
        ------
        EOFError, ConnectionError
            If the process has died.
        """
        self.connection.send(question)
        return self.connection.recv()

    def close(self) -> None:
        """End the process."""
        self.connection.send(None)
        self.process.join()
