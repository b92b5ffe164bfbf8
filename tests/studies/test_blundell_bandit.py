"""The mushroom bandit: its rules, its players, and runs that survive interruption."""

import json
from dataclasses import replace

import numpy as np
import pytest

from bbb_numpy.numeric.buffers import Buffers
from bbb_studies.blundell import bandit
from bbb_studies.blundell import bandit as models
from bbb_studies.blundell import bandit as plots
from bbb_studies.blundell import bandit as tables
from bbb_studies.blundell.bandit import (
    AGENTS,
    Agent,
    Settings,
    advance,
    begin,
    build,
    decide,
    game,
    kl_share,
    measure,
    path_of,
    play,
    regret,
    reproduce,
    slices,
    training_steps,
)
from bbb_studies.data.mushroom import Mushrooms
from bbb_studies.uci import workers

SMALL = Settings(
    interactions=200, runs=2, hidden=(5,), memory=50, batch=8, steps=2, dense=40, sparse=4
)
THOMPSON, GREEDY = AGENTS[0], AGENTS[2]


def mushrooms(count=60, width=7, seed=0):
    """Mushrooms of which the first letter tells the poisonous ones."""
    rng = np.random.default_rng(seed)
    x = (rng.random((count, width)) < 0.5).astype(np.float32)
    return Mushrooms(x, x[:, 0] == 1, tuple("abcdefg"))


DATA = mushrooms()


def played(agent, settings=SMALL, run=0, until=None):
    the = game(DATA.x, DATA.poisonous, settings.interactions, (3, run))
    state = begin(agent, settings, the.inputs.shape[1], (3, run, 9))
    play(the, agent, settings, state, settings.interactions if until is None else until)
    return the, state


# The game.


def test_an_agent_told_the_truth_has_no_regret():
    the = game(DATA.x, DATA.poisonous, 500, (0,))
    assert (regret(the, ~the.poisonous) == 0).all()
    assert (regret(the, ~the.poisonous, realised=True) == 0).all()


def test_every_mistake_has_its_price():
    the = game(DATA.x, DATA.poisonous, 500, (0,))
    assert (regret(the, the.poisonous) == np.where(the.poisonous, 15, 5)).all()
    realised = regret(the, the.poisonous, realised=True)
    assert set(np.unique(realised[the.poisonous])) == {-5, 35}
    assert (realised[~the.poisonous] == 5).all()


def test_expected_regret_is_the_mean_of_realised_regret_and_never_negative():
    the = game(DATA.x, DATA.poisonous, 100_000, (1,))
    ate = np.random.default_rng(2).random(100_000) < 0.4
    expected, realised = regret(the, ate), regret(the, ate, realised=True)
    assert expected.min() == 0
    gap = realised - expected
    assert abs(gap.mean()) < 4 * gap.std() / np.sqrt(len(gap))
    assert gap.std() > 1


def test_half_of_the_poisonous_mushrooms_do_harm():
    the = game(DATA.x, DATA.poisonous, 40_000, (4,))
    share = (the.payoff[the.poisonous] == -35).mean()
    assert abs(share - 0.5) < 4 * 0.5 / np.sqrt(the.poisonous.sum())
    assert (the.payoff[~the.poisonous] == 5).all()
    counts = np.bincount(the.shown, minlength=60)
    assert abs(counts - 40_000 / 60).max() < 5 * np.sqrt(40_000 / 60)


def test_inputs_are_features_and_the_action_one_of_two():
    the = game(DATA.x, DATA.poisonous, 10, (0,))
    assert the.inputs.shape == (120, 9)
    for mushroom in (0, 17, 59):
        leave, eat = the.inputs[2 * mushroom], the.inputs[2 * mushroom + 1]
        np.testing.assert_array_equal(leave, [*DATA.x[mushroom], 1, 0])
        np.testing.assert_array_equal(eat, [*DATA.x[mushroom], 0, 1])


def test_a_longer_game_begins_like_a_shorter_one():
    short, long = (game(DATA.x, DATA.poisonous, count, (5, 1)) for count in (50, 300))
    np.testing.assert_array_equal(short.shown, long.shown[:50])
    np.testing.assert_array_equal(short.payoff, long.payoff[:50])


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
    the, state = played(THOMPSON, until=interaction - 1)
    seen.clear()
    play(the, THOMPSON, SMALL, state, interaction)
    assert seen == [(8 / remembered, 8)] * 2


