"""What the S&P 500 study says in words; every verdict follows from the numbers beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import NormalDist
from textwrap import fill
from typing import Any

import numpy as np

from bbb_numpy.studies.comparing import table

from .models import NUTS_NAME, VI_NAME

__all__ = ["summarise"]

SCORES = ("accuracy", "log loss", "Brier")


def summarise(
    facts: Mapping[str, float],
    numbers: Mapping[str, Mapping[str, Any]],
    walk: Any,
    second: Mapping[str, Any],
) -> str:
    """Return the text: a table, what follows from it, and a second set of prices."""
    head = (
        f"S&P 500: {facts['companies']} companies, {facts['days']} days. Next-day direction, "
        f"forecast {int(walk.year.min())} to {int(walk.year.max())}, refitted every year on all "
        f"that was known: {facts['rows tested']} rows on {facts['days tested']} days, "
        f"{facts['rises']:.2%} of them rises."
    )
    lines = [
        [
            name,
            f"{_percent(n['accuracy'])}",
            f"{_percent(n['accuracy gained'])}" if name != "climatology" else "-",
            f"{n['log loss'][0]:.4f}",
            f"{_milli(n['log loss gained'])}" if name != "climatology" else "-",
            f"{_milli(n['Brier gained'])}" if name != "climatology" else "-",
            f"{n['calibration error']:.3f} ({n['calibration error by chance']:.3f})",
        ]
        for name, n in numbers.items()
    ]
    columns = ("", "accuracy %", "gained %", "log loss", "gained 1e-3", "Brier gained 1e-3", "ECE")
    notes = (
        "+- is one standard error, clustered by day. Gained: against climatology on the same rows, "
        "positive is better. ECE: expected calibration error in ten bins of equal mass; in "
        "brackets what right probabilities would have by chance if rows were independent."
    )
    parts = [fill(head, 98), table(columns, lines), fill(notes, 98)]
    said = [*_statements(facts, numbers, walk), _again(second)]
    return "\n\n".join(parts + [fill(part, 98) for part in said])


def _again(second: Mapping[str, Any]) -> str:
    """Say what the baselines do on the second table."""
    gains = "; ".join(
        f"{name} {_percent(n['accuracy gained'])} % and {_milli(n['log loss gained'])} 1e-3 nats"
        for name, n in second["forecasters"].items()
        if name != "climatology"
    )
    first, last = second["years"]
    return (
        f"Again, on {second['companies']} companies ({second['dropped']} left out, not listed on "
        f"every day), {first} to {last}, baselines alone. Gained over climatology: {gains}. The "
        f"design effect is {second['design effect']:.0f}: {second['rows tested']} rows are worth "
        f"{second['rows tested'] / second['design effect']:.0f}."
    )


def _statements(
    facts: Mapping[str, float], numbers: Mapping[str, Mapping[str, Any]], walk: Any
) -> Sequence[str]:
    ratios = {
        (name, score): numbers[name][f"{score} gained"][0] / numbers[name][f"{score} gained"][1]
        for name in numbers
        for score in SCORES
        if name != "climatology"
    }
    once, all_of_them = (NormalDist().inv_cdf(1.0 - 0.025 / k) for k in (1, len(ratios)))

    def named(sign: float, limit: float) -> str:
        found = [
            f"{name} in {score} ({ratio:+.1f})"
            for (name, score), ratio in ratios.items()
            if sign * ratio > limit
        ]
        return ", ".join(found) or "nothing"

    verdict = (
        f"Better than climatology, in standard errors, beyond the {all_of_them:.2f} that one of "
        f"{len(ratios)} comparisons exceeds by chance in at most 5 %: "
        f"{named(1.0, all_of_them)}. Beyond {once:.2f}, which holds for one comparison planned "
        f"ahead: {named(1.0, once)}. Worse beyond {all_of_them:.2f}: {named(-1.0, all_of_them)}; "
        f"beyond {once:.2f}: {named(-1.0, once)}."
    )
    repeat = walk.results["last value"]
    reverse = (
        "The probabilities of 'last value' are those of the past: after a rise "
        f"{repeat.proba[repeat.up].mean():.3f}, after a fall {repeat.proba[~repeat.up].mean():.3f}."
        " Where the second is larger they speak against the rule that gave them."
    )
    naive = float(np.sqrt(walk.y.var() / len(walk.y)))
    clustered = f"{naive * facts['design effect'] ** 0.5:.2%}"
    cluster = (
        f"Companies of one day move together: the variance of a mean over rows is "
        f"{facts['design effect']:.1f} times that of independent rows, so that {len(walk.y)} rows "
        f"are worth {len(walk.y) / facts['design effect']:.0f}. The error of the share of rises is "
        f"{clustered}, not {naive:.2%}."
    )
    sampled = walk.results[NUTS_NAME]
    gap = np.abs(sampled.proba - walk.results[VI_NAME].proba)
    notes = sampled.notes
    chains = float(np.mean([note["between chains"] for note in notes]))
    posterior = (
        f"What the posterior knows: that there is little to know. Its probabilities have a "
        f"deviation of {sampled.proba.std():.3f} around {sampled.proba.mean():.3f}; those of VI "
        f"differ from those of NUTS by {gap.mean():.3f} on average, the chains of NUTS among each "
        f"other by {chains:.4f}; {sum(note['divergences'] for note in notes):.0f} divergences."
    )
    ignorance = (
        "What it does not know: that rows of one day are one event, since the likelihood takes "
        f"them as independent (the networks train on every company once in {facts['thinned']} "
        "days, which tempers that); that the market changes, for it takes 2010 and the day before "
        "yesterday as draws from one law; trading costs; and that these companies were "
        "chosen because they were there at the end."
    )
    leaking = (
        "No look-ahead: changing all later prices changes no bit of an earlier forecast (tested). "
        "With inputs one day too new, logistic regression is right in "
        f"{facts['accuracy with a planted leak']:.1%}: what a leak looks like."
    )
    return verdict, reverse, cluster, posterior, ignorance, leaking


def _percent(pair: Sequence[float]) -> str:
    return f"{100 * pair[0]:.2f} +- {100 * pair[1]:.2f}"


def _milli(pair: Sequence[float]) -> str:
    return f"{1e3 * pair[0]:+.2f} +- {1e3 * pair[1]:.2f}"
