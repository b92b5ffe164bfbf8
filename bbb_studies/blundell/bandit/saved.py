"""What the mushroom bandit keeps on disk: one file for each agent and run."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np

from bbb_numpy.numeric.storing import CheckpointError, Format, read_state, write_state
from bbb_numpy.training.optimizers import Memory
from bbb_numpy.training.state import Epoch, Training
from bbb_studies.data.mushroom import Mushrooms

from .models import Agent, Settings, State

__all__ = ["key_of", "load_state", "path_of", "save_state"]


class Stored(NamedTuple):
    """The file of one agent in one run."""

    key: str  # says what it belongs to
    seconds: float  # of processor time
    state: State


FORMAT = Format("bbb_numpy.bandit", 1, (State, Training, Memory, Epoch))


def path_of(out: Path, agent: Agent, run: int) -> Path:
    """Return where the state of one agent in one run lies."""
    return out / f"{agent.name.replace(' %', '').replace(' ', '-')}-{run}.npz"


def save_state(path: Path, state: State, key: str, seconds: float) -> None:
    """Write a state whole or not at all; `key` says what it belongs to."""
    write_state(path, Stored(key, seconds, state), FORMAT)


def load_state(path: Path, key: str) -> tuple[State, float]:
    """Read what `save_state` wrote: the state, and the processor seconds that it took.

    Raises
    ------
    ValueError
        If the file is damaged or belongs to something else.
    """
    try:
        found: Stored = read_state(path, Stored, FORMAT)
    except CheckpointError as error:
        raise ValueError(
            f"{path} is damaged ({error}). Delete it, and this run begins again; the others go on"
        ) from None
    if found.key != key:
        raise ValueError(
            f"{path} belongs to another agent, seed, data or settings. Use another folder"
        )
    return found.state, found.seconds


def key_of(seed: int, settings: Settings, data: Mushrooms, *more: Any) -> str:
    """Return all that the numbers depend on, as text."""
    mark = crc32(np.packbits(data.x > 0).tobytes() + data.poisonous.tobytes())
    return json.dumps([FORMAT.version, seed, asdict(settings), mark, *more])
