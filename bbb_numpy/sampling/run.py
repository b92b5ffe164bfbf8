"""Sample a posterior: warm-up, several chains, progress, interruption and resumption."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..model.joint import Model
from ..model.log_joint import LogJoint
from ..numeric.accepting import DTYPE, Optional
from ..numeric.arguments import MOST_SAMPLES, MOST_STEPS, flag, fraction, whole
from ..numeric.layout import Layout
from ..numeric.randomness import check_generator
from ..parts.hyperpriors import Hyperprior, check_hyperpriors
from ..progress import tqdm
from . import mcmc
from .draws import STATISTICS, Draws
from .mcmc import HMC, NUTS, Kernel, MetropolisHastings, State, Target
from .resuming import Recording, Run

__all__ = ["METRICS", "SAMPLERS", "Draws", "check_sampler", "sample", "sample_target"]

Array = NDArray[Any]
METRICS = ("diagonal", "dense")
OPTIONS = (
    "sampler",
    "draws",
    "warm_up",
    "thin",
    "metric",
    "target_accept",
    "progress",
    "checkpoint",
    "checkpoint_every",
)
SAMPLERS: dict[str, Kernel] = {"nuts": NUTS(), "hmc": HMC(), "mh": MetropolisHastings()}


def check_sampler(sampler: Any) -> Kernel:
    """Return a kernel, given itself or its short name.

    Raises
    ------
    TypeError, ValueError
        For anything else; the message says what is accepted.
    """
    accepted = f"one of {', '.join(map(repr, SAMPLERS))} or a kernel such as NUTS(max_depth=8)"
    if isinstance(sampler, str):
        if sampler not in SAMPLERS:
            raise ValueError(f"sampler must be {accepted}; got {sampler!r}")
        return SAMPLERS[sampler]
    if isinstance(sampler, type) or not (hasattr(sampler, "init") and hasattr(sampler, "step")):
        raise TypeError(f"sampler must be {accepted}; got {sampler!r}")
    kernel: Kernel = sampler
    return kernel


def sample(
    model: Model,
    x: Any,
    y: Any,
    *,
    chains: int = 4,
    hyperpriors: Mapping[str, Hyperprior] | None = None,
    start: Array | None = None,
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
    chains : int
        S, run side by side in one array. Two at least, or convergence cannot be judged.
    hyperpriors : dict of str to LogNormal, HalfNormal or HalfCauchy, optional
        Of the learned scales, by block; see `LogJoint`.
    start : ndarray (S, D), optional
        Where the chains begin; by default at draws from the prior.
    seed : None, int, numpy.random.Generator or numpy.random.RandomState
        With a whole number the same call gives the same draws, bit for bit on the same machine
        (processor and BLAS): elsewhere the last bits differ, and with them whole trajectories.
    dtype : {'float64', 'float32'}
        Of the chains and their gradients.
    **options
        sampler, draws, warm_up, thin, metric, target_accept, progress, checkpoint and
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
    if not isinstance(model, Model):
        raise TypeError(f"model must be a Model, e.g. Model(MLP((1, 5, 1))); got {model!r}")
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
    wanted = (whole("chains", chains, 1, MOST_SAMPLES), target.layout.size)
    known = start is not None or isinstance(seed, Integral)
    if start is None:
        start = target.draw_prior(rng, wanted[0], kind)
    elif np.shape(start) != wanted:
        raise ValueError(
            f"start must have shape (chains, numbers) = {wanted}; got {np.shape(start)}"
        )
    options = {"layout": target.layout, "seed": seed, **options}
    return _run(target, np.asarray(start, kind), rng, known, **options)


def _matrix(name: str, values: Any, dtype: Any) -> Array:
    try:
        if np.iscomplexobj(values):
            raise ValueError("got complex ones")
        array = np.ascontiguousarray(values, dtype)
    except (TypeError, ValueError, OverflowError) as error:
        raise type(error)(f"{name} must be a matrix of real numbers: {error}") from None
    if array.ndim != 2 or not len(array):
        raise ValueError(f"{name} must be a matrix with at least one row; got shape {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite; it has nan or infinite entries")
    return array


def sample_target(
    target: Target,
    start: Array,
    *,
    sampler: Any = "nuts",
    draws: int = 1000,
    warm_up: int = 1000,
    thin: int = 1,
    metric: str = "diagonal",
    target_accept: float | None = None,
    seed: Any = None,
    layout: Layout | None = None,
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
    sampler : {'nuts', 'hmc', 'mh'} or kernel
    draws, warm_up, thin : int
        Draws to keep of each chain; draws before them, from which step size and metric are
        learned; steps per kept draw.
    metric : {'diagonal', 'dense'}
        What the warm-up learns. A dense one costs D^2 per step and needs more draws than D.
    target_accept : float, optional
        Wanted mean acceptance in the warm-up; by default the kernel's (0.8 for NUTS and HMC).
    seed : None, int, numpy.random.Generator or numpy.random.RandomState
    layout : Layout, optional
        Names the D numbers.
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
        For arguments that cannot be used, or a checkpoint of another run.

    Warns
    -----
    UserWarning
        After Ctrl-C, which returns the draws made so far; and when more than 1 % of the draws
        diverged: the posterior has places that the chains do not reach.
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
    sampler: Any = "nuts",
    draws: int = 1000,
    warm_up: int = 1000,
    thin: int = 1,
    metric: str = "diagonal",
    target_accept: float | None = None,
    progress: bool | None = None,
    checkpoint: str | Path | None = None,
    checkpoint_every: float = 60.0,
) -> Draws:
    """Do what `sample_target` says; `known`: whether the same call has the same `start` again."""
    kernel = check_sampler(sampler)
    Optional(flag)("progress", progress)
    draws = whole("draws", draws, 1, MOST_STEPS)
    warm_up = whole("warm_up", warm_up, 0, MOST_STEPS)
    thin = whole("thin", thin, 1, MOST_STEPS)
    if not isinstance(metric, str) or metric not in METRICS:
        raise ValueError(f"metric must be one of {', '.join(map(repr, METRICS))}; got {metric!r}")
    if target_accept is not None:
        target_accept = fraction("target_accept", target_accept)
        if target_accept == 0.0:
            raise ValueError("target_accept must be > 0 and < 1; got 0")
    try:
        start = np.array(start)
    except ValueError:  # lists of several lengths
        start = np.array("")
    if start.ndim != 2 or start.dtype not in (np.float32, np.float64):
        raise ValueError(
            "start must be a matrix (chains, numbers) of float64 or float32; got "
            f"shape {start.shape} of {start.dtype}"
        )
    if layout is None:
        layout = Layout((("position", (start.shape[1],)),))
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
    recording = None if checkpoint is None else Recording(checkpoint, checkpoint_every)
    run = (
        None
        if recording is None
        else recording.read(settings, start if known else None, target, kernel)
    )
    if run is None:
        state = kernel.init(target, start)
        adaptation = mcmc.begin(
            kernel,
            target,
            rng,
            state,
            warm_up,
            dense=metric == "dense",
            target_accept=target_accept,
        )
        run = Run(state, rng, adaptation, 0, 0, [], [])

    finished = True
    # One name for all that belongs together: Ctrl-C between two lines leaves it whole
    current = (run, run.rng.bit_generator.state, len(run.infos))
    with tqdm(
        total=warm_up + draws,
        initial=run.done(warm_up),
        unit="draw",
        leave=False,
        disable=None if progress is None else not progress,
    ) as bar:
        try:
            while len(current[0].infos) < draws:
                new = _advance(current[0], target, kernel, warm_up, thin)
                current = (new, new.rng.bit_generator.state, len(new.infos))
                bar.update()
                if recording is not None and recording.due():
                    recording.write(new)
        except KeyboardInterrupt:
            finished = False
    run, run.rng.bit_generator.state, count = current
    del run.kept[count:], run.infos[count:]
    if recording is not None:
        recording.write(run)
    if not finished:
        warnings.warn(
            f"Sampling interrupted by user after {run.steps} steps; {len(run.kept)} of {draws} "
            "draws are returned" + ("" if recording is None else "; the same call goes on"),
            UserWarning,
            stacklevel=3,
        )
    return _result(run, draws, kernel, target, layout, warm_up, finished)


def _advance(run: Run, target: Target, kernel: Kernel, warm_up: int, thin: int) -> Run:
    """Make one step of the warm-up, or one kept draw."""
    adaptation, state = run.adaptation, run.state
    using = kernel if adaptation is None else adaptation.kernel
    if run.steps < warm_up:
        state, info = using.step(target, run.rng, state)
        if adaptation is not None:
            adaptation = mcmc.update(adaptation, target, run.rng, state, info)
        harmless = run.harmless + int(info.divergent.sum())
        return run._replace(
            state=state, adaptation=adaptation, steps=run.steps + 1, harmless=harmless
        )
    gradients: Array = np.zeros(len(state.position), int)
    divergent = gradients
    for _ in range(thin):
        state, info = using.step(target, run.rng, state)
        gradients, divergent = gradients + info.gradients, divergent + info.divergent
    run.kept.append(State(state.position, state.log_density, state.gradient[:0]))
    run.infos.append(info._replace(gradients=gradients, divergent=divergent))
    return run._replace(state=state, steps=run.steps + thin)


def _result(
    run: Run,
    draws: int,
    kernel: Kernel,
    target: Target,
    layout: Layout,
    warm_up: int,
    finished: bool,
) -> Draws:
    kept, infos = run.kept[:draws], run.infos[:draws]
    chains, size = run.state.position.shape
    stats: dict[str, Array] = {
        name: np.array([getattr(info, name) for info in infos]).reshape(-1, chains)
        for name in STATISTICS
    }
    found = Draws(
        np.array([s.position for s in kept], run.state.position.dtype).reshape(-1, chains, size),
        np.array([s.log_density for s in kept]).reshape(-1, chains),
        stats,
        kernel if run.adaptation is None else run.adaptation.kernel,
        target,
        layout,
        min(run.steps, warm_up),
        run.harmless,
        finished,
    )
    if found.divergences > 0.01 * found.log_density.size:
        warnings.warn(
            f"{found.divergences} divergent transitions among {found.log_density.size} draws: the "
            "posterior has narrow places that the chains do not reach, and expectations are biased "
            "there. Raise target_accept (0.9, 0.95, 0.99), or use another prior or hyperprior",
            UserWarning,
            stacklevel=4,
        )
    return found
