"""Methods of inference: each fits a posterior to a problem, and continues an earlier fit.

A learner checks and encodes the rows, builds a `Problem`, and hands it to the method that its
argument `inference` stands for. The method returns a `FittedPosterior`. Sampling, which is a method
too, is in `inference` together with its settings.
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

# Priors whose density stays the same when the inputs are rotated (D60)
ISOTROPIC_PRIORS = (GaussianPrior, LayerwiseGaussianPrior)


class Problem(NamedTuple):
    """What a method of inference is to solve: a model, its data, and how to train.

    Parameters
    ----------
    source : GradientEstimator, Linearised or DrawnWeights
        What `Method.build` has returned.
    training : Rows
        Rows to train on, standardised and of the dtype of training.
    held_out : Rows or None
        Rows of which the loss is recorded.
    y_scale : ndarray (K,)
        Length, in units of y, of 1 in the units of training.
    recipe : Recipe or None
        How to train; None where nothing is trained.
    verbose : int
        Print every so many epochs; 0 is never.
    """

    source: Any
    training: Rows
    held_out: Rows | None
    y_scale: Array
    recipe: Recipe | None
    verbose: int


@dataclass(frozen=True)
class FittedPosterior:
    """What a method of inference returns.

    Parameters
    ----------
    training : Training, optional
        Where the posterior was trained: theta, the state of the optimizer, and the history.
    draws : Draws, optional
        Where it was sampled.
    log_evidence : float, optional
        log P(D) in nats for y in its own units, where the method tells it.
    recipe : Recipe, optional
        How it was trained.
    history : sequence of Epoch
        The epochs of this call by which the fit is judged; none after sampling.
    is_changed : bool
        Whether anything was learned; if not, the learner keeps an earlier fit.
    interruption : str
        The warning to the user after Ctrl-C; empty if there was none.
    error : NonFiniteError, optional
        The error by which training ended.
    """

    training: Training | None = None
    draws: Draws | None = None
    log_evidence: float | None = None
    recipe: Recipe | None = None
    history: Sequence[Epoch] = ()
    is_changed: bool = True
    interruption: str = ""
    error: NonFiniteError | None = None

    def update(self, state: FittedState) -> FittedState:
        """Return a fitted state with this posterior, and without the report of an earlier one."""
        updated = replace(
            state, training_=self.training, draws_=self.draws, fit_report_=None
        )
        if self.log_evidence is not None:
            updated = replace(updated, log_evidence_=self.log_evidence)
        return updated


class Method:
    """A method of inference: it fits a posterior, and has defaults and checks of arguments.

    Attributes
    ----------
    is_sampled : bool
        Whether the posterior is sampled, not trained.
    supports_partial_fit : bool
        Whether `partial_fit` can train the posterior further.
    default_objective : object
        What is minimised by default.
    defaults : mapping
        Defaults of arguments that differ under this method, by task and argument.
    schedule_group : str
        Key of `training.schedules.INFERENCES`.
    unused_arguments : tuple of str
        Arguments of a learner that this method would ignore, and so refuses.
    unused_because : str
        The reason, as the end of a sentence of which the method is the subject.
    """

    is_sampled: ClassVar[bool] = False
    supports_partial_fit: ClassVar[bool] = True
    default_objective: Any = FreeEnergy()
    defaults: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "regression": {},
        "classification": {},
    }
    schedule_group: ClassVar[str] = "variational"
    unused_arguments: ClassVar[tuple[str, ...]] = ()
    unused_because: ClassVar[str] = ""

    def schedule(self, parts: Mapping[str, Any]) -> str:
        """Return the key of `training.schedules.INFERENCES` by which a learner trains."""
        if isinstance(parts["optimizer"], IVON):
            return "ivon-optimizer"
        if not is_linear(parts["objective"]):
            return "full-length"
        return self.schedule_group

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
        unused = [name for name in self.unused_arguments if params[name]]
        if unused:
            values = ", ".join(f"{name}={params[name]!r}" for name in unused)
            raise ValueError(
                f"inference={params['inference']!r} {self.unused_because}, so it cannot "
                f"use {values}; leave that out, or use inference='mean-field'"
            )

    def rotates_inputs(self, prior: Prior) -> bool:
        """Whether collinear inputs are rotated to their principal axes under `prior` (D60)."""
        return False

    def build(self, model: Model, parts: Mapping[str, Any]) -> Any:
        """Return the object with which the posterior of `model` is computed, the `Problem.source`.

        Parameters
        ----------
        model : Model
            Network, prior and likelihood.
        parts : mapping
            The parts and numbers that the arguments stand for, by name.

        Returns
        -------
        GradientEstimator, Linearised or DrawnWeights
        """
        raise NotImplementedError

    def fit(
        self, problem: Problem, rng: Generator, progress: bool | None
    ) -> FittedPosterior:
        """Fit the posterior from scratch.

        Parameters
        ----------
        problem : Problem
            The model, its data, and how to train.
        rng : numpy.random.Generator
            Source of all random numbers; its state is advanced.
        progress : bool, optional
            Whether to show a progress bar. By default only in a terminal or notebook.

        Returns
        -------
        FittedPosterior

        Raises
        ------
        KeyboardInterrupt
            After Ctrl-C, if nothing has been found yet.
        """
        raise NotImplementedError

    def resume(
        self,
        problem: Problem,
        state: FittedState,
        rng: Generator,
        progress: bool | None,
    ) -> FittedPosterior:
        """Continue from the posterior of an earlier fit.

        A method that cannot continue fits from scratch, in the units of the earlier fit.

        Parameters
        ----------
        problem : Problem
            The model, today's data, and how to train on.
        state : FittedState
            The earlier fit.
        rng, progress
            As for `fit`.
        """
        return self.fit(problem, rng, progress)


@dataclass(frozen=True)
class Variational(Method):
    """Variational inference: train a distribution of the weights, by gradients of a bound.

    Parameters
    ----------
    posterior : Posterior
        The family of distributions, such as ``MeanField()``.
    objectives : tuple of type
        Classes of the objectives that it can minimise.
    """

    posterior: Any
    objectives: tuple[type, ...] = (object,)
    is_point: ClassVar[bool] = False  # whether each weight has a single value

    def rotates_inputs(self, prior: Prior) -> bool:
        """Whether collinear inputs are rotated: a correlated posterior does without (D60)."""
        return isinstance(self.posterior, MeanField) and isinstance(
            prior, ISOTROPIC_PRIORS
        )

    def check(self, params: Mapping[str, Any], parts: Mapping[str, Any]) -> None:
        """Refuse a class that is no gradient estimator, and an objective of another method."""
        estimator = params["gradient_estimator"]
        objective = parts["objective"]
        if isinstance(estimator, type) and not issubclass(estimator, GradientEstimator):
            raise TypeError(
                "gradient_estimator must be a class such as Reparameterised, or its name; got "
                f"{estimator}"
            )
        for_points = isinstance(objective, MLE | MAP)
        if for_points != self.is_point or not isinstance(objective, self.objectives):
            trained = "a single value" if self.is_point else "a distribution"
            raise ValueError(
                f"inference={params['inference']!r} trains {trained} of each weight, which "
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
        estimator_class = parts["gradient_estimator"]
        objective = parts["objective"]
        if estimator_class is None:
            closed_form = isinstance(model.prior, ClosedFormPrior) and isinstance(
                objective, FreeEnergy
            )
            estimator_class = "reparameterised"
            if isinstance(objective, EUBO):
                estimator_class = "self-normalised"
            elif closed_form and isinstance(parts["optimizer"], IVON):
                # less noise in the curvature
                estimator_class = "local-reparameterisation"
        if isinstance(estimator_class, str):
            estimator_class = FAMILIES["estimator"].named[estimator_class]
        estimator: GradientEstimator = estimator_class(model, self.posterior, objective)
        return estimator

    def fit(
        self, problem: Problem, rng: Generator, progress: bool | None
    ) -> FittedPosterior:
        """Train from random initial parameters.

        Parameters
        ----------
        problem : Problem
            The gradient estimator, the data, and the recipe.
        rng : numpy.random.Generator
            Source of the initial parameters, the order of the rows and the noise of the weights.
        progress : bool, optional
            Whether to show a progress bar. By default only in a terminal or notebook.
        """
        assert problem.recipe is not None
        theta = problem.source.init(rng, problem.training.x.dtype)
        optimizer_state = problem.recipe.optimizer.init(theta, problem.source)
        init = Training(theta, optimizer_state)
        return _train_from(init, problem, rng, progress)

    def resume(
        self,
        problem: Problem,
        state: FittedState,
        rng: Generator,
        progress: bool | None,
    ) -> FittedPosterior:
        """Continue training, with the state of the optimizer as it was left.

        Parameters
        ----------
        problem : Problem
            The gradient estimator, today's data, and the recipe.
        state : FittedState
            The earlier fit, from whose theta training continues.
        rng, progress
            As of `fit`.
        """
        assert state.training_ is not None
        return _train_from(state.training_, problem, rng, progress)


def _train_from(
    init: Training, problem: Problem, rng: Generator, progress: bool | None
) -> FittedPosterior:
    """Train from an initial state, and record an error of nan or infinity instead of raising it."""
    recipe = problem.recipe
    assert recipe is not None
    error = None
    try:
        training = train(
            problem.source,
            init,
            problem.training,
            recipe,
            rng,
            problem.held_out,
            progress,
            problem.verbose,
        )
    except NonFiniteError as failure:
        training = failure.training
        error = failure
    history = training.history[len(init.history) :]
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
        is_changed=bool(history),
        interruption=interruption,
        error=error,
    )


class NaturalGradient(Variational):
    """Train a mean-field posterior by natural gradients, with the optimizer IVON (D62)."""

    # Less trust in the curvature of classes, which vanishes as these are separated
    defaults: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "regression": {"optimizer": IVON(trust=30.0, schedule=Cosine())},
        "classification": {"optimizer": IVON(trust=0.5, schedule=Cosine())},
    }

    def schedule(self, parts: Mapping[str, Any]) -> str:
        """Return the key of natural gradients in `training.schedules.INFERENCES`."""
        return "ivon"

    def check(self, params: Mapping[str, Any], parts: Mapping[str, Any]) -> None:
        """Refuse another optimizer, and what `Variational` refuses."""
        if not isinstance(parts["optimizer"], IVON):
            raise ValueError(
                f"inference='ivon' is trained by IVON; got optimizer={params['optimizer']!r}. "
                "Leave it out, or use inference='mean-field'"
            )
        super().check(params, parts)


@dataclass(frozen=True)
class PointEstimate(Variational):
    """Train a single value of each weight, with the prior (MAP) or without it (MLE).

    Parameters
    ----------
    posterior : PointMass
    objectives : tuple of type
        Classes of the objectives that it can minimise; the last is the default.
    """

    objectives: tuple[type, ...] = (MLE, MAP)
    is_point: ClassVar[bool] = True
    schedule_group: ClassVar[str] = "point"

    @property
    def default_objective(self) -> Any:
        """The objective that is minimised by default."""
        return self.objectives[-1]()


@dataclass(frozen=True)
class LaplaceApproximation(Method):
    """Laplace's approximation: train to MAP, and fit a Gaussian to the curvature there (D54).

    Parameters
    ----------
    posterior : Laplace
        Which weights are correlated, and how often the scales are updated.
    """

    posterior: Any
    supports_partial_fit: ClassVar[bool] = False
    default_objective = MAP()
    schedule_group: ClassVar[str] = "full-length"
    unused_arguments: ClassVar[tuple[str, ...]] = tuple(
        name for name in TRAINING_ARGUMENTS if name not in ("optimizer", "epochs")
    )
    unused_because: ClassVar[str] = "trains to MAP alone"
    # The evidence chooses the scales of prior and noise; the first mode is found with these
    defaults: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "regression": {
            "prior": replace(REGRESSION["prior"], learn=True),
            "likelihood": GaussianLikelihood(0.5, learn=True),
        },
        "classification": {"prior": replace(CLASSIFICATION["prior"], learn=True)},
    }

    def build(self, model: Model, parts: Mapping[str, Any]) -> Linearised:
        """Return the network linearised at the mode."""
        return Linearised(model, self.posterior)

    def fit(
        self, problem: Problem, rng: Generator, progress: bool | None
    ) -> FittedPosterior:
        """Train to the mode, and compute curvature and evidence there, in turn.

        Parameters
        ----------
        problem : Problem
            The linearised network, the data, and the recipe of the first mode.
        rng : numpy.random.Generator
            Source of the initial weights and the order of the rows.
        progress : bool, optional
            Whether to show a progress bar. By default only in a terminal or notebook.
        """
        assert problem.recipe is not None
        recipe = replace(problem.recipe, samples=1)
        rows = problem.training
        training, evidence = fit_laplace(
            problem.source, rows, recipe, rng, progress, problem.verbose
        )
        log_evidence = None
        if not isnan(evidence):
            n_rows = float(len(rows.x))
            if rows.sample_weight is not None:
                n_rows = float(rows.sample_weight.sum())
            log_evidence = float(evidence - n_rows * np.log(problem.y_scale).sum())
        interruption = ""
        if training.stopped == "interrupted":
            last_state = "the posterior of the last whole round"
            if log_evidence is None:
                last_state = (
                    "the MAP estimate after the last finished epoch, without a posterior around "
                    "it and with the first scales of prior and noise"
                )
            interruption = (
                f"Training interrupted by user after {len(training.history)} epochs; the model "
                f"holds {last_state}"
            )
        # the last round, whose scales are the final ones, has half the epochs of the first
        n_last_epochs = max(1, recipe.epochs // 2)
        return FittedPosterior(
            training=training,
            log_evidence=log_evidence,
            recipe=recipe,
            history=training.history[-n_last_epochs:],
            is_changed=bool(training.history),
            interruption=interruption,
        )
