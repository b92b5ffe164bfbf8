"""tables: a CSV file is read whole and exactly, or refused with the place that is wrong."""

import io
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bbb_numpy.cli.csv_tables import TableError, read_csv, write_csv


@pytest.fixture
def csv_file(tmp_path):
    def write(text, name="data.csv"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return str(path)

    return write


def test_named_columns_come_back_as_numbers_in_the_order_asked_for(csv_file):
    table = read_csv(csv_file("a,b,c\n1,2,x\n3,4e-1,y\n"))
    found = table.numbers(["b", "a"])
    assert list(found.columns) == ["b", "a"]
    assert np.array_equal(np.asarray(found), [[2.0, 1.0], [0.4, 3.0]])
    assert len(found) == 2


def test_a_byte_order_mark_blank_lines_and_quotes_are_no_obstacle(csv_file):
    table = read_csv(csv_file('\ufeff"a, b",c\r\n\r\n1,2\r\n\n'.encode()))
    assert table.columns == ("a, b", "c")
    assert np.asarray(table.numbers(["c"])).tolist() == [[2.0]]


def test_a_dash_reads_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("a\n5\n"))
    assert np.asarray(read_csv("-").numbers(["a"])).tolist() == [[5.0]]


@given(values=st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=5))
def test_numbers_survive_writing_and_reading_bit_for_bit(values, tmp_path_factory):
    path = str(tmp_path_factory.mktemp("csv") / "t.csv")
    write_csv(path, {"v": np.array(values), "w": -np.array(values)})
    found = np.asarray(read_csv(path).numbers(["v", "w"]))
    assert np.array_equal(found, np.column_stack([values, -np.array(values)]))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty; the first line must name the columns"),
        ("a,b\n", "has column names but no data row"),
        ("a,a\n1,2\n", "every column needs a name of its own; got a, a"),
        ("a,\n1,2\n", "every column needs a name of its own"),
        ("a,b\n1,2\n3\n", "data row 2 has 1 cells, the header has 2"),
        (b"a\n\xff\xfe\n", "is not a CSV text file"),
    ],
)
def test_a_broken_file_is_refused_with_its_place(csv_file, text, message):
    with pytest.raises(TableError, match=message):
        read_csv(csv_file(text))


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("red", "column 'b' is 'red' in data row 2"),
        ("", "column 'b' is empty in data row 2"),
        ("nan", "column 'b' is 'nan' in data row 2"),
        ("inf", "column 'b' is 'inf' in data row 2"),
    ],
)
def test_a_cell_that_is_no_finite_number_is_named(csv_file, cell, message):
    table = read_csv(csv_file(f"a,b\n1,2\n3,{cell}\n"))
    assert np.asarray(table.numbers(["a"])).shape == (2, 1)
    with pytest.raises(TableError, match=message):
        table.numbers(["a", "b"])


def test_a_missing_column_is_named_with_those_that_exist(csv_file):
    with pytest.raises(TableError, match=r"no column 'z'; it has 'a', 'b'"):
        read_csv(csv_file("a,b\n1,2\n")).numbers(["z"])


def test_a_missing_file_is_an_error_in_one_line(tmp_path):
    with pytest.raises(TableError, match="No such file"):
        read_csv(str(tmp_path / "none.csv"))


def test_a_dash_writes_the_header_and_the_rows_to_standard_output(capsys):
    write_csv("-", {"a": np.array([1.0, 0.1]), "b": np.array([2.0, 3.0])})
    assert capsys.readouterr().out == "a,b\n1.0,2.0\n0.1,3.0\n"


def test_a_name_of_thousands_of_letters_is_not_repeated_whole(csv_file):
    with pytest.raises(TableError, match="no column 'z'") as caught:
        read_csv(csv_file("a" * 5000 + ",b\n1,2\n")).numbers(["z"])
    assert len(str(caught.value)) < 1100
