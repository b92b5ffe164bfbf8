"""The benchmark of replicates: every contestant makes the same trials. No test looks at a clock."""

import json

import numpy as np
import pytest

from bbb_studies.replicated import replicated
from bbb_studies.replicates import stack, unstack
from benchmarks import racing, replicates
from benchmarks.replicates import ALONE, BATCH, OPTIMIZER, Shape

SMALL = Shape((3, 5, 1), rows=BATCH + 3, samples=2, dtype="float64", epochs=2)
R = 3


def test_trials_together_are_the_trials_one_at_a_time():
    together = replicates.together(SMALL, R)
    alone = replicates.alone(SMALL)
    assert len(together) == R
    np.testing.assert_array_equal(together[0].theta, alone.theta)
    assert together[0].optimizer_state.steps == 2 * SMALL.epochs  # two minibatches each


@pytest.mark.parametrize("samples", [1, 2])
@pytest.mark.parametrize("count", [1, R])
@pytest.mark.parametrize(("form", "adam"), [("layers", "loop"), ("flat", "fused")])
def test_pytorch_takes_our_steps(form, adam, count, samples):
    pytest.importorskip("torch", reason="a peer of the benchmark; comes with the bench extra")
    from benchmarks import peer_torch

    shape = Shape(SMALL.sizes, SMALL.rows, samples, "float64", 1)
    thetas = [state.theta for state in shape.begin(count)[1]]
    xs, ys = shape.data(count)
    how = samples, BATCH, OPTIMIZER.learning_rate, form, adam
    trials = peer_torch.Trials(shape.estimator, thetas, (xs, ys), *how)
    estimator, layout = replicated([shape.estimator] * count), shape.estimator.layout
    theta, rng = stack(layout, thetas), np.random.default_rng(4)
    state = OPTIMIZER.init(theta)
    for rows in trials.batches:
        share = (rows.stop - rows.start) / shape.rows
        eps = rng.standard_normal((samples, count * shape.estimator.model.layout.size))
        value, grad, _ = estimator.value_and_grad(theta, eps, xs[:, rows], ys[:, rows], share)
        OPTIMIZER.update(theta, grad, state, 1.0)
        trials.batch(trials.x[:, rows], trials.y[:, rows], share)
        loss = trials.advance(trials.noise(eps.reshape(samples, count, -1)))
        assert float(loss.detach()) == pytest.approx(value.sum(), rel=1e-12)
    np.testing.assert_allclose(trials.theta(), unstack(layout, theta, count), rtol=1e-8)
    assert not np.allclose(trials.theta(), thetas, rtol=1e-4)


def test_a_quick_run_prints_the_table_and_saves_where_it_is_told(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(replicates, "shapes", lambda epochs, dtypes: [SMALL])
    monkeypatch.setattr(replicates, "REPLICATES", (2,))
    monkeypatch.setattr(racing, "PAUSE", 0.0)
    path = tmp_path / "out" / "times.json"
    assert replicates.main(["--quick", "--rounds", "1", "--json", str(path)]) == 0
    assert f"{ALONE} " in capsys.readouterr().out
    document = json.loads(path.read_text())
    assert document["about"]["threads"] == 1
    assert "2 together" in document["results"][0]["ratios"]
    assert replicates.main(["--quick", "--rounds", "1"]) == 0
    assert "nothing saved" in capsys.readouterr().out
