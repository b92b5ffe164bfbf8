"""Occam's razor at work, in real numbers: Figure 6 of Mullachery et al. (M20, M21).

(a) Labels: eight points on a line have 256 label vectors. For three logistic models, a straight
line, a parabola and a polynomial of degree 7, and for a network, the evidence of *all* of them:
each model has probability one to spend.
(b) Regression: a line, a small and a large network, each judged by annealed importance sampling
on data drawn from each.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbb_numpy.evaluation.model_checks import BayesFactor, bayes_factor
from bbb_numpy.model.joint import Model
from bbb_numpy.model.log_joint import LogJoint
from bbb_numpy.numeric.buffers import Buffers
from bbb_numpy.parts.discrete import BernoulliLikelihood
from bbb_numpy.parts.likelihoods import GaussianLikelihood
from bbb_numpy.parts.network import MLP
from bbb_numpy.parts.priors import GaussianPrior
from bbb_numpy.sampling.annealing import Annealed, evidence
from bbb_numpy.studies import linear_gaussian

from . import plots, text

__all__ = [
    "LABELS",
    "Budget",
    "Labelled",
    "Measured",
    "all_labels",
    "changes",
    "divergences",
    "features",
    "label_models",
    "nodes",
    "regression_models",
    "reproduce",
    "sum_over_weights",
]

Array = NDArray[Any]
POINTS = 8
PRIOR = 5.0  # deviation of every weight, logistic models
ROWS, NOISE, WIDTH = 15, 0.3, 1.5  # regression: rows, deviations of noise and of every weight
BLOCK = 20_000  # weight vectors in one pass


class Budget(NamedTuple):
    """How much to compute."""

    side: int = 81  # quadrature nodes along each weight
    draws: int = 80_000  # of the network's prior
    chains: int = 50  # of annealed importance sampling
    steps: int = 150
    sets: int = 3  # regressions drawn from each model
    checked: int = 3  # label vectors checked by annealing


class Labelled(NamedTuple):
    """A model of labels and its probability of every label vector."""

    model: Model
    x: Array  # (N, d_in)
    probability: Array  # (2^N,)
    error: Array  # (2^N,)  standard error, 0 by quadrature


class Found(NamedTuple):
    """A log evidence in nats and its standard error."""

    log_evidence: float
    error: float
    lower: float  # mean log weight, below on average


class Measured(NamedTuple):
    """A data set and what every model says of it."""

    source: str
    y: Array  # (N, 1)
    found: dict[str, Found]


def all_labels(points: int) -> Array:
    """Return all 0-1 vectors (2^N, N)."""
    return (np.arange(2**points)[:, None] >> np.arange(points)) & 1


def changes(labels: Array) -> Array:
    """Count the places (2^N,) at which neighbouring labels differ: how complex the data are."""
    return np.count_nonzero(np.diff(labels, axis=1), axis=1)


LABELS = all_labels(POINTS)


def features(points: int, degree: int) -> Array:
    """Return orthogonal polynomials (N, degree) on a grid, each of mean 0 and mean square 1.

    With the bias, degree N - 1 has as many weights as points, and orthogonal columns: equal
    priors of the weights are then equal and independent priors of all logits.
    """
    t = np.linspace(-1.0, 1.0, points)
    columns = np.linalg.qr(np.vander(t, degree + 1, increasing=True))[0]
    return columns[:, 1:] * points**0.5


def nodes(weights: int, side: int, scale: float) -> tuple[Array, Array]:
    """Return a grid of weight vectors (side^P, P), and the share (side^P,) of the prior of each.

    The trapezoidal rule, exact to rounding for smooth integrands; the sigmoids of a wide prior
    are steep, so that it takes some eighty nodes a side for four digits of the rarest labels.
    """
    z = np.linspace(-6.0, 6.0, side)
    grid = np.stack(np.meshgrid(*[z] * weights, indexing="ij"), axis=-1).reshape(-1, weights)
    shares = np.exp(-0.5 * np.sum(grid**2, axis=1))
    return scale * grid, shares / shares.sum()


def sum_over_weights(model: Model, x: Array, w: Array, shares: Array) -> tuple[Array, Array]:
    """Return P(labels|m) = sum_s share_s prod_i P(label_i|x_i, w_s), all label vectors (M21).

    Every w spends exactly 1 on all of them, so any shares that sum to 1 do.

    Returns
    -------
    probability, error : ndarray (2^N,)
        The standard error holds if the shares are equal and the weights drawn from the prior.
    """
    total, squares, buffers = np.zeros(2 ** len(x)), np.zeros(2 ** len(x)), Buffers()
    for begin in range(0, len(w), BLOCK):
        some = w[begin : begin + BLOCK]
        p = model.likelihood.mean({}, model.predict(some, x, buffers.rewind()))[..., 0]  # (S, N)
        product = np.ones((len(some), 1))
        for i in range(len(x)):  # doubles with every point, the newest label in the upper half
            product = np.concatenate(
                [product * (1.0 - p[:, i : i + 1]), product * p[:, i : i + 1]], 1
            )
        total += shares[begin : begin + BLOCK] @ product
        squares += shares[begin : begin + BLOCK] @ product**2
    return total, np.sqrt(np.maximum(squares - total**2, 0.0) / len(w))


def label_models(rng: np.random.Generator, budget: Budget) -> dict[str, Labelled]:
    """Return the four models of labels, evaluated on all label vectors."""
    prior, likelihood = GaussianPrior(PRIOR), BernoulliLikelihood()
    found = {}
    for name, degree in (("line", 1), ("parabola", 2), ("degree 7", POINTS - 1)):
        model, x = Model(MLP((degree, 1)), prior, likelihood), features(POINTS, degree)
        if degree < 3:
            w, shares = nodes(degree + 1, budget.side, PRIOR)
            probability, _ = sum_over_weights(model, x, w, shares)
        else:  # independent logits, symmetric about 0: every label is a fair coin (M21)
            probability = np.full(2**POINTS, 0.5**POINTS)
        found[name] = Labelled(model, x, probability, np.zeros_like(probability))
    model, x = Model(MLP((1, 20, 20, 1), "tanh"), prior, likelihood), features(POINTS, 1)
    w = model.prior.draw(rng, {}, (budget.draws, model.layout.size))
    shares = np.full(budget.draws, 1.0 / budget.draws)
    found["network"] = Labelled(model, x, *sum_over_weights(model, x, w, shares))
    return found


def divergences(models: Mapping[str, Labelled]) -> dict[str, dict[str, float]]:
    """Return KL(m || m') in nats: what m' loses on average on data from m (M21)."""
    return {
        m: {
            other: float(np.sum(one.probability * np.log(one.probability / two.probability)))
            for other, two in models.items()
        }
        for m, one in models.items()
    }


def check_labels(
    models: Mapping[str, Labelled], rng: np.random.Generator, budget: Budget
) -> Iterator[tuple[str, int, Annealed]]:
    """Anneal on label vectors of growing complexity: (model, index of the labels, result)."""
    asked = np.linspace(0, POINTS - 2, budget.checked).astype(int)
    by_changes = [np.flatnonzero(changes(LABELS) == c) for c in asked]
    for which in (int(rng.choice(some)) for some in by_changes):
        y = LABELS[which][:, None].astype(float)
        for name in ("line", "parabola", "degree 7", "network"):
            joint = LogJoint(models[name].model, models[name].x, y)
            steps = budget.steps // 2
            yield name, which, evidence(joint, chains=2 * budget.chains, steps=steps, seed=rng)


def regression_models() -> dict[str, Model]:
    """Return a line, a small and a large network with the same prior and noise."""
    prior, noise = GaussianPrior(WIDTH), GaussianLikelihood(NOISE)
    sizes = {"line": (1, 1), "small network": (1, 3, 1), "large network": (1, 20, 20, 1)}
    return {name: Model(MLP(size, "tanh"), prior, noise) for name, size in sizes.items()}


def measure(rng: np.random.Generator, budget: Budget) -> list[Measured]:
    """Draw regressions from every model, and find every model's evidence of each."""
    models, x = regression_models(), np.linspace(-2.0, 2.0, ROWS)[:, None]
    found = []
    for source, model in models.items():
        for _ in range(budget.sets):
            w = model.prior.draw(rng, {}, (1, model.layout.size))
            y = model.likelihood.draw(rng, {}, model.predict(w, x))[0]
            line = linear_gaussian.exact(linear_gaussian.Regression(models["line"], x, y))
            row = {"line": Found(line.log_evidence, 0.0, line.log_evidence)}
            for name in ("small network", "large network"):
                run = evidence(
                    LogJoint(models[name], x, y), chains=budget.chains, steps=budget.steps,
                    pilot_chains=max(budget.chains // 2, 10), seed=rng,
                )  # fmt: skip
                row[name] = Found(run.log_evidence, run.error, run.lower)
            found.append(Measured(source, y, row))
    return found


def best_rival(measured: Measured) -> tuple[str, BayesFactor]:
    """Return the best model but the source, and the Bayes factor of the source against it."""
    own = measured.found[measured.source]
    rivals = {name: one for name, one in measured.found.items() if name != measured.source}
    rival = max(rivals, key=lambda name: rivals[name].log_evidence)
    return rival, bayes_factor(own, rivals[rival])


def reproduce(out: Path, seed: int = 0, *, budget: Budget | None = None) -> str:
    """Measure, write ``occam.png``, ``.json`` and ``.txt`` into `out`, return the text.

    Parameters
    ----------
    out : Path
        Folder, made if missing.
    seed : int
        Of data sets, prior draws and chains.
    budget : Budget, optional
        Less for a quick look.
    """
    budget = budget or Budget()
    out.mkdir(parents=True, exist_ok=True)
    first, second, third = (np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(3))
    models = label_models(first, budget)
    checks = list(check_labels(models, second, budget))
    measured = measure(third, budget)
    summary = text.summarise(models, checks, measured, budget)
    (out / "occam.txt").write_text(summary + "\n", encoding="utf-8")
    plots.razor(models, measured).savefig(out / "occam.png", dpi=100)
    found = {
        "labels": {
            name: {"probability": m.probability.tolist(), "error": m.error.tolist()}
            for name, m in models.items()
        },
        "checks": _rows(models, checks),
        "divergences": divergences(models),
        "regressions": [
            {"source": m.source, "y": m.y[:, 0].tolist(),
             "found": {name: one._asdict() for name, one in m.found.items()}}
            for m in measured
        ],
    }  # fmt: skip
    (out / "occam.json").write_text(
        json.dumps(found, indent=1, allow_nan=False) + "\n", encoding="utf-8"
    )
    return summary


def _rows(
    models: Mapping[str, Labelled], checks: Sequence[tuple[str, int, Annealed]]
) -> list[dict[str, Any]]:
    return [
        {
            "model": name,
            "labels": LABELS[which].tolist(),
            "log_probability": float(np.log(models[name].probability[which])),
            "its error": float(models[name].error[which] / models[name].probability[which]),
            "annealed": run.log_evidence,
            "error": run.error,
        }
        for name, which, run in checks
    ]
