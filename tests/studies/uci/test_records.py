"""A folder of records: what is finished stays, whatever happens to a file or the folder."""

import json
import os
import signal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bbb_studies.uci import records
from bbb_studies.uci.records import RecordsError, line, parse, read, write

RECORD = {"key": "toy/sum/00", "status": "ok", "metrics": {"x": 1 / 3, "z": -0.0, "y": "é\n\r"}}


@given(st.data())
def test_damage_anywhere_is_noticed(data):
    """But for what does not matter to JSON, such as blanks between its parts."""
    whole = line(RECORD)
    start = data.draw(st.integers(0, len(whole) - 2))
    change = data.draw(st.text(max_size=60))
    end = min(start + data.draw(st.integers(0, 60)), len(whole) - 1)
    damaged = whole[:start] + change + whole[end:]
    try:
        found = parse(damaged)
    except RecordsError:
        assert damaged != whole
    else:
        assert repr(found) == repr(RECORD)
        assert json.loads(damaged) == json.loads(whole)


@pytest.mark.parametrize("text", ["[" * 100_000, '{"key": ' + "[" * 100_000, "[1]", "3", "", "{}"])
def test_what_is_no_record_or_too_deep_is_named_with_its_line(text, tmp_path):
    path = tmp_path / "two.json"
    path.write_text(line(RECORD) + (text or "{"))
    with pytest.raises(RecordsError, match=r"two\.json, line 2: it must be a record"):
        read(path)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills itself with SIGKILL")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # the child waits for no thread
def test_a_kill_while_a_file_is_written_leaves_the_one_before(tmp_path, monkeypatch):
    write(tmp_path, RECORD)
    monkeypatch.setattr(os, "fsync", lambda _: os.kill(os.getpid(), signal.SIGKILL))
    for key in ("toy/sum/00", "toy/sum/01"):
        child = os.fork()
        if not child:
            write(tmp_path, {"key": key})
            os._exit(0)
        assert os.waitpid(child, 0)[1] == signal.SIGKILL
    assert read(tmp_path / records.RECORDS_FOLDER) == [RECORD]
