"""One trial of the UCI benchmark: fit one method on one split, and score it on the test part.

Nothing of the test part enters a fit: inputs and target are standardised by the moments of the
training part, and hyperparameters are chosen inside it (see `selection`).
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from functools import lru_cache
from time import perf_counter, process_time
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bbb_numpy.evaluation.predictive import mixture
from bbb_numpy.numeric.elementary import LOG_2PI, logsumexp
from bbb_numpy.numeric.standardisation import moments, standardised
from bbb_numpy.numeric.validation import whole

from ..data import uci
from ..data.uci import published_splits
from .methods import METHODS, Fit, Settings, check_method
from .mixing import mixing
from .records import said_versions
from .selection import select_and_fit

__all__ = [
    "LEVELS",
    "METHODS",
    "SETS",
    "AnyTrial",
    "Settings",
    "Trial",
    "expected_cost",
    "load",
    "measure",
    "measure_split",
    "score",
    "settings_for",
    "trials",
    "usual_splits",
]

Array = NDArray[Any]
SETS = uci.NAMES
BINS = 20  # of the histogram of F(y)
LEVELS = np.arange(1, 20) / 20  # of the central intervals whose coverage is scored
# The literature's 100 units. Passes over 41,157 rows are dear: chains begin at better point
# estimates, and are shorter.
PROTEIN: dict[str, Any] = {
    "units": 100,
    "steps": 50_000,
    "full_rank_steps": 4000,
    "thin": 1,
    "warm_up": 60,
    "start_batch": 256,
    "start_steps": 30_000,
    "path": 0.3,
    "leaps": 30,
    "depth": 4,
    "folds": 1,
}
CRPS_SAMPLES = 100  # their pairs are summed


class AnyTrial:
    """What trials of all kinds are: one method on one part, which has a number, of a table."""

    set: str
    method: str
    settings: Settings
    part: ClassVar[str] = "split"  # the field with the number

    def __post_init__(self) -> None:
        check_method(self.method)
        whole(self.part, getattr(self, self.part), 0)

    @property
    def key(self) -> str:
        """Its name among the records, e.g. ``boston/hmc/03``."""
        return f"{self.set}/{self.method}/{getattr(self, self.part):02d}"

    @property
    def seeded_by(self) -> str:
        """What else than the settings' own seed tells its random numbers from those of others."""
        return self.key

    @property
    def seed(self) -> int:
        """Seed of everything random in it, the same wherever and whenever it runs."""
        return zlib.crc32(f"{self.settings.seed}/{self.seeded_by}".encode())


@dataclass(frozen=True)
class Trial(AnyTrial):
    """One method on one split of one set.

    Raises
    ------
    ValueError
        If there is no such set or method; lists them.
    """

    set: str
    method: str
    split: int
    settings: Settings = field(default_factory=Settings)

    def __post_init__(self) -> None:
        if self.set not in SETS:
            raise ValueError(f"there is no UCI set {self.set!r}; there are {', '.join(SETS)}")
        super().__post_init__()


def settings_for(name: str, **changed: Any) -> Settings:
    """Return the settings of a set: those of the literature for `protein`, with `changed`."""
    given = {key: value for key, value in changed.items() if value is not None}
    if name == "protein":
        given = PROTEIN | given
    return Settings(**given)


def usual_splits(name: str) -> int:
    """Return how many of the published splits are measured: all, of large sets the first 5."""
    return min(5, published_splits(name)) if name in FEW else published_splits(name)


def trials(
    sets: tuple[str, ...], methods: tuple[str, ...], splits: int | None, **changed: Any
) -> list[Trial]:
    """Return all trials that are asked for, splits of a set side by side.

    Parameters
    ----------
    sets, methods : tuple of str
    splits : int, optional
        Of each set; by default those of `usual_splits`. Up to 20 are published, of protein 5;
        more than 20 continue the published recipe.
    **changed
        Settings that are not those of `settings_for`.
    """
    found = []
    for name in sets:
        for method in methods:
            count = usual_splits(name) if splits is None else splits
            if splits is not None and splits <= 20:
                count = min(splits, published_splits(name))
            settings = settings_for(name, **changed)
            found += [Trial(name, method, split, settings) for split in range(count)]
    return found


# Seconds of a trial on one core of 2026, rows in thousands of training rows; only the order in
# which trials begin and the time left depend on them
COSTS = {
    "mean-field": 3,
    "local-reparam": 4,
    "map": 2,
    "renyi": 5,
    "ensemble": 3,
    "full-rank": 8,
    "eubo": 4,
    "hmc": 20,
    "nuts": 25,
    "chees": 25,
    "mclmc": 20,
    "hmc-heteroscedastic": 25,
    "default": 2,
}
ROWS = {  # thousands
    "boston": 0.5,
    "concrete": 0.9,
    "energy": 0.7,
    "protein": 12.0,
    "wine_red": 1.4,
    "yacht": 0.3,
    "power": 8.6,
    "kin8nm": 7.4,
    "naval": 10.7,
}
FEW = ("power", "kin8nm", "naval")  # sets of which the first 5 splits are measured, as of protein


def expected_cost(trial: Trial) -> float:
    """Return about how many seconds a trial takes on one core."""
    return COSTS[trial.method] * ROWS[trial.set]


@lru_cache(maxsize=2)
def _data(name: str, splits: int) -> uci.UCISet:
    """Keep the last sets: a worker gets many trials of one."""
    return uci.load(name, splits)


def load(name: str) -> uci.UCISet:
    """Return a set with its published splits."""
    return _data(name, published_splits(name))


