"""Every letter of the book's formulas has a meaning in docs/notation.md, one in each chapter."""

import re
from itertools import chain

import pytest
from project.book import PAGES, ROOT, from_root, links
from project.letters import letters, letters_by_section

PAGE = "docs/notation.md"
NOTATION = from_root((ROOT / PAGE).read_text("utf-8"), PAGE)
EVERYWHERE, SOMEWHERE = (
    [line.strip("| ").split(" | ") for line in part.splitlines() if line.startswith("| $`")]
    for part in NOTATION.split("## In some chapters")
)
OF_ONE_SECTION = set("abcijklntuv")
# Letters of their sources, letters that every section defines anew, and a page without formulas
OWN_LETTERS = {"derivations/errata.md", "derivations/numbers-and-proofs.md"}
CHAPTERS = [page for page in PAGES if page not in OWN_LETTERS]


def named(cell: str) -> set[str]:
    return set(chain.from_iterable(map(letters, re.findall(r"\$`(.+?)`\$", cell))))


GENERAL = set().union(*(named(row[0]) for row in EVERYWHERE))
MEANINGS = {
    letter: {link.target.partition("#")[0]: link.target for link in links(row[1])}
    for row in SOMEWHERE
    for letter in named(row[0])
}


def sections(page: str) -> dict[str, set[str]]:
    return letters_by_section((ROOT / page).read_text("utf-8"))


def problems(page: str, letters_of: dict[str, set[str]]) -> list[str]:
    """Return which letters of a chapter the tables do not explain."""
    found = []
    for letter in sorted(set().union(*letters_of.values()) - OF_ONE_SECTION - GENERAL):
        places = [name for name, present in letters_of.items() if letter in present]
        if letter in MEANINGS and page not in MEANINGS[letter]:
            found.append(f"{letter} has a row without {page} ({places})")
        elif letter not in MEANINGS and len(places) > 1:
            found.append(f"{letter} stands in {len(places)} sections of {page} and in no row")
    return found


@pytest.mark.parametrize("page", PAGES)
def test_a_chapter_leads_to_the_notation_before_its_first_section(page: str) -> None:
    opening = PAGES[page].split("\n## ")[0]
    assert PAGE in {link.target for link in links(opening)}


@pytest.mark.parametrize("page", CHAPTERS)
def test_every_letter_of_a_chapter_is_in_the_tables_or_in_one_section(page: str) -> None:
    found = problems(page, sections(page))
    assert not found, "\n".join(
        [*found, f"add a row or a chapter to {PAGE}, or take another letter"]
    )


def test_a_letter_has_one_meaning_in_a_chapter_and_stands_where_its_row_says() -> None:
    assert len(MEANINGS) == len(SOMEWHERE)
    for row in SOMEWHERE:
        (letter,) = named(row[0])
        assert len(links(row[1])) == len(MEANINGS[letter]), f"{letter} has a chapter twice"
        for target in MEANINGS[letter].values():
            page, _, name = target.partition("#")
            assert letter in sections(page)[name], f"{letter} is not in the formulas of {target}"


def test_the_letters_of_all_chapters_stand_where_they_are_said_to_be_first_used() -> None:
    for row in EVERYWHERE:
        (link,) = links(row[-1])
        page, _, name = link.target.partition("#")
        text = (ROOT / page).read_text("utf-8")
        start = text.find(f'<a id="{name}"></a>')
        if start >= 0:  # an equation of the report; else a section
            end = text.find("\n## ", start)
            present = letters_by_section(text[start:end])[""]
        else:
            present = sections(page)[name]
        assert named(row[0]) <= present, (row[0], link.target)


@pytest.mark.parametrize("letter", ["S", r"\mathsf P", "B", "K", "M", "L"])
def test_a_number_of_things_is_introduced_before_it_is_used(letter: str) -> None:
    (row,) = [row for row in EVERYWHERE if letter in named(row[0])]
    page, _, name = links(row[-1])[0].target.partition("#")
    before = (ROOT / page).read_text("utf-8").split(f'<a id="{name}"></a>')[0]
    assert not any(letter in present for present in letters_by_section(before).values())


def test_letters_are_read_without_subscripts_words_indices_and_printed_formulas() -> None:
    formula = r"\hat y_{sb} = \sum_{j=1}^{\mathsf P} W_l[h, k]\, \mathrm{sig}(z)^{\top} x^{(i)} dw"
    assert set(letters(formula)) == {"y", r"\mathsf P", "W", "z", "x", "d", "w"}
    printed = "<details><summary>As printed</summary>\n\n$`b`$\n\n</details>"
    text = f"$`a`$\n\n## One: two\n\n{printed}\n\n```math\nc\n```\n"
    assert letters_by_section(text) == {"": {"a"}, "one-two": {"c"}}


def test_a_letter_without_a_meaning_is_found() -> None:
    assert problems("derivations/why.md", {"m18": {"w", "n"}, "m19": {r"\kappa"}}) == []
    assert problems("derivations/why.md", {"m18": {r"\gamma"}})
    assert problems("derivations/why.md", {"m18": {"Y"}, "m19": {"Y"}})
