"""Warm-up: dual averaging, windows, moments, metrics (M11, M12)."""

from math import exp

import numpy as np
import pytest
from targets import Banana, Gaussian, correlated

from bbb_numpy.sampling.mcmc import (
    HMC,
    MAMS,
    NUTS,
    DenseMetric,
    DiagonalMetric,
    GaussianWalk,
    Independent,
    Info,
    Langevin,
    LogNormalWalk,
    MetropolisHastings,
    StudentWalk,
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
    "student": (MetropolisHastings(StudentWalk()), 0.234),
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
    assert first.error == pytest.approx(0.3 / 11)
    assert first.log_step == pytest.approx(start.anchor - 0.3 / 11 / 0.1)
    assert first.log_mean == pytest.approx(first.log_step)
    second = first.update(-0.2)
    error = (1 - 1 / 12) * first.error - 0.2 / 12
    assert second.error == pytest.approx(error)
    assert second.log_step == pytest.approx(start.anchor - error * 2**0.5 / 0.1)
    share = 2**-0.75
    expected = share * second.log_step + (1 - share) * first.log_mean
    assert second.log_mean == pytest.approx(expected)
    assert second.draws == 2


@pytest.mark.equation("M11")
def test_no_response_at_all_leaves_a_finite_step_size():
    for answer in (0.0, 1.0):
        state = averaged(lambda eps, answer=answer: answer, draws=5000)
        assert np.isfinite(exp(state.log_mean))
        assert exp(state.log_mean) > 0


def accepted(kernel, wanted=None):
    """Mean acceptance after a warm-up on a Gaussian of 10 correlated coordinates."""
    target = correlated(0.3, np.linspace(0.5, 4.0, 10))
    start = target.draw(np.random.default_rng(0), 32)
    draws = sample_target(
        target, start, sampler=kernel, draws=30, warm_up=150, target_accept=wanted, seed=0
    )
    return draws.stats["acceptance"].mean()


@pytest.mark.equation("M7", "M10", "M11")
@pytest.mark.parametrize("name", TUNED)
def test_on_a_gaussian_the_draws_are_accepted_as_often_as_wanted(name):
    kernel, wanted = TUNED[name]
    assert accepted(kernel) == pytest.approx(wanted, abs=0.06)
    assert kernel.target_accept == wanted


@pytest.mark.equation("M11")
@pytest.mark.parametrize("warm_up", [10, 20, 30, 50, 100])
@pytest.mark.parametrize("name", ["nuts", "hmc"])
def test_a_short_warm_up_is_no_catastrophe(name, warm_up):
    target = Gaussian(np.eye(2))
    start = target.draw(np.random.default_rng(0), 4)
    draws = sample_target(
        target, start, sampler=TUNED[name][0], draws=50, warm_up=warm_up, seed=0
    )  # fmt: skip
    assert draws.stats["acceptance"].mean() > 0.6
    assert draws.divergences == 0


@pytest.mark.equation("M11")
@pytest.mark.parametrize("name", ["nuts", "hmc"])
def test_a_higher_acceptance_can_be_asked_for(name):
    assert accepted(TUNED[name][0], 0.95) == pytest.approx(0.95, abs=0.03)


@pytest.mark.equation("M11")
@pytest.mark.parametrize("start", [1e-6, 0.1, 1e4])
def test_the_first_step_size_is_where_one_step_stops_being_accepted(start):
    target, rng = Banana(), np.random.default_rng(0)
    state = NUTS().init(target, target.draw(rng, 400))
    metric = identity(state.position)
    found = first_step_size(target, rng, metric, state, start)
    assert 0.1 < found < 2
    assert (found / start).hex().startswith("0x1.0000000000000p"), "doublings alone"


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
        found = first_step_size(target, rng, identity(state.position), state, 1.0)
        assert np.isfinite(found)
        assert found > 1e17 if huge else 0 < found < 1e-17


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


@pytest.mark.equation("M12")
def test_windows_of_any_warm_up_fill_it_in_order():
    for warm_up in range(20, 1500):
        ends = windows(warm_up)
        lengths = np.diff(ends)
        assert ends[0] >= 3
        assert 0 < warm_up - ends[-1] <= 50
        assert np.all(lengths > 0)
        assert len(lengths) == 1 or lengths[-1] >= 2 * lengths[-2]


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
        found = moments.squares / (39 * 5)
        np.testing.assert_allclose(found, within if dense else np.diag(within), rtol=1e-7)


@pytest.mark.equation("M12")
def test_chains_that_sit_apart_do_not_widen_the_metric():
    rng = np.random.default_rng(1)
    draws = rng.standard_normal((500, 4, 2)) + 100 * np.arange(4)[:, None]
    metric = gathered(draws, False).metric(np.float64)
    np.testing.assert_allclose(metric.variance, 1.0, atol=0.1)


@pytest.mark.equation("M12")
@pytest.mark.parametrize("dense", [True, False])
def test_five_pseudo_draws_pull_a_short_window_towards_a_thousandth(dense):
    draws = np.zeros((2, 3, 4))
    draws[1, :, 0] = 1.0
    metric = gathered(draws, dense).metric(np.float64)
    seen = 3  # two draws of three chains, less a mean each
    expected = np.full(4, 5e-3 / (seen + 5))
    expected[0] += 3 * 0.5 / (seen + 5)
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


@pytest.mark.equation("M12")
def test_a_dense_metric_is_symmetric_to_the_last_bit():
    """As sums of products of deviations from the old and the new mean are not."""
    draws = np.random.default_rng(0).standard_normal((40, 3, 5))
    moments = gathered(draws, True)
    assert not np.array_equal(moments.squares, moments.squares.T)
    covariance = moments.metric(np.float64).covariance
    np.testing.assert_array_equal(covariance, covariance.T)


@pytest.mark.equation("M12")
def test_the_warm_up_finds_the_covariance_of_a_gaussian_and_a_dense_metric_needs_fewer_gradients():
    target = correlated(0.95, (1.0, 0.3, 3.0))
    start = target.draw(np.random.default_rng(0), 32)
    found = {}
    for metric in ("diagonal", "dense"):
        found[metric] = sample_target(target, start, draws=10, warm_up=100, metric=metric, seed=2)
    deviations = np.sqrt(np.diag(target.covariance))
    relative = found["dense"].kernel.metric.covariance / np.outer(deviations, deviations)
    np.testing.assert_allclose(
        relative, target.covariance / np.outer(deviations, deviations), atol=0.2
    )
    variance = found["diagonal"].kernel.metric.variance
    np.testing.assert_allclose(variance / deviations**2, 1.0, atol=0.2)
    work = {name: draws.stats["gradients"].mean() for name, draws in found.items()}
    assert work["dense"] < 0.5 * work["diagonal"]


# --- the whole -------------------------------------------------------------------------------


def given(acceptance, chains=2):
    each = np.full(chains, acceptance)
    none = np.zeros(chains, int)
    return Info(each, each > 0.5, each < 0, each, none, none)


@pytest.mark.equation("M11", "M12")
@pytest.mark.parametrize("dense", [True, False])
def test_the_metric_changes_at_the_ends_of_windows_alone(dense):
    target, rng = Gaussian(np.eye(2)), np.random.default_rng(0)
    kernel = NUTS(0.3)
    state = kernel.init(target, target.draw(rng, 2))
    adaptation = kernel.adapt(target, rng, state, 200, dense=dense)
    changed, inside = [], {}
    for done in range(1, 201):
        state = kernel.init(target, target.draw(rng, 2))
        inside[done] = adaptation.moments.draws
        new = adaptation.update(target, rng, state, given(0.7))
        if new.kernel.metric is not adaptation.kernel.metric:
            changed.append(done)
            assert isinstance(new.kernel.metric, DenseMetric if dense else DiagonalMetric)
        adaptation = new
    assert changed == list(windows(200)[1:]) == [100, 150]
    assert inside[76] == 0
    assert inside[77] == 1
    assert inside[100] == 24
    assert inside[101] == 0
    assert inside[150] == 49
    assert adaptation.kernel.step_size == exp(adaptation.averaging.log_mean)


@pytest.mark.parametrize("name", TUNED)
def test_under_a_new_metric_gradients_find_a_step_size_and_a_walk_keeps_its_own(name):
    target, rng, (kernel, _) = Gaussian(np.eye(2)), np.random.default_rng(0), TUNED[name]
    state = kernel.init(target, target.draw(rng, 2))
    adaptation = kernel.adapt(target, rng, state, 150)
    searched = []

    def counted(position):
        searched.append(adaptation.done + 1)
        return target(position)

    for _ in range(100):
        state = kernel.init(target, target.draw(rng, 2))
        adaptation = adaptation.update(counted, rng, state, given(0.7))
    ends = windows(150)[1:]
    assert set(searched) == (set() if isinstance(kernel, MetropolisHastings) else set(ends))


@pytest.mark.equation("M11")
def test_the_mean_acceptance_of_all_chains_is_what_counts():
    target, rng = Gaussian(np.eye(1)), np.random.default_rng(0)
    kernel = HMC(0.5)
    state = kernel.init(target, np.zeros((2, 1)))
    adaptation = kernel.adapt(target, rng, state, 10)
    mixed = given(0.0)._replace(acceptance=np.array([0.6, 1.0]))
    assert adaptation.update(target, rng, state, mixed).averaging.error == pytest.approx(0.0)
    low = adaptation.update(target, rng, state, given(0.1)).kernel.step_size
    high = adaptation.update(target, rng, state, given(1.0)).kernel.step_size
    assert low < high


def test_kernels_without_a_step_size_are_left_alone():
    target, rng = Gaussian(np.eye(1)), np.random.default_rng(0)
    independent = Independent(lambda rng, shape: rng.random(shape), lambda x: np.zeros(len(x)))
    for proposal in (LogNormalWalk(), independent):
        kernel = MetropolisHastings(proposal)
        state = kernel.init(target, np.ones((2, 1)))
        assert kernel.adapt(target, rng, state, 100) is None


def test_a_retuned_kernel_keeps_everything_else():
    metric = DiagonalMetric(np.ones(2))
    kernel = HMC(0.1, path=3.0, jitter=0.5).tuned(0.2, metric)
    assert (kernel.step_size, kernel.path, kernel.jitter) == (0.2, 3.0, 0.5)
    assert NUTS(max_depth=7).tuned(0.2, metric).max_depth == 7
    walk = MetropolisHastings(StudentWalk(degrees=5.0)).tuned(0.2, metric)
    assert (walk.proposal.degrees, walk.proposal.step_size) == (5.0, 0.2)
    assert walk.proposal.metric is metric


@pytest.mark.parametrize("kernel", [NUTS(), MAMS()])
@pytest.mark.parametrize("wanted", [0.0, 1.0, -0.5, np.nan])
def test_an_acceptance_that_cannot_be_wanted_is_refused(kernel, wanted):
    target, rng = Gaussian(np.eye(2)), np.random.default_rng(0)
    state = kernel.init(target, np.ones((2, 2)))
    with pytest.raises(ValueError, match="target_accept must be"):
        kernel.adapt(target, rng, state, 10, target_accept=wanted)
