"""Powerball's experiment: whole draws held out, judged by the rules, and what it then says."""

import json
import os
from dataclasses import replace
from math import sqrt

import numpy as np
import pytest
from PIL import Image
from tables import cells_of

from bbb_studies.data import powerball as data
from bbb_studies.data.locate import ENVIRONMENT
from bbb_studies.mullachery import powerball
from bbb_studies.mullachery import powerball as scores
from bbb_studies.mullachery.powerball import (
    BAYESIAN,
    METHODS,
    NUMBERS,
    Fitted,
    Setup,
    cross_validate,
    network,
    per_draw,
    play,
    positions,
    reproduce,
    under_the_rules,
)

needs_data = pytest.mark.skipif(
    not os.environ.get(ENVIRONMENT), reason=f"{ENVIRONMENT} is not set: no Powerball draws"
)
SHARES = {59: 0.75, 69: 0.25}
EXACT = data.exact(SHARES)
RIGHT = np.pad(np.nan_to_num(EXACT.probability), (0, len(NUMBERS) - len(EXACT.probability)))
QUICK = Setup(
    chains=2, warm_up=40, draws=30, max_depth=4, epochs=200, functions=200, process_draws=20
)


def some_draws(count=150, seed=0):
    return play(SHARES, count, np.random.default_rng(seed))


# Scores.


def test_the_standard_error_is_over_draws_not_over_balls():
    rng = np.random.default_rng(1)
    draw = np.repeat(np.arange(400), 4)  # two balls, two repeats
    hits = np.repeat(rng.integers(0, 2, 400), 4).astype(float)  # all of a draw alike
    found = per_draw(hits, draw)
    assert found.mean == hits.mean()
    assert found.error == pytest.approx(hits.std() / sqrt(400), rel=0.01)
    as_if_independent = hits.std() / sqrt(len(hits))
    assert found.error > 1.9 * as_if_independent
    shuffled = rng.permutation(len(draw))
    assert per_draw(hits[shuffled], draw[shuffled]) == pytest.approx(found)


def test_no_draw_is_on_both_sides_of_a_split(monkeypatch):
    rows, seen = some_draws(40), []

    def spy(given, seed, setup):
        seen.append(given)
        return Fitted(RIGHT, 0.0)

    monkeypatch.setattr(scores, "METHODS", {"spy": spy})
    cross_validate(rows, EXACT, QUICK, 0, count=4, repeats=3)
    assert len(seen) == 12
    held_out = np.zeros(40, int)
    for given in seen:
        counts = np.bincount(given.draw, minlength=40)
        assert set(counts) == {0, 2}  # both balls or none
        assert (counts == 0).sum() == 10
        held_out += counts == 0
        np.testing.assert_array_equal(given.balls, rows.balls[np.isin(rows.draw, given.draw)])
    assert (held_out == 3).all()


@pytest.mark.equation("D37")
def test_the_exact_rule_is_the_best_under_the_rules():
    best = under_the_rules(RIGHT, EXACT)
    assert best["accuracy"] == pytest.approx(EXACT.accuracy, rel=1e-12)
    assert best["log loss"] == pytest.approx(EXACT.log_loss, rel=1e-4)  # probabilities clipped
    assert best["rmse"] == 0.0
    rng = np.random.default_rng(0)
    for _ in range(30):
        other = under_the_rules(np.clip(RIGHT + 0.1 * rng.standard_normal(70), 0, 1), EXACT)
        assert other["accuracy"] <= best["accuracy"] + 1e-12
        assert other["log loss"] > best["log loss"]
        assert other["rmse"] > 0.01


