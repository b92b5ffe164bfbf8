"""posteriors: how weights are made of noise, the density they have, and both ways to differentiate
it: the report's cancelled form and Wu's split form, which are equal."""

from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import complex_gradient, relative_error, seeds

from bbb_numpy import MLP, MeanField, Model, Reparameterised
from bbb_numpy.numeric.buffers import Buffers
from bbb_numpy.numeric.elementary import LOG_2PI, softplus
from bbb_numpy.numeric.layout import Layout
from bbb_numpy.parts.full_rank import FullRank
from bbb_numpy.parts.posteriors import Entropy, PointMass

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


# The full-rank posterior alone

FULL = BOTH[1]


def factor_of(theta, size):
    """C (P, P), entry by entry from the names of the blocks."""
    blocks = blocks_of(theta, FULL, size)
    factor, at = np.zeros((size, size)), 0
    for row in range(size):
        for column in range(row):
            factor[row, column] = blocks["lower"][at]
            at += 1
        factor[row, row] = np.log1p(np.exp(blocks["rho"][row]))
    return factor


def density_error(posterior, seed=0, size=4):
    """Error of log q against the density of N(mu, C C^T) by dense linear algebra."""
    theta, eps, _, _ = problem(posterior, seed, size)
    sample, covariance = sample_at(posterior, theta, eps), None
    covariance = factor_of(theta, size) @ factor_of(theta, size).T
    centred = sample.w - theta[:size]
    distance = np.einsum("sp,sp->s", centred, np.linalg.solve(covariance, centred.T).T)
    expected = -0.5 * (distance + np.linalg.slogdet(covariance)[1] + size * LOG_2PI)
    return relative_error(posterior.log_density(sample), expected)


def weights_error(posterior, seed=0, size=4):
    """Error of the weights against mu + C eps, one by one."""
    theta, eps, _, _ = problem(posterior, seed, size)
    expected = [theta[:size] + factor_of(theta, size) @ e for e in eps]
    return relative_error(sample_at(posterior, theta, eps).w, expected)


@pytest.mark.equation("M1")
@given(seed=seeds)
def test_the_density_is_that_of_a_gaussian_with_covariance_l_l_transposed(seed):
    assert density_error(FULL, seed) <= 1e-9


@pytest.mark.equation("M1")
@given(seed=seeds)
def test_weights_are_mu_plus_l_eps(seed):
    assert weights_error(FULL, seed) <= 1e-14


@pytest.mark.equation("M1")
def test_drawn_weights_have_the_covariance_l_l_transposed():
    theta, _, _, _ = problem(FULL, 2)
    eps = np.random.default_rng(0).standard_normal((100_000, 4))
    w = sample_at(FULL, theta, eps).w
    covariance = factor_of(theta, 4) @ factor_of(theta, 4).T
    variances = np.diag(covariance)
    error = np.sqrt((np.outer(variances, variances) + covariance**2) / len(w))
    assert np.all(np.abs(np.cov(w.T) - covariance) < 4.5 * error)
    assert np.all(np.abs(w.mean(axis=0) - theta[:4]) < 4.5 * np.sqrt(variances / len(w)))


@pytest.mark.equation("M1", "M2", "M3", "M4", "D19")
@given(seed=seeds)
def test_without_correlations_it_is_the_mean_field(seed):
    theta, eps, d_w, d_log_q = problem(FULL, seed)
    theta[8:] = 0.0
    plain = MeanField()
    full, mean_field = sample_at(FULL, theta, eps), sample_at(plain, theta[:8], eps)
    assert np.allclose(full.w, mean_field.w, rtol=1e-14, atol=1e-14)
    assert np.allclose(FULL.log_density(full), plain.log_density(mean_field), rtol=1e-13)
    both = (
        pull_back(FULL, theta, eps, d_w, d_log_q)[:8],
        pull_back(plain, theta[:8], eps, d_w, d_log_q),
    )
    assert np.allclose(*both, rtol=1e-12, atol=1e-12)
    entropies = [
        posterior.entropy(posterior.factor(blocks_of(t, posterior, 4), Buffers()))
        for posterior, t in ((FULL, theta), (plain, theta[:8]))
    ]
    assert isinstance(entropies[0], Entropy)
    assert np.allclose(*entropies, rtol=1e-13)


