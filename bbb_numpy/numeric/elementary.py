"""Stable elementary functions.

Every function here is exact to rounding for arguments up to 1e4 in size, in float32 and float64,
and *complex-safe*: branches depend on the real part alone, so that with a complex step
``f(x + ih)`` the imaginary part is the derivative times h, to rounding.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import exp, log, pi
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.introspect import opt_func_info
from numpy.typing import NDArray

from .threads import MIN_SHARED_SIZE, on_halves

Array = NDArray[Any]
LOG_2PI = log(2.0 * np.pi)
# Smallest size of a vector that the transform of Box and Muller draws faster than the ziggurat
BOX_MULLER_MIN_SIZE = 1024
CACHE_BLOCK = 32_768  # length of blocks whose temporary arrays stay in the cache
HALF_STEPS = 10  # number of steps of the recurrence in `gamma_half_step`
# Middle of a step from which on log(1 - 1 / middle^2) needs `log1p`: 1 / middle^2 is below 1e-4
LARGE_NU = 100.0
# Midpoints t of intervals of length 1/2 for `erfc`; at the next one e^-t^2 would be 1e-17
MIDPOINTS = [0.25 + 0.5 * n for n in range(12)]
# Coefficients B_2j (1 - 4^j) / (2j (2j - 1)) of the powers 13, 11, ..., 1 of 1 / nu
HALF_STEP_SERIES = (-5461 / 52, 691 / 88, -31 / 36, 17 / 112, -1 / 20, 1 / 24, -1 / 4)
RISING_STEPS = 9  # shift of the arguments of log Gamma in `rising_factorial`
# Coefficients B_2j / (2j (2j - 1)) of Stirling's series, the powers 11, 9, ..., 1 of 1 / z
STIRLING_SERIES = (-691 / 360360, 1 / 1188, -1 / 1680, 1 / 1260, -1 / 360, 1 / 12)
# Coefficients of the powers 4, 3, ..., 0 of s^2 in log(1 + e) / s, s = e / (2 + e), for e in [0, 1]
LOG1P_SERIES = (0.28174657, 0.27961419, 0.40024854, 0.66666316, 2.00000001)
# Whether NumPy computes log1p of float32 with vector instructions, as it does with AVX-512 alone
HAS_VECTOR_LOG1P = all(
    "baseline" not in loops["ff"]["current"]
    for loops in opt_func_info(func_name="^log1p$", signature="^float32").values()
)
# By dtype, the x below which log1p(e^x) = e^x to rounding: e^x / 2 is below a third of an ulp of 1
_FAR_LEFT = {
    np.dtype(t): log(float(np.finfo(t).eps)) - 1.0 for t in (np.float32, np.float64)
}
# Smallest positive number that is not subnormal, by dtype
SMALLEST_NORMAL = {
    np.dtype(t): float(np.finfo(t).tiny) for t in (np.float32, np.float64)
}


class SoftplusParts(NamedTuple):
    r"""Softplus of x and three related functions, arrays of the shape and dtype of x."""

    softplus: Array  # log(1 + e^x), the standard deviation sigma of a raw rho (K3)
    sigmoid: Array  # 1 / (1 + e^-x) = d softplus/dx (K24)
    log_softplus: Array  # log sigma (K10)
    ratio: Array  # sigmoid / softplus = d log sigma/dx (K25)


def _as_inexact(x: Any) -> Array:
    """Return `x` as an array of floats or complex numbers; integers become float64."""
    x = np.asarray(x)
    if x.dtype.char in "fdFD":
        return x
    return x.astype(complex if x.dtype.kind == "c" else float)


def log1p(z: Array, out: Array | None = None) -> Array:
    """Return log(1 + z), elementwise.

    For complex z it is computed from modulus and angle, because np.log1p then rounds 1 + z.

    Parameters
    ----------
    z : ndarray
        Real or complex numbers.
    out : ndarray, optional
        Array that is overwritten by the result and returned; by default a new one.
    """
    out = np.empty_like(z) if out is None else out
    if z.dtype.kind != "c":
        return np.log1p(z, out=out)
    x, y = z.real, z.imag
    log_modulus = 0.5 * np.log1p(x * (2.0 + x) + y * y)
    angle = np.arctan2(y, 1.0 + x)
    out.real = log_modulus
    out.imag = angle
    return out


def _log1p_series(e: Array, out: Array, scratch: tuple[Array, Array]) -> Array:
    """Write log(1 + e) for float32 numbers e in [0, 1] to `out`, right to 3e-7 of it (D7).

    Where NumPy's own log1p has no vector instructions, this takes a third of its time. `scratch`
    are two arrays of the shape of e that are overwritten.
    """
    s, square = scratch
    np.add(e, 2.0, out=s)
    np.divide(e, s, out=s)
    np.multiply(s, s, out=square)
    np.multiply(square, LOG1P_SERIES[0], out=out)
    for coefficient in LOG1P_SERIES[1:-1]:
        out += coefficient
        out *= square
    out += LOG1P_SERIES[-1]
    return np.multiply(out, s, out=out)  # D7


def softplus_parts(x: Array, out: SoftplusParts | None = None) -> SoftplusParts:
    r"""Return softplus, sigmoid, log softplus, sigmoid/softplus of `x` (K3, K10, K22-K25, D7).

    With ``e = e^-|x|``, which cannot overflow, and ``[.]`` one or zero ::

        softplus     = log1p(e) + x [x > 0]                     not log(1 + e^x): inf at 710
        sigmoid      = e / (1 + e), one minus that for x > 0    not 1 / (1 + e^-x)
        log_softplus = log(softplus), and x itself far left     not log(0) = -inf
        ratio        = sigmoid / softplus, and 1 far left       not 0/0 = nan

    "Far left" means x so small that ``log1p(e^x) = e^x`` to rounding. All results are finite for
    finite x.

    Parameters
    ----------
    x : ndarray
        Array of dtype float32, float64, or complex (for a complex step).
    out : SoftplusParts, optional
        Four arrays of the shape and dtype of x that are overwritten by the results and returned;
        by default new ones.
    """
    parts = out or SoftplusParts._make([np.empty_like(x) for _ in range(4)])
    if x.ndim != 1 or len(x) < MIN_SHARED_SIZE:
        _fill_softplus_parts(x, parts)
        return parts

    def fill(block: slice) -> None:
        of_block = [array[block] for array in parts]
        _fill_softplus_parts(x[block], SoftplusParts._make(of_block))

    on_halves(fill, len(x))
    return parts


def _fill_softplus_parts(x: Array, out: SoftplusParts) -> None:
    """Write the four functions of `softplus_parts` to the arrays `out`."""
    sp, s, log_sp, ratio = out
    real = x.real
    highest = 0.0
    lowest = 0.0
    # argmax takes half the time of max() for the short vectors of small networks
    if x.size:
        highest = real.item(real.argmax())
        lowest = real.item(real.argmin())
    # comparisons with nan are false, so that nan takes the general path
    positive = None if highest <= 0 else np.greater(real, 0)
    e = log_sp  # memory for e^-|x| until log softplus is computed
    if positive is None:
        np.exp(x, out=e)
    else:
        _decayed(x, 1.0, e)
    if HAS_VECTOR_LOG1P or x.dtype != np.float32:
        log1p(e, out=sp)  # softplus of -|x| (K3, D7)
    else:
        _log1p_series(e, sp, (s, ratio))
    np.add(e, 1.0, out=s)
    np.divide(e, s, out=s)  # sigmoid of -|x| (K24)
    if positive is not None:
        sp += x * positive
        s += (1.0 - 2.0 * s) * positive
    far_left = _FAR_LEFT[real.dtype]
    if not lowest >= far_left:
        tail = np.less(real, far_left)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            np.log(sp, out=log_sp)
            np.divide(s, sp, out=ratio)
        np.copyto(log_sp, x, where=tail)
        np.copyto(ratio, 1.0, where=tail)
    else:
        np.log(sp, out=log_sp)
        np.divide(s, sp, out=ratio)  # d log sigma / d rho (K22, K23, K25)


def softplus_and_slope(x: Array) -> tuple[Array, Array]:
    """Return log(1 + e^x) and its derivative, the sigmoid, from one exponential (K3, K24, D7).

    Both have the shape of `x`, real or complex, and are computed as in `softplus_parts`.
    """
    positive = x.real > 0
    s = _decayed(x, 1.0)
    value = log1p(s)
    value += x * positive  # log(1 + e^-|x|) + x [x > 0] (K3, D7)
    s /= s + 1.0
    s += (1.0 - 2.0 * s) * positive  # K24
    return value, s


def softplus(x: Any) -> Array:
    r"""Return ``log(1 + e^x)``, elementwise: the standard deviation of a raw rho (K3)."""
    return softplus_parts(_as_inexact(x)).softplus


def sigmoid(x: Any) -> Array:
    r"""Return ``1 / (1 + e^-x)``, elementwise: the derivative of `softplus` (K24)."""
    return softplus_parts(_as_inexact(x)).sigmoid


def inverse_softplus(y: Any) -> Array:
    r"""Return ``log(e^y - 1)``, the x with ``softplus(x) = y``, elementwise for y > 0 (K3).

    It is computed as ``y + log(1 - e^-y)``, which does not overflow for large y, nor cancel for
    small y.
    """
    y = _as_inexact(y)
    return y + np.log(-np.expm1(-y))


def log_factorial(y: Any) -> Array:
    r"""Return log y! = log Gamma(y + 1), elementwise for real y >= 0 (D31).

    Stirling's series for log Gamma is evaluated at ``z = y + 1 + 8``, where its first six terms
    are exact to rounding; then log y! = ``log Gamma(z) - log [(y + 1)(y + 2) ... (y + 8)]``.
    """
    y = np.asarray(y, float)
    z = y + 9.0
    inverse = 1.0 / z
    square = inverse * inverse
    series = np.zeros_like(y)
    for coefficient in STIRLING_SERIES:
        series = series * square + coefficient
    steps = np.ones_like(y)
    for step in range(1, 9):
        steps *= (y + step) / z  # factors of at most 1 do not overflow, even at 1e300
    stirling = (z - 0.5) * np.log(z) - z + 0.5 * LOG_2PI + inverse * series
    return stirling - np.log(steps) - 8.0 * np.log(z)  # log y! (D31)


class HalfStep(NamedTuple):
    """Result of `gamma_half_step`: arrays of the shape and dtype of nu."""

    value: Array  # difference of log Gammas, < 0; about -1 / (4 nu) for large nu
    slope: Array  # derivative of `value` by log nu, > 0


def gamma_half_step(nu: Any) -> HalfStep:
    r"""Return g = log Gamma((nu + 1)/2) - log Gamma(nu/2) - log(nu/2)/2 and dg/d log nu (D41).

    nu is > 0. The difference g is computed directly: subtracting two log Gammas would lose a digit
    for every factor of ten in nu. Ten steps of its recurrence ::

        g(nu) = g(nu + 2) + log[nu (nu + 2) / (nu + 1)^2] / 2

    lead to nu >= 20, where seven terms of Stirling's series, ``1/12 - 1/360 + ...`` of Binet's
    function mu (D31) in the difference mu(nu) - 2 mu(nu/2), are exact to rounding.
    """
    nu = _as_inexact(nu)
    # an axis is added, because .real of a single exact number is no array (NumPy 2.5)
    first = nu[..., None]
    steps = first + np.arange(0, 2 * HALF_STEPS, 2, dtype=first.real.dtype)
    middle = steps + 1.0
    above = steps + 2.0
    inverse = 1.0 / above[..., -1]
    square = inverse * inverse
    series = np.zeros_like(nu)
    slopes = np.zeros_like(nu)  # derivative of `series` by `square`
    for coefficient in HALF_STEP_SERIES:
        slopes = slopes * square + series
        series = series * square + coefficient
    # the logarithms of factors 1 - 1 / middle^2, which for large nu are close to 1
    factors = (steps / middle) * (above / middle)  # at most 1, so without overflow
    logs = np.where(middle.real < LARGE_NU, np.log(factors), log1p(-1.0 / middle**2))
    # the steps of the recurrence are added to the series at their end
    value = 0.5 * np.add.reduce(logs, axis=-1) + inverse * series  # D41
    # half the derivatives of log(factors) by log nu
    factor_slopes = nu[..., None] / steps / middle / above
    # derivative of inverse * series by log nu
    tail = -nu * square * (series + 2.0 * square * slopes)
    return HalfStep(value, np.add.reduce(factor_slopes, axis=-1) + tail)


class Rising(NamedTuple):
    """Result of `rising_factorial`: arrays of the shape to which y and r broadcast."""

    value: Array  # sum over j < y of log(1 + j / r), >= 0
    slope: Array  # derivative of `value` by log r, <= 0


def rising_factorial(y: Array, r: Array) -> Rising:
    r"""Return V = log Gamma(y + r) - log Gamma(r) - y log r, and dV/d log r (D70).

    For counts y >= 0 and r > 0 it is ``log[(1 + 1/r) (1 + 2/r) ... (1 + (y - 1)/r)]``. The
    difference of two log Gammas would lose a digit for every factor of ten in r. Both arguments
    are shifted by `RISING_STEPS`, to a = r + 9 and b = y + a, where Stirling's series with its
    function mu (D31) is exact to rounding ::

        V = (b - 1/2) log(1 + y/a) - y + y log(1 + 9/r) + mu(b) - mu(a)
            - sum over k < 9 of log[1 + y / (r + k)]

    Parameters
    ----------
    y : ndarray
        Counts, as floats or whole numbers.
    r : ndarray
        Positive numbers, which broadcast with `y`.
    """
    a = r + RISING_STEPS
    b = y + a
    of_a, of_b = _stirling_series(a), _stirling_series(b)
    log_ratio = log1p(y / a)
    value = (b - 0.5) * log_ratio - y + y * log1p(RISING_STEPS / r)
    value = value + of_b.value - of_a.value
    slope = log_ratio - (b - 0.5) * y / (a * b) - RISING_STEPS * y / (a * r)
    slope = slope + of_b.slope - of_a.slope
    for step in range(RISING_STEPS):
        low = r + step
        value = value - log1p(y / low)
        slope = slope + y / (low * (low + y))
    return Rising(value, r * slope)  # D70


def _stirling_series(z: Array) -> HalfStep:
    """Return the remainder mu(z) of Stirling's formula for z >= 9, and its derivative by z."""
    inverse = 1.0 / z
    square = inverse * inverse
    series = np.zeros_like(z)
    slopes = np.zeros_like(z)  # derivative of `series` by `square`
    for coefficient in STIRLING_SERIES:
        slopes = slopes * square + series
        series = series * square + coefficient
    return HalfStep(inverse * series, -square * (series + 2.0 * square * slopes))


