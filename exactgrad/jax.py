"""Prove the gradients of JAX programs: custom rules, backward passes and kernels (D44).

JAX traces a program to a list of operations. Here they are applied to NumPy arrays, and the result
is proved as any other NumPy function, with the lines of the user's files. JAX's own derivatives are
such operations too, and so are the rules of ``jax.custom_vjp`` and ``jax.custom_jvp``.

A program is traced in float64, and its constants are the numbers that stand in its source. A cast
between floats changes nothing. Integers, booleans and random keys are constants. Kernels of Pallas
have to be called with ``interpret=True``.
"""

from __future__ import annotations

import inspect
import sys
import sysconfig
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, partial
from itertools import chain, dropwhile
from math import inf, nan, prod
from pathlib import Path
from string import ascii_letters
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

try:
    import jax
    import jax.extend.core
    import jax.extend.source_info_util as source_info_util
    import jax.numpy as jnp
    import scipy.special  # noqa: F401  # it has the floats of the functions in `SPECIAL`
except ImportError as error:
    raise ImportError(
        "exactgrad.jax needs JAX; run pip install bbb-numpy[jax]"
    ) from error

from . import proofs
from .arguments import check_callable, check_options, check_plain
from .fields.finite import Untraceable
from .programs import (
    NO_LINE,
    Line,
    Program,
    Step,
    Variable,
    as_written,
    to_function,
)
from .proofs import Proof, Verdict, with_fields, with_sentences
from .rules import solve_triangular
from .sources import line_in_words
from .structures import with_signature
from .trace.arrays import Exact, lift
from .trace.functions import SPECIAL, polygamma
from .trace.makers import ACTIVE_FIELD
from .trace.makers import NUMPY as xp
from .verdict.data import argument_names
from .verdict.runs import stop_gradient

__all__ = ["prove", "prove_same", "prove_vjp", "rule"]

Array = NDArray[Any]
Function = Callable[..., Any]
OPTIONS = "blocks coordinate n_points seed"  # options of the provers of gradients
OWN_FILES = str(Path(__file__).parent)
# Beginnings of the paths of files whose lines are not the user's
JAX_LIBRARY_PREFIXES = (
    *jax.__path__,
    *np.__path__,
    sysconfig.get_path("stdlib"),
    OWN_FILES,
    "<frozen",
    "<string>",
)

# --- the operations of JAX as functions of NumPy arrays


def _pick(positions: Array, *arrays: Any) -> Any:
    """Return the numbers at positions in the flat arrays, which follow one another.

    The last array is what -1 stands for: a number for what is outside of the arrays before it.
    """
    flat = np.ravel(arrays[0])
    if not np.isin(positions, np.arange(flat.size)).all():
        flat = np.concatenate([*map(np.ravel, arrays)])
    return flat[positions]


def _moving(primitive: Any, n_arrays: int = 1) -> Function:
    """Return the rule of an operation of JAX that only moves numbers.

    JAX moves the positions of the numbers.

    Parameters
    ----------
    primitive : Primitive
        The operation.
    n_arrays : int
        Number of leading arguments whose numbers it moves; the others are indices. By default 1.
    """

    def move(*values: Any, **parameters: Any) -> Any:
        arrays = values[:n_arrays]
        stops = np.cumsum([np.size(x) for x in arrays])
        numbers = [
            np.arange(stop - np.size(x), stop).reshape(np.shape(x))
            for x, stop in zip(arrays, stops, strict=True)
        ]
        with jax.enable_x64(True):
            positions = primitive.bind(
                *map(jnp.asarray, [*numbers, *values[n_arrays:]]), **parameters
            )
        return _pick(np.asarray(positions), *arrays)

    return move


