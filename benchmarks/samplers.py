"""Time our samplers against blackjax under jit, on the same posteriors, in one run.

    python benchmarks/samplers.py            # everything, about an hour
    python benchmarks/samplers.py --quick    # a look
    python benchmarks/samplers.py --only gradients

Gradient evaluations per second (those that a trajectory uses) with the same step size and metric,
and effective samples per second, each sampler with its own. See README.md in this folder.
"""

from __future__ import annotations

import argparse
import importlib
import json
import multiprocessing
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, process_time
from types import ModuleType
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # to run as a plain script

from bbb_numpy import MLP, BernoulliLikelihood, GaussianLikelihood, GaussianPrior, Model
from bbb_numpy.model.log_joint import LogJoint
from bbb_numpy.sampling import Draws, sample_target
from bbb_numpy.sampling.chains import usable
from bbb_numpy.sampling.mcmc import HMC, NUTS, DiagonalMetric
from benchmarks import effective, results
from benchmarks.effective import Clock
from benchmarks.problems import Array
from benchmarks.round_robin import Spread, spread

RESULTS = Path(__file__).resolve().parent / "results" / "samplers.json"
BAR = 1.0  # our gradient rate over blackjax's
LEAPFROGS = 32  # of an HMC path, on both sides, without jitter
DEPTH = 6  # most doublings of NUTS, on both sides


@dataclass(frozen=True)
class Posterior:
    """A model with its data, and how much of it to sample."""

    name: str
    model: Model
    x: Array
    y: Array
    draws: int  # of one timed block


@dataclass(frozen=True)
class Timed:
    """One sampler on one posterior: rates of each round (rounds,), per contestant."""

    posterior: str
    sampler: str
    dtype: str
    chains: int
    gradients: dict[str, Array]  # per second

    @property
    def ratio(self) -> Spread:
        """Quartiles of our gradient rate over the peer's, within a round."""
        return spread(self.gradients["ours"] / self.gradients["blackjax"])


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

    found = data.examples(data.load())
    x = np.log1p(np.asarray(found.number, float)).reshape(-1, 1)
    x = (x - x.mean()) / x.std()
    y = np.asarray(found.label, float).reshape(-1, 1)
    model = Model(MLP((1, 5, 1), "tanh"), GaussianPrior(1.0), BernoulliLikelihood())
    return Posterior(f"Powerball, 1-5-1 tanh, {len(x)} rows", model, x, y, 25)


POSTERIORS = {"regression": regression, "powerball": powerball}
DTYPES = ("float64", "float32")
CHAINS = (4, 16)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return 0 even where a bar is missed: this measures, it judges not."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, help="turns of every contestant")
    parser.add_argument("--quick", action="store_true", help="few, short rounds; saves nothing")
    parser.add_argument("--only", choices=("gradients", "ess"), help="one of the two parts")
    parser.add_argument("--posterior", choices=tuple(POSTERIORS), help="one of the two posteriors")
    parser.add_argument("--dtype", choices=DTYPES, help="one of the two")
    parser.add_argument("--chains", type=int, choices=CHAINS, help="one of the two numbers of them")
    parser.add_argument(
        "--samplers", default=",".join(effective.samplers()), help="ours in the race for ESS"
    )
    parser.add_argument("--default", default="hmc", help="the sampler that the ESS bar is for")
    parser.add_argument("--seconds", type=float, help="of each run for ESS, of which it does three")
    cores = {"type": int, "choices": range(1, usable() + 1), "metavar": "N"}
    parser.add_argument("--cores", **cores, default=usable(), help="ours, of HMC and NUTS")
    parser.add_argument(
        "--peer-cores", **cores, help="JAX's; with 1 it is faster where threads wake slowly"
    )
    parser.add_argument(
        "--cpu", action="store_true", help="processor time, all on one core: where others work"
    )
    parser.add_argument("--json", type=Path, help="where to save; default: results/samplers.json")
    args = parser.parse_args(argv)
    clock = perf_counter
    if args.cpu:
        clock, args.cores = process_time, 1
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        threadpool_limits(1, "blas")
    names = [name for name in args.samplers.split(",") if name]
    if unknown := set(names) - set(effective.samplers()):
        parser.error(f"--samplers: {sorted(unknown)} are not among {effective.samplers()}")
    try:
        peer = started(args.peer_cores)
    except ImportError as error:
        print(f"needs blackjax: {error}; pip install 'bbb-numpy[bench]' brings it")
        return 1
    posteriors = []
    for name in [args.posterior] if args.posterior else POSTERIORS:
        try:
            posteriors.append(POSTERIORS[name]())
        except FileNotFoundError as error:
            print(f"SKIPPED {name}: {error}")
    rounds = args.rounds or (2 if args.quick else 8)
    load = os.getloadavg()[0]
    timed: list[Timed] = []
    found: list[effective.Effective] = []
    settings = [
        (dtype, chains)
        for dtype in ([args.dtype] if args.dtype else DTYPES)
        for chains in ([args.chains] if args.chains else CHAINS)
    ]
    rows = len(posteriors) * len(settings)
    whole = not args.quick and args.only is None and rows == 8
    path = args.json or (RESULTS if whole else None)

    def save(to: Path | None) -> None:
        if to is None:
            return
        about = {
            "rounds": rounds,
            "clock": clock.__name__,
            "cores of ours": args.cores,
            "cores of the peer": args.peer_cores or usable(),
            "load before and after": [load, os.getloadavg()[0]],
        }
        saved = as_json(timed, peer, about) | {"effective": effective.as_json(found)}
        to.write_text(json.dumps(saved, indent=1) + "\n", encoding="utf-8")

    if args.only != "ess":
        for posterior, warm in [(posterior, warmed_up(posterior)) for posterior in posteriors]:
            for dtype, chains in settings:
                timed += measure(posterior, warm, dtype, chains, rounds, args.cores, peer, clock)
                save(args.json)  # of a run that is broken off, what it had is kept
        print(results.aligned(table(timed)))
    if args.only != "gradients":
        long: dict[str, Any] = {"warm_up": 50 if args.quick else None, "clock": clock}
        long["runs"] = 1 if args.quick else 3
        long["seconds"] = args.seconds or (1.0 if args.quick else 10.0)
        for posterior in posteriors:
            for dtype, chains in settings:
                found += race_for_ess(posterior, dtype, chains, names, peer, long)
                save(args.json)
        print(results.aligned(effective.table(found, args.default)))
    save(path)
    print(f"load of the machine before and after: {load:.1f}, {os.getloadavg()[0]:.1f}")
    if not path:
        print("partial run: nothing saved; name a file with --json to keep it")
    return 0


