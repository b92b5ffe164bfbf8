"""Elementary and special functions of exact arrays: each with its derivative and its laws (D44).

Functions that are rational in exponentials and logarithms, such as tanh, are computed from these
and obey all their laws. The others, such as erf, are *opaque*: in a finite field they are random
functions of the residue, of which only the derivative is known and whether they are odd or even.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from decimal import localcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arguments import check_callable
from ..fields.dual import DualField
from ..fields.finite import LOG_2, Field
from .arrays import (
    FUNCTIONS,
    UFUNCS,
    Exact,
    Handlers,
    apply_slope,
    comparison_of,
    dual_residues,
    lift,
    lift_all,
    select,
)

__all__ = ["SPECIAL", "exp", "function", "log", "polygamma", "sqrt"]

Array = NDArray[Any]
SPECIAL: Handlers = {}  # exact versions of the ufuncs of scipy.special, by name
SQRT_PI = math.sqrt(math.pi)
# Largest exponent that a mask hides: e^-1000 is 0 in floats, by far
MAX_MASKED = -1000.0
SMALL_EXPONENT = -60  # for |x| < 10^-60 a series replaces the formula


def exp(x: Any) -> Exact:
    """Return e^x, with derivative e^x x'; 0 with derivative 0 where x is masked."""
    (x,) = lift_all(x)
    nothing = 0 * x.field.one
    is_masked = _is_masked(x)[..., None]
    exponents = np.where(is_masked, nothing, x.primal)
    primal = x.field.exp(exponents, x.log_terms)
    primal = np.where(is_masked, nothing, primal)
    return apply_slope(x, primal, primal, np.exp(x.floats))


def _is_masked(x: Exact) -> Array:
    """Return where e^x counts as 0, because a mask has been written into x or added to it.

    A mask is a constant of the program: minus infinity, or at most -`MASK_SIZE`, perhaps scaled, if
    no other terms make up for half of it. A number that is small without it is not masked.
    """
    if x.field.decimals_decide:
        return np.zeros(x.shape, bool)  # decimals have all powers of e, however small
    is_infinite = np.isneginf(x.floats) & x.field.has_infinity
    if x.large_terms is None:
        return is_infinite
    highest = np.minimum(x.large_terms / 2, MAX_MASKED)
    is_masked = (x.large_terms < 0) & (x.floats <= highest)
    masks = x.large_terms[is_masked]
    x.field.largest_mask = max(x.field.largest_mask, masks.max(initial=-math.inf))
    return is_infinite | is_masked


def log(x: Any) -> Exact:
    """Return log x, with derivative x' / x; record in the field where x is 0."""
    (x,) = lift_all(x)
    primal, log_terms = x.field.log(x.primal)
    x.field.record_zeros(x.primal, x.floats)
    slope = x.field.inv(x.primal)
    return apply_slope(x, primal, slope, np.log(x.floats), log_terms)


def sqrt(x: Any) -> Exact:
    """Return the square root of x, with derivative x' / (2 sqrt x)."""
    (x,) = lift_all(x)
    root = x.field.sqrt(x.primal)
    slope = x.field.inv(x.field.add(root, root))
    return apply_slope(x, root, slope, np.sqrt(x.floats))


def cos_and_sin(x: Any) -> tuple[Exact, Exact]:
    """Return cos x and sin x, in this order, with derivatives -x' sin x and x' cos x."""
    (x,) = lift_all(x)
    cos, sin = x.field.cos_and_sin(x.primal)
    return (
        apply_slope(x, cos, x.field.neg(sin), np.cos(x.floats)),
        apply_slope(x, sin, cos, np.sin(x.floats)),
    )


def _cos(x: Any) -> Exact:
    """Return cos x, with its derivative."""
    return cos_and_sin(x)[0]


def _sin(x: Any) -> Exact:
    """Return sin x, with its derivative."""
    return cos_and_sin(x)[1]


def _tan(x: Any) -> Exact:
    """Return tan x as sin x / cos x, with its derivative."""
    cos, sin = cos_and_sin(x)
    return sin / cos


