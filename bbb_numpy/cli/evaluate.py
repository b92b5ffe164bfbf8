"""``bbb-numpy evaluate``: how well a model predicts rows it has not seen, beside plainer ones."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..learners.columns import encoded, shown, some
from ..numeric.files import write_text
from .fit import interrupted, save_picture
from .modelling import add_model_options, learner
from .options import Commands, add_command, at_least_two, share
from .outputs import check_outputs, check_picture
from .problem import Problem, add_data_options, filled, places_of, read_problem
from .tables import TableError

__all__ = ["add_parsers", "evaluate"]

Array = NDArray[Any]
LEVELS = np.arange(1, 20) / 20  # of the picture
FEWEST = 10  # rows
HEADS = {
    "rmse": "RMSE",
    "log_density": "log density",
    "crps": "CRPS",
    "coverage": "in 90 % interval",
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced",
    "log_loss": "log loss",
    "roc_auc": "ROC AUC",
    "average_precision": "AP",
    "brier": "Brier",
    "ece": "ECE",
}
NOTES = {
    "regression": "log density in nats per row, higher is better; RMSE and CRPS in units of the "
    "target, lower is better. Ridge and boosting predict normal distributions, as wide as their "
    "errors in cross-validation of the training rows.",
    "counts": "log density in nats per row, higher is better; RMSE and CRPS in counts, lower is "
    "better. All predict Poisson distributions, the network a mixture of them.",
    "classification": "balanced: the mean accuracy of the classes. Log loss in nats per row, the "
    "Brier score, and ECE, the calibration error of the most probable class in 10 bins: lower is "
    "better. AP is the average precision, by chance the share of the class.",
}
WEIGHTED = (
    "All but the base rate are trained as if all classes had as many rows: their probabilities, "
    "and log loss, Brier score and ECE of these, are not of classes as frequent as here."
)


def evaluate(args: argparse.Namespace) -> int:
    """Measure a model on rows held out of a table, beside scikit-learn's and the base rate."""
    check_outputs([args.data], args.json, args.plot)
    check_picture(args.plot)
    problem = read_problem(args)
    model = learner(args, problem.task)  # what is missing is said before any work
    from .baselines import (
        BASE_RATE,
        Forecast,
        baselines,
        forecast_baseline,
        forecast_learner,
        score_forecast,
    )

    splits = _splits(problem, args)
    x, y = problem.inputs, problem.y
    found: dict[str, list[Forecast]] = {}
    rng = np.random.default_rng(args.seed)
    for train, test in splits:
        if args.fill:  # by what the training rows show
            columns = filled(problem.columns, problem.table.iloc[train])
            x = encoded(problem.table, columns)
        with places_of(x.iloc[train], args.target):
            model.fit(x.iloc[train], y[train])
        if interrupted(model):
            print("nothing is evaluated", file=sys.stderr)
            return 130
        with places_of(x.iloc[test], args.target):
            forecast = forecast_learner(model, x.iloc[test], y[test], rng)
        found.setdefault(args.inference, []).append(forecast)
        numbers = x.to_numpy()
        rows, new = (numbers[train], y[train]), (numbers[test], y[test])
        for name, rival in baselines(problem.task, len(train), args.seed).items():
            forecast = forecast_baseline(
                rival, problem.task, rows, new, rng, args.class_weight
            )
            title = (
                f"{name}, not weighted"
                if args.class_weight and name == BASE_RATE
                else name
            )
            found.setdefault(title, []).append(forecast)
    target = np.concatenate([y[test] for _, test in splits])
    forecasts = {name: Forecast.concatenate(parts) for name, parts in found.items()}
    notes = NOTES[problem.task]
    if problem.task == "classification":  # by their places among all classes
        labels = np.unique(y)
        target = np.searchsorted(labels, target)
        notes += _of_classes(labels, np.bincount(target, minlength=len(labels)))
    if args.class_weight:
        notes += " " + WEIGHTED
    scored = {name: score_forecast(one, target) for name, one in forecasts.items()}
    report = json.dumps(
        _report(problem, args, len(target), forecasts, scored), indent=1
    )
    if args.json == "-":
        print(report)
    else:
        held_out = f"{len(target)} of {len(y)} rows held out at random"
        if args.folds:
            held_out = f"{args.folds}-fold cross-validation: each of {len(y)} rows held out once"
        print(problem.summary())
        print(f"{held_out}; seed {args.seed}\n")
        print(_table(scored))
        print(f"\n± standard error over these rows. {notes}")
        if args.json:
            write_text(Path(args.json), report + "\n")
            print(f"numbers in {args.json}")
    if args.plot:
        _picture(forecasts, target, args.plot)
        if args.json != "-":
            print(f"picture in {args.plot}")
    return 0


