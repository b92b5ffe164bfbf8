"""Products of matrices and linear algebra of exact arrays (D44)."""

from __future__ import annotations

from collections.abc import Callable
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


def matmul(x: Any, y: Any) -> Exact:
    """Return the product of matrices: (X Y)' = X' Y + X Y'."""
    x, y = lift_all(x, y)
    field, v = x.field, np.matmul(x.floats, y.floats)
    one = x.reshape(1, -1) if x.ndim == 1 else x
    other = y.reshape(-1, 1) if y.ndim == 1 else y
    b = field.matmul(one.tangent, other.primal) if x.has_tangent else None
    if y.has_tangent:
        c = field.matmul(one.primal, other.tangent)
        b = c if b is None else field.add(b, c)
    r = dual_residues(field, field.matmul(one.primal, other.primal), b)
    return Exact(field, r.reshape((*v.shape, 2, field.n_channels)), v)


def einsum(
    subscripts: str, *operands: Any, optimize: Any = None, casting: str = "safe"
) -> Exact:
    """Return the sum of products that letters describe, pair by pair."""
    parts = lift_all(*operands)
    left, arrow, right = subscripts.replace(" ", "").partition("->")
    terms = left.split(",")
    own = [
        x.ndim - len(t.replace("...", "")) for t, x in zip(terms, parts, strict=True)
    ]
    dots = "ABCDEFGHIJ"[: max(own)]
    spelled = [
        t.replace("...", dots[len(dots) - k :]) for t, k in zip(terms, own, strict=True)
    ]
    letters = "".join(spelled)
    if arrow:
        right = right.replace("...", dots)
    else:
        right = dots + "".join(
            sorted(c for c in set(letters) - set(dots) if letters.count(c) == 1)
        )
    x, term = _reduced(parts[0], spelled[0], right + "".join(spelled[1:]))
    for i, y in enumerate(parts[1:], 1):
        later = right + "".join(spelled[i + 1 :])
        other, t = _reduced(y, spelled[i], later + term)
        x, term = _contracted(x, term, other, t, later)
    return x.transpose(*(term.index(c) for c in right)) if right else x.reshape(())


def _reduced(x: Exact, term: str, others: str) -> tuple[Exact, str]:
    """Take diagonals of repeated letters, and sum over those that occur nowhere else."""
    for c in set(term):
        while term.count(c) > 1:
            i, j = term.index(c), term.rindex(c)
            x = diagonal(x, 0, i, j)
            term = term[:i] + term[i + 1 : j] + term[j + 1 :] + c
    gone = tuple(k for k, c in enumerate(term) if c not in others)
    if gone:
        x, term = sum_over(x, gone), "".join(c for c in term if c in others)
    return x, term


def _contracted(
    x: Exact, one: str, y: Exact, other: str, later: str
) -> tuple[Exact, str]:
    """Return the product of two operands, as one of stacks of matrices."""
    both = [c for c in one if c in other]
    batch, inner = [c for c in both if c in later], [c for c in both if c not in later]
    left, right = [c for c in one if c not in other], [c for c in other if c not in one]
    pairs = [*zip(one, x.shape, strict=True), *zip(other, y.shape, strict=True)]
    sizes = dict(pairs) | {c: n for c, n in pairs if n > 1}

    def matrix(z: Exact, term: str, *groups: list[str]) -> Exact:
        order = [term.index(c) for group in groups for c in group]
        shape = [prod(sizes[c] for c in group) for group in groups]
        wanted = tuple(sizes[c] for group in groups for c in group)
        return broadcast_to(z.transpose(*order) if order else z, wanted).reshape(shape)

    found = matmul(
        matrix(x, one, batch, left, inner), matrix(y, other, batch, inner, right)
    )
    letters = batch + left + right
    return found.reshape([sizes[c] for c in letters]), "".join(letters)


