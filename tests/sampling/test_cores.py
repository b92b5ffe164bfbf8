"""Groups of chains in processes: the same bits, however many; what goes wrong leaves nothing."""

import json
import os
import pickle
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
from targets import Elsewhere, correlated

import bbb_numpy
from bbb_numpy import MLP, GaussianLikelihood, GaussianPrior, Model
from bbb_numpy.progress import tqdm
from bbb_numpy.sampling import run as running
from bbb_numpy.sampling import workers
from bbb_numpy.sampling.mcmc import HMC, NUTS
from bbb_numpy.sampling.run import sample, sample_target

pytestmark = pytest.mark.filterwarnings("ignore:[0-9]+ divergent transitions")
HILL = correlated(0.5)
START = np.random.default_rng(0).standard_normal((5, 3))


def network(**options):
    x = np.linspace(-1.0, 1.0, 9)[:, None]
    model = Model(MLP((1, 3, 1), "tanh"), GaussianPrior(learn=True), GaussianLikelihood(0.3, True))
    settings = {"chains": 5, "groups": 3, "draws": 14, "warm_up": 30, "sampler": NUTS(max_depth=4)}
    return sample(model, x, np.sin(3 * x), **{**settings, "seed": 0, **options})


def hill(target=HILL, **options):
    settings = {"groups": 2, "draws": 20, "warm_up": 30, "sampler": "hmc", "seed": 0}
    return sample_target(target, START, **{**settings, **options})


def same(a, b):
    """Bit for bit."""
    assert a.positions.tobytes() == b.positions.tobytes()
    assert a.log_density.tobytes() == b.log_density.tobytes()
    assert a.stats.keys() == b.stats.keys()
    for name in a.stats:
        assert a.stats[name].tobytes() == b.stats[name].tobytes(), name
    for mine, other in zip(a.kernels, b.kernels, strict=True):
        assert mine.step_size == other.step_size
        assert mine.metric.variance.tobytes() == other.metric.variance.tobytes()
    ends = [(one.finished, one.warm_up, one.warm_up_divergent, one.step_size) for one in (a, b)]
    assert ends[0] == ends[1]


@pytest.fixture(autouse=True)
def started(monkeypatch):
    """The processes that a test starts, of which none may outlive the call that started it."""
    processes, popen = [], subprocess.Popen

    def recorded(*arguments, **options):
        processes.append(popen(*arguments, **options))
        return processes[-1]

    monkeypatch.setattr(workers.subprocess, "Popen", recorded)
    yield processes
    assert all(process.poll() is not None for process in processes)


def at_once(monkeypatch):
    """Let every run count as long enough for processes, when its first step is made."""
    monkeypatch.setattr(running, "TRIED", 0.0)
    monkeypatch.setattr(running, "PAYS", 0.0)
    monkeypatch.setattr(running, "usable", lambda: 2)


def interrupting(monkeypatch, where, name, when):
    """Press Ctrl-C at call number `when` of a function."""
    calls, original = [0], getattr(where, name)

    def pressed(*arguments):
        calls[0] += 1
        if calls[0] == when:
            signal.raise_signal(signal.SIGINT)
        return original(*arguments)

    monkeypatch.setattr(where, name, pressed)


# --- groups ----------------------------------------------------------------------------------


def test_the_usual_groups_are_those_of_the_network_and_its_rows():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((500, 3))
    model = Model(MLP((3, 50, 1)), GaussianPrior(), GaussianLikelihood(0.3))
    options = {"chains": 4, "draws": 2, "warm_up": 25, "seed": 0, "sampler": HMC(max_steps=2)}
    usual = sample(model, x, x[:, :1], **options)
    same(usual, sample(model, x, x[:, :1], groups=2, **options))
    small = sample(model, x[:300], x[:300, :1], **options)
    assert len(small.kernels) == 1, "75,300 products"


def test_a_group_knows_nothing_of_the_others():
    whole = hill()
    other = START.copy()
    other[3:] += 1.0
    found = sample_target(HILL, other, groups=2, draws=20, warm_up=30, sampler="hmc", seed=0)
    np.testing.assert_array_equal(found.positions[:, :3], whole.positions[:, :3])
    assert not (found.positions[:, 3:] == whole.positions[:, 3:]).any()
    together = hill(groups=1)
    assert not (together.positions == whole.positions).any()


