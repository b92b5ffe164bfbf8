"""Fitted estimators corrected by held-out rows: `Recalibrated` and `Conformal`."""

from __future__ import annotations

from math import ceil
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ..evaluation.recalibration import (
    conformal_quantile,
    fit_sd_factor,
    fit_temperature,
    temper,
)
from ..numeric.elementary import log_softmax
from ..numeric.layout import Array
from ..numeric.validation import (
    COUNT,
    SMALLEST_POSITIVE,
    Numbers,
    OneOf,
    positive,
    proper_fraction,
)
from .base import (  # they come from scikit-learn; without it, base says how to install it
    BaseEstimator,
    available_if,
    check_is_fitted,
    clone,
    get_tags,
    is_classifier,
    shuffle,
)

__all__ = ["Conformal", "HeldOutCalibration", "Recalibrated", "innermost"]

SCORE = OneOf("interval", "sd", "absolute")
TINY = float(np.finfo(np.float64).tiny)
# Share of an interval's length, and of a probability, by which the predictions of one row may
# differ between batches of rows (float32): less than this does not decide who is inside
TIE_TOLERANCE = 1e-6


def _is_regressor(wrapper: HeldOutCalibration) -> bool:
    """Return whether the wrapped estimator predicts numbers; raise AttributeError if not."""
    if is_classifier(wrapper.estimator):
        raise AttributeError("the wrapped estimator is a classifier")
    return True


def _is_classifier(wrapper: HeldOutCalibration) -> bool:
    """Return whether the wrapped estimator predicts classes; raise AttributeError if not."""
    if not is_classifier(wrapper.estimator):
        raise AttributeError("the wrapped estimator predicts numbers, not classes")
    return True


for_numbers = available_if(_is_regressor)
for_classes = available_if(_is_classifier)


