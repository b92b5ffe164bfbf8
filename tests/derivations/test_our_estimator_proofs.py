"""D18 to D28 and D30: estimators of the gradient and objectives, by algebra and exact moments.

Expectations over noise are those of polynomials in standard normal numbers; where the shipped
estimator is differentiated, its noise is a letter like any other.
"""

from itertools import product

import numpy as np
import pytest
import sympy
from algebra import (
    HALF,
    LOG_2PI,
    assign,
    equal,
    expectation,
    floats,
    log_gaussian,
    matrix,
    number,
    off_by,
    positives,
    reals,
    ships,
    sigmoid,
    softplus,
)
from sympy import Integer, Matrix, Rational, diag, diff, exp, eye, log, sqrt

from bbb_numpy import MLP, GaussianLikelihood, GaussianPrior, MeanField, Model, Reparameterised
from bbb_numpy.gradients.closed_form import ClosedFormKL
from bbb_numpy.gradients.flipout import Flipout
from bbb_numpy.gradients.importance import DoublyReparameterised, SelfNormalised
from bbb_numpy.gradients.local_reparameterisation import LocalReparameterisation
from bbb_numpy.gradients.reparameterised import StickingTheLanding
from bbb_numpy.model.kl_weights import CyclicalWarmUp, LinearWarmUp
from bbb_numpy.model.objectives import EUBO, FreeEnergy, LogDensities, Renyi, log_weights
from bbb_numpy.numeric.buffers import Buffers
from bbb_numpy.parts.full_rank import FullRank
from bbb_studies import linear_gaussian
from bbb_studies.ours.estimator_variance import ScoreFunction

# A weight and a bias, two rows, two samples
MU, RHO, EPS = reals("mu:2"), reals("rho:2"), matrix("e", 2, 2)
X, Y, W = reals("x:2"), reals("y:2"), reals("w:2")
s, v, share = positives("s v share")
PRIOR, NOISE = 0.9, 1.1
SIGMA = [softplus(r) for r in RHO]
DEVIATION = positives("sigma:2")  # letters for them
SAMPLES = [dict(zip(W, [MU[j] + SIGMA[j] * EPS[k, j] for j in range(2)], strict=True))
           for k in range(2)]  # fmt: skip
LOG_LIKELIHOOD = sum(log_gaussian(Y[b], X[b] * W[0] + W[1], v) for b in range(2))
LOG_PRIOR = sum(log_gaussian(each, 0, s) for each in W)
LOG_Q = sum(log_gaussian(W[j], MU[j], DEVIATION[j]) for j in range(2))
AT = dict(zip(DEVIATION, SIGMA, strict=True))


def model(**learned):
    return Model(MLP((1, 1)), GaussianPrior(PRIOR), GaussianLikelihood(NOISE, **learned))


def shipped(seed, estimator, samples=2, kl_weight=1.0, more=()):
    """Values of all letters, and what the shipped estimator returns on both rows."""
    values = {**assign(seed, MU, RHO, EPS, X, Y, more), s: PRIOR, v: NOISE, share: kl_weight}
    theta = floats(values, [*MU, *RHO, *more])
    x, y = floats(values, X, (2, 1)), floats(values, Y, (2, 1))
    noise = floats(values, EPS, (2, 2))[:samples]
    return values, estimator.value_and_grad(theta, noise, x, y, kl_weight)


@pytest.mark.equation("D18")
def test_the_complexity_cost_in_closed_form_mean_field():
    e = reals("e:2")
    moved = {W[j]: MU[j] + DEVIATION[j] * e[j] for j in range(2)}
    entropy = -expectation(LOG_Q.subs(moved), *e)
    equal(entropy, sum(log(each) for each in DEVIATION) + (1 + LOG_2PI))
    prior = expectation(LOG_PRIOR.subs(moved), *e)
    squares = sum(MU[j] ** 2 + DEVIATION[j] ** 2 for j in range(2))
    equal(prior, -2 * log(s) - LOG_2PI - squares / (2 * s**2))
    kl = sum(log(s / DEVIATION[j]) + (MU[j] ** 2 + DEVIATION[j] ** 2) / (2 * s**2) - HALF
             for j in range(2))  # fmt: skip
    equal(-entropy - prior, kl)
    for_rho = [(SIGMA[j] / s**2 - 1 / SIGMA[j]) * sigmoid(RHO[j]) for j in range(2)]
    equal([diff(kl, each) for each in MU], [each / s**2 for each in MU])
    equal([diff(kl.subs(AT), each) for each in RHO], for_rho)
    equal(s * diff(kl, s), 2 - squares / s**2)
    # the expectations of the prior's terms in K21 and K30
    one = MU[0] + DEVIATION[0] * e[0]
    equal([expectation(one, *e), expectation(one * e[0], *e)], [MU[0], DEVIATION[0]])

    cost = share * kl.subs(AT) - sum(LOG_LIKELIHOOD.subs(each) for each in SAMPLES) / 2
    values, found = shipped(18, ClosedFormKL(model()), kl_weight=0.4)
    ships(found.value, cost, values)
    ships(found.grad, [diff(cost, each) for each in (*MU, *RHO)], values)
    nothing = np.zeros((0, 1))
    theta = floats(values, [*MU, *RHO])
    found = ClosedFormKL(model()).value_and_grad(theta, np.zeros((1, 2)), nothing, nothing)
    ships(found.grad, [*(each / s**2 for each in MU), *for_rho], values)
    learned = Model(MLP((1, 1)), GaussianPrior(PRIOR, learn=True), GaussianLikelihood(NOISE))
    estimator, t = ClosedFormKL(learned), np.log(PRIOR)
    found = estimator.value_and_grad(np.append(theta, t), np.zeros((1, 2)), nothing, nothing)
    ships(found.grad[-1:], (2 - squares / s**2).subs(AT), values)


