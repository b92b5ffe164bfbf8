"""NumPy's makers of arrays while a proof runs: `np.zeros` of a user's function is exact then.

``out = np.zeros(3)`` followed by ``out[0] = x`` asks NumPy to make a float of an exact number. So
during a proof the makers of `numpy`, and those that the module of the function has imported by
name, are others: in the thread of the proof they make exact arrays, in every other thread they are
NumPy's. Makers that a third module has imported by name stay NumPy's, and what is written into
their arrays is refused. The functions of `scipy.special` that are no ufuncs are exchanged too.
"""

from __future__ import annotations

import functools
import inspect
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from .arrays import Exact, lift, stack, unwritten
from .fields import Field, Untraceable
from .functions import exp, gamma, log
from .linear import FUNCTIONS

__all__ = ["proving"]

_of_this_thread = threading.local()
_lock = threading.Lock()
_running: list[list[dict[str, Any]]] = []  # of each proof, in all threads, where names are others


def _is_exact(values: Any) -> bool:
    """Whether exact numbers occur, also in lists of lists."""
    nested = isinstance(values, list | tuple)
    return type(values) is Exact or (nested and any(map(_is_exact, values)))


def _floats(dtype: Any) -> bool:
    return dtype is None or np.dtype(dtype).kind in "fO"


def _constant(name: str) -> Callable[..., Any]:
    """Return np.zeros, np.ones or np.eye."""

    def make(field: Field, *args: Any, **kwargs: Any) -> Any:
        made = ORIGINAL[name](*args, **kwargs)
        return lift(made.astype(float), field) if made.dtype.kind == "f" else made

    return make


def _full(field: Field, shape: Any, fill_value: Any, dtype: Any = None, **kwargs: Any) -> Any:
    if not _is_exact(fill_value):
        return _constant("full")(field, shape, fill_value, dtype, **kwargs)
    out = lift(ORIGINAL["zeros"](shape), field)
    out[...] = fill_value
    return out


def _empty(field: Field, shape: Any, dtype: Any = None, **kwargs: Any) -> Any:
    return unwritten(field, shape) if _floats(dtype) else ORIGINAL["empty"](shape, dtype, **kwargs)


def _exact(name: str) -> Callable[..., Any]:
    """Return np.array or np.asarray of exact numbers, and of lists of them."""

    def make(field: Field, values: Any, dtype: Any = None, **kwargs: Any) -> Any:
        if not _is_exact(values):
            return ORIGINAL[name](values, dtype, **kwargs)
        if not _floats(dtype):
            raise Untraceable(f"np.{name} makes {np.dtype(dtype)} of exact numbers")
        if type(values) is Exact:
            return values.copy() if name == "array" and kwargs.get("copy", True) is True else values
        return stack([make(field, x) if isinstance(x, list | tuple) else lift(x, field)
                      for x in values])  # fmt: skip

    return make


class _Joined:
    """np.r_ or np.c_, for the arrays that are joined with it."""

    def __init__(self, name: str, join: str) -> None:
        self.name, self.join = name, join

    def __getitem__(self, key: Any) -> Any:
        parts = key if isinstance(key, tuple) else (key,)
        return FUNCTIONS[self.join](parts) if _is_exact(parts) else ORIGINAL[self.name][key]


MAKERS: dict[str, Callable[..., Any]] = {
    **{name: _constant(name) for name in ("zeros", "ones", "eye")},
    "identity": _constant("eye"),  # which calls it
    **{name: _exact(name) for name in ("array", "asarray", "asanyarray", "ascontiguousarray")},
    "empty": _empty,
    "full": _full,
}
ORIGINAL = {name: getattr(np, name) for name in (*MAKERS, "r_", "c_")}


def _maker(name: str) -> Callable[..., Any]:
    """Return a maker that is NumPy's but in the thread of a proof."""

    @functools.wraps(ORIGINAL[name])
    def make(*args: Any, **kwargs: Any) -> Any:
        field = getattr(_of_this_thread, "field", None)
        return (
            ORIGINAL[name](*args, **kwargs)
            if field is None
            else MAKERS[name](field, *args, **kwargs)
        )

    return make


EXCHANGED = {name: _maker(name) for name in MAKERS} | {
    "r_": _Joined("r_", "hstack"),
    "c_": _Joined("c_", "column_stack"),
}

# --- functions of scipy.special that are no ufuncs


def _logsumexp(a: Any, axis: Any = None, b: Any = None, keepdims: bool = False) -> Exact:
    """Return log sum b e^a."""
    e = exp(a) if b is None else exp(a) * b
    return log(FUNCTIONS["sum"](e, axis, keepdims))


def _softmax(x: Any, axis: Any = None) -> Exact:
    """Return e^x / sum e^x."""
    return exp(x) / FUNCTIONS["sum"](exp(x), axis, True)


OF_SCIPY: dict[str, Callable[..., Any]] = {
    "softmax": _softmax,
    "log_softmax": lambda x, axis=None: x - _logsumexp(x, axis, keepdims=True),
    "logsumexp": _logsumexp,
    "polygamma": lambda n, x: gamma(int(n))(x),
}


@functools.cache
def _of_scipy(name: str, original: Any) -> Any:
    """Return a function that is SciPy's but of exact numbers."""

    @functools.wraps(original)
    def function(*args: Any, **kwargs: Any) -> Any:
        return (OF_SCIPY[name] if _is_exact(args) else original)(*args, **kwargs)

    return function


# --- where they stand


def _names(function: Any) -> Iterator[dict[str, Any]]:
    """Yield the names of a function's module, and of the functions that it closes over."""
    while isinstance(function, functools.partial):
        function = function.func
    function = inspect.unwrap(getattr(function, "__func__", function))
    if hasattr(function, "__globals__"):
        yield function.__globals__
        for cell in function.__closure__ or ():
            if inspect.isroutine(getattr(cell, "cell_contents", None)):
                yield from _names(cell.cell_contents)


def _exchange(names: dict[str, Any], pairs: dict[int, Any]) -> None:
    own = ORIGINAL if names is vars(np) else list(names)  # of NumPy's many names we know which
    for name in own:
        if id(names[name]) in pairs:
            names[name] = pairs[id(names[name])]


@contextmanager
def proving(field: Field, *functions: Any) -> Iterator[None]:
    """Make the arrays that functions make in this thread exact ones of a field."""
    pairs = [(ORIGINAL[name], new) for name, new in EXCHANGED.items()]
    special = sys.modules.get("scipy.special")
    if special is not None:
        found = [(name, inspect.unwrap(getattr(special, name))) for name in OF_SCIPY]
        pairs += [(original, _of_scipy(name, original)) for name, original in found]
    places = [vars(np), *([vars(special)] if special else [])]
    places += [names for one in functions for names in _names(one)]
    there, back = {id(old): new for old, new in pairs}, {id(new): old for old, new in pairs}
    before = getattr(_of_this_thread, "field", None)
    with _lock:
        _running.append(places)
        for names in places:
            _exchange(names, there)
    _of_this_thread.field = field
    try:
        yield
    finally:
        _of_this_thread.field = before
        with _lock:
            del _running[next(i for i, one in enumerate(_running) if one is places)]
            used = {id(names) for others in _running for names in others}
            for names in places:
                _exchange(names, {} if id(names) in used else back)
