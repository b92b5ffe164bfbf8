"""Mutants judged in the process that collected the tests: the same fate, without an import."""

import ast
import importlib
import os
import signal
import sys

import pytest

from benchmarks import mutation
from benchmarks.in_place import NOT_IN_PLACE, Answers, functions_of, swap
from benchmarks.mutants import keyed
from benchmarks.oracles import SURVIVED, TESTS

TOY = """
from functools import cached_property, lru_cache

LEAST = 1
AREAS = {"square": lambda side: side * side}


def raised(power):
    def of(number):
        return number**power

    return of


cube = raised(3)


@lru_cache
def doubled(number):
    return 2 * number


def total(numbers, start=0, shift=-3):
    return sum(number + start for number in numbers)


class Circle:
    width = 2

    def __init__(self, radius):
        self.radius = radius

    @property
    def diameter(self):
        return 2 * self.radius

    @cached_property
    def square(self):
        return self.radius**2

    @staticmethod
    def of(area):
        return area + 1


class Ring(Circle):
    def __init__(self, radius):
        super().__init__(radius - 1)
"""


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """A module, and a function that swaps in one of its mutants."""
    monkeypatch.syspath_prepend(tmp_path)
    path = tmp_path / "toy_circles.py"
    path.write_text(TOY)
    module = importlib.import_module("toy_circles")

    def plant(key):
        tree = ast.parse(TOY)
        place = swap(keyed(tree)[key], path, tree, functions_of(str(path)))
        return place and place[1]

    yield module, plant
    del sys.modules["toy_circles"]


@pytest.mark.parametrize(
    ("key", "name", "result", "before", "after"),
    [
        ("doubled: `2 * number` -> `2 / number`", "doubled", "doubled(4)", 8, 0.5),
        ("total: `number + start` -> `number - start`", "total.<locals>.<genexpr>",
         "total([5, 6], 1)", 13, 9),
        ("module: `side * side` -> `side / side`", "<lambda>", "AREAS['square'](3)", 9, 1),
        ("raised.of: `number ** power` -> `number * power`", "raised.<locals>.of", "cube(2)", 8, 6),
        ("raised.of: `number ** power` -> `number * power`", "raised.<locals>.of", "raised(3)(2)",
         8, 6),
        ("Circle.diameter: `2` -> `3`", "Circle.diameter", "Circle(5).diameter", 10, 15),
        ("Circle.square: `2` -> `3`", "Circle.square", "Circle(5).square", 25, 125),
        ("Circle.of: `1` -> `0`", "Circle.of", "Circle.of(7)", 8, 7),
        ("Ring.__init__: `1` -> `0`", "Ring.__init__", "Ring(5).radius", 4, 5),
    ],
)  # fmt: skip
def test_whoever_holds_the_function_gets_the_change(toy, key, name, result, before, after):
    module, plant = toy
    names = dict(vars(module))  # as another module has imported them
    assert eval(result, names) == before
    module.doubled.cache_clear()
    assert plant(key) == name
    assert eval(result, names) == after


@pytest.mark.parametrize(
    "key",
    ["module: `1` -> `0`", "total: `0` -> `1`", "total: `3` -> `4`", "Circle: `2` -> `3`"],
    ids=lambda key: key,
)
def test_what_is_computed_at_import_is_not_judged_here(toy, key):
    module, plant = toy
    assert plant(key) is None
    assert (module.LEAST, module.total([1]), module.Circle.width) == (1, 1, 2)


ALONE = """
import os
import signal
from functools import lru_cache

from bbb_numpy.numeric.layout import Layout

VALUES = iter([1])


@lru_cache
def value():
    return next(VALUES)


def test_that_passes_while_the_value_is_remembered():
    assert Layout((("a", (2,)),)).coordinate(value()) == "a[1]"


def test_that_stops_its_process_once_the_value_is_forgotten():
    try:
        assert Layout((("a", (2,)),)).coordinate(value()) == "a[1]"
    except StopIteration:
        os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_tests_that_call_the_function_and_pass_alone_are_asked(tmp_path):
    (tmp_path / "test_alone.py").write_text(ALONE)
    keys = list(keyed(mutation.tree_of("numeric/layout")[1]))
    size = next(key for key in keys if key.startswith("Layout.coordinate: "))
    tests = ["tests/numeric/test_layout.py", str(tmp_path / "test_alone.py")]
    answers = Answers(tests, mutation.HOMES)
    try:
        assert answers.usable == answers.collected - 2 > 3
        assert answers.ask("numeric/layout", {size: ()}, 10.0) == {size: TESTS}
        assert answers.ask("numeric/layout", {size: ()}, 0.0) == {size: SURVIVED}  # none is asked
        names = answers.killers("numeric/layout", [size], 10.0)[size]
        assert names == [
            name for name in names if name.startswith("tests/numeric/test_layout.py::")
        ]
        assert len(names) > 1
        assert answers.ask("numeric/buffers", {"Buffers.ones: `1` -> `0`": ()}, 10.0) == {
            "Buffers.ones: `1` -> `0`": NOT_IN_PLACE  # no test that was collected calls it
        }
        assert answers.process.pid is not None
        os.kill(answers.process.pid, signal.SIGKILL)
        answers.process.join()
        assert answers.connection.poll(5), "it waits for ever"
        with pytest.raises((EOFError, ConnectionError)):
            answers.ask("numeric/layout", {}, 1.0)
    finally:
        answers.connection.close()
