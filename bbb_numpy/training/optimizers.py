"""Update rules (optimizers) and learning-rate schedules.

A rule is a frozen dataclass of hyperparameters. Its state is an `OptimizerState` of flat arrays,
made by `init` and, like theta, updated in place by `update`.

`SGD`, `Momentum` and `Adam` treat all of theta alike; `IVON` needs a mean-field posterior.
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
from ..numeric.threads import on_halves
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

# Function from (epoch, epochs) to the factor on the learning rate: `epoch` is the time so far in
# epochs, a fraction within an epoch, and `epochs` their total number
Schedule = Callable[[float, int], float]


@dataclass(frozen=True)
class Constant:
    """Schedule that keeps the learning rate: the factor is 1 at every step."""

    def __call__(self, epoch: float, epochs: int) -> float:
        """Return 1."""
        return 1.0


@dataclass(frozen=True)
class Cosine:
    """Schedule whose factor falls from 1 to `final` along half a cosine, over all epochs.

    Parameters
    ----------
    final : float
        Factor at the end of training, in [0, 1).
    """

    final: float = 0.0

    def __post_init__(self) -> None:
        check_fields(self, final=fraction)

    def __call__(self, epoch: float, epochs: int) -> float:
        """Return the factor at time `epoch`, from 0 to `epochs`."""
        wave = 0.5 * (1.0 + cos(pi * min(epoch / max(epochs, 1), 1.0)))
        return self.final + (1.0 - self.final) * wave


@dataclass(frozen=True)
class StepDecay:
    """Schedule that multiplies the learning rate by `factor` after every `every` epochs.

    .. deprecated:: 0.1.0
       Use `Cosine`, which has no number of epochs to choose, or any function of (epoch, epochs).
    """

    every: int = 100
    factor: float = 0.5

    def __post_init__(self) -> None:
        warnings.warn(
            "StepDecay is deprecated and goes with version 0.2. Use Cosine(), or a function of "
            "one's own such as lambda epoch, epochs: 0.5 ** (epoch // 100)",
            FutureWarning,
            stacklevel=3,  # warn at the caller of the dataclass's __init__
        )
        check_fields(self, every=COUNT, factor=positive)

    def __call__(self, epoch: float, epochs: int) -> float:
        """Return the factor at time `epoch`; the total number `epochs` has no effect."""
        return float(self.factor ** (int(epoch) // self.every))


@dataclass
class OptimizerState:
    """State of an update rule: the number of steps taken, and flat arrays by name."""

    steps: int = 0
    arrays: dict[str, Array] = field(default_factory=dict)

    def copy(self) -> OptimizerState:
        """Return a copy that shares no arrays with this state."""
        return deepcopy(self)


class Optimizer:
    """Base class of update rules, which are dataclasses with a learning rate and a schedule."""

    learning_rate: float
    schedule: Schedule
    # names of the arrays of the state, such as momenta, that have the shape of theta
    moments: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        check_fields(self, learning_rate=positive, schedule=SCHEDULE)

    def init(
        self, theta: Array, estimator: GradientEstimator | None = None
    ) -> OptimizerState:
        """Return the optimizer's state before the first step, with all arrays zero.

        Parameters
        ----------
        theta : ndarray
            Flat parameters, whose shape and dtype the arrays of the state get.
        estimator : GradientEstimator, optional
            Estimator to which theta belongs; only `IVON` uses it.
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
        """Take one step: change `theta` and `state` in place, and overwrite `grad`.

        Parameters
        ----------
        theta : ndarray
            Flat parameters, changed in place.
        grad : ndarray
            Gradient of the cost of a minibatch at theta; it is overwritten.
        state : OptimizerState
            State from `init`, changed in place by every step.
        factor : float
            Factor on the learning rate, from the schedule.
        scale : float
            Factor with which the cost of a minibatch estimates the free energy of all data in
            units of its KL term. Only `IVON` uses it.
        """
        raise NotImplementedError


CLEARING_INTERVAL = 128  # number of steps between two clearings of subnormal numbers


def clear_subnormal(theta: Array, state: OptimizerState) -> None:
    """Set subnormal numbers of `theta` and `state` to zero, in place, in every 128th step.

    The moments of a weight behind a dead unit, or of an input that is always zero, decay to
    subnormal numbers and stay there, because 0.9 times 4 units in the last place rounds to 4. So do
    means that a prior pulls to zero. Such numbers are too small to matter, but arithmetic with them
    takes processors tens of times as long.

    Parameters
    ----------
    theta : ndarray
        Flat parameters, changed in place.
    state : OptimizerState
        State whose arrays are changed in place; its number of steps tells whether to clear.
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
        Learning rate eta > 0. The report that this package implements uses 1e-3.
    schedule : callable
        Function from (epoch, epochs), the time so far and the total time in epochs, to a factor on
        eta.
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
        """Take one step of gradient descent in place; see `Optimizer.update`."""
        state.steps += 1
        grad *= self.learning_rate * factor
        theta -= grad  # theta - learning rate * gradient (K43, K44, G3)


@dataclass(frozen=True)
class Momentum(Optimizer):
    """Heavy-ball gradient descent, v <- momentum v + grad; theta <- theta - eta v (D2).

    Parameters
    ----------
    learning_rate : float
        Learning rate eta > 0.
    momentum : float
        Factor on the velocity v in each step, in [0, 1).
    schedule : callable
        Function from (epoch, epochs), the time so far and the total time in epochs, to a factor on
        eta.
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
        """Take one step with momentum in place; see `Optimizer.update`."""
        velocity = state.arrays["velocity"]
        state.steps += 1
        clear_subnormal(theta, state)
        velocity *= self.momentum
        velocity += grad  # v <- momentum v + grad (D2)
        np.multiply(velocity, self.learning_rate * factor, out=grad)
        theta -= grad


