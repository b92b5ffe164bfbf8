"""A sampling run on disk, to go on from where it was.

A folder with ``draws-<first>-<last>.npz`` for every stretch of draws, and ``state.npz``, written
last: all that the next step depends on, and which files of draws belong to it. Several groups of
chains have a folder each, ``group-<number>``, in that of the run. What the files look like is said
in `numeric.storing`.
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
from .mcmc import Adaptation, DenseMetric, DiagonalMetric, Info, Kernel, Metric, State, Target
from .mcmc.adaptation import DualAveraging, Moments, retuned, tunable
from .mcmc.chees import ChEES, Paced, PathLength
from .mcmc.microcanonical import MicrocanonicalAdaptation
from .mcmc.states import evaluate

__all__ = ["Recording", "Run", "Stretch", "recordings", "stacked", "unstacked"]

Array = NDArray[Any]


class Run(NamedTuple):
    """A run between two steps."""

    state: State | Paced
    rng: np.random.Generator
    adaptation: Adaptation | MicrocanonicalAdaptation | None  # None: there is nothing to adapt
    steps: int  # of the warm-up and after
    harmless: int  # divergences in the warm-up
    kept: list[State]  # without gradients
    infos: list[Info]

    def done(self, warm_up: int) -> int:
        """Return the steps of the warm-up and the draws made so far."""
        return min(self.steps, warm_up) + len(self.kept)


class Tuning(NamedTuple):
    """What a warm-up has made of the kernel, which may be one's own and is not stored."""

    step_size: float
    metric: Metric
    length: float | None = None  # of a path, where the warm-up learns it


class Stretch(NamedTuple):
    """A file of draws: what they are named tuples of, stacked."""

    kept: State
    infos: Info


class Stored(NamedTuple):
    """The file of a state."""

    settings: dict[str, Any]
    files: list[str]  # of draws, those of this state
    draws: int  # in them
    run: Run  # without draws


