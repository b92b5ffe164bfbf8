"""Experiments say how far they are: see conftest.py, which watches all bars of this folder."""

import inspect
from importlib import import_module

import pytest

from bbb_studies.cli.reproduce import STUDIES


@pytest.mark.parametrize("study", STUDIES.values(), ids=list(STUDIES))
def test_every_experiment_has_a_bar_and_takes_the_arguments_of_its_full_run(study):
    module = import_module(f"bbb_studies.{study.module}")
    accepted = inspect.signature(module.reproduce)
    assert accepted.parameters["progress"].default is None
    assert hasattr(module, "full") is bool(study.full)
    if study.full:
        given = module.full(3)
        usual = accepted.bind("out", 3)
        usual.apply_defaults()
        longer = accepted.bind("out", **given)
        longer.apply_defaults()
        assert longer.arguments != usual.arguments
        assert given.get("seed", 3) == 3
        assert getattr(given.get("settings"), "seed", 3) == 3
