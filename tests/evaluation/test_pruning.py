"""Removing weights by their signal-to-noise ratio removes just these, and no others."""

import numpy as np
import pytest

from bbb_numpy import MLP, GaussianLikelihood, GaussianPrior, MeanField, Model, Reparameterised
from bbb_numpy.evaluation.pruning import (
    decibels,
    lowest,
    matrices,
    prune,
    signal_to_noise,
    signal_to_noise_of,
)
from bbb_numpy.numeric.elementary import inverse_softplus
from bbb_numpy.parts.full_rank import FullRank

MODEL = Model(MLP((3, 6, 1), "tanh"), GaussianPrior(1.0), GaussianLikelihood(0.3, learn=True))
SIZE = MODEL.layout.size


def spread_out(dtype=np.float64):
    """A family and a theta whose ratios are 1, 2, ..., P in a random order."""
    family, rng, size = Reparameterised(MODEL, MeanField()), np.random.default_rng(0), SIZE
    theta = family.init(rng)
    blocks = family.layout.views(theta)
    rank = rng.permutation(size) + 1.0
    deviation = rng.uniform(0.1, 2.0, size)
    blocks["mu"][...] = rank * deviation * rng.choice([-1.0, 1.0], size)
    blocks["rho"][...] = inverse_softplus(deviation)
    return family, theta.astype(dtype), rank


@pytest.mark.equation("D36")
def test_the_ratio_is_that_of_mean_and_deviation():
    family, theta, rank = spread_out()
    assert signal_to_noise_of(family, theta) == pytest.approx(rank, rel=1e-12)
    assert signal_to_noise(-3.0, 1.5) == 2.0
    assert signal_to_noise(-1e300, 1e-300) == np.inf
    assert np.flatnonzero(~matrices(MLP((2, 3, 1)).layout)).tolist() == [6, 7, 8, 12]
    assert decibels([1.0, 10.0, 0.0]).tolist() == [0.0, 10.0, -np.inf]


@pytest.mark.equation("D36")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("share", [0.0, 0.5, 0.98, 1.0])
def test_removed_weights_are_exactly_zero_in_every_sample_and_others_untouched(share, dtype):
    estimator, theta, rank = spread_out(dtype)
    copy_of_theta = theta.copy()
    pruned = prune(estimator, theta, share)
    removed = rank <= round(share * SIZE)
    assert removed.sum() == round(share * SIZE)
    noise = estimator.draw_weights(np.random.default_rng(1), 50, dtype)
    w = estimator.weights(pruned, noise).copy()
    assert (w[:, removed] == 0.0).all()
    assert (w[:, ~removed] == estimator.weights(theta, noise)[:, ~removed]).all()
    assert (theta == copy_of_theta).all(), "the theta passed in is never changed"
    assert pruned.dtype == dtype
    assert (pruned[2 * SIZE :] == theta[2 * SIZE :]).all(), "learned noise is no weight"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: lowest(np.ones(3), 1.2), "between 0 and 1; got 1.2"),
        (lambda: lowest(np.ones(3), 0.5, np.ones(2, bool)), r"3 ratios; .* shape \(2,\)"),
        (lambda: lowest(np.ones(3), 0.5, np.ones(3)), "dtype float64"),
        (lambda: lowest(np.array([np.nan, 1]), 0.5), "ratio must be >= 0; got nan"),
        (lambda: signal_to_noise([1.0], [0.0]), "scale must be > 0; got 0"),
        (
            lambda: prune(Reparameterised(MODEL, FullRank()), np.zeros(1), 0.5),
            "MeanField posterior; got FullRank",
        ),
    ],
)
def test_errors_say_what_came_and_what_is_accepted(call, message):
    with pytest.raises(ValueError, match=message):
        call()
