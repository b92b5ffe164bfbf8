"""Former names of the public API go on for one release, with a warning."""

from dataclasses import dataclass

import numpy as np
import pytest

from bbb_numpy import GaussianPrior, MeanField
from bbb_numpy.parts import mixture, posteriors


@pytest.mark.parametrize(
    ("module", "old", "new"),
    [(posteriors, "Density", "GaussianPosterior"), (mixture, "SMALLEST", "MIN_SIGMA")],
)
def test_a_module_gives_a_former_name_with_a_warning(module, old, new):
    with pytest.warns(DeprecationWarning, match=f"{old} is now called {new}"):
        assert getattr(module, old) is getattr(module, new)


def test_what_a_module_never_had_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Sparse'"):
        _ = posteriors.Sparse


def test_an_argument_is_accepted_by_its_former_name():
    sd = np.array([0.1, 2.0])
    with pytest.warns(DeprecationWarning, match="argument deviation of pack is now called sd"):
        theta = MeanField().pack(np.zeros(2), deviation=sd)
    assert (theta == MeanField().pack(np.zeros(2), sd)).all()


def test_a_method_can_be_called_by_its_former_name():
    with pytest.warns(DeprecationWarning, match="method deviation is now called sd"):
        assert GaussianPrior(0.5).deviation({}) == 0.5


def test_a_class_with_a_method_of_a_former_name_has_it_by_the_new_one():
    with pytest.warns(DeprecationWarning, match="deviation of Wide is now called sd"):

        @dataclass(frozen=True)
        class Wide(GaussianPrior):
            def deviation(self, params):
                return 10.0 * super().sd(params)

    assert Wide(0.5).sd({}) == 5.0