def _decayed(x: Array, rate: float, out: Array | None = None) -> Array:
    """Return e^(-rate |x|), which cannot overflow, in `out` if given.

    For complex x |x| means x if its real part is positive, else -x.
    """
    if x.dtype.kind == "c":
        e = np.multiply(x, np.where(x.real > 0, -rate, rate), out=out)
    else:
        # np.abs is used for real numbers because np.where over mixed signs is slow
        e = np.multiply(np.abs(x, out=out), -rate, out=out)
    return np.exp(e, out=e)


def sech_squared(x: Array, out: Array | None = None) -> Array:
    """Return tanh'(x) = 1 - tanh(x)^2 = 4 e / (1 + e)^2 with e = e^-2|x| (D10).

    The form with tanh loses all digits from |x| = 19 on, where tanh rounds to 1.

    Parameters
    ----------
    x : ndarray
        Real or complex numbers.
    out : ndarray, optional
        Array that is overwritten by the result and returned; by default a new one.
    """
    e = _decayed(x, 2.0, out)
    square = 1.0 + e
    square *= square
    e *= 4.0
    return np.divide(e, square, out=e)  # 1 - tanh(x)^2 (D10)


def logistic(x: Array) -> tuple[Array, Array]:
    """Return s(x) = 1 / (1 + e^-x) and s'(x) = s (1 - s), from one exponential (K24, D51).

    Both have the shape of `x`.
    """
    s = _decayed(x, 1.0)
    s /= 1.0 + s  # logistic function of -|x|
    # a product with booleans is used because np.where over mixed signs is slow
    shift = (1.0 - 2.0 * s) * (x.real > 0)
    return s + shift, s * (1.0 - s)  # s(x) and its derivative (D51)


