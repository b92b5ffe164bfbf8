"""Sampling in one call: reproducible, interrupted, resumed, refused."""

import shutil
import signal
import warnings
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pytest
from targets import Gaussian, same_bits

from bbb_numpy import (
    MLP,
    GaussianLikelihood,
    GaussianPrior,
    HalfNormal,
    LogNormal,
    Model,
    Sampling,
)
from bbb_numpy.sampling import chains
from bbb_numpy.sampling import run as running
from bbb_numpy.sampling.draws import Draws
from bbb_numpy.sampling.mcmc import (
    HMC,
    NUTS,
    SGHMC,
    Info,
    Langevin,
    MetropolisHastings,
    State,
)
from bbb_numpy.sampling.run import sample, sample_target

# warm-ups here are as short as runs
pytestmark = pytest.mark.filterwarnings("ignore:[0-9]+ divergent transitions")
UNIT = Gaussian(np.eye(2))
START = np.ones((2, 2))
FIVE = np.random.default_rng(1).standard_normal((5, 2))
SAMPLERS = {
    "nuts": "nuts",
    "hmc": "hmc",
    "chees": "chees",
    "mams": "mams",
    "mclmc": "mclmc",
    "sghmc": SGHMC(steps=5, bias=10.0),  # what so few draws tell of it is anything
    "mh": "mh",
    "langevin": MetropolisHastings(Langevin(0.5)),
}


def network(learn=True):
    return Model(MLP((1, 3, 1), "tanh"), GaussianPrior(learn=learn), GaussianLikelihood(0.3, True))


def data(rows=8):
    x = np.linspace(-1.0, 1.0, rows)[:, None]
    return x, np.sin(3 * x)


QUICK = {"chains": 2, "draws": 6, "warm_up": 20, "sampler": NUTS(max_depth=4)}


def quick(seed=0, **options):
    """A short run on a network."""
    return sample(network(), *data(), **{**QUICK, "seed": seed, **options})


# --- what comes out --------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("metric", ["diagonal", "dense"])
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_every_sampler_metric_and_dtype_gives_draws_of_the_asked_shape(sampler, metric, dtype):
    draws = sample_target(
        UNIT,
        START.astype(dtype),
        sampler=SAMPLERS[sampler],
        metric=metric,
        draws=15,
        warm_up=60,
        seed=0,
    )
    assert draws.positions.shape == (15, 2, 2)
    assert draws.log_density.shape == (15, 2)
    assert draws.positions.dtype == draws.log_density.dtype == dtype
    assert {array.shape for array in draws.stats.values()} == {(15, 2)}
    assert draws.finished
    assert draws.warm_up == 60
    value, _ = UNIT(draws.flat)
    np.testing.assert_allclose(draws.log_density.ravel(), value, rtol=1e-4, atol=1e-6)


def test_the_same_seed_gives_the_same_draws_and_another_seed_others():
    short_run = partial(quick, draws=3, warm_up=6)
    first = short_run(0)
    same_bits(first, short_run(0))
    assert not np.array_equal(first.positions, short_run(1).positions)
    rng = np.random.default_rng(5)
    first = short_run(rng)
    assert not np.array_equal(first.positions, short_run(rng).positions), "a generator moves on"
    same_bits(first, short_run(np.random.default_rng(5)))
    short_run(np.random.RandomState(0))


