"""Whether chains have converged, in function space and in weight space (floor 5).

ArviZ is optional: extra `diagnostics`.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .draws import Draws
from .log_joint import LogJoint
from .predictive import BLOCK_NUMBERS
from .workspace import Workspace

__all__ = ["Convergence", "Line", "blocks_of", "convergence", "draws_of", "import_arviz"]

Array = NDArray[Any]
GOOD = 1.01  # R-hat below which Vehtari et al. (2021) call chains mixed
ENOUGH = 100  # effective draws per chain without which R-hat itself is unreliable (the same)


def import_arviz() -> Any:
    """Import ArviZ; its announcement of another version, once a day, is no warning of ours."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            import arviz
    except ImportError as error:
        raise ImportError(
            "R-hat, effective sample sizes and to_arviz need ArviZ: "
            "pip install 'bbb-numpy[diagnostics]'"
        ) from error
    return arviz


def draws_of(draws: Any) -> Draws:
    """Return draws, given themselves or a learner that was fitted by sampling."""
    found = getattr(draws, "draws_", draws)
    if not isinstance(found, Draws):
        raise TypeError(
            "draws must be those of `sample` or `sample_target`, or a learner with draws_; got "
            f"{type(draws).__name__}"
        )
    if not len(found.positions):
        raise ValueError("draws is empty: sampling was interrupted before the first draw")
    return found


