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

    A warm-up tunes a proposal that has a `step_size`, a `metric` and a method `tuned`, like those
    derived from `Scaled`.
    """

    def propose(
        self, target: Target, rng: Generator, state: State
    ) -> tuple[State, Array]:
        """Return a candidate state for each chain, and the log ratio of the proposal densities.

        Parameters
        ----------
        target : Target
            Function of the log density (S,) in nats, and of its gradient (S, D).
        rng : Generator
            Source of the random numbers.
        state : State
            Present state of S chains.

        Returns
        -------
        new : State
            One candidate for each chain.
        log_ratio : ndarray (S,)
            log q(old|new) - log q(new|old).
        """


def _candidate(target: Target, position: Array) -> State:
    """Return the state at `position` (S, D); outside of the support the log density is -inf."""
    return State(position, *evaluate(target, position))


@dataclass(frozen=True, eq=False)
class GaussianWalk(Scaled):
    """Proposal x' ~ N(x, step_size^2 M^-1), which is symmetric, so that q cancels (M6).

    Parameters
    ----------
    step_size : float
        Standard deviation of the step, > 0, in units of the metric.
    metric : Metric, optional
        Matrix M; by default unit variances.

    Raises
    ------
    TypeError, ValueError
        For numbers out of range, or a metric without the methods of a `Metric`.
    """

    step_size: float = 1.0
    metric: Metric | None = None

    # acceptance that is optimal in many dimensions (Roberts, Gelman and Gilks 1997)
    target_accept = 0.234

    def propose(
        self, target: Target, rng: Generator, state: State
    ) -> tuple[State, Array]:
        """Return normal candidates, and the log ratio (S,) of the proposal densities, which is 0.

        Parameters
        ----------
        target : Target
            Function of the log density (S,) in nats, and of its gradient (S, D).
        rng : Generator
            Source of the random numbers.
        state : State
            Present state of S chains.
        """
        metric = self.metric_for(state.position)
        step = self.step_size * metric.draw_step(rng, state.position)
        new = _candidate(target, state.position + step)
        return new, np.zeros_like(new.log_density)


@dataclass(frozen=True)
class LogNormalWalk:
    r"""Proposal x' = x e^{s z}, z ~ N(0, 1), for positive numbers x (M6).

    It is not symmetric: :math:`q(x'|x) = N(\log x'; \log x, s^2) / x'`, so that
    :math:`\log q(x|x') - \log q(x'|x) = \sum_d (\log x'_d - \log x_d)`.

    Parameters
    ----------
    step_size : float
        Standard deviation s > 0 of the step of log x.

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
        """Return candidates x', and the log ratio (S,) log q(x|x') - log q(x'|x) of the proposal.

        Parameters
        ----------
        target : Target
            Function of the log density (S,) in nats, and of its gradient (S, D).
        rng : Generator
            Source of the random numbers.
        state : State
            Present state of S chains.
        """
        noise = rng.standard_normal(state.position.shape, state.position.dtype.type)
        step = self.step_size * noise
        # a candidate that overflows is rejected, because the target is not finite there
        with np.errstate(over="ignore"):
            return _candidate(target, state.position * np.exp(step)), step.sum(axis=1)


@dataclass(frozen=True, eq=False)
class Langevin(Scaled):
    r"""Proposal x' ~ N(x + (s^2/2) M^-1 grad log pi(x), s^2 M^-1), uphill on average (M6).

    The drift at x differs from that at x', so q does not cancel.

    Parameters
    ----------
    step_size : float
        Standard deviation s > 0 of the step, in units of the metric.
    metric : Metric, optional
        Matrix M; by default unit variances.

    Raises
    ------
    TypeError, ValueError
        For numbers out of range, or a metric without the methods of a `Metric`.
    """

    step_size: float = 1.0
    metric: Metric | None = None

    # acceptance that is optimal in many dimensions (Roberts and Rosenthal 1998)
    target_accept = 0.574

    def propose(
        self, target: Target, rng: Generator, state: State
    ) -> tuple[State, Array]:
        r"""Return candidates after one leapfrog step, and the log ratio (S,) of proposal densities.

        The proposal is one leapfrog step from a momentum r, and the same step leads back from the
        momentum r' at its end, up to sign. Both densities q are Gaussian in these momenta, so that
        the log ratio is the difference of their kinetic energies.

        Parameters
        ----------
        target : Target
            Function of the log density (S,) in nats, and of its gradient (S, D).
        rng : Generator
            Source of the random numbers.
        state : State
            Present state of S chains.
        """
        s = self.step_size
        metric = self.metric_for(state.position)
        momentum = metric.draw_momentum(rng, state.position)
        # no warning if numbers overflow: such a candidate gets log density -inf, and is rejected
        with np.errstate(all="ignore"):
            half = momentum + 0.5 * s * state.gradient
            new = _candidate(target, state.position + s * metric.velocity(half))
            # q(x'|x) is the density of the momentum, q(x|x') that of the momentum that leads back
            # from x' to x, whose sign does not matter
            reverse_momentum = half + 0.5 * s * new.gradient
            return new, metric.kinetic(momentum) - metric.kinetic(reverse_momentum)


