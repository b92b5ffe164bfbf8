"""A state comes back as it was; what a file may not hold is refused by its place."""

from __future__ import annotations

import io
import json
import os
import socket
import types
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of
from numpy.typing import NDArray

from bbb_numpy.numeric.storing import (
    CheckpointError,
    Format,
    check_type,
    pack,
    read_state,
    write_state,
)


class Row(NamedTuple):
    cost: float
    rate: float


class Point(NamedTuple):
    at: NDArray[Any]
    name: str


@dataclass(frozen=True)
class Scale:
    value: float = 1.0

    def __post_init__(self):
        if not self.value > 0:
            raise ValueError(f"value must be positive;\ngot {self.value}")


class Tree(NamedTuple):
    anything: Any


class Unknown(NamedTuple):
    a: int


def double(x):
    return 2 * x


FORM = Format("test.tree", 3, (Row, Point, Scale, double))


def same(a, b):
    """Whether both are equal, of the same types all the way down."""
    if isinstance(a, np.random.Generator):
        return a.bit_generator.state == b.bit_generator.state
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        parts = zip(a.ravel().tolist(), b.ravel().tolist(), strict=True)
        return (a.dtype, a.shape) == (b.dtype, b.shape) and all(same(*pair) for pair in parts)
    if is_dataclass(a) and not isinstance(a, type):
        return all(same(getattr(a, f.name), getattr(b, f.name)) for f in fields(a))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, float):
        return np.float64(a).tobytes() == np.float64(b).tobytes() or (a != a and b != b)
    return a == b


ONE = "anything.npy"


def head(content="{}"):
    return (
        '{"format":"test.tree","version":3,"written_by":"","content":{"anything":' + content + "}}"
    )


def npy(array):
    file = io.BytesIO()
    np.lib.format.write_array(file, array, version=(1, 0))
    return file.getvalue()


def described(shape, dtype="<f8", data=b""):
    """An array's own header, and other data."""
    file = io.BytesIO()
    given = {"descr": dtype, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, given)
    return file.getvalue() + data


def written(path, text, entries=(), packed=""):
    """Write header and entries, of which those whose name begins with `packed` are compressed."""
    header = ("header.npy", npy(np.frombuffer(text.encode(), np.uint8)))
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in (header, *entries):
            small = packed and name.startswith(packed)
            archive.writestr(name, data, zipfile.ZIP_DEFLATED if small else zipfile.ZIP_STORED)


NAMES = st.from_regex(r"[a-z_][a-z0-9_]{0,4}", fullmatch=True)
ARRAYS = st.sampled_from(["f8", ">f8", "f4", "i2", "u8", "?", "U3"]).flatmap(
    lambda dtype: arrays_of.arrays(dtype, arrays_of.array_shapes(min_dims=0, min_side=0))
)
PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4)
OBJECTS = st.one_of(
    ARRAYS,
    st.lists(st.integers() | st.text(max_size=3), max_size=3).map(lambda v: np.array(v, object)),
    st.builds(Scale, st.floats(0.1, 9)),
    st.lists(st.builds(Row, st.floats(), st.floats()), max_size=3),
    st.builds(Point, ARRAYS, st.text(max_size=2)),
    st.integers(0, 9).map(np.random.default_rng),
    st.integers(0, 9).map(lambda seed: np.random.Generator(np.random.PCG64DXSM(seed))),
    st.just(double),
)
TREES = st.recursive(
    PLAIN | OBJECTS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(NAMES, inner, max_size=3)
    ),
    max_leaves=6,
)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tree=TREES)
def test_every_tree_comes_back_as_it_was(tmp_path, tree):
    write_state(tmp_path / "t.npz", Tree(tree), FORM)
    assert same(read_state(tmp_path / "t.npz", Tree, FORM).anything, tree)


