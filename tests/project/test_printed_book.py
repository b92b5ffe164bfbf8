"""The book as one PDF: chapters in order, links that stay inside, and on paper nothing cut.

What needs Sphinx and a browser is marked `slow`, and skipped where they are not installed.
"""

import importlib.util
import re
import shutil
import sys

import pytest
from project.book import PAGES, ROOT, outside_fences

SITE = ROOT / "site"


def load():
    """Import site/book/make.py, which is in no package."""
    spec = importlib.util.spec_from_file_location("make_book", SITE / "book" / "make.py")
    module = importlib.util.module_from_spec(spec)
    before = list(sys.path)
    spec.loader.exec_module(module)
    sys.path[:] = before
    return module


make = load()


def title(page):
    """Return the title of a chapter, as letters and digits only."""
    first = re.search(r"^# (.*)$", (ROOT / page).read_text("utf-8"), re.MULTILINE)[1]
    return letters(first)


def letters(text):
    """Return what a print cannot change in a title."""
    return "".join(re.findall(r"[a-z0-9]", text.lower()))


def test_it_has_every_chapter_once_in_reading_order():
    pages = make.chapters()
    assert len(set(pages)) == len(pages)
    opening = make.BEFORE[-1]
    assert pages.index(opening) < pages.index("derivations.md")
    assert [page for page in pages if page in PAGES and page != opening] == [
        page for page in PAGES if page != opening
    ]
    assert pages[-1] == make.INDEX
    assert all((ROOT / page).is_file() for page in pages)


def test_anchors_of_two_pages_differ_and_a_link_to_what_is_not_there_is_none():
    assert make.anchor_of("derivations/why.md", "d8") == "derivations-why--d8"
    assert make.anchor_of("derivations.md") == "derivations"
    body = (
        '<p id="a--k1"><a href="#a--k1">in</a> <a href="#b--k2">out</a> <a href="https://x">web</a>'
    )
    kept = make.without_dead_links(body)
    assert re.findall(r'href="([^"]*)"', kept) == ["#a--k1", "https://x"]


def test_the_contents_have_the_pages_that_were_printed():
    body = (
        '<h1>One<a class="headerlink" href="#one"></a></h1>'
        '<h2><a href="#x">Two</a><a class="headerlink" href="#two"></a></h2>'
        '<h1>Three<a class="headerlink" href="#three"></a></h1>'
    )
    listed = make.sections(body)
    assert [section.level for section in listed] == [1, 2, 1]
    shown = make.contents(listed, {"one": 5, "two": 7})
    assert re.findall(r'href="#(\w+)" data-page="(\d*)"', shown) == [
        ("one", "5"), ("two", "7"), ("three", ""),
    ]  # fmt: skip
    assert shown.count("<ol>") == shown.count("</ol>") == 2


def test_the_index_of_terms_says_the_pages_of_its_links():
    index = f'<section id="{make.anchor_of(make.INDEX)}">'
    bodies = f'<a href="#a">one</a>{index}<a href="#a">two</a><a href="#b">three</a>'
    shown = make.with_pages(bodies, {"a": 12})
    assert re.findall(r"<a[^>]*>", shown) == [
        '<a href="#a">', '<a href="#a" data-page="12">', '<a href="#b" data-page="">',
    ]  # fmt: skip


def test_without_a_browser_it_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CHROMIUM", raising=False)
    with pytest.raises(SystemExit, match="apt install chromium"):
        make.main(tmp_path)
    assert not list(tmp_path.iterdir())


def test_without_its_packages_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr(make, "PACKAGES", ("sphinx_of_nobody",))
    with pytest.raises(SystemExit, match=r"sphinx_of_nobody: pip install '\.\[site\]'"):
        make.check_packages()


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    """The folder of a book that was made."""
    for needed in make.PACKAGES:
        pytest.importorskip(needed, reason=f"{needed} is not installed: pip install '.[site]'")
    if not any(map(shutil.which, make.BROWSERS)):
        pytest.skip("chromium is not installed")
    folder = tmp_path_factory.mktemp("book")
    make.main(folder)
    return folder


@pytest.mark.slow
def test_the_pdf_has_each_chapter_picture_and_formula_and_nothing_is_cut(printed, tmp_path):
    from pypdf import PdfReader

    reader = PdfReader(printed / "bbb_numpy.pdf")
    bookmarks = [letters(mark.title) for mark in reader.outline if not isinstance(mark, list)]
    assert bookmarks[2:] == [title(page) for page in make.chapters()]  # behind title and contents
    page = (printed / "html" / "book.html").read_text("utf-8")
    pictures = set()
    for resources in (sheet["/Resources"] for sheet in reader.pages):
        for name in resources.get("/XObject", {}):
            image = resources["/XObject"][name]
            if image["/Subtype"] == "/Image":
                pictures.add(image.indirect_reference.idnum)
    assert len(pictures) >= len(set(re.findall(r'<img [^>]*src="([^"]+)"', page))) > 60
    sources = "\n".join((ROOT / name).read_text("utf-8") for name in make.chapters())
    in_lines = re.findall(r"\$`[^`]+`\$", "\n".join(outside_fences(sources)))
    in_blocks = re.findall(r"^\s*```math$", sources, re.MULTILINE)
    assert page.count("<math") == len(in_lines) + len(in_blocks) > 2000
    assert reader.metadata.title == make.TITLE  # which says what is cut, if anything is
    wide = page.replace('<div id="title">', '<div style="width: 180mm">wide</div><div id="title">')
    (printed / "html" / "wide.html").write_text(wide.split("<section", 1)[0], "utf-8")
    make.print_pdf(printed / "html" / "wide.html", tmp_path / "wide.pdf")
    with pytest.raises(SystemExit, match="too narrow for DIV wide"):
        make.pages_of_anchors(tmp_path / "wide.pdf")


@pytest.mark.slow
def test_its_links_stay_inside_and_its_contents_have_the_right_pages(printed):
    page = (printed / "html" / "book.html").read_text("utf-8")
    targets = re.findall(r'href="#([^"]+)"', page)
    assert set(targets) <= set(re.findall(r'\bid="([^"]+)"', page))
    assert len(targets) > 300
    stated = re.findall(r'href="#([^"]+)" data-page="(\d+)"', page)
    assert len(stated) == page.count("data-page=") > 200
    numbers = dict(stated)
    pages = make.pages_of_anchors(printed / "bbb_numpy.pdf")
    assert {anchor: int(number) for anchor, number in numbers.items()} == {
        anchor: pages[anchor] for anchor in numbers
    }
