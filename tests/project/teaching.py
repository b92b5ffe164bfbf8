"""Hours of the teaching plans in docs/teaching.md, from what the project says of its own parts.

``python tests/project/teaching.py`` writes the columns of hours, and the times of the lectures'
tables. `RATE` words a minute are read in sections of chapters; slides have their minutes in their
notes, exercises theirs by `bbb_course.workload`, and notebooks say theirs in their first cell. A
lecture that is called "45 minutes" is the short version of its slides.
"""

import re
import sys
from pathlib import Path
from typing import NamedTuple

import nbformat

sys.path[:0] = [str(folder) for folder in Path(__file__).resolve().parents[1:3]]

from project.book import ROOT, slug  # noqa: E402

from bbb_course.keys import name_of  # noqa: E402
from bbb_course.templates import SOLUTIONS  # noqa: E402
from bbb_course.workload import effort  # noqa: E402

PAGE = ROOT / "docs/teaching.md"
RATE = 100  # words a minute, formulas read and not derived
DECK = re.compile(r"\.\./site/slides/(\w+)\.md")
TITLE = re.compile(r"(?<!\*)\*([^*]+)\*(?!\*)")
EXERCISES = re.compile(r"\[(\d\d)\]\([^)]*#e\d+\)((?: \d(?:-\d)?,?)+)")
SECTION = re.compile(r"\(\.\./(derivations(?:/[\w-]+)?\.md)(?:#([\w-]+))?\)")
NOTEBOOK = re.compile(r"\(\.\./notebooks/(\d\d_\w+)\.ipynb")
BOARD = re.compile(r"board, (\d+) min")
SHORT = "45 minutes"
STATED = re.compile(r"about (\d+) minutes to read")


class Table(NamedTuple):
    """A table of the page: the lines above it in its section, its header, its rows of cells."""

    above: str
    header: list[str]
    rows: list[list[str]]


def cells(line):
    """Return the cells of a line of a table, without their outer spaces."""
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def tables(text):
    """Return the tables of a page, in their order."""
    result = []
    for section in re.split(r"^(?=#{2,3} )", text, flags=re.MULTILINE):
        for block in re.finditer(r"(?:^\|.*\n)+", section, re.MULTILINE):
            header, _, *rows = block[0].splitlines()
            result.append(Table(section[: block.start()], cells(header), [*map(cells, rows)]))
    return result


def slides(deck, *, is_short=False):
    """Return the titles of a lecture's slides, and their minutes, in their order."""
    text = (ROOT / f"site/slides/{deck}.md").read_text("utf-8")
    minutes = {}
    for slide in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        note = re.search(r"^(\d+) min(, only in the long version)?\.", slide, re.MULTILINE)
        if not (is_short and note[2]):
            minutes[slide.splitlines()[0].strip()] = int(note[1])
    return minutes


def lecture_minutes(cell):
    """Return the minutes of the slides that a cell names, or of a lecture at the board."""
    board = sum(int(minutes) for minutes in BOARD.findall(cell))
    deck = DECK.search(cell)
    if deck is None:
        return board
    minutes = slides(deck[1], is_short=SHORT in cell)
    ends = TITLE.findall(cell[deck.end() :])
    titles = [*minutes]
    first = titles.index(ends[0]) if ends else 0
    last = titles.index(ends[-1]) if ends else len(titles) - 1
    return board + sum([*minutes.values()][first : last + 1])


def exercise_paths(cell):
    """Return the solutions of the exercises that a cell names, such as ``[02](...#e2) 1-3, 5``."""
    paths = []
    for chapter, listed in EXERCISES.findall(cell):
        for part in listed.split(","):
            if part.strip():
                first, _, last = part.strip().partition("-")
                for number in range(int(first), int(last or first) + 1):
                    (path,) = SOLUTIONS.glob(f"{chapter}_*/{number}_*.py")
                    paths.append(path)
    return paths


def exercise_minutes(cell):
    """Return the minutes of the exercises that a cell names."""
    return sum(effort(name_of(path)).minutes for path in exercise_paths(cell))


