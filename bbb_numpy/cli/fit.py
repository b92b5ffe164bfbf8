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

from ..evaluation.convergence import GOOD, convergence
from ..learners.columns import Column, encoded, pick, some
from ..model.objectives import FreeEnergy
from ..numeric.files import atomic_write, write_text
from .modelling import add_model_options, learner
from .options import Commands, add_command, share
from .outputs import check_outputs, check_picture
from .problem import (
    Problem,
    add_data_options,
    add_reading_options,
    complete,
    places_of,
    read,
    read_problem,
    with_numbers,
)
from .tables import TableError, csv_text

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["add_parsers", "fit", "interrupted", "predict", "save_picture"]

Array = NDArray[Any]
MOMENTS = ("mean", "epistemic", "aleatoric", "total")


def fit(args: argparse.Namespace) -> int:
    """Fit the target column of a table and store the model."""
    from ..learners.checkpoint import save

    check_outputs([args.data], args.model, args.plot)
    check_picture(args.plot)
    problem = read_problem(args)
    model, inputs = learner(args, problem.task), problem.inputs
    if args.plot:
        _check_plot(list(inputs.columns), problem.task == "classification")
    with places_of(inputs, args.target):
        model.fit(inputs, problem.y)
    model.columns_ = problem.columns
    if interrupted(model):
        return _store_unfinished(model, Path(args.model))
    noise = getattr(model, "noise_scale_", None)  # not where it depends on the inputs
    if noise is not None and not np.isfinite(noise).all():
        raise ValueError(
            "the standard deviation of the noise overflowed; lower --learning-rate"
        )
    save(model, args.model)
    print(problem.summary())
    _print_fit(args, model, inputs, problem)
    print(f"stored in {args.model}")
    if args.plot:
        _plot(model, inputs, args.target, args.plot, problem.y)
        print(f"picture in {args.plot}")
    return 0


def _store_unfinished(model: Any, path: Path) -> int:
    """Store what Ctrl-C has left of a fit, never in place of an older file; return 130."""
    from ..learners.checkpoint import save

    if not model.n_iter_:
        print(f"no epoch was finished; nothing is stored in {path}", file=sys.stderr)
        return 130
    beside, why = path, ""
    if path.exists():
        beside, why = (
            path.with_stem(f"{path.stem}-unfinished"),
            f"; {path} is as it was",
        )
    save(model, beside)
    print(f"the unfinished fit is stored in {beside}{why}", file=sys.stderr)
    return 130


def interrupted(model: Any) -> bool:
    """Whether Ctrl-C has ended the fit of a learner, which says so and goes on."""
    draws = getattr(model, "draws_", None)
    return bool(
        not draws.finished if draws else model.training_.stopped == "interrupted"
    )


def _print_fit(
    args: argparse.Namespace, model: Any, inputs: DataFrame, problem: Problem
) -> None:
    """Print what the fit found, and how it does on its own rows."""

    def line(label: str, value: float, unit: str) -> None:
        print(f"{label:<18} {value:12.6g} {unit}".rstrip())

    y, draws = problem.y, getattr(model, "draws_", None)
    if draws:
        print(f"posterior          {draws.summary()}")
        try:
            for one in _convergence(draws):
                if one.name.startswith("E[y|x]"):
                    line(
                        "R-hat of means",
                        one.r_hat,
                        f"(the largest; wanted is < {GOOD:g})",
                    )
        except (ImportError, ValueError) as error:
            print(f"R-hat of means     not measured: {error}")
    else:
        elbo = getattr(model.estimator_, "objective", None) == FreeEnergy()
        cost = (
            "free energy" if elbo else f"{args.objective or args.inference} (minimised)"
        )
        line(cost, model.history_[-1].objective, "nats")
    noise = getattr(model, "noise_scale_", None)  # not where it depends on the inputs
    if noise is not None:
        name = model.estimator_.model.likelihood.noise_name
        line(name, noise[0], f"(units of {args.target})")
    if problem.task == "classification":
        line("accuracy", model.score(inputs, y), "on these rows")
        print(f"classes            {', '.join(map(str, model.classes_[:20]))}")
    elif len(y) > 1:
        line("R^2 on these rows", model.score(inputs, y), "")
    density = model.log_predictive_density(inputs, y).mean()
    line("log density", density, "nats per row, on these rows")


def _convergence(draws: Any) -> Sequence[Any]:
    """Return what `convergence` says of predictions, of short runs without its warnings."""
    with warnings.catch_warnings():  # R-hat says enough
        warnings.simplefilter("ignore")
        return convergence(draws, weights=False).lines


