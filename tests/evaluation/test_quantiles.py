"""quantiles: they invert the mixture's own distribution function, and sets of classes are least."""

from functools import partial
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, stats

from bbb_numpy import MLP, MeanField, Model, Reparameterised
from bbb_numpy.evaluation import quantiles as module
from bbb_numpy.evaluation.calibration import pit
from bbb_numpy.evaluation.predictive import covariance, mixture, predict, sample_functions
from bbb_numpy.evaluation.quantiles import (
    check_levels,
    distribution_function,
    likely_classes,
    quantiles,
)
from bbb_numpy.parts.discrete import BernoulliLikelihood, PoissonLikelihood
from bbb_numpy.parts.likelihoods import GaussianLikelihood, Likelihood
from bbb_numpy.registry import CHECKED_LIKELIHOODS
from bbb_numpy.sampling.draws import DrawnWeights

LEVELS = (0.001, 0.05, 0.3, 0.5, 0.7, 0.95, 0.999)
REAL = ("gaussian", "gaussian-learned", "student-t", "student-t-learned", "heteroscedastic")


def rng():
    return np.random.default_rng(3)


def model_of(likelihood, targets=2, spread=0.5):
    """Return an estimator with a wide posterior, theta, and rows."""
    net = MLP((2, 3, likelihood.heads(targets)), "tanh")
    built = Reparameterised(Model(net, likelihood=likelihood), MeanField(1.0, spread, 0.1))
    theta = built.init(np.random.default_rng(7))
    return built, theta, np.random.default_rng(8).standard_normal((5, 2))


def drawn(likelihood, heads):
    """Return a posterior of one constant function a draw, with outputs `heads` (T, heads)."""
    heads = np.asarray(heads, float)
    model = Model(MLP((1, heads.shape[1])), likelihood=likelihood)
    weights = np.hstack([np.zeros_like(heads), heads])  # x's weights are 0: the bias is the output
    return DrawnWeights(model), weights, np.zeros((1, 1)), len(heads)


def quantile_of(likelihood, heads, q):
    posterior, theta, x, samples = drawn(likelihood, heads)
    return quantiles(posterior, theta, x, q, rng=rng(), samples=samples)[:, 0]


@pytest.mark.equation("D46")
@pytest.mark.parametrize("name", REAL)
def test_a_quantile_is_the_inverse_of_the_distribution_function(name):
    built, theta, x = model_of(CHECKED_LIKELIHOODS[name])
    levels = np.broadcast_to(np.reshape(LEVELS, (-1, 1, 1)), (len(LEVELS), 5, 2))
    for samples in (3, 40):
        ys = quantiles(built, theta, x, LEVELS, rng=rng(), samples=samples)
        cdf = partial(distribution_function, built, theta, x, samples=samples)
        reached = [cdf(y, rng=rng()) for y in ys]
        np.testing.assert_allclose(reached, levels, rtol=1e-12, atol=1e-14)


@pytest.mark.equation("D35", "D46")
def test_the_distribution_function_of_gaussian_noise_is_the_pit():
    built, theta, x = model_of(CHECKED_LIKELIHOODS["heteroscedastic"])
    y = np.random.default_rng(1).standard_normal((5, 2))
    means, scales = mixture(built, theta, x, rng=rng(), samples=30)
    probabilities = distribution_function(built, theta, x, y, rng=rng(), samples=30)
    assert np.allclose(probabilities, pit(means, scales, y), rtol=1e-13)


EXPONENTS = st.floats(-6.0, 6.0)
PROBABILITIES = st.one_of(st.floats(0.01, 0.99), st.sampled_from([1e-200, 1e-9, 0.5, 1 - 1e-9]))


@pytest.mark.equation("D46")
@given(
    st.integers(0, 99),
    st.sampled_from([1, 2, 3, 10, 40]),
    EXPONENTS,
    st.floats(0, 5),
    PROBABILITIES,
)
def test_mixtures_of_gaussians_have_the_quantiles_that_bracketing_finds(
    seed, components, exponent, spread, q
):
    """Equal, distant, narrow and wide components, up to scales that differ by factors of 1e10."""
    random = np.random.default_rng(seed)
    mean = 10.0**exponent * random.standard_normal((components, 6))
    sd = np.exp(spread * random.standard_normal((components, 6)))
    quick = module._gaussian_quantiles(GaussianLikelihood(), [mean, sd], np.array([q]))[0]
    bracketed = module._smallest(GaussianLikelihood(), [mean, sd], q)
    sign, tail = (-1.0, 1.0 - q) if q > 0.5 else (1.0, q)
    reached = [stats.norm.cdf(sign * (y - mean) / sd).mean(axis=0) for y in (quick, bracketed)]
    # where F is flat all of a plateau is as good, and where it is steep y's rounding is felt
    steepness = (stats.norm.pdf((bracketed - mean) / sd) / sd).mean(axis=0)
    felt = 4e-15 * np.abs(bracketed) * steepness
    error = np.abs(np.subtract(reached, tail))
    assert (error[0] <= error[1] + felt + 1e-12 * tail).all()


