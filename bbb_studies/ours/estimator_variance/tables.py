"""The tables of the study of gradient estimators."""

from __future__ import annotations

import re

import numpy as np

from ...comparing import Claim, claims, listed, table
from ..estimates import concise
from .models import SAMPLES
from .scores import STEPS, Noise, Study, order

__all__ = ["claims_of_the_derivations", "lay_out", "ratios"]

ZERO = 1e-20  # a relative variance that is rounding
UNBIASED = 2.5  # standard errors of a mean gradient, root mean square over correlated numbers


def lay_out(found: Study) -> str:
    """Return every number that is printed, and which results of the derivations are seen."""
    end, posterior = found.noises["network, end"], found.noises["linear, full rank"]
    best_first = sorted(end.items(), key=lambda item: item[1].cost.mean)
    spots = zip(*found.spots.values(), strict=True)
    bias = found.biases
    judged = f"0 is a variance below {ZERO:g}; 'equal' is within {UNBIASED:g} standard errors."
    return "\n\n".join(
        [
            f"Network 13-50-1, 32 rows of 256; linear regression, 40 rows; variance of {STEPS} "
            f"gradients\nof {SAMPLES} weight samples, relative (error of last digits).",
            ratios(found.noises),
            listed(
                "Linear regression at the full-rank optimum, where q is the posterior.",
                "estimator",
                ((name, posterior[name]) for name in order(posterior)),
                {"mu": lambda n: concise(*n.location), "factor": lambda n: concise(*n.scale)},
            ),
            listed(
                "Time of a step at the network's end, and variance x time, relative; best first.",
                "estimator",
                best_first,
                {
                    "time (us)": lambda n: f"{1e6 * n.seconds:.0f}",
                    "variance x time": lambda n: concise(*n.cost),
                },
            ),
            listed(
                "Mean gradients less the reference's, in their standard errors, root mean square.",
                "",
                (("least", min(bias)), ("most", max(bias)), ("mean", float(np.mean(bias)))),
                {"s.e.": lambda value: f"{value:.2f}"},
            ),
            listed(
                "Linear regression beside the optimum: deviations over the true gradient's size.",
                "samples",
                ((str(spot[0].samples), spot) for spot in spots),
                {
                    "effective": lambda spot: f"{spot[0].effective:.1f}",
                    "IWAE": lambda spot: f"{spot[0].deviation:.2f}",
                    "doubly reparameterised": lambda spot: f"{spot[1].deviation:.2f}",
                    "EUBO": lambda spot: f"{spot[2].deviation:.2f}",
                    "bias of EUBO": lambda spot: concise(spot[2].bias, spot[2].error),
                },
            ),
            listed(
                "EUBO at the network's end: deviation over the reparameterised one's.",
                "samples",
                ((str(spot.samples), spot) for spot in found.far),
                {
                    "effective": lambda spot: f"{spot.effective:.2f}",
                    "deviation": lambda spot: f"{spot.deviation:.2f}",
                },
            ),
            claims(judged, "derivations.md", claims_of_the_derivations(found)),
        ]
    )


def ratios(found: dict[str, dict[str, Noise]]) -> str:
    """Lay out the ratios of every place but the last, which full rank has to itself."""
    *places, _ = found
    rows = [
        [name, *(concise(*r, most=3) for place in places for r in found[place][name][:2])]
        for name in order(found[places[-2]])
    ]
    titles = [re.sub("^network, |, mean field$| way$", "", place) for place in places]
    head = [f"{title}, {block}" for title in titles for block in ("mu", "rho")]
    return table(["estimator", *head], rows)


def claims_of_the_derivations(found: Study) -> list[Claim]:
    """Compare with what D18-D26 say must come out."""
    pair = found.noises["linear, mean field"]["reparameterised ±"]
    posterior, end = found.noises["linear, full rank"], found.noises["network, end"]
    mu, rho = pair.location, pair.scale
    landing, score = (
        max(posterior[name].location.mean, posterior[name].scale.mean)
        for name in ("sticking the landing", "score, baseline")
    )
    scores = [end[name].location.mean for name in ("score function", "score, baseline")]
    far, bias = "{:.0f} > {:.0f}".format(*scores), max(found.biases)
    iwae, doubly = (
        found.spots[name][-1].deviation / found.spots[name][0].deviation
        for name in ("IWAE", "doubly")
    )
    regression = "antithetic pairs, linear regression at its optimum"
    off = abs(rho.mean - 2) / rho.error
    return [
        Claim("every mean is that of the reference", "equal", f"{bias:.2f} s.e.", bias < UNBIASED),
        Claim(f"{regression}, mu (D23)", "0", concise(*mu), mu.mean < ZERO),
        Claim(f"{regression}, rho (D23)", "2", concise(*rho), off),
        Claim("sticking the landing at the posterior (D20)", "0", f"{landing:.0e}", landing < ZERO),
        Claim("the score with its baseline, there (D20)", "0", f"{score:.0e}", score < ZERO),
        Claim("the score's variance, network's end (D20)", "> 1", far, scores[0] > scores[1] > 1),
        Claim("IWAE's deviation, most over one sample (D26)", "> 1", f"{iwae:.2f}", iwae > 1),
        Claim("the same, doubly reparameterised (D26)", "less", f"{doubly:.2f}", doubly < iwae),
    ]
