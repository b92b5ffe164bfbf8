"""W1 to W6: point estimates, the gradient identity, the split form, decibels, by algebra."""

import numpy as np
import pytest
import sympy
from algebra import (
    HALF,
    LOG_2PI,
    equal,
    expectation,
    gaussian,
    log_gaussian,
    off_by,
    positives,
    reals,
    sigmoid,
    softplus,
)
from sympy import Rational, diff, exp, log

from bbb_numpy import MLP
from bbb_numpy.numeric.buffers import Buffers
from bbb_numpy.parts.network import forward

# A weight and a bias, two rows
W, X, Y = reals("w:2"), reals("x:2"), reals("y:2")
s, v, share = positives("s v share")
mu, rho, eps, w, g = reals("mu rho epsilon w g")
sigma = positives("sigma")


def log_likelihood(row):
    return log_gaussian(Y[row], X[row] * W[0] + W[1], v)


NLL = -sum(log_likelihood(row) for row in range(2))
LOG_PRIOR = sum(log_gaussian(each, 0, s) for each in W)
G = [diff(NLL, each) for each in W]  # g_w


@pytest.mark.equation("W1")
def test_maximum_likelihood_is_least_squares():
    product = gaussian(Y[0], X[0] * W[0] + W[1], v) * gaussian(Y[1], X[1] * W[0] + W[1], v)
    equal(log(product), -NLL)
    residuals = [Y[row] - X[row] * W[0] - W[1] for row in range(2)]
    squares = sum(r**2 for r in residuals) / (2 * v**2)
    equal([diff(squares, each) for each in W], G)
    # learned noise at zero residuals: B log sigma_y falls without end, at a fixed one it is bounded
    assert sympy.limit(2 * log(v) + LOG_2PI, v, 0) == -sympy.oo


@pytest.mark.equation("W2")
def test_maximum_a_posteriori_is_the_end_of_the_variational_family():
    log_evidence = reals("log_evidence")
    log_posterior = -NLL + LOG_PRIOR - log_evidence
    equal([diff(log_posterior, each) for each in W], [diff(-NLL + LOG_PRIOR, each) for each in W])
    cost = NLL - share * LOG_PRIOR
    gradient = [G[j] + share * W[j] / s**2 for j in range(2)]  # weight decay
    equal([diff(cost, each) for each in W], gradient)
    # q = N(mu, tau^2 I), expanded: for a cost of fourth order with its tau^4 left over
    tau, m, e = positives("tau"), reals("m:2"), reals("e:2")
    c = reals("c:6")
    a, b = W
    h = c[0] * a + c[1] * b**2 + c[2] * a * b + c[3] * a**3 + c[4] * a**2 * b**2 + c[5] * b**4
    at = dict(zip(W, m, strict=True))
    moved = {W[j]: m[j] + tau * e[j] for j in range(2)}
    found = expectation(h.subs(moved, simultaneous=True), *e)
    second = sum(diff(h, each, 2) for each in W).subs(at)
    remainder = sympy.Poly(sympy.expand(found - h.subs(at) - tau**2 / 2 * second), tau)
    assert min(power for (power,), _ in remainder.terms()) == 4
    log_q = sum(-log(tau) - HALF * LOG_2PI - each**2 / 2 for each in e)
    equal(expectation(log_q, *e), -2 * log(tau) - 2 * HALF * (1 + LOG_2PI))  # no mu in it
    # a flat prior: in these directions the likelihood of a network never falls to 0
    rows = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    growing = np.array([50.0, 5e3, 5e6])
    off = np.array([[1.0, -9.0, each, 0.3] for each in growing])  # weight, bias, weight, bias
    steep = np.array([[each, 0.0, 0.8, 0.3] for each in growing])
    for activation, weights, limit in (
        ("relu", off, [0.3] * 4),  # a unit that is off, whatever its output weight
        ("tanh", steep, [-0.5, -0.5, 1.1, 1.1]),  # a step, however steep
    ):
        found = forward(MLP((1, 1, 1), activation), weights, rows, Buffers())[0][..., 0]
        np.testing.assert_allclose(found, [limit] * 3, rtol=1e-14)


