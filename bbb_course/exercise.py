"""What an exercise is: a right answer, arguments to try it on, and mistakes that have a name."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property, partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .alone import Unusable, describe
from .processes import Ended

__all__ = ["SPREADS", "VERDICTS", "Argument", "Exercise", "Finding", "Formula", "Raised",
           "Unusable", "Verdict", "Wrong", "ask", "count", "formula", "given", "label", "logit",
           "positive", "real", "shares", "unit", "zero_one"]  # fmt: skip

Array = NDArray[Any]
Answer = Callable[..., Any]
Sizes = Mapping[str, int]
VERDICTS = ("proved", "right", "known mistake", "wrong", "not answered", "unusable", "stopped",
            "scored")  # fmt: skip

# What a letter in a shape stands for, and how large it is in a proof. Powers of two where one
# divides by it: 1/2 and 1/4 are exact in floats as well.
SIZES = {"S": 2, "B": 4, "N": 4, "P": 3, "I": 2, "H": 3, "K": 2, "C": 3, "T": 4}
NAMES = {"S": "weight samples", "B": "rows", "N": "examples", "P": "weights", "I": "inputs",
         "H": "hidden units", "K": "outputs", "C": "classes", "T": "draws"}  # fmt: skip
SMALL = {  # that the smallest failing case is made of, the simplest first
    "real": (0.0, 1.0, -1.0, 2.0, 0.5),
    "logit": (0.0, 1.0, -1.0, 2.0),
    "positive": (1.0, 2.0, 0.5, 3.0),
    "unit": (0.5, 0.25, 0.75),
    "shares": (1.0, 3.0),  # before each row is divided by its sum
    "zero-one": (0, 1),
    "count": (0, 1, 2, 3),
}


class Spread(NamedTuple):
    """Where numbers lie that are drawn evenly: real ones, logarithms of positive ones; counts."""

    real: tuple[float, float]
    log: tuple[
        float, float
    ]  # of positive numbers, and log odds of those between 0 and 1
    mean_count: float
    cases: int = 8
    has_magnitudes: bool = False  # `real` is of the logarithms of absolute values
    is_wide: bool = (
        False  # so wide that digits cancel in right answers: only proofs compare there
    )


# Beside those of the proofs, for clipped tails, floors, and limits that stand in for a formula.
# log(1 + exp(-12)) has ten digits yet; exp(60) and its square are floats.
SPREADS = {
    "near 0 or 1": Spread((-0.01, 0.01), (-0.01, 0.01), 2.0),
    "tiny": Spread((-0.01, 0.01), (-12.0, 0.0), 1.0),
    "far apart": Spread((-12.0, 12.0), (-12.0, 12.0), 10.0),
    "large": Spread((-12.0, 60.0), (0.0, 6.0), 40.0),
    "very far apart": Spread(
        (-25.0, 25.0), (-25.0, 25.0), 40.0, cases=16, is_wide=True
    ),
    "of all magnitudes": Spread(
        (-25.0, 12.0), (-35.0, 25.0), 40.0, cases=24, has_magnitudes=True, is_wide=True
    ),
}


class Argument(NamedTuple):
    """One argument of the function that the student writes: its kind, and an axis a letter.

    *real*, *logit* (whose sigmoid is neither 0 nor 1 in floats), *positive*, *unit* (between 0 and
    1), *shares* (positive, along the last axis 1 in all), *zero-one*, *label* (0 to C - 1),
    *count*, or *given*: one of some values, the simplest first.
    """

    kind: str
    shape: str = ""
    values: tuple[Any, ...] = ()

    def draw(
        self, rng: np.random.Generator, sizes: Sizes, spread: Spread | None = None
    ) -> Any:
        """Return random numbers, of a moderate size for proofs, or drawn evenly from a spread."""
        if self.kind == "given":
            return self.values[rng.integers(len(self.values))]
        shape = tuple(sizes[letter] for letter in self.shape)
        if self.kind == "count":
            return rng.poisson(spread.mean_count if spread else 2.0, shape)
        if self.kind in ("zero-one", "label"):
            return rng.integers(0, 2 if self.kind == "zero-one" else sizes["C"], shape)
        drawn: Any
        if spread is None:
            scale = 0.4 if self.kind in ("positive", "shares") else 1.0
            drawn = rng.standard_normal(shape) * scale
        else:
            drawn = rng.uniform(
                *(spread.real if self.kind == "real" else spread.log), shape
            )
        if spread and spread.has_magnitudes and self.kind == "real":
            drawn = rng.choice([-1.0, 1.0], shape) * np.exp(drawn)
        if self.kind in ("positive", "shares"):
            drawn = np.exp(drawn)
        elif self.kind == "unit":
            drawn = 1 / (1 + np.exp(-drawn))
        return self.normalise(np.asarray(drawn)) if self.shape else float(drawn)

    def normalise(self, value: Any) -> Any:
        """Return shares divided by their sum, and other numbers as they are."""
        return (
            value / np.sum(value, axis=-1, keepdims=True)
            if self.kind == "shares"
            else value
        )

    def small(self, rng: np.random.Generator, sizes: Sizes, among: int) -> Any:
        """Return numbers of the `among` simplest ones, to be read by people."""
        if self.kind == "given":
            return self.values[rng.integers(min(among, len(self.values)))]
        shape = tuple(sizes[letter] for letter in self.shape)
        simple = range(sizes["C"]) if self.kind == "label" else SMALL[self.kind][:among]
        drawn = rng.choice(np.array(simple), shape)
        return self.normalise(drawn) if self.shape else drawn.item()


# An argument of these numbers, from the letters of its shape
real, logit, positive, unit, shares, zero_one, count, label = (
    partial(Argument, kind)
    for kind in (
        "real",
        "logit",
        "positive",
        "unit",
        "shares",
        "zero-one",
        "count",
        "label",
    )
)


def given(*values: Any) -> Argument:
    """Return an argument that is one of some values, the first being that of the proofs.

    Whole numbers, or one that is the same in all cases, a function for instance.
    """
    return Argument("given", values=values)


class Raised(Exception):
    """An answer raised something in another process; the text says what, and where."""


def ask(answer: Answer, *arguments: Any, about: str = "", blocks: int = 0) -> Any:
    """Return what an answer returns, or so many arrays of floats.

    Raises
    ------
    Unusable
        If it raises; what is not answered yet, or out of memory, says so itself.
    """
    try:
        with np.errstate(all="ignore"):
            returned = answer(*arguments)
        if blocks:
            returned = tuple(np.asarray(one, float) for one in returned)
            if len(returned) != blocks:
                raise Unusable(
                    f"it returns {len(returned)} things; asked for are {blocks}"
                )
        return returned
    except (NotImplementedError, MemoryError, Unusable, Ended):
        raise
    except Exception as error:
        says = str(error) if isinstance(error, Raised) else describe(error)
        raise Unusable(f"{says}{about}") from None


class Wrong(NamedTuple):
    """A known mistake: an edit of the right answer's source, and what to say of it."""

    old: str
    new: str
    says: str


