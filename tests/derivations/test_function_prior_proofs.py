"""D81 to D83 of derivations/function-priors.md: kernels, heavy tails, correlations."""

from math import factorial

import pytest
import sympy
from algebra import equal, positives, reals
from sympy import Rational, cos, diff, exp, pi, series, sin, sqrt

u, v = reals("u v")
DENSITY = exp(-(u**2) / 2) / sqrt(2 * pi)


def moment(power):
    """Return E u^power for u ~ N(0, 1)."""
    return 0 if power % 2 else factorial(power) // (2 ** (power // 2) * factorial(power // 2))


def mean(polynomial):
    """Return the expectation of a polynomial in independent standard normal u and v."""
    terms = sympy.Poly(sympy.expand(polynomial), u, v).terms()
    return sum(c * moment(i) * moment(j) for (i, j), c in terms)


def relu_moment(power):
    """Return E max(u, 0)^power."""
    return sympy.integrate(u**power * DENSITY, (u, 0, sympy.oo))


@pytest.mark.equation("D81")
def test_the_kernel_of_relu():
    gamma, x = positives("gamma x")
    shape = sin(gamma) + (pi - gamma) * cos(gamma)
    # slope for c = cos(gamma), and the value where it begins
    equal(diff(shape, gamma) / -sin(gamma), pi - gamma)
    equal(shape.subs(gamma, pi), 0)
    equal(shape.subs(gamma, 0) / (2 * pi), relu_moment(2))
    equal(sympy.integrate((pi - x) * sin(x), (x, gamma, pi)), shape)
    # at c = 0 units are independent
    equal(shape.subs(gamma, pi / 2) / (2 * pi), relu_moment(1) ** 2)
    # Price's theorem, for a polynomial h: both sides
    s, t, c = positives("s t c")
    z, w = s * u, t * (c * u + sqrt(1 - c**2) * v)
    slopes = mean((3 * z**2 + 1) * (3 * w**2 + 1))
    equal(diff(mean((z**3 + z) * (w**3 + w)), c), s * t * slopes)
    # two half planes whose normals are gamma apart share the angle pi - gamma
    assert sympy.limit((pi - gamma) / (2 * pi), gamma, 0) == Rational(1, 2)


@pytest.mark.equation("D82")
def test_heavy_tails_of_finite_networks():
    n, m, q, s = positives("H m q s")
    equal(relu_moment(2), Rational(1, 2))
    equal(relu_moment(4), Rational(3, 2))
    for units in (1, 2, 3):  # E (sum a^2)^2 given V = 1, pair by pair
        pairs = sum(
            relu_moment(4) if i == j else relu_moment(2) ** 2
            for i in range(units)
            for j in range(units)
        )
        equal(pairs, (n * (n + 5) / 4).subs(n, units))
    # scaled by V, with its moments, and with the bias
    next_mean = s**2 * (n * m / 2 + 1)
    next_square = s**4 * (n * (n + 5) / 4 * q + n * m + 1)
    equal(next_square.subs({n: 1, m: 1, q: 1}), s**4 * (relu_moment(4) + 2 * relu_moment(2) + 1))
    # without biases the ratio grows by 1 + 5 / H
    ratio = s**4 * n * (n + 5) / 4 * q / (s**2 * n * m / 2) ** 2
    equal(ratio, q / m**2 * (1 + 5 / n))
    equal(sympy.limit(n * 3 * ((1 + 5 / n) ** 7 - 1), n, sympy.oo), 15 * 7)
    equal(3 * next_square / next_mean**2 - 3, 3 * (next_square / next_mean**2 - 1))
    # E f^4 given V: three times its square
    equal(mean((s * u) ** 4), 3 * s**4)


@pytest.mark.equation("D83")
def test_the_map_of_correlations():
    c, gamma = positives("c gamma")
    hermite = [1, u, u**2 - 1, u**3 - 3 * u, u**4 - 6 * u**2 + 3]
    other = [sympy.sympify(h).subs(u, c * u + sqrt(1 - c**2) * v) for h in hermite]
    for j, h in enumerate(hermite):
        for k, g in enumerate(other):
            equal(mean(h * g), (j == k) * factorial(k) * c**k)
    # slope at 1: for a polynomial activation E h'^2 / E h^2, times the variance
    h = 2 + 3 * u + Rational(1, 2) * u**3
    b = [mean(h * e) / sqrt(factorial(k)) for k, e in enumerate(hermite)]
    equal(sum(each**2 for each in b), mean(h**2))
    equal(sum(k * each**2 for k, each in enumerate(b)), mean(diff(h, u) ** 2))
    # ReLU: p_0 = 1 / pi, slope 1 at 1
    equal(relu_moment(1) ** 2 / relu_moment(2), 1 / pi)
    shape = (sin(gamma) + (pi - gamma) * cos(gamma)) / pi
    small = series(1 - shape, gamma, 0, 4).removeO()
    equal(small, gamma**2 / 2 - gamma**3 / (3 * pi))
    # gamma^2 / 2 = delta + O(delta^2): the first two orders
    equal(series(1 - cos(gamma), gamma, 0, 4).removeO(), gamma**2 / 2)
    rate = 2 * sqrt(2) / (3 * pi)
    equal(gamma**3 / (3 * pi), rate * (gamma**2 / 2) ** Rational(3, 2))
    # delta = 4 / (rate l)^2 obeys d delta / dl = -rate delta^(3/2)
    layers = positives("l")
    found = 9 * pi**2 / (2 * layers**2)
    equal(diff(found, layers), -rate * found ** Rational(3, 2))
    equal(found, 4 / (rate * layers) ** 2)
