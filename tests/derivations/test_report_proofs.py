"""K1 to K44: each line of the report's derivations equals the line before, by algebra.

The last line of each is compared with the shipped code at a random point, so that a sign that
flips in either is seen by the test that carries the tag. What the report prints wrongly is refuted
with the amount by which it is wrong.
"""

from itertools import pairwise

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
    gaussian,
    matrix,
    number,
    off_by,
    positives,
    reals,
    ships,
    sigmoid,
    softplus,
)
from sympy import Matrix, diff, exp, log, ones, pi, sqrt
from sympy.matrices.exceptions import ShapeError

from bbb_numpy import (
    MLP,
    GaussianLikelihood,
    GaussianPrior,
    MeanField,
    Model,
    Reparameterised,
)
from bbb_numpy.model.objectives import (
    LogDensities,
    free_energy,
    likelihood_term,
    posterior_term,
    prior_term,
)
from bbb_numpy.numeric import elementary
from bbb_numpy.numeric.buffers import Buffers
from bbb_numpy.parts import network
from bbb_numpy.training.optimizers import SGD

# Two weights, two samples of each; sigma_data and the noise of y; the share pi_i of a minibatch.
MU, RHO = reals("mu:2"), reals("rho:2")
EPS = matrix("e", 2, 2)  # (S, P)
SIGMA = positives("sigma:2")
SIGMA_DATA, SIGMA_Y, SHARE = positives("sigma_data sigma_y share")
Y, F = matrix("y", 2, 2), matrix("f", 2, 2)  # (B, K)

mu, rho, eps, w, u = reals("mu rho epsilon w u")
sigma = positives("sigma")


# Section 3


@pytest.mark.equation("K1")
def test_independent_noise_makes_weights_uncorrelated_and_shared_noise_does_not():
    e = reals("e:2")
    weights = [MU[j] + SIGMA[j] * e[j] for j in range(2)]
    covariance = expectation((weights[0] - MU[0]) * (weights[1] - MU[1]), *e)
    equal(covariance, SIGMA[0] * SIGMA[1] * expectation(e[0] * e[1], *e), 0)
    equal(expectation((weights[0] - MU[0]) ** 2, *e), SIGMA[0] ** 2)
    one_number = expectation((SIGMA[0] * e[0]) * (SIGMA[1] * e[0]), *e)
    off_by(one_number, covariance, SIGMA[0] * SIGMA[1])  # correlation 1

    noise = reparameterised().draw(np.random.default_rng(0), 2)
    assert noise.shape == (2, 2)
    assert np.unique(noise).size == 4  # one number for every weight of every sample


@pytest.mark.equation("K3")
def test_softplus_is_positive_increasing_and_inverted_by_log_of_e_to_sigma_minus_one():
    e_rho = positives("u")  # e^rho > 0
    assert log(1 + e_rho).is_positive
    equal(diff(softplus(rho), rho), sigmoid(rho))  # > 0
    equal(log(exp(softplus(rho)) - 1), rho)
    assert sympy.limit(log(1 + e_rho) / e_rho, e_rho, 0) == 1  # far left sigma is e^rho
    assert sympy.limit(log(1 + e_rho) - log(e_rho), e_rho, sympy.oo) == 0  # far right it is rho

    values = assign(1, [rho])
    ships(elementary.softplus(values[rho]), softplus(rho), values)
    ships(MeanField().pack(np.zeros(1), np.exp([values[rho]]))[1], log(exp(exp(rho)) - 1), values)


@pytest.mark.equation("K4")
def test_mu_plus_sigma_eps_has_the_density_q():
    c, z, t = reals("c z t")
    assert sympy.solve(mu + sigma * z - c, z) == [(c - mu) / sigma]
    distribution = (1 + sympy.erf(z / sqrt(2))) / 2  # Phi
    equal(diff(distribution, z), exp(-(z**2) / 2) / sqrt(2 * pi))  # phi
    at_c = distribution.subs(z, (c - mu) / sigma)
    equal(diff(at_c, c), gaussian(c, mu, sigma))
    assert expectation(mu + sigma * t, t) == mu
    assert expectation((sigma * t) ** 2, t) == sigma**2

    values = assign(2, MU, RHO, EPS)
    line = [MU[j] + softplus(RHO[j]) * EPS[s, j] for s in range(2) for j in range(2)]
    ships(sample(values).w, line, values)


def reparameterised(objective=free_energy, sizes=(1, 1)):
    """The shipped estimator of the report's model, at fixed numbers for its two scales."""
    model = Model(MLP(sizes), GaussianPrior(PRIOR), GaussianLikelihood(NOISE))
    return Reparameterised(model, MeanField(), objective)


PRIOR, NOISE = 0.7, 1.3


def with_scales(values):
    """Set the scales to the numbers of the shipped parts."""
    return {**values, SIGMA_DATA: PRIOR, SIGMA_Y: NOISE}


def sample(values):
    """The shipped weights of two samples, and what their density needs."""
    blocks = {"mu": floats(values, MU), "rho": floats(values, RHO)}
    return MeanField().sample(blocks, floats(values, EPS, (2, 2)), Buffers())


# Section 4


@pytest.mark.equation("K5")
def test_free_energy_is_kl_to_the_posterior_minus_log_evidence():
    # three weight vectors that w may be, with probabilities q, prior and likelihood
    q, prior, likelihood = positives("q:3"), positives("p:3"), positives("l:3")
    evidence = sum(p * like for p, like in zip(prior, likelihood, strict=True))
    posterior = [p * like / evidence for p, like in zip(prior, likelihood, strict=True)]
    log_evidence = log(evidence)  # one letter, so that no expansion touches the sum inside
    log_posterior = [
        log(p) + log(like) - log_evidence for p, like in zip(prior, likelihood, strict=True)
    ]
    equal([exp(each) for each in log_posterior], posterior)  # Bayes' rule
    divergence = sum(q[k] * (log(q[k]) - log_posterior[k]) for k in range(3))
    terms = [log(q[k]) - log(prior[k]) - log(likelihood[k]) for k in range(3)]
    free = sum(q[k] * terms[k] for k in range(3))
    equal(divergence.subs(q[2], 1 - q[0] - q[1]), (free + log_evidence).subs(q[2], 1 - q[0] - q[1]))
    # without log P(D), as some write it, the divergence to the posterior is missed by that constant
    off_by(free, free + log_evidence, -log_evidence)
    # "a.k.a. expected lower bound": it is minus the ELBO
    off_by(-free, free, -2 * free)
    # log v <= v - 1, with equality at 1: its difference is 0 there and bends upwards
    v = positives("v")
    gap = v - 1 - log(v)
    assert gap.subs(v, 1) == 0
    assert sympy.solve(diff(gap, v), v) == [1]
    assert diff(gap, v, 2).is_positive
    equal(sum(q[k] * (posterior[k] / q[k]) for k in range(3)) - 1, 0)  # so KL >= 0

    of_samples = [reals(f"{name}:2") for name in ("logq", "logp", "logl")]
    bracket = [a - b - c for a, b, c in zip(*of_samples, strict=True)]
    mean = sum(bracket) / 2
    off_by(sum(bracket), mean, (2 - 1) * mean)  # the printed sum estimates n F
    values = assign(3, *of_samples)
    found, _ = free_energy(LogDensities(*(floats(values, each) for each in of_samples)), 1.0)
    ships(found, mean, values)


