"""Arrays of exact numbers, by NumPy's own protocols (D44).

An `Exact` has residues of its numbers and of their derivatives along one direction, and floats,
which decide comparisons and nothing else: plain arrays, on which NumPy's functions are built from
those of a field. Slices and reshapes are views, so that what is written through a view arrives. A
function or a keyword that is not known here is refused.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import pairwise
from math import inf, prod
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import NDArray

from ..fields.finite import MAX_RECORDED_SQUARES, Field, Untraceable

__all__ = [
    "FUNCTIONS",
    "UFUNCS",
    "Exact",
    "comparison_of",
    "field_of",
    "lift",
    "lift_all",
    "select",
]

Array = NDArray[Any]
# By the names of NumPy's functions; modules above add theirs
UFUNCS: dict[str, Callable[..., Any]] = {}
REDUCTIONS: dict[str, Callable[..., Any]] = {}
FUNCTIONS: dict[str, Callable[..., Any]] = {}
IGNORED_KEYWORDS = (
    "casting",
    "order",
    "subok",
)  # keywords of ufuncs that change no number
FULL_SLICE = slice(None)


def _in_place(name: str) -> Any:
    of_arrays = getattr(NDArrayOperatorsMixin, f"__i{name}__")
    of_numbers = getattr(NDArrayOperatorsMixin, f"__{name}__")
    return lambda self, other: (of_numbers if self.is_scalar else of_arrays)(
        self, other
    )


class Exact(NDArrayOperatorsMixin):
    """An array of exact numbers.

    `r` (..., 2, C) are the residues of numbers and derivatives, `v` (...) the floats, and `note`
    (..., 3, C) what the field knows of logarithms in the numbers, or None.
    """

    __slots__ = ("field", "floats", "is_scalar", "log_terms", "residues")
    __array_priority__: ClassVar[float] = 1000.0

    def __init__(
        self, field: Field, r: Array, v: Any, note: Array | None = None
    ) -> None:
        self.field, self.residues, self.floats, self.log_terms = (
            field,
            r,
            np.asarray(v),
            note,
        )
        self.is_scalar = (
            not self.floats.ndim
        )  # and no view; an element that an ellipsis asks for is one

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """For code that asks whether it is an array."""
        return np.ndarray

    primal = property(lambda self: self.residues[..., 0, :])
    tangent = property(lambda self: self.residues[..., 1, :])
    has_tangent = property(lambda self: bool(self.tangent.any()))
    shape = property(lambda self: self.floats.shape)
    ndim = property(lambda self: self.floats.ndim)
    size = property(lambda self: self.floats.size)
    dtype = property(lambda self: self.floats.dtype)
    flags = property(lambda self: self.floats.flags)
    itemsize = property(lambda self: self.floats.itemsize)
    nbytes = property(lambda self: self.floats.nbytes)
    strides = property(lambda self: self.floats.strides)
    base = property(lambda self: self.floats.base)
    T = property(lambda self: self.transpose())
    mT = property(lambda self: self.swapaxes(-1, -2))
    flat = property(lambda self: _sealed(self.reshape(-1), unless=self))
    real = property(lambda self: self, lambda self, value: self.__setitem__(..., value))
    imag = property(lambda self: lift(np.zeros(self.shape), self.field))

    def __len__(self) -> int:
        return len(self.floats)

    def __iter__(self) -> Iterator[Exact]:
        return (self[i] for i in range(len(self)))

    def __repr__(self, spec: str = "") -> str:
        """Say no number, and note that text was asked for: a branch may hang on it."""
        self.field.path.append(np.ones(1, bool))
        return f"exact numbers {self.shape}"

    __str__ = __format__ = __repr__

    def __float__(self) -> float:
        raise Untraceable(
            "a float is made of an exact number, which would lose its derivative"
        )

    __int__ = __index__ = __complex__ = __float__

    def __array__(self, *_: Any, **__: Any) -> Array:
        raise Untraceable(
            "an array of floats is made of exact numbers, which would be lost"
        )

    def __bool__(self) -> bool:
        return bool(comparison_of(operator.ne)(self, 0))

    __hash__ = None  # type: ignore[assignment]

    # --- views and copies

    def map_views(self, f: Callable[[Array, tuple[int, ...]], Array]) -> Exact:
        """Return views: f(part, its axes after those of the numbers)."""
        note = (
            None
            if self.log_terms is None
            else f(self.log_terms, self.log_terms.shape[self.ndim :])
        )
        return Exact(
            self.field,
            f(self.residues, self.residues.shape[self.ndim :]),
            f(self.floats, ()),
            note,
        )

    def __getitem__(self, index: Any) -> Exact:
        at = _index(index)
        note = (
            None
            if self.log_terms is None
            else self.log_terms[(*at, FULL_SLICE, FULL_SLICE)]
        )
        found = Exact(
            self.field,
            self.residues[(*at, FULL_SLICE, FULL_SLICE)],
            self.floats[at],
            note,
        )
        found.is_scalar = not (found.ndim or at is index or index is ...)
        return found.copy() if found.is_scalar else found

    def __setitem__(self, index: Any, value: Any) -> None:
        at, value = _index(index), lift(value, self.field)
        self.floats[at], self.residues[(*at, FULL_SLICE, FULL_SLICE)] = (
            value.floats,
            value.residues,
        )
        if self.log_terms is None and value.log_terms is not None:
            self.log_terms = _noted(self)
        if self.log_terms is not None:
            self.log_terms[(*at, FULL_SLICE, FULL_SLICE)] = (
                self.field.no_log_term if value.log_terms is None else value.log_terms
            )

    def reshape(self, *shape: Any, order: str = "C") -> Exact:
        """Return a view of another shape; of columns first, if order is "F"."""
        if order == "F":
            return self.T.reshape(*self.floats.reshape(*shape).shape[::-1]).T
        if order not in "CA":
            raise Untraceable(f"order={order!r} of reshape")
        wanted = (
            shape[0]
            if len(shape) == 1 and not isinstance(shape[0], Integral)
            else shape
        )
        new = self.floats.reshape(wanted).shape
        return self.map_views(lambda part, rest: part.reshape(new + rest))

    def transpose(self, *axes: Any) -> Exact:
        """Return a view with axes in another order."""
        given = (
            axes[0] if len(axes) == 1 and not isinstance(axes[0], Integral) else axes
        )
        order = tuple(k % self.ndim for k in given or range(self.ndim)[::-1])
        last = (self.ndim, self.ndim + 1)
        return self.map_views(
            lambda part, rest: part.transpose(order + last[: len(rest)])
        )

    def swapaxes(self, one: int, other: int) -> Exact:
        """Return a view with two axes exchanged."""
        axes = one % self.ndim, other % self.ndim
        return self.map_views(lambda part, _: part.swapaxes(*axes))

    def squeeze(self, axis: Any = None) -> Exact:
        """Return a view without axes of length 1."""
        return self.reshape(self.floats.squeeze(axis).shape)

    def ravel(self, order: str = "C") -> Exact:
        """Return a flat view; as they lie in memory, if order is "K"."""
        if order == "K":
            return self.transpose(
                *np.argsort(np.abs(self.floats.strides))[::-1]
            ).reshape(-1)
        return self.reshape(-1, order=order)

    def copy(self, order: str = "C") -> Exact:
        """Return numbers of their own memory."""
        return self.map_views(lambda part, _: part.copy())

    __copy__ = conj = conjugate = copy  # all are real

    def __deepcopy__(self, memo: Any) -> Exact:
        return self.copy()

    def flatten(self, order: str = "C") -> Exact:
        """Return a flat copy."""
        return self.reshape(-1, order=order).copy()

    def view(self, dtype: Any = float, type: Any = np.ndarray) -> Exact:
        """Return a view of all numbers."""
        kind = np.ndarray if dtype is np.ndarray else np.dtype(dtype)
        if type is not np.ndarray or kind not in (np.ndarray, np.float64):
            raise Untraceable(f"exact numbers are seen as {dtype} and {type}")
        return self.map_views(lambda part, _: part[...])

    def stop_gradient(self) -> Exact:
        """Return the same numbers, which do not move."""
        return Exact(
            self.field,
            dual_residues(self.field, self.primal),
            self.floats.copy(),
            self.log_terms,
        )

    def astype(self, dtype: Any, copy: bool = True, **_: Any) -> Exact:
        """Return the numbers; refuse to make whole numbers of them."""
        if np.dtype(dtype).kind not in "fcO":
            raise Untraceable(f"exact numbers are made {np.dtype(dtype)}")
        return self.copy() if copy else self

    def item(self, *index: Any) -> Exact:
        """Return one number."""
        return self.ravel()[index[0]] if len(index) == 1 else self[index]

    def fill(self, value: Any) -> None:
        """Write one number everywhere."""
        self[...] = value

    # --- in place: a number is another one then, as NumPy's are

    __iadd__, __isub__ = _in_place("add"), _in_place("sub")
    __imul__, __itruediv__ = _in_place("mul"), _in_place("truediv")
    __ipow__ = _in_place("pow")

    # --- NumPy's protocols

    def __array_ufunc__(
        self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any
    ) -> Any:
        name, out, where = (
            ufunc.__name__,
            kwargs.pop("out", None),
            kwargs.pop("where", True),
        )
        kwargs = {
            key: value for key, value in kwargs.items() if key not in IGNORED_KEYWORDS
        }
        if np.dtype(kwargs.pop("dtype", None) or float).kind != "f":
            raise Untraceable(f"np.{name} with a dtype")
        if method == "__call__" and name in UFUNCS:
            found = UFUNCS[name](*inputs, **kwargs)
        elif method == "reduce" and name in REDUCTIONS:
            kwargs |= {} if where is True else {"where": where}
            kwargs |= {} if len(inputs) > 1 or "axis" in kwargs else {"axis": 0}
            found, where = REDUCTIONS[name](*inputs, **kwargs), True
        elif method == "outer" and name in UFUNCS:
            x, y = lift_all(*inputs)
            found = UFUNCS[name](x.reshape(x.shape + (1,) * y.ndim), y, **kwargs)
        elif method == "accumulate" and name in ("add", "multiply"):
            running = FUNCTIONS["cumsum" if name == "add" else "cumprod"]
            found = running(*inputs, **({"axis": 0} | kwargs))
        elif method == "reduceat" and name == "add":
            found = _sums_between(*inputs, **kwargs)
        elif method == "at" and name in ("add", "subtract"):
            return _added_at(1 if name == "add" else -1, *inputs)
        else:
            raise Untraceable(
                f"np.{name}{' is not known' if method == '__call__' else '.' + method}"
            )
        return found if out is None else write_into(found, out[0], where)

    def __array_function__(
        self, function: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        name = (
            "linalg." if "linalg" in function.__module__ else ""
        ) + function.__name__
        if name not in FUNCTIONS:
            raise Untraceable(f"np.{name}")
        out = kwargs.pop("out", None)
        if np.dtype(kwargs.get("dtype") or float).kind == "f":
            kwargs.pop("dtype", None)
        found = FUNCTIONS[name](*args, **kwargs)
        return found if out is None else write_into(found, out)


def _index(index: Any) -> tuple[Any, ...]:
    """Return an index with an ellipsis: slices of the axes after those of the numbers follow."""
    parts = index if isinstance(index, tuple) else (index,)
    if any(type(part) is Exact for part in parts):
        raise Untraceable("an index is an exact number")
    return parts if any(part is Ellipsis for part in parts) else (*parts, ...)


def _sealed(x: Exact, unless: Exact) -> Exact:
    """Return numbers that cannot be written, unless they are a view: what is written was lost."""
    x.residues.flags.writeable = x.floats.flags.writeable = np.may_share_memory(
        x.floats, unless.floats
    )
    return x


def write_into(found: Any, out: Any, where: Any = True) -> Any:
    """Write a result into `out`, and return it."""
    if type(out) is not Exact:
        if type(found) is Exact:
            raise Untraceable("exact numbers are written into an array of floats")
        np.copyto(out, found, where=where)
    elif where is True:
        out[...] = found
    else:
        chosen = np.broadcast_to(where, out.shape)
        out[chosen] = broadcast_to(lift(found, out.field), out.shape)[chosen]
    return out


# --- how exact numbers are made


def dual_residues(field: Field, a: Array, b: Array | None = None) -> Array:
    """Return residues (..., 2, C) of numbers and derivatives, both (..., C)."""
    r = np.zeros((*a.shape[:-1], 2, field.n_channels), field.dtype)
    r[..., 0, :] = a
    if b is not None:
        r[..., 1, :] = b
    return r


def apply_slope(
    x: Exact, a: Array, slope: Array, v: Any, note: Array | None = None
) -> Exact:
    """Return a function of x by its numbers and its slope: the chain rule."""
    return Exact(x.field, dual_residues(x.field, a, _chained(x, slope)), v, note)


def _chained(x: Exact, slope: Array) -> Array:
    """Return the slope times that of x: 0 where x stands still, be the slope infinite."""
    b = x.field.mul(slope, x.tangent)
    return np.where(x.tangent == 0, 0 * x.field.one, b) if x.field.is_decimal else b


def lift(x: Any, field: Field) -> Exact:
    """Return numbers and arrays as exact ones of a field: whole numbers, floats and fractions."""
    if type(x) is Exact:
        if x.field is not field:
            raise Untraceable(
                "a number of an earlier call is used: the function keeps it"
            )
        return x
    if type(x) is float or type(x) is int:
        found = field.exact_constants.get((x, type(x)))
        if found is None:
            found = field.exact_constants[x, type(x)] = lift(np.asarray(x), field)
            found.residues.flags.writeable = found.floats.flags.writeable = False
        return found
    if isinstance(x, Fraction):
        return Exact(field, dual_residues(field, field.from_fraction(x)), float(x))
    if isinstance(x, list | tuple) and len(x):
        return stack([lift(one, field) for one in x])
    v = np.asarray(x)
    if v.dtype.kind == "O" and v.size:
        return stack([lift(one, field) for one in v.reshape(-1)]).reshape(v.shape)
    if v.dtype.kind not in "biuf":
        raise Untraceable(f"{x!r} has no exact form")
    whole = v.dtype.kind != "f"
    field.has_infinity |= not whole and bool(np.isinf(v).any())
    a = (
        field.from_integers(v.astype(np.int64))
        if whole
        else field.from_floats(v.astype(float))
    )
    return Exact(field, dual_residues(field, a), v.astype(float))


def field_of(value: Any) -> Field | None:
    """Return the field of exact numbers, also of the first in lists of lists; None if none is."""
    if type(value) is Exact:
        return value.field
    for one in value if isinstance(value, list | tuple) else ():
        if (found := field_of(one)) is not None:
            return found
    return None


def lift_all(*values: Any) -> list[Exact]:
    """Return all arguments as exact ones of the field of the first that is."""
    field = field_of(values)
    if field is None:
        raise Untraceable("no exact number is among the arguments")
    return [lift(one, field) for one in values]


def _noted(x: Exact) -> Array:
    """Return the notes of numbers; of those in which no logarithm is known, neutral ones."""
    if x.log_terms is not None:
        return x.log_terms
    return np.broadcast_to(
        x.field.no_log_term, (*x.shape, 3, x.field.n_channels)
    ).copy()


# --- arithmetic


def add(x: Any, y: Any, sign: int = 1) -> Exact:
    """Return x + y, or with sign -1 x - y."""
    x, y = lift_all(x, y)
    field, note = x.field, None
    if x.log_terms is not None or y.log_terms is not None:
        one, other = np.broadcast_arrays(_noted(x), _noted(y))
        note = field.add_log_terms(
            one, other if sign == 1 else field.negate_log_terms(other)
        )
    v = x.floats + y.floats if sign == 1 else x.floats - y.floats
    return Exact(
        field, (field.add if sign == 1 else field.sub)(x.residues, y.residues), v, note
    )


def _negative(x: Exact) -> Exact:
    note = None if x.log_terms is None else x.field.negate_log_terms(x.log_terms)
    return Exact(x.field, x.field.neg(x.residues), -x.floats, note)


def _gated(mask: Array, x: Exact) -> Exact:
    """Return x times truth values: a gate."""
    keep = np.asarray(mask)[..., None, None]
    note = (
        None
        if x.log_terms is None
        else np.where(keep, x.log_terms, x.field.no_log_term)
    )
    return Exact(
        x.field, np.where(keep, x.residues, 0 * x.field.one), mask * x.floats, note
    )


def multiply(x: Any, y: Any) -> Exact:
    """Return x y: (x y)' = x y' + x' y."""
    for number, other in ((x, y), (y, x)):
        if type(number) is not Exact and getattr(number, "dtype", None) == np.bool_:
            return _gated(number, other)
    x, y = lift_all(x, y)
    field = x.field
    r = field.mul(x.residues, y.primal[..., None, :])
    if field.is_decimal:
        r[..., 1, :] = _chained(x, y.primal)
    if y.has_tangent:
        r[..., 1, :] = field.add(r[..., 1, :], _chained(y, x.primal))
    note = None
    if (x.log_terms is None) != (y.log_terms is None):
        note = (
            field.scale_log_terms(x.log_terms, y.primal)
            if y.log_terms is None
            else field.scale_log_terms(y.log_terms, x.primal)
        )
    out = Exact(field, r, x.floats * y.floats, note)
    if x is y and 0 < x.size <= MAX_RECORDED_SQUARES:
        field.record_square(out.primal, x.primal, x.floats)
    return out


