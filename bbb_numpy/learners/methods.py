"""Methods of inference: each fits a posterior to a problem, and goes on from an earlier fit.

A learner checks and encodes the rows, builds a `Problem`, and asks the method that its argument
`inference` stands for; what comes back is a `FittedPosterior`, which the learner keeps or not.
Sampling, a method too, is in `inference` with its settings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isnan
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.random import Generator

from ..gradients.estimator import GradientEstimator, is_linear
from ..model.joint import Model, Prior
from ..model.objectives import EUBO, MAP, MLE, FreeEnergy
from ..numeric.layout import Array
from ..parts.likelihoods import GaussianLikelihood
from ..parts.posteriors import MeanField
from ..parts.priors import ClosedFormPrior, GaussianPrior, LayerwiseGaussianPrior
from ..registry import FAMILIES
from ..sampling.draws import Draws
from ..training import Epoch, NonFiniteError, Recipe, Training
from ..training.laplace import Linearised
from ..training.laplace import fit as fit_laplace
from ..training.loop import train
from ..training.optimizers import IVON, Cosine
from ..training.recipe import Rows
from .defaults import CLASSIFICATION, REGRESSION, TRAINING_ARGUMENTS
from .state import FittedState

__all__ = [
    "FittedPosterior",
    "LaplaceApproximation",
    "Method",
    "NaturalGradient",
    "PointEstimate",
    "Problem",
    "Variational",
]

# Priors that are the same in all directions, and so do not notice that inputs are rotated (D60)
ISOTROPIC = (GaussianPrior, LayerwiseGaussianPrior)


class Problem(NamedTuple):
    """What a method of inference is asked to solve: a model, its data, and how to train."""

    source: Any  # what `Method.build` has returned
    training: Rows  # in training's units
    held_out: Rows | None
    y_scale: Array  # (K,) standard deviations of y that are 1 in training's units
    recipe: Recipe | None  # None where nothing is trained
    dtype: Any
    verbose: int  # print every so many epochs, 0 none


@dataclass(frozen=True)
class FittedPosterior:
    """What a method of inference returns."""

    training: Training | None = None
    draws: Draws | None = None
    log_evidence: float | None = None  # nats, of y in its own units
    recipe: Recipe | None = None  # by which it was trained
    history: Sequence[Epoch] = ()  # epochs of this call by which the fit is judged
    is_new: bool = True  # whether it differs from what was there before
    interruption: str = ""  # what to tell the user after Ctrl-C
    error: NonFiniteError | None = None  # by which training ended

    def replace_in(self, state: FittedState) -> FittedState:
        """Return a fitted state with this posterior, and without a report of another one."""
        evidence = (
            state.log_evidence_ if self.log_evidence is None else self.log_evidence
        )
        return replace(
            state,
            training_=self.training,
            draws_=self.draws,
            log_evidence_=evidence,
            fit_report_=None,
        )


class Method:
    """A method of inference, and what it means for the arguments of a learner."""

    is_sampled: ClassVar[bool] = False
    can_train_on: ClassVar[bool] = True  # by `partial_fit`
    usual_objective: Any = FreeEnergy()
    # defaults of arguments that are other ones under this method, by task
    defaults: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "regression": {},
        "classification": {},
    }
    schedule_group: ClassVar[str] = "variational"  # of `schedules.INFERENCES`
    unused: ClassVar[tuple[str, ...]] = ()  # arguments that mean nothing to it
    does: ClassVar[str] = ""  # why not

    def schedule(self, parts: Mapping[str, Any]) -> str:
        """Return the key of `schedules.INFERENCES` by which a learner trains."""
        if isinstance(parts["optimizer"], IVON):
            return "ivon-optimizer"
        return self.schedule_group if is_linear(parts["objective"]) else "exact"

    def check(self, params: Mapping[str, Any], parts: Mapping[str, Any]) -> None:
        """Refuse arguments that contradict the method, or that it would ignore.

        Parameters
        ----------
        params : mapping
            Arguments of the constructor, as given.
        parts : mapping
            The parts and numbers that they stand for.

        Raises
        ------
        TypeError, ValueError
        """
        unused = [name for name in self.unused if params[name]]
        if unused:
            values = ", ".join(f"{name}={params[name]!r}" for name in unused)
            raise ValueError(
                f"inference={params['inference']!r} {self.does}, so it cannot use {values}; leave "
                "that out, or use inference='mean-field'"
            )

    def rotates_inputs(self, prior: Prior) -> bool:
        """Whether collinear inputs are rotated to their principal axes under `prior` (D60)."""
        return False

    def build(self, model: Model, parts: Mapping[str, Any]) -> Any:
        """Return what stands for the posterior of `model`, as `Problem.source`."""
        raise NotImplementedError

    def fit(
        self, problem: Problem, rng: Generator, progress: bool | None
    ) -> FittedPosterior:
        """Fit the posterior from scratch.

        Parameters
        ----------
        problem : Problem
        rng : numpy.random.Generator
            Of all random numbers; it is advanced.
        progress : bool, optional
            Whether to show a progress bar. By default only in a terminal or notebook.
        """
        raise NotImplementedError

    def resume(
        self,
        problem: Problem,
        before: FittedState,
        rng: Generator,
        progress: bool | None,
    ) -> FittedPosterior:
        """Go on from the posterior in `before`, otherwise as `fit`."""
        return self.fit(problem, rng, progress)


@dataclass(frozen=True)
class Variational(Method):
    """Train a distribution of the weights, by gradients of a bound."""

    posterior: Any
    objectives: tuple[type, ...] = (object,)  # that it can minimise
    single_value: ClassVar[bool] = False  # of each weight

    def rotates_inputs(self, prior: Prior) -> bool:
        """Whether collinear inputs are rotated: a correlated posterior does without (D60)."""
        return isinstance(self.posterior, MeanField) and isinstance(prior, ISOTROPIC)

    def check(self, params: Mapping[str, Any], parts: Mapping[str, Any]) -> None:
        """Refuse an estimator that is none, and an objective of another method."""
        estimator, objective = params["gradient_estimator"], parts["objective"]
        if isinstance(estimator, type) and not issubclass(estimator, GradientEstimator):
            raise TypeError(
                "gradient_estimator must be a class such as Reparameterised, or its name; got "
                f"{estimator}"
            )
        is_point = isinstance(objective, MLE | MAP)
        if is_point != self.single_value or not isinstance(objective, self.objectives):
            trains = "a single value" if self.single_value else "a distribution"
            raise ValueError(
                f"inference={params['inference']!r} trains {trains} of each weight, which "
                f"contradicts objective={objective}; leave one of the two out, or use "
                "inference='map' or 'mle' for single values"
            )
        if isinstance(objective, EUBO) and parts["samples"] == 1:
            raise ValueError(
                "samples must be at least 2 for the EUBO, better 100: the weight of a single "
                "sample is 1 whatever the data say, so that nothing would be learned; got 1"
            )

    def build(self, model: Model, parts: Mapping[str, Any]) -> GradientEstimator:
        """Return the estimator of the gradient."""
        objective, make = parts["objective"], parts["gradient_estimator"]
        if make is None:
            make = "reparameterised"
            closed_form = isinstance(model.prior, ClosedFormPrior)
            if isinstance(objective, EUBO):
                make = "self-normalised"
            elif (
                closed_form
                and isinstance(objective, FreeEnergy)
                and isinstance(parts["optimizer"], IVON)
            ):
                make = "local-reparameterisation"  # less noise in the curvature
        if isinstance(make, str):
            make = FAMILIES["estimator"].named[make]
        estimator: GradientEstimator = make(model, self.posterior, objective)
        return estimator

    def fit(
        self, problem: Problem, rng: Generator, progress: bool | None
    ) -> FittedPosterior:
        """Train from a random start."""
        assert problem.recipe is not None
        theta = problem.source.init(rng, problem.dtype)
        state = problem.recipe.optimizer.init(theta, problem.source)
        return _trained(problem, Training(theta, state), rng, progress)

    def resume(
        self,
        problem: Problem,
        before: FittedState,
        rng: Generator,
        progress: bool | None,
    ) -> FittedPosterior:
        """Train on, with the state of the optimizer as it was left."""
        assert before.training_ is not None
        return _trained(problem, before.training_, rng, progress)


def _trained(
    problem: Problem, before: Training, rng: Generator, progress: bool | None
) -> FittedPosterior:
    """Train from a state on, and tell how it ended."""
    recipe, error = problem.recipe, None
    assert recipe is not None
    try:
        training = train(
            problem.source,
            before,
            problem.training,
            recipe,
            rng,
            problem.held_out,
            progress,
            problem.verbose,
        )
    except NonFiniteError as failure:
        training, error = failure.training, failure
    history = training.history[len(before.history) :]
    interruption = ""
    if training.stopped == "interrupted":
        interruption = (
            f"Training interrupted by user after {len(history)} of {recipe.epochs} epochs; "
            "the model holds the state after the last finished epoch"
        )
    return FittedPosterior(
        training=training,
        recipe=recipe,
        history=history,
        is_new=bool(history),
        interruption=interruption,
        error=error,
    )


class NaturalGradient(Variational):
    """Train a mean-field posterior by IVON (D62)."""

    # It trusts classes less: their curvature vanishes as they are separated
    defaults: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "regression": {"optimizer": IVON(trust=30.0, schedule=Cosine())},
        "classification": {"optimizer": IVON(trust=0.5, schedule=Cosine())},
    }

    def schedule(self, parts: Mapping[str, Any]) -> str:
        """Return its own key of `schedules.INFERENCES`."""
        return "ivon"

    def check(self, params: Mapping[str, Any], parts: Mapping[str, Any]) -> None:
        """Refuse another optimizer."""
        if not isinstance(parts["optimizer"], IVON):
            raise ValueError(
                f"inference='ivon' is trained by IVON; got optimizer={params['optimizer']!r}. "
                "Leave it out, or use inference='mean-field'"
            )
        super().check(params, parts)


@dataclass(frozen=True)
class PointEstimate(Variational):
    """Train a single value of each weight, with the prior (MAP) or without (MLE)."""

    objectives: tuple[type, ...] = (MLE, MAP)
    single_value: ClassVar[bool] = True
    schedule_group: ClassVar[str] = "point"

    @property
    def usual_objective(self) -> Any:
        """The objective that is minimised by default."""
        return self.objectives[-1]()


@dataclass(frozen=True)
class LaplaceApproximation(Method):
    """Train to MAP, and put a Gaussian around the mode by its curvature (D54)."""

    posterior: Any
    can_train_on: ClassVar[bool] = False
    usual_objective = MAP()
    schedule_group: ClassVar[str] = "exact"
    unused: ClassVar[tuple[str, ...]] = tuple(
        name for name in TRAINING_ARGUMENTS if name not in ("optimizer", "epochs")
    )
    does: ClassVar[str] = "trains to MAP alone"
    # Scales of prior and noise are learned by the evidence; the first mode has the first noise
    defaults: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "regression": {
            "prior": replace(REGRESSION["prior"], learn=True),
            "likelihood": GaussianLikelihood(0.5, learn=True),
        },
        "classification": {"prior": replace(CLASSIFICATION["prior"], learn=True)},
    }

    def build(self, model: Model, parts: Mapping[str, Any]) -> Linearised:
        """Return the linearised network."""
        return Linearised(model, self.posterior)

    def fit(
        self, problem: Problem, rng: Generator, progress: bool | None
    ) -> FittedPosterior:
        """Train, and take curvature and evidence at the mode."""
        assert problem.recipe is not None
        recipe, rows = replace(problem.recipe, samples=1), problem.training
        training, evidence = fit_laplace(
            problem.source, rows, recipe, rng, progress, problem.verbose
        )
        log_evidence = None
        if not isnan(evidence):
            weights, n_rows = rows.sample_weight, float(len(rows.x))
            n_rows = n_rows if weights is None else float(weights.sum())
            log_evidence = float(evidence - n_rows * np.log(problem.y_scale).sum())
        interruption = ""
        if training.stopped == "interrupted":
            holds = "the posterior of the last whole round"
            if log_evidence is None:
                holds = (
                    "the MAP estimate after the last finished epoch, without a posterior around "
                    "it and with the first scales of prior and noise"
                )
            interruption = (
                f"Training interrupted by user after {len(training.history)} epochs; the model "
                f"holds {holds}"
            )
        last_scales = max(1, recipe.epochs // 2)  # epochs of the last round
        return FittedPosterior(
            training=training,
            log_evidence=log_evidence,
            recipe=recipe,
            history=training.history[-last_scales:],
            is_new=bool(training.history),
            interruption=interruption,
        )
