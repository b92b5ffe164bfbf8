"""The No-U-Turn sampler with multinomial draws and the generalised criterion (M9, M10).

A trajectory grows by doubling, forwards or backwards in time at random, until it turns back. All
chains double together: the same leaf of every chain's tree is computed at once, and a chain whose
tree is complete waits. Within a new subtree the leaves are computed in order of time, so that
finished subtrees of equal size are at the top of a stack, and are merged like the digits of a
binary counter.
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

    first: Array  # (A, D)  momenta at the first point of the stretch
    last: Array  # (A, D)  momenta at the last point of the stretch
    total: Array  # (A, D)  sum of the momenta of all points of the stretch


def is_turning(metric: Metric, first: Array, last: Array, total: Array) -> Array:
    r"""Return whether each stretch of a trajectory turns back at either end, as booleans (A,) (M9).

    The paper's criterion is :math:`r \cdot (\theta' - \theta) < 0`, half the time derivative of the
    squared distance (its middle term has the two positions exchanged, and so the wrong sign). Along
    a trajectory :math:`\theta' - \theta = \int M^{-1} r\, dt`, which is proportional to
    :math:`M^{-1}\sum r`, up to discretisation; this form needs no positions, and is right for any
    metric.

    Parameters
    ----------
    metric : Metric
        Mass matrix M, and unit of step sizes and lengths.
    first, last : ndarray (A, D)
        Momenta at the two ends of each stretch.
    total : ndarray (A, D)
        Sum of the momenta of all points of each stretch.
    """
    displacement = metric.velocity(total)
    turns_at_first = np.vecdot(first, displacement) <= 0  # r . M^-1 sum r <= 0 (M9)
    turns_at_last = np.vecdot(last, displacement) <= 0
    return turns_at_first | turns_at_last


def join_spans(
    metric: Metric, a: Span, b: Span, leaves: bool = False
) -> tuple[Span, Array]:
    """Return the stretches `a` and `b` joined in this order, and whether each makes a U-turn.

    A U-turn may lie between the halves although neither of them makes one; so each half is also
    checked together with the nearest point of the other.

    Parameters
    ----------
    metric : Metric
        Mass matrix M, and unit of step sizes and lengths.
    a, b : Span
        Adjacent stretches of A trajectories, the earlier one first.
    leaves : bool
        True if both are single points, for which one check is enough.

    Returns
    -------
    span : Span
        The joined stretches.
    turning : ndarray (A,) of bool
        Whether a joined stretch makes a U-turn, as a whole or where its halves meet.
    """
    total = a.total + b.total
    turning = is_turning(metric, a.first, b.last, total)
    if not leaves:
        turning |= is_turning(metric, a.first, b.first, a.total + b.first)
        turning |= is_turning(metric, a.last, b.last, b.total + a.last)
    return Span(a.first, b.last, total), turning


class Candidate(NamedTuple):
    """Points drawn so far from the leaves of A subtrees, and the leaves' summed weights."""

    state: State
    energy: Array  # (A,)  energy H at the points, in nats
    log_weight: Array  # (A,)  log of sum of exp(H_0 - H) over leaves


class Subtree(NamedTuple):
    """New leaves, 2^level of them, of A trajectories; C of the new subtrees are complete.

    A subtree that turned back or diverged is not complete: only its sums over leaves are used.
    """

    complete: Array  # (A,) bool  whether a subtree neither turned back nor diverged
    divergent: Array  # (A,) bool  whether a subtree diverged
    end: Phase  # last point of the C complete subtrees
    span: Span  # momenta of the C complete subtrees
    candidate: Candidate  # points drawn from the C complete subtrees
    acceptance: Array  # (A,)  acceptance probabilities, summed over the leaves
    leaves: Array  # (A,) int  number of leaves


