"""Columns of a learner: their features' names, and that no file can hold senseless ones."""

import numpy as np
import pandas as pd
import pytest

from bbb_numpy import BayesianMLPRegressor, load, save
from bbb_numpy.learners.columns import Column
from bbb_numpy.numeric.storing import CheckpointError
from tests.learners.test_checkpoint import drop, put, rewrite

# fits as short as these need not converge
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def test_a_column_has_one_feature_or_one_for_each_category():
    assert Column("size").features == ("size",)
    assert Column("colour", ("blue", "red")).features == ("colour=blue", "colour=red")


@pytest.mark.parametrize(
    ("name", "categories", "message"),
    [
        ("", (), "name must have 1 to 200 characters"),
        ("n" * 201, (), "name must have 1 to 200"),
        ("a", ("y", "x"), "categories must be sorted"),
        ("a", ("x", "x"), "none there twice"),
        ("a", ("",), "categories must have 1 to 200 characters"),
        ("a", ("x" * 201,), "categories must have 1 to 200 characters"),
        ("a", tuple(f"{k:03}" for k in range(101)), "accepted are 100 categories"),
    ],
)
def test_what_is_no_column_is_refused(name, categories, message):
    with pytest.raises(ValueError, match=message):
        Column(name, categories)


@pytest.fixture
def path(tmp_path):
    columns = (Column("size"), Column("colour", ("blue", "red")))
    names = [feature for column in columns for feature in column.features]
    frame = pd.DataFrame(np.random.default_rng(0).standard_normal((9, 3)), columns=names)
    model = BayesianMLPRegressor((2,), epochs=1, random_state=0, progress=False)
    model.fit(frame, frame["size"])
    model.columns_ = columns
    save(model, tmp_path / "m.npz")
    return tmp_path / "m.npz"


def test_columns_come_back_and_go_with_the_next_fit(path):
    model = load(path)
    assert model.columns_ == (Column("size"), Column("colour", ("blue", "red")))
    assert not hasattr(model.fit(np.eye(3), np.arange(3.0)), "columns_")


def column(name, *categories):
    return {"Column": {"name": name, "categories": [*categories]}}


COLOUR = column("colour", "blue", "red")
CHANGES = [
    ([column("size")], "columns_ do not give the features of feature_names_in_"),
    ([], "columns_ do not give the features"),
    ([COLOUR, column("size")], "columns_ do not give the features"),
    ([column("size"), column("colour", "blue", "rot")], "columns_ do not give the features"),
    ([column("size"), column("colour", "red", "blue")], "categories must be sorted"),
    ([column("size"), column("colour", *map(str, range(1000, 1101)))], "accepted are 100 categ"),
    ([column("size"), column("colour", "x" * 201)], "categories must have 1 to 200"),
    ([column(""), COLOUR], "name must have 1 to 200"),
    ([column(3), COLOUR], "name must be of type str; got 3"),
    ([column("size"), column("colour", "blue", 2)], "categories must be of type"),
    ([column("size"), {"Model": {}}], "fitted.columns_"),
    ("size", "columns_ must be of type"),
    (None, "columns_ must be of type"),
]


@pytest.mark.parametrize(("columns", "message"), CHANGES, ids=range(len(CHANGES)))
def test_a_file_with_senseless_columns_is_refused(path, columns, message):
    rewrite(path, put("fitted", columns_=columns))
    with pytest.raises(CheckpointError, match=message) as error:
        load(path)
    assert len(str(error.value)) < 1200


def test_columns_without_names_of_features_are_refused(path):
    rewrite(path, drop("fitted", "feature_names_in_"))
    with pytest.raises(CheckpointError, match="columns_ do not give the features"):
        load(path)
