"""Smaller pages: without what Sphinx and its theme write into each that changes nothing to see."""

import re
from pathlib import Path

BODY = re.compile(r'(<article role="main".*</article>)', re.DOTALL)
# Around the article nothing is preformatted: a line's indentation and empty lines may go
INDENTATION = re.compile(r"\s*\n\s*")
MARKUP = (  # (as it is written, what is left of it)
    (re.compile(r'<span class="pre">([^<]*)</span>'), r"\1"),
    (re.compile(r'<code class="(?:[\w-]+ )*literal notranslate">'), '<code class="literal">'),
    (re.compile(r' title="Link to this (?:heading|definition)"'), ""),
    (re.compile(r'<span class="(?:std std-\w+|doc)">([^<]*)</span>'), r"\1"),
)


def slim(page: str) -> str:
    """Return a page with less markup; a second time it changes nothing."""
    parts = BODY.split(page)
    if len(parts) != 3:
        return page
    head, body, foot = parts
    for pattern, replacement in MARKUP:
        body = pattern.sub(replacement, body)
    return INDENTATION.sub("\n", head) + body + INDENTATION.sub("\n", foot)


def slim_pages(folder: Path) -> None:
    """Make the pages of the built site smaller."""
    for path in folder.rglob("*.html"):
        page = path.read_text("utf-8")
        smaller = slim(page)
        if smaller != page:
            path.write_text(smaller, "utf-8")
