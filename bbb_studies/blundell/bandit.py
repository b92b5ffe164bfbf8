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
GOOD_REWARD, BAD_REWARD = 5.0, -35.0  # rewards of eating
EXPECTED_LOSS = -0.5 * (
    GOOD_REWARD + BAD_REWARD
)  # 15: what eating a poisonous mushroom costs on average


@dataclass(frozen=True)
class Agent:
    """A player."""

    name: str
    # weight vectors averaged for one decision; 1: Thompson sampling, 0: a point
    looks: int = 0
    epsilon: float = 0.0  # probability of an action at random
    last_layer: bool = (
        False  # Thompson sampling by a posterior of the last layer alone (D56)
    )


AGENTS = (
    Agent("Thompson sampling", looks=1),
    Agent("two weights averaged", looks=2),  # as in the paper
    Agent("greedy"),
    Agent("1 % greedy", epsilon=0.01),
    Agent("5 % greedy", epsilon=0.05),
    # over the features of the greedy one
    Agent("Thompson, last layer", last_layer=True),
)
PAPER_BUDGET_AGENTS = tuple(
    agent for agent in AGENTS if agent.looks != 2
)  # for the paper's budget


@dataclass(frozen=True)
class Settings:
    """How long, how large, how trained; all rewards in the units of the game."""

    interactions: int = 50_000  # mushrooms per run
    runs: int = 3  # of every agent, independent
    hidden: tuple[int, ...] = (100, 100)  # ReLU
    memory: int = 4096  # interactions kept
    batch: int = 64  # rows of a minibatch
    steps: int = 64  # minibatches per training
    dense: int = 1500  # training follows each of the first so many interactions ...
    sparse: int = 32  # ... then every so many-th
    noise: float = 0.5  # standard deviation of the likelihood
    prior_scale: float = 0.3  # standard deviation of the prior of all weights
    rho: float = -4.0  # at the start of q
    learning_rate: float = 1e-3  # of Adam, for q and for the point estimates
    point_learning_rate: float = 1e-3
    # of the last layer's likelihood, and the deviation of its prior
    last_noise: float = 5.0
    last_prior_scale: float = 1.0


class Game(NamedTuple):
    """One run's mushrooms, the same for every agent, and what eating each of them pays."""

    # (2N, D + 2) float32  row 2i: mushroom i not eaten, row 2i + 1: eaten
    inputs: Array
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


class LastLayer:
    """The exact posterior of the weights of a network's last layer, by all that happened (D56).

    N(mean, covariance) under Gaussian noise and prior, given the features of a row: the outputs of
    the last hidden layer, and 1. What is forgotten for training is remembered here, as a count and
    a sum of rewards for each row of `inputs`.
    """

    def __init__(self, settings: Settings, net: MLP, inputs: Array) -> None:
        self.net, self.inputs = net, inputs
        self.variance, self.precision = (
            settings.last_noise**2,
            settings.last_prior_scale**-2,
        )
        self.count, self.total = np.zeros((2, len(inputs)))

    def features(self, rows: Any) -> Array:
        """Return the features (B, H + 1) of some rows, at the weights of the last `refit`."""
        a = network.forward(self.net, self.w, self.inputs[rows], Buffers())[1].inputs[
            -1
        ]
        a = a.reshape(-1, self.net.sizes[-2]).astype(float)
        return np.hstack([a, np.ones((len(a), 1))])

    def refit(self, w: Array) -> None:
        """Look at everything with the features that weights `w` (P,) have."""
        self.w, looked_at = w[None].copy(), np.flatnonzero(self.count)
        phi = self.features(looked_at)
        precision = phi.T @ (phi * self.count[looked_at, None]) / self.variance  # D56
        precision += self.precision * np.eye(phi.shape[1])
        self.covariance = np.linalg.inv(precision)
        self.mean = (
            self.covariance @ (phi.T @ self.total[looked_at]) / self.variance
        )  # D56

    def learn(self, row: int, reward: float) -> None:
        """Add one reward: the same posterior as by `refit`, by one column of the covariance."""
        self.count[row] += 1.0
        self.total[row] += reward
        phi = self.features([row])[0]
        column = self.covariance @ phi
        gain = column / (self.variance + phi @ column)  # D56
        self.mean += gain * (reward - phi @ self.mean)
        self.covariance -= np.outer(gain, column)

    def eats(self, mushroom: int, rng: np.random.Generator) -> bool:
        """Return whether eating is better under one draw: of both actions it is one number."""
        leave, eat = self.features([2 * mushroom, 2 * mushroom + 1])
        gained = eat - leave
        deviation = np.sqrt(gained @ self.covariance @ gained)  # D56
        return bool(gained @ self.mean + deviation * rng.standard_normal() > 0.0)


