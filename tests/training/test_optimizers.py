"""optimizers: each rule against its textbook form, and schedules at their ends."""

import numpy as np
import pytest
import textbook
from hypothesis import given
from hypothesis import strategies as st

from bbb_numpy import (
    IVON,
    MLP,
    SGD,
    Adam,
    Constant,
    Cosine,
    FullRank,
    GaussianLikelihood,
    Model,
    Momentum,
    Reparameterised,
    StepDecay,
)
from bbb_numpy.numeric.elementary import inverse_softplus, sigmoid, softplus
from bbb_numpy.registry import OPTIMIZERS
from bbb_numpy.training import optimizers
from bbb_numpy.training.optimizers import OPTIMIZER, OptimizerState

seeds = st.integers(0, 2**32 - 1)
RULES = [type(rule) for rule in OPTIMIZERS.values()]
BY_TEXTBOOK = [
    name for name, rule in OPTIMIZERS.items() if type(rule).__name__ in textbook.OPTIMIZERS
]


def run(rule, grads, theta, factors=None):
    theta, state = theta.copy(), rule.init(theta)
    for grad, factor in zip(grads, factors or [1.0] * len(grads), strict=True):
        rule.update(theta, grad.copy(), state, factor)
    return theta, state


def draw(seed, steps=7):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((steps, 5)), rng.standard_normal(5)


@pytest.mark.equation("K43", "K44", "D2", "D3")
@pytest.mark.parametrize("name", BY_TEXTBOOK)
def test_a_rule_moves_as_the_textbook_says(name):
    rule, (grads, theta) = OPTIMIZERS[name], draw(3, steps=20)
    final_theta, state = run(rule, grads, theta)
    right = textbook.OPTIMIZERS[type(rule).__name__](textbook.Numpy, rule, theta, grads)
    np.testing.assert_allclose(final_theta, right, rtol=1e-9, atol=1e-12)
    assert state.steps == len(grads)
    assert run(rule, grads.astype(np.float32), theta.astype(np.float32))[0].dtype == np.float32


@pytest.mark.equation("K43", "K44")
@given(seed=seeds, rate=st.floats(1e-6, 1.0))
def test_sgd_subtracts_eta_times_the_gradient(seed, rate):
    grads, theta = draw(seed)
    final_theta, state = run(SGD(rate), grads, theta)
    assert np.allclose(final_theta, theta - rate * grads.sum(axis=0), rtol=1e-12, atol=1e-12)
    assert state.steps == len(grads)


@pytest.mark.equation("D2")
@given(seed=seeds, momentum=st.floats(0.0, 0.99))
def test_momentum_moves_by_a_geometric_sum_of_gradients(seed, momentum):
    grads, theta = draw(seed)
    final_theta, _ = run(Momentum(0.1, momentum), grads, theta)
    steps = len(grads)
    weights = [sum(momentum**k for k in range(steps - t)) for t in range(steps)]
    assert np.allclose(final_theta, theta - 0.1 * (weights @ grads), rtol=1e-12, atol=1e-12)


@pytest.mark.equation("K44", "D2", "D3")
@pytest.mark.parametrize(
    ("rule", "rate", "share"),
    [(SGD(1e-3), 1e-3, 0.5), (Momentum(1e-3, 0.9), 1e-2, 0.5), (Adam(0.03), 0.03, 0.8)],
    ids=["plain", "momentum", "Adam"],
)
def test_sigma_leaves_the_start_of_the_report_after_as_many_steps_as_each_rate_allows(
    rule, rate, share
):
    """Along the mean slope (Lambda sigma - 1 / sigma) sig(rho), with Lambda = 100."""
    best, rho = 0.1, np.array([-5.0])
    start, state, steps = softplus(rho)[0], rule.init(rho), 0
    while softplus(rho)[0] ** 2 < share * best**2:
        sigma = softplus(rho)
        rule.update(rho, (sigma / best**2 - 1 / sigma) * sigmoid(rho), state, 1.0)
        steps += 1
    assert steps == pytest.approx(np.log(best / start) / rate, rel=0.1)


