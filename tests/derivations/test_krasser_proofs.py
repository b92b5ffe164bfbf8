"""R1 to R10: Krasser's free energy, his mixture prior and its gradients, his bands, by algebra."""

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
from sympy import Max, diff, exp, log, sqrt

# One weight w = mu + sigma eps, prior N(0, s^2), one target y ~ N(x w, v^2)
mu, eps, w, x, y = reals("mu epsilon w x y")
sigma, s, v = positives("sigma s v")
LOG_Q, LOG_PRIOR = log_gaussian(w, mu, sigma), log_gaussian(w, 0, s)
LOG_LIKELIHOOD = log_gaussian(y, x * w, v)


def mean(line):
    """E_q of a polynomial in w."""
    return expectation(line.subs(w, mu + sigma * eps), eps)


KL = log(s / sigma) + (mu**2 + sigma**2) / (2 * s**2) - HALF
EXPECTED_NLL = HALF * LOG_2PI + log(v) + ((y - x * mu) ** 2 + x**2 * sigma**2) / (2 * v**2)


@pytest.mark.equation("R1")
def test_free_energy_is_a_complexity_cost_plus_a_likelihood_cost():
    bracket = mean(LOG_Q - LOG_PRIOR - LOG_LIKELIHOOD)
    equal(bracket, mean(LOG_Q - LOG_PRIOR) - mean(LOG_LIKELIHOOD), KL + EXPECTED_NLL)
    assert KL.subs({mu: 0, sigma: s}) == 0  # the minimum of the first alone is the prior
    # the text's "expected value of the likelihood" in place of minus that of its logarithm
    other = positives("expected_likelihood")
    off_by(KL + other, KL + EXPECTED_NLL, other - EXPECTED_NLL)
    # the appendix: KL(q || q) for KL(q || P(w))
    off_by(mean(LOG_Q - LOG_Q), KL, -KL)
    # the appendix, line 1: P(D) outside of the logarithm, q = 1 at the posterior of two points
    a, b, evidence = positives("a b evidence")
    off_by(
        log(a / b) * evidence, log(a / b * evidence), (evidence - 1) * log(a / b) - log(evidence)
    )


@pytest.mark.equation("R2")
def test_free_energy_is_three_expectations():
    three = [mean(LOG_Q), -mean(LOG_PRIOR), -mean(LOG_LIKELIHOOD)]
    equal(three[0], -HALF * (1 + LOG_2PI) - log(sigma))  # minus the entropy
    equal(three[1], log(s) + HALF * LOG_2PI + (mu**2 + sigma**2) / (2 * s**2))
    equal(sum(three), KL + EXPECTED_NLL)


@pytest.mark.equation("R3")
def test_the_mean_over_samples_is_unbiased_and_exact_at_the_posterior():
    e = reals("e:2")
    bracket = LOG_Q - LOG_PRIOR - LOG_LIKELIHOOD
    each = [bracket.subs(w, mu + sigma * noise) for noise in e]
    estimate = sum(each) / 2
    free = mean(bracket)
    equal(expectation(estimate, *e), free)
    variance = expectation((each[0] - free) ** 2, e[0])
    equal(expectation((estimate - free) ** 2, *e), variance / 2)  # Var / S
    # at the posterior every bracket is -log P(D), whatever w
    precision = s**-2 + x**2 / v**2
    posterior = {mu: x * y / v**2 / precision, sigma: 1 / sqrt(precision)}
    at_posterior = bracket.subs(posterior)
    equal(diff(at_posterior, w), 0)
    evidence = log_gaussian(y, 0, sqrt(x**2 * s**2 + v**2))  # y = x w + noise
    equal(sympy.expand_log(sympy.simplify(at_posterior.subs(w, 0) + evidence), force=True), 0)
    # the KL in closed form and one sample of the rest: no longer exact
    half = (KL - LOG_LIKELIHOOD).subs(posterior)
    assert sympy.simplify(diff(half, w)) != 0


# The scale mixture prior
share, s1, s2 = positives("share sigma1 sigma2")
WEIGHTS = reals("w:2")
SHARES = (share, 1 - share)


def log_part(k, at=w, deviations=(s1, s2)):
    """l_k of R4."""
    return log(SHARES[k]) - log(deviations[k]) - at**2 / (2 * deviations[k] ** 2)


def log_mixture(at):
    """logsumexp(l_1, l_2) - log(2 pi)/2, written out."""
    return log(sum(exp(log_part(k, at)) for k in range(2))) - HALF * LOG_2PI


