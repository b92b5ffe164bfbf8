"""docs/sources.md answers for every item of the five sources, and what it says stays true."""

import contextlib
import io
import re
import shlex
from typing import NamedTuple

import pytest
from project.book import ENTRIES, ROOT, tags_in
from project.errata import ERRATA
from project.errata import rows as accusations

from bbb_numpy.cli.main import _parser
from bbb_studies.uci.methods import METHODS

PAGE = ROOT / "docs/sources.md"
TEXT = PAGE.read_text(encoding="utf-8")
ITEMS = 209  # that were counted in the sources
SECTIONS = {"kebude": range(1, 64), "krasser": range(64, 92), "mullachery": range(92, 170)}
SECTIONS |= {"sagar": range(170, 188), "wu": range(188, 210)}
EQUATIONS = {"K": range(1, 45)}  # rows whose number is that of the equation
PLANNED = "not here yet: planned"
NUMBERS = {name: 14 + k for k, name in enumerate(
    ("fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty")
)}  # fmt: skip


class Item(NamedTuple):
    """One row."""

    number: int
    place: str
    item: str
    where: str
    showed: str


def items(text: str) -> list[Item]:
    """Return the rows of the tables of sources.md, comments left out."""
    text = re.sub(r"<!--.*?-->", "", text)
    cells = [
        re.split(r" ?(?<!\\)\| ?", line)[1:-1] for line in text.splitlines() if line[:1] == "|"
    ]
    assert all(len(row) == 5 for row in cells), [row for row in cells if len(row) != 5]
    return [Item(int(row[0]), *row[1:]) for row in cells if row[0].isdigit()]


def problems(rows: list[Item], errata: str) -> list[str]:
    """Say which items are missing, unanswered, or called right where the errata accuse them."""
    numbers = [row.number for row in rows]
    found = [f"{number} is not there" for number in range(1, ITEMS + 1) if number not in numbers]
    found += [f"{number} stands twice" for number in set(numbers) if numbers.count(number) > 1]
    at = [row.where for row in accusations(errata) if not re.match("after|before", row.where)]
    accused = {tag for where in at for tag in tags_in(where, EQUATIONS)}
    for row in rows:
        if not all(cell.strip() for cell in row[1:]):
            found.append(f"{row.number} has an empty cell")
        if "](" not in row.where and "`" not in row.where and row.where != PLANNED:
            found.append(f"{row.number} leads nowhere")
        for family, own in EQUATIONS.items():
            tag = f"{family}{row.number}"
            if row.number in own and (row.showed == "right") is (tag in accused):
                found.append(f"{tag} is {row.showed!r}, the errata have it: {tag in accused}")
            if row.number in own and tag not in tags_in(row.where, EQUATIONS):
                found.append(f"{row.number} does not lead to {tag}")
    return found


def parses(command: str) -> bool:
    """Say whether the command line accepts a command, without running it."""
    words = shlex.split(command)
    with contextlib.redirect_stderr(io.StringIO()):
        try:
            _parser(words[0]).parse_args(words)
        except SystemExit:
            return False
    return True


def test_every_item_has_a_row_an_answer_and_a_place():
    assert problems(items(TEXT), ERRATA) == []


def test_every_table_holds_the_items_of_its_source():
    for heading, body in re.findall(r"^## ([^\n]*)\n(.*?)(?=^## |\Z)", TEXT, re.M | re.S):
        (own,) = [numbers for name, numbers in SECTIONS.items() if name in heading.lower()]
        assert [row.number for row in items(body)] == list(own), heading


def test_its_tags_lead_to_their_entries():
    tags = re.findall(r"\[([A-Z]\d+)\]\(\.\./([^#)]+)#([^)]+)\)", TEXT)
    assert len(tags) > 150
    defined = {(entry.tag, entry.page) for entry in ENTRIES}
    for tag, page, anchor in tags:
        assert (tag, page) in defined
        assert anchor.partition("-")[0] == tag.lower(), anchor


def test_its_commands_parse():
    found = re.findall(r"`bbb-numpy ([^`]+)`", TEXT)
    assert len(set(found)) > 10
    assert [command for command in found if not parses(command)] == []


@pytest.mark.parametrize("page", ["docs/uci.md", "docs/sources.md"])
def test_pages_count_the_methods_of_the_uci_tables(page):
    said = re.findall(r"(\w+) methods", (ROOT / page).read_text(encoding="utf-8").lower())
    counted = [NUMBERS[word] for word in said if word in NUMBERS]
    assert counted == [len(METHODS)] * len(counted) != []
