"""Variants of exercises: the same kind of question with other parts, constants or conventions.

A variation is a set of edits: of the right answer's source, as a known mistake is, and of the
statement. On each axis of an exercise a seed chooses one variation or none, so that copied answers
to the book's exercise, or to another variant, are wrong. All is determined by the seed and the
exercise's name.
"""

from __future__ import annotations

import ast
import hashlib
import itertools
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from .exercise import (
    Answer,
    Argument,
    Exercise,
    Formula,
    Unusable,
    Wrong,
    known_mistakes,
)
from .keys import CHAPTERS, find
from .marks import marked_part, with_marked_part

__all__ = ["Replacement", "Variation", "check_seed", "chosen", "combinations", "find_variant",
           "index_of", "n_variants", "seed_of", "solution_of", "varied"]  # fmt: skip

SEED = re.compile(r"\w[\w.-]{0,39}", re.ASCII)
LINE = "Variant {seed} of this exercise. "  # begins the second paragraph of a statement
SEED_IN_FILE = re.compile(rb"^Variant ([\w.-]{1,40}) of this exercise\. ", re.MULTILINE)
MAX_HEAD = 20_000  # bytes of a file in which its seed is looked for
STATEMENT_WIDTH = 98  # letters a line
OPERATOR = re.compile(r" ([-+*/=<>]|<=|>=) ")  # stays between what it connects
BOOK_S = "this answers the book's exercise; asked for is another: {asks}"
ANOTHER = "this answers another variant of the exercise; asked for is: {asks}"


class Replacement(NamedTuple):
    """An argument that stands in the place of another.

    Attributes
    ----------
    name : str
    argument : Argument
        Its kind and shape.
    convert : callable
        Takes a value of the old argument to that of the new one, for the edge cases.
    """

    name: str
    argument: Argument
    convert: Callable[[Any], Any]


@dataclass(frozen=True, kw_only=True)
class Variation:
    """One way in which an exercise can be another.

    Attributes
    ----------
    asks : str
        What is asked for, in sentences of the statement.
    statement : mapping of str to str
        Edits of the solution's file, of texts that occur once; a space stands for any white space.
    before : str
        Statement that is put before those of the right answer.
    after : str
        Expression in `returned`, what the right answer returns, that is returned instead.
    edits : mapping of str to str
        Edits of the right answer's source, of texts that occur once.
    arguments : mapping of str to Replacement
        Arguments that are replaced.
    returns : str
        Names of the blocks, separated by spaces, where they are others.
    untrue : tuple of str
        Words of the sentences about known mistakes that would not be true here.
    restated : mapping of str to str
        Words of these sentences, and what to say in their place.
    wrong : mapping of str to mapping
        Further known mistakes, as `formula` takes them.
    """

    asks: str
    statement: Mapping[str, str]
    before: str = ""
    after: str = ""
    edits: Mapping[str, str] = field(default_factory=dict)
    arguments: Mapping[str, Replacement] = field(default_factory=dict)
    returns: str = ""
    untrue: tuple[str, ...] = ()
    restated: Mapping[str, str] = field(default_factory=dict)
    wrong: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


Axes = Sequence[Sequence[Variation]]


@cache
def _axes() -> dict[str, Axes]:
    """Return the axes of each exercise that has variants."""
    package = f"{__package__}.variations"
    names = [f"{package}.{module}" for module in CHAPTERS.values()]
    modules = [import_module(name) for name in names if find_spec(name)]
    return {name: axes for module in modules for name, axes in module.AXES.items()}


def combinations(name: str) -> list[tuple[Variation, ...]]:
    """Return what makes each variant of an exercise: one variation or none of each axis.

    Parameters
    ----------
    name : str
        Name of the exercise.

    Returns
    -------
    list of tuple of Variation
        In a fixed order, without the exercise of the book; empty if there is no variant.
    """
    choices = [(None, *axis) for axis in _axes().get(name, ())]
    chosen = (filter(None, picked) for picked in itertools.product(*choices))
    return [*filter(None, map(tuple, chosen))]


def n_variants(name: str) -> int:
    """Return the number of different variants of an exercise; 0 if it has none."""
    return len(combinations(name))


def index_of(name: str, seed: str) -> int:
    """Return which of its variants an exercise is for a seed, from 0."""
    # the same on every machine, and in every version of Python
    digest = hashlib.sha256(f"{seed}/{name}".encode()).digest()
    return int.from_bytes(digest, "big") % n_variants(name)


