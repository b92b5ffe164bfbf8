"""Write the sources of the site for Sphinx: ``python site/generate.py build/site/source``.

Every page is made of the repository's own files: the chapters as they are, and for each equation a
page with its derivation, the lines of code that carry it, and its proof and tests. What those are,
tests/project/book.py and tests/project/proofs.py say, which the tests rely on too.
"""

import ast
import html
import re
import shutil
import sys
import tokenize
from functools import cache
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
for _folder in (HERE, HERE.parent, HERE.parent / "tests"):
    if str(_folder) not in sys.path:
        sys.path.insert(0, str(_folder))

import course  # noqa: E402
import pages as text  # noqa: E402
from project import book  # noqa: E402
from project import proofs as proving  # noqa: E402

ROOT = HERE.parent
START_PAGES = (
    "README.md", "exercises/README.md", "derivations.md", "proofs.md", "CONTRIBUTING.md",
    "CHANGELOG.md", "SECURITY.md", "site/index.md", "site/symptoms.md", "benchmarks/uci.md",
    "benchmarks/README.md", *sorted(f"docs/{path.name}" for path in ROOT.glob("docs/*.md")),
)  # fmt: skip
USING = "docs/using.md"  # its table is the order of the pages for users
DEFINED = frozenset(book.DEFINED)
FLOORS = (  # in reading order
    "plain", "numeric", "parts", "model", "gradients", "training", "sampling",
    "evaluation", "combinations", "learners", "plots", "cli",
)  # fmt: skip


class Reachable(NamedTuple):
    """The files, from the root, that can be reached from the first pages."""

    pages: set[str]
    notebooks: set[str]
    pictures: set[str]
    sources: set[str]


@cache
def crawl() -> Reachable:
    """Return the files to which the links of the pages and notebooks lead."""
    reachable = Reachable(set(), set(), set(), set())
    waiting = [
        *START_PAGES,
        *(p.relative_to(ROOT).as_posix() for p in ROOT.glob("notebooks/*.ipynb")),
    ]
    while waiting:
        path = waiting.pop()
        has_other_page = path.startswith(text.OWN) or text.exercise_address(path)
        is_known = any(path in paths for paths in reachable)
        if has_other_page or is_known or not (ROOT / path).exists():
            continue
        if path.endswith(".md"):
            reachable.pages.add(path)
            waiting += text.links((ROOT / path).read_text("utf-8"), path)
        elif path.endswith(".ipynb"):
            reachable.notebooks.add(path)
            waiting += text.notebook_links((ROOT / path).read_text("utf-8"), path)
        elif Path(path).suffix in text.PICTURES:
            reachable.pictures.add(path)
        else:
            reachable.sources.add(path)
            if (ROOT / path).is_dir():
                waiting += [
                    p.relative_to(ROOT).as_posix()
                    for p in sorted((ROOT / path).iterdir())
                    if p.suffix == ".py" or (p.is_dir() and list(p.glob("*.py")))
                ]
    described = [text.module_file(module) for module in modules() if has_page(module)]
    reachable.sources.update(described)
    reachable.sources.update(code.path for codes in proving.codes().values() for code in codes)
    reachable.sources.update(path for tests in tests_of().values() for path, _ in tests)
    reachable.sources.update(p.path for proofs_of_tag in proofs().values() for p in proofs_of_tag)
    for path in list(reachable.sources):
        reachable.sources.update(folder.as_posix() for folder in list(Path(path).parents)[:-1])
    return reachable


def linked_pages(page: str) -> list[str]:
    """Return the pages to which a page leads, in its order."""
    markdown = (ROOT / page).read_text("utf-8")
    targets = [match[2] for match in text.LINK.finditer(markdown)]
    paths = [text.resolve(target, page)[0] for target in targets if not text.is_web(target)]
    return list(dict.fromkeys(path for path in paths if path.endswith(".md")))


