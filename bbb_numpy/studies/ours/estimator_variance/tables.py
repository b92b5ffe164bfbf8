"""The tables of the study of gradient estimators."""

from __future__ import annotations

import numpy as np

from ...comparing import Claim, captioned, claims, table
from ..estimates import concise
from .models import REFERENCE, SAMPLES
from .scores import STEPS, Noise, Study, order

__all__ = ["claims_of_the_derivations", "lay_out", "ratios"]

ZERO = 1e-20  # a relative variance that is rounding
UNBIASED = 2.5  # standard errors of a mean gradient, root mean square over correlated numbers


def lay_out(found: Study) -> str:
    """Return every number that is printed, and which results of the derivations are seen."""
    bias = found.biases
    return captioned(
        {
            f"Variance relative to the {REFERENCE} gradient, {SAMPLES} weight samples, {STEPS} "
            "gradients;\nmean(standard error of the last digits); ±: an antithetic pair.": ratios(
                found.noises
            ),
            "Linear regression at the full-rank optimum, where q is the posterior.": _full_rank(
                found.linear
            ),
            "Time of a step at the network's end, and variance x time, relative; best first.": (
                _costs(found.end)
            ),
            "Mean gradients less the reference's, in their standard errors, root mean square.": (
                table(
                    ("least", "most", "mean"),
                    [[f"{min(bias):.2f}", f"{max(bias):.2f}", f"{np.mean(bias):.2f}"]],
                )
            ),
            "Linear regression beside the optimum: deviations over the true gradient's size.": (
                _against_samples(found)
            ),
            "EUBO at the network's end: deviation over the reparameterised one's.": _far(found),
            f"0 is a variance below {ZERO:g}; 'equal' is within {UNBIASED:g} standard errors.": (
                claims("derivations.md", claims_of_the_derivations(found))
            ),
        }
    )


def ratios(found: dict[str, dict[str, Noise]]) -> str:
    """Lay out the ratios of every place but the last, which full rank has to itself."""
    *places, _ = found
    rows = [
        [name, *(concise(*r, most=3) for place in places for r in found[place][name][:2])]
        for name in order(found[places[-2]])
    ]
    titles = [place.removeprefix("network, ").removesuffix(", mean field") for place in places]
    head = [f"{title}, {block}" for title in titles for block in ("mu", "rho")]
    return table(["estimator", *head], rows)


def _full_rank(last: dict[str, Noise]) -> str:
    rows = [
        [name, concise(*last[name].location), concise(*last[name].scale)] for name in order(last)
    ]
    return table(("estimator", "mu", "factor"), rows)


def _costs(end: dict[str, Noise]) -> str:
    rows = [
        [name, f"{1e6 * noise.seconds:.0f}", concise(*noise.cost)]
        for name, noise in sorted(end.items(), key=lambda item: item[1].cost.mean)
    ]
    return table(("estimator", "time (us)", "variance x time"), rows)


def _against_samples(found: Study) -> str:
    rows = [
        [
            f"{plain.samples}",
            f"{plain.effective:.1f}",
            f"{plain.deviation:.2f}",
            f"{doubly.deviation:.2f}",
            f"{eubo.deviation:.2f}",
            concise(eubo.bias, eubo.error),
        ]
        for plain, doubly, eubo in zip(*found.spots.values(), strict=True)
    ]
    head = ("samples", "effective", "IWAE", "doubly reparameterised", "EUBO", "bias of EUBO")
    return table(head, rows)


def _far(found: Study) -> str:
    rows = [[f"{s.samples}", f"{s.effective:.2f}", f"{s.deviation:.2f}"] for s in found.far]
    return table(("samples", "effective", "deviation"), rows)


def claims_of_the_derivations(found: Study) -> list[Claim]:
    """Compare with what D18-D26 say must come out."""
    pair, landing = found.mean_field["reparameterised ±"], found.linear["sticking the landing"]
    zero = max(landing.location.mean, landing.scale.mean)
    iwae, doubly = (
        found.spots[name][-1].deviation / found.spots[name][0].deviation
        for name in ("IWAE", "doubly")
    )
    return [
        Claim(
            "every estimator has the mean of the reference",
            "equal",
            f"{max(found.biases):.2f} s.e.",
            max(found.biases) < UNBIASED,
        ),
        Claim(
            "antithetic pairs on linear regression, mu (D23)",
            "0",
            concise(*pair.location),
            pair.location.mean < ZERO,
        ),
        Claim(
            "antithetic pairs on linear regression, rho (D23)",
            "2",
            concise(*pair.scale),
            abs(pair.scale.mean - 2) / pair.scale.error,
        ),
        Claim("sticking the landing at the posterior (D20)", "0", f"{zero:.0e}", zero < ZERO),
        Claim("IWAE's deviation, most over one sample (D26)", "> 1", f"{iwae:.2f}", iwae > 1),
        Claim("the same, doubly reparameterised (D26)", "less", f"{doubly:.2f}", doubly < iwae),
    ]
