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
    """An experiment of the command line; seconds are of one processor core, as measured."""

    # of bbb_studies; has `reproduce`, and `quick` and `full` if there are such runs
    module: str
    what: str
    seconds: float
    # what --quick leaves out; nothing, where the usual run is a short one
    quick: str = ""
    quick_seconds: float = 0.0
    full: str = ""  # how much more --full does


STUDIES = {
    "krasser": Study("krasser", "10 sin(2 pi x) with a learned mixture prior", 15),
    "wu-quartic": Study("wu.quartic", "-x^4 + 3x^2 + 1 by MLE, MAP and VI", 18),
    "wu-path-loss": Study(
        "wu.path_loss",
        "a radio field over a plane with buildings",
        72,
        "three quarters of every training",
        28,
        "four data sets in place of two",
    ),
    "sagar-toy": Study("sagar", "Algorithm 1 as printed and corrected", 14),
    "estimator-variance": Study(
        "ours.estimator_variance", "variances of all gradient estimators", 17
    ),
    "evidence-bounds": Study(
        "ours.evidence_bounds", "ELBO <= IWAE <= log evidence <= EUBO", 5
    ),
    "elbo-minima": Study(
        "ours.elbo_minima", "the bounds that many starts reach, and the ways between", 7
    ),
    "certificate": Study(
        "ours.certificate",
        "PAC-Bayes certificates of digits, with and without a prior from data; needs data",
        119,
        "four fifths of the images, half of the epochs, 15 of 20 networks an image",
        15,
    ),
    "coin": Study(
        "mullachery.coin",
        "closed form, grid and Metropolis-Hastings agree on a coin",
        5,
    ),
    "occam": Study(
        "mullachery.occam",
        "evidence against data complexity, from real numbers",
        47,
        "two of three data sets, three quarters of the draws, most of the annealing",
        5,
    ),
    "powerball": Study(
        "mullachery.powerball",
        "which bin a lottery ball is from; needs data",
        162,
        "half of the chains, three quarters of each, three of five folds",
        14,
        "two cross-validations in place of one",
    ),
    "income-tax": Study(
        "mullachery.income_tax",
        "Vermont's income tax per return; needs data",
        101,
        "half of the chains, three quarters of each",
        16,
    ),
    "mnist": Study(
        "blundell.mnist",
        "digits and pruning: the paper's words, F minimised, its number; needs data",
        880,
        "nine of ten images, 15 of 20 draws of the weights",
        55,
        "the paper's 600 epochs, widths and priors: days, resumable, what takes minutes first",
    ),
    "bandit": Study(
        "blundell.bandit",
        "Thompson sampling among mushrooms; needs data",
        1100,
        "two of three runs, nine of ten mushrooms",
        54,
        "64 minibatches after every mushroom: hours, resumable",
    ),
    "sp500": Study(
        "mullachery.sp500",
        "next-day direction, walk-forward; needs data",
        36,
    ),
}


def report(args: argparse.Namespace) -> int:
    """Train on the report's problems and as in plain.py, print what happened, write the figures."""
    out = check_folder(args.out)
    from bbb_studies.kebude import report as kebude  # Matplotlib: a quarter of a second

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
    """Say on stderr what is coming, at once, as a long silence looks like a crash."""
    print(text, file=sys.stderr, flush=True)


def reproduce(args: argparse.Namespace) -> int:
    """Repeat an experiment of the sources, print what happened, write pictures and numbers."""
    study = STUDIES[args.experiment]
    form = (
        "full"
        if args.full and study.full
        else "quick"
        if args.quick and study.quick
        else ""
    )
    default_folder = f"reproduced/{args.experiment}{form and f'-{form}'}"
    out = check_folder(default_folder if args.out is None else args.out)
    _announce(f"{args.experiment} takes {_time_needed(study, form)}")
    try:
        module = import_module(f"bbb_studies.{study.module}")
        options = getattr(module, form)(args.seed) if form else {"seed": args.seed}
        # read by what is loaded later: SciPy has a BLAS of its own
        os.environ |= ONE_THREAD
        with one_blas_thread(), path_in_errors(out):
            text = module.reproduce(out, **options, progress=True)
    except ModuleNotFoundError as error:
        name = str(error.name).partition(".")[0]
        extra = "learners" if name in ("sklearn", "scipy", "joblib") else "uci"
        raise ValueError(
            f"{args.experiment} needs {name}; pip install 'bbb_numpy[{extra}]' brings it"
        ) from None
    which = _which_run(study, form)
    if not text.endswith(which):  # as that of a run that is only read again
        text = f"{text}\n\n{which}"
    out.mkdir(parents=True, exist_ok=True)
    write_text(out / f"{args.experiment}.txt", text + "\n")
    print(text)
    print(f"pictures, this text and its numbers are in {out}{os.sep}")
    return 0


def _time_needed(study: Study, form: str) -> str:
    """Say how long a run takes, and which is shorter."""
    if form == "full":
        return f"long: {study.full}"
    if form == "quick":
        return f"{_duration(study.quick_seconds)}; left out: {study.quick}"
    shorter = f" (--quick: {_duration(study.quick_seconds)})" if study.quick else ""
    return _duration(study.seconds) + shorter


def _which_run(study: Study, form: str) -> str:
    """Say what a run was, and which there are besides."""
    if form == "full":
        return f"This is the full run (--full): {study.full}."
    if form == "quick":
        return f"This is the quick run (--quick), whose numbers are rough. Left out: {study.quick}."
    if study.full:
        return f"This is the usual run; --full: {study.full}."
    return "This is the full run" + (
        "." if study.quick else "; there is no shorter one."
    )


def _duration(seconds: float) -> str:
    """Return seconds of one core in words: about 20 seconds, about 9 minutes."""
    if seconds < 90:
        return f"about {max(5 * round(seconds / 5), 5)} seconds"
    return f"about {round(seconds / 60)} minutes"


def _table_of_times() -> str:
    """Lay out how long each experiment takes."""
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
