"""Smaller pages: without what Sphinx and its theme write into each that changes nothing to see."""

import re
from pathlib import Path

THEME_ICON = '<svg class="theme-icon"><use href="#svg-theme"></use></svg>'
BODY = re.compile(r'(<article role="main".*</article>)', re.DOTALL)
# Around the article nothing is preformatted: a line's indentation and empty lines may go
AROUND = (  # (as it is written, what is left of it)
    (re.compile(r"<!-- Generated.*?-->"), ""),
    (re.compile(r'<meta name="viewport" content="width=device-width, initial-scale=1" />'), ""),
    (
        re.compile(r"<style>\s*body \{\s*--color-code-background.*?</style>", re.DOTALL),
        "",
    ),  # site.css
    (re.compile(r'<li class="toctree-l1"><a class="reference internal"'), "<li><a"),  # site.css
    (re.compile(r'class="reference internal"'), 'class="reference"'),
    (re.compile(r"(?:<svg class=\"theme-icon-when-[^>]*><use[^>]*></use></svg>\s*)+"), THEME_ICON),
    (
        re.compile(
            r'<svg xmlns="[^"]*" viewBox="0 0 24 24">\s*<path d="M13 20[^>]*></path>\s*</svg>'
        ),
        "",
    ),
    (re.compile(r'<input type="hidden" name="(?:check_keywords|area)"[^>]*>'), ""),  # of Sphinx
    (re.compile(r'<label class="toc-overlay-icon [\w-]+ no-toc".*?</label>', re.DOTALL), ""),
    (re.compile(r"\s*\n\s*"), "\n"),
)
INSIDE = (
    (re.compile(r'<span class="pre">([^<]*)</span>'), r"\1"),
    (re.compile(r'<span class="[nopw]">([^<]*)</span>'), r"\1"),  # names and signs, in code
    (re.compile(r'<code class="(?:[\w-]+ )*literal notranslate">'), '<code class="literal">'),
    (re.compile(r' title="Link to this (?:heading|definition)"'), ""),
    (re.compile(r'<span class="(?:std std-\w+|doc)">([^<]*)</span>'), r"\1"),
    (re.compile(r'<a class="reference internal" '), "<a "),
    # Ends that HTML implies
    (re.compile(r"</li>\s*(?=<li|</[uo]l>)"), ""),
    (re.compile(r"</t[dh]>\s*(?=<t[dh]|</tr>)"), ""),
    (re.compile(r"</tr>\s*(?=<tr|</t(?:body|head)>)"), ""),
    (
        re.compile(
            r"</p>\s*(?=</?(?:li|td|th|dd|ul|ol|dl)\b|<(?:p|div|table|pre|section|h[1-6])\b)"
        ),
        "",
    ),
    (re.compile(r'<mtd style="text-align: right;[^"]*">'), '<mtd class="r">'),  # site.css
    (re.compile(r'<mtd style="text-align: left;[^"]*">'), '<mtd class="l">'),
)
TAG = re.compile(r"<[a-z][^<>]*>")
QUOTED = re.compile(
    r' (class|href|id|src|rel)="([\w./#?&;:-]+)"(?=[\s>])'
)  # HTML needs no quotes there
NEEDLESS = (
    "_static/**/*.map",
    "_static/searchtools.js",
    "_static/skeleton.css",
    "_static/debug.css",
)


def slim(page: str) -> str:
    """Return a page with less markup; a second time it changes nothing."""
    parts = BODY.split(page)
    if len(parts) != 3:
        return page
    for position, rules in enumerate((AROUND, INSIDE, AROUND)):
        for pattern, replacement in rules:
            parts[position] = pattern.sub(replacement, parts[position])
    return TAG.sub(lambda tag: QUOTED.sub(r" \1=\2", tag[0]), "".join(parts))


def slim_pages(folder: Path) -> None:
    """Make the pages of the built site smaller, and remove what none of them asks for."""
    for pattern in NEEDLESS:
        for path in (folder / "_static").glob(pattern):
            path.unlink()
    for path in folder.rglob("*.html"):
        page = path.read_text("utf-8")
        smaller = slim(page)
        if smaller != page:
            path.write_text(smaller, "utf-8")
