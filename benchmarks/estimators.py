"""Time one training step of every estimator against its floor and PyTorch, in one run.

    python benchmarks/estimators.py            # everything, about ten minutes
    python benchmarks/estimators.py --quick    # a look

A step is: draw the noise, forward, backward, Adam; float32. See README.md in this folder.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # to run as a plain script

from benchmarks import floor, racing
from benchmarks.problems import PLAIN, PROBLEMS, Problem, Step, cases, ours
from benchmarks.racing import Pace, Result, aligned, race

ESTIMATOR_PACE = Pace(rounds=12, seconds=0.15)
QUICK_ESTIMATOR_PACE = Pace(rounds=3, seconds=0.01)
ESTIMATOR_RATIOS = {
    "ours/floor": ("ours", "floor"),
    "PyTorch/ours": ("PyTorch", "ours"),
    "ours/plain": ("ours", "plain"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return 0 even where a bar is missed: this measures, it judges not."""
    args = racing.parser(__doc__).parse_args(argv)
    torch = racing.peer("peer_torch", "PyTorch")
    pace = racing.paced(args, ESTIMATOR_PACE, QUICK_ESTIMATOR_PACE)
    measured: list[Result] = []
    for problem in PROBLEMS:
        print(f"timing {problem.name}, {problem.rows} rows, S = {problem.samples}", file=sys.stderr)
        measured += measure(problem, torch, pace)
    print(aligned(result.row(("ours",)) for result in measured))
    peers = {"PyTorch": torch.VERSION} if torch else {}
    path = racing.results_path(args, "estimators.json", bool(torch) and not args.quick)
    about = {"dtype": "float32", "peers": peers, **pace._asdict()}
    racing.save(path, about, results=measured)
    return 0


def measure(problem: Problem, torch: Any, pace: Pace) -> list[Result]:
    """Race all estimators, floors and peers of one network against each other, in one run."""
    steps: dict[tuple[str, str], Step] = {}
    for case in cases(problem):
        steps[case.estimator_name, "ours"] = ours(case, case.start().theta)
        steps[case.estimator_name, "floor"] = floor.step(case)
        if torch:
            steps[case.estimator_name, "PyTorch"] = torch.step(case)
    times = race({" | ".join(key): step for key, step in steps.items()}, pace)
    results = []
    for case in cases(problem):
        times_of_case = {
            who: times[f"{name} | {who}"] for name, who in steps if name == case.estimator_name
        }
        if case.samples == problem.samples and case.estimator_name != PLAIN:
            times_of_case["plain"] = times[f"{PLAIN} | ours"]
        labels = {"estimator": case.estimator_name, "network": case.name, "rows": case.rows}
        results.append(
            Result(
                {**labels, "samples": case.samples},
                times_of_case,
                ESTIMATOR_RATIOS,
                dict(case.bars),
            )
        )
    return results


if __name__ == "__main__":
    sys.exit(main())
