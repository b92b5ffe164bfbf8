"""Exploration by weight uncertainty: the mushroom bandit (Blundell et al. 2015, Section 5.3).

Every agent plays every run, several at a time in processes of joblib's. What it ate is stored when
the run is over, so that a command that was killed goes on with the others.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import isfinite
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter
from numpy.typing import NDArray

from bbb_numpy.gradients.closed_form import ClosedFormKL
from bbb_numpy.gradients.estimator import GradientEstimator as Estimator
from bbb_numpy.gradients.reparameterised import Reparameterised
from bbb_numpy.model.joint import Model
from bbb_numpy.model.objectives import MLE
from bbb_numpy.numeric.buffers import Buffers
from bbb_numpy.numeric.files import write_arrays, write_json, write_text
from bbb_numpy.numeric.reading import read_arrays
from bbb_numpy.parts import network
from bbb_numpy.parts.likelihoods import GaussianLikelihood
from bbb_numpy.parts.network import MLP
from bbb_numpy.parts.posteriors import MeanField, PointMass
from bbb_numpy.parts.priors import GaussianPrior
from bbb_numpy.plots.style import BLACK, BLUE, GREEN, GREY, ORANGE, VERMILLION, finish
from bbb_numpy.training import start
from bbb_numpy.training.optimizers import Adam
from bbb_numpy.training.state import Training
from bbb_studies.data import mushroom
from bbb_studies.data.mushroom import Mushrooms
from bbb_studies.kit import Claim, claims, estimate, listed, panels, text, values
from bbb_studies.processes import in_processes
from bbb_studies.progress import counted, steps

Array = NDArray[Any]
GOOD_REWARD = 5.0  # of eating an edible mushroom, and a poisonous one with luck
BAD_REWARD = -35.0  # of eating a poisonous one without luck
# 15: what eating a poisonous mushroom costs on average
EXPECTED_LOSS = -0.5 * (GOOD_REWARD + BAD_REWARD)


@dataclass(frozen=True)
class Agent:
    """A player: how it chooses between eating a mushroom and leaving it."""

    name: str
    # Weight vectors averaged for one decision: 1 is Thompson sampling, 0 a point estimate
    looks: int = 0
    epsilon: float = 0.0  # probability of an action at random
    # Thompson sampling by a posterior of the last layer alone (D56)
    last_layer: bool = False


AGENTS = (
    Agent("Thompson sampling", looks=1),
    Agent("two weights averaged", looks=2),  # as in the paper
    Agent("greedy"),
    Agent("1 % greedy", epsilon=0.01),
    Agent("5 % greedy", epsilon=0.05),
    # over the features of the greedy one
    Agent("Thompson, last layer", last_layer=True),
)
# Those that play when the network is trained after every mushroom, as in the paper
PAPER_BUDGET_AGENTS = tuple(agent for agent in AGENTS if agent.looks != 2)


@dataclass(frozen=True)
class Settings:
    """Length of the game, network and training; all rewards in the units of the game."""

    interactions: int = 50_000  # mushrooms per run
    runs: int = 3  # of every agent, independent
    hidden: tuple[int, ...] = (100, 100)  # ReLU
    memory: int = 4096  # the last interactions, from which minibatches are drawn
    batch: int = 64  # rows of a minibatch
    steps: int = 64  # minibatches per training
    dense: int = (
        1500  # the network is trained after each of the first `dense` mushrooms,
    )
    sparse: int = 32  # and from then on after every `sparse`-th
    noise: float = 0.5  # standard deviation of the likelihood
    prior_scale: float = 0.3  # standard deviation of the prior of all weights
    rho: float = -4.0  # initial value in q
    learning_rate: float = 1e-3  # of Adam, for q
    point_learning_rate: float = 1e-3  # of Adam, for the point estimates
    last_noise: float = 5.0  # standard deviation of the last layer's likelihood
    last_prior_scale: float = 1.0  # standard deviation of the last layer's prior


class Game(NamedTuple):
    """One run's mushrooms, the same for every agent, and what eating each of them pays."""

    # (2N, D + 2) float32  row 2i: mushroom i not eaten, row 2i + 1: eaten
    inputs: Array
    shown: NDArray[np.int_]  # (T,)  number of the mushroom
    poisonous: NDArray[np.bool_]  # (T,)
    payoff: Array  # (T,) float32  reward if eaten


