"""Wu's quartic, and the exact ends of the family that it compares: MLE (W1) and MAP (W2)."""

import json
import re
from dataclasses import replace
from math import log, pi, sqrt

import numpy as np
import pytest
from PIL import Image
from problems import linear_problem

from bbb_numpy.evaluation.predictive import Predictive
from bbb_numpy.gradients.reparameterised import Reparameterised, StickingTheLanding
from bbb_numpy.model.joint import Model
from bbb_numpy.model.objectives import MAP
from bbb_numpy.parts.likelihoods import GaussianLikelihood
from bbb_numpy.parts.network import MLP
from bbb_numpy.parts.posteriors import PointMass
from bbb_numpy.parts.priors import GaussianPrior
from bbb_numpy.training import Recipe, fit, start
from bbb_numpy.training.optimizers import Adam, Cosine
from bbb_studies import comparing
from bbb_studies.comparing import (
    METHODS,
    Claim,
    Setup,
    average,
    claims,
    judge,
    table,
    train,
)
from bbb_studies.wu.quartic import (
    DATA,
    MIXTURE,
    NOISE,
    REGIONS,
    SIX,
    TUTORIAL,
    Study,
    claims_of_the_derivations,
    claims_of_the_tutorial,
    quartic,
    quartic_curve,
    reproduce,
    run,
    tutorial,
)

SHORT = Setup(epochs=300, likelihood=GaussianLikelihood(0.25))


# MLE and MAP, exactly.


def gradients(prior, kl_weight, theta, x, y):
    """Return the gradients of MLE and MAP at the same weights."""
    model = Model(MLP((2, 5, 1), "tanh"), GaussianPrior(prior), GaussianLikelihood(0.3))
    found = []
    for name in ("MLE", "MAP"):
        estimator = METHODS[name](model)
        noise = estimator.draw(np.random.default_rng(0), 1)
        found.append(estimator.value_and_grad(theta, noise, x, y, kl_weight)[1].copy())
    return found


@pytest.mark.equation("W1", "W2")
@pytest.mark.parametrize("kl_weight", [1.0, 0.25])
@pytest.mark.parametrize("prior", [0.2, 3.0])
def test_the_gradient_of_map_is_that_of_mle_and_weight_decay(prior, kl_weight):
    rng = np.random.default_rng(1)
    theta, x, y = rng.standard_normal(21), rng.standard_normal((8, 2)), rng.standard_normal((8, 1))
    mle, map_ = gradients(prior, kl_weight, theta, x, y)
    np.testing.assert_allclose(map_ - mle, kl_weight * theta / prior**2, rtol=1e-9, atol=1e-9)
    assert not np.allclose(map_ - mle, -kl_weight * theta / prior**2)  # control: the wrong sign


def closed_form(name, estimator, x, y):
    """Return least squares (W1) or ridge regression (W2) for [W; b]."""
    noise, prior = estimator.model.likelihood.scale, estimator.model.prior.scale
    design = np.hstack([x, np.ones((len(x), 1))])
    ridge = {"MLE": 0.0, "MAP": noise**2 / prior**2}[name] * np.eye(design.shape[1])
    return np.linalg.solve(design.T @ design + ridge, design.T @ y[:, 0])


@pytest.mark.equation("W1", "W2")
@pytest.mark.parametrize("name", ["MLE", "MAP"])
def test_the_optimum_on_linear_regression_is_least_squares_or_ridge(name):
    given, x, y = linear_problem(rows=20, noise=0.5, prior=0.4)
    estimator = METHODS[name](given.model)
    wanted = closed_form(name, given, x, y)
    other = closed_form({"MLE": "MAP", "MAP": "MLE"}[name], given, x, y)
    noise = estimator.draw(np.random.default_rng(0), 1)

    def slope(w):
        return np.abs(estimator.value_and_grad(w, noise, x, y)[1]).max()

    assert slope(wanted) < 1e-11
    assert slope(other) > 0.1  # control
    optimizer = Adam(0.05, schedule=Cosine())
    rng = np.random.default_rng(2)
    trained = fit(
        estimator,
        start(estimator, rng, optimizer),
        x,
        y,
        Recipe(optimizer=optimizer, epochs=1500, batch_size=20),
        rng=rng,
    )
    np.testing.assert_allclose(trained.theta, wanted, atol=1e-6)


# The mixture.


