"""training: one minibatch convention, reproducible to the bit, and nothing lost on failure."""

import io
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import linear_problem, problems

from bbb_numpy import (
    MLP,
    SGD,
    Adam,
    Cosine,
    EarlyStopping,
    GaussianLikelihood,
    Model,
    Momentum,
    NonFiniteError,
    Reparameterised,
)
from bbb_numpy.objectives import geometric_kl_weights, proportional_kl_weights
from bbb_numpy.predictive import sample_functions
from bbb_numpy.training import fit, minibatches, start


def small(learn=True, hidden=(8,)):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((50, 2))
    y = np.sin(x.sum(axis=1, keepdims=True)) + 0.1 * rng.standard_normal((50, 1))
    return (
        Reparameterised(Model(MLP((2, *hidden, 1)), likelihood=GaussianLikelihood(0.5, learn))),
        x,
        y,
    )


def train(estimator, x, y, *, seed=1, dtype=np.float64, optimizer=None, **options):
    rng = np.random.default_rng(seed)
    optimizer = optimizer or Adam(1e-2)
    begin = start(estimator, rng, optimizer, dtype)
    return fit(estimator, begin, x, y, rng=rng, optimizer=optimizer, **options)


@pytest.mark.equation("D6", "K18")
@given(
    problem=problems(rows=st.integers(1, 9)),
    batch_size=st.integers(1, 10),
    shares=st.sampled_from([proportional_kl_weights, geometric_kl_weights]),
)
def test_the_minibatch_costs_of_an_epoch_sum_to_the_full_data_cost(problem, batch_size, shares):
    # contract 5, for values and gradients, a ragged last minibatch included
    p, batches = problem, minibatches(len(problem.x), batch_size)
    pi = shares([batch.stop - batch.start for batch in batches])
    parts = [
        p.estimator.value_and_grad(p.theta, p.noise, p.x[b], p.y[b], share)
        for b, share in zip(batches, pi, strict=True)
    ]
    value, grad = p.estimator.value_and_grad(p.theta, p.noise, p.x, p.y, 1.0)
    assert sum(v for v, _ in parts) == pytest.approx(value, rel=1e-11, abs=1e-10)
    sizes = sum(np.abs(g) for _, g in parts)
    assert np.all(np.abs(sum(g for _, g in parts) - grad) <= 1e-11 * (sizes + 1e-12))


@pytest.mark.equation("D6")
def test_a_kl_weight_of_one_over_n_for_every_minibatch_breaks_that_sum():
    estimator, x, y = linear_problem()
    rng = np.random.default_rng(0)
    theta = estimator.init(rng)
    noise = estimator.draw(rng, 1)
    whole, _ = estimator.value_and_grad(theta, noise, x, y, 1.0)
    wrong = sum(
        estimator.value_and_grad(theta, noise, x[b], y[b], 1 / len(x))[0]
        for b in minibatches(len(x), 16)
    )
    assert abs(wrong - whole) > 1.0


@given(rows=st.integers(1, 200), batch_size=st.integers(1, 50))
def test_minibatches_cover_every_row_once_and_only_the_last_is_short(rows, batch_size):
    batches = minibatches(rows, batch_size)
    covered = np.concatenate([np.arange(rows)[batch] for batch in batches])
    assert np.array_equal(covered, np.arange(rows))
    assert all(batch.stop - batch.start == batch_size for batch in batches[:-1])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_same_seed_and_dtype_give_the_same_bits(dtype):
    first = train(*small(), dtype=dtype, epochs=5, batch_size=16, samples=2)
    second = train(*small(), dtype=dtype, epochs=5, batch_size=16, samples=2)
    assert first.theta.dtype == dtype
    assert np.array_equal(first.theta, second.theta)
    assert first.column("objective").tolist() == second.column("objective").tolist()
    other = train(*small(), seed=2, dtype=dtype, epochs=5, batch_size=16, samples=2)
    assert not np.array_equal(first.theta, other.theta)


def test_the_global_random_state_is_neither_read_nor_changed():
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    train(*small(), epochs=2)
    assert np.array_equal(before, np.random.get_state()[1])  # noqa: NPY002


@pytest.mark.parametrize("optimizer", [SGD(1e-3), Momentum(1e-3), Adam(1e-2)])
def test_two_halves_are_bit_for_bit_one_whole(optimizer):
    estimator, x, y = small()
    whole = train(estimator, x, y, optimizer=optimizer, epochs=6, batch_size=20)
    rng = np.random.default_rng(1)
    half = start(estimator, rng, optimizer)
    for _ in range(2):
        half = fit(estimator, half, x, y, rng=rng, optimizer=optimizer, epochs=3, batch_size=20)
    assert np.array_equal(half.theta, whole.theta)
    assert half.optimizer_state.steps == whole.optimizer_state.steps == 18
    assert len(half.history) == 6


