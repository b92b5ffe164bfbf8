"""Turn the repository's own files into pages of the site: text in, text out.

Markdown as GitHub reads it becomes Markdown as MyST reads it, a Python file a page with an anchor
at every line. Nothing is written here; generate.py does that.
"""

import ast
import html
import json
import keyword
import posixpath
import re
import shutil
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from project import book

ROOT = Path(__file__).resolve().parents[1]
LINK = re.compile(r"(!?\[(?:[^\[\]]|\[[^\[\]]*\])*\])\(([^()\s]+)\)")
INLINE = re.compile(r"\$`([^`\n]+)`\$")
IMAGE = re.compile(r"""(<img\b[^>]*\bsrc=["'])([^"']+)""")
ANCHOR = re.compile(r'<a id="([a-z]\d+)"></a>')
CODE = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)")
PICTURES = {".png", ".svg", ".jpg", ".gif"}
PLAYGROUND = "site/playground/"
EXERCISES = "bbb_course/solutions"  # their pages on the site are made by course.py
KEYS = "bbb_course/keys"  # right answers, which the site does not show either
OWN = PLAYGROUND, "site/slides/"  # pages of the site that are no pages of the book
PRESET = re.compile(r"\[([^\[\]]+)\]\(src:([^()\s]*playground/\w+)#(preset=[^()\s]+)\)")
TOKEN = re.compile(
    r'(?P<i>"""[\s\S]*?"""|#.*)|(?P<quoted>"[^"\n]*"|\'[^\'\n]*\')|'
    rf"(?P<b>\b(?:{'|'.join(keyword.kwlist)})\b)"
)
ORPHAN_PAGE = "---\norphan: true\nhide-toc: true\n---\n\n"  # a page that no table of contents lists
INDENTATION = re.compile(r"^((?:<\w>)?)( +)")  # in a line that may begin as a comment
# What GitHub shows on its own site and the project's pages say nothing of
LONGEST = 70  # lines of a definition that is shown whole; of longer ones the tagged lines
AROUND = 6  # lines around each of them


def carry_playground(folder: Path) -> None:
    """Copy the playground into the built site, and pack it; only on the site it leads to the book.

    A page of it opens with a preset: ``playground/index.html#preset=NAME``, and ``&bare`` leaves
    out all but the picture, for a frame.
    """
    source, target = ROOT / PLAYGROUND, folder / "playground"
    shutil.copytree(source, target, dirs_exist_ok=True)
    shutil.make_archive(str(target / "playground"), "zip", source.parent, source.name)
    for page in target.glob("*.html"):
        page_text = page.read_text("utf-8").replace(
            '<html lang="en">', '<html lang="en" class="site">'
        )
        page.write_text(page_text, "utf-8")


def paragraphs(markdown: str) -> Iterator[tuple[str, bool]]:
    """Yield runs of lines outside fenced blocks, in which links may be broken, and the others."""
    run: list[str] = []
    for line, free in book.outside(markdown):
        if free:
            run.append(line)
            continue
        if run:
            yield "\n".join(run), True
            run = []
        yield line, False
    if run:
        yield "\n".join(run), True


def relative(target: str, out: str) -> str:
    """Return the path from the page `out` to `target`, both given from the root."""
    return posixpath.relpath(target, posixpath.dirname(out) or ".")


def resolve(target: str, page: str) -> tuple[str, str]:
    """Return the file from the root, and the anchor, that a link of `page` leads to."""
    path, _, name = target.partition("#")
    if not path:
        return page, name
    return posixpath.normpath(posixpath.join(posixpath.dirname(page), path)), name


def is_web(target: str) -> bool:
    """Return whether a link leads out of the repository."""
    return "://" in target or target.startswith("mailto:")


def source_page(path: str) -> str:
    """Return the page on which the site shows a file, or the files of a folder."""
    if (ROOT / path).is_dir():
        return f"source/{path}/index"
    return f"source/{path}"


def module_file(module: str) -> str:
    """Return the file of a dotted module."""
    path = module.replace(".", "/")
    if (ROOT / f"{path}.py").is_file():
        return f"{path}.py"
    return f"{path}/__init__.py"


def parsed(path: str) -> ast.Module:
    """Return the syntax tree of a file of the repository."""
    return book.parsed((ROOT / path).read_text("utf-8"))