LOWER = reals("l10")
FACTOR = Matrix([[DEVIATION[0], 0], [LOWER, DEVIATION[1]]])


@pytest.mark.equation("D19")
def test_the_complexity_cost_in_closed_form_full_rank():
    e = Matrix(reals("e:2"))
    moved = Matrix(MU) + FACTOR * e
    log_q = -log(FACTOR.det()) - HALF * (e.T * e)[0] - LOG_2PI
    entropy = -expectation(sympy.expand_log(log_q), *e)
    prior = expectation(LOG_PRIOR.subs(dict(zip(W, moved, strict=True))), *e)
    size = sum(each**2 for each in MU) + sum(each**2 for each in FACTOR)
    kl = -sum(log(each) for each in DEVIATION) - 1 + 2 * log(s) + size / (2 * s**2)
    equal(-entropy - prior, kl)
    equal((FACTOR * FACTOR.T).trace(), sum(each**2 for each in FACTOR))
    slopes = FACTOR / s**2 - diag(*(1 / each for each in DEVIATION))
    equal([diff(kl, MU[0]), diff(kl, LOWER), *(diff(kl, each) for each in DEVIATION)],
          [MU[0] / s**2, slopes[1, 0], slopes[0, 0], slopes[1, 1]])  # fmt: skip
    for_rho = [slopes[j, j].subs(AT) * sigmoid(RHO[j]) for j in range(2)]
    equal([diff(kl.subs(AT), each) for each in RHO], for_rho)

    values = {**assign(19, MU, RHO, [LOWER]), s: PRIOR}
    estimator, nothing = ClosedFormKL(model(), FullRank()), np.zeros((0, 1))
    theta = floats(values, [*MU, *RHO, LOWER])
    found = estimator.value_and_grad(theta, np.zeros((1, 2)), nothing, nothing)
    ships(found.value, kl.subs(AT), values)
    ships(found.grad, [*(each / s**2 for each in MU), *for_rho, slopes[1, 0]], values)
    # with rows and one sample
    cost = share * kl - LOG_LIKELIHOOD.subs(dict(zip(W, moved, strict=True)))
    values = {**values, **assign(20, e, X, Y), v: NOISE, share: 0.4}
    found = estimator.value_and_grad(theta, floats(values, e, (1, 2)), floats(values, X, (2, 1)),
                                     floats(values, Y, (2, 1)), 0.4)  # fmt: skip
    ships(found.value, cost.subs(AT), values)
    ships(found.grad, [diff(cost.subs(AT), each) for each in (*MU, *RHO, LOWER)], values)


@pytest.mark.equation("D20")
def test_the_direct_part_has_mean_zero_and_may_be_left_out():
    e, mean, deviation = reals("e"), reals("m"), positives("d")
    density = log_gaussian(W[0], mean, deviation)
    moved = {W[0]: mean + deviation * e}
    for number_ in (mean, deviation):
        direct = diff(density, number_).subs(moved)
        equal(expectation(direct, e), 0)
    # the gradient of the sampled cost, less its direct part, is the slope of the surrogate
    cost = share * (LOG_Q - LOG_PRIOR) - LOG_LIKELIHOOD
    d_w = [diff(cost, each).subs(AT).subs(SAMPLES[0]) for each in W]  # log q through w, as frozen
    path = [*d_w, *(d_w[j] * EPS[0, j] * sigmoid(RHO[j]) for j in range(2))]
    total = cost.subs(AT).subs(SAMPLES[0])
    direct = [diff(share * LOG_Q.subs(AT), each).subs(SAMPLES[0]) for each in (*MU, *RHO)]
    equal([diff(total, each) for each in (*MU, *RHO)],
          [a + b for a, b in zip(path, direct, strict=True)])  # fmt: skip
    off_by([diff(total, each) for each in (*MU, *RHO)], path, direct)
    # where q is the posterior, of a single weight, the gradient is 0 for every noise
    precision = positives("precision")
    bracket = log_gaussian(W[0], mean, 1 / sqrt(precision)) + precision * (W[0] - mean) ** 2 / 2
    equal(diff(bracket, W[0]), 0)
    # the report's gradient there is Lambda C eps, of covariance Lambda
    lam = Matrix([[positives("a"), reals("b")], [reals("b"), positives("c")]])
    noise = Matrix(reals("n:2"))
    root = Matrix([[positives("r0"), 0], [reals("r10"), positives("r1")]])
    shaken = lam * root * noise
    covariance = (shaken * shaken.T).applyfunc(lambda each: expectation(each, *noise))
    equal(covariance, lam * root * root.T * lam)
    equal(lam * lam.inv() * lam, lam)

    values, found = shipped(20, StickingTheLanding(model()), samples=1, kl_weight=0.4)
    ships(found.grad, path, values)


