"""The No-U-Turn sampler, multinomial and with the generalised criterion (M9, M10).

A trajectory grows by doubling, forwards or backwards in time at random, until it turns back. All
chains double together: the same leaf of every chain's tree is computed at once, and a chain whose
tree has ended waits. Within a new subtree the leaves come in order, so that finished subtrees of
equal size stand at the top of a stack and are merged like the digits of a binary counter.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from ...numeric.deprecation import renamed_names
from ...numeric.layout import Array
from ...numeric.validation import check_fields, whole
from .adaptation import Adaptable
from .leapfrog import MAX_ENERGY_ERROR, Phase, hamiltonian, leapfrog
from .metrics import Metric
from .states import Info, State, Target

__all__ = ["NUTS", "Span", "is_turning", "join_spans"]


class Span(NamedTuple):
    """Momenta of a stretch of A trajectories, from which the U-turn criterion is computed."""

    first: Array  # (A, D)  momentum at one end
    last: Array  # (A, D)  momentum at the other end
    total: Array  # (A, D)  sum of the momenta of all its points


def is_turning(metric: Metric, first: Array, last: Array, total: Array) -> Array:
    r"""Return whether a stretch turns back at either end (A,) bool (M9).

    The paper's criterion is :math:`r \cdot (\theta' - \theta) < 0`, half the time derivative of the
    squared distance (its middle term has the two positions exchanged, and so the wrong sign). Along
    a trajectory :math:`\theta' - \theta = \int M^{-1} r\, dt`, of which :math:`M^{-1}\sum r` is the
    sum; that form needs no positions and any metric.

    Parameters
    ----------
    metric : Metric
    first, last : ndarray (A, D)
        Momenta at the two ends.
    total : ndarray (A, D)
        Sum of the momenta of all points.
    """
    displacement = metric.velocity(total)
    turns_at_first = np.vecdot(first, displacement) <= 0  # M9
    turns_at_last = np.vecdot(last, displacement) <= 0
    return turns_at_first | turns_at_last


def join_spans(
    metric: Metric, a: Span, b: Span, leaves: bool = False
) -> tuple[Span, Array]:
    """Join two stretches, a and then b, and check the whole for U-turns.

    Both halves may go straight while the turn lies between them; so each half is checked with the
    nearest point of the other too.

    Parameters
    ----------
    metric : Metric
    a, b : Span
    leaves : bool
        Whether both are single points, of which one check says all.

    Returns
    -------
    span : Span
    turning : ndarray (A,) of bool
        Whether it turns back, as a whole or where the two meet.
    """
    total = a.total + b.total
    turning = is_turning(metric, a.first, b.last, total)
    if not leaves:
        turning |= is_turning(metric, a.first, b.first, a.total + b.first)
        turning |= is_turning(metric, a.last, b.last, b.total + a.last)
    return Span(a.first, b.last, total), turning


class Candidate(NamedTuple):
    """The point drawn so far from the leaves of A subtrees, and their summed weight."""

    state: State
    energy: Array  # (A,)
    log_weight: Array  # (A,)  logsumexp of H_0 - H over the leaves


class Subtree(NamedTuple):
    """2^depth new leaves of A trajectories; of those that are not complete, the sums alone."""

    complete: Array  # (A,) bool: neither turned back nor diverged
    divergent: Array  # (A,) bool
    end: Phase  # of the complete ones, as all that follows
    span: Span
    candidate: Candidate
    acceptance: Array  # (A,)  summed over the leaves
    leaves: Array  # (A,) int


class Trajectory(NamedTuple):
    """Trajectories of S chains, in arrays that are written to while they grow."""

    initial_energy: Array  # (S,)
    backward_end: Phase
    forward_end: Phase
    span: Span  # from the backward end to the forward one
    chosen: Candidate
    # depth, divergences and moves so far; acceptance and gradients are sums over the leaves
    info: Info

    @classmethod
    def start(cls, metric: Metric, state: State, momentum: Array) -> Trajectory:
        """Return the trajectories of a single point.

        Parameters
        ----------
        metric : Metric
        state : State
        momentum : ndarray (S, D)
        """
        phase = Phase(state.position, momentum, state.log_density, state.gradient)
        energy = hamiltonian(metric, phase)
        chosen = Candidate(_copy(state), energy.copy(), np.zeros_like(energy))
        zeros = np.zeros(len(momentum), int)
        return cls(
            energy,
            _copy(phase),
            _copy(phase),
            Span(momentum.copy(), momentum.copy(), momentum.copy()),
            chosen,
            Info(
                acceptance=zeros.astype(float),
                accepted=zeros.astype(bool),
                divergent=zeros.astype(bool),
                energy=chosen.energy,
                gradients=zeros.copy(),
                depth=zeros,
            ),
        )

    def add_counts(self, chains: Array, tree: Subtree) -> None:
        """Add the leaves of new subtrees of some chains (A,), complete or not, to the counts."""
        info = self.info
        info.acceptance[chains] += tree.acceptance
        info.gradients[chains] += tree.leaves
        info.divergent[chains] |= tree.divergent
        info.depth[chains] += 1

    def choose(self, rng: Generator, chains: Array, candidate: Candidate) -> None:
        """Move to the candidate of a new subtree, with probability min(1, W_new / W_old).

        W is the sum of the weights of a tree's states; `chains` have complete new subtrees.

        Parameters
        ----------
        rng : Generator
        chains : ndarray (A,) of int
        candidate : Candidate
            Of these chains.
        """
        log_weight = self.chosen.log_weight
        gain = candidate.log_weight - log_weight[chains]
        take = -rng.standard_exponential(len(chains)) < gain
        total = np.logaddexp(log_weight[chains], candidate.log_weight)
        _put_rows(self.chosen, chains[take], _rows(candidate, take))
        log_weight[chains] = total
        self.info.accepted[chains] |= take

    def append(
        self,
        metric: Metric,
        chains: Array,
        forwards: Array,
        tree: Subtree,
        leaves: bool,
    ) -> Array:
        """Append the stretches of complete subtrees, and return which chains turn back.

        Parameters
        ----------
        metric : Metric
        chains : ndarray (A,) of int
        forwards : ndarray (A,) of bool
            Whether a subtree begins at the forward end.
        tree : Subtree
        leaves : bool
            Whether old and new stretch are single points.

        Returns
        -------
        ndarray (A,) of bool
        """
        _put_rows(self.backward_end, chains[~forwards], _rows(tree.end, ~forwards))
        _put_rows(self.forward_end, chains[forwards], _rows(tree.end, forwards))
        # the last point of the old half is to be the one that meets the new half
        old = _swap_ends(_rows(self.span, chains), ~forwards)
        joined, turning = join_spans(metric, old, tree.span, leaves=leaves)
        _put_rows(self.span, chains, _swap_ends(joined, ~forwards))
        return turning


def _rows(arrays: Any, keep: Array) -> Any:
    """Return some rows of all arrays of a (nested) named tuple."""
    if isinstance(arrays, np.ndarray):
        return arrays[keep]
    return type(arrays)._make(_rows(field, keep) for field in arrays)


def _put_rows(into: Any, rows: Array, values: Any) -> None:
    """Write the arrays of a (nested) named tuple into some rows of another."""
    if isinstance(into, np.ndarray):
        into[rows] = values
    else:
        for field, value in zip(into, values, strict=True):
            _put_rows(field, rows, value)


@dataclass(frozen=True, eq=False)
class NUTS(Adaptable):
    """The No-U-Turn sampler (Hoffman and Gelman 2014; Betancourt 2017; M9, M10).

    Points are drawn by weight; the slice form of the first paper is compared with it in D52.

    Parameters
    ----------
    step_size : float
        eps > 0 of the leapfrog, in units of the metric.
    metric : Metric, optional
        By default unit variances.
    max_depth : int
        Upper bound of the doublings, >= 1 and <= 30: at most 2^max_depth - 1 leapfrog steps.

    Raises
    ------
    TypeError, ValueError
        For numbers out of range, or a metric without the methods of a `Metric`.
    """

    step_size: float = 0.1
    metric: Metric | None = None
    max_depth: int = 10

    target_accept = 0.8

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fields(self, max_depth=partial(whole, minimum=1, maximum=30))

    # a leaf may have diverged; then the weights are of no account
    @np.errstate(all="ignore")
    def step(self, target: Target, rng: Generator, state: State) -> tuple[State, Info]:
        """Move every chain to a point of its trajectory (M10).

        In every new half a point is drawn by weight exp(-H); the choice moves to it with
        probability min(1, W_new / W_old), which leaves these weights invariant and goes farther.

        Parameters
        ----------
        target : Target
        rng : Generator
        state : State
            Where the chains are; it is not changed.
        """
        metric = self.metric_for(state.position)
        momentum = metric.draw_momentum(rng, state.position)
        trajectory = Trajectory.start(metric, state, momentum)
        growing: Array = np.arange(len(momentum))
        for level in range(self.max_depth):
            forwards = rng.random(len(growing)) < 0.5  # M10
            end = _rows(trajectory.backward_end, growing)
            forward_end = _rows(trajectory.forward_end, growing[forwards])
            _put_rows(end, forwards, forward_end)
            sign = np.where(forwards, 1.0, -1.0).astype(momentum.dtype)[:, None]
            h0 = trajectory.initial_energy[growing]
            tree = self._subtree(target, rng, metric, end, sign, h0, level)
            trajectory.add_counts(growing, tree)
            grown = growing[tree.complete]
            forwards = forwards[tree.complete]
            trajectory.choose(rng, grown, tree.candidate)
            leaves = level == 0
            turning = trajectory.append(metric, grown, forwards, tree, leaves)
            growing = grown[~turning]
            if not growing.size:
                break
        info = trajectory.info
        mean = info.acceptance / info.gradients
        return trajectory.chosen.state, info._replace(acceptance=mean)

    def _subtree(
        self,
        target: Target,
        rng: Generator,
        metric: Metric,
        phase: Phase,
        sign: Array,
        h0: Array,
        level: int,
    ) -> Subtree:
        """Add 2^level leaves to A trajectories, from `phase` on, in the direction `sign`.

        A chain drops out at its first divergence or U-turn, in whatever part of the subtree: that
        a tree ends must not depend on the leaf at which it began, or the step would not be
        reversible (M10).
        """
        count = len(h0)
        step_size = sign * self.step_size
        acceptance = np.zeros(count)
        leaves = np.zeros(count, int)
        divergent = np.zeros(count, bool)
        active = np.arange(count)
        stack: list[Span] = []  # of finished subtrees
        candidate = Candidate(_copy(phase.state), h0.copy(), np.full_like(h0, -np.inf))
        # acceptance of the active ones, which is put into its rows when they stop
        summed = np.zeros(count)
        for leaf in range(2**level):
            phase = leapfrog(target, metric, phase, step_size)
            energy = hamiltonian(metric, phase)
            error = energy - h0
            summed += np.exp(np.minimum(0.0, -error))
            stopped = ~(error < MAX_ENERGY_ERROR)
            diverged = stopped.copy()
            candidate = _draw_leaf(rng, candidate, phase, energy, error)
            _push_leaf(metric, stack, phase.momentum, leaf, stopped)
            if stopped.any():
                chains = active[stopped]
                acceptance[chains] = summed[stopped]
                leaves[chains] = leaf + 1
                divergent[chains] = diverged[stopped]
                keep = ~stopped
                active, step_size, h0, summed, phase, candidate = (
                    _rows(arrays, keep)
                    for arrays in (active, step_size, h0, summed, phase, candidate)
                )
                stack = [_rows(span, keep) for span in stack]
            if not active.size:
                break
        acceptance[active] = summed
        leaves[active] = 2**level
        complete = np.zeros(count, bool)
        complete[active] = True
        return Subtree(
            complete, divergent, phase, stack.pop(), candidate, acceptance, leaves
        )


def _draw_leaf(
    rng: Generator, candidate: Candidate, phase: Phase, energy: Array, error: Array
) -> Candidate:
    """Return one of the leaves so far, drawn with probability proportional to exp(-H) (M10)."""
    log_weight = np.logaddexp(candidate.log_weight, -error)
    # with probability exp(-error - log_weight), whose logarithm is compared
    take = -rng.standard_exponential(len(error)) < -error - log_weight  # D52
    if take.any():  # late in a subtree seldom
        _put_rows(candidate.state, take, _rows(phase.state, take))
        candidate.energy[take] = energy[take]
    return Candidate(candidate.state, candidate.energy, log_weight)


def _push_leaf(
    metric: Metric, stack: list[Span], momentum: Array, leaf: int, stopped: Array
) -> None:
    """Push leaf number `leaf` on the stack, in which subtrees of equal size are joined.

    `stopped` (A,) becomes true where a joined one turns back.
    """
    span = Span(momentum, momentum, momentum)
    joins = leaf
    # every 1 at the end of the binary number: a finished subtree of the size of `span`
    while joins & 1:
        span, turning = join_spans(metric, stack.pop(), span, leaves=joins == leaf)
        stopped |= turning
        joins >>= 1
    stack.append(span)


def _copy(arrays: Any) -> Any:
    """Return a named tuple with copies of its arrays."""
    return type(arrays)._make(field.copy() for field in arrays)


def _swap_ends(span: Span, which: Array) -> Span:
    """Exchange the ends of some stretches; the criterion is the same in both directions."""
    swap = which[:, None]
    return Span(
        np.where(swap, span.last, span.first),
        np.where(swap, span.first, span.last),
        span.total,
    )


NAMED = {"sampler": {"nuts": NUTS()}}
__getattr__ = renamed_names(__name__, {"join": "join_spans", "turned": "is_turning"})
