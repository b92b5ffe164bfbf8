"""Variations of chapter 12: what can go wrong."""

from __future__ import annotations

from typing import Any

from ..exercise import real
from ..variants import Variation
from .changes import each, replaced


def _tempered(temperature: int) -> Variation:
    return replaced(
        "log_weights", "log_weights", real("S"), lambda log_weights: temperature * log_weights,
        f"log_weights = log_weights / {temperature}",
        f"The weights are those of log_weights / {temperature}: they are tempered.",
        {
            "Return the weights, (S,), adding up to 1.": (
                f"Return the weights, in proportion to exp(log_weights / {temperature}), (S,), "
                "adding up to 1."
            ),
            "Return importance weights that add up to 1, (S,).": (
                "Return tempered weights that add up to 1, (S,)."
            ),
        },
        wrong={
            f"log_weights / {temperature}": {
                f"log_weights * {temperature}": (
                    "tempering divides the logarithms; they are multiplied."
                ),
            },
        },
    )  # fmt: skip


AXES: dict[str, Any] = {
    "normalised_weights": [each((2, 3, 4), _tempered)],
}