def erfc(x: Array) -> Array:
    """Return the complementary error function erfc(x) of each number of `x` (D51).

    It is 2/sqrt(pi) times the integral of e^-t^2 from x to infinity.

    It is computed by the midpoint rule with steps of h = 1/2 for the integral of
    e^-t^2 / (t^2 + x^2) over all t, whose pole at t = ix adds a term. All terms are positive, so
    that no digits cancel.
    """
    # arrays of exact numbers, in proofs, compute their own erfc
    if hasattr(x, "erfc"):
        return x.erfc()
    right = x.real >= 0
    a = np.where(right, x, -x)
    square = a * a
    total = np.zeros_like(a)
    for t in MIDPOINTS:
        term = square + t * t
        total += np.divide(exp(-t * t), term, out=term)
    pole = np.exp(np.where(a.real < 2.0 * pi, -4.0 * pi * a, -np.inf))
    tail = a * np.exp(-square) * total / pi + 2.0 * pole / (1.0 + pole)  # D51: erfc(a)
    return np.where(right, tail, 2.0 - tail)


def logsumexp(x: Any, axis: int = -1, keepdims: bool = False) -> Array:
    """Return ``log(sum(exp(x)))`` along `axis`, without overflow.

    The largest real part is subtracted before the exponentials. If all numbers are -inf the result
    is -inf, not nan.

    Parameters
    ----------
    x : array_like
        Real or complex numbers.
    axis : int
        Axis that is summed over.
    keepdims : bool
        True to keep `axis` with length 1, False to drop it.
    """
    x = _as_inexact(x)
    shift = np.max(x.real, axis=axis, keepdims=True)
    shift = np.where(np.isfinite(shift), shift, np.zeros_like(shift))
    with np.errstate(divide="ignore"):
        total = np.log(np.sum(np.exp(x - shift), axis=axis, keepdims=True)) + shift
    return total if keepdims else np.squeeze(total, axis=axis)


