"""Warm-up: dual averaging, windows, moments, metrics (M11, M12)."""

import re
from math import exp

import numpy as np
import pytest
from targets import Banana, Gaussian, correlated

from bbb_numpy.sampling.mcmc import (
    HMC,
    NUTS,
    ChEES,
    DenseMetric,
    DiagonalMetric,
    GaussianWalk,
    Info,
    Langevin,
    LogNormalWalk,
    MetropolisHastings,
    State,
)
from bbb_numpy.sampling.mcmc.adaptation import (
    DualAveraging,
    Moments,
    first_step_size,
    windows,
)
from bbb_numpy.sampling.mcmc.metrics import identity
from bbb_numpy.sampling.run import sample_target

TUNED = {
    "nuts": (NUTS(), 0.8),
    "hmc": (HMC(), 0.8),
    "walk": (MetropolisHastings(GaussianWalk()), 0.234),
    "langevin": (MetropolisHastings(Langevin()), 0.574),
}


# --- dual averaging --------------------------------------------------------------------------


def averaged(respond, draws=2000, start=1.0, sign=1.0):
    """Run dual averaging on an acceptance that is a function of the step size."""
    state = DualAveraging.start(start)
    for _ in range(draws):
        state = state.update(sign * (0.8 - respond(exp(state.log_step))))
    return state


@pytest.mark.equation("M11")
@pytest.mark.parametrize("start", [1e-4, 1.0, 1e3])
@pytest.mark.parametrize("scale", [0.01, 1.0, 50.0])
def test_dual_averaging_finds_the_step_size_of_the_wanted_acceptance(start, scale):
    state = averaged(lambda eps: exp(-((eps / scale) ** 2)), start=start * scale)
    assert exp(-((exp(state.log_mean) / scale) ** 2)) == pytest.approx(0.8, abs=0.02)


@pytest.mark.equation("M11")
def test_the_first_updates_by_hand():
    """Hoffman and Gelman (2014), algorithm 6, with t0 = 10, gamma = 0.1, kappa = 0.75."""
    start = DualAveraging.start(0.5)
    first = start.update(0.3)
    assert first.mean_error == pytest.approx(0.3 / 11)
    assert first.log_step == pytest.approx(start.anchor - 0.3 / 11 / 0.1)
    assert first.log_mean == pytest.approx(first.log_step)
    second = first.update(-0.2)
    error = (1 - 1 / 12) * first.mean_error - 0.2 / 12
    assert second.mean_error == pytest.approx(error)
    assert second.log_step == pytest.approx(start.anchor - error * 2**0.5 / 0.1)
    share = 2**-0.75
    expected = share * second.log_step + (1 - share) * first.log_mean
    assert second.log_mean == pytest.approx(expected)
    assert second.n_draws == 2


def accepted(kernel, target_accept=None):
    """Mean acceptance after a warm-up on a Gaussian of 10 correlated coordinates."""
    target = correlated(0.3, np.linspace(0.5, 4.0, 10))
    start = target.draw(np.random.default_rng(0), 32)
    draws = sample_target(
        target, start, sampler=kernel, draws=30, warm_up=150, target_accept=target_accept, seed=0
    )
    return draws.stats["acceptance"].mean()


@pytest.mark.equation("M7", "M10", "M11")
@pytest.mark.parametrize("name", TUNED)
def test_on_a_gaussian_the_draws_are_accepted_as_often_as_wanted(name):
    kernel, target_accept = TUNED[name]
    assert accepted(kernel) == pytest.approx(target_accept, abs=0.06)
    assert kernel.target_accept == target_accept


@pytest.mark.equation("M11")
@pytest.mark.parametrize("start", [1e-6, 0.1, 1e4])
def test_the_first_step_size_is_where_one_step_stops_being_accepted(start):
    target, rng = Banana(), np.random.default_rng(0)
    state = NUTS().init(target, target.draw(rng, 400))
    metric = identity(state.position)
    step_size = first_step_size(target, rng, metric, state, start)
    assert 0.1 < step_size < 2
    assert (step_size / start).hex().startswith("0x1.0000000000000p"), "doublings alone"


@pytest.mark.equation("M11")
def test_the_search_for_a_first_step_size_ends():
    def flat(position):
        return np.zeros(len(position)), np.zeros_like(position)

    def wall(position):
        value = np.where(np.all(position == 0, axis=1), 0.0, -np.inf)
        return value, np.zeros_like(position)

    for target, huge in ((flat, True), (wall, False)):
        state = NUTS().init(target, np.zeros((2, 2)))
        rng = np.random.default_rng(0)
        step_size = first_step_size(target, rng, identity(state.position), state, 1.0)
        assert np.isfinite(step_size)
        assert step_size > 1e17 if huge else 0 < step_size < 1e-17


# --- windows ---------------------------------------------------------------------------------


@pytest.mark.equation("M12")
@pytest.mark.parametrize(
    ("warm_up", "ends"),
    [
        (0, ()),
        (19, ()),
        (20, (3, 18)),
        (100, (15, 90)),
        (150, (75, 100)),
        (500, (75, 100, 150, 250, 450)),
        (1000, (75, 100, 150, 250, 450, 950)),
        (2000, (75, 100, 150, 250, 450, 850, 1950)),
    ],
)
def test_windows_double_as_stan_s_do(warm_up, ends):
    assert windows(warm_up) == ends


