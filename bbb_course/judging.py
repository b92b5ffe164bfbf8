"""Judge an answer: proof, diagnosis by block, smallest failing case.

Every sentence about a mistake is proved: the answer's block *is* that of the right answer with that
mistake in it, for all numbers on the path of the cases (D44). An answer that cannot be traced is
compared in floats, and so are those of exercises with whole numbers only. What the numbers of
a mistake without a name have in common is measured.
"""

from __future__ import annotations

import inspect
import io
import itertools
import linecache
import operator
import random
import secrets
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from enum import Enum
from functools import partial
from types import FrameType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from exactgrad import Failure as LostDigits
from exactgrad import Proof, prove, prove_same, stability

from .exercise import (
    NAMES,
    SPREADS,
    Answer,
    Argument,
    Finding,
    Formula,
    Unusable,
    Verdict,
    ask,
)
from .processes import Ended
from .variants import find_variant

__all__ = ["FLOAT_SEEDS", "agrees", "judge", "judge_formula", "right_in_floats"]

Array = NDArray[Any]
PROOF_SEEDS = (1, 2)  # draw the arguments of the proofs
FLOAT_SEEDS = tuple(range(3, 15))  # draw those of float comparisons, on other paths
N_FRESH_SEEDS = 4  # further float comparisons, with seeds that nobody can know
INTEGER_KINDS = ("zero-one", "label", "count", "given")  # have no derivatives
ROUNDING_RTOL = 1e-9  # relative to the largest number of a block
DIGITS_RTOL = 1e-6  # relative to each number: a larger difference needs a proof
DIGITS_ATOL = 1e-13  # a smaller difference is rounding, which no proof sees
MAX_SILENT_PROOFS = 3  # then a block is not tried again
MAX_DIGIT_ERROR = 1e-4  # a smaller relative error looks like lost digits
MIN_SIZE = 0.01  # smaller blocks do not tell a common factor
FACTOR_TOLERANCE = 1e-6
N_SMALL_CASES = 12  # small cases of each size
N_STABILITY_INPUTS = 100  # at which a right formula is searched for lost digits
MAX_LOST_DIGITS = 3.0  # twelve of sixteen digits must be right
N_LARGE = 40  # rows, weights or draws: more than a hard-coded loop or table has
MAX_SHOWN = N_LARGE  # longer arrays are shown by their shape
DIFFERENT_SIZES = (3, 5, 7, 11, 13)  # by which no factor is taken for another
SIMPLEST = {"real": (0.0, 1.0), "logit": (0.0, 1.0), "positive": (1.0,)}
OVERFLOWS = "the formula is right, but floats overflow or cancel"
BY_ARGUMENTS = "what it returns may depend on its arguments only, not on earlier calls"


class BlockComparison(NamedTuple):
    """Whether a block of an answer is that of a reference.

    Attributes
    ----------
    same : bool
        Whether no difference was found.
    proved : bool
        Whether that is proved, and not only compared in floats.
    reason : str
        Why they differ, or why there is no proof; '' if proved.
    """

    same: bool
    proved: bool = True
    reason: str = ""


class Rounding(Enum):
    """Which floats count as right; at extreme numbers terms cancel in right formulas too."""

    SMALL = "those that agree"
    PROVED = "finite ones as well, if a proof says that the formula is right"
    ANY = "all, unless a proof says that the formula is wrong"


class FloatCase(NamedTuple):
    """Arguments at which floats are compared, beside those of the proofs.

    Attributes
    ----------
    where : str
        What is special about them, as the student reads it.
    arguments : tuple
        One for each argument of the exercise.
    rounding : Rounding
        Which floats count as right.
    has_proof : bool
        Whether a proof at these arguments is quick enough to settle a doubt.
    is_repeated : bool
        Whether they nearly repeat an earlier call, so that an error shows state that is kept.
    """

    where: str
    arguments: tuple[Any, ...]
    rounding: Rounding = Rounding.SMALL
    has_proof: bool = False
    is_repeated: bool = False


class _Silence(io.TextIOBase):
    """A stream that drops what an answer prints while it runs on the numbers of a proof."""

    def write(self, text: str) -> int:
        return len(text)


class Failure(Enum):
    """How an answer is wrong in a case, the most telling first."""

    NUMBER = "other numbers"
    DIGITS = "other digits of a number that is small among the others"
    NOT_FINITE = "nan or inf among its numbers"
    SHAPE = "it raises, or has another shape"


def judge(name: str, answer: Any, variant: str = "") -> Verdict:
    """Grade the answer to an exercise, in this process.

    Parameters
    ----------
    name : str
        Name of the exercise, such as 'softplus'.
    answer : callable or mapping
        What the student wrote; a mapping for the exercise ``which_detector_sees_it``.
    variant : str
        Seed of the exercise's variant; '' for the exercise of the book. An exercise that has no
        variant is graded as in the book.

    Returns
    -------
    Verdict
        Whether it passes, and what is wrong with each block.

    Raises
    ------
    ValueError
        If there is no such exercise.
    """
    exercise = find_variant(name, variant)
    try:
        if isinstance(exercise, Formula):
            verdict = judge_formula(exercise, answer)
        else:
            verdict = exercise.judge(answer)
    except NotImplementedError:
        verdict = Verdict(name, False, "not answered", "it is not answered yet")
    except Unusable as error:
        verdict = Verdict(name, False, "unusable", str(error))
    graded_seed = getattr(exercise, "seed", "")
    verdict = replace(verdict, variant=graded_seed)
    replaced = _replaced()
    if not replaced:
        return verdict
    head = (
        f"it replaces {' and '.join(replaced)} for everyone, the grader too: restore what was "
        "there, and give functions of your own another name"
    )
    return Verdict(name, False, "unusable", head)


