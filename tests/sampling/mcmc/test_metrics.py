"""Mass matrices: momenta have covariance M, steps M^-1; kinetic energy r^T M^-1 r / 2 (M12)."""

import numpy as np
import pytest
from targets import correlated

from bbb_numpy.sampling.mcmc import (
    HMC,
    MAMS,
    MCLMC,
    NUTS,
    SGHMC,
    ChEES,
    DenseMetric,
    DiagonalMetric,
    GaussianWalk,
    Langevin,
    LogNormalWalk,
    MetropolisHastings,
)
from bbb_numpy.sampling.mcmc.metrics import identity
from bbb_numpy.sampling.run import sample_target

COVARIANCE = np.array([[2.0, 0.6, 0.0], [0.6, 0.5, -0.2], [0.0, -0.2, 1.5]])
METRICS = {
    "diagonal": (DiagonalMetric(np.diag(COVARIANCE).copy()), np.diag(np.diag(COVARIANCE))),
    "dense": (DenseMetric(COVARIANCE), COVARIANCE),
}


@pytest.mark.equation("M12")
@pytest.mark.parametrize("kind", METRICS)
def test_velocity_is_the_slope_of_the_kinetic_energy(kind):
    metric, inverse = METRICS[kind]
    momentum = np.random.default_rng(1).standard_normal((7, 3))
    np.testing.assert_allclose(metric.velocity(momentum), momentum @ inverse, atol=1e-14)
    expected = 0.5 * np.einsum("si,ij,sj->s", momentum, inverse, momentum)
    np.testing.assert_allclose(metric.kinetic(momentum), expected, rtol=1e-14)


