"""The tables of the MNIST study, and what the paper printed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bbb_numpy.studies.comparing import Claim, captioned, claims, table

__all__ = ["PAPER", "PAPER_PRUNING", "TITLES", "claims_of_the_paper", "lay_out"]

# Blundell et al. 2015, Tables 1 and 2, in %: quoted from memory, not checked against the paper.
# A published summary of it repeats 1.34 % for Bayes by Backprop.
PAPER = {
    "SGD": (1.83, 1.84, 1.88),
    "SGD, dropout": (1.51, 1.33, 1.36),
    "Bayes by Backprop, Gaussian prior": (1.82, 1.99, 2.04),
    "Bayes by Backprop, scale mixture": (1.36, 1.34, 1.32),
}
PAPER_PRUNING = {0.0: 1.24, 0.5: 1.24, 0.75: 1.24, 0.95: 1.29, 0.98: 1.39}  # of 1200 units
PAPER_EPOCHS = 600
TITLES = {
    "SGD": "SGD, maximum likelihood",
    "MAP": "MAP, scale mixture",
    "BBB": "Bayes by Backprop, scale mixture",
}

Numbers = Mapping[str, Any]


def lay_out(numbers: Numbers) -> str:
    """Return every number that is printed, and which claims of the paper hold."""
    return captioned(
        {
            "MNIST, ReLU, pixels / 126, float32; test images are looked at once, at the end.": (
                _settings(numbers)
            ),
            "Errors of the candidates on validation images; * is trained on.": _search(numbers),
            "Errors (+- binomial deviation), NLL in nats per image (train: of the last epoch).": (
                _errors(numbers)
            ),
            "Test errors less those of Bayes by Backprop, image by image, in points.": (
                _differences(numbers)
            ),
            f"The paper's test errors (%), by units, {PAPER_EPOCHS} epochs; from memory.": (
                table(
                    ("Blundell et al. 2015", "400", "800", "1200"),
                    [[name, *(f"{value:.2f}" for value in row)] for name, row in PAPER.items()],
                )
            ),
            "Test errors without the weights of lowest |mu| / sigma (biases stay).": (
                _pruning(numbers)
            ),
            "Signal-to-noise ratios of all weights (dB).": _ratios(numbers),
            "All weights.": _weights(numbers),
            "'Held' is within two binomial deviations of the whole network's error.": (
                claims("the paper", claims_of_the_paper(numbers))
            ),
        }
    )


def _percent(share: float, digits: int = 2) -> str:
    return f"{100 * share:.{digits}f} %"


def _settings(numbers: Numbers) -> str:
    s = numbers["settings"]
    settings = {
        "network": f"784-{s['hidden']}-{s['hidden']}-10",
        "minibatch": s["batch"],
        "training images": s["train"],
        "validation images": s["validation"],
        "test images": s["test"],
        "weight vectors averaged over": s["draws"],
        "the same, pruned": s["pruning_draws"],
        "processor time of all training (minutes)": f"{numbers['seconds'] / 60:.1f}",
    }
    return table(("setting", "value"), [[name, str(value)] for name, value in settings.items()])


def _search(numbers: Numbers) -> str:
    chosen = {method: one["chosen"] for method, one in numbers["methods"].items()}
    rows = [
        [
            f"{one['method']}: {one['name']}",
            _percent(one["errors"][-1]) + (" *" if chosen[one["method"]] == one["name"] else "  "),
        ]
        for one in numbers["search"]
    ]
    return table((f"after {numbers['settings']['search']} epochs", "validation  "), rows)


def _errors(numbers: Numbers) -> str:
    rows = [
        [
            TITLES[name],
            str(one["epochs"]),
            _percent(one["validation"]),
            f"{_percent(one['test'])} +- {100 * _deviation(one['test'], numbers):.2f}",
            _percent(one["test, mean network"]) if name == "BBB" else "",
            f"{one['test nll']:.4f}",
            f"{one['train nll']:.4f}",
            f"{one['train kl']:.2f}" if name == "BBB" else "",
        ]
        for name, one in numbers["methods"].items()
    ]
    head = ("errors", "epochs", "validation", "test", "mean weights", "test NLL", "train NLL", "KL")
    return table(head, rows)


def _deviation(share: float, numbers: Numbers) -> float:
    return float((share * (1.0 - share) / numbers["settings"]["test"]) ** 0.5)


def _differences(numbers: Numbers) -> str:
    rows = [
        [TITLES[name], f"{100 * difference:+.2f}", f"{100 * error:.2f}"]
        for name, (difference, error) in numbers["against BBB"].items()
    ]
    return table(("", "difference", "standard error"), rows)


def _pruning(numbers: Numbers) -> str:
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
    head = ("removed", "left", "up to (dB)", "BBB", "paper, 1200 units", "SGD, by size")
    return table(head, rows)


def _ratios(numbers: Numbers) -> str:
    ratio = numbers["ratio"]
    shown = [f"{ratio['quantiles'][i]:.1f}" for i in (0, 2, 4)]
    return table(
        ("5 % below", "median", "95 % below", "share above 0 dB"),
        [[*shown, f"{ratio['above 0 dB']:.1%}"]],
    )


def _weights(numbers: Numbers) -> str:
    rows = [
        [
            name,
            f"{one['deviation']:.4f}",
            f"{one['low']:.3f}",
            f"{one['high']:.3f}",
            f"{one['below 0.01']:.0%}",
        ]
        for name, one in numbers["weights"].items()
    ]
    return table(("", "deviation", "99.9 % from", "to", "within 0.01 of 0"), rows)


def claims_of_the_paper(numbers: Numbers) -> list[Claim]:
    """Judge the paper's order of the methods, and how much can be pruned."""
    difference, error = numbers["against BBB"]["SGD"]
    base, *pruned = numbers["pruning"]
    held = [
        row["share"]
        for row in pruned
        if row["BBB"] - base["BBB"] <= 2 * _deviation(max(base["BBB"], row["BBB"]), numbers)
    ]
    most = max(held, default=0.0)
    apart = PAPER["SGD"][0] - PAPER["Bayes by Backprop, scale mixture"][0]
    return [
        Claim(
            "SGD makes more errors than Bayes by Backprop (points, 400 units)",
            f"+{apart:.2f}",
            f"{100 * difference:+.2f} +- {100 * error:.2f}",
            difference > 2 * error,
        ),
        Claim("75 % of the weights can go", "75 %", f"{most:.0%} held", most >= 0.75),
    ]