class Trajectory(NamedTuple):
    """Trajectories of S chains, whose arrays are overwritten while the trajectories grow."""

    initial_energy: Array  # (S,)  energy H_0 at the initial points, in nats
    backward_end: Phase  # earliest point of each trajectory
    forward_end: Phase  # latest point of each trajectory
    span: Span  # momenta from the backward end to the forward end
    chosen: Candidate  # points drawn so far, the next states of the chains
    # depth, divergences and moves so far; acceptance and gradients are sums over the leaves
    info: Info

    @classmethod
    def start(cls, metric: Metric, state: State, momentum: Array) -> Trajectory:
        """Return new trajectories that consist of the present point of each chain.

        Parameters
        ----------
        metric : Metric
            Mass matrix M, and unit of step sizes and lengths.
        state : State
            Present state of S chains.
        momentum : ndarray (S, D)
            Momenta at these points.
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
        """Add acceptance, gradients, divergences and depth of new subtrees to `info`, in place.

        `chains` (A,) are the indices of the chains to which the subtrees of `tree` belong, complete
        or not.
        """
        info = self.info
        info.acceptance[chains] += tree.acceptance
        info.gradients[chains] += tree.leaves
        info.divergent[chains] |= tree.divergent
        info.depth[chains] += 1

    def choose(self, rng: Generator, chains: Array, candidate: Candidate) -> None:
        """Move `chosen` to a subtree's candidate, with probability min(1, W_new / W_old), in place.

        W_new and W_old are the summed weights of the leaves of the new subtree and of the tree
        before.

        Parameters
        ----------
        rng : Generator
            Source of the random numbers.
        chains : ndarray (A,) of int
            Indices of the chains whose new subtrees are complete.
        candidate : Candidate
            One candidate for each of these chains.
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
        """Append complete subtrees in place; return which of the joined trajectories turn back.

        Parameters
        ----------
        metric : Metric
            Mass matrix M, and unit of step sizes and lengths.
        chains : ndarray (A,) of int
            Indices of the chains whose new subtrees are complete.
        forwards : ndarray (A,) of bool
            True if the subtree continues the forward end, False for the backward end.
        tree : Subtree
            The new subtrees.
        leaves : bool
            True if old and new stretches are single points.

        Returns
        -------
        ndarray (A,) of bool
            True for each chain whose joined trajectory makes a U-turn.
        """
        _put_rows(self.backward_end, chains[~forwards], _rows(tree.end, ~forwards))
        _put_rows(self.forward_end, chains[forwards], _rows(tree.end, forwards))
        # spans are oriented so that the last point of the old half meets the new half
        old = _swap_ends(_rows(self.span, chains), ~forwards)
        joined, turning = join_spans(metric, old, tree.span, leaves=leaves)
        _put_rows(self.span, chains, _swap_ends(joined, ~forwards))
        return turning


def _rows(arrays: Any, keep: Array) -> Any:
    """Return the rows `keep` (mask or indices) of all arrays of a possibly nested named tuple."""
    if isinstance(arrays, np.ndarray):
        return arrays[keep]
    return type(arrays)._make(_rows(field, keep) for field in arrays)


def _put_rows(into: Any, rows: Array, values: Any) -> None:
    """Overwrite `rows` (indices or mask) of all arrays in the tuple `into` by those in `values`."""
    if isinstance(into, np.ndarray):
        into[rows] = values
    else:
        for field, value in zip(into, values, strict=True):
            _put_rows(field, rows, value)