@pytest.mark.equation("D20")
def test_a_frozen_mean_is_right_on_average_and_its_variance_is_known():
    """log q at a copy of mu, with rho a parameter: K30 for rho, the path alone for mu."""
    e, m, r, copy = reals("e m r copy")
    d = softplus(r)
    a = reals("a:5")  # U = -log P(w, D), of fourth order
    cost = log_gaussian(W[0], copy, d) + sum(a[k] * W[0] ** k for k in range(5))
    sampled = cost.subs(W[0], m + d * e)
    slope = diff(sum(a[k] * W[0] ** k for k in range(5)), W[0]).subs(W[0], m + d * e)
    equal(diff(sampled, m).subs(copy, m), slope - e / d)
    equal(diff(sampled, r).subs(copy, m), (slope * e - 1 / d) * sigmoid(r))  # K30

    deviation = positives("deviation")
    U = sum(a[k] * W[0] ** k for k in range(5))
    moved = {W[0]: m + deviation * e}
    full = diff(U, W[0]).subs(moved)
    curvature = expectation(diff(U, W[0], 2).subs(moved), e)
    equal(expectation(e * full, e), deviation * curvature)  # Stein
    frozen = full - e / deviation
    equal(expectation(frozen, e), expectation(full, e))

    def variance(line):
        return expectation(line**2, e) - expectation(line, e) ** 2

    gain = variance(frozen) - variance(full)
    equal(gain, 1 / deviation**2 - 2 * curvature)
    # at the best deviation K30 has mean 0, and the sign of the gain is another
    best = sympy.solve(expectation(full * e - 1 / deviation, e), a[2])[0]
    equal(gain.subs(a[2], best), -1 / deviation**2)


@pytest.mark.equation("D20")
def test_the_score_alone_is_unbiased_with_a_baseline():
    # one weight, a quadratic log joint; expectations over the noise of both samples
    e, (mean, deviation, a, b) = reals("e:2"), (MU[0], DEVIATION[0], *reals("a b"))
    cost = share * (log_gaussian(W[0], mean, deviation) + a * W[0] ** 2 + b * W[0])
    drawn = [{W[0]: mean + deviation * each} for each in e]
    free_energy = expectation(cost.subs(drawn[0]), e[0])
    score = [diff(log_gaussian(W[0], mean, deviation), each) for each in (mean, deviation)]
    h = [cost.subs(one) for one in drawn]
    scores = [[each.subs(one) for each in score] for one in drawn]
    exact = [diff(free_energy, each) for each in (mean, deviation)]
    plain = [h[0] * HALF * one + h[1] * HALF * two for one, two in zip(*scores, strict=True)]
    others = [(h[0] - h[1]) * HALF * (one - two) for one, two in zip(*scores, strict=True)]
    equal(exact, [expectation(each, *e) for each in plain])
    equal(exact, [expectation(each, *e) for each in others])
    # a baseline of which the sample itself is a part loses 1 / S of the gradient
    own = [each * HALF for each in others]
    off_by([expectation(each, *e) for each in own], exact, [-HALF * each for each in exact])
    for h_of_the_posterior in others:
        equal(h_of_the_posterior.subs({a: 1 / (2 * deviation**2), b: -mean / deviation**2}), 0)

    cost = [(share * (LOG_Q - LOG_PRIOR) - LOG_LIKELIHOOD).subs(AT).subs(one) for one in SAMPLES]
    direct = [[diff(LOG_Q.subs(AT), each).subs(one) for each in (*MU, *RHO)] for one in SAMPLES]
    for baseline, factors in ((False, cost), (True, [cost[0] - cost[1], cost[1] - cost[0]])):
        line = [HALF * (factors[0] * x + factors[1] * y) for x, y in zip(*direct, strict=True)]
        values, found = shipped(21, ScoreFunction(model(), baseline=baseline), kl_weight=0.4)
        ships(found.grad, line, values)


# A 2-2-1 ReLU network, two rows, for the estimators that give each row its own weights
SIZES = (2, 2, 1)
ROWS, TARGETS = matrix("x", 2, 2), matrix("t", 2, 1)
SHAPES = [((2, 2), (1, 2)), ((2, 1), (1, 1))]
P = 9
MEANS, RAWS, DRAWN = reals("m:9"), reals("r:9"), reals("n:9")
GATES = matrix("gate", 2, 2)


def layers(flat):
    """Cut nine letters into W0, b0, W1, b1."""
    cut, start = [], 0
    for weight, bias in SHAPES:
        pair = []
        for rows, columns in (weight, bias):
            pair.append(Matrix(rows, columns, flat[start : start + rows * columns]))
            start += rows * columns
        cut.append(pair)
    return cut


def elementwise(first, second):
    return first.multiply_elementwise(second)


def repeated(row):
    return Matrix.vstack(row, row)


def nll(z):
    return sum(each**2 for each in TARGETS - z) / (2 * v**2) + 2 * log(v) + LOG_2PI


def rowwise(estimator, values, noise, before):
    """What the shipped estimator returns at pi = 0, and the gates in the values."""
    wide = Model(MLP(SIZES), GaussianPrior(PRIOR), GaussianLikelihood(NOISE))
    values = {**values, v: NOISE}
    gates = (number(before, values) > 0).astype(float)
    assert 0 < gates.sum() < 4
    values.update(zip(GATES, gates.tolist(), strict=True))
    found = estimator(wide).value_and_grad(
        floats(values, [*MEANS, *RAWS]), noise[None], floats(values, ROWS, (2, 2)),
        floats(values, TARGETS, (2, 1)), 0.0,
    )  # fmt: skip
    return values, found


