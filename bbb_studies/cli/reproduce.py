"""``bbb-numpy report`` and ``reproduce``: the studies of the sources."""

from __future__ import annotations

import argparse
import os
import sys
from importlib import import_module
from typing import NamedTuple

from bbb_numpy.cli.options import Commands, add_command, at_least_zero
from bbb_numpy.cli.outputs import check_folder
from bbb_numpy.numeric.files import path_in_errors, write_text
from bbb_numpy.numeric.threads import one_blas_thread
from bbb_studies.kebude.regression import TRAINING_SETTINGS
from bbb_studies.threads import ONE_THREAD


class Study(NamedTuple):
    """An experiment of the command line; seconds were measured on one processor core."""

    # Module of bbb_studies with the function `reproduce`, and `quick` and `full` if it has such
    # runs.
    module: str
    what: str  # a line of help
    seconds: float  # of the usual run
    # What --quick leaves out; empty if the usual run is short.
    quick: str = ""
    quick_seconds: float = 0.0
    full: str = ""  # what --full does in addition; empty if there is no such run


STUDIES = {
    "krasser": Study(
        module="krasser", what="10 sin(2 pi x) with a learned mixture prior", seconds=15
    ),
    "wu-quartic": Study(
        module="wu.quartic", what="-x^4 + 3x^2 + 1 by MLE, MAP and VI", seconds=18
    ),
    "wu-path-loss": Study(
        module="wu.path_loss",
        what="a radio field over a plane with buildings",
        seconds=72,
        quick="three quarters of every training",
        quick_seconds=28,
        full="four data sets in place of two",
    ),
    "sagar-toy": Study(
        module="sagar", what="Algorithm 1 as printed and corrected", seconds=14
    ),
    "estimator-variance": Study(
        module="ours.estimator_variance",
        what="variances of all gradient estimators",
        seconds=17,
    ),
    "evidence-bounds": Study(
        module="ours.evidence_bounds",
        what="ELBO <= IWAE <= log evidence <= EUBO",
        seconds=5,
    ),
    "elbo-minima": Study(
        module="ours.elbo_minima",
        what="the bounds that many starts reach, and the ways between",
        seconds=7,
    ),
    "few-rows": Study(
        module="ours.few_rows",
        what="whether intervals of 5 to 120 rows hold what they promise; resumable",
        seconds=430,
        quick="five of seven numbers of rows, one of two data sets",
        quick_seconds=50,
        full="200 data sets a cell, and what explains them: hours, resumable",
    ),
    "certificate": Study(
        module="ours.certificate",
        what="PAC-Bayes certificates of digits, with and without a prior from data; needs data",
        seconds=119,
        quick="four fifths of the images, half of the epochs, 15 of 20 networks an image",
        quick_seconds=15,
    ),
    "coin": Study(
        module="mullachery.coin",
        what="closed form, grid and Metropolis-Hastings agree on a coin",
        seconds=5,
    ),
    "occam": Study(
        module="mullachery.occam",
        what="evidence against data complexity, from real numbers",
        seconds=47,
        quick="two of three data sets, three quarters of the draws, most of the annealing",
        quick_seconds=5,
    ),
    "powerball": Study(
        module="mullachery.powerball",
        what="which bin a lottery ball is from; needs data",
        seconds=162,
        quick="half of the chains, three quarters of each, three of five folds",
        quick_seconds=14,
        full="two cross-validations in place of one",
    ),
    "income-tax": Study(
        module="mullachery.income_tax",
        what="Vermont's income tax per return; needs data",
        seconds=101,
        quick="half of the chains, three quarters of each",
        quick_seconds=16,
    ),
    "mnist": Study(
        module="blundell.mnist",
        what="digits and pruning: the paper's words, F minimised, its number; needs data",
        seconds=880,
        quick="nine of ten images, 15 of 20 draws of the weights",
        quick_seconds=55,
        full="the paper's 600 epochs, widths and priors: days, resumable, what takes minutes first",
    ),
    "bandit": Study(
        module="blundell.bandit",
        what="Thompson sampling among mushrooms; needs data",
        seconds=1100,
        quick="two of three runs, nine of ten mushrooms",
        quick_seconds=54,
        full="64 minibatches after every mushroom: hours, resumable",
    ),
    "sp500": Study(
        module="mullachery.sp500",
        what="next-day direction, walk-forward; needs data",
        seconds=36,
    ),
}


def report(args: argparse.Namespace) -> int:
    """Train on the report's problems and as in plain.py, print what happened, write the figures."""
    out = check_folder(args.out)
    from bbb_studies.kebude import report as kebude  # late, as Matplotlib takes 0.25 s

    with path_in_errors(out), one_blas_thread():
        out.mkdir(parents=True, exist_ok=True)
        print(kebude.band(out / "band.png"), end="\n\n", flush=True)
        _announce("the experiments of the report take about 20 seconds")
        results = kebude.run_all(
            args.problem,
            args.range,
            args.setting,
            seed=args.seed,
            out=out,
            progress=True,
        )
    print(kebude.summarise(results) if args.details else kebude.opening(results))
    print(f"\nfigures, numbers and the whole text (--details) are in {out}{os.sep}")
    return 0


def _announce(text: str) -> None:
    """Print `text` to stderr at once, since a long silence looks like a crash."""
    print(text, file=sys.stderr, flush=True)


