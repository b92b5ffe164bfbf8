"""Combinations in which every two parts meet lose no digits, at usual and extreme parameters."""

import pytest
from gradients.stability_cases import judged
from problems import PAIRS, VALID

DTYPES = ("float64", "float32")

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def unstable(combinations, dtype):
    """Return what `stability` says where it is not satisfied, by combination and setting."""
    return {
        f"{which}, {name}": str(result)
        for which in combinations
        for name, result in judged(which, dtype)
        if not result
    }


@pytest.mark.parametrize("which", PAIRS[:4], ids=str)
def test_a_combination_loses_no_digits(which):
    assert unstable([which], "float64") == {}


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("posterior", sorted({which.posterior for which in VALID}))
def test_combinations_in_which_all_pairs_of_parts_meet_lose_no_digits(posterior, dtype):
    combinations = [which for which in PAIRS if which.posterior == posterior]
    assert combinations
    assert unstable(combinations, dtype) == {}
