"""Microcanonical Langevin by algebra: D48, D49 and D50 of derivations/microcanonical.md."""

import numpy as np
import pytest
import sympy
from algebra import (
    assign,
    equal,
    expectation,
    floats,
    off_by,
    positives,
    proved_equal,
    reals,
    ships,
)
from sympy import Integer, Matrix, Rational, cosh, diff, erf, exp, log, sinh, sqrt, tanh

from bbb_numpy.sampling.mcmc import Phase
from bbb_numpy.sampling.mcmc.metrics import identity
from bbb_numpy.sampling.mcmc.microcanonical import bias, energy_variance, isokinetic, kick
from exactgrad import prove_same


def rational_direction(size, letters):
    """Return a general unit vector (size) as rational functions of `letters`."""
    direction, rest = [], Integer(1)
    for letter in letters[: size - 1]:
        direction.append(rest * (1 - letter**2) / (1 + letter**2))
        rest = rest * 2 * letter / (1 + letter**2)
    return Matrix([*direction, rest])


@pytest.mark.equation("D48")
@pytest.mark.parametrize("size", [2, 3, 4])
def test_the_motion_of_constant_speed_keeps_the_density_times_uniform_directions(size):
    """div(pi F) / pi = u.g + div_r F_r = 0, with momenta of any length |r|, which F keeps."""
    r, g = Matrix(reals(f"r:{size}")), Matrix(reals(f"g:{size}"))
    length = sqrt(sum(each**2 for each in r))
    u = r / length
    turning = length * (g - u * (u.T * g)[0]) / (size - 1)
    equal((u.T * turning)[0], 0)  # the length is kept
    divergence = sum(diff(turning[i], r[i]) for i in range(size))
    equal(divergence, -(u.T * g)[0])
    # with d in place of d - 1 another density would be kept
    off_by(divergence * (size - 1) / size, -(u.T * g)[0], (u.T * g)[0] / size)


@pytest.mark.equation("D48")
def test_the_refreshed_direction():
    """E|u + nu z|^2 = 1 + d nu^2 = e^(2 eps / ell), and nothing but the angle to u plays a part."""
    nu, u, z = sympy.Symbol("nu", positive=True), reals("u:3"), reals("z:3")
    square = sum((a + nu * b) ** 2 for a, b in zip(u, z, strict=True))
    length = sum(a**2 for a in u)
    equal(expectation(square, *z), length + 3 * nu**2)
    eps, scale = positives("eps ell")
    equal(1 + 3 * ((exp(2 * eps / scale) - 1) / 3), exp(2 * eps / scale))


@pytest.mark.equation("D49")
def test_the_kick_in_closed_form():
    """In the plane of u and e: y along e, x across; time delta = eps |g| / (d - 1)."""
    c, delta = sympy.Symbol("c", real=True), sympy.Symbol("delta", real=True)
    growth = cosh(delta) + c * sinh(delta)
    along = (c + sinh(delta) + c * (cosh(delta) - 1)) / growth
    across = sqrt(1 - c**2) / growth

    proved_equal(diff(along, delta), 1 - along**2)
    proved_equal(diff(across, delta), -along * across)
    proved_equal(along**2 + across**2, Integer(1))
    proved_equal(diff(log(growth), delta), along)
    assert (along.subs(delta, 0), growth.subs(delta, 0)) == (c, 1)
    # with exp(-delta) taken out, as it is coded
    turn = -(exp(-2 * delta) - 1) / 2 + c * (exp(-delta) - 1) ** 2 / 2
    proved_equal(turn * exp(delta), sinh(delta) + c * (cosh(delta) - 1))
    work = delta + log(1 + (1 - c) / 2 * (exp(-2 * delta) - 1))
    proved_equal(exp(work), growth)