def printed_log_q(j):
    """K6: log of the density of weight j, nothing taken apart."""
    return log(gaussian(W[j], MU[j], SIGMA[j]))


W = reals("w:2")
K7 = [log(1) - log(SIGMA[j]) - HALF * LOG_2PI - (W[j] - MU[j]) ** 2 / (2 * SIGMA[j] ** 2)
      for j in range(2)]  # fmt: skip
K8 = sum(-log(SIGMA[j]) - HALF * LOG_2PI - (W[j] - MU[j]) ** 2 / (2 * SIGMA[j] ** 2)
         for j in range(2))  # fmt: skip
K9 = sum(-log(SIGMA[j]) - (W[j] - MU[j]) ** 2 / (2 * SIGMA[j] ** 2) for j in range(2))


def of_theta(line, s):
    """A line in w and sigma as a function of mu, rho and the noise of sample s: K3 and K4."""
    weights = {W[j]: MU[j] + SIGMA[j] * EPS[s, j] for j in range(2)}
    return line.subs(weights).subs({SIGMA[j]: softplus(RHO[j]) for j in range(2)})


@pytest.mark.equation("K6")
def test_log_q_is_the_log_of_a_product_of_densities():
    product = gaussian(W[0], MU[0], SIGMA[0]) * gaussian(W[1], MU[1], SIGMA[1])
    equal(log(product), printed_log_q(0) + printed_log_q(1))
    off_by(printed_log_q(0), log(product), -printed_log_q(1))  # one weight of two
    # sigma is a deviation: the variances, not the sigmas, stand on the diagonal of the covariance
    noise = reals("noise")
    off_by(sigma, expectation((sigma * noise) ** 2, noise), sigma - sigma**2)
    ships_log_q(4, printed_log_q(0) + printed_log_q(1))


def ships_log_q(seed, line):
    """The shipped log q of both samples is `line`."""
    values = assign(seed, MU, RHO, EPS)
    ships(MeanField().log_density(sample(values)), [of_theta(line, s) for s in range(2)], values)


@pytest.mark.equation("K7")
def test_the_logarithm_of_the_density_of_each_weight():
    a, b = positives("a b")
    equal(log(a * exp(-b)), log(a) - b)
    equal(log(1 / (sigma * sqrt(2 * pi))), log(1) - log(sigma) - HALF * LOG_2PI)
    for j in range(2):
        equal(printed_log_q(j), K7[j])
    off_by(K7[0], sum(K7), -K7[1])  # one weight of two
    ships_log_q(5, sum(K7))


@pytest.mark.equation("K8")
def test_log_1_is_0():
    equal(sum(K7), K8)
    off_by(K7[0], K8, -K7[1])  # printed for one weight of two
    ships_log_q(6, K8)


@pytest.mark.equation("K9")
def test_the_constant_of_log_q_cancels_against_that_of_the_prior():
    off_by(K9, K8, 2 * HALF * LOG_2PI)  # P = 2
    one = -log(SIGMA[0]) - (W[0] - MU[0]) ** 2 / (2 * SIGMA[0] ** 2)
    off_by(one, K9, one - K9)  # one weight of two
    off_by(K13, K12, 2 * HALF * LOG_2PI)
    equal(K9 - K13, K8 - K12)
    # F of no rows is log q - log P(w)
    values = with_scales(assign(7, MU, RHO, EPS))
    line = sum(of_theta(K9 - K13, s) for s in range(2)) / 2
    theta, noise = floats(values, [*MU, *RHO]), floats(values, EPS, (2, 2))
    nothing = np.zeros((0, 1))
    ships(reparameterised().value_and_grad(theta, noise, nothing, nothing).value, line, values)
    ships(MeanField().log_density(sample(values)) + LOG_2PI.evalf(),
          [of_theta(K9, s) for s in range(2)], values)  # fmt: skip


@pytest.mark.equation("K10")
def test_in_terms_of_the_noise_log_q_has_no_mu_left():
    one = -log(sigma) - (w - mu) ** 2 / (2 * sigma**2)
    k10 = -log(sigma) - eps**2 / 2
    equal(one.subs(w, mu + sigma * eps), k10)
    # total derivatives, read off K10 and computed from K9
    deviation = softplus(rho)
    slope = diff(deviation, rho)
    assert diff(k10.subs(sigma, deviation), mu) == 0
    by_parts = -slope / deviation - eps**2 * slope / deviation + eps**2 * slope / deviation
    total = diff(one.subs(w, mu + sigma * eps).subs(sigma, deviation), rho)
    equal(diff(k10.subs(sigma, deviation), rho), total, by_parts, -slope / deviation)
    # the direct partials of K9 added again
    direct_mu = diff(one, mu).subs(w, mu + sigma * eps)
    off_by(0 + direct_mu, 0, eps / sigma)
    direct_rho = (diff(one, sigma) * slope).subs(w, mu + sigma * eps).subs(sigma, deviation)
    off_by(total + direct_rho, total, (eps**2 - 1) * slope / deviation)

    ships_log_q(8, sum(-log(SIGMA[j]) - HALF * LOG_2PI - ((W[j] - MU[j]) / SIGMA[j]) ** 2 / 2
                       for j in range(2)))  # fmt: skip
    values = assign(9, MU, RHO, EPS)
    theta, noise = floats(values, [*MU, *RHO]), floats(values, EPS, (2, 2))
    nothing = np.zeros((0, 1))
    gradient = reparameterised(posterior_term).value_and_grad(theta, noise, nothing, nothing).grad
    ships(gradient, [0, 0, *(-sigmoid(r) / softplus(r) for r in RHO)], values)


K12 = (
    -2 * log(SIGMA_DATA) - 2 * HALF * LOG_2PI - (W[0] ** 2 + W[1] ** 2) / (2 * SIGMA_DATA**2)
)  # P = 2
K13 = sum(-log(SIGMA_DATA) - HALF * W[j] ** 2 / SIGMA_DATA**2 for j in range(2))


def ships_log_prior(seed, line, missing=0.0):
    """The shipped log P(w) plus `missing` is `line`."""
    values = with_scales(assign(seed, W))
    found, _ = GaussianPrior(PRIOR).log_density({}, floats(values, W, (1, 2)), Buffers())
    ships(found + missing, line, values)