def test_only_remembered_interactions_are_trained_on(monkeypatch):
    """Every row of a minibatch is one of the last 50, with the reward that it brought."""
    kind, rows = type(build(GREEDY, SMALL, 9)), []
    plain = kind.value_and_grad

    def spy(self, theta, noise, x, y, *others):
        rows.append((x.copy(), y.copy()))
        return plain(self, theta, noise, x, y, *others)

    monkeypatch.setattr(kind, "value_and_grad", spy)
    the, state = played(GREEDY, until=196)
    rows.clear()
    play(the, GREEDY, SMALL, state, 200)
    assert len(rows) == 2
    last = slice(150, 200)
    taken = the.inputs[2 * the.shown[last] + state.ate[last]]
    reward = np.where(state.ate[last], the.payoff[last], 0)
    kept = {(*x, y) for x, y in zip(taken.tolist(), reward.tolist(), strict=True)}
    for x, y in rows:
        assert {(*a, b[0]) for a, b in zip(x.tolist(), y.tolist(), strict=True)} <= kept


def test_training_is_dense_first_and_sparse_later():
    steps = [training_steps(SMALL, t) for t in range(1, 61)]
    assert steps[:40] == [2] * 40
    assert steps[40:48] == [0, 0, 0, 2, 0, 0, 0, 2]


def test_a_player_eats_what_its_network_thinks_better_than_nothing():
    settings = replace(SMALL, hidden=())
    estimator = build(GREEDY, settings, 9)
    theta = np.zeros(10, np.float32)
    inputs = game(DATA.x, DATA.poisonous, 1, (0,)).inputs
    rng = np.random.default_rng(0)
    for eat, leave, expected in ((1.0, 0.0, True), (0.0, 1.0, False), (0.5, 0.5, False)):
        theta[7:9] = leave, eat
        assert decide(GREEDY, estimator, theta, inputs, 3, rng, Buffers()) is expected


def test_thompson_sampling_eats_as_often_as_eating_is_better_under_the_posterior():
    """One linear network: the difference of both actions is N(m_1 - m_0, 2 sigma^2)."""
    settings = replace(SMALL, hidden=())
    theta = build(THOMPSON, settings, 9).posterior.pack(np.zeros(10), np.full(10, 0.5))
    theta[8] = 0.5  # of eating; sd of the difference: 0.7071
    theta, inputs = theta.astype(np.float32), game(DATA.x, DATA.poisonous, 1, (0,)).inputs
    for agent, sigma in ((THOMPSON, 0.5), (AGENTS[1], 0.5 / 2**0.5)):
        estimator, rng, buffers = build(agent, settings, 9), np.random.default_rng(1), Buffers()
        found = np.mean(
            [decide(agent, estimator, theta, inputs, 5, rng, buffers.rewind()) for _ in range(4000)]
        )
        draws = np.random.default_rng(2).standard_normal((200_000, 2)) * sigma
        expected = np.mean(draws[:, 0] + 0.5 > draws[:, 1])
        assert abs(found - expected) < 4 * np.sqrt(0.25 / 4000)


def test_epsilon_is_the_share_of_random_actions():
    settings = replace(SMALL, hidden=())
    agent = Agent("half", epsilon=0.5)
    theta = np.zeros(10, np.float32)  # a tie: eats nothing by itself
    inputs = game(DATA.x, DATA.poisonous, 1, (0,)).inputs
    estimator, rng = build(agent, settings, 9), np.random.default_rng(0)
    found = [decide(agent, estimator, theta, inputs, 0, rng, Buffers()) for _ in range(4000)]
    assert abs(np.mean(found) - 0.25) < 4 * np.sqrt(0.25 * 0.75 / 4000)


@pytest.mark.parametrize("agent", [THOMPSON, AGENTS[1], GREEDY, AGENTS[4]], ids=lambda a: a.name)
def test_players_learn_a_rule_of_one_letter(monkeypatch, agent):
    """From meals that a coin chose: left to itself, any of them may stop eating after one of -35.

    Without a look at the mushroom one can eat all or none. Over other mushrooms and other luck
    these players cost 0.02, 0.02, 0.06 and 0.17 of the better of these; the last has the largest
    deviation, 0.15: the bound is four of these away.
    """
    settings = replace(SMALL, interactions=400, dense=400, hidden=(20,), memory=400, steps=8,
                       learning_rate=0.01, point_learning_rate=0.01)  # fmt: skip
    coin = np.random.default_rng(6).random(200) < 0.5
    the = game(DATA.x, DATA.poisonous, 400, (3, 0))
    state = begin(agent, settings, the.inputs.shape[1], (3, 0, 9))

    def by_the_coin_at_first(*arguments):
        return bool(coin[state.played]) if state.played < 200 else decide(*arguments)

    monkeypatch.setattr(models, "decide", by_the_coin_at_first)
    play(the, agent, settings, state, 400)
    assert (state.ate[:200] == coin).all()
    constant = [regret(the, np.full(400, eats))[-100:].sum() for eats in (True, False)]
    assert regret(the, state.ate)[-100:].sum() < 0.8 * min(constant)


