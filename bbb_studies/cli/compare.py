"""``bbb-numpy compare``: the methods of the UCI benchmark on a table of one's own."""

from __future__ import annotations

import argparse
import shlex
import sys
from functools import partial
from typing import Any

import numpy as np

from bbb_numpy.cli.options import (
    Commands,
    Options,
    add_command,
    add_options,
    at_least_one,
    at_least_two,
)
from bbb_numpy.cli.outputs import check_folder
from bbb_numpy.cli.problem import add_data_options, read_problem

from ..uci.methods import METHODS, Settings
from .uci import add_run_options, as_typed, changed_settings, check_packages

DEFAULT_METHODS = ("mean-field", "ensemble", "hmc")
# Options that stand in the command which repeats a run.
REPEATED_OPTIONS = (
    "target",
    "inputs",
    "leave_out",
    "categories",
    "dates",
    "task",
    "method",
    "separator",
    "decimal",
    "thousands",
    "encoding",
    "strip",
    "missing",
    "date_order",
    "fill",
    "splits",
    "units",
    "seed",
    "workers",
    "drop_missing",
)


def compare(args: argparse.Namespace) -> int:
    """Compare methods on random splits of a table; goes on where it was interrupted."""
    check_packages(tuple(args.method or DEFAULT_METHODS))
    out = check_folder(args.out)
    from ..uci import classes, page, trials, workers
    from ..uci.running import run

    problem = read_problem(args)
    problem.check_counts(trials.MIN_ROWS, 2)
    x = problem.inputs.to_numpy()
    y = problem.y
    default_methods: tuple[str, ...] = DEFAULT_METHODS
    baselines: tuple[str, ...] = ()
    trial_type: Any = trials.OwnTrial
    settings: Any = Settings(**changed_settings(args))
    measure: Any = trials.measure_own
    write_page: Any = page.write_own
    if problem.task == "classification":
        default_methods = classes.DEFAULT_CLASSIFIERS
        baselines = classes.BASELINE_NAMES
        trial_type = classes.ClassTrial
        settings = classes.ClassSettings(args.units or 50, args.seed, args.quick)
        measure = classes.measure_own
        write_page = classes.write
        y = np.unique(y, return_inverse=True)[1]
    args.method = tuple(dict.fromkeys(args.method or default_methods))
    name = trials.set_name(problem.source)
    digest = trials.write_rows(out, x, y[:, None])
    planned = [
        trial_type(name, method, split, digest, settings)
        for method in (*args.method, *baselines)
        for split in range(args.splits)
    ]
    outcome = run(
        planned,
        out,
        partial(workers.local, args.workers),
        partial(measure, str((out / trials.DATA_FILE).resolve())),
        args.progress,
        resume=args.resume,
        retry_failed=args.retry_failed,
    )
    command = shlex.join(["compare", args.data])
    command = as_typed(command, args, *REPEATED_OPTIONS)
    print(problem.summary())
    print(write_page(out, [*outcome.records, *outcome.failed], command))
    print(f"\n{outcome.summary()}")
    print(
        f"± is the standard error over splits. Records, tables and pictures are in {out}/"
    )
    if outcome.failed:
        print("failed trials are tried again with --retry-failed", file=sys.stderr)
    return 1 if outcome.failed else 0


COMPARISON_OPTIONS: Options = {
    "method": {
        "nargs": "+",
        "choices": list(METHODS),
        "metavar": "METHOD",
        "help": f"Methods to compare, of {', '.join(METHODS)}. By default mean-field, ensemble and "
        "hmc. Classes have those that fit --inference takes, by default mean-field and hmc, and "
        "are compared with scikit-learn's models as well.",
    },
    "splits": {
        "type": at_least_two,
        "default": 10,
        "metavar": "N",
        "help": "Random splits, each of a tenth of the rows to test and the others to train. More "
        "make standard errors smaller, and cost time in proportion.",
    },
    "units": {
        "type": at_least_one,
        "metavar": "N",
        "help": "Units of the one hidden layer. By default 50.",
    },
}
RUN_OPTIONS: Options = {
    "workers": {
        "type": at_least_one,
        "metavar": "N",
        "help": "Processes that fit at the same time. By default one for each usable processor.",
    },
    "out": {
        "default": "compare",
        "metavar": "FOLDER",
        "help": "Folder for records, tables and pictures, from which the same command goes on.",
    },
}


def add_parsers(commands: Commands) -> None:
    """Add the subcommand compare."""
    parser = add_command(commands, "compare", compare, "DATA --target NAME [options]")
    add_data_options(parser, ["regression", "classification"])
    parser.set_defaults(likelihood=None)
    add_options(parser.add_argument_group("the comparison"), COMPARISON_OPTIONS)
    run_group = parser.add_argument_group("the run and its output")
    add_options(run_group, RUN_OPTIONS)
    add_run_options(run_group)
