"""tables: a file is read whole and exactly, or refused with the line and column that is wrong."""

import codecs
import gzip
import io
import os
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bbb_numpy.cli import csv_tables
from bbb_numpy.cli.csv_tables import Reading, TableError, read_csv, write_csv
from bbb_numpy.cli.number_forms import NumberForm, find_form, is_date


@pytest.fixture
def csv_file(tmp_path):
    def write(text, name="data.csv"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return str(path)

    return write


def values(table, *names):
    return np.asarray(table.numbers(names or table.columns)).tolist()


def test_named_columns_come_back_as_numbers_in_the_order_asked_for(csv_file):
    table = read_csv(csv_file("a,b,c\n1,2,x\n3,4e-1,y\n"))
    found = table.numbers(["b", "a"])
    assert list(found.columns) == ["b", "a"]
    assert np.array_equal(np.asarray(found), [[2.0, 1.0], [0.4, 3.0]])
    assert len(table) == len(found) == 2
    assert table.how_read == ""


def test_a_byte_order_mark_blank_lines_and_quotes_are_no_obstacle(csv_file):
    table = read_csv(csv_file('\ufeff"a, b",c\r\n\r\n1,2\r\n\n'.encode()))
    assert table.columns == ("a, b", "c")
    assert values(table, "c") == [[2.0]]


def test_names_of_columns_are_one_line_that_can_be_printed(csv_file):
    table = read_csv(csv_file('"size\n (m2)", a \x1b[31m\n1,2\n'))
    assert table.columns == ("size (m2)", "a ?[31m")


def test_a_dash_reads_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("a\n5\n"))
    assert values(read_csv("-")) == [[5.0]]
    packed = io.TextIOWrapper(io.BytesIO(gzip.compress(b"a;b\n1,5;2\n")))
    monkeypatch.setattr(sys, "stdin", packed)
    assert values(read_csv("-")) == [[1.5, 2.0]]


@given(values=st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=5))
def test_numbers_survive_writing_and_reading_bit_for_bit(values, tmp_path_factory):
    path = str(tmp_path_factory.mktemp("csv") / "t.csv")
    write_csv(path, pd.DataFrame({"v": values, "w": -np.array(values)}))
    found = np.asarray(read_csv(path).numbers(["v", "w"]))
    assert np.array_equal(found, np.column_stack([values, -np.array(values)]))


ROWS = [[1234.5, -0.25], [7.0, 12.75]]
WRITTEN = {
    "comma": "a,b\n1234.5,-0.25\n7,12.75\n",
    "semicolon": "a;b\n1234,5;-0,25\n7;12,75\n",
    "tab": "a\tb\n1234.5\t-0.25\n7\t12.75\n",
    "bar": "a|b\n1234.5|-0.25\n7|12.75\n",
    "tab and decimal comma": "a\tb\n1234,5\t-,25\n7\t12,75\n",
    "German thousands": "a;b\n1.234,5;-0,25\n7;12,75\n",
    "Swiss thousands": "a;b\n1'234.5;-0.25\n7;12.75\n",
    "French thousands": "a;b\n1\u202f234,5;-0,25\n7;12,75\n",
    "quoted American thousands": 'a,b\n"1,234.5",-0.25\n7,12.75\n',
    "exponents": "a;b\n1,2345e3;-2,5E-01\n+7;12,75\n",
}
ENCODINGS = {
    "utf-8": lambda text: text.encode(),
    "utf-8 with its mark": lambda text: codecs.BOM_UTF8 + text.encode(),
    "utf-16": lambda text: text.encode("utf-16"),
    "utf-16, big end first": lambda text: codecs.BOM_UTF16_BE + text.encode("utf-16-be"),
    "utf-32": lambda text: text.encode("utf-32"),
    "gzip": lambda text: gzip.compress(text.encode()),
    "gzip of utf-16": lambda text: gzip.compress(text.encode("utf-16")),
}


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("written", WRITTEN)
def test_separators_decimal_signs_and_encodings_are_found_by_themselves(
    written, encoding, csv_file
):
    table = read_csv(csv_file(ENCODINGS[encoding](WRITTEN[written])))
    assert values(table, "a", "b") == ROWS
    assert (table.how_read == "") == (written == "comma")


def test_what_the_user_says_goes_before_what_is_found(csv_file):
    path = csv_file("a b\n1.234 2,345\n")
    table = read_csv(path, Reading(separator=" ", decimal=",", thousands="."))
    assert values(table) == [[1234.0, 2.345]]
    assert values(read_csv(path, Reading(" ", ".", ","))) == [[1.234, 2345.0]]
    cp1252 = csv_file("größe,b\n1,2\n".encode("cp1252"))
    assert read_csv(cp1252, Reading(encoding="cp1252")).columns == ("größe", "b")


def test_a_mark_goes_before_the_encoding_that_the_user_names(csv_file):
    assert values(read_csv(csv_file("a\n1\n".encode("utf-16")), Reading(encoding="cp1252")))


@pytest.mark.parametrize(
    ("cells", "readings"),
    [
        (["1,234", "5,678"], ["1.234", "1234"]),  # all groups of three
        (["1.234", "12.345"], ["1.234", "1234"]),  # beside semicolons
    ],
)
def test_a_number_that_can_be_read_in_two_ways_is_refused_and_never_guessed(
    cells, readings, csv_file
):
    path = csv_file("a;b\n" + "".join(f"{cell};1\n" for cell in cells))
    with pytest.raises(TableError, match=rf"may be {readings[0]} or {readings[1]}: say by --dec"):
        read_csv(path)
    one, other = (values(read_csv(path, Reading(decimal=sign)))[0][0] for sign in ",.")
    assert {one, other} == {1.234, 1234.0}


@pytest.mark.parametrize("deciding", ["0,5", "12,5", "1.234,5", "0,001"])
def test_one_cell_anywhere_decides_what_a_comma_means(deciding, csv_file):
    table = read_csv(csv_file(f"a;b\n1,234;x\n5,678;{deciding}\n"))
    assert values(table, "a") == [[1.234], [5.678]]


def test_different_decimal_signs_in_one_file_are_refused_with_one_of_each(csv_file):
    with pytest.raises(TableError, match=r"different kinds, such as '2.7' and '1,5'; say by"):
        read_csv(csv_file("x;y\n1,5;2\n3,2;4\n2.7;1\n"))


@given(
    value=st.floats(-1e12, 1e12),
    decimal=st.sampled_from(",."),
    thousands=st.sampled_from(["", ",", ".", "'", " "]),
)
def test_a_number_is_read_as_it_was_written(value, decimal, thousands):
    if decimal == thousands:
        return
    signs = str.maketrans({",": thousands, ".": decimal})
    text = f"{value:,.6f}".translate(signs)
    assert NumberForm(decimal, thousands).read(text) == float(f"{value:.6f}")


@pytest.mark.parametrize(
    "cell",
    ["1_0", "0x10", "nan", "inf", "1e", "--1", "1.2.3", "1,2", "١٢", "²", "1 000", "", ".", "e5"],
)
def test_what_only_a_programming_language_reads_as_a_number_is_none(cell):
    assert NumberForm().read(cell) is None


@pytest.mark.parametrize("cell", ["1,23,456", "1234,567", "0,123", ",123", "12,34"])
def test_thousands_are_groups_of_three_from_the_first_on(cell):
    assert NumberForm(".", ",").read(cell) is None


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("2024-01-31", True),
        ("31.12.2024", True),
        ("1/31/24 10:15", True),
        ("2024-01-31T10:15:00Z", True),
        ("10:15", True),
        ("1.5", False),
        ("1-2", False),
        ("20240131", False),
        ("192.168.100.200", False),
    ],
)
def test_dates_are_known_by_their_look(cell, expected):
    assert is_date(cell) is expected


def test_one_sign_cannot_mean_two_things(csv_file):
    with pytest.raises(TableError, match=r"data.csv cannot have ',' as --decimal and --thousands"):
        read_csv(csv_file("a\n1\n"), Reading(decimal=",", thousands=","))


def test_nothing_but_plain_numbers_needs_no_form():
    assert find_form([["1", "2"], ["x", ""]]) == NumberForm()


BROKEN = [
    ("", "is empty; the first line must name the columns"),
    ("a,b\n", "has column names but no data row"),
    ("a,a\n1,2\n", "every column needs a name of its own; got 'a', 'a'"),
    ("a,\n1,2\n", "every column needs a name of its own"),
    ("a,b\n1,2\n\n3\n", "line 4 has 1 cell, the header has 2, separated by ','"),
    ('a,b\n"1\n2",2\n3\n', "line 4 has 1 cell"),
    ('a,b\n"1,2\n', "line 2: a quote is opened and never closed"),
    ('a,b\n"1"x,2\n', "line 2: something follows a closing quote"),
    (b"a\n\xff\xfe\n", "is not text in utf-8; name its encoding, such as --encoding cp1252"),
    ("a,b\n1,2\n".encode("utf-16-le"), "line 1 holds the character NUL"),
    (b"PK\x03\x04rest", "is a zip archive or an Excel workbook; save the table as CSV"),
    (b"BZh91AY", "is compressed by bzip2; unpack it, or use gzip"),
    (gzip.compress(b"a\n" + bytes(range(48, 58)) * 99)[:30], "is a damaged gzip file"),
    (b"\x1f\x8bno gzip", "is a damaged gzip file"),
    ("a\n" + "1" * 200_000 + "\n", "line 2: a cell is longer than 131072 characters"),
    ("a" * 300 + "\n1\n", r"the column name 'a{30}'... \(300 characters\) is too long"),
]


