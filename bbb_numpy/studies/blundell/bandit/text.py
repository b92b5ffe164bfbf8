"""What the mushroom bandit says in words; every verdict follows from numbers beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import Any

import numpy as np

from bbb_numpy.studies.comparing import table

from .models import AGENTS, Settings

__all__ = ["mean_and_error", "summarise"]

Numbers = Mapping[str, Mapping[str, Any]]
THOMPSON, GREEDY = AGENTS[0].name, AGENTS[2].name
FAST = 100  # interactions without eating that are worth a word: half of them show edible ones


def mean_and_error(values: Sequence[float]) -> tuple[float, float]:
    """Return the mean over runs and its standard error, nan from one run."""
    one = np.asarray(values, float)
    error = one.std(ddof=1) / np.sqrt(len(one)) if len(one) > 1 else np.nan
    return float(one.mean()), float(error)


def summarise(seed: int, settings: Settings, numbers: Numbers, seconds: Mapping[str, float]) -> str:
    """Return the text: what was played, a table, and what follows from it."""
    dense = settings.dense
    head = (
        f"Mushroom bandit (Blundell et al. 2015, Section 5.3), {settings.interactions:,} "
        f"mushrooms, {settings.runs} runs of every agent from seed {seed}; the agents of a run "
        "see the same mushrooms. Regret: the oracle's expected reward minus the agent's, 5 for an "
        "edible mushroom left, 15 for a poisonous one eaten. The paper takes the rewards as they "
        "fell, in the column 'realised'; both have the same mean."
    )
    columns = (
        "mean +- standard error",
        "regret",
        "realised",
        f"first {dense:,}",
        "last tenth",
        "poisonous eaten",
        "edible left",
    )
    lines = []
    for name, n in numbers.items():
        lines.append(
            [
                name,
                *(
                    _pair(n[key])
                    for key in (
                        "regret",
                        "realised regret",
                        "regret while trained densely",
                        "regret of the last tenth",
                    )
                ),
                _share(n, "poisonous eaten in the last tenth", "poisonous shown in the last tenth"),
                _share(n, "edible left in the last tenth", "edible shown in the last tenth"),
            ]
        )
    notes = (
        f"first {dense:,}: regret of these; last tenth: regret of the last "
        f"{max(settings.interactions // 10, 1):,}, in which the last two columns count."
    )
    parts = [fill(head, 98), table(columns, lines), fill(notes, 98)]
    said = [*_statements(numbers), _fasts(numbers), _protocol(settings), _time(seconds)]
    return "\n\n".join(parts + [fill(part, 98) for part in said if part])


def _pair(values: Sequence[float]) -> str:
    mean, error = mean_and_error(values)
    return f"{mean:,.0f}" if np.isnan(error) else f"{mean:,.0f} +- {error:,.0f}"


def _share(n: Mapping[str, Any], what: str, of: str) -> str:
    shown = sum(n[of])
    return f"{100.0 * sum(n[what]) / shown:.2f} %" if shown else "none shown"


def _statements(numbers: Numbers) -> list[str]:
    """Compare every agent with Thompson sampling, run by run."""
    if THOMPSON not in numbers or len(numbers) < 2:
        return []
    out = []
    ours = numbers[THOMPSON]
    for key, when in (
        ("regret", "over the whole game"),
        ("regret of the last tenth", "in the last tenth"),
    ):
        said = []
        for name, n in numbers.items():
            if name != THOMPSON:
                gap = np.subtract(n[key], ours[key])
                mean, error = mean_and_error(gap)
                said.append(f"{name} {mean:+,.0f}{_spread(mean, error)}")
        out.append(f"Regret beyond that of {THOMPSON}, run by run, {when}: {'; '.join(said)}.")
    return out


def _spread(mean: float, error: float) -> str:
    if np.isnan(error):
        return " (one run)"
    beyond = "beyond" if abs(mean) > 2 * error else "within"
    return f" +- {error:,.0f} ({beyond} 2 standard errors)"


def _fasts(numbers: Numbers) -> str:
    """Say who stopped eating, and when."""
    said = []
    for name, n in numbers.items():
        long = [(a, b) for a, b in n["longest fast"] if b - a >= FAST]
        if long:
            spans = ", ".join(f"{a + 1:,} to {b:,}" for a, b in long)
            said.append(f"{name} {spans} ({len(long)} of {len(n['longest fast'])} runs)")
        else:
            most = max(b - a for a, b in n["longest fast"])
            said.append(f"{name} never for more than {most} in a row")
    return (
        f"Stretches of {FAST} mushrooms or more of which an agent ate none, the longest of each "
        f"run: {'; '.join(said)}."
    )


def _protocol(settings: Settings) -> str:
    """Say what the paper did and found, and what is done otherwise here."""
    chosen = (
        " These were chosen on games of 1,000 to 10,000 mushrooms of other seeds, 9001 to 9003, "
        "among noise 0.25 to 5, prior 0.1 to 0.5, rates of 1e-3 and 3e-3; point estimates: 3e-4 to "
        "3e-3."
        if settings == Settings()
        else ""
    )
    return (
        "The paper: 50,000 mushrooms, five runs, 64 minibatches of 64 after every mushroom, the "
        "last 4,096 interactions as data, two hidden layers of 100 rectified linear units; for a "
        "decision the outputs of two weight vectors are averaged. It reports that 5 % greedy "
        "over-explores, that pure greedy ate nothing for about the first 1,000 and then did much "
        "better, and that Bayes by Backprop explored from the beginning and then had an almost "
        "flat regret; its prior, noise and rates for this task are not printed. Here: "
        f"{settings.interactions:,} mushrooms, {settings.runs} runs, {settings.steps} minibatches "
        f"of {settings.batch} after each of the first {settings.dense:,} mushrooms, then once "
        f"every {settings.sparse}. Bayes by Backprop: one weight sample per minibatch, which "
        f"pays {settings.batch} / (interactions remembered) of the KL, in closed form; N(0, "
        f"{settings.prior_scale:g}^2) prior; Gaussian noise fixed at {settings.noise:g} units of "
        "reward, a setting and no estimate: rewards of poisonous mushrooms deviate by 20, all "
        f"others by 0. Adam at {settings.learning_rate:g}; point estimates: maximum likelihood, "
        f"Adam at {settings.point_learning_rate:g}.{chosen}"
    )


def _time(seconds: Mapping[str, float]) -> str:
    each = "; ".join(f"{name} {spent / 60:.1f}" for name, spent in seconds.items())
    return (
        f"Processor time in minutes, all runs: {each}. Together {sum(seconds.values()) / 60:.1f}."
    )