def _functions() -> dict[str, dict[str, Any]]:
    """Return the functions and classes of math and NumPy, by module and name."""
    watched = {
        name: module
        for name, module in [*sys.modules.items()]
        if name == "math" or name.partition(".")[0] == "numpy"
    }
    return {
        name: {key: member for key, member in vars(module).items() if callable(member)}
        for name, module in watched.items()
    }


ORIGINAL = _functions()


def _replaced() -> list[str]:
    """Return the names of NumPy's functions that an answer has replaced since the import."""
    current = {
        name: vars(sys.modules[name]) for name in ORIGINAL if name in sys.modules
    }
    return [
        f"{name}.{key}"
        for name, members in current.items()
        for key, original in ORIGINAL[name].items()
        if members.get(key) is not original
    ]


def judge_formula(exercise: Formula, answer: Answer) -> Verdict:
    """Grade a function that can be compared exactly.

    Parameters
    ----------
    exercise : Formula
    answer : callable
        The student's function, of the exercise's arguments.

    Returns
    -------
    Verdict
    """
    wrong_in_floats = _check_first_calls(exercise, answer)
    wrong_later, raising = _wrong_in_floats(exercise, answer)
    wrong_in_floats.update(wrong_later)
    comparisons = []
    for i in range(len(exercise.returns)):
        if i in wrong_in_floats:
            reason = f"it is wrong {wrong_in_floats[i].where}"
            comparisons.append(BlockComparison(False, reason=reason))
        else:
            comparisons.append(_compare(exercise, answer, exercise.right, i))
    if raising is not None and all(comparison.same for comparison in comparisons):
        wrong_in_floats = dict.fromkeys(range(len(comparisons)), raising)
        raises = BlockComparison(False, reason=f"it raises {raising.where}")
        comparisons = [raises] * len(comparisons)
    wrong = [i for i, comparison in enumerate(comparisons) if not comparison.same]
    if not wrong:
        return (
            _unstable(exercise, answer)
            or _overflow(exercise, answer)
            or _passed(exercise, answer, comparisons)
        )
    findings = []
    for i in wrong:
        message = _diagnosis(exercise, answer, i)
        if message:
            findings.append(Finding(exercise.returns[i], message))
    head = _what_is_right(exercise, answer, comparisons)
    if len(findings) == len(wrong):
        return Verdict(exercise.name, False, "known mistake", head, tuple(findings))
    unknown = [
        exercise.returns[i] for i in wrong if exercise.returns[i] not in dict(findings)
    ]
    cases: dict[str, dict[str, Any]] = {}
    for name in unknown:
        i = exercise.returns.index(name)
        if i in wrong_in_floats and wrong_in_floats[i].is_repeated:
            cases[name] = {}  # a case by itself may be right
            continue
        message = _in_common(exercise, answer, i)
        if message:
            findings.append(Finding(name, message))
        arguments = [wrong_in_floats[i].arguments] if i in wrong_in_floats else []
        # last, since what the answer prints in this case is shown
        cases[name] = _smallest(exercise, answer, i, arguments)
    # blocks whose error floats do not show: the proof's reason stands in for a case
    for name in [name for name, case in cases.items() if not case]:
        findings.append(Finding(name, comparisons[exercise.returns.index(name)].reason))
        del cases[name]
    return Verdict(exercise.name, False, "wrong", head, tuple(findings), cases)


# --- comparing


def _run(
    exercise: Formula, answer: Answer, arguments: tuple[Any, ...]
) -> tuple[Any, ...]:
    """Return the blocks of an answer, and refuse one that changes its arguments."""
    copies = tuple(map(_copied, arguments))
    shapes = ", ".join(
        f"{name} {np.shape(value)}"
        for name, value in zip(exercise.arguments, arguments, strict=True)
        if not callable(value)
    )
    returned = ask(answer, *copies, about=f" (for arguments of the shapes {shapes})")
    for name, original, copy in zip(exercise.arguments, arguments, copies, strict=True):
        if isinstance(original, np.ndarray) and not np.array_equal(original, copy):
            raise Unusable(f"it changes its argument {name} in place; work on a copy")
    try:
        blocks = exercise.blocks(returned)
    except Unusable as error:
        raise Unusable(f"{error}{_last_line(answer, copies)}") from None
    if any("exactgrad" in type(block).__module__ for block in blocks):
        raise Unusable(
            "it returns numbers of an earlier call: keep nothing between calls"
        )
    return blocks


def _copied(value: Any) -> Any:
    return np.copy(value) if isinstance(value, np.ndarray) else value


