"""The record file: what is finished stays, whatever happens to the file or the folder."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bbb_numpy.uci import journal
from bbb_numpy.uci.journal import FILE, HEADER, RecordsError, open_journal, read
from bbb_numpy.uci.output import BusyError

RECORDS = [
    {"key": f"toy/sum/{i:02d}", "status": "ok", "metrics": {"x": i / 3, "y": "é\n\r"}}
    for i in range(6)
]


def written(out, records=RECORDS):
    with open_journal(out) as opened:
        for record in records:
            opened.append(record)
    return Path(out, FILE)


def reopened(out):
    with open_journal(out) as opened:
        return opened


@pytest.fixture(autouse=True, scope="module")
def unsynced():
    """These tests write thousands of files, and no power fails meanwhile."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


def test_records_come_back_bit_for_bit(tmp_path):
    values = [0.1, 1e-320, -0.0, 2**53 + 1, 1.7976931348623157e308, 1 / 3]
    records = [{"key": repr(v), "value": v} for v in values]
    path = written(tmp_path / "new" / "folder", records)
    assert repr(read(path).records) == repr(tuple(records))


def test_each_line_is_json_and_the_first_names_the_format(tmp_path):
    lines = [json.loads(line) for line in written(tmp_path).read_text().splitlines()]
    assert lines[0] == {"format": "bbb_numpy records", "version": 1}
    assert [{**line, "check": None} for line in lines[1:]] == [
        {**record, "check": None} for record in RECORDS
    ]


def test_opening_again_leaves_the_bytes_and_appends(tmp_path):
    path = written(tmp_path, RECORDS[:3])
    before = path.read_bytes()
    written(tmp_path, RECORDS[3:])
    assert path.read_bytes().startswith(before)
    assert read(path).records == tuple(RECORDS)
    assert sorted(os.listdir(tmp_path)) == [".lock", FILE]


def test_each_record_is_one_write_to_the_end_of_the_file_then_a_sync(tmp_path, monkeypatch):
    calls = []
    write, fsync = os.write, os.fsync
    with open_journal(tmp_path) as opened:
        monkeypatch.setattr(os, "write", lambda *a: calls.append("write") or write(*a))
        monkeypatch.setattr(os, "fsync", lambda *a: calls.append("sync") or fsync(*a))
        opened.append(RECORDS[0])
        assert calls == ["write", "sync"]
        with open(tmp_path / FILE, "ab") as other:
            other.write(b"another\n")
        opened.append(RECORDS[1])
    assert (tmp_path / FILE).read_bytes().split(b"\n")[2] == b"another"


def test_a_file_cut_short_anywhere_keeps_every_whole_record_and_goes_on(tmp_path):
    data = written(tmp_path / "whole", RECORDS[:3]).read_bytes()
    for end in range(len(data)):
        out = tmp_path / "cut"
        out.mkdir()
        path = out / FILE
        path.write_bytes(data[:end])
        # a record is whole once all but its line end is there
        whole = max(0, data[: end + 1].count(b"\n") - 1)
        opened = reopened(out)
        assert opened.records == tuple(RECORDS[:whole])
        torn = data[:end].rpartition(b"\n")[2]
        reported = end > len(HEADER) and torn != b"" and data[end : end + 1] != b"\n"
        assert bool(opened.messages) == reported, end
        assert not opened.damaged
        written(out, RECORDS[whole:3])
        assert path.read_bytes() == data
        shutil.rmtree(out)


def names_a_version(line):
    """Whether damage to the header made it one of another version."""
    try:
        return json.loads(line)["format"] == "bbb_numpy records" and line + b"\n" != HEADER
    except (ValueError, KeyError, TypeError):
        return False


@given(st.data())
@settings(max_examples=60)
def test_damage_anywhere_loses_only_the_lines_it_touches_and_names_them(data):
    with TemporaryDirectory() as folder:
        folder = Path(folder)
        path = written(folder)
        whole = path.read_bytes()
        lines = whole.split(b"\n")[:-1]
        start = data.draw(st.integers(0, len(whole) - 2))
        change = data.draw(st.binary(min_size=1, max_size=60))
        end = min(start + len(change), len(whole) - 1)
        change = change[: end - start]
        damaged = whole[:start] + change + whole[end:]
        path.write_bytes(damaged)
        first, last = whole[:start].count(b"\n"), whole[:end].count(b"\n")
        touched = set(range(first, last + 1)) if whole[start:end] != change else set()
        kept = [record for i, record in enumerate(RECORDS, 1) if i not in touched]
        intact = [RECORDS[i - 1] for i in range(1, len(lines)) if lines[i] in damaged.split(b"\n")]
        other = names_a_version(damaged.split(b"\n")[0])
        if other or (not intact and not damaged.startswith(HEADER)):
            with pytest.raises(RecordsError, match="of version" if other else "no record file"):
                reopened(folder)
            assert path.read_bytes() == damaged
            return
        opened = reopened(folder)
        assert list(opened.records) == intact
        assert [record for record in intact if record in kept] == kept
        if damaged == whole:
            assert not opened.messages
            return
        bad = [
            number
            for number, line in enumerate(damaged.split(b"\n")[:-1], 1)
            if line not in lines or (line + b"\n" == HEADER and number > 1)
        ]
        assert [at.line for at in opened.damaged] == bad
        assert all(str(number) in opened.messages[0] for number in bad)
        if bad:
            assert Path(folder, "records.damaged-1.jsonl").read_bytes() == damaged
        assert read(path).damaged == ()
        assert read(path).torn == 0
        written(folder, [RECORDS[0]])
        assert list(read(path).records) == [*intact, RECORDS[0]]


