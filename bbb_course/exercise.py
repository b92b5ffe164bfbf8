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
           "Unusable", "Verdict", "Wrong", "ask", "count", "formula", "given", "known_mistakes",
           "label", "logit", "positive", "real", "shares", "unit", "zero_one"]  # fmt: skip

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
    """Intervals from which arguments are drawn evenly.

    Attributes
    ----------
    real : tuple of float
        Interval of real numbers.
    log : tuple of float
        Interval of the logarithms of positive numbers, and of the log odds of those in (0, 1).
    mean_count : float
        Mean of counts, which are Poisson.
    cases : int
        Number of cases that are drawn.
    has_magnitudes : bool
        Whether `real` is the interval of the logarithms of absolute values.
    is_wide : bool
        Whether it is so wide that digits cancel in right answers, so that only proofs decide.
    """

    real: tuple[float, float]
    log: tuple[float, float]
    mean_count: float
    cases: int = 8
    has_magnitudes: bool = False
    is_wide: bool = False


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
        """Return random numbers for this argument.

        Parameters
        ----------
        rng : Generator
        sizes : mapping of str to int
            Length of the axis of each letter.
        spread : Spread, optional
            Intervals to draw from evenly. By default numbers of about unit size.
        """
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
            interval = spread.real if self.kind == "real" else spread.log
            drawn = rng.uniform(*interval, shape)
        if spread and spread.has_magnitudes and self.kind == "real":
            drawn = rng.choice([-1.0, 1.0], shape) * np.exp(drawn)
        if self.kind in ("positive", "shares"):
            drawn = np.exp(drawn)
        elif self.kind == "unit":
            drawn = 1 / (1 + np.exp(-drawn))
        return self.normalise(np.asarray(drawn)) if self.shape else float(drawn)

    def normalise(self, value: Any) -> Any:
        """Return shares divided by their sum, and other numbers as they are."""
        if self.kind != "shares":
            return value
        return value / np.sum(value, axis=-1, keepdims=True)

    def small(self, rng: np.random.Generator, sizes: Sizes, n_choices: int) -> Any:
        """Return numbers that people can read.

        Parameters
        ----------
        rng : Generator
        sizes : mapping of str to int
            Length of the axis of each letter.
        n_choices : int
            How many of the simplest numbers to choose from.
        """
        if self.kind == "given":
            return self.values[rng.integers(min(n_choices, len(self.values)))]
        shape = tuple(sizes[letter] for letter in self.shape)
        simple = (
            range(sizes["C"]) if self.kind == "label" else SMALL[self.kind][:n_choices]
        )
        drawn = rng.choice(np.array(simple), shape)
        return self.normalise(drawn) if self.shape else drawn.item()


# Each makes an argument from the letters of its shape
real = partial(Argument, "real")
logit = partial(Argument, "logit")
positive = partial(Argument, "positive")
unit = partial(Argument, "unit")
shares = partial(Argument, "shares")
zero_one = partial(Argument, "zero-one")
count = partial(Argument, "count")
label = partial(Argument, "label")


def given(*values: Any) -> Argument:
    """Return an argument that is one of some values, of which proofs take the first.

    Parameters
    ----------
    *values : Any
        Whole numbers, or one value for all cases, such as a function.
    """
    return Argument("given", values=values)


class Raised(Exception):
    """An answer raised something in another process; the text says what, and where."""


def ask(answer: Answer, *arguments: Any, about: str = "", blocks: int = 0) -> Any:
    """Call an answer, and return what it returns.

    Parameters
    ----------
    answer : callable
    *arguments : Any
        What it is called with.
    about : str
        Added to the message of its error, such as the shapes of the arguments.
    blocks : int
        Number of arrays of floats that it must return; 0 takes anything.

    Raises
    ------
    Unusable
        If it raises. NotImplementedError and MemoryError are passed on.
    """
    try:
        with np.errstate(all="ignore"):
            returned = answer(*arguments)
        if blocks:
            returned = tuple(np.asarray(block, float) for block in returned)
            if len(returned) != blocks:
                raise Unusable(
                    f"it returns {len(returned)} things; asked for are {blocks}"
                )
        return returned
    except (NotImplementedError, MemoryError, Unusable, Ended):
        raise
    except Exception as error:
        message = str(error)
        if not isinstance(error, Raised):
            message = describe(error)
        raise Unusable(f"{message}{about}") from None


class Wrong(NamedTuple):
    """A known mistake: an edit of the right answer's source, and what to say of it."""

    old: str
    new: str
    says: str


def known_mistakes(edits: Mapping[str, Mapping[str, str]]) -> tuple[Wrong, ...]:
    """Return the known mistakes of a table, as `formula` takes it."""
    return tuple(
        Wrong(old, new, says)
        for old, sentences in edits.items()
        for new, says in sentences.items()
    )


class Finding(NamedTuple):
    """What is known of one block of the answer."""

    block: str
    says: str