def measure(trial: Trial) -> dict[str, Any]:
    """Run a trial and return what is recorded of it, beside the trial itself.

    Everything random comes from the trial's seed, so that the numbers do not depend on where
    or beside what it runs.

    Raises
    ------
    MissingDataError, DamagedDataError, ArithmeticError, ...
        Whatever goes wrong; the record of a failure is made by the caller.
    """
    beyond = trial.split >= published_splits(trial.set)
    data = _data(trial.set, 50 * (1 + trial.split // 50) if beyond else published_splits(trial.set))
    train, test = data.training_rows(trial.split), data.test_rows[trial.split]
    return measure_split(data.x, data.y, train, test, trial)


def measure_split(x: Array, y: Array, train: Array, test: Array, trial: AnyTrial) -> dict[str, Any]:
    """Fit to the rows `train` of `x` (N, d_in), `y` (N, 1), score the rows `test`; as `measure`."""
    wall, cpu = perf_counter(), process_time()
    fit, chosen, scaled = fit_part(x[train], y[train], trial.method, trial.settings, trial.seed)
    metrics, notes = score(fit, scaled, x[test], y[test], trial)
    inside, _ = score(fit, scaled, x[train], y[train], trial, brief=True)
    notes |= {"train_rmse": inside["rmse"], "train_nll": inside["nll"], **fit.notes}
    if fit.draws is not None:
        notes |= mixing(fit.draws)
    return {
        "seed": trial.seed,
        "chosen": chosen,
        "metrics": metrics,
        "notes": notes,
        "rows": {"train": len(train), "test": len(test)},
        "seconds": {"wall": perf_counter() - wall, "cpu": process_time() - cpu},
        "versions": said_versions(),
    }


@dataclass(frozen=True)
class Scaled:
    """Moments of the training part: (d_in,) and (1,)."""

    x_mean: Array
    x_scale: Array
    y_mean: Array
    y_scale: Array

    def inputs(self, x: Array, dtype: Any) -> Array:
        """Return `x` in units of the training part."""
        return standardised(x, self.x_mean, self.x_scale, dtype, "x")

    def targets(self, y: Array, dtype: Any) -> Array:
        """Return `y` in units of the training part."""
        return standardised(y, self.y_mean, self.y_scale, dtype, "y")


def fit_part(
    x: Array, y: Array, method: str, settings: Settings, seed: int
) -> tuple[Fit, dict[str, Any], Scaled]:
    """Choose hyperparameters and fit, from the training part `x` (N, d_in), `y` (N, 1) alone.

    Returns
    -------
    fit : Fit
        In units of the training part.
    chosen : dict
        The hyperparameters, and what spoke for them.
    scaled : Scaled
    """
    scaled = Scaled(*moments(x, True), *moments(y, True))
    dtype = np.dtype(settings.dtype)
    fit, chosen = select_and_fit(
        scaled.inputs(x, dtype), scaled.targets(y, dtype), method, settings, seed
    )
    return fit, chosen, scaled


def score(
    fit: Fit, scaled: Scaled, x: Array, y: Array, trial: AnyTrial, brief: bool = False
) -> tuple[dict[str, Any], dict[str, float]]:
    """Return metrics and notes for rows `x` (N, d_in), `y` (N, 1), in the target's own units.

    The predictive distribution is the mixture over all posterior samples (D5).
    """
    rng = np.random.default_rng([trial.seed, 1])
    samples = trial.settings.samples if not brief else min(trial.settings.samples, 100)
    means, scales = [], []
    for source, theta, share in fit.members(samples):
        mean, scale = mixture(source, theta, scaled.inputs(x, theta.dtype), rng=rng, samples=share)
        means.append(mean.astype(float))
        scales.append(scale.astype(float))
    mean = np.concatenate(means) * scaled.y_scale + scaled.y_mean  # (T, N, 1)
    deviation = np.concatenate(scales) * scaled.y_scale
    metrics: dict[str, Any] = {
        "rmse": float(np.sqrt(np.mean((mean.mean(axis=0) - y) ** 2))),
        "nll": _nll(mean, deviation, y),
    }
    if brief:
        return metrics, {}
    from bbb_numpy.evaluation.calibration import coverage, crps_mixture, pit  # which need SciPy

    thin = np.linspace(0, len(mean) - 1, min(len(mean), CRPS_SAMPLES)).astype(int)
    transformed = np.clip(pit(mean, deviation, y), 0.0, 1.0)
    metrics |= {
        "crps": float(crps_mixture(mean[thin], deviation[thin], y).mean()),
        "pit": np.histogram(transformed, BINS, (0.0, 1.0))[0].tolist(),
        "coverage": coverage(transformed, LEVELS).share.tolist(),
    }
    middle, noise = mean.mean(axis=0), (deviation**2).mean(axis=0)
    total = np.sqrt(mean.var(axis=0) + noise)
    return metrics, {
        "noise": float(np.sqrt((deviation**2).mean())),
        "epistemic": float(np.sqrt(mean.var(axis=0).mean())),
        # what the same posterior gives as one Gaussian, and as its mean function with noise
        "nll_gaussian": _nll(middle[None], total[None], y),
        "nll_plug_in": _nll(middle[None], np.sqrt(noise)[None], y),
        "samples": float(len(mean)),
    }


def _nll(means: Array, deviations: Array, y: Array) -> float:
    """Return minus the mean log density of the mixture of T Gaussians, (T, N, 1) each (D5)."""
    logs = -0.5 * (((y - means) / deviations) ** 2 + LOG_2PI) - np.log(deviations)
    return -float(np.mean(logsumexp(logs[..., 0].T) - np.log(len(logs))))