def _patch_positions(
    shape: Sequence[int],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: Sequence[tuple[int, int]],
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Array:
    """Return the flat positions of the entries of each window; -1 in the padding.

    Parameters
    ----------
    shape : sequence of int
        The shape (n, c, ...) of a batch of arrays of c channels, which the windows slide over.
    window_dimensions, window_strides : sequence of int
        The shape of a window, and the steps between windows along each axis.
    padding : sequence of pairs of int
        The numbers of entries that are added before and behind the array along each axis.
    base_dilation, window_dilation : sequence of int, optional
        Distance along each axis between entries of the array, and of a window. By default 1.

    Returns
    -------
    array of shape (n, c k, ...)
        The positions of the k entries of each window, channel by channel.
    """
    with jax.enable_x64(True):
        numbers = jnp.arange(1.0, prod(shape) + 1).reshape(shape)
        patches = jax.lax.conv_general_dilated_patches(
            numbers,
            window_dimensions,
            window_strides,
            padding,
            base_dilation,
            window_dilation,
        )
    return np.asarray(patches).astype(int) - 1


def _reduce_window(reduce: Function, outside: float) -> Function:
    """Return the rule that reduces each window by a NumPy function, such as np.max.

    `outside` is the number that stands for what is outside of the array.
    """
    return lambda x, **windows: reduce(
        _pick(_patch_positions((1, 1, *x.shape), **windows)[0], x, outside), axis=0
    )


def _chosen_positions(x: Any, select_prim: Any, **windows: Any) -> Array:
    """Return the flat position of the largest entry of x in each window.

    Parameters
    ----------
    x : array
        The array that the windows slide over.
    select_prim : Primitive
        The comparison `ge`, or `le` for the smallest entry.
    **windows
        Arguments of `_patch_positions` after the shape.
    """
    positions = _patch_positions((1, 1, *x.shape), **windows)[0]
    choose, outside = {"ge": (np.argmax, -inf), "le": (np.argmin, inf)}[
        select_prim.name
    ]
    choice = choose(_pick(positions, x, outside), axis=0)
    return np.take_along_axis(positions, np.asarray(choice)[None], 0)[0]


def _convolve(
    x: Any,
    kernel: Any,
    window_strides: Any,
    padding: Any,
    lhs_dilation: Any,
    rhs_dilation: Any,
    dimension_numbers: Any,
    feature_group_count: int,
    batch_group_count: int,
) -> Any:
    """Return ``conv_general_dilated`` of two arrays."""
    x = np.transpose(x, dimension_numbers.lhs_spec)  # batch, channels, space
    kernel = np.transpose(kernel, dimension_numbers.rhs_spec)  # out, in, space
    x_groups = np.split(x, batch_group_count)
    if feature_group_count > 1:
        x_groups = np.split(x, feature_group_count, axis=1)
    groups = []
    for part, weights in zip(x_groups, np.split(kernel, len(x_groups)), strict=True):
        positions = _patch_positions(
            part.shape,
            weights.shape[2:],
            window_strides,
            padding,
            lhs_dilation,
            rhs_dilation,
        )
        matrix = np.reshape(weights, (len(weights), -1))
        patches = _pick(positions, part, 0)
        groups.append(np.einsum("ok,nk...->no...", matrix, patches, optimize=True))
    out = np.concatenate(groups, axis=1)
    return np.transpose(out, np.argsort(dimension_numbers.out_spec))


def _scatter(combine: Function, x: Any, positions: Array, updates: Any) -> Any:
    """Return x with each update combined, one after the other, with the entry at its position.

    Parameters
    ----------
    combine : callable
        Function of the old entries and the updates, such as np.add.
    x : array
        The array; it is not changed.
    positions : array of int
        The flat position in x for each update; -1 for none.
    updates : array
        The updates, of the shape of `positions`.
    """
    positions = np.ravel(positions)
    updates = np.ravel(updates)
    out = np.concatenate([np.ravel(x), updates])[: np.size(x)]
    waiting = np.flatnonzero(positions >= 0)
    while waiting.size:
        entries, first = np.unique(positions[waiting], return_index=True)
        out[entries] = combine(out[entries], updates[waiting[first]])
        waiting = np.delete(waiting, first)
    return np.reshape(out, np.shape(x))


def _scatter_rule(combine: Function) -> Function:
    """Return the rule of a primitive that scatters updates; `combine` is that of `_scatter`."""

    def scatter(
        x: Any, indices: Any, updates: Any, dimension_numbers: Any, mode: Any
    ) -> Any:
        """Return x with the updates scattered into it.

        Parameters
        ----------
        x : array
            The array; it is not changed.
        indices : array of int
            The indices of the updates, as for `jax.lax.scatter`.
        updates : array
            The updates.
        dimension_numbers : jax.lax.ScatterDimensionNumbers
            The axes that the indices and updates stand for.
        mode : jax.lax.GatherScatterMode
            What happens to updates outside of x.
        """
        # the transposed operation takes to each update the position that it is added to
        with jax.enable_x64(True):
            numbers = jnp.arange(1.0, np.size(x) + 1).reshape(np.shape(x))
            pull = jax.linear_transpose(
                lambda values: jax.lax.scatter_add(
                    jnp.zeros(np.shape(x)),
                    indices,
                    values,
                    dimension_numbers,
                    mode=mode,
                ),
                jnp.zeros(np.shape(updates)),
            )
            positions = np.asarray(pull(numbers)[0]).astype(int) - 1
        return _scatter(combine, x, positions, updates)

    return scatter


def _gather(x: Any, indices: Any, **parameters: Any) -> Any:
    """Return ``gather`` of an array, with its fill value for indices outside of it."""
    outside = parameters.pop("fill_value")
    with jax.enable_x64(True):
        numbers = jnp.arange(np.size(x)).reshape(np.shape(x))
        positions = jax.lax.gather_p.bind(
            numbers, jnp.asarray(indices), fill_value=-1, **parameters
        )
    return _pick(np.asarray(positions), x, nan if outside is None else outside)


def _dot_general(x: Any, y: Any, dimension_numbers: Any) -> Any:
    """Return the sums of products over contracted axes, for each entry of the batch axes."""
    summed_axes, batch_axes = dimension_numbers
    of_x = [*ascii_letters[: x.ndim]]
    of_y = [*ascii_letters[x.ndim : x.ndim + y.ndim]]
    for i, j in [*zip(*batch_axes, strict=True), *zip(*summed_axes, strict=True)]:
        of_y[j] = of_x[i]
    batch = [of_x[i] for i in batch_axes[0]]
    free = [name for name in (*of_x, *of_y) if (name in of_x) != (name in of_y)]
    names = ",".join(["".join(of_x), "".join(of_y)])
    subscripts = f"{names}->{''.join([*batch, *free])}"
    return np.einsum(subscripts, x, y, optimize=True)


def _broadcast(x: Any, *_: Any, shape: Any, broadcast_dimensions: Any) -> Any:
    """Return x broadcast to a shape, in which its axes are `broadcast_dimensions`."""
    if np.ndim(x) == 0 and type(x) is not Exact and x != x:
        # what a kernel has not written yet
        return xp.empty(shape)
    new_axes = tuple({*range(len(shape))} - {*broadcast_dimensions})
    return np.broadcast_to(np.expand_dims(x, new_axes), shape)


def _convert(x: Any, new_dtype: Any) -> Any:
    """Return x as an array of another dtype; floats and exact numbers are not rounded."""
    to_float = jnp.issubdtype(new_dtype, jnp.floating)
    if type(x) is Exact:
        if np.dtype(new_dtype).kind == "b":
            return x != 0
        return x if to_float else x.astype(new_dtype)
    if to_float:
        return np.asarray(np.real(x), float)
    return np.asarray(x).astype(new_dtype)


def _select(which: Any, *cases: Any) -> Any:
    """Return for each entry that of the case whose number is in `which`, bool or int."""
    out = cases[0]
    for i, case in enumerate(cases[1:], 1):
        out = np.where(np.equal(which, i), case, out)
    return out


def _divide(x: Any, y: Any) -> Any:
    """Return x / y; for integers the quotient is rounded toward 0."""
    if np.result_type(x, y).kind in "iu":
        return np.abs(x) // np.abs(y) * np.sign(x) * np.sign(y)
    return np.divide(x, y)


def _cumulative(accumulate: Function) -> Function:
    """Return the rule of a cumulative operation; `accumulate` takes an array and an axis."""

    def rule_of(x: Any, axis: int, reverse: bool) -> Any:
        """Return x accumulated along an axis.

        Parameters
        ----------
        x : array
            The array.
        axis : int
            The axis.
        reverse : bool
            Whether the last entry comes first.
        """
        if not reverse:
            return accumulate(x, axis)
        return np.flip(accumulate(np.flip(x, axis), axis), axis)

    return rule_of


def _sort(*operands: Any, dimension: int, num_keys: int) -> tuple[Any, ...]:
    """Return arrays with their entries in the order of the first `num_keys` of them."""
    keys = operands[:num_keys]
    if (
        type(keys[0]) is Exact or num_keys == 1
    ):  # exact numbers are not allowed to be equal
        order = np.argsort(keys[0], axis=dimension, kind="stable")
    else:
        order = np.lexsort(keys[::-1], axis=dimension)
    return tuple(np.take_along_axis(x, order, dimension) for x in operands)


def _power(x: Any, y: Any) -> Any:
    """Return x to the power y; whole exponents need no logarithm of x."""
    if type(y) is Exact or np.asarray(y).dtype.kind == "f":
        return x**y
    exponents, which = np.unique(y, return_inverse=True)
    return _select(which, *(x ** int(exponent) for exponent in exponents))


def _round(x: Any, rounding_method: Any) -> Any:
    """Return x rounded to whole numbers, halves to even numbers or away from 0."""
    if rounding_method == jax.lax.RoundingMethod.TO_NEAREST_EVEN:
        return np.rint(x)
    return np.sign(x) * np.floor(np.abs(x) + 0.5)


def _top_k(x: Any, k: int, axis: int) -> tuple[Any, Array]:
    """Return the k largest entries along an axis, and their positions."""
    order = np.argsort(np.negative(x), axis=axis, kind="stable")
    positions = np.take(order, np.arange(k), axis)
    return np.take_along_axis(x, positions, axis), positions


def _lu(a: Any) -> tuple[Any, Array, Array]:
    """Return the factors of a matrix in one array, its row exchanges and the order of its rows."""
    n_rows, n_columns = a.shape[-2:]
    order = np.broadcast_to(np.arange(n_rows), a.shape[:-1])
    pivots = list[Any]()
    for k in range(min(n_rows, n_columns)):
        pivot = k + np.argmax(np.abs(a[..., k:, k]), axis=-1)[..., None]
        rows = np.arange(n_rows)
        rows = np.where(rows == pivot, k, np.where(rows == k, pivot, rows))
        a = np.take_along_axis(a, rows[..., None], -2)
        order = np.take_along_axis(order, rows, -1)
        pivots.append(pivot)
        a[..., k + 1 :, k] /= a[..., k, None, k]
        a[..., k + 1 :, k + 1 :] -= np.multiply(
            a[..., k + 1 :, k, None], a[..., k, None, k + 1 :]
        )
    return a, np.concatenate(pivots, axis=-1).astype(np.int32), order


def _scan(
    body: Function,
    *values: Any,
    length: int,
    reverse: bool,
    num_consts: int,
    num_carry: int,
) -> list[Any]:
    """Return the last carried values of a loop, and the stacked results of its rounds."""
    constants = values[:num_consts]
    carry = values[num_consts : num_consts + num_carry]
    sequences = values[num_consts + num_carry :]
    results = []
    for i in range(length)[:: -1 if reverse else 1]:
        out = body(*constants, *carry, *(x[i] for x in sequences))
        carry = out[:num_carry]
        results.append(out[num_carry:])
    if reverse:
        results.reverse()
    return [*carry, *(np.stack(column) for column in zip(*results, strict=True))]


def _while(
    condition: Function,
    body: Function,
    *values: Any,
    cond_nconsts: int,
    body_nconsts: int,
) -> tuple[Any, ...]:
    """Return the carried values of a loop when its condition is false."""
    constants = values[:cond_nconsts]
    body_constants = values[cond_nconsts : cond_nconsts + body_nconsts]
    carry = values[cond_nconsts + body_nconsts :]
    while bool(condition(*constants, *carry)[0]):
        carry = body(*body_constants, *carry)
    return carry


def _cond(*values: Any, n_branches: int) -> tuple[Any, ...]:
    """Return what the branch returns whose number follows the branches."""
    branches = values[:n_branches]
    branch = min(max(int(values[n_branches]), 0), n_branches - 1)
    out: tuple[Any, ...] = branches[branch](*values[n_branches + 1 :])
    return out


def _same(x: Any) -> Any:
    """Return x."""
    return x


# Functions of NumPy arrays, by the name of the primitive. Of its parameters they get those that
# their signature names
RULES: dict[str, Function] = {
    "abs": np.abs,
    "acos": np.arccos,
    "acosh": lambda x: np.log(x + np.sqrt(x * x - 1)),
    "add": np.add,
    "add_any": np.add,
    "and": np.bitwise_and,
    "argmax": lambda x, axes: np.argmax(x, axis=axes[0]),
    "argmin": lambda x, axes: np.argmin(x, axis=axes[0]),
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "atanh": np.arctanh,
    "broadcast_in_dim": _broadcast,
    "cbrt": np.cbrt,
    "ceil": np.ceil,
    "cholesky": np.linalg.cholesky,
    "clamp": lambda low, x, high: np.minimum(np.maximum(x, low), high),
    "concatenate": lambda *arrays, dimension: np.concatenate(arrays, axis=dimension),
    "cond": _cond,
    "conv_general_dilated": _convolve,
    "convert_element_type": _convert,
    "copy": _same,
    "cos": np.cos,
    "cosh": np.cosh,
    "cumlogsumexp": _cumulative(lambda x, axis: np.log(np.cumsum(np.exp(x), axis))),
    "cummax": _cumulative(np.maximum.accumulate),
    "cummin": _cumulative(np.minimum.accumulate),
    "cumprod": _cumulative(np.cumprod),
    "cumsum": _cumulative(np.cumsum),
    "device_put": lambda *values: values,
    "div": _divide,
    "dot_general": _dot_general,
    "dynamic_slice": _moving(jax.lax.dynamic_slice_p),
    "dynamic_update_slice": _moving(jax.lax.dynamic_update_slice_p, 2),
    "eq": np.equal,
    "eq_to": np.equal,
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "floor": np.floor,
    "gather": _gather,
    "ge": np.greater_equal,
    "gt": np.greater,
    "integer_pow": lambda x, y: x**y,
    "is_finite": np.isfinite,
    "le": np.less_equal,
    "le_to": np.less_equal,
    "log": np.log,
    "log1p": np.log1p,
    "logistic": lambda x: 1 / (1 + np.exp(-x)),
    "lt": np.less,
    "lt_to": np.less,
    "lu": _lu,
    "max": np.maximum,
    "min": np.minimum,
    "mul": np.multiply,
    "ne": np.not_equal,
    "neg": np.negative,
    "not": np.invert,
    "optimization_barrier": lambda *values: values,
    "or": np.bitwise_or,
    "pad": _moving(jax.lax.pad_p, 2),
    "pow": _power,
    "psum": _same,
    "psum_invariant": _same,
    "pvary": _same,
    "reduce_and": lambda x, axes: np.all(x, axis=tuple(axes)),
    "reduce_max": lambda x, axes: np.max(x, axis=tuple(axes)),
    "reduce_min": lambda x, axes: np.min(x, axis=tuple(axes)),
    "reduce_or": lambda x, axes: np.any(x, axis=tuple(axes)),
    "reduce_precision": _same,
    "reduce_prod": lambda x, axes: np.prod(x, axis=tuple(axes)),
    "reduce_sum": lambda x, axes: np.sum(x, axis=tuple(axes)),
    "reduce_window_max": _reduce_window(np.max, -inf),
    "reduce_window_min": _reduce_window(np.min, inf),
    "reduce_window_sum": _reduce_window(np.sum, 0),
    "rem": np.fmod,
    "reshape": lambda x, *_, new_sizes, dimensions: np.reshape(
        x if dimensions is None else np.transpose(x, dimensions), new_sizes
    ),
    "rev": lambda x, dimensions: np.flip(x, tuple(dimensions)),
    "round": _round,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "scan": _scan,
    "scatter": _scatter_rule(lambda _, new: new),
    "scatter-add": _scatter_rule(np.add),
    "scatter-max": _scatter_rule(np.maximum),
    "scatter-min": _scatter_rule(np.minimum),
    "scatter-sub": _scatter_rule(np.subtract),
    "scatter-mul": _scatter_rule(np.multiply),
    "select_and_gather_add": lambda tangents, x, **windows: _pick(
        _chosen_positions(x, **windows), tangents, 0
    ),
    "select_and_scatter_add": lambda source, x, **windows: _scatter(
        np.add, np.zeros(x.shape), _chosen_positions(x, **windows), source
    ),
    "select_n": _select,
    "sharding_constraint": _same,
    "sign": np.sign,
    "sin": np.sin,
    "sinh": np.sinh,
    "slice": lambda x, start_indices, limit_indices, strides: x[
        tuple(map(slice, start_indices, limit_indices, strides or [1] * x.ndim))
    ],
    "sort": _sort,
    "split": lambda x, sizes, axis: np.split(x, np.cumsum(sizes)[:-1], axis),
    "sqrt": np.sqrt,
    "square": np.square,
    "squeeze": lambda x, dimensions: np.squeeze(x, tuple(dimensions)),
    "stack": lambda *arrays, axis: np.stack(arrays, axis),
    "stop_gradient": _same,
    "sub": np.subtract,
    "tan": np.tan,
    "tanh": np.tanh,
    "tile": lambda x, reps: np.tile(x, reps),
    "top_k": _top_k,
    "transpose": lambda x, permutation: np.transpose(x, permutation),
    "triangular_solve": lambda a, b, left_side, lower, transpose_a, unit_diagonal: (
        solve_triangular(a, b, lower, left_side, unit_diagonal, transpose_a)
    ),
    "unstack": lambda x, axis: [*np.moveaxis(x, axis, 0)],
    "while": _while,
    "xor": np.bitwise_xor,
}
# The same for functions that take exact numbers only
EXACT_RULES: dict[str, Function] = {
    "bessel_i0e": SPECIAL["i0e"],
    "bessel_i1e": SPECIAL["i1e"],
    "digamma": SPECIAL["digamma"],
    "erf": SPECIAL["erf"],
    "erf_inv": SPECIAL["erfinv"],
    "erfc": SPECIAL["erfc"],
    "lgamma": SPECIAL["gammaln"],
    "polygamma": lambda order, x: polygamma(int(np.ravel(order)[0]))(x),
}
# Operations whose first arguments are functions
CONTROL = {"cond", "scan", "while"}
USER_RULES: dict[str, Function] = {}
# Operations that are exact for constants too: backward passes multiply constants, and would round
ARITHMETIC = {
    "add",
    "add_any",
    "div",
    "dot_general",
    "integer_pow",
    "mul",
    "reduce_sum",
    "square",
    "sub",
}


def rule(primitive: Any, numpy_function: Function) -> None:
    """Register a NumPy function for an operation of JAX, so that proofs can use the operation.

    Parameters
    ----------
    primitive : str or Primitive
        The operation, or its name as `jax.make_jaxpr` shows it. A rule that exists is replaced.
    numpy_function : callable
        Function of the operation's arrays that returns its result; a tuple, if there are several.
        Parameters of the operation, such as `axes`, are passed by the names that its signature has.

    Raises
    ------
    TypeError
        If `numpy_function` cannot be called.
    """
    check_callable("numpy_function", numpy_function)
    USER_RULES[getattr(primitive, "name", primitive)] = numpy_function


@cache
def _signature(function: Function) -> Mapping[str, inspect.Parameter]:
    """Return the parameters of a function by name; none of NumPy's ufuncs."""
    if isinstance(function, np.ufunc):
        return {}
    return inspect.signature(function).parameters


def _accepted(function: Function, parameters: dict[str, Any]) -> dict[str, Any]:
    """Return those parameters of an operation that are named in the signature of a function."""
    names = _signature(function)
    if any(name.kind is name.VAR_KEYWORD for name in names.values()):
        return parameters
    return {name: parameters[name] for name in names if name in parameters}


def _owned(x: Any) -> Any:
    """Return x, or a copy if it is a view: programs of JAX have no arrays of common memory.

    The search for a wrong line writes into arrays.
    """
    if type(x) is Exact and x.residues.base is not None:
        return x.copy()
    return x


def _with_exact_float(
    values: tuple[Any, ...], field: Any
) -> tuple[tuple[Any, ...], bool]:
    """Return constants with their first float made exact, and whether there is one."""
    for i, value in enumerate(values):
        if np.asarray(value).dtype.kind == "f":
            return (*values[:i], lift(value, field), *values[i + 1 :]), True
    return values, False


class Keys:
    """Random keys of JAX. Proofs copy objects of other packages, but none of this class."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __getitem__(self, index: Any) -> Keys:
        return Keys(self.array[index])


class Operation:
    """An operation of JAX with its parameters, as a function of NumPy arrays.

    Parameters
    ----------
    equation : JaxprEqn
        The operation in a trace of JAX.
    parameters : dict
        Its parameters.
    """

    def __init__(self, equation: Any, parameters: dict[str, Any]) -> None:
        self.primitive = equation.primitive
        self.parameters = parameters
        self.dtypes = [x.aval.dtype for x in equation.invars]
        self.is_unpacked = (
            self.primitive.multiple_results and len(equation.outvars) == 1
        )

    def __call__(self, *values: Any) -> Any:
        """Return the result of the operation; a sequence if it has several."""
        name = self.primitive.name
        function = RULES.get(name)
        if name not in CONTROL and any(type(value) is Keys for value in values):
            function = None
        field = ACTIVE_FIELD.get()
        is_exact = any(type(value) is Exact for value in values)
        if not is_exact and field is not None and name in ARITHMETIC:
            values, is_exact = _with_exact_float(values, field)
        if is_exact:
            function = function or EXACT_RULES.get(name)
            if function is None:
                raise Untraceable(
                    f"JAX's operation {name} has no rule for exact numbers: add one by "
                    "exactgrad.jax.rule"
                )
        if function is None:
            result = self._by_jax(values)
        else:
            result = function(*values, **_accepted(function, self.parameters))
        if not self.primitive.multiple_results:
            return _owned(result)
        results = [*map(_owned, result)]
        return results[0] if self.is_unpacked else results

    def _by_jax(self, values: tuple[Any, ...]) -> Any:
        """Return the result that JAX computes of values without exact numbers."""
        with jax.enable_x64(True):
            arrays = [
                value.array if type(value) is Keys else jnp.asarray(value, dtype)
                for value, dtype in zip(values, self.dtypes, strict=True)
            ]
            result = self.primitive.bind(*arrays, **self.parameters)
        if self.primitive.multiple_results:
            return [*map(_constant, result)]
        return _constant(result)


# --- a trace of JAX as a program

# Operations that only call a function, with the parameter that holds it
CALLS = {
    "checkpoint": "jaxpr",
    "closed_call": "call_jaxpr",
    "core_call": "call_jaxpr",
    "custom_jvp_call": "call_jaxpr",
    "custom_vjp_call": "call_jaxpr",
    "jit": "jaxpr",
    "pjit": "jaxpr",
    "remat": "jaxpr",
    "remat2": "jaxpr",
    "shard_map": "jaxpr",
}


def _constant(value: Any) -> Any:
    """Return a constant of JAX as a float, as an array of NumPy, or as a `Keys`."""
    dtype = jnp.result_type(value)
    if jnp.issubdtype(dtype, jax.dtypes.extended):
        return Keys(value)
    if not jnp.issubdtype(dtype, jnp.floating):
        return np.asarray(value)
    array = np.asarray(value)
    is_scalar = array.ndim == 0
    dtype = array.dtype  # JAX says float32 for float64 here
    # JAX has already converted a float32 number that meets an array of float64
    if is_scalar and dtype == np.float64 and array == array.astype(np.float32):
        dtype = np.dtype(np.float32)
    if dtype != np.float64:
        narrow = np.float16 if dtype == np.float16 else np.float32
        array = as_written(array.astype(narrow), jnp.finfo(dtype).nmant + 1)
    return array.item() if is_scalar else array


def _lines(source_info: Any, function: str = "") -> tuple[Line, ...]:
    """Return the lines of the user's files from which JAX has an operation, innermost first.

    Parameters
    ----------
    source_info : SourceInfo
        What JAX has recorded of the operation.
    function : str, optional
        File and first line of the compiled function that the operation is in. JAX keeps the trace
        of such a function, with the lines that called it first: these are left out.
    """
    traceback = source_info.traceback
    if not traceback:
        return ()
    lines = list[Line]()
    for frame, code in zip(traceback.frames, traceback.raw_frames()[0], strict=True):
        if frame.file_name.startswith(OWN_FILES):
            break
        if not frame.file_name.startswith(JAX_LIBRARY_PREFIXES):
            lines.append((frame.file_name, frame.line_num))
        if function == f"{code.co_filename}:{code.co_firstlineno}":
            return tuple(lines)
    return () if function else tuple(lines)


def _columns(source_info: Any, lines: tuple[Line, ...]) -> tuple[int, int]:
    """Return where the expression of an operation begins and ends in the first of its lines."""
    codes, offsets = source_info.traceback.raw_frames()
    for code, offset in zip(codes, offsets, strict=True):
        if lines and code.co_filename == lines[0][0]:
            first, last, start, stop = [*code.co_positions()][offset // 2]
            if first == last == lines[0][1] and stop:
                return start, stop
            break
    return 0, 0


class Reader:
    """Translates traces of JAX to programs.

    Parameters
    ----------
    holds_constant : bool
        Whether ``jax.lax.stop_gradient`` makes constants. By default it returns its argument, so
        that the derivative of the value is that of the numbers that are computed.
    trusted : frozenset of Line, optional
        Lines of the forward pass, in whose derivatives no mistake is looked for.

    Attributes
    ----------
    lines : set of Line
        The lines of all operations.
    stops : list of Line
        The lines that call ``stop_gradient``.
    is_custom : bool
        Whether the traces have custom rules for derivatives.
    """

    def __init__(
        self, holds_constant: bool = False, trusted: frozenset[Line] = frozenset()
    ) -> None:
        self.holds_constant = holds_constant
        self.trusted = trusted
        self.lines = set[Line]()
        self.stops: list[Line] = []
        self.is_custom = False

    def to_numpy(self, trace: Any, names: Sequence[str] = ()) -> Function:
        """Return a function of NumPy arrays that returns a tuple of arrays.

        Parameters
        ----------
        trace : ClosedJaxpr
            What `jax.make_jaxpr` returns.
        names : sequence of str, optional
            Names of the inputs.
        """
        steps = list[Step]()
        inputs = [Variable() for _ in trace.jaxpr.invars]
        for variable, name in zip(inputs, names, strict=False):
            variable.name = name if name.isidentifier() else ""
        outputs = self._add_steps(steps, trace, inputs, ())
        if self.trusted:
            self._hide_derivatives(steps, outputs[0])
        return to_function(Program((*inputs,), steps, (*outputs,)))

    def _hide_derivatives(self, steps: list[Step], value: Any) -> None:
        """Take trusted lines from steps that `value` does not need, but not what calls them.

        A mistake is not in functions that are right in the forward pass, nor in their derivatives.
        """
        needed = {value}
        for i in reversed(range(len(steps))):
            step = steps[i]
            if not needed.isdisjoint(step.outputs):
                needed.update(x for x in step.inputs if type(x) is Variable)
                continue
            lines = (*dropwhile(self.trusted.__contains__, step.lines),)
            if lines != step.lines:
                steps[i] = step._replace(lines=lines or (NO_LINE,), columns=(0, 0))

    def _add_steps(
        self,
        steps: list[Step],
        trace: Any,
        inputs: Sequence[Any],
        lines: tuple[Line, ...],
        compiled: str = "",
    ) -> list[Any]:
        """Append the steps of a trace to `steps`, and return its outputs.

        Parameters
        ----------
        steps : list of Step
            The steps so far.
        trace : ClosedJaxpr or Jaxpr
            The trace.
        inputs : sequence
            The variables or constants that its inputs stand for.
        lines : tuple of Line
            The lines that have called the traced function.
        compiled : str, optional
            File and first line of the compiled function that is traced.
        """
        jaxpr = getattr(trace, "jaxpr", trace)
        constants = map(_constant, getattr(trace, "consts", ()))
        values = dict(zip(jaxpr.constvars, constants, strict=True))
        values.update(zip(jaxpr.invars, inputs, strict=True))

        def value_of(atom: Any) -> Any:
            if isinstance(atom, jax.extend.core.Literal):
                return _constant(np.asarray(atom.val, atom.aval.dtype))
            return values[atom]

        for equation in jaxpr.eqns:
            arguments = [*map(value_of, equation.invars)]
            line_stack = _lines(equation.source_info, compiled)
            called = (*line_stack, *lines)
            self.lines.update(called)
            function = None
            if not _is_random(equation, arguments):
                function = self._called_trace(equation)
            if function is not None:
                if equation.primitive.name == "custom_linear_solve":
                    arguments = _arguments_of_solve(equation, arguments)
                inner = compiled
                if equation.primitive.name in ("jit", "pjit"):
                    inner = function.jaxpr.debug_info.func_src_info.partition(" at ")[2]
                outputs = self._add_steps(steps, function, arguments, called, inner)
            else:
                outputs = [Variable() for _ in equation.outvars]
                operation, functions = self._operation(equation, called)
                arguments = [*functions, *arguments]
                columns = _columns(equation.source_info, line_stack)
                steps.append(
                    Step(operation, (*arguments,), (*outputs,), called, columns)
                )
            values.update(zip(equation.outvars, outputs, strict=True))
        return [value_of(atom) for atom in jaxpr.outvars]

    def _called_trace(self, equation: Any) -> Any:
        """Return the trace of the function that an operation calls; None if it calls none."""
        name = equation.primitive.name
        parameters = equation.params
        if name == "pallas_call":
            return _kernel_trace(equation)
        if name == "custom_linear_solve":
            return parameters["jaxprs"].solve
        if name not in CALLS:
            return None
        self.is_custom |= name.startswith("custom_")
        if name == "shard_map" and parameters["mesh"].size > 1:
            raise ValueError(
                "shard_map must have a mesh of one device in a proof; got "
                f"{parameters['mesh'].size} devices"
            )
        return parameters[CALLS[name]]

    def _operation(
        self, equation: Any, lines: tuple[Line, ...]
    ) -> tuple[Function, list[Function]]:
        """Return the rule of an operation, and functions that it takes as its first arguments."""
        name = equation.primitive.name
        parameters = dict(equation.params)
        if name in USER_RULES:
            function = USER_RULES[name]
            return partial(function, **_accepted(function, parameters)), []
        if name == "stop_gradient":
            self.stops += lines[:1]
            if self.holds_constant:
                return stop_gradient, []
        traces = []
        if name == "scan":
            traces = [parameters.pop("jaxpr")]
        elif name == "while":
            traces = [parameters.pop("cond_jaxpr"), parameters.pop("body_jaxpr")]
        elif name == "cond":
            traces = parameters.pop("branches")
            parameters["n_branches"] = len(traces)
        return Operation(equation, parameters), [*map(self.to_numpy, traces)]


def _arguments_of_solve(equation: Any, arguments: list[Any]) -> list[Any]:
    """Return those arguments of a ``custom_linear_solve`` that its function `solve` takes."""
    lengths = equation.params["const_lengths"]
    start = lengths.matvec + lengths.vecmat
    stop = start + lengths.solve
    return [*arguments[start:stop], *arguments[stop + lengths.transpose_solve :]]


def _is_random(equation: Any, arguments: list[Any]) -> bool:
    """Return whether an operation takes a random key, and no floats that the program computes.

    JAX evaluates such operations, also those that call a function.
    """
    dtypes = [atom.aval.dtype for atom in equation.invars]
    computed = [
        dtype
        for dtype, argument in zip(dtypes, arguments, strict=True)
        if type(argument) is Variable and jnp.issubdtype(dtype, jnp.floating)
    ]
    return not computed and any(
        jnp.issubdtype(dtype, jax.dtypes.extended) for dtype in dtypes
    )


def _kernel_trace(equation: Any) -> Any:
    """Return the trace of a Pallas kernel in interpret mode: of loops over its blocks."""
    from jax._src.pallas.hlo_interpreter import pallas_call_hlo_interpret

    if not equation.params["interpret"]:
        raise ValueError("pallas_call must have interpret=True in a proof; got False")
    parameters = _accepted(pallas_call_hlo_interpret, equation.params)
    run = partial(pallas_call_hlo_interpret, **parameters)
    shapes = [jax.ShapeDtypeStruct(x.aval.shape, x.aval.dtype) for x in equation.invars]
    with jax.enable_x64(True):
        return jax.make_jaxpr(run)(*shapes)


@contextmanager
def _lines_of_backward_rules() -> Iterator[None]:
    """Let JAX record the lines of backward rules, instead of those where they are called.

    While JAX transposes an operation, all that is traced gets the lines of the operation. This is
    ended whenever a function of the user begins, until the transposition ends.
    """

    def observe(frame: Any, event: str, _: Any) -> None:
        """End JAX's replacement of lines when a function of the user begins.

        Parameters
        ----------
        frame : FrameType
            The frame of the function.
        event : str
            "call" when a function begins; others are ignored.
        _ : any
            Ignored.
        """
        code = frame.f_code
        if event != "call" or code.co_filename.startswith(JAX_LIBRARY_PREFIXES):
            return
        position = code.co_filename, code.co_qualname, frame.f_lineno
        recorded = source_info_util.current().traceback
        frames = recorded.frames if recorded else ()
        if position not in [(x.file_name, x.function_name, x.line_num) for x in frames]:
            # JAX asks Python for the lines if the traceback is false, and ignores None
            names = source_info_util.current_name_stack()
            source_info_util.user_context(False, name_stack=names).__enter__()

    if sys.getprofile() is None:  # a profiler of the user's goes on
        sys.setprofile(observe)
    try:
        yield
    finally:
        if sys.getprofile() is observe:
            sys.setprofile(None)


def _trace(function: Function, *arguments: Any) -> Any:
    """Return the trace of a function of lists of float64 arrays."""
    with jax.enable_x64(True), _lines_of_backward_rules():
        return jax.make_jaxpr(function)(*arguments)


# --- arguments


class Arguments(NamedTuple):
    """The arguments of a function, whose floats are named and can be replaced."""

    leaves: list[Any]  # all leaves of the arguments
    structure: Any  # the PyTreeDef of the tuple of arguments
    positions: list[int]  # positions of the floats among the leaves
    floats: list[Any]  # for each argument a dict of its float64 arrays, by name

    @classmethod
    def of(cls, function: Function, values: tuple[Any, ...]) -> Arguments:
        """Return the arguments of a function, whose parameters name them.

        Parameters
        ----------
        function : callable
            The function.
        values : tuple of pytrees
            Its arguments.
        """
        paths, structure = jax.tree_util.tree_flatten_with_path(values)
        names = argument_names(function, len(values), skipped=0)
        floats: list[Any] = [{} for _ in values]
        positions = []
        for i, ((first, *path), leaf) in enumerate(paths):
            inner = jax.tree_util.keystr(path, simple=True, separator=".")
            name = ".".join([names[first.idx], inner]).removesuffix(".")
            check_plain(name, leaf)
            if not _is_float(leaf):
                continue
            positions.append(i)
            floats[first.idx][name] = np.asarray(leaf).astype(float)
        return cls([leaf for _, leaf in paths], structure, positions, floats)

    @property
    def flat(self) -> Any:
        """The float64 arrays of all arguments, a dict by name."""
        return {name: x for arrays in self.floats for name, x in arrays.items()}

    def with_floats(self, arrays: Sequence[Any]) -> Any:
        """Return the tuple of arguments with other arrays in place of the floats."""
        leaves = self.leaves.copy()
        for i, array in zip(self.positions, arrays, strict=True):
            leaves[i] = array
        return jax.tree_util.tree_unflatten(self.structure, leaves)

    def floats_of(self, values: Any) -> list[Any]:
        """Return from values with the structure of the arguments those in place of floats.

        None, also in place of a whole structure, stands for zeros.
        """
        filled = jax.tree_util.tree_map(
            lambda value, part: (
                jax.tree_util.tree_map(jnp.zeros_like, part) if value is None else value
            ),
            values,
            self.with_floats([*self.flat.values()]),
            is_leaf=lambda value: value is None,
        )
        leaves = self.structure.flatten_up_to(filled)
        return [leaves[i] for i in self.positions]


def _is_float(leaf: Any) -> bool:
    """Return whether a leaf is a float or an array of floats."""
    if isinstance(leaf, float):
        return True
    return hasattr(leaf, "dtype") and jnp.issubdtype(leaf.dtype, jnp.floating)


def _arrays(structures: Any) -> list[Any]:
    """Return the arrays of dicts of arrays, one after the other; an array counts as a dict of it.

    `exactgrad.prove` calls a function of ``{"theta": vector}`` with the vector.
    """
    arrays = list[Any]()
    for structure in structures:
        arrays += structure.values() if isinstance(structure, dict) else [structure]
    return arrays


def _like(theta: Any, gradient: Sequence[Any]) -> Any:
    """Return the gradients by the arrays of theta, a dict, as a dict; of an array as an array."""
    if isinstance(theta, dict):
        return dict(zip(theta, gradient, strict=True))
    return gradient[0]


# --- proofs


def prove(f: Function, theta: Any, *data: Any, **options: Any) -> Proof:
    """Prove or refute the gradient of a scalar JAX function, as ``jax.grad`` computes it (D44).

    Parameters
    ----------
    f : callable
        Function of theta and the `data` that returns a scalar, with ``jax.custom_vjp`` or
        ``jax.custom_jvp`` inside. The proof also shows that it returns the same value where it is
        differentiated, when the forward rules run in its place.
    theta : pytree
        The point, whose floats the gradient is for.
    *data
        Further arguments, pytrees. The proof is for all values of their floats on the same path;
        anything else is constant.
    **options
        `blocks`, `coordinate`, `n_points`, `seed` and `fixed`: as in `exactgrad.prove`.

    Returns
    -------
    Proof

    Raises
    ------
    TypeError, ValueError
        If an argument has a wrong type or is out of range. What JAX raises when it traces f is
        raised too.
    """
    check_callable("f", f)
    check_options("exactgrad.jax.prove", options, f"{OPTIONS} fixed")
    arguments = Arguments.of(f, (theta, *data))
    names = [*arguments.flat]
    groups = [[*arrays.values()] for arrays in arguments.floats]

    def value(*groups: list[Any]) -> Any:
        return f(*arguments.with_floats([*chain(*groups)]))

    value_trace = _trace(value, *groups)
    trace = _trace(jax.value_and_grad(value), *groups)

    def claim(reader: Reader) -> Function:
        function = reader.to_numpy(trace, names)

        def run(theta: Any, *data: Any) -> Any:
            value, *gradient = function(*_arrays([theta, *data]))
            return value, _like(theta, gradient)

        return with_signature(run, f)

    primal = Reader()
    function = primal.to_numpy(value_trace, names)
    reader = Reader(trusted=frozenset(primal.lines))
    value_and_grad = claim(reader)
    proof = proofs.prove(value_and_grad, *arguments.floats, **options)
    if proof.verdict is Verdict.REFUTED and reader.stops:
        with_constants = claim(Reader(holds_constant=True))
        if proofs.prove(with_constants, *arguments.floats, **options):
            return with_sentences(proof, [_name_stops(reader.stops)])
    if not proof or not primal.is_custom:
        return proof
    failure = _compare_values(
        lambda *floats: function(*_arrays(floats))[0],
        lambda *floats: value_and_grad(*floats)[0],
        arguments.floats,
        {name: options[name] for name in ("seed", "fixed") if name in options},
    )
    return proof if failure is None else failure


def _compare_values(
    primal: Function, forward: Function, floats: list[Any], options: dict[str, Any]
) -> Proof | None:
    """Return None if a function and its forward rules have the same values, else the failed proof.

    Parameters
    ----------
    primal, forward : callable
        Functions of the dicts in `floats` that return the value, without and with forward rules.
    floats : list of dict
        The float64 arrays of each argument, theta first. Values are also compared at other thetas,
        of other signs and sizes, where comparisons take other paths.
    options : dict
        Keyword arguments of `exactgrad.prove_same`.
    """
    theta, *data = floats
    rng = np.random.default_rng(0)
    negative = {name: -x for name, x in theta.items()}
    scaled = [
        {name: x * rng.standard_normal(x.shape) for name, x in theta.items()}
        for _ in range(4)
    ]
    sentence = "the forward rule of a custom derivative returns another value than the function"
    for point in (theta, negative, *scaled):
        proof = proofs.prove_same(primal, forward, point, *data, **options)
        if proof.verdict is Verdict.REFUTED:
            return with_sentences(proof, [sentence])
        if point is theta and not proof:
            return with_fields(proof, reason=f"perhaps {sentence}: {proof.reason}")
    return None


def _name_stops(stops: Sequence[Line]) -> str:
    """Return a sentence that names the lines which call ``stop_gradient``."""
    locations = [line_in_words(file, line) for file, line in dict.fromkeys(stops)]
    return (
        "it is the gradient if what jax.lax.stop_gradient holds constant is constant: "
        + ", ".join(locations)
    )


def prove_vjp(
    forward: Function, backward: Function, *inputs: Any, **options: Any
) -> Proof:
    """Prove or refute a backward pass that is written as for ``jax.custom_vjp`` (D44).

    Parameters
    ----------
    forward : callable
        Function of the inputs that returns a pair: the output and the residuals, both pytrees.
    backward : callable
        Function of the residuals and of the cotangent of the output, that returns a tuple of the
        cotangents of the inputs. None stands for zeros. A backward pass of one input may return
        its cotangent alone.
    *inputs
        Pytrees, whose floats are varied. Anything else is constant.
    **options
        `blocks`, `coordinate`, `n_points` and `seed`: as in `exactgrad.prove`.

    Returns
    -------
    Proof
        A proof that counts one derivative for each float of the inputs. It is for all cotangents.

    Raises
    ------
    TypeError, ValueError
        If an argument has a wrong type or is out of range, or if backward returns cotangents of
        another structure than the inputs.
    """
    check_callable("forward", forward)
    check_callable("backward", backward)
    check_options("exactgrad.jax.prove_vjp", options, OPTIONS)
    arguments = Arguments.of(forward, inputs)

    def outputs(arrays: list[Any]) -> Any:
        return forward(*arguments.with_floats(arrays))[0]

    arrays = [*arguments.flat.values()]
    cotangents = _random_cotangents(outputs, arrays)

    def both(arrays: list[Any], floats: list[Any]) -> Any:
        output, residuals = forward(*arguments.with_floats(arrays))
        result = backward(residuals, _as_cotangent(output, floats))
        is_bare = len(inputs) == 1 and isinstance(inputs[0], list)
        if isinstance(result, list) and not is_bare:
            result = tuple(result)
        if not isinstance(result, tuple) and len(inputs) == 1:
            result = (result,)
        return _float_leaves(output), arguments.floats_of(result)

    function = Reader().to_numpy(
        _trace(both, arrays, [*cotangents.values()]), [*arguments.flat, *cotangents]
    )

    def value_and_grad(theta: Any, cotangent: Any) -> Any:
        results = function(*_arrays([theta, cotangent]))
        output = results[: len(cotangent)]
        value = sum(
            np.sum(np.multiply(u, y))
            for u, y in zip(cotangent.values(), output, strict=True)
        )
        return value, _like(theta, results[len(cotangent) :])

    return proofs.prove(value_and_grad, arguments.flat, cotangents, **options)


def prove_same(
    first: Function, second: Function, *inputs: Any, seed: int = 0, fixed: Any = ()
) -> Proof:
    """Prove or refute that two JAX functions have the same values and the same gradients (D44).

    Parameters
    ----------
    first, second : callable
        Functions of the inputs that return pytrees of the same structure, such as a kernel and its
        plain form.
    *inputs
        Pytrees, whose floats are varied. Anything else is constant.
    seed, fixed
        As in `exactgrad.prove_same`.

    Returns
    -------
    Proof
        A proof of the values, integers and booleans among them, and, for all cotangents of the
        floats, of the gradients by all floats.

    Raises
    ------
    TypeError, ValueError
        If an argument has a wrong type, if the values have different structures or shapes, or if no
        input has floats.
    """
    check_callable("first", first)
    check_callable("second", second)
    arguments = Arguments.of(first, inputs)
    arrays = [*arguments.flat.values()]
    if not arrays:
        raise ValueError(
            "inputs must hold a float or an array of floats; got none: give numbers as floats"
        )

    def outputs_of(f: Function) -> Function:
        return lambda arrays: jax.tree_util.tree_map(
            jnp.asarray, f(*arguments.with_floats(arrays))
        )

    shapes = [_shapes(outputs_of(f), arrays) for f in (first, second)]
    if shapes[0] != shapes[1]:
        raise ValueError(
            "first and second must return arrays of the same structure and shapes; got "
            f"{shapes[0]} and {shapes[1]}"
        )
    cotangents = _random_cotangents(outputs_of(first), arrays)

    def with_gradient(f: Function) -> Function:
        def both(arrays: list[Any], floats: list[Any]) -> Any:
            output, pull = jax.vjp(outputs_of(f), arrays)
            values = [
                leaf.astype(float)
                for leaf in jax.tree_util.tree_leaves(output)
                if not jnp.issubdtype(leaf.dtype, jax.dtypes.extended)
            ]
            return values, pull(_as_cotangent(output, floats))[0]

        function = Reader().to_numpy(
            _trace(both, arrays, [*cotangents.values()]), [*arguments.flat, *cotangents]
        )

        def value_and_gradient(*floats: Any) -> Any:
            results = function(*_arrays(floats))
            n_outputs = len(results) - len(arrays)
            gradient = zip(arguments.flat, results[n_outputs:], strict=True)
            return {
                **{f"value {i}": x for i, x in enumerate(results[:n_outputs])},
                **{f"gradient by {name}": x for name, x in gradient},
            }

        return with_signature(value_and_gradient, first)

    return proofs.prove_same(
        with_gradient(first),
        with_gradient(second),
        *arguments.floats,
        cotangents,
        seed=seed,
        fixed=fixed,
    )


def _float_leaves(values: Any) -> list[Any]:
    """Return the leaves of a pytree that are floats."""
    return [leaf for leaf in jax.tree_util.tree_leaves(values) if _is_float(leaf)]


def _shapes(outputs: Function, arrays: list[Any]) -> dict[str, Any]:
    """Return the shape of each array that a function of `arrays` returns, by its place."""
    with jax.enable_x64(True):
        result = jax.eval_shape(outputs, arrays)
    paths = jax.tree_util.tree_flatten_with_path(result)[0]
    return {jax.tree_util.keystr(path): leaf.shape for path, leaf in paths}


def _random_cotangents(outputs: Function, arrays: list[Any]) -> dict[str, Array]:
    """Return random cotangents, by name, of the floats that a function of `arrays` returns."""
    with jax.enable_x64(True):
        leaves = _float_leaves(jax.eval_shape(outputs, arrays))
    rng = np.random.default_rng(0)
    return {
        f"cotangent {i}": np.asarray(rng.standard_normal(leaf.shape))
        for i, leaf in enumerate(leaves)
    }


def _as_cotangent(output: Any, floats: Sequence[Any]) -> Any:
    """Return `floats` with the structure of an output; other leaves get zeros of type float0."""
    remaining = iter(floats)

    def cotangent(leaf: Any) -> Any:
        if not _is_float(leaf):
            return np.zeros(jnp.shape(leaf), jax.dtypes.float0)
        return next(remaining).astype(leaf.dtype)

    return jax.tree_util.tree_map(cotangent, output)
