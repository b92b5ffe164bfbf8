"""Pictures of calibration show the numbers they were given."""

import io

import numpy as np
import pytest
from matplotlib.axes import Axes

from bbb_numpy.evaluation.calibration import coverage
from bbb_numpy.evaluation.reliability import reliability
from bbb_numpy.plots.calibration import coverage_curve, reliability_diagram

RNG = np.random.default_rng(0)
PROBA = RNG.random(400)
TABLE = reliability(PROBA, (RNG.random(400) < PROBA).astype(float))
PITS = RNG.beta(2, 2, 500)


@pytest.mark.parametrize(
    ("draw", "curves"),
    [
        (reliability_diagram, {"one": TABLE, "two": TABLE}),
        (coverage_curve, {"a": coverage(PITS), "b": coverage(PITS, [0.2, 0.6])}),
    ],
)
def test_axes_are_labelled_have_a_legend_outside_and_can_be_saved(draw, curves):
    ax = draw(curves)
    assert isinstance(ax, Axes)
    assert "" not in (ax.get_xlabel(), ax.get_ylabel())
    ax.figure.savefig(io.BytesIO(), dpi=50)
    legend = ax.get_legend().get_window_extent()
    assert legend.y0 >= ax.get_window_extent().y1 - 1, "above the axes, where no data are"


def test_reliability_shows_the_table():
    ax = reliability_diagram({"one": TABLE})
    (curve,) = [c for c in ax.containers if c.get_label() == "one"]
    np.testing.assert_allclose(curve[0].get_xydata().T, [TABLE.predicted, TABLE.observed])
    ends = np.array(curve[2][0].get_segments())
    assert ends[:, :, 1] == pytest.approx(np.stack([TABLE.observed_low, TABLE.observed_high], 1))
    low, high = ax.get_ylim()
    assert low < TABLE.observed_low.min()
    assert high > TABLE.observed_high.max()


def test_coverage_shows_shares_against_levels():
    expected = coverage(PITS)
    (line,) = [x for x in coverage_curve({"a": expected}).lines if x.get_label() == "a"]
    np.testing.assert_allclose(line.get_xydata().T, [expected.level, expected.share])


def test_five_curves_are_more_than_the_styles():
    with pytest.raises(ValueError, match="must have 1 to 4 curves"):
        coverage_curve({str(k): coverage(PITS) for k in range(5)})
