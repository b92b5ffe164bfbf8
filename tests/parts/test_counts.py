"""counts: negative binomial and zero-inflated counts are the laws that scipy has, with slopes."""

from math import exp, lgamma, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import seeds
from scipy import special, stats

from bbb_numpy import check
from bbb_numpy.numeric.elementary import rising_factorial
from bbb_numpy.numeric.layout import Layout
from bbb_numpy.parts.counts import NegativeBinomialLikelihood, ZeroInflatedLikelihood
from bbb_numpy.parts.discrete import PoissonLikelihood

LAWS = {
    "negative binomial": NegativeBinomialLikelihood(0.7),
    "zeros": ZeroInflatedLikelihood(0.3),
    "zeros, negative binomial": ZeroInflatedLikelihood(0.3, 0.7),
}
each_law = pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)


def numbers(law, outputs=1):
    """The learned numbers at their starting values, by block name."""
    return {name: np.full(outputs, value) for name, value in law.initial_values().items()}


def mass(law, counts, f=0.0, params=None):
    """Return the probability of each count (B,) for one output f."""
    y = np.asarray(counts, float)[:, None]
    outputs = np.full((1, len(y), 1), f)
    return np.exp(law.log_density(params or numbers(law), outputs, y)[0][0])


@pytest.mark.equation("D70")
@given(st.integers(0, 10**4), st.floats(-3.0, 8.0))
def test_a_rising_factorial_is_the_difference_of_two_log_gammas(y, log_r):
    r = exp(log_r)
    rising = rising_factorial(np.array(float(y)), np.array(r))
    terms = np.log1p(np.arange(y) / r)
    assert rising.value == pytest.approx(terms.sum(), rel=1e-12, abs=1e-14 * y)
    slope = -np.sum(np.arange(y) / (r + np.arange(y)))
    assert rising.slope == pytest.approx(slope, rel=1e-12, abs=3e-14 * (y + 1))


@pytest.mark.equation("D70")
def test_a_rising_factorial_keeps_its_digits_where_log_gammas_cancel():
    y, r = 1000.0, 1e12
    exact = y * (y - 1) / (2 * r)  # 5e-7, the first term in 1 / r
    assert rising_factorial(np.array(y), np.array(r)).value == pytest.approx(exact, abs=3e-13)
    assert abs(lgamma(y + r) - lgamma(r) - y * log(r) - exact) > 1e-4


@pytest.mark.equation("D70", "D71")
@pytest.mark.parametrize("dispersion", [1e-6, 0.3, 2.0, 50.0])
@pytest.mark.parametrize("zeros", [None, 0.2])
def test_probabilities_are_scipys(dispersion, zeros):
    law = NegativeBinomialLikelihood(dispersion)
    if zeros:
        law = ZeroInflatedLikelihood(zeros, dispersion)
    counts, f = np.array([0, 1, 2, 7, 60, 4000]), 1.3
    reference = stats.nbinom(1 / dispersion, 1 / (1 + dispersion * exp(f)))
    q = zeros or 0.0
    expected = (1 - q) * reference.pmf(counts) + q * (counts == 0)
    assert np.allclose(mass(law, counts, f), expected, rtol=1e-8, atol=1e-300)
    params = numbers(law)
    components = law.components(params, np.full((1, 6, 1), f))
    below = law.cdf(special, counts[:, None], *components)[0, :, 0]
    assert np.allclose(below, q + (1 - q) * reference.cdf(counts), rtol=1e-9)
    above = law.cdf(special, counts[:, None], *components, upper=True)[0, :, 0]
    assert np.allclose(above, (1 - q) * reference.sf(counts), rtol=1e-9)
    steps = law.cdf(special, np.array([[[-0.5]], [[0.7]], [[np.inf]]]), *components)[:, 0, 0]
    assert steps == pytest.approx([0.0, q + (1 - q) * reference.cdf(0), 1.0])
    assert (law.cdf(special, np.full((1, 6, 1), -1.0), *components, upper=True) == 1.0).all()


@pytest.mark.equation("D70", "D71")
@each_law
@given(f=st.floats(-3.0, 2.0))
def test_probabilities_sum_to_one_with_the_stated_moments(law, f):
    counts = np.arange(1500)
    p, params, outputs = mass(law, counts, f), numbers(law), np.full((1, 1, 1), f)
    mean = p @ counts
    assert p.sum() == pytest.approx(1.0, rel=1e-11)
    assert law.mean(params, outputs.copy()).item() == pytest.approx(mean, rel=1e-9)
    variance = p @ (counts - mean) ** 2
    assert law.variance(params, outputs).item() == pytest.approx(variance, rel=1e-7)
    assert law.components(params, outputs)[0].item() == pytest.approx(mean, rel=1e-9)


