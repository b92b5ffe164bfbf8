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


def test_records_come_back_bit_for_bit():
    for value in (0.1, 1e-320, -0.0, 2**53 + 1, 1.7976931348623157e308, 1 / 3):
        assert repr(parse(line({"key": "a", "value": value}))) == repr({"key": "a", "value": value})


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


@pytest.mark.parametrize("end", [1, 20, -2])
def test_a_file_cut_short_is_no_record(tmp_path, end):
    path = tmp_path / "cut.json"
    path.write_text(line(RECORDS[1])[:end])
    with pytest.raises(RecordsError, match=r"cut\.json, line 1: it is no record"):
        read(path)


def test_a_changed_number_is_not_read():
    with pytest.raises(RecordsError, match="checksum"):
        parse(line(RECORDS[1]).replace("0.333", "0.334"))


@pytest.mark.parametrize("content", ["{}", "[]", "1", "name,score", '{"key": "a"}'])
def test_what_else_is_there_is_no_record(content):
    with pytest.raises(RecordsError, match="no record"):
        parse(content)


@pytest.mark.parametrize("value", [float("nan"), object()])
def test_what_is_no_json_is_not_written(tmp_path, value):
    folder = written(tmp_path, RECORDS[:1])
    with pytest.raises((ValueError, TypeError)):
        write(tmp_path, {**RECORDS[0], "value": value})
    assert names(folder) == ["toy/sum/00.json"]
    assert read(folder) == RECORDS[:1]


def test_a_full_disk_leaves_the_file_as_it_was(tmp_path, monkeypatch):
    folder = written(tmp_path, RECORDS[:1])

    def full(descriptor):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        for record in ({**RECORDS[0], "status": "other"}, RECORDS[1]):
            with pytest.raises(OSError, match="No space left"):
                write(tmp_path, record)
    assert names(folder) == ["toy/sum/00.json"]
    assert read(folder) == RECORDS[:1]


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


def test_what_is_set_aside_is_kept_beside_under_a_new_number(tmp_path):
    folder = written(tmp_path)
    for number, record in enumerate(RECORDS[:2], 1):
        aside = records.set_aside(tmp_path, [path_of(tmp_path, record["key"])])
        assert aside == tmp_path / f"records.previous-{number}"
        assert read(aside) == [record]
    assert read(folder) == RECORDS[2:]


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    for out in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(NotADirectoryError, match=f"{out} is a file, or lies below one"):
            prepare(out)
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / records.FOLDER).write_text("")
    with pytest.raises(NotADirectoryError, match="taken"):
        prepare(tmp_path / "taken")


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root and Windows ignore permissions"
)
def test_a_read_only_folder_is_named(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(OSError, match=r"cannot write to the output folder .*: Permission"):
        prepare(tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_a_pipe_among_the_records_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "a.json")
    for place in (tmp_path, tmp_path / "a.json"):
        with pytest.raises(RecordsError, match=r"a\.json is a pipe; accepted are regular files"):
            read(place)
