"""The learners' argument `inference`: its names, the methods for them, and `Sampling`."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, fields, replace
from functools import cache, partial
from math import inf
from numbers import Integral
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.random import Generator

from ..model.joint import Model
from ..model.objectives import MAP, MLE
from ..numeric.threads import one_blas_thread
from ..numeric.validation import COUNT, SAMPLES, OneOf, Optional, check_fields
from ..parts.hyperpriors import HalfCauchy, Hyperprior, check_hyperpriors
from ..parts.posteriors import PointMass
from ..progress import tqdm
from ..registry import POSTERIORS, REGISTERED
from ..sampling.draws import DrawnWeights, Draws
from ..sampling.mcmc import HMC, MAMS, MCLMC, NUTS, ChEES, Kernel
from ..sampling.run import SAMPLERS, SETTINGS, check_sampler, sample
from ..training.ensembles import ensemble_starts
from ..training.laplace import Laplace
from .defaults import DEFAULTS, TRAINING_ARGUMENTS
from .ensemble import Ensemble
from .methods import (
    FittedPosterior,
    LaplaceApproximation,
    Method,
    NaturalGradient,
    PointEstimate,
    Problem,
    Variational,
)
from .state import FittedState

__all__ = [
    "STARTS",
    "Sampling",
    "inferences",
    "method_for",
    "sampler_names",
    "supports_partial_fit",
]

# default hyperprior of the noise scale, by name of its block in draws
NOISE_HYPERPRIORS = {"log_noise": HalfCauchy(1.0), "log_dispersion": HalfCauchy(1.0)}
# where chains may start, see `Sampling`
STARTS = ("prior", "ensemble")
# Largest number of leapfrog steps of one path, for the samplers that are given by name; the UCI
# study (`bbb_studies.uci`) has the same. A small noise scale needs short steps, so that paths of
# full length need many: 974,000 gradients on the 277 rows of yacht, but 13,000 with this limit
MAX_LEAPFROG_STEPS = 100
# Hyperprior of the constant part of the noise of chains that are the default, in standard
# deviations of y. With few rows a narrower one makes intervals too short
DEFAULT_NOISE = HalfCauchy(3.0)


class Budget(NamedTuple):
    """Numbers of steps of the chains that are the default, for a table's size.

    Parameters
    ----------
    max_products : float
        Largest number of rows times weights for which this budget applies.
    warm_up, draws : int
        Numbers of steps of each chain before the draws, and of draws.
    max_steps : int
        Largest number of leapfrog steps, of one gradient each, of a step of the chains.
    """

    max_products: float
    warm_up: int
    draws: int
    max_steps: int


BUDGETS = (
    Budget(100_000, 400, 250, 64),
    Budget(400_000, 400, 200, 48),
    Budget(1_000_000, 300, 150, 32),
    Budget(inf, 200, 100, 24),
)
KERNELS: dict[str, Kernel] = {
    "hmc": HMC(path=1.0, max_steps=MAX_LEAPFROG_STEPS),
    "chees": ChEES(path=1.0, max_steps=MAX_LEAPFROG_STEPS),
    "nuts": NUTS(max_depth=5),
    "mams": MAMS(max_steps=MAX_LEAPFROG_STEPS),
    "mclmc": MCLMC(max_steps=MAX_LEAPFROG_STEPS),
}


def _sampler(name: str, value: Any) -> Any:
    """Check and return a kernel; return a name unchanged, since it may be registered later."""
    return value if isinstance(value, str) else check_sampler(value)


def _hyperpriors(name: str, value: Any) -> dict[str, Hyperprior]:
    """Check and return `value`, a dict of hyperpriors by block; `name` is not used."""
    return check_hyperpriors(value)


@dataclass(frozen=True)
class Sampling(Method):
    """Inference by sampling with its settings, such as ``inference=Sampling("nuts", chains=8)``.

    Parameters
    ----------
    sampler : str or kernel
        One of 'chees', 'hmc', 'mams', 'mclmc', 'mh', 'nuts', 'sghmc', 'sgld'.
        Or a kernel with settings of your own, such as ``NUTS(max_depth=8)`` of
        `bbb_numpy.sampling.mcmc`. Names stand for kernels with paths of at most 100 leapfrog
        steps, such as ``HMC(path=1.0, max_steps=100)``.
    chains : int
        Number of chains. Use at least 2: convergence cannot be judged with a single one.
    draws : int
        Number of draws of each chain that are kept.
    warm_up : int or None
        Number of steps before the draws, from which step size and metric are learned. None stands
        for the default of the sampler, see `bbb_numpy.sampling.run.sample_target`.
    thin : int
        Number of steps for each draw that is kept.
    metric : {'diagonal', 'dense'}
        Metric that the warm-up learns.
    target_accept : float, optional
        Mean acceptance rate, > 0 and < 1, at which the warm-up aims. By default that of the
        sampler.
    hyperpriors : dict of str to LogNormal, HalfNormal or HalfCauchy, optional
        Priors of the scales that prior and likelihood learn, by block. By default the noise
        ("log_noise") has ``HalfCauchy(1.0)``, with ``standardize=True`` in units of the
        standardised target, and every other scale ``LogNormal()`` around its initial value.
    start : {'prior', 'ensemble'}
        Where the chains start: at draws from the prior, or at the members of a deep ensemble
        that is trained first (`bbb_numpy.training.ensembles.ensemble_starts`).
    groups : int, optional
        Number of groups of chains that are moved together. By default pairs, and at most four
        groups, where rows times weights are 100,000 or more, else one group.
    cores : int, optional
        Number of cores on which the groups run; the draws are the same. By default all that the
        machine has. With 1 no process is started, and linear algebra runs on one thread.
    dtype : {'float64', 'float32'}, optional
        Floating-point type of the chains. By default that of the learner.
    checkpoint : path, optional
        Folder to which the run is written every minute. The same `fit`, with an integer as
        `random_state`, continues from there, on the same machine bit for bit. A folder belongs to
        one fit: leave it out in cross-validation, which makes many fits. A saved model does not
        hold it.

    Notes
    -----
    The fields are parameters of the learner, for example in a grid search:
    ``{"inference__metric": ["diagonal", "dense"]}``. The search takes whole objects as well,
    ``{"inference": [Sampling("nuts"), "map"]}``. Values are checked when the object is made;
    names of samplers, and whether all settings suit the data, by `fit` before it samples.
    """

    sampler: Any = "hmc"
    chains: int = 4
    draws: int = 250
    warm_up: int | None = 400
    thin: int = 1
    metric: str = "diagonal"
    target_accept: float | None = None
    hyperpriors: Mapping[str, Hyperprior] | None = None
    start: str = "ensemble"
    groups: int | None = None
    cores: int | None = None
    dtype: str | None = None
    checkpoint: str | os.PathLike[str] | None = field(
        default=None, metadata={"local": True}
    )

    is_sampled: ClassVar[bool] = True
    supports_partial_fit: ClassVar[bool] = False
    unused_arguments: ClassVar[tuple[str, ...]] = tuple(
        name for name in TRAINING_ARGUMENTS if name != "warm_start"
    )
    unused_because: ClassVar[str] = "draws from the posterior and trains nothing"
    defaults: ClassVar[Mapping[str, Mapping[str, Any]]] = dict.fromkeys(
        DEFAULTS, dict.fromkeys(TRAINING_ARGUMENTS)
    )

    def __post_init__(self) -> None:
        """Check all fields."""
        check_fields(self, **SETTINGS)
        check_fields(self, sampler=_sampler, chains=SAMPLES, start=OneOf(*STARTS))
        check_fields(self, groups=Optional(COUNT), hyperpriors=Optional(_hyperpriors))
        check_fields(self, dtype=Optional(OneOf("float64", "float32")))

    def check(self, params: Mapping[str, Any], parts: Mapping[str, Any]) -> None:
        """Raise ValueError for a checkpoint folder if `random_state` is not an integer."""
        super().check(params, parts)
        seed = params["random_state"]
        if self.checkpoint is not None and not isinstance(seed, Integral):
            raise ValueError(
                "random_state must be a whole number with Sampling(checkpoint=...), since another "
                "seed makes another run, which cannot continue from the checkpoint; got "
                f"{seed!r}"
            )

    def build(self, model: Model, parts: Mapping[str, Any]) -> DrawnWeights:
        """Return `model` as a `DrawnWeights`, which computes predictions from draws."""
        return DrawnWeights(model)

    def fit(
        self, problem: Problem, rng: Generator, progress: bool | None
    ) -> FittedPosterior:
        """Run new chains, and return their draws from the posterior.

        Parameters
        ----------
        problem : Problem
            The model and its data; the recipe is not used.
        rng : numpy.random.Generator
            Draws the seed of the run.
        progress : bool, optional
            Whether to show a progress bar. By default only in a terminal or notebook.

        Raises
        ------
        KeyboardInterrupt
            After Ctrl-C before the first draw; later, the draws so far are returned.
        """
        return self._draw(None, problem, rng, progress)

    def resume(
        self,
        problem: Problem,
        state: FittedState,
        rng: Generator,
        progress: bool | None,
    ) -> FittedPosterior:
        """Continue the chains of an earlier fit to the same rows, and return all draws.

        Parameters
        ----------
        problem : Problem
            The same model and data as in the earlier fit.
        state : FittedState
            The earlier fit, whose draws come first in the result.
        rng, progress
            As in `fit`.
        """
        return self._draw(state.draws_, problem, rng, progress)

    def _draw(
        self,
        earlier_draws: Draws | None,
        problem: Problem,
        rng: Generator,
        progress: bool | None,
    ) -> FittedPosterior:
        """Return draws of new chains, or of continued chains if `earlier_draws` is not None.

        The sampler gets an integer as its seed, since a checkpoint could not compare the state of
        a generator with that of the run on disk. The draws are the same either way.
        """
        x, y, weights = problem.training
        model = problem.source.model
        common: dict[str, Any] = {
            "sample_weight": weights,
            "dtype": self.dtype or x.dtype,
            "progress": progress,
        }
        settings = {name: getattr(self, name) for name in SETTING_NAMES}
        del settings["dtype"]
        kernel = check_sampler(self.sampler)
        if isinstance(self.sampler, str):
            kernel = KERNELS.get(self.sampler, kernel)
            settings["sampler"] = kernel
        noise = {
            name: NOISE_HYPERPRIORS[name]
            for name, _ in model.learned()
            if name in NOISE_HYPERPRIORS
        }
        settings["hyperpriors"] = noise | check_hyperpriors(self.hyperpriors)
        # The seed is an integer of 128 random bits, by which a checkpoint recognises its run
        words = rng.integers(2**32, size=4).tolist()
        seed = sum(word << 32 * index for index, word in enumerate(words))
        if earlier_draws is not None:
            if type(kernel) is not type(earlier_draws.kernel):
                raise ValueError(
                    "inference must keep the sampler of the chains that it continues, "
                    f"{type(earlier_draws.kernel).__name__}; got {self.sampler!r}. Set "
                    "warm_start=False to start anew"
                )
            settings["start"] = earlier_draws
        elif settings.pop("start") == "ensemble":
            # The ensemble has a generator of its own, so that the chains' random numbers do not
            # depend on it
            own_rng = np.random.default_rng([seed, 1])
            settings["start"] = lambda _: ensemble_starts(
                model, x, y, self.chains, seed=own_rng, **common
            )
        # In one process, one BLAS thread: the last bits of a product depend on their number
        threads = one_blas_thread() if self.cores == 1 else nullcontext()
        with threads:
            draws = sample(model, x, y, seed=seed, **settings, **common)
        if not len(draws.positions):
            raise KeyboardInterrupt("sampling was interrupted before the first draw")
        if problem.verbose:
            tqdm.write(draws.summary())
        target: Any = draws.target
        # The target is replaced by a copy without its buffers, to free their memory
        draws = replace(draws, target=replace(target))
        return FittedPosterior(draws=draws)


def default_chains(products: int, likelihood: Any) -> Sampling:
    """Return the chains that are the default for a table: a fixed number of gradients.

    Parameters
    ----------
    products : int
        Number of training rows times weights.
    likelihood : Likelihood, str or None
        The likelihood, if it is known; text is the name of none.

    Returns
    -------
    Sampling
    """
    initial_values = getattr(likelihood, "initial_values", dict)
    learned: dict[str, float] = initial_values()
    noise = {name: DEFAULT_NOISE for name in learned if name in NOISE_HYPERPRIORS}
    budget = next(row for row in BUDGETS if products <= row.max_products)
    return Sampling(
        HMC(path=1.0, max_steps=budget.max_steps),
        draws=budget.draws,
        warm_up=budget.warm_up,
        target_accept=0.9,
        hyperpriors=noise,
        groups=1,
        cores=1,
        dtype="float32",
    )


SETTING_NAMES = tuple(setting.name for setting in fields(Sampling))


def sampler_names() -> tuple[str, ...]:
    """Return the names of samplers that `inference` accepts: all but random-walk Metropolis."""
    return tuple(name for name in SAMPLERS if name != "mh")


def inferences() -> dict[str, Any]:
    """Return the objects, by name, that the names accepted by `inference` stand for."""
    return _inferences(len(REGISTERED))


@cache
def _inferences(n_registered: int) -> dict[str, Any]:
    """Return what `inferences` returns, from a cache that is keyed by `n_registered`.

    It is the number of registered names, so that a registration makes the table anew.
    """
    trained = {
        name: posterior
        for name, posterior in POSTERIORS.items()
        if not isinstance(posterior, PointMass)
    }
    trained |= {
        "ivon": POSTERIORS["mean-field"],
        "map": PointMass(),
        "mle": PointMass(),
        "laplace": Laplace(),
    }
    return trained | {name: Sampling(name) for name in sampler_names()}


# Methods by class of the object given as `inference`; an object of any other class is the posterior
# of `Variational`
METHODS: dict[type, Callable[[Any], Method]] = {
    PointMass: PointEstimate,
    Laplace: LaplaceApproximation,
    Sampling: lambda sampling: sampling,
    Ensemble: lambda ensemble: ensemble,
}
# Methods by name, for names whose object, such as a `PointMass`, does not determine the method
NAMED_METHODS: dict[str, Callable[[Any], Method]] = {
    "ivon": NaturalGradient,
    "map": partial(PointEstimate, objectives=(MAP,)),
    "mle": partial(PointEstimate, objectives=(MLE,)),
}


def method_for(inference: Any, part: Any) -> Method:
    """Return the method of inference that a learner's argument `inference` stands for.

    Parameters
    ----------
    inference : str or object
        The argument, as the user has given it.
    part : object
        The object that the argument stands for: the entry of `inferences` for a name, else the
        argument itself.
    """
    if isinstance(inference, str) and inference in NAMED_METHODS:
        return NAMED_METHODS[inference](part)
    for part_type, method in METHODS.items():
        if isinstance(part, part_type):
            return method(part)
    return Variational(part)


def supports_partial_fit(inference: Any) -> bool:
    """Return whether `partial_fit` is available with this `inference`, a name or an object."""
    if inference is None:
        return True  # `partial_fit` trains
    part = inference
    if isinstance(inference, str):
        part = inferences().get(inference)
    return method_for(inference, part).supports_partial_fit
