"""D1 to D17, D29, D31 to D46, D60 to D63, D67, D68, D73 to D77, D84, D85: parts, rules, by algebra.

D18 to D28, D30, D54, D55 and D56 are in test_our_estimator_proofs.py.
"""

from itertools import combinations, pairwise, permutations, product
from math import comb

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
    log_gaussian,
    matrix,
    number,
    off_by,
    positives,
    proved_equal,
    reals,
    ships,
    sigmoid,
    softplus,
    vanishes,
)
from sympy import Integer, Matrix, Rational, cos, diff, erf, exp, eye, gamma, log, sin, sqrt, tanh

from bbb_numpy import (
    MLP,
    GaussianLikelihood,
    GaussianPrior,
    Model,
)
from bbb_numpy.model.kl_weights import geometric_kl_weights, proportional_kl_weights
from bbb_numpy.numeric.buffers import Buffers
from bbb_numpy.parts import network
from bbb_studies import linear_gaussian
from bbb_studies.data import powerball
from bbb_studies.ours import elbo_minima

mu, w, x, y = reals("mu w x y")
sigma, s, v, nu = positives("sigma s v nu")
Y, F, W = matrix("y", 2, 2), matrix("f", 2, 2), reals("w:2")
PHI = (1 + erf(x / sqrt(2))) / 2  # of N(0, 1) at x
DENSITY = exp(-(x**2) / 2) / sqrt(2 * sympy.pi)


@pytest.mark.equation("D1")
def test_learned_noise():
    t = reals("t:2")
    nll = sum(
        HALF * LOG_2PI + t[k] + HALF * (Y[b, k] - F[b, k]) ** 2 * exp(-2 * t[k])
        for b in range(2)
        for k in range(2)
    )
    equal(nll, -sum(log_gaussian(Y[b, k], F[b, k], exp(t[k])) for b in range(2) for k in range(2)))
    for_f = [-(Y[b, k] - F[b, k]) * exp(-2 * t[k]) for b in range(2) for k in range(2)]
    for_t = [sum(1 - (Y[b, k] - F[b, k]) ** 2 / exp(t[k]) ** 2 for b in range(2)) for k in range(2)]
    equal([diff(nll, f) for f in F], for_f)
    equal([diff(nll, each) for each in t], for_t)
    square, variance = sum((Y[b, 0] - F[b, 0]) ** 2 for b in range(2)) / 2, positives("variance")
    at_square = for_t[0].subs(t[0], HALF * log(variance))
    equal(at_square, 2 - 2 * square / variance)  # 0 at the mean square


@pytest.mark.equation("D2")
def test_momentum():
    m, eta, h = positives("m eta h")
    g = reals("g:3")
    velocity = [g[0], m * g[0] + g[1], m * (m * g[0] + g[1]) + g[2]]
    equal(velocity[2], sum(m ** (2 - i) * g[i] for i in range(3)))
    constant = velocity[2].subs(dict.fromkeys(g, g[0]))
    equal(constant, g[0] * (1 - m**3) / (1 - m))
    # a parabola: v from the last two positions
    old, before = reals("old before")
    step = eta * (m * (before - old) / eta + h * old)
    equal(old - step, (1 + m - eta * h) * old - m * before)
    # Jury: at the edges one root is 1 or -1; the product of the roots is m
    z = sympy.Symbol("z")
    polynomial = z**2 - (1 + m - eta * h) * z + m
    assert sympy.expand(polynomial.subs(z, 1)) == eta * h
    equal(polynomial.subs(z, -1), 2 * (1 + m) - eta * h)
    equal(polynomial.subs(z, 0), m)
    # a constant rate and noise: the variance that reproduces itself, and the one that is seen
    v = positives("v")
    left = eta * v / (h * (2 - eta * h))
    equal((1 - eta * h) ** 2 * left + eta**2 * v, left)


@pytest.mark.equation("D3")
def test_adam_in_two_forms():
    b1, b2, eta, tiny = positives("beta1 beta2 eta epsilon")
    g = positives("g:3")
    first = second = large_first = large_second = Integer(0)
    for t, each in enumerate(g, start=1):
        first, second = b1 * first + (1 - b1) * each, b2 * second + (1 - b2) * each**2
        large_first, large_second = b1 * large_first + each, b2 * large_second + each**2
        equal(first, (1 - b1) * large_first)
        equal(second, (1 - b2) * large_second)
        u, r_square = (1 - b1) / (1 - b1**t), (1 - b2) / (1 - b2**t)
        equal(first / (1 - b1**t), u * large_first)
        equal(second / (1 - b2**t), r_square * large_second)
        # the step itself, with letters for M, V and r: sqrt(r^2 V) = r sqrt(V)
        big, root, r, unbias = positives("M rootV r u")
        equal(eta * unbias * big / (r * root + tiny), eta * unbias / r * big / (root + tiny / r))
    # no bias: all gradients of the same mean
    same = dict.fromkeys(g, g[0])
    equal((first / (1 - b1**3)).subs(same), g[0])
    equal((second / (1 - b2**3)).subs(same), g[0] ** 2)
    off_by(first.subs(same), g[0], -(b1**3) * g[0])  # without the hat
    # of two numbers the sum of v-hat is what the lengths have as theirs
    h = positives("h:3")
    ages = [(1 - b2) * b2**age / (1 - b2**3) for age in (2, 1, 0)]
    lengths = [a**2 + b**2 for a, b in zip(g, h, strict=True)]
    both = second + second.subs(dict(zip(g, h, strict=True)))
    equal(both / (1 - b2**3), sum(a * b for a, b in zip(ages, lengths, strict=True)))


@pytest.mark.equation("D61")
def test_bonnets_and_prices_identities():
    c, e = reals("c:6"), reals("e")
    f = sum(c[k] * w**k for k in range(6))
    at = {w: mu + sigma * e}

    def mean(of):
        return expectation(sympy.expand(of.subs(at)), [e])

    equal(diff(mean(f), mu), mean(diff(f, w)))
    equal(sigma * diff(mean(f), sigma), sigma**2 * mean(diff(f, w, 2)))
    # by the slope times the noise, as it is computed, with the entropy of q
    equal(diff(mean(f) - log(sigma), sigma), mean(diff(f, w) * (w - mu) / sigma) - 1 / sigma)
    # with a kink, f = |w|: f'' is twice the density of q at 0
    kink = mu * (2 * (1 + erf(mu / sigma / sqrt(2))) / 2 - 1) + 2 * sigma * DENSITY.subs(
        x, mu / sigma
    )
    equal(diff(kink, sigma), sigma * 2 * DENSITY.subs(x, mu / sigma) / sigma)


@pytest.mark.equation("D62")
def test_natural_gradient_steps_of_a_gaussian():
    (e, g, gap), (r, h) = reals("e g d"), positives("r h")
    at = {w: mu + sigma * e}
    log_q = log_gaussian(w, mu, sigma)
    score = [diff(log_q, each).subs(at) for each in (mu, sigma)]
    fisher = [[expectation(sympy.expand(a * b), [e]) for b in score] for a in score]
    equal([*fisher[0], *fisher[1]], [1 / sigma**2, 0, 0, 2 / sigma**2])
    # half of it is the divergence of a neighbour, to second order
    length, move, widening = reals("t u v")
    near = sigma + length * widening
    kl = (
        log(near / sigma) + (sigma**2 + (length * move) ** 2) / (2 * near**2) - sympy.Rational(1, 2)
    )
    equal(diff(kl, length).subs(length, 0), 0)
    equal(diff(kl, length, 2).subs(length, 0), (move**2 + 2 * widening**2) / sigma**2)
    # the Fisher matrix of (s mu, -s / 2) is the slope of (mu, mu^2 + sigma^2) for it
    first, second = reals("a b")
    moments = Matrix([-first / second / 2, first**2 / second**2 / 4 - 1 / second / 2])
    natural = Matrix([first, second])
    normal = (
        first**2 / second / 4 + log(-2 * second) / 2
    )  # second < 0; log q = natural . (w, w^2) + this
    equal(list(moments), [-diff(normal, each) for each in natural])
    equal(list(moments.jacobian(natural)), list(-sympy.hessian(normal, list(natural))))
    # the step in it, with slopes g for mu and (h - s) / 2 for the variance, is Newton's
    s_new = s + r * (h - s)
    slopes = g - mu * (h - s), (h - s) / 2  # for the moments
    equal(-s / 2 - r * slopes[1], -s_new / 2)
    equal((s * mu - r * slopes[0]) / s_new, mu - r * g / s_new)
    equal(s_new.subs(r, 1), h)  # a parabola with curvature h, minimum at gap: in one step
    equal((mu - r * g / s_new).subs(g, h * (mu - gap)).subs(r, 1), gap)
    # positive, and to first order the same
    step = r * (h / s - 1)
    kept = s * (1 + (1 + step) ** 2) / 2
    equal(kept, s_new + r**2 * (h - s) ** 2 / (2 * s))
    equal(kept - s / 2, s * (1 + step) ** 2 / 2)
    # how far a step of the mean is
    moved = expectation(sympy.expand((log_q - log_q.subs(mu, mu + gap)).subs(at)), [e])
    equal(moved, gap**2 / (2 * sigma**2))


@pytest.mark.equation("D63")
def test_stochastic_natural_gradients_of_a_conjugate_model():
    # F of N(m, 1 / s) and a line: its natural gradient is the distance to the posterior
    b, c, rows = *positives("b c"), matrix("r", 3, 2)  # prior precision, 1 / noise variance
    aim = (
        c * sum(rows[i, 0] * rows[i, 1] for i in range(3)),
        b + c * sum(rows[i, 0] ** 2 for i in range(3)),
    )
    mean_square, m = reals("q m")  # E[w^2], E[w]
    joint = (
        -b * mean_square / 2
        - c
        * sum(rows[i, 0] ** 2 * mean_square - 2 * rows[i, 0] * rows[i, 1] * m for i in range(3))
        / 2
    )
    variance = mean_square - m**2
    free = -log(variance) / 2 - joint
    equal(diff(free, m), m / variance - aim[0])
    equal(diff(free, mean_square), -1 / (2 * variance) + aim[1] / 2)
    # a pass over equal minibatches with steps 1 / t is the mean of their estimates
    at, parts = reals("start"), reals("t:3")
    for t, part in enumerate(parts, start=1):
        at = at + (3 * part - at) / t
    equal(at, sum(parts))
    # noise that reproduces itself under a constant step
    r = positives("r")
    equal((1 - r) ** 2 * r / (2 - r) * v + r**2 * v, r / (2 - r) * v)


