"""Elementary and special functions of exact arrays: each with its derivative and its laws (D44).

What is rational in exponentials and logarithms is computed so, and has all their laws. The others
are *opaque*: random functions of the residue, of which the field knows the derivative and whether
they are odd.
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
from .arrays import (
    FUNCTIONS,
    UFUNCS,
    Exact,
    apply_slope,
    comparison_of,
    dual_residues,
    lift,
    lift_all,
    select,
)

__all__ = ["SPECIAL", "exp", "function", "gamma", "log", "sqrt"]

Array = NDArray[Any]
SPECIAL: dict[str, Callable[..., Any]] = {}  # those of scipy.special
ROOT_OF_PI = math.sqrt(math.pi)


def exp(x: Any) -> Exact:
    """Return e^x, with slope e^x x'."""
    (x,) = lift_all(x)
    e = x.field.exp(x.primal, x.log_terms)
    if x.field.has_infinity:
        e[np.isneginf(x.floats)] = 0 * x.field.one  # of a mask
    return apply_slope(x, e, e, np.exp(x.floats))


def log(x: Any) -> Exact:
    """Return log x, with slope x' / x."""
    (x,) = lift_all(x)
    t, note = x.field.log(x.primal)
    x.field.record_zeros(x.primal, x.floats)
    return apply_slope(x, t, x.field.inv(x.primal), np.log(x.floats), note)


def sqrt(x: Any) -> Exact:
    """Return r with r^2 = x, with slope x' / (2 r)."""
    (x,) = lift_all(x)
    r = x.field.sqrt(x.primal)
    return apply_slope(x, r, x.field.inv(x.field.add(r, r)), np.sqrt(x.floats))


def cos_and_sin(x: Any) -> tuple[Exact, Exact]:
    """Return cos x and sin x, with slopes -sin x x' and cos x x'."""
    (x,) = lift_all(x)
    c, s = x.field.cos_and_sin(x.primal)
    return apply_slope(x, c, x.field.neg(s), np.cos(x.floats)), apply_slope(
        x, s, c, np.sin(x.floats)
    )


def _by(formula: Callable[..., Any], name: str) -> Callable[..., Exact]:
    """Return a function by a formula in others, with the floats of NumPy's or SciPy's own."""

    def by_formula(*args: Any) -> Exact:
        found: Exact = formula(*lift_all(*args))
        return Exact(
            found.field,
            found.residues,
            _floats(name)(*(x.floats for x in lift_all(*args))),
        )

    return by_formula


def _floats(name: str) -> Callable[..., Array]:
    """Return a function of floats: NumPy's, Python's, or that of SciPy, which has been imported."""
    if hasattr(np, name):
        found: Callable[..., Array] = getattr(np, name)
        return found
    if name in ("erf", "erfc"):
        return np.vectorize(getattr(math, name), otypes=[float])
    return lambda *args: getattr(sys.modules["scipy.special"], name)(*args)


def opaque(
    name: str,
    slope: Callable[[Exact, Exact], Any],
    odd: bool | None = None,
    floats: Callable[..., Array] | None = None,
) -> Callable[[Any], Exact]:
    """Return an opaque function: `slope` is its derivative, from x and its value."""

    def of_x(x: Any) -> Exact:
        (x,) = lift_all(x)
        v = (floats or _floats(name))(x.floats)
        x.field.divided_by_zero |= not np.isfinite(v).all()
        value = Exact(
            x.field, dual_residues(x.field, x.field.opaque(name, x.primal, odd)), v
        )
        if not x.has_tangent:
            return value
        return apply_slope(
            x, value.primal, lift(slope(x.stop_gradient(), value), x.field).primal, v
        )

    return of_x


def function(
    name: str,
    derivative: Callable[[Any], Any],
    floats: Callable[..., Any] | None = None,
) -> None:
    """Make a function of one array known to proofs, by its derivative.

    Parameters
    ----------
    name : str
        Of a ufunc of NumPy's or `scipy.special`, as its ``__name__`` says.
    derivative : callable
        From an array to the derivative there, by functions that are known.
    floats : callable, optional
        The function of floats; by default that of `scipy.special`, or of NumPy.
    """
    if not isinstance(name, str):
        raise TypeError(f"name must be text, as the ufunc's __name__; got {name!r}")
    check_callable("derivative", derivative)
    if floats is not None:
        check_callable("floats", floats)
    UFUNCS[name] = SPECIAL[name] = opaque(
        name, lambda x, _: derivative(x), None, floats
    )


def _small(series: Callable[[Exact], Exact], formula: Callable[[Exact], Exact]) -> Any:
    """Return a function whose formula loses the digits of small numbers: decimals get more."""

    def finely(x: Exact) -> Exact:
        if not x.field.is_decimal:
            return formula(x)
        sizes = np.array([one.adjusted() for one in x.primal.ravel()]).reshape(
            x.shape
        )  # 0 of NaN
        tiny = sizes < -60
        with localcontext() as more:
            more.prec -= int(sizes[~tiny].min(initial=0))
            out = formula(x)
        return select(tiny, series(x), out) if tiny.any() else out

    return finely