def dot(x: Any, y: Any) -> Any:
    """Return np.dot."""
    x, y = lift_all(x, y)
    if not x.ndim or not y.ndim:
        return x * y
    return matmul(x, y) if y.ndim <= 2 else np.tensordot(x, y, ((-1,), (-2,)))


def _vecdot(x: Any, y: Any, axis: int = -1) -> Exact:
    x, y = (moveaxis(z, axis, -1) for z in lift_all(x, y))
    return matmul(x[..., None, :], y[..., :, None])[..., 0, 0]


# --- linear algebra


def _of_stacks(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of matrices that takes stacks of them."""

    def of_stack(matrix: Any, *more: Any) -> Any:
        matrix, *rest = lift_all(matrix, *more)
        if matrix.ndim == 2:
            return function(matrix, *rest)
        rows = [of_stack(*each) for each in zip(matrix, *rest, strict=True)]
        if isinstance(rows[0], SlogdetResult):
            return SlogdetResult(*map(stack, zip(*rows, strict=True)))
        return stack(rows)

    return of_stack


def _eliminated(matrix: Exact, right: Any = None) -> tuple[Exact, Exact]:
    """Return the solution and the determinant, by Gauss and Jordan on exact numbers."""
    n = len(matrix)
    rows = matrix.copy() if right is None else concatenate([matrix, right], axis=1)
    det: Any = 1.0
    for j in range(n):
        i = j + int(np.argmax(abs(rows.floats[j:, j])))
        if i != j:
            rows[[i, j]] = rows[[j, i]]
            det = -det
        pivot = rows[j, j]
        det, rows[j] = pivot * det, rows[j] / pivot
        rest = [k for k in range(n) if k != j]
        rows[rest] = rows[rest] - rows[rest, j][:, None] * rows[j]
    return rows[:, n:], det


def _inverse(matrix: Exact) -> Exact:
    return _eliminated(matrix, np.eye(len(matrix)))[0]


def _solve(matrix: Exact, right: Exact) -> Exact:
    columns = right.reshape(len(right), -1)
    return _eliminated(matrix, columns)[0].reshape(right.shape)


SlogdetResult: Any = type(np.linalg.slogdet(np.eye(1)))


def _slogdet(matrix: Exact) -> Any:
    det = _eliminated(matrix)[1]
    return SlogdetResult(np.sign(det.floats), log(det if det.floats > 0 else -det))


def _cholesky(matrix: Exact) -> Exact:
    """Return the lower triangle L with L L^T = K, column by column."""
    lower = FUNCTIONS["zeros_like"](matrix)
    for j in range(len(matrix)):
        done = lower[j, :j]
        lower[j, j] = sqrt(matrix[j, j] - sum_over(done * done))
        lower[j + 1 :, j] = (matrix[j + 1 :, j] - lower[j + 1 :, :j] @ done) / lower[
            j, j
        ]
    return lower


def _pseudo_inverse(matrix: Exact) -> Exact:
    """Return the pseudo-inverse of a matrix of full rank."""
    turned = matrix.T
    if matrix.shape[0] >= matrix.shape[1]:
        return matmul(_inverse(turned @ matrix), turned)
    return matmul(turned, _inverse(matrix @ turned))


UFUNCS |= {"matmul": matmul, "vecdot": _vecdot}
FUNCTIONS |= {
    "dot": dot,
    "einsum": einsum,
    "inner": lambda x, y: np.tensordot(x, y, ((-1,), (-1,))),
    "vdot": lambda x, y: dot(*(z.ravel() for z in lift_all(x, y))),
    "linalg.inv": _of_stacks(_inverse),
    "linalg.det": _of_stacks(lambda matrix: _eliminated(matrix)[1]),
    "linalg.slogdet": _of_stacks(_slogdet),
    "linalg.cholesky": _of_stacks(_cholesky),
    "linalg.solve": _of_stacks(_solve),
    "linalg.pinv": _pseudo_inverse,
}
Exact.dot = dot  # type: ignore[attr-defined]
