"""Effective samples per second, of samplers as a user gets them: each with a warm-up of its own."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import arviz as az
import numpy as np

from bbb_numpy.model.log_joint import LogJoint
from bbb_numpy.sampling.run import sample
from benchmarks.problems import Array
from benchmarks.racing import Result

BAR = 2.0  # the default sampler over blackjax's NUTS
PEER = "blackjax NUTS"
ROWS = 20  # the function's values at so many of the data's inputs are judged

Clock = Callable[[], float]  # seconds, passed or of processor time
Continue = Callable[[float], Array]  # draws (T, S, D) of about so many seconds, from where it is


def values(target: LogJoint, positions: Array) -> Array:
    """Return the function (S, T, rows) at draws (T, S, D)."""
    draws, chains, size = positions.shape
    w = np.ascontiguousarray(target.weights(positions.reshape(-1, size)))
    f = target.model.predict(w, target.x[:ROWS])[..., 0].astype(float)
    return f.reshape(draws, chains, -1).swapaxes(0, 1)


def dataset(f: Array) -> Any:
    """Return functions (S, T, rows) in ArviZ's container."""
    return az.convert_to_dataset({"f": f})


def ess(runs: Sequence[Array]) -> Array:
    """Return the bulk effective sample size of the worst row of functions, of each run."""
    return np.array([float(az.ess(dataset(f), method="bulk")["f"].min()) for f in runs])


def ours(
    target: LogJoint, start: Array, sampler: str, warm_up: int | None, folder: str, clock: Clock
) -> tuple[float, Continue]:
    """Warm one of our samplers up by the call that a user makes; return its seconds, and more.

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

    return passed, more


def race(
    target: LogJoint,
    what: dict[str, Any],
    start: Array,
    names: list[str],
    peer: ModuleType,
    *,
    default: str,
    warm_up: int | None,
    runs: int,
    seconds: float,
    clock: Clock,
) -> list[Result]:
    """Warm all up from the same start, then let them run in turn, `runs` times each.

    Without `warm_up` ours take their own, and the peer 500 steps, which are enough for it.
    A run is one call, of a length that the calls before it foretell, and another where it was too
    short: of many short calls each would begin on one core, before it starts the processes.
    """
    with tempfile.TemporaryDirectory() as folder:
        contestants: dict[str, tuple[float, Continue]] = {
            one: ours(target, start, one, warm_up, f"{folder}/{one}", clock) for one in names
        }
        contestants[PEER] = peer.adapted_nuts(target, start, warm_up or 500, clock)
        functions: dict[str, list[Array]] = {one: [] for one in contestants}
        passed: dict[str, list[float]] = {one: [] for one in contestants}
        for _, more in contestants.values():
            for share in (0.1, 1.0, 1.0):  # finds how many draws a run takes
                more(share * seconds)
        for _ in range(runs):
            for one, (_, more) in contestants.items():
                began, parts = clock(), []
                while (gone := clock() - began) < seconds:
                    parts.append(more(1.1 * (seconds - gone)))
                functions[one].append(values(target, np.concatenate(parts)))
                passed[one].append(gone)
    rates = {one: ess(f) / np.array(passed[one]) for one, f in functions.items()}
    found = []
    for one, (warmed, _) in contestants.items():
        r_hat = az.rhat(dataset(np.concatenate(functions[one], axis=1)))["f"].max()
        told = {"sampler": one, "warm-up s": f"{warmed:.1f}", "R-hat": f"{float(r_hat):.3f}"}
        bars = {"ratio": BAR} if one == default else {}
        both = {"sampler": rates[one], PEER: rates[PEER]}
        found.append(Result(what | told, both, {"ratio": ("sampler", PEER)}, bars, "ESS/s"))
    return found
