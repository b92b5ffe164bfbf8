"""The derivations, the code and the tests speak of the same equations, and links lead somewhere.

Small functions over text find the tags; each has its negative controls below.
"""

import ast
import doctest
import io
import posixpath
import re
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "derivations.md"
PLAIN = "bbb_numpy/plain.py"
# The families in the order of the document, and how many equations each has (None: any number).
FAMILIES = {"K": 44, "R": 10, "W": 6, "M": 22, "G": 8, "D": None}
MARK = "pytest.mark.equation"
MOST_CLAIMS = 12  # equations on one test: it fails when any of them is wrong
TAG = re.compile(r"\b([A-Z])(\d+)(?:[-–](?:([A-Z])?(\d+)))?\b")
# ``code`` and quoted strings, which may name a layer W0; an apostrophe opens no quotation.
VERBATIM = re.compile(r"""``.+?``|"[^"\n]*"|(?<!\w)'[^'\n]*'(?!\w)""", re.DOTALL)


class Entry(NamedTuple):
    """One equation: a heading ``#### K5: ...`` or ``## D5: ...`` and what stands below it."""

    tag: str
    body: str  # with links from the root
    page: str = "derivations.md"


class Link(NamedTuple):
    """One Markdown link ``[text](target)``."""

    text: str
    target: str


def outside_fences(markdown: str) -> list[str]:
    """Return the lines of `markdown`, those of fenced blocks blanked."""
    lines, inside = [], False
    for line in markdown.splitlines():
        fence = line.lstrip().startswith("```")
        lines.append("" if inside or fence else line)
        inside ^= fence
    assert not inside, "a ``` fence of derivations.md is never closed"
    return lines


def entries(markdown: str, page: str = "derivations.md") -> list[Entry]:
    """Return the entries of `markdown`: each ends where the next heading of any level begins."""
    found: list[Entry] = []
    collecting = False
    for line in outside_fences(markdown):
        heading = re.match(r"#+ ", line)
        entry = re.match(r"#{2,4} ([A-Z]\d+): ", line)
        if entry:
            found.append(Entry(entry[1], "", page))
        if heading:
            collecting = entry is not None
        elif collecting:
            found[-1] = found[-1]._replace(body=found[-1].body + line + "\n")
    return found


def from_root(markdown: str, page: str) -> str:
    """Return the text of a page with its links to other files as they are from the root."""
    folder = posixpath.dirname(page)

    def one(link: re.Match[str]) -> str:
        target = link[1]
        if "://" not in target and not target.startswith("#"):
            target = posixpath.normpath(posixpath.join(folder, target))
        return f"]({target})"

    return re.sub(r"\]\(([^()\s]+)\)", one, markdown)


def links(markdown: str) -> list[Link]:
    """Return the links of `markdown` that stand outside fenced blocks."""
    text = "\n".join(outside_fences(markdown))
    return [Link(*pair) for pair in re.findall(r"\[([^\[\]]+)\]\(([^()\s]+)\)", text)]


def anchors(markdown: str) -> set[str]:
    """Return the names that GitHub gives to the headings of `markdown`."""
    titles = [re.match(r"#+ (.*)", line) for line in outside_fences(markdown)]
    kept = (re.sub(r"[^\w\- ]", "", title[1].strip().lower()) for title in titles if title)
    return {slug.replace(" ", "-") for slug in kept}


def heading_in_jupyter(title: str) -> str:
    """Return the name that Jupyter, and a code host that shows a notebook, give to a heading."""
    return title.strip().replace("`", "").replace(" ", "-")


def sections(script: str) -> dict[str, str]:
    """Return the text of a notebook's percent script below each heading, by the heading's name.

    What stands below the title is under ''; the targets of links are left out.
    """
    found = {"": ""}
    name = ""
    for line in re.sub(r"\]\([^()\s]+\)", "]", script).splitlines():
        heading = re.match(r"# ##+ (.*)", line)
        if heading:
            name = heading_in_jupyter(heading[1])
        found[name] = found.get(name, "") + line + "\n"
    return found


