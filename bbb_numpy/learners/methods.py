"""Methods of inference: each fits a posterior to a problem, and continues an earlier fit.

A learner checks and encodes the rows, builds a `Problem`, and hands it to the method that its
argument `inference` stands for. The method returns a `FittedPosterior`. `Sampling`, which is a
method too, is in the module `inference`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isnan
from typing import Any, ClassVar, NamedTuple

from numpy.random import Generator

from ..gradients.estimator import GradientEstimator, is_linear
from ..model.joint import Model, Prior
from ..model.objectives import EUBO, MAP, MLE, FreeEnergy
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

# priors whose density does not change when the inputs are rotated (D60)
ISOTROPIC_PRIORS = (GaussianPrior, LayerwiseGaussianPrior)


class Problem(NamedTuple):
    """Input of a method of inference: a model, its data, and the training recipe.

    Parameters
    ----------
    source : GradientEstimator, Linearised or DrawnWeights
        The model with its posterior, as `Method.build` returns it.
    training : Rows
        Training rows, standardised and in the dtype of training.
    held_out : Rows or None
        Held-out rows, whose loss is recorded.
    state : FittedState
        State of the fit before it is trained, with the units of the rows.
    recipe : Recipe or None
        Training recipe; None if the method trains nothing.
    verbose : int
        Number of epochs between two printed lines; 0 prints none.
    """

    source: Any
    training: Rows
    held_out: Rows | None
    state: FittedState
    recipe: Recipe | None
    verbose: int


@dataclass(frozen=True)
class FittedPosterior:
    """Result of a method of inference.

    Parameters
    ----------
    training : Training, optional
        Result of training: theta, the state of the optimizer, and the history.
    draws : Draws, optional
        Result of sampling.
    log_evidence : float, optional
        log P(D) in nats for y in its own units, if the method computes it.
    recipe : Recipe, optional
        Training recipe that was used.
    history : sequence of Epoch
        Epochs of this call by which the fit is judged; empty after sampling.
    is_changed : bool
        Whether anything was learned. If not, the learner keeps an earlier fit.
    interruption : str
        Warning to the user after Ctrl-C; empty if there was none.
    error : NonFiniteError, optional
        Error with which training has ended; None if there was none.
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
        """Return `state` with this posterior, and without what was measured of an earlier one."""
        log_evidence = self.log_evidence
        if log_evidence is None:
            log_evidence = state.log_evidence_
        return replace(
            state,
            training_=self.training,
            draws_=self.draws,
            log_evidence_=log_evidence,
            fit_report_=None,
            training_region_=None,
        )


class Method:
    """Base class of methods of inference: fitting, and defaults and checks of arguments.

    Attributes
    ----------
    is_sampled : bool
        Whether the posterior is sampled, not trained.
    supports_partial_fit : bool
        Whether `partial_fit` can train the posterior further.
    default_objective : object
        Objective that is minimised by default.
    defaults : mapping
        Defaults that replace those of the task under this method, by task and argument.
    schedule_group : str
        Key of the default schedule in `training.schedules.INFERENCES`.
    unused_arguments : tuple of str
        Arguments of a learner that this method does not use and therefore refuses.
    unused_because : str
        Reason for the refusal: a predicate whose subject is the method, such as "trains to MAP
        alone".
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
        """Return the name of the training schedule, a key of `training.schedules.INFERENCES`.

        `parts` are the parts that the constructor arguments stand for, by name.
        """
        if isinstance(parts["optimizer"], IVON):
            return "ivon-optimizer"
        if not is_linear(parts["objective"]):
            return "full-length"
        return self.schedule_group

    def check(self, params: Mapping[str, Any], parts: Mapping[str, Any]) -> None:
        """Raise an error for a learner's arguments that this method contradicts or does not use.

        Parameters
        ----------
        params : mapping
            Arguments of the constructor by name, as the user has given them.
        parts : mapping
            Parts and numbers that the arguments stand for, by the same names.

        Raises
        ------
        TypeError, ValueError
            If an argument cannot be used with this method.
        """
        unused = [name for name in self.unused_arguments if params[name]]
        if unused:
            values = ", ".join(f"{name}={params[name]!r}" for name in unused)
            raise ValueError(
                f"inference={params['inference']!r} {self.unused_because}, so it cannot "
                f"use {values}; leave that out, or use inference='mean-field'"
            )

    def rotates_inputs(self, prior: Prior) -> bool:
        """Return whether to rotate collinear inputs to principal axes, given the prior (D60)."""
        return self.is_sampled and isinstance(prior, ISOTROPIC_PRIORS)

    def build(self, model: Model, parts: Mapping[str, Any]) -> Any:
        """Return the object that computes the posterior of `model`, the `source` of a `Problem`.

        Parameters
        ----------
        model : Model
            Network, prior and likelihood.
        parts : mapping
            Parts and numbers that the constructor arguments stand for, by name.

        Returns
        -------
        GradientEstimator, Linearised or DrawnWeights
        """
        raise NotImplementedError

    def fit(
        self, problem: Problem, rng: Generator, progress: bool | None
    ) -> FittedPosterior:
        """Fit the posterior from scratch, and return it.

        Parameters
        ----------
        problem : Problem
            The model, its data, and the training recipe.
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
            After Ctrl-C, if there is no result yet.
        """
        raise NotImplementedError

    def resume(
        self,
        problem: Problem,
        state: FittedState,
        rng: Generator,
        progress: bool | None,
    ) -> FittedPosterior:
        """Continue from the posterior of an earlier fit, and return the new one.

        By default the posterior is fitted from scratch, with the standardisation of the earlier
        fit.

        Parameters
        ----------
        problem : Problem
            The model, the present data, and the training recipe.
        state : FittedState
            The earlier fit.
        rng, progress
            As in `fit`.

        Returns
        -------
        FittedPosterior
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
        Classes of the objectives that can be minimised.
    """

    posterior: Any
    objectives: tuple[type, ...] = (object,)
    is_point: ClassVar[bool] = False  # whether a point estimate is trained

    def rotates_inputs(self, prior: Prior) -> bool:
        """Return True for a mean-field posterior with an isotropic prior (D60)."""
        return isinstance(self.posterior, MeanField) and isinstance(
            prior, ISOTROPIC_PRIORS
        )

    def check(self, params: Mapping[str, Any], parts: Mapping[str, Any]) -> None:
        """Raise an error if gradient estimator or objective do not suit this method."""
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
        """Return an object of the class ``parts["gradient_estimator"]`` for `model`.

        If that is None, the class is the default for the objective, the optimizer and the prior.

        Parameters
        ----------
        model : Model
            Network, prior and likelihood.
        parts : mapping
            Parts and numbers that the constructor arguments stand for, by name.
        """
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
                # IVON's estimate of the curvature has less noise with this class
                estimator_class = "local-reparameterisation"
        if isinstance(estimator_class, str):
            estimator_class = FAMILIES["estimator"].named[estimator_class]
        estimator: GradientEstimator = estimator_class(model, self.posterior, objective)
        return estimator

    def fit(
        self, problem: Problem, rng: Generator, progress: bool | None
    ) -> FittedPosterior:
        """Train from random initial parameters, and return the posterior.

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
        """Continue training from the parameters and the optimizer's state of an earlier fit.

        Parameters
        ----------
        problem : Problem
            The gradient estimator, the present data, and the recipe.
        state : FittedState
            The earlier fit, from whose theta training continues.
        rng, progress
            As in `fit`.
        """
        assert state.training_ is not None
        return _train_from(state.training_, problem, rng, progress)


