"""Arrays of exact numbers on which NumPy's operators and functions work, by its protocols (D44).

An `Exact` holds the residues of its numbers and of their derivatives along one direction, and
their floats, which decide comparisons and nothing else. All three are plain arrays, and NumPy's
functions are built from the operations of a field. Slices and reshapes are views: writing to a
view changes the array. A function or a keyword that is not registered here raises `Untraceable`.
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

from ..fields.finite import MASK_SIZE, MAX_RECORDED_SQUARES, Field, Untraceable
from ..structures import as_tuple

__all__ = [
    "FUNCTIONS",
    "UFUNCS",
    "Exact",
    "comparison_of",
    "field_of",
    "floats_of",
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
    "outer": UFUNCS,  # `__array_ufunc__` gives x an axis of length 1 for each axis of y
    "reduce": REDUCTIONS,
}
# Keywords of ufuncs that do not affect the numbers
IGNORED_KEYWORDS = ("casting", "order", "subok")
FULL_SLICE = slice(None)


def _in_place(name: str) -> Any:
    """Return the method ``__i<name>__`` of `Exact`, such as ``__iadd__`` for `name` "add".

    It changes an array in place. For a scalar it returns a new one, as scalars of NumPy do.
    """
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
    large_terms : array, shape (...), optional
        The sum of the constants of size `MASK_SIZE` and above that each number is known to contain
        as terms, as floats: `exp` may take them for minus infinity. By default none is known.
    """

    __slots__ = (
        "field",
        "floats",
        "is_scalar",
        "large_terms",
        "log_terms",
        "residues",
    )
    __array_priority__: ClassVar[float] = 1000.0

    def __init__(
        self,
        field: Field,
        residues: Array,
        floats: Any,
        log_terms: Array | None = None,
        large_terms: Array | None = None,
    ) -> None:
        self.field = field
        self.residues = residues
        self.floats = np.asarray(floats)
        self.log_terms = log_terms
        self.large_terms = large_terms
        # x[0] of a vector is a scalar and a copy; x[0, ...] is a view of shape () and no scalar
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

    @property
    def deciding(self) -> Array:
        """The numbers that decide comparisons: the floats, in some fields the decimals."""
        if self.field.decimals_decide:
            return self.primal[..., 0]
        return self.floats

    def __len__(self) -> int:
        return len(self.floats)

    def __iter__(self) -> Iterator[Exact]:
        return (self[i] for i in range(len(self)))

    def __repr__(self, spec: str = "") -> str:
        """Return text with the shape but no numbers, and record the request like a comparison.

        A program could branch on the text of its numbers.
        """
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
        """Return the exact array that results from taking views of residues, floats and terms.

        `view` is called with each of these arrays and with the lengths of its extra axes, which
        stand behind those of the numbers: (2, C), () or (3, C) in a field with C channels.
        """
        ndim = self.ndim
        log_terms = self.log_terms
        if log_terms is not None:
            log_terms = view(log_terms, log_terms.shape[ndim:])
        large_terms = _of_large_terms(lambda part: view(part, ()), self)
        residues = view(self.residues, self.residues.shape[ndim:])
        floats = view(self.floats, ())
        return Exact(self.field, residues, floats, log_terms, large_terms)

    def __getitem__(self, index: Any) -> Exact:
        numbers = _with_ellipsis(index)
        channels = (*numbers, FULL_SLICE, FULL_SLICE)
        log_terms = self.log_terms
        if log_terms is not None:
            log_terms = log_terms[channels]
        large_terms = _of_large_terms(operator.itemgetter(numbers), self)
        item = Exact(
            self.field,
            self.residues[channels],
            self.floats[numbers],
            log_terms,
            large_terms,
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
        if self.large_terms is None and value.large_terms is not None:
            self.large_terms = np.zeros(self.shape)
        if self.large_terms is not None:
            self.large_terms[numbers] = _large_terms_of(value)

    def reshape(self, *shape: Any, order: str = "C") -> Exact:
        """Return a view with a new shape, filled row by row or, for `order` "F", by columns."""
        if order == "F":
            return self.T.reshape(*self.floats.reshape(*shape).shape[::-1]).T
        if order not in "CA":
            raise Untraceable(
                f"reshape with order={order!r} cannot be traced; use 'C' or 'F'"
            )
        new = self.floats.reshape(_one_tuple(shape)).shape
        return self.map_views(lambda part, channels: part.reshape(new + channels))

    def transpose(self, *axes: Any) -> Exact:
        """Return a view whose axis k is the axis `axes[k]`; by default the axes are reversed."""
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
            The axes; negative numbers count from the last axis.
        """
        first = axis1 % self.ndim
        second = axis2 % self.ndim
        return self.map_views(lambda part, _: part.swapaxes(first, second))

    def squeeze(self, axis: Any = None) -> Exact:
        """Return a view without axes of length 1: all of them, or those in `axis`."""
        return self.reshape(self.floats.squeeze(axis).shape)

    def ravel(self, order: str = "C") -> Exact:
        """Return the elements as a vector, which is a view of the array if that is possible.

        `order` is "C" (row by row), "F" (column by column) or "K" (as they lie in memory).
        """
        if order == "K":
            by_stride = np.argsort(np.abs(self.floats.strides))[::-1]
            return self.transpose(*by_stride).reshape(-1)
        return self.reshape(-1, order=order)

    def copy(self, order: str = "C") -> Exact:
        """Return a copy of the array, with its derivatives; `order` is ignored."""
        return self.map_views(lambda part, _: part.copy())

    # exact numbers are real, so that conjugates are copies
    __copy__ = conj = conjugate = copy

    def __deepcopy__(self, memo: Any) -> Exact:
        return self.copy()

    def flatten(self, order: str = "C") -> Exact:
        """Return a copy as a vector, row by row or, for `order` "F", column by column."""
        return self.reshape(-1, order=order).copy()

    def view(self, dtype: Any = float, type: Any = np.ndarray) -> Exact:
        """Return a view of the whole array; raise `Untraceable` if it would change dtype or class.

        Parameters
        ----------
        dtype : dtype
            float64 or object.
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
        """Return a copy with the same numbers and with derivatives of 0."""
        residues = dual_residues(self.field, self.field.constant(self.primal))
        floats = self.floats.copy()
        return Exact(self.field, residues, floats, self.log_terms, self.large_terms)

    def astype(self, dtype: Any, copy: bool = True, **_: Any) -> Any:
        """Return the array unchanged for a dtype of floats or objects, else truncated integers.

        Parameters
        ----------
        dtype : dtype
            A dtype of floats, complex numbers, objects or integers; another raises `Untraceable`.
        copy : bool
            Whether a copy is returned (the default), or the array itself. Integers are plain.
        """
        if np.dtype(dtype).kind in "iu":
            return _to_whole(np.trunc, self).floats.astype(dtype)
        if np.dtype(dtype).kind not in "fcO":
            raise Untraceable(
                f"exact numbers cannot be converted to dtype {np.dtype(dtype)}"
            )
        if copy:
            return self.copy()
        return self

    def item(self, *index: Any) -> Exact:
        """Return one element as an exact scalar, by its position when flattened or by its index."""
        if len(index) == 1:
            return self.ravel()[index[0]]
        return self[index]

    def sort(self, axis: int = -1, **_: Any) -> None:
        """Sort the array in place along an axis, ascending; raise `Untraceable` on ties."""
        self[...] = _sort(self, axis)

    def fill(self, value: Any) -> None:
        """Set all elements in place to `value`, a number or an exact scalar."""
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
        label = name
        if method != "__call__":
            label = f"{name}.{method}"
        result = self.field.apply(label, handler, inputs, kwargs)
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
        result = self.field.apply(name, FUNCTIONS[name], args, kwargs)
        if out is None:
            return result
        return write_into(result, out)


def _with_ellipsis(index: Any) -> tuple[Any, ...]:
    """Return an index as a tuple with an ellipsis, to which indices of further axes can be added.

    Raise `Untraceable` if a part of the index is an exact number.
    """
    parts = as_tuple(index)
    if any(type(part) is Exact for part in parts):
        raise Untraceable(
            "an array is indexed with an exact number, such as an element of theta; "
            "indices must be plain integers"
        )
    if any(part is Ellipsis for part in parts):
        return parts
    return (*parts, ...)


def _one_tuple(arguments: tuple[Any, ...]) -> Any:
    """Return the arguments of a method such as x.reshape(2, 3) or x.reshape((2, 3)) as (2, 3)."""
    if len(arguments) == 1 and not isinstance(arguments[0], Integral):
        return arguments[0]
    return arguments


def _read_only_copy_or_view(x: Exact, original: Exact) -> Exact:
    """Return x, made read-only unless it is a view of the memory of `original`."""
    is_view = np.may_share_memory(x.floats, original.floats)
    x.residues.flags.writeable = x.floats.flags.writeable = is_view
    return x


def write_into(result: Any, out: Any, where: Any = True) -> Any:
    """Write a result into the array `out` where the mask `where` is True, and return `out`.

    Parameters
    ----------
    result : Exact or array
        The numbers to write, broadcast to the shape of `out`.
    out : Exact or array
        The array that is written into.
    where : bool array, optional
        Mask of the entries that are written. By default all.

    Raises
    ------
    Untraceable
        If `result` is exact and `out` is not, as derivatives would be lost.
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


# --- making exact numbers of residues, floats and constants


def dual_residues(field: Field, primal: Array, tangent: Array | None = None) -> Array:
    """Return the residues of numbers and those of their derivatives joined in one array.

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
    """Return f(x) as an exact array with the derivative f'(x) x', given f(x) and f'(x).

    Parameters
    ----------
    x : Exact
        The argument, which has the derivative x'.
    primal, slope : array, shape (..., C)
        The residues of f(x) and of f'(x).
    floats : array, shape (...)
        f(x) in floating point.
    log_terms : array, shape (..., 3, C), optional
        The term k log u that f(x) is known to contain, as u, k log u and k (see `Exact`). By
        default none is known.
    """
    residues = dual_residues(x.field, primal, _chain_rule(x, slope))
    return Exact(x.field, residues, floats, log_terms)


def _chain_rule(x: Exact, slope: Array) -> Array:
    """Return the residues of `slope` times the derivative x'; 0 where x' is 0.

    In decimals this is so even if the slope is infinite.
    """
    tangent = x.field.mul(slope, x.tangent)
    if x.field.is_decimal:
        still = (x.tangent == 0).all(axis=-1, keepdims=True)
        return np.where(still, 0 * x.field.one, tangent)
    return tangent


def lift(x: Any, field: Field) -> Exact:
    """Return numbers (integers, floats, fractions, arrays or nested lists of them) as exact.

    Their derivatives are 0.

    Parameters
    ----------
    x : Exact, number, array or nested list
        The numbers; an exact array is returned itself.
    field : Field
        The field of the residues.

    Raises
    ------
    Untraceable
        If x is an exact array of another field, stored in an earlier call, or if it contains
        anything but real numbers.
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
    large_terms = None
    is_large = (np.abs(floats) >= MASK_SIZE) & np.isfinite(floats)
    if is_large.any():
        large_terms = np.where(is_large, floats, 0.0)
    return Exact(field, dual_residues(field, primal), floats, None, large_terms)


def field_of(value: Any) -> Field | None:
    """Return the field of an exact array or of the first one in nested lists or tuples, or None."""
    if type(value) is Exact:
        return value.field
    if isinstance(value, list | tuple):
        for item in value:
            field = field_of(item)
            if field is not None:
                return field
    return None


def lift_all(*values: Any) -> list[Exact]:
    """Return all values as exact arrays, in the field of the first that is exact.

    Raise `Untraceable` if none is.
    """
    field = field_of(values)
    if field is None:
        raise Untraceable("at least one argument must be an exact number; got none")
    return [lift(value, field) for value in values]


def _log_terms_of(x: Exact) -> Array:
    """Return the log terms of x, (..., 3, C); without any, those of 1 log 1 = 0 in each entry."""
    if x.log_terms is not None:
        return x.log_terms
    shape = (*x.shape, 3, x.field.n_channels)
    return np.broadcast_to(x.field.no_log_term, shape).copy()


def _large_terms_of(x: Exact) -> Array:
    """Return the large terms of x, (...); zeros if none is known."""
    if x.large_terms is None:
        return np.zeros(x.shape)
    return x.large_terms


def _of_large_terms(function: Callable[..., Any], *arrays: Exact) -> Array | None:
    """Return `function` of the large terms of all arrays; None if none of them has any."""
    if all(x.large_terms is None for x in arrays):
        return None
    return np.asarray(function(*map(_large_terms_of, arrays)))


def _scaled_large_terms(x: Exact, factor: Exact, is_constant: bool) -> Array | None:
    """Return the large terms of x times a factor that is constant; None if there are none.

    `is_constant` says whether the factor is written in the program. If it is not, such as theta and
    data, it has to be 1, 0 or -1 and have no derivative, as masks; elsewhere the terms are 0.
    """
    scale = factor.floats
    if not is_constant:
        is_mask = np.isin(scale, (-1, 0, 1)) & ~factor.tangent.any(axis=-1)
        scale = np.where(is_mask, scale, 0.0)
    return _of_large_terms(partial(np.multiply, scale), x)


# --- arithmetic


def add(x: Any, y: Any, sign: int = 1) -> Exact:
    """Return the sum x + y, or the difference x - y if `sign` is -1, with its derivative.

    Parameters
    ----------
    x, y : Exact or array
        The operands, which are broadcast; at least one is exact.
    sign : {1, -1}
        1 to add y (the default), -1 to subtract it.
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
    operation = np.add if sign == 1 else np.subtract
    large_terms = _of_large_terms(operation, x, y)
    return Exact(field, residues, floats, log_terms, large_terms)


def _negative(x: Exact) -> Exact:
    """Return -x, with its derivative."""
    log_terms = x.log_terms
    if log_terms is not None:
        log_terms = x.field.negate_log_terms(log_terms)
    large_terms = _of_large_terms(np.negative, x)
    residues = x.field.neg(x.residues)
    return Exact(x.field, residues, -x.floats, log_terms, large_terms)


def _gate(mask: Array, x: Exact) -> Exact:
    """Return x where the bool array `mask` is True, and 0 with derivative 0 elsewhere."""
    keep = np.asarray(mask)[..., None, None]
    residues = np.where(keep, x.residues, 0 * x.field.one)
    log_terms = x.log_terms
    if log_terms is not None:
        log_terms = np.where(keep, log_terms, x.field.no_log_term)
    large_terms = _of_large_terms(partial(np.multiply, mask), x)
    return Exact(x.field, residues, mask * x.floats, log_terms, large_terms)


def multiply(x: Any, y: Any) -> Exact:
    """Return the product x y, with derivative (x y)' = x y' + x' y.

    Parameters
    ----------
    x, y : Exact or array
        The factors, which are broadcast; at least one is exact. A bool array is a mask: the
        product is the other factor where it is True, and 0 elsewhere.
    """
    for mask, factor in ((x, y), (y, x)):
        if type(mask) is not Exact and getattr(mask, "dtype", None) == np.bool_:
            return _gate(mask, factor)
    x_is_constant = type(x) is not Exact
    y_is_constant = type(y) is not Exact
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
    large_terms = _scaled_large_terms(x, y, y_is_constant)
    if large_terms is None:
        large_terms = _scaled_large_terms(y, x, x_is_constant)
    product = Exact(field, residues, x.floats * y.floats, log_terms, large_terms)
    if x is y and 0 < x.size <= MAX_RECORDED_SQUARES:
        field.record_square(product.primal, x.primal, x.floats)
    return product


def divide(x: Any, y: Any) -> Exact:
    """Return the quotient q = x / y, with derivative q' = (x' - q y') / y.

    Parameters
    ----------
    x, y : Exact or array
        Numerator and denominator, which are broadcast; at least one is exact. In a finite field
        1 / 0 is 0, and the division by 0 is recorded.
    """
    y_is_constant = type(y) is not Exact
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
    large_terms = None
    if y_is_constant:
        large_terms = _of_large_terms(lambda part: part / y.floats, x)
    return Exact(field, residues, x.floats / y.floats, log_terms, large_terms)


def _exponent(n: Any) -> Any:
    """Return the exponent n as floats; 0.25, which needs a logarithm, unless it is constant.

    Decimals do not tell constants from data.
    """
    if type(n) is not Exact:
        return n
    if n.field.is_decimal:
        return 0.25
    is_number = n.residues == lift(n.floats, n.field).residues
    return n.floats if is_number.all() else 0.25


def power(x: Any, n: Any) -> Exact:
    """Return x^n: by products for an integer n, by sqrt for a half-integer, else as exp(n log x).

    Parameters
    ----------
    x : Exact or array
        The base.
    n : number, array or Exact
        The exponent. If it moves or is data, differs between entries or is no multiple of 1/2, x
        has to be positive.
    """
    constant = _exponent(n)
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


# --- comparisons, which are decided by the floats

KINK_MESSAGE = (
    "two different expressions are equal at this theta and are compared: theta lies on a "
    "kink or a tie. Take another theta"
)
TIED_DATA_MESSAGE = (
    "data are compared with a number that they equal: pass labels and masks as "
    "integers or booleans"
)


def _refuse_ties(x: Exact, y: Exact) -> None:
    """Raise `Untraceable` if x or y contains nan, or if different numbers have equal floats.

    At such a tie a tiny step of theta may change the branch, so that no gradient belongs to it.
    """
    is_nan = np.isnan(x.floats).any() or np.isnan(y.floats).any()
    if is_nan and not x.field.decimals_decide:
        raise Untraceable(
            "a number that is nan in floats is compared, which decides no branch: avoid the nan"
        )
    is_decimal = x.field.is_decimal
    if is_decimal and ((x.primal != x.primal).any() or (y.primal != y.primal).any()):
        raise Untraceable(
            "the result of a division by 0 is compared, which decides no branch: avoid the "
            "division"
        )
    tie = x.floats == y.floats  # also where both floats overflow to inf
    if tie.any() and not is_decimal:
        differ = (x.primal != y.primal).any(axis=-1)
        if (tie & differ).any():
            moving = x.has_tangent or y.has_tangent
            raise Untraceable(KINK_MESSAGE if moving else TIED_DATA_MESSAGE)


def comparison_of(operation: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Return a version of a comparison, such as np.less, that accepts exact arrays.

    It applies `operation` to the floats and returns its bool array, which is also appended to
    `field.path`. It raises `Untraceable` on nan and on ties of different numbers.
    """

    def comparison(x: Any, y: Any) -> Any:
        x, y = lift_all(x, y)
        _refuse_ties(x, y)
        result = operation(x.deciding, y.deciding)
        x.field.path.append(np.ravel(result))
        return result

    return comparison


def select(condition: Any, x: Any, y: Any) -> Exact:
    """Return an array with the entries of x where the condition is True, and of y elsewhere.

    Parameters
    ----------
    condition : bool array or Exact
        The condition. Exact numbers count as True unless they are 0.
    x, y : Exact or array
        The numbers to choose from; all three arrays are broadcast.
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
    large_terms = _of_large_terms(lambda *parts: np.where(condition, *parts), x, y)
    return Exact(x.field, residues, floats, log_terms, large_terms)


def _where(condition: Any, *branches: Any) -> Any:
    """Return np.where(condition, x, y) for `branches` (x, y), or np.where(condition) without."""
    if field_of(branches) is not None:
        return select(condition, *branches)
    return np.where(comparison_of(np.not_equal)(condition, 0), *branches)


def floats_of(x: Any) -> Any:
    """Return the floats of an exact array, and anything else as it is."""
    return x.floats if type(x) is Exact else x


def of_floats(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a version of `function` that accepts exact arrays and passes their floats to it.

    The bits of its results are appended to `field.path`, like the results of comparisons.
    """

    def of_exact(*args: Any, **kwargs: Any) -> Any:
        result = function(*map(floats_of, args), **kwargs)
        field = field_of(args)
        if field is not None:
            for values in as_tuple(result):
                content = np.frombuffer(np.asarray(values).tobytes(), np.uint8)
                field.path.append(np.unpackbits(content).astype(bool))
        return result

    return of_exact


def _test_finiteness(function: Callable[..., Any], x: Exact, **kwargs: Any) -> Any:
    """Return np.isfinite, np.isnan or np.isinf of the floats of x, as `function` says.

    Raise `Untraceable` if they are not finite because theta lies on a pole: next to it they are.
    """
    if x.field.decimals_decide:
        return function(x.field.infinities(x.primal[..., 0]), **kwargs)
    if x.field.at_pole and not np.isfinite(x.floats).all():
        raise Untraceable(KINK_MESSAGE)
    return function(x.floats, **kwargs)


def _larger(x: Any, y: Any) -> Exact:
    """Return the larger of x and y for each element, x where they are equal."""
    return select(comparison_of(np.greater_equal)(x, y), x, y)


def _smaller(x: Any, y: Any) -> Exact:
    """Return the smaller of x and y for each element, x where they are equal."""
    return select(comparison_of(np.less_equal)(x, y), x, y)


def _clip(
    x: Any, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None
) -> Any:
    """Return x clipped to the interval [a_min, a_max], as np.clip; None is no bound.

    `min` and `max` are other names of `a_min` and `a_max`.
    """
    low = a_min if min is None else min
    high = a_max if max is None else max
    if low is not None:
        x = _larger(x, low)
    if high is not None:
        x = _smaller(x, high)
    return x


def _sign(x: Exact) -> Array:
    """Return the signs of the elements of x, as a float array of -1, 0 and 1."""
    is_positive = comparison_of(np.greater)(x, 0)
    is_negative = comparison_of(np.less)(x, 0)
    x.field.n_rounded += x.has_tangent
    return is_positive * 1.0 - is_negative


def _absolute(x: Exact) -> Exact:
    """Return |x| for each element, with its derivative."""
    return select(comparison_of(np.less)(x, 0), _negative(x), x)


def _to_whole(round_floats: Callable[[Array], Array], x: Any) -> Exact:
    """Return x rounded to whole numbers by np.floor, np.ceil, np.trunc or np.rint; derivatives 0.

    Raise `Untraceable` where the rounded number jumps. Whether it is odd is appended to
    `field.path`.
    """
    (x,) = lift_all(x)
    whole = round_floats(x.floats)
    jumps = whole
    if round_floats is np.rint:
        jumps = np.floor(x.floats) + 0.5
    elif round_floats is np.trunc:
        jumps = np.where(whole == 0, 1, whole)
    _refuse_ties(x, lift(jumps, x.field))
    x.field.path.append(np.ravel(whole % 2 == 1))
    x.field.n_rounded += x.has_tangent
    return lift(whole, x.field)


def _round(x: Any, decimals: int = 0) -> Exact:
    """Return x rounded to `decimals` decimal places, as np.round, with derivatives 0."""
    # products and quotients as in NumPy, for equal floats
    scale = 10.0 ** abs(decimals)
    if decimals < 0:
        return multiply(_to_whole(np.rint, divide(x, scale)), scale)
    return divide(_to_whole(np.rint, multiply(x, scale)), scale)


def _remainder(round_floats: Callable[[Array], Array], x: Any, y: Any) -> Exact:
    """Return x - y n, where n is x / y rounded: np.remainder by np.floor, np.fmod by np.trunc."""
    return add(x, multiply(y, _to_whole(round_floats, divide(x, y))), -1)


UFUNCS |= {
    "absolute": _absolute,
    "add": add,
    "ceil": partial(_to_whole, np.ceil),
    "clip": _clip,
    "conjugate": Exact.copy,
    "divide": divide,
    "fabs": _absolute,
    "float_power": power,
    "floor": partial(_to_whole, np.floor),
    "floor_divide": lambda x, y: _to_whole(np.floor, divide(x, y)),
    "fmax": _larger,
    "fmin": _smaller,
    "fmod": partial(_remainder, np.trunc),
    "maximum": _larger,
    "minimum": _smaller,
    "multiply": multiply,
    "negative": _negative,
    "positive": Exact.copy,
    "power": power,
    "reciprocal": lambda x: divide(1, x),
    "remainder": partial(_remainder, np.floor),
    "rint": partial(_to_whole, np.rint),
    "sign": _sign,
    "signbit": of_floats(np.signbit),
    "square": lambda x: multiply(x, x),
    "subtract": lambda x, y: add(x, y, -1),
    "trunc": partial(_to_whole, np.trunc),
}
for _name in ("less", "less_equal", "greater", "greater_equal", "equal", "not_equal"):
    UFUNCS[_name] = comparison_of(getattr(np, _name))
for _name in ("isfinite", "isnan", "isinf"):
    UFUNCS[_name] = partial(_test_finiteness, getattr(np, _name))

# --- functions that rearrange, repeat or join elements


def _by_position(
    function: Callable[..., Any], x: Exact, *args: Any, **kwargs: Any
) -> Exact:
    """Return x with its elements rearranged as NumPy's `function` does, such as np.roll or np.tril.

    `function` is applied to an array of positions. Elements that it sets to 0 become 0.
    """
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
        The arrays, of which at least one is exact. Their shapes agree but for the joined axis.
    axis : int or None
        The axis along which they are joined. None flattens the arrays first.
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
    large_terms = _of_large_terms(lambda *terms: np.concatenate(terms, axis), *parts)
    return Exact(parts[0].field, residues, floats, log_terms, large_terms)


def stack(arrays: Any, axis: int = 0) -> Exact:
    """Return arrays of one shape joined along a new axis.

    Parameters
    ----------
    arrays : sequence of Exact or array
        Arrays of one shape, of which at least one is exact.
    axis : int
        Position of the new axis in the result, which has one entry for each array.
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
        Position of the axis before and after the move.
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
        Number of columns by which the diagonal lies right of the main one; negative below it.
    axis1, axis2 : int
        The axes that are taken as rows and as columns.
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
    """Return a view of all windows of a shape, as np.lib.stride_tricks.sliding_window_view.

    `subok` and `writeable` are ignored.
    """
    axes: Any = _axes(x, axis)

    def view(part: Array, channels: tuple[int, ...]) -> Array:
        windows = np.lib.stride_tricks.sliding_window_view(part, window_shape, axes)
        n_new = windows.ndim - part.ndim
        # move the axes of the windows, which are last, before those of derivatives and channels
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
    """Return a view with given shape and strides, as np.lib.stride_tricks.as_strided.

    The residues lie in memory as the floats do, with strides that are a fixed multiple of theirs.
    If entries of the view overlap, it is read-only.

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

    Raises
    ------
    Untraceable
        If the view would reach outside of the memory of x, or x is not in row-major order.
    """
    shape = tuple(map(operator.index, x.shape if shape is None else shape))
    strides = tuple(map(operator.index, x.strides if strides is None else strides))
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
    """Return x with `values` inserted before the positions `index`, as np.insert."""
    x, values = lift_all(x, values)
    positions = np.arange(x.size).reshape(x.shape)
    new_positions = np.arange(x.size, x.size + values.size).reshape(values.shape)
    positions = np.insert(positions, index, new_positions, axis)
    return concatenate([x.ravel(), values.ravel()])[positions]


def _meshgrid(*arrays: Any, **kwargs: Any) -> Any:
    """Return coordinate arrays of the grid that exact vectors span, as np.meshgrid."""
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
        The shape of the view, with which that of x is broadcast.
    """
    return x.map_views(lambda part, channels: np.broadcast_to(part, shape + channels))


def _broadcast_arrays(*arrays: Any, subok: bool = False) -> list[Exact]:
    """Return views of all arrays broadcast to their common shape; `subok` is ignored."""
    parts = lift_all(*arrays)
    shape = np.broadcast_shapes(*(x.shape for x in parts))
    return [broadcast_to(x, shape) for x in parts]


# --- sums, products, extremes and sorting along axes


def _axes(x: Exact, axis: Any) -> tuple[int, ...]:
    """Return the argument `axis` of a reduction of x as a tuple of axes >= 0; None is all axes."""
    if not x.ndim:
        return ()
    if axis is None:
        return tuple(range(x.ndim))
    return tuple(operator.index(k) % x.ndim for k in as_tuple(axis))


def _count(x: Exact, axis: Any) -> int:
    """Return the number of elements of x in each sum over `axis`, an int, a tuple or None."""
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
        Mask of the terms that are added. By default all.
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
    """Return the means of x over one or more axes; None is all axes."""
    return divide(sum_over(x, axis, keepdims), _count(lift_all(x)[0], axis))


def _var(x: Any, axis: Any = None, ddof: int = 0, keepdims: bool = False) -> Exact:
    """Return the variances of x over one or more axes, with the divisor n - `ddof` for n values."""
    centred = add(x, _mean(x, axis, keepdims=True), -1)
    squares = sum_over(multiply(centred, centred), axis, keepdims)
    return divide(squares, _count(centred, axis) - ddof)


def _std(x: Any, *args: Any, **kwargs: Any) -> Exact:
    """Return the standard deviations of x over one or more axes, with the arguments of `_var`."""
    return UFUNCS["sqrt"](_var(x, *args, **kwargs))


def _accumulate(name: str, x: Any, axis: Any = None) -> Exact:
    """Return the results of the ufunc `name` accumulated along an axis; None flattens x."""
    rows = x.ravel() if axis is None else moveaxis(x, axis, 0)
    results: list[Exact] = []
    for row in rows:
        if results:
            row = UFUNCS[name](results[-1], row)
        results.append(row)
    return moveaxis(stack(results), 0, axis or 0)


def _cumsum(x: Any, axis: Any = None) -> Exact:
    """Return the cumulative sums along an axis; None flattens x."""
    if axis is None:
        x = x.ravel()
    axis = (axis or 0) % x.ndim
    residues = x.field.cumsum(x.residues, axis)
    return Exact(x.field, residues, np.cumsum(x.floats, axis=axis))


def _flatten_axes(x: Exact, axis: Any) -> Exact:
    """Return x with the axes in `axis` moved last and flattened into one."""
    reduced = _axes(x, axis)
    kept_axes = [k for k in range(x.ndim) if k not in reduced]
    shape = [x.shape[k] for k in kept_axes]
    return x.transpose(*kept_axes, *reduced).reshape([*shape, -1])


def _reduced_shape(x: Exact, axis: Any, keepdims: bool) -> tuple[int, ...]:
    """Return the shape that a sum of x over `axis` has, with or without axes of length 1."""
    return x.floats.sum(axis, keepdims=keepdims).shape


def _prod(x: Any, axis: Any = None, keepdims: bool = False) -> Exact:
    """Return the products of the elements of x over one or more axes; None is all axes."""
    (x,) = lift_all(x)
    factors = moveaxis(_flatten_axes(x, axis), -1, 0)
    # multiply one half of the factors by the other at once, and so on, instead of one by one
    while len(factors) > 1:
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
    """Return the maxima or minima over axes, for `pick` np.argmax or np.argmin; raise on ties.

    A tie of different numbers raises `Untraceable`. If `initial` is given, it is one more number to
    choose from.
    """
    flat = _flatten_axes(x, axis)
    positions = np.expand_dims(pick(flat.deciding, axis=-1), -1)
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
    """Return np.argmax or np.argmin of x, as `pick` says; raise `Untraceable` on ties."""
    _extreme(pick, x, axis)
    x.field.n_rounded += x.has_tangent
    return pick(x.deciding, axis=axis, keepdims=keepdims)


def _argsort(x: Any, axis: Any = -1, kind: Any = None) -> Array:
    """Return the positions that sort x along an axis, as np.argsort; raise on ties.

    A tie of different numbers raises `Untraceable`. `kind` is ignored: the sort is stable.
    """
    order = np.argsort(x.deciding, axis=axis, kind="stable")
    ascending = moveaxis(_take_along_axis(x, order, axis), axis, 0)
    _refuse_ties(ascending[1:], ascending[:-1])
    x.field.path.append(np.ravel(order[..., None] == np.arange(x.shape[axis])))
    return order


def _order(x: Any, axis: Any = -1, kind: Any = None) -> Array:
    """Return the positions of `_argsort`, for a function that uses them as numbers."""
    x.field.n_rounded += x.has_tangent
    return _argsort(x, axis, kind)


def _sort(x: Exact, axis: Any = -1, kind: Any = None) -> Exact:
    """Return x sorted along an axis, ascending; None flattens x. `kind` is ignored."""
    if axis is None:
        return _sort(x.ravel(), 0)
    return _take_along_axis(x, _argsort(x, axis), axis)


def _searchsorted(a: Any, v: Any, side: Any = "left", sorter: Any = None) -> Any:
    """Return np.searchsorted of the floats; raise `Untraceable` if v ties with an entry of a."""
    a, v = lift_all(a, v)
    if sorter is not None:
        a = a[sorter]
    if a.size:
        nearest = np.searchsorted(a.floats, v.floats)
        _refuse_ties(v, a[np.minimum(nearest, a.size - 1)])
    return of_floats(np.searchsorted)(a, v, side)


def _digitize(x: Any, bins: Any, right: bool = False) -> Any:
    """Return the indices of the bins to which x belongs, as np.digitize; raise on ties."""
    x, bins = lift_all(x, bins)
    side = "left" if right else "right"
    if bins.floats[0] > bins.floats[-1]:
        return bins.size - _searchsorted(bins[::-1], x, side)
    return _searchsorted(bins, x, side)


def _add_reduceat(x: Exact, starts: Any, axis: int = 0) -> Exact:
    """Return the sums of the slices of x between the positions `starts`, as np.add.reduceat."""
    x = moveaxis(x, axis, 0)
    edges = [*map(int, starts), len(x)]
    sums = [sum_over(x[i : max(j, i + 1)], 0) for i, j in pairwise(edges)]
    return moveaxis(stack(sums), 0, axis)


def _add_at(x: Any, index: Any, y: Any, sign: int = 1) -> None:
    """Add y in place to the entries x[index], or subtract it if `sign` is -1, as np.add.at.

    An entry whose index is repeated gets all of its terms. Raise `Untraceable` unless x is exact.
    """
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
    "accumulate": {
        "add": _cumsum,
        **{
            name: partial(_accumulate, name)
            for name in ("multiply", "maximum", "minimum", "logaddexp")
        },
    },
    "reduceat": {"add": _add_reduceat},
    "at": {
        "add": _add_at,
        "subtract": lambda x, index, y: _add_at(x, index, y, -1),
    },
}

# --- np.empty_like, np.fill_diagonal and other functions; the table `FUNCTIONS`


def uninitialized(field: Field, shape: Any) -> Exact:
    """Return an exact array in place of np.empty, all of whose residues are one random number.

    So a gradient that depends on the entries is not proved right by chance. The floats are nan.

    Parameters
    ----------
    field : Field
        The field of the numbers.
    shape : int or tuple of int
        The shape of the array.
    """
    floats = np.full(shape, np.nan)
    primal = np.broadcast_to(field.uninitialized, (*floats.shape, field.n_channels))
    return Exact(field, dual_residues(field, primal), floats)


def _empty_like(x: Exact, dtype: Any = None, shape: Any = None, **_: Any) -> Any:
    """Return an uninitialized array with the shape of x, exact unless `dtype` is given."""
    shape = x.shape if shape is None else shape
    if dtype is not None:
        return np.empty(shape, dtype)
    return uninitialized(x.field, shape)


def _fill_diagonal(x: Exact, value: Any, wrap: bool = False) -> None:
    """Set the diagonal of x to `value` in place; raise `Untraceable` if `wrap` is True."""
    if wrap:
        raise Untraceable("np.fill_diagonal cannot be traced with wrap=True")
    x[(np.arange(min(x.shape)),) * x.ndim] = value


def _nan_to_num(x: Exact, copy: bool = True) -> Exact:
    """Return a copy of x; raise `Untraceable` if a float is not finite or `copy` is False."""
    if not np.isfinite(x.floats).all() or not copy:
        raise Untraceable(
            "np.nan_to_num can be traced only with copy=True and for finite numbers"
        )
    return x.copy()


def _transpose(x: Exact, axes: Any = None) -> Exact:
    """Return a view of x with its axes in the order `axes`; None reverses them."""
    if axes is None:
        return x.transpose()
    return x.transpose(*axes)


FUNCTIONS |= {
    "amax": _largest,
    "amin": _smallest,
    "argmax": partial(_arg_extreme, np.argmax),
    "argmin": partial(_arg_extreme, np.argmin),
    "argpartition": lambda x, kth, axis=-1: _argsort(x, axis),
    "argsort": _order,
    "around": _round,
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
    "cumprod": partial(_accumulate, "multiply"),
    "cumsum": _cumsum,
    "diagonal": diagonal,
    "digitize": _digitize,
    "empty_like": _empty_like,
    "fill_diagonal": _fill_diagonal,
    "fix": partial(_to_whole, np.trunc),
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
    "round": _round,
    "searchsorted": _searchsorted,
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
    "flatnonzero",
    "isclose",
    "nonzero",
):
    FUNCTIONS[_name] = of_floats(getattr(np, _name))
for _name in (
    "all",
    "any",
    "argmax",
    "argmin",
    "argpartition",
    "argsort",
    "clip",
    "cumprod",
    "cumsum",
    "diagonal",
    "dot",
    "max",
    "mean",
    "min",
    "nonzero",
    "prod",
    "repeat",
    "round",
    "searchsorted",
    "std",
    "sum",
    "take",
    "trace",
    "var",
):
    setattr(Exact, _name, getattr(np, _name))
# nan has no exact form: np.nansum has no entry to skip, is np.sum, and so on
for _name in ("sum", "mean", "var", "std", "prod", "max", "min", "argmax", "argmin"):
    FUNCTIONS[f"nan{_name}"] = FUNCTIONS[_name]
