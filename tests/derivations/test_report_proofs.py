"""K1 to K44: each line of the report's derivations equals the line before, by algebra.

What the report prints wrongly is refuted with the amount by which it is wrong. Exact arithmetic
proves the shipped code for every combination of parts; here its gradient is compared with the
boxes K21 and K30 at a random point.
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

from bbb_numpy import MLP, GaussianLikelihood, GaussianPrior, MeanField, Model, Reparameterised
from bbb_numpy.parts import network

# Two weights, two samples of each; sigma_data and the noise of y; the share pi_i of a minibatch.
MU, RHO = reals("mu:2"), reals("rho:2")
EPS = matrix("e", 2, 2)  # (S, P)
SIGMA = positives("sigma:2")
SIGMA_DATA, SIGMA_Y, SHARE = positives("sigma_data sigma_y share")
Y, F, W = matrix("y", 2, 2), matrix("f", 2, 2), reals("w:2")  # (B, K)

mu, rho, eps, w, u = reals("mu rho epsilon w u")
sigma = positives("sigma")
LIKELIHOOD = positives("likelihood")  # the number P(D | w)


def literal(slope):
    """dP(D|w) in place of d(-log P(D|w)), as printed: -P(D|w) times the slope of the NLL."""
    return [-LIKELIHOOD * each for each in slope]


def off_by_the_likelihood(slope):
    """The printed symbol misses d NLL by -(1 + P) times it."""
    off_by(literal(slope), list(slope), [-(1 + LIKELIHOOD) * each for each in slope])


# Section 3


@pytest.mark.equation("K1")
def test_independent_noise_makes_weights_uncorrelated_and_shared_noise_does_not():
    e = reals("e:2")
    weights = [MU[j] + SIGMA[j] * e[j] for j in range(2)]
    covariance = expectation((weights[0] - MU[0]) * (weights[1] - MU[1]), *e)
    equal(covariance, 0)
    equal(expectation((weights[0] - MU[0]) ** 2, *e), SIGMA[0] ** 2)
    one_number = expectation((SIGMA[0] * e[0]) * (SIGMA[1] * e[0]), *e)
    off_by(one_number, covariance, SIGMA[0] * SIGMA[1])  # correlation 1
    noise = Reparameterised(Model(MLP((1, 1)), GaussianPrior())).draw(np.random.default_rng(0), 2)
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


@pytest.mark.equation("K4")
def test_mu_plus_sigma_eps_has_the_density_q():
    c, z = reals("c z")
    assert sympy.solve(mu + sigma * z - c, z) == [(c - mu) / sigma]
    distribution = (1 + sympy.erf(z / sqrt(2))) / 2  # Phi
    equal(diff(distribution, z), exp(-(z**2) / 2) / sqrt(2 * pi))  # phi
    equal(diff(distribution.subs(z, (c - mu) / sigma), c), gaussian(c, mu, sigma))
    equal([expectation(mu + sigma * z, z), expectation((sigma * z) ** 2, z)], [mu, sigma**2])


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
    free = sum(q[k] * (log(q[k]) - log(prior[k]) - log(likelihood[k])) for k in range(3))
    sums_to_one = {q[2]: 1 - q[0] - q[1]}
    equal(divergence.subs(sums_to_one), (free + log_evidence).subs(sums_to_one))
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
    bracket = reals("bracket:2")
    off_by(sum(bracket), sum(bracket) / 2, sum(bracket) / 2)  # the printed sum estimates n F


def of_weights(line):
    """The sum of `line`, written for w and sigma, over both weights."""
    return sum(line.subs({w: W[j], sigma: SIGMA[j]}) for j in range(2))


def log_density(x, mean, deviation):
    """log of the printed density, nothing taken apart."""
    return log(gaussian(x, mean, deviation))


K8 = sum(-log(SIGMA[j]) - HALF * LOG_2PI - (W[j] - MU[j]) ** 2 / (2 * SIGMA[j] ** 2)
         for j in range(2))  # fmt: skip
K9 = sum(-log(SIGMA[j]) - (W[j] - MU[j]) ** 2 / (2 * SIGMA[j] ** 2) for j in range(2))
K12 = -2 * log(SIGMA_DATA) - LOG_2PI - (W[0] ** 2 + W[1] ** 2) / (2 * SIGMA_DATA**2)  # P = 2
K13 = of_weights(-log(SIGMA_DATA) - HALF * w**2 / SIGMA_DATA**2)
K15 = -2 * LOG_2PI - 4 * log(SIGMA_Y) - sum(each**2 for each in Y - F) / (2 * SIGMA_Y**2)  # B K = 4
K16 = -HALF * sum(each**2 for each in Y - F)
Q = [gaussian(W[j], MU[j], SIGMA[j]) for j in range(2)]
PRIOR = [gaussian(W[j], 0, SIGMA_DATA) for j in range(2)]
ROWS = [gaussian(y, f, SIGMA_Y) for y, f in zip(Y, F, strict=True)]
UNIT = gaussian(Y[0], F[0], 1)  # one target of unit variance, as printed

# Each line equals the one before.
LINES = {
    "K6": [log(Q[0] * Q[1]), log(Q[0]) + log(Q[1])],
    "K7": [log(Q[0] * Q[1]), sum(
        log(1) - log(SIGMA[j]) - HALF * LOG_2PI - (W[j] - MU[j]) ** 2 / (2 * SIGMA[j] ** 2)
        for j in range(2))],
    "K8": [log(Q[0]) + log(Q[1]), K8],
    "K9": [K8 - K12, K9 - K13],  # the constants cancel
    "K11": [log(PRIOR[0] * PRIOR[1]), log(PRIOR[0]) + log(PRIOR[1])],
    "K12": [log(PRIOR[0]) + log(PRIOR[1]), K12],
    "K13": [diff(K13, W[0]), -W[0] / SIGMA_DATA**2],
    "K14": [log(sympy.prod(ROWS)), sum(log(each) for each in ROWS)],
    "K15": [sum(log(each) for each in ROWS), K15],
    "K16": [diff(K15, F[0]), (Y - F)[0] / SIGMA_Y**2],
}  # fmt: skip
# What is printed, the right line, and the difference.
MISSED = {
    "K6": (log(Q[0]), log(Q[0] * Q[1]), -log(Q[1])),  # one weight of two
    "K9": (K9, K8, LOG_2PI),  # P = 2
    "K12": (log(PRIOR[0]), K12, -log(PRIOR[1])),
    "K13": (K13, K12, LOG_2PI),
    "K14": (log(UNIT), log(ROWS[0]),
            log(SIGMA_Y) - (Y[0] - F[0]) ** 2 * (1 - SIGMA_Y**-2) / 2),
    "K15": (log(UNIT), K15.subs(SIGMA_Y, 1),
            -sum(log(gaussian(Y[k], F[k], 1)) for k in (1, 2, 3))),  # one target of four
    "K16": (K16, K15.subs(SIGMA_Y, 1), 4 * HALF * LOG_2PI),  # no partner: F is too small by it
}  # fmt: skip


@pytest.mark.equation("K6", "K7", "K8", "K9", "K11", "K12", "K13", "K14", "K15", "K16")
@pytest.mark.parametrize("tag", LINES)
def test_the_logarithms_of_the_densities_line_by_line(tag):
    equal(*LINES[tag])
    if tag in MISSED:
        off_by(*MISSED[tag])


@pytest.mark.equation("K10")
def test_in_terms_of_the_noise_log_q_has_no_mu_left():
    one = -log(sigma) - (w - mu) ** 2 / (2 * sigma**2)
    k10 = -log(sigma) - eps**2 / 2
    equal(one.subs(w, mu + sigma * eps), k10)
    # total derivatives, read off K10 and computed from K9
    deviation = softplus(rho)
    slope = diff(deviation, rho)
    assert diff(k10.subs(sigma, deviation), mu) == 0
    total = diff(one.subs(w, mu + sigma * eps).subs(sigma, deviation), rho)
    equal(diff(k10.subs(sigma, deviation), rho), total, -slope / deviation)
    # the direct partials of K9 added again
    off_by(diff(one, mu).subs(w, mu + sigma * eps), 0, eps / sigma)
    direct_rho = (diff(one, sigma) * slope).subs(w, mu + sigma * eps).subs(sigma, deviation)
    off_by(total + direct_rho, total, (eps**2 - 1) * slope / deviation)


# Without a hidden layer: one weight and one bias, two rows, one output.
X, TARGET = reals("x:2"), reals("t:2")


def nll_of_a_row(row):
    """-log P(D | w) of one row, as in K15 with one output."""
    residual = TARGET[row] - (X[row] * W[0] + W[1])
    return residual**2 / (2 * SIGMA_Y**2) + log(SIGMA_Y) + HALF * LOG_2PI


NLL_OF_A_LINE = nll_of_a_row(0) + nll_of_a_row(1)


def complexity(s):
    """The first sum of K17 for sample s."""
    return sum(
        -log(SIGMA[j]) + log(SIGMA_DATA) - HALF * EPS[s, j] ** 2 + W[j] ** 2 / (2 * SIGMA_DATA**2)
        for j in range(2)
    )


def at_weights(line, s):
    """`line` with w and sigma as functions of mu, rho and noise, K3 and K4."""
    weights = {W[j]: MU[j] + SIGMA[j] * EPS[s, j] for j in range(2)}
    return line.subs(weights).subs({SIGMA[j]: softplus(RHO[j]) for j in range(2)})


@pytest.mark.equation("K17")
def test_the_three_terms_together():
    noise = {W[j]: MU[j] + SIGMA[j] * EPS[0, j] for j in range(2)}
    right = complexity(0) + NLL_OF_A_LINE
    equal((K8 - K12 + NLL_OF_A_LINE).subs(noise), right.subs(noise))
    # printed, for one weight: 1/2 w^2 in place of what K13 says
    printed, k13 = HALF * w**2, log(SIGMA_DATA) + w**2 / (2 * SIGMA_DATA**2)
    off_by(printed, k13, w**2 * (1 - SIGMA_DATA**-2) / 2 - log(SIGMA_DATA))
    # printed: one bracket per weight, with the likelihood inside: counted P = 2 times
    off_by(sum(complexity(0) / 2 + NLL_OF_A_LINE for _ in range(2)), right, NLL_OF_A_LINE)


@pytest.mark.equation("K18")
def test_the_cost_of_one_minibatch_and_by_how_much_the_printed_one_is_wrong():
    # two minibatches of one row: the shares sum to 1, and the costs to that of all data
    costs = [share * complexity(0) + nll_of_a_row(b) for b, share in enumerate((SHARE, 1 - SHARE))]
    equal(sum(costs), complexity(0) + NLL_OF_A_LINE)
    # as printed: -log sigma_data; off by -2 pi_i P log sigma_data, P = 2, and in no gradient
    printed = SHARE * (complexity(0) - 2 * 2 * log(SIGMA_DATA)) + nll_of_a_row(0)
    off_by(printed, costs[0], -2 * SHARE * 2 * log(SIGMA_DATA))
    equal([diff(printed, v) for v in (*W, *SIGMA)], [diff(costs[0], v) for v in (*W, *SIGMA)])
    # 1/n with n the weight samples, or any number of parts but the right one
    n = positives("n")
    off_by(complexity(0) / n, SHARE * complexity(0), (1 / n - SHARE) * complexity(0))
    # the expectation of the bracket is a KL divergence; at sigma_data != 1 the printed one is not
    mean = expectation(
        -log(sigma) + log(SIGMA_DATA) - eps**2 / 2 + (mu + sigma * eps) ** 2 / (2 * SIGMA_DATA**2),
        eps,
    )
    equal(mean, log(SIGMA_DATA / sigma) + (mu**2 + sigma**2) / (2 * SIGMA_DATA**2) - HALF)
    log_ratio = log_density(w, mu, sigma) - log_density(w, 0, SIGMA_DATA)
    equal(expectation(sympy.expand_log(log_ratio).subs(w, mu + sigma * eps), eps), mean)


# Section 5: the whole cost on a 1-2-1 network with two rows; a gate is 0 or 1, whatever w.

P = 7
MEANS, RAWS, NOISES, WEIGHTS = reals("m:7"), reals("r:7"), reals("n:7"), reals("v:7")
GATES = matrix("gate", 2, 2)  # (B, H) of one sample


def network_output(row):
    """yhat of the 1-2-1 network, weights in the order W0, b0, W1, b1."""
    hidden = [(X[row] * WEIGHTS[h] + WEIGHTS[2 + h]) * GATES[row, h] for h in range(2)]
    return sum(hidden[h] * WEIGHTS[4 + h] for h in range(2)) + WEIGHTS[6]


NETWORK_NLL = sum(  # -log P(D_i | w) of both rows
    (TARGET[b] - network_output(b)) ** 2 / (2 * SIGMA_Y**2) + log(SIGMA_Y) + HALF * LOG_2PI
    for b in range(2)
)


def reparameterise(line):
    """A line in w as one of mu, rho and the noise."""
    weights = {WEIGHTS[j]: MEANS[j] + softplus(RAWS[j]) * NOISES[j] for j in range(P)}
    return sympy.sympify(line).subs(weights)


WEIGHT_TERM = [SHARE * v**2 / (2 * SIGMA_DATA**2) for v in WEIGHTS]
D_WEIGHT = [SHARE * v / SIGMA_DATA**2 for v in WEIGHTS]
G = [diff(NETWORK_NLL, v) for v in WEIGHTS]  # g_w
D_W = [d + g for d, g in zip(D_WEIGHT, G, strict=True)]  # K21
S_OVER_SIGMA = [sigmoid(r) / softplus(r) for r in RAWS]  # K25
D = reals("d:7")  # slopes for the weights, whatever they are
D_RHO = [NOISES[j] * sigmoid(RAWS[j]) for j in range(P)]  # dw/drho, K28
# corrected K18 as a function of mu and rho
COST = reparameterise(sum(WEIGHT_TERM) + NETWORK_NLL) + SHARE * sum(
    log(SIGMA_DATA) - log(softplus(RAWS[j])) - HALF * NOISES[j] ** 2 for j in range(P)
)
# y - yhat of each row as a function of mu and rho, and a letter for it
RESIDUAL_OF_ROW = {
    reparameterise(TARGET[b] - network_output(b)): reals(f"residual_{b}") for b in range(2)
}


def equal_slopes(term, unknowns, line):
    """d `term` for each of the unknowns is `line` in w, with each residual as one letter."""
    for unknown, each in zip(unknowns, line, strict=True):
        both = [sympy.sympify(side) for side in (diff(term, unknown), reparameterise(each))]
        brief = [side.xreplace(RESIDUAL_OF_ROW) for side in both]
        shortened = all(side.has(*RESIDUAL_OF_ROW.values()) for side in brief)
        equal(*(brief if shortened else both))


def along_rho(slope):
    return [g * d for g, d in zip(slope, D_RHO, strict=True)]


PUSHED = reparameterise(sum(d * v for d, v in zip(D, WEIGHTS, strict=True)))
# a term of the cost, for what it is differentiated, and the slopes
SLOPES = {
    "K19": (reparameterise(sum(WEIGHT_TERM)), MEANS, D_WEIGHT),
    "K20": (PUSHED, MEANS, D),
    "K21": (COST, MEANS, D_W),
    "K26": (reparameterise(sum(WEIGHT_TERM)), RAWS, along_rho(D_WEIGHT)),
    "K27": (reparameterise(NETWORK_NLL), RAWS,
            [g * diff(reparameterise(v), r) for g, v, r in zip(G, WEIGHTS, RAWS, strict=True)]),
    "K28": (PUSHED, RAWS, along_rho(D)),
    "K29": (reparameterise(NETWORK_NLL), RAWS, along_rho(G)),
    "K30": (COST, RAWS,
            [d - SHARE * s for d, s in zip(along_rho(D_W), S_OVER_SIGMA, strict=True)]),
}  # fmt: skip


@pytest.mark.equation("K19", "K20", "K21", "K26", "K27", "K28", "K29", "K30")
@pytest.mark.parametrize("tag", SLOPES)
def test_each_slope_of_the_cost(tag):
    equal_slopes(*SLOPES[tag])
    if tag in ("K21", "K30"):
        ships_gradient(SLOPES[tag][2], slice(P) if tag == "K21" else slice(P, None))


def ships_gradient(line, part):
    """The shipped gradient of one sample is `line`, the gates being those at the weights."""
    values = {**assign(20, MEANS, RAWS, NOISES, X, TARGET, [SHARE]), SIGMA_DATA: 0.7, SIGMA_Y: 1.3}
    weights = number([reparameterise(v) for v in WEIGHTS], values)
    gates = np.outer(floats(values, X), weights[:2]) + weights[2:4] > 0
    assert 0 < gates.sum() < 4
    values.update(zip(GATES, gates.astype(float).ravel().tolist(), strict=True))
    estimator = Reparameterised(
        Model(MLP((1, 2, 1)), GaussianPrior(0.7), GaussianLikelihood(1.3)), MeanField()
    )
    theta, noise = floats(values, [*MEANS, *RAWS]), floats(values, NOISES, (1, P))
    x, y = floats(values, X, (2, 1)), floats(values, TARGET, (2, 1))
    found = estimator.value_and_grad(theta, noise, x, y, values[SHARE]).grad[part]
    ships(found, [reparameterise(each) for each in line], values)


@pytest.mark.equation("K30")
def test_what_is_printed_of_the_gradients_and_the_boxed_form():
    boxed = [
        (SHARE * (-1 / softplus(RAWS[j]) + WEIGHTS[j] / SIGMA_DATA**2 * NOISES[j])
         + G[j] * NOISES[j]) * sigmoid(RAWS[j])
        for j in range(P)
    ]  # fmt: skip
    equal(boxed, SLOPES["K30"][2])
    # taken literally, dP/dw = P d log P/dw = -P g_w: in K19, K21, K27, K29 and K30
    nll = sympy.Function("nll")(w)
    equal(diff(exp(-nll), w), -exp(-nll) * diff(nll, w))
    off_by_the_likelihood(G)


@pytest.mark.equation("K30")
def test_over_samples_the_last_term_of_k30_needs_no_sum():
    cost = sum(at_weights(SHARE * complexity(s) + NLL_OF_A_LINE, s) for s in range(2)) / 2
    d_w = [SHARE * W[j] / SIGMA_DATA**2 + diff(NLL_OF_A_LINE, W[j]) for j in range(2)]
    line = [
        sum(at_weights(d_w[j], s) * EPS[s, j] for s in range(2)) / 2 * sigmoid(RHO[j])
        - SHARE * sigmoid(RHO[j]) / softplus(RHO[j])
        for j in range(2)
    ]
    equal([diff(cost, r) for r in RHO], line)


CHAIN = [1 / softplus(rho), 1 / (1 + exp(rho)), exp(rho)]  # K23
LOG_SIGMA = {
    "K22": [diff(log(softplus(rho)), rho),
            diff(log(sigma), sigma).subs(sigma, softplus(rho))
            * diff(log(u), u).subs(u, 1 + exp(rho)) * diff(1 + exp(rho), rho)],
    "K23": [diff(log(softplus(rho)), rho), sympy.prod(CHAIN)],
    "K24": [diff(softplus(rho), rho), exp(rho) / (1 + exp(rho)),
            1 / ((1 + exp(rho)) / exp(rho)), sigmoid(rho)],
    "K25": [diff(log(softplus(rho)), rho), exp(rho) / (1 + exp(rho)) / softplus(rho),
            sigmoid(rho) / softplus(rho)],
}  # fmt: skip


@pytest.mark.equation("K22", "K23", "K24", "K25")
@pytest.mark.parametrize("tag", LOG_SIGMA)
def test_the_chain_for_log_sigma(tag):
    equal(*LOG_SIGMA[tag])


@pytest.mark.equation("K25")
def test_the_derivative_of_log_sigma_lies_between_0_and_1():
    # log(1 + v) > v / (1 + v), both 0 at 0, and the slopes are 1 / (1 + v), that squared
    v = positives("v")
    gap = log(1 + v) - v / (1 + v)
    assert gap.subs(v, 0) == 0
    equal(diff(gap, v), v / (1 + v) ** 2)
    assert sympy.limit(v / (1 + v) / log(1 + v), v, 0) == 1  # far left


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


def passes():
    """Return z_l and a_l of every layer; a_l = z_l o [z_l > 0], none after the last."""
    a, zs, activations = INPUTS, [], []
    for layer, pair in enumerate(LAYERS):
        zs.append(affine(a, pair))
        a = zs[-1].multiply_elementwise(OPEN[layer]) if layer < len(LAYERS) - 1 else zs[-1]
        activations.append(a)
    return zs, activations


ZS, ACTIVATIONS = passes()
OUTPUT = ACTIVATIONS[-1]
NLL = sum(each**2 for each in TARGETS - OUTPUT) / 2 + 2 * LOG_2PI  # K15 with unit variance
ONES = ones(1, 2)
RESIDUAL = matrix("residual", 2, 2)  # y - yhat, a letter for each
RESIDUALS = dict(zip(TARGETS - OUTPUT, RESIDUAL, strict=True))

# The backward pass, read off the four facts
DELTA_2 = -RESIDUAL
DELTA_1 = (DELTA_2 * LAYERS[2][0].T).multiply_elementwise(OPEN[1])
DELTA_0 = (DELTA_1 * LAYERS[1][0].T).multiply_elementwise(OPEN[0])


def add_rows(product, bias):
    """A matrix plus the bias, a row, in every row."""
    return product + Matrix.vstack(*[bias] * product.rows)


FORWARD = {
    "K31": [ZS[0], add_rows(INPUTS * LAYERS[0][0], LAYERS[0][1])],
    "K33": [ZS[1], add_rows(ACTIVATIONS[0] * LAYERS[1][0], LAYERS[1][1])],
    "K34": [ACTIVATIONS[1], [z * gate for z, gate in zip(ZS[1], OPEN[1], strict=True)]],
    "K35": [ACTIVATIONS[-2], ZS[-2].multiply_elementwise(OPEN[-1])],  # the last, of any network
    "K36": [OUTPUT, ZS[2], add_rows(ACTIVATIONS[1] * LAYERS[2][0], LAYERS[2][1])],  # no ReLU
}


@pytest.mark.equation("K31", "K33", "K34", "K35", "K36")
@pytest.mark.parametrize("tag", FORWARD)
def test_the_forward_pass_layer_by_layer(tag):
    equal(*FORWARD[tag])
    if tag == "K31":
        with pytest.raises(ShapeError):
            INPUTS.multiply_elementwise(LAYERS[0][0])  # the report's * is no elementwise product


@pytest.mark.equation("K32")
def test_relu_is_its_input_times_its_gate():
    above, below = positives("above"), sympy.Symbol("below", negative=True)
    equal([sympy.Max(above, 0), sympy.Max(below, 0)], [above * 1, below * 0])
    assert diff(above * 1, above) == 1  # the gate is the derivative
    assert diff(below * 0, below) == 0
    z = np.array([[1.5, -0.5, 0.0]])
    slope = network.activate(MLP((1, 3, 1)), z, np.empty_like(z))
    assert z.tolist() == [[1.5, 0.0, 0.0]]
    assert slope.tolist() == [[1.0, 0.0, 0.0]]  # at 0 the report's [z > 0] chooses 0


# the parameters, and d NLL for them
BACKWARD = {
    "K37": (LAYERS[2][1], ONES * DELTA_2),
    "K38": (LAYERS[2][0], ACTIVATIONS[1].T * DELTA_2),
    "K39": (LAYERS[1][1], ONES * DELTA_1),
    "K40": (LAYERS[1][0], ACTIVATIONS[0].T * DELTA_1),
    "K41": (LAYERS[0][1], ONES * DELTA_0),
    "K42": (LAYERS[0][0], INPUTS.T * DELTA_0),
}
# printed for the first row of the biases, each misses the sum over both
DELTAS = {"K37": DELTA_2, "K39": DELTA_1, "K41": DELTA_0}
# printed products of matrices that do not conform
MISSHAPEN = {
    "K38": lambda: ones(1, 2) * ones(1, 3),  # (B, K) times (B, H), one row, K = 2 and H = 3
    "K39": lambda: DELTA_1 * LAYERS[1][0],  # (B, K) times (H, K): W without its transpose
    "K41": lambda: DELTA_1 * LAYERS[1][0],
    "K42": lambda: DELTA_0 * INPUTS,  # (B, H_0) times (B, d_in)
}


@pytest.mark.equation("K37", "K38", "K39", "K40", "K41", "K42")
@pytest.mark.parametrize("tag", BACKWARD)
def test_the_backward_pass_layer_by_layer(tag):
    parameters, right = BACKWARD[tag]
    slopes = parameters.applyfunc(lambda entry: diff(NLL, entry).xreplace(RESIDUALS))
    if tag == "K37":  # where SymPy multiplies the residuals out
        equal(slopes, right.subs({letter: each for each, letter in RESIDUALS.items()}))
    else:
        equal(slopes, right)
    off_by_the_likelihood(right)
    if tag in DELTAS:
        off_by(DELTAS[tag][0, :], ONES * DELTAS[tag], -DELTAS[tag][1, :])
    if tag in MISSHAPEN:
        with pytest.raises(ShapeError):
            MISSHAPEN[tag]()


@pytest.mark.equation("K38")
def test_printed_k38_is_wrong_where_its_shapes_conform_by_accident():
    right = ACTIVATIONS[1].T * DELTA_2
    printed = DELTA_2 * ACTIVATIONS[1]  # B = K = H = 2
    off_by(printed, right, printed - right)


@pytest.mark.equation("K39")
def test_printed_k39_takes_the_wrong_entries_of_a_square_matrix():
    printed = (DELTA_2 * LAYERS[2][0]).multiply_elementwise(OPEN[1])
    swapped = LAYERS[2][0] - LAYERS[2][0].T
    off_by(printed, DELTA_1, (DELTA_2 * swapped).multiply_elementwise(OPEN[1]))


@pytest.mark.equation("K40")
def test_printed_k40_read_elementwise_is_right_on_the_diagonal_only():
    residual = reals("delta")
    a, column, gate = matrix("a", 1, 2), matrix("w", 2, 1), matrix("g", 1, 2)
    right = a.T * (residual * column.T).multiply_elementwise(gate)
    broadcast = Matrix(2, 2, lambda i, j: residual * column[i] * gate[j] * a[j])
    amount = Matrix(2, 2, lambda i, j: residual * gate[j] * (column[i] * a[j] - a[i] * column[j]))
    off_by(broadcast, right, amount)
    assert amount[0, 0] == amount[1, 1] == 0


# Section 6

ETA = positives("eta")


def cubic(a, b):
    """Any cost of two numbers, up to third order: nine coefficients."""
    c = reals("c:9")
    powers = (a, b, a**2, a * b, b**2, a**3, a**2 * b, a * b**2, b**3)
    return sum(coefficient * power for coefficient, power in zip(c, powers, strict=True))


STEPS = {"K43": [mu], "K44": [mu, rho]}


@pytest.mark.equation("K43", "K44")
@pytest.mark.parametrize("tag", STEPS)
def test_a_small_step_descends(tag):
    """F(theta - eta g) = F(theta) - eta g . g + O(eta^2) for steps in these parameters."""
    cost = cubic(mu, rho)
    g = {name: diff(cost, name) for name in STEPS[tag]}
    moved = cost.subs({name: name - ETA * g[name] for name in g}, simultaneous=True)
    equal(moved.subs(ETA, 0), cost)
    equal(diff(moved, ETA).subs(ETA, 0), -sum(each**2 for each in g.values()))


@pytest.mark.equation("K44")
def test_both_steps_are_one_step_of_the_flat_vector():
    cost = cubic(mu, rho)
    together = rho - ETA * diff(cost, rho)
    after_mu = mu - ETA * diff(cost, mu)
    in_turn = rho - ETA * diff(cost, rho).subs(mu, after_mu)
    off_by(in_turn, together, -ETA * (diff(cost, rho).subs(mu, after_mu) - diff(cost, rho)))
