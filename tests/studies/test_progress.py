"""A log that nobody watches gets a line at every tenth, and the library stays silent."""

import io
import sys

import pytest

from bbb_studies import progress
from bbb_studies.progress import steps


class Terminal(io.StringIO):
    """A text stream that says that a person watches it."""

    def isatty(self):
        return True


@pytest.mark.parametrize("parts", [3, 10, 40])
def test_a_log_gets_a_line_at_every_tenth_once_and_at_the_end(parts, capsys):
    with steps(parts, progress=True) as done:
        for _ in range(parts):
            done(1)
    lines = capsys.readouterr().err.splitlines()
    shares = [int(line.split(" % after ")[0]) for line in lines]
    assert len(shares) == min(parts, 10)
    assert shares == sorted(set(shares))
    assert shares[-1] == 100


def test_nothing_is_said_unless_asked_for(capsys):
    with steps(4) as done:
        done(4)
    assert capsys.readouterr().err == ""


def test_a_person_sees_a_bar_and_no_lines(monkeypatch):
    terminal, shown = Terminal(), []
    tqdm = progress.tqdm

    def noted(**options):
        bar = tqdm(**options)
        shown.append(bar.disable)
        return bar

    monkeypatch.setattr(progress, "tqdm", noted)
    monkeypatch.setattr(sys, "stderr", terminal)
    with steps(4, progress=True) as done:
        done(4)
    assert shown == [False]
    assert "after" not in terminal.getvalue()
