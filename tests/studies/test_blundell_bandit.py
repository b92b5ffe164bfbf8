"""The mushroom bandit: its rules, its players, and runs that survive interruption."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest

from bbb_numpy.numeric.buffers import Buffers
from bbb_numpy.parts.network import MLP
from bbb_studies.blundell import bandit as models
from bbb_studies.blundell.bandit import (
    AGENTS,
    LastLayer,
    Settings,
    build,
    decide,
    draw_game,
    init_state,
    kl_share,
    load_or_play_run,
    measure,
    play,
    regret,
    reproduce,
)
from bbb_studies.data.mushroom import Mushrooms

SMALL = Settings(
    interactions=200, runs=2, hidden=(5,), memory=50, batch=8, steps=2, dense=40, sparse=4
)
THOMPSON, GREEDY, LAST = AGENTS[0], AGENTS[2], AGENTS[5]


def mushrooms(count=60, width=7, seed=0):
    """Mushrooms of which the first letter tells the poisonous ones."""
    rng = np.random.default_rng(seed)
    x = (rng.random((count, width)) < 0.5).astype(np.float32)
    return Mushrooms(x, x[:, 0] == 1, tuple("abcdefg"))


DATA = mushrooms()


def played(agent, settings=SMALL, run=0, until=None):
    game = draw_game(DATA.x, DATA.poisonous, settings.interactions, (3, run))
    state = init_state(agent, settings, game.inputs.shape[1], (3, run, 9))
    play(game, agent, settings, state, settings.interactions if until is None else until)
    return game, state


# The game.


def test_an_agent_told_the_truth_has_no_regret():
    game = draw_game(DATA.x, DATA.poisonous, 500, (0,))
    assert (regret(game, ~game.poisonous) == 0).all()
    assert (regret(game, ~game.poisonous, realised=True) == 0).all()


def test_expected_regret_is_the_mean_of_realised_regret_and_never_negative():
    game = draw_game(DATA.x, DATA.poisonous, 100_000, (1,))
    ate = np.random.default_rng(2).random(100_000) < 0.4
    expected, realised = regret(game, ate), regret(game, ate, realised=True)
    assert expected.min() == 0
    gap = realised - expected
    assert abs(gap.mean()) < 4 * gap.std() / np.sqrt(len(gap))
    assert gap.std() > 1


# The players.


def test_the_minibatches_of_one_pass_pay_one_kl():
    """N remembered interactions are N / B minibatches; while N < B one pays for several passes."""
    settings = Settings()
    assert kl_share(settings, 4096) * (4096 / 64) == 1.0
    assert kl_share(settings, 64) == 1.0
    assert kl_share(settings, 16) == 4.0


@pytest.mark.parametrize(("interaction", "remembered"), [(1, 1), (7, 7), (52, 50), (200, 50)])
def test_training_pays_the_share_of_what_is_remembered(monkeypatch, interaction, remembered):
    seen = []
    kind = type(build(THOMPSON, SMALL, 9))
    plain = kind.value_and_grad

    def spy(self, theta, noise, x, y, kl_weight=1.0, buffers=None):
        seen.append((kl_weight, len(x)))
        return plain(self, theta, noise, x, y, kl_weight, buffers)

    monkeypatch.setattr(kind, "value_and_grad", spy)
    game, state = played(THOMPSON, until=interaction - 1)
    seen.clear()
    play(game, THOMPSON, SMALL, state, interaction)
    assert seen == [(8 / remembered, 8)] * 2


def test_a_player_eats_what_its_network_thinks_better_than_nothing():
    settings = replace(SMALL, hidden=())
    estimator = build(GREEDY, settings, 9)
    theta = np.zeros(10, np.float32)
    inputs = draw_game(DATA.x, DATA.poisonous, 1, (0,)).inputs
    rng = np.random.default_rng(0)
    for eat, leave, expected in ((1.0, 0.0, True), (0.0, 1.0, False), (0.5, 0.5, False)):
        theta[7:9] = leave, eat
        assert decide(GREEDY, estimator, theta, inputs, 3, rng, Buffers()) is expected


def test_thompson_sampling_eats_as_often_as_eating_is_better_under_the_posterior():
    """One linear network: the difference of both actions is N(m_1 - m_0, 2 sigma^2)."""
    settings = replace(SMALL, hidden=())
    theta = build(THOMPSON, settings, 9).posterior.pack(np.zeros(10), np.full(10, 0.5))
    theta[8] = 0.5  # of eating; sd of the difference: 0.7071
    theta, inputs = theta.astype(np.float32), draw_game(DATA.x, DATA.poisonous, 1, (0,)).inputs
    for agent, sigma in ((THOMPSON, 0.5), (AGENTS[1], 0.5 / 2**0.5)):
        estimator, rng, buffers = build(agent, settings, 9), np.random.default_rng(1), Buffers()
        found = np.mean(
            [decide(agent, estimator, theta, inputs, 5, rng, buffers.rewind()) for _ in range(4000)]
        )
        draws = np.random.default_rng(2).standard_normal((200_000, 2)) * sigma
        expected = np.mean(draws[:, 0] + 0.5 > draws[:, 1])
        assert abs(found - expected) < 4 * np.sqrt(0.25 / 4000)


def last_layer(rows=12):
    """A posterior of the last layer after some meals, and what was eaten."""
    rng, inputs = np.random.default_rng(0), draw_game(DATA.x, DATA.poisonous, 1, (0,)).inputs
    net, settings = MLP((9, 5, 1)), replace(SMALL, last_noise=2.0, last_prior_scale=0.7)
    last = LastLayer(settings, net, inputs)
    last.refit(rng.standard_normal(net.layout.size))
    eaten, rewards = rng.integers(len(inputs), size=rows), rng.standard_normal(rows)
    for row, reward in zip(eaten, rewards, strict=True):
        last.learn(row, reward)
    return last, eaten, rewards


@pytest.mark.equation("D56")
def test_the_posterior_of_the_last_layer_is_that_of_bayesian_linear_regression():
    """One reward after the other, all at once, and the prediction of a Gaussian process: one."""
    last, eaten, rewards = last_layer()
    phi = last.features(eaten)
    precision = phi.T @ phi / 4.0 + np.eye(6) / 0.49
    mean, covariance = np.linalg.solve(precision, phi.T @ rewards / 4.0), np.linalg.inv(precision)
    kernel = 0.49 * phi @ phi.T  # of the functions at the rows, before any reward
    process = kernel @ np.linalg.solve(kernel + 4.0 * np.eye(12), rewards)
    for _ in range(2):
        np.testing.assert_allclose(last.mean, mean, rtol=1e-9)
        np.testing.assert_allclose(last.covariance, covariance, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(phi @ last.mean, process, rtol=1e-9)
        last.refit(last.w[0])


@pytest.mark.equation("D56")
def test_one_number_decides_as_often_as_a_draw_of_all_weights():
    last, _, _ = last_layer()
    leave, eat = last.features([6, 7])
    rng = np.random.default_rng(1)
    draws = rng.multivariate_normal(last.mean, last.covariance, 40_000)
    found = np.mean([last.eats(3, rng) for _ in range(4000)])
    assert 0.1 < found < 0.9
    assert abs(found - np.mean(draws @ eat > draws @ leave)) < 4 * np.sqrt(0.25 / 4000)


def test_a_last_layer_that_stopped_goes_on_as_if_it_had_not():
    """Though what it has seen is no part of the state."""
    (game, whole), (_, part) = played(LAST), played(LAST, until=130)
    play(game, LAST, SMALL, part, SMALL.interactions)
    assert (part.ate == whole.ate).all()


@pytest.mark.parametrize("agent", [*AGENTS[:3], *AGENTS[4:]], ids=lambda a: a.name)
def test_players_learn_a_rule_of_one_letter(monkeypatch, agent):
    """From meals that a coin chose: left to itself, any of them may stop eating after one of -35.

    Without a look at the mushroom one can eat all or none. Over other mushrooms and other luck
    these players cost 0.02, 0.02, 0.06 and 0.17 of the better of these; the last has the largest
    deviation, 0.15: the bound is four of these away.
    """
    settings = replace(SMALL, interactions=400, dense=400, hidden=(20,), memory=400, steps=8,
                       learning_rate=0.01, point_learning_rate=0.01)  # fmt: skip
    coin = np.random.default_rng(6).random(200) < 0.5
    game = draw_game(DATA.x, DATA.poisonous, 400, (3, 0))
    state = init_state(agent, settings, game.inputs.shape[1], (3, 0, 9))

    def by_the_coin_at_first(*arguments):
        return bool(coin[state.played]) if state.played < 200 else decide(*arguments)

    def last_by_the_coin_at_first(self, mushroom, rng):
        return bool(coin[state.played]) if state.played < 200 else eats(self, mushroom, rng)

    eats = LastLayer.eats
    monkeypatch.setattr(models, "decide", by_the_coin_at_first)
    monkeypatch.setattr(LastLayer, "eats", last_by_the_coin_at_first)
    play(game, agent, settings, state, 400)
    assert (state.ate[:200] == coin).all()
    constant = [regret(game, np.full(400, eats))[-100:].sum() for eats in (True, False)]
    assert regret(game, state.ate)[-100:].sum() < 0.8 * min(constant)


# Interruption.


@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_command_that_was_killed_goes_on_with_any_number_of_processes(tmp_path, jobs):
    """One process plays all; then others go on with a folder that holds a part of the work."""
    agents = (THOMPSON, AGENTS[4])
    said = reproduce(tmp_path / "a", 5, settings=SMALL, agents=agents, mushrooms=DATA, jobs=1)
    (tmp_path / "b").mkdir()
    for name in ("settings.json", "Thompson-sampling-0.npz", "5-greedy-1.npz"):
        shutil.copy(tmp_path / "a" / name, tmp_path / "b" / name)
    reproduce(tmp_path / "b", 5, settings=SMALL, agents=agents, mushrooms=DATA, jobs=jobs)
    one, two = (json.loads((tmp_path / n / "numbers.json").read_text()) for n in "ab")
    assert one.pop("seconds").keys() == two.pop("seconds").keys()
    assert one == two
    again = reproduce(tmp_path / "a", 5, settings=SMALL, agents=agents, mushrooms=DATA, jobs=1)
    assert again == said  # a finished folder is read, not played again
    # One of another seed, of other settings, agents or mushrooms is refused.
    for changed in (
        {"seed": 6},
        {"settings": replace(SMALL, noise=3.0)},
        {"agents": AGENTS},
        {"mushrooms": mushrooms(seed=1)},
    ):
        given = {"seed": 5, "settings": SMALL, "agents": agents, "mushrooms": DATA} | changed
        with pytest.raises(ValueError, match="another seed, data or settings"):
            reproduce(tmp_path / "a", **given)


def test_a_run_on_disk_that_is_damaged_is_named(tmp_path):
    (tmp_path / "Thompson-sampling-0.npz").write_bytes(b"PK")
    with pytest.raises(ValueError, match=r"Thompson-sampling-0\.npz is damaged or not written.*: "):
        load_or_play_run(tmp_path, 5, SMALL, DATA, THOMPSON, 0)


# Numbers, tables and picture.


def test_numbers_count_the_mistakes_of_the_last_tenth():
    games = [draw_game(DATA.x, DATA.poisonous, 200, (0, run)) for run in (0, 1)]
    poisonous = np.array([game.poisonous for game in games])
    found = measure(0, SMALL, DATA, {"right": ~poisonous, "wrong": poisonous})
    assert found["right"]["regret"] == [0.0, 0.0]
    assert found["right"]["poisonous eaten in the last tenth"] == [0, 0]
    shown = poisonous[:, 180:].sum(axis=1).tolist()
    assert found["wrong"]["poisonous eaten in the last tenth"] == shown
    assert found["wrong"]["edible left in the last tenth"] == [20 - count for count in shown]
    expected = (15 * poisonous + 5 * ~poisonous).sum(axis=1).tolist()
    assert found["wrong"]["regret"] == expected
