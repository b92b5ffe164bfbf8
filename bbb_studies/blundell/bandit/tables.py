"""The tables of the mushroom bandit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from bbb_studies.comparing import Claim, claims, listed

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
    others = [name for name in numbers if name != THOMPSON and THOMPSON in numbers]
    return "\n\n".join(
        [
            listed(
                "The game and the training; noise in units of reward.",
                "setting",
                ({"seed": seed} | asdict(settings)).items(),
                {"value": str},
            ),
            _regrets(settings, numbers),
            listed(
                f"Regret beyond that of {THOMPSON}, run by run: mean +- standard error.",
                "agent",
                ((name, name) for name in others),
                {
                    "whole game": lambda name: _pair(*_gap(numbers, name, "regret"), "+"),
                    "last tenth": lambda name: _pair(
                        *_gap(numbers, name, "regret of the last tenth"), "+"
                    ),
                },
            ),
            _fasts(numbers),
            listed(
                "Processor time of all runs.",
                "agent",
                ({**seconds, "together": sum(seconds.values())}).items(),
                {"minutes": lambda spent: f"{spent / 60:.1f}"},
            ),
            claims("Blundell et al. 2015, Section 5.3.", "the paper", claims_of_the_paper(numbers)),
        ]
    )


def _regrets(settings: Settings, numbers: Numbers) -> str:
    """Lay out regrets and mistakes; an edible mushroom left costs 5, a poisonous one eaten 15."""

    def of(key: str) -> Callable[[Mapping[str, Any]], str]:
        return lambda n: _pair(*mean_and_error(n[key]))

    def share(what: str, among: str) -> Callable[[Mapping[str, Any]], str]:
        def shown(n: Mapping[str, Any]) -> str:
            most = sum(n[f"{among} shown in the last tenth"])
            wrong = sum(n[f"{among} {what} in the last tenth"])
            return f"{100.0 * wrong / most:.2f} %" if most else "none shown"

        return shown

    return listed(
        "Regret, 5 an edible one left, 15 a poisonous one eaten; mistakes of the last tenth.",
        "mean +- standard error",
        numbers.items(),
        {
            "regret": of("regret"),
            "realised": of("realised regret"),
            f"first {settings.dense:,}": of("regret while trained densely"),
            f"last {max(settings.interactions // 10, 1):,}": of("regret of the last tenth"),
            "poisonous eaten": share("eaten", "poisonous"),
            "edible left": share("left", "edible"),
        },
    )


def _pair(mean: float, error: float, sign: str = "") -> str:
    return f"{mean:{sign},.0f}" + ("" if np.isnan(error) else f" +- {error:,.0f}")


def _gap(numbers: Numbers, name: str, key: str) -> tuple[float, float]:
    """Return the regret beyond that of Thompson sampling, run by run, and its error."""
    return mean_and_error(np.subtract(numbers[name][key], numbers[THOMPSON][key]).tolist())


def _fasts(numbers: Numbers) -> str:
    def long(fasts: Sequence[tuple[int, int]]) -> list[str]:
        return [f"{a + 1:,} to {b:,}" for a, b in fasts if b - a >= FAST]

    return listed(
        f"Longest stretch without eating of each run; {FAST} or more mushrooms, counted from 1.",
        "agent",
        ((name, n["longest fast"]) for name, n in numbers.items()),
        {
            "longest": lambda fasts: f"{max(b - a for a, b in fasts):,}",
            "runs": lambda fasts: f"{len(long(fasts))} of {len(fasts)}",
            "from, to": lambda fasts: "; ".join(long(fasts)),
        },
    )


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
        held = first >= PAPER_FAST
        shown = f"about {PAPER_FAST:,}"
        rows.append(Claim(f"{GREEDY} eats nothing at first", shown, f"{first:,}", held))
    return rows