@pytest.mark.equation("K11")
def test_the_prior_is_a_product_of_densities():
    each = [log(gaussian(W[j], 0, SIGMA_DATA)) for j in range(2)]
    product = log(gaussian(W[0], 0, SIGMA_DATA) * gaussian(W[1], 0, SIGMA_DATA))
    equal(product, sum(each))
    off_by(each[0], product, -each[1])  # one weight of two
    ships_log_prior(10, sum(each))


@pytest.mark.equation("K12")
def test_the_logarithm_of_the_prior():
    printed = [
        log(1) - log(SIGMA_DATA) - HALF * LOG_2PI - W[j] ** 2 / (2 * SIGMA_DATA**2)
        for j in range(2)
    ]
    equal([log(gaussian(W[j], 0, SIGMA_DATA)) for j in range(2)], printed)
    equal(sum(printed), K12)
    off_by(printed[0], K12, -printed[1])  # one weight of two
    ships_log_prior(11, K12)


@pytest.mark.equation("K13")
def test_the_prior_without_its_constant_and_its_slope():
    off_by(K13, K12, 2 * HALF * LOG_2PI)
    one = -log(SIGMA_DATA) - HALF * W[0] ** 2 / SIGMA_DATA**2
    off_by(one, K13, log(SIGMA_DATA) + HALF * W[1] ** 2 / SIGMA_DATA**2)  # one weight of two
    slope = [-W[j] / SIGMA_DATA**2 for j in range(2)]
    equal([diff(K13, W[j]) for j in range(2)], slope)
    ships_log_prior(12, K13, missing=float(LOG_2PI))
    ships_prior_slope(12, slope)


def ships_prior_slope(seed, line):
    values = with_scales(assign(seed, W))
    at, d_w = floats(values, W, (1, 2)), np.zeros((1, 2))
    prior = GaussianPrior(PRIOR)
    _, saved = prior.log_density({}, at, Buffers())
    prior.add_vjp(saved, np.ones(1), d_w, {})
    ships(d_w, line, values)


K15 = -2 * LOG_2PI - 4 * log(SIGMA_Y) - sum(each**2 for each in Y - F) / (2 * SIGMA_Y**2)  # B K = 4


def shipped_log_likelihood(values, scale=NOISE):
    """The shipped log P(D | w) of two rows with two outputs, and the slope for the outputs."""
    likelihood = GaussianLikelihood(scale)
    outputs, targets = floats(values, F, (1, 2, 2)), floats(values, Y, (2, 2))
    rowwise, saved = likelihood.log_density({}, outputs, targets)
    return rowwise.sum(), likelihood.vjp(saved, np.ones(1), {})


@pytest.mark.equation("K14")
def test_the_likelihood_is_a_product_over_rows_and_outputs():
    each = [gaussian(y, f, SIGMA_Y) for y, f in zip(Y, F, strict=True)]
    line = sum(log(density) for density in each)
    equal(log(each[0] * each[1] * each[2] * each[3]), line)
    unit = log(gaussian(Y[0], F[0], 1))  # as printed: one target, unit variance
    off_by(unit, log(each[0]), unit - log(each[0]))
    equal(unit - log(each[0]), log(SIGMA_Y) - (Y[0] - F[0]) ** 2 * (1 - SIGMA_Y**-2) / 2)
    off_by(unit, line.subs(SIGMA_Y, 1), -sum(log(gaussian(Y[k], F[k], 1)) for k in (1, 2, 3)))
    # the residual has mean 0; the likelihood is no Gaussian variable
    noise = reals("noise")
    assert expectation(SIGMA_Y * noise, noise) == 0
    values = with_scales(assign(13, Y, F))
    ships(shipped_log_likelihood(values)[0], line, values)


@pytest.mark.equation("K15")
def test_the_logarithm_of_the_likelihood():
    equal(sum(log(gaussian(y, f, SIGMA_Y)) for y, f in zip(Y, F, strict=True)), K15)
    printed = log(1) - HALF * LOG_2PI - (Y[0] - F[0]) ** 2 / 2
    equal(log(gaussian(Y[0], F[0], 1)), printed)
    rest = (K15 - printed).subs(SIGMA_Y, 1)
    off_by(printed, K15.subs(SIGMA_Y, 1), -rest)  # one target of four
    values = with_scales(assign(14, Y, F))
    ships(shipped_log_likelihood(values)[0], K15, values)


@pytest.mark.equation("K16")
def test_the_constant_of_the_likelihood_has_no_partner():
    k16 = -HALF * sum(each**2 for each in Y - F)
    off_by(k16, K15.subs(SIGMA_Y, 1), 4 * HALF * LOG_2PI)  # BK/2 log 2 pi: F is too small by it
    slope = (Y - F) / SIGMA_Y**2
    equal([diff(-K15, f) for f in F], -slope)
    values = with_scales(assign(15, Y, F))
    found, d_f = shipped_log_likelihood(values)
    ships(d_f, slope, values)
    ships(found, K15, values)
    ships(shipped_log_likelihood(values, 1.0)[0] + 2 * float(LOG_2PI), k16, values)


# Without a hidden layer: one weight and one bias, two rows, one output.
X, TARGET = reals("x:2"), reals("t:2")


def nll_of_a_row(weights, row):
    """-log P(D | w) of one row, as in K15 with one output."""
    residual = TARGET[row] - (X[row] * weights[0] + weights[1])
    return residual**2 / (2 * SIGMA_Y**2) + log(SIGMA_Y) + HALF * LOG_2PI


def nll_of_a_line(weights):
    """The same of both rows."""
    return nll_of_a_row(weights, 0) + nll_of_a_row(weights, 1)


def complexity(s):
    """The first sum of K17 for sample s."""
    return sum(
        -log(SIGMA[j]) + log(SIGMA_DATA) - HALF * EPS[s, j] ** 2 + W[j] ** 2 / (2 * SIGMA_DATA**2)
        for j in range(2)
    )


def at_weights(line, s):
    """`line` with w and sigma as functions of mu, rho and noise, K3 and K4."""
    return of_theta(sympy.sympify(line), s)


def shipped_free_energy(values, share):
    theta, noise = floats(values, [*MU, *RHO]), floats(values, EPS, (2, 2))
    x, y = floats(values, X, (2, 1)), floats(values, TARGET, (2, 1))
    return reparameterised().value_and_grad(theta, noise, x, y, share).value


