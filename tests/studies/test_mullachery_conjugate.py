"""Conjugate priors: every closed form against sums over a grid, and the table as printed caught."""

from dataclasses import astuple
from itertools import product
from math import lgamma

import numpy as np
import pytest
from scipy import stats

from bbb_studies.mullachery.coin import Beta, Dirichlet, Gamma, coin_log_density

LOGIT = np.linspace(-150.0, 150.0, 60_001)  # of p: its tails fall as e^(0.3 z) at worst
LOG_RATE = np.linspace(-150.0, 7.0, 60_001)


def grid_of(prior):
    """Return points over the whole domain and the width that each stands for."""
    if isinstance(prior, Beta):  # p = sigmoid(z), which the trapezoidal rule integrates to rounding
        p = 1.0 / (1.0 + np.exp(-LOGIT))
        return p, p * np.exp(-LOGIT) * p * (LOGIT[1] - LOGIT[0])
    x = np.exp(LOG_RATE)
    return x, x * (LOG_RATE[1] - LOG_RATE[0])


def gamma(prior):
    return stats.gamma(prior.shape, scale=1 / prior.rate)


def log_density(prior, x):
    return prior.log_density(x) if isinstance(prior, Beta) else gamma(prior).logpdf(x)


def log_likelihood(prior, data, x):
    """Return log P(data | x) from the definition of the distribution."""
    data = np.asarray(data, float)
    with np.errstate(divide="ignore", invalid="ignore"):
        if isinstance(prior, Beta):
            terms = [np.log(x) if toss else np.log1p(-x) for toss in data]
        else:
            terms = [k * np.log(x) - x - lgamma(k + 1.0) for k in data]
    return sum(terms, np.zeros_like(x))


def bayes(prior, data):
    """Return points, posterior density and log evidence by Bayes' rule on the grid."""
    x, width = grid_of(prior)
    with np.errstate(invalid="ignore"):
        joint = np.exp(log_density(prior, x) + log_likelihood(prior, data, x))
    inside = (x > 0) & (x < 1 if isinstance(prior, Beta) else True)
    joint = np.where(inside, joint, 0.0)
    evidence = np.sum(joint * width)
    return x, width, joint / evidence, np.log(evidence)


CASES = [
    (Beta(2.0, 5.0), [1, 1, 0, 1, 1, 1, 0]),
    (Beta(0.5, 0.5), [0, 0, 1]),
    (Beta(), []),
    (Gamma(2.0, 1.0), [3, 1, 4, 2, 4]),
    (Gamma(0.7, 3.0), [0, 0, 9]),
]


@pytest.mark.equation("M19")
@pytest.mark.parametrize(("prior", "data"), CASES)
def test_posterior_evidence_and_moments_are_those_of_bayes_rule_on_a_grid(prior, data):
    x, width, density, log_evidence = bayes(prior, data)
    posterior = prior.update(data)
    middle = (x > 0.01) & (x < (0.99 if isinstance(prior, Beta) else 20.0))
    known = stats.beta(*astuple(posterior)) if isinstance(prior, Beta) else gamma(posterior)
    assert np.abs(known.pdf(x) - density)[middle].max() < 1e-10
    assert prior.log_evidence(data) == pytest.approx(log_evidence, abs=1e-11)
    mean = np.sum(x * density * width)
    assert posterior.mean == pytest.approx(mean, rel=1e-11)
    assert posterior.log_evidence([1]) == pytest.approx(
        np.log(np.sum(np.exp(log_likelihood(prior, [1], x)) * density * width)), abs=1e-11
    )


@pytest.mark.equation("M19")
def test_probabilities_of_all_sequences_sum_to_one():
    prior, classes = Dirichlet((0.7, 2.0, 1.3)), range(3)
    sequences = [list(one) for one in product(classes, repeat=5)]
    assert sum(np.exp(prior.log_evidence(one)) for one in sequences) == pytest.approx(1, abs=1e-12)
    assert sum(np.exp(Gamma(2.5, 0.6).log_evidence(k)) for k in range(400)) == pytest.approx(1)
    assert sum(np.exp(Beta(2, 3).log_evidence(k)) for k in (0, 1)) == pytest.approx(1, abs=1e-15)


@pytest.mark.equation("M18")
@pytest.mark.parametrize(("heads", "tails"), [(0, 0), (1, 0), (3, 4), (7, 2), (300, 200)])
def test_the_formula_of_the_coin_is_the_posterior_of_a_uniform_prior(heads, tails):
    r = np.linspace(0.0, 1.0, 1001)
    found = coin_log_density(r, heads, tails)
    assert np.allclose(found[1:-1], Beta().observe(heads, tails).log_density(r)[1:-1], atol=1e-10)


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        (lambda: Beta(0, 1), ValueError, "alpha must be positive and finite; got 0"),
        (lambda: Beta().update([0, 2]), ValueError, "data must be 0 or 1; got 2"),
        (lambda: Dirichlet((1.0,)), ValueError, "at least 2 numbers"),
        (lambda: Dirichlet((1.0, "b")), TypeError, r"alpha\[1\] must be positive"),
        (lambda: Dirichlet((1, 1)).update([2]), ValueError, "classes 0 ... 1; got 2"),
        (lambda: Dirichlet((1, 1)).observe([1, 2, 3]), ValueError, "2 classes; got 3 counts"),
        (lambda: Gamma(1, 1).update([0.5]), ValueError, "whole numbers >= 0; got 0.5"),
        (lambda: coin_log_density(0.5, -1, 0), ValueError, "heads must be a whole number >= 0"),
    ],
)
def test_what_makes_no_sense_is_refused(wrong, error, message):
    with pytest.raises(error, match=message):
        wrong()
