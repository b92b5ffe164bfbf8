"""Choose the next measurement of the spring: by information, at random, by the variance of y.

    python benchmarks/next_measurement.py            # everything; an hour of one core
    python benchmarks/next_measurement.py linear     # one model
    python benchmarks/next_measurement.py print      # the table of the results

The stretch beyond proportion is x^2 mm, read with an error of 0.3 mm. Five loads within 0.5 kg are
read first, then ten more, one at a time, of 61 loads from -3 to 3 kg. The error is the root mean
square difference of the predictive mean from x^2 over these 61. All rules share starts and errors
of readings. Results are in results/next_measurement.json, which each model is added to.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # to run as a plain script

from bbb_numpy import BayesianMLPRegressor, Ensemble, GaussianLikelihood, GaussianPrior, Sampling

RESULTS = Path(__file__).with_name("results") / "next_measurement.json"
POOL = np.linspace(-3, 3, 61)
NOISE = 0.3  # mm, but for "uneven noise"
N_FIRST = 5
N_CHOSEN = 10
RULES = ("information", "random", "variance of y")

Moments = tuple[Any, Any, Any]  # mean, epistemic and aleatoric variance at the loads of POOL


def equal_noise(x: Any) -> Any:
    """Return the standard deviation of readings at a load, mm."""
    return NOISE + 0.0 * x


def uneven_noise(x: Any) -> Any:
    """Return that of a ruler which cannot be read well between 1 and 2 kg, mm."""
    return np.where((x > 1) & (x < 2), 3.0, NOISE)


def linear(degree: int, noise: Callable[[Any], Any]) -> Callable[[Any, Any, int], Moments]:
    """Return the exact posterior of a polynomial, its coefficients N(0, 3^2), at the pool."""

    def moments(x: Any, y: Any, seed: int) -> Moments:
        features, at = (np.vander(loads, degree + 1) for loads in (x, POOL))
        precision = np.eye(degree + 1) / 9 + (features.T / noise(x) ** 2) @ features
        covariance = np.linalg.inv(precision)
        mean = covariance @ (features.T @ (y / noise(x) ** 2))
        return at @ mean, ((at @ covariance) * at).sum(axis=1), noise(POOL) ** 2

    return moments


def network(inference: Any, **arguments: Any) -> Callable[[Any, Any, int], Moments]:
    """Return the predictions of a network 1-20-1 with the prior N(0, 1) and known noise."""

    def moments(x: Any, y: Any, seed: int) -> Moments:
        learner = BayesianMLPRegressor(
            hidden_layer_sizes=(20,), activation="tanh", prior=GaussianPrior(1.0),
            likelihood=GaussianLikelihood(NOISE), standardize=False, inference=inference,
            random_state=seed, progress=False, **arguments,
        )  # fmt: skip
        distribution = learner.fit(x[:, None], y).predict_distribution(POOL[:, None])
        return distribution.mean, distribution.epistemic**2, distribution.aleatoric**2

    return moments


# name: moments, noise, runs
MODELS: dict[str, tuple[Any, Any, int]] = {
    "linear": (linear(3, equal_noise), equal_noise, 200),
    "line": (linear(1, equal_noise), equal_noise, 200),
    "uneven noise": (linear(3, uneven_noise), uneven_noise, 200),
    "mean field": (network("mean-field", epochs=1000), equal_noise, 10),
    "hmc": (network(Sampling("hmc", chains=4, draws=100, warm_up=200)), equal_noise, 10),
    "ensemble": (network(Ensemble(3, 20)), equal_noise, 3),
}


def run(moments: Any, noise: Any, rule: str, seed: int) -> list[float]:
    """Return the error after each measurement, (N_CHOSEN + 1,), mm."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-0.5, 0.5, N_FIRST)
    errors = rng.standard_normal(N_FIRST + N_CHOSEN)
    order = rng.integers(len(POOL), size=N_CHOSEN)
    y = x**2 + noise(x) * errors[:N_FIRST]
    history = []
    for step in range(N_CHOSEN + 1):
        mean, epistemic, aleatoric = moments(x, y, seed)
        history.append(float(np.sqrt(np.mean((mean - POOL**2) ** 2))))
        if step == N_CHOSEN:
            break
        place = order[step]
        if rule == "information":
            place = np.argmax(np.log1p(epistemic / aleatoric))
        if rule == "variance of y":
            place = np.argmax(epistemic + aleatoric)
        x = np.append(x, POOL[place])
        y = np.append(y, x[-1] ** 2 + noise(x[-1]) * errors[N_FIRST + step])
    return history


def measure(name: str) -> dict[str, Any]:
    """Return errors by rule after each measurement, and their difference from random choice."""
    moments, noise, n_runs = MODELS[name]
    rules = RULES if noise is uneven_noise else RULES[:2]
    errors = {rule: np.array([run(moments, noise, rule, s) for s in range(n_runs)])
              for rule in rules}  # fmt: skip
    result: dict[str, Any] = {"runs": n_runs}
    for rule, each in errors.items():
        regret = each - errors["random"]
        result[rule] = {
            "rmse": each.mean(axis=0).round(4).tolist(),
            "rmse_se": (each.std(axis=0, ddof=1) / n_runs**0.5).round(4).tolist(),
            "regret": regret.mean(axis=0).round(4).tolist(),
            "regret_se": (regret.std(axis=0, ddof=1) / n_runs**0.5).round(4).tolist(),
        }
    return result


def table(stored: dict[str, Any]) -> str:
    """Return the table of errors after the last measurement in Markdown, by model and rule."""
    lines = []
    for name in MODELS:
        for rule in RULES[::2]:
            if name in stored and rule in stored[name]:
                numbers = {key: values[-1] for key, values in stored[name][rule].items()}
                random = stored[name]["random"]
                lines.append(
                    f"| {name} | {stored[name]['runs']} | {rule} | {numbers['rmse']:.2f} ± "
                    f"{numbers['rmse_se']:.2f} | {random['rmse'][-1]:.2f} ± "
                    f"{random['rmse_se'][-1]:.2f} | {numbers['regret']:.2f} ± "
                    f"{numbers['regret_se']:.2f} |"
                )
    return "\n".join(lines)


def main(names: list[str]) -> None:
    """Measure the named models, all by default, and add them to the file of results."""
    warnings.simplefilter("ignore")  # fits to five rows are poor, and say so
    for name in names or MODELS:
        result = measure(name)
        stored = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}
        stored[name] = result
        RESULTS.write_text(json.dumps(stored, indent=1) + "\n", "utf-8")
        for rule in result.keys() - {"runs"}:
            last = {key: values[-1] for key, values in result[rule].items()}
            print(name, rule, last, flush=True)


if __name__ == "__main__":
    if sys.argv[1:] == ["print"]:
        print(table(json.loads(RESULTS.read_text("utf-8"))))
    else:
        main(sys.argv[1:])
