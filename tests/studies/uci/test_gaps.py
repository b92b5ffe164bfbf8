"""Gap splits: no training row is in the gap, and the page says what the records hold."""

import math

import numpy as np
import pytest
from uci_trials import TINY, toy

from bbb_studies.uci import gaps, pictures
from bbb_studies.uci.gaps import GapTrial, gap, measure
from bbb_studies.uci.trials import Trial

pytestmark = pytest.mark.filterwarnings("ignore:.*divergent transitions:UserWarning")


@pytest.mark.parametrize("rows", [30, 100, 307])
def test_no_row_of_the_outer_thirds_is_in_the_gap(rows):
    values = np.random.default_rng(rows).normal(size=rows)
    part = gap(values)
    outer = values[np.r_[part.train, part.outside]]
    inside = values[part.inside]
    low, high = inside.min(), inside.max()
    assert not ((outer >= low) & (outer <= high)).any()
    assert (outer < low).sum() >= len(values) // 3
    assert (outer > high).sum() >= len(values) // 3
    everyone = np.concatenate(part)
    assert sorted(everyone) == list(range(len(values)))
    assert len(part.outside) == round(0.1 * (len(part.train) + len(part.outside)))


@pytest.mark.parametrize(
    "values", [np.zeros(60), np.repeat([0.0, 1.0], 30), np.arange(60) // 20 // 2]
)
def test_too_few_values_have_no_gap(values):
    assert gap(values) is None


def test_there_is_a_trial_for_each_input_that_has_a_gap(monkeypatch):
    data = toy(60)
    x = data.x.copy()
    x[:, 1] = np.arange(60) % 2
    monkeypatch.setattr(gaps, "load", lambda name: data._replace(x=x))
    found = gaps.trials(("yacht",), ("map", "hmc"), units=4)
    assert [one.key for one in found] == [
        *("yacht/map/00", "yacht/map/02", "yacht/hmc/00", "yacht/hmc/02")
    ]
    assert {one.settings.units for one in found} == {4}
    assert len({one.seed for one in found}) == 4
    with pytest.raises(ValueError, match="input 1 of yacht has too few values"):
        measure(GapTrial("yacht", "map", 1, TINY))


@pytest.mark.parametrize("method", ["map", "hmc"])
def test_rows_in_the_gap_and_beside_it_cannot_influence_a_fit(monkeypatch, method):
    data, seen = toy(60), []
    part = gap(data.x[:, 0])

    def fitted(x, y, *rest):
        seen.append((x.tobytes(), y.tobytes()))
        return gaps_fit(x, y, *rest)

    gaps_fit = gaps.fit_part
    monkeypatch.setattr(gaps, "fit_part", fitted)
    monkeypatch.setattr(gaps, "load", lambda name: data)
    record = measure(GapTrial("yacht", method, 0, TINY))
    assert seen == [(data.x[part.train].tobytes(), data.y[part.train].tobytes())]
    assert record["rows"] == {name: len(rows) for name, rows in part._asdict().items()}
    assert record["name"] == "a"
    assert set(record["metrics"]) == {"inside", "outside"}
    assert ("r_hat_functions" in record["notes"]) is (method == "hmc")
    y = data.y.copy()
    y[part.inside] += 100.0
    monkeypatch.setattr(gaps, "load", lambda name: data._replace(y=y))
    moved = measure(GapTrial("yacht", method, 0, TINY))["metrics"]
    assert moved["outside"] == record["metrics"]["outside"]
    assert moved["inside"]["rmse"] > 50.0


def made(name, method, place, outside, inside, deviations, coverage=(0.9, 0.5)):
    """Return a record of a gap."""
    parts = {}
    for where, nll, deviation, share in zip(
        ("outside", "inside"), (outside, inside), deviations, coverage, strict=True
    ):
        levels = [0.0 if level < 0.89 else share for level in np.arange(1, 20) / 20]
        parts[where] = {"nll": nll, "rmse": 2.0 * nll, "coverage": levels, "epistemic": deviation}
    one = {"key": f"{name}/{method}/{place:02d}", "set": name, "method": method}
    return one | {"status": "ok", "metrics": parts}


ROWS = [
    made("yacht", "hmc", 0, 1.0, 2.0, (0.1, 0.2)),
    made("yacht", "hmc", 5, 2.0, 5.0, (0.1, 0.8), (0.8, 0.3)),
    made("yacht", "map", 0, 1.0, 9.0, (0.0, 0.0)),
    made("boston", "hmc", 3, 1.0, 1.0, (0.1, 0.1)),
]


def test_means_are_over_gaps_and_the_growth_is_geometric():
    found = pictures.gap_table(ROWS).set_index(["set", "method"])
    yacht = found.loc["yacht", "hmc"]
    expected = {
        **{"gaps": 2, "growth": math.sqrt(2 * 8), "nll_outside": 1.5, "nll_inside": 3.5},
        **{"rmse_outside": 3.0, "rmse_inside": 7.0},
        **{"coverage_outside": 0.85, "coverage_inside": 0.4},
    }
    assert dict(yacht[[*expected]]) == pytest.approx(expected)
    assert math.isnan(found.loc["yacht", "map"].growth)
    again = pictures.gap_table([*ROWS, made("boston", "hmc", 3, 7.0, 8.0, (0.1, 0.1))])
    boston = again[again["set"] == "boston"].iloc[0]
    assert (boston.nll_outside, boston.nll_inside) == (7.0, 8.0)


def test_the_picture_has_a_column_for_each_set():
    figure = pictures.gaps(ROWS)
    figure.canvas.draw()
    assert [ax.get_title() for ax in figure.axes[:2]] == ["boston", "yacht"]
    with pytest.raises(ValueError, match="no trial has finished"):
        pictures.gaps([])
    star = pictures.gaps([made("yacht", "ivon", 0, 1.0, 2.0, (0.1, 0.2))]).axes[0].lines
    assert {y for line in star for y in line.get_ydata()} == {0.0}  # its marker is no number
    far = made("yacht", "hmc", 0, 1.0, 1e4, (0.1, 0.2))
    alone = pictures.gaps([far, *ROWS[1:]])
    assert any("→" in text.get_text() for text in alone.axes[1].texts)
    assert alone.axes[1].get_xlim()[1] < 100


def test_a_gap_has_other_random_numbers_than_the_split_with_its_key():
    one, other = GapTrial("yacht", "map", 1), Trial("yacht", "map", 1)
    assert one.key == other.key
    assert one.seed != other.seed