def log_softmax(x: Any, axis: int = -1) -> Array:
    """Return the log probabilities ``x - logsumexp(x)`` along `axis`, in the shape of x.

    The largest logit is subtracted first, so that no digits are lost at a gap of 1e4 between them.

    Parameters
    ----------
    x : array_like
        Logits, real or complex.
    axis : int
        Axis of the classes.
    """
    x = _as_inexact(x)
    shifted = x - np.max(x.real, axis=axis, keepdims=True)
    return shifted - np.log(np.sum(np.exp(shifted), axis=axis, keepdims=True))


def inner(a: Array, b: Array) -> Array:
    """Return the sum of a * b over the last axis, without complex conjugation.

    `np.vecdot` makes one pass over memory, ``(a * b).sum(axis=-1)`` three. But it makes a call
    inside NumPy for each row, so that a single column is multiplied elementwise, which is four
    times as fast.

    Parameters
    ----------
    a, b : ndarray (..., P)
        Arrays of real or complex numbers, whose other axes broadcast.
    """
    if a.shape[-1] == b.shape[-1] == 1:
        return np.multiply(a[..., 0], b[..., 0])
    if a.dtype.kind == "c" or b.dtype.kind == "c":  # np.vecdot would conjugate `a`
        return np.einsum("...p,...p->...", a, b)
    return np.vecdot(a, b)


