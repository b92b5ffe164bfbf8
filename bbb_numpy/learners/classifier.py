"""A Bayesian MLP for classes, a scikit-learn estimator."""

from __future__ import annotations

from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..evaluation import predictive
from ..evaluation.predictive import ClassPredictive
from ..evaluation.quantiles import check_levels, likely_classes
from ..model.joint import Likelihood
from ..numeric.validation import MOST_STEPS, whole
from ..parts.discrete import BernoulliLikelihood, CategoricalLikelihood
from .base import ClassifierMixin, Learner, Targets, check_consistent_length, trains
from .cautions import need_finite
from .plan import CLASSIFICATION, Plan
from .rows import (
    check_labels,
    check_weights,
    class_weights,
    codes,
    distinct,
    label_type,
    refuse_dates,
)

__all__ = ["BayesianMLPClassifier"]

Array = NDArray[Any]


class BayesianMLPClassifier(ClassifierMixin, Learner):
    """Bayesian multilayer perceptron for classes, by variational inference or sampling.

    Probabilities are averages over the posterior of the weights. Their entropy splits into
    what more data would tell (epistemic) and what they would not (aleatoric).

    Parameters
    ----------
    {parameters of Learner}
    class_weight : dict of label to weight, or 'balanced', default=None
        By which the rows of a class count, times their `sample_weight`. Labels that a dict
        does not name have weight 1; 'balanced' gives every class the same total, and all
        together that of the rows. Not for `partial_fit`, to which a dict can be given.

    Attributes
    ----------
    classes_ : ndarray (C,)
        The labels, sorted, in the type they were given in; the order of all probabilities.
    theta_, estimator_, training_, draws_, history_, n_iter_ : optional
    loss_curve_, loss_, coefs_, intercepts_, feature_importances_, fit_report_ : optional
        As of `BayesianMLPRegressor`.
    n_features_in_ : int
    feature_names_in_ : ndarray (d_in,) of str
        Only after fitting a data frame with text column names.
    x_mean_, x_scale_ : ndarray (d_in,)
        Shift and scale of inputs.

    Notes
    -----
    As `BayesianMLPRegressor`: arguments are checked by `fit`, and a call that fails leaves an
    earlier fit as it was.

    Labels may be text, whole numbers, truth values, or of any type that can be sorted.
    """

    task = CLASSIFICATION
    classes_: Array

    def __init__(
        self,
        hidden_layer_sizes: Any = None,
        *,
        activation: str = "relu",
        prior: Any = None,
        likelihood: Any = None,
        inference: Any = "mean-field",
        gradient_estimator: Any = None,
        objective: Any = None,
        kl_weights: Any = None,
        kl_warm_up: Any = None,
        optimizer: Any = None,
        epochs: int | None = None,
        batch_size: int = 32,
        samples: int | None = None,
        predict_samples: int | None = None,
        standardize: bool = True,
        class_weight: Any = None,
        early_stopping: Any = None,
        validation_fraction: float = 0.0,
        dtype: Any = "float64",
        random_state: Any = None,
        progress: bool | None = None,
        verbose: Any = False,
        warm_start: bool = False,
    ) -> None:
        """Take note of the settings; `fit` checks them."""
        given = locals()
        settings = {name: given[name] for name in signature(Learner.__init__).parameters}
        super().__init__(**{name: one for name, one in settings.items() if name != "self"})
        self.class_weight = class_weight

    @trains
    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: Any = None,
        epochs: int = 1,
        sample_weight: Any = None,
    ) -> BayesianMLPClassifier:
        """Go on training, with the optimizer's memory and the generator as they were left.

        Not with a sampled posterior. The first call sets the standardisation, as `fit` does.

        Parameters
        ----------
        X, y : array-like (N, d_in), (N,)
        classes : array-like (C,)
            All labels that will ever occur; needed in the first call, optional later.
        epochs : int
            Passes over these rows, >= 1.
        sample_weight : array-like (N,), optional
            How often each row counts, as in `fit`.

        Returns
        -------
        self

        Raises
        ------
        TypeError, ValueError, NonFiniteError
            As `fit`; also when `classes` are missing or change, for a label that is not among
            them, and when arguments that shape the model were changed.
        """
        plan = self._plan_to_go_on()
        if isinstance(self.class_weight, str) and self.class_weight == "balanced":
            raise ValueError(
                "class_weight='balanced' is not for partial_fit, which sees only some of the rows: "
                "pass weights as {label: weight}, from sklearn.utils.compute_class_weight"
            )
        epochs = whole("epochs", epochs, 1, MOST_STEPS)
        named = None if classes is None else distinct(check_labels(classes, "classes"), "classes")
        if "training_" in self.__dict__:
            if named is not None and not np.array_equal(named, self.classes_):
                raise ValueError(
                    f"classes {_some(named)} are not those of the first call, "
                    f"{_some(self.classes_)}; call fit to start anew"
                )
            return self._go_on(X, y, plan, epochs, sample_weight)
        if named is None:
            raise ValueError(
                "classes must be passed on the first call to partial_fit, since later rows may "
                "have labels that these have not: partial_fit(X, y, classes=np.unique(all_labels))"
            )

        def read() -> Targets:
            return self._targets(check_labels(y), named, plan)

        fitted, data = self._begin(X, read, plan, sample_weight, held_out=False)
        return self._train(fitted, data, plan.recipe_to_go_on(epochs), plan.progress)

    def _weights(
        self, sample_weight: Any, x: Array, y: Array, fitted: dict[str, Any]
    ) -> Array | None:
        """Return sample weight times class weight (N,), or None where both are 1."""
        weights = super()._weights(sample_weight, x, y, fitted)
        if self.class_weight is None:
            return weights
        places = y[:, 0].astype(np.intp) if y.shape[1] == 1 else y.argmax(axis=1)
        counts = np.bincount(places, weights, minlength=len(fitted["classes_"]))
        each = class_weights(self.class_weight, fitted["classes_"], counts)
        return check_weights(each[places] * (1.0 if weights is None else weights), x)

    def predict(self, X: Any) -> Array:
        """Return the most probable label of each row (N,), in the type of the labels."""
        places = np.argmax(self.predict_proba(X), axis=1)
        return self.classes_[places]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of rows, or of their weight, whose label `predict` finds.

        All rows right is exactly 1.0, whatever the weights: what is right is divided by the sum of
        what is right and what is wrong, each added up once.

        Parameters
        ----------
        X, y : array-like (N, d_in), (N,)
        sample_weight : array-like (N,), optional
            Finite and >= 0, not all 0.

        Raises
        ------
        TypeError, ValueError
            For weights of another length or that cannot be weights, and for labels of another type
            than those of `fit`. One of their type that `fit` has not seen is not found.
        """
        found = np.argmax(self.predict_proba(X), axis=1)
        places = self._known(check_labels(y), same_type=True)
        check_consistent_length(found, places)
        weight: Array = np.ones(len(found))
        if sample_weight is not None:
            refuse_dates(sample_weight)
            weight = np.asarray(sample_weight, np.float64)
            usable = weight.shape == found.shape and np.isfinite(weight).all() and weight.min() >= 0
            if not usable or not weight.any():
                raise ValueError(
                    f"sample_weight must be {len(found)} finite numbers >= 0, one for each row, "
                    f"and not all 0; got {_some(weight.ravel())} of shape {weight.shape}"
                )
            weight = weight / weight.max()  # so that no sum overflows
        right, wrong = weight[found == places].sum(), weight[found != places].sum()
        return float(right / (right + wrong))

    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each class (N, C), in the order of `classes_`."""
        return self.predict_distribution(X).proba

    def predict_log_proba(self, X: Any) -> Array:
        """Return log probabilities (N, C), also of classes whose probability rounds to 0."""
        x = self._check_rows(X)
        proba = self._distribution(x).proba
        logs = np.log(np.where(proba > 0, proba, 1.0))
        small = proba < 1e-8  # 1 - p has lost their digits, or exp(logit) is 0
        for place in np.flatnonzero(small.any(axis=0)):
            rows = np.flatnonzero(small[:, place])
            logs[rows, place] = self._log_density(x[rows], np.full(len(rows), place))
        return logs

    def predict_set(self, X: Any, coverage: float = 0.9) -> NDArray[np.bool_]:
        """Return the smallest sets of classes that hold the true one with this probability (D46).

        The most probable classes of each row, until together they have the probability `coverage`:
        what `predict_interval` of the regressor is to numbers.

        Parameters
        ----------
        X : array-like (N, d_in)
        coverage : float
            Between 0 and 1.

        Returns
        -------
        ndarray of bool (N, C)
            Whether each class of `classes_` is in the set of the row; at least one is.

        Raises
        ------
        TypeError, ValueError
            If `coverage` is no such number, and as `predict`.
        """
        levels = check_levels("coverage", coverage)
        if levels.ndim:
            raise ValueError(f"coverage must be one number; got {coverage!r}")
        return likely_classes(self.predict_proba(X), float(levels))

    def predict_distribution(self, X: Any) -> ClassPredictive:
        """Return class probabilities and the split of their entropy, in nats (D29).

        Parameters
        ----------
        X : array-like (N, d_in)

        Returns
        -------
        ClassPredictive
            `proba` (N, C), and (N,) each `aleatoric`, `epistemic` (the mutual information of
            class and weights) and `total`, their sum.
        """
        return self._distribution(self._check_rows(X))

    def _distribution(self, x: Array) -> ClassPredictive:
        """Return the distribution at standardised rows."""
        found = self._ask(predictive.predict_classes, x)
        need_finite("the prediction", found.proba, x)
        proba = found.proba.astype(np.float64)
        proba /= proba.sum(axis=1, keepdims=True)  # exactly, also from float32
        return ClassPredictive(proba, found.aleatoric.astype(np.float64))

    def sample_functions(self, X: Any, n_samples: int = 1, random_state: Any = None) -> Array:
        """Return class probabilities of single weight vectors drawn from the posterior.

        Parameters
        ----------
        X : array-like (N, d_in)
        n_samples : int
            Number of functions S.
        random_state : None, int, numpy.random.Generator or numpy.random.RandomState
            None gives the functions that `predict_proba` averages, the same at every call.

        Returns
        -------
        ndarray (N, C, S)
        """
        x, p = self._drawn(predictive.sample_functions, X, n_samples, random_state)
        drawn = np.moveaxis(p, 0, -1).astype(np.float64)  # (N, K, S)
        need_finite("a function drawn from the posterior", drawn, x)
        return np.concatenate([1.0 - drawn, drawn], axis=1) if drawn.shape[1] == 1 else drawn

    def log_predictive_density(self, X: Any, y: Any) -> Array:
        """Return log P(y|x, D) of each row (N,), in nats per row (D5).

        Raises
        ------
        ValueError
            Also for a label that is not among `classes_`.
        """
        x = self._check_rows(X)
        places = self._known(check_labels(y))
        check_consistent_length(x, places)
        return self._log_density(x, places)

    def _log_density(self, x: Array, places: NDArray[np.intp]) -> Array:
        """Return the log probability (N,) of the class at each of `places`."""
        targets = _encoded(places, len(self.classes_), self.estimator_.model.likelihood)
        found = self._ask(predictive.log_predictive_density, x, targets)
        need_finite("the log density of y", found, x)
        return found.astype(np.float64)

    def _first_targets(self, y: Any, plan: Plan) -> Targets:
        labels = check_labels(y)
        return self._targets(labels, distinct(labels), plan)

    def _targets(self, labels: Array, classes: Array, plan: Plan) -> Targets:
        likelihood = plan.likelihood
        if likelihood is None:
            likelihood = BernoulliLikelihood() if len(classes) == 2 else CategoricalLikelihood()
        if isinstance(likelihood, BernoulliLikelihood) and len(classes) > 2:
            raise ValueError(
                f"a Bernoulli likelihood has two classes; y has {len(classes)}: {_some(classes)}. "
                "Use likelihood='categorical', or None"
            )
        numbers = _encoded(self._known(labels, classes), len(classes), likelihood)
        return Targets(numbers, likelihood, False, {"classes_": classes})

    def _next_targets(self, y: Any, dtype: Any) -> Array:
        likelihood = self.estimator_.model.likelihood
        encoded = _encoded(self._known(check_labels(y)), len(self.classes_), likelihood)
        return encoded.astype(dtype)

    def _known(
        self, labels: Array, classes: Array | None = None, same_type: bool = False
    ) -> NDArray[np.intp]:
        """Return the place of each label among the classes, or name the first that has none.

        If it only has to be of the same type, its place is -1.
        """
        classes = self.classes_ if classes is None else classes
        places = codes(labels, classes)
        alike = same_type and label_type(labels[0]) == label_type(classes[0])
        if (places < 0).any() and not alike:
            row = int(np.argmin(places))
            raise ValueError(
                f"y holds the label {labels.tolist()[row]!r} at row {row}, which is not among the "
                f"classes {_some(classes)}"
            )
        return places


def _encoded(places: NDArray[np.intp], classes: int, likelihood: Likelihood) -> Array:
    """Return targets (N, 1) of 0 and 1 for one logit, or one-hot rows (N, C)."""
    if isinstance(likelihood, BernoulliLikelihood):
        return places[:, None].astype(np.float64)
    return np.eye(classes)[places]


def _some(labels: Array) -> str:
    """List a few labels."""
    shown = ", ".join(map(repr, labels[:5].tolist()))
    return f"[{shown}, ...]" if len(labels) > 5 else f"[{shown}]"
