"""weighted rows: a weight is a number of copies, in value and gradient, for every likelihood."""

import numpy as np
import pytest
from exact_cases import FAR_LEFT, numbered_case
from hypothesis import given
from hypothesis import strategies as st
from problems import VALID, complex_gradient, relative_error, seeds

from bbb_numpy import MLP, GaussianLikelihood, GaussianPrior, Model
from bbb_numpy.exact import prove
from bbb_numpy.gradients.catalogue import CHECKED_LIKELIHOODS, ESTIMATORS
from bbb_numpy.gradients.matrix import prove_case, with_row_weights
from bbb_numpy.model.log_joint import LogJoint
from bbb_numpy.numeric.layout import Layout
from bbb_numpy.parts.discrete import PoissonLikelihood
from bbb_numpy.parts.weighted import Weighted, total_weight, with_weights


def case(likelihood, seed, samples=2, rows=4, targets=3, each=False):
    """Outputs, targets and learned numbers: one set for all samples, or one for each."""
    rng = np.random.default_rng(seed)
    f = rng.standard_normal((samples, rows, likelihood.heads(targets)))
    learned = likelihood.init(targets, np.float64)
    learned = learned + 0.2 * rng.standard_normal((samples, len(learned)) if each else len(learned))
    params = Layout(likelihood.blocks(targets)).views(learned)
    return (
        f,
        likelihood.draw(rng, {n: p[:1] if each else p for n, p in params.items()}, f[:1])[0],
        params,
        rng,
    )


def gradients(likelihood, params, f, y, cotangent):
    """Value, slope for the outputs, and slopes for the learned numbers."""
    d_params = {name: np.full(block.shape, np.nan) for name, block in params.items()}
    rowwise, saved = likelihood.log_density(params, f, y)
    return rowwise, likelihood.vjp(saved, cotangent, d_params), d_params


# --- a cotangent for each row


@pytest.mark.equation("D45")
@pytest.mark.parametrize("name", CHECKED_LIKELIHOODS)
@given(seed=seeds)
def test_with_a_cotangent_for_each_row_vjp_is_the_derivative(name, seed):
    likelihood = CHECKED_LIKELIHOODS[name]
    f, y, params, rng = case(likelihood, seed)
    cotangent = rng.standard_normal(f.shape[:2])
    _, d_f, d_params = gradients(likelihood, params, f, y, cotangent)

    def total(f, params):
        return (cotangent * likelihood.log_density(params, f, y)[0]).sum()

    assert relative_error(d_f, complex_gradient(lambda v: total(v, params), f)) <= 1e-12
    for block, at in params.items():
        slope = complex_gradient(
            lambda v, block=block: total(f.astype(complex), params | {block: v}), at
        )
        assert relative_error(d_params[block], slope) <= 1e-11


# --- weights


@pytest.mark.equation("D45")
@pytest.mark.parametrize("each", [False, True])
@pytest.mark.parametrize("name", CHECKED_LIKELIHOODS)
def test_a_whole_weight_is_that_many_copies(name, each):
    likelihood = CHECKED_LIKELIHOODS[name]
    f, y, params, rng = case(likelihood, 2, rows=5, each=each)
    counts, cotangent = np.array([2, 0, 1, 3, 1]), rng.standard_normal(len(f))
    copied = np.repeat(np.arange(5), counts)
    value, d_f, d_params = gradients(
        Weighted(likelihood), params, f, with_weights(y, counts), cotangent
    )
    copies, d_copies, d_copied = gradients(likelihood, params, f[:, copied], y[copied], cotangent)
    assert np.allclose(value.sum(axis=1), copies.sum(axis=1), rtol=1e-13)
    gathered = np.zeros_like(d_f)
    np.add.at(gathered, (slice(None), copied), d_copies)
    assert np.allclose(d_f, gathered, rtol=1e-12, atol=1e-15)
    for block in params:
        assert np.allclose(d_params[block], d_copied[block], rtol=1e-11, atol=1e-13)


def first_of(likelihood):
    """The first valid combination of every estimator and posterior with a likelihood."""
    found = {}
    for number, which in enumerate(VALID):
        if which.likelihood == likelihood:
            found.setdefault((which.estimator, which.posterior), (number, which))
    return found.values()


def weighted_case(number, which, weights=None):
    far_left = -4.0 if which.estimator == "self-normalised" else FAR_LEFT
    plain = numbered_case(number, which, far_left)
    rng = np.random.default_rng(number)
    if weights is None and plain.estimator.model.likelihood.target_kind == "real":
        weights = rng.uniform(0.1, 3.0, len(plain.x))
    elif weights is None:  # beside counts and classes, which stay whole numbers
        weights = rng.integers(0, 4, len(plain.x))
    return with_row_weights(plain, weights)


