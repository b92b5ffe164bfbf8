"""SGHMC and SGLD by algebra: D64 and D65 of derivations/stochastic-samplers.md."""

import numpy as np
import pytest
import sympy
from algebra import equal, off_by, positives, reals
from sympy import diff, exp, log

from exactgrad import prove_same


@pytest.mark.equation("D64")
def test_the_law_of_sghmc_on_a_gaussian():
    """The box is kept by the step, for two directions and any noise, entry by entry."""

    def box(h, c, temperature, m, d, noise):
        kappa = (1 + c) / (1 - c)
        above = temperature + h**2 / 4 * kappa * noise
        return above / (m / 2 - h**2 / 16 * m**2 + h**2 / 16 * kappa**2 * d**2)

    def step(h, c, temperature, rates, v):
        """Return A, X - X', P' of the step, and what they are to be."""
        a, precision, noise = h * (1 + c) / 2, np.diag(rates), v[np.array([[0, 1], [1, 2]])]
        m, d = rates[:, None] + rates, rates[:, None] - rates
        x = box(h, c, temperature * np.eye(2), m, d, noise)
        p = (x @ precision + precision @ x) / 2
        forth = -h * p / 2 + a / (1 - c) / 2 * (precision @ x - x @ precision)  # A
        y = forth + h * p
        new = c**2 * p + a**2 * precision @ x @ precision
        new = new - c * a * (precision @ y + y.T @ precision)
        fresh = a**2 * noise + temperature * (1 - c**2) * np.eye(2)
        return (forth, forth + forth.T + h * p, new + fresh), (c * y - a * x @ precision, 0 * p, p)

    at = 0.3, 0.8, 1.2, np.array([0.5, 1.7]), np.array([0.4, -0.1, 0.9])
    assert prove_same(lambda *at: step(*at)[0], lambda *at: step(*at)[1], *at)
    h, c, temperature, rate, noise = positives("h c T l V")
    x, wide = box(h, c, temperature, 2 * rate, 0, noise), rate * (1 - h**2 / 4 * rate)
    equal(x, (temperature + h**2 / 4 * (1 + c) / (1 - c) * noise) / wide)
    off_by(x.subs(c, 0), (temperature + h**2 / 2 * noise) / wide, -(h**2) / 4 * noise / wide)
    # two half kicks with the friction in between are the boxed line
    r, g, z, s = reals("r g z s")
    equal(c * (r + h / 2 * g) + s * z + h / 2 * g, c * r + h * (1 + c) / 2 * g + s * z)
    # kappa is coth(gamma h / 2), and gamma h / 2 small leaves h V / (2 gamma)
    u = positives("u")
    equal((1 + exp(-2 * u)) / (1 - exp(-2 * u)), (exp(u) + exp(-u)) / (exp(u) - exp(-u)))
    assert sympy.limit(h**2 / 4 * sympy.coth(u * h / 2) / h, h, 0) == 1 / (2 * u)


@pytest.mark.equation("D65")
def test_the_heat_of_momenta_for_any_density():
    """E[-x.g] = E r^2, from what stays: with letters for expectations."""
    h, c, square = positives("h c R")
    before, after, pull = reals("b a x")  # E x.r, E x.r', E x.g
    stays = [2 * after + h * square, before - after - h * square]  # of E x^2, and of E x.r
    found = sympy.solve([*stays, after - c * before - h * (1 + c) / 2 * pull],
                        [before, after, pull], dict=True)  # fmt: skip
    equal(found[0][pull], -square)
    # of draws of the density to the power 1 / T it is T: E[-x.g] by parts, here of a quartic
    x, temperature = reals("x"), positives("T")
    density = exp(-(x**4) / (4 * temperature))
    slope = temperature * diff(log(density), x)
    total = sympy.integrate(density, (x, -sympy.oo, sympy.oo))
    mean = sympy.integrate(-x * slope * density, (x, -sympy.oo, sympy.oo)) / total
    assert sympy.simplify(mean - temperature) == 0
    # for small steps the trace of D64 is that of the gradients
    precision, noise, kappa = positives("l V k")
    of_box = (temperature + h**2 / 4 * kappa * noise) / (1 - h**2 / 4 * precision) / temperature - 1
    square = precision * temperature  # E g^2 of the density itself
    told = h**2 / 4 / temperature * (square + kappa * noise)
    equal(sympy.series(of_box, h, 0, 3).removeO(), told)
