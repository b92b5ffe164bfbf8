"""Sample a posterior: warm-up, several chains, progress, interruption and resumption."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from itertools import repeat
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np

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
    HasMethods,
    Numbers,
    OneOf,
    Optional,
    Rule,
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
DEFAULT_WARM_UP = 500  # draws, for a kernel that does not say what its usual warm-up is
POLL_INTERVAL_S = 1.0  # seconds of a group between two looks at all of them
# What the settings of a run may be, by argument
SETTINGS: dict[str, Rule] = {
    "draws": STEPS,
    "warm_up": Optional(partial(whole, minimum=0, maximum=MAX_STEPS)),
    "thin": STEPS,
    "metric": OneOf(*METRICS),
    "target_accept": Optional(proper_fraction),
    "cores": Optional(partial(whole, minimum=1, maximum=1024)),
    "checkpoint": Optional(FOLDER),
}
SAMPLERS: dict[str, Kernel] = {
    name: pair[0] for name, pair in names_in(mcmc)["sampler"].items()
}
# Share of draws after a divergence above which a warning says so, which may be an error to a
# program; each one is told by `Draws.summary` and by `convergence`
MAX_DIVERGENT_SHARE = 0.001
MAX_CHANCE_TOO_LARGE = (
    4  # draws whose steps were too large, up to which it may be chance
)


def check_sampler(sampler: Any) -> Kernel:
    """Return a kernel, given itself or its short name; else raise TypeError or ValueError."""
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
    """Draw weights, and the scales that the model learns, from their posterior.

    Parameters
    ----------
    model : Model
        Learned scales (``learn=True``) are drawn with the weights.
    x, y : array-like (N, d_in), (N, K)
        All the data, of which 'sghmc' and 'sgld' alone take minibatches.
    sampler : str or kernel
        One of 'chees', 'hmc', 'mams', 'mclmc', 'mh', 'nuts', 'sghmc', 'sgld'.
        HMC's paths of fixed length draw several times as many effective values of a network's
        function per second as NUTS, which turns where the weights turn.
    chains : int
        S, run side by side in groups. Two at least, or convergence cannot be judged.
    sample_weight : array-like (N,), optional
        How often each row counts, >= 0 (D45).
    hyperpriors : dict of str to LogNormal, HalfNormal or HalfCauchy, optional
        Of the learned scales, by block; see `LogJoint`.
    start : ndarray (S, D), Draws, or callable, optional
        Where the chains begin; by default at draws from the prior. Given draws of the same
        posterior, the chains go on, as `sample_target` says. A function is called with the run's
        generator when all else has been checked.
    groups : int, optional
        By default pairs, and at most four groups, where rows times weights are 100,000 or more,
        else one: the draws depend on the number of chains, but not on the machine's cores.
    seed : None, int, numpy.random.Generator or numpy.random.RandomState
        With a whole number the same call gives the same draws, bit for bit on the same machine
        (processor and BLAS): elsewhere the last bits differ, and with them whole trajectories.
    dtype : {'float64', 'float32'}
        Of the chains and their gradients.
    **options
        As in `sample_target`.

    Returns
    -------
    Draws
        `DrawnWeights` makes predictions of them.

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
    kind = DTYPE("dtype", dtype)
    x, y = (
        np.ascontiguousarray(Numbers((None, None), min_length=1)(name, rows), kind)
        for name, rows in (("x", x), ("y", y))
    )
    weights = Optional(Numbers((len(x),), low=0.0))("sample_weight", sample_weight)
    target = LogJoint(
        model, x, y, check_hyperpriors(hyperpriors), sample_weight=weights
    )
    wanted = (SAMPLES("chains", chains), target.layout.size)
    kernel = check_sampler(sampler)
    if groups is None:
        groups = default_groups(wanted[0], len(target.x) * model.layout.size, kernel)
    place: Any = start
    if start is None:
        place = partial(target.draw_prior, chains=wanted[0], dtype=kind)
    elif not callable(start):
        place = (
            start
            if isinstance(start, Draws)
            else ANY_NUMBERS("start", start).astype(kind)
        )
        shape = place.positions.shape[1:] if isinstance(place, Draws) else place.shape
        if shape != wanted:
            raise ValueError(
                f"start must have shape (chains, numbers) = {wanted}; got {shape}"
            )
    _check_groups(kernel, groups, wanted[0], options.get("warm_up"))
    options |= {
        "sampler": sampler,
        "layout": target.layout,
        "groups": groups,
        "seed": seed,
    }
    return sample_target(target, place, **options)


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
    """Draw from any density, given its logarithm and gradient.

    Parameters
    ----------
    target : callable
        From positions (S, D) to log densities (S,) and gradients (S, D), all chains at once.
    start : ndarray (S, D), Draws, or callable
        One row per chain, better too far apart than too close; or what draws it, given the
        generator of this run. Given draws, the chains go on from where these end, with the kernels
        and groups that they have and no warm-up: what is returned are they and the new ones.
    sampler : str or kernel
        One of 'chees', 'hmc', 'mams', 'mclmc', 'mh', 'nuts', 'sghmc', 'sgld'.
        'chees' is HMC that finds the length of its path in the warm-up, from two chains at least.
        'mclmc', 'sghmc' and 'sgld' reject nothing: their draws are biased, `Draws.expected_bias`.
    draws : int
        To keep of each chain.
    warm_up : int, optional
        Draws before them, from which step size and metric are learned; by default 4000 for HMC,
        ChEES and Metropolis-Hastings, whose steps are short, and else 500.
    thin : int
        Steps per kept draw.
    metric : {'diagonal', 'dense'}
        What the warm-up learns. A dense one costs D^2 per step and needs more draws than D.
    target_accept : float, optional
        Wanted mean acceptance in the warm-up; by default the kernel's: 0.8 for NUTS and
        HMC; 0.9 for MAMS; 0.651 for ChEES, of the harmonic mean over the chains.
    seed : None, int, numpy.random.Generator or numpy.random.RandomState
    layout : Layout, optional
        Names the D numbers.
    groups : int
        Chains of a group run side by side in one array, and learn step size and metric from each
        other, from a generator of their own; of other groups they know nothing.
    cores : int, optional
        On how many cores groups run, each in a process of its own (by joblib, which scikit-learn
        brings): **the draws are the same, bit for bit**. By default all that the machine has; for
        a process of a pool one.
    progress : bool, optional
        Show a progress bar; by default only in a terminal or notebook.
    checkpoint : path, optional
        A folder, where the run is stored, and from where the same call goes on: on the same
        machine with the draws of an uninterrupted run, bit for bit. A finished run is returned as
        it is, and goes on if more `draws` are asked for.
    checkpoint_every : float
        Seconds between two writes, of all draws each time.

    Returns
    -------
    Draws

    Raises
    ------
    TypeError, ValueError
        For arguments that cannot be used, and a checkpoint of another run.
    ImportError
        If `cores` asks for several, and joblib is not installed.
    ChildProcessError
        When a process has died, for example out of memory. With a checkpoint the same call goes on.

    Warns
    -----
    UserWarning
        After Ctrl-C, which returns the draws that all chains have made so far; when a checkpoint
        cannot be written; when more than 1 in 1,000 draws diverged: the posterior has places that
        the chains do not reach; and when variances are off by more than 6 % for want of rejection.

    Notes
    -----
    One group runs as many BLAS threads as NumPy has; several run one each, by threadpoolctl, which
    scikit-learn brings. Without, set ``OPENBLAS_NUM_THREADS=1``, or the last bits of large products
    may depend on `cores`.
    """
    FUNCTION("target", target)
    before, kept = None, list[FixedKernel]()
    if isinstance(start, Draws):
        before, kept = start, [FixedKernel(kernel) for kernel in start.kernels]
        start, sampler, warm_up, groups = (
            _last_positions(before, target),
            before.kernel,
            0,
            len(kept),
        )
        if checkpoint is not None:
            raise ValueError(
                "checkpoint is for whole runs: one goes on by asking for more draws"
            )
    kernel = check_sampler(sampler)
    Optional(flag)("progress", progress)
    given: dict[str, Any] = {
        "draws": draws,
        "warm_up": warm_up,
        "thin": thin,
        "metric": metric,
        "target_accept": target_accept,
        "cores": cores,
        "checkpoint": checkpoint,
    }
    checked = {name: SETTINGS[name](name, value) for name, value in given.items()}
    if warm_up is None:
        checked["warm_up"] = getattr(kernel, "default_warm_up", DEFAULT_WARM_UP)
    settings = Settings(
        target,
        kernel,
        checked["warm_up"],
        checked["thin"],
        checked["draws"],
        checked["metric"] == "dense",
        checked["target_accept"],
    )
    rng = check_generator(seed, "seed")
    number = int(seed) if isinstance(seed, Integral) else None
    known = not callable(start) or number is not None
    groups = COUNT("groups", groups)
    draw_start: Any = start
    place = None if callable(start) else _matrix(start)
    store = None
    if checkpoint is not None:
        store = Checkpoint(checkpoint, checkpoint_every)
        store.open(settings, groups, number)
    if place is None:
        # an ensemble takes its time: all else has been checked
        place = _matrix(draw_start(rng))
    _check_groups(kernel, groups, len(place), settings.warm_up)
    cores = checked["cores"]
    count = min(groups, n_usable_cores() if cores is None else cores)
    with (
        nullcontext() if groups == 1 else one_blas_thread(),
        process_map(count) as each,
    ):
        runs = None if store is None else store.read(settings, place, known)
        if runs is None:
            runs = init_runs(settings, place, groups, rng, kept)
        finished = True
        bar = tqdm(
            total=settings.steps,
            unit="step",
            leave=False,
            disable=None if progress is None else not progress,
        )
        try:
            while left := [
                i for i, run in enumerate(runs) if run.steps < settings.steps
            ]:
                bare = [runs[group]._replace(draws=()) for group in left]
                moved = each(
                    advance,
                    repeat(settings, len(left)),
                    bare,
                    repeat(POLL_INTERVAL_S, len(left)),
                )
                for group, run in zip(left, moved, strict=True):
                    runs[group] = run._replace(draws=runs[group].draws + run.draws)
                bar.update(sum(run.steps for run in runs) // groups - bar.n)
                if store is not None and store.due():
                    store.write(runs)
        except KeyboardInterrupt:
            finished = False
            warn(
                f"Sampling interrupted by user after {min(run.steps for run in runs)} steps; "
                f"{min(map(settings.n_draws_of, runs))} of {settings.draws} draws are returned"
                + ("" if store is None else "; the same call goes on")
            )
        except BrokenProcessPool as error:
            goes_on = "begins anew" if store is None else "goes on from its checkpoint"
            raise ChildProcessError(
                f"{error} The same call {goes_on}; cores=1 needs no other process."
            ) from error
        finally:
            bar.close()
            if store is not None:
                store.write(runs)
    found = _result(runs, settings, layout, finished)
    return found if before is None else _joined(before, found)


def _matrix(start: Any) -> Array:
    """Return a copy of where the chains begin, (S, D), or raise ValueError."""
    place = np.array(ANY_NUMBERS("start", start))
    if place.ndim != 2 or not len(place) or place.dtype not in (np.float32, np.float64):
        raise ValueError(
            "start must be a matrix (chains, numbers) of float64 or float32; got "
            f"shape {place.shape} of {place.dtype}"
        )
    return place


def _check_groups(
    kernel: Kernel, groups: Any, chains: int, warm_up: int | None
) -> None:
    """Raise ValueError where there are more groups than chains, or a kernel needs more in each."""
    groups = whole("groups", groups, 1, chains)
    if warm_up != 0 and hasattr(kernel, "check_chains"):
        kernel.check_chains(chains // groups)


def _last_positions(draws: Draws, target: Target) -> Array:
    """Return the last positions of chains (S, D), if they are those of this target."""
    if not len(draws.positions):
        raise ValueError(
            "start is empty: sampling was interrupted before the first draw"
        )
    there = draws.log_density[-1]
    check_same_target(
        target, draws.positions[-1], there, "start has draws of", "Begin anew"
    )
    return draws.positions[-1]


def _joined(before: Draws, after: Draws) -> Draws:
    """Return all draws, of chains that went on."""
    return replace(
        after,
        positions=np.concatenate([before.positions, after.positions]),
        log_density=np.concatenate([before.log_density, after.log_density]),
        stats=concatenate([before.stats, after.stats]),
        warm_up=before.warm_up,
        warm_up_divergent=before.warm_up_divergent,
    )


def _result(
    runs: Sequence[Run], settings: Settings, layout: Layout | None, finished: bool
) -> Draws:
    """Put the groups side by side, as far as all of them have come."""
    count = min(settings.draws, *map(settings.n_draws_of, runs))
    parts = [{name: of[:count] for name, of in run.all_draws().items()} for run in runs]
    found = concatenate(parts, axis=1)
    positions, size = found.pop("positions"), runs[0].state.position.shape[1]
    kernel, *others = (
        settings.kernel if run.adaptation is None else run.adaptation.kernel
        for run in runs
    )
    draws = Draws(
        positions,
        found.pop("log_density"),
        found,
        kernel,
        settings.target,
        Layout((("position", (size,)),)) if layout is None else layout,
        min(settings.warm_up, min(run.steps for run in runs)),
        sum(run.warm_up_divergent for run in runs),
        finished,
        tuple(others),
    )
    remedy = getattr(kernel, "remedy", "")  # of one that accepts everything
    smaller = f"Take {remedy}" if remedy else "Raise target_accept (0.9, 0.95, 0.99)"
    biased = draws.expected_bias > getattr(kernel, "max_bias", 0.0)
    size = draws.log_density.size
    too_large = draws.too_large_steps
    if draws.divergences > MAX_DIVERGENT_SHARE * size:
        warn(
            f"{draws.divergences} divergent transitions among {size} draws: the "
            "posterior has narrow places that the chains do not reach, and expectations are biased "
            f"even where R-hat is 1. {smaller}, or use another prior or hyperprior"
        )
    elif (
        max(MAX_DIVERGENT_SHARE * size, MAX_CHANCE_TOO_LARGE) < too_large * size
        and not biased
    ):
        warn(
            f"the steps of {type(kernel).__name__} were too large in {100 * too_large:.2g} % of "
            "the draws: the posterior has narrow places that the chains leave out, and variances "
            f"may be too small even where R-hat is 1 (of a banana by 10 to 40 %). {smaller}"
        )
    if biased:
        warn(
            f"{type(kernel).__name__} is not adjusted, and its steps are large here: variances are "
            f"off by about {100 * draws.expected_bias:.2g} % if the posterior is a Gaussian, "
            "more if it is far from one, and means may be off too. Give it a longer warm-up or "
            f"{remedy}"
        )
    return draws
