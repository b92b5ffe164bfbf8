"""Which row to measure next: information about the weights, exact, measured, and misled."""

import json
from math import pi

import numpy as np
import pytest
from scipy.stats import norm
from small_learners import class_blobs, classifier, regression_rows, regressor

from bbb_numpy import StudentTLikelihood
from bbb_numpy.evaluation.active_learning import information_gain
from bbb_numpy.evaluation.predictive import Predictive
from benchmarks import next_measurement as study

# fits as short as these need not converge
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.mark.equation("D84")
def test_it_is_the_fall_of_the_entropy_of_the_weights_of_a_linear_model():
    class Linear:
        """Exact posterior of three coefficients."""

        def predict_distribution(self, X):
            epistemic = np.sqrt(((X @ covariance) * X).sum(axis=1))
            noise = np.full(len(X), 0.3)
            return Predictive(X @ np.ones(3), epistemic, noise)

    rng = np.random.default_rng(0)
    root, rows = rng.standard_normal((3, 3)), rng.standard_normal((6, 3))
    covariance = root @ root.T

    def entropy(precision):
        return 0.5 * np.linalg.slogdet(2 * pi * np.e * np.linalg.inv(precision))[1]

    before = np.linalg.inv(covariance)
    falls = [entropy(before) - entropy(before + np.outer(x, x) / 0.09) for x in rows]
    assert np.allclose(information_gain(Linear(), rows), falls)


@pytest.mark.equation("D84")
def test_of_numbers_it_is_the_formula_and_of_classes_the_epistemic_part():
    x, y = regression_rows(outputs=2)
    model = regressor().fit(x, y)
    distribution = model.predict_distribution(x)
    ratio = (distribution.epistemic / distribution.aleatoric) ** 2
    assert np.allclose(information_gain(model, x), 0.5 * np.log(1 + ratio).sum(axis=1))
    x, y = class_blobs(3)
    model = classifier().fit(x, y)
    assert (information_gain(model, x) == model.predict_distribution(x).epistemic).all()
    x, y = regression_rows()
    heavy = regressor(likelihood=StudentTLikelihood(df=2.0)).fit(x, y)
    with pytest.raises(ValueError, match="the noise has no variance"):
        information_gain(heavy, x)


@pytest.mark.equation("D84")
@pytest.mark.parametrize("scales", [(1.0, 1.0), (0.2, 2.0), (0.02, 1.0)])
def test_of_noise_that_is_not_known_it_is_at_most_what_is_told_of_the_mean(scales):
    """y = f + noise, f from N(0, 1), and the noise of one of two scales, equally probable."""

    class OneOfTwoScales:
        def predict_distribution(self, X):
            return Predictive(np.zeros(1), np.ones(1), np.sqrt([np.mean(np.square(scales))]))

    at = np.linspace(-12, 12, 48_001)

    def entropy(variances):
        density = np.mean([norm.pdf(at, scale=np.sqrt(v)) for v in variances], axis=0)
        return -np.sum(density * np.log(np.maximum(density, 1e-300))) * (at[1] - at[0])

    noise = np.square(scales)
    of_mean = entropy(1 + noise) - entropy(noise)
    of_both = entropy(1 + noise) - np.mean(np.log(2 * pi * np.e * noise)) / 2
    (gain,) = information_gain(OneOfTwoScales(), None)
    assert gain <= of_mean + 1e-6
    assert of_mean <= of_both + 1e-6
    assert np.isclose(gain, of_both) == (scales[0] == scales[1])


def test_a_row_with_neither_doubt_nor_noise_tells_nothing():
    class Counts:
        def predict_distribution(self, X):
            return Predictive(np.zeros(2), np.array([0.0, 0.1]), np.zeros(2))

    assert information_gain(Counts(), None).tolist() == [0.0, np.inf]


@pytest.mark.equation("D84")
def test_a_class_tells_by_simulation_what_is_said():
    # two weight vectors, equally probable: the posterior after a label, and its divergence
    p = np.array([0.1, 0.7])
    labels = np.random.default_rng(0).random((2, 50_000)) < p[:, None]
    told = 0.0
    for label in (0, 1):
        share = np.mean(labels == label)
        posterior = (labels == label).mean(axis=1) / (labels == label).mean(axis=1).sum()
        told += share * np.sum(posterior * np.log(posterior / 0.5))
    mixed = p.mean()
    entropy = lambda q: -q * np.log(q) - (1 - q) * np.log(1 - q)  # noqa: E731
    assert abs(told - (entropy(mixed) - entropy(p).mean())) < 0.01


@pytest.mark.slow
@pytest.mark.equation("D84")
def test_regret_of_the_exact_models_is_that_of_the_results():
    stored = json.loads(study.RESULTS.read_text("utf-8"))
    for name in ("linear", "line", "uneven noise"):
        measured = study.measure(name)
        assert measured.keys() == stored[name].keys()
        for rule in measured.keys() - {"runs"}:
            for key, values in measured[rule].items():
                assert np.allclose(values, stored[name][rule][key], atol=1e-3)
    gain = {name: each["information"]["regret"][-1] for name, each in stored.items()}
    assert gain["linear"] < 0 < gain["line"]
    uneven = stored["uneven noise"]
    assert uneven["variance of y"]["rmse"][-1] > 2 * uneven["information"]["rmse"][-1]


def test_rules_choose_what_they_say():
    errors = [study.run(study.linear(3, study.equal_noise), study.equal_noise, rule, 0)
              for rule in ("information", "variance of y", "random")]  # fmt: skip
    assert errors[0] == errors[1] != errors[2]  # equal noise: the two rules are one
    noise = study.uneven_noise
    uneven = [study.run(study.linear(3, noise), noise, rule, 0) for rule in study.RULES]
    assert uneven[0][-1] < uneven[2][-1]
