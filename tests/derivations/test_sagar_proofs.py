"""G1 to G8: the evidence upper bound, its gradients, its weights and its estimate, by algebra."""

from itertools import combinations

import pytest
import sympy
from algebra import (
    equal,
    expectation,
    log_gaussian,
    off_by,
    positives,
    reals,
    sigmoid,
    softplus,
)
from sympy import Rational, diff, exp, log

# Three weight vectors that w may be: q, and the joint density P(w, D)
Q, JOINT = positives("q:3"), positives("p:3")
EVIDENCE = sum(JOINT)
OMEGA = [p / q for p, q in zip(JOINT, Q, strict=True)]
LOG_EVIDENCE = reals("log_evidence")  # a letter for log of the sum


def over_q(values):
    return sum(q * value for q, value in zip(Q, values, strict=True))


def over_posterior(values):
    return sum(p * value for p, value in zip(JOINT, values, strict=True)) / EVIDENCE


@pytest.mark.equation("G1")
def test_the_evidence_is_the_mean_weight():
    h = reals("h:3")
    equal(over_q(OMEGA), EVIDENCE)
    weighted = over_q([o * each for o, each in zip(OMEGA, h, strict=True)])
    equal(weighted / over_q(OMEGA), over_posterior(h))


@pytest.mark.equation("G2")
def test_the_printed_forms_are_equal_and_the_bound_is_jensens():
    # the three printed forms are log of the same number
    inserted = sum(q / q * p for q, p in zip(Q, JOINT, strict=True))
    equal(EVIDENCE, inserted, over_q(OMEGA))
    # Jensen with log v <= v - 1 at v = omega / P(D): E_q log omega - log P(D) <= E_q v - 1 = 0
    v = positives("v")
    gap = v - 1 - log(v)
    assert gap.subs(v, 1) == 0
    assert sympy.solve(diff(gap, v), v) == [1]
    assert diff(gap, v, 2).is_positive
    q_sums_to_one = {Q[2]: 1 - Q[0] - Q[1]}
    below = over_q([o / EVIDENCE for o in OMEGA]) - sum(Q)
    equal(below.subs(q_sums_to_one), 0)
    # the upper bound: log P(D) - U is E of log(q / posterior) under the posterior, v = that ratio
    log_p = [log(p) for p in JOINT]
    upper = over_posterior([a - log(q) for a, q in zip(log_p, Q, strict=True)])
    ratio = over_posterior([log(q) - a + LOG_EVIDENCE for a, q in zip(log_p, Q, strict=True)])
    equal(LOG_EVIDENCE - upper, ratio)
    mean = over_posterior([q * EVIDENCE / p for q, p in zip(Q, JOINT, strict=True)])
    equal(mean, sum(Q))
    kl = sum(q * (log(q) - log(p)) for q, p in zip(Q, JOINT, strict=True))
    equal(-kl, over_q([log(o) for o in OMEGA]))  # the missing line's right-hand side is -F


@pytest.mark.equation("G3")
def test_a_sum_over_a_minibatch_estimates_a_part_of_the_sum_over_the_data():
    rows = reals("g:4")
    batches = [sum(each) for each in combinations(rows, 2)]
    mean = sum(batches) / len(batches)
    off_by(mean, sum(rows), (Rational(2, 4) - 1) * sum(rows))
    equal(mean * Rational(4, 2), sum(rows))
    # printed: ascent. It raises U, which is to be lowered: by 2 gamma g too much
    gamma, phi, g = positives("gamma"), reals("phi"), reals("g")
    off_by(phi + gamma * g, phi - gamma * g, 2 * gamma * g)


def functions():
    """Log of three joint and three variational densities as functions of a number."""
    t = reals("t")
    log_p = [sympy.Function(f"logp{k}")(t) for k in range(3)]
    return t, log_p, [sympy.Function(f"logq{k}")(t) for k in range(3)]


@pytest.mark.equation("G4")
def test_the_gradient_of_the_upper_bound():
    # 1/Z sum p log(p/q) with Z regarded as fixed
    t, log_p, log_q = functions()
    z = positives("z")
    bound = sum(exp(a) * (a - b) for a, b in zip(log_p, log_q, strict=True)) / z
    line = sum(exp(a) / z * ((a - b + 1) * diff(a, t) - diff(b, t))
               for a, b in zip(log_p, log_q, strict=True))  # fmt: skip
    equal(diff(bound, t), line)
    # variational parameters do not occur in P(w, D): the first term is 0
    fixed = reals("a:3")
    held = dict(zip(log_p, fixed, strict=True))
    left = -sum(exp(a) / z * diff(b, t) for a, b in zip(fixed, log_q, strict=True))
    equal(diff(bound.subs(held), t), left)
    # as a definition, "the ESBO", it is not U
    off_by(left.subs({diff(b, t): 1 for b in log_q}), sum(exp(a) * a for a in fixed) / z,
           -sum(exp(a) * (1 + a) for a in fixed) / z)  # fmt: skip