class Finding(NamedTuple):
    """What is known of one block of the answer."""

    block: str
    says: str


@dataclass(frozen=True)
class Verdict:
    """What the grader says of one answer.

    `verdict` is ``proved``, ``right`` (all but proved: the headline says how), ``known mistake``,
    ``wrong``, ``not answered``, ``unusable`` (it raises, or returns another shape), ``stopped`` (by
    a limit) or ``scored``. `findings` say what is wrong, by block; `cases` have the smallest that
    fails: arguments, what the answer gives, what is right. `score` is of those that are scored.
    `printed` has the last lines that the answer printed, where it ran in a process of its own.
    """

    exercise: str
    passed: bool
    verdict: str
    headline: str
    findings: tuple[Finding, ...] = ()
    cases: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    score: Mapping[str, float] = field(default_factory=dict)
    printed: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [
            f"{self.exercise}: {'PASSED' if self.passed else 'not yet'}, {self.headline}"
        ]
        for finding in self.findings:
            lines += textwrap.wrap(f"{finding.block}: {finding.says}", 94)
        for block, case in self.cases.items():
            lines.append(f"the smallest case in which {block} is wrong:")
            lines += [f"  {name} = {value}" for name, value in case.items()]
        if self.printed and not self.passed:
            lines.append("the last lines that it printed:")
            lines += [f"  {line}" for line in self.printed]
        return "\n  ".join(lines)

    def as_dict(self) -> dict[str, Any]:
        """Return what JSON can hold."""
        plain = asdict(self)
        plain["findings"] = [finding._asdict() for finding in self.findings]
        plain["score"] = {
            name: number if np.isfinite(number) else None
            for name, number in self.score.items()
        }
        return plain


