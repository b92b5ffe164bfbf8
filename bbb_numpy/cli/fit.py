"""``bbb-numpy fit`` and ``predict``: from a table to a model, from both to predictions."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from shlex import join
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..evaluation.target_units import LogUnits
from ..learners.columns import (
    Column,
    encode_columns,
    get_column,
    list_names,
    quote_cell,
    set_fill_values,
)
from ..learners.target_scale import choose_target
from ..numeric.files import write_text
from ..progress import tqdm
from .held_out import Measurement, RowsOfFit, measure, rows_of_fit
from .modelling import add_model_options, build_learner, describe_method
from .options import (
    Commands,
    Options,
    add_command,
    add_options,
    fraction,
    option_flag,
    share,
)
from .outputs import check_folder, check_outputs
from .pictures import draw_pictures, save_picture
from .problem import (
    READING_OPTIONS,
    Problem,
    add_data_options,
    add_reading_options,
    drop_incomplete_rows,
    exposure_values,
    lines_in_errors,
    parse_number_columns,
    read_problem,
    read_table,
)
from .tables import MAX_NAMES_LISTED, TableError, csv_text

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["add_parsers", "fit", "predict", "was_interrupted"]

Array = NDArray[Any]
MOMENTS = ("mean", "epistemic", "aleatoric", "total")
INTERRUPTED_STATUS = 130  # exit status after Ctrl-C, by the convention of shells
MAX_CLASSES_PRINTED = 20
MAX_FINDINGS = 3  # largest number of findings that `fit` prints
N_BATCH_ROWS = 10_000  # number of rows that `predict` predicts at once


def fit(args: argparse.Namespace) -> int:
    """Fit the target column of a table and store the model."""
    from ..learners.checkpoint import save

    check_outputs([args.data], args.model, picture=args.plot)
    folder = None if args.pictures is None else check_folder(args.pictures)
    problem = read_problem(args)
    model = build_learner(args, problem.task)
    rows = rows_of_fit(problem, args.held_out, args.seed)
    stored_rows = rows.train
    if rows.is_refitted:
        stored_rows = np.arange(len(problem.y))
    if args.plot:
        _check_plot(list(problem.inputs.columns), problem.task == "classification")
    start = perf_counter()
    inputs = _fit_rows(model, problem, stored_rows, args)
    seconds = perf_counter() - start
    if was_interrupted(model):
        return _store_unfinished(model, Path(args.model))
    noise_scale = getattr(model, "noise_scale_", None)
    if noise_scale is not None and not np.isfinite(noise_scale).all():
        raise ValueError(
            "the standard deviation of the noise overflowed; lower --learning-rate"
        )
    save(model, args.model)
    measured = model
    if rows.is_refitted:
        measured = _build_measured(args, problem.task)
        inputs = _fit_rows(measured, problem, rows.train, args)
        if was_interrupted(measured):
            nothing = rows.test[:0]
            rows = rows._replace(test=nothing, reason="that fit was interrupted")
    measurement = None
    if len(rows.test):
        measurement = measure(measured, inputs, problem, rows, args)
    print(problem.summary())
    method = describe_method(args, model, len(stored_rows))
    advice = ""
    if (
        problem.task == "regression"
        and args.target_scale is None
        and not isinstance(model.fitted_.units, LogUnits)
        and choose_target(inputs.to_numpy(), problem.y[:, None]) == "log"
    ):
        advice = "the target varies by factors rather than by amounts: try --target-scale log"
    _print_fit(args, model, measurement, rows, f"{method}; {seconds:.1f} s", advice)
    if args.plot:
        rates = problem.y
        if problem.exposure is not None:
            rates = rates / problem.exposure
        _plot(model, problem.inputs, args.target, args.plot, rates)
        print(f"picture in {args.plot}")
    if folder is not None and measurement is not None:
        for path in draw_pictures(measured, problem, rows.test, measurement, folder):
            print(f"picture in {path}")
    _print_next(args, len(stored_rows), rows, problem.task)
    return 0


def _build_measured(args: argparse.Namespace, task: str) -> Any:
    """Return the learner to measure, which must not go on with the stored one's checkpoint."""
    options = {**vars(args), "checkpoint": None}
    return build_learner(argparse.Namespace(**options), task)


