"""The guides of CONTRIBUTING.md, typed into a copy of the tree, and what they say to run."""

import ast
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from project.book import DEFINED, EXAMPLE, FAMILIES, tags_in

ROOT = Path(__file__).resolve().parents[2]
GUIDES = ("prior", "likelihood", "activation", "optimizer", "sampler")
MOST_FILES = 4  # by hand, beside the changelog
LEFT_OUT = shutil.ignore_patterns(
    ".*", "build", "dist", "*.egg-info", "__pycache__", "report", "reproduced"
)
STEP = re.compile(r"<!-- (.*?) -->\n```\w+\n(.*?)```", re.DOTALL)


def steps(guide: str) -> list[tuple[str, str]]:
    """Return what a guide says to type: where, and what."""
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    section = rf"^## A new {guide}\n(.*?)(?=^## (?!D))"  # no heading of a derivation
    (found,) = re.findall(section, text, re.DOTALL | re.MULTILINE)
    return STEP.findall(found)


def typed(root: Path, where: str, text: str) -> None:
    """Write one step of a guide into the tree."""
    how, _, name = where.partition(": ")
    path = root / (name or "CHANGELOG.md")
    before = path.read_text("utf-8") if path.exists() else ""
    if how == "at the end":
        text = f"{before.rstrip()}\n\n\n{text}"
    elif how == "above the line":
        above, line, below = before.rpartition("\n---\n")
        text = f"{above.rstrip()}\n\n{text}{line}{below}"
    elif how.startswith("below "):
        (line,) = re.findall(rf"^{re.escape(how[7:-1])}.*\n", before, re.MULTILINE)
        text = before.replace(line, line + text)
    elif how == "changelog":
        head = "### The library, `bbb_numpy`\n\n"
        assert head in before
        text = before.replace(head, head + text, 1)
    else:
        assert how == "new"
        assert not before
    path.write_text(text, "utf-8")


def commands(text: str) -> list[list[str]]:
    """Return what a guide says to run, as lists of words."""
    return [shlex.split(one) for line in text.splitlines() for one in line.split(" && ")]


def ran(root: Path, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a program of this environment in the tree."""
    environment = {**os.environ, "PYTHONPATH": str(root), "HYPOTHESIS_PROFILE": "check"}
    run = [str(Path(sys.executable).parent / program)]
    if program in ("python", "pytest"):
        run = [sys.executable, *(["-m", "pytest", "-q", "--no-header"] * (program == "pytest"))]
    return subprocess.run(
        [*run, *arguments], cwd=root, env=environment, capture_output=True, text=True
    )


@pytest.mark.parametrize("guide", GUIDES)
def test_a_guide_writes_four_files_at_most_of_code_that_parses_with_a_tag_that_is_never_real(
    guide: str,
) -> None:
    *written, (where, run) = steps(guide)
    assert where == "run"
    files = {where.partition(": ")[2] for where, _ in written} - {""}
    assert len(files) <= MOST_FILES
    assert sum(where == "changelog" for where, _ in written) == 1
    for where, text in written:
        assert tags_in(text, FAMILIES) <= {EXAMPLE}
        name = where.partition(": ")[2]
        if name.endswith(".py"):
            ast.parse(text)
        assert (ROOT / name).exists() != where.startswith("new")
    assert EXAMPLE not in DEFINED
    for program, *arguments in commands(run):
        paths = [one for one in arguments if one.endswith(".py") or one.startswith("tests/")]
        assert all((ROOT / one).exists() for one in paths), (program, paths)


@pytest.mark.slow
@pytest.mark.parametrize("guide", GUIDES)
def test_a_guide_typed_literally_passes_what_it_says_to_run(guide: str, tmp_path: Path) -> None:
    """A `-k` that selects nothing fails: pytest says so with status 5."""
    root = tmp_path / "tree"
    shutil.copytree(ROOT, root, ignore=LEFT_OUT)
    *written, (_, run) = steps(guide)
    for where, text in written:
        typed(root, where, text)
    for program, *arguments in commands(run):
        options = ["-n", "0"] if program == "pytest" else []
        for each in arguments if "-k" in arguments and "tests/" in arguments[0] else ():
            if each.startswith("tests/"):  # every file that a guide names has a test of its part
                chosen = arguments[arguments.index("-k") :]
                done = ran(root, program, *options, each, *chosen, "--collect-only")
                assert done.returncode == 0, f"{each} {chosen}\n{done.stdout[-3000:]}"
        done = ran(root, program, *options, *arguments)
        assert done.returncode == 0, f"{arguments}\n{done.stdout[-6000:]}{done.stderr[-3000:]}"
