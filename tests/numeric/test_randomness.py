"""randomness: a seed repeats, a generator moves on, anything else is refused by name."""

import numpy as np
import pytest

from bbb_numpy.numeric.validation import check_generator


def test_a_number_seeds_and_an_object_moves_on():
    def first(state):
        return check_generator(state).random()

    assert first(3) == first(np.int64(3)) != first(4)
    assert first(None) != first(None)
    for make in (np.random.default_rng, np.random.RandomState):
        assert first(make(0)) == first(make(0))
        state = make(0)
        assert first(state) != first(state)
        assert check_generator(state) is not state


def test_an_object_seeds_with_four_whole_words(monkeypatch):
    """Two learners of one generator then differ but once in 2^128 (2^124) times."""
    seeds = []
    states = [np.random.default_rng(0), np.random.RandomState(0)]
    monkeypatch.setattr(np.random, "default_rng", seeds.append)
    for _ in range(30):
        for state in states:
            check_generator(state)
    words = np.array(seeds, float)
    assert words.shape == (60, 4)
    assert (words[::2].max(axis=0) > 0.5 * 2**32).all()
    assert (words[1::2].max(axis=0) > 0.5 * 2**31).all()
    assert words[::2].max() < 2**32
    assert words[1::2].max() < 2**31  # as many as NumPy's older whole numbers have on Windows


@pytest.mark.parametrize("value", [-1, 1.5, "seed", [1], True])
def test_other_seeds_are_refused(value):
    with pytest.raises((TypeError, ValueError), match="random_state must be None, a whole number"):
        check_generator(value)
