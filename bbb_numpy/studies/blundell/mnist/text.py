"""What the MNIST study says in words; every verdict follows from numbers beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import Any

from bbb_numpy.studies.comparing import table

__all__ = ["PAPER", "PAPER_PRUNING", "summarise"]

# Blundell et al. 2015, Tables 1 and 2, in %: quoted from memory, not checked against the paper.
# A published summary of it repeats 1.34 % for Bayes by Backprop.
PAPER = (
    ("SGD", (1.83, 1.84, 1.88)),
    ("SGD, dropout", (1.51, 1.33, 1.36)),
    ("Bayes by Backprop, Gaussian prior", (1.82, 1.99, 2.04)),
    ("Bayes by Backprop, scale mixture", (1.36, 1.34, 1.32)),
)
PAPER_PRUNING = {0.0: 1.24, 0.5: 1.24, 0.75: 1.24, 0.95: 1.29, 0.98: 1.39}  # of 1200 units
PAPER_EPOCHS = 600
TITLES = {
    "SGD": "SGD, maximum likelihood",
    "MAP": "MAP, scale mixture",
    "BBB": "Bayes by Backprop, scale mixture",
}


def summarise(numbers: Mapping[str, Any]) -> str:
    """Return the text: tables, and what follows from them."""
    s = numbers["settings"]
    head = (
        f"MNIST, 784-{s['hidden']}-{s['hidden']}-10 ReLU, pixels / 126, minibatches of "
        f"{s['batch']}, float32: {s['train']} training, {s['validation']} validation and "
        f"{s['test']} test images. Candidates are chosen, and nothing else is decided, by errors "
        "on the validation images; test images are looked at once, at the end."
    )
    parts = [
        fill(head, 98),
        _search(numbers),
        _errors(numbers),
        fill(_notes(numbers), 98),
        _paper(),
        fill(
            "In %, by units of each hidden layer; quoted from memory and not checked against the "
            "paper, but for 1.34, which a published summary repeats. The paper trains for up to "
            f"{PAPER_EPOCHS} epochs, this run for {s['epochs'][2]} of Bayes by Backprop: the two "
            "tables show what a short and a long training reach.",
            98,
        ),
        _pruning(numbers),
    ]
    return "\n\n".join(parts + [fill(part, 98) for part in _statements(numbers)])


def _percent(share: float, digits: int = 2) -> str:
    return f"{100 * share:.{digits}f} %"


def _search(numbers: Mapping[str, Any]) -> str:
    rows, chosen = [], {m: one["chosen"] for m, one in numbers["methods"].items()}
    for one in numbers["search"]:
        mark = " *" if chosen[one["method"]] == one["name"] else "  "
        rows.append([f"{one['method']}: {one['name']}", _percent(one["errors"][-1]) + mark])
    epochs = numbers["settings"]["search"]
    return table((f"candidates after {epochs} epochs (* goes on)", "validation  "), rows)


def _errors(numbers: Mapping[str, Any]) -> str:
    rows = [
        [
            TITLES[name],
            str(one["epochs"]),
            _percent(one["validation"]),
            f"{_percent(one['test'])} +- {100 * _deviation(one['test'], numbers):.2f}",
            _percent(one["test, mean network"]) if name == "BBB" else "",
            f"{one['test nll']:.4f}",
            f"{one['train nll']:.4f}",
        ]
        for name, one in numbers["methods"].items()
    ]
    head = ("errors", "epochs", "validation", "test", "mean weights", "test NLL", "train NLL")
    return table(head, rows)


def _deviation(share: float, numbers: Mapping[str, Any]) -> float:
    return float((share * (1.0 - share) / numbers["settings"]["test"]) ** 0.5)


def _notes(numbers: Mapping[str, Any]) -> str:
    s, kl = numbers["settings"], numbers["methods"]["BBB"]["train kl"]
    return (
        f"Bayes by Backprop: averaged over {s['draws']} weight vectors; mean weights: the one "
        "network with the posterior mean. +- is the binomial deviation. NLL: nats per image; on "
        "training images the mean over the last epoch while it was trained. Bayes by Backprop "
        f"pays {kl:.2f} nats of KL(q, prior) per training image beside it. Processor time of all "
        f"training: {numbers['seconds'] / 60:.1f} minutes."
    )


def _paper() -> str:
    rows = [[name, *(f"{value:.2f}" for value in values)] for name, values in PAPER]
    return table(("Blundell et al. 2015, test errors", "400", "800", "1200"), rows)


def _pruning(numbers: Mapping[str, Any]) -> str:
    rows = [
        [
            _percent(row["share"], 0),
            str(row["left"]),
            "" if row["threshold"] is None else f"{row['threshold']:.1f}",
            _percent(row["BBB"]),
            f"{PAPER_PRUNING[row['share']]:.2f} %" if row["share"] in PAPER_PRUNING else "",
            _percent(row["SGD"]),
        ]
        for row in numbers["pruning"]
    ]
    head = ("removed", "left", "threshold (dB)", "BBB, test", "paper, 1200 units", "SGD, by size")
    note = (
        "Weights of matrices, not biases, with the lowest |mu| / sigma are removed; the threshold "
        "is 10 log10 of the largest one removed. BBB: averaged over "
        f"{numbers['settings']['pruning_draws']} draws. Paper: from memory. SGD, by size: the "
        "smallest weights of the SGD network are removed, as a control."
    )
    return f"{table(head, rows)}\n\n{fill(note, 98)}"


def _statements(numbers: Mapping[str, Any]) -> Sequence[str]:
    gained = numbers["against BBB"]
    compared = "Against Bayes by Backprop, image by image: " + "; ".join(
        f"{name} {100 * difference:+.2f} +- {100 * error:.2f} points "
        f"({_verdict(difference, error)})"
        for name, (difference, error) in gained.items()
    )
    rows = numbers["pruning"]
    base = rows[0]["BBB"]
    held = [
        row
        for row in rows[1:]
        if row["BBB"] - base <= 2 * _deviation(max(base, row["BBB"]), numbers)
    ]
    kept = (
        f"up to {max(row['share'] for row in held):.0%} of the weights can be removed before the "
        "error leaves two binomial deviations of that of the whole network"
        if held
        else "no step leaves the error within two binomial deviations of the whole network's"
    )
    level = numbers["ratio"]
    low, median, high = (level["quantiles"][i] for i in (0, 2, 4))
    pruned = (
        f"Pruning: {kept}. Signal-to-noise ratios: median {median:.1f} dB, 90 % between {low:.1f} "
        f"and {high:.1f} dB; {level['above 0 dB']:.1%} of all weights have a mean larger than "
        "their deviation."
    )
    weights = "Weights (deviation; 99.9 % of them lie between; share nearer to 0 than 0.01): " + (
        "; ".join(
            f"{name} {one['deviation']:.4f}; {one['low']:.3f} and {one['high']:.3f}; "
            f"{one['below 0.01']:.0%}"
            for name, one in numbers["weights"].items()
        )
    )
    return compared + ".", pruned, weights + "."


def _verdict(difference: float, error: float) -> str:
    if abs(difference) <= 2 * error:
        return "within 2 standard errors"
    return f"{'more' if difference > 0 else 'fewer'} errors, beyond 2 standard errors"
