"""Powerball: sorted draws counted exactly, and the file checked by the rules of the game."""

from itertools import combinations
from math import sqrt

import numpy as np
import pytest
from synthetic_data import needs_data

from bbb_studies.data import powerball
from bbb_studies.data.locate import DamagedDataError
from bbb_studies.data.powerball import (
    FILE,
    FILE_COLUMNS,
    exact,
    examples,
    load,
    mass_of_place,
    rules,
)


def every_draw(balls):
    return np.array(list(combinations(range(1, balls + 1), 5)))  # sorted, equally likely


@pytest.mark.equation("D37")
@pytest.mark.parametrize("balls", [5, 6, 9, 16])
def test_the_mass_of_a_place_counts_all_draws(balls):
    draws = every_draw(balls)
    for place in range(1, 6):
        counted = np.bincount(draws[:, place - 1], minlength=balls + 1) / len(draws)
        np.testing.assert_allclose(mass_of_place(balls, place), counted, rtol=1e-14)


@pytest.mark.equation("D37")
@pytest.mark.parametrize(("balls", "percent", "limit"), [(59, 84.60, 17), (69, 84.43, 20)])
def test_the_ceiling_is_the_one_of_the_rules(balls, percent, limit):
    found = exact(balls)
    assert 100 * found.accuracy == pytest.approx(percent, abs=0.005)
    assert found.limit == limit


@pytest.mark.equation("D37")
@pytest.mark.parametrize("balls", [8, 12])
def test_no_classifier_beats_the_ceiling(balls):
    """Every one of the 2^N classifiers, on every draw."""
    draws, found = every_draw(balls), exact(balls)
    best = 0.0
    for code in range(2**balls):
        says_first = (code >> np.arange(-1, balls).clip(0)) & 1
        right = says_first[draws[:, 0]] + 1 - says_first[draws[:, 2]]
        best = max(best, right.mean() / 2)
    assert best == pytest.approx(found.accuracy, rel=1e-12)


@pytest.mark.equation("D37")
def test_the_deviation_of_a_draw_counts_both_of_its_balls():
    balls = 11
    draws, found = every_draw(balls), exact(balls)
    right = ((draws[:, 0] <= found.limit) * 1.0 + (draws[:, 2] > found.limit)) / 2
    assert right.mean() == pytest.approx(found.accuracy, rel=1e-12)
    assert found.draw_deviation == pytest.approx(right.std(), rel=1e-12)


@needs_data
def test_the_file_has_the_draws_that_its_description_says():
    draws = load()
    assert len(draws.days) == 1085
    assert (str(draws.days[0]), str(draws.days[-1])) == ("2010-02-03", "2020-07-01")
    assert [(draws.balls == count).sum() for count in (59, 69)] == [204 + 387, 494]
    weekdays = draws.days.astype("datetime64[D]").view("int64") % 7  # 1970-01-01: a Thursday
    assert set(weekdays) == {6, 2}  # Wednesday, Saturday
    limits = powerball.urn(draws.days, powerball.POWERBALL_RULES)
    assert [draws.red[limits == count].max() for count in (39, 35, 26)] == [39, 35, 26]
    before = load(until="2017-12-31")
    assert before.red.shape == (824,)
    assert len(examples(before).number) == 1648
    assert rules(before)[59] == 591 / 824
    found = examples(draws)
    np.testing.assert_array_equal(found.number[found.label == 1], draws.white[:, 0])
    np.testing.assert_array_equal(found.number[found.label == 0], draws.white[:, 2])
    assert (found.draw[0::2] == found.draw[1::2]).all()
    for until in ("yesterday", "2009-12-31"):
        with pytest.raises(ValueError, match=r"of the first draw; got 2009|yesterday"):
            load(until=until)


@needs_data
@pytest.mark.equation("D37")
def test_the_draws_agree_with_the_rules():
    """Pearson's statistic of w1 and w3 over tenths, and the best classifier's accuracy."""
    draws = load()
    for balls in (59, 69):
        white = draws.white[draws.balls == balls]
        for place in (1, 3):
            mass = mass_of_place(balls, place)
            edges = np.searchsorted(np.cumsum(mass), np.arange(0.1, 0.95, 0.1))
            cells = np.searchsorted(edges, np.arange(balls + 1))
            wanted = np.bincount(cells, mass, 10) * len(white)
            counts = np.bincount(cells[white[:, place - 1]], minlength=10)
            assert ((counts - wanted) ** 2 / wanted).sum() < 9 + 4 * sqrt(18)  # chi2, 9 degrees
        found = exact(balls)
        right = (white[:, 0] <= found.limit).mean() / 2 + (white[:, 2] > found.limit).mean() / 2
        assert abs(right - found.accuracy) < 3 * found.draw_deviation / sqrt(len(white))


def written(root, *rows):
    (root / "powerball").mkdir(exist_ok=True)
    text = "\n".join([",".join(FILE_COLUMNS), *rows])
    (root / "powerball" / FILE).write_text(text + "\n")


def test_the_rule_of_the_day_says_how_many_balls_there_are(root):
    written(root, "2015-10-03,6,26,33,44,46,4,2", "2015-10-07,18,30,40,48,69,16,")
    np.testing.assert_array_equal(load().balls, [59, 69])


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (["2012-01-04,1,2,3,4,5,6,"] * 2, "dates must increase; data row 2"),
        (["2012-01-04,1,2,4,3,5,6,"], r"row 1 \(2012-01-04\) must have five increasing"),
        (["2012-01-04,0,2,3,4,5,6,"], "from 1 to 59"),
        (["2012-01-04,1,2,3,4,60,6,"], "from 1 to 59 and .*; it has 1, 2, 3, 4, 60"),
        (["2020-01-04,1,2,3,4,70,6,"], "from 1 to 69"),
        (["2012-01-04,1.5,2,3,4,5,6,"], "five increasing"),
        (["2012-01-14,1,2,3,4,5,40,"], "a Powerball from 1 to 39; it has 1, 2, 3, 4, 5, 40"),
        (["2012-01-18,1,2,3,4,5,36,"], "a Powerball from 1 to 35"),
        (["2016-01-06,1,2,3,4,5,27,"], "a Powerball from 1 to 26"),
        (["2016-01-06,1,2,3,4,5,0,"], "a Powerball from 1 to 26"),
    ],
)
def test_a_file_that_breaks_the_rules_is_refused(root, rows, said):
    written(root, *rows)
    with pytest.raises(DamagedDataError, match=said):
        load()
