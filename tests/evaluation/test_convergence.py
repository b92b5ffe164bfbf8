"""When chains count as mixed. R-hat and effective sizes themselves: test_arviz_export."""

from dataclasses import replace

import pytest

from bbb_numpy.evaluation.convergence import Convergence, Line

ENOUGH = Line("functions", "E[y|x]", 5, r_hat=1.0099, bulk=400.0, tail=400.0)


@pytest.mark.parametrize(
    ("change", "mixed"),
    [({}, True), ({"r_hat": 1.01}, False), ({"r_hat": 1.0101}, False), ({"bulk": 399.0}, False),
     ({"tail": 399.0}, False), ({"r_hat": 2.0, "bulk": 3.0, "space": "weights"}, True)],
)  # fmt: skip
def test_four_mixed_chains_have_400_effective_draws_and_an_r_hat_below_1_01(change, mixed):
    """Of the log density and the functions; weights, which modes permute, are not asked."""
    lines = (replace(ENOUGH, name="log density"), replace(ENOUGH, **change))
    found = Convergence(1000, 4, lines)
    assert found.mixed is mixed
    said = "No lack of convergence is seen." if mixed else "Wanted are R-hat < 1.01 and 100 eff"
    assert said in str(found)


def test_any_divergence_is_told_however_well_chains_agree():
    clean, one = (str(Convergence(1000, 4, (ENOUGH,), divergent=k)) for k in (0, 1))
    told = "1 of 4000 draws followed a divergence: there may be a narrow place from which"
    assert told in one
    assert one.startswith(clean)
    assert "diverg" not in clean


def test_the_worst_of_a_space_has_the_largest_r_hat_and_the_smallest_sizes():
    other = Line("functions", "log density", 1, r_hat=1.2, bulk=500.0, tail=90.0)
    found = Convergence(1000, 4, (ENOUGH, other, replace(other, space="weights", r_hat=9.0)))
    assert found.worst("functions") == Line("functions", "all", 6, 1.2, 400.0, 90.0)
