"""The learners' argument `inference`: variational, by short name, or by sampling."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MethodType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..gradients.catalogue import OBJECTIVES, POSTERIORS, named
from ..model.joint import Model
from ..model.objectives import MAP, MLE
from ..numeric.arguments import real, whole
from ..parts.full_rank import FullRank
from ..parts.hyperpriors import HalfCauchy, Hyperprior, check_hyperpriors
from ..parts.posteriors import MeanField, PointMass
from ..sampling.draws import Draws
from ..sampling.run import METRICS, SAMPLERS, check_sampler, sample

__all__ = ["INFERENCES", "SAMPLED", "Sampling", "settled", "trains"]

Array = NDArray[Any]
NOISE = {"log_noise": HalfCauchy(1.0)}
# What each name makes of the posterior, and what it goes with
VARIATIONAL: dict[str, type] = {"mean-field": MeanField, "full-rank": FullRank, "map": PointMass}
SAMPLED = ("hmc", "nuts")
INFERENCES = (*VARIATIONAL, *SAMPLED)
# Arguments that only training has
TRAINING = (
    *("posterior", "estimator", "objective", "kl_weights", "warm_up"),
    *("optimizer", "early_stopping"),
)


@dataclass(frozen=True)
class Sampling:
    """How a learner samples its posterior: ``inference=Sampling("nuts", chains=8)``.

    Parameters
    ----------
    sampler : {'nuts', 'hmc', 'mh'} or kernel
        E.g. ``NUTS(max_depth=8)`` of `bbb_numpy.sampling.mcmc`.
    chains : int
        S, run side by side. Two at least, or convergence cannot be judged.
    draws, warm_up, thin : int
        Draws to keep of each chain; draws before them, from which step size and metric are
        learned; steps per kept draw.
    metric : {'diagonal', 'dense'}
        Mass matrix that the warm-up learns.
    target_accept : float, optional
        Wanted mean acceptance in the warm-up, > 0 and < 1; nearer to 1 against divergences.
    hyperpriors : dict of str to LogNormal, HalfNormal or HalfCauchy, optional
        Of the scales that prior and likelihood learn, by block. By default the noise
        ("log_noise") gets ``HalfCauchy(1.0)``, with ``standardize=True`` in units of the
        standardised target, and every other number ``LogNormal()`` around its starting value.
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
    The fields are no parameters of the learner: a grid search takes whole objects,
    ``{"inference": [Sampling("nuts"), Sampling("nuts", metric="dense")]}``.
    """

    sampler: Any = "nuts"
    chains: int = 4
    draws: int = 500
    warm_up: int = 500
    thin: int = 1
    metric: str = "diagonal"
    target_accept: float | None = None
    hyperpriors: Mapping[str, Hyperprior] | None = None
    checkpoint: str | os.PathLike[str] | None = None

    def __post_init__(self) -> None:
        check_sampler(self.sampler)
        for name, least in (("chains", 1), ("draws", 1), ("warm_up", 0), ("thin", 1)):
            object.__setattr__(self, name, whole(name, getattr(self, name), least))
        if self.metric not in METRICS:
            accepted = ", ".join(map(repr, METRICS))
            raise ValueError(f"metric must be one of {accepted}; got {self.metric!r}")
        if self.target_accept is not None:
            real("target_accept", self.target_accept, 1e-9, 1.0, "> 0 and < 1")
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
        if self.checkpoint is not None and isinstance(seed, np.random.Generator):
            words = seed.integers(2**32, size=4).tolist()  # as `check_generator` seeds from it
            seed = sum(word << 32 * place for place, word in enumerate(words))
        draws = sample(
            *(model, x, y),
            sampler=self.sampler,
            chains=self.chains,
            draws=self.draws,
            warm_up=self.warm_up,
            thin=self.thin,
            metric=self.metric,
            target_accept=self.target_accept,
            hyperpriors=noise | check_hyperpriors(self.hyperpriors),
            checkpoint=None if self.checkpoint is None else os.fspath(self.checkpoint),
            seed=seed,
            dtype=dtype,
            progress=progress,
        )
        if not len(draws.positions):
            raise KeyboardInterrupt("sampling was interrupted before the first draw")
        target: Any = draws.target
        return replace(draws, target=replace(target))  # without its buffers


def settled(params: Mapping[str, Any]) -> tuple[Sampling | None, dict[str, Any]]:
    """Return the sampling, if any, and `params` with what `inference` says of the other parts.

    Raises
    ------
    TypeError, ValueError
        If `inference` is not among what is accepted, or contradicts another argument.
    """
    inference, found = params["inference"], dict(params)
    if isinstance(inference, str):
        if inference in SAMPLERS and inference not in INFERENCES:
            raise ValueError(
                f"inference must be one of {', '.join(INFERENCES)}; got {inference!r}. For that "
                f"sampler make an object: Sampling({inference!r})"
            )
        named("inference", inference, dict.fromkeys(INFERENCES))
    elif inference is not None and not isinstance(inference, Sampling):
        given = "the class Sampling; make an object of it: Sampling()"
        if inference is not Sampling:
            given = repr(inference)
        raise TypeError(
            f"inference must be None, one of {', '.join(map(repr, INFERENCES))}, or an object "
            f"such as Sampling('nuts', chains=8); got {given}"
        )
    if is_sampled(inference):
        sampling = Sampling(inference) if isinstance(inference, str) else inference
        _refuse_training(params, sampling)
        return sampling, found

    objective, posterior = _meant(params, "objective", OBJECTIVES), params["posterior"]
    if inference is None:
        if posterior is None and isinstance(objective, MLE | MAP):
            found["posterior"] = PointMass()
        return None, found
    kind = VARIATIONAL[inference]
    meant = _meant(params, "posterior", POSTERIORS)
    if isinstance(meant, MeanField | FullRank | PointMass) and not isinstance(meant, kind):
        wanted = f"has a {kind.__name__} as its posterior"
        raise _contradiction(inference, wanted, "posterior", posterior)
    if posterior is None:
        point = kind is PointMass
        found["posterior"] = PointMass() if point else POSTERIORS[inference]
    fits = isinstance(objective, MAP) if kind is PointMass else not isinstance(objective, MLE | MAP)
    known = objective is not None and not isinstance(objective, str)
    if known and not fits:
        wanted = "has MAP() as its objective"
        if kind is not PointMass:
            wanted = "trains a distribution of the weights, not a single value of each"
        raise _contradiction(inference, wanted, "objective", params["objective"])
    return None, found


def is_sampled(inference: Any) -> bool:
    """Whether this value of `inference` means sampling."""
    return isinstance(inference, Sampling) or (isinstance(inference, str) and inference in SAMPLED)


def _meant(params: Mapping[str, Any], name: str, table: Mapping[str, Any]) -> Any:
    """Return the object that an argument names; a name that is none is refused elsewhere."""
    value = params[name]
    return table.get(value, value) if isinstance(value, str) else value


def _contradiction(inference: str, wanted: str, name: str, value: Any) -> ValueError:
    return ValueError(
        f"inference={inference!r} {wanted}, which contradicts {name}={value!r}; leave one of the "
        "two out"
    )


def _short(inference: Any) -> str:
    """Print a sampling by its sampler's name alone."""
    if not isinstance(inference, Sampling):
        return repr(inference)
    sampler = inference.sampler
    name = repr(sampler) if isinstance(sampler, str) else type(sampler).__name__
    return f"Sampling({name})"


