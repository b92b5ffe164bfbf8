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

from exactgrad import Proof, prove, prove_same

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
from .keys import find
from .processes import Ended

__all__ = ["PATHS", "agrees", "judge", "judge_formula", "right_in_floats"]

Array = NDArray[Any]
CASES = (1, 2)  # seeds of the arguments of the proofs
# of those where floats are compared: a proof holds for its path alone
PATHS = tuple(range(3, 15))
FRESH = 4  # more, of seeds that are drawn anew each time
WHOLE = ("zero-one", "label", "count", "given")  # kinds of arguments that cannot move
ROUNDING = 1e-9  # of the largest number of a block, where floats are compared
DIGITS = 1e-6  # of every number: what differs by more is asked for a proof
LEAST = 1e-13  # that a proof does not take for rounding
MOST_SILENT = 3  # proofs that tell nothing, of one block, before it is not asked again
FEW_DIGITS = 1e-4  # an error that is smaller looks like one of digits
LEAST_SIZE = 0.01  # of numbers whose factor is measured
SAME_FACTOR = 1e-6
TRIES = 12  # small cases of each size
# of rows, weights, draws, in one case: more than a loop or a table may expect
MANY = 40
SHOWN = MANY  # numbers of an array that are shown
BY_ARGUMENTS = "what it returns may depend on its arguments only, not on earlier calls"


class Found(NamedTuple):
    """How the block of an answer compares with another."""

    same: bool
    proved: bool = True
    reason: str = ""


class Rounding(Enum):
    """Which floats are right at a place, as terms cancel at extreme numbers in right formulas."""

    SMALL = "those that agree"
    PROVED = "finite ones as well, if a proof says that the formula is right"
    ANY = "all, unless a proof says that the formula is wrong"


class Place(NamedTuple):
    """Arguments other than those of the proofs."""

    where: str
    arguments: tuple[Any, ...]
    rounding: Rounding = Rounding.SMALL
    has_proof: bool = False  # small enough for one
    # what is wrong here alone is what an earlier call has left
    is_repeated: bool = False


class _Silence(io.TextIOBase):
    """Where prints go of an answer that is run with what is no float."""

    def write(self, text: str) -> int:
        return len(text)


class Failure(Enum):
    """How an answer is wrong in a case, the most telling first."""

    NUMBER = "other numbers"
    DIGITS = "other digits of a number that is small among the others"
    NOT_FINITE = "nan or inf among its numbers"
    SHAPE = "it raises, or has another shape"


def judge(name: str, answer: Any) -> Verdict:
    """Grade the answer to an exercise, in this process.

    Parameters
    ----------
    name : str
        Of the exercise.
    answer : callable, or mapping for the exercise ``which_detector_sees_it``

    Raises
    ------
    ValueError
        If there is no such exercise.
    """
    exercise = find(name)
    try:
        if isinstance(exercise, Formula):
            verdict = judge_formula(exercise, answer)
        else:
            verdict = exercise.judge(answer)
    except NotImplementedError:
        verdict = Verdict(name, False, "not answered", "it is not answered yet")
    except Unusable as error:
        verdict = Verdict(name, False, "unusable", str(error))
    replaced = _replaced()
    if not replaced:
        return verdict
    head = (
        f"it replaces {' and '.join(replaced)} for everyone, the grader too: restore what was "
        "there, and give functions of your own another name"
    )
    return Verdict(name, False, "unusable", head)


def _functions() -> dict[str, dict[str, Any]]:
    """Return the functions and classes of the modules that all numbers come from."""
    watched = {
        name: module
        for name, module in [*sys.modules.items()]
        if name == "math" or name.partition(".")[0] == "numpy"
    }
    return {
        name: {key: one for key, one in vars(module).items() if callable(one)}
        for name, module in watched.items()
    }


ORIGINAL = _functions()


def _replaced() -> list[str]:
    """Return the names of functions that are others than when this module was imported."""
    now = {name: vars(sys.modules[name]) for name in ORIGINAL if name in sys.modules}
    return [
        f"{name}.{key}"
        for name, some in now.items()
        for key, one in ORIGINAL[name].items()
        if some.get(key) is not one
    ]


