"""Bug x detector: which test sees which mistake? The key is computed by running them.

One small program, Bayesian linear regression by Bayes by Backprop with minibatches, whose exact
answers are known (D8); mistakes from published papers and code, planted as edits of its source
(``bugs.json``); six detectors. `DETECTORS` runs them; what each saw is in ``cards.json``.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from exactgrad import check_gradient

from .exercise import Exercise, Finding, Unusable, Verdict

__all__ = ["BUGS", "DETECTORS", "Cards", "key", "program"]

Array = NDArray[Any]
TABLE = Path(__file__).with_name("cards.json")
LOG_2PI = float(np.log(2 * np.pi))
PRIOR = 1.5  # standard deviation of a weight
NOISE = 0.8  # standard deviation of y
# four rows, three weights (the first is the bias), orthogonal: the mean field holds the posterior
X = np.array([[1.0, 1, 1], [1, -1, 1], [1, 1, -1], [1, -1, -1]])
BATCHES = (slice(0, 2), slice(2, 4))
MIN_SHARE_RIGHT = 0.9  # of the cells
# of the cells of one detector; a table that always or never names it fails
MAX_WRONG_PER_DETECTOR = 2


# --- the program; `...` stands for any number of data sets side by side


def share(rows: int, total: int) -> float:
    """Return the share of the complexity that a minibatch pays.

    Parameters
    ----------
    rows, total : int
        Numbers of rows of the minibatch and of the data set.
    """
    return rows / total


def draw(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Draw noise for S samples of P weights.

    Parameters
    ----------
    rng : Generator
        Source of the noise.
    shape : tuple of int
        Shape (..., S, P) of the noise.
    """
    return rng.standard_normal(shape)


def weights(mu: Any, rho: Any, eps: Any) -> Any:
    """Return samples (..., S, P) of the weights.

    Parameters
    ----------
    mu, rho : ndarray (..., P)
        Means and raw standard deviations of the weights.
    eps : ndarray (..., S, P)
        Standard normal noise.
    """
    sigma = np.log(1 + np.exp(rho))[..., None, :]
    return mu[..., None, :] + sigma * eps


def value_and_grad(mu: Any, rho: Any, eps: Any, x: Any, y: Any, pi: Any) -> Any:
    """Return the cost (...) of a minibatch and its slopes (..., P) for mu and for rho.

    Parameters
    ----------
    mu, rho : ndarray (..., P)
        Means and raw standard deviations of the weights.
    eps : ndarray (..., S, P)
        Standard normal noise.
    x : ndarray (B, P)
        Inputs; the first column is that of the bias.
    y : ndarray (..., B)
        Targets.
    pi : float
        Share of the complexity that this minibatch pays.
    """
    sigma = np.log(1 + np.exp(rho))[..., None, :]
    w = weights(mu, rho, eps)
    r = y[..., None, :] - w @ x.T
    kl = np.sum(
        -np.log(sigma) + np.log(PRIOR) - eps**2 / 2 + w**2 / (2 * PRIOR**2), axis=-1
    )
    nll = np.sum(r**2 / (2 * NOISE**2) + np.log(NOISE) + LOG_2PI / 2, axis=-1)
    d_w = pi * w / PRIOR**2 - r @ x / NOISE**2
    d_mu = d_w.mean(axis=-2)
    d_sigma = (d_w * eps - pi / sigma).mean(axis=-2)
    return (pi * kl + nll).mean(axis=-1), d_mu, d_sigma / (1 + np.exp(-rho))


def band(epistemic: Any) -> Any:
    """Return the half-width of the interval that shall hold 95 % of new targets."""
    return 1.96 * np.sqrt(epistemic**2 + NOISE**2)


PARTS = (share, draw, weights, value_and_grad, band)


class Bug(NamedTuple):
    """A mistake from a paper or public code, and the edits of the program that plant it."""

    what: str
    seen: str
    edits: tuple[tuple[str, str], ...]


