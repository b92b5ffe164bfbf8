"""Targets with exact draws, planted errors, and how far a kernel leaves a target from itself.

Every target maps its draws to independent standard normal numbers (`standardise`), so that one
set of statistics serves them all.
"""

import os
import signal
import threading
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import special

from bbb_numpy import MLP, GaussianLikelihood, GaussianPrior, Model
from bbb_numpy.model.log_joint import LogJoint
from bbb_numpy.sampling.mcmc import leapfrog


@dataclass(frozen=True, eq=False)
class Gaussian:
    """N(mean, covariance); complex-safe."""

    covariance: np.ndarray
    mean: float = 0.0

    @cached_property
    def factor(self):
        return np.linalg.cholesky(self.covariance)

    @cached_property
    def precision(self):
        return np.linalg.inv(self.covariance)

    def __call__(self, position):
        gap = position - self.mean
        gradient = -gap @ self.precision.astype(position.dtype)
        return 0.5 * np.sum(gap * gradient, axis=1), gradient

    def draw(self, rng, chains):
        return self.mean + rng.standard_normal((chains, len(self.factor))) @ self.factor.T

    def standardise(self, position):
        return np.linalg.solve(self.factor, (position - self.mean).T).T


def correlated(correlation=0.9, deviations=(1.0, 0.3, 3.0), mean=0.0):
    """Return a Gaussian whose coordinates are correlated and of different size."""
    deviations = np.array(deviations)
    size = len(deviations)
    correlations = np.full((size, size), correlation) + (1 - correlation) * np.eye(size)
    return Gaussian(correlations * np.outer(deviations, deviations), mean)


@dataclass(frozen=True)
class Funnel:
    """Neal's: v ~ N(0, width^2), the others N(0, e^v) given v; hardest where v is low."""

    size: int = 3
    width: float = 3.0

    def __call__(self, position):
        v, x = position[:, 0], position[:, 1:]
        precision = np.exp(-v)
        squares = precision * np.sum(x * x, axis=1)
        value = -0.5 * (v / self.width) ** 2 - 0.5 * squares - 0.5 * (self.size - 1) * v
        slope = -v / self.width**2 + 0.5 * squares - 0.5 * (self.size - 1)
        return value, np.concatenate([slope[:, None], -x * precision[:, None]], axis=1)

    def draw(self, rng, chains):
        return self.place(rng.standard_normal((chains, self.size)))

    def place(self, z):
        """Return the funnel from standard normal numbers: its non-centred form."""
        v = self.width * z[..., :1]
        return np.concatenate([v, np.exp(0.5 * v) * z[..., 1:]], axis=-1)

    def standardise(self, position):
        v, x = position[:, :1], position[:, 1:]
        return np.concatenate([v / self.width, x * np.exp(-0.5 * v)], axis=1)


@dataclass(frozen=True)
class Banana:
    """x ~ N(0, 1), y ~ N(x^2, width^2) given x: a ridge that bends."""

    width: float = 0.5

    def __call__(self, position):
        x, y = position.T
        miss = (y - x * x) / self.width**2
        value = -0.5 * x * x - 0.5 * (y - x * x) * miss
        return value, np.stack([-x + 2 * x * miss, -miss], axis=1)

    def draw(self, rng, chains):
        x, z = rng.standard_normal((2, chains))
        return np.stack([x, x * x + self.width * z], axis=1)

    def standardise(self, position):
        x, y = position.T
        return np.stack([x, (y - x * x) / self.width], axis=1)


@dataclass(frozen=True)
class Gammas:
    """Two independent Gamma(shape, 1) numbers: positive, skewed."""

    shape: float = 2.5

    def __call__(self, position):
        inside = (position > 0).all(axis=1)
        x = np.where(inside[:, None], position, 1.0)
        value = np.sum((self.shape - 1) * np.log(x) - x, axis=1)
        gradient = (self.shape - 1) / x - 1.0
        return np.where(inside, value, -np.inf), np.where(inside[:, None], gradient, 0.0)

    def draw(self, rng, chains):
        return rng.gamma(self.shape, size=(chains, 2))

    def standardise(self, position):
        return special.ndtri(special.gammainc(self.shape, position))


