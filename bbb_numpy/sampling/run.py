"""Sample a posterior: warm-up, several chains, progress, interruption and resumption."""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..model.joint import Model
from ..model.log_joint import LogJoint
from ..numeric.layout import Layout
from ..numeric.threads import one_blas_thread
from ..numeric.validation import (
    DTYPE,
    FUNCTION,
    MOST_STEPS,
    SAMPLES,
    Like,
    Numbers,
    OneOf,
    Optional,
    check_generator,
    flag,
    proper_fraction,
    unrounded,
    whole,
)
from ..parts.hyperpriors import Hyperprior, check_hyperpriors
from ..progress import tqdm
from .draws import STATISTICS, Draws
from .mcmc import HMC, MAMS, MCLMC, NUTS, ChEES, Kernel, MetropolisHastings, Target
from .resuming import Recording, Run, recordings
from .stepping import Course, Mark, advance, begin, behind, divided, usual_groups
from .workers import Died, NotSent, Processes, Task, check_cores, usable

__all__ = ["METRICS", "SAMPLERS", "Draws", "check_sampler", "sample", "sample_target"]

Array = NDArray[Any]
METRICS = ("diagonal", "dense")
OPTIONS = (
    "draws",
    "warm_up",
    "thin",
    "metric",
    "target_accept",
    "cores",
    "progress",
    "checkpoint",
    "checkpoint_every",
)
WARM_UP = 500  # draws, for a kernel that does not say what its usual warm-up is
TRIED, PAYS = 1.0, 5.0  # seconds on one core after which, and seconds left for which, to use more
SAMPLERS: dict[str, Kernel] = {
    "nuts": NUTS(),
    "chees": ChEES(),
    "hmc": HMC(),
    "mams": MAMS(),
    "mclmc": MCLMC(),
    "mh": MetropolisHastings(),
}
MOST_BIAS = 0.06  # of the expected bias, above which a warning says so
# Share of draws after a divergence above which a warning says so, which may be an error to a
# program; each one is told by `Draws.summary` and by `convergence`
MOST_DIVERGENT = 0.001


def check_sampler(sampler: Any) -> Kernel:
    """Return a kernel, given itself or its short name.

    Raises
    ------
    TypeError, ValueError
        For anything else; the message says what is accepted.
    """
    if isinstance(sampler, str):
        return SAMPLERS[OneOf(*SAMPLERS)("sampler", sampler)]
    names = ", ".join(map(repr, SAMPLERS))
    kernel: Kernel = Like(f"NUTS(max_depth=8), or one of {names}", "init", "step")(
        "sampler", sampler
    )
    return kernel


