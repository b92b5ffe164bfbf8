"""full_rank: one Gaussian with all correlations; what differs from the mean field stands here, what
both posteriors share in test_posteriors."""

import re
import tracemalloc
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from problems import changed, relative_error, seeds
from sklearn.exceptions import ConvergenceWarning

from bbb_numpy import (
    MLP,
    Adam,
    BayesianMLPRegressor,
    EarlyStopping,
    MeanField,
    Model,
    Reparameterised,
)
from bbb_numpy.gradients import matrix
from bbb_numpy.gradients.closed_form import ClosedFormKL
from bbb_numpy.gradients.reparameterised import StickingTheLanding
from bbb_numpy.numeric.buffers import Buffers
from bbb_numpy.numeric.elementary import LOG_2PI, softplus
from bbb_numpy.numeric.layout import Layout
from bbb_numpy.parts.full_rank import FullRank
from bbb_numpy.parts.posteriors import Entropy
from bbb_numpy.training import Recipe, fit, start
from tests.parts.test_posteriors import (
    BOTH,
    blocks_of,
    direct_error,
    entropy_error,
    problem,
    pull_back,
    pull_back_error,
    sample_at,
    slope_error,
    split_error,
)

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


@pytest.mark.equation("M3")
def test_numbers_above_the_diagonal_are_no_parameters():
    # M3 as printed, sum_s d_w eps^T + (C^-1)^T, is not zero there; theta has no place for them
    theta, eps, d_w, d_log_q = problem(FULL, 5)
    factor, size = factor_of(theta, 4), 4
    printed = d_w.T @ eps - d_log_q.sum() * np.linalg.inv(factor).T
    grad = blocks_of(pull_back(FULL, theta, eps, d_w, d_log_q), FULL, size)
    strict = np.tri(size, k=-1, dtype=bool)
    assert np.abs(printed[strict.T]).max() > 0.1
    assert len(grad["lower"]) == size * (size - 1) // 2
    assert np.allclose(grad["lower"], printed[strict], rtol=1e-12)
    slope = 1 / (1 + np.exp(-theta[size : 2 * size]))
    assert np.allclose(grad["rho"], np.diag(printed) * slope, rtol=1e-12)


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
    for error in (pull_back_error, slope_error, direct_error, split_error):
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


@pytest.mark.parametrize("make", [Reparameterised, StickingTheLanding, ClosedFormKL])
def test_the_memory_that_the_refusal_names_is_what_training_takes(make):
    model, rng = Model(MLP((2, 160, 1))), np.random.default_rng(0)
    size = model.layout.size
    with pytest.raises(ValueError, match="GiB") as caught:
        FullRank(limit_gib=1e-9).check_size(1000 * size)
    gib = float(re.search(r"about ([\d,.]+) GiB", str(caught.value))[1].replace(",", ""))
    named = gib * 2**30 / 1000**2  # quadratic in the number of weights
    estimator = make(model, FullRank())
    tracemalloc.start()
    begin = start(estimator, rng, Adam())
    x, y, stop = np.zeros((8, 2)), np.zeros((8, 1)), EarlyStopping()
    fit(estimator, begin, x, y, Recipe(epochs=2, early_stopping=stop), rng=rng, validation=(x, y))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert 0.95 < peak / named < 1.05


# --- planted errors: each wrong formula is refused by the check that the right one passes


def transposed_weights(self, blocks, eps, buffers):
    found = FullRank.sample(self, blocks, eps, buffers)
    return found._replace(w=blocks["mu"] + eps @ found.parts.lower)


def determinant(power):
    def log_density(self, sample):
        logs = np.add.reduce(sample.parts.diagonal.log_softplus)
        return FullRank.log_density(self, sample) + (1 - power) * logs

    return {"log_density": log_density}


def edit_pull_back(edit):
    def pull_back(self, sample, d_w, d_log_q, d_theta):
        FullRank.pull_back(self, sample, d_w, d_log_q, d_theta)
        edit(sample, d_w, d_log_q, d_theta)

    return {"pull_back": pull_back}


def mean_through_the_factor(sample, d_w, d_log_q, d):
    d["mu"][...] = sample.parts.lower.T @ d_w.sum(axis=0)  # "the Jacobian", which is not needed


def other_triangle(sample, d_w, d_log_q, d):
    full = d_w.T @ sample.eps
    d["lower"][...] = full.T[np.tri(len(full), k=-1, dtype=bool)]


