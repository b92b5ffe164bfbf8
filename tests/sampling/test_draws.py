"""What a sampler leaves: shapes, blocks, counts."""

import numpy as np
import pytest
from targets import Gaussian

from bbb_numpy.numeric.layout import Layout
from bbb_numpy.sampling.draws import Draws
from bbb_numpy.sampling.mcmc import (
    MCLMC,
    NUTS,
    Info,
)
from bbb_numpy.sampling.mcmc.microcanonical import bias, energy_variance


def made(draws=5, chains=3, **changes):
    rng = np.random.default_rng(0)
    shape = (draws, chains)
    stats = {name: np.zeros(shape) for name in Info._fields}
    stats["gradients"] = np.full(shape, 7)
    stats["divergent"] = np.zeros(shape, int)
    arguments = {
        "positions": rng.standard_normal((*shape, 6)),
        "log_density": rng.standard_normal(shape),
        "stats": stats,
        "kernel": NUTS(0.25),
        "target": Gaussian(np.eye(6)),
        "layout": Layout((("W0", (2, 2)), ("log_noise", (2,)))),
        "warm_up": 100,
        "warm_up_divergent": 0,
        "finished": True,
    }
    return Draws(**{**arguments, **changes})


def test_flat_takes_draw_after_draw_all_chains():
    draws = made()
    assert draws.flat.shape == (15, 6)
    np.testing.assert_array_equal(draws.flat[4], draws.positions[1, 1])


def test_blocks_are_views_of_the_positions():
    draws = made()
    assert draws.block("W0").shape == (5, 3, 2, 2)
    assert draws.block("log_noise").shape == (5, 3, 2)
    np.testing.assert_array_equal(draws.block("log_noise"), draws.positions[..., 4:])
    with pytest.raises(KeyError, match="name must be one of 'W0', 'log_noise'; got 'noise'"):
        draws.block("noise")


def test_divergences_are_counted_per_draw():
    draws = made()
    draws.stats["divergent"][0, 1] = 1
    draws.stats["divergent"][2, 0] = 3  # of several thinned steps
    assert draws.divergences == 2
    assert made().divergences == 0


@pytest.mark.equation("D50")
def test_the_bias_follows_from_the_acceptance_and_the_numbers_of_a_position():
    draws = made(kernel=MCLMC())
    draws.stats["acceptance"][:] = np.linspace(0.96, 0.98, 15).reshape(5, 3)
    assert draws.expected_bias == pytest.approx(bias(energy_variance(0.97, 6)))  # 6, not 3 chains
    assert made(draws=0, kernel=MCLMC()).expected_bias == 0.0


def test_the_summary_says_what_was_done():
    draws = made()
    draws.stats["acceptance"][:] = 0.825
    draws.stats["divergent"][0, 0] = 1
    text = draws.summary()
    assert text.startswith("5 draws of 3 chains, acceptance 0.82, step size 0.25, 1 divergent (na")
    assert "0 divergent, " in made().summary()
    assert text.endswith("105 gradient evaluations"), "NUTS has no bias to speak of"
    assert "(interrupted)" in made(finished=False).summary()
    none = made(draws=0, finished=False).summary()
    assert none == "no draws of 3 chains (interrupted)"