@dataclass
class State:
    """State of one agent in one run: all that playing changes."""

    played: int
    ate: NDArray[np.bool_]  # (T,)  the first `played` have happened
    training: Training
    rng: np.random.Generator


class LastLayer:
    """The exact posterior of the weights of a network's last layer, given all rewards (D56).

    N(mean, covariance) under Gaussian noise and prior, given the features of a row: the outputs of
    the last hidden layer, and 1. What is forgotten for training is remembered here, as a count and
    a sum of rewards for each row of `inputs`.
    """

    def __init__(self, settings: Settings, net: MLP, inputs: Array) -> None:
        self.net = net
        self.inputs = inputs
        self.variance = settings.last_noise**2
        self.precision = settings.last_prior_scale**-2
        self.count, self.total = np.zeros((2, len(inputs)))

    def features(self, rows: Any) -> Array:
        """Return the features (B, H + 1) of rows of `inputs` by the weights of the last `refit`."""
        _, tape = network.forward(self.net, self.w, self.inputs[rows], Buffers())
        a = tape.inputs[-1]
        a = a.reshape(-1, self.net.sizes[-2]).astype(float)
        return np.hstack([a, np.ones((len(a), 1))])

    def remember(self, rows: Array, rewards: Array) -> None:
        """Add rewards (n,) of rows (n,) of `inputs`, for the next `refit`.

        Parameters
        ----------
        rows : ndarray (n,) of int
            A row may occur more than once.
        rewards : ndarray (n,)
        """
        np.add.at(self.count, rows, 1.0)
        np.add.at(self.total, rows, rewards)

    def refit(self, w: Array) -> None:
        """Compute the posterior of all rewards so far, by the features of weights `w` (P,)."""
        self.w = w[None].copy()
        seen_rows = np.flatnonzero(self.count)
        phi = self.features(seen_rows)
        precision = phi.T @ (phi * self.count[seen_rows, None]) / self.variance  # D56
        precision += self.precision * np.eye(phi.shape[1])
        self.covariance = np.linalg.inv(precision)
        total = phi.T @ self.total[seen_rows]
        self.mean = self.covariance @ total / self.variance  # D56

    def learn(self, row: int, reward: float) -> None:
        """Add the reward of one row of `inputs` to the posterior.

        The result is that of `refit` with the same weights, by a rank-one update of the covariance.

        Parameters
        ----------
        row : int
            Row of `inputs`: a mushroom and what was done with it.
        reward : float
            What was received.
        """
        self.count[row] += 1.0
        self.total[row] += reward
        phi = self.features([row])[0]
        column = self.covariance @ phi
        gain = column / (self.variance + phi @ column)  # D56
        self.mean += gain * (reward - phi @ self.mean)
        self.covariance -= np.outer(gain, column)

    def eats(self, mushroom: int, rng: np.random.Generator) -> bool:
        """Return whether eating this mushroom is better under one draw from the posterior.

        One number is drawn, the difference of the rewards of eating and leaving.

        Parameters
        ----------
        mushroom : int
            Its number.
        rng : numpy.random.Generator
            Of the draw.
        """
        leave, eat = self.features([2 * mushroom, 2 * mushroom + 1])
        difference = eat - leave
        sd = np.sqrt(difference @ self.covariance @ difference)  # D56
        return bool(difference @ self.mean + sd * rng.standard_normal() > 0.0)


