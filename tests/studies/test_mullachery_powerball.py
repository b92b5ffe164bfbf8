"""Powerball's experiment: whole draws held out, judged by the rules, and what it then says."""

import numpy as np
import pytest
from synthetic_data import draws, needs_data

from bbb_studies.data import powerball as data
from bbb_studies.mullachery import powerball
from bbb_studies.mullachery.powerball import (
    BALL_NUMBERS,
    BAYESIAN_NETWORKS,
    CLASSIFIERS,
    Fitted,
    Setup,
    cross_validate,
    expected_scores,
    network,
    positions,
)

SHARES = {59: 0.75, 69: 0.25}
EXACT = data.exact(SHARES)
RIGHT = np.pad(np.nan_to_num(EXACT.probability), (0, len(BALL_NUMBERS) - len(EXACT.probability)))
QUICK = Setup(chains=2, warm_up=60, draws=40, max_depth=4, epochs=600, functions=200,
              process_draws=60)  # fmt: skip
LONG = Setup(warm_up=150, draws=100, max_depth=5)


def test_no_draw_is_on_both_sides_of_a_split(monkeypatch):
    rows, seen = data.examples(draws(40)), []

    def spy(given, seed, setup):
        seen.append(given)
        return Fitted(RIGHT)

    monkeypatch.setattr(powerball, "CLASSIFIERS", {"spy": spy})
    found = cross_validate(rows, EXACT, QUICK, 0, n_folds=4, repeats=3)
    assert found["spy"]["above_rule"] == (0.0, 0.0)
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
    best = expected_scores(RIGHT, EXACT)
    assert best["accuracy"] == pytest.approx(EXACT.accuracy, rel=1e-12)
    assert best["log loss"] == pytest.approx(EXACT.log_loss, rel=1e-4)  # probabilities clipped
    assert best["rmse"] == 0.0
    rng = np.random.default_rng(0)
    for _ in range(30):
        other = expected_scores(np.clip(RIGHT + 0.1 * rng.standard_normal(70), 0, 1), EXACT)
        assert other["accuracy"] <= best["accuracy"] + 1e-12
        assert other["log loss"] > best["log loss"]


@pytest.mark.equation("D37")
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_every_classifier_learns_the_game(name):
    rows = data.examples(draws(400, 5))
    fitted = CLASSIFIERS[name](rows, 0, QUICK)
    found = expected_scores(fitted.probability, EXACT)
    trees = name in ("random forest", "AdaBoost")
    assert found["accuracy"] > EXACT.accuracy - (0.03 if trees else 0.005)
    assert found["rmse"] < (0.3 if name == "AdaBoost" else 0.1 if trees else 0.05)
    if name in BAYESIAN_NETWORKS:  # weights and functions belong together
        np.testing.assert_allclose(fitted.functions.mean(axis=0), fitted.probability, rtol=1e-12)
        assert fitted.weights.shape == (len(fitted.functions), network(QUICK, 1.0).layout.size)
        w0, b0, w1, b1 = np.split(fitted.weights, [5, 10, 15], axis=1)
        x, seen = np.log(BALL_NUMBERS + 1.0), np.log(rows.number + 1.0)
        hidden = np.tanh(((x - seen.mean()) / seen.std())[:, None, None] * w0 + b0)  # (70, S, 5)
        p = 1 / (1 + np.exp(-(hidden * w1).sum(-1) - b1[:, 0])).T
        np.testing.assert_allclose(fitted.functions, p, rtol=1e-9)


def test_the_powerball_is_from_the_urn_of_its_day():
    days = np.array(["2011-01-01", "2014-01-01", "2014-01-04", "2016-01-02"], "M8[D]")
    white = np.tile(np.arange(1, 6), (4, 1))
    found = positions(data.Draws(days, white, np.full(4, 59), np.array([39, 35, 1, 26])))
    _, mass = found["Powerball"]
    assert mass[26:28] == pytest.approx([(1 / 39 + 2 / 35 + 1 / 26) / 4, (1 / 39 + 2 / 35) / 4])


@needs_data
@pytest.mark.slow
@pytest.mark.equation("D37")
def test_the_network_reaches_the_ceiling_on_the_real_draws(monkeypatch):
    """In the long run, by NUTS and by VI; and on held-out draws as near as the exact rule."""
    played = data.load(powerball.LAST_DAY)
    rows, exact = data.examples(played), data.exact(data.rules(played))
    monkeypatch.setattr(
        powerball, "CLASSIFIERS", {name: CLASSIFIERS[name] for name in BAYESIAN_NETWORKS}
    )
    for name, found in cross_validate(rows, exact, LONG, 0, 5, 1).items():
        held, above = found["accuracy"], found["above_rule"]
        assert exact.accuracy - found["true_accuracy"].mean < 5e-4, name  # of an error of 8e-3
        assert abs(held.mean - exact.accuracy) < 2 * held.error
        assert abs(above.mean) <= 2 * above.error
        assert found["rmse"].mean < 0.03
