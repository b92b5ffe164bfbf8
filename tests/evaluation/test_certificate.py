"""certificate: the inverted kl, the lemmas of D57 by enumeration, and what the bound promises."""

from fractions import Fraction
from functools import partial
from itertools import product
from math import comb, exp, inf, isclose, log, nextafter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from bbb_numpy import (
    MLP,
    Adam,
    BernoulliLikelihood,
    CategoricalLikelihood,
    ClosedFormKL,
    FullRank,
    GaussianPrior,
    LaplacePrior,
    MeanField,
    Model,
    PACBayes,
    Recipe,
    Reparameterised,
    fit,
)
from bbb_numpy.evaluation.certificate import binary_kl, certificate, invert_kl, pac_bayes
from bbb_numpy.training import start

shares = st.floats(0.0, 1.0)


# --- the binary kl, inverted


@pytest.mark.equation("D57")
@given(q=shares, bound=st.floats(0.0, 20.0))
def test_the_inverse_is_the_first_float_beyond(q, bound):
    p = invert_kl(q, bound)
    assert q <= p <= 1.0
    if p < 1.0:
        assert binary_kl(q, p) > bound
        assert p == q or binary_kl(q, nextafter(p, q)) <= bound


@pytest.mark.equation("D57")
def test_the_inverse_is_that_of_closed_forms_and_of_small_distances():
    assert invert_kl(0.0, 0.1) == pytest.approx(1 - exp(-0.1), rel=1e-15)
    assert invert_kl(1.0, 0.1) == 1.0
    assert binary_kl(0.3, 1.0) == binary_kl(0.3, 0.0) == inf
    for q in (1e-12, 1e-3, 0.3, 1 - 1e-9):
        p = q + 1e-7 * min(q, 1 - q)
        assert isclose(binary_kl(q, p), (p - q) ** 2 / (2 * q * (1 - q)), rel_tol=1e-6)


@given(q=st.fractions(0, 1, max_denominator=1000), p=st.floats(1e-9, 1 - 1e-9))
def test_the_binary_kl_is_its_definition(q, p):
    expected = special.rel_entr(float(q), p) + special.rel_entr(float(1 - q), 1 - p)
    assert isclose(binary_kl(q, p), expected, rel_tol=1e-9, abs_tol=1e-15)


# --- the lemmas, all cases counted


def moment(rows):
    """E e^(m kl(k/m || p)) for k ~ Binomial(m, p): p drops out, and whole numbers are left."""
    cases = (comb(rows, k) * k**k * (rows - k) ** (rows - k) for k in range(rows + 1))  # 0^0 = 1
    return Fraction(sum(cases), rows**rows)


@pytest.mark.equation("D57")
def test_the_moment_of_the_kl_is_at_most_two_roots_of_the_rows():
    for rows in (*range(1, 120), 200, 300):
        assert rows <= moment(rows) ** 2 <= 4 * rows, rows  # exactly, as fractions
    for rows, p in product((1, 5, 40), (0.01, 0.3, 0.9)):
        weights = stats.binom.pmf(np.arange(rows + 1), rows, p)
        exponentials = [exp(rows * binary_kl(k / rows, p)) for k in range(rows + 1)]
        assert weights @ exponentials == pytest.approx(float(moment(rows)), rel=1e-9)


@pytest.mark.equation("D57")
@pytest.mark.parametrize("chances", [(0.1,) * 7, (0.0, 0.2, 0.9, 1.0), (0.5, 0.01, 0.3) * 3])
def test_draws_of_different_chances_mislead_no_more_often_than_equal_ones(chances):
    law = np.ones(1)
    for p in chances:  # of the number of mistakes: all cases
        law = np.convolve(law, [1 - p, p])
    mean, draws = float(np.mean(chances)), len(chances)
    for delta in (0.5, 0.1, 0.01):
        misled = [invert_kl(k / draws, -log(delta) / draws) < mean for k in range(draws + 1)]
        assert law[misled].sum() <= delta


@pytest.mark.equation("D57")
@given(r=st.floats(0.01, 0.99), ratio=st.floats(0.01, 1.0))
def test_chernoffs_bracket_is_least_where_the_derivation_says_and_bounds_the_binomial(r, ratio):
    a = r * ratio

    def bracket(t):
        return exp(-t * a) * (1 - r + r * exp(t))

    best = log(a * (1 - r) / ((1 - a) * r))
    assert best <= 1e-12
    assert isclose(bracket(best), exp(-binary_kl(a, r)), rel_tol=1e-9)
    assert min(bracket(best - 0.1), bracket(best + 0.1)) > bracket(best)
    for draws in (1, 7, 50):
        below = stats.binom.cdf(np.floor(draws * a), draws, r)
        assert below <= exp(-draws * binary_kl(np.floor(draws * a) / draws, r)) * (1 + 1e-9)


