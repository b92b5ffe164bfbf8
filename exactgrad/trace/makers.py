"""Makers of arrays as `copies` of a user's functions see them: `np.zeros` is exact in a proof.

``out = np.zeros(3)`` followed by ``out[0] = x`` asks NumPy to make a float of an exact number. So
for copies the name ``np`` stands for another module, and names of makers for others: while a proof
calls them they make exact arrays, and else they are NumPy's. `numpy` itself stays as it is.
Functions that NumPy writes in Python run as they are, as copies that see these makers. The
functions of `scipy.special` that are no ufuncs have stand-ins, too.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from contextvars import ContextVar
from functools import partial
from itertools import repeat
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from ..fields.finite import Field, Untraceable
from .arrays import Exact, Handlers, field_of, lift, stack, uninitialized
from .functions import exp, log, polygamma
from .linear import FUNCTIONS

__all__ = ["ACTIVE_FIELD", "NUMPY", "STAND_INS", "Vectorize", "scipy_stand_in"]

# The field of the proof whose copied function is running; None outside of proofs
ACTIVE_FIELD: ContextVar[Field | None] = ContextVar("field", default=None)


def _holds_floats(dtype: Any) -> bool:
    """Return whether an array made with this dtype would hold floats or objects; None is float."""
    return dtype is None or np.dtype(dtype).kind in "fO"


def _constant(name: str, field: Field, *args: Any, **kwargs: Any) -> Any:
    """Return the array that np.zeros, np.ones, np.eye and the like make (`name`), as exact numbers.

    An array of integers or bools is returned as NumPy makes it.
    """
    array = getattr(np, name)(*args, **kwargs)
    if array.dtype.kind != "f":
        return array
    return lift(array.astype(float), field)


def _full(
    field: Field, shape: Any, fill_value: Any, dtype: Any = None, **kwargs: Any
) -> Any:
    """Return np.full; the fill value may be an exact number."""
    if field_of(fill_value) is None:
        return _constant("full", field, shape, fill_value, dtype, **kwargs)
    out = lift(np.zeros(shape), field)
    out[...] = fill_value
    return out


def _empty(field: Field, shape: Any, dtype: Any = None, **kwargs: Any) -> Any:
    """Return np.empty; of floats, an exact array of one random number (see `uninitialized`)."""
    if not _holds_floats(dtype):
        return np.empty(shape, dtype, **kwargs)
    return uninitialized(field, shape)


def _converted(
    name: str,
    field: Field,
    values: Any,
    dtype: Any = None,
    ndmin: int = 0,
    **kwargs: Any,
) -> Any:
    """Return np.array, np.asarray or the like, as `name` says, of lists with exact numbers.

    Values without exact numbers are passed to NumPy's function.
    """
    if field_of(values) is None:
        if ndmin:
            kwargs["ndmin"] = ndmin
        return getattr(np, name)(values, dtype, **kwargs)
    if ndmin:
        array = _converted(name, field, values, dtype, **kwargs)
        return array.reshape((1,) * (ndmin - array.ndim) + array.shape)
    if not _holds_floats(dtype):
        raise Untraceable(
            f"np.{name} cannot make dtype {np.dtype(dtype)} of exact numbers"
        )
    if type(values) is not Exact:
        return lift(values, field)
    copies = name == "array" and kwargs.get("copy", True) is True
    reorders = name == "ascontiguousarray" and not values.flags.c_contiguous
    if copies or reorders:
        return values.copy()
    return values


class _ConcatenatingIndex:
    """Stand-in for np.r_ or np.c_ that also joins exact arrays."""

    def __init__(self, name: str, concatenate: str) -> None:
        self.name = name
        self.concatenate = concatenate

    def __getitem__(self, key: Any) -> Any:
        if field_of(key) is None:
            return getattr(np, self.name)[key]
        arrays = key if isinstance(key, tuple) else (key,)
        return FUNCTIONS[self.concatenate](arrays)


def _broadcast(field: Field, *arrays: Any) -> Any:
    """Return np.broadcast of the shapes of the arrays; the field is ignored."""
    return np.broadcast(*(getattr(x, "floats", x) for x in arrays))


MAKERS: Handlers = {
    "array": partial(_converted, "array"),
    "asanyarray": partial(_converted, "asanyarray"),
    "asarray": partial(_converted, "asarray"),
    "ascontiguousarray": partial(_converted, "ascontiguousarray"),
    "broadcast": _broadcast,
    "empty": _empty,
    "eye": partial(_constant, "eye"),
    "full": _full,
    "identity": partial(_constant, "identity"),
    "ones": partial(_constant, "ones"),
    "zeros": partial(_constant, "zeros"),
}


def _maker(name: str) -> Callable[..., Any]:
    """Return NumPy's maker called `name`, which during a proof calls its entry of `MAKERS`."""
    original = getattr(np, name)

    @functools.wraps(original)
    def make(*args: Any, **kwargs: Any) -> Any:
        field = ACTIVE_FIELD.get()
        if field is None:
            return original(*args, **kwargs)
        return MAKERS[name](field, *args, **kwargs)

    return make