@pytest.mark.equation("G5")
def test_the_reparameterised_gradient_has_its_factor_on_both_terms():
    # E_eps[omega log omega] / Z with moving samples, noise fixed
    t, log_p, log_q_of = functions()
    z, shares = positives("z"), positives("c:3")
    logs = [a - b for a, b in zip(log_p, log_q_of, strict=True)]
    bound = sum(c * exp(each) * each for c, each in zip(shares, logs, strict=True)) / z
    d_omega = [exp(each) * diff(each, t) for each in logs]
    steps = sum(c * (each + 1) * d for c, each, d in zip(shares, logs, d_omega, strict=True)) / z
    right = sum(c * exp(each) / z * (each + 1) * (diff(a, t) - diff(b, t))
                for c, each, a, b in zip(shares, logs, log_p, log_q_of, strict=True))  # fmt: skip
    equal(diff(bound, t), steps, right)
    # as printed the factor is missing on the second term
    letters = {f: reals(f"a{k}") for k, f in enumerate((*log_p, *log_q_of))}
    slopes = {diff(f, t): reals(f"d{k}") for k, f in enumerate((*log_p, *log_q_of))}
    printed = sum(c * exp(each) / z * ((each + 1) * diff(a, t) - diff(b, t))
                  for c, each, a, b in zip(shares, logs, log_p, log_q_of, strict=True))  # fmt: skip
    amount = sum(c * exp(each) / z * each * diff(b, t)
                 for c, each, b in zip(shares, logs, log_q_of, strict=True))  # fmt: skip
    off_by(*(line.xreplace(slopes).xreplace(letters) for line in (printed, right, amount)))
    # for mu, K10 has no slope: there the two agree. For rho it is -sig(rho)/sigma
    rho, eps = reals("rho eps")
    equal(diff(-log(softplus(rho)) - eps**2 / 2, rho), -sigmoid(rho) / softplus(rho))


@pytest.mark.equation("G6")
def test_the_estimate_of_the_upper_bound_and_its_bracket():
    a, b = positives("omega:2")
    total = a + b
    hats = [a / total, b / total]
    log_total, log_mean = reals("log_total"), reals("log_total") - log(2)
    # log omega = log hat omega + log of the sum, with a letter for the latter
    log_hat = [log(a) - log_total, log(b) - log_total]
    equal([each + log_total for each in log_hat], [log(a), log(b)])
    estimate = sum(hat * log(each) for hat, each in zip(hats, (a, b), strict=True))
    entropy = -sum(hat * each for hat, each in zip(hats, log_hat, strict=True))
    equal(estimate, log_mean + (log(2) - entropy))
    # one sample: hat omega = 1 and the estimate is log omega, of mean -F, not U
    off_by(log(a), log_total, log(a) - log_total)


@pytest.mark.equation("G7")
def test_the_weights_of_the_algorithm():
    shift = reals("c")
    log_omega = reals("log_omega:2")
    shifted = [exp(each - shift) for each in log_omega]
    plain = [exp(each) for each in log_omega]
    # a common factor e^-c cancels
    equal([each / sum(shifted) * exp(shift) * exp(-shift) for each in shifted],
          [sympy.powsimp(each * exp(-shift)) / sum(shifted) for each in plain])  # fmt: skip
    letters = positives("p q f")
    equal(letters[0] * letters[2] / (letters[0] * letters[2] + letters[1] * letters[2]),
          letters[0] / (letters[0] + letters[1]))  # fmt: skip
    # as printed: not divided by the sum, shifted by plus the minimum
    p, q, _ = letters
    smaller = p  # exp(log w + min) with the minimum log p
    off_by(p * smaller, p / (p + q), p * smaller - p / (p + q))
    # E[e^X] - e^{E X} for two equally likely values is half a square: scaled minibatches are biased
    u, v_ = positives("u v")
    mean, at_mean = (u**2 + v_**2) / 2, u * v_
    off_by(mean, at_mean, (u - v_) ** 2 / 2)


@pytest.mark.equation("G8")
def test_the_gradient_of_the_algorithm_holds_its_samples_fixed():
    # the direct partials of log q with w fixed (W4, W5), then w as it was drawn
    w, mu, rho, e = reals("w mu rho e")
    density = log_gaussian(w, mu, softplus(rho))
    moved = {w: mu + softplus(rho) * e}
    direct = [diff(density, mu).subs(moved), diff(density, rho).subs(moved)]
    slope = sigmoid(rho) / softplus(rho)
    equal(direct, [e / softplus(rho), (e**2 - 1) * slope])
    # read literally, through g: 0 and s/sigma, with no data in it
    total = [diff(density.subs(moved), mu), diff(density.subs(moved), rho)]
    equal(total, [0, -slope])
    off_by([-each for each in total], [-each for each in direct], [e / softplus(rho), e**2 * slope])
    # one sample teaches nothing
    equal([expectation(each, e) for each in (e, 1 - e**2)], [0, 0])
    # a Gaussian posterior N(m, v): the exact gradients
    m, sigma, variance = reals("m"), positives("sigma"), positives("variance")
    noise = (m + sympy.sqrt(variance) * e - mu) / sigma
    equal(-expectation(noise, e) / sigma, -(m - mu) / sigma**2)
    equal(expectation(1 - noise**2, e) / sigma, 1 / sigma - (variance + (m - mu) ** 2) / sigma**3)