@dataclass(frozen=True)
class Verdict:
    """What the grader says of one answer.

    Attributes
    ----------
    exercise : str
        Name of the exercise.
    passed : bool
    verdict : str
        'proved', 'right' (all but proved: the headline says how), 'known mistake', 'wrong',
        'not answered', 'unusable' (it raises, or returns another shape), 'stopped' (by a limit)
        or 'scored'.
    headline : str
        The verdict in a sentence.
    findings : tuple of Finding
        What is wrong with each block.
    cases : mapping of str to mapping
        The smallest case that fails, for each block: arguments, what the answer returns, and
        what is right.
    score : mapping of str to float
        Numbers of an exercise that is scored.
    printed : tuple of str
        The last lines that the answer printed, where it ran in a process of its own.
    variant : str
        Seed of the variant that was graded; '' for the exercise of the book.
    seconds : float
        Time that grading a file took.
    """

    exercise: str
    passed: bool
    verdict: str
    headline: str
    findings: tuple[Finding, ...] = ()
    cases: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    score: Mapping[str, float] = field(default_factory=dict)
    printed: tuple[str, ...] = ()
    variant: str = ""
    seconds: float = 0.0

    def __str__(self) -> str:
        result = "PASSED" if self.passed else "not yet"
        lines = [f"{self.exercise}: {result}, {self.headline}"]
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
    # arguments at which answers differ that agree at random ones: ties, zeros, near a singularity
    edge_cases: tuple[tuple[Any, ...], ...] = ()
    # size below which lost digits count in absolute terms, as for logarithms that pass through 0
    floor: float = 0.0
    seed: str = ""  # of a variant; '' for the exercise of the book
    # of a variant: the right answer's source, and right answers to other variants, each with
    # what is said of it
    written: str = ""
    elsewhere: tuple[tuple[str, Answer], ...] = ()

    @cached_property
    def source(self) -> str:
        """The right answer's source, from its ``def`` on."""
        if self.written:
            return self.written
        text = textwrap.dedent(inspect.getsource(self.right))
        return text[text.index("def ") :]

    def edited(self, *mistakes: Wrong) -> Answer | None:
        """Return the right answer with some mistakes in it; None if they do not go together."""
        text = self.source
        for mistake in mistakes:
            if text.count(mistake.old) != 1:
                return None
            text = text.replace(mistake.old, mistake.new)
        return self.compiled(text)

    def compiled(self, text: str) -> Answer:
        """Return the function that a source defines among the names of the right answer."""
        scope = dict(self.right.__globals__)
        exec(compile(text, f"<{self.name}>", "exec"), scope)
        function: Answer = scope[self.name]
        return function

    @property
    def letters(self) -> list[str]:
        """The letters of all shapes."""
        return list(
            dict.fromkeys(
                "".join(argument.shape for argument in self.arguments.values())
            )
        )

    def draw(self, seed: int, spread: Spread | None = None) -> tuple[Any, ...]:
        """Return random arguments, for a proof, or drawn evenly from a spread."""
        rng = np.random.default_rng(seed)
        return tuple(
            argument.draw(rng, self.sizes, spread)
            for argument in self.arguments.values()
        )

    def blocks(self, returned: Any) -> tuple[Any, ...]:
        """Return what a function returned, block by block; Unusable if it has not as many."""
        if len(self.returns) == 1:
            return (returned,)
        if not isinstance(returned, Sequence) or len(returned) != len(self.returns):
            returned_count = "one thing"
            if isinstance(returned, Sequence):
                returned_count = f"{len(returned)} things"
            raise Unusable(
                f"it returns {returned_count}; asked for are {', '.join(self.returns)}"
            )
        return tuple(returned)


def formula(
    returns: str,
    tags: str,
    wrong: Mapping[str, Mapping[str, str]] | None = None,
    slopes: Mapping[str, str] | None = None,
    sizes: Mapping[str, int] | None = None,
    extremes: Sequence[tuple[Any, ...]] = (),
    edge_cases: Sequence[tuple[Any, ...]] = (),
    floor: float = 0.0,
    **arguments: Argument,
) -> Callable[[Answer], Formula]:
    """Return a decorator that makes an exercise of its right answer.

    Parameters
    ----------
    returns : str
        Names of the blocks that an answer returns, separated by spaces.
    tags : str
        Entries of the book, separated by spaces.
    wrong : mapping of str to mapping, optional
        Known mistakes: a text that occurs once in the right answer's source, and for each text
        in its place the sentence about this mistake.
    slopes : mapping of str to str, optional
        Blocks that must be derivatives of the first block, and by which argument.
    sizes : mapping of str to int, optional
        Lengths of axes in proofs, by letter, where they differ from `SIZES`.
    extremes : sequence of tuple
        Arguments at which floats overflow unless one takes care, each with the right value last.
    edge_cases : sequence of tuple
        Arguments at which wrong answers differ that agree at random ones: ties, zeros.
    floor : float
        Size of the value below which lost digits count in absolute terms.
    **arguments : Argument
        Arguments of the answer, by name.
    """
    mistakes = known_mistakes(wrong or {})

    def formula_of(function: Answer) -> Formula:
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
            edge_cases=tuple(edge_cases),
            floor=floor,
        )

    return formula_of