@pytest.mark.equation("D21")
def test_local_reparameterisation():
    # z of a row is Gaussian with this mean and variance; rows share weights otherwise
    a, b = reals("a:2"), reals("b:2")
    mus, deviations, noise = reals("u:3"), positives("d:3"), reals("e:3")
    weights = [mus[k] + deviations[k] * noise[k] for k in range(3)]
    z = [row[0] * weights[0] + row[1] * weights[1] + weights[2] for row in (a, b)]
    middle = a[0] * mus[0] + a[1] * mus[1] + mus[2]
    variance = sum(a[k] ** 2 * deviations[k] ** 2 for k in range(2)) + deviations[2] ** 2
    equal(expectation(z[0], *noise), middle)
    equal(expectation((z[0] - middle) ** 2, *noise), variance)
    other = b[0] * mus[0] + b[1] * mus[1] + mus[2]
    common = expectation((z[0] - middle) * (z[1] - other), *noise)
    equal(common, sum(a[k] * b[k] * deviations[k] ** 2 for k in range(2)) + deviations[2] ** 2)
    # the box, of one layer: a cotangent g of z, and z = a mu + mu_b + sqrt(D) zeta
    (g, zeta), spread = reals("g zeta"), positives("D")
    pairing = g * (middle + sqrt(variance) * zeta)
    h = g * zeta / (2 * sqrt(variance))
    equal(diff(g * sqrt(spread) * zeta, spread), g * zeta / (2 * sqrt(spread)))
    equal([diff(pairing, each) for each in mus], [g * a[0], g * a[1], g])
    equal([diff(pairing, each) for each in deviations],
          [h * a[0] ** 2 * 2 * deviations[0], h * a[1] ** 2 * 2 * deviations[1],
           h * 2 * deviations[2]])  # fmt: skip
    equal([diff(pairing, each) for each in a],
          [g * mus[k] + 2 * a[k] * h * deviations[k] ** 2 for k in range(2)])  # fmt: skip

    # the whole network, differentiated by SymPy, is what is shipped
    z_noise = [matrix("z0", 2, 2), matrix("z1", 2, 1)]
    means, variances = layers(MEANS), layers([softplus(r) ** 2 for r in RAWS])
    inputs, pre = ROWS, []
    for k in range(2):
        squares = inputs.applyfunc(lambda each: each**2)
        spread = squares * variances[k][0] + repeated(variances[k][1])
        pre.append(inputs * means[k][0] + repeated(means[k][1])
                   + elementwise(spread.applyfunc(sqrt), z_noise[k]))  # fmt: skip
        inputs = elementwise(pre[0], GATES)
    cost = nll(pre[1])
    values = assign(21, MEANS, RAWS, ROWS, TARGETS, *z_noise)
    noise = floats(values, [*z_noise[0], *z_noise[1]])
    values, found = rowwise(LocalReparameterisation, values, noise, pre[0])
    ships(found.value, cost, values)
    ships(found.grad, [diff(cost, each) for each in (*MEANS, *RAWS)], values, rtol=1e-11)


@pytest.mark.equation("D22")
def test_flipout():
    # of each row: a sign times a normal number, uncorrelated between rows
    e, signs = reals("e"), list(product((-1, 1), repeat=2))
    for r, c in signs:
        equal([expectation((r * c * e) ** k, e) for k in (1, 2, 3, 4)],
              [expectation(e**k, e) for k in (1, 2, 3, 4)])  # fmt: skip
    mean = sum(Rational(r * c * r2 * c2, 16) for r, c in signs for r2, c2 in signs)
    assert mean == 0
    # the same sizes are shared: squares are correlated
    equal(expectation(e**2 * e**2, e) - expectation(e**2, e) ** 2, 2)
    # z, with the signs pulled out of the sum, and with weights of each row's own
    flips = [(matrix(f"R{k}", 2, rows), matrix(f"C{k}", 2, columns), matrix(f"T{k}", 2, columns))
             for k, (rows, columns) in enumerate(((2, 2), (2, 1)))]  # fmt: skip
    pushes = layers([softplus(r) * n for r, n in zip(RAWS, DRAWN, strict=True)])
    means = layers(MEANS)
    inputs, pre = ROWS, []
    for k, (r, c, t) in enumerate(flips):
        together = (inputs * means[k][0] + elementwise(elementwise(inputs, r) * pushes[k][0], c)
                    + repeated(means[k][1]) + elementwise(t, repeated(pushes[k][1])))  # fmt: skip
        for row in range(2):
            own = means[k][0] + Matrix(
                means[k][0].rows, means[k][0].cols,
                lambda i, j: r[row, i] * c[row, j] * pushes[k][0][i, j],  # noqa: B023
            )  # fmt: skip
            bias = means[k][1] + elementwise(t[row, :], pushes[k][1])
            if k == 0:
                equal(together[row, :], inputs[row, :] * own + bias)
        pre.append(together)
        inputs = elementwise(pre[0], GATES)
    # the box, of the last layer, in letters
    g, a = matrix("g", 2, 1), matrix("a", 2, 2)
    r, c, t = flips[1]
    delta, bias = matrix("D", 2, 1), matrix("Db", 1, 1)
    z = (a * means[1][0] + elementwise(elementwise(a, r) * delta, c) + repeated(means[1][1])
         + elementwise(t, repeated(bias)))  # fmt: skip
    pairing = sum(elementwise(g, z))
    flipped = elementwise(g, c)
    equal([diff(pairing, each) for each in means[1][0]], a.T * g)
    equal([diff(pairing, each) for each in delta], elementwise(a, r).T * flipped)
    equal([diff(pairing, each) for each in bias], [sum(elementwise(g, t))])
    equal([diff(pairing, each) for each in a],
          g * means[1][0].T + elementwise(flipped * delta.T, r))  # fmt: skip

    cost = nll(pre[1])
    values = assign(22, MEANS, RAWS, DRAWN, ROWS, TARGETS)
    chosen = np.random.default_rng(2)
    for each in (letter for flip in flips for part in flip for letter in part):
        values[each] = float(chosen.choice([-1.0, 1.0]))
    noise = floats(values, [*DRAWN, *(letter for flip in flips for part in flip
                                      for letter in part)])  # fmt: skip
    values, found = rowwise(Flipout, values, noise, pre[0])
    ships(found.value, cost, values)
    ships(found.grad, [diff(cost, each) for each in (*MEANS, *RAWS)], values, rtol=1e-11)


