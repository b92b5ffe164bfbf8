"""The index of terms leads to sections that have the terms, in alphabetical order."""

import re
from collections.abc import Iterator

import pytest
from project.book import ENTRIES, ROOT, links, outside_fences
from project.terms import PAGE, TERMS, place_of, sections

INDEX = links((ROOT / PAGE).read_text("utf-8").split("<!-- terms -->")[1])


def explaining(term: str) -> Iterator[str]:
    place = place_of(term, TERMS[term])
    yield from (section.text for section in sections() if section.place == place)
    yield from (entry.body for entry in ENTRIES if entry.tag == TERMS[term])


@pytest.mark.parametrize("term", TERMS)
def test_a_term_is_in_the_section_to_which_the_index_leads(term: str) -> None:
    texts = [" ".join(text.replace("*", "").lower().split()) for text in explaining(term)]
    assert any(term.lower() in text for text in texts), (term, place_of(term, TERMS[term]))


def test_the_index_has_every_term_once_in_alphabetical_order() -> None:
    terms = [link.text for link in INDEX]
    assert sorted(terms) == sorted(TERMS)
    assert terms == sorted(terms, key=lambda term: term.replace("é", "e").lower())


def test_a_term_that_no_section_emphasises_is_refused() -> None:
    with pytest.raises(ValueError, match="no section emphasises"):
        place_of("phlogiston", "")


def test_a_section_is_read_without_pictures_code_and_links() -> None:
    for section in sections():
        assert not re.search(r"\]\(|!\[|```", section.text), section.place
    assert len(outside_fences("```\na\n```")) == 3
