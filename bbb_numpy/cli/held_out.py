"""Rows that are held out of training, and what a fitted learner is worth on them."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..learners.columns import quote_cell
from .problem import Problem
from .tables import TableError

if TYPE_CHECKING:
    from pandas import DataFrame

    from .baselines import Forecast, Score

__all__ = ["Measurement", "RowsOfFit", "measure", "rows_of_fit", "split_rows"]

Array = NDArray[Any]
MIN_ROWS = 10  # smallest number of rows to split into training and test rows
# `fit` holds out this share of the rows, and no more rows than this: their share in 90 % intervals
# then has a standard error of 1 %
HELD_OUT_SHARE = 0.2
MAX_HELD_OUT_ROWS = 1000
# largest share of the rows that the stored model may lack; with more, it is fitted again to all
MAX_SHARE_LOST = 0.05
LEVEL = 0.9  # level of the intervals whose coverage `score_forecast` has
N_STANDARD_ERRORS = 3.0  # by which a number must differ to be a finding


def split_rows(
    problem: Problem, share: float, folds: int | None, seed: int
) -> list[tuple[Array, Array]]:
    """Return pairs of row numbers for training and testing, one pair for each fold.

    Parameters
    ----------
    problem : Problem
        The table; a class has the same share of all parts.
    share : float
        Share of the rows to test on, which are drawn at random; not used with `folds`.
    folds : int or None
        Number of folds of a cross-validation.
    seed : int
        Seed of the random numbers.

    Raises
    ------
    TableError
        If there are too few rows, or a class is missing in the training rows.
    """
    from sklearn.model_selection import (
        KFold,
        ShuffleSplit,
        StratifiedKFold,
        StratifiedShuffleSplit,
    )

    y = problem.y
    seed %= 2**32
    problem.check_counts(max(MIN_ROWS, folds or 0), folds or 2)
    is_classification = problem.task == "classification"
    splitter: Any
    if folds:
        splitter = StratifiedKFold if is_classification else KFold
        splits = splitter(folds, shuffle=True, random_state=seed)
    else:
        splitter = StratifiedShuffleSplit if is_classification else ShuffleSplit
        n_classes = len(np.unique(y)) if is_classification else 0
        n_test = max(round(share * len(y)), n_classes, 1)
        n_test = min(n_test, len(y) - max(n_classes, 5))
        splits = splitter(1, test_size=n_test, random_state=seed)
    row_numbers = list(splits.split(np.zeros(len(y)), y))
    if is_classification:
        for train, _ in row_numbers:
            absent = sorted({*np.unique(y).tolist()} - {*y[train].tolist()})
            if absent:
                raise TableError(
                    f"{problem.source}: no training row is of the class "
                    f"{quote_cell(absent[0])}; hold fewer rows out (--held-out), or use --folds"
                )
    return row_numbers


class RowsOfFit(NamedTuple):
    """Row numbers of ``bbb-numpy fit``."""

    train: Array  # rows to train on before measuring
    test: Array  # rows that are held out; none if nothing is measured
    reason: str  # why nothing is measured, or ""

    @property
    def is_refitted(self) -> bool:
        """Whether the stored model is fitted again, to all rows, after it has been measured."""
        n_rows = len(self.train) + len(self.test)
        return len(self.test) > MAX_SHARE_LOST * n_rows


def rows_of_fit(problem: Problem, share: float | None, seed: int) -> RowsOfFit:
    """Return the rows that ``bbb-numpy fit`` trains on, and those that it holds out.

    Parameters
    ----------
    problem : Problem
        The table.
    share : float or None
        Share of the rows to hold out, 0 for none. By default a fifth, at most 1000 rows.
    seed : int
        Seed of the random numbers.
    """
    n_rows = len(problem.y)
    all_rows = np.arange(n_rows)
    if share is None:
        share = min(HELD_OUT_SHARE, MAX_HELD_OUT_ROWS / n_rows)
    if share == 0.0:
        return RowsOfFit(all_rows, all_rows[:0], "no row is held out")
    try:
        [(train, test)] = split_rows(problem, share, None, seed)
    except TableError as error:
        return RowsOfFit(all_rows, all_rows[:0], str(error))
    return RowsOfFit(np.sort(train), np.sort(test), "")


class Measurement(NamedTuple):
    """Scores of a learner and of a model that ignores the inputs, on rows that neither has seen."""

    task: str
    y: Array  # (N,) targets of the held-out rows; classes as columns of ``forecast.proba``
    forecast: Forecast  # of the learner, for these rows
    scores: dict[str, Score]  # of the learner, by metric such as 'rmse'
    base_scores: dict[str, Score]  # of the model that ignores the inputs
    ends: Any = None  # (N, 2) ends of the 90 % intervals; None for classes

    def lines(self, target: str) -> list[tuple[str, str]]:
        """Return pairs of a label and a text; `target` names the unit of numbers."""
        lines = [("held out", f"{len(self.y):,} rows, before fitting; on these:")]
        if self.task == "classification":
            right, base = self.scores["accuracy"], self.base_scores["accuracy"]
            loss, base_loss = self.scores["log_loss"], self.base_scores["log_loss"]
            names = ("roc_auc", "average_precision")
            area, precision = (self.scores[name].value for name in names)
            base_precision = self.base_scores["average_precision"].value
            ranking = f"ROC AUC {area:.3f}, average precision {precision:.3f}"
            return [
                *lines,
                ("accuracy", f"{right}; ignoring the inputs {base}"),
                ("log loss", f"{loss} nats per row; ignoring the inputs {base_loss}"),
                (
                    "ranking",
                    f"{ranking}; ignoring the inputs 0.5, {base_precision:.3f}",
                ),
            ]
        rmse, base = self.scores["rmse"], self.base_scores["rmse"]
        inside = self.scores["coverage"]
        percent = 100 * inside.value
        error = float(f"{100 * (inside.error or 0.0):.1g}")
        return [
            *lines,
            ("error (RMSE)", f"{rmse} (units of {target}); ignoring the inputs {base}"),
            ("90 % intervals", f"hold {percent:.0f} % of the targets (± {error:g} %)"),
        ]  # fmt: skip

    def findings(self) -> list[str]:
        """Return what speaks against the model on these rows."""
        metric = "log_loss" if self.task == "classification" else "rmse"
        score, base = self.scores[metric], self.base_scores[metric]
        findings = []
        if score.value >= base.value:
            findings.append(
                "on the held-out rows the model is no better than ignoring the inputs"
            )
        inside = self.scores.get("coverage")
        if inside is not None and inside.error is not None:
            excess = (inside.value - LEVEL) / inside.error
            if excess < -N_STANDARD_ERRORS:
                findings.append("the 90 % intervals hold too few of the held-out rows")
        return findings


def measure(
    model: Any,
    inputs: DataFrame,
    problem: Problem,
    rows: RowsOfFit,
    args: argparse.Namespace,
) -> Measurement:
    """Return what a learner that was fitted to ``rows.train`` is worth on ``rows.test``.

    Parameters
    ----------
    model : BayesianMLPRegressor or BayesianMLPClassifier
        The fitted learner.
    inputs : DataFrame
        Features of all rows.
    problem : Problem
        The table.
    rows : RowsOfFit
        Row numbers.
    args : argparse.Namespace
        The options; ``seed`` and ``class_weight`` are used.
    """
    from .baselines import (
        BASE_RATE,
        baselines,
        forecast_baseline,
        forecast_learner,
        score_forecast,
        share_score,
    )

    rng = np.random.default_rng(args.seed)
    y, x = problem.y, inputs.to_numpy()
    train, test = rows.train, rows.test
    held_out, exposure = inputs.iloc[test], problem.fit_arguments(test)
    forecast = forecast_learner(model, held_out, y[test], rng, **exposure)
    exposures = None
    if problem.exposure is not None:
        exposures = (problem.exposure[train], problem.exposure[test])
    base_rate = forecast_baseline(
        baselines(problem.task, len(train), args.seed)[BASE_RATE],
        problem.task,
        (x[train], y[train]),
        (x[test], y[test]),
        rng,
        exposures=exposures,
    )
    target = y[test]
    ends = None
    if problem.task == "classification":
        target = np.searchsorted(np.unique(y), target)
    scores = score_forecast(forecast, target)
    if problem.task != "classification":
        ends = model.predict_interval(held_out, LEVEL, **exposure)
        is_inside = (ends[:, 0] <= target) & (target <= ends[:, 1])
        scores["coverage"] = share_score(is_inside)
    base_scores = score_forecast(base_rate, target)
    return Measurement(problem.task, target, forecast, scores, base_scores, ends)
