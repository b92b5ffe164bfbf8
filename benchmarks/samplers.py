"""Time our samplers against blackjax under jit, on the same posteriors, in one run.

    python benchmarks/samplers.py            # everything, about ten minutes
    python benchmarks/samplers.py --quick    # a look

Gradient evaluations per second (those that a trajectory uses), and effective samples per second.
See README.md in this folder.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from types import ModuleType
from typing import Any

import arviz as az
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # to run as a plain script

from bbb_numpy import MLP, BernoulliLikelihood, GaussianLikelihood, GaussianPrior, Model
from bbb_numpy.model.log_joint import LogJoint
from bbb_numpy.sampling.mcmc import HMC, NUTS, DiagonalMetric
from bbb_numpy.sampling.run import Draws, sample_target
from benchmarks import results
from benchmarks.problems import Array
from benchmarks.round_robin import Spread, spread

RESULTS = Path(__file__).resolve().parent / "results" / "samplers.json"
BARS = {4: 1.0, 16: 1.5}  # our gradient rate over blackjax's, by number of chains
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
    effective: dict[str, float]  # per second, over all rounds; the least of the functions'

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
    from bbb_numpy.data import powerball as data

    found = data.examples(data.load())
    x = np.log1p(np.asarray(found.number, float)).reshape(-1, 1)
    x = (x - x.mean()) / x.std()
    y = np.asarray(found.label, float).reshape(-1, 1)
    model = Model(MLP((1, 5, 1), "tanh"), GaussianPrior(1.0), BernoulliLikelihood())
    return Posterior(f"Powerball, 1-5-1 tanh, {len(x)} rows", model, x, y, 25)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return 0 even where a bar is missed: this measures, it judges not."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, help="turns of every contestant")
    parser.add_argument("--quick", action="store_true", help="few, short rounds; saves nothing")
    parser.add_argument("--json", type=Path, help="where to save; default: results/samplers.json")
    args = parser.parse_args(argv)
    try:
        peer = importlib.import_module("benchmarks.peer_blackjax")
    except ImportError as error:
        print(f"needs blackjax: {error}; pip install 'bbb-numpy[bench]' brings it")
        return 1
    posteriors = [regression()]
    try:
        posteriors.append(powerball())
    except FileNotFoundError as error:
        print(f"SKIPPED Powerball: {error}")
    rounds = args.rounds or (2 if args.quick else 8)
    timed = [
        one
        for posterior, warm in [(posterior, warmed_up(posterior)) for posterior in posteriors]
        for dtype in ("float64", "float32")
        for chains in (4, 16)
        for one in measure(posterior, warm, dtype, chains, rounds, peer)
    ]
    print(results.aligned(table(timed)))
    path = args.json or (None if args.quick or len(posteriors) < 2 else RESULTS)
    if path:
        path.write_text(json.dumps(as_json(timed, rounds, peer), indent=1) + "\n", encoding="utf-8")
    else:
        print("partial run: nothing saved; name a file with --json to keep it")
    return 0


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
    posterior: Posterior, warm: Draws, dtype: str, chains: int, rounds: int, peer: ModuleType
) -> list[Timed]:
    """Race the samplers from the same warmed-up states, with the same step size and metric."""
    import jax

    jax.config.update("jax_enable_x64", dtype == "float64")
    print(f"timing {posterior.name}, {dtype}, {chains} chains", file=sys.stderr)
    target = LogJoint(posterior.model, posterior.x.astype(dtype), posterior.y.astype(dtype))
    begin = np.tile(warm.positions[:, 0], (chains, 1))[:chains].astype(dtype)
    variance, step = warm.kernel.metric.variance.astype(dtype), warm.kernel.step_size
    path = LEAPFROGS * step
    pairs = {
        "gradient alone": (_ours_gradient(target), _peer_gradient(target, peer)),
        "HMC": (
            _ours(target, HMC(step, path, DiagonalMetric(variance), jitter=0.0), posterior.draws),
            peer.hmc(target, step, variance, LEAPFROGS, posterior.draws),
        ),
        "NUTS": (
            _ours(target, NUTS(step, DiagonalMetric(variance), DEPTH), posterior.draws),
            peer.nuts(target, step, variance, DEPTH, posterior.draws),
        ),
    }
    return [
        race(Timed(posterior.name, sampler, dtype, chains, {}, {}), target, begin, pair, rounds)
        for sampler, pair in pairs.items()
    ]


Block = Callable[[Array, int], tuple[Array, int]]


def race(
    empty: Timed, target: LogJoint, begin: Array, pair: tuple[Block, Block], rounds: int
) -> Timed:
    """Run both in turn, each from where it was, and count gradients and effective samples."""
    names = ("ours", "blackjax")
    places = dict.fromkeys(names, begin)
    kept: dict[str, list[Array]] = {name: [] for name in names}
    rates: dict[str, list[float]] = {name: [] for name in names}
    seconds = dict.fromkeys(names, 0.0)
    for turn in range(-1, rounds):  # the first turn compiles
        for name, block in zip(names, pair, strict=True):
            before = perf_counter()
            positions, gradients = block(places[name], turn + 1)
            passed = perf_counter() - before
            places[name] = positions[-1]
            if turn >= 0:
                rates[name].append(gradients / passed)
                kept[name].append(positions)
                seconds[name] += passed
    effective = {}
    if empty.sampler != "gradient alone":
        for name in names:
            found = ess(target, np.concatenate(kept[name]))
            effective[name] = found / seconds[name]
    return Timed(
        empty.posterior, empty.sampler, empty.dtype, empty.chains,
        {name: np.array(rate) for name, rate in rates.items()}, effective,
    )  # fmt: skip


def ess(target: LogJoint, positions: Array) -> float:
    """Return the least bulk effective sample size of the function at 20 rows (T, S, D)."""
    draws, chains, size = positions.shape
    w = np.ascontiguousarray(target.weights(positions.reshape(-1, size)))
    f = target.model.predict(w, target.x[:20])[..., 0].astype(float)
    values = f.reshape(draws, chains, -1).swapaxes(0, 1)  # (S, T, rows)
    return min(float(az.ess(values[..., row])) for row in range(values.shape[-1]))


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


def dtype_of(name: str) -> Any:
    """Return the scalar type of that name."""
    return np.dtype(name).type


def table(timed: list[Timed]) -> list[list[str]]:
    """Return the rows of the printed table, header first."""
    head = ["posterior", "sampler", "dtype", "S", "ours grad/s", "blackjax grad/s", "ratio", "bar"]
    rows = [[*head, "met", "ours ESS/s", "blackjax ESS/s"]]
    for one in timed:
        rate = {name: f"{np.median(values):,.0f}" for name, values in one.gradients.items()}
        bar = BARS[one.chains]
        per_second = [f"{one.effective[n]:.2f}" if one.effective else "-" for n in rate]
        rows.append(
            [one.posterior, one.sampler, one.dtype, str(one.chains), rate["ours"], rate["blackjax"],
             f"{one.ratio.median:.2f}", f">= {bar:g}", "yes" if one.ratio.median >= bar else "NO",
             *per_second]
        )  # fmt: skip
    return rows


def as_json(timed: list[Timed], rounds: int, peer: ModuleType) -> dict[str, Any]:
    """Return everything measured as plain numbers."""
    return {
        "about": {**results.machine(), "peers": {"blackjax": peer.VERSION}, "rounds": rounds},
        "results": [
            {
                **{"posterior": one.posterior, "sampler": one.sampler, "dtype": one.dtype},
                **{"chains": one.chains, "ratio": one.ratio._asdict(), "bar": BARS[one.chains]},
                "gradients per second": {n: spread(v)._asdict() for n, v in one.gradients.items()},
                "effective samples per second": one.effective,
            }
            for one in timed
        ],
    }


if __name__ == "__main__":
    sys.exit(main())