@pytest.mark.equation("M12")
@pytest.mark.parametrize("kind", METRICS)
def test_whitened_offsets_have_the_length_that_the_mass_matrix_gives_them(kind):
    metric, inverse = METRICS[kind]
    offset = np.random.default_rng(3).standard_normal((7, 3))
    white = metric.whiten(offset)
    expected = np.einsum("si,ij,sj->s", offset, np.linalg.inv(inverse), offset)
    np.testing.assert_allclose(np.sum(white * white, axis=1), expected, rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_dtype_is_that_of_the_chains(dtype):
    like = np.ones((2, 3), dtype)
    for metric in (
        identity(like),
        DiagonalMetric(np.ones(3, dtype)),
        DenseMetric(np.eye(3, dtype=dtype)),
    ):
        rng = np.random.default_rng(0)
        assert metric.draw_momentum(rng, like).dtype == dtype
        assert metric.draw_step(rng, like).dtype == dtype
        assert metric.velocity(like).dtype == dtype
        assert metric.kinetic(like).dtype == dtype


# --- what is refused: metrics, and all that kernels and proposals are made with ------------------

METRIC = r"metric must be an object such as DiagonalMetric\(variance\) or .*, or None; got "
SCALED = (HMC, NUTS, ChEES, MAMS, MCLMC, SGHMC, GaussianWalk, Langevin)
LONG = (HMC, ChEES, MAMS, MCLMC)
ONE, THREE = np.zeros((4, 1)), np.zeros((2, 3))
GAUSSIAN = correlated()


def sampled(start, sampler, target_accept=None):
    target = correlated(deviations=np.ones(start.shape[1]))
    sample_target(target, start, sampler=sampler, target_accept=target_accept, draws=5)


@pytest.mark.equation("D48")
@pytest.mark.parametrize(
    ("make", "given", "message"),
    [
        (DiagonalMetric, [np.array([1.0, 0.0])], "variance must be a vector of finite .* > 0; got"),
        (DiagonalMetric, [np.array([1.0, np.nan])], "variance must be a vector of finite numbers"),
        (DiagonalMetric, [np.array([np.inf])], "variance must be a vector of finite numbers > 0"),
        (DiagonalMetric, [np.array([[1.0]])], "variance must be a vector of finite numbers > 0"),
        (DiagonalMetric, [[[1.0], 2.0]], "variance must be an array of numbers; got"),
        (DenseMetric, [[None]], "covariance must be an array of numbers; got"),
        (DenseMetric, [np.ones((2, 3))], r"square matrix; got shape \(2, 3\)"),
        (DenseMetric, [np.ones(2)], r"square matrix; got shape \(2,\)"),
        (DenseMetric, [np.array([[1.0, 0.5], [0.4, 1.0]])], "symmetric, of finite numbers; got"),
        (DenseMetric, [np.array([[1e-9, 1e-10], [5e-10, 1e-9]])], "symmetric, of finite numbers"),
        (DenseMetric, [np.array([[1.0, 0.0], [0.0, np.inf]])], "symmetric, of finite numbers; got"),
        (DenseMetric, [np.array([[1.0, 2.0], [2.0, 1.0]])], "positive definite"),
        *((kind, {"metric": np.ones(3)}, METRIC + "an array") for kind in SCALED),
        *((kind, {"metric": DiagonalMetric}, METRIC + "the class Diag") for kind in SCALED),
        *((kind, [0.0], "step_size must be positive and finite; got 0.0") for kind in SCALED),
        *((kind, ["a"], "step_size must be positive and finite; got 'a'") for kind in SCALED),
        *((kind, {"max_steps": 0}, "max_steps must be a whole number >= 1") for kind in LONG),
        *((kind, {"max_steps": 10**10}, "max_steps must be .* <= 1000000000") for kind in LONG),
        *((kind, {"path": -1.0}, "path must be positive") for kind in (HMC, ChEES)),
        (HMC, {"jitter": np.nextafter(1.0, 2.0)}, "jitter must be between 0 and 1"),
        (HMC, {"small_steps": -0.1}, "small_steps must be between 0 and 1; got -0.1"),
        (NUTS, {"max_depth": 0}, "max_depth must be a whole number >= 1; got 0"),
        (NUTS, {"max_depth": 31}, "max_depth must be .* <= 30; got 31"),
        (MAMS, {"decoherence_length": -1.0}, "decoherence_length must be positive"),
        (MCLMC, {"energy_variance": 0.0}, "energy_variance must be positive"),
        (SGHMC, {"friction": 0.0}, "friction must be positive"),
        (SGHMC, {"friction": -np.inf}, "friction must be positive"),
        (SGHMC, {"steps": 0}, "steps must be a whole number >= 1"),
        (SGHMC, {"batch_size": 0}, "batch_size must be a whole number >= 1"),
        (SGHMC, {"cycle": 0}, "cycle must be a whole number >= 1"),
        (SGHMC, {"exploring": 1.0, "cycle": 2}, "exploring must be .* < 1; got 1.0"),
        (SGHMC, {"exploring": 0.5}, "must be 0 if cycle is None.*Set cycle too"),
        (SGHMC, {"temperature": 0.0}, "temperature must be positive"),
        (SGHMC, {"bias": np.inf}, "bias must be positive"),
        (LogNormalWalk, [np.inf], "step_size must be positive"),
        (MetropolisHastings, ["gaussian"], "^proposal must be an object such as"),
        (MetropolisHastings, [GaussianWalk], "^proposal must be an object such as"),
        (ChEES().step, [GAUSSIAN, None, HMC().init(GAUSSIAN, THREE)], "ChEES.init.*got a State"),
        (
            sampled,
            [THREE[:1], "chees"],
            r"2 chains or more.*got 1. Set chains=2 or more.*HMC\(path",
        ),
        (sampled, [ONE, "mams"], "must have 2 numbers or more.*Use 'nuts'"),
        (sampled, [THREE, "sghmc", 0.9], "must be None for SGHMC.*a smaller bias"),
        (sampled, [THREE, "mclmc", 0.9], "must be None for MCLMC.*energy_variance"),
    ],
)
def test_wrong_arguments_are_refused(make, given, message):
    with pytest.raises((TypeError, ValueError), match=message):
        make(**given) if isinstance(given, dict) else make(*given)


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.float16, bool])
def test_small_whole_numbers_make_a_metric_of_doubles(dtype):
    """NumPy's root of a small integer has three digits."""
    numbers = np.eye(2, dtype=dtype)
    for metric in (DiagonalMetric(numbers.diagonal()), DenseMetric(numbers)):
        assert metric.velocity(np.ones((1, 2))).dtype == np.float64
        assert metric.whiten(np.ones((1, 2), np.float16)).dtype == np.float64