@pytest.mark.equation("D4")
def test_the_law_of_total_variance_and_its_blocks():
    # two weight vectors, y = f + sqrt(v) noise
    q, f, variance, e = positives("q"), reals("f:2"), positives("v:2"), reals("e")
    shares = [q, 1 - q]

    def mean(values):
        return sum(share * value for share, value in zip(shares, values, strict=True))

    second = mean([expectation((f[k] + sqrt(variance[k]) * e) ** 2, e) for k in range(2)])
    equal(second, mean(variance) + mean([each**2 for each in f]))
    total = second - mean(f) ** 2
    epistemic = mean([each**2 for each in f]) - mean(f) ** 2
    equal(total, epistemic + mean(variance))
    off_by(sqrt(epistemic) ** 2, total, -mean(variance))  # the first part alone

    # Chan's blocks: one of two numbers, one of three
    a = reals("a:5")
    parts = [a[:2], a[2:]]
    means = [sum(part) / len(part) for part in parts]
    squares = [sum((each - m) ** 2 for each in part) for part, m in zip(parts, means, strict=True)]
    gap = means[1] - means[0]
    equal(sum(a) / 5, means[0] + Rational(3, 5) * gap)
    whole = sum((each - sum(a) / 5) ** 2 for each in a)
    equal(whole, sum(squares) + Rational(6, 5) * gap**2)


@pytest.mark.equation("D5")
def test_the_log_predictive_density():
    p = positives("p:3")
    # the mean of three is the average over the three means of two
    left_out = [sum(pair) / 2 for pair in combinations(p, 2)]
    equal(sum(p) / 3, sum(left_out) / 3)
    # Jensen by the tangent: log t <= log m + (t - m)/m, which averages to log m
    m = positives("m")
    tangents = sum((each - m) / m for each in p) / 3
    equal(tangents.subs(m, sum(p) / 3), 0)
    assert diff(log(m), m, 2).is_negative
    logs, c = reals("l:3"), reals("c")
    shifted = exp(c) * sum(exp(each - c) for each in logs)
    equal(sympy.powsimp(sympy.expand(shifted)), sum(exp(each) for each in logs))


@pytest.mark.equation("D6")
def test_the_shares_of_the_complexity_cost_sum_to_one():
    cost, shares, nll = reals("C"), reals("pi:3"), reals("nll:3")
    total = sum(shares[k] * cost + nll[k] for k in range(3))
    equal(total - (cost + sum(nll)), cost * (sum(shares) - 1))  # 0 if and only if they sum to 1
    off_by(total.subs({each: Rational(1, 2) for each in shares}), cost + sum(nll), cost / 2)
    rows = positives("B:3")
    proportional = [each / sum(rows) for each in rows]
    equal(sum(proportional), 1)
    geometric = [Integer(2) ** (3 - i) / (Integer(2) ** 3 - 1) for i in (1, 2, 3)]
    halves = [Rational(1, 2**i) / sum(Rational(1, 2**m) for m in (1, 2, 3)) for i in (1, 2, 3)]
    assert sum(geometric) == 1
    assert geometric == halves
    sizes = [3, 3, 1]
    # three minibatches of seven rows, each with the share 3/7 of Krasser's num_batches = 7/3
    off_by(3 * Rational(3, 7) * cost, cost, Rational(2, 7) * cost)
    ships(proportional_kl_weights(sizes), proportional, dict(zip(rows, sizes, strict=True)))
    ships(geometric_kl_weights(sizes), geometric, {})


@pytest.mark.equation("D7")
def test_the_stable_softplus_family():
    e, u = positives("e u")  # e^-|rho| and e^rho
    # rho <= 0: e = u; rho > 0: u = 1/e, rho = -log e
    equal(log(1 + u).subs(u, e), log(1 + e))
    equal(sympy.expand_log(log((1 / e) * (1 + e)), force=True), -log(e) + log(1 + e))
    equal((u / (1 + u)).subs(u, 1 / e), 1 - e / (1 + e))
    # far left
    series = sympy.series(log(1 + u), u, 0, 3).removeO()
    equal(series, u - u**2 / 2)
    assert sympy.series(u / (1 + u) / log(1 + u), u, 0, 2).removeO() == 1 - u / 2
    assert sympy.series(log(log(1 + u) / u), u, 0, 2).removeO() == -u / 2
    # log(1 + u) = 2 artanh v
    v = u / (2 + u)
    equal((1 + v) / (1 - v), 1 + u)
    # complex arguments: |1 + z|^2
    equal((1 + x) ** 2 + y**2, 1 + x * (2 + x) + y**2)


@pytest.mark.equation("D66")
def test_what_rounding_costs_and_what_a_formula_adds():
    e, u, delta = positives("e u delta")  # e^x, e^-x, and the rounding of a sum
    softplus = log(1 + sympy.exp(x))
    slope = sympy.diff(softplus, x)
    # the condition number is the relative change of the value over that of the input
    changed = sympy.diff(log(1 + sympy.exp(x * (1 + delta))), delta).subs(delta, 0)
    equal(changed, x * slope)
    equal(sympy.limit(slope / softplus, x, -sympy.oo), 1)  # kappa / |x|, far left
    assert sympy.series(log(1 + u) - u / (1 + u), u, 0, 3).removeO() == u**2 / 2  # s < sigma
    # as written the rounding of the sum is an absolute error of the logarithm
    equal(sympy.expand_log(log((1 + e) * (1 + delta)), force=True), log(1 + e) + log(1 + delta))
    assert sympy.series(log(1 + delta), delta, 0, 2).removeO() == delta
    # the second form: x = log e is factored out
    equal(sympy.expand_log(log(e * (1 + 1 / e)), force=True) - log(e), log(1 + 1 / e))
    # the sigmoid's own condition number
    sigmoid = 1 / (1 + sympy.exp(-x))
    equal(x * sympy.diff(sigmoid, x) / sigmoid, x / (1 + sympy.exp(x)))


# Linear regression: a weight and a bias, two rows
XS, YS, M, DEVIATIONS = reals("x:2"), reals("y:2"), reals("m:2"), positives("sigma:2")
DESIGN = Matrix([[XS[0], 1], [XS[1], 1]])
PRECISION = DESIGN.T * DESIGN / v**2 + eye(2) / s**2
LAMBDA = Matrix([[positives("a"), reals("b")], [reals("b"), positives("c")]])  # letters for it


@pytest.mark.equation("D8")
def test_the_exact_answers_of_linear_regression():
    weights, target = Matrix(W), Matrix(YS)
    residual = target - DESIGN * weights
    joint = (residual.T * residual)[0] / (2 * v**2) + (weights.T * weights)[0] / (2 * s**2)
    joint += log(2 * sympy.pi) + 2 * log(v) + log(2 * sympy.pi) + 2 * log(s)
    by_densities = -sum(log_gaussian(YS[b], XS[b] * W[0] + W[1], v) for b in range(2))
    by_densities -= sum(log_gaussian(each, 0, s) for each in W)
    equal(joint, by_densities)
    # complete the square, with Lambda m = design^T y / v^2
    right = DESIGN.T * target / v**2
    centre = Matrix(M)
    gap = weights - centre
    square = HALF * (gap.T * PRECISION * gap)[0]
    rest = (target.T * target)[0] / (2 * v**2) - HALF * (centre.T * PRECISION * centre)[0]
    constants = 2 * log(2 * sympy.pi) + 2 * log(v) + 2 * log(s)
    difference = sympy.expand(joint - (square + rest + constants))
    equal(difference, -((right - PRECISION * centre).T * weights)[0])
    # with m solved for, that is 0. The evidence two ways: -E_0 + log 2 pi - log det Lambda / 2
    covariance = v**2 * eye(2) + s**2 * DESIGN * DESIGN.T
    quadratic = (target.T * covariance.adjugate() * target)[0] / covariance.det()
    solved = PRECISION.adjugate() * right / PRECISION.det()
    lost = (target.T * target)[0] / v**2 - (solved.T * right)[0]
    equal(sympy.together(lost), sympy.together(quadratic))
    equal(covariance.det(), PRECISION.det() * v**4 * s**4)

    # free energy of a mean field around m, minimum and gap, in letters
    e = reals("e:2")
    mus = reals("mu:2")
    moved = Matrix([mus[j] + DEVIATIONS[j] * e[j] - M[j] for j in range(2)])
    energy = expectation(HALF * (moved.T * LAMBDA * moved)[0], *e)
    away = Matrix(mus) - centre
    equal(energy, HALF * (away.T * LAMBDA * away)[0]
          + HALF * sum(LAMBDA[j, j] * DEVIATIONS[j] ** 2 for j in range(2)))  # fmt: skip
    log_q = -log(DEVIATIONS[0]) - log(DEVIATIONS[1]) - log(2 * sympy.pi) - 1
    free = log_q + energy  # and E_0
    best = {mus[0]: M[0], mus[1]: M[1],
            **{DEVIATIONS[j]: 1 / sqrt(LAMBDA[j, j]) for j in range(2)}}  # fmt: skip
    equal([diff(free, each).subs(best) for each in (*mus, *DEVIATIONS)], [0] * 4)
    log_evidence = log(2 * sympy.pi) - HALF * log(LAMBDA.det())  # and -E_0
    equal(free.subs(best) + log_evidence,
          HALF * (log(LAMBDA[0, 0]) + log(LAMBDA[1, 1]) - log(LAMBDA.det())))  # fmt: skip
    equal(LAMBDA[0, 0] * LAMBDA[1, 1] - LAMBDA.det(), LAMBDA[0, 1] ** 2)  # Hadamard: >= 0

    values = {**assign(8, XS, YS), v: 0.6, s: 1.4}
    model = Model(MLP((1, 1)), GaussianPrior(1.4), GaussianLikelihood(0.6))
    problem = linear_gaussian.Regression(
        model, floats(values, XS, (2, 1)), floats(values, YS, (2, 1))
    )
    found = linear_gaussian.exact(problem)
    ships(found.precision, PRECISION, values, rtol=1e-10)
    ships(found.posterior.mean, solved, values, rtol=1e-10)
    line = -HALF * quadratic - HALF * log(covariance.det()) - LOG_2PI
    ships(found.log_evidence, line, values, rtol=1e-10)


