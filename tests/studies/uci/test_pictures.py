"""The pictures show the numbers of the records, whatever is missing."""

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from sample_records import METHODS, failure, record, sample

from bbb_studies.uci import pictures, tables
from bbb_studies.uci.methods import METHODS as TABLE
from bbb_studies.uci.tables import BASELINE, NETWORKS, lowest


def size(figure):
    figure.canvas.draw()
    return figure.get_size_inches()


def test_scores_are_at_their_means_with_their_standard_errors():
    rows = sample(("boston",), ("map", "hmc"), 4)
    figure = pictures.scores(rows)
    cell = tables.cells(rows)["boston", "hmc"]
    for ax, metric in zip(figure.axes, ("rmse", "nll"), strict=True):
        points = [c for c in ax.containers if c.lines[0].get_ydata()[0] == 1]  # HMC's row
        assert points[0].lines[0].get_xdata()[0] == cell.scores[metric].mean
        left, right = (cap.get_xdata()[0] for cap in points[0].lines[1])
        assert right - left == pytest.approx(2 * cell.scores[metric].error)
        bars = {line.get_label(): line.get_xdata()[0] for line in ax.lines if len(line.get_xdata())}
        assert bars["best Bayesian network listed"] == lowest("boston", metric, NETWORKS)[0]
        assert bars[BASELINE.name] == BASELINE.score("boston", metric)


def test_a_mean_far_away_is_at_the_edge_with_its_number():
    rows = [*sample(("boston",), ("map", "hmc", "nuts"), 3), record("boston", "eubo", 0, 77.7)]
    ax = pictures.scores(rows).axes[0]
    assert ax.get_xlim()[1] < 10
    assert "77.7" in [text.get_text() for text in ax.texts]


def test_without_published_numbers_no_mean_within_the_errors_is_far():
    rows = [
        record("boston", method, split, 50.0 + 4.0 * split + gap) | {"set": "mine.csv"}
        for method, gap in (("map", 0.0), ("hmc", 0.1), ("ensemble", 3.0))
        for split in range(3)
    ]
    ax = pictures.scores(rows).axes[0]
    assert [text.get_text() for text in ax.texts] == []
    assert ax.get_xlim()[1] > 57.0


def test_coverage_is_the_mean_over_splits_less_the_level():
    rows = sample(("boston", "energy"), ("map", "hmc"), 3)
    figure = pictures.calibration(rows)
    curve = next(line for line in figure.axes[3].lines if line.get_label() == "HMC")
    own = [
        row["metrics"]["coverage"] for row in rows if row["set"] == "energy"
        and row["method"] == "hmc"
    ]  # fmt: skip
    assert np.allclose(
        curve.get_ydata(), np.mean(own, axis=0) - pictures.INTERVAL_LEVELS, atol=1e-15
    )
    assert np.allclose(pictures.INTERVAL_LEVELS, np.arange(0.05, 0.96, 0.05))


def test_a_bar_above_the_panel_has_its_height_written():
    one = record()
    one["metrics"]["pit"] = [30, *[1] * 19]
    ax = pictures.pit([one]).axes[0]
    assert [text.get_text().strip() for text in ax.texts] == [f"{30 * 20 / 49:.1f}"]


@pytest.mark.parametrize("draw", [pictures.scores, pictures.calibration, pictures.pit])
def test_pictures_are_drawn_of_any_records(draw):
    for rows in (
        [record()],
        [record(), record("energy", "map"), failure("energy", "hmc")],
        [record(method="another"), record("boston", "map", 3)],
    ):
        assert min(size(draw(rows))) > 1
    with pytest.raises(ValueError, match="no trial has finished"):
        draw([failure()])


def test_every_method_has_a_style_that_survives_grey_print():
    assert set(pictures.METHOD_STYLES) == set(METHODS) == set(tables.METHOD_LABELS)
    assert len({marker for _, marker, _ in pictures.METHOD_STYLES.values()}) == len(METHODS)
    for group in pictures.GROUPS:
        members = [name for name, method in TABLE.items() if method.group == group]
        styles = [pictures.METHOD_STYLES[method] for method in members]
        assert len({str(line) for _, _, line in styles}) == len(members)
        assert len({colour for colour, _, _ in styles}) == len(members)
    grey = np.array([0.299, 0.587, 0.114])
    assert max(grey @ to_rgb(colour) for colour, _, _ in pictures.METHOD_STYLES.values()) < 0.7