def divide(x: Any, y: Any) -> Exact:
    """Return the quotient q = x / y: q' = (x' - q y') / y."""
    x, y = lift_all(x, y)
    field, over = x.field, x.field.inv(y.primal)
    field.record_zeros(y.primal, y.floats)
    r = field.mul(x.residues, over[..., None, :])
    if y.has_tangent:
        r[..., 1, :] = field.sub(
            r[..., 1, :], field.mul(field.mul(r[..., 0, :], y.tangent), over)
        )
        if (
            field.is_decimal and np.isinf(y.floats).any()
        ):  # of decimals, whose infinity is one
            exists = y.tangent[..., 0] == y.tangent[..., 0]
            r[(abs(y.primal[..., 0]) == inf) & (r[..., 0, 0] == 0) & exists] = (
                0 * field.one
            )
    noted = x.log_terms is not None and y.log_terms is None
    return Exact(
        field,
        r,
        x.floats / y.floats,
        field.scale_log_terms(x.log_terms, over) if noted else None,
    )


def power(x: Any, n: Any) -> Exact:
    """Return x^n: by products for whole n, by a root for halves, else exp(n log x)."""
    halves = np.asarray(0.25 if type(n) is Exact else n, float) * 2
    twice = (
        float(halves.flat[0])
        if halves.size and (halves == halves.flat[0]).all()
        else 0.5
    )
    if twice % 1 or type(x) is not Exact:
        x, _ = lift_all(x, n)
        return UFUNCS["exp"](multiply(n, UFUNCS["log"](x)))
    x = broadcast_to(x, np.broadcast_shapes(x.shape, halves.shape))
    factor, times = (
        (UFUNCS["sqrt"](x), abs(twice)) if twice % 2 else (x, abs(twice) // 2)
    )
    out = None
    while times:
        if times % 2:
            out = factor if out is None else factor * out
        times //= 2
        factor = factor * factor if times else factor
    out = lift(np.ones(x.shape), x.field) if out is None else out
    return Exact(
        x.field,
        (out if twice >= 0 else divide(1, out)).residues,
        x.floats ** (twice / 2),
    )


# --- comparisons, by the float

KINK_MESSAGE = (
    "two different numbers of the same size are compared: this theta lies on a kink or "
    "a tie. Take another"
)
TIED_DATA_MESSAGE = (
    "data are compared with a number that they equal: pass labels and masks as "
    "integers or booleans"
)


def _apart(x: Exact, y: Exact) -> None:
    """Refuse what is no number, and ties of different numbers: no path is right then."""
    if np.isnan(x.floats).any() or np.isnan(y.floats).any():
        raise Untraceable(
            "a number that is nan in floats is compared, so no path is right"
        )
    if x.field.is_decimal and (
        (x.primal != x.primal).any() or (y.primal != y.primal).any()
    ):
        raise Untraceable(
            "a number that is divided by 0 is compared, so no path is right"
        )
    tie = x.floats == y.floats  # also of numbers that are beyond all floats
    if (
        tie.any()
        and not x.field.is_decimal
        and (tie & (x.primal != y.primal).any(axis=-1)).any()
    ):
        raise Untraceable(
            KINK_MESSAGE if x.has_tangent or y.has_tangent else TIED_DATA_MESSAGE
        )


def comparison_of(operation: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Return a comparison of floats."""

    def comparison(x: Any, y: Any) -> Any:
        x, y = lift_all(x, y)
        _apart(x, y)
        found = operation(x.floats, y.floats)
        x.field.path.append(np.ravel(found))
        return found

    return comparison


def select(condition: Any, x: Any, y: Any) -> Exact:
    """Return x where the condition holds, else y."""
    if type(condition) is Exact:
        condition = comparison_of(np.not_equal)(condition, 0)
    x, y = lift_all(x, y)
    keep = np.asarray(condition)[..., None, None]
    noted = x.log_terms is not None or y.log_terms is not None
    note = np.where(keep, _noted(x), _noted(y)) if noted else None
    return Exact(
        x.field,
        np.where(keep, x.residues, y.residues),
        np.where(condition, x.floats, y.floats),
        note,
    )


def _where(condition: Any, *branches: Any) -> Any:
    if field_of(branches) is not None:
        return select(condition, *branches)
    return np.where(comparison_of(np.not_equal)(condition, 0), *branches)


def of_floats(function: Callable[..., Any], path: bool = True) -> Callable[..., Any]:
    """Return a function of floats alone; what it finds is a comparison, unless it is a shape."""

    def of_exact(*args: Any, **kwargs: Any) -> Any:
        found = function(*(x.floats if type(x) is Exact else x for x in args), **kwargs)
        field = field_of(args)
        if path and field is not None:
            for one in found if isinstance(found, tuple) else (found,):
                seen = np.frombuffer(np.asarray(one).tobytes(), np.uint8)
                field.path.append(np.unpackbits(seen).astype(bool))
        return found

    return of_exact


def _told_from_infinity(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return np.isfinite or the like, which see the pole at theta and nothing near it."""
    of_exact = of_floats(function, path=False)

    def finite(x: Exact, **kwargs: Any) -> Any:
        if x.field.at_pole and not np.isfinite(x.floats).all():
            raise Untraceable(KINK_MESSAGE)
        return of_exact(x, **kwargs)

    return finite


def _larger(x: Any, y: Any) -> Exact:
    return select(comparison_of(np.greater_equal)(x, y), x, y)


def _smaller(x: Any, y: Any) -> Exact:
    return select(comparison_of(np.less_equal)(x, y), x, y)


def _clip(
    x: Any, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None
) -> Any:
    low, high = (a_min if min is None else min), (a_max if max is None else max)
    x = x if low is None else _larger(x, low)
    return x if high is None else _smaller(x, high)


def _sign(x: Exact) -> Array:
    return comparison_of(np.greater)(x, 0) * 1.0 - comparison_of(np.less)(x, 0)


UFUNCS |= dict(
    add=add, multiply=multiply, divide=divide, power=power, float_power=power, negative=_negative,
    positive=Exact.copy, conjugate=Exact.copy, maximum=_larger, fmax=_larger, minimum=_smaller,
    fmin=_smaller, sign=_sign, clip=_clip, subtract=lambda x, y: add(x, y, -1),
    reciprocal=lambda x: divide(1, x), square=lambda x: multiply(x, x),
    absolute=lambda x: select(comparison_of(np.less)(x, 0), _negative(x), x),
)  # fmt: skip
UFUNCS["fabs"] = UFUNCS["absolute"]
for _name in ("less", "less_equal", "greater", "greater_equal", "equal", "not_equal"):
    UFUNCS[_name] = comparison_of(getattr(np, _name))
for _name in ("isfinite", "isnan", "isinf"):  # a value that is not finite is none
    UFUNCS[_name] = _told_from_infinity(getattr(np, _name))
UFUNCS["signbit"] = of_floats(np.signbit)

# --- functions that move numbers


def _moved(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that moves the numbers of an array: asked where NumPy's moves their places.

    Where it puts a 0 there is a 0.
    """

    def by_places(x: Exact, *args: Any, **kwargs: Any) -> Exact:
        at = function(np.arange(1, x.size + 1).reshape(x.shape), *args, **kwargs)
        out = x.reshape(-1)[np.maximum(at - 1, 0)]
        if not np.all(at):
            out[at == 0] = 0.0
        return out

    return by_places


_chosen = _moved(np.take_along_axis)
for _name in (
    "take",
    "take_along_axis",
    "repeat",
    "tile",
    "roll",
    "delete",
    "tril",
    "triu",
):
    FUNCTIONS[_name] = _moved(getattr(np, _name))


def concatenate(arrays: Any, axis: Any = 0, casting: Any = None) -> Exact:
    """Return arrays one after the other."""
    parts = [x.ravel() if axis is None else x for x in lift_all(*arrays)]
    v = np.concatenate([x.floats for x in parts], axis or 0)
    at, noted = (axis or 0) % v.ndim, any(x.log_terms is not None for x in parts)
    note = np.concatenate([_noted(x) for x in parts], at) if noted else None
    return Exact(
        parts[0].field, np.concatenate([x.residues for x in parts], at), v, note
    )


def stack(parts: Any, axis: int = 0) -> Exact:
    """Return arrays as the parts of one, along a new axis."""
    return concatenate(
        [x[(FULL_SLICE,) * (axis % (x.ndim + 1)) + (None,)] for x in parts], axis
    )


def moveaxis(x: Exact, source: int, destination: int) -> Exact:
    """Return a view with one axis moved."""
    one, other = source % x.ndim, destination % x.ndim
    return x.map_views(lambda part, _: np.moveaxis(part, one, other))


def diagonal(x: Exact, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Exact:
    """Return the view of a diagonal, as the last axis."""
    axes, last = (axis1 % x.ndim, axis2 % x.ndim), x.ndim - 2
    return x.map_views(
        lambda part, _: np.moveaxis(part.diagonal(offset, *axes), -1, last)
    )


def _windows(
    x: Exact,
    window_shape: Any,
    axis: Any = None,
    subok: bool = False,
    writeable: bool = False,
) -> Exact:
    def view(part: Array, rest: tuple[int, ...]) -> Array:
        found = np.lib.stride_tricks.sliding_window_view(part, window_shape, axes)
        more = range(found.ndim - part.ndim)
        return np.moveaxis(
            found, [k - len(more) for k in more], [k + x.ndim for k in more]
        )

    axes: Any = _axes(x, axis)
    return x.map_views(view)


def as_strided(
    x: Exact,
    shape: Any = None,
    strides: Any = None,
    subok: bool = False,
    writeable: bool = True,
) -> Exact:
    """Return a view with other strides; refuse one that leaves the array, or writing where it laps.

    Residues lie in memory as their floats do: each stride is the same multiple of that of a float.
    """
    # which of two numbers is in memory that both are written into depends on how arrays lie
    shape = x.shape if shape is None else tuple(map(operator.index, shape))
    strides = x.strides if strides is None else tuple(map(operator.index, strides))
    apart, span = writeable, x.itemsize
    for step, n in sorted(
        (abs(step), n) for step, n in zip(strides, shape, strict=True) if n > 1
    ):
        apart, span = apart and step >= span, span + step * (n - 1)

    def view(part: Array, rest: tuple[int, ...]) -> Array:
        pairs = zip(part.strides, x.floats.strides, x.shape, strict=False)
        steps = [(theirs, own) for theirs, own, n in pairs if n > 1]
        size = next((theirs // own for theirs, own in steps if own), 1)
        if any(theirs != size * own for theirs, own in steps):
            raise Untraceable(
                "as_strided of a result in columns: np.ascontiguousarray comes first"
            )
        further = tuple(size * step for step in strides) + part.strides[x.ndim :]
        return np.lib.stride_tricks.as_strided(
            part, shape + rest, further, writeable=apart
        )

    low, high = np.lib.array_utils.byte_bounds(x.floats)
    start, end = np.lib.array_utils.byte_bounds(view(x.floats, ()))
    if prod(shape) and (start < low or end > high):
        raise Untraceable("as_strided reads what lies beside its array")
    return x.map_views(view)


def _inserted(x: Any, index: Any, values: Any, axis: Any = None) -> Exact:
    x, values = lift_all(x, values)
    at = (np.arange(one.size).reshape(one.shape) for one in (x, values))
    places = np.insert(next(at), index, next(at) + x.size, axis)
    return concatenate([x.ravel(), values.ravel()])[places]


def _meshed(*arrays: Any, **kwargs: Any) -> Any:
    parts = lift_all(*arrays)
    places: Any = np.meshgrid(*(np.arange(x.size) for x in parts), **kwargs)
    return type(places)(x.ravel()[at] for x, at in zip(parts, places, strict=True))


def broadcast_to(x: Exact, shape: tuple[int, ...]) -> Exact:
    """Return a view of a larger shape."""
    return x.map_views(lambda part, rest: np.broadcast_to(part, shape + rest))


def _broadcast(*arrays: Any, subok: bool = False) -> list[Exact]:
    parts = lift_all(*arrays)
    shape = np.broadcast_shapes(*(x.shape for x in parts))
    return [broadcast_to(x, shape) for x in parts]


# --- reductions


def _axes(x: Exact, axis: Any) -> tuple[int, ...]:
    axes = (
        range(x.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    )
    return tuple(operator.index(k) % x.ndim for k in axes) if x.ndim else ()


def _count(x: Exact, axis: Any) -> int:
    return prod(x.shape[k] for k in _axes(x, axis))


def sum_over(
    x: Any,
    axis: Any = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> Exact:
    """Return sums over axes."""
    (x,) = lift_all(x)
    x = x if where is True else _gated(np.broadcast_to(where, x.shape), x)
    axes = _axes(x, axis)
    v = x.floats.sum(axes, keepdims=keepdims)
    r = x.field.sum(x.residues, axes).reshape((*v.shape, 2, x.field.n_channels))
    found = Exact(x.field, r, v)
    return found if initial is None else add(found, initial)


def _mean(x: Any, axis: Any = None, keepdims: bool = False) -> Exact:
    return divide(sum_over(x, axis, keepdims), _count(lift_all(x)[0], axis))


def _var(x: Any, axis: Any = None, ddof: int = 0, keepdims: bool = False) -> Exact:
    off = add(x, _mean(x, axis, keepdims=True), -1)
    return divide(
        sum_over(multiply(off, off), axis, keepdims), _count(off, axis) - ddof
    )


def _cumprod(x: Any, axis: Any = None) -> Exact:
    out: list[Exact] = []
    for row in x.ravel() if axis is None else moveaxis(x, axis, 0):
        out.append(multiply(out[-1], row) if out else row)
    return moveaxis(stack(out), 0, axis or 0)


def _cumsum(x: Any, axis: Any = None) -> Exact:
    x, axis = (x.ravel(), 0) if axis is None else (x, axis % x.ndim)
    return Exact(
        x.field, x.field.cumsum(x.residues, axis), np.cumsum(x.floats, axis=axis)
    )


def _flat(x: Exact, axis: Any) -> Exact:
    """Return a view with some axes as the last one."""
    axes = _axes(x, axis)
    rest = [k for k in range(x.ndim) if k not in axes]
    return x.transpose(*rest, *axes).reshape([x.shape[k] for k in rest] + [-1])


def _product(x: Any, axis: Any = None, keepdims: bool = False) -> Exact:
    (x,) = lift_all(x)
    rest = moveaxis(_flat(x, axis), -1, 0)
    while len(rest) > 1:  # by halves
        half = len(rest) // 2
        rest = concatenate([rest[:half] * rest[half : 2 * half], rest[2 * half :]])
    found = rest[0] if len(rest) else lift(np.ones(rest.shape[1:]), x.field)
    return found.reshape(x.floats.sum(axis, keepdims=keepdims).shape)


def _extreme(pick: Callable[..., Any]) -> Callable[..., Any]:
    """Return the largest or smallest numbers over axes, by np.argmax or np.argmin."""

    def largest(
        x: Any, axis: Any = None, keepdims: bool = False, initial: Any = None
    ) -> Exact:
        flat = _flat(x, axis)
        place = np.expand_dims(pick(flat.floats, axis=-1), -1)
        found = _chosen(flat, place, -1)
        _apart(flat, found)
        x.field.path.append(np.ravel(np.arange(flat.shape[-1]) == place))
        found = found.reshape(x.floats.sum(axis, keepdims=keepdims).shape)
        if initial is None:
            return found
        return (_larger if pick is np.argmax else _smaller)(found, initial)

    return largest


def _place(pick: Callable[..., Any]) -> Callable[..., Any]:
    def place(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
        _extreme(pick)(x, axis)  # looks for ties
        return pick(x.floats, axis=axis, keepdims=keepdims)

    return place


def _order(x: Any, axis: Any = -1, kind: Any = None) -> Array:
    order = np.argsort(x.floats, axis=axis, kind="stable")
    found = moveaxis(_chosen(x, order, axis), axis, 0)
    _apart(found[1:], found[:-1])
    x.field.path.append(np.ravel(order[..., None] == np.arange(x.shape[axis])))
    return order


def _sums_between(x: Exact, starts: Any, axis: int = 0) -> Exact:
    x, ends = moveaxis(x, axis, 0), [*map(int, starts), x.shape[axis]]
    return moveaxis(
        stack([sum_over(x[i : max(j, i + 1)], 0) for i, j in pairwise(ends)]), 0, axis
    )


def _added_at(sign: int, x: Any, index: Any, y: Any) -> None:
    """Add y at places that may be repeated."""
    if type(x) is not Exact:
        raise Untraceable("exact numbers are added into an array of floats")
    places = np.arange(x.size).reshape(x.shape)[index]
    added = broadcast_to(lift(y, x.field), places.shape).ravel()
    for turn, place in enumerate(
        zip(*np.unravel_index(places.ravel(), x.shape), strict=True)
    ):
        x[place] = add(x[place], added[turn], sign)


_largest, _smallest = _extreme(np.argmax), _extreme(np.argmin)
REDUCTIONS |= {
    "add": sum_over,
    "multiply": _product,
    "maximum": _largest,
    "minimum": _smallest,
}

# --- what else NumPy has for arrays


def uninitialized(field: Field, shape: Any) -> Exact:
    """Return memory in which one random number stands, so that nothing is proved by it."""
    v = np.full(shape, np.nan)
    return Exact(
        field,
        dual_residues(
            field, np.broadcast_to(field.uninitialized, (*v.shape, field.n_channels))
        ),
        v,
    )


def _empty_like(x: Exact, dtype: Any = None, shape: Any = None, **_: Any) -> Any:
    shape = x.shape if shape is None else shape
    return uninitialized(x.field, shape) if dtype is None else np.empty(shape, dtype)


def _fill_diagonal(x: Exact, value: Any, wrap: bool = False) -> None:
    if wrap:
        raise Untraceable("np.fill_diagonal with wrap")
    x[(np.arange(min(x.shape)),) * x.ndim] = value


def _finite(x: Exact, copy: bool = True) -> Exact:
    if not np.isfinite(x.floats).all() or not copy:
        raise Untraceable(
            "np.nan_to_num in place, or of numbers that are not finite in floats"
        )
    return x.copy()


FUNCTIONS |= dict(
    where=_where, clip=_clip, sum=sum_over, mean=_mean, var=_var, prod=_product, cumsum=_cumsum,
    cumprod=_cumprod, max=_largest, min=_smallest, amax=_largest, amin=_smallest,
    argsort=_order, argmax=_place(np.argmax), argmin=_place(np.argmin), ravel=Exact.ravel,
    swapaxes=Exact.swapaxes, copy=Exact.copy, fill_diagonal=_fill_diagonal,
    broadcast_arrays=_broadcast, nan_to_num=_finite, empty_like=_empty_like,
    insert=_inserted, meshgrid=_meshed, as_strided=as_strided,
    std=lambda x, *args, **kwargs: UFUNCS["sqrt"](_var(x, *args, **kwargs)),
    sort=lambda x, axis=-1, kind=None: (
        FUNCTIONS["sort"](x.ravel(), 0) if axis is None else _chosen(x, _order(x, axis), axis)),
    partition=lambda x, kth, axis=-1: FUNCTIONS["sort"](x, axis),
    reshape=lambda x, shape, order="C": x.reshape(shape, order=order),
    transpose=lambda x, axes=None: x.transpose(*(() if axes is None else axes)),
    trace=lambda x, *args, **kwargs: sum_over(diagonal(x, *args, **kwargs), -1),
    concatenate=concatenate, diagonal=diagonal,
    compress=lambda condition, x, axis=None: FUNCTIONS["take"](x, np.flatnonzero(condition), axis),
    broadcast_to=lambda x, shape, subok=False: broadcast_to(x, (*np.ravel(shape).tolist(),)),
    sliding_window_view=_windows,
    copyto=lambda out, x, where=True, casting="same_kind": write_into(x, out, where),
    may_share_memory=lambda x, y: True, result_type=lambda *x: np.dtype(float),
)  # fmt: skip
for _name in ("all", "any", "count_nonzero", "nonzero", "flatnonzero", "allclose", "isclose",
              "searchsorted", "digitize"):  # fmt: skip
    FUNCTIONS[_name] = of_floats(getattr(np, _name))
for _name in ("sum", "mean", "var", "std", "prod", "cumsum", "cumprod", "max", "min", "argmax",
              "argmin", "argsort", "clip", "trace", "diagonal", "repeat", "take", "all", "any",
              "nonzero"):  # fmt: skip
    setattr(Exact, _name, getattr(np, _name))
for _name in ("sum", "mean", "var", "std", "prod", "max", "min", "argmax", "argmin"):
    FUNCTIONS[f"nan{_name}"] = FUNCTIONS[
        _name
    ]  # a number that is nan has no value, and is told
