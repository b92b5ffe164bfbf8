"""Conjugate priors: every closed form against sums over a grid, and the table as printed caught."""

from fractions import Fraction
from itertools import product
from math import factorial, lgamma

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bbb_studies.mullachery.coin import (
    Beta,
    Dirichlet,
    Gamma,
    coin_log_density,
    log_gamma,
)

SHAPES = st.floats(0.3, 50.0)
TOSSES = st.lists(st.integers(0, 1), max_size=30)
COUNTS = st.lists(st.integers(0, 20), max_size=10)
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
    assert posterior.variance == pytest.approx(np.sum((x - mean) ** 2 * density * width), rel=1e-9)
    ends = posterior.interval(0.8)
    inside = [np.sum((density * width)[x < end]) for end in ends]
    step = (density * width).max()  # the sum over grid points jumps by as much
    assert np.abs(np.subtract(inside, (0.1, 0.9))).max() < step
    assert posterior.log_predictive(1) == pytest.approx(
        np.log(np.sum(np.exp(log_likelihood(prior, [1], x)) * density * width)), abs=1e-11
    )


@pytest.mark.equation("M19")
@pytest.mark.parametrize(
    ("prior", "data"),
    [*CASES, (Dirichlet((1.0, 2.0, 0.5)), [0, 2, 2, 1, 0, 0])],
)
def test_the_evidence_is_the_product_of_the_predictions_one_after_another(prior, data):
    total, so_far = 0.0, prior
    for y in data:
        total += so_far.log_predictive(y)
        so_far = so_far.update(y)
    assert total == pytest.approx(prior.log_evidence(data), abs=1e-11)
    assert np.allclose(so_far.mean, prior.update(data).mean, rtol=1e-13)


@pytest.mark.equation("M19")
@given(SHAPES, SHAPES, TOSSES, TOSSES)
def test_updating_in_parts_is_updating_at_once_in_any_order(alpha, beta, first, second):
    prior = Beta(alpha, beta)
    at_once = prior.update(first + second)
    in_parts = prior.update(second).update(first)
    assert np.allclose([at_once.alpha, at_once.beta], [in_parts.alpha, in_parts.beta], rtol=1e-13)
    assert at_once == prior.observe(sum(first + second), len(first + second) - sum(first + second))


@pytest.mark.equation("M19")
@given(SHAPES, SHAPES, COUNTS)
def test_the_posterior_mean_of_a_rate_lies_between_prior_and_data(shape, rate, data):
    prior = Gamma(shape, rate)
    posterior = prior.update(data)
    if data:
        share = rate / (rate + len(data))
        assert posterior.mean == pytest.approx(share * prior.mean + (1 - share) * np.mean(data))
    else:
        assert posterior == prior


@pytest.mark.equation("M19")
def test_probabilities_of_all_sequences_sum_to_one():
    prior, classes = Dirichlet((0.7, 2.0, 1.3)), range(3)
    sequences = [list(one) for one in product(classes, repeat=5)]
    assert sum(np.exp(prior.log_evidence(one)) for one in sequences) == pytest.approx(1, abs=1e-12)
    assert np.exp(Gamma(2.5, 0.6).log_predictive(np.arange(400))).sum() == pytest.approx(1)
    assert np.exp(Beta(2, 3).log_predictive([[0], [1]])).sum() == pytest.approx(1, abs=1e-15)


@pytest.mark.equation("M19")
def test_two_classes_are_a_coin():
    coin, classes = Beta(1.5, 4.0), Dirichlet((4.0, 1.5))
    tosses = [1, 0, 0, 1, 1]
    assert classes.log_evidence(tosses) == pytest.approx(coin.log_evidence(tosses), abs=1e-13)
    after, other = coin.update(tosses), classes.update(tosses)
    assert (other.mean[1], other.variance[1]) == pytest.approx((after.mean, after.variance))
    assert other.interval(0.9)[1] == pytest.approx(after.interval(0.9), rel=1e-12)
    p = np.linspace(0.1, 0.9, 9)
    both = classes.log_density(np.stack([1 - p, p], axis=-1))
    assert np.allclose(both, coin.log_density(p), atol=1e-12)


