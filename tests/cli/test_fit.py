"""What fit prints: the table as understood, scores of rows that it has not seen, what is next."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import average_precision_score

from bbb_numpy import BayesianMLPClassifier, BayesianMLPRegressor, load
from bbb_numpy.cli import held_out
from bbb_numpy.cli.main import main

pytestmark = pytest.mark.brief
QUICK = ("--epochs", "30", "--hidden", "4")
N_ROWS = 60


@pytest.fixture
def fit(tmp_path, monkeypatch, capsys):
    """Run fit in a folder of its own, and return what it prints."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.uniform(-2, 2, N_ROWS), "b": rng.uniform(-2, 2, N_ROWS)})
    table["y"] = 10 * table.a - table.b + rng.standard_normal(N_ROWS)
    table["big"] = np.where(table.y > 5, "yes", "no")
    table.to_csv("d.csv", index=False)

    def command(target, *words, ends=0, quick=QUICK):
        assert main(["fit", "d.csv", "--target", target, *quick, *words]) == ends
        return capsys.readouterr().out

    command.table = table
    return command


def learner(kind, table, rows, target):
    model = kind((4,), epochs=30, random_state=0)
    return model.fit(table[["a", "b"]].iloc[rows], table[target].iloc[rows])


def number(text, pattern):
    return float(re.search(pattern, text)[1].replace(",", ""))


def held_out_rows(printed, table, target="y"):
    """The rows that fit has held out, found by their number from the seed."""
    count = int(number(printed, r"held out +(\d+) rows, before fitting"))
    problem = type("Table", (), {"y": table[target].to_numpy(), "task": "regression"})()
    problem.check_counts = lambda *_: None
    if target == "big":
        problem.task = "classification"
    [(train, test)] = held_out.split_rows(problem, count / len(table), None, 0)
    return np.sort(train), np.sort(test)


def test_the_error_is_of_rows_that_neither_model_has_seen(fit):
    printed = fit("y", "--leave-out", "big")
    train, test = held_out_rows(printed, fit.table)
    assert (len(train), len(test)) == (48, 12)
    x, y = fit.table[["a", "b"]], fit.table.y
    model = learner(BayesianMLPRegressor, fit.table, train, "y")
    rmse = np.sqrt(np.mean((model.predict(x.iloc[test]) - y.iloc[test]) ** 2))
    base = np.sqrt(np.mean((y.iloc[train].mean() - y.iloc[test]) ** 2))
    assert number(printed, r"error \(RMSE\) +(\S+) ±") == pytest.approx(rmse, rel=1e-2)
    assert number(printed, r"ignoring the inputs (\S+)") == pytest.approx(base, rel=1e-2)
    low, high = model.predict_interval(x.iloc[test], 0.9).T
    share = np.mean((low <= y.iloc[test]) & (y.iloc[test] <= high))
    assert f"hold {100 * share:.0f} % of the targets" in printed


def test_the_stored_model_is_fitted_to_all_rows_and_says_so(fit):
    printed = fit("y", "--leave-out", "big")
    assert "\nstored in model.npz, fitted to 60 rows, the held-out ones among them\n" in printed
    x = fit.table[["a", "b"]]
    expected = learner(BayesianMLPRegressor, fit.table, np.arange(N_ROWS), "y").predict(x)
    np.testing.assert_array_equal(load("model.npz").predict(x), expected)


def test_few_held_out_rows_of_many_stay_unseen_by_the_only_fit(fit, monkeypatch):
    monkeypatch.setattr(held_out, "MAX_HELD_OUT_ROWS", 3)
    printed = fit("y", "--leave-out", "big")
    train, test = held_out_rows(printed, fit.table)
    assert len(test) == 3
    assert "\nstored in model.npz, fitted to 57 rows\n" in printed
    x = fit.table[["a", "b"]]
    expected = learner(BayesianMLPRegressor, fit.table, train, "y").predict(x)
    np.testing.assert_array_equal(load("model.npz").predict(x), expected)