@pytest.mark.equation("D23")
def test_antithetic_noise_keeps_the_even_part():
    e, c = reals("e"), reals("c:5")
    h = sum(c[k] * e**k for k in range(5))
    even, odd = (h + h.subs(e, -e)) / 2, (h - h.subs(e, -e)) / 2
    equal(even + odd, h)
    equal([expectation(even * odd, e), expectation(odd, e)], [0, 0])

    def variance(line):
        return expectation(line**2, e) - expectation(line, e) ** 2

    equal(variance(h), variance(even) + variance(odd))
    # two independent samples, and a pair
    f = reals("f")
    independent = (h + h.subs(e, f)) / 2
    spread = expectation(independent**2, e, f) - expectation(independent, e, f) ** 2
    equal(spread, (variance(even) + variance(odd)) / 2)
    pair = (h + h.subs(e, -e)) / 2
    equal(variance(pair), variance(even))
    off_by(variance(pair), spread, (variance(even) - variance(odd)) / 2)
    # linear regression: for mu the pair is exact, for rho the quadratic part stays
    lam = Matrix([[positives("a"), reals("b")], [reals("b"), positives("c")]])
    noise, away = Matrix(reals("n:2")), Matrix(reals("d:2"))
    slope = lam * (away + diag(*DEVIATION) * noise)
    flip = dict(zip(noise, -noise, strict=True))
    equal((slope + slope.subs(flip, simultaneous=True)) / 2, lam * away)
    for_rho = elementwise(slope, noise)
    even = (for_rho + for_rho.subs(flip, simultaneous=True)) / 2
    equal(even, elementwise(lam * diag(*DEVIATION) * noise, noise))

    estimator = Reparameterised(model(), antithetic=True)
    drawn = estimator.draw(np.random.default_rng(0), 4)
    np.testing.assert_array_equal(drawn[2:], -drawn[:2])
    values, _ = shipped(23, estimator)
    theta, x, y = (floats(values, [*MU, *RHO]), floats(values, X, (2, 1)),
                   floats(values, Y, (2, 1)))  # fmt: skip
    found = estimator.value_and_grad(theta, drawn, x, y).grad
    cost = -LOG_PRIOR - LOG_LIKELIHOOD
    line = [diff(cost, each).subs(dict(zip(W, MU, strict=True))) for each in W]
    ships(found[:2], line, values, rtol=1e-11)


@pytest.mark.equation("D24")
def test_tempering_and_warm_up():
    beta, kl, expected = positives("beta"), reals("KL"), reals("E")
    tempered = beta * kl - expected
    equal(tempered / beta, kl - expected / beta)  # K5 with the likelihood to the power 1/beta
    equal(-tempered, -(kl - expected) + (1 - beta) * kl)
    off_by(-tempered, -(kl - expected), (1 - beta) * kl)
    # a linear model: precision and mean of the tempered and of the cold posterior
    n, t, (x, y) = positives("n"), positives("T"), reals("x y")
    a, noise, prior = reals("a"), positives("v"), positives("u")

    def gaussian_of(line):  # of a log density that is a parabola in a: precision and mean
        precision = -diff(line, a, 2)
        return precision, sympy.solve(diff(line, a), a)[0]

    likelihood, before = -n * (y - a * x) ** 2 / (2 * noise), -(a**2) / (2 * prior)
    precision, centre = gaussian_of(before + likelihood)
    tempered_precision, tempered_centre = gaussian_of(before + likelihood / beta)
    equal(tempered_precision, 1 / prior + n * x**2 / (beta * noise))
    equal(sympy.limit(tempered_centre, beta, 0), y / x)  # least squares
    equal(gaussian_of((before + likelihood) / t), (precision / t, centre))  # both to the power 1/T
    narrower = before.subs(prior, t * prior)
    equal(gaussian_of(narrower + likelihood / t), (precision / t, centre))
    # the smaller beta, the farther from the prior: of any finite family
    away = np.linspace(0.1, 5.0, 500)  # KL to the prior
    misfit = 1 / away + 0.1 * np.random.default_rng(0).uniform(size=500)  # expected NLL
    order = [away[np.argmin(each * away + misfit)] for each in np.logspace(-1, 1, 30)]
    assert order == sorted(order, reverse=True)
    assert len(set(order)) > 10
    terms = [reals(f"{name}:2") for name in ("logq", "logp", "logl")]
    values = {**assign(24, *terms, [beta]), share: 0.3}
    line = sum(beta * share * (terms[0][k] - terms[1][k]) - terms[2][k] for k in range(2)) / 2
    given = LogDensities(*(floats(values, each) for each in terms))
    value, cotangents = FreeEnergy(values[beta])(given, 0.3)
    ships(value, line, values)
    ships(np.concatenate(cotangents), [diff(line, each) for row in terms for each in row], values)
    # ramps: min((e + 1)/R, 1) over R = 4 of 8 epochs, and one in each of two cycles
    ramp = [min(Rational(e + 1, 4), 1) for e in range(8)]
    ships([LinearWarmUp(0.5)(e, 8) for e in range(8)], ramp, {})
    ships([CyclicalWarmUp(2, 1.0)(e, 8) for e in range(8)], [*ramp[:4], *ramp[:4]], {})
    shares = reals("pi:3")
    equal(sum(beta * each for each in shares), beta * sum(shares))


