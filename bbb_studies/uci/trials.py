"""One trial of the UCI benchmark: fit one method on one split, and score it on the test part.

Nothing of the test part enters a fit: inputs and target are standardised by the moments of the
training part, and hyperparameters are chosen inside it (see `selection`).
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbb_numpy.evaluation.convergence import convergence
from bbb_numpy.evaluation.predictive import is_gaussian, mixture, predict
from bbb_numpy.numeric.elementary import LOG_2PI, logsumexp
from bbb_numpy.numeric.files import write_arrays
from bbb_numpy.numeric.reading import read_arrays
from bbb_numpy.numeric.standardisation import moments, standardise
from bbb_numpy.sampling.draws import DrawnWeights, Draws

from ..data import uci
from ..data.uci import published_splits, standard_splits
from .methods import METHODS, Fit, Settings
from .records import recorded_versions
from .selection import select_and_fit

Array = NDArray[Any]
# Large sets, of which only the first 5 splits are measured; protein has no more than 5.
FIRST_SPLITS_SETS = ("power", "kin8nm", "naval")
# Training rows in thousands, to which the cost of a trial is proportional; protein has 41, but
# its chains are shorter.
THOUSANDS_OF_ROWS = {
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
N_PIT_BINS = 20  # of the histogram of F(y)
# Levels of the central intervals whose coverage is scored.
INTERVAL_LEVELS = np.arange(1, 20) / 20
CRPS_SAMPLES = 100  # at most; the CRPS sums over their pairs
# Protein has 100 units, as in the literature. A pass over its 41,157 training rows takes long, so
# chains begin at better point estimates and are shorter.
PROTEIN: dict[str, Any] = {
    "units": 100,
    "steps": 50_000,
    "full_rank_steps": 4000,
    "folds": 1,
    "thin": 1,
    "warm_up": 60,
    "start_batch": 256,
    "start_steps": 30_000,
    "path": 0.3,
    "leaps": 30,
    "depth": 4,
}
DATA_FILE = "data.npz"  # the user's table, in the folder of its run
MIN_ROWS = 20  # of a user's table, so that a test part has two rows


class AnyTrial:
    """Base of all trials: one method on one numbered part of a table."""

    set: str
    method: str
    settings: Settings
    part: ClassVar[str] = "split"  # the field with the number

    @property
    def key(self) -> str:
        """Name of its record, e.g. ``boston/hmc/03``."""
        return f"{self.set}/{self.method}/{getattr(self, self.part):02d}"

    @property
    def seeded_by(self) -> str:
        """Text that, with the settings' seed, determines its random numbers."""
        return self.key

    @property
    def seed(self) -> int:
        """Seed of everything random in the trial, the same wherever and whenever it runs."""
        return zlib.crc32(f"{self.settings.seed}/{self.seeded_by}".encode())

    @property
    def cost(self) -> float:
        """Expected seconds on one core."""
        return METHODS[self.method].cost * THOUSANDS_OF_ROWS.get(self.set, 1.0)


@dataclass(frozen=True)
class Trial(AnyTrial):
    """One method on one split of one UCI set."""

    set: str
    method: str
    split: int
    settings: Settings = Settings()


@dataclass(frozen=True)
class OwnTrial(AnyTrial):
    """One method on one split of a user's table."""

    set: str  # name of the table among the records
    method: str
    split: int
    data: str  # `write_rows` returns it: records of other rows do not count
    settings: Settings = Settings()

    @property
    def seeded_by(self) -> str:
        """Text with the digest of the rows, so that the name of the file does not matter."""
        return f"{self.data}/{self.method}/{self.split:02d}"


def settings_for(name: str, **changed: Any) -> Settings:
    """Return the settings of a set: the literature's for ``protein``, else the defaults.

    Parameters
    ----------
    name : str
        Name of the set.
    **changed : Any
        Settings that differ from these.
    """
    return Settings(**(PROTEIN | changed if name == "protein" else changed))


def usual_splits(name: str) -> int:
    """Return how many of the published splits are measured: all, of large sets the first 5."""
    return 5 if name in FIRST_SPLITS_SETS else published_splits(name)


