"""M7, M11, M12 and M20 to M22: what is algebra in the samplers and in the checks of models.

That the kernels as a whole leave a density invariant is not: see other_proofs.py.
"""

import numpy as np
import pytest
import sympy
from algebra import (
    HALF,
    assign,
    equal,
    expectation,
    floats,
    log_gaussian,
    matrix,
    off_by,
    positives,
    reals,
    ships,
    sigmoid,
)
from sympy import Integer, Matrix, Rational, diff, exp, eye, log, sqrt

from bbb_numpy import MLP, GaussianLikelihood, GaussianPrior, Model
from bbb_numpy.evaluation.model_checks import Check, posterior_check, reweight
from bbb_numpy.model.log_joint import LogJoint
from bbb_numpy.parts.discrete import BernoulliLikelihood
from bbb_numpy.sampling.mcmc.adaptation import DualAveraging, Moments
from bbb_numpy.sampling.mcmc.hmc import HMC
from bbb_numpy.sampling.mcmc.metrics import DenseMetric
from bbb_numpy.sampling.mcmc.states import Info
from bbb_studies.annealing import anneal
from bbb_studies.mullachery.occam import sum_over_weights


@pytest.mark.equation("M7")
def test_the_flows_of_hamiltonian_monte_carlo_and_its_period():
    # e^-H min(1, e^(H - H')) is the same read from either end, in both cases of the minimum
    a, b = positives("a b")  # e^-H and e^-H', a < b and the other way round
    for smaller, larger in ((a, b), (b, a)):
        equal(smaller * 1, larger * (smaller / larger))
    # the sign of the kinetic energy at the start: off by -2 K_0 in the exponent
    potential, kinetic, end = reals("U K0 H1")
    off_by(-end - (-potential + kinetic), -end - (-potential - kinetic), -2 * kinetic)
    # a leapfrog step on a Gaussian whose covariance is M^-1 is a rotation, up to a scaling
    theta, r, step = reals("theta r step")
    half = r - step / 2 * theta
    there = theta + step * half
    last = half - step / 2 * there
    jacobian = Matrix([[diff(line, letter) for letter in (theta, r)] for line in (there, last)])
    equal(jacobian.det(), 1)
    equal(jacobian.trace() / 2, 1 - step**2 / 2)  # cos phi
    for count in (3, 4, 6):  # the period k of the step 2 sin(pi/k)
        period = jacobian.subs(step, 2 * sympy.sin(sympy.pi / count))
        assert (period**count).applyfunc(sympy.nsimplify).applyfunc(sympy.simplify) == eye(2)

    # the shipped acceptance, after two steps; the momentum is what the generator gives first
    twice = {theta: there, r: last}
    ends = [line.subs(twice, simultaneous=True) for line in (there, last)]
    energy = [HALF * (position**2 + momentum**2)
              for position, momentum in ((theta, r), ends)]  # fmt: skip
    kernel = HMC(step_size=1.2, path=2.4, jitter=0.0)

    def target(at):
        return -0.5 * np.sum(at * at, axis=1), -at

    rejected = 0
    for seed in range(8):
        drawn = np.random.default_rng(seed).standard_normal((1, 1)).item()
        state = kernel.init(target, np.array([[0.4]]))
        _, info = kernel.step(target, np.random.default_rng(seed), state)
        values = {theta: 0.4, r: drawn, step: 1.2}
        error = energy[1] - energy[0]
        falls = error.subs(values) > 0
        ships(info.acceptance, exp(-error) if falls else Integer(1), values)
        rejected += bool(falls)
    assert 0 < rejected < 8


