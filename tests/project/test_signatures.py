"""No default changes unsaid: signatures.txt has them all."""

import pytest
from project.signatures import lines, modules, stored

STORED = stored()


@pytest.mark.parametrize("module", modules())
def test_public_names_and_defaults_are_written_down(module):
    assert list(lines(module)) == STORED[module], "run tests/project/signatures.py, say why"


def test_the_list_is_of_use():
    assert sum(map(len, STORED.values())) > 150
    rates = "learning_rate=0.01, beta1=0.9, beta2=0.999, epsilon=1e-08"
    adam = f"Adam({rates}, schedule=Constant(), clip=None)"
    assert f"bbb_numpy.training.optimizers.{adam}" in STORED["bbb_numpy.training.optimizers"]
