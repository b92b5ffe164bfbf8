"""Classic examples of numerical analysis: a formula that loses digits, and one that does not.

They are those of N. Higham, *Accuracy and Stability of Numerical Algorithms* (2nd edition, 2002),
of D. Goldberg, *What every computer scientist should know about floating-point arithmetic* (1991),
of P. Blanchard, D. and N. Higham, *Accurately computing the log-sum-exp and softmax functions*
(2021), of the suite of Herbie (`bench/hamming`), which takes them from R. Hamming, *Numerical
Methods for Scientists and Engineers* (1987), and of losses in learning. Each is written from its
formula, with its gradient. A line that ends in the comment "loses" is where digits are lost first.
"""

import inspect
from dataclasses import dataclass
from math import factorial

import numpy as np
from scipy.special import erfc, ndtr

EXAMPLES = []
MODERATE = (1e-9, 1e9)  # sizes whose fourth powers are floats of every format but float16


@dataclass(frozen=True)
class Example:
    """A naive and a careful form of one function, each from theta and data to value and gradient.

    `theta` and `data` are the arguments from which a search starts; at the theta `at` the naive
    form has lost half of the digits of float64, in its value or in a derivative. `cure` is a word
    of the advice that is expected, if there is one. `sizes` are the sizes of numbers other than 0
    between which the careful form does not overflow, `domain` the numbers for which the
    function is meant.
    """

    title: str
    source: str
    naive: object
    careful: object
    theta: np.ndarray
    at: np.ndarray
    data: tuple = ()
    cure: str = ""
    sizes: tuple = (0.0, np.inf)
    domain: tuple = (-np.inf, np.inf)

    @property
    def lines(self):
        """Return the numbers of the lines that lose digits, in this file."""
        lines, first = inspect.getsourcelines(self.naive)
        return {first + i for i, line in enumerate(lines) if line.rstrip().endswith("# loses")}


def example(title, source, at, *data, theta=None, cure="", **limits):
    """Add the functions `naive` and `careful` of a class to the examples."""
    at = np.array(at, float, ndmin=1)
    start = np.linspace(0.5, 1.0, at.size) if theta is None else np.array(theta, float, ndmin=1)

    def add(pair):
        forms = pair.naive, pair.careful
        EXAMPLES.append(Example(title, source, *forms, start, at, data, cure, **limits))
        return pair

    return add


def series(x, *coefficients):
    """Return the polynomial with these coefficients, the constant first, at x."""
    total = 0 * x
    for coefficient in reversed(coefficients):
        total = total * x + coefficient
    return total


# x - sin x = x^3 (1/3! - x^2/5! + ...), and the others of that kind, for |x| < 1
SINE = [(-1) ** k / factorial(2 * k + 3) for k in range(10)]
SINE_SLOPE = [(-1) ** k * (2 * k + 2) / factorial(2 * k + 3) for k in range(10)]  # of sin x / x
SINH = [1 / factorial(2 * k + 3) for k in range(10)]
SINH_SLOPE = [(2 * k + 2) / factorial(2 * k + 3) for k in range(10)]


# --- exponentials and logarithms


@example("e^x - 1", "Higham 1.14.1; Herbie expm1", 1e-9, cure="expm1")
class _:
    def naive(x):
        e = np.exp(x)
        value = e - 1  # loses
        return value.sum(), e

    def careful(x):
        return np.expm1(x).sum(), np.exp(x)


@example("(e^x - 1) / x", "Higham 1.14.1", 1e-9, cure="expm1")
class _:
    def naive(x):
        e = np.exp(x)
        value = (e - 1) / x  # loses
        return value.sum(), (e * x - e + 1) / x**2  # loses

    def careful(x):
        small = np.abs(x) < 1
        terms = series(x, *[(k + 1) / factorial(k + 2) for k in range(20)])
        z, h = np.where(small, 1, x), np.exp(x / 2)  # e^x may overflow
        value = np.where(small, np.expm1(np.where(small, x, 0)) / x, h * (h / z) - 1 / z)
        return value.sum(), np.where(small, terms, h * (h * (1 - 1 / z) / z) + 1 / z / z)


@example("(e^x - 1) / x by Kahan's logarithm", "Higham 1.14.1", 1e-9)
class _:
    def naive(x):
        e = np.exp(x)
        value = (e - 1) / x  # loses
        small = np.abs(x) < 1
        terms = series(x, *[(k + 1) / factorial(k + 2) for k in range(20)])
        divisor = np.where(small, 1, x)
        return value.sum(), np.where(small, terms, (e - (e - 1) / divisor) / divisor)

    def careful(x):
        e = np.exp(x)
        small = np.abs(x) < 1
        value = np.where(small & (e != 1), (e - 1) / np.where(e == 1, 1, np.log(e)), 1)
        z, h = np.where(small, 1, x), np.exp(x / 2)  # e^x may overflow
        value = np.where(small, value, h * (h / z) - 1 / z)
        terms = series(x, *[(k + 1) / factorial(k + 2) for k in range(20)])
        return value.sum(), np.where(small, terms, h * (h * (1 - 1 / z) / z) + 1 / z / z)


