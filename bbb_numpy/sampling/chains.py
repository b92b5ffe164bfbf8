"""Groups of chains: what a group is between two steps, and how it makes the next ones.

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
    "concatenate",
    "default_groups",
    "init_runs",
    "n_usable_cores",
    "process_map",
]

# Rows times weights from which on the gradient of a chain takes longer than calling it, 50 us:
# below, all chains of a network run in one group
MIN_PRODUCTS_FOR_GROUPS = 100_000
MAX_DEFAULT_GROUPS = 4
IDLE_TIMEOUT_S = 300  # after so long without work a process of the pool ends


class Settings(NamedTuple):
    """Settings of a run, which stay the same while its chains are sampled."""

    target: Target
    kernel: Kernel
    warm_up: int  # steps
    thin: int  # steps of a draw
    n_draws: int  # to keep of each chain
    dense: bool  # whether the warm-up learns a dense metric
    target_accept: float | None

    @property
    def n_steps(self) -> int:
        """Steps of each chain, those of the warm-up included."""
        return self.warm_up + self.thin * self.n_draws

    def n_draws_of(self, run: Run) -> int:
        """Return the number of draws per chain that a run holds."""
        return max(0, run.n_steps - self.warm_up) // self.thin

    def kernel_of(self, run: Run) -> Any:
        """Return the kernel of a run's next step, as adapted so far."""
        return self.kernel if run.adaptation is None else run.adaptation.kernel


class FixedKernel(NamedTuple):
    """Takes the place of the adaptation in chains that go on with a kernel adapted before."""

    kernel: Any


class Run(NamedTuple):
    """A group of S chains between two steps."""

    state: Any  # a `State`, or what the kernel has in its place
    rng: Generator
    adaptation: Any  # or `FixedKernel`; None: the kernel has nothing to adapt
    n_steps: int  # made so far, in the warm-up and after
    warm_up_divergent: int  # divergences in the warm-up
    # successive stretches of the draws: arrays (T, S, ...) by name
    draws: tuple[dict[str, Array], ...] = ()

    def all_draws(self) -> dict[str, Array]:
        """Return positions (T, S, D), log densities and statistics (T, S) of all draws."""
        chains, size = self.state.position.shape
        empty = {name: np.empty((0, chains)) for name in ("log_density", *Info._fields)}
        empty["positions"] = np.empty((0, chains, size), self.state.position.dtype)
        return concatenate(self.draws or [empty])


def concatenate(
    stretches: Sequence[dict[str, Array]], axis: int = 0
) -> dict[str, Array]:
    """Concatenate arrays of the same names.

    Parameters
    ----------
    stretches : sequence of dict of str to ndarray
        One or more, each with the names of the first.
    axis : int
        0 puts draws after each other, 1 chains side by side.

    Returns
    -------
    dict of str to ndarray
    """
    return {
        name: np.concatenate([stretch[name] for stretch in stretches], axis)
        for name in stretches[0]
    }


def default_groups(chains: int, products: int, kernel: Any) -> int:
    """Return the number of groups in which chains of a network run: pairs, at most four groups.

    It does not depend on the machine, or the draws would. Measured: the step size and metric that
    two chains find serve them as well as those of four or eight, and where a gradient is expensive
    one for two chains costs per chain what one for many costs.

    Parameters
    ----------
    chains : int
    products : int
        Rows times weights: multiplications in the gradient of one chain. Below 100,000 there is
        one group.
    kernel : Kernel
        One whose chains learn from each other says in `min_group_chains` how many of them a group
        should have at least.
    """
    if products < MIN_PRODUCTS_FOR_GROUPS:
        return 1
    pairs = chains // int(getattr(kernel, "min_group_chains", 2))
    return max(1, min(pairs, MAX_DEFAULT_GROUPS))


