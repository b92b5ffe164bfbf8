"""``bbb-numpy fit`` and ``predict``: from CSV file to model to CSV file."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.backend_bases import FigureCanvasBase

from ..evaluation.convergence import GOOD, convergence
from ..gradients.catalogue import ESTIMATORS, LIKELIHOODS, OBJECTIVES, PRIORS
from ..learners.inference import INFERENCES, SAMPLED, Sampling
from ..model.objectives import FreeEnergy
from ..parts.network import ACTIVATIONS
from ..parts.priors import GaussianPrior
from ..plots import fits
from ..sampling.draws import Draws
from ..sampling.run import METRICS
from ..training.optimizers import Adam, Cosine
from .csv_tables import TableError, read_csv, write_csv
from .options import Commands, above_zero, add_command, at_least_one, at_least_zero

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["add_parsers", "fit", "predict"]

TRAINING = {"epochs": 1000, "batch_size": 32, "samples": 1, "learning_rate": 1e-2}
SAMPLING = ("chains", "draws", "warm_up", "thin", "metric", "target_accept", "checkpoint")
PARTS = ("estimator", "objective")
NUMBERS = {name: one for name, one in LIKELIHOODS.items() if one.target_kind != "class"}


def fit(args: argparse.Namespace) -> int:
    """Fit the target column of a CSV file and store the model."""
    from ..learners.checkpoint import save
    from ..learners.regressor import BayesianMLPRegressor

    _check_outputs([args.data], args.model, args.plot)
    table = read_csv(args.data)
    try:
        target = table.numbers([args.target])
    except TableError as error:
        raise TableError(
            f"the target must be a column of numbers: {error}. For classes use "
            "BayesianMLPClassifier from Python"
        ) from None
    names = args.inputs or [name for name in table.columns if name != args.target]
    if args.target in names:
        raise TableError(f"the target {args.target!r} cannot be one of the inputs")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise TableError(f"--inputs names {', '.join(twice)} more than once; name each column once")
    if not names:
        raise TableError(f"{table.source} has no column besides the target {args.target!r}")
    _check_plot(args.plot, names, "Leave it out, or fit with one column: --inputs NAME")
    if args.prior and args.prior_scale is not None:
        raise ValueError("--prior and --prior-scale exclude each other; leave one out")
    inference = _inference(args)
    given = {name: getattr(args, name) for name in TRAINING}
    train: dict[str, Any]
    train = {name: TRAINING[name] if value is None else value for name, value in given.items()}
    rate = train.pop("learning_rate")
    optimizer = None if isinstance(inference, Sampling) else Adam(rate, schedule=Cosine())
    inputs = table.numbers(names)
    model = BayesianMLPRegressor(
        tuple(args.hidden),
        activation=args.activation,
        prior=args.prior if args.prior_scale is None else GaussianPrior(args.prior_scale),
        likelihood=args.likelihood,
        inference=inference,
        estimator=args.estimator,
        objective=args.objective,
        optimizer=optimizer,
        **train,
        random_state=args.seed,
    )
    y = target[args.target].to_numpy()
    model.fit(inputs, y)
    draws = getattr(model, "draws_", None)
    whole = draws.finished if draws else model.training_.stopped != "interrupted"
    if not whole:  # never put half a fit in place of an older file
        print(f"nothing stored in {args.model}", file=sys.stderr)
        return 130
    noise = getattr(model, "noise_scale_", None)  # not where it depends on the inputs
    if noise is not None and not np.isfinite(noise).all():
        raise ValueError("the noise deviation overflowed; lower --learning-rate")
    save(model, args.model)
    density = float(model.log_predictive_density(inputs, y).mean())
    print(f"{len(y)} rows, {len(names)} inputs ({', '.join(names)}), target {args.target}")
    if draws:
        print(f"posterior          {draws.summary()}")
        _print_convergence(draws)
    else:
        elbo = getattr(model.estimator_, "objective", None) == FreeEnergy()
        cost = "free energy" if elbo else f"{args.objective or args.inference} (minimised)"
        print(f"{cost:<18} {model.history_[-1].objective:12.4f} nats")
    if noise is not None:
        form = "12.4f" if noise[0] < 1e6 else "12.4g"
        heavy = model.estimator_.model.likelihood.heavy_tails
        label = "noise scale" if heavy else "noise deviation"
        print(f"{label:<18} {noise[0]:{form}} (units of {args.target})")
    if len(y) > 1:
        print(f"R^2 on these rows  {model.score(inputs, y):12.4f}")
    print(f"log density        {density:12.4f} nats per row, on these rows")
    print(f"stored in {args.model}")
    if args.plot:
        _plot(model, inputs, (inputs.to_numpy(), y), (names[0], args.target), args.plot)
        print(f"picture in {args.plot}")
    return 0


def _print_convergence(draws: Draws) -> None:
    """Print the largest R-hat of the fitted means: with ArviZ, and where it has a meaning."""
    try:
        with warnings.catch_warnings():  # of short runs, about which R-hat says enough
            warnings.simplefilter("ignore")
            lines = convergence(draws, weights=False).lines
    except (ImportError, ValueError):  # no ArviZ; one chain, or too few draws
        return
    for line in lines:
        if line.name.startswith("E[y|x]"):
            print(f"R-hat of means     {line.r_hat:12.4f} (the largest; wanted is < {GOOD:g})")


def _inference(args: argparse.Namespace) -> str | Sampling:
    """Return the learner's `inference`, with the settings of a sampler."""
    settings = {name: getattr(args, name) for name in SAMPLING if getattr(args, name) is not None}
    if args.inference not in SAMPLED:
        if settings:
            raise ValueError(
                f"{_options(settings)} belong to a sampler: add --inference nuts or hmc, or leave "
                "them out"
            )
        return str(args.inference)
    unused = [name for name in (*TRAINING, *PARTS) if getattr(args, name) is not None]
    if unused:
        raise ValueError(
            f"--inference {args.inference} draws from the posterior and trains nothing; leave "
            f"{_options(unused)} out"
        )
    return Sampling(args.inference, **settings)


