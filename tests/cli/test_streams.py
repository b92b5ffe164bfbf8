"""What is printed is text, and goes nowhere where the system gives no stream."""

import io
import os
import subprocess
import sys

import pytest

from bbb_numpy import progress
from bbb_numpy.cli.main import main
from bbb_numpy.cli.streams import safe_streams, visible

TITLE = "\x1b]0;mine\x07"  # sets a terminal's title


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (TITLE, r"\x1b]0;mine\x07"), ("a\tb\nc", "a\tb\nc"), ("\x9b31m", r"\x9b31m"),
        ("one\rtwo", r"one\rtwo"), ("\u202egpj.exe", r"\u202egpj.exe"), ("größe µ", "größe µ"),
    ],
)  # fmt: skip
def test_what_a_terminal_obeys_is_made_visible(text, shown):
    assert visible(text) == shown


def test_what_is_printed_in_the_block_is_text_but_the_movements_of_bars(monkeypatch):
    streams = {name: io.StringIO() for name in ("stdout", "stderr")}
    for name, stream in streams.items():
        monkeypatch.setattr(sys, name, stream)
    with safe_streams():
        print(f"a{TITLE}b")
        print(TITLE, end="", file=sys.stderr)
        sys.stderr.write("\r 5%|bar\r")
        sys.stderr.write("\n\x1b[A")
    assert [sys.stdout, sys.stderr] == [*streams.values()]
    assert streams["stdout"].getvalue() == "a\\x1b]0;mine\\x07b\n"
    assert streams["stderr"].getvalue() == "\\x1b]0;mine\\x07\r 5%|bar\r\n\x1b[A"


def test_names_of_a_table_reach_the_terminal_as_text(tmp_path, capsys):
    table = tmp_path / f"d{TITLE}.csv"
    table.write_text(f"size{TITLE},t\n1,2\n2,3\n")
    assert main(["fit", str(table), "--model", str(tmp_path / "m"), "--target", TITLE]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert r"d\x1b]0;mine\x07.csv has no column '\x1b]0;mine" in err
    assert not set(err) & {"\x1b", "\x07"}


@pytest.mark.parametrize("missing", [["stderr"], ["stdout"], ["stdout", "stderr"]])
def test_without_streams_nothing_fails_and_nothing_goes_to_the_other(missing, monkeypatch, capsys):
    for name in missing:
        monkeypatch.setattr(sys, name, None)
    bar = progress.tqdm(total=2)
    bar.update()
    bar.close()
    progress.tqdm.write("a line") if "stdout" in missing else None
    assert main(["fit", "none.csv", "--target", "t", "--model", "m"]) == 2
    assert [getattr(sys, name) for name in missing] == [None] * len(missing)
    out, err = capsys.readouterr()
    assert out == ""
    assert bool(err) == ("stderr" not in missing)


@pytest.mark.skipif(os.name == "nt", reason="needs a shell that closes streams")
@pytest.mark.slow
def test_a_fit_by_a_program_without_streams_ends_well():
    program = (
        "import numpy as np; from bbb_numpy import BayesianMLPRegressor; x = np.eye(9);"
        "BayesianMLPRegressor(epochs=2, verbose=1).fit(x, x[0])"
    )
    closed = ["sh", "-c", '"$@" >&- 2>&-', "sh", sys.executable, "-c", program]
    assert subprocess.run(closed, check=False).returncode == 0