def _last_line(answer: Answer, arguments: tuple[Any, ...]) -> str:
    """Run an answer once more, and return the line where it returned; '' if that is unknown."""
    code = getattr(answer, "__code__", None)
    line_number = 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal line_number
        if frame.f_code is code and event == "return":
            line_number = frame.f_lineno
        if frame.f_code is code:
            return trace
        return None

    tracer = sys.gettrace()
    sys.settrace(trace)
    try:
        answer(*arguments)
    finally:
        sys.settrace(tracer)
    if not code or not line_number:
        return ""
    line = linecache.getline(code.co_filename, line_number).strip()
    return f", in line {line_number}, `{line}`" if line else ""


def _check_first_calls(exercise: Formula, answer: Answer) -> dict[int, FloatCase]:
    """Check the shapes, and return the case of each block whose numbers are wrong."""
    wrong: dict[int, FloatCase] = {}
    if not callable(answer):
        raise Unusable(f"{exercise.name} must be a function; it is {answer!r}")
    for seed in PROOF_SEEDS:
        arguments = exercise.draw(seed)
        blocks = _run(exercise, answer, arguments)
        right = exercise.blocks(exercise.right(*arguments))
        named = zip(exercise.returns, blocks, right, strict=True)
        for i, (name, block, expected) in enumerate(named):
            if block is None:
                raise Unusable(f"it returns None for {name}; does a `return` lack?")
            if np.shape(block) != np.shape(expected):
                raise Unusable(
                    f"{name} must have the shape {np.shape(expected)}; it has {np.shape(block)}"
                )
            if np.asarray(block).dtype.kind not in "fiub":
                raise Unusable(f"{name} must be real numbers; it is {block!r}")
            if not _agree(block, expected):
                where = f"at its first calls and right later; {BY_ARGUMENTS}"
                wrong.setdefault(i, FloatCase(where, arguments, is_repeated=True))
    return wrong


def _projected(
    exercise: Formula, answer: Answer, block: int, entries: Any = slice(None)
) -> Answer:
    """Return a function whose value is a random linear combination of a block's entries.

    A proof moves every number by itself, so that shares are divided by their sum again.
    """
    specifications = exercise.arguments.values()

    def number(*arguments: Any) -> Any:
        arguments = tuple(map(Argument.normalise, specifications, arguments))
        returned = exercise.blocks(answer(*arguments))[block]
        chosen = np.asarray(returned, object).ravel()[entries]
        total = sum(chosen[:1])
        weights = random.Random(block)
        for entry in chosen[1:]:
            total = total + weights.randrange(1, 1000) * entry
        return total

    return number


def _float_cases(exercise: Formula) -> Iterator[FloatCase]:
    """Yield arguments beside those of the proofs: of other sizes and with other numbers.

    A proof holds for its path of comparisons and for its sizes. An answer may clip what it thinks
    impossible, treat one row in another way, confuse two sizes that are equal in the proofs, or
    keep something for the next call, which may have the same arguments but for one.
    """
    letters = exercise.letters
    sizes = [
        ("where there is one more of all", {x: exercise.sizes[x] + 1 for x in letters})
    ] * 2
    sizes.append(("where there is one of all", dict.fromkeys(letters, 1)))
    sizes += [(f"where there is one of {NAMES[x]} {x}", {x: 1}) for x in letters]
    for order in (letters, letters[::-1]):
        sizes.append(
            ("where all sizes differ", {x: 2 + i for i, x in enumerate(order)})
        )
    single = dict.fromkeys(letters, 1)  # of the others: a case that can be read
    sizes += [
        (f"where there are {N_LARGE} {NAMES[x]} {x}", {**single, x: N_LARGE})
        for x in letters
    ]
    sizes.append((f"where there are {N_LARGE} of all", dict.fromkeys(letters, N_LARGE)))
    seeds = itertools.count(FLOAT_SEEDS[0])
    for where, changed_sizes in sizes:
        larger = replace(exercise, sizes={**exercise.sizes, **changed_sizes})
        yield FloatCase(where, larger.draw(next(seeds)))
    for name, spread in SPREADS.items():
        rounding = Rounding.PROVED
        if spread.is_wide:
            rounding = Rounding.ANY
        for _ in range(spread.cases):
            arguments = exercise.draw(next(seeds), spread)
            yield FloatCase(
                f"where numbers are {name}", arguments, rounding, has_proof=True
            )
    first = exercise.draw(next(seeds))
    second = exercise.draw(next(seeds))
    yield FloatCase("for these arguments", first)
    for name, changed in _one_changed(exercise, first, second):
        where = f"where {name} alone is another than at an earlier call; {BY_ARGUMENTS}"
        yield FloatCase(where, changed, is_repeated=True)
    longer = replace(exercise, sizes={x: n + 1 for x, n in exercise.sizes.items()})
    mixed = zip(
        exercise.arguments.values(), first, longer.draw(next(seeds)), strict=True
    )
    where = f"where arrays alone are longer than at an earlier call; {BY_ARGUMENTS}"
    resized = tuple(new if single.shape else old for single, old, new in mixed)
    yield FloatCase(where, resized, is_repeated=True)
    for arguments in exercise.edge_cases:
        yield FloatCase("in this case", arguments, has_proof=True)


