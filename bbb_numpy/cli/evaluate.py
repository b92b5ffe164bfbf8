"""``bbb-numpy evaluate``: compare the predictions of a model for test rows with baselines."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..learners.columns import encode_columns, list_names, quote_cell, set_fill_values
from ..numeric.files import write_text
from .fit import INTERRUPTED_STATUS, was_interrupted
from .held_out import split_rows
from .modelling import add_model_options, build_learner, method_name
from .options import (
    Commands,
    Options,
    above_zero,
    add_command,
    add_options,
    at_least_two,
    fraction,
)
from .outputs import check_outputs
from .pictures import COVERAGE_LEVELS, coverage_of_levels, draw_calibration
from .problem import (
    Problem,
    add_data_options,
    lines_in_errors,
    read_problem,
)

if TYPE_CHECKING:
    from pandas import DataFrame

    from .baselines import Forecast, Score

__all__ = ["add_parsers", "evaluate"]

Array = NDArray[Any]
MAX_CLASSES_LISTED = 5
MAX_CLASSES_SCORED = 10  # largest number of classes with a row of scores
CLASS_HEADS = [
    "n_rows",
    "observed",
    "predicted",
    "roc_auc",
    "average_precision",
    "brier",
]
CLASS_NOTE = (
    "observed is the share of the class in these rows, predicted its mean probability."
)
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
    "regression": "RMSE is the root mean squared error and CRPS the continuous ranked probability "
    "score, in units of the target; lower is better. The log density is in nats per row; higher is "
    "better. Ridge and boosting predict normal distributions, as wide as their errors in "
    "cross-validation of the training rows.",
    "counts": "RMSE is the root mean squared error and CRPS the continuous ranked probability "
    "score, in counts; lower is better. The log density is in nats per row; higher is better. The "
    "baselines predict Poisson distributions, the network a mixture of those of its likelihood.",
    "classification": "balanced is the mean accuracy of the classes; higher is better. Lower is "
    "better for the log loss (in nats per row), the Brier score, and ECE, the expected calibration "
    "error of the most probable class in 10 bins. AP is the average precision, by chance the share "
    "of the class.",
}
CLASS_WEIGHT_NOTE = (
    "All but the base rate are trained as if all classes had as many rows: their probabilities, "
    "and so log loss, Brier score and ECE, are not for classes as frequent as in these rows."
)


def evaluate(args: argparse.Namespace) -> int:
    """Measure a model on held-out rows of a table, beside scikit-learn models and the base rate."""
    check_outputs([args.data], args.json, picture=args.plot)
    problem = read_problem(args)
    # the learner is built before the slow import of scikit-learn, so that wrong options fail fast
    model = build_learner(args, problem.task)
    from .baselines import score_forecast

    y = problem.y
    if args.costs and (problem.task != "classification" or len(np.unique(y)) != 2):
        raise ValueError(
            "--costs is for a target of two classes; leave it out, or give --task classification "
            "if two numbers stand for classes"
        )
    splits = split_rows(problem, args.held_out, args.folds, args.seed)
    forecasts = _forecasts(args, problem, model, splits)
    if forecasts is None:
        print("nothing is evaluated", file=sys.stderr)
        return INTERRUPTED_STATUS
    target = np.concatenate([y[test] for _, test in splits])
    notes = NOTES[problem.task]
    if problem.task == "classification":
        labels = np.unique(y)
        target = np.searchsorted(labels, target)  # classes as indices into `labels`
        counts = np.bincount(target, minlength=len(labels))
        notes += _class_notes(labels, counts)
    if args.class_weight:
        notes += " " + CLASS_WEIGHT_NOTE
    scores = {
        name: score_forecast(forecast, target) for name, forecast in forecasts.items()
    }
    report = _report(problem, args, len(target), forecasts, scores)
    class_lines = ""
    if problem.task == "classification":
        title = next(iter(forecasts))  # of the learner
        proba = forecasts[title].proba
        of_classes = _class_report(proba, target, labels)
        report["classes"] = of_classes.reset_index().to_dict("records")
        rarest = of_classes[CLASS_HEADS].head(MAX_CLASSES_SCORED).round(3)
        listed = rarest.rename(index=quote_cell).to_string()
        class_lines = (
            f"\n\nEach class against all others, {title}:\n\n{listed}\n\n{CLASS_NOTE}"
        )
        if args.costs:
            class_lines += _cost_lines(proba, target, labels, args.costs)
    report_text = json.dumps(report, indent=1)
    if args.json == "-":
        print(report_text)
    else:
        print(problem.summary())
        print(f"{_held_out(args, len(target), len(y))}; seed {args.seed}\n")
        print(_table(scores))
        print(f"\n± standard error over these rows. {notes}{class_lines}")
        if args.json:
            write_text(Path(args.json), report_text + "\n")
            print(f"numbers in {args.json}")
    if args.plot:
        draw_calibration(forecasts, target, args.plot)
        if args.json != "-":
            print(f"picture in {args.plot}")
    return 0


def _forecasts(
    args: argparse.Namespace,
    problem: Problem,
    model: Any,
    splits: list[tuple[Array, Array]],
) -> dict[str, Forecast] | None:
    """Return the forecasts of all test rows by model, or None if Ctrl-C has interrupted a fit.

    `splits` are pairs of row numbers for training and testing.
    """
    from .baselines import (
        BASE_RATE,
        Forecast,
        baselines,
        forecast_baseline,
        forecast_learner,
    )

    forecasts: dict[str, list[Forecast]] = {}
    x, y = problem.inputs, problem.y
    rng = np.random.default_rng(args.seed)
    for train, test in splits:
        # missing values are filled with medians of the training rows, so that no test row is used
        if args.fill:
            columns = set_fill_values(problem.columns, problem.table.iloc[train])
            x = encode_columns(problem.table, columns)
        with lines_in_errors(x.iloc[train], args.target):
            model.fit(x.iloc[train], y[train], **problem.fit_arguments(train))
        if was_interrupted(model):
            return None
        with lines_in_errors(x.iloc[test], args.target):
            forecast = forecast_learner(
                model, x.iloc[test], y[test], rng, **problem.fit_arguments(test)
            )
        forecasts.setdefault(method_name(args, model), []).append(forecast)
        features = x.to_numpy()
        exposures = None
        if problem.exposure is not None:
            exposures = (problem.exposure[train], problem.exposure[test])
        train_rows = (features[train], y[train])
        test_rows = (features[test], y[test])
        for name, baseline in baselines(problem.task, len(train), args.seed).items():
            forecast = forecast_baseline(
                baseline,
                problem.task,
                train_rows,
                test_rows,
                rng,
                args.class_weight,
                exposures,
            )
            title = name
            if args.class_weight and name == BASE_RATE:
                title = f"{name}, not weighted"
            forecasts.setdefault(title, []).append(forecast)
    return {name: Forecast.concatenate(folds) for name, folds in forecasts.items()}


def _held_out(args: argparse.Namespace, n_test_rows: int, n_rows: int) -> str:
    """Return a phrase for the report that says how many rows were held out for testing, and how."""
    if args.folds:
        return (
            f"{args.folds}-fold cross-validation: each of {n_rows} rows held out once"
        )
    return f"{n_test_rows} of {n_rows} rows held out at random"


def _class_notes(labels: Array, counts: Array) -> str:
    """Return notes on which classes ROC AUC and AP refer to, and on classes without test row.

    `counts` (C,) are the numbers of held-out rows of the classes `labels` (C,).
    """
    notes = " ROC AUC and AP: of each class against all others, the mean of these."
    if len(labels) == 2:
        rarer = quote_cell(labels[np.argmin(counts)])
        notes = f" ROC AUC and AP are of {rarer}, the rarer class."
    absent = labels[counts == 0].tolist()
    if absent:
        listed = list_names(absent, MAX_CLASSES_LISTED)
        notes += (
            f" No held-out row is of {listed}, which the scores therefore leave out."
        )
    return notes


def _class_report(proba: Array, y: Array, labels: Array) -> DataFrame:
    """Return the scores of each class against all others, the rarest class in the first row.

    `proba` (N, C) are probabilities, `y` (N,) the observed classes as indices into `labels` (C,).
    """
    from pandas import DataFrame

    from ..evaluation.decisions import class_scores

    scores = DataFrame(class_scores(proba, y, np.arange(len(labels)))).drop(
        columns="table"
    )
    scores["label"] = labels.tolist()
    return scores.sort_values("n_rows", kind="stable").set_index("label")


def _cost_lines(proba: Array, y: Array, labels: Array, costs: Sequence[float]) -> str:
    """Return from which probability on the rarer of two classes is decided for, and the costs.

    `costs` are those of a false alarm and of a missed row; the rest is as for `_class_report`.
    """
    from ..evaluation.decisions import cost_threshold, decide

    rarer = int(np.argmin(np.bincount(y, minlength=2)))
    matrix = np.zeros((2, 2))
    matrix[1 - rarer, rarer], matrix[rarer, 1 - rarer] = costs
    cost, cost_at_half = (
        matrix[y, decision].mean()
        for decision in (decide(proba, matrix), proba.argmax(axis=1))
    )
    return (
        f"\n\nIf a false alarm costs {costs[0]:g} and a missed {quote_cell(labels[rarer])} "
        f"{costs[1]:g}, the alarm is raised from the probability {cost_threshold(*costs):.3g} on: "
        f"{cost:.4g} a row, and {cost_at_half:.4g} from one half on."
    )


def _table(scores: Mapping[str, Mapping[str, Score]]) -> str:
    """Return the scores as a text table, with a row for each model and a column for each metric."""
    from pandas import DataFrame

    rows = {name: list(map(str, row.values())) for name, row in scores.items()}
    heads = [HEADS[metric] for metric in next(iter(scores.values()))]
    return DataFrame.from_dict(rows, orient="index", columns=heads).to_string()


def _report(
    problem: Problem,
    args: argparse.Namespace,
    n_test_rows: int,
    forecasts: Mapping[str, Forecast],
    scores: Mapping[str, Mapping[str, Score]],
) -> dict[str, Any]:
    """Return the content of the JSON file: the problem, the split, and the scores of each model."""
    models: dict[str, Any] = {}
    for name, row in scores.items():
        models[name] = {metric: score._asdict() for metric, score in row.items()}
        if forecasts[name].pit is not None:
            shares = coverage_of_levels(forecasts[name]).share
            models[name]["coverage_curve"] = {
                "level": COVERAGE_LEVELS.tolist(),
                "share": shares.tolist(),
            }
    return {
        "source": problem.source,
        "target": problem.target,
        "task": problem.task,
        "rows": len(problem.y),
        "inputs": [column.name for column in problem.columns],
        "held_out_rows": n_test_rows,
        "folds": args.folds,
        "seed": args.seed,
        "models": models,
    }


OUTPUT_OPTIONS: Options = {
    "costs": {
        "type": above_zero,
        "nargs": 2,
        "metavar": ("FALSE", "MISSED"),
        "help": "Of two classes, the cost of a false alarm for the rarer one and that of missing "
        "it: prints from which probability on to raise the alarm, and what a row costs then.",
    },
    "json": {
        "metavar": "FILE",
        "help": "File for all numbers; - prints them in place of the table.",
    },
    "plot": {
        "metavar": "PNG",
        "help": "Picture of how often intervals of each level hold the target; for classes, of how "
        "often the most probable class is right.",
    },
}


def add_parsers(commands: Commands) -> None:
    """Add the parser of ``bbb-numpy evaluate`` to the subcommands."""
    parser = add_command(commands, "evaluate", evaluate, "DATA --target NAME [options]")
    add_data_options(parser)
    group = parser.add_argument_group("the rows that are held out")
    test_rows = group.add_mutually_exclusive_group()
    options: Options = {
        "held_out": {
            "type": fraction,
            "default": 0.2,
            "metavar": "SHARE",
            "help": "Share of the rows on which the models are measured; they are drawn at random.",
        },
        "folds": {
            "type": at_least_two,
            "metavar": "K",
            "help": "Hold every row out once, by K-fold cross-validation: K fits in place of one, "
            "and smaller standard errors.",
        },
    }
    add_options(test_rows, options)
    add_model_options(parser, has_checkpoint=False)
    add_options(parser.add_argument_group("output"), OUTPUT_OPTIONS)
