"""Groups of chains in processes: the same bits, however many; what goes wrong loses nothing."""

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from targets import Elsewhere, correlated, same_bits, survives_ctrl_c, watches_its_parent

import bbb_numpy
from bbb_numpy import MLP, GaussianLikelihood, GaussianPrior, Model
from bbb_numpy.sampling import chains
from bbb_numpy.sampling import run as running
from bbb_numpy.sampling.chains import Settings, advance, default_groups, init_runs
from bbb_numpy.sampling.mcmc import HMC, NUTS, ChEES, Info, State
from bbb_numpy.sampling.run import sample, sample_target

pytestmark = pytest.mark.filterwarnings("ignore:[0-9]+ divergent transitions")
HILL = correlated(0.5)
START = np.random.default_rng(0).standard_normal((5, 3))


def network(**options):
    x = np.linspace(-1.0, 1.0, 9)[:, None]
    model = Model(MLP((1, 3, 1), "tanh"), GaussianPrior(learn=True), GaussianLikelihood(0.3, True))
    settings = {"chains": 5, "groups": 3, "draws": 8, "warm_up": 16, "sampler": NUTS(max_depth=3)}
    return sample(model, x, np.sin(3 * x), **{**settings, "seed": 0, **options})


def hill(target=HILL, **options):
    settings = {"groups": 2, "draws": 20, "warm_up": 30, "sampler": "hmc", "seed": 0}
    return sample_target(target, START, **{**settings, **options})


@pytest.fixture
def one_process(monkeypatch):
    """A pool of a single process, which starts faster than two and makes the steps of all groups.

    Nothing that happens to it happens to the pool that the other tests share.
    """
    start = chains._executor.__wrapped__
    pool = cache(lambda _: start(1))
    monkeypatch.setattr(chains, "_executor", pool)
    yield
    if pool.cache_info().currsize:
        pool(2).shutdown(kill_workers=True)


# --- groups ----------------------------------------------------------------------------------


def test_large_networks_run_in_pairs_small_ones_together():
    large = [default_groups(chains, 100_000, HMC()) for chains in (1, 2, 3, 4, 6, 8, 16, 100)]
    assert large == [1, 1, 1, 2, 3, 4, 4, 4]
    assert default_groups(100, 99_999, HMC()) == 1
    assert [default_groups(chains, 100_000, ChEES()) for chains in (4, 8, 16)] == [1, 2, 4]


# --- a group's way on ------------------------------------------------------------------------


def right(target, rng, state):
    """One to the right; a step costs as many gradients as the place it ends in."""
    state = State(state.position + 1.0, *target(state.position + 1.0))
    first_coordinate = state.position[:, 0]
    diverged = (first_coordinate == 2) | (first_coordinate == 5)
    return state, Info(
        first_coordinate,
        first_coordinate > 0,
        diverged,
        10 * first_coordinate,
        first_coordinate.astype(int),
        0 * first_coordinate,
    )


@dataclass(frozen=True)
class Right:
    """A kernel of one's own."""

    step = staticmethod(right)

    def init(self, target, position):
        return State(position, *target(position))