@pytest.mark.equation("D70", "D71")
@each_law
def test_draws_have_the_stated_moments_and_zeros(law):
    f, size = np.array([[[0.4, -1.0, 1.3]]], np.float32), 40_000
    params = numbers(law, 3)
    y = law.draw(np.random.default_rng(0), params, np.repeat(f, size, axis=1))
    assert (y.dtype, y.shape) == (np.float32, (1, size, 3))
    law.check_targets(y[0], np.float32)
    mean, variance = (m(params, f.copy())[0, 0] for m in (law.mean, law.variance))
    assert np.abs((y[0].mean(axis=0) - mean) / np.sqrt(variance / size)).max() < 4
    assert np.allclose(y[0].var(axis=0), variance, rtol=0.06)
    for k in range(3):
        p = mass(law, [0], f[0, 0, k]).item()
        assert np.mean(y[0, :, k] == 0) == pytest.approx(p, abs=4 * np.sqrt(p / size))


@pytest.mark.equation("D70", "D71")
@each_law
@given(seed=seeds, weighted=st.booleans(), own=st.booleans())
def test_gradients_are_those_of_the_value(law, seed, weighted, own):
    rng = np.random.default_rng(seed)
    samples, rows, outputs = 2, 4, 3
    shape = (samples, outputs) if own else (outputs,)
    layout = Layout((*((name, shape) for name in law.initial_values()),
                     ("f", (samples, rows, outputs))))  # fmt: skip
    y = rng.integers(0, 5, (rows, outputs)) * rng.integers(0, 2, (rows, outputs)) * 1.0
    cotangent = rng.standard_normal(samples)
    weights = rng.random(rows) if weighted else None

    def value_and_grad(theta):
        params = layout.views(theta)
        f = params.pop("f")
        value, saved = law.log_likelihood(params, f, y, weights)
        grad = np.zeros_like(theta)
        d_params = layout.views(grad)
        d_params.pop("f")[...] = law.log_likelihood_vjp(saved, cotangent, d_params)
        return (value * cotangent).sum(), grad

    report = check(value_and_grad, rng.standard_normal(layout.size))
    assert report.passed, report


@pytest.mark.equation("D70", "D71")
def test_the_limits_are_poissons():
    counts = np.arange(30)
    expected = mass(PoissonLikelihood(), counts, 1.0)
    assert np.allclose(mass(NegativeBinomialLikelihood(1e-9), counts, 1.0), expected, rtol=1e-7)
    assert np.allclose(mass(ZeroInflatedLikelihood(1e-6), counts, 1.0), expected, rtol=2e-5)
    law = NegativeBinomialLikelihood(1e-12)
    for y, upper in ((3.0, False), (3.0, True)):
        components = law.components(numbers(law), np.zeros((1, 1, 1)))
        found = law.cdf(special, np.array(y), *components, upper=upper).item()
        poisson = PoissonLikelihood().cdf(special, np.array(y), np.array(1.0), upper=upper)
        assert found == pytest.approx(poisson.item(), rel=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@each_law
def test_extreme_outputs_and_numbers_stay_finite(law, dtype):
    f = np.array([[[-80.0], [80.0], [0.0], [5.0]]], dtype)
    y = np.array([[0.0], [2.0], [1e6], [0.0]], dtype)
    for u in (-20.0, 5.0):
        params = {name: np.array([u], dtype) for name in law.initial_values()}
        value, saved = law.log_density(params, f, y)
        assert value.dtype == dtype
        d_params = {name: np.empty(1, dtype) for name in params}
        d_f = law.vjp(saved, np.ones(1, dtype), d_params)
        assert np.isfinite(value).all()
        assert np.isfinite(d_f).all()
        assert all(np.isfinite(each).all() for each in d_params.values())


def test_a_rate_of_0_has_the_count_0():
    law = NegativeBinomialLikelihood()
    assert law.cdf(special, np.array(0.0), np.array(0.0), np.array(0.5)).item() == 1.0
    far = {"log_dispersion": np.array([12.0])}
    drawn = law.draw(np.random.default_rng(0), far, np.full((1, 100, 1), 3.0))
    assert np.median(drawn) == 0.0


@each_law
def test_laplace_is_refused(law):
    with pytest.raises(TypeError, match="curvature of"):
        law.curvature(numbers(law), np.zeros((1, 1, 1)))


@pytest.mark.parametrize("dispersion", [0.0, -1.0, np.inf, "a"])
def test_wrong_settings_are_refused(dispersion):
    for make in (NegativeBinomialLikelihood, lambda d: ZeroInflatedLikelihood(0.5, d)):
        with pytest.raises((TypeError, ValueError), match="dispersion"):
            make(dispersion)
    for zeros in (0.0, 1.0, -0.1, np.nan):
        with pytest.raises(ValueError, match="zeros"):
            ZeroInflatedLikelihood(zeros)