def judge_formula(exercise: Formula, answer: Answer) -> Verdict:
    """Grade a function that can be compared exactly."""
    at_first = _check_first_calls(exercise, answer)
    elsewhere, raising = _wrong_elsewhere(exercise, answer)
    elsewhere = {**at_first, **elsewhere}
    found = [
        Found(False, reason=f"it is wrong {elsewhere[i].where}")
        if i in elsewhere
        else _compare(exercise, answer, exercise.right, i)
        for i in range(len(exercise.returns))
    ]
    if raising is not None and all(one.same for one in found):
        elsewhere = dict.fromkeys(range(len(found)), raising)
        found = [Found(False, reason=f"it raises {raising.where}")] * len(found)
    wrong = [i for i, one in enumerate(found) if not one.same]
    if not wrong:
        return _overflow(exercise, answer) or _passed(exercise, answer, found)
    findings = []
    for i in wrong:
        says = _diagnosis(exercise, answer, i)
        if says:
            findings.append(Finding(exercise.returns[i], says))
    head = _what_is_right(exercise, answer, found)
    if len(findings) == len(wrong):
        return Verdict(exercise.name, False, "known mistake", head, tuple(findings))
    unknown = [
        exercise.returns[i] for i in wrong if exercise.returns[i] not in dict(findings)
    ]
    cases: dict[str, dict[str, Any]] = {}
    for name in unknown:
        i = exercise.returns.index(name)
        if i in elsewhere and elsewhere[i].is_repeated:
            cases[name] = {}  # a case by itself may be right
            continue
        says = _in_common(exercise, answer, i)
        if says:
            findings.append(Finding(name, says))
        place = [elsewhere[i].arguments] if i in elsewhere else []
        # last: what it prints there is shown
        cases[name] = _smallest(exercise, answer, i, place)
    # floats do not see it
    for name in [name for name, case in cases.items() if not case]:
        findings.append(Finding(name, found[exercise.returns.index(name)].reason))
        del cases[name]
    return Verdict(exercise.name, False, "wrong", head, tuple(findings), cases)


# --- comparing


def _run(
    exercise: Formula, answer: Answer, arguments: tuple[Any, ...]
) -> tuple[Any, ...]:
    """Return the blocks of an answer, which may not change its arguments."""
    copies = tuple(np.copy(a) if isinstance(a, np.ndarray) else a for a in arguments)
    shapes = ", ".join(
        f"{name} {np.shape(value)}"
        for name, value in zip(exercise.arguments, arguments, strict=True)
        if not callable(value)
    )
    returned = ask(answer, *copies, about=f" (for arguments of the shapes {shapes})")
    for name, before, after in zip(exercise.arguments, arguments, copies, strict=True):
        if isinstance(before, np.ndarray) and not np.array_equal(before, after):
            raise Unusable(f"it changes its argument {name} in place; work on a copy")
    try:
        blocks = exercise.blocks(returned)
    except Unusable as error:
        raise Unusable(f"{error}{_last_line(answer, copies)}") from None
    # a number of a proof
    if any("exactgrad" in type(block).__module__ for block in blocks):
        raise Unusable(
            "it returns numbers of an earlier call: keep nothing between calls"
        )
    return blocks


def _last_line(answer: Answer, arguments: tuple[Any, ...]) -> str:
    """Run an answer once more, and return where it returned; '' for what is no function."""
    code, place = getattr(answer, "__code__", None), 0

    def look(frame: FrameType, event: str, _: object) -> Any:
        nonlocal place
        if frame.f_code is code and event == "return":
            place = frame.f_lineno
        return look if frame.f_code is code else None

    before = sys.gettrace()
    sys.settrace(look)
    try:
        answer(*arguments)
    finally:
        sys.settrace(before)
    line = linecache.getline(code.co_filename, place).strip() if code and place else ""
    return f", in line {place}, `{line}`" if line else ""


def _check_first_calls(exercise: Formula, answer: Answer) -> dict[int, Place]:
    """Check the shapes, and return the blocks whose numbers are wrong, with the place of each."""
    wrong: dict[int, Place] = {}
    if not callable(answer):
        raise Unusable(f"{exercise.name} must be a function; it is {answer!r}")
    for seed in CASES:
        arguments = exercise.draw(seed)
        found = _run(exercise, answer, arguments)
        right = exercise.blocks(exercise.right(*arguments))
        named = zip(exercise.returns, found, right, strict=True)
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
                wrong.setdefault(i, Place(where, arguments, is_repeated=True))
    return wrong


