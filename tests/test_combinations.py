"""combinations: in floats too gradients are those of values, and what is not valid says why not.

That every gradient is right is proved in `test_exact`; here is what rounding does to it.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pairwise_cover import cover, parts_that_meet
from problems import CHECKED, INVALID, PAIRS, SHAPES, VALID, examples, small_cases

from bbb_numpy.combinations import (
    Combination,
    build_estimator,
    check_case,
    draw_case,
    format_matrix,
    prove_case,
)
from bbb_numpy.parts.activations import ACTIVATIONS
from bbb_numpy.parts.posteriors import MeanField, PointMass
from bbb_numpy.parts.priors import ClosedFormPrior
from bbb_numpy.registry import ESTIMATORS, LIKELIHOODS, classes

# those in which every three parts meet; before a commit every two
MEASURED = PAIRS if CHECKED is PAIRS else cover(VALID, 3)
# inputs, hidden widths, target columns; few weights, since a full rank has P (P + 3) / 2 numbers


# --- which combinations are checked


def test_the_pairs_are_few_valid_combinations_in_which_every_two_parts_meet_that_ever_do():
    assert set(PAIRS) <= set(VALID)
    assert len(PAIRS) == len(set(PAIRS)) < len(VALID) / 10
    meetings = {pair for which in VALID for pair in parts_that_meet(which)}
    assert {pair for which in PAIRS for pair in parts_that_meet(which)} == meetings
    assert len(meetings) > 300


# --- the gradients


def small_case(number, which):
    """One small problem of a combination; its number chooses shape, activation, S and B."""
    inputs, hidden, targets = SHAPES[number % 4]
    samples = [2, 4, 2, 2, 4][number % 5] if "antithetic" in which.estimator else number % 3 + 1
    built = build_estimator(
        which, inputs, hidden, targets, list(ACTIVATIONS)[number // 4 % len(ACTIVATIONS)]
    )
    return draw_case(built, np.random.default_rng(number), samples, number % 7 % 4, 0.7)


# Marked with gradients alone: a constant in a value shows in no derivative


@pytest.mark.equation("D12-D17", "D25", "D26", "D27", "D39", "M3")
@pytest.mark.parametrize("by", ESTIMATORS)
@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_every_gradient_is_that_of_the_value_or_of_its_surrogate_to_1e_12(by, likelihood):
    for which in MEASURED:
        if (which.estimator, which.likelihood) == (by, likelihood):
            passes(which, small_case(VALID.index(which), which))


@examples(150, derandomize=True, database=None)
@given(data=st.data(), which=st.sampled_from(PAIRS))
def test_so_it_is_with_any_seed_shape_activation_samples_and_rows(data, which):
    passes(which, data.draw(small_cases(which)))


def passes(which, case):
    """Check one problem of a combination."""
    found = check_case(case)
    assert found.passed or rounded(case, found), f"{which}\n{found}"
    assert found.tolerance == 1e-12
    assert found.skipped == 0
    if which.estimator == "sticking-the-landing":  # frozen at theta itself it is the objective
        value, _, terms = case.estimator.value_and_grad(*case[1:6])
        surrogate = case.estimator.surrogate(case.theta, *case[1:6])
        size = sum(np.abs(term).max() for term in terms)
        assert surrogate == pytest.approx(value, rel=1e-12, abs=1e-12 * size)


def rounded(case, found):
    """Whether the errors are those of adding numbers that cancel.

    A derivative is a sum over samples, rows, and the three densities. Adding n numbers of size g
    rounds by n eps g, which where all but 1e-3 of g cancels is more than 1e-12 of what is left.
    """
    grad = case.estimator.value_and_grad(*case[1:6]).grad
    numbers = 3 * len(case.noise) * max(1, len(case.x))
    bar = numbers * np.finfo(float).eps * np.abs(grad).max()
    return all(
        b.error <= found.tolerance or abs(b.analytic - b.numeric) <= bar for b in found.blocks
    )


@examples(50, derandomize=True, database=None)
@given(data=st.data(), which=st.sampled_from(VALID))
def test_a_random_part_of_the_matrix_agrees_with_central_differences_to_1e_6(data, which):
    found = check_case(data.draw(small_cases(which)), "central", max_coordinates=6)
    assert found.error <= 1e-6, f"{which}\n{found}"


def names_of(family, holds):
    """The classes of a family of which something is true, each by its name."""
    return [made.__name__ for made in classes(family) if holds(made)]


# one line for each reason; the classes that do not go together stand in it
REASONS = (
    *(f"{name} estimates one weight vector" for name in ("MLE", "MAP")),
    *(f"a point mass has no density, so {name} is infinite"
      for name in ("FreeEnergy", "Renyi", "EUBO", "PACBayes")),
    *(f"a point estimate cannot learn the numbers of {name}:"
      for name in names_of("prior", lambda made: hasattr(made, "learn"))),
    "a point mass has no noise to draw in pairs",
    "the EUBO cannot be differentiated through its samples",
    *(f"the objective of {by} must be linear in log q, which FreeEnergy() is; got {name}."
      for by in ("ClosedFormKL", "StickingTheLanding", "LocalReparameterisation", "Flipout")
      for name in ("Renyi", "EUBO")),
    "the objective of StickingTheLanding must be linear in log q, which FreeEnergy() is; got PAC",
    *(f"PACBayes needs KL(q || prior) in closed form, since its estimate from a sample "
      f"may be negative; got {by}, which samples it."
      for by in ("Reparameterised", "DoublyReparameterised", "SelfNormalised")),
    *(f"PACBayes needs a likelihood of classes, as it bounds the share of wrong classes; got "
      f"{name}."
      for name in names_of("likelihood", lambda made: made.target_kind != "class")),
    "PACBayes needs a prior that does not learn from the rows;",
    *(f"{by} needs KL(q || prior) in closed form, and there is none for a Gaussian q and {name}."
      for by in ("ClosedFormKL", "LocalReparameterisation", "Flipout")
      for name in names_of("prior", lambda made: not issubclass(made, ClosedFormPrior))),
    *(f"the posterior of {by} must have independent weights, MeanField; got {name}."
      for by in ("LocalReparameterisation", "Flipout")
      for name in names_of("posterior", lambda made: made not in (MeanField, PointMass))),
    *(f"{by} needs a posterior with a density"
      for by in ("ClosedFormKL", "StickingTheLanding", "LocalReparameterisation", "Flipout",
                 "DoublyReparameterised", "SelfNormalised")),
    *(f"the objective of DoublyReparameterised must be IWAE, Renyi(0.0); got {name}"
      for name in ("FreeEnergy(beta=1.0)", "FreeEnergy(beta=0.1)", "Renyi(alpha=0.5)", "EUBO()")),
    *(f"the objective of SelfNormalised must be EUBO(); got {name}"
      for name in ("FreeEnergy(beta=1.0)", "FreeEnergy(beta=0.1)", "Renyi(alpha=0.0)",
                   "Renyi(alpha=0.5)")),
)  # fmt: skip
ADVICE = ("Use ", "use ", "Fix ")


def test_every_invalid_combination_says_why_naming_what_does_not_go_together():
    used = set()
    for which, message in INVALID.items():
        reasons = [reason for reason in REASONS if message.startswith(reason)]
        assert len(reasons) == 1, f"{which}: {message}"
        assert any(word in message for word in ADVICE), message
        used.update(reasons)
    assert used == set(REASONS)


def test_the_matrix_is_printed_with_a_column_for_each_likelihood_and_a_dash_for_what_is_missing():
    first = Combination("mean-field", "laplace", "gaussian", "reparameterised", "elbo")
    shown = {first: 1.5e-15, first._replace(likelihood="poisson"): 2.5e-14}
    shown |= {first._replace(prior="gaussian"): 0.0, first._replace(posterior="full-rank"): 0.0}
    head, rule, *lines = (line.split() for line in format_matrix(shown).splitlines())
    assert head == ["posterior", "estimator", "objective", "prior", *LIKELIHOODS]
    assert set("".join(rule)) == {"-"}
    assert lines[0][:4] == ["full-rank", "reparameterised", "elbo", "laplace"]
    assert lines[1][:4] == ["mean-field", "reparameterised", "elbo", "gaussian"]
    cells = {"gaussian": "1.5e-15", "poisson": "2.5e-14"}  # what stands above is not repeated
    assert lines[2] == ["laplace", *(cells.get(name, "-") for name in LIKELIHOODS)]


def test_differences_that_would_cross_the_kink_of_a_prior_are_left_out():
    which = Combination("mean-field", "laplace", "gaussian", "reparameterised", "elbo")
    case = draw_case(build_estimator(which), np.random.default_rng(0), samples=1)
    w = case.estimator.weights(case.theta, case.noise)[0]
    case.estimator.layout.views(case.theta)["mu"][0] -= w[0] - 1e-9  # where |w_0| has its kink
    report = check_case(case, method="central")
    assert report.passed
    assert "skipped" in str(report)


def test_reports_and_proofs_of_a_case_name_its_method_blocks_and_coordinates(monkeypatch):
    which = Combination("mean-field", "gaussian", "gaussian", "reparameterised", "elbo")
    case = draw_case(build_estimator(which), np.random.default_rng(0))
    report = check_case(case, "central", max_coordinates=3)
    assert report.method == "central"
    assert [block.name for block in report.blocks] == ["mu", "rho"]
    assert sum(block.checked + block.skipped for block in report.blocks) < case.theta.size
    assert all(block.worst.startswith(f"{block.name} ") for block in report.blocks)  # mu W0[1, 0]

    right = MeanField.pull_back

    def one_wrong(self, sample, d_w, d_log_q, d_theta):
        right(self, sample, d_w, d_log_q, d_theta)
        d_theta["rho"][:1] *= 2

    monkeypatch.setattr(MeanField, "pull_back", one_wrong)
    assert [wrong.name for wrong in prove_case(case).wrong] == ["rho W0[0, 0]"]
