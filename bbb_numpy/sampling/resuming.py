"""A sampling run on disk, which the same call resumes.

A folder with one file, ``run.npz``: the draws of each group of chains, and all that its next step
depends on. `numeric.storing` describes such files.
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
# How far the log density at a saved position may be from the saved one, absolutely and relatively:
# other threads and other machines add in another order
LOG_DENSITY_TOLERANCE = 1e-4


class Stored(NamedTuple):
    """Content of the file of a run."""

    settings: dict[str, Any]
    runs: tuple[Run, ...]  # of each group of chains


# Classes of what chains carry from step to step, by name
STATES: dict[str, Any] = {
    name: pair[0] for name, pair in names_in(mcmc)["state"].items()
}


def _format() -> Format:
    return Format("bbb_numpy.sampling", 5, (Run, *STATES.values()))


class Checkpoint:
    """The folder in which a run is stored.

    Parameters
    ----------
    folder : path
        Made if it does not exist.
    interval_s : float
        Seconds between two writes, >= 0.
    """

    def __init__(self, folder: Any, interval_s: float) -> None:
        self.file = Path(folder) / "run.npz"
        self.interval_s = not_negative("checkpoint_every", interval_s)
        self.file.parent.mkdir(parents=True, exist_ok=True)
        check_writable(self.file)
        self.written = time.monotonic()
        self.settings: dict[str, Any] = {}  # by which the same call is known again
        self.stored: Stored | None = None  # what an earlier call has left

    def due(self) -> bool:
        """Return whether it is time to write."""
        return time.monotonic() - self.written >= self.interval_s

    def write(self, runs: Sequence[Run]) -> None:
        """Store all groups; the file is replaced only when the new one is whole.

        If the disk is full it warns, and the run goes on with the draws in memory.
        """
        # before the attempt: one that fails is not repeated at every step
        self.written = time.monotonic()
        # the kernel may be of a class that files do not know: its tuning is stored
        stored = tuple(
            _map_kernel(_in_one_stretch(run), lambda kernel: kernel.tuning)
            for run in runs
        )
        try:
            write_state(self.file, Stored(self.settings, stored), _format())
        except OSError as error:
            warn(
                f"the checkpoint could not be written: {error}. The file keeps what was written "
                "before; no draws are lost, they are returned"
            )

    def load(self, settings: Settings, groups: int, seed: int | None) -> None:
        """Read what an earlier call has stored, before it is known where the chains begin.

        Parameters
        ----------
        settings : Settings
        groups : int
        seed : int or None
            None if it is not a whole number: such a run is known again by all else.

        Raises
        ------
        ValueError
            If the file is damaged, or holds a run with other settings, of another model or of
            other data.
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
            **_describe(settings.target),
        }
        if not self.file.exists():
            return
        try:
            stored = read_state(self.file, Stored, _format())
        except CheckpointError as error:
            raise ValueError(f"checkpoint {error}") from None
        with self._errors_as_damage():
            texts = {
                name: OLD_NAMES.rename_text(value) if isinstance(value, str) else value
                for name, value in dict(stored.settings).items()
            }
            self.stored = Stored(texts, tuple(stored.runs))
        expected = dict(self.settings)
        target = settings.target
        if isinstance(target, LogJoint) and texts.get("x") != expected["x"]:
            # rows of another dtype have another digest: then it is named too
            expected["dtype"] = str(target.x.dtype)
        self._check_settings(expected)

    def _check_settings(self, settings: dict[str, Any]) -> None:
        """Raise ValueError where the stored run has other values of these settings."""
        stored = {} if self.stored is None else self.stored.settings
        differences = []
        for name, value in settings.items():
            # a start and a seed of None are not known before a run without a seed begins
            unknown = name in ("start", "seed") and value is None
            if stored.get(name) != value and not unknown:
                differences.append(f"{name} was {stored.get(name)}, is now {value}")
        if differences:
            raise ValueError(
                f"checkpoint {self.file} was written by a different call: "
                f"{'; '.join(differences)}. Repeat that call, or give another folder"
            )

    def resume(
        self, settings: Settings, start: Array, repeatable: bool
    ) -> list[Run] | None:
        """Return the stored run of every group, or None if there is none.

        Parameters
        ----------
        settings : Settings
        start : ndarray (S, D)
            Initial positions of the chains.
        repeatable : bool
            Whether the same call begins there again; else the start is not compared.

        Raises
        ------
        ValueError
            If the stored run has another start or another target, or is damaged.
        """
        initial = {"dtype": str(start.dtype), "chains": len(start)}
        initial["start"] = _digest(start) if repeatable else None
        self.settings |= initial
        if self.stored is None:
            return None
        self._check_settings(initial)
        self.settings = self.stored.settings
        kernel = cast(Any, settings.kernel)
        with self._errors_as_damage():
            runs = [
                _map_kernel(run, lambda tuning: kernel.tuned(*tuning))
                for run in self.stored.runs
            ]
            starts = np.array_split(start, len(runs))
            for run, group_start in zip(runs, starts, strict=True):
                _check_run(run, settings, group_start)
        check_same_target(
            settings.target,
            np.concatenate([run.state.position for run in runs]),
            np.concatenate([run.state.log_density for run in runs]),
            f"checkpoint {self.file} was written for",
            "Give another folder",
        )
        with self._errors_as_damage():
            for run in runs:
                advance(settings, run, 0.0)  # a step, of a copy
        return runs

    @contextmanager
    def _errors_as_damage(self) -> Iterator[None]:
        """Name the file in errors of what it holds: a changed part can upset whatever uses it."""
        try:
            yield
        except Exception as error:
            raise ValueError(f"checkpoint {self.file} {damaged(error)}") from error