def sample(
    model: Model,
    x: Any,
    y: Any,
    *,
    sampler: Any = "hmc",
    chains: int = 4,
    hyperpriors: Mapping[str, Hyperprior] | None = None,
    start: Array | None = None,
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
        All the data; a sampler has no minibatches.
    sampler : {'hmc', 'nuts', 'chees', 'mams', 'mclmc', 'mh'} or kernel
        As in `sample_target`. HMC's paths of fixed length draw several times as many effective
        values of a network's function per second as NUTS, which turns where the weights turn.
    chains : int
        S, run side by side in groups. Two at least, or convergence cannot be judged.
    hyperpriors : dict of str to LogNormal, HalfNormal or HalfCauchy, optional
        Of the learned scales, by block; see `LogJoint`.
    start : ndarray (S, D), optional
        Where the chains begin; by default at draws from the prior.
    groups : int, optional
        As in `sample_target`; by default pairs, and at most four groups, where rows times weights
        are 100,000 or more, else one. So the draws depend on the number of chains, but not on
        the machine's cores.
    seed : None, int, numpy.random.Generator or numpy.random.RandomState
        With a whole number the same call gives the same draws, bit for bit on the same machine
        (processor and BLAS): elsewhere the last bits differ, and with them whole trajectories.
    dtype : {'float64', 'float32'}
        Of the chains and their gradients.
    **options
        draws, warm_up, thin, metric, target_accept, cores, progress, checkpoint and
        checkpoint_every, as in `sample_target`.

    Returns
    -------
    Draws
        `bbb_numpy.sampling.draws.DrawnWeights` makes predictions of them.

    Raises
    ------
    TypeError, ValueError
        For arguments that cannot be used; the message names them.

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
    unknown = sorted(set(options) - set(OPTIONS))
    if unknown:
        raise TypeError(
            f"sample has no argument {unknown[0]!r}; besides those in its signature it has "
            f"{', '.join(OPTIONS)}. Settings of a kernel go into it: sampler=NUTS(step_size=0.1)"
        )
    kind = DTYPE("dtype", dtype)
    target = LogJoint(
        model, _matrix("x", x, kind), _matrix("y", y, kind), check_hyperpriors(hyperpriors)
    )
    rng = check_generator(seed, "seed")
    wanted = (SAMPLES("chains", chains), target.layout.size)
    known = start is not None or isinstance(seed, Integral)
    if start is None:
        start = target.draw_prior(rng, wanted[0], kind)
    elif np.shape(start) != wanted:
        raise ValueError(
            f"start must have shape (chains, numbers) = {wanted}; got {np.shape(start)}"
        )
    if groups is None:
        kernel = check_sampler(sampler)
        groups = usual_groups(wanted[0], len(target.x) * model.layout.size, kernel)
    options |= {"sampler": sampler, "layout": target.layout, "seed": seed, "groups": groups}
    return _run(target, np.asarray(start, kind), rng, known, **options)


def _matrix(name: str, values: Any, dtype: Any) -> Array:
    try:
        rows = Numbers((None, None), least=1)(name, values)
    except TypeError as error:  # of data, as from the learners
        raise ValueError(str(error)) from None
    exact = unrounded(np.asarray(rows, np.float64), values, name)
    return np.ascontiguousarray(exact, dtype)


def sample_target(
    target: Target,
    start: Array,
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
    start : ndarray (S, D)
        One row per chain, better too far apart than too close.
    sampler : {'nuts', 'chees', 'hmc', 'mams', 'mclmc', 'mh'} or kernel
        'chees' is HMC that finds the length of its path in the warm-up, from two chains at least.
        Of 'mclmc', which rejects nothing, draws are biased: `Draws.expected_bias`.
    draws : int
        To keep of each chain.
    warm_up : int, optional
        Draws before them, from which step size and metric are learned; by default the kernel's
        `usual_warm_up`, 4000 for HMC, ChEES and Metropolis-Hastings, whose steps are short, and
        else 500.
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
        On how many cores groups run, each in a process of its own. **The draws are the same, bit
        for bit**: they depend on `seed`, chains and `groups`, not on this. By default all that
        the machine has (for a process of a pool one), as soon as a run is seen to last seconds.
        The processes import target and kernel: functions of a script or notebook, and lambdas,
        run on one core.
    progress : bool, optional
        Show a progress bar; by default only in a terminal or notebook.
    checkpoint : path, optional
        A folder. The run is stored there, and goes on from there when the same call is made
        again: on the same machine the draws are those of an uninterrupted run, bit for bit. A
        finished run is returned as it is, and goes on if more `draws` are asked for.
    checkpoint_every : float
        Seconds between two writes.

    Returns
    -------
    Draws

    Raises
    ------
    TypeError, ValueError
        For arguments that cannot be used, a checkpoint of another run, and a target that other
        processes cannot have, if `cores` asks for some.
    ChildProcessError
        When the process of a group has died, for example for lack of memory. With a checkpoint
        the same call goes on.

    Warns
    -----
    UserWarning
        After Ctrl-C, which returns the draws that all chains have made so far; when a checkpoint
        cannot be written, as on a full disk; when more than 1 in 1,000 draws diverged: the
        posterior has places that the chains do not reach; when a long run stays on one core
        because of its target; and when 'mclmc' makes variances off by more than 6 %.

    Notes
    -----
    One group runs as many BLAS threads as NumPy has; several run one each. Here threadpoolctl
    sees to that, which comes with scikit-learn; without, set ``OPENBLAS_NUM_THREADS=1``, or
    the last bits of large products may depend on `cores`.
    """
    options = {
        "sampler": sampler,
        "draws": draws,
        "warm_up": warm_up,
        "thin": thin,
        "metric": metric,
        "target_accept": target_accept,
        "seed": seed,
        "layout": layout,
        "groups": groups,
        "cores": cores,
        "progress": progress,
        "checkpoint": checkpoint,
        "checkpoint_every": checkpoint_every,
    }
    return _run(target, start, check_generator(seed, "seed"), True, **options)


def _run(
    target: Target,
    start: Array,
    rng: np.random.Generator,
    known: bool,
    *,
    seed: Any,
    layout: Layout | None,
    sampler: Any,
    draws: int = 1000,
    warm_up: int | None = None,
    thin: int = 1,
    metric: str = "diagonal",
    target_accept: float | None = None,
    groups: int = 1,
    cores: int | None = None,
    progress: bool | None = None,
    checkpoint: str | Path | None = None,
    checkpoint_every: float = 60.0,
) -> Draws:
    """Do what `sample_target` says; `known`: whether the same call has the same `start` again."""
    FUNCTION("target", target)
    kernel = check_sampler(sampler)
    Optional(flag)("progress", progress)
    cores = check_cores("cores", cores)
    draws = whole("draws", draws, 1, MOST_STEPS)
    if warm_up is None:
        warm_up = getattr(kernel, "usual_warm_up", WARM_UP)
    warm_up = whole("warm_up", warm_up, 0, MOST_STEPS)
    thin = whole("thin", thin, 1, MOST_STEPS)
    OneOf(*METRICS)("metric", metric)
    target_accept = Optional(proper_fraction)("target_accept", target_accept)
    try:
        start = np.array(start)
    except ValueError:  # lists of several lengths
        start = np.array("")
    if start.ndim != 2 or not len(start) or start.dtype not in (np.float32, np.float64):
        raise ValueError(
            "start must be a matrix (chains, numbers) of float64 or float32; got "
            f"shape {start.shape} of {start.dtype}"
        )
    if layout is None:
        layout = Layout((("position", (start.shape[1],)),))
    groups = whole("groups", groups, 1, len(start))
    course = Course(target, kernel, warm_up, thin, draws, metric == "dense", target_accept)
    settings = {
        # without addresses in memory, by which no other process would know it again
        "kernel": re.sub(" at 0x[0-9a-f]+", "", repr(kernel)),
        "warm_up": warm_up,
        "thin": thin,
        "metric": metric,
        "target_accept": target_accept,
        "dtype": str(start.dtype),
        "chains": len(start),
        "seed": int(seed) if isinstance(seed, Integral) else None,
    }
    folders = [] if checkpoint is None else recordings(checkpoint, checkpoint_every, groups)
    with nullcontext() if groups == 1 else one_blas_thread():
        runs = _begun(course, start, rng, known, folders, settings, groups)
        # One name for all that belongs together: Ctrl-C between two lines leaves it whole
        marks = [Mark.of(run) for run in runs]
        finished, dead = True, None
        with tqdm(
            total=warm_up + draws,
            initial=_done(marks, course),
            unit="draw",
            leave=False,
            disable=None if progress is None else not progress,
        ) as bar:
            try:
                _sample(marks, course, cores, folders, bar)
            except KeyboardInterrupt:
                finished = False
            except Died as error:
                dead = error
        runs = [mark.restored() for mark in marks]
        stored = _store(folders, runs, 4) and bool(folders)
    if dead is not None:
        place = divided(len(start), groups)[dead.group]
        raise ChildProcessError(
            f"the process of group {dead.group}, chains {place.start} to {place.stop - 1}, died "
            f"with exit code {dead.code}, for example for lack of memory; "
            + ("the same call goes on from the" if stored else "with a folder as")
            + (" checkpoint" if stored else " `checkpoint` the same call would go on from there")
            + ". cores=1 needs no other process"
        )
    if not finished:
        made = min(len(run.kept) for run in runs)
        warnings.warn(
            f"Sampling interrupted by user after {min(run.steps for run in runs)} steps; {made} of "
            f"{draws} draws are returned" + ("; the same call goes on" if stored else ""),
            UserWarning,
            stacklevel=3,
        )
    return _result(runs, course, layout, finished)


def _begun(
    course: Course,
    start: Array,
    rng: np.random.Generator,
    known: bool,
    folders: Sequence[Recording],
    settings: dict[str, Any],
    groups: int,
) -> list[Run]:
    """Return the runs of all groups, from where they were stored or before their first step."""
    places = divided(len(start), groups)
    found: list[Run | None] = [None] * groups
    for group, recording in enumerate(folders):
        mine = settings | ({} if groups == 1 else {"groups": groups, "group": group})
        begins = start[places[group]] if known else None
        found[group] = recording.read(mine, begins, course.target, course.kernel)
    if all(run is not None for run in found):
        return [run for run in found if run is not None]
    state = course.kernel.init(course.target, start)
    rngs = [rng] if groups == 1 else rng.spawn(groups)
    return [
        begin(course, own, type(state)._make(part[place] for part in state)) if run is None else run
        for run, own, place in zip(found, rngs, places, strict=True)
    ]


def _sample(
    marks: list[Mark],
    course: Course,
    cores: int | None,
    folders: Sequence[Recording],
    bar: tqdm,
) -> None:
    """Sample until all groups have their draws; every step ends with a mark."""
    left = behind(course, _runs(marks))
    count = min(len(left), usable() if cores is None else cores)
    began, steps = time.monotonic(), sum(mark.run.steps for mark in marks)
    while left:
        if count > 1 and (cores is not None or _pays(marks, course, began, steps)):
            try:
                with Processes(course, count) as processes:
                    return _sample_there(marks, course, processes, folders, bar)
            except NotSent as error:
                _stay(error, cores)
                count = 1
        marks[left[0]] = Mark.of(advance(course, marks[left[0]].run))
        _show(marks, course, folders, bar)
        left = behind(course, _runs(marks))
    return None


def _sample_there(
    marks: list[Mark],
    course: Course,
    processes: Processes,
    folders: Sequence[Recording],
    bar: tqdm,
) -> None:
    """Sample in processes: of the groups that nobody works on, first the one that is behind."""
    away: set[int] = set()
    while left := behind(course, _runs(marks)):
        for group in [group for group in left if group not in away][: len(processes.idle)]:
            run = marks[group].run
            wanted = course.draws - len(run.infos)
            processes.send(Task(group, run._replace(kept=[], infos=[]), wanted))
            away.add(group)
        group, found = processes.receive()
        away.remove(group)
        before = marks[group].run
        marks[group] = Mark.of(
            found._replace(kept=before.kept + found.kept, infos=before.infos + found.infos)
        )
        _show(marks, course, folders, bar)


def _pays(marks: list[Mark], course: Course, began: float, before: int) -> bool:
    """Whether what is left takes so long that processes are worth their start."""
    passed, steps = time.monotonic() - began, sum(mark.run.steps for mark in marks)
    if passed < TRIED or steps == before:
        return False
    return passed / (steps - before) * (len(marks) * course.steps - steps) > PAYS


def _stay(error: NotSent, cores: int | None) -> None:
    """Say why a run stays on one core; if more were asked for, refuse."""
    why = (
        f"other processes cannot have the target or the kernel ({error}): they import what it is "
        "made of, so define it in a module, not in a script, notebook or lambda"
    )
    if cores is not None:
        raise ValueError(f"cores={cores}: {why}; or use cores=1, for the same draws") from None
    warnings.warn(
        f"sampling goes on on one core: {why}. cores=1 gives the same draws without this warning",
        UserWarning,
        stacklevel=5,
    )


def _runs(marks: Sequence[Mark]) -> list[Run]:
    return [mark.run for mark in marks]


def _done(marks: Sequence[Mark], course: Course) -> int:
    """Return steps of the warm-up and draws made so far, the mean over groups, rounded down."""
    return sum(mark.run.done(course.warm_up) for mark in marks) // len(marks)


def _show(marks: list[Mark], course: Course, folders: Sequence[Recording], bar: tqdm) -> None:
    """Move the bar, and write what is due."""
    bar.update(_done(marks, course) - bar.n)
    if folders and folders[0].due():
        _store(folders, _runs(marks), 6)


def _store(folders: Sequence[Recording], runs: Sequence[Run], stacklevel: int) -> bool:
    """Write the checkpoint; of a disk that is full say so, and go on, with the draws in memory."""
    try:
        for recording, run in zip(folders, runs, strict=bool(folders)):
            recording.write(run)
    except OSError as error:
        warnings.warn(
            f"the checkpoint could not be written: {error}. It stays as it was written before; "
            "the draws are not lost, and are returned",
            UserWarning,
            stacklevel=stacklevel,
        )
        return False
    return True


def _result(runs: Sequence[Run], course: Course, layout: Layout, finished: bool) -> Draws:
    """Put the groups side by side, as far as all of them have come."""
    count = min(course.draws, min(len(run.kept) for run in runs))
    parts: list[dict[str, Array]] = []
    for run in runs:
        kept, infos = run.kept[:count], run.infos[:count]
        chains, size = run.state.position.shape
        dtype = run.state.position.dtype
        positions = np.array([s.position for s in kept], dtype).reshape(-1, chains, size)
        density = np.array([s.log_density for s in kept]).reshape(-1, chains)
        parts.append({"positions": positions, "log_density": density})
        for name in STATISTICS:
            values = np.array([getattr(info, name) for info in infos]).reshape(-1, chains)
            parts[-1][name] = values
    whole = {name: np.concatenate([part[name] for part in parts], axis=1) for name in parts[0]}
    kernel, *others = (
        course.kernel if run.adaptation is None else run.adaptation.kernel for run in runs
    )
    found = Draws(
        whole.pop("positions"),
        whole.pop("log_density"),
        whole,
        kernel,
        course.target,
        layout,
        min(course.warm_up, min(run.steps for run in runs)),
        sum(run.harmless for run in runs),
        finished,
        tuple(others),
    )
    if found.divergences > MOST_DIVERGENT * found.log_density.size:
        warnings.warn(
            f"{found.divergences} divergent transitions among {found.log_density.size} draws: the "
            "posterior has narrow places that the chains do not reach, and expectations are biased "
            "even where R-hat is 1. Raise target_accept (0.9, 0.95, 0.99), or use another prior or "
            "hyperprior",
            UserWarning,
            stacklevel=4,
        )
    _warn_of_bias(found)
    return found


def _warn_of_bias(found: Draws) -> None:
    """Say how biased draws are whose kernel rejects nothing, if by more than it should be."""
    if found.expected_bias > MOST_BIAS:
        warnings.warn(
            f"{type(found.kernel).__name__} is not adjusted, and its steps are large here: "
            f"variances are off by about {100 * found.expected_bias:.2g} % if the posterior is a "
            "Gaussian (D50), more if it is far from one, and means may be off too. Give it a "
            "longer warm-up or a smaller energy_variance, or use sampler='mams', which has no bias",
            UserWarning,
            stacklevel=5,
        )
