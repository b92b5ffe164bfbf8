"""Means, standard errors, comparisons and the page follow from the records, by hand."""

import math
import re

import pytest
from sample_records import failure, record, sample

from bbb_studies.uci import page, tables, verdicts
from bbb_studies.uci.tables import BASELINE, DATASETS, METRICS, NETWORKS, PUBLISHED, lowest
from bbb_studies.uci.verdicts import TARGETS

(SAGAR,) = (row for row in PUBLISHED if row.reported_false)
COMMAND = "bbb-numpy uci --data boston --out DIR"


def trials(values, name="boston", method="hmc", metric="rmse"):
    return [record(name, method, split, **{metric: v}) for split, v in enumerate(values)]


def against(which, rows):
    target = TARGETS[which]
    found = tables.cells(rows).values()
    return verdicts.against(found, target.rows, target.methods.__contains__)


def ahead(rows):
    return verdicts.ahead(list(tables.cells(rows).values()))


def best(name, metric):
    return lowest(name, metric, NETWORKS)[0]


def test_mean_and_standard_error_are_over_splits():
    found = tables.cells(trials([1.0, 2.0, 4.0]))["boston", "hmc"].scores["rmse"]
    assert found.mean == pytest.approx(7 / 3, rel=1e-14)
    # squares of deviations 16/9, 1/9, 25/9: variance (42/9)/2, over 3 splits
    assert found.error == pytest.approx(math.sqrt(42 / 9 / 2 / 3), rel=1e-14)
    assert found.count == 3
    assert str(found) == "2.333 ± 0.882"
    (one,) = tables.cells(trials([1.5])).values()
    assert math.isnan(one.scores["rmse"].error)
    assert not re.search(r"\bnan\b", page.page(trials([1.5]), COMMAND))


def test_a_later_record_of_a_trial_replaces_the_earlier_one():
    again = [failure(split=1), record(split=0, rmse=1.0), record(split=1, rmse=3.0)]
    cell = tables.cells(again)["boston", "hmc"]
    assert cell.scores["rmse"].mean == 2.0
    assert cell.failed == {}
    assert len(tables.current([*again, *again])) == 2


def test_a_failed_trial_is_named_and_in_no_mean():
    rows = [record(split=0, rmse=1.0), failure(split=3), failure(split=4)]
    assert tables.cells(rows)["boston", "hmc"].scores["rmse"].mean == 1.0
    text = tables.markdown(rows)
    assert "- boston, hmc, splits 3, 4: ValueError: planted" in text
    assert "(1 of 20 splits)" in text
    only = tables.markdown([failure()])
    assert "| failed " in only
    assert page.page([failure()], COMMAND).count("no result") == 10 + 18 + 18


@pytest.mark.parametrize(
    ("name", "splits", "said"),
    [
        *(("boston", 20, ""), ("protein", 5, ""), ("power", 5, "")),  # 5 of power's 20 are measured
        *(("power", 4, "(4 of 5 splits)"), ("boston", 19, "(19 of 20 splits)")),
        ("boston", 50, "(50 splits)"),
    ],
)
def test_the_number_of_splits_is_said_unless_it_is_the_published_one(name, splits, said):
    rows = sample((name,), ("hmc",), splits)
    (line,) = (line for line in tables.markdown(rows).splitlines() if "HMC" in line)
    assert said in line
    assert ("split" in line) is bool(said)


def test_splits_that_are_missing_are_named():
    others = [record(split=split) for split in range(5, 25)]  # as many, not the same
    assert "(20 splits)" in tables.markdown(others)
    missing = "Splits are missing in: boston, hmc: 20 splits."
    assert page._complete(tables.cells(others).values()) == missing
    whole = page._complete(tables.cells(sample(("boston",), ("hmc", "map"))).values())
    assert whole.startswith("Every set and method above has")


