"""The MNIST experiment on a few made-up images: it resumes, prunes, chooses, and prints numbers."""

import json
from dataclasses import replace

import numpy as np
import pytest

from bbb_numpy.plots.style import axes_or_new
from bbb_studies.blundell import mnist
from bbb_studies.blundell.mnist import Candidate, Settings, lay_out
from bbb_studies.data.mnist import MNIST

TINY = Settings(
    hidden=10, train=1200, validation=200, test=200, batch=32, search=2, epochs=(6, 7, 8), draws=4,
    pruning_draws=2,
)  # fmt: skip
SOME = (
    Candidate("SGD", "SGD", 4e-3),
    Candidate("MAP", "SGD", 4e-3, (0.75, 0, 6)),
    Candidate("BBB", "SGD", 4e-3, (0.5, 0, 6), shares="geometric"),
    Candidate("BBB", "Adam", 3e-3, (0.25, 1, 6)),
)
STEPS = 2 * len(SOME) + 4 + 5 + 6  # epochs in all


def made_up(seed=0, train=1400, test=200):
    """Ten patterns of 784 pixels, each image one of them in noise."""
    rng = np.random.default_rng(seed)
    patterns = rng.random((10, 784)) < 0.2

    def part(rows):
        labels = rng.integers(0, 10, rows).astype(np.uint8)
        ink = 90.0 * patterns[labels] + rng.normal(0, 90, (rows, 784))
        return np.clip(ink, 0, 255).astype(np.uint8), labels

    return MNIST(*part(train), *part(test))


FOUND, SAVE = made_up(), mnist.write_state


def run(out, **more):
    given = {"settings": TINY, "candidates": SOME, "found": FOUND, "progress": False} | more
    return mnist.reproduce(out, **given)


def without_time(out):
    found = json.loads((out / "numbers.json").read_text())
    del found["seconds"]
    return found


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    out = tmp_path_factory.mktemp("mnist")
    return out, run(out)


class Killed(BaseException):
    """What no except clause of the package catches."""


@pytest.mark.parametrize(("when", "where"), [(0, "after"), (9, "before")])
def test_a_run_that_was_killed_goes_on_to_the_same_numbers(
    tmp_path, monkeypatch, finished, when, where
):
    """Killed in an epoch, after its training and before or after its state was stored."""
    seen = []

    def dies(*arguments):
        seen.append(0)
        if where == "after":
            SAVE(*arguments)
        if len(seen) == when + 1:
            raise Killed
        if where == "before":
            SAVE(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(mnist, "write_state", dies)
        with pytest.raises(Killed):
            run(tmp_path)
    seen.clear()

    def counts(*arguments):
        seen.append(0)
        SAVE(*arguments)

    monkeypatch.setattr(mnist, "write_state", counts)
    run(tmp_path)
    assert len(seen) == STEPS - when - (where == "after")  # nothing is trained twice
    assert without_time(tmp_path) == without_time(finished[0])
    for path in finished[0].glob("state-*.npz"):
        with np.load(path) as one, np.load(tmp_path / path.name) as other:
            assert set(one) == set(other)
            for name in set(one) - {"header"}:  # which holds the seconds
                np.testing.assert_array_equal(one[name], other[name])


def test_a_finished_run_returns_at_once(finished, monkeypatch):
    out, text = finished
    monkeypatch.setattr(mnist, "train_all", None)
    assert run(out) == text
    assert (out / "mnist.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"settings": replace(TINY, hidden=11)}, "other settings: .*'hidden': 10"),
        ({"settings": replace(TINY, epochs=(6, 7, 9))}, "other settings"),
        ({"candidates": SOME[:3]}, "other settings"),
    ],
)
def test_a_folder_of_other_settings_is_refused(finished, change, said):
    with pytest.raises(ValueError, match=said):
        run(finished[0], **change)


def test_test_images_change_nothing_that_is_trained_or_chosen(tmp_path, finished):
    """Other test images: all else is the same bit for bit."""
    other = FOUND._replace(test_images=FOUND.test_images[::-1])
    run(tmp_path, found=other)
    ours, theirs = without_time(tmp_path), without_time(finished[0])
    assert ours["search"] == theirs["search"]
    for name, one in ours["methods"].items():
        for key, value in one.items():
            same = value == theirs["methods"][name][key]
            assert same != key.startswith("test"), (name, key)


def test_the_best_on_validation_images_is_trained_on(finished):
    numbers = without_time(finished[0])
    for name, one in numbers["methods"].items():
        own = [s for s in numbers["search"] if s["method"] == name]
        best = min(own, key=lambda s: s["errors"][-1])
        assert one["chosen"] == best["name"]
        assert one["errors"][: TINY.search] == best["errors"]
    epochs = [len(one["errors"]) for one in numbers["methods"].values()]
    assert epochs == list(TINY.epochs)


def test_training_learns_the_patterns(finished):
    methods = without_time(finished[0])["methods"]
    guessing = 0.9 - 4 * (0.9 * 0.1 / TINY.test) ** 0.5  # less four standard errors
    for name, one in methods.items():
        assert one["test"] < guessing, name
        assert one["errors"][-1] <= one["errors"][0]
    assert methods["BBB"]["train kl"] > 0
    assert methods["SGD"]["test"] == methods["SGD"]["test, mean network"]


def test_pruning_keeps_the_share_and_the_biases(finished):
    numbers = without_time(finished[0])
    count = 784 * 10 + 10 * 10 + 10 * 10
    shares = [row["share"] for row in numbers["pruning"]]
    assert shares == [0, 0.5, 0.75, 0.95, 0.98]
    assert [row["left"] for row in numbers["pruning"]] == [
        count - round(share * count) for share in shares
    ]
    levels = [row["threshold"] for row in numbers["pruning"][1:]]
    assert levels == sorted(levels)


def test_the_tables_hold_the_numbers_of_the_run(finished):
    out, printed = finished
    numbers = json.loads((out / "numbers.json").read_text())
    for one in numbers["methods"].values():
        for key in ("validation", "test"):
            assert f"{100 * one[key]:.2f} %" in printed
        assert f"{one['test nll']:.4f}" in printed
    for row in numbers["pruning"]:
        assert f"{row['left']}" in printed
    assert "from memory" not in printed
    assert max(map(len, printed.splitlines())) <= 120
    numbers["methods"]["BBB"]["test"] = 0.1234
    assert "12.34 %" in lay_out(numbers)


def test_the_share_marked_lies_below_the_line():
    ratio, ax = np.exp(np.random.default_rng(0).normal(0, 1, 500)), axes_or_new(None)
    mnist._draw_ratios(ax, ratio)
    (line,) = [line for line in ax.lines if line.get_label() == "75% below"]
    assert np.mean(ratio < 10 ** (line.get_xdata()[0] / 10)) == pytest.approx(0.75)
    assert "dB" in ax.get_xlabel()