BUGS: Mapping[str, Bug] = {
    name: Bug(one["what"], one["seen"], tuple(map(tuple, one["edits"])))
    for name, one in json.loads(
        TABLE.with_name("bugs.json").read_text(encoding="utf-8")
    ).items()
}


def program(bug: str = "") -> SimpleNamespace:
    """Return the program with the edits of a bug; by default the right program.

    Parameters
    ----------
    bug : str
        A name of `BUGS`, or ''.

    Raises
    ------
    ValueError
        If the text of an edit does not occur exactly once.
    """
    text = "\n".join(inspect.getsource(part) for part in PARTS)
    edits = BUGS[bug].edits if bug else ()
    for old, new in edits:
        if text.count(old) != 1:
            raise ValueError(f"{old!r} occurs {text.count(old)} times")
        text = text.replace(old, new)
    scope = dict(globals())
    exec(compile(text, "<program>", "exec"), scope)
    return SimpleNamespace(**{part.__name__: scope[part.__name__] for part in PARTS})


# --- exact answers


def _posterior(y: Array) -> tuple[Array, float]:
    """Return the posterior's means (..., P), and the standard deviation of every weight."""
    precision = len(X) / NOISE**2 + 1 / PRIOR**2
    return y @ X / NOISE**2 / precision, precision**-0.5


def _expected(mu: Array, rho: Array, y: Array) -> Array:
    """Return E[F] over noise, all data, and its gradient, from the closed forms (D18, D8)."""
    sigma = np.log1p(np.exp(rho))
    kl = np.sum(np.log(PRIOR / sigma) + (sigma**2 + mu**2) / (2 * PRIOR**2) - 0.5)
    r = y - X @ mu
    squares = r @ r + len(X) * np.sum(sigma**2)
    value = kl + squares / (2 * NOISE**2) + len(X) * (np.log(NOISE) + LOG_2PI / 2)
    d_mu = mu / PRIOR**2 - X.T @ r / NOISE**2
    d_sigma = sigma / PRIOR**2 - 1 / sigma + len(X) * sigma / NOISE**2
    # log q and log P lack log 2 pi both; E[eps^2] / 2 is in the KL
    return np.concatenate([[value], d_mu, d_sigma / (1 + np.exp(-rho))])


def _data(rng: np.random.Generator, sets: int) -> tuple[Array, Array]:
    """Return weights from the prior (sets, P) and targets (sets, N)."""
    w = PRIOR * rng.standard_normal((sets, X.shape[1]))
    return w, w @ X.T + NOISE * rng.standard_normal((sets, len(X)))


CHECK_MU = np.array([0.4, -0.7, 0.2])
CHECK_RHO = np.array([-0.6, 0.3, -1.1])


def _epoch(
    program: SimpleNamespace, eps: Array, y: Array, batches: Any = BATCHES
) -> Array:
    """Return the value and gradient of all minibatches added up."""
    total = np.zeros(1 + 2 * CHECK_MU.size)
    for rows in batches:
        pi = program.share(len(X[rows]), len(X))
        value, d_mu, d_rho = program.value_and_grad(
            CHECK_MU, CHECK_RHO, eps, X[rows], y[rows], pi
        )
        total += np.concatenate([[value], d_mu, d_rho])
    return total


# --- detectors: each returns whether it sees an error, and the number that it compared


def gradient_check(program: SimpleNamespace) -> tuple[bool, float]:
    """Compare the gradient with the complex step (D9)."""
    rng = np.random.default_rng(1)
    eps = program.draw(rng, (4, 3))
    y = _data(rng, 1)[1][0]

    def of_theta(theta: Array) -> tuple[Any, Array]:
        mu, rho = np.split(theta, 2)
        rows = BATCHES[0]
        pi = program.share(2, len(X))
        value, d_mu, d_rho = program.value_and_grad(mu, rho, eps, X[rows], y[rows], pi)
        return value, np.concatenate([d_mu, d_rho])

    report = check_gradient(of_theta, np.concatenate([CHECK_MU, CHECK_RHO]))
    return not report.passed, report.error