@pytest.mark.equation("M11")
def test_dual_averaging_in_running_form():
    x, anchor, gamma, h = reals("x"), reals("mu"), positives("gamma"), reals("h:3")
    t = positives("t")
    total = reals("total")
    cost = x * total + gamma * sqrt(t) / 2 * (x - anchor) ** 2
    best = anchor - sqrt(t) / gamma * total / t
    equal(diff(cost, x).subs(x, best), 0)
    assert diff(cost, x, 2).is_positive
    # with ten pseudo-observations of 0 the running mean is sum h / (t + 10)
    error, mean, steps = Integer(0), anchor, []
    for count, each in enumerate(h, start=1):
        weight = Rational(1, count + 10)
        error = (1 - weight) * error + weight * each
        equal(error, sum(h[:count]) / (count + 10))
        step = anchor - sqrt(count) / Rational(1, 10) * error
        share = Integer(count) ** Rational(-3, 4)
        mean = share * step + (1 - share) * mean
        steps.append((step, mean))
    values = {**assign(11, h), anchor: float(np.log(0.3))}
    found = DualAveraging.start(0.3)
    for (step, mean), each in zip(steps, h, strict=True):
        found = found.update(values[each])
        ships([found.log_step, found.log_mean], [step, mean], values)


@pytest.mark.equation("M12")
def test_the_metric_and_its_running_moments():
    # r = C^-T z has covariance M where C C^T = M^-1, and steps C z have M^-1
    factor = Matrix([[positives("a"), 0], [reals("b"), positives("c")]])
    z = Matrix(reals("z:2"))

    def covariance(line):
        return (line * line.T).applyfunc(lambda each: expectation(each, *z))

    inverse = factor * factor.T
    equal(covariance(factor.inv().T * z) * inverse, eye(2))
    equal(covariance(factor * z), inverse)
    # with the covariance as M^-1 all frequencies are 1
    equal(inverse * inverse.inv(), eye(2))
    # Welford, three draws of two numbers
    draws = matrix("x", 3, 2)
    mean, squares = Matrix([[0, 0]]), sympy.zeros(2, 2)
    for count in range(1, 4):
        before = draws[count - 1, :] - mean
        mean = mean + before / count
        squares = squares + before.T * (draws[count - 1, :] - mean)
    whole = sum((draws[k, :] for k in range(3)), sympy.zeros(1, 2)) / 3
    equal(mean, whole)
    equal(squares, sum(((draws[k, :] - whole).T * (draws[k, :] - whole) for k in range(3)),
                       sympy.zeros(2, 2)))  # fmt: skip
    # regularised by five pseudo-draws of variance 1e-3; one chain: n = t - 1
    small = Rational(1, 1000)
    line = (squares + 5 * small * eye(2)) / (2 + 5)
    values = assign(12, draws)
    moments = Moments.start(np.zeros((1, 2)), dense=False)
    whole_matrix = Moments.start(np.zeros((1, 2)), dense=True)
    for each in floats(values, draws, (3, 1, 2)):
        moments, whole_matrix = moments.update(each), whole_matrix.update(each)
    ships(moments.mean, mean, values)
    ships(moments.metric(np.float64).variance, line.diagonal(), values)
    ships(whole_matrix.metric(np.float64).covariance, line, values, rtol=1e-11)
    metric = DenseMetric(np.array([[1.0, 0.4], [0.4, 0.7]]))
    momentum = np.array([[0.3, -0.8]])
    r = reals("r:2")
    kinetic = HALF * (r[0] ** 2 + Rational(8, 10) * r[0] * r[1] + Rational(7, 10) * r[1] ** 2)
    ships(metric.kinetic(momentum), kinetic, {r[0]: 0.3, r[1]: -0.8})
    ships(metric.velocity(momentum), [diff(kinetic, each) for each in r], {r[0]: 0.3, r[1]: -0.8})


class Still:
    """A kernel that never moves."""

    def step(self, target, rng, state):
        ones = np.ones(len(state.position))
        return state, Info(ones, ones > 0, ones < 0, ones, ones.astype(int), ones.astype(int))


