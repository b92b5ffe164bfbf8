"""Files with old names are read as the objects of today."""

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import pytest
from data.write_files import FILES, FORMATS, stored_files

from bbb_numpy.learners.checkpoint import LEARNERS
from bbb_numpy.numeric.old_names import CLASSES, FIELDS, OLD_NAMES, ORDERS, VALUES, OldNames
from bbb_numpy.numeric.storing import CheckpointError, Format, read_state, write_state

# What files hold


class Row(NamedTuple):
    cost: float
    rate: float


@dataclass(frozen=True)
class Step:
    size: float
    kind: str
    unused: int
    rows: tuple[Row, ...]
    counts: dict[str, Any]
    place: str = field(default="", metadata={"local": True})


class Tree(NamedTuple):
    things: Any
    start: str


def double(x):
    return 2 * x


OLD = Format("test.tree", 1, (Row, Step, double))

# What these have become


class Epoch(NamedTuple):
    loss: float
    rate: float
    seconds: float = 0.0


@dataclass(frozen=True)
class Rule:
    learning_rate: float
    schedule: str
    epochs: tuple[Epoch, ...]
    stats: dict[str, Any]
    folder: str = field(default="here", metadata={"local": True})


class State(NamedTuple):
    parts: Any
    init: str


def twice(x):
    return 2 * x


RENAMED = OldNames(
    classes={"Row": "Epoch", "Step": "Rule", "double": "twice"},
    fields={
        "Rule": {
            "size": "learning_rate",
            "kind": "schedule",
            "unused": None,
            "rows": "epochs",
            "counts": "stats",
            "place": "folder",
        },
        "Rule.stats": {"made": "draws", "dropped": None},
        "State": {"things": "parts", "start": "init"},
    },
    values={
        "Rule.schedule": {"flat": "constant"},
        "Rule.stats.draws": {"many": "all"},
        "State.init": {"begun": "prior"},
    },
    orders={"Epoch": (("loss", None, "rate", "seconds"), ("loss", "rate"))},
)
TODAY = Format("test.tree", 1, (Epoch, Rule, twice), RENAMED)


def test_classes_fields_keys_and_text_by_old_names_are_those_of_today(tmp_path):
    rows = (Row(1.0, 2.0), Row(3.0, 4.0))
    step = Step(0.5, "flat", 7, rows, {"made": "many", "dropped": 1, "flat": 2, None: 3})
    tree = Tree([step, double, {"flat": np.ones(2)}], "begun")
    write_state(tmp_path / "t.npz", tree, OLD)

    found = read_state(tmp_path / "t.npz", State, TODAY)

    epochs = (Epoch(1.0, 2.0), Epoch(3.0, 4.0))
    rule = Rule(0.5, "constant", epochs, {"draws": "all", "flat": 2, None: 3})
    assert (found.parts[:2], found.init) == ([rule, twice], "prior")
    np.testing.assert_array_equal(found.parts[2]["flat"], np.ones(2))


def test_a_named_tuple_whose_fields_have_changed_is_told_by_their_number(tmp_path):
    class Row(NamedTuple):
        cost: float
        gone: int
        rate: float
        seconds: float

    write_state(tmp_path / "t.npz", Tree(Row(1.0, 2, 3.0, 4.0), ""), Format("t", 1, (Row,)))
    form = Format("t", 1, (Epoch,), RENAMED)
    assert read_state(tmp_path / "t.npz", State, form).parts == Epoch(1.0, 3.0, 4.0)


def test_files_of_today_keep_names_that_were_others_earlier(tmp_path):
    """A class whose name, and a field whose name, another one had."""
    names = OldNames({"Epoch": "Rule"}, {"Rule": {"schedule": "folder"}})
    form = replace(TODAY, old_names=names)
    state = State((Epoch(1.0, 2.0), Rule(0.5, "flat", (), {})), "prior")
    write_state(tmp_path / "t.npz", state, form)
    assert read_state(tmp_path / "t.npz", State, form) == state


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({"classes": {}}, "holds 'double', which is no registered class"),
        ({"fields": {}}, "unexpected keyword argument 'things'"),
    ],
)
def test_an_old_name_without_a_row_is_refused(tables, message, tmp_path):
    write_state(tmp_path / "t.npz", Tree(double, ""), OLD)
    form = replace(TODAY, old_names=replace(RENAMED, **tables))
    with pytest.raises(CheckpointError, match=message):
        read_state(tmp_path / "t.npz", State, form)