def both_triangles(sample, d_w, d_log_q, d):
    full = d_w.T @ sample.eps
    d["lower"][...] += full.T[np.tri(len(full), k=-1, dtype=bool)]


def diagonal_not_softplus(sample, d_w, d_log_q, d):
    d["rho"] /= sample.parts.diagonal.sigmoid


def no_log_determinant(sample, d_w, d_log_q, d):
    if d_log_q is not None:
        d["rho"] += d_log_q.sum() * sample.parts.diagonal.ratio


def inverse_not_transposed(self, sample, cotangent, d_w):
    d_w -= cotangent[:, None] * np.linalg.solve(sample.parts.lower, sample.eps.T).T


def entropy_with(edit):
    def entropy(self, factor):
        return edit(FullRank.entropy(self, factor), factor)

    return {"entropy": entropy}


WRONG = {
    "M1 C transposed": (weights_error, {"sample": transposed_weights}),
    "M1 without log det C": (density_error, determinant(0)),
    "M1 log det C C^T": (density_error, determinant(2)),
    "M2 through the factor": (pull_back_error, edit_pull_back(mean_through_the_factor)),
    "M3 the other triangle": (pull_back_error, edit_pull_back(other_triangle)),
    "M3 not masked": (pull_back_error, edit_pull_back(both_triangles)),
    "M3 diagonal without the softplus": (pull_back_error, edit_pull_back(diagonal_not_softplus)),
    "M3 without 1 / L_jj": (pull_back_error, edit_pull_back(no_log_determinant)),
    "M4 without the 1 in 1 + log 2 pi": (
        entropy_error,
        entropy_with(lambda e, f: e._replace(value=e.value - 0.5 * len(f.lower))),
    ),
    "M4 with log |det C|^2": (
        entropy_error,
        entropy_with(lambda e, f: e._replace(value=e.value + f.diagonal.log_softplus.sum())),
    ),
    "D19 variances of the diagonal alone": (
        entropy_error,
        entropy_with(lambda e, f: e._replace(total_variance=(f.diagonal.softplus**2).sum())),
    ),
    "W3 C^-1 for C^-T": (slope_error, {"add_density_slope": inverse_not_transposed}),
    "W4 C^-1 for C^-T": (split_error, {"add_density_slope": inverse_not_transposed}),
}  # fmt: skip


@pytest.mark.equation("M1", "M2", "M3", "M4", "D19", "W3", "W4")
@pytest.mark.parametrize("name", WRONG)
def test_a_planted_wrong_formula_is_refused(name):
    error, methods = WRONG[name]
    assert error(FULL) <= 1e-11
    assert error(changed(FULL, **methods)) > 1e-2


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


@pytest.mark.equation("M3")
@pytest.mark.parametrize("estimator_name", ["reparameterised", "closed-form-kl", "self-normalised"])
def test_gradients_in_another_unit_agree_with_the_complex_step(estimator_name):
    objective = "eubo" if estimator_name == "self-normalised" else "elbo"
    which = matrix.Combination("full-rank", "gaussian", "gaussian", estimator_name, objective)
    built = matrix.estimator(which)
    found = matrix.check_case(
        matrix.problem(replace(built, posterior=FullRank(0.3, -0.5, 0.5, unit=0.1)),
                np.random.default_rng(0))
    )  # fmt: skip
    assert found.passed, str(found)


@pytest.mark.equation("M3")
def test_by_name_full_rank_is_not_drowned_by_the_noise_of_its_own_steps():
    # it contains the mean field, so its free energy should not end far above that one's
    rng = np.random.default_rng(0)
    x = rng.standard_normal((200, 3))
    y = np.sin(2 * x[:, 0]) + x[:, 1] + 0.1 * rng.standard_normal(200)
    ends = {}
    for posterior in ("mean-field", "full-rank", FullRank(rho_offset=-4.0)):
        model = BayesianMLPRegressor(inference=posterior, epochs=200, random_state=0)
        drowned = isinstance(posterior, FullRank)  # and the learner says so
        with pytest.warns(ConvergenceWarning, match="collapsed") if drowned else nullcontext():
            model.fit(x, y)
        ends[str(posterior)] = np.mean([epoch.objective for epoch in model.history_[-20:]])
    plain, named, coarse = ends.values()
    assert named < plain + 20.0
    assert coarse > plain + 200.0  # without a small unit
