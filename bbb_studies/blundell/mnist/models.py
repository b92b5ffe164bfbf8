"""The networks of the MNIST study: what is trained, and its state between two epochs."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass, field
from math import exp
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbb_numpy.gradients.reparameterised import Reparameterised
from bbb_numpy.model.joint import Model
from bbb_numpy.model.kl_weights import Shares, geometric_kl_weights, proportional_kl_weights
from bbb_numpy.model.objectives import MAP, MLE, FreeEnergy
from bbb_numpy.numeric.buffers import Buffers
from bbb_numpy.numeric.storing import Format, read_state, write_state
from bbb_numpy.parts.discrete import CategoricalLikelihood
from bbb_numpy.parts.mixture import ScaleMixturePrior
from bbb_numpy.parts.network import MLP
from bbb_numpy.parts.posteriors import MeanField, PointMass
from bbb_numpy.training import Recipe, fit, start
from bbb_numpy.training.optimizers import SGD, Adam, Cosine, Memory, Optimizer
from bbb_numpy.training.state import Epoch, Training

__all__ = [
    "CANDIDATES",
    "FORMAT",
    "FULL",
    "GRID",
    "METHODS",
    "Candidate",
    "Run",
    "Settings",
    "begin",
    "build",
    "classes_of_mean",
    "load",
    "save",
    "train_epoch",
]

Array = NDArray[Any]
METHODS = ("SGD", "MAP", "BBB")
# The paper's choices of pi, -log sigma1 and -log sigma2
GRID = ((0.25, 0.5, 0.75), (0, 1, 2), (6, 7, 8))
START = 0.05  # deviation of the first weights: sqrt(2 / 784), of a ReLU layer that keeps its scale
SHARES: dict[str, Shares] = {
    "proportional": proportional_kl_weights,
    "geometric": geometric_kl_weights,
}


@dataclass(frozen=True)
class Candidate:
    """What a network is trained with, apart from the number of epochs."""

    method: str  # one of METHODS
    optimizer: str  # 'SGD' or 'Adam'
    learning_rate: float
    prior: tuple[float, int, int] = (0.5, 0, 6)  # pi, -log sigma1, -log sigma2; not for SGD
    rho: float = -5.0  # every sigma starts at softplus(rho); BBB only
    shares: str = "proportional"
    samples: int = 1  # S, weight vectors of a step; BBB only

    @property
    def name(self) -> str:
        """What it is, in a few words."""
        prior = "pi {:g}, -log sigma1 {}, -log sigma2 {}".format(*self.prior)
        parts = [f"{self.optimizer} {self.learning_rate:g}"]
        parts += [prior] if self.method != "SGD" else []
        parts += [f"KL weights {self.shares}"] if self.shares != "proportional" else []
        parts += [f"S = {self.samples}"] if self.samples != 1 else []
        return ", ".join(parts)


CANDIDATES = (
    Candidate("SGD", "SGD", 1e-3),
    Candidate("SGD", "SGD", 3e-3),
    Candidate("MAP", "SGD", 1e-3, (0.75, 0, 6)),
    Candidate("MAP", "SGD", 3e-3, (0.75, 0, 6)),
    Candidate("MAP", "SGD", 3e-3, (0.75, 2, 6)),
    Candidate("BBB", "SGD", 1e-3, (0.5, 0, 6)),
    Candidate("BBB", "SGD", 1e-3, (0.5, 0, 6), shares="geometric"),
    Candidate("BBB", "Adam", 1e-3, (0.5, 0, 6)),
    Candidate("BBB", "Adam", 1e-3, (0.25, 1, 6)),
    Candidate("BBB", "Adam", 1e-3, (0.75, 2, 8)),
)

# For the paper's budget: three priors of its grid, from broad to narrow, and S of 1 and 2
FULL = CANDIDATES[:5] + tuple(
    Candidate("BBB", "Adam", 1e-3, prior, samples=samples)
    for samples in (1, 2)
    for prior in ((0.5, 0, 6), (0.25, 1, 6), (0.75, 2, 8))
)


@dataclass(frozen=True)
class Settings:
    """How large the study is; the defaults are those of the command."""

    seed: int = 0
    hidden: int = 400  # units of each of two layers
    train: int = 50_000  # the first images of the training part
    validation: int = 10_000  # the last ones
    test: int = 10_000
    batch: int = 128
    search: int = 5  # epochs of every candidate; the best of a method goes on from there
    epochs: tuple[int, int, int] = (30, 30, 90)  # of SGD, MAP and BBB, those of the search too
    draws: int = 50  # weight vectors that predictions are averaged over
    pruning_draws: int = 10

    @property
    def record(self) -> dict[str, Any]:
        """The settings as JSON holds them."""
        return json.loads(json.dumps(asdict(self)))


@dataclass
class Run:
    """One network in training: all that its next epoch depends on."""

    training: Training
    rng: np.random.Generator
    errors: list[float] = field(default_factory=list)  # of the mean network, validation images
    seconds: float = 0.0  # of processor time


class Stored(NamedTuple):
    """The file of a run."""

    candidate: Candidate
    settings: Settings
    run: Run


STATE = Format("bbb_numpy.mnist", 2, (Candidate, Settings, Run, Training, Memory, Epoch))
FORMAT = f"{STATE.name} {STATE.version}"


def build(candidate: Candidate, hidden: int) -> Reparameterised:
    """Return network, prior, likelihood, posterior and objective of a candidate."""
    pi, wide, narrow = candidate.prior
    prior = ScaleMixturePrior(pi, exp(-wide), exp(-narrow))
    model = Model(MLP((784, hidden, hidden, 10)), prior, CategoricalLikelihood())
    if candidate.method == "BBB":
        return Reparameterised(model, MeanField(START, candidate.rho), FreeEnergy())
    return Reparameterised(model, PointMass(START), MLE() if candidate.method == "SGD" else MAP())


def optimizer_of(candidate: Candidate, factor: float = 1.0) -> Optimizer:
    """Return the update rule with its learning rate times `factor`."""
    rate = candidate.learning_rate * factor
    return Adam(rate) if candidate.optimizer == "Adam" else SGD(rate)


def begin(candidate: Candidate, settings: Settings) -> Run:
    """Return the state before the first epoch; networks of one method start alike."""
    rng = np.random.default_rng([settings.seed, METHODS.index(candidate.method)])
    estimator = build(candidate, settings.hidden)
    return Run(start(estimator, rng, optimizer_of(candidate), np.float32), rng)


def train_epoch(run: Run, candidate: Candidate, settings: Settings, x: Array, y: Array) -> None:
    """Train for one more epoch, in place.

    The learning rate falls along half a cosine over all epochs of the method, epoch by epoch.
    `x` (N, 784) and one-hot `y` (N, 10) in float32.

    Raises
    ------
    KeyboardInterrupt
        On Ctrl-C; `run` is as before the epoch, but for the generator.
    """
    began = time.process_time()
    epochs = settings.epochs[METHODS.index(candidate.method)]
    estimator = build(candidate, settings.hidden)
    trained = fit(
        estimator,
        run.training,
        x,
        y,
        Recipe(
            optimizer=optimizer_of(candidate, Cosine()(len(run.errors), epochs)),
            epochs=1,
            batch_size=settings.batch,
            samples=candidate.samples,
            kl_weights=SHARES[candidate.shares],
        ),
        rng=run.rng,
        progress=False,
    )
    if trained.stopped == "interrupted":
        raise KeyboardInterrupt
    run.training = trained
    run.seconds += time.process_time() - began


def classes_of_mean(candidate: Candidate, settings: Settings, theta: Array, x: Array) -> Array:
    """Return the classes (N,) that one network gives, that with the mean weights."""
    model = build(candidate, settings.hidden).model
    weights = theta[None, : model.layout.size]
    buffers = Buffers()
    return np.concatenate(
        [
            model.predict(weights, x[i : i + 1000], buffers.rewind())[0].argmax(1)
            for i in range(0, len(x), 1000)
        ]
    )


def save(path: Path, run: Run, candidate: Candidate, settings: Settings) -> None:
    """Write the state of a run, replacing an older file only when all is written."""
    write_state(path, Stored(candidate, settings, run), STATE)


def load(path: Path, candidate: Candidate, settings: Settings) -> Run:
    """Return the state that `save` wrote, or `begin` if there is no file.

    Raises
    ------
    ValueError
        If the file is damaged or belongs to another run; names it.
    """
    fresh = begin(candidate, settings)
    if not path.exists():
        return fresh
    try:
        found: Stored = read_state(path, Stored, STATE)
        if (found.candidate, found.settings) != (candidate, settings):
            raise ValueError("it is the state of another network or of other settings")
        _check_like(found.run, fresh)
    except ValueError as error:
        raise ValueError(
            f"{path} cannot be read: {error}. Delete it to train this network again"
        ) from None
    return found.run


def _check_like(run: Run, fresh: Run) -> None:
    """Raise ValueError unless the arrays of a run are those of a fresh one after some epochs."""
    ours, theirs = run.training, fresh.training
    memory = theirs.optimizer_state.arrays
    if ours.optimizer_state.arrays.keys() != memory.keys():
        raise ValueError(f"its optimizer keeps {sorted(ours.optimizer_state.arrays)}")
    for array in (ours.theta, *ours.optimizer_state.arrays.values()):
        if array.shape != theirs.theta.shape or array.dtype != theirs.theta.dtype:
            raise ValueError(f"it holds arrays of shape {array.shape} and dtype {array.dtype}")
        if not np.isfinite(array).all():
            raise ValueError("it holds nan or infinity")
    if len(ours.history) != len(run.errors):
        raise ValueError(f"it holds {len(run.errors)} errors of {len(ours.history)} epochs")
