"""What the study of gradient estimators prints; every verdict follows from the numbers."""

from __future__ import annotations

import numpy as np

from ..estimates import concise
from .models import REFERENCE, SAMPLES
from .scores import STEPS, Noise, Spot, order

__all__ = ["summarise", "table"]


def table(found: dict[str, dict[str, Noise]]) -> str:
    """Lay out the ratios of every place but the last, which full rank has to itself."""
    *places, _ = found
    cells = [["estimator", *("mu", "rho") * len(places)]]
    cells += [
        [name, *(concise(*r, most=3) for place in places for r in found[place][name][:2])]
        for name in order(found[places[-2]])
    ]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    gaps = ["", *("  ", " ") * len(places)]
    lines = [
        "".join(
            gap + (cell.rjust(width) if gap else cell.ljust(width))
            for gap, cell, width in zip(gaps, row, widths, strict=True)
        )
        for row in cells
    ]
    titles = [place.removeprefix("network, ") for place in places]
    groups = zip(titles, widths[1::2], widths[2::2], strict=True)
    head = " " * widths[0] + "".join(title.rjust(a + b + 3) for title, a, b in groups)
    return "\n".join([head, *lines])


def summarise(
    found: dict[str, dict[str, Noise]], spots: dict[str, list[Spot]], far: list[Spot]
) -> str:
    """Say what was measured; every verdict follows from the numbers beside it."""
    *_, end_name, _, last_name = found
    end, last = found[end_name], found[last_name]
    paid = sorted(end, key=lambda name: end[name].cost.mean)
    zero = last["sticking the landing"]
    bias = [n.bias for rows in found.values() for name, n in rows.items() if name != REFERENCE]
    lines = [
        f"Variance of the gradient with {SAMPLES} weight samples per step, relative to the "
        f"{REFERENCE} one,",
        "summed over mu and over rho; ± draws the samples as an antithetic pair. In brackets the "
        "standard",
        f"error of the last digits, from {STEPS} gradients each. Network 13-50-1, 32 rows of 256, "
        "at the start,",
        "half way and at the end of training; linear regression, 40 rows, at the mean-field "
        "optimum. By",
        "falling variance at the network's end.",
        "",
        table(found),
        "",
        "Linear regression at the full-rank optimum, where q is the posterior (mu, factor):",
        *(
            f"  {name:<{max(map(len, last))}}  {concise(*last[name].location):>9}  "
            f"{concise(*last[name].scale):>9}"
            for name in order(last)
        ),
        f"  Sticking the landing there: variance {max(zero.location.mean, zero.scale.mean):.0e} "
        "of the reparameterised, which is rounding.",
        "",
        "Time of a step at the network's end, and variance of all numbers x time; the error is "
        "that of the\nvariance alone. Best first:",
        *(
            f"  {name:<{max(map(len, end))}}  {1e6 * end[name].seconds:6.0f} us  "
            f"{concise(*end[name].cost):>9}"
            for name in paid
        ),
        "",
        "Differences of mean gradients to the reparameterised one, in their own standard errors "
        "and root mean",
        f"square over all numbers (1 if there is no bias): {min(bias):.2f} to {max(bias):.2f}, "
        f"mean {np.mean(bias):.2f}.",
        "",
        "Against the number of samples, on linear regression beside the optimum; deviations "
        "relative to the",
        "size of the true gradient, the EUBO's bias likewise:",
        "samples  effective  IWAE  IWAE, doubly reparameterised  EUBO  bias of EUBO",
        *(
            f"{plain.samples:7d}  {plain.effective:9.1f}  {plain.deviation:4.2f}  "
            f"{doubly.deviation:28.2f}  {eubo.deviation:4.2f}  "
            f"{concise(eubo.bias, eubo.error):>12}"
            for plain, doubly, eubo in zip(*spots.values(), strict=True)
        ),
        f"The first and the last row: IWAE's deviation times "
        f"{spots['IWAE'][-1].deviation / spots['IWAE'][0].deviation:.2f}, doubly reparameterised "
        f"times {spots['doubly'][-1].deviation / spots['doubly'][0].deviation:.2f}.",
        "On the network's end the EUBO's weights leave "
        + ", ".join(f"{s.effective:.2f} of {s.samples}" for s in far)
        + " samples;",
        "its deviation is "
        + ", ".join(f"{s.deviation:.2f}" for s in far)
        + " times that of the reparameterised gradient with as many.",
    ]
    return "\n".join(lines)
