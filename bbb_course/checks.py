"""Grade the test: the student writes a check, and it is tried on right and on wrong programs.

The score is the number of planted errors that the check finds, minus its false alarms on right
programs. A check that refuses everything finds all errors, and nobody would keep it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import SystemRandom
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .exercise import Exercise, Finding, Unusable, Verdict, ask

__all__ = ["Check", "Subject", "gradients", "kernels", "predictions"]

Array = NDArray[Any]


class Subject(NamedTuple):
    """A right or wrong program on which a check is tried."""

    what: str
    right: bool
    arguments: tuple[Any, ...]


@dataclass(frozen=True, kw_only=True)
class Check(Exercise):
    """An exercise whose answer is a check: true for what is right."""

    subjects: Callable[[], list[Subject]]  # makes right and wrong ones

    def judge(self, answer: Any) -> Verdict:
        """Try the answer on all subjects."""
        killed = 0
        alarms = 0
        findings = []
        subjects = self.subjects()
        accepted: dict[str, bool | Unusable] = {}
        # in random order, so that an answer cannot count its calls
        for subject in SystemRandom().sample(subjects, len(subjects)):
            accepted[subject.what] = _accepts(answer, subject)
        for subject in subjects:
            description, right, _ = subject
            accepts = accepted[description]
            if isinstance(accepts, Unusable):
                _accepts(answer, subject)  # once more, since its last prints are shown
                raise accepts
            if right and not accepts:
                alarms += 1
                findings.append(
                    Finding("false alarm", f"{description} is right, and is refused")
                )
            elif not right and accepts:
                findings.append(Finding("not seen", description))
            elif not right:
                killed += 1
        wrong = sum(not program.right for program in subjects)
        score = {
            "found": float(killed),
            "planted": float(wrong),
            "false alarms": float(alarms),
            "score": float(killed - alarms),
        }
        noun = "alarm" if alarms == 1 else "alarms"
        head = (
            f"finds {killed} of {wrong} planted errors, {alarms} false {noun} on "
            f"{len(subjects) - wrong} right programs: score {killed - alarms} of {wrong}"
        )
        passed = killed == wrong and not alarms
        return Verdict(self.name, passed, "scored", head, tuple(findings), score=score)


def _accepts(answer: Any, subject: Subject) -> bool | Unusable:
    """Return whether a check accepts a program, or why it cannot be used."""
    copies = [np.copy(a) if isinstance(a, np.ndarray) else a for a in subject.arguments]
    try:
        return bool(
            ask(
                lambda *arguments: bool(answer(*arguments)),
                *copies,
                about=f" (on {subject.what})",
            )
        )
    except Unusable as error:
        return error


def _subjects(right: Mapping[str, Any], wrong: Mapping[str, Any]) -> list[Subject]:
    """Return subjects of arguments by description, the right ones first."""
    return [
        *(Subject(name, True, arguments) for name, arguments in right.items()),
        *(Subject(name, False, arguments) for name, arguments in wrong.items()),
    ]


# --- gradients


def _cost(theta: Array) -> tuple[Any, Array]:
    """Return a smooth function and its gradient, for floats and complex numbers."""
    e = np.exp(theta)
    sigma = np.log(1 + e)
    total = np.sum(theta * np.arange(1, theta.size + 1))
    value = np.sum(sigma**2) + total**2 / 20 + np.sum(theta**3) / 10
    slope = 2 * sigma * e / (1 + e) + total * np.arange(1, theta.size + 1) / 10
    return value, slope + 3 * theta**2 / 10


def gradients() -> list[Subject]:
    """Return functions with right and wrong gradients."""
    theta = np.array([0.7, -1.2, 0.4, 1.1, -0.3])
    eight = np.append(theta, [0.6, -0.5, 0.2])

    def scaled_cost(
        change: Callable[[Array, Array], Array] = lambda g, t: g,
        factor: float = 1.0,
        shift: float = 0.0,
    ) -> Callable[[Array], tuple[Any, Array]]:
        """Return a function that computes ``factor * cost + shift`` and a gradient.

        Parameters
        ----------
        change : callable
            Takes the right gradient of the cost and theta to the gradient that is returned.
        factor, shift : float
            What the cost is multiplied by, and what is then added to the value.
        """

        def value_and_grad(theta: Array) -> tuple[Any, Array]:
            value, grad = _cost(theta)
            return factor * value + shift, factor * change(grad, theta)

        return value_and_grad

    def entry(i: int, factor: float) -> Callable[[Array, Array], Array]:
        return lambda grad, theta: (
            grad * np.where(np.arange(grad.size) == i, factor, 1.0)
        )

    right = {
        "a right gradient": (_cost, theta),
        "a right gradient near 0": (_cost, 1e-3 * theta),
        "a right gradient of a cost of a million": (scaled_cost(factor=1e6), theta),
        "a right gradient of a cost of a millionth": (scaled_cost(factor=1e-6), theta),
        "a right gradient of a cost with a large constant": (
            scaled_cost(shift=1e4),
            theta,
        ),
        "a right gradient in one dimension": (_cost, theta[:1]),
        "a right gradient in eight dimensions": (_cost, eight),
    }
    wrong = {
        "the sign of the whole gradient": scaled_cost(lambda g, t: -g),
        "a gradient of twice the size": scaled_cost(lambda g, t: 2 * g),
        "one derivative that is 0": scaled_cost(entry(2, 0.0)),
        "the sign of the last derivative": scaled_cost(entry(-1 + 5, -1.0)),
        "one derivative too large by 1/1000 of itself": scaled_cost(entry(1, 1.001)),
        "two errors that cancel in the sum of the derivatives": scaled_cost(
            lambda g, t: g + np.array([0.5, -0.5, 0, 0, 0])
        ),
        "an error that is wrong only where theta is negative": scaled_cost(
            lambda g, t: g + 0.3 * (t.real < -1)
        ),
        "a gradient of a cost of a millionth, too large by 1/1000 of itself": scaled_cost(
            lambda g, t: 1.001 * g, 1e-6
        ),
        "a gradient that is nan": scaled_cost(lambda g, t: g * np.nan),
        "the smallest derivative, with the other sign": scaled_cost(
            lambda g, t: np.where(np.abs(g) == np.abs(g).min(), -g, g)
        ),
        "one derivative that is nan": scaled_cost(entry(3, np.nan)),
    }
    wrong_with_theta = {
        description: (program, theta) for description, program in wrong.items()
    }
    wrong_with_theta["the eighth derivative of eight"] = (
        scaled_cost(entry(7, 1.01)),
        eight,
    )
    wrong_with_theta["a gradient near 0 that is that of theta = 0"] = (
        scaled_cost(lambda g, t: _cost(0 * t)[1]),
        1e-3 * theta,
    )
    return _subjects(right, wrong_with_theta)


# --- kernels of chains on a few states


def _metropolis(
    p: Array,
    q: Array,
    *,
    ratio: bool = True,
    keeps_refused: bool = True,
    factor: float = 1.0,
) -> Array:
    """Return the Metropolis kernel (K, K) of the proposal q for p (K,), or one with an error."""
    flow = p[:, None] * q
    above = flow.T
    below = flow
    if not ratio:
        above = np.broadcast_to(p, q.shape)
        below = np.broadcast_to(p[:, None], q.shape)
    accepted = np.divide(above, below, out=np.ones_like(q), where=below > 0)
    kernel = q * np.minimum(1.0, factor * accepted)
    np.fill_diagonal(kernel, 0.0)
    if keeps_refused:
        np.fill_diagonal(kernel, 1 - kernel.sum(axis=1))
    else:
        np.fill_diagonal(kernel, np.diag(q))
    return kernel


def kernels() -> list[Subject]:
    """Return right and wrong kernels of chains, each with p."""
    rng = np.random.default_rng(3)
    p = np.array([0.1, 0.2, 0.3, 0.4])
    q = rng.dirichlet(np.ones(4), 4)
    symmetric = np.full((4, 4), 0.25)
    right = _metropolis(p, q)
    barker = q * (p * q.T) / (p * q.T + p[:, None] * q)
    np.fill_diagonal(barker, 0.0)
    np.fill_diagonal(barker, 1 - barker.sum(axis=1))
    # a current in a circle on top of a reversible kernel: p stays, detailed balance goes
    flow = p[:, None] * _metropolis(p, symmetric)
    current = 0.4 * min(flow[i, (i + 1) % 4] for i in range(4))
    circle = np.roll(np.eye(4), 1, axis=1)
    current_pattern = circle - circle.T
    circular = (flow + current * current_pattern) / p[:, None]
    blocks = np.zeros((4, 4))
    for block in (slice(0, 2), slice(2, 4)):
        blocks[block, block] = p[block] / p[block].sum()
    # period 2: from {0, 3} to {1, 2} and back, which weigh the same
    pairs = np.zeros((4, 4))
    pairs[np.ix_([0, 3], [1, 2])] = p[[1, 2]] / 0.5
    pairs[np.ix_([1, 2], [0, 3])] = p[[0, 3]] / 0.5
    seven = np.arange(1.0, 8.0) / 28
    # to neighbours; none beyond the ends
    steps = 0.5 * (np.eye(7, k=1) + np.eye(7, k=-1))
    exchanged = seven[[0, 1, 2, 3, 4, 6, 5]]
    right_kernels = {
        "Metropolis and Hastings with a lopsided proposal": right,
        "Metropolis with a symmetric proposal": _metropolis(p, symmetric),
        "independent draws from p": np.tile(p, (4, 1)),
        "Barker's rule": barker,
        "a kernel with a current in a circle, without detailed balance": circular,
        "a slow chain that moves once in a hundred steps": 0.99 * np.eye(4)
        + 0.01 * right,
        "seven states in a row, steps to neighbours only": (
            _metropolis(seven, steps),
            seven,
        ),
        "three states, none of which is ever kept": (
            (1 - np.eye(3)) / 2,
            np.full(3, 1 / 3),
        ),
    }
    wrong_kernels = {
        "the proposal in place of the kernel": q,
        "the proposal's ratio forgotten": _metropolis(p, q, ratio=False),
        "refused steps that are lost": _metropolis(p, q, keeps_refused=False),
        "a kernel for another p": _metropolis(p[::-1].copy(), symmetric),
        "two blocks that no step connects, each with its part of p": blocks,
        "a chain of period 2 that has p as its stationary distribution": pairs,
        "a chain that never moves": np.eye(4),
        "rows that add up to 1, one of their numbers negative": (
            flow + 5 * current * current_pattern
        )
        / p[:, None],
        "steps that are accepted a tenth too often": _metropolis(p, q, factor=1.1),
        "steps that are accepted slightly too often": _metropolis(p, q, factor=1.01),
        "seven states, two of which are exchanged": (
            _metropolis(exchanged, steps),
            seven,
        ),
    }

    def with_p(kernels: Mapping[str, Any]) -> dict[str, Any]:
        pairs = {}
        for description, kernel in kernels.items():
            has_its_own_p = isinstance(kernel, tuple)
            pairs[description] = kernel if has_its_own_p else (kernel, p)
        return pairs

    return _subjects(with_p(right_kernels), with_p(wrong_kernels))


# --- predictive distributions


def predictions() -> list[Subject]:
    """Return draws (T, N) from right and wrong predictive distributions, each with y (N,)."""
    rows = 500
    draws = 200

    def draws_and_targets(
        seed: int,
        spread: float = 1.0,
        shift: float = 0.0,
        skew: bool = False,
        edge: float = 1.0,
        peaks: bool = False,
        mirrored: bool = False,
    ) -> tuple[Array, Array]:
        """Return draws (T, N) of a predictive distribution, and targets (N,).

        Parameters
        ----------
        seed : int
            Seed of draws and targets.
        spread : float
            Standard deviation of the draws, in units of the targets'.
        shift : float
            Distance of the draws' mean from the right one, in the same units.
        skew : bool
            Whether the noise of draws and targets has a long right tail.
        edge : float
            Factor of the draws' standard deviation in every fourth row.
        peaks : bool
            Whether targets come from two peaks, and draws from one.
        mirrored : bool
            Whether targets are mirrored at their mean.
        """
        rng = np.random.default_rng(seed)
        centre = 5 * rng.standard_normal(rows)
        scale = np.exp(rng.standard_normal(rows))

        def noise(shape: tuple[int, ...]) -> Array:
            normal = rng.standard_normal(shape)
            if not skew:
                return normal
            return (np.exp(normal) - np.exp(0.5)) / 2.16

        y = centre + scale * noise((rows,))
        if peaks:
            side = np.where(rng.random(rows) < 0.5, -1, 1)
            y = centre + scale * (0.95 * side + 0.31 * rng.standard_normal(rows))
        if mirrored:
            y = 2 * centre - y
        wide = spread * np.where(np.arange(rows) % 4 == 0, edge, 1.0)
        return centre + shift * scale + wide * scale * noise((draws, rows)), y

    right = {
        "a right predictive distribution": draws_and_targets(1),
        "another right one": draws_and_targets(2),
        "a third right one": draws_and_targets(3),
        "a right one with a long right tail": draws_and_targets(4, skew=True),
        "another with a long right tail": draws_and_targets(5, skew=True),
    }
    wrong = {
        "bands too narrow by half: the noise is missing": draws_and_targets(
            6, spread=0.5
        ),
        "bands too narrow by a fifth": draws_and_targets(7, spread=0.8),
        "bands twice as wide": draws_and_targets(8, spread=2.0),
        "bands of fifty standard deviations": draws_and_targets(9, spread=50.0),
        "a mean that is half a standard deviation too large": draws_and_targets(
            10, shift=0.5
        ),
        "a mean that is too small by half a standard deviation": draws_and_targets(
            11, shift=-0.5
        ),
        "too narrow in a quarter of the rows, by nine tenths": draws_and_targets(
            12, edge=0.1
        ),
        "too wide in most rows and far too narrow in the others": draws_and_targets(
            13, spread=3.0, edge=0.17
        ),
        "one wide peak, where targets have two": draws_and_targets(
            20, spread=1.2, peaks=True
        ),
        "a long tail to the right, where targets have one to the left": draws_and_targets(
            21, skew=True, mirrored=True
        ),
    }
    return _subjects(right, wrong)
