"""Every picture shows the numbers it was given, says what they are, and covers none of them."""

import subprocess
import sys

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from bbb_numpy.evaluation.predictive import Predictive
from bbb_numpy.plots import fits as plots
from bbb_numpy.training import Epoch

X = np.linspace(-2.0, 2.0, 9)
PREDICTION = Predictive(X**2, 0.1 + np.abs(X), np.full(9, 0.5))
DATA = (np.array([-1.0, 0.5, 1.0]), np.array([0.9, 0.3, 7.0]))
HISTORY = [Epoch(9.0 - e, 3.0, 6.0 - e, 1e-2, np.nan) for e in range(4)]


def lines(ax):
    return {line.get_label(): line for line in ax.lines}


def edges(ax, label):
    """Lower and upper edge of a band at every x."""
    (band,) = [c for c in ax.collections if c.get_label().startswith(label)]
    vertices = band.get_paths()[0].vertices
    at = [vertices[vertices[:, 0] == x, 1] for x in X]
    return np.array([v.min() for v in at]), np.array([v.max() for v in at])


def draw_all():
    return {
        "loss": plots.loss(HISTORY),
        "fit": plots.fit(X, PREDICTION, data=DATA, truth=np.square),
        "deviations": plots.deviations(X, {"a": 1 + X**2, "b": 2 + X**2}, ranges={"a": (-1, 1)}),
    }


def test_new_axes_are_made_when_none_are_given_and_given_ones_are_used():
    for made in draw_all().values():
        assert isinstance(made, Axes)
        assert isinstance(made.figure, Figure)
    figure = Figure()
    ax = figure.subplots()
    assert plots.loss(HISTORY, ax=ax) is ax
    assert plots.fit(X, PREDICTION, ax=figure.add_subplot()) in figure.axes


def test_every_axis_is_labelled():
    for ax in draw_all().values():
        assert ax.get_xlabel()
        assert ax.get_ylabel()
        assert ax.get_legend() is not None
    assert plots.loss(HISTORY).get_ylabel() == "nats"
    assert plots.loss(HISTORY, rows=4).get_ylabel() == "nats per training example"


def test_no_legend_covers_the_panel():
    for ax in draw_all().values():
        canvas = FigureCanvasAgg(ax.figure)
        canvas.draw()
        legend, panel = ax.get_legend().get_window_extent(), ax.get_window_extent()
        assert legend.y0 >= panel.y1
        assert legend.y1 <= ax.figure.bbox.y1 + 1