@pytest.mark.equation("D9")
def test_the_two_oracles_of_a_gradient():
    h = positives("h")
    c = reals("c:7")
    function = sum(c[k] * x**k for k in range(7))
    slope = [diff(function, x, k) for k in range(7)]
    stepped = sympy.expand(function.subs(x, x + sympy.I * h))
    imaginary = stepped.coeff(sympy.I, 1) / h
    equal(imaginary, slope[1] - h**2 / 6 * slope[3] + h**4 / 120 * slope[5])

    def at(k):
        return function.subs(x, x + k * h)

    difference = (at(-2) - 8 * at(-1) + 8 * at(1) - at(2)) / (12 * h)
    equal(difference, slope[1] - h**4 / 30 * slope[5])
    # the best step of its error, rounding included
    rounding, fifth = positives("rounding fifth")
    error = Rational(3, 2) * rounding / h + fifth * h**4 / 30
    best = (Rational(45, 4) * rounding / fifth) ** Rational(1, 5)
    assert sympy.simplify(diff(error, h).subs(h, best)) == 0


@pytest.mark.equation("D10")
def test_tanh():
    q, z = positives("q"), reals("z")
    a = sympy.sinh(z) / sympy.cosh(z)
    equal(sympy.simplify(diff(a, z) - (1 - a**2)), 0)
    assert sympy.simplify(diff(tanh(z), z) - (1 - tanh(z) ** 2)) == 0
    ratio = (1 - q) / (1 + q)
    equal((((1 - q**2) / 2) / ((1 + q**2) / 2)).subs(q, sqrt(q)), ratio)
    equal(1 - ratio**2, ((1 + q) ** 2 - (1 - q) ** 2) / (1 + q) ** 2, 4 * q / (1 + q) ** 2)


@pytest.mark.equation("D51")
def test_gates_and_their_slopes():
    z, c = reals("z c")
    s = sigmoid(z)
    slopes = {"sigmoid": (s, s * sigmoid(-z)), "softplus": (softplus(z), s)}
    slopes["silu"] = z * s, s + z * s * sigmoid(-z)
    phi, Phi = exp(-(z**2) / 2) / sqrt(2 * sympy.pi), sympy.erfc(-z / sqrt(2)) / 2
    proved_equal(diff(Phi, z), phi)
    slopes["gelu"] = z * Phi, Phi + z * phi
    v = 2 * sqrt(2 / sympy.pi) * (z + c * z**3)
    proved_equal((1 + tanh(y / 2)) / 2, sigmoid(y))
    by_v = sigmoid(v) * sigmoid(-v) * 2 * sqrt(2 / sympy.pi) * (1 + 3 * c * z**2)
    slopes["gelu-tanh"] = z * sigmoid(v), sigmoid(v) + z * by_v
    for gate, slope in slopes.values():
        proved_equal(diff(gate, z), slope)
    # the constant that would match the third derivative of Phi at 0, which 0.044715 does not
    third = diff(sigmoid(v) - Phi, z, 3).subs(z, 0)
    assert sympy.simplify(third.subs(c, 2 / (3 * sympy.pi) - Rational(1, 6))) == 0
    assert sympy.simplify(third.subs(c, Rational(44715, 10**6))) != 0


@pytest.mark.equation("D51")
def test_erfc_by_the_midpoint_rule():
    at, r, p, t = positives("x r p t")
    # the integral over t, and the change of r into p
    inner = sympy.integrate(exp(-(t**2) * (1 + r)), (t, -sympy.oo, sympy.oo))
    equal(sympy.simplify(inner - sqrt(sympy.pi / (1 + r))), 0)
    changed = exp(-(p**2 / at**2 - 1) * at**2) / sqrt(p**2 / at**2) * diff(p**2 / at**2 - 1, p)
    equal(sympy.simplify(changed - 2 / at * exp(at**2) * exp(-(p**2))), 0)
    left = sqrt(sympy.pi) * 2 / at * exp(at**2) * sqrt(sympy.pi) / 2 * sympy.erfc(at)
    equal(sympy.simplify(left - sympy.pi * exp(at**2) / at * sympy.erfc(at)), 0)
    # the residue of m at a midpoint, and those of f m at the two poles of f
    h, n = positives("h"), sympy.Symbol("n", integer=True)
    w = sympy.Symbol("w")
    middle = (n + HALF) * h
    slope = diff(1 + exp(2 * sympy.pi * sympy.I * w / h), w).subs(w, middle)
    assert sympy.simplify(1 / slope + h / (2 * sympy.pi * sympy.I)) == 0
    m = 1 / (1 + exp(2 * sympy.pi * sympy.I * w / h))
    above, below = m.subs(w, sympy.I * at), m.subs(w, -sympy.I * at)
    assert sympy.simplify(above + below - 1) == 0
    residue = (exp(-(w**2)) / (w + sympy.I * at)).subs(w, sympy.I * at)
    other = (exp(-(w**2)) / (w - sympy.I * at)).subs(w, -sympy.I * at)
    equal(residue + other, 0)
    poles = 2 * sympy.pi * sympy.I * (residue * above + other * below - residue)
    off = -sympy.pi * exp(at**2) / at * 2 / (1 + exp(2 * sympy.pi * at / h))
    assert sympy.simplify(poles - off) == 0
    # the boxed line
    boxed = at * exp(-(at**2)) / sympy.pi * sum(
        exp(-(Rational(2 * n + 1, 4) ** 2)) / (Rational(2 * n + 1, 4) ** 2 + at**2)
        for n in range(12)
    ) + 2 / (1 + exp(4 * sympy.pi * at))  # fmt: skip
    for x in (1e-3, 0.7, 2.9, 6.28):  # to less than the rounding of one operation
        assert abs(1 - (boxed / sympy.erfc(at)).subs(at, Rational(x)).evalf(40)) < 9e-17
    for x in (6.2832, 8.0, 20.0):
        far = (boxed - 2 / (1 + exp(4 * sympy.pi * at))) / sympy.erfc(at)
        assert abs(1 - far.subs(at, Rational(x)).evalf(40)) < 9e-17


@pytest.mark.equation("D11")
def test_box_and_muller():
    r, angle, u = positives("r"), reals("phi"), positives("u")
    z = [r * cos(angle), r * sin(angle)]
    jacobian = Matrix([[diff(each, letter) for letter in (r, angle)] for each in z])
    assert sympy.simplify(jacobian.det()) == r
    joint = gaussian(z[0], 0, 1) * gaussian(z[1], 0, 1) * r
    assert sympy.simplify(joint - r * exp(-(r**2) / 2) / (2 * sympy.pi)) == 0
    equal(diff(1 - exp(-(r**2) / 2), r), r * exp(-(r**2) / 2))
    equal(exp(-(sqrt(-2 * log(u)) ** 2) / 2), u)


@pytest.mark.equation("D12")
def test_noise_that_depends_on_the_input():
    m, c = reals("m h"), positives("c")
    mean, raw = m
    deviation = c + softplus(raw)
    density = log_gaussian(y, mean, deviation)
    for_m = (y - mean) / deviation**2
    for_h = ((y - mean) ** 2 / deviation**3 - 1 / deviation) * sigmoid(raw)
    equal([diff(density, mean), diff(density, raw)], [for_m, for_h])
    letter = positives("sigma")
    equal((1 / letter**3 * letter**2 - 1 / letter), 0)  # 0 at sigma = |y - m|
    # there the mean is still pulled: no stationary point; the less, the worse the fit
    residual = positives("r")
    pull = ((y - mean) / letter**2).subs(y, mean + residual)
    equal(pull.subs(letter, residual), 1 / residual)
    assert diff(pull.subs(letter, residual), residual).is_negative
    assert diff(pull, residual).is_positive  # with one sigma for all rows: the more
    equal(-log(c) - HALF * LOG_2PI, log_gaussian(y, y, c))  # the bound of the floor


@pytest.mark.equation("D68")
def test_noise_that_is_drawn_towards_a_constant():
    mean, raw, u = reals("m h u")
    c = positives("c")
    deviation = c + exp(u) * softplus(raw)
    density = log_gaussian(y, mean, deviation)
    common = (y - mean) ** 2 / deviation**3 - 1 / deviation
    equal(diff(density, raw), common * exp(u) * sigmoid(raw))
    equal(diff(density, u), common * (deviation - c))
    equal(deviation.subs(raw, 0), c + exp(u) * log(2))


@pytest.mark.equation("D13")
def test_two_classes():
    z, p = reals("z"), sigmoid(reals("z"))
    equal(1 - p, exp(-z) / (1 + exp(-z)), 1 / (1 + exp(z)))
    equal([log(1 - p), log(p)], [-softplus(z), z - softplus(z)])
    density = y * log(p) + (1 - y) * log(1 - p)
    short = y * z - softplus(z)
    equal(density, y * (z - softplus(z)) - (1 - y) * softplus(z), short)
    equal(diff(short, z), y - p)


@pytest.mark.equation("D14")
def test_several_classes():
    z, target = reals("z:3"), reals("t:3")
    total = sum(exp(each) for each in z)
    p = [exp(each) / total for each in z]
    density = sum(target[k] * (z[k] - log(total)) for k in range(3))
    equal([diff(log(total), each) for each in z], p)
    slopes = [target[k] - p[k] * sum(target) for k in range(3)]
    equal([diff(density, each) for each in z], slopes)
    one = {target[2]: 1 - target[0] - target[1]}
    equal([each.subs(one) for each in slopes], [(target[k] - p[k]).subs(one) for k in range(3)])
    equal(sum(slopes), 0)
    equal((exp(z[1]) / (exp(z[0]) + exp(z[1]))).subs({z[0]: 0}), sigmoid(z[1]))  # D13


@pytest.mark.equation("D15")
def test_counts():
    f = reals("f")
    for count in (0, 1, 4):
        density = exp(f) ** count * exp(-exp(f)) / sympy.factorial(count)
        short = count * f - exp(f) - log(sympy.factorial(count))
        equal(sympy.expand_log(log(density), force=True), short)
        equal(diff(short, f), count - exp(f))
    rate, n = positives("lambda"), sympy.Symbol("n", integer=True, nonnegative=True)
    mean = sympy.summation(n * rate**n * exp(-rate) / sympy.factorial(n), (n, 0, sympy.oo))
    assert sympy.simplify(mean - rate) == 0


@pytest.mark.equation("D72")
def test_rates():
    f = reals("f")
    exposure, scale = positives("e s")
    for count in (0, 1, 4):
        density = (exposure * exp(f)) ** count * exp(-exposure * exp(f)) / sympy.factorial(count)
        slope = diff(sympy.expand_log(log(density), force=True), f)
        equal(slope, count - exposure * exp(f))
        # a rate y / e that counts e times has the same slope
        equal(slope, exposure * diff(count / exposure * f - exp(f), f))
    # above the ceiling the rate is the tangent at it
    c = reals("c")
    far = exp(c + log(1 + f - c))
    equal(far.subs(f, c), exp(c))
    equal(diff(far, f).subs(f, c), exp(c))
    equal(diff(exp(c) * (1 + f - c), f, 2), 0)
    # another unit of exposures is a constant beside f
    equal(exposure / scale * exp(f + log(scale)), exposure * exp(f))