def _fit_rows(
    model: Any, problem: Problem, rows: Array, args: argparse.Namespace
) -> DataFrame:
    """Fit a learner to rows of a table, and return the features of all rows.

    With --fill missing values become the medians of `rows`, so that no held-out row is used. What
    the learner's report finds is printed later, as no warning.
    """
    from sklearn.exceptions import ConvergenceWarning

    columns = problem.columns
    if args.fill:
        columns = set_fill_values(columns, problem.table.iloc[rows])
    inputs = encode_columns(problem.table, columns)
    with lines_in_errors(inputs.iloc[rows], problem.target), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(inputs.iloc[rows], problem.y[rows], **problem.fit_arguments(rows))
    model.columns_ = columns
    return inputs


def _store_unfinished(model: Any, path: Path) -> int:
    """Store a fit that Ctrl-C has interrupted, and return the exit status of the command, 130.

    If `path` exists, its file is kept, and the fit is stored beside it, with ``-unfinished`` added
    to the name. Nothing is stored if no epoch was finished.
    """
    from ..learners.checkpoint import save

    if not model.n_iter_:
        print(f"no epoch was finished; nothing is stored in {path}", file=sys.stderr)
        return INTERRUPTED_STATUS
    unfinished_path = path
    remark = ""
    if path.exists():
        unfinished_path = path.with_stem(f"{path.stem}-unfinished")
        remark = f"; {path} is unchanged"
    save(model, unfinished_path)
    print(f"the unfinished fit is stored in {unfinished_path}{remark}", file=sys.stderr)
    return INTERRUPTED_STATUS


def was_interrupted(model: Any) -> bool:
    """Return whether Ctrl-C interrupted the learner's fit; the method `fit` itself only warns."""
    draws = getattr(model, "draws_", None)
    if draws:
        return not draws.finished
    return bool(model.training_.stopped == "interrupted")


def _print_fit(
    args: argparse.Namespace,
    model: Any,
    measurement: Measurement | None,
    rows: RowsOfFit,
    method: str,
    advice: str,
) -> None:
    """Print how the model was fitted, what it is worth on held-out rows, and what to look at."""
    _print_line("method", method)
    if measurement is None:
        _print_line("not measured", rows.reason)
    else:
        for label, text in measurement.lines(args.target):
            _print_line(label, text)
    # A learner whose noise depends on the inputs has no attribute `noise_scale_`
    noise_scale = getattr(model, "noise_scale_", None)
    if noise_scale is not None:
        unit = model.fitted_.units.noise_unit.format(args.target)
        label = model.estimator_.model.likelihood.noise_name
        _print_line(label, f"{noise_scale[0]:.6g} ({unit})")
    if hasattr(model, "classes_"):
        classes = map(str, model.classes_[:MAX_CLASSES_PRINTED])
        _print_line("classes", ", ".join(classes))
    findings = [] if measurement is None else measurement.findings()
    if advice:
        findings.append(advice)
    report = getattr(model, "fit_report_", None)
    if report is not None:
        # What to do comes first: the rows held out have often said the rest
        findings += [*report.causes, *report.findings]
    for finding in findings[:MAX_FINDINGS]:
        _print_line("look at", finding)


def _print_line(label: str, text: str) -> None:
    """Print a label and a text, aligned in columns."""
    print(f"{label:<18} {text}")


def _print_next(
    args: argparse.Namespace, n_rows: int, rows: RowsOfFit, task: str
) -> None:
    """Print where the model is, how many rows it has seen, and a command to type next."""
    print(f"stored in {args.model}, fitted to {n_rows:,} rows", end="")
    if len(rows.test) and rows.is_refitted:
        print(", the held-out ones among them", end="")
    words = ["bbb-numpy", "predict", args.model, "NEW.csv"]
    if task != "classification":
        words += ["--interval", "0.9"]
    for name in READING_OPTIONS:
        value = getattr(args, name)
        if value:
            values = value if isinstance(value, list) else [value]
            words += [option_flag(name), *map(str, values)]
    print(f"\nnext: {join(words)}")


