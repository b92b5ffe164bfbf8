"""Let the last line of every entry lead to the section of the notebook that treats it.

``python tests/project/notebook_links.py`` after a heading or a tag of a notebook has changed;
test_derivations.py says when that is due. A link that leads to a section that names the tag stays
as it is; any other gets the section that names it most often, an exercise only without another.
"""

import re
import sys
import textwrap
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from project.book import FAMILIES, PAGES, ROOT, notebooks, sections, tags_in

LINE = re.compile(r"^Code: .*?(?=\n\n|\Z)", re.DOTALL | re.MULTILINE)
SPAN = re.compile(r"`[^`]*`")  # of code or a formula: not broken
NOTEBOOK = re.compile(r"\]\(((?:\.\./)?(notebooks/\w+)\.ipynb)(?:#([^()\s]*))?\)")


def place(script: str, tag: str) -> str:
    """Return the heading of the percent script below which `tag` is at home; '' without one."""
    counts: dict[str, tuple[bool, int]] = {}
    for name, text in sections(script).items():
        named = sum(tag in tags_in(line, FAMILIES) for line in text.splitlines())
        if name and named:
            counts[name] = (not name.endswith("Exercises"), named)
    return max(counts, key=lambda name: counts[name], default="")


def with_places(line: str, tag: str) -> str:
    """Return the last line of the entry `tag` with a heading behind each link to a notebook."""

    def one(link: re.Match[str]) -> str:
        known = notebooks()[f"{link[2]}.ipynb"]
        kept = link[3] and tag in known.get(link[3], ())
        heading = link[3] if kept else place((ROOT / f"{link[2]}.py").read_text("utf-8"), tag)
        return f"]({link[1]}{'#' + heading if heading else ''})"

    new = NOTEBOOK.sub(one, line)
    if new == line:
        return line
    whole = SPAN.sub(lambda span: span[0].replace(" ", "\0"), " ".join(new.split()))
    wrapped = textwrap.fill(whole, 110, break_long_words=False, break_on_hyphens=False)
    return wrapped.replace("\0", " ")


def linked(markdown: str) -> str:
    """Return a page of the book with the links of all its entries led to their places."""
    parts = re.split(r"^(?=#{2,4} [A-Z]\d+: )", markdown, flags=re.MULTILINE)
    for number, part in enumerate(parts):
        heading = re.match(r"#+ ([A-Z]\d+): ", part)
        if heading:
            tag = heading[1]
            parts[number] = LINE.sub(lambda line, tag=tag: with_places(line[0], tag), part)
    return "".join(parts)


if __name__ == "__main__":
    for page in PAGES:
        path = ROOT / page
        path.write_text(linked(path.read_text("utf-8")), "utf-8")
