"""Columns of a learner: the names of their features, which are stored with it."""

import numpy as np
import pandas as pd
import pytest

from bbb_numpy import BayesianMLPRegressor, load, save
from bbb_numpy.learners.columns import Column

# fits as short as these need not converge
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def test_a_column_has_one_feature_or_one_for_each_category():
    assert Column("size").features == ("size",)
    assert Column("colour", ("blue", "red")).features == ("colour=blue", "colour=red")


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
