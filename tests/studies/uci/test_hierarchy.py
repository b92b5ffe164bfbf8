"""Chances of being the better one: the t-test by its definition, the hierarchy by simulation."""

import math

import numpy as np
import pytest
from sample_records import record, sample
from scipy import stats

from bbb_studies.uci import hierarchy
from bbb_studies.uci.hierarchy import Difference, chance, correlated


def test_the_correlated_test_is_a_student_t_with_an_inflated_scale():
    gaps = [-0.3, 0.1, -0.2, -0.4]
    found = correlated(gaps)
    # var with 3 in the denominator; 1/4 + (1/10) / (9/10)
    variance = sum((d + 0.2) ** 2 for d in gaps) / 3
    assert found.mean == pytest.approx(-0.2)
    assert found.scale == pytest.approx(math.sqrt(variance * (1 / 4 + 1 / 9)))
    assert found.freedom == 3
    assert found.below == pytest.approx(stats.t.cdf(0.2 / found.scale, 3))
    # the test that forgets the overlap is surer
    naive = correlated(gaps, correlation=0.0)
    assert naive.scale == pytest.approx(stats.sem(gaps))
    assert naive.below > found.below > 0.5


def test_two_methods_that_are_one_are_level():
    assert correlated([0.0, 0.0, 0.0]).below == 0.5
    assert correlated([-1.0, -1.0]).below == 1.0
    assert chance([correlated([0.0, 0.0])] * 4) == pytest.approx(0.5, abs=1e-6)


def simulated(sets, draws=150_000):
    """The same posterior by importance sampling: (delta_0, tau) from a proposal, deltas summed."""
    rng = np.random.default_rng(0)
    means, scales = (np.array([one[k] for one in sets]) for k in (0, 1))
    width = np.ptp(means) + scales.max()
    centre = means.mean() + width * rng.standard_t(2, draws)
    tau = np.abs(0.3 * rng.standard_cauchy(draws))  # its prior
    logs = -stats.t.logpdf((centre - means.mean()) / width, 2)
    for mean, scale, freedom in sets:
        g = rng.gamma(freedom / 2, 2 / freedom, draws)  # one precision for each draw
        logs = logs + stats.norm.logpdf(mean, centre, np.sqrt(tau**2 + scale**2 / g))
    weights = np.exp(logs - logs.max())
    below = stats.norm.cdf(-centre / tau)
    effective = weights.sum() ** 2 / (weights**2).sum()
    value = float((weights * below).sum() / weights.sum())
    return (
        value,
        float(np.sqrt(np.sum(weights**2 * (below - value) ** 2)) / weights.sum()),
        effective,
    )


CASES = [
    [Difference(-0.2, 0.05, 19), Difference(-0.3, 0.1, 19), Difference(0.1, 0.1, 4)],
    [Difference(-0.05, 0.1, 4)] * 5,
    [Difference(m, 0.2, 19) for m in (-0.5, -0.1, 0.3, -0.2, -0.4, 0.1)],
]


@pytest.mark.parametrize("sets", CASES)
def test_the_grid_agrees_with_importance_sampling(sets):
    value, error, effective = simulated(sets)
    assert effective > 1000
    assert chance(sets) == pytest.approx(value, abs=4 * error + 2e-3)
    assert error < 0.01


def test_chances_pair_the_splits_of_both_and_need_three_sets():
    rows = sample(("boston", "energy", "yacht", "naval"), ("map", "hmc", "eubo"), 4)
    found = hierarchy.chances(rows, "nll")
    assert found["hmc", "eubo"] > 0.7
    assert found["hmc", "eubo"] + found["eubo", "hmc"] == 1.0
    assert hierarchy.chances(rows[:24], "nll") == {}  # two sets
    one_split = [
        record(name, m, 0) for name in ("boston", "energy", "yacht") for m in ("map", "hmc")
    ]
    assert hierarchy.chances(one_split, "nll") == {}