# A world: five cases, equally often, of class 1 with these chances; a rule for each way to answer
# them, all equally likely under P. Three rows are seen
CHANCES = np.array([0.5, 0.5, 0.5, 0.5, 0.45])
RULES = np.array(list(product((0, 1), repeat=5)))  # (32, 5)
ROWS = 3


def failures(temper, bound):
    """The chance that the rows make `bound` less than the risk, all data sets counted."""
    risks = np.where(RULES == 1, 1 - CHANCES, CHANCES).mean(axis=1)  # (32,)
    cells = np.concatenate([1 - CHANCES, CHANCES]) / 5  # class and case
    failing = 0.0
    for drawn in product(range(10), repeat=ROWS):
        wrong = np.mean([RULES[:, cell % 5] != cell // 5 for cell in drawn], axis=0)  # (32,)
        q = special.softmax(-temper * wrong)
        kl = float(special.rel_entr(q, 1 / 32).sum())
        if bound(float(q @ wrong), max(kl, 0.0)) < q @ risks:
            failing += cells[list(drawn)].prod()
    return failing


@pytest.mark.equation("D57")
@pytest.mark.parametrize("temper", [0.0, 6.0, 100.0])
def test_the_bound_fails_for_at_most_delta_of_all_data_sets_whatever_q_they_choose(temper):
    for delta in (0.8, 0.5):
        assert failures(temper, lambda risk, kl, d=delta: pac_bayes(risk, kl, ROWS, d)) <= delta
    if temper == 100.0:  # a bound that forgets how far q went from P promises too much
        assert failures(temper, lambda risk, kl: pac_bayes(risk, 0.0, ROWS, 0.5)) > 0.5


# --- networks drawn for every row


def binary_model(prior=1.0):
    return Model(MLP((1, 1)), GaussianPrior(prior), BernoulliLikelihood())


def chance_of_one(theta, x):
    """P(f > 0) at rows x of a line with independent weights: of a Gaussian."""
    (slope, bias), (sd, sd_bias) = theta[:2], np.log1p(np.exp(theta[2:]))
    return stats.norm.cdf((slope * x + bias) / np.hypot(x * sd, sd_bias))


MEAN, DEVIATION = np.array([1.0, -0.2]), np.array([0.7, 0.4])
PACKED = {
    "mean field": (MeanField(), MeanField().pack(MEAN, DEVIATION)),
    "full rank": (FullRank(), FullRank().pack(MEAN, np.diag(DEVIATION**2))),
}


@pytest.mark.equation("D57", "D21")
@pytest.mark.parametrize("name", PACKED)
def test_the_risk_is_that_of_networks_drawn_for_every_row_alone(name):
    posterior, theta = PACKED[name]
    estimator, rng = ClosedFormKL(binary_model(), posterior), np.random.default_rng(0)
    x, y = np.array([[-2.0], [-0.3], [0.1], [1.5]]), np.array([[0.0], [1.0], [1.0], [0.0]])
    p = chance_of_one(PACKED["mean field"][1], x)
    expected = float(np.mean(np.where(y == 1, 1 - p, p)))
    risks = certificate(estimator, theta, x, y, rng=rng, samples=4000)
    assert abs(risks.risk - expected) < 4 * 0.5 / np.sqrt(4 * 4000)
    # the same row many times: mistakes are as independent as coins, not those of one network
    repeated = np.full((400, 1), 0.3), np.ones((400, 1))
    risks = [certificate(estimator, theta, *repeated, rng=rng, samples=1).risk for _ in range(60)]
    p = float(chance_of_one(PACKED["mean field"][1], 0.3))
    assert 0.5 < np.var(risks) / (p * (1 - p) / 400) < 1.8


@pytest.mark.equation("D57")
def test_a_certificate_holds_for_more_data_sets_than_it_promises():
    """Rows of a noisy line train a q on the bound; its risk is an integral over x and weights."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(41)
    weights = weights / weights.sum()
    estimator = ClosedFormKL(binary_model(), MeanField(0.1, 0.0), PACBayes(60, 0.25))
    recipe, flipped = Recipe(Adam(0.05), epochs=40, batch_size=60), 0.1
    right = np.where(nodes > 0, 1 - flipped, flipped)  # P(y = 1)
    bounds, risks = [], []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        x = rng.standard_normal((60, 1))
        y = ((x > 0) ^ (rng.random(x.shape) < flipped)).astype(float)
        state = start(estimator, rng, recipe.optimizer)
        theta = fit(estimator, state, x, y, recipe, rng=rng, progress=False).theta
        certified = certificate(estimator, theta, x, y, rng=rng, delta=0.25, delta_draws=0.1)
        p = chance_of_one(theta, nodes)
        risks.append(weights @ (p * (1 - right) + (1 - p) * right))
        bounds.append(certified.bound)
    assert np.mean(np.array(bounds) < risks) <= 0.35
    assert np.median(bounds) < 0.45  # and it says something


@pytest.mark.equation("D57")
def test_more_rows_that_are_right_lower_the_bound_and_distance_from_the_prior_raises_it():
    fewer, bound, farther = (
        pac_bayes(0.02, kl, rows, 0.025)
        for kl, rows in ((500.0, 10_000), (500.0, 30_000), (600.0, 30_000))
    )
    assert fewer > bound < farther
    assert pac_bayes(0.0, 0.0, 1, 0.5) == pytest.approx(0.75)  # 1 - delta / 2
    # nats of MNIST's free energy: vacuous
    assert pac_bayes(0.02, 6.87 * 60_000, 60_000, 0.025) > 0.998


def test_a_q_that_is_its_prior_has_a_certificate_though_its_kl_rounds():
    rng, model = np.random.default_rng(0), binary_model(0.3)
    for seed in range(20):
        sd = 0.3 * (1 + 1e-15 * np.random.default_rng(seed).standard_normal(2))
        theta = MeanField().pack(np.zeros(2), sd)
        certified = certificate(
            ClosedFormKL(model), theta, np.ones((9, 1)), np.ones((9, 1)), rng=rng
        )
        assert 0.0 <= certified.kl < 1e-15


BINARY = ClosedFormKL(binary_model())
REFUSED = [
    (Reparameterised(Model(MLP((1, 1)), GaussianPrior())), "the likelihood must be categorical"),
    (Reparameterised(Model(MLP((1, 2)), likelihood=BernoulliLikelihood())), "counts wrong classes"),
    (Reparameterised(Model(MLP((1, 1)), LaplacePrior(), BernoulliLikelihood())), "closed form"),
    (
        Reparameterised(Model(MLP((1, 1)), GaussianPrior(learn=True), BernoulliLikelihood())),
        "does not depend on the rows",
    ),
]


@pytest.mark.parametrize(("estimator", "message"), REFUSED)
def test_what_has_no_certificate_says_why(estimator, message):
    theta, rng = estimator.init(np.random.default_rng(0)), np.random.default_rng(0)
    y = np.zeros((3, estimator.model.outputs))
    with pytest.raises(ValueError, match=message):
        certificate(estimator, theta, np.zeros((3, 1)), y, rng=rng)


GIVEN = {"theta": np.zeros(4), "x": np.zeros((3, 1)), "y": np.zeros((3, 1))}
CERTIFY = partial(certificate, BINARY, **GIVEN, rng=np.random.default_rng(0))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (partial(CERTIFY, delta=0.0), "delta must be > 0 and < 1"),
        (partial(CERTIFY, delta_draws=1.0), "delta_draws must be"),
        (partial(CERTIFY, samples=0), "samples"),
        (partial(CERTIFY, x=np.zeros((2, 1))), "rows"),
        (partial(CERTIFY, theta=np.zeros(3)), "theta"),
        (partial(invert_kl, 1.5, 0.1), "q must be"),
        (partial(invert_kl, 0.5, inf), "bound must be"),
    ],
)
def test_impossible_arguments_are_refused_by_name(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_classes_in_float32_and_their_networks_with_a_hidden_layer():
    rng = np.random.default_rng(0)
    model = Model(MLP((2, 5, 3)), GaussianPrior(1.0), CategoricalLikelihood())
    estimator = ClosedFormKL(model, MeanField(1.0, -3.0))
    theta = estimator.init(rng, np.float32)
    x = rng.standard_normal((500, 2))
    f = model.predict(theta[None, : model.layout.size], x.astype(np.float32))[0]
    y = np.eye(3)[f.argmax(1)]  # what the mean weights say, of which draws differ little
    certified = certificate(estimator, theta, x, y, rng=rng, samples=20)
    assert 0.0 < certified.risk < certified.risk_bound < certified.bound < 1.0
    assert (certified.n_rows, certified.risk < 0.15) == (500, True)
    # KL by the textbook
    mean, rho = np.split(theta.astype(float), 2)
    sd = np.log1p(np.exp(rho))
    assert certified.kl == pytest.approx(np.sum((mean**2 + sd**2 - 1) / 2 - np.log(sd)), rel=1e-12)
