"""The inputs at which a function loses digits in floats, and those at which it seems to."""

from __future__ import annotations

import numpy as np
import pytest

from exactgrad import stability

THETA = np.array([0.9, -0.4, 1.3])
FORMATS = ("float64", "float32")


def naive_softplus(theta):
    e = np.exp(theta)
    return np.log(1 + e).sum(), e / (1 + e)


def careful_softplus(theta):
    e = np.exp(-np.abs(theta))
    return np.logaddexp(0.0, theta).sum(), np.where(theta > 0, 1.0, e) / (1 + e)


@pytest.mark.parametrize("dtype", FORMATS)
def test_an_exponential_that_overflows_is_found(dtype):
    result = stability(naive_softplus, THETA, dtype=dtype, n_inputs=60)
    assert not result
    assert result.worst.name == "value"
    assert result.worst.computed == np.inf
    assert np.isfinite(result.worst.exact)


@pytest.mark.parametrize("dtype", FORMATS)
def test_the_stable_form_is_not_accused(dtype):
    assert stability(careful_softplus, THETA, dtype=dtype, n_inputs=60)
