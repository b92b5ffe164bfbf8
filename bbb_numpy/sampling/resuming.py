"""A sampling run on disk, to go on from where it was.

A folder with a file for each group of chains, ``group-<number>.npz``: its draws, and all that the
next step depends on. What such files look like is said in `numeric.storing`.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..model.log_joint import LogJoint
from ..numeric.storing import CheckpointError, Format, read_state, write_state
from ..numeric.validation import not_negative
from .chains import Run
from .mcmc import Adaptation, DenseMetric, DiagonalMetric, Kernel, Metric, State, Target
from .mcmc.adaptation import DualAveraging, Moments
from .mcmc.chees import Paced, PathLength
from .mcmc.microcanonical import MicrocanonicalAdaptation
from .mcmc.states import evaluate

__all__ = ["Checkpoint"]

Array = NDArray[Any]


class Tuning(NamedTuple):
    """What a warm-up has made of the kernel, which may be one's own and is not stored."""

    step_size: float
    metric: Metric
    length: float | None  # of a path, where the warm-up learns it


class Stored(NamedTuple):
    """The file of a group of chains."""

    settings: dict[str, Any]
    run: Run


FORMAT = Format(
    "bbb_numpy.sampling",
    3,
    (
        Run,
        State,
        Paced,
        Adaptation,
        MicrocanonicalAdaptation,
        DualAveraging,
        Moments,
        PathLength,
        Tuning,
        DiagonalMetric,
        DenseMetric,
    ),
)


class Checkpoint:
    """The folder of a run.

    Parameters
    ----------
    folder : path
    every : float
        Seconds between two writes.
    settings : dict
        By which the same call is known again: whole numbers, floats, text and None.

    Raises
    ------
    TypeError, ValueError
        For arguments of another kind.
    NotADirectoryError
        If there is a file of that name.
    """

    def __init__(self, folder: str | Path, every: float, settings: dict[str, Any]) -> None:
        if not isinstance(folder, str | Path) or not str(folder):
            raise TypeError(f"checkpoint must name a folder; got {folder!r}")
        self.folder = Path(folder)
        self.every = not_negative("checkpoint_every", every)
        if self.folder.exists() and not self.folder.is_dir():
            raise NotADirectoryError(f"checkpoint {self.folder} is a file; name a folder")
        self.written = time.monotonic()
        self.settings = settings

    def due(self) -> bool:
        """Whether it is time to write."""
        return time.monotonic() - self.written >= self.every

    def write(self, runs: Sequence[Run]) -> None:
        """Store all groups; a file is replaced only when the new one is whole."""
        self.written = time.monotonic()  # and not tried again at every step
        self.folder.mkdir(parents=True, exist_ok=True)
        for group, run in enumerate(runs):
            draws = (run.joined(),) if run.draws else ()
            stored = run._replace(draws=draws, adaptation=_without_kernel(run.adaptation))
            write_state(self._file(group), Stored(self.settings, stored), FORMAT)

    def read(
        self, groups: int, start: Array | None, target: Target, kernel: Kernel
    ) -> list[Run] | None:
        """Return the stored run of every group, or None if not all of them are there.

        Parameters
        ----------
        start : ndarray (S, D), optional
            Where the chains begin; None if the same call would begin elsewhere.

        Raises
        ------
        ValueError
            If it is the run of other settings, another start, model or data, or is damaged.
        """
        begun = None if start is None else _sum(start)
        self.settings |= {"groups": groups, "start": begun, **_described(target)}
        found = [
            self._read(group, target, kernel)
            for group in range(groups)
            if self._file(group).exists()
        ]
        return found if len(found) == groups else None

    def _file(self, group: int) -> Path:
        return self.folder / f"group-{group}.npz"

    def _read(self, group: int, target: Target, kernel: Kernel) -> Run:
        path = self._file(group)
        try:
            settings, run = read_state(path, Stored, FORMAT)
        except CheckpointError as error:
            raise ValueError(f"checkpoint {path} cannot be read: {error}") from None
        optional = ("start", "seed")  # not known before a run without a seed begins
        other = [
            f"{name} {settings.get(name)} there, {value} here"
            for name, value in self.settings.items()
            if settings.get(name) != value and not (name in optional and value is None)
        ]
        if other:
            raise ValueError(
                f"checkpoint {self.folder} belongs to another run ({'; '.join(other)}). Make the "
                "same call, or name another folder"
            )
        value, _ = evaluate(target, run.state.position)
        if not np.allclose(value, run.state.log_density, rtol=1e-4, atol=1e-4):
            raise ValueError(
                f"checkpoint {self.folder} belongs to another target: where its chains stand, this "
                f"one has the log densities {value}, not {run.state.log_density}. Name another "
                "folder"
            )
        self.settings = settings
        adaptation = run.adaptation
        if adaptation is not None:
            *tuning, length = adaptation.kernel
            tuned: Any = kernel.tuned(*tuning, *([] if length is None else [length]))  # type: ignore[attr-defined]
            adaptation = adaptation._replace(kernel=tuned)
        found: Run = run._replace(adaptation=adaptation)
        return found


def _without_kernel(adaptation: Any) -> Any:
    """Return a warm-up with what it found in place of the kernel."""
    if adaptation is None:
        return None
    kernel = adaptation.kernel
    length = getattr(kernel, "decoherence_length", None)
    if isinstance(getattr(adaptation, "length", None), PathLength):
        length = kernel.path
    return adaptation._replace(kernel=Tuning(kernel.step_size, kernel.metric, length))


def _sum(array: Array) -> str:
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16]


def _described(target: Target) -> dict[str, Any]:
    """Return what tells one target from another: of a function, its name at most."""
    if not isinstance(target, LogJoint):
        return {"target": getattr(target, "__qualname__", type(target).__qualname__)}
    rows = {"x": target.x, "y": target.y, "sample_weight": target.sample_weight}
    return {
        "model": repr(target.model),
        "hyperpriors": repr(sorted(target.hyperpriors.items())),
        "power": target.power,
        **{name: _sum(array) for name, array in rows.items() if array is not None},
    }
