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

__all__ = ["NOT_HERE", "Answers", "functions_of", "swap"]

NOT_HERE = 13  # a mutant that cannot be judged in place


Place = tuple[str, str, int]  # a function: its file, its name, its line


def place_of(code: types.CodeType) -> Place:
    """Return where some code stands."""
    return code.co_filename, code.co_qualname, code.co_firstlineno


class Calls:
    """Notes which functions of files below one of `home` are called, in any thread."""

    def __init__(self, home: tuple[str, ...]) -> None:
        self.home = home

    def start(self) -> None:
        """Begin, with none."""
        codes = self.codes = set[types.CodeType]()

        def note(frame: types.FrameType, event: str, _: Any) -> None:
            if event == "call":
                codes.add(frame.f_code)

        threading.setprofile(note)
        sys.setprofile(note)

    def stop(self) -> set[Place]:
        """End, and return what was called."""
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
        return {place_of(code) for code in self.codes if code.co_filename.startswith(self.home)}


def changes(
    before: types.CodeType, after: types.CodeType
) -> Iterator[tuple[types.CodeType, types.CodeType]]:
    """Yield the pairs of code that differ, from the whole to the smallest part of it."""
    yield before, after
    pairs = list(zip(before.co_consts, after.co_consts, strict=False))
    inside = [(old, new) for old, new in pairs if isinstance(new, types.CodeType) and old != new]
    own = (new if isinstance(new, types.CodeType) else old for old, new in pairs)
    if len(inside) == 1 and before.replace(co_consts=tuple(own)) == after:
        yield from changes(*inside[0])


def functions_of(home: tuple[str, ...]) -> dict[types.CodeType, list[types.FunctionType]]:
    """Return all functions that there are, by their code: also lambdas, closures and methods."""
    found: dict[types.CodeType, list[types.FunctionType]] = {}
    for one in gc.get_objects():
        if isinstance(one, types.FunctionType) and one.__code__.co_filename.startswith(home):
            found.setdefault(one.__code__, []).append(one)
    return found


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
    before = compile(tree, str(path), "exec", dont_inherit=True)
    mutant.apply()
    after = compile(ast.fix_missing_locations(tree), str(path), "exec", dont_inherit=True)
    _, *pairs = changes(before, after)
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
        self.connection, self.calls = connection, Calls(home)
        self.calls.start()  # all that comes before the tests is done once, at import
        self.tests: dict[Place, list[tuple[float, pytest.Function]]] = {}

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run every test once, and alone, then answer until there is no question."""
        self.at_import = self.calls.stop()
        gc.unfreeze()  # tests/conftest.py hides what was there before them
        objects = gc.get_objects()
        self.functions = functions_of(self.calls.home)
        self.caches = [one for one in objects if isinstance(one, functools._lru_cache_wrapper)]
        gc.freeze()  # or each fork would copy what its collector touches
        usable = 0
        for item in session.items:
            began = time.process_time()
            self.calls.start()
            fine = passes(item)
            functions, seconds = self.calls.stop(), time.process_time() - began
            # what fails alone, without any change, can judge nothing
            if (
                not fine
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

    def chosen(self, function: Place, mirror: str, most: float) -> list[pytest.Function]:
        """Choose tests that call a function: the module's own first, then the shortest."""
        known = sorted(
            self.tests.get(function, ()), key=lambda one: (mirror not in one[1].nodeid, one[0])
        )
        totals = np.cumsum([seconds for seconds, _ in known])
        return [item for (_, item), total in zip(known, totals, strict=True) if total < most]

    def alone(self, work: Any, most: float) -> tuple[int | None, Any]:
        """Run `work` in a fork that remembers nothing of what the original computed."""

        def forgetful() -> Any:
            for cache in self.caches:
                cache.cache_clear()
            return work()

        return in_a_fork(forgetful, 15 + 2 * round(most))

    def fate(self, module: str, key: str, proofs: Combinations, most: float) -> tuple[int, None]:
        """Change this process; return which oracle notices, or NOT_HERE."""
        path, tree = tree_of(module)
        function = swap(keyed(tree)[key], path, tree, self.functions)
        if function is None:
            return NOT_HERE, None
        try:
            if proofs and not proved(proofs):
                return PROOF, None
        except Exception:
            return PROOF, None
        folder, _, name = module.rpartition("/")
        if not all(map(passes, self.chosen(function, f"{folder}/test_{name}.py", most))):
            return TESTS, None
        here = function not in self.at_import and function in self.tests
        return SURVIVED if here else NOT_HERE, None

    def failing(self, module: str, key: str, most: float) -> tuple[int, list[str]]:
        """Change this process; return the names of all tests that notice.

        The exact proof is one of them. The list is empty where nothing notices, or where the mutant
        cannot be judged in place.
        """
        path, tree = tree_of(module)
        function = swap(keyed(tree)[key], path, tree, self.functions)
        if function is None:
            return NOT_HERE, []
        tests = self.chosen(function, "", most)
        return TESTS, [item.nodeid for item in tests if not passes(item)]

    def killers(self, module: str, keys: Sequence[str], most: float) -> dict[str, list[str]]:
        """Return for each mutant of a module all tests that fail, each asked in a fork."""
        names = {}
        for key in keys:
            work = functools.partial(self.failing, module, key, most)
            _, names[key] = self.alone(work, most)
        return {key: failing for key, failing in names.items() if failing}

    def fates(self, module: str, asked: dict[str, Combinations], most: float) -> dict[str, int]:
        """Return the fate of mutants of a module."""
        found = {}
        for key, proofs in asked.items():
            status, _ = self.alone(functools.partial(self.fate, module, key, proofs, most), most)
            found[key] = {None: STOPPED, 1: NOT_HERE}.get(status, status)  # 1: it raised
        return found


class Answers:
    """A process that has collected `tests`, and answers about mutants."""

    def __init__(self, tests: Sequence[str], home: tuple[str, ...]) -> None:
        context = multiprocessing.get_context("fork")
        self.here, there = context.Pipe()
        self.process = context.Process(target=self.serve, args=(self.here, there, tests, home))
        self.process.start()
        there.close()  # or `recv` would wait for ever for a process that was killed
        self.collected, self.usable = self.here.recv()

    @staticmethod
    def serve(theirs: Any, connection: Any, tests: Sequence[str], home: tuple[str, ...]) -> None:
        """Import, collect, and answer."""
        theirs.close()  # so that this process ends with theirs
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
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
        """Ask the process.

        Raises
        ------
        EOFError, ConnectionError
            If the process has died.
        """
        self.here.send(question)
        return self.here.recv()

    def close(self) -> None:
        """End the process."""
        self.here.send(None)
        self.process.join()
