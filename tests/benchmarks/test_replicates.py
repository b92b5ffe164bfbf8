"""The benchmark of replicates: everybody makes the same trials. No test looks at a clock."""

import json

import numpy as np

from benchmarks import racing, replicates
from benchmarks.replicates import ALONE, BATCH_SIZE, Shape

SMALL = Shape((3, 5, 1), rows=BATCH_SIZE + 3, samples=2, dtype="float64", epochs=2)


def test_trials_together_are_the_trials_one_at_a_time():
    (alone,), together = SMALL.trials(1), SMALL.trials(3)
    assert len(together) == 3
    np.testing.assert_array_equal(together[0].theta, alone.theta)
    assert together[0].optimizer_state.steps == 2 * SMALL.epochs  # two minibatches each


def test_a_quick_run_prints_the_table_and_saves_where_it_is_told(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(replicates, "shapes", lambda epochs, dtypes: [SMALL])
    monkeypatch.setattr(replicates, "TOGETHER", (2,))
    monkeypatch.setattr(racing, "PAUSE", 0.0)
    path = tmp_path / "out" / "times.json"
    assert replicates.main(["--quick", "--rounds", "1", "--json", str(path)]) == 0
    assert f"{ALONE} " in capsys.readouterr().out
    document = json.loads(path.read_text())
    assert document["about"]["blas_threads"] == 1
    (result,) = document["results"]
    assert set(result["trials/s"]) == {ALONE, "2 together"}
    assert f"2 together / {ALONE}" in result["ratios"]
    assert replicates.main(["--quick", "--rounds", "1"]) == 0
    assert "nothing saved" in capsys.readouterr().out
