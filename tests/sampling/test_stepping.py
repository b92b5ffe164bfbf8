"""How chains are divided in groups, and how far a group goes on before it is asked again."""

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest
from targets import correlated

from bbb_numpy.sampling import stepping
from bbb_numpy.sampling.mcmc import HMC, NUTS, Info, State
from bbb_numpy.sampling.stepping import (
    Course,
    Mark,
    advance,
    begin,
    behind,
    divided,
    stretch,
    usual_groups,
)

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


def test_the_group_with_the_fewest_steps_is_next_and_those_with_all_draws_are_left_out():
    course = Course(correlated(), HMC(), 2, 3, 4, False, None)
    runs = [
        SimpleNamespace(steps=s, infos=[None] * d) for s, d in ((11, 3), (14, 4), (2, 0), (5, 1))
    ]
    assert behind(course, runs) == [2, 3, 0]
    assert behind(course, runs[1:2]) == []


# --- steps -----------------------------------------------------------------------------------


def counted(diverges, warm_up=0, thin=1):
    """Return a course of two chains that go one to the right each, and its run.

    A step costs as many gradients as the place it ends in; chain 1 diverges on its way to some.
    """

    def step(target, rng, state):
        state = kernel.init(target, state.position + 1.0)
        here = state.position[:, 0]
        divergent = np.isin(here, diverges) & (np.arange(2) == 1)
        return state, Info(here, here > 0, divergent, 10 * here, here.astype(int), 0 * here)

    kernel = SimpleNamespace(init=lambda target, p: State(p, *target(p)), step=step)
    course = Course(correlated(), kernel, warm_up, thin, 4, False, None)
    state = kernel.init(course.target, np.zeros((2, 3)))
    return course, begin(course, np.random.default_rng(0), state)


def test_the_steps_of_a_course_are_those_of_its_warm_up_and_of_its_thinned_draws():
    assert Course(correlated(), HMC(), 10, 3, 4, False, None).steps == 22


def test_before_its_first_step_a_run_has_nothing():
    _, run = counted(())
    assert run[2:] == (None, 0, 0, [], [])
    assert run.state.position.tolist() == np.zeros((2, 3)).tolist()


@pytest.mark.parametrize(("dense", "shape"), [(False, (3,)), (True, (3, 3))])
def test_a_warm_up_learns_the_metric_and_the_acceptance_that_are_wanted(dense, shape):
    course = Course(correlated(), HMC(0.3), 60, 1, 4, dense, 0.7)
    state = course.kernel.init(course.target, np.zeros((2, 3)))
    adaptation = begin(course, np.random.default_rng(0), state).adaptation
    assert adaptation.moments.squares.shape == shape
    assert (adaptation.warm_up, adaptation.target_accept) == (60, 0.7)


def test_a_step_of_the_warm_up_keeps_nothing_but_counts_divergences():
    course, run = counted((2, 3), warm_up=3)
    seen = []
    for _ in range(3):
        run = advance(course, run)
        seen.append((run.steps, run.harmless, run.state.position[0, 0]))
        assert run.kept == run.infos == []
    assert seen == [(1, 0, 1.0), (2, 1, 2.0), (3, 2, 3.0)]
    run = advance(course, run)
    assert (run.steps, run.harmless, len(run.kept), len(run.infos)) == (4, 2, 1, 1)


def test_a_draw_is_the_last_of_its_steps_and_the_sum_of_their_costs():
    course, run = counted((1, 2, 6), thin=3)
    for _ in range(2):
        run = advance(course, run)
    assert (run.steps, run.harmless) == (6, 0)
    for draw, info, place, sums in zip(run.kept, run.infos, (3, 6), ((6, 2), (15, 1)), strict=True):
        here = course.kernel.init(course.target, np.full((2, 3), float(place)))
        np.testing.assert_array_equal(draw.position, here.position)
        np.testing.assert_array_equal(draw.log_density, here.log_density)
        assert draw.gradient.shape == (0, 3), "which nobody asks for"
        assert info.energy.tolist() == [10 * place] * 2
        assert info.gradients.tolist() == [sums[0]] * 2
        assert info.divergent.tolist() == [0, sums[1]]
    np.testing.assert_array_equal(run.state.position, here.position)


def test_a_mark_brings_back_the_generator_and_the_draws_of_its_moment():
    course, run = counted(())
    run = advance(course, run)
    before = run.rng.bit_generator.state
    mark = Mark.of(run)
    for _ in range(2):
        run = advance(course, run)
        run.rng.random()
    found = mark.restored()
    assert (found.steps, len(found.kept), len(found.infos)) == (1, 1, 1)
    assert found.rng.bit_generator.state == before


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
