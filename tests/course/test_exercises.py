"""The files of the exercises: all solutions pass, all templates fail, none has drifted."""

import ast
import re
import runpy
from pathlib import Path

import pytest

from bbb_course import cards, judge
from bbb_course.keys import chapters, exercises, find, name_of
from bbb_course.sandbox import grade_file
from tests.project.book import ENTRIES

EXERCISES = Path(__file__).resolve().parents[2] / "exercises"
SOLUTIONS = sorted((EXERCISES / "solutions").rglob("*.py"))
TEMPLATES = [EXERCISES / path.relative_to(EXERCISES / "solutions") for path in SOLUTIONS]


def test_every_exercise_has_its_files_in_the_order_of_the_book():
    listed = [
        f"{chapter}/{number}_{one.name}.py"
        for chapter, some in chapters().items()
        for number, one in enumerate(some, 1)
    ]
    assert sorted(listed) == [
        path.relative_to(EXERCISES / "solutions").as_posix() for path in SOLUTIONS
    ]
    assert sorted(TEMPLATES) == sorted(EXERCISES.glob("[0-9]*/*.py"))


def test_all_solutions_pass():
    verdicts = [grade_file(path) for path in SOLUTIONS]
    assert [str(one) for one in verdicts if not one.passed] == []
    assert [one.exercise for one in verdicts] == [name_of(path) for path in SOLUTIONS]
    assert sum(one.verdict == "proved" for one in verdicts) > 45


def test_all_templates_fail_because_they_are_not_answered():
    verdicts = [grade_file(path) for path in TEMPLATES]
    assert {(one.passed, one.verdict) for one in verdicts} == {(False, "not answered")}


def test_the_templates_are_the_solutions_with_holes():
    made = runpy.run_path(str(EXERCISES / "make_templates.py"))
    assert {path: path.read_text("utf-8") for path in TEMPLATES} == made["templates"]()
    with pytest.raises(ValueError, match="one marked part; this has 0"):
        made["template"]("def f():\n    return 1\n")
    text = "def f():\n    ### BEGIN SOLUTION\n    return 1\n    ### END SOLUTION\n"
    assert made["template"](text).endswith("    # YOUR CODE HERE\n    raise NotImplementedError\n")


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.stem)
def test_every_statement_has_shapes_and_says_where_to_read(path):
    tree = ast.parse(path.read_text("utf-8"))
    statement = ast.get_docstring(tree)
    exercise = find(name_of(path))
    if exercise.name != "which_detector_sees_it":
        assert "Shapes:" in statement
        function = next(node for node in tree.body if isinstance(node, ast.FunctionDef))
        assert function.name == exercise.name
        if hasattr(exercise, "arguments"):
            assert [one.arg for one in function.args.args] == list(exercise.arguments)
            for argument in exercise.arguments:
                assert re.search(rf"\b{argument}\b", statement), argument
    read = " ".join(statement[statement.index("Read: ") + 6 :].removesuffix(".").split())
    named = []
    for part in read.split("; "):
        tags, page = part.split(" in ")
        entries = {entry.tag for entry in ENTRIES if entry.page == page}
        for first, last in re.findall(r"(\w\d+)(?: to (\w\d+))?", tags):
            range_of = range(int(first[1:]), int((last or first)[1:]) + 1)
            here = [f"{first[0]}{number}" for number in range_of]
            assert set(here) <= entries, page
            named += here
    assert sorted(named) == sorted(exercise.tags)


def test_the_page_and_the_solution_of_the_cards_are_those_of_the_key(monkeypatch):
    monkeypatch.syspath_prepend(str(EXERCISES))
    made = runpy.run_path(str(EXERCISES / "measure_cards.py"))
    assert made["PAGE"].read_text("utf-8") == made["page"](cards.key())
    solution = runpy.run_path(str(made["SOLUTION"]))["which_detector_sees_it"]
    assert solution == {
        bug: {one for one, (seen, _) in row.items() if seen} for bug, row in cards.key().items()
    }


def test_the_readme_shows_what_the_grader_says():
    exercise = find("value_and_gradient")
    twice = [one for one in exercise.wrong if "score is counted twice" in one.says][:2]
    shown = re.search(r"```text\n(.*?)\n```", (EXERCISES / "README.md").read_text("utf-8"), re.S)[1]
    assert str(judge("value_and_gradient", exercise.edited(*twice))) == shown


def test_the_texts_count_right():
    known = sum(len(getattr(one, "wrong", ())) for one in exercises().values())
    assert len(SOLUTIONS) == 68
    assert 400 < known < 500
    root = EXERCISES.parent
    assert "68 exercises in the order of the book" in (root / "README.md").read_text("utf-8")
    assert "68 exercises in twelve chapters" in (root / "CHANGELOG.md").read_text("utf-8")
    table = (EXERCISES / "README.md").read_text("utf-8")
    assert re.findall(r"^\| \[.*\]\((\w+)\) \|", table, re.MULTILINE) == list(chapters())