def init_runs(
    settings: Settings,
    start: Array,
    groups: int,
    rng: Generator,
    fixed_kernels: Sequence[FixedKernel] = (),
) -> list[Run]:
    """Return the runs of all groups before their first steps.

    Parameters
    ----------
    settings : Settings
    start : ndarray (S, D)
        Initial positions of all chains. A group has neighbouring rows; sizes differ by one at
        most.
    groups : int
    rng : Generator
        A single group has the generator itself, several have its children.
    fixed_kernels : sequence of FixedKernel
        One for each group if the chains go on without a warm-up.
    """
    state = settings.kernel.init(settings.target, start)
    states = zip(*(np.array_split(field, groups) for field in state), strict=True)
    rngs = [rng] if groups == 1 else rng.spawn(groups)
    adaptations: Sequence[Any] = [None] * groups
    if fixed_kernels:
        adaptations = fixed_kernels
    runs = []
    for fields, group_rng, adaptation in zip(states, rngs, adaptations, strict=True):
        group_state = type(state)._make(fields)
        if settings.warm_up and hasattr(settings.kernel, "adapt"):
            adaptation = settings.kernel.adapt(
                settings.target,
                group_rng,
                group_state,
                settings.warm_up,
                dense=settings.dense,
                target_accept=settings.target_accept,
            )
        runs.append(Run(group_state, group_rng, adaptation, 0, 0))
    return runs


def advance(settings: Settings, run: Run, seconds: float) -> Run:
    """Return a run after some more steps, with the draws of these steps alone.

    Parameters
    ----------
    settings : Settings
    run : Run
        It and its generator stay as they are, whatever happens here.
    seconds : float
        About how long to go on; one step is made in any case.
    """
    deadline = time.monotonic() + seconds
    run = run._replace(rng=copy.deepcopy(run.rng), draws=())
    draws = []
    while run.n_steps < settings.n_steps:
        if run.n_steps < settings.warm_up:
            run = _step_of_warm_up(settings, run)
        else:
            run, draw = _draw(settings, run)
            draws.append(draw)
        if time.monotonic() >= deadline:
            break
    if not draws:
        return run
    stretch = {name: np.array([draw[name] for draw in draws]) for name in draws[0]}
    return run._replace(draws=(stretch,))


def _step_of_warm_up(settings: Settings, run: Run) -> Run:
    """Return a run after one step of its warm-up."""
    target = settings.target
    state, info = settings.kernel_of(run).step(target, run.rng, run.state)
    adaptation = run.adaptation
    if adaptation is not None:
        adaptation = adaptation.update(target, run.rng, state, info)
    return Run(
        state,
        run.rng,
        adaptation,
        run.n_steps + 1,
        run.warm_up_divergent + int(info.divergent.sum()),
    )


def _draw(settings: Settings, run: Run) -> tuple[Run, dict[str, Array]]:
    """Return a run after `thin` steps, and the draw that they lead to."""
    kernel = settings.kernel_of(run)
    state = run.state
    gradients: Array = np.zeros(len(state.position), int)
    divergent = gradients
    for _ in range(settings.thin):
        state, info = kernel.step(settings.target, run.rng, state)
        gradients = gradients + info.gradients
        divergent = divergent + info.divergent
    info = info._replace(gradients=gradients, divergent=divergent)
    draw = {
        "positions": state.position,
        "log_density": state.log_density,
        **info._asdict(),
    }
    return run._replace(state=state, n_steps=run.n_steps + settings.thin), draw


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
def process_map(n_processes: int) -> Iterator[Callable[..., Iterable[Run]]]:
    """Yield a `map` over processes of one BLAS thread each; for one, this process's own `map`."""
    if n_processes == 1:
        yield map
        return
    executor = _executor(n_processes)

    def map_in_processes(
        function: Callable[..., Run], *arguments: Iterable[Any]
    ) -> Iterable[Run]:
        # the first call starts all processes, a later one those that have ended
        with starting_processes():
            futures = [
                executor.submit(function, *values)
                for values in zip(*arguments, strict=True)
            ]
        return (future.result() for future in futures)

    try:
        yield map_in_processes
    except BaseException:
        executor.shutdown(kill_workers=True)
        _executor.cache_clear()
        raise


@cache
def _executor(n_processes: int) -> Any:
    """Return a pool whose processes serve the next run too.

    They end with this process, and after 5 minutes without a run.
    """
    try:
        from joblib.externals.loky import ProcessPoolExecutor
    except ImportError:
        raise ImportError(
            f"cores={n_processes} needs joblib, which scikit-learn brings: pip install "
            "'bbb-numpy[learners]'; or use cores=1, for the same draws"
        ) from None
    return ProcessPoolExecutor(
        n_processes,
        timeout=IDLE_TIMEOUT_S,
        initializer=_init_process,
        initargs=(os.getpid(),),
    )


def _init_process(parent: int) -> None:
    """Prepare a process of the pool: it ends with its parent, and Ctrl-C is not for it."""
    exit_with_parent(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    one_blas_thread()
