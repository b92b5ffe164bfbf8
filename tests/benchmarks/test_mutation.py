"""Mutation testing: it finds changes, an oracle kills them, and what none notices is reported."""

import ast
import importlib
import sys
import time

import pytest
from problems import PAIRS, VALID

from benchmarks import mutation
from benchmarks.mutants import keyed, mutants
from benchmarks.mutation import PROOF, STOPPED, SURVIVED, TESTS, fate, never_alone, page
from benchmarks.oracles import proved

TOY = '''"""Squares (1)."""

__all__ = ["add_squares"]


def add_squares(into: list, numbers, start=0):
    """Add the squares of all numbers from start on (1)."""
    for at, number in enumerate(numbers):
        if at >= start and number != 0:
            into[0] += number * number
    return into, len(numbers)
'''


def changes(source):
    return [mutant.change for mutant in mutants(ast.parse(source))]


def test_every_kind_of_change_is_found_and_no_text_is_changed():
    assert changes(TOY) == [
        "`0` -> `1`",
        "`at >= start and number != 0` -> `not (at >= start and number != 0)`",
        "`at >= start and number != 0` -> `at >= start or number != 0`",
        "`at >= start` -> `at > start`",
        "`at >= start` -> `at < start`",
        "`number != 0` -> `number == 0`",
        "`0` -> `1`",
        "`into[0] += number * number` -> `into[0] -= number * number`",
        "removed `into[0] += number * number`",
        "`0` -> `1`",
        "`number * number` -> `number / number`",
        "`return (into, len(numbers))` -> `return (into, None)`",
    ]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("y = -x", ["`-x` -> `x`"]),
        ("y = x.T @ x", ["`x.T` -> `x`"]),
        ("y = f(a, b)", ["`f(a, b)` -> `f(b, a)`"]),
        ("y = np.add(a, b, out=a)", []),
        ("y = g(a, keepdims=True)", ["`g(a, keepdims=True)` -> `g(a)`", "`True` -> `False`"]),
        ("y = 0.5 if flag else x", ["`0.5 if flag else x` -> `0.5 if not flag else x`",
                                    "`0.5` -> `1.5`"]),
        ("raise ValueError(f'{1 + 1}')", []),
        ("x: Literal[1]", []),
        ("y = x.sum(axis=0)", ["`x.sum(axis=0)` -> `x.sum()`",
                               "`x.sum(axis=0)` -> `x.sum(axis=-1)`", "`0` -> `1`"]),
    ],
)  # fmt: skip
def test_one_line_has_these_mutants(line, found):
    assert changes(line) == found


@pytest.fixture
def fate_of(tmp_path, monkeypatch):
    """What becomes of one mutant of the toy, under an oracle that stands for proof and a test."""
    monkeypatch.syspath_prepend(tmp_path)
    path = tmp_path / "toy_squares.py"
    path.write_text(TOY)

    def squares():
        return importlib.import_module("toy_squares").add_squares

    def total_is_right():
        return squares()([0], [1, 2, 3], 1)[0] == [13]

    def count_is_right():
        return squares()([0], [5, 7])[1] == 2

    def of(change):
        tree = ast.parse(TOY)
        mutant = next((one for one in mutants(tree) if one.change == change), None)
        assert mutant or not change
        oracles = [(PROOF, total_is_right), (TESTS, count_is_right)]
        return fate(mutant, "toy_squares", path, tree, oracles, seconds=2)

    return of


# The fork computes and leaves; it waits for no thread of the parent
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("", SURVIVED),
        ("`0` -> `1`", SURVIVED),  # the default of start, which neither oracle uses
        ("removed `into[0] += number * number`", PROOF),
        ("`at >= start` -> `at > start`", PROOF),
        ("`return (into, len(numbers))` -> `return (into, None)`", TESTS),
        ("`number != 0` -> `number == 0`", PROOF),
    ],
)
def test_a_mutant_is_killed_by_the_first_oracle_that_notices(fate_of, change, expected):
    assert fate_of(change) == expected
    assert "toy_squares" not in sys.modules  # only the fork imported it


FIRST = {which.objective: which for which in reversed(PAIRS)}


@pytest.mark.parametrize("which", FIRST.values(), ids=[type(one).__name__ for one in FIRST])
def test_what_no_mutant_has_changed_is_proved_with_every_objective(which):
    assert proved([(VALID.index(which), which)])


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_mutant_without_an_end_is_stopped(tmp_path):
    def forever():
        while True:  # without work, which others could do meanwhile
            time.sleep(1.0)

    oracles = [(TESTS, forever)]
    assert fate(None, "none", tmp_path / "none.py", ast.parse(""), oracles, 1) == STOPPED


def test_the_page_names_the_line_of_a_survivor_and_its_reason():
    key, mutant = next(iter(keyed(mutation.tree_of("numeric/layout")[1]).items()))
    counts = {"run": 3, "proof": 1, "tests": 1, "stopped": 0, "survivors": [key]}
    text = page({"numeric/layout": counts}, {"numeric/layout": {key: "It is the same."}})
    assert f"numeric/layout.py:{mutant.line}, {key}. It is the same." in text
    assert "| numeric/layout |" in text
    assert "not explained yet" in page({"numeric/layout": counts}, {})


def test_every_module_below_the_learners_is_mutated_and_has_tests():
    names = mutation.modules(())
    assert {"plain", "exactgrad/trace/arrays", "parts/priors", "sampling/mcmc/nuts"} <= set(names)
    assert not any(name.startswith("learners") for name in names)
    assert all(mutation.tests_of(name) for name in names)


def test_every_survivor_of_the_last_run_has_a_reason_and_every_reason_a_mutant():
    results, reasons = mutation.read(mutation.RESULTS), mutation.read(mutation.REASONS)
    assert results
    for module, found in results.items():
        assert set(found["survivors"]) <= set(reasons.get(module, {})), module
    for module, why in reasons.items():
        assert set(why) <= set(keyed(mutation.tree_of(module)[1])), module


def test_survivors_that_are_run_again_are_counted_once_and_those_gone_from_the_code_no_more():
    first, second, *_ = keyed(mutation.tree_of("numeric/layout")[1])
    counts = {"run": 9, "proof": 2, "tests": 4, "stopped": 0}
    before = mutation.pruned("numeric/layout", counts | {"survivors": [first, second, "gone"]})
    assert before == counts | {"run": 8, "survivors": [first, second]}
    now = {"run": 1, "proof": 0, "tests": 1, "stopped": 0, "survivors": []}
    after = mutation.merge_reruns(before, now, [second])
    assert after == counts | {"run": 8, "tests": 5, "survivors": [first]}


def test_a_test_is_never_alone_if_every_mutant_that_it_notices_has_another_killer():
    assert never_alone([["a", "b"], ["b"], ["a", "c"], ["d"]]) == ["a", "c"]