def value_at_fixed_noise(program: SimpleNamespace) -> tuple[bool, float]:
    """Compare the epoch's value with log q - log P(w) - log P(D|w), from the densities."""
    rng = np.random.default_rng(2)
    eps = program.draw(rng, (4, 3))
    y = _data(rng, 1)[1][0]
    sigma = np.log1p(np.exp(CHECK_RHO))
    w = CHECK_MU + sigma * eps

    def log_normal(z: Array, mean: Any, scale: Any) -> Array:
        return -((z - mean) ** 2) / (2 * scale**2) - np.log(scale) - LOG_2PI / 2

    right = (
        log_normal(w, CHECK_MU, sigma).sum(axis=1)
        - log_normal(w, 0.0, PRIOR).sum(axis=1)
        - log_normal(y, w @ X.T, NOISE).sum(axis=1)
    ).mean()
    error = abs(_epoch(program, eps, y)[0] - right)
    return bool(error > 1e-9), float(error)


def mean_over_noise(program: SimpleNamespace) -> tuple[bool, float]:
    """Compare the means over noise with the closed forms, in standard errors."""
    rng = np.random.default_rng(3)
    y = _data(rng, 1)[1][0]
    sums = np.array(
        [_epoch(program, program.draw(rng, (100, 3)), y) for _ in range(400)]
    )
    standard_error = sums.std(axis=0, ddof=1) / np.sqrt(len(sums))
    n_standard_errors = np.max(
        np.abs(sums.mean(axis=0) - _expected(CHECK_MU, CHECK_RHO, y)) / standard_error
    )
    return bool(n_standard_errors > 5.0), float(n_standard_errors)


def invariance(program: SimpleNamespace) -> tuple[bool, float]:
    """Cut the data into minibatches in other ways: with the same weights, costs add up the same."""
    rng = np.random.default_rng(4)
    eps = program.draw(rng, (4, 3))
    y = _data(rng, 1)[1][0]
    cuts = ((slice(0, 4),), BATCHES, (slice(0, 1), slice(1, 4)))
    sums = np.array([_epoch(program, eps, y, batches) for batches in cuts])
    spread = np.max(np.ptp(sums, axis=0))
    return bool(spread > 1e-9), float(spread)


@cache
def _trained(bug: str) -> tuple[Array, Array, Array, Array]:
    """Train on 300 data sets side by side; return weights, targets, and theta."""
    trained_program = program(bug)
    rng = np.random.default_rng(5)
    w, y = _data(rng, 300)
    theta = np.zeros((2, *w.shape))
    theta[1] = -1.0
    m = np.zeros_like(theta)
    v = np.zeros_like(theta)
    steps = 1200
    for t in range(1, steps + 1):
        grad = np.zeros_like(theta)
        for rows in BATCHES:
            eps = trained_program.draw(rng, (len(w), 8, 3))
            pi = trained_program.share(2, len(X))
            with np.errstate(over="ignore", invalid="ignore"):
                _, d_mu, d_rho = trained_program.value_and_grad(
                    *theta, eps, X[rows], y[:, rows], pi
                )
            grad += np.clip(np.stack([d_mu, d_rho]), -1e6, 1e6)
        m = 0.9 * m + 0.1 * grad
        v = 0.99 * v + 0.01 * grad**2
        rate = 0.05 * min(1.0, 2 * (1 - t / steps)) ** 2 + 1e-4
        theta -= rate * m / (1 - 0.9**t) / (np.sqrt(v / (1 - 0.99**t)) + 1e-12)
        theta[1] = np.clip(theta[1], -30.0, 30.0)
    return w, y, theta[0], theta[1]