@pytest.mark.parametrize("places", [[slice(0, 5)], [slice(0, 3), slice(3, 5)]])
def test_draws_are_the_steps_of_the_kernel_each_group_with_a_generator_of_its_own(places):
    """One group has the seed's own; several have its children, `spawn`ed."""
    kernel, groups = NUTS(0.5), len(places)
    draws = sample_target(
        UNIT, FIVE, sampler=kernel, warm_up=0, draws=3, thin=2, seed=4, groups=groups, cores=1
    )
    assert draws.positions.shape == (3, 5, 2)
    root = np.random.default_rng(4)
    rngs = [root] if groups == 1 else root.spawn(groups)
    for rng, columns in zip(rngs, places, strict=True):
        state = State(*(part[columns] for part in kernel.init(UNIT, FIVE)))
        for draw in range(3):
            (_, first), (state, info) = steps_of(kernel, rng, state, 2)
            expected = {"positions": state.position, "log_density": state.log_density}
            for name, values in expected.items():
                np.testing.assert_array_equal(getattr(draws, name)[draw, columns], values)
            stats = {**info._asdict(), "gradients": first.gradients + info.gradients}
            for name, values in stats.items():
                np.testing.assert_array_equal(draws.stats[name][draw, columns], values)


def steps_of(kernel, rng, state, count):
    """Return states and reports of so many steps."""
    steps = []
    for _ in range(count):
        state, info = kernel.step(UNIT, rng, state)
        steps.append((state, info))
    return steps


@dataclass(frozen=True)
class Walk:
    """One to the right in every step; chain 0 diverges on its way to these places."""

    diverges: tuple[int, ...] = ()

    def init(self, target, position):
        return State(position, *target(position))

    def step(self, target, rng, state):
        state = self.init(target, state.position + 1.0)
        first_coordinate, zeros = state.position[:, 0], np.zeros(len(state.position), int)
        divergent = np.isin(first_coordinate, self.diverges)
        divergent[1:] = False
        return state, Info(zeros + 1.0, zeros == 0, divergent, first_coordinate, zeros + 2, zeros)


def walk(diverges=(), **options):
    settings = {"sampler": Walk(diverges), "draws": 25, "warm_up": 0, "seed": 0, "groups": 1}
    return sample_target(UNIT, np.zeros((4, 2)), **{**settings, **options})


def test_divergences_are_counted_step_by_step():
    """Of both groups the first chain diverges, twice in the warm-up."""
    draws = walk((1, 2, 4, 5, 8), warm_up=3, thin=3, draws=3, groups=2, cores=1)
    assert draws.warm_up_divergent == 4
    assert draws.stats["divergent"].tolist() == [[2, 0, 2, 0], [1, 0, 1, 0], [0, 0, 0, 0]]
    assert draws.stats["gradients"].tolist() == [[6] * 4] * 3


def test_one_divergence_in_a_thousand_draws_is_no_warning_two_are():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert walk((7,), draws=250).divergences == 1
    with pytest.warns(UserWarning, match="^2 divergent transitions among 1000 draws"):
        walk((7, 9), draws=250)


def test_large_networks_run_in_groups_by_rows_times_weights(monkeypatch):
    """8 rows times 10 weights; the scales are not multiplied with the data."""
    for large, groups in ((80, 2), (81, 1)):
        monkeypatch.setattr(chains, "MIN_PRODUCTS_FOR_GROUPS", large)
        assert len(quick(chains=4, warm_up=2, draws=1).kernels) == groups
    monkeypatch.setattr(chains, "MIN_PRODUCTS_FOR_GROUPS", 80)
    assert len(quick(chains=4, warm_up=2, draws=1, sampler="chees").kernels) == 1
    assert len(quick(chains=4, warm_up=2, draws=1, groups=1).kernels) == 1


def test_without_warm_up_the_kernel_is_used_as_it_is():
    kernel = NUTS(0.37)
    draws = sample_target(UNIT, START, sampler=kernel, draws=5, warm_up=0, seed=0)
    assert draws.kernel is kernel
    assert draws.step_size == 0.37


def test_after_the_warm_up_the_kernel_changes_no_more():
    short = sample_target(UNIT, START, draws=5, warm_up=50, seed=0)
    long = sample_target(UNIT, START, draws=50, warm_up=50, seed=0)
    assert short.step_size == long.step_size
    np.testing.assert_array_equal(short.positions, long.positions[:5])
    np.testing.assert_array_equal(short.kernel.metric.variance, long.kernel.metric.variance)


