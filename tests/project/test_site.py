"""The site: a page for every equation, links that lead somewhere, examples that print as shown.

What needs a browser and Sphinx is marked `long`, and skipped where they are not installed.
"""

import ast
import html
import importlib.util
import json
import re
import shutil
import subprocess
import sys
import tempfile
from base64 import b64decode
from html.parser import HTMLParser
from urllib.parse import unquote, urlencode, urlsplit

import numpy as np
import pytest
from PIL import Image
from project.book import (
    DEFINED,
    ENTRIES,
    FAMILIES,
    PATH,
    ROOT,
    names_of,
    slug,
    tags_in,
    textbook_tags,
)

from bbb_course import effort
from bbb_course.keys import name_of
from bbb_course.templates import BEGIN, END, SOLUTIONS, solution_paths, template
from bbb_course.variants import n_variants

SITE = ROOT / "site"
BROWSER = (ROOT / "tests/project/browser.js").read_text("utf-8")
PHONE, DESK = 360, 1440  # pixels
MOST = 27e6  # bytes of the whole site


def load(name):
    """Import a module of site/, which is a folder and no package: Python has a module `site`."""
    sys.path.insert(0, str(SITE))
    try:
        spec = importlib.util.spec_from_file_location(f"site_{name}", SITE / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(SITE))
    return module


generate = load("generate")
pages = generate.text


@pytest.fixture(scope="module")
def files():
    return generate.written()


def lacking(entry, page):
    """Say what the page of an equation lacks of its two columns."""
    wrong = []
    if page.count('<div class="column">') != 2:
        wrong.append("two columns")
    chapter = (ROOT / entry.page).read_text("utf-8")
    start = rf"^#{{2,4}} {entry.tag}: |<a id=\"{entry.tag.lower()}\"></a>"
    below = re.split(start, chapter, maxsplit=1, flags=re.MULTILINE)[1].split("\n", 1)[1]
    own = re.split(r'^#{2,4} |^.*<a id="', below, maxsplit=1, flags=re.MULTILINE)[0]
    formulas = re.findall(r"```math\n(.*?)```", own, re.DOTALL)
    if not all(formula in page for formula in formulas):
        wrong.append("a formula of its derivation")
    marked = re.findall(r"<span class=hit>.*?\n</span>", page, re.DOTALL)
    plain = [re.sub(r"<[^>]*>", "", row) for row in marked]
    if not plain or not all(entry.tag in tags_in(row, FAMILIES) for row in plain):
        wrong.append("a marked line that carries the tag")
    proofs = generate.proofs()[entry.tag]
    listed = re.sub(r"<[^>]*>", "", page)
    if not proofs or not all(f"def {proof.test}(" in listed for proof in proofs):
        wrong.append("its proof")
    tests = generate.tests_of()[entry.tag]
    if not (tests or entry.tag in textbook_tags()) or not all(
        f"[`{test}`]" in page for _, test in tests
    ):
        wrong.append("a test with its mark, or a formula in the textbook")
    return [f"{entry.tag} lacks {what}" for what in wrong]


def test_every_equation_has_a_page_with_its_derivation_its_lines_and_its_proof(files):
    pages_of = {tag: f"tags/{tag.lower()}.md" for tag in DEFINED}
    assert set(pages_of.values()) <= set(files)
    wrong = [what for entry in ENTRIES for what in lacking(entry, files[pages_of[entry.tag]])]
    assert not wrong, "\n" + "\n".join(wrong)
    overview = files["tags/index.md"]
    assert all(f"[{tag}]({tag.lower()}.md)" in overview for tag in DEFINED)


def test_every_chapter_leads_to_the_pages_of_its_equations(files):
    for entry in ENTRIES:
        way = pages.relative(f"tags/{entry.tag.lower()}.md", entry.page)
        assert f"({way})" in files[entry.page], entry.tag


def test_what_the_package_exports_is_in_the_reference(files):
    from bbb_numpy import __all__ as names

    listed = {line.rpartition(".")[2] for line in generate.exported()}
    assert listed == {*names, "check_gradient"} - {"__version__", "check"}
    for line in generate.exported():
        module, _, name = line.rpartition(".")
        assert name in files[f"api/{module}.rst"], line


