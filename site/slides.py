"""Write the slides of the report's path from derivations.md: ``python site/slides.py FOLDER``.

For each equation its name, a sentence, its formula and the line of code that carries it: all cut
from the chapter, so that there is no second text to keep.
"""

import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
for _folder in (HERE, HERE.parent, HERE.parent / "tests"):
    if str(_folder) not in sys.path:
        sys.path.insert(0, str(_folder))

import pages as text  # noqa: E402
from project import book  # noqa: E402
from project import proofs as proving  # noqa: E402

ROOT = HERE.parent
FORMULA = re.compile(r"^```math\n(.*?)^```$", re.DOTALL | re.MULTILINE)
FOLD = re.compile(r"<details>.*?</details>", re.DOTALL)  # what a source prints, often wrongly
SHORTEST = 6  # words of a sentence that says something by itself


def plain(markdown: str) -> str:
    """Return Markdown without its links, for a slide."""
    return text.INLINE.sub(r"{math}`\1`", re.sub(r"\[([^\[\]]+)\]\([^()\s]+\)", r"\1", markdown))


def result(body: str) -> str:
    """Return the formula that an entry is about: the boxed one, or the first."""
    formulas = FORMULA.findall(body)
    boxed = [formula for formula in formulas if r"\boxed" in formula]
    return (boxed or formulas or [""])[0]


def sentence(body: str) -> str:
    """Return the first whole sentence of an entry; "Right:" is none."""
    for paragraph in re.split(r"\n\s*\n", FORMULA.sub("", body)):
        said = " ".join(paragraph.split())
        if said and not said.startswith(("As printed", "|", "<", "```", ">", "- ", "**")):
            first = re.match(r".*?[.:](?=\s|$)", said)
            whole = first[0] if first else said
            if len(whole.split()) >= SHORTEST:
                return plain(whole)
    return ""


def slide(entry: book.Entry, chapter: str) -> str:
    """Return the slide of one equation."""
    body = FOLD.sub("", text.entry_text(chapter, entry.tag)).split("\n[∎", 1)[0]
    title = proving.titles(chapter)[entry.tag][0]
    code = next(iter(proving.codes()[entry.tag]), None)
    parts = [f"### {entry.tag}: {title}", sentence(body)]
    formula = result(body)
    parts += [f"```{{math}}\n{formula}```"] if formula else []
    parts += [f"```python\n{code.line}\n```"] if code and code.line else []
    return "\n\n".join(part for part in parts if part) + "\n"


def slides() -> str:
    """Return all slides: the first page's opening, then a stack for each of its sections."""
    chapter = (ROOT / "derivations.md").read_text("utf-8")
    opening = chapter.split("\n## ", 1)[0]
    stacks = ["# Derivations\n", f"## Bayes by Backprop\n\n```{{math}}\n{result(opening)}```\n"]
    reports = {entry.tag: entry for entry in book.entries(chapter)}
    for line, free in text.outside(chapter):
        heading = re.match(r"(#{2,4}) (?:([A-Z]\d+): )?(.*)", line) if free else None
        if not heading:
            continue
        if heading[2]:
            stacks.append(slide(reports[heading[2]], chapter))
        elif len(heading[1]) == 2 and heading[3].startswith("Section"):
            stacks.append(f"## {heading[3]}\n")
    return "\n".join(stacks)


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "index.md").write_text(slides(), "utf-8")
