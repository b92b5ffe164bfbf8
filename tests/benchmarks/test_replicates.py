"""The benchmark of replicates: every contestant makes the same trials. No test looks at a clock."""

import json

import numpy as np
import pytest

from bbb_studies.replicated import replicated
from bbb_studies.replicates import stack, unstack
from benchmarks import replicates
from benchmarks.replicates import ALONE, BATCH, OPTIMIZER, Result, Shape

SMALL = Shape((3, 5, 1), rows=BATCH + 3, samples=2, dtype="float64", epochs=2)
R = 3


def test_trials_together_are_the_trials_one_at_a_time():
    together = replicates.together(SMALL, R)
    alone = replicates.alone(SMALL)
    assert len(together) == R
    np.testing.assert_array_equal(together[0].theta, alone.theta)
    assert together[0].optimizer_state.steps == 2 * SMALL.epochs  # two minibatches each


def torch_trials(shape, form, adam, count):
    pytest.importorskip("torch", reason="a peer of the benchmark; comes with the bench extra")
    from benchmarks import peer_torch_trial

    _, states = replicates.begin(shape, count)
    thetas = [state.theta for state in states]
    data = shape.data(count)
    trials = peer_torch_trial.Trials(
        *(shape.estimator, thetas, *data, shape.samples, BATCH, OPTIMIZER.learning_rate, form, adam)
    )
    return trials, thetas, data


@pytest.mark.parametrize("samples", [1, 2])
@pytest.mark.parametrize("count", [1, R])
@pytest.mark.parametrize(("form", "adam"), [("layers", "loop"), ("flat", "fused")])
def test_pytorch_takes_our_steps(form, adam, count, samples):
    shape = Shape(SMALL.sizes, SMALL.rows, samples, "float64", 1)
    trials, thetas, (xs, ys) = torch_trials(shape, form, adam, count)
    estimator, layout = replicated([shape.estimator] * count), shape.estimator.layout
    theta, rng = stack(layout, thetas), np.random.default_rng(4)
    state = OPTIMIZER.init(theta)
    for rows in trials.batches:
        share = (rows.stop - rows.start) / shape.rows
        eps = rng.standard_normal((samples, count * shape.estimator.model.layout.size))
        x, y = xs[:, rows], ys[:, rows]
        value, grad, _ = estimator.value_and_grad(theta, eps, x, y, share)
        OPTIMIZER.update(theta, grad, state, 1.0)
        noise = trials.noise(eps.reshape(samples, count, -1))
        loss = trials.advance(noise, trials.x[:, rows], trials.y[:, rows], share)
        assert float(loss.detach()) == pytest.approx(value.sum(), rel=1e-12)
    np.testing.assert_allclose(trials.thetas(), unstack(layout, theta, count), rtol=1e-8)
    assert not np.allclose(trials.thetas(), thetas, rtol=1e-4)


def test_a_race_counts_trials_and_everybody_has_a_turn_in_every_round():
    calls = []
    entrants = {"a": (1, lambda: calls.append("a")), "b": (5, lambda: calls.append("b"))}
    seconds = replicates.race(entrants, rounds=3, pause=0.0)
    assert {name: len(values) for name, values in seconds.items()} == {"a": 3, "b": 3}
    for turn in range(4):  # one to warm up
        assert sorted(calls[2 * turn : 2 * turn + 2]) == ["a", "b"]


RESULT = Result(
    SMALL, {ALONE: np.array([0.2, 0.4]), "5 together": np.array([0.1, 0.1]), "x": np.array([1, 2])}
)


def test_speed_ups_are_taken_within_a_round():
    ups = RESULT.speed_ups()
    assert ALONE not in ups
    assert ups["5 together"].median == pytest.approx(3.0)
    assert ups["x"].median == pytest.approx(0.2)


def test_a_quick_run_prints_the_table_and_saves_where_it_is_told(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(replicates, "shapes", lambda epochs, dtypes: [SMALL])
    monkeypatch.setattr(replicates, "REPLICATES", (2,))
    path = tmp_path / "out" / "times.json"
    assert replicates.main(["--quick", "--rounds", "1", "--json", str(path)]) == 0
    assert f"| {ALONE} | 2 together |" in capsys.readouterr().out
    assert json.loads(path.read_text())["about"]["threads"] == 1
    monkeypatch.setattr(replicates, "RESULTS", tmp_path / "never.json")
    assert replicates.main(["--quick", "--rounds", "1"]) == 0
    assert "nothing saved" in capsys.readouterr().out
    assert not (tmp_path / "never.json").exists()
