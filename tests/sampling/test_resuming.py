"""A run on disk: damaged, killed between two writes, of another kind."""

import json
import re

import numpy as np
import pytest
from targets import Gaussian

from bbb_numpy.sampling import resuming as recording
from bbb_numpy.sampling.mcmc import (
    HMC,
    NUTS,
    DenseMetric,
    DiagonalMetric,
    GaussianWalk,
    MetropolisHastings,
    begin,
    update,
)
from bbb_numpy.sampling.resuming import Recording, Run
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
    left, original = [writes], recording.write_arrays

    def counted(path, arrays):
        if not left[0]:
            raise Killed
        left[0] -= 1
        original(path, arrays)

    with monkeypatch.context() as patch:
        patch.setattr(recording, "write_arrays", counted)
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
        with pytest.raises(OSError, match="no space"):
            run(folder, 6)
    assert files(folder) == before, "no part of a file is left"
    np.testing.assert_array_equal(run(folder, 6).positions, whole.positions)


def broken(folder, change):
    """Change the header of the state."""
    path = folder / "state.npz"
    with np.load(path) as file:
        arrays = dict(file)
    header = json.loads(arrays["header"].tobytes())
    change(header, arrays)
    if "header" in arrays:
        arrays["header"] = np.frombuffer(json.dumps(header).encode(), np.uint8)
    np.savez(path, **arrays)


DAMAGE = {
    "another format": (lambda h, a: h.update(format="x 2"), "cannot be read: its format is 'x 2'"),
    "no settings": (lambda h, a: h.pop("settings"), "cannot be read: 'settings'"),
    "no header": (lambda h, a: a.pop("header"), "cannot be read: 'header'"),
    "no files": (lambda h, a: h.pop("files"), "damaged: 'files'"),
    "a file elsewhere": (lambda h, a: h.update(files=["../x.npz"]), "damaged: '../x.npz' is no"),
    "a missing file": (lambda h, a: h.update(files=["draws-9.npz"]), "damaged: .*draws-9.npz"),
    "other numbers": (lambda h, a: h.update(stored=7), "damaged: its files hold 6 of 7 draws"),
    "no generator": (lambda h, a: h.pop("generator"), "damaged: 'generator'"),
    "a strange generator": (
        lambda h, a: h["generator"].update(bit_generator="seed"),
        "damaged",
    ),
    "no position": (lambda h, a: a.pop("state_position"), "damaged: 'state_position'"),
    "no metric": (lambda h, a: a.pop("metric"), "damaged: 'metric'"),
    "a wrong metric": (lambda h, a: a.update(metric=-a["metric"]), "damaged: variance must be"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_state_is_refused_with_a_reason(name, tmp_path):
    change, message = DAMAGE[name]
    run(tmp_path, 6)
    broken(tmp_path, change)
    with pytest.raises(ValueError, match=f"^checkpoint {re.escape(str(tmp_path))}.*{message}"):
        run(tmp_path, 6)


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
    "hmc, dense": HMC(0.3, metric=DenseMetric(np.array([[1.0, 0.3], [0.3, 2.0]]))),
    "walk": MetropolisHastings(GaussianWalk(0.5, DiagonalMetric(np.array([1.0, 2.0])))),
}


@pytest.mark.parametrize("generator", [np.random.PCG64, np.random.MT19937, np.random.Philox])
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
    first.write(Run(state, rng, adaptation, 40, 2, [state], [info]))
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

    there.__qualname__ = here.__qualname__
    options = {"draws": 20, "warm_up": 20, "seed": 0, "checkpoint": tmp_path / "run"}
    kept = sample_target(here, np.zeros((4, 2)), **options)
    again = sample_target(here, np.zeros((4, 2)), **options)
    assert np.array_equal(kept.positions, again.positions)
    with pytest.raises(ValueError, match="belongs to another target"):
        sample_target(there, np.zeros((4, 2)), **options)