# Interruption.


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.name)
def test_a_run_that_was_interrupted_ends_with_the_same_numbers(tmp_path, agent):
    at = np.random.default_rng(len(agent.name)).integers(1, 200, 3)
    for name, ends in (("whole", [200]), ("pieces", [*sorted(at.tolist()), 200])):
        (tmp_path / name).mkdir()
        for end in ends:
            advance(tmp_path / name, 7, SMALL, agent, 0, end, DATA)
    whole, pieces = (np.load(path_of(tmp_path / name, agent, 0)) for name in ("whole", "pieces"))
    assert set(whole.files) == set(pieces.files)
    heads = [json.loads(arrays["header"].tobytes())["content"] for arrays in (whole, pieces)]
    assert all(head.pop("seconds") > 0 for head in heads)
    assert heads[0] == heads[1]
    for name in set(whole.files) - {"header"}:
        np.testing.assert_array_equal(whole[name], pieces[name], err_msg=name)


def test_a_command_that_was_killed_goes_on_with_any_number_of_processes(
    tmp_path, monkeypatch, thread, processes
):
    """One worker plays all; then two go on with a folder that holds a part of the work."""
    agents = (THOMPSON, AGENTS[4])
    monkeypatch.setattr(bandit, "SLICE", 60)
    monkeypatch.setattr(workers, "local", thread)
    said = reproduce(tmp_path / "a", 5, settings=SMALL, agents=agents, mushrooms=DATA, jobs=1)
    (tmp_path / "b").mkdir()
    for run, agent, end in ((0, THOMPSON, 30), (1, THOMPSON, 137), (1, AGENTS[4], 200)):
        advance(tmp_path / "b", 5, SMALL, agent, run, end, DATA)
    (tmp_path / "b" / ".Thompson-sampling-0.npz.0123").write_bytes(b"half a file")
    monkeypatch.setattr(workers, "local", processes)
    reproduce(tmp_path / "b", 5, settings=SMALL, agents=agents, mushrooms=DATA, jobs=2)
    one, two = (json.loads((tmp_path / n / "numbers.json").read_text()) for n in "ab")
    assert one.pop("seconds").keys() == two.pop("seconds").keys()
    assert one == two
    # A finished folder is read, not played again.
    monkeypatch.setattr(bandit, "_play", None)
    again = reproduce(tmp_path / "a", 5, settings=SMALL, agents=agents, mushrooms=DATA)
    assert again == said
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


def test_slices_end_where_the_game_ends_and_hold_no_more_than_they_should(monkeypatch):
    ends = slices(Settings())
    assert ends[-1] == Settings().interactions
    work = np.cumsum([training_steps(Settings(), t) for t in range(1, ends[-1] + 1)])
    assert np.diff([0, *work[np.array(ends) - 1]]).max() < bandit.SLICE + 64
    assert slices(replace(SMALL, interactions=1)) == [1]
    monkeypatch.setattr(bandit, "SLICE", 1)
    assert slices(replace(SMALL, interactions=5)) == [1, 2, 3, 4, 5]


# Bad input.


