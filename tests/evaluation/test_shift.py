"""Estimates for another law of the inputs: what weights repair, and how many rows that leaves."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bbb_numpy.evaluation.shift import density_ratio, effective_rows, weighted_mean


def ratio_of_normals(x, delta):
    """Return N(x; delta, 1) / N(x; 0, 1)."""
    return np.exp(delta * x - delta**2 / 2)


@pytest.mark.equation("D85")
@given(st.integers(0, 99), st.integers(1, 30))
def test_effective_rows_are_between_one_and_all_and_have_no_unit(seed, n_rows):
    weights = np.random.default_rng(seed).exponential(size=n_rows)
    rows = effective_rows(weights)
    assert rows * (1 + 1e-12) >= 1
    assert rows <= n_rows * (1 + 1e-12)
    for unit in (1e140, 1e-200):
        assert np.isclose(effective_rows(unit * weights), rows)
    assert np.isclose(effective_rows(np.append(weights, np.zeros(3))), rows)
    assert np.isclose(effective_rows(np.ones(n_rows)), n_rows)


@pytest.mark.equation("D85")
def test_a_weighted_mean_has_the_error_of_so_many_rows():
    rng = np.random.default_rng(0)
    n_rows, n_sets, delta = 300, 600, 1.0
    x = rng.standard_normal((n_sets, n_rows))
    values = 3 + rng.standard_normal((n_sets, n_rows))  # unlike the weights
    weights = ratio_of_normals(x, delta)
    estimates = list(map(weighted_mean, values, weights))
    means = np.array([each.mean for each in estimates])
    rows = 1 / means.var()
    assert abs(rows / (n_rows * np.exp(-(delta**2))) - 1) < 0.2
    assert abs(np.mean([each.effective_rows for each in estimates]) / rows - 1) < 0.1
    stated = np.sqrt(np.mean([each.standard_error**2 for each in estimates]))
    assert abs(stated / means.std() - 1) < 0.1


@pytest.mark.equation("D85")
def test_the_loss_under_another_law_is_estimated_from_rows_of_this_one():
    rng = np.random.default_rng(1)
    delta = 1.0
    x = rng.standard_normal((200, 2000))
    estimates = [weighted_mean(at**2, ratio_of_normals(at, delta)).mean for at in x]
    error = np.std(estimates) / np.sqrt(200)
    assert abs(np.mean(estimates) - 2) < 4 * error + 0.02  # E x^2 under N(1, 1); a bias of 1 / N
    assert abs(np.mean(x**2) - 1) < 0.02


@pytest.mark.equation("D85")
def test_weights_from_a_classifier_are_the_ratio_of_densities():
    x = np.linspace(-2, 2, 9)
    n_here, n_there = 300, 100
    odds = ratio_of_normals(x, 0.7) * n_there / n_here
    assert np.allclose(density_ratio(odds / (1 + odds), n_here, n_there), ratio_of_normals(x, 0.7))
    with pytest.raises(ValueError, match="do not overlap there, and no weight helps"):
        density_ratio([0.5, 1.0], 10, 10)
    with pytest.raises(ValueError, match="n_there must be"):
        density_ratio([0.5], 10, 0)
    with pytest.raises(ValueError, match="weights are 0 in every row"):
        effective_rows([0.0, 0.0])


@pytest.mark.slow
@pytest.mark.equation("D85")
def test_weights_repair_a_wrong_model_and_cost_a_right_one():
    rng = np.random.default_rng(2)
    x = rng.uniform(-1, 1, (400, 200))  # of each set, and asked on (0, 1)
    y = x**2 + 0.1 * rng.standard_normal(x.shape)
    at = (np.arange(50) + 0.5) / 50

    def mean_loss(degree, weighted):
        losses = []
        for rows, targets in zip(x, y, strict=True):
            root = np.sqrt(rows > 0) if weighted else np.ones(len(rows))
            line = np.linalg.lstsq(
                root[:, None] * np.vander(rows, degree + 1), root * targets, rcond=None
            )[0]
            losses.append(np.mean((np.polyval(line, at) - at**2) ** 2))
        return np.mean(losses)

    assert abs(mean_loss(1, False) / (4 / 45) - 1) < 0.05
    assert mean_loss(1, True) < 1.1 / 180
    assert mean_loss(2, True) > 1.5 * mean_loss(2, False)
