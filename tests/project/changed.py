"""Print the folders that `make check` tests: the prover's too, if it or a part has changed.

python tests/project/changed.py
"""

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MATHEMATICS = ("tests/numeric", "tests/parts", "tests/model", "tests/gradients")
PROVER = "tests/exactgrad"
# what the prover's own tests test; the parts are what it proves
TESTED = ("exactgrad/", "tests/exactgrad/", "tests/gallery/", "bbb_numpy/parts/")


def git(*arguments: str) -> str | None:
    """Return what git prints, or None where there is no git, or no commit."""
    try:
        result = subprocess.run(
            ["git", "-C", ROOT, *arguments], capture_output=True, text=True, encoding="utf-8"
        )
    except OSError:
        return None
    return result.stdout if result.returncode == 0 else None


def changed() -> list[str] | None:
    """Return the files that are not as in the last commit; None if git does not know."""
    top = git("rev-parse", "--show-toplevel")
    if top is None or Path(top.rstrip("\n")) != ROOT:  # unpacked inside another repository
        return None
    edited = git("diff", "HEAD", "--name-only", "-z")
    untracked = git("ls-files", "--others", "--exclude-standard", "-z")
    if edited is None or untracked is None:
        return None
    return [name for name in (edited + untracked).split("\0") if name]


def folders() -> list[str]:
    """Return the folders of tests; a gate, which sees commits alone, has the prover's as well."""
    files = None if os.environ.get("CI") else changed()
    if files is None or any(name.startswith(TESTED) for name in files):
        return [*MATHEMATICS, PROVER]
    return [*MATHEMATICS]


if __name__ == "__main__":
    print(*folders())
