"""training: one minibatch convention, reproducible to the bit, and nothing lost on failure."""

import io
import pickle
import re
import sys
from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from problems import exact_posterior, linear_problem

from bbb_numpy import (
    MLP,
    SGD,
    Adam,
    CategoricalLikelihood,
    ClosedFormKL,
    Cosine,
    EarlyStopping,
    FullRank,
    GaussianLikelihood,
    GaussianPrior,
    MeanField,
    Model,
    Momentum,
    NonFiniteError,
    Reparameterised,
    ScaleMixturePrior,
    StickingTheLanding,
)
from bbb_numpy.evaluation.predictive import sample_functions
from bbb_numpy.model.kl_weights import (
    CyclicalWarmUp,
    LinearWarmUp,
    geometric_kl_weights,
    proportional_kl_weights,
)
from bbb_numpy.model.objectives import free_energy
from bbb_numpy.numeric.elementary import softplus
from bbb_numpy.progress import tqdm
from bbb_numpy.training import Recipe, fit, loop, start
from bbb_numpy.training.recipe import Rows
from bbb_numpy.training.stopping import Monitor, ValidationLoss


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
    initial = start(estimator, rng, optimizer, dtype)
    names = {"validation", "progress", "sample_weight"} & options.keys()
    fit_options = {name: options.pop(name) for name in names}
    return fit(estimator, initial, x, y, Recipe(optimizer, **options), rng=rng, **fit_options)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_same_seed_and_dtype_give_the_same_bits(dtype):
    first = train(*small(), dtype=dtype, epochs=5, batch_size=16, samples=2)
    second = train(*small(), dtype=dtype, epochs=5, batch_size=16, samples=2)
    assert first.theta.dtype == dtype
    assert np.array_equal(first.theta, second.theta)
    assert first.column("objective").tolist() == second.column("objective").tolist()
    of_another_seed = train(*small(), seed=2, dtype=dtype, epochs=5, batch_size=16, samples=2)
    assert not np.array_equal(first.theta, of_another_seed.theta)


@pytest.mark.parametrize("optimizer", [SGD(1e-3), Momentum(1e-3), Adam(1e-2)])
def test_two_halves_are_bit_for_bit_one_whole(optimizer):
    estimator, x, y = small()
    uninterrupted = train(estimator, x, y, optimizer=optimizer, epochs=6, batch_size=20)
    rng = np.random.default_rng(1)
    half = start(estimator, rng, optimizer)
    for _ in range(2):
        half = fit(estimator, half, x, y, Recipe(optimizer, epochs=3, batch_size=20), rng=rng)
    assert np.array_equal(half.theta, uninterrupted.theta)
    assert half.optimizer_state.steps == uninterrupted.optimizer_state.steps == 18
    assert len(half.history) == 6


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


def test_with_validation_rows_the_best_theta_comes_back():
    estimator, x, y = small(learn=False)
    options = {"optimizer": Adam(0.1), "validation": (x[30:], y[30:])}
    stop = EarlyStopping(patience=10)
    training = train(estimator, x[:30], y[:30], epochs=80, early_stopping=stop, **options)
    losses = training.column("validation")
    assert training.stopped == "early stopping"
    assert len(losses) < 80
    for rule in (None, stop):  # the last state, or the best: both that one
        options |= {"epochs": int(np.argmin(losses)) + 1, "early_stopping": rule}
        best = train(estimator, x[:30], y[:30], **options)
        assert np.array_equal(best.theta, training.theta)
        assert best.stopped == ""
        for name, memory in training.optimizer_state.arrays.items():
            assert np.array_equal(memory, best.optimizer_state.arrays[name])


def test_without_them_the_last_theta_stays_though_an_earlier_one_was_better():
    estimator, x, y = small()
    training = train(estimator, x, y, epochs=9, early_stopping=EarlyStopping(3, min_delta=1e9))
    assert len(training.history) == 4
    assert np.array_equal(training.theta, train(estimator, x, y, epochs=4).theta)


