"""Trials that take next to no time; worker processes of every kind import this module."""

import json
import os
import signal
import sys
import time
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from bbb_numpy import MLP, Adam, Model, Reparameterised
from bbb_numpy.evaluation.predictive import predict
from bbb_numpy.training import Recipe, fit, start
from bbb_numpy.version import __version__
from bbb_studies.uci.running import run
from bbb_studies.uci.workers import local

# where processes of their own find this module and the package
PATH = os.pathsep.join(map(str, Path(__file__).resolve().parents[:2]))


@dataclass(frozen=True)
class Settings:
    seed: int = 0
    rows: int = 30
    seconds: float = 0.0  # to sleep
    folder: str = ""  # for notes between processes


@dataclass(frozen=True)
class Trial:
    split: int
    settings: Settings = field(default_factory=Settings)

    @property
    def key(self):
        return f"toy/sum/{self.split:02d}"

    @property
    def cost(self):
        return self.settings.rows


def numbers(records):
    """Return the part of records that must not depend on how a trial was run, as text."""
    by_key = sorted(records, key=lambda record: record["key"])
    dropped = ("seconds", "settings")
    return json.dumps([{k: v for k, v in record.items() if k not in dropped} for record in by_key])


def trials(count, **settings):
    return [Trial(split, Settings(**settings)) for split in range(count)]


def versions():
    return {"bbb_numpy": __version__, "numpy": np.__version__}


def quick(trial):
    """Return numbers that depend on the trial alone; note in a folder that it was run."""
    time.sleep(trial.settings.seconds)
    rng = np.random.default_rng([trial.settings.seed, trial.split])
    x = rng.standard_normal((trial.settings.rows, 5))
    if trial.settings.folder:
        note(trial, "run")
    return {"seed": trial.split, "metrics": {"sum": float(np.sum(x @ x.T))}, "versions": versions()}


def real(trial):
    """Train a small network, as the benchmark does, on products large enough for BLAS threads."""
    rng = np.random.default_rng([trial.settings.seed, trial.split])
    x = rng.standard_normal((trial.settings.rows, 4))
    y = np.sin(x[:, :1]) + 0.1 * rng.standard_normal((trial.settings.rows, 1))
    estimator = Reparameterised(Model(MLP((4, 50, 1))))
    state = fit(estimator, start(estimator, rng, Adam()), x, y, Recipe(epochs=3), rng=rng)
    prediction = predict(estimator, state.theta, x, rng=rng, samples=50)
    square = rng.standard_normal((300, 300))
    return {
        "metrics": {"mean": prediction.mean.tolist(), "deviation": prediction.total.tolist()},
        "notes": {"product": float(np.sum((square @ square) @ square))},
        "versions": versions(),
    }


def note(trial, event):
    with open(Path(trial.settings.folder, event), "a") as file:
        file.write(f"{trial.split}\n")


def noted(folder, event="run"):
    path = Path(folder, event)
    return [int(line) for line in path.read_text().split()] if path.exists() else []


def wait_for(condition, seconds=60.0):
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return value


def failing(trial):
    if trial.split == 1:
        raise UnpicklableError("one", "two")
    if trial.split == 2:
        return {"metrics": {"nll": float("nan")}, "versions": versions()}
    if trial.split == 3:
        return {"metrics": {"nll": np.ones(2)}, "versions": versions()}
    return quick(trial)


class UnpicklableError(Exception):
    """An error that cannot be unpickled."""

    def __init__(self, first, second):
        super().__init__(f"{first} and {second}")


def deadly(trial):
    """Kill the worker of trial 3, always, and that of trial 5 the first time."""
    first = 5 not in noted(trial.settings.folder, "death")
    if trial.split == 3 or (trial.split == 5 and first):
        note(trial, "death")
        os.kill(os.getpid(), signal.SIGKILL)
    return quick(trial)


def threads(trial):
    """Return the number of threads that BLAS reports."""
    import threadpoolctl

    pools = threadpoolctl.threadpool_info()
    counts = [pool["num_threads"] for pool in pools if pool["user_api"] == "blas"]
    name = "OPENBLAS_NUM_THREADS"
    return {"metrics": {"most": max(counts)}, "notes": {name: os.environ.get(name)}} | {
        "versions": versions()
    }


def main():
    """``python toy_trials.py OUT FOLDER COUNT SECONDS JOBS [LATER]``: a run to be killed.

    The first four trials take SECONDS each, the others LATER, where it is given.
    """
    out, folder, count, seconds, jobs, *later = sys.argv[1:]
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs are deaf
    work = trials(int(count), seconds=float(seconds), folder=folder)
    if later:
        work[4:] = trials(int(count), seconds=float(later[0]), folder=folder)[4:]
    run(work, Path(out), partial(local, int(jobs)), quick, progress=False)


if __name__ == "__main__":
    import toy_trials  # so that workers find the trials by the name of the module

    toy_trials.main()
