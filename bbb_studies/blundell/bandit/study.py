"""Exploration by weight uncertainty: the mushroom bandit (Blundell et al. 2015, Section 5.3).

Every agent plays every run; each pair is a chain of slices that worker processes play one after
the other. A slice begins with the state that the slice before has stored, so that a command that
was killed goes on where it was and ends with the same numbers. Two commands in one folder at the
same time may set each other back, but not to other numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import lru_cache, partial
from pathlib import Path
from time import process_time
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from bbb_numpy.numeric.files import write_json, write_text
from bbb_numpy.progress import tqdm
from bbb_studies.data import mushroom
from bbb_studies.data.mushroom import Mushrooms

from . import plots, tables
from .models import (
    AGENTS,
    FULL,
    Agent,
    Game,
    Settings,
    State,
    begin,
    game,
    play,
    regret,
    training_steps,
)
from .saved import key_of, load_state, path_of, save_state

__all__ = ["advance", "full", "measure", "reproduce", "slices"]

Array = NDArray[Any]
SLICE = 40_000  # minibatches: half a minute at most, which is what a kill loses


def full(seed: int) -> dict[str, Any]:
    """Return the arguments of `reproduce` for training after every mushroom, as in the paper."""
    every = Settings().interactions
    return {"seed": seed, "settings": Settings(dense=every, sparse=1), "agents": FULL}


def slices(settings: Settings) -> list[int]:
    """Return the interactions after which a slice ends, the last one included."""
    ends: list[int] = []
    work = 0
    for played in range(1, settings.interactions + 1):
        work += training_steps(settings, played)
        if work >= SLICE:
            ends, work = [*ends, played], 0
    return ends if ends and ends[-1] == settings.interactions else [*ends, settings.interactions]


def _agent_seed(seed: int, run: int, agent: Agent) -> tuple[int, int, int]:
    """Return a seed that does not depend on which other agents play."""
    return seed, run, crc32(agent.name.encode())


_load = lru_cache(maxsize=1)(mushroom.load)


def advance(
    out: Path,
    seed: int,
    settings: Settings,
    agent: Agent,
    run: int,
    until: int,
    data: Mushrooms | None = None,
) -> int:
    """Play one run on to interaction `until`, from and to its file; return what was added."""
    data = data or _load()
    path, key = path_of(out, agent, run), key_of(seed, settings, data, asdict(agent), run)
    the = game(data.x, data.poisonous, settings.interactions, (seed, run))
    started, seconds = process_time(), 0.0
    if path.exists():
        state, seconds = load_state(path, key)
    else:
        state = begin(agent, settings, the.inputs.shape[1], _agent_seed(seed, run, agent))
    before = state.played
    play(the, agent, settings, state, until)
    save_state(path, state, key, seconds + process_time() - started)
    return state.played - before


Chain = tuple[Agent, int]  # an agent in a run


def _play_all(
    out: Path,
    seed: int,
    settings: Settings,
    agents: Sequence[Agent],
    data: Mushrooms,
    given: Mushrooms | None,
    jobs: int,
    progress: bool | None,
) -> dict[Chain, tuple[State, float]]:
    """Play every chain to its end; return the last state of each and the seconds spent on it."""
    chains = [(agent, run) for run in range(settings.runs) for agent in agents]
    ends = slices(settings)
    while True:
        stored, left = {}, {}
        for agent, run in chains:
            path, played = path_of(out, agent, run), 0
            if path.exists():
                key = key_of(seed, settings, data, asdict(agent), run)
                stored[agent, run] = load_state(path, key)
                played = stored[agent, run][0].played
            if played < settings.interactions:
                left[agent, run] = [end for end in ends if end > played]
        if not left:
            return stored
        _play(partial(_advance, out, seed, settings, given), left, len(ends) * len(chains), jobs,
              progress)  # fmt: skip


def _advance(
    out: Path, seed: int, settings: Settings, given: Mushrooms | None, one: tuple[Chain, int]
) -> int:
    (agent, run), until = one
    return advance(out, seed, settings, agent, run, until, given)


def _play(
    advance: Callable[[tuple[Chain, int]], int],
    left: dict[Chain, list[int]],
    total: int,
    jobs: int,
    progress: bool | None,
) -> None:
    """Play what is left of the chains, as many at a time as there are jobs."""
    from bbb_studies.uci.workers import WorkersError, local, work  # an extra

    done = total - sum(map(len, left.values()))
    hidden = None if progress is None else not progress
    with (
        local(min(jobs, len(left))) as client,
        tqdm(total=total, initial=done, unit="slice", leave=False, disable=hidden) as bar,
    ):

        def next_slice(one: tuple[Chain, int], _: int) -> list[tuple[Chain, int]]:
            bar.update()
            chain, until = one
            return [(chain, end) for end in left[chain] if end > until][:1]

        begin_with = [(chain, ends[0]) for chain, ends in left.items()]
        killed = work(client, advance, begin_with, next_slice, bar.refresh)
    if killed:
        names = ", ".join(f"{agent.name} in run {run}" for (agent, run), _ in killed)
        raise WorkersError(
            f"the worker of {names} died, again while it ran alone; the same command goes on"
        )


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
    out: dict[str, dict[str, Any]] = {}
    for name, eaten in ate.items():
        rows: list[dict[str, Any]] = []
        for the, one in zip(games, eaten, strict=True):
            costs, bad = regret(the, one), the.poisonous[last]
            rows.append(
                {
                    "regret": float(costs.sum()),
                    "regret while trained densely": float(costs[: settings.dense].sum()),
                    "regret of the last tenth": float(costs[last].sum()),
                    "realised regret": float(regret(the, one, realised=True).sum()),
                    "poisonous eaten in the last tenth": int((one[last] & bad).sum()),
                    "poisonous shown in the last tenth": int(bad.sum()),
                    "edible left in the last tenth": int((~one[last] & ~bad).sum()),
                    "edible shown in the last tenth": int((~bad).sum()),
                    "longest fast": _fast(one),
                }
            )
        out[name] = {key: [row[key] for row in rows] for key in rows[0]}
    return out


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
    depend on how many processes, `jobs`, there are.

    Raises
    ------
    ValueError
        If `out` holds runs of another seed or of other settings, or a damaged file.
    OSError
        If `out` cannot be written.
    WorkersError
        If a slice takes its workers down again and again.
    ModuleNotFoundError
        Without dask.distributed, the extra `uci`.
    """
    if len({agent.name for agent in agents}) < len(agents) or not agents:
        raise ValueError(f"agents must have names that differ; got {[a.name for a in agents]}")
    settings = settings or Settings()
    data = mushrooms or mushroom.load()
    out.mkdir(parents=True, exist_ok=True)
    key = key_of(seed, settings, data, [asdict(agent) for agent in agents])
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
    stored = _play_all(out, seed, settings, agents, data, mushrooms, jobs, progress)
    ate, seconds = {}, {}
    for agent in agents:
        states = [stored[agent, run] for run in range(settings.runs)]
        ate[agent.name] = np.array([state.ate for state, _ in states])
        seconds[agent.name] = sum(spent for _, spent in states)
    numbers = measure(seed, settings, data, ate)
    games = _games(seed, settings, data)
    plots.draw(settings, games, ate).savefig(out / "bandit.png", dpi=100)
    found = {"seed": seed, "settings": asdict(settings), "agents": numbers, "seconds": seconds}
    write_json(out / "numbers.json", found)
    summary = tables.lay_out(seed, settings, numbers, seconds)
    write_text(text_file, summary + "\n")
    return summary