@pytest.mark.equation("D70")
def test_negative_binomial_counts():
    m, r, size = positives("m r lambda")
    f, u = reals("f u")
    for count in (0, 1, 3):
        joint = (size * m) ** count * exp(-size * m) / sympy.factorial(count)
        joint *= r**r * size ** (r - 1) * exp(-r * size) / sympy.gamma(r)
        integral = sympy.integrate(joint, (size, 0, sympy.oo), conds="none")
        ways = sympy.prod([r + j for j in range(count)]) / sympy.factorial(count)
        p = ways * (m / (m + r)) ** count * (r / (m + r)) ** r
        assert sympy.simplify(sympy.gammasimp(integral / p)) == 1
        # in terms of f and u
        short = sum(log(1 + j * exp(u)) for j in range(count)) + count * f
        short -= (count + exp(-u)) * log(1 + exp(f + u)) + log(sympy.factorial(count))
        placed = p.subs({m: exp(f), r: exp(-u)})
        proved_equal(short, log(placed))
        # its slopes
        proved_equal(diff(short, f), (count - exp(f)) / (1 + exp(f + u)))
        v = sum(log(1 + j / r) for j in range(count))
        slope = exp(-u) * log(1 + exp(f + u)) - (count + exp(-u)) / (1 + exp(-f - u))
        proved_equal(diff(short, u), slope - (r * diff(v, r)).subs(r, exp(-u)))
    # moments, of the rate and of the counts
    a = positives("a")
    equal(m + m**2 * a, m * (1 + a * m))
    # V by Stirling's formula, whose remainder is the same on both sides
    y = positives("y")
    mu_of = sympy.Function("mu")

    def log_gamma(z):
        return (z - Rational(1, 2)) * log(z) - z + log(2 * sympy.pi) / 2 + mu_of(z)

    first, second = r + 9, y + r + 9
    shifted = sum(log(y + r + k) - log(r + k) for k in range(9))
    printed = (second - Rational(1, 2)) * (log(second) - log(first)) - y
    printed += y * (log(r + 9) - log(r)) + mu_of(second) - mu_of(first) - shifted
    assert sympy.expand(log_gamma(second) - log_gamma(first) - shifted - y * log(r) - printed) == 0


@pytest.mark.equation("D71")
def test_extra_zeros():
    z, first, second = reals("z m v")
    p, q = positives("p q")
    odds = 1 / (1 + exp(-z))
    of_zero = log(odds + (1 - odds) * p)
    proved_equal(of_zero, log(p) + log(1 + exp(z) / p) - log(1 + exp(z)))
    pi = odds / (odds + (1 - odds) * p)
    proved_equal(pi, 1 / (1 + exp(-z) * p))
    proved_equal(p * diff(of_zero, p), 1 - pi)
    proved_equal(diff(of_zero, z), pi - odds)
    proved_equal(diff(log(1 - odds), z), -odds)
    # moments: a share 1 - q has the mean m and the second moment v + m^2
    mean, square = (1 - q) * first, (1 - q) * (second + first**2)
    equal(square - mean**2, (1 - q) * (second + q * first**2))


@pytest.mark.equation("D16")
def test_the_laplace_prior():
    b, size = positives("b size")
    density = exp(-size / b) / (2 * b)
    assert 2 * sympy.integrate(density, (size, 0, sympy.oo)) == 1
    assert 2 * sympy.integrate(size * density, (size, 0, sympy.oo)) == b
    assert 2 * sympy.integrate(size**2 * density, (size, 0, sympy.oo)) == 2 * b**2
    equal(log(density), -log(2 * b) - size / b)
    # both signs of w
    for sign in (1, -1):
        equal(diff(-(sign * w) / b, w), -sign / b)
    # under a Gaussian q: the two halves of R9
    z = mu / sigma
    half = mu * PHI.subs(x, z) + sigma * DENSITY.subs(x, z)
    other = -mu * PHI.subs(x, -z) + sigma * DENSITY.subs(x, -z)
    boxed = mu * (2 * PHI.subs(x, z) - 1) + 2 * sigma * DENSITY.subs(x, z)
    equal(half + other, boxed)
    equal(diff(boxed, mu), 2 * PHI.subs(x, z) - 1)


@pytest.mark.equation("D17")
def test_a_gaussian_prior_with_a_learned_scale():
    t = reals("t")
    density = -2 * t - LOG_2PI - HALF * exp(-2 * t) * sum(each**2 for each in W)
    equal(density, sum(log_gaussian(each, 0, exp(t)) for each in W))
    slope = sum(each**2 for each in W) / exp(t) ** 2 - 2
    equal(diff(density, t), slope)
    # with the printed sign of K18 the -P would be +P
    off_by(diff(density + 2 * 2 * t, t), slope, Integer(4))
    # the KL at its best scale, P = 2; 0 for mu = 0 and equal deviations
    mus = reals("mu:2")
    square = sum(mus[j] ** 2 + DEVIATIONS[j] ** 2 for j in range(2)) / 2
    kl = sum(log(s / DEVIATIONS[j]) + (mus[j] ** 2 + DEVIATIONS[j] ** 2) / (2 * s**2) - HALF
             for j in range(2))  # fmt: skip
    equal(diff(kl, s).subs(s, sqrt(square)), 0)
    least = log(square) - log(DEVIATIONS[0]) - log(DEVIATIONS[1])
    equal(sympy.expand_log(kl.subs(s, sqrt(square))), least)
    equal(least.subs({mus[0]: 0, mus[1]: 0, DEVIATIONS[1]: DEVIATIONS[0]}), 0)
    # the mean of squares is at least the product: (a^2 + b^2)/2 - a b = (a - b)^2 / 2
    a, b = DEVIATIONS
    equal((a**2 + b**2) / 2 - a * b, (a - b) ** 2 / 2)
    assert sympy.limit(2 * t + LOG_2PI, t, -sympy.oo) == -sympy.oo  # a point estimate at w = 0


@pytest.mark.equation("D29")
def test_the_entropy_of_a_class_split():
    # two weight vectors of probability 1/2, two classes
    rows = [positives("p:2"), positives("q:2")]
    mean = [(rows[0][k] + rows[1][k]) / 2 for k in range(2)]
    letters = [log(each) for each in mean]

    def entropy(row):
        return -sum(each * log(each) for each in row)

    divergence = sum(row[k] * (log(row[k]) - letters[k]) for row in rows for k in range(2)) / 2
    aleatoric = sum(entropy(row) for row in rows) / 2
    equal(entropy(mean), divergence + aleatoric)
    joint = sum(
        HALF * row[k] * (log(HALF * row[k]) - log(HALF) - letters[k])
        for row in rows
        for k in range(2)
    )
    equal(sympy.expand_log(joint), sympy.expand_log(divergence))
    assert entropy([HALF, HALF]) == log(2)


@pytest.mark.equation("D31")
def test_the_logarithm_of_a_factorial():
    z, t, y_ = positives("z t y")
    step = (z + HALF) * log(1 + 1 / z) - 1  # mu(z) - mu(z + 1)
    second = 1 / (2 * z**2) + 1 / (2 * (z + 1) ** 2) - 1 / z + 1 / (z + 1)
    equal(diff(step, z, 2), second)
    # the left-hand side: t^2 (1 - e^-t) times Binet's integrand
    binet = t * (1 - exp(-t)) * (1 / (exp(t) - 1) - 1 / t + HALF)
    equal(binet, t / 2 * (1 + exp(-t)) - (1 - exp(-t)))
    terms = sympy.Add.make_args(sympy.expand((t / 2 * (1 + exp(-t)) - (1 - exp(-t))) * exp(-t * z)))
    integral = sum(sympy.integrate(sympy.powsimp(each), (t, 0, sympy.oo)) for each in terms)
    equal(sympy.simplify(integral), second)
    assert sympy.limit(step, z, sympy.oo) == 0
    remainder = reals("remainder")  # mu(z)
    stirling = (z - HALF) * log(z) - z + HALF * LOG_2PI
    change = stirling.subs(z, z + 1) + (remainder - step) - (stirling + remainder)
    equal(sympy.expand_log(change.subs(log(1 + 1 / z), log(z + 1) - log(z))), log(z))
    # the coefficients: (-1)^j 2 (2j)! zeta(2j + 2) / (2 pi)^(2j + 2)
    found = [
        (-1) ** j * 2 * sympy.factorial(2 * j) * sympy.zeta(2 * j + 2)
        / (2 * sympy.pi) ** (2 * j + 2)
        for j in range(7)
    ]  # fmt: skip
    printed = [Rational(1, 12), Rational(-1, 360), Rational(1, 1260), Rational(-1, 1680),
               Rational(1, 1188), Rational(-691, 360360), Rational(1, 156)]  # fmt: skip
    assert found == printed
    # the shift
    steps = sympy.prod(y_ + k for k in range(1, 9))
    assert sympy.simplify(sympy.gammasimp(gamma(y_ + 9) / gamma(y_ + 1)) - steps) == 0


@pytest.mark.equation("D32")
def test_priors_of_learned_scales():
    u, c, scale, width = reals("u"), positives("c"), positives("scale"), positives("width")
    middle = reals("m")
    # the substitution: p(u) = p(s) ds/du
    equal(diff(exp(u), u), exp(u))
    normal = sqrt(2 / sympy.pi) * exp(-(scale**2) / (2 * c**2)) / c
    cauchy = 2 / (sympy.pi * c * (1 + scale**2 / c**2))
    for density in (normal, cauchy):
        assert sympy.integrate(density, (scale, 0, sympy.oo)) == 1
    of_u = sympy.expand_log(log(normal.subs(scale, exp(u)) * exp(u)), force=True)
    line = HALF * log(2 / sympy.pi) - log(c) - exp(u) ** 2 / (2 * c**2) + u
    equal(of_u, sympy.expand_log(line))
    equal(diff(line, u), 1 - exp(u) ** 2 / c**2)
    off_by(line - u, line, -u)  # without the Jacobian
    gap = reals("v")
    of_v = (cauchy * scale).subs(scale, c * exp(gap))
    equal(of_v, 2 / sympy.pi * exp(gap) / (1 + exp(2 * gap)))
    equal(sympy.expand((exp(gap) + exp(-gap)) * exp(gap)), 1 + exp(2 * gap))  # 2 cosh v e^v
    cosh_form = -log(sympy.pi) - log(sympy.cosh(gap))
    assert sympy.simplify(diff(cosh_form, gap) + tanh(gap)) == 0
    stable = log(2 / sympy.pi) - gap - log(1 + exp(-2 * gap))
    assert sympy.simplify(exp(stable) - 1 / (sympy.pi * sympy.cosh(gap)).rewrite(exp)) == 0
    lognormal = log_gaussian(u, middle, width)
    equal(diff(lognormal, u), -(u - middle) / width**2)


