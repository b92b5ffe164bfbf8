"""Which results of a function influence which others, its value and its gradient (D44).

A *result* z_j is an array that a line of the function has written. To measure its influence the
function runs again with theta fixed, and a random direction d_j is added to the derivative of z_j
when its line has run. The derivative of a later result z_k is recorded as
m_jk = <d_k, (dz_k / dz_j) d_j>, that of the value as m_jn, where n is the number of results. A
result that changes the value belongs to the forward pass; one that changes entries of the gradient,
but not the value, to the backward pass.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..verdict.runs import run
from .results import BatchedPrime, LineTracer, Result, Trace, items_of

__all__ = ["Influence"]

Array = NDArray[Any]
Perturbation = tuple[int, Array]  # index of a result, and the direction added to it
# Takes the index of a result, the index of the first perturbation of the batch, and the result's
# derivatives (n, batch) along the perturbations
Observer = Callable[[int, int, Array], None]


class Influence:
    """The influence of each result of a trace on the others, on the value and on the gradient.

    Parameters
    ----------
    trace : Trace
        A trace with n results of a function of theta (D,).

    Attributes
    ----------
    matrix : array of int, shape (n + 1, n + 1)
        Residues m_jk = <d_k, (dz_k / dz_j) d_j> for results j and k with random directions d. The
        last column has the derivatives of the value along d_j; the last row has <d_k, z_k>, the
        derivative by a factor 1 that multiplies z_k.
    moves_derivative : bool array, shape (n, D)
        Whether each result influences each entry of the gradient.
    forward, backward : list of int
        Indices of the results that influence the value, and of the others that influence the
        gradient.
    slopes : set of bytes
        dz_k / dz_j of forward results where z_k is an elementwise function of z_j: residues, as
        bytes of `ndarray.tobytes`.
    """

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        results = trace.results
        field = trace.field
        n = len(results)
        sizes = [len(result.residues) for result in results]
        directions = [trace.direction(size) for size in sizes]
        reciprocals = {
            size: field.inv(trace.direction(size)[:, None]) for size in {*sizes}
        }
        slopes = list[tuple[int, int, bytes]]()
        self.matrix = np.zeros((n + 1, n + 1), np.int64)

        def observe(k: int, start: int, tangent: Array) -> None:
            """Record the influence of a batch of perturbed results on result k.

            Parameters
            ----------
            k : int
                The index of the result that is observed.
            start : int
                The index of the first perturbed result of the batch.
            tangent : array, shape (size, batch)
                Derivatives of the `size` numbers of result k along each perturbation.
            """
            batch = tangent.shape[1]
            products = field.mul(tangent, directions[k][:, None])
            self.matrix[start : start + batch, k] = field.sum(products, 0)
            for j in range(start, min(start + batch, k)):
                column = tangent[:, j - start : j - start + 1]
                if sizes[j] == sizes[k] > 1 and column.any():
                    slope = field.mul(column, reciprocals[sizes[k]])
                    slopes.append((j, k, slope.tobytes()))

        perturbations = [*enumerate(directions)]
        value_slopes, self.moves_derivative = self.perturb(perturbations, observe)
        self.matrix[:n, n] = value_slopes
        self.matrix[n, :n] = [
            field.sum(field.mul(result.residues, direction), 0)
            for result, direction in zip(results, directions, strict=True)
        ]
        self.forward = [k for k in range(n) if value_slopes[k]]
        self.backward = [
            k
            for k in range(n)
            if not value_slopes[k]
            and results[k].theta_positions is None
            and self.moves_derivative[k].any()
        ]
        self.slopes = {
            slope for j, k, slope in slopes if value_slopes[j] and value_slopes[k]
        }

    def perturb(
        self,
        perturbations: list[Perturbation],
        observe: Observer | None = None,
        frozen: frozenset[int] = frozenset(),
    ) -> tuple[Array, Array]:
        """Return the effect of perturbing single results on the value and on the gradient.

        The function is run again for each batch of perturbations.

        Parameters
        ----------
        perturbations : list of (int, array)
            The index of each result that is perturbed, and the direction that is added to it.
        observe : callable, optional
            Called for each result when its line has run, with the index of the result, the index of
            the first perturbation of the batch, and the result's derivatives (size, batch) along
            the perturbations of the batch.
        frozen : set of int
            Indices of results whose derivatives are set to 0. By default there are none.

        Returns
        -------
        value_slopes : array, shape (n_perturbations,)
            The derivative of the value along each perturbation.
        moves_derivative : bool array, shape (n_perturbations, D)
            Whether each perturbation changes each entry of the gradient.
        """
        batch = BatchedPrime.n_channels
        batches = [
            self._perturb(perturbations[start : start + batch], start, observe, frozen)
            for start in range(0, max(len(perturbations), 1), batch)
        ]
        value_slopes = np.concatenate([slopes for slopes, _ in batches])
        moves_derivative = np.concatenate([moves for _, moves in batches])
        return value_slopes, moves_derivative

    def _perturb(
        self,
        perturbations: list[Perturbation],
        start: int,
        observe: Observer | None,
        frozen: frozenset[int],
    ) -> tuple[Array, Array]:
        """Return the effect of one batch of perturbations, whose first has the index `start`.

        The results are those of `perturb`.
        """
        trace = self.trace
        field = BatchedPrime(trace.seed)
        batch = len(perturbations)
        event = -1
        # a result that is a view of theta is perturbed by perturbing theta itself
        along = np.zeros((trace.theta.size, field.n_channels), np.int64)
        for channel, (j, direction) in enumerate(perturbations):
            positions = trace.results[j].theta_positions
            if positions is not None:
                along[positions, channel] = direction
        results_at: dict[int, list[tuple[int, Result]]] = {}
        for k, result in enumerate(trace.results):
            results_at.setdefault(result.event, []).append((k, result))

        def move(frame: FrameType, line: int, values: dict[str, Any]) -> None:
            """Perturb or freeze, in place, the results that a line has just written.

            Parameters
            ----------
            frame, line
                Ignored: results are identified by the number of lines that have run before.
            values : dict
                The local variables of the function, by name.
            """
            nonlocal event
            event += 1
            for k, result in results_at.get(event, ()):
                x: Any = values[result.path[0]]
                for key in result.path[1:]:
                    x = items_of(x)[key]
                tangent = x.tangent[result.entries]
                for channel, (j, direction) in enumerate(perturbations):
                    if j == k and result.theta_positions is None:
                        tangent[:, channel] = field.add(tangent[:, channel], direction)
                x.tangent[result.entries] = 0 if k in frozen else tangent
                if observe is not None:
                    observe(k, start, tangent[:, :batch])

        tracer = LineTracer(field, move)
        evaluation = run(trace.problem, trace.theta, field, along, tracer.trace_call)
        if event != trace.n_events:
            raise ValueError("two runs of the same function are different")
        value_slopes = evaluation.value.tangent[0, :batch]
        return value_slopes, evaluation.grad.tangent.T[:batch] != 0