def two_members():
    data = quartic(np.random.default_rng(3), 30, DATA)
    return data, train(METHODS["VI"], replace(SHORT, epochs=20), *data[:2], seed=0, members=2)


def test_a_mixture_has_the_moments_and_the_density_of_its_members():
    data, mixture = two_members()
    x = np.linspace(-2, 2, 7)[:, None]
    functions = mixture.functions(x, 100)  # (200, 7, 1), the same weights as predict's
    found = mixture.predict(x, 100)
    np.testing.assert_allclose(found.mean, functions.mean(axis=0), rtol=1e-12)
    parts = np.split(functions, 2)
    within = np.mean([part.var(axis=0, ddof=1) for part in parts], axis=0)
    between = np.var([part.mean(axis=0) for part in parts], axis=0, ddof=1)
    np.testing.assert_allclose(found.epistemic**2, within + between, rtol=1e-10)
    noise = 0.25 * float(data.y.std())
    np.testing.assert_allclose(found.aleatoric, noise, rtol=1e-12)
    y = data.truth(x)
    near = np.abs(x[:, 0]) < 1.5  # further out the densities underflow, their logarithms do not
    density = np.mean(np.exp(-0.5 * ((y - functions) / noise) ** 2), axis=0) / sqrt(2 * pi) / noise
    logs = mixture.log_density(x, y, 100)
    np.testing.assert_allclose(np.exp(logs), density[:, 0], rtol=1e-9, atol=1e-300)
    assert near.sum() >= 3
    assert np.all(density[near] > 0)
    assert np.isfinite(logs).all()


def test_the_density_of_a_point_is_gaussian_in_the_units_of_y():
    data = quartic(np.random.default_rng(4), 30, DATA)
    point = train(METHODS["MAP"], replace(SHORT, epochs=5), *data[:2], seed=0)
    found = point.predict(data.x)
    assert not found.epistemic.any()
    residual = (data.y - found.mean) / found.total
    wanted = -0.5 * residual**2 - np.log(found.total) - 0.5 * log(2 * pi)
    np.testing.assert_allclose(point.log_density(data.x, data.y), wanted[:, 0], rtol=1e-10)
    scores = judge(point, data.x, data.y, data.truth(data.x))
    assert scores["log density"] == pytest.approx(wanted.mean())
    assert scores["coverage"] == pytest.approx(np.mean(np.abs(residual) < 1.96))
    assert scores["rmse"] == pytest.approx(sqrt(np.mean((found.mean - data.truth(data.x)) ** 2)))


def test_shifting_and_scaling_the_data_moves_the_prediction_with_them():
    """Training is in standard units, so in other units of y the same fit comes out."""
    data = quartic(np.random.default_rng(5), 30, DATA)
    setup = replace(SHORT, epochs=10)
    one = train(METHODS["VI"], setup, data.x, data.y, seed=1).predict(data.x)
    x = 3 * data.x - 7
    two = train(METHODS["VI"], setup, x, 10 * data.y + 4, seed=1).predict(x)
    np.testing.assert_allclose(two.mean, 10 * one.mean + 4, rtol=1e-6)
    np.testing.assert_allclose(two.total, 10 * one.total, rtol=1e-6)


# The tutorial behind it.


def test_the_tutorial_has_its_rows_network_noise_prior_and_steps():
    fitted = tutorial(0, replace(TUTORIAL, epochs=1))
    np.testing.assert_allclose(quartic_curve(SIX)[:, 0], [-3, 0.2224, 3, 3, 0.2224, -3])
    model = fitted.estimator.model
    assert (model.network.sizes, model.network.activation) == ((1, 32, 1), "sigmoid")
    assert (model.prior.scale, model.likelihood.scale) == (10.0, 0.1)
    # one step of plain Adam from 0, in its own units: all parameters have moved by 0.1
    assert (TUTORIAL.epochs, TUTORIAL.schedule(1999, 2000)) == (2000, 1.0)
    np.testing.assert_allclose(np.abs(fitted.thetas[0]), 0.1, rtol=1e-4)
    assert np.ravel([fitted.x_scale, fitted.y_scale]).tolist() == [0.0, 1.0, 0.0, 1.0]


