"""The noise of every gradient estimator, measured (D18-D26).

On a small network at three stages of its training, and on linear regression at the optimum.
All estimators of the free energy take the same number of weight samples per step; their
variance is compared with that of the reparameterised one, the report's, and so is variance x
time. The estimators of IWAE and of the EUBO are compared against the number of samples.
"""

from __future__ import annotations

import json
from pathlib import Path

from . import plots, text
from .models import linear_places, network_places
from .scores import curves, measure, on_network, order

__all__ = ["reproduce"]


def reproduce(out: Path, seed: int = 0) -> str:
    """Measure, write ``estimator-variance.png``, ``.json`` and ``.txt``, and return the text.

    Parameters
    ----------
    out : Path
        Folder, made if missing.
    seed : int
        Of data, training and noise.
    """
    network, linear = network_places(seed), linear_places(seed)
    found = {place.name: measure(place, seed + 1) for place in [*network, *linear]}
    spots, far = curves(seed), on_network(network[-1], seed)
    summary, end = text.summarise(found, spots, far), found[network[-1].name]
    out.mkdir(parents=True, exist_ok=True)
    plots.variances(found, spots, order(end)).savefig(out / "estimator-variance.png", dpi=100)
    (out / "estimator-variance.txt").write_text(summary + "\n", encoding="utf-8")
    rows = {
        "relative to the reparameterised": {
            place: {name.strip(): noise._asdict() for name, noise in rows.items()}
            for place, rows in found.items()
        },
        "against samples": {name: [s._asdict() for s in row] for name, row in spots.items()},
    }
    (out / "estimator-variance.json").write_text(
        json.dumps(rows, indent=1, allow_nan=False) + "\n", encoding="utf-8"
    )
    return summary
