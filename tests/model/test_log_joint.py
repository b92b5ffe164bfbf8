"""log P(w, u, D) over weights and scales, one set per chain, and its gradient (D33)."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from pairwise_cover import cover
from problems import COMPLEX_STEP, relative_error
from scipy import stats

from bbb_numpy import MLP, MeanField, Model, Reparameterised, prove
from bbb_numpy.model import log_joint
from bbb_numpy.model.log_joint import LogJoint
from bbb_numpy.numeric import threads
from bbb_numpy.parts.hyperpriors import HalfCauchy, HalfNormal, LogNormal
from bbb_numpy.registry import CHECKED_LIKELIHOODS, CHECKED_PRIORS

HYPERPRIORS = {"prior_log_scale": HalfCauchy(0.5), "log_noise": HalfNormal(0.3)}
OTHERS = LogNormal(width=0.5)  # a binary fraction: exact proofs take no other constants
BLOCKS = [log_joint.MAX_ACTIVATIONS, 60]  # seven rows at once, and in three blocks
# every prior with every likelihood, and either with every power of the likelihood and block
MODELS = cover(product(CHECKED_PRIORS, CHECKED_LIKELIHOODS, [1.0, 0.3, 0.0], BLOCKS))


def problem(prior="gaussian-learned", likelihood="gaussian-learned", power=1.0, named=True):
    """A target, and positions of four chains that differ in weights and scales."""
    rng = np.random.default_rng(0)
    part = CHECKED_LIKELIHOODS[likelihood]
    model = Model(MLP((2, 4, part.heads(2)), "tanh"), CHECKED_PRIORS[prior], part)
    x = rng.standard_normal((7, 2))
    y = rng.standard_normal((7, 2))
    if part.target_kind != "real":  # rows that are counts, answers and classes
        y = np.eye(2)[rng.integers(0, 2, 7)]
    names = [name for name, _ in model.learned()]
    hyperpriors = {name: HYPERPRIORS.get(name, OTHERS) for name in names} if named else {}
    target = LogJoint(model, x, y, hyperpriors, power)
    position = 0.6 * rng.standard_normal((4, target.layout.size))
    return target, position


def complex_rows(target, position):
    """Gradients (S, D) by the complex step, each chain for itself."""
    out = np.empty_like(position)
    for d in range(position.shape[1]):
        stepped = position.astype(complex)
        stepped[:, d] += 1j * COMPLEX_STEP
        out[:, d] = target(stepped)[0].imag / COMPLEX_STEP
    return out


@pytest.fixture
def rows_in_blocks(block, monkeypatch):
    monkeypatch.setattr(log_joint, "MAX_ACTIVATIONS", block)


@pytest.mark.equation("D33", "D32", "D39", "D17", "D1", "D42", "D43")
@pytest.mark.parametrize(("prior", "likelihood", "power", "block"), MODELS)
@pytest.mark.usefixtures("rows_in_blocks")
class TestEveryModel:
    def test_the_gradient_of_four_sets_of_weights_and_scales_is_proved(
        self, prior, likelihood, power
    ):
        target, position = problem(prior, likelihood, power)

        def value_and_grad(theta):
            own_memory = replace(target)
            value, gradient = own_memory(theta.reshape(position.shape))
            return value.sum(), gradient.ravel()

        proof = prove(value_and_grad, position.ravel(), n_points=0)
        assert proof.proved, proof

    def test_every_chain_is_what_it_is_alone(self, prior, likelihood, power):
        target, position = problem(prior, likelihood, power)
        value, gradient = target(position)
        for s in range(4):
            alone = target(position[[s]])
            np.testing.assert_allclose(alone[0][0], value[s], rtol=1e-12)
            np.testing.assert_allclose(alone[1][0], gradient[s], rtol=1e-10, atol=1e-12)

    def test_its_value_is_prior_plus_likelihood_plus_hyperprior(self, prior, likelihood, power):
        target, position = problem(prior, likelihood, power)
        value, _ = target(position)
        rows = target.rowwise(position)
        assert rows.shape == (4, 7)
        np.testing.assert_allclose(target.log_likelihood(position), rows.sum(axis=1), rtol=1e-13)
        tempered = replace(target, power=0.0)(position)[0]
        np.testing.assert_allclose(value, tempered + power * rows.sum(axis=1), rtol=1e-12)


@pytest.mark.equation("D33", "K5")
def test_it_is_the_log_joint_in_the_free_energy():
    """F = log q - log P(w) - log P(D|w) of one weight sample, with the scales of theta."""
    target, position = problem(named=False)
    estimator = Reparameterised(target.model, MeanField())
    rng = np.random.default_rng(1)
    theta, noise = estimator.init(rng), estimator.draw(rng, 1)
    theta[-3:] = position[0, -3:]
    free, _, terms = estimator.value_and_grad(theta, noise, target.x, target.y)
    w = estimator.weights(theta, noise)
    value, _ = target(np.concatenate([w, position[:1, -3:]], axis=1))
    hyper = sum(
        LogNormal().log_density(u, target._initial_values[name]).sum()
        for name, u in target.params(position[:1]).items()
    )
    joint = terms.posterior[0] - free
    np.testing.assert_allclose(value[0] - hyper, joint, rtol=1e-12)


@pytest.mark.equation("D33")
@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.usefixtures("rows_in_blocks")
@pytest.mark.parametrize("likelihood", CHECKED_LIKELIHOODS)
def test_equal_rows_may_be_evaluated_once(likelihood):
    """Five copies of the data are the power 5 of its likelihood."""
    target, position = problem("laplace", likelihood)
    names = [name for name, _ in target.model.learned()]
    plain = LogJoint(target.model, target.x, target.y, dict.fromkeys(names, LogNormal()))
    order = np.random.default_rng(3).permutation(35)
    x, y = (np.tile(part, (5, 1))[order] for part in (target.x, target.y))
    repeated = replace(plain, x=x, y=y)
    value, gradient = repeated(position)
    none, slope = replace(plain, power=0.0)(position)
    once = plain(position)
    np.testing.assert_allclose(value, none + 5 * (once[0] - none), rtol=1e-12)
    np.testing.assert_allclose(gradient, slope + 5 * (once[1] - slope), rtol=1e-9, atol=1e-10)
    assert relative_error(gradient, complex_rows(repeated, position)) < 1e-11
    np.testing.assert_allclose(repeated.log_likelihood(position), value - none, rtol=1e-11)
    assert repeated.rowwise(position).shape == (4, 35)
    tempered = replace(repeated, power=0.3)(position)
    np.testing.assert_allclose(tempered[0], none + 0.3 * (value - none), rtol=1e-12)


@pytest.mark.equation("D64")
@pytest.mark.parametrize("likelihood", CHECKED_LIKELIHOODS)
def test_minibatches_are_of_their_rows_and_in_the_mean_of_all(likelihood):
    """Each chain by itself, with weights of rows; over all 49 draws of two rows the mean."""
    target, position = problem(likelihood=likelihood)
    target = replace(target, sample_weight=np.array([2.0, 1.0, 0.0, 1.5, 1.0, 3.0, 0.5]), power=0.3)
    rows = target.draw_rows(np.random.default_rng(0), 4, 5)
    assert rows.shape == (4, 5)
    value, gradient = target(position, rows)
    for chain, chain_rows in enumerate(rows):
        fields = {name: getattr(target, name)[chain_rows] for name in ("x", "y", "sample_weight")}
        alone, slope = replace(target, power=0.3 * 7 / 5, **fields)(position[[chain]])
        np.testing.assert_allclose(value[chain], alone[0], rtol=1e-12)
        np.testing.assert_allclose(gradient[chain], slope[0], rtol=1e-10, atol=1e-12)
    every = [target(position, np.tile(pair, (4, 1))) for pair in product(range(7), repeat=2)]
    for values, expected in zip(zip(*every, strict=True), target(position), strict=True):
        np.testing.assert_allclose(np.mean(values, axis=0), expected, rtol=1e-10, atol=1e-12)
    assert target.draw_rows(np.random.default_rng(0), 4, 7) is None


@pytest.mark.equation("D33")
def test_blocks_lie_weights_first_then_scales():
    target, position = problem()
    names = [name for name, _ in target.layout.blocks]
    assert names == ["W0", "b0", "W1", "b1", "prior_log_scale", "log_noise"]
    assert np.shares_memory(target.weights(position), position)
    params = target.params(position)
    np.testing.assert_array_equal(params["log_noise"], position[:, -2:])
    np.testing.assert_array_equal(params["prior_log_scale"], position[:, [-3]])
    assert target.layout.size == position.shape[1]


@pytest.mark.equation("D33")
@pytest.mark.parametrize("name", HYPERPRIORS)
def test_a_hyperprior_looks_at_the_numbers_of_its_name(name):
    target, position = problem()
    hyperprior, other = HYPERPRIORS[name], HalfNormal(2.0)
    u, start = target.params(position)[name], target._initial_values[name]
    exchanged = replace(target, hyperpriors=HYPERPRIORS | {name: other})
    expected = (hyperprior.log_density(u, start) - other.log_density(u, start)).sum(axis=1)
    np.testing.assert_allclose(target(position)[0] - exchanged(position)[0], expected, rtol=1e-9)


@pytest.mark.equation("D32", "D33", "D39")
@pytest.mark.parametrize("prior", CHECKED_PRIORS)
def test_draws_from_the_prior_follow_the_hyperpriors(prior):
    target, _ = problem(prior)
    rng = np.random.default_rng(2)
    position = target.draw_prior(rng, 4000)
    params = target.params(position)
    for noise in np.exp(params["log_noise"]).T:
        assert stats.kstest(noise, stats.halfnorm(scale=0.3).cdf).pvalue > 1e-3
    for name in ("prior_log_df", "prior_mixture"):
        if name in params:
            cdf = stats.norm(target._initial_values[name][-1], OTHERS.width).cdf
            assert stats.kstest(params[name][:, -1], cdf).pvalue > 1e-3
    if "prior_log_scale" in params:
        scale = np.exp(params["prior_log_scale"])
        for layer in scale.T:
            assert stats.kstest(layer, stats.halfcauchy(scale=0.5).cdf).pvalue > 1e-3
        assert np.abs(np.corrcoef(np.log(scale).T) - np.eye(scale.shape[1])).max() < 4 / 4000**0.5
    assert target.draw_prior(rng, 2, np.float32).dtype == np.float32
    # draws have finite density under the target without data
    assert np.isfinite(replace(target, power=0.0)(position)[0]).all()


def test_overflow_gives_no_number_and_no_exception():
    target, position = problem()
    position[0] = 1e200
    with np.errstate(all="ignore"):
        value, _ = target(position)
    assert not np.isfinite(value[0])
    assert np.isfinite(value[1:]).all()


@pytest.mark.parametrize(("copies", "evaluated"), [(1, 7), (1.5, 10), (2, 7), (5, 7)])
def test_equal_rows_are_evaluated_once_if_that_halves_them(copies, evaluated):
    target, _ = problem("gaussian", "gaussian")
    rows = np.resize(np.arange(7), int(7 * copies))
    [(x, y, weights)] = replace(target, x=target.x[rows], y=target.y[rows])._row_blocks(2)
    assert len(x) == len(y) == evaluated
    assert weights is None if len(rows) < 14 else (weights == copies).all()


@pytest.mark.parametrize(("block", "sizes"), [(28, [7]), (14, [2, 2, 3]), (1, [1] * 7)])
@pytest.mark.usefixtures("rows_in_blocks")
def test_a_block_has_as_many_rows_as_fit_but_one_at_least(sizes):
    """The layers have six units. Two chains have blocks of half as many rows."""
    assert sum(len(x) for x, _, _ in problem()[0]._row_blocks(2)) == 7
    assert len(problem()[0]._row_blocks(2)) >= min(7, 2 * len(sizes))
    assert [len(x) for x, _, _ in problem()[0]._row_blocks(1)] == sizes


def test_a_copy_of_a_used_target_has_the_same_values_and_no_memory_of_its_own():
    target, position = problem()
    value, _ = target(position)
    for copy in (pickle.loads(pickle.dumps(target)), deepcopy(target), replace(target)):
        assert not copy.buffers.by_size
        np.testing.assert_array_equal(copy(position)[0], value)
    assert "buffers" not in repr(target)


def test_without_rows_it_is_the_prior():
    target, position = problem()
    without_rows = replace(target, x=target.x[:0], y=target.y[:0])(position)
    assert all(map(np.array_equal, without_rows, replace(target, power=0.0)(position)))


NONE = problem("gaussian", "gaussian")[0]
REFUSED = [
    ({"x": np.zeros((7, 3))}, r"x must have shape \(any, 2\); got \(7, 3\)"),
    ({"x": np.zeros(7)}, r"x must have shape \(any, 2\); got \(7,\)"),
    ({"y": np.zeros((6, 2))}, r"y must have shape \(7, 2\); got \(6, 2\)"),
    ({"hyperpriors": {"noise": LogNormal()}}, "which are prior_log_scale, log_noise; got 'noise'"),
    ({"power": 1.5}, "power must be between 0 and 1; got 1.5"),
    ({"power": np.nan}, "power must be between 0 and 1"),
    ({"model": MLP((2, 1))}, "model must be an object of type Model"),
    ({"x": [[0.0, 1.0]] * 7}, "x must be an "),
    ({"y": np.zeros((7, 2), int)}, "y must be of dtype float64 or float32; got int64"),
    ({"y": np.zeros((7, 2), object)}, "y must be of dtype float64 or float32; got object"),
    ({"x": np.zeros((7, 2), np.float16)}, "x must be of dtype float64 or float32; got float16"),
    ({"sample_weight": ["1"] * 7}, "sample_weight must be an array of real numbers"),
    ({"sample_weight": np.full(7, -1.0)}, "sample_weight must be >= 0; got -1.0"),
    ({"hyperpriors": [LogNormal()]}, "hyperpriors must be a mapping"),
    (
        {"model": NONE.model, "hyperpriors": {"log_noise": LogNormal()}},
        "which are none, as nothing is learned",
    ),
]


@pytest.mark.parametrize(("change", "message"), REFUSED)
def test_what_does_not_fit_is_refused_by_name(change, message):
    with pytest.raises((TypeError, ValueError), match=message):
        replace(problem()[0], **change)


@pytest.mark.parametrize("half", [np.float16(0.5), np.array(0.5), Fraction(1, 2)])
def test_the_power_is_stored_as_a_float(half):
    target, position = problem()
    tempered = replace(target, power=half)
    assert type(tempered.power) is float
    np.testing.assert_array_equal(tempered(position)[0], replace(target, power=0.5)(position)[0])


def test_weights_of_rows_may_be_whole_numbers_and_are_stored_in_the_dtype_of_the_rows():
    target, position = problem()
    counted = replace(target, sample_weight=np.arange(7, dtype=np.uint8))
    assert counted.sample_weight.dtype == target.y.dtype
    listed = replace(target, sample_weight=list(range(7)))
    np.testing.assert_array_equal(listed(position)[1], counted(position)[1])


@pytest.mark.parametrize(
    "reshaped",
    [
        lambda position: position[0],
        lambda position: position[:, :-1],
        lambda position: position.tolist(),
        lambda position: position.astype(int),
        lambda position: position.astype(object),
    ],
)
def test_positions_of_another_shape_are_refused_with_the_one_that_is_wanted(reshaped):
    target, position = problem()
    with pytest.raises(
        ValueError, match=r"position must be an array of shape \(chains, 25\) of floats; got "
    ):
        target(reshaped(position))


def test_halves_of_the_blocks_are_summed_alike_on_one_and_two_cores(monkeypatch):
    monkeypatch.setattr(log_joint, "MAX_ACTIVATIONS", 28)  # a block a row
    target, position = problem()
    monkeypatch.setattr(threads, "_second_thread", lambda: None)
    alone = target(position)
    with ThreadPoolExecutor(1) as executor:
        monkeypatch.setattr(threads, "_second_thread", lambda: executor)
        for ours, in_turn in zip(target(position), alone, strict=True):
            np.testing.assert_array_equal(ours, in_turn)
