r"""What derivations/errata.md accuses a source of, the source prints: words and formulas.

Of every row the words in quotation marks, and of every formula the piece below, must occur in the
text of the source (white space, case and mark-up aside), and so must the words that the boxes "As
printed" of the book put into quotation marks. The texts are not part of this repository: they are
looked for in the folder that BBB_NUMPY_SOURCES names, else in ../shared/seeds beside it.
"""

import json
import os
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
BOOK = [ROOT / "derivations.md", *sorted((ROOT / "derivations").glob("*.md"))]
SEEDS = Path(os.environ.get("BBB_NUMPY_SOURCES") or ROOT.parent / "shared/seeds")
SECTIONS = {"report": "K", "post": "R", "slides": "W", "2018": "M", "2020": "G"}
SOURCE_NUMBERS = {"K": "003", "R": "001", "W": "004", "M": "002", "G": "000"}
ELLIPSIS = "[...]"
GREEK = {"α": "alpha", "β": "beta", "ϵ": "epsilon", "θ": "theta", "μ": "mu", "π": "pi"}
GREEK |= {"ρ": "rho", "σ": "sigma", "Σ": "Sigma", "∑": "sum"}

# Of rows that accuse a formula: where the row says it is, and the formula as the text of the
# source has it. Several rows of one place need a piece each.
FORMULAS = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))


class Row(NamedTuple):
    """One accusation: the letter of its source, where, and what is printed there."""

    source: str
    where: str
    printed: str


def rows(errata: str) -> list[Row]:
    """Return the rows of the tables of errata.md, with the letter of their source."""
    all_rows = []
    for heading, body in re.findall(r"^## ([^\n]*)\n(.*?)(?=^## |\Z)", errata, re.M | re.S):
        letter = next((tag for name, tag in SECTIONS.items() if name in heading), None)
        table = [line for line in body.splitlines() if line.startswith("|")]
        if letter:
            cells = [re.split(r" ?(?<!\\)\| ?", line)[1:-1] for line in table[2:]]
            assert all(len(row_cells) == 4 for row_cells in cells), cells
            all_rows += [Row(letter, row_cells[0], row_cells[1]) for row_cells in cells]
    return all_rows


def quotations(text: str) -> list[str]:
    """Return what stands in quotation marks, in pieces where something was left out."""
    quoted = re.findall(r'"([^"]+)"', text)
    return [piece for quote in quoted for piece in quote.split(ELLIPSIS) if piece.strip()]


def bare(text: str) -> str:
    """Return `text` without white space, case and mark-up, Greek letters by their names."""
    for letter in set(text) & set(GREEK):
        text = text.replace(letter, GREEK[letter])
    return re.sub(r"[\s$`\\{}'*]|\*\*", "", text).lower()


def missing(pieces: list[str], source: str) -> list[str]:
    """Return the pieces that do not occur in the text of a source."""
    within = bare(source)
    return [piece for piece in pieces if bare(piece).rstrip(".,") not in within]


def pieces_of_rows(errata: list[Row], letter: str) -> list[tuple[Row, list[str]]]:
    """Return the rows of one source, each with its quotations and the formulas named above."""
    formulas = list(FORMULAS[letter])  # those of one place in the order of its rows, each once
    pieces = []
    for row in errata:
        if row.source == letter:
            formula = next((candidate for candidate in formulas if candidate[0] == row.where), ())
            if formula:
                formulas.remove(formula)
            pieces.append((row, [*quotations(row.printed), *formula[1:]]))
    assert not formulas, f"formulas of rows that errata.md does not have: {formulas}"
    return pieces


def boxes(page: str) -> list[tuple[str, str]]:
    """Return the tag and the text of each box "As printed"."""
    tag = ""
    tagged_boxes = []
    marks = r"^#+ ([A-Z]\d+):|<a id=.([a-z]\d+).>|<summary>As printed</summary>(.*?)</details>"
    for mark in re.finditer(marks, page, re.M | re.S):
        if mark[3] is None:
            tag = (mark[1] or mark[2]).upper()
        else:
            tagged_boxes.append((tag, re.sub(r"```.*?```", "", mark[3], flags=re.S)))
    return tagged_boxes


@cache
def source(letter: str) -> str:
    """Return the text of a source, or skip."""
    paths = sorted(SEEDS.glob(f"{SOURCE_NUMBERS[letter]}_*.txt"))
    if not paths:
        pytest.skip(f"no text of the source {letter} in the folder that BBB_NUMPY_SOURCES names")
    return paths[0].read_text()


ERRATA = (ROOT / "derivations/errata.md").read_text()
HALVES = [(path.name, tag, text) for path in BOOK for tag, text in boxes(path.read_text())]