def test_the_state_passed_in_is_not_changed():
    estimator, x, y = small()
    rng = np.random.default_rng(0)
    begin = start(estimator, rng, Adam())
    kept = begin.copy()
    fit(estimator, begin, x, y, rng=rng, optimizer=Adam(), epochs=2)
    assert np.array_equal(begin.theta, kept.theta)
    assert begin.history == []
    assert begin.optimizer_state.steps == 0


def test_training_lowers_the_free_energy_and_learns_the_noise():
    estimator, x, y = small()
    training = train(estimator, x, y, epochs=600, optimizer=Adam(1e-2, schedule=Cosine()))
    energies = training.column("objective")
    assert energies[-50:].mean() < energies[:5].mean() - 20
    # D1: the best noise is the root mean square residual of the functions drawn from q
    f = sample_functions(estimator, training.theta, x, rng=np.random.default_rng(2), samples=500)
    assert np.exp(training.theta[-1]) == pytest.approx(np.sqrt(((y - f) ** 2).mean()), rel=0.03)
    assert np.allclose(energies, training.column("kl") + training.column("nll"), rtol=1e-9)
    rates = training.column("learning_rate")
    assert rates[0] == pytest.approx(1e-2, rel=1e-3)
    assert rates[-1] < 1e-6


def test_an_epoch_of_the_history_is_the_free_energy_at_the_thetas_of_its_steps():
    # learning rate so small that theta stands still: the epoch is the full-data cost
    estimator, x, y = linear_problem()
    training = train(
        estimator, x, y, epochs=1, batch_size=7, samples=400, optimizer=SGD(1e-12), shuffle=False
    )
    rng = np.random.default_rng(5)
    noise = estimator.draw(rng, 20_000)
    value, _ = estimator.value_and_grad(training.theta, noise, x, y, 1.0)
    assert training.history[0].objective == pytest.approx(value, rel=0.02)


def test_early_stopping_waits_for_its_patience_and_says_so():
    estimator, x, y = small()
    stop = EarlyStopping(patience=3, min_delta=1e9)
    training = train(estimator, x, y, epochs=100, early_stopping=stop)
    assert len(training.history) == 4
    assert training.stopped == "early stopping"


def test_with_validation_rows_the_best_theta_comes_back():
    estimator, x, y = small(learn=False)
    training = train(
        estimator,
        x[:30],
        y[:30],
        epochs=80,
        optimizer=Adam(0.1),
        early_stopping=EarlyStopping(patience=10),
        validation=(x[30:], y[30:]),
    )
    losses = training.column("validation")
    assert training.stopped == "early stopping"
    assert len(losses) < 80
    again = train(
        estimator,
        x[:30],
        y[:30],
        epochs=int(np.argmin(losses)) + 1,
        optimizer=Adam(0.1),
        early_stopping=EarlyStopping(patience=10),
        validation=(x[30:], y[30:]),
    )
    assert np.array_equal(again.theta, training.theta)
    assert again.stopped == ""
    for name, memory in training.optimizer_state.arrays.items():
        assert np.array_equal(memory, again.optimizer_state.arrays[name])


@pytest.mark.parametrize(
    ("optimizer", "cause"),
    [(SGD(1e3), "lower the learning rate"), (SGD(1e308), "theta non-finite")],
)
def test_a_free_energy_that_blows_up_names_the_place_and_keeps_the_last_finite_state(
    optimizer, cause
):
    estimator, x, y = small(learn=False)
    with pytest.raises(NonFiniteError, match=r"epoch \d+, step \d+") as caught:
        train(estimator, x, y, epochs=50, optimizer=optimizer)
    assert cause in str(caught.value)
    kept = caught.value.training
    assert np.isfinite(kept.theta).all()
    assert np.isfinite(kept.column("objective")).all()
    noise = estimator.draw(np.random.default_rng(9), 1)
    assert np.isfinite(estimator.value_and_grad(kept.theta, noise, x, y)[0])
    assert (
        fit(
            estimator, kept, x, y, rng=np.random.default_rng(0), optimizer=optimizer, epochs=0
        ).theta
        is not kept.theta
    )


