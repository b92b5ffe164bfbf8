"""Fair timing: contestants in turn, many rounds, ratios within each round; the table and file."""

from __future__ import annotations

import argparse
import importlib
import json
import platform
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter, sleep
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_info

from bbb_numpy.cli.options import above_zero, at_least_one
from bbb_numpy.cli.outputs import check_folder
from bbb_numpy.sampling.chains import n_usable_cores

from .problems import Array, Step

FOLDER = Path(__file__).resolve().parent / "results"
# Thread pools spin for up to 30 ms after their last work; a pause before each turn keeps
# the threads of one contestant out of the time of the next.
PAUSE = 0.05


class Pace(NamedTuple):
    """How long to measure."""

    rounds: int  # turns of every contestant
    seconds: float  # timed steps of one turn together


class Spread(NamedTuple):
    """Quartiles over the rounds."""

    q1: float
    median: float
    q3: float


def spread(values: Array) -> Spread:
    """Return the quartiles of `values`."""
    return Spread(*(float(q) for q in np.quantile(values, (0.25, 0.5, 0.75))))


def in_turn(contestants: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, Array]:
    """Return the readings of each contestant (rounds,), one a turn.

    The order changes from round to round, so that nobody always follows the same other; a round
    before them brings caches and allocators up, and compiles.
    """
    order = list(contestants)
    shuffle = random.Random(0).shuffle
    readings: dict[str, list[float]] = {name: [] for name in order}
    for round_number in range(-1, rounds):
        shuffle(order)
        for name in order:
            sleep(PAUSE)
            reading = contestants[name]()
            if round_number >= 0:
                readings[name].append(reading)
    return {name: np.array(values) for name, values in readings.items()}


def race(contestants: Mapping[str, Step], pace: Pace) -> dict[str, Array]:
    """Return the time of a step in microseconds, one number per round (rounds,), per contestant.

    It is the median of one turn of many steps, which begins with untimed ones that bring caches
    and threads back.
    """

    def turn(step: Step) -> float:
        _times(step, 0.2 * pace.seconds)
        return 1e6 * float(np.median(_times(step, pace.seconds)))

    steps = {name: lambda step=step: turn(step) for name, step in contestants.items()}
    return in_turn(steps, pace.rounds)


def _times(step: Step, seconds: float) -> list[float]:
    times: list[float] = []
    start = previous = perf_counter()
    while len(times) < 3 or previous - start < seconds:
        step()
        timestamp = perf_counter()
        times.append(timestamp - previous)
        previous = timestamp
    return times


@dataclass(frozen=True)
class Result:
    """The measurements of one race.

    Parameters
    ----------
    labels : mapping
        The first columns of the table.
    values : mapping
        What was measured in each round (rounds,), per contestant.
    pairs : mapping of str to (str, str)
        Ratios by name: above and below, of `values`.
    bars : mapping of str to float
        Of those ratios that have one: "ours/..." must not exceed it, others must reach it.
    unit : str
        Of `values`.
    extra : mapping
        Goes into the file.
    """

    labels: Mapping[str, Any]
    values: Mapping[str, Array]
    pairs: Mapping[str, tuple[str, str]]
    bars: Mapping[str, float] = field(default_factory=dict)
    unit: str = "microseconds"
    extra: Mapping[str, Any] = field(default_factory=dict)

    def ratios(self) -> dict[str, Spread]:
        """Return quartiles of the ratios that ran, each taken within a round."""
        return {
            name: spread(self.values[above] / self.values[below])
            for name, (above, below) in self.pairs.items()
            if above in self.values and below in self.values
        }

    def met(self) -> dict[str, bool]:
        """Return whether the median ratio meets its bar, for every ratio that has one and ran."""
        medians = {name: ratio.median for name, ratio in self.ratios().items()}
        return {
            name: medians[name] <= bar if name.startswith("ours/") else medians[name] >= bar
            for name, bar in self.bars.items()
            if name in medians
        }

    def row(self, contestants: Sequence[str]) -> dict[str, str]:
        """Return the cells of the table, with the values of the contestants in `contestants`."""
        cells = {name: str(value) for name, value in self.labels.items()}
        unit = self.unit.replace("microseconds", "us")
        ran = [name for name in contestants if name in self.values]
        cells |= {f"{name} {unit}": f"{np.median(self.values[name]):,.1f}" for name in ran}
        cells |= {name: f"{ratio.median:.2f}" for name, ratio in self.ratios().items()}
        met = self.met()
        signs = {name: "<=" if name.startswith("ours/") else ">=" for name in self.bars}
        verdicts = {True: "met", False: "MISSED", None: "not run"}
        bars = (f"{n} {signs[n]} {bar:g} {verdicts[met.get(n)]}" for n, bar in self.bars.items())
        return {**cells, "bars": ", ".join(bars) or "-"}

    def as_json(self) -> dict[str, Any]:
        """Return everything measured as plain numbers."""
        values = {name: spread(times)._asdict() for name, times in self.values.items()}
        ratios = {name: ratio._asdict() for name, ratio in self.ratios().items()}
        measured = {self.unit: values, "ratios": ratios, "bars": dict(self.bars)}
        return {**self.labels, **measured, "met": self.met(), **self.extra}


