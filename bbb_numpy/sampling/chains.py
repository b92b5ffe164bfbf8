"""Groups of chains: the state of a group between two steps, and the functions that advance it.

Chains are split into groups that are independent of each other: each has its own generator, step
size and metric. So it does not matter which process makes a group's steps, nor in which order.
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

# Smallest number of rows times weights for which chains are split into groups: below it the
# arithmetic of a gradient takes less than the 50 us that calling the function costs
MIN_PRODUCTS_FOR_GROUPS = 100_000
MAX_DEFAULT_GROUPS = 4
IDLE_TIMEOUT_S = 300  # idle time after which a process of the pool ends


class Settings(NamedTuple):
    """Settings of a run, which stay the same while its chains are sampled."""

    target: Target
    kernel: Kernel
    warm_up: int  # number of warm-up steps
    thin: int  # number of steps from one draw to the next
    n_draws: int  # number of draws to keep of each chain
    dense: bool  # whether the warm-up learns a dense metric
    # mean acceptance probability that the warm-up aims at; None means the kernel's own value
    target_accept: float | None

    @property
    def n_steps(self) -> int:
        """Total number of steps of each chain, warm-up included."""
        return self.warm_up + self.thin * self.n_draws

    def n_draws_of(self, run: Run) -> int:
        """Return the number of draws per chain that `run` has made so far."""
        return max(0, run.n_steps - self.warm_up) // self.thin

    def kernel_of(self, run: Run) -> Any:
        """Return the kernel for the next step of `run`, with the tuning learned so far."""
        return self.kernel if run.adaptation is None else run.adaptation.kernel


class FixedKernel(NamedTuple):
    """Stand-in for an `Adaptation` in chains that continue with a kernel adapted earlier."""

    kernel: Any  # kernel that an earlier run adapted, used unchanged


class Run(NamedTuple):
    """A group of S chains between two steps."""

    state: Any  # state of the chains: a `State`, or a class of the kernel
    rng: Generator
    # state of the warm-up (`Adaptation`) or a `FixedKernel`; None if nothing is adapted
    adaptation: Any
    n_steps: int  # number of steps made so far, warm-up included
    warm_up_divergent: int  # number of divergent transitions in the warm-up
    # draws so far in consecutive blocks: dicts of arrays (draws of the block, S, ...)
    draws: tuple[dict[str, Array], ...] = ()

    def all_draws(self) -> dict[str, Array]:
        """Return the draws of all blocks, joined into one array for each name.

        The keys are "positions" (T, S, D), "log_density" (T, S), and the fields of `mcmc.Info`,
        each (T, S).
        """
        chains, size = self.state.position.shape
        empty = {name: np.empty((0, chains)) for name in ("log_density", *Info._fields)}
        empty["positions"] = np.empty((0, chains, size), self.state.position.dtype)
        return concatenate(self.draws or [empty])


def concatenate(
    stretches: Sequence[dict[str, Array]], axis: int = 0
) -> dict[str, Array]:
    """Return one dict with the arrays of several dicts, concatenated name by name.

    Parameters
    ----------
    stretches : sequence of dict of str to ndarray (T, S, ...)
        One dict or more, all with the names of the first.
    axis : int
        0 concatenates along the draws (T), 1 along the chains (S).

    Returns
    -------
    dict of str to ndarray
        The concatenated arrays, by the same names.
    """
    return {
        name: np.concatenate([stretch[name] for stretch in stretches], axis)
        for name in stretches[0]
    }


def default_groups(chains: int, products: int, kernel: Any) -> int:
    """Return the default number of groups of chains: one for each pair of chains, at most four.

    The number does not depend on the machine, or the draws would. Measured: the step size and
    metric learned from two chains are as good as those learned from four or eight, and where a
    gradient is expensive its cost per chain is the same for two chains as for many.

    Parameters
    ----------
    chains : int
        Number of chains in all.
    products : int
        Rows times weights: multiplications in the gradient of one chain. Below 100,000 there is
        one group.
    kernel : Kernel
        Its attribute `min_group_chains`, if it has one, replaces the 2 as the smallest number of
        chains of a group; kernels whose chains learn from each other have it.
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
    """Return the initial `Run` of each group of chains, before any step has been made.

    Parameters
    ----------
    settings : Settings
        Settings of the call: target, kernel and numbers of steps.
    start : ndarray (S, D)
        Initial positions of all chains. Each group takes consecutive rows; the sizes of groups
        differ by one at most.
    groups : int
        Number of groups.
    rng : Generator
        A single group uses the generator itself; several groups use generators spawned from it.
    fixed_kernels : sequence of FixedKernel
        One adapted kernel for each group if the chains continue without a warm-up; else empty.
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
    """Return the run after as many steps as `seconds` allow, with the draws of these steps only.

    Parameters
    ----------
    settings : Settings
        Settings of the call: target, kernel and numbers of steps.
    run : Run
        Run to continue. The run and its generator are not changed, even after an error.
    seconds : float
        Time after which no further step is begun, in seconds; at least one step is made.
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
    """Return `run` after one warm-up step of its chains; its generator is advanced in place."""
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
    """Return `run` after `settings.thin` steps, and the draw then made: arrays (S, ...) by name.

    The generator of `run` is advanced in place.
    """
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
    """Return the number of cores that this process may use.

    It is 1 inside a process of a pool, whose other processes have work too, and without joblib.
    """
    if multiprocessing.current_process().name != "MainProcess":
        return 1
    try:
        from joblib import cpu_count
    except ImportError:
        return 1
    return int(cpu_count())


@contextmanager
def process_map(n_processes: int) -> Iterator[Callable[..., Iterable[Run]]]:
    """Yield a function like `map` that runs its calls in `n_processes` processes.

    Each process uses one BLAS thread. For ``n_processes=1`` it is the built-in `map`, in this
    process. After an error the processes are killed.
    """
    if n_processes == 1:
        yield map
        return
    executor = _executor(n_processes)

    def map_in_processes(
        function: Callable[..., Run], *arguments: Iterable[Any]
    ) -> Iterable[Run]:
        # the first call starts all processes; a later call replaces those that have ended
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
    """Return a pool of `n_processes` processes, which is reused by later runs.

    The processes end with this process, and after 5 minutes without work.
    """
    try:
        from joblib.externals.loky import ProcessPoolExecutor
    except ImportError:
        raise ImportError(
            f"cores={n_processes} needs joblib, which scikit-learn brings: pip install "
            "'bbb-numpy[learners]'; or use cores=1, which gives the same draws"
        ) from None
    return ProcessPoolExecutor(
        n_processes,
        timeout=IDLE_TIMEOUT_S,
        initializer=_init_process,
        initargs=(os.getpid(),),
    )


def _init_process(parent: int) -> None:
    """Make a process of the pool ignore Ctrl-C, and end when the process with id `parent` ends."""
    exit_with_parent(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    one_blas_thread()
