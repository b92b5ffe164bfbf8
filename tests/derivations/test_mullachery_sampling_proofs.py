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
    matrix,
    off_by,
    positives,
    reals,
    ships,
)
from sympy import Integer, Matrix, Rational, diff, eye, log, sqrt

from bbb_numpy.sampling.mcmc.adaptation import DualAveraging


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
