"""Every outcome of a kernel's step with its exact probability, on the shipped code.

A kernel asks its generator for two kinds of numbers. Normal numbers are points of a space: they
are given, and have a density. A uniform or an exponential number is only ever compared with a
limit: the comparison is a decision, whose probability the limit says. The generators here deal out
the normals, let every chain of one step answer the decisions in its own way, and keep the
probability of these answers: a chain is a path of decisions, and one step takes all of them.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

# --- generators that deal out decisions ------------------------------------------------------


@dataclass(frozen=True)
class Number:
    """A random number that can only be compared; P(number < limit) and P(number > limit)."""

    below: Callable
    above: Callable
    decide: Callable  # probabilities -> answers, one for each chain
    __array_ufunc__ = None  # an array on the left leaves the comparison to this class

    def __neg__(self):
        return Number(lambda c: self.above(-c), lambda c: self.below(-c), self.decide)

    def __lt__(self, limit):
        return self._compared(self.below, limit)

    def __gt__(self, limit):
        return self._compared(self.above, limit)

    def _compared(self, chance, limit):
        limit = np.asarray(limit, float)
        nothing = np.isnan(limit)  # no number is less than nan, none is greater
        return self.decide(np.where(nothing, 0.0, chance(np.where(nothing, 0.0, limit))))


def uniform(decide):
    return Number(lambda c: np.clip(c, 0.0, 1.0), lambda c: np.clip(1.0 - c, 0.0, 1.0), decide)


def exponential(decide):
    return Number(
        lambda c: -np.expm1(-np.maximum(c, 0.0)), lambda c: np.exp(-np.maximum(c, 0.0)), decide
    )


class Dealer:
    """Deals given normals (S, D); answers (S,) to every comparison are those of `decide`."""

    def __init__(self, normals):
        self.normals = normals
        self.probability = np.ones(len(normals))

    @property
    def chances(self):
        """Probability (S,) of each path of decisions."""
        return self.probability

    def standard_normal(self, shape, dtype=float):
        assert shape == self.normals.shape
        return self.normals.copy()

    def standard_exponential(self, size):
        if size == 0:  # a new half that turned back: there is nothing to decide
            return np.zeros(0)
        assert size == len(self.normals), "a chain went a way of its own"
        return exponential(self.decide)

    def decide(self, chance):
        raise NotImplementedError

    def counted(self, yes, chance):
        """Return the answers; the probability of every chain is multiplied by that of its own."""
        self.probability = self.probability * np.where(yes, chance, 1.0 - chance)
        return yes


class Answering(Dealer):
    """All decisions are answered with the given ones (S,) in turn; `spread` is the uniform."""

    def __init__(self, normals, *answers, spread=None):
        super().__init__(normals)
        self.answers = iter(answers)
        self.spread = spread

    def random(self):
        return self.spread

    def decide(self, chance):
        return self.counted(next(self.answers), chance)


class Growing(Dealer):
    """For NUTS: all chains grow the same trajectory, in given directions of time."""

    def __init__(self, normals, forwards, chains):
        super().__init__(np.repeat(normals[None], chains, axis=0))
        self.forwards = forwards
        self.used = 0

    def random(self, size):
        assert size == len(self.normals), "a chain went a way of its own"
        direction = self.forwards[self.used]
        self.used += 1
        return uniform(lambda chance: self.counted(np.full(size, direction), chance))

    def decide(self, chance):
        assert np.ptp(chance) < 1e-12, "the chance of a decision depends on decisions before it"
        return self.answered(chance)

    def answered(self, chance):
        raise NotImplementedError


class AllPaths(Growing):
    """2^T chains take all paths of T decisions; those that are certain are not counted."""

    def __init__(self, normals, forwards):
        decisions = 2 ** len(forwards) - 1
        super().__init__(normals, forwards, 2**decisions)
        self.bits = np.arange(2**decisions)
        self.at = 0
        self.probability /= 2**decisions

    def answered(self, chance):
        if np.all(chance == 0.0) or np.all(chance == 1.0):
            return chance == 1.0
        yes = (self.bits >> self.at) & 1 == 1
        self.at += 1
        self.probability *= 2.0  # half of the chains go each way
        return self.counted(yes, chance)


class OneChainForEachLeaf(Growing):
    """2^depth chains: one stays, and for each new leaf one ends there.

    The last yes decides. So the chain of a leaf says yes to it, no to all later leaves of the same
    doubling, yes to that doubling and no to all later ones. Whatever it says elsewhere is
    overwritten, and not counted: the probabilities of yes and no add up to 1. (Elsewhere it says
    yes and no in turn. That this is the sum over all paths is tested with `AllPaths`.)
    """

    def __init__(self, normals, forwards):
        chain = np.arange(2 ** len(forwards))
        super().__init__(normals, forwards, len(chain))
        self.level = np.frexp(chain)[1] - 1  # the leaves of doubling l have the numbers 2^l + i
        self.leaf = chain - 2 ** np.maximum(self.level, 0)
        self.doubling = 0
        self.inside = False
        self.at = 0
        self.arrived = self.level < 0  # those whose half was kept
        self.elsewhere = np.arange(len(chain)) % 2 == 0

    @property
    def chances(self):
        return np.where(self.arrived, self.probability, 0.0)

    def answered(self, chance):
        mine = self.level == self.doubling
        if not self.inside:  # between the halves
            matters, yes = self.level <= self.doubling, mine
            self.arrived = self.arrived | mine
        else:
            matters, yes = mine & (self.leaf <= self.at), mine & (self.leaf == self.at)
            self.at += 1
        self.elsewhere = ~self.elsewhere
        return np.where(matters, self.counted(yes, np.where(matters, chance, yes)), self.elsewhere)

    def enter(self, level):
        self.doubling = level
        self.inside = True
        self.at = 0

    def leave(self):
        self.inside = False


def telling(kernel):
    """Return a class of NUTS that tells its generator when it is inside a new half."""

    class Telling(kernel):
        def _subtree(self, target, rng, metric, phase, sign, h0, level):
            rng.enter(level)
            tree = super()._subtree(target, rng, metric, phase, sign, h0, level)
            rng.leave()
            return tree

    return Telling


# --- orbits ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Orbit:
    """Points -R .. R of the leapfrog, stored one after the other; point 0 in the middle."""

    positions: np.ndarray  # (2 R + 1, D)
    momenta: np.ndarray  # (2 R + 1, D)
    log_density: np.ndarray  # (2 R + 1,)
    gradients: np.ndarray  # (2 R + 1, D)

    @property
    def reach(self):
        return len(self.positions) // 2

    def find(self, positions):
        """Return the number of the point at each position (S, D), from 0 on; -1 without one."""
        with np.errstate(invalid="ignore"):  # of two points at infinity
            gaps = np.abs(positions[:, None] - self.positions).max(axis=2)
        gaps = np.where(np.isnan(gaps), np.inf, gaps)
        near = np.argmin(gaps, axis=1)
        return np.where(np.min(gaps, axis=1) < 1e-9, near, -1)


def orbit(target, covariance, position, momentum, eps, reach):
    """Return points of leapfrog paths, by its three lines alone; `covariance` (D, D) is M^-1."""
    points = []
    for sign in (-1.0, 1.0):
        q, r = position, momentum
        value, slope = (part[0] for part in target(q[None]))
        points.append([(q, r, value, slope)])
        for _ in range(reach):
            r = r + 0.5 * sign * eps * slope
            q = q + sign * eps * covariance @ r
            value, slope = (part[0] for part in target(q[None]))
            r = r + 0.5 * sign * eps * slope
            points[-1].append((q, r, value, slope))
    return Orbit(*(np.array(part) for part in zip(*points[0][:0:-1], *points[1], strict=True)))


def normals_of(metric, momenta):
    """Return the normal numbers (S, D) from which `metric` draws these momenta."""
    size = momenta.shape[1]
    rows = metric.draw_momentum(Dealer(np.eye(size)), np.zeros((size, size)))
    return np.linalg.solve(rows.T, momenta.T).T
