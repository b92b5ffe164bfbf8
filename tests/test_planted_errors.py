"""What planted errors showed to be untested: each of these fails on one that survived the rest."""

import csv
import io
import sys
from dataclasses import replace

import numpy as np
import pytest
from problems import linear_problem
from test_main import data  # noqa: F401
from test_main import fit as fit_file
from test_optimizers import draw as draw_grads
from test_optimizers import run
from test_training import InterruptedDraw, small, train

import bbb_numpy.__main__ as command_line
from bbb_numpy import (
    MLP,
    Adam,
    Cosine,
    EarlyStopping,
    GaussianLikelihood,
    MeanField,
    Momentum,
    NonFiniteError,
    gradcheck,
    numerics,
    predictive,
)
from bbb_numpy.__main__ import main
from bbb_numpy.checkpoint import load
from bbb_numpy.network import forward, gates, vjp
from bbb_numpy.numerics import BLOCK
from bbb_numpy.kl_weights import geometric_kl_weights, proportional_kl_weights
from bbb_numpy.objectives import free_energy
from bbb_numpy.tables import read_csv
from bbb_numpy.training import _Watch, fit, start
from bbb_numpy.workspace import LogDensities, Workspace


def test_a_uniform_number_of_zero_gives_a_finite_normal_number():
    class Zeros:
        def random(self, dtype, out):
            out.fill(0.0)

    assert not numerics.standard_normal(Zeros(), np.empty(2048, np.float32)).any()


@pytest.mark.equation("K1", "D11")
def test_the_last_of_an_odd_count_is_normal_too():
    seeds, empty = range(400), np.empty(1025, np.float32)
    last = [numerics.standard_normal(np.random.default_rng(seed), empty)[-1] for seed in seeds]
    assert abs(np.mean(last)) < 4 / np.sqrt(400)
    assert abs(np.var(last) - 1) < 4 * np.sqrt(2 / 400)


@pytest.mark.equation("D11")
@pytest.mark.parametrize("half", [BLOCK - 1, BLOCK, BLOCK + 1])
def test_every_pair_is_transformed_whatever_the_size_of_the_blocks(half):
    z = numerics.standard_normal(np.random.default_rng(1), np.empty(2 * half, np.float32))
    u, v = np.split(np.random.default_rng(1).random(2 * half, np.float32).astype(float), 2)
    radius = np.sqrt(-2 * np.log(1 - u))
    expected = np.concatenate([radius * np.sin(2 * np.pi * v), radius * np.cos(2 * np.pi * v)])
    assert np.abs(z - expected).max() < 1e-5


def test_a_buffer_of_the_same_shape_and_another_dtype_is_made_again():
    work = Workspace()
    work.array("a", (2, 3), np.float64)
    assert work.array("a", (2, 3), np.float32).dtype == np.float32


def test_views_of_the_same_array_are_made_again_for_another_layout():
    work, a = Workspace(), np.zeros((1, 7))
    assert len(work.views("v", a, MLP((2, 1, 2)).layers)) == 2
    assert len(work.views("v", a, MLP((6, 1)).layers)) == 1


@pytest.mark.equation("K32", "K34", "K39", "K41")
def test_a_unit_exactly_at_zero_is_off():
    net, w, x, work = (
        MLP((1, 1, 1)),
        np.array([[1.0, -1.0, 1.0, 0.0]]),
        np.ones((1, 1)),
        Workspace(),
    )
    _, tape = forward(net, w, x, work)
    assert tape.slopes[0].item() == 0
    assert gates(net, w, x).tolist() == [False]
    assert vjp(net, tape, np.ones((1, 1, 1)), work).tolist() == [[0.0, 0.0, 0.0, 1.0]]


def test_the_gates_of_every_hidden_layer_are_seen():
    net, x = MLP((1, 1, 1, 1)), np.ones((1, 1))
    assert gates(net, np.array([[1.0, 0.0, -1.0, 0.0, 1.0, 0.0]]), x).tolist() == [True, False]