@pytest.mark.equation("K17")
def test_the_three_terms_together():
    for s in range(2):
        bracket = K8 - K12 + nll_of_a_line(W)
        noise = {W[j]: MU[j] + SIGMA[j] * EPS[s, j] for j in range(2)}
        equal(bracket.subs(noise), (complexity(s) + nll_of_a_line(W)).subs(noise))
    right = sum(at_weights(complexity(s) + nll_of_a_line(W), s) for s in range(2)) / 2
    # printed, for one weight: 1/2 w^2 in place of what K13 says
    printed, k13 = HALF * w**2, log(SIGMA_DATA) + w**2 / (2 * SIGMA_DATA**2)
    off_by(printed, k13, w**2 * (1 - SIGMA_DATA**-2) / 2 - log(SIGMA_DATA))
    equal((printed - k13).subs(SIGMA_DATA, 1), 0)
    # printed: one bracket per weight, with the likelihood inside: counted P = 2 times
    inside = sum(complexity(0) / 2 + nll_of_a_line(W) for _ in range(2))
    off_by(inside, complexity(0) + nll_of_a_line(W), (2 - 1) * nll_of_a_line(W))
    off_by(2 * right, right, (2 - 1) * right)  # printed: a sum over samples, not their mean
    values = with_scales(assign(16, MU, RHO, EPS, X, TARGET))
    ships(shipped_free_energy(values, 1.0), right, values)


@pytest.mark.equation("K18")
def test_the_cost_of_one_minibatch_and_by_how_much_the_printed_one_is_wrong():
    # two minibatches of one row: the shares sum to 1, and the costs to that of all data
    shares = [SHARE, 1 - SHARE]
    rows = [nll_of_a_row(W, b) for b in range(2)]
    costs = [shares[b] * complexity(0) + rows[b] for b in range(2)]
    equal(sum(costs), complexity(0) + nll_of_a_line(W))
    # as printed: -log sigma_data; off by -2 pi_i P log sigma_data, P = 2, and in no gradient
    wrong_sign = complexity(0) - 2 * 2 * log(SIGMA_DATA)
    printed = SHARE * sum(
        -log(SIGMA[j]) - log(SIGMA_DATA) - HALF * EPS[0, j] ** 2 + W[j] ** 2 / (2 * SIGMA_DATA**2)
        for j in range(2)
    )
    equal(printed, SHARE * wrong_sign)
    off_by(printed + rows[0], costs[0], -2 * SHARE * 2 * log(SIGMA_DATA))
    equal([diff(printed, v) for v in (*W, *SIGMA)], [diff(costs[0] - rows[0], v)
                                                    for v in (*W, *SIGMA)])  # fmt: skip
    # 1/n with n the weight samples, or any number of parts but the right one
    n = positives("n")
    off_by(complexity(0) / n, SHARE * complexity(0), (1 / n - SHARE) * complexity(0))
    # the expectation of the bracket is a KL divergence; at sigma_data != 1 the printed one is not
    mean = expectation(
        -log(sigma) + log(SIGMA_DATA) - eps**2 / 2 + (mu + sigma * eps) ** 2 / (2 * SIGMA_DATA**2),
        eps,
    )
    equal(mean, log(SIGMA_DATA / sigma) + (mu**2 + sigma**2) / (2 * SIGMA_DATA**2) - HALF)
    log_ratio = log(gaussian(w, mu, sigma)) - log(gaussian(w, 0, SIGMA_DATA))
    equal(expectation(sympy.expand_log(log_ratio).subs(w, mu + sigma * eps), eps), mean)

    values = with_scales(assign(17, MU, RHO, EPS, X, TARGET, [SHARE]))
    line = sum(at_weights(SHARE * complexity(s) + nll_of_a_line(W), s) for s in range(2)) / 2
    ships(shipped_free_energy(values, values[SHARE]), line, values)


# Section 5: the whole cost on a 1-2-1 network with two rows; a gate is 0 or 1, whatever w.

P = 7
MEANS, RAWS, NOISES, WEIGHTS = reals("m:7"), reals("r:7"), matrix("e", 2, P), reals("v:7")
GATES = matrix("gate", 2, 2)  # (B, H) of one sample


def network_output(row):
    """yhat of the 1-2-1 network, weights in the order W0, b0, W1, b1."""
    hidden = [(X[row] * WEIGHTS[h] + WEIGHTS[2 + h]) * GATES[row, h] for h in range(2)]
    return sum(hidden[h] * WEIGHTS[4 + h] for h in range(2)) + WEIGHTS[6]


def network_nll():
    """-log P(D_i | w) of both rows."""
    return sum(
        (TARGET[b] - network_output(b)) ** 2 / (2 * SIGMA_Y**2) + log(SIGMA_Y) + HALF * LOG_2PI
        for b in range(2)
    )


def reparameterise(line, s=0):
    """A line in w as one of mu, rho and the noise of sample s."""
    weights = {WEIGHTS[j]: MEANS[j] + softplus(RAWS[j]) * NOISES[s, j] for j in range(P)}
    return sympy.sympify(line).subs(weights)


def minibatch_cost(s=0):
    """Corrected K18 of sample s as a function of mu and rho."""
    cost = sum(
        -log(softplus(RAWS[j])) + log(SIGMA_DATA) - HALF * NOISES[s, j] ** 2
        + WEIGHTS[j] ** 2 / (2 * SIGMA_DATA**2)
        for j in range(P)
    )  # fmt: skip
    return reparameterise(SHARE * cost + network_nll(), s)


G = [diff(network_nll(), v) for v in WEIGHTS]  # g_w
D_W = [SHARE * WEIGHTS[j] / SIGMA_DATA**2 + G[j] for j in range(P)]  # K21
COST = minibatch_cost()
# y - yhat of each row as a function of mu and rho, and a letter for it
RESIDUAL_OF_ROW = {
    reparameterise(TARGET[b] - network_output(b)): reals(f"residual_{b}") for b in range(2)
}


def equal_slopes(*lines):
    """As `equal`, with each residual as one letter where all lines have it: shorter sums."""
    for each in zip(*lines, strict=True):
        brief = [sympy.sympify(line).xreplace(RESIDUAL_OF_ROW) for line in each]
        shortened = all(line.has(*RESIDUAL_OF_ROW.values()) for line in brief)
        equal(*(brief if shortened else each))


def gradients(seed, objective=free_energy):
    """Values of all symbols, one sample, and the shipped gradient."""
    values = with_scales(assign(seed, MEANS, RAWS, NOISES, X, TARGET, [SHARE]))
    theta, noise = floats(values, [*MEANS, *RAWS]), floats(values, NOISES, (2, P))[:1]
    x, y = floats(values, X, (2, 1)), floats(values, TARGET, (2, 1))
    estimator = reparameterised(objective, (1, 2, 1))
    fast = estimator.value_and_grad(theta, noise, x, y, values[SHARE]).grad
    return open_gates(values), fast


def open_gates(values, s=0):
    """Set the gates to those of the network at these values."""
    weights = number([reparameterise(v, s) for v in WEIGHTS], values)
    pre = np.outer(floats(values, X), weights[:2]) + weights[2:4]
    return {**values, **dict(zip(GATES, (pre > 0).astype(float).ravel().tolist(), strict=True))}


def literal(slope):
    """dP(D|w) in place of d(-log P(D|w)): -P(D|w) times the slope of the NLL."""
    return -LIKELIHOOD * slope


