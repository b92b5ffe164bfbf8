"""Student's t as prior and as noise: what the tests of all parts do not ask (D41-D43)."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import gradients, log_density, params_of, scales, seeds
from scipy import stats
from scipy.special import gammaln

from bbb_numpy import (
    GaussianLikelihood,
    GaussianPrior,
    StudentTLikelihood,
    StudentTPrior,
)

degrees = st.floats(-2.0, 6.0).map(lambda exponent: 10.0**exponent)


def numbers(scale, df):
    """Learned numbers of two outputs."""
    return {"log_noise": np.log([scale, 2 * scale]), "log_df": np.log([df, 3 * df])}


@pytest.mark.equation("D41", "D42", "D43")
@given(scale=scales, df=degrees, seed=seeds)
def test_both_densities_are_those_of_an_independent_implementation(scale, df, seed):
    w = scale * np.random.default_rng(seed).standard_t(2.0, (3, 4))
    expected = stats.t.logpdf(w, df, scale=scale).sum(axis=1)
    # For each of four numbers it subtracts two log gammas, each rounded to eps of its size
    rounding = 4 * 2 * np.finfo(float).eps * abs(gammaln(0.5 * df))
    close = {"rel": 1e-12, "abs": 1e-12 + rounding}
    assert log_density(StudentTPrior(scale, df), w) == pytest.approx(expected, **close)
    f = np.zeros((1, 3, 4))
    found = StudentTLikelihood(scale, df).log_density({}, f, w)[0][0]
    assert found == pytest.approx(expected, **close)


@pytest.mark.equation("D41")
def test_one_degree_of_freedom_is_cauchy_and_many_are_gaussian():
    w = np.array([[0.3, -5.0, 40.0]])
    cauchy = -np.log(np.pi * (1 + w**2)).sum()
    assert log_density(StudentTPrior(1.0, 1.0), w)[0] == pytest.approx(cauchy, rel=1e-14)
    for part in (log_density, lambda prior, w: gradients(prior, w, np.ones(1))[0]):
        limit = part(GaussianPrior(2.0), w)
        assert part(StudentTPrior(2.0, 9e8), w) == pytest.approx(limit, rel=1e-5)
    f, y = np.zeros((1, 1, 3)), w
    limit = GaussianLikelihood(2.0).log_density({}, f, y)[0]
    assert StudentTLikelihood(2.0, 9e8).log_density({}, f, y)[0] == pytest.approx(limit, rel=1e-5)


@pytest.mark.equation("D42")
@pytest.mark.parametrize("size", [1e10, 1e100, 1e150])
@pytest.mark.parametrize("learn", [False, True])
def test_far_out_the_density_is_a_power_and_nothing_overflows(size, learn):
    prior, w = StudentTPrior(0.5, 3.0, learn), np.array([[size, -size]])
    at = log_density(prior, np.array([[1e8, 1e8]]))
    assert log_density(prior, w) == pytest.approx(at - 8 * np.log(size / 1e8), rel=1e-13)
    d_w, *d_numbers = gradients(prior, w, np.ones(1))
    assert d_w == pytest.approx(-4 / w, rel=1e-13)
    assert np.isfinite(d_numbers).all()


@pytest.mark.equation("D42", "D43")
def test_the_pull_is_largest_at_the_scale_times_the_root_of_nu_and_then_falls():
    distance = np.linspace(0.01, 20.0, 4000)
    pull = -gradients(StudentTPrior(0.7, 5.0), distance[None], np.ones(1))[0][0]
    assert distance[pull.argmax()] == pytest.approx(0.7 * 5**0.5, abs=0.01)
    likelihood = StudentTLikelihood(0.7, 5.0)
    _, saved = likelihood.log_density({}, np.zeros((1, 4000, 1)), distance[:, None])
    d_f = likelihood.vjp(saved, np.ones(1), {})[0, :, 0]
    assert d_f == pytest.approx(pull, rel=1e-13)
    # the share of the Gaussian pull that is left: the precision of this row
    z = distance / 0.7
    assert d_f / (distance / 0.49) == pytest.approx(6 / (5 + z**2), rel=1e-13)


@pytest.mark.equation("D42", "D43")
@pytest.mark.parametrize(
    ("df", "ratio"), [(1.0, np.inf), (2.0, np.inf), (2.5, 5**0.5), (4.0, 2**0.5)]
)
@pytest.mark.parametrize("learn", [False, True])
def test_the_deviation_is_larger_than_the_scale_and_infinite_from_two_degrees_down(
    df, ratio, learn
):
    prior = StudentTPrior(0.5, df, learn)
    assert prior.sd(params_of(prior)) == pytest.approx(0.5 * ratio)
    likelihood, params = StudentTLikelihood(0.5, df, learn), numbers(0.5, df)
    variance = likelihood.variance(params, np.zeros((1, 3, 2)))
    assert variance.ravel()[0] == pytest.approx(0.25 * ratio**2)
    assert likelihood.noise_scale(params, 2)[0] == pytest.approx(0.5)
