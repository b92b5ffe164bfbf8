"""Files of earlier versions load, predict what they predicted, and go on as they would have."""

import json

import numpy as np
import pytest
from data.write_files import FILES, FORMATS, expected_outcomes, stored_files

from bbb_numpy.numeric.old_names import CLASSES
from bbb_numpy.registry import classes

pytestmark = [
    pytest.mark.brief,
    pytest.mark.filterwarnings("ignore:StepDecay is deprecated:FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),  # of chains after a few steps
]


@pytest.mark.parametrize("path", stored_files(), ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_file_of_an_earlier_version_gives_what_it_gave_and_goes_on(path):
    _, outcomes = FILES[path.stem]
    expected = expected_outcomes(path.parent)[path.stem]
    found = outcomes(path)
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        # What is trained on another processor differs in the last bits, and these add up
        rtol = 1e-10 if name == "before" else 1e-6
        if "float32" in path.stem or path.stem == "study-mnist":
            rtol = 1e-3
        np.testing.assert_allclose(found[name], values, rtol=rtol, atol=1e-9)


def names_in_file(path):
    """Return the classes and functions that a file of states names, as they are called today."""
    with np.load(path) as file:
        names = names_in_tree(json.loads(file["header"].tobytes())["content"])
        return {CLASSES.get(name, name) for name in names}


def names_in_tree(tree):
    """Yield the names in the content of a header."""
    if isinstance(tree, list):
        for item in tree:
            yield from names_in_tree(item)
    elif isinstance(tree, dict):
        yield from tree
        if isinstance(tree.get("name"), str):
            yield tree["name"]
        yield from names_in_tree(list(tree.values()))


NOT_STORED = {
    **{f.__name__: "a network stores its name" for f in classes("activation")},
    "PACBayes": "no learner takes it",
}


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
def test_every_class_that_a_file_may_hold_is_in_one_of_the_files(form):
    """Whoever adds one adds it to tests/data/write_files.py, and runs that."""
    today = [path for path in stored_files() if path.stem in FILES]
    held = set().union(*map(names_in_file, today))
    assert form.names.keys() - held - NOT_STORED.keys() == set()


def test_what_is_said_to_be_in_no_file_is_in_none():
    held = set().union(*map(names_in_file, stored_files()))
    assert held & NOT_STORED.keys() == set()


@pytest.mark.parametrize("name", ["learner-columns", "run-begun-hmc-groups", "study-mnist"])
def test_the_files_of_today_are_written_as_those_were(name, tmp_path):
    write, outcomes = FILES[name]
    path = tmp_path / "file.npz"
    write(path)
    [stored] = [path for path in stored_files() if path.stem == name][-1:]
    found, expected = outcomes(path), expected_outcomes(stored.parent)[name]
    for key, values in expected.items():
        np.testing.assert_allclose(found[key], values, rtol=1e-6, atol=1e-9)
