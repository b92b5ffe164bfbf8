"""The learners as they come beside others as they come, on tables that come with packages.

    pip install -e '.[learners]' statsmodels
    python benchmarks/tables.py             # five folds of eleven tables; prints README's table
    python benchmarks/tables.py --print     # the table of what was measured

The tables come with scikit-learn's and statsmodels' packages; they were named before anything was
fitted to them, and nothing was chosen on them. All inputs are standardised by the training part. A
model of numbers without a predictive distribution is given a Gaussian, as wide as its errors on
training rows that it was not fitted to. No probability of a class counts as less than 1 in twice
the training rows. A Gaussian process has a kernel of three parts, and is left out of many rows.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from sklearn import datasets
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.linear_model import BayesianRidge, LogisticRegression
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.preprocessing import StandardScaler

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # to run as a plain script

from bbb_numpy import BayesianMLPClassifier, BayesianMLPRegressor
from bbb_numpy.cli.rivals import of_rival
from benchmarks.racing import FOLDER

Array = NDArray[Any]
RESULTS = FOLDER / "tables.json"
FOLDS, SEED = 5, 0
MOST = 2_000  # rows of a Gaussian process
OURS = "ours"
KERNEL = ConstantKernel() * RBF() + WhiteKernel()


class Table(NamedTuple):
    """Inputs (N, d_in) and targets (N,) of a table."""

    x: Array
    y: Array
    classes: bool


def _columns(name: str, target: str, leave: str = "") -> tuple[Array, Array]:
    """Return the numbers of a table of statsmodels, without what names or gives the target."""
    import statsmodels.api as sm  # type: ignore[import-not-found, import-untyped, unused-ignore]

    frame = getattr(sm.datasets, name).load_pandas().data
    x = frame.drop(columns=[target, *leave.split()]).select_dtypes("number")
    return x.to_numpy(float), frame[target].to_numpy(float)


def tables() -> dict[str, Table]:
    """Return all tables, numbers first."""
    found = {"diabetes": Table(*datasets.load_diabetes(return_X_y=True), False)}
    for name, target, leave in (
        ("engel", "foodexp", ""),
        ("grunfeld", "invest", ""),
        ("cancer", "cancer", ""),
        ("macrodata", "unemp", "year quarter"),
        ("star98", "NABOVE", ""),
    ):
        found[name] = Table(*_columns(name, target, leave), False)
    for name in ("wine", "breast_cancer", "digits"):
        x, y = getattr(datasets, f"load_{name}")(return_X_y=True)
        found[name] = Table(x, y, True)
    found["anes96"] = Table(*_columns("anes96", "vote", ""), True)
    x, y = _columns("fair", "affairs")
    found["fair"] = Table(x, (y > 0).astype(int), True)
    return found


def models(classes: bool) -> dict[str, Callable[[], Any]]:
    """Return how each model is made: by no argument, but for the kernel and the seed."""
    if classes:
        return {
            OURS: lambda: BayesianMLPClassifier(random_state=SEED, progress=False),
            "random forest": lambda: RandomForestClassifier(random_state=SEED),
            "boosting": lambda: GradientBoostingClassifier(random_state=SEED),
            "Gaussian process": lambda: GaussianProcessClassifier(random_state=SEED),
            "linear": lambda: LogisticRegression(max_iter=1000),
            "MLP": lambda: MLPClassifier(random_state=SEED),
        }
    return {
        OURS: lambda: BayesianMLPRegressor(random_state=SEED, progress=False),
        "random forest": lambda: RandomForestRegressor(random_state=SEED),
        "boosting": lambda: GradientBoostingRegressor(random_state=SEED),
        "Gaussian process": lambda: GaussianProcessRegressor(
            KERNEL, normalize_y=True, random_state=SEED
        ),
        "linear": BayesianRidge,
        "MLP": lambda: MLPRegressor(random_state=SEED),
    }


def scored(model: Any, classes: bool, train: tuple[Array, Array], new: tuple[Array, Array]) -> Any:
    """Return (log density (N,), whether y is in the central 90 % (N,) or None)."""
    (x, y), (x_new, y_new) = train, new
    if classes:
        proba = np.maximum(model.fit(x, y).predict_proba(x_new), 0.5 / len(y))
        happened = proba[np.arange(len(y_new)), np.searchsorted(model.classes_, y_new)]
        return np.log(happened / proba.sum(axis=1)), None
    if isinstance(model, BayesianMLPRegressor):
        low, high = model.fit(x, y).predict_interval(x_new, coverage=0.9).T
        return model.log_predictive_density(x_new, y_new), (low <= y_new) & (y_new <= high)
    if isinstance(model, GaussianProcessRegressor | BayesianRidge):
        mean, scale = model.fit(x, y).predict(x_new, return_std=True)
        density, pit = stats.norm.logpdf(y_new, mean, scale), stats.norm.cdf(y_new, mean, scale)
    else:
        found = of_rival(model, "regression", train, new, np.random.default_rng(SEED))
        density, pit = found.log_density, found.pit
    return density, np.abs(pit - 0.5) <= 0.45


def measure(table: Table) -> dict[str, Any]:
    """Return of each model its log density a row, coverage and seconds of a fit, over the folds."""
    kind = StratifiedKFold if table.classes else KFold
    folds = list(kind(FOLDS, shuffle=True, random_state=SEED).split(table.x, table.y))
    found = {}
    for name, make in models(table.classes).items():
        if name == "Gaussian process" and len(table.y) > MOST:
            continue
        density, inside, began = [], [], time.process_time()
        for train, test in folds:
            scaler = StandardScaler().fit(table.x[train])
            x, x_new = scaler.transform(table.x[train]), scaler.transform(table.x[test])
            one = scored(make(), table.classes, (x, table.y[train]), (x_new, table.y[test]))
            density.append(one[0])
            inside += [] if one[1] is None else [one[1]]
        found[name] = {
            "log density": float(np.concatenate(density).mean()),
            "coverage": float(np.concatenate(inside).mean()) if inside else None,
            "seconds": (time.process_time() - began) / FOLDS,
        }
    return {"rows": len(table.y), "inputs": table.x.shape[1], "models": found}


def markdown(found: dict[str, Any]) -> str:
    """Return the table: log density of a row in nats, the best in bold, and our place."""
    names = list(models(False))
    lines = [
        f"| table | rows, inputs | {' | '.join(names)} | our place | 90 % cover | s |",
        "|---|---|" + "---:|" * (len(names) + 3),
    ]
    for name, one in found.items():
        measured = one["models"]
        scores = {who: each["log density"] for who, each in measured.items()}
        best = max(scores.values())
        shown = {who: f"**{s:.3f}**" if s == best else f"{s:.3f}" for who, s in scores.items()}
        cells = [shown.get(who, "–") for who in names]
        place = 1 + sum(s > scores[OURS] for s in scores.values())
        cover = measured[OURS]["coverage"]
        told = "" if cover is None else f"{100 * cover:.0f} %"
        size = f"{one['rows']:,}, {one['inputs']}"
        seconds = f"{measured[OURS]['seconds']:.1f}"
        lines.append(f"| {name} | {size} | {' | '.join(cells)} | {place} | {told} | {seconds} |")
    return "\n".join(lines)


def main() -> None:
    """Measure all tables, or print what was measured."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--print", action="store_true", help="the table of what was measured")
    args = parser.parse_args()
    if not args.print:
        warnings.simplefilter("ignore")  # of fits that have not converged: their scores say it
        found = {}
        for name, table in tables().items():
            print(name, file=sys.stderr)
            found[name] = measure(table)
            RESULTS.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    print(markdown(json.loads(RESULTS.read_text("utf-8"))))


if __name__ == "__main__":
    main()