LIKELIHOOD = positives("likelihood")  # the number P(D | w)


@pytest.mark.equation("K19")
def test_the_gradient_for_mu_by_parts():
    k18 = [SHARE * log(softplus(RAWS[0])), SHARE * WEIGHTS[0] ** 2 / (2 * SIGMA_DATA**2)]
    equal(diff(reparameterise(-k18[0]), MEANS[0]), 0)  # K10 contains no mu
    for j in range(P):
        moves = diff(reparameterise(WEIGHTS[j]), MEANS[j])  # dw/dmu
        prior = SHARE * WEIGHTS[j] ** 2 / (2 * SIGMA_DATA**2)
        equal(diff(reparameterise(prior), MEANS[j]),
              reparameterise(SHARE * WEIGHTS[j] / SIGMA_DATA**2) * moves)  # fmt: skip
        nll = reparameterise(network_nll())
        equal_slopes([diff(nll, MEANS[j])], [reparameterise(G[j]) * moves])
        equal_slopes([diff(COST, MEANS[j])], [reparameterise(D_W[j]) * moves])
    # taken literally, dP/dw = P d log P/dw = -P g_w
    density = exp(-sympy.Function("nll")(w))
    equal(diff(density, w), -density * diff(sympy.Function("nll")(w), w))
    off_by([literal(g) for g in G], G, [-(1 + LIKELIHOOD) * g for g in G])

    # the shipped chain: prior and likelihood pulled back to the weights
    values = open_gates(with_scales(assign(18, MEANS, RAWS, NOISES, X, TARGET, [SHARE])))
    model, buffers = reparameterised(sizes=(1, 2, 1)).model, Buffers()
    weights = number([reparameterise(v) for v in WEIGHTS], values)[None]
    x, y = floats(values, X, (2, 1)), floats(values, TARGET, (2, 1))
    joint = model.forward(weights, {}, x, y, buffers)
    found = model.vjp(joint, np.array([-values[SHARE]]), np.array([-1.0]), {}, buffers)
    ships(found, [reparameterise(d) for d in D_W], values)
    slope = [-W[j] / SIGMA_DATA**2 for j in range(2)]
    ships_prior_slope(18, slope)


@pytest.mark.equation("K20")
def test_w_moves_with_mu_as_the_identity():
    jacobian = [diff(reparameterise(WEIGHTS[j]), MEANS[k]) for j in range(P) for k in range(P)]
    assert jacobian == list(sympy.eye(P))
    values = assign(19, MU, RHO, EPS, W)
    d_w = np.tile(floats(values, W), (2, 1)) * np.array([[1.0], [2.0]])
    d_theta = {"mu": np.zeros(2), "rho": np.zeros(2)}
    MeanField().pull_back(sample(values), d_w, None, d_theta)
    ships(d_theta["mu"], [3 * W[0], 3 * W[1]], values)
    one = {name: np.zeros(2) for name in d_theta}
    first = MeanField().sample({"mu": floats(values, MU), "rho": floats(values, RHO)},
                               floats(values, EPS, (2, 2))[:1], Buffers())  # fmt: skip
    MeanField().pull_back(first, d_w[:1], None, one)
    ships(one["mu"], list(W), values)
    values, fast = gradients(19)
    ships(fast[:P], [reparameterise(d) for d in D_W], values)


@pytest.mark.equation("K21")
def test_the_complete_gradient_for_mu():
    k21 = [reparameterise(d) for d in D_W]
    equal_slopes([diff(COST, m) for m in MEANS], k21)
    # it is also the slope of everything but log q for w itself
    everything_else = SHARE * sum(v**2 for v in WEIGHTS) / (2 * SIGMA_DATA**2) + network_nll()
    equal([diff(everything_else, v) for v in WEIGHTS], D_W)
    printed = [SHARE * WEIGHTS[j] / SIGMA_DATA**2 + literal(G[j]) for j in range(P)]
    off_by(printed, D_W, [-(1 + LIKELIHOOD) * g for g in G])
    values, fast = gradients(20)
    ships(fast[:P], k21, values)


def ships_softplus(seed, field, line):
    """A number of `softplus_parts` is `line` in rho, left and right of 0."""
    values = assign(seed, [rho])
    for at in (values[rho], -values[rho], 3.0, -3.0):
        ships(getattr(elementary.softplus_parts(np.array([at])), field), line, {rho: at})


@pytest.mark.equation("K22")
def test_the_chain_for_log_sigma():
    outer, middle, inner = log(sigma), log(u), 1 + exp(rho)  # of sigma, of u, of rho
    equal(outer.subs(sigma, middle).subs(u, inner), log(softplus(rho)))
    chain = diff(outer, sigma).subs(sigma, softplus(rho)) * diff(middle, u).subs(u, inner)
    chain *= diff(inner, rho)
    equal(diff(log(softplus(rho)), rho), chain)
    ships_softplus(21, "ratio", chain)


@pytest.mark.equation("K23")
def test_the_three_factors_of_the_chain():
    factors = [1 / softplus(rho), 1 / (1 + exp(rho)), exp(rho)]
    equal([diff(log(sigma), sigma).subs(sigma, softplus(rho)),
           diff(log(u), u).subs(u, 1 + exp(rho)), diff(1 + exp(rho), rho)], factors)  # fmt: skip
    equal(diff(log(softplus(rho)), rho), factors[0] * factors[1] * factors[2])
    ships_softplus(22, "ratio", factors[0] * factors[1] * factors[2])


@pytest.mark.equation("K24")
def test_both_forms_of_the_sigmoid():
    equal(exp(rho) / (1 + exp(rho)), 1 / ((1 + exp(rho)) / exp(rho)), sigmoid(rho))
    equal(diff(softplus(rho), rho), sigmoid(rho))
    ships_softplus(23, "sigmoid", sigmoid(rho))
    ships(elementary.sigmoid(np.array([0.7, -0.7])), [sigmoid(rho), sigmoid(-rho)], {rho: 0.7})


@pytest.mark.equation("K25")
def test_the_derivative_of_log_sigma():
    k25 = sigmoid(rho) / softplus(rho)
    equal(diff(log(softplus(rho)), rho), exp(rho) / (1 + exp(rho)) / softplus(rho), k25)
    # in (0, 1): log(1 + v) > v / (1 + v), both 0 at 0, and the slopes are 1 / (1 + v), that squared
    v = positives("v")
    gap = log(1 + v) - v / (1 + v)
    assert gap.subs(v, 0) == 0
    equal(diff(gap, v), v / (1 + v) ** 2)
    assert sympy.limit(v / (1 + v) / log(1 + v), v, 0) == 1  # far left

    ships_softplus(24, "ratio", k25)
    values = assign(24, MU, RHO, EPS)
    d_theta = {"mu": np.zeros(2), "rho": np.zeros(2)}
    MeanField().pull_back(sample(values), np.zeros((2, 2)), np.array([1.0, 0.0]), d_theta)
    ships(d_theta["rho"], [-sigmoid(r) / softplus(r) for r in RHO], values)  # log q has -log sigma


