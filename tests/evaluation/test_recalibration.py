"""What held-out rows correct: the best temperature, the best factor, and a bound that holds."""

from fractions import Fraction
from math import ceil

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.stats import beta, kstest, norm

from bbb_numpy.evaluation.recalibration import (
    conformal_quantile,
    conformal_rank,
    fit_sd_factor,
    fit_temperature,
    temper,
)


def rows_of_classes(n_rows, too_large, seed, n_classes=3):
    """Return log odds that are stated `too_large` times the true ones, and drawn classes."""
    rng = np.random.default_rng(seed)
    logits = rng.standard_normal((n_rows, n_classes))
    codes = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    return too_large * logits, codes


def loss(logits, codes, inverse_temperature, weights=1.0):
    powers = np.exp(inverse_temperature * logits)
    p = powers / powers.sum(axis=1, keepdims=True)
    return -np.sum(weights * np.log(p[np.arange(len(codes)), codes]))


@pytest.mark.equation("D76")
@given(st.integers(0, 99), st.sampled_from([0.3, 1.0, 4.0]), st.integers(2, 4))
def test_the_temperature_has_the_least_loss_of_the_held_out_rows(seed, too_large, n_classes):
    logits, codes = rows_of_classes(60, too_large, seed, n_classes)
    weights = np.random.default_rng(seed).integers(0, 3, 60)
    of_label = weights @ logits[np.arange(60), codes]
    if not weights @ logits.mean(axis=1) < of_label < weights @ logits.max(axis=1):
        with pytest.raises(ValueError, match=r"right in every|no better than chance"):
            fit_temperature(logits, codes, weights)
        return
    best = 1 / fit_temperature(logits, codes, weights)
    least = minimize_scalar(
        lambda log_b: loss(logits, codes, np.exp(log_b), weights), bounds=(-8, 8), method="bounded"
    )
    assert loss(logits, codes, best, weights) <= least.fun * (1 + 1e-9)
    repeated = np.repeat(np.arange(60), weights)
    assert np.isclose(fit_temperature(logits[repeated], codes[repeated]), 1 / best, rtol=1e-9)
    shifted = logits + np.arange(60)[:, None]
    assert np.isclose(fit_temperature(shifted, codes, weights), 1 / best, rtol=1e-6)
    for unit in (1e-12, 1e40):
        assert np.isclose(fit_temperature(unit * logits, codes, weights), unit / best, rtol=1e-9)
    tempered = temper(logits, 1 / best)
    assert np.allclose(tempered.sum(axis=1), 1)
    assert (tempered.argmax(axis=1) == logits.argmax(axis=1)).all()


@pytest.mark.equation("D76")
def test_the_temperature_found_is_that_by_which_log_odds_are_too_large():
    found = [fit_temperature(*rows_of_classes(400, 2.5, seed)) for seed in range(20)]
    assert abs(np.mean(found) - 2.5) < 3 * np.std(found) / np.sqrt(20)


def test_no_temperature_is_made_up_where_none_is_best():
    logits = np.array([[2.0, 0.0], [0.0, 1.0]])
    with pytest.raises(ValueError, match="right in every held-out row; hold out more rows"):
        fit_temperature(logits, [0, 1])
    with pytest.raises(ValueError, match="no better than chance"):
        fit_temperature(logits, [1, 0])
    with pytest.raises(ValueError, match="no better than chance"):
        fit_temperature(np.zeros((4, 2)) + np.array([[1.0, 0.0]]), [0, 0, 1, 1])
    with pytest.raises(ValueError, match="sample_weight is 0 in every row"):
        fit_temperature(logits, [0, 0], [0, 0])
    with pytest.raises(ValueError, match="codes"):
        fit_temperature(logits, [0, 2])