def predict(args: argparse.Namespace) -> int:
    """Predict every row of a table with a stored model."""
    from ..learners.checkpoint import load

    check_outputs([args.model, args.data], args.output, args.plot)
    check_picture(args.plot)
    model = load(args.model)
    names = getattr(model, "feature_names_in_", None)
    if names is None:  # of a learner that was fitted to an array in Python
        raise TableError(
            f"{args.model} was fitted without column names; use it from Python, or fit it with "
            "bbb-numpy fit"
        )
    columns = getattr(model, "columns_", tuple(Column(name) for name in names))
    classes = hasattr(model, "classes_")
    if classes and args.interval is not None:
        raise ValueError(
            f"{args.model} predicts classes, which have probabilities and no interval; leave "
            "--interval out"
        )
    if args.plot:
        _check_plot(list(names), classes)
    table = read(args)
    kept = type(table)({name: pick(table, name) for name in args.keep}, table.index)
    rows = complete(table, [one.name for one in columns], args)
    inputs = encoded(with_numbers(rows, columns, args), columns, args.unknown)
    predicted: Any = _classes if classes else partial(_moments, coverage=args.interval)
    for name in predicted(model, inputs[:1]) if args.keep else ():
        if name in args.keep:
            raise TableError(
                f"--keep {name}: the predictions have a column of that name; rename it in "
                f"{table.attrs['source']}"
            )
    with places_of(inputs):
        found = predicted(model, inputs)
    # a whole number beside a gap stays one
    made = type(table)(found, rows.index).astype(object)
    text = csv_text(kept.join(made))
    if args.output == "-":
        print(text, end="", flush=True)
    else:
        write_text(Path(args.output), text)
    if args.plot:
        _plot(model, inputs, "prediction", args.plot)
    return 0


def _moments(model: Any, inputs: DataFrame, coverage: float | None) -> dict[str, Array]:
    """Return mean and standard deviations, and the ends of the interval if it is asked for."""
    found = model.predict_distribution(inputs)
    columns = {name: getattr(found, name) for name in MOMENTS}  # (N,) or (N, K) each
    if coverage is not None:
        ends = model.predict_interval(inputs, coverage)  # (N, 2) or (N, K, 2)
        columns |= {"lower": ends[..., 0], "upper": ends[..., 1]}
    if columns["mean"].ndim == 1:
        return columns
    return {
        f"{name}_{k}": one
        for name, every in columns.items()
        for k, one in enumerate(every.T)
    }


def _classes(model: Any, inputs: DataFrame) -> dict[str, Array]:
    """Return the most probable class, the probability of each, and what more data would tell."""
    found = model.predict_distribution(inputs)
    columns = {"prediction": model.classes_[np.argmax(found.proba, axis=1)]}
    for place, label in enumerate(model.classes_.tolist()):
        columns[f"probability_{label}"] = found.proba[:, place]
    return {**columns, "epistemic": found.epistemic, "entropy": found.total}


def _plot(
    model: Any, inputs: DataFrame, label: str, path: str, y: Array | None = None
) -> None:
    """Draw mean and bands over the range of the one input column, a tenth wider on each side."""
    from ..plots import fits

    column = inputs.to_numpy()
    low, high = column.min(), column.max()
    margin = 0.1 * (high - low) or 1.0
    grid = np.linspace(low - margin, high + margin, 300)[:, None]
    predicted = model.predict_distribution(type(inputs)(grid, columns=inputs.columns))
    ax = fits.fit(grid, predicted, data=None if y is None else (column, y))
    ax.set(xlabel=inputs.columns[0], ylabel=label)
    save_picture(ax, path)


def save_picture(ax: Any, path: str) -> None:
    """Write the picture of some Axes, replacing an older one only when all is written."""
    with atomic_write(Path(path)) as file:
        ax.get_figure(root=True).savefig(file, dpi=150, format=Path(path).suffix[1:])


def _check_plot(names: Sequence[str], classes: bool) -> None:
    """Refuse a picture that cannot be drawn before any work is done."""
    if classes or len(names) != 1:
        found = (
            "the target holds classes" if classes else f"there are {some(names, 20)}"
        )
        raise TableError(
            f"--plot draws a number against one input column; {found}. Leave it out, or fit with "
            "--inputs NAME"
        )


def add_parsers(commands: Commands) -> None:
    """Add the subcommands fit and predict."""
    fitting = add_command(commands, "fit", fit, "DATA --target NAME [options]")
    add_data_options(fitting)
    fitting.add_argument(
        "--model", default="model.npz", help="where to store the model"
    )
    fitting.add_argument(
        "--plot", metavar="PNG", help="picture of the fit, for one input column"
    )
    add_model_options(fitting)

    predicting = add_command(commands, "predict", predict, "MODEL DATA [options]")
    predicting.add_argument("model", help="file written by bbb-numpy fit")
    predicting.add_argument(
        "data", help="table with the input columns; - for standard input"
    )
    text = "CSV to write; - for standard output"
    predicting.add_argument("--output", "-o", default="-", help=text)
    text = "columns to copy, such as an id; an apostrophe keeps spreadsheets from computing =A1"
    predicting.add_argument("--keep", nargs="+", default=[], metavar="NAME", help=text)
    text = "add the ends of the interval that holds a new value with this probability, e.g. 0.9"
    predicting.add_argument("--interval", type=share, metavar="COVERAGE", help=text)
    text = "what becomes of categories that fit has not seen: refused, or taken as none of them"
    predicting.add_argument(
        "--unknown", choices=["error", "ignore"], default="error", help=text
    )
    text = "leave the prediction empty where a value is missing; without, such rows are refused"
    predicting.add_argument("--drop-missing", action="store_true", help=text)
    predicting.add_argument(
        "--plot", metavar="PNG", help="picture, for one input column"
    )
    add_reading_options(predicting)
