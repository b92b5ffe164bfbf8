"""Time one training step of every estimator against its floor and PyTorch, in one run.

    python benchmarks/estimators.py            # everything, about ten minutes
    python benchmarks/estimators.py --quick    # a look

A step is: draw the noise, forward, backward, Adam; float32. See README.md in this folder.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # to run as a plain script

from benchmarks import ours, results
from benchmarks.cases import PLAIN, Case, cases, floor_step
from benchmarks.problems import PROBLEMS, Array, Problem, Step
from benchmarks.round_robin import Pace, Spread, race, spread

RESULTS = Path(__file__).resolve().parent / "results" / "estimators.json"
FULL, QUICK = Pace(rounds=12, seconds=0.15), Pace(rounds=3, seconds=0.01)
RATIOS = (("ours/floor", "ours", "floor"), ("PyTorch/ours", "PyTorch", "ours"))
PLAIN_RATIO = ("ours/plain", "ours", "plain")


@dataclass(frozen=True)
class Timed:
    """One estimator on one network: seconds of a step in each round (rounds,), per contestant.

    'plain' is the plain estimator with the same S, where it was in the same race.
    """

    case: Case
    times: dict[str, Array]

    def ratios(self) -> dict[str, Spread]:
        """Quartiles of the ratios, each taken within a round; only those that ran."""
        return {
            name: spread(self.times[above] / self.times[below])
            for name, above, below in (*RATIOS, PLAIN_RATIO)
            if above in self.times and below in self.times
        }

    def met(self) -> dict[str, bool]:
        """Whether the median ratio meets its bar, for every ratio that has one and ran."""
        ratios = self.ratios()
        return {
            name: results.meets(name, ratios[name].median, bar)
            for name, bar in self.case.bars
            if name in ratios
        }


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return 0 even where a bar is missed: this measures, it judges not."""
    args = parse(argv)
    torch = peer()
    pace = QUICK if args.quick else FULL
    pace = pace._replace(rounds=args.rounds or pace.rounds, seconds=args.seconds or pace.seconds)
    timed: list[Timed] = []
    for problem in PROBLEMS:
        print(f"timing {problem.name}, {problem.rows} rows, S = {problem.samples}", file=sys.stderr)
        timed += measure(problem, torch, pace)
    print(results.aligned(table(timed)))
    path = args.json or (RESULTS if torch and not args.quick else None)
    if path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            json.dumps(as_json(timed, about(torch, pace)), indent=1) + "\n", encoding="utf-8"
        )
    else:
        print("partial run: nothing saved; name a file with --json to keep it")
    return 0


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """Read the arguments."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, choices=range(1, 1001), metavar="R", help="turns")
    parser.add_argument("--seconds", type=float, help="timed seconds of one turn")
    parser.add_argument("--json", type=Path, help="where to save; default: results/estimators.json")
    parser.add_argument("--quick", action="store_true", help="few, short rounds; saves nothing")
    return parser.parse_args(argv)


def peer() -> ModuleType | None:
    """Import the PyTorch peer; a missing one costs a line, not the run."""
    try:
        return importlib.import_module("benchmarks.peer_torch_estimators")
    except ImportError as error:
        print(f"SKIPPED PyTorch: {error}; pip install 'bbb-numpy[bench]' brings it")
        return None


def measure(problem: Problem, torch: ModuleType | None, pace: Pace) -> list[Timed]:
    """Race all estimators, floors and peers of one network against each other, in one run."""
    contestants: dict[tuple[str, str], Step] = {}
    for case in cases(problem):
        contestants[case.kind, "ours"] = ours.step(case, case.start().theta)
        contestants[case.kind, "floor"] = floor_step(case)
        if torch:
            contestants[case.kind, "PyTorch"] = torch.step(case)
    times = race({" | ".join(key): step for key, step in contestants.items()}, pace)
    out = []
    for case in cases(problem):
        mine = {
            who: times[f"{case.kind} | {who}"] for kind, who in contestants if kind == case.kind
        }
        if case.samples == problem.samples and case.kind != PLAIN:
            mine["plain"] = times[f"{PLAIN} | ours"]
        out.append(Timed(case, mine))
    return out


def table(timed: list[Timed]) -> list[list[str]]:
    """Return the rows of the printed table, header first; '-' where nothing ran."""
    names = [name for name, _, _ in (*RATIOS, PLAIN_RATIO)]
    rows = [["estimator", "network", "rows", "S", "ours us", *names, "bar", "met"]]
    for one in timed:
        case, ratios, met = one.case, one.ratios(), one.met()
        row = [case.kind, case.name, str(case.rows), str(case.samples)]
        row.append(f"{1e6 * float(np.median(one.times['ours'])):.1f}")
        row += [f"{ratios[name].median:.2f}" if name in ratios else "-" for name in names]
        row.append(", ".join(f"{name} <= {bar:g}" for name, bar in case.bars) or "-")
        row.append(", ".join("yes" if ok else "NO" for ok in met.values()) or "-")
        rows.append(row)
    return rows


def as_json(timed: list[Timed], about: dict[str, Any]) -> dict[str, Any]:
    """Return everything measured as plain numbers; times in microseconds."""
    return {
        "about": about,
        "results": [
            {
                "estimator": one.case.kind,
                "network": list(one.case.sizes),
                "rows": one.case.rows,
                "samples": one.case.samples,
                "microseconds": {
                    name: spread(1e6 * times)._asdict() for name, times in one.times.items()
                },
                "ratios": {name: ratio._asdict() for name, ratio in one.ratios().items()},
                "bars": dict(one.case.bars),
                "met": one.met(),
            }
            for one in timed
        ],
    }


def about(torch: ModuleType | None, pace: Pace) -> dict[str, Any]:
    """Return what one must know to read the numbers."""
    peers = {"PyTorch": torch.VERSION} if torch else {}
    return {**results.machine(), "peers": peers, **pace._asdict()}


if __name__ == "__main__":
    sys.exit(main())