def _one_changed(
    exercise: Formula, old_arguments: tuple[Any, ...], new_arguments: tuple[Any, ...]
) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Yield the name of each argument, and the arguments with one number of it changed."""
    for i, (name, old, new) in enumerate(
        zip(exercise.arguments, old_arguments, new_arguments, strict=True)
    ):
        changed = new
        if exercise.arguments[name].shape:
            last = np.flatnonzero(old != new)[-1:]
            changed = old.copy()
            changed.flat[last] = new.flat[last]
            changed = exercise.arguments[name].normalise(changed)
        yield name, (*old_arguments[:i], changed, *old_arguments[i + 1 :])


def _wrong_in_floats(
    exercise: Formula, answer: Answer, has_proofs: bool = True
) -> tuple[dict[int, FloatCase], FloatCase | None]:
    """Return the first case of each wrong block, and the first in which the answer raises.

    Cases in which the right answer is not finite, or raises, are passed over. Without proofs,
    what floats leave in doubt is taken for right.
    """
    wrong: dict[int, FloatCase] = {}
    raising = None
    returned: list[Array] = []
    silent = None
    if has_proofs:
        silent = Counter[int]()
    for case in _float_cases(exercise):
        right = _right_numbers(exercise, case.arguments)
        if right is None:
            continue
        copies = [np.copy(block) for block in returned]
        try:
            numbers = [
                np.asarray(block, float)
                for block in _run(exercise, answer, case.arguments)
            ]
        except (Unusable, NotImplementedError, TypeError, ValueError):
            raising = raising or case
            continue
        if not all(map(np.array_equal, returned, copies, itertools.repeat(True))):
            raise Unusable(
                "what it returned changes at its next call; return new arrays"
            )
        returned = numbers
        for i, blocks in enumerate(zip(numbers, right, strict=True)):
            if i not in wrong and not _is_right(
                exercise, answer, i, case, *blocks, silent
            ):
                wrong[i] = case
    return wrong, raising


def _is_right(
    exercise: Formula,
    answer: Answer,
    block: int,
    case: FloatCase,
    ours: Any,
    right: Any,
    silent: Counter[int] | None,
) -> bool:
    """Return whether a block is right in a case: by floats, or by a proof if they leave a doubt.

    A number that is small among the others has other digits where a floor or a limit changes it,
    and where terms cancel: the proof tells one from the other. `silent` counts, for each block,
    the proofs without a verdict; None: no proof is made.
    """
    agree = _agree(ours, right)
    if not case.has_proof or np.shape(ours) != np.shape(right):
        return agree
    doubtful = ~_same_digits(ours, right)
    if _is_whole(exercise) or (agree and not doubtful.any()):
        return agree and not doubtful.any()
    finite = np.isfinite(ours).all()
    if not agree and (
        case.rounding is Rounding.SMALL
        or (case.rounding is Rounding.PROVED and not finite)
    ):
        return False
    if silent is None:
        return True
    verdict = "silent"
    if silent[block] < MAX_SILENT_PROOFS:
        entries: Any = slice(None)
        if doubtful.any():
            entries = np.flatnonzero(doubtful)
        right_answer = exercise.right
        proof = _prove_at(
            exercise, answer, right_answer, block, case.arguments, entries=entries
        )
        if not isinstance(proof, str):
            verdict = proof.verdict
    if verdict in ("proved", "refuted"):
        return verdict == "proved"
    silent[block] += 1
    return agree or case.rounding is Rounding.ANY


def _right_numbers(
    exercise: Formula, arguments: tuple[Any, ...]
) -> tuple[Any, ...] | None:
    """Return the blocks of the right answer; None if it raises or a number is not finite."""
    try:
        with np.errstate(all="ignore"):
            right = exercise.blocks(exercise.right(*arguments))
    except Exception:  # no case for this exercise
        return None
    finite = all(np.isfinite(np.asarray(block, float)).all() for block in right)
    if finite:
        return right
    return None


def _compare(
    exercise: Formula, answer: Answer, reference: Answer, block: int
) -> BlockComparison:
    """Compare one block of two answers: in floats on many paths, and exactly if that can be done.

    Floats come first, as they are quick, and see the paths that the proofs do not take.
    """
    if not _agree_on_paths(exercise, answer, block, reference):
        return BlockComparison(False, reason="its floats are others")
    if _is_whole(exercise):
        return BlockComparison(
            True, False, f"its numbers are whole: compared in {len(FLOAT_SEEDS)} cases"
        )
    proved = True
    for seed in PROOF_SEEDS:
        proof = _prove_at(exercise, answer, reference, block, exercise.draw(seed), seed)
        if isinstance(proof, str):  # the values are no numbers, nan for instance
            return BlockComparison(False, reason=f"it cannot be compared: {proof}")
        if proof.verdict == "refuted":
            return BlockComparison(False, reason=str(proof.wrong[0]))
        if proof.verdict == "not traceable":
            return BlockComparison(
                True, False, f"in floats; it is not proved, as {proof.reason}"
            )
        proved &= proof.proved
    if proved:
        return BlockComparison(True)
    reason = "to twelve digits, but by identities that the proof does not know"
    return BlockComparison(True, False, reason)


def _is_whole(exercise: Formula) -> bool:
    """Return whether no argument can be moved by a proof."""
    return all(
        argument.kind in INTEGER_KINDS for argument in exercise.arguments.values()
    )


def _prove_at(
    exercise: Formula,
    answer: Answer,
    reference: Answer,
    block: int,
    arguments: tuple[Any, ...],
    seed: int = 0,
    entries: Any = slice(None),
) -> Proof | str:
    """Return the proof that entries of a block are the reference's, or why there is none."""
    first = _projected(exercise, answer, block, entries)
    second = _projected(exercise, reference, block, entries)
    try:
        with redirect_stdout(_Silence()):
            return prove_same(first, second, *arguments, seed=seed)
    except Exception as error:
        return str(error)


