"""`--exposure`: rates from a table, by fit, predict and evaluate."""

import json
from functools import partial

import numpy as np
import pandas as pd
import pytest

from bbb_numpy.cli import baselines
from bbb_numpy.cli.main import main

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
QUICK = ("--epochs", "40", "--hidden", "3")
CLAIMS = ("claims.csv", "--target", "claims", "--exposure", "years")


@pytest.fixture
def table(tmp_path, monkeypatch):
    """Claims over years of insurance, whose rate depends on one column."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(4)
    age, years = rng.standard_normal(80), rng.uniform(0.5, 20.0, 80)
    claims = rng.poisson(years * np.exp(0.5 * age))
    frame = pd.DataFrame({"age": age, "years": years, "claims": claims})
    frame.to_csv("claims.csv", index=False)
    return frame


def predictions(*words):
    assert main(["predict", "model.npz", "claims.csv", "-o", "out.csv", *words]) == 0
    return pd.read_csv("out.csv")


def test_a_model_of_rates(table, capsys):
    assert main(["fit", *CLAIMS, *QUICK, "--plot", "rates.png"]) == 0
    printed = capsys.readouterr().out
    assert "1 input, target claims: counts (there is an exposure)" in printed
    rates, counts = predictions(), predictions("--exposure", "years", "--interval", "0.9")
    assert np.allclose(counts["mean"], table.years * rates["mean"])
    assert ((counts.lower <= table.claims) & (table.claims <= counts.upper)).mean() > 0.8


def test_held_out_rows_have_their_exposures_and_so_have_the_baselines(table, capsys, monkeypatch):
    quick = partial(baselines.HistGradientBoostingRegressor, max_iter=5)
    monkeypatch.setattr(baselines, "HistGradientBoostingRegressor", quick)
    assert main(["evaluate", *CLAIMS, *QUICK, "--json", "-"]) == 0
    models = json.loads(capsys.readouterr().out)["models"]
    rmse = {name: scores["rmse"]["value"] for name, scores in models.items()}
    spread = table.claims.std()
    assert rmse["Poisson regression"] < rmse["base rate"] < spread
    assert rmse["mean-field"] < spread


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["fit", *CLAIMS[:3], "--exposure", "year"], "no column 'year'"),
        (["fit", *CLAIMS, "--task", "regression"], "--exposure is for counts, not for regression"),
        (["fit", *CLAIMS, "--likelihood", "gaussian"], "--exposure is for counts"),
        (["fit", "none.csv", *CLAIMS[1:]], "line 3, column 'years': '0.0' is no exposure"),
        (["predict", "plain.npz", "claims.csv", "--exposure", "years"], "without an exposure"),
    ],
)
def test_refusals(table, capsys, words, message):
    if "none.csv" in words:
        table.assign(years=np.where(np.arange(80) == 1, 0.0, 1.0)).to_csv("none.csv", index=False)
    if "plain.npz" in words:
        plain = ("claims.csv", "--target", "claims", "--task", "counts", "--model", "plain.npz")
        assert main(["fit", *plain, *QUICK]) == 0
    assert main(words) == 2
    assert message in " ".join(capsys.readouterr().err.split())
