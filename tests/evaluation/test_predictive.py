"""predictive: moments of the functions drawn, the variance split, and bounded memory."""

import numpy as np
import pytest
from problems import linear_problem
from scipy import stats

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


def of_lines(theta, x):
    """Mean and standard deviation of f = [x 1] w with independent w_j."""
    design, (mean, rho) = np.hstack([x, np.ones((len(x), 1))]), np.split(theta, 2)
    return design @ mean, np.sqrt(design**2 @ softplus(rho) ** 2)


THETA = np.array([1.0, -2.0, 0.5, 0.3, -1.0, 0.1])


@pytest.mark.equation("D4")
def test_in_the_linear_model_both_deviations_have_closed_forms():
    estimator, x, _ = linear_problem(noise=0.3)
    prediction = predict(estimator, THETA, x, rng=rng(), samples=20_000)
    mean, sd = of_lines(THETA, x)
    assert np.abs(prediction.epistemic[:, 0] / sd - 1).max() < 4 / np.sqrt(2 * 20_000)
    assert np.abs((prediction.mean[:, 0] - mean) / sd).max() < 4.5 / np.sqrt(20_000)
    assert np.allclose(prediction.aleatoric, 0.3, rtol=1e-12)
    assert np.allclose(prediction.total**2, prediction.epistemic**2 + 0.09, rtol=1e-12)


@pytest.mark.equation("D5")
def test_log_predictive_density_of_the_linear_model_is_a_normal_density():
    estimator, x, y = linear_problem(noise=0.5)
    theta = np.array([0.3, 0.2, 0.4, -1.0, -1.0, -1.0])
    density = log_predictive_density(estimator, theta, x, y, rng=rng(), samples=50_000)
    mean, sd = of_lines(theta, x)
    law = stats.norm(mean, np.hypot(sd, 0.5))
    exact = law.logpdf(y[:, 0])
    near = np.abs(y[:, 0] - mean) < 3 * law.std()  # far in the tail samples are no estimate
    assert near.sum() > 20
    assert np.abs(density - exact)[near].max() < 0.05


def test_one_sample_has_no_epistemic_deviation():
    estimator, x, _ = linear_problem()
    assert not predict(estimator, np.zeros(6), x, rng=rng(), samples=1).epistemic.any()