def test_in_no_time_one_step_is_made_and_nothing_is_done_twice(monkeypatch):
    settings = Settings(correlated(), Right(), 2, 1, 4, False, None)
    [first] = init_runs(settings, np.zeros((2, 3)), 1, np.random.default_rng(0))
    run, draws = first, []
    for steps in range(1, 7):
        run = advance(settings, run, 0.0)
        assert run.n_steps == steps
        draws += run.draws
    assert [draw["positions"][0, 0, 0] for draw in draws] == [3.0, 4.0, 5.0, 6.0]
    thinned = settings._replace(thin=3)
    run = advance(thinned, first, 1e9)
    assert (run.n_steps, thinned.n_draws_of(run), len(run.all_draws()["positions"])) == (14, 4, 4)
    clock = iter(np.arange(0.0, 9.0))
    monkeypatch.setattr(chains, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    assert advance(settings, first, 2.5).n_steps == 3


def test_a_run_and_its_generator_stay_as_they_are():
    settings = Settings(HILL, HMC(0.3), 5, 1, 5, False, None)
    [run] = init_runs(settings, START, 1, np.random.default_rng(0))
    rng_state = run.rng.bit_generator.state
    first, second = advance(settings, run, 1e9), advance(settings, run, 1e9)
    assert run.rng.bit_generator.state == rng_state != first.rng.bit_generator.state
    assert np.array_equal(first.all_draws()["positions"], second.all_draws()["positions"])


# --- the same bits ---------------------------------------------------------------------------


@pytest.mark.parametrize("cores", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_draws_are_the_same_bits_on_one_two_and_three_cores(cores):
    options = {"thin": 2, "dtype": "float32"} if cores == 2 else {}
    same_bits(network(cores=cores, **options), network(cores=1, **options))


def test_as_many_processes_as_the_machine_has_are_the_default_for_several_groups(monkeypatch):
    counts, original = [], running.process_map
    monkeypatch.setattr(running, "n_usable_cores", lambda: 2)
    monkeypatch.setattr(
        running, "process_map", lambda count: counts.append(count) or original(count)
    )
    same_bits(network(), network(cores=1))
    hill(groups=1)
    assert counts == [2, 1, 1]


def test_a_process_of_a_pool_keeps_to_one_core_and_so_does_python_without_joblib(monkeypatch):
    assert chains.n_usable_cores() >= 1
    with monkeypatch.context() as patch:
        pooled = SimpleNamespace(name="LokyProcess-1")
        patch.setattr(chains.multiprocessing, "current_process", lambda: pooled)
        assert chains.n_usable_cores() == 1
    for name in ("joblib", "joblib.externals.loky"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setattr(chains, "_executor", chains._executor.__wrapped__)
    assert chains.n_usable_cores() == 1
    with pytest.raises(ImportError, match=r"cores=2 needs joblib.*bbb-numpy\[learners\]"):
        hill(cores=2)


# --- progress, interruption, resumption ------------------------------------------------------


def interrupting(monkeypatch, where, name, when):
    """Press Ctrl-C at call number `when` of a function."""
    calls, original = [0], getattr(where, name)

    def pressed(*arguments):
        calls[0] += 1
        if calls[0] == when:
            signal.raise_signal(signal.SIGINT)
        return original(*arguments)

    monkeypatch.setattr(where, name, pressed)


def test_draws_that_only_some_groups_have_are_left_out_and_kept_on_disk(tmp_path, monkeypatch):
    uninterrupted = hill(cores=1)
    with monkeypatch.context() as patch:  # both groups have a draw, the first a second one
        patch.setattr(running, "POLL_INTERVAL_S", 0.0)
        interrupting(patch, chains.copy, "deepcopy", 2 * 30 + 4)
        with pytest.warns(UserWarning, match="after 31 steps; 1 of 20 draws"):
            part = hill(cores=1, checkpoint=tmp_path)
    np.testing.assert_array_equal(part.positions, uninterrupted.positions[:1])
    same_bits(hill(cores=1, checkpoint=tmp_path), uninterrupted)


@pytest.mark.parametrize(("first", "then"), [(1, 2), (2, 1)])
def test_a_run_resumes_bit_for_bit_on_another_number_of_cores(
    first, then, tmp_path, monkeypatch, request
):
    if first == 2:  # Ctrl-C ends its processes
        request.getfixturevalue("one_process")
    uninterrupted = hill(cores=1, draws=100)
    with monkeypatch.context() as patch:
        patch.setattr(running, "POLL_INTERVAL_S", 0.0)
        interrupting(
            patch, *((chains.copy, "deepcopy") if first == 1 else (chains, "starting_processes")), 3
        )
        with pytest.warns(UserWarning, match="the same call goes on"):
            part = hill(cores=first, draws=100, checkpoint=tmp_path)
    assert not part.finished
    assert [path.name for path in tmp_path.iterdir()] == ["run.npz"]
    same_bits(hill(cores=then, draws=100, checkpoint=tmp_path), uninterrupted)


SCRIPT = """
import os, signal, sys, threading, time
import numpy as np
from targets import correlated
from bbb_numpy.sampling import run

run.POLL_INTERVAL_S = 0.1

def interrupt():
    while not os.path.exists(sys.argv[1] + "/run.npz"):
        time.sleep(0.05)
    if sys.argv[2] == "ctrl-c":  # the terminal's, to this process and those it has started
        os.killpg(0, signal.SIGINT)

threading.Thread(target=interrupt, daemon=True).start()
start = np.random.default_rng(0).standard_normal((5, 3))
draws = run.sample_target(correlated(0.5), start, groups=2, draws=10**6, warm_up=30, sampler="hmc",
                          seed=0, cores=2, checkpoint=sys.argv[1], checkpoint_every=0.0)
print(len(draws.positions), draws.finished)
"""


@contextmanager
def started(script, *arguments):
    """A Python of its own, in a group of processes of its own, of which none is left at the end."""
    roots = [str(Path(bbb_numpy.__file__).parents[1]), str(Path(__file__).parents[1])]
    with subprocess.Popen(
        [sys.executable, "-c", script, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(roots)},
        start_new_session=True, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "setsid"), reason="needs process groups")
@pytest.mark.parametrize("end", ["ctrl-c", "kill"])
def test_a_run_that_is_interrupted_or_killed_resumes_on_one_core(end, tmp_path):
    with started(SCRIPT, tmp_path, end) as process:
        if end == "kill":
            deadline = time.monotonic() + 60
            while not (tmp_path / "run.npz").exists() and time.monotonic() < deadline:
                time.sleep(0.02)
            process.kill()
        printed, errors = process.communicate(timeout=60)  # till all that it started have ended
    if end == "ctrl-c":
        assert printed.endswith("False\n")
        assert "interrupted by user" in errors
        assert "Traceback" not in errors
    same_bits(hill(draws=50, checkpoint=tmp_path, cores=1), hill(draws=50, cores=1))


DEAF = """
import os, signal, time
from bbb_numpy.sampling import chains

def hears(_):
    os.kill(os.getpid(), signal.SIGINT)
    return os.getpid(), signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, [])

chains._executor(2)._timeout = 0.2  # of no work, after which a process ends
with chains.process_map(2) as each:
    first = dict(each(hears, range(4)))
    time.sleep(1.5)
    later = dict(each(hears, range(4)))
assert not first.keys() & later.keys(), "others have been started in their place"
print(all(first.values()) and all(later.values()), signal.pthread_sigmask(signal.SIG_BLOCK, []))
"""


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="needs masks of signals")
def test_no_process_of_the_pool_that_is_there_hears_ctrl_c():
    with chains.process_map(2) as map_in_processes:
        assert all(map_in_processes(survives_ctrl_c, range(4)))


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="needs masks of signals")
def test_no_process_hears_ctrl_c_from_its_start_on_nor_those_started_in_its_place():
    """In a new Python, whose first process starts a tracker of resources, which unblocks it."""
    with started(DEAF) as process:
        printed, errors = process.communicate(timeout=60)
    assert (printed, errors) == ("True set()\n", "")


