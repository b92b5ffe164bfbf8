"""D18 to D28, D30, D54 to D59: by algebra and exact moments.

Expectations over noise are those of polynomials in standard normal numbers.
"""

from itertools import product

import numpy as np
import pytest
import sympy
from algebra import (
    HALF,
    LOG_2PI,
    equal,
    expectation,
    log_gaussian,
    matrix,
    number,
    off_by,
    positives,
    reals,
    sigmoid,
    softplus,
)
from sympy import Matrix, Rational, diag, diff, exp, log, sqrt

from bbb_numpy import MLP, GaussianLikelihood, GaussianPrior, Model
from bbb_numpy.model.kl_weights import CyclicalWarmUp, LinearWarmUp
from exactgrad import prove, prove_same

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
    # the variance of the gradient for mu, of the report's and with the cost in closed form
    likelihood = -diff(LOG_LIKELIHOOD, W[0])
    slopes = [each.subs(moved) for each in (likelihood + W[0] / s**2, likelihood)]
    report, closed = ((each - expectation(each, *e)) ** 2 for each in slopes)
    more = (2 * diff(likelihood, W[0]) / s**2 + s**-4) * DEVIATION[0] ** 2
    equal(expectation(report, *e) - expectation(closed, *e), more)


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


def elementwise(first, second):
    return first.multiply_elementwise(second)


def repeated(row):
    return Matrix.vstack(row, row)


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
    a, r, c, t = (matrix(letter, 2, 2) for letter in "arct")  # two rows, two units in and out
    mean, delta = matrix("M", 2, 2), matrix("D", 2, 2)
    bias, push = matrix("b", 1, 2), matrix("Db", 1, 2)
    z = (a * mean + elementwise(elementwise(a, r) * delta, c) + repeated(bias)
         + elementwise(t, repeated(push)))  # fmt: skip
    for row in range(2):
        flip = r[row, :].T * c[row, :]
        own = bias + elementwise(t[row, :], push)
        equal(z[row, :], a[row, :] * (mean + elementwise(flip, delta)) + own)
    # the box
    g = matrix("g", 2, 2)
    pairing, flipped = sum(elementwise(g, z)), elementwise(g, c)
    equal([diff(pairing, each) for each in mean], a.T * g)
    equal([diff(pairing, each) for each in delta], elementwise(a, r).T * flipped)
    equal([diff(pairing, each) for each in push], sympy.ones(1, 2) * elementwise(g, t))
    equal([diff(pairing, each) for each in a], g * mean.T + elementwise(flipped * delta.T, r))


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
    # ramps: min((e + 1)/R, 1) over R = 4 of 8 epochs, and one in each of two cycles
    ramp = [min((e + 1) / 4, 1.0) for e in range(8)]
    assert [LinearWarmUp(0.5)(e, 8) for e in range(8)] == ramp
    assert [CyclicalWarmUp(2, 1.0)(e, 8) for e in range(8)] == [*ramp[:4], *ramp[:4]]
    shares = reals("pi:3")
    equal(sum(beta * each for each in shares), beta * sum(shares))


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


@pytest.mark.equation("D54")
def test_the_curvature_of_a_linearised_network_is_that_of_its_joint_density():
    w, mu, f, x, y = matrix("w", 1, 2), matrix("m", 1, 2), matrix("f", 1, 2), reals("x"), reals("y")
    slopes = matrix("J", 2, 2)
    line = [f[k] + sum(slopes[k, j] * (w[j] - mu[j]) for j in range(2)) for k in range(2)]
    alpha, beta = positives("a b")
    joint = -alpha * (w[0] ** 2 + w[1] ** 2) / 2 - beta * sum((y - each) ** 2 for each in line) / 2
    gauss_newton = alpha * sympy.eye(2) + beta * slopes.T * slopes
    equal(-sympy.hessian(joint, list(w)), gauss_newton)  # at every w
    # of classes, 0 and 1, counts: the Hessian does not contain y
    total = sum(exp(each) for each in f)
    p = Matrix([exp(each) / total for each in f])
    of_class = y * f[0] + (1 - y) * f[1] - log(total)
    equal(-sympy.hessian(of_class, list(f)), sympy.diag(*p) - p * p.T)
    s = 1 / (1 + exp(-x))
    equal(-diff(y * x - log(1 + exp(x)), x, 2), s * (1 - s))
    equal(-diff(y * x - exp(x), x, 2), exp(x))
    # without hidden units a row's part is a product of inputs and outputs: sums of either will do
    a, b, lam = matrix("u", 2, 1), matrix("v", 2, 1), matrix("L", 2, 2)
    product = sympy.kronecker_product
    whole = product(a * a.T, lam) + product(b * b.T, lam)
    equal(list(whole), list(product((a * a.T + b * b.T) / 2, 2 * lam)))


