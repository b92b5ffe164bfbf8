"""docs/own-loop.md: its programs run, each from the top, and do what the page says."""

import re
from pathlib import Path

import numpy as np

PAGE = (Path(__file__).parents[2] / "docs" / "own-loop.md").read_text(encoding="utf-8")
SECTIONS = {part.split("\n", 1)[0]: part for part in re.split(r"^## ", PAGE, flags=re.M)[1:]}


def run(section):
    """Run the blocks of a section, one after the other, and return their names."""
    names = {"__name__": "own_loop"}
    for block in re.findall(r"```python\n(.*?)```", SECTIONS[section], flags=re.S):
        exec(compile(block, "docs/own-loop.md", "exec"), names)
    return names


def test_ones_own_training_loop_and_the_library_s_learn_the_function():
    names = run("Your own training loop")
    for last in (sum(names["costs"][-4:]), names["training"].history[-1].objective):
        assert last < 0.5 * sum(names["costs"][:4])
    assert names["training"].stopped == "early stopping"
    assert np.abs(names["found"].mean - np.sin(3 * names["x"])).mean() < 0.1


def test_ones_own_sampler_learns_the_function():
    names = run("Your own sampler")
    assert names["draws"].positions.shape == (500, 4, names["joint"].layout.size)
    assert np.abs(names["found"].mean - np.sin(3 * names["x"])).mean() < 0.2


def test_ones_own_density_is_sampled():
    names = run("Your own density")
    np.testing.assert_allclose(names["draws"].flat.mean(axis=0), [0.0, 0.3], atol=0.1)


def test_a_class_of_ones_own_has_its_name(capsys, registry):
    run("A class of your own")
    assert capsys.readouterr().out == "0.035\n"


def test_every_program_is_run():
    assert len(SECTIONS) == 4
    assert PAGE.count("```python") == 5