@pytest.mark.equation("D37")
def test_scores_under_the_rules_are_those_of_very_many_draws():
    rows = some_draws(20_000)
    p = np.clip(RIGHT + 0.1 * np.sin(NUMBERS), 0.01, 0.99)
    wanted = under_the_rules(p, EXACT)
    right = ((p[rows.number] > 0.5) == (rows.label == 1)).astype(float)
    found = per_draw(right, rows.draw)
    assert abs(found.mean - wanted["accuracy"]) < 4 * found.error
    losses = -np.log(np.where(rows.label == 1, p[rows.number], 1 - p[rows.number]))
    found = per_draw(losses, rows.draw)
    assert abs(found.mean - wanted["log loss"]) < 4 * found.error
    assert found.error < 0.01


# Credible intervals.


def test_the_game_is_played_by_the_rules():
    rows = play(SHARES, 2000, np.random.default_rng(0))
    assert [(rows.balls[::2] == balls).sum() for balls in (59, 69)] == [1500, 500]
    assert (rows.number[::2] < rows.number[1::2] - 1).all()
    assert (rows.number <= rows.balls - 2).all()
    numbers = rows.number[(rows.label == 0) & (rows.balls == 59)]
    assert abs(numbers.mean() - 30) < 4 * numbers.std() / sqrt(1500)  # 3 (59 + 1) / 6


# The classifiers.


@pytest.mark.equation("D37")
@pytest.mark.parametrize("name", METHODS)
def test_every_classifier_learns_the_game(name):
    rows = play(SHARES, 400, np.random.default_rng(5))
    setup = replace(QUICK, warm_up=60, draws=40, epochs=600, process_draws=60)
    fitted = METHODS[name](rows, 0, setup)
    found = under_the_rules(fitted.probability, EXACT)
    assert fitted.probability.shape == (70,)
    assert 0 <= fitted.probability.min() <= fitted.probability.max() <= 1
    trees = name in ("random forest", "AdaBoost")
    assert found["accuracy"] > EXACT.accuracy - (0.03 if trees else 0.005)
    assert found["rmse"] < (0.3 if name == "AdaBoost" else 0.1 if trees else 0.05)
    if name in BAYESIAN:
        np.testing.assert_allclose(fitted.functions.mean(axis=0), fitted.probability, rtol=1e-12)
        assert fitted.weights.shape == (len(fitted.functions), network(setup, 1.0).layout.size)


def test_weights_and_functions_belong_together():
    rows = some_draws(80)
    for name in BAYESIAN:
        fitted = METHODS[name](rows, 0, QUICK)
        w0, b0, w1, b1 = np.split(fitted.weights, [5, 10, 15], axis=1)
        x = np.log(NUMBERS + 1.0)
        seen = np.log(rows.number + 1.0)
        x = (x - seen.mean()) / seen.std()
        hidden = np.tanh(x[:, None, None] * w0 + b0)  # (70, S, 5)
        p = 1 / (1 + np.exp(-(hidden * w1).sum(-1) - b1[:, 0])).T
        np.testing.assert_allclose(fitted.functions, p, rtol=1e-9)


# The whole experiment, on draws that were played here.


@pytest.fixture
def played(tmp_path, monkeypatch):
    rng, day = np.random.default_rng(2), np.datetime64("2014-12-03")
    lines = [",".join(data.COLUMNS)]
    for week in range(70):
        today = day + 7 * week
        urn = 69 if today >= np.datetime64("2015-10-07") else 59
        white = np.sort(rng.choice(np.arange(1, urn + 1), 5, replace=False))
        lines.append(f"{today},{','.join(map(str, white))},7,2")
    (tmp_path / "powerball").mkdir()
    (tmp_path / "powerball" / data.FILE).write_text("\n".join(lines) + "\n")
    monkeypatch.setenv(ENVIRONMENT, str(tmp_path))
    return tmp_path


