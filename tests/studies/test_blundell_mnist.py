"""The MNIST experiment on a few made-up images: it resumes, prunes, chooses, and prints numbers."""

import json
from dataclasses import replace

import numpy as np
import pytest
from synthetic_data import digits
from tables import check_picture

from bbb_studies.blundell import mnist
from bbb_studies.blundell.mnist import Candidate, Settings, lay_out
from bbb_studies.kit import classes_of_mean
from exactgrad import check_gradient

TINY = Settings(train=320, validation=80, test=100, batch=32, search=2, draws=4, pruning_draws=2)
WORDS, MINIMISED, NUMBER = mnist.STUDY_COLUMNS
SOME = (
    Candidate(WORDS, "SGD", "SGD", 6, 10, "SGD", 2e-2),
    Candidate(WORDS, "BBB", "BBB", 7, 10, "SGD", 4e-3, (0.5, 0, 6), shares="geometric"),
    Candidate(WORDS, "BBB", "BBB", 7, 10, "Adam", 3e-3, (0.25, 1, 6)),
    Candidate(MINIMISED, "MAP", "MAP", 4, 10, "SGD", 4e-3, (0.75, 0, 6)),
    Candidate(NUMBER, "tempered", "BBB", 8, 10, "Adam", 6e-3, None, local=True, beta=0.1),
    Candidate(NUMBER, "sparse", "BBB", 8, 10, "Adam", 6e-3, None, local=True, removed=0.9),
    Candidate(WORDS, "dropout", "dropout", 3, 10, "Adam", 3e-3, all_images=True),
    Candidate(NUMBER, "two", "BBB", 4, 10, "Adam", 6e-3, 1.0, removed=0.5, averaged=True),
    Candidate(NUMBER, "two", "dropout", 5, 10, removed=0.5, dense=2, start=1, averaged=True),
)
STEPS = 6 + 2 + 7 + 4 + 8 + 8 + 3 + 4 + 5  # epochs in all


FOUND, SAVE = digits(400, 150.0, 40.0, 100), mnist.write_state


def run(out, **more):
    given = {"settings": TINY, "candidates": SOME, "digits": FOUND, "jobs": 1} | more
    return mnist.reproduce(out, progress=False, **given)


def without_time(out):
    found = json.loads((out / "numbers.json").read_text())
    for row in found["rows"].values():
        del row["seconds"]
    return found


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    out = tmp_path_factory.mktemp("mnist")
    return out, run(out)


class Killed(BaseException):
    """What no except clause of the package catches."""


@pytest.mark.parametrize(
    ("when", "where"),
    [
        pytest.param(0, "after", marks=pytest.mark.slow),
        pytest.param(9, "before", marks=pytest.mark.slow),
        (33, "after"),
    ],
)
def test_a_run_that_was_killed_goes_on_to_the_same_numbers(
    tmp_path, monkeypatch, finished, when, where
):
    """Killed in an epoch, after its training and before or after its state was stored.

    The last is one in which some weights are gone and others are about to go.
    """
    seen, last = [], [(when, where)]

    def save(*arguments):
        dies = (len(seen), "before") in last, (len(seen), "after") in last
        seen.append(0)
        if not dies[0]:
            SAVE(*arguments)
        if any(dies):
            raise Killed

    monkeypatch.setattr(mnist, "write_state", save)
    with pytest.raises(Killed):
        run(tmp_path)
    seen.clear()
    last.clear()
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
    monkeypatch.setattr(mnist, "train_row", None)
    assert run(out) == text


@pytest.mark.slow
def test_the_picture_is_drawn(finished, tmp_path, drawn):
    rows = json.loads((finished[0] / "numbers.json").read_text())["rows"]
    mnist.draw_figure(rows).savefig(tmp_path / "mnist.png")
    check_picture(tmp_path / "mnist.png", 390, 5)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"settings": replace(TINY, draws=5)}, "other settings: .*'draws': 4"),
        ({"candidates": (replace(SOME[0], epochs=7), *SOME[1:])}, "other settings"),
        ({"candidates": SOME[:3]}, "other settings"),
    ],
)
def test_a_folder_of_other_settings_is_refused(finished, change, said):
    with pytest.raises(ValueError, match=said):
        run(finished[0], **change)


@pytest.mark.parametrize("text", ["", "{", "[]", "[" * 100_000])
def test_numbers_that_are_damaged_are_named(tmp_path, text):
    (tmp_path / "numbers.json").write_text(text)
    with pytest.raises(ValueError, match=r"numbers\.json is damaged or not written.*: "):
        run(tmp_path)


@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_test_images_change_nothing_that_is_trained_or_chosen(tmp_path, finished, jobs):
    """Other test images, and two processes: all else is the same bit for bit."""
    other = FOUND._replace(test_images=FOUND.test_images[::-1])
    run(tmp_path, digits=other, jobs=jobs)
    ours, theirs = without_time(tmp_path), without_time(finished[0])
    for name, row in ours["rows"].items():
        for key, value in row.items():
            of_test = value is not None and key.startswith(("test", "pruning"))
            assert (value == theirs["rows"][name][key]) != of_test, (name, key)


