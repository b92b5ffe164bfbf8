"""How the income tax is predicted and judged: every cell by folds without its ZIP code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbb_numpy.evaluation.calibration import clustered_mean, coverage, crps_mixture, kolmogorov, pit
from bbb_numpy.numeric.elementary import LOG_2PI, logsumexp
from bbb_numpy.progress import Done, counted, unseen
from bbb_studies.data import income_tax as data
from bbb_studies.data.income_tax import Cells

from .models import MODELS, Effort, Mixture, Task

__all__ = [
    "FOLDS",
    "LARGE",
    "SMALL",
    "Result",
    "Scores",
    "cross_validate",
    "log_density",
    "measure",
]

Array = NDArray[Any]
FOLDS, FOR_CRPS = 5, 100
SMALL, LARGE = 50.0, 200.0  # returns of a cell
BASE = "linear regression"


class Result(NamedTuple):
    """One model, all N cells predicted once, each by the fold that did not train on it."""

    mean: Array  # (N,)
    epistemic: Array  # (N,)  deviation of the mean between weight samples
    noise: Array  # (N,)  root mean noise variance
    log_density: Array  # (N,)
    pit: Array  # (N,)
    crps: Array  # (N,)
    notes: list[dict[str, Any]]  # of each fold
    seconds: float


def _empty(size: int) -> Result:
    a, b, c, d, e, f = np.full((6, size), np.nan)
    return Result(a, b, c, d, e, f, [], 0.0)


def log_density(found: Mixture, y: Array) -> Array:
    """Return the log density (M,) of targets (M, 1) under a mixture of Gaussians, in nats."""
    z = (y - found.means) / found.scales
    each = -0.5 * z * z - np.log(found.scales) - 0.5 * LOG_2PI
    return logsumexp(each[..., 0], axis=0) - np.log(len(each))


def cross_validate(
    cells: Cells,
    *,
    models: Mapping[str, Callable[[Task], Mixture]] = MODELS,
    count: int = FOLDS,
    effort: Effort | None = None,
    seed: int = 0,
    done: Done = unseen,
) -> dict[str, Result]:
    """Predict every cell by every model, trained on other ZIP codes."""
    effort = effort or Effort()
    out = {name: _empty(len(cells.y)) for name in models}
    for fold, (train, test) in enumerate(data.folds(cells.place, count, seed)):
        task = Task(
            cells.x[train],
            cells.y[train, 0],
            cells.income_class[train],
            cells.x[test],
            cells.income_class[test],
            (seed, fold),
            effort,
        )
        y = cells.y[test]
        for name, model in counted(models.items(), done):
            began = perf_counter()
            found = model(task)
            seconds = perf_counter() - began
            some = np.linspace(0, len(found.means) - 1, min(len(found.means), FOR_CRPS)).astype(int)
            one = out[name]
            one.mean[test] = found.means.mean(axis=0)[:, 0]
            one.epistemic[test] = found.means.std(axis=0)[:, 0]
            one.noise[test] = np.sqrt((found.scales**2).mean(axis=0))[:, 0]
            one.log_density[test] = log_density(found, y)
            one.pit[test] = pit(found.means, found.scales, y)[:, 0]
            one.crps[test] = crps_mixture(found.means[some], found.scales[some], y)[:, 0]
            one.notes.append(found.note)
            out[name] = one._replace(seconds=one.seconds + seconds)
    return out


class Scores(NamedTuple):
    """What is said of one model; pairs are mean and standard error, clustered by ZIP code.

    Errors are of the logarithm; gains over linear regression.
    """

    rmse: float
    median_relative_error: float
    nll: tuple[float, float]  # nats per cell
    crps: tuple[float, float]
    nll_gained: tuple[float, float]
    crps_gained: tuple[float, float]
    squared_error_gained: tuple[float, float]
    coverage: dict[str, float]  # by level in %
    coverage_90_small_cells: float
    coverage_90_large_cells: float
    kolmogorov: float
    epistemic: float  # medians of deviations
    noise_small_cells: float
    noise_large_cells: float
    error_small_cells: float  # root mean squares
    error_large_cells: float
    notes: list[dict[str, Any]]  # of each fold
    seconds: float


def measure(cells: Cells, results: Mapping[str, Result]) -> dict[str, Scores]:
    """Return the scores of every model."""
    y, base = cells.y[:, 0], results[BASE]
    small, large = cells.returns <= SMALL, cells.returns > LARGE
    out = {}
    for name, one in results.items():
        error = y - one.mean
        held = coverage(one.pit, (0.5, 0.9, 0.99))
        gained = (y - base.mean) ** 2 - error**2
        out[name] = Scores(
            rmse=float(np.sqrt(np.mean(error**2))),
            median_relative_error=float(np.expm1(np.median(np.abs(error)))),
            nll=clustered_mean(-one.log_density, cells.place),
            crps=clustered_mean(one.crps, cells.place),
            nll_gained=clustered_mean(one.log_density - base.log_density, cells.place),
            crps_gained=clustered_mean(base.crps - one.crps, cells.place),
            squared_error_gained=clustered_mean(gained, cells.place),
            coverage=dict(zip(("50", "90", "99"), held.share.tolist(), strict=True)),
            coverage_90_small_cells=float(coverage(one.pit[small], (0.9,)).share[0]),
            coverage_90_large_cells=float(coverage(one.pit[large], (0.9,)).share[0]),
            kolmogorov=kolmogorov(one.pit),
            epistemic=float(np.median(one.epistemic)),
            noise_small_cells=float(np.median(one.noise[small])),
            noise_large_cells=float(np.median(one.noise[large])),
            error_small_cells=float(np.sqrt(np.mean(error[small] ** 2))),
            error_large_cells=float(np.sqrt(np.mean(error[large] ** 2))),
            notes=one.notes,
            seconds=one.seconds,
        )
    return out