def _in_one_stretch(run: Run) -> Run:
    """Return the run with its draws in one array of each name."""
    return run._replace(draws=(run.all_draws(),)) if run.draws else run


def _check_run(run: Run, settings: Settings, start: Array) -> None:
    """Raise an error unless a stored run has the shapes of a run that began at `start` (S, D)."""
    if type(run) is not Run or type(run.state) not in STATES.values():
        raise TypeError("it holds no run of chains")
    GENERATOR("rng", run.rng)
    whole("n_steps", run.n_steps, 0)
    whole("warm_up_divergent", run.warm_up_divergent, 0)
    chains, size = start.shape
    _check_shapes(run.state._asdict(), (chains,), size)
    draws = run.all_draws()
    names = ("positions", "log_density", *Info._fields)
    shape = (settings.n_draws_of(run), chains)
    _check_shapes({name: draws[name] for name in names}, shape, size)


def _check_shapes(arrays: dict[str, Array], shape: tuple[int, ...], size: int) -> None:
    """Raise ValueError unless arrays have a shape, with `size` numbers for each entry or one."""
    for name, array in arrays.items():
        if array.dtype.kind not in "bif" or array.shape not in (shape, (*shape, size)):
            raise ValueError(f"{name} has the shape {array.shape}, of {array.dtype}")


def _map_kernel(run: Run, function: Callable[[Any], Any]) -> Run:
    """Return the run with `function` of its adaptation's kernel in place of that kernel."""
    if run.adaptation is None:
        return run
    kernel = function(run.adaptation.kernel)
    return run._replace(adaptation=run.adaptation._replace(kernel=kernel))


def check_same_target(
    target: Target, position: Array, log_density: Array, subject: str, remedy: str
) -> None:
    """Raise ValueError unless a target has the log densities that saved chains have.

    Parameters
    ----------
    target : Target
    position : ndarray (S, D)
        Where the chains are.
    log_density : ndarray (S,)
        What was saved with these positions, in nats.
    subject : str
        Beginning of the message, e.g. 'checkpoint run.npz was written for'.
    remedy : str
        End of the message: what to do.
    """
    values, _ = evaluate(target, position)
    tolerance = LOG_DENSITY_TOLERANCE
    if not np.allclose(values, log_density, rtol=tolerance, atol=tolerance):
        raise ValueError(
            f"{subject} a different target: the log density at the last positions is {values}, "
            f"expected {log_density}. {remedy}"
        )


def warn(text: str) -> None:
    """Emit a UserWarning that points at the line outside of bbb_numpy/sampling that called it."""
    frame = sys._getframe()
    level = 1
    while (
        frame.f_back is not None
        and Path(frame.f_code.co_filename).parent == SAMPLING_FOLDER
    ):
        frame = frame.f_back
        level += 1
    warnings.warn(text, UserWarning, stacklevel=level)


def _digest(array: Array) -> str:
    """Return 16 hexadecimal digits that tell an array's bytes from others."""
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16]


def _describe(target: Target) -> dict[str, Any]:
    """Return what tells one target from another: of a function, its name at most."""
    if not isinstance(target, LogJoint):
        return {"target": getattr(target, "__qualname__", type(target).__qualname__)}
    description = {
        "model": repr(target.model),
        "hyperpriors": repr(sorted(target.hyperpriors.items())),
        "power": target.power,
    }
    for name in ("x", "y", "sample_weight"):
        array = getattr(target, name)
        if array is not None:
            description[name] = _digest(array)
    return description
