"""Read the derivations: entries, tags, links, and where code, tests and notebooks name a tag."""

import ast
import doctest
import io
import posixpath
import re
import tokenize
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "derivations.md"
PLAIN = "bbb_numpy/plain.py"
PACKAGES = ("bbb_numpy", "exactgrad", "bbb_studies", "bbb_course")
# The families in the order of the document, and how many equations each has (None: any number).
FAMILIES = {"K": 44, "R": 10, "W": 6, "M": 22, "G": 8, "D": None}
EXAMPLE = "D999"  # of the guides in CONTRIBUTING.md, and of no equation ever
MARK = "pytest.mark.equation"
MAX_CLAIMS = 12  # equations on one test: it fails when any of them is wrong
ANCHOR = re.compile(r'<a id="([a-z]\d+)"></a>')
TAG = re.compile(r"\b([A-Z])(\d+)(?:[-–](?:([A-Z])?(\d+)))?\b")
# ``code`` and quoted strings, which may name a layer W0; an apostrophe opens no quotation.
VERBATIM = re.compile(r"""``.+?``|"[^"\n]*"|(?<!\w)'[^'\n]*'(?!\w)""", re.DOTALL)


class Entry(NamedTuple):
    """One equation: its anchor ``<a id="k5"></a>`` or heading ``## D5: ...`` and what follows."""

    tag: str
    body: str  # with links from the root
    page: str = "derivations.md"


class Link(NamedTuple):
    """One Markdown link ``[text](target)``."""

    text: str
    target: str


def outside(markdown: str) -> Iterator[tuple[str, bool]]:
    """Yield each line of `markdown`, and whether it stands outside fenced blocks."""
    fence = ""
    for line in markdown.splitlines():
        opening = re.match(r"\s*(`{3,})", line)
        yield line, not (fence or opening)
        if opening and not fence:
            fence = opening[1]
        elif opening and line.strip() == fence:
            fence = ""
    assert not fence, f"a {fence} fence is never closed"


def outside_fences(markdown: str) -> list[str]:
    """Return the lines of `markdown`, those of fenced blocks blanked."""
    return [line if free else "" for line, free in outside(markdown)]


def without_foot(markdown: str) -> str:
    """Return a chapter without what stands below its last rule: summary, exercises, next page."""
    return re.split(r"\n---\n(?!.*\n## )", markdown, flags=re.DOTALL)[0]


def entries(markdown: str, page: str = "derivations.md") -> list[Entry]:
    """Return the entries of `markdown`: each ends at the next anchor or heading.

    Entries whose anchors stand in one line share their text.
    """
    lines_by_tag: dict[str, list[str]] = {}
    current_tags: list[str] = []
    for line in outside_fences(markdown):
        named = [tag.upper() for tag in ANCHOR.findall(line)]
        named += re.findall(r"^#{2,4} ([A-Z]\d+): ", line)
        if named or line.startswith("#"):
            current_tags = named
            lines_by_tag |= {tag: [] for tag in current_tags}
        for tag in current_tags:
            lines_by_tag[tag].append(line)
    return [Entry(tag, "\n".join(lines) + "\n", page) for tag, lines in lines_by_tag.items()]


def from_root(markdown: str, page: str) -> str:
    """Return the text of a page with its links to other files as they are from the root."""
    folder = posixpath.dirname(page)

    def rebase_link(link: re.Match[str]) -> str:
        target = link[1]
        if "://" not in target and not target.startswith("#"):
            target = posixpath.normpath(posixpath.join(folder, target))
        return f"]({target})"

    return re.sub(r"\]\(([^()\s]+)\)", rebase_link, markdown)


parsed = cache(ast.parse)  # the same files are read for links, tags, marks and the site


def definition_path(source: str, name: str) -> list[ast.AST]:
    """Return the module and the nodes that lead to the dotted `name`; [] without it."""
    nodes: list[ast.AST] = [parsed(source)]
    for part in name.split("."):
        for node in getattr(nodes[-1], "body", []):
            targets = [*getattr(node, "targets", []), getattr(node, "target", None)]
            if part in [getattr(node, "name", None), *(getattr(t, "id", None) for t in targets)]:
                nodes.append(node)
                break
        else:
            return []
    return nodes