def test_nothing_is_left_of_githubs_own_forms(files):
    for name in generate.crawl().pages - {"site/index.md"}:
        assert "```math" not in files[name], name
        free = "\n".join(run for run, free in pages.paragraphs(files[name]) if free)
        assert "$`" not in free, name


def test_every_symptom_of_the_table_has_its_section_and_every_section_its_row():
    text = (SITE / "symptoms.md").read_text("utf-8")
    rows = re.findall(r"^\|.*\(#([\w-]+)\) \|$", text, re.MULTILINE)
    titles = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert rows == [slug(title) for title in titles]


def test_the_first_page_has_a_moving_picture_a_line_of_code_that_runs_and_four_doors():
    page = (SITE / "index.md").read_text("utf-8")
    assert "training.png)" in page.split("```math")[0]
    (line,) = re.findall(r"```python\n(.*)\n```", page)
    assert re.search(rf"^ *{re.escape(line)}  ", (ROOT / "bbb_numpy/plain.py").read_text(), re.M)
    assert len(re.findall(r"^\*\*\[(?:Learn|Check|Use|Teach)\b", page, re.MULTILINE)) == 4


def test_the_path_comes_first_in_the_contents_of_the_site(files):
    path = files["index.md"].split(":caption: The path", 1)[1].split("```", 1)[0].split()
    assert path[2:] == [f"/{page.removesuffix('.md')}" for page in PATH]


def test_other_names_are_those_of_equations():
    names = names_of(ast.parse((SITE / "finding.py").read_text("utf-8")))["OTHER_NAMES"]
    assert set(ast.literal_eval(names)) <= set(DEFINED)


def test_a_file_has_a_line_for_each_of_its_lines_whose_tags_lead_to_their_pages(files):
    shown = files["extra/source/bbb_numpy/plain.py.html"]
    listed = shown.split("<ol><li id=L-1>")[1].split("</ol>")[0]
    bare = re.sub(r"<[^>]*>", "", re.sub(r"<li[^>]*>", "\n", listed)) + "\n"
    source = (ROOT / "bbb_numpy/plain.py").read_text("utf-8")
    assert html.unescape(bare).replace("\t", "    ") == source
    lines = source.splitlines()
    assert len(re.findall("<li[ >]", shown)) == len(lines)
    anchors = {int(number) for number in re.findall(r"<li id=L-(\d+)>", shown)}
    named = {at for at, line in enumerate(lines, 1) if re.match(r" *(def|class) |@", line)}
    assert {1} | named <= anchors <= set(range(1, len(lines) + 1))
    assert '<a href="../../tags/k30.html">K30</a>' in shown


SOLVED = solution_paths()


@pytest.mark.parametrize("path", SOLVED, ids=lambda path: path.stem)
def test_an_exercise_has_a_page_that_says_how_to_grade_it_and_not_how_to_solve_it(files, path):
    chapter = path.parent.name
    page = files[f"exercises/{chapter}/{path.stem}.md"]
    assert f"bbb-numpy grade exercises/{chapter}/{path.name}\n" in page
    assert f"bbb-numpy grade --copy exercises {chapter[:2]} " in page
    assert f"[{book_title(files, chapter)}](index.md)" in page
    effort_of = effort(name_of(path))
    assert f"{effort_of.minutes} min, {effort_of.level}" in page
    assert ("--variant SEED" in page) == (n_variants(name_of(path)) > 0)
    hole = template(path.read_text("utf-8"))
    assert files[f"extra/exercises/{chapter}/{path.name}"] == hole
    solved = path.read_text("utf-8").split(BEGIN)[1].split(END)[0]
    lines = {line.strip() for line in solved.splitlines()} - {x.strip() for x in hole.splitlines()}
    assert not [line for line in lines if len(line) > 12 and line in page]
    assert f"]({path.stem}.md)" in files[f"exercises/{chapter}/index.md"]


def book_title(files, chapter):
    """Return the title of a chapter's page."""
    return re.search(r"^# (.*)$", files[f"exercises/{chapter}/index.md"], re.MULTILINE)[1]