def responsibility(at):
    """R of the wide component: sigmoid(l_1 - l_2)."""
    return 1 / (1 + exp(log_part(1, at) - log_part(0, at)))


# e^-w^2/(2 sigma_k^2), a letter for each component: all that depends on w is made of them
WIDE, NARROW = positives("wide narrow")


def in_letters(line):
    """Write the two Gaussian kernels as letters."""
    kernels = {exp(-(w**2) / (2 * s1**2)): WIDE, exp(-(w**2) / (2 * s2**2)): NARROW}
    rewritten = line.replace(
        lambda each: isinstance(each, exp),
        lambda each: sympy.expand_power_exp(exp(sympy.expand(each.args[0]))),
    )
    return sympy.powsimp(sympy.sympify(rewritten).subs(kernels).subs(
        {exp(w**2 / (2 * s1**2)): 1 / WIDE, exp(w**2 / (2 * s2**2)): 1 / NARROW}))  # fmt: skip


def equal_in_letters(*lines):
    equal(*(in_letters(line) for line in lines))


@pytest.mark.equation("R4")
def test_the_mixture_is_a_logsumexp_of_its_components():
    for k, deviation in enumerate((s1, s2)):
        equal(SHARES[k] * gaussian(w, 0, deviation), exp(log_part(k)) / sqrt(2 * sympy.pi))
    c, a, b = reals("c a b")
    inside = (exp(a - c) + exp(b - c)) * exp(c)
    equal(sympy.expand(sympy.powsimp(sympy.expand(inside))), exp(a) + exp(b))
    printed = log(share * gaussian(w, 0, s1) + (1 - share) * gaussian(w, 0, s2))
    ratio = in_letters(exp(printed)) / in_letters(exp(log_mixture(w)))
    equal(ratio, 1)  # right on paper
    off_by(log_mixture(WEIGHTS[0]), sum(log_mixture(each) for each in WEIGHTS),
           -log_mixture(WEIGHTS[1]))  # fmt: skip
    # the variance of one weight
    e = reals("e")
    second = share * expectation((s1 * e) ** 2, e) + (1 - share) * expectation((s2 * e) ** 2, e)
    equal(second, share * s1**2 + (1 - share) * s2**2)


@pytest.mark.equation("R5")
def test_the_slope_of_the_mixture():
    l1, l2 = log_part(0), log_part(1)
    quotient = (exp(l1) * diff(l1, w) + exp(l2) * diff(l2, w)) / (exp(l1) + exp(l2))
    xi = responsibility(w)
    boxed = -w * (xi / s1**2 + (1 - xi) / s2**2)
    equal([diff(l1, w), diff(l2, w)], [-w / s1**2, -w / s2**2])
    equal_in_letters(diff(log_mixture(w), w), quotient, boxed)
    equal_in_letters(exp(l1) / (exp(l1) + exp(l2)), xi)
    equal_in_letters(exp(l2) / (exp(l1) + exp(l2)), 1 - xi)
    # where the halves meet
    meet = 2 * log((1 - share) * s1 / (share * s2)) / (s2**-2 - s1**-2)
    equal(sympy.expand_log(((l1 - l2).subs(w**2, meet)).subs(share, 1 / (1 + x**2)), force=True)
          .subs(x, 3), 0)  # fmt: skip


# The learned numbers of R8
T1, T2, A = reals("t1 t2 a")
D_S1 = responsibility(w) * (w**2 / s1**3 - 1 / s1)
D_S2 = (1 - responsibility(w)) * (w**2 / s2**3 - 1 / s2)


@pytest.mark.equation("R6")
def test_the_gradient_for_the_two_deviations():
    l1, l2 = log_part(0), log_part(1)
    equal([diff(l1, s1), diff(l2, s2)], [w**2 / s1**3 - 1 / s1, w**2 / s2**3 - 1 / s2])
    assert diff(l1, s2) == diff(l2, s1) == 0
    equal_in_letters(diff(log_mixture(w), s1), D_S1)
    equal_in_letters(diff(log_mixture(w), s2), D_S2)
    # the first vanishes where sigma_1^2 is the mean square, weighted by the responsibilities
    xi, at = positives("xi:2"), WEIGHTS
    fixed = sum(xi[j] * (at[j] ** 2 / s1**3 - 1 / s1) for j in range(2))
    best = sum(xi[j] * at[j] ** 2 for j in range(2)) / sum(xi)
    equal(fixed * s1**3 / sum(xi), best - s1**2)


