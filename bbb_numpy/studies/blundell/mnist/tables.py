"""The tables of the MNIST study, and what the paper printed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bbb_numpy.studies.comparing import Claim, claims, listed, table

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
QUANTILES = ("5 %", "25 %", "50 %", "75 %", "95 %")  # of signal-to-noise ratios
TITLES = {
    "SGD": "SGD, maximum likelihood",
    "MAP": "MAP, scale mixture",
    "BBB": "Bayes by Backprop, scale mixture",
}

Numbers = Mapping[str, Any]


def lay_out(numbers: Numbers) -> str:
    """Return every number that is printed, and which claims of the paper hold."""
    minutes = {"minutes of processor time": f"{numbers['seconds'] / 60:.1f}"}
    paper = f"The paper's test errors (%), by units, {PAPER_EPOCHS} epochs; from memory."
    rows = [[name, *(f"{value:.2f}" for value in row)] for name, row in PAPER.items()]
    held = "'Held' is within two binomial deviations of the whole network's error."
    return "\n\n".join(
        [
            listed(
                "MNIST, 784-hidden-hidden-10, ReLU, pixels / 126; images, epochs, weight vectors.",
                "setting",
                (numbers["settings"] | minutes).items(),
                {"value": str},
            ),
            _search(numbers),
            _errors(numbers),
            listed(
                "Test errors less those of Bayes by Backprop, image by image, in points.",
                "",
                ((TITLES[name], pair) for name, pair in numbers["against BBB"].items()),
                {
                    "difference": lambda pair: f"{100 * pair[0]:+.2f}",
                    "standard error": lambda pair: f"{100 * pair[1]:.2f}",
                },
            ),
            f"{paper}\n\n{table(('Blundell et al. 2015', '400', '800', '1200'), rows)}",
            _pruning(numbers),
            listed(
                "Signal-to-noise ratios of all weights (dB).",
                "share below",
                zip(QUANTILES, numbers["ratio"]["quantiles"], strict=True),
                {"dB": lambda level: f"{level:.1f}"},
            ),
            listed(
                f"All weights; of those of BBB {numbers['ratio']['above 0 dB']:.1%} above 0 dB.",
                "",
                numbers["weights"].items(),
                {
                    "deviation": lambda one: f"{one['deviation']:.4f}",
                    "99.9 % from": lambda one: f"{one['low']:.3f}",
                    "to": lambda one: f"{one['high']:.3f}",
                    "within 0.01 of 0": lambda one: f"{one['below 0.01']:.0%}",
                },
            ),
            claims(held, "the paper", claims_of_the_paper(numbers)),
        ]
    )


def _percent(share: float, digits: int = 2) -> str:
    return f"{100 * share:.{digits}f} %"


def _deviation(share: float, numbers: Numbers) -> float:
    return float((share * (1.0 - share) / numbers["settings"]["test"]) ** 0.5)


def _search(numbers: Numbers) -> str:
    chosen = {method: one["chosen"] for method, one in numbers["methods"].items()}
    return listed(
        "Errors of the candidates on validation images.",
        f"after {numbers['settings']['search']} epochs",
        ((f"{one['method']}: {one['name']}", one) for one in numbers["search"]),
        {
            "validation": lambda one: _percent(one["errors"][-1]),
            "goes on": lambda one: "*" if chosen[one["method"]] == one["name"] else "",
        },
    )


def _errors(numbers: Numbers) -> str:
    def test(one: Numbers) -> str:
        return f"{_percent(one['test'])} +- {100 * _deviation(one['test'], numbers):.2f}"

    return listed(
        "Errors +- binomial deviation; NLL and KL in nats per image (train: of the last epoch).",
        "errors",
        ((TITLES[name], one) for name, one in numbers["methods"].items()),
        {
            "epochs": lambda one: str(one["epochs"]),
            "validation": lambda one: _percent(one["validation"]),
            "test": test,
            "mean weights": lambda one: _percent(one["test, mean network"]),
            "test NLL": lambda one: f"{one['test nll']:.4f}",
            "train NLL": lambda one: f"{one['train nll']:.4f}",
            "KL": lambda one: "" if one["train kl"] is None else f"{one['train kl']:.2f}",
        },
    )


def _pruning(numbers: Numbers) -> str:
    def paper(row: Numbers) -> str:
        return f"{PAPER_PRUNING[row['share']]:.2f} %" if row["share"] in PAPER_PRUNING else ""

    def threshold(row: Numbers) -> str:
        return "" if row["threshold"] is None else f"{row['threshold']:.1f}"

    return listed(
        "Test errors without the weights of lowest |mu| / sigma (biases stay).",
        "removed",
        ((_percent(row["share"], 0), row) for row in numbers["pruning"]),
        {
            "left": lambda row: str(row["left"]),
            "up to (dB)": threshold,
            "BBB": lambda row: _percent(row["BBB"]),
            "paper, 1200 units": paper,
            "SGD, by size": lambda row: _percent(row["SGD"]),
        },
    )


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
    found = f"{100 * difference:+.2f} +- {100 * error:.2f}"
    worse = "SGD makes more errors than Bayes by Backprop (points, 400 units)"
    return [
        Claim(worse, f"+{apart:.2f}", found, difference > 2 * error),
        Claim("75 % of the weights can go", "75 %", f"{most:.0%} held", most >= 0.75),
    ]
