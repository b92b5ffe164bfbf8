"""Members of a deep ensemble, as starting points for the chains of a sampler.

Draws from the prior lie far from the bulk of the posterior: chains that start there spend their
warm-up on the way. A member of a deep ensemble (Lakshminarayanan et al. 2017), a network trained
to MAP from its own random initial weights, lies in one of the modes. R-hat needs starts that are
far apart, as the members are: only then does agreement of the chains show convergence.

Members that are anchored, each to targets with noise of its own and to its own draw of the prior,
are draws of the posterior where the model is linear and Gaussian (D78).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import log
from typing import Any

import numpy as np
from numpy.random import Generator

from ..gradients.reparameterised import Reparameterised
from ..model.joint import Model
from ..model.objectives import MAP
from ..numeric.buffers import Buffers
from ..numeric.layout import Array, Params
from ..numeric.validation import (
    ANY_NUMBERS,
    DTYPE,
    SAMPLES,
    InstanceOf,
    check_generator,
    flag,
)
from ..parts.likelihoods import GaussianLikelihood, HeteroscedasticLikelihood
from ..parts.posteriors import PointMass
from ..parts.priors import GaussianPrior, LayerwiseGaussianPrior, Prior
from .loop import fit, start
from .optimizers import Adam, Cosine
from .recipe import INITIAL_SD, Recipe
from .schedules import schedule_for

__all__ = ["ensemble_starts"]

LOG_2 = log(2.0)
# Standard deviation of the weights with which the raw scale of the noise begins
NOISE_HEAD_SD = 0.01
# Smallest noise, in units of y as in training, with which chains begin
MIN_START_NOISE = 0.03


def ensemble_starts(
    model: Model,
    x: Any,
    y: Any,
    chains: int = 4,
    *,
    anchored: bool = False,
    sample_weight: Any = None,
    seed: Any = None,
    recipe: Recipe | None = None,
    dtype: Any = "float64",
    progress: bool | None = None,
) -> Array:
    """Train a deep ensemble and return its members as starts for `sample`.

    Scales that the prior learns are fixed at their initial values in `model`, and the chains start
    there: the joint density of weights and their scale has no maximum. Members of a model with a
    `HeteroscedasticLikelihood` that has a learned factor are trained with constant noise.

    Parameters
    ----------
    model : Model
        Network, prior and likelihood; as for `sample`.
    x : array-like (N, d_in)
        Inputs.
    y : array-like (N, K)
        Targets.
    chains : int
        Number of members, one for each chain.
    anchored : bool
        Whether each member is trained to targets with added noise and to a prior around its own
        draw from the prior (randomised MAP). Needs a Gaussian prior and Gaussian noise whose scales
        are fixed. If the model is linear, the members are independent draws of the posterior (D78).
    sample_weight : array-like (N,), optional
        Factor of each row's log likelihood, >= 0. By default 1 for every row.
    seed : int or numpy.random.Generator, optional
        Seed or generator from which one generator is spawned for each member.
    recipe : Recipe, optional
        Settings with which each member is trained. By default Adam, with a learning rate that falls
        to 0 along a cosine, and the schedule of the inference *ensemble* in
        `training.schedules.SCHEDULES`.
    dtype : {'float64', 'float32'}
        Dtype of the weights and of the training.
    progress : bool, optional
        Whether to show a progress bar. By default only in a terminal or notebook.

    Returns
    -------
    ndarray (chains, D)
        Weights and learned parameters, in the order of `LogJoint.layout`.

    Raises
    ------
    ValueError
        If `anchored` members are asked of a model with another prior or likelihood.
    NonFiniteError
        If the training of a member diverges.
    KeyboardInterrupt
        After Ctrl-C.

    Examples
    --------
    >>> from bbb_numpy import GaussianLikelihood, GaussianPrior, MLP, Model, sample
    >>> from bbb_numpy.training.ensembles import ensemble_starts
    >>> x = np.linspace(-1, 1, 20)[:, None]
    >>> model = Model(MLP((1, 5, 1), "tanh"), GaussianPrior(), GaussianLikelihood(0.3, learn=True))
    >>> y = np.sin(3 * x)
    >>> starts = ensemble_starts(model, x, y, chains=2, seed=0)
    >>> starts.shape
    (2, 17)
    >>> draws = sample(model, x, y, start=starts, chains=2, draws=5, warm_up=20, seed=0)
    """
    InstanceOf(Model)("model", model)
    chains = SAMPLES("chains", chains)
    if flag("anchored", anchored):
        _check_fixed_gaussians(model)
    dtype = DTYPE("dtype", dtype)
    x = np.asarray(ANY_NUMBERS("x", x), dtype)
    y = np.asarray(ANY_NUMBERS("y", y), dtype)
    if recipe is None:
        n_rows = max(1, len(np.atleast_1d(x)))  # `fit` refuses data without rows
        schedule = schedule_for("any", "ensemble", n_rows)
        assert schedule.learning_rate is not None
        optimizer = Adam(schedule.learning_rate, schedule=Cosine())
        recipe = Recipe(
            optimizer, epochs=schedule.epochs, batch_size=schedule.batch_size
        )
    InstanceOf(Recipe)("recipe", recipe)
    constant = _with_constant_noise(model)
    prior: Any = constant.prior
    learned_scales: Array = np.zeros(0, dtype)
    if getattr(prior, "learn", False):
        learned_scales = prior.init(dtype)
        prior = replace(prior, learn=False)
    member = Reparameterised(
        replace(constant, prior=prior), PointMass(INITIAL_SD), MAP()
    )
    n_weights = constant.layout.size
    starts = []
    for rng in check_generator(seed, "seed").spawn(chains):
        targets = y
        if anchored:
            targets = _with_noise(model, y, sample_weight, rng)
            member = replace(member, model=_with_anchor(model, rng))
        init = start(member, rng, recipe.optimizer, dtype)
        options: Any = {"sample_weight": sample_weight, "progress": progress}
        trained = fit(member, init, x, targets, recipe, rng=rng, **options)
        # a member that is not fully trained would be a poor start
        if trained.stopped == "interrupted":
            raise KeyboardInterrupt
        weights, learned = np.split(trained.theta, [n_weights])
        if constant is not model:
            weights, learned = _with_noise_head(model, constant, weights, learned, rng)
        starts.append(np.concatenate([weights, learned_scales, learned]))
    return np.stack(starts)


@dataclass(frozen=True)
class _AnchoredPrior(Prior):
    """A prior that is moved by `shift`: its centre is a draw of its own (D78)."""

    prior: Any
    shift: Array  # (P,)

    def log_density(
        self, params: Params, w: Array, buffers: Buffers
    ) -> tuple[Array, Any]:
        """Return the log density of `prior` at w - shift, (S,) in nats.

        Parameters
        ----------
        params : Params
            Learned numbers of the prior: none.
        w : ndarray (S, P)
            Weights.
        buffers : Buffers
            Where the arrays of the computation are stored.
        """
        shifted = w - self.shift.astype(w.dtype)  # |w - s eps'|^2 / (2 s^2) (D78)
        return self.prior.log_density(params, shifted, buffers)

    def add_vjp(
        self, saved: Any, cotangent: Array, d_w: Array, d_params: Params
    ) -> None:
        """Add the gradient of `prior`'s log density to `d_w`.

        Parameters
        ----------
        saved : Any
            What `log_density` returned for the backward pass.
        cotangent : ndarray (S,)
            Derivative for the log density of each sample.
        d_w : ndarray (S, P)
            Derivative for the weights, which is added to.
        d_params : Params
            Derivatives for the learned numbers of the prior: none.
        """
        self.prior.add_vjp(saved, cotangent, d_w, d_params)


def _check_fixed_gaussians(model: Model) -> None:
    """Raise ValueError unless prior and noise are Gaussian and their scales fixed."""
    prior: Any = model.prior
    likelihood: Any = model.likelihood
    if not isinstance(prior, GaussianPrior | LayerwiseGaussianPrior) or prior.learn:
        raise ValueError(
            "anchored members need a GaussianPrior or LayerwiseGaussianPrior whose scale is "
            f"fixed; got {prior}"
        )
    if not isinstance(likelihood, GaussianLikelihood) or likelihood.learn:
        raise ValueError(
            "anchored members need a GaussianLikelihood whose scale is fixed; "
            f"got {likelihood}"
        )


def _with_anchor(model: Model, rng: Generator) -> Model:
    """Return `model` with its prior around a draw from that prior."""
    prior: Any = model.prior
    draw = prior.draw(rng, {}, (1, model.layout.size))[0]
    centre = getattr(prior, "centre", 0.0)
    return replace(model, prior=_AnchoredPrior(prior, draw - centre))


def _with_noise(model: Model, y: Array, sample_weight: Any, rng: Generator) -> Array:
    """Return targets with added noise of the likelihood, whose variance a row's weight divides."""
    noise = model.likelihood.draw(rng, {}, y[None])[0] - y
    if sample_weight is not None:
        weights = np.asarray(sample_weight, y.dtype)
        used = np.where(weights > 0, weights, 1)  # other rows are not trained on
        noise /= np.sqrt(used).reshape(-1, 1)
    return y + noise