def test_the_overview_of_exercises_leads_to_their_pages_and_no_solution_is_on_the_site(files):
    overview = files["exercises/README.md"]
    for chapter in {path.parent.name for path in SOLVED}:
        assert f"({chapter}/index.md)" in overview
        assert chapter[:2] == book_title(files, chapter)[:2]
    assert not [name for name in files if "solutions/" in name and not name.endswith(".md")]
    folder = files["extra/source/bbb_course/index.html"]
    assert '<a href="../../exercises/README.html">solutions/</a>' in folder
    assert not [name for name in files if "bbb_course/keys" in name]


def test_statements_are_plain_text_whose_entries_and_pages_are_links():
    course = load("course")
    line = "Take w_i *once*, `a_b`, x * y, [1] and K5 to K7 in derivations/why.md."
    assert course.with_links(line, "exercises/02_free_energy/p.md") == (
        "Take w\\_i *once*, `a_b`, x \\* y, \\[1\\] and [K5](../../tags/k5.md) to "
        "[K7](../../tags/k7.md) in [Why a distribution over weights](../../derivations/why.md)."
    )


def test_the_sidebar_of_a_module_has_its_part_and_that_of_an_exercise_its_chapter():
    sidebars = load("sidebars")
    of_module = sidebars.of_module("bbb_numpy.numeric.layout", str)
    assert of_module.back.address == "api/index"
    assert [item.title for item in of_module.items if item.is_current] == ["layout"]
    (names,) = [item.items for item in of_module.items if item.is_current]
    assert ("Layout", "#bbb_numpy.numeric.layout.Layout") in [item[:2] for item in names]
    assert "parts" in [item.title for item in of_module.others]
    pages_of = sidebars.course.exercise_pages()
    page = pages_of["exercises/02_free_energy/5_value_and_gradient.md"]
    (chapter,) = sidebars.of_exercise(page, str).items
    assert [item.title for item in chapter.items if item.is_current] == ["5 value and gradient"]
    assert len(chapter.items) == len(list((SOLUTIONS / page.chapter).glob("*.py")))


def test_every_page_for_users_is_in_the_contents_in_the_order_of_the_table(files):
    listed = re.findall(r"^/(docs/[\w-]+)$", files["index.md"], re.MULTILINE)
    assert len(set(listed)) == len(listed)
    assert {f"docs/{path.stem}" for path in ROOT.glob("docs/*.md")} == set(listed)
    using = re.findall(r"\]\(([\w-]+)\.md\)", (ROOT / "docs/using.md").read_text("utf-8"))
    part = files["index.md"].split(":caption: Use it")[1].split("```")[0]
    order = [name for name in dict.fromkeys(using) if f"/docs/{name}\n" in part]
    assert order == [name for name in re.findall(r"/docs/([\w-]+)", part) if name in order]


@pytest.mark.parametrize("path", sorted(ROOT.glob("notebooks/*.ipynb")), ids=lambda p: p.stem)
def test_a_notebook_is_offered_for_download_without_its_outputs(files, path):
    page = f"notebooks/{path.name}"
    offered, stored = (json.loads(text) for text in (files[f"extra/{page}"], path.read_text()))
    assert [cell["source"] for cell in offered["cells"]] == [c["source"] for c in stored["cells"]]
    assert not any(cell.get("outputs") for cell in offered["cells"])
    said = json.loads(files[page])["cells"][1]["source"]
    assert f'<a href="{path.name}" download>' in said
    assert f"jupyter lab {page}`" in said


def test_slim_pages_say_the_same_and_stay_as_they_are():
    slim = load("slim")
    page = (
        '<html>\n   <body>\n\n <article role="main">\n<pre>a\n    b\n\nc</pre>'
        '<code class="docutils literal notranslate"><span class="pre">x</span> '
        '<span class="pre">y</span></code>'
        '<img src="a/b.png"/><ul><li><a href="#c">d</a></li>\n</ul></article>\n\n  <footer>'
    )
    smaller = slim.slim(page)
    assert "<pre>a\n    b\n\nc</pre>" in smaller
    assert "<code class=literal>x y</code>" in smaller
    assert '<img src="a/b.png"/><ul><li><a href=#c>d</a></ul></article>' in smaller
    assert smaller.startswith("<html>\n<body>\n<article")
    assert slim.slim(smaller) == smaller


