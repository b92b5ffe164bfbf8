"""What is timed: the four networks, their data and starting point, and the bars to meet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbb_numpy import MLP, Adam, GaussianLikelihood, GaussianPrior, Model, Reparameterised

Array = NDArray[Any]
Step = Callable[[], None]  # one training step, complete when it returns

KL_WEIGHT = 0.01
# So small that thousands of timed steps leave every contestant where it started: the time
# of a step then depends on its shape alone, not on how far a training has come.
LEARNING_RATE = 1e-6
OPTIMIZER = Adam(LEARNING_RATE)


class Start(NamedTuple):
    """The same starting point for every contestant."""

    theta: Array  # (2 P,)  mu, then rho
    x: Array  # (B, d_in)
    y: Array  # (B, K)


@dataclass(frozen=True)
class Problem:
    """One network with its minibatch: mean-field Gaussian, prior N(0, 1), unit noise.

    Parameters
    ----------
    sizes : tuple of int
        Widths of the network, input and output included.
    rows : int
        Rows B of the minibatch.
    samples : int
        Weight samples S per step.
    bars : tuple of (str, float)
        Names of ratios and the value that each is to reach.
    """

    sizes: tuple[int, ...]
    rows: int
    samples: int
    bars: tuple[tuple[str, float], ...] = ()

    @property
    def name(self) -> str:
        """The widths joined by dashes."""
        return "-".join(str(size) for size in self.sizes)

    @property
    def estimator(self) -> Reparameterised:
        """The estimator that trains this network."""
        return Reparameterised(Model(MLP(self.sizes), GaussianPrior(1.0), GaussianLikelihood(1.0)))

    @property
    def weights(self) -> int:
        """Number of weights and biases P."""
        return self.estimator.model.layout.size

    def start(self, dtype: Any = np.float32, seed: int = 0) -> Start:
        """Return the report's initial theta and random rows."""
        rng = np.random.default_rng(seed)
        theta = self.estimator.init(rng, dtype)
        x = rng.standard_normal((self.rows, self.sizes[0])).astype(dtype)
        y = rng.standard_normal((self.rows, self.sizes[-1])).astype(dtype)
        return Start(theta, x, y)


def _bars(floor: float, torch: float, jax: float) -> tuple[tuple[str, float], ...]:
    return (("ours/floor", floor), ("PyTorch/ours", torch), ("JAX/ours", jax))


# "ours/..." must not exceed its bar; "PyTorch/ours" and "JAX/ours" must reach theirs.
PROBLEMS = (
    Problem((13, 50, 1), 32, 1, _bars(5.0, 8.0, 1.5)),
    Problem((13, 50, 1), 32, 10, _bars(2.0, 4.0, 1.5)),
    Problem((1, 100, 100, 1), 500, 1, _bars(1.4, 2.5, 1.4)),
    Problem((784, 400, 400, 10), 128, 1, _bars(1.6, 1.0, 1.2)),
)
