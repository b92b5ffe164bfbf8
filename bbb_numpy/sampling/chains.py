"""Groups of chains, a group's way on, and the processes that make it.

Chains are split in groups that know nothing of each other: each has its own generator, step size
and metric. So it does not matter which process makes a group's steps, nor in which order.
"""

from __future__ import annotations

import copy
import multiprocessing
import signal
import time
from collections.abc import Iterable, Sequence
from concurrent.futures.process import BrokenProcessPool
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from .mcmc import Info, Kernel, Target

__all__ = ["Processes", "Run", "Settings", "begin", "divided", "go_on", "usable", "usual_groups"]

Array = NDArray[Any]
LARGE = 100_000  # products from which on a chain's gradient takes longer than the calls, 50 us


class Settings(NamedTuple):
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

    def made(self, run: Run) -> int:
        """Return the draws that a run holds of each chain."""
        return max(0, run.steps - self.warm_up) // self.thin

    def done(self, run: Run) -> int:
        """Return the steps of the warm-up and the draws that a run has made."""
        return min(run.steps, self.warm_up) + self.made(run)


class Run(NamedTuple):
    """A group of chains between two steps."""

    state: Any
    rng: Generator
    adaptation: Any  # None: there is nothing to adapt
    steps: int  # of the warm-up and after
    harmless: int  # divergences in the warm-up
    draws: tuple[dict[str, Array], ...] = ()  # one stretch after the other, (T, S, ...) each

    def followed(self, new: Run) -> Run:
        """Return what `go_on` has made of this run, with all draws."""
        return new._replace(draws=self.draws + new.draws)

    def joined(self) -> dict[str, Array]:
        """Return positions (T, S, D), log densities and statistics (T, S) of all draws."""
        chains, size = self.state.position.shape
        empty = {name: np.empty((0, chains)) for name in ("log_density", *Info._fields)}
        empty["positions"] = np.empty((0, chains, size), self.state.position.dtype)
        stretches = self.draws or (empty,)
        return {name: np.concatenate([one[name] for one in stretches]) for name in stretches[0]}


def usual_groups(chains: int, products: int, kernel: Any) -> int:
    """Return the number of groups in which chains of a network run: pairs, at most four groups.

    Nothing of the machine decides, or draws would be others on another one. Measured: the step
    size and metric that two chains find serve them as well as those of four or eight, and a
    gradient of two costs per chain what one of many costs, where a chain's `products`, rows times
    weights, are many. A kernel whose chains learn from each other says with `together` how many a
    group should have at least.
    """
    if products < LARGE:
        return 1
    return max(1, min(chains // int(getattr(kernel, "together", 2)), 4))


def divided(chains: int, groups: int) -> list[slice]:
    """Split chains into groups of neighbours, as equal as they can be, the larger ones first."""
    ends = [0, *np.cumsum([len(part) for part in np.array_split(range(chains), groups)]).tolist()]
    return [slice(*ends[group : group + 2]) for group in range(groups)]


def begin(settings: Settings, rng: Generator, state: Any) -> Run:
    """Return the run of a group before its first step."""
    adaptation = None
    if settings.warm_up and hasattr(settings.kernel, "adapt"):
        adaptation = settings.kernel.adapt(
            settings.target,
            rng,
            state,
            settings.warm_up,
            dense=settings.dense,
            target_accept=settings.target_accept,
        )
    return Run(state, rng, adaptation, 0, 0)


def go_on(settings: Settings, run: Run, seconds: float) -> Run:
    """Return the run after about so many seconds more, with the new draws alone.

    At least one step is made. `run` and its generator stay as they are, whatever happens here.
    """
    target, end, kept = settings.target, time.monotonic() + seconds, []
    state, _, adaptation, steps, harmless, _ = run
    rng = copy.deepcopy(run.rng)
    while steps < settings.steps:
        kernel = settings.kernel if adaptation is None else adaptation.kernel
        if steps < settings.warm_up:
            state, info = kernel.step(target, rng, state)
            if adaptation is not None:
                adaptation = adaptation.update(target, rng, state, info)
            harmless += int(info.divergent.sum())
            steps += 1
        else:
            gradients: Array = np.zeros(len(state.position), int)
            divergent = gradients
            for _ in range(settings.thin):
                state, info = kernel.step(target, rng, state)
                gradients, divergent = gradients + info.gradients, divergent + info.divergent
            told = info._replace(gradients=gradients, divergent=divergent)
            density, position = state.log_density, state.position
            kept.append({"positions": position, "log_density": density, **told._asdict()})
            steps += settings.thin
        if time.monotonic() >= end:
            break
    stretch = {name: np.array([one[name] for one in kept]) for name in (kept or [{}])[0]}
    return Run(state, rng, adaptation, steps, harmless, (stretch,) if kept else ())


def usable() -> int:
    """Return the cores for this process: one in a pool, whose other processes have work too."""
    if multiprocessing.current_process().name != "MainProcess":
        return 1
    try:
        from joblib import cpu_count
    except ImportError:
        return 1
    return int(cpu_count())


class Processes:
    """Processes for groups of chains, by joblib, one core and one BLAS thread each."""

    def __init__(self, count: int) -> None:
        try:
            import joblib
        except ImportError:
            raise ImportError(
                f"cores={count} needs joblib, which scikit-learn brings: pip install "
                "'bbb-numpy[learners]'; or use cores=1, for the same draws"
            ) from None
        self.joblib, self.count = joblib, count
        if not hasattr(signal, "pthread_sigmask"):  # Windows
            return
        # Ctrl-C in a terminal reaches all processes: those that start here are not to hear it
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            self._run([joblib.delayed(int)()] * count)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def go_on(self, settings: Settings, runs: Sequence[Run], seconds: float) -> list[Run]:
        """Return what `go_on` returns for each run, in their order; or raise ChildProcessError."""
        bare = (run._replace(draws=()) for run in runs)
        return self._run(self.joblib.delayed(go_on)(settings, run, seconds) for run in bare)

    def _run(self, tasks: Iterable[Any]) -> list[Any]:
        with self.joblib.parallel_config("loky", inner_max_num_threads=1):
            try:
                found: list[Any] = self.joblib.Parallel(self.count, batch_size=1, max_nbytes=None)(
                    tasks
                )
            except BrokenProcessPool as error:
                raise ChildProcessError(str(error)) from error
        return found
