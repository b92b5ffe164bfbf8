"""What the study of the coin prints; every number comes from the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .conjugate import coin_log_density
from .scores import Cell

__all__ = ["summarise"]

Array = NDArray[Any]


def summarise(
    cells: Mapping[str, Sequence[Cell]],
    single: Cell,
    paths: Mapping[str, Array],
    budget: tuple[int, int, int],
    truth: float,
) -> str:
    """Return a table of all posteriors, then what it shows; at most 100 columns."""
    every = [cell for row in cells.values() for cell in row]
    closed = [(c.gap, c.grid.log_evidence - c.exact.log_evidence) for c in every if c.exact]
    z_mean = [(c.sampled.mean - c.best.mean) / c.sampled.mean_error for c in every]
    z_dev = [(c.sampled.deviation - c.best.deviation) / c.sampled.deviation_error for c in every]
    chains, draws, _ = budget
    number, tosses = len(single.r), every[-1].heads + every[-1].tails
    lines = [
        fill(
            f"A coin with P(head) = {truth:g}, tossed {tosses} times. Posterior of r: closed form "
            f"where it exists, a grid of {number} cells, and Metropolis-Hastings (MH; {chains} "
            f"chains of {draws} draws). z: MH less the best of the others, in its standard errors.",
            98,
        ),
        "",
        f"{'prior':<25} {'h':>3} {'t':>3} {'mean':>8} {'sd':>7} {'log P(D)':>9} "
        f"{'grid off':>10} {'MH mean':>8} {'z':>5} {'MH sd':>7} {'z':>5}",
    ]
    for c, zm, zd in zip(every, z_mean, z_dev, strict=True):
        off = f"{abs(c.grid.mean - c.exact.mean):.0e}" if c.exact else "no formula"
        lines.append(
            f"{c.prior.title:<25} {c.heads:>3} {c.tails:>3} {c.best.mean:>8.5f} "
            f"{c.best.deviation:>7.5f} {c.best.log_evidence:>9.4f} {off:>10} "
            f"{c.sampled.mean:>8.5f} {zm:>+5.1f} {c.sampled.deviation:>7.5f} {zd:>+5.1f}"
        )
    largest = max(map(abs, [*z_mean, *z_dev]))
    formula = np.abs(single.density - np.exp(coin_log_density(single.r, 1, 0))).max()
    first, middle, last = (np.array([p[at] for p in paths.values()]) for at in (0, 10, -1))
    parts = [
        f"Grid against closed form: densities differ by at most {max(gap for gap, _ in closed):.0e}"
        f", log P(D) by {max(abs(off) for _, off in closed):.0e}"
        f". Metropolis-Hastings: the largest of {2 * len(every)} differences is {largest:.1f} "
        f"standard errors; acceptance {min(c.acceptance for c in every):.2f} to "
        f"{max(c.acceptance for c in every):.2f}.",
        "M18: one head under the uniform prior. The paper's 'p * 1' integrates to "
        f"{np.exp(single.grid.log_evidence):.6f}, which is P(D); divided by it, the posterior is "
        f"2p (its own formula (h+t+1)!/(h! t!) r^h (1-r)^t, off by {formula:.0e}). "
        f"Metropolis-Hastings needs p alone and finds the mean {single.sampled.mean:.4f} +- "
        f"{single.sampled.mean_error:.4f}; 2p has 2/3.",
        "Without conjugacy nothing changes but the formula: the grid and Metropolis-Hastings do "
        "not ask for it. A grid of as many cells for each of d numbers needs "
        f"{number}^d of them, chains do not.",
        f"The four priors have deviations {first[:, 1].min():.3f} to {first[:, 1].max():.3f}. The "
        f"posterior means differ by {np.ptp(middle[:, 0]):.3f} after 10 tosses and by "
        f"{np.ptp(last[:, 0]):.3f} after {tosses}, where one posterior deviation is "
        f"{last[:, 1].min():.3f} to {last[:, 1].max():.3f}; without {_farthest(paths)}, by "
        f"{np.ptp(_rest(paths)):.3f}.",
    ]
    return "\n".join([*lines, *(line for part in parts for line in ("", fill(part, 98)))])


def _farthest(paths: Mapping[str, Array]) -> str:
    """Name the prior whose last mean is farthest from the median of all."""
    median = np.median([path[-1, 0] for path in paths.values()])
    return max(paths, key=lambda title: abs(paths[title][-1, 0] - median))


def _rest(paths: Mapping[str, Array]) -> list[float]:
    return [path[-1, 0] for title, path in paths.items() if title != _farthest(paths)]
