"""Conjugate priors: every closed form against sums over a grid, and the table as printed caught."""

from fractions import Fraction
from itertools import product
from math import factorial, lgamma

import numpy as np
import pytest

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
        joint = np.exp(prior.log_density(x) + log_likelihood(prior, data, x))
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
    assert np.abs(np.exp(posterior.log_density(x)) - density)[middle].max() < 1e-10
    assert prior.log_evidence(data) == pytest.approx(log_evidence, abs=1e-11)
    mean = np.sum(x * density * width)
    assert posterior.mean == pytest.approx(mean, rel=1e-11)
    assert posterior.log_predictive(1) == pytest.approx(
        np.log(np.sum(np.exp(log_likelihood(prior, [1], x)) * density * width)), abs=1e-11
    )


@pytest.mark.equation("M19")
@pytest.mark.parametrize(
    ("prior", "data"), [*CASES, (Dirichlet((1.0, 2.0, 0.5)), [0, 2, 2, 1, 0, 0])]
)
def test_the_evidence_is_the_product_of_the_predictions_one_after_another(prior, data):
    total, so_far = 0.0, prior
    for y in data:
        total += so_far.log_predictive(y)
        so_far = so_far.update(y)
    assert total == pytest.approx(prior.log_evidence(data), abs=1e-11)
    assert np.allclose(so_far.mean, prior.update(data).mean, rtol=1e-13)


@pytest.mark.equation("M19")
def test_probabilities_of_all_sequences_sum_to_one():
    prior, classes = Dirichlet((0.7, 2.0, 1.3)), range(3)
    sequences = [list(one) for one in product(classes, repeat=5)]
    assert sum(np.exp(prior.log_evidence(one)) for one in sequences) == pytest.approx(1, abs=1e-12)
    assert np.exp(Gamma(2.5, 0.6).log_predictive(np.arange(400))).sum() == pytest.approx(1)
    assert np.exp(Beta(2, 3).log_predictive([[0], [1]])).sum() == pytest.approx(1, abs=1e-15)


@pytest.mark.equation("M18")
@pytest.mark.parametrize(("heads", "tails"), [(0, 0), (1, 0), (3, 4), (7, 2), (300, 200)])
def test_the_formula_of_the_coin_is_the_posterior_of_a_uniform_prior(heads, tails):
    r = np.linspace(0.0, 1.0, 1001)
    found = coin_log_density(r, heads, tails)
    assert np.allclose(found[1:-1], Beta().observe(heads, tails).log_density(r)[1:-1], atol=1e-10)
    # the factor, exactly: 1 / integral of r^h (1 - r)^t, expanded
    terms = [
        Fraction(
            (-1) ** j * factorial(tails), factorial(j) * factorial(tails - j) * (heads + j + 1)
        )
        for j in range(tails + 1)
    ]
    exact = 1 / sum(terms)
    assert exact == Fraction(factorial(heads + tails + 1), factorial(heads) * factorial(tails))
    assert found[500] == pytest.approx(np.log(float(exact)) - (heads + tails) * np.log(2), abs=1e-9)


@pytest.mark.equation("M18")
def test_one_head_gives_2p_and_not_p():
    p = np.linspace(0.0, 1.0, 101)
    assert np.allclose(np.exp(coin_log_density(p, 1, 0)), 2 * p, atol=1e-14)
    # the printed p * 1 is proportional to it but integrates to one half
    middle = (np.arange(1000) + 0.5) / 1000
    assert np.mean(middle) == pytest.approx(0.5)
    assert np.mean(np.exp(coin_log_density(middle, 1, 0))) == pytest.approx(1.0)
    assert np.exp(Beta().log_evidence([1])) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        (lambda: Beta(0, 1), ValueError, "alpha must be positive and finite; got 0"),
        (lambda: Beta(1, np.inf), ValueError, "beta must be positive"),
        (lambda: Beta().update([0, 2]), ValueError, "data must be 0 or 1; got 2"),
        (lambda: Dirichlet((1.0,)), ValueError, "at least 2 numbers"),
        (lambda: Dirichlet((1.0, "b")), TypeError, r"alpha\[1\] must be positive"),
        (lambda: Dirichlet((1.0, -1.0)), ValueError, r"alpha\[1\] must be positive"),
        (lambda: Dirichlet((1, 1)).update([2]), ValueError, "classes 0 ... 1; got 2"),
        (lambda: Dirichlet((1, 1)).observe([1, 2, 3]), ValueError, "2 classes; got 3 counts"),
        (lambda: Gamma(1, 1).update([0.5]), ValueError, "whole numbers >= 0; got 0.5"),
        (lambda: Gamma(1, 1).update([np.nan]), ValueError, "whole numbers >= 0; got nan"),
        (lambda: coin_log_density(0.5, -1, 0), ValueError, "heads must be a whole number >= 0"),
    ],
)
def test_what_makes_no_sense_is_refused(wrong, error, message):
    with pytest.raises(error, match=message):
        wrong()
