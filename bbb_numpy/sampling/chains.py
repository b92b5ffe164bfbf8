"""Groups of chains, a group's way on, and the processes that make it.

Chains are split in groups that know nothing of each other: each has its own generator, step size
and metric. So it does not matter which process makes a group's steps, nor in which order.
"""

from __future__ import annotations

import copy
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from ..numeric.layout import Array
from ..numeric.processes import exit_with_parent, starting_processes
from ..numeric.threads import one_blas_thread
from .mcmc import Info, Kernel, Target

__all__ = [
    "FixedKernel",
    "Run",
    "Settings",
    "advance",
    "default_groups",
    "init_runs",
    "n_usable_cores",
    "process_map",
]

# products from which on a chain's gradient takes longer than the calls, 50 us
MIN_PRODUCTS_FOR_GROUPS = 100_000


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

    def n_draws_of(self, run: Run) -> int:
        """Return the draws that a run holds of each chain."""
        return max(0, run.steps - self.warm_up) // self.thin


class FixedKernel(NamedTuple):
    """What an earlier warm-up has found, where chains go on without one."""

    kernel: Any


class Run(NamedTuple):
    """A group of chains between two steps."""

    state: Any
    rng: Generator
    adaptation: Any  # or `FixedKernel`; None: there is nothing to adapt
    steps: int  # of the warm-up and after
    warm_up_divergent: int  # divergences in the warm-up
    # one stretch after the other, (T, S, ...) each
    draws: tuple[dict[str, Array], ...] = ()

    def all_draws(self) -> dict[str, Array]:
        """Return positions (T, S, D), log densities and statistics (T, S) of all draws."""
        chains, size = self.state.position.shape
        empty = {name: np.empty((0, chains)) for name in ("log_density", *Info._fields)}
        empty["positions"] = np.empty((0, chains, size), self.state.position.dtype)
        return concatenate(self.draws or [empty])


def concatenate(parts: Sequence[dict[str, Array]], axis: int = 0) -> dict[str, Array]:
    """Return arrays of the same names as one of each."""
    return {
        name: np.concatenate([part[name] for part in parts], axis) for name in parts[0]
    }


def default_groups(chains: int, products: int, kernel: Any) -> int:
    """Return the number of groups in which chains of a network run: pairs, at most four groups.

    Nothing of the machine decides, or draws would be others on another one. Measured: the step
    size and metric that two chains find serve them as well as those of four or eight, and a
    gradient of two costs per chain what one of many costs, where a chain's `products`, rows times
    weights, are many. A kernel whose chains learn from each other says with `min_group_chains` how
    many a group should have at least.
    """
    if products < MIN_PRODUCTS_FOR_GROUPS:
        return 1
    return max(1, min(chains // int(getattr(kernel, "min_group_chains", 2)), 4))


def init_runs(
    settings: Settings,
    start: Array,
    groups: int,
    rng: Generator,
    kept: Sequence[Any] = (),
) -> list[Run]:
    """Return the runs of all groups, neighbours and as equal as can be, before their first steps.

    One group has the generator itself, several have its children. `kept` has each group's
    `FixedKernel` where they go on.
    """
    whole = settings.kernel.init(settings.target, start)
    parts = zip(*(np.array_split(field, groups) for field in whole), strict=True)
    runs = []
    rngs = [rng] if groups == 1 else rng.spawn(groups)
    for own, part, adaptation in zip(rngs, parts, kept or [None] * groups, strict=True):
        state = type(whole)._make(part)
        if settings.warm_up and hasattr(settings.kernel, "adapt"):
            adaptation = settings.kernel.adapt(
                settings.target,
                own,
                state,
                settings.warm_up,
                dense=settings.dense,
                target_accept=settings.target_accept,
            )
        runs.append(Run(state, own, adaptation, 0, 0))
    return runs


def advance(settings: Settings, run: Run, seconds: float) -> Run:
    """Return the run after about so many seconds more, with the new draws alone.

    At least one step is made. `run` and its generator stay as they are, whatever happens here.
    """
    target, end, kept = settings.target, time.monotonic() + seconds, []
    state, _, adaptation, steps, warm_up_divergent, _ = run
    rng = copy.deepcopy(run.rng)
    while steps < settings.steps:
        kernel = settings.kernel if adaptation is None else adaptation.kernel
        if steps < settings.warm_up:
            state, info = kernel.step(target, rng, state)
            if adaptation is not None:
                adaptation = adaptation.update(target, rng, state, info)
            warm_up_divergent += int(info.divergent.sum())
            steps += 1
        else:
            gradients: Array = np.zeros(len(state.position), int)
            divergent = gradients
            for _ in range(settings.thin):
                state, info = kernel.step(target, rng, state)
                gradients, divergent = (
                    gradients + info.gradients,
                    divergent + info.divergent,
                )
            told = info._replace(gradients=gradients, divergent=divergent)
            density, position = state.log_density, state.position
            kept.append(
                {"positions": position, "log_density": density, **told._asdict()}
            )
            steps += settings.thin
        if time.monotonic() >= end:
            break
    stretch = {
        name: np.array([one[name] for one in kept]) for name in (kept or [{}])[0]
    }
    return Run(
        state, rng, adaptation, steps, warm_up_divergent, (stretch,) if kept else ()
    )


def n_usable_cores() -> int:
    """Return the cores for this process: one in a pool, whose other processes have work too."""
    if multiprocessing.current_process().name != "MainProcess":
        return 1
    try:
        from joblib import cpu_count
    except ImportError:
        return 1
    return int(cpu_count())


@contextmanager
def process_map(count: int) -> Iterator[Callable[..., Iterable[Run]]]:
    """Yield a `map` over so many processes, of one BLAS thread each; over this one if it is one."""
    if count == 1:
        yield map
        return
    executor = _executor(count)

    def each(function: Callable[..., Run], *arguments: Iterable[Any]) -> Iterable[Run]:
        with (
            starting_processes()
        ):  # the first call starts all processes, a later one those that have ended
            futures = [
                executor.submit(function, *given)
                for given in zip(*arguments, strict=True)
            ]
        return (future.result() for future in futures)

    try:
        yield each
    except BaseException:
        executor.shutdown(kill_workers=True)
        _executor.cache_clear()
        raise


@cache
def _executor(count: int) -> Any:
    """Return a pool whose processes serve the next run too.

    They end with this process, and after 5 minutes without a run.
    """
    try:
        from joblib.externals.loky import ProcessPoolExecutor
    except ImportError:
        raise ImportError(
            f"cores={count} needs joblib, which scikit-learn brings: pip install "
            "'bbb-numpy[learners]'; or use cores=1, for the same draws"
        ) from None
    return ProcessPoolExecutor(
        count, timeout=300, initializer=_begin_process, initargs=(os.getpid(),)
    )


def _begin_process(parent: int) -> None:
    exit_with_parent(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    one_blas_thread()