def test_the_playground_is_shown_below_a_paragraph_that_leads_to_a_preset():
    text = "See [the gap](../site/playground/index.html#preset=gap).\n\nNext.\n"
    paragraphs = pages.convert(text, "derivations/p.md").split("\n\n")
    assert 'src="../playground/index.html#preset=gap&amp;bare"' in paragraphs[1]
    assert paragraphs[2].strip() == "Next."
    assert "<iframe" not in pages.convert(text.replace("#preset=gap", ""), "derivations/p.md")
    assert "<iframe" not in pages.convert(f"- {text}", "derivations/p.md")


LEAST_TEXT = 9  # pixels of a label of 10 points on a phone
PHONE_OF_PICTURES = 380  # pixels
WIDEST_PIECE = PHONE_OF_PICTURES * 150 * 10 / (72 * LEAST_TEXT)  # pixels at 150 per inch


def drawn(*boxes, size=(1200, 400), ground=(0, 0, 0, 0)):
    """Return a picture with black boxes (left, top, right, bottom)."""
    picture = Image.new("RGBA", size, ground)
    for box in boxes:
        picture.paste((0, 0, 0, 255), box)
    return picture


@pytest.mark.parametrize("ground", [(0, 0, 0, 0), (255, 255, 255, 255)])
def test_a_wide_picture_is_cut_between_its_panels_and_never_through_ink(ground):
    pieces = load("pictures").pieces
    label, left, right = (600, 100, 610, 300), (0, 60, 580, 390), (620, 60, 1190, 390)
    two = pieces(drawn(left, label, right, ground=ground))
    assert [(piece.left, piece.right) for piece in two] == [(0, 586), (594, 1196)]
    legend = (100, 5, 560, 25), (570, 5, 1100, 25)
    with_legend = pieces(drawn(left, label, right, *legend, ground=ground))
    assert [piece.top < 40 for piece in with_legend] == [True, True, False, False]
    assert with_legend[2:] == [piece._replace(top=54) for piece in two]
    assert pieces(drawn((0, 0, 1190, 390), ground=ground)) == []
    assert pieces(drawn((0, 0, 300, 390), (320, 0, 600, 390), size=(620, 400))) == []


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted(ROOT.glob("figures/*.png")), ids=lambda path: path.stem)
def test_a_picture_or_each_of_its_panels_is_narrow_enough_for_a_phone(path):
    with Image.open(path) as picture:
        found = load("pictures").pieces(picture)
        widths = [piece.right - piece.left for piece in found] or [picture.width]
        pixels = np.asarray(picture.convert("RGBA"))[..., 3] > 8
    assert max(widths) <= WIDEST_PIECE
    shown = np.zeros_like(pixels)
    for left, top, right, bottom in found:
        shown[top:bottom, left:right] = True
    assert not found or not (pixels & ~shown).any()


def test_githubs_markdown_becomes_mysts():
    page = "See [K1](a.md#one) and $`x^2`$, not `[K1](b.md)`.\n```math\n$`y`$\n```\n[c](../c.md)\n"
    said = pages.convert(page, "derivations/p.md")
    assert "{math}`x^2`" in said
    assert "`[K1](b.md)`" in said
    assert "```{math}\n$`y`$\n```" in said
    assert pages.links(page, "derivations/p.md") == {"derivations/a.md", "c.md"}
    moved = pages.convert(page, "derivations/p.md", "tags/k1.md")
    assert "[K1](../derivations/a.md#one)" in moved
    assert "[c](../c.md)" in moved


def test_a_line_that_begins_with_per_cent_is_no_comment():
    assert pages.convert("The 5\n% quantile.\n", "derivations/p.md") == "The 5\n\\% quantile.\n"


def test_a_link_to_code_leads_to_the_line_of_its_definition():
    link = pages.new_link("[`plain.fit`]", "../bbb_numpy/plain.py", "derivations/p.md", "tags/k.md")
    line = int(re.search(r"#L-(\d+)\)$", link)[1])
    source = (ROOT / "bbb_numpy/plain.py").read_text("utf-8").splitlines()
    assert source[line - 1].startswith("def fit(")
    assert link.startswith("[`plain.fit`](src:../source/bbb_numpy/plain.py#")


# In a browser


