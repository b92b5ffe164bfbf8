"""The learners as they come beside others as they come, on tables that come with packages.

    pip install -e '.[learners]' statsmodels
    python benchmarks/tables.py             # five folds of eleven tables; prints README's table
    python benchmarks/tables.py --only wine fair --models ours MLP    # these anew
    python benchmarks/tables.py --print     # the table of what was measured

The tables come with scikit-learn's and statsmodels' packages. The defaults were chosen on splits of
diabetes, wine, breast_cancer and digits; the seven others were named before anything was fitted to
them, and nothing was chosen on them. All inputs are standardised by the training part, for
scikit-learn's MLP also the targets that are numbers, which it takes as they are. A model of numbers
without a predictive distribution is given a Gaussian, as wide as its errors on training rows that
it was not fitted to. No probability of a class counts as less than 1 in twice the training rows. A
Gaussian process has a kernel of three parts, and is left out of many rows.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from sklearn import datasets
from sklearn.compose import TransformedTargetRegressor
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
from bbb_numpy.cli.baselines import forecast_baseline
from bbb_numpy.cli.options import at_least_two
from benchmarks.racing import FOLDER, output

Array = NDArray[Any]
TABLES_PATH = FOLDER / "tables.json"
FOLDS = 5
SPLIT_SEED = 0
MAX_GP_ROWS = 2_000  # rows of a Gaussian process
OURS = "ours"
KERNEL = ConstantKernel() * RBF() + WhiteKernel()


class Table(NamedTuple):
    """Inputs (N, d_in) and targets (N,) of a table."""

    x: Array
    y: Array
    classes: bool


def _bundled(name: str, classes: bool) -> Table:
    return Table(*getattr(datasets, f"load_{name}")(return_X_y=True), classes)


def _columns(name: str, target: str, leave: str = "", classes: bool = False) -> Table:
    """Return the numbers of a table of statsmodels, without what names or gives the target.

    The classes are whether the target is above 0.
    """
    import statsmodels.api as sm  # type: ignore[import-not-found, import-untyped, unused-ignore]

    frame = getattr(sm.datasets, name).load_pandas().data
    x = frame.drop(columns=[target, *leave.split()]).select_dtypes("number")
    y = frame[target].to_numpy(float)
    return Table(x.to_numpy(float), (y > 0).astype(int) if classes else y, classes)


TABLES: dict[str, Callable[[], Table]] = {
    "diabetes": partial(_bundled, "diabetes", False),
    "engel": partial(_columns, "engel", "foodexp"),
    "grunfeld": partial(_columns, "grunfeld", "invest"),
    "cancer": partial(_columns, "cancer", "cancer"),
    "macrodata": partial(_columns, "macrodata", "unemp", "year quarter"),
    "star98": partial(_columns, "star98", "NABOVE"),
    "wine": partial(_bundled, "wine", True),
    "breast_cancer": partial(_bundled, "breast_cancer", True),
    "digits": partial(_bundled, "digits", True),
    "anes96": partial(_columns, "anes96", "vote", classes=True),
    "fair": partial(_columns, "fair", "affairs", classes=True),
}


def models(classes: bool) -> dict[str, Callable[[], Any]]:
    """Return a constructor of each model, without arguments but the kernel and the seed."""
    if classes:
        return {
            OURS: lambda: BayesianMLPClassifier(random_state=SPLIT_SEED, progress=False),
            "random forest": lambda: RandomForestClassifier(random_state=SPLIT_SEED),
            "boosting": lambda: GradientBoostingClassifier(random_state=SPLIT_SEED),
            "Gaussian process": lambda: GaussianProcessClassifier(random_state=SPLIT_SEED),
            "linear": lambda: LogisticRegression(max_iter=1000),
            "MLP": lambda: MLPClassifier(random_state=SPLIT_SEED),
        }
    return {
        OURS: lambda: BayesianMLPRegressor(random_state=SPLIT_SEED, progress=False),
        "random forest": lambda: RandomForestRegressor(random_state=SPLIT_SEED),
        "boosting": lambda: GradientBoostingRegressor(random_state=SPLIT_SEED),
        "Gaussian process": lambda: GaussianProcessRegressor(
            KERNEL, normalize_y=True, random_state=SPLIT_SEED
        ),
        "linear": BayesianRidge,
        "MLP": lambda: TransformedTargetRegressor(
            MLPRegressor(random_state=SPLIT_SEED), transformer=StandardScaler()
        ),
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
        density = stats.norm.logpdf(y_new, mean, scale)
        pit = stats.norm.cdf(y_new, mean, scale)
    else:
        forecast = forecast_baseline(
            model, "regression", train, new, np.random.default_rng(SPLIT_SEED)
        )
        density = forecast.log_density
        pit = forecast.pit
    return density, np.abs(pit - 0.5) <= 0.45


def measure(table: Table, names: Sequence[str], count: int = FOLDS) -> dict[str, Any]:
    """Return log density a row, coverage and seconds of a fit for each model, over the folds."""
    splitter = StratifiedKFold if table.classes else KFold
    folds = list(splitter(count, shuffle=True, random_state=SPLIT_SEED).split(table.x, table.y))
    results = {}
    for name, make in models(table.classes).items():
        if name not in names or (name == "Gaussian process" and len(table.y) > MAX_GP_ROWS):
            continue
        density = []
        inside = []
        start_time = time.process_time()
        for train, test in folds:
            scaler = StandardScaler().fit(table.x[train])
            x = scaler.transform(table.x[train])
            x_new = scaler.transform(table.x[test])
            scores = scored(make(), table.classes, (x, table.y[train]), (x_new, table.y[test]))
            density.append(scores[0])
            inside += [] if scores[1] is None else [scores[1]]
        results[name] = {
            "log density": float(np.concatenate(density).mean()),
            "coverage": float(np.concatenate(inside).mean()) if inside else None,
            "seconds": (time.process_time() - start_time) / count,
        }
    return results


def markdown(results: dict[str, Any]) -> str:
    """Return the table: log density of a row in nats, the best in bold, and our place."""
    names = list(models(False))
    lines = [
        f"| table | rows, inputs | {' | '.join(names)} | our place | 90 % cover | s |",
        "|---|---|" + "---:|" * (len(names) + 3),
    ]
    for name, entry in results.items():
        measured = entry["models"]
        if OURS not in measured:
            continue
        scores = {
            model: scores_of_model["log density"] for model, scores_of_model in measured.items()
        }
        best = max(scores.values())
        score_texts = {
            model: f"**{score:.3f}**" if score == best else f"{score:.3f}"
            for model, score in scores.items()
        }
        cells = [score_texts.get(model, "–") for model in names]
        rank = 1 + sum(score > scores[OURS] for score in scores.values())
        cover = measured[OURS]["coverage"]
        coverage_text = "" if cover is None else f"{100 * cover:.0f} %"
        size = f"{entry['rows']:,}, {entry['inputs']}"
        seconds = f"{measured[OURS]['seconds']:.1f}"
        lines.append(
            f"| {name} | {size} | {' | '.join(cells)} | {rank} | {coverage_text} | {seconds} |"
        )
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> None:
    """Measure tables, or print what was measured; other tables and models stay as they were."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--print", action="store_true", help="the table of what was measured")
    parser.add_argument("--only", nargs="+", choices=TABLES, default=TABLES, help="tables")
    parser.add_argument("--models", nargs="+", choices=models(True), default=models(True))
    parser.add_argument("--folds", type=at_least_two, default=FOLDS)
    parser.add_argument("--json", type=output, default=TABLES_PATH, help="what was measured")
    args = parser.parse_args(argv)
    results = json.loads(args.json.read_text("utf-8")) if args.json.exists() else {}
    for name in () if args.print else args.only:
        print(name, file=sys.stderr)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of fits that have not converged: their scores say it
            table = TABLES[name]()
            measured = measure(table, args.models, args.folds)
        entry = results.setdefault(name, {"rows": len(table.y), "inputs": table.x.shape[1]})
        entry["models"] = entry.get("models", {}) | measured
        args.json.write_text(json.dumps(results, indent=1) + "\n", "utf-8")
    print(markdown(results))


if __name__ == "__main__":
    main()
