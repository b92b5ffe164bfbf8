"""The path: five pages that need no other, marked in every list; others say who needs them."""

import re
from itertools import pairwise

import pytest
from project.book import (
    ENTRIES,
    FAMILIES,
    PATH,
    ROOT,
    from_root,
    links,
    outside_fences,
    tags_in,
)  # fmt: skip

LARGEST_PATH = 25_000  # words, as `words` counts them
LISTS = ("derivations.md", "README.md", "docs/using.md", "site/index.md", "exercises/README.md")


FRONT = ("README.md", "site/index.md")
BEHIND = [
    path.relative_to(ROOT).as_posix()
    for pattern in ("*.md", "docs/*.md", "derivations/*.md", "exercises/*.md", "benchmarks/*.md",
                    "site/*.md")
    for path in sorted(ROOT.glob(pattern))
    if path.relative_to(ROOT).as_posix() not in (*PATH, *FRONT)
]  # fmt: skip


def text(page: str) -> str:
    return from_root((ROOT / page).read_text("utf-8"), page)


def title(page: str) -> str:
    return text(page)[2:].splitlines()[0]


def words(markdown: str) -> int:
    """Return how many words `wc -w` counts: of prose, tables, formulas, code, descriptions."""
    return len(markdown.split())


def first_paragraph(markdown: str) -> str:
    """Return the first paragraph below the title that is more than links."""
    for paragraph in markdown.split("\n\n")[1:]:
        if re.sub(r"\[[^\[\]]*\]\([^()]*\)|[\s·.]", "", paragraph):
            return paragraph
    return ""


def test_the_path_is_read_in_an_afternoon() -> None:
    assert sum(words(text(page)) for page in PATH) <= LARGEST_PATH


@pytest.mark.parametrize("page", LISTS)
def test_a_list_of_contents_marks_the_path(page: str) -> None:
    """One paragraph or list that begins with **The path** leads to its five pages, in order."""
    _, after = text(page).split("**The path**", 1)
    targets = [link.target.partition("#")[0] or page for link in links(after)]
    found = [target for target in dict.fromkeys(targets) if target in PATH]
    expected = [step for step in PATH if step in found]
    assert found == expected
    assert len(expected) == len(PATH)


@pytest.mark.parametrize("page", PATH)
def test_the_path_names_no_equation_behind_it_but_in_a_link(page: str) -> None:
    """What a reader of the path needs is said there: a bare tag sends them away to look it up."""
    known = {entry.tag for entry in ENTRIES if entry.page in PATH}
    prose = re.sub(r"\[[^\[\]]*\]\([^()]*\)", "", "\n".join(outside_fences(text(page))))
    assert tags_in(prose, FAMILIES) <= known, page


def test_each_step_of_the_path_ends_with_a_link_to_the_next() -> None:
    for page, after in pairwise(PATH):
        last = " ".join(text(page).split("\n\n")[-1].split())
        assert f"next on the path: [{title(after)}]({after})" in last, page


@pytest.mark.parametrize("page", BEHIND)
def test_a_page_behind_the_path_says_in_its_first_line_who_needs_it(page: str) -> None:
    """The first sentence below the title begins with "For": For readers who ..., For whoever ..."""
    assert first_paragraph(text(page)).startswith("For "), page
