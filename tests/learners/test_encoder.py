"""Data frames as they come: what `fit` makes of their columns, and `TableEncoder` likewise."""

import datetime
import pickle
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks
from small_learners import classifier, regressor

from bbb_numpy import TableEncoder, load, save
from bbb_numpy.learners.columns import describe_columns, encode_columns

# fits as short as these need not converge
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def flats(rows=24):
    """Return a table with a column of every kind that is encoded."""
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "size": np.where(np.arange(rows) % 5 == 0, np.nan, rng.normal(60, 10, rows)),
            "heating": np.resize(np.array(["gas", None, "oil"], object), rows),
            "built": pd.date_range("1960-01-01", periods=rows, freq="D"),
            "floor": pd.Categorical(np.resize([1, 2], rows), categories=[1, 2, 3]),
            "lift": np.arange(rows) % 3 == 0,
            "rooms": pd.array(np.resize(np.array([2, None], object), rows), dtype="Int64"),
            "sold": [datetime.date(2024, 1, 1 + row) for row in range(rows)],
        },
        index=np.arange(rows) + 100,
    )


TABLE = flats()
PRICE = np.arange(24.0)
FEATURES = [
    *("size", "size missing", "heating=gas", "heating=oil", "heating missing", "built"),
    *("floor=1", "floor=2", "floor=3", "lift", "rooms", "rooms missing", "sold"),
]


def test_each_column_becomes_the_features_that_its_cells_ask_for():
    encoder = TableEncoder().set_output(transform="pandas").fit(TABLE)
    features = encoder.transform(TABLE)
    assert list(features) == FEATURES == list(encoder.get_feature_names_out())
    assert list(features.index) == list(TABLE.index)
    median = TABLE["size"].median()
    assert features.loc[100].tolist() == [*(median, 1, 1, 0, 0, -3653, 1, 0, 0, 1, 2, 0, 19723)]
    assert features.loc[101, "heating=gas":"heating missing"].tolist() == [0, 0, 1]
    assert features.loc[101, "lift":"rooms missing"].tolist() == [0, 2, 1]
    assert isinstance(TableEncoder().fit_transform(TABLE), np.ndarray)
    assert (encoder.n_features_in_, encoder.feature_names_in_[0]) == (7, "size")


@pytest.mark.parametrize("make", [regressor, classifier])
def test_a_learner_takes_a_table_as_its_encoder_would_hand_it(make):
    target = TABLE["lift"].astype("category") if make is classifier else PRICE
    weights = np.arange(24) % 3.0
    encoder = TableEncoder().set_output(transform="pandas").fit(TABLE)
    learner = make().fit(TABLE, target, weights)
    alone = make().fit(encoder.transform(TABLE), target, weights)
    predicted = learner.predict(TABLE)
    assert (predicted == alone.predict(encoder.transform(TABLE))).all()
    assert learner.columns_ == encoder.columns_
    assert (learner.n_features_in_, len(learner.x_mean_)) == (7, 13)
    assert list(learner.feature_names_in_) == list(TABLE)
    assert list(learner.get_feature_names_out()) == FEATURES == list(alone.feature_names_in_)
    score = learner.score(TABLE, target)
    assert score == alone.score(encoder.transform(TABLE), target)
    turned = TABLE[TABLE.columns[::-1]].assign(more=1)
    assert (learner.predict(turned) == predicted).all()
    others = (target[:3], TABLE[:3].assign(heating=None, size=np.nan))
    assert np.isfinite(learner.log_predictive_density(others[1], others[0])).all()


def test_an_encoded_learner_is_copied_stored_and_trained_further(tmp_path):
    learner = regressor().fit(TABLE, PRICE)
    predicted = learner.predict(TABLE)
    save(learner, tmp_path / "m.npz")
    for copy in (load(tmp_path / "m.npz"), pickle.loads(pickle.dumps(learner))):
        assert (copy.predict(TABLE) == predicted).all()
        assert (copy.columns_, copy.n_features_in_) == (learner.columns_, 7)
    assert not hasattr(clone(learner), "columns_")
    assert (learner.partial_fit(TABLE[:9], PRICE[:9]).predict(TABLE) != predicted).any()
    learner.set_params(warm_start=True).fit(TABLE[:5], PRICE[:5])
    assert learner.n_features_in_ == 7
    numbers = learner.set_params(warm_start=False).fit(TABLE[["lift"]], PRICE)
    assert not hasattr(numbers, "columns_")
    assert list(numbers.get_feature_names_out()) == ["lift"]
    assert list(regressor().fit(np.eye(3), PRICE[:3]).get_feature_names_out()) == ["x0", "x1", "x2"]


@given(
    st.lists(st.floats(-1e6, 1e6, width=32), min_size=4, max_size=8),
    st.sampled_from([float, "Float64", object, "float32"]),
)
def test_a_table_of_numbers_is_what_the_array_is(cells, dtype):
    array = np.stack([cells, np.arange(len(cells))], axis=1)
    frame = pd.DataFrame(array, columns=["a", "b"]).astype(dtype)
    learner = regressor(epochs=1).fit(frame, array[:, 1])
    assert not hasattr(learner, "columns_")
    assert list(learner.feature_names_in_) == ["a", "b"]
    assert (
        learner.predict(frame) == regressor(epochs=1).fit(array, array[:, 1]).predict(array)
    ).all()


