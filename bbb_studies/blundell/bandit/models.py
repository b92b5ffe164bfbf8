"""The mushroom bandit of Blundell et al. (2015, Section 5.3): its game and its players.

A mushroom is shown and eaten or not. Eating an edible one pays 5, a poisonous one -35 or 5 with
probability 1/2 each, so -15 on average; leaving it pays 0. A network maps features and action to
the expected reward, and learns from the last 4096 interactions.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbb_numpy.gradients.catalogue import Estimator
from bbb_numpy.gradients.closed_form import ClosedFormKL
from bbb_numpy.gradients.reparameterised import Reparameterised
from bbb_numpy.model.joint import Model
from bbb_numpy.model.objectives import MLE
from bbb_numpy.numeric.buffers import Buffers
from bbb_numpy.numeric.validation import fraction, positive, whole
from bbb_numpy.parts.likelihoods import GaussianLikelihood
from bbb_numpy.parts.network import MLP
from bbb_numpy.parts.posteriors import MeanField, PointMass
from bbb_numpy.parts.priors import GaussianPrior
from bbb_numpy.training import start
from bbb_numpy.training.optimizers import Adam
from bbb_numpy.training.state import Training

__all__ = [
    "AGENTS",
    "FULL",
    "Agent",
    "Game",
    "Settings",
    "State",
    "begin",
    "build",
    "game",
    "kl_share",
    "play",
    "regret",
    "training_steps",
]

Array = NDArray[Any]
GOOD, BAD = 5.0, -35.0  # rewards of eating
LOSS = -0.5 * (GOOD + BAD)  # 15: what eating a poisonous mushroom costs on average


@dataclass(frozen=True)
class Agent:
    """A player.

    Parameters
    ----------
    name : str
    looks : int
        Weight vectors drawn from the posterior for one decision, whose outputs are averaged;
        one is Thompson sampling, 0 is a point estimate.
    epsilon : float
        Probability of an action at random.
    """

    name: str
    looks: int = 0
    epsilon: float = 0.0


AGENTS = (
    Agent("Thompson sampling", looks=1),
    Agent("two weights averaged", looks=2),  # as in the paper
    Agent("greedy"),
    Agent("1 % greedy", epsilon=0.01),
    Agent("5 % greedy", epsilon=0.05),
)
FULL = tuple(agent for agent in AGENTS if agent.looks != 2)  # for the paper's budget


@dataclass(frozen=True)
class Settings:
    """How long, how large, how trained; all rewards in the units of the game.

    Parameters
    ----------
    interactions, runs : int
        Mushrooms per run, and independent runs of every agent.
    hidden : tuple of int
        Widths of the hidden layers, ReLU.
    memory, batch, steps : int
        Interactions kept; rows of a minibatch; minibatches per training.
    dense, sparse : int
        Training follows each of the first `dense` interactions, then every `sparse`-th.
    noise : float
        Deviation of the Gaussian likelihood, in units of reward.
    prior_scale, rho : float
        Deviation of the prior of all weights; rho at the start of q, sigma = softplus(rho).
    learning_rate, point_learning_rate : float
        Of Adam, for q and for the point estimates.
    """

    interactions: int = 50_000
    runs: int = 3
    hidden: tuple[int, ...] = (100, 100)
    memory: int = 4096
    batch: int = 64
    steps: int = 64
    dense: int = 1500
    sparse: int = 32
    noise: float = 0.5
    prior_scale: float = 0.3
    rho: float = -4.0
    learning_rate: float = 1e-3
    point_learning_rate: float = 1e-3

    def __post_init__(self) -> None:
        for name in ("interactions", "runs", "memory", "batch", "steps", "sparse"):
            whole(name, getattr(self, name), 1)
        whole("dense", self.dense, 0)
        for name in ("noise", "prior_scale", "learning_rate", "point_learning_rate"):
            positive(name, getattr(self, name))


class Game(NamedTuple):
    """One run's mushrooms, the same for every agent, and what eating each of them pays."""

    inputs: Array  # (2N, D + 2) float32  row 2i: mushroom i not eaten, row 2i + 1: eaten
    shown: NDArray[np.int_]  # (T,)  number of the mushroom
    poisonous: NDArray[np.bool_]  # (T,)
    payoff: Array  # (T,) float32  reward if eaten


@dataclass
class State:
    """Everything that playing changes."""

    played: int
    ate: NDArray[np.bool_]  # (T,)  the first `played` have happened
    training: Training
    rng: np.random.Generator


def game(x: Array, poisonous: NDArray[np.bool_], interactions: int, seed: tuple[int, ...]) -> Game:
    """Draw mushrooms with replacement, and the luck of eating the poisonous ones.

    Parameters
    ----------
    x : ndarray (N, D)
    poisonous : ndarray (N,) bool
    interactions : int
        T. A longer game begins like a shorter one.
    seed : tuple of int
    """
    eye = np.eye(2, dtype=np.float32)  # the action, one of two: leave, eat
    inputs = np.concatenate([np.repeat(x, 2, axis=0), np.tile(eye, (len(x), 1))], axis=1)
    which, luck = np.random.default_rng(seed).spawn(2)
    shown = which.integers(len(x), size=interactions)
    bad = poisonous[shown] & (luck.random(interactions) < 0.5)
    payoff = np.where(bad, BAD, GOOD).astype(np.float32)
    return Game(np.ascontiguousarray(inputs, np.float32), shown, poisonous[shown], payoff)


