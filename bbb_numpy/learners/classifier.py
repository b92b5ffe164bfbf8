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


@dataclass(eq=False, repr=False, kw_only=True)
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
    theta_, estimator_, training_, draws_, n_iter_, history_, ... :
        As of `BayesianMLPRegressor`, but for `noise_scale_`, `n_outputs_`, `y_ndim_`.

    Notes
    -----
    As `BayesianMLPRegressor`. Labels may be text, whole numbers, truth values, or of any type that
    can be sorted.

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
        """Go on training, as `BayesianMLPRegressor.partial_fit`.

        Parameters
        ----------
        X, y : array-like (N, d_in), (N,)
        classes : array-like (C,)
            All labels that will ever occur; needed in the first call, optional later. ValueError
            when they are missing or change, and for a label that is not among them.
        epochs, sample_weight
            As of `BayesianMLPRegressor.partial_fit`.
        """
        if self.class_weight == "balanced":
            raise ValueError(
                "class_weight='balanced' is not for partial_fit, which sees only some of the rows: "
                "pass weights as {label: weight}, from sklearn.utils.compute_class_weight"
            )
        # which takes note of the classes, should the data be wrong
        noted = copy.copy(self)
        check_first_classes(noted, classes)
        named = None if classes is None else np.unique(classes)
        return self._partial_fit(X, y, epochs, sample_weight, named)

    def _class_weights(
        self, weights: Array | None, y: Array, classes: Any
    ) -> Array | None:
        """Return sample weight times class weight (N,), or None where both are 1."""
        if self.class_weight is None:
            return weights
        places = y[:, 0].astype(np.intp) if y.shape[1] == 1 else y.argmax(axis=1)
        if self.class_weight == "balanced":
            counts = np.bincount(places, weights, minlength=len(classes))
            occurs = counts > 0
            equal = counts.sum() / np.count_nonzero(occurs)
            each = np.divide(equal, counts, out=np.ones(len(counts)), where=occurs)
        else:
            each = compute_class_weight(self.class_weight, classes=classes, y=classes)
        return check_weights(each[places] * (1.0 if weights is None else weights), y)

    def predict(self, X: Any) -> Array:
        """Return the most probable label of each row (N,), in the type of the labels."""
        places = self.predict_proba(X).argmax(axis=1)
        return self.classes_[places]

    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each class (N, C), in the order of `classes_`."""
        return self.predict_distribution(X).proba

    def predict_log_proba(self, X: Any) -> Array:
        """Return log probabilities (N, C), also of classes whose probability rounds to 0."""
        x = self._check_rows(X)
        proba = self._distribution(x).proba
        logs = np.log(np.where(proba > 0, proba, 1.0))
        # where 1 - p has lost its digits, or exp(logit) is 0
        for rows, place in (
            (np.flatnonzero(p < 1e-8), place) for place, p in enumerate(proba.T)
        ):
            if rows.size:
                targets = self._next_targets(
                    self.classes_[np.full(len(rows), place)], x.dtype
                )
                logs[rows, place] = self._log_density(x[rows], targets)
        return logs

    def predict_set(self, X: Any, coverage: float = 0.9) -> NDArray[np.bool_]:
        """Return the smallest sets of classes that hold the true one with this probability (D46).

        The most probable classes of each row, until together they have the probability `coverage`:
        what `predict_interval` of the regressor is to numbers.

        Returns
        -------
        ndarray of bool (N, C)
            Whether each class of `classes_` is in the set of the row; at least one is.
        """
        levels = check_levels("coverage", coverage)
        if levels.ndim:
            raise ValueError(f"coverage must be one number; got {coverage!r}")
        return likely_classes(self.predict_proba(X), float(levels))

    def predict_distribution(self, X: Any) -> ClassPredictive:
        """Return class probabilities and the split of their entropy, in nats (D29).

        Returns
        -------
        ClassPredictive
            `proba` (N, C), and (N,) each `aleatoric`, `epistemic` (the mutual information of
            class and weights) and `total`, their sum.
        """
        return self._distribution(self._check_rows(X))

    def _distribution(self, x: Array) -> ClassPredictive:
        """Return the distribution at standardised rows."""
        found = self._posterior_predict(predictive.predict_classes, x)
        self._need_finite("the prediction", found.proba, x)
        proba = found.proba.astype(np.float64)
        proba /= proba.sum(axis=1, keepdims=True)  # exactly, also from float32
        return ClassPredictive(proba, found.aleatoric.astype(np.float64))

    def _like_y(self, array: Array) -> Array:
        return (
            np.concatenate([1.0 - array, array], axis=1)
            if array.shape[1] == 1
            else array
        )

    def _first_targets(self, y: Array, plan: Plan, classes: Any) -> Targets:
        classes = np.unique(y) if classes is None else classes
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
    places = np.searchsorted(classes, labels).clip(max=len(classes) - 1)
    # a number is no text, though searched as one
    known = np.asarray(classes[places] == labels)
    if not known.all():
        row = int(np.argmin(known))
        raise ValueError(
            f"y holds the label {labels.tolist()[row]!r} at row {row}, which is not among the "
            f"classes {short_repr(classes.tolist())}"
        )
    if isinstance(likelihood, BernoulliLikelihood):
        return places[:, None].astype(np.float64)
    return np.eye(len(classes))[places]
