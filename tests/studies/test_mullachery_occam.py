"""Occam's razor: evidence of all data sets, exactly; what it spends here it lacks there."""

import json

import numpy as np
import pytest
from tables import cells_of, check_picture

from bbb_numpy import GaussianPrior, Model
from bbb_numpy.model.log_joint import LogJoint
from bbb_numpy.parts.discrete import BernoulliLikelihood
from bbb_numpy.parts.network import MLP
from bbb_studies import linear_gaussian as closed
from bbb_studies.annealing import evidence
from bbb_studies.mullachery import occam
from bbb_studies.mullachery import occam as scores
from bbb_studies.mullachery.occam import claims_of_the_paper, reproduce

RNG = np.random.default_rng
SMALL = occam.Budget(side=31, draws=3000, chains=10, steps=24, sets=1, checked=2)


@pytest.fixture(scope="module")
def models():
    return occam.label_models(RNG(0), occam.Budget(side=61, draws=40_000))


@pytest.fixture(scope="module")
def reproduced(tmp_path_factory):
    out = tmp_path_factory.mktemp("occam") / "new"
    text = reproduce(out, 0, budget=SMALL)
    return text, out, json.loads((out / "occam.json").read_text())


def test_it_writes_numbers_and_a_picture(reproduced):
    text, out, numbers = reproduced
    assert max(map(len, text.splitlines())) <= 110
    assert len(numbers["regressions"]) == 3
    check_picture(out / "occam.png", 1000, 10)


def test_the_printed_numbers_are_those_of_the_file(reproduced):
    text, _, numbers = reproduced
    found = cells_of(text, "data from      ")
    for one in numbers["regressions"]:
        line, _, large, *_ = found[one["source"]]
        assert line == f"{one['found']['line']['log_evidence']:.1f}"
        assert large.endswith(f"+- {one['found']['large network']['error']:.1f}")
    found = cells_of(text, "data from  ")
    for model, row in numbers["divergences"].items():
        assert found[model] == [f"{value:.3f}" for value in row.values()]


def test_the_claims_are_judged_by_the_numbers(models):
    found = dict.fromkeys(("line", "small network", "large network"), scores.Found(-9.0, 0.1, -9.5))
    won = scores.Measured("line", np.zeros((1, 1)), found | {"line": scores.Found(-5.0, 0.0, -5.0)})
    claims = claims_of_the_paper(models, [won])
    assert all(claim.holds for claim in claims)
    lost = won._replace(source="small network")
    last = claims_of_the_paper(models, [won, lost])[-1]
    assert (last.here, last.holds) == ("1", False)
    flat = models["degree 7"]
    more = flat._replace(probability=1.1 * flat.probability)
    swapped = models | {"line": more, "parabola": flat}
    assert [c.holds for c in claims_of_the_paper(swapped, [won])[:4]] == [False, True, False, False]


@pytest.mark.equation("M20", "M21")
def test_annealing_finds_what_quadrature_and_prior_draws_find(models):
    found = list(scores.check_labels(models, RNG(5), occam.Budget(chains=60, steps=70, checked=2)))
    assert {check.model for check in found} == set(models)
    for check in found:
        assert check.known == np.log(models[check.model].probability[check.labels])
        assert abs(check.off) < 4
        assert abs(check.run.log_evidence - check.known) < 4 * 0.7


@pytest.mark.equation("M21")
def test_every_model_has_probability_one_for_all_data_sets(models):
    for model in models.values():
        assert model.probability.sum() == pytest.approx(1.0, abs=1e-12)
        assert (model.probability > 0).all()
    # of any weights, not only on average over the prior
    network = models["network"]
    w = 30.0 * RNG(1).standard_normal((7, network.model.layout.size))
    total, _ = occam.sum_over_weights(network.model, network.x, w, RNG(2).dirichlet(np.ones(7)))
    assert total.sum() == pytest.approx(1.0, abs=1e-12)


@pytest.mark.equation("M21")
def test_the_probability_of_labels_is_the_weighted_product_over_the_points():
    # of weights that prefer 1 to 0: under the prior flipped labels are as probable
    model, x = Model(MLP((1, 1)), GaussianPrior(), BernoulliLikelihood()), np.array([[-1.0], [2.0]])
    w, shares = np.array([[0.3, 1.0], [-0.8, 0.5]]), np.array([0.25, 0.75])
    one = 1.0 / (1.0 + np.exp(-(w[:, :1] * x.T + w[:, 1:])))  # (S, N)
    each = np.where(occam.all_labels(2)[:, None] == 1, one, 1.0 - one).prod(axis=-1)  # (2^N, S)
    assert occam.sum_over_weights(model, x, w, shares)[0] == pytest.approx(each @ shares)


class Unnormalised(BernoulliLikelihood):
    """Says 0.6 too often: no distribution of labels."""

    def log_density(self, params, f, y):
        rowwise, slope = super().log_density(params, f, y)
        return rowwise + 0.1, slope


