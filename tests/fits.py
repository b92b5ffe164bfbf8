"""Small fits of both learners that tests share: rows, settings, and all that a fit depends on."""

import numpy as np

from bbb_numpy import BayesianMLPClassifier, BayesianMLPRegressor

SMALL = {"hidden_layer_sizes": (5,), "predict_samples": 20, "random_state": 0}


def numbers(rows=40, inputs=3, outputs=None, seed=0):
    """Rows of a smooth function."""
    x = np.random.default_rng(seed).normal(size=(rows, inputs))
    f = x[:, 0] - 0.5 * x[:, -1] ** 2
    return x, f if outputs is None else np.outer(f, 1.0 + np.arange(outputs))


def blobs(classes=2, rows=60, seed=0):
    """Blobs that overlap a little, one per class, with their codes."""
    codes = np.arange(rows) % classes
    angle = 2 * np.pi * codes / classes
    centre = 1.5 * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return centre + np.random.default_rng(seed).normal(size=(rows, 2)), codes


def regressor(**params):
    """A regressor; in its few epochs there is no time for a warm-up."""
    return BayesianMLPRegressor(**SMALL | {"epochs": 3, "kl_warm_up": "none"} | params)


def classifier(**params):
    return BayesianMLPClassifier(**SMALL | {"epochs": 5} | params)


BOTH = [(regressor, *numbers()), (classifier, *blobs(3))]


def state(model):
    """Everything that predictions and further training depend on, as comparable numbers."""
    memory = model.training_.optimizer_state
    return (
        model.theta_.tobytes(),
        {name: array.tobytes() for name, array in memory.arrays.items()},
        memory.steps,
        [tuple(map(str, epoch)) for epoch in model.history_],
        str(model.rng_.bit_generator.state),
        model.x_mean_.tobytes(),
        model.y_scale_.tobytes(),
        getattr(model, "classes_", np.zeros(0)).tolist(),
    )