def _projected(
    exercise: Formula, answer: Answer, block: int, entries: Any = slice(None)
) -> Answer:
    """Return the answer's block as one number: the sum of its entries, each times a random one.

    A proof moves every number by itself: what must add up to 1 is made so again.
    """
    kinds = exercise.arguments.values()

    def number(*arguments: Any) -> Any:
        arguments = tuple(map(Argument.normalise, kinds, arguments))
        found = np.asarray(exercise.blocks(answer(*arguments))[block], object).ravel()[
            entries
        ]
        weights = random.Random(block)
        return sum(
            (weights.randrange(1, 1000) * one for one in found[1:]), sum(found[:1])
        )

    return number


def _places(exercise: Formula) -> Iterator[Place]:
    """Return arguments beside those of the proofs: of other sizes and with other numbers.

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
    one = dict.fromkeys(letters, 1)  # of the others: a case that can be read
    sizes += [
        (f"where there are {MANY} {NAMES[x]} {x}", {**one, x: MANY}) for x in letters
    ]
    sizes.append((f"where there are {MANY} of all", dict.fromkeys(letters, MANY)))
    seeds = itertools.count(PATHS[0])
    for where, some in sizes:
        larger = replace(exercise, sizes={**exercise.sizes, **some})
        yield Place(where, larger.draw(next(seeds)))
    for name, spread in SPREADS.items():
        rounding = Rounding.ANY if spread.is_wide else Rounding.PROVED
        for _ in range(spread.cases):
            arguments = exercise.draw(next(seeds), spread)
            yield Place(
                f"where numbers are {name}", arguments, rounding, has_proof=True
            )
    before, after = exercise.draw(next(seeds)), exercise.draw(next(seeds))
    yield Place("for these arguments", before)
    for name, changed in _one_changed(exercise, before, after):
        where = f"where {name} alone is another than at an earlier call; {BY_ARGUMENTS}"
        yield Place(where, changed, is_repeated=True)
    longer = replace(exercise, sizes={x: n + 1 for x, n in exercise.sizes.items()})
    mixed = zip(
        exercise.arguments.values(), before, longer.draw(next(seeds)), strict=True
    )
    where = f"where arrays alone are longer than at an earlier call; {BY_ARGUMENTS}"
    resized = tuple(new if one.shape else old for one, old, new in mixed)
    yield Place(where, resized, is_repeated=True)
    for arguments in exercise.places:
        yield Place("in this case", arguments, has_proof=True)


def _one_changed(
    exercise: Formula, before: tuple[Any, ...], after: tuple[Any, ...]
) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Return the name of each argument, and all arguments with another number in that one."""
    for i, (name, old, new) in enumerate(
        zip(exercise.arguments, before, after, strict=True)
    ):
        changed = new
        if exercise.arguments[name].shape:
            last = np.flatnonzero(old != new)[-1:]
            changed = old.copy()
            changed.flat[last] = new.flat[last]
            changed = exercise.arguments[name].normalise(changed)
        yield name, (*before[:i], changed, *before[i + 1 :])


def _wrong_elsewhere(
    exercise: Formula, answer: Answer, has_proofs: bool = True
) -> tuple[dict[int, Place], Place | None]:
    """Return for each wrong block the first place where it shows, and one where it raises.

    Places at which the right answer is not finite, or there is none, are passed over. Without
    proofs, what floats leave in doubt is taken for right.
    """
    wrong: dict[int, Place] = {}
    raising = None
    returned: list[Array] = []
    silent = Counter[int]() if has_proofs else None
    for place in _places(exercise):
        right = _right_numbers(exercise, place.arguments)
        if right is None:
            continue
        copies = [np.copy(one) for one in returned]
        try:
            ours = [
                np.asarray(one, float)
                for one in _run(exercise, answer, place.arguments)
            ]
        except (Unusable, NotImplementedError, TypeError, ValueError):
            raising = raising or place
            continue
        if not all(map(np.array_equal, returned, copies, itertools.repeat(True))):
            raise Unusable(
                "what it returned changes at its next call; return new arrays"
            )
        returned = ours
        for i, both in enumerate(zip(ours, right, strict=True)):
            if i not in wrong and not _is_right(
                exercise, answer, i, place, *both, silent
            ):
                wrong[i] = place
    return wrong, raising


