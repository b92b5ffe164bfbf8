"""The derivations, the code and the tests speak of the same equations, and links lead somewhere."""

import re
from itertools import pairwise

import pytest
from project.book import (
    DEFINED,
    DOCUMENT,
    ENTRIES,
    EXAMPLE,
    FAMILIES,
    LARGEST_PAGE,
    MAX_CLAIMS,
    PAGES,
    PATH,
    PLAIN,
    ROOT,
    TEXT,
    claims,
    entries,
    from_root,
    links,
    marked_tags,
    outside_fences,
    prose,
    tags_in,
    tags_in_code,
)  # fmt: skip
from project.proofs import titles

from bbb_course.keys import chapters as exercise_chapters

NO_CHAPTERS = ("derivations/errata.md",)  # tables to look something up


def test_every_equation_has_exactly_one_entry_and_the_report_is_one_page_in_its_order() -> None:
    for family, count in FAMILIES.items():
        numbers = [int(tag[1:]) for tag in DEFINED if tag[0] == family and tag != EXAMPLE]
        assert sorted(numbers) == list(range(1, (count or len(numbers)) + 1)), family
    assert {tag[0] for tag in DEFINED} == set(FAMILIES)
    assert [entry.tag for entry in entries(TEXT)] == [f"K{number}" for number in range(1, 45)]


def test_the_contents_lead_to_every_equation_and_every_page() -> None:
    contents = TEXT.split("## Contents", 1)[1].split("\n## ", 1)[0]
    assert tags_in(contents, FAMILIES) == {entry.tag for entry in entries(TEXT)}
    for page, markdown in list(PAGES.items())[1:]:
        assert re.search(
            rf"^(-|\d\.) {re.escape(f'[{markdown[2:].splitlines()[0]}]({page})')}", contents, re.M
        ), page
    assert {ROOT / page for page in PAGES} == {DOCUMENT, *ROOT.glob("derivations/*.md")}


def test_an_equation_of_the_report_has_a_title_of_its_own() -> None:
    named = [title for title, _ in titles(TEXT).values()]
    assert len(named) == len(set(named)) == 44
    assert all(named)


def test_a_page_is_read_in_one_sitting_and_leads_to_the_next() -> None:
    for page in PAGES:
        assert (ROOT / page).stat().st_size < LARGEST_PAGE, page
    for page, after in pairwise(page for page in PAGES if page not in PATH):
        assert f"next: [{PAGES[after][2:].splitlines()[0]}]({after})" in " ".join(
            PAGES[page].split()
        ), page


@pytest.mark.parametrize("page", [page for page in PAGES if page not in NO_CHAPTERS])
def test_a_chapter_begins_with_three_goals_and_ends_with_five_lines(page: str) -> None:
    """The goals stand before the first picture and heading, the five lines below the last rule."""
    text = "\n".join(outside_fences(PAGES[page]))
    opening = re.split(r"^(?:!\[|## )", text, maxsplit=1, flags=re.M)[0]
    goals = opening.partition("\n**After this chapter you can**\n\n")[2].split("\n\n")[0]
    assert len(re.findall(r"^- ", goals, re.M)) == 3, "**After this chapter you can** and 3 bullets"
    foot = text.rpartition("\n---\n")[2].lstrip()
    lines = foot.partition("**In five lines**\n\n")[2].split("\n\n")[0]
    assert re.findall(r"^(\d)\. ", lines, re.M) == list("12345"), "**In five lines** and 1. to 5."
    assert foot.startswith("**In five lines**")
    numbers = {
        f"{chapter[:2]}/{number}"
        for chapter, exercises in exercise_chapters().items()
        for number in range(1, len(exercises) + 1)
    }
    assert set(re.findall(r"\d\d/\d+", goals)) <= numbers


