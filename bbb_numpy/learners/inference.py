"""The learners' argument `inference`: what stands for the posterior, and how it is found."""

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
    ISOTROPIC,
    FittedPosterior,
    LaplaceApproximation,
    Method,
    NaturalGradient,
    PointEstimate,
    Problem,
    Variational,
)
from .state import FittedState

__all__ = ["STARTS", "Sampling", "can_train_on", "inferences", "method_for", "sampled"]

NOISE = {"log_noise": HalfCauchy(1.0)}
STARTS = ("prior", "ensemble")
# What a name stands for here: the settings of the UCI study (`bbb_studies.uci`). Little noise asks
# for short steps: at paths of full length the 277 rows of yacht took 974,000 gradients, here 13,000
STEPS = 100  # leapfrog steps of a path, at most
KERNELS: dict[str, Kernel] = {
    "hmc": HMC(path=1.0, max_steps=STEPS),
    "chees": ChEES(path=1.0, max_steps=STEPS),
    "nuts": NUTS(max_depth=5),
    "mams": MAMS(max_steps=STEPS),
    "mclmc": MCLMC(max_steps=STEPS),
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
        E.g. ``NUTS(max_depth=8)`` of `bbb_numpy.sampling.mcmc`. Names stand for kernels with paths
        of at most 100 leapfrog steps, such as ``HMC(path=1.0, max_steps=100)``.
    chains, draws, warm_up, thin, metric, target_accept, groups, cores
        As of `bbb_numpy.sampling.run.sample`; chains are two at least, or convergence cannot be
        judged.
    hyperpriors : dict of str to LogNormal, HalfNormal or HalfCauchy, optional
        Of the scales that prior and likelihood learn, by block. By default the noise
        ("log_noise") gets ``HalfCauchy(1.0)``, with ``standardize=True`` in units of the
        standardised target, and every other number ``LogNormal()`` around its starting value.
    start : {'prior', 'ensemble'}
        Where the chains begin: at draws from the prior, or at the members of a deep ensemble
        that is trained first (`bbb_numpy.training.ensembles.ensemble_starts`).
    checkpoint : path, optional
        A folder, to which the run is written every minute. The same `fit`, with a whole number as
        `random_state`, goes on from there, on the same machine bit for bit. A folder belongs to
        one fit: leave it out in cross-validation, which makes many. A saved model does not hold it.

    Notes
    -----
    The fields are parameters of the learner for a grid search, ``{"inference__metric": ["diagonal",
    "dense"]}``; it takes whole objects as well, ``{"inference": [Sampling("nuts"), "map"]}``. They
    are checked when the object is made; names, and all together with the data, by `fit` before it
    trains.
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
    can_train_on: ClassVar[bool] = False
    unused: ClassVar[tuple[str, ...]] = tuple(
        name for name in TRAINING_ARGUMENTS if name != "warm_start"
    )
    does: ClassVar[str] = "draws from the posterior and trains nothing"
    defaults: ClassVar[Mapping[str, Mapping[str, Any]]] = dict.fromkeys(
        DEFAULTS, dict.fromkeys(TRAINING_ARGUMENTS)
    )

    def __post_init__(self) -> None:
        check_fields(self, **SETTINGS)
        check_fields(self, sampler=_sampler, chains=SAMPLES, start=OneOf(*STARTS))
        check_fields(self, groups=Optional(COUNT), hyperpriors=Optional(_hyperpriors))

    def rotates_inputs(self, prior: Prior) -> bool:
        """Whether collinear inputs are rotated, which shortens the chains' way (D60)."""
        return isinstance(prior, ISOTROPIC)

    def check(self, params: Mapping[str, Any], parts: Mapping[str, Any]) -> None:
        """Refuse a run on disk that the same call would not find again."""
        super().check(params, parts)
        seed = params["random_state"]
        if self.checkpoint is not None and not isinstance(seed, Integral):
            raise ValueError(
                "random_state must be a whole number with Sampling(checkpoint=...): without, the "
                f"same call begins another run, which cannot go on from there; got {seed!r}"
            )

    def build(self, model: Model, parts: Mapping[str, Any]) -> DrawnWeights:
        """Return the model, of whose posterior the weights will be drawn."""
        return DrawnWeights(model)

    def fit(
        self, problem: Problem, rng: Generator, progress: bool | None
    ) -> FittedPosterior:
        """Draw from the posterior.

        Raises
        ------
        KeyboardInterrupt
            After Ctrl-C before the first draw; later, the draws so far are returned.
        """
        return self._sampled(problem, None, rng, progress)

    def resume(
        self,
        problem: Problem,
        before: FittedState,
        rng: Generator,
        progress: bool | None,
    ) -> FittedPosterior:
        """Draw from the posterior on, after the draws that there are."""
        return self._sampled(problem, before.draws_, rng, progress)

    def _sampled(
        self,
        problem: Problem,
        before: Draws | None,
        rng: Generator,
        progress: bool | None,
    ) -> FittedPosterior:
        """Draw, after the draws `before` if there are any.

        The sampler gets a whole number as its seed: from the state of a generator a checkpoint
        could not tell whether it is that of the run on disk. The draws are the same either way.
        """
        x, y, weights = problem.training
        model = problem.source.model
        common: dict[str, Any] = {
            "sample_weight": weights,
            "dtype": problem.dtype,
            "progress": progress,
        }
        settings = {name: getattr(self, name) for name in SETTING_NAMES}
        kernel = check_sampler(self.sampler)
        if isinstance(self.sampler, str):
            kernel = KERNELS.get(self.sampler, kernel)
            settings["sampler"] = kernel
        noise = {name: NOISE[name] for name, _ in model.learned() if name in NOISE}
        settings["hyperpriors"] = noise | check_hyperpriors(self.hyperpriors)
        # one whole number of four random words, as `check_generator` takes it
        words = rng.integers(2**32, size=4).tolist()
        seed = sum(word << 32 * place for place, word in enumerate(words))
        if before is not None:
            if type(kernel) is not type(before.kernel):
                raise ValueError(
                    f"inference: the chains were moved by {type(before.kernel).__name__}, and go "
                    f"on so; got {self.sampler!r}. Set warm_start=False to begin anew"
                )
            settings["start"] = before
        elif settings.pop("start") == "ensemble":
            own_rng = np.random.default_rng(
                [seed, 1]
            )  # another than that of the chains
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


def sampled() -> tuple[str, ...]:
    """Return the samplers that `inference` can name: all but the random walk."""
    return tuple(name for name in SAMPLERS if name != "mh")


def inferences() -> dict[str, Any]:
    """Return what `inference` can name, and what each name stands for."""
    return _inferences(len(REGISTERED))


@cache
def _inferences(n_registered: int) -> dict[str, Any]:
    """Return the same, made anew after a name has been registered."""
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
    return trained | {name: Sampling(name) for name in sampled()}


# Methods of what is no posterior that is trained by a bound
METHODS: dict[type, Callable[[Any], Method]] = {
    PointMass: PointEstimate,
    Laplace: LaplaceApproximation,
    Sampling: lambda sampling: sampling,
}
# Names that say more than the object that they stand for
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


def can_train_on(inference: Any) -> bool:
    """Whether what this value of `inference` leaves can be trained further by `partial_fit`."""
    part = inferences().get(inference) if isinstance(inference, str) else inference
    return method_for(inference, part).can_train_on
