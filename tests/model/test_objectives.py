"""objectives: values by definition, and cotangents that are their derivatives."""

from math import exp, fsum, log

import numpy as np
import pytest
import textbook as formulas
from exact_cases import Exact
from hypothesis import given
from hypothesis import strategies as st
from problems import (
    COMPLEX_STEP,
    exact_posterior,
    linear_problem,
    problems,
    relative_error,
    seeds,
)

from bbb_numpy.evaluation.certificate import pac_bayes
from bbb_numpy.model.objectives import (
    EUBO,
    MAP,
    MLE,
    TERMS,
    FreeEnergy,
    LogDensities,
    PACBayes,
    Renyi,
    free_energy,
    log_weights,
)
from exactgrad import prove, prove_same

ALPHAS = [-1.0, 0.0, 0.5, 0.999, 1.0 - 3e-5, 1.0, 1.0 + 1e-9, 1.001, 2.0, 5.0]
OBJECTIVES = [
    FreeEnergy(), FreeEnergy(0.1), FreeEnergy(0.0), MLE(), MAP(), EUBO(), *map(Renyi, ALPHAS)
]  # fmt: skip


def densities(seed, samples=4, size=1.0):
    return size * np.random.default_rng(seed).standard_normal((3, samples))


def textbook(objective, terms, pi):
    """The value in plain Python, from the definitions; every minibatch value is pi times itself at
    log P(D_i|w) / pi (D30)."""
    q, prior, likelihood = (list(map(float, t)) for t in terms)
    count = len(q)
    if isinstance(objective, FreeEnergy | MLE | MAP):
        beta = getattr(objective, "beta", 0.0)
        tempered = beta if isinstance(objective, FreeEnergy) else float(isinstance(objective, MAP))
        return fsum(
            beta * pi * q[s] - tempered * pi * prior[s] - likelihood[s] for s in range(count)
        ) / count  # fmt: skip
    logs = [prior[s] - q[s] + likelihood[s] / pi for s in range(count)]
    if isinstance(objective, EUBO):
        weights = [exp(v) for v in logs]
        return pi * fsum(w * v for w, v in zip(weights, logs, strict=True)) / fsum(weights)
    order = 1 - objective.alpha
    if order == 0:
        return -pi * fsum(logs) / count
    return -pi / order * log(fsum(exp(order * v) for v in logs) / count)


def surrogate(objective, terms, pi):
    """The function of which the cotangents are the derivatives: for EUBO not its value (G8)."""
    if not isinstance(objective, EUBO):
        return lambda moved: objective(LogDensities(*moved), pi)[0]
    logs = [float(v) for v in log_weights(terms, pi)]
    weights = np.array([exp(v) for v in logs]) / fsum(map(exp, logs))
    return lambda t: -weights @ (pi * (t[0] + t[1]) + t[2])


def cotangent_error(objective, seed=0, pi=0.7, samples=4):
    values = densities(seed, samples)
    cotangents = np.array(objective(LogDensities(*values), pi)[1])
    loss, expected = surrogate(objective, LogDensities(*values), pi), np.zeros((3, samples))
    for index in np.ndindex(3, samples):
        stepped = values.astype(complex)
        stepped[index] += 1j * COMPLEX_STEP
        expected[index] = np.imag(loss(stepped)) / COMPLEX_STEP
    return relative_error(cotangents, expected)


@pytest.mark.equation("K5", "R1", "R2", "R3", "W1", "W2", "D24", "D25", "D30", "G6", "G7")
@pytest.mark.parametrize("objective", OBJECTIVES, ids=str)
@given(seed=seeds, pi=st.floats(0.05, 1.0))
def test_the_value_is_that_of_the_definition(objective, seed, pi):
    # next to alpha = 1 it is the reference that loses digits, in log(...) / (1 - alpha)
    near = isinstance(objective, Renyi) and 0 < abs(1 - objective.alpha) < 1e-2
    bar = 1e-14 / abs(1 - objective.alpha) if near else 1e-11
    terms = LogDensities(*densities(seed))
    expected = textbook(objective, terms, pi)
    size = 1 + np.abs(log_weights(terms, pi)).max()
    assert abs(objective(terms, pi)[0] - expected) <= bar * size


@pytest.mark.equation("D25", "D30", "G8")
@pytest.mark.parametrize("objective", [*OBJECTIVES, *TERMS.values()], ids=str)
@given(seed=seeds, samples=st.integers(1, 4), pi=st.floats(0.05, 2.0))
def test_cotangents_are_the_derivatives_of_the_value_or_of_the_surrogate(
    objective, seed, samples, pi
):
    assert cotangent_error(objective, seed, pi, samples) <= 1e-12