def draw_game(
    x: Array, poisonous: NDArray[np.bool_], interactions: int, seed: tuple[int, ...]
) -> Game:
    """Draw the mushrooms of one run with replacement, and what eating each of them pays.

    Parameters
    ----------
    x : ndarray (N, D)
        Features of the mushrooms of the data set.
    poisonous : ndarray (N,) of bool
        Which of them are poisonous.
    interactions : int
        Number of mushrooms shown, T. A longer game begins like a shorter one.
    seed : tuple of int
        Of the order of the mushrooms and of the luck of eating poisonous ones.

    Returns
    -------
    Game
        The inputs of both actions for each mushroom, and T mushrooms with their payoffs.
    """
    eye = np.eye(2, dtype=np.float32)  # the action, one of two: leave, eat
    inputs = np.concatenate(
        [np.repeat(x, 2, axis=0), np.tile(eye, (len(x), 1))], axis=1
    )
    mushroom_rng, luck_rng = np.random.default_rng(seed).spawn(2)
    order = mushroom_rng.integers(len(x), size=interactions)
    ends_badly = poisonous[order] & (luck_rng.random(interactions) < 0.5)
    payoff = np.where(ends_badly, BAD_REWARD, GOOD_REWARD).astype(np.float32)
    return Game(
        np.ascontiguousarray(inputs, np.float32), order, poisonous[order], payoff
    )


def regret(game: Game, ate: NDArray[np.bool_], realised: bool = False) -> Array:
    """Return the regret of each interaction against an oracle that eats edible mushrooms only.

    Parameters
    ----------
    game : Game
        T mushrooms and their payoffs.
    ate : ndarray (T,) of bool
        Whether the agent ate each of them.
    realised : bool
        By default the regret is the difference of the expected rewards: 5 for an edible mushroom
        left, 15 for a poisonous one eaten, never negative. If True it is the oracle's reward minus
        the reward received, as in the paper: the same mean with more noise, and -5 when eating a
        poisonous mushroom ends well.

    Returns
    -------
    ndarray (T,)
        In units of reward.
    """
    oracle_reward = np.where(game.poisonous, 0.0, GOOD_REWARD)
    reward_if_eaten = game.payoff
    if not realised:
        reward_if_eaten = np.where(game.poisonous, -EXPECTED_LOSS, GOOD_REWARD)
    return oracle_reward - np.where(ate, reward_if_eaten, 0.0)


def build(agent: Agent, settings: Settings, n_inputs: int) -> Estimator:
    """Return the gradient estimator by which an agent's network is trained.

    Parameters
    ----------
    agent : Agent
        Trained by Bayes by Backprop with a mean-field posterior if it averages over weights
        (`looks` > 0), else by maximum likelihood.
    settings : Settings
        Width of the network, prior and noise.
    n_inputs : int
        Columns of `Game.inputs`: features of a mushroom and the action.
    """
    model = Model(
        MLP((n_inputs, *settings.hidden, 1)),
        GaussianPrior(settings.prior_scale),
        GaussianLikelihood(settings.noise),
    )
    if agent.looks:
        return ClosedFormKL(model, MeanField(0.1, settings.rho))
    return Reparameterised(model, PointMass(0.1), MLE())


def _optimizer(agent: Agent, settings: Settings) -> Adam:
    if agent.looks:
        return Adam(settings.learning_rate)
    return Adam(settings.point_learning_rate)


def init_state(
    agent: Agent, settings: Settings, n_inputs: int, seed: tuple[int, ...]
) -> State:
    """Return the state of an agent before the first mushroom.

    Parameters
    ----------
    agent, settings : Agent, Settings
        Who plays, and how its network is trained.
    n_inputs : int
        Columns of `Game.inputs`.
    seed : tuple of int
        Of the initial weights and of everything that playing draws.
    """
    rng = np.random.default_rng(seed)
    training = start(
        build(agent, settings, n_inputs), rng, _optimizer(agent, settings), np.float32
    )
    return State(0, np.zeros(settings.interactions, bool), training, rng)


def kl_share(settings: Settings, n_remembered: int) -> float:
    """Return the share of KL(q || P(w)) that one minibatch pays.

    The N remembered interactions are the data: F = KL - sum_i log P(y_i|w). Of B rows drawn at
    random with replacement (N / B) sum_b log P(y_b|w) has the mean of that sum, so the minibatch
    costs F times B / N: (B / N) KL - sum_b log P(y_b|w). While N < B this is more than 1.

    Parameters
    ----------
    settings : Settings
        Whose minibatch has B rows.
    n_remembered : int
        Number of interactions N that training draws from.
    """
    return settings.batch / n_remembered


