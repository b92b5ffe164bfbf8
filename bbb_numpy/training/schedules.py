"""Default training schedules: epochs, batch sizes, weight samples and learning rates.

`SCHEDULES` is the whole table: each row has the reason for its numbers and the page with the
measurements. `schedule_for` looks a schedule up. `schedule_table` writes the table for users, in
the docstrings of the learners and in the documentation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

__all__ = [
    "SCHEDULES",
    "ScheduleRow",
    "TrainingSchedule",
    "schedule_for",
    "schedule_table",
]

# Largest number of steps of an epoch that counts as cheap: then the number of epochs is not cut
CHEAP_STEPS_PER_EPOCH = 16

# Pages with measurements, relative to the root of the repository
LEARNERS_PAGE = "benchmarks/README.md#learners-as-they-come"
CHAINS_PAGE = "benchmarks/README.md#chains-of-many-rows"
D30_PAGE = "derivations/bounds.md#d30-minibatches-of-objectives-that-are-not-linear"
D69_PAGE = "derivations/correlated-posteriors.md#d69-fewer-rows-than-weights"
NATURAL_GRADIENTS_PAGE = "benchmarks/README.md#natural-gradients"


class TrainingSchedule(NamedTuple):
    """The schedule of one training.

    Parameters
    ----------
    epochs : int
        Number of passes over the rows.
    batch_size : int
        Number of rows per step.
    samples : int
        Number of weight samples per step.
    learning_rate : float or None
        Learning rate of the first step; None stands for the optimizer's default.
    """

    epochs: int
    batch_size: int
    samples: int
    learning_rate: float | None


@dataclass(frozen=True)
class ScheduleRow:
    """A row of `SCHEDULES`: the schedule of a task, some inferences and at most `max_rows` rows.

    A step has ``1 / steps_per_epoch`` of the rows, but at least `min_batch_size` and at most
    `max_batch_size`. The number of epochs is the smallest from `min_epochs` to `max_epochs` that
    gives `min_steps` steps, or `max_epochs` if none does.
    """

    task: str  # "regression", "classification" or "any"
    inferences: tuple[str, ...]  # keys of `INFERENCES`
    max_epochs: int
    min_batch_size: int
    samples: int  # number of weight samples per step
    # learning rate of the first step; None stands for the optimizer's default
    learning_rate: float | None
    reason: str  # reason for the numbers of this row
    measured: str  # page and section with the measurements
    max_rows: int | None = None  # None stands for any number of rows
    min_epochs: int | None = None  # None stands for `max_epochs`
    min_steps: int = 0
    max_batch_size: int | None = None  # None stands for `min_batch_size`
    steps_per_epoch: int = 1


# Text above the table in the docstrings of the learners
SCHEDULES_CAPTION = """\
*Schedules*. What ``epochs=None`` stands for, by the number N of training rows: the first line that
applies. There are as few epochs of their range as reach the least number of steps.
*Samples* are weight samples per step; *Rate* is the learning rate of Adam's first step. If `epochs`
is given, the other columns are those of the first row of the task and inference; `batch_size`,
`samples` and `optimizer` that are given are kept."""

# Groups of inferences that have the same schedules, with their members in the words of the table
INFERENCES = {
    "variational": "mean-field, low-rank, full-rank",
    "point": "map, mle",
    "full-length": "objectives IWAE, Renyi, EUBO",
    "laplace": "laplace",
    "ivon": "ivon",
    "ivon-optimizer": "others with optimizer=IVON()",
    "ensemble": "starts of chains (Sampling(start='ensemble'))",
    "member": "members of the ensemble that is the default for many rows",
}

SCHEDULES = (
    ScheduleRow(
        "regression",
        ("variational", "point"),
        max_rows=512,
        max_epochs=1000,
        min_batch_size=32,
        samples=1,
        learning_rate=1e-2,
        reason="1,000 epochs of at most 16 steps are cheap",
        measured=LEARNERS_PAGE,
    ),
    ScheduleRow(
        "regression",
        ("variational",),
        max_rows=4096,
        max_epochs=1000,
        min_epochs=500,
        min_steps=8_000,
        min_batch_size=64,
        samples=4,
        learning_rate=2e-2,
        reason="the gradient of twice the rows and four weight samples bears twice the "
        "rate, for a quarter more time per step",
        measured=LEARNERS_PAGE,
    ),
    ScheduleRow(
        "regression",
        ("point",),
        max_rows=4096,
        max_epochs=1000,
        min_epochs=500,
        min_steps=8_000,
        min_batch_size=64,
        samples=1,
        learning_rate=2e-2,
        reason="as above, but all weight samples of a point mass are the same",
        measured=LEARNERS_PAGE,
    ),
    ScheduleRow(
        "regression",
        ("variational", "point"),
        max_epochs=1000,
        min_epochs=200,
        min_steps=32_000,
        min_batch_size=32,
        max_batch_size=256,
        steps_per_epoch=32,
        samples=1,
        learning_rate=2e-2,
        reason="larger minibatches lower the loss more than additional weight samples do",
        measured=LEARNERS_PAGE,
    ),
    ScheduleRow(
        "classification",
        ("variational", "point"),
        max_rows=512,
        max_epochs=100,
        min_batch_size=32,
        samples=4,
        learning_rate=1e-2,
        reason="100 epochs of at most 16 steps are cheap",
        measured=LEARNERS_PAGE,
    ),
    ScheduleRow(
        "classification",
        ("variational",),
        max_rows=8192,
        max_epochs=100,
        min_batch_size=32,
        max_batch_size=256,
        steps_per_epoch=16,
        samples=4,
        learning_rate=2e-2,
        reason="larger minibatches bear twice the rate; half the epochs lose where classes "
        "do not overlap",
        measured=LEARNERS_PAGE,
    ),
    ScheduleRow(
        "classification",
        ("variational",),
        max_epochs=100,
        min_batch_size=32,
        max_batch_size=256,
        steps_per_epoch=16,
        samples=2,
        learning_rate=2e-2,
        reason="on so many rows two weight samples do as well as four",
        measured=LEARNERS_PAGE,
    ),
    ScheduleRow(
        "classification",
        ("point",),
        max_epochs=100,
        min_batch_size=32,
        max_batch_size=256,
        steps_per_epoch=16,
        samples=4,
        learning_rate=2e-2,
        reason="larger minibatches bear twice the rate",
        measured=LEARNERS_PAGE,
    ),
    ScheduleRow(
        "regression",
        ("laplace",),
        max_epochs=1000,
        min_batch_size=32,
        max_batch_size=256,
        steps_per_epoch=4,
        samples=1,
        learning_rate=1e-2,
        reason="there are eight modes to find; larger minibatches come as close to each in fewer "
        "steps",
        measured=D69_PAGE,
    ),
    *(
        ScheduleRow(
            task,
            inferences,
            max_epochs=epochs,
            min_batch_size=32,
            samples=samples,
            learning_rate=1e-2,
            reason="Laplace's approximation holds at a mode, and these bounds are biased by "
            "minibatches: neither is trained in fewer steps unasked",
            measured=D30_PAGE,
        )
        for task, inferences, epochs, samples in (
            ("regression", ("full-length",), 1000, 1),
            ("classification", ("full-length", "laplace"), 100, 4),
        )
    ),
    *(
        ScheduleRow(
            task,
            (inference,),
            max_epochs=epochs,
            min_batch_size=32,
            max_batch_size=256,
            steps_per_epoch=32,
            samples=samples,
            learning_rate=None,
            reason="the curvature is estimated from the rows of a step; few estimate none",
            measured=NATURAL_GRADIENTS_PAGE,
        )
        for task, inference, epochs, samples in (
            ("regression", "ivon", 200, 1),
            ("regression", "ivon-optimizer", 1000, 1),
            ("classification", "ivon", 50, 4),
            ("classification", "ivon-optimizer", 100, 4),
        )
    ),
    ScheduleRow(
        "any",
        ("ensemble",),
        max_rows=4096,
        max_epochs=1500,
        min_epochs=150,
        min_steps=1500,
        min_batch_size=32,
        samples=1,
        learning_rate=1e-2,
        reason="a start of a chain may be poor",
        measured=CHAINS_PAGE,
    ),
    ScheduleRow(
        "any",
        ("ensemble",),
        max_epochs=32_000,
        min_epochs=1,
        min_steps=32_000,
        min_batch_size=256,
        samples=1,
        learning_rate=2e-2,
        reason="chains of many rows stay in the mode in which they start",
        measured=CHAINS_PAGE,
    ),
    ScheduleRow(
        "any",
        ("member",),
        max_epochs=8_000,
        min_epochs=1,
        min_steps=8_000,
        min_batch_size=256,
        samples=1,
        learning_rate=1e-2,
        reason="five members of 8,000 steps take about as long as one of 40,000, and are better",
        measured=LEARNERS_PAGE,
    ),
)


def schedule_for(
    task: str, inference: str, n_rows: int, batch_size: int | None = None
) -> TrainingSchedule:
    """Return the default schedule for training on `n_rows` rows.

    Parameters
    ----------
    task : {'regression', 'classification', 'any'}
        Kind of the targets; 'any' for inferences whose schedule is the same for both.
    inference : str
        A key of `INFERENCES`.
    n_rows : int
        Number of training rows, >= 1.
    batch_size : int, optional
        Number of rows per step if the user has set it; the number of epochs is then computed from
        it. By default the batch size of the schedule.

    Returns
    -------
    TrainingSchedule

    Raises
    ------
    KeyError
        If there is no schedule for the task and the inference.

    Examples
    --------
    >>> schedule_for("regression", "variational", 513)
    TrainingSchedule(epochs=888, batch_size=64, samples=4, learning_rate=0.02)
    """
    cheap = batch_size is not None and n_rows <= CHEAP_STEPS_PER_EPOCH * batch_size
    for row in SCHEDULES:
        applies = row.task in (task, "any") and inference in row.inferences
        if applies and (cheap or row.max_rows is None or n_rows <= row.max_rows):
            break
    else:
        raise KeyError(f"no schedule for {task} by {inference}")
    if batch_size is None:
        share = max(n_rows // row.steps_per_epoch, row.min_batch_size)
        batch_size = min(share, row.max_batch_size or row.min_batch_size)
    steps_per_epoch = -(-n_rows // batch_size)
    epochs = max(row.min_epochs or row.max_epochs, row.min_steps // steps_per_epoch)
    epochs = min(epochs, row.max_epochs)
    return TrainingSchedule(epochs, batch_size, row.samples, row.learning_rate)


def schedule_table(markdown: bool) -> str:
    """Return `SCHEDULES` as a table for users, a line for each row.

    Parameters
    ----------
    markdown : bool
        True for a Markdown table for a page in the folder docs, with the reasons and links to the
        measurements. False for a simple table of reStructuredText for docstrings, with its caption
        and a legend of the inferences.
    """
    lines = [_cells(row, markdown) for row in SCHEDULES]
    header = list(lines[0])
    if markdown:
        body = [header, ["---"] * len(header), *(line.values() for line in lines)]
        return "\n".join(f"| {' | '.join(cells)} |" for cells in body)
    widths = [max(len(name), *(len(line[name]) for line in lines)) for name in header]
    border = "  ".join("=" * width for width in widths)
    header_line, *body_lines = (
        "  ".join(map(str.ljust, cells, widths)).rstrip()
        for cells in [header, *(line.values() for line in lines)]
    )
    legend = [f"- {group}: {names}" for group, names in INFERENCES.items()]
    table = [border, header_line, border, *body_lines, border]
    return "\n".join([SCHEDULES_CAPTION, "", *table, "", "Inference:", "", *legend])


def _cells(row: ScheduleRow, markdown: bool) -> dict[str, str]:
    """Return the cells of `row` as text, by column name.

    If `markdown`, inferences are listed by their members instead of by group, and a column 'Why'
    has the reason with a link to what was measured.
    """
    names = [INFERENCES[name] if markdown else name for name in row.inferences]
    batch_size = f"{row.min_batch_size}"
    if row.max_batch_size is not None:
        limits = _range(row.min_batch_size, row.max_batch_size)
        batch_size = f"N / {row.steps_per_epoch}, {limits}"
    rate = row.learning_rate
    cells = {
        "Task": row.task,
        "Inference": ", ".join(names),
        "Rows N": "any" if row.max_rows is None else f"<= {row.max_rows}",
        "Epochs": _range(row.min_epochs or row.max_epochs, row.max_epochs),
        "Min. steps": f"{row.min_steps}" if row.min_steps else "",
        "Batch size": batch_size,
        "Samples": f"{row.samples}",
        "Rate": "its own" if rate is None else f"{rate:g}",
    }
    if markdown:
        cells["Why"] = f"{row.reason} ([measured](../{row.measured}))"
    return cells


def _range(low: int, high: int) -> str:
    """Return "low-high", or one number if both are equal."""
    return f"{low}" if low == high else f"{low}-{high}"