@pytest.mark.equation("M20")
def test_the_weight_of_annealed_importance_sampling_is_unbiased():
    # two places, three densities f_0, f_1, f_2 on the way, f_0 normalised
    start = positives("p")
    f = [[start, 1 - start], positives("f:2"), positives("g:2")]
    h = reals("h:2")

    def kernel(of, flow):
        """A transition in detailed balance with `of`."""
        return Matrix([[1 - flow / of[0], flow / of[0]], [flow / of[1], 1 - flow / of[1]]])

    kernels = [kernel(f[1], positives("s1")), kernel(f[2], positives("s2"))]
    for of, moves in zip(f[1:], kernels, strict=True):
        equal(Matrix([of]) * moves, Matrix([of]))

    def mean(weigh_first):
        total = 0
        for a in range(2):
            for b in range(2):
                for c in range(2):
                    path = f[0][a] * kernels[0][a, b] * kernels[1][b, c]
                    seen = (a, b) if weigh_first else (b, c)
                    weight = f[1][seen[0]] / f[0][seen[0]] * f[2][seen[1]] / f[1][seen[1]]
                    total += path * weight * h[c]
        return total

    equal(mean(weigh_first=True), f[2][0] * h[0] + f[2][1] * h[1])
    # weighted after the move it is another number
    values = {start: 0.3, **dict(zip([*f[1], *f[2], *h], (0.5, 0.9, 1.3, 0.2, 1.0, 1.0),
                                     strict=True)), positives("s1"): 0.2,
              positives("s2"): 0.1}  # fmt: skip
    wrong, right = (mean(first).subs(values) for first in (False, True))
    assert abs(wrong - right) > 0.1
    # a sum of squares of given sum is least where all are equal
    a, b = positives("a b")
    equal(a**2 + b**2 - (a + b) ** 2 / 2, (a - b) ** 2 / 2)

    # shipped, with kernels that never move: log omega is the log likelihood, whatever the powers
    w = reals("w")
    log_likelihood = log_gaussian(w, 1, HALF)

    def path(power):
        return lambda at: (
            -0.5 * at[:, 0] ** 2 + power * (-2.0 * (at[:, 0] - 1.0) ** 2 + CONSTANT),
            -at - 4.0 * power * (at - 1.0),
        )

    at = np.array([[0.3], [-1.2]])
    powers = np.array([0.0, 0.3, 1.0])
    found = anneal(path, at, [Still(), Still()], powers, np.random.default_rng(0))
    for k in range(2):
        ships(found.log_weights[k], log_likelihood, {w: at[k].item()})


CONSTANT = float(np.log(2) - 0.5 * np.log(2 * np.pi))  # of N(w; 1, 1/4)


@pytest.mark.equation("M21")
def test_every_model_has_probability_one_for_all_data_sets():
    # two rows with labels, two weights vectors under each of two models
    p, q = matrix("p", 2, 2), matrix("q", 2, 2)  # P(label 1) by weights and row
    share = positives("s")

    def evidence(table, first, second):
        total = 0
        for k, weight in enumerate((share, 1 - share)):
            one = table[k, 0] if first else 1 - table[k, 0]
            two = table[k, 1] if second else 1 - table[k, 1]
            total += weight * one * two
        return total

    labels = [(first, second) for second in (0, 1) for first in (0, 1)]
    equal(sum(evidence(p, *each) for each in labels), 1)
    equal(sum(evidence(q, *each) for each in labels), 1)
    # E_m[B_m'm] = sum of the other's probabilities; E_m[log B] >= 0 by the tangent of the log
    a, b = positives("a:4"), positives("b:4")
    equal(sum(x * (y / x) for x, y in zip(a, b, strict=True)), sum(b))
    tangents = sum(x * (1 - y / x) for x, y in zip(a, b, strict=True))  # log v >= 1 - 1/v
    equal(tangents, sum(a) - sum(b))
    v = positives("v")
    gap = log(v) - 1 + 1 / v
    assert gap.subs(v, 1) == 0
    equal(diff(gap, v), (v - 1) / v**2)

    # shipped: two rows, two weight vectors w, b of a logistic line
    x, weights, biases = reals("x:2"), reals("w:2"), reals("b:2")
    table = Matrix(2, 2, lambda k, i: sigmoid(weights[k] * x[i] + biases[k]))
    values = {**assign(21, x, weights, biases), share: 0.3}
    model = Model(MLP((1, 1)), GaussianPrior(), BernoulliLikelihood())
    w = np.stack([floats(values, weights), floats(values, biases)], axis=1)
    total, _ = sum_over_weights(model, floats(values, x, (2, 1)), w, np.array([0.3, 0.7]))
    ships(total, [evidence(table, *each) for each in labels], values)


