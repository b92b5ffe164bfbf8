"""Hostile functions for proofs: whatever they are, the process is afterwards as it was.

Each program is a body, right or wrong or with an error inside, in wrappers of all kinds that people
and libraries put around functions, and is interrupted at a line of the prover if a number says so.
All dictionaries of modules, and those of the program, hold the same objects afterwards.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

import exactgrad
from benchmarks.snapshots import snapshot

__all__ = ["Program", "check_program", "programs"]

PROVER_FOLDER = str(Path(exactgrad.__file__).parent)
BODIES = {
    "right": "return (t**2).sum(), 2 * t",
    "right, by makers": "g = np.zeros(t.shape); g += 2 * t; return np.sum(t * t), g",
    "right, by an import": "from numpy import zeros_like, empty\n    g = empty(2)\n    g[:] = t\n"
    "    return (t**2).sum(), zeros_like(t) + g * 2",
    "wrong": "return (t**2).sum(), 3 * t",
    "wrong, by makers": "g = np.ones(2); return (t**2).sum(), g * t",
    "an error": "raise ValueError('its own')",
    "an error of a key": "return {}[t.shape]",
    "an interrupt": "raise KeyboardInterrupt",
    "an exit": "raise SystemExit(3)",
    "a stop": "raise StopIteration",
    "no end": "return f_inner(t)",
    "memory": "raise MemoryError",
    "an interrupt in the second call": "calls.append(1)\n    if len(calls) > 1:\n"
    "        raise KeyboardInterrupt\n    return (t**2).sum(), 2 * t",
    "a global name": "global counted\n    counted = 3.5\n    return (t**2).sum(), 2 * t",
    "text": "return 'x', t",
    "nothing": "return None",
    "an array of objects": "return np.array([t, None], object), t",
}
# Statements that make a program `f` of the last one, `g` of what came before
WRAPPERS = {
    "a recursive local function": "def make():\n    def r(t, n=3):\n"
    "        return g(t) if n == 0 else r(t, n - 1)\n    return r\nf = make()",
    "an empty cell": "def make():\n    def r(t):\n        return g(t) if True else never\n"
    "    if False:\n        never = 1\n    return r\nf = make()",
    "what wraps itself": "f = lambda t: g(t)\nf.__wrapped__ = f",
    "a ring of two that wrap each other": "f = lambda t: g(t)\nh = lambda t: f(t)\n"
    "f.__wrapped__ = h\nh.__wrapped__ = f",
    "an object whose __wrapped__ is itself": "class W:\n    def __call__(self, t):\n"
    "        return g(t)\n    @property\n    def __wrapped__(self):\n        return self\nf = W()",
    "an object of which every attribute is there": "class W:\n    def __call__(self, t):\n"
    "        return g(t)\n    def __getattr__(self, name):\n        return self\nf = W()",
    "an object whose attributes raise": "class W:\n    def __call__(self, t):\n"
    "        return g(t)\n    def __getattr__(self, name):\n        raise RuntimeError(name)\n"
    "f = W()",
    "an object that equals nothing": "class W:\n    def __call__(self, t):\n        return g(t)\n"
    "    def __eq__(self, other):\n        raise RuntimeError\n    __hash__ = None\nf = W()",
    "a method": "class W:\n    def m(self, t):\n        return g(t)\nf = W().m",
    "a method of slots": "class W:\n    __slots__ = ('own', '__weakref__')\n"
    "    def m(self, t):\n        return self.own(t)\nw = W()\nw.own = g\nf = w.m",
    "a static method": "class W:\n    @staticmethod\n    def m(t):\n        return g(t)\nf = W.m",
    "a class method": "class W:\n    own = [g]\n    @classmethod\n    def m(cls, t):\n"
    "        return cls.own[0](t)\nf = W.m",
    "a class": "class W:\n    def __new__(cls, t):\n        return g(t)\nf = W",
    "a metaclass": "class M(type):\n    def __call__(cls, t):\n        return g(t)\n"
    "class W(metaclass=M):\n    pass\nf = W",
    "a partial": "f = functools.partial(lambda k, t: g(t), 3)",
    "a partial of itself in a keyword": "f = functools.partial(lambda t, k=None: g(t))\n"
    "f.keywords['k'] = f",
    "a cache": "f = functools.lru_cache(lambda k: lambda t: g(t))(1)",
    "wraps": "@functools.wraps(g)\ndef f(*args, **kwargs):\n    return g(*args, **kwargs)",
    "a default": "f = lambda t, own=g: own(t)",
    "a default that is itself": "def f(t, own=None):\n    return g(t)\nf.__defaults__ = (f,)",
    "a list that holds itself": "box = [g]\nbox.append(box)\nf = lambda t: box[0](t)",
    "a dict that holds itself": "box = {'g': g}\nbox['box'] = box\nf = lambda t: box['g'](t)",
    "locks and files": "lock, file = threading.Lock(), open(os.devnull)\n"
    "f = lambda t: (lock.locked(), file.closed, g(t))[2]",
    "a thread's own": "own = threading.local()\nown.g = g\nf = lambda t: own.g(t)",
    "a generator": "def several(t):\n    yield from g(t)\nf = lambda t: tuple(several(t))",
    "a module of its own": "m = types.ModuleType('hostile')\nm.g, m.np = g, np\nm.m = m\n"
    "f = lambda t: m.g(t)",
    "names of its own": "f = types.FunctionType((lambda t: g(t)).__code__, {'g': g, 'np': np})",
    "text": "space = {'g': g}\nexec('def f(t):\\n    return g(t)', space)\nf = space['f']",
    "a handler of its own": "def f(t):\n    try:\n        return g(t)\n    except Exception:\n"
    "        raise ValueError('told')",
    "a context": "var = contextvars.ContextVar('var', default=g)\nf = lambda t: var.get()(t)",
    "errstate": "def f(t):\n    with np.errstate(all='ignore'):\n        return g(t)",
    "vectorize": "half = np.vectorize(lambda v: v * 0.5, otypes=[float])\n"
    "f = lambda t: (half(t), g(t))[1]",
}
PROGRAM_HEADER = (
    "import contextvars, functools, os, threading, types\nimport numpy as np\n"
    "calls = []\ndef f_inner(t):\n    return f_inner(t)\n"
)
EXPECTED = (  # errors that a caller may see: the program's own, and what refuses a program
    TypeError, ValueError, KeyError, RuntimeError, StopIteration, MemoryError, AttributeError,
    KeyboardInterrupt, SystemExit, RecursionError,
)  # fmt: skip


class Program(NamedTuple):
    """A program: a body, the wrappers around it, and at which line to interrupt its proof."""

    body: str
    wrappers: tuple[str, ...]
    entry_point: str  # the function of the prover
    interrupt_line: int  # 0: never

    def namespace(self) -> dict[str, Any]:
        """Return what the program defines, `f` itself among it."""
        scope: dict[str, Any] = {"__name__": "hostile"}
        exec(f"{PROGRAM_HEADER}def f(t):\n    {BODIES[self.body]}", scope)
        for wrapper in self.wrappers:
            exec(f"g = f\n{WRAPPERS[wrapper]}", scope := {**scope, "g": scope["f"]})
        return scope


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """Draw a program, three wrappers deep at most."""
    wrappers = draw(st.lists(st.sampled_from(sorted(WRAPPERS)), max_size=3))
    interrupt_line = draw(st.one_of(st.just(0), st.integers(1, 40), st.integers(1, 6000)))
    entry_point = draw(st.sampled_from(["prove", "prove", "prove_same", "check_gradient"]))
    return Program(
        draw(st.sampled_from(sorted(BODIES))), tuple(wrappers), entry_point, interrupt_line
    )


def check_program(program: Program) -> str:
    """Prove a program: return the verdict or what became of it; raise if that is a defect."""
    point = np.array([0.5, -1.25])
    try:
        scope = program.namespace()
    except (TypeError, RuntimeError):  # of `functools.wraps`, which asks objects for their names
        return "no such program"
    f = scope["f"]
    functions = (f, lambda t: f(t)) if program.entry_point == "prove_same" else (f,)
    names_before = snapshot()
    scope_before = dict(scope)
    answer: Any = None
    try:
        with interrupted_at(program.interrupt_line), contextlib.suppress(*EXPECTED):
            answer = getattr(exactgrad, program.entry_point)(*functions, point)
            answer = getattr(answer, "verdict", str(bool(answer)))
    finally:
        sys.settrace(None)
    changed = differences(names_before, snapshot())
    assert not changed, f"other objects: {changed}"
    changed_globals = {key for key, value in scope_before.items() if scope.get(key) is not value}
    assert changed_globals <= {"counted"}, f"other names of the program: {changed_globals}"
    assert point.tolist() == [0.5, -1.25], "theta is overwritten"
    if program.body.startswith("right") and program.entry_point == "prove":
        assert answer != "refuted", "a right gradient is refuted"
        assert program.interrupt_line or answer is not None, "it raises"
    if program.body.startswith("wrong") and program.entry_point != "prove_same":
        assert answer not in ("proved", "True"), "a wrong gradient passes"
    return str(answer)


def differences(
    names_before: dict[str, dict[str, Any]], names_after: dict[str, dict[str, Any]]
) -> list[tuple[str, str]]:
    """Return module and name of each changed object; a new module is no change."""
    return [
        (module, key)
        for module, names in names_before.items()
        for key, value in names.items()
        if names_after[module].get(key, names) is not value
    ]


@contextlib.contextmanager
def interrupted_at(line: int) -> Iterator[None]:
    """Raise KeyboardInterrupt before so many lines of the prover have run."""
    n_lines = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal n_lines
        if not frame.f_code.co_filename.startswith(PROVER_FOLDER):
            return None
        if event == "line":
            n_lines += 1
            if n_lines == line:
                sys.settrace(None)
                raise KeyboardInterrupt
        return trace

    if line:
        sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(None)
