"""The slice form of NUTS beside the multinomial one, by enumeration in fractions (D52).

An orbit is a row of points with weights e^-H; which stretches of it turn back is any set. That is
all that M10 uses of the dynamics, so what holds here for random weights and sets holds for NUTS.
"""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

DEPTH = 3
REACH = 2**DEPTH - 1


class Orbit:
    """Points -R .. R, their weights, and the stretches that turn back."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        self.points = range(-2 * REACH, 2 * REACH + 1)
        self.weight = {k: Fraction(int(rng.integers(1, 40)), 20) for k in self.points}
        self.turning = {
            (low, low + length - 1)
            for length in (2, 4, 8)
            for low in self.points
            if rng.random() < 0.2
        }
        self.far = Fraction(1, 15)  # a point whose weight is so much below u has diverged

    def turns(self, low, high, u):
        """Whether a stretch turns back as a whole; of a point, whether it diverges from u."""
        return self.weight[low] < self.far * u if low == high else (low, high) in self.turning

    def fails(self, low, high, u):
        """Whether any subtree of a new half turns back, itself included."""
        if self.turns(low, high, u):
            return True
        middle = (low + high) // 2
        return low < high and (self.fails(low, middle, u) or self.fails(middle + 1, high, u))

    def trajectories(self, start, u):
        """P(t | start, u) of every final stretch t = (low, high) (M10, steps 1 and 2)."""
        found = {}

        def grow(low, high, level, chance):
            if level == DEPTH:
                found[low, high] = found.get((low, high), 0) + chance
                return
            size = high - low + 1
            for new in ((high + 1, high + size), (low - size, low - 1)):
                both = min(low, new[0]), max(high, new[1])
                failed = self.fails(*new, u)
                end = failed or self.turns(*both, u)
                kept = (low, high) if failed else both
                grow(*kept, DEPTH if end else level + 1, chance / 2)

        grow(start, start, 0, Fraction(1))
        return found


def by_weight(start, low, high, weight):
    """Any point of t in proportion to its weight."""
    total = sum(weight(k) for k in range(low, high + 1))
    return {k: weight(k) / total for k in range(low, high + 1)}


def progressively(start, low, high, weight):
    """Half by half, to the new one with probability min(1, W_new / W_old) (M10, step 6)."""
    if low == high:
        return {start: Fraction(1)}
    middle = (low + high) // 2
    halves = (low, middle), (middle + 1, high)
    old, new = halves if start <= middle else halves[::-1]
    gain = sum(weight(k) for k in range(new[0], new[1] + 1))
    move = min(1, gain / sum(weight(k) for k in range(old[0], old[1] + 1)))
    chosen = {k: (1 - move) * p for k, p in progressively(start, *old, weight).items()}
    if gain:
        chosen |= {k: move * p for k, p in by_weight(start, *new, weight).items()}
    return chosen


def added(rows):
    """Sum of (factor, {point: probability})."""
    total = {}
    for factor, row in rows:
        for k, p in row.items():
            total[k] = total.get(k, 0) + factor * p
    return total


def slice_step(orbit, start, choose):
    """P(start -> .): u uniform below the weight; nothing changes between two levels of u."""
    levels = sorted(
        {Fraction(0), *orbit.weight.values(), *(w / orbit.far for w in orbit.weight.values())}
    )
    mine = orbit.weight[start]
    rows = []
    for below, u in pairwise(level for level in levels if level <= mine):

        def candidate(k, u=u):
            return Fraction(orbit.weight[k] >= u)

        for t, chance in orbit.trajectories(start, u).items():
            rows.append(((u - below) / mine * chance, choose(start, *t, candidate)))
    return added(rows)


def multinomial_step(orbit, start, choose):
    """P(start -> .) with the weights themselves."""
    trajectories = orbit.trajectories(start, Fraction(0)).items()
    return added((chance, choose(start, *t, orbit.weight.get)) for t, chance in trajectories)


def inflow(orbit, step):
    """What arrives at point 0, over its weight."""
    rows = {k: step(orbit, k) for k in range(-REACH, REACH + 1)}
    assert all(sum(row.values()) == 1 for row in rows.values())
    return sum(orbit.weight[k] * row.get(0, 0) for k, row in rows.items()) / orbit.weight[0]


FORMS = {
    "slice, any candidate": lambda orbit, k: slice_step(orbit, k, by_weight),
    "slice, half by half": lambda orbit, k: slice_step(orbit, k, progressively),
    "by weight": lambda orbit, k: multinomial_step(orbit, k, by_weight),
    "by weight, half by half": lambda orbit, k: multinomial_step(orbit, k, progressively),
}


@pytest.mark.equation("D52")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("seed", range(3))
def test_both_forms_of_nuts_leave_the_weights_of_an_orbit_invariant(form, seed):
    """Exactly: fractions, all directions, all intervals of u between two weights."""
    assert inflow(Orbit(seed), FORMS[form]) == 1


def on_one_trajectory(weights):
    """P_slice and P_multinomial (n, n) on n points that are one trajectory, any candidate."""
    levels = [Fraction(0), *sorted(set(weights))]
    slices = [
        [
            sum(
                (u - below) / mine / sum(w >= u for w in weights)
                for below, u in pairwise(levels)
                if u <= min(mine, other)
            )
            for other in weights
        ]
        for mine in weights
    ]
    return slices, [[other / sum(weights) for other in weights]] * len(weights)


@pytest.mark.equation("D52")
@pytest.mark.parametrize("seed", range(4))
def test_what_is_equal_in_the_two_forms_and_what_is_not(seed):
    rng = np.random.default_rng(seed)
    weights = [Fraction(int(k), 7) for k in rng.permutation(np.arange(1, 30))[:8]]
    slices, drawn = on_one_trajectory(weights)
    total, points = sum(weights), range(8)
    for matrix in (slices, drawn):  # both in detailed balance
        for i in points:
            assert sum(matrix[i]) == 1
            assert all(weights[i] * matrix[i][j] == weights[j] * matrix[j][i] for j in points)
    assert slices != drawn
    # u drawn from its marginal over the trajectory, n(u) / W, gives the weights themselves
    levels = [Fraction(0), *sorted(set(weights))]
    for j in points:
        marginal = 0
        for below, u in pairwise(levels):
            count = sum(w >= u for w in weights)
            marginal += (u - below) * Fraction(count) / total * (weights[j] >= u) / count
        assert marginal == weights[j] / total == drawn[0][j]
    # the slice form remembers more, of any function: E[f(z) f(z')] - E[f]^2 = Var E[f | u] >= 0
    f = [Fraction(int(k), 3) for k in rng.integers(-9, 10, 8)]
    mean = sum(w * each for w, each in zip(weights, f, strict=True)) / total
    covariance = (
        sum(weights[i] * slices[i][j] * f[i] * f[j] for i in points for j in points) / total
        - mean**2
    )
    spread = 0
    for below, u in pairwise(levels):
        inside = [each for w, each in zip(weights, f, strict=True) if w >= u]
        spread += (u - below) * len(inside) / total * (sum(inside) / len(inside) - mean) ** 2
    assert covariance == spread > 0
