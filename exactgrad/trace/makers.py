"""Makers of arrays as `copies` of a user's functions see them: `np.zeros` is exact there.

``out = np.zeros(3)`` followed by ``out[0] = x`` asks NumPy to make a float of an exact number. So
for copies the name ``np`` stands for another module, and names of makers for others: while a proof
calls them they make exact arrays, and else they are NumPy's. `numpy` itself stays as it is.
Functions that NumPy writes in Python run as they are, as copies that see these makers. The
functions of `scipy.special` that are no ufuncs have others, too.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from contextvars import ContextVar
from itertools import repeat
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from ..fields.finite import Field, Untraceable
from .arrays import Exact, field_of, lift, stack, uninitialized
from .functions import exp, log, polygamma
from .linear import FUNCTIONS

__all__ = ["ACTIVE_FIELD", "NUMPY", "STAND_INS", "Vectorize", "of_scipy"]

ACTIVE_FIELD: ContextVar[Field | None] = ContextVar(
    "field", default=None
)  # of the call of a copy


def _floats(dtype: Any) -> bool:
    return dtype is None or np.dtype(dtype).kind in "fO"


def _constant(name: str) -> Callable[..., Any]:
    """Return np.zeros, np.ones or np.eye."""

    def make(field: Field, *args: Any, **kwargs: Any) -> Any:
        made = getattr(np, name)(*args, **kwargs)
        return lift(made.astype(float), field) if made.dtype.kind == "f" else made

    return make


def _full(
    field: Field, shape: Any, fill_value: Any, dtype: Any = None, **kwargs: Any
) -> Any:
    if field_of(fill_value) is None:
        return _constant("full")(field, shape, fill_value, dtype, **kwargs)
    out = lift(np.zeros(shape), field)
    out[...] = fill_value
    return out


def _empty(field: Field, shape: Any, dtype: Any = None, **kwargs: Any) -> Any:
    return (
        uninitialized(field, shape)
        if _floats(dtype)
        else np.empty(shape, dtype, **kwargs)
    )


def _exact(name: str) -> Callable[..., Any]:
    """Return np.array or np.asarray of exact numbers, and of lists of them."""

    def make(
        field: Field, values: Any, dtype: Any = None, ndmin: int = 0, **kwargs: Any
    ) -> Any:
        if field_of(values) is None:
            return getattr(np, name)(
                values, dtype, **({"ndmin": ndmin} if ndmin else {}), **kwargs
            )
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
    **{
        name: _exact(name)
        for name in ("array", "asarray", "asanyarray", "ascontiguousarray")
    },
    "empty": _empty,
    "full": _full,
    "broadcast": lambda field, *arrays: np.broadcast(
        *(getattr(x, "floats", x) for x in arrays)
    ),
}


def _maker(name: str) -> Callable[..., Any]:
    """Return a maker that is NumPy's but in a proof."""
    original = getattr(np, name)

    @functools.wraps(original)
    def make(*args: Any, **kwargs: Any) -> Any:
        field = ACTIVE_FIELD.get()
        return (
            original(*args, **kwargs)
            if field is None
            else MAKERS[name](field, *args, **kwargs)
        )

    return make


class Vectorize(np.vectorize):
    """np.vectorize, also of exact numbers: one after the other."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return the results, several if the function returns a tuple."""
        field = ACTIVE_FIELD.get()
        if field is None or field_of(args) is None:
            return super().__call__(*args, **kwargs)
        if kwargs or self.excluded or self.signature is not None:
            raise Untraceable(
                "np.vectorize with a signature, keywords or excluded arguments"
            )
        shape = np.broadcast_shapes(*map(np.shape, args))

        def result(values: Any, otype: str | None) -> Any:
            first = values[0].floats if type(values[0]) is Exact else values[0]
            dtype = np.dtype(otype or np.asarray(first).dtype)
            if field_of(values) is None:
                return np.array(values, dtype).reshape(shape)
            if dtype.kind not in "fO":
                raise Untraceable(
                    f"np.vectorize makes {dtype} of all results: say otypes=[float]"
                )
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
    return (original if field_of(x) is None else FUNCTIONS["as_strided"])(
        x, *args, **kwargs
    )


NUMPY = ModuleType("numpy")
OTHERS = {"r_": _Joined("r_", "hstack"), "c_": _Joined("c_", "column_stack"),
          "vectorize": Vectorize, **{name: _maker(name) for name in MAKERS}}  # fmt: skip
vars(NUMPY).update(vars(np), **OTHERS)
STAND_INS = {
    id(np): NUMPY,
    **{id(getattr(np, name)): one for name, one in OTHERS.items()},
}
STRIDE_TRICKS, LIB = ModuleType("numpy.lib.stride_tricks"), ModuleType("numpy.lib")
vars(STRIDE_TRICKS).update(vars(np.lib.stride_tricks), as_strided=_as_strided)
vars(LIB).update(vars(np.lib), stride_tricks=STRIDE_TRICKS)
vars(NUMPY).update(lib=LIB)
STAND_INS |= {id(np.lib): LIB, id(np.lib.stride_tricks): STRIDE_TRICKS}
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
    what = (
        function.__code__,
        names,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    made = FunctionType(*what)
    made.__kwdefaults__ = function.__kwdefaults__
    return made


COMPILED = {"_wrapfunc", "_array_converter", "_umath_linalg"}  # that take floats alone
for _name, _one in [
    *vars(np).items(),
    *((f"linalg.{k}", f) for k, f in vars(np.linalg).items()),
]:
    _inner = inspect.unwrap(_one) if type(_one) is type(np.sum) else None
    if isinstance(_inner, FunctionType) and COMPILED.isdisjoint(
        _inner.__code__.co_names
    ):
        FUNCTIONS.setdefault(
            _name, _copy(_inner, _names_in(_inner.__globals__["__name__"]))
        )

# --- functions of scipy.special that are no ufuncs


def _logsumexp(
    a: Any, axis: Any = None, b: Any = None, keepdims: bool = False
) -> Exact:
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
    "polygamma": lambda n, x: polygamma(int(n))(x),
}


def of_scipy(value: Any) -> Any:
    """Return what stands for a function of `scipy.special`; None if this is none of them."""
    if type(value) is not FunctionType or value.__name__ not in OF_SCIPY:
        return None
    name = value.__name__
    original = vars(sys.modules.get("scipy.special", ModuleType(""))).get(name)
    inner = None if original is None else inspect.unwrap(original)
    if inner is None or (value is not original and value is not inner):
        return None

    @functools.wraps(inner)
    def function(*args: Any, **kwargs: Any) -> Any:
        return (inner if field_of(args) is None else OF_SCIPY[name])(*args, **kwargs)

    return function
