"""Draws of a posterior as part of a checkpoint: without the data they are of (for `checkpoint`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from .drawn import DrawnWeights
from .draws import STATISTICS, Draws
from .encoding import (
    KERNELS,
    CheckpointError,
    decode,
    decode_parts,
    encode,
    same_names,
    take_array,
    whole_number,
)
from .layout import Layout
from .mcmc import DenseMetric, DiagonalMetric
from .mcmc.adaptation import retuned, tunable
from .model import Model

__all__ = ["StoredTarget", "decode_drawn", "pack_draws", "unpack_draws"]

Array = NDArray[Any]
RECORD = {"kernel", "warm_up", "warm_up_divergent", "finished"}
REAL = (np.float64, np.float32)
TYPES: dict[str, tuple[Any, ...]] = {"acceptance": REAL, "energy": REAL, "accepted": (np.bool_,)}


@dataclass(frozen=True)
class StoredTarget:
    """Stands for the density of which stored draws are: without data it has no value.

    Parameters
    ----------
    model : Model
    """

    model: Model

    @property
    def layout(self) -> Layout:
        """The blocks of one draw."""
        return DrawnWeights(self.model).layout

    def __call__(self, position: Array) -> NoReturn:
        """Raise ValueError."""
        raise ValueError(
            "a stored model holds its draws, not the data of fit, so that their density cannot be "
            "evaluated; make it with LogJoint(model, x, y), data standardised as in fit"
        )


def decode_drawn(parts: Any) -> DrawnWeights:
    """Return the model of which the draws are."""
    made = decode_parts(parts, ("network", "prior", "likelihood"))
    rest = {name: part for name, part in parts.items() if name not in made}
    wanted = {"posterior": None, "objective": None, "estimator": "DrawnWeights"}
    if rest != wanted | {"antithetic": False}:
        raise CheckpointError(f"model: draws have no posterior, objective or gradient; got {rest}")
    try:
        return DrawnWeights(Model(**made))
    except ValueError as error:
        raise CheckpointError(f"model: {error}") from None


def pack_draws(draws: Draws) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return what of the draws goes into the header, and arrays.

    Raises
    ------
    CheckpointError
        For a kernel of one's own.
    """
    arrays = {"positions": draws.positions, "log_density": draws.log_density}
    for name in STATISTICS:
        stat = draws.stats[name]
        arrays[f"stats.{name}"] = stat if name in TYPES else stat.astype(np.int64)
    kernel, part = draws.kernel, tunable(draws.kernel)
    if part is not None and part.metric is not None:
        metric: Any = part.metric
        dense = isinstance(metric, DenseMetric)
        arrays["metric"] = metric.covariance if dense else metric.variance
        kernel = _with_metric(kernel, None)
    record = {
        "kernel": encode("the kernel of draws_", kernel),
        "warm_up": draws.warm_up,
        "warm_up_divergent": draws.warm_up_divergent,
        "finished": draws.finished,
    }
    return record, arrays


def unpack_draws(record: Any, arrays: dict[str, Array], drawn: DrawnWeights) -> Draws:
    """Undo `pack_draws`, taking what belongs to the draws out of `arrays`.

    Raises
    ------
    CheckpointError
        Naming the first field that is not what `pack_draws` leaves.
    """
    same_names("draws", record, RECORD)
    size = drawn.layout.size
    positions = take_array(arrays, "positions", (None, None, size), REAL)
    shape = positions.shape[:2]
    if not all(shape):
        raise CheckpointError(f"positions must hold at least one draw; got shape {shape}")
    log_density = take_array(arrays, "log_density", shape, REAL)
    stats = {
        name: take_array(arrays, f"stats.{name}", shape, TYPES.get(name, (np.int64,)), nan=True)
        for name in STATISTICS
    }
    kernel = decode("kernel", record["kernel"])
    if not isinstance(kernel, KERNELS):
        raise CheckpointError(f"draws: kernel must be a sampler of the package; got {kernel!r}")
    if "metric" in arrays:
        width = (size, size) if arrays["metric"].ndim == 2 else (size,)
        values = take_array(arrays, "metric", width, REAL)
        try:
            metric = DenseMetric(values) if values.ndim == 2 else DiagonalMetric(values)
        except ValueError as error:
            raise CheckpointError(f"metric: {error}") from None
        kernel = _with_metric(kernel, metric)
    if not isinstance(record["finished"], bool):
        raise CheckpointError(f"finished must be true or false; got {record['finished']!r}")
    return Draws(
        *(positions, log_density, stats, kernel),
        target=StoredTarget(drawn.model),
        layout=drawn.layout,
        warm_up=whole_number("warm_up", record["warm_up"]),
        warm_up_divergent=whole_number("warm_up_divergent", record["warm_up_divergent"]),
        finished=record["finished"],
    )


def _with_metric(kernel: Any, metric: Any) -> Any:
    """Return the kernel with another metric, or None."""
    part = tunable(kernel)
    if part is None:
        raise CheckpointError(f"draws: {type(kernel).__name__} has no metric")
    return retuned(kernel, part.step_size, metric)