def test_what_the_tutorial_says_is_judged_by_its_fits():
    class Made:
        """A fit whose moments and loss are given."""

        seed, thetas = 3, (np.zeros(1),)

        def __init__(self, loss, far):
            self.estimator, self.loss, self.far = self, loss, far

        def predict(self, x, samples):
            sd = np.where(np.abs(x) > 50, self.far, np.where(np.abs(x) > 4, 1.0, 0.3))
            return Predictive(np.full_like(x, 3.0), sd, np.full_like(x, 0.1))

        def draw(self, rng, samples):
            return None

        def value_and_grad(self, theta, noise, x, y):
            return Made(self.loss, self.far)

        @property
        def value(self):
            return self.loss

    found, off = claims_of_the_tutorial([Made(250.0, 1.5), Made(300.0, 1.5)])
    assert [claim.holds for claim in found] == [True, True, True]
    assert off == pytest.approx(2.0 / 0.3)  # the mean is 3 at 0, the curve 1
    assert [claim.here for claim in found] == [
        "250 ... 300", "sd 1.00 at +-5, 0.30 at the rows", "sd 1.50 at +-100",
    ]  # fmt: skip
    for losses in ((300.0, 320.0), (250.0, 270.0)):
        found, _ = claims_of_the_tutorial([Made(loss, 0.5) for loss in losses])
        assert [claim.holds for claim in found] == [False, True, False]


@pytest.mark.equation("D20")
@pytest.mark.parametrize(("rho", "noisier"), [(-3.0, True), (-0.3, False)])
def test_a_mean_frozen_in_log_q_is_right_on_average_and_noisier_where_sigma_is_small(rho, noisier):
    """Simulated, 1-2-1 sigmoid: mean and variance of d_mu with and without the score of mu."""
    rng, size, draws = np.random.default_rng(8), 7, 2000
    model = Model(MLP((1, 2, 1), "sigmoid"), GaussianPrior(2.0), GaussianLikelihood(1.5))
    full, frozen = Reparameterised(model), StickingTheLanding(model)  # the same for mu
    mu, sigma, y = rng.standard_normal(size), np.log1p(np.exp(rho)), quartic_curve(SIX)
    theta = np.concatenate([mu, np.full(size, rho)])
    noise = [full.draw(rng, 1) for _ in range(draws)]
    d, path = (
        np.array([one.value_and_grad(theta, eps, SIX, y).grad[:size].copy() for eps in noise])
        for one in (full, frozen)
    )
    gap = path - d
    assert np.all(np.abs(gap.mean(axis=0)) < 4 * gap.std(axis=0) / sqrt(draws))
    # E of the second derivatives: differences of the slope of -log P(w, D) at other draws of w
    point, step = Reparameterised(model, PointMass(0.3), MAP()), 1e-4
    second = np.zeros((150, size))
    for row in second:
        w = mu + sigma * rng.standard_normal(size)
        for j in range(size):
            up, down = (
                point.value_and_grad(w + sign * step * np.eye(size)[j], noise[0][:, :0], SIX, y)
                .grad[j]
                .copy()
                for sign in (1, -1)
            )
            row[j] = (up - down) / (2 * step)
    gain = 1 / sigma**2 - 2 * second.mean(axis=0)
    scattered = (path - path.mean(axis=0)) ** 2 - (d - d.mean(axis=0)) ** 2
    errors = np.hypot(scattered.std(axis=0) / sqrt(draws), 2 * second.std(axis=0) / sqrt(150))
    assert np.all(np.abs(scattered.mean(axis=0) - gain) < 4 * errors)
    last = slice(None) if noisier else slice(-1, None)  # the output's bias: its sigma is too wide
    assert np.all((gain[last] > 0) == noisier)
    assert np.all(np.abs(gain[last]) > 4 * errors[last])  # and the simulation says so too


# The experiment.


def test_the_curve_and_the_data_are_those_of_the_slides():
    x = np.array([0.0, 1.0, -1.0, sqrt(1.5), 2.0])
    np.testing.assert_allclose(quartic_curve(x), [1.0, 3.0, 3.0, 3.25, -3.0], atol=1e-12)
    data = quartic(np.random.default_rng(6), 5000, DATA)
    left = (data.x >= -1.5) & (data.x <= -0.6)
    assert np.all(left | ((data.x >= 0.2) & (data.x <= 1.5)))
    assert left.mean() == pytest.approx(0.9 / 2.2, abs=4 * sqrt(0.25 / 5000))
    noise = data.y - data.truth(data.x)
    assert noise.std() == pytest.approx(NOISE, abs=4 * NOISE / sqrt(2 * 5000))


