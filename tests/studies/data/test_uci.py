"""The nine UCI sets: the published rows, the published splits, and nothing else."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn import datasets as sklearn_datasets
from synthetic_data import needs_data

from bbb_studies.data.locate import (
    ENVIRONMENT,
    SETS,
    DamagedDataError,
    MissingDataError,
    find,
    read,
)
from bbb_studies.data.uci import UCI_NAMES, load, standard_splits


def test_the_splits_follow_the_published_recipe():
    parts = standard_splits(506, 3)
    # The first row numbers of three published splits.
    assert [list(part[:4]) for part in parts] == [
        [431, 115, 470, 216],
        [474, 39, 157, 420],
        [59, 31, 69, 355],
    ]
    for part in parts:
        assert len(set(part)) == len(part) == 51


@needs_data
@pytest.mark.parametrize("name", UCI_NAMES)
def test_a_set_has_the_published_splits(name):
    found = load(name)
    rows = len(found.y)
    assert len(found.names) == found.x.shape[1] + 1
    for split, part in enumerate(found.test_rows):
        assert sorted([*found.training_rows(split), *part]) == list(range(rows))
    published = find(name, "test_splits.txt")
    if published:
        np.testing.assert_array_equal(found.test_rows, np.loadtxt(published, dtype=int))


@needs_data
def test_openml_gives_the_same_set(monkeypatch):
    here = load("energy")
    table = np.hstack([here.y, here.x])  # another order of the columns
    names = [here.names[-1], *here.names[:-1]]
    frame = pd.DataFrame(table, columns=[name.upper() for name in names])
    monkeypatch.delenv(ENVIRONMENT)
    monkeypatch.setattr(sklearn_datasets, "fetch_openml", lambda **_: SimpleNamespace(frame=frame))
    there = load("energy")
    np.testing.assert_array_equal(there.x, here.x)
    np.testing.assert_array_equal(there.y, here.y)
    np.testing.assert_array_equal(there.test_rows, here.test_rows)


@needs_data
@pytest.mark.parametrize("name", [name for name in UCI_NAMES if name != "protein"])
def test_other_rows_or_another_order_are_refused(tmp_path, monkeypatch, name):
    head, rows = read(find(name, SETS[name]["file"]), SETS[name]["columns"])
    (tmp_path / name).mkdir()
    monkeypatch.setenv(ENVIRONMENT, str(tmp_path))
    monkeypatch.setitem(SETS[name], "file", "plain.csv")
    rows[[3, -7]] = rows[[-7, 3]]
    for some, said in ((rows, "published order"), (rows[1:], f"has {len(rows) - 1} rows")):
        (tmp_path / name / "plain.csv").write_text("\n".join(map(",".join, [head, *some])))
        with pytest.raises(DamagedDataError, match=said):
            load(name)


def test_a_set_that_is_nowhere_is_named(root, no_network):
    with pytest.raises(MissingDataError, match="no network") as caught:
        load("concrete")
    assert str(root / "concrete" / "concrete.csv") in str(caught.value)
