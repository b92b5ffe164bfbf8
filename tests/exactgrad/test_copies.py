"""Copies: a proof calls a copy of a function, and leaves the process as it was."""

import functools
import gc
import os
import pickle
import signal
import sys
import threading
import weakref
from collections import Counter
from collections.abc import MutableSequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import pytest

from benchmarks.snapshots import identities, snapshot
from exactgrad import prove
from exactgrad.fields.finite import Prime
from exactgrad.trace.arrays import Exact
from exactgrad.trace.copies import Copies

THREE = np.array([0.3, -1.2, 0.7])
SCALE = 2.0
CALLS = 0
MADE: Any = None


def makes():
    return np.zeros(2)


def called(f, *args):
    return Copies().call(Prime(0), f, *args)


def is_exact(f, *args):
    """Whether a function makes an exact array in a proof, and one of floats before and after."""
    kinds = type(f(*args)), type(called(f, *args)), type(f(*args))
    return kinds == (np.ndarray, Exact, np.ndarray)


# --- what is copied


class Scaled:
    unit = 1.0

    def __init__(self, size):
        self.size = size

    def make(self):
        return np.zeros(self.size)

    @property
    def made(self):
        return self.make()

    @classmethod
    def of_class(cls):
        return cls(2).made

    @staticmethod
    def of_nothing():
        return makes()

    @functools.cached_property
    def once(self):
        return np.ones(2)

    def __call__(self):
        return self.make()


class Special(MutableSequence):
    """By special methods, and with those of an abstract class."""

    def __init__(self):
        self.values = [np.zeros(2)]

    def __getitem__(self, key):
        return self.values[key]

    def __setitem__(self, key, value):
        self.values[key] = value

    def __delitem__(self, key):
        del self.values[key]

    def __len__(self):
        return len(self.values)

    def __matmul__(self, other):
        return np.zeros(2)

    def __getattr__(self, name):
        return np.zeros(2) if name == "absent" else object.__getattribute__(self, name)

    @property
    def last(self):
        return self.values[-1]

    @last.setter
    def last(self, value):
        self.values[-1] = value + np.zeros(2)

    def insert(self, index, value):
        self.values.insert(index, value)


class Meta(type):
    def __new__(cls, name, bases, names):
        MADE_CLASSES.append(name)
        return super().__new__(cls, name, bases, names)

    def make(cls):
        return np.zeros(cls.size)


MADE_CLASSES: list[str] = []


class Class(metaclass=Meta):
    size = 2


class Raising:
    """An object that has no attribute but to be called."""

    def __call__(self):
        return makes()

    def __getattr__(self, name):
        raise RuntimeError(name)


class Child:
    def __init__(self, parent):
        self.parent = weakref.ref(parent)

    def make(self):
        return self.parent().make()


@runtime_checkable
class Making(Protocol):
    def make(self): ...


def by_protocol():
    assert isinstance(PARENT, Making)
    assert not isinstance(TABLE, Making)
    return PARENT.make()


def by_special_methods():
    one = Special()
    one.append(one @ 1)
    one.last = one[0] + one.absent
    del one[0]
    return sum(one) + one.pop()


class More(Scaled):
    def make(self):
        return super().make() + 1


@dataclass(frozen=True, slots=True)
class Part:
    inner: Any
    size: int = 2

    def make(self):
        return np.zeros(self.size)


@dataclass(frozen=True)
class Whole:
    part: Part

    def make(self):
        return replace(self, part=Part(None, 3)).part.make()


class Pair(NamedTuple):
    one: int
    two: int

    def make(self):
        return np.zeros(self)


class Local(threading.local):
    def __init__(self):
        self.size = 2

    def make(self):
        return np.zeros(self.size)


def wraps(f):
    @functools.wraps(f)
    def wrapper(*args):
        return f(*args)

    return wrapper


@functools.singledispatch
def dispatched(_):
    return makes()


@dispatched.register
def _(x: int):
    return np.zeros(x)


def imports():
    import numpy as other
    from numpy import ones

    return other.zeros(2) + ones(2)