@example("log(1 + x)", "Higham 1.14; Goldberg", 1e-9, cure="log1p")
class _:
    def naive(x):
        value = np.log(1 + x)  # loses
        return value.sum(), 1 / (1 + x)

    def careful(x):
        return np.log1p(x).sum(), 1 / (1 + x)


@example("log(1 - p)", "Higham 1.14; Goldberg", 1e-9, cure="log1p")
class _:
    def naive(p):
        value = np.log(1 - p)  # loses
        return value.sum(), -1 / (1 - p)

    def careful(p):
        return np.log1p(-p).sum(), -1 / (1 - p)


@example("log((1 - x) / (1 + x))", "Herbie logq, Hamming 3.4.3", 1e-9)
class _:
    def naive(x):
        ratio = (1 - x) / (1 + x)
        value = np.log(ratio)  # loses
        return value.sum(), -2 / ((1 - x) * (1 + x))

    def careful(x):
        return (np.log1p(-x) - np.log1p(x)).sum(), -2 / ((1 - x) * (1 + x))


@example("log(1 - x) / log(1 + x)", "Herbie qlog, Hamming 3.10", 1e-9, cure="log1p")
class _:
    def naive(x):
        below, above = np.log(1 - x), np.log(1 + x)  # loses
        value = below / above
        slope = -(above / (1 - x) + below / (1 + x)) / above**2  # loses
        return value.sum(), slope

    def careful(x):
        below, above = np.log1p(-x), np.log1p(x)
        slope = -(np.log1p(-x * x) + 2 * x * np.arctanh(x)) / above / above / ((1 - x) * (1 + x))
        return (below / above).sum(), np.where(np.abs(x) < 1e-18, -1, slope)


@example("log(x + 1) - log x", "Herbie 2log, Hamming 3.3.6", 1e9, cure="log1p")
class _:
    def naive(x):
        value = np.log(x + 1) - np.log(x)  # loses
        return value.sum(), 1 / (x + 1) - 1 / x  # loses

    def careful(x):
        large = x > 1
        value = np.where(large, np.log1p(1 / np.where(large, x, 1)), np.log1p(x) - np.log(x))
        return value.sum(), -1 / x / (x + 1)


@example("(n + 1) log(n + 1) - n log n - 1", "Herbie logs, Hamming 3.8", 1e9)
class _:
    def naive(n):
        value = (n + 1) * np.log(n + 1) - n * np.log(n) - 1  # loses
        return value.sum(), np.log(n + 1) - np.log(n)  # loses

    def careful(n):
        large = n > 1
        ratio = np.where(large, np.log1p(1 / np.where(large, n, 1)), np.log1p(n) - np.log(n))
        return (np.log1p(n) + (n * ratio - 1)).sum(), ratio


@example("e^x - 2 + e^-x", "Herbie exp2, Hamming 3.3.7", 1e-5)
class _:
    def naive(x):
        value = np.exp(x) - 2 + np.exp(-x)  # loses
        return value.sum(), np.exp(x) - np.exp(-x)  # loses

    def careful(x):
        return (2 * np.sinh(x / 2) * (2 * np.sinh(x / 2))).sum(), 2 * np.sinh(x)


@example("e^x / (e^x - 1)", "Herbie expq2, Hamming 3.11", 800.0, cure="expm1")
class _:
    def naive(x):
        e = np.exp(x)
        value = e / (e - 1)  # loses
        return value.sum(), -e / (e - 1) ** 2  # loses

    def careful(x):
        h = np.sinh(x / 2)
        return (-1 / np.expm1(-x)).sum(), -0.5 / h * (0.5 / h)


@example("eps (e^((a+b) eps) - 1) / ((e^(a eps) - 1) (e^(b eps) - 1))",
         "Herbie expq3, Hamming 3.4.2", [1e-9, 2e-9], 1.0, cure="expm1",
         sizes=(1e-18, 1e18))  # fmt: skip
class _:
    def naive(theta, eps):
        a, b = theta
        first, second = np.exp(a * eps), np.exp(b * eps)
        below = (first - 1) * (second - 1)  # loses
        value = eps * (np.exp((a + b) * eps) - 1) / below  # loses
        d_a = -(eps**2) * first / (first - 1) ** 2  # loses
        d_b = -(eps**2) * second / (second - 1) ** 2  # loses
        return value, np.array([d_a, d_b])

    def careful(theta, eps):
        half = np.sinh(theta * eps / 2)
        low, high = np.min(theta), np.max(theta)
        value = eps * (1 / np.expm1(high * eps) - 1 / np.expm1(-low * eps))
        return value, -(eps / 2 / half) * (eps / 2 / half)


@example("sqrt((e^2x - 1) / (e^x - 1))", "Herbie sqrtexp, Hamming 3.4.4", 1.7e-9)
class _:
    def naive(x):
        e = np.exp(x)
        ratio = (np.exp(2 * x) - 1) / (e - 1)  # loses
        value = np.sqrt(ratio)
        return value.sum(), e / (2 * value)

    def careful(x):
        h = np.exp(x / 2)
        value = h * np.sqrt(1 + np.exp(-x))
        right = np.sqrt(1 + np.exp(x))
        value = np.where(x > 0, value, right)
        return value.sum(), h * (0.5 * h / value)