@pytest.mark.equation("M22")
def test_posterior_checks_scatter_less_and_draws_are_reweighted():
    # u given y has mean p and p has less scatter: two data sets, two weights each
    u = matrix("u", 2, 2)
    share, inside = positives("s"), positives("t")
    shares, within = (share, 1 - share), (inside, 1 - inside)
    p = [sum(within[k] * u[i, k] for k in range(2)) for i in range(2)]
    square = sum(shares[i] * within[k] * u[i, k] ** 2 for i in range(2) for k in range(2))
    lost = sum(shares[i] * within[k] * (u[i, k] - p[i]) ** 2 for i in range(2) for k in range(2))
    equal(square - sum(shares[i] * p[i] ** 2 for i in range(2)), lost)  # >= 0
    # another prior: the mean ratio under the posterior is the Bayes factor
    joint, other = positives("j:3"), positives("o:3")
    posterior = [each / sum(joint) for each in joint]
    ratio = [b / a for a, b in zip(joint, other, strict=True)]
    equal(sum(a * b for a, b in zip(posterior, ratio, strict=True)), sum(other) / sum(joint))

    # Bernstein and von Mises, of a normal mean: KL to N(mean of y, noise / N) tends to 0
    rows, noise, prior, average = positives("N v u ybar")
    precision = rows / noise + 1 / prior
    centre, variance = rows / noise * average / precision, 1 / precision
    limit = noise / rows
    off = log(limit / variance) / 2 + (variance + (centre - average) ** 2) / (2 * limit) - HALF
    assert sympy.limit(off, rows, sympy.oo) == 0
    assert sympy.limit(off, rows, 0) == sympy.oo  # with few rows it is the prior

    seen = Check(np.array([1.0, 2.0, 3.0, 4.0]), np.array([2.0, 2.0, 1.0, 5.0]))
    assert seen.p_value == (1 + 0.5 + 0 + 1) / 4
    # the likelihood cancels: shares by the ratio of the priors alone
    w = matrix("w", 2, 2)
    x, y = reals("x:2"), reals("y:2")
    values = assign(22, w, x, y)
    scales = (0.9, 1.4)
    joints = [
        LogJoint(Model(MLP((1, 1)), GaussianPrior(scale), GaussianLikelihood(0.7)),
                 floats(values, x, (2, 1)), floats(values, y, (2, 1)))
        for scale in scales
    ]  # fmt: skip
    checks = posterior_check(joints[0], floats(values, w, (2, 2)), np.random.default_rng(0))
    ships(checks["mean of y"].observed, [sum(y) / 2] * 2, values)
    found = reweight(joints[0], joints[1], floats(values, w, (2, 2)))
    rise = [sum(log_gaussian(each, 0, Rational(14, 10)) - log_gaussian(each, 0, Rational(9, 10))
                for each in w[k, :]) for k in range(2)]  # fmt: skip
    shares = [exp(each) / sum(exp(one) for one in rise) for each in rise]
    ships(found.shares, shares, values, rtol=1e-11)
    ships(found.effective, 1 / sum(each**2 for each in shares), values, rtol=1e-11)
    ships(found.log_ratio, log(sum(exp(each) for each in rise) / 2), values, rtol=1e-11)
