"""Which cells reach what was published: unrounded means against the numbers as printed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from . import tables
from .methods import SAMPLERS
from .tables import DATASETS, METRICS, Cell, Published, printed


@dataclass(frozen=True)
class Target:
    """Published numbers, and the methods that are to get below them."""

    title: str
    short: str  # for the terminal
    methods: tuple[str, ...]
    rows: tuple[Published, ...]
    goal: int | None = None  # number of cells to reach, of 18


TARGETS = {
    "baseline": Target(
        "The mean-field family ({}) against Bayes by Backprop's best public implementation",
        "mean-field family below Bayes by Backprop's public numbers",
        ("mean-field", "local-reparam", "full-rank", "renyi"),
        (tables.BASELINE,),
    ),
    "best": Target(
        "Sampling ({}) with the same gradient against the best of the Bayesian networks listed "
        "(Sagar's column, reported false, is no number to reach)",
        "samplers below the best of the Bayesian networks listed",
        SAMPLERS,
        tables.NETWORKS,
        16,
    ),
    "dropout": Target(
        "The default learner, nothing chosen, against MC dropout with a grid search per split",
        "default learner below MC dropout",
        ("default",),
        (tables.DROPOUT,),
        12,
    ),
}


@dataclass(frozen=True)
class Verdict:
    """Our best method on one set and metric, beside the published number as printed."""

    set: str
    metric: str
    bar: float
    holder: str  # who published the bar
    cell: Cell | None  # our best, by `tables.leading`; None if none has a score

    @property
    def margin(self) -> float:
        """Bar less the unrounded mean, in units of the metric; nan without a mean."""
        return (
            self.bar - self.cell.scores[self.metric].mean if self.cell else float("nan")
        )

    @property
    def met(self) -> bool:
        """Whether the mean is strictly below."""
        return self.margin > 0.0

    @property
    def complete(self) -> bool:
        """Whether every published split is in the mean."""
        return self.cell is not None and self.cell.complete


def against(
    cells: Iterable[Cell],
    rows: Sequence[Published],
    accepts: Callable[[str], bool] = lambda method: True,
) -> list[Verdict]:
    """Return our best cell of each set and metric beside the lowest of the published numbers.

    Parameters
    ----------
    cells : iterable of Cell
        Ours.
    rows : sequence of Published
        The published numbers.
    accepts : callable
        From the name of a method to whether its cells count; by default all do.
    """
    our_cells = [cell for cell in cells if accepts(cell.method)]
    return [
        Verdict(
            name,
            metric,
            *bar,
            tables.leading((c for c in our_cells if c.set == name), metric),
        )
        for name in DATASETS
        for metric in METRICS
        if (bar := tables.lowest(name, metric, rows)) is not None
    ]


def alone(cells: Sequence[Cell], target: Target) -> dict[str, int]:
    """Return in how many cells each method, with all splits, reaches the target alone.

    Choosing the better of several methods cell by cell looks at test scores: these counts do not.

    Parameters
    ----------
    cells : sequence of Cell
        Ours.
    target : Target
        Published numbers and methods.
    """
    return {
        method: sum(
            verdict.met and verdict.complete
            for verdict in against(cells, target.rows, method.__eq__)
        )
        for method in target.methods
        if any(cell.method == method for cell in cells)
    }


def ahead(cells: Sequence[Cell]) -> list[tuple[Verdict, Published]]:
    """Return who of all that is listed, networks or not, is below the lowest mean of ours.

    Cell by cell, the lowest first. Our mean is rounded as the other number is: what is printed as
    0.00 is not ahead of 0.001.
    """
    pairs = []
    for row in tables.PUBLISHED:
        for verdict in against(cells, [row]):
            decimals = len(printed(verdict.bar).partition(".")[2])
            if (
                verdict.cell
                and round(verdict.cell.scores[verdict.metric].mean, decimals)
                > verdict.bar
            ):
                pairs.append((verdict, row))
    order = [(name, metric) for name in DATASETS for metric in METRICS]
    return sorted(
        pairs,
        key=lambda pair: (order.index((pair[0].set, pair[0].metric)), pair[0].bar),
    )


def count(verdicts: Sequence[Verdict]) -> str:
    """Return in words how many verdicts are met, and how many of these lack splits."""
    met = [verdict for verdict in verdicts if verdict.met]
    n_incomplete = sum(not verdict.complete for verdict in met)
    text = f"{len(met)} of {len(verdicts)} cells"
    return (
        f"{text}, {n_incomplete} of them with splits missing" if n_incomplete else text
    )