def _agree_on_paths(
    exercise: Formula, answer: Answer, block: int, reference: Answer | None = None
) -> bool:
    """Return whether a block of two answers agrees in floats; by default with the right one."""
    right = reference or exercise.right
    cases = map(exercise.draw, FLOAT_SEEDS)
    return all(_close(exercise, answer, right, block, arguments) for arguments in cases)


def _close(
    exercise: Formula,
    answer: Answer,
    reference: Answer,
    block: int,
    arguments: tuple[Any, ...],
) -> bool:
    ours = _run(exercise, answer, arguments)[block]
    with np.errstate(all="ignore"):
        return _agree(ours, exercise.blocks(reference(*arguments))[block])


def right_in_floats(exercise: Formula, answer: Answer) -> bool:
    """Return whether an answer is right wherever it is compared in floats.

    The arguments are those of `judge_formula`, and others that nobody can know before.

    Parameters
    ----------
    exercise : Formula
    answer : callable
        The student's function.
    """
    fresh = [secrets.randbelow(2**32) for _ in range(N_FRESH_SEEDS)]
    try:
        if _check_first_calls(exercise, answer):
            return False
        for seed in (*PROOF_SEEDS, *FLOAT_SEEDS, *fresh):
            arguments = exercise.draw(seed)
            if not agrees(exercise, arguments, ask(answer, *arguments)):
                return False
        wrong, raising = _wrong_in_floats(exercise, answer, has_proofs=False)
        return not wrong and raising is None and _overflow(exercise, answer) is None
    except Ended:
        raise
    except Exception:  # what it returns may be anything
        return False


def agrees(exercise: Formula, arguments: tuple[Any, ...], returned: Any) -> bool:
    """Return whether what an answer returned is right but for rounding.

    Parameters
    ----------
    exercise : Formula
    arguments : tuple
        What the answer was called with.
    returned : Any
        What it returned: a block, or a tuple of the exercise's blocks.
    """
    with np.errstate(all="ignore"):
        right = exercise.blocks(exercise.right(*arguments))
    return all(map(_agree, exercise.blocks(returned), right))


def _agree(returned: Any, right: Any) -> bool:
    """Return whether two blocks are equal but for rounding, relative to the largest number."""
    ours = np.asarray(returned, float)
    theirs = np.asarray(right, float)
    if ours.shape != theirs.shape:
        return False
    scale = np.max(np.abs(theirs), initial=1.0, where=np.isfinite(theirs))
    return bool(
        np.allclose(ours, theirs, rtol=0, atol=ROUNDING_RTOL * scale, equal_nan=True)
    )


def _same_digits(returned: Any, right: Any) -> Array:
    """Return, for each number of two blocks of one shape, whether its first digits agree."""
    ours = np.asarray(returned, float)
    theirs = np.asarray(right, float)
    return np.atleast_1d(
        np.isclose(ours, theirs, rtol=DIGITS_RTOL, atol=DIGITS_ATOL, equal_nan=True)
    )


# --- what is right


def _slopes_proved(exercise: Formula, answer: Answer) -> tuple[bool, int]:
    """Return whether the derivatives are proved to be those of the value, and their number."""
    names = list(exercise.arguments)
    positions = [names.index(by) for by in exercise.slopes.values()]
    blocks = [exercise.returns.index(name) for name in exercise.slopes]
    total = 0
    for seed in PROOF_SEEDS:
        point = exercise.draw(seed)
        variables = [np.asarray(point[i]) for i in positions]
        cuts = np.cumsum([variable.size for variable in variables])[:-1].tolist()

        def value_and_grad(
            theta: Any, *fixed: Any, cuts: Any = cuts, variables: Any = variables
        ) -> tuple[Any, Array]:
            arguments = list(fixed)
            parts = np.split(theta, cuts)
            for i, variable, part in zip(positions, variables, parts, strict=True):
                if variable.ndim:
                    arguments[i] = part.reshape(variable.shape)
                else:
                    arguments[i] = part[0]
            returned = exercise.blocks(answer(*arguments))
            slopes = [np.ravel(np.asarray(returned[i], object)) for i in blocks]
            return returned[0], np.concatenate(slopes)

        theta = np.concatenate([variable.ravel() for variable in variables])
        total = theta.size
        try:
            with redirect_stdout(_Silence()):
                proof = prove(value_and_grad, theta, *point, n_points=0, seed=seed)
        except Exception:
            return False, total
        if not proof:
            return False, total
    return True, total


def _passed(
    exercise: Formula, answer: Answer, comparisons: list[BlockComparison]
) -> Verdict:
    unproved = next(
        (comparison for comparison in comparisons if not comparison.proved), None
    )
    if unproved is not None:
        head = f"right, {unproved.reason}"
        return Verdict(exercise.name, True, "right", head)
    head = f"proved: {_listed(exercise.returns)} in exact arithmetic"
    if exercise.slopes:
        derivatives, total = _slopes_proved(exercise, answer)
        if derivatives:
            head = (
                f"proved: the value is the formula's, and all {total} derivatives are those of "
                "the value"
            )
    return Verdict(exercise.name, True, "proved", head)


