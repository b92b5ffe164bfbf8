"""What is timed: four networks, their data and starting point, the estimators, the bars to meet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbb_numpy import MLP, Adam, GaussianLikelihood, GaussianPrior, Model
from bbb_numpy.gradients.closed_form import ClosedFormKL
from bbb_numpy.gradients.flipout import Flipout
from bbb_numpy.gradients.importance import DoublyReparameterised, SelfNormalised
from bbb_numpy.gradients.local_reparameterisation import LocalReparameterisation
from bbb_numpy.gradients.reparameterised import Reparameterised, StickingTheLanding
from bbb_numpy.model.objectives import EUBO, Renyi
from bbb_numpy.numeric.buffers import Buffers
from bbb_numpy.parts.full_rank import FullRank

Array = NDArray[Any]
Step = Callable[[], None]  # one training step, complete when it returns

KL_WEIGHT = 0.01
# So small that thousands of timed steps leave every contestant where it started: the time
# of a step then depends on its shape alone, not on how far a training has come.
LEARNING_RATE = 1e-6
OPTIMIZER = Adam(LEARNING_RATE)
PLAIN = "reparameterised"
ESTIMATORS: dict[str, Callable[[Model], Any]] = {
    PLAIN: Reparameterised,
    "antithetic": lambda model: Reparameterised(model, antithetic=True),
    "closed-form KL": ClosedFormKL,
    "sticking the landing": StickingTheLanding,
    "local reparameterisation": LocalReparameterisation,
    "Flipout": Flipout,
    "doubly reparameterised": lambda model: DoublyReparameterised(model, objective=Renyi(0.0)),
    "self-normalised": lambda model: SelfNormalised(model, objective=EUBO()),
    "full rank": lambda model: Reparameterised(model, FullRank()),
}
# Two samples are the least that antithetic noise has; the bounds need several to differ from F.
SAMPLES = {"antithetic": 2, "doubly reparameterised": 10, "self-normalised": 10}
FULL_RANK = ((13, 50, 1),)  # larger factors are another kind of problem
FASTER_THAN_PLAIN = ("local reparameterisation", (784, 400, 400, 10))


class Start(NamedTuple):
    """The same starting point for every contestant."""

    theta: Array  # (2 P,)  mu, then rho
    x: Array  # (B, d_in)
    y: Array  # (B, K)


@dataclass(frozen=True)
class Problem:
    """One network with its minibatch: prior N(0, 1), unit noise; and what estimates its gradient.

    Parameters
    ----------
    sizes : tuple of int
        Widths of the network, input and output included.
    rows : int
        Rows B of the minibatch.
    samples : int
        Weight samples S per step.
    bars : tuple of (str, float)
        Ratios and what they are to reach: "ours/..." at most, those of peers over ours at least.
    estimator_name : str
        Of `ESTIMATORS`.
    """

    sizes: tuple[int, ...]
    rows: int
    samples: int
    bars: tuple[tuple[str, float], ...] = ()
    estimator_name: str = PLAIN

    @property
    def name(self) -> str:
        """The widths joined by dashes."""
        return "-".join(str(size) for size in self.sizes)

    @property
    def estimator(self) -> Any:
        """The estimator that trains this network."""
        model = Model(MLP(self.sizes), GaussianPrior(1.0), GaussianLikelihood(1.0))
        return ESTIMATORS[self.estimator_name](model)

    @property
    def weights(self) -> int:
        """Number of weights and biases P."""
        size: int = self.estimator.model.layout.size
        return size

    def start(self, dtype: Any = np.float32, seed: int = 0) -> Start:
        """Return the report's initial theta and random rows."""
        rng = np.random.default_rng(seed)
        theta = self.estimator.init(rng, dtype)
        x = rng.standard_normal((self.rows, self.sizes[0])).astype(dtype)
        y = rng.standard_normal((self.rows, self.sizes[-1])).astype(dtype)
        return Start(theta, x, y)


def _bars(floor: float, torch: float, jax: float) -> tuple[tuple[str, float], ...]:
    return (("ours/floor", floor), ("PyTorch/ours", torch), ("JAX/ours", jax))


PROBLEMS = (
    Problem((13, 50, 1), 32, 1, _bars(5.0, 8.0, 1.5)),
    Problem((13, 50, 1), 32, 10, _bars(2.0, 4.0, 1.5)),
    Problem((1, 100, 100, 1), 500, 1, _bars(1.4, 2.5, 1.4)),
    Problem((784, 400, 400, 10), 128, 1, _bars(1.6, 1.0, 1.2)),
)


def cases(problem: Problem) -> list[Problem]:
    """Return the estimators to time on a network of `PROBLEMS`, the plain one first.

    A network that occurs with several S has the estimators with an S of their own once.
    """
    networks = [(p.sizes, p.samples) for p in PROBLEMS]
    problems = []
    for estimator_name in ESTIMATORS:
        samples = SAMPLES.get(estimator_name, problem.samples)
        if samples != problem.samples and (problem.sizes, samples) in networks:
            continue
        if samples < problem.samples or (
            estimator_name == "full rank" and problem.sizes not in FULL_RANK
        ):
            continue
        bars = (
            (("ours/plain", 1.0),) if (estimator_name, problem.sizes) == FASTER_THAN_PLAIN else ()
        )
        problems.append(replace(problem, samples=samples, bars=bars, estimator_name=estimator_name))
    return problems


def ours(problem: Problem, theta: Array) -> Step:
    """Return one step in the calls of `training.fit`: draw, forward, backward, Adam.

    `theta` changes in place.
    """
    estimator = problem.estimator
    samples = problem.samples
    dtype = theta.dtype
    _, x_epoch, y_epoch = problem.start(dtype)
    rng = np.random.default_rng(2)
    buffers = Buffers()
    rows = slice(0, problem.rows)
    noise = np.empty(estimator.noise_shape(samples, problem.rows), dtype)
    state = OPTIMIZER.init(theta)

    def one_step() -> None:
        estimator.fill(rng, noise)
        _, grad, _ = estimator.value_and_grad(
            theta, noise, x_epoch[rows], y_epoch[rows], KL_WEIGHT, buffers.rewind()
        )
        OPTIMIZER.update(theta, grad, state, OPTIMIZER.schedule(0.0, 1))

    return one_step