def tags_in(text: str, families: Iterable[str]) -> set[str]:
    """Return the tags that `text` names, ranges such as K31-K36 or K43-44 written out.

    Of the given families only: B0 is no tag. Nor is M in M = 1e5, or R in R^2: no number follows.
    """
    found = set()
    for family, first, family_of_last, last in TAG.findall(text):
        if family not in families or family_of_last not in ("", family):
            continue
        found |= {f"{family}{number}" for number in range(int(first), int(last or first) + 1)}
    return found


def prose(source: str) -> str:
    """Return the docstrings and comments of Python `source`, without code, quotes, directives."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, documented)]
    parts = [ast.get_docstring(node) or "" for node in nodes]
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            parts.append(re.sub(r"noqa\b.*", "", token.string))
    return "\n".join(VERBATIM.sub(" ", part) for part in parts)


def strings(node: ast.expr, named: Mapping[str, ast.expr]) -> list[str]:
    """Return the strings that an argument writes out: one, or ``*`` of a tuple or its name."""
    inside: list[ast.expr] = [node]
    if isinstance(node, ast.Starred):
        value = named.get(ast.unparse(node.value), node.value)
        inside = value.elts if isinstance(value, ast.Tuple | ast.List) else []
    values = [element.value if isinstance(element, ast.Constant) else None for element in inside]
    found = [value for value in values if isinstance(value, str)]
    return found if len(found) == len(inside) else []


def names_of(tree: ast.Module) -> dict[str, ast.expr]:
    """Return what is assigned to each name of a module."""
    return {
        ast.unparse(target): node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
    }


def is_mark(call: ast.Call) -> bool:
    """Tell whether a call makes a mark; of many calls few end like one, and these are written."""
    end = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    return MARK.endswith(end) and ast.unparse(call.func) == MARK


def definitions(node: ast.AST) -> Iterator[ast.FunctionDef | ast.ClassDef]:
    """Yield the functions and classes below a node; only statements are walked, which are few."""
    for field in ("body", "orelse", "finalbody", "handlers", "cases"):
        for child in getattr(node, field, []):
            if isinstance(child, ast.FunctionDef | ast.ClassDef):
                yield child
            yield from definitions(child)


@cache
def strings_on(source: str) -> dict[str, str]:
    """Return what the marks of each function and class say; asked for many times of one file."""
    if MARK not in source:
        return {}
    tree = ast.parse(source)
    named = names_of(tree)
    return {
        node.name: " ".join(
            text
            for mark in node.decorator_list
            if isinstance(mark, ast.Call) and is_mark(mark)
            for argument in mark.args
            for text in strings(argument, named)
        )
        for node in definitions(tree)
    }


def claims(source: str, families: Iterable[str]) -> dict[str, set[str]]:
    """Return the tags with which each test (or class of tests) of `source` is marked."""
    return {name: tags_in(text, families) for name, text in strings_on(source).items()}


def marked(source: str, families: Iterable[str]) -> tuple[set[str], list[str]]:
    """Return the tags with which tests of `source` are marked, and what is wrong with marks."""
    if MARK not in source:
        return set(), []
    tree = ast.parse(source)
    tags: set[str] = set()
    wrong: list[str] = []
    named, nodes = names_of(tree), list(ast.walk(tree))
    on_tests = {
        decorator
        for node in nodes
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name.lower().startswith("test")
        for decorator in node.decorator_list
    }
    for node in nodes:
        if not (isinstance(node, ast.Call) and is_mark(node)):
            continue
        if node not in on_tests:
            wrong.append(f"line {node.lineno}: the mark does not decorate a test")
            continue
        for argument in node.args:
            values = strings(argument, named)
            if values and all(TAG.fullmatch(value) for value in values):
                tags |= set().union(*(tags_in(value, families) or {value} for value in values))
            else:
                wrong.append(
                    f"line {node.lineno}: {ast.unparse(argument)} is not a tag written out, such "
                    'as "K5" or "K31-K36", nor * of a tuple of tags written out'
                )
    return tags, wrong


@lru_cache
def statements(source: str) -> list[ast.stmt]:
    """Return the statements of a module; many links lead into few modules."""
    return ast.parse(source).body


def defines(source: str, name: str) -> bool:
    """Tell whether Python `source` defines the dotted `name` (class members included)."""
    body = statements(source)
    for part in name.split("."):
        named = {
            **{node.id: node for node in assigned_names(body)},
            **{
                node.name: node for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef)
            },
        }
        if part not in named:
            return False
        node = named[part]
        body = node.body if isinstance(node, ast.ClassDef) else []
    return True


def assigned_names(body: list[ast.stmt]) -> list[ast.Name]:
    targets: list[ast.expr] = []
    for node in body:
        targets += node.targets if isinstance(node, ast.Assign) else []
        targets += [node.target] if isinstance(node, ast.AnnAssign) else []
    return [target for target in targets if isinstance(target, ast.Name)]


def numbering_problems(tags: list[str], families: Mapping[str, int | None] = FAMILIES) -> list[str]:
    """Say which entries are missing, doubled, out of place or of no known family."""
    problems = [f"{tag} has {count} entries" for tag, count in Counter(tags).items() if count > 1]
    problems += [f"{tag} is of no known family" for tag in tags if tag[0] not in families]
    for family, expected in families.items():
        numbers = [int(tag[1:]) for tag in tags if tag[0] == family]
        last = expected or max(numbers, default=1)
        missing = sorted(set(range(1, last + 1)) - set(numbers))
        problems += [f"{family}{number} has no entry" for number in missing]
        beyond = sorted(number for number in set(numbers) if number > last or number < 1)
        problems += [f"{family}{number} is not in {family}1-{family}{last}" for number in beyond]
    return problems


def tag_problems(
    defined: Iterable[str], carried: Mapping[str, set[str]], where: str
) -> tuple[list[str], list[str]]:
    """Return the defined tags that no file carries, and the carried ones without an entry."""
    everywhere: set[str] = set().union(*carried.values())
    missing = [f"{tag}: not in any {where}" for tag in defined if tag not in everywhere]
    undefined = [
        f"{path}: {tag} has no entry in derivations.md"
        for path, tags in carried.items()
        for tag in sorted(tags - set(defined))
    ]
    return missing, undefined


def entry_problems(
    entry: Entry, code: Mapping[str, set[str]], tests: Mapping[str, set[str]]
) -> list[str]:
    """Say whether one of the code files and one of the tests that `entry` links carry its tag."""
    targets = {link.target for link in links(entry.body)}
    problems = []
    for kind, carried in (("code file", code), ("test", tests)):
        named = sorted(targets & set(carried))
        if not any(entry.tag in carried[path] for path in named):
            holders = sorted(path for path, tags in carried.items() if entry.tag in tags)
            problems.append(
                f"{entry.tag}: no {kind} that its entry links carries the tag "
                f"(linked: {named or 'none'}; carried by: {holders or 'none'})"
            )
    return problems


def link_problems(markdown: str, root: Path) -> list[str]:
    """Say which relative links lead nowhere, or name something that their file does not define."""
    problems = []
    for text, target in links(markdown):
        path, _, anchor = target.partition("#")
        file = root / path
        if "://" in target:
            continue
        if not file.exists():
            problems.append(f"[{text}]({target}): no such file")
            continue
        if anchor:
            where = file.with_suffix(".py") if file.suffix == ".ipynb" else file
            text_of = where.read_text("utf-8") if path else markdown
            known = sections(text_of) if file.suffix == ".ipynb" else anchors(text_of)
            if anchor not in known:
                problems.append(f"[{text}]({target}): no such heading")
        if not path:
            continue
        label = text.strip("`")
        name = label.removeprefix(f"{path}::").removeprefix(f"{file.stem}.")
        if file.suffix != ".py" or label in (path, file.name):
            continue
        if not re.fullmatch(r"[\w.]+", name) or not defines(file.read_text("utf-8"), name):
            problems.append(f"[{text}]({target}): {path} does not define {name}")
    return problems


def last_line(entry: Entry) -> str:
    """Return the last line of an entry, with its links."""
    return entry.body.rpartition("\nCode: ")[2].split("\n\n")[0]


def unpractised(
    entry: Entry,
    notebooks: Mapping[str, Mapping[str, set[str]]],
    exercises: Mapping[str, set[str]],
) -> list[str]:
    """Say where an entry and the notebooks and exercises that name its tag do not lead together.

    `notebooks` has the tags below each heading. One notebook that names the tag is enough, and
    the link leads to a heading below which it does. The report's entries need no exercise of their
    own: the end of their page leads to the folder.
    """
    last = [link.target.partition("#") for link in links(last_line(entry))]
    problems = []
    for path, _, heading in last:
        if path not in notebooks:
            continue
        named = [name for name, tags in notebooks[path].items() if entry.tag in tags]
        if not named:
            problems.append(f"{entry.tag} links {path}, which does not name it")
        elif heading not in named or (not heading and len(named) > 1):
            problems.append(f"{entry.tag} links {path}#{heading}, but is named below {named}")
    flat = {path: set().union(*parts.values()) for path, parts in notebooks.items()}
    for kind, naming in (("notebook", flat), ("exercise", exercises)):
        named = sorted(path for path, tags in naming.items() if entry.tag in tags)
        needed = kind == "notebook" or entry.page != "derivations.md"
        if needed and named and not set(named) & {path for path, _, _ in last}:
            problems.append(f"{entry.tag} links no {kind}, but {named} name it")
    return problems


def examples(markdown: str) -> list[str]:
    """Return the fenced Python blocks that show a prompt, ``>>> ...``."""
    blocks = re.findall(r"^```python\n(.*?)^```$", markdown, re.DOTALL | re.MULTILINE)
    return [block for block in blocks if block.startswith(">>>")]


def complaints(example: str) -> str:
    """Run an example and return what differs from its printed results."""
    said: list[str] = []
    test = doctest.DocTestParser().get_doctest(example, {}, "derivations.md", None, None)
    doctest.DocTestRunner(verbose=False).run(test, out=said.append)
    return "".join(said)


def chapters(text: str) -> list[str]:
    """Return the other pages in the order in which the contents list them."""
    contents = text.split("## Contents", 1)[1].split("\n## ", 1)[0]
    named = [link.target for link in links(contents) if link.target.startswith("derivations/")]
    return list(dict.fromkeys(target.partition("#")[0] for target in named))


TEXT = DOCUMENT.read_text("utf-8")
PAGES = {  # with links from the root
    page: from_root((ROOT / page).read_text("utf-8"), page)
    for page in ["derivations.md", *chapters(TEXT)]
}
ENTRIES = [entry for page, text in PAGES.items() for entry in entries(text, page)]
DEFINED = [entry.tag for entry in ENTRIES]
LARGEST_PAGE = 64_000  # bytes that are read in one sitting


@cache
def tags_in_code() -> dict[str, set[str]]:
    """Return the tags in the docstrings and comments of each file of the package."""
    return {
        path.relative_to(ROOT).as_posix(): tags_in(prose(path.read_text("utf-8")), FAMILIES)
        for path in sorted(ROOT.glob("bbb_*/**/*.py"))
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
def marks() -> dict[str, tuple[set[str], list[str]]]:
    """Return the tags with which the tests of each file are marked, and what is wrong there."""
    return {
        path.relative_to(ROOT).as_posix(): marked(path.read_text("utf-8"), FAMILIES)
        for path in sorted(ROOT.glob("tests/**/test_*.py"))
    }


def marked_tags() -> dict[str, set[str]]:
    """Return the tags with which the tests of each file are marked."""
    return {path: tags for path, (tags, _) in marks().items()}


def none_of(problems: list[str]) -> None:
    assert not problems, "\n" + "\n".join(problems)


def test_every_equation_has_exactly_one_entry_and_the_report_is_one_page_in_its_order() -> None:
    none_of(numbering_problems(DEFINED))
    assert [entry.tag for entry in entries(TEXT)] == [f"K{number}" for number in range(1, 45)]


def test_the_contents_lead_to_every_entry_and_every_page() -> None:
    contents = TEXT.split("## Contents", 1)[1].split("\n## ", 1)[0]
    here = [link for link in links(contents) if TAG.fullmatch(link.text)]
    assert [link.text for link in here] == [entry.tag for entry in entries(TEXT)]
    for tag, anchor in here:
        assert anchor.startswith(f"#{tag.lower()}-"), tag
    for page, markdown in list(PAGES.items())[1:]:
        title = markdown[2:].splitlines()[0]
        after = rf"^- \[{title}\]\({page}\)(.*?)(?=\n- |\Z)"
        (listed,) = re.findall(after, contents, re.DOTALL | re.MULTILINE)
        named = re.findall(r"\b[A-Z]\d+\b", listed)
        assert named == [entry.tag for entry in entries(markdown)], page
    assert {ROOT / page for page in PAGES} == {DOCUMENT, *ROOT.glob("derivations/*.md")}


def test_a_page_is_read_in_one_sitting_and_leads_to_the_next() -> None:
    for page in PAGES:
        assert (ROOT / page).stat().st_size < LARGEST_PAGE, page
    for page, after in pairwise(list(PAGES)[1:]):
        assert f"next: [{PAGES[after][2:].splitlines()[0]}]({after})" in " ".join(
            PAGES[page].split()
        ), page


def unled(rows: list[Link], pages: Mapping[str, str]) -> list[str]:
    """Say which page does not lead to the folder of exercises that the table gives it."""
    problems, folder = [], ""
    for link in rows:
        if link.target.startswith("exercises/"):
            folder = link.target
        elif link.target in pages and folder not in {
            each.target for each in links(pages[link.target])
        }:
            problems.append(f"{link.target} does not lead to {folder}")
    return problems


def test_a_chapter_and_its_exercises_lead_to_each_other() -> None:
    page = from_root((ROOT / "exercises/README.md").read_text("utf-8"), "exercises/README.md")
    table = "\n".join(line for line in page.splitlines() if line.startswith("| ["))
    rows = [link for link in links(table) if link.target != "derivations/errata.md"]
    folders = {f"exercises/{path.name}" for path in ROOT.glob("exercises/[0-9]*")}
    assert {link.target for link in rows} - set(PAGES) == folders
    none_of(unled(rows, PAGES))


def test_every_equation_is_in_the_code_and_the_code_names_no_other() -> None:
    missing, undefined = tag_problems(
        DEFINED, tags_in_code(), "docstring or comment of the packages"
    )
    none_of(missing + undefined)


def test_every_equation_has_a_test_and_the_tests_name_no_other() -> None:
    missing, undefined = tag_problems(DEFINED, marked_tags(), "pytest.mark.equation")
    none_of(missing + undefined)


def test_no_test_claims_more_equations_than_it_can_notice_being_wrong() -> None:
    many = {
        f"{path}::{name}": sorted(tags)
        for path in marked_tags()
        for name, tags in claims((ROOT / path).read_text("utf-8"), FAMILIES).items()
        if len(tags) > MOST_CLAIMS
    }
    assert not many, many


def test_marks_are_readable_and_decorate_tests() -> None:
    none_of([f"{path} {what}" for path, (_, wrong) in marks().items() for what in wrong])


def test_every_entry_links_code_and_a_test_that_carry_its_tag() -> None:
    none_of(
        [what for entry in ENTRIES for what in entry_problems(entry, tags_in_code(), marked_tags())]
    )


def test_an_entry_leads_to_a_notebook_and_to_the_exercise_that_name_it() -> None:
    from bbb_course.keys import chapters as graded

    exercises = {
        f"exercises/{chapter}/{number}_{one.name}.py": set(one.tags)
        for chapter, some in graded().items()
        for number, one in enumerate(some, 1)
    }
    none_of([what for entry in ENTRIES for what in unpractised(entry, notebooks(), exercises)])


def test_the_lines_on_one_screen_are_those_of_plain() -> None:
    section = TEXT.split("## On one screen", 1)[1].split("\n## ", 1)[0]
    source = (ROOT / PLAIN).read_text("utf-8")
    rows = re.findall(r"^\| `(.*?)` \| (.*) \|$", section, re.MULTILINE)
    assert len(rows) >= 12
    for line, derived in rows:
        code, comment = source.split(f"    {line} ", 1)[1].split("\n", 1)[0].split("#", 1)
        assert not code.strip(), line
        named = [link.text for link in links(derived)]
        written_out = f"{named[0]}-{named[-1]}" if " to " in derived else " ".join(named)
        assert tags_in(written_out, FAMILIES) == tags_in(comment, FAMILIES), line
    assert f"in {len(source.splitlines())} lines" in section


def test_plain_and_the_entries_that_it_carries_name_each_other() -> None:
    linking = {
        entry.tag for entry in ENTRIES if PLAIN in {link.target for link in links(entry.body)}
    }
    assert linking == tags_in_code()[PLAIN] - {"D7", "D9"}  # which it mentions and leaves to others


def test_every_link_leads_to_something() -> None:
    none_of([what for text in PAGES.values() for what in link_problems(text, ROOT)])


def test_the_examples_print_what_they_say() -> None:
    every = [example for text in PAGES.values() for example in examples(text)]
    assert len(every) >= 13
    none_of([what for example in every if (what := complaints(example))])


def test_mathematics_is_written_as_github_renders_it() -> None:
    inline = re.compile(r"(?<![^\s(|])\$`[^`\n]+`\$(?![^\s.,;:)|])")
    for page, markdown in PAGES.items():
        text = "\n".join(outside_fences(markdown))
        stray = [line for line in inline.sub("", text).splitlines() if "$" in line]
        assert not stray, (page, stray)
        assert r"\operatorname" not in markdown, "GitHub refuses this macro; use \\mathrm"


# Negative controls: each check fails on a planted error.

PLANTED = """
# Planted
## Section
#### K1: one
Code: [`a.f`](pkg/a.py) · Test: [tests/test_a.py](tests/test_a.py)
```math
#### K9: not a heading, it stands in a fence
```
#### K2: two
See [K1](#k1-one).
### Something else, after which K2 has ended
[outside](nowhere.md)
"""


def test_a_chapter_that_does_not_lead_to_its_exercises_is_found() -> None:
    rows = [Link("01 one", "exercises/01_one"), Link("one", "derivations/one.md")]
    assert unled(rows, {"derivations/one.md": "[01](exercises/01_one)"}) == []
    (said,) = unled(rows, {"derivations/one.md": "[02](exercises/02_two)"})
    assert said == "derivations/one.md does not lead to exercises/01_one"


def test_entries_are_headings_outside_fences_and_end_at_the_next_heading() -> None:
    found = entries(PLANTED)
    assert [entry.tag for entry in found] == ["K1", "K2"]
    assert "pkg/a.py" in found[0].body
    assert "outside" not in found[1].body


@pytest.mark.parametrize(
    ("tags", "problem"),
    [
        ("K1 K3 R1 R2 D1", "K2 has no entry"),
        ("K1 K2 K2 K3 R1 R2 D1", "K2 has 2 entries"),
        ("K1 K2 K3 K4 R1 R2 D1", "K4 is not in K1-K3"),
        ("K0 K1 K2 K3 R1 R2 D1", "K0 is not in K1-K3"),
        ("K1 K2 K3 R1 R2 D1 D3", "D2 has no entry"),
        ("K1 K2 K3 R1 R2", "D1 has no entry"),
        ("K1 K2 K3 D1", "R1 has no entry"),
        ("K1 K2 K3 R1 R2 R3 D1", "R3 is not in R1-R2"),
        ("K1 K2 K3 R1 R2 D1 Q1", "Q1 is of no known family"),
    ],
)
def test_a_gap_in_the_numbers_is_found(tags: str, problem: str) -> None:
    families = {"K": 3, "R": 2, "D": None}
    assert problem in "; ".join(numbering_problems(tags.split(), families))
    assert not numbering_problems(["K1", "K2", "R2", "K3", "D2", "D1", "R1"], families)


def test_tags_are_read_from_docstrings_and_comments_with_ranges_and_lists() -> None:
    source = '''
"""Module (K1, K2)."""
text = "K9"  # K5: a string is not prose  # noqa: D105
def f(K7):
    """Do K10-K12 and K43-44; W1, x1 and 3D are no tags."""
'''
    found = tags_in(prose(source), "KD")
    assert found == {"K1", "K2", "K5", "K10", "K11", "K12", "K43", "K44"}


def test_code_and_quotes_in_prose_name_no_tags() -> None:
    source = '''
"""The layer's weights ``W0``, ``rho
W1[0, 3]`` and 'W2' are no tags, nor is "W3"; the network's (W4) and the layers' (W5) are."""
limit = 5  # stable at M = 1e5, R^2 = 0.9; name "M1", isn't (M2), it's M3's
'''
    assert tags_in(prose(source), FAMILIES) == {"W4", "W5", "M2", "M3"}
    assert tags_in(source, FAMILIES) >= {"W0", "W1", "W2", "W3", "M1"}  # without the stripping


def test_marks_are_read_from_decorators_only() -> None:
    source = """
# @pytest.mark.equation("K1")
text = '@pytest.mark.equation("K2")'
@pytest.mark.equation("K3", "D4-D5", *("K7", "K8"))
def test_a() -> None: pass
@pytest.mark.equation("Q7", *NAMED, *COMPUTED, 8)
def test_b() -> None: pass
@pytest.mark.equation("K6")
def helper(): pass
NAMED = ("K10", "K11")
COMPUTED = [f"K{k}" for k in range(20, 30)]
"""
    tags, wrong = marked(source, "KD")
    assert tags == {"K3", "D4", "D5", "K7", "K8", "Q7", "K10", "K11"}
    assert len(wrong) == 3
    assert "*COMPUTED is not a tag written out" in wrong[0]
    assert "8 is not a tag written out" in wrong[1]
    assert "line 8: the mark does not decorate a test" in wrong[2]


def test_the_claims_of_each_test_are_counted_with_ranges_written_out() -> None:
    source = """
@pytest.mark.equation("K1", "D2-D4")
@pytest.mark.equation("K3")
class TestBoth: pass
def test_nothing(): "K9"
@pytest.mark.parametrize("K7", [1])
@pytest.mark.equation("K1-K40", *MORE)
def test_much(K7): pass
MORE = ("K41", "K42")
"""
    found = claims(source, "KD")
    assert found["TestBoth"] == {"K1", "K3", "D2", "D3", "D4"}
    assert len(found["test_much"]) == 42 > MOST_CLAIMS
    assert found["test_nothing"] == set()


def test_a_tag_that_is_missing_or_undefined_is_found() -> None:
    missing, undefined = tag_problems(["K1", "K2"], {"a.py": {"K1", "K3"}, "b.py": set()}, "place")
    assert missing == ["K2: not in any place"]
    assert undefined == ["a.py: K3 has no entry in derivations.md"]
    assert tag_problems(["K1"], {"a.py": {"K1"}}, "place") == ([], [])


def test_an_entry_that_links_the_wrong_file_is_found() -> None:
    entry = entries(PLANTED)[0]
    right = {"pkg/a.py": {"K1"}, "pkg/b.py": set()}, {"tests/test_a.py": {"K1"}}
    assert not entry_problems(entry, *right)
    elsewhere = {"pkg/a.py": set(), "pkg/b.py": {"K1"}}
    assert "carried by: ['pkg/b.py']" in entry_problems(entry, elsewhere, right[1])[0]
    assert len(entry_problems(entry, elsewhere, {"tests/test_a.py": set()})) == 2


def test_a_notebook_or_exercise_to_which_no_entry_leads_is_found() -> None:
    last = "\nCode: [`f`](a.py) · Notebook: [1](n/1.ipynb#A) · Exercise: [`e`](e/1.py)"
    entry = Entry("D2", last, "derivations/a.md")
    parts = {"": {"D2"}, "A": {"D2", "D3"}, "B": {"D3"}}
    notebooks, exercises = {"n/1.ipynb": parts, "n/2.ipynb": {"A": {"D2"}}}, {"e/1.py": {"D2"}}
    assert not unpractised(entry, notebooks, exercises)
    assert "does not name" in unpractised(entry, {"n/1.ipynb": {"A": {"D3"}}}, exercises)[0]
    elsewhere = entry._replace(body=last.replace("#A", "#B"))
    assert "but is named below ['', 'A']" in unpractised(elsewhere, notebooks, exercises)[0]
    assert (
        "but is named"
        in unpractised(entry._replace(body=last.replace("#A", "")), notebooks, exercises)[0]
    )
    bare = entry._replace(body="\nCode: [`f`](a.py)")
    assert len(unpractised(bare, notebooks, exercises)) == 2
    assert "no notebook" in unpractised(bare, notebooks, {})[0]
    assert "no exercise" in unpractised(bare, {}, exercises)[0]
    assert not unpractised(bare._replace(page="derivations.md"), {}, exercises)
    assert not unpractised(bare, {}, {})


def test_the_sections_of_a_notebook_are_named_as_jupyter_names_them() -> None:
    script = """# %% [markdown]
# # Title with K1
# ## 1. What `f` does: and why?
# K2 and [K3](../k.md#k9-x)
# %%
f()  # K4
# ### Below
"""
    found = sections(script)
    assert list(found) == ["", "1.-What-f-does:-and-why?", "Below"]
    assert tags_in(found["1.-What-f-does:-and-why?"], "K") == {"K2", "K3", "K4"}
    assert tags_in(found[""], "K") == {"K1"}


def test_a_link_to_nothing_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(
        "LIMIT = 1\nclass C:\n    size: int = 0\n    def f(self): pass\ndef g(): pass\n"
    )
    right = (
        "# One: two\n[a](#one-two) [`a.C.f`](a.py) [`a.LIMIT`](a.py) [`a.py::g`](a.py) [a.py](a.py)"
    )
    assert not link_problems(right + " [`C.size`](a.py) [`a.C`](a.py)", tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "d.py").write_text("")
    assert not link_problems("[d.py](folder/d.py)", tmp_path)
    (tmp_path / "n.py").write_text("# # N\n# ## 1. One: two?\n")
    (tmp_path / "n.ipynb").write_text("{}")
    assert not link_problems("[n](n.ipynb#1.-One:-two?)", tmp_path)
    for wrong, complaint in [
        ("[a](#one)", "no such heading"),
        ("[n](n.ipynb#1-one-two)", "no such heading"),
        ("[b](b.py)", "no such file"),
        ("[`a.C.g`](a.py)", "does not define C.g"),
        ("[`b.g`](a.py)", "does not define b.g"),
        ("[`a.py::f`](a.py)", "does not define f"),
        ("[e.py](folder/d.py)", "does not define e.py"),
        ("[the function](a.py)", "does not define the function"),
    ]:
        assert complaint in " ".join(link_problems(f"{right} {wrong}", tmp_path)), wrong


def test_links_of_a_page_in_a_folder_are_read_from_the_root(tmp_path: Path) -> None:
    page = "[a](#one) [b](b.md#two) [c](../c.py) [d](https://d.e) [f](../f.md)"
    said = "[a](#one) [b](pages/b.md#two) [c](c.py) [d](https://d.e) [f](f.md)"
    assert from_root(page, "pages/a.md") == said
    assert from_root(said, "a.md") == said
    (tmp_path / "b.md").write_text("# Two\n")
    assert not link_problems("[b](b.md#two)", tmp_path)
    assert "no such heading" in link_problems("[b](b.md#one)", tmp_path)[0]


def test_a_wrong_result_of_an_example_is_found() -> None:
    right = "```python\n>>> 1 + 1\n2\n```\n"
    assert not complaints(examples(right)[0])
    assert "Got" in complaints(examples(right.replace("2", "3"))[0])
