"""D47: the slope of the criterion by which ChEES finds its path, where the motion is known."""

import pytest
import sympy
from algebra import (
    HALF,
    assign,
    equal,
    expectation,
    floats,
    off_by,
    positives,
    reals,
    ships,
)
from sympy import Integer, Matrix, Rational, cos, diff, integrate, log, pi, sin, sqrt

from bbb_numpy.sampling.mcmc.chees import PathLength, halton, mean_slope

QUARTER = Rational(1, 4)


def same(left, right):
    """Assert that two lines with angles are equal, by the addition theorems."""
    equal(sympy.trigsimp(sympy.expand(left - right, trig=True)), 0)


@pytest.mark.equation("D47")
def test_the_slope_of_the_criterion_and_its_jitter():
    # N(0, 1) with M = 1: the motion is a rotation, and solves Hamilton's equations
    theta, r, t = reals("theta r t")
    end, last = theta * cos(t) + r * sin(t), r * cos(t) - theta * sin(t)
    equal(diff(end, t), last)
    equal(diff(last, t), -end)
    # the jump is best at half a period, where the square never moves
    same(expectation((end - theta) ** 2, theta, r), 2 * (1 - cos(t)))
    equal(end.subs(t, pi) ** 2, theta**2)
    # the change of the square
    change = end**2 - theta**2
    same(change, (r**2 - theta**2) * sin(t) ** 2 + 2 * theta * r * sin(t) * cos(t))
    criterion = expectation(change**2, theta, r) / 4
    same(criterion, sin(t) ** 2)
    equal(criterion.subs(t, pi / 2), 1)
    # of the deviation sigma
    s = positives("sigma")
    wide = s * theta * cos(t / s) + s * r * sin(t / s)
    same(expectation((wide**2 - (s * theta) ** 2) ** 2, theta, r) / 4, s**4 * sin(t / s) ** 2)

    # the slope in log T, path by path and on average
    h, length = positives("h T")
    path = {t: h * length}
    term = (change**2 / 4).subs(path)
    slope = (t * change * end * last).subs(path)
    same(length * diff(term, length), slope)
    same(expectation(slope, theta, r), (t * sin(2 * t)).subs(path))
    same(length * diff(criterion.subs(path), length), (t * sin(2 * t)).subs(path))
    # without the jitter's share it is that of another path
    off_by(slope / h, slope, (1 - h) / h * slope)

    # over all h: tan 2T = 2T is where the slope vanishes, and 2.247 the first of these places
    mean = integrate(sin(t) ** 2, (t, 0, length)) / length
    same(mean, HALF - sin(2 * length) / (4 * length))
    same(4 * length**2 * diff(mean, length), sin(2 * length) - 2 * length * cos(2 * length))
    first = sympy.nsolve(sin(2 * length) - 2 * length * cos(2 * length), length, 2.2)
    assert abs(first - 2.247) < 5e-4
    assert diff(mean, length, 2).subs(length, first) < 0
    heights = [mean.subs(length, first + k * pi / 8).evalf() for k in range(1, 60)]
    assert max(heights) < mean.subs(length, first).evalf()


@pytest.mark.equation("D47")
def test_the_metric_cancels_and_the_slope_is_that_of_a_motion():
    # two numbers of a Gaussian whose precision is the metric M = C C^T: z = C^T u turns as above
    a, c = positives("a c")
    b = reals("b")
    factor = Matrix([[a, 0], [b, c]])
    m = factor * factor.T
    start, momentum = Matrix(reals("x:2")), Matrix(reals("r:2"))
    h, length = positives("h T")
    center, centers = Matrix(reals("m:2")), Matrix(reals("n:2"))  # of the starts, of the ends
    time = h * length
    end = start * cos(time) + m.inv() * momentum * sin(time)
    last = momentum * cos(time) - m * start * sin(time)
    equal(diff(end, length), h * m.inv() * last)

    def square(u):
        return (u.T * m * u)[0]

    change = square(end - centers) - square(start - center)
    slope = time * change * ((end - centers).T * last)[0]
    equal(length * diff(QUARTER * change**2, length), slope)


@pytest.mark.equation("D47")
def test_the_weights_of_the_chains_adam_and_haltons_numbers():
    g, alpha = reals("g:3"), positives("alpha:3")
    line = sum(w * s for w, s in zip(alpha, g, strict=True)) / sum(alpha)
    values = assign(47, g, alpha)
    ships(mean_slope(floats(values, g), floats(values, alpha)), line, values)
    equal(line.subs(dict.fromkeys(alpha, alpha[0])), sum(g) / 3)
    equal(line.subs(alpha[1], 0), (alpha[0] * g[0] + alpha[2] * g[2]) / (alpha[0] + alpha[2]))

    # Adam without momentum: a step of 0.025 in units of the root mean square of the slopes
    rate, memory = Rational(1, 40), Rational(19, 20)
    at, mean, squares = log(Rational(3, 10)), log(Rational(3, 10)), Integer(0)
    length = PathLength.start(0.3)
    for count, slope in enumerate(g, start=1):
        squares = memory * squares + (1 - memory) * slope**2
        at = at + rate * slope / sqrt(squares / (1 - memory**count))
        share = Integer(count) ** Rational(-3, 4)
        mean = share * at + (1 - share) * mean
        length = length.update(values[slope], 1e-3, 1e3)
        ships([length.log_path, length.log_mean], [at, mean], values)
    # the weights of the squares add up to 1, and the scale of the slopes is gone
    equal(squares.subs(dict.fromkeys(g, 1)), 1 - memory**3)
    scale = positives("k")
    ratio = (g[2] / sqrt(squares)).subs({one: scale * one for one in g}, simultaneous=True)
    equal(ratio, g[2] / sqrt(squares))

    # digits mirrored at the point
    for turn in range(1, 40):
        digits = [int(d) for d in bin(turn)[2:]]
        mirrored = sum(Rational(d, 2 ** (k + 1)) for k, d in enumerate(reversed(digits)))
        ships(halton(turn), mirrored, {})