def test_rows_of_floats_are_one_array_and_numbers_lose_numpys_types(tmp_path):
    tree = {"rows": [Row(1.0, np.nan), Row(2.0, 3.0)], "number": np.float32(0.1), "of": np.float32}
    write_state(tmp_path / "t.npz", Tree(tree), FORM)
    with np.load(tmp_path / "t.npz") as file:
        np.testing.assert_array_equal(file["anything.rows"], [[1.0, np.nan], [2.0, 3.0]])
    found = read_state(tmp_path / "t.npz", Tree, FORM).anything
    assert (found["number"], type(found["number"]), found["of"]) == (
        float(np.float32(0.1)),
        float,
        "float32",
    )


@pytest.mark.parametrize("rows", [[Row(1, 2.0)], [Row(1.0, 2.0), (3.0, 4.0)]])
def test_rows_that_are_not_all_floats_and_of_one_kind_keep_their_types(rows, tmp_path):
    write_state(tmp_path / "t.npz", Tree(rows), FORM)
    assert same(read_state(tmp_path / "t.npz", Tree, FORM).anything, rows)


def test_a_generator_comes_back_with_the_half_of_a_draw_that_is_left_over(tmp_path):
    rng = np.random.default_rng(0)
    rng.integers(2**32, dtype=np.uint32)
    assert rng.bit_generator.state["has_uint32"] == 1
    write_state(tmp_path / "t.npz", Tree(rng), FORM)
    found = read_state(tmp_path / "t.npz", Tree, FORM).anything
    assert (
        found.integers(2**32, size=3, dtype=np.uint32).tolist()
        == rng.integers(2**32, size=3, dtype=np.uint32).tolist()
    )


def test_no_two_arrays_have_one_name():
    arrays: dict[str, Any] = {}
    pack("a", np.zeros(1), FORM, arrays)
    for taken in ("a", "header"):  # the latter by the file's own
        with pytest.raises(CheckpointError, match=f"{taken} cannot be saved: there are two arrays"):
            pack(taken, np.zeros(1), FORM, arrays)
    assert list(arrays) == ["a"]