@pytest.mark.parametrize(
    ("optimizer", "cause"),
    [(SGD(1e3), "lower the learning rate"), (SGD(1e308), "theta non-finite")],
)
def test_a_free_energy_that_blows_up_names_the_place_and_keeps_a_finite_state(optimizer, cause):
    estimator, x, y = small(learn=False)
    with pytest.raises(NonFiniteError, match=rf"epoch \d+, step \d+.*{cause}") as caught:
        train(estimator, x, y, epochs=50, optimizer=optimizer)
    finite_state = caught.value.training
    noise = estimator.draw(np.random.default_rng(9), 1)
    assert np.isfinite(estimator.value_and_grad(finite_state.theta, noise, x, y)[0])
    recipe = Recipe(optimizer, epochs=0)
    resumed = fit(estimator, finite_state, x, y, recipe, rng=np.random.default_rng(0))
    assert resumed.theta is not finite_state.theta


@pytest.mark.parametrize(
    ("target", "scale", "cause"),
    [
        (1e200, 1.0, "the likelihood overflowed"),
        (1.0, 1e-150, "log q(w) or log P(w) overflowed"),
    ],
)
def test_the_likely_cause_is_the_term_that_is_not_finite(target, scale, cause):
    # the square of a residual of 1e200, or that of a weight in units of 1e-150 and more of them
    model = Model(MLP((1, 1)), GaussianPrior(scale), GaussianLikelihood(1.0))
    estimator = Reparameterised(model, MeanField(1e10, -1.0, 1e10))
    with pytest.raises(NonFiniteError, match=re.escape(f"Likely cause: {cause}")):
        train(estimator, np.zeros((4, 1)), np.full((4, 1), target), epochs=1)


def test_a_failure_in_another_process_arrives_with_its_state():
    error = NonFiniteError("the value is nan", start(small()[0], np.random.default_rng(0), Adam()))
    error.add_note("in a process that trains")
    unpickled = pickle.loads(pickle.dumps(error))
    assert (type(unpickled), str(unpickled)) == (NonFiniteError, "the value is nan")
    assert unpickled.__notes__ == error.__notes__
    assert np.array_equal(unpickled.training.theta, error.training.theta)


class InterruptedDraw(Reparameterised):
    """Presses Ctrl-C in the middle of the third epoch."""

    calls = 0

    def fill(self, rng, noise):
        InterruptedDraw.calls += 1
        if InterruptedDraw.calls == 9:
            raise KeyboardInterrupt
        super().fill(rng, noise)


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

    for stream, is_terminal in ((io.StringIO(), False), (Terminal(), True)):
        monkeypatch.setattr(sys, "stderr", stream)
        train(*small(), epochs=2)
        assert bool(stream.getvalue()) is is_terminal


def test_the_bar_says_how_many_nats_a_row_costs(monkeypatch, capsys):
    monkeypatch.setattr(loop, "tqdm", partial(tqdm, mininterval=0))  # drawn in every epoch
    estimator, x, y = small()
    trained = train(estimator, x, y, epochs=1, progress=True)
    assert f"{trained.history[0].objective / 50:.4g} nats per row" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("verbose", "printed_epochs"), [(0, []), (1, [1, 2, 3, 4, 5]), (2, [2, 4])]
)
def test_every_so_many_epochs_the_loss_is_printed(verbose, printed_epochs, capsys):
    estimator, x, y = small()
    rng, recipe = np.random.default_rng(0), Recipe(epochs=5)
    initial = start(estimator, rng, recipe.optimizer)
    trained = loop.train(estimator, initial, Rows(x, y), recipe, rng, verbose=verbose)
    losses = trained.column("objective")
    assert capsys.readouterr().out.splitlines() == [
        f"Epoch {epoch}, loss = {losses[epoch - 1]:.8g}" for epoch in printed_epochs
    ]


WRONG_ARGUMENTS = [
    (start, {"estimator": "BBB"}, "estimator must be"),
    (start, {"rng": 0}, "rng must be"),
    (start, {"optimizer": 0.01}, "optimizer must be"),
    (fit, {"estimator": "BBB"}, "estimator must be"),
    (fit, {"training": None}, "training must be"),
    (fit, {"recipe": Adam()}, "recipe must be"),
    (fit, {"rng": 0}, "rng must be"),
    (fit, {"progress": 1}, "progress must be"),
    (fit, {"validation": list(small()[1:])}, r"validation must be a pair \(x, y\)"),
    (fit, {"validation": small()[1:2]}, r"validation must be a pair \(x, y\)"),
]


