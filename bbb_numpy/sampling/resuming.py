"""A sampling run on disk, which the same call resumes.

The folder holds one file, ``run.npz``, with the draws of each group of chains and everything that
its next step depends on. `numeric.storing` describes such files.
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
# Absolute (nats) and relative tolerance between saved and recomputed log densities: another
# number of threads, or another machine, adds floats in another order
LOG_DENSITY_TOLERANCE = 1e-4


class Stored(NamedTuple):
    """Content of the file of a run."""

    # settings of the call, seed and digests of the data, by name: see `Checkpoint.load`
    settings: dict[str, Any]
    runs: tuple[Run, ...]  # one for each group of chains


# Classes of states of chains and of adaptations, by the name under which files store them
STATES: dict[str, Any] = {
    name: pair[0] for name, pair in names_in(mcmc)["state"].items()
}


def _format() -> Format:
    """Return the file format of a run: name, version, and the classes that it may contain."""
    return Format("bbb_numpy.sampling", 5, (Run, *STATES.values()))


class Checkpoint:
    """The folder in which a run is stored.

    Parameters
    ----------
    folder : path
        Folder of the file; it is created if it does not exist.
    interval_s : float
        Shortest time between two writes, in seconds, >= 0.
    """

    def __init__(self, folder: Any, interval_s: float) -> None:
        self.file = Path(folder) / "run.npz"
        self.interval_s = not_negative("checkpoint_every", interval_s)
        self.file.parent.mkdir(parents=True, exist_ok=True)
        check_writable(self.file)
        self.written = time.monotonic()
        self.settings: dict[str, Any] = {}  # compared between calls, by name
        self.stored: Stored | None = None  # read by `load`; None without a file

    def due(self) -> bool:
        """Return whether `interval_s` has passed since the last write."""
        return time.monotonic() - self.written >= self.interval_s

    def write(self, runs: Sequence[Run]) -> None:
        """Write the runs of all groups to the file, which is replaced as a whole or not at all.

        If the disk is full a warning is emitted, and sampling continues with the draws in memory.
        """
        # the time is set before the attempt, so that a failed write is not repeated at every step
        self.written = time.monotonic()
        # a user's kernel may be of a class that the format does not contain: its tuning is stored
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
        """Load the run that an earlier call stored, if there is one; check that its settings agree.

        The initial positions are compared later, by `resume`.

        Parameters
        ----------
        settings : Settings
            Settings of the call: target, kernel and numbers of steps.
        groups : int
            Number of groups of chains.
        seed : int or None
            None if the seed is not a whole number: then it is not compared.

        Raises
        ------
        ValueError
            If the file is damaged, or holds a run with other settings, of another model or of
            other data.
        """
        self.settings = {
            # addresses in memory, which differ in every process, are removed from the repr
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
            # the digest depends on the dtype of the rows: if it differs, the dtype is compared too
            expected["dtype"] = str(target.x.dtype)
        self._check_settings(expected)

    def _check_settings(self, settings: dict[str, Any]) -> None:
        """Raise ValueError if the stored run has other values for these settings."""
        stored = {} if self.stored is None else self.stored.settings
        differences = []
        for name, value in settings.items():
            # None stands for a start that is not compared, and for a seed that is no whole number
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
        """Return the stored run of every group of chains, or None if no run is stored.

        Parameters
        ----------
        settings : Settings
            Settings of the call: target, kernel and numbers of steps.
        start : ndarray (S, D)
            Initial positions of the chains.
        repeatable : bool
            Whether repeating the call gives the same `start`; if not, `start` is not compared.

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
                # one step of a copy tests whether the stored run can be continued
                advance(settings, run, 0.0)
        return runs

    @contextmanager
    def _errors_as_damage(self) -> Iterator[None]:
        """Turn any error inside the block into a ValueError that names the file as damaged.

        A damaged value can raise an error of any kind, in whatever function uses it.
        """
        try:
            yield
        except Exception as error:
            raise ValueError(f"checkpoint {self.file} {damaged(error)}") from error


def _in_one_stretch(run: Run) -> Run:
    """Return `run` with the blocks of its draws concatenated to one array for each name."""
    return run._replace(draws=(run.all_draws(),)) if run.draws else run


def _check_run(run: Run, settings: Settings, start: Array) -> None:
    """Raise TypeError or ValueError unless a stored run has the shapes that `start` (S, D) implies.

    `start` are the initial positions of the run's chains.
    """
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
    """Raise ValueError unless each array is numeric, of the shape `shape` or ``(*shape, size)``."""
    for name, array in arrays.items():
        if array.dtype.kind not in "bif" or array.shape not in (shape, (*shape, size)):
            raise ValueError(f"{name} has the shape {array.shape}, of {array.dtype}")


def _map_kernel(run: Run, function: Callable[[Any], Any]) -> Run:
    """Return `run` with the kernel of its adaptation replaced by ``function(kernel)``."""
    if run.adaptation is None:
        return run
    kernel = function(run.adaptation.kernel)
    return run._replace(adaptation=run.adaptation._replace(kernel=kernel))


def check_same_target(
    target: Target, position: Array, log_density: Array, subject: str, remedy: str
) -> None:
    """Raise ValueError unless `target` has the saved log densities at the saved positions.

    Parameters
    ----------
    target : Target
        Function of the log density (S,) in nats, and of its gradient (S, D).
    position : ndarray (S, D)
        Saved positions of the chains.
    log_density : ndarray (S,)
        Saved log densities at these positions, in nats.
    subject : str
        Beginning of the message, e.g. 'checkpoint run.npz was written for'.
    remedy : str
        End of the message: what the user can do.
    """
    values, _ = evaluate(target, position)
    tolerance = LOG_DENSITY_TOLERANCE
    if not np.allclose(values, log_density, rtol=tolerance, atol=tolerance):
        raise ValueError(
            f"{subject} a different target: the log density at the last positions is {values}, "
            f"expected {log_density}. {remedy}"
        )


def warn(text: str) -> None:
    """Emit a UserWarning located at the line outside bbb_numpy/sampling that called the sampler."""
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
    """Return the first 16 hexadecimal digits of the SHA-256 digest of an array's bytes."""
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16]


def _describe(target: Target) -> dict[str, Any]:
    """Return values by name that tell a target from others, for comparing calls.

    For a `LogJoint` they are its model, hyperpriors, power and digests of the data, for any other
    function its name.
    """
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