def regret(played: Game, ate: NDArray[np.bool_], realised: bool = False) -> Array:
    """Return the regret (T,) of each interaction against the oracle, who eats edible ones only.

    Parameters
    ----------
    realised : bool
        The oracle's reward minus the reward received, as in the paper: -5 when eating a
        poisonous mushroom ends well. Otherwise the difference of the expected rewards, which has
        the same mean, less noise, and is never negative: 5 for an edible mushroom left, 15 for a
        poisonous one eaten.
    """
    best = np.where(played.poisonous, 0.0, GOOD)
    got = played.payoff if realised else np.where(played.poisonous, -LOSS, GOOD)
    return best - np.where(ate, got, 0.0)


def build(agent: Agent, settings: Settings, inputs: int) -> Estimator:
    """Return the network of an agent: mean field by Bayes by Backprop, or maximum likelihood."""
    fraction("epsilon", agent.epsilon)
    whole("looks", agent.looks, 0)
    model = Model(
        MLP((inputs, *settings.hidden, 1)),
        GaussianPrior(settings.prior_scale),
        GaussianLikelihood(settings.noise),
    )
    if agent.looks:
        return ClosedFormKL(model, MeanField(0.1, settings.rho))
    return Reparameterised(model, PointMass(0.1), MLE())


def _optimizer(agent: Agent, settings: Settings) -> Adam:
    return Adam(settings.learning_rate if agent.looks else settings.point_learning_rate)


def begin(agent: Agent, settings: Settings, inputs: int, seed: tuple[int, ...]) -> State:
    """Return the state before the first mushroom."""
    rng = np.random.default_rng(seed)
    training = start(build(agent, settings, inputs), rng, _optimizer(agent, settings), np.float32)
    return State(0, np.zeros(settings.interactions, bool), training, rng)


def kl_share(settings: Settings, remembered: int) -> float:
    """Return the share of KL(q || P(w)) that one minibatch pays.

    The N remembered interactions are the data: F = KL - sum_i log P(y_i|w). Of B rows drawn at
    random with replacement (N / B) sum_b log P(y_b|w) has the mean of that sum, so the minibatch
    costs F times B / N: (B / N) KL - sum_b log P(y_b|w). While N < B this is more than 1.
    """
    return settings.batch / remembered


def training_steps(settings: Settings, played: int) -> int:
    """Return how many minibatches follow interaction number `played`, counted from 1."""
    trains = played <= settings.dense or played % settings.sparse == 0
    return settings.steps if trains else 0


def play(the: Game, agent: Agent, settings: Settings, state: State, until: int) -> None:
    """Play on to interaction `until`, changing `state`.

    Raises
    ------
    FloatingPointError
        If the loss is nan or infinite.
    """
    estimator = build(agent, settings, the.inputs.shape[1])
    optimizer, rng = _optimizer(agent, settings), state.rng
    theta, memory = state.training.theta, state.training.optimizer_state
    buffers, eyes = Buffers(), Buffers()
    noise = np.empty(estimator.noise_shape(1, settings.batch), np.float32)
    taken = 2 * the.shown + state.ate  # row of `inputs`: the mushroom and what was done
    reward = np.where(state.ate, the.payoff, np.float32(0.0))[:, None]
    while state.played < until:
        t = state.played
        state.ate[t] = decide(agent, estimator, theta, the.inputs, the.shown[t], rng, eyes.rewind())
        taken[t], reward[t] = 2 * the.shown[t] + state.ate[t], state.ate[t] * the.payoff[t]
        state.played = t + 1
        oldest = max(0, state.played - settings.memory)
        share = kl_share(settings, state.played - oldest)
        for _ in range(training_steps(settings, state.played)):
            rows = rng.integers(oldest, state.played, settings.batch)
            estimator.fill(rng, noise)
            with np.errstate(over="ignore", invalid="ignore"):  # the next line says it better
                value, grad, _ = estimator.value_and_grad(
                    theta, noise, the.inputs[taken[rows]], reward[rows], share, buffers.rewind()
                )
            if not isfinite(value):
                raise FloatingPointError(
                    f"the loss of {agent.name!r} is {value} after {state.played} interactions; "
                    "lower its learning rate"
                )
            optimizer.update(theta, grad, memory, 1.0)


def decide(
    agent: Agent,
    estimator: Estimator,
    theta: Array,
    inputs: Array,
    mushroom: int,
    rng: np.random.Generator,
    buffers: Buffers,
) -> bool:
    """Return whether the agent eats: the same weights judge both actions; a tie is left."""
    if agent.epsilon and rng.random() < agent.epsilon:
        return bool(rng.integers(2))
    shape = (max(agent.looks, 1), estimator.noise_per_sample)
    noise = estimator.draw_weights(rng, shape[0], out=buffers.array(shape, np.float32))
    blocks = buffers.views(theta, estimator.layout.views)
    w = estimator.posterior.sample(blocks, noise, buffers).w  # (looks, P)
    pair = inputs[2 * mushroom : 2 * mushroom + 2]  # leave, eat
    leave, eat = estimator.model.predict(w, pair, buffers).mean(axis=0)[:, 0].tolist()
    return bool(eat > leave)
