"""The nine UCI sets: the published rows, the published splits, and nothing else."""

import os
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn import datasets as sklearn_datasets

from bbb_studies.data.locate import ENVIRONMENT, DamagedDataError, MissingDataError, find
from bbb_studies.data.uci import _SETS, NAMES, load, standard_splits

needs_data = pytest.mark.skipif(
    not os.environ.get(ENVIRONMENT), reason=f"{ENVIRONMENT} is not set: no UCI sets"
)
SHAPES = {
    "boston": (506, 13, 20, 51, 22.5328),
    "concrete": (1030, 8, 20, 103, 35.818),
    "energy": (768, 8, 20, 77, 22.3072),
    "protein": (45730, 9, 5, 4573, 7.74853),
    "wine_red": (1599, 11, 20, 160, 5.63602),
    "yacht": (308, 6, 20, 31, 10.49536),
    "power": (9568, 4, 20, 957, 454.36501),
    "kin8nm": (8192, 8, 20, 819, 0.7142835),
    "naval": (11934, 16, 20, 1193, 0.975),
}


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
@pytest.mark.parametrize("name", NAMES)
def test_a_set_has_the_published_rows_and_splits(name):
    rows, inputs, splits, held_out, mean = SHAPES[name]
    found = load(name)
    assert found.x.shape == (rows, inputs)
    assert found.y.shape == (rows, 1)
    assert len(found.names) == inputs + 1
    assert found.y.mean() == pytest.approx(mean, rel=1e-5)
    assert len(found.test_rows) == splits
    for split in range(splits):
        training = found.training_rows(split)
        assert len(found.test_rows[split]) == held_out
        assert sorted([*training, *found.test_rows[split]]) == list(range(rows))
    published = find(name, "test_splits.txt")
    if published:
        np.testing.assert_array_equal(found.test_rows, np.loadtxt(published, dtype=int))


@needs_data
def test_naval_is_the_trap_that_it_is_said_to_be():
    found = load("naval")
    constant = [name for name, x in zip(found.names, found.x.T, strict=False) if np.ptp(x) == 0]
    assert constant == ["gt_compressor_inlet_temperature", "gt_compressor_inlet_pressure"]
    assert len(np.unique(found.y)) == 51
    assert len(np.unique(found.x, axis=0)) == len(found.x)


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


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        *((one, "two rows swapped", "published order") for one in NAMES),
        ("wine_red", "a point lost", "published order"),
        ("wine_red", "a row lost", "has 1598 rows"),
        ("wine_red", "another header", "must begin with the line fixed_acidity,"),
    ],
)
@needs_data
def test_other_rows_or_another_order_are_refused(tmp_path, monkeypatch, name, change, said):
    here, names = load(name), None
    table = np.hstack([here.x, here.y])
    if change == "two rows swapped":
        table[[3, -7]] = table[[-7, 3]]
        assert (table[3] != table[-7]).any()
    elif change == "a point lost":
        table[1598, 0] *= 10.0
    elif change == "a row lost":
        table = table[1:]
    else:
        names = here.names[::-1]
    (tmp_path / name).mkdir()
    path = tmp_path / name / find(name, _SETS[name].file or f"{name}.csv").name
    header = ",".join(names or here.names)
    np.savetxt(path, table, delimiter=",", header=header, comments="", fmt="%.17g")
    monkeypatch.setenv(ENVIRONMENT, str(tmp_path))
    with pytest.raises(DamagedDataError, match=said):
        load(name)


def test_a_set_that_is_unknown_or_nowhere_is_named(root, monkeypatch):
    def fetch(**_):
        raise OSError("no network")

    monkeypatch.setattr(sklearn_datasets, "fetch_openml", fetch)
    with pytest.raises(ValueError, match="'iris'; there are boston, concrete, energy"):
        load("iris")
    with pytest.raises(MissingDataError, match="no network") as caught:
        load("concrete")
    assert str(root / "concrete" / "concrete.csv") in str(caught.value)