_log1p = _small(lambda x: x - x * x / 2, lambda x: log(x + 1))
_expm1 = _small(lambda x: x + x * x / 2, lambda x: exp(x) - 1)


def _tanh(x: Exact) -> Exact:
    """Return (1 - e^-2x) / (1 + e^-2x)."""
    e = _expm1(x * -2)
    return -e / (2 + e)


_arctan = opaque("arctan", lambda x, _: 1 / (1 + x * x), odd=True)
_arcsin = opaque("arcsin", lambda x, _: 1 / sqrt(1 - x * x), odd=True)
_erf = opaque("erf", lambda x, _: 2 / ROOT_OF_PI * exp(-(x * x)), odd=True)


def _normal(x: Exact) -> Exact:
    """Return the normal distribution function; that less 1/2 is odd."""
    return (1 + _erf(x / math.sqrt(2.0))) / 2


def _angle(y: Exact, x: Exact) -> Exact:
    """Return the angle of a point: that of y / x, and half a turn more where x < 0."""
    found = _arctan(y / x)
    left, up = comparison_of(np.less)(x, 0), comparison_of(np.greater_equal)(y, 0)
    return select(left, found + np.where(up, math.pi, -math.pi), found)


def gamma(order: int) -> Callable[[Any], Exact]:
    """Return log Gamma for order -1, digamma for 0, polygamma for more."""
    name = ("gammaln", "digamma")[order + 1] if order < 1 else f"polygamma {order}"
    floats = None if order < 1 else lambda v: _floats("polygamma")(order, v)
    return opaque(name, lambda x, _: gamma(order + 1)(x), None, floats)


def _times_log(x: Exact, y: Exact) -> Exact:
    """Return x log y, and 0 where x is 0."""
    return x * log(select((x.primal == 0).all(axis=-1), np.ones(y.shape), y))


UFUNCS |= dict(
    exp=exp, log=log, sqrt=sqrt, arctan=_arctan, arcsin=_arcsin, cos=lambda x: cos_and_sin(x)[0],
    sin=lambda x: cos_and_sin(x)[1], tan=lambda x: cos_and_sin(x)[1] / cos_and_sin(x)[0],
    exp2=lambda x: exp(x * math.log(2.0)), deg2rad=lambda x: x * (math.pi / 180),
    log2=lambda x: log(x) / math.log(2.0), log10=lambda x: log(x) / math.log(10.0),
)  # fmt: skip
SPECIAL |= dict(
    erf=_erf, gammaln=gamma(-1), loggamma=gamma(-1), digamma=gamma(0), psi=gamma(0),
    erfinv=opaque("erfinv", lambda _, y: ROOT_OF_PI / 2 * exp(y * y), odd=True),
    i0e=opaque("i0e", lambda x, y: SPECIAL["i1e"](x) - UFUNCS["sign"](x) * y, odd=False),
    i1e=opaque("i1e", lambda x, y: SPECIAL["i0e"](x) - y * (UFUNCS["sign"](x) + 1 / x), odd=True),
)  # fmt: skip
FORMULAS: dict[str, Callable[..., Any]] = dict(
    expm1=_expm1, log1p=_log1p, tanh=_tanh, arctan2=_angle,
    cbrt=lambda x: x * exp(log(x * x) / -3),
    sinh=lambda x: (exp(x) - exp(-x)) / 2, cosh=lambda x: (exp(x) + exp(-x)) / 2,
    arccos=lambda x: math.pi / 2 - _arcsin(x), hypot=lambda x, y: sqrt(x * x + y * y),
    arcsinh=lambda x: log(x + sqrt(x * x + 1)), arctanh=lambda x: log((1 + x) / (1 - x)) / 2,
    logaddexp=lambda x, y: log(exp(x) + exp(y)),
)  # fmt: skip
OF_SCIPY: dict[str, Callable[..., Any]] = dict(
    expit=lambda x: 1 / (1 + exp(-x)), log_expit=lambda x: -log(1 + exp(-x)),
    logit=lambda x: log(x / (1 - x)), erfc=lambda x: 1 - _erf(x), ndtr=_normal,
    ndtri=lambda x: math.sqrt(2.0) * SPECIAL["erfinv"](2 * x - 1),
    log_ndtr=lambda x: log(_normal(x)), xlogy=_times_log, entr=lambda x: -_times_log(x, x),
    xlog1py=lambda x, y: _times_log(x, 1 + y), rel_entr=lambda x, y: _times_log(x, x / y),
    betaln=lambda x, y: gamma(-1)(x) + gamma(-1)(y) - gamma(-1)(x + y),
)  # fmt: skip
SPECIAL |= {name: _by(formula, name) for name, formula in OF_SCIPY.items()}
UFUNCS |= {name: _by(formula, name) for name, formula in FORMULAS.items()}
UFUNCS |= SPECIAL
FUNCTIONS["sinc"] = lambda x: cos_and_sin(x * math.pi)[1] / (x * math.pi)
Exact.erfc = SPECIAL["erfc"]  # type: ignore[attr-defined]
