"""What all studies share: their tables, claims and pictures, and numbers with standard errors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from bbb_numpy.model.joint import Model
from bbb_numpy.numeric.files import write_json
from bbb_numpy.plots.style import BLACK, BLUE, EDGE, GREEN, VERMILLION, finish

Array = NDArray[Any]


def classes_of_mean(model: Model, theta: Array, x: Array) -> Array:
    """Return the classes that the network with the mean weights predicts.

    Parameters
    ----------
    model : Model
        Network with a categorical likelihood.
    theta : array
        Means of the weights first.
    x : array (N, d_in)
        Inputs.

    Returns
    -------
    array (N,) of int
    """
    weights = theta[None, : model.layout.size]
    blocks = (x[i : i + 1000] for i in range(0, len(x), 1000))
    return np.concatenate(
        [model.predict(weights, block)[0].argmax(1) for block in blocks]
    )


def table(
    head: Sequence[str], rows: Sequence[Sequence[str]], n_left_aligned: int = 1
) -> str:
    """Return a table as text: the first columns aligned to the left, the others to the right.

    Parameters
    ----------
    head : sequence of str
        Titles of the columns.
    rows : sequence of sequence of str
        One cell for each title.
    n_left_aligned : int
        Number of columns that are aligned to the left.
    """
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = [
        "  ".join(
            cell.ljust(width) if i < n_left_aligned else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in (head, *rows)
    ]
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])


def listed(
    caption: str,
    head: str,
    items: Mapping[str, Any] | Iterable[tuple[str, Any]],
    row: Callable[[Any], str] | str,
) -> str:
    """Return a table with one row for each named item, under a caption.

    The head and each row are written as in Markdown, ``"name | mean | error"``.

    Parameters
    ----------
    caption : str
        Text above the table.
    head : str
        Titles of the columns.
    items : mapping of str to object, or iterable of pairs
        The name of a row and its item.
    row : callable or str
        From an item to its cells, or a format such as ``"{0.mean:.2f} | {0.error:.2f}"``.
    """
    named = items.items() if isinstance(items, Mapping) else items
    written = row if callable(row) else row.format
    rows = [[name, *written(item).split(" | ")] for name, item in named]
    return f"{caption}\n\n{table(head.split(' | '), rows)}"


def values(caption: str, head: str, value_by_name: Mapping[str, Any]) -> str:
    """Return a table with one value for each name, under a caption.

    Parameters
    ----------
    caption : str
        Text above the table.
    head : str
        Title of the column of names.
    value_by_name : mapping of str to object
        Shown by `str`.
    """
    return listed(caption, f"{head} | value", value_by_name, str)


def by_key(caption: str, columns: str, items: Mapping[str, Mapping[str, Any]]) -> str:
    """Return a table with the numbers of every item that its columns name, under a caption.

    A mean with its standard error is shown as both, what an item does not have as a dash.

    Parameters
    ----------
    caption : str
        Text above the table.
    columns : str
        Title of the names, then keys of the items, ``"model | rmse | nll"``.
    items : mapping of str to mapping
        The numbers of each item, by key.
    """

    def cell(value: Any) -> str:
        if isinstance(value, tuple):
            return f"{value[0]:.4g} +- {value[1]:.2g}"
        if value is None:
            return "-"
        return f"{value:.4g}" if isinstance(value, float) else str(value)

    _, *keys = columns.split(" | ")
    return listed(
        caption,
        columns,
        items,
        lambda item: " | ".join(cell(item.get(k)) for k in keys),
    )


def text(*parts: str) -> str:
    """Return the parts of a study's text, an empty line between them."""
    return "\n\n".join(parts)


class Claim(NamedTuple):
    """A statement of a source beside what was measured, or an expectation of ours."""

    statement: str
    printed: str  # its number in the source, or the number that we expect
    measured: str
    holds: bool | float  # or by how many standard errors the two numbers differ
    ours: bool = False  # whether the source does not say it


def claims(caption: str, source: str, rows: Sequence[Claim]) -> str:
    """Return a table of the claims of `source`, and one of what it does not claim but we expect.

    Parameters
    ----------
    caption : str
        Text above the tables.
    source : str
        What the claims are of, such as "the paper".
    rows : sequence of Claim
        Claims, and with ``ours=True`` expectations.
    """
    laid_out = [caption]
    for head, ours in (
        ([f"claim of {source}", "printed"], False),
        (["ours", "expected"], True),
    ):
        cells = []
        for statement, printed, measured, holds, is_ours in rows:
            verdict = f"{holds:.1f} s.e. off"
            if isinstance(holds, bool | np.bool_):
                verdict = "yes" if holds else "no"
            if is_ours is ours:
                cells.append([statement, printed, measured, verdict])
        if cells:
            laid_out.append(table([*head, "here", "holds"], cells))
    return "\n\n".join(laid_out)


def panels(
    width: float, height: float, rows: int = 1, columns: int = 1, **shape: Any
) -> Any:
    """Return a new figure and its panels, as `Figure.subplots` returns them.

    Parameters
    ----------
    width, height : float
        In inches.
    rows, columns : int
        Number of panels down and across.
    **shape : Any
        Other arguments of `Figure.subplots`.
    """
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(rows, columns, **shape)


