"""Where a command cannot write is said in one line before any work, and nothing is written."""

import pytest

from bbb_numpy.cli.main import main

COMMANDS = {
    "report": ["report"],
    "reproduce": ["reproduce", "coin"],
    "uci": ["uci", "--data", "yacht", "--method", "ensemble"],
    "compare": ["compare", "rows.csv", "--target", "y", "--method", "ensemble"],
    "grade": ["grade", "--export", "otter"],
}
LONG = 300 * "m"


@pytest.mark.parametrize("folder", ["", "rows.csv", "rows.csv/inside", LONG])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_folder_that_cannot_be_written_is_refused_before_any_work(
    command, folder, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.csv").write_text("x,y\n" + "1,2\n3,5\n" * 20)
    assert main([*COMMANDS[command], "--out", folder]) == 2
    said = capsys.readouterr()
    wanted = "File name too long" if folder == LONG else "cannot be written to: name a folder"
    assert said.out == ""
    assert wanted in said.err
    assert len(said.err.splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["rows.csv"]
