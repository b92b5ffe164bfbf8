"""The study of variances: the measures, and the order of the estimators on small cases."""

import json

import numpy as np
import pytest
from tables import check_picture

from bbb_numpy import (
    MLP,
    GaussianLikelihood,
    GaussianPrior,
    MeanField,
    Model,
    Reparameterised,
)
from bbb_numpy.parts.full_rank import FullRank
from bbb_studies import linear_gaussian as exact
from bbb_studies.ours import estimator_variance as models
from bbb_studies.ours import estimator_variance as scores
from bbb_studies.ours import estimator_variance as tables
from bbb_studies.ours.estimates import Estimate
from bbb_studies.ours.estimator_variance import reproduce

RNG = np.random.default_rng
NAMES = list(models.ESTIMATORS)


@pytest.fixture(scope="module")
def reproduced(tmp_path_factory):
    """A run with fewer gradients: text, folder, numbers."""
    patch = pytest.MonkeyPatch()
    patch.setattr(scores.measure, "__defaults__", (200,))
    patch.setattr(scores.curves, "__defaults__", (400,))
    patch.setattr(scores.on_network, "__defaults__", (20,))
    out = tmp_path_factory.mktemp("variance") / "new"
    text = reproduce(out, 0)
    patch.undo()
    return text, out, json.loads((out / "estimator-variance.json").read_text())


@pytest.fixture(scope="module")
def linear():
    return [scores.measure(place, 0, 1000) for place in models.linear_places(0)]


@pytest.fixture(scope="module")
def spots():
    return scores.curves(0, 1000)


def first_column(text, head):
    """Return the first cells of the table whose head begins so, as far as they are estimators."""
    lines = text[text.index(head) :].splitlines()[2:]
    rows = lines[: lines.index("")]
    return [next(name for name in NAMES if line.startswith(name + "  ")) for line in rows]


def test_it_writes_numbers_and_a_picture(reproduced):
    text, out, numbers = reproduced
    assert max(map(len, text.splitlines())) <= 120
    assert len(numbers["relative to the reparameterised"]) == 5
    check_picture(out / "estimator-variance.png", 1000, 10)


def test_the_tables_are_in_the_order_of_variance_and_of_variance_times_time(reproduced):
    text, _, numbers = reproduced
    end = numbers["relative to the reparameterised"]["network, end"]
    names = first_column(text, "estimator               start, mu")
    assert sorted(names) == sorted(NAMES)
    sizes = [end[name]["location"]["mean"] * end[name]["scale"]["mean"] for name in names]
    assert sizes == sorted(sizes, reverse=True)
    costs = [
        end[name]["cost"]["mean"] for name in first_column(text, "estimator               time")
    ]
    assert costs == sorted(costs)
    assert len(costs) == len(NAMES)


def test_the_claims_are_judged_by_the_numbers():
    def noise(location, scale, bias=1.0):
        return scores.Noise(Estimate(*location), Estimate(*scale), Estimate(1.0, 0.1), 1e-4, bias)

    def found(pair, landing, iwae, doubly, bias, score):
        rows = {
            models.REFERENCE: noise((1.0, 0.0), (1.0, 0.0), 9.0),
            "reparameterised ±": noise((pair, 0.0), (2.3, 0.1), bias),
            "sticking the landing": noise((landing, 0.0), (0.0, 0.0)),
            "score function": noise((1e4, 0.0), (1e4, 0.0)),
            "score, baseline": noise((landing, 0.0), (0.0, 0.0)),
        }
        end = rows | {"score, baseline": noise((score, 0.0), (score, 0.0))}
        places = {"linear, mean field": rows, "network, end": end, "linear, full rank": rows}
        spots = {
            name: [scores.Spot(1, 0.0, 0.0, 1.0, 1.0), scores.Spot(100, 0.0, 0.0, last, 1.0)]
            for name, last in (("IWAE", iwae), ("doubly", doubly))
        }
        study = scores.Study(places, spots, [])
        return [claim.holds for claim in tables.claims_of_the_derivations(study)]

    right = found(0.0, 0.0, 20.0, 1.5, 1.1, 300.0)
    assert right == [True, True, pytest.approx(3.0), True, True, True, True, True]
    wrong = found(0.1, 0.1, 0.5, 1.5, 4.0, 0.9)
    assert wrong == [False, False, pytest.approx(3.0), False, False, False, False, False]


@pytest.mark.equation("D20", "D21", "D23")
def test_the_order_on_the_trained_network(reproduced):
    end = reproduced[2]["relative to the reparameterised"]["network, end"]

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
    start = reproduced[2]["relative to the reparameterised"]["network, start"]
    assert start["sticking the landing"]["location"]["mean"] > 50  # eps / sigma with a tiny sigma


