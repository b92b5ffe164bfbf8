"""Time whole trials: one after the other, as replicates of one computation, and in PyTorch.

    python benchmarks/replicates.py            # everything, about ten minutes
    python benchmarks/replicates.py --quick    # a look, a minute
    python benchmarks/replicates.py --cpu      # processor time, where others work too

A trial trains mean field with a learned noise on a training part of the size of Boston's or
Concrete's, minibatches of 32, on one thread. See README.md in this folder.
"""

from __future__ import annotations

import argparse
import importlib
import json
import random
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter, process_time, sleep
from types import ModuleType
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # to run as a plain script

from bbb_numpy import MLP, Adam, GaussianLikelihood, GaussianPrior, Model, Reparameterised
from bbb_numpy.training import Recipe, fit, start
from bbb_studies.replicates import fit_replicates
from benchmarks import results
from benchmarks.problems import Array
from benchmarks.round_robin import Spread, spread

RESULTS = Path(__file__).resolve().parent / "results" / "replicates.json"
ALONE, USUAL, FAST = "one at a time", "PyTorch layers loop", "PyTorch flat fused"
REPLICATES = (5, 20)
BATCH = 32
OPTIMIZER = Adam(1e-2)


@dataclass(frozen=True)
class Shape:
    """What is trained, and how long.

    Parameters
    ----------
    sizes : tuple of int
        Widths of the network.
    rows : int
        Rows N of the training part.
    samples : int
        Weight samples S per step.
    dtype : str
    epochs : int
    """

    sizes: tuple[int, ...]
    rows: int
    samples: int
    dtype: str
    epochs: int

    @property
    def estimator(self) -> Reparameterised:
        """The estimator of every trial."""
        likelihood = GaussianLikelihood(0.5, learn=True)
        return Reparameterised(Model(MLP(self.sizes), GaussianPrior(1.0), likelihood))

    @property
    def name(self) -> str:
        """Widths and rows."""
        return f"{'-'.join(map(str, self.sizes))}, {self.rows} rows"

    def data(self, count: int) -> tuple[Array, Array]:
        """Return the rows of `count` trials, (R, N, d_in) and (R, N, 1)."""
        noisy = (self.rows, self.sizes[0] + 1)  # each trial its own, whatever `count`
        draws = [np.random.default_rng(trial).standard_normal(noisy) for trial in range(count)]
        x, noise = np.stack(draws)[..., :-1], np.stack(draws)[..., -1:]
        y = np.sin(x[..., :1]) + 0.3 * noise
        return x.astype(self.dtype), y.astype(self.dtype)


@dataclass(frozen=True)
class Result:
    """Seconds of one trial in each round (rounds,), per contestant."""

    shape: Shape
    seconds: Mapping[str, Array]

    def speed_ups(self) -> dict[str, Spread]:
        """Quartiles of the time of one at a time over each of the others, within a round."""
        alone = self.seconds[ALONE]
        return {n: spread(alone / s) for n, s in self.seconds.items() if n != ALONE}


Trial = tuple[int, Callable[[], Any]]  # how many trials a call makes, and the call


def contestants(shape: Shape, peer: ModuleType | None) -> dict[str, Trial]:
    """Return everybody who can do trials of this shape."""
    out: dict[str, Trial] = {ALONE: (1, partial(alone, shape))}
    for count in REPLICATES:
        out[f"{count} together"] = (count, partial(together, shape, count))
    if peer is not None:
        forms = {USUAL: ("layers", "loop"), FAST: ("flat", "fused")}
        for name, form in forms.items():
            out[name] = (1, partial(torch_trials, peer, shape, 1, *form))
        for count in REPLICATES:
            batched = partial(torch_trials, peer, shape, count, *forms[FAST])
            out[f"PyTorch, {count} batched"] = (count, batched)
    return out


def begin(shape: Shape, count: int) -> tuple[list[np.random.Generator], list[Any]]:
    """Return generators and starting states of `count` trials."""
    rngs = [np.random.default_rng(seed) for seed in range(count)]
    return rngs, [start(shape.estimator, rng, OPTIMIZER, shape.dtype) for rng in rngs]


def recipe(shape: Shape) -> Recipe:
    """Return what both ways of ours are told."""
    return Recipe(OPTIMIZER, epochs=shape.epochs, batch_size=BATCH, samples=shape.samples)


def alone(shape: Shape) -> Any:
    """Do one trial by `training.fit`."""
    (rng,), (state,) = begin(shape, 1)
    x, y = shape.data(1)
    return fit(shape.estimator, state, x[0], y[0], recipe(shape), rng=rng, progress=False)


def together(shape: Shape, count: int) -> Any:
    """Do `count` trials by `fit_replicates`."""
    rngs, states = begin(shape, count)
    x, y = shape.data(count)
    estimators = [shape.estimator] * count
    rows = list(x), list(y)
    return fit_replicates(estimators, states, *rows, recipe(shape), rngs=rngs, progress=False)


