"""An ensemble of variational posteriors, the default for tables with many rows.

A network of many rows is trained more than once: each member starts from its own random weights,
and ends in another mode. Predictions average over draws from all members (Lakshminarayanan et al.
2017; Wilson and Izmailov 2020), in equal shares.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator

from ..gradients.reparameterised import Reparameterised
from ..model.joint import Model
from ..model.log_joint import LogJoint
from ..model.objectives import FreeEnergy
from ..numeric.threads import one_blas_thread
from ..numeric.validation import SAMPLES, check_fields
from ..parts.posteriors import MeanField
from ..sampling.draws import DrawnWeights, Draws
from ..sampling.mcmc import Info
from ..training.loop import fit, start
from ..training.optimizers import Adam, Cosine
from ..training.recipe import Recipe
from ..training.schedules import schedule_for
from .defaults import DEFAULTS, TRAINING_ARGUMENTS
from .methods import FittedPosterior, Method, Problem

__all__ = ["Ensemble"]


@dataclass(frozen=True)
class Ensemble(Method):
    """Inference by an ensemble of mean-field posteriors, trained one after the other.

    The result are draws from the members' posteriors, as of chains that have converged.

    Parameters
    ----------
    members : int
        Number of members.
    draws : int
        Number of weight vectors drawn from each member's posterior.
    """

    members: int = 5
    draws: int = 20

    is_sampled: ClassVar[bool] = True
    supports_partial_fit: ClassVar[bool] = False
    unused_arguments: ClassVar[tuple[str, ...]] = TRAINING_ARGUMENTS
    unused_because: ClassVar[str] = "has a training schedule of its own"
    defaults: ClassVar[Mapping[str, Mapping[str, Any]]] = dict.fromkeys(
        DEFAULTS, dict.fromkeys(TRAINING_ARGUMENTS)
    )

    def __post_init__(self) -> None:
        """Raise an error unless the fields are valid."""
        check_fields(self, members=SAMPLES, draws=SAMPLES)

    def build(self, model: Model, parts: Mapping[str, Any]) -> DrawnWeights:
        """Return `model` as a `DrawnWeights`, which computes predictions from draws."""
        return DrawnWeights(model)

    def fit(
        self, problem: Problem, rng: Generator, progress: bool | None
    ) -> FittedPosterior:
        """Train all members, and return draws from their posteriors in random order.

        Parameters
        ----------
        problem : Problem
            The model and its data; the recipe is not used.
        rng : numpy.random.Generator
            Source of one generator for each member, and of the order of the draws.
        progress : bool, optional
            Whether to show a progress bar. By default only in a terminal or notebook.

        Raises
        ------
        KeyboardInterrupt
            After Ctrl-C before the first member is trained; later, the members so far are used.
        """
        x, y, weights = problem.training
        dtype = np.float32
        x, y = x.astype(dtype), y.astype(dtype)
        model = problem.source.model
        member = Reparameterised(model, MeanField(rho_offset=-4.0), FreeEnergy())
        schedule = schedule_for("any", "member", len(x))
        assert schedule.learning_rate is not None
        recipe = Recipe(
            # Gradients are clipped, as those of noise that depends on x are now and then huge
            Adam(schedule.learning_rate, schedule=Cosine(), clip=20.0),
            epochs=schedule.epochs,
            batch_size=schedule.batch_size,
        )
        positions = []
        n_learned = member.layout.size - 2 * model.layout.size
        for member_rng in rng.spawn(self.members):
            init = start(member, member_rng, recipe.optimizer, dtype)
            # The last bits of a product depend on the number of BLAS threads
            with one_blas_thread():
                training = fit(
                    member,
                    init,
                    x,
                    y,
                    recipe,
                    rng=member_rng,
                    sample_weight=weights,
                    progress=progress,
                )
            if training.stopped == "interrupted":
                break
            eps = member.draw_weights(member_rng, self.draws, dtype)
            learned = training.theta[len(training.theta) - n_learned :]
            w = member.weights(training.theta, eps)
            positions.append(
                np.concatenate([w, np.tile(learned, (self.draws, 1))], axis=1)
            )
        if not positions:
            raise KeyboardInterrupt("interrupted before the first member was trained")
        draws = rng.permutation(np.concatenate(positions))[:, None]  # (T, 1, D)
        return FittedPosterior(draws=self._as_draws(draws, model, x, y))

    def _as_draws(self, positions: Any, model: Model, x: Any, y: Any) -> Draws:
        """Return independent draws (T, 1, D) as a `Draws`, whose log densities are not computed."""
        shape = positions.shape[:2]
        zeros = np.zeros(shape)
        unknown = np.full(shape, np.nan)
        stats = dict.fromkeys(Info._fields, zeros) | {
            "acceptance": np.ones(shape),
            "accepted": np.ones(shape, bool),
            "divergent": np.zeros(shape, bool),
        }
        target = LogJoint(model, x, y)
        finished = len(positions) == self.members * self.draws
        return Draws(
            positions, unknown, stats, self, target, target.layout, 0, 0, finished
        )
