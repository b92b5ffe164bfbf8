"""A sampling run on disk, to go on from where it was.

A folder with ``draws-<first>-<last>.npz`` for every stretch of draws, and ``state.npz``, written
last: all that the next step depends on, and how many draws belong to it.
"""

from __future__ import annotations

import hashlib
import json
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..model.log_joint import LogJoint
from ..numeric.arguments import not_negative
from ..numeric.files import write_arrays
from .draws import STATISTICS
from .mcmc import Adaptation, DenseMetric, DiagonalMetric, Info, Kernel, State, Target
from .mcmc.adaptation import DualAveraging, Moments, retuned, tunable
from .mcmc.states import evaluate

__all__ = ["Recording", "Run"]

Array = NDArray[Any]
FORMAT = "bbb_numpy.sampling 1"


class Run(NamedTuple):
    """A run between two steps."""

    state: State
    rng: np.random.Generator
    adaptation: Adaptation | None  # None: the kernel has nothing to adapt
    steps: int  # of the warm-up and after
    harmless: int  # divergences in the warm-up
    kept: list[State]  # without gradients
    infos: list[Info]

    def done(self, warm_up: int) -> int:
        """Return the steps of the warm-up and the draws made so far."""
        return min(self.steps, warm_up) + len(self.kept)


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
        self.settings = ""

    def due(self) -> bool:
        """Whether it is time to write."""
        return time.monotonic() - self.written >= self.every

    def write(self, run: Run) -> None:
        """Store the draws since the last write, then the state."""
        self.folder.mkdir(parents=True, exist_ok=True)
        count, files = len(run.kept), self.files
        if count > self.stored:
            new, infos = run.kept[self.stored :], run.infos[self.stored :]
            arrays = {
                "position": np.array([state.position for state in new]),
                "log_density": np.array([state.log_density for state in new]),
                **{name: np.array([getattr(i, name) for i in infos]) for name in STATISTICS},
            }
            files = [*files, f"draws-{self.stored:08d}-{count:08d}.npz"]
            write_arrays(self.folder / files[-1], arrays)
        header = {
            **{"format": FORMAT, "settings": self.settings, "steps": run.steps},
            **{"harmless": run.harmless, "stored": count, "files": files},
            "generator": _plain(run.rng.bit_generator.state),
        }
        arrays = {"state_" + name: array for name, array in run.state._asdict().items()}
        arrays |= _adaptation_arrays(run.adaptation)
        text = json.dumps(header).encode()
        write_arrays(self.folder / "state.npz", arrays | {"header": np.frombuffer(text, np.uint8)})
        self.files, self.stored, self.written = files, count, time.monotonic()

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
        self.settings = json.dumps({**settings, "start": begun, **_print(target)})
        path = self.folder / "state.npz"
        if not path.exists():
            return None
        try:
            arrays = _load(path)
            header = json.loads(arrays.pop("header").tobytes())
            stored, ours = json.loads(header["settings"]), json.loads(self.settings)
            if header["format"] != FORMAT:
                raise ValueError(f"its format is {header['format']!r}, not {FORMAT!r}")
        except Exception as error:  # damage can upset every layer from zip to JSON
            raise ValueError(f"checkpoint {path} cannot be read: {error}") from None
        optional = ("start", "seed")  # not known before a run without a seed begins
        other = [
            f"{name} {stored.get(name)} there, {value} here"
            for name, value in ours.items()
            if stored.get(name) != value and not (name in optional and value is None)
        ]
        if other:
            raise ValueError(
                f"checkpoint {self.folder} belongs to another run ({'; '.join(other)}). Make the "
                "same call, or name another folder"
            )
        try:
            kept, infos = self._draws(header["files"], header["stored"])
            rng = np.random.Generator(getattr(np.random, header["generator"]["bit_generator"])())
            rng.bit_generator.state = _arrays(header["generator"])
            state = State(*(arrays["state_" + name] for name in State._fields))
            adaptation = _adaptation(arrays, kernel)
        except Exception as error:
            raise ValueError(f"checkpoint {self.folder} is damaged: {error}") from None
        value, _ = evaluate(target, state.position)
        if not np.allclose(value, state.log_density, rtol=1e-4, atol=1e-4):
            raise ValueError(
                f"checkpoint {self.folder} belongs to another target: where its chains stand, this "
                f"one has the log densities {value}, not {state.log_density}. Name another folder"
            )
        self.settings = header["settings"]
        self.files, self.stored = header["files"], header["stored"]
        return Run(state, rng, adaptation, header["steps"], header["harmless"], kept, infos)

    def _draws(self, files: list[str], count: int) -> tuple[list[State], list[Info]]:
        """Read the draws of `files`; another file is of a write that was not completed."""
        kept: list[State] = []
        infos: list[Info] = []
        for name in files:
            if Path(name).name != name:
                raise ValueError(f"{name!r} is no file of this folder")
            parts = _load(self.folder / name)
            positions = parts["position"]
            for position, value in zip(positions, parts["log_density"], strict=True):
                kept.append(State(position, value, position[:0]))
            rows = zip(*(parts[name] for name in STATISTICS), strict=True)
            infos += [Info(*row) for row in rows]
        if not len(kept) == len(infos) == count:
            raise ValueError(f"its files hold {len(kept)} of {count} draws")
        return kept, infos


