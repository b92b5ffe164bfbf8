"""``bbb-numpy uci``: every method on the standard splits of the UCI sets."""

from __future__ import annotations

import argparse
import shlex
import sys
from functools import partial
from typing import Any

from bbb_numpy.cli.options import (
    Commands,
    Options,
    add_command,
    add_options,
    at_least_one,
    at_least_zero,
)
from bbb_numpy.cli.outputs import check_folder

from ..data import uci as sets
from ..data.uci import UCI_NAMES
from ..uci.methods import METHODS, SAMPLERS
from ..uci.trials import measure, trials

# Settings of --quick, with which everything runs and nothing converges.
QUICK = {
    "samples": 100,
    "steps": 300,
    "full_rank_steps": 60,
    "eubo_steps": 20,
    "eubo_rows": 500,
    "members": 2,
    "chains": 2,
    "warm_up": 20,
    "draws": 50,
    "thin": 1,
    "start_steps": 200,
    "leaps": 10,
    "depth": 3,
}


RUN_OPTIONS: Options = {
    "seed": {
        "type": at_least_zero,
        "default": 0,
        "metavar": "N",
        "help": "Seed of the random numbers.",
    },
    "quick": {
        "action": "store_true",
        "help": "Try the command: short runs, whose numbers are useless.",
    },
    "retry_failed": {
        "action": "store_true",
        "help": "Run again the trials that are recorded as failed.",
    },
    "resume": {
        "action": argparse.BooleanOptionalAction,
        "default": True,
        "help": "Go on from the recorded trials; --no-resume sets these aside and starts anew.",
    },
    "progress": {
        "action": argparse.BooleanOptionalAction,
        "help": "Show what is done and the time left. By default in a terminal only.",
    },
}


def add_run_options(group: Any) -> None:
    """Add the options of all commands that run trials to a parser or a group of its options."""
    add_options(group, RUN_OPTIONS)


def changed_settings(args: argparse.Namespace) -> dict[str, Any]:
    """Return the settings that the options change, by name."""
    changed: dict[str, Any] = dict(QUICK) if args.quick else {}
    options = {"units": args.units, "seed": args.seed}
    return changed | {
        name: value for name, value in options.items() if value is not None
    }


def check_packages(methods: tuple[str, ...]) -> None:
    """Raise ImportError, before any work, if a package is missing that these methods need."""
    try:
        from bbb_numpy.evaluation import calibration  # noqa: F401 (of what the trials are scored by)
        from bbb_numpy.evaluation.convergence import import_arviz

        from ..uci import page, running  # noqa: F401
    except ModuleNotFoundError as error:
        name = str(error.name).partition(".")[0]
        raise ImportError(
            f"it needs {name}; pip install 'bbb-numpy[uci]' brings it"
        ) from None
    if set(methods) & set(SAMPLERS):
        import_arviz()  # it computes R-hat and effective sample sizes


def as_typed(command: str, args: argparse.Namespace, *options: str) -> str:
    """Return the command line that repeats a run.

    Parameters
    ----------
    command : str
        Subcommand and positional arguments, quoted for a shell.
    args : argparse.Namespace
        Parsed options.
    options : str
        Names of the options to repeat; those left out or false are not.
    """
    words = ["bbb-numpy", *shlex.split(command)]
    for name in (*options, "quick"):
        value = getattr(args, name)
        if value is not None and value is not False and value != []:
            words.append(f"--{name.replace('_', '-')}")
            if isinstance(value, list | tuple):
                words += map(str, value)
            elif value is not True:
                words.append(str(value))
    return shlex.join([*words, "--out", args.out])