def blocks_of(joint: LogJoint, positions: Array) -> Iterator[slice]:
    """Cut positions (S, D) so that the activations of a block take bounded memory."""
    numbers = max(1, len(joint.x)) * max(joint.model.network.sizes)
    size = max(1, BLOCK_NUMBERS // numbers)
    return (slice(begin, begin + size) for begin in range(0, len(positions), size))


def _functions(joint: LogJoint, positions: Array) -> Array:
    """Return E[y|x, w] (S, N, K) of positions (S, D), in their order."""
    out = np.empty((len(positions), len(joint.x), joint.model.outputs), positions.dtype)
    for rows in blocks_of(joint, positions):
        some, work = positions[rows], Workspace()
        f = joint.model.predict(np.ascontiguousarray(joint.weights(some)), joint.x, work)
        out[rows] = joint.model.likelihood.mean(joint.params(some), f)
    return out


@dataclass(frozen=True)
class Line:
    """The worst of several numbers that belong together."""

    space: str  # "functions", "weights"; of a target without a model "numbers"
    name: str
    count: int  # of numbers; those that never change are left out
    r_hat: float  # the largest; inf for chains that each stand still
    bulk: float  # the smallest effective sample size for means
    tail: float  # and for 5 % and 95 % quantiles


@dataclass(frozen=True)
class Convergence:
    """R-hat and effective sample sizes in function space and in weight space."""

    draws: int
    chains: int
    lines: tuple[Line, ...]

    def worst(self, space: str) -> Line:
        """Return the largest R-hat and smallest sizes of ``'functions'`` or ``'weights'``."""
        of = [line for line in self.lines if line.space == space]
        if not of:
            raise ValueError(f"there is nothing in {space!r}")
        return Line(
            *(space, "all", sum(line.count for line in of), max(line.r_hat for line in of)),
            *(min(line.bulk for line in of), min(line.tail for line in of)),
        )

    @property
    def mixed(self) -> bool:
        """Whether, weights apart, R-hat < 1.01 and there are 100 effective draws per chain."""
        judged = [line for line in self.lines if line.space != "weights"]
        return all(
            line.r_hat < GOOD and min(line.bulk, line.tail) >= ENOUGH * self.chains
            for line in judged
        )

    def __str__(self) -> str:
        width = max(len(line.name) for line in self.lines) + 2
        out = [
            f"{self.chains} chains of {self.draws} draws; of each line the worst",
            f"{'':{width}} numbers   R-hat  bulk ESS  tail ESS",
        ]
        space = ""
        for line in self.lines:
            if line.space != space:
                space = line.space
                out.append(space)
            out.append(
                f"  {line.name:{width}}{line.count:6} {line.r_hat:7.3f} {line.bulk:9.0f} "
                f"{line.tail:9.0f}"
            )
        out.append(
            "No lack of convergence is seen."
            if self.mixed
            else f"Wanted are R-hat < {GOOD:g} and {ENOUGH} effective draws per chain: draw more."
        )
        if any((line.space, line.name) == ("weights", "W1") for line in self.lines):
            out.append(
                "Weights are identified only up to the order of hidden units, and with tanh up to "
                "their\nsigns: chains in different copies of one mode have a large R-hat of "
                "weights and the same functions."
            )
        return "\n".join(out)


def _line(az: Any, space: str, name: str, values: Array) -> Line | None:
    """Judge numbers (T, S, M); None if none of them ever changes."""
    values = values.reshape(*values.shape[:2], -1)
    values = values[..., np.ptp(values, axis=(0, 1)) > 0]
    if not values.shape[-1]:
        return None
    data = az.convert_to_dataset({"v": values.swapaxes(0, 1)})
    with np.errstate(all="ignore"):  # a chain that stands still has no variance
        r_hat = az.rhat(data)["v"].values
        bulk, tail = (az.ess(data, method=m)["v"].values for m in ("bulk", "tail"))
    r_hat, bulk, tail = np.where(np.isnan(r_hat), np.inf, r_hat), *map(np.nan_to_num, (bulk, tail))
    worst = float(r_hat.max()), float(bulk.min()), float(tail.min())
    return Line(space, name, values.shape[-1], *worst)


def convergence(draws: Any, x: Any = None, *, weights: bool = True) -> Convergence:
    """Judge chains by their functions, and for comparison by their weights.

    Predictions, noise and log density are what the draws are for, and they are the same in every
    copy of a mode that the order of the hidden units makes.

    Parameters
    ----------
    draws : Draws, or a learner with ``draws_``
        Two chains at least, of four draws.
    x : array-like (N, d_in), optional
        Rows at which the functions E[y|x, w] are looked at, in the chains' units; by default 50
        of the data's.
    weights : bool
        Judge the blocks of weights, too, which `Convergence.mixed` takes no notice of. For many
        weights this takes the longest.

    Returns
    -------
    Convergence
        Printed, a small table. R-hat is split, of ranks and folded ranks, the sizes are bulk and
        tail (Vehtari et al. 2021).

    Raises
    ------
    ImportError
        Without ArviZ.
    TypeError, ValueError
        For too few chains or draws.
    """
    az, found = import_arviz(), draws_of(draws)
    count, chains, _ = found.positions.shape
    if chains < 2 or count < 4:
        raise ValueError(f"R-hat needs two chains of four draws at least; got {chains} of {count}")
    lines = [_line(az, "functions", "log density", found.log_density)]
    joint = found.target if isinstance(found.target, LogJoint) else None
    blocks = found.layout.views(found.positions)
    if joint is not None:
        if x is None:
            chosen = np.linspace(0, len(joint.x) - 1, min(50, len(joint.x))).astype(int)
            x = joint.x[chosen]
        x = np.ascontiguousarray(x, joint.x.dtype)
        there = replace(joint, x=x, y=np.zeros((len(x), joint.model.outputs), joint.y.dtype))
        f = _functions(there, found.flat).reshape(count, chains, -1)
        lines.insert(0, _line(az, "functions", f"E[y|x] at {len(x)} rows", f))
        learned = [name for name, _ in joint.model.learned()]
        lines += [_line(az, "functions", name, blocks.pop(name)) for name in learned]
    elif x is not None:
        raise ValueError("x needs draws of a LogJoint, which knows its model")
    if weights:
        space = "numbers" if joint is None else "weights"
        lines += [_line(az, space, name, block) for name, block in blocks.items()]
    changing = tuple(line for line in lines if line is not None)
    if not changing:
        raise ValueError("no number ever changes: every proposal was rejected")
    return Convergence(count, chains, changing)