def test_each_group_has_its_own_kernel_and_the_step_size_is_their_mean():
    found = hill()
    sizes = [kernel.step_size for kernel in found.kernels]
    assert len(set(sizes)) == 2
    assert found.step_size == np.mean(sizes)


def test_a_chain_that_cannot_start_is_named_by_its_number():
    start = START.copy()
    start[4, 0] = np.nan
    with pytest.raises(ValueError, match=r"not finite where chains \[4\] start"):
        sample_target(HILL, start, groups=2, draws=2, warm_up=2)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"groups": 0}, ValueError, "groups must be a whole number >= 1; got 0"),
        ({"groups": 6}, ValueError, "groups must be a whole number >= 1 and <= 5; got 6"),
        ({"cores": 0}, ValueError, "cores must be a whole number >= 1; got 0"),
        (
            {"cores": 10**6},
            ValueError,
            "cores must be a whole number >= 1 and <= 1024; got 1000000",
        ),
        ({"cores": "all"}, TypeError, "cores must be a whole number >= 1; got 'all'"),
    ],
)
def test_arguments_that_cannot_be_used_are_named(options, error, message):
    with pytest.raises(error, match=message):
        hill(**options)


# --- the same bits ---------------------------------------------------------------------------


def test_draws_are_the_same_bits_on_one_two_and_three_cores(started):
    one = network(cores=1)
    assert not started
    for cores in (2, 3):
        same(network(cores=cores), one)
    assert len(started) == 2 + 3


def test_a_long_run_moves_to_other_cores_without_changing_a_bit(started, monkeypatch):
    one = network(cores=1, thin=2, metric="diagonal", dtype="float32")
    at_once(monkeypatch)
    same(network(thin=2, dtype="float32"), one)
    assert len(started) == 2, "as many as the machine has"


def test_a_run_of_one_group_and_a_short_one_start_no_process(started, monkeypatch):
    hill(cores=2, groups=1)
    hill()
    monkeypatch.setattr(running, "usable", lambda: 2)
    hill()
    assert not started


def test_a_process_of_a_pool_and_a_frozen_program_keep_to_one_core(monkeypatch):
    monkeypatch.setattr(workers.os, "sched_getaffinity", lambda pid: {3, 5, 6}, raising=False)
    assert workers.usable() == 3
    with monkeypatch.context() as patch:
        patch.setattr(workers.sys, "frozen", True, raising=False)
        assert workers.usable() == 1
    monkeypatch.setattr(workers.multiprocessing, "parent_process", lambda: object())
    assert workers.usable() == 1


# --- progress, interruption, resumption ------------------------------------------------------


@pytest.mark.parametrize("cores", [1, 2])
def test_the_bar_ends_at_the_steps_of_one_chain(cores, started, monkeypatch):
    ends, sessions = [], []

    class Recorded(tqdm):
        def close(self):
            if not self.disable:
                ends.append((self.n, self.total))
            super().close()

        def update(self, n=1):
            if hasattr(os, "getsid"):
                sessions.extend(os.getsid(process.pid) for process in started)
            return super().update(n)

    monkeypatch.setattr(running, "tqdm", Recorded)
    hill(cores=cores, progress=True)
    assert ends[0] == (50, 50)
    if hasattr(os, "getsid"):
        assert len(set(sessions)) == (0 if cores == 1 else 2)
        assert os.getsid(0) not in sessions, "Ctrl-C of the terminal reaches this process alone"


def test_ctrl_c_returns_the_draws_so_far_and_leaves_no_process(started, monkeypatch, capfd):
    options = {"draws": 100_000, "warm_up": 30, "seed": 0, "groups": 2, "cores": 2}
    with monkeypatch.context() as patch:
        interrupting(patch, workers.Processes, "receive", 5)
        with pytest.warns(UserWarning, match=r"interrupted by user after \d+ steps; \d+ of 100000"):
            part = sample_target(HILL, START, sampler="mh", **options)
    assert not part.finished
    count = len(part.positions)
    assert 0 < count < 100_000
    assert {array.shape for array in part.stats.values()} == {(count, 5)}
    whole = sample_target(HILL, START, sampler="mh", **{**options, "draws": count, "cores": 1})
    assert part.positions.tobytes() == whole.positions.tobytes()
    assert "Traceback" not in capfd.readouterr().err
    assert all(process.poll() is not None for process in started)