def uci(args: argparse.Namespace) -> int:
    """Measure methods on the standard splits of UCI sets; goes on where it was interrupted."""
    args.method = tuple(dict.fromkeys(args.method or METHODS))
    check_packages(args.method)
    out = check_folder(args.out)
    changed = changed_settings(args)
    from ..uci import gaps, page, workers
    from ..uci.running import run

    if args.scheduler is not None and args.jobs is not None:
        raise ValueError(
            "--jobs counts processes of this machine, --scheduler sends the work to a cluster; "
            "leave one out"
        )
    if args.gap and args.splits is not None:
        raise ValueError(
            "--gap has a split for each input, --splits none to count; leave one out"
        )
    args.data = tuple(
        dict.fromkeys(args.data or (gaps.GAP_SETS if args.gap else UCI_NAMES))
    )
    if args.gap and not set(args.data) <= set(gaps.GAP_SETS):
        raise ValueError(
            f"--data must be of {', '.join(gaps.GAP_SETS)} with --gap; got "
            f"{', '.join(args.data)}"
        )
    for name in args.data:
        sets.load(name)  # a missing file is reported before any work
    start_workers = partial(workers.local, args.jobs)
    if args.scheduler is not None:
        start_workers = partial(workers.cluster, args.scheduler)
    options = {"resume": args.resume, "retry_failed": args.retry_failed}
    requested: list[Any] = trials(args.data, args.method, args.splits, **changed)
    measure_trial: Any = measure
    write = page.write
    if args.gap:
        out = out / gaps.GAPS_FOLDER
        measure_trial = gaps.measure
        write = page.write_gaps
        requested = gaps.trials(args.data, args.method, **changed)
    outcome = run(
        requested, out, start_workers, measure_trial, args.progress, **options
    )
    command = as_typed(
        "uci", args, "data", "method", "splits", "units", "seed", "jobs", "gap"
    )
    print(write(out, [*outcome.records, *outcome.failed], command))
    print(outcome.summary())
    print(f"records, tables and pictures are in {out}/")
    if outcome.failed:
        print("failed trials are tried again with --retry-failed", file=sys.stderr)
    return 1 if outcome.failed else 0


UCI_OPTIONS: Options = {
    "data": {
        "nargs": "+",
        "choices": UCI_NAMES,
        "metavar": "SET",
        "help": f"Sets to measure on, of {', '.join(UCI_NAMES)}. By default all.",
    },
    "method": {
        "nargs": "+",
        "choices": list(METHODS),
        "metavar": "METHOD",
        "help": f"Methods to measure, of {', '.join(METHODS)}. By default all.",
    },
    "splits": {
        "type": at_least_one,
        "metavar": "N",
        "help": "Splits of each set. Up to 20 are those published (5 of protein); beyond, the same "
        "recipe goes on. By default all that are published, and the first 5 of power, kin8nm and "
        "naval.",
    },
    "gap": {
        "action": "store_true",
        "help": "Gap splits: for each input train on the rows in the lowest and highest third of "
        "its values, test on those between and on a tenth of the others. For boston, concrete, "
        "energy and yacht.",
    },
    "units": {
        "type": at_least_one,
        "metavar": "N",
        "help": "Units of the one hidden layer. By default 50, and 100 for protein.",
    },
}
WORKER_OPTIONS: Options = {
    "jobs": {
        "type": at_least_one,
        "metavar": "N",
        "help": "Worker processes. By default one for each usable processor.",
    },
    "scheduler": {
        "metavar": "ADDRESS",
        "help": "Scheduler of a dask.distributed cluster, tcp://HOST:PORT, whose workers are used "
        "in place of processes of this machine.",
    },
    "out": {
        "default": "uci",
        "metavar": "FOLDER",
        "help": "Folder for records, tables and pictures, from which the same command goes on.",
    },
}


def add_parsers(commands: Commands) -> None:
    """Add the subcommand uci."""
    parser = add_command(commands, "uci", uci, "[options]")
    add_options(parser.add_argument_group("the comparison"), UCI_OPTIONS)
    run_group = parser.add_argument_group("the run and its output")
    add_options(run_group, WORKER_OPTIONS)
    add_run_options(run_group)
