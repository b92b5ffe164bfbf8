"""PIT, coverage and CRPS: closed forms against their definitions, and planted errors caught."""

from math import sqrt

import numpy as np
import pytest
from scipy.special import ndtr

from bbb_numpy.evaluation import calibration
from bbb_numpy.evaluation.calibration import (
    class_pit,
    count_pit,
    coverage,
    crps_draws,
    crps_gaussian,
    crps_mixture,
    kolmogorov,
    pit,
)

RNG = np.random.default_rng


def mixture(rng, draws=6, rows=5, outputs=2):
    return rng.normal(0, 2, (draws, rows, outputs)), rng.uniform(0.3, 2, (draws, rows, outputs))


def draw_from(rng, means, scales, count):
    """Draws (count, N, K) of y from an equal mixture of Gaussians."""
    which = rng.integers(len(means), size=count)
    return means[which] + scales[which] * rng.standard_normal((count, *means.shape[1:]))


def test_numbers_whose_squares_overflow_are_refused_by_name_and_all_others_scored():
    for value in (1e150, -1e150):
        assert pit(np.zeros((1, 1, 1)), np.ones(1), np.full((1, 1), value)) == (value > 0)
        for score in (crps_gaussian, crps_mixture):
            mean = np.zeros((1, 1) if score is crps_gaussian else (1, 1, 1))
            found = score(mean, np.ones(mean.shape), np.full((1, 1), value))
            np.testing.assert_allclose(found, 1e150)
            with pytest.raises(ValueError, match=r"^y must be finite and within 1e\+150"):
                score(mean, np.ones(mean.shape), np.full((1, 1), 1.01 * value))
    with pytest.raises(ValueError, match=r"^scale must be between 1e-150 and 1e\+150"):
        crps_gaussian(0.0, 1.01e150, 0.0)


def test_targets_may_be_one_number_for_each_row():
    """(T, N) for y (N,) says the same as (T, N, 1) for y (N, 1)."""
    rng = RNG(14)
    (means, scales), y = mixture(rng, outputs=1), rng.normal(0, 2, (5, 1))
    counts = rng.poisson(3.0, (5, 1))
    for call, *args in (
        (pit, means, scales, y),
        (crps_mixture, means, scales, y),
        (crps_draws, means, y),
        (lambda rates, y: count_pit(rates, y, RNG(0)), scales, counts),
    ):
        flat = [one[..., 0] for one in args]
        np.testing.assert_array_equal(call(*flat), call(*args)[:, 0])


@pytest.mark.equation("D35")
def test_the_pit_is_the_share_of_the_mixture_below_y():
    rng = RNG(0)
    means, scales = mixture(rng)
    y = rng.normal(0, 2, (5, 2))
    below = (draw_from(rng, means, scales, 40_000) <= y).mean(axis=0)
    found = pit(means, scales, y)
    assert np.abs(found - below).max() < 4.5 * sqrt(0.25 / 40_000)
    # Not the PIT of the Gaussian with the mixture's mean and variance:
    mean = means.mean(axis=0)
    total = np.sqrt((scales**2).mean(axis=0) + means.var(axis=0))
    assert np.abs(ndtr((y - mean) / total) - found).max() > 0.02


@pytest.mark.equation("D35")
@pytest.mark.parametrize("factor", [1.0, 0.6, 1.6])
def test_the_pit_is_uniform_for_the_true_mixture_alone(factor):
    """Planted: deviations too small or too large by 40 and 60 %."""
    rng = RNG(1)
    means, scales = mixture(rng, rows=2000, outputs=1)
    y = draw_from(rng, means, scales, 2000)[np.arange(2000), np.arange(2000)]
    centre = means.mean(axis=0)
    pits = pit(centre + factor * (means - centre), factor * scales, y)
    distance = kolmogorov(pits)
    assert (distance < 1.63) == (factor == 1.0)
    assert (distance > 2.5) == (factor != 1.0)


@pytest.mark.equation("D35")
def test_a_biased_predictive_has_a_sloping_pit():
    rng = RNG(2)
    pits = pit(np.full((1, 1000, 1), 0.4), np.ones((1, 1, 1)), rng.standard_normal((1000, 1)))
    assert kolmogorov(pits) > 3
    assert (pits < 0.5).mean() > 0.6


