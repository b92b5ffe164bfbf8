"""`bbb-numpy evaluate`: what it prints are the scores of rows that no model was fitted to."""

import json
import re
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from sklearn import metrics
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.model_selection import KFold, ShuffleSplit, StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bbb_numpy import BayesianMLPRegressor, Reparameterised
from bbb_numpy.cli import baselines
from bbb_numpy.cli.baselines import Forecast, Score
from bbb_numpy.cli.main import main
from bbb_numpy.evaluation.calibration import crps_gaussian

# fits as short as these need not converge
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
QUICK = ("--epochs", "30", "--hidden", "5")


@pytest.fixture
def table(tmp_path, monkeypatch):
    """Rows of two inputs, and of a target that is linear in them, text, or counts."""
    monkeypatch.chdir(tmp_path)
    for name in ("GradientBoostingRegressor", "GradientBoostingClassifier"):  # of 100 trees
        monkeypatch.setattr(baselines, name, partial(getattr(baselines, name), n_estimators=5))
    rng = np.random.default_rng(4)
    x = rng.standard_normal((80, 2))
    y = x @ [1.0, -2.0] + 0.5 * rng.standard_normal(80)
    label = np.where(y > 0, "up", "down")
    count = rng.poisson(np.exp(0.5 * x[:, 0]))
    rows = (",".join(map(str, row)) for row in zip(*x.T, y, label, count, strict=True))
    (tmp_path / "d.csv").write_text("\n".join(["a,b,y,kind,count", *rows]))
    return x, y, label, count


def evaluate(target, *words, inputs=("a", "b"), options=QUICK):
    return main(["evaluate", "d.csv", "--target", target, "--inputs", *inputs, *options, *words])


def numbers(capsys, target, *words):
    assert evaluate(target, "--json", "-", *words) == 0
    return json.loads(capsys.readouterr().out)


def test_scores_of_held_out_rows_are_those_computed_by_hand(table, capsys):
    x, y, *_ = table
    report = numbers(capsys, "y", "--seed", "3")
    ((train, test),) = ShuffleSplit(1, test_size=16, random_state=3).split(x)
    assert (report["rows"], report["held_out_rows"], report["folds"]) == (80, 16, None)
    base = report["models"]["base rate"]
    mean, scale = y[train].mean(), y[train].std()
    errors = y[test] - mean
    rmse = np.sqrt(np.mean(errors**2))
    assert base["rmse"]["value"] == pytest.approx(rmse)
    assert base["rmse"]["error"] == pytest.approx(stats.sem(errors**2) / (2 * rmse))
    density = stats.norm.logpdf(y[test], mean, scale)
    assert base["log_density"]["value"] == pytest.approx(density.mean())
    assert base["log_density"]["error"] == pytest.approx(stats.sem(density))
    crps = crps_gaussian(mean, scale, y[test])
    assert base["crps"]["value"] == pytest.approx(crps.mean())
    inside = np.abs(errors) <= stats.norm.ppf(0.95) * scale
    assert base["coverage"]["value"] == pytest.approx(inside.mean())
    beta = stats.beta(inside.sum() + 1, (~inside).sum() + 1)
    assert base["coverage"]["error"] == pytest.approx(beta.std())
    ridge = make_pipeline(StandardScaler(), RidgeCV(np.logspace(-3, 3, 13)))
    spread = np.sqrt(np.mean((y[train] - cross_val_predict(ridge, x[train], y[train], cv=5)) ** 2))
    mean_ridge = ridge.fit(x[train], y[train]).predict(x[test])
    ridge_density = report["models"]["ridge"]["log_density"]["value"]
    assert ridge_density == pytest.approx(stats.norm.logpdf(y[test], mean_ridge, spread).mean())


def test_the_learners_scores_are_its_own_on_the_test_rows(table, capsys, monkeypatch):
    x, y, *_ = table
    fitted = []
    original_fit = BayesianMLPRegressor.fit

    def spy(self, x, y):
        fitted.append((x, y))
        return original_fit(self, x, y)

    monkeypatch.setattr(BayesianMLPRegressor, "fit", spy)
    report = numbers(capsys, "y", "--folds", "2")
    monkeypatch.undo()
    splits = list(KFold(2, shuffle=True, random_state=0).split(x))
    assert len(fitted) == 2
    densities, errors = [], []
    for (inputs, target), (train, test) in zip(fitted, splits, strict=True):
        assert np.array_equal(inputs.to_numpy(), x[train])
        assert np.array_equal(target, y[train])
        model = BayesianMLPRegressor(
            (5,), epochs=30, batch_size=32, random_state=0, progress=False
        ).fit(inputs, target)
        new = type(inputs)(x[test], columns=inputs.columns)
        densities.append(model.log_predictive_density(new, y[test]))
        errors.append(model.predict(new) - y[test])
    scores = report["models"]["mean-field"]
    assert scores["log_density"]["value"] == pytest.approx(np.concatenate(densities).mean())
    assert scores["rmse"]["value"] == pytest.approx(np.sqrt(np.mean(np.concatenate(errors) ** 2)))