def test_a_chapter_and_its_exercises_lead_to_each_other() -> None:
    page = from_root((ROOT / "exercises/README.md").read_text("utf-8"), "exercises/README.md")
    table = "\n".join(line for line in page.splitlines() if line.startswith("| <a id"))
    rows = [link for link in links(table) if link.target != "derivations/errata.md"]
    solutions = "bbb_course/solutions"
    folders = {f"{solutions}/{path.name}" for path in ROOT.glob(f"{solutions}/[0-9]*")}
    assert {link.target for link in rows} - set(PAGES) == folders
    row = ""
    for link in rows:
        if link.target in folders:
            row = f"exercises/README.md#e{int(link.text[:2])}"
        else:
            led = {each.target for each in links(PAGES[link.target])}
            assert row in led, f"{link.target} does not lead to {row}"


@pytest.fixture(scope="module", params=[tags_in_code, marked_tags])
def tags_by_file(request: pytest.FixtureRequest) -> dict[str, set[str]]:
    """Return the tags of all files of the packages, or of the tests, which are read once."""
    tags: dict[str, set[str]] = request.param()
    return tags


def test_every_equation_is_in_the_code_and_has_a_test_and_these_name_no_other(
    tags_by_file: dict[str, set[str]],
) -> None:
    undefined = {path: tags - set(DEFINED) for path, tags in tags_by_file.items()}
    assert not any(undefined.values()), undefined
    assert not set(DEFINED) - set().union(*tags_by_file.values())


def test_no_test_claims_more_equations_than_it_can_notice_being_wrong() -> None:
    many = {
        f"{path}::{name}": sorted(tags)
        for path in marked_tags()
        for name, tags in claims((ROOT / path).read_text("utf-8")).items()
        if len(tags) > MAX_CLAIMS
    }
    assert not many, many


def test_an_entry_has_the_mark_that_leads_to_its_code_proof_and_tests() -> None:
    for entry in ENTRIES:
        mark = f"[∎ {entry.tag}](proofs.md#{entry.tag.lower()})"
        assert entry.body.count(mark) == 1, entry.tag


def test_the_lines_on_one_screen_are_those_of_plain() -> None:
    section = TEXT.split("## On one screen", 1)[1].split("\n## ", 1)[0]
    source = (ROOT / PLAIN).read_text("utf-8")
    rows = re.findall(r"^\| `(.*?)` \| (.*) \|$", section, re.MULTILINE)
    assert len(rows) >= 12
    for line, derived in rows:
        code, comment = source.split(f"    {line} ", 1)[1].split("\n", 1)[0].split("#", 1)
        assert not code.strip(), line
        named = [link.text for link in links(derived)]
        written_out = f"{named[0]}-{named[-1]}" if " to " in derived else " ".join(named)
        assert tags_in(written_out, FAMILIES) == tags_in(comment, FAMILIES), line
    assert f"in {len(source.splitlines())} lines" in section


def test_mathematics_is_written_as_github_renders_it() -> None:
    inline = re.compile(r"(?<![^\s(|])\$`[^`\n]+`\$(?![^\s.,;:)|])")
    for page, markdown in PAGES.items():
        text = "\n".join(outside_fences(markdown))
        stray = [line for line in inline.sub("", text).splitlines() if "$" in line]
        assert not stray, (page, stray)
        assert r"\operatorname" not in markdown, "GitHub refuses this macro; use \\mathrm"


def test_tags_are_read_from_prose_and_marks_with_ranges_and_not_from_code() -> None:
    source = '''
"""Module (K1, K10-K12 and K43-44); ``W0`` and 'W2' are no tags."""
text = "K9"  # K5: a string is not prose, nor is M = 1e5  # noqa: D105
@pytest.mark.equation("K3", "D4-D5", *WRITTEN)
def test_a() -> None: pass
WRITTEN = ("K20", "K21")
'''
    assert tags_in(prose(source), FAMILIES) == {"K1", "K5", "K10", "K11", "K12", "K43", "K44"}
    assert claims(source)["test_a"] == {"K3", "D4", "D5", "K20", "K21"}