def _is_right(
    exercise: Formula,
    answer: Answer,
    block: int,
    place: Place,
    ours: Any,
    right: Any,
    silent: Counter[int] | None,
) -> bool:
    """Tell whether a block is right at a place: in floats, or by a proof where they leave a doubt.

    A number that is small among the others has other digits where a floor or a limit changes it,
    and where terms cancel: the proof tells one from the other. How often it told nothing of a
    block is counted in `silent`, which is None where no proof can be asked.
    """
    agree = _agree(ours, right)
    if not place.has_proof or np.shape(ours) != np.shape(right):
        return agree
    doubtful = ~_same_digits(ours, right)
    if _is_whole(exercise) or (agree and not doubtful.any()):
        return agree and not doubtful.any()
    finite = np.isfinite(ours).all()
    if not agree and (
        place.rounding is Rounding.SMALL
        or (place.rounding is Rounding.PROVED and not finite)
    ):
        return False
    if silent is None:
        return True
    verdict = "silent"
    if silent[block] < MOST_SILENT:
        entries = np.flatnonzero(doubtful) if doubtful.any() else slice(None)
        right_answer = exercise.right
        proof = _prove_at(
            exercise, answer, right_answer, block, place.arguments, entries=entries
        )
        verdict = "silent" if isinstance(proof, str) else proof.verdict
    if verdict in ("proved", "refuted"):
        return verdict == "proved"
    silent[block] += 1
    return agree or place.rounding is Rounding.ANY


def _right_numbers(
    exercise: Formula, arguments: tuple[Any, ...]
) -> tuple[Any, ...] | None:
    """Return the blocks of the right answer; None if there is none, or a number is not finite."""
    try:
        with np.errstate(all="ignore"):
            right = exercise.blocks(exercise.right(*arguments))
    except Exception:  # no case for this exercise
        return None
    finite = all(np.isfinite(np.asarray(one, float)).all() for one in right)
    return right if finite else None


def _compare(exercise: Formula, answer: Answer, other: Answer, block: int) -> Found:
    """Compare one block of two answers: in floats on many paths, and exactly if that can be done.

    Floats come first, as they are quick, and see the paths that the proofs do not take.
    """
    if not _agree_on_paths(exercise, answer, block, other):
        return Found(False, reason="its floats are others")
    if _is_whole(exercise):
        return Found(
            True, False, f"its numbers are whole: compared in {len(PATHS)} cases"
        )
    proved = True
    for seed in CASES:
        proof = _prove_at(exercise, answer, other, block, exercise.draw(seed), seed)
        if isinstance(proof, str):  # the values are no numbers, nan for instance
            return Found(False, reason=f"it cannot be compared: {proof}")
        if proof.verdict == "refuted":
            return Found(False, reason=str(proof.wrong[0]))
        if proof.verdict == "not traceable":
            return Found(True, False, f"in floats; it is not proved, as {proof.reason}")
        proved &= proof.proved
    by_identities = "to twelve digits, but by identities that the proof does not know"
    return Found(True, proved, "" if proved else by_identities)


def _is_whole(exercise: Formula) -> bool:
    return all(one.kind in WHOLE for one in exercise.arguments.values())


def _prove_at(
    exercise: Formula,
    answer: Answer,
    other: Answer,
    block: int,
    arguments: tuple[Any, ...],
    seed: int = 0,
    entries: Any = slice(None),
) -> Proof | str:
    """Prove or refute that entries of a block are the same, or return why it cannot be asked."""
    first, second = (
        _projected(exercise, one, block, entries) for one in (answer, other)
    )
    try:
        with redirect_stdout(_Silence()):
            return prove_same(first, second, *arguments, seed=seed)
    except Exception as error:
        return str(error)


def _agree_on_paths(
    exercise: Formula, answer: Answer, block: int, other: Answer | None = None
) -> bool:
    """Compare a block of two answers in floats; the other is the right one unless given."""
    right = other or exercise.right
    cases = map(exercise.draw, PATHS)
    return all(_close(exercise, answer, right, block, arguments) for arguments in cases)


