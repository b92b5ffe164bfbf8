r"""Metropolis-Hastings with any proposal (M5, M6).

A proposal density q and the acceptance probability alpha make the transition kernel

.. math::
    p(x' \mid x) = q(x' \mid x)\, \alpha(x, x') \;\; (x' \ne x), \qquad
    P(\text{stay at } x) = 1 - \int q(x' \mid x)\, \alpha(x, x')\, dx'

It is p, not q, that is in detailed balance with pi: the paper's proof writes q for both (M5).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from ...numeric.validation import FUNCTION, Like, positive
from .adaptation import Adaptable
from .metrics import Metric, check_metric, identity
from .states import Info, State, Target, evaluate, select

__all__ = [
    "GaussianWalk",
    "Independent",
    "Langevin",
    "LogNormalWalk",
    "MetropolisHastings",
    "Proposal",
    "StudentWalk",
]

Array = NDArray[Any]


class Proposal(Protocol):
    """What a proposal has."""

    def propose(
        self, target: Target, rng: np.random.Generator, state: State
    ) -> tuple[State, Array]:
        """Return candidates, and log q(old|new) - log q(new|old) (S,)."""


def _candidate(target: Target, position: Array) -> State:
    return State(position, *evaluate(target, position))


class _Scaled:
    """What proposals with a step size and a metric have in common."""

    step_size: float
    metric: Metric | None

    def __post_init__(self) -> None:
        check_metric(self.metric, "draw_step")
        positive("step_size", self.step_size)

    def tuned(self, step_size: float, metric: Metric) -> Self:
        """Return the proposal with another step size and metric."""
        return replace(self, step_size=step_size, metric=metric)  # type: ignore[type-var]


@dataclass(frozen=True, eq=False)
class GaussianWalk(_Scaled):
    """Propose x' ~ N(x, step_size^2 M^-1): symmetric, so q cancels (M6).

    Parameters
    ----------
    step_size : float
    metric : DiagonalMetric or DenseMetric, optional
        M^-1; by default unit variances.
    """

    step_size: float = 1.0
    metric: Metric | None = None

    target_accept = 0.234  # best for many dimensions (Roberts, Gelman and Gilks 1997)

    def propose(
        self, target: Target, rng: np.random.Generator, state: State
    ) -> tuple[State, Array]:
        """Return candidates, and the log ratio 0 (S,)."""
        metric = self.metric or identity(state.position)
        step = self.step_size * metric.draw_step(rng, state.position)
        new = _candidate(target, state.position + step)
        return new, np.zeros_like(new.log_density)


@dataclass(frozen=True, eq=False)
class StudentWalk(_Scaled):
    """Propose x' = x + step_size t: a walk with rare long steps (M6).

    Parameters
    ----------
    step_size : float
    degrees : float
        Degrees of freedom, > 0, of Student's t; 1 is a Cauchy walk. One length for all
        coordinates, whose directions are those of the metric.
    metric : DiagonalMetric or DenseMetric, optional
    """

    step_size: float = 1.0
    degrees: float = 3.0
    metric: Metric | None = None

    target_accept = 0.234

    def __post_init__(self) -> None:
        super().__post_init__()
        positive("degrees", self.degrees)

    def propose(
        self, target: Target, rng: np.random.Generator, state: State
    ) -> tuple[State, Array]:
        """Return candidates, and the log ratio 0 (S,)."""
        metric = self.metric or identity(state.position)
        step = self.step_size * metric.draw_step(rng, state.position)
        with np.errstate(all="ignore"):  # few degrees: a step may be infinite, and is rejected
            step *= np.sqrt(self.degrees / rng.chisquare(self.degrees, (len(step), 1)))
            new = _candidate(target, (state.position + step).astype(state.position.dtype))
        return new, np.zeros_like(new.log_density)


@dataclass(frozen=True)
class LogNormalWalk:
    r"""Propose x' = x e^{s z}, z ~ N(0, 1), for positive numbers (M6).

    Not symmetric: :math:`q(x'|x) = N(\log x'; \log x, s^2) / x'`, so that
    :math:`\log q(x|x') - \log q(x'|x) = \sum_d (\log x'_d - \log x_d)`.

    Parameters
    ----------
    step_size : float
        s > 0.
    """

    step_size: float = 1.0

    def __post_init__(self) -> None:
        positive("step_size", self.step_size)

    def propose(
        self, target: Target, rng: np.random.Generator, state: State
    ) -> tuple[State, Array]:
        """Return candidates, and the log ratio (S,)."""
        noise = rng.standard_normal(state.position.shape, state.position.dtype.type)
        step = self.step_size * noise
        with np.errstate(over="ignore"):  # rejected: the target is not finite there
            return _candidate(target, state.position * np.exp(step)), step.sum(axis=1)


@dataclass(frozen=True, eq=False)
class Langevin(_Scaled):
    r"""Propose x' ~ N(x + (s^2/2) M^-1 grad log pi(x), s^2 M^-1): uphill on average (M6).

    The drift differs at the two ends, so q does not cancel.

    Parameters
    ----------
    step_size : float
        s > 0.
    metric : DiagonalMetric or DenseMetric, optional
    """

    step_size: float = 1.0
    metric: Metric | None = None

    target_accept = 0.574  # best for many dimensions (Roberts and Rosenthal 1998)

    def propose(
        self, target: Target, rng: np.random.Generator, state: State
    ) -> tuple[State, Array]:
        r"""Return candidates, and the log ratio (S,).

        The proposal is one leapfrog step from the momentum r, and r' that of the way back; q is a
        Gaussian in either, so that the ratio is a difference of kinetic energies.
        """
        metric, s = self.metric or identity(state.position), self.step_size
        drawn = metric.draw_momentum(rng, state.position)
        with np.errstate(all="ignore"):  # far outside: rejected
            half = drawn + 0.5 * s * state.gradient
            new = _candidate(target, state.position + s * metric.velocity(half))
            # q(x'|x): the drawn momentum; q(x|x'): the one that leads back, up to its sign
            back = half + 0.5 * s * new.gradient
            return new, metric.kinetic(drawn) - metric.kinetic(back)


@dataclass(frozen=True)
class Independent:
    """Propose x' from a fixed density, wherever the chain is (M6).

    Parameters
    ----------
    draw : callable
        ``draw(rng, (S, D))`` returns candidates.
    log_density : callable
        Their log density (S,), up to a constant.
    """

    draw: Callable[[np.random.Generator, tuple[int, ...]], Array]
    log_density: Callable[[Array], Array]

    def __post_init__(self) -> None:
        FUNCTION("draw", self.draw)
        FUNCTION("log_density", self.log_density)

    def propose(
        self, target: Target, rng: np.random.Generator, state: State
    ) -> tuple[State, Array]:
        """Return candidates, and the log ratio log q(x) - log q(x') (S,)."""
        new = _candidate(target, self.draw(rng, state.position.shape))
        return new, self.log_density(state.position) - self.log_density(new.position)


@dataclass(frozen=True, eq=False)
class MetropolisHastings(Adaptable):
    """Propose, then accept or stay (M5, M6), every chain for itself.

    Parameters
    ----------
    proposal : GaussianWalk, StudentWalk, LogNormalWalk, Langevin, Independent, or one's own

    Raises
    ------
    TypeError
        If `proposal` is something else.
    """

    proposal: Proposal = GaussianWalk()

    usual_warm_up = 4000  # its steps are short, and each costs one gradient at most

    def __post_init__(self) -> None:
        rule = Like("GaussianWalk(0.1), StudentWalk() or Langevin()", "propose")
        rule("proposal", self.proposal)

    @property
    def step_size(self) -> float:  # type: ignore[override]
        """That of the proposal; nan if it has none."""
        return float(getattr(self.proposal, "step_size", np.nan))

    @property
    def metric(self) -> Metric | None:  # type: ignore[override]
        """That of the proposal, if it has one."""
        return getattr(self.proposal, "metric", None)

    @property
    def target_accept(self) -> float | None:  # type: ignore[override]
        """That of the proposal, if it can be adapted."""
        return getattr(self.proposal, "target_accept", None)

    def tuned(self, step_size: float, metric: Metric) -> MetropolisHastings:
        """Return the kernel with another step size and metric of its proposal."""
        proposal: Any = self.proposal
        return replace(self, proposal=proposal.tuned(step_size, metric))

    def adapt(self, *arguments: Any, **options: Any) -> Any:
        """Begin a warm-up; None if the proposal has no method `tuned`."""
        if not hasattr(self.proposal, "tuned"):
            return None
        return super().adapt(*arguments, **options)

    def first_step_size(
        self,
        target: Target,
        rng: np.random.Generator,
        metric: Metric,
        state: State,
        step_size: float,
    ) -> float:
        """Return `step_size`: the leapfrog says nothing about a proposal."""
        return step_size

    def step(self, target: Target, rng: np.random.Generator, state: State) -> tuple[State, Info]:
        r"""Move every chain, or leave it where it is.

        .. math:: \alpha(x, x') = \min\Big(1,
            \frac{\pi(x')\, q(x \mid x')}{\pi(x)\, q(x' \mid x)}\Big) \qquad (M6)

        Only where q is symmetric is a more probable candidate always accepted.
        """
        new, log_ratio = self.proposal.propose(target, rng, state)
        with np.errstate(invalid="ignore"):  # -inf and inf may meet far outside
            log_alpha = new.log_density - state.log_density + log_ratio  # M6
        log_alpha = np.minimum(0.0, np.where(np.isnan(log_alpha), -np.inf, log_alpha))
        accepted = -rng.standard_exponential(len(log_alpha)) < log_alpha  # log u < log alpha
        state = select(accepted, new, state)  # M5
        zeros = np.zeros(len(log_alpha), int)
        return state, Info(
            np.exp(log_alpha), accepted, zeros.astype(bool), -state.log_density, zeros + 1, zeros
        )
