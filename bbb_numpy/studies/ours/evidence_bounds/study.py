"""The bounds around the evidence, on linear regression where all of them are known (D25, D28, G6).

For four q, from the prior to the posterior: ELBO, importance-weighted and Renyi bounds, and the
self-normalised estimate of the evidence upper bound, all against the number of samples.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from bbb_numpy.studies import linear_gaussian as exact

from . import plots, text
from .models import choices, problem
from .scores import COUNTS, measure, one_sample_gap

__all__ = ["reproduce"]


def reproduce(out: Path, seed: int = 0) -> str:
    """Measure, write ``evidence-bounds.png``, ``.json`` and ``.txt``, and return the text.

    Parameters
    ----------
    out : Path
        Folder, made if missing.
    seed : int
        Of the data and of all samples.
    """
    data_rng_seed, *seeds = np.random.SeedSequence(seed).spawn(6)
    data = problem(int(data_rng_seed.generate_state(1)[0]))
    truth = exact.exact(data)
    rngs = [np.random.default_rng(s) for s in seeds]
    asked = choices(truth, 1.0)
    cases = [
        measure(data, name, q, truth, rng)
        for (name, q), rng in zip(asked.items(), rngs[:-1], strict=True)
    ]
    gap = max(one_sample_gap(data, case.q, rngs[-1]) for case in cases)
    summary = text.summarise(cases, truth, data, gap)
    out.mkdir(parents=True, exist_ok=True)
    plots.bounds(cases, COUNTS).savefig(out / "evidence-bounds.png", dpi=100)
    (out / "evidence-bounds.txt").write_text(summary + "\n", encoding="utf-8")
    rows = [{**case._asdict(), "q": [part.tolist() for part in case.q]} for case in cases]
    found = {"log_evidence": truth.log_evidence, "counts": COUNTS, "cases": rows}
    (out / "evidence-bounds.json").write_text(
        json.dumps(found, indent=1, allow_nan=False) + "\n", encoding="utf-8"
    )
    return summary