@dataclass(frozen=True, eq=False)
class NUTS(Adaptable):
    """The No-U-Turn sampler (Hoffman and Gelman 2014; Betancourt 2017; M9, M10).

    Points of a trajectory are drawn with probabilities proportional to exp(-H); D52 compares this
    with the slice sampling of the first paper.

    Parameters
    ----------
    step_size : float
        Step size eps of the leapfrog, > 0, in units of the metric.
    metric : Metric, optional
        Mass matrix; by default unit variances.
    max_depth : int
        Largest number of doublings, >= 1 and <= 30: at most 2^max_depth - 1 leapfrog steps.

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

    # a leaf that diverged may have infinite energy; the weights of its subtree are not used
    @np.errstate(all="ignore")
    def step(self, target: Target, rng: Generator, state: State) -> tuple[State, Info]:
        """Return the state at a point drawn from each chain's new trajectory, and a report (M10).

        From every new half a candidate is drawn with probability proportional to exp(-H). It
        replaces the point chosen so far with probability min(1, W_new / W_old), where W is the sum
        of exp(-H) over a half: that leaves the distribution exp(-H) invariant, and favours points
        far from the first.

        Parameters
        ----------
        target : Target
            Function of the log density (S,) in nats, and of its gradient (S, D).
        rng : Generator
            Source of the random numbers.
        state : State
            Present state of the chains; it is not changed.
        """
        metric = self.metric_for(state.position)
        momentum = metric.draw_momentum(rng, state.position)
        trajectory = Trajectory.start(metric, state, momentum)
        growing: Array = np.arange(len(momentum))
        for level in range(self.max_depth):
            forwards = rng.random(len(growing)) < 0.5  # direction in time (M10)
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
        """Return a subtree of 2^`level` new leaves (leapfrog steps) for each of A trajectories.

        A chain stops at its first divergence or U-turn, in any part of the subtree: whether a tree
        ends must not depend on the leaf at which it began, or the step would not be reversible
        (M10).

        Parameters
        ----------
        target : Target
            Function of the log density (S,) in nats, and of its gradient (S, D).
        rng : Generator
            Source of the random numbers.
        metric : Metric
            Mass matrix M, and unit of step sizes and lengths.
        phase : Phase
            Ends of the A trajectories from which the leaves continue.
        sign : ndarray (A, 1)
            1 to go forwards in time, -1 to go backwards.
        h0 : ndarray (A,)
            Energy at the initial point of each trajectory, in nats.
        level : int
            Number of doublings before this one.
        """
        count = len(h0)
        step_size = sign * self.step_size
        acceptance = np.zeros(count)
        leaves = np.zeros(count, int)
        divergent = np.zeros(count, bool)
        active = np.arange(count)
        stack: list[Span] = []  # momenta of finished smaller subtrees
        candidate = Candidate(_copy(phase.state), h0.copy(), np.full_like(h0, -np.inf))
        # summed acceptance of the active chains, copied to `acceptance` when a chain stops
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
    """Return a candidate drawn from all leaves so far, in proportion to exp(-H) (M10).

    `candidate` was drawn from the earlier leaves, and is overwritten; `phase` is the new leaf of
    each chain, with `energy` H (A,) and `error` H - H_0 (A,).
    """
    log_weight = np.logaddexp(candidate.log_weight, -error)
    # the new leaf is taken with probability exp(-error - log_weight), compared as a logarithm
    take = -rng.standard_exponential(len(error)) < -error - log_weight  # log u (D52)
    # in large subtrees a new leaf is seldom taken: then nothing needs to be copied
    if take.any():
        _put_rows(candidate.state, take, _rows(phase.state, take))
        candidate.energy[take] = energy[take]
    return Candidate(candidate.state, candidate.energy, log_weight)


def _push_leaf(
    metric: Metric, stack: list[Span], momentum: Array, leaf: int, stopped: Array
) -> None:
    """Push leaf number `leaf` = 0, 1, ... on the stack, and join subtrees of equal size.

    `stack` and `stopped` (A,) are changed in place: `stopped` becomes true for each chain with a
    joined subtree that turns back. `momentum` (A, D) is that of the leaf.
    """
    span = Span(momentum, momentum, momentum)
    joins = leaf
    # each trailing 1 in the binary digits of `leaf` is a finished subtree of the size of `span`
    while joins & 1:
        span, turning = join_spans(metric, stack.pop(), span, leaves=joins == leaf)
        stopped |= turning
        joins >>= 1
    stack.append(span)


def _copy(arrays: Any) -> Any:
    """Return a copy of the named tuple `arrays`, with copies of its arrays."""
    return type(arrays)._make(field.copy() for field in arrays)


def _swap_ends(span: Span, which: Array) -> Span:
    """Return `span` with its first and last momenta exchanged where `which` (A,) is true.

    The span is then read backwards in time, which leaves the U-turn criterion unchanged.
    """
    swap = which[:, None]
    return Span(
        np.where(swap, span.last, span.first),
        np.where(swap, span.first, span.last),
        span.total,
    )


NAMED = {"sampler": {"nuts": NUTS()}}
__getattr__ = renamed_names(__name__, {"join": "join_spans", "turned": "is_turning"})