def test_starts_weights_of_rows_hyperpriors_and_acceptance_reach_the_run():
    options = {"warm_up": 0, "sampler": NUTS(1e-9, max_depth=1), "draws": 1}
    size = network().layout.size + 2
    begun = quick(start=np.zeros((2, size)), sample_weight=np.arange(1.0, 9.0), **options)
    np.testing.assert_allclose(begun.positions, 0.0, atol=1e-6)
    assert begun.target.sample_weight.tolist() == list(range(1, 9))
    hyperpriors = {"log_noise": LogNormal(7.0, 1e-3), "prior_log_scale": HalfNormal(1e-3)}
    narrow = quick(hyperpriors=hyperpriors, warm_up=0, sampler=NUTS(1e-9, max_depth=1), chains=20)
    assert narrow.target.hyperpriors == hyperpriors
    np.testing.assert_allclose(np.exp(narrow.block("log_noise")), 7.0, rtol=0.01)
    assert np.exp(narrow.block("prior_log_scale")).max() < 0.01
    steps = [
        sample_target(UNIT, START, draws=1, warm_up=200, target_accept=a, seed=0).step_size
        for a in (0.6, 0.99)
    ]
    assert steps[0] > 2 * steps[1]


def test_a_kernel_of_one_s_own_needs_two_methods():
    class Jump:
        def init(self, target, position):
            return NUTS().init(target, position)

        def step(self, target, rng, state):
            return NUTS(0.5).step(target, rng, state)

    draws = sample_target(UNIT, START, sampler=Jump(), draws=5, warm_up=5, seed=0)
    assert draws.positions.shape == (5, 2, 2)
    assert np.isnan(draws.step_size)


@pytest.mark.parametrize("progress", [True, False, None])
def test_the_progress_bar_shows_when_asked(progress, capsys):
    sample_target(UNIT, START, draws=5, warm_up=5, seed=0, progress=progress)
    is_shown = "step/s" in capsys.readouterr().err
    assert is_shown == (progress is True), "not in a terminal here: None is no"


def test_a_network_is_sampled_by_hmc_and_any_other_density_by_nuts():
    options = {"draws": 1, "warm_up": 0, "seed": 0}
    assert isinstance(sample(network(), *data(), **options).kernel, HMC)
    assert isinstance(sample_target(UNIT, START, **options).kernel, NUTS)
    assert Sampling() == Sampling("hmc")


@pytest.mark.parametrize(("share", "told"), [(0.0599, False), (0.0601, True)])
def test_variances_that_are_off_by_more_than_six_percent_are_told(share, told, monkeypatch):
    monkeypatch.setattr(Draws, "expected_bias", property(lambda draws: share))
    words = pytest.warns(UserWarning, match=r"MCLMC is not adjusted.*off by about 6 %")
    with words if told else nullcontext():  # any other warning is an error
        sample_target(UNIT, START, sampler="mclmc", draws=5, warm_up=20, seed=0)


@pytest.mark.parametrize("groups", [1, 2])
def test_chains_go_on_where_their_draws_end_with_the_kernels_that_they_have(groups):
    options = {"chains": 4, "sampler": "hmc"}
    first = sample(network(), *data(), **options, draws=6, warm_up=20, groups=groups, seed=0)
    continued = sample(network(), *data(), start=first, draws=3, chains=4, thin=2, seed=1, cores=1)
    assert repr(continued.kernels) == repr(first.kernels)
    rngs = np.random.default_rng(1)
    rngs = [rngs] if groups == 1 else rngs.spawn(groups)
    starts, moved = np.split(first.positions[-1], groups), []
    for kernel, rng, start in zip(first.kernels, rngs, starts, strict=True):
        state = kernel.init(first.target, start)
        for _ in range(2):
            state, _ = kernel.step(first.target, rng, state)
        moved.append(state.position)
    np.testing.assert_array_equal(continued.positions[:6], first.positions)
    np.testing.assert_array_equal(continued.positions[6], np.concatenate(moved))
    assert continued.log_density.shape == continued.stats["gradients"].shape == (9, 4)
    assert (continued.warm_up, continued.warm_up_divergent) == (
        first.warm_up,
        first.warm_up_divergent,
    )


