"""The leapfrog: its energy error is of order two (M8).

That it is reversible and preserves volume, exactly: test_exact_invariance.py.
"""

import numpy as np
import pytest
from targets import Banana, Funnel, correlated, network_target, path

from bbb_numpy.sampling.mcmc import (
    HMC,
    MAMS,
    MCLMC,
    NUTS,
    DenseMetric,
    DiagonalMetric,
    Phase,
    hamiltonian,
    init,
)

NETWORK = network_target()
TARGETS = {"gaussian": correlated(), "banana": Banana(), "funnel": Funnel(), "network": NETWORK}
SIZES = {"gaussian": 3, "banana": 2, "funnel": 3, "network": NETWORK.layout.size}


def metrics(size, seed=3):
    """A diagonal and a dense metric that have nothing to do with the target."""
    rng = np.random.default_rng(seed)
    mixed = rng.standard_normal((size, size))
    dense = DenseMetric(mixed @ mixed.T / size + 0.5 * np.eye(size))
    return {"diagonal": DiagonalMetric(rng.uniform(0.5, 2.0, size)), "dense": dense}


def beginning(target, metric, size, chains=5, seed=1):
    rng = np.random.default_rng(seed)
    state = init(target, 0.5 * rng.standard_normal((chains, size)))
    return Phase(state.position, metric.draw_momentum(rng, state.position), *state[1:])


@pytest.mark.equation("M8")
@pytest.mark.parametrize("kind", ["diagonal", "dense"])
@pytest.mark.parametrize("name", TARGETS)
def test_its_energy_error_is_of_order_two(name, kind):
    target, metric = TARGETS[name], metrics(SIZES[name])[kind]
    start = beginning(target, metric, SIZES[name])
    initial_energy, steps = hamiltonian(metric, start), np.array([64, 128, 256, 512])
    ends = [path(target, metric, start, 0.5 / count, count) for count in steps]
    gaps = np.array([hamiltonian(metric, end) for end in ends]) - initial_energy
    errors = np.sqrt(np.mean(gaps**2, axis=1))
    assert abs(np.polyfit(-np.log(steps), np.log(errors), 1)[0] - 2) < 0.1
    # of the energy that goes to and fro between potential and kinetic: without a unit, and
    # of the order (omega eps)^2 with omega eps far below 1/10
    exchanged = metric.kinetic(ends[-1].momentum) - metric.kinetic(start.momentum)
    assert errors[-1] < 1e-3 * np.sqrt(np.mean(exchanged**2))


@pytest.mark.equation("M8")
def test_the_energy_is_potential_plus_kinetic_and_infinite_where_undefined():
    target, metric = correlated(), metrics(3)["dense"]
    phase = beginning(target, metric, 3)
    expected = metric.kinetic(phase.momentum) - phase.log_density
    np.testing.assert_allclose(hamiltonian(metric, phase), expected, rtol=1e-15)
    for value, momentum in ((-np.inf, 0.0), (np.nan, 0.0), (0.0, np.inf), (np.inf, np.inf)):
        broken = Phase(
            np.zeros((1, 3)), np.full((1, 3), momentum), np.array([value]), np.zeros((1, 3))
        )
        assert hamiltonian(DiagonalMetric(np.ones(3)), broken) == np.inf


@pytest.mark.parametrize("kernel", [HMC(100.0, 100.0), NUTS(100.0), MAMS(100.0), MCLMC(100.0)])
@pytest.mark.parametrize(("depth", "divergent"), [(999.5, False), (1000.5, True)])
def test_a_step_that_loses_more_than_a_thousand_nats_diverges(kernel, depth, divergent):
    """On a flat table whose edge every step passes: all the energy error is the fall."""

    def table(position):
        there = np.hypot(*position.T) < 1.0
        return np.where(there, 0.0, -depth), np.zeros_like(position)

    state = kernel.init(table, np.zeros((3, 2)))
    _, info = kernel.step(table, np.random.default_rng(0), state)
    np.testing.assert_array_equal(info.divergent, divergent)
    np.testing.assert_array_equal(info.acceptance, 0.0)