def test_the_best_on_validation_images_is_trained_on(finished):
    rows = without_time(finished[0])["rows"]
    own = [n for n, c in enumerate(SOME) if c.row == "BBB"]
    stored = [
        mnist.read_state(finished[0] / f"state-{n}.npz", mnist.Stored, mnist.RUN_FORMAT)
        for n in own
    ]
    best = min(stored, key=lambda one: one.run.errors[TINY.search - 1])
    assert rows["BBB"]["chosen"] == best.candidate.name
    assert rows["BBB"]["errors"] == best.run.errors
    assert sorted(len(one.run.errors) for one in stored) == [TINY.search, best.candidate.epochs]
    assert [row["epochs"] for row in rows.values()] == [6, 7, 3, 4, 8, 8, 4]  # by columns


def test_the_last_step_uses_all_images_and_is_judged_by_none_of_them(finished):
    images = mnist.prepare(FOUND, TINY)
    assert [len(mnist.training_images(images, c)[0]) for c in SOME[5:7]] == [320, 400]
    row = without_time(finished[0])["rows"]["dropout"]
    assert (row["validation"], row["errors"]) == (None, [None] * 3)


def test_training_learns_the_patterns(finished):
    rows = without_time(finished[0])["rows"]
    guessing = 0.9 - 4 * (0.9 * 0.1 / TINY.test) ** 0.5  # less four standard errors
    for name, row in rows.items():
        assert row["test"] < guessing, name
        assert name == "dropout" or row["errors"][-1] <= row["errors"][0]
    assert min(rows["tempered"]["KL"]) > 0
    f = np.add(rows["tempered"]["KL"], rows["tempered"]["NLL"])
    np.testing.assert_allclose(rows["tempered"]["F"], f)
    assert rows["SGD"]["test"] == rows["SGD"]["test, mean network"]
    assert rows["SGD"]["KL"] == [None] * 6  # a point has none


def test_pruning_ends_where_nothing_is_left(finished):
    """All weights of the matrices removed: the biases give every image one class."""
    images = mnist.prepare(FOUND, TINY)
    for number in (0, 4):
        c, _, run = mnist.read_state(
            finished[0] / f"state-{number}.npz", mnist.Stored, mnist.RUN_FORMAT
        )
        errors = [row["pruning"] for row in without_time(finished[0])["rows"].values()]
        assert all(row is None or len(row) == len(mnist.PRUNED_SHARES) for row in errors)
        estimator = mnist.build(c)
        eligible = mnist.pruning.matrices(estimator.model.layout)
        assert eligible.sum() == 784 * 10 + 10 * 10 + 10 * 10
        theta = np.where(eligible, 0, run.training.theta[: len(eligible)])
        assert len(set(classes_of_mean(mnist.build(c).model, theta, images.x_test))) == 1


def test_weights_that_are_removed_stay_removed(finished):
    """Gradually more, in the end the share asked for, and exactly 0 in every draw."""
    c, _, run = mnist.read_state(finished[0] / "state-5.npz", mnist.Stored, mnist.RUN_FORMAT)
    shares = [mnist.share_removed(c, epoch) for epoch in range(c.epochs)]
    assert shares == sorted(shares)
    assert shares[1] == 0 < shares[2]
    assert shares[5:] == [0.9] * 3
    later = replace(c, dense=4)  # whose rate falls to 0 in four epochs, and in four again
    assert [mnist.share_removed(later, epoch) > 0 for epoch in range(8)] == [False] * 4 + [True] * 4
    rates = [mnist.optimizer_for(later, epoch).schedule(1.0, 1) for epoch in range(8)]
    np.testing.assert_allclose(rates[:4], rates[4:])
    assert rates[3] == 0
    estimator = mnist.build(c)
    eligible = mnist.pruning.matrices(estimator.model.layout)
    stored = estimator.layout.views(run.training.theta)
    gone = stored["rho"] == mnist.REMOVED_RHO  # after epochs of training without them
    assert not stored["mu"][gone].any()
    assert not gone[~eligible].any()
    assert gone.sum() == round(0.9 * eligible.sum())
    eps = estimator.draw_weights(np.random.default_rng(0), 3, np.float32)
    w = estimator.weights(mnist.prune_weights(c, run.training.theta, c.removed), eps)
    assert (w[:, gone] == 0).all()
    assert (w[:, ~gone] != 0).all()


