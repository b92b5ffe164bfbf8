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

from ...numeric.layout import Array
from ...numeric.validation import check_fields, whole
from .adaptation import Adaptable
from .leapfrog import MAX_ENERGY_ERROR, Phase, hamiltonian, leapfrog
from .metrics import Metric
from .states import Info, State, Target

__all__ = ["NUTS", "Span", "join", "turned"]


class Span(NamedTuple):
    """What the U-turn criterion needs of a stretch of A trajectories."""

    first: Array  # (A, D)  momentum at one end
    last: Array  # (A, D)  momentum at the other
    total: Array  # (A, D)  sum of the momenta of all its points


def turned(metric: Metric, first: Array, last: Array, total: Array) -> Array:
    r"""Return whether a stretch turns back at either end (A,) bool (M9).

    The paper's criterion is :math:`r \cdot (\theta' - \theta) < 0`, half the time derivative of the
    squared distance (its middle term has the two positions exchanged, and so the wrong sign). Along
    a trajectory :math:`\theta' - \theta = \int M^{-1} r\, dt`, of which :math:`M^{-1}\sum r` is the
    sum; that form needs no positions and any metric.
    """
    way = metric.velocity(total)
    return (np.vecdot(first, way) <= 0) | (np.vecdot(last, way) <= 0)  # M9


def join(metric: Metric, a: Span, b: Span, leaves: bool = False) -> tuple[Span, Array]:
    """Return the stretch a, b, and whether it turns back: as a whole, or where the two meet.

    Both halves may go straight while the turn lies between them; so each half is checked with the
    nearest point of the other too. For two `leaves` that is the same check.
    """
    total = a.total + b.total
    turn = turned(metric, a.first, b.last, total)
    if not leaves:
        turn |= turned(metric, a.first, b.first, a.total + b.first)
        turn |= turned(metric, a.last, b.last, b.total + a.last)
    return Span(a.first, b.last, total), turn


class Drawn(NamedTuple):
    """The point chosen so far from the leaves of A subtrees, and their summed weight."""

    state: State
    energy: Array  # (A,)
    log_weight: Array  # (A,)  logsumexp of H_0 - H over the leaves


class Subtree(NamedTuple):
    """2^depth new leaves of A trajectories; of those that are not complete, the sums alone."""

    complete: Array  # (A,) bool: neither turned back nor diverged
    divergent: Array  # (A,) bool
    end: Phase  # of the complete ones, as all that follows
    span: Span
    drawn: Drawn
    acceptance: Array  # (A,)  summed over the leaves
    leaves: Array  # (A,) int


def _rows(part: Any, keep: Array) -> Any:
    """Return the given rows of all arrays of a (nested) named tuple."""
    if isinstance(part, np.ndarray):
        return part[keep]
    return type(part)._make(_rows(field, keep) for field in part)


def _put(into: Any, rows: Array, part: Any) -> None:
    """Write the arrays of a (nested) named tuple into the given rows of another."""
    if isinstance(into, np.ndarray):
        into[rows] = part
    else:
        for a, b in zip(into, part, strict=True):
            _put(a, rows, b)