def test_chains_go_on_with_their_own_posterior_alone(tmp_path):
    first = sample(network(), *data(), **QUICK, seed=0)
    for message, changes in {
        "start has draws of a different target": {"hyperpriors": {"log_noise": HalfNormal()}},
        r"\(chains, numbers\) = \(3, 12\); got \(2, 12\)": {"chains": 3},
        "checkpoint must be None where start is Draws": {"checkpoint": tmp_path},
    }.items():
        with pytest.raises(ValueError, match=message):
            sample(network(), *data(), **QUICK | {"start": first} | changes)
    with pytest.raises(ValueError, match="start has no draws"):
        sample_target(first.target, replace(first, positions=first.positions[:0]))


# --- interrupted and resumed ---------------------------------------------------------------


@pytest.fixture
def every_step(monkeypatch):
    """Let every step be looked at: where Ctrl-C comes in between, no other is lost."""
    monkeypatch.setattr(running, "POLL_INTERVAL_S", 0.0)


class Interrupting:
    """A target during whose call number `when` Ctrl-C is pressed."""

    def __init__(self, when, target=None):
        self.when, self.calls, self.target = when, 0, UNIT if target is None else target

    def __call__(self, position):
        self.calls += 1
        if self.calls == self.when:
            signal.raise_signal(signal.SIGINT)
        return self.target(position)


def caught(*arguments, **options):
    """Sample; an interrupt that gets through fails the test, but does not end all tests."""
    try:
        return sample_target(*arguments, **options)
    except KeyboardInterrupt:
        pytest.fail("the interrupt was not caught")


@pytest.mark.parametrize("sampler", ["nuts", "chees", "hmc", "mh"])
@pytest.mark.parametrize("when", [15, 60, 110])
def test_ctrl_c_returns_the_draws_so_far_and_warns(sampler, when, every_step):
    uninterrupted = sample_target(UNIT, START, sampler=sampler, draws=100, warm_up=20, seed=0)
    target = Interrupting(when)
    with pytest.warns(UserWarning, match=r"interrupted by user after \d+ steps; \d+ of 100 draws"):
        part = caught(target, START, sampler=sampler, draws=100, warm_up=20, seed=0)
    assert not part.finished
    count = len(part.positions)
    assert 0 <= count < 100
    np.testing.assert_array_equal(part.positions, uninterrupted.positions[:count])
    assert {array.shape for array in part.stats.values()} == {(count, 2)}
    assert "interrupted" in part.summary()


def test_ctrl_c_before_the_first_step_is_an_interrupt_as_any():
    with pytest.raises(KeyboardInterrupt):
        sample_target(Interrupting(1), START, draws=5, warm_up=5, seed=0)


def resumed(folder, when, **options):
    """Interrupt a run at a call of the target, and make the same call again."""
    arguments = {"draws": 15, "warm_up": 30, "seed": 3, "checkpoint": folder, **options}
    with pytest.warns(UserWarning, match="the same call goes on"):
        part = caught(Interrupting(when), START, **arguments)
    assert not part.finished
    return sample_target(Interrupting(0), START, **arguments)


@pytest.mark.parametrize("metric", ["diagonal", "dense"])
@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("when", [15, 50])
def test_a_resumed_run_is_the_uninterrupted_one_bit_for_bit(
    sampler, metric, when, tmp_path, every_step
):
    options = {"sampler": SAMPLERS[sampler], "metric": metric, "thin": 2}
    uninterrupted = sample_target(UNIT, START, draws=15, warm_up=30, seed=3, **options)
    same_bits(resumed(tmp_path / "run", when, **options), uninterrupted)


