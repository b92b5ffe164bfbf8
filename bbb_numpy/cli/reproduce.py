"""``bbb-numpy report`` and ``reproduce``: the studies of the sources."""

from __future__ import annotations

import argparse
import os
from importlib import import_module
from pathlib import Path

from ..studies.kebude.regression import SETTINGS
from .options import Commands, add_command, at_least_zero

__all__ = ["STUDIES", "add_parsers", "report", "reproduce"]

# name on the command line: (module of bbb_numpy.studies, what it is)
STUDIES = {
    "krasser": ("krasser.study", "10 sin(2 pi x) with a learned mixture prior"),
    "wu-quartic": ("wu.quartic", "-x^4 + 3x^2 + 1 by MLE, MAP and VI"),
    "wu-path-loss": ("wu.path_loss.study", "a radio field over a plane with buildings"),
    "sagar-toy": ("sagar.study", "Algorithm 1 as printed and corrected"),
    "estimator-variance": ("ours.estimator_variance.study", "variances of all gradient estimators"),
    "evidence-bounds": ("ours.evidence_bounds.study", "ELBO <= IWAE <= log evidence <= EUBO"),
    "coin": ("mullachery.coin.study", "closed form, grid and Metropolis-Hastings agree on a coin"),
    "occam": ("mullachery.occam.study", "evidence against data complexity, from real numbers"),
    "powerball": ("mullachery.powerball.study", "which bin a lottery ball is from; needs data"),
    "income-tax": ("mullachery.income_tax.study", "Vermont's income tax per return; needs data"),
    "mnist": (
        "blundell.mnist.study",
        "SGD, MAP and Bayes by Backprop on digits, pruning; needs data",
    ),
    "bandit": ("blundell.bandit.study", "Thompson sampling among mushrooms; needs data"),
    "sp500": ("mullachery.sp500.study", "next-day direction, walk-forward; needs data"),
}


def report(args: argparse.Namespace) -> int:
    """Train on the report's problems, print what happened, write the figures."""
    from ..studies.kebude import report as kebude  # Matplotlib: a quarter of a second

    results = kebude.run_all(
        args.problem, args.range, args.setting, seed=args.seed, out=Path(args.out)
    )
    print(kebude.summarise(results))
    print(f"figures, this text and its numbers are in {args.out}{os.sep}")
    return 0


def reproduce(args: argparse.Namespace) -> int:
    """Repeat an experiment of the sources, print what happened, write pictures and numbers."""
    module = import_module(f"bbb_numpy.studies.{STUDIES[args.experiment][0]}")
    out = Path(args.out or f"reproduced/{args.experiment}")
    if out.exists() and not out.is_dir():
        raise OSError(f"{out} is a file; name a folder with --out")
    made = [folder for folder in (out, *out.parents) if not folder.exists()]
    out.mkdir(parents=True, exist_ok=True)
    try:
        text = module.reproduce(out, args.seed)
    except Exception as error:
        if not any(out.iterdir()):  # e.g. the data are missing
            for folder in made:
                folder.rmdir()
        if isinstance(error, ModuleNotFoundError):
            name = str(error.name).partition(".")[0]
            extra = "learners" if name in ("sklearn", "scipy") else "uci"
            raise ValueError(
                f"{args.experiment} needs {name}; pip install 'bbb_numpy[{extra}]' brings it"
            ) from None
        raise
    (out / f"{args.experiment}.txt").write_text(text + "\n", encoding="utf-8")
    print(text)
    print(f"pictures, this text and its numbers are in {out}{os.sep}")
    return 0


def add_parsers(commands: Commands) -> None:
    """Add the subcommands report and reproduce."""
    printed = add_command(commands, "report", report)
    printed.add_argument(
        "--problem", type=int, choices=[1, 2], help="1: Blundell's curve, 2: the cubic (both)"
    )
    printed.add_argument(
        "--range",
        type=float,
        choices=[4.0, 2.5, 1.0, 0.5],
        help="where the data end: 0.5 for problem 1, the others for problem 2 (all)",
    )
    printed.add_argument(
        "--setting", choices=list(SETTINGS), help="as the report prints it, or mended (both)"
    )
    printed.add_argument("--seed", type=at_least_zero, default=0)
    printed.add_argument("--out", default="report", help="folder to write to")

    study = add_command(commands, "reproduce", reproduce)
    listed = "; ".join(f"{name}: {what}" for name, (_, what) in STUDIES.items())
    study.add_argument("experiment", choices=list(STUDIES), help=listed)
    study.add_argument("--seed", type=at_least_zero, default=0)
    study.add_argument("--out", help="folder to write to (reproduced/EXPERIMENT)")