@pytest.mark.parametrize(
    "value",
    [
        Unknown(1),
        Unknown,
        lambda x: x,
        {1: 2},
        {"a.b": 2},
        {3},
        b"bytes",
        1j,
        np.zeros(2, complex),
        np.array([[1, 2]], object),
        np.datetime64("2020"),
        np.random.RandomState(0),
        np.random.Generator(np.random.MT19937(0)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_cannot_be_stored_is_named_by_its_place(value, tmp_path):
    with pytest.raises(CheckpointError, match=r"^anything\[1\]\.inside .* cannot be saved"):
        write_state(tmp_path / "t.npz", Tree((0, {"inside": value})), FORM)
    assert list(tmp_path.iterdir()) == []


class Speaks(Protocol):
    loud: bool

    def speak(self) -> str: ...


class Dog:
    loud = True

    def speak(self):
        return "wow"


T = TypeVar("T")
PAIR = types.GenericAlias(types.SimpleNamespace(__value__=tuple[T, T]), (int,))  # type: ignore[arg-type]
RIGHT = [
    (1, int), (1, float), (0.5, float), (True, bool), ("a", str), (None, int | None),
    ("b", Literal["a", "b"]), ((1, 2), tuple[int, ...]), ((1, "a"), tuple[int, str]),
    ([0.5], list[float]), ({"a": (1,)}, dict[str, tuple[int, ...]]), (np.zeros(2), NDArray[Any]),
    (np.zeros(2, bool), NDArray[np.bool_]), (double, Callable[[float], float]), (Dog(), Speaks),
    (Row(1.0, 2.0), Row), (Row(1.0, 2.0), Scale | Row), (object(), Any),
    ((1,), tuple[int]), ((1, 2), PAIR),
]  # fmt: skip
WRONG = [
    (True, int), (True, float), ("1", float), (1, bool), (1.0, int), (1, str), ("0", int | None),
    ("c", Literal["a", "b"]), ([1, 2], tuple[int, ...]), ((1, 2.0), tuple[int, ...]),
    ((1,), tuple[int, str]), ([True], list[float]), ((0.5,), list[float]),
    ({"a": (1.5,)}, dict[str, tuple[int, ...]]), ([0.0], NDArray[Any]),
    (np.zeros(2), NDArray[np.bool_]), (3, Callable[[float], float]), (Scale(), Speaks),
    (Dog, Speaks), (Scale(), Row), (Scale, Scale), (1.0, Scale | Row),
    ((1, 2), tuple[int]), ((1, "a"), PAIR),
]  # fmt: skip


@pytest.mark.parametrize(("value", "hint"), RIGHT)
def test_a_value_of_its_type_passes(value, hint):
    check_type("a.b", value, hint)


@pytest.mark.parametrize(("value", "hint"), WRONG)
def test_a_value_of_another_type_is_refused(value, hint):
    with pytest.raises(CheckpointError, match=r"^a\.b must be of type .*; got "):
        check_type("a.b", value, hint)


def test_a_protocol_asks_for_what_it_names_and_for_calls():
    class Called(Protocol):
        speed: float

        def __call__(self, x: float) -> float: ...

    class Fast:
        speed = 1.0

        def __call__(self, x: float) -> float:
            return x

    check_type("a", Fast(), Called)
    for other in (Dog(), double, types.SimpleNamespace(speed=1.0)):
        with pytest.raises(CheckpointError, match="a must be of type Called"):
            check_type("a", other, Called)


@pytest.mark.parametrize(("length", "told"), [(300, f"'{'x' * 298}'"), (301, f"'{'x' * 296}...")])
def test_a_value_is_told_in_three_hundred_characters(length, told):
    with pytest.raises(CheckpointError) as caught:
        check_type("a", "x" * (length - 2), int)
    assert str(caught.value) == f"a must be of type int; got {told}"


def test_a_message_has_a_thousand_characters_of_its_two_ends():
    assert str(CheckpointError("a" * 500 + "b" * 500)) == "a" * 500 + "b" * 500
    assert str(CheckpointError("a" * 501 + "b" * 500)) == "a" * 500 + " ... " + "b" * 500


STATE = np.random.default_rng(0).bit_generator.state


@pytest.mark.parametrize(
    "state",
    [STATE | {"has_uint32": 2}, STATE | {"more": 0}, STATE | {"uinteger": -1},
     STATE | {"bit_generator": "MT19937"}, {"bit_generator": "PCG64"}],
)  # fmt: skip
def test_what_is_no_state_of_a_generator_is_refused(state, tmp_path):
    written(tmp_path / "t.npz", head(json.dumps({"generator": state})))
    with pytest.raises(CheckpointError, match="anything: not the state of a generator"):
        read_state(tmp_path / "t.npz", Tree, FORM)


def test_the_names_in_a_generators_state_have_no_order(tmp_path):
    state = dict(reversed(STATE.items()))
    written(tmp_path / "t.npz", head(json.dumps({"generator": state})))
    assert same(read_state(tmp_path / "t.npz", Tree, FORM).anything, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ([], "header: format must be 'test.tree'"),
        ({"format": "other"}, "header: format must be 'test.tree'"),
        ({"version": 4}, "header: version 4 is not supported, .* version 3; .* bbb_numpy '0.1'"),
        ({"version": 3.0}, "header: version 3.0 is not supported"),
        ({"written_by": 3}, "written_by must be of type str; got 3"),
        ({"more": 3}, r"header: missing \[\], unknown \['more'\]"),
    ],
)
def test_another_header_is_refused(header, message, tmp_path):
    right = {"format": "test.tree", "version": 3, "written_by": "0.1", "content": {"anything": 1}}
    written(tmp_path / "right.npz", json.dumps(right))
    assert read_state(tmp_path / "right.npz", Tree, FORM) == Tree(1)
    written(tmp_path / "t.npz", json.dumps(right | header if header else header))
    with pytest.raises(CheckpointError, match=f"^{message}"):
        read_state(tmp_path / "t.npz", Tree, FORM)


@pytest.mark.parametrize("change", [lambda header: header[None], lambda header: header.view("i1")])
def test_a_header_that_is_no_row_of_bytes_is_refused(change, tmp_path):
    np.savez(tmp_path / "t.npz", header=change(np.frombuffer(head("1").encode(), np.uint8)))
    with pytest.raises(CheckpointError, match="header must be an array of bytes"):
        read_state(tmp_path / "t.npz", Tree, FORM)


def test_a_single_array_is_refused(tmp_path):
    np.save(tmp_path / "t.npy", np.zeros(3))
    with pytest.raises(CheckpointError, match=r"no state, or damaged"):
        read_state(tmp_path / "t.npy", Tree, FORM)


def test_a_comment_at_the_end_of_the_archive_is_no_damage(tmp_path):
    write_state(tmp_path / "t.npz", Tree(1), FORM)
    with zipfile.ZipFile(tmp_path / "t.npz", "a") as archive:
        archive.comment = b"of somebody"
    assert read_state(tmp_path / "t.npz", Tree, FORM) == Tree(1)


@pytest.mark.parametrize("shape", [(2, 3), (2,), (2, 2, 1), ()])
def test_rows_of_another_shape_are_refused(shape, tmp_path):
    written(tmp_path / "t.npz", head('{"rows": "Row"}'), [(ONE, npy(np.zeros(shape)))])
    with pytest.raises(CheckpointError, match=r"anything must have shape \(None, 2\); got"):
        read_state(tmp_path / "t.npz", Tree, FORM)


def test_numbers_that_are_no_characters_are_no_text(tmp_path):
    text = np.array([0x7FFFFFFF], "<u4").view("<U1")
    written(tmp_path / "t.npz", head('{"array": "<U1"}'), [(ONE, npy(text))])
    with pytest.raises(CheckpointError, match="anything is no text"):
        read_state(tmp_path / "t.npz", Tree, FORM)


@pytest.mark.parametrize("place", [-1, -8, 0])
def test_a_byte_of_an_array_that_is_another_one_is_noticed(place, tmp_path):
    path, numbers = tmp_path / "t.npz", np.arange(1.0, 1e4)
    write_state(path, Tree(numbers), FORM)
    data = bytearray(path.read_bytes())
    data[data.index(numbers.tobytes()) + place % numbers.nbytes] ^= 1
    path.write_bytes(data)
    with pytest.raises(CheckpointError, match=r"cannot be read; .* damaged .*CRC"):
        read_state(path, Tree, FORM)


@pytest.mark.parametrize("content", ["[" * 100_000, '{"dict":' * 100_000])
def test_a_header_that_is_nested_too_deeply_is_refused(content, tmp_path):
    written(tmp_path / "t.npz", head(content))
    with pytest.raises(CheckpointError, match="header is not JSON"):
        read_state(tmp_path / "t.npz", Tree, FORM)


class Runs:
    """What would run code if it were unpickled."""

    def __reduce__(self):
        return exec, ("raise SystemExit('executed')",)


def test_objects_are_refused_and_nothing_is_executed(tmp_path):
    np.savez(tmp_path / "t.npz", header=np.array([Runs()]))
    with pytest.raises(CheckpointError, match="Object arrays cannot be loaded"):
        read_state(tmp_path / "t.npz", Tree, FORM)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"Scale": {"value": -1}}, "anything: Scale: value must be positive; got -1"),
        ({"Scale": {"value": None}}, "anything.value must be of type float; got None"),
        ({"Unknown": {"a": 1}}, "anything: unknown class 'Unknown'; known are Row, Point, Scale"),
        ({"double": {}}, "anything: unknown class 'double'"),
        ({"name": "Unknown"}, "anything: unknown name 'Unknown'"),
        ({"rows": "Row"}, "anything is missing"),
        ({"array": "<f8"}, "anything is missing"),
        ({"dict": {"__a": {"float": "1"}}}, "anything.__a must be one of"),
        ([[float("nan")]], "header is not JSON"),
        ({}, "anything must be a table of one name; got {}"),
        ({"float": "1", "list": []}, "anything must be a table of one name"),
        ({"list": {}}, "anything: list of the wrong type; got {}"),
        ({"name": []}, "anything: name of the wrong type; got []"),
        ({"objects": [["a"]]}, "anything must hold numbers or text"),
        ({"Scale": 3}, "anything: Scale must be a table of names; got 3"),
    ],
)
def test_a_header_that_says_something_else_is_refused(content, message, tmp_path):
    head = {"format": "test.tree", "version": 3, "written_by": "", "content": {"anything": content}}
    np.savez(tmp_path / "t.npz", header=np.frombuffer(json.dumps(head).encode(), np.uint8))
    with pytest.raises(CheckpointError) as caught:
        read_state(tmp_path / "t.npz", Tree, FORM)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_numbers_too_large_for_a_float_are_refused(tmp_path):
    text = '{"format":"test.tree","version":3,"written_by":"","content":{"anything":[[1e999]]}}'
    np.savez(tmp_path / "t.npz", header=np.frombuffer(text.encode(), np.uint8))
    with pytest.raises(CheckpointError, match=r"anything\[0\]\[0\]: a number is too large"):
        read_state(tmp_path / "t.npz", Tree, FORM)


