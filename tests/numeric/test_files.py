"""A file is written whole or not at all, and nothing of a killed process is left behind."""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import sys

import pytest

from bbb_numpy.numeric import files
from bbb_numpy.numeric.files import replacing, write_json, write_text

pytestmark = pytest.mark.skipif(files.LOCKS is None, reason="files cannot be locked here")

KILLED = """
import os, signal, sys
from pathlib import Path
from bbb_numpy.numeric.files import replacing
with replacing(Path(sys.argv[1])) as file:
    file.write(b"half of it")
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_what_a_killed_process_left_is_removed_by_the_next_write(tmp_path):
    path = tmp_path / "model [1].npz"
    write_text(path, "old")
    for _ in range(2):
        subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
    left = [name for name in names(tmp_path) if name != path.name]
    assert len(left) == 1, "the second one has removed what the first left"
    assert path.read_text() == "old"
    write_text(path, "new")
    assert names(tmp_path) == [path.name]
    assert path.read_text() == "new"


def test_what_another_process_is_writing_stays(tmp_path):
    path = tmp_path / "m.npz"
    code = KILLED.replace("os.kill(os.getpid(), signal.SIGKILL)", "print(flush=True); input()")
    with subprocess.Popen(
        [sys.executable, "-c", code, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdout is not None
        other.stdout.readline()
        write_text(path, "ours")
        assert len(names(tmp_path)) == 2
        other.communicate("\n")
    assert other.returncode == 0
    assert path.read_text() == "half of it"
    assert names(tmp_path) == ["m.npz"]


def test_only_unfinished_files_of_this_name_are_removed(tmp_path):
    mark = 32 * "a"
    others = [
        f".m.npz.{mark}.bak", f".mxnpz.{mark}", f".other.npz.{mark}", f"m.npz.{mark}", ".m.npz.abc"
    ]  # fmt: skip
    for name in others:
        (tmp_path / name).write_text("precious")
    (tmp_path / "precious").write_text("precious")
    (tmp_path / f".m.npz.{'b' * 32}").symlink_to(tmp_path / "precious")
    os.mkfifo(tmp_path / f".m.npz.{'c' * 32}")
    before = names(tmp_path)
    (tmp_path / f".m.npz.{mark}").write_text("left behind")
    write_text(tmp_path / "m.npz", "")
    assert names(tmp_path) == sorted([*before, "m.npz"])


def test_a_file_removed_before_it_was_locked_is_begun_again(tmp_path, monkeypatch):
    lock, seen = files._locked, []

    def removed_first(descriptor):
        if not seen:
            [begun] = tmp_path.iterdir()
            begun.unlink()
        seen.append(descriptor)
        return lock(descriptor)

    monkeypatch.setattr(files, "_locked", removed_first)
    write_text(tmp_path / "m.txt", "whole")
    assert (tmp_path / "m.txt").read_text() == "whole"
    assert len(seen) == 2


def test_a_write_that_fails_leaves_the_older_file(tmp_path):
    path = tmp_path / "m.txt"
    write_text(path, "old")

    def half():
        with replacing(path) as file:
            file.write(b"half")
            raise OSError("no space")

    with pytest.raises(OSError, match="no space"):
        half()
    assert (names(tmp_path), path.read_text()) == (["m.txt"], "old")


def many(path, text):
    for _ in range(50):
        write_text(path, text)


def test_processes_that_write_one_file_do_not_disturb_each_other(tmp_path):
    path = tmp_path / "m.txt"
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=many, args=(path, letter * 1000)) for letter in "ab"]
    for one in writers:
        one.start()
    for one in writers:
        one.join()
    assert [one.exitcode for one in writers] == [0, 0]
    assert path.read_text() in ("a" * 1000, "b" * 1000)
    assert names(tmp_path) == ["m.txt"]


def test_json_is_read_back_and_nan_and_infinity_are_refused(tmp_path):
    content = {"a": [1, 2.5, "b"], "c": None}
    write_json(tmp_path / "file", content)
    assert json.loads((tmp_path / "file").read_text()) == content
    for value in (float("nan"), float("inf")):
        with pytest.raises(ValueError, match="not JSON compliant"):
            write_json(tmp_path / "file", [value])
    assert json.loads((tmp_path / "file").read_text()) == content