def deviations(
    ax: Axes,
    x: Array,
    curves: Mapping[str, Array],
    ranges: Mapping[str, tuple[float, float]],
) -> None:
    """Draw epistemic standard deviations against x, the part within the data as a thick line.

    Parameters
    ----------
    ax : matplotlib Axes
        Where to draw.
    x : array (N,) or (N, 1)
        Increasing.
    curves : mapping of str to array
        Standard deviation at every x, at most four, by label.
    ranges : mapping of str to (low, high)
        Where the data of each curve lie.
    """
    x = np.ravel(x)
    styles = ((BLACK, "-"), (BLUE, "--"), (VERMILLION, "-."), (GREEN, ":"))
    for (name, curve), (colour, style) in zip(curves.items(), styles, strict=False):
        values = np.ravel(curve)
        (low, high) = ranges[name]
        ax.plot(x, values, style, color=colour, linewidth=1.3, label=name)
        curve_within_data = np.where((x >= low) & (x <= high), values, np.nan)
        ax.plot(x, curve_within_data, "-", color=colour, linewidth=4.5, alpha=0.4)
    ax.plot([], [], "-", color=EDGE, linewidth=4.5, label="within the data")
    ax.set(yscale="log", xlim=(float(x[0]), float(x[-1])))
    ax.yaxis.set_major_formatter("{x:g}")
    ax.xaxis.set_major_locator(MaxNLocator(7))
    finish(ax, "x", "epistemic standard deviation (units of y)", 2)


def write(
    out: Path, pictures: Mapping[str, Figure], numbers: Any, stem: str = "numbers"
) -> None:
    """Write pictures as PNG and numbers as JSON to a folder, which is created if missing.

    Parameters
    ----------
    out : Path
        The folder.
    pictures : mapping of str to matplotlib Figure
        By the name of the file, without its ending.
    numbers : object
        Anything that `plain` accepts.
    stem : str
        Name of the JSON file, without its ending.
    """
    out.mkdir(parents=True, exist_ok=True)
    for name, figure in pictures.items():
        figure.savefig(out / f"{name}.png", dpi=100)
    write_json(out / f"{stem}.json", plain(numbers))


def plain(value: Any) -> Any:
    """Return what JSON has: named parts as tables, arrays as lists, nan as null."""
    if hasattr(value, "_asdict"):
        value = value._asdict()
    elif is_dataclass(value) and not isinstance(value, type):
        value = {part.name: getattr(value, part.name) for part in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    return None if value != value else value


class Estimate(NamedTuple):
    """A mean and its standard error."""

    mean: float
    error: float


def estimate(values: Array) -> Estimate:
    """Return the mean of independent values and its standard error, 0 of one alone."""
    error = 0.0
    if len(values) > 1:
        error = float(values.std(ddof=1) / np.sqrt(len(values)))
    return Estimate(float(values.mean()), error)


def clustered_mean(values: Array, groups: Array) -> tuple[float, float]:
    r"""Return the mean of `values` (N,) and its standard error when groups hang together (D35).

    With residuals r the error is :math:`\frac1N \sqrt{\frac{G}{G - 1} \sum_g (\sum_{i \in g}
    r_i)^2}` over two or more groups: rows of one, such as the companies of one day, may be
    correlated in any way, groups may not. With one row per group it is the usual standard error.

    Parameters
    ----------
    values : array (N,)
        Numbers to average.
    groups : array (N,)
        The group of each.

    Returns
    -------
    mean, standard_error : float
    """
    names, cluster = np.unique(groups, return_inverse=True)
    mean = values.mean()
    count = len(names)
    sums = np.bincount(cluster, values - mean)
    variance = sums @ sums * count / (count - 1)
    return float(mean), float(np.sqrt(variance) / len(values))


def average(rows: Sequence[Mapping[str, float]]) -> dict[str, Estimate]:
    """Return mean and standard error over repetitions of every number."""
    return {key: estimate(np.array([row[key] for row in rows])) for key in rows[0]}


def plus_minus(pair: Sequence[float], digits: int, scale: float = 1.0) -> str:
    """Return a mean and its standard error, both times `scale`, as text such as 1.23 +- 0.04.

    Parameters
    ----------
    pair : sequence of float
        Mean and standard error.
    digits : int
        Decimals of both.
    scale : float
        Factor on both.
    """
    mean, error = pair
    return f"{scale * mean:.{digits}f} +- {scale * error:.{digits}f}"


def concise(value: float, error: float, max_digits: int = 9) -> str:
    """Return ``value(error)``, the error in units of the last digit: 0.123(4) is 0.123 +- 0.004.

    With at most `max_digits` decimals; an error below the last of them is left out.

    >>> concise(0.12345, 0.0042), concise(12.3, 1.4), concise(0.0, 0.0), concise(123456, 789)
    ('0.123(4)', '12(1)', '0', '1.235(8)e5')

    Parameters
    ----------
    value : float
        A mean.
    error : float
        Its standard error, in the same unit.
    max_digits : int
        Decimals at most.
    """
    if abs(value) >= 1e4:
        power = int(np.floor(np.log10(abs(value))))
        return (
            f"{concise(value / 10.0**power, error / 10.0**power, max_digits)}e{power}"
        )
    if error < 1e-12:  # the error is rounding alone
        return "0" if abs(value) < 1e-9 else f"{value:.4g}"
    if error < 0.5 * 10.0**-max_digits:
        return f"{value:.{max_digits}f}"
    n_digits = min(max(-int(np.floor(np.log10(error))), 0), max_digits)
    if round(error * 10**n_digits) == 10:  # 0.0096 rounds to one unit more
        n_digits = max(n_digits - 1, 0)
    return f"{value:.{n_digits}f}({max(round(error * 10**n_digits), 1)})"
