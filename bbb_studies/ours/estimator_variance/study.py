"""The noise of every gradient estimator, measured (D18-D26).

On a small network at three stages of its training, and on linear regression at the optimum.
All estimators of the free energy take the same number of weight samples per step; their
variance is compared with that of the reparameterised one, the report's, and so is variance x
time. The estimators of IWAE and of the EUBO are compared against the number of samples.
"""

from __future__ import annotations

from pathlib import Path

from bbb_numpy.progress import counted, steps
from bbb_studies.comparing import write

from . import plots, tables
from .models import linear_places, network_places
from .scores import COUNTS, Study, curves, measure, on_network, order

__all__ = ["measure_all", "reproduce"]


def measure_all(seed: int, progress: bool | None = None) -> Study:
    """Train the network and measure every estimator at every place."""
    network, linear = network_places(seed), linear_places(seed)
    places = [*network, *linear]
    with steps(len(places) + len(COUNTS), progress) as done:
        noises = {place.name: measure(place, seed + 1) for place in counted(places, done)}
        return Study(noises, curves(seed, done=done), on_network(network[-1], seed))


def reproduce(out: Path, seed: int = 0, progress: bool | None = None) -> str:
    """Measure, write ``estimator-variance.png`` and ``.json``, and return the tables."""
    found = measure_all(seed, progress)
    figure = plots.variances(found.noises, found.spots, order(found.noises["network, end"]))
    rows = {"relative to the reparameterised": found.noises, "against samples": found.spots}
    write(out, {"estimator-variance": figure}, rows, "estimator-variance")
    return tables.lay_out(found)
