"""The command line: ``bbb-numpy`` or ``python -m bbb_numpy``."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from . import network, plots
from .checkpoint import CheckpointError, load, save
from .experiments import report
from .experiments.regression import SETTINGS
from .gradcheck import BARS, Report, check, format_table
from .gradients import Reparameterised
from .learners import BayesianMLPRegressor
from .likelihoods import GaussianLikelihood
from .model import Model
from .network import ACTIVATIONS, MLP
from .objectives import TERMS
from .optimizers import Adam, Cosine
from .posteriors import MeanField
from .priors import GaussianPrior
from .tables import NumberTable, TableError, read_csv, write_csv
from .training import NonFiniteError
from .version import __version__
from .workspace import Workspace

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand; return 0, 1 when a check fails, 2 on input that cannot be used."""
    args = _parser().parse_args(argv)
    try:
        return int(args.run(args))
    except BrokenPipeError:  # the reader of our output left, as `head` does
        sys.stderr.close()
        return 0
    except KeyboardInterrupt:
        print(f"bbb-numpy {args.command}: interrupted", file=sys.stderr)
        return 130
    except (
        MemoryError,
        ArithmeticError,
        TableError,
        CheckpointError,
        NonFiniteError,
        ValueError,
        OSError,
    ) as error:
        print(f"bbb-numpy {args.command}: {error}", file=sys.stderr)
        return 2


def _report(args: argparse.Namespace) -> int:
    """Train on the report's problems, print what happened, write the figures."""
    results = report.run_all(
        args.problem, args.range, args.setting, seed=args.seed, out=Path(args.out)
    )
    print(report.summarise(results))
    print(f"figures, this text and its numbers are in {args.out}{os.sep}")
    return 0


def _gradcheck(args: argparse.Namespace) -> int:
    """Check every gradient of one architecture, term by term."""
    model = Model(
        MLP(tuple(args.layers), args.activation),
        GaussianPrior(args.prior_scale),
        GaussianLikelihood(args.noise_scale, learn=not args.fixed_noise),
    )
    estimator = Reparameterised(model, MeanField(0.7, args.rho, 1.0))
    rng = np.random.default_rng(args.seed)
    theta = estimator.init(rng)
    noise = estimator.draw(rng, args.samples)
    x = rng.standard_normal((args.batch, args.layers[0]))
    y = rng.standard_normal((args.batch, args.layers[-1]))

    work = Workspace()

    def gates(point: Any) -> Any:
        return network.gates(model.network, estimator.weights(point, noise), x)

    reports: list[tuple[str, Report]] = []
    for method in sorted(BARS, reverse=True) if args.method == "both" else [args.method]:
        for title, objective in TERMS.items():
            term = replace(estimator, objective=objective)
            report = check(
                partial(
                    term.value_and_grad, noise=noise, x=x, y=y, kl_weight=args.kl_weight, work=work
                ),
                theta,
                method=method,
                blocks=estimator.layout.slices,
                coordinate=estimator.coordinate,
                gates=gates,
                most=args.most,
                rng=rng,
            )
            reports.append((title, report))
    print(
        f"layers {'-'.join(map(str, args.layers))}, {args.activation}, "
        f"{model.layout.size} weights, {args.samples} samples, {args.batch} rows, "
        f"KL weight {args.kl_weight:g}\n"
    )
    print(format_table(reports) + "\n")
    for method in BARS:
        found = [report for _, report in reports if report.method == method]
        if found:
            error, skipped = max(r.error for r in found), np.mean([r.skipped for r in found])
            print(
                f"largest {method} error {error:.1e} (bar {BARS[method]:g}), "
                f"{skipped:.1%} of the coordinates skipped at kinks"
            )
            if skipped > 0.02:
                print(
                    f"more than 2% skipped: the {method} check proves little here; trust "
                    "--method complex, which skips none, or use fewer rows"
                )
    failed = [f"{title} ({report.method})" for title, report in reports if not report.passed]
    print(f"FAILED: {', '.join(failed)}" if failed else "every gradient passes")
    return 1 if failed else 0