@pytest.mark.equation("D44", "D45")
@pytest.mark.parametrize("likelihood", CHECKED_LIKELIHOODS)
def test_with_weights_every_gradient_is_that_of_its_value_exactly(likelihood):
    cases = first_of(likelihood)
    assert {which.estimator for _, which in cases} == set(ESTIMATORS)
    for number, which in cases:  # the first that is not proved ends it: to refute takes a while
        proof = prove_case(weighted_case(number, which), number)
        assert proof.proved, f"{which}: {proof}"


@pytest.mark.equation("D45")
def test_copies_are_weights_exactly():
    # in exact arithmetic: the value of the copies, with the gradient of the weights
    number, which = next(iter(first_of("gaussian-learned")))
    plain = numbered_case(number, which, FAR_LEFT)
    counts = np.arange(len(plain.x)) % 3 + 1
    copied = np.repeat(np.arange(len(plain.x)), counts)
    built = with_row_weights(plain, counts).estimator

    def mixed(theta, noise, x, y):
        value = plain.estimator.value_and_grad(theta, noise, x[copied], y[copied]).value
        weights = np.full((len(y), 1), 1, y.dtype) * counts[:, None]
        weighted = np.concatenate([y, weights], axis=1)
        return value, built.value_and_grad(theta, noise, x, weighted).grad

    assert prove(mixed, plain.theta, plain.noise, plain.x, plain.y).proved


@pytest.mark.equation("D33", "D45")
@pytest.mark.parametrize("learn", [False, True])
def test_what_samplers_draw_from_has_copies_as_weights(learn):
    rng = np.random.default_rng(0)
    model = Model(MLP((2, 3, 1), "tanh"), GaussianPrior(), GaussianLikelihood(0.5, learn))
    x, y = rng.standard_normal((6, 2)), rng.standard_normal((6, 1))
    counts = np.array([1, 0, 2, 4, 1, 3])
    copied = np.repeat(np.arange(6), counts)
    weighted = LogJoint(model.weighted(), x, with_weights(y, counts))
    copies = LogJoint(model, x[copied], y[copied])
    position = weighted.draw_prior(rng, 3)
    assert weighted.layout == copies.layout
    for one, other in zip(weighted(position), copies(position), strict=True):
        assert np.allclose(one, other, rtol=1e-12, atol=1e-12)


@given(st.integers(1, 3), seeds)
def test_weights_are_no_output_of_the_model(targets, seed):
    for likelihood in CHECKED_LIKELIHOODS.values():
        weighted = Weighted(likelihood)
        heads = likelihood.heads(targets)
        assert weighted.heads(targets + 1) == heads
        assert weighted.targets(heads) == targets + 1
        assert weighted.blocks(targets + 1) == likelihood.blocks(targets)
        assert np.array_equal(weighted.init(targets + 1, float), likelihood.init(targets, float))
        assert weighted.target_kind == likelihood.target_kind
        assert weighted.heavy_tails == likelihood.heavy_tails
        f, _, params, rng = case(likelihood, seed, targets=targets)
        assert weighted.mean(params, f).shape == (2, 4, targets)
        assert weighted.draw(rng, params, f).shape == (2, 4, targets)
        same = weighted.variance(params, f), likelihood.variance(params, f)
        assert np.array_equal(*same)


def test_weights_are_checked_with_the_targets():
    likelihood = Weighted(PoissonLikelihood())
    y = np.array([[1.0, 2.0, 1.0], [0.0, 3.0, 0.5]])
    likelihood.check_targets(y, np.float64)
    assert total_weight(y) == 1.5
    for bad, message in ((-1.0, "-1.0 at row 1"), (np.nan, "nan at row 1"), (np.inf, "inf")):
        y[1, 2] = bad
        with pytest.raises(ValueError, match=f"weights of rows.*{message}"):
            likelihood.check_targets(y, np.float64)
    with pytest.raises(ValueError, match="are all 0"):
        likelihood.check_targets(np.zeros((2, 3)), np.float64)
    with pytest.raises(ValueError, match="counts must be whole numbers"):
        likelihood.check_targets(np.array([[0.5, 1.0]]), np.float64)


@pytest.mark.parametrize("column", [0, 1, 2])
def test_every_column_but_the_weights_is_checked_as_targets(column):
    y = np.array([[1.0, 2.0, 3.0, 0.5], [0.0, 3.0, 1.0, 0.5]])  # a weight need not be whole
    Weighted(PoissonLikelihood()).check_targets(y, np.float64)
    y[1, column] = 0.5
    with pytest.raises(ValueError, match="counts must be whole numbers"):
        Weighted(PoissonLikelihood()).check_targets(y, np.float64)
