"""What the study of Krasser's post says; every verdict follows from the numbers beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from textwrap import fill

from .models import FAST, FUNCTIONS, NOISE, POINTS, SETTINGS, Domain, Numbers

__all__ = ["summarise"]

MUCH = 1.5  # "much higher" is taken as at least this many times


def summarise(
    numbers: Mapping[str, Sequence[Numbers]], raised: Mapping[str, Domain], epochs: int
) -> str:
    """Return the text: a table of the first seed, then what the post says, judged."""
    head = [
        "Krasser: 32 points of 10 sin(2 pi x) + N(0, 1), 1-20-20-1 with ReLU, prior of",
        f"two Gaussians, Adam, {epochs} epochs of one batch, one weight sample per step.",
        "",
        *_table({name: some[0] for name, some in numbers.items()}),
        "",
        "F = KL - log lik in nats, the KL at full weight, mean of the last tenth of training.",
        "rmse: of the predictive mean to the truth, within the data. holds y: probability that a",
        "new y there lies within 1.96 total deviations. epistemic: mean deviation, within the data",
        "and on the rest of [-1.5, 1.5]. Below, (a to b) is the range over "
        f"{_count(numbers['post'], 'seed')}, the first",
        "of them in the table.",
    ]
    said = [*_fits(numbers), *_noise(numbers), *_domains(raised)]
    return "\n".join([*head, *(line for part in said for line in ("", fill(part, 98)))])


def _table(numbers: Mapping[str, Numbers]) -> list[str]:
    lines = [
        f"{'':<19} {'F':>6} {'KL':>6} {'-log lik':>8} {'rmse':>5} {'holds y':>7} {'epistemic':>11} "
        f"{'noise':>5} {'pi':>5} {'sigma1':>6} {'sigma2':>6}"
    ]
    for name, n in numbers.items():
        deviations = f"{n.epistemic_inside:.2f}, {n.epistemic_outside:.2f}"
        lines.append(
            f"{SETTINGS[name].title:<19} {n.free_energy:>6.1f} {n.kl:>6.1f} {n.nll:>8.1f} "
            f"{n.rmse:>5.2f} {n.coverage:>7.1%} {deviations:>11} {n.noise:>5.2f} {n.pi:>5.3f} "
            f"{n.sigma1:>6.3f} {n.sigma2:>6.3f}"
        )
    return lines


def _fits(numbers: Mapping[str, Sequence[Numbers]]) -> list[str]:
    post, fixed = numbers["post"], numbers["fixed"]
    first = post[0]
    higher = {name: [n.ratio for n in some] for name, some in numbers.items()}
    gain = [b.free_energy - a.free_energy for a, b in zip(post, fixed, strict=True)]
    return [
        f"Time: {first.seconds_training:.2f} s of training, {first.seconds_functions:.2f} s for "
        f"{FUNCTIONS} functions at {POINTS} points ({_span(post, _seconds)} s together).",
        "'Epistemic uncertainty is much higher in regions of no training data', taken as at least "
        f"{MUCH} times in every seed. Learned prior: {_verdict(min(higher['post']) >= MUCH)}, "
        f"{_range(higher['post'])} times. Prior fixed at its start: "
        f"{_verdict(min(higher['fixed']) >= MUCH)}, {_range(higher['fixed'])} times.",
        f"The learned prior ends with sigma2 = {first.sigma2:.2f} "
        f"({_span(post, lambda n: n.sigma2)}) for most weights, from 0.1, and its free energy is "
        f"{_range(gain, '.0f')} nats below that of the fixed one.",
        "R10: mean +- 1.96 epistemic deviations, all that the post draws, holds "
        f"{first.coverage_epistemic:.1%} ({_span(post, lambda n: n.coverage_epistemic, '.1%')}) of "
        f"new y within the data; with the noise it is {first.coverage:.1%} "
        f"({_span(post, lambda n: n.coverage, '.1%')}).",
        "R9: 'the predictive mean could have been obtained with a single forward pass' from the "
        f"posterior means: {_verdict(all(n.gap_seen == 0 for n in post))}. E f(w) - f(E w) is "
        f"{first.gap:.2f} (root mean square; standard error of {FUNCTIONS} functions "
        f"{first.gap_error:.2f}), and more than 4 standard errors at {first.gap_seen:.0%} "
        f"({_span(post, lambda n: n.gap_seen, '.0%')}) of the points. Rmse to the truth within the "
        f"data: predictive mean {first.rmse:.2f} ({_span(post, lambda n: n.rmse)}), "
        f"from posterior means {first.rmse_of_means:.2f} "
        f"({_span(post, lambda n: n.rmse_of_means)}).",
    ]


def _noise(numbers: Mapping[str, Sequence[Numbers]]) -> list[str]:
    post, noise, cold = (numbers[name] for name in ("post", "noise", "cold"))
    first, lost = noise[0], min(n.noise for n in noise) > 2 * NOISE
    less = [a.free_energy - b.free_energy for a, b in zip(post, noise, strict=True)]
    text = (
        f"Noise learned from 1, all else as in the post: {first.noise:.2f} "
        f"({_span(noise, lambda n: n.noise)}); the true one is {NOISE:g}."
    )
    if lost and min(less) > 0:
        kl, nll = post[0].kl - first.kl, first.nll - post[0].nll
        text += (
            f" The curve is given up as noise (rmse {first.rmse:.2f}), at "
            f"{_range(less, '.0f')} nats less than the post's own fit costs, whose complexity is "
            f"{kl:.0f} nats higher and whose likelihood cost is only {nll:.0f} lower."
        )
    best = cold[0]
    return [
        text,
        "With a tenth of the KL term and narrow starts (rho = -4) the noise is "
        f"{best.noise:.2f} ({_span(cold, lambda n: n.noise)}), rmse {best.rmse:.2f} "
        f"({_span(cold, lambda n: n.rmse)}), epistemic deviation outside {_range(_ratios(cold))} "
        "times that inside. Such a posterior is cold: it is no longer the one of the stated prior.",
    ]


def _domains(raised: Mapping[str, Domain]) -> list[str]:
    raw, safe = raised["as the post trains it"], raised["through a sigmoid (R8)"]
    of = _count(raw.traces, "seed")
    return [
        f"The prior's numbers at learning rate {FAST:g}. As the post trains them, pi, sigma1 and "
        f"sigma2 themselves: outside their domain in {raw.left} of {of}, the largest pi "
        f"{raw.largest:.3f}, the cost nan in {raw.finite.count(False)}; sigma2 above sigma1 in "
        f"{raw.swapped}. Through softplus and sigmoid, ordered (R8): outside in {safe.left}, the "
        f"largest pi {safe.largest:.3f}, nan in {safe.finite.count(False)}, swapped in "
        f"{safe.swapped}.",
    ]


def _verdict(true: bool) -> str:
    return "holds" if true else "DOES NOT HOLD"


def _count(some: Sequence[object], what: str) -> str:
    return f"{len(some)} {what}{'s' if len(some) != 1 else ''}"


def _ratios(some: Sequence[Numbers]) -> list[float]:
    return [n.ratio for n in some]


def _seconds(n: Numbers) -> float:
    return n.seconds_training + n.seconds_functions


def _span(some: Sequence[Numbers], of: Callable[[Numbers], float], how: str = ".2f") -> str:
    values = [of(n) for n in some]
    return f"{min(values):{how}} to {max(values):{how}}"


def _range(values: Sequence[float], how: str = ".2f") -> str:
    return f"{values[0]:{how}} ({min(values):{how}} to {max(values):{how}})"