def test_classes_have_accuracy_log_loss_and_calibration(table, capsys):
    labels = table[2]
    report = numbers(capsys, "kind", "--folds", "5")
    assert list(report["models"]) == [
        *("mean-field", "logistic regression", "gradient boosting", "base rate")
    ]
    base = report["models"]["base rate"]
    share = max(np.mean(labels == "up"), np.mean(labels == "down"))
    assert base["accuracy"]["value"] == pytest.approx(share, abs=1e-9)
    entropy = -share * np.log(share) - (1 - share) * np.log(1 - share)
    assert base["log_loss"]["value"] == pytest.approx(entropy, abs=0.01)
    for scores in report["models"].values():
        assert 0 <= scores["ece"]["value"] <= 1
        assert scores["ece"]["error"] is None
    assert base["balanced_accuracy"]["value"] == 0.5
    assert report["models"]["mean-field"]["accuracy"]["value"] > share


def forecast(proba):
    return Forecast(np.zeros(len(proba)), proba=np.array(proba))


def test_a_rare_class_is_seen_by_its_ranking_and_the_squared_error():
    """scikit-learn's functions, of the rarer of two classes; the base rate of it is 1 in 20."""
    rng = np.random.default_rng(0)
    y = np.arange(200) % 20 != 0
    p = np.clip(rng.normal(0.7 + 0.2 * y, 0.1), 0.0, 1.0)
    scores = baselines.score_forecast(forecast(np.c_[1 - p, p]), y.astype(int))
    assert scores["roc_auc"].value == pytest.approx(metrics.roc_auc_score(~y, 1 - p))
    assert scores["average_precision"].value == metrics.average_precision_score(~y, 1 - p) > 0.2
    assert scores["brier"].value == pytest.approx(metrics.brier_score_loss(y, p))
    assert scores["brier"].error == pytest.approx(stats.sem((y - p) ** 2))
    uninformed = baselines.score_forecast(forecast(np.tile([0.05, 0.95], (200, 1))), y.astype(int))
    assert uninformed["accuracy"].value == 0.95
    assert (uninformed["roc_auc"].value, uninformed["average_precision"].value) == (0.5, 0.05)


def test_of_several_classes_each_is_ranked_against_all_others():
    rng = np.random.default_rng(0)
    y, proba = np.arange(30) % 3, rng.dirichlet([1, 1, 1], 30)
    scores = baselines.score_forecast(forecast(proba), y)
    auc = metrics.roc_auc_score(y, proba, multi_class="ovr", average="macro")
    assert scores["roc_auc"].value == pytest.approx(auc)
    one_hot = np.eye(3)[y]
    precision = metrics.average_precision_score(one_hot, proba, average="macro")
    assert scores["average_precision"].value == pytest.approx(precision)
    assert scores["brier"].value == pytest.approx(np.mean(np.sum((one_hot - proba) ** 2, axis=1)))
    # a class that no row has
    without = baselines.score_forecast(forecast(proba[y != 2]), y[y != 2])
    first = [metrics.roc_auc_score(y[y != 2] == k, proba[y != 2, k]) for k in (0, 1)]
    assert without["roc_auc"].value == pytest.approx(np.mean(first))
    assert np.isnan(baselines.score_forecast(forecast(proba[y == 2]), y[y == 2])["roc_auc"].value)


def rare(n_rare):
    """A table of 40 rows, of which so many are rare."""
    lines = (f"{k},{k % 7},{'rare' if k < n_rare else 'common'}" for k in range(40))
    Path("d.csv").write_text("\n".join(["a,b,kind", *lines]))


@pytest.mark.usefixtures("table")
def test_which_class_is_judged_and_which_is_missing_is_said(capsys):
    rare(2)
    assert evaluate("kind", "--held-out", "0.05", options=("--epochs", "1")) == 0
    out = capsys.readouterr().out
    assert "ROC AUC" in out
    assert "AP are of 'rare', the rarer class. No held-out row is of 'rare', which the" in out
    assert evaluate("kind", "--held-out", "0.9") == 2
    err = capsys.readouterr().err
    assert "no training row is of the class 'rare'; hold fewer rows out (--held-out)" in err


