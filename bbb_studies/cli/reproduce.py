"""``bbb-numpy report`` and ``reproduce``: the studies of the sources."""

from __future__ import annotations

import argparse
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from bbb_numpy.cli.options import Commands, add_command, at_least_zero
from bbb_numpy.numeric.files import naming, write_text
from bbb_numpy.numeric.threads import one_blas_thread
from bbb_studies.kebude.regression import SETTINGS
from bbb_studies.threads import ONE_THREAD


class Study(NamedTuple):
    """An experiment of the command line."""

    module: str  # of bbb_studies; has `reproduce`, and `full` if there is a longer run
    what: str
    full: str = ""  # how much more --full does


STUDIES = {
    "krasser": Study("krasser", "10 sin(2 pi x) with a learned mixture prior"),
    "wu-quartic": Study("wu.quartic", "-x^4 + 3x^2 + 1 by MLE, MAP and VI"),
    "wu-path-loss": Study(
        "wu.path_loss",
        "a radio field over a plane with buildings",
        "four data sets in place of two",
    ),
    "sagar-toy": Study("sagar", "Algorithm 1 as printed and corrected"),
    "estimator-variance": Study("ours.estimator_variance", "variances of all gradient estimators"),
    "evidence-bounds": Study("ours.evidence_bounds", "ELBO <= IWAE <= log evidence <= EUBO"),
    "elbo-minima": Study(
        "ours.elbo_minima", "the bounds that many starts reach, and the ways between"
    ),
    "certificate": Study(
        "ours.certificate", "PAC-Bayes certificates of digits, with and without a prior from data"
    ),
    "coin": Study("mullachery.coin", "closed form, grid and Metropolis-Hastings agree on a coin"),
    "occam": Study("mullachery.occam", "evidence against data complexity, from real numbers"),
    "powerball": Study(
        "mullachery.powerball",
        "which bin a lottery ball is from; needs data",
        "two cross-validations in place of one",
    ),
    "income-tax": Study("mullachery.income_tax", "Vermont's income tax per return; needs data"),
    "mnist": Study(
        "blundell.mnist",
        "digits and pruning: the paper's words, F minimised, its number; needs data",
        "the paper's 600 epochs, widths and priors: days, resumable, what takes minutes first",
    ),
    "bandit": Study(
        "blundell.bandit",
        "Thompson sampling among mushrooms; needs data",
        "64 minibatches after every mushroom: hours, resumable",
    ),
    "sp500": Study("mullachery.sp500", "next-day direction, walk-forward; needs data"),
}


def report(args: argparse.Namespace) -> int:
    """Train on the report's problems and as in plain.py, print what happened, write the figures."""
    from bbb_studies.kebude import report as kebude  # Matplotlib: a quarter of a second

    out = Path(args.out)
    with naming(out), one_blas_thread():
        out.mkdir(parents=True, exist_ok=True)
        print(kebude.band(out / "band.png"), end="\n\n", flush=True)
        _announce("the experiments of the report take half a minute")
        results = kebude.run_all(
            args.problem, args.range, args.setting, seed=args.seed, out=out, progress=True
        )
    print(kebude.summarise(results) if args.details else kebude.opening(results))
    print(f"\nfigures, numbers and the whole text (--details) are in {out}{os.sep}")
    return 0


def _announce(text: str) -> None:
    """Say on stderr what is coming, at once, as a long silence looks like a crash."""
    print(text, file=sys.stderr, flush=True)


def reproduce(args: argparse.Namespace) -> int:
    """Repeat an experiment of the sources, print what happened, write pictures and numbers."""
    study = STUDIES[args.experiment]
    longer = args.full and study.full
    out = Path(args.out or f"reproduced/{args.experiment}{'-full' if longer else ''}")
    if out.exists() and not out.is_dir():
        raise OSError(f"{out} is a file; name a folder with --out")
    try:
        module = import_module(f"bbb_studies.{study.module}")
        given = module.full(args.seed) if longer else {"seed": args.seed}
        os.environ |= ONE_THREAD  # read by what is loaded later: SciPy has a BLAS of its own
        with one_blas_thread(), naming(out):
            text = module.reproduce(out, **given)
    except ModuleNotFoundError as error:
        name = str(error.name).partition(".")[0]
        extra = "learners" if name in ("sklearn", "scipy", "joblib") else "uci"
        raise ValueError(
            f"{args.experiment} needs {name}; pip install 'bbb_numpy[{extra}]' brings it"
        ) from None
    said = "This is the full run; there is no shorter one."
    if study.full:
        which = "full run (--full)" if longer else "short run; --full"
        said = f"This is the {which}: {study.full}."
    if not text.endswith(said):  # as that of a run that is only read again
        text = f"{text}\n\n{said}"
    out.mkdir(parents=True, exist_ok=True)
    write_text(out / f"{args.experiment}.txt", text + "\n")
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
        "--setting",
        choices=list(SETTINGS),
        help="printed: as the report's text has it; as-drawn: as its program drew the figures; "
        "literal: sigma_data is the standard deviation of y; should-be: with the errors "
        "corrected (all)",
    )
    printed.add_argument(
        "--seed", type=at_least_zero, default=0, help="of the data, the start and the noise"
    )
    printed.add_argument("--details", action="store_true", help="print all tables and verdicts")
    printed.add_argument("--out", default="report", help="folder to write to")

    parser = add_command(commands, "reproduce", reproduce)
    listed = "; ".join(f"{name}: {study.what}" for name, study in STUDIES.items())
    parser.add_argument("experiment", choices=list(STUDIES), help=listed)
    longer = "; ".join(f"{name}: {study.full}" for name, study in STUDIES.items() if study.full)
    parser.add_argument(
        "--full", action="store_true", help=f"where the usual run is a short one. {longer}"
    )
    parser.add_argument("--seed", type=at_least_zero, default=0)
    parser.add_argument("--out", help="folder to write to (reproduced/EXPERIMENT[-full])")