def test_pyplot_is_never_loaded():
    code = (
        "import sys, bbb_numpy.plots.fits, bbb_studies.kebude.report;"
        "sys.exit('matplotlib.pyplot' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_loss_shows_the_free_energy_and_both_its_parts_from_epoch_1():
    shown = lines(plots.loss(HISTORY, rows=2))
    assert np.array_equal(shown["free energy"].get_xdata(), [1, 2, 3, 4])
    assert np.array_equal(shown["free energy"].get_ydata(), [4.5, 4.0, 3.5, 3.0])
    assert np.array_equal(shown["KL(q, prior)"].get_ydata(), [1.5] * 4)
    assert np.array_equal(shown["−log likelihood"].get_ydata(), [3.0, 2.5, 2.0, 1.5])


@pytest.mark.parametrize(
    ("objectives", "scale"),
    [((9.0, 1.0), "log"), ((9.0, 4.0), "linear"), ((9.0, -1.0), "linear"), ((9.0, 0.0), "linear")],
)
def test_the_loss_is_logarithmic_only_where_that_is_possible_and_useful(objectives, scale):
    history = [Epoch(value, 4.0, 5.0, 1e-2, np.nan) for value in objectives]
    assert plots.loss(history).get_yscale() == scale


def test_an_empty_history_is_refused():
    with pytest.raises(ValueError, match="history is empty"):
        plots.loss([])


def test_the_bands_are_two_unscaled_deviations_to_each_side():
    ax = plots.fit(X, PREDICTION)
    for label, deviation in (("epistemic", PREDICTION.epistemic), ("predictive", PREDICTION.total)):
        low, high = edges(ax, label)
        np.testing.assert_allclose(low, X**2 - 2 * deviation, rtol=1e-15, atol=1e-15)
        np.testing.assert_allclose(high, X**2 + 2 * deviation, rtol=1e-15, atol=1e-15)


def test_fit_shows_data_truth_and_mean_and_marks_the_range_of_the_data():
    ax = plots.fit(X, PREDICTION, data=DATA, truth=np.sin)
    shown = lines(ax)
    assert np.array_equal(shown["predictive mean"].get_ydata(), X**2)
    assert np.array_equal(shown["truth"].get_ydata(), np.sin(X))
    assert np.array_equal(shown["data"].get_xydata(), np.stack(DATA, axis=1))
    marks = [line.get_xdata()[0] for line in ax.lines if len(set(line.get_xdata())) == 1]
    assert sorted(marks) == [-1.0, 1.0]


def test_columns_and_flat_arrays_give_the_same_picture():
    column = Predictive(*(moment[:, None] for moment in PREDICTION))
    flat, tall = plots.fit(X, PREDICTION), plots.fit(X[:, None], column)
    assert np.array_equal(edges(flat, "predictive"), edges(tall, "predictive"))


def test_less_truth_subtracts_the_curve_from_everything():
    ax = plots.fit(X, PREDICTION, data=DATA, truth=np.square, less_truth=True)
    shown = lines(ax)
    assert np.array_equal(shown["truth"].get_ydata(), np.zeros(9))
    assert np.array_equal(shown["predictive mean"].get_ydata(), np.zeros(9))
    np.testing.assert_allclose(shown["data"].get_ydata(), DATA[1] - DATA[0] ** 2)
    np.testing.assert_allclose(edges(ax, "epistemic")[1], 2 * PREDICTION.epistemic)
    assert ax.get_ylabel() == "y − truth"
    with pytest.raises(ValueError, match="needs truth"):
        plots.fit(X, PREDICTION, less_truth=True)


def test_by_default_bands_and_data_fit_into_the_panel_and_the_truth_may_leave_it():
    ax = plots.fit(X, PREDICTION, data=DATA, truth=lambda x: 1000 * x)
    low, high = ax.get_ylim()
    assert low < (X**2 - 2 * PREDICTION.total).min()
    assert max(7.0, (X**2 + 2 * PREDICTION.total).max()) < high < 1000
    assert plots.fit(X, PREDICTION, y_limits=(-1, 2)).get_ylim() == (-1, 2)
    assert ax.get_xlim() == (-2, 2)


def test_an_infinite_deviation_is_said_and_not_drawn():
    ax = plots.fit(X, PREDICTION._replace(aleatoric=np.full(9, np.inf)), data=DATA)
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert "predictive sd: infinite" in labels
    assert "predictive ± 2 sd" not in labels
    assert np.isfinite(ax.get_ylim()).all()
    low, high = edges(ax, "epistemic")
    np.testing.assert_allclose(high - low, 4 * PREDICTION.epistemic)


def test_a_prediction_of_two_outputs_is_refused():
    two = Predictive(*(np.stack([m, m], axis=1) for m in PREDICTION))
    with pytest.raises(ValueError, match=r"one output for each of 9 x; got shape \(9, 2\)"):
        plots.fit(X, two)


def test_deviations_are_thick_only_within_their_data():
    ax = plots.deviations(X, {"a": 1 + X**2}, ranges={"a": (-1, 1)})
    thin, thick = ax.lines[:2]
    assert np.array_equal(thin.get_ydata(), 1 + X**2)
    drawn = np.isfinite(thick.get_ydata())
    assert np.array_equal(X[drawn], X[np.abs(X) <= 1])
    assert ax.get_yscale() == "log"


def test_the_figure_of_the_report_has_loss_then_fit():
    a, b, c = plots.report_figure(
        HISTORY, X, PREDICTION, data=DATA, truth=np.square, y_limits=(-9, 9), title="title"
    )
    assert a.figure is b.figure is c.figure
    assert "free energy" in lines(a)
    assert a.get_ylabel() == "nats per training example"
    assert np.array_equal(lines(b)["predictive mean"].get_ydata(), X**2)
    assert b.get_ylim() == (-9, 9)
    assert c.get_xlim() == (-1, 1)
    assert np.array_equal(lines(c)["truth"].get_ydata(), np.zeros(5))
    assert [ax.get_xlabel().split("\n")[1][:3] for ax in (a, b, c)] == ["(a)", "(b)", "(c)"]


def luminance(colour):
    return np.dot(to_rgb(colour), (0.299, 0.587, 0.114))


def test_curves_differ_in_style_and_bands_in_lightness_so_that_grey_print_suffices():
    ax = plots.fit(X, PREDICTION, data=DATA, truth=np.square)
    inner, outer = luminance(plots.SKY), luminance(plots.PALE)
    assert 1 - outer > 0.05
    assert outer - inner > 0.15
    assert inner - luminance(plots.VERMILLION) > 0.2
    shown = lines(ax)
    assert shown["truth"].get_linestyle() != shown["predictive mean"].get_linestyle()
    for ax in (plots.loss(HISTORY), plots.deviations(X, dict.fromkeys("abcd", X**2 + 1))):
        styles = [line.get_linestyle() for line in ax.lines]
        assert len(set(styles)) == len(styles)