def _close(
    exercise: Formula,
    answer: Answer,
    other: Answer,
    block: int,
    arguments: tuple[Any, ...],
) -> bool:
    ours = _run(exercise, answer, arguments)[block]
    with np.errstate(all="ignore"):
        return _agree(ours, exercise.blocks(other(*arguments))[block])


def right_in_floats(exercise: Formula, answer: Answer) -> bool:
    """Tell whether an answer is right wherever it is compared in floats.

    That is at the same arguments as in `judge_formula`, and at some that nobody can know before.
    """
    fresh = [secrets.randbelow(2**32) for _ in range(FRESH)]
    try:
        if _check_first_calls(exercise, answer):
            return False
        for seed in (*CASES, *PATHS, *fresh):
            arguments = exercise.draw(seed)
            if not agrees(exercise, arguments, ask(answer, *arguments)):
                return False
        wrong, raising = _wrong_elsewhere(exercise, answer, has_proofs=False)
        return not wrong and raising is None and _overflow(exercise, answer) is None
    except Ended:
        raise
    except Exception:  # what it returns may be anything
        return False


def agrees(exercise: Formula, arguments: tuple[Any, ...], returned: Any) -> bool:
    """Tell whether what an answer returned is right but for rounding."""
    with np.errstate(all="ignore"):
        right = exercise.blocks(exercise.right(*arguments))
    return all(map(_agree, exercise.blocks(returned), right))


def _agree(mine: Any, right: Any) -> bool:
    ours, theirs = np.asarray(mine, float), np.asarray(right, float)
    if ours.shape != theirs.shape:
        return False
    scale = np.max(np.abs(theirs), initial=1.0, where=np.isfinite(theirs))
    return bool(
        np.allclose(ours, theirs, rtol=0, atol=ROUNDING * scale, equal_nan=True)
    )


def _same_digits(mine: Any, right: Any) -> Array:
    """Tell of each number of two blocks of one shape whether its digits are the same."""
    ours, theirs = np.asarray(mine, float), np.asarray(right, float)
    return np.atleast_1d(
        np.isclose(ours, theirs, rtol=DIGITS, atol=LEAST, equal_nan=True)
    )


# --- what is right


def _slopes_proved(exercise: Formula, answer: Answer) -> tuple[bool, int]:
    """Prove that the blocks of derivatives are those of the answer's own value."""
    names = list(exercise.arguments)
    places = [names.index(by) for by in exercise.slopes.values()]
    blocks = [exercise.returns.index(name) for name in exercise.slopes]
    total = 0
    for seed in CASES:
        drawn = exercise.draw(seed)
        moved = [np.asarray(drawn[i]) for i in places]
        cuts = np.cumsum([one.size for one in moved])[:-1].tolist()

        def value_and_grad(
            theta: Any, *rest: Any, cuts: Any = cuts, moved: Any = moved
        ) -> tuple[Any, Array]:
            arguments = list(rest)
            for i, part, like in zip(places, np.split(theta, cuts), moved, strict=True):
                arguments[i] = part.reshape(like.shape) if like.ndim else part[0]
            found = exercise.blocks(answer(*arguments))
            slopes = [np.ravel(np.asarray(found[i], object)) for i in blocks]
            return found[0], np.concatenate(slopes)

        theta = np.concatenate([one.ravel() for one in moved])
        total = theta.size
        try:
            with redirect_stdout(_Silence()):
                proof = prove(value_and_grad, theta, *drawn, n_points=0, seed=seed)
        except Exception:
            return False, total
        if not proof:
            return False, total
    return True, total


def _passed(exercise: Formula, answer: Answer, found: list[Found]) -> Verdict:
    unproved = next((one for one in found if not one.proved), None)
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
    """Return a verdict if the answer, whose formula is right, fails in floats at an extreme."""
    for *arguments, right in exercise.extremes:
        ours = np.asarray(_run(exercise, answer, tuple(arguments))[0], float)
        if not np.allclose(ours, right, rtol=1e-12, atol=0):
            names = zip(exercise.arguments, arguments, strict=True)
            case = {name: _shown(value) for name, value in names}
            name = exercise.returns[0]
            case |= _both(name, ours, right)
            head = "the formula is right, but floats overflow or cancel"
            return Verdict(exercise.name, False, "wrong", head, cases={name: case})
    return None


