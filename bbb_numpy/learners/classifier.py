"""A Bayesian MLP for classes, a scikit-learn estimator."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..evaluation import predictive
from ..evaluation.predictive import ClassPredictive
from ..evaluation.quantiles import check_levels, likely_classes
from ..model.joint import Likelihood
from ..numeric.layout import Array
from ..numeric.validation import short_repr
from ..parts.discrete import BernoulliLikelihood, CategoricalLikelihood
from .base import (
    ClassifierMixin,
    Learner,
    Targets,
    available_if_trained,
    check_first_classes,
    compute_class_weight,
)
from .plan import Plan
from .rows import check_weights

__all__ = ["BayesianMLPClassifier"]

# Log probabilities of smaller ones are computed from the outputs of the network
MIN_EXACT_PROBABILITY = 1e-8


@dataclass(eq=False, repr=False, kw_only=True)
class BayesianMLPClassifier(ClassifierMixin, Learner):
    """Bayesian multilayer perceptron for classes, by variational inference or sampling.

    Probabilities are averages over the posterior of the weights. Their entropy splits into
    what more data would tell (epistemic) and what they would not (aleatoric).

    Parameters
    ----------
    {parameters of Learner}
    class_weight : dict of label to weight, or 'balanced', default=None
        Weight of the rows of each class, by which their `sample_weight` is multiplied. By default
        all have weight 1, as have labels that a dict does not name; 'balanced' gives every class
        the same total, and all together that of the rows. Use it when rare classes matter as much
        as frequent ones. `partial_fit` takes a dict, but not 'balanced'.

    Attributes
    ----------
    classes_ : ndarray (C,)
        The labels, sorted, in the type that they have in y; the order of all probabilities.
    theta_, estimator_, training_, draws_, n_iter_, history_, ... :
        As those of `BayesianMLPRegressor`, which has `noise_scale_`, `n_outputs_`, `y_ndim_` too.

    Notes
    -----
    Labels may be text, whole numbers, truth values, or of any type that can be sorted. For the rest
    see `BayesianMLPRegressor`.

    {schedules}
    """

    class_weight: Any = None

    task: ClassVar[str] = "classification"
    target_kinds: ClassVar[tuple[str, ...]] = ("class",)

    @available_if_trained
    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: Any = None,
        epochs: int = 1,
        sample_weight: Any = None,
    ) -> BayesianMLPClassifier:
        """Continue training, with the optimizer's state and the generator as they were left.

        The first call sets the standardisation, as `fit` does. There is no such method for a
        sampled posterior, nor for Laplace's.

        Parameters
        ----------
        X, y : array-like (N, d_in), (N,)
            With as many columns as before.
        classes : array-like (C,)
            All labels that will ever occur; needed in the first call, optional later.
        epochs : int
            Number of passes over these rows, >= 1.
        sample_weight : array-like (N,), optional
            How often each row counts, as in `fit`.

        Returns
        -------
        self

        Raises
        ------
        TypeError, ValueError, NonFiniteError
            As `fit`; also when `classes` are missing or change, for a label that is not among them,
            and when arguments that shape the model have been changed since.
        """
        if self.class_weight == "balanced":
            raise ValueError(
                "class_weight='balanced' is not for partial_fit, which sees only some of the rows: "
                "pass weights as {label: weight}, from sklearn.utils.compute_class_weight"
            )
        # the check notes the classes, on a copy: the data may yet be wrong
        check_first_classes(copy.copy(self), classes)
        if classes is not None:
            classes = np.unique(classes)
        return self._partial_fit(X, y, epochs, sample_weight, classes)

    def _class_weights(
        self, weights: Array | None, y: Array, classes: Any
    ) -> Array | None:
        """Return sample weight times class weight (N,), or None where both are 1."""
        if self.class_weight is None:
            return weights
        codes = y.argmax(axis=1)
        if y.shape[1] == 1:
            codes = y[:, 0].astype(np.intp)
        if self.class_weight == "balanced":
            totals = np.bincount(codes, weights, minlength=len(classes))
            occurs = totals > 0
            equal = totals.sum() / np.count_nonzero(occurs)
            ones = np.ones(len(totals))
            of_class = np.divide(equal, totals, out=ones, where=occurs)
        else:
            of_class = compute_class_weight(
                self.class_weight, classes=classes, y=classes
            )
        of_row = of_class[codes]
        if weights is not None:
            of_row = of_row * weights
        return check_weights(of_row, y)

    def predict(self, X: Any) -> Array:
        """Return the most probable label of each row (N,), in the type of the labels."""
        codes = self.predict_proba(X).argmax(axis=1)  # raises if there is no fit
        return self.classes_[codes]

    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each class (N, C), in the order of `classes_`."""
        return self.predict_distribution(X).proba

    def predict_log_proba(self, X: Any) -> Array:
        """Return log probabilities (N, C), also of classes whose probability rounds to 0."""
        x = self._check_rows(X)
        proba = self._distribution(x).proba
        logs = np.log(np.where(proba > 0, proba, 1.0))
        # where 1 - p has lost its digits, or exp(logit) is 0
        for code, p in enumerate(proba.T):
            rows = np.flatnonzero(p < MIN_EXACT_PROBABILITY)
            if rows.size:
                labels = self.classes_[np.full(len(rows), code)]
                targets = self._next_targets(labels, x.dtype)
                logs[rows, code] = self._log_density(x[rows], targets)
        return logs

    def predict_set(self, X: Any, coverage: float = 0.9) -> NDArray[np.bool_]:
        """Return the smallest sets of classes that hold the true one with this probability (D46).

        The most probable classes of each row, until together they have the probability `coverage`:
        what `predict_interval` of the regressor is to numbers.

        Parameters
        ----------
        X : array-like (N, d_in)
        coverage : float
            Probability between 0 and 1.

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
        proba, aleatoric = self._posterior_predict(predictive.predict_classes, x)
        self._need_finite("the prediction", proba, x)
        proba = proba.astype(np.float64)
        proba /= proba.sum(axis=1, keepdims=True)  # exactly, also from float32
        return ClassPredictive(proba, aleatoric.astype(np.float64))

    def _like_y(self, array: Array) -> Array:
        """Return probabilities (N, C, ...) of all classes; one logit has that of the second."""
        if array.shape[1] == 1:
            return np.concatenate([1.0 - array, array], axis=1)
        return array

    def _first_targets(self, y: Array, plan: Plan, classes: Any) -> Targets:
        if classes is None:
            classes = np.unique(y)
        if len(classes) < 2:
            raise ValueError(
                f"y has only one class, {classes.tolist()[0]!r}: every probability would be 1 "
                "whatever the inputs, so there is nothing to learn. Give rows of at least two "
                "classes, or name all of them in partial_fit(X, y, classes=...)"
            )
        likelihood = plan.parts["likelihood"]
        if likelihood is None:
            likelihood = (
                BernoulliLikelihood() if len(classes) == 2 else CategoricalLikelihood()
            )
        if isinstance(likelihood, BernoulliLikelihood) and len(classes) > 2:
            raise ValueError(
                f"a Bernoulli likelihood has two classes; y has {len(classes)}: "
                f"{short_repr(classes.tolist())}. Use likelihood='categorical', or None"
            )
        return _encoded(y, classes, likelihood), likelihood, {"classes_": classes}

    def _next_targets(self, y: Array, dtype: Any) -> Array:
        return _encoded(y, self.classes_, self.estimator_.model.likelihood).astype(
            dtype
        )


def _encoded(labels: Array, classes: Array, likelihood: Likelihood) -> Array:
    """Return targets (N, 1) of 0 and 1 for one logit, or one-hot rows (N, C)."""
    codes = np.searchsorted(classes, labels).clip(max=len(classes) - 1)
    # a number is not equal to text, though searched as text
    is_known = np.asarray(classes[codes] == labels)
    if not is_known.all():
        row = int(np.argmin(is_known))
        raise ValueError(
            f"y holds the label {labels.tolist()[row]!r} at row {row}, which is not among the "
            f"classes {short_repr(classes.tolist())}"
        )
    if isinstance(likelihood, BernoulliLikelihood):
        return codes[:, None].astype(np.float64)
    return np.eye(len(classes))[codes]