def test_the_table_has_methods_as_rows_and_the_lowest_means_bold():
    rows = [
        record("boston", "hmc", 0, 2.0, 3.0),
        record("boston", "map", 0, 2.5, 2.0),
        record("energy", "map", 0, 0.5, 0.7),
    ]
    lines = tables.markdown(rows).splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert cells[0] == ["RMSE / NLL", "boston", "energy"]
    assert cells[2] == ["MAP", "2.500 / **2.000** (1 of 20 splits)",
                        "**0.500** / **0.700** (1 of 20 splits)"]  # fmt: skip
    assert cells[3] == ["HMC", "**2.000** / 3.000, R̂ – (1 of 20 splits)", "–"]
    assert len(cells) == 4 + len(PUBLISHED)
    assert len({len(line) for line in lines}) == 1, "columns are aligned"
    assert tables.markdown(rows, published=False).splitlines()[-1].split() == lines[3].split()


def test_a_few_easy_splits_do_not_lead_where_another_method_has_them_all():
    easy = [record("boston", "nuts", split, 1.0, 1.0) for split in range(19)]
    rows = [*sample(("boston",), ("hmc",), 20), *easy]
    (bold,) = (line for line in tables.markdown(rows).splitlines() if "**" in line)
    assert bold.startswith("| HMC ")
    (rmse, nll) = (v for v in against("best", rows) if v.set == "boston")
    assert (rmse.cell.method, nll.cell.method) == ("hmc", "hmc")
    alone = verdicts.alone(list(tables.cells(rows).values()), TARGETS["best"])
    assert alone == {"hmc": sum(one.met for one in (rmse, nll)), "nuts": 0}
    assert "| boston | NUTS | HMC |" in page.page(rows, COMMAND)
    whole = [*rows, record("boston", "nuts", 19, 1.0, 1.0)]
    assert all(v.cell.method == "nuts" for v in against("best", whole) if v.set == "boston")
    assert verdicts.alone(list(tables.cells(whole).values()), TARGETS["best"])["nuts"] == 2


def test_paired_differences_use_the_splits_of_both():
    rows = trials([1.0, 2.0, 3.0], method="hmc") + trials([1.5, 2.75], method="map")
    gap = tables.paired(rows, "boston", "map", "hmc", "rmse")
    assert (gap.mean, gap.count) == (0.625, 2)
    assert gap.error == pytest.approx(0.125, rel=1e-12)  # of 0.5 and 0.75
    assert tables.paired(rows, "boston", "map", "nuts", "rmse") is None
    hard = sample(("boston",), ("hmc", "map"))
    sharp = tables.paired(hard, "boston", "map", "hmc", "rmse").error
    assert sharp < 0.5 * tables.cells(hard)["boston", "hmc"].scores["rmse"].error


def test_the_best_published_number_is_never_the_one_reported_false():
    expected = {  # RMSE, NLL
        **{"boston": (2.71, 2.40), "concrete": (4.82, 2.93), "energy": (0.51, 0.75)},
        **{"protein": (4.27, 2.77), "wine_red": (0.61, 0.90), "yacht": (0.67, 0.47)},
        **{"power": (4.01, 2.78), "kin8nm": (0.079, -1.28), "naval": (0.00074, -6.33)},
    }
    assert {n: tuple(best(n, m) for m in METRICS) for n in DATASETS} == expected
    assert SAGAR.score("boston", "rmse") < best("boston", "rmse")  # it would have been
    networks = NETWORKS
    shared = "Chen et al. 2018a and MC dropout, grid search per split"
    assert lowest("boston", "nll", networks)[1] == shared
    holders = {lowest(n, m, networks)[1] for n in DATASETS for m in METRICS}
    assert not any(row.name in name for row in PUBLISHED if not row.bayesian for name in holders)
    # a column of Sagar's tables, in which no cell is the lowest
    (quoted,) = [row for row in PUBLISHED if row.name == "Hoffman et al. 2013"]
    assert "a claim of Sagar's" in quoted.source
    assert quoted.name not in holders


def test_only_an_unrounded_mean_strictly_below_the_printed_number_wins():
    bar = best("boston", "rmse")
    for value, met in ((bar - 1e-9, True), (bar, False), (bar + 1e-9, False)):
        found = against("best", [record("boston", "hmc", 0, rmse=value)])
        one = next(v for v in found if (v.set, v.metric) == ("boston", "rmse"))
        assert (one.met, one.margin, one.complete) == (met, bar - value, False)
    assert sum(v.cell is None for v in found) == 16
    assert "1 of 18 cells" not in verdicts.count(found)