def game(
    x: Array, poisonous: NDArray[np.bool_], interactions: int, seed: tuple[int, ...]
) -> Game:
    """Draw mushrooms with replacement, and the luck of eating the poisonous ones.

    `x` (N, D), `poisonous` (N,); a longer game begins like a shorter one.
    """
    eye = np.eye(2, dtype=np.float32)  # the action, one of two: leave, eat
    inputs = np.concatenate(
        [np.repeat(x, 2, axis=0), np.tile(eye, (len(x), 1))], axis=1
    )
    which, luck = np.random.default_rng(seed).spawn(2)
    mushroom = which.integers(len(x), size=interactions)
    bad = poisonous[mushroom] & (luck.random(interactions) < 0.5)
    payoff = np.where(bad, BAD_REWARD, GOOD_REWARD).astype(np.float32)
    return Game(
        np.ascontiguousarray(inputs, np.float32), mushroom, poisonous[mushroom], payoff
    )


def regret(played: Game, ate: NDArray[np.bool_], realised: bool = False) -> Array:
    """Return the regret (T,) of each interaction against the oracle, who eats edible ones only.

    `realised`: the oracle's reward minus the reward received, as in the paper: -5 when eating a
    poisonous mushroom ends well. Otherwise the difference of the expected rewards, with the same
    mean and less noise, never negative: 5 for an edible one left, 15 for a poisonous one eaten.
    """
    best = np.where(played.poisonous, 0.0, GOOD_REWARD)
    got = (
        played.payoff
        if realised
        else np.where(played.poisonous, -EXPECTED_LOSS, GOOD_REWARD)
    )
    return best - np.where(ate, got, 0.0)


def build(agent: Agent, settings: Settings, inputs: int) -> Estimator:
    """Return the network of an agent: mean field by Bayes by Backprop, or maximum likelihood."""
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


def begin(
    agent: Agent, settings: Settings, inputs: int, seed: tuple[int, ...]
) -> State:
    """Return the state before the first mushroom."""
    rng = np.random.default_rng(seed)
    training = start(
        build(agent, settings, inputs), rng, _optimizer(agent, settings), np.float32
    )
    return State(0, np.zeros(settings.interactions, bool), training, rng)


def kl_share(settings: Settings, remembered: int) -> float:
    """Return the share of KL(q || P(w)) that one minibatch pays.

    The N remembered interactions are the data: F = KL - sum_i log P(y_i|w). Of B rows drawn at
    random with replacement (N / B) sum_b log P(y_b|w) has the mean of that sum, so the minibatch
    costs F times B / N: (B / N) KL - sum_b log P(y_b|w). While N < B this is more than 1.
    """
    return settings.batch / remembered