def defines():
    class Inner(Scaled):
        start = np.zeros(1)

    return Inner(1).make() + Inner.start


def by_default(maker=np.zeros, *, other=makes):
    return maker(2) + other()


def generates():
    return sum(np.zeros(k) for k in (1, 1))


PARENT = Scaled(2)
OWN = threading.local()
OWN.makes = makes
VARIABLE: ContextVar[Any] = ContextVar("variable", default=makes)
BY_ONES = np.vectorize(lambda v: np.ones(1)[0] * v, otypes=[float])
TABLE = {"made": [makes, (Scaled(2),)], Scaled: 1}
TABLE_GET = TABLE.get
OF_OBJECTS = {
    "a function": makes,
    "a lambda": lambda: makes(),
    "a method": Scaled(2).make,
    "an object that is called": Scaled(2),
    "a property": lambda: Scaled(2).made,
    "a class method": Scaled.of_class,
    "a static method": Scaled(2).of_nothing,
    "a method of a base class": More(2).make,
    "a cached property": lambda: Scaled(2).once,
    "an object with slots": Part(None).make,
    "a part of a dataclass": Whole(Part(Part(None))).make,
    "a named tuple": Pair(2, 3).make,
    "a thread's own": Local().make,
    "a partial": functools.partial(makes),
    "a partial of a maker": functools.partial(np.zeros, 2),
    "a decorator": wraps(wraps(makes)),
    "a cache": functools.lru_cache(makes),
    "a dispatcher": lambda: dispatched(2) + dispatched("")[0],
    "an import": imports,
    "a class inside": defines,
    "special methods": by_special_methods,
    "a metaclass": Class.make,
    "an object whose attributes raise": Raising(),
    "a weak reference": Child(PARENT).make,
    "a protocol": by_protocol,
    "an attribute of a thread": lambda: OWN.makes(),
    "a variable of a context": lambda: VARIABLE.get()(),
    "a method of a dict": functools.partial(lambda get: get("made")[0](), TABLE_GET),
    "np.vectorize": lambda: BY_ONES(np.ones(2)),
    "defaults": by_default,
    "a generator": generates,
    "a dict of lists": lambda: TABLE["made"][0]() + TABLE["made"][1][0].make() + TABLE[Scaled],
    "a text": lambda: eval("np.zeros(2)") + globals()["makes"](),
    "a module": lambda: sys.modules[__name__] and THIS.makes(),
}
THIS = sys.modules[__name__]
TEXT: dict[str, Any] = {}
exec(
    "import numpy as np\nclass C:\n def f(self): return np.zeros(2)\ndef f(): return C().f()", TEXT
)
OF_OBJECTS["a class of a text without a name"] = TEXT["f"]


@pytest.mark.parametrize("how", OF_OBJECTS)
def test_makers_are_exact_wherever_a_function_finds_them(how):
    assert is_exact(OF_OBJECTS[how])


def test_what_is_the_same_is_the_same_copy():
    one, held = Scaled(2), [makes, Scaled]

    def same():
        assert held[0] is makes
        assert held[1] is Scaled is type(one)
        assert isinstance(one, Scaled)
        assert isinstance(More(2), Scaled)
        assert TABLE[Scaled] == 1
        assert one in {one: 1}
        return np.zeros(1)

    assert is_exact(same)


def test_what_is_written_in_c_stays_as_it_is():
    ctypes, random = pytest.importorskip("ctypes"), np.random.default_rng(0)
    kinds = [ctypes.c_int, ctypes.Structure, type(random), datetime, type(np.ma.masked), OSError]
    assert called(lambda: kinds) is kinds
    assert called(lambda: random) is random


def test_a_class_is_told_of_no_subclass():
    told = []

    class Registering:
        def __init_subclass__(cls):
            told.append(cls)

        def make(self):
            return np.zeros(2)

    class Registered(Registering):
        pass

    assert is_exact(Registered().make)
    assert told == [Registered]
    assert is_exact(Class.make)
    assert MADE_CLASSES == ["Class"]


# --- functions that lead to themselves


