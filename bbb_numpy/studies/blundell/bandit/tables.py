"""The tables of the mushroom bandit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bbb_numpy.studies.comparing import Claim, captioned, claims, table

from .models import AGENTS, Settings

__all__ = ["claims_of_the_paper", "lay_out", "mean_and_error"]

Numbers = Mapping[str, Mapping[str, Any]]
THOMPSON, GREEDY, OFTEN = AGENTS[0].name, AGENTS[2].name, AGENTS[4].name
FAST = 100  # interactions without eating that are worth a word: half of them show edible ones
FLAT = 0.05  # of the regret: half of what a tenth would have if it grew evenly
PAPER_FAST = 1000  # mushrooms of which the paper's greedy agent ate none, "about"


def mean_and_error(values: Sequence[float]) -> tuple[float, float]:
    """Return the mean over runs and its standard error, nan from one run."""
    one = np.asarray(values, float)
    error = one.std(ddof=1) / np.sqrt(len(one)) if len(one) > 1 else np.nan
    return float(one.mean()), float(error)


def lay_out(seed: int, settings: Settings, numbers: Numbers, seconds: Mapping[str, float]) -> str:
    """Return every number that is printed, and which claims of the paper hold."""
    parts = {
        "The game and the training; in brackets what the paper prints.": _settings(seed, settings),
        "Regret: mean +- standard error over runs; mistakes of the last tenth.": _regrets(
            settings, numbers
        ),
        f"Regret beyond that of {THOMPSON}, run by run: mean +- standard error.": _beyond(numbers),
        f"Longest stretch without eating of each run; {FAST} or more mushrooms, counted from 1.": (
            _fasts(numbers)
        ),
        "Processor time of all runs.": table(
            ("agent", "minutes"),
            [[name, f"{spent / 60:.1f}"] for name, spent in seconds.items()]
            + [["together", f"{sum(seconds.values()) / 60:.1f}"]],
        ),
        "Blundell et al. 2015, Section 5.3.": claims("the paper", claims_of_the_paper(numbers)),
    }
    return captioned(parts)


def _settings(seed: int, settings: Settings) -> str:
    rows = {
        "mushrooms [50,000]": f"{settings.interactions:,}",
        "runs, from seed [5]": f"{settings.runs}, {seed}",
        "hidden layers [100, 100]": ", ".join(map(str, settings.hidden)),
        "interactions remembered [4,096]": f"{settings.memory:,}",
        "minibatches, rows [64, 64]": f"{settings.steps}, {settings.batch}",
        "trained after each of the first [all]": f"{settings.dense:,}",
        "then once every": f"{settings.sparse}",
        "noise deviation (units of reward) [-]": f"{settings.noise:g}",
        "prior deviation [-]": f"{settings.prior_scale:g}",
        "learning rate [-]": f"{settings.learning_rate:g}",
        "learning rate, point estimates [-]": f"{settings.point_learning_rate:g}",
    }
    return table(("setting", "value"), list(rows.items()))


def _regrets(settings: Settings, numbers: Numbers) -> str:
    columns = {
        "regret": "regret",
        "realised": "realised regret",
        f"first {settings.dense:,}": "regret while trained densely",
        f"last {max(settings.interactions // 10, 1):,}": "regret of the last tenth",
    }
    rows = [
        [
            name,
            *(_pair(*mean_and_error(n[key])) for key in columns.values()),
            _share(n, "poisonous eaten in the last tenth", "poisonous shown in the last tenth"),
            _share(n, "edible left in the last tenth", "edible shown in the last tenth"),
        ]
        for name, n in numbers.items()
    ]
    return table(["agent", *columns, "poisonous eaten", "edible left"], rows)


def _pair(mean: float, error: float, sign: str = "") -> str:
    return f"{mean:{sign},.0f}" + ("" if np.isnan(error) else f" +- {error:,.0f}")


def _share(n: Mapping[str, Any], what: str, of: str) -> str:
    shown = sum(n[of])
    return f"{100.0 * sum(n[what]) / shown:.2f} %" if shown else "none shown"


def _gap(numbers: Numbers, name: str, key: str) -> tuple[float, float]:
    """Return the regret beyond that of Thompson sampling, run by run, and its error."""
    return mean_and_error(np.subtract(numbers[name][key], numbers[THOMPSON][key]).tolist())


def _beyond(numbers: Numbers) -> str:
    others = [name for name in numbers if name != THOMPSON and THOMPSON in numbers]
    keys = ("regret", "regret of the last tenth")
    rows = [
        [name, *(_pair(*_gap(numbers, name, key), sign="+") for key in keys)] for name in others
    ]
    return table(("agent", "whole game", "last tenth"), rows)


def _fasts(numbers: Numbers) -> str:
    rows = []
    for name, n in numbers.items():
        fasts = n["longest fast"]
        long = [f"{a + 1:,} to {b:,}" for a, b in fasts if b - a >= FAST]
        most = max(b - a for a, b in fasts)
        rows.append([name, f"{most:,}", f"{len(long)} of {len(fasts)}", "; ".join(long)])
    return table(("agent", "longest", "runs", "from, to"), rows)


def claims_of_the_paper(numbers: Numbers) -> list[Claim]:
    """Judge what the paper reports, of the agents that played."""
    rows = []
    if {OFTEN, THOMPSON} <= set(numbers):
        mean, error = _gap(numbers, OFTEN, "regret")
        said, seen = f"{OFTEN} over-explores: regret beyond {THOMPSON}", 2 * np.nan_to_num(error)
        rows.append(Claim(said, "> 0", _pair(mean, error, "+"), bool(mean > seen)))
    if THOMPSON in numbers:
        regret, last = (sum(numbers[THOMPSON][k]) for k in ("regret", "regret of the last tenth"))
        share = last / regret if regret else 0.0
        said = f"regret of {THOMPSON}, share of the last tenth"
        rows.append(Claim(said, "almost flat", f"{share:.1%}", share < FLAT))
    if GREEDY in numbers:
        first = max((b for a, b in numbers[GREEDY]["longest fast"] if a < FAST), default=0)
        rows.append(
            Claim(
                f"{GREEDY} eats nothing at first", f"about {PAPER_FAST:,}", f"{first:,}",
                first >= PAPER_FAST,
            )
        )  # fmt: skip
    return rows
