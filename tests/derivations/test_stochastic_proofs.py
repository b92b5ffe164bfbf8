"""SGHMC and SGLD by algebra: D64 and D65 of derivations/stochastic-samplers.md."""

import pytest
import sympy
from algebra import equal, matrix, off_by, positives, reals
from sympy import Matrix, diff, exp, eye, log, zeros


@pytest.mark.equation("D64")
def test_the_law_of_sghmc_on_a_gaussian():
    """The box is kept by the step, for two directions and any noise, entry by entry."""
    h, c, temperature = positives("h c T")
    precision, a = sympy.diag(*positives("l0 l1")), h * (1 + c) / 2
    noise = Matrix(2, 2, lambda i, j: matrix("V", 2, 2)[min(i, j), max(i, j)])
    kappa = (1 + c) / (1 - c)

    def box(i, j):
        m, d = (precision[i, i] + s * precision[j, j] for s in (1, -1))
        above = temperature * int(i == j) + h**2 / 4 * kappa * noise[i, j]
        return above / (m / 2 - h**2 / 16 * m**2 + h**2 / 16 * kappa**2 * d**2)

    x = Matrix(2, 2, box)
    p = (x * precision + precision * x) / 2
    forth = -h * p / 2 + a / (1 - c) / 2 * (precision * x - x * precision)  # A
    y = forth + h * p
    equal(list(forth), list(c * y - a * x * precision))
    equal(list(forth + forth.T + h * p), list(zeros(2, 2)))  # X stays
    new = c**2 * p + a**2 * precision * x * precision - c * a * (precision * y + y.T * precision)
    fresh = a**2 * noise + temperature * (1 - c**2) * eye(2)
    equal(list(new + fresh), list(p))
    share = temperature + h**2 / 4 * kappa * noise[0, 0]
    wide = precision[0, 0] * (1 - h**2 / 4 * precision[0, 0])
    equal(x[0, 0], share / wide)
    off_by(x[0, 0].subs(c, 0), (temperature + h**2 / 2 * noise[0, 0]) / wide,
           -(h**2) / 4 * noise[0, 0] / wide)  # fmt: skip
    # two half kicks with the friction in between are the boxed line
    r, g, z, s = reals("r g z s")
    equal(c * (r + h / 2 * g) + s * z + h / 2 * g, c * r + a * g + s * z)
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
