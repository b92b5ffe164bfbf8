"""What a fitted learner's predictions depend on: partial dependence and importances of columns.

Both follow each function that is drawn from the posterior by itself, and so come with a standard
deviation over draws: what the rows leave open about the answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from ..numeric.layout import Array

__all__ = ["Importances", "PartialDependence", "importances", "partial_dependence"]

MAX_AVERAGED_ROWS = 500  # evenly spaced rows of X that are averaged over
GRID_SIZE = 20
OUTERMOST = 0.05  # level of the quantile at which a grid starts
MIN_CORRELATION = 0.7  # from which on columns are also moved together


class PartialDependence(NamedTuple):
    """Mean prediction with one or two columns set to values of a grid, for each draw."""

    grid: tuple[Array, ...]  # (G,) values of each column
    draws: Array  # (G, S) or (G, G', S); with several outputs or classes (G, K, S)

    @property
    def mean(self) -> Array:
        """Mean over the draws."""
        return self.draws.mean(axis=-1)

    @property
    def sd(self) -> Array:
        """Standard deviation over the draws."""
        return self.draws.std(axis=-1)


class Importances(NamedTuple):
    """Share of the variance of predictions that is lost without a column, by column (D75)."""

    names: tuple[str, ...]  # columns, then groups of correlated ones such as 'a + b'
    share: Array  # (C,) mean over the draws
    sd: Array  # (C,) standard deviation over the draws
    message: str  # warning of correlated columns; '' if there are none

    def __str__(self) -> str:
        """Return a table, the largest share first, and the warning."""
        width = max(map(len, self.names))
        lines = [
            f"{self.names[k]:<{width}} {self.share[k]:6.3f} ± {self.sd[k]:.3f}"
            for k in np.argsort(-self.share, kind="stable")
        ]
        return "\n".join([*lines, *filter(None, [self.message])])


def partial_dependence(
    learner: Any,
    X: Any,
    feature: Any,
    grid: Any = None,
    *,
    n_samples: int = 100,
) -> PartialDependence:
    """Return the mean prediction over rows, with a column set to each value of a grid.

    Parameters
    ----------
    learner : BayesianMLPRegressor or BayesianMLPClassifier
        Fitted learner.
    X : array-like (N, d_in) or DataFrame
        Rows over which predictions are averaged, at most 500 of them, evenly spaced.
    feature : int or str, or a tuple of two
        Column, by its position or its label in a data frame; two for their interaction.
    grid : array-like (G,), or a tuple of two
        Values of the column. By default 20 quantiles from 5 % to 95 % of numbers and dates, and
        every value of columns with fewer, and of text.
    n_samples : int
        Number of functions S that are drawn from the posterior.

    Returns
    -------
    PartialDependence
        `mean` and `sd`, (G,) or (G, G'), over `draws`; with several outputs (G, K), for a
        classifier probabilities (G, C).
    """
    rows = _few_rows(X)
    features = feature if isinstance(feature, tuple) else (feature,)
    grids = (grid,) if len(features) == 1 and grid is not None else grid
    positions = [_position(rows, one) for one in features]
    if grids is None:
        grids = [_default_grid(_column(rows, position)) for position in positions]
    grids = tuple(map(np.asarray, grids))
    *first_grids, last_grid = grids
    n_rows = len(rows)
    repeated = _at(rows, np.tile(np.arange(n_rows), len(last_grid)))
    _set_column(repeated, positions[-1], np.repeat(last_grid, n_rows))
    curves = []
    for values in product(*first_grids):  # once for a single column
        for position, value in zip(positions, values, strict=False):
            _set_column(repeated, position, np.full(len(repeated), value))
        functions = learner.sample_functions(repeated, n_samples)
        shape = (len(last_grid), n_rows, *functions.shape[1:])
        curves.append(functions.reshape(shape).mean(axis=1))
    sizes = [len(values) for values in grids]
    draws = np.reshape(curves, (*sizes, *np.shape(curves)[2:]))
    return PartialDependence(grids, draws)


def importances(
    learner: Any, X: Any, *, n_samples: int = 100, random_state: int = 0
) -> Importances:
    """Return the share of the variance of predictions that each column accounts for (D75).

    In every draw it is half the mean squared change of the prediction when a row gets the column
    of another row, divided by the variance: the total effect of Sobol, interactions included. The
    shares may therefore add up to more than 1. Of several outputs or classes it is the mean.

    Parameters
    ----------
    learner : BayesianMLPRegressor or BayesianMLPClassifier
        Fitted learner.
    X : array-like (N, d_in) or DataFrame
        Rows of which the columns are exchanged, at most 500 of them, evenly spaced.
    n_samples : int
        Number of functions S that are drawn from the posterior.
    random_state : int
        Seed of the exchange.

    Returns
    -------
    Importances
        `share` and `sd` by column. Columns that correlate, by |r| > 0.7, are also exchanged
        together; a sentence in `message` names them, since the shares of each alone mislead there.
    """
    rows = _few_rows(X)
    names = [str(name) for name in getattr(rows, "columns", range(rows.shape[1]))]
    columns = getattr(learner, "columns_", None)
    used = list(range(len(names)))
    owners = used
    if columns is not None and hasattr(rows, "columns"):
        used = [names.index(column.name) for column in columns]
        owners = [
            position
            for position, column in zip(used, columns, strict=True)
            for _ in column.features
        ]
    groups, message = _correlated(learner.encode(rows), owners, names)
    order = np.random.default_rng(random_state).permutation(len(rows))
    partner = np.empty(len(rows), int)
    partner[order] = np.roll(order, 1)  # every row gets another one
    functions = _functions(learner, rows, n_samples)
    variance = functions.var(axis=0)  # (K, S)
    shares = []
    for positions in [*([position] for position in used), *groups]:
        changed = rows.copy()
        for position in positions:
            _set_column(changed, position, _column(rows, position)[partner])
        change = _functions(learner, changed, n_samples) - functions
        lost = 0.5 * np.square(change).mean(axis=0)  # (K, S) total effect (D75)
        ratio = np.divide(lost, variance, out=np.zeros_like(lost), where=variance > 0)
        shares.append(ratio.mean(axis=0))
    titles = [names[position] for position in used]
    titles += [" + ".join(names[position] for position in group) for group in groups]
    share = np.array(shares)  # (C, S)
    return Importances(tuple(titles), share.mean(axis=1), share.std(axis=1), message)


def _functions(learner: Any, rows: Any, n_samples: int) -> Array:
    """Return functions (N, K, S) drawn from the posterior at `rows`, the same at every call."""
    functions = learner.sample_functions(rows, n_samples)
    return functions.reshape(len(functions), -1, functions.shape[-1])


def _correlated(
    features: Array, owners: Sequence[int], names: Sequence[str]
) -> tuple[list[list[int]], str]:
    """Return groups of columns that correlate, and a sentence that names the pairs.

    `features` (N, d) encode columns; `owners` (d,) are the positions of these columns in `names`.
    """
    z = features - features.mean(axis=0)
    norm = np.sqrt(np.square(z).sum(axis=0))
    z = z / np.where(norm > 0, norm, 1.0)
    r = z.T @ z
    pairs: dict[tuple[int, int], float] = {}
    groups: list[set[int]] = []
    for i, j in np.argwhere(np.triu(np.abs(r) > MIN_CORRELATION, 1)):
        pair = (owners[i], owners[j])
        if owners[i] != owners[j] and abs(r[i, j]) > abs(pairs.get(pair, 0.0)):
            pairs[pair] = float(r[i, j])
            joined = set(pair).union(*(g for g in groups if g & set(pair)))
            groups = [g for g in groups if not g & joined] + [joined]
    if not pairs:
        return [], ""
    listed = ", ".join(
        f"'{names[a]}' and '{names[b]}' (r = {r_ab:.2f})"
        for (a, b), r_ab in sorted(pairs.items())
    )
    message = (
        f"{listed} correlate: exchanging one alone makes rows as there are none, where the network "
        "extrapolates, and what one column tells the other tells too. Read the line of both."
    )
    return sorted(map(sorted, groups)), message


def _few_rows(X: Any) -> Any:
    """Return `MAX_AVERAGED_ROWS` evenly spaced rows of a data frame or array, or all of fewer."""
    if not hasattr(X, "iloc"):
        X = np.asarray(X)
    n_rows = min(len(X), MAX_AVERAGED_ROWS)
    return _at(X, np.linspace(0, len(X) - 1, n_rows).round().astype(int))


def _at(rows: Any, chosen: Array) -> Any:
    """Return a copy of the rows of a data frame, or of an array, with these numbers."""
    if hasattr(rows, "iloc"):
        return rows.iloc[chosen].reset_index(drop=True)
    return rows[chosen]


def _position(rows: Any, feature: Any) -> int:
    """Return the position of a column, given by its label or its position."""
    labels = list(getattr(rows, "columns", ()))
    if feature in labels:
        return labels.index(feature)
    if isinstance(feature, int | np.integer) and 0 <= feature < rows.shape[1]:
        return int(feature)
    raise ValueError(
        f"feature must be a column of X: a position from 0 to {rows.shape[1] - 1}, or the label in "
        f"a data frame; got {feature!r}"
    )


def _column(rows: Any, position: int) -> Any:
    """Return a column of a data frame in its dtype, or of an array."""
    if hasattr(rows, "iloc"):
        return rows.iloc[:, position].array
    return rows[:, position]


def _set_column(rows: Any, position: int, values: Any) -> None:
    """Replace a column of a data frame or of an array in place."""
    if hasattr(rows, "iloc"):
        rows.isetitem(position, values)
    else:
        rows[:, position] = values


def _default_grid(cells: Any) -> Array:
    """Return the values of a column if they are few or text, else quantiles of them."""
    from pandas import Series

    values = Series(cells).dropna()
    distinct = values.drop_duplicates()
    if len(distinct) <= GRID_SIZE or values.dtype.kind not in "iufM":
        return np.asarray(sorted(distinct))
    levels = np.linspace(OUTERMOST, 1.0 - OUTERMOST, GRID_SIZE)
    return values.quantile(levels).drop_duplicates().to_numpy()
