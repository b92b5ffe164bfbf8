"""``bbb-numpy evaluate``: how well a model predicts rows it has not seen, beside plainer ones."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..learners.columns import encoded, shown
from ..numeric.files import write_text
from .fit import check_ending, check_outputs, interrupted, save_picture
from .modelling import add_model_options, learner
from .options import Commands, add_command, at_least_two, share
from .problem import Problem, add_data_options, filled, read_problem
from .tables import TableError

__all__ = ["add_parsers", "evaluate"]

Array = NDArray[Any]
LEVEL = 0.9  # of the interval in the table
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
    "ece": "ECE",
}
NOTES = {
    "regression": "log density in nats per row, higher is better; RMSE and CRPS in units of the "
    "target, lower is better. Ridge and boosting predict normal distributions, as wide as their "
    "errors in cross-validation of the training rows.",
    "counts": "log density in nats per row, higher is better; RMSE and CRPS in counts, lower is "
    "better. All predict Poisson distributions, the network a mixture of them.",
    "classification": "balanced: the mean accuracy of the classes. Log loss in nats per row and "
    "ECE, the calibration error of the most probable class in 10 bins: lower is better.",
}


class Score(NamedTuple):
    """A mean over the held-out rows, and its standard error, if it has one."""

    value: float
    error: float | None

    def __str__(self) -> str:
        if self.error is None:
            return f"{self.value:.3f}"
        if not 1e-9 * abs(self.value) < self.error < np.inf:
            return f"{self.value:.4g}"
        digits = max(0, 1 - int(np.floor(np.log10(self.error))))  # two of the error
        if digits > 6 or abs(self.value) >= 1e7:
            return f"{self.value:.4g} ± {self.error:.2g}"
        return f"{self.value:.{digits}f} ± {self.error:.{digits}f}"


def evaluate(args: argparse.Namespace) -> int:
    """Measure a model on rows held out of a table, beside scikit-learn's and the base rate."""
    to_screen = args.json == "-"
    check_outputs([args.data], None if to_screen else args.json, args.plot)
    check_ending(args.plot)
    problem = read_problem(args)
    learner(args, problem.task)  # what is missing or does not fit is said before any work
    from .rivals import Forecast, of_model, rivals

    splits = _splits(problem, args)
    x, y = problem.inputs, problem.y
    found: dict[str, list[Forecast]] = {}
    rng = np.random.default_rng(args.seed)
    for train, test in splits:
        if args.fill:  # by what the training rows show
            columns = filled(problem.columns, problem.table.iloc[train])
            x = encoded(problem.table, columns)
        model = learner(args, problem.task).fit(x.iloc[train], y[train])
        if interrupted(model):
            print("nothing is evaluated", file=sys.stderr)
            return 130
        found.setdefault(args.inference, []).append(of_model(model, x.iloc[test], y[test], rng))
        numbers = x.to_numpy()
        for name, rival in rivals(problem.task, len(train), args.seed).items():
            parts = numbers[train], y[train], numbers[test], y[test]
            found.setdefault(name, []).append(rival(*parts, rng))
    target = np.concatenate([y[test] for _, test in splits])
    forecasts = {name: Forecast.joined(parts) for name, parts in found.items()}
    if problem.task == "classification":  # by their places among all classes
        target = np.searchsorted(np.unique(y), target)
    scores = {name: _scores(one, target) for name, one in forecasts.items()}
    if args.plot:
        _picture(forecasts, target, args.plot)
    if args.json:
        text = json.dumps(_report(problem, args, len(target), forecasts, scores), indent=1)
        if to_screen:
            print(text)
            return 0
        write_text(Path(args.json), text + "\n")
    held_out = f"{len(target)} of {len(y)} rows held out at random"
    if args.folds:
        held_out = f"{args.folds}-fold cross-validation: each of {len(y)} rows held out once"
    print(problem.said())
    print(f"{held_out}; seed {args.seed}\n")
    print(_table(scores))
    print(f"\n± standard error over these rows. {NOTES[problem.task]}")
    for what, path in (("numbers", args.json), ("picture", args.plot)):
        if path:
            print(f"{what} in {path}")
    return 0


def _splits(problem: Problem, args: argparse.Namespace) -> list[tuple[Array, Array]]:
    """Return row numbers for training and testing; every class is in both."""
    from sklearn.model_selection import (
        KFold,
        ShuffleSplit,
        StratifiedKFold,
        StratifiedShuffleSplit,
    )

    y, folds = problem.y, args.folds
    problem.check(max(FEWEST, folds or 0))
    labels: Array = np.zeros(1)
    if problem.task == "classification":
        labels, counts = np.unique(y, return_counts=True)
        if counts.min() < (folds or 2):
            rare = shown(labels[np.argmin(counts)])
            raise TableError(
                f"{problem.source}: the class {rare} has {counts.min()} rows; "
                f"{folds or 2} are needed. Leave such rows out, or join it with another class"
            )
    stratified, seed = len(labels) > 1, args.seed % 2**32
    if folds:
        kind: Any = StratifiedKFold if stratified else KFold
        cut = kind(folds, shuffle=True, random_state=seed)
    else:
        kind = StratifiedShuffleSplit if stratified else ShuffleSplit
        size = max(round(args.held_out * len(y)), len(labels))
        size = min(size, len(y) - max(len(labels), 5))
        cut = kind(1, test_size=size, random_state=seed)
    splits = list(cut.split(np.zeros(len(y)), y))
    for train, _ in splits if stratified else ():
        absent = np.setdiff1d(labels, y[train])
        if len(absent):
            raise TableError(
                f"{problem.source}: the class {shown(absent[0])} is in no row of the training "
                "part; hold out fewer rows, or leave such rows out"
            )
    return splits


