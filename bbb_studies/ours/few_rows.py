"""Whether intervals of few rows hold what they promise: twelve laws, from 5 rows to 120.

Rows are drawn from a law, a learner is fitted as it comes, and the share of new targets of the same
law inside its central predictive intervals is counted. A record for each data set is appended to a
file, so that the same call goes on after an interruption.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Rng = np.random.Generator


@dataclass(frozen=True)
class Law:
    """How inputs and targets are made: y = mean(x) + noise(x), in units of their own."""

    what: str  # formula, as shown in tables
    d_in: int
    mean: Callable[[Array], Array]  # from inputs (N, d_in) to E y + const, (N,)
    # from the generator and inputs to the noise (N,)
    noise: Callable[[Rng, Array], Array]
    is_uniform: bool = True  # inputs uniform on [-1, 1], else standard normal

    def draw(self, rng: Rng, n_rows: int) -> tuple[Array, Array]:
        """Draw inputs (N, d_in) and targets (N,) of `n_rows` independent rows."""
        shape = (n_rows, self.d_in)
        if self.is_uniform:
            x = rng.uniform(-1.0, 1.0, shape)
        else:
            x = rng.standard_normal(shape)
        return x, self.mean(x) + self.noise(rng, x)


def _normal(scale: float) -> Callable[[Rng, Array], Array]:
    """Return a function that draws normal noise (N,) of one standard deviation, `scale`."""
    return lambda rng, x: scale * rng.standard_normal(len(x))


# The laws were chosen before any learner was fitted to them.
LAWS: dict[str, Law] = {
    "line, much noise": Law("x + e", 1, lambda x: x[:, 0], _normal(1.0)),
    "line, little noise": Law("2 x + 0.2 e", 1, lambda x: 2.0 * x[:, 0], _normal(0.2)),
    "slow sine": Law(
        "sin(pi x) + 0.3 e", 1, lambda x: np.sin(np.pi * x[:, 0]), _normal(0.3)
    ),
    "fast sine": Law(
        "sin(2 pi x) + 0.2 e", 1, lambda x: np.sin(2 * np.pi * x[:, 0]), _normal(0.2)
    ),
    "step": Law("sign(x) + 0.3 e", 1, lambda x: np.sign(x[:, 0]), _normal(0.3)),
    "quadratic": Law(
        "x^2 + 0.5 e, x normal", 1, lambda x: x[:, 0] ** 2, _normal(0.5), False
    ),
    "five inputs": Law(
        "x1 + x2/2 + x3/4 + 0.5 e, x normal",
        5,
        lambda x: x @ np.array([1.0, 0.5, 0.25, 0.0, 0.0]),
        _normal(0.5),
        False,
    ),
    "interaction": Law(
        "x1 x2 + x3/2 + 0.3 e, x normal",
        3,
        lambda x: x[:, 0] * x[:, 1] + 0.5 * x[:, 2],
        _normal(0.3),
        False,
    ),
    "noise that grows": Law(
        "x + (0.6 + 0.4 x) e",
        1,
        lambda x: x[:, 0],
        lambda rng, x: (0.6 + 0.4 * x[:, 0]) * rng.standard_normal(len(x)),
    ),
    "heavy tails": Law(
        "x + 0.4 t, t of 3 degrees of freedom",
        1,
        lambda x: x[:, 0],
        lambda rng, x: 0.4 * rng.standard_t(3, len(x)),
    ),
    "skewed noise": Law(
        "sin(2 x) + 0.5 (exponential - 1)",
        1,
        lambda x: np.sin(2.0 * x[:, 0]),
        lambda rng, x: 0.5 * (rng.standard_exponential(len(x)) - 1.0),
    ),
    "nothing but noise": Law(
        "e, two inputs", 2, lambda x: np.zeros(len(x)), _normal(1.0)
    ),
}
N_ROWS = (5, 8, 12, 20, 30, 60, 120)
COVERAGES = (0.5, 0.8, 0.9, 0.95)
N_NEW_TARGETS = 200  # of each data set
