"""Find the line of a refuted gradient that the user should look at first (D44).

A step whose result influences the gradient but not the value belongs to the *backward pass*. The
steps of one place in the code are a *suspect* if all wrong derivatives depend on them. Each is
*repaired* in many ways: another operator, operand, constant, axis, order or factor. The line of the
one repair that makes all derivatives right is named; if there are several, that of the first one
that changes more than a factor or sign, and that does not change a result which is known to be
right. A result is *cleared* (known to be right) if it is the cotangent of a result of the forward
pass, or the same numbers. If no repair is found, a line is named that writes into an array that is
not used, or else that of the first suspect that is not cleared and of which other results, to first
order, would make all derivatives right. A function that other files share is named by its call.
"""

from __future__ import annotations

import dis
import linecache
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache, cached_property, partial
from itertools import dropwhile
from types import CodeType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..fields.digits import NoSeries
from ..fields.finite import Prime
from ..sources import line_in_words, source_line
from ..structures import copy_leaves
from ..trace.arrays import Exact
from ..trace.copies import Copies, in_own_context
from ..verdict.errors import WrongDerivative
from ..verdict.runs import Evaluation, ProofProblem, TraceError
from .repairs import Repair, repairs, repairs_by
from .steps import N_CHANNELS, Operation, Site, Trace
from .words import in_words

__all__ = ["explanation"]

Array = NDArray[Any]
MAX_THETA_SIZE = 256  # largest length of theta for which a line is looked for
# Number of seeds tried for a trace: a square root exists for half of all random numbers
MAX_TRACES = 2
# Largest number of runs for repairs, and of operations in them: each run tests 64 repairs, or one
# that changes shapes
MAX_RUNS = 20
MAX_OPERATIONS = 5000
MAX_JACOBIANS = 12  # largest number of runs for derivatives by the results of suspects
# Largest share of the error that may remain where a step explains it
REPAIRED_SHARE = 1e-6


class Suspect(NamedTuple):
    """Steps that one place in the code has run, and that influence all wrong derivatives."""

    steps: list[int]  # their indices
    # the place, or the call of its function if the function is right elsewhere
    site: Site
    is_shared: bool = (
        False  # whether the steps are those of a function that others share
    )


class Trial(NamedTuple):
    """One repair of a suspect."""

    suspect: Suspect
    words: str  # of the repair
    specificity: int
    reshapes: bool
    by_known: bool  # whether the repair uses earlier results