def torch_trials(peer: ModuleType, shape: Shape, count: int, form: str, adam: str) -> Any:
    """Do `count` trials in PyTorch, as one batched computation."""
    _, states = begin(shape, count)
    trials = peer.Trials(
        *(shape.estimator, [state.theta for state in states], *shape.data(count)),
        *(shape.samples, BATCH, OPTIMIZER.learning_rate, form, adam),
    )
    trials.fit(shape.epochs)
    return trials


def race(
    entrants: Mapping[str, Trial],
    rounds: int,
    clock: Callable[[], float] = perf_counter,
    pause: float = 0.05,
) -> dict[str, Array]:
    """Return the seconds of one trial in each round (rounds,), per contestant.

    One turn is one call. The order changes from round to round, as in `round_robin.race`.
    """
    order, shuffle = list(entrants), random.Random(0).shuffle
    seconds: dict[str, list[float]] = {name: [] for name in order}
    for turn in range(-1, rounds):  # the first round brings caches and allocators up
        shuffle(order)
        for name in order:
            count, call = entrants[name]
            sleep(pause)
            before = clock()
            call()
            if turn >= 0:
                seconds[name].append((clock() - before) / count)
    return {name: np.array(values) for name, values in seconds.items()}


def shapes(epochs: int, dtypes: Sequence[str]) -> list[Shape]:
    """Return what is timed: two sizes of training part, S = 1 and 10."""
    return [
        Shape(sizes, rows, samples, dtype, epochs)
        for dtype in dtypes
        for sizes, rows in (((13, 50, 1), 455), ((8, 50, 1), 927))
        for samples in (1, 10)
    ]


def markdown(measured: Sequence[Result]) -> str:
    """Return the table: trials per second, and speed-up over one at a time in brackets."""
    names = list(measured[0].seconds)
    lines = [
        "| trial | S | dtype | " + " | ".join(names) + " |",
        "|---" * (3 + len(names)) + "|",
    ]
    for result in measured:
        ups = result.speed_ups()
        cells = [result.shape.name, str(result.shape.samples), result.shape.dtype]
        for name in names:
            rate = f"{1.0 / float(np.median(result.seconds[name])):.2f}"
            cells.append(f"{rate} ({ups[name].median:.2f}x)" if name in ups else rate)
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def as_json(measured: Sequence[Result], about: dict[str, Any]) -> dict[str, Any]:
    """Return everything measured as plain numbers."""
    return {
        "about": about,
        "results": [
            {
                "network": list(result.shape.sizes),
                "rows": result.shape.rows,
                "samples": result.shape.samples,
                "dtype": result.shape.dtype,
                "epochs": result.shape.epochs,
                "trials_per_second": {
                    name: spread(1.0 / s)._asdict() for name, s in result.seconds.items()
                },
                "speed_up": {name: up._asdict() for name, up in result.speed_ups().items()},
            }
            for result in measured
        ],
    }


def one_thread() -> AbstractContextManager[Any]:
    """Limit NumPy's BLAS to one thread; with threadpoolctl, otherwise say how."""
    try:
        limits = importlib.import_module("threadpoolctl").threadpool_limits(1)
    except ImportError:
        print("without threadpoolctl, set OPENBLAS_NUM_THREADS=1 for one thread", file=sys.stderr)
        return nullcontext()
    held: AbstractContextManager[Any] = limits
    return held


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, help="turns of every contestant")
    parser.add_argument("--epochs", type=int, help="epochs of a trial; default 40")
    parser.add_argument("--dtypes", nargs="+", choices=("float32", "float64"))
    parser.add_argument("--quick", action="store_true", help="short; saves nothing")
    parser.add_argument(
        "--cpu", action="store_true", help="count processor time, for a busy machine"
    )
    parser.add_argument("--json", type=Path, help="where to save; default: results/")
    args = parser.parse_args(argv)
    rounds = args.rounds or (2 if args.quick else 7)
    epochs = args.epochs or (2 if args.quick else 40)
    try:
        peer = importlib.import_module("benchmarks.peer_torch_trial")
        peer.one_thread()
    except ImportError as error:
        print(f"SKIPPED PyTorch: {error}; pip install 'bbb-numpy[bench]' brings it")
        peer = None
    clock = process_time if args.cpu else perf_counter
    measured = []
    with one_thread():
        for shape in shapes(epochs, args.dtypes or ("float32", "float64")):
            print(f"timing {shape.name}, S = {shape.samples}, {shape.dtype}", file=sys.stderr)
            measured.append(Result(shape, race(contestants(shape, peer), rounds, clock)))
        machine = {**results.machine(), "threads": 1, "rounds": rounds, "clock": clock.__name__}
    del machine["dtype"]
    if peer is not None:
        machine["peers"] = {"PyTorch": peer.VERSION}
    print(markdown(measured))
    path = args.json or (None if args.quick or args.dtypes or peer is None else RESULTS)
    if path:
        path.parent.mkdir(parents=True, exist_ok=True)
        document = as_json(measured, machine)
        path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    else:
        print("partial run: nothing saved; name a file with --json to keep it")
    return 0


if __name__ == "__main__":
    sys.exit(main())