@pytest.mark.equation("D35")
def test_the_distance_from_uniform_has_the_law_of_kolmogorov():
    rng = RNG(3)
    far = np.array([kolmogorov(rng.random(400)) for _ in range(2000)])
    for point, share in ((1.36, 0.05), (1.63, 0.01)):
        assert abs((far > point).mean() - share) < 4 * sqrt(share / 2000)
    assert kolmogorov([0.5]) == 0.5


@pytest.mark.equation("D35")
def test_central_intervals_hold_what_they_should_and_overconfident_ones_do_not():
    rng = RNG(4)
    rows = 4000
    mean, y = rng.standard_normal((1, rows, 1)), None
    y = mean[0] + rng.standard_normal((rows, 1))
    right = coverage(pit(mean, 1.0, y))
    assert np.all((right.low <= right.level) & (right.level <= right.high))
    confident = coverage(pit(mean, 0.6, y))  # planted: 40 % too narrow
    assert np.all(confident.high < confident.level)
    # N(0, 1) within 0.6 times its 95 % interval:
    expected = 1.0 - 2.0 * ndtr(-0.6 * 1.959964)
    assert confident.share[3] == pytest.approx(expected, abs=4 * sqrt(0.24 * 0.76 / rows))
    wide = coverage(pit(mean, 2.0, y))
    assert np.all(wide.low > wide.level)


@pytest.mark.equation("D35")
def test_a_target_on_the_end_of_an_interval_is_inside():
    assert coverage([0.25, 0.75, 0.2, 0.8], [0.5]).share == 0.5


@pytest.mark.equation("D35")
def test_the_pit_decides_coverage_as_the_quantiles_do():
    rng = RNG(5)
    means, scales = mixture(rng, rows=60, outputs=1)
    y = rng.normal(0, 3, (60, 1))
    drawn = draw_from(rng, means, scales, 20_000)
    low, high = np.quantile(drawn, [0.1, 0.9], axis=0)
    inside = (low <= y) & (y <= high)
    pits = pit(means, scales, y)
    clear = np.minimum(abs(pits - 0.1), abs(pits - 0.9)) > 0.015  # not within the sampling error
    assert clear.sum() > 45
    assert (inside == (np.abs(pits - 0.5) <= 0.4))[clear].all()


@pytest.mark.equation("D35")
def test_the_randomised_pit_of_classes_is_uniform_for_right_probabilities_alone():
    rng = RNG(6)
    proba = rng.dirichlet([0.7, 1.0, 2.0], 3000)
    labels = (proba.cumsum(axis=1) < rng.random((3000, 1))).sum(axis=1)
    assert kolmogorov(class_pit(proba, labels, rng)) < 1.63
    sharp = proba**2 / (proba**2).sum(axis=1, keepdims=True)  # planted: overconfident
    assert kolmogorov(class_pit(sharp, labels, rng)) > 3
    # Without randomisation no discrete PIT is uniform:
    top = proba.cumsum(axis=1)[np.arange(3000), labels]
    assert kolmogorov(np.minimum(top, 1.0)) > 5


@pytest.mark.equation("D35")
def test_the_randomised_pit_of_counts_is_uniform_for_the_true_mixture_alone():
    rng = RNG(7)
    rates = rng.gamma(2.0, 3.0, (5, 3000, 1))
    y = rng.poisson(rates[rng.integers(5, size=3000), np.arange(3000)]).astype(float)
    assert kolmogorov(count_pit(rates, y, rng)) < 1.63
    centred = np.broadcast_to(rates.mean(axis=0), rates.shape)  # planted: one rate, too narrow
    assert kolmogorov(count_pit(centred, y, rng)) > 3
    zero = count_pit(np.full((1, 1, 1), 2.0), np.zeros((1, 1)), rng)
    assert 0 <= zero[0, 0] <= np.exp(-2.0)


@pytest.mark.equation("D34")
def test_the_crps_of_a_gaussian_is_the_integral_that_defines_it():
    x = np.linspace(-30, 30, 60_001)
    for mean, scale, y in ((0.0, 1.0, 0.3), (2.0, 0.5, -1.0), (-1.0, 3.0, 9.0)):
        gap = (ndtr((x - mean) / scale) - (x >= y)) ** 2
        integral = gap.sum() * (x[1] - x[0])
        assert crps_gaussian(mean, scale, y) == pytest.approx(integral, abs=6e-4)
    assert crps_gaussian(0.0, 1e-9, 5.0) == pytest.approx(5.0), "a point: the absolute error"


