"""Base class of the regressor and the classifier: parameters, fitting and predictions."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from inspect import cleandoc
from math import inf
from typing import Any, ClassVar, Self

import numpy as np

try:  # scikit-learn is first imported by these lines, which advise how to install it
    from sklearn.base import (
        BaseEstimator,
        ClassifierMixin,
        MultiOutputMixin,
        RegressorMixin,
        TransformerMixin,
        clone,
        is_classifier,
    )
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.metrics import r2_score
    from sklearn.utils import get_tags, shuffle
    from sklearn.utils.class_weight import compute_class_weight
    from sklearn.utils.metaestimators import available_if
    from sklearn.utils.multiclass import (
        _check_partial_fit_first_call as check_first_classes,
    )
    from sklearn.utils.validation import _check_feature_names_in as check_feature_names
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError:
    raise ImportError(
        "the learners need scikit-learn; install it with: pip install 'bbb_numpy[learners]'"
    ) from None

from ..evaluation import predictive
from ..gradients.estimator import GradientEstimator as Estimator
from ..model.joint import Likelihood
from ..model.objectives import MLE
from ..numeric.layout import Array
from ..numeric.standardisation import standardise
from ..numeric.validation import (
    MAX_SAMPLES,
    STEPS,
    Numbers,
    check_generator,
    whole,
)
from ..parts.posteriors import PointMass
from ..registry import REGISTERED
from ..training.recipe import Rows
from ..training.schedules import schedule_table
from .defaults import DEFAULTS, strategy_table
from .diagnosis import diagnose_fit
from .inference import supports_partial_fit
from .methods import FittedPosterior, Problem
from .nested import nested_params, update_nested
from .novelty import COMBINATION, Novelty, find_region
from .plan import (
    Plan,
    check_plan,
    constraints,
    resolve_defaults,
)
from .representation import Fitted
from .rows import (
    TrainingData,
    append_offset,
    check_exposure,
    check_finite,
    check_inputs,
    check_pair,
    check_weights,
    encode_table,
    largest_log_rate,
    prepare_rows,
)
from .state import FittedState

__all__ = [
    "BaseEstimator",
    "ClassifierMixin",
    "Learner",
    "MultiOutputMixin",
    "RegressorMixin",
    "Targets",
    "TransformerMixin",
    "available_if",
    "available_if_trained",
    "check_feature_names",
    "check_first_classes",
    "check_is_fitted",
    "clone",
    "compute_class_weight",
    "get_tags",
    "is_classifier",
    "r2_score",
    "shuffle",
    "validate_data",
]


# Type that `_first_targets` returns: targets (N, K) in float64, their likelihood, and the fields
# of `FittedState` that describe them, such as `classes_`
Targets = tuple[Array, Likelihood, dict[str, Any]]

# `partial_fit` exists only if the posterior is trained by gradients: chains of a sampler and
# curvatures of Laplace's approximation belong to the rows of one fit
available_if_trained = available_if(
    lambda learner: supports_partial_fit(learner.inference)
)


def _shape(X: Any) -> tuple[int, int] | None:
    """Return numbers of rows and columns of `X`, before it is checked; None if it has none."""
    try:
        shape = X.shape if hasattr(X, "shape") else np.asarray(X).shape
    except (TypeError, ValueError):  # rows of different lengths
        return None
    if len(shape) != 2:
        return None
    return shape[0], shape[1]


@dataclass(eq=False, repr=False)
class Learner(Fitted):
    """Base class of the learners: parameters, fitting, and the predictions that they share.

    Parameters
    ----------
    hidden_layer_sizes : tuple of int, default=None
        Number of units of each hidden layer, from the input to the output; ``()`` is a linear
        model. By default as in the table *Defaults* in the notes; with another `inference`
        ``(20,)`` for regression and ``(50,)`` for classification. Use more units when the function
        is intricate and rows are many: under a mean-field posterior every unit adds noise to the
        predictions, in variance about noise variance / N.
    activation : str, default=None
        Activation function of the hidden layers: one of 'relu', 'tanh', 'sigmoid', 'silu',
        'softplus', 'gelu', 'gelu-tanh'. By default as in *Defaults*, with another `inference`
        'relu'. Use a smooth one, such as 'tanh', when predictions should have no kinks.
    prior : str or object, default=None
        Prior distribution of the weights: a name, such as 'gaussian', 'laplace', 'student-t' or
        'mixture', or an object with its settings, such as ``LaplacePrior(0.2)``. By default as in
        *Defaults*; with another `inference` ``GaussianPrior(0.5)`` for regression and
        ``GaussianPrior(1.5)`` for classification. Use a wider one when the function is steep, a
        narrower one when rows are few.
    likelihood : str or object, default=None
        Distribution of y given the output of the network. For regression the default is as in
        *Defaults*, with another `inference` ``GaussianLikelihood(0.1, learn=True)``: Gaussian noise
        with one standard deviation, which starts at 0.1 (of standardised y) and is learned. Use
        'heteroscedastic' when the noise depends on X, 'student-t-learned' when y has outliers
        ('student-t' has a fixed scale of 0.1), 'poisson' for counts, whose log rate is the output,
        'negative-binomial' for counts that vary more, 'zero-inflated' or
        'zero-inflated-negative-binomial' for many zeros, 'bernoulli' for columns of 0 and 1,
        'categorical' for rows of probabilities. The classifier takes the last two; its default is
        'bernoulli' for two classes and 'categorical' for more.
    inference : str or object, default=None
        Method by which the posterior of the weights is approximated. By default it depends on the
        size of the table, see *Defaults*; an argument that only training has, such as `epochs` or
        `optimizer`, and `partial_fit`, mean 'mean-field'. Otherwise one of 'mean-field', 'ivon',
        'low-rank', 'full-rank', 'map', 'mle', 'laplace', 'hmc', 'nuts', 'chees', 'mams', 'mclmc',
        'sghmc', 'sgld', or an object with its settings, such as ``MeanField(rho_offset=-1.0)`` or
        ``Sampling("nuts", chains=8)`` or ``Ensemble(members=10)``.
        Variational inference: 'mean-field' learns an independent Gaussian for each weight, and
        'ivon' the same by natural gradients in fewer epochs. 'low-rank' and 'full-rank' learn
        correlations too; the latter is for small networks. Point estimates: 'map' maximises the
        posterior density, 'mle' the likelihood alone. 'laplace' puts a Gaussian around 'map' by the
        curvature there, and chooses the scales of prior and noise by the evidence.
        Sampling: 'hmc', 'nuts', 'chees' and 'mams' draw from the exact posterior, the scales that
        are learned included; use one for up to a few thousand rows when the quality of the
        uncertainty matters more than time. 'mclmc' has a small bias; 'sghmc' and 'sgld' use
        minibatches, for many rows. Arguments that only training has are then refused or unused.
    gradient_estimator : str or class, default=None
        Estimator of the gradient of the objective, such as 'local-reparameterisation' or
        ``Flipout``, both of which have less variance for minibatches. By default 'reparameterised';
        'self-normalised' for the EUBO (evidence upper bound) and 'local-reparameterisation' for
        'ivon' with a Gaussian prior.
    objective : str or object, default=None
        Function of the posterior that training minimises. By default ``FreeEnergy()``, the negative
        ELBO (evidence lower bound), and ``MAP()`` for point estimates. ``Renyi``, of which the
        importance-weighted bound (IWAE) is one, and the EUBO are biased on minibatches (D30): use
        them with a `batch_size` of all rows and many `samples`.
    kl_weights : str or callable, default=None
        Share of the KL term that each minibatch of an epoch has: one of 'geometric',
        'proportional'. By default 'proportional', to the rows of the minibatch; 'geometric' puts
        most of it on the first minibatches of an epoch.
    kl_warm_up : str or object, default=None
        Schedule of the factor on the KL term, which rises to 1 over the epochs of a call: one of
        'cyclical', 'linear', 'none'. By default ``LinearWarmUp(0.5)`` in `fit` of a regressor that
        minimises a free energy, which lets the network fit before the prior prunes units that it
        has not used yet; 'none' otherwise.
    optimizer : str or object, default=None
        Rule by which the parameters are updated: one of 'adam', 'ivon', 'momentum', 'sgd', or an
        object with its settings, such as ``SGD(1e-3)``. By default Adam with a learning rate that
        falls to 0 along a cosine, ``Adam(rate, schedule=Cosine())``; the rate is in the table
        *Schedules* in the notes, and with heteroscedastic noise ``clip=20`` is added. For
        ``inference="ivon"`` the default is ``IVON``. A learning-rate schedule runs over the epochs
        of one call.
    epochs : int, default=None
        Number of passes over the data. By default it depends on the number of rows: see the table
        *Schedules* in the notes. If it is given, the other columns of the table are those of few
        rows. Train for more epochs when the fit report says that the loss still fell.
    batch_size : int, default=None
        Number of rows of a minibatch. By default as in *Schedules*. Larger minibatches make steps
        less noisy, and fewer per epoch.
    samples : int, default=None
        Number of weight samples in each training step. By default as in *Schedules*. More samples
        reduce the variance of the gradient and cost time in proportion.
    predict_samples : int, default=None
        Number of weight samples, or draws of the chains, that a prediction averages. By default 100
        for regression and 500 for classification. The Monte Carlo error of a prediction falls as
        the inverse of its square root.
    standardize : bool, default=True
        Whether inputs and real targets are brought to mean 0 and standard deviation 1 for training
        (constant columns to 0); everything that is returned is in the units of the data. Counts,
        zeros and ones stay as they are. Nearly collinear inputs of real targets are also rotated to
        their principal axes, if the posterior is mean-field or sampled and the Gaussian prior
        isotropic (D60). Set it to False when the data already have these units.
    early_stopping : EarlyStopping, default=None
        Rule that ends training before the last epoch, by the training loss or by that of held-out
        rows. By default training runs for all `epochs`.
    validation_fraction : float, default=0.0
        Fraction of the rows, at least 0 and less than 1, that `fit` holds out to record their loss,
        by which `early_stopping` may stop.
    dtype : {'float64', 'float32'}, default='float64'
        Floating-point type of training and prediction. 'float32' is faster for wide networks;
        results are returned as float64 in any case.
    random_state : int or numpy.random.Generator or RandomState, default=None
        Source of the random numbers. With an integer, the same data give bit-identical results on
        the same machine.
    progress : bool, default=None
        Whether a progress bar is shown. By default it is shown in a terminal or a notebook only.
    verbose : bool or int, default=False
        Whether the loss is printed at every epoch, or, if an integer, at every so many epochs;
        sampling prints one line at its end.
    warm_start : bool, default=False
        Whether `fit` continues from the result of the last `fit` or `partial_fit`, for `epochs`
        more, with its standardisation, and without a warm-up of the KL term unless one is set.
        Chains of a sampler continue with `draws` more draws, on the same rows.
    """

    hidden_layer_sizes: Any = None
    _: KW_ONLY
    activation: str | None = None
    prior: Any = None
    likelihood: Any = None
    inference: Any = None
    gradient_estimator: Any = None
    objective: Any = None
    kl_weights: Any = None
    kl_warm_up: Any = None
    optimizer: Any = None
    epochs: int | None = None
    batch_size: int | None = None
    samples: int | None = None
    predict_samples: int | None = None
    standardize: bool = True
    early_stopping: Any = None
    validation_fraction: float = 0.0
    dtype: Any = "float64"
    random_state: Any = None
    progress: bool | None = None
    verbose: Any = False
    warm_start: bool = False

    task: ClassVar[str] = "regression"
    target_kinds: ClassVar[tuple[str, ...]] = ("real", "count", "class")

    def __init_subclass__(cls, **options: Any) -> None:
        """Fill the shared parameters and the table of schedules into a learner's docstring."""
        super().__init_subclass__(**options)
        if cls.__doc__ and Learner.__doc__:  # both are None under python -OO
            shared = cleandoc(Learner.__doc__).partition("----------\n")[2]
            text = cleandoc(cls.__doc__).replace("{parameters of Learner}", shared)
            text = text.replace("{defaults}", strategy_table(markdown=False))
            cls.__doc__ = text.replace("{schedules}", schedule_table(markdown=False))

    @property
    def defaults(self) -> dict[str, Any]:
        """Default values that replace None in the constructor, by the name of the argument."""
        return DEFAULTS[self.task]

    @property
    def _parameter_constraints(self) -> dict[str, Any]:
        """Constraints by which scikit-learn checks the constructor arguments."""
        return constraints(self.target_kinds, len(REGISTERED))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the constructor arguments as a dict by name, as scikit-learn asks.

        Parameters
        ----------
        deep : bool
            Whether to add the fields of the parts that the arguments stand for, by names such as
            ``prior__scale`` and ``optimizer__schedule__final``.

        Returns
        -------
        dict
        """
        params: dict[str, Any] = super().get_params(deep=False)
        if deep:
            return nested_params(params, resolve_defaults(self.task, params).parts)
        return params

    def set_params(self, **params: Any) -> Self:
        """Set constructor arguments, or settings of parts by names such as ``prior__scale``.

        A part is replaced by one with the new field: ``set_params(prior="laplace",
        prior__scale=0.2)`` sets ``prior=LaplacePrior(0.2)``.

        Parameters
        ----------
        **params
            New values, by the names that `get_params` returns.

        Returns
        -------
        self

        Raises
        ------
        TypeError, ValueError
            For an unknown name, or a value that a part refuses; the learner is then unchanged.
        """
        old_params = self.get_params(deep=False)
        owner = f"estimator {self}"
        for name, value in update_nested(owner, old_params, params, self.task).items():
            setattr(self, name, value)
        return self

    def _fit(self, X: Any, y: Any, sample_weight: Any, exposure: Any = None) -> Self:
        """Fit the posterior, or continue from the last fit; the arguments are those of `fit`."""
        plan = check_plan(self, _shape(X) if self.inference is None else None)
        continued_by = ""
        if self.warm_start and hasattr(self, "estimator_"):
            continued_by = "fit with warm_start=True"
        posterior, data = self._infer(
            plan, X, y, sample_weight, continued_by, exposure=exposure
        )
        if posterior.interruption:
            warnings.warn(posterior.interruption, UserWarning, stacklevel=3)
            return self
        region = find_region(self._in_own_axes(data.training.x))
        self.fitted_ = replace(self.fitted_, training_region_=region)
        parts = plan.parts
        if posterior.recipe is not None:
            schedule = plan.schedule(len(data.training.x))
            parts = parts | {"usual_epochs": schedule.epochs}
            for name in ("optimizer", "batch_size", "samples"):
                parts[name] = getattr(posterior.recipe, name)
        try:
            report = diagnose_fit(
                self, data.resample_by_weight(), parts, posterior.history
            )
        except KeyboardInterrupt:
            warnings.warn(
                "Interrupted by user after the fit, which is complete; its quality was not "
                "measured, and there is no fit_report_",
                UserWarning,
                stacklevel=3,
            )
            return self
        self.fitted_ = replace(self.fitted_, fit_report_=report)
        if not report.passed:
            warnings.warn(report.message, ConvergenceWarning, stacklevel=3)
        return self

    def _partial_fit(
        self,
        X: Any,
        y: Any,
        epochs: int,
        sample_weight: Any,
        classes: Any = None,
        exposure: Any = None,
    ) -> Self:
        """Train for `epochs` more epochs; the first call starts from scratch, as `fit` does.

        `classes` (C,) are all labels of a classifier, or None for those in `y`. The other arguments
        are those of the public `partial_fit`.
        """
        epochs = STEPS("epochs", epochs)
        continued_by = "partial_fit" if hasattr(self, "estimator_") else ""
        posterior, _ = self._infer(
            check_plan(self),
            X,
            y,
            sample_weight,
            continued_by,
            classes,
            epochs,
            exposure,
        )
        if posterior.interruption:
            warnings.warn(posterior.interruption, UserWarning, stacklevel=3)
        return self

    def _infer(
        self,
        plan: Plan,
        X: Any,
        y: Any,
        sample_weight: Any,
        continued_by: str,
        classes: Any = None,
        epochs: int | None = None,
        exposure: Any = None,
    ) -> tuple[FittedPosterior, TrainingData]:
        """Fit a posterior or continue an earlier fit, store the result in `fitted_`, and return it.

        Parameters
        ----------
        plan : Plan
            The checked arguments.
        X, y, sample_weight
            Data and weights, as in `fit`.
        continued_by : str
            The method that continues the earlier fit, for messages; empty for a new fit.
        classes : array-like (C,), optional
            All labels of a new fit; by default those in `y`.
        epochs : int, optional
            Number of epochs of `partial_fit`. None is a call of `fit`, whose plan has the number.
        exposure : float or array-like (N,), optional
            Exposure over which the counts of each row were observed.

        Returns
        -------
        posterior : FittedPosterior
        data : TrainingData
            Rows in training's units.

        Raises
        ------
        NonFiniteError
            If training has ended with it; the last finite state is stored before it is raised.
        """
        is_fit = epochs is None
        if continued_by:
            state, data = self._next_problem(
                X, y, sample_weight, plan, continued_by, exposure
            )
        else:
            fraction = plan.parts["validation_fraction"] if is_fit else 0.0
            state, data = self._first_problem(
                X, y, sample_weight, plan, fraction, classes, exposure
            )
        problem = Problem(
            state.estimator_,
            data.training,
            data.held_out,
            state,
            plan.recipe(
                len(data.training.x),
                epochs,
                from_scratch=is_fit and not continued_by,
                stops_early=is_fit,
            ),
            int(self.verbose),
        )
        with warnings.catch_warnings():
            if self.inference is None:
                # Their remedies are settings of a sampler that the user has not chosen; the fit
                # report judges the chains
                warnings.filterwarnings("ignore", ".*(divergent|too large in)")
            if continued_by:
                posterior = plan.method.resume(
                    problem, state, state.rng_, self.progress
                )
            else:
                posterior = plan.method.fit(problem, state.rng_, self.progress)
        if posterior.is_changed or not hasattr(self, "estimator_"):
            self.fitted_ = posterior.update(state)
        if posterior.error is not None:
            raise posterior.error
        return posterior, data

    # The next four methods convert targets and predictions; each learner implements them

    def _first_targets(
        self, x: Array, y: Array, plan: Plan, classes: Any, counted: Array
    ) -> Targets:
        """Return targets (N, K) of a new fit, their likelihood, and fields that describe them.

        The fields are those of `FittedState`, such as `classes_`, as a dict.

        `x` and `y` are the checked inputs and targets or labels; `classes` (C,) are all labels, or
        None for those in `y`. Of `plan`, the parts that the constructor was given, 'likelihood' may
        be None, which stands for the default. Rows that are not `counted` (N,) have weight 0.
        """
        raise NotImplementedError

    def _next_targets(self, y: Array, dtype: Any) -> Array:
        """Return targets `y` (N,) or (N, K), or labels, as used in training: (N, K) in `dtype`."""
        raise NotImplementedError

    def _class_weights(
        self, weights: Array | None, y: Array, classes: Any
    ) -> Array | None:
        """Return `weights` (N,) of rows multiplied by the class weights of the rows' labels.

        None for `weights`, or returned, means that each row counts once. `y` (N, K) are targets as
        in training, `classes` (C,) all labels.
        """
        raise NotImplementedError

    def _like_y(self, array: Array) -> Array:
        """Return predictions `array` (N, K, ...), as (N, ...) if y in `fit` was one-dimensional.

        A classifier returns probabilities (N, C, ...) of all classes.
        """
        raise NotImplementedError

    # Methods that prepare a new fit, and the continuation of an earlier one

    def _first_problem(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        plan: Plan,
        fraction: float,
        classes: Any = None,
        exposure: Any = None,
    ) -> tuple[FittedState, TrainingData]:
        """Return the state of a new fit, not trained yet, and the checked and standardised rows.

        Parameters
        ----------
        X, y, sample_weight
            Data and weights, as in `fit`.
        plan : Plan
            The checked arguments.
        fraction : float
            Share of the rows to hold out, in [0, 1).
        classes : array-like (C,), optional
            All labels; by default those in `y`.
        exposure : float or array-like (N,), optional
            Exposure of each row.

        Raises
        ------
        ValueError
            For an exposure with a likelihood that has no log link.
        """
        # `noted` is a new learner on which scikit-learn sets n_features_in_ and the like, since
        # `self` must not change if the data are refused
        noted = type(self)()
        table: dict[str, Any] = {}
        if hasattr(X, "columns"):  # a data frame
            X, table = encode_table(X)
        x, y = check_pair(noted, X, y, first=True, labels=self.task == "classification")
        n_inputs = x.shape[1]
        has_exposure = exposure is not None
        if has_exposure and not getattr(plan.parts["likelihood"], "log_link", False):
            raise ValueError(
                "exposure is for counts, whose rate it multiplies; got likelihood="
                f"{plan.params['likelihood']!r}. Use likelihood='poisson', or leave exposure out"
            )
        if has_exposure:
            x = np.column_stack([x, check_exposure(exposure, x)])
        weights = check_weights(sample_weight, x)
        counted = np.ones(len(x), bool) if weights is None else weights > 0
        targets, likelihood, notes = self._first_targets(x, y, plan, classes, counted)
        rows = self._weighted_rows(
            x, targets, sample_weight, notes.get("classes_"), plan
        )
        rng = check_generator(self.random_state)
        predict_seed = int(rng.integers(2**63))
        real = self.standardize and likelihood.target_kind == "real"
        data = prepare_rows(
            rows,
            fraction,
            rng,
            self.standardize,
            real,
            plan.parts["dtype"],
            real and plan.method.rotates_inputs(plan.parts["prior"]),
            has_exposure,
        )
        settings: dict[str, Any] = {"offset": has_exposure}
        if getattr(likelihood, "log_link", False):
            settings["ceiling"] = largest_log_rate(data.training, has_exposure)
        estimator = plan.build(n_inputs, targets.shape[1], likelihood, **settings)
        state = replace(
            noted.fitted_,
            estimator_=estimator,
            inference_=plan.parts["inference"],
            rng_=rng,
            predict_seed_=predict_seed,
            **(notes | data.units | table),
        )
        return state, data

    def _next_problem(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        plan: Plan,
        caller: str,
        exposure: Any,
    ) -> tuple[FittedState, TrainingData]:
        """Return the state of the earlier fit, and new rows standardised as those of that fit.

        Parameters
        ----------
        X, y, sample_weight
            Data and weights, as in `fit`.
        plan : Plan
            The present arguments, which must describe the model of the earlier fit.
        caller : str
            Name of the method that was called, for messages.
        exposure : float or array-like (N,) or None
            Exposure of each row, if the earlier fit had one.

        Raises
        ------
        ValueError
            If the model or the kind of inference has changed.
        """
        samples = plan.method.is_sampled
        if hasattr(self, "draws_") != samples:
            mismatch = f"draws of its posterior, which {caller} cannot train further"
            if samples:
                mismatch = (
                    f"a trained posterior, which {caller} cannot continue by sampling"
                )
            remedy = "call fit to start anew"
            if self.inference is None:  # whose next fit might draw again
                remedy = (
                    f"set inference='mean-field' and warm_start=False, and {remedy}"
                )
            raise ValueError(f"the model holds {mismatch}; {remedy}")
        classes = self.fitted_.classes_
        rows = self._weighted_rows(
            *self._check_pair(X, y, exposure), sample_weight, classes, plan
        )
        old_network = self.estimator_.model.network
        ceiling = old_network.ceiling
        if ceiling < inf:
            ceiling = max(ceiling, largest_log_rate(rows, old_network.offset))
        estimator = self._same_model(plan, caller, ceiling)
        rng = copy.deepcopy(self.rng_)
        state = replace(self.fitted_, estimator_=estimator, rng_=rng)
        return state, TrainingData(rows, None, {})

    def _weighted_rows(
        self, x: Array, y: Array, sample_weight: Any, classes: Any, plan: Plan
    ) -> Rows:
        """Return rows with sample weight times class weight, without rows of weight 0 (D45).

        `x` (N, d_in) and `y` (N, K) are inputs and targets, `classes` (C,) the labels of a
        classifier or None, and `sample_weight` (N,) or None. Warn if two or more weights sum to 1,
        unless the objective of `plan` is MLE, for which only their ratios matter.
        """
        weights = None
        if sample_weight is not None:
            weights = check_weights(sample_weight, x)
        if classes is not None:
            weights = self._class_weights(weights, y, classes)
        if weights is None:
            return Rows(x, y)
        count = np.count_nonzero(weights)
        sums_to_one = count > 1 and abs(weights.sum() - 1.0) < 1e-6
        if sums_to_one and not isinstance(plan.parts["objective"], MLE):
            warnings.warn(
                f"sample_weight sums to 1, so that all {count} rows together count as one row "
                "against the prior. If only the ratios of the weights are meant, as by "
                "AdaBoostClassifier, use inference='mle', or multiply them by the number of rows",
                UserWarning,
                stacklevel=6,
            )
        return Rows(x, y, weights.astype(x.dtype)).at(weights > 0)

    def _same_model(self, plan: Plan, caller: str, ceiling: float) -> Estimator:
        """Return the estimator of the present arguments; raise ValueError if the model has changed.

        `plan` are the present arguments; `caller` is the method named in the message; `ceiling` is
        that of the network's predictions.
        """
        old: Any = self.estimator_
        likelihood = plan.parts["likelihood"] or old.model.likelihood
        n_features = old.model.network.sizes[0]
        target = self.fitted_.target_ or "identity"
        new: Any = plan.build(
            n_features,
            old.model.outputs,
            likelihood,
            offset=old.model.network.offset,
            ceiling=ceiling,
        )
        same = new.model == old.model and plan.parts["dtype"] == self.theta_.dtype
        same = same and plan.params.get("target", target) in (target, "auto", None)
        if same and not plan.method.is_sampled:
            needed = plan.parts["optimizer"].init(self.theta_).arrays.keys()
            same = needed == self.training_.optimizer_state.arrays.keys()
            same = same and type(new.posterior) is type(old.posterior)
        if not same:
            raise ValueError(
                f"the model has changed since it was fitted, so that {caller} cannot continue "
                "from it; set hidden_layer_sizes, activation, prior, likelihood, target, "
                "inference, dtype and the kind of optimizer back, or call fit to start anew"
            )
        return new

    # The methods below predict with a fitted learner, or help to

    def _check_rows(self, X: Any, exposure: Any = None) -> Array:
        """Check inputs `X` (N, d_in), and return them standardised as in `fit`.

        With exposures, 1 by default, their offset is another column.
        """
        check_is_fitted(self)
        return self._in_units(check_inputs(self, X), exposure)

    def _in_units(self, x: Array, exposure: Any = None) -> Array:
        """Return inputs `x` (N, d_in) standardised, and rotated if those of training were.

        If the learner was fitted with exposures, the offset is another column; None stands for 1.
        """
        x = standardise(x, self.x_mean_, self.x_scale_, self.theta_.dtype, "X")
        if hasattr(self, "x_axes_"):
            x = (x @ self.x_axes_).astype(x.dtype)  # along principal axes (D60)
        if hasattr(self, "exposure_scale_"):
            exposure = check_exposure(1.0 if exposure is None else exposure, x)
            return append_offset(x, exposure, self.exposure_scale_)
        if exposure is not None:
            raise ValueError(
                "exposure was not given to fit, so that predictions cannot use it; fit with "
                "exposure, or leave it out"
            )
        return x

    def _check_predicts(self) -> None:
        """Predict one row, to raise an error if fitted attributes read from a file do not match."""
        targets = Numbers((self.estimator_.model.outputs,))
        for name in ("y_mean_", "y_scale_"):
            targets(name, getattr(self, name))
        self._posterior_predict(
            predictive.sample_functions, self._in_units(self.x_mean_[None]), samples=1
        )

    def _need_finite(self, quantity: str, values: Array, x: Array) -> None:
        """Raise ValueError if `values` (N, ...) overflow, naming the first such row of X.

        `quantity` is their name in the message, `x` (N, d_in) the inputs in training's units.
        """
        if not np.isfinite(values).all():
            check_finite(quantity, values, self._in_own_axes(x))

    def _in_own_axes(self, x: Array) -> Array:
        """Return inputs `x` in training's units without offset, and not rotated: (N, d_in)."""
        x = self.estimator_.model.network.without_offset(x)
        if hasattr(self, "x_axes_"):
            return x @ self.x_axes_.T  # (D60)
        return x

    def encode(self, X: Any) -> Array:
        """Return the inputs (N, d_in) of the network before standardisation, columns encoded.

        Parameters
        ----------
        X : array-like (N, d_in) or DataFrame
            Inputs. The names of what is returned are `get_feature_names_out()`.
        """
        check_is_fitted(self)
        return check_inputs(self, X)

    def novelty(self, X: Any) -> Novelty:
        """Return which rows are unlike the training rows, and in which column (D74).

        A row is outside if a column lies beyond the range of the training rows by more than a
        margin, or if the columns together are farther from the training rows than these are from
        each other. Predictions there are extrapolations. Of rows from the law of the training rows
        at most 2 % are outside; of fewer than 99 training rows 2 / (N + 1).

        Parameters
        ----------
        X : array-like (N, d_in) or DataFrame
            Inputs.

        Returns
        -------
        Novelty
            `outside` (N,) and `column` (N,): the name of the column farthest beyond its range, or
            'combination of columns', or ''.

        Raises
        ------
        ValueError
            If the last call was not a `fit` that ended, or the model was saved by an earlier
            version, and for rows that cannot be used.
        """
        x = self._in_own_axes(self._check_rows(X))
        region = self.fitted_.training_region_
        if region is None:
            raise ValueError(
                "where the training rows lie is not known after partial_fit, after a fit that was "
                "interrupted, and of models saved by earlier versions; call fit again"
            )
        outside, inputs = region.judge(x)
        columns = list(self.get_feature_names_out())
        if hasattr(self, "columns_"):
            columns = [column.name for column in self.columns_ for _ in column.features]
        names = np.array([*columns, COMBINATION], dtype=object)[inputs]
        return Novelty(outside, np.where(outside, names, ""))

    def _check_pair(self, X: Any, y: Any, exposure: Any = None) -> tuple[Array, Array]:
        """Check the data, and return X (N, columns) in training's units, and y as (N, K)."""
        x, targets = self._check_data(X, y, exposure)
        return x, self._next_targets(targets, x.dtype)

    def _check_data(self, X: Any, y: Any, exposure: Any) -> tuple[Array, Array]:
        """Check the data, and return X (N, columns) in training's units, and y as it came."""
        check_is_fitted(self)
        x, targets = check_pair(
            self, X, y, first=False, labels=self.task == "classification"
        )
        self._need_exposure(exposure)
        return self._in_units(x, exposure), targets

    def _need_exposure(self, exposure: Any) -> None:
        """Raise ValueError if the learner was fitted with exposures, and `exposure` is None."""
        if hasattr(self, "exposure_scale_") and exposure is None:
            raise ValueError(
                "exposure is missing: the model was fitted with one, and y holds counts; give the "
                "exposure over which they were counted, such as exposure=1.0"
            )

    @np.errstate(over="ignore", invalid="ignore")
    def _posterior_predict(
        self, function: Callable[..., Any], x: Array, *arguments: Any, **changes: Any
    ) -> Any:
        """Return `function` of the fitted posterior at standardised inputs, in training's units.

        `function` is one such as `evaluation.predict`; `arguments` follow `x`, and `changes`
        replace the keywords `rng` and `samples`.
        """
        samples = self.predict_samples or self.defaults["predict_samples"]
        if isinstance(getattr(self.estimator_, "posterior", None), PointMass):
            samples = 1
        options = {
            "rng": np.random.default_rng(self.predict_seed_),
            "samples": samples,
            **changes,
        }
        return function(self.estimator_, self.theta_, x, *arguments, **options)

    def sample_functions(
        self,
        X: Any,
        n_samples: int = 1,
        random_state: Any = None,
        exposure: Any = None,
    ) -> Array:
        """Draw functions from the posterior, and return their values at `X`, without noise of y.

        Parameters
        ----------
        X : array-like (N, d_in)
            Inputs.
        n_samples : int
            Number of functions S.
        random_state : None, int, numpy.random.Generator or numpy.random.RandomState
            Source of the draws. By default the functions are among those that `predict` averages,
            the same at every call.
        exposure : float or array-like (N,), optional
            Exposure of each row, if `fit` had one; by default 1, for which functions are rates.

        Returns
        -------
        ndarray (N, S) or (N, K, S)
            Values E[y|x, w] in units of y. For a classifier the probability of each class,
            P(y|x, w): (N, C, S).
        """
        draw = self.fitted_.units.sample_functions
        return self._sample(draw, X, n_samples, random_state, exposure)

    def log_predictive_density(self, X: Any, y: Any, exposure: Any = None) -> Array:
        """Return the log predictive density log P(y|x, D) of each row, in nats (D5).

        Parameters
        ----------
        X : array-like (N, d_in)
            Inputs.
        y : array-like (N,) or (N, K)
            Targets as for `fit`.
        exposure : float or array-like (N,), optional
            Exposure of each row; needed if `fit` had one.

        Returns
        -------
        ndarray (N,)
            Log densities of y in its own units; for classes and counts, log probabilities. Where
            log y is modelled (``target_ == "log"``) that of y <= 0 is -inf.
        """
        x, y = self._check_data(X, y, exposure)
        impossible = self.fitted_.units.impossible(y)  # of y's shape
        possible = y.copy()
        possible[impossible] = 1.0
        log_density = self._log_density(x, self._next_targets(possible, x.dtype))
        log_density[impossible.reshape(len(y), -1).any(axis=1)] = -inf
        return log_density

    def _log_density(self, x: Array, targets: Array) -> Array:
        """Return the log density (N,) of y in its own units, of standardised `x` and `targets`."""
        log_density: Array = self._posterior_predict(
            predictive.log_predictive_density, x, targets
        )
        self._need_finite("the log density of y", log_density, x)
        # The density of y is that of the standardised target z times dz/dy
        return log_density + self.fitted_.units.log_slope(targets)

    @np.errstate(over="ignore", invalid="ignore")
    def _sample(
        self,
        draw: Any,
        X: Any,
        n_samples: int,
        random_state: Any,
        exposure: Any = None,
    ) -> Array:
        """Draw functions or targets at `X`, in units of y, with S = `n_samples` weight vectors.

        `draw` is `sample_functions` or `sample_targets` of the `TargetUnits`. The result is (N, S)
        or (N, K, S), for a classifier (N, C, S).
        """
        x = self._check_rows(X, exposure)
        changes: dict[str, Any] = {
            "samples": whole("n_samples", n_samples, 1, MAX_SAMPLES)
        }
        if random_state is not None:
            changes["rng"] = check_generator(random_state)
        drawn = self._posterior_predict(draw, x, **changes)  # (S, N, K) values
        drawn = np.moveaxis(drawn, 0, -1)
        self._need_finite("a function drawn from the posterior", drawn, x)
        return self._like_y(drawn)