@example("sinh x", "Kahan", 1e-9)
class _:
    def naive(x):
        e = np.exp(x)
        value = (e - 1 / e) / 2  # loses
        return value.sum(), (e + 1 / e) / 2

    def careful(x):
        return np.sinh(x).sum(), np.cosh(x)


@example("tanh x", "Kahan", 1e-9)
class _:
    def naive(x):
        e = np.exp(2 * x)
        value = (e - 1) / (e + 1)  # loses
        return value.sum(), 1 - value**2  # loses

    def careful(x):
        c = np.cosh(x)
        return np.tanh(x).sum(), 1 / c / c


@example("asinh x", "Kahan", -1e9)
class _:
    def naive(x):
        root = np.sqrt(x * x + 1)
        value = np.log(x + root)  # loses
        return value.sum(), 1 / root

    def careful(x):
        return np.arcsinh(x).sum(), 1 / np.hypot(x, 1)


@example("atanh x", "Kahan", 1e-9, cure="arctanh(x)")
class _:
    def naive(x):
        value = np.log((1 + x) / (1 - x)) / 2  # loses
        return value.sum(), 1 / ((1 - x) * (1 + x))

    def careful(x):
        return np.arctanh(x).sum(), 1 / ((1 - x) * (1 + x))


@example("coth x - 1 / x", "physics: Langevin", 1e-5)
class _:
    def naive(x):
        value = 1 / np.tanh(x) - 1 / x  # loses
        return value.sum(), 1 / x**2 - 1 / np.sinh(x) ** 2  # loses

    def careful(x):
        small = np.abs(x) < 1
        s = np.where(small, x, 1)
        h = np.where(small, 1, x)
        square = s * s
        ratio = 1 + square * series(square, *SINH)  # sinh x / x
        near = s * series(square, *SINH_SLOPE) / ratio
        far = 1 / np.tanh(h) - 1 / h
        slope_near = series(square, *SINH) * (1 + ratio) / ratio**2
        slope_far = (1 / h - 1 / np.sinh(h)) * (1 / h + 1 / np.sinh(h))
        return np.where(small, near, far).sum(), np.where(small, slope_near, slope_far)


@example("x - log(1 + x)", "densities: KL of two scales", 1e-9, theta=0.75)
class _:
    def naive(x):
        value = x - np.log1p(x)  # loses
        return value.sum(), x / (1 + x)

    def careful(x):
        small = np.abs(x) < 0.5
        z = np.where(small, x, 0)
        s = z / (2 + z)
        near = s * (z - 2 * s**2 * series(s**2, *[1 / (2 * k + 3) for k in range(16)]))
        return np.where(small, near, x - np.log1p(x)).sum(), x / (1 + x)


@example("e^x - 1 - x", "finance: convexity", 1e-9)
class _:
    def naive(x):
        value = np.expm1(x) - x  # loses
        return value.sum(), np.expm1(x)

    def careful(x):
        z = np.where(np.abs(x) < 1, x, 0)
        near = z * z * series(z, *[1 / factorial(k + 2) for k in range(20)])
        return np.where(np.abs(x) < 1, near, np.expm1(x) - x).sum(), np.expm1(x)


@example("compound interest (1 + r/n)^n", "Higham 1.11; Goldberg", 1.0, 10**10)
class _:
    def naive(r, n):
        growth = 1 + r / n  # loses
        return (growth**n).sum(), growth ** (n - 1)  # loses

    def careful(r, n):
        log_growth = np.log1p(r / n)
        return np.exp(n * log_growth).sum(), np.exp((n - 1) * log_growth)


@example("e^-x by its series", "Higham ch. 4", 25.0, theta=2.0)
class _:
    def naive(x):
        total = term = 1 + 0 * x
        for k in range(1, 150):
            term = -term * x / k
            total = total + term  # loses
        return total.sum(), -total

    def careful(x):
        return np.exp(-x).sum(), -np.exp(-x)


# --- roots and fractions


@example("sqrt(x + 1) - sqrt x", "Herbie 2sqrt, Hamming 3.1", 1e9)
class _:
    def naive(x):
        value = np.sqrt(x + 1) - np.sqrt(x)  # loses
        return value.sum(), 0.5 / np.sqrt(x + 1) - 0.5 / np.sqrt(x)  # loses

    def careful(x):
        root, above = np.sqrt(x), np.sqrt(x + 1)
        value = 1 / (above + root)
        return value.sum(), -0.5 * value / root / above


@example("1 / sqrt x - 1 / sqrt(x + 1)", "Herbie 2isqrt, Hamming 3.6", 1e9)
class _:
    def naive(x):
        value = 1 / np.sqrt(x) - 1 / np.sqrt(x + 1)  # loses
        return value.sum(), 0.5 / (x + 1) ** 1.5 - 0.5 / x**1.5  # loses

    def careful(x):
        first, second = 1 / np.sqrt(x), 1 / np.sqrt(x + 1)
        value = first * second / (np.sqrt(x) + np.sqrt(x + 1))
        slope = -0.5 * value * (first * first + first * second + second * second)
        return value.sum(), slope


@example("cbrt(x + 1) - cbrt x", "Herbie 2cbrt, Hamming 3.3.4", 1e9)
class _:
    def naive(x):
        value = np.cbrt(x + 1) - np.cbrt(x)  # loses
        return value.sum(), (np.cbrt(x + 1) ** -2 - np.cbrt(x) ** -2) / 3  # loses

    def careful(x):
        first, second = np.cbrt(x + 1), np.cbrt(x)
        value = 1 / (first * first + first * second + second * second)
        return value.sum(), -value * (first + second) / 3 / first**2 / second**2