def predict(args: argparse.Namespace) -> int:
    """Predict every row of a table with a stored model."""
    from ..learners.checkpoint import load
    from ..learners.recalibrated import innermost

    check_outputs([args.model, args.data], args.output, picture=args.plot)
    if args.data.endswith(".npz") and not args.model.endswith(".npz"):
        raise ValueError(
            f"MODEL must come before DATA: bbb-numpy predict {args.data} {args.model}"
        )
    model = load(args.model)
    learner = innermost(model)  # of a calibration; of a learner itself
    names = getattr(learner, "feature_names_in_", None)
    if names is None:  # the learner was fitted to an array, in Python
        raise TableError(
            f"{args.model} was fitted without column names; use it from Python, or fit it with "
            "bbb-numpy fit"
        )
    columns = getattr(learner, "columns_", tuple(Column(name) for name in names))
    is_classifier = hasattr(model, "classes_")
    if args.exposure and not hasattr(model, "exposure_scale_"):
        raise ValueError(
            f"{args.model} was fitted without an exposure; leave --exposure out"
        )
    if is_classifier and args.interval is not None:
        raise ValueError(
            f"{args.model} predicts classes, which have probabilities and no interval; leave "
            "--interval out"
        )
    coverage = getattr(model, "coverage_", args.interval)
    if args.interval not in (None, coverage):
        raise ValueError(
            f"{args.model} has intervals of the coverage {coverage}; leave --interval out, or "
            "calibrate it for another one"
        )
    if args.plot and learner is not model:
        raise ValueError(
            f"--plot draws the bands of a model that is not calibrated; {args.model} is, leave "
            "--plot out"
        )
    if args.plot:
        _check_plot(list(names), is_classifier)
    text_names = {column.name for column in columns if column.categories or column.date}
    table = read_table(args, {*args.keep, *text_names})
    copied = {name: get_column(table, name) for name in args.keep}
    needed = [column.name for column in columns]
    if args.exposure:
        needed.append(args.exposure)
    rows = drop_incomplete_rows(table, needed, args)
    numbers = parse_number_columns(rows, columns, args)
    inputs = encode_columns(numbers, columns, args.unknown)
    exposure = {}
    if args.exposure:
        exposure["exposure"] = exposure_values(rows, args)
    predicted_columns: Any = partial(_moments, coverage=args.interval)
    if learner is not model:
        predicted_columns = partial(_calibrated, coverage=args.interval)
    elif is_classifier:
        predicted_columns = _class_probabilities
    if copied:
        one_row = {name: values[:1] for name, values in exposure.items()}
        for name in predicted_columns(model, inputs[:1], **one_row):
            if name in copied:
                raise TableError(
                    f"--keep {name}: the predictions have a column of that name; rename it in "
                    f"{table.attrs['source']}"
                )
    with lines_in_errors(inputs):
        predictions = _predict_batches(predicted_columns, model, inputs, exposure)
    # dtype object keeps whole numbers whole in columns that also have cells without prediction
    predicted = type(table)(predictions, rows.index).astype(object)
    text = csv_text(type(table)(copied, table.index).join(predicted))
    if args.output == "-":
        print(text, end="", flush=True)
    else:
        write_text(Path(args.output), text)
    if args.plot:
        _plot(model, inputs, "prediction", args.plot)
    _print_novelty(learner, inputs)
    return 0


def _print_novelty(model: Any, inputs: DataFrame) -> None:
    """Print, on standard error, how many rows are unlike those of fit, and in which columns."""
    region = getattr(model, "training_region_", None)
    if region is None:  # the file is of an earlier version
        return
    outside, columns = model.novelty(inputs)
    if outside.any():
        names, counts = np.unique(columns[outside].astype(str), return_counts=True)
        most = np.argsort(-counts, kind="stable")[:MAX_NAMES_LISTED]
        listed = ", ".join(f"{quote_cell(names[k])} {counts[k]}" for k in most)
        print(
            f"{outside.sum()} of {len(outside)} rows ({outside.mean():.1%}) are unlike the rows of "
            f"fit, so that predictions there are extrapolated, by column: {listed} (by chance: up "
            f"to {region.false_alarm_rate:.1%} of the rows)",
            file=sys.stderr,
        )