@pytest.mark.equation("K26")
def test_the_weight_term():
    weight = mu + sigma * eps
    term = HALF * w**2 / SIGMA_DATA**2
    slope = w / SIGMA_DATA**2
    equal(diff(term, w), slope)
    chain = slope * diff(weight, sigma) * sigmoid(rho)
    direct = diff(term.subs(w, weight).subs(sigma, softplus(rho)), rho)
    finished = slope * eps * sigmoid(rho)
    at = {w: mu + softplus(rho) * eps}
    equal(direct, chain.subs(at), finished.subs(at))
    values, fast = gradients(25, prior_term)
    k26 = [SHARE * WEIGHTS[j] / SIGMA_DATA**2 * NOISES[0, j] * sigmoid(RAWS[j]) for j in range(P)]
    ships(fast[P:], [reparameterise(each) for each in k26], values)
    ships_prior_slope(25, [-W[j] / SIGMA_DATA**2 for j in range(2)])


def moves_with_rho(j, s=0):
    """K28: dw/drho = eps s(rho)."""
    return NOISES[s, j] * sigmoid(RAWS[j])


@pytest.mark.equation("K27")
def test_the_likelihood_term_by_the_chain_rule():
    nll = reparameterise(network_nll())
    chain = [reparameterise(G[j]) * diff(reparameterise(WEIGHTS[j]), RAWS[j]) for j in range(P)]
    equal_slopes([diff(nll, r) for r in RAWS], chain)
    off_by(literal(G[6]), G[6], -(1 + LIKELIHOOD) * G[6])
    values, fast = gradients(26, likelihood_term)
    ships(fast[P:], chain, values)


@pytest.mark.equation("K28")
def test_w_moves_with_rho():
    weight = mu + sigma * eps
    chain = diff(weight, sigma) * sigmoid(rho)
    equal(diff(weight.subs(sigma, softplus(rho)), rho), chain, eps * sigmoid(rho))
    values = assign(27, MU, RHO, EPS)
    for rows in (1, 2):  # one sample has a path of its own
        blocks = {"mu": floats(values, MU), "rho": floats(values, RHO)}
        drawn = MeanField().sample(blocks, floats(values, EPS, (2, 2))[:rows], Buffers())
        d_theta = {"mu": np.zeros(2), "rho": np.zeros(2)}
        MeanField().pull_back(drawn, np.ones((rows, 2)), None, d_theta)
        line = [sum(EPS[s, j] for s in range(rows)) * sigmoid(RHO[j]) for j in range(2)]
        ships(d_theta["rho"], line, values)


@pytest.mark.equation("K29")
def test_the_likelihood_term_finished():
    nll = reparameterise(network_nll())
    k29 = [reparameterise(G[j]) * moves_with_rho(j) for j in range(P)]
    equal_slopes([diff(nll, r) for r in RAWS], k29)
    slope = [G[j] * moves_with_rho(j) for j in range(P)]
    off_by([literal(each) for each in slope], slope, [-(1 + LIKELIHOOD) * each for each in slope])
    values, fast = gradients(28, likelihood_term)
    ships(fast[P:], k29, values)


@pytest.mark.equation("K30")
def test_the_complete_gradient_for_rho_term_by_term():
    # the table: every term of K18 alone, but for the last one, which is K29
    s_over_sigma = [sigmoid(r) / softplus(r) for r in RAWS]
    for j in range(P):
        terms = [
            (-SHARE * log(softplus(RAWS[j])), -SHARE * s_over_sigma[j]),
            (SHARE * log(SIGMA_DATA), 0),
            (-SHARE * NOISES[0, j] ** 2 / 2, 0),
            (reparameterise(SHARE * WEIGHTS[j] ** 2 / (2 * SIGMA_DATA**2)),
             reparameterise(SHARE * WEIGHTS[j] / SIGMA_DATA**2) * moves_with_rho(j)),
        ]  # fmt: skip
        for term, derivative in terms:
            equal(diff(term, RAWS[j]), derivative)
    boxed = [
        (SHARE * (-1 / softplus(RAWS[j]) + WEIGHTS[j] / SIGMA_DATA**2 * NOISES[0, j])
         + G[j] * NOISES[0, j]) * sigmoid(RAWS[j])
        for j in range(P)
    ]  # fmt: skip
    factored = [
        D_W[j] * NOISES[0, j] * sigmoid(RAWS[j]) - SHARE * s_over_sigma[j] for j in range(P)
    ]
    equal(boxed, factored)
    equal_slopes([diff(COST, r) for r in RAWS], [reparameterise(each) for each in factored])
    # printed: dP; and the sign that the negative control plants
    printed = [boxed[j] + (literal(G[j]) - G[j]) * moves_with_rho(j) for j in range(P)]
    off_by(printed, boxed, [-(1 + LIKELIHOOD) * G[j] * moves_with_rho(j) for j in range(P)])
    values, fast = gradients(29)
    line = [reparameterise(each) for each in factored]
    ships(fast[P:], line, values)


@pytest.mark.equation("K30")
def test_over_samples_the_last_term_of_k30_needs_no_sum():
    cost = sum(at_weights(SHARE * complexity(s) + nll_of_a_line(W), s) for s in range(2)) / 2
    d_w = [
        [SHARE * W[j] / SIGMA_DATA**2 + diff(nll_of_a_line(W), W[j]) for j in range(2)]
        for _ in range(2)
    ]
    line = [
        sum(at_weights(d_w[s][j], s) * EPS[s, j] for s in range(2)) / 2 * sigmoid(RHO[j])
        - SHARE * sigmoid(RHO[j]) / softplus(RHO[j])
        for j in range(2)
    ]
    equal([diff(cost, r) for r in RHO], line)
    values = with_scales(assign(30, MU, RHO, EPS, X, TARGET, [SHARE]))
    theta, noise = floats(values, [*MU, *RHO]), floats(values, EPS, (2, 2))
    x, y = floats(values, X, (2, 1)), floats(values, TARGET, (2, 1))
    found = reparameterised().value_and_grad(theta, noise, x, y, values[SHARE]).grad
    ships(found[2:], line, values)


# Section 5.3: a 2-3-2-2 network, two rows

SIZES = (2, 3, 2, 2)
INPUTS, TARGETS = matrix("x", 2, 2), matrix("y", 2, 2)
LAYERS = [
    (matrix(f"W{layer}", *shape), matrix(f"b{layer}", 1, shape[1]))
    for layer, shape in enumerate(pairwise(SIZES))
]
OPEN = [matrix(f"g{layer}", 2, width) for layer, width in enumerate(SIZES[1:-1])]  # [z_l > 0]