def link_problems(markdown: str) -> list[str]:
    """Return which links from the root lead nowhere, or name what their file does not define."""
    problems = []
    for text, target in links(markdown):
        path, _, anchor = target.partition("#")
        file = ROOT / path
        if "://" in target:
            continue
        if not file.exists():
            problems.append(f"[{text}]({target}): no such file")
        elif anchor and path.endswith(".ipynb"):
            if anchor not in sections(file.with_suffix(".py").read_text("utf-8")):
                problems.append(f"[{text}]({target}): no such heading")
        elif (
            anchor
            and not path.endswith(".html")
            and anchor not in anchors(file.read_text("utf-8") if path else markdown)
        ):
            problems.append(f"[{text}]({target}): no such heading")
        elif file.suffix == ".py":
            label = text.strip("`")
            name = label.removeprefix(f"{path}::").removeprefix(f"{file.stem}.")
            named = re.fullmatch(r"[\w.]+", name) and label not in (path, file.name, file.stem)
            if named and not definition_path(file.read_text("utf-8"), name):
                problems.append(f"[{text}]({target}): {path} does not define {name}")
    return problems


def complaints(markdown: str) -> str:
    """Run the fenced Python blocks that show a prompt, and return where output differs."""
    blocks = re.findall(r"^```python\n(>>>.*?)^```$", markdown, re.DOTALL | re.MULTILINE)
    output: list[str] = []
    test = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, "the page", None, None)
    doctest.DocTestRunner(verbose=False).run(test, out=output.append)
    return "".join(output)


def links(markdown: str) -> list[Link]:
    """Return the links of `markdown` that stand outside fenced blocks."""
    text = "\n".join(outside_fences(markdown))
    return [Link(*pair) for pair in re.findall(r"\[([^\[\]]+)\]\(([^()\s]+)\)", text)]


def anchors(markdown: str) -> set[str]:
    """Return the names that GitHub gives to the headings of `markdown`."""
    titles = [re.match(r"#+ (.*)", line) for line in outside_fences(markdown)]
    named = re.findall(r'<a id="([\w-]+)"></a>', markdown)
    return {slug(title[1]) for title in titles if title} | set(named)


def slug(title: str) -> str:
    """Return the name that GitHub gives to a heading."""
    return re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-")


def heading_in_jupyter(title: str) -> str:
    """Return the name that Jupyter, and a code host that shows a notebook, give to a heading."""
    return title.strip().replace("`", "").replace(" ", "-")


def sections(script: str) -> dict[str, str]:
    """Return the text of a notebook's percent script below each heading, by the heading's name.

    What stands below the title is under ''; the targets of links are left out.
    """
    text_by_heading = {"": ""}
    name = ""
    for line in re.sub(r"\]\([^()\s]+\)", "]", script).splitlines():
        heading = re.match(r"# ##+ (.*)", line)
        if heading:
            name = heading_in_jupyter(heading[1])
        text_by_heading[name] = text_by_heading.get(name, "") + line + "\n"
    return text_by_heading


def tags_in(text: str, families: Iterable[str]) -> set[str]:
    """Return the tags that `text` names, ranges such as K31-K36 or K43-44 written out.

    Of the given families only: B0 is no tag. Nor is M in M = 1e5, or R in R^2: no number follows.
    """
    tags = set()
    for family, first, family_of_last, last in TAG.findall(text):
        if family not in families or family_of_last not in ("", family):
            continue
        tags |= {f"{family}{number}" for number in range(int(first), int(last or first) + 1)}
    return tags


