"""``bbb-numpy fit`` and ``predict``: from a table to a model, from both to predictions."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..evaluation.convergence import MIXED_R_HAT, convergence
from ..learners.columns import Column, encode_columns, get_column, list_names
from ..model.objectives import FreeEnergy
from ..numeric.files import atomic_write, write_text
from .modelling import add_model_options, build_learner
from .options import Commands, Options, add_command, add_options, fraction
from .outputs import check_outputs
from .problem import (
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

__all__ = ["add_parsers", "fit", "predict", "save_picture", "was_interrupted"]

Array = NDArray[Any]
MOMENTS = ("mean", "epistemic", "aleatoric", "total")
INTERRUPTED_STATUS = 130  # exit status after Ctrl-C, by the convention of shells
MAX_CLASSES_PRINTED = 20


def fit(args: argparse.Namespace) -> int:
    """Fit the target column of a table and store the model."""
    from ..learners.checkpoint import save

    check_outputs([args.data], args.model, picture=args.plot)
    problem = read_problem(args)
    inputs = problem.inputs
    model = build_learner(args, problem.task)
    if args.plot:
        _check_plot(list(inputs.columns), problem.task == "classification")
    with lines_in_errors(inputs, args.target):
        model.fit(inputs, problem.y, **problem.fit_arguments())
    model.columns_ = problem.columns
    if was_interrupted(model):
        return _store_unfinished(model, Path(args.model))
    noise_scale = getattr(model, "noise_scale_", None)
    if noise_scale is not None and not np.isfinite(noise_scale).all():
        raise ValueError(
            "the standard deviation of the noise overflowed; lower --learning-rate"
        )
    save(model, args.model)
    print(problem.summary())
    _print_fit(args, model, inputs, problem)
    print(f"stored in {args.model}")
    if args.plot:
        rates = problem.y
        if problem.exposure is not None:
            rates = rates / problem.exposure
        _plot(model, inputs, args.target, args.plot, rates)
        print(f"picture in {args.plot}")
    return 0


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
    args: argparse.Namespace, model: Any, inputs: DataFrame, problem: Problem
) -> None:
    """Print the result of a fit, and how well it predicts the rows that it was fitted to."""
    y = problem.y
    exposure = problem.fit_arguments()
    draws = getattr(model, "draws_", None)
    if draws:
        print(f"posterior          {draws.summary()}")
        try:
            for line in _convergence_lines(draws):
                if line.name.startswith("E[y|x]"):
                    unit = f"(the largest; wanted is < {MIXED_R_HAT:g})"
                    _print_line("R-hat of means", line.r_hat, unit)
        except (ImportError, ValueError) as error:
            print(f"R-hat of means     not measured: {error}")
    else:
        label = "free energy"
        if getattr(model.estimator_, "objective", None) != FreeEnergy():
            label = f"{args.objective or args.inference} (minimised)"
        _print_line(label, model.history_[-1].objective, "nats")
    # A learner whose noise depends on the inputs has no attribute `noise_scale_`
    noise_scale = getattr(model, "noise_scale_", None)
    if noise_scale is not None:
        label = model.estimator_.model.likelihood.noise_name
        unit = model.fitted_.units.noise_unit
        _print_line(label, noise_scale[0], f"({unit.format(args.target)})")
    if problem.task == "classification":
        _print_line("accuracy", model.score(inputs, y), "on these rows")
        classes = ", ".join(map(str, model.classes_[:MAX_CLASSES_PRINTED]))
        print(f"classes            {classes}")
    elif len(y) > 1:
        _print_line("R^2 on these rows", model.score(inputs, y, **exposure), "")
    density = model.log_predictive_density(inputs, y, **exposure).mean()
    _print_line("log density", density, "nats per row, on these rows")


def _print_line(label: str, value: float, unit: str) -> None:
    """Print a label, a number with up to six digits, and its unit, aligned in columns."""
    print(f"{label:<18} {value:12.6g} {unit}".rstrip())


def _convergence_lines(draws: Any) -> Sequence[Any]:
    """Return the lines of the convergence report about predictions; no warning of short runs."""
    with warnings.catch_warnings():  # R-hat itself shows a run that is too short
        warnings.simplefilter("ignore")
        return convergence(draws, weights=False).lines


def predict(args: argparse.Namespace) -> int:
    """Predict every row of a table with a stored model."""
    from ..learners.checkpoint import load

    check_outputs([args.model, args.data], args.output, picture=args.plot)
    if args.data.endswith(".npz") and not args.model.endswith(".npz"):
        raise ValueError(
            f"MODEL must come before DATA: bbb-numpy predict {args.data} {args.model}"
        )
    model = load(args.model)
    names = getattr(model, "feature_names_in_", None)
    if names is None:  # the learner was fitted to an array, in Python
        raise TableError(
            f"{args.model} was fitted without column names; use it from Python, or fit it with "
            "bbb-numpy fit"
        )
    columns = getattr(model, "columns_", tuple(Column(name) for name in names))
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
    if is_classifier:
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
        predictions = predicted_columns(model, inputs, **exposure)
    # dtype object keeps whole numbers whole in columns that also have cells without prediction
    predicted = type(table)(predictions, rows.index).astype(object)
    text = csv_text(type(table)(copied, table.index).join(predicted))
    if args.output == "-":
        print(text, end="", flush=True)
    else:
        write_text(Path(args.output), text)
    if args.plot:
        _plot(model, inputs, "prediction", args.plot)
    return 0


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
    if columns["mean"].ndim == 1:
        return columns
    return {
        f"{name}_{k}": column
        for name, matrix in columns.items()
        for k, column in enumerate(matrix.T)
    }


def _class_probabilities(model: Any, inputs: DataFrame) -> dict[str, Array]:
    """Return most probable class, class probabilities and uncertainties of all rows, by column.

    The uncertainties are the entropy of the predictive and its epistemic part, in nats.
    """
    distribution = model.predict_distribution(inputs)
    proba = distribution.proba
    columns = {"prediction": model.classes_[np.argmax(proba, axis=1)]}
    for k, label in enumerate(model.classes_.tolist()):
        columns[f"probability_{label}"] = proba[:, k]
    columns["epistemic"] = distribution.epistemic
    columns["entropy"] = distribution.total
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


def save_picture(ax: Any, path: str) -> None:
    """Write the figure of an Axes to a file, which is replaced only once the new one is complete.

    Parameters
    ----------
    ax : matplotlib Axes
        Axes of the figure.
    path : str
        The file; its ending names the format.
    """
    with atomic_write(Path(path)) as file:
        ax.get_figure(root=True).savefig(file, dpi=150, format=Path(path).suffix[1:])


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
