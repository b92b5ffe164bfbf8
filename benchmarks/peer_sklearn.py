"""Contestant: scikit-learn's MLPRegressor, for scale.

A point-estimate network of the same shape, trained by the same rule on the same rows. It
draws no noise and has no rho, so it does less: a comparison of scale, not like for like.
"""

from __future__ import annotations

import sklearn
from sklearn.neural_network import MLPRegressor

from .problems import LEARNING_RATE, Problem, Step

VERSION = sklearn.__version__


def contestants(problem: Problem) -> dict[str, Step]:
    """Return one call of `partial_fit`, which takes one Adam step on the rows."""
    _, x, y = problem.start()
    y = y[:, 0] if y.shape[1] == 1 else y
    learner = MLPRegressor(
        hidden_layer_sizes=problem.sizes[1:-1],
        batch_size=problem.rows,
        learning_rate_init=LEARNING_RATE,
        shuffle=False,
        random_state=0,
    )

    def one_step() -> None:
        learner.partial_fit(x, y)

    return {"scikit-learn": one_step}
