"""NumPy's makers of arrays while a proof runs: `np.zeros` of a user's function is exact then.

``out = np.zeros(3)`` followed by ``out[0] = x`` asks NumPy to make a float of an exact number. So
during a proof the name ``np`` stands for another module, and names of makers for others, in every
module that is written in Python: in the thread of the proof they make exact arrays, in every other
thread they are NumPy's. `numpy` itself stays as it is, since compiled code looks there and would
read the memory of an exact array as floats. Functions that NumPy writes in Python run as they are,
as copies that see these makers. The functions of `scipy.special` that are no ufuncs are exchanged
too.
"""

from __future__ import annotations

import functools
import inspect
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import repeat
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from ..fields.finite import Field, Untraceable
from .arrays import Exact, field_of, lift, stack, unwritten
from .functions import exp, gamma, log
from .linear import FUNCTIONS

__all__ = ["proving"]

_of_this_thread = threading.local()
_lock = threading.Lock()
_exchanged: list[tuple[dict[str, Any], str, Any]] = []  # names, in all modules, and what they were
_running = 0  # proofs, in all threads


def _floats(dtype: Any) -> bool:
    return dtype is None or np.dtype(dtype).kind in "fO"


def _constant(name: str) -> Callable[..., Any]:
    """Return np.zeros, np.ones or np.eye."""

    def make(field: Field, *args: Any, **kwargs: Any) -> Any:
        made = getattr(np, name)(*args, **kwargs)
        return lift(made.astype(float), field) if made.dtype.kind == "f" else made

    return make


def _full(field: Field, shape: Any, fill_value: Any, dtype: Any = None, **kwargs: Any) -> Any:
    if field_of(fill_value) is None:
        return _constant("full")(field, shape, fill_value, dtype, **kwargs)
    out = lift(np.zeros(shape), field)
    out[...] = fill_value
    return out


def _empty(field: Field, shape: Any, dtype: Any = None, **kwargs: Any) -> Any:
    return unwritten(field, shape) if _floats(dtype) else np.empty(shape, dtype, **kwargs)


def _exact(name: str) -> Callable[..., Any]:
    """Return np.array or np.asarray of exact numbers, and of lists of them."""

    def make(field: Field, values: Any, dtype: Any = None, ndmin: int = 0, **kwargs: Any) -> Any:
        if field_of(values) is None:
            return getattr(np, name)(values, dtype, **({"ndmin": ndmin} if ndmin else {}), **kwargs)
        if ndmin:
            found = make(field, values, dtype, **kwargs)
            return found.reshape((1,) * (ndmin - found.ndim) + found.shape)
        if not _floats(dtype):
            raise Untraceable(f"np.{name} makes {np.dtype(dtype)} of exact numbers")
        if type(values) is Exact:
            copies = name == "array" and kwargs.get("copy", True) is True
            ordered = name != "ascontiguousarray" or values.flags.c_contiguous
            return values.copy() if copies or not ordered else values
        return lift(values, field)

    return make


class _Joined:
    """np.r_ or np.c_, for the arrays that are joined with it."""

    def __init__(self, name: str, join: str) -> None:
        self.name, self.join = name, join

    def __getitem__(self, key: Any) -> Any:
        if field_of(key) is None:
            return getattr(np, self.name)[key]
        return FUNCTIONS[self.join](key if isinstance(key, tuple) else (key,))


MAKERS: dict[str, Callable[..., Any]] = {
    **{name: _constant(name) for name in ("zeros", "ones", "eye", "identity")},
    **{name: _exact(name) for name in ("array", "asarray", "asanyarray", "ascontiguousarray")},
    "empty": _empty,
    "full": _full,
    "broadcast": lambda field, *arrays: np.broadcast(*(getattr(x, "v", x) for x in arrays)),
}


def _maker(name: str) -> Callable[..., Any]:
    """Return a maker that is NumPy's but in the thread of a proof."""
    original = getattr(np, name)

    @functools.wraps(original)
    def make(*args: Any, **kwargs: Any) -> Any:
        field = getattr(_of_this_thread, "field", None)
        return original(*args, **kwargs) if field is None else MAKERS[name](field, *args, **kwargs)

    return make


_vectorize_of_floats: Callable[..., Any] = np.vectorize.__call__


def _vectorize(self: Any, *args: Any, **kwargs: Any) -> Any:
    """Return what np.vectorize does, of exact numbers one after the other."""
    field = getattr(_of_this_thread, "field", None)
    if field is None or field_of(args) is None:
        return _vectorize_of_floats(self, *args, **kwargs)
    if kwargs or self.excluded or self.signature is not None:
        raise Untraceable("np.vectorize with a signature, keywords or excluded arguments")
    shape = np.broadcast_shapes(*map(np.shape, args))

    def result(values: Any, otype: str | None) -> Any:
        first = values[0].v if type(values[0]) is Exact else values[0]
        dtype = np.dtype(otype or np.asarray(first).dtype)
        if field_of(values) is None:
            return np.array(values, dtype).reshape(shape)
        if dtype.kind not in "fO":
            raise Untraceable(f"np.vectorize makes {dtype} of all results: say otypes=[float]")
        return stack([lift(one, field) for one in values]).reshape(shape)

    parts = [np.broadcast_to(one, shape).reshape(-1) for one in args]
    rows = [self.pyfunc(*row) for row in zip(*parts, strict=True)]
    several = isinstance(rows[0], tuple)
    columns = zip(*rows, strict=True) if several else [rows]
    found = tuple(map(result, columns, self.otypes or repeat(None)))
    return found if several else found[0]


