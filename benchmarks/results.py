"""From times to the table, the notes below it and the JSON file."""

from __future__ import annotations

import importlib
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bbb_numpy.sampling.chains import usable

from .problems import Array, Problem
from .round_robin import Spread, spread

# Name of a ratio, numerator, denominator: keys of `Result.times`. Bars are
# for the usual form of a peer (one array per layer, default optimiser and generator); beside it
# stands the fastest form that we found.
RATIOS = (
    ("ours/floor", "ours", "floor"),
    ("ours/tight", "ours", "tight floor"),
    ("PyTorch/ours", "PyTorch usual", "ours"),
    ("PyTorch fastest/ours", "PyTorch", "ours"),
    ("JAX/ours", "JAX usual", "ours"),
    ("JAX fastest/ours", "JAX", "ours"),
    ("sklearn/ours", "scikit-learn", "ours"),
)


@dataclass(frozen=True)
class Result:
    """What one race gave.

    Parameters
    ----------
    problem : Problem
    times : mapping
        Seconds of a step in each round, per contestant (rounds,).
    chosen : mapping
        Which variant ran under the names 'PyTorch', 'PyTorch usual', 'JAX', 'JAX usual'.
    variants : mapping
        Medians (seconds) of all variants in the short race that chose.
    """

    problem: Problem
    times: Mapping[str, Array]
    chosen: Mapping[str, str]
    variants: Mapping[str, float]

    def ratios(self) -> dict[str, Spread]:
        """Quartiles of the ratios, each taken within a round; only those that ran."""
        return {
            name: spread(self.times[above] / self.times[below])
            for name, above, below in RATIOS
            if above in self.times and below in self.times
        }

    def met(self) -> dict[str, bool]:
        """Whether the median ratio meets its bar, for every ratio that has one and ran."""
        ratios = self.ratios()
        return {
            name: meets(name, ratios[name].median, bar)
            for name, bar in self.problem.bars
            if name in ratios
        }


def meets(name: str, ratio: float, bar: float) -> bool:
    """Judge a ratio: ours over something must not exceed the bar, others must reach it."""
    return ratio <= bar if name.startswith("ours/") else ratio >= bar


def table(results: list[Result]) -> list[list[str]]:
    """Return the rows of the printed table, header first; '-' where nothing ran."""
    head = ["network", "rows", "S", "ours us", "floor us", "tight us"]
    for name, _, _ in RATIOS:
        head += [name, "bar", "met"] if name in dict(results[0].problem.bars) else [name]
    return [head] + [_row(result) for result in results]


def _row(result: Result) -> list[str]:
    problem, ratios, met = result.problem, result.ratios(), result.met()
    bars = dict(problem.bars)
    row = [problem.name, str(problem.rows), str(problem.samples)]
    for name in ("ours", "floor", "tight floor"):
        row.append(_microseconds(result.times[name]) if name in result.times else "-")
    for name, _, _ in RATIOS:
        row.append(f"{ratios[name].median:.2f}" if name in ratios else "-")
        if name in bars:
            sign = "<=" if name.startswith("ours/") else ">="
            row.append(f"{sign} {bars[name]:g}")
            row.append({True: "yes", False: "NO", None: "-"}[met.get(name)])
    return row


def _microseconds(times: Array) -> str:
    return f"{1e6 * float(np.median(times)):.1f}"


def notes(result: Result) -> list[str]:
    """Say what the table leaves out: which variant of a peer ran, its usual form, ours late."""
    facts = []
    for name in ("PyTorch", "JAX"):
        usual = f"{name} usual"
        if name in result.chosen:
            fact = f"{result.chosen[name]} {_microseconds(result.times[name])} us"
            if result.chosen[usual] != result.chosen[name]:
                fact += f" (usual: {result.chosen[usual]} {_microseconds(result.times[usual])} us"
                if "ours" in result.times:
                    ratio = spread(result.times[usual] / result.times["ours"]).median
                    fact += f", {ratio:.2f} x ours"
                fact += ")"
            facts.append(fact)
    if "ours late" in result.times:
        facts.append(f"ours with rho in (-5, 1) {_microseconds(result.times['ours late'])} us")
    problem = result.problem
    where = f"{problem.name}, {problem.rows} rows, S = {problem.samples}"
    return [f"{where}: {'; '.join(facts)}"] if facts else []


def aligned(rows: list[list[str]]) -> str:
    """Join a table into text: first column to the left, the others to the right."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        lines.append("  ".join(cells).rstrip())
    lines.insert(1, "-" * max(len(line) for line in lines))
    return "\n".join(lines)


def as_json(results: list[Result], about: dict[str, Any]) -> dict[str, Any]:
    """Return everything measured as plain numbers; times in microseconds."""
    return {
        "about": about,
        "results": [
            {
                "network": list(result.problem.sizes),
                "rows": result.problem.rows,
                "samples": result.problem.samples,
                "microseconds": {
                    name: spread(1e6 * times)._asdict() for name, times in result.times.items()
                },
                "ratios": {name: ratio._asdict() for name, ratio in result.ratios().items()},
                "bars": dict(result.problem.bars),
                "met": result.met(),
                "chosen": dict(result.chosen),
                "variants_microseconds": {
                    name: 1e6 * median for name, median in result.variants.items()
                },
            }
            for result in results
        ],
    }


def machine() -> dict[str, Any]:
    """Return versions and numbers of threads; neither names nor paths of the machine."""
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    return {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "blas": f"{blas['name']} {blas['version']}",
        "cores": usable(),
        **_blas(),
        "dtype": "float32",
    }


def _blas() -> dict[str, Any]:
    """Return threads and kernels of NumPy's BLAS; nothing without threadpoolctl to ask.

    The kernels are those of a processor family, e.g. 'Haswell' or 'SkylakeX'; the variable
    OPENBLAS_CORETYPE chooses others than the processor's own.
    """
    try:
        threadpoolctl = importlib.import_module("threadpoolctl")
    except ImportError:
        return {"blas_threads": None, "blas_kernels": None}
    pools = [p for p in threadpoolctl.threadpool_info() if p["user_api"] == "blas"]
    return {
        "blas_threads": max((pool["num_threads"] for pool in pools), default=None),
        "blas_kernels": next((pool.get("architecture") for pool in pools), None),
    }
