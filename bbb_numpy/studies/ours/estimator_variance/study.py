"""The noise of every gradient estimator, measured (D18-D26).

On a small network at three stages of its training, and on linear regression at the optimum.
All estimators of the free energy take the same number of weight samples per step; their
variance is compared with that of the reparameterised one, the report's, and so is variance x
time. The estimators of IWAE and of the EUBO are compared against the number of samples.
"""

from __future__ import annotations

from pathlib import Path

from bbb_numpy.numeric.files import write_json
from bbb_numpy.progress import counted, steps

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
    """Measure, write ``estimator-variance.png`` and ``.json``, and return the tables.

    Parameters
    ----------
    out : Path
        Folder, made if missing.
    seed : int
        Of data, training and noise.
    progress : bool, optional
        Show a progress bar; by default only to a person.
    """
    found = measure_all(seed, progress)
    out.mkdir(parents=True, exist_ok=True)
    figure = plots.variances(found.noises, found.spots, order(found.noises["network, end"]))
    figure.savefig(out / "estimator-variance.png", dpi=100)
    rows = {
        "relative to the reparameterised": {
            place: {name: noise._asdict() for name, noise in rows.items()}
            for place, rows in found.noises.items()
        },
        "against samples": {name: [s._asdict() for s in row] for name, row in found.spots.items()},
    }
    write_json(out / "estimator-variance.json", rows)
    return tables.lay_out(found)
