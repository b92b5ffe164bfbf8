"""Groups of chains, and a group's way from one step to the next.

Chains are split in groups that know nothing of each other: each has its own generator, step size
and metric. So it does not matter which process makes a group's steps, nor in which order.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import mcmc
from .mcmc import Kernel, State, Target
from .resuming import Run

__all__ = ["Course", "Mark", "advance", "begin", "behind", "divided", "stretch", "usual_groups"]

Array = NDArray[Any]
LARGE = 100_000  # products from which on a chain's gradient takes longer than the calls, 50 us


class Course(NamedTuple):
    """What stays the same while chains are sampled."""

    target: Target
    kernel: Kernel
    warm_up: int
    thin: int
    draws: int  # to keep of each chain
    dense: bool  # metric
    target_accept: float | None

    @property
    def steps(self) -> int:
        """Steps of each chain in all."""
        return self.warm_up + self.thin * self.draws


class Mark(NamedTuple):
    """A run between two steps. Later steps change its generator and lists, not what is here."""

    run: Run
    generator: Any  # its state
    draws: int

    @classmethod
    def of(cls, run: Run) -> Mark:
        """Take note of a run."""
        return cls(run, run.rng.bit_generator.state, len(run.infos))

    def restored(self) -> Run:
        """Return the run as it was, whatever a later, unfinished step has done to it."""
        self.run.rng.bit_generator.state = self.generator
        del self.run.kept[self.draws :], self.run.infos[self.draws :]
        return self.run


def usual_groups(chains: int, products: int, kernel: Any) -> int:
    """Return the number of groups in which chains of a network run: pairs, at most four groups.

    Nothing of the machine decides, or draws would be others on another one. Measured: the step
    size and metric that two chains find serve them as well as those of four or eight, and a
    gradient of two costs per chain what one of many costs, where the network and its data are
    large enough for the way into NumPy's functions not to count. Smaller ones stay together.

    Parameters
    ----------
    chains : int
    products : int
        Rows times weights, what one chain multiplies for its log density.
    kernel : object
        If its chains learn more from each other, its `together` says how many a group should
        have at least.
    """
    if products < LARGE:
        return 1
    return max(1, min(chains // int(getattr(kernel, "together", 2)), 4))


def divided(chains: int, groups: int) -> list[slice]:
    """Split chains into groups of neighbours, as equal as they can be, the larger ones first."""
    small, larger = divmod(chains, groups)
    ends = np.cumsum([small + (group < larger) for group in range(groups)]).tolist()
    return [slice(begin, end) for begin, end in zip([0, *ends], ends, strict=False)]


def begin(course: Course, rng: np.random.Generator, state: State) -> Run:
    """Return the run of a group before its first step."""
    adaptation = mcmc.begin(
        course.kernel,
        course.target,
        rng,
        state,
        course.warm_up,
        dense=course.dense,
        target_accept=course.target_accept,
    )
    return Run(state, rng, adaptation, 0, 0, [], [])


def advance(course: Course, run: Run) -> Run:
    """Make one step of the warm-up, or one kept draw."""
    target, adaptation, state = course.target, run.adaptation, run.state
    using = course.kernel if adaptation is None else adaptation.kernel
    if run.steps < course.warm_up:
        state, info = using.step(target, run.rng, state)
        if adaptation is not None:
            adaptation = mcmc.update(adaptation, target, run.rng, state, info)
        harmless = run.harmless + int(info.divergent.sum())
        return run._replace(
            state=state, adaptation=adaptation, steps=run.steps + 1, harmless=harmless
        )
    gradients: Array = np.zeros(len(state.position), int)
    divergent = gradients
    for _ in range(course.thin):
        state, info = using.step(target, run.rng, state)
        gradients, divergent = gradients + info.gradients, divergent + info.divergent
    run.kept.append(State(state.position, state.log_density, state.gradient[:0]))
    run.infos.append(info._replace(gradients=gradients, divergent=divergent))
    return run._replace(state=state, steps=run.steps + course.thin)


def stretch(course: Course, run: Run, wanted: int, seconds: float) -> Run:
    """Advance for about so long, at least once, until the run holds the draws that are wanted."""
    end = time.monotonic() + seconds
    while len(run.infos) < wanted:
        run = advance(course, run)
        if time.monotonic() >= end:
            break
    return run


def behind(course: Course, runs: list[Run]) -> list[int]:
    """Return the groups that are not finished, the one with the fewest steps first."""
    left = [group for group, run in enumerate(runs) if len(run.infos) < course.draws]
    return sorted(left, key=lambda group: runs[group].steps)
