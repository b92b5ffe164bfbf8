"""A test by day takes a second, a folder has its statements and seconds; what is counted."""

import json
from itertools import chain, repeat

import budgets
import pytest
import seconds

pytest_plugins = ["pytester"]

TESTS = """
import gc, subprocess, sys, time
import pytest

def burn(s):
    end = time.process_time() + s
    while time.process_time() < end:
        pass

def test_at_once():
    pass

def test_itself():
    burn(0.08)

@pytest.mark.slow
def test_marked():
    burn(0.08)

def test_that_fails():
    burn(0.08)
    raise AssertionError

def test_its_child():
    subprocess.run([sys.executable, "-S", "-c", "sum(range(9_000_000))"], check=True)

@pytest.fixture(scope="session")
def shared():
    burn(0.08)
    yield
    burn(0.08)

def test_what_is_shared(shared):
    pass

@pytest.fixture
def own():
    burn(0.08)

def test_its_set_up(own):
    pass

@pytest.fixture
def ended():
    yield
    burn(0.08)

def test_its_end(ended):
    pass

def test_a_first_import():
    import takes_long

def collected(phase, info):
    if (phase, info["generation"]) == ("start", 2):
        burn(0.08)

@pytest.fixture(scope="session")
def dear_garbage():
    gc.callbacks.append(collected)
    yield
    gc.callbacks.remove(collected)

def test_garbage(dear_garbage):
    gc.collect()
"""
DEAR = ["test_its_child", "test_its_end", "test_its_set_up", "test_itself", "test_that_fails"]


@pytest.fixture
def run(pytester, monkeypatch):
    """Run the tests above, where a second is a twentieth of one on a machine as it is told."""
    pytester.makeini("[pytest]\nmarkers =\n    slow: not by day")
    pytester.makepyfile(takes_long="from test_times import burn\nburn(0.08)")
    pytester.mkdir("tests").joinpath("parts").mkdir()
    pytester.makepyfile(**{"tests/parts/test_times": TESTS})
    pytester.syspathinsert()
    pytester.syspathinsert("tests/parts")
    options = ["-p", "seconds", "--second", "0.05", "-p", "no:randomly", "-p", "no:xdist"]

    def runs(*others, machine=1.0, later=1.0):
        measured = chain([machine], repeat(later))
        with monkeypatch.context() as patch:  # this test is measured too
            patch.setattr(seconds, "second", lambda: next(measured))
            return pytester.runpytest_inprocess(*options, *others)

    return runs


def failed(result):
    reports = result.reprec.getreports("pytest_runtest_logreport")
    return sorted({report.nodeid.split("::")[1] for report in reports if report.failed})


@pytest.mark.slow  # it burns time itself
def test_a_dear_test_fails_unless_it_is_marked_and_what_it_shares_is_not_charged_to_it(run):
    result = run("--seconds")
    assert failed(result) == DEAR
    result.assert_outcomes(failed=4, passed=6, errors=1)
    result.stdout.fnmatch_lines(["*s of processor time, more than the 0.06 s*or mark it pytest.*"])


@pytest.mark.parametrize("machine", [10.0, 1.0])
def test_a_slow_machine_and_one_that_has_become_slow_refuse_nobody(machine, run):
    assert failed(run("--seconds", "-k", "itself or end", machine=machine, later=10.0)) == []


def test_a_second_is_that_of_the_reference_and_never_shorter(monkeypatch):
    for factor, expected in [(10.0, 10.0), (0.1, 1.0)]:
        with monkeypatch.context() as patch:
            patch.setattr(seconds, "reference", lambda f=factor: f * seconds.REFERENCE_S)
            assert seconds.second() == pytest.approx(expected)
    assert seconds.reference() < 1.0


def test_without_the_option_nobody_is_refused_and_the_dearest_are_listed(run, monkeypatch):
    monkeypatch.setattr(seconds, "LIMIT", 0.05)
    result = run("-k", "itself or marked or at_once")
    assert failed(result) == []
    result.stdout.fnmatch_lines(["*unmarked tests above a second: 1*", "*0.* s  *::test_itself"])
    assert "test_marked" not in str(result.stdout)


@pytest.mark.parametrize(("most", "status"), [(0.05, 1), (30, 0)])
def test_a_folder_above_its_seconds_fails_the_run(most, status, run, monkeypatch, tmp_path):
    monkeypatch.setattr(budgets, "TABLE", tmp_path / "budgets.toml")
    budgets.TABLE.write_text(f'"tests/parts" = {{seconds = {most}}}')
    result = run("--seconds", "--second", "9", "-k", "itself")
    assert failed(result) == []
    assert result.ret == status
    assert ("ABOVE ITS BUDGET" in str(result.stdout)) == status


def test_docstrings_are_free_and_a_statement_inside_of_another_counts(tmp_path):
    path = tmp_path / "module.py"
    path.write_text(
        '"""Text."""\n\ndef f(x):\n    """Text."""\n    if x: return 1\n    x += 1; y = x\n'
    )
    assert budgets.statements(path) == 5


def test_every_folder_has_a_row_and_every_file_one_folder():
    assert budgets.table().keys() == budgets.files().keys()
    assert budgets.folder("bbb_numpy/parts/priors.py") == "bbb_numpy/parts"
    assert budgets.folder("bbb_numpy/plain.py") == "bbb_numpy"
    assert budgets.folder("exactgrad/trace/record.py") == "exactgrad"
    assert budgets.folder("exercises/solutions/x.py") is budgets.folder("") is None
    assert budgets.folder("tests/course/wrong/01_1.py") is None


def test_lint_names_a_folder_above_its_statements_and_one_without_a_row(monkeypatch, tmp_path):
    now = {"site": 12, "tests/parts": 30, "tests/new": 3}
    monkeypatch.setattr(budgets, "TABLE", tmp_path / "budgets.toml")
    budgets.TABLE.write_text(
        '# Head.\n\n"site" = {statements = 12}\n"tests/parts" = {statements = 29, seconds = 7}\n'
        '"tests/old" = {statements = 1, seconds = 1}\n'
    )
    assert budgets.wrong(now) == [
        "tests/new is not in the table",
        "tests/old has no Python, but a row",
        "tests/parts: 30 of 29 statements",
    ]
    monkeypatch.setattr(budgets, "SECONDS", tmp_path / "folders")
    budgets.SECONDS.write_text(json.dumps({"tests/new": 2.1}))
    budgets.write(now)
    assert budgets.wrong(now) == []
    assert budgets.TABLE.read_text() == (
        '# Head.\n\n"site" = {statements = 62}\n"tests/parts" = {statements = 80, seconds = 7}\n'
        '"tests/new" = {statements = 53, seconds = 5}\n'
    )
