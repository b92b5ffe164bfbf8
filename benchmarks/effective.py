"""Effective samples per second, of samplers as a user gets them: each with a warm-up of its own."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType

import arviz as az
import numpy as np

from bbb_numpy.model.log_joint import LogJoint
from bbb_numpy.sampling.run import SAMPLERS, sample
from benchmarks.problems import Array

BAR = 2.0  # the default sampler over blackjax's NUTS
PEER = "blackjax NUTS"
ROWS = 20  # the function's values at so many of the data's inputs are judged

Clock = Callable[[], float]  # seconds, passed or of processor time
Continue = Callable[[float], Array]  # draws (T, S, D) of about so many seconds, from where it is


@dataclass(frozen=True)
class Contestant:
    """One sampler on one posterior, after its warm-up."""

    name: str
    warm_up: float  # seconds
    more: Continue


@dataclass(frozen=True)
class Effective:
    """One sampler's runs on one posterior."""

    posterior: str
    dtype: str
    chains: int
    sampler: str
    warm_up: float  # seconds
    per_second: Array  # (runs,)  bulk ESS of the worst row over the seconds of the run
    rhat: float  # of the worst row, over all runs

    @property
    def median(self) -> float:
        """Median over the runs."""
        return float(np.median(self.per_second))


def samplers() -> list[str]:
    """Return the short names of our samplers that follow a gradient."""
    return [name for name in SAMPLERS if name != "mh"]


def values(target: LogJoint, positions: Array) -> Array:
    """Return the function (S, T, rows) at draws (T, S, D)."""
    draws, chains, size = positions.shape
    w = np.ascontiguousarray(target.weights(positions.reshape(-1, size)))
    f = target.model.predict(w, target.x[:ROWS])[..., 0].astype(float)
    return f.reshape(draws, chains, -1).swapaxes(0, 1)


def ess(f: Array) -> float:
    """Return the least bulk effective sample size of functions (S, T, rows)."""
    return min(float(az.ess(f[..., row], method="bulk")) for row in range(f.shape[-1]))


def _r_hat(f: Array) -> float:
    """Return the largest R-hat of functions (S, T, rows)."""
    return max(float(az.rhat(f[..., row])) for row in range(f.shape[-1]))


def ours(
    target: LogJoint, start: Array, sampler: str, warm_up: int | None, folder: str, clock: Clock
) -> Contestant:
    """Warm one of our samplers up by the call that a user makes; later calls continue it.

    `sample` with its defaults: how chains are grouped and how many cores work is its business, and
    starting processes, reading and writing the checkpoint count as sampling.
    """
    done = 0

    def to(draws: int) -> Array:
        nonlocal done
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # divergences of so short runs
            found = sample(
                *(target.model, target.x, target.y),
                **{"chains": len(start), "start": start, "dtype": start.dtype.name},
                **{"sampler": sampler, "draws": draws, "warm_up": warm_up, "seed": 0},
                **{"progress": False, "checkpoint": folder, "checkpoint_every": 1e6},
            )
        new, done = found.positions[done:], draws
        return new

    before = clock()
    to(1)
    passed = clock() - before
    rate = 10.0  # draws per second of the call before

    def more(seconds: float) -> Array:
        nonlocal rate
        began, size = clock(), max(1, int(rate * seconds))
        new = to(done + size)
        rate = size / (clock() - began)
        return new

    return Contestant(f"ours {sampler}", passed, more)


def race(
    target: LogJoint,
    name: str,
    start: Array,
    names: list[str],
    peer: ModuleType,
    *,
    warm_up: int | None,
    runs: int,
    seconds: float,
    clock: Clock,
) -> list[Effective]:
    """Warm all up from the same start, then let them run in turn, `runs` times each.

    Without `warm_up` ours take their own, and the peer 500 steps, which are enough for it.
    A run is one call, of a length that the calls before it foretell, and another where it was too
    short: of many short calls each would begin on one core, before it starts the processes.
    """
    with tempfile.TemporaryDirectory() as folder:
        contestants = [
            *(ours(target, start, one, warm_up, f"{folder}/{one}", clock) for one in names),
            Contestant(PEER, *peer.adapted_nuts(target, start, warm_up or 500, clock)),
        ]
        kept: dict[str, list[Array]] = {one.name: [] for one in contestants}
        rates: dict[str, list[float]] = {one.name: [] for one in contestants}
        for one in contestants:
            for share in (0.1, 1.0, 1.0):  # finds how many draws a run takes
                one.more(share * seconds)
        for _ in range(runs):
            for one in contestants:
                began, parts = clock(), []
                while (passed := clock() - began) < seconds:
                    parts.append(one.more(1.1 * (seconds - passed)))
                f = values(target, np.concatenate(parts))
                kept[one.name].append(f)
                rates[one.name].append(ess(f) / passed)
    return [
        Effective(
            *(name, start.dtype.name, len(start), one.name, one.warm_up),
            *(np.array(rates[one.name]), _r_hat(np.concatenate(kept[one.name], axis=1))),
        )
        for one in contestants
    ]


def table(found: list[Effective], default: str) -> list[dict[str, str]]:
    """Return the rows of the printed table."""
    rows = []
    for one in found:
        ratio = one.median / rival(found, one).median
        judged = one.sampler == f"ours {default}"
        rows.append({
            "posterior": one.posterior, "dtype": one.dtype, "S": str(one.chains),
            "sampler": one.sampler, "warm-up s": f"{one.warm_up:.1f}",
            "ESS/s": f"{one.median:.2f}", "R-hat": f"{one.rhat:.3f}", "ratio": f"{ratio:.2f}",
            "bar": f">= {BAR:g} {'met' if ratio >= BAR else 'MISSED'}" if judged else "-",
        })  # fmt: skip
    return rows


def rival(found: list[Effective], one: Effective) -> Effective:
    """Return the peer's runs on the same posterior, with as many chains in the same dtype."""
    key = (one.posterior, one.dtype, one.chains)
    return next(o for o in found if (o.posterior, o.dtype, o.chains) == key and o.sampler == PEER)


def as_json(found: list[Effective]) -> list[dict[str, object]]:
    """Return everything measured as plain numbers."""
    return [
        {
            **{"posterior": one.posterior, "dtype": one.dtype, "chains": one.chains},
            **{"sampler": one.sampler, "warm-up seconds": one.warm_up},
            "ESS per second": one.per_second.tolist(),
            **{"median": one.median, "ratio": one.median / rival(found, one).median},
            "R-hat": one.rhat,
        }
        for one in found
    ]
