"""Whether the chains of a trial have mixed, as it is recorded."""

from __future__ import annotations

from bbb_numpy.evaluation.convergence import Line, convergence
from bbb_numpy.sampling.draws import Draws

__all__ = ["SPACES", "mixing"]

SPACES = ("functions", "noise", "weights")
LARGEST = 1e6  # R-hat that is recorded: JSON has no infinity
FEWEST_DRAWS, FEWEST_CHAINS = 4, 2  # of which R-hat can be computed


def mixing(draws: Draws) -> dict[str, float]:
    """Return R-hat and bulk effective sample size of functions, noise and weights, each the worst.

    Functions are E[y|x] at 50 training rows. A kind that there is not (noise that depends on x
    is one of the functions' own) is left out. Chains that each stand still have `LARGEST`.
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
        if lines:
            notes[f"r_hat_{space}"] = min(LARGEST, max(line.r_hat for line in lines))
            notes[f"ess_{space}"] = min(line.bulk for line in lines)
    return notes
