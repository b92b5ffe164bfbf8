"""What the numbers of the radio field say (W6)."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping

from bbb_numpy.studies.comparing import table

from .models import (
    BASE,
    EXACT,
    HOW,
    NOISE_HEAD,
    NOISE_LIMIT,
    SMOOTH,
    WEIGHTS,
    WHY,
    places_alone,
)
from .scores import EDGE, Average


def _rows(found: Mapping[str, Average], columns: Mapping[str, str], digits: int = 2) -> str:
    """Lay out mean (standard error) of `columns`, number by title."""
    rows = [
        [
            name,
            *(
                "{:.{d}f} ({:.{d}f})".format(*numbers[key], d=digits) if key in numbers else "-"
                for key in columns.values()
            ),
        ]
        for name, numbers in found.items()
    ]
    return table(["", *columns], rows)


def _paragraph(*sentences: str) -> str:
    return textwrap.fill(" ".join(sentences), 98, subsequent_indent="  ")


def scene_text(repeats: int) -> str:
    """Describe scene and training."""
    scene, setup = BASE.scene, BASE.setup
    (x, y), losses = scene.transmitters[0], [f"{b.wall_loss:g}" for b in scene.buildings]
    return _paragraph(
        f"Plane {scene.width:g} m x {scene.height:g} m, transmitter at ({x:g}, {y:g}) m:",
        f"P_T = {scene.power:g} dBm, P_0 = {scene.reference_loss:g} dB at",
        f"{scene.reference_distance:g} m, lambda = {scene.exponent:g}; {len(losses)} buildings of",
        f"{', '.join(losses)} dB for each wall on the straight line; shadowing",
        f"{scene.shadowing:g} dB. {BASE.count} receivers at random.",
        f"Network {'-'.join(map(str, (2, *setup.hidden, 1)))}, {setup.activation}, on x and y;",
        f"prior deviation {setup.prior_scale:g} and noise learned, in standardised units;",
        f"{setup.epochs} epochs of Adam. All tables: mean (standard error) of {repeats} data sets.",
    )


def side_text(side: Mapping[str, Average]) -> str:
    """Set MLE, MAP and VI side by side."""
    columns = {
        "RMSE dB": "rmse",
        "near jumps": "near",
        "elsewhere": "far",
        "nats/row": "log density",
        "in 95%": "coverage",
        "epistemic dB": "epistemic",
    }
    best = {
        "Least RMSE": min(side, key=lambda m: side[m]["rmse"][0]),
        "highest log density": max(side, key=lambda m: side[m]["log density"][0]),
        "coverage nearest 95%": min(side, key=lambda m: abs(side[m]["coverage"][0] - 0.95)),
    }
    return "\n".join(
        [
            _paragraph(
                "Side by side: RMSE to the map without shadowing; held-out log",
                "density and coverage of new receivers:",
            ),
            _rows(side, columns),
            "; ".join(f"{what}: {which}" for what, which in best.items()) + ".",
        ]
    )


def why_text(why: Mapping[str, Average], split: Mapping[str, tuple[float, float]]) -> str:
    """Say why a large error does not come with a large deviation."""
    columns = {
        "rank epist.": "rank epistemic",
        "rank total": "rank total",
        "if right": "rank if right",
        "RMSE near": "near",
        "RMSE far": "far",
        "total near": "total near",
        "total far": "total far",
    }
    means = {name: {k: m for k, (m, _) in numbers.items()} for name, numbers in why.items()}
    vi, exact = means[BASE.name], means[EXACT]
    lines = [
        "(a) 'The location that have large error prediction should have large variance, but why is",
        "not this situation?'",
        _paragraph(
            "Rank correlation of |error| over the map with the epistemic and the total deviation;",
            "what the former would be, were the truth a function drawn from the",
            "posterior; RMSE and",
            f"mean total deviation in dB within {EDGE:g} m of a jump and elsewhere:",
        ),
        _rows(why, columns),
        _paragraph(
            f"Where: {vi['edge share']:.0%} of the plane is within {EDGE:g} m of a",
            "jump (a shadow's",
            f"edge or a wall), and {vi['worst near']:.0%} of the worst tenth of the cells. RMSE of",
            f"VI there {vi['near']:.2f} dB, elsewhere {vi['far']:.2f}; epistemic deviation",
            f"{vi['epistemic near']:.2f} and {vi['epistemic far']:.2f}.",
        ),
    ]
    if split:
        (bias, spread), (bias_far, spread_far) = split["near"], split["far"]
        lines.append(
            _paragraph(
                f"Why: near jumps the mean of VI over data sets misses by {bias:.2f}",
                "dB, while fits",
                f"of different data sets differ by {spread:.2f} dB (elsewhere {bias_far:.2f} and",
                f"{spread_far:.2f}). A deviation over weights answers for the second, but",
                f"{bias**2 / (bias**2 + spread**2):.0%} of the squared error near",
                "jumps is the first, a bias that all fits share.",
            )
        )
    plain = [v.name for v in WHY if v.inputs is places_alone and v.name in why]
    ranked = sorted(plain, key=lambda name: -means[name]["rank total"])[:3]
    heads = [v.name for v in WHY if v.setup.likelihood is NOISE_HEAD and v.name in why]
    corners = [("VI", "VI, empty corner"), ("5 MAP", "5 MAP, empty corner")]
    lines += [
        _paragraph(
            "What can be asked: with the epistemic deviation exactly right the rank correlation",
            f"would be {vi['rank if right']:.2f} (deviation from truth to truth",
            f"{vi['rank if right, deviation']:.2f}), not 1: one error is one draw,",
            f"and the deviation varies little over the plane. VI has {vi['rank epistemic']:.2f}.",
        ),
        _paragraph(
            "What changes it: told x and y alone, the highest rank correlations with the total",
            "deviation are",
            ", ".join(f"{means[name]['rank total']:.2f} ({name})" for name in ranked) + ".",
            "A noise head puts into the aleatoric part what the mean cannot follow:",
            "total deviation near jumps over elsewhere is",
            ", ".join(f"{means[n]['total near'] / means[n]['total far']:.2f} ({n})" for n in heads)
            + f", {vi['total near'] / vi['total far']:.2f} without one.",
            "RMSE in the tenth of the cells of largest total deviation over that in the tenth of",
            "smallest:",
            ", ".join(f"{means[n]['tenths']:.2f} ({n})" for n in ("VI", "5 MLE", *heads)) + ".",
        ),
        _paragraph(
            "What it does see: without receivers in the corner x, y > 60 m the epistemic deviation",
            "there goes from",
            ", ".join(
                f"{means[a]['corner epistemic']:.2f} to {means[b]['corner epistemic']:.2f} dB "
                f"({a}; RMSE there {means[a]['corner error']:.2f} to "
                f"{means[b]['corner error']:.2f})"
                for a, b in corners
            )
            + ".",
        ),
        _paragraph(
            "Where there is no bias: without buildings the RMSE of VI is",
            f"{means[SMOOTH]['rmse']:.2f} dB and its epistemic deviation",
            f"{means[SMOOTH]['epistemic']:.2f}; with the right inputs and full rank",
            f"{exact['rmse']:.2f} and {exact['epistemic']:.2f}. The deviation then",
            "tells the size of",
            "the error; its place it can tell only as far as the deviation varies.",
        ),
    ]
    return "\n".join(lines)


def how_text(how: Mapping[str, Average]) -> str:
    """Say what lowers the error of the fit."""
    columns = {"RMSE dB": "rmse", "near jumps": "near", "elsewhere": "far"}
    *_, right, silent = how
    on_places = {v.name for v in HOW if v.inputs is places_alone and v.name in how}
    best = min(on_places, key=lambda name: how[name]["rmse"][0])
    scene = BASE.scene
    return "\n".join(
        [
            "(b) 'How to train a neural network that can approximate the simulated function",
            "perfectly?'",
            _paragraph(
                "Least squares (MLE with a fixed noise deviation); one thing changed",
                "at a time, then several, then the inputs. RMSE to the map without shadowing:",
            ),
            _rows(how, columns),
            _paragraph(
                f"Told x and y alone the best is {how[best]['rmse'][0]:.2f} dB ({best}),",
                f"{how[best]['near'][0]:.2f} near jumps: a network is continuous, the function is",
                "not. Told log10 d and the walls of each building, in which the",
                "function is linear,",
                f"{WEIGHTS} weights reach {how[right]['rmse'][0]:.2f} dB; the limit",
                "set by the noise",
                f"is {scene.shadowing:g} sqrt({WEIGHTS}/{BASE.count}) = {NOISE_LIMIT:.2f} dB.",
                f"Without noise: {how[silent]['rmse'][0]:.1e} dB.",
            ),
        ]
    )