def _predict_batches(
    predicted_columns: Any, model: Any, inputs: DataFrame, exposure: dict[str, Array]
) -> dict[str, Array]:
    """Return the predicted columns of all rows, a batch of rows at a time, with a progress bar."""
    batches = []
    with tqdm(total=len(inputs), unit="row") as bar:
        for start in range(0, max(len(inputs), 1), N_BATCH_ROWS):
            rows = slice(start, start + N_BATCH_ROWS)
            batch_exposure = {name: values[rows] for name, values in exposure.items()}
            batch = inputs.iloc[rows]
            batches.append(predicted_columns(model, batch, **batch_exposure))
            bar.update(len(batch))
    return {
        name: np.concatenate([batch[name] for batch in batches]) for name in batches[0]
    }


def _moments(
    model: Any, inputs: DataFrame, coverage: float | None, exposure: Any = None
) -> dict[str, Array]:
    """Return the mean and standard deviations of the predictions for all rows, by column name.

    `exposure` (N,) are those of counts; by default 1. Unless `coverage` is None, the ends of the
    interval of that coverage are added. Each column is (N,); several outputs have columns such as
    ``mean_0`` and ``mean_1``.
    """
    distribution = model.predict_distribution(inputs, exposure=exposure)
    # Each column is (N,), or (N, K) if the learner has K > 1 outputs
    columns = {name: getattr(distribution, name) for name in MOMENTS}
    if coverage is not None:
        # lower and upper ends of the intervals, (N, 2) or (N, K, 2)
        ends = model.predict_interval(inputs, coverage, exposure=exposure)
        columns["lower"] = ends[..., 0]
        columns["upper"] = ends[..., 1]
    return _split_outputs(columns)


def _split_outputs(columns: dict[str, Array]) -> dict[str, Array]:
    """Return columns (N,) as they are, and of those (N, K) one for each output, ``mean_0`` ..."""
    if columns["mean"].ndim == 1:
        return columns
    return {
        f"{name}_{k}": column
        for name, matrix in columns.items()
        for k, column in enumerate(matrix.T)
    }


def _calibrated(
    model: Any, inputs: DataFrame, coverage: float | None
) -> dict[str, Array]:
    """Return the predictions of a `Conformal` or `Recalibrated` for all rows, by column name.

    Those of `Conformal` are the intervals of its own coverage, or for classes which of them are in
    the set; `Recalibrated` has total standard deviations, and intervals unless `coverage` is None.
    """
    is_conformal = hasattr(model, "bound_")
    if hasattr(model, "classes_"):
        columns = _proba_columns(model.classes_, model.predict_proba(inputs))
        if is_conformal:
            sets = model.predict_set(inputs)
            for k, label in enumerate(model.classes_.tolist()):
                columns[f"in_set_{label}"] = sets[:, k]
        return columns
    if is_conformal:
        columns = {"mean": model.predict(inputs)}
        ends = model.predict_interval(inputs)
    else:
        mean, sd = model.predict(inputs, return_std=True)
        columns = {"mean": mean, "total": sd}
        ends = None if coverage is None else model.predict_interval(inputs, coverage)
    if ends is not None:
        columns |= {"lower": ends[..., 0], "upper": ends[..., 1]}
    return _split_outputs(columns)


def _class_probabilities(model: Any, inputs: DataFrame) -> dict[str, Array]:
    """Return most probable class, class probabilities and uncertainties of all rows, by column.

    The uncertainties are the entropy of the predictive and its epistemic part, in nats.
    """
    distribution = model.predict_distribution(inputs)
    columns = _proba_columns(model.classes_, distribution.proba)
    columns["epistemic"] = distribution.epistemic
    columns["entropy"] = distribution.total
    return columns


def _proba_columns(labels: Array, proba: Array) -> dict[str, Array]:
    """Return the most probable class (N,) and the probabilities (N, C) of all, by column name."""
    columns = {"prediction": labels[np.argmax(proba, axis=1)]}
    for k, label in enumerate(labels.tolist()):
        columns[f"probability_{label}"] = proba[:, k]
    return columns


def _plot(
    model: Any, inputs: DataFrame, label: str, path: str, y: Array | None = None
) -> None:
    """Write a plot of mean and bands over the range of the input, a tenth wider on each side.

    `inputs` has one column; `label` is the label of the axis of y, and `y` (N,) are targets to
    draw, if there are any.
    """
    from ..plots import fits

    x = inputs.to_numpy()
    low = x.min()
    high = x.max()
    margin = 0.1 * (high - low) or 1.0
    grid = np.linspace(low - margin, high + margin, 300)[:, None]
    predicted = model.predict_distribution(type(inputs)(grid, columns=inputs.columns))
    ax = fits.fit(grid, predicted, data=None if y is None else (x, y))
    ax.set(xlabel=inputs.columns[0], ylabel=label)
    save_picture(ax, path)