def affine(a, layer):
    """z[b, j] = sum_i a[b, i] W[i, j] + b[j], index by index."""
    weight, bias = layer
    return Matrix(
        a.rows,
        weight.cols,
        lambda row, j: sum(a[row, i] * weight[i, j] for i in range(a.cols)) + bias[j],
    )


def passes(layers=LAYERS):
    """Return z_l and a_l of every layer; a_l = z_l o [z_l > 0], none after the last."""
    a, zs, activations = INPUTS, [], []
    for layer, pair in enumerate(layers):
        zs.append(affine(a, pair))
        a = zs[-1].multiply_elementwise(OPEN[layer]) if layer < len(layers) - 1 else zs[-1]
        activations.append(a)
    return zs, activations


ZS, ACTIVATIONS = passes()
OUTPUT = ACTIVATIONS[-1]
NLL = sum(each**2 for each in TARGETS - OUTPUT) / 2 + 2 * LOG_2PI  # K15 with unit variance
ONES = ones(1, 2)
RESIDUAL = matrix("residual", 2, 2)  # y - yhat, a letter for each
RESIDUALS = dict(zip(TARGETS - OUTPUT, RESIDUAL, strict=True))

# The backward pass, read off the four facts; of two layers, too: there one sign flips once
DELTA_2 = -RESIDUAL
DELTA_1 = (DELTA_2 * LAYERS[2][0].T).multiply_elementwise(OPEN[1])
DELTA_0 = (DELTA_1 * LAYERS[1][0].T).multiply_elementwise(OPEN[0])
DELTA_0_OF_TWO = (DELTA_2 * LAYERS[1][0].T).multiply_elementwise(OPEN[0])


def forwards(seed, depth=3):
    """Values for the network with its first `depth` layers, and the shipped forward pass."""
    values = assign(seed, INPUTS, TARGETS, *(part for layer in LAYERS for part in layer))
    sizes = SIZES[: depth + 1]
    w = np.concatenate([floats(values, part) for layer in LAYERS[:depth] for part in layer])[None]
    x = floats(values, INPUTS, (2, 2))
    fast = network.forward(MLP(sizes), w, x, Buffers())
    before = number([entry for z in ZS for entry in z][:6], values)
    values.update(zip(OPEN[0], (before > 0).astype(float).tolist(), strict=True))
    before = number(list(ZS[1]), values)
    values.update(zip(OPEN[1], (before > 0).astype(float).tolist(), strict=True))
    assert 0 < sum(values[g] for g in (*OPEN[0], *OPEN[1])) < 10  # some are on and some off
    return values, fast


def add_rows(product, bias):
    """A matrix plus the bias, a row, in every row."""
    return product + Matrix.vstack(*[bias] * product.rows)


@pytest.mark.equation("K31")
def test_the_first_layer_is_a_matrix_product_plus_the_bias_in_every_row():
    weight, bias = LAYERS[0]
    equal(ZS[0], add_rows(INPUTS * weight, bias))
    with pytest.raises(ShapeError):
        INPUTS.multiply_elementwise(weight)  # the report's * is no elementwise product
    values, fast = forwards(31, depth=1)
    ships(fast[0], ZS[0], values)


def cases(z):
    """ReLU on either side of 0: max(z, 0) and z [z > 0], with the gate as number."""
    return [(sympy.Max(z, 0), z * gate) for gate in ((1,) if z.is_positive else (0,))]


@pytest.mark.equation("K32")
def test_relu_is_its_input_times_its_gate():
    above, below = positives("above"), sympy.Symbol("below", negative=True)
    for printed, gated in (*cases(above), *cases(below)):
        equal(printed, gated)
    assert diff(above * 1, above) == 1  # the gate is the derivative
    assert diff(below * 0, below) == 0
    values, fast = forwards(32, depth=2)
    ships(fast[1].inputs[1], ACTIVATIONS[0], values)
    z = np.array([[1.5, -0.5, 0.0]])
    slope = network.activate(MLP((1, 3, 1)), z, np.empty_like(z))
    assert z.tolist() == [[1.5, 0.0, 0.0]]
    assert slope.tolist() == [[1.0, 0.0, 0.0]]  # at 0 the report's [z > 0] chooses 0


@pytest.mark.equation("K33")
def test_the_second_layer_takes_the_activations_of_the_first():
    equal(ZS[1], add_rows(ACTIVATIONS[0] * LAYERS[1][0], LAYERS[1][1]))
    values, fast = forwards(33, depth=2)
    ships(fast[0], ZS[1], values)


@pytest.mark.equation("K34")
def test_the_second_activation():
    equal(ACTIVATIONS[1], [z * gate for z, gate in zip(ZS[1], OPEN[1], strict=True)])
    values, fast = forwards(34)
    ships(fast[1].inputs[2], ACTIVATIONS[1], values)


@pytest.mark.equation("K35")
def test_the_last_hidden_layer_is_the_input_of_the_last_weights():
    last = len(LAYERS) - 1
    equal(ACTIVATIONS[last - 1], ZS[last - 1].multiply_elementwise(OPEN[last - 1]))
    for seed, depth in ((35, 2), (36, 3)):  # the index is the last of whatever network
        values, fast = forwards(seed, depth)
        ships(fast[1].inputs[-1], ACTIVATIONS[depth - 2], values)


@pytest.mark.equation("K36")
def test_the_output_is_linear_in_the_last_activations():
    equal(OUTPUT, add_rows(ACTIVATIONS[1] * LAYERS[2][0], LAYERS[2][1]))
    assert ZS[2] == OUTPUT  # no ReLU at the end
    values, fast = forwards(37)
    ships(fast[0], OUTPUT, values)
    assert (number(OUTPUT, values) < 0).any()  # which a ReLU would have lost


def slopes(parameters):
    """d NLL for every entry of a matrix of parameters, by differentiation."""
    return parameters.applyfunc(lambda entry: diff(NLL, entry).xreplace(RESIDUALS))


def shipped_slopes(seed, block, depth):
    """The values, and one block of the gradient of the NLL: of the residual, of the likelihood."""
    values, (fast, tape) = forwards(seed, depth)
    sizes = SIZES[: depth + 1]
    residual = floats(values, TARGETS, (2, 2)) - fast
    values.update(zip(RESIDUAL, residual.ravel().tolist(), strict=True))
    net = MLP(sizes)
    d_w = network.vjp(net, tape, -residual, Buffers())
    likelihood = GaussianLikelihood(1.0)
    _, saved = likelihood.log_density({}, fast, floats(values, TARGETS, (2, 2)))
    through = network.vjp(net, tape, likelihood.vjp(saved, -np.ones(1), {}), Buffers())
    part = net.layout.slices[block]
    return values, [found.ravel()[part] for found in (d_w, through)]