@pytest.mark.usefixtures("table")
def test_each_class_has_scores_and_errors_that_cost_differently_have_a_threshold(capsys):
    rare(8)
    words = ("--costs", "1", "9", "--folds", "2", "--json", "n.json")
    assert evaluate("kind", *words, options=("--epochs", "5")) == 0
    out = capsys.readouterr().out
    report = json.loads(Path("n.json").read_text())
    scarce, common = report["classes"]
    assert (scarce["label"], scarce["n_rows"], common["n_rows"]) == ("rare", 8, 32)
    assert (scarce["observed"], common["observed"]) == (0.2, 0.8)
    assert scarce["predicted"] + common["predicted"] == pytest.approx(1)
    learner = report["models"]["mean-field"]
    assert scarce["roc_auc"] == learner["roc_auc"]["value"]
    assert scarce["brier"] == pytest.approx(learner["brier"]["value"])
    assert f"{round(scarce['average_precision'], 3):g}" in out
    assert "If a false alarm costs 1 and a missed 'rare' 9, the alarm is raised from the" in out
    assert "from the probability 0.1 on: " in out
    cost, at_half = map(
        float, re.findall(r"on: ([\d.]+) a row, and ([\d.]+) from one half", out)[0]
    )
    # of every row an alarm costs 32 of 40, and of none 72 of 40
    assert 0 <= cost <= max(at_half, 0.8)


@pytest.mark.usefixtures("table")
@pytest.mark.parametrize(("target", "words"), [("y", ()), ("count", ("--task", "classification"))])
def test_costs_are_for_two_classes(target, words, capsys):
    assert evaluate(target, "--costs", "1", "9", *words) == 2
    said = capsys.readouterr().err
    assert "--costs is for a target of two classes" in said
    assert "--task classification if two numbers stand for classes" in said


@pytest.mark.usefixtures("table")
def test_baselines_have_the_weights_of_classes_that_the_learner_has(capsys):
    rare(8)
    words = ("--class-weight", "balanced", "--folds", "2", "--json", "n.json")
    assert evaluate("kind", *words, options=("--epochs", "1")) == 0
    assert "All but the base rate are trained as if all classes had as m" in capsys.readouterr().out
    models = json.loads(Path("n.json").read_text())["models"]
    assert "base rate, not weighted" in models
    x, y = np.array([[k, k % 7] for k in range(40)]), np.arange(40) < 8
    proba = np.zeros(40)
    for train, test in StratifiedKFold(2, shuffle=True, random_state=0).split(x, y):
        model = make_pipeline(
            StandardScaler(), LogisticRegression(max_iter=1000, class_weight="balanced")
        )
        proba[test] = model.fit(x[train], y[train]).predict_proba(x[test])[:, 1]
    expected = metrics.brier_score_loss(y, proba)
    assert models["logistic regression"]["brier"]["value"] == pytest.approx(expected)


@pytest.mark.usefixtures("table")
def test_counts_have_poisson_baselines(capsys):
    report = numbers(capsys, "count", "--task", "counts", "--folds", "2")
    assert report["task"] == "counts"
    assert {"Poisson regression", "base rate"} < set(report["models"])
    for scores in report["models"].values():
        assert scores["log_density"]["value"] < 0
        assert 0.5 < scores["coverage"]["value"] <= 1


def test_the_table_says_what_the_numbers_file_holds_and_pictures_are_written(table, capsys):
    written = ("--json", "n.json", "--plot", "c.png")
    assert evaluate("y", *written) == 0
    out = capsys.readouterr().out
    with open("n.json") as file:
        report = json.load(file)
    scores = report["models"]["mean-field"]
    for metric in ("rmse", "log_density", "crps", "coverage"):
        assert str(Score(**scores[metric])) in out
    assert "16 of 80 rows held out at random; seed 0" in out
    assert "numbers in n.json" in out
    assert len(scores["coverage_curve"]["share"]) == 19
    for picture, target in (("c.png", None), ("r.png", "kind")):
        if target:
            assert evaluate(target, "--plot", picture) == 0
        with open(picture, "rb") as file:
            assert file.read(4) == b"\x89PNG"
    assert evaluate("y", "--plot", "c.doc") == 2
    assert "got c.doc" in capsys.readouterr().err
    assert not Path("c.doc").exists()


@pytest.mark.parametrize(
    ("score", "text"),
    [
        (Score(57.4912, 4.77), "57.5 ± 4.8"),
        (Score(0.0000123, 0.0000021), "1.23e-05 ± 2.1e-06"),
        (Score(123456.7, 2345.0), "123457 ± 2345"),
        (Score(1.0986, 2e-17), "1.099"),
        (Score(0.5, None), "0.500"),
        (baselines.share_score(np.ones(16, bool)), "1.000 ± 0.053"),
        (Score(1.5e9, 1e8), "1.5e+09 ± 1e+08"),
        (baselines._mean(np.array([-np.inf, 1.0])), "-inf"),  # of a zero under a log-normal
    ],
)
def test_a_score_has_two_digits_of_its_error(score, text):
    assert str(score) == text


@pytest.mark.filterwarnings("default:Training interrupted:UserWarning")
@pytest.mark.usefixtures("table")
def test_ctrl_c_evaluates_nothing(monkeypatch, capsys):
    def interrupted(self, rng, noise):
        raise KeyboardInterrupt

    monkeypatch.setattr(Reparameterised, "fill", interrupted)
    assert evaluate("y", "--json", "n.json") == 130
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "nothing is evaluated" in printed.err
    assert not Path("n.json").exists()
