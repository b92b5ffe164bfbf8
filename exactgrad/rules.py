"""NumPy functions for operations that the frameworks have in common and NumPy has not."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["solve_triangular"]


def solve_triangular(
    matrix: Any,
    right: Any,
    lower: bool,
    left: bool = True,
    unitriangular: bool = False,
    transposed: bool = False,
) -> Any:
    """Return the solution X of A X = B, or of X A = B, for a triangular matrix A.

    Parameters
    ----------
    matrix : array of shape (..., n, n)
        The matrix A. Its numbers on the other side of the diagonal are not read.
    right : array
        The right side B.
    lower : bool
        Whether the numbers below the diagonal are those of A; else those above it.
    left : bool, optional
        Whether A stands to the left of X. By default True.
    unitriangular : bool, optional
        Whether 1 stands in for the numbers on the diagonal. By default False.
    transposed : bool, optional
        Whether the transposed triangular matrix stands in for A. By default False.
    """
    offset = int(unitriangular)
    matrix = np.tril(matrix, -offset) if lower else np.triu(matrix, offset)
    matrix = matrix + offset * np.eye(matrix.shape[-1])
    if transposed:
        matrix = np.swapaxes(matrix, -1, -2)
    if left:
        return np.linalg.solve(matrix, right)
    turned = np.swapaxes(matrix, -1, -2), np.swapaxes(right, -1, -2)
    return np.swapaxes(np.linalg.solve(*turned), -1, -2)