@pytest.mark.parametrize(("text", "message"), BROKEN, ids=range(len(BROKEN)))
def test_a_broken_file_is_refused_with_its_place(csv_file, text, message):
    with pytest.raises(TableError, match=message) as error:
        read_csv(csv_file(text))
    assert "data.csv" in str(error.value)
    assert len(str(error.value)) < 300


SPOILT = [
    ("red", "line 3, column 'b': 'red' is no number"),
    ("", "line 3, column 'b': the cell is empty"),
    ("nan", "line 3, column 'b': the cell is 'nan', a missing value"),
    ("?", r"the cell is '\?', a missing value"),
    ("inf", "'inf' is no number"),
    ("1_0", "'1_0' is no number"),
    ("9" * 400, r"'9{30}'... \(400 characters\) is beyond the range of float64"),
    ("1e999", "'1e999' is beyond the range of float64"),
    ("9007199254740993", "the whole number '9007199254740993' is beyond 2\\^53"),
    ("-9007199254740993", "is beyond 2\\^53, where float64 rounds"),
]


@pytest.mark.parametrize(("cell", "message"), SPOILT, ids=range(len(SPOILT)))
def test_a_cell_that_is_no_number_or_not_exactly_is_named(csv_file, cell, message):
    table = read_csv(csv_file(f"a,b\n1,2\n3,{cell}\n4,5\n6,7\n"))
    assert values(table, "a") == [[1.0], [3.0], [4.0], [6.0]]
    with pytest.raises(TableError, match=message) as error:
        table.numbers(["a", "b"])
    assert len(str(error.value)) < 300


def test_whole_numbers_that_float64_holds_are_read(csv_file):
    table = read_csv(csv_file("a\n9007199254740992\n18014398509481984\n1e20\n0.1\n"))
    assert values(table)[:2] == [[2.0**53], [2.0**54]]


def test_a_missing_column_is_named_with_one_like_it_and_those_that_exist(csv_file):
    table = read_csv(csv_file("size,price\n1,2\n"))
    with pytest.raises(TableError, match=r"no column 'z'; it has 'size', 'price'$"):
        table.numbers(["z"])
    with pytest.raises(TableError, match=r"no column 'prise'; did you mean 'price'\? It has 'size"):
        table.numbers(["prise"])
    wide = read_csv(csv_file(",".join(f"c{k}" for k in range(99)) + "\n" + ",".join("1" * 99)))
    with pytest.raises(TableError, match=r"'c19' and 79 more$"):
        wide.numbers(["z"])


def test_rows_without_a_missing_value_keep_their_lines(csv_file):
    table = read_csv(csv_file("a,b\n1,x\nNA,y\n\n3,\n4,?\n5,z\nold,z\n"))
    assert table.complete(["a", "b"]) == [0, 4, 5]
    rest = table.rows(table.complete(["a", "b"]))
    assert [len(rest), rest.column("b")] == [3, ["x", "z", "z"]]
    with pytest.raises(TableError, match="line 8, column 'a': 'old'"):
        rest.numbers(["a"])


def test_a_missing_file_a_folder_and_a_pipe_are_errors_in_one_line(tmp_path):
    with pytest.raises(TableError, match="No such file"):
        read_csv(str(tmp_path / "none.csv"))
    with pytest.raises(TableError, match="Is a directory"):
        read_csv(str(tmp_path))
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(TableError, match="pipe is a pipe; accepted are regular files"):
            read_csv(str(tmp_path / "pipe"))


def test_a_table_of_more_cells_or_columns_than_can_be_fitted_is_refused(csv_file, monkeypatch):
    assert values(read_csv(csv_file("a\n1\n"))) == [[1.0]]
    monkeypatch.setattr(csv_tables, "MOST_CELLS", 3)
    with pytest.raises(TableError, match="holds more than 3 cells"):
        read_csv(csv_file("a,b\n1,2\n3,4\n"))
    monkeypatch.setattr(csv_tables, "MOST_COLUMNS", 1)
    with pytest.raises(TableError, match="has 2 columns; accepted are 1"):
        read_csv(csv_file("a,b\n1,2\n"))


def test_without_pandas_one_line_says_what_to_install(csv_file, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"needs pandas; install it with: pip install 'bbb_numpy"):
        read_csv(csv_file("a\n1\n"))


def test_a_dash_writes_the_header_and_the_rows_to_standard_output(capsys):
    write_csv("-", pd.DataFrame({"a": [1.0, 0.1], "b": [2.0, 3.0]}))
    assert capsys.readouterr().out == "a,b\n1.0,2.0\n0.1,3.0\n"


def test_a_name_of_thousands_of_letters_is_not_repeated_whole(csv_file):
    with pytest.raises(TableError, match=r"the column name 'aaa.*is too long") as caught:
        read_csv(csv_file("a" * 5000 + ",b\n1,2\n")).numbers(["z"])
    assert len(str(caught.value)) < 1100