@pytest.mark.parametrize(("function", "wrong", "message"), WRONG_ARGUMENTS)
def test_a_wrong_argument_is_refused_by_its_name(function, wrong, message):
    estimator, x, y = small()
    rng, recipe = np.random.default_rng(0), Recipe(epochs=1)
    right = {"estimator": estimator, "rng": rng, "optimizer": recipe.optimizer}
    if function is fit:
        initial = start(**right)
        right = {"estimator": estimator, "training": initial, "x": x, "y": y}
        right |= {"recipe": recipe, "rng": rng, "validation": (x, y)}
    function(**right)
    with pytest.raises(TypeError, match=f"^{message}"):
        function(**(right | wrong))


SHARES = "must return 4 shares >= 0 that sum to 1; got"


@pytest.mark.equation("D6", "D24")
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": np.zeros((50, 3))}, r"x must have shape \(any, 2\)"),
        ({"y": np.zeros(50)}, r"y must have shape \(50, 1\); got \(50,\)"),
        ({"y": np.zeros((49, 1))}, r"y must have shape \(50, 1\); got \(49, 1\)"),
        ({"x": np.zeros((0, 2)), "y": np.zeros((0, 1))}, "x must hold 1 or more rows"),
        ({"x": np.full((50, 2), np.nan)}, "x contains nan or infinity"),
        ({"y": np.full((50, 1), np.inf)}, "y contains nan or infinity"),
        ({"x": np.full((50, 2), 1e60), "dtype": np.float32}, "x contains .* as float32"),
        ({"validation": (np.zeros((3, 1)), np.zeros((3, 1)))}, r"validation x must have shape"),
        ({"kl_weights": lambda sizes: np.ones(len(sizes))}, SHARES),
        ({"kl_weights": lambda sizes: [np.nan] * 4}, SHARES),
        ({"kl_weights": lambda sizes: [-1.0, 1.0, 0.5, 0.5]}, SHARES),
        ({"warm_up": lambda epoch, epochs: -5.0}, "value of warm_up"),
        ({"warm_up": lambda epoch, epochs: None}, "value of warm_up"),
        *(
            (
                {"optimizer": SGD(1e-3, lambda epoch, epochs, f=f: f)},
                "the value of schedule.* must be",
            )
            for f in ("0.5", None, np.nan, np.inf, -1.0, 1j, np.ones(2))
        ),
    ],
)
def test_bad_input_is_refused_by_name(change, message):
    estimator, x, y = small()
    options = {"x": x, "y": y, "epochs": 1, "batch_size": 16, **change}
    with pytest.raises((TypeError, ValueError), match=message):
        train(estimator, **options)


@pytest.mark.parametrize("make", [np.float16, Fraction, np.array, np.float32])
def test_factors_of_any_type_train_alike(make):
    """Of a NumPy half, times a rate, three digits would be left."""

    def trained(half):
        factors = {"warm_up": lambda *_: half, "optimizer": SGD(1e-3, lambda *_: half)}
        return train(*small(), epochs=1, batch_size=16, **factors).theta

    np.testing.assert_array_equal(trained(make(0.5)), trained(0.5))


@pytest.mark.equation("D6", "K43", "K44")
@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize("shares", [proportional_kl_weights, geometric_kl_weights])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_fit_is_the_loop_written_out(dtype, shares, shuffle):
    # row order first, then noise; the schedule by fractions of an epoch; sums over minibatches
    estimator, x, y = small()
    epochs, steps, optimizer = 3, 4, Adam(1e-2, schedule=Cosine())
    training = train(
        estimator, x, y, dtype=dtype, optimizer=optimizer, epochs=epochs, batch_size=16,
        samples=2, shuffle=shuffle, kl_weights=shares,
    )  # fmt: skip
    rng, pi = np.random.default_rng(1), shares([16, 16, 16, 2])
    x, y = x.astype(dtype), y.astype(dtype)
    initial = start(estimator, rng, optimizer, dtype)
    theta, state = initial.theta, initial.optimizer_state
    for epoch in range(epochs):
        order = rng.permutation(len(x)) if shuffle else np.arange(len(x))
        kl = nll = factor = 0.0
        for step in range(steps):
            rows = order[16 * step : 16 * (step + 1)]
            share, noise = float(pi[step]), estimator.draw(rng, 2, dtype=dtype)
            _, grad, terms = estimator.value_and_grad(theta, noise, x[rows], y[rows], share)
            factor = optimizer.schedule(epoch + step / steps, epochs)
            optimizer.update(theta, grad, state, factor)
            kl += share * float((terms.posterior - terms.prior).mean())
            nll -= float(terms.likelihood.mean())
        measured, digits = training.history[epoch], 1e3 * float(np.finfo(dtype).eps)
        assert measured.kl == pytest.approx(kl, rel=digits)
        assert measured.nll == pytest.approx(nll, rel=digits)
        assert measured.objective == pytest.approx(kl + nll, rel=digits)
        assert measured.learning_rate == pytest.approx(1e-2 * factor, rel=1e-15)
    assert np.array_equal(training.theta, theta)


