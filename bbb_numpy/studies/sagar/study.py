"""Sagar's Algorithm 1 where the posterior is known: as printed it fails, corrected it works.

The corrected algorithm is the package's own (`SelfNormalised` with `EUBO`, G7 and G8); the
printed lines are in `bbb_numpy.studies.sagar.printed`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path as FilePath
from typing import Any

import numpy as np

from bbb_numpy.progress import Done, counted, unseen
from bbb_numpy.progress import steps as count_steps
from bbb_numpy.studies.comparing import write

from .. import linear_gaussian as exactly
from ..linear_gaussian import Regression
from . import plots, tables
from .models import (
    VARIANTS,
    ByBatch,
    Path,
    Study,
    Variant,
    correlated_regression,
    distance,
    follow,
    gaussian_mean,
    minibatch_fixed_point,
    slopes_of_rho,
    train_with,
    weight_rows,
)

__all__ = ["measure", "reproduce"]

ON_REGRESSION, APART = ("corrected", "through", "equation 5"), ("corrected", "through", "one")
BATCHES = (1, 2, 5, 10, 20)


def measure(
    seed: int, steps: int, samples: tuple[int, ...], runs: int, done: Done = unseen
) -> Study:
    """Train every reading of the algorithm on both problems; arguments as for `reproduce`.

    `done` is told how often the algorithm has run.
    """
    rngs = iter(np.random.default_rng(seed).spawn(1000))
    mean, regression = gaussian_mean(next(rngs)), correlated_regression(next(rngs))
    paths = {
        name: follow(v, mean, next(rngs), steps) for name, v in counted(VARIANTS.items(), done)
    }
    of_regression = {
        name: follow(VARIANTS[name], regression, next(rngs), steps)
        for name in counted(ON_REGRESSION, done)
    }
    moved = mean._replace(y=mean.y + 10.0)
    apart = {
        name: distance(VARIANTS[name], mean, moved, seed, steps) for name in counted(APART, done, 2)
    }
    slopes = slopes_of_rho(mean, next(rngs), max(samples))
    by_batch = []
    for batch in counted(BATCHES, done):
        path = follow(Variant("", batch_size=batch), mean, next(rngs), steps)
        predicted = minibatch_fixed_point(mean, batch)[1]
        by_batch.append(ByBatch(batch, float(path.deviations[-1, -1]), predicted))
    return Study(
        steps=steps,
        mean=mean,
        regression=regression,
        paths=paths,
        of_regression=of_regression,
        apart=apart,
        slopes=slopes,
        by_batch=by_batch,
        by_samples=[
            train_with(m, regression, next(rngs), steps, runs) for m in counted(samples, done, runs)
        ],
        weights=weight_rows(next(rngs)),
    )


def reproduce(
    out: FilePath,
    seed: int = 0,
    *,
    steps: int = 2000,
    samples: tuple[int, ...] = (1, 2, 5, 10, 30, 100, 300, 1000),
    runs: int = 5,
    progress: bool | None = None,
) -> str:
    """Run everything, write pictures and ``numbers.json`` into `out`, return the tables.

    Steps of each training, the M that are compared, and runs of each.
    """
    work = len(VARIANTS) + len(ON_REGRESSION) + 2 * len(APART) + len(BATCHES) + runs * len(samples)
    with count_steps(work, progress) as done:
        found = measure(seed, steps, samples, runs, done)
    corrected = found.of_regression["corrected"]
    pictures = {
        "trajectories": plots.trajectories(found.mean, found.paths, found.regression, corrected),
        "samples": plots.samples(found.regression, found.by_samples, found.by_batch),
    }
    numbers = {
        "gaussian mean": _final(found.mean, found.paths),
        "regression": _final(found.regression, found.of_regression),
        "paths apart": found.apart,
        "d U / d rho": found.slopes,
        "by batch": found.by_batch,
        "by samples": found.by_samples,
        "weights": found.weights,
    }
    write(out, pictures, numbers)
    return tables.lay_out(found)


def _final(problem: Regression, paths: Mapping[str, Path]) -> dict[str, dict[str, Any]]:
    best = exactly.inclusive_optimum(exactly.exact(problem))
    ends = {"exact": best, **{name: path.last for name, path in paths.items()}}
    return {name: {"mean": q.mean, "deviation": q.deviation} for name, q in ends.items()}
