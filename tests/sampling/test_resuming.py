"""A run on disk: killed between two writes, damaged, of another kind."""

import copy
import errno
import json

import numpy as np
import pytest
from targets import Gaussian

from bbb_numpy.sampling import resuming
from bbb_numpy.sampling import run as running
from bbb_numpy.sampling.chains import Run
from bbb_numpy.sampling.mcmc import HMC, State
from bbb_numpy.sampling.resuming import Checkpoint
from bbb_numpy.sampling.run import sample_target

UNIT = Gaussian(np.eye(2))
START = np.ones((2, 2))


def run(folder, draws, every=1e9, **options):
    settings = {"sampler": "mh", "warm_up": 3, "seed": 0, **options}
    return sample_target(
        UNIT, START, draws=draws, checkpoint=folder, checkpoint_every=every, **settings
    )


@pytest.fixture
def every_step(monkeypatch):
    """Let a checkpoint be written after every step."""
    monkeypatch.setattr(running, "POLL_INTERVAL_S", 0.0)


def test_a_finished_run_is_read_and_cut_to_what_is_asked_and_goes_on(tmp_path):
    full = run(tmp_path, 8)
    for draws in (8, 3, 8):
        np.testing.assert_array_equal(run(tmp_path, draws).positions, full.positions[:draws])
    longer = run(tmp_path, 12)
    np.testing.assert_array_equal(longer.positions, run(tmp_path / "new" / "folder", 12).positions)
    (tmp_path / "notes.txt").write_text("mine")
    run(tmp_path, 13)
    assert (tmp_path / "notes.txt").read_text() == "mine"


class Killed(BaseException):
    """The process ends here, with no chance to tidy up."""


@pytest.mark.parametrize("writes", [0, 1, 5, 8])
def test_a_run_killed_before_any_write_goes_on_as_if_nothing_had_been(
    writes, tmp_path, monkeypatch, every_step
):
    uninterrupted = run(tmp_path / "whole", 6)
    writes_left, original = [writes], resuming.write_state

    def counted(*arguments):
        if not writes_left[0]:
            raise Killed
        writes_left[0] -= 1
        original(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(resuming, "write_state", counted)
        with pytest.raises(Killed):
            run(tmp_path / "killed", 6, every=0.0)
    resumed = run(tmp_path / "killed", 6)
    np.testing.assert_array_equal(resumed.positions, uninterrupted.positions)
    np.testing.assert_array_equal(resumed.stats["energy"], uninterrupted.stats["energy"])


def test_a_full_disk_costs_the_checkpoint_and_not_the_draws(tmp_path, monkeypatch, every_step):
    uninterrupted = run(tmp_path / "whole", 9)
    run(tmp_path / "run", 3)

    def full(path, *arguments):
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    with monkeypatch.context() as patch:
        patch.setattr(resuming, "write_state", full)
        with pytest.warns(UserWarning, match="could not be written: .*No space left") as caught:
            draws = run(tmp_path / "run", 5)
    assert [warning.filename for warning in caught] == [__file__]
    assert draws.finished
    np.testing.assert_array_equal(draws.positions, uninterrupted.positions[:5])
    np.testing.assert_array_equal(run(tmp_path / "run", 9).positions, uninterrupted.positions)


def test_a_write_is_due_so_long_after_the_last_one_failed_or_not(tmp_path, monkeypatch):
    clock = [100.0]
    monkeypatch.setattr(resuming.time, "monotonic", lambda: clock[0])
    checkpoint = Checkpoint(tmp_path / "run", 60.0)
    due = []
    for clock[0] in (100.0, 159.0, 160.0):
        due.append(checkpoint.due())
    monkeypatch.setattr(resuming, "write_state", lambda *arguments: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        checkpoint.write([Run(State(START, START[0], START), np.random.default_rng(0), None, 0, 0)])
    for clock[0] in (219.0, 220.0):
        due.append(checkpoint.due())
    assert due == [False, False, True, False, True]


def test_a_file_in_place_of_the_folder_is_refused(tmp_path):
    path = tmp_path / "run"
    path.write_text("mine")
    with pytest.raises(FileExistsError, match="run"):
        run(path, 3)
    assert path.read_text() == "mine"


@pytest.mark.parametrize("damage", ["cut short", "pickled", "text"])
def test_a_damaged_file_is_refused_and_nothing_in_it_executed(damage, tmp_path):
    run(tmp_path, 6)
    path = tmp_path / "run.npz"
    content = path.read_bytes()
    if damage == "cut short":
        path.write_bytes(content[: len(content) // 2])
    elif damage == "pickled":
        np.savez(path, allow_pickle=True, header=np.array([{"a": 1}], object))
    else:
        path.write_text("mine")
    with pytest.raises(ValueError, match=r"^checkpoint .*run.npz is damaged or not written.*: "):
        run(tmp_path, 6)


CHANGED = [  # a place in the content of the header, and what stands there
    (("settings",), True), (("runs",), 3), (("runs", 0), None), (("runs", 0, "Run", 0), -1),
    (("runs", 0, "Run", 0, "State", 1), 1.5), (("runs", 0, "Run", 1), []),
    (("runs", 0, "Run", 2), [1]), (("runs", 0, "Run", 2, "Adaptation", 0, 0), "x"),
    (("runs", 0, "Run", 3), "x"), (("runs", 0, "Run", 5), 1.5), (("runs", 0, "Run", 5, 0), [1]),
    (("runs", 0, "Run", 5, 0, "dict", 0, 0), "x"),
]  # fmt: skip
SHAPES = [np.zeros(0), np.array("x"), np.zeros((2, 3, 1))]


def test_a_changed_file_is_refused_by_its_name_whatever_has_been_changed(tmp_path):
    run(tmp_path, 6)
    path = tmp_path / "run.npz"
    with np.load(path) as file:
        arrays = dict(file)
    original = json.loads(arrays.pop("header").tobytes())
    headers, changed = [copy.deepcopy(original) for _ in CHANGED], [(original, arrays)]
    for header, (keys, value) in zip(headers, CHANGED, strict=True):
        inside = header["content"]
        for key in keys[:-1]:
            inside = inside[key]
        inside[keys[-1]] = value
        changed.append((header, arrays))
    names = ("runs[0].state.gradient", "runs[0].state.position", "runs[0].draws[0].accepted")
    changed += [(original, {**arrays, name: array}) for name in names for array in SHAPES]
    for number, (header, file_arrays) in enumerate(changed):
        np.savez(path, header=np.frombuffer(json.dumps(header).encode(), np.uint8), **file_arrays)
        if not number:
            assert len(run(tmp_path, 6).positions) == 6, "to be written again does no harm"
            continue
        with pytest.raises(
            ValueError, match=r"^checkpoint \S+run.npz is damaged or not written.*: "
        ):
            run(tmp_path, 9)


@pytest.mark.parametrize(("lift", "same"), [(0.9e-4, True), (1.1e-4, False), (3.0, False)])
def test_a_checkpoint_of_another_density_is_refused_by_its_value(lift, same, tmp_path):
    """By 1e-4 (1 + |value|): other threads and other machines add in another order."""

    def density(by):
        def density(p):
            return np.full(len(p), by), np.zeros_like(p)

        return density

    options = {"sampler": HMC(0.3), "draws": 2, "warm_up": 0, "seed": 0, "checkpoint": tmp_path}
    sample_target(density(0.0), START, **options)
    if same:
        sample_target(density(lift), START, **options)
    else:
        with pytest.raises(ValueError, match="was written for a different target"):
            sample_target(density(lift), START, **options)
