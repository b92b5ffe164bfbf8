"""Versions of np.zeros, np.array and the like that make exact arrays while a proof runs.

``out = np.zeros(3)`` followed by ``out[0] = x`` asks NumPy to make a float of an exact number,
which would lose its derivative. So a proof runs copies of the user's functions (see `copies`), for
which the name ``np`` stands for another module. Its *makers* of arrays, such as np.zeros, make
exact arrays during a proof, and call NumPy's own functions otherwise. `numpy` itself is unchanged.
Functions of NumPy that are written in Python run unchanged, as copies that see these makers. The
functions of `scipy.special` that are no ufuncs have exact versions, too.
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
from ..structures import as_tuple
from .arrays import Exact, Handlers, field_of, floats_of, lift, stack, uninitialized
from .functions import exp, log, polygamma
from .linear import FUNCTIONS

__all__ = ["ACTIVE_FIELD", "NUMPY", "STAND_INS", "Vectorize", "scipy_stand_in"]

# The field of the proof whose copied function is running; None outside of proofs
ACTIVE_FIELD: ContextVar[Field | None] = ContextVar("field", default=None)


def _holds_floats(dtype: Any) -> bool:
    """Return whether a dtype is one of floats or objects, which exact numbers can replace.

    None stands for the default, float.
    """
    return dtype is None or np.dtype(dtype).kind in "fO"


def _constant(name: str, field: Field, *args: Any, **kwargs: Any) -> Any:
    """Return np.zeros, np.ones, np.eye or the like, as `name` says, as an exact array.

    `args` and `kwargs` are those of NumPy's function. An array of integers or bools is returned as
    NumPy makes it.
    """
    array = getattr(np, name)(*args, **kwargs)
    if array.dtype.kind != "f":
        return array
    return lift(array.astype(float), field)


def _full(
    field: Field, shape: Any, fill_value: Any, dtype: Any = None, **kwargs: Any
) -> Any:
    """Return np.full(shape, fill_value) as an exact array; the fill value may be exact."""
    if field_of(fill_value) is None:
        return _constant("full", field, shape, fill_value, dtype, **kwargs)
    out = lift(np.zeros(shape), field)
    out[...] = fill_value
    return out


def _empty(field: Field, shape: Any, dtype: Any = None, **kwargs: Any) -> Any:
    """Return np.empty; for a dtype of floats, an exact array filled with one random number."""
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
    """Return np.array, np.asarray or the like, as `name` says, of `values` with exact numbers.

    Values without exact numbers are passed to NumPy's function. `Untraceable` is raised if `dtype`
    is one of integers or the like, which cannot hold exact numbers.
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
    """Replacement of np.r_ or np.c_ that also joins exact arrays."""

    def __init__(self, name: str, concatenate: str) -> None:
        self.name = name
        self.concatenate = concatenate

    def __getitem__(self, key: Any) -> Any:
        if field_of(key) is None:
            return getattr(np, self.name)[key]
        return FUNCTIONS[self.concatenate](as_tuple(key))


def _broadcast(field: Field, *arrays: Any) -> Any:
    """Return np.broadcast of exact or other arrays, by their floats; the field is ignored."""
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
    """Return a version of NumPy's function `name` that calls `MAKERS[name]` during a proof."""
    original = getattr(np, name)

    @functools.wraps(original)
    def make(*args: Any, **kwargs: Any) -> Any:
        field = ACTIVE_FIELD.get()
        if field is None:
            return original(*args, **kwargs)
        return MAKERS[name](field, *args, **kwargs)

    return make