@pytest.mark.equation("K5")
@given(problem=problems())
def test_the_three_terms_add_up_to_the_free_energy_and_so_do_their_gradients(problem):
    parts = [
        problem.with_objective(TERMS[name]).value_and_grad(problem.theta)
        for name in ("posterior", "prior", "likelihood")
    ]
    value, grad, _ = problem.value_and_grad(problem.theta)
    sizes = [sum(abs(part[0]) for part in parts), sum(np.abs(part[1]) for part in parts)]
    assert abs(sum(part[0] for part in parts) - value) <= 1e-13 * sizes[0]
    # Where rows cancel, what is left has the rounding errors of terms as large as the largest
    rounding = 8 * np.finfo(float).eps * sizes[1].max()
    assert np.all(np.abs(sum(part[1] for part in parts) - grad) <= 1e-13 * sizes[1] + rounding)


@pytest.mark.equation("D25")
@given(seed=seeds, size=st.floats(0.1, 100.0))
def test_renyis_bound_falls_as_alpha_grows_between_the_largest_and_the_smallest_weight(seed, size):
    terms = LogDensities(*densities(seed, size=size))
    bounds = [-Renyi(alpha)(terms, 1.0)[0] for alpha in ALPHAS]
    logs = log_weights(terms, 1.0)
    slack = 1e-11 * (1 + np.abs(logs).max())
    assert np.all(np.diff(bounds) <= slack)
    assert logs.min() - slack <= min(bounds) <= max(bounds) <= logs.max() + slack


@pytest.mark.equation("D25")
@given(seed=seeds)
def test_alpha_one_is_the_elbo_and_so_is_one_sample(seed):
    terms = LogDensities(*densities(seed))
    value, cotangents = Renyi(1.0)(terms, 0.7)
    expected, expected_cotangents = free_energy(terms, 0.7)
    assert value == expected
    assert np.array_equal(cotangents, expected_cotangents)
    one = LogDensities(*densities(seed, samples=1))
    for alpha in ALPHAS:
        assert Renyi(alpha)(one, 0.7)[0] == pytest.approx(free_energy(one, 0.7)[0], rel=1e-12)


@pytest.mark.equation("D25")
@pytest.mark.parametrize("gap", [1e-3, 1e-5, 1e-9, 1e-14])
@pytest.mark.parametrize("side", [-1, 1])
def test_nothing_is_lost_next_to_alpha_one(gap, side):
    # to second order: ELBO + (1 - alpha) / 2 Var[log w]
    terms = LogDensities(*densities(1))
    logs = log_weights(terms, 1.0)
    alpha = 1 + side * gap
    expected = -(logs.mean() + (1 - alpha) / 2 * logs.var())
    third = np.abs(logs - logs.mean()).max() ** 3
    value, cotangents = Renyi(alpha)(terms, 1.0)
    assert abs(value - expected) <= gap**2 * third + 1e-15 * np.abs(logs).max()
    shares = 1 / 4 + (1 - alpha) * (logs - logs.mean()) / 4
    assert np.abs(-cotangents.likelihood - shares).max() <= gap**2 * third + 1e-15


@pytest.mark.equation("D25")
@pytest.mark.parametrize("objective", [EUBO(), *map(Renyi, (0.0, 0.5))], ids=str)
def test_a_sample_that_is_impossible_has_no_weight_and_costs_the_others_no_digit(objective):
    # exp(log rate) = inf in one sample makes its log likelihood -inf; a spread of 1e8 costs as much
    zeros, near = np.zeros(4), np.array([0.3, -0.4, 1.0])
    alone, alone_c = objective(LogDensities(zeros[:3], zeros[:3], near), 1.0)
    lost = 0.0 if isinstance(objective, EUBO) else np.log(4 / 3) / (1 - objective.alpha)
    for log_density in (-1e8, -1e300, -np.inf):
        logs = np.append(near, log_density)
        with np.errstate(all="ignore"):
            value, c = objective(LogDensities(zeros, zeros, logs), 1.0)
        assert c.likelihood[3] == 0
        assert np.allclose(c.likelihood[:3], alone_c.likelihood, rtol=1e-14)
        assert value == pytest.approx(alone + lost, rel=1e-12)


@pytest.mark.equation("G5", "G6", "G7")
def test_with_one_sample_the_eubo_is_the_elbo_and_its_share_is_one():
    terms = LogDensities(*densities(0, samples=1))
    value, cotangents = EUBO()(terms, 0.7)
    assert value == pytest.approx(-free_energy(terms, 0.7)[0], rel=1e-14)
    assert cotangents.likelihood.tolist() == [-1.0]