@pytest.mark.equation("D3")
@given(
    seed=seeds,
    beta1=st.floats(0.0, 0.99),
    beta2=st.floats(0.0, 0.9999),
    epsilon=st.sampled_from([1e-8, 0.3]),
)
def test_adam_with_rescaled_moments_is_adam_as_published(seed, beta1, beta2, epsilon):
    # Kingma and Ba 2015, Algorithm 1, written as sums instead of recursions
    grads, theta = draw(seed)
    final_theta, _ = run(Adam(0.01, beta1, beta2, epsilon), grads, theta)
    for t in range(1, len(grads) + 1):
        ages = np.arange(t)[::-1]
        m_hat = (1 - beta1) * beta1**ages @ grads[:t] / (1 - beta1**t)
        v_hat = (1 - beta2) * beta2**ages @ grads[:t] ** 2 / (1 - beta2**t)
        theta = theta - 0.01 * m_hat / (np.sqrt(v_hat) + epsilon)
    assert np.allclose(final_theta, theta, rtol=1e-9, atol=1e-9)


@pytest.mark.equation("D3")
@given(seed=seeds, beta2=st.floats(0.0, 0.9999), clip=st.floats(0.5, 3.0))
def test_no_gradient_is_longer_than_those_before_it_times_clip(seed, beta2, clip):
    grads, theta = draw(seed)
    grads[4] *= 1e3
    final_theta, _ = run(Adam(0.01, beta2=beta2, clip=clip), grads, theta)
    cut = grads[:1]
    for grad in grads[1:]:
        weights = beta2 ** np.arange(len(cut))[::-1]
        rms_length = np.sqrt(np.average((cut**2).sum(axis=1), weights=weights))
        cut = np.vstack([cut, grad * min(1.0, clip * rms_length / np.linalg.norm(grad))])
    expected, _ = run(Adam(0.01, beta2=beta2), cut, theta)
    np.testing.assert_allclose(final_theta, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.equation("D3")
@pytest.mark.parametrize(
    ("clip", "divisor", "moved", "slow"), [(None, 11, 32, 3700), (20.0, 1.2, 17, 0)]
)
def test_one_gradient_far_too_long_moves_adam_and_then_stops_it_unless_it_is_cut(
    clip, divisor, moved, slow
):
    rule, theta, divisors = Adam(1.0, clip=clip), np.zeros(1), []
    state = OptimizerState(10**5, {"m": np.zeros(1), "v": np.array([1e3])})  # of gradients +-1
    for grad in (346.0, *[1.0, -1.0] * 2500):
        rule.update(theta, np.array([grad]), state, 1.0)
        divisors.append((1e-3 * state.arrays["v"][0]) ** 0.5)
    assert divisors[0] == pytest.approx(divisor, rel=0.02)
    assert sum(each > 2.0 for each in divisors) == pytest.approx(slow, rel=0.01)
    assert -theta[0] == pytest.approx(moved, rel=0.02)


def test_a_gradient_after_none_is_as_long_as_it_is():
    grads, theta = draw(1)
    grads[:3] = 0.0
    first = Adam(0.01), Adam(0.01, clip=1e-3)
    np.testing.assert_array_equal(*(run(rule, grads[:4], theta)[0] for rule in first))


@pytest.mark.equation("D61", "D62")
@given(seed=seeds, beta1=st.floats(0.0, 0.99), beta2=st.floats(0.0, 0.99), scale=st.floats(0.1, 9))
def test_ivon_is_newtons_rule_with_the_curvature_of_price_and_adam_beside_it(
    seed, beta1, beta2, scale
):
    rng, rule = np.random.default_rng(seed), IVON(0.1, beta1, beta2, trust=1e9, learned=Adam(0.3))
    likelihood = GaussianLikelihood(0.5, learn=True)
    estimator = Reparameterised(Model(MLP((1, 1)), likelihood=likelihood))
    theta, grads = estimator.init(rng), rng.standard_normal((4, 5))
    state, final_theta = rule.init(theta, estimator), theta.copy()
    for grad in grads:
        rule.update(final_theta, grad.copy(), state, 1.0, scale)
    mu, sigma, mean = theta[:2].copy(), softplus(theta[2:4]), 0.0
    for t, grad in enumerate(grads, start=1):
        d_sigma = scale * grad[2:4] / sigmoid(inverse_softplus(sigma))
        s, h = sigma**-2, (sigma * d_sigma + 1) / sigma**2  # Price
        r = 1 - beta2
        s = s + r * (h - s) + r**2 * (h - s) ** 2 / (2 * s)
        mean = beta1 * mean + (1 - beta1) * scale * grad[:2]
        mu, sigma = mu - 0.1 * mean / (1 - beta1**t) / s, s**-0.5
    np.testing.assert_allclose(final_theta[:2], mu, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(softplus(final_theta[2:4]), sigma, rtol=1e-9)
    learned, _ = run(Adam(0.3), grads[:, 4:], theta[4:])
    np.testing.assert_array_equal(final_theta[4:], learned)


@pytest.mark.equation("D62")
@given(seed=seeds, size=st.floats(-3, 6))
def test_no_noise_makes_a_precision_negative_and_no_step_leaves_the_trust_region(seed, size):
    rng, rule = np.random.default_rng(seed), IVON(1.0, trust=0.5)
    theta = np.concatenate([rng.standard_normal(5), rng.uniform(-6, 1, 5)])
    state = rule.init(theta)
    for grad in 10**size * rng.standard_normal((5, 10)):
        previous = theta.copy()
        rule.update(theta, grad, state, 1.0)
        old, new = softplus(previous[5:]), softplus(theta[5:])
        assert (new > 0).all()
        assert (new <= 2**0.5 * old * (1 + 1e-9)).all()
        assert 0.5 * np.sum(((theta - previous)[:5] / new) ** 2) <= 0.5 * (1 + 1e-9)


@pytest.mark.equation("D62")
def test_ivon_goes_to_the_optimum_of_a_parabola_whatever_its_scale():
    h, best = np.array([1e-4, 1.0, 1e4, 1e8]), np.array([300.0, -2.0, 0.5, 1e-3])
    theta, rule = np.repeat([0.0, -3.0], 4), IVON(0.3, 0.0, 0.7, trust=1e9)
    state = rule.init(theta)
    for _ in range(200):
        sigma = softplus(theta[4:])
        slopes = h * (theta[:4] - best), (h * sigma - 1 / sigma) * sigmoid(theta[4:])
        rule.update(theta, np.concatenate(slopes), state, 1.0)
    np.testing.assert_allclose(theta[:4], best, rtol=1e-9)
    np.testing.assert_allclose(softplus(theta[4:]), h**-0.5, rtol=1e-9)


@pytest.mark.equation("D62")
@pytest.mark.parametrize(("rate", "converges"), [(0.35, True), (0.38, False)])
def test_the_means_of_correlated_weights_converge_below_the_rate_that_is_told(rate, converges):
    hessian = 0.5 + 0.5 * np.eye(10)  # ten weights: 2 / (1 + 9 / 2) = 0.364
    theta, rule = np.concatenate([np.ones(10), np.full(10, -3.0)]), IVON(rate, 0.0, 0.0, trust=1e9)
    state = rule.init(theta)
    for _ in range(300):
        sigma = softplus(theta[10:])
        slopes = hessian @ theta[:10], (sigma - 1 / sigma) * sigmoid(theta[10:])
        rule.update(theta, np.concatenate(slopes), state, 1.0)
    np.testing.assert_allclose(softplus(theta[10:]), 1.0, rtol=1e-9)
    assert bool(np.abs(theta[:10]).max() < 1e-3) == converges
    assert bool(np.abs(theta[:10]).max() > 1e3) != converges


def test_ivon_needs_a_mean_field():
    estimator = Reparameterised(Model(MLP((1, 1))), FullRank())
    with pytest.raises(ValueError, match=r"IVON needs the posterior MeanField\(\); got FullRank"):
        IVON().init(np.zeros(9), estimator)


@pytest.mark.parametrize("rule", [Momentum(0.1), Adam(0.1)])
def test_subnormal_numbers_are_cleared_and_no_other_is_changed_by_it(rule, monkeypatch):
    tiny = np.finfo(np.float32).tiny

    def subnormal(*arrays: np.ndarray) -> int:
        return sum(int(((array != 0) & (np.abs(array) < tiny)).sum()) for array in arrays)

    def train(steps: int) -> tuple[np.ndarray, int]:
        grads = np.random.default_rng(5).standard_normal((steps, 5)).astype(np.float32)
        grads[20:, :2] = 0.0  # two weights behind a unit that dies
        grads[:, 2] = 0.0
        theta = np.array([1, 1, tiny / 2, 1, 1], np.float32)
        state = rule.init(theta)
        for grad in grads:
            rule.update(theta, grad, state, 1.0)
        return theta, subnormal(theta, *state.arrays.values())

    steps = 8 * optimizers.CLEARING_INTERVAL
    theta, n_subnormal = train(steps)
    assert n_subnormal == 0
    monkeypatch.setattr(optimizers, "CLEARING_INTERVAL", steps + 1)
    uncleared, n_subnormal = train(steps)
    assert n_subnormal == 3, "one mean and the decaying first moments of two"
    assert np.array_equal(np.where(np.abs(uncleared) < tiny, 0, uncleared), theta)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rule", [Momentum(1e-6), Adam(1e-6, epsilon=1e-12)])
def test_small_numbers_that_are_normal_are_not_cleared(rule, dtype, monkeypatch):
    """Weights, gradients and their squares far below the distance from 1 to the next number."""
    small = float(np.finfo(dtype).eps) / 1e3
    grads = np.random.default_rng(5).standard_normal((3 * optimizers.CLEARING_INTERVAL, 5))
    theta = np.full(5, small, dtype)
    ends = []
    for every in (optimizers.CLEARING_INTERVAL, len(grads) + 1):
        monkeypatch.setattr(optimizers, "CLEARING_INTERVAL", every)
        final_theta, state = run(rule, (small * grads).astype(dtype), theta)
        assert all((array != 0).all() for array in state.arrays.values())
        ends.append(final_theta)
    np.testing.assert_array_equal(*ends)


@pytest.mark.parametrize("rule", [SGD(0.1), Momentum(0.1), Adam(0.1)])
def test_the_factor_of_the_schedule_scales_the_step(rule):
    grads, theta = draw(1, steps=1)
    full = run(rule, grads, theta)[0] - theta
    assert np.allclose(run(rule, grads, theta, [0.25])[0] - theta, 0.25 * full, rtol=1e-12)
    assert np.array_equal(run(rule, grads, theta, [0.0])[0], theta)


def test_schedules_begin_at_one_and_end_where_they_say():
    assert Constant()(7.5, 10) == 1.0
    assert Cosine(0.1)(0.0, 10) == 1.0
    assert Cosine(0.1)(5.0, 10) == pytest.approx(0.55)
    assert Cosine(0.1)(10.0, 10) == pytest.approx(0.1)
    assert Cosine()(12.0, 10) == pytest.approx(0.0)
    assert Cosine()(0.0, 0) == 1.0, "of no epochs, too"


def test_a_schedule_that_goes_warns_where_it_is_made_and_names_what_to_use():
    with pytest.warns(FutureWarning, match=r"Use Cosine\(\)") as told:
        decay = StepDecay(every=3, factor=0.5)
    assert told[0].filename == __file__
    assert [decay(epoch, 10) for epoch in (0, 2.9, 3, 6)] == [1.0, 1.0, 0.5, 0.25]
    for name in ("every", "factor"):
        with pytest.warns(FutureWarning), pytest.raises(ValueError, match=name):
            StepDecay(**{name: -1})


A_SCHEDULE = "schedule must be an object such as Constant"
A_RULE = r"^optimizer must be .* such as Adam\(0.05\)"


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: SGD(0.0), ValueError, "learning_rate"),
        (lambda: SGD(float("nan")), ValueError, "learning_rate"),
        (lambda: Momentum(0.0), ValueError, "learning_rate"),
        (lambda: Momentum(0.1, 1.0), ValueError, "momentum"),
        (lambda: Adam(0.0), ValueError, "learning_rate"),
        (lambda: Adam(beta1=1.0), ValueError, "beta1"),
        (lambda: Adam(beta2=-0.1), ValueError, "beta2"),
        (lambda: Adam(epsilon=0.0), ValueError, "epsilon"),
        (lambda: Adam(clip=0.0), ValueError, "clip"),
        (lambda: IVON(beta2=1.0), ValueError, "beta2"),
        (lambda: IVON(trust=0.0), ValueError, "trust"),
        (lambda: IVON(learned=SGD()), TypeError, "learned"),
        (lambda: Cosine(1.0), ValueError, "final"),
        *((lambda rule=rule: rule(schedule=0.5), TypeError, A_SCHEDULE) for rule in RULES),
        *((lambda rule=rule: rule(schedule=Cosine), TypeError, A_SCHEDULE) for rule in RULES),
        (lambda: OPTIMIZER("optimizer", Adam), TypeError, A_RULE),
        (lambda: OPTIMIZER("optimizer", 0.01), TypeError, A_RULE),
    ],
)
def test_impossible_settings_are_refused_by_name(make, error, message):
    with pytest.raises(error, match=message):
        make()
