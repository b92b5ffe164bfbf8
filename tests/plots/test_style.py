"""What several pictures share: densities of draws, labels of logarithmic axes."""

import pytest
from matplotlib.figure import Figure

from bbb_numpy.plots.style import density_of_draws, plain_numbers


def test_the_density_of_draws_of_any_shape_has_area_one():
    ax = Figure().subplots()
    draws = [[0.5, 1.5, 1.7], [1.1, 2.5, 9.0]]  # one beyond the edges
    density_of_draws(ax, draws, [0.0, 1.0, 2.0, 4.0], label="draws")
    (steps,) = ax.patches
    values, edges, _ = steps.get_data()
    assert values == pytest.approx([0.2, 0.6, 0.1])
    assert edges == pytest.approx([0.0, 1.0, 2.0, 4.0])
    assert steps.get_label() == "draws"


def test_numbers_between_powers_of_ten_are_labelled_by_their_first_digit():
    ax = Figure().subplots()
    ax.set_yscale("log")
    plain_numbers(ax.yaxis, minor="25")
    major, minor = ax.yaxis.get_major_formatter(), ax.yaxis.get_minor_formatter()
    assert [major(value, 0) for value in (0.01, 1, 1000)] == ["0.01", "1", "1000"]
    assert [minor(value, 0) for value in (0.02, 0.3, 50)] == ["0.02", "", "50"]