def sums_of_squares(a: Array) -> Array:
    """Return the sum of squares of each row of the matrix `a`, as a vector."""
    return inner(a, a)


def symmetric(covariance: Array) -> bool:
    """Return whether `covariance` is symmetric to 1e-5 of the product of standard deviations."""
    scale = np.sqrt(np.abs(np.diagonal(covariance)))
    gap = np.abs(covariance - covariance.T)
    return bool((gap <= 1e-5 * scale[:, None] * scale).all())


def columns(array: Array) -> Iterator[tuple[Any, slice]]:
    """Yield indices of blocks of the last axis of `array`, each short enough for the cache."""
    for start in range(0, array.shape[-1], CACHE_BLOCK):
        yield ..., slice(start, start + CACHE_BLOCK)


def add_scaled(into: Array, array: Array, factor: Any) -> None:
    """Add ``array * factor`` to `into`, block by block, so that the product stays in the cache.

    Parameters
    ----------
    into : ndarray (..., P)
        Array that is changed in place.
    array : ndarray (..., P)
        Array to add, times `factor`.
    factor : float or ndarray (..., 1)
        One factor, or one for each row.
    """
    if array.shape[-1] <= CACHE_BLOCK:
        into += array * factor
        return

    def add(half: slice) -> None:
        total, summand = into[..., half], array[..., half]
        for block in columns(summand):
            total[block] += summand[block] * factor

    on_halves(add, array.shape[-1])


