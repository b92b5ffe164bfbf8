"""Occam's razor: evidence of all data sets, exactly; what it spends here it lacks there."""

import numpy as np
import pytest

from bbb_numpy import GaussianPrior, Model
from bbb_numpy.model.log_joint import LogJoint
from bbb_numpy.parts.discrete import BernoulliLikelihood
from bbb_numpy.parts.network import MLP
from bbb_studies.annealing import evidence
from bbb_studies.mullachery import occam

RNG = np.random.default_rng


@pytest.fixture(scope="module")
def models():
    return occam.label_models(RNG(0), occam.Budget(side=61, draws=4000))


@pytest.mark.equation("M20", "M21")
@pytest.mark.parametrize("changes", [0, 6])
@pytest.mark.parametrize(
    "name", ["line", "parabola", "degree 7", pytest.param("network", marks=pytest.mark.slow)]
)
def test_annealing_finds_what_quadrature_and_prior_draws_find(models, name, changes):
    rng, one = RNG(5), models[name]
    which = rng.choice(np.flatnonzero(occam.count_label_changes(occam.LABEL_VECTORS) == changes))
    y = occam.LABEL_VECTORS[which][:, None].astype(float)
    run = evidence(LogJoint(one.model, one.x, y), chains=80, steps=25, seed=rng)
    known, error = one.probability[which], one.error[which] / one.probability[which]
    off = run.log_evidence - np.log(known)
    assert abs(off) < 4 * min(np.hypot(run.error, error), 0.7)


@pytest.mark.equation("M21")
def test_every_model_has_probability_one_for_all_data_sets(models):
    for model in models.values():
        assert model.probability.sum() == pytest.approx(1.0, abs=1e-12)
        assert (model.probability > 0).all()
    # of any weights, not only on average over the prior
    network = models["network"]
    w = 30.0 * RNG(1).standard_normal((7, network.model.layout.size))
    total, _ = occam.label_probabilities(network.model, network.x, w, RNG(2).dirichlet(np.ones(7)))
    assert total.sum() == pytest.approx(1.0, abs=1e-12)


@pytest.mark.equation("M21")
def test_the_probability_of_labels_is_the_weighted_product_over_the_points():
    # of weights that prefer 1 to 0: under the prior flipped labels are as probable
    model, x = Model(MLP((1, 1)), GaussianPrior(), BernoulliLikelihood()), np.array([[-1.0], [2.0]])
    w, shares = np.array([[0.3, 1.0], [-0.8, 0.5]]), np.array([0.25, 0.75])
    one = 1.0 / (1.0 + np.exp(-(w[:, :1] * x.T + w[:, 1:])))  # (S, N)
    each = np.where(occam.all_label_vectors(2)[:, None] == 1, one, 1.0 - one).prod(
        axis=-1
    )  # (2^N, S)
    assert occam.label_probabilities(model, x, w, shares)[0] == pytest.approx(each @ shares)


@pytest.mark.equation("M21")
def test_quadrature_and_prior_draws_agree_on_all_data_sets(models):
    for name in ("line", "parabola", "degree 7"):
        one = models[name]
        w = one.model.prior.draw(RNG(3), {}, (20_000, one.model.layout.size))
        found, error = occam.label_probabilities(one.model, one.x, w, np.full(len(w), 1 / len(w)))
        z = (found - one.probability) / error
        assert np.abs(z).max() < 5.5  # of 256, rare ones with skewed estimates
    fine, _ = occam.label_probabilities(
        models["line"].model,
        models["line"].x,
        *occam.prior_grid(2, 201, occam.LOGISTIC_PRIOR_SCALE),
    )
    assert np.abs(models["line"].probability / fine - 1.0).max() < 1e-3


@pytest.mark.equation("M21")
def test_each_model_wins_on_data_of_its_own_complexity(models):
    complexity = occam.count_label_changes(occam.LABEL_VECTORS)
    mean = {
        name: np.array([m.probability[complexity == c].mean() for c in range(occam.N_POINTS)])
        for name, m in models.items()
        if name != "network"
    }
    winner = [max(mean, key=lambda name, c=c: mean[name][c]) for c in range(occam.N_POINTS)]
    assert winner == ["line"] * 2 + ["parabola"] + ["degree 7"] * 5


@pytest.mark.equation("M21")
def test_no_model_gains_on_the_data_of_another(models):
    table = occam.divergences(models)
    for one, row in table.items():
        for other, value in row.items():
            assert value == pytest.approx(0.0, abs=1e-12) if one == other else value > 0.05
