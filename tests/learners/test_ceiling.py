"""A rate beyond all that training has seen goes on linearly; the ones in between are unchanged."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bbb_numpy import MLP, Adam, BayesianMLPRegressor, Cosine, GaussianPrior, load, save
from bbb_numpy.learners.rows import largest_log_rate
from bbb_numpy.training.recipe import Rows

pytestmark = pytest.mark.brief
QUICK = {
    "likelihood": "poisson",
    "inference": "map",
    "prior": GaussianPrior(5.0),
    "optimizer": Adam(0.1, schedule=Cosine()),
    "epochs": 100,
    "batch_size": 200,
    "random_state": 0,
    "progress": False,
}


def data(seed=0, rows=200):
    rng = np.random.default_rng(seed)
    x = rng.uniform(0.5, 5.0, (rows, 1))
    return x, rng.poisson(np.exp(0.6 * x[:, 0])).astype(float)


@pytest.mark.equation("D72")
@given(st.floats(-50.0, 700.0), st.floats(-5.0, 10.0), st.booleans(), st.floats(-3.0, 3.0))
def test_up_to_the_ceiling_nothing_changes_and_above_it_the_rate_is_the_tangent(f, c, has, e):
    network = MLP((1, 1), offset=has, ceiling=c)
    x = np.array([[0.5, e] if has else [0.5]])
    log_rate = network.below_ceiling(np.array([[[f]]]), x).item()
    own = f - e * has
    if own <= c:
        assert log_rate == f
        return
    tangent = np.exp(c) * (1.0 + own - c)
    assert np.exp(log_rate - e * has) == pytest.approx(tangent, rel=1e-9)
    assert log_rate <= f  # equal where own - c is below its last digit


def test_networks_without_a_ceiling_are_left_alone_and_it_is_no_part_of_their_identity():
    f = np.array([[[1e3]]])
    assert MLP((1, 1)).below_ceiling(f, np.zeros((1, 1))) is f
    assert MLP((1, 1), ceiling=2.0) == MLP((1, 1))
    assert "ceiling" not in repr(MLP((1, 1), ceiling=2.0))


@pytest.mark.equation("D72")
def test_the_ceiling_is_above_the_counts():
    y = np.array([[0.0], [7.0]])
    assert largest_log_rate(Rows(np.zeros((2, 1)), y), False) == pytest.approx(np.log(8.0))
    offsets = np.log([[1.0], [3.0]])
    assert largest_log_rate(Rows(offsets, y), True) == pytest.approx(np.log(2 * 8 / 4))


@pytest.mark.equation("D72")
def test_a_far_input_no_longer_explodes_and_near_ones_are_those_of_the_formula(tmp_path):
    x, y = data()
    model = BayesianMLPRegressor((), **QUICK).fit(x, y)
    slope, constant = model.coefs_[0].item(), model.intercepts_[0].item()
    far = np.array([[1.0], [4.0], [12.0], [30.0]])
    unbounded = np.exp((far[:, 0] - model.x_mean_) / model.x_scale_ * slope + constant)
    mean = model.predict(far)
    assert np.allclose(mean[:2], unbounded[:2], rtol=1e-12)
    assert unbounded[2] > 500
    assert mean[2] < 5 * y.max() < unbounded[2] / 5
    assert mean[3] < 16 * y.max()
    # the rate grows by equal steps
    steps = np.diff(model.predict(np.array([[20.0], [25.0], [30.0]])))
    assert steps[0] == pytest.approx(steps[1], rel=1e-9)
    assert model.predict_interval(far)[3, 1] < 20 * y.max()
    save(model, tmp_path / "far.npz")
    assert np.array_equal(load(tmp_path / "far.npz").predict(far), mean)


def test_the_ceiling_rises_with_the_counts_of_later_calls_and_exposures_multiply_it():
    x, y = data()
    model = BayesianMLPRegressor((), **QUICK)
    model.partial_fit(x, np.minimum(y, 2.0))
    low = model.estimator_.model.network.ceiling
    model.partial_fit(x, y)
    assert low == pytest.approx(np.log(3.0))
    assert model.estimator_.model.network.ceiling == pytest.approx(np.log(1 + y.max()))
    model.partial_fit(x, np.minimum(y, 2.0))
    assert model.estimator_.model.network.ceiling == pytest.approx(np.log(1 + y.max()))
    rates = BayesianMLPRegressor((), **QUICK).fit(x, y, exposure=np.full(len(x), 2.0))
    assert np.allclose(rates.predict(x, exposure=1e6), 1e6 * rates.predict(x), rtol=1e-9)
    real = BayesianMLPRegressor((), epochs=2, progress=False).fit(x, y)
    assert real.estimator_.model.network.ceiling == np.inf
