"""discrete: classes and counts have probabilities that sum to 1, with the right slopes."""

from math import lgamma, log

import numpy as np
import pytest
from hypothesis import given
from problems import seeds
from scipy import special, stats

from bbb_numpy.parts.discrete import BernoulliLikelihood, CategoricalLikelihood, PoissonLikelihood

BERNOULLI, CATEGORICAL, POISSON = (
    BernoulliLikelihood(),
    CategoricalLikelihood(),
    PoissonLikelihood(),
)
ALL = [BERNOULLI, CATEGORICAL, POISSON]
NAMES = ["Bernoulli", "categorical", "Poisson"]


def case(likelihood, seed, outputs=3):
    rng = np.random.default_rng(seed)
    f = 1.5 * rng.standard_normal((2, 4, outputs))
    return f, likelihood.draw(rng, {}, f)[0], rng.standard_normal(2)


def log_density(likelihood, f, y):
    return likelihood.log_density({}, f, y)[0]


@pytest.mark.equation("D46")
@pytest.mark.parametrize(
    ("likelihood", "law"), [(BERNOULLI, stats.bernoulli(0.3)), (POISSON, stats.poisson(0.3))]
)
def test_the_distribution_function_steps_at_whole_numbers_from_0_on(likelihood, law):
    y = np.array([-1.0, -0.5, 0.0, 0.5, 1.0, 1.5])
    for upper, expected in ((False, law.cdf(y)), (True, law.sf(y))):
        assert likelihood.cdf(special, y, np.full(6, 0.3), upper=upper) == pytest.approx(expected)


# every possible target of one output (for counts: all but 1e-15 of the mass)
OUTCOMES = {
    BERNOULLI: np.arange(2.0)[:, None],
    CATEGORICAL: np.eye(3),
    POISSON: np.arange(200.0)[:, None],
}


@pytest.mark.equation("D13", "D14", "D15", "D31")
@pytest.mark.parametrize("likelihood", ALL, ids=NAMES)
@given(seed=seeds)
def test_the_probabilities_of_all_outcomes_sum_to_one_with_the_stated_moments(likelihood, seed):
    y = OUTCOMES[likelihood]
    outputs = y.shape[1]
    f = np.random.default_rng(seed).standard_normal((1, 1, outputs))
    p = np.exp(log_density(likelihood, np.broadcast_to(f, (1, len(y), outputs)), y))[0]
    mean = p @ y
    assert p.sum() == pytest.approx(1.0, rel=1e-13)
    assert np.allclose(likelihood.mean({}, f.copy())[0, 0], mean, rtol=1e-12)
    assert np.allclose(likelihood.variance({}, f.copy())[0, 0], p @ (y - mean) ** 2, rtol=1e-11)


@pytest.mark.equation("D13", "D14", "D15")
@pytest.mark.parametrize("likelihood", ALL, ids=NAMES)
def test_draws_have_the_stated_moments_and_pass_their_own_check(likelihood):
    f, count = np.array([[[0.4, -1.0, 1.3]]], np.float32), 40_000
    y = likelihood.draw(np.random.default_rng(0), {}, np.repeat(f, count, axis=1))
    assert y.dtype == np.float32
    assert y.shape == (1, count, 3)
    likelihood.check_targets(y[0], np.float32)
    mean, variance = (m({}, f.copy())[0, 0] for m in (likelihood.mean, likelihood.variance))
    assert np.abs((y[0].mean(axis=0) - mean) / np.sqrt(variance / count)).max() < 4


@pytest.mark.equation("D13", "D14")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("likelihood", [BERNOULLI, CATEGORICAL], ids=NAMES[:2])
def test_logits_of_ten_thousand_cost_no_digit(likelihood, dtype):
    f = np.array([[[1e4, -1e4], [-1e4, 1e4]]], dtype)
    y = np.array([[1.0, 0.0], [1.0, 0.0]], dtype)
    value, saved = likelihood.log_density({}, f, y)
    assert value.dtype == dtype
    assert value.tolist() == [[0.0, -2e4]]  # certain and right; certain and wrong
    d_f = likelihood.vjp(saved, np.ones(1, dtype), {})
    assert np.array_equal(d_f, [[[0.0, 0.0], [1.0, -1.0]]])


