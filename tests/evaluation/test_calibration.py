"""PIT, coverage and CRPS: closed forms against their definitions."""

from math import sqrt

import numpy as np
import pytest
from scipy.special import ndtr

from bbb_numpy.evaluation import calibration
from bbb_numpy.evaluation.calibration import (
    coverage,
    crps_draws,
    crps_gaussian,
    crps_mixture,
    pit,
)

RNG = np.random.default_rng


def mixture(rng, draws=6, rows=5, outputs=2):
    return rng.normal(0, 2, (draws, rows, outputs)), rng.uniform(0.3, 2, (draws, rows, outputs))


def draw_from(rng, means, scales, count):
    """Draws (count, N, K) of y from an equal mixture of Gaussians."""
    which = rng.integers(len(means), size=count)
    return means[which] + scales[which] * rng.standard_normal((count, *means.shape[1:]))


@pytest.mark.equation("D35")
def test_the_pit_is_the_share_of_the_mixture_below_y():
    rng = RNG(0)
    means, scales = mixture(rng)
    y = rng.normal(0, 2, (5, 2))
    below = (draw_from(rng, means, scales, 40_000) <= y).mean(axis=0)
    assert np.abs(pit(means, scales, y) - below).max() < 4.5 * sqrt(0.25 / 40_000)


@pytest.mark.equation("D35")
def test_central_intervals_hold_what_they_should_and_overconfident_ones_do_not():
    rows, rng = 4000, RNG(4)
    mean = rng.standard_normal((1, rows, 1))
    y = mean[0] + rng.standard_normal((rows, 1))
    right = coverage(pit(mean, 1.0, y))
    assert np.all((right.low <= right.level) & (right.level <= right.high))
    confident = coverage(pit(mean, 0.6, y))  # 40 % too narrow
    assert np.all(confident.high < confident.level)
    # N(0, 1) within 0.6 times its 95 % interval:
    expected = 1.0 - 2.0 * ndtr(-0.6 * 1.959964)
    assert confident.share[3] == pytest.approx(expected, abs=4 * sqrt(0.24 * 0.76 / rows))


@pytest.mark.equation("D34")
@pytest.mark.parametrize(("draws", "block"), [(1, calibration.BLOCK_NUMBERS), (4, 1)])
def test_the_crps_of_a_gaussian_and_of_a_mixture_is_the_integral_that_defines_it(
    draws, block, monkeypatch
):
    monkeypatch.setattr(calibration, "BLOCK_NUMBERS", block)
    rng = RNG(8)
    means, scales = mixture(rng, draws, rows=3, outputs=1)
    y = rng.normal(0, 3, (3, 1))
    x = np.linspace(-25, 25, 50_001)
    cdf = ndtr((x - means) / scales).mean(axis=0)  # (3, G)
    integral = ((cdf - (x >= y)) ** 2).sum(axis=1, keepdims=True) * (x[1] - x[0])
    assert crps_mixture(means, scales, y) == pytest.approx(integral, abs=6e-4)
    if draws == 1:
        assert crps_gaussian(means[0], scales[0], y) == pytest.approx(integral, abs=6e-4)
    assert crps_gaussian(0.0, 1e-9, 5.0) == pytest.approx(5.0), "a point: the absolute error"


@pytest.mark.equation("D34")
def test_the_sorted_form_is_the_double_sum():
    rng = RNG(11)
    draws, y = rng.standard_cauchy((31, 4, 2)), rng.normal(0, 2, (4, 2))
    for count, fair in ((31, False), (31, True), (2, True)):
        first_draws = draws[:count]
        pairs = count * (count - 1) if fair else count**2
        expected = np.abs(first_draws - y).mean(axis=0)
        expected -= 0.5 * np.abs(first_draws[:, None] - first_draws).sum(axis=(0, 1)) / pairs
        assert crps_draws(first_draws, y, fair=fair) == pytest.approx(expected, rel=1e-12)
    assert crps_draws(y[None], y) == pytest.approx(np.zeros((4, 2)))
    near, shift = np.round(draws * 2.0**20) / 2.0**20, 2.0**30  # exact far out
    moved = crps_draws(near + shift, near[0] + shift)
    assert moved == pytest.approx(crps_draws(near, near[0]), rel=1e-11)


@pytest.mark.equation("D34")
def test_the_fair_crps_of_draws_has_the_closed_form_as_its_mean():
    """Over repeated draws, of five each."""
    rng = RNG(12)
    means, scales = mixture(rng, draws=3, rows=1, outputs=1)
    repeats, count = 4000, 5
    drawn = draw_from(rng, means, scales, repeats * count).reshape(count, repeats, 1)
    crps = crps_draws(drawn, np.full((repeats, 1), 0.7), fair=True)
    error = crps.std(ddof=1) / sqrt(repeats)
    assert abs(crps.mean() - crps_mixture(means, scales, [[0.7]])[0, 0]) < 4 * error


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pit(np.zeros((3, 4)), 1.0, np.zeros((4, 1))), r"\(3, 4\) for y of shape \(4, 1\)"),
        (
            lambda: pit(np.zeros((3, 4, 1)), 0.0, np.zeros((4, 1))),
            "scales must be between .*; got 0.0",
        ),
        (lambda: pit(np.full((3, 4, 1), np.nan), 1.0, np.zeros((4, 1))), "means holds nan"),
        (lambda: pit(np.zeros((0, 4, 1)), 1.0, np.zeros((4, 1))), "at least one draw"),
        (lambda: coverage([0.2, 1.3]), "between 0 and 1"),
        (lambda: coverage([]), "pits must hold 1 or more"),
        (lambda: coverage([0.3], [95]), "levels must be > 0 and < 1; got 95"),
        (lambda: crps_gaussian(0.0, -1.0, 0.0), "scale must be between 1e-150 and .*; got -1.0"),
        (lambda: crps_draws(np.zeros((3, 4)), np.zeros((4, 1))), r"^draws must be \(draws, "),
        (lambda: crps_draws(np.zeros((1, 2, 1)), np.zeros((2, 1)), fair=True), "got 1"),
    ],
)
def test_errors_say_what_came_and_what_is_accepted(call, message):
    with pytest.raises(ValueError, match=message):
        call()
