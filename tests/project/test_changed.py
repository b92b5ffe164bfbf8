"""`make check` has the prover's own tests where the prover, or a part that it proves, changed."""

import shutil
import subprocess

import pytest
from project import changed

WITHOUT = list(changed.MATHEMATICS)
WITH = [*WITHOUT, changed.PROVER]


@pytest.mark.parametrize(
    ("files", "folders"),
    [
        ([], WITHOUT),
        (["bbb_numpy/training/loop.py", "README.md", "tests/parts/test_priors.py"], WITHOUT),
        (["README.md", "bbb_numpy/parts/priors.py"], WITH),
        (["exactgrad/proofs.py"], WITH),
        (["tests/exactgrad/test_laws.py"], WITH),
        (None, WITH),
    ],
)
def test_the_prover_is_tested_where_it_or_a_part_changed_or_nobody_knows(
    files, folders, monkeypatch
):
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setattr(changed, "changed", lambda: files)
    assert changed.folders() == folders
    monkeypatch.setenv("CI", "1")
    assert changed.folders() == WITH


def test_every_folder_is_there():
    assert all((changed.ROOT / name).is_dir() for name in (*WITH, *changed.TESTED))


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_what_is_edited_staged_or_new_has_changed_and_without_a_commit_nobody_knows(
    tmp_path, monkeypatch
):
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):  # of a hook that runs the tests
        monkeypatch.delenv(name, raising=False)
    root = tmp_path / "checkout ä"
    (root / "inside").mkdir(parents=True)
    monkeypatch.setattr(changed, "ROOT", root)
    identity = ["-c", "user.name=x", "-c", "user.email=x@localhost", "-c", "commit.gpgsign=false"]

    def git(*arguments):
        subprocess.run(["git", "-C", root, *identity, *arguments], check=True, capture_output=True)

    assert changed.changed() is None
    git("init")
    assert changed.changed() is None
    for name in ("edited ä.py", "staged.py", "kept.py"):
        (root / name).write_text("x = 1\n")
    git("add", ".")
    git("commit", "-m", "first")
    assert changed.changed() == []
    for name in ("edited ä.py", "staged.py", "new.py"):
        (root / name).write_text("x = 2\n")
    git("add", "staged.py")
    assert sorted(changed.changed()) == ["edited ä.py", "new.py", "staged.py"]
    monkeypatch.setattr(changed, "ROOT", root / "inside")
    assert changed.changed() is None
    monkeypatch.setenv("PATH", "")
    assert changed.changed() is None
