"""decisions: scores of each class against all others, and the class of least expected cost."""

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, brier_score_loss, roc_auc_score

from bbb_numpy.evaluation.decisions import class_scores, cost_threshold, decide

CLASSES = np.array(["common", "rare", "scarce"])


def forecasts(rows=400, seed=0):
    """Return probabilities (N, 3) and labels drawn from them."""
    rng = np.random.default_rng(seed)
    logits = rng.normal([2.0, -1.0, -2.0], 1.5, (rows, 3))
    proba = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    return proba, CLASSES[(rng.random((rows, 1)) > proba.cumsum(axis=1)).sum(axis=1)]


@pytest.mark.equation("D35")
def test_a_class_is_scored_against_all_others_and_the_parts_of_its_brier_score_add_up():
    proba, y = forecasts()
    scores = class_scores(proba, y, CLASSES)
    assert [score.label for score in scores] == CLASSES.tolist()
    assert sum(score.n_rows for score in scores) == len(y)
    for score, p in zip(scores, proba.T, strict=True):
        is_class = y == score.label
        assert score.average_precision == average_precision_score(is_class, p)
        assert score.roc_auc == roc_auc_score(is_class, p)
        assert score.brier == pytest.approx(brier_score_loss(is_class, p))
        parts = score.calibration - score.resolution + score.uncertainty
        # the fourth part of D35, from rows and bins
        table = score.table
        of_row = np.searchsorted(table.low, p, side="right") - 1
        delta, eta = p - table.predicted[of_row], is_class - table.observed[of_row]
        assert score.brier == pytest.approx(parts + np.mean(delta**2 - 2 * delta * eta))
        assert table.n_rows.sum() == len(y)
    assert scores[0].calibration < 0.01, "the labels were drawn from these probabilities"
    bold = class_scores(proba**4 / (proba**4).sum(axis=1, keepdims=True), y, CLASSES)
    assert bold[1].calibration > 2 * scores[1].calibration


def test_a_class_that_no_row_or_every_row_has_is_not_ranked():
    proba = np.array([[0.9, 0.1], [0.8, 0.2]])
    absent = class_scores(proba, ["a", "a"], ["a", "b"])
    assert np.isnan([score.roc_auc for score in absent]).all()
    assert [score.n_rows for score in absent] == [2, 0]
    assert absent[1].brier == pytest.approx((0.01 + 0.04) / 2)


@pytest.mark.equation("D35")
@pytest.mark.parametrize(("false_positive", "false_negative"), [(1.0, 9.0), (3.0, 1.0)])
def test_of_two_classes_the_least_cost_is_a_threshold(false_positive, false_negative):
    threshold = cost_threshold(false_positive, false_negative)
    p = threshold + np.linspace(-0.2, 0.2, 1000)  # never the threshold itself
    costs = [[0.0, false_positive], [false_negative, 0.0]]
    chosen = decide(np.column_stack([1 - p, p]), costs)
    assert np.array_equal(chosen == 1, p > threshold)
    assert threshold == false_positive / (false_positive + false_negative)


def test_no_other_decision_costs_less_on_labels_drawn_from_the_probabilities():
    proba, y = forecasts(20_000)
    costs = np.array([[0.0, 1.0, 4.0, 0.6], [8.0, 0.0, 4.0, 0.6], [9.0, 5.0, 0.0, 0.6]])
    codes = np.searchsorted(CLASSES, y)
    cost = costs[codes, decide(proba, costs)].mean()
    assert cost < costs[codes, proba.argmax(axis=1)].mean()
    assert all(cost < costs[codes, decision].mean() for decision in range(4))
    equal = 1.0 - np.eye(3)
    assert np.array_equal(decide(proba, equal), proba.argmax(axis=1))


def test_what_does_not_fit_is_said():
    proba, y = forecasts(5)
    with pytest.raises(ValueError, match="a column for each of 2 classes; got shape"):
        class_scores(proba, y, ["a", "b"])
    with pytest.raises(ValueError, match="'odd', which is not among"):
        class_scores(proba, [*y[:4], "odd"], CLASSES)
    with pytest.raises(ValueError, match="a row for each of 3 classes"):
        decide(proba, np.eye(2))
    with pytest.raises(ValueError, match="not both be 0"):
        cost_threshold(0.0, 0.0)
    with pytest.raises(ValueError, match="false_negative"):
        cost_threshold(1.0, -1.0)
