"""Old names of what was renamed: they lead to the new ones and say so."""

from dataclasses import dataclass
from importlib import import_module

import numpy as np
import pytest

from bbb_numpy import GaussianPrior, MeanField

RENAMED = [  # module and name of before, module and name of today
    ("gradients.family", "Family", "gradients.estimator", "GradientEstimator"),
    ("gradients.family", "is_linear", "gradients.estimator", "is_linear"),
    ("training.optimizers", "Memory", "training.optimizers", "OptimizerState"),
    ("training.stopping", "minibatches", "training.stopping", "row_slices"),
    ("parts.posteriors", "Density", "parts.posteriors", "GaussianPosterior"),
    ("parts.mixture", "SMALLEST", "parts.mixture", "MIN_SIGMA"),
    ("combinations", "problem", "combinations", "draw_case"),
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


def test_an_argument_is_accepted_by_its_old_name():
    sd = np.array([0.1, 2.0])
    with pytest.warns(DeprecationWarning, match="argument deviation of pack is now called sd"):
        theta = MeanField().pack(np.zeros(2), deviation=sd)
    assert (theta == MeanField().pack(np.zeros(2), sd)).all()


def test_a_method_can_be_called_by_its_old_name():
    with pytest.warns(DeprecationWarning, match="method deviation is now called sd"):
        assert GaussianPrior(0.5).deviation({}) == 0.5


def test_a_class_with_a_method_of_an_old_name_has_it_by_the_new_one():
    with pytest.warns(DeprecationWarning, match="deviation of Wide is now called sd"):

        @dataclass(frozen=True)
        class Wide(GaussianPrior):
            def deviation(self, params):
                return 10.0 * super().sd(params)

    assert Wide(0.5).sd({}) == 5.0


@pytest.mark.parametrize(
    ("module", "cls", "old", "new"),
    [
        ("evaluation.reliability", "Reliability", "stated", "predicted"),
        ("evaluation.certificate", "Certificate", "rows", "n_rows"),
        ("evaluation.convergence", "Line", "bulk", "ess_bulk"),
        ("evaluation.convergence", "Convergence", "chains", "n_chains"),
        ("evaluation.model_checks", "Predicted", "deviation", "sd"),
        ("evaluation.model_checks", "Reweighted", "shares", "weights"),
    ],
)
def test_an_attribute_is_read_by_its_old_name(module, cls, old, new):
    cls = getattr(import_module(f"bbb_numpy.{module}"), cls)
    names = getattr(cls, "_fields", None) or cls.__match_args__
    value = cls(*names)
    with pytest.warns(DeprecationWarning, match=f"{old} of {cls.__name__} is now called {new}"):
        assert getattr(value, old) == new
    with pytest.raises(AttributeError, match="has no attribute 'never_was'"):
        _ = value.never_was