@pytest.mark.equation("D55")
def test_the_evidence_around_a_mode_and_mackays_updates():
    # one weight, a line: Laplace's formula is the integral itself
    w, x, y = reals("w x y")
    alpha, beta = positives("a b")
    joint = (
        sqrt(alpha * beta) / (2 * sympy.pi) * exp(-alpha * w**2 / 2 - beta * (y - x * w) ** 2 / 2)
    )
    precision = alpha + beta * x**2
    mode = beta * x * y / precision
    equal(diff(log(joint), w).subs(w, mode), 0)
    variance = 1 / beta + x**2 / alpha  # of y, whose mean is 0
    equal(alpha * mode**2 + beta * (y - x * mode) ** 2, y**2 / variance)
    equal(precision / (alpha * beta), variance)  # -log s + log alpha + log beta
    # the slopes, of two directions and two outputs, and where they are 0
    logs, d, squares, misfit, rows = reals("A B C"), matrix("d", 2, 2), *positives("v E N")
    betas = [exp(logs[1]), exp(logs[2])]
    s = [sum(betas[m] * d[m, i] for m in range(2)) + exp(logs[0]) for i in range(2)]
    value = (rows * (logs[1] + logs[2]) - misfit * sum(betas) + 2 * logs[0]
             - exp(logs[0]) * squares - log(s[0]) - log(s[1])) / 2  # fmt: skip
    gamma = [sum(betas[m] * d[m, i] / s[i] for i in range(2)) for m in range(2)]
    equal(diff(value, logs[0]), (sum(gamma) - exp(logs[0]) * squares) / 2)
    equal(diff(value, logs[1]), (rows - betas[0] * misfit - gamma[0]) / 2)
    known = reals("g")
    equal(known - known / squares * squares, 0)  # alpha = gamma / |v|^2
    best = (rows - known) / misfit
    equal(rows / (misfit + known / best), best)  # both forms of the noise


@pytest.mark.equation("D69")
@pytest.mark.slow
def test_rows_may_take_the_place_of_weights():
    r, alpha = matrix("R", 2, 3), positives("a")
    weights, rows = alpha * sympy.eye(3) + r.T * r, alpha * sympy.eye(2) + r * r.T
    equal(weights.det(), alpha * rows.det())
    inverse = (sympy.eye(3) - r.T * rows.inv() * r) / alpha
    equal(list((weights * inverse).applyfunc(sympy.simplify)), list(sympy.eye(3)))


@pytest.mark.equation("D56")
def test_the_last_layer_is_linear_regression_one_row_after_the_other():
    rng = np.random.default_rng(56)
    w, r, phi = rng.standard_normal(2), rng.standard_normal(2), rng.standard_normal((2, 2))
    noise, prior = 0.7, 1.3

    def joint(w, r, phi, noise, prior):
        error = r - phi @ w
        value = -(w @ w) / (2 * prior) - (error @ error) / (2 * noise)
        return value, phi.T @ error / noise - w / prior

    def posterior(r, phi, noise, prior):
        covariance = np.linalg.inv(np.eye(2) / prior + phi.T @ phi / noise)
        return covariance, covariance @ phi.T @ r / noise

    def row_after_row(w, r, phi, noise, prior):
        before, m = posterior(r[:1], phi[:1], noise, prior)
        column = before @ phi[1]
        spread, error = noise + phi[1] @ column, r[1] - phi[1] @ m
        after, _ = posterior(r, phi, noise, prior)
        first = prior * phi[0] @ phi[0] + noise
        return {
            "covariance": before - np.outer(column, column) / spread,
            "mean": m + column / spread * error,
            # one Newton step from anywhere ends at the mode
            "mode": w + after @ joint(w, r, phi, noise, prior)[1],
            # the evidence is a product of predictions, each before its row
            "exponent": r[0] ** 2 / first + error**2 / spread,
            "determinant": first * spread,
        }

    def at_once(w, r, phi, noise, prior):
        covariance, mean = posterior(r, phi, noise, prior)
        kernel = prior * phi @ phi.T + noise * np.eye(2)
        exponent, determinant = r @ np.linalg.inv(kernel) @ r, np.linalg.det(kernel)
        return {"covariance": covariance, "mean": mean, "mode": mean,
                "exponent": exponent, "determinant": determinant}  # fmt: skip

    assert prove(joint, w, r, phi, noise, prior)
    assert prove_same(row_after_row, at_once, w, r, phi, noise, prior)