def for_outputs(cotangent: Array) -> Array:
    """Return a view of `cotangent` that broadcasts with outputs (samples, rows, units) (D45).

    `cotangent` has one number for each sample, or one for each row of each sample.
    """
    return cotangent[:, None, None] if cotangent.ndim == 1 else cotangent[..., None]


def write_gradient(into: Array, cotangent: Array, slopes: Array) -> None:
    """Write the gradient for learned parameters, such as scales, into the array `into` (D33).

    Parameters
    ----------
    into : ndarray (K,) or (S, K)
        Overwritten by sum_s cotangent_s slopes_s if all samples share the K parameters, or by the
        term of each sample if each has its own.
    cotangent : ndarray (S,) or (S, B)
        Cotangent of each sample, or of each row of each sample (D45).
    slopes : ndarray (S, K) or (S, B, K)
        Derivatives of the outputs by the K parameters, for each sample or each row of it.
    """
    if cotangent.ndim == 2:
        # sum over the rows of each sample
        slopes = np.add.reduce(cotangent[..., None] * slopes, axis=1)  # (S, K)
        into[...] = np.add.reduce(slopes, axis=0) if into.ndim == 1 else slopes
    elif into.ndim == 1:
        into[...] = cotangent @ slopes
    else:
        np.multiply(cotangent[:, None], slopes, out=into)


def standard_normal(rng: np.random.Generator, out: Array) -> Array:
    """Fill the contiguous `out` with independent N(0, 1) numbers and return it (K1, D11).

    Numbers in float64, and short vectors, are drawn by NumPy's ziggurat. Long vectors in float32
    are drawn by the transform of Box and Muller (1958), which NumPy computes with vector
    instructions, three to four times faster: for u uniform on (0, 1] and v on [0, 1) ::

        sqrt(-2 log u) cos(2 pi v)   and   sqrt(-2 log u) sin(2 pi v)

    are two independent N(0, 1) numbers. With the 24-bit u of float32 none exceeds 5.77 in
    size, where N(0, 1) has 8e-9 of its mass.

    Parameters
    ----------
    rng : numpy.random.Generator
    out : ndarray
        Contiguous, of float64 or float32; it is overwritten.
    """
    if out.dtype != np.float32 or out.size < BOX_MULLER_MIN_SIZE:
        return rng.standard_normal(dtype=out.dtype.type, out=out)
    flat, half = out.reshape(-1), out.size // 2
    rng.random(dtype=np.float32, out=flat)

    def transform(pairs: slice) -> None:
        for start in range(pairs.start, pairs.stop, CACHE_BLOCK):
            stop = min(start + CACHE_BLOCK, pairs.stop)
            radius, angle = flat[start:stop], flat[half + start : half + stop]
            # uniform numbers in [0, 1) become numbers in (0, 1], whose logarithm is finite
            np.subtract(1.0, radius, out=radius)
            np.log(radius, out=radius)
            radius *= -2.0  # squared radius -2 log u (D11)
            np.sqrt(radius, out=radius)
            angle *= 2.0 * np.pi
            sine = np.sin(angle)
            np.cos(angle, out=angle)
            angle *= radius
            radius *= sine

    on_halves(transform, half)
    if out.size % 2:
        flat[-1] = rng.standard_normal(dtype=np.float32)
    return out
