"""The pages of the exercises: one for each, without its solution, and one for each chapter of them.

Statements, entries to read and names are those of bbb_course; what a chapter is about is its row in
exercises/README.md.
"""

import ast
import re
import textwrap
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pages as text
from project import book

from bbb_course import effort
from bbb_course.keys import chapters, find
from bbb_course.templates import SOLUTIONS, template
from bbb_course.variants import n_variants

README = "exercises/README.md"
FILE = re.compile(r"\b(?:derivations|docs|benchmarks)[\w/-]*\.md\b")
EMPHASIS = re.compile(r"(`[^`]+`|(?<![\w*])\*\w[^*]*\w\*(?![\w*]))")


class ExercisePage(NamedTuple):
    """A page of the exercises: the overview, a chapter's, or that of one exercise."""

    path: str
    title: str  # in Markdown
    chapter: str  # folder of its chapter, empty for the overview
    file: Path | None = None  # the solution's, for an exercise

    @property
    def docname(self) -> str:
        """The page's name for Sphinx."""
        return self.path.removesuffix(".md")


def escaped(line: str) -> str:
    """Return plain text as Markdown; its `code` and *emphasis* stay."""
    parts = EMPHASIS.split(line)
    parts[::2] = [re.sub(r"([\\_*<>\[\]$|~#{}])", r"\\\1", part) for part in parts[::2]]
    return re.sub(r"^([-+]|\d+\.)(?= )", r"\\\1", "".join(parts))


def statement(file: Path) -> list[str]:
    """Return the paragraphs of an exercise's statement; the first is its title."""
    return (ast.get_docstring(ast.parse(file.read_text("utf-8"))) or "").split("\n\n")


@cache
def exercise_pages() -> dict[str, ExercisePage]:
    """Return the pages of the exercises in the order of the course, by their paths."""
    listed = [ExercisePage(README, "Exercises", "")]
    for chapter in chapters():
        title = re.search(rf"\[([^\]]+)\]\([^()]*/{chapter}\)", readme())
        name = chapter.replace("_", " ")
        if title:
            name = title[1]
        listed.append(ExercisePage(f"exercises/{chapter}/index.md", name, chapter))
        for file in sorted((SOLUTIONS / chapter).glob("*.py")):
            own = escaped(" ".join(statement(file)[0].split()).rstrip("."))
            listed.append(ExercisePage(f"exercises/{chapter}/{file.stem}.md", own, chapter, file))
    return {page.path: page for page in listed}


def readme() -> str:
    """Return the text of exercises/README.md."""
    return (text.ROOT / README).read_text("utf-8")


def neighbours(path: str) -> tuple[ExercisePage | None, ExercisePage | None]:
    """Return the pages before and after one in the order of the course."""
    every = list(exercise_pages().values())
    at = [page.path for page in every].index(path)
    return (every[at - 1] if at else None), (every[at + 1] if at + 1 < len(every) else None)


def link(page: ExercisePage, out: str) -> str:
    """Return a link from the page `out` to a page of the exercises."""
    return f"[{page.title}]({text.relative(page.path, out)})"


def navigation(page: ExercisePage) -> str:
    """Return the line of links on top of a page, which lead back."""
    every = exercise_pages()
    above = [every[README]]
    if page.file:
        above.append(every[f"exercises/{page.chapter}/index.md"])
    return " · ".join(link(each, page.path) for each in above) + "\n"


def with_links(paragraph: str, out: str) -> str:
    """Return a paragraph as Markdown: the entries and pages that it names are links."""

    def file_link(match: re.Match[str]) -> str:
        path = match[0]
        if not (text.ROOT / path).is_file():
            return path
        title = re.search(r"^# (.+)$", (text.ROOT / path).read_text("utf-8"), re.MULTILINE)
        return f"[{title[1] if title else path}]({text.relative(path, out)})"

    def tag_link(match: re.Match[str]) -> str:
        tag = match[0]
        if tag not in book.DEFINED:
            return tag
        return f"[{tag}]({text.relative(f'tags/{tag.lower()}.md', out)})"

    line = escaped(" ".join(paragraph.split()))
    parts = EMPHASIS.split(line)
    parts[::2] = [
        re.sub(r"\b[A-Z]\d+\b", tag_link, FILE.sub(file_link, part)) for part in parts[::2]
    ]
    return "".join(parts)


def cost(page: ExercisePage) -> tuple[str, str]:
    """Return the time and the difficulty of an exercise, in words."""
    assert page.file is not None
    found = effort(name_of(page))
    return f"{found.minutes} min", found.level


def name_of(page: ExercisePage) -> str:
    """Return the name of the function, or the table, that an exercise asks for."""
    assert page.file is not None
    return re.sub(r"^\d+_", "", page.file.stem)