def _as_strided(x: Any, *args: Any, **kwargs: Any) -> Any:
    """Return what `as_strided` does, which does not ask its arguments as NumPy's others do."""
    original = np.lib.stride_tricks.as_strided
    return (original if field_of(x) is None else FUNCTIONS["as_strided"])(x, *args, **kwargs)


NUMPY = ModuleType("numpy")
vars(NUMPY).update(vars(np), r_=_Joined("r_", "hstack"), c_=_Joined("c_", "column_stack"))
vars(NUMPY).update({name: _maker(name) for name in MAKERS})
STAND_INS = {id(getattr(np, name)): getattr(NUMPY, name) for name in (*MAKERS, "r_", "c_")}
STAND_INS[id(np)] = NUMPY
STRIDE_TRICKS, NUMPY.lib = ModuleType("numpy.lib.stride_tricks"), ModuleType("numpy.lib")
vars(STRIDE_TRICKS).update(vars(np.lib.stride_tricks), as_strided=_as_strided)
vars(NUMPY.lib).update(vars(np.lib), stride_tricks=STRIDE_TRICKS)
STAND_INS |= {id(np.lib): NUMPY.lib, id(np.lib.stride_tricks): STRIDE_TRICKS}
STAND_INS[id(np.lib.stride_tricks.as_strided)] = _as_strided

# --- what NumPy itself writes in Python runs as it is: copies, for which makers are exchanged


@functools.cache
def _names_in(module: str) -> dict[str, Any]:
    """Return the names that copies of the functions of a module of NumPy's see."""
    names = vars(sys.modules[module]).copy()
    for name, one in names.items():
        own = isinstance(one, FunctionType) and one.__globals__["__name__"] == module
        names[name] = _copy(one, names) if own else STAND_INS.get(id(one), one)
    return names


def _copy(function: FunctionType, names: dict[str, Any]) -> FunctionType:
    what = function.__code__, names, function.__name__, function.__defaults__, function.__closure__
    made = FunctionType(*what)
    made.__kwdefaults__ = function.__kwdefaults__
    return made


COMPILED = {"_wrapfunc", "_array_converter", "_umath_linalg"}  # that take floats alone
for _name, _one in [*vars(np).items(), *((f"linalg.{k}", f) for k, f in vars(np.linalg).items())]:
    _inner = inspect.unwrap(_one) if type(_one) is type(np.sum) else None
    if isinstance(_inner, FunctionType) and COMPILED.isdisjoint(_inner.__code__.co_names):
        FUNCTIONS.setdefault(_name, _copy(_inner, _names_in(_inner.__globals__["__name__"])))

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
        return (original if field_of(args) is None else OF_SCIPY[name])(*args, **kwargs)

    return function


@functools.lru_cache(1)
def _stand_ins(modules: int) -> dict[int, Any]:
    """Return what stands for what, by the identity of the latter, once for so many modules."""
    special = vars(sys.modules.get("scipy.special", ModuleType("")))
    found = [(name, inspect.unwrap(special[name])) for name in OF_SCIPY if name in special]
    # SciPy's own numpy, whose makers call numpy's
    compat = vars(sys.modules.get("scipy._lib.array_api_compat.numpy", ModuleType("")))
    makers = {id(compat[name]): getattr(NUMPY, name) for name in MAKERS if name in compat}
    return STAND_INS | makers | {id(old): _of_scipy(name, old) for name, old in found}


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


@functools.lru_cache(1)
def _places(modules: int) -> list[tuple[dict[str, Any], str]]:
    """Return where modules written in Python name what is exchanged, once for so many modules."""
    own, old = __name__.rpartition(".trace.")[0], _stand_ins(modules)
    written = [
        vars(module)
        for name, module in list(sys.modules.items())
        if isinstance(module, ModuleType)
        and (getattr(module, "__file__", None) or "").endswith(".py")
        and not f"{name}.".startswith((f"{own}.", "numpy."))
    ]
    return [(names, key) for names in written for key, one in [*names.items()] if id(one) in old]


@contextmanager
def proving(field: Field, *functions: Any) -> Iterator[None]:
    """Make the arrays that functions make in this thread exact ones of a field."""
    global _running
    modules, before = len(sys.modules), getattr(_of_this_thread, "field", None)
    stand_ins = _stand_ins(modules)
    with _lock:
        _running += 1
        np.vectorize.__call__ = _vectorize  # type: ignore[method-assign]
        places = _places(modules) if _running == 1 else []
        places = places + [(d, key) for one in functions for d in _names(one) for key in [*d]]
        for names, key in places:
            one = names.get(key)
            if id(one) in stand_ins:
                _exchanged.append((names, key, one))
                names[key] = stand_ins[id(one)]
    _of_this_thread.field = field
    try:
        yield
    finally:
        _of_this_thread.field = before
        with _lock:
            _running -= 1
            if not _running:
                np.vectorize.__call__ = _vectorize_of_floats  # type: ignore[method-assign]
            while _exchanged and not _running:
                names, key, one = _exchanged.pop()
                names[key] = one
