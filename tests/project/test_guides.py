"""The guides of CONTRIBUTING.md, typed into a copy of the tree, and what they say to run."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GUIDES = ("prior", "likelihood", "activation")
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
    elif how == "changelog":
        head = "### The library, `bbb_numpy`\n\n"
        assert head in before
        text = before.replace(head, head + text, 1)
    else:
        assert how == "new"
        assert not before
    path.write_text(text, "utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("guide", GUIDES)
def test_a_guide_typed_literally_passes_what_it_says_to_run(guide: str, tmp_path: Path) -> None:
    root = tmp_path / "tree"
    shutil.copytree(ROOT, root, ignore=LEFT_OUT)
    *written, (_, commands) = steps(guide)
    assert len({where.partition(": ")[2] or "CHANGELOG.md" for where, _ in written}) == 4
    for where, text in written:
        typed(root, where, text)
    environment = {**os.environ, "PYTHONPATH": str(root), "HYPOTHESIS_PROFILE": "first"}
    bin_ = Path(sys.executable).parent
    for line in commands.splitlines():
        for command in line.split(" && "):
            program, *arguments = shlex.split(command)
            run = [sys.executable] if program == "python" else [str(bin_ / program)]
            run += ["-q", "-n", "0", "--no-header"] if program == "pytest" else []
            done = subprocess.run(
                [*run, *arguments], cwd=root, env=environment, capture_output=True, text=True
            )
            assert done.returncode == 0, f"{command}\n{done.stdout[-6000:]}{done.stderr[-3000:]}"