def entries_of(page: ExercisePage, out: str) -> str:
    """Return the entries of the book that an exercise is about; more than two in a row as ends."""
    runs: list[list[str]] = []
    for tag in find(name_of(page)).tags:
        at = book.DEFINED.index(tag)
        if runs and book.DEFINED[at - 1] == runs[-1][-1]:
            runs[-1].append(tag)
        else:
            runs.append([tag])
    ends = [f"{run[0]} to {run[-1]}" if len(run) > 2 else ", ".join(run) for run in runs]
    return with_links(", ".join(ends), out)


def exercise_page(page: ExercisePage) -> str:
    """Return the page of one exercise: its statement, its file with a hole, and how to grade it."""
    assert page.file is not None
    number = page.file.stem.partition("_")[0]
    minutes, difficulty = cost(page)
    entries = entries_of(page, page.path)
    lines = [
        text.ORPHAN_PAGE + f"# {page.chapter[:2]}/{number} {page.title}\n",
        navigation(page),
        f"{minutes}, {difficulty} · about {entries}\n",
    ]
    for paragraph in statement(page.file)[1:]:
        first, *_ = paragraph.split(":", 1)
        if paragraph.startswith("    "):
            lines.append(f"```text\n{textwrap.dedent(paragraph)}\n```\n")
        elif first == "Hint":
            hint = with_links(paragraph.removeprefix("Hint:"), page.path)
            lines.append(f"<details><summary>Hint</summary>\n\n{hint}\n\n</details>\n")
        elif first in ("Shapes", "Read"):
            rest = with_links(paragraph.removeprefix(f"{first}:"), page.path)
            lines.append(f"**{first}:** {rest}\n")
        else:
            lines.append(with_links(paragraph, page.path) + "\n")
    solution = page.file.read_text("utf-8")
    hole = template(solution).split('"""', 2)[2].strip()
    address = f"exercises/{page.chapter}/{page.file.name}"
    lines += [
        "## Your answer\n",
        f'The file <a href="{page.file.name}" download>{page.file.name}</a> has a hole:\n',
        f"```python\n{hole}\n```\n",
        "```sh\n"
        f"bbb-numpy grade --copy exercises {page.chapter[:2]}   # the files of this chapter\n"
        f"bbb-numpy grade {address}\n```\n",
        f"[What the answers mean]({text.relative(README, page.path)}#what-the-answers-mean)\n",
        variants(page),
    ]
    return "\n".join(lines)


def variants(page: ExercisePage) -> str:
    """Return how many other exercises of its kind there are, and how one gets them."""
    count = n_variants(name_of(page))
    if not count:
        return ""
    return f"It has {count} variants, for a class: `--variant SEED` in both commands chooses one.\n"


def chapter_row(chapter: str, out: str) -> tuple[str, str]:
    """Return what a chapter asks for and what to read, as its row in the overview says."""
    row = re.search(rf"^\|[^|]*/{chapter}\) \|([^|]*)\|([^|]*)\|$", readme(), re.MULTILINE)
    if not row:
        return "", ""
    return row[1].strip(), text.convert(row[2].strip(), README, out).strip()


def chapter_page(page: ExercisePage) -> str:
    """Return the page of a chapter: its exercises with title, time and difficulty."""
    asked, read = chapter_row(page.chapter, page.path)
    number = page.chapter[:2]
    lines = [text.ORPHAN_PAGE + f"# {page.title}\n", navigation(page)]
    if asked:
        lines.append(f"You write: {asked}. Read: {read}.\n")
    lines.append("| | exercise | entries | time | difficulty |\n|---|---|---|---:|---|")
    for other in exercise_pages().values():
        if other.chapter != page.chapter or other.file is None:
            continue
        minutes, difficulty = cost(other)
        entries = entries_of(other, page.path)
        lines.append(
            f"| {other.file.stem.partition('_')[0]} | {link(other, page.path)} | {entries} "
            f"| {minutes} | {difficulty} |"
        )
    lines += [
        "\n```sh\n"
        f"bbb-numpy grade --copy exercises {number}   # write these files, each with a hole\n"
        f"bbb-numpy grade exercises/{page.chapter}   # grade them\n```\n",
        "Times and difficulties follow a "
        f"[rule]({text.relative(README, page.path)}#time-and-difficulty).\n",
    ]
    return "\n".join(lines)


def course_pages() -> dict[str, str]:
    """Return the pages of all exercises and chapters, and the files with holes to download."""
    files = {}
    for path, page in exercise_pages().items():
        if page.file:
            files[path] = exercise_page(page)
            holed = template(page.file.read_text("utf-8"))
            files[f"extra/exercises/{page.chapter}/{page.file.name}"] = holed
        elif page.chapter:
            files[path] = chapter_page(page)
    return files
