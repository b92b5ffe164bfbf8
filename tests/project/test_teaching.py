"""docs/teaching.md: its hours are those of slides, exercises and pages; what it cites exists."""

import json
import re
import shlex
import subprocess
import sys

import pytest
from project import teaching
from project.book import ROOT

from bbb_course.keys import find, name_of
from bbb_course.templates import SOLUTIONS, solution_paths
from bbb_course.variants import chosen, solution_of
from bbb_course.workload import effort

TEXT = teaching.PAGE.read_text("utf-8")
TABLES = teaching.tables(TEXT)
FOUR_WEEKS, TERM = [table for table in TABLES if teaching.is_plan(table)]
LECTURES = [table for table in TABLES if teaching.is_lecture(table)]
TIMED = [table for table in TABLES if table.header[0] == "at" and not teaching.is_lecture(table)]
HOURS_TOLERANCE = 0.5  # between what the page says and what follows from the parts
MINUTES_TOLERANCE = 3
HOURS = {"four weeks": (FOUR_WEEKS, 2.0), "term": (TERM, 1.5)}  # that there are in class
MAX_HOURS_AT_HOME = 5.0


def column(table, name):
    return [row[table.header.index(name)] for row in table.rows]


def known_sentences():
    """Return everything that the grader says: of each mistake, and in its programs."""
    said = [
        wrong.says
        for path in solution_paths()
        for wrong in getattr(find(name_of(path)), "wrong", ())
    ]
    said += [path.read_text("utf-8") for path in ROOT.glob("bbb_course/*.py")]
    return "\n".join(said)


@pytest.mark.parametrize("plan", HOURS)
def test_the_hours_are_those_of_slides_sections_exercises_and_notebooks(plan):
    table, most = HOURS[plan]
    stated_pairs = zip(column(table, "h in class"), column(table, "h at home"), strict=True)
    for row, stated in zip(table.rows, stated_pairs, strict=True):
        for said, follows in zip(stated, teaching.hours(table.header, row), strict=True):
            assert abs(float(said) - follows) <= HOURS_TOLERANCE, (
                f"{row[0]}: {said} h, but {follows} h follow: python tests/project/teaching.py"
            )
        assert 0.5 <= float(stated[0]) <= most, row[0]
        assert 1.0 <= float(stated[1]) <= MAX_HOURS_AT_HOME, row[0]


def test_there_are_four_weeks_twelve_weeks_and_an_hour_by_the_clock_for_each_of_four():
    assert len(FOUR_WEEKS.rows) == 4
    assert len(TERM.rows) == 12
    assert len(LECTURES) == 4
    assert len(TIMED) == 1 + 4  # the evening, and the hours of practice


def test_every_exercise_chapter_is_in_the_term_and_no_exercise_is_set_twice():
    for table in (FOUR_WEEKS, TERM):
        paths = [
            path
            for name in ("in class", "homework")
            for cell in column(table, name)
            for path in teaching.exercise_paths(cell)
        ]
        assert len(paths) == len(set(paths))
    assert {path.parent for path in paths} == {path.parent for path in solution_paths()}


@pytest.mark.parametrize("table", LECTURES, ids=lambda table: table.above.splitlines()[-1])
def test_a_lecture_s_rows_begin_where_the_minutes_of_its_slides_say(table):
    *starts, end = teaching.starts(table)
    for row, minute in zip(table.rows, starts, strict=True):
        assert abs(teaching.minute_of(row[0]) - minute) <= MINUTES_TOLERANCE, row[1]
    assert end <= 60
    assert all(row[2] for row in table.rows)  # a sentence to say
    assert sum("Ask" in row[3] for row in table.rows) >= 4


@pytest.mark.parametrize("table", TIMED, ids=lambda table: table.above.splitlines()[0])
def test_an_hour_of_practice_leaves_each_row_the_time_that_it_takes(table):
    begins = [teaching.minute_of(row[0]) for row in table.rows]
    assert table.rows[-1][1] == "end"
    assert begins[0] == 0
    assert begins[-1] in (60, 120)
    for row, start, end in zip(table.rows, begins, begins[1:], strict=False):
        needed = teaching.lecture_minutes(row[1]) + teaching.exercise_minutes(row[1])
        assert needed <= end - start, f"{row[0]}: {needed} minutes"


