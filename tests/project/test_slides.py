"""The lectures of site/slides: as long as they say, with pictures, code and homework that exist."""

import re

import pytest
from PIL import Image
from project.book import ROOT

DECKS = sorted(path for path in ROOT.glob("site/slides/*.md") if path.stem != "index")
SOURCES = "\n".join(path.read_text("utf-8") for path in ROOT.glob("bbb_numpy/**/*.py"))
NOTE = re.compile(r'<aside class="notes">\n(\d+) min(, only in the long version)?\. \w')
LINK = re.compile(r'<a href="\.\./playground/(\w+)\.html#preset=(\w+)">Playground: (.+?)</a>')
SCRIPTS = {"index": "lessons.js", "samplers": "samplers.js"}  # where a playground has its presets
LONG, SHORT = 90, 45  # minutes of the two versions
SCREEN = 1200, 580  # pixels that a picture may fill, see slides.css
ABOVE_A_LINK = 540
SMALLEST_LETTERS = 20  # pixels of 720

each_deck = pytest.mark.parametrize("deck", DECKS, ids=lambda deck: deck.stem)


def slides(deck):
    """Return the slides of a lecture, its title apart."""
    return re.split(r"^## ", deck.read_text("utf-8"), flags=re.MULTILINE)[1:]


def minutes(text):
    """Return the minutes of all slides of a text, and of those of the short version."""
    notes = [(int(time), bool(is_long)) for time, is_long in NOTE.findall(text)]
    return sum(time for time, _ in notes), sum(time for time, is_long in notes if not is_long)


@each_deck
def test_a_lecture_has_ninety_minutes_or_forty_five_shows_and_asks(deck):
    text, each = deck.read_text("utf-8"), slides(deck)
    assert 25 <= len(each) <= 35
    assert all(NOTE.search(slide) for slide in each)
    assert minutes(text) == (LONG, SHORT)
    assert text.count("QUESTION") >= 2
    assert sum(slide.startswith("Your turn") for slide in each) >= 4
    assert sum("![" in slide for slide in each) >= len(each) // 3


@each_deck
def test_its_agenda_has_the_minutes_of_its_parts(deck):
    text = deck.read_text("utf-8")
    _, *parts = re.split(r"^<!-- part: (.*) -->$", text, flags=re.MULTILINE)
    rows = [
        (name, *(str(time or "–") for time in minutes(part)))
        for name, part in zip(parts[::2], parts[1::2], strict=True)
    ]
    assert re.findall(r"^\| ([^|]+) \| (\d+) \| (\d+|–) \|$", text, re.MULTILINE) == rows


@each_deck
def test_it_begins_with_goals_and_ends_with_homework_that_exists_and_what_to_read(deck):
    titles = [slide.split("\n")[0] for slide in slides(deck)]
    assert titles[:2] == ["What you will be able to do", "Agenda"]
    assert titles[-2:] == ["Homework", "To read"]
    homework = slides(deck)[-2]
    exercises = re.findall(r"^- Exercise (\d\d)/(\d): ([\w ]+)", homework, re.MULTILINE)
    notebooks = re.findall(r"^- Notebook (\d\d): ([\w ]+)", homework, re.MULTILINE)
    assert len(exercises) >= 3
    assert notebooks
    for chapter, number, name in exercises:
        pattern = f"bbb_course/solutions/{chapter}_*/{number}_{name.strip().replace(' ', '_')}.py"
        assert list(ROOT.glob(pattern)), pattern
    for number, name in notebooks:
        assert list(ROOT.glob(f"notebooks/{number}_{name.strip().replace(' ', '_')}.ipynb")), name


@each_deck
def test_exercises_and_notebooks_that_its_notes_name_exist(deck):
    text = deck.read_text("utf-8")
    for chapter, number in re.findall(r"[Ee]xercise (\d\d)/(\d)", text):
        assert list(ROOT.glob(f"bbb_course/solutions/{chapter}_*/{number}_*.py")), (chapter, number)
    for path in re.findall(r"bbb-numpy grade exercises/(\S+?)[`\s]", text):
        assert (ROOT / "bbb_course/solutions" / path).exists(), path
    for number in re.findall(r"[Nn]otebook (\d\d)", text):
        assert list(ROOT.glob(f"notebooks/{number}_*.ipynb")), number


@each_deck
def test_what_its_notes_show_of_the_playground_is_linked_by_the_presets_own_title(deck):
    for slide in slides(deck):
        links = LINK.findall(slide)
        assert links or not re.search(r"preset|playground", slide), slide[:60]
        assert len(links) == slide.count("#preset=")
        for page, preset, title in links:
            script = (ROOT / "site/playground" / SCRIPTS[page]).read_text("utf-8")
            presets = script.split("const PRESETS = {", 1)[1].split("\n};", 1)[0]
            assert re.search(
                rf'^  {preset}: {{\s*title: "{re.escape(title)}"', presets, re.MULTILINE
            )


@each_deck
def test_its_pictures_exist_and_its_code_is_the_librarys(deck):
    text = deck.read_text("utf-8")
    for described, picture in re.findall(r"!\[(.*?)\]\((.*?)\)", text):
        assert (deck.parent / picture).is_file(), picture
        assert len(described) > 30, picture
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        for line in block.splitlines():
            code = line.split("  #")[0].strip()
            assert code in SOURCES or code.startswith("bbb_numpy."), code


@each_deck
def test_the_letters_of_its_pictures_are_read_in_the_tenth_row(deck):
    for slide in slides(deck):
        width, height = SCREEN
        if 'class="try"' in slide:
            height = ABOVE_A_LINK
        for name in re.findall(r"figures/slides/([\w-]+\.png)", slide):
            with Image.open(ROOT / "figures/slides" / name) as picture:
                scale = min(width / picture.width, height / picture.height)
                assert scale * float(picture.info["smallest letters"]) >= SMALLEST_LETTERS, name


def test_every_stored_picture_is_shown():
    shown = {
        name
        for deck in DECKS
        for name in re.findall(r"figures/slides/([\w-]+\.png)", deck.read_text("utf-8"))
    }
    assert shown == {path.name for path in ROOT.glob("figures/slides/*.png")}


def test_the_first_page_leads_to_every_lecture():
    index = (ROOT / "site/slides/index.md").read_text("utf-8")
    assert sorted(re.findall(r"\]\((\w+\.md)\)", index)) == [deck.name for deck in DECKS]
    for deck in DECKS:
        for query in ("short", "print-pdf", "short&amp;print-pdf"):
            assert f'"{deck.stem}.html?{query}"' in index