class Search:
    """The search for the steps that make derivatives wrong.

    Parameters
    ----------
    trace : Trace
        The steps of the function, and their effects on value and gradient.
    """

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.is_forward = self._forward()
        self.is_cleared = self._cleared()
        # results that are right, or that the function has computed and does not use
        is_unused = ~trace.moves.any(axis=1)
        self.is_known = self.is_forward | self.is_cleared | is_unused
        sites = {site for step in trace.steps for site in step.sites}
        self.shared = _shared_functions({site.code for site in sites})
        has_effect = self.is_forward | ~is_unused
        effective = {
            site for k in np.flatnonzero(has_effect) for site in trace.steps[k].sites
        }
        # places that write after the value into what influences neither it nor the gradient
        self.unused_writes = [
            self._own_sites(k)[0]
            for k in np.flatnonzero(~has_effect).tolist()
            if k > np.flatnonzero(trace.slopes).max(initial=-1)
            and trace.steps[k].sites
            and trace.steps[k].sites[0].is_in_place()
            and self._own_sites(k)[0] not in effective
        ]
        candidates = self._places()
        n_moved = [
            int((trace.moves[suspect.steps].any(axis=0) & trace.is_wrong).sum())
            for suspect in candidates
        ]
        suspects = [
            suspect
            for suspect, n in zip(candidates, n_moved, strict=True)
            if n == max(n_moved)
        ]
        self.backward = [s for s in suspects if not self.is_forward[s.steps].any()]
        self.uncleared = [
            s for s in self.backward if not self.is_cleared[s.steps].all()
        ]
        self.n_runs_left = min(MAX_RUNS, MAX_OPERATIONS // (len(trace.steps) + 1))
        if not (trace.in_floats or trace.is_valid):  # another seed follows
            self.n_runs_left //= 4
        direction = trace.direction(trace.theta.size)[:, None]
        self.along = np.repeat(direction, N_CHANNELS, axis=1)

    def _forward(self) -> Array:
        """Return whether the value depends on each step, or a step on which it depends uses it."""
        is_forward = self.trace.slopes != 0
        for k in range(len(is_forward) - 1, -1, -1):
            if is_forward[k]:
                is_forward[list(self.trace.steps[k].sources)] = True
        return is_forward

    def _cleared(self) -> Array:
        """Return whether each step's result is known to be right.

        It is the cotangent of a forward result or of neighbours in theta, or has the numbers of a
        forward result.
        """
        trace = self.trace
        field = Prime(trace.seed)
        multiply = np.multiply if trace.in_floats else field.mul
        add = np.add.reduce if trace.in_floats else partial(field.sum, axis=0)
        by_theta = trace.right.tobytes()
        products = trace.rounded(
            np.array(
                [
                    add(multiply(step.residues, trace.direction(step.residues.size)))
                    for step in trace.steps
                ]
            )
        )
        sizes = [step.residues.size for step in trace.steps]
        contents = [trace.rounded(step.residues).tobytes() for step in trace.steps]
        forward = np.flatnonzero(self.is_forward).tolist()
        cotangents = {(sizes[k], trace.slopes[k]) for k in forward}
        in_value = np.flatnonzero(~trace.moves.any(axis=1)).tolist()
        numbers = {contents[k] for k in (*forward, *in_value)}
        is_cleared = [
            (size, product) in cotangents or content in numbers or content in by_theta
            for size, product, content in zip(sizes, products, contents, strict=True)
        ]
        is_zero = [not step.residues.any() for step in trace.steps]
        return np.array(is_cleared, bool) & ~np.array(is_zero, bool)

    def _own_sites(self, k: int) -> list[Site]:
        """Return the sites of step k without those in functions that other files share."""
        return [
            *dropwhile(lambda site: site.code in self.shared, self.trace.steps[k].sites)
        ]

    def _places(self) -> list[Suspect]:
        """Return the steps of each place that moves the gradient, and of each call to it.

        A place is named by the call of its function if the function has other calls with steps that
        move value or gradient, or if other files share it.
        """
        moves = self.trace.moves.any(axis=1)
        steps_at: dict[tuple[Any, ...], list[int]] = {}
        for k in np.flatnonzero(self.is_forward | moves).tolist():
            step = self.trace.steps[k]
            # what joins arrays has got them, in their order, from the line that calls it
            is_join = step.name == "concatenate" and len(step.sites) > 1
            n_shared = len(step.sites) - len(self._own_sites(k))
            first_depth = 1 + max(is_join, n_shared)
            for depth in range(first_depth, len(step.sites) + 1):
                key = step.name, *step.sites[:depth]
                steps_at.setdefault(key, []).append(k)
        places: dict[tuple[int, ...], Suspect] = {}
        for (name, *sites), steps in steps_at.items():
            if moves[steps].any() and not name.endswith("_like"):
                is_shared = sites[0].code in self.shared
                places.setdefault((*steps,), Suspect(steps, sites[-1], is_shared))
        return sorted(places.values(), key=lambda place: place.steps)

    # --- repairs

    @cached_property
    def result_names(self) -> list[str]:
        """Words for the result of each step; "" if a framework has derived the step."""
        names = [""] * len(self.trace.steps)
        for k, step in enumerate(self.trace.steps):
            for site in step.sites[:1]:
                expression = site.expression()
                words = f"`{expression}`" if expression else f"result {k}"
                names[k] = f"{words} of line {site.line}"
        return names

    def _run(
        self,
        steps: Iterable[int],
        change: Callable[[int, Operation, dict[str, Repair]], Exact],
        by_known: bool,
    ) -> Evaluation:
        """Run the function; for some steps, use what `change` returns.

        Parameters
        ----------
        steps : iterable of int
            The indices of the steps.
        change : callable
            Called with the index of a step, its `Operation` and its repairs by their words.
        by_known : bool
            Whether the repairs use earlier results that are known to be right, or that are unused.
        """
        earlier_results: dict[str, Exact] = {}
        # results that may be wrong themselves, for each function that has computed them
        uncertain: dict[CodeType, dict[str, Exact]] = {}

        def watch(k: int, operation: Operation) -> Exact:
            result = operation.result
            if k in steps:
                candidates = repairs(operation)
                if by_known:
                    own_code = next((s.code for s in self._own_sites(k)), None)
                    local = uncertain.get(own_code, {}) if own_code else {}
                    candidates = repairs_by(operation, earlier_results, local)
                repairs_by_words = {repair.words: repair for repair in candidates}
                result = change(k, operation, repairs_by_words)
            words = self.result_names[k] if by_known else ""
            if words:
                if self.is_known[k]:
                    earlier_results[words] = operation.result
                else:
                    for code in {site.code for site in self.trace.steps[k].sites}:
                        results = uncertain.setdefault(code, {})
                        n_before = sum(key.startswith(words) for key in results)
                        name = f"{words} (number {n_before + 1})" if n_before else words
                        results[name] = operation.result
            return result

        return self.trace.run(self.along, watch)

    def _trials(self, suspects: list[Suspect], by_known: bool) -> list[Trial]:
        """Return all repairs of some suspects."""
        trials = list[Trial]()

        def note(k: int, operation: Operation, candidates: dict[str, Repair]) -> Exact:
            """Note the repairs of a step as trials, and return its result unchanged.

            Parameters
            ----------
            k : int
                The index of the step.
            operation : Operation
                The operation of the step.
            candidates : dict
                The repairs of the operation, by their words.
            """
            for suspect in suspects_at[k]:
                # a shared function is seldom wrong
                max_specificity = 1 if suspect.is_shared else 2
                trials.extend(
                    Trial(
                        suspect,
                        words,
                        min(repair.specificity, max_specificity),
                        repair.reshapes,
                        by_known,
                    )
                    for words, repair in candidates.items()
                )
            return operation.result

        suspects_at: dict[int, list[Suspect]] = {}
        for suspect in suspects:
            suspects_at.setdefault(suspect.steps[0], []).append(suspect)
        self._run(suspects_at, note, by_known)
        return trials

    def _succeeds(self, trials: list[Trial]) -> Array:
        """Return whether each of up to 64 trials makes all derivatives right, in one run.

        A trial that changes shapes has to be alone.
        """
        trials_at: dict[int, list[tuple[int, Trial]]] = {}
        for channel, trial in enumerate(trials):
            for k in trial.suspect.steps:
                trials_at.setdefault(k, []).append((channel, trial))

        def repair(
            k: int, operation: Operation, candidates: dict[str, Repair]
        ) -> Exact:
            """Return the result of a step, in each channel with the repair of its trial.

            Parameters
            ----------
            k : int
                The index of the step.
            operation : Operation
                The operation of the step.
            candidates : dict
                The repairs of the operation, by their words.
            """
            result = operation.result.copy()
            for channel, trial in trials_at[k]:
                repaired = _compute(candidates.get(trial.words))
                if trial.reshapes and repaired is not None:
                    return repaired
                if repaired is not None and repaired.shape == result.shape:
                    result.primal[..., channel] = repaired.primal[..., channel]
            return result

        try:
            evaluation = self._run(trials_at, repair, trials[0].by_known)
        except Exception:
            # the function cannot use a result of another shape
            return np.zeros(len(trials), bool)
        return self.trace.is_right(evaluation)[: len(trials)]

    def _first_success(
        self, suspects: list[Suspect], by_known: bool = False
    ) -> Trial | None:
        """Return the likeliest repair that makes all derivatives right, or None."""
        trials = self._trials(suspects, by_known)
        trials.sort(key=_improbability)
        n_runs_kept = self.n_runs_left // 2
        while trials and self.n_runs_left > n_runs_kept:
            n_together = next(
                (i for i, trial in enumerate(trials) if trial.reshapes), len(trials)
            )
            n_tried = min(max(n_together, 1), N_CHANNELS)
            batch = trials[:n_tried]
            trials = trials[n_tried:]
            self.n_runs_left -= 1
            successes = np.flatnonzero(self._succeeds(batch))
            if successes.size:
                return batch[successes[0]]
        return None

    def repair(self) -> str:
        """Return a sentence on the likeliest repair that makes all derivatives right, or ""."""
        once = [suspect for suspect in self.uncleared if len(suspect.steps) == 1]
        for suspects, by_known in ((self.uncleared, False), (once, True)):
            trial = self._first_success(suspects, by_known)
            if trial is None:
                continue
            site = trial.suspect.site
            location = _location(site)
            if not location:
                return ""
            expression = site.expression()
            subject = f"`{expression}`" if expression else "this line"
            words = f"{subject} {trial.words} makes all derivatives right"
            return f"{location}: {words}"
        return ""

    def _can_repair(self, steps: list[int]) -> bool:
        """Return whether other results of some steps would make all derivatives right in floats.

        The derivatives are expanded to first order in the results. This is True if the results have
        more numbers than are tested.
        """
        trace = self.trace
        columns = [(k, i) for k in steps for i in range(trace.steps[k].residues.size)]
        n_runs = -(-len(columns) // N_CHANNELS)
        if n_runs > self.n_runs_left:
            return True
        self.n_runs_left -= n_runs
        slopes = list[Array]()
        for start in range(0, len(columns), N_CHANNELS):
            channels: dict[int, list[tuple[int, int]]] = {}
            for channel, (k, i) in enumerate(columns[start : start + N_CHANNELS]):
                channels.setdefault(k, []).append((i, channel))
            watch = partial(_move, channels)
            evaluation = trace.run(np.zeros_like(self.along), watch)
            slopes.append(evaluation.grad.tangent)
        jacobian = np.concatenate(slopes, axis=1)[:, : len(columns)]
        sizes = np.abs(trace.excess).max() + np.abs(trace.right)
        jacobian = jacobian / sizes[:, None]
        lengths = np.sqrt((jacobian**2).sum(axis=0))
        jacobian = jacobian / np.where(lengths == 0, 1, lengths)
        excess = trace.excess / sizes
        if not np.isfinite(jacobian).all():
            return True
        change = np.linalg.lstsq(jacobian, excess, rcond=1e-10)[0]
        residual = np.abs(excess - jacobian @ change).max()
        return bool(residual <= REPAIRED_SHARE * np.abs(excess).max())

    def suspicion(self) -> str:
        """Return a sentence on the line to look at if there is no repair; "" if none is found."""
        for site in self.unused_writes:
            return f"{_location(site)}: what it writes is not used"
        # what is computed before the first right cotangent are factors, and seldom wrong
        follows = np.zeros(len(self.is_forward), bool)
        for k, step in enumerate(self.trace.steps):
            is_right = self.is_cleared[k] and not self.is_forward[k]
            follows[k] = is_right or follows[list(step.sources)].any()
        late = [s for s in self.uncleared if follows[s.steps].any()]
        candidates = late + [s for s in self.uncleared if s not in late]
        if self.trace.in_floats:
            self.n_runs_left = MAX_JACOBIANS
            can_repair = [s for s in candidates if self._can_repair(s.steps)]
            candidates = can_repair or candidates
        for suspect in candidates:
            return _location(suspect.site)
        for suspect in self.backward[-1:]:
            last = suspect.steps[-1]
            users = [
                k for k, step in enumerate(self.trace.steps) if last in step.sources
            ]
            sites = (site for k in users for site in self.trace.steps[k].sites[:1])
            use = next(sites, suspect.site)
            location = _location(_next_use(suspect.site) or use)
            expression = suspect.site.expression()
            if location and expression:
                return (
                    f"{location}: `{expression}` is right, but not what becomes of it"
                )
            return location
        with_site = [step for step in self.trace.steps if step.sites]
        for step in with_site[-1:]:
            location = _location(_return(step.sites[-1]))
            if location:
                return f"{location}: its terms and factors are right, or one is missing"
        return ""


def _improbability(trial: Trial) -> tuple[int, bool, list[int]]:
    """Return the key by which trials are sorted: likely and quick ones come first."""
    return -trial.specificity, trial.reshapes, trial.suspect.steps


def _move(
    channels: dict[int, list[tuple[int, int]]], k: int, operation: Operation
) -> Exact:
    """Return the result of step k, of which each channel moves another number.

    `channels` has pairs of the position of a number and its channel, by step.
    """
    result = operation.result
    for i, channel in channels.get(k, ()):
        tangent = result.tangent[..., channel]
        tangent[np.unravel_index(i, tangent.shape)] += 1
    return result


def _shared_functions(codes: set[CodeType]) -> set[CodeType]:
    """Return the functions at whose places steps run that are called in other files than theirs.

    They are functions of a module, with two calls or more in the files of all `codes`. How they are
    called is more often wrong than they are.
    """
    texts = {
        code.co_filename: "".join(linecache.getlines(code.co_filename))
        for code in codes
    }
    shared = set[CodeType]()
    for code in codes:
        if code.co_qualname != code.co_name or not code.co_name.isidentifier():
            continue
        call = re.compile(rf"(?<!def )\b{code.co_name}\(")
        n_calls = {file: len(call.findall(text)) for file, text in texts.items()}
        n_others = sum(n_calls.values()) - n_calls[code.co_filename]
        if n_others and sum(n_calls.values()) > 1:
            shared.add(code)
    return shared


def _instructions(code: CodeType) -> Iterator[tuple[dis.Instruction, int]]:
    """Yield the instructions of a function, each with the number of its line."""
    for instruction in dis.get_instructions(code):
        positions = instruction.positions
        if positions and positions.lineno:
            yield instruction, positions.lineno


def _return(site: Site) -> Site:
    """Return the place where the function of a place returns, after it."""
    for instruction, line in _instructions(site.code):
        is_later = instruction.offset > site.offset
        if is_later and instruction.opname == "RETURN_VALUE":
            return Site(site.code, instruction.offset, line)
    return site


def _next_use(site: Site) -> Site | None:
    """Return the first place after an assignment, in the same function, that uses its variable.

    Return None if `site` is not in an assignment to a single variable.
    """
    instructions = [*_instructions(site.code)]
    names = [
        instruction.argval
        for instruction, line in instructions
        if line == site.line and instruction.opname.startswith("STORE")
    ]
    for instruction, line in instructions:
        is_use = instruction.opname.startswith("LOAD") and instruction.argval in names
        if line > site.line and is_use and len(names) == 1:
            return Site(site.code, instruction.offset, line)
    return None


def _compute(repair: Repair | None) -> Exact | None:
    """Return the result of a repair; None if there is none, or it cannot be computed."""
    if repair is None:
        return None
    try:
        with np.errstate(all="ignore"):
            result = repair.compute()
    except Exception:
        return None
    return result if type(result) is Exact else None


def _location(site: Site) -> str:
    """Return text such as "look at line 7 of file.py, `source`"; "" without a source."""
    file = site.code.co_filename
    if not source_line(file, site.line):
        return ""
    return f"look at {line_in_words(file, site.line)}"


def _blamed_line(problem: ProofProblem, theta: Array, wrong: Array) -> str:
    """Return a sentence on the line that makes derivatives wrong at theta (D,), or "".

    `wrong`, bool (D,), marks the wrong derivatives. Seeds are tried until all square roots exist;
    then floats, in which they do, and all laws hold. A trace has to confirm that the other
    derivatives are right.
    """
    suspicion = ""
    is_valid = False
    for i in range(MAX_TRACES + 1):
        in_floats = i == MAX_TRACES
        if is_valid and not in_floats:
            continue
        try:
            trace = Trace(problem, theta, MAX_TRACES * problem.seed + i, in_floats)
        except (NoSeries, TraceError):
            continue
        is_valid = trace.is_valid
        if (trace.is_wrong != wrong).any():
            continue
        search = Search(trace)
        repair = search.repair()
        if repair:
            return repair
        suspicion = search.suspicion() or suspicion
    return suspicion


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
    @np.errstate(all="ignore")
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
            # the function may fail at another point, which does not change the verdict
            return sentences
        return [*sentences, line] if line else sentences

    return explain