@pytest.mark.parametrize("epochs", [1, 3])
def test_a_blow_up_in_the_last_update_is_found_and_the_state_before_it_is_kept(epochs):
    # one step an epoch: theta of the last epoch is finite, its free energy is not
    estimator, x, y = small(learn=False)
    with pytest.raises(NonFiniteError) as caught:
        train(estimator, x, y, epochs=epochs, batch_size=50, optimizer=SGD(1e200))
    kept = caught.value.training
    assert len(kept.history) == 0
    noise = estimator.draw(np.random.default_rng(9), 1)
    assert np.isfinite(estimator.value_and_grad(kept.theta, noise, x, y)[0])


class InterruptedDraw(Reparameterised):
    """Presses Ctrl-C in the middle of the third epoch."""

    calls = 0

    def draw(self, rng, samples, dtype=np.float64, work=None):
        InterruptedDraw.calls += 1
        if InterruptedDraw.calls == 9:
            raise KeyboardInterrupt
        return super().draw(rng, samples, dtype, work)


def test_ctrl_c_leaves_the_state_after_the_last_finished_epoch():
    estimator, x, y = small()
    InterruptedDraw.calls = 0
    broken = InterruptedDraw(estimator.model, estimator.posterior)
    training = train(broken, x, y, epochs=10, batch_size=16)  # four steps an epoch
    assert training.stopped == "interrupted"
    assert len(training.history) == 2
    assert np.array_equal(training.theta, train(estimator, x, y, epochs=2, batch_size=16).theta)
    assert training.optimizer_state.steps == 8


def test_the_bar_is_shown_only_to_a_person(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    for stream, shown in ((io.StringIO(), False), (Terminal(), True)):
        monkeypatch.setattr(sys, "stderr", stream)
        train(*small(), epochs=2)
        assert bool(stream.getvalue()) is shown
    quiet = Terminal()
    monkeypatch.setattr(sys, "stderr", quiet)
    train(*small(), epochs=2, progress=False)
    assert quiet.getvalue() == ""


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epochs": -1}, "epochs must be a whole number >= 0; got -1"),
        ({"batch_size": 0}, "batch_size must be a whole number >= 1; got 0"),
        ({"batch_size": 2.5}, "batch_size must be a whole number >= 1; got 2.5"),
        ({"samples": 0}, "samples must be a whole number >= 1; got 0"),
        ({"x": np.zeros((50, 3))}, r"x must have shape \(rows, 2\)"),
        ({"y": np.zeros(50)}, r"y must have shape \(rows, 1\).*got \(50,\)"),
        ({"y": np.zeros((49, 1))}, "same number of rows"),
        ({"x": np.zeros((0, 2)), "y": np.zeros((0, 1))}, "same number of rows, >= 1; got 0, 0"),
        ({"x": np.full((50, 2), np.nan)}, "x contains nan or infinity"),
        ({"y": np.full((50, 1), np.inf)}, "y contains nan or infinity"),
        ({"x": np.full((50, 2), 1e60), "dtype": np.float32}, "x contains .* as float32"),
        ({"validation": (np.zeros((3, 1)), np.zeros((3, 1)))}, r"validation x must have shape"),
    ],
)
def test_bad_input_is_refused_by_name(change, message):
    estimator, x, y = small()
    options = {"x": x, "y": y, "epochs": 1, **change}
    with pytest.raises(ValueError, match=message):
        train(estimator, **options)


def test_a_theta_of_another_network_is_refused():
    estimator, x, y = small()
    other, _, _ = small(hidden=(4,))
    begin = start(other, np.random.default_rng(0), Adam())
    with pytest.raises(ValueError, match=r"theta has shape \(35,\), the estimator needs \(67,\)"):
        fit(estimator, begin, x, y, rng=np.random.default_rng(0))


@pytest.mark.parametrize("value", ["10", None, True])
def test_sizes_that_are_no_numbers_are_refused_by_name(value):
    estimator, x, y = small()
    with pytest.raises(TypeError, match="epochs must be a whole number >= 0"):
        train(estimator, x, y, epochs=value)


@pytest.mark.parametrize(
    ("settings", "name"), [({"patience": 0}, "patience"), ({"min_delta": -1.0}, "min_delta")]
)
def test_impossible_stopping_rules_are_refused(settings, name):
    with pytest.raises(ValueError, match=name):
        EarlyStopping(**settings)


def test_an_objective_on_the_estimator_is_what_training_minimises():
    from bbb_numpy.objectives import likelihood_term

    estimator, x, y = small()
    training = train(replace(estimator, objective=likelihood_term), x, y, epochs=3)
    assert np.allclose(training.column("objective"), training.column("nll"))