# Importance weights of two samples
TERMS = LogDensities(reals("logq:2"), reals("logp:2"), reals("logl:2"))
LOG_OMEGA = [b + c - a for a, b, c in zip(*TERMS, strict=True)]


def renyi(logs, alpha):
    """The estimate of D25 for explicit numbers of samples."""
    return log(sum(exp((1 - alpha) * each) for each in logs) / len(logs)) / (1 - alpha)


@pytest.mark.equation("D25")
def test_the_renyi_and_the_importance_weighted_bounds():
    # what it bounds: P(D)^(1 - alpha) comes out of E_q[omega^(1 - alpha)]
    q, post, evidence, order = positives("q:3"), positives("p:3"), positives("Z"), positives("d")
    inside = sum(q[k] * (post[k] * evidence / q[k]) ** order for k in range(3))
    equal(sympy.expand_power_base(inside),
          sympy.expand_power_base(evidence**order
                                  * sum(q[k] * (post[k] / q[k]) ** order
                                        for k in range(3))))  # fmt: skip
    # the limit alpha -> 1, to first order: half the variance of log omega
    delta, logs = reals("delta"), reals("l:2")
    mean = sum(logs) / 2
    bound = log(sum(exp(delta * each) for each in logs) / 2)  # times 1/delta
    slopes = [diff(bound, delta, k).subs(delta, 0) for k in (1, 2)]
    equal(slopes, [mean, sum((each - mean) ** 2 for each in logs) / 2])
    # the mean taken out first
    centred = mean + log(1 + sum(exp(delta * (each - mean)) - 1 for each in logs) / 2) / delta
    plain = bound / delta
    at = {logs[0]: 0.3, logs[1]: -0.5, delta: 0.7}
    np.testing.assert_allclose(number(centred, at), number(plain, at), rtol=1e-13)
    equal(sympy.powsimp(sympy.expand(exp(delta * mean) * sum(exp(delta * (each - mean))
                                                             for each in logs))),
          sum(exp(delta * each) for each in logs))  # fmt: skip
    # the gradient: a softmax, whose shares sum to 1
    alpha = Rational(1, 3)
    shares = [exp((1 - alpha) * each) for each in logs]
    u = [each / sum(shares) for each in shares]
    equal([diff(renyi(logs, alpha), each) for each in logs], u)
    equal(sum(u), 1)

    values = assign(25, *TERMS)
    given = LogDensities(*(floats(values, each) for each in TERMS))
    for order in (0.0, 0.5, -1.0, 2.0):
        value, cotangents = Renyi(order)(given, 1.0)
        line = -renyi(LOG_OMEGA, Rational(order))
        ships(value, line, values, rtol=1e-11)
        letters = [each for row in TERMS for each in row]
        ships(
            np.concatenate(cotangents), [diff(line, each) for each in letters], values, rtol=1e-11
        )
    # the box, through the shipped estimator
    values, found = shipped(25, Reparameterised(model(), MeanField(), Renyi(0.0)))
    at_samples = [(LOG_PRIOR + LOG_LIKELIHOOD - LOG_Q).subs(AT).subs(each) for each in SAMPLES]
    weights = [exp(each) for each in at_samples]
    d_w = [[-diff(LOG_PRIOR + LOG_LIKELIHOOD, each).subs(sample) for each in W]
           for sample in SAMPLES]  # fmt: skip
    for_mu = [sum(weights[k] * d_w[k][j] for k in range(2)) / sum(weights) for j in range(2)]
    for_rho = [
        (sum(weights[k] * d_w[k][j] * EPS[k, j] for k in range(2)) / sum(weights) - 1 / SIGMA[j])
        * sigmoid(RHO[j])
        for j in range(2)
    ]
    ships(found.value, -renyi(at_samples, 0), values, rtol=1e-11)
    ships(found.grad, [*for_mu, *for_rho], values, rtol=1e-11)