def lines_of(path: str, name: str) -> tuple[int, int] | None:
    """Return the first and last line of the dotted `name` in a Python file; None without it."""
    *_, node = book.definition_path((ROOT / path).read_text("utf-8"), name) or [None]
    if node is None:
        return None
    first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
    return first, node.end_lineno


def line_of(path: str, label: str) -> int:
    """Return the line at which the text of a link to a file, such as `plain.fit`, points."""
    stem = posixpath.basename(path).removesuffix(".py")
    name = label.strip("[]`").removeprefix(f"{path}::").removeprefix(f"{stem}.")
    if path.endswith(".py") and name != path and (line_range := lines_of(path, name)):
        return line_range[0]
    return 1


def new_link(label: str, target: str, page: str, out: str) -> str:
    """Return a link of `page` as it has to be on the page `out` of the site."""
    if is_web(target):
        return f"{label}({target})"
    path, name = resolve(target, page)
    path = exercise_address(path) or path
    if label.startswith("[∎"):  # an entry's mark leads to its code and its proof
        path, name = f"tags/{name}.md", ""
    if re.fullmatch(r"[a-z]\d+", name):  # an anchor that MyST does not know
        return f"{label}(src:{relative(path, out).removesuffix('.md')}#{name})"
    if path.startswith(OWN):
        address = relative(posixpath.splitext(path.removeprefix("site/"))[0], out)
        return f"{label}(src:{address}#{name})"
    if path.endswith((".md", ".ipynb")):
        name = book.slug(name)  # a notebook's heading is linked by the name that Jupyter gives it
        path_to = "" if path == out and name else relative(path, out)
        anchor = f"#{name}" if name else ""
        return f"{label}({path_to}{anchor})"
    if posixpath.splitext(path)[1] in PICTURES:
        return f"{label}({relative(path, out)})"
    line = line_of(path, label) if (ROOT / path).is_file() else 1
    return f"{label}(src:{relative(source_page(path), out)}#L-{line})"


def prose(text: str, page: str, out: str) -> str:
    """Convert what stands outside fenced blocks: mathematics and links."""
    text = INLINE.sub(r"{math}`\1`", text)
    text = re.sub(r"^( *)%", r"\1\\%", text, flags=re.MULTILINE)  # MyST's mark of a comment
    spans = [match.span() for match in CODE.finditer(text)]

    def convert_link(link: re.Match[str]) -> str:
        if any(first <= link.start() < last for first, last in spans):
            return link[0]  # a link that is shown, not one that leads somewhere
        return new_link(link[1], link[2], page, out)

    def image(tag: re.Match[str]) -> str:
        if is_web(tag[2]):
            return tag[0]
        return tag[1] + relative(resolve(tag[2], page)[0], out)

    return framed(IMAGE.sub(image, LINK.sub(convert_link, text)))


def framed(text: str) -> str:
    """Show the playground below a paragraph that leads to one of its presets."""
    blocks = []
    for paragraph in text.split("\n\n"):
        blocks.append(paragraph)
        match = PRESET.search(paragraph)
        if match and not re.match(r"[#|<>*-]|\d+\.", paragraph.lstrip()):
            label, address, preset = match.groups()
            blocks.append(
                f'<iframe class="playground" src="{address}.html#{preset}&amp;bare" '
                f'title="{html.escape(label)}" loading="lazy"></iframe>'
            )
    return "\n\n".join(blocks)


def convert(markdown: str, page: str, out: str = "") -> str:
    """Return GitHub's Markdown of `page` as MyST's, to be written at `out`."""
    runs = [
        prose(run, page, out or page) if free else re.sub(r"^(\s*`{3,})math\s*$", r"\1{math}", run)
        for run, free in paragraphs(markdown)
    ]
    return "\n".join(runs) + "\n"


def links(markdown: str, page: str) -> set[str]:
    """Return the files from the root to which a page leads."""
    files = set()
    for run, free in paragraphs(markdown):
        if free:
            bare = CODE.sub(lambda code: re.sub(r"[^\n]", "x", code[0]), run)
            targets = [m[2] for m in (*LINK.finditer(bare), *IMAGE.finditer(bare))]
            files |= {resolve(target, page)[0] for target in targets if not is_web(target)}
    return files


