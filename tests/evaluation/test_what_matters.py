"""Partial dependence and importances, of functions that are known and of learners."""

import numpy as np
import pandas as pd
import pytest
from sklearn.inspection import PartialDependenceDisplay
from small_learners import classifier, regressor

from bbb_numpy.evaluation.what_matters import PartialDependence, importances, partial_dependence
from bbb_numpy.plots.dependence import dependence

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
RNG = np.random.default_rng(0)
X = RNG.standard_normal((400, 3))
TABLE = pd.DataFrame(
    {
        "size": X[:60, 0],
        "kind": pd.Categorical(np.resize(list("xyz"), 60)),
        "day": pd.date_range("2024-01-01", periods=60, tz="UTC"),
        "gap": np.where(np.arange(60) % 4 == 0, np.nan, X[:60, 1]),
        "twin": X[:60, 0] + 0.1 * X[:60, 2],
        "lift": np.resize(["no", "yes"], 60),  # of one column: their correlation is -1
    }
)


class Known:
    """A learner of which the functions are known: f(x), and 2 f(x), in two draws."""

    def __init__(self, function):
        self.function = function

    def encode(self, x):
        return x

    def sample_functions(self, x, n_samples):
        return np.stack([self.function(x), 2 * self.function(x)], axis=-1)


def test_partial_dependence_is_the_mean_of_each_function_with_the_column_set():
    known = Known(lambda x: 3 * x[:, 0] + x[:, 1] * x[:, 2])
    result = partial_dependence(known, X, 0, [0.0, 1.0])
    rest = (X[:, 1] * X[:, 2]).mean()
    np.testing.assert_allclose(result.draws, [[rest, 2 * rest], [3 + rest, 6 + 2 * rest]])
    np.testing.assert_allclose(result.mean, 1.5 * np.array([rest, 3 + rest]))
    np.testing.assert_allclose(result.sd, 0.5 * np.abs([rest, 3 + rest]))
    both = partial_dependence(known, X, (1, 2), ([0.0, 2.0], [1.0, 3.0, 5.0]))
    expected = 3 * X[:, 0].mean() + np.array([[0, 0, 0], [2, 6, 10]])
    np.testing.assert_allclose(both.draws[..., 0], expected)
    (grid,) = partial_dependence(known, X, 2).grid
    np.testing.assert_allclose(grid[[0, -1]], np.quantile(X[:, 2], [0.05, 0.95]))
    assert len(grid) == 20


def test_partial_dependence_averages_over_at_most_500_rows():
    x = np.arange(2001.0)[:, None]
    result = partial_dependence(Known(lambda x: x[:, 0] + len(x)), x, 0, [0.0])
    assert result.draws[0, 0] == 500


@pytest.mark.equation("D75")
def test_importances_are_total_effects_of_every_draw():
    linear = importances(Known(lambda x: 2 * x[:, 0] + x[:, 1]), X)
    np.testing.assert_allclose(linear.share, [0.8, 0.2, 0.0], atol=0.06)
    assert (linear.sd < 1e-12).all()  # shares of f and of 2 f are equal
    assert linear.names == ("0", "1", "2")
    assert linear.message == ""
    product = importances(Known(lambda x: x[:, 0] * x[:, 1]), X)
    np.testing.assert_allclose(product.share, [1.0, 1.0, 0.0], atol=0.15)
    assert not importances(Known(lambda x: 0 * x[:, 0]), X).share.any()


def test_correlated_columns_are_named_and_exchanged_together():
    x = X.copy()
    x[:, 2] = -x[:, 0] + 0.2 * x[:, 2]
    result = importances(Known(lambda x: x[:, 0] + x[:, 2]), x)
    assert result.names == ("0", "1", "2", "0 + 2")
    assert "'0' and '2' (r = -0.98) correlate: exchanging one alone makes rows" in result.message
    assert result.share[0] > 10  # f is small where rows are: each alone is misread
    assert result.share[3] == pytest.approx(1, abs=0.15)
    assert str(result).splitlines()[-1] == result.message
    assert str(result).startswith(("0 ", "2 "))


@pytest.mark.parametrize("make", [regressor, classifier])
def test_tables_with_categories_dates_and_gaps_are_explained(make):
    y = TABLE["kind"] if make is classifier else TABLE["size"]
    before = TABLE.copy()
    learner = make().fit(TABLE, y)
    result = importances(learner, TABLE[TABLE.columns[::-1]].assign(more=1), n_samples=10)
    assert result.names == (*TABLE, "twin + size")
    outputs = (3,) if make is classifier else ()
    for name, n_values in {"size": 20, "kind": 3, "day": 20, "gap": 20}.items():
        dependent = partial_dependence(learner, TABLE, name, n_samples=10)
        assert dependent.draws.shape == (n_values, *outputs, 10)
    assert partial_dependence(learner, TABLE, ("size", "kind")).mean.shape == (20, 3, *outputs)
    pd.testing.assert_frame_equal(TABLE, before)


def test_a_column_that_is_not_there_is_refused():
    for feature in ("colour", 3, -1):
        with pytest.raises(ValueError, match="feature must be a column of X: a position from 0 to"):
            partial_dependence(Known(lambda x: x[:, 0]), X, feature)


def test_scikit_learns_display_takes_tables_with_categories():
    learner = regressor().fit(TABLE, TABLE["size"])
    display = PartialDependenceDisplay.from_estimator(
        learner, TABLE, ["size", "kind", ("size", "gap")], categorical_features=["kind"],
        grid_resolution=4,
    )  # fmt: skip
    kind = display.pd_results[1]
    ours = partial_dependence(learner, TABLE, "kind", n_samples=20)
    np.testing.assert_allclose(kind["average"][0], ours.mean, rtol=1e-6)


def test_a_dependence_is_drawn():
    draws = np.array([[1.0, 3.0], [2.0, 4.0]])
    ax = dependence(PartialDependence((np.array([0.0, 1.0]),), draws), label="size")
    assert ax.lines[0].get_ydata().tolist() == [2, 3]
    assert ax.get_xlabel() == "size"
    band = ax.collections[0].get_paths()[0].get_extents()
    assert (band.ymin, band.ymax) == (0, 5)
    ax = dependence(PartialDependence((np.array(["a", "b"]),), draws))
    assert [text.get_text() for text in ax.get_xticklabels()] == ["a", "b"]
    with pytest.raises(ValueError, match="a curve has one column and one output"):
        dependence(PartialDependence((np.zeros(2),), draws[:, None]))