@dataclass(frozen=True, kw_only=True)
class Exercise:
    """What all exercises have."""

    name: str  # of the function, or the table, that the student writes
    tags: tuple[str, ...]  # the entries of the book that it is about

    patience: ClassVar[float] = (
        1.0  # time limits are this much longer: some run an answer often
    )

    def judge(self, answer: Any) -> Verdict:
        """Grade what the student wrote."""
        raise TypeError(f"{type(self).__name__} cannot be graded")


@dataclass(frozen=True, kw_only=True)
class Formula(Exercise):
    """An exercise whose answer is a function that can be compared exactly."""

    right: Answer  # from the arguments to a block or a tuple of blocks
    arguments: Mapping[str, Argument]
    returns: tuple[str, ...]  # names of the blocks
    # blocks that must be derivatives of the first block, and by which argument
    slopes: Mapping[str, str]
    wrong: tuple[Wrong, ...]
    sizes: Mapping[str, int]  # of the letters, in proofs
    # arguments at which floats overflow unless one takes care; the last entry is what is right
    extremes: tuple[tuple[Any, ...], ...]
    # arguments at which answers differ that agree at random ones: ties, zeros, near a singular one
    places: tuple[tuple[Any, ...], ...] = ()

    @cached_property
    def source(self) -> str:
        """The right answer's source, from its ``def`` on."""
        text = textwrap.dedent(inspect.getsource(self.right))
        return text[text.index("def ") :]

    def edited(self, *mistakes: Wrong) -> Answer | None:
        """Return the right answer with some mistakes in it; None if they do not go together."""
        text = self.source
        for mistake in mistakes:
            if text.count(mistake.old) != 1:
                return None
            text = text.replace(mistake.old, mistake.new)
        scope = dict(self.right.__globals__)
        exec(compile(text, f"<{self.name}>", "exec"), scope)
        edited: Answer = scope[self.right.__name__]
        return edited

    @property
    def letters(self) -> list[str]:
        """The letters of all shapes."""
        return list(
            dict.fromkeys("".join(one.shape for one in self.arguments.values()))
        )

    def draw(self, seed: int, spread: Spread | None = None) -> tuple[Any, ...]:
        """Return random arguments, for a proof, or drawn evenly from a spread."""
        rng = np.random.default_rng(seed)
        return tuple(
            one.draw(rng, self.sizes, spread) for one in self.arguments.values()
        )

    def blocks(self, returned: Any) -> tuple[Any, ...]:
        """Return what a function returned, block by block; Unusable if it has not as many."""
        if len(self.returns) == 1:
            return (returned,)
        if not isinstance(returned, Sequence) or len(returned) != len(self.returns):
            found = (
                f"{len(returned)} things"
                if isinstance(returned, Sequence)
                else "one thing"
            )
            raise Unusable(
                f"it returns {found}; asked for are {', '.join(self.returns)}"
            )
        return tuple(returned)


def formula(
    returns: str,
    tags: str,
    wrong: Mapping[str, Mapping[str, str]] | None = None,
    slopes: Mapping[str, str] | None = None,
    sizes: Mapping[str, int] | None = None,
    extremes: Sequence[tuple[Any, ...]] = (),
    places: Sequence[tuple[Any, ...]] = (),
    **arguments: Argument,
) -> Callable[[Answer], Formula]:
    """Make an exercise of its right answer; the arguments are named as the function names them.

    `returns` are names of blocks, `tags` entries of the book, `wrong` known mistakes: edits of the
    source, each old text there once, to new ones and what is said of them; others: `Formula`
    """
    mistakes = tuple(
        Wrong(old, new, says)
        for old, edits in (wrong or {}).items()
        for new, says in edits.items()
    )

    def made(function: Answer) -> Formula:
        return Formula(
            name=function.__name__,
            tags=tuple(tags.split()),
            right=function,
            arguments=arguments,
            returns=tuple(returns.split()),
            slopes=slopes or {},
            wrong=mistakes,
            sizes={**SIZES, **(sizes or {})},
            extremes=tuple(extremes),
            places=tuple(places),
        )

    return made