def network_target(seed=0, rows=12, **options):
    """Return the posterior of a tanh network with learned noise and prior scales, and data."""
    rng = np.random.default_rng(seed)
    model = Model(MLP((2, 3, 1), "tanh"), GaussianPrior(learn=True), GaussianLikelihood(0.3, True))
    x = rng.standard_normal((rows, 2))
    y = np.sin(x[:, :1]) + 0.3 * rng.standard_normal((rows, 1))
    return LogJoint(model, x, y, **options)


def moved(kernel, target, position, rng, steps):
    """Return the chains from `position`, some steps later."""
    state = kernel.init(target, position)
    for _ in range(steps):
        state, _ = kernel.step(target, rng, state)
    return state.position


def departure(z):
    """Return the largest z-score of any statistic of (S, D) that should be standard normal.

    Means, squares and products against 0, 1 and 0 with their exact standard errors, and the
    Kolmogorov-Smirnov p-value of every coordinate as a two-sided z-score.
    """
    from scipy import stats  # slow to import, for processes that only evaluate a target

    count, size = z.shape
    scores = [z.mean(axis=0), (z * z - 1).mean(axis=0) / np.sqrt(2)]
    scores += [(z[:, [i]] * z[:, i + 1 :]).mean(axis=0) for i in range(size - 1)]
    z_scores = np.abs(np.concatenate(scores)) * np.sqrt(count)
    ranks = [special.ndtri(1 - 0.5 * stats.kstest(c, "norm").pvalue) for c in z.T]
    return max(z_scores.max(), *ranks)


def change(kernel, target, chains=4000, steps=4, seed=0):
    """Return how far `steps` steps lead exact draws of the target away from it, as a z-score.

    A kernel that leaves the target invariant gives draws of it again, whatever its step size:
    nothing has to converge.
    """
    rng = np.random.default_rng(seed)
    start = target.draw(rng, chains)
    return departure(target.standardise(moved(kernel, target, start, rng, steps)))


def chain_means(values):
    """Return mean and standard error of draws (T, S, ...) from the scatter of S chain means."""
    means = values.mean(axis=0)
    return means.mean(axis=0), means.std(axis=0, ddof=1) / np.sqrt(len(means))


def path(target, metric, phase, step_size, steps):
    """Take leapfrog steps."""
    for _ in range(steps):
        phase = leapfrog(target, metric, phase, step_size)
    return phase


@dataclass(frozen=True, eq=False)
class Elsewhere:
    """A standard Gaussian which in any process but `home` does something else at a late call."""

    home: int  # process id
    does: str  # "dies" or "raises"

    @cached_property
    def calls(self):
        return [0]

    def __call__(self, position):
        self.calls[0] += 1
        if self.calls[0] > 30 and os.getpid() != self.home:
            if self.does == "dies":
                os.kill(os.getpid(), signal.SIGKILL)
            raise ArithmeticError("no such density")
        return -0.5 * (position**2).sum(axis=1), -position


def survives_ctrl_c(_):
    """Whether this process goes on when it is interrupted, and would not even hear it."""
    os.kill(os.getpid(), signal.SIGINT)
    return signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, [])


def watches_its_parent(_):
    """Whether this process ends with the one that started it."""
    return "exit_with_parent" in [thread.name for thread in threading.enumerate()]


def same_bits(a, b):
    """Assert that two `Draws` are the same, bit for bit."""
    assert a.positions.tobytes() == b.positions.tobytes()
    assert a.log_density.tobytes() == b.log_density.tobytes()
    assert a.stats.keys() == b.stats.keys()
    for name in a.stats:
        assert a.stats[name].tobytes() == b.stats[name].tobytes(), name
    for mine, theirs in zip(a.kernels, b.kernels, strict=True):
        sizes = [getattr(kernel, "step_size", np.nan) for kernel in (mine, theirs)]
        np.testing.assert_array_equal(*sizes)
        if getattr(mine, "metric", None) is not None:
            like = np.eye(a.positions.shape[2])
            np.testing.assert_array_equal(mine.metric.velocity(like), theirs.metric.velocity(like))
    ends = [(draws.finished, draws.warm_up, draws.warm_up_divergent) for draws in (a, b)]
    assert ends[0] == ends[1]
