"""Small learners that tests share: rows, settings, and the state that a fit leaves."""

import numpy as np

from bbb_numpy import BayesianMLPClassifier, BayesianMLPRegressor

SMALL_PARAMS = {
    "hidden_layer_sizes": (5,),
    "inference": "mean-field",
    "predict_samples": 20,
    "random_state": 0,
}


def regression_rows(rows=40, inputs=3, outputs=None, seed=0):
    """Return rows x (N, d_in) and y (N,) of a smooth function, or y (N, K) of several."""
    x = np.random.default_rng(seed).normal(size=(rows, inputs))
    f = x[:, 0] - 0.5 * x[:, -1] ** 2
    return x, f if outputs is None else np.outer(f, 1.0 + np.arange(outputs))


def class_blobs(classes=2, rows=60, seed=0):
    """Return blobs that overlap a little, one per class, with their codes."""
    codes = np.arange(rows) % classes
    angle = 2 * np.pi * codes / classes
    centre = 1.5 * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return centre + np.random.default_rng(seed).normal(size=(rows, 2)), codes


def regressor(**params):
    """Return a regressor; in its few epochs there is no time for a warm-up."""
    return BayesianMLPRegressor(**SMALL_PARAMS | {"epochs": 3, "kl_warm_up": "none"} | params)


def classifier(**params):
    return BayesianMLPClassifier(**SMALL_PARAMS | {"epochs": 5} | params)


SMALL_LEARNERS = [(regressor, *regression_rows()), (classifier, *class_blobs(3))]


def fitted_state(model):
    """Return everything that predictions and further training depend on, as numbers."""
    optimizer_state = model.training_.optimizer_state
    return (
        model.theta_.tobytes(),
        {name: array.tobytes() for name, array in optimizer_state.arrays.items()},
        optimizer_state.steps,
        [tuple(map(str, epoch)) for epoch in model.history_],
        str(model.rng_.bit_generator.state),
        model.x_mean_.tobytes(),
        model.y_scale_.tobytes(),
        getattr(model, "classes_", np.zeros(0)).tolist(),
    )
