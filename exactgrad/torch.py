"""Prove hand-written backward passes of PyTorch: `torch.autograd.Function`, and autograd itself.

A function of tensors is run once by PyTorch, in float64. A `Tracer` sees each operation of ATen
that the function and the backward pass call, hand-written or not, and writes it down as a step on
NumPy arrays. `exactgrad.prove` then proves that program, whose lines are those of the user's file.
Operations that have no rule here are replaced by others, as PyTorch's own table of decompositions
says; how a kernel in C++ rounds is not proved.

>>> import torch
>>> class Square(torch.autograd.Function):
...     @staticmethod
...     def forward(ctx, x):
...         ctx.save_for_backward(x)
...         return x * x
...
...     @staticmethod
...     def backward(ctx, grad):
...         (x,) = ctx.saved_tensors
...         return 2 * grad * x
>>> print(prove_vjp(Square, torch.tensor([0.5, -1.5])))
proved: all 2 derivatives are exact

What depends on the values of tensors belongs to the path: where a function asks for a truth value
or a whole number (``if x.sum() > 0``), the program holds on this path only, and is traced anew at
a theta of another. A function that reads numbers (``float(x)``, ``x.numpy()``) is not traceable.
Numbers of Python and whole numbers are constants of the program; dtypes of floats are ignored.
"""

from __future__ import annotations

import inspect
import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from threading import RLock
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.lib.stride_tricks import as_strided

try:
    import scipy.special
    import torch
    from torch import Tensor
    from torch._decomp import decomposition_table
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.overrides import TorchFunctionMode
    from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
    from torch.utils._pytree import (
        keystr,
        tree_flatten,
        tree_flatten_with_path,
        tree_leaves,
        tree_map,
        tree_unflatten,
    )
