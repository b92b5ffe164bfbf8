"""Compare the learners at their defaults with scikit-learn's MLPs at theirs, on real data.

    python benchmarks/defaults.py            # 20 splits of four data sets, a few minutes
    python benchmarks/defaults.py --splits 3 --only wine

As a new user: no argument is set but the seed. What is compared is the held-out log likelihood of
a row, in nats and in the units of the data, over random splits with a quarter of the rows held
out. scikit-learn's networks are tried on inputs as they are and standardised, the regressor also
on both kinds of target; the table shows whichever is better on average over the same splits. Its
regressor has no predictive distribution: it is given a Gaussian with the variance of its training
residuals. Its probabilities are clipped at the rounding of 1, ours are not.

The defaults were chosen on the splits of seeds 0 to 7. The seeds here are others.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import sklearn
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # to run as a plain script

from bbb_numpy import BayesianMLPClassifier, BayesianMLPRegressor
from bbb_numpy.cli.options import at_least_two, at_least_zero
from benchmarks import racing

RESULTS = racing.FOLDER / "defaults.json"
SETS = {
    "diabetes": load_diabetes,
    "breast_cancer": load_breast_cancer,
    "wine": load_wine,
    "digits": load_digits,
}
FIRST_SEED, SPLITS = 100, 20
Array = NDArray[Any]


class Split(NamedTuple):
    """Rows to train on and rows held out."""

    x: Array
    x_out: Array
    y: Array
    y_out: Array


class Comparison(NamedTuple):
    """Held-out log likelihoods per row, one number for each split."""

    ours: Array
    peers: dict[str, Array]
    seconds: Array  # of one fit of ours

    @property
    def best(self) -> str:
        """The form of the peer that is best on average."""
        return max(self.peers, key=lambda name: float(self.peers[name].mean()))

    @property
    def difference(self) -> tuple[float, float]:
        """Mean and standard error of ours minus the best peer, split by split."""
        return _mean(self.ours - self.peers[self.best])

    @property
    def verdict(self) -> str:
        """'beats', 'matches' or 'falls short', at two standard errors."""
        mean, error = self.difference
        if abs(mean) <= 2.0 * error:
            return "matches"
        return "beats" if mean > 0 else "falls short"


def split(name: str, seed: int) -> Split:
    """Hold out a quarter of the rows of a data set."""
    x, y = SETS[name](return_X_y=True)
    x, x_out, y, y_out = train_test_split(x, y, test_size=0.25, random_state=seed)
    return Split(x, x_out, y, y_out)


def compare(name: str, seeds: Sequence[int]) -> Comparison:
    """Fit everything on every split."""
    peers = regressors if name == "diabetes" else classifiers
    ours: list[tuple[float, float]] = []
    theirs: list[dict[str, float]] = []
    for seed in seeds:
        print(f"{name}, split {seed}", file=sys.stderr)
        data = split(name, seed)
        ours.append(our_score(name, data, seed))
        theirs.append(peers(data, seed))
    scores, seconds = np.array(ours).T
    return Comparison(
        scores, {form: np.array([row[form] for row in theirs]) for form in theirs[0]}, seconds
    )


def our_score(name: str, data: Split, seed: int) -> tuple[float, float]:
    """Return our log likelihood per held-out row, and the seconds of the fit."""
    make: Any = BayesianMLPRegressor if name == "diabetes" else BayesianMLPClassifier
    model = make(random_state=seed, progress=False)
    start = time.perf_counter()
    model.fit(data.x, data.y)
    seconds = time.perf_counter() - start
    return float(model.log_predictive_density(data.x_out, data.y_out).mean()), seconds


def forms(make: Callable[[], Any]) -> dict[str, Any]:
    """Return the peer on inputs as they are, and behind a scaler."""
    return {"raw X": make(), "scaled X": make_pipeline(StandardScaler(), make())}


def classifiers(data: Split, seed: int) -> dict[str, float]:
    """Return the log likelihood per held-out row of both forms of MLPClassifier."""
    found = {}
    for form, model in forms(lambda: MLPClassifier(random_state=seed)).items():
        p = model.fit(data.x, data.y).predict_proba(data.x_out)
        p = p[np.arange(len(data.y_out)), data.y_out]
        found[form] = float(np.log(np.clip(p, np.finfo(float).eps, None)).mean())
    return found


def regressors(data: Split, seed: int) -> dict[str, float]:
    """Return the log likelihood per held-out row of four forms of MLPRegressor."""
    units = {"raw y": (0.0, 1.0), "scaled y": (data.y.mean(), data.y.std())}
    found = {}
    for target, (shift, scale) in units.items():
        for form, model in forms(lambda: MLPRegressor(random_state=seed)).items():
            model.fit(data.x, (data.y - shift) / scale)
            variance = np.mean((data.y - shift - scale * model.predict(data.x)) ** 2)
            error = data.y_out - shift - scale * model.predict(data.x_out)
            density = -0.5 * (error**2 / variance + np.log(2.0 * np.pi * variance))
            found[f"{form}, {target}"] = float(density.mean())
    return found


def _mean(values: Array) -> tuple[float, float]:
    """Return mean and standard error."""
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))


def table(compared: dict[str, Comparison]) -> str:
    """Lay the comparisons out: nats per held-out row, with standard errors."""
    rows = []
    for name, c in compared.items():
        cells = (_mean(c.ours), _mean(c.peers[c.best]), c.difference)
        ours, theirs, off = (f"{mean:.4f} +- {error:.4f}" for mean, error in cells)
        row = {"data set": name, "ours": ours, "scikit-learn": theirs, "its better form": c.best}
        row |= {"ours - theirs": off, "verdict": c.verdict}
        rows.append({**row, "fit, s": f"{np.median(c.seconds):.1f}"})
    return racing.aligned(rows)


def as_json(compared: dict[str, Comparison], seeds: Sequence[int]) -> dict[str, Any]:
    """Return everything measured as plain numbers."""
    return {
        "about": {
            "unit": "nats per held-out row",
            "held out": 0.25,
            "seeds": list(seeds),
            "numpy": np.__version__,
            "scikit-learn": sklearn.__version__,
        },
        "results": {
            name: {
                "ours": c.ours.tolist(),
                "peers": {form: scores.tolist() for form, scores in c.peers.items()},
                "best peer": c.best,
                "difference": dict(zip(("mean", "standard error"), c.difference, strict=True)),
                "verdict": c.verdict,
                "median seconds of a fit": float(np.median(c.seconds)),
            }
            for name, c in compared.items()
        },
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return 0 even where we fall short: this measures, it judges not."""
    parser = argparse.ArgumentParser(description="Compare defaults on held-out log likelihood.")
    parser.add_argument("--splits", type=at_least_two, default=SPLITS, help="random ones")
    parser.add_argument("--seed", type=at_least_zero, default=FIRST_SEED, help="of the first split")
    parser.add_argument("--only", nargs="+", choices=SETS, default=list(SETS), help="data sets")
    parser.add_argument("--json", type=Path, help="where to save; default: only a full run, here")
    args = parser.parse_args(argv)
    seeds = range(args.seed, args.seed + args.splits)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # scikit-learn's own default of epochs
        compared = {name: compare(name, seeds) for name in args.only}
    print(table(compared))
    full = (args.splits, args.seed, args.only) == (SPLITS, FIRST_SEED, list(SETS))
    racing.save(args.json or (RESULTS if full else None), as_json(compared, seeds))
    return 0


if __name__ == "__main__":
    sys.exit(main())
