"""Rows unlike the training rows: which are told, in which column, and how often by chance."""

import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from small_learners import classifier, regressor

from bbb_numpy import load, save
from bbb_numpy.learners.novelty import _gaps, _threshold, find_region

# fits as short as these need not converge
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
RNG = np.random.default_rng(0)
ROWS = RNG.standard_normal((200, 2))
TABLE = pd.DataFrame(
    {"a": ROWS[:, 0], "kind": np.resize(list("xyz"), 200), "b": ROWS[:, 0] + 0.1 * ROWS[:, 1]}
)
NEW = pd.DataFrame({"a": [0.0, 9.0, 1.5], "kind": "x", "b": [0.1, 0.0, -1.5]})
TOLD = ["", "a", "combination of columns"]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("make", [regressor, classifier])
def test_a_row_is_told_by_its_column_or_by_its_combination_of_columns(make, dtype, tmp_path):
    y = TABLE["kind"] if make is classifier else TABLE["a"]
    model = make(dtype=dtype).fit(TABLE, y)
    predicted, novelty = model.predict(NEW, return_novelty=True)
    assert (predicted == model.predict(NEW)).all()
    assert novelty.column.tolist() == TOLD
    assert novelty.outside.tolist() == [False, True, True]
    assert model.novelty(TABLE).outside.mean() <= 0.02
    save(model, tmp_path / "m.npz")
    assert load(tmp_path / "m.npz").novelty(NEW).column.tolist() == TOLD
    with pytest.raises(
        ValueError, match=re.escape("after partial_fit, after a fit that was inter")
    ):
        model.partial_fit(TABLE, y).novelty(NEW)
    numbers = make(dtype=dtype).fit(ROWS, y)
    assert numbers.novelty(np.array([[0.0, 99.0]])).column.tolist() == ["x1"]


def test_it_comes_last_of_what_predict_returns_and_rotated_inputs_are_named_by_their_columns():
    x = np.stack([ROWS[:, 0], ROWS[:, 0] + 1e-2 * ROWS[:, 1]], axis=1)
    model = regressor().fit(x, x[:, 0])
    assert hasattr(model, "x_axes_")
    far = np.array([[0.0, 0.0], [0.0, 30.0], [1.0, -1.0]])
    mean, std, novelty = model.predict(far, return_std=True, return_novelty=True)
    assert mean.shape == std.shape == (3,)
    assert novelty.column.tolist() == ["", "x1", "combination of columns"]
    assert len(model.predict(far, return_cov=True, return_novelty=True)) == 3


@given(
    arrays(np.float64, st.tuples(st.integers(4, 9), st.integers(1, 3)), elements=st.integers(-3, 3))
)
@pytest.mark.equation("D74")
def test_of_any_rows_at_most_one_is_called_new_by_the_others(rows):
    n_beyond = n_far = 0
    for new in range(len(rows)):
        others = np.delete(rows, new, axis=0)
        beyond = np.maximum(others.min(axis=0) - rows[new], rows[new] - others.max(axis=0)).max()
        n_beyond += beyond > _threshold(_gaps(others, np.full(rows.shape[1], True)))
        z = np.insert(others, 0, 3.0, axis=1)
        inverse = np.linalg.inv(z.T @ z + 0.01 * np.eye(z.shape[1]))
        leverage = np.einsum("na,ab,nb->n", z, inverse, z)
        row = np.append(3.0, rows[new])
        limit = _threshold(leverage / (1 - leverage))
        n_far += row @ inverse @ row > limit * (1 + 1e-6)
    assert max(n_beyond, n_far) <= 1


@pytest.mark.parametrize("law", ["standard_normal", "standard_cauchy", "standard_exponential"])
@pytest.mark.parametrize(("n_rows", "n_inputs"), [(60, 1), (60, 12), (300, 5)])
def test_false_alarms_are_as_rare_as_the_region_says(law, n_rows, n_inputs):
    rng = np.random.default_rng(1)
    rates = []
    for _ in range(100):
        region = find_region(getattr(rng, law)((n_rows, n_inputs)))
        rates.append(region.judge(getattr(rng, law)((50, n_inputs)))[0].mean())
    error = np.std(rates) / 10
    assert 0 < np.mean(rates) < region.false_alarm_rate + 2 * error
    assert region.false_alarm_rate == pytest.approx({60: 2 / 61, 300: 6 / 301}[n_rows])


def test_the_margin_is_that_of_the_training_rows_and_columns_of_two_values_have_none():
    x = np.array([[0.0, 0, 5], [1, 1, 5], [2, 0, 5], [3, 1, 5], [7, 0, 5]])
    region = find_region(x)
    scale = 2 / 1.349
    np.testing.assert_allclose(region.margin, [4 / scale, 0, 0])
    rows = np.array([[10.9, 0, 5], [11.1, 0, 5], [-4.1, 1, 5], [3, 1.01, 5], [3, 1, 5.1]])
    assert region.judge(rows)[1].tolist() == [-1, 0, 0, 1, 2]


def test_numbers_of_any_size_are_judged():
    x = RNG.standard_normal((30, 2))
    x[0] = 1e300
    x[1] = -1e300
    outside, _ = find_region(x).judge(x)
    assert not outside.any()
    assert find_region(x[2:]).judge(x)[0].tolist() == [True] * 2 + [False] * 28
    assert find_region(x[:1]).judge(x)[0].sum() == 29
    wide = RNG.standard_normal((300, 260))
    assert find_region(wide).axes.shape == (261, 1)
    assert find_region(wide).judge(wide + 99)[1].min() >= 0