def _float_function(name: str) -> Callable[..., Array]:
    """Return the floating-point function called `name` of NumPy, `math` or `scipy.special`."""
    if hasattr(np, name):
        function: Callable[..., Array] = getattr(np, name)
        return function
    if name in ("erf", "erfc"):
        return np.vectorize(getattr(math, name), otypes=[float])
    return lambda *args: getattr(sys.modules["scipy.special"], name)(*args)


def _from_formula(formula: Callable[..., Any], name: str) -> Callable[..., Exact]:
    """Return the exact version of NumPy's or SciPy's function `name`, given a formula for it.

    Residues and derivatives come from `formula`, and floats from NumPy's or SciPy's own function,
    which is more accurate.
    """

    def of_exact(*args: Any) -> Exact:
        operands = lift_all(*args)
        result: Exact = formula(*operands)
        floats = _float_function(name)(*(x.floats for x in operands))
        return Exact(result.field, result.residues, floats, result.log_terms)

    return of_exact


def opaque(
    name: str,
    slope: Callable[[Exact, Exact], Any],
    odd: bool | None = None,
    floats: Callable[..., Array] | None = None,
) -> Callable[[Any], Exact]:
    """Return the exact version of a function of which only derivative and symmetry are known.

    Its values in a finite field are random numbers, the same for the same argument.

    Parameters
    ----------
    name : str
        The name of the function, from which the random values are drawn.
    slope : callable
        Called with x and the value f(x), both `Exact`; returns the derivative f'(x).
    odd : bool, optional
        Whether the function is odd (True) or even (False). By default neither is assumed.
    floats : callable, optional
        The function of floating-point arrays. By default the one of this name in NumPy, `math` or
        `scipy.special`.

    Returns
    -------
    callable
        Maps an exact array to the values there, with their derivatives.
    """
    of_floats = floats or _float_function(name)

    def slope_at(x: Exact, field: Field, argument: Array, value: Array) -> Array:
        """Return f'(x) at residues of a field; the floats of x decide comparisons.

        Parameters
        ----------
        x : Exact
            The argument of the traced function.
        field : Field
            The field of the residues.
        argument, value : array, shape (..., C)
            The residues of the argument and of f(x), without derivatives.
        """
        point = Exact(field, dual_residues(field, argument), x.floats)
        at_point = Exact(field, dual_residues(field, value), of_floats(x.floats))
        return lift(slope(point, at_point), field).primal

    def value_at(x: Exact, field: Field, argument: Array) -> Array:
        """Return f(x) at residues of a field, with the derivative that a dual number holds.

        Parameters
        ----------
        x : Exact
            The argument of the traced function.
        field : Field
            The field of the residues.
        argument : array, shape (..., C)
            The residues of the argument, without derivatives.
        """
        if not isinstance(field, DualField):
            return field.opaque(name, argument, odd)
        first, _ = field.parts(argument)
        value = value_at(x, field.base, first)
        return field.extend(value, slope_at(x, field.base, first, value), argument)

    def of_exact(x: Any) -> Exact:
        (x,) = lift_all(x)
        values = of_floats(x.floats)
        x.field.divided_by_zero |= not np.isfinite(values).all()
        primal = value_at(x, x.field, x.primal)
        if not x.has_tangent:
            return Exact(x.field, dual_residues(x.field, primal), values)
        return apply_slope(x, primal, slope_at(x, x.field, x.primal, primal), values)

    return of_exact


def function(
    name: str,
    derivative: Callable[[Any], Any],
    floats: Callable[..., Any] | None = None,
) -> None:
    """Register the derivative of a function of one array, so that proofs can use the function.

    A function that is registered already is replaced.

    Parameters
    ----------
    name : str
        Name of a ufunc of NumPy or `scipy.special`: its ``__name__``.
    derivative : callable
        Maps an array x to the derivative f'(x), elementwise. It may call the functions of NumPy and
        `scipy.special` that proofs support, and functions registered before.
    floats : callable, optional
        The function itself, of floating-point arrays. By default the one of this name in NumPy,
        `math` or `scipy.special`.

    Raises
    ------
    TypeError
        If `name` is not a string, or if `derivative` or `floats` cannot be called.
    """
    if not isinstance(name, str):
        raise TypeError(f"name must be text, as the ufunc's __name__; got {name!r}")
    check_callable("derivative", derivative)
    if floats is not None:
        check_callable("floats", floats)
    SPECIAL[name] = opaque(name, lambda x, _: derivative(x), None, floats)
    UFUNCS[name] = SPECIAL[name]