@pytest.mark.equation("D26")
def test_the_doubly_reparameterised_gradient():
    # the score identity, for a polynomial of a Gaussian number
    (w, e, mean), deviation = reals("w e m"), positives("d")
    c = reals("c:5")
    h = sum(c[k] * w**k for k in range(5))
    density, moved = log_gaussian(w, mean, deviation), {w: mean + deviation * e}
    for theta in (mean, deviation):
        score = (h * diff(density, theta)).subs(moved)
        path = diff(h, w).subs(moved) * diff(mean + deviation * e, theta)
        equal(expectation(score, e), diff(expectation(h.subs(moved), e), theta),
              expectation(path, e))  # fmt: skip
    # the slope of a share, its sample alone moving
    omega, rest = sympy.Function("omega")(w), positives("T")
    share_ = omega / (omega + rest)
    slope = diff(omega, w) / omega
    equal(diff(share_, w), share_ * (1 - share_) * slope)
    letter = reals("hat")
    equal(-letter + letter * (1 - letter), -(letter**2))
    off_by(-letter, -(letter**2), -letter + letter**2)  # D20 inside the weighted sum: biased
    alpha = reals("alpha")
    general = letter - (1 - alpha) * letter * (1 - letter)
    equal(general, alpha * letter + (1 - alpha) * letter**2)
    equal([general.subs(alpha, each) for each in (0, 1)], [letter**2, letter])

    log_omega = LOG_PRIOR + LOG_LIKELIHOOD - LOG_Q
    at = [log_omega.subs(AT).subs(each) for each in SAMPLES]
    hats = [exp(each) / sum(exp(other) for other in at) for each in at]
    slopes = [[diff(log_omega, each).subs(AT).subs(sample) for each in W] for sample in SAMPLES]
    line = [
        *(-sum(hats[k] ** 2 * slopes[k][j] for k in range(2)) for j in range(2)),
        *(
            -sum(hats[k] ** 2 * slopes[k][j] * EPS[k, j] for k in range(2)) * sigmoid(RHO[j])
            for j in range(2)
        ),
    ]
    values, found = shipped(26, DoublyReparameterised(model(), MeanField(), Renyi(0.0)))
    ships(found.grad, line, values, rtol=1e-11)
    # one sample: that is D20
    values, one = shipped(26, DoublyReparameterised(model(), MeanField(), Renyi(0.0)), samples=1)
    _, landing = shipped(26, StickingTheLanding(model()), samples=1)
    np.testing.assert_allclose(one.grad, landing.grad, rtol=1e-12)


@pytest.mark.equation("D27")
def test_learned_numbers_under_the_upper_bound():
    # three weight vectors; psi in the joint density
    psi = reals("psi")
    joint = [sympy.Function(f"p{k}")(psi) for k in range(3)]
    q = positives("q:3")
    evidence = sum(joint)
    posterior = [each / evidence for each in joint]
    h = [diff(each, psi) / each for each in joint]  # slopes of log P(w, D)

    def mean(values):
        return sum(p * value for p, value in zip(posterior, values, strict=True))

    equal(diff(log(evidence), psi), mean(h))  # Fisher's identity
    equal([diff(each, psi) for each in posterior],
          [each * (slope - mean(h)) for each, slope in zip(posterior, h, strict=True)])  # fmt: skip
    logs = [log(p) - log(each) for p, each in zip(joint, q, strict=True)]
    upper = mean(logs)
    covariance = mean([a * b for a, b in zip(h, logs, strict=True)]) - mean(h) * upper
    right = covariance + mean(h)
    equal(diff(upper, psi), right)
    # as printed in G4: (log omega + 1) h, too large by U E[h]
    printed = mean([(a + 1) * b for a, b in zip(logs, h, strict=True)])
    letters = {**{each: positives("a:3")[k] for k, each in enumerate(joint)},
               **{diff(each, psi): reals("d:3")[k] for k, each in enumerate(joint)}}  # fmt: skip
    slopes = {key: value for key, value in letters.items() if key.is_Derivative}
    values_ = {key: value for key, value in letters.items() if not key.is_Derivative}
    off_by(*(line.xreplace(slopes).xreplace(values_)
             for line in (printed, right, upper * mean(h))))  # fmt: skip
    # where q is the posterior, descending U is descending the evidence
    best = dict(zip(q, posterior, strict=True))
    difference = (right.subs(best) - mean(h)).xreplace(slopes).xreplace(values_)
    equal(sympy.simplify(sympy.expand_log(difference, force=True)), 0)

    t = reals("log_noise")
    learned = SelfNormalised(model(learn=True), MeanField(), EUBO())
    values, found = shipped(27, learned, more=[t])
    noisy = (LOG_PRIOR + LOG_LIKELIHOOD).subs(v, exp(t))
    at = [(noisy - LOG_Q).subs(AT).subs(each) for each in SAMPLES]
    hats = [exp(each) / sum(exp(other) for other in at) for each in at]
    line = -sum(hat * diff(noisy, t).subs(sample) for hat, sample in zip(hats, SAMPLES,
                strict=True))  # fmt: skip
    ships(found.grad[-1:], line, values, rtol=1e-11)