def entry_text(markdown: str, tag: str) -> str:
    """Return an entry with its formulas, without its marks, up to the next heading or anchor."""
    lines: list[str] = []
    inside = False
    for line, free in book.outside(markdown):
        named = [name.upper() for name in ANCHOR.findall(line)] if free else []
        if named:
            inside = tag in named
        elif free and re.match(r"#+ ", line):
            inside = bool(re.match(rf"#{{2,4}} {tag}: ", line))
            continue
        if inside:
            lines.append(ANCHOR.sub("", line) if named else line)
    text = re.sub(r"^\[∎ .+(\n.+)*", "", "\n".join(lines), flags=re.MULTILINE).strip()
    return re.sub(r"\n---\s*\n.*\Z", "", text, flags=re.DOTALL).strip()  # the foot of a page


def notebook(text: str, page: str) -> str:
    """Return a notebook with the links of its text converted, and one to download it."""
    content = json.loads(text)
    for cell in content["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            cell["source"] = convert(source, page)
    name = posixpath.basename(page)
    download = (
        f'<a href="{name}" download>Download this notebook</a>, without its outputs. To open it in '
        f"the project's folder: `pip install '.[notebooks]'`, then `jupyter lab {page}`; elsewhere "
        "it opens in any Jupyter that has `bbb_numpy`."
    )
    cell = {"cell_type": "markdown", "id": "download", "metadata": {}, "source": download}
    content["cells"].insert(1, cell)
    return json.dumps(content, ensure_ascii=False)


def without_outputs(text: str) -> str:
    """Return a notebook without what its cells have printed and drawn."""
    content = json.loads(text)
    for cell in content["cells"]:
        if cell["cell_type"] == "code":
            cell |= {"outputs": [], "execution_count": None}
    return json.dumps(content, ensure_ascii=False, indent=1) + "\n"


def notebook_links(text: str, page: str) -> set[str]:
    """Return the files to which the text of a notebook leads."""
    cells = json.loads(text)["cells"]
    texts = ["".join(c["source"]) for c in cells if c["cell_type"] == "markdown"]
    return set().union(*(links(cell_text, page) for cell_text in texts))


def exercise_address(path: str) -> str | None:
    """Return the page that the site has in the place of a solution, or of a folder of them."""
    if path == EXERCISES or path.startswith(KEYS):
        return "exercises/README.md"
    if not path.startswith(f"{EXERCISES}/") or path.endswith(".md"):
        return None
    stem, suffix = posixpath.splitext(path.removeprefix("bbb_course/solutions/"))
    return f"exercises/{stem}.md" if suffix else f"exercises/{stem}/index.md"


@lru_cache(maxsize=1024)
def coloured(path: str) -> list[str]:
    """Return the lines of a file as HTML: docstrings, comments in <i>, keywords in <b>."""

    def mark_up(token: re.Match[str]) -> str:
        element = token.lastgroup or "i"
        if element == "quoted":
            return token[0]
        return "\n".join(
            f"<{element}>{x}</{element}>" if x.strip() else x for x in token[0].split("\n")
        )

    text = html.escape((ROOT / path).read_text("utf-8"), quote=False)
    if path.endswith(".py"):
        text = TOKEN.sub(mark_up, text)
    return text.splitlines()


def tagged(line: str, out: str, defined_tags: frozenset[str]) -> str:
    """Link the tags in the comments of a line to their pages."""

    def link_tag(tag: re.Match[str]) -> str:
        address = relative(f"tags/{tag[0].lower()}.html", out)
        if tag[0] not in defined_tags:
            return tag[0]
        return f'<a href="{address}">{tag[0]}</a>'

    return re.sub(r"<i>.*?</i>", lambda span: re.sub(r"\b[A-Z]\d+\b", link_tag, span[0]), line)


def listing(
    path: str, first: int, last: int, hits: set[int], out: str, defined_tags: frozenset[str]
) -> str:
    """Return lines of a file as HTML, numbered; `hits` carry a mark that needs no colour."""
    rows = []
    for number, line in enumerate(coloured(path)[first - 1 : last], start=first):
        mark = " class=hit" if number in hits else ""
        shown_line = INDENTATION.sub(with_tabs, tagged(line, out, defined_tags))
        rows.append(f"<span{mark}>{shown_line}\n</span>")
    start = f'style="counter-reset: line {first - 1}"'
    return f'<div class="highlight listing"><pre {start}>{"".join(rows)}</pre></div>'


FILE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<title>{path}</title>
<link rel="stylesheet" href="{up}/_static/source.css">
<script>document.documentElement.dataset.theme = localStorage.getItem("theme")</script>
<h1><a href="{up}/index.html">bbb_numpy</a> / {way}</h1>
{body}
</html>
"""


def file_page(path: str, defined_tags: frozenset[str], shown: frozenset[str]) -> str:
    """Return the page of a file, or of a folder with what is in it of the files that are `shown`.

    A line has its number from the style sheet, and four spaces of its indentation are a tab, which
    is half a megabyte less; an anchor it has where something may be defined.
    """
    out = source_page(path)
    if (ROOT / path).is_dir():
        rows = [item(file, shown) for file in sorted((ROOT / path).iterdir())]
        body = f'<ul id="L-1">{"".join(rows)}</ul>'
    else:
        rows = []
        named = named_lines(path)
        for number, line in enumerate(coloured(path), 1):
            anchor = f" id=L-{number}" * (number in named)
            shown_line = INDENTATION.sub(with_tabs, tagged(line, out, defined_tags))
            rows.append(f"<li{anchor}>{shown_line}")
        body = f"<ol>{''.join(rows)}</ol>"
    up = posixpath.relpath(".", posixpath.dirname(out))
    return FILE.format(path=path, up=up, way=way_to(path, out), body=body)


def named_lines(path: str) -> set[int]:
    """Return the lines of a file that links may lead to: of definitions, fields and constants."""
    named = {1}
    if not path.endswith(".py"):
        return named
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            named.add(min([node.lineno, *(d.lineno for d in node.decorator_list)]))
        if isinstance(node, ast.ClassDef | ast.Module):
            named.update(child.lineno for child in node.body)
    return named


def with_tabs(indentation: re.Match[str]) -> str:
    """Return an indentation with tabs in the place of four spaces."""
    spaces = len(indentation[2])
    return indentation[1] + "\t" * (spaces // 4) + " " * (spaces % 4)


def way_to(path: str, out: str) -> str:
    """Return the path of a file as links to its folders."""
    *folders, name = path.split("/")
    parts = []
    for depth, folder in enumerate(folders, 1):
        address = relative(f"{source_page('/'.join(folders[:depth]))}.html", out)
        parts.append(f'<a href="{address}#L-1">{folder}</a>')
    return " / ".join([*parts, name])


def item(file: Path, shown: frozenset[str]) -> str:
    """Return the line of a folder's page for a file or a folder, or '' if the site has none."""
    path = file.relative_to(ROOT).as_posix()
    if path == EXERCISES:
        address = relative("exercises/README.html", source_page(posixpath.dirname(path)))
        return f'<li><a href="{address}">{file.name}/</a> The exercises.</li>'
    if path not in shown:
        return ""
    if file.is_dir():
        return f'<li><a href="{file.name}/index.html#L-1">{file.name}/</a></li>'
    summary = ""
    if file.suffix == ".py":
        summary = (ast.get_docstring(parsed(path)) or "").split("\n")[0]
    return f'<li><a href="{file.name}.html#L-1">{file.name}</a> {html.escape(summary)}</li>'


def raw(text: str) -> str:
    """Return HTML as a block that MyST hands on."""
    return f"`````{{raw}} html\n{text}\n`````\n"


def windows(first: int, last: int, hits: set[int]) -> list[tuple[int, int]]:
    """Return the ranges of lines to show: all of them, or those around the hits."""
    inside = sorted(hit for hit in hits if first <= hit <= last)
    if last - first < LONGEST or not inside:
        return [(first, min(last, first + LONGEST))]
    ranges: list[tuple[int, int]] = []
    for hit in inside:
        first_line, last_line = max(first, hit - AROUND), min(last, hit + AROUND)
        if ranges and first_line <= ranges[-1][1] + 1:
            ranges[-1] = (ranges[-1][0], last_line)
        else:
            ranges.append((first_line, last_line))
    return ranges