@pytest.mark.parametrize(("epochs", "numbers"), [(1, ValidationLoss.BLOCK_NUMBERS), (2, 1)])
@pytest.mark.parametrize("weights", [(), (np.linspace(0.5, 2.0, 20),)])
def test_the_validation_loss_is_the_mean_nll_per_row_under_the_noise_drawn_first(
    epochs, numbers, weights, monkeypatch
):
    monkeypatch.setattr(
        ValidationLoss, "BLOCK_NUMBERS", numbers
    )  # of one block, which is one row at least
    estimator, x, y = small()
    training = train(
        estimator, x[:30], y[:30], epochs=epochs, validation=(x[30:], y[30:], *weights)
    )
    rng = np.random.default_rng(1)
    start(estimator, rng, Adam())
    w = estimator.weights(training.theta, estimator.draw(rng, 32))
    f, noise = estimator.model.predict(w, x[30:]), np.exp(training.theta[-1])
    nll = 0.5 * ((y[30:] - f) / noise) ** 2 + np.log(noise) + 0.5 * np.log(2 * np.pi)
    mean = np.average(nll.mean(axis=(0, 2)), weights=weights[0] if weights else None)
    assert training.history[-1].validation == pytest.approx(mean, rel=1e-12)


@pytest.mark.parametrize(
    ("min_delta", "values", "stops"),
    [
        (0.1, (3.0, 2.95, 2.0, 1.95, 1.95), [False, False, False, False, True]),
        (0.0, (1.0, 1.0, 1.0), [False, False, True]),
        (0.0, (np.nan, np.nan), [False, True]),
        (0.0, (np.inf, 1.0, np.nan, np.nan), [False, False, False, True]),
    ],
)
def test_a_fall_that_counts_starts_the_waiting_anew(min_delta, values, stops):
    state = start(small()[0], np.random.default_rng(0), Adam())
    monitor = Monitor(EarlyStopping(patience=2, min_delta=min_delta), state)
    assert [monitor.should_stop(value, state) for value in values] == stops


@pytest.mark.parametrize(("fails_at", "kept_epochs"), [(8, 1), (9, 2), (20, 4)])
def test_the_state_kept_is_the_last_whose_own_free_energy_was_seen_to_be_finite(
    fails_at, kept_epochs
):
    # four steps an epoch: step 8 measures the state after two epochs, step 9 a later one; step 20
    # is the look at the last update
    estimator, x, y = small()
    calls = iter(range(100))

    def objective(terms, kl_weight):
        value, cotangents = free_energy(terms, kl_weight)
        return (np.nan if next(calls) == fails_at else value), cotangents

    with pytest.raises(NonFiniteError) as caught:
        train(replace(estimator, objective=objective), x, y, epochs=5, batch_size=16)
    expected = train(estimator, x, y, epochs=kept_epochs, batch_size=16)
    assert np.array_equal(caught.value.training.theta, expected.theta)
    assert len(caught.value.training.history) == kept_epochs


@pytest.mark.equation("D24")
@pytest.mark.parametrize("warm_up", [LinearWarmUp(0.5), CyclicalWarmUp(2, 1.0)])
@pytest.mark.parametrize("shares", [proportional_kl_weights, geometric_kl_weights])
def test_an_epoch_in_its_warm_up_costs_beta_times_the_kl_and_all_of_the_likelihood(warm_up, shares):
    # learning rate so small that theta stands still
    estimator, x, y = small()
    estimator = ClosedFormKL(estimator.model, estimator.posterior)
    training = train(
        estimator, x, y, epochs=6, batch_size=16, optimizer=SGD(1e-15), warm_up=warm_up,
        kl_weights=shares,
    )  # fmt: skip
    beta = [warm_up(epoch, 6) for epoch in range(6)]
    assert len(set(beta)) > 2
    kl, nll = training.column("kl"), training.column("nll")
    assert np.allclose(kl, kl[0], rtol=1e-9)  # at full weight, whatever the warm-up
    assert np.allclose(training.column("objective"), np.multiply(beta, kl) + nll, rtol=1e-12)


