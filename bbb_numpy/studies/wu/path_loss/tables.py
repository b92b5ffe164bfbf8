"""The tables of the radio field (W6)."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

from bbb_numpy.studies.comparing import Claim, captioned, claims, table

from .models import BASE, HOW, NOISE_LIMIT, WEIGHTS, WHY, Variant, places_alone
from .scores import EDGE, Average, Study

__all__ = ["claims_of_the_slides", "lay_out"]

LARGE = 0.5  # a rank correlation that counts as "large where the error is large"
EXACTLY = 1e-6  # dB that count as an exact fit

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


def lay_out(found: Study) -> str:
    """Return every number that is printed, and what becomes of the slides' two wishes."""
    how = {"RMSE dB": "rmse", "near jumps": "near", "elsewhere": "far"}
    return captioned(
        {
            "Scene and base case; prior and noise deviation are in standardised units.": (
                _scene(found.repeats)
            ),
            "RMSE to the map without shadowing, new receivers; everywhere mean (standard error).": (
                _averages(found.side, SIDE)
            ),
            "(a) Rank correlation of |error| and deviation; tenths: RMSE, least over most sure.": (
                _averages(found.why, RANKS)
            ),
            f"RMSE and mean deviations within {EDGE:g} m of a jump and elsewhere (dB).": (
                _averages(found.why, DEVIATIONS)
            ),
            "Total deviation near jumps over elsewhere; plane, and corner x, y > 60 m (dB).": (
                _places(found.why)
            ),
            "Bias of the mean of VI over data sets, and spread between its fits (dB).": (
                _split(found.split)
            ),
            "(b) Least squares: one thing changed at a time, then several, then the inputs.": (
                _averages(found.how, how)
            ),
            f"'Large' is a rank of {LARGE:g}; noise limit: {BASE.scene.shadowing:g} "
            f"sqrt({WEIGHTS}/{BASE.count}) dB.": claims("the slides", claims_of_the_slides(found)),
        }
    )


def _scene(repeats: int) -> str:
    scene, setup = BASE.scene, BASE.setup
    (x, y), losses = scene.transmitters[0], [f"{b.wall_loss:g}" for b in scene.buildings]
    settings = {
        "plane (m)": f"{scene.width:g} x {scene.height:g}",
        "transmitter (m)": f"({x:g}, {y:g})",
        "P_T (dBm)": f"{scene.power:g}",
        f"P_0 at {scene.reference_distance:g} m (dB)": f"{scene.reference_loss:g}",
        "lambda": f"{scene.exponent:g}",
        "loss of each wall, by building (dB)": ", ".join(losses),
        "shadowing (dB)": f"{scene.shadowing:g}",
        "receivers": f"{BASE.count}",
        "network": f"{'-'.join(map(str, (2, *setup.hidden, 1)))}, {setup.activation}",
        "prior deviation": f"{setup.prior_scale:g}",
        "epochs of Adam": f"{setup.epochs}",
        "data sets": f"{repeats}",
    }
    return table(("setting", "value"), list(settings.items()))


def _averages(found: Mapping[str, Average], columns: Mapping[str, str]) -> str:
    """Lay out mean (standard error) of `columns`, number by title."""
    rows = [
        [name, *(_average(numbers, key) for key in columns.values())]
        for name, numbers in found.items()
    ]
    return table(["", *columns], rows)


def _average(numbers: Average, key: str) -> str:
    if key not in numbers:
        return "-"
    mean, error = numbers[key]
    return f"{mean:.2f} ({error:.2f})"


def _places(why: Mapping[str, Average]) -> str:
    rows = []
    for name, numbers in why.items():
        ratio = "-"
        if "total near" in numbers:
            ratio = f"{numbers['total near'][0] / numbers['total far'][0]:.2f}"
        rows.append([name, ratio, *(_average(numbers, key) for key in PLACES.values())])
    return table(["", "near / far", *PLACES], rows)


def _split(split: Mapping[str, tuple[float, float]]) -> str:
    """Lay out bias and spread, and the share of the squared error that is bias."""
    rows = [
        [
            {"near": "near jumps", "far": "elsewhere"}[where],
            f"{bias:.2f}",
            f"{spread:.2f}",
            f"{bias**2 / (bias**2 + spread**2):.0%}",
        ]
        for where, (bias, spread) in split.items()
    ]
    return table(("", "bias", "spread", "bias, of the squared error"), rows)


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
        rows.append(Claim(f"'perfectly': {name}", "0 dB", shown, rmse < EXACTLY))
    rmse, error = how[right]["rmse"]
    away = abs(rmse - NOISE_LIMIT) / error if error else inf
    rows.append(
        Claim("noise limit, the same inputs", f"{NOISE_LIMIT:.2f} dB", f"{rmse:.2f} dB", away)
    )
    return rows