@pytest.mark.equation("G1", "G2", "D8")
def test_the_mean_weight_is_the_evidence_and_the_mean_of_its_logarithm_is_below():
    estimator, x, y = linear_problem(rows=6, noise=0.8, prior=1.3)
    exact = exact_posterior(estimator, x, y)
    deviation = 1.2 * np.sqrt(np.diag(np.linalg.inv(exact.precision)))
    theta = estimator.posterior.pack(exact.mean, deviation)
    noise = estimator.draw(np.random.default_rng(0), 100_000)
    logs = log_weights(estimator.value_and_grad(theta, noise, x, y).terms, 1.0)
    ratio = np.exp(logs - exact.log_evidence)
    error = ratio.std() / np.sqrt(len(ratio))
    assert abs(ratio.mean() - 1) < 4 * error
    assert logs.mean() + 4 * logs.std() / np.sqrt(len(logs)) < exact.log_evidence
    # the second fact of G1: self-normalised, they give posterior means
    w, share = estimator.weights(theta, noise), ratio / ratio.sum()
    spread = np.sqrt((share[:, None] ** 2 * (w - exact.mean) ** 2).sum(axis=0))
    assert np.all(np.abs(share @ w - exact.mean) < 4 * spread)


def bounded(objective, count):
    """Value and slopes of a bound, as functions of log densities (3 count,) and of pi."""

    def value_and_grad(flat, pi):
        value, cotangents = objective(LogDensities(*flat.reshape(3, count)), pi)
        return value, np.concatenate(cotangents)

    return value_and_grad


# log q, log P, log likelihood: the KL is positive, and so is -log likelihood
FLAT = np.array([3.0, 2.5, -1.0, 0.5, -4.0, -7.5])


@pytest.mark.equation("D58")
def test_the_bound_to_train_on_is_the_textbooks_and_its_cotangents_its_slopes_exactly():
    objective = PACBayes(64, 0.25)
    function = bounded(objective, 2)
    assert prove(function, FLAT, 0.75)
    double = bounded(objective, 2)
    wrong = prove(lambda flat, pi: (double(flat, pi)[0], 2 * double(flat, pi)[1]), FLAT, 0.75)
    assert wrong.verdict == "refuted"

    def textbook_value(flat, pi):
        q, prior, likelihood = flat.reshape(3, 2).sum(axis=1)
        return formulas.pac_bayes(Exact, objective, (q - prior) / 2, -likelihood / 2 / pi) * pi

    assert prove_same(lambda flat, pi: function(flat, pi)[0], textbook_value, FLAT, 0.75)


@pytest.mark.equation("D58")
@given(kl=st.floats(0.0, 1e4), nll=st.floats(1e-6, 1e4), rows=st.integers(1, 10**5))
def test_the_bound_to_train_on_is_above_the_certificate_and_a_free_energy_in_its_slopes(
    kl, nll, rows
):
    terms = LogDensities(np.array([kl]), np.zeros(1), np.array([-nll]))
    value, (of_kl, _, of_nll) = PACBayes(rows, 0.1)(terms, 1.0)
    risk = nll / (rows * log(2))
    if risk < 1:
        assert value / (rows * log(2)) >= pac_bayes(risk, kl, rows, 0.1) * (1 - 1e-12)
    beta = FreeEnergy(-of_kl[0] / of_nll[0])(terms, 1.0)[1]
    assert np.allclose([of_kl, of_nll], np.array([beta[0], beta[2]]) * -of_nll, rtol=1e-12)
    assert -of_kl[0] / of_nll[0] > log(2) * (1 - 1e-12)


@pytest.mark.parametrize(
    ("make", "value", "message"),
    [
        (Renyi, np.nan, "alpha must be"), (Renyi, np.inf, "alpha must be"),
        (Renyi, 1e6, "alpha must be"), (Renyi, -1_000_000.5, "alpha must be"),
        (FreeEnergy, -0.1, "beta must be finite and >= 0; got -0.1"),
        (FreeEnergy, np.inf, "beta must be finite"),
        (PACBayes, 0, "rows must be"), (lambda delta: PACBayes(9, delta), 1.0, "delta must be"),
    ],
)  # fmt: skip
def test_impossible_numbers_are_refused_by_name(make, value, message):
    with pytest.raises(ValueError, match=message):
        make(value)
    with pytest.raises(TypeError):
        make("1")