def _options(names: Iterable[str]) -> str:
    return ", ".join(f"--{name.replace('_', '-')}" for name in names)


def predict(args: argparse.Namespace) -> int:
    """Predict every row of a CSV file with a stored model."""
    from ..learners.checkpoint import CheckpointError, load
    from ..learners.regressor import BayesianMLPRegressor

    _check_outputs([args.model, args.data], args.output, args.plot)
    model = load(args.model)
    if not isinstance(model, BayesianMLPRegressor):
        raise CheckpointError(f"{args.model} holds a {type(model).__name__}; use it from Python")
    names = getattr(model, "feature_names_in_", None)
    table = read_csv(args.data)
    if names is None:
        raise CheckpointError(
            f"{args.model} was fitted without column names; use it from Python, or fit it with "
            "bbb-numpy fit"
        )
    _check_plot(args.plot, list(names), "Leave it out, or fit a model with one column")
    inputs = table.numbers(list(names))
    found = model.predict_distribution(inputs)
    columns: dict[str, Any] = {}
    for name in ("mean", "epistemic", "aleatoric", "total"):
        values = getattr(found, name)  # (N,) or (N, K)
        each = (
            {name: values}
            if values.ndim == 1
            else {f"{name}_{k}": values[:, k] for k in range(values.shape[1])}
        )
        columns |= each
    write_csv(args.output, columns)
    if args.plot:
        _plot(model, inputs, None, (names[0], "prediction"), args.plot)
    return 0