def chosen(name: str, seed: str) -> tuple[Variation, ...]:
    """Return the variations that a seed chooses of an exercise that has variants."""
    return combinations(name)[index_of(name, seed)]


def check_seed(seed: str) -> str:
    """Return a seed, which is written into files.

    Raises
    ------
    ValueError
        If it has other characters than letters, digits, '_', '-' and '.', or more than 40, or
        begins with '-' or '.'.
    """
    if not SEED.fullmatch(seed):
        raise ValueError(
            "a seed has 1 to 40 letters, digits, '_', '-' and '.', and begins with none of the "
            f"last two; this is {seed!r}"
        )
    return seed


def seed_of(path: Path) -> str:
    """Return the seed of the variant that a file names; '' if it names none, or cannot be read."""
    if not path.is_file():  # a pipe, or a device without an end
        return ""
    try:
        with path.open("rb") as file:
            match = SEED_IN_FILE.search(file.read(MAX_HEAD))
    except OSError:
        return ""
    return match[1].decode() if match else ""


@cache
def find_variant(name: str, seed: str = "") -> Exercise:
    """Return the variant of an exercise for a seed.

    Parameters
    ----------
    name : str
        Name of the exercise.
    seed : str
        '' for the exercise of the book, which is returned too where there is no variant.

    Raises
    ------
    ValueError
        If there is no exercise of that name.
    """
    exercise = find(name)
    if not (seed and n_variants(name) and isinstance(exercise, Formula)):
        return exercise
    variations = chosen(name, seed)
    others = [
        (ANOTHER, varied(exercise, other_variations).right)
        for other_variations in combinations(name)
        if other_variations != variations
    ]
    asks = " ".join(variation.asks for variation in variations)
    elsewhere = tuple(
        (message.format(asks=asks), _or_unusable(answer))
        for message, answer in [(BOOK_S, exercise.right), *others]
    )
    return replace(varied(exercise, variations), seed=seed, elsewhere=elsewhere)


def _or_unusable(answer: Answer) -> Answer:
    """Return an answer that raises Unusable where it cannot take the arguments of a variant."""

    def answer_elsewhere(*arguments: Any) -> Any:
        try:
            return answer(*arguments)
        except Exception as error:
            raise Unusable(str(error)) from None

    return answer_elsewhere


def varied(exercise: Formula, variations: Sequence[Variation]) -> Formula:
    """Return another exercise of the same kind.

    Parameters
    ----------
    exercise : Formula
    variations : sequence of Variation
        Made one after the other.

    Raises
    ------
    ValueError
        If a text that is edited does not occur once.
    """
    for variation in variations:
        exercise = _varied_once(exercise, variation)
    return exercise