def test_classes_have_accuracy_and_log_loss_beside_the_base_rate(fit):
    printed = fit("big", "--leave-out", "y")
    train, test = held_out_rows(printed, fit.table, "big")
    model = learner(BayesianMLPClassifier, fit.table, train, "big")
    right = model.score(fit.table[["a", "b"]].iloc[test], fit.table.big.iloc[test])
    assert number(printed, r"accuracy +(\S+) ±") == pytest.approx(right, abs=5e-3)
    share = (fit.table.big.iloc[test] == fit.table.big.iloc[train].mode()[0]).mean()
    assert number(printed, r"accuracy .*inputs (\S+) ±") == pytest.approx(share, abs=5e-3)
    assert "log loss" in printed
    proba = model.predict_proba(fit.table[["a", "b"]].iloc[test])
    labels = fit.table.big.iloc[test]
    rarer = int((labels == "yes").sum() <= (labels == "no").sum())
    precision = average_precision_score(labels == model.classes_[rarer], proba[:, rarer])
    assert f"average precision {precision:.3f}; ignoring the inputs 0.5, " in printed
    assert "--interval" not in printed


@pytest.mark.parametrize(
    ("words", "text"), [(["--held-out", "0"], "no row is held out"), ([], "9 rows are too few")]
)
def test_nothing_is_measured_where_that_is_asked_or_impossible(words, text, fit):
    if not words:
        fit.table[:9].to_csv("d.csv", index=False)
    printed = fit("y", "--leave-out", "big", *words)
    assert re.search(rf"not measured +.*{text}", printed)
    assert "held out  " not in printed


def test_columns_are_listed_as_understood_and_useless_ones_with_the_reason(fit):
    table = fit.table.assign(country="DE", remark="", one=1)
    days = pd.date_range("2024-01-01", periods=N_ROWS)
    table["day"] = days.strftime("%Y-%m-%d")
    table = pd.concat([table, table])  # more rows than a column may have categories
    table["name"] = [f"person {k}" for k in range(2 * N_ROWS)]
    table.to_csv("d.csv", index=False)
    printed = fit("y", "--dates", "day")
    lines = printed.splitlines()
    assert lines[0].startswith("d.csv: 120 rows, 4 inputs as 5 features, target y: regression")
    assert lines[1:8] == [
        "  numbers          a, b",
        "  categories       big (2)",
        "  dates            day",
        "  left out         country: 'DE' in every row",
        "  left out         remark: no cell has a value",
        "  left out         one: 1 in every row".replace("1 in", "'1' in"),
        "  left out         name: a text of its own in every row, as an identifier",
    ]
    assert "'remark'" not in fit("y", "--inputs", "a", "country", "--held-out", "0")
    assert tuple(load("model.npz").feature_names_in_) == ("a", "country=DE")


def test_the_next_command_reads_a_file_of_the_same_format(fit):
    fit.table.loc[0, "a"] = np.nan
    fit.table.to_csv("d.csv", index=False, sep=";", decimal=",", na_rep="-")
    printed = fit("y", "--decimal", ",", "--missing", "-", "--drop-missing")
    [command] = re.findall("next: bbb-numpy (.*)", printed)
    assert command == "predict model.npz NEW.csv --interval 0.9 --decimal , --missing -"
    words = command.replace("NEW.csv", "d.csv").split()
    assert main([*words, "--drop-missing"]) == 0


def test_a_model_that_is_worse_than_none_is_looked_at(fit, monkeypatch):
    fit.table["y"] = np.random.default_rng(1).standard_normal(N_ROWS)
    fit.table.to_csv("d.csv", index=False)
    printed = fit("y", "--hidden", "50", "--epochs", "400", "--inference", "mle", quick=())
    findings = re.findall("look at +(.*)", printed)
    assert findings[0] == "on the held-out rows the model is no better than ignoring the inputs"
    assert findings[1] == "the 90 % intervals hold too few of the held-out rows"
    assert len(findings) <= 3


@pytest.mark.parametrize(("target", "name"), [("y", "coverage"), ("big", "reliability")])
def test_pictures_of_the_held_out_rows_are_drawn(target, name, fit, tmp_path):
    other = {"y": "big", "big": "y"}[target]
    printed = fit(target, "--leave-out", other, "--pictures", "seen")
    names = sorted(path.name for path in (tmp_path / "seen").iterdir())
    assert names == [f"{name}.png"] + ["dependence.png", "residuals.png"] * (target == "y")
    assert all(f"picture in seen/{file}" in printed for file in names)


def test_many_rows_are_predicted_batch_by_batch_as_at_once(fit, monkeypatch, capsys):
    fit("y", "--leave-out", "big")
    words = ["predict", "model.npz", "d.csv", "--interval", "0.9"]
    main(words)
    at_once = capsys.readouterr().out
    monkeypatch.setattr("bbb_numpy.cli.fit.N_BATCH_ROWS", 7)
    main(words)
    batches = capsys.readouterr()
    assert batches.out == at_once
    assert batches.err == ""  # no bar where there is no terminal