def test_every_estimator_has_the_mean_of_the_reparameterised_one(reproduced):
    for rows in reproduced[2]["relative to the reparameterised"].values():
        for noise in rows.values():
            assert noise["bias"] < 2.5  # standard errors, root mean square over correlated ones


@pytest.mark.equation("D8", "D18", "D20", "D21", "D22", "D23", "D28")
def test_at_the_mean_field_optimum_every_mean_gradient_is_zero():
    place = models.linear_places(0)[0]
    for name, make in models.ESTIMATORS.items():
        estimator, rng = make(place.model, place.posterior), RNG(1)
        grads = np.array(
            [
                estimator.value_and_grad(
                    place.theta, estimator.draw(rng, 2, rows=40), place.x, place.y
                )[1]
                for _ in range(1000)
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
    found = mean(models.ScoreFunction(model, family, baseline=baseline))
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9 * np.abs(wanted).max())


@pytest.mark.equation("D20", "R3")
def test_at_the_posterior_the_score_function_is_the_evidence_times_the_reports_gradient():
    place = models.linear_places(0)[1]
    evidence = exact.exact(exact.Regression(place.model, place.x, place.y)).log_evidence
    noise = RNG(0).standard_normal((3, 3))
    plain, with_baseline, report = (
        make(place.model, place.posterior).value_and_grad(place.theta, noise, place.x, place.y).grad
        for make in map(models.ESTIMATORS.get, ("score function", "score, baseline",
                                                models.REFERENCE))
    )  # fmt: skip
    assert np.abs(report).max() > 1
    np.testing.assert_allclose(plain, -evidence * report, rtol=1e-9)
    np.testing.assert_allclose(with_baseline, 0, atol=1e-9)


@pytest.mark.equation("D20")
def test_every_weight_is_charged_with_the_noise_of_the_whole_cost(reproduced):
    end = reproduced[2]["relative to the reparameterised"]["network, end"]
    plain, baseline = (
        end[name]["location"]["mean"] for name in ("score function", "score, baseline")
    )
    assert plain > 10 * baseline > 1000


@pytest.mark.equation("D23")
def test_antithetic_pairs_take_all_noise_from_a_linear_gradient_and_double_a_quadratic_one(linear):
    # linear regression: the gradient for mu is linear in eps, that for rho has a quadratic part
    mean_field, full_rank = linear
    for rows in (mean_field, full_rank):
        for name in ("reparameterised ±", "closed-form KL ±"):
            assert rows[name].location.mean < 1e-20
            assert rows[name].scale.mean == pytest.approx(2.0, abs=5 * rows[name].scale.error)


@pytest.mark.equation("D20", "D28")
def test_sticking_the_landing_is_noiseless_at_the_posterior_alone(linear):
    mean_field, full_rank = linear
    assert max(full_rank["sticking the landing"].location.mean,
               full_rank["sticking the landing"].scale.mean) < 1e-20  # fmt: skip
    assert mean_field["sticking the landing"].location.mean > 0.1


def test_full_rank_has_no_estimator_that_needs_independent_weights(linear):
    assert set(linear[0]) - set(linear[1]) == set(models.ROWWISE)


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
        value, error = scores.ratio(2.0**0.5 * own, other)
        values.append(value)
        errors.append(error)
    assert np.mean(values) == pytest.approx(2.0, abs=0.03)
    assert np.mean(errors) == pytest.approx(np.std(values), rel=0.15)
    same = scores.ratio(own, own)
    assert (same.mean, same.error) == (1.0, pytest.approx(0.0, abs=1e-12))


def test_a_difference_of_means_is_found():
    rng = RNG(0)
    one, other = rng.standard_normal((2, 1000, 50))
    assert scores.difference(one, other) == pytest.approx(1.0, abs=0.4)
    assert scores.difference(one + 0.5, other) > 5
    assert scores.difference(one, one) == 0.0


def test_the_places_are_what_they_say():
    start, half, end = models.network_places(0)
    assert start.model.network.sizes == (13, 50, 1)
    assert (len(start.x), start.kl_weight) == (32, 32 / 256)
    moved = [np.abs(b.theta - a.theta).mean() for a, b in ((start, half), (half, end))]
    assert moved[0] > moved[1] > 0
    mean_field, full_rank = models.linear_places(0)
    assert isinstance(mean_field.posterior, MeanField)
    assert isinstance(full_rank.posterior, FullRank)
    problem = exact.Regression(full_rank.model, full_rank.x, full_rank.y)
    truth = exact.exact(problem)
    estimator = Reparameterised(full_rank.model, full_rank.posterior)
    assert exact.gaussian(estimator, full_rank.theta).covariance == pytest.approx(
        truth.posterior.covariance
    )
