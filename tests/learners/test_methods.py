"""methods: each value of `inference` is a method that fits a posterior, and goes on from it."""

import numpy as np
import pytest

from bbb_numpy import FullRank, MeanField, PointMass, Sampling
from bbb_numpy.learners.defaults import DEFAULTS
from bbb_numpy.learners.inference import inferences, method_for
from bbb_numpy.learners.methods import (
    LaplaceApproximation,
    Method,
    NaturalGradient,
    PointEstimate,
    Variational,
)
from bbb_numpy.training.laplace import Laplace
from bbb_numpy.training.schedules import INFERENCES

pytestmark = pytest.mark.brief


@pytest.mark.parametrize(
    ("inference", "method"),
    [
        ("mean-field", Variational),
        (FullRank(), Variational),
        ("ivon", NaturalGradient),
        ("map", PointEstimate),
        (PointMass(0.2), PointEstimate),
        (Laplace("diagonal"), LaplaceApproximation),
        ("nuts", Sampling),
    ],
)
def test_an_inference_is_a_method(inference, method):
    part = inferences()[inference] if isinstance(inference, str) else inference
    chosen = method_for(inference, part)
    assert type(chosen) is method
    assert part in (chosen, getattr(chosen, "posterior", None))
    assert set(chosen.defaults) == set(DEFAULTS)
    assert chosen.is_sampled or chosen.schedule_group in INFERENCES


def test_a_method_of_ones_own_says_what_it_lacks():
    method = Method()
    for call in (
        lambda: method.build(None, {}),
        lambda: method.fit(None, np.random.default_rng(0), False),
        lambda: method.resume(None, None, np.random.default_rng(0), False),
    ):
        with pytest.raises(NotImplementedError):
            call()
    assert not method.rotates_inputs(None)
    assert method_for(MeanField(), MeanField()) == Variational(MeanField())
