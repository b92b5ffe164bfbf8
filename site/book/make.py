"""The book as one PDF: ``python site/book/make.py build/book`` writes bbb_numpy.pdf there.

Sphinx makes a page of each chapter, with formulas in MathML; the pages are put one behind the other
and printed by a headless Chromium, twice: the first print tells on which page each section begins.
"""

import html
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from posixpath import dirname, join, normpath
from typing import NamedTuple

from PIL import Image

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import generate  # noqa: E402

ROOT = HERE.parents[1]
TITLE = "Bayes by Backprop, proved"
COVER = "figures/band.png"
INDEX = "docs/terms.md"  # whose links have the pages to which they lead
BEFORE = ("docs/prerequisites.md", "derivations/ten-minutes.md")
BEHIND = ("docs/choosing.md", "docs/notation.md", "exercises/README.md", INDEX)
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
PACKAGES = ("sphinx", "myst_parser", "math_core", "ziamath", "pypdf")
PRINT_TIME_S = 600
VIRTUAL_TIME_MS = 60_000  # that scripts may take before the page is printed
CUT = "cut: "
MAX_PRINTS = 4
ARTICLE = re.compile(r'<div class="body" role="main">(.*?)<div class="clearer">', re.DOTALL)
NAVIGATION = re.compile(r"<p><a [^>]*><span [^>]*>Contents</span></a> · .*?</p>", re.DOTALL)
HEADING = re.compile(r"<(h[12])>(.*?)<a class=\"headerlink\" href=\"#([^\"]+)\"", re.DOTALL)


class Section(NamedTuple):
    """A heading of the book: its level, 1 for chapters, its words in HTML, and its anchor."""

    level: int
    title: str
    anchor: str


def chapters() -> list[str]:
    """Return the pages of the book in reading order, as files from the root."""
    return list(dict.fromkeys([*BEFORE, *generate.book.PAGES, *BEHIND]))


def browser() -> str:
    """Return the program that prints; raise SystemExit that says what to install."""
    for name in (os.environ.get("CHROMIUM", ""), *BROWSERS):
        if name and shutil.which(name):
            return name
    raise SystemExit(
        "make book prints with Chromium, which is not installed: `apt install chromium`, or "
        "CHROMIUM=/path/to/chrome make book"
    )


def check_packages() -> None:
    """Raise SystemExit that says what to install, if a package is missing."""
    missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        raise SystemExit(f"make book needs {', '.join(missing)}: pip install '.[site]'")


def write_sources(folder: Path) -> None:
    """Write the chapters and their pictures for Sphinx, and a page that lists them."""
    texts = {}
    for page in chapters():
        text = generate.text.convert((ROOT / page).read_text("utf-8"), page)
        texts[page] = re.sub(r"<iframe\b.*?</iframe>\n*", "", text, flags=re.DOTALL)
        for linked in generate.text.links((ROOT / page).read_text("utf-8"), page):
            if Path(linked).suffix in generate.text.PICTURES:
                (folder / linked).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / linked, folder / linked)
    rows = "\n".join("/" + page.removesuffix(".md") for page in texts)
    texts["index.md"] = f"# {TITLE}\n\n![cover]({COVER})\n\n```{{toctree}}\n{rows}\n```\n"
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")


def build_pages(source: Path, out: Path) -> None:
    """Let Sphinx make a page of each chapter; a warning is an error."""
    subprocess.run(
        [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html",
         "-c", HERE, "-d", source.parent / "doctrees", source, out],
        check=True,
    )  # fmt: skip
    for path in (out / "_images").glob("*.png"):
        with Image.open(path) as picture:
            if getattr(picture, "is_animated", False):  # paper has the end of a film
                picture.seek(picture.n_frames - 1)
                picture.convert("RGBA").save(path)


def anchor_of(page: str, name: str = "") -> str:
    """Return the anchor that a page, or a place on it, has in the book."""
    return f"{page.removesuffix('.md')}--{name}".replace("/", "-").rstrip("-")


def chapter(page: str, out: Path) -> str:
    """Return a chapter with its anchors and links as they are within one file."""
    built = (out / page).with_suffix(".html").read_text("utf-8")
    match = ARTICLE.search(built)
    assert match is not None, page
    body = re.sub(r'\bid="([^"]+)"', lambda m: f'id="{anchor_of(page, m[1])}"', match[1])
    pages = set(chapters())

    def move_link(link: re.Match[str]) -> str:
        target = html.unescape(link[1])
        path, _, name = target.partition("#")
        linked = page
        if path:
            linked = normpath(join(dirname(page), path)).removesuffix(".html") + ".md"
        if "://" in target or target.startswith("mailto:"):
            return link[0]
        if linked in pages:
            return f'href="#{anchor_of(linked, name)}"'
        return ""

    body = re.sub(r'\bhref="([^"]*)"', move_link, body)
    body = re.sub(r'\bsrc="(?:\.\./)*_images/', 'src="_images/', body)
    body = NAVIGATION.sub("", body).replace("<details>", "<details open>")
    return f'<section id="{anchor_of(page)}">\n{body}\n</section>'


