"""Data files: found where they should be, else an error that tells what to do."""

import gzip
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn import datasets as sklearn_datasets

from bbb_studies.data.locate import (
    ENVIRONMENT,
    SETS,
    DamagedDataError,
    MissingDataError,
    download,
    find,
    increasing_days,
    locate,
    numbers,
    read,
)


def put(root, file, text):
    (root / "sp500").mkdir(exist_ok=True)
    (root / "sp500" / file).write_bytes(text.encode() if isinstance(text, str) else text)
    return root / "sp500" / file


def test_a_file_is_found_or_the_error_says_what_where_from_and_where_to(root):
    path = put(root, "draws.csv", "a,b\n1,2\n")
    assert find("sp500", "draws.csv") == locate("sp500", "draws.csv") == path
    assert find("sp500", "other.csv") is find("powerball", "draws.csv") is None
    with pytest.raises(MissingDataError) as caught:
        locate("powerball")
    said = str(caught.value)
    for part in ("New York State open data", "w1 to w5", str(root / "powerball" / "powerball_2")):
        assert part in said


@pytest.mark.parametrize("name", SETS)
def test_without_the_variable_the_error_says_how_to_set_it(monkeypatch, name):
    monkeypatch.setenv(ENVIRONMENT, "")
    with pytest.raises(MissingDataError, match=f"set {ENVIRONMENT}=FOLDER") as caught:
        locate(name, "x.csv")
    assert f"FOLDER/{name}/x.csv" in str(caught.value)


def test_a_variable_that_names_no_folder_is_refused_at_once(tmp_path, monkeypatch):
    for path in (tmp_path / "nowhere", __file__):
        monkeypatch.setenv(ENVIRONMENT, str(path))
        with pytest.raises(MissingDataError, match="which is no folder"):
            find("boston", "boston.csv")


@pytest.mark.parametrize("packed", [False, True])
def test_a_table_is_read_plain_and_packed(root, packed):
    text = b"a,b\n1,2.5\n\n-3e2,4\n"
    path = put(root, "t.csv" + ".gz" * packed, gzip.compress(text) if packed else text)
    header, rows = read(path, ["a", "b"])
    assert header == ["a", "b"]
    np.testing.assert_array_equal(numbers("t.csv", rows, header), [[1, 2.5], [-300, 4]])


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "begins with nothing"),
        ("b,a\n1,2\n", "must begin with the line a,b; it begins with b,a"),
        ("a,b\n", "t.csv.* has no rows"),
        ("a,b\n1,2\n3\n", "changed from 2 to 1 at row 3"),
        (b"a,b\n\xff\xfe\x00,2\n", "t.csv.* cannot be read as a table"),
        (gzip.compress(b"a,b\n" + b"1,2\n" * 999, mtime=0)[:-20], "cannot be read as a table"),
    ],
)
def test_a_damaged_table_is_refused_with_its_place(root, content, said):
    packed = content[:2] == b"\x1f\x8b"
    with pytest.raises(DamagedDataError, match=said):
        read(put(root, "t.csv" + ".gz" * packed, content), ["a", "b"])


def test_a_folder_of_a_user_who_has_no_home_is_missing(monkeypatch):
    monkeypatch.setenv("BBB_NUMPY_DATA", "~nobody-of-this-name/data")
    with pytest.raises(MissingDataError, match="'~nobody-of-this-name/data', which is no folder"):
        locate("yacht")


def test_cells_that_are_no_numbers_and_days_that_do_not_increase_are_named():
    for cell in ("x", "", "nan", "inf", "1.2.3"):
        with pytest.raises(DamagedDataError, match=r"t.csv holds .* data row 2, column b"):
            numbers("t.csv", np.array([["1", "2"], ["3", cell]]), ["a", "b"])
    with pytest.raises(DamagedDataError, match=r"t.csv: the dates must increase; data row 2"):
        increasing_days("t.csv", np.array(["2012-01-04"] * 2))
    with pytest.raises(DamagedDataError, match="must be like 2010-01-04"):
        increasing_days("t.csv", np.array(["4.1.2012"]))


def test_columns_of_openml_come_in_the_order_asked_for(monkeypatch):
    table = pd.DataFrame({"Y": [1.5, 2.5], "Fixed acidity": [7.4, 7.8], "RAD": ["24", "5"]})
    asked = {}

    def fetch(**given):
        asked.update(given)
        return SimpleNamespace(frame=table.astype({"RAD": "category"}))

    monkeypatch.setattr(sklearn_datasets, "fetch_openml", fetch)
    found = download("boston", ["fixed_acidity", "rad", "y"])
    np.testing.assert_array_equal(found, [[7.4, 24.0, 1.5], [7.8, 5.0, 2.5]])
    assert asked["data_id"] == 531
    with pytest.raises(DamagedDataError, match="no column CRIM; it has Y, Fixed acidity, RAD"):
        download("boston", ["CRIM", "y"])


def test_what_openml_does_not_give_says_where_else_to_get_it(no_network):
    with pytest.raises(MissingDataError, match=r"no network.*StatLib"):
        download("boston", ["CRIM"])
    with pytest.raises(MissingDataError, match="no copy of it at OpenML is known"):
        download("powerball", ["w1"])