def test_draws_that_only_some_groups_have_are_left_out_and_kept_on_disk(tmp_path, monkeypatch):
    whole = hill(cores=1)
    with monkeypatch.context() as patch:  # both groups have a draw, the first a second one
        interrupting(patch, running, "advance", 2 * 30 + 4)
        with pytest.warns(UserWarning, match="after 31 steps; 1 of 20 draws"):
            part = hill(cores=1, checkpoint=tmp_path)
    np.testing.assert_array_equal(part.positions, whole.positions[:1])
    assert [stored_draws(tmp_path / f"group-{group}") for group in (0, 1)] == [2, 1]
    same(hill(cores=1, checkpoint=tmp_path), whole)


def stored_draws(folder):
    with np.load(folder / "state.npz") as file:
        return json.loads(file["header"].tobytes())["content"]["draws"]


@pytest.mark.parametrize(("first", "then"), [(1, 2), (2, 1)])
def test_a_run_resumes_bit_for_bit_on_another_number_of_cores(first, then, tmp_path, monkeypatch):
    whole = hill(cores=1, draws=200)
    with monkeypatch.context() as patch:
        place = (
            (running, "advance", 2 * 30 + 50) if first == 1 else (workers.Processes, "receive", 1)
        )
        interrupting(patch, *place)
        with pytest.warns(UserWarning, match="the same call goes on"):
            part = hill(cores=first, draws=200, checkpoint=tmp_path)
    assert not part.finished
    assert sorted(path.name for path in tmp_path.iterdir()) == ["group-0", "group-1"]
    same(hill(cores=then, draws=200, checkpoint=tmp_path), whole)
    made = [stored_draws(tmp_path / f"group-{group}") for group in (0, 1)]
    assert made == [200, 200], "no more than were left to make"
    same(hill(cores=1, draws=200, checkpoint=tmp_path), whole)


def test_groups_of_which_one_has_not_been_written_resume_bit_for_bit(tmp_path):
    """The process was killed between the writes of two groups."""
    whole = hill(checkpoint=tmp_path, cores=1)
    for path in (tmp_path / "group-1").iterdir():
        path.unlink()
    same(hill(checkpoint=tmp_path, cores=1), whole)


@pytest.mark.parametrize(("before", "after"), [(1, 2), (2, 1), (2, 3)])
def test_a_checkpoint_of_other_groups_is_refused(before, after, tmp_path):
    hill(groups=before, checkpoint=tmp_path, cores=1)
    with pytest.raises(ValueError, match=r"belongs to another run .*group"):
        hill(groups=after, checkpoint=tmp_path, cores=1)
    hill(groups=before, checkpoint=tmp_path, cores=1)


KILLED = """
import sys
import numpy as np
from targets import correlated
from bbb_numpy.sampling.run import sample_target
start = np.random.default_rng(0).standard_normal((5, 3))
sample_target(correlated(0.5), start, groups=2, draws=10**6, warm_up=30, sampler="hmc", seed=0,
              cores=2, checkpoint=sys.argv[1], checkpoint_every=0.0)
"""


def children(pid):
    return [int(c) for c in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def alive(pid):
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc")
def test_a_killed_run_leaves_no_process_and_resumes_on_one_core(tmp_path):
    roots = [str(Path(bbb_numpy.__file__).parents[1]), str(Path(__file__).parents[1])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(roots)}
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path)], env=environment)
    try:
        deadline = time.monotonic() + 60
        while len(list(tmp_path.glob("*/draws-*"))) < 4 and time.monotonic() < deadline:
            time.sleep(0.02)
        its = children(process.pid)
        assert len(its) == 2
    finally:
        process.kill()
        process.wait()
    deadline = time.monotonic() + 30
    while any(alive(pid) for pid in its) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not any(alive(pid) for pid in its), "each has heard that its pipe has ended"
    same(hill(draws=50, checkpoint=tmp_path, cores=1), hill(draws=50, cores=1))


