"""Pictures that one study draws: the report's figure, and signal-to-noise ratios."""

import numpy as np
import pytest

from bbb_numpy.evaluation.predictive import Predictive
from bbb_numpy.training import Epoch
from bbb_studies.blundell.ratios import ratios
from bbb_studies.kebude.figure import loss, report_figure

X = np.linspace(-2.0, 2.0, 9)
PREDICTION = Predictive(X**2, 0.1 + np.abs(X), np.full(9, 0.5))
DATA = (np.array([-1.0, 0.5, 1.0]), np.array([0.9, 0.3, 7.0]))
HISTORY = [Epoch(9.0 - e, 3.0, 6.0 - e, 1e-2, np.nan) for e in range(4)]


def lines(ax):
    return {line.get_label(): line for line in ax.lines}


def test_the_loss_shows_the_free_energy_and_both_its_parts_from_epoch_1():
    shown = lines(loss(HISTORY, rows=2))
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
    assert loss(history).get_yscale() == scale


def test_the_figure_of_the_report_has_loss_then_fit():
    a, b, c = report_figure(
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


def test_the_share_marked_lies_below_the_line():
    ratio = np.exp(np.random.default_rng(0).normal(0, 1, 500))
    ax = ratios(ratio, share=0.75)
    (line,) = [line for line in ax.lines if line.get_label() == "75% below"]
    cut = 10 ** (line.get_xdata()[0] / 10)
    assert np.mean(ratio < cut) == pytest.approx(0.75)
    assert "dB" in ax.get_xlabel()
