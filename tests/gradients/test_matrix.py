"""matrix: every valid combination has the gradient of its value, every other one says why not."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import INVALID, VALID, seeds

from bbb_numpy.gradients import matrix
from bbb_numpy.gradients.catalogue import ESTIMATORS, LIKELIHOODS, OBJECTIVES, POSTERIORS, PRIORS
from bbb_numpy.gradients.matrix import Combination, check_case, combinations, estimator, problem
from bbb_numpy.numeric.buffers import Buffers

# inputs, hidden widths, target columns
SHAPES = [(2, (2,), 1), (1, (3,), 2), (1, (), 2), (2, (1, 2), 1)]
# gradients alone: a constant in a value shows in no derivative, and is not claimed here
EVERY_TAG = (
    "K19-K30", "K37-K42", "R5-R8", "W3-W5", "M2", "M3", "G4", "G8", "D1", "D9", "D10", "D12-D22",
    "D24-D27", "D39",
)  # fmt: skip


@st.composite
def small_cases(draw, which):
    """One small problem of a combination: any seed, activation, shape, S and B, none included."""
    inputs, hidden, targets = draw(st.sampled_from(SHAPES))
    activation = draw(st.sampled_from(["relu", "tanh"]))
    samples = draw(st.sampled_from([2, 4] if "antithetic" in which.estimator else [1, 2, 4]))
    built = estimator(which, inputs, hidden, targets, activation)
    rng, rows = np.random.default_rng(draw(seeds)), draw(st.integers(0, 3))
    return problem(built, rng, samples, rows, draw(st.sampled_from([1.0, 0.7])))


# Hypothesis keeps something of every test that it runs in a process, and ends in a recursion error
# after about a thousand: so combinations share tests
TOGETHER = {
    f"{prior} / {likelihood}": [w for w in VALID if (w.prior, w.likelihood) == (prior, likelihood)]
    for prior, likelihood in product(PRIORS, LIKELIHOODS)
}


def test_every_valid_combination_is_in_one_group():
    assert sorted(which for group in TOGETHER.values() for which in group) == sorted(VALID)


@pytest.mark.equation(*EVERY_TAG)
@pytest.mark.parametrize("group", TOGETHER.values(), ids=TOGETHER)
@settings(max_examples=4, derandomize=True, database=None)
@given(data=st.data())
def test_every_valid_combination_has_the_gradient_of_its_value_to_1e_12(group, data):
    for which in group:
        passes(which, data.draw(small_cases(which)))


def passes(which, case):
    """Check one problem of a combination."""
    found = check_case(case)
    assert found.passed, f"{which}\n{found}"
    assert found.bar == 1e-12
    assert found.skipped == 0
    # what is checked is what trains: freezing parts at theta itself changes no bit of the gradient,
    # but where eps is computed back from the frozen weights
    checked = case.estimator.value_and_grad(*case[1:6], None, case.theta)[1]
    trained = case.estimator.value_and_grad(*case[1:6])[1]
    back = 1e-12 * np.abs(trained).max() if which.estimator == "self-normalised" else 0.0
    assert np.abs(checked - trained).max() <= back


@pytest.mark.equation("D9")
@settings(max_examples=60, derandomize=True, database=None)
@given(data=st.data(), which=st.sampled_from(VALID))
def test_a_random_part_of_the_matrix_agrees_with_central_differences_to_1e_6(data, which):
    found = check_case(data.draw(small_cases(which)), "central", most=6)
    assert found.error <= 1e-6, f"{which}\n{found}"


def makes_sense(which):
    """The rules of the matrix, written once more from the mathematics."""
    posterior, prior, _, by, objective = which
    if posterior == "point":  # a density or a noise to mirror it has not
        return (objective in ("mle", "map") and by == "reparameterised") and "learned" not in prior
    if objective in ("mle", "map"):
        return False
    rowwise = by in ("local-reparameterisation", "flipout")
    if by.startswith("closed-form-kl") or rowwise:
        closed = prior.startswith(("gaussian", "layerwise")) and "elbo" in objective
        return closed and not (rowwise and posterior == "full-rank")
    wanted = {
        "sticking-the-landing": ("elbo", "tempered-elbo"),
        "doubly-reparameterised": ("iwae",),
        "self-normalised": ("eubo",),
    }
    return objective in wanted.get(by, ("elbo", "tempered-elbo", "iwae", "renyi"))


def test_the_matrix_has_every_combination_once_and_the_valid_ones_are_those_that_make_sense():
    tables = (POSTERIORS, PRIORS, LIKELIHOODS, ESTIMATORS, OBJECTIVES)
    everything = [Combination(*names) for names in product(*tables)]
    assert list(combinations()) == everything
    assert len(VALID) + len(INVALID) == len(everything) == np.prod([len(t) for t in tables])
    assert set(VALID) == {which for which in everything if makes_sense(which)}


# one line for each reason; the classes that do not go together stand in it
REASONS = (
    *(f"{name} estimates one weight vector" for name in ("MLE", "MAP")),
    *(f"a point mass has no density, so {name} is infinite"
      for name in ("FreeEnergy", "Renyi", "EUBO")),
    *(f"a point estimate cannot learn the numbers of {name}:"
      for name in ("GaussianPrior", "LayerwiseGaussianPrior", "ScaleMixturePrior")),
    "a point mass has no noise to mirror",
    "the EUBO's weights are exponentials of log q: differentiated through the samples",
    *(f"{by} needs an objective that is linear in log q, FreeEnergy; got {name}."
      for by in ("ClosedFormKL", "StickingTheLanding", "LocalReparameterisation", "Flipout")
      for name in ("Renyi", "EUBO")),
    *(f"{by} needs KL(q || prior) in closed form, and there is none for a Gaussian q and {name}."
      for by in ("ClosedFormKL", "LocalReparameterisation", "Flipout")
      for name in ("LaplacePrior", "ScaleMixturePrior")),
    *(f"{by} needs weights that are independent under q, MeanField; got FullRank."
      for by in ("LocalReparameterisation", "Flipout")),
    *(f"{by} needs a posterior with a density"
      for by in ("ClosedFormKL", "StickingTheLanding", "LocalReparameterisation", "Flipout",
                 "DoublyReparameterised", "SelfNormalised")),
    *(f"DoublyReparameterised is the gradient of IWAE, Renyi(0.0); got {name}"
      for name in ("FreeEnergy(beta=1.0)", "FreeEnergy(beta=0.1)", "Renyi(alpha=0.5)", "EUBO()")),
    *(f"SelfNormalised is the gradient of EUBO(); got {name}"
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


@pytest.mark.parametrize("which", VALID, ids=str)
def test_single_precision_stays_single_precision_throughout(which):
    rng = np.random.default_rng(0)
    built = estimator(which)
    case = problem(built, rng)
    single = [np.asarray(a, np.float32) for a in (case.theta, case.noise, case.x, case.y)]
    work = Buffers()
    value, grad, _ = built.value_and_grad(*single, 0.7, work)
    assert grad.dtype == np.float32
    assert value.dtype == np.float32
    assert {array.dtype for array in work._arrays.values()} == {np.dtype(np.float32)}
    assert {term.dtype for term in work.log_densities} == {np.dtype(np.float32)}
    # a float64 share of the KL term changes nothing of that
    assert built.value_and_grad(*single, np.float64(0.7))[1].dtype == np.float32
    exact_value, exact = built.value_and_grad(*case[1:5], 0.7)
    assert value == pytest.approx(exact_value, rel=1e-4, abs=1e-4)
    assert np.abs(grad - exact).max() <= 1e-3 * np.abs(exact).max()


@settings(max_examples=60, derandomize=True, database=None)
@given(data=st.data(), pair=st.tuples(st.sampled_from(VALID), st.sampled_from(VALID)))
def test_one_workspace_for_two_estimators_gives_the_same_bits_as_none(data, pair):
    work = Buffers()
    first, second = (data.draw(small_cases(which)) for which in pair)
    for case in (first, second, first, second, first):
        # frozen parts live in workspaces of their own
        for frozen in (None, case.theta):
            value, grad, _ = case.estimator.value_and_grad(*case[1:6], work, frozen)
            fresh_value, fresh = case.estimator.value_and_grad(*case[1:6], None, frozen)
            assert value == fresh_value
            assert np.array_equal(grad, fresh)


@pytest.mark.parametrize("which", VALID, ids=str)
def test_nothing_that_is_passed_in_is_changed_and_every_number_of_the_gradient_is_written(which):
    case = problem(estimator(which), np.random.default_rng(1))
    before = [array.copy() for array in case[1:5]]
    work = Buffers()
    expected = case.estimator.value_and_grad(*case[1:6])[1]
    work.array("grad", case.theta.shape, case.theta.dtype).fill(np.nan)
    assert np.array_equal(case.estimator.value_and_grad(*case[1:6], work)[1], expected)
    for array, kept in zip(case[1:5], before, strict=True):
        assert np.array_equal(array, kept)


@pytest.mark.parametrize("which", VALID[::7], ids=str)
def test_a_nan_in_theta_gives_a_nan_not_an_error_and_not_a_number(which):
    case = problem(estimator(which), np.random.default_rng(2))
    theta = case.theta.copy()
    theta[0] = np.nan
    with np.errstate(all="ignore"):
        value, _, _ = case.estimator.value_and_grad(theta, *case[2:6])
    assert np.isnan(value)


def test_the_matrix_is_printed_with_a_column_for_each_likelihood_and_a_dash_for_what_is_missing():
    first = Combination("mean-field", "laplace", "gaussian", "reparameterised", "elbo")
    shown = {first: 1.5e-15, first._replace(likelihood="poisson"): 2.5e-14}
    head, rule, line = matrix.format_matrix(shown).splitlines()
    assert head.split() == ["posterior", "estimator", "objective", "prior", *LIKELIHOODS]
    assert set(rule) == {"-"}
    assert line.split()[:4] == ["mean-field", "reparameterised", "elbo", "laplace"]
    assert line.split()[4:] == ["1.5e-15", "-", "-", "-", "-", "2.5e-14"]