@pytest.mark.equation("D33")
def test_the_log_joint_over_weights_and_scales():
    weights, t, u = reals("w0 b0"), reals("log_noise"), reals("log_scale")
    beta = positives("beta")
    likelihood = sum(log_gaussian(YS[b], XS[b] * weights[0] + weights[1], exp(t)) for b in range(2))
    prior = sum(log_gaussian(each, 0, exp(u)) for each in weights)
    hyper = log_gaussian(t, log(Rational(1, 2)), 1) + log_gaussian(u, log(Rational(3, 2)), 1)
    line = prior + beta * likelihood + hyper
    residual = [YS[b] - XS[b] * weights[0] - weights[1] for b in range(2)]
    for_t = beta * sum(r**2 / exp(2 * t) - 1 for r in residual) - (t - log(HALF))
    for_u = sum(each**2 / exp(2 * u) - 1 for each in weights) - (u - log(Rational(3, 2)))
    equal([diff(line, t), diff(line, u)], [for_t, for_u])
    # a chain's own: another chain's numbers are not in it. Aleatoric variance, by Jensen
    a, b = positives("a b")  # e^u of two draws
    equal((a**2 + b**2) / 2 - a * b, (a - b) ** 2 / 2)


def mean_size(m, deviation):
    """A(m, s) = E|m + s Z| of D34, step 3."""
    z = m / deviation
    return m * (2 * PHI.subs(x, z) - 1) + 2 * deviation * DENSITY.subs(x, z)


@pytest.mark.equation("D34")
def test_the_crps():
    big, gate = reals("F"), reals("gate")  # F(x) and [x >= y]
    for value in (0, 1):  # the integrand of the score
        at = {gate: value}
        split = big * (1 - gate) + (1 - big) * gate - big * (1 - big)
        equal(((big - gate) ** 2).subs(at), split.subs(at))
    g = reals("G")  # E over y: proper
    mean = g * (big - 1) ** 2 + (1 - g) * big**2
    equal(mean, (big - g) ** 2 + g * (1 - g))
    # A(m, s): antiderivatives of (m + s t) phi on both sides of -m/s
    t, m = reals("t m")
    antiderivative = m * PHI.subs(x, t) - sigma * DENSITY.subs(x, t)
    equal(diff(antiderivative, t), (m + sigma * t) * DENSITY.subs(x, t))
    edge = antiderivative.subs(t, -m / sigma)
    upper = sympy.limit(antiderivative, t, sympy.oo) - edge
    lower = sympy.limit(antiderivative, t, -sympy.oo) - edge
    equal(upper + lower, mean_size(m, sigma))
    equal(mean_size(0, sigma), sigma * sqrt(2 / sympy.pi))
    # ranks: each pair counted from both ends
    ordered = reals("x:4")
    pairs = sum(2 * (ordered[j] - ordered[i]) for i, j in combinations(range(4), 2))
    equal(pairs, 2 * sum((2 * i - 4 - 1) * ordered[i - 1] for i in range(1, 5)))
    off_by(pairs / (2 * 16), pairs / (2 * 12), -pairs / 96)  # fairness: T (T - 1) for T^2


@pytest.mark.equation("D35")
def test_pits_intervals_and_the_parts_of_the_brier_score():
    # the interval of a class fills its probability
    p, q = positives("p q")
    ends = [0, p, p + q, 1]
    equal([b - a for a, b in pairwise(ends)], [p, q, 1 - p - q])
    # Wilson: the ends solve the quadratic
    share, z, n = positives("share z n")
    root = z * sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    for sign in (1, -1):
        end = (share + z**2 / (2 * n) + sign * root) / (1 + z**2 / n)
        quadratic = end**2 * (1 + z**2 / n) - end * (2 * share + z**2 / n) + share**2
        equal(sympy.simplify(quadratic), 0)
    # Brier: two bins of two rows; proper for any probability
    chance = reals("P")
    equal(chance * (w - 1) ** 2 + (1 - chance) * w**2, (w - chance) ** 2 + chance * (1 - chance))
    stated = positives("a b c d")
    seen = (1, 0, 1, 1)
    bins = [(0, 1), (2, 3)]
    score = sum((stated[k] - seen[k]) ** 2 for k in range(4)) / 4
    centre = [sum(stated[k] for k in each) / 2 for each in bins]
    ones = [Rational(sum(seen[k] for k in each), 2) for each in bins]
    base = Rational(3, 4)
    parts = [
        sum((centre[b] - ones[b]) ** 2 for b in range(2)) / 2,
        sum((ones[b] - base) ** 2 for b in range(2)) / 2,
        base * (1 - base),
        sum((stated[k] - centre[b]) ** 2 - 2 * (stated[k] - centre[b]) * (seen[k] - ones[b])
            for b in range(2) for k in bins[b]) / 4,
    ]  # fmt: skip
    equal(score, parts[0] - parts[1] + parts[2] + parts[3])


@pytest.mark.equation("D35")
def test_the_best_interval_and_the_cheapest_decision():
    low, high, a, far = positives("l u a far")
    # the mean score of an interval under the uniform density on [0, far]
    mean = (
        high
        - low
        + 2
        / (a * far)
        * (sympy.integrate(low - v, (v, 0, low)) + sympy.integrate(v - high, (v, high, far)))
    )
    equal(diff(mean, high), 1 - 2 / a * (far - high) / far)
    equal(diff(mean, low), -1 + 2 / a * low / far)
    best = mean.subs({low: a / 2 * far, high: (1 - a / 2) * far})
    for other in ((a / 3 * far, (1 - a / 2) * far), (a / 2 * far, (1 - a) * far)):
        worse = mean.subs({low: other[0], high: other[1]}) - best
        assert number(worse, {a: 0.1, far: 2.0}) > 0
    # an alarm that costs as much as silence
    p, false_alarm, missed = positives("p fp fn")
    at_threshold = p * missed - (1 - p) * false_alarm
    equal(at_threshold.subs(p, false_alarm / (false_alarm + missed)), 0)
    equal(diff(at_threshold, p), missed + false_alarm)  # silence is dearer above


@pytest.mark.equation("D36")
def test_signal_to_noise():
    e = reals("e")
    equal(expectation((mu + sigma * e) ** 2, e), mu**2 + sigma**2)
    equal((expectation((mu + sigma * e) ** 2, e) - sigma**2) / sigma**2, (mu / sigma) ** 2)
    # P(w > 0) = P(e > -mu/sigma) = Phi(mu/sigma)
    equal(1 - PHI.subs(x, -mu / sigma), PHI.subs(x, mu / sigma))
    ratio = positives("ratio")
    equal(20 * log(ratio) / log(10), 2 * (10 * log(ratio) / log(10)))
    # over all orders of the units a weight's mean is that of its layer, over all signs it is 0
    orders, signs = list(permutations(range(3))), list(product((1, -1), repeat=3))
    into, out, bias = (np.array(each) for each in ([1.0, -1.0, 0.5], [1.0, 1.0, 0.0], [0.0] * 3))
    at = np.linspace(-2.0, 2.0, 5)[:, None]

    def functions(draws, activation):
        net = MLP((1, 3, 1), activation)
        return [network.forward(net, each[None], at, Buffers())[0].ravel() for each in draws]

    exchanged = np.array([[*into[[*i]], *bias, *out[[*i]], 0.0] for i in orders])
    for found in functions(exchanged, "relu"):  # |x|, with a unit that has nothing to say
        np.testing.assert_allclose(found, np.abs(at.ravel()), atol=1e-15)
    np.testing.assert_allclose(exchanged.mean(0)[:3], into.mean(), rtol=1e-14)
    np.testing.assert_allclose(exchanged.mean(0)[6:9], out.mean(), rtol=1e-14)  # not 0
    turned = np.array([[*(into * s), *bias, *(out * s), 0.0] for s in np.array(signs)])
    np.testing.assert_allclose(np.ptp(functions(turned, "tanh"), axis=0), 0.0, atol=1e-15)
    assert not turned.mean(0).any()
    # of the two units of |x| alone: both needed, with the ratios infinity and 0
    two = exchanged[:, [0, 1, 6, 7]][[i for i, order in enumerate(orders) if order[2] == 2]]
    assert two.mean(0).tolist() == [0.0, 0.0, 1.0, 1.0]
    assert two.std(0).tolist() == [1.0, 1.0, 0.0, 0.0]


@pytest.mark.equation("D37")
def test_powerball():
    # every set of 5 of 8 balls
    balls, sets = 8, list(combinations(range(1, 9), 5))
    for place in (1, 3):
        counted = [sum(each[place - 1] == value for each in sets) for value in range(balls + 1)]
        formula = [
            comb(value - 1, place - 1) * comb(balls - value, 5 - place) if value else 0
            for value in range(balls + 1)
        ]
        assert counted == formula
        ships(powerball.mass_of_place(balls, place),
              [Rational(each, comb(balls, 5)) for each in formula], {})  # fmt: skip
        mean = sum(Rational(value * counted[value], len(sets)) for value in range(balls + 1))
        assert mean == Rational(place * (balls + 1), 6)
    # the odds, for every N and v
    n, value = positives("N"), positives("v")

    def choose(top, size):
        return sympy.prod(top - k for k in range(size)) / sympy.factorial(size)

    odds = choose(n - value, 4) / (choose(value - 1, 2) * choose(n - value, 2))
    equal(odds, (n - value - 2) * (n - value - 3) / (6 * (value - 1) * (value - 2)))
    found = powerball.exact(59).probability[17]
    at = {n: 59.0, value: 17.0}
    ships(found, odds / (1 + odds), at)
    # w_1 = a and w_3 = c: one ball between, two above
    pairs = [sum(each[0] == 2 and each[2] == 5 for each in sets), (5 - 2 - 1) * comb(balls - 5, 2)]
    assert pairs[0] == pairs[1]