@pytest.mark.equation("D4", "D5")
def test_small_blocks_of_rows_and_samples_give_what_one_block_gives(monkeypatch):
    estimator, x, y = linear_problem()

    def all_predictions():
        moments = predict(estimator, THETA, x, rng=rng(), samples=7)
        f = sample_functions(estimator, THETA, x, rng=rng(), samples=7)
        density = log_predictive_density(estimator, THETA, x, y, rng=rng(), samples=7)
        return np.column_stack([*moments, density, f[:, :, 0].T])

    of_one_block = all_predictions()
    monkeypatch.setattr(predictive, "BLOCK_NUMBERS", 24)  # two samples, six of the 40 rows
    assert np.allclose(all_predictions(), of_one_block, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("samples", [3, 260])
def test_noise_that_no_sample_needs_changes_no_function(samples, dtype):
    built = Reparameterised(Model(MLP((2, 3, 1))))
    theta = built.init(np.random.default_rng(0), dtype)
    x = np.ones((2, 2), dtype)
    functions = []
    for rng_is_spent in (False, True):
        rng = np.random.default_rng(1)
        blocks = predictive.outputs(built, theta, x, rng, samples, rng_is_spent)
        functions.append(np.concatenate([f.copy() for _, _, f, _ in blocks]))
    np.testing.assert_array_equal(*functions)
    assert functions[0].shape == (samples, 2, 1)


def test_what_cannot_be_predicted_with_is_refused_by_name():
    estimator, x, _ = linear_problem()
    for no_estimator in (object(), Reparameterised, estimator.model):
        with pytest.raises(
            TypeError, match=r"^estimator must be an object of type GradientEstimator"
        ):
            predict(no_estimator, np.zeros(6), x, rng=rng())
    for theta, shape in ((np.zeros(5), r"\(5,\)"), (np.array(0.0), r"\(\)")):
        with pytest.raises(ValueError, match=f"^theta must have 6 numbers .*; got shape {shape}"):
            predict(estimator, theta, x, rng=rng())


def class_problem(likelihood=None, outputs=3, rho=-0.5, seed=0):
    model = Model(MLP((2, 4, outputs), "tanh"), likelihood=likelihood or CategoricalLikelihood())
    estimator = Reparameterised(model, MeanField(1.0, rho, 0.1))
    generator = np.random.default_rng(seed)
    return estimator, estimator.init(generator), generator.standard_normal((7, 2))


@pytest.mark.equation("D29")
def test_the_epistemic_entropy_is_the_mutual_information_of_class_and_weights():
    # sum over samples and classes of p(s, k) log [p(s, k) / (p(s) p(k))], a divergence, not a
    # difference of entropies
    estimator, theta, x = class_problem()
    prediction = predict_classes(estimator, theta, x, rng=rng(), samples=50)
    p = sample_functions(estimator, theta, x, rng=rng(), samples=50)
    information = (p / 50 * np.log(p / p.mean(axis=0))).sum(axis=(0, 2))
    assert np.allclose(prediction.epistemic, information, rtol=1e-9)
    assert np.all(prediction.epistemic > 1e-3)


@pytest.mark.equation("D29")
def test_one_logit_is_two_classes_the_second_of_them_yes():
    estimator, theta, x = class_problem(BernoulliLikelihood(), 1)
    prediction = predict_classes(estimator, theta, x, rng=rng(), samples=30)
    p = sample_functions(estimator, theta, x, rng=rng(), samples=30)[:, :, 0]
    assert np.allclose(prediction.proba, np.stack([1 - p.mean(axis=0), p.mean(axis=0)], axis=1))
    assert np.allclose(prediction.aleatoric[0], stats.bernoulli(p[:, 0]).entropy().mean())
    one_class = class_problem(CategoricalLikelihood(), 1)
    alone = predict_classes(*one_class, rng=rng(), samples=3)
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
    w = estimator.weights(theta, estimator.draw_weights(rng(), 256))
    f, rho = np.split(estimator.model.predict(w, x), 2, axis=-1)
    variance = ((0.1 + softplus(rho)) ** 2).mean(axis=0)
    expected = f.mean(axis=0), f.std(axis=0, ddof=1), np.sqrt(variance)
    prediction = predict(estimator, theta, x, rng=rng(), samples=256)
    assert np.allclose(prediction, expected, rtol=1e-9, atol=1e-12)
    assert np.allclose(
        prediction.total**2, prediction.epistemic**2 + prediction.aleatoric**2, rtol=1e-12
    )
    targets = sample_targets(estimator, theta, x, rng=rng(), samples=40_000)
    assert targets.shape == (40_000, 7, 2)
    moments = predict(estimator, theta, x, rng=rng(), samples=40_000)
    squares = ((targets - moments.mean) / moments.total) ** 2
    error = squares.std(axis=0) / np.sqrt(40_000)
    assert np.all(np.abs(squares.mean(axis=0) - 1) < 4.5 * error)


@pytest.mark.equation("D5", "D12")
@pytest.mark.parametrize(
    "likelihood", [GaussianLikelihood(0.4, True), HeteroscedasticLikelihood(0.5)]
)
def test_the_density_of_the_mixture_is_the_log_predictive_density(likelihood):
    estimator, theta, x = class_problem(likelihood, likelihood.heads(2))
    y = np.random.default_rng(5).standard_normal((7, 2))
    law = stats.norm(*mixture(estimator, theta, x, rng=rng(), samples=300))
    together = np.log(law.pdf(y).prod(axis=-1).mean(axis=0))  # outputs share their weights
    density = log_predictive_density(estimator, theta, x, y, rng=rng(), samples=300)
    assert np.allclose(density, together, rtol=1e-10)
