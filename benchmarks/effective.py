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

MIN_ESS_RATIO = 2.0  # the default sampler over blackjax's NUTS
PEER = "blackjax NUTS"
N_JUDGED_ROWS = 20  # the function's values at so many of the data's inputs are judged

Clock = Callable[[], float]  # seconds, passed or of processor time
Continue = Callable[[float], Array]  # draws (T, S, D) of about so many seconds, from where it is


def values(target: LogJoint, positions: Array) -> Array:
    """Return the function (S, T, rows) at draws (T, S, D)."""
    draws, chains, size = positions.shape
    w = np.ascontiguousarray(target.weights(positions.reshape(-1, size)))
    f = target.model.predict(w, target.x[:N_JUDGED_ROWS])[..., 0].astype(float)
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
    """Warm one of our samplers up by a user's call; return its seconds, and how to continue.

    `sample` with its defaults: how chains are grouped and how many cores work is its business, and
    starting processes, reading and writing the checkpoint count as sampling.
    """
    n_done = 0

    def continue_to(draws: int) -> Array:
        nonlocal n_done
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # divergences of so short runs
            result = sample(
                *(target.model, target.x, target.y),
                **{"chains": len(start), "start": start, "dtype": start.dtype.name},
                **{"sampler": sampler, "draws": draws, "warm_up": warm_up, "seed": 0},
                **{"progress": False, "checkpoint": folder, "checkpoint_every": 1e6},
            )
        new_draws = result.positions[n_done:]
        n_done = draws
        return new_draws

    warm_up_start = clock()
    continue_to(1)
    elapsed = clock() - warm_up_start
    draws_per_second = 10.0  # draws per second of the call before

    def continue_for(seconds: float) -> Array:
        nonlocal draws_per_second
        call_start = clock()
        size = max(1, int(draws_per_second * seconds))
        new_draws = continue_to(n_done + size)
        draws_per_second = size / (clock() - call_start)
        return new_draws

    return elapsed, continue_for


def race(
    target: LogJoint,
    labels: dict[str, Any],
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
            name: ours(target, start, name, warm_up, f"{folder}/{name}", clock) for name in names
        }
        contestants[PEER] = peer.adapted_nuts(target, start, warm_up or 500, clock)
        functions: dict[str, list[Array]] = {name: [] for name in contestants}
        run_seconds: dict[str, list[float]] = {name: [] for name in contestants}
        for _, continue_for in contestants.values():
            for share in (0.1, 1.0, 1.0):  # finds how many draws a run takes
                continue_for(share * seconds)
        for _ in range(runs):
            for name, (_, continue_for) in contestants.items():
                run_start = clock()
                draws = []
                while (elapsed := clock() - run_start) < seconds:
                    draws.append(continue_for(1.1 * (seconds - elapsed)))
                functions[name].append(values(target, np.concatenate(draws)))
                run_seconds[name].append(elapsed)
    rates = {name: ess(f) / np.array(run_seconds[name]) for name, f in functions.items()}
    results = []
    for name, (warm_up_seconds, _) in contestants.items():
        r_hat = az.rhat(dataset(np.concatenate(functions[name], axis=1)))["f"].max()
        columns = {
            "sampler": name,
            "warm-up s": f"{warm_up_seconds:.1f}",
            "R-hat": f"{float(r_hat):.3f}",
        }
        bars = {"ratio": MIN_ESS_RATIO} if name == default else {}
        compared = {"sampler": rates[name], PEER: rates[PEER]}
        results.append(
            Result(labels | columns, compared, {"ratio": ("sampler", PEER)}, bars, "ESS/s")
        )
    return results
