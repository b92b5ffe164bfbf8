"""What the study of Occam's razor prints; every number comes from the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import fill

import numpy as np

from bbb_numpy.evaluation.model_checks import BayesFactor, in_words
from bbb_numpy.sampling.annealing import Annealed

from .models import LABELS, NOISE, POINTS, PRIOR, ROWS, WIDTH, Budget, Labelled, changes
from .scores import Measured, best_rival, divergences

__all__ = ["summarise"]


def summarise(
    models: Mapping[str, Labelled],
    checks: Sequence[tuple[str, int, Annealed]],
    measured: Sequence[Measured],
    budget: Budget,
) -> str:
    """Return the tables and what they show, at most 100 columns."""
    parts = [
        *_labels(models),
        "",
        *_divergences(models),
        "",
        fill(_checks(models, checks, budget), 98),
        "",
        *_regressions(measured, budget),
    ]
    return "\n".join(line.rstrip() for line in "\n".join(parts).splitlines())


def _labels(models: Mapping[str, Labelled]) -> list[str]:
    complexity = changes(LABELS)
    kinds = np.arange(POINTS)
    sizes = np.array([np.sum(complexity == c) for c in kinds])
    mass = {n: np.array([m.probability[complexity == c].sum() for c in kinds])
            for n, m in models.items()}  # fmt: skip
    exact = [name for name in models if not models[name].error.any()]
    off = max(abs(m.probability.sum() - 1.0) for m in models.values())
    network = models["network"]
    lines = [
        fill(
            f"(a) {POINTS} points, all {2**POINTS} label vectors; logistic, weights ~ "
            f"N(0, {PRIOR:g}^2). P(D|m) of one data set, on average, by the number of label "
            "changes along the line; * the most probable of the first three models.",
            98,
        ),
        "",
        f"{'changes':<8} {'sets':>4} " + " ".join(f"{name:>11}" for name in models),
    ]
    for c in kinds:
        each = {name: mass[name][c] / sizes[c] for name in models}
        winner = max(exact, key=lambda name: each[name])
        cells = [f"{each[n]:.2e}" + ("*" if n == winner else " ") for n in models]
        lines.append(f"{c:<8} {sizes[c]:>4} " + " ".join(f"{cell:>11}" for cell in cells))
    simple = {name: float(some[:2].sum()) for name, some in mass.items()}
    worst = float(np.max(network.error / network.probability))
    lines += [
        "",
        fill(
            f"Summed over all data sets every model has 1 (largest difference {off:.0e}): what a "
            "model spends on one it lacks on another. The line and the parabola by quadrature; "
            f"degree 7 exactly 2^-{POINTS}; the network 1-20-20-1 by its prior draws, "
            f"standard errors up to {worst:.0%} of a probability. Weights are no measure of "
            f"complexity: the network, with {network.model.layout.size} of them, spends "
            f"{simple['network']:.0%} of its probability on the {sizes[:2].sum()} data sets with "
            f"at most one change; degree 7, with {models['degree 7'].model.layout.size}, "
            f"{simple['degree 7']:.0%}.",
            98,
        ),
    ]
    return lines


def _divergences(models: Mapping[str, Labelled]) -> list[str]:
    table = divergences(models)
    least = min(table[m][o] for m in models for o in models if m != o)
    lines = [
        "On data from the model of the row, the model of the column loses on average (KL, nats):",
        f"{'':<9}" + " ".join(f"{name:>9}" for name in models),
    ]
    lines += [f"{m:<9}" + " ".join(f"{table[m][other]:>9.3f}" for other in models) for m in models]
    return [*lines, f"None gains: the least of the others is {least:.3f}."]


def _checks(
    models: Mapping[str, Labelled],
    checks: Sequence[tuple[str, int, Annealed]],
    budget: Budget,
) -> str:
    scores = []
    for name, which, run in checks:
        m = models[name]
        known, relative = m.probability[which], m.error[which] / m.probability[which]
        scores.append((run.log_evidence - np.log(known)) / np.hypot(run.error, relative))
    return (
        f"Annealed importance sampling ({2 * budget.chains} chains, {budget.steps // 2} powers) "
        f"of {len(checks)} of these numbers: differences from {min(scores):+.1f} to "
        f"{max(scores):+.1f} standard errors; standard errors "
        f"{min(r.error for *_, r in checks):.3f} to {max(r.error for *_, r in checks):.3f} nats."
    )


def _regressions(measured: Sequence[Measured], budget: Budget) -> list[str]:
    names = list(measured[0].found)
    lines = [
        fill(
            f"(b) Regressions of {ROWS} rows, noise {NOISE:g}, weights ~ N(0, "
            f"{WIDTH:g}^2). log P(D|m) in nats: the line 1-1 exactly; the networks 1-3-1 and "
            f"1-20-20-1 by annealing ({budget.chains} chains, {budget.steps} powers), +- standard "
            "errors. log B: of the model that made the data against the best other.",
            98,
        ),
        "",
        f"{'data from':<13} " + " ".join(f"{name:>13}" for name in names)
        + f" {'log B':>13}",
    ]  # fmt: skip
    wins, factors = 0, []
    for one in measured:
        _, factor = best_rival(one)
        wins += factor.log > 0
        factors.append(factor)
        cells = [f"{f.log_evidence:.1f}" + (f" +- {f.error:.1f}" if f.error else "")
                 for f in one.found.values()]  # fmt: skip
        lines.append(
            f"{one.source:<13} " + " ".join(f"{cell:>13}" for cell in cells)
            + f" {f'{factor.log:+.1f} +- {factor.error:.1f}':>13}  {_words(factor)}"
        )  # fmt: skip
    large = names[-1]
    paid = [m.found[m.source].log_evidence - m.found[large].log_evidence
            for m in measured if m.source != large]  # fmt: skip
    lost = [m.found[large].log_evidence - m.found[name].log_evidence
            for m in measured if m.source == large for name in names[:-1]]  # fmt: skip
    gaps = [f.log_evidence - f.lower for one in measured for f in one.found.values() if f.error]
    return [
        *lines,
        "",
        fill(
            f"The model that made the data has the highest evidence on {wins} of {len(measured)}. "
            f"The large network, on data of the others, is {min(paid):.1f} to {max(paid):.1f} nats "
            f"below the model that made them: the price of what else it could have fitted. The "
            f"others, on its data, are {min(lost):.1f} to {max(lost):.0f} nats below it. "
            f"Annealing's mean log weights are {min(gaps):.1f} to {max(gaps):.1f} nats below its "
            "estimates.",
            98,
        ),
    ]


def _words(factor: BayesFactor) -> str:
    words = in_words(factor.log).split(",")[0].removeprefix("not worth more than a ")
    return words if factor.log > 0 else f"{words}, for the other"
