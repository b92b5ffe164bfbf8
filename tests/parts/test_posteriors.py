"""posteriors: how weights are made of noise, the density they have, and both ways to differentiate
it: the report's cancelled form and Wu's split form, which are equal."""

from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import COMPLEX_STEP, changed, complex_gradient, relative_error, seeds

from bbb_numpy import MeanField
from bbb_numpy.numeric.buffers import Buffers
from bbb_numpy.numeric.elementary import softplus
from bbb_numpy.parts.full_rank import FullRank
from bbb_numpy.parts.posteriors import PointMass

BOTH = [MeanField(0.5, -0.5, 1.0), FullRank(0.5, -0.5, 1.0)]
SIZES = st.integers(1, 5)  # of the weight vector; one weight has no correlation to learn


def blocks_of(theta, posterior, size):
    """Views of a flat theta by the names of its blocks."""
    out, start = {}, 0
    for name, (length,) in posterior.blocks(size):
        out[name] = theta[..., start : start + length]
        start += length
    assert start == theta.shape[-1]
    return out


def problem(posterior, seed, size=4, samples=3):
    """A theta with correlations, noise, and cotangents of the weights and of log q."""
    rng = np.random.default_rng(seed)
    theta = posterior.init(rng, size, np.float64)
    theta[2 * size :] = 0.4 * rng.standard_normal(theta.size - 2 * size)
    eps = rng.standard_normal((samples, posterior.noise_size(size)))
    return theta, eps, rng.standard_normal((samples, size)), rng.standard_normal(samples)


def sample_at(posterior, theta, eps):
    return posterior.sample(blocks_of(theta, posterior, eps.shape[1]), eps, Buffers())


def filled(posterior, theta, size, write):
    """The flat gradient that `write` leaves in the blocks of an array of nan."""
    grad = np.full_like(theta, np.nan)
    write(blocks_of(grad, posterior, size))
    return grad


def pull_back(posterior, theta, eps, d_w, d_log_q):
    sample = sample_at(posterior, theta, eps)
    return filled(
        posterior, theta, eps.shape[1], lambda d: posterior.pull_back(sample, d_w, d_log_q, d)
    )


def split_form(posterior, theta, eps, d_w, d_log_q):
    """W3-W5: through the weights with theta fixed, plus the direct partials with w fixed."""
    sample, through, size = sample_at(posterior, theta, eps), d_w.copy(), eps.shape[1]
    posterior.add_density_slope(sample, d_log_q, through)
    path = pull_back(posterior, theta, eps, through, None)
    direct = filled(
        posterior, theta, size, lambda d: posterior.pull_back_direct(sample, d_log_q, d)
    )
    return path + direct


def pull_back_error(posterior, seed=0, size=4, samples=3):
    """Error of the total derivative of sum d_w w + sum d_log_q log q, by the complex step."""
    theta, eps, d_w, d_log_q = problem(posterior, seed, size, samples)

    def total(theta):
        sample = sample_at(posterior, theta, eps)
        return (d_w * sample.w).sum() + d_log_q @ posterior.log_density(sample)

    return relative_error(
        pull_back(posterior, theta, eps, d_w, d_log_q), complex_gradient(total, theta)
    )


def split_error(posterior, seed=0, size=4, samples=3):
    """Difference of Wu's split form from the cancelled one, which is the total derivative."""
    arguments = problem(posterior, seed, size, samples)
    # two numbers of size 1/sigma cancel in the split form: errors in units of the larger of them
    return relative_error(split_form(posterior, *arguments), pull_back(posterior, *arguments))


def direct_error(posterior, seed=0, size=4, samples=3):
    """Error of the direct partials d log q(w; theta)/d theta, w held fixed, by the complex step."""
    theta, eps, _, d_log_q = problem(posterior, seed, size, samples)
    sample = sample_at(posterior, theta, eps)
    found = filled(posterior, theta, size, lambda d: posterior.pull_back_direct(sample, d_log_q, d))

    def log_q(theta):
        there = posterior.at(blocks_of(theta, posterior, size), sample.w, Buffers())
        return d_log_q @ posterior.log_density(there)

    return relative_error(found, complex_gradient(log_q, theta))


def slope_error(posterior, seed=0, size=4, samples=3):
    """Error of d log q(w; theta)/dw, theta held fixed, by the complex step."""
    theta, eps, d_w, d_log_q = problem(posterior, seed, size, samples)
    sample, found = sample_at(posterior, theta, eps), d_w.copy()
    posterior.add_density_slope(sample, d_log_q, found)

    def log_q(w):
        there = posterior.at(blocks_of(theta, posterior, size), w, Buffers())
        return d_log_q @ posterior.log_density(there)

    return relative_error(found - d_w, complex_gradient(log_q, sample.w))