def reproduce(args: argparse.Namespace) -> int:
    """Repeat an experiment of the sources, print what happened, write pictures and numbers."""
    study = STUDIES[args.experiment]
    form = ""
    suffix = ""
    if args.full and study.full:
        form = "full"
    elif args.quick and study.quick:
        form = "quick"
    if form:
        suffix = f"-{form}"
    default_folder = f"reproduced/{args.experiment}{suffix}"
    out = check_folder(default_folder if args.out is None else args.out)
    _announce(f"{args.experiment} takes {_time_needed(study, form)}")
    try:
        module = import_module(f"bbb_studies.{study.module}")
        options = {"seed": args.seed}
        if form:
            options = getattr(module, form)(args.seed)
        # Libraries that are loaded later read it: SciPy has a BLAS of its own.
        os.environ |= ONE_THREAD
        with one_blas_thread(), path_in_errors(out):
            text = module.reproduce(out, **options, progress=True)
    except ModuleNotFoundError as error:
        name = str(error.name).partition(".")[0]
        extra = "learners" if name in ("sklearn", "scipy", "joblib") else "uci"
        raise ValueError(
            f"{args.experiment} needs {name}; pip install 'bbb_numpy[{extra}]' brings it"
        ) from None
    run_in_words = _which_run(study, form)
    if not text.endswith(run_in_words):  # a stored run that is only read again has it
        text = f"{text}\n\n{run_in_words}"
    out.mkdir(parents=True, exist_ok=True)
    write_text(out / f"{args.experiment}.txt", text + "\n")
    print(text)
    print(f"pictures, this text and its numbers are in {out}{os.sep}")
    return 0


def _time_needed(study: Study, form: str) -> str:
    """Return in words how long a run takes, and how long a shorter one."""
    if form == "full":
        return f"long: {study.full}"
    if form == "quick":
        return f"{_duration(study.quick_seconds)}; left out: {study.quick}"
    if not study.quick:
        return _duration(study.seconds)
    return f"{_duration(study.seconds)} (--quick: {_duration(study.quick_seconds)})"


def _which_run(study: Study, form: str) -> str:
    """Return in words which run it was, and which other runs there are."""
    if form == "full":
        return f"This is the full run (--full): {study.full}."
    if form == "quick":
        return f"This is the quick run (--quick), whose numbers are rough. Left out: {study.quick}."
    if study.full:
        return f"This is the usual run; --full: {study.full}."
    if study.quick:
        return "This is the full run."
    return "This is the full run; there is no shorter one."


def _duration(seconds: float) -> str:
    """Return seconds of one core in words: about 20 seconds, about 9 minutes."""
    if seconds < 90:
        return f"about {max(5 * round(seconds / 5), 5)} seconds"
    return f"about {round(seconds / 60)} minutes"


def _table_of_times() -> str:
    """Return a table of the seconds that each experiment takes."""
    lines = [f"{'time on one core':20} {'usual':18} --quick"]
    for name, study in STUDIES.items():
        shorter = _duration(study.quick_seconds) if study.quick else "-"
        lines.append(f"{name:20} {_duration(study.seconds):18} {shorter}")
    return "\n".join(lines)


def add_parsers(commands: Commands) -> None:
    """Add the subcommands report and reproduce."""
    printed = add_command(commands, "report", report)
    printed.add_argument(
        "--problem",
        type=int,
        choices=[1, 2],
        help="1: Blundell's curve, 2: the cubic (both)",
    )
    printed.add_argument(
        "--range",
        type=float,
        choices=[4.0, 2.5, 1.0, 0.5],
        help="where the data end: 0.5 for problem 1, the others for problem 2 (all)",
    )
    printed.add_argument(
        "--setting",
        choices=[*TRAINING_SETTINGS, "all"],
        help="printed: as the report's text has it; as-drawn: as its program drew the figures; "
        "literal: sigma_data is the standard deviation of y; should-be: with the errors "
        "corrected; all: these four (printed and should-be)",
    )
    printed.add_argument(
        "--seed",
        type=at_least_zero,
        default=0,
        help="of the data, the start and the noise",
    )
    printed.add_argument(
        "--details", action="store_true", help="print all tables and verdicts"
    )
    printed.add_argument("--out", default="report", help="folder to write to")

    parser = add_command(commands, "reproduce", reproduce)
    listed = "; ".join(f"{name}: {study.what}" for name, study in STUDIES.items())
    parser.add_argument("experiment", choices=list(STUDIES), help=listed)
    longer = "; ".join(
        f"{name}: {study.full}" for name, study in STUDIES.items() if study.full
    )
    shorter = "; ".join(
        f"{name}: {study.quick}" for name, study in STUDIES.items() if study.quick
    )
    length = parser.add_mutually_exclusive_group()
    length.add_argument(
        "--quick",
        action="store_true",
        help=f"under a minute; what is left out: {shorter}",
    )
    length.add_argument(
        "--full",
        action="store_true",
        help=f"where the usual run is a short one. {longer}",
    )
    parser.epilog = _table_of_times()
    parser.add_argument("--seed", type=at_least_zero, default=0)
    parser.add_argument(
        "--out", help="folder to write to (reproduced/EXPERIMENT[-quick or -full])"
    )
