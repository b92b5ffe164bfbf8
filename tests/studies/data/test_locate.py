"""Data files: found where they should be, else an error that tells what to do."""

import gzip
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn import datasets as sklearn_datasets

from bbb_studies.data.locate import (
    ENVIRONMENT,
    ORIGINS,
    DamagedDataError,
    MissingDataError,
    download,
    find,
    increasing_days,
    locate,
    numbers,
    read,
)


def put(root, name, file, text):
    (root / name).mkdir(exist_ok=True)
    path = root / name / file
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_a_file_is_found_in_the_folder_of_its_set(root):
    path = put(root, "powerball", "draws.csv", "a,b\n1,2\n")
    assert find("powerball", "draws.csv") == locate("powerball", "draws.csv") == path
    assert find("powerball", "other.csv") is None
    assert find("sp500", "draws.csv") is None


def test_a_missing_file_says_what_where_from_and_where_to(root):
    with pytest.raises(MissingDataError) as caught:
        locate("powerball", "powerball_2010_2020.csv")
    said = str(caught.value)
    for part in ("powerball_2010_2020.csv", "New York State open data", "Beginning 2010"):
        assert part in said
    assert str(root / "powerball" / "powerball_2010_2020.csv") in said
    assert "w1 to w5" in said
    assert isinstance(caught.value, FileNotFoundError)


@pytest.mark.parametrize("value", [None, ""])
def test_without_the_variable_the_error_says_how_to_set_it(monkeypatch, value):
    if value is None:
        monkeypatch.delenv(ENVIRONMENT, raising=False)
    else:
        monkeypatch.setenv(ENVIRONMENT, value)
    for name in ORIGINS:
        with pytest.raises(MissingDataError, match=f"set {ENVIRONMENT}=FOLDER") as caught:
            locate(name, "x.csv")
        assert f"FOLDER/{name}/x.csv" in str(caught.value)
        assert str(caught.value).count(ENVIRONMENT) == 1


def test_a_variable_that_names_no_folder_is_refused_at_once(tmp_path, monkeypatch):
    monkeypatch.setenv(ENVIRONMENT, str(tmp_path / "nowhere"))
    with pytest.raises(MissingDataError, match=r"nowhere'.* is not there"):
        find("boston", "boston.csv")
    file = tmp_path / "file"
    file.write_text("x")
    monkeypatch.setenv(ENVIRONMENT, str(file))
    with pytest.raises(MissingDataError, match="is not a folder"):
        locate("boston", "boston.csv")


def test_a_table_is_read_plain_and_packed(root):
    text = "a,b\n1,2.5\n\n-3e2,4\n"
    plain = put(root, "sp500", "t.csv", text)
    packed = put(root, "sp500", "t.csv.gz", gzip.compress(text.encode()))
    for path in (plain, packed):
        header, rows = read(path, ["a", "b"])
        assert header == ["a", "b"]
        assert rows.tolist() == [["1", "2.5"], ["-3e2", "4"]]
        np.testing.assert_array_equal(numbers("t.csv", rows, header), [[1, 2.5], [-300, 4]])


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "begins with nothing"),
        ("b,a\n1,2\n", "must begin with the line a,b; it begins with b,a"),
        ("a,b\n", "t.csv.* has no rows"),
        ("a,b\n1,2\n3\n", "changed from 2 to 1 at row 3"),
        ("a,b\n1,2,3\n", "changed from 2 to 3 at row 2"),
        (b"a,b\n\xff\xfe\x00,2\n", "t.csv.* cannot be read as a table"),
        (gzip.compress(b"a,b\n" + b"1,2\n" * 999)[:-20], "cannot be read as a table"),
    ],
)
def test_a_damaged_table_is_refused_with_its_place(root, content, said):
    packed = content[:2] == b"\x1f\x8b"
    with pytest.raises(DamagedDataError, match=said):
        read(put(root, "sp500", "t.csv" + ".gz" * packed, content), ["a", "b"])


@pytest.mark.parametrize("cell", ["x", "", "nan", "inf", "1.2.3"])
def test_a_cell_that_is_no_finite_number_is_named(cell):
    with pytest.raises(DamagedDataError, match=r"t.csv holds .* data row 2, column b"):
        numbers("t.csv", np.array([["1", "2"], ["3", cell]]), ["a", "b"])


@pytest.mark.parametrize(
    ("dates", "said"),
    [
        (["2012-01-04"] * 2, "t.csv: the dates must increase; data row 2"),
        (["4.1.2012"], "must be like 2010-01-04"),
    ],
)
def test_dates_that_are_none_or_do_not_increase_are_refused(dates, said):
    with pytest.raises(DamagedDataError, match=said):
        increasing_days("t.csv", np.array(dates))


# OpenML, without a network: the call and what is made of its answer.


def frame():
    table = pd.DataFrame({"Y": [1.5, 2.5], "Fixed acidity": [7.4, 7.8], "RAD": ["24", "5"]})
    return table.astype({"RAD": "category"})


def test_columns_of_openml_come_in_the_order_asked_for(monkeypatch):
    asked = {}

    def fetch(**given):
        asked.update(given)
        return SimpleNamespace(frame=frame())

    monkeypatch.setattr(sklearn_datasets, "fetch_openml", fetch)
    found = download("boston", ["fixed_acidity", "rad", "y"])
    np.testing.assert_array_equal(found, [[7.4, 24.0, 1.5], [7.8, 5.0, 2.5]])
    assert asked["data_id"] == ORIGINS["boston"].openml
    with pytest.raises(DamagedDataError, match="no column CRIM; it has Y, Fixed acidity, RAD"):
        download("boston", ["CRIM", "y"])


@pytest.mark.parametrize(
    "error", [OSError("no route"), ValueError("no such set"), ImportError("needs pandas")]
)
def test_no_answer_from_openml_says_where_else_to_get_the_set(monkeypatch, error):
    def fetch(**_):
        raise error

    monkeypatch.setattr(sklearn_datasets, "fetch_openml", fetch)
    monkeypatch.delenv(ENVIRONMENT, raising=False)
    with pytest.raises(MissingDataError, match=str(error)) as caught:
        download("boston", ["CRIM"])
    assert "StatLib" in str(caught.value)


def test_a_set_that_is_not_at_openml_is_not_asked_for(monkeypatch):
    monkeypatch.setattr(sklearn_datasets, "fetch_openml", pytest.fail)
    with pytest.raises(MissingDataError, match="no copy of it at OpenML is known"):
        download("powerball", ["w1"])
