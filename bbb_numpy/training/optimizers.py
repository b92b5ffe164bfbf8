"""Update rules and step-size schedules.

A rule is a frozen dataclass of hyperparameters. What it remembers is an `OptimizerState` of flat
arrays, made by `init` and, like theta, updated in place by `update`.

`SGD`, `Momentum` and `Adam` know nothing of what theta means; `IVON` knows that it is a mean field.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from math import cos, pi, sqrt
from typing import ClassVar

import numpy as np

from ..gradients.estimator import GradientEstimator
from ..numeric.deprecation import renamed_names
from ..numeric.elementary import inverse_softplus, softplus_parts
from ..numeric.layout import Array, Layout
from ..numeric.validation import (
    COUNT,
    HasMethods,
    InstanceOf,
    Optional,
    check_fields,
    fraction,
    positive,
)
from ..parts.posteriors import MeanField

__all__ = [
    "IVON",
    "OPTIMIZER",
    "SGD",
    "Adam",
    "Constant",
    "Cosine",
    "Momentum",
    "Optimizer",
    "OptimizerState",
    "StepDecay",
]

# From (epoch, epochs) to the factor on the learning rate; within an epoch `epoch` is a fraction
Schedule = Callable[[float, int], float]


@dataclass(frozen=True)
class Constant:
    """Factor 1 at every step."""

    def __call__(self, epoch: float, epochs: int) -> float:
        return 1.0


@dataclass(frozen=True)
class Cosine:
    """Half a cosine from 1 down to `final` over the whole training.

    Parameters
    ----------
    final : float
        The factor at the end, in [0, 1).
    """

    final: float = 0.0

    def __post_init__(self) -> None:
        check_fields(self, final=fraction)

    def __call__(self, epoch: float, epochs: int) -> float:
        wave = 0.5 * (1.0 + cos(pi * min(epoch / max(epochs, 1), 1.0)))
        return self.final + (1.0 - self.final) * wave


@dataclass(frozen=True)
class StepDecay:
    """Multiply by `factor` after every `every` epochs.

    .. deprecated:: 0.1.0
       `Cosine` falls without a number of epochs to choose; any function of (epoch, epochs) will do.
    """

    every: int = 100
    factor: float = 0.5

    def __post_init__(self) -> None:
        warnings.warn(
            "StepDecay is deprecated and goes with version 0.2. Use Cosine(), or a function of "
            "one's own such as lambda epoch, epochs: 0.5 ** (epoch // 100)",
            FutureWarning,
            stacklevel=3,  # whoever made it, beyond __init__
        )
        check_fields(self, every=COUNT, factor=positive)

    def __call__(self, epoch: float, epochs: int) -> float:
        return float(self.factor ** (int(epoch) // self.every))


@dataclass
class OptimizerState:
    """What a rule remembers: the number of steps taken, and flat arrays by name."""

    steps: int = 0
    arrays: dict[str, Array] = field(default_factory=dict)

    def copy(self) -> OptimizerState:
        """Return an independent copy."""
        return deepcopy(self)


class Optimizer:
    """The base class of update rules: frozen dataclasses with a learning rate and a schedule."""

    learning_rate: float
    schedule: Schedule
    moments: ClassVar[
        tuple[str, ...]
    ] = ()  # names of the arrays like theta in its state

    def __post_init__(self) -> None:
        check_fields(self, learning_rate=positive, schedule=SCHEDULE)

    def init(
        self, theta: Array, estimator: GradientEstimator | None = None
    ) -> OptimizerState:
        """Return the state before the first step.

        Parameters
        ----------
        theta : ndarray
            The state has its shape and dtype.
        estimator : GradientEstimator, optional
            Says what theta holds, for the rules that need it (`IVON`).
        """
        return OptimizerState(0, {name: np.zeros_like(theta) for name in self.moments})

    def update(
        self,
        theta: Array,
        grad: Array,
        state: OptimizerState,
        factor: float,
        scale: float = 1.0,
    ) -> None:
        """Take one step in place.

        Parameters
        ----------
        theta : ndarray
            Is changed.
        grad : ndarray
            The gradient there; it is overwritten.
        state : OptimizerState
            From `init`, and changed by every step since.
        factor : float
            On the learning rate, from the schedule.
        scale : float
            The cost of which `grad` is the gradient, times `scale`, estimates the free energy of
            all data in units of its KL term. Only `IVON` uses it.
        """
        raise NotImplementedError


CLEARING_INTERVAL = 128  # steps between clearings of subnormal numbers


def clear_subnormal(theta: Array, state: OptimizerState) -> None:
    """Set to zero, every 128 steps, numbers below the smallest normal one.

    The moments of a weight behind a dead unit or an input that is always zero decay to such
    numbers and stay there: 0.9 times 4 units of the last place is rounded to 4. So do means that
    a prior pulls to zero. No step is changed that can be seen, but processors need tens of times
    as long for them.

    Parameters
    ----------
    theta : ndarray
    state : OptimizerState
        Its arrays are cleared too; its number of steps says whether it is time.
    """
    if state.steps % CLEARING_INTERVAL == 0:
        for array in (theta, *state.arrays.values()):
            array[np.abs(array) < np.finfo(array.dtype).tiny] = 0.0


OPTIMIZER = HasMethods("Adam(0.05) or SGD(0.01)", "init", "update")
SCHEDULE = HasMethods(
    "Constant() or Cosine(), which give a factor for (epoch, epochs)",
    "__call__",
)


@dataclass(frozen=True)
class SGD(Optimizer):
    """Plain gradient descent, theta <- theta - eta grad (K43 for mu, K44 for rho).

    Parameters
    ----------
    learning_rate : float
        eta > 0. The report: 1e-3.
    schedule : callable
        Factor on eta, from (epoch, epochs).
    """

    learning_rate: float = 1e-3
    schedule: Schedule = Constant()

    def update(
        self,
        theta: Array,
        grad: Array,
        state: OptimizerState,
        factor: float,
        scale: float = 1.0,
    ) -> None:
        state.steps += 1
        grad *= self.learning_rate * factor
        theta -= grad  # K43, K44, G3


@dataclass(frozen=True)
class Momentum(Optimizer):
    """Heavy ball: v <- momentum v + grad; theta <- theta - eta v (D2).

    Parameters
    ----------
    learning_rate : float
        eta > 0.
    momentum : float
        Share of the velocity that a step keeps, in [0, 1).
    schedule : callable
        Factor on eta, from (epoch, epochs).
    """

    learning_rate: float = 1e-3
    momentum: float = 0.9
    schedule: Schedule = Constant()

    moments: ClassVar = ("velocity",)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fields(self, momentum=fraction)

    def update(
        self,
        theta: Array,
        grad: Array,
        state: OptimizerState,
        factor: float,
        scale: float = 1.0,
    ) -> None:
        velocity = state.arrays["velocity"]
        state.steps += 1
        clear_subnormal(theta, state)
        velocity *= self.momentum
        velocity += grad  # D2
        np.multiply(velocity, self.learning_rate * factor, out=grad)
        theta -= grad


@dataclass(frozen=True)
class Adam(Optimizer):
    """Adam (Kingma and Ba 2015) with bias correction (D3).

    Parameters
    ----------
    learning_rate : float
        Step size > 0.
    beta1, beta2 : float
        Decay of the first and second moment, in [0, 1).
    epsilon : float
        Added to the root of the second moment, > 0.
    schedule : callable
        Factor on the learning rate, from (epoch, epochs).
    clip : float, optional
        Bound > 0 on the length of a gradient, in units of the root mean square of the lengths
        before it; longer gradients are shortened to it. By default there is no bound.
    """

    learning_rate: float = 1e-2
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    schedule: Schedule = Constant()
    clip: float | None = None

    moments: ClassVar = ("m", "v")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fields(self, beta1=fraction, beta2=fraction, epsilon=positive)
        check_fields(self, clip=Optional(positive))

    def update(
        self,
        theta: Array,
        grad: Array,
        state: OptimizerState,
        factor: float,
        scale: float = 1.0,
    ) -> None:
        # With M = m / (1 - beta1) and V = v / (1 - beta2), which saves two passes, the rule
        #   m <- beta1 m + (1 - beta1) grad,  v <- beta2 v + (1 - beta2) grad^2
        #   theta <- theta - eta [m / (1 - beta1^t)] / (sqrt(v / (1 - beta2^t)) + epsilon)
        # is M <- beta1 M + grad, V <- beta2 V + grad^2, theta <- theta - rate M / (sqrt(V) + floor)
        m, v = state.arrays["m"], state.arrays["v"]
        # The mean square length is the sum of v / (1 - beta2^t) before this step (D3)
        if self.clip is not None and state.steps:
            unbias_v = (1.0 - self.beta2) / (1.0 - self.beta2**state.steps)
            max_length = self.clip * sqrt(unbias_v * np.add.reduce(v))
            length = sqrt(grad @ grad)
            if length > max_length > 0.0:
                grad *= max_length / length
        state.steps += 1
        unbias_m = (1.0 - self.beta1) / (1.0 - self.beta1**state.steps)
        unbias_root_v = sqrt((1.0 - self.beta2) / (1.0 - self.beta2**state.steps))
        floor = self.epsilon / unbias_root_v
        rate = self.learning_rate * factor * unbias_m / unbias_root_v

        clear_subnormal(theta, state)
        m *= self.beta1
        m += grad
        v *= self.beta2
        np.multiply(grad, grad, out=grad)
        v += grad
        root = np.sqrt(v, out=grad)  # the gradient is spent; its memory is in the cache
        root += floor
        np.divide(m, root, out=root)  # D3
        root *= rate
        theta -= root


@dataclass(frozen=True)
class IVON(Optimizer):
    r"""Natural-gradient steps for a mean field: improved variational online Newton (D61, D62).

    Whatever estimator made the gradient, :math:`\sigma\, \partial F/\partial\sigma` is
    :math:`\sigma^2 h - 1`, with h the curvature of -log P(w, D) averaged over q (Bonnet, Price).
    The precision 1 / sigma^2 follows h and stays positive (Lin et al. 2020), and sigma^2 scales
    the steps of mu (Khan et al. 2018, Shen et al. 2024).

    Parameters
    ----------
    learning_rate : float
        Step size of mu, > 0; at 1 the steps are Newton's.
    beta1, beta2 : float
        Decay of the mean gradient of mu, and of the precision per step, in [0, 1).
    trust : float
        No step of all mu exceeds a KL divergence of trust / scale^(1/2) nats, with the `scale` of
        `update`, the number of minibatches without a warm-up; > 0.
    learned : Adam
        The rule for what prior and likelihood learn, with the factors of this `schedule`.
    schedule : callable
        Factor on the learning rates, from (epoch, epochs); the precision keeps its own.
    """

    learning_rate: float = 0.2
    beta1: float = 0.95
    beta2: float = 0.98
    trust: float = 30.0
    learned: Adam = Adam(3e-2)
    schedule: Schedule = Constant()

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fields(
            self,
            trust=positive,
            learned=InstanceOf(Adam),
            beta1=fraction,
            beta2=fraction,
        )

    def init(
        self, theta: Array, estimator: GradientEstimator | None = None
    ) -> OptimizerState:
        """Return the state before the first step.

        Parameters
        ----------
        theta : ndarray
            The state has its dtype.
        estimator : GradientEstimator, optional
            Its posterior must be `MeanField`. Without it theta is mu and rho alone.
        """
        if estimator is not None and not isinstance(estimator.posterior, MeanField):
            raise ValueError(
                f"IVON needs the posterior MeanField(); got {estimator.posterior!r}"
            )
        n_learned = 0
        if estimator is not None:
            n_learned = Layout(estimator.model.learned()).size
        n_weights = (len(theta) - n_learned) // 2
        sizes = {"momentum": n_weights, "m": n_learned, "v": n_learned}
        return OptimizerState(
            0, {name: np.zeros(size, theta.dtype) for name, size in sizes.items()}
        )

    def update(
        self,
        theta: Array,
        grad: Array,
        state: OptimizerState,
        factor: float,
        scale: float = 1.0,
    ) -> None:
        momentum, m, v = (state.arrays[name] for name in ("momentum", "m", "v"))
        ends = (len(momentum), 2 * len(momentum))
        mu, rho, learned = np.split(theta, ends)
        d_mu, d_rho, d_learned = np.split(grad, ends)
        # s = 1 / sigma^2, and by Price's identity scale sigma dF/dsigma = sigma^2 h - 1     D61
        #   s <- s + r (h - s) + r^2 (h - s)^2 / (2 s)  with r = 1 - beta2
        #      = s [1 + (1 + x)^2] / 2                  with x = r (sigma^2 h - 1)           D62
        #   g <- beta1 g + (1 - beta1) scale d_mu,  mu <- mu - eta g / s
        parts = softplus_parts(rho)
        x = np.divide(d_rho, parts.ratio, out=d_rho)  # D61
        x *= scale * (1.0 - self.beta2)
        sigma = parts.softplus / np.sqrt(0.5 + 0.5 * (1.0 + x) ** 2)  # D62
        rho[...] = inverse_softplus(sigma)
        momentum *= self.beta1
        d_mu *= scale * (1.0 - self.beta1)
        momentum += d_mu
        adam_state = OptimizerState(state.steps, {"m": m, "v": v})
        self.learned.update(learned, d_learned, adam_state, factor)
        state.steps = adam_state.steps
        rate = self.learning_rate * factor / (1.0 - self.beta1**state.steps)
        step = np.multiply(momentum, sigma * rate, out=d_mu)  # in units of sigma
        # The KL of the step is half the square of its length; in units of the largest allowed
        kl = float(step @ step) * scale**0.5 / (2.0 * self.trust)
        step *= sigma / sqrt(max(kl, 1.0))
        mu -= step  # D62
        clear_subnormal(theta, state)


NAMED = {
    "optimizer": {"adam": Adam(), "ivon": IVON(), "momentum": Momentum(), "sgd": SGD()},
    "schedule": {"constant": Constant(), "cosine": Cosine()},
}

__getattr__ = renamed_names(__name__, {"Memory": "OptimizerState"})
