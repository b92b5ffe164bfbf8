"""Members of a deep ensemble, as places where the chains of a sampler start.

Draws from the prior lie far from the posterior's mass: the chains spend the warm-up on their way.
A member of an ensemble (Lakshminarayanan et al. 2017), a network trained to MAP from a start of its
own, lies in one of the modes. That the members are far apart is what R-hat needs of starts: chains
that agree have forgotten them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..gradients.reparameterised import Reparameterised
from ..model.joint import Model
from ..model.objectives import MAP
from ..numeric.layout import Array
from ..numeric.validation import (
    ANY_NUMBERS,
    DTYPE,
    SAMPLES,
    InstanceOf,
    check_generator,
)
from ..parts.posteriors import PointMass
from .loop import fit, start
from .optimizers import Adam, Cosine
from .recipe import Recipe

__all__ = ["ensemble_starts"]

# Steps of a member, epochs at least, rows, rate. A start may be poor, but chains of many rows stay
FEW, OF_MANY, MANY = (1_500, 150, 32, 1e-2), (32_000, 1, 256, 2e-2), 4096
SPREAD = 0.3  # of the weights that training starts from


def ensemble_starts(
    model: Model,
    x: Any,
    y: Any,
    chains: int = 4,
    *,
    sample_weight: Any = None,
    seed: Any = None,
    recipe: Recipe | None = None,
    dtype: Any = "float64",
    progress: bool | None = None,
) -> Array:
    """Train a deep ensemble and return its members as starts for `sample`.

    Learned scales of the prior are held at the values that the model was made with, and start
    there: a density of weights and their scale together has no maximum.

    Parameters
    ----------
    model, x, y, sample_weight, seed, dtype, progress
        As of `sample`.
    chains : int
        Members.
    recipe : Recipe, optional
        How each is trained; by default by Adam on 32 rows, 1,500 steps and 150 epochs at least, its
        rate falling from 0.01 to 0; on more than 4,096 rows for 32,000 steps of 256, from 0.02.

    Returns
    -------
    ndarray (chains, D)
        Weights and learned numbers in the order of `LogJoint.layout`.

    Raises
    ------
    NonFiniteError
        When the training of a member diverges.

    Examples
    --------
    >>> from bbb_numpy import GaussianLikelihood, GaussianPrior, MLP, Model, sample
    >>> from bbb_numpy.training.ensembles import ensemble_starts
    >>> x = np.linspace(-1, 1, 20)[:, None]
    >>> model = Model(MLP((1, 5, 1), "tanh"), GaussianPrior(), GaussianLikelihood(0.3, learn=True))
    >>> begin = ensemble_starts(model, x, np.sin(3 * x), chains=2, seed=0)
    >>> begin.shape
    (2, 17)
    >>> draws = sample(model, x, np.sin(3 * x), start=begin, chains=2, draws=5, warm_up=20, seed=0)
    """
    InstanceOf(Model)("model", model)
    chains, kind = SAMPLES("chains", chains), DTYPE("dtype", dtype)
    x, y = np.asarray(ANY_NUMBERS("x", x), kind), np.asarray(ANY_NUMBERS("y", y), kind)
    if recipe is None:
        rows = max(1, len(np.atleast_1d(x)))  # what has no rows is refused later
        steps, epochs, batch, rate = FEW if rows <= MANY else OF_MANY
        epochs = max(epochs, steps // -(-rows // batch))
        recipe = Recipe(Adam(rate, schedule=Cosine()), epochs=epochs, batch_size=batch)
    InstanceOf(Recipe)("recipe", recipe)
    held: Any = model.prior
    if getattr(held, "learn", False):
        held = replace(held, learn=False)
    member = Reparameterised(replace(model, prior=held), PointMass(SPREAD), MAP())
    trained = []
    for rng in check_generator(seed, "seed").spawn(chains):
        begin = start(member, rng, recipe.optimizer, kind)
        options: Any = {"sample_weight": sample_weight, "progress": progress}
        trained.append(fit(member, begin, x, y, recipe, rng=rng, **options))
        if trained[-1].stopped == "interrupted":  # half-trained members are of no use
            raise KeyboardInterrupt
    size = model.layout.size
    scales: Array = (
        model.prior.init(kind) if held is not model.prior else np.zeros(0, kind)
    )
    return np.stack(
        [
            np.concatenate([one.theta[:size], scales, one.theta[size:]])
            for one in trained
        ]
    )
