"""The exports for Otter-Grader and nbgrader, run in these programs themselves.

They are looked for in the folder `BBB_GRADERS`, else beside this Python and on the path:
``pip install "bbb_numpy[graders]"`` into an environment of its own.
"""

import csv
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from bbb_course.templates import SOLUTIONS, solution_text
from bbb_numpy.cli.main import main

ROOT = Path(__file__).resolve().parents[2]
CHAPTER = "02_free_energy"
SOFTPLUS = SOLUTIONS / CHAPTER / "1_softplus.py"
FOLDERS = os.pathsep.join(
    filter(None, [os.environ.get("BBB_GRADERS"), str(Path(sys.executable).parent)])
)
pytestmark = pytest.mark.slow


def program(name):
    """Return the path of a program, or skip the test."""
    found = shutil.which(name, path=FOLDERS) or shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed: see the extra [graders]")
    return found


def run(folder, *command):
    """Run a program in a folder, and return all that it prints."""
    path = os.pathsep.join([str(Path(command[0]).parent), os.environ["PATH"]])
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PATH": path}
    done = subprocess.run(
        command, cwd=folder, env=environment, text=True, capture_output=True, timeout=300
    )
    printed = done.stdout + done.stderr
    assert done.returncode == 0, printed
    return printed


def submissions(seed):
    """Return a right answer, and one with a known mistake, as files."""
    right = solution_text(SOFTPLUS, seed)
    wrong = right.replace("np.log1p(np.exp(rho))", "np.exp(rho)")
    assert wrong != right
    return {"right": right, "wrong": wrong}


@pytest.mark.parametrize("seed", ["", "7"])
def test_otter_gives_the_point_to_the_right_answer_and_tells_the_other_why(seed, tmp_path):
    otter = program("otter")
    variant = ["--variant", seed] if seed else []
    assert (
        main(["grade", str(SOFTPLUS), *variant, "--export", "otter", "--out", str(tmp_path)]) == 0
    )
    run(tmp_path, otter, "generate", "-t", "tests", "-o", "autograder.zip",
        "--no-config", "--no-requirements", "--no-environment")  # fmt: skip
    scores = {}
    for who, text in submissions(seed).items():
        (tmp_path / f"{who}.py").write_text(text, "utf-8")
        (tmp_path / who).mkdir()
        run(tmp_path, otter, "run", f"{who}.py", "-a", "autograder.zip", "-o", who, "--no-logo")
        public, softplus = json.loads((tmp_path / who / "results.json").read_text("utf-8"))["tests"]
        scores[who] = softplus["score"]
        said = run(tmp_path, otter, "check", f"{who}.py", "-t", "tests")
        assert ("All tests passed!" in said) == (who == "right")
        assert ("softplus: not yet, sigma is wrong" in said) == (who == "wrong")
    assert scores == {"right": 1, "wrong": 0}
    assert public["status"] == "failed"


@pytest.mark.parametrize("seed", ["", "7"])
def test_nbgrader_makes_holes_and_gives_the_point_to_the_right_answer(seed, tmp_path):
    nbgrader = program("nbgrader")
    variant = ["--variant", seed] if seed else []
    typed = [str(SOFTPLUS), *variant, "--export", "nbgrader", "--out", str(tmp_path)]
    assert main(["grade", *typed]) == 0
    (tmp_path / "nbgrader_config.py").write_text(
        'c = get_config()\nc.CourseDirectory.course_id = "book"\n'
        "c.ExecutePreprocessor.timeout = 300\n",  # seconds; it may run beside other tests
        "utf-8",
    )
    run(tmp_path, nbgrader, "generate_assignment", CHAPTER)
    released = nbformat.read(tmp_path / "release" / CHAPTER / "1_softplus.ipynb", as_version=4)
    assert ("Variant 7 of this exercise." in released.cells[0].source) == (seed == "7")
    assert "raise NotImplementedError" in released.cells[1].source
    assert "log1p" not in str(released)
    for who, text in submissions(seed).items():
        released.cells[1].source = text
        path = tmp_path / "submitted" / who / CHAPTER / "1_softplus.ipynb"
        path.parent.mkdir(parents=True)
        nbformat.write(released, path)
    run(tmp_path, nbgrader, "autograde", CHAPTER)
    run(tmp_path, nbgrader, "export")
    with open(tmp_path / "grades.csv", encoding="utf-8", newline="") as file:
        scores = {row["student_id"]: float(row["score"]) for row in csv.DictReader(file)}
    assert scores == {"right": 1, "wrong": 0}
    graded = (tmp_path / "autograded" / "wrong" / CHAPTER / "1_softplus.ipynb").read_text("utf-8")
    assert "softplus: not yet, sigma is wrong" in graded
