"""Functions that sample a posterior with several chains, and can be interrupted and resumed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator

from ..model.joint import Model
from ..model.log_joint import LogJoint
from ..numeric.layout import Array, Layout
from ..numeric.named import names_in
from ..numeric.threads import one_blas_thread
from ..numeric.validation import (
    ANY_NUMBERS,
    COUNT,
    DTYPE,
    FOLDER,
    FUNCTION,
    MAX_STEPS,
    SAMPLES,
    STEPS,
    Check,
    HasMethods,
    Numbers,
    OneOf,
    Optional,
    check_generator,
    flag,
    proper_fraction,
    whole,
)
from ..parts.hyperpriors import Hyperprior, check_hyperpriors
from ..progress import tqdm
from . import mcmc
from .chains import (
    FixedKernel,
    Run,
    Settings,
    advance,
    concatenate,
    default_groups,
    init_runs,
    n_usable_cores,
    process_map,
)
from .draws import Draws
from .mcmc import Kernel, Target
from .resuming import Checkpoint, check_same_target, warn

__all__ = ["SAMPLERS", "SETTINGS", "check_sampler", "sample", "sample_target"]

METRICS = ("diagonal", "dense")
DEFAULT_WARM_UP = 500  # warm-up steps of kernels without `default_warm_up`
POLL_INTERVAL_S = 1.0  # time between two updates of the progress bar
MAX_CORES = 1024
# Function that checks and converts an argument of `sample_target`, by the argument's name
SETTINGS: dict[str, Check] = {
    "draws": STEPS,
    "warm_up": Optional(partial(whole, minimum=0, maximum=MAX_STEPS)),
    "thin": STEPS,
    "metric": OneOf(*METRICS),
    "target_accept": Optional(proper_fraction),
    "cores": Optional(partial(whole, minimum=1, maximum=MAX_CORES)),
    "checkpoint": Optional(FOLDER),
}
SAMPLERS: dict[str, Kernel] = {
    name: pair[0] for name, pair in names_in(mcmc)["sampler"].items()
}
# Share of divergent draws above which a warning is emitted; a program may turn warnings into
# errors, so fewer divergences are reported by `Draws.summary` and `convergence` alone
MAX_DIVERGENT_SHARE = 0.001
# Number of draws with too large steps up to which they may be chance, and no warning is emitted
MAX_CHANCE_TOO_LARGE = 4


def check_sampler(sampler: Any) -> Kernel:
    """Return the kernel that `sampler` names, or `sampler` itself if it is a kernel.

    Parameters
    ----------
    sampler : str or Kernel
        A key of `SAMPLERS`, such as 'nuts', or a kernel, which is returned as it is.

    Raises
    ------
    TypeError
        If it is neither text nor an object with the methods of a `Kernel`.
    ValueError
        If no kernel has that name; the message lists them.
    """
    if isinstance(sampler, str):
        return SAMPLERS[OneOf(*SAMPLERS)("sampler", sampler)]
    names = ", ".join(map(repr, SAMPLERS))
    rule = HasMethods(f"NUTS(max_depth=8), or one of {names}", "init", "step")
    kernel: Kernel = rule("sampler", sampler)
    return kernel


def sample(
    model: Model,
    x: Any,
    y: Any,
    *,
    sampler: Any = "hmc",
    chains: int = 4,
    sample_weight: Any = None,
    hyperpriors: Mapping[str, Hyperprior] | None = None,
    start: Array | Draws | Callable[[np.random.Generator], Array] | None = None,
    groups: int | None = None,
    seed: Any = None,
    dtype: Any = "float64",
    **options: Any,
) -> Draws:
    """Draw a network's weights and learned scales from their posterior, with Markov chains.

    Parameters
    ----------
    model : Model
        Prior, network and likelihood; scales that it learns (``learn=True``) are drawn with the
        weights.
    x, y : array-like (N, d_in), (N, K)
        Inputs and targets of all rows. Only 'sghmc' and 'sgld' take minibatches of them.
    sampler : str or Kernel
        One of 'chees', 'hmc', 'mams', 'mclmc', 'mh', 'nuts', 'sghmc', 'sgld', or a kernel such as
        ``NUTS(max_depth=8)``. By default 'hmc': for the outputs of a network its paths of fixed
        length give several times the effective sample size per second of NUTS, which ends a path
        where the weights turn back.
    chains : int
        Number of chains S, which run side by side in groups. Convergence is judged from two or
        more.
    sample_weight : array-like (N,), optional
        Factor of each row's log likelihood, >= 0 (D45). By default 1 for every row.
    hyperpriors : dict of str to LogNormal, HalfNormal or HalfCauchy, optional
        Prior distributions of the learned scales, by the name of their block; see `LogJoint`.
    start : ndarray (S, D), Draws, or callable, optional
        Initial positions of the chains; by default draws from the prior. With `Draws` of the same
        posterior the chains continue from the last of these draws, as `sample_target` describes. A
        function is called with the generator of the run, after all other arguments have been
        checked, and returns the positions.
    groups : int, optional
        Number of groups of chains. By default one for each pair of chains, at most four, if rows
        times weights are 100,000 or more; else one group. So the draws depend on the number of
        chains, but not on the machine's cores.
    seed : None, int, numpy.random.Generator or numpy.random.RandomState
        With a whole number the same call gives the same draws, bit for bit on the same machine
        (processor and BLAS): elsewhere the last bits differ, and with them whole trajectories.
    dtype : {'float64', 'float32'}
        Dtype of the chains' positions and of their gradients.
    **options
        All other arguments of `sample_target`: `draws`, `warm_up`, `thin`, `metric`,
        `target_accept`, `cores`, `progress`, `checkpoint`, `checkpoint_every`.

    Returns
    -------
    Draws
        `DrawnWeights` makes predictions from them.

    Raises
    ------
    TypeError, ValueError
        For arguments that cannot be used.

    Examples
    --------
    >>> from bbb_numpy import GaussianLikelihood, GaussianPrior, MLP, Model
    >>> from bbb_numpy.sampling.run import sample
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(-1, 1, (20, 1))
    >>> model = Model(MLP((1, 5, 1), "tanh"), GaussianPrior(), GaussianLikelihood(0.3))
    >>> draws = sample(model, x, np.sin(3 * x), draws=50, warm_up=100, chains=2, seed=0)
    >>> draws.positions.shape, draws.layout.size
    ((50, 2, 16), 16)
    """
    dtype = DTYPE("dtype", dtype)
    matrix = Numbers((None, None), min_length=1)
    x = np.ascontiguousarray(matrix("x", x), dtype)
    y = np.ascontiguousarray(matrix("y", y), dtype)
    weights = Optional(Numbers((len(x),), low=0.0))("sample_weight", sample_weight)
    target = LogJoint(
        model, x, y, check_hyperpriors(hyperpriors), sample_weight=weights
    )
    n_chains = SAMPLES("chains", chains)
    kernel = check_sampler(sampler)
    if groups is None:
        products = len(target.x) * model.layout.size
        groups = default_groups(n_chains, products, kernel)
    if start is None:
        start = partial(target.draw_prior, chains=n_chains, dtype=dtype)
    elif not callable(start):
        if isinstance(start, Draws):
            shape = start.positions.shape[1:]
        else:
            start = ANY_NUMBERS("start", start).astype(dtype)
            shape = start.shape
        expected = (n_chains, target.layout.size)
        if shape != expected:
            raise ValueError(
                f"start must have shape (chains, numbers) = {expected}; got {shape}"
            )
    _check_groups(kernel, groups, n_chains, options.get("warm_up"))
    options |= {
        "sampler": sampler,
        "layout": target.layout,
        "groups": groups,
        "seed": seed,
    }
    return sample_target(target, start, **options)


def sample_target(
    target: Target,
    start: Array | Draws | Callable[[np.random.Generator], Array],
    *,
    sampler: Any = "nuts",
    draws: int = 1000,
    warm_up: int | None = None,
    thin: int = 1,
    metric: str = "diagonal",
    target_accept: float | None = None,
    seed: Any = None,
    layout: Layout | None = None,
    groups: int = 1,
    cores: int | None = None,
    progress: bool | None = None,
    checkpoint: str | Path | None = None,
    checkpoint_every: float = 60.0,
) -> Draws:
    """Draw from a density with Markov chains, given a function for its logarithm and gradient.

    Parameters
    ----------
    target : Target
        Function that takes the positions (S, D) of all S chains, and returns log densities (S,), in
        nats and up to a constant, and their gradients (S, D).
    start : ndarray (S, D), Draws, or callable
        Initial positions, one row for each chain: better too far apart than too close. A function
        is called with the generator of this run and returns them. With `Draws` the chains continue
        from the last of these draws, with the same groups and adapted kernels and without a
        warm-up; the old draws and the new ones are returned.
    sampler : str or Kernel
        One of 'chees', 'hmc', 'mams', 'mclmc', 'mh', 'nuts', 'sghmc', 'sgld'.
        'chees' is HMC that learns the length of its path in the warm-up, from two chains or more.
        'mclmc', 'sghmc' and 'sgld' reject nothing: their draws are biased, and
        `Draws.expected_bias` estimates by how much.
    draws : int
        Number of draws to keep of each chain.
    warm_up : int, optional
        Number of warm-up steps, from which step size and metric are learned. By default 4000 for
        HMC, ChEES and Metropolis-Hastings, whose steps are short, 1000 for SGHMC and SGLD, and 500
        for the others.
    thin : int
        Number of steps from one kept draw to the next.
    metric : {'diagonal', 'dense'}
        Metric that the warm-up learns. A dense one costs D^2 per step and needs more draws than D.
    target_accept : float, optional
        Mean acceptance probability, > 0 and < 1, that the warm-up aims at. By default the kernel's:
        0.8 for NUTS and HMC; 0.9 for MAMS; for ChEES a harmonic mean over the chains of 0.651.
    seed : None, int, numpy.random.Generator or numpy.random.RandomState
        With a whole number the same call gives the same draws on the same machine, bit for bit.
    layout : Layout, optional
        Names and shapes of the blocks of the D numbers; by default one block 'position'.
    groups : int
        Number of groups. The chains of a group run side by side in one array, and share generator,
        step size and metric; the groups are independent of each other.
    cores : int, optional
        Number of processes in which the groups run (by joblib, which scikit-learn brings): **the
        draws are the same, bit for bit**. By default the number of the machine's cores; 1 inside a
        process of a pool.
    progress : bool, optional
        Show a progress bar; by default only in a terminal or notebook.
    checkpoint : path, optional
        Folder in which the run is stored. The same call resumes it: on the same machine with the
        draws of an uninterrupted run, bit for bit. A finished run is returned as it is; with a
        larger `draws` it continues. By default nothing is stored.
    checkpoint_every : float
        Shortest time between two writes, in seconds, >= 0; each write stores all draws.

    Returns
    -------
    Draws
        Draws of all chains; `finished` is False after Ctrl-C.

    Raises
    ------
    TypeError, ValueError
        For arguments that cannot be used, and for a checkpoint of another run.
    ImportError
        If `cores` is greater than 1, and joblib is not installed.
    ChildProcessError
        If a process has died, for example out of memory. With a checkpoint the same call continues
        the run.

    Warns
    -----
    UserWarning
        After Ctrl-C, which returns the draws that all chains have made so far; if a checkpoint
        cannot be written; if more than 0.1 % of the draws diverged, or had too large steps: the
        posterior has narrow regions that the chains do not reach; and if the estimated bias of
        variances is above 6 % for MCLMC, or twice the `bias` of SGHMC and SGLD.

    Notes
    -----
    A single group uses as many BLAS threads as NumPy has; each of several groups uses one, set by
    threadpoolctl, which scikit-learn brings. Without threadpoolctl set ``OPENBLAS_NUM_THREADS=1``,
    or the last bits of large products may depend on `cores`.
    """
    FUNCTION("target", target)
    previous = None
    if isinstance(start, Draws):
        previous = start
        start = _last_positions(previous, target)
        if checkpoint is not None:
            raise ValueError(
                "checkpoint must be None where start is Draws: a stored run goes on if the same "
                "call asks for more draws"
            )
        sampler = previous.kernel
        warm_up = 0
        groups = len(previous.kernels)
    job = _prepare(
        target,
        start,
        sampler=sampler,
        seed=seed,
        groups=groups,
        progress=progress,
        checkpoint_every=checkpoint_every,
        fixed_kernels=() if previous is None else previous.kernels,
        unchecked={
            "draws": draws,
            "warm_up": warm_up,
            "thin": thin,
            "metric": metric,
            "target_accept": target_accept,
            "cores": cores,
            "checkpoint": checkpoint,
        },
    )
    # the last bits of a sum depend on the number of BLAS threads: every group uses one thread, in
    # this process too, so that the draws do not depend on `cores`
    threads = nullcontext() if job.n_groups == 1 else one_blas_thread()
    with threads, process_map(job.n_processes) as map_groups:
        runs = job.init()
        finished = _advance_all(job, runs, map_groups)
    result = _result(runs, job.settings, layout, finished)
    _warn_of_bias(result)
    return result if previous is None else _concatenate_draws(previous, result)


# --- prepare: from the arguments of `sample_target` to a `_Job` ----------------------------------


@dataclass(frozen=True, eq=False)
class _Job:
    """A call of `sample_target` whose arguments have been checked."""

    settings: Settings
    rng: Generator
    start: Array  # (S, D)  initial positions of all chains
    repeatable: bool  # whether repeating the call gives the same `start`
    n_groups: int
    n_processes: int
    # one adapted kernel for each group if the chains continue from `Draws`, else empty
    fixed_kernels: list[FixedKernel]
    progress: bool | None  # None shows a bar only in a terminal or notebook
    checkpoint: Checkpoint | None

    def init(self) -> list[Run]:
        """Return the run of every group: the stored one, or a new one before its first step."""
        if self.checkpoint is not None:
            runs = self.checkpoint.resume(self.settings, self.start, self.repeatable)
            if runs is not None:
                return runs
        return init_runs(
            self.settings, self.start, self.n_groups, self.rng, self.fixed_kernels
        )


def _prepare(
    target: Target,
    start: Any,
    *,
    sampler: Any,
    seed: Any,
    groups: Any,
    progress: Any,
    checkpoint_every: float,
    fixed_kernels: Iterable[Any],
    unchecked: dict[str, Any],
) -> _Job:
    """Check the arguments of `sample_target`, open its checkpoint, and return them as a `_Job`.

    The arguments are those of `sample_target`, apart from two: `fixed_kernels`, one adapted kernel
    for each group if the chains continue from `Draws`, else empty; and `unchecked`, the values of
    the keys of `SETTINGS`, which are checked here.
    """
    kernel = check_sampler(sampler)
    Optional(flag)("progress", progress)
    checked = {name: SETTINGS[name](name, value) for name, value in unchecked.items()}
    warm_up = checked["warm_up"]
    if warm_up is None:
        warm_up = getattr(kernel, "default_warm_up", DEFAULT_WARM_UP)
    settings = Settings(
        target,
        kernel,
        warm_up,
        checked["thin"],
        checked["draws"],
        checked["metric"] == "dense",
        checked["target_accept"],
    )
    rng = check_generator(seed, "seed")
    whole_seed = int(seed) if isinstance(seed, Integral) else None
    groups = COUNT("groups", groups)
    draws_start = callable(start)
    if not draws_start:
        start = _check_start(start)
    checkpoint = None
    if unchecked["checkpoint"] is not None:
        checkpoint = Checkpoint(unchecked["checkpoint"], checkpoint_every)
        checkpoint.load(settings, groups, whole_seed)
    if draws_start:
        # `start` is called only after all arguments have been checked, because it may take minutes:
        # the learners train an ensemble of networks to find initial positions
        start = _check_start(start(rng))
    _check_groups(kernel, groups, len(start), warm_up)
    cores = checked["cores"]
    if cores is None:
        cores = n_usable_cores()
    return _Job(
        settings,
        rng,
        start,
        whole_seed is not None or not draws_start,
        groups,
        min(groups, cores),
        [FixedKernel(kernel) for kernel in fixed_kernels],
        progress,
        checkpoint,
    )


def _check_start(start: Any) -> Array:
    """Return `start` (S, D) as a new float array; raise ValueError for another shape or dtype."""
    position = np.array(ANY_NUMBERS("start", start))
    is_float = position.dtype in (np.float32, np.float64)
    if position.ndim != 2 or not len(position) or not is_float:
        raise ValueError(
            "start must be a matrix (chains, numbers) of float64 or float32; got "
            f"shape {position.shape} of {position.dtype}"
        )
    return position


def _check_groups(
    kernel: Kernel, groups: Any, chains: int, warm_up: int | None
) -> None:
    """Raise ValueError if there are more groups than chains, or too few chains in each group.

    The kernel's method `check_chains`, if it has one, says how many chains a warm-up needs.
    """
    groups = whole("groups", groups, 1, chains)
    if warm_up != 0 and hasattr(kernel, "check_chains"):
        kernel.check_chains(chains // groups)


def _last_positions(draws: Draws, target: Target) -> Array:
    """Return the positions (S, D) of the last draw of each chain in `draws`.

    Raise ValueError if there are no draws, or if they were drawn from another target.
    """
    if not len(draws.positions):
        raise ValueError(
            "start has no draws: sampling was interrupted before the first one. Sample again"
        )
    position = draws.positions[-1]
    log_density = draws.log_density[-1]
    remedy = "Sample this target from a new start"
    check_same_target(target, position, log_density, "start has draws of", remedy)
    return position


# --- advance: steps of all groups of chains ------------------------------------------------------


def _advance_all(
    job: _Job, runs: list[Run], map_groups: Callable[..., Iterable[Run]]
) -> bool:
    """Advance all groups to their last step; return True, or False if Ctrl-C comes first.

    The list `runs` is changed in place; `map_groups` is the function that `process_map` yields.
    With a checkpoint the runs are stored at intervals, and at the end even after an error.
    """
    checkpoint = job.checkpoint
    n_steps = job.settings.n_steps
    bar = tqdm(total=n_steps, unit="step", progress=job.progress)
    try:
        while unfinished := [i for i, run in enumerate(runs) if run.n_steps < n_steps]:
            _advance_once(job.settings, runs, unfinished, map_groups)
            bar.update(sum(run.n_steps for run in runs) // len(runs) - bar.n)
            if checkpoint is not None and checkpoint.due():
                checkpoint.write(runs)
    except KeyboardInterrupt:
        goes_on = "" if checkpoint is None else "; the same call goes on"
        warn(
            f"Sampling interrupted by user after {min(run.n_steps for run in runs)} steps; "
            f"{_n_common_draws(runs, job.settings)} of {job.settings.n_draws} draws are returned"
            f"{goes_on}"
        )
        return False
    except BrokenProcessPool as error:
        outlook = "starts from the beginning"
        if checkpoint is not None:
            outlook = "continues from its checkpoint"
        raise ChildProcessError(
            f"{error} Repeating the call {outlook}; with cores=1 no other process is needed."
        ) from error
    finally:
        bar.close()
        if checkpoint is not None:
            checkpoint.write(runs)
    return True


def _advance_once(
    settings: Settings,
    runs: list[Run],
    groups: list[int],
    map_groups: Callable[..., Iterable[Run]],
) -> None:
    """Advance the runs with indices `groups` by `POLL_INTERVAL_S` seconds, in place in `runs`."""
    # the draws so far are not sent to the processes, which do not need them: copying takes time
    bare = [runs[group]._replace(draws=()) for group in groups]
    seconds = [POLL_INTERVAL_S] * len(groups)
    advanced = map_groups(advance, [settings] * len(groups), bare, seconds)
    for group, run in zip(groups, advanced, strict=True):
        runs[group] = run._replace(draws=runs[group].draws + run.draws)


# --- result: from the runs of the groups to `Draws`, and warnings --------------------------------


def _n_common_draws(runs: Sequence[Run], settings: Settings) -> int:
    """Return the number of draws per chain, at most the requested one, that all groups have."""
    return min(settings.n_draws, *map(settings.n_draws_of, runs))


def _result(
    runs: Sequence[Run], settings: Settings, layout: Layout | None, finished: bool
) -> Draws:
    """Return the `Draws` of all groups side by side, cut to the number that every group has."""
    n_draws = _n_common_draws(runs, settings)
    arrays = concatenate(
        [
            {name: array[:n_draws] for name, array in run.all_draws().items()}
            for run in runs
        ],
        axis=1,
    )
    positions = arrays.pop("positions")
    log_density = arrays.pop("log_density")
    if layout is None:
        layout = Layout((("position", positions.shape[2:]),))
    kernel, *other_kernels = map(settings.kernel_of, runs)
    return Draws(
        positions,
        log_density,
        arrays,
        kernel,
        settings.target,
        layout,
        min(settings.warm_up, *(run.n_steps for run in runs)),
        sum(run.warm_up_divergent for run in runs),
        finished,
        tuple(other_kernels),
    )


def _warn_of_bias(draws: Draws) -> None:
    """Emit a UserWarning if divergences or too large steps show that expectations are biased."""
    kernel = draws.kernel
    name = type(kernel).__name__
    # a kernel without a rejection step has no target_accept; `remedy` names what lowers its bias
    remedy = getattr(kernel, "remedy", "")
    smaller_steps = "Raise target_accept (0.9, 0.95, 0.99)"
    if remedy:
        smaller_steps = f"Take {remedy}"
    biased = draws.expected_bias > getattr(kernel, "max_bias", 0.0)
    n_draws = draws.log_density.size
    too_large = draws.too_large_steps
    min_too_large = max(MAX_DIVERGENT_SHARE * n_draws, MAX_CHANCE_TOO_LARGE)
    if draws.divergences > MAX_DIVERGENT_SHARE * n_draws:
        warn(
            f"{draws.divergences} divergent transitions among {n_draws} draws: the posterior has "
            "narrow places that the chains do not reach, and expectations are biased even where "
            f"R-hat is 1. {smaller_steps}, or use another prior or hyperprior"
        )
    elif too_large * n_draws > min_too_large and not biased:
        warn(
            f"the steps of {name} were too large in {100 * too_large:.2g} % of the draws: the "
            "posterior has narrow places that the chains leave out, and variances may be too small "
            "even where R-hat is 1 (by 10 to 40 % for a banana-shaped posterior). "
            f"{smaller_steps}"
        )
    if biased:
        warn(
            f"{name} is not adjusted, and its steps are too large: variances are off by about "
            f"{100 * draws.expected_bias:.2g} % if the posterior is a Gaussian, more if it is far "
            f"from one, and means may be off too. Give it a longer warm-up or {remedy}"
        )


def _concatenate_draws(first: Draws, second: Draws) -> Draws:
    """Return the draws of `first` followed by those of `second`, made later by the same chains."""
    return replace(
        second,
        positions=np.concatenate([first.positions, second.positions]),
        log_density=np.concatenate([first.log_density, second.log_density]),
        stats=concatenate([first.stats, second.stats]),
        warm_up=first.warm_up,
        warm_up_divergent=first.warm_up_divergent,
    )
