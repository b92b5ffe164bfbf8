"""benchmarks/tables.py: what is compared is what it says, and README shows what was measured."""

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("sklearn")
from sklearn.dummy import DummyClassifier, DummyRegressor

from benchmarks import tables

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(90, 2)), RNG.normal(3.0, 2.0, 90)


def test_a_model_is_judged_on_every_row_once_by_what_the_other_folds_said(monkeypatch):
    monkeypatch.setattr(tables, "models", lambda classes: {"base": DummyRegressor})
    found = tables.measure(tables.Table(X, Y, False), ["base"], 3)["base"]
    density = []
    for _, test in tables.KFold(3, shuffle=True, random_state=tables.SPLIT_SEED).split(X):
        rest = np.delete(Y, test)
        z = (Y[test] - rest.mean()) / rest.std()
        density.append(-0.5 * z**2 - np.log(rest.std()) - 0.5 * np.log(2 * np.pi))
    assert found["log density"] == pytest.approx(np.mean(density), rel=1e-9)
    assert 0.8 < found["coverage"] < 1.0


def test_no_class_counts_as_impossible():
    train, new = (X[:50], np.arange(50) % 2), (X[50:], np.zeros(40, int))
    density, inside = tables.scored(
        DummyClassifier(strategy="constant", constant=1), True, train, new
    )
    assert density == pytest.approx(np.log(0.01 / 1.01))  # 1 in twice the rows, of a sum of 1.01
    assert inside is None


def test_a_run_keeps_what_it_does_not_repeat(capsys, tmp_path):
    path = tmp_path / "out.json"
    run = ["--only", "wine", "--folds", "2", "--json", str(path), "--models"]
    tables.main([*run, "linear"])
    tables.main([*run, "ours"])
    wine = json.loads(path.read_text("utf-8"))["wine"]
    assert (wine["rows"], wine["inputs"], [*wine["models"]]) == (178, 13, ["linear", "ours"])
    line = capsys.readouterr().out.splitlines()[-1]
    place = 1 + (wine["models"]["linear"]["log density"] > wine["models"]["ours"]["log density"])
    assert line.startswith("| wine | 178, 13 | ")
    assert f" | {place} |  | " in line


def test_readme_shows_what_was_measured():
    found = json.loads(tables.TABLES_PATH.read_text("utf-8"))
    assert [*found] == [*tables.TABLES]
    readme = Path(__file__).parents[2].joinpath("README.md").read_text("utf-8")
    assert tables.markdown(found) in readme