def _plot(
    model: Any,  # BayesianMLPRegressor
    inputs: DataFrame,
    data: tuple[Any, Any] | None,
    labels: tuple[str, str],
    path: str,
) -> None:
    """Draw mean and bands over the range of the one input column, a tenth wider on each side."""
    column = inputs.to_numpy()
    low, high = column.min(), column.max()
    margin = 0.1 * (high - low) or 1.0
    grid = np.linspace(low - margin, high + margin, 300)[:, None]
    wide = type(inputs)(grid, columns=inputs.columns)
    ax = fits.fit(grid, model.predict_distribution(wide), data=data)
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


def _check_plot(path: str | None, names: Sequence[str], advice: str) -> None:
    """Refuse a picture that cannot be drawn before any work is done."""
    if path and len(names) != 1:
        raise TableError(
            f"--plot draws one input column; there are {len(names)} ({', '.join(names)}). {advice}"
        )
    kinds = FigureCanvasBase.get_supported_filetypes()
    if path and Path(path).suffix.lstrip(".").lower() not in kinds:
        raise TableError(f"--plot {path}: the ending must be one of {', '.join(sorted(kinds))}")


def add_parsers(commands: Commands) -> None:
    """Add the subcommands fit and predict."""
    fitting = add_command(commands, "fit", fit)
    fitting.add_argument("data", help="CSV file with a header line; - for standard input")
    fitting.add_argument("--target", required=True, help="name of the column to predict")
    fitting.add_argument(
        "--inputs", nargs="+", help="names of the input columns (default: all others)"
    )
    fitting.add_argument("--model", default="model.npz", help="where to store the model")
    fitting.add_argument(
        "--hidden", type=at_least_one, nargs="*", default=[20], help="hidden widths"
    )
    fitting.add_argument("--activation", choices=ACTIVATIONS, default="relu")
    fitting.add_argument("--epochs", type=at_least_one, help="(1000)")
    fitting.add_argument("--batch-size", type=at_least_one, help="(32)")
    fitting.add_argument("--samples", type=at_least_one, help="weight samples per step (1)")
    fitting.add_argument("--learning-rate", type=above_zero, help="(0.01)")
    fitting.add_argument(
        "--inference",
        choices=list(INFERENCES),
        default="mean-field",
        help="trained, or sampled: hmc, nuts (mean-field)",
    )
    fitting.add_argument("--chains", type=at_least_one, help="of hmc and nuts, side by side (4)")
    fitting.add_argument(
        "--draws", type=at_least_one, help="of hmc and nuts, to keep of each chain (500)"
    )
    fitting.add_argument(
        "--warm-up", type=at_least_zero, help="of hmc and nuts, draws before those (500)"
    )
    fitting.add_argument(
        "--thin", type=at_least_one, help="of hmc and nuts, steps per kept draw (1)"
    )
    fitting.add_argument("--metric", choices=METRICS, help="of hmc and nuts (diagonal)")
    fitting.add_argument("--target-accept", type=above_zero, help="of hmc and nuts, < 1 (0.8)")
    fitting.add_argument("--checkpoint", help="of hmc and nuts, folder from which to go on")
    fitting.add_argument("--prior-scale", type=above_zero, help="of a Gaussian prior (0.5)")
    for name, table in (
        ("prior", PRIORS),
        ("likelihood", NUMBERS),
        ("estimator", ESTIMATORS),
        ("objective", OBJECTIVES),
    ):
        fitting.add_argument(f"--{name}", choices=list(table), help="(that of the Python class)")
    fitting.add_argument("--seed", type=at_least_zero, default=0)
    fitting.add_argument("--plot", metavar="PNG", help="picture of the fit, for one input column")

    predicting = add_command(commands, "predict", predict)
    predicting.add_argument("model", help="file written by bbb-numpy fit")
    predicting.add_argument("data", help="CSV file with the input columns; - for standard input")
    predicting.add_argument(
        "--output", "-o", default="-", help="CSV to write; - for standard output"
    )
    predicting.add_argument("--plot", metavar="PNG", help="picture, for one input column")
