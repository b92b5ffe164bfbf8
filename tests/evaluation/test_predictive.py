"""predictive: moments of the functions drawn, the variance split, and bounded memory."""

import numpy as np
import pytest
from problems import linear_problem

from bbb_numpy import MLP, MeanField, Model, Reparameterised
from bbb_numpy.evaluation import predictive
from bbb_numpy.evaluation.predictive import (
    log_predictive_density,
    mixture,
    predict,
    predict_classes,
    sample_functions,
    sample_targets,
)
from bbb_numpy.numeric.elementary import softplus
from bbb_numpy.parts.discrete import BernoulliLikelihood, CategoricalLikelihood, PoissonLikelihood
from bbb_numpy.parts.likelihoods import GaussianLikelihood, HeteroscedasticLikelihood


def rng():
    return np.random.default_rng(3)


@pytest.mark.equation("D4")
def test_in_the_linear_model_both_deviations_have_closed_forms():
    # Var_q[f(x)] = sum_j x_j^2 sigma_j^2 for f = [x 1] w with independent w_j
    estimator, x, _ = linear_problem(noise=0.3)
    theta = np.array([1.0, -2.0, 0.5, 0.3, -1.0, 0.1])
    found = predict(estimator, theta, x, rng=rng(), samples=20_000)
    design = np.hstack([x, np.ones((len(x), 1))])
    deviation = np.sqrt(design**2 @ softplus(theta[3:]) ** 2)
    error = 1 / np.sqrt(2 * 20_000)
    assert np.abs(found.epistemic[:, 0] / deviation - 1).max() < 4 * error
    z = (found.mean[:, 0] - design @ theta[:3]) / (deviation / np.sqrt(20_000))
    assert np.abs(z).max() < 4.5
    assert np.allclose(found.aleatoric, 0.3, rtol=1e-12)
    assert np.allclose(found.total**2, found.epistemic**2 + 0.09, rtol=1e-12)


@pytest.mark.equation("D5")
def test_log_predictive_density_of_the_linear_model_is_a_normal_density():
    estimator, x, y = linear_problem(noise=0.5)
    theta = np.array([0.3, 0.2, 0.4, -1.0, -1.0, -1.0])
    found = log_predictive_density(estimator, theta, x, y, rng=rng(), samples=50_000)
    design = np.hstack([x, np.ones((len(x), 1))])
    variance = design**2 @ softplus(theta[3:]) ** 2 + 0.25
    residual = y[:, 0] - design @ theta[:3]
    exact = -0.5 * (np.log(2 * np.pi * variance) + residual**2 / variance)
    near = residual**2 / variance < 9  # far in the tail a sum of samples is no estimate
    assert near.sum() > 20
    assert np.abs(found - exact)[near].max() < 0.05


def test_one_sample_has_no_epistemic_deviation():
    estimator, x, _ = linear_problem()
    assert not predict(estimator, np.zeros(6), x, rng=rng(), samples=1).epistemic.any()


@pytest.mark.equation("D4", "D5")
def test_small_blocks_of_rows_and_samples_give_what_one_block_gives(monkeypatch):
    estimator, x, y = linear_problem()
    theta = np.array([1.0, -2.0, 0.5, 0.3, -1.0, 0.1])

    def everything():
        found = predict(estimator, theta, x, rng=rng(), samples=7)
        f = sample_functions(estimator, theta, x, rng=rng(), samples=7)
        density = log_predictive_density(estimator, theta, x, y, rng=rng(), samples=7)
        return np.column_stack([*found, density, f[:, :, 0].T])

    whole = everything()
    monkeypatch.setattr(predictive, "BLOCK_NUMBERS", 24)  # two samples, six of the 40 rows
    assert np.allclose(everything(), whole, rtol=1e-12, atol=1e-12)


def test_what_cannot_be_predicted_with_is_refused_by_name():
    estimator, x, _ = linear_problem()
    for other in (object(), Reparameterised, estimator.model):
        with pytest.raises(TypeError, match=r"^estimator must be an object of type Family"):
            predict(other, np.zeros(6), x, rng=rng())
    for theta, shape in ((np.zeros(5), r"\(5,\)"), (np.array(0.0), r"\(\)")):
        with pytest.raises(ValueError, match=f"^theta must hold the 6 numbers .*; got {shape}"):
            predict(estimator, theta, x, rng=rng())


def class_problem(likelihood=None, outputs=3, rho=-0.5, seed=0):
    model = Model(MLP((2, 4, outputs), "tanh"), likelihood=likelihood or CategoricalLikelihood())
    estimator = Reparameterised(model, MeanField(1.0, rho, 0.1))
    generator = np.random.default_rng(seed)
    return estimator, estimator.init(generator), generator.standard_normal((7, 2))