def test_standard_errors_are_those_of_the_mean():
    found = average([{"a": 1.0}, {"a": 2.0}, {"a": 6.0}])["a"]
    assert found == pytest.approx((3.0, sqrt(7.0 / 3.0)))
    assert average([{"a": 2.0}])["a"] == (2.0, 0.0)


def test_a_table_has_aligned_columns():
    lines = table(["name", "b"], [["x", "1.00"], ["long name", "2"]]).split("\n")
    assert lines == ["name          b", "---------------", "x          1.00", "long name     2"]


def test_a_claim_holds_or_not_or_is_off_by_standard_errors():
    rows = [
        Claim("a", "1", "1", True),
        Claim("b", "2", "1", np.bool_(False)),
        Claim("c", "", "", 0.0),
    ]
    *_, yes, no, off = claims("Caption.", "the slides", rows).split("\n")
    assert [line.split(maxsplit=3)[-1] for line in (yes, no)] == ["yes", "no"]
    assert off.endswith("0.0 s.e. off")


@pytest.fixture(scope="module")
def scores():
    """Means over three data sets, of method, region, and number."""
    runs = [run(seed, replace(SHORT, epochs=1000))[2] for seed in range(3)]
    return {
        method: {
            region: {k: v[0] for k, v in average([r[method][region] for r in runs]).items()}
            for region in REGIONS
        }
        for method in (*METHODS, MIXTURE)
    }


def test_vi_covers_new_data_where_data_were_and_a_point_does_so_less(scores):
    vi, *points = (scores[m]["data"]["coverage"] for m in ("VI", "MLE", "MAP"))
    assert vi > max(points)
    assert abs(vi - 0.95) < 0.5 * min(abs(point - 0.95) for point in points)


def test_only_a_posterior_or_several_starts_have_an_epistemic_deviation(scores):
    for region in REGIONS:
        assert scores["MLE"][region]["epistemic"] == scores["MAP"][region]["epistemic"] == 0.0
        assert min(scores[m][region]["epistemic"] for m in ("VI", MIXTURE)) > 0.0


def test_several_starts_see_the_missing_data_better_than_the_mean_field(scores):
    for region in ("gap", "outside"):
        one, several = (
            scores[m][region]["epistemic"] / scores[m]["data"]["epistemic"] for m in ("VI", MIXTURE)
        )
        assert several > 1.3 * one


def test_no_method_foresees_the_quartic_outside(scores):
    for method in scores:
        assert scores[method]["outside"]["rmse"] > 5 * scores[method]["data"]["rmse"]
        assert scores[method]["outside"]["coverage"] < 0.5


def test_everything_is_written_and_every_number_in_the_table_was_computed(tmp_path):
    printed = reproduce(tmp_path, seed=2, repeats=2, setup=replace(SHORT, epochs=3))
    numbers = json.loads((tmp_path / "numbers.json").read_text())
    stored = numbers["mean and standard error"]
    for said in numbers["tutorial"]:
        assert re.search(rf"{re.escape(said['said'])} .*{re.escape(said['here'])}", printed)
    for method in (*METHODS, MIXTURE):
        for region in REGIONS:
            cells = [f"{m:.3f} ({e:.3f})" for m, e in stored[method][region].values()]
            row = r"\s+".join(map(re.escape, [f"{region}, {method}", *cells]))
            assert re.search(row, printed)
    for name in ("fit.png", "tutorial.png"):
        with Image.open(tmp_path / name) as picture:
            assert min(picture.size) >= 400
    assert "2 data sets" in printed


@pytest.mark.parametrize(
    ("epistemic", "coverage", "holds"),
    [(2.0, 0.49, [True, True]), (1.0, 0.49, [False, True]), (2.0, 0.51, [True, False])],
)
def test_the_claims_are_judged_by_the_numbers(epistemic, coverage, holds):
    scores = {
        method: {
            region: {"epistemic": (wide if region != "data" else 1.0, 0.0), "coverage": (held, 0.0)}
            for region in REGIONS
        }
        for method, wide, held in (("VI", 1.5, 0.1), (MIXTURE, epistemic, coverage))
    }
    found = claims_of_the_derivations(Study(1, scores, None, {}))
    assert [claim.holds for claim in found] == holds


def test_the_same_seed_gives_the_same_numbers():
    one, two, other = (run(seed, replace(SHORT, epochs=2))[2] for seed in (4, 4, 5))
    assert one == two
    assert one != other


def test_interrupted_training_gives_no_numbers(monkeypatch, interrupted):
    monkeypatch.setattr(comparing, "fit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(0, SHORT)