@pytest.mark.equation("D45")
def test_minibatches_of_rows_with_weights_share_the_prior_by_their_weights():
    # three minibatches of two rows each, their weights 3, 5 and 4
    estimator, x, y = small()
    sizes_seen = []

    def shares(sizes):
        sizes_seen.append(list(sizes))
        return proportional_kl_weights(sizes)

    v = np.array([1.0, 2.0, 0.0, 5.0, 0.5, 3.5])
    options = {"epochs": 2, "batch_size": 2, "shuffle": False, "kl_weights": shares}
    train(estimator, x[:6], y[:6], sample_weight=v, **options)
    assert sizes_seen[0] == [2, 2, 2], "before the rows are looked at"
    assert sizes_seen[1:] == [[3.0, 5.0, 4.0]] * 2


@pytest.mark.equation("D45")
def test_a_minibatch_without_weight_changes_no_sum():
    estimator, x, y = small()
    v = np.array([1.0, 2.0, 0.0, 0.0])
    options = {"epochs": 1, "batch_size": 2, "shuffle": False, "optimizer": SGD(1e-30)}
    with_none, without = (
        train(estimator, x[:rows], y[:rows], sample_weight=v[:rows], **options) for rows in (4, 2)
    )
    for column in ("objective", "kl", "nll"):
        assert np.allclose(with_none.column(column), without.column(column), rtol=1e-12)


@pytest.mark.equation("D28", "M1")
def test_training_starts_where_the_posterior_was_packed():
    estimator, x, y = linear_problem()
    exact, posterior = exact_posterior(estimator, x, y), FullRank()
    landing = StickingTheLanding(estimator.model, posterior)
    packed = posterior.pack(exact.mean, np.linalg.inv(exact.precision))
    initial = start(landing, np.random.default_rng(0), SGD(1e-3), np.float64, packed)
    recipe = Recipe(SGD(1e-3), epochs=3, batch_size=40)
    trained = fit(landing, initial, x, y, recipe, rng=np.random.default_rng(1))
    assert np.allclose(trained.theta, initial.theta, rtol=1e-9)
    assert np.allclose(trained.column("objective"), -exact.log_evidence, rtol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_variational_start_replaces_the_posteriors_numbers_alone(dtype):
    model = Model(MLP((2, 1)), ScaleMixturePrior(learn=True), GaussianLikelihood(0.5, learn=True))
    estimator, mean, deviation = Reparameterised(model), np.arange(3.0), np.full(3, 0.25)
    packed = MeanField().pack(mean, deviation)
    initial = start(estimator, np.random.default_rng(0), Adam(), dtype, packed)
    plain = start(estimator, np.random.default_rng(0), Adam(), dtype)
    assert initial.theta.dtype == dtype
    assert np.allclose(initial.theta[:3], mean)
    assert np.allclose(softplus(initial.theta[3:6]), 0.25, rtol=1e-5)
    assert np.array_equal(initial.theta[6:], plain.theta[6:])
    for wrong in (np.zeros(10), np.zeros(5), np.zeros((6, 1))):
        with pytest.raises(ValueError, match=r"variational must have shape \(6\)"):
            start(estimator, np.random.default_rng(0), Adam(), dtype, wrong)


@pytest.mark.equation("D14")
def test_targets_that_the_likelihood_cannot_have_are_refused_before_training():
    estimator = Reparameterised(Model(MLP((2, 2)), likelihood=CategoricalLikelihood()))
    x, y = np.zeros((6, 2)), np.eye(2)[np.zeros(6, int)]
    wrong = y.copy()
    wrong[3, 1] = 1.0
    with pytest.raises(ValueError, match="row 3 sums to 2"):
        train(estimator, x, wrong, epochs=1)
    with pytest.raises(ValueError, match="row 3 sums to 2"):
        train(estimator, x, y, epochs=1, validation=(x, wrong))