def ships_slopes(seed, block, line, depth=3):
    values, found = shipped_slopes(seed, block, depth)
    assert number(line, values).any()  # not all units are off
    for each in found:
        ships(each, line, values)


def one_row(line, delta):
    """How far `line`, printed for the first row, misses the sum of delta over both."""
    off_by(line, ONES * delta, -delta[1, :])


def symbol_for_nll(line):
    """The printed dP(D|w) for d NLL: -P times it, off by -(1 + P) times it."""
    line = list(line)
    off_by([literal(each) for each in line], line, [-(1 + LIKELIHOOD) * each for each in line])


@pytest.mark.equation("K37")
def test_the_last_bias():
    free = matrix("f", 2, 2)
    start = sum(each**2 for each in TARGETS - free) / 2
    equal([diff(start, f) for f in free], -(TARGETS - free))  # fact 1
    right = ONES * DELTA_2  # fact 2
    equal(slopes(LAYERS[2][1]), right.subs({letter: r for r, letter in RESIDUALS.items()}))
    one_row(-RESIDUAL[0, :], DELTA_2)
    symbol_for_nll(right)
    ships_slopes(38, "b2", right)


@pytest.mark.equation("K38")
def test_the_last_weights():
    right = ACTIVATIONS[1].T * DELTA_2
    equal(slopes(LAYERS[2][0]), right)
    row, wide = Matrix([[1, 2]]), Matrix([[1, 2, 3]])
    with pytest.raises(ShapeError):
        row * wide  # printed: (B, K) times (B, H), here one row, K = 2 and H = 3
    printed = DELTA_2 * ACTIVATIONS[1]  # conforms here by accident, as B = K = H = 2
    off_by(printed, right, printed - right)
    symbol_for_nll(right)
    ships_slopes(39, "W2", right)


@pytest.mark.equation("K39")
def test_the_bias_before():
    right = ONES * DELTA_1
    equal(slopes(LAYERS[1][1]), right)
    # facts 4 and 2, index by index
    equal(DELTA_1, [sum(DELTA_2[b, j] * LAYERS[2][0][i, j] for j in range(2)) * OPEN[1][b, i]
                    for b in range(2) for i in range(2)])  # fmt: skip
    one_row(DELTA_1[0, :], DELTA_1)
    # printed, without the transpose: of a square W_n the wrong entries
    printed = (DELTA_2 * LAYERS[2][0]).multiply_elementwise(OPEN[1])
    swapped = LAYERS[2][0] - LAYERS[2][0].T
    off_by(printed, DELTA_1, (DELTA_2 * swapped).multiply_elementwise(OPEN[1]))
    with pytest.raises(ShapeError):
        DELTA_1 * LAYERS[1][0]  # (B, K) times (H, K): not even conforming for other widths
    symbol_for_nll(right)
    ships_slopes(40, "b1", right)


@pytest.mark.equation("K40")
def test_the_weights_before():
    right = ACTIVATIONS[0].T * DELTA_1
    equal(slopes(LAYERS[1][0]), right)
    symbol_for_nll(right)
    ships_slopes(41, "W1", right)


@pytest.mark.equation("K40")
def test_printed_k40_read_elementwise_is_right_on_the_diagonal_only():
    residual = reals("delta")
    a, column, gate = matrix("a", 1, 2), matrix("w", 2, 1), matrix("g", 1, 2)
    right = a.T * (residual * column.T).multiply_elementwise(gate)
    broadcast = Matrix(2, 2, lambda i, j: residual * column[i] * gate[j] * a[j])
    amount = Matrix(2, 2, lambda i, j: residual * gate[j] * (column[i] * a[j] - a[i] * column[j]))
    off_by(broadcast, right, amount)
    assert amount[0, 0] == amount[1, 1] == 0


@pytest.mark.equation("K41")
def test_the_first_bias():
    right = ONES * DELTA_0
    chain = (DELTA_2 * LAYERS[2][0].T).multiply_elementwise(OPEN[1])
    chain = (chain * LAYERS[1][0].T).multiply_elementwise(OPEN[0])
    equal(DELTA_0, chain)
    equal(slopes(LAYERS[0][1]), right)
    one_row(DELTA_0[0, :], DELTA_0)
    with pytest.raises(ShapeError):
        DELTA_1 * LAYERS[1][0]  # printed: W_1 without its transpose
    symbol_for_nll(right)
    ships_slopes(42, "b0", right)
    ships_slopes(47, "b0", ONES * DELTA_0_OF_TWO, depth=2)


@pytest.mark.equation("K42")
def test_the_first_weights():
    right = INPUTS.T * DELTA_0
    equal(slopes(LAYERS[0][0]), right)
    with pytest.raises(ShapeError):
        DELTA_0 * INPUTS  # the printed order: (B, H_0) times (B, d_in)
    symbol_for_nll(right)
    ships_slopes(46, "W0", right)
    ships_slopes(48, "W0", INPUTS.T * DELTA_0_OF_TWO, depth=2)


# Section 6

ETA = positives("eta")


def cubic(a, b):
    """Any cost of two numbers, up to third order: nine coefficients."""
    c = reals("c:9")
    powers = (a, b, a**2, a * b, b**2, a**3, a**2 * b, a * b**2, b**3)
    return sum(coefficient * power for coefficient, power in zip(c, powers, strict=True))


def descends(parameters):
    """F(theta - eta g) = F(theta) - eta g . g + O(eta^2) for steps in these parameters."""
    cost = cubic(mu, rho)
    g = {name: diff(cost, name) for name in parameters}
    moved = cost.subs({name: name - ETA * g[name] for name in parameters}, simultaneous=True)
    equal(moved.subs(ETA, 0), cost)
    equal(diff(moved, ETA).subs(ETA, 0), -sum(each**2 for each in g.values()))


def ships_update(seed, parameters, where):
    """The shipped update at a random point."""
    values = assign(seed, [mu, rho, ETA], reals("g:2"))
    theta, grad = floats(values, [mu, rho]), floats(values, reals("g:2"))
    line = [parameters[0] - ETA * reals("g:2")[where]]
    rule = SGD(values[ETA])
    rule.update(theta, grad, rule.init(theta), 1.0)
    ships(theta[where], line, values)


@pytest.mark.equation("K43")
def test_a_small_step_for_mu_descends():
    descends([mu])
    ships_update(44, [mu], 0)


@pytest.mark.equation("K44")
def test_both_steps_are_one_step_of_the_flat_vector():
    descends([mu, rho])
    cost = cubic(mu, rho)
    together = rho - ETA * diff(cost, rho)
    after_mu = mu - ETA * diff(cost, mu)
    in_turn = rho - ETA * diff(cost, rho).subs(mu, after_mu)
    off_by(in_turn, together, -ETA * (diff(cost, rho).subs(mu, after_mu) - diff(cost, rho)))
    ships_update(45, [rho], 1)