def test_of_dropout_the_weights_go_that_the_loss_misses_least():
    c, rng = SOME[-1], np.random.default_rng(0)
    estimator = mnist.build(c)
    training = mnist.start(estimator, rng, mnist.optimizer_for(c), np.float32)
    training.optimizer_state.arrays["v"][:] = rng.random(len(training.theta))
    missed = training.theta**2 * training.optimizer_state.arrays["v"]
    left = mnist.remove_weights(c, training, 0.4) > 0
    eligible = mnist.pruning.matrices(estimator.model.layout)
    assert left[~eligible].all()
    assert (~left).sum() == round(0.4 * eligible.sum())
    assert missed[~left].max() <= missed[left & eligible].min()


def test_predictions_of_a_row_that_is_averaged_are_the_mean_of_its_networks(finished):
    """Each is trained to the end from a seed of its own, and is as sparse as it should be."""
    images, total = mnist.prepare(FOUND, TINY), 0.0
    row, weights = without_time(finished[0])["rows"]["two"], (784 + 10 + 10) * 10
    for number in (7, 8):
        c, path = SOME[number], finished[0] / f"state-{number}.npz"
        theta = mnist.prune_weights(c, mnist.load(path, c, TINY).training.theta, c.removed)
        assert (theta[: weights + 30] == 0).sum() == weights / 2
        total = total + mnist.probabilities({c: theta}, TINY, images.x_test, TINY.draws)
    wrong = np.mean(total.argmax(1) != images.labels_test)
    assert (row["test"], row["test, mean network"]) == (wrong, None)
    first, other = (mnist.load(finished[0] / "none", c, TINY).training for c in SOME[6::2])
    assert (first.theta != other.theta).mean() > 0.9


def test_the_tables_hold_the_numbers_of_the_run(finished):
    out, printed = finished
    numbers = json.loads((out / "numbers.json").read_text())
    for row in numbers["rows"].values():
        for error in {row["validation"], row["test"]} - {None}:
            assert f"{100 * error:.2f} %" in printed
        assert f"{row['test nll']:.4f}" in printed
        for error in row["pruning"] or ():
            assert f"{100 * error:.2f} %" in printed
    numbers["rows"]["BBB"]["test"] = 0.1234
    assert "12.34 %" in lay_out(numbers)


@pytest.fixture
def dropped():
    """An estimator with dropout, and what a step of it takes."""
    rng, family = np.random.default_rng(0), mnist.build(replace(SOME[0], method="dropout"))
    noise, x = family.draw(rng, 1, 7), rng.random((7, 784))
    family.fill(rng, noise)
    return family, (family.init(rng), noise, x, np.eye(10)[rng.integers(0, 10, 7)])


def test_the_gradient_of_dropout_is_that_of_its_cost(dropped):
    family, (theta, *given) = dropped
    report = check_gradient(
        lambda theta: family.value_and_grad(theta, *given), theta, max_coordinates=300
    )
    assert report.passed, report


def test_inputs_that_are_dropped_are_not_seen_and_the_others_grow(dropped):
    family, (theta, noise, x, y) = dropped
    gone = noise[0, : x.size].reshape(x.shape) < 0.2
    assert 0.15 < gone.mean() < 0.25
    value = family.value_and_grad(theta, noise, x, y).value
    assert family.value_and_grad(theta, noise, np.where(gone, 9.0, x), y).value == value
    kept = replace(family, rates=(0.0, 0.5, 0.5))
    scaled = kept.value_and_grad(theta, noise, np.where(gone, 0.0, x / 0.8), y).value
    assert scaled == pytest.approx(value, rel=1e-12)


def test_fewer_weights_leave_less_out():
    c = replace(SOME[0], method="dropout", removed=0.98)
    all_there, half, end = (mnist.build(c, gone).rates for gone in (0.0, 1.0 - 0.02**0.5, None))
    np.testing.assert_allclose((all_there, end), (mnist.Dropout.rates, mnist.SPARSE_DROPOUT_RATES))
    np.testing.assert_allclose(half, np.add(all_there, end) / 2)
    assert mnist.build(replace(c, removed=0.0)).rates == mnist.Dropout.rates


def test_dropout_of_nothing_is_maximum_likelihood(dropped):
    family, (theta, noise, x, y) = dropped
    ours = replace(family, rates=(0.0, 0.0, 0.0)).value_and_grad(theta, noise, x, y)
    theirs = mnist.build(SOME[0]).value_and_grad(theta, np.empty((1, 0)), x, y)
    assert ours.value == pytest.approx(theirs.value, rel=1e-12)
    np.testing.assert_allclose(ours.grad, theirs.grad, rtol=1e-9, atol=1e-12)


def test_a_draw_of_dropout_is_a_row_that_leaves_out_the_same(dropped):
    family, (theta, _, x, y) = dropped
    eps = family.draw_weights(np.random.default_rng(1), 1)
    rows = np.repeat(eps, len(x), 0)
    cuts = np.cumsum(family.model.network.sizes[:-2])
    same = np.concatenate([part.ravel() for part in np.split(rows, cuts, 1)])[None]
    cost = family.value_and_grad(theta, same, x, y).value
    assert -family.log_likelihood(theta, eps, x, y)[0] == pytest.approx(cost, rel=1e-12)
