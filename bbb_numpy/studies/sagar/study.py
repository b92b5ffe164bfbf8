"""Sagar's Algorithm 1 where the posterior is known: as printed it fails, corrected it works.

The corrected algorithm is the package's own (`SelfNormalised` with `EUBO`, G7 and G8); the
printed lines are in `bbb_numpy.studies.sagar.printed`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path as FilePath
from typing import Any

import numpy as np

from .. import linear_gaussian as exactly
from ..linear_gaussian import Regression
from . import plots, text
from .models import (
    VARIANTS,
    ByBatch,
    Path,
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

__all__ = ["reproduce"]


def reproduce(
    out: FilePath,
    seed: int = 0,
    *,
    steps: int = 2000,
    samples: tuple[int, ...] = (1, 2, 5, 10, 30, 100, 300, 1000),
    runs: int = 5,
) -> str:
    """Run everything, write pictures and ``numbers.json`` into `out`, return the text.

    Parameters
    ----------
    out : Path
        Folder, made if missing.
    seed : int
    steps, samples, runs : int, tuple of int, int
        Fewer for a quick look: steps of each training, the M that are compared, runs of each.
    """
    out.mkdir(parents=True, exist_ok=True)
    rngs = iter(np.random.default_rng(seed).spawn(1000))
    mean, regression = gaussian_mean(next(rngs)), correlated_regression(next(rngs))
    paths = {name: follow(v, mean, next(rngs), steps) for name, v in VARIANTS.items()}
    of_regression = {
        name: follow(VARIANTS[name], regression, next(rngs), steps)
        for name in ("corrected", "through", "equation 5")
    }
    moved = mean._replace(y=mean.y + 10.0)
    apart = {
        name: distance(VARIANTS[name], mean, moved, seed, steps)
        for name in ("corrected", "through", "one")
    }
    slopes = slopes_of_rho(mean, next(rngs), max(samples))
    by_batch = [
        ByBatch(
            batch,
            float(
                follow(Variant("", batch_size=batch), mean, next(rngs), steps).deviations[-1, -1]
            ),
            minibatch_fixed_point(mean, batch)[1],
        )
        for batch in (1, 2, 5, 10, 20)
    ]
    by_samples = [train_with(m, regression, next(rngs), steps, runs) for m in samples]
    weights = weight_rows(next(rngs))

    pictures = {
        "trajectories": plots.trajectories(mean, paths, regression, of_regression["corrected"]),
        "samples": plots.samples(regression, by_samples, by_batch),
    }
    for name, figure in pictures.items():
        figure.savefig(out / f"{name}.png", dpi=100)
    numbers = {
        "gaussian mean": _final(mean, paths),
        "regression": _final(regression, of_regression),
        "paths apart": apart,
        "d U / d rho": slopes,
        "by batch": [row._asdict() for row in by_batch],
        "by samples": [row._replace(ratios=row.ratios.tolist())._asdict() for row in by_samples],
        "weights": [row._asdict() for row in weights],
    }
    found = json.dumps(numbers, indent=1, allow_nan=False)
    (out / "numbers.json").write_text(found + "\n", encoding="utf-8")
    parts = [
        text.head(mean, regression, steps),
        text.one_mean(mean, paths),
        text.regression(regression, of_regression),
        text.weights(weights),
        text.verdicts(mean, paths, apart, slopes),
        text.batches(by_batch),
        text.samples(regression, by_samples),
    ]
    return "\n\n".join(parts)


def _final(problem: Regression, paths: Mapping[str, Path]) -> dict[str, dict[str, Any]]:
    best = exactly.inclusive_optimum(exactly.exact(problem))
    ends = {"exact": best, **{name: path.last for name, path in paths.items()}}
    return {
        name: {"mean": q.mean.tolist(), "deviation": q.deviation.tolist()}
        for name, q in ends.items()
    }