@cache
def prose(source: str) -> str:
    """Return the docstrings and comments of Python `source`, without code, quotes, directives."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = [node for node in ast.walk(parsed(source)) if isinstance(node, documented)]
    parts = [VERBATIM.sub(" ", ast.get_docstring(node) or "") for node in nodes]
    return "\n".join([*parts, *(text for _, _, text in comments(source))])


@cache
def comments(source: str) -> list[tuple[int, int, str]]:
    """Return row, column and words of the comments of Python `source`, as `prose` has them.

    Of a source that has no tag behind a # none: to read its tokens takes long.
    """
    if not re.search(r"#.*\b[A-Z]\d", source):
        return []
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return [
        (*token.start, VERBATIM.sub(" ", re.sub(r"noqa\b.*", "", token.string)))
        for token in tokens
        if token.type == tokenize.COMMENT
    ]


def names_of(tree: ast.Module) -> dict[str, ast.expr]:
    """Return what is assigned to each name of a module."""
    return {
        ast.unparse(target): node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
    }


@cache
def claims(source: str) -> dict[str, set[str]]:
    """Return the tags with which each test (or class of tests) of `source` is marked.

    Written out, as "K5" or "K31-K36", or `*` of a tuple that is.
    """
    if MARK not in source:
        return {}
    tree = parsed(source)
    named = names_of(tree)
    tags_by_test = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            texts: list[str] = []
            for mark in node.decorator_list:
                if isinstance(mark, ast.Call) and ast.unparse(mark.func) == MARK:
                    for argument in mark.args:
                        if isinstance(argument, ast.Starred):
                            texts += ast.literal_eval(named[ast.unparse(argument.value)])
                        else:
                            texts.append(ast.literal_eval(argument))
            assert all(map(TAG.fullmatch, texts)), f"{node.name} is marked with {texts}"
            assert not texts or node.name.lower().startswith("test"), f"{node.name} is no test"
            tags_by_test[node.name] = tags_in(" ".join(texts), FAMILIES)
    return tags_by_test


def chapters(text: str) -> list[str]:
    """Return the other pages in the order in which the contents list them."""
    contents = text.split("## Contents", 1)[1].split("\n## ", 1)[0]
    named = [link.target for link in links(contents) if link.target.startswith("derivations/")]
    return list(dict.fromkeys(target.partition("#")[0] for target in named))


PATH = (  # from nothing to a choice of method: these pages need no other
    "derivations/ten-minutes.md",
    "derivations.md",
    "derivations/prediction.md",
    "derivations/has-it-converged.md",
    "docs/choosing.md",
)
TEXT = DOCUMENT.read_text("utf-8")
PAGES = {  # with links from the root
    page: from_root((ROOT / page).read_text("utf-8"), page)
    for page in ["derivations.md", *chapters(TEXT)]
}
ENTRIES = [entry for page, text in PAGES.items() for entry in entries(text, page)]
DEFINED = [entry.tag for entry in ENTRIES]
LARGEST_PAGE = 64_000  # bytes that are read in one sitting


def package_files() -> list[Path]:
    """Return the Python files of all packages but the solutions of exercises."""
    files = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
    return [path for path in files if "solutions" not in path.parts]


@cache
def tags_in_code() -> dict[str, set[str]]:
    """Return the tags in the docstrings and comments of each file of the package."""
    return {
        path.relative_to(ROOT).as_posix(): tags_in(prose(source), FAMILIES)
        for path in package_files()
        if tags_in(source := path.read_text("utf-8"), FAMILIES)
    }


@cache
def notebooks() -> dict[str, dict[str, set[str]]]:
    """Return the tags that each notebook names, by the heading below which it does."""
    return {
        path.with_suffix(".ipynb").relative_to(ROOT).as_posix(): {
            name: tags_in(text, FAMILIES)
            for name, text in sections(path.read_text("utf-8")).items()
        }
        for path in sorted(ROOT.glob("notebooks/[0-9]*.py"))
    }


@cache
def marked_tags() -> dict[str, set[str]]:
    """Return the tags with which the tests of each file are marked."""
    tags_by_file = {
        path.relative_to(ROOT).as_posix(): set().union(*claims(path.read_text("utf-8")).values())
        for path in sorted(ROOT.glob("tests/**/test_*.py"))
    }
    return {**tags_by_file, "tests/textbook.py": textbook_tags()}


def textbook_tags() -> set[str]:
    """Return the tags that tests/textbook.py names: tests of all parts compare with it."""
    return tags_in(prose((ROOT / "tests" / "textbook.py").read_text("utf-8")), FAMILIES)
