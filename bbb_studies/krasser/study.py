"""Krasser's post, repeated, and what it leaves out.

`reproduce` adds the total band (R10), the prediction from posterior means beside the predictive
mean (R9), the fixed prior, learned noise, and the prior's numbers as the post trains them,
which leave their domain (R8).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bbb_numpy.progress import Done, counted, steps, unseen
from bbb_studies.comparing import Claim, claims, listed, table, write

from . import plots
from .models import (
    FAST,
    FUNCTIONS,
    NOISE,
    POINTS,
    SETTINGS,
    Domain,
    Numbers,
    Result,
    domains,
    run,
)

__all__ = ["Study", "claims_of_the_post", "measure", "reproduce"]

SEEDS, FAST_SEEDS, FAST_EPOCHS = 8, 12, 150  # for what one seed cannot show
MUCH = 1.5  # "much higher" is taken as at least this many times, in every seed

Runs = Mapping[str, Sequence[Numbers]]  # of every setting, those of every seed


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
    return _tables(found)


def _counts(domain: Domain) -> dict[str, float]:
    return {
        "seeds": len(domain.traces),
        "left": domain.left,
        "swapped": domain.swapped,
        "not finite": domain.finite.count(False),
        "largest pi": domain.largest,
    }


COLUMNS = {  # of the first table: number and format
    "F": ("free_energy", ".1f"),
    "KL": ("kl", ".1f"),
    "NLL": ("nll", ".1f"),
    "rmse": ("rmse", ".2f"),
    "y in": ("coverage", ".1%"),
    "sd in": ("epistemic_inside", ".2f"),
    "sd out": ("epistemic_outside", ".2f"),
    "noise": ("noise", ".2f"),
    "pi": ("pi", ".3f"),
    "s1": ("sigma1", ".3f"),
    "s2": ("sigma2", ".3f"),
}
RANGES = {  # setting, number and format; what is "above the post's" is in nats
    "training (s)": ("post", "seconds_training", ".2f"),
    f"{FUNCTIONS} functions at {POINTS} points (s)": ("post", "seconds_functions", ".2f"),
    "both (s)": ("post", "seconds", ".2f"),
    "epistemic deviation, out / in": ("post", "ratio", ".2f"),
    "sigma2 (from 0.1)": ("post", "sigma2", ".2f"),
    "new y within 1.96 epistemic deviations (R10)": ("post", "coverage_epistemic", ".1%"),
    "new y within 1.96 total deviations": ("post", "coverage", ".1%"),
    "E f(w) - f(E w), root mean square (R9)": ("post", "gap", ".2f"),
    "its standard error": ("post", "gap_error", ".2f"),
    "share of x where it is beyond 4 of them": ("post", "gap_seen", ".0%"),
    "rmse, predictive mean": ("post", "rmse", ".2f"),
    "rmse, posterior means": ("post", "rmse_of_means", ".2f"),
    "prior fixed: epistemic deviation, out / in": ("fixed", "ratio", ".2f"),
    "prior fixed: F above the post's": ("fixed", "free_energy", "+.0f"),
    f"noise learned (true: {NOISE:g})": ("noise", "noise", ".2f"),
    "noise learned: rmse": ("noise", "rmse", ".2f"),
    "noise learned: F above the post's": ("noise", "free_energy", "+.0f"),
    "noise learned: KL above the post's": ("noise", "kl", "+.0f"),
    "noise learned: NLL above the post's": ("noise", "nll", "+.0f"),
    "KL x 0.1, rho from -4: noise": ("cold", "noise", ".2f"),
    "KL x 0.1, rho from -4: rmse": ("cold", "rmse", ".2f"),
    "KL x 0.1, rho from -4: epistemic deviation, out / in": ("cold", "ratio", ".2f"),
}


def _tables(found: Study) -> str:
    domains = {
        "seeds": lambda d: str(len(d.traces)),
        "outside": lambda d: str(d.left),
        "largest pi": lambda d: f"{d.largest:.3f}",
        "cost nan": lambda d: str(d.finite.count(False)),
        "sigma2 > sigma1": lambda d: str(d.swapped),
    }
    caption = f"Learning rate {FAST:g}: in how many seeds the prior's numbers went wrong."
    judged = f"'Much' is {MUCH:g} times, 'equal' within 4 standard errors, in the worst seed."
    return "\n\n".join(
        [
            _first(found.numbers, found.epochs),
            _ranges(found.numbers),
            listed(caption, "pi, sigma1, sigma2", found.raised.items(), domains),
            claims(judged, "the post", claims_of_the_post(found.numbers)),
        ]
    )


def _first(numbers: Runs, epochs: int) -> str:
    caption = (
        "32 points of 10 sin(2 pi x) + N(0, 1), 1-20-20-1 with ReLU; nats; rmse, y: in the data."
    )
    rows = [
        [SETTINGS[name].title, *(f"{getattr(n, key):{how}}" for key, how in COLUMNS.values())]
        for name, (n, *_) in numbers.items()
    ]
    return f"{caption}\n\n{table([f'{epochs} epochs', *COLUMNS], rows)}"


def _ranges(numbers: Runs) -> str:
    rows = []
    for label, (name, key, how) in RANGES.items():
        values = np.array([getattr(n, key) for n in numbers[name]])
        if label.endswith("above the post's"):
            values -= [getattr(n, key) for n in numbers["post"]]
        shown = (values[0], values.min(), values.max())
        rows.append([label, *(f"{value:{how}}" for value in shown)])
    seeds = f"{len(numbers['post'])} seeds"
    return f"The first seed, and all.\n\n{table([seeds, 'first', 'least', 'most'], rows)}"


def claims_of_the_post(numbers: Runs) -> list[Claim]:
    """Judge what the post says by the runs of every seed."""
    rows = []
    for name, title in (("post", "learned prior"), ("fixed", "prior fixed")):
        least = min(n.ratio for n in numbers[name])
        said = f"epistemic uncertainty 'is much higher' without data, {title}"
        rows.append(Claim(said, "much", f"{least:.2f} times", least >= MUCH))
    seen = max(n.gap_seen for n in numbers["post"])
    said = "the predictive mean 'with a single forward pass' (R9)"
    return [*rows, Claim(said, "equal", f"not at {seen:.0%} of x", seen == 0)]