# --- moments ---------------------------------------------------------------------------------


def gathered(draws, dense):
    moments = Moments.start(draws[0], dense)
    for position in draws:
        moments = moments.update(position)
    return moments


@pytest.mark.equation("M12")
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_running_moments_are_the_covariance_within_chains(offset):
    rng = np.random.default_rng(0)
    mixing = rng.standard_normal((3, 3))
    draws = offset + rng.standard_normal((40, 5, 3)) @ mixing
    within = sum(np.cov(draws[:, s].T) for s in range(5)) / 5
    for dense in (True, False):
        moments = gathered(draws, dense)
        np.testing.assert_allclose(moments.mean, draws.mean(axis=0), rtol=1e-12)
        covariance = moments.squares / (39 * 5)
        np.testing.assert_allclose(covariance, within if dense else np.diag(within), rtol=1e-7)


@pytest.mark.equation("M12")
@pytest.mark.parametrize("dense", [True, False])
def test_five_pseudo_draws_pull_a_short_window_towards_a_thousandth(dense):
    draws = np.zeros((2, 3, 4))
    draws[1, :, 0] = 1.0
    metric = gathered(draws, dense).metric(np.float64)
    degrees = 3  # two draws of three chains, less a mean each
    expected = np.full(4, 5e-3 / (degrees + 5))
    expected[0] += 3 * 0.5 / (degrees + 5)
    if dense:
        np.testing.assert_allclose(metric.covariance, np.diag(expected), rtol=1e-12)
    else:
        np.testing.assert_allclose(metric.variance, expected, rtol=1e-12)
    alone = gathered(draws[:1], dense).metric(np.float64)
    np.testing.assert_allclose(alone.velocity(np.ones((1, 4))), 1e-3, rtol=1e-12)
    # more numbers than draws: still positive definite
    wide = np.random.default_rng(0).standard_normal((3, 2, 30))
    for scale in (1e-3, 1.0, 1e3):  # the larger, the more the pseudo-draws are lost in rounding
        for dtype in (np.float32, np.float64):
            metric = gathered(scale * wide, True).metric(dtype)
            assert isinstance(metric, DenseMetric)
            assert np.linalg.eigvalsh(metric.covariance).min() > 0


# --- the whole -------------------------------------------------------------------------------


def given(acceptance, chains=2):
    acceptances = np.full(chains, acceptance)
    none = np.zeros(chains, int)
    return Info(acceptances, acceptances > 0.5, acceptances < 0, acceptances, none, none)


@pytest.mark.equation("M11", "M12")
@pytest.mark.parametrize("dense", [True, False])
def test_the_metric_changes_at_the_ends_of_windows_alone(dense):
    target, rng = Gaussian(np.eye(2)), np.random.default_rng(0)
    kernel = NUTS(0.3)
    state = kernel.init(target, target.draw(rng, 2))
    adaptation = kernel.adapt(target, rng, state, 200, dense=dense)
    changed, inside = [], {}
    for draw in range(1, 201):
        state = kernel.init(target, target.draw(rng, 2))
        inside[draw] = adaptation.moments.n_draws
        new = adaptation.update(target, rng, state, given(0.7))
        if new.kernel.metric is not adaptation.kernel.metric:
            changed.append(draw)
            assert isinstance(new.kernel.metric, DenseMetric if dense else DiagonalMetric)
        adaptation = new
    assert changed == list(windows(200)[1:]) == [100, 150]
    assert inside[76] == 0
    assert inside[77] == 1
    assert inside[100] == 24
    assert inside[101] == 0
    assert inside[150] == 49
    assert adaptation.kernel.step_size == exp(adaptation.averaging.log_mean)


def test_kernels_without_a_step_size_are_left_alone():
    target, rng = Gaussian(np.eye(1)), np.random.default_rng(0)
    kernel = MetropolisHastings(LogNormalWalk())
    state = kernel.init(target, np.ones((2, 1)))
    assert kernel.adapt(target, rng, state, 100) is None


def test_a_kernel_of_before_may_name_its_methods_as_they_were_named():
    with pytest.warns(DeprecationWarning, match="of Older is now called") as caught:

        class Older(HMC):
            learned = ("step_size",)
            usual_warm_up = 7

            def miss(self, target, rng, state, info, wanted):
                return 0.25

    assert [re.search(r"\w+ of Older is now", str(warning.message))[0] for warning in caught] == [
        "learned of Older is now",
        "miss of Older is now",
        "usual_warm_up of Older is now",
    ]
    assert {warning.filename for warning in caught} == {__file__}  # where the class stands
    assert Older().tuned_fields == ("step_size",)
    assert Older().default_warm_up == 7
    assert Older().adaptation_error(None, None, None, None, 0.8) == 0.25
    with pytest.warns(DeprecationWarning, match="method first_length is now called init_length"):
        ChEES().first_length(State(np.ones((2, 1)), None, None), 0.1)