@pytest.mark.equation("D34")
def test_the_crps_of_a_mixture_is_the_integral_that_defines_it():
    rng = RNG(8)
    means, scales = mixture(rng, draws=4, rows=3, outputs=1)
    y = rng.normal(0, 3, (3, 1))
    x = np.linspace(-25, 25, 50_001)
    cdf = ndtr((x - means) / scales).mean(axis=0)  # (3, G)
    integral = ((cdf - (x >= y)) ** 2).sum(axis=1, keepdims=True) * (x[1] - x[0])
    assert crps_mixture(means, scales, y) == pytest.approx(integral, abs=6e-4)


@pytest.mark.equation("D34")
def test_a_mixture_of_one_is_a_gaussian_and_equal_parts_change_nothing():
    rng = RNG(9)
    means, scales = mixture(rng, draws=1)
    y = rng.normal(0, 2, (5, 2))
    one = crps_gaussian(means[0], scales[0], y)
    assert crps_mixture(means, scales, y) == pytest.approx(one, rel=1e-12)
    assert crps_mixture(means.repeat(7, 0), scales.repeat(7, 0), y) == pytest.approx(one, rel=1e-12)


@pytest.mark.parametrize(("block", "columns"), [(80, 2), (1, 1)])
def test_the_blocks_of_a_mixture_bound_the_memory_and_change_nothing(monkeypatch, block, columns):
    rng = RNG(10)
    means, scales = mixture(rng, draws=9, rows=7)  # 36 pairs
    y = rng.normal(0, 2, (7, 2))
    whole, distance, shapes = crps_mixture(means, scales, y), calibration._distance, []

    def noted(mean, scale):
        shapes.append(mean.shape)
        return distance(mean, scale)

    monkeypatch.setattr(calibration, "BLOCK", block)
    monkeypatch.setattr(calibration, "_distance", noted)
    assert crps_mixture(means, scales, y) == pytest.approx(whole, rel=1e-13)
    assert shapes[:-1] == [(36, columns)] * (14 // columns)  # the last is the distance from y


@pytest.mark.equation("D34")
def test_the_sorted_form_is_the_double_sum():
    rng = RNG(11)
    draws, y = rng.standard_cauchy((31, 4, 2)), rng.normal(0, 2, (4, 2))
    double = np.abs(draws[:, None] - draws).mean(axis=(0, 1))
    expected = np.abs(draws - y).mean(axis=0) - 0.5 * double
    assert crps_draws(draws, y) == pytest.approx(expected, rel=1e-12)
    fair = np.abs(draws - y).mean(axis=0) - 0.5 * double * 31 / 30
    assert crps_draws(draws, y, fair=True) == pytest.approx(fair, rel=1e-12)
    two = np.abs(draws[:2] - y).mean(axis=0) - 0.5 * np.abs(draws[0] - draws[1])
    assert crps_draws(draws[:2], y, fair=True) == pytest.approx(two, rel=1e-12)
    assert crps_draws(y[None], y) == pytest.approx(np.zeros((4, 2)))


@pytest.mark.equation("D34")
def test_no_digit_of_the_sorted_form_is_lost_far_from_zero():
    """In steps of 2^-10 a shift by 2^40 is exact, whatever the column is shifted by."""
    rng = RNG(15)
    draws, y = np.round(rng.normal(0, 1024, (31, 4, 2))) / 1024, np.zeros((4, 2))
    shift = 2.0**40 * np.array([1.0, -1.0])
    assert crps_draws(draws + shift, y + shift) == pytest.approx(crps_draws(draws, y), rel=1e-13)


@pytest.mark.equation("D34")
@pytest.mark.parametrize("fair", [True, False])
def test_the_crps_of_draws_has_the_closed_form_as_its_mean_only_if_fair(fair):
    """Over repeated draws; the plain form is too large by E|X - X'| / (2 T)."""
    rng = RNG(12)
    means, scales = mixture(rng, draws=3, rows=1, outputs=1)
    y, repeats, count = np.array([[0.7]]), 4000, 5
    drawn = draw_from(rng, means, scales, repeats * count).reshape(count, repeats, 1)
    found = crps_draws(drawn, np.full((repeats, 1), 0.7), fair)
    error = found.std(ddof=1) / sqrt(repeats)
    exact = crps_mixture(means, scales, y)[0, 0]
    bias = 0.0
    if not fair:
        spread = np.hypot(scales[:, None], scales)[..., 0, 0]
        m = (means[:, None] - means)[..., 0, 0]
        away = m * (2 * ndtr(m / spread) - 1) + 2 * spread * np.exp(
            -0.5 * (m / spread) ** 2
        ) / sqrt(2 * np.pi)
        bias = away.mean() / (2 * count)
        assert bias > 6 * error, "this test can tell the two apart"
    assert abs(found.mean() - exact - bias) < 4 * error


@pytest.mark.equation("D34")
def test_the_crps_is_proper():
    """Stated N(m, s^2), true N(0, 1): the expected score is lowest at m = 0, s = 1."""
    z = np.linspace(-9, 9, 3001)
    weight = np.exp(-0.5 * z * z)
    weight /= weight.sum()
    scales = np.linspace(0.5, 2.0, 31)
    by_scale = [weight @ crps_gaussian(0.0, s, z) for s in scales]
    assert scales[np.argmin(by_scale)] == pytest.approx(1.0)
    means = np.linspace(-1, 1, 21)
    by_mean = [weight @ crps_gaussian(m, 1.0, z) for m in means]
    assert means[np.argmin(by_mean)] == pytest.approx(0.0, abs=1e-12)
    assert min(by_scale) == pytest.approx(1 / sqrt(np.pi)), "E|Z - Z'| / 2"
    # Planted: without the pair term the sharpest statement wins.
    improper = [weight @ crps_gaussian(0.0, s, z) + s / sqrt(np.pi) for s in scales]
    assert np.argmin(improper) == 0


def test_the_crps_is_in_units_of_y():
    rng = RNG(13)
    means, scales = mixture(rng)
    y = rng.normal(0, 2, (5, 2))
    for factor in (1e-3, 1e6):
        assert crps_mixture(factor * means, factor * scales, factor * y) == pytest.approx(
            factor * crps_mixture(means, scales, y), rel=1e-9
        )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pit(np.zeros((3, 4)), 1.0, np.zeros((4, 1))), r"\(3, 4\) for y of shape \(4, 1\)"),
        (lambda: pit(np.zeros((3, 4, 1)), np.ones(3), np.zeros((4, 1))), "scales.*one per draw"),
        (
            lambda: pit(np.zeros((3, 4, 1)), 0.0, np.zeros((4, 1))),
            "scales must be between 1e-150 and .*; got 0.0",
        ),
        (lambda: pit(np.full((3, 4, 1), np.nan), 1.0, np.zeros((4, 1))), "means holds nan"),
        (lambda: pit(np.zeros((0, 4, 1)), 1.0, np.zeros((4, 1))), "at least one draw"),
        (lambda: coverage([0.2, 1.3]), "between 0 and 1"),
        (lambda: coverage([]), "pits must hold 1 or more"),
        *(
            (lambda level=level: coverage([0.3], [level]), "levels must be numbers between 0 and 1")
            for level in (95, 0, 1)
        ),
        (lambda: kolmogorov([]), "pits must hold 1 or more"),
        (lambda: crps_gaussian(0.0, -1.0, 0.0), "scale must be between 1e-150 and .*; got -1.0"),
        (
            lambda: crps_gaussian(np.zeros(2), np.ones(3), 0.0),
            r"mean, scale and y must have one shape; got \(2,\), \(3,\) and \(\)",
        ),
        (lambda: crps_draws(np.zeros((3, 4)), np.zeros((4, 1))), r"^draws must be \(draws, "),
        (lambda: count_pit(np.ones(3), 1, RNG(0)), r"^rates must be .* got shape \(3,\)"),
        (lambda: crps_draws(np.zeros((1, 2, 1)), np.zeros((2, 1)), fair=True), "got 1"),
        (
            lambda: count_pit(np.ones((1, 1, 1)), np.array([[0.5]]), RNG(0)),
            "y must hold whole numbers; got 0.5",
        ),
        (lambda: count_pit(np.ones((1, 1, 1)), np.array([[-1]]), RNG(0)), "y must be between 0"),
        (lambda: class_pit(np.full((1, 2), 0.5), [3], RNG(0)), "from 0 to 1; got 3"),
    ],
)
def test_errors_say_what_came_and_what_is_accepted(call, message):
    with pytest.raises(ValueError, match=message):
        call()