@pytest.mark.parametrize("kind", [None, np.random.PCG64, np.random.PCG64DXSM])
def test_a_run_without_a_seed_goes_on_too(kind, tmp_path):
    seed = None if kind is None else np.random.Generator(kind(3))
    first = quick(seed, checkpoint=tmp_path, draws=5)
    longer = quick(seed, checkpoint=tmp_path, draws=9)
    np.testing.assert_array_equal(longer.positions[:5], first.positions)
    same_bits(quick(seed, checkpoint=tmp_path, draws=9), longer)


# --- refusals --------------------------------------------------------------------------------


def test_what_draws_the_start_is_called_last_and_starts_as_the_array_does():
    calls = []

    def starting(rng):
        calls.append(rng)
        return np.full((2, 12), 0.1)

    same_bits(quick(start=starting), quick(start=np.full((2, 12), 0.1)))
    assert len(calls) == 1
    for wrong in ({"thin": 0}, {"groups": 3}, {"cores": 0}, {"metric": "full"}, {"seed": "x"}):
        with pytest.raises((TypeError, ValueError), match=f"{next(iter(wrong))} must be"):
            quick(**{"start": starting, **wrong})
    assert len(calls) == 1


@pytest.mark.parametrize("name", ["sample_weight", "start"])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda array: array.astype("M8[s]"), "must be an array of real numbers; got an array"),
        (lambda array: array.astype("m8[s]"), "must be an array of real numbers; got an array"),
        (lambda array: array.astype(str), "must be an array of real numbers; got an array"),
        (lambda array: array.astype(complex), "must be an array of real numbers; got an array"),
        (lambda array: np.ma.masked_equal(array, array.flat[0]), "has masked entries"),
    ],
)
def test_dates_text_and_masks_are_no_numbers(name, change, message):
    array = np.ones(8, int) if name == "sample_weight" else np.ones((2, 12), int)
    with pytest.raises((TypeError, ValueError), match=f"^{name} {message}"):
        quick(**{name: change(array)})


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    """The folder of a finished run."""
    folder = tmp_path_factory.mktemp("begun")
    quick(checkpoint=folder)
    return folder


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"warm_up": 31}, "warm_up was 20, is now 31"),
        ({"thin": 2}, "thin was 1, is now 2"),
        ({"metric": "dense"}, "metric was diagonal, is now dense"),
        ({"target_accept": 0.9}, "target_accept was None, is now 0.9"),
        ({"sampler": "hmc"}, r"kernel was NUTS\(.*, is now HMC\(.*"),
        ({"sampler": NUTS(max_depth=5)}, "max_depth=4.*, is now .*max_depth=5.*"),
        ({"seed": 1}, "seed was 0, is now 1"),
        ({"chains": 3}, "chains was 2, is now 3"),
        ({"dtype": "float32"}, "dtype was float64, is now float32"),
        ({"hyperpriors": {"log_noise": HalfNormal(1.0)}}, r"hyperpriors .*HalfNormal\(scale=1.0\)"),
        ({"start": np.zeros((2, 12))}, "start was [0-9a-f]{16}, is now [0-9a-f]{16}"),
    ],
)
def test_a_checkpoint_of_another_call_is_refused_with_what_differs(change, words, begun, tmp_path):
    shutil.copytree(begun, tmp_path, dirs_exist_ok=True)
    files = sorted((p.name, p.read_bytes()) for p in tmp_path.iterdir())
    with pytest.raises(ValueError, match="written by a different call") as error:
        quick(**{"checkpoint": tmp_path, **change})
    error.match(words)
    error.match("Repeat that call, or give another folder")
    assert files == sorted((p.name, p.read_bytes()) for p in tmp_path.iterdir())


def test_a_checkpoint_of_other_data_or_another_model_is_refused(tmp_path):
    quick(checkpoint=tmp_path)
    for model, targets in ((network(), data()[1] + 1e-9), (network(learn=False), data()[1])):
        with pytest.raises(ValueError, match=r"was written by a different call: .*(y|model) "):
            sample(model, data()[0], targets, **{**QUICK, "seed": 0, "checkpoint": tmp_path})


