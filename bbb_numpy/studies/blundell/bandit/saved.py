"""What the mushroom bandit keeps on disk: one file for each agent and run."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any
from zipfile import BadZipFile
from zlib import crc32

import numpy as np

from bbb_numpy.data.mushroom import Mushrooms
from bbb_numpy.numeric.files import write_arrays
from bbb_numpy.training.optimizers import Memory
from bbb_numpy.training.state import Training

from .models import Agent, Settings, State

__all__ = ["key_of", "load_state", "path_of", "save_state"]

FORMAT = 1  # of the files


def path_of(out: Path, agent: Agent, run: int) -> Path:
    """Return where the state of one agent in one run lies."""
    return out / f"{agent.name.replace(' %', '').replace(' ', '-')}-{run}.npz"


def save_state(path: Path, state: State, key: str, seconds: float) -> None:
    """Write a state whole or not at all; `key` says what it belongs to."""
    memory = state.training.optimizer_state
    rng = json.dumps(state.rng.bit_generator.state)
    write_arrays(
        path,
        {
            "key": np.array(key),
            "played": np.array(state.played),
            "ate": state.ate,
            "theta": state.training.theta,
            "steps": np.array(memory.steps),
            **{f"memory {name}": array for name, array in memory.arrays.items()},
            "rng": np.array(rng),
            "seconds": np.array(seconds),
        },
    )


def load_state(path: Path, key: str) -> tuple[State, float]:
    """Read what `save_state` wrote: the state, and the processor seconds that it took.

    Raises
    ------
    ValueError
        If the file is damaged or belongs to something else.
    """
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as arrays:
            held = {name: arrays[name] for name in arrays.files}
        found = str(held["key"])
        rng = np.random.default_rng()
        rng.bit_generator.state = json.loads(str(held["rng"]))
        memory = {k.removeprefix("memory "): v for k, v in held.items() if k.startswith("memory ")}
        training = Training(held["theta"], Memory(int(held["steps"]), memory))
        state = State(int(held["played"]), held["ate"], training, rng)
        seconds = float(held["seconds"])
    except (BadZipFile, EOFError, KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"{path} is damaged ({type(error).__name__}: {error}). Delete it, and this run begins "
            "again; the others go on"
        ) from None
    if found != key:
        raise ValueError(
            f"{path} belongs to another agent, seed, data or settings. Use another folder"
        )
    return state, seconds


def key_of(seed: int, settings: Settings, data: Mushrooms, *more: Any) -> str:
    """Return all that the numbers depend on, as text."""
    mark = crc32(np.packbits(data.x > 0).tobytes() + data.poisonous.tobytes())
    return json.dumps([FORMAT, seed, asdict(settings), mark, *more])
