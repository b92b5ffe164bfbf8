"""Which line of a gradient that is refuted to look at first (D44).

The search has three parts: the *trace* of results that lines write, the *influence* of each on the
others, the value and the derivatives, and the *blame*, which is here.

g is the cotangent of z if <d, g> = <dV/dz, d> for the value V. And if g is the cotangent of a, what
is made of it by the transposed Jacobian of a forward pair b, a is what b gets by way of a: for
directions of equal sizes are the same, and both entries of the matrix of influence are. So parts of
sums are known too. What is such a cotangent, or a sum of them, and of what its name says if there
is such a variable (dz, z_grad, ...) is *cleared*, as are slopes da/dz of the forward pass. One
result is looked for by which all wrong derivatives go, and no other, past all results that are
cleared. A line that has written what is right elsewhere is right; then it is the line that has
called it.
"""

from __future__ import annotations

import linecache
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..structures import copy_leaves
from ..trace.copies import Copies, in_own_context
from ..verdict.errors import WrongDerivative
from ..verdict.runs import ProofProblem
from .influence import Influence
from .results import Line, Trace
from .words import in_words

__all__ = ["explanation"]

Array = NDArray[Any]
MAX_THETA_SIZE = 256  # largest theta for which an explanation is looked for
MAX_RESULTS = 600  # largest number of results whose influence is measured
# Number of traces that are tried at different random numbers: each root exists in half of them
MAX_TRACES = 8
SLOPE_NAME = re.compile(r"slope|deriv|prime|grad|d_")


class Blame:
    """The search for the backward results that make derivatives wrong.

    Parameters
    ----------
    influence : Influence
        What each result of the trace moves.
    """

    def __init__(self, influence: Influence) -> None:
        self.influence = influence
        self.trace = influence.trace
        self.results = influence.trace.results
        number_1 = np.ones(1, np.int64).tobytes()
        # numbers of the forward pass: a backward result that equals one is right
        self.forward_numbers = {number_1, *map(self._numbers, influence.forward)}
        self.cleared = frozenset(self._slopes() | self._cotangents())

    def _numbers(self, k: int) -> bytes:
        """Return the residues of result k of the trace as bytes, to compare it with others."""
        return self.results[k].residues.tobytes()

    def _slopes(self) -> set[int]:
        """Return the backward results (indices) equal to a forward result or to a slope of two."""
        right = self.influence.slopes | self.forward_numbers
        return {k for k in self.influence.backward if self._numbers(k) in right}

    # --- cotangents

    def _forward_pairs(self) -> dict[tuple[int, int, int], list[tuple[int, int]]]:
        """Return the index pairs (b, a) of forward results by (size of b, size of a, m_ba).

        What b moves in the value by way of a single number a has size 0, as the value itself.
        """
        matrix = self.influence.matrix
        forward = self.influence.forward
        n = len(self.results)
        sizes = [*(len(result.residues) for result in self.results), 1]
        pairs: dict[tuple[int, int, int], list[tuple[int, int]]] = {}
        for b in forward:
            for a in (*(a for a in forward if a > b and matrix[b, a]), n):
                key = sizes[b], sizes[a], int(matrix[b, a])
                pairs.setdefault(key, []).append((b, a))
                if sizes[a] == 1:
                    by_a = matrix[b, n:]
                    if a != n:
                        by_a = self.trace.field.mul(matrix[b, a : a + 1], matrix[a, n:])
                    pairs.setdefault((sizes[b], 0, int(by_a[0])), []).append((b, n))
        return pairs

    def _cotangents(self) -> set[int]:
        """Return the backward results (indices) that are cotangents of forward ones, or sums."""
        influence = self.influence
        results = self.results
        field = self.trace.field
        matrix = influence.matrix
        n = len(results)
        names = {results[k].name for k in influence.forward}
        pairs = self._forward_pairs()
        # by result: the forward results that it may be the cotangent of; n is the number 1,
        # the cotangent of the value
        primals: dict[int, set[int]] = {n: {n}}

        def primals_by_way(j: int, k: int) -> set[int]:
            """Return the b whose cotangent, by way of the primals of j, may be k."""
            size = len(results[j].residues) if j < n else 0
            key = len(results[k].residues), size, int(matrix[j, k])
            primal_name = results[k].primal_name(names)
            return {
                b
                for b, a in pairs.get(key, [])
                if a in primals[j] and primal_name in ("", results[b].name)
            }

        candidates = [
            k
            for k in influence.backward
            if self._numbers(k) not in self.forward_numbers
        ]
        # by (j, k): the derivative of result k for a factor on result j, which is the part of k
        # that is linear in j
        linear_parts: dict[tuple[int, int], Array] = {}

        def observe(k: int, start: int, tangent: Array) -> None:
            """Record what of a result is linear in each candidate.

            Parameters
            ----------
            k : int
                The index of the result.
            start : int
                The position in `candidates` of the first that is scaled.
            tangent : array, shape (n, batch)
                The derivatives of its n numbers along each of them.
            """
            scaled = candidates[start : start + tangent.shape[1]]
            linear_parts.update(
                {(j, k): tangent[:, channel] for channel, j in enumerate(scaled)}
            )

        influence.perturb([(k, results[k].residues) for k in candidates], observe)
        for k in candidates:
            # k is a sum of parts by way of earlier cotangents, all of the same primal
            of_sum = set(influence.forward)
            terms = list[int]()
            total = np.zeros_like(results[k].residues)
            for j in [j for j in reversed(primals) if j < n and matrix[j, k]]:
                of_part = of_sum & primals_by_way(j, k)
                if of_part and not matrix[j, terms].any():
                    of_sum = of_part
                    total = field.add(total, linear_parts[j, k])
                    terms.append(j)
            if not terms or (total != results[k].residues).any():
                of_sum = set()
            of_any = of_sum | primals_by_way(n, k)
            if of_any:
                primals[k] = of_any
        return {*primals} - {n}

    # --- lines

    def _suspects_by_line(self) -> dict[Line, list[int]]:
        """Return by line the indices of backward results that pass on wrong derivatives.

        They do so although all results that are cleared, that is known to be right, are frozen.
        """
        results = self.results
        wrong = self.trace.wrong
        backward = self.influence.backward
        moves_wrong = np.any(self.influence.moves_derivative & wrong, axis=1)
        suspects = [
            k
            for k in backward
            if k not in self.cleared and not results[k].assembled and moves_wrong[k]
        ]
        perturbations = [
            (k, self.trace.direction(len(results[k].residues))) for k in suspects
        ]
        _, moves_derivative = self.influence.perturb(perturbations, frozen=self.cleared)
        right_lines = {
            results[k].lines[0]
            for k in backward
            if k in self.cleared or not moves_wrong[k]
        }
        suspects_by_line: dict[Line, list[int]] = {}
        for k, moves in zip(suspects, moves_derivative & wrong, strict=False):
            if moves.any():
                lines = (line for line in results[k].lines if line not in right_lines)
                line = next(lines, results[k].lines[0])
                suspects_by_line.setdefault(line, []).append(k)
        return suspects_by_line

    def sentence(self) -> str:
        """Return a sentence on the line to look at first; "" if no line is found."""
        results = self.results
        wrong = self.trace.wrong
        moves_derivative = self.influence.moves_derivative
        suspects = self._suspects_by_line()
        last_right = [
            k for k in sorted(self.cleared) if (moves_derivative[k] >= wrong).all()
        ]
        if not suspects:
            location = _location([self.trace.return_line])
            if not location:
                return ""
            return f"{location}: its terms and factors are right, or one is missing"
        moved = {
            line: moves_derivative[group].any(axis=0)
            for line, group in suspects.items()
        }
        lines = [line for line in suspects if (moved[line] >= wrong).all()]
        if not lines:
            by_right = [results[k].lines[0] for k in last_right[-1:]]
            return _location([*by_right, *suspects][:1])
        lines = [line for line in lines if (moved[line] <= wrong).all()] or lines
        # factors are computed before the first right cotangent, and are seldom wrong
        first_right = min(last_right, default=0)
        lines = [
            line
            for line in lines
            if suspects[line][0] > first_right
            or SLOPE_NAME.match(results[suspects[line][0]].name)
        ] or lines
        culprit = results[suspects[lines[0]][0]]
        lines_of_culprit = [
            line
            for line in lines
            if line[0] == lines[0][0]
            and results[suspects[line][0]].path == culprit.path
        ]
        sentence = _location(lines_of_culprit)
        names = {results[k].name for k in self.influence.forward}
        primal_name = culprit.primal_name(names)
        # an array that several lines write may be unfinished at the first of them
        if primal_name and len(lines_of_culprit) == 1:
            sentence += f": {culprit.name} is not the derivative for {primal_name}"
        return sentence.removeprefix(": ")