def entropy_error(posterior, seed=0, size=4):
    """Error of the entropy, and of its gradient and that of the summed variance."""
    theta, _, _, _ = problem(posterior, seed, size)
    blocks = blocks_of(theta, posterior, size)
    value = posterior.entropy(posterior.factor(blocks, Buffers())).value
    # -log q is the entropy itself where |eps|^2 has its mean, P: at eps = (1, ..., 1)
    ones = posterior.log_density(posterior.sample(blocks, np.ones((1, size)), Buffers()))
    grad = np.zeros_like(theta)
    parts = posterior.factor(blocks, Buffers())
    posterior.add_entropy_vjp(parts, 0.7, -0.4, blocks_of(grad, posterior, size))

    def both(theta):
        found = posterior.entropy(posterior.factor(blocks_of(theta, posterior, size), Buffers()))
        return 0.7 * found.value - 0.4 * found.total_variance

    gradient = relative_error(grad, complex_gradient(both, theta))
    return max(relative_error(value, -ones[0]), gradient)


def draw(seed, size=7, samples=3):
    rng = np.random.default_rng(seed)
    mu, rho = rng.standard_normal(size), rng.uniform(-6, 3, size)
    return {"mu": mu, "rho": rho}, rng.standard_normal((samples, size))


@pytest.mark.equation("K1")
@pytest.mark.parametrize("posterior", BOTH, ids=str)
def test_noise_is_one_number_per_weight_and_a_point_needs_none(posterior):
    assert posterior.noise_size(500) == 500
    assert PointMass().noise_size(500) == 0