def _check_plot(names: Sequence[str], has_classes: bool) -> None:
    """Raise TableError, before any work, unless --plot has one input and a target of numbers."""
    if not has_classes and len(names) == 1:
        return
    obstacle = f"there are {list_names(names, MAX_NAMES_LISTED)}"
    if has_classes:
        obstacle = "the target holds classes"
    raise TableError(
        f"--plot draws a number against one input column; {obstacle}. Leave it out, or fit with "
        "--inputs NAME"
    )


FIT_OUTPUT_OPTIONS: Options = {
    "model": {
        "default": "model.npz",
        "metavar": "FILE",
        "help": "File in which the model is stored.",
    },
    "plot": {
        "metavar": "PNG",
        "help": "Picture of the fit, if there is one input column and the target is a number.",
    },
    "pictures": {
        "metavar": "FOLDER",
        "help": "Folder for pictures of the held-out rows: how often intervals hold the target, "
        "the errors, and predictions against the columns that matter most; for classes how often "
        "the most probable class is right.",
    },
}
HELD_OUT_OPTIONS: Options = {
    "held_out": {
        "type": share,
        "metavar": "SHARE",
        "help": "Share of the rows that a first fit does not see, and on which it is measured; 0 "
        "measures nothing, and saves its time. By default 0.2, and at most 1000 rows. If they are "
        "more than a twentieth, the stored model is fitted once more, to all rows.",
    },
}
PREDICT_OPTIONS: Options = {
    "interval": {
        "type": fraction,
        "metavar": "COVERAGE",
        "help": "Add the ends of the interval that holds a new value with this probability, such "
        "as 0.9. Not for classes.",
    },
    "unknown": {
        "choices": ["error", "ignore"],
        "default": "error",
        "help": "What to do with categories that fit has not seen: end with an error, or take them "
        "as none of the known ones, with a warning.",
    },
    "exposure": {
        "metavar": "NAME",
        "help": "Column of the exposure for which events are predicted. By default 1, for which "
        "predictions are rates. Only if fit had an exposure.",
    },
    "drop_missing": {
        "action": "store_true",
        "help": "Leave the prediction empty where a value is missing. By default that is an error.",
    },
}
PREDICT_OUTPUT_OPTIONS: Options = {
    "keep": {
        "nargs": "+",
        "default": [],
        "metavar": "NAME",
        "help": "Columns of DATA to copy beside the predictions, such as an identifier. Cells that "
        "a spreadsheet would compute, such as =A1, get an apostrophe in front.",
    },
    "plot": FIT_OUTPUT_OPTIONS["plot"],
}


def add_parsers(commands: Commands) -> None:
    """Add the parsers of ``bbb-numpy fit`` and ``predict`` to the subcommands."""
    fit_parser = add_command(commands, "fit", fit, "DATA --target NAME [options]")
    add_data_options(fit_parser)
    add_options(
        fit_parser.add_argument_group("the rows that are held out"), HELD_OUT_OPTIONS
    )
    add_model_options(fit_parser)
    add_options(fit_parser.add_argument_group("output"), FIT_OUTPUT_OPTIONS)

    predict_parser = add_command(commands, "predict", predict, "MODEL DATA [options]")
    inputs = predict_parser.add_argument_group("the model and the table")
    inputs.add_argument(
        "model", metavar="MODEL", help="File that bbb-numpy fit has written."
    )
    inputs.add_argument(
        "data",
        metavar="DATA",
        help="Table with the input columns of fit; - is standard input.",
    )
    add_options(inputs, PREDICT_OPTIONS)
    add_reading_options(predict_parser)
    output = predict_parser.add_argument_group("output")
    output.add_argument(
        "--output",
        "-o",
        default="-",
        metavar="FILE",
        help="CSV file to write; - is standard output.",
    )
    add_options(output, PREDICT_OUTPUT_OPTIONS)