def without_dead_links(body: str) -> str:
    """Return the text of the book without links to what is not in it."""
    anchors = set(re.findall(r'\bid="([^"]+)"', body))
    return re.sub(r' href="#([^"]+)"', lambda link: link[0] if link[1] in anchors else "", body)


def sections(body: str) -> list[Section]:
    """Return the chapters and their sections."""
    return [
        Section(int(level[1]), title.strip(), anchor)
        for level, title, anchor in HEADING.findall(body)
    ]


def with_pages(bodies: str, pages: dict[str, int]) -> str:
    """Return the book with the page of each link of its index behind it, where it is known."""
    start = bodies.index(f'<section id="{anchor_of(INDEX)}">')

    def add_page(link: re.Match[str]) -> str:
        return f'{link[0]} data-page="{pages.get(link[1], "")}"'

    return bodies[:start] + re.sub(r'href="#([^"]+)"', add_page, bodies[start:])


def contents(listed: list[Section], pages: dict[str, int]) -> str:
    """Return the table of contents; `pages` has the page of each anchor, if it is known."""
    rows = ["<ol>"]
    level = 1
    for section in listed:
        rows.append("<ol>" * (section.level - level) + "</ol>" * (level - section.level))
        level = section.level
        title = re.sub(r"</?a\b[^>]*>", "", section.title)
        page = pages.get(section.anchor, 0)
        rows.append(
            f'<li><a href="#{section.anchor}" data-page="{page or ""}">'
            f"<span>{title}</span><i></i></a></li>"
        )
    rows.append("</ol>" * level)
    return "\n".join(rows)


def whole(bodies: str, pages: dict[str, int]) -> str:
    """Return the book as one page of HTML."""
    return f"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>{TITLE}</title>
<link rel="stylesheet" href="book.css">
<script src="book.js"></script>
<body>
<div id="title">
<h1 class="title">{TITLE}</h1>
<p>The derivations of bbb_numpy {version()}</p>
<p><img src="_images/{Path(COVER).name}" alt=""></p>
<p>The bbb_numpy authors</p>
</div>
<div id="contents">
<h1>Contents</h1>
{contents(sections(bodies), pages)}
</div>
{with_pages(bodies, pages)}
</body>
</html>
"""


def version() -> str:
    """Return the version of the package."""
    from bbb_numpy import __version__

    return __version__


def print_pdf(page: Path, pdf: Path) -> None:
    """Print a page of HTML, with bookmarks of its headings."""
    command = [
        browser(), "--headless", "--no-sandbox", "--disable-gpu", "--disable-extensions",
        "--no-pdf-header-footer", "--generate-pdf-document-outline",
        f"--virtual-time-budget={VIRTUAL_TIME_MS}", f"--print-to-pdf={pdf}", page.as_uri(),
    ]  # fmt: skip
    pdf.unlink(missing_ok=True)
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=PRINT_TIME_S, check=False
    )
    if done.returncode or not pdf.is_file():
        raise SystemExit(f"{command[0]} did not print: {done.stderr[-2000:]}")


def pages_of_anchors(pdf: Path) -> dict[str, int]:
    """Return the page, from 1, of each anchor that a link of the PDF leads to.

    Raises SystemExit, if anything stands out of its page.
    """
    from pypdf import PdfReader

    reader = PdfReader(pdf)
    title = str(reader.metadata and reader.metadata.title)
    if title.startswith(CUT):  # as book.js says it
        raise SystemExit(f"the page is too narrow for {title.removeprefix(CUT)}")
    return {
        name.lstrip("/"): reader.get_destination_page_number(destination) + 1
        for name, destination in reader.named_destinations.items()
    }


def main(folder: Path) -> Path:
    """Write the book to `folder`/bbb_numpy.pdf and return its path."""
    browser()
    check_packages()
    folder = folder.resolve()
    source, out = folder / "source", folder / "html"
    write_sources(source)
    build_pages(source, out)
    for name in ("book.css", "book.js"):
        shutil.copy(HERE / name, out / name)
    bodies = without_dead_links("\n".join(chapter(page, out) for page in chapters()))
    page, pdf = out / "book.html", folder / "bbb_numpy.pdf"
    pages: dict[str, int] = {}
    for _ in range(MAX_PRINTS):
        page.write_text(whole(bodies, pages), "utf-8")
        print_pdf(page, pdf)
        printed = pages_of_anchors(pdf)
        if printed == pages:
            break
        pages = printed
    return pdf


if __name__ == "__main__":
    print(main(Path(sys.argv[1])))