@pytest.mark.equation("M20", "M21")
def test_an_unnormalised_likelihood_is_seen_in_the_sum_over_data_sets():
    # by annealing, on the 8 data sets of three points; exact labels below
    x, model = np.array([[-1.0], [0.0], [1.0]]), MLP((1, 1))
    for likelihood, right in ((BernoulliLikelihood(), True), (Unnormalised(), False)):
        runs = [
            evidence(
                LogJoint(
                    Model(model, GaussianPrior(2.0), likelihood), x, y[:, None].astype(float)
                ),
                chains=200, steps=20, seed=seed,
            )
            for seed, y in enumerate(occam.all_labels(3))
        ]  # fmt: skip
        values = np.exp([run.log_evidence for run in runs])
        error = np.sqrt(np.sum((values * [run.error for run in runs]) ** 2))
        assert (abs(values.sum() - 1.0) < 4 * error) == right
        if right:
            w, shares = occam.nodes(2, 61, 2.0)
            exact, _ = occam.sum_over_weights(Model(model, GaussianPrior(2.0), likelihood),
                                              x, w, shares)  # fmt: skip
            errors = np.array([run.error for run in runs])
            assert np.abs(np.log(values / exact) / errors).max() < 4


@pytest.mark.equation("M21")
def test_quadrature_and_prior_draws_agree_on_all_data_sets(models):
    for name in ("line", "parabola", "degree 7"):
        one = models[name]
        w = one.model.prior.draw(RNG(3), {}, (20_000, one.model.layout.size))
        found, error = occam.sum_over_weights(one.model, one.x, w, np.full(len(w), 1 / len(w)))
        z = (found - one.probability) / error
        assert np.abs(z).max() < 5.5  # of 256, rare ones with skewed estimates
    # a prior of another width would be seen
    wrong, _ = occam.sum_over_weights(
        models["line"].model, models["line"].x, *occam.nodes(2, 61, 1.2 * occam.PRIOR)
    )
    w = models["line"].model.prior.draw(RNG(3), {}, (20_000, 2))
    found, error = occam.sum_over_weights(models["line"].model, models["line"].x, w,
                                          np.full(len(w), 1 / len(w)))  # fmt: skip
    assert np.abs((found - wrong) / error).max() > 8
    fine, _ = occam.sum_over_weights(
        models["line"].model, models["line"].x, *occam.nodes(2, 201, occam.PRIOR)
    )
    assert np.abs(models["line"].probability / fine - 1.0).max() < 1e-3


@pytest.mark.equation("M21")
def test_each_model_wins_on_data_of_its_own_complexity(models):
    complexity = occam.changes(occam.LABELS)
    mean = {
        name: np.array([m.probability[complexity == c].mean() for c in range(occam.POINTS)])
        for name, m in models.items()
        if name != "network"
    }
    winner = [max(mean, key=lambda name, c=c: mean[name][c]) for c in range(occam.POINTS)]
    assert winner == ["line"] * 2 + ["parabola"] + ["degree 7"] * 5


@pytest.mark.equation("M21")
def test_no_model_gains_on_the_data_of_another(models):
    table = scores.divergences(models)
    for one, row in table.items():
        for other, value in row.items():
            assert value == pytest.approx(0.0, abs=1e-12) if one == other else value > 0.05


@pytest.mark.equation("M20", "M21")
def test_the_mean_log_bayes_factor_is_a_divergence():
    # two priors of one regression: log P(y|m) are Gaussian densities of y, all in closed form
    rng, rows = RNG(4), 12
    x = rng.standard_normal((rows, 2))
    design = np.column_stack([x, np.ones(rows)])
    template = closed.draw(rng, rows=rows, noise=0.5)
    scales = {"narrow": 0.5, "wide": 3.0}
    of_y = {
        name: closed.Gaussian(np.zeros(rows), 0.25 * np.eye(rows) + s**2 * design @ design.T)
        for name, s in scales.items()
    }
    for source, other in (("narrow", "wide"), ("wide", "narrow")):
        factor = np.linalg.cholesky(of_y[source].covariance)
        logs = []
        for _ in range(400):
            y = (factor @ rng.standard_normal(rows))[:, None]
            problem = template._replace(x=x, y=y)
            own, rival = (closed.exact(problem, scales[m]).log_evidence for m in (source, other))
            logs.append(own - rival)
        logs = np.array(logs)
        exact = closed.kl(of_y[source], of_y[other])
        error = logs.std(ddof=1) / len(logs) ** 0.5
        assert abs(logs.mean() - exact) < 4 * error
        assert exact > 4 * error  # the model of the data wins on average, either way round
        # P(log B < -2) under the model of the data is at most e^-2, by Markov's inequality
        assert np.mean(logs < -2.0) < np.exp(-2.0)


def test_labels_and_features_are_what_they_say():
    assert len(np.unique(occam.LABELS, axis=0)) == 256
    assert occam.changes(np.array([[0, 0, 0], [0, 1, 0], [1, 1, 0]])).tolist() == [0, 2, 1]
    columns = np.column_stack([np.ones(8), occam.features(8, 7)])
    assert np.allclose(columns.T @ columns, 8 * np.eye(8))
    assert np.allclose(columns @ columns.T, 8 * np.eye(8))  # so the logits are independent
    w, shares = occam.nodes(2, 41, 3.0)
    assert shares.sum() == pytest.approx(1.0)
    assert np.allclose((shares[:, None] * w**2).sum(axis=0), 9.0, rtol=1e-6)


def test_the_best_rival_is_the_best_of_the_others():
    found = {
        "line": scores.Found(-5.0, 0.0, -5.0),
        "small network": scores.Found(-7.0, 0.3, -8.0),
        "large network": scores.Found(-6.0, 0.4, -8.0),
    }
    rival, factor = scores.best_rival(scores.Measured("small network", np.zeros((1, 1)), found))
    assert rival == "line"
    assert factor == pytest.approx((-2.0, 0.3))
