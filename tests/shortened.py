"""Studies that are shortened: each is run once in a process, for all tests that look at it."""

import json
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy import stats
from synthetic_data import cells, digits, draws, prices

from bbb_numpy.parts.likelihoods import GaussianLikelihood
from bbb_numpy.training import Recipe
from bbb_studies import krasser
from bbb_studies.cli.reproduce import STUDIES
from bbb_studies.comparing import Fitted, Setup
from bbb_studies.data import powerball as powerball_data
from bbb_studies.mullachery import coin, income_tax, occam, powerball, sp500
from bbb_studies.ours import (
    certificate,
    elbo_minima,
    estimator_variance,
    evidence_bounds,
    few_rows,
)
from bbb_studies.wu import path_loss

DIGITS = digits(1200, 150.0, 60.0)
CERTIFICATE = certificate.Settings(
    hidden=10, half=600, test=200, batch=30, prior_epochs=20, epochs=4, draws=3, taught=0.01
)
SHORT: dict[str, dict[str, Any]] = {
    "krasser": {"epochs": 20, "seeds": 2, "fast": (2, 5)},
    "wu-quartic": {
        "repeats": 2, "setup": Setup(epochs=3, likelihood=GaussianLikelihood(0.25))
    },
    "wu-path-loss": {"repeats": 2, "effort": 0.002},
    "sagar-toy": {"seed": 2, "steps": 60, "samples": (1, 5), "runs": 1},
    "estimator-variance": {"seed": 0},
    "evidence-bounds": {"seed": 0},
    "elbo-minima": {"seed": 0, "starts": 6, "epochs": 150},
    "few-rows": {"settings": few_rows.Settings(0, ("line",), (5, 8), 4), "progress": False},
    "certificate": {"seed": 0, "settings": CERTIFICATE, "digits": DIGITS, "progress": False},
    "coin": {"seed": 0, "budget": coin.SamplingBudget(60, 150, 50)},
    "occam": {
        "budget": occam.Budget(side=31, draws=500, chains=10, steps=4, sets=1)
    },
    "powerball": {
        "setup": powerball.Setup(
            chains=2, warm_up=4, draws=4, max_depth=2, epochs=20, functions=50, process_draws=4
        ),
        "folds": 2,
    },
    "income-tax": {
        "effort": income_tax.Effort(
            hidden=3, chains=2, warm_up=4, draws=4, max_depth=2, epochs=4, kept=5
        )
    },
    "sp500": {
        "effort": sp500.Effort(hidden=2, chains=2, warm_up=6, draws=5, epochs=2, samples=10)
    },
}  # fmt: skip
PREDICT = Fitted.predict


class Line:
    """Linear regression with flat priors of weights and log noise: its predictive is Student's t.

    Under normal noise its intervals hold exactly what they say, at any number of rows.
    """

    def __init__(self, x, y):
        self.features = np.hstack([np.ones((len(x), 1)), x])
        self.weights = np.linalg.lstsq(self.features, y)[0]
        self.df = len(y) - self.features.shape[1]
        squares = np.sum((y - self.features @ self.weights) ** 2)
        self.noise = np.sqrt(squares / max(self.df, 1))

    def predictive(self, x):
        """Student's t of a new target at each row."""
        features = np.hstack([np.ones((len(x), 1)), x])
        kernel = features @ np.linalg.pinv(self.features.T @ self.features) @ features.T
        scale = self.noise * np.sqrt(1 + np.diag(kernel))
        return stats.t(max(self.df, 1), features @ self.weights, scale)

    def predict_interval(self, x, coverage):
        """Ends of the central intervals (N, C, 2)."""
        ends = [self.predictive(x).interval(level) for level in coverage]
        return np.moveaxis(np.array(ends), -1, 0)

    def log_predictive_density(self, x, y):
        """Log density (N,)."""
        return self.predictive(x).logpdf(y)


def fit_line(x, y, seed):
    """Fit `Line`, whatever the seed."""
    return Line(x, y)


PRICES = prices(days=900), prices(7, 900, 6, start="2013-02-08")
SMALLER = (
    (Fitted, "predict", lambda fitted, x, samples=0: PREDICT(fitted, x, 10)),
    (Fitted.functions, "__defaults__", (10,)),
    (Fitted.log_density, "__defaults__", (10,)),
    (krasser, "N_FUNCTIONS", 100),
    (path_loss, "CELLS_PER_SIDE", 16),
    (path_loss, "N_FRESH_RECEIVERS", 100),
    (path_loss, "HOW_VARIANTS", path_loss.HOW_VARIANTS[:1] + path_loss.HOW_VARIANTS[-5:]),
    (path_loss, "WHY_VARIANTS", tuple(v for v in path_loss.WHY_VARIANTS if v.count < 1000)),
    (powerball_data, "load", lambda until: draws(140)),
    (income_tax, "load", cells),
    (sp500, "load", lambda file="": PRICES[bool(file)]),
    (elbo_minima.bend, "__defaults__", (200,)),
    (evidence_bounds, "N_SAMPLE_SETS", 100),
    (evidence_bounds.draw, "__defaults__", (100, evidence_bounds.BOUND_SAMPLE_COUNTS[-1])),
    (few_rows, "LEARNERS", {"line": fit_line}),
    (few_rows, "JUDGED", ("line",)),
    (few_rows, "DRAWN", {"line": ("-", "o", "black")}),
    (estimator_variance, "CURVE_SAMPLE_COUNTS", (1, 2, 5, 10, 100)),
    (estimator_variance.measure, "__defaults__", (120,)),
    (estimator_variance.curves, "__defaults__", (400,)),
    (estimator_variance, "Recipe", lambda rule, epochs, **more: Recipe(rule, 50, **more)),
)


class Shortened(NamedTuple):
    """What a study printed and wrote."""

    text: str
    out: Path
    numbers: Any  # as JSON has them
    figures: dict[Path, Figure]  # which are not drawn


def shorten(name: str, out: Path) -> Shortened:
    """Run a study of `SHORT` into the folder `out`."""
    arguments = {"seed": 3} | SHORT[name]
    figures: dict[Path, Figure] = {}

    def keep(figure: Figure, path: Path, **options: object) -> None:
        figures[path] = figure
        not_drawn(figure, path)

    with pytest.MonkeyPatch.context() as patch:
        for owner, attribute, value in SMALLER:
            patch.setattr(owner, attribute, value)
        patch.setattr(Figure, "savefig", keep)
        text = import_module(f"bbb_studies.{STUDIES[name].module}").reproduce(out, **arguments)
    (written,) = out.glob("*.json")
    return Shortened(text, out, json.loads(written.read_text(encoding="utf-8")), figures)


def not_drawn(figure: Figure, path: Path, **options: object) -> None:
    """Write the first bytes of a picture: to draw it takes longer than most short studies."""
    assert any(ax.has_data() for ax in figure.axes), f"{path} shows nothing"
    Path(path).write_bytes(b"\x89PNG")