@pytest.mark.equation("D67")
def test_automatic_relevance_determination():
    rate, chi = positives("lambda chi")
    for n in (1, 2, 3):
        # the integrand is a Gamma density with a = (nu + n)/2, b = (nu + chi)/2, times its constant
        a, b = (nu + n) / 2, (nu + chi) / 2
        joint = (rate / (2 * sympy.pi * s**2)) ** (Rational(n, 2)) * exp(-rate * chi / 2)
        joint *= (nu / 2) ** (nu / 2) / gamma(nu / 2) * rate ** (nu / 2 - 1) * exp(-rate * nu / 2)
        student = gamma(a) / gamma(nu / 2) / (nu * sympy.pi * s**2) ** Rational(n, 2)
        student *= (1 + chi / nu) ** (-a)
        of_gamma = b**a / gamma(a) * rate ** (a - 1) * exp(-b * rate)
        ratio = sympy.expand_log(log(joint) - log(student) - log(of_gamma), force=True)
        at = {nu: Rational(7, 3), chi: Rational(2, 5), s: Rational(3, 2), rate: Rational(5, 4)}
        assert abs(ratio.subs(at).evalf(40)) < 1e-30
        assert sympy.simplify(diff(ratio, rate)) == 0
        assert sympy.simplify(diff(ratio, chi)) == 0
    weights = reals("w:3")
    squares = sum(each**2 for each in weights)
    density = -(nu + 3) / 2 * log(1 + squares / (nu * s**2))
    equal(diff(density, weights[0]), -(nu + 3) * weights[0] / (nu * s**2 + squares))


@pytest.mark.equation("D39")
def test_a_scale_for_every_layer():
    # a 1-1-1 network: two layers of a weight and a bias
    weights, logs = reals("w:4"), reals("u:2")
    layers = [weights[:2], weights[2:]]
    density = sum(log_gaussian(each, 0, exp(logs[k])) for k in range(2) for each in layers[k])
    boxed = -sum(2 * (logs[k] + HALF * LOG_2PI)
                 + sum(each**2 for each in layers[k]) / (2 * exp(logs[k]) ** 2)
                 for k in range(2))  # fmt: skip
    equal(density, boxed)
    for_w = [-each / exp(2 * logs[k]) for k in range(2) for each in layers[k]]
    for_u = [sum(each**2 for each in layers[k]) / exp(2 * logs[k]) - 2 for k in range(2)]
    equal([diff(boxed, each) for each in weights], for_w)
    equal([diff(boxed, each) for each in logs], for_u)
    # the size of functions, 1-2-1: a ReLU keeps half of the mean square of a symmetric number
    e, scale, inner = reals("e"), positives("s1"), positives("s2")
    units = reals("a:2")
    v1 = expectation((scale * e * x) ** 2 + (scale * e) ** 2, e)
    equal(v1, scale**2 * (x**2 + 1))
    half = sympy.integrate(x**2 * DENSITY, (x, 0, sympy.oo))
    assert half == HALF  # of E z^2 = 1
    noise = reals("n:3")
    out = inner * (units[0] * noise[0] + units[1] * noise[1] + noise[2])
    given = expectation(out**2, *noise)
    equal(given, inner**2 * (units[0] ** 2 + units[1] ** 2 + 1))
    equal(given.subs({units[0] ** 2: v / 2, units[1] ** 2: v / 2}), inner**2 * (2 * v / 2 + 1))
    equal((inner**2 * (nu * v / 2 + 1)).subs(inner, 1 / sqrt(nu)), v / 2 + 1 / nu)


@pytest.mark.equation("D40")
def test_replicates_are_one_block_diagonal_problem():
    thetas = reals("theta:2")
    costs = [sympy.Function("F1")(thetas[0]), sympy.Function("F2")(thetas[1])]
    total = sum(costs)
    equal([diff(total, thetas[k]) for k in range(2)], [diff(costs[k], thetas[k]) for k in range(2)])
    assert diff(total, *thetas) == 0
    # a bound that is not linear does not split
    logs = matrix("l", 2, 2)  # (S, R)
    joined = log(sum(exp(logs[k, 0] + logs[k, 1]) for k in range(2)) / 2)
    apart = sum(log(sum(exp(logs[k, r]) for k in range(2)) / 2) for r in range(2))
    values = dict(zip(logs, (0.0, 1.0, 2.0, -1.0), strict=True))
    assert abs(number(joined - apart, values).item()) > 0.1


@pytest.mark.equation("D41")
def test_the_constant_of_students_t():
    # the precision of a Gaussian, drawn from a Gamma and integrated out: the kernel of the integral
    tau, z = positives("tau z")
    kernel = tau ** ((nu + 1) / 2 - 1) * exp(-tau * (nu + z**2) / 2)
    product = sqrt(tau) * exp(-tau * z**2 / 2) * tau ** (nu / 2 - 1) * exp(-nu * tau / 2)
    equal(sympy.powsimp(sympy.expand(product / kernel)), 1)
    power = positives("power")
    rate = positives("rate")
    integral = sympy.integrate(tau ** (power - 1) * exp(-rate * tau), (tau, 0, sympy.oo))
    assert sympy.simplify(integral - gamma(power) * rate ** (-power)) == 0

    def g(at):
        return log(gamma((at + 1) / 2) / gamma(at / 2)) - HALF * log(at / 2)

    # the recurrence, on both Gammas
    equal(sympy.expand_func(gamma(power + 1)), power * gamma(power))
    ratio = ((nu + 1) / 2) / (nu / 2)  # of Gamma(z + 1) = z Gamma(z) at both
    equal(ratio, (nu + 1) / nu)
    change = -log((nu + 1) / nu) + HALF * log((nu + 2) / nu)  # g(nu) - g(nu + 2)
    equal(sympy.expand_log(change, force=True),
          sympy.expand_log(HALF * log(nu * (nu + 2) / (nu + 1) ** 2), force=True))  # fmt: skip

    # duplication leaves mu(nu) - 2 mu(nu/2): all else of Stirling's formula cancels
    def stirling(at):
        return (at - HALF) * log(at) - at + HALF * LOG_2PI

    left = ((1 - nu) * log(2) + HALF * log(sympy.pi) + stirling(nu) - 2 * stirling(nu / 2)
            - HALF * log(nu / 2))  # fmt: skip
    equal(sympy.expand_log(left, force=True), 0)
    for at in (Rational(3), Rational(7, 2)):  # Legendre's formula itself, at exact numbers
        assert (
            sympy.simplify(
                sympy.expand_func(
                    gamma(at) * gamma(at + HALF)
                    - 2 ** (1 - 2 * at) * sqrt(sympy.pi) * gamma(2 * at)
                )
            )
            == 0
        )
    # the series from that of D31: (1 - 2^(2j)) times its coefficients
    series = [sympy.bernoulli(2 * j) * (1 - 4**j) / (2 * j * (2 * j - 1)) for j in range(1, 8)]
    assert series == [Rational(*each) for each in ((-1, 4), (1, 24), (-1, 20), (17, 112),
                                                   (-31, 36), (691, 88), (-5461, 52))]  # fmt: skip
    a = positives("a")
    equal(1 / a + 1 / (a + 2) - 2 / (a + 1), 2 / (a * (a + 1) * (a + 2)))
    equal(nu * diff(HALF * log(nu * (nu + 2) / (nu + 1) ** 2), nu), nu / (nu * (nu + 1) * (nu + 2)))
    assert sympy.simplify(g(Integer(1)) - HALF * LOG_2PI + log(sympy.pi)) == 0  # Cauchy's


G = sympy.Function("g")


@pytest.mark.equation("D42")
def test_the_student_t_prior():
    g, chi = sympy.Function("g"), w**2 / (nu * s**2)
    density = g(nu) - HALF * LOG_2PI - log(s) - (nu + 1) / 2 * log(1 + chi)
    slopes = [
        -(nu + 1) * w / (nu * s**2 + w**2),
        (nu + 1) * chi / (1 + chi) - 1,
        nu * diff(g(nu), nu) - nu / 2 * log(1 + chi) + (nu + 1) / 2 * chi / (1 + chi),
    ]
    equal([diff(density, w), s * diff(density, s), nu * diff(density, nu)], slopes)
    # largest pull at s sqrt(nu); E[1/tau] = nu/(nu - 2) of the mixture
    equal(diff(slopes[0], w).subs(w, s * sqrt(nu)), 0)
    inverse = sympy.gammasimp(gamma(nu / 2 - 1) / gamma(nu / 2)) * nu / 2
    equal(inverse, nu / (nu - 2))


@pytest.mark.equation("D43")
def test_noise_with_outliers():
    f = reals("f")
    z = (y - f) / s
    slope = (nu + 1) * (y - f) / (nu * s**2 + (y - f) ** 2)
    equal(diff(-(nu + 1) / 2 * log(1 + z**2 / nu), f), slope)
    equal(slope, (y - f) / s**2 * (nu + 1) / (nu + z**2))  # a weight for each row
    # E[tau | y]: a Gamma of shape (nu + 1)/2 and rate (nu + z^2)/2
    shape, rate = positives("shape rate")
    mean = sympy.gammasimp(gamma(shape + 1) / gamma(shape)) / rate
    equal(mean.subs({shape: (nu + 1) / 2, rate: (nu + z**2) / 2}), (nu + 1) / (nu + z**2))


@pytest.mark.equation("D44")
def test_dual_numbers_have_the_rules_of_derivatives():
    a, a_slope, b, b_slope, delta = reals("a da b db delta")

    def dual(expression):
        """The part of a power series in delta that is left where delta^2 = 0."""
        return [expression.subs(delta, 0), diff(expression, delta).subs(delta, 0)]

    x, y = a + a_slope * delta, b + b_slope * delta
    equal(dual(x * y), [a * b, a * b_slope + a_slope * b])
    equal(dual(1 / x), [1 / a, -a_slope / a**2])
    equal(dual(exp(x)), [exp(a), exp(a) * a_slope])
    equal(dual(log(x)), [log(a), a_slope / a])
    equal(dual(sqrt(x)), [sqrt(a), a_slope / (2 * sqrt(a))])
    # a function of several numbers: its slope along the direction
    letters = reals("t:3")
    directions = reals("d:3")
    cost = letters[0] ** 2 * letters[1] + letters[2] / letters[0]
    moved = cost.subs({t: t + d * delta for t, d in zip(letters, directions, strict=True)})
    slope = sum(diff(cost, t) * d for t, d in zip(letters, directions, strict=True))
    equal(dual(moved), [cost, slope])