def _precise_near_zero(
    series: Callable[[Exact], Exact], formula: Callable[[Exact], Exact]
) -> Callable[[Exact], Exact]:
    """Return a version of `formula` that loses no decimal digits to cancellation near x = 0.

    It computes decimals with more digits if |x| is small. For |x| below 1e-60 it returns
    `series(x)`, the first terms of the power series, which are exact to all digits. Residues of
    finite fields are always those of `formula(x)`.
    """

    def of_exact(x: Exact) -> Exact:
        if x.field.dtype is not object:
            return formula(x)
        # decimal exponents of the entries; for NaN `adjusted` returns 0
        exponents = [number.adjusted() for number in x.primal[..., 0].ravel()]
        sizes = np.array(exponents).reshape(x.shape)
        small = sizes < SMALL_EXPONENT
        with localcontext() as more_digits:
            more_digits.prec -= int(sizes[~small].min(initial=0))
            out = formula(x)
        if small.any():
            return select(small, series(x), out)
        return out

    return of_exact


_log1p = _precise_near_zero(lambda x: x - x * x / 2, lambda x: log(x + 1))
_expm1 = _precise_near_zero(lambda x: x + x * x / 2, lambda x: exp(x) - 1)
_arctan = opaque("arctan", lambda x, _: 1 / (1 + x * x), odd=True)
_arcsin = opaque("arcsin", lambda x, _: 1 / sqrt(1 - x * x), odd=True)
_erf = opaque("erf", lambda x, _: 2 / SQRT_PI * exp(-(x * x)), odd=True)
_erfinv = opaque("erfinv", lambda _, y: SQRT_PI / 2 * exp(y * y), odd=True)


def _tanh(x: Exact) -> Exact:
    """Return tanh x as (1 - e^-2x) / (1 + e^-2x)."""
    e = _expm1(x * -2)
    return -e / (2 + e)


def _expit(x: Exact) -> Exact:
    """Return 1 / (1 + e^-x), the logistic function; 0 with derivative 0 where x is masked."""
    value = 1 / (1 + exp(-x))
    if x.large_terms is None:
        return value
    return select(_is_masked(x), 0.0, value)


def _normal_cdf(x: Exact) -> Exact:
    """Return the distribution function of N(0, 1) at x, (1 + erf(x / sqrt 2)) / 2."""
    return (1 + _erf(x / math.sqrt(2.0))) / 2


def _arctan2(y: Exact, x: Exact) -> Exact:
    """Return the angle of the point (x, y) in radians, as np.arctan2.

    It is arctan(y / x), plus pi where x < 0 <= y, and minus pi where x < 0 and y < 0.
    """
    angle = _arctan(y / x)
    is_left = comparison_of(np.less)(x, 0)
    is_upper = comparison_of(np.greater_equal)(y, 0)
    return select(is_left, angle + np.where(is_upper, math.pi, -math.pi), angle)


def _logaddexp(x: Exact, y: Exact) -> Exact:
    """Return log(e^x + e^y); if decimals decide, by way of the larger number.

    Its power may be too large for a decimal.
    """
    if not x.field.decimals_decide:
        return log(exp(x) + exp(y))
    larger: Exact = UFUNCS["maximum"](x, y)
    return larger + log(exp(x - larger) + exp(y - larger))


def polygamma(order: int) -> Callable[[Any], Exact]:
    """Return the exact version of log Gamma, digamma, or a derivative of digamma, by `order`.

    Order -1 is log Gamma, 0 is digamma, and n > 0 is the n-th derivative of digamma.
    """
    if order < 1:
        name = ("gammaln", "digamma")[order + 1]
        return opaque(name, lambda x, _: polygamma(order + 1)(x))

    def of_floats(v: Array) -> Array:
        return _float_function("polygamma")(order, v)

    name = f"polygamma {order}"
    return opaque(name, lambda x, _: polygamma(order + 1)(x), None, of_floats)


