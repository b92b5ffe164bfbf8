"""kl_weights: however the KL term is divided, an epoch pays for all of it, times its warm-up."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import problems

from bbb_numpy.model.kl_weights import (
    CyclicalWarmUp,
    LinearWarmUp,
    NoWarmUp,
    geometric_kl_weights,
    proportional_kl_weights,
)
from bbb_numpy.model.objectives import FreeEnergy
from bbb_numpy.training.stopping import row_slices

SHARES = [proportional_kl_weights, geometric_kl_weights]
WARM_UPS = [
    NoWarmUp(),
    LinearWarmUp(0.5),
    LinearWarmUp(1.0),
    CyclicalWarmUp(1, 0.5),
    CyclicalWarmUp(4, 0.5),
    CyclicalWarmUp(3, 1.0),
]


@pytest.mark.equation("D6", "D24", "K18")
@pytest.mark.parametrize("shares", SHARES)
@pytest.mark.parametrize("warm_up", WARM_UPS, ids=str)
@given(
    problem=problems(rows=st.integers(1, 9), scales=st.sampled_from([0.5, 2.0])),
    batch_size=st.integers(1, 10),
    epochs=st.integers(1, 9),
    data=st.data(),
)
def test_the_minibatch_costs_of_an_epoch_add_up_to_the_full_data_cost_at_its_beta(
    shares, warm_up, problem, batch_size, epochs, data
):
    # contract 5, for values and gradients, a ragged last minibatch included
    epoch = data.draw(st.integers(0, epochs - 1))
    p, batches = problem, row_slices(len(problem.x), batch_size)
    beta, pi = warm_up(epoch, epochs), shares([batch.stop - batch.start for batch in batches])
    parts = [
        p.estimator.value_and_grad(p.theta, p.noise, p.x[b], p.y[b], beta * share)
        for b, share in zip(batches, pi, strict=True)
    ]
    tempered = p.with_objective(FreeEnergy(beta))._replace(kl_weight=1.0)
    value, grad, _ = tempered.value_and_grad(p.theta)
    sizes = sum(abs(v) for v, _, _ in parts) + 10, sum(np.abs(g) for _, g, _ in parts) + 10
    assert abs(sum(v for v, _, _ in parts) - value) <= 1e-12 * sizes[0]
    assert np.all(np.abs(sum(g for _, g, _ in parts) - grad) <= 1e-12 * sizes[1])


@pytest.mark.parametrize("sizes", [[], [0], [0, 0], [3, -1]])
def test_without_rows_nobody_can_pay(sizes):
    with pytest.raises(ValueError, match="batch_sizes must "):
        proportional_kl_weights(sizes)


@pytest.mark.equation("D6", "D45")
def test_a_minibatch_of_weight_0_pays_nothing():
    assert proportional_kl_weights([3, 0, 1]).tolist() == [0.75, 0.0, 0.25]


@pytest.mark.equation("D6")
@given(sizes=st.lists(st.integers(1, 50), min_size=1, max_size=20))
@pytest.mark.parametrize("shares", SHARES)
def test_the_shares_of_an_epoch_are_positive_and_sum_to_one(shares, sizes):
    pi = shares(sizes)
    assert len(pi) == len(sizes)
    assert np.all(pi > 0)
    assert pi.sum() == pytest.approx(1.0, rel=1e-14)


@pytest.mark.equation("D6", "K18")
def test_shares_are_rows_over_all_rows_or_halve_each_time():
    assert proportional_kl_weights([1] * 8).tolist() == [1 / 8] * 8
    assert proportional_kl_weights([32, 32, 16]).tolist() == [0.4, 0.4, 0.2]
    m = 5
    blundell = [2.0 ** (m - i) / (2.0**m - 1) for i in range(1, m + 1)]
    assert np.allclose(geometric_kl_weights([10] * m), blundell, rtol=1e-15)


@pytest.mark.equation("D24")
@pytest.mark.parametrize("warm_up", WARM_UPS, ids=str)
@pytest.mark.parametrize("epochs", [1, 2, 3, 7, 10, 100, 101])
def test_every_factor_is_positive_at_most_one_and_one_in_the_last_epoch(warm_up, epochs):
    beta = np.array([warm_up(epoch, epochs) for epoch in range(epochs)])
    assert np.all(beta > 0)
    assert np.all(beta <= 1)
    assert beta[-1] == 1
    assert all(type(warm_up(epoch, epochs)) is float for epoch in range(epochs))


@pytest.mark.equation("D24")
@given(share=st.floats(0.01, 1.0), epochs=st.integers(1, 300))
def test_a_linear_warm_up_rises_in_equal_steps_reaches_one_and_stays(share, epochs):
    beta = np.array([LinearWarmUp(share)(epoch, epochs) for epoch in range(epochs)])
    ramp = max(share * epochs, 1.0)
    assert beta[0] == pytest.approx(1 / ramp)
    assert np.all(beta[np.arange(1, epochs + 1) >= ramp] == 1)
    rising = np.diff(beta)[np.arange(2, epochs + 1) <= ramp]
    assert np.allclose(rising, 1 / ramp, rtol=1e-9)
    assert np.all(np.diff(beta) >= 0)


@pytest.mark.equation("D24")
@pytest.mark.parametrize(("cycles", "epochs"), [(2, 20), (4, 40), (3, 31), (5, 5)])
def test_a_cyclical_warm_up_starts_the_ramp_again_in_every_cycle(cycles, epochs):
    beta = [CyclicalWarmUp(cycles, 0.5)(epoch, epochs) for epoch in range(epochs)]
    length = epochs // cycles
    for cycle in range(cycles):
        ramp = beta[cycle * length : (cycle + 1) * length]
        assert ramp == [LinearWarmUp(0.5)(epoch, length) for epoch in range(length)]
    assert beta[cycles * length :] == [1.0] * (epochs - cycles * length)


SHARE, CYCLES = "share must be a number > 0 and <= 1; got", "cycles must be a whole number >= 1"


@pytest.mark.parametrize(
    ("make", "value", "message"),
    [
        *((LinearWarmUp, share, SHARE) for share in (0.0, -1.0, 1.1, np.nan, np.inf)),
        (lambda share: CyclicalWarmUp(2, share), 1.1, SHARE),
        *((CyclicalWarmUp, cycles, CYCLES) for cycles in (0, 1.5, "2")),
    ],
)
def test_impossible_warm_ups_are_refused(make, value, message):
    with pytest.raises((TypeError, ValueError), match=message):
        make(value)
