"""A folder of records: what is finished stays, whatever happens to a file or the folder."""

import json
import os
import signal
import subprocess
import sys

import pytest
import working
from hypothesis import given, settings
from hypothesis import strategies as st

from bbb_studies.uci import records
from bbb_studies.uci.records import RecordsError, line, parse, path_of, prepare, read, write

RECORDS = [
    {"key": f"toy/sum/{i:02d}", "status": "ok", "metrics": {"x": i / 3, "y": "é\n\r"}}
    for i in range(4)
]


def written(out, all_of_them=RECORDS):
    prepare(out)
    for record in all_of_them:
        write(out, record)
    return out / records.FOLDER


def names(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_each_trial_has_a_file_of_its_name_and_together_they_are_a_table_of_lines(tmp_path):
    folder = written(tmp_path / "new" / "folder", RECORDS[::-1])
    assert names(folder) == [f"toy/sum/{i:02d}.json" for i in range(4)]
    lines = "".join(path_of(folder.parent, r["key"]).read_text() for r in RECORDS).splitlines()
    assert [{**json.loads(text), "check": 0} for text in lines] == [
        {**record, "check": 0} for record in RECORDS
    ]
    (tmp_path / "table.jsonl").write_text("\n".join(lines))
    assert read(folder) == read(tmp_path / "table.jsonl") == RECORDS


@given(st.data())
@settings(max_examples=100)
def test_damage_anywhere_is_noticed(data):
    """But for what does not matter to JSON, such as blanks between its parts."""
    whole = line(RECORDS[1])
    start = data.draw(st.integers(0, len(whole) - 2))
    change = data.draw(st.text(max_size=60))
    end = min(start + data.draw(st.integers(0, 60)), len(whole) - 1)
    damaged = whole[:start] + change + whole[end:]
    try:
        found = parse(damaged)
    except RecordsError:
        assert damaged != whole
    else:
        assert found == RECORDS[1]
        assert json.loads(damaged) == json.loads(whole)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills itself with SIGKILL")
def test_a_kill_while_a_file_is_written_leaves_the_one_before(tmp_path):
    folder = written(tmp_path, RECORDS[:1])
    code = (
        "import os, signal, sys; from pathlib import Path\n"
        "from bbb_studies.uci import records\n"
        "os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)\n"
        "records.write(Path(sys.argv[1]), {'key': sys.argv[2]})\n"
    )
    for key in ("toy/sum/00", "toy/sum/01"):
        environment = os.environ | {"PYTHONPATH": working.PATH}
        done = subprocess.run([sys.executable, "-c", code, str(tmp_path), key], env=environment)
        assert done.returncode == -signal.SIGKILL
    assert read(folder) == RECORDS[:1]