class Vectorize(np.vectorize):
    """Replacement of np.vectorize that also calls the function on exact numbers, one by one."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return the array of results, or a tuple of arrays if the function returns tuples."""
        field = ACTIVE_FIELD.get()
        if field is None or field_of(args) is None:
            return super().__call__(*args, **kwargs)
        if kwargs or self.excluded or self.signature is not None:
            raise Untraceable(
                "np.vectorize can be traced only without signature, keywords and excluded"
            )
        shape = np.broadcast_shapes(*map(np.shape, args))

        def as_array(values: Any, otype: str | None) -> Any:
            first = np.asarray(floats_of(values[0]))
            dtype = np.dtype(otype or first.dtype)
            if field_of(values) is None:
                return np.array(values, dtype).reshape(shape)
            if dtype.kind not in "fO":
                raise Untraceable(
                    f"np.vectorize converts all results to {dtype}; pass otypes=[float]"
                )
            return stack([lift(value, field) for value in values]).reshape(shape)

        columns = [np.broadcast_to(arg, shape).reshape(-1) for arg in args]
        results = [self.pyfunc(*row) for row in zip(*columns, strict=True)]
        otypes = iter(self.otypes or repeat(None))
        if not isinstance(results[0], tuple):
            return as_array(results, next(otypes))
        outputs = zip(*results, strict=True)
        return tuple(map(as_array, outputs, otypes))


def _as_strided(x: Any, *args: Any, **kwargs: Any) -> Any:
    """Return as_strided(x) of an exact or another array.

    NumPy's own function does not call ``__array_function__``, by which exact arrays replace others.
    """
    if field_of(x) is None:
        return np.lib.stride_tricks.as_strided(x, *args, **kwargs)
    return FUNCTIONS["as_strided"](x, *args, **kwargs)


def _module_like(module: ModuleType, **replaced: Any) -> ModuleType:
    """Return a new module with the attributes of `module`, except for those in `replaced`."""
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
# Maps the id of an object of NumPy to its replacement, which copied functions see instead
STAND_INS: dict[int, Any] = {
    id(np): NUMPY,
    id(np.lib): LIB,
    id(np.lib.stride_tricks): STRIDE_TRICKS,
    id(np.lib.stride_tricks.as_strided): _as_strided,
    **{id(getattr(np, name)): stand_in for name, stand_in in REPLACED_NAMES.items()},
}

# --- functions that NumPy writes in Python: copies of them call the makers above

# Names of helpers written in C, which take floats only: functions that use them are not copied
COMPILED_HELPERS = {
    "_wrapfunc",
    "_array_converter",
    "_umath_linalg",
}


@functools.cache
def _names_in(module: str) -> dict[str, Any]:
    """Return the global variables that copied functions of a module of NumPy use, by name.

    Makers are replaced by those of `STAND_INS`, and functions of the module by their copies.
    """
    names = vars(sys.modules[module]).copy()
    for name, value in names.items():
        if isinstance(value, FunctionType) and value.__globals__["__name__"] == module:
            names[name] = _copy(value, names)
        else:
            names[name] = STAND_INS.get(id(value), value)
    return names


def _copy(function: FunctionType, names: dict[str, Any]) -> FunctionType:
    """Return a copy of `function` that looks up its global variables in the dict `names`."""
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

    Their code needs no change for exact numbers. `prefix`, such as "linalg.", is put before their
    names. Functions that are registered already are kept.
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
    """Return the log of the sum of b e^a over `axis`; b is 1 by default, axis None is all axes."""
    terms = exp(a)
    if b is not None:
        terms = terms * b
    return log(FUNCTIONS["sum"](terms, axis, keepdims))


def _softmax(x: Any, axis: Any = None) -> Exact:
    """Return the softmax of x, e^x divided by its sum over `axis`; None is all axes."""
    return exp(x) / FUNCTIONS["sum"](exp(x), axis, True)


SCIPY_FUNCTIONS: Handlers = {
    "log_softmax": lambda x, axis=None: x - _logsumexp(x, axis, keepdims=True),
    "logsumexp": _logsumexp,
    "polygamma": lambda n, x: polygamma(int(n))(x),
    "softmax": _softmax,
}


def scipy_stand_in(value: Any) -> Any:
    """Return a version for exact arrays if `value` is a function of `SCIPY_FUNCTIONS`, else None.

    The version passes calls without exact numbers to SciPy's function.
    """
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