@pytest.mark.equation("K3")
def test_rho_starts_uniform_on_both_sides_of_its_centre():
    rho = MeanField().init(np.random.default_rng(0), 50_000, np.float64)[50_000:]
    assert abs(rho.mean() + 5) < 4 * 0.01 / np.sqrt(3 * len(rho))
    assert abs(rho.std() * np.sqrt(3) / 0.01 - 1) < 0.02


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_noise_has_the_dtype_that_was_asked_for(dtype):
    assert MeanField().draw(np.random.default_rng(0), 2, 3, dtype).dtype == dtype


@pytest.mark.parametrize("learn", [False, True])
def test_draws_have_the_dtype_of_the_outputs(learn):
    likelihood = GaussianLikelihood(0.7, learn)
    params = {"log_noise": np.zeros(2)} if learn else {}
    f = np.zeros((1, 3, 2), np.float32)
    assert likelihood.draw(np.random.default_rng(0), params, f).dtype == np.float32


def test_every_sample_row_and_output_has_noise_of_its_own():
    y = GaussianLikelihood().draw(np.random.default_rng(0), {}, np.zeros((4, 5, 3)))
    assert len(np.unique(y)) == y.size


def test_the_value_and_the_cotangents_keep_single_precision():
    terms = LogDensities(*np.ones((3, 2), np.float32))
    value, cotangents = free_energy(terms, 0.5)
    assert value.dtype == np.float32
    assert all(cotangent.dtype == np.float32 for cotangent in cotangents)


@pytest.mark.equation("D3")
@pytest.mark.parametrize("epsilon", [1e-8, 0.3])
def test_epsilon_is_added_to_the_root_of_the_unbiased_second_moment(epsilon):
    grads, theta = draw_grads(0)
    after, _ = run(Adam(0.01, 0.9, 0.999, epsilon), grads, theta)
    m = v = 0.0
    for t, grad in enumerate(grads, start=1):
        m, v = 0.9 * m + 0.1 * grad, 0.999 * v + 0.001 * grad**2
        theta = theta - 0.01 * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + epsilon)
    assert np.allclose(after, theta, rtol=1e-12, atol=1e-12)


@pytest.mark.equation("D2")
def test_a_changed_factor_scales_the_whole_velocity_not_only_the_new_gradient():
    after, _ = run(Momentum(0.1, 0.5), np.ones((2, 1)), np.zeros(1), [1.0, 0.1])
    assert after == pytest.approx([-(0.1 * 1.0 + 0.01 * 1.5)], rel=1e-14)


@pytest.mark.parametrize("rule", [Momentum(0.1), Adam(0.1)])
def test_the_memory_of_a_rule_has_the_dtype_of_theta(rule):
    state = rule.init(np.ones(2, np.float32))
    assert all(array.dtype == np.float32 for array in state.arrays.values())


@pytest.mark.equation("D6", "K43", "K44")
@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize("shares", [proportional_kl_weights, geometric_kl_weights])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_fit_is_the_loop_written_out(dtype, shares, shuffle):
    # row order first, then noise; the schedule by fractions of an epoch; sums over minibatches
    estimator, x, y = small()
    epochs, steps, optimizer = 3, 4, Adam(1e-2, schedule=Cosine())
    found = train(
        estimator, x, y, dtype=dtype, optimizer=optimizer, epochs=epochs, batch_size=16,
        samples=2, shuffle=shuffle, kl_weights=shares,
    )  # fmt: skip
    rng, x, y, pi = (
        np.random.default_rng(1),
        x.astype(dtype),
        y.astype(dtype),
        shares([16, 16, 16, 2]),
    )
    begin = start(estimator, rng, optimizer, dtype)
    theta, state = begin.theta, begin.optimizer_state
    for epoch in range(epochs):
        order = rng.permutation(len(x)) if shuffle else np.arange(len(x))
        kl = nll = factor = 0.0
        for step in range(steps):
            rows, work = order[16 * step : 16 * (step + 1)], Workspace()
            share, noise = float(pi[step]), estimator.draw(rng, 2, dtype)
            _, grad = estimator.value_and_grad(theta, noise, x[rows], y[rows], share, work)
            factor = optimizer.schedule(epoch + step / steps, epochs)
            optimizer.update(theta, grad, state, factor)
            terms = work.log_densities
            kl += share * float((terms.posterior - terms.prior).mean())
            nll -= float(terms.likelihood.mean())
        measured, digits = found.history[epoch], 1e3 * float(np.finfo(dtype).eps)
        assert measured.kl == pytest.approx(kl, rel=digits)
        assert measured.nll == pytest.approx(nll, rel=digits)
        assert measured.objective == pytest.approx(kl + nll, rel=digits)
        assert measured.learning_rate == pytest.approx(1e-2 * factor, rel=1e-15)
    assert np.array_equal(found.theta, theta)


