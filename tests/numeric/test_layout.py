"""layout: named blocks of one flat vector are views, and every number has a name."""

import numpy as np
import pytest

from bbb_numpy.numeric.layout import Layout

LAYOUT = Layout((("W0", (2, 3)), ("b0", (3,)), ("log_noise", (1,))))


def test_blocks_are_views_that_cover_the_vector_once_in_order():
    flat = np.arange(10.0)
    views = LAYOUT.views(flat)
    assert LAYOUT.size == 10
    assert np.array_equal(np.concatenate([view.ravel() for view in views.values()]), flat)
    views["b0"][1] = -1.0
    assert flat[7] == -1.0


def test_leading_axes_are_kept():
    assert LAYOUT.views(np.zeros((4, 10)))["W0"].shape == (4, 2, 3)


@pytest.mark.parametrize(
    ("index", "name"), [(0, "W0[0, 0]"), (5, "W0[1, 2]"), (7, "b0[1]"), (9, "log_noise[0]")]
)
def test_every_coordinate_has_a_name(index, name):
    assert LAYOUT.coordinate(index) == name


def test_a_vector_of_another_length_is_refused_with_both_lengths():
    with pytest.raises(ValueError, match=r"10 numbers.*W0, b0, log_noise; got 11"):
        LAYOUT.views(np.zeros(11))
    with pytest.raises(IndexError, match="index 10 is outside"):
        LAYOUT.coordinate(10)


def test_a_block_without_axes_is_one_number_of_each_row():
    layout = Layout((("a", ()), ("b", (2,))))
    assert layout.views(np.arange(6.0).reshape(2, 3))["a"].tolist() == [0.0, 3.0]
    assert layout.coordinate(0) == "a[]"