@cache
def proofs() -> dict[str, list[proving.Proof]]:
    """Return the proofs of each equation, read once."""
    return proving.proofs()


@cache
def tests_of() -> dict[str, list[tuple[str, str]]]:
    """Return the tests that are marked with each tag: files and names."""
    tests: dict[str, list[tuple[str, str]]] = {tag: [] for tag in book.DEFINED}
    for path in book.marked_tags():
        source = (ROOT / path).read_text("utf-8")
        for test, tags in book.claims(source).items():
            for tag in sorted(tags & DEFINED):
                tests[tag].append((path, test))
    return tests


FIRST_PAGE = "---\nhide-toc: true\n---\n\n"


def definitions(tag: str) -> list[tuple[str, str, int, int]]:
    """Return the definitions that carry an equation: file, label, first and last line."""
    located = []
    for code in proving.codes()[tag]:
        line_range = text.lines_of(code.path, code.name) if code.name else None
        if line_range:
            located.append((code.path, code.label, *line_range))
    carrying = [d for d in located if hits_in(d, tag)]
    return (carrying or located)[: proving.MAX_CODES]


def hits_in(definition: tuple[str, str, int, int], tag: str) -> set[int]:
    """Return the lines of a definition behind which a comment names the tag."""
    path, _, first, last = definition
    return {line for line in tagged_lines(path).get(tag, set()) if first <= line <= last}


@cache
def tagged_lines(path: str) -> dict[str, set[int]]:
    """Return the lines of a file behind which comments name each tag."""
    lines_by_tag: dict[str, set[int]] = {}
    with (ROOT / path).open(encoding="utf-8") as file:
        for token in tokenize.generate_tokens(file.readline):
            if token.type == tokenize.COMMENT:
                for tag in book.tags_in(token.string, book.FAMILIES):
                    lines_by_tag.setdefault(tag, set()).add(token.start[0])
    return lines_by_tag


def heading(title: str) -> str:
    """Return the title of a column; it stands within a section, so it is no heading of Markdown."""
    return f'\n<h2 class="column-title">{html.escape(title)}</h2>\n'


def code_column(tag: str, out: str) -> list[str]:
    """Return the lines of the package that carry an equation, the tagged ones marked."""
    blocks = []
    for definition in definitions(tag):
        path, label, first, last = definition
        hits = hits_in(definition, tag)
        blocks.append(f"[{label}](src:{text.relative(text.source_page(path), out)}#L-{first})\n")
        for first_line, last_line in text.windows(first, last, hits):
            blocks.append(text.raw(text.listing(path, first_line, last_line, hits, out, DEFINED)))
    return blocks


def proof_column(tag: str, out: str) -> list[str]:
    """Return the proofs of an equation in full, and the names of all tests that claim it."""
    blocks = []
    for proof in dict.fromkeys(proofs()[tag]):
        line_range = text.lines_of(proof.path, proof.test)
        if line_range:
            address = text.relative(text.source_page(proof.path), out)
            blocks.append(f"{proof.kind}: [`{proof.test}`](src:{address}#L-{line_range[0]})\n")
            first, last = line_range
            short = min(last, first + text.LONGEST)
            blocks.append(text.raw(text.listing(proof.path, first, short, set(), out, DEFINED)))
    tests = tests_of()[tag]
    blocks.append(f"Tests with the mark `{tag}`: {len(tests)}\n")
    for path, test in tests:
        line_range = text.lines_of(path, test)
        address = text.relative(text.source_page(path), out)
        blocks.append(f"- [`{test}`](src:{address}#L-{line_range[0] if line_range else 1})")
    return blocks