@dataclass(frozen=True, eq=False)
class NUTS(Adaptable):
    """The No-U-Turn sampler (Hoffman and Gelman 2014; Betancourt 2017; M9, M10).

    Points are drawn by weight; the slice form of the first paper is compared with it in D52.

    Parameters
    ----------
    step_size, metric
        As of `HMC`.
    max_depth : int
        Most doublings, >= 1 and <= 30: at most 2^max_depth - 1 leapfrog steps.
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
        """
        chains = len(state.position)
        metric = self.metric_for(state.position)
        momentum = metric.draw_momentum(rng, state.position)
        start = Phase(state.position, momentum, state.log_density, state.gradient)
        h0 = hamiltonian(metric, start)

        ends = (_copied(start), _copied(start))  # backwards and forwards in time
        # first = backwards
        whole_span = Span(momentum.copy(), momentum.copy(), momentum.copy())
        chosen = Drawn(_copied(state), h0.copy(), np.zeros_like(h0))
        acceptance, leaves = np.zeros(chains), np.zeros(chains, int)
        divergent, depth = np.zeros(chains, bool), np.zeros(chains, int)
        moved = np.zeros(chains, bool)

        growing: Array = np.arange(chains)
        for level in range(self.max_depth):
            forwards = rng.random(len(growing)) < 0.5  # M10
            begin = _rows(ends[0], growing)
            _put(begin, forwards, _rows(ends[1], growing[forwards]))
            sign = np.where(forwards, 1.0, -1.0).astype(momentum.dtype)[:, None]
            tree = self._subtree(target, rng, metric, begin, sign, h0[growing], level)
            acceptance[growing] += tree.acceptance
            leaves[growing] += tree.leaves
            divergent[growing] |= tree.divergent
            depth[growing] += 1

            grown, forwards = growing[tree.complete], forwards[tree.complete]
            # biased progressive: from the new half with probability min(1, W_new / W_old)
            gain = tree.drawn.log_weight - chosen.log_weight[grown]
            take = -rng.standard_exponential(len(grown)) < gain
            total = np.logaddexp(chosen.log_weight[grown], tree.drawn.log_weight)
            _put(chosen, grown[take], _rows(tree.drawn, take))
            chosen.log_weight[grown] = total
            moved[grown] |= take

            _put(ends[0], grown[~forwards], _rows(tree.end, ~forwards))
            _put(ends[1], grown[forwards], _rows(tree.end, forwards))
            # its last meets the new half
            old = _turned_round(_rows(whole_span, grown), ~forwards)
            both, turn = join(metric, old, tree.span, leaves=level == 0)
            _put(whole_span, grown, _turned_round(both, ~forwards))
            growing = grown[~turn]
            if not growing.size:
                break
        return chosen.state, Info(
            acceptance / leaves, moved, divergent, chosen.energy, leaves, depth
        )

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
        count, step_size = len(h0), sign * self.step_size
        acceptance, leaves = np.zeros(count), np.zeros(count, int)
        divergent, active = np.zeros(count, bool), np.arange(count)
        stack: list[Span] = []
        drawn = Drawn(_copied(phase.state), h0.copy(), np.full_like(h0, -np.inf))
        # acceptance of the active ones, to be put into its place at last
        summed = np.zeros(count)
        for leaf in range(2**level):
            phase = leapfrog(target, metric, phase, step_size)
            energy = hamiltonian(metric, phase)
            error = energy - h0
            summed += np.exp(np.minimum(0.0, -error))
            out = ~(error < MAX_ENERGY_ERROR)
            diverged = out.copy()

            # one of the leaves so far, each with probability exp(-H) / their sum
            log_weight = np.logaddexp(drawn.log_weight, -error)
            take = -rng.standard_exponential(len(error)) < -error - log_weight  # D52
            drawn = Drawn(drawn.state, drawn.energy, log_weight)
            if take.any():  # of many leaves few are
                _put(drawn.state, take, _rows(phase.state, take))
                drawn.energy[take] = energy[take]

            span = Span(phase.momentum, phase.momentum, phase.momentum)
            merges = leaf
            # a 1 at the end of `leaf`: a finished subtree of the same size
            while merges & 1:
                span, turn = join(metric, stack.pop(), span, leaves=merges == leaf)
                out |= turn
                merges >>= 1
            stack.append(span)
            if out.any():
                gone, keep = active[out], ~out
                acceptance[gone], leaves[gone] = summed[out], leaf + 1
                divergent[gone] = diverged[out]
                active, step_size, h0, summed, phase, drawn = (
                    _rows(a, keep)
                    for a in (active, step_size, h0, summed, phase, drawn)
                )
                stack = [_rows(span, keep) for span in stack]
            if not active.size:
                break
        acceptance[active], leaves[active] = summed, 2**level
        complete = np.zeros(count, bool)
        complete[active] = True
        return Subtree(
            complete, divergent, phase, stack.pop(), drawn, acceptance, leaves
        )


def _copied(part: Any) -> Any:
    """Return a named tuple with copies of its arrays."""
    return type(part)._make(field.copy() for field in part)


def _turned_round(span: Span, which: Array) -> Span:
    """Exchange the ends of some stretches; the criterion is the same in both directions."""
    swap = which[:, None]
    return Span(
        np.where(swap, span.last, span.first),
        np.where(swap, span.first, span.last),
        span.total,
    )


NAMED = {"sampler": {"nuts": NUTS()}}