def _fit(args: argparse.Namespace) -> int:
    """Fit the target column of a CSV file and store the model."""
    _check_outputs([args.data], args.model, args.plot)
    table = read_csv(args.data)
    target = table.numbers([args.target])
    names = args.inputs or [name for name in table.columns if name != args.target]
    if args.target in names:
        raise TableError(f"the target {args.target!r} cannot be one of the inputs")
    if not names:
        raise TableError(f"{table.source} has no column besides the target {args.target!r}")
    _check_plot(args.plot, names)
    inputs = table.numbers(names)
    model = BayesianMLPRegressor(
        tuple(args.hidden),
        activation=args.activation,
        prior=GaussianPrior(args.prior_scale),
        optimizer=Adam(args.learning_rate, schedule=Cosine()),
        epochs=args.epochs,
        batch_size=args.batch_size,
        samples=args.samples,
        random_state=args.seed,
    )
    y = target.values[:, 0]
    model.fit(inputs, y)
    if model.training_.stopped == "interrupted":  # never put half a fit in place of an older file
        print(f"nothing stored in {args.model}", file=sys.stderr)
        return 130
    if not np.isfinite(model.noise_scale_).all():
        raise ValueError("the noise deviation overflowed; lower --learning-rate")
    save(model, args.model)
    density = float(model.log_predictive_density(inputs, y).mean())
    print(f"{len(y)} rows, {len(names)} inputs ({', '.join(names)}), target {args.target}")
    print(f"free energy        {model.history_[-1].objective:12.4f} nats")
    print(f"noise deviation    {model.noise_scale_[0]:12.4f} (units of {args.target})")
    print(f"R^2 on these rows  {model.score(inputs, y):12.4f}")
    print(f"log density        {density:12.4f} nats per row, on these rows")
    print(f"stored in {args.model}")
    if args.plot:
        _plot(model, inputs, (inputs.values, y), (names[0], args.target), args.plot)
        print(f"picture in {args.plot}")
    return 0


def _predict(args: argparse.Namespace) -> int:
    """Predict every row of a CSV file with a stored model."""
    _check_outputs([args.model, args.data], args.output, args.plot)
    model = load(args.model)
    names = getattr(model, "feature_names_in_", None)
    table = read_csv(args.data)
    if names is None:
        raise CheckpointError(
            f"{args.model} was fitted without column names; use it from Python, or fit it with "
            "bbb-numpy fit"
        )
    _check_plot(args.plot, list(names))
    inputs = table.numbers(list(names))
    found = model.predict_distribution(inputs)
    write_csv(
        args.output,
        {
            "mean": found.mean,
            "epistemic": found.epistemic,
            "aleatoric": found.aleatoric,
            "total": found.total,
        },
    )
    if args.plot:
        _plot(model, inputs, None, (names[0], "prediction"), args.plot)
    return 0


def _plot(
    model: BayesianMLPRegressor,
    inputs: NumberTable,
    data: tuple[Any, Any] | None,
    labels: tuple[str, str],
    path: str,
) -> None:
    """Draw mean and bands over the range of the one input column, a tenth wider on each side."""
    low, high = inputs.values.min(), inputs.values.max()
    margin = 0.1 * (high - low) or 1.0
    grid = np.linspace(low - margin, high + margin, 300)[:, None]
    ax = plots.fit(grid, model.predict_distribution(NumberTable(inputs.columns, grid)), data=data)
    ax.set_xlabel(labels[0])
    ax.set_ylabel(labels[1])
    figure = ax.get_figure(root=True)
    if figure is not None:
        figure.savefig(path, dpi=150)


def _check_outputs(inputs: Sequence[str], *outputs: str | None) -> None:
    """Refuse outputs that cannot be written, or would replace an input, before any work."""
    taken = {Path(path).resolve() for path in inputs if path != "-"}
    for path in outputs:
        if not path or path == "-":
            continue
        place = Path(path).resolve()
        if not place.parent.is_dir():
            raise TableError(f"the folder of {path} does not exist; make it first")
        if place.exists() and not place.is_file():
            raise TableError(f"{path} is no regular file; name a file to write")
        if place in taken:
            raise TableError(f"{path} would replace another file of this command; name another")
        taken.add(place)