@pytest.mark.parametrize(("old", "new"), [(b"(10000,)", b"(1000 ,)"), (b"<f8", b"<f4")])
def test_an_array_that_claims_to_be_shorter_is_refused(old, new, tmp_path):
    """Its own header is damaged: NumPy would stop reading there, and the sum is checked first."""
    path = tmp_path / "t.npz"
    write_state(path, Tree(np.arange(1e4)), FORM)
    before, after = path.read_bytes().split(b"anything.npy", 1)
    path.write_bytes(before + b"anything.npy" + after.replace(old, new, 1))
    with pytest.raises(CheckpointError, match=r"CRC of anything\.npy"):
        read_state(path, Tree, FORM)


def test_an_entry_that_nobody_asks_for_is_refused(tmp_path):
    written(
        tmp_path / "t.npz",
        head('{"array": "<f8"}'),
        [(ONE, npy(np.ones(3))), ("more.npy", npy(np.ones(9)))],
    )
    with pytest.raises(CheckpointError, match=r"has unknown entries \['more'\]"):
        read_state(tmp_path / "t.npz", Tree, FORM)


def test_an_array_of_another_dtype_is_refused(tmp_path):
    written(tmp_path / "t.npz", head('{"array": "<f8"}'), [(ONE, npy(np.ones(3, np.float32)))])
    with pytest.raises(CheckpointError, match="must have dtype '<f8'; got '<f4'"):
        read_state(tmp_path / "t.npz", Tree, FORM)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_what_is_no_regular_file_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(tmp_path / "socket"))
        places = {"a pipe": tmp_path / "pipe", "a socket": tmp_path / "socket"}
        for kind, path in (places | {"a device": Path("/dev/zero")}).items():
            with pytest.raises(CheckpointError, match=rf"^is {kind}; accepted are regular files"):
                read_state(path, Tree, FORM)


def test_files_of_any_honest_size_are_read(tmp_path):
    """Ninety levels, a hundred thousand names, a large array."""
    deep = 1
    for _ in range(90):
        deep = (deep,)
    names = np.array([f"column é {i}" for i in range(100_000)], object)
    tree = {"deep": deep, "names": names, "numbers": np.arange(2.0**23)}
    write_state(tmp_path / "t.npz", Tree(tree), FORM)
    found = read_state(tmp_path / "t.npz", Tree, FORM).anything
    assert found["deep"] == deep
    assert found["names"].tolist() == names.tolist()
    np.testing.assert_array_equal(found["numbers"], tree["numbers"])
