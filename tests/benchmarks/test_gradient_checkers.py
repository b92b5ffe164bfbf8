"""benchmarks/gradient_checkers.py: README shows what was measured, and inputs are what they say."""

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.gradient_checkers import CHECKERS, INPUTS, RESULTS_PATH, at_inputs, table

README = Path(__file__).parents[2] / "benchmarks" / "README.md"


def test_readme_shows_what_was_measured():
    results = json.loads(RESULTS_PATH.read_text("utf-8"))
    assert len(results) == len(CHECKERS) * len(INPUTS)
    assert table(results) in README.read_text("utf-8")


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("random", [[5, 6, 7], [8, 9, 4]]),
        ("zeros", [[0, 0, 0], [0, 0, 0]]),
        ("ones", [[1, 1, 1], [1, 1, 1]]),
        ("arange", [[0, 1, 2], [3, 4, 5]]),
        ("one-hot", [[1, 0, 0], [0, 1, 0]]),
    ],
)
def test_inputs_have_the_shape_and_the_dtype_of_those_that_they_replace(kind, expected):
    value = np.array([[5, 6, 7], [8, 9, 4]], np.float32)
    replaced = at_inputs(kind, value)
    np.testing.assert_array_equal(replaced, expected)
    assert replaced.dtype == value.dtype


@pytest.mark.parametrize(
    ("framework", "dtype"), [("torch", "float64"), ("torch", "float32"), ("jax", "float64")]
)
def test_exactgrad_sees_every_mistake_at_random_inputs_and_accuses_no_right_pass_at_any(
    framework, dtype
):
    results = json.loads(RESULTS_PATH.read_text("utf-8"))
    ours = [
        result
        for result in results
        if (result["checker"], result["framework"], result["dtype"])
        == ("exactgrad", framework, dtype)
    ]
    assert [result["inputs"] for result in ours] == list(INPUTS)
    assert not ours[0]["not_seen"]
    assert not any(result["accused"] for result in ours)