def _xlogy(x: Exact, y: Exact) -> Exact:
    """Return x log y, which is 0 where x is 0, whatever y is."""
    is_zero = (x.primal == 0).all(axis=-1)
    return x * log(select(is_zero, np.ones(y.shape), y))


def _i0e_slope(x: Exact, y: Exact) -> Exact:
    """Return the derivative I1e(x) - sign(x) y of the scaled Bessel function y = I0e(x)."""
    return SPECIAL["i1e"](x) - UFUNCS["sign"](x) * y


def _i1e_slope(x: Exact, y: Exact) -> Exact:
    """Return the derivative I0e(x) - y (sign(x) + 1 / x) of the scaled Bessel y = I1e(x)."""
    return SPECIAL["i0e"](x) - y * (UFUNCS["sign"](x) + 1 / x)


UFUNCS |= {
    "arcsin": _arcsin,
    "arctan": _arctan,
    "cos": _cos,
    "deg2rad": lambda x: x * (math.pi / 180),
    "exp": exp,
    "exp2": lambda x: exp(x * LOG_2),
    "log": log,
    "log10": lambda x: log(x) / math.log(10.0),
    "log2": lambda x: log(x) / LOG_2,
    "sin": _sin,
    "sqrt": sqrt,
    "tan": _tan,
}
SPECIAL |= {
    "digamma": polygamma(0),
    "erf": _erf,
    "erfinv": _erfinv,
    "gammaln": polygamma(-1),
    "i0e": opaque("i0e", _i0e_slope, odd=False),
    "i1e": opaque("i1e", _i1e_slope, odd=True),
    "loggamma": polygamma(-1),
    "psi": polygamma(0),
}
# Formulas for residues in terms of the functions above; the floats come from NumPy or SciPy
NUMPY_FORMULAS: Handlers = {
    "arccos": lambda x: math.pi / 2 - _arcsin(x),
    "arcsinh": lambda x: log(x + sqrt(x * x + 1)),
    "arctan2": _arctan2,
    "arctanh": lambda x: log((1 + x) / (1 - x)) / 2,
    "cbrt": lambda x: x * exp(log(x * x) / -3),
    "cosh": lambda x: (exp(x) + exp(-x)) / 2,
    "expm1": _expm1,
    "hypot": lambda x, y: sqrt(x * x + y * y),
    "log1p": _log1p,
    "logaddexp": _logaddexp,
    "sinh": lambda x: (exp(x) - exp(-x)) / 2,
    "tanh": _tanh,
}
SCIPY_FORMULAS: Handlers = {
    "betaln": lambda x, y: polygamma(-1)(x) + polygamma(-1)(y) - polygamma(-1)(x + y),
    "entr": lambda x: -_xlogy(x, x),
    "erfc": lambda x: 1 - _erf(x),
    "expit": _expit,
    "log_expit": lambda x: -log(1 + exp(-x)),
    "log_ndtr": lambda x: log(_normal_cdf(x)),
    "logit": lambda x: log(x / (1 - x)),
    "ndtr": _normal_cdf,
    "ndtri": lambda x: math.sqrt(2.0) * _erfinv(2 * x - 1),
    "rel_entr": lambda x, y: _xlogy(x, x / y),
    "xlog1py": lambda x, y: _xlogy(x, 1 + y),
    "xlogy": _xlogy,
}
UFUNCS |= {
    name: _from_formula(formula, name) for name, formula in NUMPY_FORMULAS.items()
}
SPECIAL |= {
    name: _from_formula(formula, name) for name, formula in SCIPY_FORMULAS.items()
}
UFUNCS |= SPECIAL
FUNCTIONS["sinc"] = lambda x: _sin(x * math.pi) / (x * math.pi)
Exact.erfc = lambda x: x.field.apply("erfc", SPECIAL["erfc"], (x,), {})  # type: ignore[attr-defined]