@pytest.mark.equation("D28")
def test_where_the_objectives_lead():
    # inclusive KL, any posterior with these moments
    m, c, mean, deviation, w = reals("m"), positives("C"), reals("mu"), positives("d"), reals("w")
    e = reals("e")
    cross = -expectation(log_gaussian(w, mean, deviation).subs(w, m + sqrt(c) * e), e)
    split = log(deviation) + HALF * LOG_2PI + (c + (m - mean) ** 2) / (2 * deviation**2)
    equal(cross, split)
    best = {mean: m, deviation: sqrt(c)}
    equal([diff(split, each).subs(best) for each in (mean, deviation)], [0, 0])
    # both gaps, two weights: half the log of diagonal over determinant, the same for C = Lambda^-1
    lam = Matrix([[positives("a"), reals("b")], [reals("b"), positives("c")]])
    covariance = lam.inv()
    det = positives("det")
    ratio = lam[0, 0] * lam[1, 1] / lam.det()
    equal(covariance[0, 0] * covariance[1, 1] / covariance.det(), ratio)
    equal(covariance[0, 0] * lam[0, 0] - 1, lam[0, 1] ** 2 / lam.det())  # C_jj >= 1/Lambda_jj
    r = reals("r")
    correlated = Matrix([[1, r], [r, 1]])
    equal(correlated.det(), 1 - r**2)
    equal(correlated.inv()[0, 0] * (1 - r**2), 1)  # the variances differ by 1 - r^2
    entropy = HALF * (2 * LOG_2PI + 2 + log(det))
    crossed = HALF * sum(LOG_2PI + 1 + log(each) for each in (c, deviation))
    equal(crossed - entropy, HALF * (log(c) + log(deviation) - log(det)))
    # the mean of three weights is that of the means of two; expanding the logarithm, 1/(2k)
    omega, k, gap = positives("o:3"), positives("k"), reals("x")
    equal(sum(omega) / 3, sum(sum(omega) - each for each in omega) / 2 / 3)
    assert sympy.series(log(1 + gap), gap, 0, 3).removeO() == gap - gap**2 / 2
    equal(expectation((e / sqrt(k)) ** 2, e) / 2, 1 / (2 * k))

    values = {positives("a"): 2.0, reals("b"): 0.7, positives("c"): 1.3}
    precision = number(lam, values).reshape(2, 2)
    center = np.array([0.3, -0.4])
    truth = linear_gaussian.Exact(
        linear_gaussian.Gaussian(center, np.linalg.inv(precision)), precision, -5.0
    )
    reverse, inclusive = (f(truth) for f in (linear_gaussian.reverse_optimum,
                                             linear_gaussian.inclusive_optimum))  # fmt: skip
    ships(np.diag(reverse.covariance), [1 / lam[j, j] for j in range(2)], values)
    ships(np.diag(inclusive.covariance), [covariance[j, j] for j in range(2)], values)
    gap = HALF * log(ratio)
    ships(linear_gaussian.kl(reverse, truth.posterior), gap, values, rtol=1e-11)
    ships(linear_gaussian.kl(truth.posterior, inclusive), gap, values, rtol=1e-11)
    ships(linear_gaussian.elbo(truth, reverse), -5 - gap, values, rtol=1e-11)
    ships(linear_gaussian.eubo(truth, inclusive), -5 + gap, values, rtol=1e-11)
    # the posterior is in the full-rank family
    theta = FullRank().pack(center, truth.posterior.covariance)
    blocks = {"mu": theta[:2], "rho": theta[2:4], "lower": theta[4:]}
    factor = FullRank().factor(blocks, Buffers()).lower
    ships(factor @ factor.T, covariance, values)
    assert (lam * covariance).applyfunc(sympy.simplify) == eye(2)


@pytest.mark.equation("D30")
def test_minibatches_of_objectives_that_are_not_linear():
    # two samples, two minibatches
    constant, parts, pi = reals("C:2"), matrix("l", 2, 2), reals("pi")
    shares = [pi, 1 - pi]
    scaled = [[constant[k] + parts[i, k] / shares[i] for k in range(2)] for i in range(2)]
    whole = [constant[k] + parts[0, k] + parts[1, k] for k in range(2)]
    linear = sum(-shares[i] * sum(scaled[i]) / 2 for i in range(2))
    equal(linear, -sum(whole) / 2)  # D6
    equal([sum(shares[i] * scaled[i][k] for i in range(2)) for k in range(2)], whole)
    unscaled = [constant[k] + sum(shares[i] * parts[i, k] for i in range(2)) for k in range(2)]
    off_by(unscaled, whole, [-(1 - pi) * parts[0, k] - pi * parts[1, k] for k in range(2)])
    # logsumexp is convex: along (1, -1) its second derivative is 4 u (1 - u), along (1, 1) none
    t, a, b = reals("t a b")
    for direction, curvature in (((1, -1), 4), ((1, 1), 0)):
        line = log(exp(a + direction[0] * t) + exp(b + direction[1] * t))
        u = exp(a) / (exp(a) + exp(b))
        equal(diff(line, t, 2).subs(t, 0), curvature * u * (1 - u))

    terms = LogDensities(reals("logq:2"), reals("logp:2"), reals("logl:2"))
    values = {**assign(30, *terms), pi: 0.25}
    given = LogDensities(*(floats(values, each) for each in terms))
    logs = [p - q + like / pi for q, p, like in zip(*terms, strict=True)]
    ships(log_weights(given, 0.25), logs, values)
    bound = -pi * log(sum(exp(each) for each in logs) / 2)
    value, cotangents = Renyi(0.0)(given, 0.25)
    ships(value, bound, values)
    letters = [each for row in terms for each in row]
    ships(np.concatenate(cotangents), [diff(bound, each) for each in letters], values)
    hats = [exp(each) / sum(exp(other) for other in logs) for each in logs]
    line = pi * sum(hat * each for hat, each in zip(hats, logs, strict=True))
    ships(EUBO()(given, 0.25)[0], line, values)
    assert Integer(1) == sum(shares)
