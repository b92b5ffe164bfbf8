"""Income tax per return by ZIP code and class of income: the regression that the paper left open.

Cross-validation keeps every ZIP code whole. Models differ in what they know of the mean and in
what they know of the noise; scores say which of the two mattered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bbb_numpy.progress import steps
from bbb_studies.comparing import (
    Claim,
    captioned,
    claims,
    plus_minus,
    table,
    table_of_columns,
    write,
)
from bbb_studies.data import income_tax as data
from bbb_studies.data.income_tax import Cells

from . import plots
from .models import MODELS, NUTS_NAME, Effort
from .scores import BASE, FOLDS, LARGE, SMALL, Scores, cross_validate, measure

__all__ = ["claims_of_the_paper", "facts", "reproduce"]


def reproduce(
    out: Path, seed: int = 0, *, effort: Effort | None = None, progress: bool | None = None
) -> str:
    """Run everything, write ``tax.png`` and ``numbers.json`` into `out`, return the tables."""
    cells = data.load()
    with steps(FOLDS * len(MODELS), progress) as done:
        results = cross_validate(cells, effort=effort, seed=seed, done=done)
    scores = measure(cells, results)
    found = {"seed": seed, "facts": facts(cells), "models": scores}
    write(out, {"tax": plots.draw(cells, results)}, found)
    return _tables(cells, scores)


def facts(cells: Cells) -> dict[str, Any]:
    """Return what the cells are, and how many rows were left out, by reason."""
    return {
        "cells": len(cells.y),
        "places": len(np.unique(cells.place)),
        "inputs": cells.x.shape[1],
        "dropped": cells.dropped,
        "small cells": int((cells.returns <= SMALL).sum()),
        "large cells": int((cells.returns > LARGE).sum()),
        "lowest tax": float(np.exp(cells.y.min())),
        "highest tax": float(np.exp(cells.y.max())),
    }


def _tables(cells: Cells, scores: Mapping[str, Scores]) -> str:
    every = scores.values()
    parts = {
        "Income tax per return, Vermont 2016, by cell: ZIP code x class of income. Target: its "
        "logarithm.\nFive folds, every ZIP code whole.": _cells(cells),
        "RMSE, CRPS: of the logarithm; median: of the absolute relative error; NLL: nats per cell; "
        "+- standard error\nby ZIP code; 50, 90, 99 %: coverage; KS: Kolmogorov's distance of the "
        "PIT x sqrt(cells), at 5 % 1.36.": _scores(scores),
        "Gained over linear regression, +- standard error by ZIP code.": table_of_columns(
            {
                "gained": list(scores),
                "NLL, nats": [plus_minus(*s.nll_gained, 3) for s in every],
                "CRPS, 1e-3": [plus_minus(*s.crps_gained, 1, 1e3) for s in every],
                "squared error, 1e-3": [plus_minus(*s.squared_error_gained, 2, 1e3) for s in every],
            }
        ),
        "By size of the cell: 90 % coverage; RMSE; learned noise (median). Epistemic: median "
        "deviation.": _by_size(scores),
        "Chains of NUTS: R-hat in function space (rank-normalised, of halved chains) over the "
        "cells of a fold.": _chains(scores),
    }
    judged = claims(
        "The paper leaves this regression open and prints nothing; s.e.: how far from none.",
        "the paper",
        claims_of_the_paper(scores),
    )
    return f"{captioned(parts)}\n\n{judged}"


def _cells(cells: Cells) -> str:
    found = facts(cells)
    rows = [
        ("cells", f"{found['cells']}"),
        ("ZIP codes", f"{found['places']}"),
        ("inputs", f"{found['inputs']}"),
        ("lowest tax of a return, 1000 USD", f"{found['lowest tax']:.2f}"),
        ("highest tax of a return, 1000 USD", f"{found['highest tax']:.0f}"),
        (f"small cells, {SMALL:g} returns or less", f"{found['small cells']}"),
        (f"large cells, more than {LARGE:g}", f"{found['large cells']}"),
        *((f"left out: {reason}", f"{count}") for reason, count in cells.dropped.items()),
    ]
    return table(("the data", "value"), rows)


def _scores(scores: Mapping[str, Scores]) -> str:
    every = scores.values()
    columns = {
        "model": list(scores),
        "RMSE": [f"{s.rmse:.4f}" for s in every],
        "median": [f"{s.median_relative_error:.1%}" for s in every],
        "NLL": [plus_minus(*s.nll, 3) for s in every],
        "CRPS 1e-3": [plus_minus(*s.crps, 1, 1e3) for s in every],
        "50 %": [f"{s.coverage['50']:.1%}" for s in every],
        "90 %": [f"{s.coverage['90']:.1%}" for s in every],
        "99 %": [f"{s.coverage['99']:.1%}" for s in every],
        "KS": [f"{s.kolmogorov:.1f}" for s in every],
    }
    return table_of_columns(columns)


def _by_size(scores: Mapping[str, Scores]) -> str:
    every = scores.values()
    columns = {
        "small, large cells": list(scores),
        "90 %, small": [f"{s.coverage_90_small_cells:.0%}" for s in every],
        "large": [f"{s.coverage_90_large_cells:.0%}" for s in every],
        "RMSE, small": [f"{s.error_small_cells:.3f}" for s in every],
        "large ": [f"{s.error_large_cells:.3f}" for s in every],
        "noise, small": [f"{s.noise_small_cells:.3f}" for s in every],
        "large  ": [f"{s.noise_large_cells:.3f}" for s in every],
        "epistemic, all": [f"{s.epistemic:.4f}" for s in every],
    }
    return table_of_columns(columns)


def _chains(scores: Mapping[str, Scores]) -> str:
    notes = {name: one.notes for name, one in scores.items() if "divergences" in one.notes[0]}
    columns = {
        "chains": list(notes),
        "divergences": [f"{sum(n['divergences'] for n in some):.0f}" for some in notes.values()],
        "largest R-hat: worst fold": [_r_hat(some, "largest", max) for some in notes.values()],
        "best": [_r_hat(some, "largest", min) for some in notes.values()],
        "median R-hat: worst": [_r_hat(some, "median", max) for some in notes.values()],
        "best ": [_r_hat(some, "median", min) for some in notes.values()],
    }
    reasons = {
        note["why no r-hat"] for some in notes.values() for note in some if "why no r-hat" in note
    }
    return "\n".join([table_of_columns(columns), *(f"no R-hat: {why}" for why in sorted(reasons))])


def _r_hat(
    notes: Sequence[Mapping[str, Any]], which: str, of_folds: Callable[[list[float]], float]
) -> str:
    """Return one of the folds' R-hats, of which None is infinite; or that there are none."""
    found = [note.get(f"r-hat, {which}", np.nan) for note in notes]
    value = of_folds([np.inf if one is None else one for one in found])
    return "-" if np.isnan(value) else f"{value:.2f}"


def claims_of_the_paper(scores: Mapping[str, Scores]) -> list[Claim]:
    """Judge what the regression left open can show: that networks and noise by cell gain."""
    best, noise = scores[NUTS_NAME], scores["linear, noise by cell, NUTS"]
    linear = scores[BASE]
    first = "the network with noise by cell gains over linear regression, nats"
    gains = {
        first: (best.nll_gained, 3, 1.0),
        "... by the noise alone, with a linear mean, nats": (noise.nll_gained, 3, 1.0),
        "... in squared error, 1e-3": (best.squared_error_gained, 2, 1e3),
    }
    small, large = linear.coverage_90_small_cells, linear.coverage_90_large_cells
    held = "one noise: 90 % intervals hold, in small cells"
    return [
        *(
            Claim(said, "more than 0", plus_minus(*gain, digits, scale), gain[0] / gain[1], True)
            for said, (gain, digits, scale) in gains.items()
        ),
        Claim(held, "< 90 %", f"{small:.0%}", small < 0.9, True),
        Claim("... in large ones", "> 90 %", f"{large:.0%}", large > 0.9, True),
    ]