class HeldOutCalibration(BaseEstimator):
    """Base class: an estimator, and rows that it has not seen.

    `fit` trains a clone of the estimator and holds rows out; `calibrate` takes rows that the
    estimator, already fitted, has not seen.
    """

    # Names of the fitted attributes, those that a task does not have included
    fitted_names: ClassVar[tuple[str, ...]] = ("estimator_", "n_calibration_rows_")

    def __init__(
        self, estimator: Any, held_out: float = 0.25, random_state: Any = None
    ) -> None:
        self.estimator = estimator
        self.held_out = held_out
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags: those of the wrapped estimator."""
        return get_tags(self.estimator)

    def __sklearn_is_fitted__(self) -> bool:
        """Return whether `fit` or `calibrate` was called."""
        return hasattr(self, "n_calibration_rows_")

    @property
    def classes_(self) -> Array:
        """Labels (C,) of the fitted estimator."""
        labels: Array = self.estimator_.classes_
        return labels

    @property
    def n_features_in_(self) -> int:
        """Number of columns of X, of the fitted estimator."""
        n_features: int = self.estimator_.n_features_in_
        return n_features

    @property
    def feature_names_in_(self) -> NDArray[np.object_]:
        """Names (d_in,) of the columns of X, of an estimator that was fitted to a data frame."""
        names: NDArray[np.object_] = self.estimator_.feature_names_in_
        return names

    def fit(self, X: Any, y: Any) -> Self:
        """Hold rows out at random, fit a clone of the estimator to the others, and calibrate it.

        Parameters
        ----------
        X : array-like (N, d_in) or DataFrame
            Inputs.
        y : array-like (N,) or (N, K)
            Targets, or labels of classes.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If too few rows are held out, or the estimator has not what is needed.
        """
        share = proper_fraction("held_out", self.held_out)
        if y is None:
            raise ValueError(
                "calibration requires y to be passed; the target y is None"
            )
        X, y = shuffle(X, y, random_state=self.random_state)
        n_held_out = ceil(share * len(y))
        self._check(n_held_out)
        estimator = clone(self.estimator).fit(X[n_held_out:], y[n_held_out:])
        return self._calibrate(estimator, X[:n_held_out], y[:n_held_out])

    def _check(self, n_rows: int) -> None:
        """Raise ValueError unless the arguments are valid and `n_rows` held-out rows are enough."""

    def _calibrate(
        self, estimator: Any, X: Any, y: Any, sample_weight: Any = None
    ) -> Self:
        """Calibrate a fitted estimator, which becomes `estimator_`, by held-out rows."""
        check_is_fitted(estimator)
        self.estimator_ = estimator
        if hasattr(innermost(estimator), "exposure_scale_"):
            raise ValueError(
                "the estimator was fitted with an exposure, which is not supported here; model "
                "y / exposure, with sample_weight=exposure"
            )
        self._check(len(y))
        self._measure(X, y, sample_weight)
        self.n_calibration_rows_ = len(y)
        return self

    def _measure(self, X: Any, y: Any, sample_weight: Any) -> None:
        """Set the learned numbers, from held-out rows."""
        raise NotImplementedError

    def _check_predicts(self) -> None:
        """Raise an error if fitted attributes read from a file do not suit the learner."""
        check_is_fitted(self.estimator_)
        COUNT("n_calibration_rows_", self.n_calibration_rows_)

    def score(self, X: Any, y: Any) -> float:
        """Return the score of the estimator: R^2, or the share of right labels.

        Parameters
        ----------
        X : array-like (N, d_in) or DataFrame
            Inputs.
        y : array-like (N,) or (N, K)
            Targets, or labels of classes.
        """
        check_is_fitted(self)
        return float(self.estimator_.score(X, y))

    @for_classes
    def predict_proba(self, X: Any) -> Array:
        """Return class probabilities (N, C) of the estimator.

        Parameters
        ----------
        X : array-like (N, d_in) or DataFrame
            Inputs.
        """
        check_is_fitted(self)
        proba: Array = self.estimator_.predict_proba(X)
        return proba

    def _codes(self, y: Any, n_rows: int) -> NDArray[np.intp]:
        """Return the positions (N,) of labels in `classes_`.

        Parameters
        ----------
        y : array-like (N,) or (N, 1)
            Labels.
        n_rows : int
            Number N of rows of the predictions.

        Raises
        ------
        ValueError
            If there is not one label for each row, or an unknown one.
        """
        labels = np.asarray(y)
        if labels.shape not in [(n_rows,), (n_rows, 1)]:
            raise ValueError(
                f"y must hold a label for each of {n_rows} rows; got shape {labels.shape}"
            )
        labels = labels.reshape(n_rows)
        codes = np.minimum(
            np.searchsorted(self.classes_, labels), len(self.classes_) - 1
        )
        unknown = labels[self.classes_[codes] != labels]
        if len(unknown):
            raise ValueError(
                f"held-out rows have the class {unknown.tolist()[0]!r}, which the estimator "
                "was not fitted to; hold out other rows, by random_state"
            )
        return codes


def innermost(estimator: Any) -> Any:
    """Return the fitted estimator that predicts, inside of pipelines and of other calibrations."""
    while True:
        if isinstance(estimator, HeldOutCalibration):
            estimator = estimator.estimator_
        elif hasattr(estimator, "steps"):
            estimator = estimator.steps[-1][1]
        else:
            return estimator


def _targets_like(predictions: Array, y: Any) -> Array:
    """Return targets in float64 of the shape of predictions; raise ValueError if they have another.

    One output may stand in a column (N, 1), as estimators take it too.
    """
    targets = np.asarray(y, float)
    if targets.shape not in [predictions.shape, (*predictions.shape, 1)]:
        raise ValueError(
            f"y must have the shape of the predictions, {predictions.shape}; got {targets.shape}"
        )
    return targets.reshape(predictions.shape)


class Recalibrated(HeldOutCalibration):
    """An estimator whose sureness is corrected by one number, from held-out rows (D76).

    For classes it is a temperature: probabilities p become ``p^(1/T)``, divided by their sum. For
    real targets it is a factor, for each output, by which predictive distributions are stretched
    around their means. Neither changes what `predict` returns.

    Parameters
    ----------
    estimator : estimator
        Learner, or another estimator with ``predict(X, return_std=True)`` or `predict_proba`.
    held_out : float, default=0.25
        Share of the rows that `fit` holds out, above 0 and below 1.
    random_state : int, RandomState or None, default=None
        Seed of the choice of held-out rows.

    Attributes
    ----------
    estimator_ : estimator
        The fitted estimator.
    temperature_ : float
        Only of a classifier: T; above 1 where it was too sure.
    sd_factor_ : ndarray (K,)
        Only of a regressor: factor of each output; above 1 where it was too sure.
    n_calibration_rows_ : int
        Number of held-out rows.
    """

    fitted_names = (*HeldOutCalibration.fitted_names, "temperature_", "sd_factor_")

    def calibrate(self, X: Any, y: Any, sample_weight: Any = None) -> Recalibrated:
        """Calibrate the estimator, which is fitted already, by rows that it has not seen.

        Parameters
        ----------
        X : array-like (N, d_in) or DataFrame
            Inputs.
        y : array-like (N,) or (N, K)
            Targets, or labels of classes.
        sample_weight : array-like (N,), optional
            Number of times that each row counts, >= 0.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If no temperature or factor is best, if predictions are of no normal scale (counts,
            ``target_="log"``, infinite standard deviations), or after a fit with an exposure.
        """
        return self._calibrate(self.estimator, X, y, sample_weight)

    def _check(self, n_rows: int) -> None:
        """Raise ValueError if the estimator is a `Conformal`, whose guarantee would be lost."""
        if isinstance(self.estimator, Conformal):
            raise ValueError(
                "Recalibrated around Conformal would undo its guarantee; use "
                "Conformal(Recalibrated(...))"
            )

    def _measure(self, X: Any, y: Any, sample_weight: Any) -> None:
        """Set the temperature, or the factors."""
        if is_classifier(self.estimator_):
            log_proba = self._log_proba(X)
            self.temperature_ = fit_temperature(
                log_proba, self._codes(y, len(log_proba)), sample_weight
            )
            return
        learner = innermost(self.estimator_)
        fitted = getattr(learner, "estimator_", None)
        likelihood = getattr(getattr(fitted, "model", None), "likelihood", None)
        is_log = getattr(learner, "target_", "identity") == "log"
        if is_log or getattr(likelihood, "target_kind", "real") != "real":
            raise ValueError(
                "a factor on standard deviations suits real targets on their own scale; for counts "
                "and target='log' use Conformal"
            )
        mean, sd = self.estimator_.predict(X, return_std=True)
        if not np.isfinite(sd).all():
            raise ValueError(
                "the predictive standard deviation is infinite (Student's t); use Conformal"
            )
        n_rows = len(mean)
        self.sd_factor_ = fit_sd_factor(
            mean.reshape(n_rows, -1),
            sd.reshape(n_rows, -1),
            _targets_like(mean, y).reshape(n_rows, -1),
            sample_weight,
        )

    def _check_predicts(self) -> None:
        """Raise an error if temperature or factors read from a file do not suit the learner."""
        super()._check_predicts()
        if is_classifier(self.estimator_):
            positive("temperature_", self.temperature_)
        else:
            n_outputs = innermost(self).n_outputs_
            check_factor = Numbers((n_outputs,), low=SMALLEST_POSITIVE)
            check_factor("sd_factor_", self.sd_factor_)

    def _log_proba(self, X: Any) -> Array:
        """Return log probabilities (N, C) of the estimator; those of 0 as the smallest float."""
        if hasattr(self.estimator_, "predict_log_proba"):
            with np.errstate(divide="ignore"):
                log_proba = self.estimator_.predict_log_proba(X)
            return np.maximum(log_proba, np.log(TINY))
        return np.log(np.maximum(self.estimator_.predict_proba(X), TINY))

    @for_classes
    def predict_proba(self, X: Any) -> Array:
        """Return class probabilities (N, C) at the temperature `temperature_`.

        Parameters
        ----------
        X : array-like (N, d_in) or DataFrame
            Inputs.
        """
        check_is_fitted(self)
        return temper(self._log_proba(X), self.temperature_)

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Return the estimator's labels or means, and with `return_std` standard deviations.

        Parameters
        ----------
        X : array-like (N, d_in) or DataFrame
            Inputs.
        return_std : bool
            Whether to return the corrected standard deviations of y too; of a regressor only.
        """
        check_is_fitted(self)
        if not return_std:
            return self.estimator_.predict(X)
        mean, sd = self.estimator_.predict(X, return_std=True)
        return mean, sd * self._factor(mean)

    @for_numbers
    def predict_interval(self, X: Any, coverage: float = 0.9) -> Array:
        """Return the estimator's intervals, stretched around the mean by `sd_factor_`.

        Parameters
        ----------
        X : array-like (N, d_in) or DataFrame
            Inputs.
        coverage : float
            Probability of the intervals.

        Returns
        -------
        ndarray (N, 2) or (N, K, 2)
            Lower and upper ends, in units of y.
        """
        check_is_fitted(self)
        ends = self.estimator_.predict_interval(X, coverage)
        mean = self.estimator_.predict(X)
        factor = np.broadcast_to(self._factor(mean), mean.shape)[..., None]
        stretched: Array = mean[..., None] + factor * (ends - mean[..., None])
        return stretched

    def log_predictive_density(self, X: Any, y: Any) -> Array:
        """Return the log density (N,) of targets, in nats; for classes log probabilities.

        Parameters
        ----------
        X : array-like (N, d_in) or DataFrame
            Inputs.
        y : array-like (N,) or (N, K)
            Targets, or labels of classes.
        """
        check_is_fitted(self)
        if is_classifier(self.estimator_):
            log_proba = log_softmax(self._log_proba(X) / self.temperature_)
            codes = self._codes(y, len(log_proba))
            observed: Array = log_proba[np.arange(len(codes)), codes]
            return observed
        mean = self.estimator_.predict(X)
        targets = _targets_like(mean, y)
        factor = self._factor(mean)
        # density of the unstretched y times its slope, 1 / factor (D76)
        log_density = self.estimator_.log_predictive_density(
            X, mean + (targets - mean) / factor
        )
        corrected: Array = log_density - np.log(self.sd_factor_).sum()
        return corrected

    def _factor(self, mean: Array) -> Any:
        """Return the factors as they multiply arrays of the shape of `mean`, (N,) or (N, K)."""
        return self.sd_factor_ if mean.ndim > 1 else self.sd_factor_[0]


