"""Every picture shows the numbers it was given, says what they are, and covers none of them."""

import numpy as np
import pytest

from bbb_numpy.evaluation.predictive import Predictive
from bbb_numpy.plots import fits as plots

X = np.linspace(-2.0, 2.0, 9)
PREDICTION = Predictive(X**2, 0.1 + np.abs(X), np.full(9, 0.5))
DATA = (np.array([-1.0, 0.5, 1.0]), np.array([0.9, 0.3, 7.0]))


def lines(ax):
    return {line.get_label(): line for line in ax.lines}


def edges(ax, label):
    """Lower and upper edge (2, N) of a band at every x."""
    (band,) = [c for c in ax.collections if c.get_label().startswith(label)]
    x, y = band.get_paths()[0].vertices.T
    return np.array([(y[x == at].min(), y[x == at].max()) for at in X]).T


def test_the_bands_are_two_unscaled_deviations_to_each_side():
    ax = plots.fit(X, PREDICTION)
    for label, deviation in (("epistemic", PREDICTION.epistemic), ("predictive", PREDICTION.total)):
        expected = X**2 - 2 * deviation, X**2 + 2 * deviation
        np.testing.assert_allclose(edges(ax, label), expected, rtol=1e-15, atol=1e-15)


def test_fit_shows_data_truth_and_mean_and_marks_the_range_of_the_data():
    ax = plots.fit(X, PREDICTION, data=DATA, truth=np.sin)
    line_of = lines(ax)
    assert np.array_equal(line_of["predictive mean"].get_ydata(), X**2)
    assert np.array_equal(line_of["truth"].get_ydata(), np.sin(X))
    assert np.array_equal(line_of["data"].get_xydata(), np.stack(DATA, axis=1))
    marks = [line.get_xdata()[0] for line in ax.lines if len(set(line.get_xdata())) == 1]
    assert sorted(marks) == [-1.0, 1.0]


def test_less_truth_subtracts_the_curve_from_everything():
    ax = plots.fit(X, PREDICTION, data=DATA, truth=np.square, less_truth=True)
    line_of = lines(ax)
    for name in ("truth", "predictive mean"):
        assert np.array_equal(line_of[name].get_ydata(), np.zeros(9))
    np.testing.assert_allclose(line_of["data"].get_ydata(), DATA[1] - DATA[0] ** 2)
    np.testing.assert_allclose(edges(ax, "epistemic")[1], 2 * PREDICTION.epistemic)
    assert ax.get_ylabel() == "y − truth"
    with pytest.raises(ValueError, match="needs truth"):
        plots.fit(X, PREDICTION, less_truth=True)


def test_an_infinite_deviation_is_said_and_not_drawn():
    ax = plots.fit(X, PREDICTION._replace(aleatoric=np.full(9, np.inf)), data=DATA)
    labels = {text.get_text() for text in ax.get_legend().get_texts()}
    assert labels & {"predictive sd: infinite", "predictive ± 2 sd"} == {"predictive sd: infinite"}
    assert np.isfinite(ax.get_ylim()).all()
    np.testing.assert_allclose(np.diff(edges(ax, "epistemic"), axis=0)[0], 4 * PREDICTION.epistemic)


def test_residuals_are_errors_of_the_mean_with_intervals_and_tell_what_is_outside():
    mean, y = np.array([1.0, 2.0, 4.0]), np.array([1.5, 5.0, 3.0])
    ends = np.column_stack([mean - 1.25, mean + 2.0])
    ax = plots.residuals(mean, y, ends, level=0.9)
    inside, outside = [line for line in ax.lines if "side" in str(line.get_label())]
    assert (inside.get_label(), outside.get_label()) == ("inside: 2 rows", "outside: 1 rows")
    assert inside.get_xydata().tolist() == [[1.0, 0.5], [4.0, -1.0]]
    assert outside.get_xydata().tolist() == [[2.0, 3.0]]
    assert inside.get_marker() != outside.get_marker()  # also told apart without colours
    [bars] = ax.collections
    assert [path.vertices[:, 1].tolist() for path in bars.get_paths()] == [[-1.25, 2.0]] * 3
    assert bars.get_label() == "90% interval"
