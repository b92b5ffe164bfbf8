"""Find the line of a refuted gradient that the user should look at first (D44).

The search has three parts: the *trace* of the results that lines write, the *influence* of each
result on the others, on the value and on the gradient, and the *blame*, which is in this module.

A backward result g is the cotangent of the forward result z if <d, g> = <dV/dz, d> for a random
direction d and the value V. If g is the cotangent of a, and another result is computed from it with
the transposed Jacobian of a by an earlier forward result b, that is the part of b's cotangent which
comes by way of a: results of equal size share a random direction, so both have the same entry in
the matrix of influence. In this way parts of sums are recognised too. A result is *cleared* (known
to be right) if it is such a cotangent, or a sum of them, and if its name (dz, z_grad, ...) names no
other variable; slopes da/dz of the forward pass are cleared as well. The search is for a result
that is not cleared, through which all wrong derivatives pass and no right ones. A line that has
also written a right result is right; then the line that has called it is to blame.
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
MAX_THETA_SIZE = 256  # largest length of theta for which a line is looked for
MAX_RESULTS = 600  # largest number of results whose influence is measured
# Number of seeds tried for a trace: a square root exists for half of all random numbers
MAX_TRACES = 8
SLOPE_NAME = re.compile(r"slope|deriv|prime|grad|d_")


class Blame:
    """The search for the backward results that make derivatives wrong.

    Parameters
    ----------
    influence : Influence
        The influence of each result of the trace on the others, the value and the gradient.
    """

    def __init__(self, influence: Influence) -> None:
        self.influence = influence
        self.trace = influence.trace
        self.results = influence.trace.results
        number_1 = np.ones(1, np.int64).tobytes()
        # forward results as bytes: a backward result with the same numbers is right
        self.forward_numbers = {number_1, *map(self._numbers, influence.forward)}
        self.cleared = frozenset(self._slopes() | self._cotangents())

    def _numbers(self, k: int) -> bytes:
        """Return the residues of result k as bytes, which are equal for equal results."""
        return self.results[k].residues.tobytes()

    def _slopes(self) -> set[int]:
        """Return indices of backward results that equal a forward result z or a slope da/dz."""
        right = self.influence.slopes | self.forward_numbers
        return {k for k in self.influence.backward if self._numbers(k) in right}

    # --- cotangents

    def _forward_pairs(self) -> dict[tuple[int, int, int], list[tuple[int, int]]]:
        """Return pairs (b, a) of forward results, a after b, by (size of b, size of a, m_ba).

        The index n stands for the value, of size 1. If a is a single number, the influence of b on
        the value by way of a is listed as the pair (b, n) with 0 as the size of a.
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
        """Return indices of backward results that are cotangents of forward results, or sums."""
        influence = self.influence
        results = self.results
        field = self.trace.field
        matrix = influence.matrix
        n = len(results)
        names = {results[k].name for k in influence.forward}
        pairs = self._forward_pairs()
        # maps a result to the forward results that it may be the cotangent of; the index n stands
        # for the value, and for its cotangent, the number 1
        primals: dict[int, set[int]] = {n: {n}}

        def primals_by_way(j: int, k: int) -> set[int]:
            """Return the forward results whose cotangent, computed from result j, may be k."""
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
        # maps (j, k) to the derivative of result k by a factor that multiplies result j: the part
        # of k that is linear in j
        linear_parts: dict[tuple[int, int], Array] = {}

        def observe(k: int, start: int, tangent: Array) -> None:
            """Record the part of result k that is linear in each scaled candidate of the batch.

            Parameters
            ----------
            k : int
                The index of the result that is observed.
            start : int
                The position in `candidates` of the first candidate of the batch.
            tangent : array, shape (size, batch)
                Derivatives of the `size` numbers of result k by the factor of each candidate.
            """
            scaled = candidates[start : start + tangent.shape[1]]
            linear_parts.update(
                {(j, k): tangent[:, channel] for channel, j in enumerate(scaled)}
            )

        influence.perturb([(k, results[k].residues) for k in candidates], observe)
        for k in candidates:
            # test whether k is a sum of parts computed from earlier cotangents, where all parts
            # belong to the cotangent of the same forward result
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

    # --- the lines that wrote suspect results

    def _suspects_by_line(self) -> dict[Line, list[int]]:
        """Return a dict from each suspect line to the indices of the backward results it wrote.

        Suspects influence wrong derivatives even if all cleared results are frozen.
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
        """Return a sentence that names the line to look at first; "" if no line is found."""
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
        # results before the first right cotangent are factors of the gradient, and seldom wrong
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
        # an array that several lines write may be unfinished after the first of these lines
        if primal_name and len(lines_of_culprit) == 1:
            sentence += f": {culprit.name} is not the derivative for {primal_name}"
        return sentence.removeprefix(": ")


def _location(lines: list[Line]) -> str:
    """Return text such as "look at line 7 of file.py, `source`, then line 5", last line first.

    It is "" if `lines` is empty, or if the source of the last line is not known.
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
    """Return a sentence on the line that makes derivatives wrong at theta (D,), or "".

    `wrong`, bool (D,), marks the wrong derivatives. Seeds are tried until a trace confirms that the
    other derivatives are right; "" is returned if none does, or if a trace has too many results.
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
    """Return a function that explains a refuted gradient: how it is wrong, and at which line.

    Parameters
    ----------
    problem : ProofProblem
        The function and its arguments, which are copied at once.
    theta : array, shape (D,)
        The point at which the gradient is refuted.
    errors : callable
        Function without arguments that returns the wrong derivatives.

    Returns
    -------
    callable
        Function without arguments that returns a list of sentences, which is computed at the first
        call. The list is empty if theta has more than `MAX_THETA_SIZE` numbers.
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
        except Exception:
            # the function may fail under a tracer, which does not change the verdict
            return sentences
        return [*sentences, line] if line else sentences

    return explain
