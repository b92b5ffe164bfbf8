"""A scikit-learn transformer that encodes a table as the learners do, for pipelines."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..numeric.layout import Array
from .base import (  # they come from scikit-learn; without it, base says how to install it
    BaseEstimator,
    TransformerMixin,
    check_feature_names,
    check_is_fitted,
    validate_data,
)
from .columns import describe_columns, encode_columns
from .rows import as_frame

__all__ = ["TableEncoder"]


class TableEncoder(TransformerMixin, BaseEstimator):
    """Encode the columns of a table as numbers, as `BayesianMLPRegressor` does by itself.

    Categories and text become columns of 0 and 1, dates days since 1970-01-01. Missing cells are
    filled in with the median, and told by a column of 0 and 1, if there were some in `fit`.

    Parameters
    ----------
    unknown : {'error', 'ignore'}, default='error'
        Treatment of a category that `fit` has not seen: refused, or encoded as 0 in all columns,
        with a warning.

    Attributes
    ----------
    columns_ : tuple of Column
        How each column is encoded.
    n_features_in_ : int
        Number of columns of X in `fit`.
    feature_names_in_ : ndarray (n_features_in_,) of str
        Only after fitting a data frame with text column names.
    """

    def __init__(self, unknown: str = "error") -> None:
        self.unknown = unknown

    def fit(self, X: Any, y: Any = None) -> TableEncoder:
        """Find out how each column of a table is encoded.

        Parameters
        ----------
        X : DataFrame or array-like (N, n_features_in_)
            Table.
        y : ignored

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a column cannot be encoded, or `unknown` is another word. The message names it.
        """
        if self.unknown not in ("error", "ignore"):
            raise ValueError(
                f"unknown must be 'error' or 'ignore'; got {self.unknown!r}"
            )
        self.columns_ = describe_columns(self._frame(X, first=True))
        return self

    def transform(self, X: Any) -> Array:
        """Return the features (N, d_out) that encode a table, float64.

        Parameters
        ----------
        X : DataFrame or array-like (N, n_features_in_)
            Table with the columns of `fit`; a data frame may have them in any order, and others.

        Raises
        ------
        ValueError
            If a column or a value is missing that `fit` had, or a cell is not a number, not a date,
            or an unknown category.
        """
        check_is_fitted(self)
        frame = self._frame(X, first=False)
        return encode_columns(frame, self.columns_, self.unknown).to_numpy()

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Return the names (d_out,) of the features, such as 'size' and 'colour=red'.

        Parameters
        ----------
        input_features : array-like (n_features_in_,) of str, optional
            Names of the columns, which must be those of `fit`.
        """
        check_is_fitted(self)
        check_feature_names(self, input_features)
        names = [name for column in self.columns_ for name in column.features]
        return np.array(names, dtype=object)

    def _frame(self, X: Any, *, first: bool) -> Any:
        """Return `X` as a DataFrame; arrays get the column names 'x0', 'x1', ...

        `first` says whether to store the number and the names of its columns.
        """
        from pandas import DataFrame

        frame = as_frame(X)
        if hasattr(frame, "iloc"):
            if first:
                validate_data(self, frame, skip_check_array=True)
            return frame
        array = validate_data(
            self, frame, reset=first, dtype=None, ensure_all_finite="allow-nan"
        )
        return DataFrame(array, columns=[f"x{k}" for k in range(array.shape[1])])

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags: cells may be missing, and categories of text."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags
