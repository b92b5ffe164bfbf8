"""Rare classes: how well each one is found, and what to decide where errors have a price (D35).

Accuracy and log loss say little of a class that one row in a hundred has. `class_scores` ranks and
calibrates each class against all others, `decide` takes the class of least expected cost.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..numeric.layout import Array
from ..numeric.validation import MATRIX, Numbers, accepts, short_repr
from .reliability import Reliability, reliability

__all__ = ["ClassScore", "class_scores", "cost_threshold", "decide"]

N_BINS = 10  # number of bins of the reliability tables
COST = Numbers((), low=0.0)


class ClassScore(NamedTuple):
    """Scores of the probabilities of one class against all others.

    The Brier score is calibration - resolution + uncertainty, up to what differs within bins.
    """

    label: Any
    n_rows: int  # number of rows of the class
    observed: float  # share of the class in the rows
    predicted: float  # its mean probability
    average_precision: float  # by chance the share of the class; nan without such rows
    roc_auc: float  # by chance 0.5; nan if no row, or every row, is of the class
    brier: float  # mean of (p - y)^2 over rows, with y = 1 for the class; smaller is better
    calibration: float  # part of the Brier score that recalibration would remove
    resolution: float  # part by which it falls since rows differ in probability
    uncertainty: float  # Brier score of the share of the class
    table: Reliability  # predicted and observed share by bin


@accepts(proba=MATRIX)
def class_scores(proba: Any, y: Any, classes: Any) -> list[ClassScore]:
    """Return the scores of each class, in the order of `classes` (D35).

    Parameters
    ----------
    proba : ndarray (N, C)
        Predicted probabilities, such as ``model.predict_proba(X)``.
    y : array-like (N,)
        Observed labels.
    classes : array-like (C,)
        Labels in the order of the columns of `proba`, such as ``model.classes_``.

    Raises
    ------
    ValueError
        If the shapes do not fit, or a label is not among `classes`.
    """
    from sklearn.metrics import average_precision_score, roc_auc_score

    labels, classes = np.asarray(y), np.asarray(classes)
    if proba.shape != (len(labels), len(classes)):
        raise ValueError(
            f"proba must have a row for each of {len(labels)} labels and a column for each of "
            f"{len(classes)} classes; got shape {proba.shape}"
        )
    if not np.isin(labels, classes).all():
        unknown = labels[~np.isin(labels, classes)].tolist()[0]
        raise ValueError(
            f"y holds {unknown!r}, which is not among {short_repr(classes.tolist())}"
        )
    scores = []
    for label, p in zip(classes, np.minimum(proba, 1.0).T, strict=True):
        is_class = labels == label
        share = is_class.mean()
        table = reliability(p, is_class, N_BINS)
        of_rows = table.n_rows / len(labels)
        precision = auc = np.nan
        if 0.0 < share < 1.0:
            precision = average_precision_score(is_class, p)
            auc = roc_auc_score(is_class, p)
        score = ClassScore(
            label=label,
            n_rows=int(is_class.sum()),
            observed=float(share),
            predicted=float(p.mean()),
            average_precision=float(precision),
            roc_auc=float(auc),
            brier=float(np.mean((p - is_class) ** 2)),
            calibration=float(of_rows @ (table.predicted - table.observed) ** 2),
            resolution=float(
                of_rows @ (table.observed - share) ** 2
            ),  # Brier's parts (D35)
            uncertainty=float(share * (1.0 - share)),
            table=table,
        )
        scores.append(score)
    return scores


@accepts(proba=MATRIX, costs=MATRIX)
def decide(proba: Any, costs: Any) -> NDArray[np.intp]:
    """Return the decision of least expected cost for each row, as a column of `costs` (D35).

    Parameters
    ----------
    proba : ndarray (N, C)
        Probabilities of the classes. Those of a learner with `class_weight` are not for classes as
        frequent as in the rows: use a learner without.
    costs : array-like (C, A)
        Cost of decision a where the class is c, in row c and column a. With as many decisions as
        classes the diagonal is that of right ones, mostly 0; a column more may stand for asking a
        person.

    Returns
    -------
    ndarray (N,)
        Number of the decision; ``model.classes_[decide(...)]`` is its label.
    """
    if proba.shape[1] != len(costs):
        raise ValueError(
            f"costs must have a row for each of {proba.shape[1]} classes; got shape "
            f"{costs.shape}: row c has the costs of all decisions where the class is c"
        )
    expected: Array = proba @ costs
    return expected.argmin(axis=1)  # least expected cost (D35)


@accepts(false_positive=COST, false_negative=COST)
def cost_threshold(false_positive: float, false_negative: float) -> float:
    """Return the probability from which on the positive one of two classes is decided for (D35).

    It is c_fp / (c_fp + c_fn): with it scikit-learn's `FixedThresholdClassifier` decides as
    `decide` does, for costs 0 of right decisions.

    Parameters
    ----------
    false_positive, false_negative : float
        Costs >= 0 of deciding for the positive class wrongly, and of missing it; not both 0.
    """
    total = false_positive + false_negative
    if not total > 0:
        raise ValueError("false_positive and false_negative must not both be 0")
    return false_positive / total  # D35