@pytest.mark.parametrize("epochs", [1, 2])
def test_the_validation_loss_is_the_mean_nll_per_row_under_the_noise_drawn_first(epochs):
    estimator, x, y = small()
    found = train(estimator, x[:30], y[:30], epochs=epochs, validation=(x[30:], y[30:]))
    rng = np.random.default_rng(1)
    start(estimator, rng, Adam())
    w = estimator.weights(found.theta, estimator.draw(rng, 32))
    f, noise = estimator.model.predict(w, x[30:], Workspace()), np.exp(found.theta[-1])
    nll = 0.5 * ((y[30:] - f) / noise) ** 2 + np.log(noise) + 0.5 * np.log(2 * np.pi)
    assert found.history[-1].validation == pytest.approx(nll.mean(), rel=1e-12)


def test_a_fall_that_counts_starts_the_waiting_anew():
    estimator, _, _ = small()
    state = start(estimator, np.random.default_rng(0), Adam())
    watch = _Watch(EarlyStopping(patience=2, min_delta=0.1), state)
    stops = [watch.should_stop(value, state) for value in (3.0, 2.95, 2.0, 1.95, 1.95)]
    assert stops == [False, False, False, False, True]


def test_min_delta_is_in_nats_per_row():
    estimator, x, y = small()
    first, second = train(estimator, x, y, epochs=2).column("objective")
    fall = (first - second) / len(x)
    assert fall > 0
    for min_delta, epochs in ((2 * fall, 2), (0.5 * fall, 3)):
        stop = EarlyStopping(patience=1, min_delta=min_delta)
        assert len(train(estimator, x, y, epochs=3, early_stopping=stop).history) == epochs


def test_without_validation_rows_early_stopping_returns_the_last_state():
    estimator, x, y = small()
    stop = EarlyStopping(patience=3, min_delta=1e9)
    stopped = train(estimator, x, y, epochs=100, early_stopping=stop)
    assert np.array_equal(stopped.theta, train(estimator, x, y, epochs=4).theta)


def test_going_on_after_a_stop_forgets_why_it_stopped():
    estimator, x, y = small()
    stop = EarlyStopping(patience=1, min_delta=1e9)
    stopped = train(estimator, x, y, epochs=9, early_stopping=stop)
    assert stopped.stopped == "early stopping"
    assert fit(estimator, stopped, x, y, rng=np.random.default_rng(0), epochs=1).stopped == ""


@pytest.mark.parametrize(("fails_at", "kept_epochs"), [(8, 1), (9, 2), (11, 2)])
def test_the_state_kept_is_the_last_whose_own_free_energy_was_seen_to_be_finite(
    fails_at, kept_epochs
):
    # four steps an epoch: step 8 measures the state after two epochs, step 9 a later one
    estimator, x, y = small()
    calls = iter(range(100))

    def objective(terms, kl_weight):
        value, cotangents = free_energy(terms, kl_weight)
        return (np.nan if next(calls) == fails_at else value), cotangents

    with pytest.raises(NonFiniteError) as caught:
        train(replace(estimator, objective=objective), x, y, epochs=5, batch_size=16)
    calls = iter(range(100, 200))
    kept, expected = (
        caught.value.training,
        train(estimator, x, y, epochs=kept_epochs, batch_size=16),
    )
    assert np.array_equal(kept.theta, expected.theta)
    assert kept.history == expected.history or len(kept.history) == kept_epochs


