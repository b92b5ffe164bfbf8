"""A sampling run on disk, to go on from where it was.

A folder with one file, ``run.npz``: the draws of each group of chains, and all that its next step
depends on. What such files look like is said in `numeric.storing`.
"""

from __future__ import annotations

import hashlib
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np

from ..model.log_joint import LogJoint
from ..numeric.files import check_writable
from ..numeric.layout import Array
from ..numeric.named import names_in
from ..numeric.old_names import OLD_NAMES
from ..numeric.reading import damaged
from ..numeric.storing import CheckpointError, Format, read_state, write_state
from ..numeric.validation import GENERATOR, not_negative, whole
from . import mcmc
from .chains import Run, Settings, advance
from .mcmc import Info, Target
from .mcmc.states import evaluate

__all__ = ["Checkpoint", "check_same_target", "warn"]

SAMPLING_FOLDER = Path(__file__).parent


class Stored(NamedTuple):
    """The file of a run."""

    settings: dict[str, Any]
    runs: tuple[Run, ...]  # of each group of chains


# Classes of what chains carry from step to step, by name
STATES: dict[str, Any] = {
    name: pair[0] for name, pair in names_in(mcmc)["state"].items()
}


def _format() -> Format:
    return Format("bbb_numpy.sampling", 5, (Run, *STATES.values()))


class Checkpoint:
    """The folder of a run.

    Parameters
    ----------
    folder : path
    every : float
        Seconds between two writes.
    """

    def __init__(self, folder: Any, every: float) -> None:
        self.file = Path(folder) / "run.npz"
        self.every = not_negative("checkpoint_every", every)
        self.file.parent.mkdir(parents=True, exist_ok=True)
        check_writable(self.file)
        self.written = time.monotonic()
        self.settings: dict[str, Any] = {}  # by which the same call is known again
        self.stored: Stored | None = None  # what an earlier call has left

    def due(self) -> bool:
        """Whether it is time to write."""
        return time.monotonic() - self.written >= self.every

    def write(self, runs: Sequence[Run]) -> None:
        """Store all groups; the file is replaced only when the new one is whole.

        Of a disk that is full it warns: the run goes on, with the draws in memory.
        """
        self.written = time.monotonic()  # and not tried again at every step
        joined = [
            run._replace(draws=(run.all_draws(),) if run.draws else ()) for run in runs
        ]
        # the kernel may be one's own: what was found is stored
        stored = tuple(
            _with_kernel(run, lambda kernel: kernel.tuning) for run in joined
        )
        try:
            write_state(self.file, Stored(self.settings, stored), _format())
        except OSError as error:
            warn(
                f"the checkpoint could not be written: {error}. It stays as it was written "
                "before; the draws are not lost, and are returned"
            )

    def open(self, settings: Settings, groups: int, seed: int | None) -> None:
        """Read what is stored, before it is known where the chains begin.

        Raises
        ------
        ValueError
            If it is the run of other settings, another model or data, or is damaged.
        """
        self.settings = {
            # without addresses in memory, by which no other process would know it again
            "kernel": re.sub(" at 0x[0-9a-f]+", "", repr(settings.kernel)),
            "warm_up": settings.warm_up,
            "thin": settings.thin,
            "metric": "dense" if settings.dense else "diagonal",
            "target_accept": settings.target_accept,
            "seed": seed,
            "groups": groups,
            **_described(settings.target),
        }
        if not self.file.exists():
            return
        try:
            stored = read_state(self.file, Stored, _format())
        except CheckpointError as error:
            raise ValueError(f"checkpoint {error}") from None
        with self._refused():
            texts = {
                name: OLD_NAMES.rename_text(value) if isinstance(value, str) else value
                for name, value in dict(stored.settings).items()
            }
            self.stored = Stored(texts, tuple(stored.runs))
        early, target = dict(self.settings), settings.target
        if isinstance(target, LogJoint) and self.stored.settings.get("x") != early["x"]:
            early["dtype"] = str(target.x.dtype)  # may be why
        self._need_same(early)

    def _need_same(self, settings: dict[str, Any]) -> None:
        """Raise ValueError where the stored run has others of these settings."""
        stored = {} if self.stored is None else self.stored.settings
        optional = ("start", "seed")  # not known before a run without a seed begins
        other = [
            f"{name} {stored.get(name)} there, {value} here"
            for name, value in settings.items()
            if stored.get(name) != value and not (name in optional and value is None)
        ]
        if other:
            raise ValueError(
                f"checkpoint {self.file} belongs to another run ({'; '.join(other)}). Make the "
                "same call, or name another folder"
            )

    def read(self, settings: Settings, start: Array, known: bool) -> list[Run] | None:
        """Return the stored run of every group, or None if there is none.

        Parameters
        ----------
        settings : Settings
        start : ndarray (S, D)
            Where the chains begin.
        known : bool
            Whether the same call would begin there again.

        Raises
        ------
        ValueError
            If it is a run from another start, or of another target.
        """
        begin = {"dtype": str(start.dtype), "chains": len(start)}
        begin |= {"start": _digest(start) if known else None}
        self.settings |= begin
        if self.stored is None:
            return None
        self._need_same(begin)
        self.settings, kernel = self.stored.settings, cast(Any, settings.kernel)
        with self._refused():
            runs = [
                _with_kernel(run, lambda tuning: kernel.tuned(*tuning))
                for run in self.stored.runs
            ]
            for run, part in zip(runs, np.array_split(start, len(runs)), strict=True):
                _need_whole(run, settings, part)
        there = np.concatenate([run.state.log_density for run in runs])
        stand = np.concatenate([run.state.position for run in runs])
        owner = f"checkpoint {self.file} belongs to", "Name another folder"
        check_same_target(settings.target, stand, there, *owner)
        with self._refused():
            for run in runs:
                advance(settings, run, 0.0)  # a step, of a copy
        return runs

    @contextmanager
    def _refused(self) -> Iterator[None]:
        """Name the file where what it holds cannot be gone on with."""
        try:
            yield
        except Exception as error:  # a changed part can upset whatever uses it
            raise ValueError(f"checkpoint {self.file} {damaged(error)}") from error


