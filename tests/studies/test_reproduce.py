"""Every study, shortened: it writes its pictures and its numbers, and returns tables of them.

That its bar ends with its work conftest.py sees, which watches all bars of this folder.
"""

import inspect
from importlib import import_module

import pytest
from shortened import SHORT
from tables import check_picture

from bbb_studies.cli.reproduce import STUDIES

# So few draws may all diverge, which sampling says aloud.
pytestmark = pytest.mark.filterwarnings("ignore:.*divergent transitions:UserWarning")
WIDTHS = {
    "sagar-toy": 100,
    "evidence-bounds": 100,
    "estimator-variance": 120,
    "elbo-minima": 120,
    "few-rows": 140,
}
LARGE = ("evidence-bounds", "estimator-variance", "elbo-minima", "few-rows")


@pytest.fixture(scope="module", params=SHORT)
def study(request, short):
    return request.param, short(request.param)


def test_everything_is_written_and_the_tables_have_no_gap(study):
    name, (text, out, numbers, _) = study
    pictures = list(out.glob("*.png"))
    assert pictures
    assert numbers
    stored = [*out.glob("*.npz"), *out.glob("*.jsonl")]
    assert len(list(out.iterdir())) == len(pictures) + 1 + len(stored)
    assert "nan" not in text or name == "sagar-toy"  # where a weight of the printed shift is
    assert max(map(len, text.splitlines())) <= WIDTHS.get(name, 135)


@pytest.mark.slow
def test_pictures_are_drawn(study, drawn):
    name, short = study
    for path, figure in short.figures.items():
        figure.savefig(path, dpi=100)
        check_picture(path, *((1000, 10) if name in LARGE else (390, 5)))


@pytest.mark.parametrize("study", STUDIES.values(), ids=list(STUDIES))
def test_every_experiment_has_a_bar_and_takes_the_arguments_of_its_full_run(study):
    module = import_module(f"bbb_studies.{study.module}")
    accepted = inspect.signature(module.reproduce)
    defaults = {name: parameter.default for name, parameter in accepted.parameters.items()}
    assert defaults["progress"] is None
    assert hasattr(module, "full") is bool(study.full)
    assert hasattr(module, "quick") is bool(study.quick)
    if study.quick:
        shorter = accepted.bind("out", **module.quick(3)).arguments
        assert shorter.items() - (defaults | {"out": "out", "seed": 3}).items()
        assert shorter.get("seed", 3) == getattr(shorter.get("settings"), "seed", 3) == 3
    if study.full:
        longer = accepted.bind("out", **module.full(3)).arguments
        assert longer.items() - (defaults | {"out": "out", "seed": 3}).items()
        assert longer.get("seed", 3) == getattr(longer.get("settings"), "seed", 3) == 3