def test_a_recursive_local_function_is_proved():
    def power(x, n):
        return np.ones(3) if n == 0 else x * power(x, n - 1)

    assert prove(lambda t: (power(t, 3).sum(), 3 * power(t, 2)), THREE)


def test_an_empty_cell_is_passed_by():
    def f(t):
        return (t * t).sum(), 2 * t if len(t) else absent

    if not len(THREE):
        absent = THREE
    assert prove(f, THREE)


def test_what_wraps_itself_is_proved():
    @wraps
    def f(t):
        out = np.zeros(3)
        out[:] = t * t
        return out.sum(), 2 * t

    f.__wrapped__ = f
    cached = functools.lru_cache(makes)
    cached.__wrapped__ = cached
    holds = [cached]
    holds.append(holds)
    assert prove(lambda t: f(t) if holds else None, THREE)


# --- what a function keeps


def counts(t):
    global CALLS, MADE
    CALLS += 1
    MADE = np.zeros(3)
    return (t * t).sum() * SCALE, 2 * SCALE * t


def test_numbers_that_are_written_to_names_are_in_the_originals():
    copies, seen, before, n = Copies(), [], CALLS, 0

    def f(t):
        nonlocal n
        n += 1
        seen.append(n)
        return counts(t)

    for _ in range(2):
        copies.call(Prime(0), f, THREE)
    assert CALLS - before == n == 2
    assert seen == [1, 2]
    assert MADE is None  # an exact array is no one else's


def test_a_dict_of_exact_numbers_is_written_to_no_original():
    table = {}

    def f(t):
        nonlocal table
        table = {"zeros": np.zeros(3)}
        return counts(t)

    Copies().call(Prime(0), f, THREE)
    assert table == {}


def test_the_copy_of_a_counter_counts_the_same():
    class Letters:
        counts = None

    letters = Letters()
    letters.counts = Counter("aab")
    assert Copies().call(Prime(0), lambda: letters.counts) == Counter("aab")


def test_an_object_is_as_it_was_and_its_copy_is_not():
    class Counting:
        calls = 0

        def f(self):
            self.calls += 1
            self.seen.append(np.zeros(3))
            return self.calls, len(self.seen)

    one, copies = Counting(), Copies()
    one.seen = []
    assert copies.call(Prime(0), one.f) == (1, 1)
    assert copies.call(Prime(0), one.f) == (2, 2)
    assert one.calls == 0
    assert one.seen == []


# --- the process


def state():
    """Return by identity what the dictionaries of all modules hold, and the test's own classes."""
    return identities(snapshot()), {id(cls) for cls in Scaled.__subclasses__()}


def test_another_thread_sees_nothing_of_a_proof():
    assert prove(lambda t: (t @ t, 2 * t), THREE)  # imports what a first proof does
    gc.collect()  # what earlier proofs have left in cycles, such as classes
    before, seen, reached, looked = state(), [], threading.Event(), threading.Event()

    def looks():
        reached.wait(5)
        for _ in range(20):
            seen.extend([type(np.zeros(1)), type(pickle.loads(pickle.dumps(THREE))), type(makes())])
        seen.append(state() == before)
        looked.set()

    def f(t):
        reached.set()
        assert looked.wait(5)
        out = np.zeros(3)
        out[:] = t * t
        return out.sum(), 2 * t

    thread = threading.Thread(target=looks)
    thread.start()
    proof = prove(f, THREE)
    thread.join()
    assert proof
    assert set(seen) == {np.ndarray, True}
    assert state() == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # is multi-threaded
def test_a_child_that_is_forked_in_a_proof_finishes():
    def inner(t):
        return t.sum(), np.ones(3)

    def f(t):
        if (child := os.fork()) == 0:
            signal.alarm(5)  # one that hangs is killed, and its status says so
            try:
                pickle.dumps(THREE)
                os._exit(0 if prove(inner, THREE) else 1)
            finally:
                os._exit(2)
        assert os.waitpid(child, 0)[1] == 0
        return (t * t).sum(), 2 * t

    assert prove(f, THREE)