@pytest.mark.equation("D15", "D31")
@pytest.mark.parametrize("count", [0, 1, 170, 10**6, 2**24])
def test_the_probability_of_a_large_count_at_its_own_rate_is_stirlings(count):
    f = np.array([[[log(max(count, 1))]]])
    exact = count * f.item() - max(count, 1) - lgamma(count + 1)
    value = log_density(POISSON, f, np.array([[float(count)]])).item()
    # three terms of size count log count cancel down to log sqrt(2 pi count)
    assert value == pytest.approx(exact, abs=4e-16 * (1 + count * f.item()) + 1e-15)


@pytest.mark.parametrize("likelihood", [BERNOULLI, CATEGORICAL], ids=NAMES[:2])
def test_what_has_probability_0_is_not_drawn_even_by_a_uniform_number_of_0(likelihood):
    class Zeros:
        def random(self, shape):
            return np.zeros(shape)

    f = np.array([[[-1e4, 0.0]]])
    assert likelihood.mean({}, f.copy())[0, 0, 0] == 0
    assert likelihood.draw(Zeros(), {}, f).tolist() == [[[0.0, 1.0]]]


def test_counts_are_drawn_for_all_rates_that_numpy_knows_and_larger_ones_refused():
    rng = np.random.default_rng(0)
    drawn = POISSON.draw(rng, {}, np.array([[[43.6]]])).item()
    assert drawn == pytest.approx(np.exp(43.6), rel=1e-8)  # within 29 deviations
    with pytest.raises(ValueError, match=r"at most 43\.6 to draw counts; got 43\.61"):
        POISSON.draw(rng, {}, np.array([[[0.0, 43.61]]]))


@pytest.mark.parametrize(
    ("likelihood", "y", "message"),
    [
        (BERNOULLI, [[0.0], [2.0]], "must be 0 or 1; got 2.0 at row 1, column 0"),
        (BERNOULLI, [[0.5]], "must be 0 or 1; got 0.5"),
        (BERNOULLI, [[np.nan]], "must be 0 or 1; got nan"),
        (CATEGORICAL, [[0.0, 1.0], [-1.0, 2.0]], "one-hot rows; got -1.0 at row 1, column 0"),
        (
            CATEGORICAL,
            [[1.0, 0.0], [1.0, 1.0]],
            r"row 1 sums to 2. Encode class labels 0, ..., K - 1 as np.eye\(K\)",
        ),
        (CATEGORICAL, [[0.0, 0.0]], "row 0 sums to 0"),
        (POISSON, [[1.0, -1.0]], "whole numbers >= 0; got -1.0 at row 0, column 1"),
        (POISSON, [[1.5]], "whole numbers >= 0; got 1.5"),
        (POISSON, [[np.nan]], "whole numbers >= 0; got nan"),
        (POISSON, [[np.inf]], "at most 16777216 to be exact in float32"),
        (POISSON, [[2.0**24 + 2]], "at most 16777216 to be exact in float32"),
    ],
)
def test_impossible_targets_are_refused_with_their_place(likelihood, y, message):
    with pytest.raises(ValueError, match=message):
        likelihood.check_targets(np.array(y), np.dtype(np.float32))


def test_the_largest_exact_counts_are_accepted():
    POISSON.check_targets(np.array([[2.0**24]]), np.float32)
    POISSON.check_targets(np.array([[2.0**53]]), np.float64)
    with pytest.raises(ValueError, match="at most 9007199254740992 to be exact in float64"):
        POISSON.check_targets(np.array([[2**53 + 2]]), np.float64)
    POISSON.check_targets(np.array([[2**24]], np.int64), np.float32)


@pytest.mark.parametrize("likelihood", ALL, ids=NAMES)
def test_nothing_is_learned_one_output_a_target_and_other_shapes_are_refused(likelihood):
    assert (likelihood.blocks(3), likelihood.init(3, np.float32).dtype) == ((), np.float32)
    assert likelihood.init(3, np.float32).size == 0
    assert (likelihood.heads(3), likelihood.targets(3)) == (3, 3)
    with pytest.raises(ValueError, match=r"y must have shape .* = \(4, 3\); got \(4, 1\)"):
        likelihood.log_density({}, np.zeros((1, 4, 3)), np.zeros((4, 1)))