@example("1 / (x + 1) - 1 / x", "Herbie 2frac, Hamming 3.3.1", 1e9)
class _:
    def naive(x):
        value = 1 / (x + 1) - 1 / x  # loses
        return value.sum(), 1 / x**2 - 1 / (x + 1) ** 2  # loses

    def careful(x):
        value = -1 / x / (x + 1)
        return value.sum(), -(2 * x + 1) / x / (x + 1) * value


@example("1 / (x + 1) - 2 / x + 1 / (x - 1)", "Herbie 3frac, Hamming 3.3.3", 1e6)
class _:
    def naive(x):
        value = 1 / (x + 1) - 2 / x + 1 / (x - 1)  # loses
        return value.sum(), 2 / x**2 - 1 / (x + 1) ** 2 - 1 / (x - 1) ** 2  # loses

    def careful(x):
        value = 2 / x / (x - 1) / (x + 1)
        return value.sum(), -value * (3 * x - 1 / x) / (x - 1) / (x + 1)


@example("sqrt(1 + x) - 1", "Higham ch. 1", 1e-9)
class _:
    def naive(x):
        root = np.sqrt(1 + x)
        value = root - 1  # loses
        return value.sum(), 0.5 / root

    def careful(x):
        root = np.sqrt(1 + x)
        return (x / (root + 1)).sum(), 0.5 / root


@example("sqrt(x^2 + y^2)", "Higham ch. 27", [3e200, 4e200], cure="hypot")
class _:
    def naive(theta):
        x, y = theta
        value = np.sqrt(x**2 + y**2)  # loses
        return value, theta / value

    def careful(theta):
        value = np.hypot(theta[0], theta[1])
        return value, theta / np.where(value > 0, value, 1)  # 0 at the kink


@example("sqrt(x^2 + y^2) - x", "Higham ch. 1", [1e8, 1.0])
class _:
    def naive(theta):
        x, y = theta
        distance = np.hypot(x, y)
        value = distance - x  # loses
        return value, np.array([x / distance - 1, y / distance])  # loses

    def careful(theta):
        x, y = theta
        distance = np.hypot(x, y)
        value = np.where(x > 0, y * (y / (distance + np.abs(x))), distance - x)
        distance = np.where(distance > 0, distance, 1)  # slopes of 0 at the kink
        return value, np.array([-value / distance, y / distance])


@example("roots of a quadratic, +", "Higham 1.8; Herbie quadp", [1.0, 1e8, 1.0],
         theta=[1.0, 3.0, 1.0], sizes=MODERATE)  # fmt: skip
class _:
    def naive(theta):
        a, b, c = theta
        d = np.sqrt(b * b - 4 * a * c)
        x = (-b + d) / (2 * a)  # loses
        return x, -np.array([x * x, x, 1]) / d

    def careful(theta):
        size = np.max(np.abs(theta))
        a, b, c = theta / size
        d = np.sqrt(b * b - 4 * a * c)
        x = 2 * c / (-b - d) if b > 0 else (-b + d) / (2 * a)
        return x, -np.array([x * x, x, 1]) / d / size


@example("roots of a quadratic, -", "Higham 1.8; Herbie quadm", [1.0, -1e8, 1.0],
         theta=[1.0, 3.0, 1.0], sizes=MODERATE)  # fmt: skip
class _:
    def naive(theta):
        a, b, c = theta
        d = np.sqrt(b * b - 4 * a * c)
        x = (-b - d) / (2 * a)  # loses
        return x, np.array([x * x, x, 1]) / d

    def careful(theta):
        size = np.max(np.abs(theta))
        a, b, c = theta / size
        d = np.sqrt(b * b - 4 * a * c)
        x = 2 * c / (-b + d) if b < 0 else (-b - d) / (2 * a)
        return x, np.array([x * x, x, 1]) / d / size


@example("roots of a x^2 + 2 b x + c", "Herbie quad2p, Hamming 3.2.1", [1.0, 1e8, 1.0],
         theta=[1.0, 2.0, 1.0], sizes=MODERATE)  # fmt: skip
class _:
    def naive(theta):
        a, b, c = theta
        d = np.sqrt(b * b - a * c)
        x = (-b + d) / a  # loses
        return x, -np.array([x * x / 2, x, 0.5]) / d

    def careful(theta):
        size = np.max(np.abs(theta))
        a, b, c = theta / size
        d = np.sqrt(b * b - a * c)
        x = c / (-b - d) if b > 0 else (-b + d) / a
        return x, -np.array([x * x / 2, x, 0.5]) / d / size


@example("(x + 1)^2 - x^2", "Goldberg", 1.3e10 + 0.5, cure="((x + 1) - x) * ((x + 1) + x)")
class _:
    def naive(x):
        value = (x + 1) ** 2 - x**2  # loses
        return value.sum(), 2 * (x + 1) - 2 * x  # loses

    def careful(x):
        return (2 * x + 1).sum(), 2 + 0 * x