def _of_classes(labels: Array, counts: Array) -> str:
    """Return what ROC AUC and AP are of, and which classes the held-out rows lack."""
    if len(labels) == 2:
        rare = shown(labels[np.argmin(counts)])
        said = f" ROC AUC and AP are of {rare}, the rarer class."
    else:
        said = " ROC AUC and AP: of each class against all others, the mean of these."
    absent = labels[counts == 0].tolist()
    if absent:
        said += (
            f" No held-out row is of {some(absent, 5)}, of which nothing is said here."
        )
    return said


def _splits(problem: Problem, args: argparse.Namespace) -> list[tuple[Array, Array]]:
    """Return row numbers for training and testing; every class is in the training rows."""
    from sklearn.model_selection import (
        KFold,
        ShuffleSplit,
        StratifiedKFold,
        StratifiedShuffleSplit,
    )

    y, folds, seed = problem.y, args.folds, args.seed % 2**32
    problem.check_counts(max(FEWEST, folds or 0), folds or 2)
    classes = len(np.unique(y)) if problem.task == "classification" else 0
    if folds:
        cut: Any = StratifiedKFold if classes else KFold
        splits = cut(folds, shuffle=True, random_state=seed)
    else:
        cut = StratifiedShuffleSplit if classes else ShuffleSplit
        size = min(
            max(round(args.held_out * len(y)), classes, 1), len(y) - max(classes, 5)
        )
        splits = cut(1, test_size=size, random_state=seed)
    found = list(splits.split(np.zeros(len(y)), y))
    for train, _ in found if classes else ():
        if absent := sorted({*np.unique(y).tolist()} - {*y[train].tolist()}):
            raise TableError(
                f"{problem.source}: no row for training is of the class {shown(absent[0])}; hold "
                "fewer rows out (--held-out), or use --folds"
            )
    return found


def _table(scored: dict[str, Any]) -> str:
    from pandas import DataFrame

    rows = {name: list(map(str, own.values())) for name, own in scored.items()}
    heads = [HEADS[metric] for metric in next(iter(scored.values()))]
    return DataFrame.from_dict(rows, orient="index", columns=heads).to_string()


def _report(
    problem: Problem,
    args: argparse.Namespace,
    tested: int,
    forecasts: dict[str, Any],
    scored: dict[str, Any],
) -> dict[str, Any]:
    """Return all numbers as JSON has them."""
    models: dict[str, Any] = {}
    for name, own in scored.items():
        models[name] = {metric: score._asdict() for metric, score in own.items()}
        if forecasts[name].pit is not None:
            shares = _coverage(forecasts[name]).share
            models[name]["coverage_curve"] = {
                "level": LEVELS.tolist(),
                "share": shares.tolist(),
            }
    return {
        "source": problem.source,
        "target": problem.target,
        "task": problem.task,
        "rows": len(problem.y),
        "inputs": [column.name for column in problem.columns],
        "held_out_rows": tested,
        "folds": args.folds,
        "seed": args.seed,
        "models": models,
    }


def _coverage(forecast: Any) -> Any:
    from ..evaluation.calibration import coverage

    return coverage(forecast.pit, LEVELS)


def _picture(forecasts: dict[str, Any], y: Array, path: str) -> None:
    """Draw the coverage of intervals, of classes the reliability of the most probable one."""
    from ..plots.calibration import coverage_curve, reliability_diagram
    from .baselines import top_label_reliability

    if next(iter(forecasts.values())).proba is not None:
        ax = reliability_diagram(
            {name: top_label_reliability(one, y) for name, one in forecasts.items()}
        )
    else:
        ax = coverage_curve({name: _coverage(one) for name, one in forecasts.items()})
    save_picture(ax, path)


def add_parsers(commands: Commands) -> None:
    """Add the subcommand evaluate."""
    parser = add_command(commands, "evaluate", evaluate, "DATA --target NAME [options]")
    add_data_options(parser)
    how = parser.add_mutually_exclusive_group()
    text = "of the rows, for testing"
    how.add_argument("--held-out", type=share, default=0.2, metavar="SHARE", help=text)
    how.add_argument(
        "--folds", type=at_least_two, help="cross-validation in place of one share"
    )
    parser.add_argument(
        "--json", metavar="FILE", help="all numbers; - prints them, not the table"
    )
    text = "picture of the coverage of intervals; of classes reliability"
    parser.add_argument("--plot", metavar="PNG", help=text)
    add_model_options(parser, checkpoint=False)