def play(
    game: Game, agent: Agent, settings: Settings, state: State, until: int
) -> None:
    """Play until `until` mushrooms have been shown, training the agent on the way.

    Parameters
    ----------
    game : Game
        The mushrooms.
    agent, settings : Agent, Settings
        Who plays, and how its network is trained.
    state : State
        Changed in place; playing on from it gives what playing at once would give.
    until : int
        Number of interactions after which to stop, those before this call included.

    Raises
    ------
    FloatingPointError
        If the loss is not finite: the learning rate is too large.
    """
    estimator = build(agent, settings, game.inputs.shape[1])
    optimizer = _optimizer(agent, settings)
    rng = state.rng
    theta = state.training.theta
    optimizer_state = state.training.optimizer_state
    buffers = Buffers()
    decision_buffers = Buffers()
    noise = np.empty(estimator.noise_shape(1, settings.batch), np.float32)
    rows_played = 2 * game.shown + state.ate  # (T,)  rows of `inputs`
    reward = np.where(state.ate, game.payoff, np.float32(0.0))[:, None]
    last_layer = None
    mu = estimator.layout.views(theta)["mu"]
    if agent.last_layer:
        last_layer = LastLayer(settings, estimator.model.network, game.inputs)
        last_layer.remember(rows_played[: state.played], reward[: state.played, 0])
        last_layer.refit(mu)
    while state.played < until:
        t = state.played
        if last_layer is not None:
            state.ate[t] = last_layer.eats(game.shown[t], rng)
        else:
            state.ate[t] = decide(
                agent,
                estimator,
                theta,
                game.inputs,
                game.shown[t],
                rng,
                decision_buffers.rewind(),
            )
        rows_played[t] = 2 * game.shown[t] + state.ate[t]
        reward[t] = state.ate[t] * game.payoff[t]
        state.played = t + 1
        oldest = max(0, state.played - settings.memory)
        share = kl_share(settings, state.played - oldest)
        trains = state.played <= settings.dense or state.played % settings.sparse == 0
        n_steps = settings.steps if trains else 0
        for _ in range(n_steps):
            rows = rng.integers(oldest, state.played, settings.batch)
            estimator.fill(rng, noise)
            # An overflow is reported below, with its cause, not as a warning of NumPy's.
            with np.errstate(over="ignore", invalid="ignore"):
                loss, grad, _ = estimator.value_and_grad(
                    theta,
                    noise,
                    game.inputs[rows_played[rows]],
                    reward[rows],
                    share,
                    buffers.rewind(),
                )
            if not isfinite(loss):
                raise FloatingPointError(
                    f"the loss of {agent.name!r} is {loss} after {state.played} interactions; "
                    "lower its learning rate"
                )
            optimizer.update(theta, grad, optimizer_state, 1.0)
        if last_layer is not None:
            last_layer.learn(rows_played[t], float(reward[t, 0]))
            if trains:
                last_layer.refit(mu)


def decide(
    agent: Agent,
    estimator: Estimator,
    theta: Array,
    inputs: Array,
    mushroom: int,
    rng: np.random.Generator,
    buffers: Buffers,
) -> bool:
    """Return whether the agent eats a mushroom.

    The same weights judge both actions; with equal predictions the mushroom is left.

    Parameters
    ----------
    agent : Agent
        Averages predictions over `looks` draws of the weights, or acts at random with probability
        `epsilon`.
    estimator : GradientEstimator
        As returned by `build`.
    theta : ndarray
        Parameters of the posterior, or the point estimate.
    inputs : ndarray (2N, D + 2)
        See `Game`.
    mushroom : int
        Number of the mushroom, below N.
    rng : numpy.random.Generator
        Draws the weights and the random actions.
    buffers : Buffers
        Memory for the intermediate arrays.
    """
    if agent.epsilon and rng.random() < agent.epsilon:
        return bool(rng.integers(2))
    shape = (max(agent.looks, 1), estimator.noise_per_sample)
    noise = estimator.draw_weights(rng, shape[0], out=buffers.array(shape, np.float32))
    blocks = buffers.views(theta, estimator.layout.views)
    w = estimator.posterior.sample(blocks, noise, buffers).w  # (looks, P)
    pair = inputs[2 * mushroom : 2 * mushroom + 2]  # leave, eat
    leave, eat = estimator.model.predict(w, pair, buffers).mean(axis=0)[:, 0].tolist()
    return bool(eat > leave)


AGENT_STYLES = (
    (BLUE, "-"),
    (BLACK, "--"),
    (VERMILLION, ":"),
    (GREEN, "-."),
    (GREY, (0, (6, 2, 1, 2, 1, 2))),
    (ORANGE, (0, (5, 1))),
)
MAX_CURVE_POINTS = 1000  # of a curve; more cannot be told apart in the picture


def draw_figure(
    settings: Settings, games: Sequence[Game], ate: Mapping[str, Array]
) -> Figure:
    """Draw the cumulative regret over the whole game and over its beginning.

    Parameters
    ----------
    settings : Settings
        Number of interactions and runs.
    games : sequence of Game
        One for each run.
    ate : mapping
        For each agent's name which mushrooms it ate, (runs, T) of bool.
    """
    figure, (a, b) = panels(12.0, 4.8, 1, 2)
    n_interactions = settings.interactions
    n_early = min(max(settings.dense, 1), n_interactions)
    for (name, eaten), (colour, line) in zip(ate.items(), AGENT_STYLES, strict=False):
        costs = np.array(
            [
                np.cumsum(regret(game, regrets))
                for game, regrets in zip(games, eaten, strict=True)
            ]
        )
        for ax, n_last in ((a, n_interactions), (b, n_early)):
            interactions = np.unique(
                np.linspace(1, n_last, min(n_last, MAX_CURVE_POINTS)).astype(int)
            )
            for regrets in costs[:, interactions - 1]:
                ax.plot(interactions, regrets, color=colour, linewidth=0.7, alpha=0.45)
            mean = costs[:, interactions - 1].mean(axis=0)
            ax.plot(
                interactions,
                mean,
                color=colour,
                linestyle=line,
                linewidth=2.0,
                label=name,
            )
    a.set_yscale("log")
    # The regret of the first few mushrooms is luck: on a log scale it would take half the panel.
    a.set_ylim(bottom=max(1.0, a.get_ylim()[1] / 200.0))
    for axis in (a.yaxis, a.xaxis, b.xaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    a.set_xlim(0, n_interactions)
    b.set(xlim=(0, n_early), ylim=(0, None))
    early_label = "the beginning" if n_early < n_interactions else "the same"
    for ax, label in (
        (a, "(a) mean over runs; thin lines: single runs"),
        (b, f"(b) {early_label}, on a linear scale"),
    ):
        ax.grid(color="#DDDDDD", linewidth=0.6)
        finish(
            ax, f"mushrooms shown\n{label}", "cumulative regret (units of reward)", 3
        )
    return figure


Numbers = Mapping[str, Mapping[str, Any]]
THOMPSON = AGENTS[0].name
GREEDY = AGENTS[2].name
OFTEN_RANDOM = AGENTS[4].name
# A stretch without eating counts as "at first" if it starts before this interaction.
FAST_STARTS_BEFORE = 100
# Share of the regret that the last tenth of the game may have for the curve to count as flat: half
# of what a tenth would have if the regret grew evenly.
MAX_FLAT_SHARE = 0.05
# "About" so many mushrooms were shown before the paper's greedy agent first ate one.
PAPER_FAST_LENGTH = 1000


def mean_and_error(values: Sequence[float]) -> tuple[float, float]:
    """Return the mean over runs and its standard error, nan from one run."""
    mean, error = estimate(np.asarray(values, float))
    if len(values) < 2:
        return mean, np.nan
    return mean, error


def lay_out(seed: int, settings: Settings, numbers: Numbers) -> str:
    """Return the tables that are printed: settings, regrets, and which claims of the paper hold.

    Parameters
    ----------
    seed, settings : int, Settings
        Those of `reproduce`.
    numbers : mapping
        The numbers of each agent by its name, as returned by `measure`.
    """
    rivals = [name for name in numbers if name != THOMPSON and THOMPSON in numbers]

    def _share_wrong(
        numbers_of_agent: Mapping[str, Any], action: str, among: str
    ) -> str:
        n_shown = sum(numbers_of_agent[f"{among} shown in the last tenth"])
        wrong = sum(numbers_of_agent[f"{among} {action} in the last tenth"])
        if not n_shown:
            return "none shown"
        return f"{100.0 * wrong / n_shown:.2f} %"

    def agent(numbers_of_agent: Mapping[str, Any]) -> str:
        regret_keys = (
            "regret",
            "realised regret",
            "regret while trained densely",
            "regret of the last tenth",
        )
        regrets = [_pair(*mean_and_error(numbers_of_agent[key])) for key in regret_keys]
        return " | ".join(
            [
                *regrets,
                _share_wrong(numbers_of_agent, "eaten", "poisonous"),
                _share_wrong(numbers_of_agent, "left", "edible"),
            ]
        )

    def excess_regret(name: str) -> str:
        keys = "regret", "regret of the last tenth"
        return " | ".join(_pair(*_gap(numbers, name, key), "+") for key in keys)

    dense = f"first {settings.dense:,}"
    last = f"last {max(settings.interactions // 10, 1):,}"
    return text(
        values(
            "The game and the training; noise in units of reward.",
            "setting",
            {"seed": seed} | asdict(settings),
        ),
        listed(
            "Regret, 5 an edible one left, 15 a poisonous one eaten; mistakes of the last tenth.",
            f"mean +- standard error | regret | realised | {dense} | {last} | poisonous eaten | "
            "edible left",
            numbers,
            agent,
        ),
        listed(
            f"Regret beyond that of {THOMPSON}, run by run: mean +- standard error.",
            "agent | whole game | last tenth",
            zip(rivals, rivals, strict=True),
            excess_regret,
        ),
        claims(
            "Blundell et al. 2015, Section 5.3.",
            "the paper",
            claims_of_the_paper(numbers),
        ),
    )


def _pair(mean: float, error: float, sign: str = "") -> str:
    if np.isnan(error):
        return f"{mean:{sign},.0f}"
    return f"{mean:{sign},.0f} +- {error:,.0f}"


def _gap(numbers: Numbers, name: str, key: str) -> tuple[float, float]:
    """Return the mean regret beyond that of Thompson sampling on the same runs, and its error."""
    return mean_and_error(
        np.subtract(numbers[name][key], numbers[THOMPSON][key]).tolist()
    )


def claims_of_the_paper(numbers: Numbers) -> list[Claim]:
    """Judge the claims of the paper that are about the agents in `numbers`."""
    rows = []
    if {OFTEN_RANDOM, THOMPSON} <= set(numbers):
        mean, error = _gap(numbers, OFTEN_RANDOM, "regret")
        statement = f"{OFTEN_RANDOM} over-explores: regret beyond {THOMPSON}"
        holds = bool(mean > 2 * np.nan_to_num(error))
        rows.append(Claim(statement, "> 0", _pair(mean, error, "+"), holds))
    if THOMPSON in numbers:
        regret = sum(numbers[THOMPSON]["regret"])
        last = sum(numbers[THOMPSON]["regret of the last tenth"])
        share = last / regret if regret else 0.0
        statement = f"regret of {THOMPSON}, share of the last tenth"
        rows.append(
            Claim(statement, "almost flat", f"{share:.1%}", share < MAX_FLAT_SHARE)
        )
    if GREEDY in numbers:
        first_fast = max(
            (
                stop
                for start, stop in numbers[GREEDY]["longest fast"]
                if start < FAST_STARTS_BEFORE
            ),
            default=0,
        )
        holds = first_fast >= PAPER_FAST_LENGTH
        printed = f"about {PAPER_FAST_LENGTH:,}"
        rows.append(
            Claim(f"{GREEDY} eats nothing at first", printed, f"{first_fast:,}", holds)
        )
    return rows


def quick(seed: int) -> dict[str, Any]:
    """Return the arguments of `reproduce` for a quick look: one run of 5,000 mushrooms."""
    return {"seed": seed, "settings": Settings(interactions=5000, runs=1, dense=300)}


def full(seed: int) -> dict[str, Any]:
    """Return the arguments of `reproduce` for training after every mushroom, as in the paper."""
    every = Settings().interactions
    return {
        "seed": seed,
        "settings": Settings(dense=every, sparse=1),
        "agents": PAPER_BUDGET_AGENTS,
    }


def settings_key(
    seed: int, settings: Settings, data: Mushrooms, agents: Sequence[Agent]
) -> str:
    """Return all that the numbers depend on as text, to recognise the runs of a folder.

    Parameters
    ----------
    seed, settings, agents
        Those of `reproduce`.
    data : Mushrooms
        Of which a checksum enters.
    """
    data_checksum = crc32(np.packbits(data.x > 0).tobytes() + data.poisonous.tobytes())
    return json.dumps(
        [seed, asdict(settings), data_checksum, [asdict(agent) for agent in agents]]
    )


def load_or_play_run(
    out: Path, seed: int, settings: Settings, data: Mushrooms, agent: Agent, run: int
) -> dict[str, Array]:
    """Play one run of one agent and store it, or read it if it is stored already.

    Parameters
    ----------
    out : Path
        Folder with a file for each agent and run.
    seed, settings : int, Settings
        Those of `reproduce`.
    data : Mushrooms
        The data set.
    agent, run : Agent, int
        Who plays, and the number of the run. Runs of one number show every agent the same
        mushrooms.

    Returns
    -------
    dict
        ``ate`` (T,) of bool and the ``seconds`` of processor time, ().
    """
    path = out / f"{agent.name.replace(' %', '').replace(' ', '-')}-{run}.npz"
    if path.exists():
        return read_arrays(path, ("ate", "seconds"))
    game = draw_game(data.x, data.poisonous, settings.interactions, (seed, run))
    start_time = process_time()
    # does not depend on which other agents play
    seed_of_agent = (seed, run, crc32(agent.name.encode()))
    state = init_state(agent, settings, game.inputs.shape[1], seed_of_agent)
    play(game, agent, settings, state, settings.interactions)
    results = {"ate": state.ate, "seconds": np.array(process_time() - start_time)}
    write_arrays(path, results)
    return results


def _longest_fast(ate: NDArray[np.bool_]) -> tuple[int, int]:
    """Return the longest stretch without eating as the interactions [first, last + 1)."""
    eaten = np.concatenate([[-1], np.flatnonzero(ate), [len(ate)]])
    longest = int(np.argmax(np.diff(eaten)))
    return int(eaten[longest]) + 1, int(eaten[longest + 1])


def _games(seed: int, settings: Settings, data: Mushrooms) -> list[Game]:
    """Return the mushrooms of every run."""
    return [
        draw_game(data.x, data.poisonous, settings.interactions, (seed, run))
        for run in range(settings.runs)
    ]


def measure(
    seed: int, settings: Settings, data: Mushrooms, ate: Mapping[str, Array]
) -> dict[str, dict[str, Any]]:
    """Return the regrets and mistakes of every agent, a list with a number for each run.

    Parameters
    ----------
    seed, settings, data
        Those of the runs, which say what the mushrooms were.
    ate : mapping
        For each agent's name which mushrooms it ate, (runs, T) of bool.

    Returns
    -------
    dict of dict
        Lists by agent and name of the number. Regrets are sums in units of reward.
    """
    games = _games(seed, settings, data)
    last = slice(settings.interactions - max(settings.interactions // 10, 1), None)

    def numbers_of_run(game: Game, ate: NDArray[np.bool_]) -> dict[str, Any]:
        costs = regret(game, ate)
        bad = game.poisonous[last]
        return {
            "regret": float(costs.sum()),
            "regret while trained densely": float(costs[: settings.dense].sum()),
            "regret of the last tenth": float(costs[last].sum()),
            "realised regret": float(regret(game, ate, realised=True).sum()),
            "poisonous eaten in the last tenth": int((ate[last] & bad).sum()),
            "poisonous shown in the last tenth": int(bad.sum()),
            "edible left in the last tenth": int((~ate[last] & ~bad).sum()),
            "edible shown in the last tenth": int((~bad).sum()),
            "longest fast": _longest_fast(ate),
        }

    rows = {name: [*map(numbers_of_run, games, eaten)] for name, eaten in ate.items()}
    return {
        name: {key: [row[key] for row in rows_of_agent] for key in rows_of_agent[0]}
        for name, rows_of_agent in rows.items()
    }


def reproduce(
    out: Path,
    seed: int = 0,
    *,
    settings: Settings | None = None,
    agents: Sequence[Agent] = AGENTS,
    mushrooms: Mushrooms | None = None,
    jobs: int = 2,
    progress: bool | None = None,
) -> str:
    """Run the mushroom bandit and return its tables.

    Writes ``bandit.png``, ``numbers.json`` and ``bandit.txt``, which holds the tables. Every run is
    stored when it is over: the same call continues a folder that was interrupted and reads one
    that is finished.

    Parameters
    ----------
    out : Path
        Folder, made if it is missing.
    seed : int
        Of all runs.
    settings : Settings, optional
        Length of the game, network and training.
    agents : sequence of Agent
        The players; their names must differ.
    mushrooms : Mushrooms, optional
        Instead of those of the data folder.
    jobs : int
        Number of processes; the numbers do not depend on it.
    progress : bool, optional
        Whether to show a bar, see `bbb_studies.progress.steps`.

    Returns
    -------
    str
        The tables.

    Raises
    ------
    ModuleNotFoundError
        Without joblib, which comes with scikit-learn.
    ValueError
        If `out` holds runs of another seed, other data or other settings.
    """
    import joblib  # noqa: F401  of the extra `learners`: what is missing is said before any work

    settings = settings or Settings()
    data = mushrooms or mushroom.load()
    out.mkdir(parents=True, exist_ok=True)
    key = settings_key(seed, settings, data, agents)
    text_file = out / "bandit.txt"
    settings_file = out / "settings.json"
    if settings_file.exists():
        if settings_file.read_text("utf-8") != key:
            raise ValueError(
                f"{out} holds runs of another seed, data or settings; use another folder, or "
                "empty this one"
            )
        if text_file.exists():
            return text_file.read_text("utf-8").removesuffix("\n")
    write_text(settings_file, key)
    chains = [(agent, run) for agent in agents for run in range(settings.runs)]
    common_arguments = out, seed, settings, data
    played = in_processes(
        jobs, load_or_play_run, [(*common_arguments, *chain) for chain in chains]
    )
    with steps(len(chains), progress) as report:
        stored = list(counted(played, report))
    by_agent = {
        a.name: stored[i * settings.runs :][: settings.runs]
        for i, a in enumerate(agents)
    }
    ate = {
        name: np.array([run["ate"] for run in runs]) for name, runs in by_agent.items()
    }
    seconds = {
        name: float(sum(run["seconds"] for run in runs))
        for name, runs in by_agent.items()
    }
    numbers = measure(seed, settings, data, ate)
    draw_figure(settings, _games(seed, settings, data), ate).savefig(
        out / "bandit.png", dpi=100
    )
    output = {
        "seed": seed,
        "settings": asdict(settings),
        "agents": numbers,
        "seconds": seconds,
    }
    write_json(out / "numbers.json", output)
    summary = lay_out(seed, settings, numbers)
    write_text(text_file, summary + "\n")
    return summary