@pytest.mark.equation("D49")
@pytest.mark.parametrize("size", [2, 3])
def test_the_jacobian_of_the_kick_entry_by_entry(size):
    """det = (cosh + c sinh)^-(d-1), from the matrix of all derivatives; |r| is kept beside."""
    r, rho, q = reals(f"r:{size}"), sympy.Symbol("rho", positive=True), positives("E")
    c, s = (q + 1 / q) / 2, (q - 1 / q) / 2  # cosh and sinh of delta, E = e^delta; e = first axis
    new = [rho * (each + int(i == 0) * (s * rho + r[0] * (c - 1))) for i, each in enumerate(r)]
    new = [each / (c * rho + s * r[0]) for each in new]
    direction = rational_direction(size, positives("p0 p1"))
    at = dict(zip(r, rho * direction, strict=True))
    slopes = [diff(each, b) + diff(each, rho) * b / rho for each in new for b in r]  # rho = |r|
    growth = c + direction[0] * s
    letters = *positives("p0 p1")[: size - 1], rho, q
    entries = sympy.lambdify(letters, [each.subs(at) for each in slopes])
    right = sympy.lambdify(letters, growth ** -(size - 1))
    found = prove_same(
        lambda *at: np.linalg.det(np.array(entries(*at)).reshape(size, size)),
        right, *(0.3 + 0.4 * k for k in range(size + 1)),
    )  # fmt: skip
    assert found, found
    values = {**assign(48, positives("p0 p1"), [rho]), q: 1.7}
    begin = np.array([[float(each.subs(values)) for each in direction]])
    gradient = np.zeros((1, size))
    gradient[0, 0] = 2.0
    _, work = kick(identity(begin), begin, gradient, np.log(1.7) * (size - 1) / 2.0)
    ships(work, [(size - 1) * log(growth)], values)


ORDER = 4


def times(a, b):
    """Product of two power series in eps, up to eps^3."""
    return [
        sympy.expand(sum(a[i] * b[n - i] for i in range(n + 1))) for n in range(ORDER)
    ]  # (coefficients of eps^0 .. eps^3)


def plus(*series):
    return [sympy.expand(sum(parts)) for parts in zip(*series, strict=True)]


def scaled(factor, series):
    return [sympy.expand(factor * each) for each in series]


def half_kick(u, g, k):
    """Direction and (d - 1) log growth, as series; cosh and sinh as theirs."""
    q = [0, 1 / (2 * k), 0, 0]  # delta / |g|
    force = plus(*(times(each, each) for each in g))
    a = plus(*(times(x, y) for x, y in zip(u, g, strict=True)))
    q2 = times(q, q)
    odd = plus(q, scaled(Rational(1, 6), times(times(q, q2), force)))  # sinh(delta) / |g|
    even = scaled(Rational(1, 2), q2)  # (cosh(delta) - 1) / |g|^2
    y = plus(times(even, force), times(a, odd))
    y2 = times(y, y)
    y3 = times(y, y2)
    inverse = plus([1, 0, 0, 0], scaled(-1, y), y2, scaled(-1, y3))
    push = plus(odd, times(a, even))
    new = [times(plus(each, times(push, slope)), inverse) for each, slope in zip(u, g, strict=True)]
    return new, scaled(k, plus(y, scaled(-Rational(1, 2), y2), scaled(Rational(1, 3), y3)))


@pytest.mark.equation("D49")
def test_the_energy_error_begins_with_eps_cubed():
    """For any log density; axes along u and across, in the plane of u and g, where all happens."""
    k = sympy.Symbol("k", positive=True)
    g, (h11, h12, h22) = reals("g1 g2"), reals("h11 h12 h22")
    t111, t112, t122, t222 = reals("t111 t112 t122 t222")
    u, first = half_kick([[1, 0, 0, 0], [0] * 4], [[each, 0, 0, 0] for each in g], k)
    x, y = ([0, *each[:3]] for each in u)  # eps u
    xx, xy, yy = times(x, x), times(x, y), times(y, y)
    half = Rational(1, 2)
    slopes = [
        plus([g[0], 0, 0, 0], scaled(h11, x), scaled(h12, y), scaled(half * t111, xx),
             scaled(t112, xy), scaled(half * t122, yy)),
        plus([g[1], 0, 0, 0], scaled(h12, x), scaled(h22, y), scaled(half * t112, xx),
             scaled(t122, xy), scaled(half * t222, yy)),
    ]  # fmt: skip
    gain = plus(
        scaled(g[0], x), scaled(g[1], y),
        scaled(half * h11, xx), scaled(h12, xy), scaled(half * h22, yy),
        scaled(t111 / 6, times(x, xx)),  # the others are of order eps^4
    )  # fmt: skip
    _, second = half_kick(u, slopes, k)
    error = plus(scaled(-1, gain), first, second)
    equal(error[:3], [0, 0, 0])
    a, along, force = g[0], h11 * g[0] + h12 * g[1], g[0] ** 2 + g[1] ** 2
    leading = t111 / 12 + (along - a * h11) / (4 * k) - a * (force - a**2) / (12 * k**2)
    equal(error[3], leading)
    # the shipped step, of a quadratic log density in the plane, forwards less backwards
    values = {**assign(49, g, [h11, h12, h22]), t111: 0.0, k: 1.0}
    slope, curve = floats(values, g), floats(values, [h11, h12, h12, h22], (2, 2))

    def target(position):
        return position @ slope + 0.5 * np.einsum(
            "sd,de,se->s", position, curve, position
        ), slope + position @ curve

    start = np.zeros((1, 2))
    begin = Phase(start, np.array([[1.0, 0.0]]), *target(start))
    found = []
    for eps in (1e-3, -1e-3):
        new, work = isokinetic(target, identity(start), begin, eps)
        found.append((begin.log_density - new.log_density + work)[0] / eps**3)
    np.testing.assert_allclose(np.mean(found), float(leading.subs(values)), rtol=1e-4)


