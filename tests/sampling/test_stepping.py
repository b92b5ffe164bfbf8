"""How chains are divided in groups, and how far a group goes on before it is asked again."""

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest
from targets import correlated

from bbb_numpy.sampling import stepping
from bbb_numpy.sampling.mcmc import HMC, NUTS
from bbb_numpy.sampling.stepping import Course, begin, divided, stretch, usual_groups

# --- groups ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("chains", "groups", "sizes"), [(4, 1, [4]), (4, 2, [2, 2]), (5, 3, [2, 2, 1]), (2, 2, [1, 1])]
)
def test_groups_are_neighbours_of_nearly_equal_number(chains, groups, sizes):
    places = divided(chains, groups)
    assert [place.stop - place.start for place in places] == sizes
    assert [c for place in places for c in range(chains)[place]] == list(range(chains))


def test_large_networks_run_in_pairs_small_ones_together():
    kernel = HMC()
    large = [usual_groups(chains, 100_000, kernel) for chains in (1, 2, 3, 4, 6, 8, 16, 100)]
    assert large == [1, 1, 1, 2, 3, 4, 4, 4]
    assert usual_groups(100, 99_999, kernel) == 1


def test_a_kernel_says_how_many_chains_learn_together():
    class Together(HMC):
        together = 4

    assert [usual_groups(chains, 100_000, Together()) for chains in (4, 8, 16)] == [1, 2, 4]


# --- stretches -------------------------------------------------------------------------------


@dataclass
class Clock:
    """Passes a second at every step, and stands still between."""

    now: float = 12_345.0

    def monotonic(self):
        return self.now


@dataclass(frozen=True)
class Timed:
    """Moves as NUTS does."""

    clock: Clock

    def init(self, target, position):
        return NUTS().init(target, position)

    def step(self, target, rng, state):
        self.clock.now += 1.0
        return NUTS().step(target, rng, state)


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(stepping, "time", SimpleNamespace(monotonic=clock.monotonic))
    return clock


def begun(clock, warm_up=0):
    target, kernel = correlated(), Timed(clock)
    course = Course(target, kernel, warm_up, 1, 50, False, None)
    return course, begin(course, np.random.default_rng(0), kernel.init(target, np.zeros((2, 3))))


@pytest.mark.parametrize(("seconds", "steps"), [(2.5, 3), (3.0, 3), (3.5, 4), (0.0, 1), (-1.0, 1)])
def test_a_stretch_ends_with_the_step_in_which_its_time_is_over(clock, seconds, steps):
    course, run = begun(clock, warm_up=2)
    found = stretch(course, run, 50, seconds)
    assert found.steps == steps
    assert len(found.infos) == len(found.kept) == max(steps - 2, 0)


def test_a_stretch_of_no_time_is_one_step_even_if_the_clock_does_not_move(clock):
    course, run = begun(Clock())
    assert stretch(course, run, 50, 0.0).steps == 1


def test_a_stretch_ends_when_the_run_has_the_draws_that_are_wanted(clock):
    course, run = begun(clock)
    found = stretch(course, run, 7, 1000.0)
    assert len(found.infos) == found.steps == 7
    assert stretch(course, found, 7, 1000.0).steps == 7, "it has them"
