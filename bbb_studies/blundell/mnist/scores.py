"""What is measured of the trained networks of the MNIST study."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbb_numpy.evaluation.predictive import predict_classes
from bbb_numpy.evaluation.pruning import (
    SHARES,
    decibels,
    lowest,
    matrices,
    signal_to_noise_of,
    sweep,
)

from .models import Candidate, Run, Settings, build, classes_of_mean

__all__ = ["Images", "measure", "probabilities", "pruned"]

Array = NDArray[Any]


class Images(NamedTuple):
    """Inputs (N, 784) in float32, pixels / 126, and labels (N,) of the three parts."""

    x: Array
    labels: Array
    x_validation: Array
    labels_validation: Array
    x_test: Array
    labels_test: Array


def probabilities(
    candidate: Candidate, settings: Settings, theta: Array, x: Array, draws: int
) -> Array:
    """Return class probabilities (N, 10), for BBB averaged over `draws` weight vectors."""
    estimator = build(candidate, settings.hidden)
    rng = np.random.default_rng([settings.seed, 100])  # the same draws for every theta
    samples = draws if candidate.method == "BBB" else 1
    return predict_classes(estimator, theta, x, rng=rng, samples=samples).proba


def measure(
    images: Images, settings: Settings, chosen: dict[str, tuple[Candidate, Run]]
) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return the numbers, from test images too, and the weights that the pictures show."""
    labels, methods, errors = images.labels_test, {}, {}
    weights: dict[str, Array] = {}
    for name, (c, run) in chosen.items():
        theta = run.training.theta
        found = probabilities(c, settings, theta, images.x_validation, settings.draws)
        validation = np.mean(found.argmax(1) != images.labels_validation)
        found = probabilities(c, settings, theta, images.x_test, settings.draws)
        errors[name] = found.argmax(1) != labels
        tiny = np.finfo(np.float32).tiny
        nll = -np.log(np.maximum(found[np.arange(len(labels)), labels], tiny), dtype=float)
        mean = classes_of_mean(c, settings, theta, images.x_test) != labels
        last = run.training.history[-1]
        methods[name] = {
            "chosen": c.name,
            "epochs": len(run.errors),
            "errors": run.errors,
            "validation": float(validation),
            "test": float(errors[name].mean()),
            "test, mean network": float(mean.mean()),
            "test nll": float(nll.mean()),
            "train nll": last.nll / len(images.x),
            "train kl": last.kl / len(images.x) if name == "BBB" else None,
        }
        weights[name] = theta[: build(c, settings.hidden).model.layout.size].astype(float)
    against = {}
    for name in ("SGD", "MAP"):
        difference = errors[name].astype(float) - errors["BBB"]
        error = difference.std(ddof=1) / len(difference) ** 0.5
        against[name] = [float(difference.mean()), float(error)]
    c, run = chosen["BBB"]
    estimator, theta = build(c, settings.hidden), run.training.theta
    eps = estimator.draw_weights(np.random.default_rng([settings.seed, 101]), 1, theta.dtype)
    weights["BBB, one draw"] = estimator.weights(theta, eps)[0].astype(float)
    ratio = signal_to_noise_of(estimator, theta)
    weights["ratio"] = ratio
    spread = {name: _shape(w) for name, w in weights.items() if name != "ratio"}
    level = decibels(ratio[ratio > 0])
    quantiles = np.quantile(level, [0.05, 0.25, 0.5, 0.75, 0.95])
    found_numbers = {
        "methods": methods,
        "against BBB": against,
        "weights": spread,
        "ratio": {"quantiles": quantiles.tolist(), "above 0 dB": float((level > 0).mean())},
        "pruning": pruned(images, settings, chosen),
    }
    return found_numbers, weights


def _shape(w: Array) -> dict[str, float]:
    """Return deviation, the 99.9 % range and the share of nearly-zero weights."""
    low, high = np.quantile(w, [0.0005, 0.9995])
    return {
        "deviation": float(w.std()),
        "low": float(low),
        "high": float(high),
        "below 0.01": float((np.abs(w) < 0.01).mean()),
    }


def pruned(
    images: Images, settings: Settings, chosen: dict[str, tuple[Candidate, Run]]
) -> list[dict[str, Any]]:
    """Remove weights of BBB by signal-to-noise, and of SGD by size, of which it has no noise."""
    c, run = chosen["BBB"]
    estimator = build(c, settings.hidden)
    eligible = matrices(estimator.model.layout)

    def score(theta: Array) -> float:
        found = probabilities(c, settings, theta, images.x_test, settings.pruning_draws)
        return float(np.mean(found.argmax(1) != images.labels_test))

    steps = sweep(estimator, run.training.theta, score, SHARES, eligible)
    plain, plain_run = chosen["SGD"]
    rows = []
    for step in steps:
        theta = plain_run.training.theta.copy()
        theta[lowest(np.abs(theta), step.share, eligible)] = 0.0
        given = classes_of_mean(plain, settings, theta, images.x_test)
        rows.append(
            {
                "share": step.share,
                "left": step.left - int((~eligible).sum()),
                "threshold": step.threshold if np.isfinite(step.threshold) else None,
                "BBB": step.score,
                "SGD": float(np.mean(given != images.labels_test)),
            }
        )
    return rows
