"""Time one training step of bbb_numpy against its floor and its peers, in one run.

    python benchmarks/step_time.py            # everything, a quarter of an hour
    python benchmarks/step_time.py --quick    # a look, a few seconds per network
    python benchmarks/step_time.py --memory   # peak memory instead of time

A step is: draw the noise, forward, backward, Adam; float32. See README.md in this folder.
"""

from __future__ import annotations

import argparse
import sys
import tracemalloc
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # to run as a plain script

from benchmarks import floor, problems, racing
from benchmarks.problems import PROBLEMS, Problem, Step
from benchmarks.racing import Pace, Result, aligned, race

NAMES = ("ours", "floor", "torch", "jax", "sklearn")
PEER_TITLES = {"torch": "PyTorch", "jax": "JAX", "sklearn": "scikit-learn"}
STEP_PACE = Pace(rounds=20, seconds=0.3)
QUICK_STEP_PACE = Pace(rounds=5, seconds=0.01)
# Bars are for the usual form of a peer (one array per layer, default optimiser and generator);
# beside it stands the fastest form.
STEP_RATIOS = {
    "ours/floor": ("ours", "floor"),
    "ours/tight": ("ours", "tight floor"),
    "PyTorch/ours": ("PyTorch usual", "ours"),
    "PyTorch fastest/ours": ("PyTorch", "ours"),
    "JAX/ours": ("JAX usual", "ours"),
    "JAX fastest/ours": ("JAX", "ours"),
    "sklearn/ours": ("scikit-learn", "ours"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return 0 even where a bar is missed: this measures, it judges not."""
    args = parse(argv)
    if args.memory:
        print(aligned(peak(problem).row() for problem in GROWTH))
        return 0
    peer_names = [name for name in PEER_TITLES if name in args.only]
    peers = {name: racing.peer(f"peer_{name}", PEER_TITLES[name]) for name in peer_names}
    peers = {name: module for name, module in peers.items() if module}
    pace = racing.paced(args, STEP_PACE, QUICK_STEP_PACE)
    measured = []
    for problem in PROBLEMS:
        print(f"timing {problem.name}, {problem.rows} rows, S = {problem.samples}", file=sys.stderr)
        measured.append(measure(problem, args.only, peers, pace))
    print(aligned(result.row(("ours", "floor", "tight floor")) for result in measured))
    for result in measured:
        print(notes(result))
    versions = {PEER_TITLES[name]: module.VERSION for name, module in peers.items()}
    threads = {"torch_threads": peers["torch"].threads()} if "torch" in peers else {}
    path = racing.results_path(args, "step_time.json", complete(args, peers))
    about = {"dtype": "float32", **threads, "peers": versions, **pace._asdict()}
    racing.save(path, about, results=measured)
    return 0


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """Read the arguments."""
    parser = racing.parser(__doc__)
    text = f"some of {','.join(NAMES)}, comma-separated"
    parser.add_argument("--only", default=",".join(NAMES), help=text)
    parser.add_argument("--memory", action="store_true", help="peak memory of a step instead")
    args = parser.parse_args(argv)
    args.only = args.only.split(",")
    if unknown := set(args.only) - set(NAMES):
        parser.error(f"--only: {sorted(unknown)} are no contestants; choose from {','.join(NAMES)}")
    return args


def complete(args: argparse.Namespace, peers: dict[str, Any]) -> bool:
    """Return whether this run may replace the stored results: full length, nobody missing."""
    return not args.quick and set(args.only) == set(NAMES) and set(peers) == set(PEER_TITLES)


def ours(problem: Problem) -> dict[str, Step]:
    """Return the step early in training, and late, when some standard deviations have grown."""
    early = problem.start().theta
    late = early.copy()
    rho = problem.estimator.layout.views(late)["rho"]
    # Weights that the data leave free return to the prior, sigma = 1 at rho = 0.54: the two
    # signs of rho in one array are the slow case of softplus.
    rho[...] = np.random.default_rng(1).uniform(-5.0, 1.0, rho.shape)
    return {"ours": problems.ours(problem, early), "ours late": problems.ours(problem, late)}


def measure(problem: Problem, names: Sequence[str], peers: dict[str, Any], pace: Pace) -> Result:
    """Race everybody, every variant of each peer too, and name its usual and its fastest one."""
    contestants: dict[str, Step] = ours(problem) if "ours" in names else {}
    if "floor" in names:
        for name, tight in (("floor", False), ("tight floor", True)):
            contestants[name] = floor.step(problem, tight)
    for module in peers.values():
        contestants |= module.contestants(problem)
    values = race(contestants, pace)
    chosen = {}
    medians = {name: float(np.median(times)) for name, times in values.items()}
    for name, title in PEER_TITLES.items():
        if variants := [form for form in medians if form.startswith(f"{title} ")]:
            chosen[title] = min(variants, key=medians.__getitem__)
            chosen[f"{title} usual"] = f"{title} {peers[name].USUAL_VARIANT}"
    values |= {title: values[variant] for title, variant in chosen.items()}
    labels = {"network": problem.name, "rows": problem.rows, "samples": problem.samples}
    return Result(labels, values, STEP_RATIOS, dict(problem.bars), extra={"chosen": chosen})


def notes(result: Result) -> str:
    """Return what the table leaves out: the forms of the peers, and ours late in training."""
    facts = []
    for title, variant in result.extra["chosen"].items():
        fact = f"{title}: {variant} {np.median(result.values[title]):.1f} us"
        if "ours" in result.values:
            ratio = np.median(result.values[title] / result.values["ours"])
            fact += f", {ratio:.2f} x ours"
        facts.append(fact)
    if "ours late" in result.values:
        facts.append(f"ours with rho in (-5, 1) {np.median(result.values['ours late']):.1f} us")
    heading = "{network}, {rows} rows, S = {samples}".format(**result.labels)
    return f"{heading}: {'; '.join(facts)}"


# --- memory; one axis grows at a time: samples, rows, width

GROWTH = (
    *(Problem((8, 64, 64, 1), 64, samples) for samples in (1, 4, 16, 64)),
    *(Problem((8, 64, 64, 1), rows, 16) for rows in (256, 1024, 4096)),
    *(Problem((8, width, width, 1), 64, 16) for width in (128, 256, 512)),
)


class Peak(NamedTuple):
    """The most bytes that one step holds at once, and the unit they are judged in."""

    problem: Problem
    bytes: int
    unit: int  # 4 S (P + B * sum of widths): one float32 copy of all weights and activations

    def row(self) -> dict[str, str]:
        """Return the cells of the table; the last is bounded, whatever grows."""
        problem = self.problem
        columns = {"network": problem.name, "rows": str(problem.rows), "S": str(problem.samples)}
        sizes = {"peak bytes": f"{self.bytes:,}", "4 S (P + B widths)": f"{self.unit:,}"}
        return columns | sizes | {"peak / that": f"{self.bytes / self.unit:.2f}"}


def peak(problem: Problem) -> Peak:
    """Measure the first step with fresh buffers; theta, Adam's memory and rows not counted."""
    step = problems.ours(problem, problem.start().theta)
    tracemalloc.start()
    try:
        step()
        size = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    widths = sum(problem.sizes[1:])
    return Peak(problem, size, 4 * problem.samples * (problem.weights + problem.rows * widths))


if __name__ == "__main__":
    sys.exit(main())
