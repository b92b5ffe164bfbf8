"""A file is written whole or not at all, and nothing of a killed process is left behind."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from bbb_numpy.numeric import files
from bbb_numpy.numeric.files import (
    atomic_write,
    path_in_errors,
    write_arrays,
    write_json,
    write_text,
)
from bbb_numpy.numeric.storing import Format, read_state


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_what_a_killed_process_left_is_removed_by_a_later_write(tmp_path):
    path, long_ago = tmp_path / "model [1].npz", time.time() - 601.0
    mark = 32 * "a"
    others = [f".m.npz.{mark}", f"model [1].npz.{mark}", f".model [1].npz.{mark}.bak"]
    leftover, begun = (tmp_path / f".{path.name}.{32 * letter}" for letter in "bc")
    for place in (*(tmp_path / name for name in others), leftover, begun):
        place.write_text("half of it")
        os.utime(place, (long_ago, long_ago))
    os.utime(begun)  # another process writes on at it
    write_text(path, "whole")
    assert path.read_text() == "whole"
    assert names(tmp_path) == sorted([*others, begun.name, path.name])


def half(path):
    with atomic_write(path) as file:
        file.write(b"half")
        raise OSError("no space")


def test_a_write_that_fails_leaves_the_older_file(tmp_path):
    path = tmp_path / "m.txt"
    write_text(path, "old")
    with pytest.raises(OSError, match="no space"):
        half(path)
    assert (names(tmp_path), path.read_text()) == (["m.txt"], "old")


def test_all_is_on_the_disk_before_the_older_file_is_replaced(tmp_path, monkeypatch):
    path, seen = tmp_path / "m.txt", []
    write_text(path, "old")
    monkeypatch.setattr(
        os, "fsync", lambda file: seen.append((os.fstat(file).st_size, path.read_text()))
    )
    write_text(path, "a longer one")
    assert seen == [(len("a longer one"), "old")]


# A text, as a function of this module is not found where a package in site-packages is named tests
WRITER = """
import sys
from pathlib import Path
from bbb_numpy.numeric.files import write_text

for _ in range(30):
    write_text(Path(sys.argv[1]), sys.argv[2])
"""


def test_processes_that_write_one_file_do_not_disturb_each_other(tmp_path):
    path = tmp_path / "m.txt"
    command = [sys.executable, "-c", WRITER, str(path)]
    writers = [subprocess.Popen([*command, letter * 1000]) for letter in "ab"]
    assert [one.wait() for one in writers] == [0, 0]
    assert path.read_text() in ("a" * 1000, "b" * 1000)
    assert names(tmp_path) == ["m.txt"]


def test_what_is_no_json_and_objects_are_refused_and_the_older_file_stays(tmp_path):
    content, path = {"a": [1, 2.5, "b"], "c": None}, tmp_path / "file"
    write_json(path, content)
    for value in (float("nan"), float("inf")):
        with pytest.raises(ValueError, match="not JSON compliant"):
            write_json(path, [value])
    assert json.loads(path.read_text()) == content
    write_arrays(path, {"a": np.arange(3.0)})
    with pytest.raises(ValueError, match="allow_pickle"):
        write_arrays(path, {"a": np.array([{}], object)})
    with np.load(path) as found:
        assert found["a"].tolist() == [0.0, 1.0, 2.0]


@pytest.fixture
def little_space():
    """No file may grow beyond 4 kB, as on a full disk."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.usefixtures("little_space")
@pytest.mark.parametrize(
    ("write", "content"), [(write_text, 5000 * "new"), (write_arrays, {"x": np.zeros(10000)})]
)
def test_a_full_disk_is_an_error_with_the_name_of_the_file_and_the_older_file_stays(
    write, content, tmp_path
):
    path = tmp_path / "a.npz"
    path.write_text("old")
    with pytest.raises(OSError, match=r"too large|No space") as caught:
        write(path, content)
    assert caught.value.filename == str(path)
    assert (names(tmp_path), path.read_text()) == (["a.npz"], "old")


def test_an_error_gets_the_name_of_what_is_written_unless_it_has_one():
    for given, wanted in (((errno.ENOSPC, "full"), "here"), ((errno.ENOENT, "none", "a"), "a")):
        with pytest.raises(OSError, match=given[1]) as caught, path_in_errors(Path("here")):
            raise OSError(*given)
        assert caught.value.filename == wanted


def test_what_a_link_leads_to_is_replaced_and_not_the_link(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "true")
    write_text(tmp_path / "link", "new")
    assert (tmp_path / "true").read_text() == "new"
    assert (tmp_path / "link").is_symlink()


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")
def test_an_older_file_passes_on_its_permissions_and_an_unfinished_one_is_the_owners(tmp_path):
    def mode(path):
        return path.stat().st_mode & 0o7777

    umask = os.umask(0o027)
    try:
        for name, older, wanted in (("a", 0o600, 0o600), ("b", 0o664, 0o664), ("c", None, 0o640)):
            path = tmp_path / name
            if older is not None:
                path.touch()
                path.chmod(older)
            with atomic_write(path) as file:
                unfinished = mode(Path(file.name))
            assert (unfinished, mode(path)) == (0o600, wanted)
    finally:
        os.umask(umask)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_pipes_and_devices_are_rejected_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (Path("/dev/zero"), tmp_path / "pipe"):
        for check in (files.check_regular, lambda path: read_state(path, dict, Format("", 0, ()))):
            with pytest.raises(ValueError, match="is a pipe or a device; copy its content to"):
                check(path)
    files.check_regular(tmp_path)


def test_whether_a_file_can_be_written_is_known_before_and_leaves_nothing(tmp_path):
    (tmp_path / "old").write_text("as it was")
    for name in ("new", "old"):
        files.check_writable(tmp_path / name)
    for name in ("none/file", "old/file", 250 * "m"):
        with pytest.raises(OSError, match=r".") as caught:
            files.check_writable(tmp_path / name)
        assert caught.value.filename == str(tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["old"]
    assert (tmp_path / "old").read_text() == "as it was"
