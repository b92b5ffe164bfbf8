"""Old names of what was renamed: they lead to the new ones and say so."""

from importlib import import_module

import pytest

RENAMED = [  # module and name of before, module and name of today
    ("gradients.family", "Family", "gradients.estimator", "GradientEstimator"),
    ("gradients.family", "is_linear", "gradients.estimator", "is_linear"),
    ("training.optimizers", "Memory", "training.optimizers", "OptimizerState"),
]


@pytest.mark.parametrize(("module", "name", "new_module", "new_name"), RENAMED)
def test_an_old_name_is_the_new_object_and_warns(module, name, new_module, new_name):
    renamed = getattr(import_module(f"bbb_numpy.{new_module}"), new_name)
    with pytest.warns(DeprecationWarning, match=f"{name} is now called {new_name}; import it from"):
        assert getattr(import_module(f"bbb_numpy.{module}"), name) is renamed


@pytest.mark.parametrize("module", sorted({row[0] for row in RENAMED}))
def test_a_name_that_never_was_is_refused(module):
    with pytest.raises(AttributeError, match=r"has no attribute 'never_was'"):
        _ = import_module(f"bbb_numpy.{module}").never_was