def tag_page(entry: book.Entry) -> str:
    """Return the page of one equation: derivation, code, proof and tests side by side."""
    tag = entry.tag
    out = f"tags/{entry.tag.lower()}.md"
    title, name = proving.titles(book.PAGES[entry.page])[tag]
    number = book.DEFINED.index(tag)
    chapter = text.new_link("[in its chapter]", f"{entry.page}#{name}", "", out)
    navigation = [chapter, "[all](index.md)", "[search](src:../search#found)"]
    for word, index in (("before", number - 1), ("next", number + 1)):
        if 0 <= index < len(book.DEFINED):
            navigation.append(f"{word}: [{book.DEFINED[index]}]({book.DEFINED[index].lower()}.md)")
    entry_markdown = text.entry_text((ROOT / entry.page).read_text("utf-8"), tag)
    lines = [
        text.ORPHAN_PAGE + f"# {tag}: {title}\n",
        " · ".join(navigation) + "\n",
        '<div class="columns">\n<div class="column">\n' + heading("Derivation"),
        text.convert(entry_markdown, entry.page, out),
        '</div>\n<div class="column">\n' + heading("The lines that carry it"),
        *code_column(tag, out),
        heading("Proof and tests"),
        *proof_column(tag, out),
        "\n</div>\n</div>\n",
    ]
    return "\n".join(lines)


def tag_index() -> str:
    """Return the table of all equations."""
    lines = [
        "# Every equation beside its code and its proof\n",
        "One page for each tag: the derivation, the lines of the package that carry it, and what "
        "proves it.\n",
        "| | statement | proof | tests |\n|---|---|---|---|",
    ]
    for entry in book.ENTRIES:
        title = proving.titles(book.PAGES[entry.page])[entry.tag][0]
        proof_kinds = ", ".join(dict.fromkeys(p.kind for p in proofs()[entry.tag]))
        page = f"{entry.tag.lower()}.md"
        lines.append(
            f"| [{entry.tag}]({page}) | {title} | {proof_kinds} | {len(tests_of()[entry.tag])} |"
        )
    return "\n".join(lines) + "\n"