def entropy(p):
    """-sum p log p, in plain Python."""
    return sum(-float(v) * np.log(float(v)) for v in p if v > 0)


@pytest.mark.equation("D29")
def test_the_epistemic_entropy_is_the_mutual_information_of_class_and_weights():
    # sum over samples and classes of p(s, k) log [p(s, k) / (p(s) p(k))], a divergence, not a
    # difference of entropies
    estimator, theta, x = class_problem()
    found = predict_classes(estimator, theta, x, rng=rng(), samples=50)
    p = sample_functions(estimator, theta, x, rng=rng(), samples=50)
    information = (p / 50 * np.log(p / p.mean(axis=0))).sum(axis=(0, 2))
    assert np.allclose(found.epistemic, information, rtol=1e-9)
    assert np.all(found.epistemic > 1e-3)


@pytest.mark.equation("D29")
def test_one_logit_is_two_classes_the_second_of_them_yes():
    estimator, theta, x = class_problem(BernoulliLikelihood(), 1)
    found = predict_classes(estimator, theta, x, rng=rng(), samples=30)
    p = sample_functions(estimator, theta, x, rng=rng(), samples=30)[:, :, 0]
    assert np.allclose(found.proba, np.stack([1 - p.mean(axis=0), p.mean(axis=0)], axis=1))
    assert np.allclose(found.aleatoric[0], np.mean([entropy([q, 1 - q]) for q in p[:, 0]]))
    one = class_problem(CategoricalLikelihood(), 1)
    alone = predict_classes(*one, rng=rng(), samples=3)
    assert np.array_equal(alone.proba, np.ones((7, 1)))  # the only class there is


@pytest.mark.parametrize(
    ("likelihood", "outputs"),
    [(BernoulliLikelihood(), 2), (PoissonLikelihood(), 3), (HeteroscedasticLikelihood(), 4)],
)
def test_class_probabilities_are_refused_where_there_are_no_classes(likelihood, outputs):
    estimator, theta, x = class_problem(likelihood, outputs)
    with pytest.raises(ValueError, match="class probabilities need a categorical likelihood"):
        predict_classes(estimator, theta, x, rng=rng())


@pytest.mark.equation("D4", "D12", "R10")
def test_noise_that_depends_on_x_is_averaged_over_the_weights_and_added_to_the_spread_of_means():
    estimator, theta, x = class_problem(HeteroscedasticLikelihood(0.1), 4)
    found = predict(estimator, theta, x, rng=rng(), samples=300)
    w = estimator.weights(theta, estimator.draw_weights(rng(), 256))
    f = estimator.model.predict(w, x)
    first = predict(estimator, theta, x, rng=rng(), samples=256)
    sigma = 0.1 + softplus(f[..., 2:])
    assert np.allclose(first.mean, f[..., :2].mean(axis=0), rtol=1e-10, atol=1e-12)
    assert np.allclose(first.epistemic, f[..., :2].std(axis=0, ddof=1), rtol=1e-9)
    assert np.allclose(first.aleatoric, np.sqrt((sigma**2).mean(axis=0)), rtol=1e-10)
    assert np.allclose(found.total**2, found.epistemic**2 + found.aleatoric**2, rtol=1e-12)
    assert found.mean.shape == (7, 2)
    targets = sample_targets(estimator, theta, x, rng=rng(), samples=40_000)
    assert targets.shape == (40_000, 7, 2)
    many = predict(estimator, theta, x, rng=rng(), samples=40_000)
    spread = np.abs((targets - many.mean) / many.total)
    error = (spread**2).std(axis=0) / np.sqrt(40_000)
    assert np.all(np.abs((spread**2).mean(axis=0) - 1) < 4.5 * error)


@pytest.mark.equation("D5", "D12")
@pytest.mark.parametrize(
    "likelihood", [GaussianLikelihood(0.4, True), HeteroscedasticLikelihood(0.5)]
)
def test_the_density_of_the_mixture_is_the_log_predictive_density(likelihood):
    heads = likelihood.heads(2)
    estimator, theta, x = class_problem(likelihood, heads)
    y = np.random.default_rng(5).standard_normal((7, 2))
    means, deviations = mixture(estimator, theta, x, rng=rng(), samples=300)
    logs = -0.5 * (((y - means) / deviations) ** 2 + np.log(2 * np.pi)) - np.log(deviations)
    together = np.log(np.exp(logs.sum(axis=-1)).mean(axis=0))  # outputs share their weights
    found = log_predictive_density(estimator, theta, x, y, rng=rng(), samples=300)
    assert np.allclose(found, together, rtol=1e-10)