def test_processes_start_where_there_are_no_standard_streams(one_process, monkeypatch):
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, None)
    assert len(hill(cores=2).positions) == 20
    assert (sys.stdout, sys.stderr) == (None, None)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a parent's number that changes")
def test_every_process_of_the_pool_watches_its_parent():
    with chains.process_map(2) as map_in_processes:
        assert set(map_in_processes(watches_its_parent, range(4))) == {True}


# --- what goes wrong -------------------------------------------------------------------------


@pytest.mark.usefixtures("one_process")
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_the_death_of_a_process_is_an_error_and_the_same_call_goes_on(tmp_path):
    target = Elsewhere(os.getpid(), "dies")
    options = {"draws": 20, "warm_up": 30, "seed": 0, "groups": 2, "checkpoint": tmp_path}
    with pytest.raises(ChildProcessError, match="unexpectedly terminated") as error:
        sample_target(target, START, cores=2, **options)
    error.match("Repeating the call continues from its checkpoint; with cores=1 no other process")
    draws = sample_target(target, START, cores=1, **options)
    same_bits(draws, sample_target(target, START, cores=1, **{**options, "checkpoint": None}))


@pytest.mark.usefixtures("one_process")
def test_an_error_of_the_target_is_raised_here_with_the_lines_where_it_was():
    with pytest.raises(ArithmeticError, match="no such density") as error:
        sample_target(
            Elsewhere(os.getpid(), "raises"), START, cores=2, groups=2, draws=20, warm_up=30
        )
    assert "targets.py" in str(error.value.__cause__)
