"""D78 to D80 of derivations/approximations.md: ensembles, dropout and SGD's cloud."""

from itertools import product

import pytest
import sympy
from algebra import HALF, equal, matrix, off_by, positives, reals
from sympy import Matrix, Rational, diag, diff, eye


def vanishes(line):
    """Assert that every entry of a matrix is 0."""
    equal([*line], [0] * len(line))


@pytest.mark.equation("D78")
def test_randomised_map():
    """The minimiser is linear in both noises; its covariance is the inverse precision."""
    noise, scale = positives("sigma s")
    x = Matrix([[1, 2], [-1, 3]])
    y, eps, eps_prior, w = (Matrix(reals(f"{name}:2")) for name in ("y", "e", "f", "w"))
    residual = y + noise * eps - x * w
    offset = w - scale * eps_prior
    cost = residual.dot(residual) / (2 * noise**2) + offset.dot(offset) / (2 * scale**2)
    precision = x.T * x / noise**2 + eye(2) / scale**2
    covariance = precision.inv()
    mean = covariance * x.T * y / noise**2
    member = mean + covariance * (x.T * eps / noise + eps_prior / scale)
    slope = Matrix([diff(cost, each) for each in w])
    at_member = slope.subs(dict(zip(w, member, strict=True)), simultaneous=True)
    vanishes(at_member)
    parts = [covariance * x.T / noise, covariance / scale]  # what multiplies eps and eps'
    from_noise, from_anchor = (part * part.T for part in parts)
    vanishes(from_noise + from_anchor - covariance)
    vanishes(sympy.simplify(from_anchor - covariance**2 / scale**2))  # without eps
    # without eps', in a direction of curvature 1 / s^2 that no row has, nothing is left
    seen = Matrix([[3, 0]])
    inverse = (seen.T * seen / noise**2 + eye(2) / scale**2).inv()
    equal(inverse[1, 1], scale**2)
    equal((inverse * seen.T * seen / noise**2 * inverse)[1, 1], 0)
    # without decay descent from s eps' moves along the rows alone: the limit of no noise
    row = Matrix([[1, 2]])
    along = row.T * row / (row * row.T)[0]
    of_one_row = (row.T * row / noise**2 + eye(2) / scale**2).inv()
    limit = sympy.simplify(of_one_row).applyfunc(lambda each: sympy.limit(each, noise, 0))
    vanishes(limit - scale**2 * (eye(2) - along))


@pytest.mark.equation("D79")
def test_dropout():
    """Over all masks of two rows of two inputs, one after the other."""
    p = positives("p")
    x, y, w = matrix("x", 2, 2), reals("y:2"), reals("w:2")
    masks = list(product([0, 1], repeat=2))

    def output(row, mask):
        return sum(m * x[row, j] * w[j] / (1 - p) for j, m in enumerate(mask))

    def mean(function, row):
        """Return the expectation over the masks of a row."""
        shares = [p ** mask.count(0) * (1 - p) ** mask.count(1) for mask in masks]
        return sum(s * function(output(row, mask)) for s, mask in zip(shares, masks, strict=True))

    whole = [sum(x[n, j] * w[j] for j in range(2)) for n in range(2)]
    odds = p / (1 - p)
    cost = 0
    for n in range(2):
        equal(mean(lambda f: f, n), whole[n])
        variance = mean(lambda f: f**2, n) - whole[n] ** 2
        equal(variance, odds * sum(x[n, j] ** 2 * w[j] ** 2 for j in range(2)))
        cost += mean(lambda f, n=n: (y[n] - f) ** 2, n)
    gram = Matrix(2, 2, lambda i, j: sum(x[n, i] * x[n, j] for n in range(2)))
    masked = diag(gram[0, 0], gram[1, 1])
    weights = Matrix(w)
    ridge = sum((y[n] - whole[n]) ** 2 for n in range(2)) + odds * weights.dot(masked * weights)
    equal(cost, ridge)
    sums = Matrix([sum(x[n, j] * y[n] for n in range(2)) for j in range(2)])
    slope = Matrix([diff(cost, each) for each in w])
    expected = 2 * ((gram + odds * masked) * weights - sums)
    vanishes(slope - expected)
    # twice the rows: the same weights, and the same variance
    equal((2 * gram + odds * 2 * masked).det(), 4 * (gram + odds * masked).det())


@pytest.mark.equation("D80")
def test_the_law_of_sgd_on_a_parabola():
    rate, batch, n_rows, a, b = positives("eta B N a b")
    sigma = rate / batch / (2 - rate * a / n_rows)
    after = (1 - rate * a / n_rows) ** 2 * sigma + rate**2 / batch * a / n_rows
    equal(after, sigma)
    equal(sympy.limit(sigma / (rate / (2 * batch)), rate, 0), 1)
    right = 2 * batch * n_rows / (rate * (n_rows + batch))
    equal(sigma.subs(a, right), 1 / right)
    # in units of the curvature, with any matrix: here of two directions that are turned
    turn = Matrix([[3, -4], [4, 3]]) / 5
    precision = turn * diag(a, b) * turn.T
    inverse = turn * diag(1 / a, 1 / b) * turn.T
    cloud = rate * n_rows / (batch * (2 - rate)) * inverse
    step = rate * n_rows * inverse
    contraction = eye(2) - step * precision / n_rows
    after = contraction * cloud * contraction.T + step * (precision / n_rows / batch) * step.T
    vanishes(after - cloud)
    equal(cloud.subs(rate, 2 * batch / (n_rows + batch))[0, 1], inverse[0, 1])
    off_by(cloud.subs(rate, 2 * batch / n_rows)[0, 0] / inverse[0, 0], 1, batch / (n_rows - batch))
    # the variance of three snapshots whose correlation is r at a distance of one
    r = positives("r")
    covariance = Matrix(3, 3, lambda i, j: r ** abs(i - j))
    centring = eye(3) - Rational(1, 3) * sympy.ones(3)
    expected = (centring * covariance).trace() / 2
    equal(expected, 1 - Rational(2, 6) * (2 * r + r**2))
    # SWAG: half of the covariance and half of its diagonal
    c = matrix("c", 2, 2)
    deviations = Matrix(c) * HALF**HALF  # of the low-rank half
    spread = deviations.T * deviations
    whole = spread + diag(spread[0, 0], spread[1, 1])
    equal(whole[0, 0], (Matrix(c).T * Matrix(c))[0, 0])
    equal(whole[0, 1], HALF * (Matrix(c).T * Matrix(c))[0, 1])