@pytest.mark.equation("D50")
def test_the_bias_of_a_gaussian_in_many_dimensions():
    """Of N(0, I), d to infinity: means over coordinates are numbers, V = s^2, c = mean(x p) / s."""
    h, s, delta = positives("h s delta")
    # half a kick from mean(x p) = 0, and the correlation with x after it
    before = -s * tanh(delta)
    # the drift keeps V if 2 h E[x p] + h^2 = 0; then E[x' p] = E[x p] + h = h / 2
    assert sympy.solve(2 * h * before + h**2, h)[0] == 2 * s * tanh(delta)
    # and the second half kick, from c = -tanh(delta), ends at a mean of 0 with no net work
    c = -tanh(delta)

    def zero(line):
        assert sympy.simplify(line.rewrite(exp)) == 0

    growth = cosh(delta) + c * sinh(delta)
    zero(c + sinh(delta) + c * (cosh(delta) - 1))
    zero(growth * cosh(delta) - 1)
    # delta = h s / 2: s tanh(h s / 2) = h / 2, V = 1 + h^2 / 12 to the order h^2
    share = sympy.Symbol("b")
    line = s * tanh(h * s / 2) - h / 2
    line = line.subs(s, sqrt(1 + share * h**2))
    leading = sympy.series(line, h, 0, 6).removeO()
    assert sympy.solve(leading.coeff(h, 3), share) == [Rational(1, 12)]
    after = leading.coeff(h, 5).subs(share, Rational(1, 12)) + Rational(1, 180) / 2  # of 1 + .. h^4
    assert after == 0


@pytest.mark.equation("D50")
def test_the_bias_of_each_direction_and_its_bound():
    h, sigma, mean = positives("h sigma m")
    # a coordinate under both half kicks and the drift: p1' = p1 - 2 tau x'/sigma^2, x' = x + h p1
    tau, variance, square, spread = positives("tau V C P")
    drifting = spread / square**2 + tau**2 * variance / sigma**4  # P1, of P = 1 at the whole times
    exact = sympy.solve(variance / sigma**2 - h * drifting.subs(spread, 1) / (2 * tau), variance)[0]
    equal(exact / sigma**2, h / (2 * tau * square**2) / (1 - h * tau / (2 * sigma**2)))
    # s^2 = mean(1 / sigma^2) = m to leading order: tau = tanh(h s / 2) / s, C = cosh(h s / 2)
    s = sqrt(mean)
    line = (exact / sigma**2).subs({tau: tanh(h * s / 2) / s, square: cosh(h * s / 2)})
    first = sympy.series(line, h, 0, 3).removeO()
    equal(first, 1 + h**2 / 4 * (1 / sigma**2 - Rational(2, 3) * mean))
    # the error of energy of the same Gaussian, by D49: with x = sigma z, u = p / sqrt(d)
    n, am, force = 1 / sigma**4, mean / sigma**2, mean / sigma**2  # coefficients of x p
    coefficient = (n - am) / 4 + force / 12
    share = h**2 / 4 * (1 / sigma**2 - Rational(2, 3) * mean)
    equal(h**3 * coefficient * sigma, h / sigma * share)  # its square: v = mean(a b^2)
    # the bound: a (a - 2 m / 3)^2 lies above its tangent at a = m
    a, m = positives("a m")
    tangent = m**3 / 9 + 7 * m**2 * (a - m) / 9
    equal(a * (a - 2 * m / 3) ** 2 - tangent, (a - m) ** 2 * (a + 2 * m / 3))
    # so v >= m^3 / 144, and the mean bias m / 12 <= (v / 12)^(1/3)
    equal((m**3 / 144 / 12), (m / 12) ** 3)
    assert bias(0.3**3 / 144) == pytest.approx(0.3 / 12, rel=1e-14)


