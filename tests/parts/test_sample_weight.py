"""Rows with weights: a weight is a number of copies, in value and gradient of every likelihood."""

import numpy as np
import pytest
from exact_cases import FAR_LEFT, numbered_case
from problems import CHECKED, PAIRS, VALID

from bbb_numpy import (
    MLP,
    Adam,
    GaussianLikelihood,
    GaussianPrior,
    Model,
    Reparameterised,
    sample,
    training,
)
from bbb_numpy.combinations import prove_case
from bbb_numpy.model.log_joint import LogJoint
from bbb_numpy.numeric.layout import Layout
from bbb_numpy.registry import CHECKED_LIKELIHOODS, ESTIMATORS


def case(likelihood, seed, samples=2, rows=4, targets=3, each=False):
    """Outputs, targets and learned numbers: one set for all samples, or one for each."""
    rng = np.random.default_rng(seed)
    f = rng.standard_normal((samples, rows, likelihood.heads(targets)))
    learned = likelihood.init(targets, np.float64)
    learned = learned + 0.2 * rng.standard_normal((samples, len(learned)) if each else len(learned))
    params = Layout(likelihood.blocks(targets)).views(learned)
    first = {name: block[:1] if each else block for name, block in params.items()}
    return f, likelihood.draw(rng, first, f[:1])[0], params, rng


@pytest.mark.equation("D45")
@pytest.mark.parametrize("each", [False, True])
@pytest.mark.parametrize("name", CHECKED_LIKELIHOODS)
def test_a_whole_weight_is_that_many_copies(name, each):
    likelihood, counts = CHECKED_LIKELIHOODS[name], np.array([2, 0, 1, 3, 1])
    f, y, params, rng = case(likelihood, 2, rows=5, each=each)
    cotangent, copied = rng.standard_normal(len(f)), np.repeat(np.arange(5), counts)

    def gradients(*rows):
        d_params = {name: np.full(block.shape, np.nan) for name, block in params.items()}
        value, saved = likelihood.log_likelihood(params, *rows)
        return value, likelihood.log_likelihood_vjp(saved, cotangent, d_params), d_params

    value, d_f, d_params = gradients(f, y, counts)
    copies, d_copies, d_copied = gradients(f[:, copied], y[copied])
    assert np.allclose(value, copies, rtol=1e-13)
    gathered = np.zeros_like(d_f)
    np.add.at(gathered, (slice(None), copied), d_copies)
    assert np.allclose(d_f, gathered, rtol=1e-12, atol=1e-15)
    for block in params:
        assert np.allclose(d_params[block], d_copied[block], rtol=1e-11, atol=1e-13)


def first_of(likelihood):
    """The first valid combination of every estimator with a likelihood; in full, and posterior."""
    found = {}
    for number, which in enumerate(VALID):
        if which.likelihood == likelihood:
            posterior = "" if CHECKED is PAIRS else which.posterior
            found.setdefault((which.estimator, posterior), (number, which))
    return found.values()


@pytest.mark.equation("D44", "D45")
@pytest.mark.parametrize("likelihood", CHECKED_LIKELIHOODS)
def test_with_weights_every_gradient_is_that_of_its_value_exactly(likelihood):
    cases = first_of(likelihood)
    assert {which.estimator for _, which in cases} == set(ESTIMATORS)
    for number, which in cases:  # the first that is not proved ends it: to refute takes a while
        far_left = -4.0 if which.estimator == "self-normalised" else FAR_LEFT
        plain = numbered_case(number, which, far_left)
        weights = np.random.default_rng(number).uniform(0.1, 3.0, len(plain.x))
        proof = prove_case(plain._replace(sample_weight=weights), number)
        assert proof.proved, f"{which}: {proof}"


@pytest.mark.equation("D33", "D45")
@pytest.mark.parametrize("learn", [False, True])
def test_what_samplers_draw_from_has_copies_as_weights(learn):
    rng = np.random.default_rng(0)
    model = Model(MLP((2, 3, 1), "tanh"), GaussianPrior(), GaussianLikelihood(0.5, learn))
    x, y = rng.standard_normal((6, 2)), rng.standard_normal((6, 1))
    counts = np.array([1, 0, 2, 4, 1, 3])
    copied = np.repeat(np.arange(6), counts)
    weighted = LogJoint(model, x, y, sample_weight=counts)
    copies = LogJoint(model, x[copied], y[copied])
    position = weighted.draw_prior(rng, 3)
    found, wanted = ((*one(position), one.log_likelihood(position)) for one in (weighted, copies))
    for one, other in zip(found, wanted, strict=True):
        assert np.allclose(one, other, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0, 2.0], r"sample_weight must have shape \(3\); got \(2,\)"),
        ([1.0, -1.0, 2.0], "sample_weight must be >= 0; got -1.0"),
        ([1.0, np.nan, 2.0], "sample_weight holds nan"),
        ([1.0, np.inf, 2.0], "sample_weight holds nan or infinity"),
    ],
)
def test_what_cannot_be_a_weight_is_refused(weights, message):
    model, x, weights = Model(MLP((1, 1))), np.ones((3, 1)), np.array(weights)
    estimator, rng = Reparameterised(model), np.random.default_rng(0)
    state = training.start(estimator, rng, Adam())
    for call in (
        lambda: LogJoint(model, x, x, sample_weight=weights),
        lambda: sample(model, x, x, sample_weight=weights),
        lambda: training.fit(estimator, state, x, x, rng=rng, sample_weight=weights),
        lambda: training.fit(estimator, state, x, x, rng=rng, validation=(x, x, weights)),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    with pytest.raises(ValueError, match="sample_weight must be > 0 for one row or more; got 0"):
        training.fit(estimator, state, x, x, rng=rng, sample_weight=np.zeros(3))