class Page(HTMLParser):
    """The links, the anchors and what is loaded with a page."""

    def __init__(self, text):
        super().__init__()
        self.links, self.names, self.loaded = [], set(), []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.names |= {values[key] for key in ("id", "name") if values.get(key)}
        if tag == "a" and values.get("href"):
            self.links.append(values["href"])
        if tag == "link" and values.get("rel") not in ("canonical", None):
            self.loaded.append(values.get("href") or "")
        if values.get("src"):
            self.loaded.append(values["src"])


def built_problems(folder):
    """Say which links and files of the built pages are missing, or come from another host."""
    parsed = {path: Page(path.read_text("utf-8")) for path in folder.rglob("*.html")}
    problems = []
    for path, page in parsed.items():
        for target in {*page.links, *page.loaded}:
            parts = urlsplit(target)
            if parts.scheme in ("http", "https"):
                if target in page.loaded:
                    problems.append(f"{path.relative_to(folder)} loads {target}")
                continue
            if parts.scheme or target == "#":
                continue
            other = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not other.is_file():
                problems.append(f"{path.relative_to(folder)}: {target}: no such file")
            elif other.parent.name == "playground":
                continue  # what follows # is a preset, see test_playground.py
            elif unquote(parts.fragment) not in {
                "",
                *(parsed[other].names if other in parsed else ()),
            }:
                problems.append(f"{path.relative_to(folder)}: {target}: no such anchor")
    return problems


