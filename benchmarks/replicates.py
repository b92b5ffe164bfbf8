"""Time whole trials: one after the other, as replicates of one computation, and in PyTorch.

    python benchmarks/replicates.py            # everything, about ten minutes
    python benchmarks/replicates.py --quick    # a look, a minute
    python benchmarks/replicates.py --cpu      # processor time, where others work too

A trial trains mean field with a learned noise on a training part of the size of Boston's or
Concrete's, minibatches of 32, on one thread. See README.md in this folder.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # to run as a plain script

from bbb_numpy import MLP, Adam, GaussianLikelihood, GaussianPrior, Model, Reparameterised
from bbb_numpy.training import Recipe, fit, start
from bbb_studies.replicates import fit_replicates
from benchmarks import racing
from benchmarks.problems import Array
from benchmarks.racing import FOLDER, Result, spread

ALONE, USUAL, FAST = "one at a time", "PyTorch layers loop", "PyTorch flat fused"
REPLICATES = (5, 20)
BATCH = 32
OPTIMIZER = Adam(1e-2)


@dataclass(frozen=True)
class Shape:
    """What is trained: widths, rows N of the training part, weight samples S; and how long."""

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
    def recipe(self) -> Recipe:
        """What both ways of ours are told."""
        return Recipe(OPTIMIZER, epochs=self.epochs, batch_size=BATCH, samples=self.samples)

    def data(self, count: int) -> tuple[Array, Array]:
        """Return the rows of `count` trials, (R, N, d_in) and (R, N, 1)."""
        noisy = (self.rows, self.sizes[0] + 1)  # each trial its own, whatever `count`
        draws = [np.random.default_rng(trial).standard_normal(noisy) for trial in range(count)]
        x, noise = np.stack(draws)[..., :-1], np.stack(draws)[..., -1:]
        y = np.sin(x[..., :1]) + 0.3 * noise
        return x.astype(self.dtype), y.astype(self.dtype)

    def begin(self, count: int) -> tuple[list[np.random.Generator], list[Any]]:
        """Return generators and starting states of `count` trials."""
        rngs = [np.random.default_rng(seed) for seed in range(count)]
        return rngs, [start(self.estimator, rng, OPTIMIZER, self.dtype) for rng in rngs]


Trial = tuple[int, Callable[[], Any]]  # how many trials a call makes, and the call


def contestants(shape: Shape, peer: Any) -> dict[str, Trial]:
    """Return everybody who can do trials of this shape."""
    out: dict[str, Trial] = {ALONE: (1, partial(alone, shape))}
    for count in REPLICATES:
        out[f"{count} together"] = (count, partial(together, shape, count))
    if peer is not None:
        for name in (USUAL, FAST):
            out[name] = (1, partial(torch_trials, peer, shape, 1, name))
        for count in REPLICATES:
            batched = partial(torch_trials, peer, shape, count, FAST)
            out[f"PyTorch, {count} batched"] = (count, batched)
    return out


def alone(shape: Shape) -> Any:
    """Do one trial by `training.fit`."""
    (rng,), (state,) = shape.begin(1)
    x, y = shape.data(1)
    return fit(shape.estimator, state, x[0], y[0], shape.recipe, rng=rng, progress=False)


def together(shape: Shape, count: int) -> Any:
    """Do `count` trials by `fit_replicates`."""
    rngs, states = shape.begin(count)
    x, y = shape.data(count)
    rows, estimators = (list(x), list(y)), [shape.estimator] * count
    return fit_replicates(estimators, states, *rows, shape.recipe, rngs=rngs, progress=False)


def torch_trials(peer: Any, shape: Shape, count: int, name: str) -> Any:
    """Do `count` trials in PyTorch, as one batched computation."""
    _, states = shape.begin(count)
    _, form, adam = name.split()
    trials = peer.Trials(
        *(shape.estimator, [state.theta for state in states], shape.data(count)),
        *(shape.samples, BATCH, OPTIMIZER.learning_rate, form, adam),
    )
    trials.fit(shape.epochs)
    return trials


def race(
    entrants: dict[str, Trial], rounds: int, clock: Callable[[], float] = perf_counter
) -> dict[str, Array]:
    """Return the seconds of one trial in each round (rounds,), per contestant."""

    def turn(count: int, call: Callable[[], Any]) -> float:
        before = clock()
        call()
        return (clock() - before) / count

    return racing.in_turn({name: partial(turn, *who) for name, who in entrants.items()}, rounds)


def shapes(epochs: int, dtypes: Sequence[str]) -> list[Shape]:
    """Return what is timed: two sizes of training part, S = 1 and 10."""
    return [
        Shape(sizes, rows, samples, dtype, epochs)
        for dtype in dtypes
        for sizes, rows in (((13, 50, 1), 455), ((8, 50, 1), 927))
        for samples in (1, 10)
    ]


def row(result: Result) -> dict[str, str]:
    """Return the cells of the table: trials per second, and speed-up in brackets."""
    ups = {name: f" ({up.median:.2f}x)" for name, up in result.ratios().items()}
    rates = {
        name: f"{1.0 / float(np.median(seconds)):.2f}{ups.get(name, '')}"
        for name, seconds in result.times.items()
    }
    return {name: str(value) for name, value in result.what.items()} | rates


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = racing.parser(__doc__)
    parser.add_argument("--epochs", type=int, help="epochs of a trial; default 40")
    parser.add_argument("--dtypes", nargs="+", choices=("float32", "float64"))
    text = "count processor time, for a busy machine"
    parser.add_argument("--cpu", action="store_true", help=text)
    args = parser.parse_args(argv)
    rounds, epochs = (
        args.rounds or (2 if args.quick else 7),
        args.epochs or (2 if args.quick else 40),
    )
    peer = racing.peer("peer_torch", "PyTorch")
    if peer:
        peer.torch.set_num_threads(1)
    clock, measured = process_time if args.cpu else perf_counter, []
    with threadpool_limits(1, "blas"):
        about = {**racing.machine(), "threads": 1, "rounds": rounds, "clock": clock.__name__}
        for shape in shapes(epochs, args.dtypes or ("float32", "float64")):
            what = {"network": "-".join(map(str, shape.sizes)), "rows": shape.rows}
            what |= {"samples": shape.samples, "dtype": shape.dtype, "epochs": epochs}
            print(f"timing {what}", file=sys.stderr)
            times = race(contestants(shape, peer), rounds, clock)
            pairs = {name: (ALONE, name) for name in times if name != ALONE}
            rates = {name: spread(1.0 / seconds)._asdict() for name, seconds in times.items()}
            measured.append(Result(what, times, pairs, more={"trials_per_second": rates}))
    if peer:
        about["peers"] = {"PyTorch": peer.VERSION}
    print(racing.aligned(map(row, measured)))
    full = peer and not args.quick and not args.dtypes
    path = args.json or (FOLDER / "replicates.json" if full else None)
    racing.save(path, {"about": about, "results": [result.as_json() for result in measured]})
    return 0


if __name__ == "__main__":
    sys.exit(main())
