"""Every study, shortened: it writes its pictures and its numbers, and returns tables of them.

That its bar ends with its work conftest.py sees, which watches all bars of this folder.
"""

import inspect
import json
from importlib import import_module

import pytest
from made_up import cells, draws, prices
from tables import check_picture

from bbb_numpy.parts.likelihoods import GaussianLikelihood
from bbb_studies.cli.reproduce import STUDIES
from bbb_studies.comparing import Setup
from bbb_studies.data import powerball as powerball_data
from bbb_studies.mullachery import income_tax, occam, powerball, sp500
from bbb_studies.wu import path_loss

# So few draws may all diverge, which sampling says aloud.
pytestmark = pytest.mark.filterwarnings("ignore:.*divergent transitions:UserWarning")
SHORT = {
    "krasser": {"epochs": 20, "seeds": 2, "fast": (2, 5)},
    "wu-quartic": {
        "repeats": 2, "setup": Setup(epochs=3, likelihood=GaussianLikelihood(0.25))
    },
    "wu-path-loss": {"repeats": 2, "effort": 0.004},
    "coin": {"budget": (60, 300, 100)},
    "occam": {
        "budget": occam.Budget(side=31, draws=3000, chains=10, steps=24, sets=1)
    },
    "powerball": {
        "setup": powerball.Setup(
            chains=2, warm_up=10, draws=10, max_depth=3, epochs=50, functions=200, process_draws=10
        ),
        "folds": 2,
    },
    "income-tax": {
        "effort": income_tax.Effort(
            hidden=3, chains=2, warm_up=8, draws=8, max_depth=3, epochs=4, kept=10
        )
    },
    "sp500": {
        "effort": sp500.Effort(hidden=2, chains=2, warm_up=6, draws=5, epochs=2, samples=10)
    },
}  # fmt: skip


@pytest.mark.parametrize("name", SHORT)
def test_everything_is_written_and_the_tables_have_no_gap(name, tmp_path, monkeypatch):
    monkeypatch.setattr(path_loss, "CELLS", 16)
    monkeypatch.setattr(path_loss, "FRESH", 100)
    monkeypatch.setattr(path_loss, "HOW", [v for v in path_loss.HOW if v.count < 1000])
    monkeypatch.setattr(powerball_data, "load", lambda until: draws(140))
    monkeypatch.setattr(income_tax, "load", cells)
    first, second = prices(days=900), prices(7, 900, 6, start="2013-02-08")
    monkeypatch.setattr(sp500, "load", lambda file="": second if file else first)
    out = tmp_path / "new" / "folder"
    printed = import_module(f"bbb_studies.{STUDIES[name].module}").reproduce(out, 3, **SHORT[name])
    pictures, (numbers,) = list(out.glob("*.png")), list(out.glob("*.json"))
    assert pictures
    assert len(list(out.iterdir())) == len(pictures) + 1
    for picture in pictures:
        check_picture(picture, 390, 5)
    assert json.loads(numbers.read_text(encoding="utf-8"))
    assert "nan" not in printed
    assert max(map(len, printed.splitlines())) <= 135


@pytest.mark.parametrize("study", STUDIES.values(), ids=list(STUDIES))
def test_every_experiment_has_a_bar_and_takes_the_arguments_of_its_full_run(study):
    module = import_module(f"bbb_studies.{study.module}")
    accepted = inspect.signature(module.reproduce)
    assert accepted.parameters["progress"].default is None
    assert hasattr(module, "full") is bool(study.full)
    if study.full:
        given = module.full(3)
        usual = accepted.bind("out", 3)
        usual.apply_defaults()
        longer = accepted.bind("out", **given)
        longer.apply_defaults()
        assert longer.arguments != usual.arguments
        assert given.get("seed", 3) == 3
        assert getattr(given.get("settings"), "seed", 3) == 3