@given(st.lists(st.sampled_from(["x", "y", "NA", None, 1, 2.0, "3"]), min_size=1, max_size=12))
def test_whatever_the_cells_features_are_finite_or_the_column_is_named(cells):
    frame = pd.DataFrame({"a": pd.Series(cells, dtype=object), "b": range(len(cells))})
    missing = [cell in ("NA", None) for cell in cells]
    texts = {cell for cell in cells if cell in ("x", "y")}
    numbers = {str(cell) for cell in cells} - texts - {"NA", "None"}
    n_texts = sum(cell in texts for cell in cells)
    mixed = 0 < n_texts <= len(cells) - sum(missing) - n_texts
    if mixed or all(missing) or len(numbers) > len(texts) > 0:
        with pytest.raises(ValueError, match=r"is not a number|no value to fill|but is not one"):
            encode_columns(frame, describe_columns(frame))
        return
    columns = describe_columns(frame)
    features = encode_columns(frame, columns)
    assert np.isfinite(features.to_numpy()).all()
    assert len(set(features)) == features.shape[1]
    known = [column.indicator for column in columns]
    assert known == [any(missing), False]


REFUSED = {
    "dates as text": (["2024-01-02", "2024-01-03"], "pandas.to_datetime makes dates of the column"),
    "money": (["$5", "$6"], "'$5' looks like a number but is not one; convert the column"),
    "times": (["10:30", "11:00"], "'10:30', like all cells of the column, is a time of the day"),
    "one word": ([1, 2, "x"], "row 2, column 'a': 'x' is not a number"),
    "infinite": ([1, np.inf, None], "row 1, column 'a': 'inf' is not a number"),
    "nothing": ([None, None], "column 'a' has no value to fill it with"),
    "durations": (pd.to_timedelta([1, 2], "D"), "by / pandas.Timedelta(days=1)"),
    "months": (pd.period_range("2024-01", periods=2, freq="M"), "column 'a' holds period"),
    "names": ([f"n{row}" for row in range(101)], "holds 101 different texts; accepted are 1 to"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_encoded_is_named(case):
    cells, message = REFUSED[case]
    frame = pd.DataFrame({"a": cells})
    frame["b"] = "text"
    learner = regressor()
    with pytest.raises(ValueError, match=re.escape(message)):
        learner.fit(frame, np.arange(len(frame)))
    assert not hasattr(learner, "estimator_")


def test_two_columns_of_one_name_are_refused():
    with pytest.raises(ValueError, match="there is more than one 'a'"):
        regressor().fit(pd.DataFrame([["x", 1], ["y", 2]], columns=["a", "a"]), [1, 2])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda table: table.drop(columns="size"), "has no column 'size'"),
        (lambda table: table.rename(columns={"size": "Size"}), "did you mean 'Size'"),
        (lambda table: table.assign(heating="wood"), "'wood' must be one of the categories"),
        (lambda table: table.assign(lift=None), "row 100, column 'lift': a value is missing"),
        (lambda table: table.assign(built="soon"), "'soon' is not a date"),
        (lambda table: table[:0], "0 sample"),
    ],
)
def test_a_table_that_fit_would_not_know_is_refused(change, message):
    table = change(TABLE)
    learner = regressor(epochs=1).fit(TABLE, PRICE)
    with pytest.raises(ValueError, match=re.escape(message)):
        learner.predict(table)


def test_an_array_is_refused_where_fit_had_a_table():
    learner = regressor(epochs=1).fit(TABLE, PRICE)
    with pytest.raises(
        TypeError, match="X must be a data frame, as in fit, with the columns 'size'"
    ):
        learner.predict(TABLE.to_numpy())


def test_unknown_categories_may_be_ignored_and_pipelines_stay_possible():
    encoder = TableEncoder(unknown="ignore").fit(TABLE)
    with pytest.warns(UserWarning, match="'heating': 24 cells hold categories that no training"):
        features = encoder.transform(TABLE.assign(heating="wood"))
    assert not features[:, 2:5].any()
    with pytest.raises(ValueError, match="unknown must be 'error' or 'ignore'; got 'drop'"):
        TableEncoder(unknown="drop").fit(TABLE)
    pipeline = make_pipeline(TableEncoder(), Ridge()).fit(TABLE, PRICE)
    assert pipeline.score(TABLE, PRICE) > 0.9
    known = TABLE.assign(heating=TABLE["heating"].astype("category"))
    assert np.isfinite(cross_val_score(regressor(epochs=1), known, PRICE, cv=3)).all()


class Foreign:
    """A data frame of another library: names of columns, and columns that become arrays."""

    def __init__(self, frame):
        self.frame, self.columns, self.shape = frame, list(frame), frame.shape

    def __getitem__(self, name):
        return self.frame[name]

    def __len__(self):
        return len(self.frame)

    def to_numpy(self):
        return self.frame.to_numpy()


def test_a_data_frame_of_another_library_is_read():
    table = TABLE[["size", "heating"]]
    learner = regressor(epochs=1).fit(Foreign(table), PRICE)
    assert (learner.predict(Foreign(table)) == learner.predict(table)).all()


@parametrize_with_checks([TableEncoder()])
def test_every_conformance_check_of_scikit_learn_passes_for_the_encoder(estimator, check):
    check(estimator)
