"""Docstrings document what a function takes: all of it, and nothing else, says numpydoc."""

import importlib
import inspect

import pytest
from project.signatures import modules

validate = pytest.importorskip("numpydoc.validate").validate
WRONG = {"PR01", "PR02", "PR06"}  # a parameter without a word, one that is not there, no type


def problems(name):
    """Return what is wrong with the section Parameters of a public name, if it has one."""
    found = validate(name)
    documented = "Parameters\n" in found["docstring"]
    return [f"{name}: {said}" for code, said in found["errors"] if documented and code in WRONG]


@pytest.mark.parametrize("module", modules())
def test_what_is_documented_is_what_a_function_takes(module):
    there = vars(importlib.import_module(module))
    public = [
        name
        for name in there.get("__all__", ())
        if (inspect.isfunction(there[name]) or inspect.isclass(there[name]))
        and there[name].__module__ == module
    ]
    assert [said for name in public for said in problems(f"{module}.{name}")] == []


def mistaken(x, y):
    """Add.

    Parameters
    ----------
    x : string
    z : int
    """


def test_a_mistake_in_the_parameters_is_found():
    (missing, unknown, kind) = problems(f"{__name__}.mistaken")
    assert "{'y'} not documented" in missing
    assert "Unknown parameters {'z'}" in unknown
    assert '"str" instead of "string"' in kind
