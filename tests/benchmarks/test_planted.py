"""How `make planted` chooses tests, plants an error and counts who noticed; none is run here."""

import pytest

from benchmarks import planted

FILE = "pkg.py"


@pytest.fixture
def copy(tmp_path):
    (tmp_path / "bbb_numpy").mkdir()
    (tmp_path / "bbb_numpy" / FILE).write_text("x = 1 + 2\n")
    return tmp_path


def test_the_error_is_in_the_copy_for_as_long_as_it_is_needed(copy):
    path = copy / "bbb_numpy" / FILE
    error = planted.errors.Planted(FILE, "1 + 2", "1 - 2")
    with planted.wrong(copy, error):
        assert path.read_text() == "x = 1 - 2\n"
    assert path.read_text() == "x = 1 + 2\n"


def test_a_place_that_is_not_there_is_an_error_itself(copy):
    error = planted.errors.Planted(FILE, "1 + 3", "1 - 3")
    with pytest.raises(AssertionError, match="0 x '1 \\+ 3'"), planted.wrong(copy, error):
        pass
    assert (copy / "bbb_numpy" / FILE).read_text() == "x = 1 + 2\n"


def test_those_that_failed_are_counted_among_those_with_the_mark_that_ran():
    first, second, third, *_ = sorted(planted.tests_with("W6"))
    ended = {first: True, second: False, "tests/other.py::test_without_the_mark": True}
    assert planted.noticing("W6", ended) == ([first], 2)
    assert planted.noticing("W6", ended | {third: True}) == (sorted([first, third]), 3)


def test_the_mirrored_file_comes_first_then_those_that_the_entry_links():
    tests = planted.in_order(["K10"], "plain.py")
    assert set(tests) == planted.tests_with("K10")
    assert tests[0].startswith("tests/test_plain.py::")
    linked = {test.split("::")[0] for test in tests[1:3]}
    assert linked == {"tests/derivations/test_report_proofs.py", "tests/parts/test_posteriors.py"}
    assert planted.in_order(["K10"], "numeric/elementary.py")[0].startswith("tests/numeric/")