def _overflow(exercise: Formula, answer: Answer) -> Verdict | None:
    """Return a verdict if floats overflow or cancel at extreme arguments, else None."""
    for *arguments, right in exercise.extremes:
        ours = np.asarray(_run(exercise, answer, tuple(arguments))[0], float)
        if not np.allclose(ours, right, rtol=1e-12, atol=0):
            names = zip(exercise.arguments, arguments, strict=True)
            case = {name: _shown(value) for name, value in names}
            name = exercise.returns[0]
            case |= _both(name, ours, right)
            lost = _lost_digits(exercise, answer, arguments[0], 1)
            findings = (Finding(name, _advice(lost)),) if lost is not None else ()
            return Verdict(
                exercise.name, False, "wrong", OVERFLOWS, findings, cases={name: case}
            )
    return None


def _lost_digits(
    exercise: Formula, answer: Answer, theta: Array, n_inputs: int
) -> LostDigits | None:
    """Return the input between the exercise's extremes at which most digits are lost, or None.

    An answer that cannot run on exact numbers has none: it is compared at the extremes alone.

    Parameters
    ----------
    exercise : Formula
        An exercise of one argument that has extremes.
    answer : callable
        The student's function.
    theta : ndarray
        The first input, whose shape the others have.
    n_inputs : int
        Number of inputs, 1 for `theta` alone.
    """
    extremes = np.concatenate([np.ravel(extreme[0]) for extreme in exercise.extremes])
    domain = float(np.min(extremes)), float(np.max(extremes))
    try:
        with redirect_stdout(_Silence()):
            return stability(
                answer,
                theta,
                domain=domain,
                n_inputs=n_inputs,
                max_loss=MAX_LOST_DIGITS,
                floor=exercise.floor,
            ).worst
    except Exception:  # what an answer does with exact numbers is unknown
        return None


def _advice(lost: LostDigits) -> str:
    """Return how many digits are lost, in which line, and what to write instead."""
    says = f"of sixteen digits it loses {lost.digits_lost:.0f}"
    if lost.line:
        says += f"; look at {lost.line}"
    if lost.cure:
        says += f"; write {lost.cure}"
    return says


def _unstable(exercise: Formula, answer: Answer) -> Verdict | None:
    """Return a verdict if a right formula loses digits, with line and cure, else None."""
    if not exercise.extremes:
        return None
    # of one row or weight, so that the input can be read; one sample has no neighbour
    sizes = {**dict.fromkeys(exercise.letters, 1), "S": 2}
    (theta,) = replace(exercise, sizes=sizes).draw(PROOF_SEEDS[0])
    lost = _lost_digits(exercise, answer, theta, N_STABILITY_INPUTS)
    if lost is None:
        return None
    (argument,) = exercise.arguments
    name = exercise.returns[0]
    number = lost.name.replace("value", name)  # such as share[1]
    numbers = _both(number, np.asarray(lost.computed), np.asarray(lost.exact))
    case = {argument: _shown(lost.theta), **numbers}
    findings = (Finding(name, _advice(lost)),)
    return Verdict(
        exercise.name, False, "wrong", OVERFLOWS, findings, cases={name: case}
    )


def _listed(names: Sequence[str]) -> str:
    *first, last = names
    if not first:
        return f"{last} is right"
    return f"{', '.join(first)} and {last} are right"


def _what_is_right(
    exercise: Formula, answer: Answer, comparisons: list[BlockComparison]
) -> str:
    right = [
        name
        for name, comparison in zip(exercise.returns, comparisons, strict=True)
        if comparison.same
    ]
    wrong = [
        name
        for name, comparison in zip(exercise.returns, comparisons, strict=True)
        if not comparison.same
    ]
    verb = "are" if len(wrong) > 1 else "is"
    clauses = [f"{', '.join(wrong)} {verb} wrong"]
    if right:
        clauses.insert(0, _listed(right))
    if (
        exercise.slopes
        and exercise.returns[0] in wrong
        and _slopes_proved(exercise, answer)[0]
    ):
        clauses.append("the derivatives are exactly those of this other value")
    return "; ".join(clauses)


# --- what is wrong


def _diagnosis(exercise: Formula, answer: Answer, block: int) -> str:
    """Return the sentence of the known mistake, pair of mistakes, or factor; '' if none fits."""
    if _agree_on_paths(exercise, answer, block):
        return ""  # a mistake that has a name shows there
    sizes = dict(zip(exercise.letters, DIFFERENT_SIZES, strict=False))
    larger = replace(exercise, sizes={**exercise.sizes, **sizes})
    copied = [
        (message, other)
        for message, other in exercise.elsewhere
        if _is_copy(exercise, answer, other)
    ]
    for message, candidate, candidate_of_larger in _candidates(
        exercise, larger, block, copied
    ):
        try:
            if not _compare(exercise, answer, candidate, block).same:
                continue
            if _compare(exercise, candidate, exercise.right, block).same:
                continue  # the answer is right there, and wrong for other sizes
        except Unusable:  # the mistake gives another shape, or none
            continue
        if _agrees_or_raises(larger, answer, candidate_of_larger, block):
            return message
    return ""