@example("Lorentz factor minus 1", "physics", 1e-5)
class _:
    def naive(v):
        root = np.sqrt(1 - v**2)
        value = 1 / root - 1  # loses
        return value.sum(), v / root**3

    def careful(v):
        root = np.sqrt((1 - v) * (1 + v))
        return (v * v / (root * (1 + root))).sum(), v / root**3


@example("(x - 1)^3 multiplied out", "Higham ch. 5", 1.0 + 1e-5)
class _:
    def naive(x):
        value = x**3 - 3 * x**2 + 3 * x - 1  # loses
        return value.sum(), 3 * x**2 - 6 * x + 3  # loses

    def careful(x):
        return ((x - 1) ** 3).sum(), 3 * (x - 1) ** 2


@example("geometric series (r^5 - 1) / (r - 1)", "finance: annuities", 1.0 + 1e-9)
class _:
    def naive(r):
        value = (r**5 - 1) / (r - 1)  # loses
        return value.sum(), (5 * r**4 - value) / (r - 1)  # loses

    def careful(r):
        return series(r, 1, 1, 1, 1, 1).sum(), series(r, 1, 2, 3, 4)


@example("area of a triangle by Heron", "Higham ch. 2; Goldberg", [1e8, 1e8, 1.1],
         theta=[3.0, 4.0, 5.0], sizes=MODERATE, domain=(0.0, np.inf))  # fmt: skip
class _:
    def naive(theta):
        a, b, c = theta
        s = (a + b + c) / 2
        area = np.sqrt(s * (s - a) * (s - b) * (s - c))  # loses
        slopes = [a * (b**2 + c**2 - a**2), b * (a**2 + c**2 - b**2), c * (a**2 + b**2 - c**2)]
        return area, np.array(slopes) / (8 * area)

    def careful(theta):
        size = np.max(theta)
        c, b, a = np.sort(theta) / size
        area = np.sqrt((a + (b + c)) * (c - (a - b)) * (c + (a - b)) * (a + (b - c))) / 4
        a, b, c = theta / size
        slopes = [a * (c**2 - (a - b) * (a + b)), b * (c**2 - (b - a) * (b + a)),
                  c * (a**2 - (c - b) * (c + b))]  # fmt: skip
        return area * size * size, np.array(slopes) / (8 * area) * size


@example("real part of (a + ib) / (c + id)", "Higham ch. 27; Smith", [1e200, 1e200, 1e200, 2e200])
class _:
    def naive(theta):
        a, b, c, d = theta
        size = c**2 + d**2  # loses
        value = (a * c + b * d) / size
        slope = np.array([c, d, a - 2 * c * value, b - 2 * d * value])
        return value, slope / size

    def careful(theta):
        def divided(a, b):
            if abs(c) >= abs(d):
                ratio = d / c
                size = c + d * ratio
                return (a + b * ratio) / size, (b - a * ratio) / size
            ratio = c / d
            size = c * ratio + d
            return (a * ratio + b) / size, (b * ratio - a) / size

        a, b, c, d = theta
        quotient = divided(a, b)
        inverse = divided(1.0, 0.0)
        twice = divided(*quotient)
        return quotient[0], np.array([inverse[0], -inverse[1], -twice[0], twice[1]])


@example("elimination without pivoting", "Higham 1.12.1", [1e-9, 1.0, 1.0, 2.0],
         np.array([1.0, 3.0]), theta=[0.5, 1.0, 1.0, 2.5], sizes=MODERATE)  # fmt: skip
class _:
    def naive(theta, right):
        a, b, c, d = theta
        factor = c / a
        pivot = d - factor * b
        second = (right[1] - factor * right[0]) / pivot
        first = (right[0] - b * second) / a  # loses
        row = np.array([d, -b]) / (a * d - b * c)  # first row of the inverse
        return first, -np.array([row[0] * first, row[0] * second, row[1] * first, row[1] * second])

    def careful(theta, right):
        a, b, c, d = theta
        p, q = right
        if abs(c) > abs(a):
            a, b, c, d, p, q = c, d, a, b, q, p
        factor = c / a
        pivot = d - factor * b
        second = (q - factor * p) / pivot
        first = (p - b * second) / a
        a, b, c, d = theta
        row = np.array([d, -b]) / (a * d - b * c)
        return first, -np.array([row[0] * first, row[0] * second, row[1] * first, row[1] * second])


# --- trigonometry


@example("1 - cos x", "Higham 1.7", 1e-5)
class _:
    def naive(x):
        value = 1 - np.cos(x)  # loses
        return value.sum(), np.sin(x)

    def careful(x):
        return (2 * np.sin(x / 2) * np.sin(x / 2)).sum(), np.sin(x)


@example("(1 - cos x) / x^2", "Higham 1.7; Herbie cos2, Hamming 3.4.1", 1e-5)
class _:
    def naive(x):
        value = (1 - np.cos(x)) / x**2  # loses
        return value.sum(), np.sin(x) / x**2 - 2 * value / x  # loses

    def careful(x):
        h = x / 2
        s = np.sin(h) / h
        small = np.abs(h) < 1
        z = np.where(small, h, 1)
        near = -z * series(z * z, *SINE_SLOPE)
        far = (np.cos(h) - s) / np.where(small, 1, h)
        return (s * s / 2).sum(), s * np.where(small, near, far) / 2