def _listed(names: Sequence[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last} are right" if first else f"{last} is right"


def _what_is_right(exercise: Formula, answer: Answer, found: list[Found]) -> str:
    right = [
        name for name, one in zip(exercise.returns, found, strict=True) if one.same
    ]
    wrong = [
        name for name, one in zip(exercise.returns, found, strict=True) if not one.same
    ]
    parts = [_listed(right)] if right else []
    parts.append(f"{', '.join(wrong)} {'are' if len(wrong) > 1 else 'is'} wrong")
    if (
        exercise.slopes
        and exercise.returns[0] in wrong
        and _slopes_proved(exercise, answer)[0]
    ):
        parts.append("the derivatives are exactly those of this other value")
    return "; ".join(parts)


# --- what is wrong


def _diagnosis(exercise: Formula, answer: Answer, block: int) -> str:
    """Return what is wrong with a block, if it is a known mistake, two of them, or a factor."""
    if _agree_on_paths(exercise, answer, block):
        return ""  # a mistake that has a name shows there
    general = (
        (says, _after(exercise, change, block)) for says, change in _generic(exercise)
    )
    for says, variant in itertools.chain(
        _edited(exercise, 1), general, _edited(exercise, 2)
    ):
        try:
            if not _compare(exercise, answer, variant, block).same:
                continue
            if not _compare(exercise, variant, exercise.right, block).same:
                return says  # else the answer is right there, and wrong for other sizes
        except Unusable:  # the mistake gives another shape, or none
            continue
    return ""


def _edited(exercise: Formula, number: int) -> Iterator[tuple[str, Answer]]:
    """Return the right answer with each mistake, or each pair of them, and what to say."""
    for mistakes in itertools.combinations(exercise.wrong, number):
        variant = exercise.edited(*mistakes)
        if variant is not None:
            yield " And: ".join(one.says for one in mistakes), variant


def _generic(exercise: Formula) -> Iterator[tuple[str, Callable[[Any], Any]]]:
    yield "its sign is the other way round", lambda right: -right
    yield "it is half of what is right", lambda right: right / 2
    yield "it is twice what is right", lambda right: right * 2
    for letter in exercise.letters:
        size = exercise.sizes[letter]
        if size > 2:
            what = f"the number of {NAMES[letter]} {letter}"
            yield (
                f"it is divided by {what}, once too often",
                partial(operator.mul, 1 / size),
            )
            yield (
                f"it is multiplied by {what}, once too often",
                partial(operator.mul, size),
            )
    yield "it is transposed", lambda right: right.T
    yield "it is the square of what is right", lambda right: right * right
    yield "it is one over what is right", lambda right: 1 / right


def _in_common(exercise: Formula, answer: Answer, block: int) -> str:
    """Return what all numbers of a wrong block have in common: a factor, or right first digits."""
    errors, factors, residuals = [], [], []
    drawn = [exercise.draw(seed) for seed in PATHS]
    places = [
        one.arguments for one in _places(exercise) if one.rounding is not Rounding.ANY
    ]
    for i, arguments in enumerate([*drawn, *places]):
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
        if i < len(PATHS):
            errors.append(np.max(np.abs(ours - theirs), initial=0.0) / scale)
        if size > LEAST_SIZE:
            factor = np.vdot(theirs, ours) / np.vdot(theirs, theirs)
            factors.append(factor)
            residuals.append(np.max(np.abs(ours - factor * theirs)) / scale)
    is_factor = factors and np.ptp(factors) < SAME_FACTOR and max(residuals) < ROUNDING
    if is_factor and abs(factors[0]) < SAME_FACTOR:
        return "it is 0 everywhere"
    if is_factor and abs(factors[0] - 1) > FEW_DIGITS:
        return f"it is {factors[0]:.6g} times what is right, everywhere"
    if ROUNDING < max(errors, default=0.0) < FEW_DIGITS:
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
    places: Sequence[tuple[Any, ...]] = (),
) -> dict[str, Any]:
    """Return the smallest case in which a block of the answer is wrong, with numbers.

    The fewest samples, rows and units, and the simplest numbers; then one of `places`, at which
    it is known to be wrong, with simpler numbers, then those of the proofs; {} if floats see none.
    Wrong numbers say more than nan, and nan says more than another shape.
    """
    drawn = [exercise.draw(seed) for seed in (*CASES, *PATHS)]
    for failure in Failure:
        everywhere = itertools.chain(_small_cases(exercise), places, drawn)
        # other digits may be rounding where nothing is known to be wrong
        for arguments in places if failure is Failure.DIGITS else everywhere:
            if _fails(exercise, answer, arguments, block, failure):
                simple = _simpler(exercise, answer, arguments, block, failure)
                return _fails(exercise, answer, simple, block, failure)
    return {}