def test_damaged_and_foreign_files_are_named(tmp_path):
    advance(tmp_path, 7, SMALL, GREEDY, 0, 10, DATA)
    path = path_of(tmp_path, GREEDY, 0)
    whole = path.read_bytes()
    with pytest.raises(ValueError, match=r"greedy-0.npz belongs to another"):
        advance(tmp_path, 8, SMALL, GREEDY, 0, 20, DATA)
    for damaged in (whole[: len(whole) // 2], b"", b"text", whole[:-200] + bytes(200)):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"greedy-0.npz is damaged .* Delete it"):
            advance(tmp_path, 7, SMALL, GREEDY, 0, 20, DATA)


@pytest.mark.parametrize(
    "wrong",
    [
        {"interactions": 0}, {"runs": 0}, {"memory": 0}, {"batch": 0}, {"steps": 0},
        {"dense": -1}, {"sparse": 0}, {"noise": 0.0}, {"prior_scale": -1.0},
        {"learning_rate": 0.0}, {"point_learning_rate": float("nan")}, {"steps": 1.5},
    ],
    ids=str,
)  # fmt: skip
def test_settings_out_of_range_are_refused(wrong):
    with pytest.raises((ValueError, TypeError), match=next(iter(wrong))):
        replace(SMALL, **wrong)


def test_agents_out_of_range_are_refused(tmp_path):
    for agent in (Agent("x", epsilon=1.5), Agent("x", looks=-1)):
        with pytest.raises(ValueError, match=r"epsilon|looks"):
            build(agent, SMALL, 9)
    with pytest.raises(ValueError, match="names that differ"):
        reproduce(tmp_path, settings=SMALL, agents=(GREEDY, GREEDY), mushrooms=DATA)


def test_a_loss_that_overflows_is_reported():
    with pytest.raises(FloatingPointError, match="lower its learning rate"):
        played(GREEDY, replace(SMALL, point_learning_rate=1e30))


# Numbers, tables and picture.


def test_numbers_count_the_mistakes_of_the_last_tenth():
    games = [game(DATA.x, DATA.poisonous, 200, (0, run)) for run in (0, 1)]
    poisonous = np.array([the.poisonous for the in games])
    found = measure(0, SMALL, DATA, {"right": ~poisonous, "wrong": poisonous})
    assert found["right"]["regret"] == [0.0, 0.0]
    assert found["right"]["poisonous eaten in the last tenth"] == [0, 0]
    shown = poisonous[:, 180:].sum(axis=1).tolist()
    assert found["wrong"]["poisonous eaten in the last tenth"] == shown
    assert found["wrong"]["edible left in the last tenth"] == [20 - count for count in shown]
    expected = (15 * poisonous + 5 * ~poisonous).sum(axis=1).tolist()
    assert found["wrong"]["regret"] == expected


def test_the_longest_fast_is_found():
    ate = np.ones(200, bool)
    ate[[3, 4, 5, 180]] = False
    ate[60:170] = False
    found = measure(0, SMALL, DATA, {"greedy": np.array([ate, np.zeros(200, bool)])})
    assert found["greedy"]["longest fast"] == [(60, 170), (0, 200)]
    printed = tables.lay_out(0, SMALL, found, {"greedy": 60.0})
    assert "greedy 200 2 of 2 61 to 170; 1 to 200" in " ".join(printed.split())


def test_the_tables_hold_the_numbers_of_the_run():
    games = [game(DATA.x, DATA.poisonous, 200, (0, run)) for run in (0, 1)]
    poisonous = np.array([the.poisonous for the in games])
    wrong = {THOMPSON.name: ~poisonous, "greedy": np.zeros_like(poisonous)}
    found = measure(0, SMALL, DATA, wrong)
    printed = " ".join(tables.lay_out(0, SMALL, found, dict.fromkeys(wrong, 1.0)).split())
    mean, error = tables.mean_and_error(found["greedy"]["regret"])
    assert f"greedy +{mean:,.0f} +- {error:,.0f} " in printed
    assert "0.00 % 0.00 %" in printed
    assert "0.00 % 100.00 %" in printed


@pytest.mark.parametrize(
    ("often", "last", "fast", "holds"),
    [
        ([900.0, 910.0], 1.0, (0, 1000), [True, True, True]),
        ([500.0, 990.0], 60.0, (0, 999), [False, False, False]),
        ([900.0, 910.0], 1.0, (100, 1200), [True, True, False]),
    ],
)
def test_the_claims_are_judged_by_the_numbers(often, last, fast, holds):
    """Two runs each; Thompson sampling has a regret of 700 and 720."""
    regrets = {THOMPSON.name: [700.0, 720.0], AGENTS[4].name: often, GREEDY.name: often}
    numbers = {
        name: {"regret": regret, "regret of the last tenth": [last, last], "longest fast": [fast]}
        for name, regret in regrets.items()
    }
    assert [claim.holds for claim in tables.claims_of_the_paper(numbers)] == holds


def test_the_picture_shows_the_mean_over_runs():
    games = [game(DATA.x, DATA.poisonous, 200, (0, run)) for run in (0, 1)]
    ate = {"greedy": np.zeros((2, 200), bool), "all": np.ones((2, 200), bool)}
    figure = plots.draw_figure(SMALL, games, ate)
    figure.canvas.draw()
    a, b, c, d = figure.axes
    first, second, mean = (line.get_ydata() for line in a.lines[:3])
    np.testing.assert_allclose(mean, (first + second) / 2)
    assert mean[-1] == np.mean([5 * (~the.poisonous).sum() for the in games])
    assert b.get_xlim() == (0, 40)
    assert [set(c.lines[i].get_ydata()) for i in (0, 1)] == [{0}, {100}]
    assert [set(d.lines[i].get_ydata()) for i in (0, 1)] == [{100}, {0}]