def _train_from(
    init: Training, problem: Problem, rng: Generator, progress: bool | None
) -> FittedPosterior:
    """Train from the state `init`, and return the posterior; a NonFiniteError is stored in it."""
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

    # IVON's trust in its estimated curvature is smaller for classification, where the curvature
    # vanishes as the classes are separated
    defaults: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "regression": {"optimizer": IVON(trust=30.0, schedule=Cosine())},
        "classification": {"optimizer": IVON(trust=0.5, schedule=Cosine())},
    }

    def schedule(self, parts: Mapping[str, Any]) -> str:
        """Return "ivon", the key of the schedule in `training.schedules.INFERENCES`."""
        return "ivon"

    def check(self, params: Mapping[str, Any], parts: Mapping[str, Any]) -> None:
        """Raise ValueError for an optimizer other than IVON, and errors as `Variational.check`."""
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
        The family of point masses.
    objectives : tuple of type
        Classes of the objectives that can be minimised; the last one is the default.
    """

    objectives: tuple[type, ...] = (MLE, MAP)
    is_point: ClassVar[bool] = True
    schedule_group: ClassVar[str] = "point"

    @property
    def default_objective(self) -> Any:
        """Objective that is minimised by default: the last of `objectives`."""
        return self.objectives[-1]()


@dataclass(frozen=True)
class LaplaceApproximation(Method):
    """Laplace's approximation: train to MAP, and fit a Gaussian to the curvature there (D54).

    Parameters
    ----------
    posterior : Laplace
        Settings: which weights are correlated, and how often the scales are updated.
    """

    posterior: Any
    supports_partial_fit: ClassVar[bool] = False
    default_objective = MAP()
    schedule_group: ClassVar[str] = "laplace"
    unused_arguments: ClassVar[tuple[str, ...]] = tuple(
        name for name in TRAINING_ARGUMENTS if name not in ("optimizer", "epochs")
    )
    unused_because: ClassVar[str] = "trains to MAP alone"
    # The scales of prior and noise start here, as the first mode is searched for; then they are
    # chosen by maximising the evidence
    defaults: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "regression": {
            "prior": replace(REGRESSION["prior"], learn=True),
            "likelihood": GaussianLikelihood(0.5, learn=True),
        },
        "classification": {"prior": replace(CLASSIFICATION["prior"], learn=True)},
    }

    def build(self, model: Model, parts: Mapping[str, Any]) -> Linearised:
        """Return the `Linearised` network of `model`, of which `fit` computes the mode."""
        return Linearised(model, self.posterior)

    def fit(
        self, problem: Problem, rng: Generator, progress: bool | None
    ) -> FittedPosterior:
        """Fit in rounds: train to the mode, compute the curvature there, and update the scales.

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
            # The density of y is that of the standardised target z times dz/dy of each row
            log_slopes = problem.state.units.log_slope(rows.y)
            if rows.sample_weight is not None:
                log_slopes = log_slopes * rows.sample_weight
            log_evidence = float(evidence + log_slopes.sum())
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
        # The fit report judges the last round only, which has the final scales, and half as many
        # epochs as the first round
        n_last_epochs = max(1, recipe.epochs // 2)
        return FittedPosterior(
            training=training,
            log_evidence=log_evidence,
            recipe=recipe,
            history=training.history[-n_last_epochs:],
            is_changed=bool(training.history),
            interruption=interruption,
        )