def aligned(rows: Iterable[Mapping[str, str]]) -> str:
    """Return a table of text, a line for each row; '-' where nothing ran."""
    return pd.DataFrame(list(rows)).fillna("-").to_string(index=False)


def output(text: str) -> Path:
    """Return the path of a file to write, refused before hours of measuring if it cannot be."""
    try:
        return check_folder(str(Path(text).parent)) / Path(text).name
    except (ValueError, OSError) as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def parser(doc: str | None, seconds: str = "timed seconds of one turn") -> argparse.ArgumentParser:
    """Return a parser with the arguments that all benchmarks have."""
    argument_parser = argparse.ArgumentParser(description=(doc or "").splitlines()[0])
    argument_parser.add_argument("--rounds", type=at_least_one, help="turns of every contestant")
    argument_parser.add_argument(
        "--json", type=output, help="where to save; a full run: in results/"
    )
    argument_parser.add_argument(
        "--quick", action="store_true", help="few, short rounds; saves nothing"
    )
    argument_parser.add_argument("--seconds", type=above_zero, help=seconds)
    return argument_parser


def paced(args: argparse.Namespace, full: Pace, quick: Pace) -> Pace:
    """Return how long to measure, as the arguments say."""
    pace = quick if args.quick else full
    return Pace(args.rounds or pace.rounds, args.seconds or pace.seconds)


def peer(module: str, title: str) -> Any:
    """Import a contestant; a missing one costs a line, not the run, and is None."""
    try:
        return importlib.import_module(f"benchmarks.{module}")
    except ImportError as error:
        print(f"SKIPPED {title}: {error}; pip install 'bbb-numpy[bench]' brings it")
        return None


def results_path(args: argparse.Namespace, name: str, is_complete: bool) -> Path | None:
    """Return where to save: the file of --json, or of a complete run `name` in results/."""
    path: Path | None = args.json
    if path is None and is_complete:
        return FOLDER / name
    return path


def save(path: Path | None, about: Mapping[str, Any], **parts: Iterable[Result]) -> None:
    """Write results and the machine they are of as JSON, or say that there is no path."""
    if path is None:
        print("partial run: nothing saved; name a file with --json to keep it")
        return
    document = {name: [result.as_json() for result in results] for name, results in parts.items()}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"about": machine() | about} | document, indent=1) + "\n", "utf-8")


def machine() -> dict[str, Any]:
    """Return versions, threads and the BLAS's kernels; neither names nor paths of the machine.

    The kernels are those of a processor family, e.g. 'Haswell' or 'SkylakeX'; the variable
    OPENBLAS_CORETYPE chooses others than the processor's own.
    """
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    pools = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    return {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "blas": f"{blas['name']} {blas['version']}",
        "cores": n_usable_cores(),
        "blas_threads": max((pool["num_threads"] for pool in pools), default=None),
        "blas_kernels": next((pool.get("architecture") for pool in pools), None),
    }
