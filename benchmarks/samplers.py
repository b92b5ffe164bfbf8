"""Time our samplers against blackjax under jit, on the same posteriors, in one run.

    python benchmarks/samplers.py            # everything, about an hour
    python benchmarks/samplers.py --quick    # a look
    python benchmarks/samplers.py --only gradients

Gradient evaluations per second (those that a trajectory uses) with the same step size and metric,
and effective samples per second, each sampler with its own. See README.md in this folder.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # to run as a plain script

from bbb_numpy import MLP, BernoulliLikelihood, GaussianLikelihood, GaussianPrior, Model
from bbb_numpy.model.log_joint import LogJoint
from bbb_numpy.numeric.processes import exit_with_parent
from bbb_numpy.sampling import Draws, sample_target
from bbb_numpy.sampling.chains import n_usable_cores
from bbb_numpy.sampling.mcmc import HMC, NUTS, DiagonalMetric
from bbb_numpy.sampling.run import SAMPLERS
from benchmarks import effective, racing
from benchmarks.effective import Clock
from benchmarks.problems import Array
from benchmarks.racing import Result

SIDES = ("ours", "blackjax")
MIN_GRADIENT_RATIO = 1.0  # our gradient rate over blackjax's
N_LEAPFROG_STEPS = 32  # of an HMC path, on both sides, without jitter
MAX_DOUBLINGS = 6  # most doublings of NUTS, on both sides
Block = Callable[[Array, int], tuple[Array, int]]  # of draws (T, S, D), and their gradients


@dataclass(frozen=True)
class Posterior:
    """A model with its data, and how much of it to sample."""

    name: str
    model: Model
    x: Array
    y: Array
    draws: int  # of one timed block

    def target(self, dtype: str) -> LogJoint:
        """Return the log joint in a dtype, to which JAX is set too."""
        import jax

        jax.config.update("jax_enable_x64", dtype == "float64")
        return LogJoint(self.model, self.x.astype(dtype), self.y.astype(dtype))


def regression() -> Posterior:
    """Return 455 rows of 13 inputs, as many as Boston's training part, of a network's noise."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((455, 13))
    y = np.tanh(x @ rng.standard_normal((13, 3)) / 2).sum(axis=1, keepdims=True)
    y += 0.3 * rng.standard_normal(y.shape)
    model = Model(
        MLP((13, 50, 1)), GaussianPrior(0.3, learn=True), GaussianLikelihood(0.3, learn=True)
    )
    return Posterior("13-50-1, 455 rows", model, x, y, 12)


def powerball() -> Posterior:
    """Return the Powerball classification; needs BBB_NUMPY_DATA."""
    from bbb_studies.data import powerball as data

    examples = data.examples(data.load())
    x = np.log1p(np.asarray(examples.number, float)).reshape(-1, 1)
    x = (x - x.mean()) / x.std()
    y = np.asarray(examples.label, float).reshape(-1, 1)
    model = Model(MLP((1, 5, 1), "tanh"), GaussianPrior(1.0), BernoulliLikelihood())
    return Posterior(f"Powerball, 1-5-1 tanh, {len(x)} rows", model, x, y, 25)


POSTERIORS = {"regression": regression, "powerball": powerball}
DTYPES = ("float64", "float32")
CHAINS = (4, 16)


@dataclass(frozen=True)
class Effort:
    """How long to measure, where the arguments do not say."""

    rounds: int  # of the race for gradients
    warm_up: int | None  # steps before the race for ESS; None: each sampler's own
    runs: int  # of the race for ESS
    seconds: float  # of each run


FULL_EFFORT = Effort(rounds=8, warm_up=None, runs=3, seconds=10.0)
QUICK_EFFORT = Effort(rounds=2, warm_up=50, runs=1, seconds=1.0)