def _location(lines: list[Line]) -> str:
    """Return "look at line 7 of file.py, `source`, then line 5"; the last line comes first.

    It is "" without lines, or if the source of the last line is not known.
    """
    if not lines:
        return ""
    path, number = lines[-1]
    source = linecache.getline(path, number).strip()
    if not source:
        return ""
    file = Path(path)
    name = "the cell" if file.parent.name.startswith("ipykernel") else file.name
    earlier_lines = "".join(f", then line {earlier}" for _, earlier in lines[-2::-1])
    return f"look at line {number} of {name}, `{source}`{earlier_lines}"


def _blamed_line(problem: ProofProblem, theta: Array, wrong: Array) -> str:
    """Return the sentence of `Blame` on the line that makes the derivatives in `wrong` wrong.

    `wrong` is a bool array (D,). Traces at several seeds are tried until one confirms that the
    other derivatives are right; the sentence is "" if none does, or if a trace is too long.
    """
    for i in range(MAX_TRACES):
        trace = Trace(problem, theta, wrong, MAX_TRACES * problem.seed + i)
        if len(trace.results) > MAX_RESULTS:
            break
        if trace.others_are_right:
            return Blame(Influence(trace)).sentence()
    return ""


def explanation(
    problem: ProofProblem,
    theta: Array,
    errors: Callable[[], tuple[WrongDerivative, ...]],
) -> Callable[[], list[str]]:
    """Return a function that explains why a gradient is refuted, computed at its first call.

    Parameters
    ----------
    problem : ProofProblem
        The function and its arguments, of which copies are made now.
    theta : array, shape (D,)
        The point at which the gradient is refuted.
    errors : callable
        Returns the wrong derivatives.

    Returns
    -------
    callable
        Returns sentences: what is wrong, and at which line to look.
    """
    arguments = copy_leaves(problem.arguments)
    problem = problem._replace(arguments=arguments, copies=Copies())
    theta = theta.copy()

    @cache
    @in_own_context
    def explain() -> list[str]:
        if theta.size > MAX_THETA_SIZE:
            return []
        wrong_derivatives = errors()
        names = {derivative.name for derivative in wrong_derivatives}
        wrong = np.array([problem.name(j) in names for j in range(theta.size)])
        sentences = in_words(problem, theta, wrong_derivatives)
        if not wrong.any():
            return sentences
        try:
            line = _blamed_line(problem, theta, wrong)
        except (
            Exception
        ):  # the verdict stands, whatever the function does under a tracer
            return sentences
        return [*sentences, line] if line else sentences

    return explain
