"""Networks on a table of one's own whose target is classes, beside scikit-learn's models."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bbb_numpy import BayesianMLPClassifier
from bbb_numpy.cli.baselines import (
    Score,
    baselines,
    forecast_baseline,
    forecast_learner,
    score_forecast,
)
from bbb_numpy.cli.tables import csv_text
from bbb_numpy.learners.inference import Sampling, inferences, sampler_names
from bbb_numpy.numeric.files import write_text
from bbb_numpy.numeric.reading import read_arrays

from .records import Record
from .tables import grid
from .trials import AnyTrial, common_fields, now

INFERENCE_NAMES = tuple(inferences())
BASELINE_NAMES = tuple(baselines("classification", 0, 0))
DEFAULT_CLASSIFIERS = ("mean-field", "hmc")
METRIC_TITLES = {
    "log_loss": "log loss",
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced",
}
PAGE = """# Classifiers compared on {name}

- Random splits: 90 % of the rows of each class to train, 10 % to test; means and standard errors
  over the splits. Log loss in nats per row, lower is better; balanced: the mean accuracy of the
  classes.
- One hidden layer of {units} units, everything else a learner's default; scikit-learn's models
  on standardised inputs.

{table}

```
{command}
```
"""


@dataclass(frozen=True)
class ClassSettings:
    """Settings that all trials share; ``quick`` has fewer epochs and draws."""

    units: int = 50
    seed: int = 0
    quick: bool = False


@dataclass(frozen=True)
class ClassTrial(AnyTrial):
    """One network, or model of scikit-learn's, on one split of a table of classes."""

    set: str
    method: str
    split: int
    data: str  # digest of the rows; records of other rows do not count
    settings: Any = ClassSettings()

    def __post_init__(self) -> None:
        if self.method not in INFERENCE_NAMES + BASELINE_NAMES:
            accepted = ", ".join(INFERENCE_NAMES)
            raise ValueError(
                f"--method {self.method} is not for classes; accepted are {accepted}"
            )

    @property
    def cost(self) -> float:
        """Expected time, in units of that of a model of scikit-learn's."""
        if self.method in sampler_names():
            return 200.0
        return 1.0 if self.method in BASELINE_NAMES else 30.0


def measure_own(path: str, trial: ClassTrial) -> dict[str, Any]:
    """Fit a classifier on 90 % of the rows of a table, and return its scores on the others.

    Parameters
    ----------
    path : str
        File that `trials.keep` has written.
    trial : ClassTrial
        Method, split and settings.

    Returns
    -------
    dict
        What is recorded of the trial.
    """
    from sklearn.model_selection import StratifiedShuffleSplit

    table = read_arrays(Path(path), ("x", "y"))
    x = table["x"]
    y = table["y"][:, 0].astype(int)
    settings = trial.settings
    seed = zlib.crc32(f"{settings.seed}/{trial.data}/{trial.split}".encode())
    n_test = max(round(0.1 * len(y)), y.max() + 1)
    splitter = StratifiedShuffleSplit(1, test_size=n_test, random_state=seed)
    ((train, test),) = splitter.split(x, y)
    started = now()
    rng = np.random.default_rng(seed)
    if trial.method in BASELINE_NAMES:
        model = baselines("classification", len(train), seed)[trial.method]
        rows = (x[train], y[train]), (x[test], y[test])
        forecast = forecast_baseline(model, "classification", *rows, rng)
    else:
        inference: Any = trial.method
        if settings.quick and inference in sampler_names():
            inference = Sampling(inference, chains=2, warm_up=20, draws=20)
        epochs = 5 if settings.quick and inference == trial.method else None
        learner = BayesianMLPClassifier(
            (settings.units,), inference=inference, epochs=epochs, random_state=seed
        )
        forecast = forecast_learner(
            learner.fit(x[train], y[train]), x[test], y[test], rng
        )
    scores = score_forecast(forecast, y[test])
    return {
        "metrics": {metric: scores[metric].value for metric in METRIC_TITLES},
        **common_fields({"train": train, "test": test}, started),
    }


def write(out: Path, records: Iterable[Record], command: str) -> str:
    """Write ``table.md`` and ``trials.csv``, and return the table.

    Parameters
    ----------
    out : Path
        Folder of the run.
    records : iterable of Record
        Of all trials.
    command : str
        What one types to repeat the run.
    """
    successful = [record for record in records if record["status"] == "ok"]
    rows = []
    if not successful:
        return "no trial has succeeded"
    trials = pd.json_normalize(successful).rename(
        columns=lambda name: name.removeprefix("metrics.")
    )
    trials = trials[["method", "split", *METRIC_TITLES, "seconds.wall"]]
    write_text(out / "trials.csv", csv_text(trials))
    for method, trials_of_method in trials.groupby("method", sort=False):
        means = [
            str(Score(trials_of_method[metric].mean(), trials_of_method[metric].sem()))
            for metric in METRIC_TITLES
        ]
        rows.append(
            [
                method,
                *means,
                str(len(trials_of_method)),
                f"{trials_of_method['seconds.wall'].mean():.1f}",
            ]
        )
    table = grid(["method", *METRIC_TITLES.values(), "splits", "seconds each"], rows)
    page_values = {
        "name": successful[0]["set"],
        "units": successful[0]["settings"]["units"],
    }
    write_text(
        out / "table.md", PAGE.format(table=table, command=command, **page_values)
    )
    return table
