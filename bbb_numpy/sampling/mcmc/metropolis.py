r"""Metropolis-Hastings with any proposal (M5, M6).

A proposal density q and the acceptance probability alpha make the transition kernel

.. math::
    p(x' \mid x) = q(x' \mid x)\, \alpha(x, x') \;\; (x' \ne x), \qquad
    P(\text{stay at } x) = 1 - \int q(x' \mid x)\, \alpha(x, x')\, dx'

It is p, not q, that is in detailed balance with pi: the paper's proof writes q for both (M5).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.random import Generator

from ...numeric.layout import Array
from ...numeric.validation import HasMethods, check_fields, positive
from .adaptation import Adaptable, Search
from .metrics import Metric, Scaled
from .states import Info, State, Target, evaluate, select

__all__ = [
    "GaussianWalk",
    "Langevin",
    "LogNormalWalk",
    "MetropolisHastings",
    "Proposal",
]


class Proposal(Protocol):
    """A distribution q(new|old) of candidates.

    A warm-up tunes one that has a `step_size`, a `metric` and a method `tuned`, as `Scaled`.
    """

    def propose(
        self, target: Target, rng: Generator, state: State
    ) -> tuple[State, Array]:
        """Return candidates, and log q(old|new) - log q(new|old).

        Parameters
        ----------
        target : Target
        rng : Generator
        state : State
            Where the chains are.

        Returns
        -------
        new : State
        log_ratio : ndarray (S,)
        """


def _candidate(target: Target, position: Array) -> State:
    """Return the state at a position (S, D) that need not be in the support."""
    return State(position, *evaluate(target, position))


@dataclass(frozen=True, eq=False)
class GaussianWalk(Scaled):
    """Propose x' ~ N(x, step_size^2 M^-1): symmetric, so that q cancels (M6).

    Parameters
    ----------
    step_size : float
        > 0, in units of the metric.
    metric : Metric, optional
        By default unit variances.

    Raises
    ------
    TypeError, ValueError
        For numbers out of range, or a metric without the methods of a `Metric`.
    """

    step_size: float = 1.0
    metric: Metric | None = None

    target_accept = 0.234  # best for many dimensions (Roberts, Gelman and Gilks 1997)

    def propose(
        self, target: Target, rng: Generator, state: State
    ) -> tuple[State, Array]:
        """Return candidates, and the log ratio 0 (S,).

        Parameters
        ----------
        target : Target
        rng : Generator
        state : State
            Where the chains are.
        """
        metric = self.metric_for(state.position)
        step = self.step_size * metric.draw_step(rng, state.position)
        new = _candidate(target, state.position + step)
        return new, np.zeros_like(new.log_density)


@dataclass(frozen=True)
class LogNormalWalk:
    r"""Propose x' = x e^{s z}, z ~ N(0, 1), for positive numbers (M6).

    It is not symmetric: :math:`q(x'|x) = N(\log x'; \log x, s^2) / x'`, so that
    :math:`\log q(x|x') - \log q(x'|x) = \sum_d (\log x'_d - \log x_d)`.

    Parameters
    ----------
    step_size : float
        s > 0, of the logarithms.

    Raises
    ------
    TypeError, ValueError
        Unless `step_size` is positive and finite.
    """

    step_size: float = 1.0

    def __post_init__(self) -> None:
        check_fields(self, step_size=positive)

    def propose(
        self, target: Target, rng: Generator, state: State
    ) -> tuple[State, Array]:
        """Return candidates, and the log ratio (S,): the sum of the steps of the logarithms.

        Parameters
        ----------
        target : Target
        rng : Generator
        state : State
            Where the chains are.
        """
        noise = rng.standard_normal(state.position.shape, state.position.dtype.type)
        step = self.step_size * noise
        with np.errstate(over="ignore"):  # rejected: the target is not finite there
            return _candidate(target, state.position * np.exp(step)), step.sum(axis=1)


@dataclass(frozen=True, eq=False)
class Langevin(Scaled):
    r"""Propose x' ~ N(x + (s^2/2) M^-1 grad log pi(x), s^2 M^-1): uphill on average (M6).

    The drift differs at the two ends, so q does not cancel.

    Parameters
    ----------
    step_size : float
        s > 0, in units of the metric.
    metric : Metric, optional
        By default unit variances.

    Raises
    ------
    TypeError, ValueError
        For numbers out of range, or a metric without the methods of a `Metric`.
    """

    step_size: float = 1.0
    metric: Metric | None = None

    target_accept = 0.574  # best for many dimensions (Roberts and Rosenthal 1998)

    def propose(
        self, target: Target, rng: Generator, state: State
    ) -> tuple[State, Array]:
        r"""Return candidates, and the log ratio (S,).

        The proposal is one leapfrog step from the momentum r, and r' that of the way back; q is a
        Gaussian in either, so that the ratio is a difference of kinetic energies.

        Parameters
        ----------
        target : Target
        rng : Generator
        state : State
            Where the chains are.
        """
        s = self.step_size
        metric = self.metric_for(state.position)
        momentum = metric.draw_momentum(rng, state.position)
        with np.errstate(all="ignore"):  # far outside: rejected
            half = momentum + 0.5 * s * state.gradient
            new = _candidate(target, state.position + s * metric.velocity(half))
            # q(x'|x) is that of the momentum; q(x|x') of the one that leads back, up to its sign
            reverse_momentum = half + 0.5 * s * new.gradient
            return new, metric.kinetic(momentum) - metric.kinetic(reverse_momentum)


@dataclass(frozen=True, eq=False)
class MetropolisHastings(Adaptable):
    """Metropolis-Hastings: propose, then accept or stay (M5, M6), every chain for itself.

    Parameters
    ----------
    proposal : GaussianWalk, LogNormalWalk, Langevin, or a `Proposal` of your own
        A warm-up tunes those with a step size and a metric.

    Raises
    ------
    TypeError
        If `proposal` has no method `propose`.
    """

    proposal: Proposal = GaussianWalk()

    default_warm_up = 4000  # its steps are short, and each costs one gradient at most

    def __post_init__(self) -> None:
        check_fields(
            self, proposal=HasMethods("GaussianWalk(0.1) or Langevin(0.1)", "propose")
        )

    @property
    def step_size(self) -> float:  # type: ignore[override]
        """Step size of the proposal; nan if it has none."""
        return float(getattr(self.proposal, "step_size", np.nan))

    @property
    def metric(self) -> Metric | None:  # type: ignore[override]
        """Metric of the proposal; None if it has none."""
        return getattr(self.proposal, "metric", None)

    @property
    def target_accept(self) -> float | None:  # type: ignore[override]
        """Acceptance that a warm-up of the proposal aims at; None if it cannot be tuned."""
        return getattr(self.proposal, "target_accept", None)

    def tuned(self, *tuning: Any) -> MetropolisHastings:
        proposal: Any = self.proposal
        return replace(self, proposal=proposal.tuned(*tuning))

    def adapt(self, *arguments: Any, **options: Any) -> Any:
        """Return a warm-up before its first draw; None if the proposal has no method `tuned`."""
        if not hasattr(self.proposal, "tuned"):
            return None
        return super().adapt(*arguments, **options)

    def first_step_size(
        self, search: Search, step_size: float | None, state: State
    ) -> float:
        """Return the step size so far: the leapfrog says nothing about a proposal.

        Parameters
        ----------
        search : callable
            From a step size to one whose leapfrog steps are accepted.
        step_size : float or None
            Step size under the last metric; None at the first one.
        state : State
        """
        return self.step_size if step_size is None else step_size

    def step(self, target: Target, rng: Generator, state: State) -> tuple[State, Info]:
        r"""Move every chain, or leave it where it is.

        .. math:: \alpha(x, x') = \min\Big(1,
            \frac{\pi(x')\, q(x \mid x')}{\pi(x)\, q(x' \mid x)}\Big) \qquad (M6)

        Only where q is symmetric is a more probable candidate always accepted.

        Parameters
        ----------
        target : Target
        rng : Generator
        state : State
            Where the chains are; it is not changed.
        """
        new, log_ratio = self.proposal.propose(target, rng, state)
        with np.errstate(invalid="ignore"):  # -inf and inf may meet far outside
            log_alpha = new.log_density - state.log_density + log_ratio  # M6
        log_alpha = np.minimum(0.0, np.where(np.isnan(log_alpha), -np.inf, log_alpha))
        # log u < log alpha
        accepted = -rng.standard_exponential(len(log_alpha)) < log_alpha
        state = select(accepted, new, state)  # M5
        none_divergent = np.zeros(len(log_alpha), bool)
        acceptance = np.exp(log_alpha)
        info = Info.of(acceptance, accepted, none_divergent, -state.log_density, 1)
        return state, info


NAMED = {
    "sampler": {"mh": MetropolisHastings()},
    "proposal": {
        "gaussian-walk": (GaussianWalk(), GaussianWalk(0.8)),
        "langevin": (Langevin(), Langevin(0.9)),
        "log-normal-walk": (LogNormalWalk(), LogNormalWalk(0.4)),
    },
}
