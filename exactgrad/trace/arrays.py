"""Arrays of exact numbers, by NumPy's own protocols (D44).

An `Exact` has residues of its numbers and of their derivatives along one direction, and floats,
which decide comparisons and nothing else. All are plain arrays, and NumPy's functions are built
from those of a field. Slices and reshapes are views, so that what is written through a view
arrives. A function or a keyword that is not known here is refused.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
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
Handlers = dict[str, Callable[..., Any]]
# Implementations of NumPy's ufuncs, reductions and functions for exact arrays, by name; the
# modules `functions`, `linear` and `makers` add theirs
UFUNCS: Handlers = {}
REDUCTIONS: Handlers = {}
FUNCTIONS: Handlers = {}
# Implementations of the methods of ufuncs, such as np.add.reduce: by method, then by ufunc
UFUNC_METHODS: dict[str, Handlers] = {
    "__call__": UFUNCS,
    "outer": UFUNCS,  # a call on x with an axis of length 1 for each axis of y
    "reduce": REDUCTIONS,
}
# keywords of ufuncs that change no number
IGNORED_KEYWORDS = ("casting", "order", "subok")
FULL_SLICE = slice(None)


def _in_place(name: str) -> Any:
    """Return the method ``__i<name>__``: it changes an array in place, and replaces a scalar."""
    change_array = getattr(NDArrayOperatorsMixin, f"__i{name}__")
    new_scalar = getattr(NDArrayOperatorsMixin, f"__{name}__")

    def assign(self: Exact, operand: Any) -> Any:
        if self.is_scalar:
            return new_scalar(self, operand)
        return change_array(self, operand)

    return assign


class Exact(NDArrayOperatorsMixin):
    """An array of exact numbers, which carry their derivatives along one direction.

    Parameters
    ----------
    field : Field
        The field of the residues, with C channels.
    residues : array, shape (..., 2, C)
        The residues of the numbers (`primal`) and of their derivatives (`tangent`).
    floats : array, shape (...)
        The numbers in floating point. They decide comparisons and nothing else.
    log_terms : array, shape (..., 3, C), optional
        The term k log u that each number is known to contain, as u, k log u and k.
        By default none is known.
    """

    __slots__ = ("field", "floats", "is_scalar", "log_terms", "residues")
    __array_priority__: ClassVar[float] = 1000.0

    def __init__(
        self,
        field: Field,
        residues: Array,
        floats: Any,
        log_terms: Array | None = None,
    ) -> None:
        self.field = field
        self.residues = residues
        self.floats = np.asarray(floats)
        self.log_terms = log_terms
        # a scalar is no view, as in NumPy; what x[0, ...] returns is a view and no scalar
        self.is_scalar = not self.floats.ndim

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """np.ndarray, so that `isinstance` takes exact numbers for an array."""
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
    flat = property(lambda self: _read_only_copy_or_view(self.reshape(-1), self))
    real = property(lambda self: self, lambda self, value: self.__setitem__(..., value))
    imag = property(lambda self: lift(np.zeros(self.shape), self.field))

    def __len__(self) -> int:
        return len(self.floats)

    def __iter__(self) -> Iterator[Exact]:
        return (self[i] for i in range(len(self)))

    def __repr__(self, spec: str = "") -> str:
        """Return the shape and no number; record that text was asked for, as for a branch."""
        self.field.path.append(np.ones(1, bool))
        return f"exact numbers {self.shape}"

    __str__ = __format__ = __repr__

    def __float__(self) -> float:
        raise Untraceable(
            "an exact number cannot be converted to a float: it would lose its derivative"
        )

    __int__ = __index__ = __complex__ = __float__

    def __array__(self, *_: Any, **__: Any) -> Array:
        raise Untraceable(
            "exact numbers cannot be converted to an array of floats, which has no derivatives"
        )

    def __bool__(self) -> bool:
        return bool(comparison_of(operator.ne)(self, 0))

    __hash__ = None  # type: ignore[assignment]

    # --- views and copies

    def map_views(self, view: Callable[[Array, tuple[int, ...]], Array]) -> Exact:
        """Return the array whose residues, floats and log terms are views of those of this array.

        `view` takes residues, floats or terms of logarithms, and the lengths of the axes
        that these have after those of the numbers: (2, C), () or (3, C).
        """
        ndim = self.ndim
        log_terms = self.log_terms
        if log_terms is not None:
            log_terms = view(log_terms, log_terms.shape[ndim:])
        residues = view(self.residues, self.residues.shape[ndim:])
        return Exact(self.field, residues, view(self.floats, ()), log_terms)

    def __getitem__(self, index: Any) -> Exact:
        numbers = _with_ellipsis(index)
        channels = (*numbers, FULL_SLICE, FULL_SLICE)
        log_terms = self.log_terms
        if log_terms is not None:
            log_terms = log_terms[channels]
        item = Exact(
            self.field, self.residues[channels], self.floats[numbers], log_terms
        )
        item.is_scalar = not (item.ndim or numbers is index or index is ...)
        if item.is_scalar:
            return item.copy()
        return item

    def __setitem__(self, index: Any, value: Any) -> None:
        numbers = _with_ellipsis(index)
        channels = (*numbers, FULL_SLICE, FULL_SLICE)
        value = lift(value, self.field)
        self.floats[numbers] = value.floats
        self.residues[channels] = value.residues
        if self.log_terms is None and value.log_terms is not None:
            self.log_terms = _log_terms_of(self)
        if self.log_terms is not None:
            log_terms = value.log_terms
            if log_terms is None:
                log_terms = self.field.no_log_term
            self.log_terms[channels] = log_terms

    def reshape(self, *shape: Any, order: str = "C") -> Exact:
        """Return a view with a new shape, row by row or, if `order` is "F", column by column."""
        if order == "F":
            return self.T.reshape(*self.floats.reshape(*shape).shape[::-1]).T
        if order not in "CA":
            raise Untraceable(
                f"reshape with order={order!r} cannot be traced; use 'C' or 'F'"
            )
        new = self.floats.reshape(_one_tuple(shape)).shape
        return self.map_views(lambda part, channels: part.reshape(new + channels))

    def transpose(self, *axes: Any) -> Exact:
        """Return a view with the axes permuted, reversed by default."""
        ndim = self.ndim
        order = tuple(k % ndim for k in _one_tuple(axes) or range(ndim)[::-1])
        last = (ndim, ndim + 1)
        return self.map_views(
            lambda part, channels: part.transpose(order + last[: len(channels)])
        )

    def swapaxes(self, axis1: int, axis2: int) -> Exact:
        """Return a view with two axes exchanged.

        Parameters
        ----------
        axis1, axis2 : int
            The axes.
        """
        first = axis1 % self.ndim
        second = axis2 % self.ndim
        return self.map_views(lambda part, _: part.swapaxes(first, second))

    def squeeze(self, axis: Any = None) -> Exact:
        """Return a view without the axes of length 1, or without those of `axis`."""
        return self.reshape(self.floats.squeeze(axis).shape)

    def ravel(self, order: str = "C") -> Exact:
        """Return a one-dimensional view or copy; for `order` "K" in the order of memory."""
        if order == "K":
            by_stride = np.argsort(np.abs(self.floats.strides))[::-1]
            return self.transpose(*by_stride).reshape(-1)
        return self.reshape(-1, order=order)

    def copy(self, order: str = "C") -> Exact:
        """Return a copy of the array; `order` is ignored."""
        return self.map_views(lambda part, _: part.copy())

    # exact numbers are real, so that conjugates are copies
    __copy__ = conj = conjugate = copy

    def __deepcopy__(self, memo: Any) -> Exact:
        return self.copy()

    def flatten(self, order: str = "C") -> Exact:
        """Return a one-dimensional copy."""
        return self.reshape(-1, order=order).copy()

    def view(self, dtype: Any = float, type: Any = np.ndarray) -> Exact:
        """Return a view of the whole array; raise if another dtype or class is asked for.

        Parameters
        ----------
        dtype : dtype
            A float dtype, or np.ndarray.
        type : type
            np.ndarray.
        """
        if type is not np.ndarray or np.dtype(dtype) not in (np.float64, np.object_):
            raise Untraceable(
                "exact numbers can be viewed as float64 in an np.ndarray only; got dtype "
                f"{dtype} and class {type}"
            )
        return self.map_views(lambda part, _: part[...])

    def stop_gradient(self) -> Exact:
        """Return a copy with the same numbers, whose derivatives are 0."""
        residues = dual_residues(self.field, self.primal)
        return Exact(self.field, residues, self.floats.copy(), self.log_terms)

    def astype(self, dtype: Any, copy: bool = True, **_: Any) -> Exact:
        """Return the array, as floats or objects; raise if it would be rounded to integers.

        Parameters
        ----------
        dtype : dtype
            A dtype of floats or objects.
        copy : bool
            Whether a copy is returned, or the array itself.
        """
        if np.dtype(dtype).kind not in "fcO":
            raise Untraceable(
                f"exact numbers cannot be converted to dtype {np.dtype(dtype)}"
            )
        if copy:
            return self.copy()
        return self

    def item(self, *index: Any) -> Exact:
        """Return one element, by its position in the flattened array or by its index."""
        if len(index) == 1:
            return self.ravel()[index[0]]
        return self[index]

    def fill(self, value: Any) -> None:
        """Set all elements to `value`."""
        self[...] = value

    # --- augmented assignment

    __iadd__ = _in_place("add")
    __isub__ = _in_place("sub")
    __imul__ = _in_place("mul")
    __itruediv__ = _in_place("truediv")
    __ipow__ = _in_place("pow")

    # --- NumPy's protocols

    def __array_ufunc__(
        self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any
    ) -> Any:
        name = ufunc.__name__
        out = kwargs.pop("out", None)
        where = kwargs.pop("where", True)
        dtype = kwargs.pop("dtype", None)
        kwargs = {key: kwargs[key] for key in kwargs if key not in IGNORED_KEYWORDS}
        if dtype is not None and np.dtype(dtype).kind != "f":
            raise Untraceable(
                f"np.{name} must have a float dtype; got {np.dtype(dtype)}"
            )
        handler = UFUNC_METHODS.get(method, {}).get(name)
        if handler is None and method == "__call__":
            raise Untraceable(f"np.{name} is not known")
        if handler is None:
            raise Untraceable(f"np.{name}.{method} takes no exact numbers")
        if method == "outer":
            x, y = lift_all(*inputs)
            inputs = x.reshape(x.shape + (1,) * y.ndim), y
        if method in ("reduce", "accumulate"):
            kwargs.setdefault("axis", 0)
        if method == "reduce" and where is not True:
            kwargs["where"] = where
            where = True
        result = handler(*inputs, **kwargs)
        if out is None:
            return result
        return write_into(result, out[0], where)

    def __array_function__(
        self, function: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        name = function.__name__
        if "linalg" in function.__module__:
            name = f"linalg.{name}"
        if name not in FUNCTIONS:
            raise Untraceable(f"np.{name} takes no exact numbers")
        out = kwargs.pop("out", None)
        if np.dtype(kwargs.get("dtype") or float).kind == "f":
            kwargs.pop("dtype", None)
        result = FUNCTIONS[name](*args, **kwargs)
        if out is None:
            return result
        return write_into(result, out)


def _with_ellipsis(index: Any) -> tuple[Any, ...]:
    """Return the index as a tuple with an ellipsis, so that indices of more axes may follow."""
    parts = index if isinstance(index, tuple) else (index,)
    if any(type(part) is Exact for part in parts):
        raise Untraceable(
            "an array is indexed with an exact number, such as an element of theta; "
            "indices must be plain integers"
        )
    if any(part is Ellipsis for part in parts):
        return parts
    return (*parts, ...)


def _one_tuple(arguments: tuple[Any, ...]) -> Any:
    """Return the arguments of x.reshape(2, 3) or x.reshape((2, 3)) as one tuple (2, 3)."""
    if len(arguments) == 1 and not isinstance(arguments[0], Integral):
        return arguments[0]
    return arguments


def _read_only_copy_or_view(x: Exact, original: Exact) -> Exact:
    """Return x, made read-only unless it is a view of the memory of `original`."""
    is_view = np.may_share_memory(x.floats, original.floats)
    x.residues.flags.writeable = x.floats.flags.writeable = is_view
    return x


def write_into(result: Any, out: Any, where: Any = True) -> Any:
    """Write a result into the array `out` where `where` holds, and return `out`.

    Parameters
    ----------
    result : Exact or array
        What is written. Exact numbers go into exact arrays alone.
    out : Exact or array
        The array that is written into.
    where : bool array, optional
        The entries that are written. By default all.
    """
    if type(out) is not Exact:
        if type(result) is Exact:
            raise Untraceable(
                "exact numbers cannot be written into an array of floats, which has no derivatives"
            )
        np.copyto(out, result, where=where)
    elif where is True:
        out[...] = result
    else:
        chosen = np.broadcast_to(where, out.shape)
        out[chosen] = broadcast_to(lift(result, out.field), out.shape)[chosen]
    return out


# --- how exact numbers are made


def dual_residues(field: Field, primal: Array, tangent: Array | None = None) -> Array:
    """Return the residues of numbers and of their derivatives as one array.

    Parameters
    ----------
    field : Field
        The field, with C channels.
    primal : array, shape (..., C)
        The residues of the numbers.
    tangent : array, shape (..., C), optional
        The residues of the derivatives. By default these are 0.

    Returns
    -------
    array, shape (..., 2, C)
    """
    residues = np.zeros((*primal.shape[:-1], 2, field.n_channels), field.dtype)
    residues[..., 0, :] = primal
    if tangent is not None:
        residues[..., 1, :] = tangent
    return residues


def apply_slope(
    x: Exact,
    primal: Array,
    slope: Array,
    floats: Any,
    log_terms: Array | None = None,
) -> Exact:
    """Return f(x) with its derivative f'(x) x', from the value f(x) and the slope f'(x).

    Parameters
    ----------
    x : Exact
        The argument.
    primal, slope : array, shape (..., C)
        The residues of f(x) and of f'(x).
    floats : array, shape (...)
        f(x) in floating point.
    log_terms : array, shape (..., 3, C), optional
        The terms of logarithms that f(x) contains, as `Exact` has them.
    """
    residues = dual_residues(x.field, primal, _chain_rule(x, slope))
    return Exact(x.field, residues, floats, log_terms)


def _chain_rule(x: Exact, slope: Array) -> Array:
    """Return the derivative `slope` x': 0 where x' is 0, even if the slope is infinite."""
    tangent = x.field.mul(slope, x.tangent)
    if x.field.is_decimal:
        return np.where(x.tangent == 0, 0 * x.field.one, tangent)
    return tangent


def lift(x: Any, field: Field) -> Exact:
    """Return integers, floats, fractions, or nested lists of these, as an exact array.

    Parameters
    ----------
    x : Exact, number, array or nested list
        What is lifted; exact numbers are returned as they are.
    field : Field
        The field. Exact numbers of another one are of an earlier call, and are refused.
    """
    if type(x) is Exact:
        if x.field is not field:
            raise Untraceable(
                "the function uses an exact number of an earlier call, which it has stored; "
                "compute it in every call"
            )
        return x
    if type(x) is float or type(x) is int:
        constant = field.exact_constants.get((x, type(x)))
        if constant is None:
            constant = lift(np.asarray(x), field)
            constant.residues.flags.writeable = False
            constant.floats.flags.writeable = False
            field.exact_constants[x, type(x)] = constant
        return constant
    if isinstance(x, Fraction):
        return Exact(field, dual_residues(field, field.from_fraction(x)), float(x))
    if isinstance(x, list | tuple) and len(x):
        return stack([lift(item, field) for item in x])
    array = np.asarray(x)
    if array.dtype.kind == "O" and array.size:
        flat = stack([lift(item, field) for item in array.reshape(-1)])
        return flat.reshape(array.shape)
    if array.dtype.kind not in "biuf":
        raise Untraceable(
            f"{x!r} has no exact form: it is no real number and no array of them"
        )
    floats = array.astype(float)
    if array.dtype.kind == "f":
        field.has_infinity |= bool(np.isinf(array).any())
        primal = field.from_floats(floats)
    else:
        primal = field.from_integers(array.astype(np.int64))
    return Exact(field, dual_residues(field, primal), floats)


def field_of(value: Any) -> Field | None:
    """Return the field of an exact array, or of the first one in nested lists; None without one."""
    if type(value) is Exact:
        return value.field
    if isinstance(value, list | tuple):
        for item in value:
            field = field_of(item)
            if field is not None:
                return field
    return None


def lift_all(*values: Any) -> list[Exact]:
    """Return all values as exact arrays, in the field of the first exact one among them."""
    field = field_of(values)
    if field is None:
        raise Untraceable("at least one argument must be an exact number; got none")
    return [lift(value, field) for value in values]


def _log_terms_of(x: Exact) -> Array:
    """Return the log terms of x (..., 3, C); those of 1 log 1 = 0 where x has none."""
    if x.log_terms is not None:
        return x.log_terms
    shape = (*x.shape, 3, x.field.n_channels)
    return np.broadcast_to(x.field.no_log_term, shape).copy()


# --- arithmetic


def add(x: Any, y: Any, sign: int = 1) -> Exact:
    """Return x + y, or x - y if `sign` is -1.

    Parameters
    ----------
    x, y : Exact or array
        The operands, which are broadcast.
    sign : {1, -1}
        Whether y is added or subtracted.
    """
    x, y = lift_all(x, y)
    field = x.field
    if sign == 1:
        residues = field.add(x.residues, y.residues)
        floats = x.floats + y.floats
    else:
        residues = field.sub(x.residues, y.residues)
        floats = x.floats - y.floats
    log_terms = None
    if x.log_terms is not None or y.log_terms is not None:
        x_terms, y_terms = np.broadcast_arrays(_log_terms_of(x), _log_terms_of(y))
        if sign == -1:
            y_terms = field.negate_log_terms(y_terms)
        log_terms = field.add_log_terms(x_terms, y_terms)
    return Exact(field, residues, floats, log_terms)


def _negative(x: Exact) -> Exact:
    """Return -x."""
    log_terms = x.log_terms
    if log_terms is not None:
        log_terms = x.field.negate_log_terms(log_terms)
    return Exact(x.field, x.field.neg(x.residues), -x.floats, log_terms)


def _gate(mask: Array, x: Exact) -> Exact:
    """Return x where the bool array `mask` is true, and 0 elsewhere, derivatives included."""
    keep = np.asarray(mask)[..., None, None]
    residues = np.where(keep, x.residues, 0 * x.field.one)
    log_terms = x.log_terms
    if log_terms is not None:
        log_terms = np.where(keep, log_terms, x.field.no_log_term)
    return Exact(x.field, residues, mask * x.floats, log_terms)


def multiply(x: Any, y: Any) -> Exact:
    """Return the product x y, with derivative (x y)' = x y' + x' y.

    Parameters
    ----------
    x, y : Exact or array
        The factors, which are broadcast. An array of bool is a gate.
    """
    for mask, factor in ((x, y), (y, x)):
        if type(mask) is not Exact and getattr(mask, "dtype", None) == np.bool_:
            return _gate(mask, factor)
    x, y = lift_all(x, y)
    field = x.field
    residues = field.mul(x.residues, y.primal[..., None, :])
    if field.is_decimal:
        residues[..., 1, :] = _chain_rule(x, y.primal)
    if y.has_tangent:
        residues[..., 1, :] = field.add(residues[..., 1, :], _chain_rule(y, x.primal))
    log_terms = None
    if x.log_terms is not None and y.log_terms is None:
        log_terms = field.scale_log_terms(x.log_terms, y.primal)
    elif y.log_terms is not None and x.log_terms is None:
        log_terms = field.scale_log_terms(y.log_terms, x.primal)
    product = Exact(field, residues, x.floats * y.floats, log_terms)
    if x is y and 0 < x.size <= MAX_RECORDED_SQUARES:
        field.record_square(product.primal, x.primal, x.floats)
    return product


def divide(x: Any, y: Any) -> Exact:
    """Return the quotient q = x / y, with derivative q' = (x' - q y') / y.

    Parameters
    ----------
    x, y : Exact or array
        Numerator and denominator, which are broadcast.
    """
    x, y = lift_all(x, y)
    field = x.field
    reciprocal = field.inv(y.primal)
    field.record_zeros(y.primal, y.floats)
    residues = field.mul(x.residues, reciprocal[..., None, :])
    if y.has_tangent:
        change = field.mul(field.mul(residues[..., 0, :], y.tangent), reciprocal)
        residues[..., 1, :] = field.sub(residues[..., 1, :], change)
        # decimals, unlike fields, have an infinity: the slope of c / inf is 0
        if field.is_decimal and np.isinf(y.floats).any():
            exists = y.tangent[..., 0] == y.tangent[..., 0]
            vanishes = (abs(y.primal[..., 0]) == inf) & (residues[..., 0, 0] == 0)
            residues[vanishes & exists] = 0 * field.one
    log_terms = None
    if x.log_terms is not None and y.log_terms is None:
        log_terms = field.scale_log_terms(x.log_terms, reciprocal)
    return Exact(field, residues, x.floats / y.floats, log_terms)


def power(x: Any, n: Any) -> Exact:
    """Return x^n: by products for integers n, by a root for halves, else exp(n log x).

    Parameters
    ----------
    x : Exact or array
        The base.
    n : number, array or Exact
        The exponent. If it is exact, or differs between entries, x has to be positive.
    """
    constant = 0.25 if type(n) is Exact else n
    doubled = np.asarray(constant, float) * 2
    twice = 0.5
    if doubled.size and (doubled == doubled.flat[0]).all():
        twice = float(doubled.flat[0])
    if twice % 1 or type(x) is not Exact:
        x, _ = lift_all(x, n)
        return UFUNCS["exp"](multiply(n, UFUNCS["log"](x)))
    x = broadcast_to(x, np.broadcast_shapes(x.shape, doubled.shape))
    factor = x
    n_factors = abs(twice) // 2
    if twice % 2:
        factor = UFUNCS["sqrt"](x)
        n_factors = abs(twice)
    product = None
    while n_factors:
        if n_factors % 2:
            product = factor if product is None else factor * product
        n_factors //= 2
        if n_factors:
            factor = factor * factor
    if product is None:
        product = lift(np.ones(x.shape), x.field)
    if twice < 0:
        product = divide(1, product)
    return Exact(x.field, product.residues, x.floats ** (twice / 2))


# --- comparisons, which floats decide

KINK_MESSAGE = (
    "two different expressions are equal at this theta and are compared: theta lies on a "
    "kink or a tie. Take another theta"
)
TIED_DATA_MESSAGE = (
    "data are compared with a number that they equal: pass labels and masks as "
    "integers or booleans"
)


def _refuse_ties(x: Exact, y: Exact) -> None:
    """Raise if x and y cannot be compared: if either is nan, or if different numbers are tied.

    On a tie the gradient belongs to neither of the two paths.
    """
    if np.isnan(x.floats).any() or np.isnan(y.floats).any():
        raise Untraceable(
            "a number that is nan in floats is compared, which decides no branch: avoid the nan"
        )
    is_decimal = x.field.is_decimal
    if is_decimal and ((x.primal != x.primal).any() or (y.primal != y.primal).any()):
        raise Untraceable(
            "the result of a division by 0 is compared, which decides no branch: avoid the "
            "division"
        )
    tie = x.floats == y.floats  # inf ties with inf where both overflow
    if tie.any() and not is_decimal:
        differ = (x.primal != y.primal).any(axis=-1)
        if (tie & differ).any():
            moving = x.has_tangent or y.has_tangent
            raise Untraceable(KINK_MESSAGE if moving else TIED_DATA_MESSAGE)


def comparison_of(operation: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Return a comparison of exact arrays, which applies `operation` to their floats.

    Its results are appended to the path of the field.
    """

    def comparison(x: Any, y: Any) -> Any:
        x, y = lift_all(x, y)
        _refuse_ties(x, y)
        result = operation(x.floats, y.floats)
        x.field.path.append(np.ravel(result))
        return result

    return comparison


