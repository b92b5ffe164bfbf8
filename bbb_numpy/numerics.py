"""Stable elementary functions (floor 0).

Every function here is exact to rounding for arguments up to 1e4 in size, in float32 and
float64, and *complex-safe*: branches look at the real part alone, so a complex step
``f(x + ih)`` returns the derivative to rounding in its imaginary part.
"""

from __future__ import annotations

from math import log
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "LOG_2PI",
    "SoftplusParts",
    "log_softmax",
    "logsumexp",
    "sech_squared",
    "sigmoid",
    "softplus",
    "softplus_parts",
    "sums_of_squares",
]

Array = NDArray[Any]
LOG_2PI = log(2.0 * np.pi)
# Left of these points log1p(e^x) = e^x to rounding: e^x / 2 is below a third of an ulp of 1.
_FAR_LEFT = {np.dtype(t): log(float(np.finfo(t).eps)) - 1.0 for t in (np.float32, np.float64)}


class SoftplusParts(NamedTuple):
    r"""Softplus and its companions, all four from one exponential; shape and dtype of x."""

    softplus: Array  # log(1 + e^x), the deviation sigma of a raw rho (K3)
    sigmoid: Array  # 1 / (1 + e^-x) = d softplus/dx (K24)
    log_softplus: Array  # log sigma (K10)
    ratio: Array  # sigmoid / softplus = d log sigma/dx (K25)


def _as_inexact(x: Any) -> Array:
    x = np.asarray(x)
    return x if x.dtype.kind in "fc" else x.astype(np.float64)


def _log1p(z: Array, out: Array) -> Array:
    """Return log(1 + z); for complex z by its polar form, since np.log1p then rounds 1 + z."""
    if z.dtype.kind != "c":
        return np.log1p(z, out=out)
    x, y = z.real, z.imag
    out.real, out.imag = 0.5 * np.log1p(x * (2.0 + x) + y * y), np.arctan2(y, 1.0 + x)
    return out


def softplus_parts(x: Array, out: SoftplusParts | None = None) -> SoftplusParts:
    r"""Return softplus, sigmoid, log softplus, sigmoid/softplus of `x` (K3, K10, K22-K25, D7).

    With ``e = e^-|x|``, which cannot overflow, and ``[.]`` one or zero ::

        softplus     = log1p(e) + x [x > 0]                     not log(1 + e^x): inf at 710
        sigmoid      = e / (1 + e), one minus that for x > 0    not 1 / (1 + e^-x)
        log_softplus = log(softplus), and x itself far left     not log(0) = -inf
        ratio        = sigmoid / softplus, and 1 far left       not 0/0 = nan

    "Far left" is where ``log1p(e^x) = e^x`` to rounding. Everything is finite for finite x.

    Parameters
    ----------
    x : ndarray
        float32, float64, or complex (for a complex step).
    out : SoftplusParts, optional
        Four arrays to fill, like `x`.

    Returns
    -------
    SoftplusParts
    """
    sp, s, log_sp, ratio = out or (np.empty_like(x) for _ in range(4))
    real = x.real
    highest, lowest = (real.max(), real.min()) if x.size else (0.0, 0.0)
    positive = np.greater(real, 0) if highest > 0 else None
    e = log_sp  # a buffer until its own turn comes
    if positive is None:
        np.exp(x, out=e)
    else:
        np.multiply(x, np.where(positive, -1.0, 1.0).astype(real.dtype), out=e)
        np.exp(e, out=e)
    _log1p(e, out=sp)
    np.add(e, 1.0, out=s)
    np.divide(e, s, out=s)
    if positive is not None:
        sp += x * positive
        s += (1.0 - 2.0 * s) * positive
    far_left = _FAR_LEFT[real.dtype]
    if lowest < far_left:
        tail = np.less(real, far_left)
        with np.errstate(divide="ignore", invalid="ignore"):
            np.log(sp, out=log_sp)
            np.divide(s, sp, out=ratio)
        np.copyto(log_sp, x, where=tail)
        np.copyto(ratio, 1.0, where=tail)
    else:
        np.log(sp, out=log_sp)
        np.divide(s, sp, out=ratio)
    return SoftplusParts(sp, s, log_sp, ratio)


def softplus(x: Any) -> Array:
    r"""Return ``log(1 + e^x)``, elementwise: the deviation sigma of a raw rho (K3)."""
    return softplus_parts(_as_inexact(x)).softplus


def sigmoid(x: Any) -> Array:
    r"""Return ``1 / (1 + e^-x)``, elementwise: the derivative of `softplus` (K24)."""
    return softplus_parts(_as_inexact(x)).sigmoid


def sech_squared(x: Array, out: Array | None = None) -> Array:
    """Return tanh'(x) = 1 - tanh(x)^2 = 4 e / (1 + e)^2 with e = e^-2|x| (D10).

    The first form loses every digit from |x| = 19 on, where tanh rounds to 1.
    """
    if x.dtype.kind == "c":
        e = np.multiply(x, np.where(x.real > 0, -2.0, 2.0), out=out)
    else:
        e = np.multiply(np.abs(x, out=out), -2.0, out=out)
    np.exp(e, out=e)
    return np.divide(4.0 * e, (1.0 + e) ** 2, out=e)


def logsumexp(x: Any, axis: int = -1, keepdims: bool = False) -> Array:
    """Return ``log(sum(exp(x)))`` along `axis`, shifted by the largest real part.

    An axis of minus infinities gives -inf, not nan. The other axes keep their shape.
    """
    x = _as_inexact(x)
    shift = np.max(x.real, axis=axis, keepdims=True)
    shift = np.where(np.isfinite(shift), shift, np.zeros_like(shift))
    with np.errstate(divide="ignore"):
        total = np.log(np.sum(np.exp(x - shift), axis=axis, keepdims=True)) + shift
    return total if keepdims else np.squeeze(total, axis=axis)


def log_softmax(x: Any, axis: int = -1) -> Array:
    """Return ``x - logsumexp(x)`` along `axis`: log probabilities.

    The largest entry is subtracted first, so a gap of 1e4 between logits costs no digit.
    """
    x = _as_inexact(x)
    shifted = x - np.max(x.real, axis=axis, keepdims=True)
    return shifted - logsumexp(shifted, axis=axis, keepdims=True)


def sums_of_squares(a: Array) -> Array:
    """Return the sum of squares of each row, (S, P) -> (S,); no conjugate, so complex-safe.

    ``(a * a).sum(axis=1)`` as S inner products: one pass over memory instead of three.
    """
    return np.matmul(a[:, None, :], a[:, :, None])[:, 0, 0]