@pytest.mark.equation("W3")
def test_the_gradient_identity():
    # q(t(theta, eps) | theta) |dt/d eps| = q(eps)
    weight = mu + softplus(rho) * eps
    density = gaussian(w, mu, softplus(rho)).subs(w, weight) * diff(weight, eps)
    equal(density, gaussian(eps, 0, 1))
    # both sides for a polynomial f in which theta occurs through w and directly
    c = reals("c:5")
    f = c[0] * w**3 + c[1] * w**2 * mu + c[2] * w * sigma + c[3] * sigma**2 * mu + c[4] * w**4
    moved = {w: mu + sigma * eps}
    for theta in (mu, sigma):
        through, direct = diff(f, w) * diff(moved[w], theta), diff(f, theta)
        equal(diff(expectation(f.subs(moved), eps), theta),
              expectation((through + direct).subs(moved), eps))  # fmt: skip
        off_by(expectation(through.subs(moved), eps), diff(expectation(f.subs(moved), eps), theta),
               -expectation(direct.subs(moved), eps))  # theta occurs twice  # fmt: skip
    # Wu's brackets: read from left to right, log q - log P(w) * P(D|w) is another function
    q, p, likelihood = positives("q p l")
    intended, literal = log(q) - log(p * likelihood), log(q) - log(p) * likelihood
    off_by(literal, intended, log(p) * (1 - likelihood) + log(likelihood))
    # the slope of log q through the weights
    slope = diff(log_gaussian(w, mu, sigma), w)
    equal(slope, -(w - mu) / sigma**2)
    equal(slope.subs(moved), -eps / sigma)


F = log_gaussian(w, mu, sigma) - log_gaussian(w, 0, s)  # and -log P(D|w), whose slope is g
D = w / s**2 + g
MOVED = {w: mu + sigma * eps}


@pytest.mark.equation("W4")
def test_the_split_form_for_mu():
    through, direct = diff(F, w) + g, diff(F, mu)
    equal(through.subs(MOVED), (-eps / sigma + w / s**2 + g).subs(MOVED))
    equal(direct, (w - mu) / sigma**2)
    equal(direct.subs(MOVED), eps / sigma)
    total = through + direct
    equal(total.subs(MOVED), D.subs(MOVED))  # K21 at pi = 1
    # the total derivative at fixed noise, and the direct term counted twice
    equal(diff(F.subs(MOVED), mu) + g, D.subs(MOVED))
    off_by((D + direct).subs(MOVED), D.subs(MOVED), eps / sigma)


@pytest.mark.equation("W5")
def test_the_split_form_for_rho():
    slope = sigmoid(rho)
    through = ((diff(F, w) + g) * eps).subs(MOVED).subs(sigma, softplus(rho)) * slope
    direct = diff(F.subs(sigma, softplus(rho)), rho).subs(MOVED).subs(sigma, softplus(rho))
    deviation = softplus(rho)
    d = D.subs(MOVED).subs(sigma, deviation)
    equal(direct, (eps**2 - 1) / deviation * slope)
    summed = (d * eps - eps**2 / deviation + eps**2 / deviation - 1 / deviation) * slope
    equal(through + direct, summed, (d * eps - 1 / deviation) * slope)
    # K30 as total derivative at fixed noise; with the direct terms added again it is off
    total = diff(F.subs(MOVED).subs(sigma, deviation), rho) + g * eps * slope
    equal(total, (d * eps - 1 / deviation) * slope)
    off_by(total + direct, total, (eps**2 - 1) / deviation * slope)


@pytest.mark.equation("W6")
def test_decibels_turn_products_into_sums():
    distance, d_0, exponent, factor = positives("d d0 lambda factor")
    decibel = 10 / log(10)
    spread = decibel * log((distance / d_0) ** (-exponent))
    equal(spread, -exponent * decibel * log(distance / d_0))
    doubled = spread.subs(distance, 2 * distance) - spread
    equal(doubled, -10 * exponent * log(2) / log(10))
    assert Rational(3010, 1000) < 10 * log(2) / log(10) < Rational(3011, 1000)
    equal(decibel * log(exp(spread / decibel) * factor), spread + decibel * log(factor))
    # a linear function of its features: one building, seen through two walls
    power, reference, wall = reals("P_T P_0 wall")
    log_distance, walls = reals("log_distance walls")
    field = power - reference - 10 * exponent * log_distance - walls * wall
    equal([diff(field, each) for each in (log_distance, walls)], [-10 * exponent, -wall])
    equal(field.subs({log_distance: 0, walls: 0}), power - reference)