def _scores(forecast: Any, y: Array) -> dict[str, Score]:
    """Return the scores of a forecast of all held-out rows; classes are given by their places."""
    from ..evaluation.reliability import expected_calibration_error, top_label

    if forecast.proba is not None:
        _, right = top_label(forecast.proba, y)
        recalls = [_share(right[y == label]) for label in np.unique(y)]
        errors = [float(recall.error or 0.0) for recall in recalls]
        balanced = float(np.mean([recall.value for recall in recalls]))
        return {
            "accuracy": _share(right),
            "balanced_accuracy": Score(balanced, float(np.linalg.norm(errors)) / len(errors)),
            "log_loss": _mean(-forecast.log_density),
            "ece": Score(expected_calibration_error(_bins(forecast, y)), None),
        }
    mean = _mean((forecast.mean - y) ** 2)
    rmse = float(np.sqrt(mean.value))
    error = None if mean.error is None or rmse == 0.0 else mean.error / (2.0 * rmse)
    return {
        "rmse": Score(rmse, error),
        "log_density": _mean(forecast.log_density),
        "crps": _mean(forecast.crps),
        "coverage": _share(np.abs(forecast.pit - 0.5) <= LEVEL / 2),
    }


def _mean(values: Array) -> Score:
    values = np.asarray(values, float)
    error = float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else None
    return Score(float(values.mean()), error)


def _share(true: Array) -> Score:
    """Return a share of rows, with the standard deviation of Beta(k + 1, n - k + 1).

    Where all of n rows are true, or none, that of the rows would be 0.
    """
    n, k = len(true), int(np.count_nonzero(true))
    return Score(k / n, float(np.sqrt((k + 1) * (n - k + 1) / (n + 3))) / (n + 2))


def _bins(forecast: Any, y: Array) -> Any:
    from ..evaluation.reliability import reliability, top_label

    stated, right = top_label(forecast.proba, y)
    return reliability(np.minimum(stated, 1.0), right, 10)


def _table(scores: Mapping[str, Mapping[str, Score]]) -> str:
    rows = [[name, *map(str, one.values())] for name, one in scores.items()]
    rows.insert(0, ["", *(HEADS[metric] for metric in next(iter(scores.values())))])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows
    )


def _report(
    problem: Problem,
    args: argparse.Namespace,
    tested: int,
    forecasts: Mapping[str, Any],
    scores: Mapping[str, Mapping[str, Score]],
) -> dict[str, Any]:
    from ..evaluation.calibration import coverage

    models: dict[str, Any] = {}
    for name, own in scores.items():
        models[name] = {metric: score._asdict() for metric, score in own.items()}
        if forecasts[name].pit is not None:
            shares = coverage(forecasts[name].pit, LEVELS).share
            models[name]["coverage_curve"] = {"level": LEVELS.tolist(), "share": shares.tolist()}
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


def _picture(forecasts: Mapping[str, Any], y: Array, path: str) -> None:
    """Draw the coverage of intervals, of classes the reliability of the most probable one."""
    from ..evaluation.calibration import coverage
    from ..plots.calibration import coverage_curve, reliability_diagram

    if next(iter(forecasts.values())).proba is not None:
        ax = reliability_diagram({name: _bins(one, y) for name, one in forecasts.items()})
    else:
        ax = coverage_curve({name: coverage(f.pit, LEVELS) for name, f in forecasts.items()})
    save_picture(ax.get_figure(root=True), path)


def add_parsers(commands: Commands) -> None:
    """Add the subcommand evaluate."""
    parser = add_command(commands, "evaluate", evaluate, "DATA --target NAME [options]")
    add_data_options(parser)
    how = parser.add_mutually_exclusive_group()
    how.add_argument(
        "--held-out", type=share, default=0.2, metavar="SHARE", help="of the rows, for testing"
    )
    how.add_argument("--folds", type=at_least_two, help="cross-validation in place of one share")
    parser.add_argument("--json", metavar="FILE", help="all numbers; - prints them, not the table")
    parser.add_argument(
        "--plot", metavar="PNG", help="picture of the coverage of intervals; of classes reliability"
    )
    add_model_options(parser, checkpoint=False)
