"""The command line: ``bbb-numpy`` or ``python -m bbb_numpy``."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from .cli import fit as fitting
from .cli import gradcheck as checking
from .cli import reproduce as repeating
from .cli import uci as benchmarking
from .gradcheck import BARS
from .gradients.catalogue import ESTIMATORS, LIKELIHOODS, OBJECTIVES, POSTERIORS, PRIORS
from .learners.inference import INFERENCES
from .numeric.arguments import positive, whole
from .parts.network import ACTIVATIONS
from .sampling.run import METRICS
from .studies.kebude.regression import SETTINGS
from .uci.trials import METHODS, SETS
from .version import __version__

__all__ = ["main"]

REAL = ("gaussian", "gaussian-learned", "heteroscedastic", "poisson")  # for a column of numbers


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand; return 0, 1 when a check fails, 2 on input that cannot be used."""
    args = _parser().parse_args(argv)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            return int(args.run(args))
    except BrokenPipeError:  # the reader of our output left, as `head` does
        sys.stderr.close()
        return 0
    except KeyboardInterrupt:
        print(f"bbb-numpy {args.command}: interrupted", file=sys.stderr)
        return 130
    except (MemoryError, ArithmeticError, ValueError, OSError, UserWarning) as error:
        print(f"bbb-numpy {args.command}: {error}", file=sys.stderr)
        return 2


