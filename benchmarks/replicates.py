"""Time whole trials: one after the other, and as replicates of one computation.

    python benchmarks/replicates.py            # everything, some minutes
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
from bbb_numpy.training import Recipe, Training, fit, start
from bbb_studies.replicates import fit_replicates
from benchmarks import racing
from benchmarks.racing import Result

ALONE = "one at a time"
TOGETHER = (5, 20)
DTYPES = ("float32", "float64")
BATCH_SIZE = 32
TRIAL_OPTIMIZER = Adam(1e-2)
FULL_LENGTH = (7, 40)  # rounds, and epochs of a trial
QUICK_LENGTH = (2, 2)


@dataclass(frozen=True)
class Shape:
    """What is trained: widths, rows N of the training part, weight samples S; and how long."""

    sizes: tuple[int, ...]
    rows: int
    samples: int
    dtype: str
    epochs: int

    def trials(self, count: int) -> list[Training]:
        """Do `count` trials: one by `training.fit`, several by `fit_replicates`."""
        model = Model(MLP(self.sizes), GaussianPrior(1.0), GaussianLikelihood(0.5, learn=True))
        estimator = Reparameterised(model)
        rngs = [np.random.default_rng(i) for i in range(count)]
        states = [start(estimator, rng, TRIAL_OPTIMIZER, self.dtype) for rng in rngs]
        xs, ys = [], []
        for trial in range(count):  # each its own, whatever `count`
            noisy = np.random.default_rng(trial).standard_normal((self.rows, self.sizes[0] + 1))
            xs.append(noisy[:, :-1].astype(self.dtype))
            ys.append((np.sin(noisy[:, :1]) + 0.3 * noisy[:, -1:]).astype(self.dtype))
        recipe = Recipe(
            TRIAL_OPTIMIZER, epochs=self.epochs, batch_size=BATCH_SIZE, samples=self.samples
        )
        if count == 1:
            return [fit(estimator, states[0], xs[0], ys[0], recipe, rng=rngs[0], progress=False)]
        estimators = [estimator] * count
        return fit_replicates(estimators, states, xs, ys, recipe, rngs=rngs, progress=False)


def rates(shape: Shape, rounds: int, clock: Callable[[], float]) -> dict[str, Any]:
    """Return the trials per second in each round (rounds,), alone and together."""

    def turn(count: int) -> float:
        start_time = clock()
        shape.trials(count)
        return count / (clock() - start_time)

    turns = {f"{count} together": partial(turn, count) for count in TOGETHER}
    return racing.in_turn({ALONE: partial(turn, 1)} | turns, rounds)


def shapes(epochs: int, dtypes: Sequence[str]) -> list[Shape]:
    """Return what is timed: two sizes of training part, S = 1 and 10."""
    return [
        Shape(sizes, rows, samples, dtype, epochs)
        for dtype in dtypes
        for sizes, rows in (((13, 50, 1), 455), ((8, 50, 1), 927))
        for samples in (1, 10)
    ]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = racing.parser(__doc__)
    parser.add_argument("--epochs", type=int, help="epochs of a trial; default 40")
    parser.add_argument("--dtypes", nargs="+", choices=DTYPES, default=DTYPES)
    text = "count processor time, for a busy machine"
    parser.add_argument("--cpu", action="store_true", help=text)
    args = parser.parse_args(argv)
    default_rounds, default_epochs = QUICK_LENGTH if args.quick else FULL_LENGTH
    rounds = args.rounds or default_rounds
    epochs = args.epochs or default_epochs
    clock = process_time if args.cpu else perf_counter
    measured = []
    with threadpool_limits(1, "blas"):
        for shape in shapes(epochs, args.dtypes):
            labels = {"network": "-".join(map(str, shape.sizes)), "rows": shape.rows}
            labels |= {"samples": shape.samples, "dtype": shape.dtype, "epochs": epochs}
            print(f"timing {labels}", file=sys.stderr)
            trials_per_second = rates(shape, rounds, clock)
            pairs = {
                f"{name} / {ALONE}": (name, ALONE) for name in trials_per_second if name != ALONE
            }
            measured.append(Result(labels, trials_per_second, pairs, unit="trials/s"))
        about = {"rounds": rounds, "clock": clock.__name__}
        print(racing.aligned(result.row((ALONE,)) for result in measured))
        is_complete = not args.quick and args.dtypes == DTYPES
        path = racing.results_path(args, "replicates.json", is_complete)
        racing.save(path, about, results=measured)
    return 0


if __name__ == "__main__":
    sys.exit(main())
