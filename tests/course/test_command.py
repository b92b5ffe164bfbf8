"""``bbb-numpy grade``, typed rightly and wrongly, and what it writes for other graders."""

import json
from pathlib import Path

import nbformat
import pytest

from bbb_course.keys import exercises
from bbb_numpy.cli.main import main

EXERCISES = Path(__file__).resolve().parents[2] / "exercises"
RIGHT = "import numpy as np\ndef softplus(rho):\n    return np.log1p(np.exp(rho))\n"
WRONG = "import numpy as np\ndef softplus(rho):\n    return np.exp(rho)\n"


@pytest.fixture
def answers(tmp_path):
    (tmp_path / "1_softplus.py").write_text(RIGHT)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "1_softplus.py").write_text(WRONG)
    (tmp_path / "notes.py").write_text("1 / 0")
    (tmp_path / "solutions" / "empty").mkdir(parents=True)
    (tmp_path / "solutions" / "2_nothing.py").write_text("")
    return tmp_path


def test_a_right_answer_passes_and_a_wrong_one_is_told_why(answers, capsys):
    assert main(["grade", str(answers / "1_softplus.py")]) == 0
    assert "softplus: PASSED, proved" in capsys.readouterr().out
    assert main(["grade", str(answers)]) == 1
    out = capsys.readouterr().out
    assert "1 of 2 pass" in out
    assert "softplus: not yet, sigma is wrong" in out
    assert "this is exp(rho)" in out


def test_verdicts_for_programs_are_json(answers, capsys):
    assert main(["grade", "--json", str(answers)]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["passed"], found["of"]) == (1, 2)
    right, wrong = found["answers"]
    assert right["verdict"] == "proved"
    assert wrong["file"].endswith("other/1_softplus.py")
    assert wrong["findings"][0]["block"] == "sigma"
    assert set(right) == set(wrong) == {
        "file", "exercise", "passed", "verdict", "headline", "findings", "cases", "score",
    }  # fmt: skip


def test_the_list_has_every_exercise_and_where_it_stands(capsys):
    assert main(["grade", "--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(exercises())
    for line in lines:
        path, *tags = line.split()
        assert (EXERCISES / f"{path}.py").exists()
        assert tags


@pytest.mark.parametrize(
    ("typed", "complaint"),
    [
        ([], "name a file or a folder of answers"),
        (["nothing_here.py"], "there is no file or folder nothing_here.py"),
        (["{}/solutions/empty"], "none of its files is numbered"),
        (["{}/notes.py"], "no exercise is called 'notes'"),
        (["{}/solutions"], "no exercise is called 'nothing'"),
        (["{}", "--export", "nbgrader"], "has no solution between its marks"),
    ],
)
def test_wrong_use_is_one_line_and_status_two(typed, complaint, answers, capsys):
    assert main(["grade", *(text.format(answers) for text in typed)]) == 2
    err = capsys.readouterr().err
    assert complaint in err
    assert err.startswith("bbb-numpy grade: ")
    assert err.count("\n") == 1
    assert not Path("x").exists()


def test_help_says_that_answers_are_run(capsys):
    with pytest.raises(SystemExit):
        main(["grade", "--help"])
    out = " ".join(capsys.readouterr().out.split())
    assert "An answer is code, and grading runs it" in out
    assert "no jail" in out


def test_an_export_for_otter_is_a_test_file_that_fails_with_the_diagnosis(tmp_path, capsys):
    source = str(EXERCISES / "02_free_energy" / "1_softplus.py")
    assert main(["grade", source, "--export", "otter", "--out", str(tmp_path)]) == 0
    text = (tmp_path / "tests" / "softplus.py").read_text()
    assert "wrote" in capsys.readouterr().out
    # as Otter does: the decorator keeps the function, which gets the notebook's names as `env`
    without = text.replace("from otter.test_files import test_case\n", "")
    scope = {"test_case": lambda **options: lambda function: function}
    exec(without, scope)
    assert scope["OK_FORMAT"] is False
    answer, other = {}, {}
    exec(RIGHT, answer)
    exec(WRONG, other)
    scope["test_softplus"](answer)
    with pytest.raises(AssertionError, match=r"this is exp\(rho\)"):
        scope["test_softplus"](other)
    with pytest.raises(AssertionError, match="softplus is not defined"):
        scope["test_softplus"]({})


def test_an_export_for_nbgrader_is_a_source_notebook_whose_solution_passes(tmp_path):
    folder = EXERCISES / "solutions" / "02_free_energy"
    assert main(["grade", str(folder), "--export", "nbgrader", "--out", str(tmp_path)]) == 0
    paths = sorted((tmp_path / "source" / "02_free_energy").glob("*.ipynb"))
    assert len(paths) == 6
    names = set()
    for path in paths:
        notebook = nbformat.read(path, as_version=4)
        nbformat.validate(notebook)
        statement, answer, tests = notebook.cells
        assert "Shapes:" in statement.source
        assert statement.metadata == {}
        assert "### BEGIN SOLUTION" in answer.source
        marks = answer.metadata.nbgrader, tests.metadata.nbgrader
        assert [(m.solution, m.grade, m.locked) for m in marks] == [
            (True, False, False),
            (False, True, True),
        ]
        assert {m.schema_version for m in marks} == {3}
        assert marks[1].points == 1
        names |= {m.grade_id for m in marks}
        scope = {}
        exec(answer.source, scope)
        exec(tests.source, scope)
    assert len(names) == 12