def _show_warning(message: Warning | str, *rest: Any, **more: Any) -> None:
    """Print a warning as one line, without the source line that raised it."""
    print(f"bbb-numpy: warning: {message}", file=sys.stderr)


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
            formatter_class=_Help,
        )
        sub.set_defaults(run=run)
        return sub

    experiments = command("report", repeating.report)
    experiments.add_argument(
        "--problem", type=int, choices=[1, 2], help="1: Blundell's curve, 2: the cubic (both)"
    )
    experiments.add_argument(
        "--range",
        type=float,
        choices=[4.0, 2.5, 1.0, 0.5],
        help="where the data end: 0.5 for problem 1, the others for problem 2 (all)",
    )
    experiments.add_argument(
        "--setting", choices=list(SETTINGS), help="as the report prints it, or mended (both)"
    )
    experiments.add_argument("--seed", type=_seed, default=0)
    experiments.add_argument("--out", default="report", help="folder to write to")

    again = command("reproduce", repeating.reproduce)
    listed = "; ".join(f"{name}: {what}" for name, (_, what) in repeating.EXPERIMENTS.items())
    again.add_argument("experiment", choices=list(repeating.EXPERIMENTS), help=listed)
    again.add_argument("--seed", type=_seed, default=0)
    again.add_argument("--out", help="folder to write to (reproduced/EXPERIMENT)")

    bench = command("uci", benchmarking.uci)
    bench.add_argument(
        "--data", nargs="+", choices=SETS, metavar="SET", help=f"{', '.join(SETS)} (all)"
    )
    bench.add_argument(
        "--method",
        nargs="+",
        choices=list(METHODS),
        metavar="METHOD",
        help=f"{', '.join(METHODS)} (all)",
    )
    bench.add_argument(
        "--splits",
        type=_whole,
        default=20,
        help="of each set; up to 20 those published, of which protein has 5; beyond, the same "
        "recipe goes on",
    )
    bench.add_argument("--jobs", type=_whole, help="worker processes (one for each usable CPU)")
    bench.add_argument("--out", default="uci", help="folder of records, tables and pictures")
    bench.add_argument(
        "--scheduler", metavar="ADDRESS", help="of a dask.distributed cluster, tcp://HOST:PORT"
    )
    bench.add_argument("--units", type=_whole, help="hidden units (50; protein 100)")
    bench.add_argument("--seed", type=_seed, default=0)
    bench.add_argument("--quick", action="store_true", help="try it: short runs, useless numbers")
    bench.add_argument(
        "--retry-failed", action="store_true", help="run trials again that are recorded as failed"
    )
    bench.add_argument(
        "--resume",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="go on from what is recorded; without, earlier records are set aside",
    )
    bench.add_argument(
        "--progress",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="show what is done and the time left (to a person)",
    )

    check = command("gradcheck", checking.gradcheck)
    check.add_argument(
        "--all",
        action="store_true",
        help="check every combination of prior, likelihood, posterior, estimator and objective; "
        "of the other options only --activation, --method (complex), --most and --seed apply",
    )
    check.add_argument("--plain", action="store_true", help="check plain.py (ReLU, fixed noise)")
    check.add_argument(
        "--layers",
        type=_whole,
        nargs="+",
        default=checking.ONE["layers"],
        help="d_in, hidden widths, K",
    )
    check.add_argument(
        "--samples", type=_whole, default=checking.ONE["samples"], help="weight samples S"
    )
    check.add_argument("--batch", type=_whole, default=checking.ONE["batch"], help="rows B")
    check.add_argument("--activation", choices=ACTIVATIONS, default="relu")
    check.add_argument("--prior-scale", type=_positive, default=checking.ONE["prior_scale"])
    check.add_argument("--noise-scale", type=_positive, default=checking.ONE["noise_scale"])
    check.add_argument("--fixed-noise", action="store_true", help="do not learn the noise")
    check.add_argument(
        "--rho", type=float, default=checking.ONE["rho"], help="centre of rho; it spreads by 1"
    )
    check.add_argument(
        "--kl-weight",
        type=_positive,
        default=checking.ONE["kl_weight"],
        help="pi_i of the minibatch",
    )
    check.add_argument("--method", choices=["both", *sorted(BARS)], help="(both)")
    check.add_argument("--most", type=_whole, default=100, help="coordinates per block at most")
    check.add_argument("--seed", type=_seed, default=0)

    fit = command("fit", fitting.fit)
    fit.add_argument("data", help="CSV file with a header line; - for standard input")
    fit.add_argument("--target", required=True, help="name of the column to predict")
    fit.add_argument("--inputs", nargs="+", help="names of the input columns (default: all others)")
    fit.add_argument("--model", default="model.npz", help="where to store the model")
    fit.add_argument("--hidden", type=_whole, nargs="*", default=[20], help="hidden widths")
    fit.add_argument("--activation", choices=ACTIVATIONS, default="relu")
    fit.add_argument("--epochs", type=_whole, help="(1000)")
    fit.add_argument("--batch-size", type=_whole, help="(32)")
    fit.add_argument("--samples", type=_whole, help="weight samples per step (1)")
    fit.add_argument("--learning-rate", type=_positive, help="(0.01)")
    fit.add_argument(
        "--inference", choices=INFERENCES, help="trained, or sampled: hmc, nuts (mean-field)"
    )
    fit.add_argument("--chains", type=_whole, help="of hmc and nuts, side by side (4)")
    fit.add_argument("--draws", type=_whole, help="of hmc and nuts, to keep of each chain (500)")
    fit.add_argument("--warm-up", type=_seed, help="of hmc and nuts, draws before those (500)")
    fit.add_argument("--thin", type=_whole, help="of hmc and nuts, steps per kept draw (1)")
    fit.add_argument("--metric", choices=METRICS, help="of hmc and nuts (diagonal)")
    fit.add_argument("--target-accept", type=_positive, help="of hmc and nuts, < 1 (0.8)")
    fit.add_argument("--checkpoint", help="of hmc and nuts, folder from which to go on")
    fit.add_argument("--prior-scale", type=_positive, help="of a Gaussian prior (0.5)")
    for name, table in (
        ("prior", PRIORS),
        ("likelihood", {name: LIKELIHOODS[name] for name in REAL}),
        ("posterior", POSTERIORS),
        ("estimator", ESTIMATORS),
        ("objective", OBJECTIVES),
    ):
        fit.add_argument(f"--{name}", choices=list(table), help="(that of the Python class)")
    fit.add_argument("--seed", type=_seed, default=0)
    fit.add_argument("--plot", metavar="PNG", help="picture of the fit, for one input column")

    predict = command("predict", fitting.predict)
    predict.add_argument("model", help="file written by bbb-numpy fit")
    predict.add_argument("data", help="CSV file with the input columns; - for standard input")
    predict.add_argument("--output", "-o", default="-", help="CSV to write; - for standard output")
    predict.add_argument("--plot", metavar="PNG", help="picture, for one input column")
    return parser


class _Help(argparse.ArgumentDefaultsHelpFormatter):
    """Show defaults, but not "None": such options say in words what leaving them out means."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        return action.help if action.default is None else super()._get_help_string(action)


def _number(check: Callable[[Any], Any], parse: Callable[[str], Any], text: str) -> Any:
    try:
        return check(parse(text))
    except (TypeError, ValueError) as error:
        raise argparse.ArgumentTypeError(str(error).replace("value must be", "must be")) from None


def _whole(text: str) -> int:
    return int(_number(lambda value: whole("value", value, 1), _digits, text))


def _seed(text: str) -> int:
    return int(_number(lambda value: whole("value", value, 0), _digits, text))


def _digits(text: str) -> Any:
    return int(text) if text.strip().lstrip("-").isdigit() else text


def _positive(text: str) -> float:
    return float(_number(lambda value: positive("value", value), float, text))


if __name__ == "__main__":
    sys.exit(main())