def _candidates(
    exercise: Formula,
    larger: Formula,
    block: int,
    copied: Sequence[tuple[str, Answer]],
) -> Iterator[tuple[str, Answer, Answer]]:
    """Yield the sentence of every mistake, its answer and that at larger sizes.

    The most telling come first: a copy of the book's answer is told so, and one of another
    variant's unless it is a known mistake. A block alone may be another's by a mistake.
    """
    book_s = exercise.elsewhere[:1]
    first = [pair for pair in copied if pair in book_s]
    for message, answer in itertools.chain(first, _edited(exercise, 1), copied):
        yield message, answer, answer
    pairs = zip(_generic(exercise), _generic(larger), strict=True)
    for (message, change), (_, change_of_larger) in pairs:
        yield (
            message,
            _after(exercise, change, block),
            _after(larger, change_of_larger, block),
        )
    for message, answer in itertools.chain(exercise.elsewhere, _edited(exercise, 2)):
        yield message, answer, answer


def _is_copy(exercise: Formula, answer: Answer, other: Answer) -> bool:
    """Return whether all blocks of two answers agree in floats."""
    try:
        return all(
            _agree_on_paths(exercise, answer, block, other)
            for block in range(len(exercise.returns))
        )
    except Unusable:
        return False


def _agrees_or_raises(
    exercise: Formula, answer: Answer, reference: Answer, block: int
) -> bool:
    """Return whether two answers agree in floats, or one cannot take these sizes."""
    try:
        return _agree_on_paths(exercise, answer, block, reference)
    except Exception:
        return True


def _edited(exercise: Formula, number: int) -> Iterator[tuple[str, Answer]]:
    """Yield the sentence and the answer of every combination of `number` known mistakes."""
    for mistakes in itertools.combinations(exercise.wrong, number):
        candidate = exercise.edited(*mistakes)
        if candidate is not None:
            yield " And: ".join(mistake.says for mistake in mistakes), candidate


def _generic(exercise: Formula) -> Iterator[tuple[str, Callable[[Any], Any]]]:
    """Yield the sentence and the change of a block for mistakes that every exercise may have."""
    yield "its sign is the other way round", lambda right: -right
    yield "it is half of what is right", lambda right: right / 2
    yield "it is twice what is right", lambda right: right * 2
    for letter in exercise.letters:
        size = exercise.sizes[letter]
        count = f"the number of {NAMES[letter]} {letter}"
        yield (
            f"it is divided by {count}, once too often",
            partial(operator.mul, 1 / size),
        )
        yield (
            f"it is multiplied by {count}, once too often",
            partial(operator.mul, size),
        )
    yield "it is transposed", lambda right: right.T
    yield "it is the square of what is right", lambda right: right * right
    yield "it is one over what is right", lambda right: 1 / right


def _in_common(exercise: Formula, answer: Answer, block: int) -> str:
    """Return a sentence if a wrong block is right but for a factor or its last digits, else ''."""
    errors = []
    factors = []
    residuals = []
    drawn = [exercise.draw(seed) for seed in FLOAT_SEEDS]
    cases = [
        case.arguments
        for case in _float_cases(exercise)
        if case.rounding is not Rounding.ANY
    ]
    for i, arguments in enumerate([*drawn, *cases]):
        right = _right_numbers(exercise, arguments)
        if right is None:
            continue
        try:
            ours = np.asarray(_run(exercise, answer, arguments)[block], float)
        except (Unusable, NotImplementedError, TypeError, ValueError):
            return ""
        theirs = np.asarray(right[block], float)
        if ours.shape != theirs.shape or not np.isfinite(ours).all():
            return ""
        size = np.max(np.abs(theirs), initial=0.0)
        scale = max(size, 1.0)
        if i < len(FLOAT_SEEDS):
            errors.append(np.max(np.abs(ours - theirs), initial=0.0) / scale)
        if size > MIN_SIZE:
            factor = np.vdot(theirs, ours) / np.vdot(theirs, theirs)
            factors.append(factor)
            residuals.append(np.max(np.abs(ours - factor * theirs)) / scale)
    is_factor = (
        factors
        and np.ptp(factors) < FACTOR_TOLERANCE
        and max(residuals) < ROUNDING_RTOL
    )
    if is_factor and abs(factors[0]) < FACTOR_TOLERANCE:
        return "it is 0 everywhere"
    if is_factor and abs(factors[0] - 1) > MAX_DIGIT_ERROR:
        return f"it is {factors[0]:.6g} times what is right, everywhere"
    if ROUNDING_RTOL < max(errors, default=0.0) < MAX_DIGIT_ERROR:
        digits = int(-np.log10(max(errors)))
        return (
            f"its first {digits} digits are right: is there a float32, a rounded constant, or a "
            "difference quotient?"
        )
    return ""


def _after(exercise: Formula, change: Callable[[Any], Any], block: int) -> Answer:
    def changed(*arguments: Any) -> Any:
        right = list(exercise.blocks(exercise.right(*arguments)))
        right[block] = change(np.asarray(right[block]))
        return right[0] if len(right) == 1 else tuple(right)

    return changed


