"""The coin three ways: closed form, grid, Metropolis-Hastings; each judged by the others."""

from fractions import Fraction
from math import factorial

import numpy as np
import pytest
from scipy import stats

from bbb_studies.mullachery import coin as scores
from bbb_studies.mullachery.coin import Beta


@pytest.fixture(scope="module")
def reproduced(short):
    return short("coin").numbers


def grid_error(cell):
    """Bound the error of a grid's mean and log evidence, relative to a density that it sums.

    The midpoint rule with cells of width h is off by h^2 / 24 (f'(1) - f'(0)) + O(h^4). For
    f = r^a (1 - r)^b the slope at an end is not zero if a or b is 0 or 1 alone, and with n = a + b
    is at most (n + 1) (n + 2) times the integral, for r f as well. Else the slopes of third
    order are what is left: 7 h^4 / 5760 (f'''(1) - f'''(0)), less than (n + 1)^4 h^4 / 50.
    """
    extra = 19 if "20" in cell["prior"] else 0  # of Beta(20, 20), as if tossed before
    a, b = cell["heads"] + extra, cell["tails"] + extra
    h, n, rounding = 1 / scores.N_GRID_CELLS, a + b, 1e-12
    ends = (n + 1) * (n + 2) * h**2 / 24 if min(a, b) < 2 else 0.0
    return ends + (n + 1) ** 4 * h**4 / 50 + rounding


@pytest.mark.equation("M18", "M19")
def test_closed_form_grid_and_chains_agree(reproduced):
    for cell in reproduced["cells"]:
        best = cell.get("closed form", cell["grid"])
        within = grid_error(cell)
        assert best["mean"] == pytest.approx(cell["grid"]["mean"], abs=within, rel=0)
        assert best["log_evidence"] == pytest.approx(
            cell["grid"]["log_evidence"], abs=within, rel=0
        )
        chains = cell["metropolis"]
        assert abs(chains["mean"] - best["mean"]) < 4 * chains["mean_error"]
        assert abs(chains["sd"] - best["sd"]) < 4 * chains["sd_error"]


@pytest.mark.equation("M18")
def test_chains_that_are_given_p_find_2p(reproduced):
    one = reproduced["one head"]
    assert (one["heads"], one["tails"]) == (1, 0)
    assert np.exp(one["grid"]["log_evidence"]) == pytest.approx(0.5, abs=1e-12)
    assert one["grid"]["mean"] == pytest.approx(2 / 3, abs=1e-8)
    chains = one["metropolis"]
    assert abs(chains["mean"] - 2 / 3) < 4 * chains["mean_error"]
    assert abs(chains["sd"] - 18**-0.5) < 4 * chains["sd_error"]


@pytest.mark.parametrize(("heads", "tails"), [(0, 0), (1, 0), (6, 4)])
def test_the_grid_is_exact_for_the_triangular_prior(heads, tails):
    # a polynomial on each half, integrated in whole numbers: 4 r^(h+1) (1-r)^t from 0 to 1/2
    def half(h, t):
        terms = [
            Fraction((-1) ** j * factorial(t), factorial(j) * factorial(t - j))
            * Fraction(1, 2) ** (h + 2 + j) / (h + 2 + j)
            for j in range(t + 1)
        ]  # fmt: skip
        return 4 * sum(terms)

    evidence = half(heads, tails) + half(tails, heads)
    _, density, found = scores.grid(scores.COIN_PRIORS[2], heads, tails)
    assert np.mean(density) == pytest.approx(1.0, abs=1e-12)
    assert found.log_evidence == pytest.approx(np.log(float(evidence)), abs=1e-7)


@pytest.mark.parametrize("prior", scores.COIN_PRIORS, ids=lambda prior: prior.title)
def test_densities_integrate_to_one_and_are_zero_outside(prior):
    r = (np.arange(100_000) + 0.5) / 100_000
    assert np.mean(np.exp(prior.log_density(r))) == pytest.approx(1.0, abs=1e-6)
    value, _ = scores.Coin(prior, 3, 5)(np.array([[-0.1], [0.0], [1.0], [1.7]]))
    assert (value == -np.inf).all()


@pytest.mark.equation("M19")
@pytest.mark.parametrize(
    ("prior", "heads", "tails"), [(Beta(2.0, 5.0), 5, 2), (Beta(0.5, 0.5), 1, 2), (Beta(), 0, 0)]
)
def test_beta_is_bayes_rule_on_a_grid(prior, heads, tails):
    z = np.linspace(-150.0, 150.0, 60_001)  # p = sigmoid(z), where sums are exact to rounding
    p = 1.0 / (1.0 + np.exp(-z))
    width = p * np.exp(-z) * p * (z[1] - z[0])
    with np.errstate(invalid="ignore"):  # 1 - p is 0 at the last points
        joint = np.exp(prior.log_density(p) + scores._powers(p, heads, tails))
    joint = np.where(np.isfinite(joint), joint, 0.0)
    evidence, posterior = np.sum(joint * width), prior.observe(heads, tails)
    middle = (p > 0.01) & (p < 0.99)
    known = stats.beta(posterior.alpha, posterior.beta)
    assert np.abs(known.pdf(p) - joint / evidence)[middle].max() < 1e-10
    found = posterior.log_normaliser - prior.log_normaliser
    assert found == pytest.approx(np.log(evidence), abs=1e-11)
    assert posterior.mean == pytest.approx(np.sum(p * joint * width) / evidence, rel=1e-11)


@pytest.mark.equation("M18")
@pytest.mark.parametrize(("heads", "tails"), [(0, 0), (1, 0), (3, 4), (7, 2), (300, 200)])
def test_the_formula_of_the_coin_is_the_posterior_of_a_uniform_prior(heads, tails):
    r = np.linspace(0.0, 1.0, 1001)
    found = scores.coin_log_density(r, heads, tails)
    assert np.allclose(found[1:-1], Beta().observe(heads, tails).log_density(r)[1:-1], atol=1e-10)
