"""The files of the exercises: all solutions pass, all templates fail, and the texts are right."""

import ast
import re
import runpy
from pathlib import Path

import numpy as np
import pytest

from bbb_course import cards, effort, judge
from bbb_course.keys import CHAPTERS, exercises, find, name_of
from bbb_course.sandbox import grade_file
from bbb_course.templates import BEGIN, END, SOLUTIONS, copy_templates, solution_paths, template
from bbb_numpy.cli.main import main
from exactgrad import prove_same
from tests.project.book import ENTRIES

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "exercises/README.md").read_text("utf-8")
SOLUTION_OF = {name_of(path): path for path in solution_paths()}
WHOLE = {"geometric_shares", "occams_razor"}  # of whole numbers: nothing moves


def test_the_step_that_the_page_names_has_no_exact_form():
    function = getattr(np, re.search(r"no exact form, `np\.(\w+)` for instance", README)[1])
    x = np.array([0.3, 0.7])
    verdict = prove_same(lambda x: function(x).sum(), lambda x: function(x).sum(), x)
    assert str(verdict).startswith("not traceable")


def test_every_exercise_has_its_file_in_the_order_of_the_book(capsys):
    assert main(["grade", "--list"]) == 0
    listed = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert listed == [
        [
            path.relative_to(SOLUTIONS).with_suffix("").as_posix(),
            f"{effort(name).minutes}",
            "min",
            effort(name).level,
            *find(name).tags,
        ]
        for name, path in SOLUTION_OF.items()
    ]
    assert set(SOLUTION_OF.values()) == set(SOLUTIONS.rglob("*.py"))


def test_times_and_difficulties_follow_the_rule_of_the_page():
    rule = " ".join(README[README.index("## Time and difficulty") :].split())
    word, operation, result, derivative, mistake, scored = map(float, re.search(
        r"([\d.]+) for each word .* ([\d.]+) for each operation .* ([\d.]+) for each result, "
        r"([\d.]+) more .* ([\d.]+) for each known mistake, and ([\d.]+) for a scored", rule,
    ).groups())  # fmt: skip
    easy, medium = map(float, re.search(r"below ([\d.]+) is easy, below ([\d.]+) m", rule).groups())
    for name, path in SOLUTION_OF.items():
        exercise, found = find(name), effort(name)
        is_scored = not hasattr(exercise, "returns")
        minutes = (
            word * len(ast.get_docstring(ast.parse(path.read_text("utf-8"))).split())
            + operation * found.operations + result * len(getattr(exercise, "returns", ()))
            + derivative * found.derivatives + mistake * len(getattr(exercise, "wrong", ()))
            + scored * is_scored
        )  # fmt: skip
        assert abs(found.minutes - max(minutes, 5)) <= 2.5
        points = found.derivatives + found.operations / 10 + 3 * is_scored
        level = "easy" if points < easy else "medium" if points < medium else "hard"
        assert found.level == level, name
    # counted by hand
    assert effort("softplus").operations == 2
    assert effort("step_of_descent").operations == 4
    assert effort("which_detector_sees_it").operations == 49  # detectors named
    assert effort("value_and_gradient")[5:] == (2, 30)


@pytest.mark.parametrize("name", SOLUTION_OF)
def test_a_solution_is_proved_and_its_slopes_are_derivatives_of_its_value(name):
    verdict = grade_file(SOLUTION_OF[name])
    assert verdict.passed, verdict
    assert verdict.exercise == name
    formula = hasattr(find(name), "slopes")
    assert verdict.verdict == ("right" if name in WHOLE else "proved" if formula else "scored")
    assert ("derivatives" in verdict.headline) == bool(formula and find(name).slopes)


def test_templates_are_the_solutions_with_holes_which_are_not_answered(tmp_path):
    written = copy_templates(tmp_path)
    assert list(written) == [
        tmp_path / path.relative_to(SOLUTIONS) for path in SOLUTION_OF.values()
    ]
    assert {grade_file(path).verdict for path in written} == {"not answered"}
    for solution, copy in zip(SOLUTION_OF.values(), written, strict=True):
        before, _, rest = solution.read_text("utf-8").partition(f"{BEGIN}\n")
        hole = "# YOUR CODE HERE\n" + re.search(" *$", before)[0] + "raise NotImplementedError\n"
        assert copy.read_text("utf-8") == before + hole + rest.partition(f"{END}\n")[2]
    with pytest.raises(ValueError, match="one marked part; this has 0"):
        template("def f():\n    return 1\n")


@pytest.mark.parametrize("name", SOLUTION_OF)
def test_every_statement_has_shapes_and_says_where_to_read(name):
    exercise, tree = find(name), ast.parse(SOLUTION_OF[name].read_text("utf-8"))
    statement = ast.get_docstring(tree)
    functions = {node.name: node.args for node in tree.body if isinstance(node, ast.FunctionDef)}
    if name != "which_detector_sees_it":
        assert "Shapes:" in statement
        arguments = [one.arg for one in functions[name].args]
        assert arguments == list(getattr(exercise, "arguments", arguments))
        said = re.findall(r"\w+", statement)
        assert not set(getattr(exercise, "arguments", ())) - set(said)
    read = " ".join(statement[statement.index("Read: ") + 6 :].removesuffix(".").split())
    named = []
    for part in read.split("; "):
        tags, page = part.split(" in ")
        entries = {entry.tag for entry in ENTRIES if entry.page == page}
        for first, last in re.findall(r"(\w\d+)(?: to (\w\d+))?", tags):
            numbers = range(int(first[1:]), int((last or first)[1:]) + 1)
            named += [f"{first[0]}{number}" for number in numbers]
            assert set(named[-len(numbers) :]) <= entries, page
    assert sorted(named) == sorted(exercise.tags)


def test_the_page_and_the_solution_of_the_cards_are_those_of_the_key():
    made = runpy.run_path(str(ROOT / "exercises/measure_cards.py"))
    assert made["PAGE"].read_text("utf-8") == made["page"](cards.key())
    assert made["SOLUTION"] == SOLUTION_OF["which_detector_sees_it"]
    assert grade_file(made["SOLUTION"]).headline.startswith("96 of 96 cells")


def test_the_readme_shows_what_the_grader_says():
    exercise = find("value_and_gradient")
    twice = [one for one in exercise.wrong if "score is counted twice" in one.says][:2]
    shown = re.search(r"```text\n(.*?)\n```", README, re.S)[1]
    assert str(judge("value_and_gradient", exercise.edited(*twice))) == shown


def test_the_texts_count_right():
    assert len(exercises()) == len(SOLUTION_OF) == 74
    assert 500 < sum(len(getattr(one, "wrong", ())) for one in exercises().values()) < 600
    assert "74 exercises in the order of the book" in (ROOT / "README.md").read_text("utf-8")
    assert "74 exercises in twelve chapters" in (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert re.findall(r"bbb_course/solutions/(\d\w+)\) \|", README) == list(CHAPTERS)