@pytest.mark.parametrize("posterior", BOTH, ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_start_has_the_dtype_that_was_asked_for(posterior, dtype):
    assert posterior.init(np.random.default_rng(0), 3, dtype).dtype == dtype


@pytest.mark.equation("K4")
@given(seed=seeds)
def test_a_weight_is_mu_plus_softplus_rho_times_noise(seed):
    blocks, eps = draw(seed)
    sample = MeanField().sample(blocks, eps, Buffers())
    assert np.allclose((sample.w - blocks["mu"]) / eps, softplus(blocks["rho"]), rtol=1e-9)
    at_zero = MeanField().sample(blocks, np.zeros_like(eps), Buffers())
    assert np.array_equal(at_zero.w, np.broadcast_to(blocks["mu"], eps.shape))


@pytest.mark.equation("K6", "K7", "K8", "K9", "K10")
@given(seed=seeds)
def test_log_density_is_that_of_independent_normals_at_the_weights(seed):
    # K10 writes it with eps; here w itself is put into the normal density of K6
    blocks, eps = draw(seed)
    sample = MeanField().sample(blocks, eps, Buffers())
    sigma = softplus(blocks["rho"])
    expected = [
        sum(
            np.log(NormalDist(m, s).pdf(w)) if abs(w - m) < 30 * s else -np.inf
            for m, s, w in zip(blocks["mu"], sigma, row, strict=True)
        )
        for row in sample.w
    ]
    assert np.allclose(MeanField().log_density(sample), expected, rtol=1e-10, atol=1e-10)


@pytest.mark.equation("M1")
@pytest.mark.parametrize("posterior", BOTH, ids=str)
@given(seed=seeds, size=SIZES)
def test_given_weights_have_the_density_that_they_had_when_drawn(posterior, seed, size):
    theta, eps, _, _ = problem(posterior, seed, size)
    sample = sample_at(posterior, theta, eps)
    there = posterior.at(blocks_of(theta, posterior, size), sample.w, Buffers())
    assert np.allclose(there.eps, eps, rtol=1e-9, atol=1e-9)
    assert np.allclose(posterior.log_density(there), posterior.log_density(sample), rtol=1e-9)


@pytest.mark.parametrize("posterior", BOTH, ids=str)
@given(seed=seeds)
def test_with_the_noise_fixed_log_q_does_not_depend_on_mu(posterior, seed):
    theta, eps, _, _ = problem(posterior, seed)
    moved = theta + 3.0 * (np.arange(theta.size) < eps.shape[1])
    here = posterior.log_density(sample_at(posterior, theta, eps))
    assert np.array_equal(here, posterior.log_density(sample_at(posterior, moved, eps)))


@pytest.mark.equation("K10", "D18", "M4", "D19")
@pytest.mark.parametrize("posterior", BOTH, ids=str)
def test_the_mean_of_log_q_is_minus_the_entropy(posterior):
    theta, _, _, _ = problem(posterior, 1)
    eps = np.random.default_rng(2).standard_normal((40_000, 4))
    log_q = posterior.log_density(sample_at(posterior, theta, eps))
    entropy = posterior.entropy(posterior.factor(blocks_of(theta, posterior, 4), Buffers()))
    assert abs(log_q.mean() + entropy.value) < 4 * log_q.std() / np.sqrt(len(log_q))


@pytest.mark.equation("D18", "D19", "M4")
@pytest.mark.parametrize("posterior", BOTH, ids=str)
@given(seed=seeds, size=SIZES)
def test_entropy_and_summed_variance_are_exact_and_so_are_their_gradients(posterior, seed, size):
    assert entropy_error(posterior, seed, size) <= 1e-12


@pytest.mark.equation("D18", "D19")
@pytest.mark.parametrize("posterior", BOTH, ids=str)
def test_the_summed_variance_is_that_of_the_weights(posterior):
    theta, _, _, _ = problem(posterior, 3)
    eps = np.random.default_rng(2).standard_normal((40_000, 4))
    centred = sample_at(posterior, theta, eps).w - theta[:4]
    squares = (centred**2).sum(axis=1)
    found = posterior.entropy(posterior.factor(blocks_of(theta, posterior, 4), Buffers()))
    assert abs(squares.mean() - found.total_variance) < 4 * squares.std() / np.sqrt(len(eps))


@pytest.mark.equation("K21", "K30", "M2", "M3")
@pytest.mark.parametrize("posterior", BOTH, ids=str)
@given(seed=seeds, size=SIZES, samples=st.integers(1, 3))
def test_pull_back_is_the_total_derivative(posterior, seed, size, samples):
    assert pull_back_error(posterior, seed, size, samples) <= 1e-12


@pytest.mark.equation("W3", "D20")
@pytest.mark.parametrize("posterior", BOTH, ids=str)
@given(seed=seeds, size=SIZES)
def test_the_density_slope_is_the_derivative_for_the_weights_with_theta_fixed(
    posterior, seed, size
):
    assert slope_error(posterior, seed, size) <= 1e-11


@pytest.mark.equation("W4", "W5", "G8")
@pytest.mark.parametrize("posterior", BOTH, ids=str)
@given(seed=seeds, size=SIZES, samples=st.integers(1, 3))
def test_the_direct_partials_are_the_derivative_for_theta_with_the_weights_fixed(
    posterior, seed, size, samples
):
    assert direct_error(posterior, seed, size, samples) <= 1e-10


@pytest.mark.equation("W3", "W4", "W5", "K21", "K30")
@pytest.mark.parametrize("posterior", BOTH, ids=str)
@given(seed=seeds, size=SIZES)
def test_wus_split_form_is_the_reports_cancelled_form_for_every_single_sample(
    posterior, seed, size
):
    theta, eps, d_w, d_log_q = problem(posterior, seed, size)
    for s in range(len(eps)):
        one = slice(s, s + 1)
        split = split_form(posterior, theta, eps[one], d_w[one], d_log_q[one])
        cancelled = pull_back(posterior, theta, eps[one], d_w[one], d_log_q[one])
        # what cancels is of size |d_log_q| eps^2 / sigma
        sigma = softplus(theta[size : 2 * size]).min()
        size_of_parts = (
            np.abs(d_w[s]).max() + np.abs(d_log_q[s]) * (1 + (eps[s] ** 2).sum()) / sigma
        )
        assert np.abs(split - cancelled).max() <= 1e-13 * size_of_parts * (1 + 1 / sigma)


@pytest.mark.equation("W4", "W5")
def test_wus_partials_by_hand():
    # df/dmu = (w - mu) / sigma^2 = eps / sigma; df/drho = (eps^2 - 1) / sigma s(rho)
    rho, eps = 0.3, 1.7
    sigma = np.log1p(np.exp(rho))
    theta = np.array([0.9, rho])
    sample = sample_at(MeanField(), theta, np.array([[eps]]))
    found = filled(
        MeanField(), theta, 1, lambda d: MeanField().pull_back_direct(sample, np.ones(1), d)
    )
    expected = [eps / sigma, (eps**2 - 1) / sigma / (1 + np.exp(-rho))]
    assert np.allclose(found, expected, rtol=1e-14)
    assert np.isclose(found[0], (sample.w.item() - 0.9) / sigma**2, rtol=1e-14)


@pytest.mark.equation("G8")
@pytest.mark.parametrize("posterior", BOTH, ids=str)
def test_the_score_has_mean_zero(posterior):
    theta, _, _, _ = problem(posterior, 4)
    eps = np.random.default_rng(0).standard_normal((20_000, 4))
    each = []
    for block in np.split(eps, 100):
        sample, weights = sample_at(posterior, theta, block), np.full(len(block), 1 / len(block))
        each.append(
            filled(
                posterior,
                theta,
                4,
                lambda d, s=sample, c=weights: posterior.pull_back_direct(s, c, d),
            )
        )
    mean, error = np.mean(each, axis=0), np.std(each, axis=0, ddof=1) / np.sqrt(len(each))
    assert np.all(np.abs(mean) < 4.5 * error)


@pytest.mark.equation("K3")
@pytest.mark.parametrize("posterior", [MeanField(), FullRank()], ids=str)
def test_the_start_is_that_of_section_7(posterior):
    size = 2_000
    blocks = blocks_of(posterior.init(np.random.default_rng(0), size, np.float64), posterior, size)
    mu, rho = blocks["mu"], blocks["rho"]
    assert abs(mu.var() - 0.01) < 4 * 0.01 * np.sqrt(2 / size)
    assert rho.min() >= -5.01
    assert rho.max() <= -4.99
    # uniform on both sides of its centre
    assert abs(rho.mean() + 5) < 4 * 0.01 / np.sqrt(3 * size)
    assert abs(rho.std() * np.sqrt(3) / 0.01 - 1) < 0.05
    sigma = softplus(rho)
    assert 0.006648 < sigma.min() < sigma.max() < 0.006783
    assert not blocks.get("lower", np.zeros(1)).any()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_packed_mean_field_starts_where_it_was_told(dtype):
    mean, deviation = np.array([1.0, -2.0], dtype), np.array([1e-3, 30.0], dtype)
    theta = MeanField().pack(mean, deviation)
    assert theta.dtype == dtype
    digits = 1e2 * np.finfo(dtype).eps
    assert np.allclose(softplus(theta[2:]), deviation, rtol=digits)
    assert np.array_equal(theta[:2], mean)


def test_a_point_mass_has_the_same_weights_in_every_sample_and_no_noise():
    posterior, mu = PointMass(0.3), np.array([1.0, -2.0, 0.5])
    sample = posterior.sample({"mu": mu}, np.zeros((4, posterior.noise_size(3))), Buffers())
    assert np.array_equal(sample.w, np.broadcast_to(mu, (4, 3)))
    assert posterior.log_density(sample).tolist() == [0.0] * 4
    d_mu, d_w = np.full(3, np.nan), np.random.default_rng(1).standard_normal((4, 3))
    posterior.pull_back(sample, d_w, None, {"mu": d_mu})
    assert np.allclose(d_mu, d_w.sum(axis=0), rtol=1e-15)
    assert np.array_equal(posterior.pack(mu), mu)
    assert posterior.pack(mu) is not mu
    start = posterior.init(np.random.default_rng(0), 20_000, np.float32)
    assert start.dtype == np.float32
    assert abs(start.std() / 0.3 - 1) < 4 / np.sqrt(2 * 20_000)


# --- planted errors: each wrong formula is refused by the check that the right one passes


def edit_pull_back(edit):
    def pull_back(self, sample, d_w, d_log_q, d_theta):
        MeanField.pull_back(self, sample, d_w, d_log_q, d_theta)
        edit(sample, d_w, d_log_q, d_theta)

    return {"pull_back": pull_back}


def edit_direct(edit):
    def pull_back_direct(self, sample, d_log_q, d_theta):
        MeanField.pull_back_direct(self, sample, d_log_q, d_theta)
        edit(sample, d_log_q, d_theta)

    return {"pull_back_direct": pull_back_direct}


def no_direct_mu(sample, d_log_q, d_theta):
    d_theta["mu"][...] = 0.0


def eps_over_sigma_squared(sample, d_log_q, d_theta):
    d_theta["mu"] /= sample.parts.softplus


def without_eps_squared(sample, d_log_q, d_theta):
    d_theta["rho"][...] = -d_log_q.sum() * sample.parts.ratio


def without_minus_one(sample, d_log_q, d_theta):
    d_theta["rho"] += d_log_q.sum() * sample.parts.ratio


def without_softplus_slope(sample, d_log_q, d_theta):
    d_theta["rho"] /= sample.parts.sigmoid


def slope_of_wrong_sign(self, sample, cotangent, d_w):
    d_w += cotangent[:, None] * sample.eps / sample.parts.softplus


def slope_without_sigma(self, sample, cotangent, d_w):
    d_w -= cotangent[:, None] * sample.eps


def wrong_entropy(self, parts):
    found = MeanField.entropy(self, parts)
    return found._replace(value=found.value - 0.5 * len(parts.softplus))


def variance_slope_without_the_two(self, parts, d_entropy, d_variance, d_theta):
    MeanField.add_entropy_vjp(self, parts, d_entropy, 0.5 * d_variance, d_theta)


WRONG = {
    "W4 without the direct partial": (direct_error, edit_direct(no_direct_mu)),
    "W4 eps / sigma^2": (direct_error, edit_direct(eps_over_sigma_squared)),
    "W4 not equal to K21": (split_error, edit_direct(no_direct_mu)),
    "W5 without eps^2": (direct_error, edit_direct(without_eps_squared)),
    "W5 without -1": (direct_error, edit_direct(without_minus_one)),
    "W5 without s(rho)": (split_error, edit_direct(without_softplus_slope)),
    "W3 sign of the slope": (slope_error, {"add_density_slope": slope_of_wrong_sign}),
    "W3 slope without 1 / sigma": (split_error, {"add_density_slope": slope_without_sigma}),
    "K30 with the direct partials counted twice": (
        pull_back_error,
        edit_pull_back(
            lambda sample, d_w, d_log_q, d: d_log_q is not None
            and np.add(d["mu"], d_log_q @ sample.eps / sample.parts.softplus, out=d["mu"])
        ),
    ),
    "D18 entropy without P / 2": (entropy_error, {"entropy": wrong_entropy}),
    "D18 d sigma^2 without the 2": (
        entropy_error, {"add_entropy_vjp": variance_slope_without_the_two},
    ),
}  # fmt: skip


@pytest.mark.equation("W3", "W4", "W5", "K21", "K30", "D18")
@pytest.mark.parametrize("name", WRONG)
def test_a_planted_wrong_formula_is_refused(name):
    error, methods = WRONG[name]
    assert error(BOTH[0]) <= 1e-11
    assert error(changed(BOTH[0], **methods)) > 1e-2


def test_the_complex_step_of_this_file_is_small_enough_to_be_exact():
    assert (1.0 + COMPLEX_STEP) == 1.0


@pytest.mark.parametrize("make", [MeanField, FullRank])
@pytest.mark.parametrize(
    ("name", "value"),
    [("mu_scale", -0.1), ("rho_halfwidth", -1.0), ("mu_scale", np.inf), ("rho_offset", np.nan)],
)
def test_impossible_starts_are_refused_by_name(make, name, value):
    with pytest.raises(ValueError, match=name):
        make(**{name: value})
    if name == "mu_scale":
        with pytest.raises(ValueError, match=name):
            PointMass(value)


def test_a_start_that_is_no_gaussian_is_refused():
    with pytest.raises(ValueError, match="vectors of one length"):
        MeanField().pack(np.zeros(3), np.ones(2))
    with pytest.raises(ValueError, match="symmetric matrix"):
        FullRank().pack(np.zeros(2), np.array([[1.0, 0.5], [0.0, 1.0]]))
    with pytest.raises(ValueError, match="symmetric matrix"):
        FullRank().pack(np.zeros(2), 1e-12 * np.array([[1.0, 0.5], [0.0, 1.0]]))
    with pytest.raises(ValueError, match="deviations must be positive; got 0"):
        MeanField().pack(np.zeros(2), np.array([1.0, 0.0]))
    with pytest.raises(ValueError, match="symmetric matrix"):
        FullRank().pack(np.zeros(2), np.eye(3))


@pytest.mark.parametrize("make", [PointMass, MeanField])
def test_a_width_whose_square_overflows_is_named(make):
    with pytest.raises(ValueError, match=r"mu_scale must be finite and >= 0, and below 1e150; got"):
        make(1e308)
    with pytest.raises(ValueError, match=r"rho_halfwidth must be finite .*; got 1e\+308"):
        MeanField(rho_halfwidth=1e308)


@pytest.mark.parametrize("make", [MeanField, FullRank])
def test_the_middle_of_rho_may_lie_as_far_out_as_the_error_says(make):
    least, largest = -1e150, np.nextafter(1e150, 0.0)
    for possible in (least, largest):
        assert make(rho_offset=possible).rho_offset == possible
    for beyond in (np.nextafter(least, -np.inf), 1e150):
        with pytest.raises(ValueError, match=r"rho_offset must be between -1e150 and 1e150; got"):
            make(rho_offset=beyond)
