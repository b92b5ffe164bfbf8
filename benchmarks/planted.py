"""Plant one error for every tag of derivations.md, and list the tests with its mark that notice.

    python benchmarks/planted.py                   # every tag, minutes; writes planted.md
    python benchmarks/planted.py --only K25 R5     # some of them: their rows are renewed

The errors are those of tests/derivations/planted.py. Each is planted in a copy of bbb_numpy, on
which the tests that are marked with the tag run, in a process forked for it: the libraries are
imported once. Not the tests of the notebooks: they are marked with what a notebook shows. A tag
whose error no marked test notices makes the exit status 1.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import re
import resource
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from math import ceil
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "benchmarks" / "planted.md"
NOTEBOOKS = "tests/project/test_notebooks.py"
SHOWN = 3  # tests that a row names
MOST_SECONDS = 300  # of processor time of one run: an error may make a loop endless
# Imported once, before any run; bbb_numpy must not be among what they import
LIBRARIES = "hypothesis scipy.stats sympy autograd.numpy sklearn.utils.validation pandas PIL.Image"


def loaded(path: Path) -> ModuleType:
    """Return a Python file of the tests as a module."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


# The tags, the marks and the errors are those of the tests
derivations = loaded(ROOT / "tests" / "project" / "test_derivations.py")
errors = loaded(ROOT / "tests" / "derivations" / "planted.py")


def tests_with(tag: str) -> set[str]:
    """Return the tests that are marked with a tag, those of the notebooks apart."""
    return {
        f"{path}::{name}"
        for path, marks in derivations.marked_tags().items()
        if tag in marks and path != NOTEBOOKS
        for name, tags in claims_of(path).items()
        if tag in tags
    }


@cache
def claims_of(path: str) -> dict[str, set[str]]:
    """Return the tags of each test of a file."""
    return derivations.claims((ROOT / path).read_text("utf-8"), derivations.FAMILIES)


def in_order(tags: Iterable[str], file: str) -> list[str]:
    """Return the tests marked with the tags.

    Those first that mirror `file` of the package, then those whose file an entry links.
    """
    wanted = set(tags)
    mirrored = Path("tests", file).with_name(f"test_{Path(file).name}").as_posix()
    bodies = [entry.body for entry in derivations.ENTRIES if entry.tag in wanted]
    linked = {link.target for body in bodies for link in derivations.links(body)}

    def place(test: str) -> tuple[bool, bool, str]:
        path = test.split("::")[0]
        return path != mirrored, path not in linked, test

    return sorted(set().union(*map(tests_with, wanted)), key=place)


def run(copy: Path, tests: Iterable[str], seconds: int = MOST_SECONDS) -> dict[str, bool]:
    """Run tests on a copy of the package; return which failed of those that ended in time."""
    report, output = copy / "report.jsonl", copy / "output"
    report.write_text("", "utf-8")
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        _run_pytest(copy, list(tests), seconds, Told(copy / "bbb_numpy", report), output)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code == -signal.SIGXCPU:
        print(f"the next row: not all of its tests ended in {seconds} s of processor time")
    elif code not in (0, 1, 5):  # 5: there was none to run
        raise RuntimeError(output.read_text("utf-8")[-3000:])
    failed: dict[str, bool] = {}
    for line in report.read_text("utf-8").splitlines():
        name, one = json.loads(line)
        failed[name] = failed.get(name, False) or one
    return failed