# --- what goes wrong -------------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_the_death_of_a_process_names_its_group_and_the_same_call_goes_on(tmp_path):
    target = Elsewhere(os.getpid(), "dies")
    options = {"draws": 20, "warm_up": 30, "seed": 0, "groups": 2, "checkpoint": tmp_path}
    with pytest.raises(
        ChildProcessError, match=r"process of group [01], chains (0 to 2|3 to 4), died .* code -9"
    ) as error:
        sample_target(target, START, cores=2, **options)
    assert "the same call goes on from the checkpoint" in str(error.value)
    found = sample_target(target, START, cores=1, **options)
    same(found, sample_target(target, START, **{**options, "checkpoint": None}))


def test_an_error_of_the_target_is_raised_here_with_the_lines_where_it_was():
    with pytest.raises(ArithmeticError, match="no such density") as error:
        sample_target(
            Elsewhere(os.getpid(), "raises"), START, cores=2, groups=2, draws=20, warm_up=30
        )
    [note] = error.value.__notes__
    assert "targets.py" in note


def standard(position):
    return -0.5 * (position**2).sum(axis=1), -position


@pytest.fixture
def scripts(monkeypatch):
    """A function of the script that runs, which a new process cannot import."""

    def found(position):
        return standard(position)

    found.__module__, found.__qualname__ = "__main__", "of_the_script"
    monkeypatch.setattr(sys.modules["__main__"], "of_the_script", found, raising=False)
    assert pickle.dumps(found), "here it can be pickled"
    return found


def test_a_lambda_is_refused_where_cores_are_asked_for(started):
    with pytest.raises(
        ValueError, match=r"cores=2: .*lambda.*define it in a module.*or use cores=1"
    ):
        hill(lambda p: standard(p), cores=2)
    assert not started


def test_a_function_of_the_script_is_refused_where_cores_are_asked_for(scripts, capfd):
    with pytest.raises(ValueError, match=r"cores=2: .*of_the_script.*define it in a module"):
        hill(scripts, cores=2)
    assert "Traceback" not in capfd.readouterr().err


def test_without_a_wish_for_cores_a_lambda_stays_on_one_and_says_so(monkeypatch):
    one = hill(lambda p: standard(p), cores=1)
    at_once(monkeypatch)
    with pytest.warns(UserWarning, match="goes on on one core: .*define it in a module") as caught:
        found = hill(lambda p: standard(p))
    assert len(caught) == 1
    assert caught[0].filename == __file__
    same(found, one)


def test_many_divergences_of_several_groups_warn_once():
    def wall(position):
        inside = np.abs(position).max(axis=1) < 1.0
        return np.where(inside, 0.0, -np.inf), np.zeros_like(position)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        sample_target(
            wall, 0.1 * START, groups=2, sampler=NUTS(0.5), draws=20, warm_up=0, seed=0, cores=1
        )
    [said] = [str(one.message) for one in caught]
    assert "divergent transitions among 100 draws" in said


def test_divergences_of_the_warm_up_are_those_of_all_groups():
    def cliff(position):  # chains 3 and 4, the second group, start beyond it
        inside = position[:, 0] < 5.0
        return np.where(inside, -0.5 * position[:, 0] ** 2, -1e6 * position[:, 0]), -position

    start = np.zeros((5, 1))
    start[3:] = 10.0
    found = sample_target(
        cliff, start, groups=2, sampler=HMC(0.5, path=2.0), draws=1, warm_up=15, seed=0, cores=1
    )
    alone = sample_target(
        cliff, start[:3], sampler=HMC(0.5, path=2.0), draws=1, warm_up=15, seed=0, cores=1
    )
    assert found.warm_up_divergent > alone.warm_up_divergent


def test_other_seeds_and_chains_in_another_order_are_not_the_same_bits():
    """The negative control of `same`."""
    with pytest.raises(AssertionError):
        same(hill(seed=1), hill(seed=0))
    flipped = sample_target(
        HILL, START[::-1].copy(), groups=2, draws=20, warm_up=30, sampler="hmc", seed=0
    )
    with pytest.raises(AssertionError):
        same(flipped, hill())