FORMAT = Format(
    "bbb_numpy.sampling",
    2,
    (
        Run,
        State,
        Paced,
        Info,
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


class Recording:
    """The folder of a run.

    Parameters
    ----------
    folder : path
    every : float
        Seconds between two writes.

    Raises
    ------
    TypeError, ValueError
        For arguments of another kind.
    NotADirectoryError
        If there is a file of that name.
    """

    def __init__(self, folder: str | Path, every: float) -> None:
        if not isinstance(folder, str | Path) or not str(folder):
            raise TypeError(f"checkpoint must name a folder; got {folder!r}")
        self.folder = Path(folder)
        self.every = not_negative("checkpoint_every", every)
        if self.folder.exists() and not self.folder.is_dir():
            raise NotADirectoryError(f"checkpoint {self.folder} is a file; name a folder")
        self.stored = 0
        self.files: list[str] = []
        self.written = time.monotonic()
        self.settings: dict[str, Any] = {}

    def due(self) -> bool:
        """Whether it is time to write."""
        return time.monotonic() - self.written >= self.every

    def write(self, run: Run) -> None:
        """Store the draws since the last write, then the state; if it fails, all is as it was."""
        self.written = time.monotonic()  # and not tried again at every step
        self.folder.mkdir(parents=True, exist_ok=True)
        count, files = len(run.kept), self.files
        stretch = stacked(run, self.stored)
        if stretch is not None:
            files = [*files, f"draws-{self.stored:08d}-{count:08d}.npz"]
            write_state(self.folder / files[-1], stretch, FORMAT)
        state = run._replace(adaptation=_without_kernel(run.adaptation), kept=[], infos=[])
        stored = Stored(self.settings, files, count, state)
        write_state(self.folder / "state.npz", stored, FORMAT)
        self.files, self.stored = files, count

    def read(
        self, settings: dict[str, Any], start: Array | None, target: Target, kernel: Kernel
    ) -> Run | None:
        """Return the stored run, or None if the folder holds none.

        Raises
        ------
        ValueError
            If it is the run of other settings, another start, model or data, or is damaged.
        """
        begun = None if start is None else _sum(start)
        self.settings = {**settings, "start": begun, **_print(target)}
        path = self.folder / "state.npz"
        if not path.exists():
            return None
        try:
            found: Stored = read_state(path, Stored, FORMAT)
        except CheckpointError as error:
            raise ValueError(f"checkpoint {path} cannot be read: {error}") from None
        optional = ("start", "seed")  # not known before a run without a seed begins
        other = [
            f"{name} {found.settings.get(name)} there, {value} here"
            for name, value in self.settings.items()
            if found.settings.get(name) != value and not (name in optional and value is None)
        ]
        if other:
            raise ValueError(
                f"checkpoint {self.folder} belongs to another run ({'; '.join(other)}). Make the "
                "same call, or name another folder"
            )
        try:
            run = self._run(found, kernel)
        except (ValueError, FileNotFoundError) as error:
            raise ValueError(f"checkpoint {self.folder} is damaged: {error}") from None
        state = run.state
        value, _ = evaluate(target, state.position)
        if not np.allclose(value, state.log_density, rtol=1e-4, atol=1e-4):
            raise ValueError(
                f"checkpoint {self.folder} belongs to another target: where its chains stand, this "
                f"one has the log densities {value}, not {state.log_density}. Name another folder"
            )
        self.settings, self.files, self.stored = found.settings, found.files, found.draws
        return run

    def _run(self, found: Stored, kernel: Kernel) -> Run:
        """Return a run with its draws and its kernel; another file's write was not completed."""
        _check_run(found.run)
        kept: list[State] = []
        infos: list[Info] = []
        for name in found.files:
            if Path(name).name != name:
                raise ValueError(f"{name!r} is no file of this folder")
            try:
                stretch: Stretch = read_state(self.folder / name, Stretch, FORMAT)
            except CheckpointError as error:
                raise ValueError(f"{name}: {error}") from None
            _check_stretch(stretch, found.run.state)
            more, told = unstacked(stretch)
            kept += more
            infos += told
        if not len(kept) == len(infos) == found.draws:
            raise ValueError(f"its files hold {len(kept)} of {found.draws} draws")
        adaptation = found.run.adaptation
        if adaptation is not None:
            adaptation = adaptation._replace(kernel=retuned(kernel, *adaptation.kernel))
        return found.run._replace(kept=kept, infos=infos, adaptation=adaptation)


def recordings(folder: str | Path, every: float, groups: int) -> list[Recording]:
    """Return the folders of all groups of a run: of one group, the run's own.

    Raises
    ------
    TypeError, ValueError
        As `Recording`; for the folder of a run in so many groups that they are told apart by the
        place of their files.
    NotADirectoryError
        If there is a file of that name.
    """
    whole = Recording(folder, every)
    parts = [whole.folder / f"group-{group}" for group in range(groups)]
    single = (whole.folder / "state.npz").exists()
    if single if groups > 1 else parts[0].exists():
        raise ValueError(
            f"checkpoint {whole.folder} belongs to another run (its chains are in "
            f"{'one group' if single else 'several groups'}, here in {groups}). Make the same "
            "call, or name another folder"
        )
    return [whole] if groups == 1 else [Recording(part, every) for part in parts]


def _without_kernel(adaptation: Any) -> Any:
    """Return a warm-up with what it found in place of the kernel."""
    if adaptation is None:
        return None
    part = tunable(adaptation.kernel)
    assert part is not None
    assert part.metric is not None  # as `begin` has made sure
    length = part.path if isinstance(part, ChEES) else getattr(part, "decoherence_length", None)
    return adaptation._replace(kernel=Tuning(part.step_size, part.metric, length))


def stacked(run: Run, first: int = 0) -> Stretch | None:
    """Return the draws of a run from number `first` on, each field as one array; None if none."""
    kept, infos = run.kept[first:], run.infos[first:]
    if not kept:
        return None
    return Stretch(State(*_columns(kept)), Info(*_columns(infos)))


def unstacked(stretch: Stretch | None) -> tuple[list[State], list[Info]]:
    """Undo `stacked`."""
    if stretch is None:
        return [], []
    kept = [State(*row) for row in zip(*stretch.kept, strict=True)]
    return kept, [Info(*row) for row in zip(*stretch.infos, strict=True)]


def _columns(rows: Sequence[NamedTuple]) -> list[Array]:
    return [np.array(column) for column in zip(*rows, strict=True)]


def _check_run(run: Run) -> None:
    """Raise ValueError unless all arrays of a run are of as many chains and numbers."""
    position, value, gradient = run.state[:3]
    shape = position.shape
    if len(shape) != 2 or gradient.shape != shape or value.shape != shape[:1]:
        raise ValueError(
            f"its state has arrays of shapes {shape}, {value.shape} and {gradient.shape}"
        )
    if isinstance(run.state, Paced):
        turn, slope = run.state.turn, run.state.slope
        whole = turn.dtype.kind == "i" and turn.shape == slope.shape == shape[:1]
        whole = whole and run.state.center.shape == shape
        if not whole or (turn < 0).any():
            raise ValueError(f"its turns {turn} are no counts of paths of {shape[0]} chains")
    if run.adaptation is not None:
        _, mean, squares = run.adaptation.moments
        if mean.shape != shape or squares.shape not in (shape[1:], shape[1:] * 2):
            raise ValueError(f"its moments are not those of positions {shape}")
        if isinstance(run.adaptation, MicrocanonicalAdaptation):
            shapes = run.adaptation.before.shape, run.adaptation.jumps.shape
            if shapes != (shape, shape[1:]):
                raise ValueError(f"its warm-up has arrays of shapes {shapes}, not those of {shape}")
        if not isinstance(run.adaptation.kernel, Tuning):
            raise ValueError(f"its kernel must be a Tuning; got {run.adaptation.kernel!r}")


def _check_stretch(stretch: Stretch, state: State | Paced) -> None:
    """Raise ValueError unless the draws of a file are of the chains of `state`."""
    position, *rest = stretch.kept.position, stretch.kept.log_density, *stretch.infos
    wanted = position.shape[:1] + state.position.shape
    if position.shape != wanted or position.dtype != state.position.dtype:
        raise ValueError(f"positions of shape {position.shape} are none of these chains")
    if {array.shape for array in rest} != {wanted[:2]}:
        raise ValueError(f"draws must have shape {wanted[:2]}")


def _sum(array: Array) -> str:
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16]


def _print(target: Target) -> dict[str, Any]:
    """Return what tells one target from another: of a function, its name at most."""
    if not isinstance(target, LogJoint):
        return {"target": getattr(target, "__qualname__", type(target).__qualname__)}
    return {
        "model": repr(target.model),
        "hyperpriors": repr(sorted(target.hyperpriors.items())),
        "power": target.power,
        "x": _sum(target.x),
        "y": _sum(target.y),
    }
