"""Which results of a function move which others, its value and its derivatives (D44).

The function of a trace runs again so that single results move: theta rests, and a random direction
d_j is added to the derivative of a result z_j when its line has run. What a later result z_k does
is m_jk = <d_k, (dz_k / dz_j) d_j>, and what the value does is m_jn. A result that moves the value
belongs to the forward pass, one that moves derivatives and not the value to the backward pass.
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
Perturbation = tuple[int, Array]  # the index of a result, and the direction it moves in
# Takes the index of a result, that of the first perturbation, and derivatives (n, batch)
Observer = Callable[[int, int, Array], None]


class Influence:
    """The effect of moving each result of a trace on the others, the value and the gradient.

    Parameters
    ----------
    trace : Trace
        The n results of a function of D numbers.

    Attributes
    ----------
    matrix : array, shape (n + 1, n + 1)
        m_jk for results j and k; in the last column the slopes of the value, in the last row
        <d_k, z_k>: what z_k does if the number 1 that multiplies it moves.
    moves_derivative : bool array, shape (n, D)
        Whether a result moves a derivative.
    forward, backward : list of int
        The results of both passes.
    slopes : set of bytes
        dz_k / dz_j for results of the forward pass where one is an elementwise function of the
        other: residues, as `ndarray.tobytes` returns them.
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
            """Record what a result does while others move.

            Parameters
            ----------
            k : int
                The index of the result.
            start : int
                The index of the first of those that move.
            tangent : array, shape (n, batch)
                The derivatives of its n numbers along each of them.
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
        """Return the derivatives of the value, and which gradient entries move, when results move.

        The function is run again for each batch of perturbations. Results in `frozen` do not move.

        The function is run again for each batch of perturbations.

        Parameters
        ----------
        perturbations : list of (int, array)
            The index of each result that moves, and the direction in which it does.
        observe : callable, optional
            Called for each result when its line has run, with its index, that of the first
            perturbation of the batch, and the derivatives along its perturbations.
        frozen : set of int
            The results that rest, whatever they are made of.

        Returns
        -------
        value_slopes : array, shape (n_perturbations,)
            The derivatives of the value.
        moves_derivative : bool array, shape (n_perturbations, D)
            Whether the derivatives that the function returns move.
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
        """Return `perturb` for one batch of perturbations, of which the first has index `start`."""
        trace = self.trace
        field = BatchedPrime(trace.seed)
        batch = len(perturbations)
        event = -1
        # results that are views of theta move with theta itself
        along = np.zeros((trace.theta.size, field.n_channels), np.int64)
        for channel, (j, direction) in enumerate(perturbations):
            positions = trace.results[j].theta_positions
            if positions is not None:
                along[positions, channel] = direction
        results_at: dict[int, list[tuple[int, Result]]] = {}
        for k, result in enumerate(trace.results):
            results_at.setdefault(result.event, []).append((k, result))

        def move(frame: FrameType, line: int, values: dict[str, Any]) -> None:
            """Move or freeze the results that a line has just written.

            Parameters
            ----------
            frame, line
                Ignored: the number of lines that have run identifies the results.
            values : dict
                The local variables.
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
