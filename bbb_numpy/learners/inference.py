"""The learners' argument `inference`: its names, and the settings of sampling."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache, partial
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator

from ..model.joint import Model, Prior
from ..model.objectives import MAP, MLE
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
from .methods import (
    ISOTROPIC_PRIORS,
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

NOISE_HYPERPRIORS = {"log_noise": HalfCauchy(1.0)}  # by block
STARTS = ("prior", "ensemble")
# The settings of the UCI study (`bbb_studies.uci`), which the names of samplers stand for. Little
# noise needs short steps, and paths of full length many of them: on the 277 rows of yacht 974,000
# gradients, with this bound 13,000
MAX_LEAPFROG_STEPS = 100  # per path
KERNELS: dict[str, Kernel] = {
    "hmc": HMC(path=1.0, max_steps=MAX_LEAPFROG_STEPS),
    "chees": ChEES(path=1.0, max_steps=MAX_LEAPFROG_STEPS),
    "nuts": NUTS(max_depth=5),
    "mams": MAMS(max_steps=MAX_LEAPFROG_STEPS),
    "mclmc": MCLMC(max_steps=MAX_LEAPFROG_STEPS),
}


def _sampler(name: str, value: Any) -> Any:
    """Return a kernel; a name as it is, since it may be registered later."""
    return value if isinstance(value, str) else check_sampler(value)


def _hyperpriors(name: str, value: Any) -> dict[str, Hyperprior]:
    return check_hyperpriors(value)


@dataclass(frozen=True)
class Sampling(Method):
    """How a learner samples its posterior: ``inference=Sampling("nuts", chains=8)``.

    Parameters
    ----------
    sampler : str or kernel
        One of 'chees', 'hmc', 'mams', 'mclmc', 'mh', 'nuts', 'sghmc', 'sgld'.
        Or a kernel with settings of your own, such as ``NUTS(max_depth=8)`` of
        `bbb_numpy.sampling.mcmc`. Names stand for kernels with paths of at most 100 leapfrog
        steps, such as ``HMC(path=1.0, max_steps=100)``.
    chains : int
        Number of chains, at least 2: of a single one convergence cannot be judged.
    draws : int
        Number of draws of each chain that are kept.
    warm_up : int or None
        Number of steps before the draws, from which step size and metric are learned. None is the
        default of the sampler, see `bbb_numpy.sampling.run.sample_target`.
    thin : int
        Number of steps of each kept draw.
    metric : {'diagonal', 'dense'}
        Metric that the warm-up learns.
    target_accept : float, optional
        Mean acceptance, > 0 and < 1, that the warm-up aims at. By default the sampler's.
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
        machine has.
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
        check_fields(self, **SETTINGS)
        check_fields(self, sampler=_sampler, chains=SAMPLES, start=OneOf(*STARTS))
        check_fields(self, groups=Optional(COUNT), hyperpriors=Optional(_hyperpriors))

    def rotates_inputs(self, prior: Prior) -> bool:
        """Whether collinear inputs are rotated to their principal axes under `prior` (D60)."""
        return isinstance(prior, ISOTROPIC_PRIORS)

    def check(self, params: Mapping[str, Any], parts: Mapping[str, Any]) -> None:
        """Refuse a checkpoint without a seed: the same call would be another run."""
        super().check(params, parts)
        seed = params["random_state"]
        if self.checkpoint is not None and not isinstance(seed, Integral):
            raise ValueError(
                "random_state must be a whole number with Sampling(checkpoint=...): without it the "
                "same call is another run, which cannot continue from the checkpoint; got "
                f"{seed!r}"
            )

    def build(self, model: Model, parts: Mapping[str, Any]) -> DrawnWeights:
        """Return the model with the layout of its draws; nothing of `parts` is needed."""
        return DrawnWeights(model)

    def fit(
        self, problem: Problem, rng: Generator, progress: bool | None
    ) -> FittedPosterior:
        """Draw from the posterior.

        Parameters
        ----------
        problem : Problem
            The model and its data; no recipe is needed.
        rng : numpy.random.Generator
            From which the run is seeded.
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
        """Continue the chains of an earlier fit to the same rows.

        Parameters
        ----------
        problem : Problem
            The same model and data as of the earlier fit.
        state : FittedState
            The earlier fit, whose draws come first in the result.
        rng, progress
            As of `fit`.
        """
        return self._draw(state.draws_, problem, rng, progress)

    def _draw(
        self,
        earlier_draws: Draws | None,
        problem: Problem,
        rng: Generator,
        progress: bool | None,
    ) -> FittedPosterior:
        """Draw from the posterior, and continue the chains of earlier draws if there are any.

        The sampler gets an integer as its seed, since a checkpoint could not compare the state of
        a generator with that of the run on disk. The draws are the same either way.
        """
        x, y, weights = problem.training
        model = problem.source.model
        common: dict[str, Any] = {
            "sample_weight": weights,
            "dtype": x.dtype,
            "progress": progress,
        }
        settings = {name: getattr(self, name) for name in SETTING_NAMES}
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
        # an integer of 128 random bits, from which `check_generator` seeds the same generator
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
            own_rng = np.random.default_rng([seed, 1])  # not that of the chains
            settings["start"] = lambda _: ensemble_starts(
                model, x, y, self.chains, seed=own_rng, **common
            )
        draws = sample(model, x, y, seed=seed, **settings, **common)
        if not len(draws.positions):
            raise KeyboardInterrupt("sampling was interrupted before the first draw")
        if problem.verbose:
            tqdm.write(draws.summary())
        target: Any = draws.target
        draws = replace(draws, target=replace(target))  # without its buffers
        return FittedPosterior(draws=draws)


SETTING_NAMES = tuple(setting.name for setting in fields(Sampling))


def sampler_names() -> tuple[str, ...]:
    """Return the names of the samplers that `inference` takes: all but the random walk."""
    return tuple(name for name in SAMPLERS if name != "mh")


def inferences() -> dict[str, Any]:
    """Return the names that `inference` takes, and the object that each stands for."""
    return _inferences(len(REGISTERED))


@cache
def _inferences(n_registered: int) -> dict[str, Any]:
    """Return `inferences()`; the number of registered names makes the cache forget old tables."""
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


# Methods by the class of the object; of any other class, a posterior, it is `Variational`
METHODS: dict[type, Callable[[Any], Method]] = {
    PointMass: PointEstimate,
    Laplace: LaplaceApproximation,
    Sampling: lambda sampling: sampling,
}
# Names that choose more than the object that they stand for
NAMED_METHODS: dict[str, Callable[[Any], Method]] = {
    "ivon": NaturalGradient,
    "map": partial(PointEstimate, objectives=(MAP,)),
    "mle": partial(PointEstimate, objectives=(MLE,)),
}


def method_for(inference: Any, part: Any) -> Method:
    """Return the method of inference of a learner.

    Parameters
    ----------
    inference : str or object
        The argument of the learner, as given.
    part : object
        What it stands for: the same, or the entry of `inferences` of that name.
    """
    if isinstance(inference, str) and inference in NAMED_METHODS:
        return NAMED_METHODS[inference](part)
    for part_type, method in METHODS.items():
        if isinstance(part, part_type):
            return method(part)
    return Variational(part)


def supports_partial_fit(inference: Any) -> bool:
    """Return whether `partial_fit` can continue a fit with this `inference`, a name or object."""
    part = inference
    if isinstance(inference, str):
        part = inferences().get(inference)
    return method_for(inference, part).supports_partial_fit