def test_usual_mixtures_of_gaussians_need_no_bracketing(monkeypatch):
    """After a rough one, one exact evaluation of F solves most of them, and two far out."""
    random = np.random.default_rng(2)
    mean = 0.2 * random.standard_normal((100, 50))
    sd = np.exp(0.3 * random.standard_normal((100, 50)))
    for q, n_steps in [(0.05, 1), (0.025, 1), (module.MIN_ROUGH_LEVEL, 2)]:
        monkeypatch.setattr(module, "MAX_ROOT_STEPS", n_steps)
        roots = module._gaussian_roots(mean, sd, np.full(50, q))
        assert np.isfinite(roots).sum() >= 40
    monkeypatch.setattr(module, "MAX_ROOT_STEPS", 4)
    monkeypatch.delattr(module, "_smallest")
    levels = np.array([0.05, 0.95])
    roots = module._gaussian_quantiles(GaussianLikelihood(), [mean, sd], levels)
    for root, column_mean, column_sd in zip(roots.T, mean.T, sd.T, strict=True):

        def excess(y, q, loc=column_mean, scale=column_sd):
            return stats.norm.cdf(y, loc, scale).mean() - q

        oracle = [optimize.brentq(excess, -9, 9, (q,), xtol=1e-12) for q in levels]
        np.testing.assert_allclose(root, oracle, rtol=1e-10)


@given(st.floats(-40.0, 40.0))
def test_the_rough_distribution_function_is_right_to_what_it_says(z):
    array = np.array([z])
    rough = module._rough_cdf(array, np.exp(-0.5 * array * array))
    assert abs(rough[0] - stats.norm.cdf(z)) < 7.5e-8
    assert array[0] == z


@pytest.mark.equation("D46")
@pytest.mark.parametrize("q", [0.0, 1e-9, 0.05, 0.3, 0.5, 0.8, 0.95, 1 - 1e-9])
def test_the_quantile_of_counts_is_the_smallest_number_that_reaches_q(q):
    rates = np.array([0.01, 2.0, 3.0, 40.0])
    count = quantile_of(PoissonLikelihood(), np.log(rates)[:, None], [q])[0, 0]
    assert count == int(count) >= 0
    assert stats.poisson.sf(count, rates).mean() <= 1 - q
    assert not count or stats.poisson.cdf(count - 1, rates).mean() < q


@pytest.mark.equation("D46")
def test_the_smallest_number_is_told_from_its_neighbours_far_out_in_both_tails():
    """There only the smaller of F and 1 - F has digits."""
    for rate in np.geomspace(0.5, 300.0, 40):
        for q in (1e-30, 1e-9, 1 - 2.0**-53, 1 - 2.0**-50):
            count = module._smallest_count(PoissonLikelihood(), [np.array([[rate]])], q)[0]
            cdf, sf = stats.poisson(rate).cdf, stats.poisson(rate).sf
            if q < 0.5:
                assert cdf(count) >= q
                assert not count or cdf(count - 1) < q
            else:
                assert sf(count) <= 1 - q < sf(count - 1)


@pytest.mark.equation("D46")
def test_the_quantile_of_zeros_and_ones_is_one_of_them():
    # p = mean of 0.2 and 0.4: F(0) = 0.7
    logits = np.log([[0.2 / 0.8], [0.4 / 0.6]])
    classes = quantile_of(BernoulliLikelihood(), logits, [0.0, 0.69, 0.71, 1.0])
    assert classes.ravel().tolist() == [0, 0, 1, 1]
    # each output by itself
    assert quantile_of(BernoulliLikelihood(), [[-9.0, 9.0]], 0.5).tolist() == [[0, 1]]


def test_quantiles_at_the_ends_and_of_what_is_not_finite():
    noise = GaussianLikelihood(1.0)
    assert quantile_of(noise, [[0.0], [9.0]], [0.0, 1.0]).tolist() == [[-np.inf], [np.inf]]
    assert np.isnan(quantile_of(noise, [[np.inf], [0.0]], [0.3, 0.8])).all()


@pytest.mark.parametrize("name", ["heteroscedastic", "poisson", "student-t-learned"])
def test_blocks_of_rows_and_samples_change_nothing(name, monkeypatch):
    built, theta, x = model_of(CHECKED_LIKELIHOODS[name])
    of_one_block = quantiles(built, theta, x, LEVELS, rng=rng(), samples=40)
    monkeypatch.setattr(module, "BLOCK_PARAMETERS", 170)
    monkeypatch.setattr(module, "GAUSSIAN_BLOCK", 600)
    monkeypatch.setattr("bbb_numpy.evaluation.predictive.BLOCK_NUMBERS", 700)
    of_many_blocks = quantiles(built, theta, x, LEVELS, rng=rng(), samples=40)
    assert np.allclose(of_many_blocks, of_one_block, rtol=1e-12)