def test_the_files_to_grade_are_the_homework_of_the_week_and_its_points_are_right():
    commands = re.findall(r"\*\*Grade\*\* with `(.*?)`: (\d+) points", TEXT)
    assert len(commands) == 4
    for (globs, points), homework in zip(commands, column(FOUR_WEEKS, "homework"), strict=True):
        graded = {path for glob in globs.split() for path in SOLUTIONS.glob(glob)}
        assert graded == set(teaching.exercise_paths(homework))
        hard = [path for path in graded if effort(name_of(path)).level == "hard"]
        assert int(points) == len(graded) + len(hard)


def test_the_points_add_up_and_the_hard_exercises_and_the_example_of_a_seed_are_as_stated():
    points = [int(number) for number in re.findall(r"\*\*Grade\*\* with `.*?`: (\d+) points", TEXT)]
    assert f"{' + '.join(map(str, points))} = {sum(points)} points" in TEXT
    homework = [
        path for cell in column(FOUR_WEEKS, "homework") for path in teaching.exercise_paths(cell)
    ]
    hard = [
        f"{path.parent.name[:2]}/{path.name[0]}"
        for path in homework
        if effort(name_of(path)).level == "hard"
    ]
    (listed,) = re.findall(
        r"two where `--list` says hard \(of the four weeks (.*?)\)", TEXT, re.DOTALL
    )
    assert re.findall(r"\d\d/\d", listed) == sorted(hard, key=listed.index)
    assert "*autumn* has Laplace's prior and sigma = exp(rho) in 02/5" in TEXT
    asks = " ".join(variation.asks for variation in chosen("value_and_gradient", "autumn"))
    assert "The prior is Laplace's" in asks
    assert "sigma is exp(rho)" in asks


def test_the_practice_is_what_the_plan_sets_in_class():
    for table, planned in zip(TIMED[1:], column(FOUR_WEEKS, "in class"), strict=True):
        done = [path for cell in column(table, "they do") for path in teaching.exercise_paths(cell)]
        assert done == teaching.exercise_paths(planned)


def test_the_mistakes_that_it_quotes_are_sentences_of_the_grader():
    known = known_sentences()
    titles = {title for deck in ("method", "calibration") for title in teaching.slides(deck)}
    quoted = re.findall(r'"([^"]+)"', re.sub(r"```.*?```", "", TEXT, flags=re.DOTALL))
    assert len(quoted) > 20
    assert [each for each in quoted if each not in known and f'"{each}"' not in titles] == []


def test_every_preset_that_it_shows_exists():
    pages = {"index": "lessons.js", "samplers": "samplers.js"}
    presets = re.findall(r"playground/(\w+)\.html#preset=(\w+)", TEXT)
    assert len(presets) > 8
    for page, preset in presets:
        script = (ROOT / "site/playground" / pages[page]).read_text("utf-8")
        assert re.search(rf"^  {preset}: \{{$", script, re.MULTILINE), preset


@pytest.mark.slow
def test_the_command_that_grades_a_class_grades_what_each_student_handed_in(tmp_path):
    (command,) = re.findall(r"^```sh\n(cd handed-in.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
    exercises = teaching.exercise_paths(column(FOUR_WEEKS, "homework")[0])
    handed_in = {"anna maria": exercises, "ben": exercises[:1], "cem": []}
    for student, paths in handed_in.items():
        folder = tmp_path / "handed-in" / student
        folder.mkdir(parents=True)
        for path in paths:
            copy = folder / path.relative_to(SOLUTIONS)
            copy.parent.mkdir(exist_ok=True)
            text = path.read_text("utf-8")
            copy.write_text(solution_of(text, name_of(path), "autumn"), "utf-8")
    program = f'bbb-numpy() {{ {shlex.quote(sys.executable)} -m bbb_numpy "$@"; }}\n'
    subprocess.run(["bash", "-c", program + command], cwd=tmp_path, check=True, timeout=120)
    marks = json.loads((tmp_path / "week1.json").read_text("utf-8"))
    assert marks["passed"] == marks["of"] == sum(map(len, handed_in.values()))
    students = [answer["file"].partition("/")[0] for answer in marks["answers"]]
    assert {name: students.count(name) for name in handed_in} == {
        student: len(paths) for student, paths in handed_in.items()
    }
