"""Matrix products, einsum and the functions of np.linalg for exact arrays (D44)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any

import numpy as np

from .arrays import (
    FUNCTIONS,
    UFUNCS,
    Exact,
    broadcast_to,
    concatenate,
    diagonal,
    dual_residues,
    lift_all,
    moveaxis,
    stack,
    sum_over,
)
from .functions import log, sqrt

__all__ = ["FUNCTIONS", "matmul"]

ELLIPSIS_LETTERS = "ABCDEFGHIJ"  # letters for the axes that "..." stands for in einsum
SlogdetResult: Any = type(np.linalg.slogdet(np.eye(1)))


def matmul(x: Any, y: Any) -> Exact:
    """Return the matrix product x @ y, with derivative x' @ y + x @ y'.

    Parameters
    ----------
    x, y : Exact or array, shape (..., n, k) and (..., k, m)
        Matrices, or stacks of matrices. A vector x (k,) counts as a row, and a vector y (k,) as a
        column.

    Returns
    -------
    Exact, shape (..., n, m)
        As for np.matmul, the axis n or m is left out if x or y is a vector.
    """
    x, y = lift_all(x, y)
    field = x.field
    floats = np.matmul(x.floats, y.floats)
    if x.ndim == 1:
        x = x.reshape(1, -1)
    if y.ndim == 1:
        y = y.reshape(-1, 1)
    tangent = None
    if x.has_tangent:
        tangent = field.matmul(x.tangent, y.primal)
    if y.has_tangent:
        change = field.matmul(x.primal, y.tangent)
        tangent = change if tangent is None else field.add(tangent, change)
    primal = field.matmul(x.primal, y.primal)
    residues = dual_residues(field, primal, tangent)
    return Exact(field, residues.reshape((*floats.shape, 2, field.n_channels)), floats)


def einsum(
    subscripts: str, *operands: Any, optimize: Any = None, casting: str = "safe"
) -> Exact:
    """Return np.einsum of exact arrays, contracting one operand after the other.

    Parameters
    ----------
    subscripts : str
        One letter per axis, as np.einsum takes them, such as "ij,jk->ik".
    *operands : Exact or array
        One array for each group of letters before the arrow.
    optimize, casting : optional
        Ignored.
    """
    arrays = lift_all(*operands)
    all_terms, arrow, result_letters = subscripts.replace(" ", "").partition("->")
    terms = all_terms.split(",")
    n_dots = [
        x.ndim - len(term.replace("...", ""))
        for term, x in zip(terms, arrays, strict=True)
    ]
    dots = ELLIPSIS_LETTERS[: max(n_dots)]
    terms = [
        term.replace("...", dots[len(dots) - n :])
        for term, n in zip(terms, n_dots, strict=True)
    ]
    letters = "".join(terms)
    if arrow:
        result_letters = result_letters.replace("...", dots)
    else:
        once = (c for c in set(letters) - set(dots) if letters.count(c) == 1)
        result_letters = dots + "".join(sorted(once))
    product, term = _sum_own(arrays[0], terms[0], result_letters + "".join(terms[1:]))
    for i, operand in enumerate(arrays[1:], 1):
        later = result_letters + "".join(terms[i + 1 :])
        operand, operand_term = _sum_own(operand, terms[i], later + term)
        product, term = _contract(product, term, operand, operand_term, later)
    if not result_letters:
        return product.reshape(())
    return product.transpose(*(term.index(c) for c in result_letters))


def _sum_own(x: Exact, term: str, used: str) -> tuple[Exact, str]:
    """Return x and the letters of its axes, reduced to the letters in `used`, each once.

    `term` has one letter for each axis of x. Of the axes of a repeated letter the diagonal is
    taken; an axis whose letter is not in `used` is summed over.
    """
    for c in set(term):
        while term.count(c) > 1:
            i = term.index(c)
            j = term.rindex(c)
            x = diagonal(x, 0, i, j)
            term = term[:i] + term[i + 1 : j] + term[j + 1 :] + c
    unused = tuple(k for k, c in enumerate(term) if c not in used)
    if unused:
        x = sum_over(x, unused)
        term = "".join(c for c in term if c in used)
    return x, term


def _contract(
    x: Exact, x_term: str, y: Exact, y_term: str, later: str
) -> tuple[Exact, str]:
    """Return the einsum of two operands, and the letters of its axes, by one matrix product.

    `x_term` and `y_term` have one letter for each axis. Letters that both operands have are summed
    over, unless they are in `later`: the letters of the result and of the operands still to come.
    """
    shared = [c for c in x_term if c in y_term]
    batch = [c for c in shared if c in later]
    inner = [c for c in shared if c not in later]
    rows = [c for c in x_term if c not in y_term]
    columns = [c for c in y_term if c not in x_term]
    pairs = [*zip(x_term, x.shape, strict=True), *zip(y_term, y.shape, strict=True)]
    lengths = dict(pairs) | {
        c: n for c, n in pairs if n > 1
    }  # an axis of length 1 is broadcast to the length of its letter elsewhere

    def as_matrices(z: Exact, term: str, *groups: list[str]) -> Exact:
        """Return z with its axes reordered, those of each group of letters joined into one."""
        order = [term.index(c) for group in groups for c in group]
        if order:
            z = z.transpose(*order)
        shape = tuple(lengths[c] for group in groups for c in group)
        sizes = [prod(lengths[c] for c in group) for group in groups]
        return broadcast_to(z, shape).reshape(sizes)

    product = matmul(
        as_matrices(x, x_term, batch, rows, inner),
        as_matrices(y, y_term, batch, inner, columns),
    )
    letters = batch + rows + columns
    return product.reshape([lengths[c] for c in letters]), "".join(letters)


def dot(x: Any, y: Any) -> Any:
    """Return np.dot(x, y), of which at least one operand is exact.

    Parameters
    ----------
    x, y : Exact or array
        Numbers, vectors, matrices or stacks of them, as np.dot takes them.
    """
    x, y = lift_all(x, y)
    if not x.ndim or not y.ndim:
        return x * y
    if y.ndim <= 2:
        return matmul(x, y)
    return np.tensordot(x, y, ((-1,), (-2,)))


def _vdot(x: Any, y: Any) -> Any:
    """Return np.vdot(x, y): the inner product of x and y, each flattened to a vector."""
    x, y = lift_all(x, y)
    return dot(x.ravel(), y.ravel())


def _vecdot(x: Any, y: Any, axis: int = -1) -> Exact:
    """Return np.vecdot(x, y): inner products along `axis`; the other axes are broadcast."""
    x, y = (moveaxis(z, axis, -1) for z in lift_all(x, y))
    return matmul(x[..., None, :], y[..., :, None])[..., 0, 0]


# --- linear algebra


def _of_stacks(function: Callable[..., Any], *operands: Any) -> Any:
    """Return a function of matrices applied to each matrix of stacks, with the results stacked.

    The arrays in `operands` agree in their leading axes, those of the stacks.
    """
    arrays = lift_all(*operands)
    if arrays[0].ndim == 2:
        return function(*arrays)
    results = [_of_stacks(function, *row) for row in zip(*arrays, strict=True)]
    if isinstance(results[0], SlogdetResult):
        return SlogdetResult(*map(stack, zip(*results, strict=True)))
    return stack(results)


def _eliminate(matrix: Exact, right: Any = None) -> tuple[Exact, Exact]:
    """Return the solution (n, k) of `matrix` X = `right`, and the determinant of `matrix` (n, n).

    They are computed by Gauss-Jordan elimination. The pivot of a column is the entry that is
    largest in floating point. Without `right` the solution has shape (n, 0).
    """
    n = len(matrix)
    rows = matrix.copy()
    if right is not None:
        rows = concatenate([rows, right], axis=1)
    det: Any = 1.0
    for j in range(n):
        i = j + int(np.argmax(abs(rows.floats[j:, j])))
        if i != j:
            rows[[i, j]] = rows[[j, i]]
            det = -det
        pivot = rows[j, j]
        det = pivot * det
        rows[j] = rows[j] / pivot
        without_j = [k for k in range(n) if k != j]
        rows[without_j] = rows[without_j] - rows[without_j, j][:, None] * rows[j]
    return rows[:, n:], det


def _inverse(matrix: Exact) -> Exact:
    """Return the inverse of a matrix (n, n)."""
    return _eliminate(matrix, np.eye(len(matrix)))[0]


def _determinant(matrix: Exact) -> Exact:
    """Return the determinant of a matrix (n, n)."""
    return _eliminate(matrix)[1]


def _solve(matrix: Exact, right: Exact) -> Exact:
    """Return the solution x of `matrix` x = `right`, where `right` is a vector (n,) or (n, k)."""
    columns = right.reshape(len(right), -1)
    return _eliminate(matrix, columns)[0].reshape(right.shape)


def _slogdet(matrix: Exact) -> Any:
    """Return the sign of the determinant of a matrix (n, n), and the log of its absolute value."""
    det = _determinant(matrix)
    size = det if det.floats > 0 else -det
    return SlogdetResult(np.sign(det.floats), log(size))


def _cholesky(matrix: Exact) -> Exact:
    """Return the lower triangular Cholesky factor L of a matrix (n, n), which is then L L^T."""
    lower = FUNCTIONS["zeros_like"](matrix)
    for j in range(len(matrix)):
        row = lower[j, :j]
        lower[j, j] = sqrt(matrix[j, j] - sum_over(row * row))
        below = matrix[j + 1 :, j] - lower[j + 1 :, :j] @ row
        lower[j + 1 :, j] = below / lower[j, j]
    return lower


def _pseudo_inverse(matrix: Exact) -> Exact:
    """Return the pseudo-inverse of a matrix (n, m) of full rank min(n, m)."""
    transposed = matrix.T
    if matrix.shape[0] >= matrix.shape[1]:
        return matmul(_inverse(transposed @ matrix), transposed)
    return matmul(transposed, _inverse(matrix @ transposed))


UFUNCS |= {"matmul": matmul, "vecdot": _vecdot}
FUNCTIONS |= {
    "dot": dot,
    "einsum": einsum,
    "inner": lambda x, y: np.tensordot(x, y, ((-1,), (-1,))),
    "linalg.cholesky": partial(_of_stacks, _cholesky),
    "linalg.det": partial(_of_stacks, _determinant),
    "linalg.inv": partial(_of_stacks, _inverse),
    "linalg.pinv": _pseudo_inverse,
    "linalg.slogdet": partial(_of_stacks, _slogdet),
    "linalg.solve": partial(_of_stacks, _solve),
    "vdot": _vdot,
}