def play(the: Game, agent: Agent, settings: Settings, state: State, until: int) -> None:
    """Play on to interaction `until`, changing `state`; FloatingPointError if it diverges."""
    estimator = build(agent, settings, the.inputs.shape[1])
    optimizer, rng = _optimizer(agent, settings), state.rng
    theta, memory = state.training.theta, state.training.optimizer_state
    buffers, eyes = Buffers(), Buffers()
    noise = np.empty(estimator.noise_shape(1, settings.batch), np.float32)
    taken = 2 * the.shown + state.ate  # row of `inputs`: the mushroom and what was done
    reward = np.where(state.ate, the.payoff, np.float32(0.0))[:, None]
    last, mu = None, estimator.layout.views(theta)["mu"]
    if agent.last_layer:
        last = LastLayer(settings, estimator.model.network, the.inputs)
        np.add.at(last.count, taken[: state.played], 1.0)
        np.add.at(last.total, taken[: state.played], reward[: state.played, 0])
        last.refit(mu)
    while state.played < until:
        t = state.played
        if last is not None:
            state.ate[t] = last.eats(the.shown[t], rng)
        else:
            arguments = (
                agent,
                estimator,
                theta,
                the.inputs,
                the.shown[t],
                rng,
                eyes.rewind(),
            )
            state.ate[t] = decide(*arguments)
        taken[t], reward[t] = (
            2 * the.shown[t] + state.ate[t],
            state.ate[t] * the.payoff[t],
        )
        state.played = t + 1
        oldest = max(0, state.played - settings.memory)
        share = kl_share(settings, state.played - oldest)
        trains = state.played <= settings.dense or state.played % settings.sparse == 0
        for _ in range(settings.steps if trains else 0):
            rows = rng.integers(oldest, state.played, settings.batch)
            estimator.fill(rng, noise)
            # the next line says it better
            with np.errstate(over="ignore", invalid="ignore"):
                value, grad, _ = estimator.value_and_grad(
                    theta,
                    noise,
                    the.inputs[taken[rows]],
                    reward[rows],
                    share,
                    buffers.rewind(),
                )
            if not isfinite(value):
                raise FloatingPointError(
                    f"the loss of {agent.name!r} is {value} after {state.played} interactions; "
                    "lower its learning rate"
                )
            optimizer.update(theta, grad, memory, 1.0)
        if last is not None:
            last.learn(taken[t], float(reward[t, 0]))
            if trains:
                last.refit(mu)


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


AGENT_STYLES = (
    (BLUE, "-"),
    (BLACK, "--"),
    (VERMILLION, ":"),
    (GREEN, "-."),
    (GREY, (0, (6, 2, 1, 2, 1, 2))),
    (ORANGE, (0, (5, 1))),
)
MAX_CURVE_POINTS = 1000  # of a curve; more are not seen


def draw_figure(
    settings: Settings, games: Sequence[Game], ate: Mapping[str, Array]
) -> Figure:
    """Draw the regret over the whole game and over its beginning.

    `games`, one for each run; `ate`, by agent (runs, T), what it ate.
    """
    figure, (a, b) = panels(12.0, 4.8, 1, 2)
    total = settings.interactions
    early = min(max(settings.dense, 1), total)
    for (name, eaten), (colour, line) in zip(ate.items(), AGENT_STYLES, strict=False):
        costs = np.array(
            [
                np.cumsum(regret(the, regrets))
                for the, regrets in zip(games, eaten, strict=True)
            ]
        )
        for ax, last in ((a, total), (b, early)):
            at = np.unique(
                np.linspace(1, last, min(last, MAX_CURVE_POINTS)).astype(int)
            )
            for regrets in costs[:, at - 1]:
                ax.plot(at, regrets, color=colour, linewidth=0.7, alpha=0.45)
            mean = costs[:, at - 1].mean(axis=0)
            ax.plot(at, mean, color=colour, linestyle=line, linewidth=2.0, label=name)
    a.set_yscale("log")
    # the first few mushrooms say little
    a.set_ylim(bottom=max(1.0, a.get_ylim()[1] / 200.0))
    for axis in (a.yaxis, a.xaxis, b.xaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    a.set_xlim(0, total)
    b.set(xlim=(0, early), ylim=(0, None))
    part = "the beginning" if early < total else "the same"
    for ax, label in (
        (a, "(a) mean over runs; thin lines: single runs"),
        (b, f"(b) {part}, on a linear scale"),
    ):
        ax.grid(color="#DDDDDD", linewidth=0.6)
        finish(
            ax, f"mushrooms shown\n{label}", "cumulative regret (units of reward)", 3
        )
    return figure


Numbers = Mapping[str, Mapping[str, Any]]
THOMPSON, GREEDY, OFTEN_RANDOM = AGENTS[0].name, AGENTS[2].name, AGENTS[4].name
# interactions without eating that are worth a word: half of them show edible ones
FAST_STARTS_BEFORE = 100
MAX_FLAT_SHARE = (
    0.05  # of the regret: half of what a tenth would have if it grew evenly
)
PAPER_FAST_LENGTH = (
    1000  # mushrooms of which the paper's greedy agent ate none, "about"
)


def mean_and_error(values: Sequence[float]) -> tuple[float, float]:
    """Return the mean over runs and its standard error, nan from one run."""
    mean, error = estimate(np.asarray(values, float))
    return mean, error if len(values) > 1 else np.nan


def lay_out(seed: int, settings: Settings, numbers: Numbers) -> str:
    """Return every number that is printed, and which claims of the paper hold."""
    other_agents = [
        name for name in numbers if name != THOMPSON and THOMPSON in numbers
    ]

    def share(n: Mapping[str, Any], action: str, among: str) -> str:
        n_shown = sum(n[f"{among} shown in the last tenth"])
        wrong = sum(n[f"{among} {action} in the last tenth"])
        return f"{100.0 * wrong / n_shown:.2f} %" if n_shown else "none shown"

    def agent(n: Mapping[str, Any]) -> str:
        keys = "regret", "realised regret", "regret while trained densely"
        regrets = [
            _pair(*mean_and_error(n[key]))
            for key in (*keys, "regret of the last tenth")
        ]
        return " | ".join(
            [*regrets, share(n, "eaten", "poisonous"), share(n, "left", "edible")]
        )

    def beyond(name: str) -> str:
        keys = "regret", "regret of the last tenth"
        return " | ".join(_pair(*_gap(numbers, name, key), "+") for key in keys)

    dense, last = (
        f"first {settings.dense:,}",
        f"last {max(settings.interactions // 10, 1):,}",
    )
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
            zip(other_agents, other_agents, strict=True),
            beyond,
        ),
        claims(
            "Blundell et al. 2015, Section 5.3.",
            "the paper",
            claims_of_the_paper(numbers),
        ),
    )