@dataclass(frozen=True)
class Adam(Optimizer):
    """Adam (Kingma and Ba 2015) with bias correction (D3).

    Parameters
    ----------
    learning_rate : float
        Learning rate > 0.
    beta1, beta2 : float
        Decay factors of the first and of the second moment, in [0, 1).
    epsilon : float
        Number > 0 that is added to the square root of the second moment.
    schedule : callable
        Function from (epoch, epochs), the time so far and the total time in epochs, to a factor on
        the learning rate.
    clip : float, optional
        Upper bound > 0 of the norm of a gradient, in units of the root mean square norm of the
        earlier gradients; a longer gradient is scaled down to it. By default there is no bound.
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
        """Take one step of Adam in place; see `Optimizer.update`."""
        # With M = m / (1 - beta1) and V = v / (1 - beta2), which saves two passes, the rule
        #   m <- beta1 m + (1 - beta1) grad,  v <- beta2 v + (1 - beta2) grad^2
        #   theta <- theta - eta [m / (1 - beta1^t)] / (sqrt(v / (1 - beta2^t)) + epsilon)
        # is M <- beta1 M + grad, V <- beta2 V + grad^2, theta <- theta - rate M / (sqrt(V) + floor)
        m, v = state.arrays["m"], state.arrays["v"]
        # the mean squared norm of earlier gradients is the sum of v / (1 - beta2^t) (D3)
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

        def advance(block: slice) -> None:
            m_b, v_b, root = m[..., block], v[..., block], grad[..., block]
            m_b *= self.beta1
            m_b += root
            v_b *= self.beta2
            np.multiply(root, root, out=root)
            v_b += root
            # the gradient is no longer needed, and its memory is in the cache
            np.sqrt(v_b, out=root)
            root += floor
            np.divide(m_b, root, out=root)  # bias-corrected step, up to the rate (D3)
            root *= rate
            theta[..., block] -= root

        on_halves(advance, theta.shape[-1])


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
        Learning rate of mu, > 0; with 1 the steps of mu are Newton steps.
    beta1, beta2 : float
        Decay factors of the mean gradient of mu, and of the precision, in [0, 1).
    trust : float
        Number > 0 that bounds the step of mu: its KL divergence is at most trust / scale^(1/2)
        nats, with the `scale` of `update`, which without a warm-up is the number of minibatches.
    learned : Adam
        Update rule of what prior and likelihood learn, e.g. scales; its learning rate gets the
        factor of the `schedule` given here.
    schedule : callable
        Function from (epoch, epochs) to a factor on the learning rates; the precision does not
        depend on it.
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
        """Return the optimizer's state before the first step, with all arrays zero.

        Parameters
        ----------
        theta : ndarray
            Flat parameters mu, rho and learned scales, whose dtype the state gets.
        estimator : GradientEstimator, optional
            Estimator with the posterior `MeanField`. If it is None, theta has mu and rho alone.

        Raises
        ------
        ValueError
            If the posterior of `estimator` is another one.
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
        """Take one natural-gradient step in place; see `Optimizer.update`."""
        momentum, m, v = (state.arrays[name] for name in ("momentum", "m", "v"))
        ends = (len(momentum), 2 * len(momentum))
        mu, rho, learned = np.split(theta, ends)
        d_mu, d_rho, d_learned = np.split(grad, ends)
        # p = 1 / sigma^2, and by Price's identity scale sigma dF/dsigma = sigma^2 h - 1     D61
        #   p <- p + r (h - p) + r^2 (h - p)^2 / (2 p)  with r = 1 - beta2
        #      = p [1 + (1 + u)^2] / 2                  with u = r (sigma^2 h - 1)           D62
        #   g <- beta1 g + (1 - beta1) scale d_mu,  mu <- mu - eta g / p
        parts = softplus_parts(rho)
        u = np.divide(d_rho, parts.ratio, out=d_rho)  # sigma dF/dsigma (D61)
        u *= scale * (1.0 - self.beta2)
        sigma = parts.softplus / np.sqrt(0.5 + 0.5 * (1.0 + u) ** 2)  # new sigma (D62)
        rho[...] = inverse_softplus(sigma)
        momentum *= self.beta1
        d_mu *= scale * (1.0 - self.beta1)
        momentum += d_mu
        adam_state = OptimizerState(state.steps, {"m": m, "v": v})
        self.learned.update(learned, d_learned, adam_state, factor)
        state.steps = adam_state.steps
        rate = self.learning_rate * factor / (1.0 - self.beta1**state.steps)
        step = np.multiply(momentum, sigma * rate, out=d_mu)  # step in units of sigma
        # the KL divergence of the step, half its squared norm, in units of the largest allowed one
        kl = float(step @ step) * scale**0.5 / (2.0 * self.trust)
        step *= sigma / sqrt(max(kl, 1.0))
        mu -= step  # natural-gradient step of the means (D62)
        clear_subnormal(theta, state)


NAMED = {
    "optimizer": {"adam": Adam(), "ivon": IVON(), "momentum": Momentum(), "sgd": SGD()},
    "schedule": {"constant": Constant(), "cosine": Cosine()},
}

__getattr__ = renamed_names(__name__, {"Memory": "OptimizerState"})