def _load(path: Path) -> dict[str, Array]:
    """Return the arrays of a file, and leave it closed even if it is damaged."""
    with open(path, "rb") as file, np.load(file, allow_pickle=False) as content:
        return dict(content)


def _sum(array: Array) -> str:
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16]


def _print(target: Target) -> dict[str, Any]:
    """Return what tells one target from another: of a function, its name at most."""
    if not isinstance(target, LogJoint):
        return {"target": getattr(target, "__qualname__", type(target).__qualname__)}
    return {
        **{"model": repr(target.model), "hyperpriors": repr(sorted(target.hyperpriors.items()))},
        **{"power": target.power, "x": _sum(target.x), "y": _sum(target.y)},
    }


def _plain(value: Any) -> Any:
    """Return a generator's state in the terms of JSON."""
    if isinstance(value, dict):
        return {key: _plain(inside) for key, inside in value.items()}
    return (
        {"array": value.tolist(), "dtype": str(value.dtype)}
        if isinstance(value, np.ndarray)
        else value
    )


def _arrays(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    if set(value) == {"array", "dtype"}:
        return np.array(value["array"], value["dtype"])
    return {key: _arrays(inside) for key, inside in value.items()}


def _adaptation_arrays(a: Adaptation | None) -> dict[str, Array]:
    if a is None:
        return {}
    part = tunable(a.kernel)
    assert part is not None
    metric: Any = part.metric
    shape = metric.covariance if isinstance(metric, DenseMetric) else metric.variance
    numbers = [a.done, a.warm_up, a.target_accept, part.step_size, a.moments.draws]
    return {
        "numbers": np.array(numbers, np.float64),
        "averaging": np.array(a.averaging, np.float64),
        "metric": shape,
        "mean": a.moments.mean,
        "squares": a.moments.squares,
    }


def _adaptation(arrays: dict[str, Array], kernel: Kernel) -> Adaptation | None:
    if "numbers" not in arrays:
        return None
    done, warm_up, accept, step_size, count = arrays["numbers"].tolist()
    shape = arrays["metric"]
    metric = DenseMetric(shape) if shape.ndim == 2 else DiagonalMetric(shape)
    anchor, log_step, log_mean, error, seen = arrays["averaging"].tolist()
    return Adaptation(
        retuned(kernel, step_size, metric),
        int(done),
        int(warm_up),
        accept,
        DualAveraging(anchor, log_step, log_mean, error, int(seen)),
        Moments(int(count), arrays["mean"], arrays["squares"]),
    )
