"""How the studies lay out what they found."""

import json

import numpy as np
import pytest
from matplotlib.figure import Figure
from tables import cells_of

from bbb_studies.kit import (
    Claim,
    by_key,
    claims,
    clustered_mean,
    listed,
    plain,
    plus_minus,
    write,
)


def test_a_claim_holds_or_not_or_is_some_errors_off():
    rows = [Claim("s", "1", "1", True), Claim("t", "1", "2", False), Claim("u", "1", "3", 2.04)]
    found = cells_of(claims("Caption.", "the paper", rows), "claim of the paper")
    assert {said: cells[2] for said, cells in found.items()} == {
        "s": "yes",
        "t": "no",
        "u": "2.0 s.e. off",
    }


def test_what_a_source_does_not_claim_stands_apart_from_what_it_claims():
    rows = [Claim("s", "1", "1", True), Claim("t", "2", "2", False, ours=True)]
    text = claims("Caption.", "the paper", rows)
    assert cells_of(text, "claim of the paper") == {"s": ["1", "1", "yes"]}
    assert cells_of(text, "ours") == {"t": ["2", "2", "no"]}
    assert "claim of" not in claims("Caption.", "the paper", rows[1:])  # it printed nothing
    assert "ours" not in claims("Caption.", "the paper", rows[:1])


def test_numbers_of_all_kinds_are_written_as_tables_and_lists(tmp_path, drawn):
    claim = Claim("s", "1", "1", np.float64(0.5))
    numbers = {1.0: claim, "a": [np.arange(2), (np.nan, None)], "b": np.bool_(True)}
    write(tmp_path / "new" / "out", {"p": Figure(figsize=(1, 1))}, numbers, "found")
    assert json.loads((tmp_path / "new" / "out" / "found.json").read_text()) == {
        "1.0": {"statement": "s", "printed": "1", "measured": "1", "holds": 0.5, "ours": False},
        "a": [[0, 1], [None, None]],
        "b": True,
    }
    assert (tmp_path / "new" / "out" / "p.png").stat().st_size > 100
    with pytest.raises(ValueError, match="Out of range float"):
        write(tmp_path, {}, np.inf)
    assert plain(np.array([[1.5, np.nan]])) == [[1.5, None]]


def test_a_mean_and_its_error_are_scaled_together():
    assert plus_minus((0.51234, 0.0071), 2, 100) == "51.23 +- 0.71"


def test_tables_show_what_their_columns_name():
    items = {"a b": {"rmse": 0.123456, "nll": (1.5, 0.0321)}, "c": {"rmse": 2.0, "cells": 3}}
    assert cells_of(by_key("Caption.", "model | nll | cells | rmse", items), "model") == {
        "a b": ["1.5 +- 0.032", "-", "0.1235"],
        "c": ["-", "3", "2"],
    }
    found = listed("Caption.", "model | rmse | twice", items, "{0[rmse]:.1f} | {0[rmse]:.0%}")
    assert cells_of(found, "model") == {"a b": ["0.1", "12%"], "c": ["2.0", "200%"]}


@pytest.mark.equation("D35")
def test_the_clustered_error_is_the_scatter_of_means_over_repetitions():
    """Twenty companies share half of their variance each day."""
    rng = np.random.default_rng(5)
    day = np.repeat(np.arange(60), 20)
    found = [
        clustered_mean(rng.standard_normal(60)[day] + rng.standard_normal(1200), day)
        for _ in range(600)
    ]
    means, errors = np.transpose(found)
    # the standard deviation of a sample standard deviation is 1 / sqrt(2 * 600) = 3 % of it
    assert np.sqrt(np.mean(np.square(errors))) == pytest.approx(np.std(means), rel=0.12)
    values = rng.standard_normal(30)
    expected = values.std(ddof=1) / 30**0.5
    assert clustered_mean(values, np.arange(30))[1] == pytest.approx(expected, rel=1e-12)
    # two groups with residuals -2 and 2: sqrt(2 / 1 * 8) / 4
    assert clustered_mean(np.arange(1.0, 5.0), [0, 0, 1, 1]) == pytest.approx((2.5, 1.0))