def _check_plot(path: str | None, names: Sequence[str]) -> None:
    """Refuse a picture that cannot be drawn before any work is done."""
    if path and len(names) != 1:
        raise TableError(
            f"--plot draws one input column; there are {len(names)} ({', '.join(names)}). "
            "Leave it out, or fit with one column: --inputs NAME"
        )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="bbb-numpy",
        description="Bayes by Backprop in NumPy, every gradient derived by hand and checked.",
    )
    parser.add_argument("--version", action="version", version=f"bbb-numpy {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(name: str, run: Callable[[argparse.Namespace], int]) -> argparse.ArgumentParser:
        text = (run.__doc__ or "").strip()
        sub = commands.add_parser(
            name,
            help=text[0].lower() + text[1:].rstrip("."),
            description=text,
            formatter_class=argparse.ArgumentDefaultsHelpFormatter,
        )
        sub.set_defaults(run=run)
        return sub

    experiments = command("report", _report)
    experiments.add_argument(
        "--problem", type=int, choices=[1, 2], help="1: Blundell's curve, 2: the cubic (both)"
    )
    experiments.add_argument(
        "--range", type=float, choices=[4.0, 2.5, 1.0, 0.5], help="half-width of problem 2 (all)"
    )
    experiments.add_argument(
        "--setting", choices=list(SETTINGS), help="as the report prints it, or mended (both)"
    )
    experiments.add_argument("--seed", type=int, default=0)
    experiments.add_argument("--out", default="report", help="folder to write to")

    check = command("gradcheck", _gradcheck)
    check.add_argument(
        "--layers", type=_whole, nargs="+", default=[3, 7, 5, 2], help="d_in, hidden widths, K"
    )
    check.add_argument("--samples", type=_whole, default=4, help="weight samples S")
    check.add_argument("--batch", type=_whole, default=6, help="rows B")
    check.add_argument("--activation", choices=ACTIVATIONS, default="relu")
    check.add_argument("--prior-scale", type=_positive, default=1.0)
    check.add_argument("--noise-scale", type=_positive, default=0.5)
    check.add_argument("--fixed-noise", action="store_true", help="do not learn the noise")
    check.add_argument("--rho", type=float, default=-1.0, help="centre of rho; it spreads by 1")
    check.add_argument("--kl-weight", type=_positive, default=0.25, help="pi_i of the minibatch")
    check.add_argument("--method", choices=["both", *sorted(BARS)], default="both")
    check.add_argument("--most", type=_whole, default=100, help="coordinates per block at most")
    check.add_argument("--seed", type=int, default=0)

    fit = command("fit", _fit)
    fit.add_argument("data", help="CSV file with a header line; - for standard input")
    fit.add_argument("--target", required=True, help="name of the column to predict")
    fit.add_argument("--inputs", nargs="+", help="names of the input columns (default: all others)")
    fit.add_argument("--model", default="model.npz", help="where to store the model")
    fit.add_argument("--hidden", type=_whole, nargs="*", default=[50], help="hidden widths")
    fit.add_argument("--activation", choices=ACTIVATIONS, default="relu")
    fit.add_argument("--epochs", type=_whole, default=500)
    fit.add_argument("--batch-size", type=_whole, default=32)
    fit.add_argument("--samples", type=_whole, default=1, help="weight samples per step")
    fit.add_argument("--learning-rate", type=_positive, default=1e-2)
    fit.add_argument("--prior-scale", type=_positive, default=1.0)
    fit.add_argument("--seed", type=int, default=0)
    fit.add_argument("--plot", metavar="PNG", help="picture of the fit, for one input column")

    predict = command("predict", _predict)
    predict.add_argument("model", help="file written by bbb-numpy fit")
    predict.add_argument("data", help="CSV file with the input columns; - for standard input")
    predict.add_argument("--output", "-o", default="-", help="CSV to write; - for standard output")
    predict.add_argument("--plot", metavar="PNG", help="picture, for one input column")
    return parser


def _whole(text: str) -> int:
    value = int(text) if text.strip().isdigit() else 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number >= 1; got {text!r}")
    return value


def _positive(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not 0.0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"must be a positive number; got {text!r}")
    return value


if __name__ == "__main__":
    sys.exit(main())