def test_ctrl_c_keeps_the_optimizers_memory_of_the_last_finished_epoch():
    estimator, x, y = small()
    InterruptedDraw.calls = 0
    broken = InterruptedDraw(estimator.model, estimator.posterior)
    kept = train(broken, x, y, epochs=10, batch_size=16).optimizer_state
    expected = train(estimator, x, y, epochs=2, batch_size=16).optimizer_state
    for name, memory in expected.arrays.items():
        assert np.array_equal(kept.arrays[name], memory)


@pytest.mark.equation("D4", "D5")
def test_small_blocks_of_rows_and_samples_give_what_one_block_gives(monkeypatch):
    estimator, x, y = linear_problem()
    theta = np.array([1.0, -2.0, 0.5, 0.3, -1.0, 0.1])

    def everything():
        found = predictive.predict(estimator, theta, x, rng=np.random.default_rng(3), samples=7)
        f = predictive.sample_functions(
            estimator, theta, x, rng=np.random.default_rng(3), samples=7
        )
        density = predictive.log_predictive_density(
            estimator, theta, x, y, rng=np.random.default_rng(3), samples=7
        )
        return np.column_stack([*found, density, f[:, :, 0].T])

    whole = everything()
    monkeypatch.setattr(predictive, "BLOCK_NUMBERS", 24)  # two samples, six of the 40 rows
    assert np.allclose(everything(), whole, rtol=1e-12, atol=1e-12)


def test_predictions_are_made_in_the_dtype_of_theta():
    estimator, x, _ = linear_problem()
    theta = estimator.init(np.random.default_rng(0), np.float32)
    found = predictive.predict(estimator, theta, x, rng=np.random.default_rng(3), samples=7)
    cast = predictive.predict(
        estimator, theta, x.astype(np.float32), rng=np.random.default_rng(3), samples=7
    )
    assert all(moment.dtype == np.float32 for moment in found)
    assert np.array_equal(found, cast)


check, format_table = gradcheck.check, gradcheck.format_table


def wrong_at(*places, by=1.0):
    """The gradient of the sum of squares, wrong at the places given."""

    def squares(theta):
        grad = 2 * theta
        grad[list(places)] += by
        return (theta**2).sum(), grad

    return squares


def test_the_error_of_a_report_is_that_of_its_worst_block():
    report = check(wrong_at(3), np.ones(4), blocks={"a": slice(0, 2), "b": slice(2, 4)})
    assert report.error == report.worst.error == pytest.approx(1 / 3)


@pytest.mark.equation("D9")
@pytest.mark.parametrize("beside", [1e-7, -1e-7])
def test_a_kink_is_seen_on_either_side(beside):
    def relu(theta):
        return np.maximum(theta, 0).sum(), (theta > 0).astype(float)

    theta = np.array([1.0, beside])
    report = check(relu, theta, method="central", gates=lambda point: point > 0)
    assert report.passed
    assert report.blocks[0].skipped == 1


def test_the_coordinates_of_a_sample_are_drawn_from_the_whole_block():
    missed = [
        check(wrong_at(49), np.ones(50), most=10, rng=np.random.default_rng(seed)).passed
        for seed in range(40)
    ]
    assert 0 < missed.count(False) < 40


def test_the_steps_grow_with_the_coordinate():
    assert check(wrong_at(by=0.0), np.array([1e12, -3e12]), method="central").passed


@pytest.mark.parametrize("place", [0, 3])
def test_a_derivative_that_is_nan_is_the_worst_and_is_flagged(place):
    blocks = {"a": slice(0, 2), "b": slice(2, 4)}
    report = check(wrong_at(place, by=np.nan), np.ones(4), blocks=blocks)
    assert np.isnan(report.error)
    assert report.worst.name == ("a" if place == 0 else "b")
    assert str(report).count("<- above") == 1


def test_a_skipped_coordinate_does_not_shift_the_names_of_those_behind_it():
    def relu(theta):
        return np.maximum(theta, 0).sum(), np.array([0.0, 1.0, 3.0])

    theta = np.array([1e-7, 1.0, 2.0])
    report = check(relu, theta, method="central", gates=lambda point: point > 0)
    assert report.blocks[0].skipped == 1
    assert report.worst.worst == "theta[2]"