@pytest.mark.equation("D76")
@given(st.integers(0, 99))
def test_the_factor_on_standard_deviations_is_best_and_gains_what_is_said(seed):
    rng = np.random.default_rng(seed)
    mean, sd = rng.standard_normal((2, 30, 2))
    sd = np.exp(sd)
    y = mean + 1.7 * sd * rng.standard_normal((30, 2))
    factor = fit_sd_factor(mean, sd, y)

    def mean_log_density(c):
        return norm.logpdf(y, mean, c * sd).mean(axis=0)

    best = mean_log_density(factor)
    assert (best >= mean_log_density(1.01 * factor)).all()
    assert (best >= mean_log_density(0.99 * factor)).all()
    assert np.allclose(best - mean_log_density(1.0), (factor**2 - 1) / 2 - np.log(factor))
    weights = rng.integers(0, 3, 30)
    repeated = np.repeat(np.arange(30), weights)
    expected = fit_sd_factor(mean[repeated], sd[repeated], y[repeated])
    assert np.allclose(fit_sd_factor(mean, sd, y, weights), expected)


@pytest.mark.equation("D76")
def test_the_factor_is_known_to_one_over_the_root_of_twice_the_rows_and_right_on_average_only():
    z = np.random.default_rng(0).standard_normal((200, 4000))
    factors = fit_sd_factor(np.zeros_like(z), np.ones_like(z), z)
    assert abs(factors.std() * np.sqrt(400) - 1) < 3 / np.sqrt(2 * 4000)
    # half of the rows stated half as wide as they are, the other half twice
    scale = np.resize([2.0, 0.5], (200, 1))
    factor = fit_sd_factor(np.zeros((200, 4000)), np.ones((200, 4000)), scale * z).mean()
    assert abs(factor**2 - 17 / 8) < 0.02
    inside = np.abs(scale * z) < 1.645 * factor
    assert [round(100 * share) for share in (inside[::2].mean(), inside[1::2].mean())] == [77, 100]


def test_impossible_standard_deviations_and_perfect_means_are_refused():
    ones = np.ones((3, 1))
    with pytest.raises(ValueError, match="sd must be positive"):
        fit_sd_factor(ones, 0 * ones, ones)
    with pytest.raises(ValueError, match="equal to all held-out targets"):
        fit_sd_factor(ones, ones, ones)


@pytest.mark.equation("D77")
@given(st.integers(1, 400), st.integers(1, 999))
@example(49, 140)  # 0.14 times 50 is a float above 7
def test_the_rank_is_that_of_whole_numbers_and_too_few_rows_are_told(n_rows, thousandths):
    exact = Fraction(thousandths, 1000)
    rank = ceil(exact * (n_rows + 1))
    if rank <= n_rows:
        assert conformal_rank(n_rows, thousandths / 1000) == rank
        return
    needed = ceil(exact / (1 - exact))
    with pytest.raises(ValueError, match=f"needs at least {needed} held-out rows; got {n_rows}, "):
        conformal_rank(n_rows, thousandths / 1000)
    conformal_rank(needed, thousandths / 1000)


@pytest.mark.equation("D77")
def test_coverage_over_held_out_sets_and_new_rows_is_exactly_the_rank_over_all_rows():
    rng = np.random.default_rng(0)
    n_sets = 20_000
    for n_rows, coverage, share in [(19, 0.9, 0.9), (20, 0.9, 19 / 21), (12, 0.5, 7 / 13)]:
        # scores with heavy tails, of a law that nobody needs to know
        scores = rng.standard_cauchy((n_rows + 1, n_sets))
        inside = scores[-1] <= conformal_quantile(scores[:-1], coverage)
        assert abs(inside.mean() - share) < 3 * np.sqrt(share * (1 - share) / n_sets)
        assert coverage <= share < coverage + 1 / (n_rows + 1)
    # whole numbers, with ties: at least the coverage, often much more
    counts = rng.poisson(1.0, (20, n_sets))
    inside = counts[-1] <= conformal_quantile(counts[:-1], 0.9)
    assert 0.9 < inside.mean() < 1


@pytest.mark.equation("D77")
def test_the_coverage_that_one_held_out_set_leads_to_has_the_beta_law():
    uniform = np.random.default_rng(1).random((99, 4000))
    coverages = conformal_quantile(uniform, 0.9)
    assert kstest(coverages, beta(90, 10).cdf).pvalue > 0.01
    assert abs(beta(90, 10).std() - 0.030) < 5e-4
    assert round(beta(90, 10).cdf(0.85), 2) == 0.06
    assert round(beta(900, 100).std(), 3) == 0.009