def test_targets_ask_the_methods_that_they_name():
    rows = [
        record("energy", "mean-field", 0, 0.9, 1.5),
        record("energy", "renyi", 0, 0.8, 1.55),
        record("energy", "hmc", 0, 0.1, 0.1),  # of another target
        record("energy", "eubo", 0, 0.1, 0.1),  # of none
    ]
    found = [v for v in against("baseline", rows) if v.set == "energy"]
    assert {v.metric: (v.bar, v.holder, v.cell.method) for v in found} == {
        "rmse": (1.0, BASELINE.name, "renyi"),
        "nll": (1.56, BASELINE.name, "mean-field"),
    }
    assert verdicts.count(found) == "2 of 2 cells, 2 of them with splits missing"
    alone = verdicts.alone(list(tables.cells(rows).values()), TARGETS["baseline"])
    assert alone == {"mean-field": 0, "renyi": 0}, "one split of twenty reaches nothing"


@pytest.mark.parametrize(
    ("mean", "error", "count", "text"),
    [
        (2.5, 0.1, 20, "2.500 ± 0.100"),
        (0.0000123, 0.0000021, 20, "0.0000123 ± 0.0000021"),
        (1.5, 0.0, 20, "1.500 ± 0.000"),
        (2.5, float("nan"), 1, "2.500"),
        (0.00001234, float("nan"), 1, "1.23e-05"),
    ],
)
def test_small_numbers_keep_their_digits(mean, error, count, text):
    assert str(tables.Summary(mean, error, count)) == text


def test_whoever_is_ahead_is_named_with_the_distance_and_what_differs():
    rows = [record("protein", "hmc", 0, 4.0, 2.8), record("protein", "map", 0, 4.5, 2.9)]
    found = {(row.name, one.metric): one for one, row in ahead(rows)}
    mv = found["PBP-MV", "nll"]
    assert (mv.cell.method, mv.margin) == ("hmc", pytest.approx(-0.03))
    assert ("NGBoost", "nll") not in found  # 2.81
    assert ("TabPFN", "rmse") in found
    assert SAGAR.name not in {name for name, _ in found}
    text = page.page(rows, COMMAND)
    assert "| protein, NLL | PBP-MV | 2.77 | 2.8 (HMC) | 0.03 |" in text
    assert "- PBP-MV: two hidden layers where the others and we have one" in text
    beaten = ahead([record("protein", "hmc", 0, 1.0, 1.0)])
    assert [one for one, _ in beaten if one.metric == "rmse"] == []
    # printed as 0.00 is not ahead of what would be printed so
    small = {row.name for _, row in ahead([record("naval", "hmc", 0, 0.0004, -9.0)])}
    assert small == {"TabPFN"}  # 0.0001


def mixed(name, method, split, r_hat, size=300.0):
    one = record(name, method, split)
    notes = {f"r_hat_{s}": r_hat for s in ("functions", "noise", "weights")}
    notes |= {f"ess_{s}": size for s in ("functions", "noise", "weights")}
    return one | {"notes": one["notes"] | notes}


def test_a_cell_whose_chains_have_not_mixed_is_marked():
    def cell(*values):
        rows = [mixed("boston", "hmc", k, value) for k, value in enumerate(values)]
        return next(line for line in tables.markdown(rows).splitlines() if "HMC" in line)

    assert "R̂ 1.05 " in cell(1.01, 1.05, 1.3)  # the median
    assert "R̂ 1.06†" in cell(1.01, 1.06, 1.3)
    rows = [mixed("boston", "hmc", 0, 1.3), record("boston", "hmc", 1), record("boston", "hmc", 2)]
    assert "R̂ 1.30† of 1 split (3 of 20 splits)" in tables.markdown(rows)
    old = tables.markdown([record("boston", "hmc"), mixed("boston", "map", 0, 1.5)])
    assert "R̂ –" in old
    assert "†" not in old  # no sampler has R-hat here
    text = page.page([mixed("boston", "hmc", k, 1.0 + k, 10.0 * k + 5) for k in range(3)], COMMAND)
    three = "2.00 (3.00), ESS 15 (5)"
    assert f"| boston | HMC | 3 | {three} | {three} | {three} |" in text
    assert "| boston | HMC | – | – | – | – |" in page.page([record()], COMMAND)
    assert "R̂ beside" not in page.page([record(method="map")], COMMAND)