@given(seed=seeds)
def test_it_starts_at_any_mean_and_covariance(seed):
    rng = np.random.default_rng(seed)
    root, mean = rng.standard_normal((4, 6)), rng.standard_normal(4)
    theta = FULL.pack(mean, root @ root.T)
    factor = factor_of(theta, 4)
    assert np.array_equal(theta[:4], mean)
    assert np.allclose(factor @ factor.T, root @ root.T, rtol=1e-9, atol=1e-9)


@pytest.mark.equation("M1", "M3")
def test_one_weight_alone_has_a_deviation_and_no_correlation():
    theta = FullRank(0.5, -1.0).init(np.random.default_rng(0), 1, np.float64)
    assert theta.shape == (2,)
    assert FULL.pack(np.array([2.0]), np.array([[9.0]])).shape == (2,)
    assert softplus(FULL.pack(np.array([2.0]), np.array([[9.0]]))[1]) == pytest.approx(3.0)
    for error in (pull_back_error, slope_error, direct_error):
        assert error(FULL, size=1) <= 1e-11
    assert entropy_error(FULL, size=1) <= 1e-12


def test_a_factor_that_would_not_fit_is_refused_with_its_size_before_anything_is_allocated():
    network = MLP((784, 400, 10))
    size = network.layout.size
    with pytest.raises(ValueError, match=r"full-rank posterior of 318,010 weights.*GiB") as caught:
        Reparameterised(Model(network), FullRank())
    assert f"{size * (size + 1) // 2:,} numbers" in str(caught.value)
    assert "Use MeanField, a smaller network" in str(caught.value)
    with pytest.raises(ValueError, match="the limit is 1e-06 GiB"):
        Reparameterised(Model(MLP((3, 5, 1))), FullRank(limit_gib=1e-6))
    Reparameterised(Model(MLP((3, 5, 1))), FullRank())
    needed = 96 * 16**2 / 2**30
    FullRank(limit_gib=needed).check_size(16)
    with pytest.raises(ValueError, match="GiB"):
        FullRank(limit_gib=needed).check_size(17)


@pytest.mark.parametrize(
    "numbers",
    [{"limit_gib": 0.0}, {"unit": 0.0}, {"unit": -1.0}, {"mu_scale": -1.0}, {"rho_halfwidth": -1.0},
     {"rho_offset": 1.1e150}, {"rho_offset": -1.1e150}],
)  # fmt: skip
def test_a_number_out_of_range_is_refused_by_name(numbers):
    with pytest.raises(ValueError, match=f"{next(iter(numbers))} must be"):
        FullRank(**numbers)


@pytest.mark.equation("M1")
def test_weights_of_a_gaussian_without_width_have_no_noise_that_makes_them():
    theta, eps, _, _ = problem(FULL, 0)
    blocks = blocks_of(theta, FULL, 4)
    blocks["rho"][1] = -1e4  # its softplus is 0
    found = FULL.at(blocks, eps, Buffers())
    assert found.eps.shape == eps.shape
    assert np.isnan(found.eps).all()


# --- planted errors: each wrong formula is refused by the check that the right one passes


def test_the_unit_of_the_off_diagonal_changes_the_numbers_and_not_the_gaussian():
    rng = np.random.default_rng(0)
    factor = np.tril(rng.standard_normal((4, 4)), -1) + np.diag([0.5, 1.0, 2.0, 0.1])
    mean, covariance = rng.standard_normal(4), factor @ factor.T
    eps = rng.standard_normal((3, 4))
    found = []
    for unit in (1.0, 0.01):
        q = FullRank(unit=unit)
        views = Layout(q.blocks(4)).views(q.pack(mean, covariance))
        found.append(q.sample(views, eps, Buffers()).w.copy())
    assert np.allclose(found[0], found[1], rtol=1e-12)
