"""Plant one error for every tag of derivations.md, and list the tests with its mark that notice.

    python benchmarks/planted.py                   # every tag, about half an hour; planted.md
    python benchmarks/planted.py --only K25 R5     # some of them: their rows are renewed

The errors are those of tests/derivations/planted.py. Each is planted in a copy of bbb_numpy, beside
which the tests that are marked with the tag run. Not those of the notebooks: they are marked with
what a notebook shows. A tag whose error no marked test notices makes the exit status 1.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import hypothesis

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "benchmarks" / "planted.md"
NOTEBOOKS = "tests/project/test_notebooks.py"
SHOWN = 3  # tests that a row names
MOST_SECONDS = 900.0  # of one run: an error may make a loop endless

# What a run of pytest is told: tags, the package that must be the one tested, where to report
TAGS, PACKAGE, REPORT = "PLANTED_TAGS", "PLANTED_PACKAGE", "PLANTED_REPORT"


def loaded(path: Path) -> ModuleType:
    """Return a Python file as a module."""
    found = sys.modules.get(path.stem)
    if found is not None:
        return found
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


derivations = loaded(ROOT / "tests" / "project" / "test_derivations.py")
planted = loaded(ROOT / "tests" / "derivations" / "planted.py") if __name__ == "__main__" else None


# Within the run of pytest, of which this module is a plugin


def pytest_configure(config: Any) -> None:
    """Shrink no failing example: that it fails is enough."""
    hypothesis.settings.register_profile(
        "planted",
        hypothesis.settings.get_profile("check"),
        phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],
        database=None,
        derandomize=True,
    )
    hypothesis.settings.load_profile("planted")


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    """Keep the tests that are marked with one of the tags."""
    import bbb_numpy

    assert Path(bbb_numpy.__file__).parent == Path(os.environ[PACKAGE]), bbb_numpy.__file__
    wanted = set(os.environ[TAGS].split())
    kept = [item for item in items if wanted & tags_of(item)]
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = kept


def tags_of(item: Any) -> set[str]:
    """Return the tags with which a collected test is marked."""
    marks = item.iter_markers("equation")
    named = " ".join(tag for mark in marks for tag in mark.args)
    return derivations.tags_in(named, derivations.FAMILIES)


def pytest_runtest_logreport(report: Any) -> None:
    """Write what became of a test at once: the run may be ended from outside."""
    if report.skipped or (report.when != "call" and not report.failed):
        return
    name = report.nodeid.split("[")[0]
    name = "::".join(name.split("::")[:2])  # a class of tests is one
    with open(os.environ[REPORT], "a", encoding="utf-8") as stream:
        stream.write(json.dumps([name, report.failed]) + "\n")


# Outside of it


def marked_with(tags: Iterable[str]) -> list[str]:
    """Return the test files that carry a mark of the tags, those first that an entry links."""
    wanted = set(tags)
    bodies = [entry.body for entry in derivations.ENTRIES if entry.tag in wanted]
    linked = {link.target for body in bodies for link in derivations.links(body)}
    found = [path for path, marks in derivations.TESTS.items() if wanted & marks]
    return sorted(
        (path for path in found if path != NOTEBOOKS), key=lambda path: path not in linked
    )


def run(
    copy: Path, tags: Iterable[str], tests: Iterable[str] = (), seconds: float = MOST_SECONDS
) -> dict[str, bool]:
    """Run the tests marked with `tags` (of these, `tests`) on a copy; return which failed.

    Those that end in the given time, which is enough for all of nearly every tag.
    """
    report = copy / "report.jsonl"
    report.unlink(missing_ok=True)
    settings = {
        "CI": "1",
        "HYPOTHESIS_PROFILE": "check",
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONPATH": f"{copy}{os.pathsep}{ROOT}",
        TAGS: " ".join(tags),
        PACKAGE: str(copy / "bbb_numpy"),
        REPORT: str(report),
    }
    plain = ["-n", "0", "-q", "-p", "no:randomly", "-p", "no:cacheprovider", "--tb=no", "-r", "N"]
    paths = ["-o", f"pythonpath={copy} {ROOT} {ROOT / 'tests'}", "-p", "benchmarks.planted"]
    command = [sys.executable, "-m", "pytest", *plain, *paths, *(tests or marked_with(tags))]
    try:
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=os.environ | settings,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        print(f"the tests of {' '.join(tags)} did not all end in {seconds} s", file=sys.stderr)
    else:
        if done.returncode not in (0, 1):
            raise RuntimeError(f"{' '.join(command)}\n{done.stdout[-3000:]}{done.stderr[-1000:]}")
    failed: dict[str, bool] = {}
    for line in report.read_text("utf-8").splitlines() if report.exists() else ():
        name, one = json.loads(line)
        failed[name] = failed.get(name, False) or one
    return failed


@contextmanager
def wrong(copy: Path, error: Any) -> Iterator[None]:
    """Plant an error in the copy for as long as it is needed."""
    path = copy / "bbb_numpy" / error.file
    right = path.read_text("utf-8")
    try:
        _write(path, error.planted_in(right))
        yield
    finally:
        _write(path, right)


def _write(path: Path, source: str) -> None:
    path.write_text(source, "utf-8")
    for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
        compiled.unlink()  # it may be of the same second and length


def noticing(tag: str, failed: dict[str, bool]) -> tuple[list[str], int]:
    """Return the tests marked with a tag that failed, and how many of them ran."""
    carrying = {
        f"{path}::{name}"
        for path in marked_with([tag])
        for name, tags in claims_of(path).items()
        if tag in tags
    }
    ran = carrying & set(failed)
    return sorted(name for name in ran if failed[name]), len(ran)


_CLAIMS: dict[str, dict[str, set[str]]] = {}


def claims_of(path: str) -> dict[str, set[str]]:
    """Return the tags of each test of a file."""
    if path not in _CLAIMS:
        source = (ROOT / path).read_text("utf-8")
        _CLAIMS[path] = derivations.claims(source, derivations.FAMILIES)
    return _CLAIMS[path]


def row(tag: str, error: Any, seen: list[str], ran: int) -> str:
    """Return a row of the table."""
    source = (ROOT / "bbb_numpy" / error.file).read_text("utf-8")
    line = source[: source.index(error.old)].count("\n") + 1
    names = ", ".join(name.split("::")[1] for name in seen[:SHOWN])
    more = f" and {len(seen) - SHOWN} more" if len(seen) > SHOWN else ""
    change = " → ".join(shown(text) for text in (error.old, error.new))
    return f"| {tag} | {error.file}:{line} | {change} | {len(seen)} of {ran}: {names}{more} |"


def shown(text: str) -> str:
    """Return code as it stands in a cell of a table."""
    joined = re.sub(r"\s*\n\s*", " ⏎ ", text.strip()).replace("|", "\\|")
    return f"`` {joined} ``" if "`" in joined else f"`{joined}`"


HEAD = """# Planted errors