def test_damage_is_kept_aside_once_and_named_with_what_can_be_read(tmp_path):
    path = written(tmp_path)
    lines = path.read_bytes().split(b"\n")
    lines[2] = lines[2].replace(b"0.333", b"0.334")
    lines[4] = b"\0" * len(lines[4])
    path.write_bytes(b"\n".join(lines))
    damaged = path.read_bytes()
    opened = reopened(tmp_path)
    assert [at.line for at in opened.damaged] == [3, 5]
    assert "cannot read line 3 (toy/sum/01), 5; kept the 4 whole records" in opened.messages[0]
    assert "records.damaged-1.jsonl" in opened.messages[0]
    assert not reopened(tmp_path).messages
    path.write_bytes(damaged)  # killed between keeping the copy and mending
    reopened(tmp_path)
    path.write_bytes(damaged[:-1] + b"x")
    reopened(tmp_path)
    kept = sorted(name for name in os.listdir(tmp_path) if "damaged" in name)
    assert kept == ["records.damaged-1.jsonl", "records.damaged-2.jsonl"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (
            HEADER.replace(b"1}", b"2}") + b"{}\n",
            r"records of version 2, .* reads version 1; go on",
        ),
        (b"name,score\nhmc,2.3\n", "is no record file: .* give another folder, or move"),
        (b"hello", "is no record file"),
        (b"[]\n", "is no record file"),
        (b"\xff\xfe\n\n", "is no record file"),
    ],
)
def test_other_files_are_refused_and_not_touched(tmp_path, content, said):
    path = tmp_path / FILE
    path.write_bytes(content)
    with pytest.raises(RecordsError, match=said):
        reopened(tmp_path)
    with pytest.raises(RecordsError, match=said):
        read(path)
    assert path.read_bytes() == content
    assert sorted(os.listdir(tmp_path)) == [".lock", FILE]


def test_a_new_beginning_keeps_the_old_file(tmp_path):
    old = written(tmp_path).read_bytes()
    with open_journal(tmp_path, resume=False) as opened:
        assert opened.records == ()
        opened.append(RECORDS[0])
    assert (tmp_path / "records.previous-1.jsonl").read_bytes() == old
    assert read(tmp_path / FILE).records == (RECORDS[0],)


def test_what_is_no_json_is_not_written(tmp_path):
    with open_journal(tmp_path) as opened:
        with pytest.raises(ValueError, match="Out of range"):
            opened.append({"key": "a", "value": float("nan")})
        with pytest.raises(TypeError):
            opened.append({"key": "a", "value": object()})
    assert (tmp_path / FILE).read_bytes() == HEADER


def test_a_full_disk_leaves_the_file_as_it_was(tmp_path, monkeypatch):
    path = written(tmp_path, RECORDS[:1])
    before, write = path.read_bytes(), os.write
    with open_journal(tmp_path) as opened:
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", lambda fd, data: write(fd, data[:20]))
            with pytest.raises(OSError, match="no space left for the record of toy/sum/01"):
                opened.append(RECORDS[1])
        assert path.read_bytes() == before
        opened.append(RECORDS[2])
    assert read(path).records == (RECORDS[0], RECORDS[2])


def test_a_second_run_on_a_folder_is_refused_at_once_and_told_who_has_it(tmp_path):
    with open_journal(tmp_path) as opened:
        opened.append(RECORDS[0])
        with pytest.raises(BusyError, match=rf"process {os.getpid()} on .* writes to .*; wait"):
            reopened(tmp_path)
        opened.append(RECORDS[1])
    assert reopened(tmp_path).records == tuple(RECORDS[:2])


def test_a_killed_run_leaves_no_lock(tmp_path):
    code = (
        "import os, signal, sys; from pathlib import Path\n"
        "from bbb_numpy.uci.journal import open_journal\n"
        "with open_journal(Path(sys.argv[1])) as opened:\n"
        "    opened.append({'key': 'a'})\n"
        "    print(flush=True)\n"
        "    input()\n"
    )
    run = [sys.executable, "-c", code, str(tmp_path)]
    with subprocess.Popen(run, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        with pytest.raises(BusyError, match=f"process {process.pid} on"):
            reopened(tmp_path)
        process.kill()
    assert reopened(tmp_path).records == ({"key": "a"},)


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    for out in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(NotADirectoryError, match=f"{out} is a file, or lies below one"):
            reopened(out)
    (tmp_path / "taken" / FILE).mkdir(parents=True)
    with pytest.raises(OSError, match=r"cannot write to the output folder .*taken: Is a dir"):
        reopened(tmp_path / "taken")


@pytest.mark.skipif(os.geteuid() == 0, reason="root ignores permissions")
def test_a_read_only_folder_is_named(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(OSError, match=r"cannot write to the output folder .*: Permission"):
        reopened(tmp_path)


def test_a_checksum_is_of_the_line_and_not_of_its_meaning():
    line = journal._line({"key": "a", "value": 1.0})
    assert journal._record(line) == {"key": "a", "value": 1.0}
    assert journal._record(line.replace(b"1.0", b"1.00")) is None
