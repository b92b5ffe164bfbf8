"""Wrong answers that a good student might write: each is failed, with something that helps.

`wrong/CHAPTER_NUMBER.py` has those of one exercise. Each `# --- what is wrong` begins an answer;
what stands above the first belongs to all. `# --- right: why` begins one that looks wrong, and
passes.
"""

import re
from pathlib import Path

import pytest

from bbb_course import judge
from bbb_course.keys import chapters

FOLDER = Path(__file__).with_name("wrong")
FILES = {path.stem: path for path in sorted(FOLDER.glob("*.py"))}
NUMBERED = {
    f"{chapter[:2]}_{number}": exercise.name
    for chapter, some in chapters().items()
    for number, exercise in enumerate(some, 1)
}
TITLE = re.compile(r"^# --- (.+)\n", re.MULTILINE)
RIGHT = "right: "
QUICK = ("01_5",)  # judged by day


def sections(path):
    """Return {what is wrong: code}, with every line where it is in the file."""
    text = path.read_text("utf-8")
    titles = list(TITLE.finditer(text))
    ends = [*(title.start() for title in titles[1:]), len(text)]
    shared = text[: titles[0].start()]
    codes = {}
    for title, end in zip(titles, ends, strict=True):
        blank = "\n" * text.count("\n", len(shared), title.end())
        codes[title[1]] = shared + blank + text[title.end() : end]
    assert len(codes) == len(titles), f"{path}: two answers have the same title"
    return codes


def verdicts(number):
    """Return {what is wrong: verdict} of the answers in a file."""
    name, told = NUMBERED[number], {}
    for title, code in sections(FILES[number]).items():
        scope = {"__name__": name}
        exec(compile(code, FILES[number], "exec"), scope)
        told[title] = judge(name, scope[name])
    return told


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    "number",
    [pytest.param(one, marks=() if one in QUICK else pytest.mark.slow) for one in FILES],
)
def test_wrong_answers_are_failed_with_something_that_helps(number):
    unlike = []
    for title, verdict in verdicts(number).items():
        helps = verdict.findings or verdict.cases or verdict.verdict == "unusable"
        if verdict.passed != title.startswith(RIGHT) or not (verdict.passed or helps):
            unlike.append(f"{title}\n{verdict}")
    assert not unlike, "\n".join(unlike)


def test_every_exercise_has_three_wrong_answers():
    assert set(FILES) == set(NUMBERED)
    for number, path in FILES.items():
        wrong = [title for title in sections(path) if not title.startswith(RIGHT)]
        assert len(wrong) >= 3, number