One error for each tag of [derivations.md](../derivations.md), in a line that computes what the
entry says (several, where several do, `plain.py` among them), and the tests with its mark that fail
then: how many of those that ran, and up to three names. Written by `make planted` from
[tests/derivations/planted.py](../tests/derivations/planted.py).

| tag | line | planted | noticed by |
|---|---|---|---|
"""


def write_page(rows: dict[str, list[str]]) -> None:
    """Renew the rows of some tags, keep the others."""
    kept: dict[str, list[str]] = {}
    for line in PAGE.read_text("utf-8").splitlines() if PAGE.exists() else ():
        found = re.match(r"\| ([A-Z]\d+) \|", line)
        if found:
            kept.setdefault(found[1], []).append(line)
    assert planted is not None
    merged = kept | rows
    lines = [line for tag in planted.PLANTED for line in merged.get(tag, [])]
    without = [f"- {tag}: {why}" for tag, why in planted.NO_CODE.items()]
    tail = ["", "No line of the package computes these:", "", *without] if without else []
    PAGE.write_text(HEAD + "\n".join([*lines, *tail]) + "\n", "utf-8")


def main(arguments: list[str] | None = None) -> int:
    """Plant, run, write the page; return 1 if an error passes, or a test fails without one."""
    assert planted is not None
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--only", nargs="+", metavar="TAG", help="such as K25 R5")
    parser.add_argument(
        "--seconds",
        type=float,
        default=MOST_SECONDS,
        help="of the tests of one error (%(default)g); the files that the entry links run first",
    )
    options = parser.parse_args(arguments)
    chosen = options.only or list(planted.PLANTED)
    if unknown := sorted(set(chosen) - set(planted.PLANTED)):
        parser.error(f"no error is planted for {', '.join(unknown)}")

    together: dict[Any, list[str]] = {}  # tags that share an error share its run
    for tag in chosen:
        for error in planted.PLANTED[tag]:
            together.setdefault(error, []).append(tag)

    rows: dict[str, dict[Any, str]] = {tag: {} for tag in chosen}
    noticed: set[str] = set()
    passed: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder).resolve()
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / "bbb_numpy", copy / "bbb_numpy", ignore=ignored)
        for error, tags in together.items():
            with wrong(copy, error):
                failed = run(copy, tags, seconds=options.seconds)
            for tag in tags:
                seen, ran = noticing(tag, failed)
                noticed |= set(seen)
                rows[tag][error] = row(tag, error, seen, ran)
                print(rows[tag][error], flush=True)
                if not seen:
                    passed.append(f"{tag}: nobody notices {error.new!r} in {error.file}")
            done = [tag for tag in chosen if len(rows[tag]) == len(planted.PLANTED[tag])]
            write_page({tag: list(rows[tag].values()) for tag in done})
        without = run(copy, chosen, sorted(noticed)) if noticed else {}
    anyway = [f"{name} fails without any error" for name, one in without.items() if one]
    print("\n".join([*passed, *anyway]) or f"every error is noticed, {len(chosen)} tags")
    return 1 if passed or anyway else 0


if __name__ == "__main__":
    sys.exit(main())
