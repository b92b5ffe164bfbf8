"""``bbb-numpy grade``, typed rightly and wrongly, and what it writes for students and graders."""

import json
import re
import shlex
import sys
from pathlib import Path

import nbformat
import pytest

from bbb_course import effort, sandbox
from bbb_course.exercise import VERDICTS, Formula
from bbb_course.gradebook import SCHEMA
from bbb_course.keys import chapters, exercises
from bbb_course.sandbox import grade_file
from bbb_course.templates import SOLUTIONS
from bbb_course.variants import n_variants
from bbb_numpy.cli.main import main

PAGE = (Path(__file__).resolve().parents[2] / "docs/grading.md").read_text("utf-8")
RIGHT = "import numpy as np\ndef softplus(rho):\n    return np.log1p(np.exp(rho))\n"
WRONG = "import numpy as np\ndef softplus(rho):\n    return np.exp(rho)\n"
CHAPTER = "02_free_energy"


def defined_by(text, **scope):
    """Return what a program defines, or raise what it raises."""
    exec(text, scope)
    return scope


@pytest.fixture
def answers(tmp_path):
    for name, text in {
        "1_softplus.py": RIGHT,
        "other/1_softplus.py": WRONG,
        "notes.py": "1 / 0",
        "solutions/2_nothing.py": "",
        "empty/notes.py": "",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_a_right_answer_passes_and_a_wrong_one_is_told_why(answers, capsys):
    assert main(["grade", str(answers)]) == 1
    out = capsys.readouterr().out
    assert "softplus: PASSED, proved" in out
    assert "1 of 2 pass" in out
    assert "softplus: not yet, sigma is wrong" in out
    assert "exp is taken for softplus" in out


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such a name")
def test_a_folder_whose_name_cannot_be_shown_does_not_stop_the_others(
    tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(sandbox, "grade_files", lambda paths, *options: map(grade_file, paths))
    for folder in ("\udcff", "zoe"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "1_softplus.py").write_text("")
    assert main(["grade", str(tmp_path)]) == 1
    assert capsys.readouterr().out.count("it does not define softplus") == 2


def test_a_stray_file_is_named_and_does_not_stop_the_others(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sandbox, "grade_files", lambda paths, *options: map(grade_file, paths))
    for name in ("1_softplus.py", "3_notes.py"):
        (tmp_path / name).write_text("")
    assert main(["grade", "--json", str(tmp_path)]) == 1
    printed = capsys.readouterr()
    assert json.loads(printed.out)["of"] == 1
    assert "3_notes.py: no exercise is called 'notes'" in printed.err


def test_verdicts_for_programs_are_json(answers, capsys, monkeypatch):
    in_this_process = lambda paths, *options: map(grade_file, paths)  # noqa: E731
    monkeypatch.setattr(sandbox, "grade_files", in_this_process)
    assert main(["grade", "--json", str(answers / "1_softplus.py")]) == 0
    assert json.loads(capsys.readouterr().out)["passed"] == 1
    assert main(["grade", "--json", str(answers)]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["passed"], found["of"]) == (1, 2)
    right, wrong = found["answers"]
    assert right["verdict"] == "proved"
    assert wrong["file"].endswith("other/1_softplus.py")
    assert wrong["findings"][0]["block"] == "sigma"
    assert set(right) == set(wrong) == {
        "file", "exercise", "passed", "verdict", "headline", "findings", "cases", "score",
        "printed", "variant", "seconds", "chapter", "points", "max_points", "minutes", "message",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("typed", "complaint"),
    [
        ([], "name a file or a folder of answers"),
        (["nothing_here.py"], "there is no file or folder nothing_here.py"),
        (["{}/empty"], "none of its files is numbered"),
        (["{}/notes.py"], "notes.py: no exercise is called 'notes'"),
        (["{}/solutions"], "no exercise is called 'nothing'"),
        (["{}", "--export", "nbgrader"], "has no solution between its marks"),
        (["--copy", "{}", "13"], "no chapter or exercise is called '13'"),
        (["--copy", "{}", "02/1", "02/17"], "no chapter or exercise is called '02/17'"),
        (["--copy", "{}/notes.py"], "notes.py/01_a_distribution_over_weights: "),
    ],
)
def test_wrong_use_is_one_line_and_status_two(typed, complaint, answers, capsys):
    assert main(["grade", *(text.format(answers) for text in typed)]) == 2
    err = capsys.readouterr().err
    assert complaint in err
    assert err.startswith("bbb-numpy grade: ")
    assert err.count("\n") == 1


def test_help_says_that_answers_are_run(capsys):
    with pytest.raises(SystemExit):
        main(["grade", "--help"])
    out = " ".join(capsys.readouterr().out.split())
    assert "An answer is code, and grading runs it" in out
    assert "no jail" in out


def test_templates_are_copied_and_no_file_is_overwritten(tmp_path, capsys):
    own = tmp_path / "my answers" / CHAPTER / "1_softplus.py"
    own.parent.mkdir(parents=True)
    own.write_text(RIGHT)
    assert main(["grade", "--copy", str(tmp_path / "my answers"), "02"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{own.parent}: templates written: 5; existing files kept: 1",
        f"Fill in the hole of each, then: bbb-numpy grade '{own.parent}'",
    ]
    assert own.read_text() == RIGHT
    assert len(list(tmp_path.rglob("*.py"))) == 6
    assert main(["grade", "--copy", str(tmp_path), CHAPTER, "03"]) == 0
    first, second, then = capsys.readouterr().out.splitlines()
    assert first == f"{tmp_path / CHAPTER}: templates written: 6"
    assert second == f"{tmp_path / '03_training'}: templates written: 5"
    assert shlex.split(then)[-1] == str(tmp_path)


def test_homework_is_copied_by_exercises_of_several_chapters(tmp_path, capsys):
    names = ["11/1", "02/5", f"{CHAPTER}/6_backward_pass", "03/1", "02/5", "10/6"]
    assert main(["grade", "--copy", str(tmp_path), "--variant", "7", *names]) == 0
    assert "no variant: check_a_sampler" in capsys.readouterr().out
    assert [str(path.relative_to(tmp_path)) for path in sorted(tmp_path.rglob("*.py"))] == [
        f"{CHAPTER}/5_value_and_gradient.py", f"{CHAPTER}/6_backward_pass.py",
        "03_training/1_step_of_descent.py", "11_model_checking/1_crps_of_draws.py",
    ]  # fmt: skip


def test_an_export_for_otter_is_a_test_file_that_fails_with_the_diagnosis(tmp_path, capsys):
    assert main(["grade", "--export", "otter", "--out", str(tmp_path)]) == 0
    text = (tmp_path / "tests" / "softplus.py").read_text()
    assert capsys.readouterr().out.count("wrote") == len(exercises())
    # as Otter does: the decorator keeps the function, which gets the notebook's names as `env`
    without = text.replace("from otter.test_files import test_case\n", "")
    scope = defined_by(without, test_case=lambda **options: lambda function: function)
    assert scope["OK_FORMAT"] is False
    scope["test_softplus"](defined_by(RIGHT))
    with pytest.raises(AssertionError, match="exp is taken for softplus"):
        scope["test_softplus"](defined_by(WRONG))
    with pytest.raises(AssertionError, match="softplus is not defined"):
        scope["test_softplus"]({})


def test_an_export_for_nbgrader_is_a_source_notebook_whose_solution_passes(tmp_path):
    typed = ["grade", str(SOLUTIONS / CHAPTER), "--export", "nbgrader", "--out", str(tmp_path)]
    assert main(typed) == 0
    names = set()
    for path in (tmp_path / "source" / CHAPTER).glob("*.ipynb"):
        notebook = nbformat.read(path, as_version=4)
        nbformat.validate(notebook)
        statement, answer, tests = notebook.cells
        assert "Shapes:" in statement.source
        assert statement.metadata == {}
        assert "### BEGIN SOLUTION" in answer.source
        of_answer, of_tests = answer.metadata.nbgrader, tests.metadata.nbgrader
        names |= {of_answer.pop("grade_id"), of_tests.pop("grade_id")}
        every = {"schema_version": 3, "task": False}
        assert of_answer == {"grade": False, "solution": True, "locked": False, **every}
        assert of_tests == {"grade": True, "solution": False, "locked": True, "points": 1, **every}
        defined_by(f"{answer.source}\n{tests.source}")
    assert len(names) == 12


@pytest.fixture
def graded(tmp_path, monkeypatch, capsys):
    """Grade two students, one of them wrong, into graded.json, and return what it holds."""
    monkeypatch.setattr(sandbox, "grade_files", lambda paths, *options: map(grade_file, paths))
    monkeypatch.chdir(tmp_path)
    for student, text in {"ada": RIGHT, "ben": WRONG}.items():
        path = tmp_path / "handed-in" / student / CHAPTER / "1_softplus.py"
        path.parent.mkdir(parents=True)
        path.write_text(text)
    assert main(["grade", "--json", "handed-in"]) == 1
    text = capsys.readouterr().out
    (tmp_path / "graded.json").write_text(text)
    return json.loads(text)


def test_the_page_for_teachers_names_the_fields_that_there_are_and_their_types(graded):
    types = {
        "string": str, "strings": str, "boolean": bool, "integer": int, "integers": int,
        "number": (int, float), "numbers": (int, float), "list": list, "object": dict,
    }  # fmt: skip
    whole, each = [
        {
            name: types[row.split("|")[2].strip()]
            for row in table.strip().splitlines()[2:]
            for name in re.findall(r"`(\w+)`", row.split("|")[1])
        }
        for table in re.findall(r"(?:^\|.*\n)+", PAGE, re.MULTILINE)
        if table.startswith("| field |")
    ]
    for record, fields in [(graded, whole), *((answer, each) for answer in graded["answers"])]:
        assert set(record) == set(fields)
        assert all(isinstance(record[name], kind) for name, kind in fields.items())
    (verdicts,) = re.findall(r"^\| `verdict` \| string \| (.*) \|$", PAGE, re.MULTILINE)
    assert tuple(re.findall(r"`([\w ]+)`", verdicts)) == VERDICTS
    assert f"| `schema` | integer | {SCHEMA};" in PAGE
    right, wrong = graded["answers"]
    assert (right["points"], right["max_points"], wrong["points"]) == (1, 1, 0)
    assert (right["chapter"], right["minutes"]) == (CHAPTER, effort("softplus").minutes)
    assert wrong["findings"][0]["says"].split()[0] in wrong["message"]


def test_the_gradebook_of_the_page_has_a_row_for_each_student(graded, tmp_path):
    pytest.importorskip("pandas")
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(code, {})
    rows = (tmp_path / "gradebook.csv").read_text().splitlines()
    assert rows == ["student,softplus,total", "ada,1.0,1.0", "ben,0.0,0.0"]


def test_the_page_for_teachers_says_which_exercises_have_no_variant_and_how_many_there_are():
    numbers = sorted(n_variants(name) for name in exercises() if n_variants(name))
    assert f"between {numbers[0]} and {numbers[-1]}." in PAGE
    (sentence,) = re.findall(r"These have none, .*?;.*?\.", PAGE, re.DOTALL)
    assert sorted(set(re.findall(r"\d\d/\d", sentence)) - {"02/1"}) == [
        f"{chapter[:2]}/{number}"
        for chapter, of_chapter in chapters().items()
        for number, one in enumerate(of_chapter, 1)
        if not n_variants(one.name)
    ]
    assert not any(
        n_variants(name) for name, one in exercises().items() if not isinstance(one, Formula)
    )