def _run_pytest(copy: Path, tests: list[str], seconds: int, told: Told, output: Path) -> NoReturn:
    """Turn this process into a run of pytest."""
    code = 3
    try:
        used = ceil(sum(resource.getrusage(resource.RUSAGE_SELF)[:2]))
        resource.setrlimit(resource.RLIMIT_CPU, (used + seconds, resource.RLIM_INFINITY))
        with output.open("w") as stream:
            os.dup2(stream.fileno(), 1)
            os.dup2(stream.fileno(), 2)
        os.chdir(ROOT)
        os.environ |= {"PYTHONPATH": f"{copy}{os.pathsep}{ROOT}"}  # of what the tests start
        sys.path[:0] = [str(copy), str(ROOT)]
        plain = ["-n", "0", "-q", "--tb=no", "-r", "N", "-p", "no:randomly", "-p"]
        plain += ["no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
        paths = ["-o", f"pythonpath={copy} {ROOT} {ROOT / 'tests'}"]
        code = int(pytest.main([*plain, *paths, *tests], plugins=[told]))
    finally:
        os._exit(code)


@dataclass(eq=False)  # plugins are kept in sets
class Told:
    """A plugin of pytest that writes at once what became of a test: the run may be ended."""

    package: Path  # the one that must be tested
    report: Path

    def pytest_configure(self) -> None:
        """Shrink no failing example: that it fails is enough."""
        settings = importlib.import_module("hypothesis").settings
        phases = [phase for phase in settings().phases if phase.name in ("explicit", "generate")]
        check = settings.get_profile("check")
        settings.register_profile("planted", check, phases=phases, database=None)
        settings.load_profile("planted")

    def pytest_collection_finish(self) -> None:
        """See that the package is the one with the error."""
        found = importlib.import_module("bbb_numpy").__file__
        assert found is not None
        assert Path(found).parent == self.package, found

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Write the test and whether it failed; parameters and the tests of a class are one."""
        if report.skipped or (report.when != "call" and not report.failed):
            return
        name = "::".join(report.nodeid.split("[")[0].split("::")[:2])
        with self.report.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps([name, report.failed]) + "\n")


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
    ran = tests_with(tag) & set(failed)
    return sorted(name for name in ran if failed[name]), len(ran)


def row(tag: str, error: Any, seen: list[str], ran: int) -> str:
    """Return a row of the table."""
    source = (ROOT / "bbb_numpy" / error.file).read_text("utf-8")
    line = source[: source.index(error.old)].count("\n") + 1
    names = ", ".join(name.split("::")[1] for name in seen[:SHOWN])
    more = f" and {len(seen) - SHOWN} more" if len(seen) > SHOWN else ""
    return f"| {tag} | {error.file}:{line} | {error.shown} | {len(seen)} of {ran}: {names}{more} |"


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
    merged = kept | rows
    lines = [line for tag in errors.PLANTED for line in merged.get(tag, [])]
    without = [f"- {tag}: {why}" for tag, why in errors.NO_CODE.items()]
    tail = ["", "No line of the package computes these:", "", *without] if without else []
    PAGE.write_text(HEAD + "\n".join([*lines, *tail]) + "\n", "utf-8")


def main(arguments: list[str] | None = None) -> int:
    """Plant, run, write the page; return 1 if an error passes, or a test fails without one."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--only", nargs="+", metavar="TAG", help="such as K25 R5")
    parser.add_argument(
        "--seconds",
        type=int,
        default=MOST_SECONDS,
        help="of processor time for one error (%(default)d); mirrored files come first",
    )
    options = parser.parse_args(arguments)
    chosen = options.only or list(errors.PLANTED)
    if unknown := sorted(set(chosen) - set(errors.PLANTED)):
        parser.error(f"no error is planted for {', '.join(unknown)}")

    together: dict[Any, list[str]] = {}  # tags that share an error share its run
    for tag in chosen:
        for error in errors.PLANTED[tag]:
            together.setdefault(error, []).append(tag)

    os.environ |= {"CI": "1", "HYPOTHESIS_PROFILE": "check", "OPENBLAS_NUM_THREADS": "1"}
    for library in LIBRARIES.split():
        with suppress(ImportError):
            importlib.import_module(library)
    assert "bbb_numpy" not in sys.modules

    rows: dict[str, dict[Any, str]] = {tag: {} for tag in chosen}
    noticed: set[str] = set()
    passed: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder).resolve()
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / "bbb_numpy", copy / "bbb_numpy", ignore=ignored)
        for error, tags in together.items():
            with wrong(copy, error):
                failed = run(copy, in_order(tags, error.file), options.seconds)
            for tag in tags:
                seen, ran = noticing(tag, failed)
                noticed |= set(seen)
                rows[tag][error] = row(tag, error, seen, ran)
                print(rows[tag][error], flush=True)
                if not seen:
                    passed.append(f"{tag}: nobody notices {error.new!r} in {error.file}")
            done = [tag for tag in chosen if len(rows[tag]) == len(errors.PLANTED[tag])]
            write_page({tag: list(rows[tag].values()) for tag in done})
        without = run(copy, sorted(noticed)) if noticed else {}
    anyway = [f"{name} fails without any error" for name, one in without.items() if one]
    print("\n".join([*passed, *anyway]) or f"every error is noticed, {len(chosen)} tags")
    return 1 if passed or anyway else 0


if __name__ == "__main__":
    sys.exit(main())
