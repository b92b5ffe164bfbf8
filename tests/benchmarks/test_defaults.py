"""benchmarks/defaults.py: what is compared is what it says, and the verdict follows from it."""

import json

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("sklearn")
from benchmarks import defaults

RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("shift", "verdict"),
    [(0.3, "matches"), (-0.3, "matches"), (0.6, "beats"), (-0.6, "falls short")],
)
def test_the_verdict_is_at_two_paired_standard_errors_from_the_better_peer(shift, verdict):
    peer, noise = RNG.normal(size=(2, 20))
    noise = (noise - noise.mean()) / noise.std(ddof=1)  # exactly mean 0, deviation 1
    scores = {"raw X": peer - 1.0, "scaled X": peer, "ours": peer + shift + noise, "seconds": 1.0}
    found = defaults.judged(pd.DataFrame(scores))
    assert found["best peer"] == "scaled X"
    expected = {"mean": shift, "standard error": 20**-0.5}
    assert found["difference"] == pytest.approx(expected, rel=1e-9)
    assert found["verdict"] == verdict


def test_the_peers_density_is_that_of_a_gaussian_with_the_training_residuals(monkeypatch):
    class Mean:
        def fit(self, x, y):
            self.mean = y.mean()
            return self

        def predict(self, x):
            return np.full(len(x), self.mean)

    monkeypatch.setattr(defaults, "forms", lambda make: {"raw X": Mean()})
    data = defaults.split("diabetes", 0)
    x, x_out, y, y_out = data
    assert (len(x), len(x_out)) == (331, 111)
    found = defaults.regressors(data, 0)
    z = (y_out - y.mean()) / y.std()
    expected = np.mean(-0.5 * z**2 - np.log(y.std()) - 0.5 * np.log(2 * np.pi))
    assert found == pytest.approx({"raw X, raw y": expected, "raw X, scaled y": expected}, rel=1e-9)


def test_a_short_run_prints_its_table_and_saves_where_told(capsys, tmp_path):
    path = tmp_path / "out.json"
    arguments = ["--only", "wine", "--splits", "2", "--seed", "0", "--json", str(path)]
    assert defaults.main(arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert lines[1].split()[0] == "wine"
    result = json.loads(path.read_text())
    assert result["about"]["seeds"] == [0, 1]
    wine = result["results"]["wine"]
    assert len(wine["ours"]) == len(wine["peers"]["raw X"]) == 2
    assert f"{np.mean(wine['ours']):.4f}" in lines[1]


def test_the_committed_results_are_those_of_the_splits_that_chose_nothing():
    result = json.loads(defaults.RESULTS.read_text())
    assert min(result["about"]["seeds"]) > 7
    for name, found in result["results"].items():
        best = np.array(found["peers"][found["best peer"]])
        difference = np.array(found["ours"]) - best
        assert found["difference"]["mean"] == pytest.approx(difference.mean(), rel=1e-9), name
        assert best.mean() == max(np.mean(scores) for scores in found["peers"].values())
        assert found["verdict"] != "falls short"
