"""The study of variances: the measures, and the order of the estimators on small cases."""

from itertools import product

import numpy as np
import pytest

from bbb_numpy import MLP, GaussianLikelihood, GaussianPrior, MeanField, Model, Reparameterised
from bbb_numpy.parts.full_rank import FullRank
from bbb_studies import linear_gaussian as exact
from bbb_studies.ours import estimator_variance as variance

RNG = np.random.default_rng
LINEAR = ("linear, mean field", "linear, full rank")


@pytest.fixture(scope="module")
def reproduced(short):
    return short("estimator-variance").numbers


@pytest.fixture(scope="module")
def places(reproduced):
    """Mean and error by place, estimator and block, relative to the reparameterised."""
    return reproduced["relative to the reparameterised"]


@pytest.fixture(scope="module")
def spots(reproduced):
    """What was measured against the number of samples."""
    found = reproduced["against samples"]
    return {name: [variance.CurvePoint(**spot) for spot in curve] for name, curve in found.items()}


@pytest.mark.equation("D20", "D21", "D23")
def test_the_order_on_the_trained_network(places):
    assert len(places) == 5
    end = places["network, end"]

    def seen(name, block):
        value, error = end[name][block].values()
        return value - 5 * error, value + 5 * error

    assert seen("local reparam.", "scale")[1] < 0.3  # rows no longer share their noise
    assert seen("local reparam.", "location")[1] < 1
    assert seen("Flipout", "location")[1] < 1
    # What is odd in the noise is gone and what is even is paid for twice: the ratio is twice the
    # even part's share of the variance, which is larger in the gradients for rho.
    assert seen("reparameterised ±", "location")[1] < 1
    assert seen("reparameterised ±", "scale")[0] < 2
    (odd, odd_error), (even, even_error) = (
        end["reparameterised ±"][block].values() for block in ("location", "scale")
    )
    assert even - odd > 5 * np.hypot(odd_error, even_error)
    assert (
        places["network, start"]["sticking the landing"]["location"]["mean"] > 50
    )  # eps over a tiny sigma


@pytest.mark.equation("D8", "D18", "D20", "D21", "D22", "D23", "D28")
def test_at_the_mean_field_optimum_every_mean_gradient_is_zero():
    place = variance.linear_cases(0)[0]
    for name, make in variance.ESTIMATORS.items():
        estimator, rng = make(place.model, place.posterior), RNG(1)
        grads = np.array(
            [
                estimator.value_and_grad(place.theta, noise, place.x, place.y).grad
                for noise in (estimator.draw(rng, 2, rows=40) for _ in range(300))
            ]
        )
        error = grads.std(axis=0) / np.sqrt(len(grads))
        assert np.all(np.abs(grads.mean(axis=0)) < 4 * error + 1e-10), name


@pytest.mark.equation("D20")
@pytest.mark.parametrize("family", [MeanField(), FullRank()], ids=["mean field", "full rank"])
@pytest.mark.parametrize("baseline", [False, True])
def test_the_score_function_is_unbiased_by_quadrature(family, baseline):
    """On linear regression the estimates are polynomials in the noise, of degree 4 in each.

    Three nodes of Gauss and Hermite integrate them exactly; the shipped gradient at all 3^4 noises.
    """
    rng = RNG(3)
    model = Model(MLP((1, 1)), GaussianPrior(0.8), GaussianLikelihood(0.6))
    theta = family.init(rng, 2, float) + 0.3 * rng.standard_normal(Reparameterised(
        model, family).layout.size)  # fmt: skip
    x, y = rng.standard_normal((2, 5, 1))
    nodes, shares = np.polynomial.hermite_e.hermegauss(3)

    def mean(estimator):
        total = 0.0
        for index in np.ndindex(3, 3, 3, 3):
            noise = nodes[list(index)].reshape(2, 2)
            share = np.prod(shares[list(index)]) / (2 * np.pi) ** 2
            total = total + share * estimator.value_and_grad(theta, noise, x, y, 0.3).grad
        return total

    wanted = mean(Reparameterised(model, family))
    found = mean(variance.ScoreFunction(model, family, baseline=baseline))
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9 * np.abs(wanted).max())


@pytest.mark.equation("D20", "R3")
def test_at_the_posterior_the_score_function_is_the_evidence_times_the_reports_gradient():
    place = variance.linear_cases(0)[1]
    evidence = exact.exact(exact.Regression(place.model, place.x, place.y)).log_evidence
    noise = RNG(0).standard_normal((3, 3))
    plain, with_baseline, report = (
        make(place.model, place.posterior).value_and_grad(place.theta, noise, place.x, place.y).grad
        for make in map(variance.ESTIMATORS.get, ("score function", "score, baseline",
                                                variance.REFERENCE))
    )  # fmt: skip
    assert np.abs(report).max() > 1
    np.testing.assert_allclose(plain, -evidence * report, rtol=1e-9)
    np.testing.assert_allclose(with_baseline, 0, atol=1e-9)


@pytest.mark.equation("D23")
def test_antithetic_pairs_take_all_noise_from_a_linear_gradient_and_double_a_quadratic_one(places):
    # linear regression: the gradient for mu is linear in eps, that for rho has a quadratic part
    for place, name in product(LINEAR, ("reparameterised ±", "closed-form KL ±")):
        rows = places[place][name]
        assert rows["location"]["mean"] < 1e-20
        assert rows["scale"]["mean"] == pytest.approx(2.0, abs=5 * rows["scale"]["error"])


@pytest.mark.equation("D20", "D28")
def test_sticking_the_landing_is_noiseless_at_the_posterior_alone(places):
    mean_field, full_rank = (places[place]["sticking the landing"] for place in LINEAR)
    assert max(full_rank["location"]["mean"], full_rank["scale"]["mean"]) < 1e-20
    assert mean_field["location"]["mean"] > 0.1


@pytest.mark.equation("D26")
def test_the_doubly_reparameterised_gradient_of_iwae_is_the_less_noisy_with_more_samples(spots):
    plain, doubly = spots["IWAE"], spots["doubly"]
    assert doubly[-1].deviation < 0.1 * plain[-1].deviation
    assert plain[-1].deviation > 10 * plain[0].deviation
    for spot in plain:  # the same mean: its square is at most a few times that of the noise
        assert spot.bias < 4 * spot.error


@pytest.mark.equation("G6", "G8")
def test_the_bias_of_the_eubo_gradient_falls_with_its_samples_and_is_all_of_it_with_one(spots):
    spots = spots["EUBO"]
    assert spots[0].bias == pytest.approx(1.0, abs=4 * spots[0].error)
    assert spots[0].effective == 1.0
    biases = [spot.bias for spot in spots[:4]]
    assert biases == sorted(biases, reverse=True)
    assert spots[-1].bias < 4 * spots[-1].error + 0.02


def test_the_ratio_and_its_error_are_right_on_normal_numbers():
    rng = RNG(0)
    errors, values = [], []
    for _ in range(200):
        own, other = rng.standard_normal((2, 400, 3))
        value, error = variance.ratio(2.0**0.5 * own, other)
        values.append(value)
        errors.append(error)
    assert np.mean(values) == pytest.approx(2.0, abs=0.03)
    assert np.mean(errors) == pytest.approx(np.std(values), rel=0.15)
    same = variance.ratio(own, own)
    assert (same.mean, same.error) == (1.0, pytest.approx(0.0, abs=1e-12))