def public(path: Path) -> list[str]:
    """Return the public names that a module defines itself."""
    tree = text.parsed(path.relative_to(ROOT).as_posix())
    named = book.names_of(tree)
    defined = [node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    if "__all__" in named:
        return [name for name in ast.literal_eval(named["__all__"]) if name in defined]
    return [name for name in defined if not name.startswith("_")]


def modules() -> dict[str, list[str]]:
    """Return the modules of the packages that define something public, in reading order."""
    names_by_module = {}
    for path in book.package_files():
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        if public(path) and name.count(".") and not name.endswith("__main__"):
            names_by_module[name] = public(path)

    def reading_order(name: str) -> tuple[int, str]:
        package, folder, *_ = name.split(".")
        if package == "bbb_numpy" and folder in FLOORS:
            return FLOORS.index(folder), name
        return len(FLOORS) + book.PACKAGES.index(package), name

    return {name: names_by_module[name] for name in sorted(names_by_module, key=reading_order)}


def section_of(module: str) -> str:
    """Return the section of the reference that lists a module: a folder or another package."""
    package, folder, *_ = module.split(".")
    return folder if package == "bbb_numpy" else package


def has_page(module: str) -> bool:
    """Return whether the reference describes a module; others are read where they stand."""
    return module.split(".")[0] not in ("bbb_studies", "bbb_course")


def exported() -> list[str]:
    """Return the public names of the package, each with the module that defines it."""
    from bbb_numpy import __all__  # with the parts that are registered

    where = {name: module for module, names in reversed(modules().items()) for name in names}
    names = ["check_gradient" if name == "check" else name for name in __all__]  # as it is defined
    return [f"{where[name]}.{name}" for name in names if name in where]


def api() -> dict[str, str]:
    """Return the pages of the reference: an overview, and one for each module."""
    written = {}
    rows = ["Reference", "=========", "", "What ``import bbb_numpy`` offers", "-" * 32, "",
            ".. autosummary::", "   :nosignatures:", ""]  # fmt: skip
    rows += [f"   ~{name}" for name in exported()]
    folder = ""
    for module, names in modules().items():
        section = section_of(module)
        if folder != section:
            folder = section
            rows += ["", f"``{folder}``", "-" * (len(folder) + 4), ""]
        listed = ", ".join(names)
        if not has_page(module):
            path = text.module_file(module)
            name = f"``{module}``"
            if path in crawl().sources:
                name = f"`{module} <../{text.source_page(path)}.html#L-1>`__"
            rows.append(f"* {name}: {listed}")
            continue
        rows.append(f"* :doc:`{module} <{module}>`: {listed}")
        title = f"``{module}``"
        written[f"api/{module}.rst"] = "\n".join(
            [":orphan:", "", title, "=" * len(title), "", f".. automodule:: {module}",
             f"   :members: {listed}", "   :member-order: bysource", ""]
        )  # fmt: skip
    written["api/index.rst"] = "\n".join([*rows, ""])
    return written


def contents(reachable: Reachable) -> str:
    """Return the tables of contents of the first page; what no other one lists comes last."""
    groups = {
        "The path": [*book.PATH],
        "Behind it": [page for page in book.PAGES if page not in book.PATH],
        "Try it": [
            "exercises/README.md",
            "docs/teaching.md",
            "docs/grading.md",
            *sorted(reachable.notebooks),
        ],
        "Use it": ["README.md", USING, "benchmarks/uci.md"],
        "Look it up": [
            *("docs/notation.md", "docs/terms.md", "docs/prerequisites.md"),
            *("tags/index", "proofs.md", "api/index", "docs/reading.md"),
        ],
    }
    listed = {page for group in groups.values() for page in group} | {"site/index.md"}
    groups["Use it"][2:2] = [page for page in linked_pages(USING) if page not in listed]
    groups["More"] = sorted(reachable.pages - listed - set(groups["Use it"]))
    trees = []
    for caption, group in groups.items():
        rows = "\n".join("/" + re.sub(r"\.(md|ipynb)$", "", page) for page in group)
        trees.append(
            f"```{{toctree}}\n:caption: {caption}\n:hidden:\n:titlesonly:\n\n{rows}\n```\n"
        )
    return "\n".join(trees)


def written() -> dict[str, str]:
    """Return every page of the site: its path below the source folder, and its text."""
    reachable = crawl()
    contents_by_path = {}
    for page in sorted(reachable.pages):
        out = "index.md" if page == "site/index.md" else page
        markdown = (ROOT / page).read_text("utf-8")
        contents_by_path[out] = text.convert(markdown, page, out)
    contents_by_path["index.md"] = (
        FIRST_PAGE + contents_by_path["index.md"] + "\n" + contents(reachable)
    )
    for page in sorted(reachable.notebooks):
        stored = (ROOT / page).read_text("utf-8")
        contents_by_path[page] = text.notebook(stored, page)
        contents_by_path[f"extra/{page}"] = text.without_outputs(stored)
    sources = frozenset(reachable.sources)
    for path in sorted(sources):
        out = f"extra/{text.source_page(path)}.html"
        contents_by_path[out] = text.file_page(path, DEFINED, sources)
    for entry in book.ENTRIES:
        contents_by_path[f"tags/{entry.tag.lower()}.md"] = tag_page(entry)
    contents_by_path["tags/index.md"] = tag_index()
    return {**contents_by_path, **course.course_pages(), **api()}


def write(files: dict[str, str], folder: Path) -> None:
    """Write what changed, so that Sphinx builds only that again, and remove what is gone."""
    for name, content in files.items():
        path = folder / name
        if not path.is_file() or path.read_text("utf-8") != content:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, "utf-8")
    for path in folder.rglob("*"):
        is_wanted = path.suffix in text.PICTURES or path.relative_to(folder).as_posix() in files
        if path.is_file() and not is_wanted:
            path.unlink()


def main(folder: Path) -> None:
    """Write the sources of the site to `folder`."""
    write(written(), folder)
    for picture in crawl().pictures:
        (folder / picture).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / picture, folder / picture)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