@pytest.mark.equation("D45")
def test_rows_that_count_more_than_once():
    f, t, c = reals("f:2"), reals("t:2"), reals("c")
    weights, u = positives("v:2"), reals("u")
    density = sum(v * log_gaussian(a, b, exp(u)) for v, a, b in zip(weights, t, f, strict=True))
    # two and three copies
    copies = sum(log_gaussian(t[k], f[k], exp(u)) for k in (0, 0, 1, 1, 1))
    equal(density.subs({weights[0]: 2, weights[1]: 3}), copies)
    for_f = [c * v * (a - b) * exp(-2 * u) for v, a, b in zip(weights, t, f, strict=True)]
    for_u = sum(
        c * v * ((a - b) ** 2 / exp(u) ** 2 - 1) for v, a, b in zip(weights, t, f, strict=True)
    )
    equal([diff(c * density, each) for each in f], for_f)
    equal(diff(c * density, u), for_u)
    # the costs of two minibatches, with shares by weight
    kl, v_total = reals("kl"), sum(weights)
    costs = [v / v_total * kl - v * log_gaussian(a, b, exp(u))
             for v, a, b in zip(weights, t, f, strict=True)]  # fmt: skip
    equal(sum(costs), kl - density)
    # an objective that divides by the share (D30) has the mean log P(D) for all the data
    shares = [v / v_total for v in weights]
    each = [v * log_gaussian(a, b, exp(u)) for v, a, b in zip(weights, t, f, strict=True)]
    equal(sum(p * (e / p) for p, e in zip(shares, each, strict=True)), density)
    # moments of the copies: twice t0, three times t1
    mean = (2 * t[0] + 3 * t[1]) / 5
    spread = (2 * (t[0] - mean) ** 2 + 3 * (t[1] - mean) ** 2) / 5
    equal(spread, sum((t[k] - mean) ** 2 for k in (0, 0, 1, 1, 1)) / 5)
    # balanced classes: the same sum for each, and V in all
    balanced = [v_total / (2 * v) for v in weights]
    equal([b * v for b, v in zip(balanced, weights, strict=True)], [v_total / 2] * 2)


@pytest.mark.equation("D73")
def test_targets_on_the_scale_of_their_logarithm():
    m, b = reals("m"), positives("b")
    at, k = positives("at k")
    # the density of y: the slope of its distribution function, with z = (log y - mu) / b
    below = PHI.subs(x, (log(at) - m) / s)
    equal(diff(below, at), gaussian(log(at), m, s) / at)
    equal(diff((log(at) - mu) / b, at), 1 / (b * at))
    # completing the square, and what is left is a density of t around m + k v
    square = k * x - (x - m) ** 2 / (2 * v)
    equal(square, k * m + k**2 * v / 2 - (x - m - k * v) ** 2 / (2 * v))

    def moment(power, mean, variance):
        return exp(power * mean + power**2 * variance / 2)

    mean = moment(1, m, v)
    equal(moment(2, m, v) - mean**2, mean**2 * (exp(v) - 1))
    # where m is Gaussian too, with the variance e2, the moments of e^(m + v/2) are those of its law
    e2 = positives("e2")
    total = moment(1, m, e2 + v)
    epistemic = moment(2, m + v / 2, e2) - moment(1, m + v / 2, e2) ** 2
    equal(moment(1, m + v / 2, e2), total)
    equal(epistemic, total**2 * (exp(e2) - 1))
    aleatoric = moment(2, m, e2) * exp(v) * (exp(v) - 1)  # E[e^(2m)] e^v (e^v - 1)
    equal(aleatoric, total**2 * exp(e2) * (exp(v) - 1))
    equal(epistemic + aleatoric, total**2 * (exp(e2 + v) - 1))
    # two rows, whose logarithms have the variances v and e2 and the covariance c
    c = reals("c")
    product = moment(1, m + mu, v + e2 + 2 * c)
    equal(product - mean * moment(1, mu, e2), mean * moment(1, mu, e2) * (exp(c) - 1))
    # two rows: the best Gaussian density of each scale, and what the logarithm gains
    residual, residual_of_logs = positives("r r0")

    def best(variance):
        return -HALF * LOG_2PI - log(variance) / 2 - HALF

    targets = positives("y:2")
    jacobian = sum(log(1 / target) for target in targets) / 2
    gain = best(residual_of_logs**2) + jacobian - best(residual**2)
    mean_log = sum(log(target) for target in targets) / 2
    equal(gain, log(residual) - log(residual_of_logs) - mean_log)


@pytest.mark.equation("D46")
@pytest.mark.parametrize(("slope", "moves"), [(1, False), (3, False), (None, True)])
def test_units_leave_mode_and_region_of_highest_density_and_a_logarithm_does_not(slope, moves):
    """Of the density x e^-x in the variable y = 3 x, or y = log x: its Jacobian is 1 / 3, or x."""
    x = np.linspace(1e-4, 30, 300_001)
    mass = x * np.exp(-x)
    density = mass / slope if slope else mass * x

    def region(density):
        order = np.argsort(-density)
        inside = x[order[: np.searchsorted(np.cumsum(mass[order]), 0.5 * mass.sum())]]
        return x[np.argmax(density)], inside.min(), inside.max()

    mode, low, high = np.subtract(region(density), region(mass))
    assert np.allclose([mode, low, high], 0, atol=1e-3) != moves
    assert mode == pytest.approx(1.0 * moves, abs=1e-3)


@pytest.mark.equation("D46")
def test_quantiles_of_the_predictive_mixture():
    m, deviation, at = reals("m:2"), positives("d:2"), reals("at")

    def below(z):
        return PHI.subs(x, z)

    parts = list(zip(m, deviation, strict=True))
    line = sum(below((at - a) / d) for a, d in parts) / 2
    equal(diff(line, at), sum(gaussian(at, a, d) for a, d in parts) / 2)  # F rises
    # the upper tail is the lower one of the components mirrored at 0
    equal(1 - line, sum(below((-at + a) / d) for a, d in parts) / 2)
    # two humps: near the first one F is half of its own, so that its 2q is the q of both
    far = positives("far")
    near = ((below(x + far) + below(x - far)) / 2).subs(x, x - far)
    equal(sympy.limit(near, far, sympy.oo), PHI / 2)
    # units
    a, b = reals("a"), positives("b")
    equal((a + b * at - (a + b * m[0])) / (b * deviation[0]), (at - m[0]) / deviation[0])
    # 0 and 1: F(0) = 1 - p is the mean of the components' own
    p = positives("p:2")
    equal(sum(1 - each for each in p) / 2, 1 - sum(p) / 2)
    # the central interval and the region of highest density, of two humps: as likely, and shorter
    grid = np.linspace(-9.0, 9.0, 18_001)
    density = sum(np.exp(-((grid - a) ** 2) / 2) for a in (-4.0, 4.0))
    share = density / density.sum()
    inside = np.searchsorted(np.cumsum(share), [0.05, 0.95])
    order = np.argsort(-share)
    dense = np.sort(order[: np.searchsorted(np.cumsum(share[order]), 0.9) + 1])
    assert share[dense].sum() == pytest.approx(share[slice(*inside)].sum(), abs=1e-3)
    assert len(dense) < 0.75 * np.ptp(inside)
    assert (np.diff(dense) > 1).sum() == 1  # two pieces
    assert 9000 not in dense  # the middle belongs to neither
    # two rows: noise of their own adds to the diagonal alone
    e = reals("e:2")
    first, second = 2 * w + s * e[0], 3 * w + w**2 + s * e[1]
    mean = [expectation(each, w, *e) for each in (first, second)]
    functions = expectation(2 * w * (3 * w + w**2), w)  # 2 w has the mean 0
    equal(expectation(first * second, w, *e) - mean[0] * mean[1], functions)
    equal(expectation(first**2, w, *e) - mean[0] ** 2, expectation((2 * w) ** 2, w) + s**2)


@pytest.mark.equation("D60")
def test_turned_inputs_are_the_same_model():
    half, tau = reals("a"), positives("t")  # the tangent of half the angle
    c, d = (1 - half**2) / (1 + half**2), 2 * half / (1 + half**2)  # its cosine and sine
    turn = Matrix([[c, -d], [d, c]])
    first, rows = matrix("w", 2, 3), matrix("x", 2, 2)
    turned = turn.T * first
    equal((rows * turn) * turned, rows * first)
    equal(sum(one**2 for one in turned), sum(one**2 for one in first))
    equal((turn.T).det() ** 2, 1)
    assert not vanishes(sum(abs(one) for one in turned) - sum(abs(one) for one in first))
    # along the axes the precision of a linear model is diagonal: mean field is exact
    long, short = positives("l k")
    gram = turn * sympy.diag(long, short) * turn.T  # X^T X
    exact = gram / s**2 + eye(2) / tau**2
    equal(turn.T * exact * turn, sympy.diag(long / s**2 + tau**-2, short / s**2 + tau**-2))
    off_by(exact[0, 1], 0, c * d * (long - short) / s**2)  # in the columns not
    # variances of weights that are turned back
    spread = positives("p q")
    equal([(turn * sympy.diag(*(one**2 for one in spread)) * turn.T)[j, j] for j in range(2)],
          [sum(turn[j, i] ** 2 * spread[i] ** 2 for i in range(2)) for j in range(2)])  # fmt: skip