@pytest.mark.parametrize(
    ("earlier", "today"),
    [
        ("Step(size=0.5, kind='flat')", "Rule(learning_rate=0.5, schedule='constant')"),
        (
            "Mixed(Step(size=inf), kind='flat', made=Row(size=array([1., 2.])), size=1e-08)",
            "Mixed(Rule(learning_rate=inf), kind='flat', made=Epoch(size=array([1., 2.])), "
            "size=1e-08)",
        ),
        (
            "[('size', Step(unused=None, kind=None))]",
            "[('size', Rule(unused=None, schedule=None))]",
        ),
        ("<function f> at) ) Step(size=1)", "<function f> at) ) Rule(learning_rate=1)"),
        ("size=1, kind='flat'", "size=1, kind='flat'"),
    ],
)
def test_the_repr_of_an_object_becomes_that_of_todays_class(earlier, today):
    assert RENAMED.rename_text(earlier) == today
    assert OldNames().rename_text(earlier) == earlier


# --- the rows that there are


def known_names():
    """Return what any file may hold, by name."""
    return {name: known for form in FORMATS for name, known in form.names.items()}


def test_rows_lead_to_names_of_today():
    known = known_names()
    assert set(CLASSES.values()) <= known.keys()
    for owner, names in FIELDS.items():
        if owner in known:
            assert set(names.values()) - {None} <= set(known[owner].__match_args__), owner
    places = [owner for owner in (*FIELDS, *VALUES, *ORDERS) if not owner.startswith("Stored")]
    for place in places:
        owner, _, field_name = place.partition(".")
        assert owner in known, place
        assert not field_name or field_name.split(".")[0] in known[owner].__match_args__, place
    assert set(VALUES.get("Stored.learner", {}).values()) <= LEARNERS.keys()
    assert all(form.old_names is OLD_NAMES for form in FORMATS)


# A file of a version in which things had other names: replacements in its header, and rows
EARLIER = {
    "learner-sgld": (
        {
            '"BayesianMLPClassifier"': '"BayesianNetClassifier"',
            '"hidden_layer_sizes"': '"hidden"',
            '"estimator_"': '"source_"',
            '"Draws": {"positions"': '"Sample": {"weights"',
            '["gradients", {"array"': '["costs", {"array"',
            '"relu"': '"rectifier"',
        },
        {"Sample": "Draws"},
        {
            "Stored.parameters": {"hidden": "hidden_layer_sizes"},
            "Stored.fitted": {"source_": "estimator_"},
            "Draws": {"weights": "positions"},
            "Draws.stats": {"costs": "gradients"},
        },
        {
            "Stored.learner": {"BayesianNetClassifier": "BayesianMLPClassifier"},
            "Stored.parameters.activation": {"rectifier": "relu"},
            "MLP.activation": {"rectifier": "relu"},
        },
    ),
    "run-begun-nuts": (
        {
            '"Run"': '"Chains"',
            "NUTS(step_size=": "NoUTurn(step=",
            "MLP(": "Net(",
            "'relu'": "'rectifier'",
            '"warm_up"': '"burn_in"',
        },
        {"Chains": "Run", "NoUTurn": "NUTS", "Net": "MLP"},
        {"NUTS": {"step": "step_size"}, "Stored.settings": {"burn_in": "warm_up"}},
        {"MLP.activation": {"rectifier": "relu"}},
    ),
}


@pytest.mark.brief
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", EARLIER)
def test_rows_let_files_of_an_earlier_version_go_on(name, tmp_path, monkeypatch):
    replacements, *rows = EARLIER[name]
    [stored] = [path for path in stored_files() if path.stem == name]
    path, outcomes = tmp_path / "file.npz", FILES[name][1]
    with np.load(stored) as file:
        arrays = dict(file)
    header = arrays["header"].tobytes().decode()
    for today, earlier in replacements.items():
        assert today in header, today
        header = header.replace(today, earlier)
    np.savez(path, **arrays | {"header": np.frombuffer(header.encode(), np.uint8)})

    with pytest.raises(ValueError, match=r"file.npz|run.npz"):
        outcomes(path)
    for table, new_rows in zip((CLASSES, FIELDS, VALUES), rows, strict=True):
        for left, right in new_rows.items():
            both = right if isinstance(right, str) else {**table.get(left, {}), **right}
            monkeypatch.setitem(table, left, both)
    assert outcomes(path) == outcomes(stored)
