"""The tables of the MNIST study."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bbb_studies.comparing import Claim, claims, listed

__all__ = ["TITLES", "claims_of_the_paper", "lay_out"]

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
    found = f"{100 * difference:+.2f} +- {100 * error:.2f}"
    worse = "SGD makes more errors than Bayes by Backprop (points, 400 units)"
    return [
        Claim(worse, "more", found, difference > 2 * error),
        Claim("most weights can go (here: 75 %)", "most", f"{most:.0%} held", most >= 0.75),
    ]