except ImportError as error:
    raise ImportError(
        "exactgrad.torch needs PyTorch; run pip install bbb-numpy[torch]"
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
from .structures import array_or_structure, flatten_theta, with_signature
from .trace.arrays import KINK_MESSAGE, Exact, floats_of, lift
from .trace.arrays import of_floats as on_path
from .trace.copies import ACTIVE_COPIES
from .trace.functions import polygamma
from .triton import traced_launches
from .verdict.data import FIXED, argument_names, parse_fixed

__all__ = ["prove", "prove_same", "prove_vjp", "rule"]

Array = np.ndarray[Any, Any]
TORCH = str(Path(torch.__file__).parent)
PACKAGE = str(Path(__file__).parent)
APPLY_CODE = torch.autograd.Function.apply.__func__.__code__
ATOL = 1e-13  # what is left of a difference of equal numbers
RTOL = 1e-7  # of the largest number: the program has to give PyTorch's own numbers
# The default dtype and the random numbers are those of all threads
TRACE_LOCK = RLock()
RUN_BACKWARD = torch.autograd._engine_run_backward
UNINITIALIZED = 0.7390851332151607  # what torch.empty holds in a trace


# --- rules: NumPy functions for operations of ATen, which take the same arguments


def _is_float(x: Any) -> bool:
    """Return whether x is an array of floats, as exact arrays are."""
    return _is_array(x) and x.dtype.kind == "f"


def _is_array(x: Any) -> bool:
    """Return whether x is an array or a number of NumPy, or an exact array."""
    return isinstance(x, np.ndarray | np.generic)


def _to_tensor(x: Any) -> Any:
    """Return an array or a number of NumPy as a tensor, and anything else as it is."""
    return torch.tensor(x) if _is_array(x) else x


def _of_axes(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a reduction of NumPy with the arguments of PyTorch; no axes stand for all."""

    def reduce(x: Any, dim: Any = None, keepdim: bool = False, **options: Any) -> Any:
        """Return x reduced over axes.

        Parameters
        ----------
        x : array
            The array.
        dim : int, or a tuple or list of int, optional
            The axes. By default, and if there are none in it, all.
        keepdim : bool
            Whether the axes are kept with length 1. By default they are not.
        **options
            Further keywords of the reduction.
        """
        axis = tuple(dim) if isinstance(dim, list) else dim
        if axis == ():
            axis = None
        return function(x, axis=axis, keepdims=keepdim, **options)

    return reduce


def _variance(
    x: Any, dim: Any = None, *, correction: float = 1, keepdim: bool = False
) -> Any:
    """Return variances along axes; the divisor is the number of values minus `correction`."""
    return _of_axes(np.var)(x, dim, keepdim, ddof=correction)


def _to_int(x: Any) -> Any:
    """Return floats without their fractions as integers, which are constants on the path."""
    np.trunc(x)  # it refuses whole numbers, at which the result jumps
    return on_path(np.trunc)(x).astype(int)


def _shrink_backward(grad: Any, x: Any, threshold: float) -> Any:
    """Return the cotangent of x, whose numbers up to a threshold were set to 0."""
    return np.where(np.abs(x) > threshold, grad, 0.0)


def _power(x: Any, exponent: Any) -> Any:
    """Return x to the power of an exponent; 2^x is exp(x log 2) with a rounded constant."""
    if _is_array(x):
        return x**exponent
    return np.exp(exponent * math.log(x))


def _solve(matrix: Any, right: Any, left: bool = True, **_: Any) -> tuple[Any, ...]:
    """Return the solution of A X = B, A in place of its factors, and 0 for pivots and errors."""
    return _lu_solve(matrix, 0, right, left=left), matrix, 0, 0


def _lu_solve(
    matrix: Any, pivots: Any, right: Any, *, left: bool = True, adjoint: bool = False
) -> Any:
    """Return the solution of A X = B or, unless `left`, of X A = B; A stands for its factors."""
    columns = right if right.ndim == matrix.ndim else right[..., None]
    inverse = np.linalg.inv(matrix.swapaxes(-1, -2) if adjoint else matrix)
    solution = inverse @ columns if left else columns @ inverse
    return solution.reshape(right.shape)


# --- operations that move, add or pick numbers: PyTorch shows on other numbers what they do


def _at_positions(positions: Array, *arrays: Any) -> Any:
    """Return the numbers at `positions` of the flattened arrays; -1 stands for the number 0."""
    zero = np.zeros(1, arrays[0].dtype)
    return np.concatenate([*(np.reshape(x, -1) for x in arrays), zero])[positions]


def _sum_at(positions: Array, terms: Any, shape: Sequence[int]) -> Any:
    """Return an array with the sums of the terms (n,) that belong to each position (n,) in it."""
    size = int(np.prod(shape))
    order = np.argsort(positions, kind="stable")
    counts = np.bincount(positions, minlength=size)
    table = np.full((size, counts.max()), -1)
    table[np.arange(table.shape[1]) < counts[:, None]] = order
    return np.sum(_at_positions(table, terms), axis=1).reshape(shape)


def _on_tensors(
    op: Any, arguments: tuple[Any, Any]
) -> tuple[Array, Callable[[Tensor], Any]]:
    """Return all floats in the arguments of an operation, and the operation on other floats.

    Parameters
    ----------
    op : torch._ops.OpOverload
        The operation.
    arguments : tuple
        Its positional arguments and its keywords, arrays for tensors.

    Returns
    -------
    numbers : array of shape (n,)
        The floats of all arrays, one array after the other.
    run : callable
        Function of a tensor (n,), with which PyTorch runs the operation in their place.
    """
    data = [x for x in tree_leaves(arguments) if _is_float(x)]

    def run(numbers: Tensor) -> Any:
        parts = iter(numbers.split([x.size for x in data]))

        def to_tensor(x: Any) -> Any:
            if _is_float(x):
                return next(parts).reshape(x.shape)
            return _to_tensor(x)

        args, kwargs = tree_map(to_tensor, arguments)
        return op(*args, **kwargs)

    return np.concatenate([np.reshape(x, -1) for x in data]), run


def _moved(op: Any, *args: Any, **kwargs: Any) -> Any:
    """Return what an operation that only moves numbers returns, by the positions that it moves."""
    numbers, run = _on_tensors(op, (args, kwargs))
    result = run(torch.arange(1.0, 1 + numbers.size, dtype=torch.float64))
    return tree_map(
        lambda part: _at_positions(part.long().numpy() - 1, numbers), result
    )


def _linear(op: Any, *args: Any, **kwargs: Any) -> Any:
    """Return what an operation that is linear in all floats returns, by its matrix."""
    numbers, run = _on_tensors(op, (args, kwargs))
    rows = torch.func.vmap(run)(torch.eye(numbers.size, dtype=torch.float64))
    return np.moveaxis(rows.numpy(), 0, -1) @ numbers


def _picked(op: Any, x: Any, *args: Any, **kwargs: Any) -> tuple[Any, Array]:
    """Return the numbers of x that an operation picks by their order, and their indices."""
    numbers = torch.arange(1.0, 1 + x.size, dtype=torch.float64).reshape(x.shape)

    def pick(floats: Array) -> tuple[Array, Array]:
        tensor = torch.tensor(floats)
        # the derivative of the numbers that are picked picks the positions
        _, positions = torch.autograd.functional.jvp(
            lambda tensor: op(tensor, *args, **kwargs)[0], tensor, numbers
        )
        indices = op(tensor, *args, **kwargs)[1]
        return positions.long().numpy() - 1, indices.numpy()

    positions, indices = on_path(pick)(x)
    if type(x) is Exact and not x.field.is_decimal:
        # different numbers move apart, equal ones do not: at a tie the choice changes
        noise = x.primal[..., 0] % 1009 * (1e-15 * np.abs(x.floats).max(initial=0))
        moved = (pick(x.floats + noise)[1], pick(x.floats - noise)[1])
        if not all(np.array_equal(indices, other) for other in moved):
            raise Untraceable(KINK_MESSAGE)
    return _at_positions(positions, x), indices


@cache
def _convolution_terms(
    shape: tuple[int, ...], weight_shape: tuple[int, ...], settings: Any
) -> tuple[Array, Array, Array, tuple[int, ...]]:
    """Return where the factors of each term of a convolution lie, and the shape of the result.

    The positions are those in the result, in the image and in the weight.
    """
    image = torch.arange(1.0, 1 + int(np.prod(shape)), dtype=torch.float64).reshape(
        shape
    )
    weights = torch.eye(int(np.prod(weight_shape)), dtype=torch.float64)
    results = [
        torch.convolution(image, unit.reshape(weight_shape), None, *settings)
        for unit in weights
    ]
    positions = torch.stack(results).long().numpy().reshape(len(weights), -1) - 1
    of_weight, of_result = np.nonzero(positions >= 0)
    of_image = positions[of_weight, of_result]
    return of_result, of_image, of_weight, tuple(results[0].shape)


def _convolution(x: Any, weight: Any, bias: Any, *settings: Any) -> Any:
    """Return the convolution of x with a weight, or the transposed one, plus a bias."""
    hashable = tuple(tuple(y) if isinstance(y, list) else y for y in settings)
    i, j, k, shape = _convolution_terms(x.shape, weight.shape, hashable)
    result = _sum_at(i, x.reshape(-1)[j] * weight.reshape(-1)[k], shape)
    if bias is None:
        return result
    return result + bias.reshape(-1, *[1] * (len(shape) - 2))


def _convolution_backward(
    grad: Any, x: Any, weight: Any, bias_sizes: Any, *settings: Any
) -> tuple[Any, Any, Any]:
    """Return the cotangents of the image, the weight and the bias of `_convolution`."""
    hashable = tuple(tuple(y) if isinstance(y, list) else y for y in settings[:-1])
    i, j, k, _ = _convolution_terms(x.shape, weight.shape, hashable)
    terms = grad.reshape(-1)[i]
    to_x = _sum_at(j, terms * weight.reshape(-1)[k], x.shape)
    to_weight = _sum_at(k, terms * x.reshape(-1)[j], weight.shape)
    return to_x, to_weight, np.sum(grad, axis=(0, *range(2, grad.ndim)))


def _unfold_backward(grad: Any, sizes: Any, dim: int, size: int, step: int) -> Any:
    """Return the cotangent, of shape `sizes`, of an array of which windows were taken."""
    positions = torch.arange(int(np.prod(sizes))).reshape(sizes).unfold(dim, size, step)
    return _sum_at(positions.flatten().numpy(), grad, sizes)


def _pad(x: Any, pad: Any, value: float = 0) -> Any:
    """Return x with a constant around it, or without its edges where `pad` is negative."""
    op = torch.ops.aten.constant_pad_nd.default
    is_inside = _moved(op, np.ones(x.shape), pad) == 1
    return np.where(is_inside, _moved(op, x, pad), value)


def _index_put(x: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    """Return x with `values` written to the entries at `indices`, or added to them."""
    show = _linear if accumulate else _moved
    return show(torch.ops.aten.index_put.default, x, indices, values, accumulate)


# Rules by the name of an operation, with its overload where that matters
RULES: dict[str, Callable[..., Any]] = {
    "add": lambda x, y, alpha=1: x + (y if alpha == 1 else alpha * y),
    "sub": lambda x, y, alpha=1: x - (y if alpha == 1 else alpha * y),
    "rsub": lambda x, y, alpha=1: y - (x if alpha == 1 else alpha * x),
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y,
    "neg": lambda x: -x,
    "abs": np.abs,
    "reciprocal": lambda x: 1 / x,
    "pow": _power,
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "log": np.log,
    "log1p": np.log1p,
    "log2": np.log2,
    # with the constant of the derivative in PyTorch, which is not the nearest to log 10
    "log10": lambda x: np.log(x) / 2.3025850929940456,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "erf": scipy.special.erf,
    "erfc": scipy.special.erfc,
    "erfinv": scipy.special.erfinv,
    "lgamma": scipy.special.gammaln,
    "digamma": scipy.special.digamma,
    "special_i0e": scipy.special.i0e,
    "special_i1e": scipy.special.i1e,
    "special_ndtri": scipy.special.ndtri,
    "xlogy": scipy.special.xlogy,
    "logaddexp": np.logaddexp,
    "hypot": np.hypot,
    "polygamma": lambda order, x: (
        polygamma(order)(x) if type(x) is Exact else scipy.special.polygamma(order, x)
    ),
    "sign": np.sign,
    "sgn": np.sign,
    "floor": np.floor,
    "floor_divide": np.floor_divide,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "round": lambda x, decimals=0: np.round(x, decimals),
    "remainder": np.remainder,
    "fmod": np.fmod,
    "hardshrink_backward": _shrink_backward,
    "softshrink_backward": _shrink_backward,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "clamp_min": np.maximum,
    "clamp_max": np.minimum,
    "clamp": lambda x, min=None, max=None: np.clip(x, min, max),
    "relu": lambda x: np.maximum(x, 0),
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "where": np.where,
    "masked_fill": lambda x, mask, value: np.where(mask, value, x),
    "clone": lambda x: x,
    "to float": lambda x: x,
    "to int": _to_int,
    "to bool": lambda x: np.not_equal(x, 0),
    "copy": lambda x, source, *_: np.broadcast_to(source, x.shape),
    "isnan": np.isnan,
    "isinf": np.isinf,
    "isfinite": np.isfinite,
    "zero": lambda x: np.zeros(x.shape),
    "fill": lambda x, value: np.broadcast_to(value, x.shape),
    "median": lambda x: _picked(torch.ops.aten.median.dim, x.reshape(-1), 0)[0],
    "sum": _of_axes(np.sum),
    "mean": _of_axes(np.mean),
    "prod": _of_axes(np.prod),
    "amax": _of_axes(np.max),
    "amin": _of_axes(np.min),
    "max": np.max,
    "min": np.min,
    "argmax": _of_axes(np.argmax),
    "argmin": _of_axes(np.argmin),
    "any": _of_axes(np.any),
    "all": _of_axes(np.all),
    "var": _variance,
    "std": lambda *args, **kwargs: np.sqrt(_variance(*args, **kwargs)),
    "var_mean": lambda x, dim=None, *, keepdim=False, **options: (
        _variance(x, dim, keepdim=keepdim, **options),
        _of_axes(np.mean)(x, dim, keepdim),
    ),
    "cumsum": lambda x, dim: np.cumsum(x, axis=dim),
    "cumprod": lambda x, dim: np.cumprod(x, axis=dim),
    "index_put": _index_put,
    "_unsafe_index_put": _index_put,
    "scatter.value": lambda x, dim, index, value: _moved(
        torch.ops.aten.scatter.src, x, dim, index, np.full(index.shape, float(value))
    ),
    "mm": np.matmul,
    "bmm": np.matmul,
    "mv": np.matmul,
    "dot": np.matmul,
    "linalg_cholesky_ex": lambda x, upper=False, check_errors=False: (
        np.linalg.cholesky(x).swapaxes(-1, -2 if upper else -1),
        0,
    ),
    "linalg_solve_triangular": lambda matrix, right, *, upper, **options: (
        solve_triangular(matrix, right, lower=not upper, **options)
    ),
    "linalg_inv_ex": lambda x, check_errors=False: (np.linalg.inv(x), 0),
    "_linalg_det": lambda x: (np.linalg.det(x), x.swapaxes(-1, -2), 0),
    "_linalg_slogdet": lambda x: (*np.linalg.slogdet(x), x.swapaxes(-1, -2), 0),
    "_linalg_solve_ex": _solve,
    "linalg_lu_solve": _lu_solve,
    "constant_pad_nd": _pad,
    "unfold_backward": _unfold_backward,
    "convolution": _convolution,
    "convolution_backward": _convolution_backward,
}
# Operations that PyTorch shows on other numbers
SHOWN = {
    "_unsafe_index": _moved,
    "cat": _moved,
    "channel_shuffle": _moved,
    "diag_embed": _moved,
    "diagonal_backward": _moved,
    "diagonal_scatter": _moved,
    "embedding": _moved,
    "flip": _moved,
    "gather": _moved,
    "index": _moved,
    "index_copy": _moved,
    "index_select": _moved,
    "masked_scatter": _moved,
    "masked_select": _moved,
    "pixel_shuffle": _moved,
    "pixel_unshuffle": _moved,
    "reflection_pad1d": _moved,
    "reflection_pad2d": _moved,
    "reflection_pad3d": _moved,
    "repeat": _moved,
    "replication_pad1d": _moved,
    "replication_pad2d": _moved,
    "replication_pad3d": _moved,
    "roll": _moved,
    "rot90": _moved,
    "scatter": _moved,
    "select_backward": _moved,
    "select_scatter": _moved,
    "slice_backward": _moved,
    "slice_scatter": _moved,
    "stack": _moved,
    "take": _moved,
    "tril": _moved,
    "triu": _moved,
    "unfold_copy": _moved,
    "upsample_nearest1d": _moved,
    "upsample_nearest2d": _moved,
    "view_copy": _moved,
    "_adaptive_avg_pool2d": _linear,
    "_adaptive_avg_pool2d_backward": _linear,
    "_adaptive_avg_pool3d": _linear,
    "_adaptive_avg_pool3d_backward": _linear,
    "adaptive_max_pool2d_backward": _linear,
    "avg_pool1d": _linear,
    "avg_pool2d": _linear,
    "avg_pool2d_backward": _linear,
    "avg_pool3d": _linear,
    "avg_pool3d_backward": _linear,
    "col2im": _linear,
    "embedding_dense_backward": _linear,
    "im2col": _linear,
    "index_add": _linear,
    "max_pool2d_with_indices_backward": _linear,
    "max_pool3d_with_indices_backward": _linear,
    "reflection_pad1d_backward": _linear,
    "reflection_pad2d_backward": _linear,
    "replication_pad1d_backward": _linear,
    "replication_pad2d_backward": _linear,
    "scatter_add": _linear,
    "trace": _linear,
    "upsample_bilinear2d": _linear,
    "upsample_bilinear2d_backward": _linear,
    "upsample_linear1d": _linear,
    "upsample_linear1d_backward": _linear,
    "upsample_nearest1d_backward": _linear,
    "upsample_nearest2d_backward": _linear,
    "adaptive_max_pool2d": _picked,
    "cummax": _picked,
    "cummin": _picked,
    "kthvalue": _picked,
    "max.dim": _picked,
    "max_pool2d_with_indices": _picked,
    "max_pool3d_with_indices": _picked,
    "median.dim": _picked,
    "min.dim": _picked,
    "mode": _picked,
    "sort": _picked,
    "topk": _picked,
}
# Operations whose results do not depend on the numbers in their arguments
CONSTANT = {
    "bernoulli",
    "empty_like",
    "full_like",
    "new_empty",
    "new_empty_strided",
    "new_full",
    "new_ones",
    "new_zeros",
    "ones_like",
    "rand_like",
    "randint_like",
    "randn_like",
    "zeros_like",
}
STEPWISE = {"ceil", "floor", "round", "sgn", "sign", "trunc"}
# Keywords that do not affect the numbers
IGNORED = {
    "device",
    "dtype",
    "generator",
    "layout",
    "memory_format",
    "non_blocking",
    "pin_memory",
}
# What Python or the shapes of results depend on: an operation with its arguments, or None
READING: dict[str, Any] = {
    "_local_scalar_dense": None,
    "is_nonzero": None,
    "allclose": lambda *args: (torch.ops.aten.isclose.default, args),
    "equal": lambda *args: (torch.ops.aten.eq.Tensor, args),
    "nonzero": lambda x: (torch.ops.aten.ne.Scalar, (x, 0)),
}
# Methods of tensors by which numbers leave PyTorch
READS = {
    "__array__",
    "__deepcopy__",
    "__dlpack__",
    "__format__",
    "__reduce_ex__",
    "__repr__",
    "data_ptr",
    "numpy",
    "tolist",
}


def rule(op: Any, numpy_function: Callable[..., Any]) -> None:
    """Add a rule: what an operation of PyTorch computes, as a function of NumPy arrays.

    Parameters
    ----------
    op : str, torch._ops.OpOverload or torch._ops.OpOverloadPacket
        The operation, such as ``torch.ops.aten.erf`` or "mylib::scan". A rule that is there already
        is replaced.
    numpy_function : callable
        Takes the arguments of the operation, tensors as NumPy arrays but without dtype, device and
        layout, and returns an array, or a tuple of them. In proofs its arrays are exact numbers:
        see `exactgrad.prove`.

    Raises
    ------
    TypeError
        If `op` is no operation, or `numpy_function` cannot be called.
    """
    check_callable("numpy_function", numpy_function)
    name = op if isinstance(op, str) else getattr(op, "_qualified_op_name", None)
    if isinstance(op, torch._ops.OpOverload):
        name = op.name()
    if name is None:
        raise TypeError(
            f"op must be an operation such as torch.ops.aten.erf, or its name; got {op!r}"
        )
    RULES[name.removeprefix("aten::")] = lambda *args, **kwargs: _copy_in_proof(
        numpy_function
    )(*args, **kwargs)


def _copy_in_proof(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the copy of a function that the running proof has made; otherwise itself."""
    copies = ACTIVE_COPIES.get()
    return function if copies is None else copies.copy_of(function)


# --- the trace of a function


class NotTraceable(Exception):
    """Raised if a step of a function has no rule, or if it reads numbers; says at which line."""


class OtherPath(Exception):
    """Raised if a program is run on numbers for which its function takes another path."""


@dataclass(frozen=True)
class Operation:
    """An operation of a program, as a function of the arguments that are variables.

    Attributes
    ----------
    op : torch._ops.OpOverload
        The operation of PyTorch, which is applied if no argument has floats.
    rule : callable
        Its rule.
    leaves : list
        Its arguments, flattened; a `Variable` stands for those that are passed.
    spec : TreeSpec
        How they are nested in (args, kwargs).
    result_indices : list of int
        Which of its results are tensors; [] if it returns one tensor.
    """

    op: Any
    rule: Callable[..., Any]
    leaves: list[Any]
    spec: Any
    result_indices: list[int]

    def __call__(self, *inputs: Any) -> Any:
        input_values = iter(inputs)
        leaves = [next(input_values) if type(x) is Variable else x for x in self.leaves]
        if any(map(_is_float, inputs)):
            args, kwargs = tree_unflatten(leaves, self.spec)
            kwargs = {key: kwargs[key] for key in kwargs if key not in IGNORED}
            result = self.rule(*args, **kwargs)
        else:
            tensors = [*map(_to_tensor, leaves)]
            args, kwargs = tree_unflatten(tensors, self.spec)
            result = tree_map(np.asarray, self.op(*args, **kwargs))
        if len(self.result_indices) == 1:
            return result[self.result_indices[0]]
        return (
            [result[i] for i in self.result_indices] if self.result_indices else result
        )


@dataclass
class Memory:
    """What a program has written to memory that tensors share: a storage of PyTorch.

    Attributes
    ----------
    storage : torch.UntypedStorage
        The storage, which is result_indices so that no other gets its address.
    values : dict
        The variables that hold tensors, by their offset, shape and strides. Unless `flat` is set,
        the first is that of a tensor that fills the storage.
    flat : Variable or None
        The variable that holds all numbers of the storage, as a vector.
    """

    storage: torch.UntypedStorage
    values: dict[Any, Any]
    flat: Any = None


def _geometry(tensor: Tensor) -> tuple[Any, ...]:
    """Return where the numbers of a tensor lie in its storage: offset, shape and strides."""
    return tensor.storage_offset(), tuple(tensor.shape), tensor.stride()


def _positions(geometry: tuple[Any, ...], size: int) -> Array:
    """Return the position of each number of a tensor in a storage of `size` numbers."""
    offset, shape, strides = geometry
    positions = np.arange(size + 1)
    steps = [step * positions.itemsize for step in strides]
    return as_strided(positions[offset:], shape, steps).copy()


def _check_path(expected: Array, value: Any) -> Any:
    """Raise OtherPath unless truth values or whole numbers are what they were in the trace."""
    if not np.array_equal(value, expected):
        raise OtherPath
    return np.zeros(())


def _is_same(x: Any, y: Any) -> bool:
    """Return whether two constants are equal; nan equals nan."""
    return np.array_equal(x, y, equal_nan=np.asarray(x).dtype.kind in "fc")


def _exact_one(x: Any) -> Any:
    """Return the number 1, exact if x is."""
    return lift(1.0, x.field) if type(x) is Exact else np.ones(())


def _to_double(x: Tensor) -> Tensor:
    """Return floats of fewer digits in float64, as the numbers that one would write for them."""
    if x.dtype is torch.float64:
        return x
    n_bits = 1 - round(math.log2(torch.finfo(x.dtype).eps))
    if x.dtype is not torch.float16:
        x = x.float()
    return torch.tensor(as_written(x.detach().numpy(), n_bits))


def _user_lines() -> tuple[Line, ...]:
    """Return the line of the user's file that runs, and those that have called it."""
    lines = []
    frame: Any = sys._getframe(2)
    while frame is not None and frame.f_code is not Traced.trace.__code__:
        file = frame.f_code.co_filename
        if not file.startswith((TORCH, PACKAGE)):
            lines.append((file, frame.f_lineno))
        frame = frame.f_back
    return tuple(lines)


def _is_in_function() -> bool:
    """Return whether the forward pass of a `torch.autograd.Function` runs."""
    frame: Any = sys._getframe(2)
    while frame.f_code not in (Traced.trace.__code__, APPLY_CODE):
        frame = frame.f_back
    return frame.f_code is APPLY_CODE


def _line_in_words(lines: tuple[Line, ...]) -> str:
    """Return words for the user's line, with its text."""
    if lines in ((), (NO_LINE,)):
        return "a step of PyTorch"
    return line_in_words(*lines[0], in_full=True)


class Tracer(TorchDispatchMode):
    """Writes down the operations of PyTorch on tensors that depend on the inputs.

    Operations on other tensors are run by PyTorch, and their results are constants.

    Attributes
    ----------
    steps : list of Step
        The operations.
    guards : list of Variable
        Truth values and whole numbers on which the path of the function depends.
    guard_values : list of ndarray
        Their values on this path.
    held : dict
        What is constant in the gradient, by the line that makes it so.
    is_forward : bool
        Whether the gradient has not been asked for yet.
    """

    def __init__(self) -> None:
        super().__init__()
        self.steps: list[Step] = []
        self.guards: list[Variable] = []
        self.guard_values: list[Array] = []
        self.held: dict[Line, str] = {}
        self.is_forward = True
        self._memories: dict[int, Memory] = {}
        self._lines: dict[int, tuple[Line, ...]] = {}  # by the node of autograd
        self._doubles: dict[int, tuple[Tensor, Tensor]] = {}  # of float32 constants
        self._composite: Any = None  # the operation that is decomposed

    # --- what tensors hold

    def add(self, tensor: Tensor) -> Variable:
        """Return a new variable, which a new tensor holds."""
        variable = Variable()
        storage = tensor.untyped_storage()
        self._memories[storage._cdata] = Memory(storage, {_geometry(tensor): variable})
        return variable

    def depends(self, tensor: Tensor) -> bool:
        """Return whether the numbers of a tensor depend on the inputs."""
        try:
            return tensor.untyped_storage()._cdata in self._memories
        except NotImplementedError:
            # a sparse tensor, which is constant, or one of torch.func
            return tensor.layout is torch.strided

    def value(self, tensor: Tensor) -> Any:
        """Return the variable that holds a tensor, or a copy of its numbers if it is constant."""
        memory = self._memories.get(tensor.untyped_storage()._cdata)
        if memory is None:
            if tensor.layout is not torch.strided:
                raise NotTraceable(f"{self.words()}: a sparse tensor has no exact form")
            return tensor.detach().numpy().copy()
        geometry = _geometry(tensor)
        if geometry not in memory.values:
            flat = self._flat(memory, tensor)
            size = memory.storage.nbytes() // tensor.element_size()
            view = partial(_at_positions, _positions(geometry, size))
            memory.values[geometry] = self._add_step(view, (flat,))
        return memory.values[geometry]

    def _flat(self, memory: Memory, tensor: Tensor) -> Any:
        """Return the variable that holds all numbers of the memory of a tensor, as a vector."""
        if memory.flat is None:
            size = memory.storage.nbytes() // tensor.element_size()
            geometry, variable = next(iter(memory.values.items()))
            positions = _positions(geometry, size).ravel()
            order = np.full(size, -1)
            order[positions] = np.arange(positions.size)
            memory.flat = self._add_step(partial(_at_positions, order), (variable,))
        return memory.flat

    def _write(self, target: Tensor, result: Tensor) -> None:
        """Overwrite a tensor by a result, and note that it holds the variable of the result."""
        value = self.value(result)
        storage = target.untyped_storage()
        size = storage.nbytes() // target.element_size()
        geometry = _geometry(target)
        memory = Memory(storage, {geometry: value})
        positions = _positions(geometry, size)
        if positions.size < size:
            flat = torch.as_strided(target, (size,), (1,), 0).numpy().copy()
            if self.depends(target):
                flat = self._flat(self._memories[storage._cdata], target)
            new = np.arange(size)
            new[positions] = size + np.arange(positions.size).reshape(positions.shape)
            memory.flat = self._add_step(partial(_at_positions, new), (flat, value))
        self._memories[storage._cdata] = memory
        target.copy_(result)

    def _add_step(self, rule: Callable[..., Any], inputs: tuple[Any, ...]) -> Variable:
        """Add a step with one result, and return its variable."""
        variable = Variable()
        self.steps.append(Step(rule, inputs, (variable,), self._where()))
        return variable

    def _where(self) -> tuple[Line, ...]:
        """Return the user's lines; in a backward pass of PyTorch none."""
        lines = _user_lines()
        if torch._C._current_autograd_node() is None:
            self._lines.setdefault(torch.autograd._get_sequence_nr() - 1, lines)
        return lines or (NO_LINE,)

    def words(self) -> str:
        """Return words for the user's line; of the forward pass in a backward one of PyTorch."""
        lines = _user_lines()
        node = torch._C._current_autograd_node()
        if node is not None and not lines:
            lines = self._lines.get(node._sequence_nr(), ())
        return _line_in_words(lines)

    def note_launch(
        self, launch: Any, tensors: Sequence[Tensor], run: Callable[[], Any]
    ) -> None:
        """Add a step for a kernel that may overwrite tensors, and run it on their floats.

        Parameters
        ----------
        launch : callable
            The kernel as a function of the arrays in the tensors, which returns the new ones.
        tensors : sequence of Tensor
            The tensors that it gets.
        run : callable
            Function without arguments that runs the kernel on the tensors.
        """
        for x in tensors:
            is_whole = x.numel() * x.element_size() == x.untyped_storage().nbytes()
            if not is_whole or not x.is_contiguous() or not x.is_floating_point():
                raise NotTraceable(
                    f"{self.words()}: a kernel must get contiguous tensors of floats that are "
                    "no parts of others"
                )
        values = tuple(self.value(x.detach()) for x in tensors)
        with _disable_current_modes(), torch._C.DisableTorchFunction():
            run()
        outputs = tuple(self.add(x) for x in tensors)
        self.steps.append(Step(launch, values, outputs, self._where()))

    # --- operations

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        args, kwargs = tree_map(self._as_double, (args, kwargs or {}))
        return self._call(func, args, kwargs)

    def _as_double(self, x: Any) -> Any:
        """Return float64 for dtypes of floats, and for constant tensors of them."""
        if isinstance(x, torch.dtype) and x.is_floating_point:
            return torch.float64
        is_short = isinstance(x, Tensor) and x.is_floating_point()
        if not is_short or x.dtype is torch.float64:
            return x
        if id(x) not in self._doubles:
            self._doubles[id(x)] = x, _to_double(x)
        return self._doubles[id(x)][1]

    def _call(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Run an operation, and add a step for it if its result depends on the inputs."""
        name = func.name().removeprefix("aten::")
        packet = name.partition(".")[0]
        tensors = [x for x in tree_leaves((args, kwargs)) if isinstance(x, Tensor)]
        if packet in CONSTANT or not any(map(self.depends, tensors)):
            result = func(*args, **kwargs)
            if "empty" in packet and result.is_floating_point():
                result.fill_(UNINITIALIZED)
            return result
        is_check = packet.startswith(("_assert", "_linalg_check", "_has_same_storage"))
        if torch.Tag.inplace_view in func.tags or is_check:
            return func(*args, **kwargs)
        if packet in READING:
            return self._read(func, READING[packet], args)
        if packet in ("index", "index_put", "masked_select"):
            self._fix_masks(args[1])
        if func._schema.is_mutable:
            return self._overwrite(func, args, kwargs)
        if func.is_view:
            return self._view(func, args, kwargs)
        if not any(x.is_floating_point() for x in tensors):
            return self._apply(func, func, args, kwargs)
        if func._can_decompose():
            return self._decompose(func, func.decompose, args, kwargs)
        rule = _find_rule(func, name, packet, kwargs)
        if rule is not None:
            return self._apply(func, rule, args, kwargs)
        if func in decomposition_table:
            return self._decompose(func, decomposition_table[func], args, kwargs)
        missing = (self._composite or func).name()
        raise NotTraceable(
            f"{self.words()}: PyTorch's operation {missing} has no rule here. Add "
            f'one by exactgrad.torch.rule("{missing}", numpy_function)'
        )

    def _decompose(
        self, func: Any, formula: Callable[..., Any], args: Any, kwargs: Any
    ) -> Any:
        """Return what an operation returns by a formula of others, which are traced."""
        outer = self._composite
        self._composite = outer or func
        with self:
            result = formula(*args, **kwargs)
        self._composite = outer
        return result

    def _apply(
        self, func: Any, rule: Callable[..., Any], args: Any, kwargs: Any
    ) -> Any:
        """Run an operation, and add the step of its rule."""
        leaves, spec = tree_flatten((args, kwargs))
        leaves = [self.value(x) if isinstance(x, Tensor) else x for x in leaves]
        result = func(*args, **kwargs)
        result_indices = []
        results = [result]
        if not isinstance(result, Tensor):
            result_indices = [i for i, x in enumerate(result) if isinstance(x, Tensor)]
            results = [result[i] for i in result_indices]
        lines = self._where()
        if any(x.is_complex() for x in results):
            raise NotTraceable(
                f"{_line_in_words(lines)}: complex numbers have no exact form"
            )
        inputs = tuple(x for x in leaves if type(x) is Variable)
        operation = Operation(func, rule, leaves, spec, result_indices)
        outputs = tuple(map(self.add, results))
        self.steps.append(Step(operation, inputs, outputs, lines))
        if self.is_forward and func.name().removeprefix("aten::") in STEPWISE:
            self.held[lines[0]] = "has derivative 0 wherever it does not jump"
        is_held = self.is_forward and not torch.is_grad_enabled()
        if is_held and not _is_in_function():
            self.held[lines[0]] = "is held constant in the gradient"
        return result

    def _view(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Run an operation whose result shares the memory of its argument."""
        result = func(*args, **kwargs)
        if not all(self.depends(x) for x in tree_leaves(result)):
            # a copy, which `contiguous` returns if the numbers lie in another order
            return self._decompose(func, func.decompose, args, kwargs)
        lines = self._where()
        text = _line_in_words(lines)
        if self.is_forward and re.search(r"detach|\.data\b|no_grad", text):
            self.held[lines[0]] = "is held constant in the gradient"
        if any(x.dtype is not args[0].dtype for x in tree_leaves(result)):
            raise NotTraceable(f"{text}: a view of another dtype has no exact form")
        return result

    def _overwrite(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Run an operation that overwrites its first argument, as one that does not."""
        name = func._schema.name.removeprefix("aten::").removesuffix("_")
        packet = getattr(torch.ops.aten, name, None)
        overloads = [getattr(packet, x) for x in packet.overloads()] if packet else []
        types = [str(x.type) for x in func._schema.arguments]
        functional = next(
            (
                op
                for op in overloads
                if [str(x.type) for x in op._schema.arguments] == types
                and not op._schema.is_mutable
            ),
            None,
        )
        writes = [bool(x.alias_info) for x in func._schema.arguments]
        if functional is not None and writes[0] and sum(writes) == 1:
            self._write(args[0], self._call(functional, args, kwargs))
            return args[0]
        if func in decomposition_table:
            return self._decompose(func, decomposition_table[func], args, kwargs)
        raise NotTraceable(
            f"{self.words()}: {func.name()} writes into tensors in a way that is not known here; "
            "write its result into a new tensor"
        )

    def constants(self, outputs: Sequence[Any]) -> list[tuple[Any, tuple[Line, ...]]]:
        """Return the constants that the outputs of the program depend on, each with its lines."""
        pairs: list[tuple[Any, tuple[Line, ...]]] = [
            (x, (NO_LINE,)) for x in outputs if type(x) is not Variable
        ]
        needed = {x for x in (*outputs, *self.guards) if type(x) is Variable}
        for step in reversed(self.steps):
            if needed.isdisjoint(step.outputs):
                continue
            needed.update(x for x in step.inputs if type(x) is Variable)
            values = getattr(step.rule, "leaves", step.inputs)
            numbers = (x for x in values if _is_array(x) or isinstance(x, float | int))
            pairs += [(x, step.lines) for x in numbers]
        return pairs

    # --- what Python reads

    def _fix(self, tensor: Tensor) -> None:
        """Bind the program to the path on which truth values or whole numbers are as they are."""
        value = self.value(tensor)
        if type(value) is Variable:
            expected = tensor.detach().numpy().copy()
            self.guards.append(self._add_step(partial(_check_path, expected), (value,)))
            self.guard_values.append(expected)

    def _fix_masks(self, indices: Any) -> None:
        """Bind the program to the masks among indices: shapes depend on them."""
        for index in tree_leaves(indices):
            if isinstance(index, Tensor) and index.dtype is torch.bool:
                self._fix(index)

    def _read(self, func: Any, path: Any, args: Any) -> Any:
        """Run an operation that Python or the shape of its result depends on.

        `path` returns the truth values that it depends on, or is None: they are the argument.
        """
        if path is not None:
            op, inputs = path(*args)
            self._fix(self._call(op, inputs, {}))
        elif args[0].is_floating_point():
            raise NotTraceable(
                f"{self.words()}: a number is read from a tensor, which has no "
                "derivative in Python: keep it a tensor"
            )
        else:
            self._fix(args[0])
        return func(*args)


class Reads(TorchFunctionMode):
    """Refuses to let numbers that depend on the inputs leave PyTorch, as x.numpy() does."""

    def __init__(self, tracer: Tracer) -> None:
        super().__init__()
        self.tracer = tracer

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        name = getattr(func, "__name__", "")
        is_user = sys._getframe(1).f_code.co_filename != __file__
        is_read = is_user and name in READS and self.tracer.depends(args[0])
        if is_read and name in ("__repr__", "__format__"):
            return f"tensor of shape {tuple(args[0].shape)}"
        if is_read:
            raise NotTraceable(
                f"{_line_in_words(_user_lines())}: the numbers of a tensor are read outside of "
                "PyTorch, where they have no derivatives: use PyTorch's functions"
            )
        if func is torch.nn.functional.scaled_dot_product_attention:
            # PyTorch multiplies both factors by the root of the scale, which is rounded
            return _attention(*args, **(kwargs or {}))
        return func(*args, **(kwargs or {}))


def _attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """Return `torch.nn.functional.scaled_dot_product_attention` by its formula."""
    if enable_gqa:
        n_repeats = query.shape[-3] // key.shape[-3]
        key, value = (x.repeat_interleave(n_repeats, -3) for x in (key, value))
    scores = query @ key.mT * (scale or 1 / query.shape[-1] ** 0.5)
    if is_causal:
        attn_mask = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
    if attn_mask is not None and attn_mask.dtype is torch.bool:
        scores = scores.masked_fill(~attn_mask, -torch.inf)
    elif attn_mask is not None:
        scores = scores + attn_mask
    return torch.dropout(torch.softmax(scores, -1), dropout_p, True) @ value


def _find_rule(
    func: Any, name: str, packet: str, kwargs: Any
) -> Callable[..., Any] | None:
    """Return the NumPy function for an operation called `name`, or None."""
    if packet == "_to_copy":
        dtype = kwargs.get("dtype") or torch.float64
        is_number = "float" if dtype.is_floating_point else "int"
        packet = f"to {'bool' if dtype is torch.bool else is_number}"
    for key in (name, packet):
        if key in RULES:
            return RULES[key]
        if key in SHOWN:
            return partial(SHOWN[key], func)
    return None


@contextmanager
def _gradients_on() -> Iterator[None]:
    """Record gradients also if the caller has switched them off, as ``torch.no_grad`` does."""
    with torch.inference_mode(False), torch.enable_grad():
        yield


@contextmanager
def _float64_as_default() -> Iterator[None]:
    """Make float64 the dtype of new tensors."""
    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(default)


@contextmanager
def _tracing(tracer: Tracer) -> Iterator[None]:
    """Let a tracer see what PyTorch does, in float64 and with the random numbers of one seed."""

    def run_backward(*args: Any, **kwargs: Any) -> Any:
        # PyTorch leaves the mode while an overridable function runs, such as torch.autograd.grad
        with Reads(tracer):
            return RUN_BACKWARD(*args, **kwargs)

    with (
        TRACE_LOCK,
        _float64_as_default(),
        torch.random.fork_rng(devices=[]),
        sdpa_kernel(SDPBackend.MATH),
        patch.object(torch.autograd, "_engine_run_backward", run_backward),
        traced_launches(tracer.note_launch),
        Reads(tracer),
        tracer,
    ):
        torch.manual_seed(0)
        yield


class Traced:
    """A function of NumPy arrays: the programs of a function of tensors, one for each path.

    Parameters
    ----------
    function : callable
        Called with a tracer and the `leaves`; returns a list of tensors.
    leaves : list
        The arguments of the function. Arrays of NumPy become tensors.
    moving : list of int
        Which of the leaves are inputs of the program; the others are constants of it.
    """

    def __init__(
        self, function: Callable[..., Any], leaves: list[Any], moving: list[int]
    ) -> None:
        self.function = function
        self.leaves = leaves
        self.moving = moving
        self.held: dict[Line, str] = {}
        self._programs: list[Callable[..., tuple[Any, ...]]] = []
        self._add_program([leaves[i] for i in moving])

    def __call__(self, *arrays: Any) -> tuple[Any, ...]:
        for program in self._programs:
            try:
                return _copy_in_proof(program)(*arrays)
            except OtherPath:
                continue
        floats = [*map(floats_of, arrays)]
        return _copy_in_proof(self._add_program(floats))(*arrays)

    def trace(
        self, arrays: Sequence[Array]
    ) -> tuple[Tracer, list[Variable], list[Tensor]]:
        """Return a tracer that has seen a run, the inputs of the program and the results."""
        tracer = Tracer()
        with _gradients_on():
            leaves = [*map(_to_tensor, self.leaves)]
            for i, x in zip(self.moving, arrays, strict=True):
                leaves[i] = torch.tensor(x)
            inputs = [tracer.add(leaves[i]) for i in self.moving]
            with _tracing(tracer):
                results = self.function(tracer, leaves)
                return tracer, inputs, results

    def _add_program(self, arrays: Sequence[Array]) -> Callable[..., tuple[Any, ...]]:
        """Return the program of the path that the function takes for some arrays.

        NotTraceable is raised if it has no exact form.
        """
        tracer, inputs, results = self.trace(arrays)
        outputs = [tracer.value(x) for x in results]
        self._check_constants(tracer, outputs, arrays)
        program = to_function(
            Program((*inputs,), tracer.steps, (*outputs, *tracer.guards))
        )
        try:
            with np.errstate(all="ignore"):
                numbers = program(*arrays)
        except Untraceable as error:
            raise NotTraceable(str(error)) from error
        for x, number in zip(results, numbers, strict=False):
            right = x.detach().numpy()
            scale = np.abs(right[np.isfinite(right)]).max(initial=1e-300)
            atol = RTOL * scale + ATOL
            if np.shape(number) != right.shape or not np.allclose(
                number, right, RTOL, atol, equal_nan=True
            ):
                raise NotTraceable(
                    "the program that was read from this function gives other numbers than "
                    "PyTorch: a rule is wrong, or PyTorch has lost all digits"
                )
        self.held |= tracer.held
        self._programs.append(program)
        return program

    def _check_constants(
        self, tracer: Tracer, outputs: list[Any], arrays: Sequence[Array]
    ) -> None:
        """Raise NotTraceable if constants that the outputs depend on change with the inputs."""
        rng = np.random.default_rng(0)
        moved = [x * (1 + 1e-6 * rng.standard_normal(np.shape(x))) for x in arrays]
        second, _, results = self.trace(moved)
        paths = zip(tracer.guard_values, second.guard_values, strict=False)
        if not all(np.array_equal(x, y) for x, y in paths):
            return
        first_constants = tracer.constants(outputs)
        second_constants = second.constants([second.value(x) for x in results])
        pairs = zip(first_constants, second_constants, strict=False)
        changed = [lines for (x, lines), (y, _) in pairs if not _is_same(x, y)]
        if changed or len(first_constants) != len(second_constants):
            raise NotTraceable(
                f"{_line_in_words(changed[-1] if changed else ())}: a constant of the function "
                "changes from call to call: it is computed outside of PyTorch, or drawn by a "
                "random generator that is not PyTorch's own. Pass it as an argument"
            )


# --- proofs


def _to_leaf(x: Any) -> Any:
    """Return a tensor as an array, with floats in float64; other values as they are."""
    check_plain("inputs", x)
    if isinstance(x, Tensor):
        x = (_to_double(x) if x.is_floating_point() else x).detach().numpy()
    return np.array(x, float) if _is_float(x) else x


def _gradient_program(
    f: Callable[..., Any], theta: Any, data: tuple[Any, ...], fixed: Any = ()
) -> tuple[Callable[..., Any], Traced]:
    """Return a function of NumPy arrays for a value and its gradient, and what it calls.

    Parameters
    ----------
    f : callable
        Function of theta and the data that returns a tensor of one number.
    theta, data : any
        Structures whose leaves are arrays or other objects.
    fixed : str, int or several of them, optional
        As in `exactgrad.prove`.
    """
    leaves, spec = tree_flatten((theta, data))
    n_theta = len(tree_leaves(theta))
    is_fixed = [False] * n_theta
    conditions = parse_fixed(argument_names(f, len(data)), fixed)
    for x, condition in zip(data, conditions, strict=True):
        is_fixed += [condition is FIXED] * len(tree_leaves(x))
    is_moving = [
        _is_float(x) and not fixed for x, fixed in zip(leaves, is_fixed, strict=True)
    ]
    moving = [i for i, moves in enumerate(is_moving) if moves]

    def value_and_gradients(tracer: Tracer, tensors: list[Any]) -> list[Tensor]:
        variables = [x.requires_grad_() for x in tensors[:n_theta]]
        theta, data = tree_unflatten(tensors, spec)
        value = f(theta, *data)
        if not isinstance(value, Tensor) or value.shape:
            got = getattr(value, "shape", type(value).__name__)
            raise ValueError(
                f"f must return a tensor of one number, with shape (); got {got}"
            )
        tracer.is_forward = False
        if not value.requires_grad:
            return [value, *map(torch.zeros_like, variables)]
        # with a 1 of its own PyTorch would compute, and round, products of constants
        cotangent = torch.ones(())
        inputs = (tracer.value(variables[0]),)
        tracer.steps.append(Step(_exact_one, inputs, (tracer.add(cotangent),)))
        gradients = torch.autograd.grad(
            value, variables, cotangent, allow_unused=True, materialize_grads=True
        )
        return [value, *gradients]

    traced = Traced(value_and_gradients, leaves, moving)

    def value_and_grad(theta: Any, *data: Any) -> Any:
        arrays, structure = tree_flatten((theta, data))
        value, *gradients = traced(*(arrays[i] for i in moving))[: 1 + n_theta]
        filled = [*gradients, *arrays[n_theta:]]
        return value, tree_unflatten(filled, structure)[0]

    return with_signature(value_and_grad, f), traced


def prove(f: Callable[..., Any], theta: Any, *data: Any, **options: Any) -> Proof:
    """Prove or refute that autograd's gradient of a function of PyTorch is its derivative.

    Parameters
    ----------
    f : callable
        Function of theta and the data that returns a tensor of one number. Its gradient is what
        `torch.autograd.grad` returns, with the backward passes written by hand in it.
    theta : tensor or ndarray, or a dict, tuple or list of them
        The point, floats of any number of digits: it chooses the path.
    *data
        Further arguments. Tensors and arrays of floats are data, for all of which the proof is;
        whole numbers, numbers of Python and everything else are constants.
    **options
        `blocks`, `coordinate`, `n_points`, `seed` and `fixed`: as in `exactgrad.prove`.

    Returns
    -------
    Proof

    Raises
    ------
    TypeError, ValueError
        If an argument has a wrong type or is out of range, or if f returns anything but a tensor of
        one number. What f itself raises is raised too.
    """
    check_callable("f", f)
    check_options(
        "exactgrad.torch.prove", options, "blocks coordinate n_points seed fixed"
    )
    theta, data = tree_map(_to_leaf, (theta, data))
    theta = tree_map(np.asarray, array_or_structure(theta))
    flatten_theta(theta)  # for its errors
    try:
        program, traced = _gradient_program(f, theta, data, options.get("fixed", ()))
    except NotTraceable as error:
        size = sum(map(np.size, tree_leaves(theta)))
        return Proof(Verdict.NOT_TRACEABLE, size, reason=str(error))
    arrays = tree_map(lambda x: x if _is_array(x) else 0, data)
    proof = proofs.prove(program, theta, *arrays, **options)
    if proof.verdict is not Verdict.REFUTED or not traced.held:
        return proof
    held = traced.held.items()
    notes = [f"{_line_in_words((line,))} {reason}" for line, reason in held]
    return with_sentences(proof, notes)


def prove_vjp(forward: Any, *arguments: Any, **options: Any) -> Proof:
    """Prove or refute a backward pass written by hand: a pair of functions, or a `Function`.

    Parameters
    ----------
    forward : callable, or subclass of torch.autograd.Function
        Function of the inputs that returns (out, saved): a tensor or a tuple of them, and anything
        that the backward pass needs.
    *arguments
        The function ``backward(saved, grad_out)``, unless `forward` is a class, and the inputs.
        It takes cotangents of the structure of `out`, and returns the gradients of the inputs: one,
        or a tuple with None for those without. Inputs of floats are tensors or arrays; all others
        are constants.
    **options
        `n_points` and `seed`: as in `exactgrad.prove`.

    Returns
    -------
    Proof
        A proof for all cotangents. It says which inputs of floats have no gradient. Inputs that
        require a gradient have one, of 0 if it is None.

    Raises
    ------
    TypeError, ValueError
        If an argument has a wrong type. What the functions raise is raised too.
    """
    check_options("exactgrad.torch.prove_vjp", options, "n_points seed")
    inputs: Sequence[Any] = arguments
    function: Any = forward
    if inspect.isclass(forward) and issubclass(forward, torch.autograd.Function):
        names = [*inspect.signature(function.forward).parameters][-len(inputs) :]
    else:
        check_callable("forward", forward)
        backward, *inputs = arguments
        check_callable("backward", backward)
        function = _as_function(forward, backward)
        names = argument_names(forward, len(inputs), skipped=0)
    if len(set(names)) != len(inputs):
        names = [f"input {i}" for i in range(len(inputs))]
    leaves = [_to_leaf(x) for x in inputs]
    requires = [isinstance(x, Tensor) and x.requires_grad for x in inputs]
    tensors = [*map(_to_tensor, leaves)]
    variables = {
        i: x.requires_grad_() for i, x in enumerate(tensors) if _is_float(leaves[i])
    }
    with _gradients_on(), _tracing(Tracer()):
        outputs = _with_gradient(function.apply(*tensors))
        if not outputs:
            raise ValueError(
                "forward must return a tensor that depends on an input of floats; got none: give "
                "these inputs as tensors or arrays"
            )
        if not any(requires):
            value = sum(x.sum() for x in outputs)
            gradients = torch.autograd.grad(
                value, [*variables.values()], allow_unused=True
            )
            pairs = dict(zip(variables, gradients, strict=True))
            requires = [pairs.get(i) is not None for i in range(len(inputs))]
    if not any(requires):
        raise ValueError(
            "backward must return the gradient of an input; got None for all of them"
        )
    theta = {names[i]: x for i, x in enumerate(leaves) if requires[i]}
    constants = {names[i]: x for i, x in enumerate(leaves) if not requires[i]}

    def apply(theta: Any, constants: Any) -> Any:
        arguments_by_name = theta | constants
        return function.apply(*(arguments_by_name[name] for name in names))

    program = _weighted(apply, _with_gradient)
    proof = prove(program, theta, constants, _cotangents(outputs), **options)
    without = [names[i] for i in variables if not requires[i]]
    if not proof or not without:
        return proof
    reason = f"{proof.reason}; " * bool(proof.reason)
    return with_fields(proof, reason=f"{reason}{', '.join(without)} without a gradient")


def _as_function(forward: Any, backward: Any) -> Any:
    """Return a `torch.autograd.Function` of a forward and a backward pass."""

    class Pair(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *inputs: Any) -> Any:
            out, ctx.saved = forward(*inputs)
            ctx.is_one = isinstance(out, Tensor)
            return out if ctx.is_one else tuple(out)

        @staticmethod
        def backward(ctx: Any, *grad_out: Any) -> Any:
            result = backward(ctx.saved, grad_out[0] if ctx.is_one else grad_out)
            return tuple(result) if isinstance(result, list) else result

    return Pair


def _with_gradient(out: Any) -> list[Tensor]:
    """Return the tensors of a result that have gradients."""
    return [x for x in tree_leaves(out) if isinstance(x, Tensor) and x.requires_grad]


def _named_tensors(out: Any) -> dict[str, Tensor]:
    """Return the tensors and numbers in a result by their place in it, such as ``[0]['mean']``."""
    leaves = {keystr(path): x for path, x in tree_flatten_with_path(out)[0]}
    return {
        name: torch.as_tensor(leaves[name])
        for name in sorted(leaves)
        if isinstance(leaves[name], Tensor | float | int)
    }


def _cotangents(outputs: Iterable[Tensor]) -> list[Array]:
    """Return random cotangents of the outputs of a function."""
    rng = np.random.default_rng(0)
    return [rng.standard_normal(tuple(x.shape)) for x in outputs]


def _weighted(
    function: Callable[..., Any], tensors_of: Callable[[Any], Iterable[Tensor]]
) -> Callable[..., Any]:
    """Return the sum of the products of a function's outputs and their cotangents.

    `tensors_of` returns the tensors in what the function returns.
    """

    def value(theta: Any, constants: Any, grad_out: Any) -> Any:
        """Return the sum of the products, a number.

        Parameters
        ----------
        theta : any
            The first argument of the function.
        constants : any
            Its second argument.
        grad_out : list of tensors
            The cotangents, in the order of the outputs.
        """
        pairs = zip(tensors_of(function(theta, constants)), grad_out, strict=True)
        return sum((x * u).sum() for x, u in pairs)

    return value


def prove_same(
    f: Callable[..., Any], g: Callable[..., Any], *inputs: Any, **options: Any
) -> Proof:
    """Prove or refute that two functions have the same values and the same gradients.

    Parameters
    ----------
    f, g : callable
        Functions of the inputs that return a tensor, or a tuple, list or dict of them, such as a
        kernel and its plain form.
    *inputs
        Tensors or arrays of floats vary; all others are constants.
    **options
        `seed`: as in `exactgrad.prove_same`.

    Returns
    -------
    Proof
        A proof that, for all cotangents, the products of the values with them are the same, and the
        gradients by all inputs that autograd returns.

    Raises
    ------
    TypeError, ValueError
        If f or g cannot be called, if their values have different structures or shapes, or if no
        input varies.
    """
    check_callable("f", f)
    check_callable("g", g)
    check_options("exactgrad.torch.prove_same", options, "seed")
    leaves, spec = tree_flatten(tree_map(_to_leaf, inputs))
    theta = {i: x for i, x in enumerate(leaves) if _is_float(x)}
    constants = {i: x for i, x in enumerate(leaves) if i not in theta}

    def applied(function: Callable[..., Any]) -> Callable[..., Any]:
        def apply(theta: Any, constants: Any) -> Any:
            arguments_by_name = theta | constants
            return function(
                *tree_unflatten(
                    [arguments_by_name[i] for i in range(len(arguments_by_name))], spec
                )
            )

        return apply

    if not theta:
        raise ValueError(
            "inputs must hold a tensor or an array of floats; got none: give numbers as tensors"
        )
    shapes = []
    for function in (f, g):
        tensors = [*map(_to_tensor, leaves)]
        with _gradients_on(), _tracing(Tracer()):
            outputs = _named_tensors(applied(function)({}, dict(enumerate(tensors))))
        shapes.append({name: tuple(x.shape) for name, x in outputs.items()})
    if shapes[0] != shapes[1]:
        raise ValueError(
            f"f and g must return tensors of the same shapes; got {shapes[0]} and {shapes[1]}"
        )
    grad_out = _cotangents(outputs.values())
    programs = []
    try:
        for function in (f, g):
            loss = _weighted(
                applied(function), lambda out: _named_tensors(out).values()
            )
            programs.append(_gradient_program(loss, theta, (constants, grad_out))[0])
    except NotTraceable as error:
        return Proof(Verdict.NOT_TRACEABLE, 0, reason=str(error), of_values=True)
    arrays = tree_map(lambda x: x if _is_array(x) else 0, (constants, grad_out))
    return proofs.prove_same(*programs, theta, *arrays, **options)