def test_everything_is_written_and_every_number_in_the_tables_was_computed(played, tmp_path):
    out = tmp_path / "new" / "out"
    setup = replace(QUICK, warm_up=20, draws=20, max_depth=3, epochs=100)
    text = reproduce(out, seed=1, setup=setup, folds=2, repeats=1)
    numbers = json.loads((out / "numbers.json").read_text())

    def of(part, digits=2, scale=100):
        return f"{scale * part['mean']:.{digits}f} ({scale * part['error']:.{digits}f})"

    game = cells_of(text, "the game")
    assert [game[name] for name in ("first", "last")] == [["2014-12-03"], ["2016-03-30"]]
    accuracy, probabilities = cells_of(text, "accuracy, %"), cells_of(text, "probabilities")
    for name, score in numbers["scores"].items():
        held, rules = score["accuracy"], score["true_accuracy"]
        assert (accuracy[name][1], accuracy[name][4]) == (of(held), of(rules, 3))
        assert rules["mean"] <= numbers["ceiling"] + 1e-12
        assert probabilities[name][0] == of(score["log_loss"], 4, 1)
        assert probabilities[name][2] == of(score["rmse"], 4, 1)
    for name, printed in numbers["printed"].items():
        assert accuracy[name][0] == f"{100 * printed:.2f}"
    claims = cells_of(text, "claim of the paper")
    assert claims["accuracy of NUTS, 1-5-5-1, %"][0] == "81.23"
    above = numbers["printed"]["Gaussian process"] - numbers["ceiling"]
    ours = cells_of(text, "ours")
    said = "the best printed accuracy, points above the ceiling"
    assert ours[said] == ["<= 0", f"{100 * above:.2f}", "no"]
    assert said not in claims  # the paper prints no ceiling
    widths = numbers["all draws"]["NUTS, 1-5-5-1"]["weights"]
    shown = cells_of(text, "weights")["NUTS, 1-5-5-1, all chains"]
    assert shown[:2] == [f"{min(widths):.2f}", f"{max(widths):.2f}"]
    assert "nan" not in text
    assert max(map(len, text.split("\n"))) <= 120
    for name in (
        "data",
        "buckets",
        "boundaries",
        "uncertainty",
        "confusion",
        "weights",
    ):
        with Image.open(out / f"{name}.png") as picture:
            assert min(picture.size) > 390
            assert len(set(picture.convert("L").resize((60, 60)).tobytes())) > 10


# Where the numbers lie.


def test_the_powerball_is_from_the_urn_of_its_day():
    days = np.array(["2011-01-01", "2014-01-01", "2014-01-04", "2016-01-02"], "M8[D]")
    white = np.tile(np.arange(1, 6), (4, 1))
    *_, red = positions(data.Draws(days, white, np.full(4, 59), np.array([39, 35, 1, 26])))
    assert red.name == "Powerball"
    assert red.mass[26] == pytest.approx((1 / 39 + 2 / 35 + 1 / 26) / 4)
    assert red.mass[27] == pytest.approx((1 / 39 + 2 / 35) / 4)
    assert red.mass[39] == pytest.approx(1 / 39 / 4)


@needs_data
@pytest.mark.long
@pytest.mark.equation("D37")
def test_the_network_reaches_the_ceiling_on_the_real_draws(monkeypatch):
    """In the long run, by NUTS and by VI; and on held-out draws as near as the exact rule."""
    draws = data.load(powerball.UNTIL)
    rows, exact = data.examples(draws), data.exact(data.rules(draws))
    monkeypatch.setattr(scores, "METHODS", {name: METHODS[name] for name in BAYESIAN})
    found = cross_validate(rows, exact, Setup(), 0, 5, 1)
    for name in BAYESIAN:
        found_scores = found[name]
        assert exact.accuracy - found_scores.true_accuracy.mean < 5e-4  # of an error of 8e-3
        assert abs(found_scores.accuracy.mean - exact.accuracy) < 2 * found_scores.accuracy.error
        assert abs(found_scores.above_rule.mean) < 2 * found_scores.above_rule.error
        assert found_scores.rmse.mean < 0.03
        assert not found_scores.rhat[0] > 1.05  # nan for VI, which has no chains