def _smallest(
    exercise: Formula,
    answer: Answer,
    block: int,
    known_cases: Sequence[tuple[Any, ...]] = (),
) -> dict[str, Any]:
    """Return the smallest case in which a block of the answer is wrong; {} if floats show none.

    Cases are tried from the fewest samples, rows and units and the simplest numbers on, then
    `known_cases`, at which the block is known to be wrong, then the arguments of the proofs. A
    case of wrong numbers is preferred to one of nan, and that to one of another shape.
    """
    drawn = [exercise.draw(seed) for seed in (*PROOF_SEEDS, *FLOAT_SEEDS)]
    for failure in Failure:
        everywhere = itertools.chain(_small_cases(exercise), known_cases, drawn)
        # other digits may be rounding where nothing is known to be wrong
        cases = known_cases if failure is Failure.DIGITS else everywhere
        for arguments in cases:
            if _fails(exercise, answer, arguments, block, failure):
                simple = _simpler(exercise, answer, arguments, block, failure)
                return _fails(exercise, answer, simple, block, failure)
    return {}


def _small_cases(exercise: Formula) -> Iterator[tuple[Any, ...]]:
    """Yield arguments of growing sizes, with numbers that people can read."""
    letters = exercise.letters
    choices = itertools.product(
        *(range(1, exercise.sizes[letter] + 1) for letter in letters)
    )
    for sizes in sorted(choices, key=lambda candidate: (sum(candidate), candidate)):
        sizes_of_letters = dict(zip(letters, sizes, strict=True))
        for n_choices in (1, 2, 3, 5):
            rng = np.random.default_rng(n_choices)
            n_cases = 1 if n_choices == 1 else N_SMALL_CASES
            for _ in range(n_cases):
                yield tuple(
                    argument.small(rng, sizes_of_letters, n_choices)
                    for argument in exercise.arguments.values()
                )


def _simpler(
    exercise: Formula,
    answer: Answer,
    arguments: tuple[Any, ...],
    block: int,
    failure: Failure,
) -> tuple[Any, ...]:
    """Return arguments that fail as well, with as many zeros and ones as possible."""
    best = list(arguments)
    for i, argument in enumerate(exercise.arguments.values()):
        simplest = SIMPLEST.get(argument.kind, ())
        if np.size(best[i]) > MAX_SHOWN:
            continue
        for index, simple in itertools.product(np.ndindex(np.shape(best[i])), simplest):
            candidate = np.array(best[i])
            if candidate[index] in simplest[: simplest.index(simple)]:
                continue  # it is as simple as can be
            candidate[index] = simple
            tried = [
                *best[:i],
                candidate if argument.shape else candidate.item(),
                *best[i + 1 :],
            ]
            if _fails(exercise, answer, tuple(tried), block, failure):
                best = tried
    return tuple(best)


def _fails(
    exercise: Formula,
    answer: Answer,
    arguments: tuple[Any, ...],
    block: int,
    failure: Failure,
) -> dict[str, Any]:
    """Return the case, with numbers, if the answer fails there in this way, else {}."""
    right = _right_numbers(exercise, arguments)
    if right is None:
        return {}
    case = {
        name: _shown(value)
        for name, value in zip(exercise.arguments, arguments, strict=True)
    }
    try:
        ours = _run(exercise, answer, arguments)
    except (Unusable, NotImplementedError) as error:
        if failure is not Failure.SHAPE:
            return {}
        return {**case, "yours": str(error)}
    name = exercise.returns[block]
    returned = np.asarray(ours[block])
    expected = np.asarray(right[block])
    if returned.shape != expected.shape:
        if failure is not Failure.SHAPE:
            return {}
        case[f"your {name}"] = f"of shape {returned.shape}"
        case[f"right {name}"] = f"of shape {expected.shape}"
        return case
    returned = returned.astype(float)
    expected = expected.astype(float)
    if failure is not _failure_of(returned, expected):
        return {}
    return {**case, **_both(name, returned, expected)}


def _failure_of(returned: Array, expected: Array) -> Failure | None:
    """Return how a block differs from one of the same shape; None if it does not."""
    if not _agree(returned, expected):
        if np.isfinite(returned).all():
            return Failure.NUMBER
        return Failure.NOT_FINITE
    if not _same_digits(returned, expected).all():
        return Failure.DIGITS
    return None


def _both(name: str, ours: Array, right: Array) -> dict[str, Any]:
    """Return both results as they are shown, with 17 digits where six do not differ."""
    digits = 17
    if _shown(ours) != _shown(right):
        digits = 6
    return {
        f"your {name}": _shown(ours, digits),
        f"right {name}": _shown(right, digits),
    }


def _shown(value: Any, digits: int = 6) -> Any:
    """Return a value in a form that JSON holds and people read."""
    if callable(value):
        source = inspect.getsource(value).rpartition("return ")[2].strip()
        return f"the function {source}"
    if isinstance(value, np.ndarray):
        if value.size > MAX_SHOWN:
            return f"{value.size} numbers of shape {value.shape}"
        if value.ndim:
            return [_shown(item, digits) for item in value]
        return _shown(value.item(), digits)
    if isinstance(value, np.generic):
        return _shown(value.item(), digits)
    if isinstance(value, float):
        if not np.isfinite(value):
            return str(value)
        if value != float(f"{value:.12g}"):
            return float(f"{value:.{digits}g}")
    return value
