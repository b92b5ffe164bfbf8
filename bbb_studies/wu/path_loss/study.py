"""Wu's second system: a radio field over a plane with buildings (W6), and his two questions.

`compare` sets MLE, MAP and VI side by side. `WHY` asks why a large error does not come with a
large deviation, `HOW` how to fit the simulated function exactly; both are lists of variants of
one base case, each measured on several data sets by `measure`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import ceil, inf
from pathlib import Path
from typing import Any

from bbb_numpy.progress import Done, counted, steps
from bbb_studies.comparing import METHODS, Claim, average, claims, listed, write

from . import plots
from .models import (
    BASE,
    EDGE,
    HOW,
    NOISE_LIMIT,
    WEIGHTS,
    WHY,
    Average,
    Measured,
    Study,
    Variant,
    bias_and_spread,
    compare,
    measure,
    places_alone,
)

__all__ = ["claims_of_the_slides", "full", "measure_all", "reproduce"]

LARGE = 0.5  # a rank correlation that counts as "large where the error is large"
EXACTLY = 1e-6  # dB that count as an exact fit


def full(seed: int) -> dict[str, Any]:
    """Return the arguments of `reproduce` for twice as many data sets."""
    return {"seed": seed, "repeats": 4}


def updates(variant: Variant) -> float:
    """Return how many minibatches a variant trains on, all its members together."""
    setup = variant.setup
    return setup.epochs * variant.members * ceil(variant.count / setup.batch_size)


def measure_all(seed: int, repeats: int, effort: float, progress: bool | None = None) -> Study:
    """Train and measure every variant; arguments as for `reproduce`."""
    seeds, whole = range(seed, seed + repeats), len(METHODS) * updates(BASE)
    work = repeats * (whole + sum(map(updates, (*WHY[1:], *HOW))))

    def shorter(variant: Variant) -> Variant:
        return variant.but(variant.name, epochs=max(1, round(effort * variant.setup.epochs)))

    def each(variant: Variant, done: Done) -> list[Measured]:
        here = counted(seeds, done, updates(variant))
        return [measure(shorter(variant), which) for which in here]

    with steps(work, progress) as done:
        pairs = [compare(which, shorter(BASE)) for which in counted(seeds, done, whole)]
        runs = {BASE.name: [pair[BASE.name] for pair in pairs]}
        runs |= {variant.name: each(variant, done) for variant in WHY[1:]}
        how = {variant.name: [run.numbers for run in each(variant, done)] for variant in HOW}
    return Study(
        repeats=repeats,
        methods=pairs[0],
        runs=runs,
        side={name: average([pair[name].numbers for pair in pairs]) for name in METHODS},
        why={name: average([run.numbers for run in measured]) for name, measured in runs.items()},
        how={name: average(numbers) for name, numbers in how.items()},
        split=bias_and_spread(runs[BASE.name]) if repeats > 1 else {},
    )


def reproduce(
    out: Path,
    seed: int = 0,
    repeats: int = 2,
    effort: float = 1.0,
    progress: bool | None = None,
) -> str:
    """Run everything; write ``maps.png``, ``why.png``, ``how.png`` and ``numbers.json``.

    `repeats` data sets, from which every standard error comes; `effort`, a factor on all epochs.
    """
    found = measure_all(seed, repeats, effort, progress)
    numbers = {
        "seed": seed,
        "repeats": repeats,
        "methods": found.side,
        "why": found.why,
        "how": found.how,
        "bias and spread": found.split,
    }
    maps, why = plots.draw_maps(found.methods), plots.draw_why(found.why, found.runs)
    write(out, {"maps": maps, "why": why, "how": plots.draw_how(found.how)}, numbers)
    return _tables(found)


SIDE = {
    "RMSE dB": "rmse",
    "near jumps": "near",
    "elsewhere": "far",
    "nats/row": "log density",
    "in 95%": "coverage",
    "epistemic dB": "epistemic",
}
RANKS = {
    "rank epist.": "rank epistemic",
    "rank total": "rank total",
    "if right": "rank if right",
    "its sd": "rank if right, deviation",
    "tenths": "tenths",
    "edge share": "edge share",
    "worst near": "worst near",
}
DEVIATIONS = {
    "RMSE near": "near",
    "RMSE far": "far",
    "total near": "total near",
    "total far": "total far",
    "epist. near": "epistemic near",
    "epist. far": "epistemic far",
}
PLACES = {
    "RMSE": "rmse",
    "epistemic": "epistemic",
    "RMSE corner": "corner error",
    "epist. corner": "corner epistemic",
}


def _tables(found: Study) -> str:
    how = {"RMSE dB": "rmse", "near jumps": "near", "elsewhere": "far"}
    side = "RMSE to the map without shadowing, new receivers; everywhere mean (standard error)."
    ranks = "(a) Rank correlation of |error| and deviation; tenths: RMSE, least over most sure."
    near = f"RMSE and mean deviations within {EDGE:g} m of a jump and elsewhere (dB)."
    least = "(b) Least squares: one thing changed at a time, then several, then the inputs."
    limit = f"noise limit: {BASE.scene.shadowing:g} sqrt({WEIGHTS}/{BASE.count}) dB."
    judged = f"'Large' is a rank correlation of {LARGE:g}; {limit}"
    return "\n\n".join(
        [
            _scene(found.repeats),
            _averages(side, found.side, SIDE),
            _averages(ranks, found.why, RANKS),
            _averages(near, found.why, DEVIATIONS),
            _places(found.why),
            _split(found.split),
            _averages(least, found.how, how),
            claims(judged, "the slides", claims_of_the_slides(found)),
        ]
    )


def _scene(repeats: int) -> str:
    scene, setup = BASE.scene, BASE.setup
    settings = {
        "transmitter (m)": scene.transmitters[0],
        "P_T (dBm)": scene.power,
        "P_0 (dB), at (m)": (scene.reference_loss, scene.reference_distance),
        "lambda": scene.exponent,
        "loss of each wall, by building (dB)": [b.wall_loss for b in scene.buildings],
        "shadowing (dB)": scene.shadowing,
        "receivers": BASE.count,
        "hidden units": setup.hidden,
        "prior deviation, standardised": setup.prior_scale,
        "epochs of Adam": setup.epochs,
        "data sets": repeats,
    }
    caption = f"A plane of {scene.width:g} m x {scene.height:g} m, and the base case."
    return listed(caption, "setting", settings.items(), {"value": str})


def _averages(caption: str, found: Mapping[str, Average], columns: Mapping[str, str]) -> str:
    """Lay out mean (standard error) of `columns`, number by title."""
    return listed(caption, "", found.items(), {c: _average(key) for c, key in columns.items()})


def _average(key: str) -> Callable[[Average], str]:
    def shown(numbers: Average) -> str:
        return "{:.2f} ({:.2f})".format(*numbers[key]) if key in numbers else "-"

    return shown


def _places(why: Mapping[str, Average]) -> str:
    def ratio(numbers: Average) -> str:
        if "total near" not in numbers:
            return "-"
        return f"{numbers['total near'][0] / numbers['total far'][0]:.2f}"

    caption = "Total deviation near jumps over elsewhere; plane, and corner x, y > 60 m (dB)."
    columns = {column: _average(key) for column, key in PLACES.items()}
    return listed(caption, "", why.items(), {"near / far": ratio, **columns})


def _split(split: Mapping[str, tuple[float, float]]) -> str:
    caption = "Bias of the mean of VI over data sets, and spread between its fits (dB)."
    columns = {
        "bias": lambda one: f"{one[0]:.2f}",
        "spread": lambda one: f"{one[1]:.2f}",
        "bias, of the squared error": lambda one: (
            f"{one[0] ** 2 / (one[0] ** 2 + one[1] ** 2):.0%}"
        ),
    }
    return listed(caption, "of a jump", split.items(), columns)


def claims_of_the_slides(found: Study) -> list[Claim]:
    """Judge both wishes: of the base case, of the best that is told x and y, of the rest."""

    def best_of(variants: tuple[Variant, ...], among: Mapping[str, Average], key: str) -> list[str]:
        names = [v.name for v in variants if v.inputs is places_alone and v.name in among]
        return sorted(names, key=lambda name: among[name][key][0])

    why, how = found.why, found.how
    rows = []
    for name in (BASE.name, best_of(WHY, why, "rank total")[-1]):
        rank = why[name]["rank total"][0]
        rows.append(
            Claim(f"large error, 'large variance': {name}", "large", f"{rank:.2f}", rank >= LARGE)
        )
    *_, right, silent = how
    for name in (best_of(HOW, how, "rmse")[0], right, silent):
        rmse = how[name]["rmse"][0]
        shown = f"{rmse:.2f} dB" if rmse > EXACTLY else f"{rmse:.1e} dB"
        rows.append(
            Claim(
                f"approximates the simulated function: {name}", "'perfectly'", shown, rmse < EXACTLY
            )
        )
    rmse, error = how[right]["rmse"]
    away = abs(rmse - NOISE_LIMIT) / error if error else inf
    limit = f"{NOISE_LIMIT:.2f} dB"
    rows.append(Claim("noise limit, the same inputs", limit, f"{rmse:.2f} dB", away, True))
    return rows