def _refuse_training(params: Mapping[str, Any], sampling: Sampling) -> None:
    """Refuse what says nothing to a sampler, rather than ignore it."""
    given = [f"{name}={params[name]!r}" for name in TRAINING if params[name] is not None]
    fraction = params["validation_fraction"]
    if isinstance(fraction, float | int | np.number) and fraction > 0:
        given.append(f"validation_fraction={fraction!r}")
    if given:
        hint = ""
        if isinstance(params["warm_up"], int | np.integer):
            hint = f". Draws before the first kept one: Sampling(warm_up={params['warm_up']})"
        raise ValueError(
            f"inference={_short(params['inference'])} draws from the posterior and trains nothing, "
            f"so it cannot use {', '.join(given)}; leave that out, or use inference='mean-field'"
            f"{hint}"
        )
    seed = params["random_state"]
    if sampling.checkpoint is not None and not isinstance(seed, int | np.integer):
        raise ValueError(
            "random_state must be a whole number with Sampling(checkpoint=...): without, the same "
            f"call begins another run, which cannot go on from there; got {seed!r}"
        )


class trains:
    """A method that a learner has only where it trains; elsewhere `hasattr` says that it has not.

    Parameters
    ----------
    method : callable
    """

    def __init__(self, method: Callable[..., Any]) -> None:
        self.method = method

    def __get__(self, instance: Any, owner: type) -> Callable[..., Any]:
        if instance is None:
            return self.method
        if is_sampled(instance.inference):
            name, inference = self.method.__name__, _short(instance.inference)
            raise AttributeError(
                f"{owner.__name__} has no {name} with inference={inference}: draws of one "
                "posterior cannot go on to that of other rows. Call fit with all rows, or use "
                "inference='mean-field'"
            )
        return MethodType(self.method, instance)