class Gumbel(GaussianLikelihood):
    """Skewed noise: F(y) = exp(-exp(-(y - f) / scale)), of which quantiles are known."""

    def cdf(self, special, y, *components, upper=False):
        e = np.exp(-(y - components[0]) / components[1])
        return -np.expm1(-e) if upper else np.exp(-e)


@pytest.mark.equation("D46")
def test_a_new_likelihood_has_quantiles_as_soon_as_it_has_a_distribution_function():
    levels = np.array([1e-9, 0.05, 0.3, 0.5, 0.7, 0.95, 1 - 1e-9])
    for scale in (2.0, 1e100):
        ys = quantile_of(Gumbel(scale), [[3.0]], levels)[:, 0]
        np.testing.assert_allclose(ys, stats.gumbel_r.ppf(levels, 3.0, scale), rtol=1e-9)


def test_a_likelihood_without_a_distribution_function_is_refused_by_name():
    class Mine(GaussianLikelihood):
        cdf = Likelihood.cdf

    with pytest.raises(TypeError, match="distribution function of Mine is not defined"):
        quantile_of(Mine(), [[3.0]], 0.5)


@pytest.mark.parametrize("name", CHECKED_LIKELIHOODS)
def test_what_is_not_known_has_no_quantile(name):
    """Not even one of 0 and 1, of which a comparison with nan would make 0."""
    built, theta, x = model_of(CHECKED_LIKELIHOODS[name])
    theta[0] = np.nan
    ys = quantiles(built, theta, x, LEVELS, rng=rng(), samples=3)
    assert np.isnan(ys).all()
    assert np.isnan(
        distribution_function(built, theta, x, np.ones((5, 2)), rng=rng(), samples=3)
    ).all()


@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan"), [], [[0.5]], [0.2, 2.0]])
def test_levels_are_numbers_between_0_and_1(value):
    assert check_levels("q", [0, 1]).tolist() == [0.0, 1.0]
    with pytest.raises(ValueError, match="q must be a number between 0 and 1"):
        check_levels("q", value)


# Sets of classes


@pytest.mark.equation("D46")
@given(st.lists(st.integers(0, 20), min_size=2, max_size=5), st.floats(0.01, 0.99))
def test_no_smaller_set_of_classes_has_the_coverage(counts, coverage):
    if not sum(counts):
        counts[0] = 1
    proba = np.array(counts) / sum(counts)
    chosen = likely_classes(proba[None], coverage)[0]
    size = chosen.sum()
    assert proba[chosen].sum() >= coverage - 1e-12
    every = range(len(proba))
    best = max(sum(proba[list(subset)]) for subset in combinations(every, size - 1))
    assert best < coverage + 1e-12
    assert proba[chosen].min() >= proba[~chosen].max(initial=0)


@pytest.mark.equation("D46")
def test_sets_of_classes_at_their_ends():
    proba = np.array([[0.5, 0.5, 0.0], [1.0, 1e-30, 0.0], [0.2, 0.3, 0.5]])
    assert likely_classes(proba, 0.0).astype(int).tolist() == [[1, 0, 0], [1, 0, 0], [0, 0, 1]]
    assert likely_classes(proba, 1.0).astype(int).tolist() == [[1, 1, 0], [1, 1, 0], [1, 1, 1]]
    assert likely_classes(proba, 0.5).sum(axis=1).tolist() == [1, 1, 1]
    with pytest.raises(ValueError, match=r"^coverage must be between 0 and 1"):
        likely_classes(proba, 1.5)


# Covariance between rows


@pytest.mark.equation("D4", "D46")
@pytest.mark.parametrize("name", ["gaussian", "heteroscedastic", "poisson"])
def test_the_covariance_is_that_of_the_functions_with_noise_on_the_diagonal(name):
    built, theta, x = model_of(CHECKED_LIKELIHOODS[name])
    cov = covariance(built, theta, x, rng=rng(), samples=50)
    functions = sample_functions(built, theta, x, rng=rng(), samples=50)
    total = predict(built, theta, x, rng=rng(), samples=50).total
    for k in range(2):
        expected = np.cov(functions[:, :, k], rowvar=False)
        np.fill_diagonal(expected, total[:, k] ** 2)
        assert np.allclose(cov[:, :, k], expected, rtol=1e-9, atol=1e-12 * expected.max())
        assert np.linalg.eigvalsh(cov[:, :, k]).min() > 0