@example("(1 - cos x) / sin x", "Herbie tanhf, Hamming 3.4", 1e-5)
class _:
    def naive(x):
        value = (1 - np.cos(x)) / np.sin(x)  # loses
        return value.sum(), value / np.sin(x)

    def careful(x):
        return np.tan(x / 2).sum(), 0.5 / np.cos(x / 2) ** 2


@example("x - sin x", "Kepler's equation", 1e-5)
class _:
    def naive(x):
        value = x - np.sin(x)  # loses
        return value.sum(), 1 - np.cos(x)  # loses

    def careful(x):
        z = np.where(np.abs(x) < 1, x, 0)
        near = z * z * z * series(z * z, *SINE)
        value = np.where(np.abs(x) < 1, near, x - np.sin(x))
        return value.sum(), 2 * np.sin(x / 2) * np.sin(x / 2)


@example("tan x - sin x", "Higham 1.7", 1e-5)
class _:
    def naive(x):
        value = np.tan(x) - np.sin(x)  # loses
        return value.sum(), 1 / np.cos(x) ** 2 - np.cos(x)  # loses

    def careful(x):
        c, fall = np.cos(x), 2 * np.sin(x / 2) * np.sin(x / 2)
        return (np.tan(x) * fall).sum(), fall * (1 + c + c * c) / (c * c)


@example("1 / x - 1 / tan x", "Herbie invcot, Hamming 3.9", 1e-5)
class _:
    def naive(x):
        value = 1 / x - 1 / np.tan(x)  # loses
        return value.sum(), 1 / np.sin(x) ** 2 - 1 / x**2  # loses

    def careful(x):
        small = np.abs(x) < 1
        z = np.where(small, x, 1)
        h = np.where(small, 1, x)
        square = z * z
        ratio = 1 - square * series(square, *SINE)  # sin x / x
        near = z * series(square, *SINE_SLOPE) / ratio
        slope_near = series(square, *SINE) * (1 + ratio) / ratio**2
        slope_far = (1 / np.sin(h) - 1 / h) * (1 / np.sin(h) + 1 / h)
        value = np.where(small, near, 1 / h - 1 / np.tan(h))
        return value.sum(), np.where(small, slope_near, slope_far)


@example("sin(x + e) - sin x", "Herbie 2sin, Hamming 3.3", [1.0, 1e-9])
class _:
    def naive(theta):
        x, e = theta
        value = np.sin(x + e) - np.sin(x)  # loses
        return value, np.array([np.cos(x + e) - np.cos(x), np.cos(x + e)])  # loses

    def careful(theta):
        x, e = theta
        s = 2 * np.sin(e / 2)
        return s * np.cos(x + e / 2), np.array([-s * np.sin(x + e / 2), np.cos(x + e)])


@example("cos(x + e) - cos x", "Herbie 2cos, Hamming 3.3.5", [1.0, 1e-9])
class _:
    def naive(theta):
        x, e = theta
        value = np.cos(x + e) - np.cos(x)  # loses
        return value, np.array([np.sin(x) - np.sin(x + e), -np.sin(x + e)])  # loses

    def careful(theta):
        x, e = theta
        s = 2 * np.sin(e / 2)
        return -s * np.sin(x + e / 2), np.array([-s * np.cos(x + e / 2), -np.sin(x + e)])


@example("tan(x + e) - tan x", "Herbie 2tan, Hamming 3.3.2", [1.0, 1e-9])
class _:
    def naive(theta):
        x, e = theta
        value = np.tan(x + e) - np.tan(x)  # loses
        above = 1 / np.cos(x + e) ** 2
        return value, np.array([above - 1 / np.cos(x) ** 2, above])  # loses

    def careful(theta):
        x, e = theta
        value = np.sin(e) / (np.cos(x) * np.cos(x + e))
        return value, np.array([value * (np.tan(x + e) + np.tan(x)), 1 / np.cos(x + e) ** 2])


@example("arctan(x + 1) - arctan x", "Herbie 2atan, Hamming 3.5", 1e6)
class _:
    def naive(x):
        value = np.arctan(x + 1) - np.arctan(x)  # loses
        return value.sum(), 1 / (1 + (x + 1) ** 2) - 1 / (1 + x**2)  # loses

    def careful(x):
        slope = -(2 * x + 1) / (1 + (x + 1) ** 2) / (1 + x**2)
        return np.arctan(1 / (1 + x * (x + 1))).sum(), slope


@example("(x - sin x) / (x - tan x)", "Herbie sintan, Hamming 3.4.5", 1e-5)
class _:
    def naive(x):
        above, below = x - np.sin(x), x - np.tan(x)  # loses
        value = above / below
        return value.sum(), (1 - np.cos(x) + value * np.tan(x) ** 2) / below

    def careful(x):
        small = np.abs(x) < 1
        z = np.where(small, x, 0.5)
        square = z * z
        a, b = series(square, *SINE), series(square, *SINE_SLOPE)
        d_a = series(square, *[k * SINE[k] for k in range(1, 10)])
        d_b = series(square, *[k * SINE_SLOPE[k] for k in range(1, 10)])
        near = -np.cos(z) * a / b
        slope_near = np.sin(z) * a / b - 2 * z * np.cos(z) * (d_a * b - a * d_b) / b**2
        h = np.where(small, 1, x)
        far = (h - np.sin(h)) / (h - np.tan(h))
        slope_far = (1 - np.cos(h) + far * np.tan(h) ** 2) / (h - np.tan(h))
        return np.where(small, near, far).sum(), np.where(small, slope_near, slope_far)


