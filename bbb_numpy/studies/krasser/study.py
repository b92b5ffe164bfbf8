"""Krasser's post, repeated, and what it leaves out.

`reproduce` adds the total band (R10), the prediction from posterior means beside the predictive
mean (R9), the fixed prior, learned noise, and the prior's numbers as the post trains them,
which leave their domain (R8).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bbb_numpy.progress import Done, counted, steps, unseen
from bbb_numpy.studies.comparing import write

from . import plots, tables
from .models import SETTINGS, Domain, Numbers, Result, domains, run

__all__ = ["Study", "measure", "reproduce"]

SEEDS, FAST_SEEDS, FAST_EPOCHS = 8, 12, 150  # for what one seed cannot show


@dataclass(frozen=True, eq=False)
class Study:
    """All runs; by setting, and at the raised learning rate by how the prior is trained."""

    epochs: int
    first: dict[str, Result]  # of the first seed
    numbers: dict[str, list[Numbers]]  # of every seed
    raised: dict[str, Domain]


def measure(
    seed: int, epochs: int, seeds: int, fast: tuple[int, int], done: Done = unseen
) -> Study:
    """Run all settings for `seeds` seeds from `seed` on; `fast` as for `reproduce`.

    `done` is told the epochs of each training.
    """
    first = {name: run(name, seed, epochs) for name in counted(SETTINGS, done, epochs)}
    later = range(seed + 1, seed + seeds)
    numbers = {
        name: [
            one.numbers, *(run(name, k, epochs).numbers for k in counted(later, done, epochs))
        ]
        for name, one in first.items()
    }  # fmt: skip
    return Study(epochs, first, numbers, domains(seed, *fast, done))


def reproduce(
    out: Path,
    seed: int = 0,
    *,
    epochs: int = 1500,
    seeds: int = SEEDS,
    fast: tuple[int, int] = (FAST_SEEDS, FAST_EPOCHS),
    progress: bool | None = None,
) -> str:
    """Run all settings, write pictures and ``numbers.json`` into `out`, return the tables.

    The pictures and the first table are of `seed`, ranges of `seeds` from it on; `fast` are seeds
    and epochs at the raised learning rate.
    """
    work = len(SETTINGS) * seeds * epochs + 2 * fast[0] * fast[1]
    with steps(work, progress) as done:
        found = measure(seed, epochs, seeds, fast, done)
    pictures = {
        "prediction": plots.prediction(found.first["post"]),
        "prior": plots.priors(found.first["post"], found.first["fixed"]),
        "noise": plots.noise(found.first["noise"], found.first["cold"]),
        "raw-prior": plots.raw(found.raised),
    }
    left = {name: _counts(domain) for name, domain in found.raised.items()}
    write(out, pictures, {"settings": found.numbers, "domains": left})
    return tables.lay_out(found.numbers, found.raised, found.epochs)


def _counts(domain: Domain) -> dict[str, float]:
    return {
        "seeds": len(domain.traces),
        "left": domain.left,
        "swapped": domain.swapped,
        "not finite": domain.finite.count(False),
        "largest pi": domain.largest,
    }
