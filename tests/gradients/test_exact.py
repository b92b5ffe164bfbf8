"""Every combination of parts in exact arithmetic: gradients of values, and values of formulas.

What is proved holds for all theta, noise, data and KL weights on the path of one case: its open
gates and its branches of stable formulas. Fixed scales are powers of two: other constants are
rounded, in a value and in its formula perhaps differently.
"""

from itertools import islice, product

import pytest
from exact_cases import FAR_LEFT, is_sum, numbered_case, prove_gradient, prove_value
from pairwise_cover import cover
from problems import CHECKED, PAIRS, VALID

from bbb_numpy.combinations import Combination, prove_case
from bbb_numpy.registry import LIKELIHOODS, POSTERIORS


def value_of(which):
    """What a value depends on: estimators that sample weights share theirs, antithetic or not."""
    estimator = (
        which.estimator if which.estimator in ("local-reparameterisation", "flipout") else ""
    )
    return which._replace(estimator=estimator or which.estimator.startswith("closed-form"))


# of the different values those in which every three parts meet; before a commit every two
SUMS = [which for which in VALID if is_sum(which)]
DIFFERENT = list({value_of(which): which for which in SUMS}.values())
VALUES = cover(DIFFERENT, 2 if CHECKED is PAIRS else 3)


# Two smooth layers below exp of a Poisson rate, and densities of a learned prior in normalised
# weights, nest exponentials and logarithms deeper than the six levels of `Towers`
TOO_DEEP = (
    "mean-field / mixture-learned / poisson / self-normalised / eubo",
    "full-rank / student-t-learned / poisson / self-normalised / eubo",
)


def case_of(which, far_left):
    """The case of its number among all that are valid; the next one where that is too deep."""
    return numbered_case(VALID.index(which) + (str(which) in TOO_DEEP), which, far_left)


# --- gradients


def unproved(proofs):
    """What is not proved, by name: the first three."""
    failures = ((str(which), str(proof)) for which, proof in proofs if not proof.proved)
    return dict(islice(failures, 3))


@pytest.mark.equation("D44")
@pytest.mark.parametrize("likelihood", LIKELIHOODS)
@pytest.mark.parametrize("posterior", POSTERIORS)
def test_every_gradient_is_that_of_its_value_exactly(posterior, likelihood):
    every = PAIRS if posterior == "low-rank" else CHECKED  # all of them: the next, in a minute
    combinations = [w for w in every if (w.posterior, w.likelihood) == (posterior, likelihood)]
    assert combinations
    assert (
        unproved((which, prove_gradient(VALID.index(which), which)) for which in combinations) == {}
    )


@pytest.mark.slow
@pytest.mark.equation("D44")
def test_every_gradient_of_a_low_rank_is_that_of_its_value_exactly():
    combinations = [which for which in VALID if which.posterior == "low-rank"]
    assert (
        unproved((which, prove_gradient(VALID.index(which), which)) for which in combinations) == {}
    )


@pytest.mark.slow  # every field says no before it is called so
def test_far_left_the_slope_of_q_at_fixed_weights_is_rounded_and_not_called_proved():
    which = Combination("mean-field", "gaussian", "gaussian", "self-normalised", "eubo")
    proof = prove_case(case_of(which, FAR_LEFT))
    assert proof.verdict == "not proved"
    assert "rounding of a float constant" in proof.reason


# --- values


# of all pairs these four take more than a second
DEAR_PAIRS = [
    ("full-rank", "negative-binomial"),
    ("full-rank", "zero-inflated-negative-binomial"),
    ("mean-field", "negative-binomial"),
    ("mean-field", "zero-inflated-negative-binomial"),
]
VALUE_PAIRS = [
    pytest.param(*pair, marks=pytest.mark.slow if pair in DEAR_PAIRS else ())
    for pair in product(POSTERIORS, LIKELIHOODS)
]


@pytest.mark.equation("D44", "K5", "K17", "K18")
@pytest.mark.parametrize(("posterior", "likelihood"), VALUE_PAIRS)
def test_every_value_is_the_textbook_formula_exactly(posterior, likelihood):
    combinations = [w for w in VALUES if (w.posterior, w.likelihood) == (posterior, likelihood)]
    proofs = ((w, prove_value(case_of(w, far_left=-4.0), VALID.index(w))) for w in combinations)
    assert unproved(proofs) == {}


def test_the_values_proved_are_few_and_of_every_kind():
    assert set(VALUES) <= set(SUMS)
    assert len(VALUES) < len(VALID) / 4
    assert {value_of(which).estimator for which in VALUES} == {
        True, False, "local-reparameterisation", "flipout",
    }  # fmt: skip