@pytest.mark.equation("D57")
def test_a_bound_for_all_q_at_once():
    # two weight vectors: the largest of E_q f - KL(q || P) over q is log E_P e^f, and it is one
    q, p, f, g = positives("q p f g")
    gain = q * f + (1 - q) * g - q * log(q / p) - (1 - q) * log((1 - q) / (1 - p))
    total = p * exp(f) + (1 - p) * exp(g)
    best, rest = p * exp(f) / total, (1 - p) * exp(g) / total
    equal(best + rest, 1)
    slope = f - g - log(q / p) + log((1 - q) / (1 - p))
    equal(diff(gain, q), slope)
    # there log(q / p) is f - log E_P e^f, for the other g - log E_P e^f: the slope is 0
    equal(best / p, exp(f - log(total)))
    equal(rest / (1 - p), exp(g - log(total)))
    equal(best * (f - (f - log(total))) + rest * (g - (g - log(total))), log(total))
    equal(diff(gain, q, 2), -1 / q - 1 / (1 - q))
    # a binomial's moment: p drops out of every term
    r = positives("r")
    term = p**2 * (1 - p) ** 3 * (r / p) ** 2 * ((1 - r) / (1 - p)) ** 3  # P(k = 2) e^(5 kl)
    equal(term, r**2 * (1 - r) ** 3)
    # kl is convex in both: determinant and diagonal of its Hessian are nowhere negative
    kl = r * log(r / p) + (1 - r) * log((1 - r) / (1 - p))
    hessian = sympy.hessian(kl, (r, p))
    equal(hessian.det(), (p - r) ** 2 / (r * (1 - r) * p**2 * (1 - p) ** 2))
    equal(hessian[0, 0], 1 / r + 1 / (1 - r))
    equal(hessian[1, 1], r / p**2 + (1 - r) / (1 - p) ** 2)


@pytest.mark.equation("D58")
def test_the_bound_to_train_on_and_its_temperature():
    r, R, k, lam = positives("r R k lambda")
    binary = r * log(r / R) + (1 - r) * log((1 - r) / (1 - R))
    apart = diff(binary - (R - r) ** 2 / (2 * R), R)
    equal(apart, (R - r) * ((R - r) + R * (R + r)) / (2 * R**2 * (1 - R)))
    bound = (sqrt(r + k) + sqrt(k)) ** 2
    equal((bound - r) ** 2, 4 * k * bound)
    large, small = sqrt(r + k), sqrt(k)
    equal(diff(bound, r), (large + small) / large)
    equal(diff(bound, k), (large + small) ** 2 / (large * small))
    # the slopes of N log 2 bound for KL and NLL are these times 1 / (2N) and 1 / (N log 2)
    equal(log(2) / 2 * (large + small) ** 2 / (large * small) * large / (large + small),
          log(2) / 2 * (large + small) / small)  # fmt: skip
    equal((sqrt(r + k) / sqrt(k)) ** 2, 1 + r / k)
    family = (r + 2 * k / lam) / (1 - lam / 2)
    best = 2 * small / (large + small)
    equal(family.subs(lam, best), bound)
    equal(diff(family, lam).subs(lam, best), 0)
    equal(log(2) / best, log(2) / 2 * (large + small) / small)


@pytest.mark.equation("D59")
def test_a_low_rank_and_a_diagonal():
    V, own, shared = matrix("v", 2, 1), Matrix(reals("e:2")), reals("h")
    a = own + V * shared
    K, M = sympy.eye(2) + V * V.T, 1 + (V.T * V)[0]
    equal(K.det(), M)
    c = (V.T * a)[0] / M
    u = a - V * c
    equal(list(K * u), list(a))
    equal((V.T * u)[0], c)
    log_q = -log(M) / 2 - (a.T * u)[0] / 2
    slope = -V / M - u * (shared - c)
    equal([diff(log_q, each) for each in V], list(slope))
    entropy = log(M) / 2
    equal([diff(entropy, each) for each in V], list(V / M))
    given = reals("a:2")  # w fixed: a does not move with V
    at = Matrix(given)
    equal([diff((at.T * K.inv() * at)[0], each) for each in given], list(2 * K.inv() * at))
