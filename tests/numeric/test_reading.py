"""Of a file only what is asked for is read, and what cannot be is an error that names the file."""

from __future__ import annotations

import io
import json
import tracemalloc
import zipfile

import numpy as np
import pytest
from numpy.lib import format as npy

from bbb_numpy.numeric.files import write_arrays, write_json
from bbb_numpy.numeric.reading import read_arrays, read_json
from bbb_numpy.numeric.storing import CheckpointError, Format, read_state

MEGABYTE = 2**20


@pytest.fixture
def path(tmp_path):
    return tmp_path / "file.npz"


def test_arrays_come_back_as_they_were_and_those_not_asked_for_are_not_read(path):
    wanted = {
        "matrix": np.arange(6.0).reshape(2, 3),
        "columns": np.asfortranarray(np.arange(6).reshape(3, 2)),
        "nothing": np.zeros((0, 4), np.float32),
        "number": np.array(3.5),
        "words": np.array(["a", "bcd"]),
    }
    write_arrays(path, {**wanted, "large": np.zeros(4 * MEGABYTE, np.uint8)})
    tracemalloc.start()
    found = read_arrays(path, tuple(wanted))
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < MEGABYTE
    assert list(found) == list(wanted)
    for name, array in wanted.items():
        assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape)
        assert np.array_equal(found[name], array)
        assert found[name].flags.writeable


def claims(*shape):
    """The file of an array that says to have this shape, and has one number."""
    file = io.BytesIO()
    npy.write_array_header_1_0(file, {"descr": "<f8", "fortran_order": False, "shape": shape})
    return file.getvalue() + bytes(8)


def archive(path, compression=zipfile.ZIP_STORED, **members):
    with zipfile.ZipFile(path, "w", compression) as file:
        for name, content in members.items():
            file.writestr(f"{name}.npy", content)


HOSTILE = {
    "compressed to a thousandth": lambda path: np.savez_compressed(path, a=np.zeros(MEGABYTE)),
    "a large member beside it": lambda path: archive(
        path, zipfile.ZIP_DEFLATED, a=claims(1), other=bytes(MEGABYTE)
    ),
    "longer than it is": lambda path: archive(path, a=claims(10**12)),
    "longer than a number can say": lambda path: archive(path, a=claims(10**30)),
    "shorter than it is": lambda path: archive(path, a=claims(0)),
    "negative": lambda path: archive(path, a=claims(-1, -1)),
    "pickled": lambda path: np.savez(path, a=np.array([{}], object)),
    "no array": lambda path: archive(path, a=b"text"),
    "another name": lambda path: np.savez(path, b=np.zeros(1)),
    "no archive": lambda path: path.write_bytes(b"PK\3\4" + bytes(99)),
    "empty": lambda path: path.write_bytes(b""),
}  # fmt: skip


@pytest.mark.parametrize("write", HOSTILE.values(), ids=HOSTILE)
def test_an_array_that_is_not_what_it_says_is_refused_before_it_takes_memory(path, write):
    write(path)
    with pytest.raises(ValueError, match="not written"):  # what is imported by a first call stays
        read_arrays(path, ("a",))
    tracemalloc.start()
    with pytest.raises(ValueError, match=r"file\.npz is damaged or not written.*: "):
        read_arrays(path, ("a",))
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < MEGABYTE / 2


def test_a_state_with_a_member_that_nobody_asked_for_takes_no_memory_for_it(path):
    content = {"format": "f", "version": 1, "content": {"real": 1.0, "imag": 2.0}}
    header = np.frombuffer(json.dumps(content).encode(), np.uint8)
    np.savez(path, header=header, other=np.zeros(MEGABYTE))
    tracemalloc.start()
    assert read_state(path, complex, Format("f", 1, ())) == 1 + 2j
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < MEGABYTE


def test_json_comes_back_and_what_is_none_or_too_deep_is_named(path):
    write_json(path, {"a": [1, None, "x"]})
    assert read_json(path) == {"a": [1, None, "x"]}
    for text in ("", "{", "[1, 2]", "[]", "3", '{"a": ' + "[" * 100_000, "\ud800"):
        path.write_bytes(text.encode(errors="surrogatepass"))
        with pytest.raises(ValueError, match=r"file\.npz is damaged or not written.*: "):
            read_json(path)


def test_a_state_too_deep_is_named(path):
    deep = b'{"format": "f", "version": 1, "content": {"real": ' + b"[" * 100_000
    write_arrays(path, {"header": np.frombuffer(deep, np.uint8)})
    with pytest.raises(
        CheckpointError, match=r"file\.npz is damaged or not written.*: RecursionError"
    ):
        read_state(path, complex, Format("f", 1, ()))