def sphinx(builder, conf, source, out):
    """Build pages; a warning is an error."""
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", builder]
    with tempfile.TemporaryDirectory() as trees:
        done = subprocess.run(
            [*command, "-d", trees, "-c", str(conf), str(source), str(out)],
            cwd=ROOT, capture_output=True, text=True, check=False,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return out


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The pages, built into a folder of their own, and the slides in it."""
    for needed in ("sphinx", "furo", "myst_nb", "numpydoc", "sphinx_revealjs"):
        pytest.importorskip(needed, reason=f"{needed} is not installed: pip install '.[site]'")
    folder = tmp_path_factory.mktemp("site").resolve()
    generate.main(folder / "source")
    made = sphinx("html", SITE, folder / "source", folder / "html")
    sphinx("revealjs", SITE / "slides", SITE / "slides", made / "slides")
    return made


@pytest.fixture(scope="module")
def browser():
    """A headless Chromium that can reach no network."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if not program or not shutil.which("chromedriver"):
        pytest.skip("chromium and chromedriver are not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = program
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        for argument in (
            "headless", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run",
            "disable-background-networking", "disable-component-update", "disable-sync",
            "host-resolver-rules=MAP * ~NOTFOUND", f"user-data-dir={profile}",
        ):  # fmt: skip
            options.add_argument(f"--{argument}")
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        service = webdriver.ChromeService(shutil.which("chromedriver"))
        driver = webdriver.Chrome(options=options, service=service)
        driver.set_script_timeout(120)
        try:
            yield driver
        finally:
            driver.quit()


def opened(browser, path):
    browser.get(path.as_uri())
    browser.execute_async_script(f"{BROWSER}\nready(arguments[0]);")


def ask(browser, name):
    return browser.execute_script(f"{BROWSER}\nreturn {name}();")


def seen(browser, path):
    """Return what a browser makes of a page."""
    opened(browser, path)
    found = ask(browser, "look")
    found["said"] = [line["message"] for line in browser.get_log("browser")]
    return found


def looks_wrong(found, width):
    """Say what is wrong with a page as a browser shows it."""
    wrong = [f"console: {message}" for message in found["said"]]
    wrong += [f"{found['width']} pixels wide, not {width}"] if found["width"] > width else []
    wrong += [f"{found['broken']} broken formulas"] if found["broken"] else []
    wrong += [f"raw LaTeX: {found['latex'][:3]}"] if found["latex"] else []
    if found["typeset"] < found["formulas"]:
        wrong.append(f"{found['typeset']} of {found['formulas']} formulas are typeset")
    wrong += [f"links without a line: {found['colourless'][:3]}"] if found["colourless"] else []
    wrong += ["marked lines that only colour marks"] if found["unmarked"] else []
    return wrong + [f"loads {name}" for name in found["loaded"]]


def sized(browser, width):
    """Give the screen a width, in pixels; only a phone is narrow."""
    size = {"width": width, "height": 720, "deviceScaleFactor": 1, "mobile": width == PHONE}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


@pytest.mark.slow
def test_all_links_and_anchors_of_the_built_pages_resolve_and_nothing_comes_from_elsewhere(built):
    problems = built_problems(built)
    assert not problems, "\n" + "\n".join(problems[:40])
    assert "k30" in Page((built / "derivations.html").read_text("utf-8")).names


@pytest.mark.slow
def test_a_browser_shows_every_page_whole_at_phone_width_and_complains_of_nothing(built, browser):
    sized(browser, PHONE)
    every = [path for path in sorted(built.rglob("*.html")) if path.parent.name != "slides"]
    listings = [path for path in every if path.relative_to(built).parts[0] in ("source", "api")]
    shown = [path for path in every if path not in listings] + listings[::25]
    problems = [
        f"{path.relative_to(built)}: {what}"
        for path in shown
        for what in looks_wrong(seen(browser, path), PHONE)
    ]
    assert len(shown) > len(DEFINED)
    assert not problems, "\n" + "\n".join(problems[:40])


@pytest.mark.slow
def test_on_a_phone_no_picture_is_cut_or_scrolls_and_labels_are_legible(built, browser):
    size = {"width": PHONE_OF_PICTURES, "height": 720, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    seen_panels = 0
    for path in (*sorted((built / "derivations").glob("*.html")), built / "docs/choosing.html"):
        opened(browser, path)
        for name, left, right, scale, scrolls, is_piece in ask(browser, "figures"):
            seen_panels += is_piece
            assert left >= -0.5, (path.name, name)
            assert right <= PHONE_OF_PICTURES + 0.5, (path.name, name)
            assert not scrolls, (path.name, name)
            assert 150 * 10 / 72 * scale >= LEAST_TEXT, (path.name, name)
    assert seen_panels > 100


@pytest.mark.slow
def test_the_columns_stand_side_by_side_on_a_wide_screen_and_below_each_other_on_a_phone(
    built, browser
):
    for width, side_by_side in ((DESK, True), (PHONE, False)):
        sized(browser, width)
        seen(browser, built / "tags" / "k30.html")
        tops = ask(browser, "columns")
        assert len(tops) == 2
        assert (len(set(tops)) == 1) is side_by_side


@pytest.mark.slow
def test_a_wide_screen_cuts_no_code_and_no_formula_of_the_equations(built, browser):
    sized(browser, DESK)
    problems = []
    for path in sorted((built / "tags").glob("?*.html")):
        opened(browser, path)
        problems += [f"{path.name}: {what}" for what in ask(browser, "cut")]
    assert not problems, "\n" + "\n".join(problems)


@pytest.mark.slow
def test_the_whole_site_is_small_and_its_formulas_need_no_script(built):
    kept = [path for path in built.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in kept) < MOST
    page = (built / "derivations.html").read_text("utf-8")
    assert "<math" in page.split("K1", 1)[1]
    assert "MathJax" not in page


@pytest.mark.slow
def test_by_night_the_page_is_dark_and_its_formulas_light(built, browser):
    sized(browser, DESK)
    for scheme in ("light", "dark"):
        feature = {"name": "prefers-color-scheme", "value": scheme}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
        for page in ("derivations/estimators.html", "notebooks/03_estimators_and_variance.html"):
            opened(browser, built / page)
            found = ask(browser, "light")
            assert (found["page"] < 0.2, found["formula"] > 0.6) == (scheme == "dark",) * 2, page
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


FOUND = {  # what is asked, and where the first answer leads
    "local reparameterization trick": "derivations/estimators.html#d21",
    "reparametrisation": "#k4",
    "ELBO": "#k5",
    "evidence lower bound": "#k5",
    "K30": "#k30",
    "no u-turn sampler": "derivations/samplers.html#m10",
    "MeanField": "api/",
    "softplus": "derivations",
}


@pytest.mark.slow
def test_the_search_finds_the_book_first_and_files_never_also_without_a_server(built, browser):
    sized(browser, PHONE)
    for asked, first in FOUND.items():
        path = built / "search.html"
        browser.get(f"{path.as_uri()}?{urlencode({'q': asked})}")
        found = browser.execute_script(f"{BROWSER}\nreturn answers();")
        addresses = [address for address, _, _ in found]
        assert any(first in address for address in addresses[:1]) or first == "api/", (asked, found)
        assert any(first in address for address in addresses), asked
        assert not [address for address in addresses if "source/" in address]
        kinds = [kind for _, kind, _ in found]
        assert kinds == sorted(kinds), asked
        assert any(excerpt for *_, excerpt in found) or len(found) == 1, asked


@pytest.mark.slow
def test_the_hints_of_every_notebook_are_hidden_until_their_fold_is_opened(built, browser):
    sized(browser, PHONE)
    notebooks = sorted((built / "notebooks").glob("[0-9]*.html"))
    assert len(notebooks) == len(list(ROOT.glob("notebooks/[0-9]*.ipynb")))
    for path in notebooks:
        opened(browser, path)
        folded = ask(browser, "hints")
        browser.execute_script("[...document.querySelectorAll('article summary')].at(-1).click()")
        found = ask(browser, "hints")
        assert found["title"] == "Hints", path.name
        assert found["asked"] == found["hints"] > 3, path.name
        assert (folded["seen"], found["seen"]) == (0, found["hints"]), path.name
        assert (found["drawn"], found["raw"]) == (found["formulas"], None), path.name


@pytest.mark.slow
def test_the_sliders_of_the_notebooks_show_one_frame_after_the_other(built, browser):
    sized(browser, 1280)
    films = 0
    for path in sorted((built / "notebooks").glob("[0-9]*.html")):
        opened(browser, path)
        for frames, images, first, last in ask(browser, "films"):
            films += 1
            assert frames == images > 5, path.name
            assert (first, last) == ([0], [frames - 1]), path.name
    stored = [path.read_text("utf-8") for path in ROOT.glob("notebooks/*.ipynb")]
    assert films == sum(text.count('<input type=\\"range\\"') for text in stored) >= 3


@pytest.mark.slow
@pytest.mark.parametrize("deck", sorted(path.stem for path in SITE.glob("slides/*.md")))
def test_every_slide_fits_its_screen(built, browser, deck):
    sized(browser, 1280)
    found = seen(browser, built / "slides" / f"{deck}.html")
    assert not looks_wrong(found, 1280)
    shown = ask(browser, "slides")
    assert shown
    assert not [slide for slide in shown if slide[1] > 1280 or slide[2] > 720]


LECTURES = sorted(path.stem for path in SITE.glob("slides/*.md") if path.stem != "index")


@pytest.mark.slow
@pytest.mark.parametrize("deck", LECTURES)
def test_no_picture_of_a_slide_is_stretched_or_small(built, browser, deck):
    sized(browser, 1280)
    opened(browser, built / "slides" / f"{deck}.html")
    shown = ask(browser, "pictures")
    assert len(shown) > 5
    for name, width, height, natural_width, natural_height in shown:
        assert width / height == pytest.approx(natural_width / natural_height, rel=0.01), name
        assert width > 1150 or height > 530, name


@pytest.mark.slow
@pytest.mark.parametrize("deck", LECTURES)
@pytest.mark.parametrize("query", ["print-pdf", "short&print-pdf"])
def test_a_printed_lecture_has_a_page_for_each_slide(built, browser, deck, query):
    source = (SITE / "slides" / f"{deck}.md").read_text("utf-8")
    n_slides = 1 + len(re.findall(r"^## ", source, re.MULTILINE))
    if "short" in query:
        n_slides -= source.count(" min, only in the long version.")
    browser.get(f"{(built / 'slides' / deck).as_uri()}.html?{query}")
    browser.execute_async_script(
        "const done = arguments[0], pages = () => document.querySelector('.pdf-page');"
        "const wait = () => pages() ? done() : setTimeout(wait, 50);"
        "wait();"
    )
    options = {"printBackground": True, "preferCSSPageSize": True}
    printed = b64decode(browser.execute_cdp_cmd("Page.printToPDF", options)["data"])
    assert len(re.findall(rb"/Type\s*/Page\b", printed)) == n_slides