def trials(
    sets: tuple[str, ...], methods: tuple[str, ...], splits: int | None, **changed: Any
) -> list[Trial]:
    """Return the trials of all sets and methods, splits of a set side by side.

    Parameters
    ----------
    sets : tuple of str
        Names of the sets.
    methods : tuple of str
        Names of the methods.
    splits : int or None
        Splits of each set; None takes those of `usual_splits`. Up to 20 are published, of
        protein 5; more than 20 continue the published recipe.
    **changed : Any
        Settings that differ from the set's usual ones.
    """
    all_trials = []
    for name in sets:
        count = usual_splits(name) if splits is None else splits
        if splits is not None and splits <= 20:
            count = min(splits, published_splits(name))
        settings = settings_for(name, **changed)
        all_trials += [
            Trial(name, method, k, settings) for method in methods for k in range(count)
        ]
    return all_trials


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
    or beside what it runs. Whatever goes wrong is raised; the caller records it.
    """
    splits = published_splits(trial.set)
    if trial.split >= splits:
        splits = 50 * (1 + trial.split // 50)
    data = _data(trial.set, splits)
    return _on_split(data.x, data.y, data.test_rows[trial.split], trial)


def set_name(source: str) -> str:
    """Return the name of a table as a folder can have it, and no UCI set has."""
    plain = "".join(
        c if c.isascii() and (c.isalnum() or c in "._-") else "_" for c in source
    )
    plain = plain.lstrip(".")[-60:]
    return plain if "." in plain else f"{plain}.table"


def write_rows(out: Path, x: Array, y: Array) -> str:
    """Write the rows of a table for the workers, and return a digest of them.

    Parameters
    ----------
    out : Path
        Folder of the run.
    x : array (N, d_in)
        Inputs.
    y : array (N, 1)
        Targets.
    """
    x = np.ascontiguousarray(x, np.float64)
    y = np.ascontiguousarray(y, np.float64)
    out.mkdir(parents=True, exist_ok=True)
    write_arrays(out / DATA_FILE, {"x": x, "y": y})
    return sha256(
        repr((x.shape, y.shape)).encode() + x.tobytes() + y.tobytes()
    ).hexdigest()[:16]


def measure_own(path: str, trial: OwnTrial) -> dict[str, Any]:
    """Run a trial on a table of one's own, and return what is recorded of it.

    Parameters
    ----------
    path : str
        File that `write_rows` has written.
    trial : OwnTrial
        Method, split and settings.
    """
    x, y = read_arrays(Path(path), ("x", "y")).values()
    return _on_split(x, y, standard_splits(len(y), trial.split + 1)[-1], trial)


def _on_split(x: Array, y: Array, test: Array, trial: AnyTrial) -> dict[str, Any]:
    """Fit to the rows of `x` (N, d_in), `y` (N, 1) that are not in `test`, score those."""
    started = now()
    train = np.setdiff1d(np.arange(len(y)), test)
    fit, chosen, scaled = fit_part(x[train], y[train], trial)
    metrics, notes = score(fit, scaled, x[test], y[test], trial)
    train_metrics, _ = score(fit, scaled, x[train], y[train], trial, brief=True)
    notes |= {
        "train_rmse": train_metrics["rmse"],
        "train_nll": train_metrics["nll"],
        **fit.notes,
    }
    rows = {"train": train, "test": test}
    return {
        "seed": trial.seed,
        "chosen": chosen,
        "metrics": metrics,
        "notes": notes | mixing(fit.draws),
        **common_fields(rows, started),
    }


def now() -> dict[str, float]:
    """Return the time on the clock and that of the processor, in seconds."""
    return {"wall": perf_counter(), "cpu": process_time()}


def common_fields(
    rows: Mapping[str, Array], started: Mapping[str, float]
) -> dict[str, Any]:
    """Return what records of all kinds of trials have: numbers of rows, seconds and versions.

    Parameters
    ----------
    rows : mapping of str to array
        Row numbers of each part.
    started : mapping of str to float
        What `now` returned at the start.
    """
    return {
        "rows": {name: len(numbers) for name, numbers in rows.items()},
        "seconds": {clock: time - started[clock] for clock, time in now().items()},
        "versions": recorded_versions(),
    }


class Scaled(NamedTuple):
    """Moments of the training part: (d_in,) and (1,)."""

    x_mean: Array
    x_scale: Array
    y_mean: Array
    y_scale: Array

    def inputs(self, x: Array, dtype: Any) -> Array:
        """Return `x` in units of the training part.

        Parameters
        ----------
        x : array (N, d_in)
            Inputs in their own units.
        dtype : dtype
            Of the result.
        """
        return standardise(x, self.x_mean, self.x_scale, dtype, "x")

    def targets(self, y: Array, dtype: Any) -> Array:
        """Return `y` in units of the training part.

        Parameters
        ----------
        y : array (N, 1)
            Targets in their own units.
        dtype : dtype
            Of the result.
        """
        return standardise(y, self.y_mean, self.y_scale, dtype, "y")


def fit_part(x: Array, y: Array, trial: AnyTrial) -> tuple[Fit, dict[str, Any], Scaled]:
    """Choose hyperparameters and fit, by the training part alone.

    Parameters
    ----------
    x : array (N, d_in)
        Inputs of the training part.
    y : array (N, 1)
        Targets of the training part.
    trial : AnyTrial
        Method, settings and seed.

    Returns
    -------
    fit : Fit
        In units of the training part.
    chosen : dict
        Hyperparameters, and what spoke for them.
    scaled : Scaled
        Moments of the training part.
    """
    scaled = Scaled(*moments(x, True), *moments(y, True))
    dtype = np.dtype(trial.settings.dtype)
    rows = scaled.inputs(x, dtype), scaled.targets(y, dtype)
    return *select_and_fit(*rows, trial.method, trial.settings, trial.seed), scaled


def score(
    fit: Fit, scaled: Scaled, x: Array, y: Array, trial: AnyTrial, brief: bool = False
) -> tuple[dict[str, Any], dict[str, float]]:
    """Return metrics and notes of a fit on test rows, in the units of the target.

    The predictive distribution is the mixture over all posterior samples (D5), or the Gaussian that
    a linearised network predicts (D54).

    Parameters
    ----------
    fit : Fit
        In units of the training part.
    scaled : Scaled
        Moments of the training part.
    x : array (N, d_in)
        Inputs.
    y : array (N, 1)
        Targets.
    trial : AnyTrial
        Gives the seed and the number of samples.
    brief : bool
        Compute RMSE and NLL alone, from at most 100 samples.

    Returns
    -------
    metrics : dict
        ``rmse``, ``nll`` (nats per row), ``crps``, ``pit`` and ``coverage``.
    notes : dict
        Standard deviations, and NLL of simpler predictive distributions.
    """
    rng = np.random.default_rng([trial.seed, 1])
    samples = trial.settings.samples
    if brief:
        samples = min(samples, 100)
    means = []
    scales = []
    function_variance: Array = np.zeros(1)
    for source, theta, share in fit.members(samples):
        # Draws at equal distances, as in all records.
        if brief and isinstance(source, DrawnWeights):
            step = max(1, len(theta) // share)
            theta = theta[int(deepcopy(rng).random() * step) :: step]
        inputs = scaled.inputs(x, theta.dtype)
        # Its one component contains the spread of the functions.
        if is_gaussian(source):
            prediction = predict(source, theta, inputs, rng=rng)
            epistemic = prediction.epistemic.astype(float)
            mean = prediction.mean.astype(float)[None]
            scale = np.hypot(epistemic, prediction.aleatoric.astype(float))[None]
            function_variance = (epistemic * scaled.y_scale) ** 2
        else:
            mean, scale = mixture(source, theta, inputs, rng=rng, samples=share)
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
    # which need SciPy
    from bbb_numpy.evaluation.calibration import coverage, crps_mixture, pit

    thin = np.linspace(0, len(mean) - 1, min(len(mean), CRPS_SAMPLES)).astype(int)
    transformed = np.clip(pit(mean, deviation, y), 0.0, 1.0)
    metrics |= {
        "crps": float(crps_mixture(mean[thin], deviation[thin], y).mean()),
        "pit": np.histogram(transformed, N_PIT_BINS, (0.0, 1.0))[0].tolist(),
        "coverage": coverage(transformed, INTERVAL_LEVELS).share.tolist(),
    }
    mixture_mean = mean.mean(axis=0)
    noise = (deviation**2).mean(axis=0) - function_variance
    epistemic = mean.var(axis=0) + function_variance
    total = np.sqrt(epistemic + noise)
    return metrics, {
        "noise": float(np.sqrt((deviation**2 - function_variance).mean())),
        "epistemic": float(np.sqrt(epistemic.mean())),
        # NLL if the prediction were one Gaussian, and if it were the mean function with noise.
        "nll_gaussian": _nll(mixture_mean[None], total[None], y),
        "nll_plug_in": _nll(mixture_mean[None], np.sqrt(noise)[None], y),
        "samples": float(len(mean)),
    }


def _nll(means: Array, deviations: Array, y: Array) -> float:
    """Return minus the mean log density of the mixture of T Gaussians, (T, N, 1) each (D5)."""
    logs = -0.5 * (((y - means) / deviations) ** 2 + LOG_2PI) - np.log(deviations)
    return -float(np.mean(logsumexp(logs[..., 0].T) - np.log(len(logs))))


SPACES = ("functions", "noise", "weights")
MAX_RECORDED_R_HAT = 1e6  # larger values are recorded as this: JSON has no infinity


def mixing(draws: Draws | None) -> dict[str, float]:
    """Return R-hat and bulk effective sample size of functions, noise and weights, each the worst.

    Functions are E[y|x] at 50 training rows. A kind that there is not (noise that depends on x
    is one of the functions' own) is left out. R-hat is at most `MAX_RECORDED_R_HAT`, which chains
    have that each stand still. With fewer than 4 draws or 2 chains there is no R-hat.
    """
    if draws is None or len(draws.positions) < 4 or draws.positions.shape[1] < 2:
        return {}
    notes: dict[str, float] = {}
    for line in convergence(draws).lines:
        space = line.space
        if space != "weights":
            space = "noise" if line.name == "log_noise" else ""
            if line.name.startswith("E[y|x]"):
                space = "functions"
        if space:
            r_hat_key = f"r_hat_{space}"
            ess_key = f"ess_{space}"
            notes[r_hat_key] = min(
                MAX_RECORDED_R_HAT, max(notes.get(r_hat_key, 0.0), line.r_hat)
            )
            notes[ess_key] = min(notes.get(ess_key, np.inf), line.ess_bulk)
    return notes