class Vectorize(np.vectorize):
    """Stand-in for np.vectorize that also calls the function on exact numbers, one by one."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return the array of results, or several if the function returns a tuple."""
        field = ACTIVE_FIELD.get()
        if field is None or field_of(args) is None:
            return super().__call__(*args, **kwargs)
        if kwargs or self.excluded or self.signature is not None:
            raise Untraceable(
                "np.vectorize can be traced only without signature, keywords and excluded"
            )
        shape = np.broadcast_shapes(*map(np.shape, args))

        def as_array(values: Any, otype: str | None) -> Any:
            first = values[0].floats if type(values[0]) is Exact else values[0]
            dtype = np.dtype(otype or np.asarray(first).dtype)
            if field_of(values) is None:
                return np.array(values, dtype).reshape(shape)
            if dtype.kind not in "fO":
                raise Untraceable(
                    f"np.vectorize converts all results to {dtype}; pass otypes=[float]"
                )
            return stack([lift(value, field) for value in values]).reshape(shape)

        columns = [np.broadcast_to(arg, shape).reshape(-1) for arg in args]
        results = [self.pyfunc(*row) for row in zip(*columns, strict=True)]
        if not isinstance(results[0], tuple):
            return as_array(results, self.otypes[0] if self.otypes else None)
        outputs = zip(*results, strict=True)
        return tuple(map(as_array, outputs, self.otypes or repeat(None)))


def _as_strided(x: Any, *args: Any, **kwargs: Any) -> Any:
    """Return as_strided(x), also of exact arrays: NumPy's own function does not dispatch."""
    if field_of(x) is None:
        return np.lib.stride_tricks.as_strided(x, *args, **kwargs)
    return FUNCTIONS["as_strided"](x, *args, **kwargs)


def _module_like(module: ModuleType, **replaced: Any) -> ModuleType:
    """Return a module with all names of `module`, some of them `replaced`."""
    copy = ModuleType(module.__name__)
    vars(copy).update(vars(module), **replaced)
    return copy


STRIDE_TRICKS = _module_like(np.lib.stride_tricks, as_strided=_as_strided)
LIB = _module_like(np.lib, stride_tricks=STRIDE_TRICKS)
REPLACED_NAMES = {
    "r_": _ConcatenatingIndex("r_", "hstack"),
    "c_": _ConcatenatingIndex("c_", "column_stack"),
    "vectorize": Vectorize,
    **{name: _maker(name) for name in MAKERS},
}
NUMPY = _module_like(np, **REPLACED_NAMES, lib=LIB)
# Maps the id of an object of NumPy to the stand-in that copied functions see
STAND_INS: dict[int, Any] = {
    id(np): NUMPY,
    id(np.lib): LIB,
    id(np.lib.stride_tricks): STRIDE_TRICKS,
    id(np.lib.stride_tricks.as_strided): _as_strided,
    **{id(getattr(np, name)): stand_in for name, stand_in in REPLACED_NAMES.items()},
}

# --- NumPy's own functions in Python: copies of them run, which call the stand-ins of makers

# Helpers written in C, which take floats alone: functions that call them are not copied
COMPILED_HELPERS = {
    "_wrapfunc",
    "_array_converter",
    "_umath_linalg",
}


@functools.cache
def _names_in(module: str) -> dict[str, Any]:
    """Return the global names for copies of the functions of `module`, one of NumPy's modules.

    Makers are replaced by their stand-ins, and functions of the module by their own copies.
    """
    names = vars(sys.modules[module]).copy()
    for name, value in names.items():
        if isinstance(value, FunctionType) and value.__globals__["__name__"] == module:
            names[name] = _copy(value, names)
        else:
            names[name] = STAND_INS.get(id(value), value)
    return names


def _copy(function: FunctionType, names: dict[str, Any]) -> FunctionType:
    """Return a function with the same code, whose global names are `names`."""
    copy = FunctionType(
        function.__code__,
        names,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    copy.__kwdefaults__ = function.__kwdefaults__
    return copy


def _add_python_functions(prefix: str, module: ModuleType) -> None:
    """Register in `FUNCTIONS` copies of the functions that NumPy writes in Python.

    They run on exact numbers as they are. `prefix` is put before their names, such as "linalg.".
    """
    for name, function in vars(module).items():
        if type(function) is not type(np.sum):
            continue
        inner = inspect.unwrap(function)
        if not isinstance(inner, FunctionType):
            continue
        if COMPILED_HELPERS.isdisjoint(inner.__code__.co_names):
            names = _names_in(inner.__globals__["__name__"])
            FUNCTIONS.setdefault(f"{prefix}{name}", _copy(inner, names))


_add_python_functions("", np)
_add_python_functions("linalg.", np.linalg)

# --- functions of scipy.special that are no ufuncs


def _logsumexp(
    a: Any, axis: Any = None, b: Any = None, keepdims: bool = False
) -> Exact:
    """Return log sum b e^a over `axis`; b is 1 by default."""
    terms = exp(a)
    if b is not None:
        terms = terms * b
    return log(FUNCTIONS["sum"](terms, axis, keepdims))


def _softmax(x: Any, axis: Any = None) -> Exact:
    """Return the softmax e^x / sum e^x over `axis`."""
    return exp(x) / FUNCTIONS["sum"](exp(x), axis, True)


SCIPY_FUNCTIONS: Handlers = {
    "log_softmax": lambda x, axis=None: x - _logsumexp(x, axis, keepdims=True),
    "logsumexp": _logsumexp,
    "polygamma": lambda n, x: polygamma(int(n))(x),
    "softmax": _softmax,
}


def scipy_stand_in(value: Any) -> Any:
    """Return the exact version of a function of `scipy.special`; None for any other value."""
    if type(value) is not FunctionType or value.__name__ not in SCIPY_FUNCTIONS:
        return None
    name = value.__name__
    original = vars(sys.modules.get("scipy.special", ModuleType(""))).get(name)
    if original is None:
        return None
    inner = inspect.unwrap(original)
    if value is not original and value is not inner:
        return None

    @functools.wraps(inner)
    def function(*args: Any, **kwargs: Any) -> Any:
        if field_of(args) is None:
            return inner(*args, **kwargs)
        return SCIPY_FUNCTIONS[name](*args, **kwargs)

    return function
