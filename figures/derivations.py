"""The figures of the derivations: computed by the package where it can, drawn as PNG at 150 dpi.

Usage: ``python figures/derivations.py [NAME ...]`` writes all figures, or those that are named,
into this folder; ``training`` is the README's moving one. Each chapter's figures are in a module of
chapters/. Each function that computes stands apart from the one that draws, so that the tests can
check the numbers without a picture. (fit.png is problem2-range4-should-be.png of
``bbb-numpy report``.)
"""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from chapters import (  # noqa: E402
    bounds,
    calibration,
    correlated_posteriors,
    estimators,
    has_it_converged,
    likelihoods,
    microcanonical,
    model_checking,
    numbers_and_proofs,
    prediction,
    priors,
    report,
    samplers,
    stochastic_samplers,
    ten_minutes,
    training,
    why,
)

CHAPTERS = (  # in the order of the book
    report,
    ten_minutes,
    numbers_and_proofs,
    why,
    training,
    prediction,
    priors,
    likelihoods,
    estimators,
    bounds,
    correlated_posteriors,
    samplers,
    microcanonical,
    stochastic_samplers,
    has_it_converged,
    model_checking,
    calibration,
)
FIGURES = {name: draw for chapter in CHAPTERS for name, draw in chapter.FIGURES.items()}


def write(name: str, folder: Path = HERE) -> Path:
    """Draw one figure into `folder`."""
    into = folder / f"{name}.png"
    FIGURES[name]().savefig(
        into, dpi=150, metadata={"Software": None}, pil_kwargs={"optimize": True}
    )
    return into


if __name__ == "__main__":
    for chosen in sys.argv[1:] or (*FIGURES, "training"):
        print(ten_minutes.training() if chosen == "training" else write(chosen))
