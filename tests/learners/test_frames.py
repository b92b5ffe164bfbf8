"""The way from `fit` to the first gradient is short: each argument and each row is checked once."""

import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import bbb_numpy
from bbb_numpy import BayesianMLPRegressor

pytestmark = pytest.mark.brief
PACKAGE = str(Path(bbb_numpy.__file__).parent)
FLOORS = ("numeric", "parts", "model", "gradients", "training", "learners")


class Arrived(Exception):
    """The first gradient is asked for."""


def frames_of_a_fit(x, y):
    """Calls of our functions until `value_and_grad`: (file, function, whether X is an argument)."""
    frames = []

    def holds_x(value):
        rows = value if isinstance(value, tuple) else (value,)
        return any(np.shape(one) == x.shape for one in rows if isinstance(one, np.ndarray))

    def note(frame, event, _):
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(PACKAGE):
            return
        if code.co_name == "value_and_grad":
            raise Arrived
        given = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        stays = any(holds_x(frame.f_locals.get(name)) for name in given)
        frames.append((code.co_filename[len(PACKAGE) + 1 :], code.co_name, stays))

    model = BayesianMLPRegressor((5,), epochs=2, random_state=0, progress=False)
    model._parameter_constraints  # noqa: B018  a table that is made once in a process
    sys.setprofile(note)
    try:
        model.fit(x, y)
    except Arrived:
        return frames
    finally:
        sys.setprofile(None)
    raise AssertionError("no gradient was asked for")


def test_the_frames_between_fit_and_the_first_gradient_are_few():
    x = np.random.default_rng(0).standard_normal((64, 3))
    frames = frames_of_a_fit(x, x[:, 0])
    assert 50 < len(frames) <= 140  # one is `fit` itself, of each learner its own
    # of these two are check_fields, which stores what the checks return
    assert sum(file == "numeric/validation.py" for file, *_ in frames) <= 30
    stays = [file.split("/")[0] for file, _, stays in frames if stays]
    climbs = sum(FLOORS.index(b) > FLOORS.index(a) for a, b in pairwise(stays))
    assert 5 < len(stays) <= 18  # two look for a scale of y and for collinear inputs
    assert climbs <= 3
