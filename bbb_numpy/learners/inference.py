"""The learners' argument `inference`: what stands for the posterior, and how it is found."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.random import Generator

from ..model.joint import Model
from ..numeric.validation import COUNT, SAMPLES, OneOf, Optional, check_fields
from ..parts.hyperpriors import HalfCauchy, Hyperprior, check_hyperpriors
from ..parts.posteriors import PointMass
from ..registry import POSTERIORS, REGISTERED
from ..sampling.draws import Draws
from ..sampling.mcmc import HMC, MAMS, MCLMC, NUTS, ChEES, Kernel
from ..sampling.run import SAMPLERS, SETTINGS, check_sampler, sample
from ..training.ensembles import ensemble_starts
from ..training.laplace import Laplace
from ..training.recipe import Rows

__all__ = ["STARTS", "Sampling", "begins_anew", "inferences", "sampled"]

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
class Sampling:
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

    def __post_init__(self) -> None:
        check_fields(self, **SETTINGS)
        check_fields(self, sampler=_sampler, chains=SAMPLES, start=OneOf(*STARTS))
        check_fields(self, groups=Optional(COUNT), hyperpriors=Optional(_hyperpriors))

    def run(
        self,
        model: Model,
        data: Rows,
        rng: Generator,
        dtype: Any,
        progress: Any,
        before: Draws | None = None,
    ) -> Draws:
        """Draw from the posterior of `model` given `data`, after the draws `before` if there are.

        A checkpoint is told the seed as a whole number: of a generator it could not know
        whether it is that of the run on disk. The draws are the same either way.

        Raises
        ------
        KeyboardInterrupt
            After Ctrl-C before the first draw; later, the draws so far are returned.
        """
        x, y, weights = data
        common = {"sample_weight": weights, "dtype": dtype, "progress": progress}
        settings = {one.name: getattr(self, one.name) for one in fields(self)}
        kernel = check_sampler(self.sampler)
        if isinstance(self.sampler, str):
            kernel = settings["sampler"] = KERNELS.get(self.sampler, kernel)
        noise = {name: NOISE[name] for name, _ in model.learned() if name in NOISE}
        settings["hyperpriors"] = noise | check_hyperpriors(self.hyperpriors)
        # as `check_generator` seeds from it
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
            other = np.random.default_rng([seed, 1])  # than that of the chains
            options = {"seed": other, **common}
            settings["start"] = lambda _: ensemble_starts(
                model, x, y, self.chains, **options
            )
        draws = sample(model, x, y, seed=seed, **settings, **common)
        if not len(draws.positions):
            raise KeyboardInterrupt("sampling was interrupted before the first draw")
        target: Any = draws.target
        return replace(draws, target=replace(target))  # without its buffers


def sampled() -> tuple[str, ...]:
    """Return the samplers that `inference` can name: all but the random walk."""
    return tuple(name for name in SAMPLERS if name != "mh")


def inferences() -> dict[str, Any]:
    """Return what `inference` can name, and what each name stands for."""
    return _inferences(len(REGISTERED))


@cache
def _inferences(n_registered: int) -> dict[str, Any]:
    """Return the same, made anew after a name has been registered."""
    named = {
        name: one for name, one in POSTERIORS.items() if not isinstance(one, PointMass)
    }
    named |= {"ivon": POSTERIORS["mean-field"], "map": PointMass(), "mle": PointMass()}
    return named | {"laplace": Laplace()} | {name: Sampling(name) for name in sampled()}


def begins_anew(inference: Any) -> bool:
    """Whether what this value of `inference` leaves cannot be trained further."""
    named = inferences().get(inference) if isinstance(inference, str) else inference
    return isinstance(named, Sampling | Laplace)