# --- statistics and learning


@example(
    "variance in one pass", "Higham 1.9", [1e8, 1e8 + 1, 1e8 + 2], cure="(x - np.mean(x)) ** 2"
)
class _:
    def naive(x):
        mean = x.mean()
        value = (x * x).mean() - mean**2  # loses
        return value, 2 * (x - mean) / len(x)

    def careful(x):
        centred = x - x.mean()
        return (centred * centred).mean(), 2 * centred / len(x)


@example("covariance in one pass", "Higham 1.9", [1e8, 1e8 + 1, 1e8, 1e8 + 3])
class _:
    def naive(theta):
        x, y = theta[:2], theta[2:]
        value = (x * y).mean() - x.mean() * y.mean()  # loses
        return value, np.concatenate([y - y.mean(), x - x.mean()]) / len(x)

    def careful(theta):
        x, y = theta[:2], theta[2:]
        x = x - x.mean()
        y = y - y.mean()
        return (x * y).mean(), np.concatenate([y, x]) / len(x)


@example("squared distance from inner products", "learning", [1e8, 1e8 + 1],
         np.array([0.5, 0.25]))  # fmt: skip
class _:
    def naive(x, shift):
        y = x + shift
        value = x @ x + y @ y - 2 * (x @ y)  # loses
        return value, 0 * x

    def careful(x, shift):
        return shift @ shift, 0 * x


@example(
    "log of a sum of exponentials", "Blanchard, Higham & Higham", [800.0, 801.0], cure="np.max(x)"
)
class _:
    def naive(x):
        e = np.exp(x)  # loses
        total = e.sum()
        return np.log(total), e / total

    def careful(x):
        top = x.max()
        e = np.exp(x - top)
        return top + np.log(e.sum()), e / e.sum()


@example("softmax", "Blanchard, Higham & Higham", [800.0, 801.0], cure="np.max(x)")
class _:
    def naive(x):
        e = np.exp(x)  # loses
        p = e / e.sum()
        return p[0], p[0] * (np.array([1.0, 0.0]) - p)

    def careful(x):
        e = np.exp(x - x.max())
        p = e / e.sum()
        return p[0], p[0] * p[1] * np.array([1.0, -1.0])


@example(
    "cross entropy from probabilities", "Blanchard, Higham & Higham", [-800.0, 1.0], cure="log"
)
class _:
    def naive(x):
        e = np.exp(x - x.max())
        p = e / e.sum()
        value = -np.log(p[0])  # loses
        return value, p - np.array([1.0, 0.0])  # loses

    def careful(x):
        gap = x[1] - x[0]
        e = np.exp(-np.abs(gap))
        p = np.where(gap > 0, 1, e) / (1 + e)
        return np.log1p(e) + np.maximum(gap, 0), p * np.array([-1.0, 1.0])


@example("softplus", "learning", 800.0, cure="np.logaddexp(0")
class _:
    def naive(x):
        e = np.exp(x)
        value = np.log(1 + e)  # loses
        return value.sum(), e / (1 + e)  # loses

    def careful(x):
        e = np.exp(-np.abs(x))
        return (np.maximum(x, 0) + np.log1p(e)).sum(), np.where(x > 0, 1, e) / (1 + e)


@example("one minus a sigmoid", "learning", 30.0, cure="1 / (1 + np.exp(x))")
class _:
    def naive(x):
        p = 1 / (1 + np.exp(-x))
        value = 1 - p  # loses
        return value.sum(), -p * value

    def careful(x):
        e = np.exp(-np.abs(x))
        return (np.where(x > 0, e, 1) / (1 + e)).sum(), -e / (1 + e) / (1 + e)


@example("log loss of a probability", "learning", 40.0)
class _:
    def naive(x):
        p = 1 / (1 + np.exp(-x))
        value = -np.log(1 - p)  # loses
        return value.sum(), p

    def careful(x):
        e = np.exp(-np.abs(x))
        return (np.maximum(x, 0) + np.log1p(e)).sum(), np.where(x > 0, 1, e) / (1 + e)


@example("entropy of a coin", "learning", 1e-12, cure="log1p")
class _:
    def naive(p):
        value = -p * np.log(p) - (1 - p) * np.log(1 - p)  # loses
        return value.sum(), np.log(1 - p) - np.log(p)

    def careful(p):
        q = 1 - p
        value = -p * np.log(p) - q * np.log1p(-p)
        return value.sum(), np.log1p(-p) - np.log(p)


@example("log cosh x", "learning", 800.0)
class _:
    def naive(x):
        value = np.log(np.cosh(x))  # loses
        return value.sum(), np.tanh(x)

    def careful(x):
        z = np.where(np.abs(x) < 1, x, 0)
        half = np.sinh(z / 2)
        near = np.log1p(2 * half * half)
        far = np.abs(x) + np.log1p(np.exp(-2 * np.abs(x))) - np.log(2.0)
        return np.where(np.abs(x) < 1, near, far).sum(), np.tanh(x)


