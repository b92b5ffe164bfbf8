"""``bbb-numpy compare``: the methods of the UCI benchmark on a table of one's own."""

from __future__ import annotations

import argparse
import shlex
import sys
from functools import partial
from typing import Any

import numpy as np

from bbb_numpy.cli.options import Commands, add_command, at_least_one, at_least_two
from bbb_numpy.cli.outputs import check_folder
from bbb_numpy.cli.problem import add_data_options, read_problem

from ..uci.methods import METHODS, Settings
from .uci import add_run_options, as_typed, changed_settings, check_packages

USUAL = ("mean-field", "ensemble", "hmc")
OPTIONS = (  # that repeat a run
    *(
        "target",
        "inputs",
        "leave_out",
        "categories",
        "dates",
        "task",
        "method",
        "separator",
    ),
    *(
        "decimal",
        "thousands",
        "encoding",
        "missing",
        "date_order",
        "fill",
        "splits",
        "units",
        "seed",
        "workers",
    ),
    "drop_missing",
)


def compare(args: argparse.Namespace) -> int:
    """Compare methods on random splits of a table; goes on where it was interrupted."""
    check_packages(tuple(args.method or USUAL))
    out = check_folder(args.out)
    from ..uci import classes, page, workers
    from ..uci import trials as own
    from ..uci.running import run

    problem = read_problem(args)
    problem.check_counts(own.FEWEST, 2)
    x, y = problem.inputs.to_numpy(), problem.y
    trial_module: Any = own
    trial: Any
    settings: Any
    write: Any
    trial, settings, write = (
        own.OwnTrial,
        Settings(**changed_settings(args)),
        page.write_own,
    )
    default_methods: tuple[str, ...] = USUAL
    rivals: tuple[str, ...] = ()
    if problem.task == "classification":
        trial_module, trial, write = classes, classes.ClassTrial, classes.write
        settings = classes.ClassSettings(args.units or 50, args.seed, args.quick)
        default_methods, rivals = classes.USUAL, classes.RIVALS
        y = np.unique(y, return_inverse=True)[1]
    args.method = tuple(dict.fromkeys(args.method or default_methods))
    name, digest = own.set_name(problem.source), own.keep(out, x, y[:, None])
    trials = [
        trial(name, method, split, digest, settings)
        for method in (*args.method, *rivals)
        for split in range(args.splits)
    ]
    outcome = run(
        trials,
        out,
        partial(workers.local, args.workers),
        partial(trial_module.measure_own, str((out / own.DATA).resolve())),
        args.progress,
        resume=args.resume,
        retry_failed=args.retry_failed,
    )
    command = as_typed(shlex.join(["compare", args.data]), args, *OPTIONS)
    print(problem.summary())
    print(write(out, [*outcome.records, *outcome.failed], command))
    print(f"\n{outcome.said()}")
    print(
        f"± is the standard error over splits. Records, tables and pictures are in {out}/"
    )
    if outcome.failed:
        print("failed trials are tried again with --retry-failed", file=sys.stderr)
    return 1 if outcome.failed else 0


def add_parsers(commands: Commands) -> None:
    """Add the subcommand compare."""
    parser = add_command(commands, "compare", compare, "DATA --target NAME [options]")
    add_data_options(parser, ["regression", "classification"])
    parser.set_defaults(likelihood=None)
    parser.add_argument(
        "--method",
        nargs="+",
        choices=list(METHODS),
        metavar="METHOD",
        help=f"of {', '.join(METHODS)} ({', '.join(USUAL)})",
    )
    parser.add_argument(
        "--splits",
        type=at_least_two,
        default=10,
        help="random ones, a tenth of the rows to test",
    )
    parser.add_argument(
        "--workers", type=at_least_one, help="processes (one for each usable CPU)"
    )
    parser.add_argument(
        "--out", default="compare", help="folder of records, tables and pictures"
    )
    parser.add_argument("--units", type=at_least_one, help="hidden units (50)")
    add_run_options(parser)
