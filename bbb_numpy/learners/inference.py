"""The learners' argument `inference`: what stands for the posterior, and how it is found."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..gradients.catalogue import POSTERIORS
from ..model.joint import Model
from ..numeric.validation import (
    MOST_STEPS,
    SAMPLES,
    OneOf,
    Optional,
    check_fields,
    proper_fraction,
    whole,
)
from ..parts.hyperpriors import HalfCauchy, Hyperprior, check_hyperpriors
from ..parts.posteriors import PointMass
from ..sampling.draws import Draws
from ..sampling.run import METRICS, check_cores, check_sampler, sample
from ..training.ensembles import ensemble_starts

__all__ = ["INFERENCES", "SAMPLED", "STARTS", "Sampling", "is_sampled"]

Array = NDArray[Any]
NOISE = {"log_noise": HalfCauchy(1.0)}
STARTS = ("prior", "ensemble")


@dataclass(frozen=True)
class Sampling:
    """How a learner samples its posterior: ``inference=Sampling("nuts", chains=8)``.

    Parameters
    ----------
    sampler : {'hmc', 'nuts', 'chees', 'mams', 'mclmc', 'mh'} or kernel
        E.g. ``NUTS(max_depth=8)`` of `bbb_numpy.sampling.mcmc`. 'mclmc' rejects nothing: its
        draws are biased, by what `Draws.expected_bias` says.
    chains : int
        S, run side by side in groups. Two at least, or convergence cannot be judged, and "chees"
        refuses.
    draws : int
        To keep of each chain.
    warm_up : int, optional
        Draws before them, from which step size and metric are learned; by default 4000 for "hmc",
        "chees" and "mh", whose steps are short, and else 500.
    thin : int
        Steps per kept draw.
    metric : {'diagonal', 'dense'}
        Mass matrix that the warm-up learns.
    target_accept : float, optional
        Wanted mean acceptance in the warm-up, > 0 and < 1; nearer to 1 against divergences.
    hyperpriors : dict of str to LogNormal, HalfNormal or HalfCauchy, optional
        Of the scales that prior and likelihood learn, by block. By default the noise
        ("log_noise") gets ``HalfCauchy(1.0)``, with ``standardize=True`` in units of the
        standardised target, and every other number ``LogNormal()`` around its starting value.
    start : {'prior', 'ensemble'}
        Where the chains begin: at draws from the prior, or at the members of a deep ensemble
        that is trained first (`bbb_numpy.training.ensembles.ensemble_starts`).
    groups : int, optional
        Chains of a group learn step size and metric from each other; by default pairs, and at
        most four groups, where rows times weights are 100,000 or more, else one.
    cores : int, optional
        On how many cores the groups run; by default all that the machine has, as soon as the run
        is seen to last seconds. The draws are the same for any number, bit for bit.
    checkpoint : path, optional
        A folder, to which the run is written every minute. The same `fit` goes on from there,
        on the same machine bit for bit; it needs a whole number as `random_state`, and refuses
        the folder of another one. A folder belongs to one fit: leave it out in cross-validation,
        which makes many.

    Raises
    ------
    TypeError, ValueError
        Naming the argument, what was given and what is accepted.

    Notes
    -----
    The fields are parameters of the learner for a grid search, ``{"inference__metric": ["diagonal",
    "dense"]}``; it takes whole objects as well, ``{"inference": [Sampling("nuts"), "map"]}``.
    """

    sampler: Any = "hmc"
    chains: int = 4
    draws: int = 500
    warm_up: int | None = None
    thin: int = 1
    metric: str = "diagonal"
    target_accept: float | None = None
    hyperpriors: Mapping[str, Hyperprior] | None = None
    start: str = "prior"
    groups: int | None = None
    cores: int | None = None
    checkpoint: str | os.PathLike[str] | None = None

    def __post_init__(self) -> None:
        check_sampler(self.sampler)
        steps = partial(whole, most=MOST_STEPS)
        check_fields(
            self,
            chains=SAMPLES,
            draws=partial(steps, least=1),
            warm_up=Optional(partial(steps, least=0)),
            thin=partial(steps, least=1),
            metric=OneOf(*METRICS),
            start=OneOf(*STARTS),
        )
        if self.groups is not None:
            object.__setattr__(self, "groups", whole("groups", self.groups, 1, self.chains))
        object.__setattr__(self, "cores", check_cores("cores", self.cores))
        if self.target_accept is not None:
            proper_fraction("target_accept", self.target_accept, low=1e-9)
        check_hyperpriors(self.hyperpriors)
        wanted = "checkpoint must be None or the path of a folder"
        if not isinstance(self.checkpoint, str | os.PathLike | None):
            raise TypeError(f"{wanted}; got {self.checkpoint!r}")
        if self.checkpoint is not None and not os.fspath(self.checkpoint):
            raise ValueError(f"{wanted}; got {self.checkpoint!r}")

    def run(
        self, model: Model, x: Array, y: Array, seed: Any, dtype: Any, progress: bool | None
    ) -> Draws:
        """Draw from the posterior of `model` given `x` (N, d_in) and `y` (N, K).

        A checkpoint is told the `seed` as a whole number: of a generator it could not know
        whether it is that of the run on disk. The draws are the same either way.

        Raises
        ------
        KeyboardInterrupt
            After Ctrl-C before the first draw; later, the draws so far are returned.
        """
        learned = [name for name, _ in model.learned()]
        noise = {name: one for name, one in NOISE.items() if name in learned}
        known = self.checkpoint is not None or self.start == "ensemble"
        if known and isinstance(seed, np.random.Generator):
            words = seed.integers(2**32, size=4).tolist()  # as `check_generator` seeds from it
            seed = sum(word << 32 * place for place, word in enumerate(words))
        start = None
        if self.start == "ensemble":
            rng = np.random.default_rng(None if seed is None else [seed, 1])  # another than chains'
            start = ensemble_starts(
                model, x, y, self.chains, seed=rng, dtype=dtype, progress=progress
            )
        draws = sample(
            model,
            x,
            y,
            sampler=self.sampler,
            chains=self.chains,
            draws=self.draws,
            warm_up=self.warm_up,
            thin=self.thin,
            metric=self.metric,
            target_accept=self.target_accept,
            hyperpriors=noise | check_hyperpriors(self.hyperpriors),
            start=start,
            groups=self.groups,
            cores=self.cores,
            checkpoint=None if self.checkpoint is None else os.fspath(self.checkpoint),
            seed=seed,
            dtype=dtype,
            progress=progress,
        )
        if not len(draws.positions):
            raise KeyboardInterrupt("sampling was interrupted before the first draw")
        target: Any = draws.target
        return replace(draws, target=replace(target))  # without its buffers


SAMPLED = ("hmc", "chees", "nuts", "mams", "mclmc")
INFERENCES: dict[str, Any] = {
    name: one for name, one in POSTERIORS.items() if not isinstance(one, PointMass)
}
INFERENCES |= {"map": PointMass(), "mle": PointMass()}
INFERENCES |= {name: Sampling(name) for name in SAMPLED}


def is_sampled(inference: Any) -> bool:
    """Whether this value of `inference` means sampling."""
    return isinstance(inference, Sampling) or (isinstance(inference, str) and inference in SAMPLED)
