"""Conjugate priors: every closed form against sums over a grid."""

from dataclasses import astuple
from itertools import product
from math import lgamma

import numpy as np
import pytest
from scipy import stats

from bbb_studies.mullachery.coin import Beta, Dirichlet, Gamma, coin_log_density

LOGIT = np.linspace(-150.0, 150.0, 60_001)  # of p: its tails fall as e^(0.3 z) at worst
LOG_RATE = np.linspace(-150.0, 7.0, 60_001)


def bayes(known, data):
    """Return points, widths, posterior density and log evidence by Bayes' rule on a grid."""
    if known.dist.name == "beta":  # p = sigmoid(z), where the trapezoidal rule is exact to rounding
        x = 1.0 / (1.0 + np.exp(-LOGIT))
        width = x * np.exp(-LOGIT) * x * (LOGIT[1] - LOGIT[0])
    else:
        x = np.exp(LOG_RATE)
        width = x * (LOG_RATE[1] - LOG_RATE[0])
    with np.errstate(divide="ignore", invalid="ignore"):
        if known.dist.name == "beta":
            terms = [np.log(x) if toss else np.log1p(-x) for toss in data]
        else:
            terms = [k * np.log(x) - x - lgamma(k + 1.0) for k in data]
        joint = np.exp(known.logpdf(x) + sum(terms, np.zeros_like(x)))
    joint = np.where(np.isfinite(joint), joint, 0.0)
    evidence = np.sum(joint * width)
    return x, width, joint / evidence, np.log(evidence)


def gamma(prior):
    return stats.gamma(prior.shape, scale=1 / prior.rate)


@pytest.mark.equation("M19")
@pytest.mark.parametrize(
    ("prior", "data"),
    [
        (Beta(2.0, 5.0), [1, 1, 0, 1, 1, 1, 0]),
        (Beta(0.5, 0.5), [0, 0, 1]),
        (Beta(), []),
        (Gamma(2.0, 1.0), [3, 1, 4, 2, 4]),
        (Gamma(0.7, 3.0), [0, 0, 9]),
    ],
)
def test_posterior_evidence_and_moments_are_those_of_bayes_rule_on_a_grid(prior, data):
    if isinstance(prior, Beta):
        posterior, measure = prior.observe(sum(data), len(data) - sum(data)), 0.0
        before, after = stats.beta(*astuple(prior)), stats.beta(*astuple(posterior))
    else:
        posterior, measure = prior.observe(data), -sum(lgamma(k + 1.0) for k in data)
        before, after = gamma(prior), gamma(posterior)
    x, width, density, log_evidence = bayes(before, data)
    middle = (x > 0.01) & (x < (0.99 if isinstance(prior, Beta) else 20.0))
    assert np.abs(after.pdf(x) - density)[middle].max() < 1e-10
    found = posterior.log_normaliser - prior.log_normaliser + measure
    assert found == pytest.approx(log_evidence, abs=1e-11)
    assert posterior.mean == pytest.approx(np.sum(x * density * width), rel=1e-11)


@pytest.mark.equation("M19")
def test_probabilities_of_all_sequences_of_classes_sum_to_one():
    prior, total = Dirichlet((0.7, 2.0, 1.3)), 0.0
    for sequence in product(range(3), repeat=5):
        posterior = prior.observe(np.bincount(sequence, minlength=3))
        total += np.exp(posterior.log_normaliser - prior.log_normaliser)
    assert total == pytest.approx(1, abs=1e-12)
    assert prior.mean == pytest.approx(np.array(prior.alpha) / 4)


@pytest.mark.equation("M18")
@pytest.mark.parametrize(("heads", "tails"), [(0, 0), (1, 0), (3, 4), (7, 2), (300, 200)])
def test_the_formula_of_the_coin_is_the_posterior_of_a_uniform_prior(heads, tails):
    r = np.linspace(0.0, 1.0, 1001)
    found = coin_log_density(r, heads, tails)
    assert np.allclose(found[1:-1], Beta().observe(heads, tails).log_density(r)[1:-1], atol=1e-10)