@dataclass(frozen=True, eq=False)
class MetropolisHastings(Adaptable):
    """Metropolis-Hastings: each chain accepts its candidate, or stays where it is (M5, M6).

    Parameters
    ----------
    proposal : GaussianWalk, LogNormalWalk, Langevin, or a `Proposal` of your own
        Distribution of the candidates. A warm-up tunes a proposal with a step size and a metric.

    Raises
    ------
    TypeError
        If `proposal` has no method `propose`.
    """

    proposal: Proposal = GaussianWalk()

    # steps are short, so that chains need many, and each step costs a single gradient
    default_warm_up = 4000

    def __post_init__(self) -> None:
        check_fields(
            self, proposal=HasMethods("GaussianWalk(0.1) or Langevin(0.1)", "propose")
        )

    @property
    def step_size(self) -> float:  # type: ignore[override]
        """Step size of the proposal; nan if the proposal has none."""
        return float(getattr(self.proposal, "step_size", np.nan))

    @property
    def metric(self) -> Metric | None:  # type: ignore[override]
        """Metric of the proposal; None if the proposal has none, which means unit variances."""
        return getattr(self.proposal, "metric", None)

    @property
    def target_accept(self) -> float | None:  # type: ignore[override]
        """Acceptance probability that a warm-up aims at; None if the proposal cannot be tuned."""
        return getattr(self.proposal, "target_accept", None)

    def tuned(self, *tuning: Any) -> MetropolisHastings:
        """Return a copy of the kernel whose proposal has the step size and metric in `tuning`."""
        proposal: Any = self.proposal
        return replace(self, proposal=proposal.tuned(*tuning))

    def adapt(self, *arguments: Any, **options: Any) -> Any:
        """Return the initial `Adaptation` of a warm-up, or None if the proposal cannot be tuned."""
        if not hasattr(self.proposal, "tuned"):
            return None
        return super().adapt(*arguments, **options)

    def first_step_size(
        self, search: Search, step_size: float | None, state: State
    ) -> float:
        """Return the step size learned under the previous metric; without one, the proposal's own.

        Parameters
        ----------
        search : callable
            Ignored: a search by leapfrog steps does not apply to a proposal.
        step_size : float or None
            Step size learned under the previous metric; None if there is no previous metric.
        state : State
            Ignored.
        """
        return self.step_size if step_size is None else step_size

    def step(self, target: Target, rng: Generator, state: State) -> tuple[State, Info]:
        r"""Return the state after each chain has accepted or rejected its candidate, and a report.

        .. math:: \alpha(x, x') = \min\Big(1,
            \frac{\pi(x')\, q(x \mid x')}{\pi(x)\, q(x' \mid x)}\Big) \qquad (M6)

        A candidate of higher density is always accepted only if q is symmetric.

        Parameters
        ----------
        target : Target
            Function of the log density (S,) in nats, and of its gradient (S, D).
        rng : Generator
            Source of the random numbers.
        state : State
            Present state of the chains; it is not changed.
        """
        new, log_ratio = self.proposal.propose(target, rng, state)
        # far outside of the support -inf + inf may give nan, which is rejected below
        with np.errstate(invalid="ignore"):
            # log acceptance probability, before it is limited to at most 0
            log_alpha = new.log_density - state.log_density + log_ratio  # M6
        log_alpha = np.minimum(0.0, np.where(np.isnan(log_alpha), -np.inf, log_alpha))
        # a chain accepts if log u < log alpha, with -Exp(1) as log u
        accepted = -rng.standard_exponential(len(log_alpha)) < log_alpha
        state = select(accepted, new, state)  # candidate or present state (M5)
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