def _varied_once(exercise: Formula, variation: Variation) -> Formula:
    text = exercise.source
    for old, new in variation.edits.items():
        text = _replaced_once(text, re.escape(old), new)
    head, end, body = text.partition(") -> Any:\n")
    for old, (name, _, _) in variation.arguments.items():
        head = _replaced_once(head, rf"\b{old}: Any", f"{name}: Any")
    statements = ast.parse(text).body[0]
    assert isinstance(statements, ast.FunctionDef)
    first = statements.body[1].lineno - head.count("\n") - 2
    lines = body.splitlines(keepends=True)
    docstring = "".join(lines[:first])
    body = docstring + _with_statements("".join(lines[first:]), variation)
    arguments = {}
    for name, argument in exercise.arguments.items():
        changed = variation.arguments.get(name)
        arguments[changed.name if changed else name] = (
            changed.argument if changed else argument
        )
    renamed = {old: new.name for old, new in variation.arguments.items()}
    returns = tuple(variation.returns.split()) or exercise.returns
    blocks = dict(zip(exercise.returns, returns, strict=True))

    def converted(case: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(
            variation.arguments[name].convert(value)
            if name in variation.arguments
            else value
            for name, value in zip(exercise.arguments, case, strict=True)
        )

    def after(right: Any) -> Any:
        if not variation.after:
            return right
        return eval(
            variation.after, {"np": exercise.right.__globals__["np"], "returned": right}
        )

    written = f"{head}{end}{body}"
    return replace(
        exercise,
        right=exercise.compiled(written),
        written=written,
        arguments=arguments,
        returns=returns,
        wrong=_mistakes_of(exercise, variation),
        slopes={blocks[b]: renamed.get(by, by) for b, by in exercise.slopes.items()},
        edge_cases=tuple(map(converted, exercise.edge_cases)),
        extremes=tuple(
            (*converted(tuple(case)), after(right))
            for *case, right in exercise.extremes
        ),
    )


def _mistakes_of(exercise: Formula, variation: Variation) -> tuple[Wrong, ...]:
    """Return the known mistakes in what the variation asks for, each with a true sentence."""
    return (
        *known_mistakes(variation.wrong),
        *(
            Wrong(
                _with_edits(mistake.old, variation.edits),
                _with_edits(mistake.new, variation.edits),
                _with_edits(mistake.says, variation.restated),
            )
            for mistake in exercise.wrong
            if not any(words in mistake.says for words in variation.untrue)
        ),
    )


def _with_edits(text: str, edits: Mapping[str, str]) -> str:
    for old, new in edits.items():
        text = text.replace(old, new)
    return text


def _with_statements(body: str, variation: Variation) -> str:
    """Return the statements of an answer with those before it, and with what is returned."""
    if variation.before:
        body = f"    {variation.before}\n{body}"
    if variation.after:
        start, _, value = f"\n{body}".rpartition("\n    return ")
        body = f"{start[1:]}\n    returned = {value.rstrip()}\n    return {variation.after}\n"
    return body


def _replaced_once(text: str, pattern: str, new: str) -> str:
    changed, number = re.subn(pattern, lambda _: new, text)
    if number != 1:
        raise ValueError(f"{pattern!r} must occur once; it occurs {number} times")
    return changed


def solution_of(text: str, name: str, seed: str) -> str:
    """Return the file of a variant's solution, made of the file of the book's exercise.

    Parameters
    ----------
    text : str
        The solution's file.
    name : str
        Name of the exercise, which must have variants.
    seed : str
        Seed of the variant, which its statement names.
    """
    exercise = find_variant(name, seed)
    assert isinstance(exercise, Formula)
    return varied_solution(text, exercise, chosen(name, seed), seed)


def varied_solution(
    text: str, exercise: Formula, variations: Sequence[Variation], seed: str
) -> str:
    """Return a solution's file with the statement and the right answer of a variant.

    Parameters
    ----------
    text : str
        File of the book's solution.
    exercise : Formula
        The variant.
    variations : sequence of Variation
        What makes it.
    seed : str
        Seed that the statement names.
    """
    text = with_marked_part(text, _answer(text, exercise, variations))
    book_s_paragraphs = text.split("\n\n")
    for variation in variations:
        for old, new in variation.statement.items():
            pattern = r"\s+".join(map(re.escape, old.split()))
            text = _replaced_once(text, pattern, new)
        for old, (new, _, _) in variation.arguments.items():
            head = re.search(r"^def .*\):$", text, re.MULTILINE)
            assert head
            line = _replaced_once(head[0], rf"\b{old}\b", new)
            text = text.replace(head[0], line)
    title, _, rest = text.partition("\n\n")
    asks = " ".join(variation.asks for variation in variations)
    paragraphs = [title, LINE.format(seed=seed) + asks, *rest.split("\n\n")]
    return "\n\n".join(
        paragraph if paragraph in book_s_paragraphs else _wrapped(paragraph)
        for paragraph in paragraphs
    )


def _answer(text: str, exercise: Formula, variations: Sequence[Variation]) -> str:
    """Return an answer to a variant: the book's where it can be, else the key's."""
    answer = marked_part(text)
    is_edited = any(variation.edits for variation in variations)
    if is_edited or answer.count("return ") > 1:
        (function,) = ast.parse(exercise.source).body
        assert isinstance(function, ast.FunctionDef)
        lines = exercise.source.splitlines(keepends=True)
        return "".join(lines[function.body[1].lineno - 1 :])
    for variation in variations:
        answer = _with_statements(answer, variation)
    return answer


def _wrapped(paragraph: str) -> str:
    """Return a paragraph of prose in lines of equal length, and others as they are."""
    is_prose = not re.search(r'^\s|"""|^#|^import|^def ', paragraph, re.MULTILINE)
    if not is_prose:
        return paragraph
    # a line that begins with a minus would be an item of a list in a notebook
    glued = OPERATOR.sub("\0\\1\0", " ".join(paragraph.split()))
    wrapped = textwrap.fill(glued, STATEMENT_WIDTH, break_on_hyphens=False)
    return wrapped.replace("\0", " ")
