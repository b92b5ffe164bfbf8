"""Whether the chains of a trial have mixed, as it is recorded."""

from __future__ import annotations

from math import isfinite

from ..evaluation.convergence import Line, convergence
from ..sampling.draws import Draws

__all__ = ["SPACES", "mixing"]

SPACES = ("functions", "noise", "weights")
FEWEST_DRAWS, FEWEST_CHAINS = 4, 2  # of which R-hat can be computed


def mixing(draws: Draws) -> dict[str, float]:
    """Return R-hat and bulk effective sample size of functions, noise and weights, each the worst.

    Functions are E[y|x] at 50 training rows. A kind that there is not (noise that depends on x
    is one of the functions' own) and numbers without an R-hat, of chains that each stand still,
    are left out.
    """
    if len(draws.positions) < FEWEST_DRAWS or draws.positions.shape[1] < FEWEST_CHAINS:
        return {}
    found: dict[str, list[Line]] = {space: [] for space in SPACES}
    for line in convergence(draws).lines:
        if line.space == "weights":
            found["weights"].append(line)
        elif line.name.startswith("E[y|x]"):
            found["functions"].append(line)
        elif line.name == "log_noise":
            found["noise"].append(line)
    notes = {}
    for space, lines in found.items():
        r_hat = max((line.r_hat for line in lines), default=float("nan"))
        if isfinite(r_hat):
            notes[f"r_hat_{space}"] = r_hat
            notes[f"ess_{space}"] = min(line.bulk for line in lines)
    return notes