def _small_cases(exercise: Formula) -> Iterator[tuple[Any, ...]]:
    """Return arguments of growing sizes, with numbers that people can read."""
    letters = exercise.letters
    choices = itertools.product(
        *(range(1, exercise.sizes[letter] + 1) for letter in letters)
    )
    for sizes in sorted(choices, key=lambda some: (sum(some), some)):
        at = dict(zip(letters, sizes, strict=True))
        for among in (1, 2, 3, 5):
            rng = np.random.default_rng(among)
            for _ in range(1 if among == 1 else TRIES):
                yield tuple(
                    one.small(rng, at, among) for one in exercise.arguments.values()
                )


def _simpler(
    exercise: Formula,
    answer: Answer,
    arguments: tuple[Any, ...],
    block: int,
    failure: Failure,
) -> tuple[Any, ...]:
    """Return arguments that fail as well, with as many zeros and ones as there can be."""
    best = list(arguments)
    for i, one in enumerate(exercise.arguments.values()):
        simplest = {"real": (0.0, 1.0), "logit": (0.0, 1.0), "positive": (1.0,)}.get(
            one.kind, ()
        )
        if np.size(best[i]) > SHOWN:
            continue
        for index, simple in itertools.product(np.ndindex(np.shape(best[i])), simplest):
            now = np.array(best[i])
            if now[index] in simplest[: simplest.index(simple)]:
                continue  # it is as simple as can be
            now[index] = simple
            tried = [*best[:i], now if one.shape else now.item(), *best[i + 1 :]]
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
    """Return the case with numbers if the answer is wrong there in this way, else {}."""
    right = _right_numbers(exercise, arguments)
    if right is None:
        return {}
    shown = {
        name: _shown(value)
        for name, value in zip(exercise.arguments, arguments, strict=True)
    }
    try:
        ours = _run(exercise, answer, arguments)
    except (Unusable, NotImplementedError) as error:
        return {**shown, "yours": str(error)} if failure is Failure.SHAPE else {}
    name, found, expected = exercise.returns[block], ours[block], right[block]
    if np.shape(found) != np.shape(expected):
        case = {f"your {name}": found, f"right {name}": expected}
        said = {whose: f"of shape {np.shape(value)}" for whose, value in case.items()}
        return {**shown, **said} if failure is Failure.SHAPE else {}
    mine, theirs = np.asarray(found, float), np.asarray(expected, float)
    if _agree(mine, theirs):
        wanted = None if _same_digits(mine, theirs).all() else Failure.DIGITS
    else:
        wanted = Failure.NUMBER if np.isfinite(mine).all() else Failure.NOT_FINITE
    if failure is not wanted:
        return {}
    return {**shown, **_both(name, mine, theirs)}


def _both(name: str, ours: Array, right: Array) -> dict[str, Any]:
    """Return two results as they are shown: with all digits if six do not tell them apart."""
    digits = 6 if _shown(ours) != _shown(right) else 17
    return {
        f"your {name}": _shown(ours, digits),
        f"right {name}": _shown(right, digits),
    }


def _shown(value: Any, digits: int = 6) -> Any:
    """Return a value as JSON and people can read it; short numbers are shown as they are."""
    if callable(value):
        return (
            f"the function {inspect.getsource(value).rpartition('return ')[2].strip()}"
        )
    if isinstance(value, np.ndarray):
        if value.size > SHOWN:
            return f"{value.size} numbers of shape {value.shape}"
        if value.ndim:
            return [_shown(one, digits) for one in value]
        return _shown(value.item(), digits)
    if isinstance(value, np.generic):
        return _shown(value.item(), digits)
    if isinstance(value, float):
        if not np.isfinite(value):
            return str(value)
        return (
            value if value == float(f"{value:.12g}") else float(f"{value:.{digits}g}")
        )
    return value
