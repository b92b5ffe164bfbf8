"""The income tax: no leak, ZIP codes kept whole, and scores that are what they are called."""

import numpy as np
import pandas as pd
import pytest
from synthetic_data import cells, needs_data

from bbb_studies.data.locate import DamagedDataError, MissingDataError
from bbb_studies.mullachery import income_tax
from bbb_studies.mullachery.income_tax import (
    AMOUNT_COLUMNS,
    COUNT_COLUMNS,
    LEAKING_COLUMNS,
    MODELS,
    NUTS_MODEL,
    TAX_INPUTS,
    Effort,
    folds,
)

# So few draws may all diverge, which sampling says aloud.
pytestmark = pytest.mark.filterwarnings("ignore:.*divergent transitions:UserWarning")
QUICK = Effort(hidden=3, chains=2, warm_up=4, draws=4, max_depth=2, epochs=4, kept=5)
NAMED = ["STATEFIPS", "STATE", "ZIPCODE", "AGI_STUB", "N1", "A00100", "A06500", "N06500"]
COLUMNS = [
    *NAMED,
    *AMOUNT_COLUMNS,
    *COUNT_COLUMNS,
    "A05800",
    "A10300",
    "A04800",
    "A18425",
    "A04470",
]


def made_up(places=30):
    """Return a table in the format of the IRS."""
    rng, table = np.random.default_rng(0), []
    for place in range(places):
        for stub in range(1, 7):
            row = {name: str(round(rng.uniform(10, 1000))) for name in COLUMNS}
            table.append(row | {"STATE": "VT", "ZIPCODE": f"05{place:03d}", "AGI_STUB": str(stub)})
    return table


def write(folder, monkeypatch, table):
    (folder / "irs_vermont").mkdir(exist_ok=True)
    pd.DataFrame(table).to_csv(folder / "irs_vermont" / income_tax.TAX_FILE, index=False)
    monkeypatch.setenv("BBB_NUMPY_DATA", str(folder))
    return income_tax.load()


def test_inputs_and_target_are_what_their_names_say(tmp_path, monkeypatch):
    table = made_up()
    cells = write(tmp_path, monkeypatch, table)
    assert cells.x.shape == (180, len(TAX_INPUTS))
    for i in (0, 5, 100):
        row = {name: float(value) for name, value in table[i].items() if name != "STATE"}
        stub = int(row["AGI_STUB"])
        expected = [
            np.log(row["A00100"] / row["N1"]) - income_tax.LOG_TYPICAL_INCOME[stub - 1],
            *(row[name] / row["A00100"] for name in AMOUNT_COLUMNS),
            *(row[name] / row["N1"] for name in COUNT_COLUMNS),
            np.log(row["N1"]),
            *(float(stub == other) for other in range(2, 7)),
        ]
        assert cells.x[i] == pytest.approx(expected, rel=1e-12)
        assert cells.y[i, 0] == pytest.approx(np.log(row["A06500"] / row["N1"]), rel=1e-12)
        assert cells.zip_code[i] == table[i]["ZIPCODE"]
        assert cells.income_class[i] == stub - 1


def test_no_column_that_contains_the_tax_is_an_input(tmp_path, monkeypatch):
    """Whatever the leaking columns hold, no bit of the inputs changes; the target does."""
    table = made_up()
    before = write(tmp_path, monkeypatch, table)
    named = {name for group in LEAKING_COLUMNS for name in group.replace(",", " ").split()}
    used = {"N1", "A00100", *AMOUNT_COLUMNS, *COUNT_COLUMNS}
    assert not used & named
    rng = np.random.default_rng(1)
    for row in table:
        for name in COLUMNS:
            if name not in used and name[0] in "AN" and name != "AGI_STUB":
                row[name] = str(rng.uniform(1, 1000))
    after = write(tmp_path, monkeypatch, table)
    assert (before.x == after.x).all()
    assert (before.y != after.y).all()


def test_rows_that_are_left_out_are_counted_by_reason(tmp_path, monkeypatch):
    table = made_up()
    for i, changes in enumerate(
        ({"ZIPCODE": "0"}, {"ZIPCODE": "99999"}, {"N1": "0"}, {"N1": "0"}, {"A06500": "0"},
         {"A00100": "-5"})
    ):  # fmt: skip
        table[i] |= changes
    cells = write(tmp_path, monkeypatch, table)
    assert list(cells.dropped.values()) == [2, 2, 1, 1]
    assert len(cells.y) == 180 - 6
    assert not np.isin(cells.zip_code, ("0", "99999")).any()
    assert np.isfinite(cells.x).all()


def test_every_place_is_whole_and_tested_once():
    place = np.repeat([f"{k:05d}" for k in range(23)], 3)
    found = folds(place, 5, seed=3)
    tested = np.concatenate([test for _, test in found])
    assert np.sort(tested).tolist() == list(range(69))
    for train, test in found:
        assert not set(place[train]) & set(place[test])
        assert len(train) + len(test) == 69
    assert (folds(place, 5, 3)[0][1] == found[0][1]).all()


@pytest.mark.parametrize("name", list(MODELS))
def test_predictions_of_a_fold_do_not_see_its_targets(name):
    """Other tax in the tested places changes no bit of what is said of them."""
    known = cells()
    only = {"linear regression": MODELS["linear regression"], name: MODELS[name]}
    one = income_tax.cross_validate(known, models=only, n_folds=2, effort=QUICK)[name]
    tested = folds(known.zip_code, 2, 0)[1][1]
    y = known.y.copy()
    y[tested] += np.random.default_rng(5).normal(0, 3, (len(tested), 1))
    changed = known._replace(y=y)
    other = income_tax.cross_validate(changed, models=only, n_folds=2, effort=QUICK)[name]
    assert (one.mean[tested] == other.mean[tested]).all()
    assert (one.noise[tested] == other.noise[tested]).all()
    assert (one.log_density[tested] != other.log_density[tested]).any()
    rest = np.setdiff1d(np.arange(len(y)), tested)
    assert (one.mean[rest] != other.mean[rest]).any(), "but they train the other folds"


def test_missing_and_damaged_files_are_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("BBB_NUMPY_DATA", str(tmp_path))
    with pytest.raises(MissingDataError, match="irs_vermont"):
        income_tax.load()
    for column, value, said in (
        ("A06500", None, "no column A06500"),
        ("AGI_STUB", "four", "finite number"),
    ):
        table = made_up(places=2)
        for row in table:
            row[column] = value
            if value is None:
                del row[column]
        with pytest.raises(DamagedDataError, match=said):
            write(tmp_path, monkeypatch, table)


@needs_data
@pytest.mark.slow
def test_noise_by_cell_beats_one_noise_on_the_real_cells():
    cells = income_tax.load()
    models = {name: income_tax.MODELS[name] for name in (income_tax.BASELINE_MODEL, NUTS_MODEL)}
    effort = Effort(chains=2, warm_up=100, draws=100, max_depth=5)
    found = income_tax.cross_validate(cells, models=models, effort=effort)
    numbers = income_tax.measure(cells, found)
    best = numbers[NUTS_MODEL]
    assert best["nll_gained"][0] > 4 * best["nll_gained"][1]
    assert best["squared_error_gained"][0] > 0
    assert best["coverage"][1] > 0.85
