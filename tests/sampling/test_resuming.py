"""A run on disk: damaged, killed between two writes, of another kind."""

import errno
import re
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest
from targets import Gaussian

from bbb_numpy.sampling import resuming as recording
from bbb_numpy.sampling.mcmc import (
    HMC,
    MAMS,
    MCLMC,
    NUTS,
    ChEES,
    DenseMetric,
    DiagonalMetric,
    GaussianWalk,
    MetropolisHastings,
    State,
    begin,
    update,
)
from bbb_numpy.sampling.mcmc.chees import Paced
from bbb_numpy.sampling.resuming import Recording, Run, stacked, unstacked
from bbb_numpy.sampling.run import sample_target

UNIT = Gaussian(np.eye(2))
START = np.ones((2, 2))
NEVER = 1e9


def run(folder, draws, every=NEVER, **options):
    settings = {"sampler": "mh", "warm_up": 3, "seed": 0, **options}
    return sample_target(
        UNIT, START, draws=draws, checkpoint=folder, checkpoint_every=every, **settings
    )


def files(folder):
    return sorted(path.name for path in folder.iterdir())


class Killed(BaseException):
    """The process ends here, with no chance to tidy up."""


def killed_after(writes, monkeypatch, call):
    """Let `call` write so many files, then end it."""
    left, original = [writes], recording.write_state

    def counted(*arguments):
        if not left[0]:
            raise Killed
        left[0] -= 1
        original(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(recording, "write_state", counted)
        with pytest.raises(Killed):
            call()


def test_draws_are_written_once_and_the_state_anew(tmp_path):
    run(tmp_path, 4, every=0.0)
    assert files(tmp_path) == [
        *(f"draws-{i:08d}-{i + 1:08d}.npz" for i in range(4)),
        "state.npz",
    ]
    stamps = {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    run(tmp_path, 5)
    after = {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    assert set(after) - set(stamps) == {"draws-00000004-00000005.npz"}
    assert [name for name in stamps if stamps[name] != after[name]] == ["state.npz"]


def test_the_state_does_not_grow_with_the_draws(tmp_path):
    sizes = []
    for draws in (4, 400):
        run(tmp_path / "new" / "folders" / f"{draws}", draws)
        sizes.append((tmp_path / "new" / "folders" / f"{draws}" / "state.npz").stat().st_size)
    assert sizes[1] < sizes[0] + 200


def test_a_finished_run_is_read_and_cut_to_what_is_asked(tmp_path):
    whole = run(tmp_path, 8)
    again = run(tmp_path, 8)
    np.testing.assert_array_equal(again.positions, whole.positions)
    fewer = run(tmp_path, 3)
    np.testing.assert_array_equal(fewer.positions, whole.positions[:3])
    np.testing.assert_array_equal(run(tmp_path, 8).positions, whole.positions)


@pytest.mark.parametrize("writes", range(12))
def test_a_run_killed_before_any_write_goes_on_as_if_nothing_had_been(
    writes, tmp_path, monkeypatch
):
    whole = run(tmp_path / "whole", 6)
    folder = tmp_path / "killed"
    killed_after(writes, monkeypatch, lambda: run(folder, 6, every=0.0))
    found = run(folder, 6)
    np.testing.assert_array_equal(found.positions, whole.positions)
    np.testing.assert_array_equal(found.stats["energy"], whole.stats["energy"])


def test_draws_of_an_unfinished_write_are_never_read(tmp_path, monkeypatch):
    """A file 6-10 without its state lies about, while 6-8 and 8-12 are written later."""
    whole = run(tmp_path / "whole", 12)
    folder = tmp_path / "killed"
    run(folder, 6)
    killed_after(1, monkeypatch, lambda: run(folder, 10))
    assert "draws-00000006-00000010.npz" in files(folder)
    run(folder, 8)
    run(folder, 12)
    np.testing.assert_array_equal(run(folder, 12).positions, whole.positions)


def test_a_write_that_fails_leaves_the_last_one(tmp_path, monkeypatch):
    whole = run(tmp_path / "whole", 6)
    folder = tmp_path / "full"
    run(folder, 3)
    before = files(folder)

    def full(*arguments, **options):
        raise OSError("no space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(np, "savez", full)
        with pytest.warns(UserWarning, match="could not be written: no space"):
            run(folder, 6)
    assert files(folder) == before, "no part of a file is left"
    np.testing.assert_array_equal(run(folder, 6).positions, whole.positions)


@pytest.mark.parametrize("folder", ["", 3, None])
def test_what_names_no_folder_is_refused(folder):
    with pytest.raises(TypeError, match=f"^checkpoint must name a folder; got {folder!r}$"):
        Recording(folder, 60.0)


def test_a_write_is_due_so_long_after_the_last_one(tmp_path, monkeypatch):
    clock = SimpleNamespace(now=100.0)
    clock.monotonic = lambda: clock.now
    monkeypatch.setattr(recording, "time", clock)

    def due_at(now):
        clock.now = now
        return found.due()

    found = Recording(tmp_path, 60.0)
    assert [due_at(now) for now in (100.0, 159.0, 160.0, 170.0)] == [False, False, True, True]
    found.write(Run(State(START, *UNIT(START)), np.random.default_rng(0), None, 0, 0, [], []))
    assert [due_at(now) for now in (229.0, 230.0)] == [False, True]


def test_a_run_without_draws_has_none_to_read():
    run = Run(State(START, *UNIT(START)), np.random.default_rng(0), None, 0, 0, [], [])
    assert unstacked(stacked(run)) == ([], [])


@pytest.mark.parametrize(("turn", "right"), [([0, 0], True), ([3, 0], True), ([0, -1], False)])
def test_before_the_first_step_no_path_is_counted_and_never_less(turn, right):
    value, gradient = UNIT(START)
    state = Paced(START, value, gradient, np.array(turn), np.zeros(2), START)
    run = Run(state, np.random.default_rng(0), None, 0, 0, [], [])
    with nullcontext() if right else pytest.raises(ValueError, match="are no counts of paths"):
        recording._check_run(run)


@pytest.mark.parametrize("which", ["state.npz", "draws-00000000-00000006.npz"])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_a_file_that_was_cut_short_is_refused(which, share, tmp_path):
    run(tmp_path, 6)
    path = tmp_path / which
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(ValueError, match=r"checkpoint .* (cannot be read|is damaged)"):
        run(tmp_path, 6)


@pytest.mark.parametrize("which", ["state.npz", "draws-00000000-00000006.npz"])
def test_pickled_objects_are_refused(which, tmp_path):
    run(tmp_path, 6)
    np.savez(tmp_path / which, allow_pickle=True, header=np.array([{"a": 1}], object))
    with pytest.raises(ValueError, match=r"checkpoint .* (cannot be read|is damaged)"):
        run(tmp_path, 6)


def test_a_file_of_the_folder_s_name_is_refused(tmp_path):
    path = tmp_path / "run"
    path.write_text("mine")
    with pytest.raises(NotADirectoryError, match="is a file; name a folder"):
        run(path, 3)
    assert path.read_text() == "mine"


def test_other_files_in_the_folder_are_left_alone(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    run(tmp_path, 3)
    run(tmp_path, 5)
    assert (tmp_path / "notes.txt").read_text() == "mine"


KERNELS = {
    "nuts": NUTS(0.3),
    "mams": MAMS(0.3),
    "mclmc": MCLMC(0.3, 2.0),
    "hmc, dense": HMC(0.3, metric=DenseMetric(np.array([[1.0, 0.3], [0.3, 2.0]]))),
    "chees": ChEES(0.3),
    "walk": MetropolisHastings(GaussianWalk(0.5, DiagonalMetric(np.array([1.0, 2.0])))),
}


@pytest.mark.parametrize("generator", [np.random.PCG64, np.random.PCG64DXSM])
@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("name", KERNELS)
def test_everything_the_next_step_depends_on_is_read_back_bit_for_bit(
    name, dense, generator, tmp_path
):
    kernel, rng = KERNELS[name], np.random.Generator(generator(3))
    state = kernel.init(UNIT, START)
    adaptation = begin(kernel, UNIT, rng, state, 60, dense=dense)
    for _ in range(40):
        state, info = adaptation.kernel.step(UNIT, rng, state)
        adaptation = update(adaptation, UNIT, rng, state, info)
    first = Recording(tmp_path, 60.0)
    assert first.read({"a": 1}, START, UNIT, kernel) is None
    first.write(Run(state, rng, adaptation, 40, 2, [State(*state[:3])], [info]))
    found = Recording(tmp_path, 60.0).read({"a": 1}, START, UNIT, kernel)
    assert (found.steps, found.harmless, found.done(60)) == (40, 2, 41)
    for a, b in zip((*found.state, *found.infos[0]), (*state, *info), strict=True):
        np.testing.assert_array_equal(a, b)
        assert a.dtype == b.dtype
    assert found.adaptation.averaging == adaptation.averaging
    assert found.adaptation[1:4] == adaptation[1:4]
    for a, b in zip(found.adaptation.moments, adaptation.moments, strict=True):
        np.testing.assert_array_equal(a, b)
    ends = []
    for source, a, s in (
        (rng, adaptation, state),
        (found.rng, found.adaptation, found.state),
    ):
        for _ in range(20):
            s, info = a.kernel.step(UNIT, source, s)
            a = update(a, UNIT, source, s, info)
        ends.append((s.position, a.averaging.log_mean, source.random()))
    np.testing.assert_array_equal(ends[0][0], ends[1][0])
    assert ends[0][1:] == ends[1][1:]


def test_a_checkpoint_of_another_density_is_refused_by_its_value(tmp_path):
    def here(p):
        return -0.5 * (p**2).sum(axis=1), -p

    def there(p):
        return -0.5 * ((p - 9.0) ** 2).sum(axis=1), 9.0 - p

    def higher(p):
        return -0.5 * (p**2).sum(axis=1) + 0.1, -p

    there.__qualname__ = higher.__qualname__ = here.__qualname__
    options = {"draws": 20, "warm_up": 20, "seed": 0, "checkpoint": tmp_path / "run"}
    kept = sample_target(here, np.zeros((4, 2)), **options)
    again = sample_target(here, np.zeros((4, 2)), **options)
    assert np.array_equal(kept.positions, again.positions)
    for other in (there, higher):
        with pytest.raises(ValueError, match="belongs to another target"):
            sample_target(other, np.zeros((4, 2)), **options)


@pytest.mark.parametrize("level", [0.0, 3000.0])
@pytest.mark.parametrize(("share", "same"), [(0.9, True), (1.1, False)])
def test_values_may_differ_by_rounding_in_float32_and_no_more(level, share, same, tmp_path):
    """By 1e-4 (1 + |value|): other threads and other machines add in another order."""

    def lifted(by):
        def density(p):
            return np.full(len(p), level + by), np.zeros_like(p)

        density.__qualname__ = "density"
        return density

    kernel = HMC(0.3)
    state = kernel.init(lifted(0.0), START)
    first = Recording(tmp_path, 60.0)
    assert first.read({}, START, lifted(0.0), kernel) is None
    first.write(Run(state, np.random.default_rng(0), None, 0, 0, [], []))
    other = lifted(share * 1e-4 * (1.0 + level))
    with nullcontext() if same else pytest.raises(ValueError, match="belongs to another target"):
        Recording(tmp_path, 60.0).read({}, START, other, kernel)


def test_only_a_seed_and_a_start_may_be_left_to_the_checkpoint(tmp_path):
    kernel = HMC(0.3)
    settings = {"seed": 0, "target_accept": 0.9}
    first = Recording(tmp_path, 60.0)
    assert first.read(settings, START, UNIT, kernel) is None
    state = kernel.init(UNIT, START)
    first.write(Run(state, np.random.default_rng(0), None, 0, 0, [], []))
    left = Recording(tmp_path, 60.0)
    assert left.read({**settings, "seed": None}, None, UNIT, kernel) is not None
    assert left.settings == first.settings, "they are known again"
    words = "another run (target_accept 0.9 there, None here)"
    with pytest.raises(ValueError, match=re.escape(words)):
        Recording(tmp_path, 60.0).read({**settings, "target_accept": None}, START, UNIT, kernel)
    for other, start in ((1, START), (0, 2.0 * START)):
        with pytest.raises(ValueError, match="belongs to another run"):
            Recording(tmp_path, 60.0).read({**settings, "seed": other}, start, UNIT, kernel)


def full_disk(monkeypatch, full):
    """Let the write of file number k fail where ``full(k)``."""
    original, calls = recording.write_state, []

    def write_state(path, *arguments):
        calls.append(path)
        if full(len(calls)):
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        original(path, *arguments)

    monkeypatch.setattr(recording, "write_state", write_state)


def test_a_full_disk_costs_the_checkpoint_and_not_the_draws(tmp_path, monkeypatch):
    whole = run(tmp_path / "other", 5)
    full_disk(monkeypatch, lambda _: True)
    with pytest.warns(UserWarning, match="could not be written: .*No space left") as caught:
        found = run(tmp_path / "run", 5)
    assert [one.filename for one in caught] == [__file__]
    assert str(tmp_path / "run") in str(caught[0].message)
    assert found.finished
    np.testing.assert_array_equal(found.positions, whole.positions)


def test_a_disk_that_was_full_for_a_while_leaves_a_run_that_goes_on(tmp_path, monkeypatch):
    whole = run(tmp_path / "other", 9)
    with monkeypatch.context() as patch:
        full_disk(patch, lambda call: 3 <= call <= 9)
        with pytest.warns(UserWarning, match="could not be written"):
            run(tmp_path / "run", 5, every=0.0)
    np.testing.assert_array_equal(run(tmp_path / "run", 9).positions, whole.positions)


def test_after_a_failed_write_the_next_one_waits_its_time(tmp_path, monkeypatch):
    full_disk(monkeypatch, lambda _: True)
    one = Recording(tmp_path / "run", 60.0)
    one.written -= 61.0
    assert one.due()
    with pytest.raises(OSError, match="No space left"):
        one.write(Run(State(START, START[0], START), np.random.default_rng(0), None, 0, 0, [], []))
    assert not one.due()