def _convergence(bug: str) -> tuple[bool, float]:
    """Compare where training ends with the exact posterior, in its standard deviations."""
    _, y, mu, rho = _trained(bug)
    mean, sd = _posterior(y)
    error_of_means = np.sqrt(np.mean((mu - mean) ** 2)) / sd
    error_of_scales = np.max(np.abs(np.log(np.logaddexp(0, rho).mean(axis=0) / sd)))
    largest_error = float(max(error_of_means, error_of_scales))
    return bool(largest_error > 0.15), largest_error


def _coverage(bug: str) -> tuple[bool, float]:
    """Return the share of new targets inside the bands that should hold 95 %."""
    trained_program = program(bug)
    w, _, mu, rho = _trained(bug)
    rng = np.random.default_rng(6)
    f = (
        trained_program.weights(mu, rho, trained_program.draw(rng, (len(w), 200, 3)))
        @ X.T
    )
    targets = (w @ X.T)[None] + NOISE * rng.standard_normal((20, len(w), len(X)))
    inside = np.abs(targets - f.mean(axis=1)) <= trained_program.band(
        f.std(axis=1, ddof=1)
    )
    coverage = float(inside.mean())
    return bool(abs(coverage - 0.95) > 0.02), coverage


# From the name of a bug ('' is the right program) to whether it is seen, and the number that was
# compared: an error, a number of standard errors, or a share
Detector = Callable[[str], tuple[bool, float]]


def _on(detector: Callable[[SimpleNamespace], tuple[bool, float]]) -> Detector:
    return lambda which: detector(program(which))


DETECTORS: Mapping[str, Detector] = {
    "gradient check": _on(gradient_check),
    "value": _on(value_at_fixed_noise),
    "mean over noise": _on(mean_over_noise),
    "invariance": _on(invariance),
    "convergence": _convergence,
    "coverage": _coverage,
}


def key() -> dict[str, dict[str, tuple[bool, float]]]:
    """Return, for each bug and detector, whether it was seen, and the number that was compared."""
    table: dict[str, dict[str, tuple[bool, float]]] = json.loads(
        TABLE.read_text(encoding="utf-8")
    )
    return table


@dataclass(frozen=True, kw_only=True)
class Cards(Exercise):
    """An exercise whose answer is a table: for each bug the detectors that see it."""

    def judge(self, answer: Any) -> Verdict:
        """Compare the table with what was measured."""
        table = key()
        if not isinstance(answer, Mapping) or set(answer) != set(BUGS):
            raise Unusable(f"it must be a dict with the bugs {', '.join(BUGS)}")
        for bug, detected in answer.items():
            unknown = [name for name in detected if name not in DETECTORS]
            if unknown:
                detectors = ", ".join(DETECTORS)
                raise Unusable(
                    f"{bug!r}: {unknown[0]!r} is no detector; they are {detectors}"
                )
        if not any(answer.values()):
            raise NotImplementedError
        findings = []
        cells = len(BUGS) * len(DETECTORS)
        wrong = dict.fromkeys(DETECTORS, 0)
        for bug in BUGS:
            for detector in DETECTORS:
                detected, number = table[bug][detector]
                if detected != (detector in answer[bug]):
                    measured = "sees it" if detected else "does not see it"
                    findings.append(
                        Finding(f"{bug}, {detector}", f"{measured} ({number:.3g})")
                    )
                    wrong[detector] += 1
        right = cells - len(findings)
        head = f"{right} of {cells} cells are as measured; {MIN_SHARE_RIGHT:.0%} are asked for"
        score = {"right": float(right), "cells": float(cells)}
        blind = [
            Finding(
                name,
                f"{number} of its cells are wrong; at most {MAX_WRONG_PER_DETECTOR} may be",
            )
            for name, number in wrong.items()
            if number > MAX_WRONG_PER_DETECTOR
        ]
        passed = right >= MIN_SHARE_RIGHT * cells and not blind
        return Verdict(
            self.name, passed, "scored", head, (*blind, *findings), score=score
        )
