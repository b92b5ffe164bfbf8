"""Gap splits: train on the outer thirds of one input, test in between and beside.

A posterior that knows what it has not seen is less sure in the gap than outside it, and right to
be. After Foong, Li, Hernandez-Lobato and Turner, 'In-between uncertainty in Bayesian neural
networks', 2019. Methods, settings and the choice of hyperparameters are those of the standard
splits; nothing of a gap enters a fit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .methods import Settings
from .trials import (
    AnyTrial,
    common_fields,
    fit_part,
    load,
    mixing,
    now,
    score,
    settings_for,
)

Array = NDArray[Any]
GAP_SETS = ("boston", "concrete", "energy", "yacht")
GAPS_FOLDER = "gaps"  # in the output folder, with records of its own
# Share of the rows outside the gap that is for testing.
OUTSIDE_TEST_SHARE = 0.1
MIN_GAP_SHARE = 0.1  # of all rows; with fewer in the gap the input has no gap split


class Part(NamedTuple):
    """Row numbers of one gap split."""

    train: Array
    inside: Array
    outside: Array


@dataclass(frozen=True)
class GapTrial(AnyTrial):
    """One method on one gap."""

    set: str
    method: str
    input: int
    settings: Settings = Settings()

    part: ClassVar[str] = "input"

    @property
    def seeded_by(self) -> str:
        """Key of its random numbers, other than those of the split with the same key."""
        return f"gap/{self.key}"


def gap(values: Array, seed: int = 0) -> Part | None:
    """Return the rows of a gap split by one input, or None if the input has too few values.

    The gap lies strictly between the last value of the lower third and the first of the upper one:
    rows that share those values stay outside, so no training row is in it.

    Parameters
    ----------
    values : array (N,)
        The input.
    seed : int
        Of the choice of test rows outside the gap.
    """
    count = len(values)
    ordered = np.sort(values)
    low = ordered[count // 3 - 1]
    high = ordered[count - count // 3]
    between = (values > low) & (values < high)
    if between.sum() < MIN_GAP_SHARE * count:
        return None
    outside = np.random.default_rng(seed).permutation(np.flatnonzero(~between))
    held_out = max(1, round(OUTSIDE_TEST_SHARE * len(outside)))
    return Part(
        np.sort(outside[held_out:]),
        np.flatnonzero(between),
        np.sort(outside[:held_out]),
    )


def trials(
    sets: tuple[str, ...], methods: tuple[str, ...], **changed: Any
) -> list[GapTrial]:
    """Return a trial for each set, method, and input that has a gap.

    Parameters
    ----------
    sets : tuple of str
        Names of the sets.
    methods : tuple of str
        Names of the methods.
    **changed : Any
        Settings that differ from the set's usual ones.
    """
    gap_trials = []
    for name in sets:
        usable = [
            k for k, values in enumerate(load(name).x.T) if gap(values) is not None
        ]
        settings = settings_for(name, **changed)
        gap_trials += [
            GapTrial(name, method, k, settings) for method in methods for k in usable
        ]
    return gap_trials


def measure(trial: GapTrial) -> dict[str, Any]:
    """Run a trial and return what is recorded of it: scores inside the gap and outside."""
    started = now()
    (x, y, _, names) = load(trial.set)
    part = gap(x[:, trial.input])
    if part is None:
        raise ValueError(
            f"input {trial.input} of {trial.set} has too few values for a gap"
        )
    fit, chosen, scaled = fit_part(x[part.train], y[part.train], trial)
    metrics = {}
    for where, rows in (("inside", part.inside), ("outside", part.outside)):
        scores, notes = score(fit, scaled, x[rows], y[rows], trial)
        metrics[where] = scores | {name: notes[name] for name in ("noise", "epistemic")}
    return {
        "seed": trial.seed,
        "name": names[trial.input],
        "chosen": chosen,
        "metrics": metrics,
        "notes": fit.notes | mixing(fit.draws),
        **common_fields(part._asdict(), started),
    }
