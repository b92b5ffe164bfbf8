"""Krasser's post, repeated, and what it leaves out.

`reproduce` adds the total band (R10), the prediction from posterior means beside the predictive
mean (R9), the fixed prior, learned noise, and the prior's numbers as the post trains them,
which leave their domain (R8).
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from . import plots, text
from .models import SETTINGS, Domain, domains, run

__all__ = ["reproduce"]

SEEDS, FAST_SEEDS, FAST_EPOCHS = 8, 12, 150  # for what one seed cannot show


def reproduce(
    out: Path,
    seed: int = 0,
    *,
    epochs: int = 1500,
    seeds: int = SEEDS,
    fast: tuple[int, int] = (FAST_SEEDS, FAST_EPOCHS),
) -> str:
    """Run all settings, write pictures and ``numbers.json`` into `out`, return the text.

    Parameters
    ----------
    out : Path
        Folder, made if missing.
    seed : int
        Of the pictures and the table; ranges are over `seeds` seeds from this one on.
    epochs, seeds, fast : int, int, (int, int)
        Fewer for a quick look; `fast` are seeds and epochs at the raised learning rate.
    """
    out.mkdir(parents=True, exist_ok=True)
    results = {name: run(name, seed, epochs) for name in SETTINGS}
    numbers = {
        name: [first.numbers, *(run(name, seed + k, epochs).numbers for k in range(1, seeds))]
        for name, first in results.items()
    }
    raised = domains(seed, *fast)
    pictures = {
        "prediction": plots.prediction(results["post"]),
        "prior": plots.priors(results["post"], results["fixed"]),
        "noise": plots.noise(results["noise"], results["cold"]),
        "raw-prior": plots.raw(raised),
    }
    for name, figure in pictures.items():
        figure.savefig(out / f"{name}.png", dpi=100)
    rows = {name: [asdict(n) for n in some] for name, some in numbers.items()}
    left = {name: _counts(domain) for name, domain in raised.items()}
    found = json.dumps({"settings": rows, "domains": left}, indent=1, allow_nan=False)
    (out / "numbers.json").write_text(found + "\n", encoding="utf-8")
    return text.summarise(numbers, raised, epochs)


def _counts(domain: Domain) -> dict[str, float]:
    return {
        "seeds": len(domain.traces),
        "left": domain.left,
        "swapped": domain.swapped,
        "not finite": domain.finite.count(False),
        "largest pi": domain.largest,
    }
