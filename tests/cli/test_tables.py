"""A file is read whole and exactly, or refused with the line that is wrong."""

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

from bbb_numpy.cli import tables
from bbb_numpy.cli.tables import TableError, csv_text, parse_numbers, read_csv
from bbb_numpy.learners.columns import is_missing


@pytest.fixture
def csv_file(tmp_path):
    def write(text, name="data.csv"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return str(path)

    return write


def test_cells_are_stripped_text_and_rows_have_the_line_on_which_they_end(csv_file):
    table = read_csv(csv_file('\ufeff"a, b","c\n d"\r\n\r\n1 ,"x\ny"\r\n\n2,NA\n'))
    assert list(table.columns) == ["a, b", "c d"]
    assert table.to_numpy().tolist() == [["1", "x\ny"], ["2", "NA"]]
    assert (table.index.tolist(), table.index.name) == ([5, 7], "line")


def test_a_dash_reads_standard_input(monkeypatch):
    packed = io.TextIOWrapper(io.BytesIO(gzip.compress(b"a;b\n1,5;2\n")))
    monkeypatch.setattr(sys, "stdin", packed)
    assert read_csv("-").to_numpy().tolist() == [["1,5", "2"]]


def test_without_standard_input_a_dash_is_refused(monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(TableError, match="standard input does not exist; name a file"):
        read_csv("-")


FORMULAS = ["=1+1", "=cmd|' /C calc'!A0", "+SUM(1)", "-2+3", "@SUM(1)", " =1", "\t1", "-", "=-5"]
TEXTS = ["a=b", "-5", "+49 123", "-1,234.5e-3", "-1.234,5 %".replace(" ", ""), "3-4", "", "'=1"]


def test_no_cell_and_no_name_that_is_written_is_a_formula_and_signed_numbers_stay():
    written = csv_text(pd.DataFrame({"=name": FORMULAS + TEXTS, "n": range(17), "x": -1.5}))
    table = pd.read_csv(io.StringIO(written), dtype=str, keep_default_na=False)
    assert list(table.columns) == ["'=name", "n", "x"]
    assert table["'=name"].tolist() == [f"'{cell}" for cell in FORMULAS] + TEXTS
    assert table["n"].tolist() == list(map(str, range(17)))
    assert set(table["x"]) == {"-1.5"}


ENCODINGS = {
    "utf-8": lambda text: text.encode(),
    "utf-8 with its mark": lambda text: codecs.BOM_UTF8 + text.encode(),
    "utf-16": lambda text: text.encode("utf-16"),
    "utf-16, big end first": lambda text: codecs.BOM_UTF16_BE + text.encode("utf-16-be"),
    "gzip": lambda text: gzip.compress(text.encode()),
    "gzip of utf-16": lambda text: gzip.compress(text.encode("utf-16")),
}


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("separator", ",;\t|")
def test_separators_and_encodings_are_found_and_told(separator, encoding, csv_file, capsys):
    text = "größe,b\n1234.5,x\n7,y\n".replace(",", separator)
    table = read_csv(csv_file(ENCODINGS[encoding](text)))
    assert table.to_numpy().tolist() == [["1234.5", "x"], ["7", "y"]]
    assert list(table.columns) == ["größe", "b"]
    notice = (
        "" if separator == "," else f"data.csv is read with columns separated by {separator!r}\n"
    )
    assert capsys.readouterr().err == notice


@given(
    value=st.floats(-1e12, 1e12),
    decimal=st.sampled_from(",."),
    thousands=st.sampled_from(["", ",", ".", "'", " "]),
)
def test_a_number_is_read_as_it_was_written(value, decimal, thousands):
    if decimal != thousands:
        text = f"{value:,.6f}".translate(str.maketrans({",": thousands, ".": decimal}))
        assert parse_numbers(pd.Series([text]), decimal, thousands)[0] == float(f"{value:.6f}")


def test_thousands_are_groups_of_three_from_the_first_on():
    cells = pd.Series(["1,23,456", "1234,567", "0,123", ",123", "12,34"])
    assert parse_numbers(cells, ".", ",").isna().all()


AS_WRITTEN = {
    "by pandas": ",a,b\n0,1,2\n1,3,4\n",
    "by R": '"a","b"\n"1",1,2\n"2",3,4\n',
    "by R, rows with names": '"a","b"\n"Mazda",1,2\n"Datsun",3,4\n',
    "with a comma at the end of every line": "a,b,\n1,2,\n3,4,\n",
    "with a comma at the end of rows": "a,b\n1,2,\n3,4,\n",
    "with a comma at the end of the header": "a,b,\n1,2\n3,4\n",
    "with many of them": "a,b,,,\n1,2,,\n3,4,,,\n",
    "by Excel": "sep=;\r\na;b\r\n1;2\r\n3;4\r\n",
    "by Excel, with a mark": "\ufeffsep=,\na,b\n1,2\n3,4\n",
    "with spaces": "a b\n1 2\n3 4\n",
    "in columns of spaces": "   a    b\n   1    2\n   3    4  \n",
}


@pytest.mark.parametrize("name", AS_WRITTEN)
def test_a_table_is_read_as_programs_write_it(name, csv_file, capsys):
    table = read_csv(csv_file(AS_WRITTEN[name]))
    assert list(table.columns) == ["a", "b"]
    assert table.to_numpy().tolist() == [["1", "2"], ["3", "4"]]
    first = 3 if "Excel" in name else 2
    assert table.index.tolist() == [first, first + 1]  # lines of the file
    left_out = "the first column has no name and is left out" in capsys.readouterr().err
    assert left_out is ("pandas" in name or "by R" in name)


def test_a_word_in_a_file_of_one_column_is_no_separator(csv_file):
    assert list(read_csv(csv_file("home town\nUlm\nBad Wurzach\n")).columns) == ["home town"]


BROKEN = [
    ("a,b,\n1,2,3\n", "every column needs a name of its own.*Write one into the first line"),
    ("a,b\n1.5,2,3\n2.5,2,3\n", "line 2 has 3 cells, the header has 2.*and 1 more lines"),
    ("sep=;\na;b\n1;2;3\n3\n", "line 3 has 3 cells, the header has 2, separated by ';'"),
    ("", "data.csv has no line of column names with a data row below it"),
    ("a,b\n", "data.csv has no line of column names with a data row below it"),
    ("a,a\n1,2\n", "data.csv: every column needs a name of its own; got 'a' twice"),
    ("a,\n1,2\n", "every column needs a name of its own"),
    (",a,a\n0,1,2\n", "every column needs a name of its own"),
    ("a,b\n1,2\n\n3\n", "data.csv, line 4 has 1 cell, the header has 2, separated by ','"),
    ('a,b\n"1\n2",2\n3\n', "line 4 has 1 cell"),
    ('a,b\n1.5,"2\n3",4\n', "line 3 has 3 cells, the header has 2"),
    ("a,b\n1,2,3\n1,2,3\n", "line 2 has 3 cells, the header has 2"),
    ('a,b\n"1,2\n', "line 2: unexpected end of data"),
    ('a,b\n"1"x,2\n', "line 2: ',' expected after '\"'"),
    (b"a\n\xff\xfe\n", "is not text in utf-8; save .* --encoding cp1252"),
    ("a,b\n1,2\n".encode("utf-16-le"), "is not text in utf-8"),
    (b"PK\x03\x04\x14\0", "is not text in utf-8; save a workbook as CSV"),
    (gzip.compress(b"a\n" + bytes(range(48, 58)) * 99)[:30], "is a damaged gzip file"),
    (b"\x1f\x8bno gzip", "is a damaged gzip file"),
    ("a\n" + "1" * 200_000 + "\n", "line 2: field larger than field limit"),
]


@pytest.mark.parametrize(("text", "message"), BROKEN, ids=range(len(BROKEN)))
def test_a_broken_file_is_refused_with_its_place(csv_file, text, message):
    with pytest.raises(TableError, match=message) as error:
        read_csv(csv_file(text))
    assert len(str(error.value)) < 300


def test_a_folder_and_a_pipe_are_refused(tmp_path):
    with pytest.raises(OSError, match="Is a directory"):
        read_csv(str(tmp_path))
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(TableError, match="pipe is a pipe or a device; copy its content"):
            read_csv(str(tmp_path / "pipe"))


def test_without_pandas_one_line_says_what_to_install(csv_file, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"needs pandas; install it with: pip install 'bbb_numpy"):
        read_csv(csv_file("a\n1\n"))


# what a file may hold in the place of a cell; most of it is no number, or not for everybody
CELLS = [
    *("0", "-0", "+5", "1.5", "-.5", "3.", ".", "1e3", "1E-400", "1e400", "1e", "0x1A", "1_000"),
    *("007", "9007199254740993", "18446744073709551616", "1" * 400, "0.1000000000000000055511151"),
    *("inf", "-Infinity", "nan", "-nan", "NAN", "NA", "N/A", "#N/A", "<NA>", "?", "NULL", "null"),
    *("", " ", " 1", "1 ", " NA", "None", "True", "false", "1,5", "1.234,5", "1 234", "٣", "½"),
    *('"1"', '"a,b"', '"a;b"', '""', '"a""b"', 'a"b', '"a"b', '"a\nb"', '" 2 "', "'3'", "#", "\\"),
    *("2024-12-31", "12:30", "1+2j", "\ufeff1", "\u00a07", "\x1a", "x\x0by", "\x1c5", "a\r", "$5"),
]  # fmt: skip


def check_parsers_agree(path, separator=None, decimal=None):
    """Numbers are those of the text, and a column of numbers has no cell that is something else."""

    def read(**options):
        try:
            return read_csv(str(path), separator, **options)
        except TableError as error:
            return str(error)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "_is_regular", lambda *_: False)
        careful = read()
    for text_columns in None, (), ("a", "3"):
        fast = read(text_columns=text_columns, decimal=decimal)
        if isinstance(careful, str):
            assert fast == careful
            continue
        assert list(fast.columns) == list(careful.columns)
        assert fast.index.tolist() == careful.index.tolist()
        for name in careful.columns:
            text, values = careful[name], fast[name]
            if values.dtype == object:
                assert values.tolist() == text.tolist()
                continue
            assert text_columns is not None
            assert name not in text_columns
            np.testing.assert_array_equal(values, parse_numbers(text, decimal))
            np.testing.assert_array_equal(is_missing(values), is_missing(text))
            assert np.isfinite(values[~is_missing(text)]).all()


@pytest.mark.parametrize("decimal", [".", ","])
def test_the_fast_parser_reads_each_odd_cell_as_the_careful_one_does(decimal, tmp_path):
    path = tmp_path / "data.csv"
    for cell in CELLS:
        path.write_bytes(f"a;b;c\n1;{cell};2\n3;{cell};{cell}\n".encode())
        check_parsers_agree(path, ";", decimal)


@given(
    columns=st.lists(
        st.lists(st.sampled_from(CELLS) | st.floats().map(repr), min_size=1, max_size=2),
        min_size=3,
        max_size=3,
    ),
    names=st.sampled_from(["a,b,c", "a,b", ",b,c", "a,a,c", "a,b,", '"a",b,"c d"', "1,2,3"]),
    separator=st.sampled_from(",;\t"),
    line_end=st.sampled_from(["\n", "\r\n", "\n\n"]),
    end=st.sampled_from(["", "\n", "\n\n", " \n", ",\n"]),
)
def test_the_fast_parser_reads_odd_files_as_the_careful_one_does(
    columns, names, separator, line_end, end, tmp_path_factory
):
    rows = [[cells[k % len(cells)] for cells in columns] for k in range(2)]
    lines = [names.replace(",", separator), *(separator.join(row) for row in rows)]
    path = tmp_path_factory.mktemp("pair") / "data.csv"
    path.write_bytes((line_end.join(lines) + end).encode())
    check_parsers_agree(path, separator)


def test_numbers_of_a_long_table_are_found_though_a_late_cell_is_none(csv_file):
    rows = ["1.5,NA,4"] * 1500 + ["2.5,,oops"]
    table = read_csv(csv_file("\n".join(["a,b,c", *rows])), text_columns=())
    assert table["a"].sum() == 2252.5
    assert table["b"].isna().all()
    assert table["c"].tolist() == ["4"] * 1500 + ["oops"]
    assert table.index[-1] == 1502
