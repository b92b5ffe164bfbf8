"""The bounds around the evidence, on linear regression where all of them are known (D25, D28, G6).

For four q, from the prior to the posterior: ELBO, importance-weighted and Renyi bounds, and the
self-normalised estimate of the evidence upper bound, all against the number of samples.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bbb_numpy.progress import counted, steps
from bbb_studies import linear_gaussian as exact
from bbb_studies.comparing import write

from . import plots, tables
from .models import choices, problem
from .scores import COUNTS, Study, measure, one_sample_gap

__all__ = ["measure_all", "reproduce"]


def measure_all(seed: int, progress: bool | None = None) -> Study:
    """Draw the regression and measure every q."""
    data_rng_seed, *seeds = np.random.SeedSequence(seed).spawn(6)
    data = problem(int(data_rng_seed.generate_state(1)[0]))
    truth = exact.exact(data)
    *rngs, last = (np.random.default_rng(s) for s in seeds)
    asked = list(zip(choices(truth, 1.0).items(), rngs, strict=True))
    with steps(len(asked), progress) as done:
        cases = [measure(data, name, q, truth, rng) for (name, q), rng in counted(asked, done)]
    gap = max(one_sample_gap(data, case.q, last) for case in cases)
    return Study(data, truth.log_evidence, cases, gap)


def reproduce(out: Path, seed: int = 0, progress: bool | None = None) -> str:
    """Measure, write ``evidence-bounds.png`` and ``.json``, and return the tables."""
    found = measure_all(seed, progress)
    stored = {"log_evidence": found.log_evidence, "counts": COUNTS, "cases": found.cases}
    write(out, {"evidence-bounds": plots.bounds(found.cases, COUNTS)}, stored, "evidence-bounds")
    return tables.lay_out(found)