class Conformal(HeldOutCalibration):
    """An estimator with intervals, or sets of classes, that hold what they say (D77).

    If held-out rows and new ones are exchangeable, a new target is inside with a probability of at
    least `coverage`, whatever the estimator and the law of the data; without ties of less than
    ``coverage + 1 / (N + 1)``. It is an average over rows: among those of one kind the share may be
    another, and rows of another law have no guarantee.

    Parameters
    ----------
    estimator : estimator
        Learner, or another estimator with the method that `conformity_score` needs.
    coverage : float, default=0.9
        Probability that a target is inside; N >= coverage / (1 - coverage) rows are needed.
    conformity_score : {'interval', 'sd', 'absolute'}, default='interval'
        How far a target is from its prediction. 'interval' is the distance beyond the end of
        ``predict_interval(X, coverage)``, negative inside: all intervals grow by one length
        (conformalised quantile regression). 'sd' is ``|y - mean| / sd``: all grow by one factor.
        'absolute' is ``|y - mean|``: all are equally wide. Of classes it is 1 - p of the label.
    held_out : float, default=0.25
        Share of the rows that `fit` holds out, above 0 and below 1.
    random_state : int, RandomState or None, default=None
        Seed of the choice of held-out rows.

    Attributes
    ----------
    estimator_ : estimator
        The fitted estimator.
    bound_ : ndarray () or (K,)
        Largest score of a target that is inside, for each output.
    coverage_ : float
        `coverage` for which `bound_` was found; another one counts from the next fit.
    conformity_score_ : str
        `conformity_score` for which `bound_` was found.
    n_calibration_rows_ : int
        Number N of held-out rows.
    """

    fitted_names = (
        *HeldOutCalibration.fitted_names,
        "bound_",
        "coverage_",
        "conformity_score_",
    )

    def __init__(
        self,
        estimator: Any,
        coverage: float = 0.9,
        conformity_score: str = "interval",
        held_out: float = 0.25,
        random_state: Any = None,
    ) -> None:
        super().__init__(estimator, held_out, random_state)
        self.coverage = coverage
        self.conformity_score = conformity_score

    def calibrate(self, X: Any, y: Any) -> Conformal:
        """Calibrate the estimator, which is fitted already, by rows that it has not seen.

        Rows have no weights: the guarantee is for rows as they are drawn.

        Parameters
        ----------
        X : array-like (N, d_in) or DataFrame
            Inputs.
        y : array-like (N,) or (N, K)
            Targets, or labels of classes. Of several outputs each has its own guarantee.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If there are too few rows for `coverage`, or after a fit with an exposure.
        """
        return self._calibrate(self.estimator, X, y)

    def _check(self, n_rows: int) -> None:
        """Raise ValueError unless the arguments are valid and `n_rows` held-out rows are enough."""
        SCORE("conformity_score", self.conformity_score)
        needs_interval = self.conformity_score == "interval" and not is_classifier(
            self.estimator
        )
        if needs_interval and not hasattr(self.estimator, "predict_interval"):
            raise ValueError(
                f"{type(self.estimator).__name__} has no predict_interval, which "
                "conformity_score='interval' needs; use 'sd' or 'absolute'"
            )
        conformal_quantile(np.zeros(n_rows), self.coverage)

    def _measure(self, X: Any, y: Any, sample_weight: Any) -> None:
        """Set the bound of the scores, and for what it is one."""
        self.coverage_ = self.coverage
        self.conformity_score_ = self.conformity_score
        if is_classifier(self.estimator_):
            proba = self.estimator_.predict_proba(X)
            codes = self._codes(y, len(proba))
            scores = 1.0 - proba[np.arange(len(codes)), codes]
        else:
            low, high, unit = self._prediction(X)
            targets = _targets_like(low, y)
            scores = np.maximum(low - targets, targets - high) / unit  # D77
        self.bound_ = conformal_quantile(scores, self.coverage_)

    def _check_predicts(self) -> None:
        """Raise an error if the bound read from a file does not suit the learner."""
        super()._check_predicts()
        proper_fraction("coverage_", self.coverage_)
        SCORE("conformity_score_", self.conformity_score_)
        learner = innermost(self)
        shape: tuple[int, ...] = ()
        if not is_classifier(learner) and learner.y_ndim_ > 1:
            shape = (learner.n_outputs_,)
        Numbers(shape)("bound_", self.bound_)

    def _prediction(self, X: Any) -> tuple[Array, Array, Any]:
        """Return ends of intervals of the estimator, (N,) or (N, K), and the unit of the score."""
        if self.conformity_score_ == "interval":
            ends = self.estimator_.predict_interval(X, self.coverage_)
            return ends[..., 0], ends[..., 1], 1.0
        if self.conformity_score_ == "sd":
            mean, sd = self.estimator_.predict(X, return_std=True)
            if not (np.isfinite(sd).all() and (sd > 0).all()):
                raise ValueError(
                    "conformity_score='sd' needs finite standard deviations > 0; use 'interval'"
                )
            return mean, mean, sd
        mean = self.estimator_.predict(X)
        return mean, mean, 1.0

    def predict(self, X: Any, **options: Any) -> Any:
        """Return the predictions of the estimator: means or labels, which calibration leaves.

        Parameters
        ----------
        X : array-like (N, d_in) or DataFrame
            Inputs.
        **options : Any
            Other arguments of the estimator's `predict`.
        """
        check_is_fitted(self)
        return self.estimator_.predict(X, **options)

    @for_numbers
    def predict_interval(self, X: Any) -> Array:
        """Return intervals of the probability `coverage` for new targets, in units of y.

        Parameters
        ----------
        X : array-like (N, d_in) or DataFrame
            Inputs.

        Returns
        -------
        ndarray (N, 2) or (N, K, 2)
            Lower and upper ends.
        """
        check_is_fitted(self)
        low, high, unit = self._prediction(X)
        middle = 0.5 * (low + high)
        # an interval that shrinks by more than its width is a point
        reach = np.maximum(0.5 * (high - low) + self.bound_ * unit, 0.0)
        # targets that are tied with the bound stay inside, however ends are rounded
        reach *= 1.0 + TIE_TOLERANCE
        return np.stack([middle - reach, middle + reach], axis=-1)

    @for_classes
    def predict_set(self, X: Any) -> NDArray[np.bool_]:
        """Return the sets of classes that hold the label with the probability `coverage`.

        Parameters
        ----------
        X : array-like (N, d_in) or DataFrame
            Inputs.

        Returns
        -------
        ndarray of bool (N, C)
            Whether each class of `classes_` is in the set of the row. A set may be empty: no class
            is as probable as those of held-out rows.
        """
        check_is_fitted(self)
        proba = self.estimator_.predict_proba(X)
        inside: NDArray[np.bool_] = 1.0 - proba <= self.bound_ + TIE_TOLERANCE
        return inside
