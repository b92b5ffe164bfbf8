"""Gap splits: train on the outer thirds of one input, test in between and beside.

A posterior that knows what it has not seen is less sure in the gap than outside it, and right to
be. After Foong, Li, Hernandez-Lobato and Turner, 'In-between uncertainty in Bayesian neural
networks', 2019. Methods, settings and the choice of hyperparameters are those of the standard
splits; nothing of a gap enters a fit.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from time import perf_counter, process_time
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .methods import Settings
from .mixing import mixing
from .records import said_versions
from .trials import COSTS, ROWS, AnyTrial, fit_part, load, score, settings_for

__all__ = ["FOLDER", "GAP_SETS", "GapTrial", "Part", "expected_cost", "gap", "measure", "trials"]

Array = NDArray[Any]
GAP_SETS = ("boston", "concrete", "energy", "yacht")
FOLDER = "gaps"  # in the output folder, with records of its own
HELD_OUT = 0.1  # of the outer thirds, the rows outside the gap that are tested
FEWEST = 0.1  # of all rows in the gap, or the input has too few values for one


class Part(NamedTuple):
    """Row numbers of one gap split."""

    train: Array
    inside: Array
    outside: Array


@dataclass(frozen=True)
class GapTrial(AnyTrial):
    """One method on one gap.

    Raises
    ------
    ValueError
        If there is no such set or method; lists them.
    """

    set: str
    method: str
    input: int
    settings: Settings = field(default_factory=Settings)

    part: ClassVar[str] = "input"

    def __post_init__(self) -> None:
        if self.set not in GAP_SETS:
            raise ValueError(f"there are no gaps in {self.set!r}; there are in {GAP_SETS}")
        super().__post_init__()

    @property
    def seeded_by(self) -> str:
        """Not the split with its key."""
        return f"gap/{self.key}"


def gap(values: Array, seed: int = 0) -> Part | None:
    """Return the rows of the gap in one input (N,), or None if it has too few values.

    The gap lies strictly between the last value of the lower third and the first of the upper one:
    rows that share those values stay outside, so no training row is in it.
    """
    count = len(values)
    ordered = np.sort(values)
    low, high = ordered[count // 3 - 1], ordered[count - count // 3]
    between = (values > low) & (values < high)
    if between.sum() < FEWEST * count:
        return None
    rest = np.random.default_rng(seed).permutation(np.flatnonzero(~between))
    held_out = max(1, round(HELD_OUT * len(rest)))
    return Part(np.sort(rest[held_out:]), np.flatnonzero(between), np.sort(rest[:held_out]))


def trials(sets: tuple[str, ...], methods: tuple[str, ...], **changed: Any) -> list[GapTrial]:
    """Return a trial for each set, method, and input that has a gap."""
    found = []
    for name in sets:
        inputs = load(name).x.T
        usable = [place for place, values in enumerate(inputs) if gap(values) is not None]
        settings = settings_for(name, **changed)
        found += [GapTrial(name, method, place, settings) for method in methods for place in usable]
    return found


def expected_cost(trial: GapTrial) -> float:
    """Return about how many seconds a trial takes on one core."""
    return 0.7 * COSTS[trial.method] * ROWS[trial.set]


def measure(trial: GapTrial) -> dict[str, Any]:
    """Run a trial and return what is recorded of it: scores inside the gap and outside."""
    wall, cpu = perf_counter(), process_time()
    data = load(trial.set)
    part = gap(data.x[:, trial.input])
    if part is None:
        raise ValueError(f"input {trial.input} of {trial.set} has too few values for a gap")
    x, y = data.x, data.y
    fit, chosen, scaled = fit_part(
        x[part.train], y[part.train], trial.method, trial.settings, trial.seed
    )
    metrics = {}
    for where, rows in (("inside", part.inside), ("outside", part.outside)):
        scores, notes = score(fit, scaled, x[rows], y[rows], trial)
        metrics[where] = scores | {name: notes[name] for name in ("noise", "epistemic")}
    return {
        "seed": trial.seed,
        "name": data.names[trial.input],
        "chosen": chosen,
        "metrics": metrics,
        "notes": fit.notes | (mixing(fit.draws) if fit.draws is not None else {}),
        "rows": {name: len(rows) for name, rows in part._asdict().items()},
        "seconds": {"wall": perf_counter() - wall, "cpu": process_time() - cpu},
        "versions": said_versions(),
    }