def _need_whole(run: Run, settings: Settings, start: Array) -> None:
    """Raise an error of its own unless a run has the shapes of one that began at `start` (S, D)."""
    if type(run) is not Run or type(run.state) not in STATES.values():
        raise TypeError("it holds no run of chains")
    GENERATOR("rng", run.rng)
    whole("steps", run.steps, 0)
    whole("warm_up_divergent", run.warm_up_divergent, 0)
    chains, size = start.shape
    _need_shapes(run.state._asdict(), (chains,), size)
    joined = run.all_draws()
    drawn = {name: joined[name] for name in ("positions", "log_density", *Info._fields)}
    _need_shapes(drawn, (settings.n_draws_of(run), chains), size)


def _need_shapes(arrays: dict[str, Array], rows: tuple[int, ...], size: int) -> None:
    for name, array in arrays.items():
        if array.dtype.kind not in "bif" or array.shape not in (rows, (*rows, size)):
            raise ValueError(f"{name} has the shape {array.shape}, of {array.dtype}")


def _with_kernel(run: Run, made: Callable[[Any], Any]) -> Run:
    """Return the run with what is made of its adaptation's kernel in the place of that."""
    if run.adaptation is None:
        return run
    return run._replace(
        adaptation=run.adaptation._replace(kernel=made(run.adaptation.kernel))
    )


def check_same_target(
    target: Target, position: Array, there: Array, owner: str, remedy: str
) -> None:
    """Raise ValueError unless chains that stood at log densities `there` (S,) do so here."""
    values, _ = evaluate(target, position)
    if not np.allclose(values, there, rtol=1e-4, atol=1e-4):
        raise ValueError(
            f"{owner} another target: where its chains stand, this one has the log densities "
            f"{values}, not {there}. {remedy}"
        )


def warn(text: str) -> None:
    """Warn, as of the line outside of this folder that has called it."""
    frame, level = sys._getframe(), 1
    while (
        frame.f_back is not None
        and Path(frame.f_code.co_filename).parent == SAMPLING_FOLDER
    ):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, UserWarning, stacklevel=level)


def _digest(array: Array) -> str:
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
        **{name: _digest(array) for name, array in rows.items() if array is not None},
    }