def target_with(target=UNIT, start=START, **change):
    return lambda: sample_target(target, start, **{"draws": 2, "warm_up": 2, **change})


def network_with(**change):
    x, y = data()
    arguments = {"x": x, "y": y, "chains": 2, "draws": 2, "warm_up": 2, **change}
    return lambda: sample(network(), **arguments)


MATRIX = r"start must be a matrix \(chains, numbers\) of float64"
OUTSIDE = np.array([[0.0, 0.0], [np.nan, 0.0]])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (target_with(draws=0), "draws must be a whole number >= 1; got 0"),
        (target_with(draws=2.5), "draws must be a whole number >= 1; got 2.5"),
        (target_with(draws="many"), "draws must be a whole number >= 1; got 'many'"),
        (target_with(warm_up=-1), "warm_up must be a whole number >= 0; got -1"),
        (target_with(thin=0), "thin must be a whole number >= 1; got 0"),
        (target_with(metric="full"), "metric must be .* 'dense'; got 'full'"),
        (target_with(groups=0), "groups must be a whole number >= 1; got 0"),
        (target_with(groups=3), "groups must be .* >= 1 and <= 2; got 3"),
        (target_with(cores=0), "cores must be a whole number >= 1; got 0"),
        (target_with(cores=1025), "cores must be .* >= 1 and <= 1024; got 1025"),
        (target_with(progress="yes"), "progress must be True or False; got 'yes'"),
        (target_with(target_accept=1.0), "target_accept must be .* got 1.0"),
        (target_with(target_accept=0), "target_accept must be > 0 and < 1; got 0"),
        (target_with(seed=-1), "seed must be None, a whole number >= 0, .* got -1"),
        (target_with(seed="x"), "seed must be None, a whole number >= 0, .* got 'x'"),
        (target_with(sampler="gibbs"), "sampler must be one of .*'mh'.*; got 'gibbs'"),
        (target_with(sampler=NUTS), "sampler must be .* 'nuts', .* the class NUTS"),
        (target_with(sampler=3), "sampler must be an object such as .* got 3"),
        (target_with(sampler=Langevin()), "sampler must be an object .* got Langevin"),
        (target_with(float), "target must be a function; got the class float"),
        (target_with(start=np.zeros(3)), MATRIX),
        (target_with(start=np.zeros((0, 2))), MATRIX),
        (target_with(start=np.zeros((2, 2), int)), MATRIX),
        (target_with(start=[[1, 2]]), MATRIX),
        (target_with(start="here"), "start must be an array of real numbers; got .here."),
        (target_with(start=OUTSIDE), r"not finite where chains \[1\] start"),
        (network_with(chains=0), "chains must be a whole number >= 1; got 0"),
        (network_with(dtype="int32"), "dtype must be 'float64' or .* got 'int32'"),
        (network_with(start=START), r"start must have shape .* = \(2, 12\)"),
        (
            network_with(hyperpriors={"log_nose": LogNormal()}),
            "hyperpriors must name learned blocks .* got 'log_nose'",
        ),
        (network_with(x="text"), "x must be an array of real numbers; got 'text'"),
        (
            network_with(x=np.zeros((8, 1), complex)),
            "x must be an array of real numbers",
        ),
        (network_with(x=np.zeros(8)), r"x must have shape \(any, any\); got \(8,\)"),
        (network_with(x=np.zeros((0, 1))), "x must hold 1 or more rows"),
        (network_with(y=np.full((8, 1), np.nan)), "y holds nan or infinity"),
        (
            network_with(y=np.zeros((7, 1))),
            r"y must have shape \(8, 1\); got \(7, 1\)",
        ),
        (lambda: sample("a net", *data()), r"model must be .*Model.* got 'a net'"),
        (
            network_with(step_size=0.1),
            "unexpected keyword argument 'step_size'",
        ),
    ],
)
def test_wrong_arguments_are_refused(call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call()