@pytest.mark.equation("D50")
def test_mean_and_variance_of_energy_errors_in_the_target_and_along_the_chain():
    """Of N(0, I) per dimension, from E[x^2] = 1 + alpha h^2 and E[x p] = beta, by Taylor."""
    ring, h, alpha, beta = sympy.ring("h, alpha, beta", sympy.QQ)

    def cut(series):
        """Up to h^6, and what is linear in the fluctuation beta."""
        return ring.from_dict({t: c for t, c in series.terms() if t[0] <= 6 and t[2] <= 1})

    def cosh_(square):
        return cut(1 + square / 2 + square**2 / 24 + square**3 / 720)

    def sinh_(square):  # over its argument
        return cut(1 + square / 6 + square**2 / 120 + square**3 / 5040)

    def growth_and_turned(variance, product):
        """G of a half kick, less 1, and E[x p] after it."""
        square = h**2 * variance / 4  # delta^2
        pushed = h / 2 * sinh_(square)  # sinh(delta) / s
        rest = cut(cosh_(square) - product * pushed) - 1
        inverse = cut(1 - rest + rest**2 - rest**3)
        return rest, cut((product * cosh_(square) - variance * pushed) * inverse)

    variance = 1 + alpha * h**2
    first, turned = growth_and_turned(variance, beta)
    after = cut(variance + 2 * h * turned + h**2)
    second, _ = growth_and_turned(after, cut(turned + h))
    works = sum(rest - rest**2 / 2 + rest**3 / 3 for rest in (first, second))
    error = cut((after - variance) / 2 + works)
    assert error.coeff(1) == 0
    mean = {term: c for term, c in error.terms() if term[2] == 0}
    assert mean == {(6, 0, 0): sympy.QQ(1, 288), (6, 1, 0): -sympy.QQ(12, 288)}
    # in the target, alpha = 0, it is half of h^6 / 144; along the chain, alpha = 1/12, zero
    slope = sum(c * h ** t[0] * alpha ** t[1] for t, c in error.terms() if t[2] == 1)
    slope = slope.compose(alpha, ring(sympy.QQ(1, 12)))  # of the error in E[x p], along the chain
    in_variance = -(h**4) / 24  # and in E[x^2]: of -12 alpha h^6 / 288, alpha h^2 = E[x^2] - 1
    # p is uniform: E[x p] fluctuates by V / d, E[x^2] by 2 V^2 / d
    v = slope**2 * (1 + h**2 / 12) + 2 * in_variance**2
    leading = {term[0]: c for term, c in v.terms() if term[0] <= 8}
    assert leading == {6: sympy.QQ(1, 144), 8: sympy.QQ(1, 144 * 20)}
    # so that (v / 12)^(1/3) = (h^2 / 12) (1 + h^2 / 60), of V - 1 = (h^2 / 12) (1 + h^2 / 15)


@pytest.mark.equation("D50")
def test_the_acceptance_of_errors_that_are_normal_with_mean_0():
    """E min(1, e^-x) of N(0, q^2) is 1/2 + e^(q^2 / 2) Phi(-q)."""
    x, q = sympy.Symbol("x", real=True), sympy.Symbol("q", positive=True)
    density = exp(-(x**2) / (2 * q**2)) / sqrt(2 * sympy.pi) / q
    moved = density.subs(x, x + q**2)  # N(-q^2, q^2): above 0 there is Phi(-q) of it
    ratio = density * exp(-x) / (moved * exp(q**2 / 2))
    equal(sympy.expand(sympy.expand_log(log(ratio), force=True)), 0)
    above = (1 + erf(-q / sqrt(2))) / 2
    for size in (0.01, 0.3, 1.0, 3.0, 12.0):
        accepted = float((Rational(1, 2) + exp(q**2 / 2) * above).subs(q, Rational(str(size))))
        assert energy_variance(accepted, 5) == pytest.approx(size**2 / 5, rel=1e-9)