def sections(page):
    """Return the words of each section of a chapter by its anchor, and of what stands above them.

    The opening of a chapter has the key ''.
    """
    words = {"": 0}
    anchor = ""
    for line in re.sub(r"^```py.*?^```$", "", page, flags=re.DOTALL | re.MULTILINE).splitlines():
        if line.startswith("## "):
            anchor = slug(line.lstrip("# "))
            words[anchor] = 0
        words[anchor] += len(line.split())
    return words


def reading_minutes(cell):
    """Return the minutes of the sections that a cell links to; two links with " to " are a range.

    A link without an anchor is the whole chapter.
    """
    words = 0
    found = [*SECTION.finditer(cell)]
    for position, link in enumerate(found):
        by_section = sections((ROOT / link[1]).read_text("utf-8"))
        if link[2] is None:
            words += sum(by_section.values())
            continue
        order = [*by_section]
        first = last = order.index(link[2])
        previous = found[position - 1] if position else None
        if previous and re.fullmatch(r"\) to \[[^\]]*\]", cell[previous.end() - 1 : link.start()]):
            first = order.index(previous[2]) + 1
        words += sum(by_section[anchor] for anchor in order[first : last + 1])
    return words / RATE


def notebook_minutes(cell):
    """Return the minutes of the notebooks that a cell links to, as these say them."""
    minutes = 0
    for name in NOTEBOOK.findall(cell):
        notebook = nbformat.read(ROOT / f"notebooks/{name}.ipynb", as_version=4)
        minutes += int(STATED.search(notebook.cells[0].source)[1])
    return minutes


def hours(header, row):
    """Return the hours in class and at home of a row of a plan, to quarters of an hour."""
    cell = dict(zip(header, row, strict=True))
    in_class = lecture_minutes(cell["lecture"]) + exercise_minutes(cell["in class"])
    at_home = (
        reading_minutes(cell["read"])
        + exercise_minutes(cell["homework"])
        + notebook_minutes(cell["notebook"])
    )
    return round(in_class / 15) / 4, round(at_home / 15) / 4


def starts(table):
    """Return the minute at which each row of a lecture's table begins, and the last one's end."""
    (deck,) = {*DECK.findall(table.above)}
    minutes = slides(deck, is_short=SHORT in table.above)
    titles = [*minutes]
    firsts = [titles.index(TITLE.search(row[1])[1]) for row in table.rows]
    assert firsts == sorted(firsts), f"{deck}: rows are not in the order of the slides"
    assert firsts[0] == 0, f"{deck}: the first row is not the first slide"
    lengths = [*minutes.values()]
    return [sum(lengths[:first]) for first in [*firsts, len(lengths)]]


def clock(minute):
    """Return a minute as h:mm."""
    return f"{minute // 60}:{minute % 60:02}"


def minute_of(text):
    """Return the minute that a text h:mm says."""
    hour, minute = text.split(":")
    return 60 * int(hour) + int(minute)


def is_plan(table):
    """Return whether a table is a plan with hours."""
    return "h in class" in table.header


def is_lecture(table):
    """Return whether a table goes through the slides of a lecture."""
    return table.header[:2] == ["at", "from slide"]


def is_practical(table):
    """Return whether a table is an hour of exercises."""
    return table.header[:2] == ["at", "they do"]


def updated(text):
    """Return the page with its hours, and the times of its lectures."""
    for table in tables(text):
        for number, row in enumerate(table.rows):
            new = list(row)
            if is_plan(table):
                for name, value in zip(
                    ("h in class", "h at home"), hours(table.header, row), strict=True
                ):
                    new[table.header.index(name)] = f"{value:g}"
            elif is_lecture(table):
                new[0] = clock(starts(table)[number])
            if new != row:
                old_line = next(line for line in text.splitlines() if cells(line) == row)
                text = text.replace(old_line, f"| {' | '.join(new)} |", 1)
    return text


if __name__ == "__main__":
    PAGE.write_text(updated(PAGE.read_text("utf-8")), "utf-8")
