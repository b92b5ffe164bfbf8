"""Time one training step of bbb_numpy against its floor and its peers, in one run.

    python benchmarks/step_time.py            # everything, about eight minutes
    python benchmarks/step_time.py --quick    # a look, a few seconds per network
    python benchmarks/step_time.py --memory   # peak memory instead of time

A step is: draw the noise, forward, backward, Adam; float32. See README.md in this folder.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # to run as a plain script

from benchmarks import floor, memory, ours, results
from benchmarks.problems import PROBLEMS, Problem, Step
from benchmarks.round_robin import Pace, fastest, race

RESULTS = Path(__file__).resolve().parent / "results" / "step_time.json"
NAMES = ("ours", "floor", "torch", "jax", "sklearn")
PEERS = {"torch": "PyTorch", "jax": "JAX", "sklearn": "scikit-learn"}
FULL, QUICK = Pace(rounds=20, seconds=0.3), Pace(rounds=5, seconds=0.01)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return 0 even where a bar is missed: this measures, it judges not."""
    args = parse(argv)
    if args.memory:
        print(results.aligned(memory.table([memory.peak(p) for p in memory.GROWTH])))
        return 0
    peers = load(args.only)
    pace = QUICK if args.quick else FULL
    pace = pace._replace(rounds=args.rounds or pace.rounds, seconds=args.seconds or pace.seconds)
    measured = []
    for problem in PROBLEMS:
        print(f"timing {problem.name}, {problem.rows} rows, S = {problem.samples}", file=sys.stderr)
        measured.append(measure(problem, args.only, peers, pace))
    print(results.aligned(results.table(measured)))
    for result in measured:
        for line in results.notes(result):
            print(line)
    path = args.json or (RESULTS if complete(args, peers) else None)
    if path:
        path.parent.mkdir(parents=True, exist_ok=True)
        document = results.as_json(measured, about(peers, pace))
        path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    else:
        print("partial run: nothing saved; name a file with --json to keep it")
    return 0


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """Read the arguments."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=_positive(int), help="turns of every contestant")
    parser.add_argument("--seconds", type=_positive(float), help="timed seconds of one turn")
    parser.add_argument(
        "--only", type=_names, default=NAMES, help=f"some of {','.join(NAMES)}, comma-separated"
    )
    parser.add_argument("--json", type=Path, help="where to save; default: results/step_time.json")
    parser.add_argument("--quick", action="store_true", help="few, short rounds; saves nothing")
    parser.add_argument("--memory", action="store_true", help="peak memory of a step instead")
    return parser.parse_args(argv)


def _positive(kind: Any) -> Any:
    def convert(text: str) -> Any:
        value = kind(text)
        if not 0 < value < float("inf"):
            raise argparse.ArgumentTypeError(f"must be positive; got {text}")
        return value

    return convert


def _names(text: str) -> tuple[str, ...]:
    chosen = tuple(part.strip() for part in text.split(","))
    for name in chosen:
        if name not in NAMES:
            raise argparse.ArgumentTypeError(
                f"{name!r} is no contestant; choose from {','.join(NAMES)}"
            )
    return chosen


def load(names: Sequence[str]) -> dict[str, ModuleType]:
    """Import the peers asked for; a missing one costs a line, not the run."""
    modules = {}
    for name, title in PEERS.items():
        if name in names:
            try:
                modules[name] = importlib.import_module(f"benchmarks.peer_{name}")
            except ImportError as error:
                print(f"SKIPPED {title}: {error}; pip install 'bbb-numpy[bench]' brings it")
    return modules


def measure(
    problem: Problem, names: Sequence[str], peers: dict[str, ModuleType], pace: Pace
) -> results.Result:
    """Choose the fastest variant of each peer, then race everybody."""
    contestants: dict[str, Step] = {}
    chosen: dict[str, str] = {}
    variants: dict[str, float] = {}
    if "ours" in names:
        contestants |= ours.contestants(problem)
    if "floor" in names:
        contestants |= floor.contestants(problem)
    heat = pace._replace(rounds=max(3, pace.rounds // 5))
    finalists: dict[str, tuple[str, str]] = {}
    for name, module in peers.items():
        title, steps = PEERS[name], module.contestants(problem)
        if len(steps) == 1:
            contestants |= steps
            continue
        best, medians = fastest(steps, heat)
        usual = min((v for v in medians if module.USUAL in v), key=medians.__getitem__)
        finalists[title] = (best, usual)
        contestants |= {variant: steps[variant] for variant in (best, usual)}
        variants |= medians
    times = race(contestants, pace)
    for title, (best, usual) in finalists.items():
        # The short race may have been close; the long one decides between its two finalists.
        winner = min((best, usual), key=lambda variant: float(np.median(times[variant])))
        chosen |= {title: winner, f"{title} usual": usual}
        times |= {title: times[winner], f"{title} usual": times[usual]}
    wanted = {v: t for v, t in times.items() if v not in variants}
    return results.Result(problem, wanted, chosen, variants)


def complete(args: argparse.Namespace, peers: dict[str, ModuleType]) -> bool:
    """Whether this run may replace the committed results: full length, nobody missing."""
    return not args.quick and set(args.only) == set(NAMES) and set(peers) == set(PEERS)


def about(peers: dict[str, ModuleType], pace: Pace) -> dict[str, Any]:
    """Return what one must know to read the numbers."""
    versions = {PEERS[name]: module.VERSION for name, module in peers.items()}
    threads = {"torch_threads": peers["torch"].threads()} if "torch" in peers else {}
    return {**results.machine(), **threads, "peers": versions, **pace._asdict()}


if __name__ == "__main__":
    sys.exit(main())
