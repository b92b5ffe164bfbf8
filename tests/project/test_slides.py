"""The lectures of site/slides: as long as an hour, with notes, pictures and code that exist."""

import re

import pytest
from project.book import ROOT

DECKS = sorted(path for path in ROOT.glob("site/slides/*.md") if path.stem != "index")
SOURCES = "\n".join(path.read_text("utf-8") for path in ROOT.glob("bbb_numpy/**/*.py"))


def slides(deck):
    """Return the slides of a lecture, its title apart."""
    return re.split(r"^## ", deck.read_text("utf-8"), flags=re.MULTILINE)[1:]


@pytest.mark.parametrize("deck", DECKS, ids=lambda deck: deck.stem)
def test_a_lecture_is_an_hour_of_about_25_slides_that_shows_and_asks(deck):
    text, each = deck.read_text("utf-8"), slides(deck)
    assert 20 <= len(each) <= 30
    minutes = [re.search(r'<aside class="notes">\n(\d+) min\. \w', slide) for slide in each]
    assert all(minutes), [slide[:40] for slide, time in zip(each, minutes, strict=True) if not time]
    assert 45 <= sum(int(time[1]) for time in minutes) <= 60
    assert text.count("QUESTION") >= 2
    assert sum("![" in slide for slide in each) >= len(each) // 3


@pytest.mark.parametrize("deck", DECKS, ids=lambda deck: deck.stem)
def test_its_pictures_exist_and_its_code_is_the_librarys(deck):
    text = deck.read_text("utf-8")
    for described, picture in re.findall(r"!\[(.*?)\]\((.*?)\)", text):
        assert (deck.parent / picture).is_file(), picture
        assert len(described) > 30, picture
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        for line in block.splitlines():
            code = line.split("  #")[0].strip()
            assert code in SOURCES or code.startswith("bbb_numpy."), code


def test_the_first_page_leads_to_every_lecture():
    index = (ROOT / "site/slides/index.md").read_text("utf-8")
    assert sorted(re.findall(r"\]\((\w+\.md)\)", index)) == [deck.name for deck in DECKS]
