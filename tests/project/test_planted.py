"""The table of planted errors fits the code: every tag, every place, and each a real change.

That a test with the tag's mark notices is what `make planted` measures.
"""

import ast
import re
from pathlib import Path

import pytest
from derivations.planted import NO_CODE, PLANTED, Planted
from project.test_derivations import DEFINED, FAMILIES

ROOT = Path(__file__).resolve().parents[2]


def problems(error: Planted, source: str) -> list[str]:
    """Say why `error` is none of a file with this source."""
    if source.count(error.old) != 1:
        return [f"{error.old!r} stands {source.count(error.old)} times in {error.file}, not once"]
    try:
        wrong = ast.dump(ast.parse(error.planted_in(source)))
    except SyntaxError as syntax:
        return [f"{error.new!r} in {error.file} is not Python: {syntax}"]
    same = wrong == ast.dump(ast.parse(source))
    return [f"{error.new!r} changes nothing in {error.file}"] if same else []


def test_every_equation_has_a_planted_error_or_a_reason_for_none() -> None:
    in_order = sorted(DEFINED, key=lambda tag: (list(FAMILIES).index(tag[0]), int(tag[1:])))
    assert list(PLANTED) == [tag for tag in in_order if tag not in NO_CODE]
    assert set(NO_CODE) <= set(DEFINED)
    assert all(PLANTED.values())
    assert len(NO_CODE) < 10


def test_every_planted_error_has_one_place_and_is_a_change_of_the_code() -> None:
    found = [
        f"{tag}: {what}"
        for tag, errors in PLANTED.items()
        for error in errors
        for what in problems(error, (ROOT / "bbb_numpy" / error.file).read_text("utf-8"))
    ]
    assert not found, "\n" + "\n".join(found)


def test_the_page_names_for_every_error_a_test_that_notices() -> None:
    page = (ROOT / "benchmarks" / "planted.md").read_text("utf-8")
    rows = re.findall(r"^\| (\w+) \| ([\w/.]+):\d+ \| (.*) \| (\d+) of \d+: .*\|$", page, re.M)
    found = [(tag, file, change) for tag, file, change, _ in rows]
    wanted = [(tag, error.file, error.shown) for tag, errors in PLANTED.items() for error in errors]
    assert found == wanted, "run `python benchmarks/planted.py --only TAG` for what has changed"
    assert not [tag for tag, _, _, noticed in rows if noticed == "0"]


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("c", "d", "stands 2 times"),
        ("nowhere", "d", "stands 0 times"),
        ("a + b", "a +", "is not Python"),
        ("a + b", "(a + b)", "changes nothing"),
    ],
)
def test_an_error_that_is_none_is_found(old: str, new: str, complaint: str) -> None:
    source = "x = a + b  # c\nc = x\n"
    assert complaint in "".join(problems(Planted("some.py", old, new), source))
    assert not problems(Planted("some.py", "a + b", "a - b"), source)
