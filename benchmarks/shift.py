"""Measure each method on rows like those of training, and on rows of another law of the inputs.

    python benchmarks/shift.py           # half an hour of one core
    python benchmarks/shift.py print     # the table of results/shift.json

The table is scikit-learn's diabetes (442 patients, 10 columns, a measure of the disease a year
later), which it brings along. By the body mass index z, standardised, rows are split in two ways:
*tilted*, a row is of the other law with the probability 1 / (1 + exp(-1.5 z)), so that both laws
overlap; *beyond*, those above the 2/3 quantile are. Of the rows of this law a quarter is held out.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LogisticRegression

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # to run as a plain script

from bbb_numpy import BayesianMLPRegressor, Conformal, Ensemble, Sampling
from bbb_numpy.evaluation.shift import density_ratio, weighted_mean

RESULTS = Path(__file__).with_name("results") / "shift.json"
BODY_MASS_INDEX = 2
N_SPLITS = 5
TILT = 1.5
COVERAGE = 0.9
METHODS: dict[str, dict[str, Any]] = {
    "MAP": {"inference": "map"},
    "mean field": {"inference": "mean-field"},
    "Laplace": {"inference": "laplace"},
    "ensemble": {"inference": Ensemble(3, 20)},
    "HMC": {"inference": Sampling("hmc", chains=4, draws=100, warm_up=200)},
}


def split(z: Any, kind: str, rng: np.random.Generator) -> tuple[Any, Any, Any]:
    """Return the positions of rows to train on, rows held out, and rows of the other law."""
    if kind == "tilted":
        is_other = rng.random(len(z)) < 1 / (1 + np.exp(-TILT * z))
    else:
        is_other = z > np.quantile(z, 2 / 3)
    here = rng.permutation(np.flatnonzero(~is_other))
    n_held_out = len(here) // 4
    return here[n_held_out:], here[:n_held_out], np.flatnonzero(is_other)


def measure(kind: str, seed: int) -> dict[str, dict[str, float]]:
    """Return the numbers of each method on one split."""
    x, y = load_diabetes(return_X_y=True)
    z = (x[:, BODY_MASS_INDEX] - x[:, BODY_MASS_INDEX].mean()) / x[:, BODY_MASS_INDEX].std()
    train, held_out, other = split(z, kind, np.random.default_rng(seed))
    both = np.concatenate([held_out, other])
    scaled = (x - x.mean(axis=0)) / x.std(axis=0)
    classifier = LogisticRegression().fit(scaled[both], np.isin(both, other))
    weights = density_ratio(
        classifier.predict_proba(scaled[held_out])[:, 1], len(held_out), len(other)
    )
    results = {}
    for name, arguments in METHODS.items():
        learner = BayesianMLPRegressor(random_state=seed, progress=False, **arguments)
        learner.fit(x[train], y[train])
        found = {}
        for where, rows in (("here", held_out), ("there", other)):
            low, high = learner.predict_interval(x[rows], COVERAGE).T
            density = learner.log_predictive_density(x[rows], y[rows])
            found |= {
                f"log density {where}": density.mean(),
                f"coverage {where}": np.mean((low <= y[rows]) & (y[rows] <= high)),
                f"rmse {where}": np.sqrt(np.mean((learner.predict(x[rows]) - y[rows]) ** 2)),
                f"epistemic {where}": learner.predict_distribution(x[rows]).epistemic.mean(),
            }
        of_held_out = learner.log_predictive_density(x[held_out], y[held_out])
        estimate = weighted_mean(of_held_out, weights)
        low, high = Conformal(learner, COVERAGE).calibrate(
            x[held_out], y[held_out]).predict_interval(x[other]).T  # fmt: skip
        results[name] = found | {
            "log density weighted": estimate.mean,
            "effective rows": estimate.effective_rows,
            "rows held out": len(held_out),
            "conformal coverage there": np.mean((low <= y[other]) & (y[other] <= high)),
        }
    return {name: {key: float(value) for key, value in numbers.items()}
            for name, numbers in results.items()}  # fmt: skip


def summary(splits: list[dict[str, dict[str, float]]], name: str, key: str) -> tuple[float, float]:
    """Return mean and standard error of a number over splits."""
    values = [each[name][key] for each in splits]
    return float(np.mean(values)), float(np.std(values, ddof=1) / len(values) ** 0.5)


def table(stored: dict[str, Any]) -> str:
    """Return the table of the results in Markdown."""
    columns = (
        *(("log density here", 2), ("log density there", 2), ("coverage here", 0)),
        *(("coverage there", 0), ("conformal coverage there", 0), ("rmse there", 1)),
        ("log density weighted", 2),
    )
    lines = []
    for kind, splits in stored.items():
        for name in splits[0]:
            cells = []
            for key, digits in columns:
                mean, error = summary(splits, name, key)
                factor = 100 if "coverage" in key else 1
                cells.append(f"{factor * mean:.{digits}f} ± {factor * error:.{digits}f}")
            lines.append(f"| {kind} | {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Measure all splits, and write them after each."""
    warnings.simplefilter("ignore")  # reports of poor fits; the numbers say it
    stored: dict[str, Any] = {"tilted": [], "beyond": []}
    for seed in range(N_SPLITS):
        for kind, splits in stored.items():
            splits.append(measure(kind, seed))
            print(kind, seed, splits[-1], flush=True)
        RESULTS.write_text(json.dumps(stored, indent=1) + "\n", "utf-8")
    print(table(stored))


if __name__ == "__main__":
    if sys.argv[1:] == ["print"]:
        print(table(json.loads(RESULTS.read_text("utf-8"))))
    else:
        main()