@example(
    "Student's t with many degrees of freedom", "densities", 1.0, 1e12, cure="log1p", sizes=MODERATE
)
class _:
    def naive(z, nu):
        value = (nu + 1) / 2 * np.log(1 + z**2 / nu)  # loses
        return value.sum(), (nu + 1) * z / (nu + z**2)

    def careful(z, nu):
        ratio = z / nu
        return ((nu + 1) / 2 * np.log1p(ratio * z)).sum(), (nu + 1) * ratio / (1 + ratio * z)


@example("tail of the normal, 1 - Phi(x)", "densities", 8.0)
class _:
    def naive(x):
        value = 1 - ndtr(x)  # loses
        return value.sum(), -np.exp(-x * x / 2) / np.sqrt(2 * np.pi)

    def careful(x):
        value = erfc(x / np.sqrt(2)) / 2
        return value.sum(), -np.exp(-x * x / 2) / np.sqrt(2 * np.pi)


# --- recurrences


@example("Muller's recurrence", "Kahan; Higham ch. 1 has a relative", 1.0)
class _:
    def naive(scale):
        first, second = 4.0 + 0 * scale, 4.25 + 0 * scale
        for _ in range(25):
            first, second = second, 108 - (815 - 1500 / first) / second  # loses
        return (scale * second).sum(), second

    def careful(scale):
        ratio = 0.6**26 + 0 * scale
        second = (5 + 3 * ratio) / (1 + ratio)
        return (scale * second).sum(), second


@example("the integrals of x^n e^(x - 1)", "Forsythe, Malcolm and Moler", 1.0)
class _:
    def naive(scale):
        integral = 1 - np.exp(0 * scale - 1)
        for n in range(1, 21):
            integral = 1 - n * integral  # loses
        return (scale * integral).sum(), integral

    def careful(scale):
        integral = 0 * scale
        for n in range(45, 20, -1):
            integral = (1 - integral) / n
        return (scale * integral).sum(), integral


@example("a continued fraction by its recurrence", "Higham ch. 26", 1e200)
class _:
    def naive(x):
        above, below = x**2 + 1, x
        value = (above * x + below) / above  # loses
        return value.sum(), 1 + (1 - x**2) / above**2  # loses

    def careful(x):
        inner = 1 / (x + 1 / x)
        return (x + inner).sum(), 1 + (inner / x - inner * x) * (inner / x)


# --- ill-conditioned, and computed as well as can be: the rounding of theta loses as much

CONDITIONED = []


def conditioned(title, theta, *data, domain=(-np.inf, np.inf)):
    """Add a function, that loses no more than the rounding of its theta does, to `CONDITIONED`."""
    theta = np.array(theta, float, ndmin=1)

    def add(function):
        CONDITIONED.append((title, function, theta, data, domain))
        return function

    return add


@conditioned("log x near 1", 1.0 + 1e-9)
def _(x):
    return np.log(x).sum(), 1 / x


@conditioned("sin x far from 0", 1e9)
def _(x):
    return np.sin(x).sum(), np.cos(x)


@conditioned("tan x near pi / 2", 1.5707963)
def _(x):
    return np.tan(x).sum(), 1 / np.cos(x) ** 2


@conditioned("e^x far from 0", 600.0)
def _(x):
    return np.exp(x).sum(), np.exp(x)


@conditioned("difference of two inputs", [1.0 + 1e-9, 1.0])
def _(theta):
    return theta[0] - theta[1], np.array([1.0, -1.0])


@conditioned("sum of numbers that cancel", [1e9, 0.5, -1e9 - 0.25])
def _(theta):
    return theta.sum(), np.ones_like(theta)


@conditioned("inner product that cancels", [1e5, 1.0], np.array([1e-5, -1.0 + 1e-9]))
def _(theta, x):
    return theta @ x, 1 * x


@conditioned("1 / (1 - x) near 1", 1.0 - 1e-9)
def _(x):
    gap = 1 - x
    return (1 / gap).sum(), 1 / gap**2


@conditioned("log odds near 1/2", 0.5 + 1e-9)
def _(p):
    return (np.log(p) - np.log1p(-p)).sum(), 1 / (p * (1 - p))


@conditioned("(x - 1)^3 near 1", 1.0 + 1e-5)
def _(x):
    return ((x - 1) ** 3).sum(), 3 * (x - 1) ** 2


@conditioned("Muller's recurrence from its start", [4.0, 4.25], domain=(3.0, 5.0))
def _(theta):
    first, second = theta
    d_first, d_second = np.array([1.0, 0.0]), np.array([0.0, 1.0])
    for _ in range(8):
        inner = 815 - 1500 / first
        slope = inner / second**2 * d_second - 1500 / first**2 / second * d_first
        first, second = second, 108 - inner / second
        d_first, d_second = d_second, slope
    return second, d_second


@conditioned("distance of two points, relative to the origin far away", [1e8, 1e8 + 1])
def _(theta):
    gap = theta[1] - theta[0]
    return gap * gap, 2 * gap * np.array([-1.0, 1.0])


@conditioned("x^2 - y^2 of rounded x and y", [1.37, 1.37 + 1.1e-10], domain=(-1e9, 1e9))
def _(theta):
    x, y = theta
    return x**2 - y**2, np.array([2 * x, -2 * y])