def test_the_bar_can_be_set():
    assert not check(wrong_at(0, by=1e-3), np.ones(2)).passed
    assert check(wrong_at(0, by=1e-3), np.ones(2), bar=1e-2).passed
    assert not check(wrong_at(by=0.0), np.full(2, 0.3), method="central", bar=0.0).passed


def test_a_dash_writes_the_header_and_the_rows_to_standard_output(capsys):
    from bbb_numpy.tables import write_csv

    write_csv("-", {"a": np.array([1.0, 0.1]), "b": np.array([2.0, 3.0])})
    assert capsys.readouterr().out == "a,b\n1.0,2.0\n0.1,3.0\n"


def test_what_fit_prints_and_predict_writes_are_the_numbers_of_the_stored_model(
    data,
    tmp_path,
    capsys,
):
    path, out = tmp_path / "m.npz", tmp_path / "p.csv"
    fit_file(data, path)
    printed = capsys.readouterr().out
    main(["predict", str(path), str(data), "--output", str(out)])
    model, table = load(str(path)), read_csv(str(data))
    inputs, prices = table.numbers(["size", "age"]), table.numbers(["price"]).values[:, 0]
    for title, value in (
        ("free energy", model.history_[-1].objective),
        ("noise deviation", model.noise_scale_[0]),
        ("R^2 on these rows", model.score(inputs, prices)),
        ("log density", model.log_predictive_density(inputs, prices).mean()),
    ):
        assert f"{title:<18} {value:12.4f}" in printed
    expected = model.predict_distribution(inputs)
    with open(out, newline="") as file:
        rows = list(csv.DictReader(file))
    for name in ("mean", "epistemic", "aleatoric", "total"):
        assert [float(row[name]) for row in rows] == getattr(expected, name).tolist()


def test_every_option_of_fit_reaches_the_model(data, tmp_path):
    path = tmp_path / "m.npz"
    options = {
        "--hidden": ["4", "3"], "--activation": ["tanh"], "--batch-size": ["20"],
        "--samples": ["2"], "--learning-rate": ["0.02"], "--prior-scale": ["0.7"], "--seed": ["5"],
    }  # fmt: skip
    fit_file(data, path, *(word for name, values in options.items() for word in (name, *values)))
    model = load(str(path))
    assert tuple(model.hidden_layer_sizes) == (4, 3)
    assert (model.activation, model.batch_size, model.samples) == ("tanh", 20, 2)
    assert (model.optimizer.learning_rate, model.prior.scale) == (0.02, 0.7)
    assert (model.epochs, model.random_state) == (60, 5)


def test_every_option_of_gradcheck_reaches_the_check(monkeypatch, capsys):
    calls, true_check = [], command_line.check

    def spy(value_and_grad, theta, **options):
        calls.append((value_and_grad, options))
        return true_check(value_and_grad, theta, **options)

    monkeypatch.setattr(command_line, "check", spy)
    argv = "--layers 2 3 1 --samples 3 --batch 5 --activation tanh --prior-scale 0.7"
    more = "--noise-scale 0.3 --kl-weight 0.125 --most 2"
    assert main(["gradcheck", *argv.split(), *more.split()]) == 0
    assert [options["method"] for _, options in calls] == ["complex"] * 4 + ["central"] * 4
    for step, options in calls:
        model, given = step.func.__self__.model, step.keywords
        assert (model.network.sizes, model.network.activation) == ((2, 3, 1), "tanh")
        assert (model.prior.scale, model.likelihood.scale) == (0.7, 0.3)
        assert (len(given["noise"]), given["x"].shape, given["y"].shape) == (3, (5, 2), (5, 1))
        assert (given["kl_weight"], options["most"]) == (0.125, 2)


def test_a_reader_who_leaves_early_is_no_error(monkeypatch):
    class Closed(io.StringIO):
        def write(self, text):
            raise BrokenPipeError

    monkeypatch.setattr(sys, "stdout", Closed())
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert main(["gradcheck", "--layers", "1", "1", "--method", "complex", "--most", "1"]) == 0