@pytest.mark.equation("R7")
def test_the_gradient_for_the_weight_of_the_components():
    equal([diff(log_part(0), share), diff(log_part(1), share)], [1 / share, -1 / (1 - share)])
    xi = responsibility(w)
    slope = xi / share - (1 - xi) / (1 - share)
    equal_in_letters(diff(log_mixture(w), share), slope)
    letter = reals("xi")
    equal(letter / share - (1 - letter) / (1 - share), (letter - share) / (share * (1 - share)))
    equal(diff(sigmoid(A), A), sigmoid(A) * (1 - sigmoid(A)))  # which cancels the denominator
    equal((letter - share) / (share * (1 - share)) * share * (1 - share), letter - share)


@pytest.mark.equation("R8")
def test_numbers_that_cannot_leave_their_domain():
    # the raw numbers moved: t1 moves sigma_1 alone, t2 both, by the chain rule
    density = sympy.Function("logp")(s1, s2)
    d1, d2 = diff(density, s1), diff(density, s2)
    floor = positives("c")
    narrow = floor + softplus(T2)
    wide = narrow + softplus(T1)
    equal(diff(wide, T1), sigmoid(T1))
    equal(diff(narrow, T1), 0)
    equal(d1 * diff(wide, T2) + d2 * diff(narrow, T2), (d1 + d2) * sigmoid(T2))
    # positive and ordered
    assert log(1 + positives("u")).is_positive
    equal(wide - narrow, softplus(T1))
    # log pi and log(1 - pi) from a
    equal(log(sigmoid(A)), -softplus(-A))
    equal(1 - sigmoid(A), sigmoid(-A))
    # as programmed: both orders are the same prior, and pi > 1 is no density
    swapped = {share: 1 - share, s1: s2, s2: s1}
    equal_in_letters(exp(log_mixture(w)).subs(swapped, simultaneous=True), exp(log_mixture(w)))
    assert (share * gaussian(0, 0, s1) + (1 - share) * gaussian(0, 0, s2)).subs(
        {share: sympy.Rational(11, 10), s1: 1, s2: sympy.Rational(1, 20)}
    ) < 0
    # the start
    equal(log(exp(softplus(T2)) - 1), T2)


@pytest.mark.equation("R9")
def test_the_mean_of_the_outputs_is_not_the_output_of_the_mean():
    e = reals("e")
    phi = exp(-(e**2) / 2) / sqrt(2 * sympy.pi)
    Phi = (1 + sympy.erf(e / sqrt(2))) / 2
    equal(diff(phi, e), -e * phi)
    integral = mu * Phi - sigma * phi  # of (mu + sigma e) phi
    equal(diff(integral, e), (mu + sigma * e) * phi)
    edge = -mu / sigma
    found = sympy.limit(integral, e, sympy.oo) - integral.subs(e, edge)
    boxed = mu * Phi.subs(e, mu / sigma) + sigma * phi.subs(e, mu / sigma)
    equal(found, boxed)
    # as printed, the output of the mean: for mu < 0 it is 0
    below = sympy.Symbol("mu", negative=True)
    off_by(Max(below, 0), boxed.subs(mu, below), -boxed.subs(mu, below))
    # Taylor: exact for a parabola; none for a straight line
    c = reals("c:3")
    parabola = c[0] + c[1] * w + c[2] * w**2
    equal(mean(parabola), parabola.subs(w, mu) + HALF * sigma**2 * diff(parabola, w, 2))
    equal(mean(c[0] + c[1] * w), c[0] + c[1] * mu)
    # linear in each weight alone, as a deep network without activations: for independent weights
    # the two agree, for correlated ones the covariance is left over
    m, factor, noise = reals("m:2"), reals("l:3"), reals("e:2")
    independent = [m[0] + factor[0] * noise[0], m[1] + factor[1] * noise[1]]
    equal(expectation(sympy.prod(independent), *noise), sympy.prod(m))
    correlated = [independent[0], independent[1] + factor[2] * noise[0]]
    off_by(sympy.prod(m), expectation(sympy.prod(correlated), *noise), -factor[0] * factor[2])


@pytest.mark.equation("R10")
def test_the_band_of_observations_adds_the_variance_of_the_noise():
    # f = x w, y = f + v noise, both independent
    noise = reals("noise")
    f = x * (mu + sigma * eps)
    variance = expectation((f + v * noise - x * mu) ** 2, eps, noise)
    equal(variance, expectation((f - x * mu) ** 2, eps) + v**2, x**2 * sigma**2 + v**2)
    epistemic = x**2 * sigma**2
    off_by(epistemic, variance, -(v**2))  # the printed band, of functions only
    equal(variance.subs(sigma, 0), v**2)  # where data are dense it tends to 2 sigma_y, not 0