def select(condition: Any, x: Any, y: Any) -> Exact:
    """Return x where the condition holds, else y.

    Parameters
    ----------
    condition : bool array or Exact
        The condition. Of exact numbers it is whether they are not 0.
    x, y : Exact or array
        What is chosen from, broadcast to the shape of the condition.
    """
    if type(condition) is Exact:
        condition = comparison_of(np.not_equal)(condition, 0)
    x, y = lift_all(x, y)
    keep = np.asarray(condition)[..., None, None]
    log_terms = None
    if x.log_terms is not None or y.log_terms is not None:
        log_terms = np.where(keep, _log_terms_of(x), _log_terms_of(y))
    residues = np.where(keep, x.residues, y.residues)
    floats = np.where(condition, x.floats, y.floats)
    return Exact(x.field, residues, floats, log_terms)


def _where(condition: Any, *branches: Any) -> Any:
    """Return np.where(condition, x, y), or np.where(condition) if `branches` is empty."""
    if field_of(branches) is not None:
        return select(condition, *branches)
    return np.where(comparison_of(np.not_equal)(condition, 0), *branches)


def of_floats(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a version of `function` that is called with floats in place of exact arrays.

    Its results count as comparisons: they are appended to the path of the field.
    """

    def of_exact(*args: Any, **kwargs: Any) -> Any:
        floats = (x.floats if type(x) is Exact else x for x in args)
        result = function(*floats, **kwargs)
        field = field_of(args)
        if field is not None:
            for values in result if isinstance(result, tuple) else (result,):
                content = np.frombuffer(np.asarray(values).tobytes(), np.uint8)
                field.path.append(np.unpackbits(content).astype(bool))
        return result

    return of_exact


def _test_finiteness(function: Callable[..., Any], x: Exact, **kwargs: Any) -> Any:
    """Return np.isfinite(x) or the like; raise at a pole, where other theta would be finite."""
    if x.field.at_pole and not np.isfinite(x.floats).all():
        raise Untraceable(KINK_MESSAGE)
    return function(x.floats, **kwargs)


def _larger(x: Any, y: Any) -> Exact:
    """Return the larger of x and y by element, x where they are equal."""
    return select(comparison_of(np.greater_equal)(x, y), x, y)


def _smaller(x: Any, y: Any) -> Exact:
    """Return the smaller of x and y by element, x where they are equal."""
    return select(comparison_of(np.less_equal)(x, y), x, y)


def _clip(
    x: Any, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None
) -> Any:
    """Return x limited to [a_min, a_max]; None is no limit, `min` and `max` are other names."""
    low = a_min if min is None else min
    high = a_max if max is None else max
    if low is not None:
        x = _larger(x, low)
    if high is not None:
        x = _smaller(x, high)
    return x


def _sign(x: Exact) -> Array:
    """Return the sign of x by element, as floats -1, 0 or 1."""
    is_positive = comparison_of(np.greater)(x, 0)
    is_negative = comparison_of(np.less)(x, 0)
    return is_positive * 1.0 - is_negative


def _absolute(x: Exact) -> Exact:
    """Return |x|."""
    return select(comparison_of(np.less)(x, 0), _negative(x), x)


UFUNCS |= {
    "absolute": _absolute,
    "add": add,
    "clip": _clip,
    "conjugate": Exact.copy,
    "divide": divide,
    "fabs": _absolute,
    "float_power": power,
    "fmax": _larger,
    "fmin": _smaller,
    "maximum": _larger,
    "minimum": _smaller,
    "multiply": multiply,
    "negative": _negative,
    "positive": Exact.copy,
    "power": power,
    "reciprocal": lambda x: divide(1, x),
    "sign": _sign,
    "signbit": of_floats(np.signbit),
    "square": lambda x: multiply(x, x),
    "subtract": lambda x, y: add(x, y, -1),
}
for _name in ("less", "less_equal", "greater", "greater_equal", "equal", "not_equal"):
    UFUNCS[_name] = comparison_of(getattr(np, _name))
for _name in ("isfinite", "isnan", "isinf"):
    UFUNCS[_name] = partial(_test_finiteness, getattr(np, _name))

# --- functions that move numbers


def _by_position(
    function: Callable[..., Any], x: Exact, *args: Any, **kwargs: Any
) -> Exact:
    """Return x rearranged as `function` rearranges an array; entries that it sets to 0 are 0."""
    positions = np.arange(1, x.size + 1).reshape(x.shape)
    positions = function(positions, *args, **kwargs)
    out = x.reshape(-1)[np.maximum(positions - 1, 0)]
    if not np.all(positions):
        out[positions == 0] = 0.0
    return out


_take_along_axis = partial(_by_position, np.take_along_axis)
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
    FUNCTIONS[_name] = partial(_by_position, getattr(np, _name))


def concatenate(arrays: Any, axis: Any = 0, casting: Any = None) -> Exact:
    """Return arrays joined along an existing axis.

    Parameters
    ----------
    arrays : sequence of Exact or array
        At least one of them is exact.
    axis : int or None
        The axis along which they are joined; None joins flat arrays.
    casting : str, optional
        Ignored: all numbers are exact.
    """
    parts = lift_all(*arrays)
    if axis is None:
        parts = [x.ravel() for x in parts]
    floats = np.concatenate([x.floats for x in parts], axis or 0)
    axis = (axis or 0) % floats.ndim
    residues = np.concatenate([x.residues for x in parts], axis)
    log_terms = None
    if any(x.log_terms is not None for x in parts):
        log_terms = np.concatenate([_log_terms_of(x) for x in parts], axis)
    return Exact(parts[0].field, residues, floats, log_terms)


def stack(arrays: Any, axis: int = 0) -> Exact:
    """Return arrays of one shape joined along a new axis.

    Parameters
    ----------
    arrays : sequence of Exact or array
        Arrays of one shape.
    axis : int
        Which axis of the result numbers the arrays.
    """
    expanded = [x[(FULL_SLICE,) * (axis % (x.ndim + 1)) + (None,)] for x in arrays]
    return concatenate(expanded, axis)


def moveaxis(x: Exact, source: int, destination: int) -> Exact:
    """Return a view with the axis `source` moved to position `destination`.

    Parameters
    ----------
    x : Exact
        The array.
    source, destination : int
        Which axis is moved, and which it becomes.
    """
    old = source % x.ndim
    new = destination % x.ndim
    return x.map_views(lambda part, _: np.moveaxis(part, old, new))


def diagonal(x: Exact, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Exact:
    """Return a view of the diagonal along two axes, which becomes the last axis.

    Parameters
    ----------
    x : Exact
        The array, of two axes at least.
    offset : int
        How far the diagonal lies above the main one.
    axis1, axis2 : int
        The axes of rows and of columns.
    """
    rows = axis1 % x.ndim
    columns = axis2 % x.ndim
    last = x.ndim - 2
    return x.map_views(
        lambda part, _: np.moveaxis(part.diagonal(offset, rows, columns), -1, last)
    )


def _sliding_window_view(
    x: Exact,
    window_shape: Any,
    axis: Any = None,
    subok: bool = False,
    writeable: bool = False,
) -> Exact:
    """Return np.lib.stride_tricks.sliding_window_view; `subok` and `writeable` are ignored."""
    axes: Any = _axes(x, axis)

    def view(part: Array, channels: tuple[int, ...]) -> Array:
        windows = np.lib.stride_tricks.sliding_window_view(part, window_shape, axes)
        n_new = windows.ndim - part.ndim
        # the new axes stand last, behind those of the channels
        old = [k - n_new for k in range(n_new)]
        return np.moveaxis(windows, old, [k + x.ndim for k in range(n_new)])

    return x.map_views(view)


def as_strided(
    x: Exact,
    shape: Any = None,
    strides: Any = None,
    subok: bool = False,
    writeable: bool = True,
) -> Exact:
    """Return a view with other strides; raise if it would read memory outside of the array.

    Residues lie in memory as their floats do: each stride is the same multiple of that of a
    float. Where entries overlap the view cannot be written to.

    Parameters
    ----------
    x : Exact
        The array.
    shape : sequence of int, optional
        The shape of the view. By default that of x.
    strides : sequence of int, optional
        The strides of the floats in bytes. By default those of x.
    subok : bool
        Ignored.
    writeable : bool
        Whether the view may be written to, if no entries overlap.
    """
    shape = x.shape if shape is None else tuple(map(operator.index, shape))
    strides = x.strides if strides is None else tuple(map(operator.index, strides))
    # a view whose entries overlap is read-only: the order of writes to it is not defined
    span = x.itemsize
    for step, n in sorted(
        (abs(step), n) for step, n in zip(strides, shape, strict=True) if n > 1
    ):
        writeable = writeable and step >= span
        span += step * (n - 1)

    def view(part: Array, channels: tuple[int, ...]) -> Array:
        pairs = [
            (stride, float_stride)
            for stride, float_stride, n in zip(
                part.strides, x.floats.strides, x.shape, strict=False
            )
            if n > 1
        ]
        ratio = next((stride // step for stride, step in pairs if step), 1)
        if any(stride != ratio * step for stride, step in pairs):
            raise Untraceable(
                "as_strided takes no array in column-major order; pass np.ascontiguousarray(x)"
            )
        part_strides = tuple(ratio * step for step in strides) + part.strides[x.ndim :]
        return np.lib.stride_tricks.as_strided(
            part, shape + channels, part_strides, writeable=writeable
        )

    low, high = np.lib.array_utils.byte_bounds(x.floats)
    view_low, view_high = np.lib.array_utils.byte_bounds(view(x.floats, ()))
    if prod(shape) and (view_low < low or view_high > high):
        raise Untraceable("as_strided would read memory outside of its array")
    return x.map_views(view)


def _insert(x: Any, index: Any, values: Any, axis: Any = None) -> Exact:
    """Return np.insert(x, index, values, axis)."""
    x, values = lift_all(x, values)
    positions = np.arange(x.size).reshape(x.shape)
    new_positions = np.arange(x.size, x.size + values.size).reshape(values.shape)
    positions = np.insert(positions, index, new_positions, axis)
    return concatenate([x.ravel(), values.ravel()])[positions]


def _meshgrid(*arrays: Any, **kwargs: Any) -> Any:
    """Return np.meshgrid of exact vectors."""
    parts = lift_all(*arrays)
    grids: Any = np.meshgrid(*(np.arange(x.size) for x in parts), **kwargs)
    return type(grids)(x.ravel()[grid] for x, grid in zip(parts, grids, strict=True))


def broadcast_to(x: Exact, shape: tuple[int, ...]) -> Exact:
    """Return a view of x broadcast to a shape.

    Parameters
    ----------
    x : Exact
        The array.
    shape : tuple of int
        The shape of the view.
    """
    return x.map_views(lambda part, channels: np.broadcast_to(part, shape + channels))


def _broadcast_arrays(*arrays: Any, subok: bool = False) -> list[Exact]:
    """Return views of all arrays broadcast to their common shape; `subok` is ignored."""
    parts = lift_all(*arrays)
    shape = np.broadcast_shapes(*(x.shape for x in parts))
    return [broadcast_to(x, shape) for x in parts]


# --- reductions


def _axes(x: Exact, axis: Any) -> tuple[int, ...]:
    """Return the axes of a reduction as a tuple of numbers from 0; None is all axes."""
    if not x.ndim:
        return ()
    if axis is None:
        return tuple(range(x.ndim))
    axes = axis if isinstance(axis, tuple) else (axis,)
    return tuple(operator.index(k) % x.ndim for k in axes)


def _count(x: Exact, axis: Any) -> int:
    """Return the number of elements that a reduction over `axis` combines."""
    return prod(x.shape[k] for k in _axes(x, axis))


def sum_over(
    x: Any,
    axis: Any = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> Exact:
    """Return the sums over one or more axes.

    Parameters
    ----------
    x : Exact or array
        The terms.
    axis : int, tuple of int or None
        The axes that are summed over; None sums over all.
    keepdims : bool
        Whether these axes stay, with length 1.
    initial : number, optional
        A number that is added to each sum.
    where : bool array, optional
        The terms that count. By default all.
    """
    (x,) = lift_all(x)
    if where is not True:
        x = _gate(np.broadcast_to(where, x.shape), x)
    axes = _axes(x, axis)
    floats = x.floats.sum(axes, keepdims=keepdims)
    residues = x.field.sum(x.residues, axes)
    sums = Exact(
        x.field, residues.reshape((*floats.shape, 2, x.field.n_channels)), floats
    )
    if initial is None:
        return sums
    return add(sums, initial)


def _mean(x: Any, axis: Any = None, keepdims: bool = False) -> Exact:
    """Return the means over one or more axes."""
    return divide(sum_over(x, axis, keepdims), _count(lift_all(x)[0], axis))


def _var(x: Any, axis: Any = None, ddof: int = 0, keepdims: bool = False) -> Exact:
    """Return the variances over one or more axes, sums of squares divided by count - `ddof`."""
    centred = add(x, _mean(x, axis, keepdims=True), -1)
    squares = sum_over(multiply(centred, centred), axis, keepdims)
    return divide(squares, _count(centred, axis) - ddof)


def _std(x: Any, *args: Any, **kwargs: Any) -> Exact:
    """Return the standard deviations over one or more axes."""
    return UFUNCS["sqrt"](_var(x, *args, **kwargs))


def _cumprod(x: Any, axis: Any = None) -> Exact:
    """Return the cumulative products along an axis; None flattens x."""
    rows = x.ravel() if axis is None else moveaxis(x, axis, 0)
    products: list[Exact] = []
    for row in rows:
        if products:
            row = multiply(products[-1], row)
        products.append(row)
    return moveaxis(stack(products), 0, axis or 0)


def _cumsum(x: Any, axis: Any = None) -> Exact:
    """Return the cumulative sums along an axis; None flattens x."""
    if axis is None:
        x = x.ravel()
    axis = (axis or 0) % x.ndim
    residues = x.field.cumsum(x.residues, axis)
    return Exact(x.field, residues, np.cumsum(x.floats, axis=axis))


def _flatten_axes(x: Exact, axis: Any) -> Exact:
    """Return x with the axes of a reduction flattened into one, the last."""
    reduced = _axes(x, axis)
    kept_axes = [k for k in range(x.ndim) if k not in reduced]
    shape = [x.shape[k] for k in kept_axes]
    return x.transpose(*kept_axes, *reduced).reshape([*shape, -1])


def _reduced_shape(x: Exact, axis: Any, keepdims: bool) -> tuple[int, ...]:
    """Return the shape of a reduction of x over `axis`."""
    return x.floats.sum(axis, keepdims=keepdims).shape


def _prod(x: Any, axis: Any = None, keepdims: bool = False) -> Exact:
    """Return the products over one or more axes."""
    (x,) = lift_all(x)
    factors = moveaxis(_flatten_axes(x, axis), -1, 0)
    while len(factors) > 1:  # multiply the halves, so that products are few and wide
        half = len(factors) // 2
        products = factors[:half] * factors[half : 2 * half]
        factors = concatenate([products, factors[2 * half :]])
    if not len(factors):
        factors = lift(np.ones((1, *factors.shape[1:])), x.field)
    return factors[0].reshape(_reduced_shape(x, axis, keepdims))


def _extreme(
    pick: Callable[..., Any],
    x: Any,
    axis: Any = None,
    keepdims: bool = False,
    initial: Any = None,
) -> Exact:
    """Return the largest or smallest elements over axes; raise if different numbers are tied.

    `pick` is np.argmax or np.argmin. `initial` is one more number to choose from, if it is given.
    """
    flat = _flatten_axes(x, axis)
    positions = np.expand_dims(pick(flat.floats, axis=-1), -1)
    extreme = _take_along_axis(flat, positions, -1)
    _refuse_ties(flat, extreme)
    x.field.path.append(np.ravel(np.arange(flat.shape[-1]) == positions))
    extreme = extreme.reshape(_reduced_shape(x, axis, keepdims))
    if initial is None:
        return extreme
    choose = _larger if pick is np.argmax else _smaller
    return choose(extreme, initial)


def _arg_extreme(
    pick: Callable[..., Any], x: Any, axis: Any = None, keepdims: bool = False
) -> Any:
    """Return the positions that `pick`, np.argmax or np.argmin, finds; raise on ties."""
    _extreme(pick, x, axis)
    return pick(x.floats, axis=axis, keepdims=keepdims)


def _argsort(x: Any, axis: Any = -1, kind: Any = None) -> Array:
    """Return the positions that sort x along an axis; raise on ties. `kind` is ignored."""
    order = np.argsort(x.floats, axis=axis, kind="stable")
    ascending = moveaxis(_take_along_axis(x, order, axis), axis, 0)
    _refuse_ties(ascending[1:], ascending[:-1])
    x.field.path.append(np.ravel(order[..., None] == np.arange(x.shape[axis])))
    return order


def _sort(x: Exact, axis: Any = -1, kind: Any = None) -> Exact:
    """Return x sorted along an axis; None flattens x. `kind` is ignored."""
    if axis is None:
        return _sort(x.ravel(), 0)
    return _take_along_axis(x, _argsort(x, axis), axis)


def _add_reduceat(x: Exact, starts: Any, axis: int = 0) -> Exact:
    """Return np.add.reduceat: the sums of slices that begin at `starts`."""
    x = moveaxis(x, axis, 0)
    edges = [*map(int, starts), len(x)]
    sums = [sum_over(x[i : max(j, i + 1)], 0) for i, j in pairwise(edges)]
    return moveaxis(stack(sums), 0, axis)


def _add_at(x: Any, index: Any, y: Any, sign: int = 1) -> None:
    """Add y in place to the entries x[index], which may repeat; subtract it if `sign` is -1."""
    if type(x) is not Exact:
        raise Untraceable(
            "exact numbers cannot be added to entries of an array of floats"
        )
    positions = np.arange(x.size).reshape(x.shape)[index]
    terms = broadcast_to(lift(y, x.field), positions.shape).ravel()
    entries = np.unravel_index(positions.ravel(), x.shape)
    for i, entry in enumerate(zip(*entries, strict=True)):
        x[entry] = add(x[entry], terms[i], sign)


_largest = partial(_extreme, np.argmax)
_smallest = partial(_extreme, np.argmin)
REDUCTIONS |= {
    "add": sum_over,
    "multiply": _prod,
    "maximum": _largest,
    "minimum": _smallest,
}
UFUNC_METHODS |= {
    "accumulate": {"add": _cumsum, "multiply": _cumprod},
    "reduceat": {"add": _add_reduceat},
    "at": {
        "add": _add_at,
        "subtract": lambda x, index, y: _add_at(x, index, y, -1),
    },
}

# --- what else NumPy has for arrays


def uninitialized(field: Field, shape: Any) -> Exact:
    """Return an array as of np.empty: one random number everywhere, so that it proves nothing.

    Parameters
    ----------
    field : Field
        The field of the numbers.
    shape : int or tuple of int
        The shape.
    """
    floats = np.full(shape, np.nan)
    primal = np.broadcast_to(field.uninitialized, (*floats.shape, field.n_channels))
    return Exact(field, dual_residues(field, primal), floats)


def _empty_like(x: Exact, dtype: Any = None, shape: Any = None, **_: Any) -> Any:
    """Return an exact array shaped like x, not initialized; a NumPy array if a dtype is given."""
    shape = x.shape if shape is None else shape
    if dtype is not None:
        return np.empty(shape, dtype)
    return uninitialized(x.field, shape)


def _fill_diagonal(x: Exact, value: Any, wrap: bool = False) -> None:
    """Set the diagonal of x to `value` in place; raise if `wrap` is asked for."""
    if wrap:
        raise Untraceable("np.fill_diagonal cannot be traced with wrap=True")
    x[(np.arange(min(x.shape)),) * x.ndim] = value


def _nan_to_num(x: Exact, copy: bool = True) -> Exact:
    """Return a copy of x; raise if a float of x is not finite, or if it is to be in place."""
    if not np.isfinite(x.floats).all() or not copy:
        raise Untraceable(
            "np.nan_to_num can be traced only with copy=True and for finite numbers"
        )
    return x.copy()


def _transpose(x: Exact, axes: Any = None) -> Exact:
    """Return a view with the axes permuted; None reverses them."""
    if axes is None:
        return x.transpose()
    return x.transpose(*axes)


FUNCTIONS |= {
    "amax": _largest,
    "amin": _smallest,
    "argmax": partial(_arg_extreme, np.argmax),
    "argmin": partial(_arg_extreme, np.argmin),
    "argsort": _argsort,
    "as_strided": as_strided,
    "broadcast_arrays": _broadcast_arrays,
    "broadcast_to": lambda x, shape, subok=False: broadcast_to(
        x, (*np.ravel(shape).tolist(),)
    ),
    "clip": _clip,
    "compress": lambda condition, x, axis=None: FUNCTIONS["take"](
        x, np.flatnonzero(condition), axis
    ),
    "concatenate": concatenate,
    "copy": Exact.copy,
    "copyto": lambda out, x, where=True, casting="same_kind": write_into(x, out, where),
    "cumprod": _cumprod,
    "cumsum": _cumsum,
    "diagonal": diagonal,
    "empty_like": _empty_like,
    "fill_diagonal": _fill_diagonal,
    "insert": _insert,
    "max": _largest,
    "may_share_memory": lambda x, y: True,
    "mean": _mean,
    "meshgrid": _meshgrid,
    "min": _smallest,
    "nan_to_num": _nan_to_num,
    "partition": lambda x, kth, axis=-1: _sort(x, axis),
    "prod": _prod,
    "ravel": Exact.ravel,
    "reshape": lambda x, shape, order="C": x.reshape(shape, order=order),
    "result_type": lambda *x: np.dtype(float),
    "sliding_window_view": _sliding_window_view,
    "sort": _sort,
    "std": _std,
    "sum": sum_over,
    "swapaxes": Exact.swapaxes,
    "trace": lambda x, *args, **kwargs: sum_over(diagonal(x, *args, **kwargs), -1),
    "transpose": _transpose,
    "var": _var,
    "where": _where,
}
for _name in (
    "all",
    "allclose",
    "any",
    "count_nonzero",
    "digitize",
    "flatnonzero",
    "isclose",
    "nonzero",
    "searchsorted",
):
    FUNCTIONS[_name] = of_floats(getattr(np, _name))
for _name in (
    "all",
    "any",
    "argmax",
    "argmin",
    "argsort",
    "clip",
    "cumprod",
    "cumsum",
    "diagonal",
    "max",
    "mean",
    "min",
    "nonzero",
    "prod",
    "repeat",
    "std",
    "sum",
    "take",
    "trace",
    "var",
):
    setattr(Exact, _name, getattr(np, _name))
# a nan has no exact value, so that nansum and the like skip nothing
for _name in ("sum", "mean", "var", "std", "prod", "max", "min", "argmax", "argmin"):
    FUNCTIONS[f"nan{_name}"] = FUNCTIONS[_name]
