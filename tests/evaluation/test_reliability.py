"""Reliability, calibration errors and the Brier score say what they say they say."""

from math import erf, sqrt

import numpy as np
import pytest

from bbb_numpy.evaluation.reliability import (
    BINNINGS,
    chance_calibration_error,
    expected_calibration_error,
    reliability,
    top_label,
    wilson,
)


def coins(rng, rows, tilt=0.0):
    """Stated probabilities, and outcomes whose true log odds are `tilt` times larger."""
    logit = rng.normal(0.0, 1.5, rows)
    true = 1 / (1 + np.exp(-(1 + tilt) * logit))
    return 1 / (1 + np.exp(-logit)), (rng.random(rows) < true).astype(float)


@pytest.mark.equation("D35")
@pytest.mark.parametrize(("ones", "rows"), [(0, 7), (7, 7), (3, 10), (1, 1), (50, 1000)])
def test_wilson_ends_are_z_deviations_of_their_own_binomial_away(ones, rows):
    low, high = wilson(ones, rows)
    for bound in (low, high):
        if bound not in (0, 1):
            away = abs(ones / rows - bound) / np.sqrt(bound * (1 - bound) / rows)
            assert erf(away / sqrt(2.0)) == pytest.approx(0.95, rel=1e-12)
    assert 0 <= low <= ones / rows <= high <= 1
    assert (low == 0, high == 1) == (ones == 0, ones == rows)


@pytest.mark.equation("D35")
@pytest.mark.parametrize("binning", BINNINGS)
def test_the_table_counts_every_row_once_with_its_mean_and_share(binning):
    p, y = coins(np.random.default_rng(0), 500)
    table = reliability(p, y, 8, binning)
    assert table.n_rows.sum() == 500
    for low, high, *bin_of_table in zip(*table[:5], strict=True):
        inside = (p >= low) & ((p < high) | (p == p.max()) & (p <= high))
        expected = [inside.sum(), p[inside].mean(), y[inside].mean()]  # rows, stated, seen
        assert bin_of_table == pytest.approx(expected, rel=1e-12)
    if binning == "equal mass":
        assert np.ptp(table.n_rows) <= 2


@pytest.mark.equation("D35")
@pytest.mark.parametrize("binning", BINNINGS)
def test_right_probabilities_have_the_calibration_error_of_chance_alone(binning):
    rng = np.random.default_rng(1)
    tables = [reliability(*coins(rng, 800), 10, binning) for _ in range(200)]
    gap = [expected_calibration_error(t) - chance_calibration_error(t) for t in tables]
    # The normal limit is not exact in bins of few rows: an allowance of 3 % of the mean.
    assert abs(np.mean(gap)) < 4 * np.std(gap) / 200**0.5 + 0.03 * chance_calibration_error(
        tables[0]
    )
    assert np.mean([expected_calibration_error(t) for t in tables]) > 0.01, "not 0 by itself"
    covered = [
        (t.observed_low <= t.predicted) & (t.predicted <= t.observed_high)
        for t in tables
        if len(t.n_rows) == 10
    ]
    assert np.mean(covered) == pytest.approx(0.95, abs=0.015)


@pytest.mark.equation("D35")
@pytest.mark.parametrize("binning", BINNINGS)
@pytest.mark.parametrize("bins", [1, 3, 10])
def test_the_parts_of_the_brier_score_add_up_for_any_bins(binning, bins):
    p, y = coins(np.random.default_rng(3), 300, tilt=0.4)
    table = reliability(p, y, bins, binning)
    share, base = table.n_rows / len(y), y.mean()
    stray = p - table.predicted[np.searchsorted(table.low, p, side="right") - 1]
    within = np.mean(stray * stray - 2.0 * stray * y)
    three = share @ (table.predicted - table.observed) ** 2 - share @ (table.observed - base) ** 2
    three += base * (1.0 - base)
    assert three + within == pytest.approx(np.mean((p - y) ** 2), rel=1e-12)
    if bins > 1:
        assert abs(within) > 1e-6, "Murphy's three parts alone do not add up"


def test_top_label_gives_the_largest_probability_and_whether_it_was_right():
    proba = np.array([[0.2, 0.5, 0.3], [0.6, 0.1, 0.3]])
    assert np.array_equal(top_label(proba, [1, 2]), [[0.5, 0.6], [1.0, 0.0]])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: reliability([0.5, 1.2], [0, 1]), "between 0 and 1; got 1.2"),
        (lambda: reliability([0.5, 0.2], [0, 2]), "y must be between 0 and 1; got 2"),
        (lambda: reliability([0.5, 0.2], [0, 0.5]), "y must hold whole numbers; got 0.5"),
        (lambda: reliability([0.5], [0, 1]), r"y must have shape \(1\); got \(2,\)"),
        (lambda: reliability([], []), "1 or more numbers"),
        (lambda: reliability([0.5], [1], binning="mass"), "equal mass"),
        (lambda: reliability([np.nan], [1]), "between 0 and 1"),
        (lambda: wilson(3, 2), "0 <= successes <= trials"),
        (lambda: wilson(0, 0), "trials >= 1"),
        (lambda: top_label([[0.5, 0.4]], [0]), "sum to 1"),
        (lambda: top_label([[0.5, 0.5]], [0.5]), "labels must hold whole numbers; got 0.5"),
        (lambda: top_label([[0.5, 0.5]], [2]), "labels must be between 0 and 1; got 2"),
        (lambda: top_label([0.5, 0.5], [0, 1]), "proba must have shape"),
    ],
)
def test_errors_say_what_came_and_what_is_accepted(call, message):
    with pytest.raises(ValueError, match=message):
        call()