def started(cores: int | None) -> ModuleType:
    """Return the peer, whose threads, made when it starts, keep to so many cores; None: to all."""
    import jax

    before = os.sched_getaffinity(0) if cores else set()
    if cores:
        os.sched_setaffinity(0, sorted(before)[:cores])
    peer = importlib.import_module("benchmarks.peer_blackjax")
    jax.devices()
    if cores:
        os.sched_setaffinity(0, before)
    return peer


def warmed_up(posterior: Posterior) -> Draws:
    """Return 16 draws of one chain, with step size and metric: where all contestants begin."""
    target = LogJoint(posterior.model, posterior.x, posterior.y)
    start = 0.3 * target.draw_prior(np.random.default_rng(1), 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # divergences: this run only finds settings
        return sample_target(
            *(target, start), sampler=NUTS(max_depth=DEPTH), draws=16, warm_up=400, thin=5, seed=0
        )


def measure(
    posterior: Posterior,
    warm: Draws,
    dtype: str,
    chains: int,
    rounds: int,
    cores: int,
    peer: ModuleType,
    clock: Clock = perf_counter,
) -> list[Timed]:
    """Race the samplers from the same warmed-up states, with the same step size and metric."""
    target, begin = prepared(posterior, dtype), np.tile(warm.positions[:, 0], (chains, 1))
    begin = begin[:chains].astype(dtype)
    print(f"timing {posterior.name}, {dtype}, {chains} chains", file=sys.stderr)
    variance, step = warm.kernel.metric.variance.astype(dtype), warm.kernel.step_size
    draws, metric = posterior.draws, DiagonalMetric(variance)
    hmc = HMC(step, LEAPFROGS * step, metric, jitter=0.0, small_steps=0.0)
    nuts = NUTS(step, metric, DEPTH)
    with ExitStack() as stack:
        pairs = {
            "gradient alone": (_ours_gradient(target), _peer_gradient(target, peer)),
            "HMC": (
                stack.enter_context(_on_cores(target, hmc, draws, cores)),
                peer.hmc(target, step, variance, LEAPFROGS, draws),
            ),
            "NUTS": (
                stack.enter_context(_on_cores(target, nuts, draws, cores)),
                peer.nuts(target, step, variance, DEPTH, draws),
            ),
        }
        timed = []
        for sampler, pair in pairs.items():
            empty = Timed(posterior.name, sampler, dtype, chains, {})
            timed.append(race(empty, begin, pair, rounds, clock))
            print(f"  {sampler}: {timed[-1].ratio.median:.2f}", file=sys.stderr)
    return timed


def prepared(posterior: Posterior, dtype: str) -> LogJoint:
    """Return the log joint in a dtype, to which JAX is set too."""
    import jax

    jax.config.update("jax_enable_x64", dtype == "float64")
    return LogJoint(posterior.model, posterior.x.astype(dtype), posterior.y.astype(dtype))


def race_for_ess(
    posterior: Posterior,
    dtype: str,
    chains: int,
    names: list[str],
    peer: ModuleType,
    long: dict[str, Any],
) -> list[effective.Effective]:
    """Race samplers that have warmed up by themselves, from the same draws of the prior."""
    print(f"ESS on {posterior.name}, {dtype}, {chains} chains", file=sys.stderr)
    target = prepared(posterior, dtype)
    start = 0.3 * target.draw_prior(np.random.default_rng(1), chains, dtype)
    return effective.race(target, posterior.name, start.astype(dtype), names, peer, **long)


Block = Callable[[Array, int], tuple[Array, int]]


def race(empty: Timed, begin: Array, pair: tuple[Block, Block], rounds: int, clock: Clock) -> Timed:
    """Run both in turn, each from where it was, and count gradients."""
    names = ("ours", "blackjax")
    places = dict.fromkeys(names, begin)
    rates: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(-1, rounds):  # the first turn compiles
        for name, block in zip(names, pair, strict=True):
            before = clock()
            positions, gradients = block(places[name], turn + 1)
            passed = clock() - before
            places[name] = positions[-1]
            if turn >= 0:
                rates[name].append(gradients / passed)
    return Timed(
        *(empty.posterior, empty.sampler, empty.dtype, empty.chains),
        {name: np.array(rate) for name, rate in rates.items()},
    )


def _ours(target: LogJoint, kernel: HMC | NUTS, draws: int) -> Block:
    def block(position: Array, seed: int) -> tuple[Array, int]:
        rng = np.random.default_rng(seed)
        state, kept, gradients = kernel.init(target, position), [], 0
        for _ in range(draws):
            state, info = kernel.step(target, rng, state)
            kept.append(state.position)
            gradients += int(info.gradients.sum())
        return np.array(kept), gradients

    return block


@contextmanager
def _on_cores(target: LogJoint, kernel: HMC | NUTS, draws: int, cores: int) -> Iterator[Block]:
    """Run groups of chains in processes that stand ready, as `sample` does in long runs.

    JAX has its threads and its compiled code ready as well. With one core: in this process.
    """
    if cores == 1:
        yield _ours(target, kernel, draws)
        return
    spawn, limit = multiprocessing.get_context("spawn"), "OPENBLAS_NUM_THREADS"
    pipes, before = [spawn.Pipe() for _ in range(cores)], os.environ.get(limit)
    os.environ[limit] = "1"  # read by the processes when they import NumPy
    processes = [spawn.Process(target=_serve, args=(pipe, target, kernel, draws), daemon=True)
                 for _, pipe in pipes]  # fmt: skip
    for process in processes:
        process.start()
    os.environ.pop(limit)
    if before is not None:
        os.environ[limit] = before

    def block(position: Array, seed: int) -> tuple[Array, int]:
        parts = np.array_split(position, cores)
        for index, (part, (pipe, _)) in enumerate(zip(parts, pipes, strict=True)):
            pipe.send((part, cores * seed + index))
        found = [pipe.recv() for pipe, _ in pipes]
        return np.concatenate([f[0] for f in found], axis=1), sum(f[1] for f in found)

    try:
        yield block
    finally:
        for pipe, _ in pipes:
            pipe.send(None)
        for process in processes:
            process.join()


def _serve(pipe: Any, target: LogJoint, kernel: HMC | NUTS, draws: int) -> None:
    """Answer until None comes."""
    block = _ours(target, kernel, draws)
    while (question := pipe.recv()) is not None:
        pipe.send(block(*question))


def _ours_gradient(target: LogJoint) -> Block:
    def block(position: Array, seed: int) -> tuple[Array, int]:
        for _ in range(100):
            target(position)
        return position[None], 100 * len(position)

    return block


def _peer_gradient(target: LogJoint, peer: ModuleType) -> Block:
    call = peer.gradient(target)

    def block(position: Array, seed: int) -> tuple[Array, int]:
        for _ in range(100):
            call(position)
        return position[None], 100 * len(position)

    return block


def table(timed: list[Timed]) -> list[list[str]]:
    """Return the rows of the printed table, header first."""
    head = ["posterior", "sampler", "dtype", "S", "ours grad/s", "blackjax grad/s", "ratio", "bar"]
    rows = [[*head, "met"]]
    for one in timed:
        rate = {name: f"{np.median(values):,.0f}" for name, values in one.gradients.items()}
        rows.append(
            [one.posterior, one.sampler, one.dtype, str(one.chains), rate["ours"], rate["blackjax"],
             f"{one.ratio.median:.2f}", f">= {BAR:g}", "yes" if one.ratio.median >= BAR else "NO"]
        )  # fmt: skip
    return rows


def as_json(timed: list[Timed], peer: ModuleType, about: dict[str, Any]) -> dict[str, Any]:
    """Return everything measured as plain numbers."""
    return {
        "about": {**results.machine(), "peers": {"blackjax": peer.VERSION}, **about},
        "results": [
            {
                **{"posterior": one.posterior, "sampler": one.sampler, "dtype": one.dtype},
                **{"chains": one.chains, "ratio": one.ratio._asdict(), "bar": BAR},
                "gradients per second": {n: spread(v)._asdict() for n, v in one.gradients.items()},
            }
            for one in timed
        ],
    }


if __name__ == "__main__":
    sys.exit(main())
