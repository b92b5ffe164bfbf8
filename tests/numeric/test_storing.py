"""A state comes back as it was; a file that does not hold one is an error."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of
from numpy.typing import NDArray

from bbb_numpy.numeric.storing import CheckpointError, Format, read_state, write_state


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


NAMES = st.from_regex(r"[a-z_][a-z0-9_]{0,4}", fullmatch=True)
ARRAYS = st.sampled_from(["f8", ">f8", "f4", "i2", "u8", "?", "U3"]).flatmap(
    lambda dtype: arrays_of.arrays(dtype, arrays_of.array_shapes(min_dims=0, min_side=0))
)
PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4)
OBJECTS = st.one_of(
    ARRAYS,
    st.lists(st.integers() | st.text(max_size=3), max_size=3).map(lambda v: np.array(v, object)),
    st.builds(Scale, st.floats(0.1, 9)),
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
    max_leaves=4,
)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tree=TREES)
def test_every_tree_comes_back_as_it_was(tmp_path, tree):
    write_state(tmp_path / "t.npz", Tree(tree), FORM)
    assert same(read_state(tmp_path / "t.npz", Tree, FORM).anything, tree)


def test_fields_of_a_dataclass_are_stored_by_name_and_of_a_named_tuple_by_place(tmp_path):
    write_state(tmp_path / "t.npz", Tree((Scale(2.0), Row(1.0, 3.0))), FORM)
    with np.load(tmp_path / "t.npz") as file:
        content = json.loads(file["header"].tobytes())["content"]
    assert content == {"anything": [{"Scale": {"value": 2.0}}, {"Row": [1.0, 3.0]}]}


def test_numpys_numbers_become_pythons_and_half_a_draw_that_is_left_over_stays(tmp_path):
    rng = np.random.default_rng(0)
    rng.integers(2**32, dtype=np.uint32)
    assert rng.bit_generator.state["has_uint32"] == 1
    tree = {"number": np.float32(0.1), "of": np.float32, 3: tmp_path, "rng": rng}
    write_state(tmp_path / "t.npz", Tree(tree), FORM)
    found = read_state(tmp_path / "t.npz", Tree, FORM).anything
    assert same(found.pop("rng"), rng)
    assert found == {"number": float(np.float32(0.1)), "of": "float32", 3: str(tmp_path)}
    assert type(found["number"]) is float


def test_no_two_arrays_have_one_name(tmp_path):
    tree = {"a.b": np.zeros(1), "a": {"b": np.ones(1)}}
    with pytest.raises(CheckpointError, match=r"anything\.a\.b cannot be saved: there are two"):
        write_state(tmp_path / "t.npz", Tree(tree), FORM)


@pytest.mark.parametrize(
    "value",
    [
        Unknown(1), Unknown, lambda x: x, {3}, b"bytes", 1j, np.zeros(2, complex),
        np.array([[1, 2]], object), np.datetime64("2020"), np.random.RandomState(0),
        np.random.Generator(np.random.MT19937(0)),
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_what_cannot_be_stored_is_named_by_its_place(value, tmp_path):
    with pytest.raises(CheckpointError, match=r"^anything\[1\]\.inside .* cannot be saved"):
        write_state(tmp_path / "t.npz", Tree((0, {"inside": value})), FORM)
    assert list(tmp_path.iterdir()) == []


LAST = np.float64(9999.0).tobytes()


@pytest.mark.parametrize(
    ("old", "new"), [(b"(10000,)", b"(1000 ,)"), (b"<f8", b"<f4"), (LAST, b"x" * 8)]
)
def test_a_damaged_array_and_one_that_claims_to_be_shorter_are_refused(old, new, tmp_path):
    """NumPy would stop reading where its own header says: its length is checked first."""
    path = tmp_path / "t.npz"
    write_state(path, Tree(np.arange(1e4)), FORM)
    before, after = path.read_bytes().split(b"anything.npy", 1)
    path.write_bytes(before + b"anything.npy" + after.replace(old, new, 1))
    with pytest.raises(CheckpointError, match=r"anything is not as long as its header|Bad CRC"):
        read_state(path, Tree, FORM)


@pytest.mark.parametrize(
    "other", [Format("other", 3, FORM.known), Format("test.tree", 4, FORM.known)]
)
def test_a_file_of_another_kind_or_version_is_refused(other, tmp_path):
    write_state(tmp_path / "t.npz", Tree(1), other)
    with pytest.raises(
        CheckpointError, match=r"\.npz: format must be 'test.tree', version 3; got '"
    ):
        read_state(tmp_path / "t.npz", Tree, FORM)


def test_classes_that_are_not_known_are_not_looked_up(tmp_path):
    write_state(tmp_path / "t.npz", Tree((Scale(2.0), double)), FORM)
    with pytest.raises(CheckpointError, match="holds 'Scale', which is no registered class"):
        read_state(tmp_path / "t.npz", Tree, Format("test.tree", 3, (Row,)))


def test_a_message_has_a_line_of_its_own_and_no_megabytes(tmp_path):
    path = tmp_path / "t.npz"
    write_state(path, Tree({"Scale": 1}), FORM)
    with np.load(path) as file:
        text = file["header"].tobytes().decode()
    for content in ('{"Scale": {"value": -1}}', '{"%s": 1}' % ("x" * 10**6)):
        header = text[: text.index('{"dict"')] + content + "}}"
        np.savez(path, header=np.frombuffer(header.encode(), np.uint8))
        with pytest.raises(
            CheckpointError, match=r"t.npz(:| is damaged or not written.*:) .{,350}$"
        ):
            read_state(path, Tree, FORM)
