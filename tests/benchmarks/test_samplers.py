"""The samplers' benchmark: both sides sample the same posterior, and count alike."""

import warnings
from time import perf_counter

import numpy as np
import pytest

from bbb_numpy import MLP, BernoulliLikelihood, GaussianLikelihood, GaussianPrior, Model
from bbb_numpy.model.log_joint import LogJoint

pytest.importorskip("arviz")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what a peer says of itself on import
    peer = pytest.importorskip("benchmarks.peer_blackjax", reason="needs blackjax and JAX")
    from benchmarks import effective, samplers

RNG = np.random.default_rng(0)
X = RNG.standard_normal((9, 2))
REAL = LogJoint(
    Model(MLP((2, 4, 1)), GaussianPrior(0.5, learn=True), GaussianLikelihood(0.3, learn=True)),
    X,
    X[:, :1] - X[:, 1:] ** 2,
)
CLASSES = LogJoint(
    Model(MLP((2, 4, 1), "tanh"), GaussianPrior(2.0), BernoulliLikelihood()),
    X,
    (X[:, :1] > 0) * 1.0,
)


@pytest.fixture(autouse=True)
def _double():
    import jax

    with jax.enable_x64(True):
        yield


@pytest.mark.parametrize("target", [REAL, CLASSES])
def test_both_sides_have_the_same_gradient_and_the_same_density_but_for_a_constant(target):
    position = target.draw_prior(np.random.default_rng(1), 5)
    value, gradient = target(position)
    theirs, slopes = (np.asarray(part) for part in peer.gradient(target)(position))
    np.testing.assert_allclose(slopes, gradient, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(np.ptp(theirs - value), 0.0, atol=1e-9)


@pytest.mark.slow
def test_a_block_of_either_side_counts_the_gradients_of_all_chains():
    position = 0.1 * CLASSES.draw_prior(np.random.default_rng(1), 3)
    variance = np.ones(CLASSES.layout.size)
    kernel = samplers.HMC(0.01, 0.05, samplers.DiagonalMetric(variance), jitter=0.0)
    theirs = peer.hmc(CLASSES, 0.01, variance, 5, 4)
    with (
        samplers.on_cores(CLASSES, kernel, 4, 2) as two,
        samplers.on_cores(CLASSES, kernel, 4, 1) as one,
    ):
        for block in (one, two, theirs):
            positions, gradients = block(position, 0)
            assert positions.shape == (4, 3, CLASSES.layout.size)
            assert gradients == 4 * 3 * 5
        positions, again = two(position, 0)[0], two(position, 0)[0]
    np.testing.assert_array_equal(positions, again)
    assert np.ptp(positions, axis=1).min() > 0, "every chain goes a way of its own"


@pytest.mark.slow
def test_all_contestants_for_effective_samples_warm_up_and_run():
    start = 0.3 * CLASSES.draw_prior(np.random.default_rng(1), 4)
    found = effective.race(
        *(CLASSES, {"posterior": "classes"}, start, ["hmc"], peer),
        **{"default": "hmc", "warm_up": 30, "runs": 2, "seconds": 0.2, "clock": perf_counter},
    )
    rows = [one.row(("sampler",)) for one in found]
    assert [row["sampler"] for row in rows] == ["hmc", effective.PEER]
    for one in found:
        assert one.values["sampler"].shape == (2,)
        assert np.all(one.values["sampler"] > 0)
    verdict = "met" if found[0].ratios()["ratio"].median >= 2 else "MISSED"
    assert [row["bars"] for row in rows] == [f"ratio >= 2 {verdict}", "-"]
    assert rows[1]["ratio"] == "1.00"