@pytest.mark.equation("D53")
def test_the_bound_is_not_convex():
    # moments of v1 h1 + v2 h2 + c; the moments of h are letters, those of v by expectation
    e, m, spread = reals("e:3"), reals("m:3"), positives("s:3")
    first, second = reals("h:2"), reals("k:2")  # E h, E h^2
    v = [m[j] + spread[j] * e[j] for j in range(3)]
    h = reals("t:2")
    powers = {h[0] ** 2: second[0], h[1] ** 2: second[1], h[0] * h[1]: first[0] * first[1]}

    def mean(expression):
        over_v = sympy.expand(expectation(expression, *e))
        return over_v.subs(powers).subs(dict(zip(h, first, strict=True)))

    f = v[0] * h[0] + v[1] * h[1] + v[2]
    average = sum(m[j] * first[j] for j in range(2)) + m[2]
    variance = spread[2] ** 2 + sum(
        (m[j] ** 2 + spread[j] ** 2) * second[j] - m[j] ** 2 * first[j] ** 2 for j in range(2)
    )
    equal(mean(f), average)
    equal(mean(sympy.expand(f**2)) - average**2, variance)
    # exchanged and turned: neither moment moves; E h of a turned unit has the other sign
    exchange = dict(zip((*m[:2], *spread[:2], *first, *second),
                        (m[1], m[0], spread[1], spread[0], *first[::-1], *second[::-1]),
                        strict=True))  # fmt: skip
    turn = {m[0]: -m[0], first[0]: -first[0]}
    for moved in (exchange, turn):
        equal(average, average.subs(moved, simultaneous=True))
        equal(variance, variance.subs(moved, simultaneous=True))
    # an exchange of the means alone is none of the symmetries
    alone = variance.subs({m[0]: m[1], m[1]: m[0]}, simultaneous=True)
    spreads = [second[j] - first[j] ** 2 for j in range(2)]
    off_by(alone, variance, (m[1] ** 2 - m[0] ** 2) * (spreads[0] - spreads[1]))
    # half way between theta and the turned one the unit is gone from the mean, not its spread
    equal(average.subs(m[0], 0), m[1] * first[1] + m[2])
    y = reals("y")
    square = mean(sympy.expand((y - f) ** 2))
    equal(square, (y - average) ** 2 + variance)
    equal(square.subs({m[0]: 0, m[1]: 0}) - (y - m[2]) ** 2,
          spread[2] ** 2 + sum(spread[j] ** 2 * second[j] for j in range(2)))  # fmt: skip

    # the shipped moments where the inputs of the units are certain: h is tanh of a number
    w, b, at = matrix("w", 1, 3), matrix("b", 1, 3), reals("x")
    out, rho = matrix("v", 1, 4), matrix("r", 1, 4)
    units = [tanh(w[j] * at + b[j]) for j in range(3)]
    values = assign(53, w, b, out, rho, [at])
    theta = np.concatenate([floats(values, [*w, *b, *out]), np.full(6, -60.0), floats(values, rho)])
    found = elbo_minima.moments(theta, np.array([[values[at]]]))
    ships(found[0], sum(out[j] * units[j] for j in range(3)) + out[3], values)
    ships(found[1], sum(softplus(rho[j]) ** 2 * units[j] ** 2 for j in range(3))
          + softplus(rho[3]) ** 2, values)  # fmt: skip


@pytest.mark.equation("D74")
def test_rows_unlike_the_training_rows():
    # the distance of a row from all others, from its leverage
    row = matrix("a", 1, 2)
    gram = matrix("g", 2, 2)
    gram[1, 0] = gram[0, 1]
    (h,) = row * gram.inv() * row.T
    (from_others,) = row * (gram - row.T * row).inv() * row.T
    equal(from_others, h / (1 - h))
    # of any rows, with ties or without, at most k are called new by all the others
    ranks = (1, 2)
    for rows in product(range(3), repeat=4):
        n_new = dict.fromkeys(ranks, 0)
        for new in range(4):
            training = rows[:new] + rows[new + 1 :]

            def beyond(value, others):
                return max(0, min(others) - value, value - max(others))

            excesses = [beyond(training[i], training[:i] + training[i + 1 :]) for i in range(3)]
            for rank in ranks:
                threshold = sorted(excesses)[-rank]
                n_new[rank] += beyond(rows[new], training) > threshold
        assert all(n_new[rank] <= rank for rank in ranks)


@pytest.mark.equation("D75")
def test_the_share_of_a_column_in_the_variance_of_predictions():
    # two independent columns, of two and three values, and any function of them
    p, q, r = positives("p q r")
    laws = [[p, 1 - p], [q, r, 1 - q - r]]
    f = matrix("f", 2, 3)
    mean_given = [sum(laws[0][i] * f[i, j] for i in range(2)) for j in range(3)]
    left_open = sum(
        laws[1][j] * laws[0][i] * (f[i, j] - mean_given[j]) ** 2
        for i, j in product(range(2), range(3))
    )
    exchanged = sum(
        laws[1][j] * laws[0][i] * laws[0][k] * (f[i, j] - f[k, j]) ** 2
        for i, j, k in product(range(2), range(3), range(2))
    )
    equal(left_open, exchanged / 2)


@pytest.mark.equation("D76")
def test_temperature_and_the_factor_on_standard_deviations():
    beta, ell = reals("beta"), reals("ell:2")
    powers = [exp(beta * each) for each in ell]
    p = [power / sum(powers) for power in powers]
    nll = log(sum(powers)) - beta * ell[0]
    mean = sum(p[k] * ell[k] for k in range(2))
    slope = diff(nll, beta)
    equal(slope, mean - ell[0])
    equal(diff(p[1], beta), p[1] * (ell[1] - mean))
    equal(diff(slope, beta), sum(p[k] * (ell[k] - mean) ** 2 for k in range(2)))
    # the order of two classes stays
    equal(log(p[0] / p[1]), beta * (ell[0] - ell[1]))
    # real targets: c^2 is the mean of z^2, and the gain
    c, z_square = positives("c z2")
    change = log_gaussian(y, mu, c * s) - log_gaussian(y, mu, s)
    z = (y - mu) / s
    equal(change, -log(c) - z**2 / 2 * (c**-2 - 1))
    mean_change = -log(c) - z_square / 2 * (c**-2 - 1)
    assert sympy.solve(diff(mean_change, c), c) == [sqrt(z_square)]
    gain = (c**2 - 1) / 2 - log(c)
    equal(mean_change.subs(z_square, c**2), gain)
    assert sympy.solve(diff(gain, c), c) == [1]  # where the gain is 0, its smallest value
    assert gain.subs(c, 1) == 0
    # half of the rows half as wide as they are, the other half twice
    assert (Integer(4) + Rational(1, 4)) / 2 == Rational(17, 8)
    # log c has the variance 1 / (2 N): that of z^2 is 2, and log c = log(mean z^2) / 2
    equal((expectation(x**4, x) - expectation(x**2, x) ** 2) / 4, HALF)


@pytest.mark.equation("D77")
def test_a_conformal_bound_holds_the_share_that_it_says():
    # every order of N + 1 scores, the last one new: the share is k / (N + 1), not about
    for n in range(1, 6):
        orders = list(permutations(range(n + 1)))
        for k in range(1, n + 1):
            inside = sum(order[-1] <= sorted(order[:-1])[k - 1] for order in orders)
            assert Rational(inside, len(orders)) == Rational(k, n + 1)
    # any scores, ties included: at least as many
    for scores in product(range(3), repeat=4):
        for k in range(1, 4):
            inside = sum(
                scores[new] <= sorted(scores[:new] + scores[new + 1 :])[k - 1] for new in range(4)
            )
            assert inside >= k
    # rounding up adds less than 1 / (N + 1)
    for n, percent in product(range(1, 40), range(1, 100)):
        level = Rational(percent, 100)
        share = Rational(sympy.ceiling(level * (n + 1)), n + 1)
        assert level <= share < level + Rational(1, n + 1)
        assert (share <= Rational(n, n + 1)) == (n >= 1 / (1 - level) - 1)
    # the k-th smallest of N uniform numbers: its distribution function is that of the Beta law
    u, n, k = sympy.Symbol("u"), 5, 4
    at_least_k = sum(comb(n, j) * u**j * (1 - u) ** (n - j) for j in range(k, n + 1))
    density = sympy.expand(diff(at_least_k, u))
    equal(density, k * comb(n, k) * u ** (k - 1) * (1 - u) ** (n - k))
    moments = [sympy.integrate(u**power * density, (u, 0, 1)) for power in (1, 2)]
    assert moments[0] == Rational(k, n + 1)
    variance = Rational(k * (n + 1 - k), (n + 1) ** 2 * (n + 2))
    assert moments[1] - moments[0] ** 2 == variance


@pytest.mark.equation("D84")
def test_the_information_of_a_measurement():
    # the mutual information of y and w, as a difference of entropies of y
    v, c, phi = positives("v c phi")
    entropy = HALF * log(2 * sympy.pi * sympy.E * s**2)
    gain = HALF * log(1 + v / s**2)
    both = entropy.subs(s, sqrt(v + s**2)) - entropy
    equal(exp(2 * both), exp(2 * gain))
    # as the fall of the entropy of w: log det of a precision with one row more
    covariance, row = matrix("c", 2, 2), matrix("p", 1, 2)
    covariance[1, 0] = covariance[0, 1]
    after = covariance.inv() + row.T * row / s**2
    (variance,) = row * covariance * row.T
    equal(after.det() * covariance.det(), 1 + variance / s**2)
    # as the expected divergence of the posterior from the prior, one weight
    left = 1 / (1 / c + phi**2 / s**2)
    moved = c - left  # variance of the posterior mean over y
    equal((phi * left / s**2) ** 2 * (phi**2 * c + s**2), moved)
    equal(left / c + moved / c - 1, 0)  # so that KL is half of log(c / left)
    equal(c / left, 1 + phi**2 * c / s**2)
    # what a line costs that is fitted at the ends, and to all loads, of a parabola within 3
    square = 3 ** Integer(4) / 5  # mean of x^4 within 3; that of x^2 is 3
    ends, everywhere = square - 2 * 9 * 3 + 81, square - 2 * 3 * 3 + 9
    assert [round(float(sqrt(each)), 2) for each in (ends, everywhere)] == [6.57, 2.68]


@pytest.mark.equation("D85")
def test_importance_weights_and_what_they_cost():
    delta, tau = positives("delta tau")
    # p'^2 / p is e^(delta^2) times a density, and with p' wider by tau 1 / (tau^2 precision^(1/2))
    equal(-((x - delta) ** 2) + x**2 / 2, delta**2 - (x - 2 * delta) ** 2 / 2)
    precision = 2 / tau**2 - 1  # positive for tau^2 < 2 alone
    equal(-(x**2) / tau**2 + x**2 / 2, -precision * x**2 / 2)
    equal(1 / (tau**4 * precision), 1 / (tau**2 * (2 - tau**2)))  # its square
    # unbiased, and the odds of a classifier
    here, there = positives("p:3"), positives("q:3")
    losses, n, m = reals("l:3"), *positives("n m")
    equal(sum(here[k] * (there[k] / here[k]) * losses[k] for k in range(3)),
          sum(there[k] * losses[k] for k in range(3)))  # fmt: skip
    probability = m * there[0] / (n * here[0] + m * there[0])
    equal(probability / (1 - probability) * n / m, there[0] / here[0])
    # the wrong model: a line for a parabola, even loads of (-1, 1), asked on (0, 1)
    level, slope = reals("a b")
    residual = x**2 - level - slope * x
    weighted = sympy.integrate(sympy.expand(residual**2), (x, 0, 1))
    best = {level: -Rational(1, 6), slope: Integer(1)}
    plain = {level: Rational(1, 3), slope: Integer(0)}
    for low, line in ((0, best), (-1, plain)):
        loss = sympy.integrate(sympy.expand(residual**2), (x, low, 1))
        assert [diff(loss, each).subs(line) for each in (level, slope)] == [0, 0]
    assert weighted.subs(best) == Rational(1, 180)
    assert weighted.subs(plain) == Rational(4, 45)
