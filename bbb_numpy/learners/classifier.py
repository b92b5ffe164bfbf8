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

# log probabilities below log of this are computed from the network's outputs, not from rounded
# probabilities
MIN_EXACT_PROBABILITY = 1e-8


@dataclass(eq=False, repr=False, kw_only=True)
class BayesianMLPClassifier(ClassifierMixin, Learner):
    """Bayesian multilayer perceptron for classes, by variational inference or sampling.

    Probabilities are averages over the posterior of the weights. Their entropy splits into an
    epistemic part, which falls with more data, and an aleatoric part, which does not.

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

    {defaults}

    {schedules}
    """

    class_weight: Any = None

    task: ClassVar[str] = "classification"
    target_kinds: ClassVar[tuple[str, ...]] = ("class",)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> BayesianMLPClassifier:
        """Fit the posterior of the weights; with ``warm_start=True`` continue from the last fit.

        Parameters
        ----------
        X : array-like (N, d_in) or DataFrame
            Inputs. Of a data frame, columns that are not numbers are encoded: categories and text
            as 0 and 1, dates as days; missing cells are filled in, and an input of 0 and 1 tells
            them (`columns.describe_columns`). Predictions then take data frames with these columns.
        y : array-like (N,)
            Labels of classes.
        sample_weight : array-like (N,), optional
            Number of times that each row counts, >= 0: 2 for a row that occurs twice, 0 for one
            that is left out (D45). By default each row counts once. The sum of the weights matters:
            it is the number of rows whose likelihood is weighed against the prior.

        Returns
        -------
        self

        Raises
        ------
        TypeError, ValueError
            For arguments or data that cannot be used; the learner is then unchanged.
        NonFiniteError
            If the free energy becomes nan or infinite; see the notes of the class.

        Warns
        -----
        UserWarning
            After Ctrl-C, or if more than 0.1 % of the draws diverged.
        ConvergenceWarning
            If the fit has failed. It names the likely cause and a remedy, from `fit_report_`.
        """
        return self._fit(X, y, sample_weight)

    @available_if_trained
    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: Any = None,
        epochs: int = 1,
        sample_weight: Any = None,
    ) -> BayesianMLPClassifier:
        """Continue training for `epochs` epochs on these rows; the first call starts training.

        The optimizer and the random generator continue too. The first call sets the
        standardisation, as `fit` does. The method does not exist for a sampled
        posterior and for Laplace's approximation.

        Parameters
        ----------
        X, y : array-like (N, d_in), (N,)
            Inputs, with as many columns as in earlier calls, and labels.
        classes : array-like (C,)
            All labels that will ever occur; needed in the first call, optional later.
        epochs : int
            Number of passes over these rows, >= 1.
        sample_weight : array-like (N,), optional
            Number of times that each row counts, as in `fit`.

        Returns
        -------
        self

        Raises
        ------
        TypeError, ValueError, NonFiniteError
            As `fit`; also if `classes` are missing or change, for a label that is not among them,
            and if arguments that define the model have changed since the last fit.
        """
        if self.class_weight == "balanced":
            raise ValueError(
                "class_weight must not be 'balanced' with partial_fit, which sees only some of the "
                "rows: pass weights as {label: weight}, e.g. those of "
                "sklearn.utils.class_weight.compute_class_weight"
            )
        # scikit-learn's check sets classes_: on a copy, since the data may still be refused
        check_first_classes(copy.copy(self), classes)
        if classes is not None:
            classes = np.unique(classes)
        return self._partial_fit(X, y, epochs, sample_weight, classes)

    def _class_weights(
        self, weights: Array | None, y: Array, classes: Any
    ) -> Array | None:
        """Return sample weights times class weights of the rows, (N,), or None if all are 1."""
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

    def predict(self, X: Any, return_novelty: bool = False) -> Any:
        """Return the most probable class label of each row.

        Parameters
        ----------
        X : array-like (N, d_in) or DataFrame
            Inputs.
        return_novelty : bool
            Whether to return also, for each row, whether it is unlike the training rows.

        Returns
        -------
        labels : ndarray (N,)
            Labels, in the type that they have in y.
        novelty : Novelty
            `outside` (N,) and `column` (N,), as `novelty` returns them, if `return_novelty`.
        """
        # predict_proba comes first, since it raises NotFittedError if the learner is not fitted
        codes = self.predict_proba(X).argmax(axis=1)
        if return_novelty:
            return self.classes_[codes], self.novelty(X)
        return self.classes_[codes]

    def predict_proba(self, X: Any) -> Array:
        """Return class probabilities (N, C) at rows `X`; columns are ordered as `classes_`."""
        return self.predict_distribution(X).proba

    def predict_log_proba(self, X: Any) -> Array:
        """Return log class probabilities (N, C) of rows `X`, finite even where one rounds to 0."""
        x = self._check_rows(X)
        proba = self._distribution(x).proba
        logs = np.log(np.where(proba > 0, proba, 1.0))
        # Small probabilities are inexact: they were computed as 1 - p of the other class, or by an
        # exp that has underflowed
        for code, p in enumerate(proba.T):
            rows = np.flatnonzero(p < MIN_EXACT_PROBABILITY)
            if rows.size:
                labels = self.classes_[np.full(len(rows), code)]
                targets = self._next_targets(labels, x.dtype)
                logs[rows, code] = self._log_density(x[rows], targets)
        return logs

    def predict_set(self, X: Any, coverage: float = 0.9) -> NDArray[np.bool_]:
        """Return the smallest set of classes of each row that has probability `coverage` (D46).

        Classes are added from the most probable one on until their probabilities sum to `coverage`.
        The sets correspond to the intervals of `BayesianMLPRegressor.predict_interval`.

        Parameters
        ----------
        X : array-like (N, d_in)
            Inputs.
        coverage : float
            Probability that a set must reach, in [0, 1].

        Returns
        -------
        ndarray of bool (N, C)
            Whether each class of `classes_` is in the set of the row; at least one is.

        Raises
        ------
        TypeError, ValueError
            If `coverage` is not a number between 0 and 1, and as `predict`.
        """
        levels = check_levels("coverage", coverage)
        if levels.ndim:
            raise ValueError(f"coverage must be one number; got {coverage!r}")
        return likely_classes(self.predict_proba(X), float(levels))

    def predict_distribution(self, X: Any) -> ClassPredictive:
        """Return class probabilities, with aleatoric and epistemic uncertainty in nats (D29).

        Parameters
        ----------
        X : array-like (N, d_in)
            Inputs.

        Returns
        -------
        ClassPredictive
            `proba` (N, C), and (N,) each `aleatoric`, `epistemic` (the mutual information of
            class and weights) and `total`, their sum.
        """
        return self._distribution(self._check_rows(X))

    def _distribution(self, x: Array) -> ClassPredictive:
        """Return class probabilities and their uncertainties at standardised inputs `x`."""
        proba, aleatoric = self._posterior_predict(predictive.predict_classes, x)
        self._need_finite("the prediction", proba, x)
        proba = proba.astype(np.float64)
        # If computed in float32, rows sum to 1 only up to single precision
        proba /= proba.sum(axis=1, keepdims=True)
        return ClassPredictive(proba, aleatoric.astype(np.float64))

    def _like_y(self, array: Array) -> Array:
        """Return probabilities (N, C, ...) of all classes.

        `array` holds them, or (N, 1, ...) only those of the second of two classes.
        """
        if array.shape[1] == 1:
            return np.concatenate([1.0 - array, array], axis=1)
        return array

    def _first_targets(
        self, x: Array, y: Array, plan: Plan, classes: Any, counted: Array
    ) -> Targets:
        """Return labels encoded as targets (N, K), their likelihood, and ``{"classes_": ...}``."""
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
        """Return labels `y` (N,) encoded as targets (N, 1) or (N, C), as in the fit, in `dtype`."""
        return _encoded(y, self.classes_, self.estimator_.model.likelihood).astype(
            dtype
        )


def _encoded(labels: Array, classes: Array, likelihood: Likelihood) -> Array:
    """Encode `labels` (N,) as targets: for Bernoulli (N, 1) of 0 and 1, else one-hot (N, C).

    Raise ValueError for a label that is not among `classes` (C,), which are sorted.
    """
    codes = np.searchsorted(classes, labels).clip(max=len(classes) - 1)
    # searchsorted may match a number with equal text, which == does not
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
