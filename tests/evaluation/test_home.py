"""Convergence is judged also where the user has no home folder, or one that is none."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from bbb_numpy.evaluation import convergence

ARVIZ = SimpleNamespace(rhat=None)


@pytest.mark.parametrize("usual", [None, "usual"])
def test_arviz_gets_a_folder_where_the_users_cannot_be_made(usual, monkeypatch):
    """It keeps in it the day on which it last said something."""
    folders = []

    def imported(name):
        folder = os.environ.get(convergence.CACHE_VARIABLE)
        folders.append(folder)
        if folder == usual:
            raise NotADirectoryError(20, "Not a directory", "~/.cache/arviz")
        assert Path(folder).is_dir()
        return ARVIZ

    if usual is None:
        monkeypatch.delenv(convergence.CACHE_VARIABLE, raising=False)
    else:
        monkeypatch.setenv(convergence.CACHE_VARIABLE, usual)
    monkeypatch.setattr(convergence, "import_module", imported)
    assert convergence.import_arviz() is ARVIZ
    assert len(folders) == 2
    assert os.environ.get(convergence.CACHE_VARIABLE) == usual
    assert not Path(folders[1]).exists()


PROGRAM = """
import numpy as np
from bbb_numpy.evaluation.convergence import import_arviz
from bbb_numpy.plots import fits
print(import_arviz().rhat(np.random.default_rng(0).standard_normal((4, 50))) > 0.9)
"""


@pytest.mark.slow
@pytest.mark.parametrize("home", ["", "missing/home", "a file/home"])
def test_a_home_folder_that_is_none_does_no_harm(home, tmp_path):
    pytest.importorskip("arviz")
    (tmp_path / "a file").touch()
    environment = {name: value for name, value in os.environ.items() if name[:4] != "XDG_"}
    environment["HOME"] = str(tmp_path / home) if home else ""
    command = [sys.executable, "-c", PROGRAM]
    completed = subprocess.run(
        command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert completed.stdout == "True\n", completed.stderr