@pytest.mark.equation("M19")
def test_the_table_as_printed_is_refused_by_the_grid():
    # Beta row: alpha - 1 successes and beta - 1 failures say what the prior is worth, no posterior
    prior, tosses = Beta(2.0, 5.0), [1, 1, 0, 1, 1, 1, 0]
    x, _, density, _ = bayes(prior, tosses)
    corrected = np.exp(prior.update(tosses).log_density(x))
    printed = np.exp(Beta(prior.alpha - 1, prior.beta - 1).log_density(x))
    assert np.abs(corrected - density).max() < 1e-10
    assert np.abs(printed - density).max() > 3.9
    # Dirichlet row: one scalar, alpha + sum of all counts, moves every class alike
    prior = Dirichlet((1.0, 2.0, 3.0))
    counts = np.array([4, 0, 2])
    side = (np.arange(2000) + 0.5) / 2000
    p = np.stack(np.broadcast_arrays(side[:, None], side[None, :]), axis=-1)
    p = np.concatenate([p, 1 - p.sum(axis=-1, keepdims=True)], axis=-1)
    p = p[p[..., 2] > 0]
    joint = np.exp(prior.log_density(p)) * np.prod(p**counts, axis=-1)
    mean = joint @ p / joint.sum()
    right, scalar = prior.observe(counts).mean, Dirichlet(np.add(prior.alpha, counts.sum())).mean
    assert right == pytest.approx([5 / 12, 2 / 12, 5 / 12], abs=1e-15)
    assert np.abs(mean - right).max() < 1e-3
    assert np.abs(mean - scalar).max() > 0.12
    # Gamma row: alpha occurrences in beta intervals is the prior again
    prior, data = Gamma(2.0, 1.0), [3, 1, 4, 2, 4]
    x, width, density, _ = bayes(prior, data)
    assert np.sum(x * density * width) == pytest.approx(prior.update(data).mean, abs=1e-10)
    assert prior.update(data).mean == pytest.approx(8 / 3, abs=1e-15)
    assert abs(np.sum(x * density * width) - prior.mean) > 0.6


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


@pytest.mark.equation("D31")
def test_log_gamma_is_that_of_the_standard_library():
    x = np.array([1e-300, 1e-8, 0.1, 0.5, 1.0, 1.5, 2.0, 3.7, 50.0, 1e6])
    exact = np.array([lgamma(one) for one in x])
    assert np.abs(log_gamma(x) - exact).max() < 1e-9
    assert np.abs(log_gamma(x)[:9] - exact[:9]).max() < 1e-12


@pytest.mark.parametrize(
    ("prior", "expected"),
    [
        (Beta(0.3, 0.7), (7.6005415e-06, 0.97872250)),
        (Beta(3000, 20), (0.99018933, 0.99594890)),
        (Gamma(0.3, 7.0), (4.5509700e-07, 0.27146623)),
        (Gamma(1.0, 1.0), (-np.log(0.975), -np.log(0.025))),
        (Beta(1.0, 1.0), (0.025, 0.975)),
    ],
)
def test_intervals_are_quantiles(prior, expected):
    # where there is no elementary inverse: independent values of the incomplete functions
    ends = prior.interval()
    assert np.abs(ends - expected).max() < 1e-5 * prior.variance**0.5
    assert np.allclose(ends, expected, rtol=1e-5)


def test_densities_at_and_beyond_the_edges():
    assert Beta(1, 1).log_density([0.0, 1.0]) == pytest.approx([0.0, 0.0])
    assert np.array_equal(Beta(2, 2).log_density([-0.1, 0.0, 1.0, 1.1]), [-np.inf] * 4)
    assert Beta(0.5, 2).log_density(0.0) == np.inf
    assert np.array_equal(Gamma(2, 1).log_density([-1.0, 0.0]), [-np.inf] * 2)
    assert Gamma(1, 3).log_density(0.0) == pytest.approx(np.log(3))
    found = np.exp(coin_log_density([0.0, 1.0, 2.0], 1, 0))
    assert found == pytest.approx([0.0, 2.0, 0.0], abs=1e-14)


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        (lambda: Beta(0, 1), ValueError, "alpha must be positive and finite; got 0"),
        (lambda: Beta(1, np.inf), ValueError, "beta must be positive"),
        (lambda: Beta().update([0, 2]), ValueError, "data must be 0 or 1; got 2"),
        (lambda: Beta().interval(1.0), ValueError, "mass must be above 0 and below 1"),
        (lambda: Dirichlet((1.0,)), ValueError, "at least 2 numbers"),
        (lambda: Dirichlet(3), TypeError, "alpha must be a tuple of positive numbers, .*; got 3"),
        (lambda: Dirichlet("ab"), TypeError, "alpha must be a tuple .*; got 'ab'"),
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