def _pair(mean: float, error: float, sign: str = "") -> str:
    return f"{mean:{sign},.0f}" + ("" if np.isnan(error) else f" +- {error:,.0f}")


def _gap(numbers: Numbers, name: str, key: str) -> tuple[float, float]:
    """Return the regret beyond that of Thompson sampling, run by run, and its error."""
    return mean_and_error(
        np.subtract(numbers[name][key], numbers[THOMPSON][key]).tolist()
    )


def claims_of_the_paper(numbers: Numbers) -> list[Claim]:
    """Judge what the paper reports, of the agents that played."""
    rows = []
    if {OFTEN_RANDOM, THOMPSON} <= set(numbers):
        mean, error = _gap(numbers, OFTEN_RANDOM, "regret")
        statement, threshold = (
            f"{OFTEN_RANDOM} over-explores: regret beyond {THOMPSON}",
            2 * np.nan_to_num(error),
        )
        rows.append(
            Claim(statement, "> 0", _pair(mean, error, "+"), bool(mean > threshold))
        )
    if THOMPSON in numbers:
        regret, last = (
            sum(numbers[THOMPSON][k]) for k in ("regret", "regret of the last tenth")
        )
        share = last / regret if regret else 0.0
        statement = f"regret of {THOMPSON}, share of the last tenth"
        rows.append(
            Claim(statement, "almost flat", f"{share:.1%}", share < MAX_FLAT_SHARE)
        )
    if GREEDY in numbers:
        first = max(
            (b for a, b in numbers[GREEDY]["longest fast"] if a < FAST_STARTS_BEFORE),
            default=0,
        )
        holds = first >= PAPER_FAST_LENGTH
        printed = f"about {PAPER_FAST_LENGTH:,}"
        rows.append(
            Claim(f"{GREEDY} eats nothing at first", printed, f"{first:,}", holds)
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


def key_of(
    seed: int, settings: Settings, data: Mushrooms, agents: Sequence[Agent]
) -> str:
    """Return all that the numbers depend on, as text."""
    mark = crc32(np.packbits(data.x > 0).tobytes() + data.poisonous.tobytes())
    return json.dumps(
        [seed, asdict(settings), mark, [asdict(agent) for agent in agents]]
    )


def whole_run(
    out: Path, seed: int, settings: Settings, data: Mushrooms, agent: Agent, run: int
) -> dict[str, Array]:
    """Return what an agent ate in one run (T,), and its seconds; from its file, if it is there."""
    path = out / f"{agent.name.replace(' %', '').replace(' ', '-')}-{run}.npz"
    if path.exists():
        return read_arrays(path, ("ate", "seconds"))
    the, began = (
        game(data.x, data.poisonous, settings.interactions, (seed, run)),
        process_time(),
    )
    # does not depend on which other agents play
    seed_of_agent = (seed, run, crc32(agent.name.encode()))
    state = begin(agent, settings, the.inputs.shape[1], seed_of_agent)
    play(the, agent, settings, state, settings.interactions)
    results = {"ate": state.ate, "seconds": np.array(process_time() - began)}
    write_arrays(path, results)
    return results


def _fast(ate: NDArray[np.bool_]) -> tuple[int, int]:
    """Return the longest stretch without eating as the interactions [first, last + 1)."""
    eaten = np.concatenate([[-1], np.flatnonzero(ate), [len(ate)]])
    longest = int(np.argmax(np.diff(eaten)))
    return int(eaten[longest]) + 1, int(eaten[longest + 1])


def _games(seed: int, settings: Settings, data: Mushrooms) -> list[Game]:
    """Return the mushrooms of every run."""
    return [
        game(data.x, data.poisonous, settings.interactions, (seed, run))
        for run in range(settings.runs)
    ]


def measure(
    seed: int, settings: Settings, data: Mushrooms, ate: Mapping[str, Array]
) -> dict[str, dict[str, Any]]:
    """Return every agent's numbers, one of each run, from what it ate (runs, T)."""
    games = _games(seed, settings, data)
    last = slice(settings.interactions - max(settings.interactions // 10, 1), None)

    def of(the: Game, ate: NDArray[np.bool_]) -> dict[str, Any]:
        costs, bad = regret(the, ate), the.poisonous[last]
        return {
            "regret": float(costs.sum()),
            "regret while trained densely": float(costs[: settings.dense].sum()),
            "regret of the last tenth": float(costs[last].sum()),
            "realised regret": float(regret(the, ate, realised=True).sum()),
            "poisonous eaten in the last tenth": int((ate[last] & bad).sum()),
            "poisonous shown in the last tenth": int(bad.sum()),
            "edible left in the last tenth": int((~ate[last] & ~bad).sum()),
            "edible shown in the last tenth": int((~bad).sum()),
            "longest fast": _fast(ate),
        }

    rows = {name: [*map(of, games, eaten)] for name, eaten in ate.items()}
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
    """Play, write ``bandit.png``, ``numbers.json`` and ``bandit.txt`` into `out`; return the last.

    A folder that holds a part of the same runs is gone on with; a finished one is read. Names of
    `agents` must differ; `mushrooms` are others than those of the data folder; the numbers do not
    depend on how many processes, `jobs`, there are. Without joblib, which comes with scikit-learn:
    ModuleNotFoundError. ValueError if `out` holds runs of another seed or of other settings.
    """
    import joblib  # noqa: F401  of the extra `learners`: what is missing is said before any work

    settings = settings or Settings()
    data = mushrooms or mushroom.load()
    out.mkdir(parents=True, exist_ok=True)
    key = key_of(seed, settings, data, agents)
    text_file, settings_file = out / "bandit.txt", out / "settings.json"
    if settings_file.exists():
        if settings_file.read_text("utf-8") != key:
            raise ValueError(
                f"{out} holds runs of another seed, data or settings. Use another folder, or "
                "empty this one"
            )
        if text_file.exists():
            return text_file.read_text("utf-8").removesuffix("\n")
    write_text(settings_file, key)
    chains = [(agent, run) for agent in agents for run in range(settings.runs)]
    common = out, seed, settings, data
    played = in_processes(jobs, whole_run, [(*common, *chain) for chain in chains])
    with steps(len(chains), progress) as report:
        stored = list(counted(played, report))
    by_agent = {
        a.name: stored[i * settings.runs :][: settings.runs]
        for i, a in enumerate(agents)
    }
    ate = {
        name: np.array([one["ate"] for one in runs]) for name, runs in by_agent.items()
    }
    seconds = {
        name: float(sum(one["seconds"] for one in runs))
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
