"""`bbb-numpy compare`: the methods of the UCI benchmark on a table of one's own."""

import shutil

import numpy as np
import pytest
from uci_trials import TINY, dask, recorded

from bbb_numpy.cli.main import main
from bbb_studies.data.uci import standard_splits
from bbb_studies.uci import workers
from bbb_studies.uci.trials import (
    DATA_FILE,
    OwnTrial,
    fit_part,
    measure_own,
    score,
    set_name,
    write_rows,
)

pytestmark = [dask, pytest.mark.filterwarnings("ignore:.*divergent transitions:UserWarning")]
WRITTEN = {
    *("records", "data.npz", "table.md", "trials.csv"),
    *("scores.png", "calibration.png", "pit.png"),
}


def rows(count=60, seed=5):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((count, 2))
    return x, 3.0 + 2.0 * x[:, :1] + 0.2 * rng.standard_normal((count, 1))


def table(path, shift=0.0):
    x, y = rows()
    colours = np.where(x[:, 1] > 0, "red", "blue")
    lines = (f"{a},{b},{c + shift}" for a, b, c in zip(x[:, 0], colours, y[:, 0], strict=True))
    path.write_text("\n".join(["a,colour,y", *lines]))
    return path


@pytest.fixture
def quick(tmp_path, monkeypatch, threads):
    """A folder with a table, and threads in place of processes."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(workers, "local", threads)
    return table(tmp_path / "mine.csv")


def compare(*words, data="mine.csv", method=("map",)):
    given = ["compare", data, "--target", "y", "--quick", "--splits", "2", "--workers", "2"]
    return main([*given, "--method", *method, "--out", "out", *words])


def test_a_comparison_writes_records_one_table_and_pictures(quick, capsys):
    out = quick.parent / "out"
    assert compare(method=("map", "mean-field")) == 0
    said = capsys.readouterr()
    assert said.err == ""
    assert {path.name for path in out.iterdir() if not path.name.startswith(".")} == WRITTEN
    found = recorded(out)
    assert set(found) == {f"mine.csv/{m}/0{k}" for m in ("map", "mean-field") for k in (0, 1)}
    assert "60 rows, 2 inputs as 3 features, target y: regression" in said.out
    assert "4 of 4 finished, 0 failed" in said.out
    for method in ("map", "mean-field"):
        errors = [one["metrics"]["rmse"] for key, one in found.items() if f"/{method}/" in key]
        error = np.std(errors, ddof=1) / np.sqrt(2)
        assert f"{np.mean(errors):.3f} ± {error:.3f}" in said.out
    text = (out / "table.md").read_text(encoding="utf-8")
    assert "published" not in text.lower()
    assert "bbb-numpy compare mine.csv --target y --method map mean-field --splits 2" in text
    assert len((out / "trials.csv").read_text(encoding="utf-8").splitlines()) == 1 + 4
    for picture in out.glob("*.png"):
        assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_classes_are_compared_with_models_of_scikit_learn(quick, capsys):
    x, _ = rows(100)
    kinds = np.where(x[:, 0] + 0.3 * x[:, 1] > 0, "up", "down")
    lines = (f"{a},{b},{kind}" for (a, b), kind in zip(x, kinds, strict=True))
    quick.write_text("\n".join(["a,b,y", *lines]))
    assert compare() == 0
    said, out = capsys.readouterr().out, quick.parent / "out"
    found = recorded(out)
    rivals = ("logistic regression", "gradient boosting", "base rate")
    assert {one["method"] for one in found.values()} == {"map", *rivals}
    for split in (0, 1):
        base = found[f"mine.csv/base rate/0{split}"]
        assert base["rows"] == {"train": 90, "test": 10}
        assert base["metrics"]["balanced_accuracy"] == 0.5
        logistic = found[f"mine.csv/logistic regression/0{split}"]["metrics"]
        assert logistic["log_loss"] < base["metrics"]["log_loss"]
        assert logistic["accuracy"] >= 0.8
    losses = [found[f"mine.csv/map/0{split}"]["metrics"]["log_loss"] for split in (0, 1)]
    assert f"{np.mean(losses):.2g}"[:3] in said
    assert "8 trials measured now" in said
    text = (out / "table.md").read_text(encoding="utf-8")
    assert "| map " in text
    assert "bbb-numpy compare mine.csv --target y --method map --splits 2" in text
    assert compare() == 0
    assert "0 trials measured now" in capsys.readouterr().out


def test_a_second_call_in_a_moved_folder_measures_nothing_and_a_new_one_gives_the_same(
    quick, no_pictures, capsys
):
    assert compare() == 0
    first = recorded(quick.parent / "out")
    shutil.move(quick.parent / "out", quick.parent / "moved")
    capsys.readouterr()
    assert compare("--out", "moved") == 0
    assert "0 trials measured now" in capsys.readouterr().out
    assert compare("--out", "new") == 0
    assert recorded(quick.parent / "new") == first
    table(quick, shift=1.0)  # records of other rows do not count
    capsys.readouterr()
    assert compare("--out", "new") == 0
    said = capsys.readouterr()
    assert "2 trials measured now" in said.out
    assert "do not count and are run again: mine.csv/map/00 (data " in said.err


def test_what_the_command_says_to_repeat_is_what_was_typed(quick, no_pictures, capsys):
    words = ("--leave-out", "colour", "--seed", "3", "--decimal", ".", "--drop-missing")
    assert compare(*words) == 0
    text = (quick.parent / "out" / "table.md").read_text(encoding="utf-8")
    (line,) = (line for line in text.splitlines() if line.startswith("bbb-numpy compare"))
    capsys.readouterr()
    assert main(line.split()[1:]) == 0
    assert "0 trials measured now" in capsys.readouterr().out


def test_a_trial_is_fitted_to_nine_tenths_and_scored_on_the_others(tmp_path):
    x, y = rows()
    digest = write_rows(tmp_path, x, y)
    trial = OwnTrial("mine.csv", "map", 3, digest, TINY)
    found = measure_own(str(tmp_path / DATA_FILE), trial)
    test = standard_splits(60, 20)[3]
    train = np.setdiff1d(np.arange(60), test)
    assert found["rows"] == {"train": 54, "test": 6}
    fit, chosen, scaled = fit_part(x[train], y[train], trial)
    assert found["chosen"] == chosen
    assert found["metrics"] == score(fit, scaled, x[test], y[test], trial)[0]


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("boston", "boston.table"),
        ("prices.csv", "prices.csv"),
        ("a b/ü.csv", "a_b__.csv"),
        (".hidden", "hidden.table"),
        ("standard input", "standard_input.table"),
        ("x" * 300 + ".csv", "x" * 56 + ".csv"),
    ],
)
def test_a_table_has_a_name_that_is_a_folder_and_no_uci_set(source, name):
    assert set_name(source) == name
    assert "." in name.strip(".")


@pytest.mark.parametrize(
    ("text", "words", "message"),
    [
        ("a,y\n" + "1,x\n2,z\n" * 15, ("--task", "regression"), "'x' is not a number, as the"),
        ("a,y\n" + "1,x\n2,z\n" * 15, ("--method", "ensemble"), "ensemble is not for classes"),
        ("a,y\n" + "1,x\n2,z\n" * 15 + "1,w\n", (), "the class 'w' has 1 rows; 2 are needed"),
        ("a,y\n" + "1,1\n2,2\n" * 9, (), "18 rows are too few; at least 20 are needed"),
        ("a,y\n" + "1,1\n2,1\n" * 15, (), "the target 'y' is the same in all rows"),
        ("a,y\n" + "1,1\n2,2\n" * 15, ("--out", "t.csv"), "t.csv"),
    ],
)
def test_what_cannot_be_compared_is_said_in_one_line(text, words, message, quick, capsys):
    (quick.parent / "t.csv").write_text(text)
    assert compare(*words, data="t.csv") == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert message in said.err
    assert len(said.err.splitlines()) == 1
