"""The study of bounds: closed forms, estimates, tables and picture."""

import numpy as np
import pytest

from bbb_studies import linear_gaussian as exact
from bbb_studies.ours import evidence_bounds as bounds

RNG = np.random.default_rng


@pytest.fixture(scope="module")
def reproduced(short):
    return short("evidence-bounds").numbers


def test_all_counts_and_distributions_are_written(reproduced):
    assert reproduced["counts"] == list(bounds.BOUND_SAMPLE_COUNTS)
    assert [case["name"] for case in reproduced["cases"]] == [
        "the prior", "reverse-KL mean field", "inclusive-KL mean field", "full rank",
    ]  # fmt: skip


@pytest.mark.equation("D25", "D28")
def test_every_bound_rises_with_the_samples_and_stays_below_its_limit(reproduced):
    for case in reproduced["cases"][:3]:
        for kind, limit in (("IWAE", 0.0), ("Renyi 1/2", case["renyi"]), ("EUBO", case["eubo"])):
            means, errors = np.transpose([list(one.values()) for one in case["bounds"][kind]])
            assert (np.diff(means) >= 0).all()
            assert (means < limit + 4 * errors).all()
            assert abs(means[0] - case["elbo"]) < 4 * errors[0]


@pytest.mark.equation("D28")
def test_at_the_posterior_all_bounds_are_the_log_evidence(reproduced):
    case = reproduced["cases"][3]
    everything = [one["mean"] for kind in bounds.BOUND_NAMES for one in case["bounds"][kind]]
    assert np.abs([case["elbo"], case["eubo"], *everything]).max() < 1e-11


# The closed forms, against what they are closed forms of


@pytest.fixture(scope="module")
def pair():
    """Return two Gaussians over one number on a grid, whose integrals can be done by it."""
    q = exact.Gaussian(np.array([0.4]), np.array([[0.6**2]]))
    p = exact.Gaussian(np.array([-0.2]), np.array([[0.8**2]]))
    w = np.linspace(-12, 12, 40_001)
    logs = [
        -0.5 * (w - g.mean[0]) ** 2 / g.covariance[0, 0]
        - 0.5 * np.log(2 * np.pi * g.covariance[0, 0])
        for g in (q, p)
    ]
    return q, p, w, *logs


@pytest.mark.equation("D25", "D28")
@pytest.mark.parametrize("alpha", [-0.5, 0.0, 0.3, 0.9, 1.0, 1.8])
def test_divergences_are_the_integrals_that_define_them(pair, alpha):
    q, p, w, log_q, log_p = pair
    if alpha == 1.0:
        integral = np.trapezoid(np.exp(log_q) * (log_q - log_p), w)
        assert exact.kl(q, p) == pytest.approx(integral, rel=1e-9)
    else:
        integral = np.log(np.trapezoid(np.exp(alpha * log_q + (1 - alpha) * log_p), w))
        integral /= alpha - 1
    assert exact.renyi_divergence(alpha, q, p) == pytest.approx(integral, rel=1e-9, abs=1e-12)


@pytest.mark.equation("D8")
def test_the_posterior_is_the_normalised_joint_density():
    problem = exact.draw(RNG(0), rows=7, d_in=1)
    truth = exact.exact(problem)
    mean, deviation = truth.posterior.mean, truth.posterior.deviation
    axes = [np.linspace(m - 8 * d, m + 8 * d, 201) for m, d in zip(mean, deviation, strict=True)]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    estimator, theta = bounds.estimator_of(problem, exact.Gaussian(mean, np.diag(deviation**2)))
    terms = exact.log_densities(estimator, theta, (grid - mean) / deviation, problem)
    joint = np.exp(terms.prior + terms.likelihood - truth.log_evidence)
    cell = np.prod([axis[1] - axis[0] for axis in axes])
    assert joint.sum() * cell == pytest.approx(1.0, rel=1e-9)
    assert joint @ grid * cell == pytest.approx(mean, rel=1e-9)
    spread = (grid - mean).T @ ((grid - mean) * joint[:, None]) * cell
    assert spread == pytest.approx(truth.posterior.covariance, rel=1e-8)