class Setting(NamedTuple):
    """A posterior, a dtype and a number of chains: what one race is about."""

    posterior: Posterior
    dtype: str
    chains: int

    def labels(self) -> dict[str, Any]:
        """Return the first columns of the table."""
        return self._asdict() | {"posterior": self.posterior.name}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return 0 even where a bar is missed: this measures, it judges not."""
    args = parse(argv)
    clock = perf_counter
    if args.cpu:
        clock = process_time
        args.cores = 1
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        threadpool_limits(1, "blas")
    peer = load_peer(args.peer_cores)
    if peer is None:
        return 1
    effort = QUICK_EFFORT if args.quick else FULL_EFFORT
    rounds = args.rounds or effort.rounds
    posteriors = load_posteriors(args.posterior)
    settings = [
        Setting(posterior, dtype, chains)
        for posterior in posteriors
        for dtype in DTYPES
        for chains in CHAINS
        if args.dtype in (None, dtype) and args.chains in (None, chains)
    ]
    results: dict[str, list[Result]] = {"results": [], "effective": []}
    about = {
        **{"peers": {"blackjax": peer.VERSION}, "rounds": rounds, "clock": clock.__name__},
        **{"cores of ours": args.cores, "cores of the peer": args.peer_cores or n_usable_cores()},
    }
    load = os.getloadavg()[0]

    def save(path: Path | None) -> None:
        loads = {"load before and after": [load, os.getloadavg()[0]]}
        racing.save(path, about | loads, **results)

    def race_gradients(setting: Setting) -> list[Result]:
        posterior = setting.posterior
        warm_up = warm_ups[posterior.name]
        return measure(posterior, warm_up, setting.labels(), rounds, args.cores, peer, clock)

    def race_effective(setting: Setting) -> list[Result]:
        target = setting.posterior.target(setting.dtype)
        start = 0.3 * target.draw_prior(np.random.default_rng(1), setting.chains, setting.dtype)
        return effective.race(
            *(target, setting.labels(), start.astype(setting.dtype), args.samplers, peer),
            default=args.default,
            warm_up=effort.warm_up,
            runs=effort.runs,
            seconds=args.seconds or effort.seconds,
            clock=clock,
        )

    warm_ups = {
        posterior.name: warmed_up(posterior) for posterior in posteriors if args.only != "ess"
    }
    races = {
        "gradients": ("results", "ours", race_gradients),
        "ess": ("effective", "sampler", race_effective),
    }
    for race_name, (name, contestant, run_race) in races.items():
        if args.only not in (None, race_name):
            continue
        for setting in settings:
            labels = ", ".join(map(str, setting.labels().values()))
            print(f"timing {race_name}: {labels}", file=sys.stderr)
            results[name] += run_race(setting)
            if args.json:
                save(args.json)  # of a run that is broken off, what it had is kept
        print(racing.aligned(result.row((contestant, "blackjax")) for result in results[name]))
    is_complete = not args.quick and args.only is None and len(settings) == 8
    save(racing.results_path(args, "samplers.json", is_complete))
    print(f"load of the machine before and after: {load:.1f}, {os.getloadavg()[0]:.1f}")
    return 0


def load_posteriors(only: str | None) -> list[Posterior]:
    """Return the posteriors, or the one that is named, of which the data are there."""
    posteriors = []
    for name, load in POSTERIORS.items():
        if only in (None, name):
            try:
                posteriors.append(load())
            except FileNotFoundError as error:
                print(f"SKIPPED {name}: {error}")
    return posteriors


def parse(argv: Sequence[str] | None) -> Any:
    """Read the arguments."""
    parser = racing.parser(__doc__, "of each run for ESS, of which it does three")
    parser.add_argument("--only", choices=("gradients", "ess"), help="one of the two parts")
    parser.add_argument("--posterior", choices=tuple(POSTERIORS), help="one of the two posteriors")
    parser.add_argument("--dtype", choices=DTYPES, help="one of the two")
    parser.add_argument("--chains", type=int, choices=CHAINS, help="one of the two numbers of them")
    gradient_samplers = [name for name in SAMPLERS if name != "mh"]  # those that follow a gradient
    parser.add_argument(
        "--samplers", default=",".join(gradient_samplers), help="ours in the race for ESS"
    )
    parser.add_argument("--default", default="hmc", help="the sampler that the ESS bar is for")
    cores: dict[str, Any] = {"type": int, "choices": range(1, n_usable_cores() + 1), "metavar": "N"}
    parser.add_argument("--cores", **cores, default=n_usable_cores(), help="ours, of HMC and NUTS")
    text = "JAX's; with 1 it is faster where threads wake slowly"
    parser.add_argument("--peer-cores", **cores, help=text)
    text = "processor time, all on one core: where others work"
    parser.add_argument("--cpu", action="store_true", help=text)
    args = parser.parse_args(argv)
    args.samplers = [name for name in args.samplers.split(",") if name]
    if unknown := set(args.samplers) - set(gradient_samplers):
        parser.error(f"--samplers: {sorted(unknown)} are not among {gradient_samplers}")
    return args


def load_peer(cores: int | None) -> Any:
    """Return the peer, its threads bound to `cores` cores; without a number to all."""
    cores_before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(cores_before)[:cores])
    peer = racing.peer("peer_blackjax", "blackjax")
    if peer is not None:
        peer.jax.devices()
    os.sched_setaffinity(0, cores_before)
    return peer


def warmed_up(posterior: Posterior) -> Draws:
    """Return 16 draws of one chain with step size and metric, where all contestants begin."""
    target = LogJoint(posterior.model, posterior.x, posterior.y)
    start = 0.3 * target.draw_prior(np.random.default_rng(1), 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # divergences: this run only finds settings
        return sample_target(
            *(target, start),
            sampler=NUTS(max_depth=MAX_DOUBLINGS),
            draws=16,
            warm_up=400,
            thin=5,
            seed=0,
        )


def measure(
    posterior: Posterior,
    warm_up: Draws,
    labels: dict[str, Any],
    rounds: int,
    cores: int,
    peer: Any,
    clock: Clock = perf_counter,
) -> list[Result]:
    """Race the samplers from the same warmed-up states, with the same step size and metric."""
    target = posterior.target(labels["dtype"])
    start = np.resize(warm_up.flat, (labels["chains"], warm_up.layout.size))
    start = start.astype(labels["dtype"])
    variance = warm_up.kernel.metric.variance.astype(start.dtype)
    step = warm_up.kernel.step_size
    draws = posterior.draws
    metric = DiagonalMetric(variance)
    hmc = HMC(step, N_LEAPFROG_STEPS * step, metric, jitter=0.0, small_steps=0.0)
    nuts = NUTS(step, metric, MAX_DOUBLINGS)
    results = []
    with ExitStack() as stack:
        hmcs, nutses = (
            stack.enter_context(on_cores(target, kernel, draws, cores)) for kernel in (hmc, nuts)
        )
        pairs = {
            "gradient alone": (_calls(target), _calls(peer.gradient(target))),
            "HMC": (hmcs, peer.hmc(target, step, variance, N_LEAPFROG_STEPS, draws)),
            "NUTS": (nutses, peer.nuts(target, step, variance, MAX_DOUBLINGS, draws)),
        }
        for sampler, pair in pairs.items():
            rates = race(start, pair, rounds, clock)
            row_labels = labels | {"sampler": sampler}
            results.append(
                Result(
                    row_labels,
                    rates,
                    {"ratio": SIDES},
                    {"ratio": MIN_GRADIENT_RATIO},
                    "gradients/s",
                )
            )
    return results


def race(start: Array, pair: tuple[Block, Block], rounds: int, clock: Clock) -> dict[str, Array]:
    """Run both in turn, each from where it was; return gradients per second in each round."""
    last_positions = dict.fromkeys(SIDES, start)
    rates: dict[str, list[float]] = {name: [] for name in SIDES}
    for turn in range(-1, rounds):  # the first turn compiles
        for name, block in zip(SIDES, pair, strict=True):
            start_time = clock()
            positions, gradients = block(last_positions[name], turn + 1)
            elapsed = clock() - start_time
            last_positions[name] = positions[-1]
            if turn >= 0:
                rates[name].append(gradients / elapsed)
    return {name: np.array(rate) for name, rate in rates.items()}


def draw(
    target: LogJoint, kernel: HMC | NUTS, draws: int, position: Array, seed: int
) -> tuple[Array, int]:
    """Return draws (T, S, D) of chains from their positions (S, D), and how many gradients."""
    rng = np.random.default_rng(seed)
    state = kernel.init(target, position)
    positions = []
    gradients = 0
    for _ in range(draws):
        state, info = kernel.step(target, rng, state)
        positions.append(state.position)
        gradients += int(info.gradients.sum())
    return np.array(positions), gradients


WORKER_ARGUMENTS: list[Any] = []  # in a process of `on_cores`: target, kernel, draws


def _init_worker(parent: int, *arguments: Any) -> None:
    exit_with_parent(parent)
    threadpool_limits(1, "blas")
    WORKER_ARGUMENTS[:] = arguments


def _draw_in_worker(position: Array, seed: int) -> tuple[Array, int]:
    return draw(*WORKER_ARGUMENTS, position, seed)


@contextmanager
def on_cores(target: LogJoint, kernel: HMC | NUTS, draws: int, cores: int) -> Iterator[Block]:
    """Run groups of chains in processes that stand ready, as `sample` does in long runs.

    JAX has its threads and its compiled code ready as well. With one core: in this process.
    """
    if cores == 1:
        yield partial(draw, target, kernel, draws)
        return
    spawn = multiprocessing.get_context("spawn")
    worker_arguments = os.getpid(), target, kernel, draws
    with ProcessPoolExecutor(cores, spawn, _init_worker, worker_arguments) as pool:

        def block(position: Array, seed: int) -> tuple[Array, int]:
            parts = np.array_split(position, cores)
            results = list(
                pool.map(_draw_in_worker, parts, range(cores * seed, cores * (seed + 1)))
            )
            return np.concatenate([f[0] for f in results], axis=1), sum(f[1] for f in results)

        yield block


def _calls(gradient: Callable[[Array], Any]) -> Block:
    def block(position: Array, seed: int) -> tuple[Array, int]:
        for _ in range(100):
            gradient(position)
        return position[None], 100 * len(position)

    return block


if __name__ == "__main__":
    sys.exit(main())