def _with_constant_noise(model: Model) -> Model:
    """Return `model` with constant noise in place of noise that depends on x and has a factor.

    A member whose noise is free from the first step explains rows as noise that it could fit, and
    stays there. Other models are returned as they are.
    """
    likelihood = model.likelihood
    if not (isinstance(likelihood, HeteroscedasticLikelihood) and likelihood.learn):
        return model
    prior: Any = model.prior
    sizes = (*model.network.sizes[:-1], model.outputs)
    changes: dict[str, Any] = {}
    if getattr(prior, "sizes", None) is not None:
        changes["sizes"] = None
    if getattr(prior, "output_scales", None) is not None:
        changes["output_scales"] = prior.output_scales[: model.outputs]
    if changes:
        prior = replace(prior, **changes)
    noise = GaussianLikelihood(likelihood.scale * LOG_2, learn=True)
    return Model(replace(model.network, sizes=sizes), prior, noise)


def _with_noise_head(
    model: Model, constant: Model, weights: Array, log_noise: Array, rng: Generator
) -> tuple[Array, Array]:
    """Return the weights and log noise factors of `model`, whose noise is almost constant.

    Parameters
    ----------
    model : Model
        Model whose noise depends on x.
    constant : Model
        The same with constant noise, from `_with_constant_noise`.
    weights : ndarray (P,)
        Weights of `constant`.
    log_noise : ndarray (K,)
        Log standard deviations of its noise.
    rng : numpy.random.Generator
        Draws the small weights of the raw scales.
    """
    flat = np.zeros(model.layout.size, weights.dtype)
    of_constant = constant.layout.views(weights)
    for name, block in model.layout.views(flat).items():
        known = of_constant[name]
        if (
            block.shape != known.shape
        ):  # the last layer, whose first K columns are the means
            block[...] = NOISE_HEAD_SD * rng.standard_normal(block.shape)
            block[..., : known.shape[-1]] = known
        else:
            block[...] = known
    noise = np.maximum(np.exp(log_noise), MIN_START_NOISE)
    return flat, np.log(noise / LOG_2)  # sigma = s softplus(0) = s log 2 (D68)
