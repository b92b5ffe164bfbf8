"""Head to head with Bayesian deep ensembles on JAX: the UCI sets, by calls that a user would type.

scikit-learn-contrib's bde (MILE: an ensemble, then MCLMC from each member) and ours, each on
standardised inputs and targets of the training part, one core each, all in this process. A record a
line: RMSE, log density of the predictive mixture, CRPS, coverage of 90 % intervals, seconds of the
processor. It needs a blackjax of its own, so an environment of its own:

pip install -e '.[learners]' sklearn-contrib-bde==1.0.2
export OPENBLAS_NUM_THREADS=1 LOKY_MAX_CPU_COUNT=1 XLA_FLAGS=--xla_cpu_multi_thread_eigen=false
python benchmarks/peer_bde.py bde.jsonl --data yacht boston --splits 2   # goes on where it was
python benchmarks/peer_bde.py bde.jsonl --table
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.special import logsumexp

from bbb_numpy import HMC, BayesianMLPRegressor, GaussianPrior, Sampling
from bbb_numpy.cli.baselines import Forecast, forecast_learner, score_forecast
from bbb_numpy.evaluation.calibration import crps_mixture, pit
from bbb_numpy.numeric.elementary import softplus
from bbb_numpy.numeric.standardisation import moments
from bbb_studies.data import uci

Array = NDArray[Any]
TUNED = {"n_members": 4, "hidden_layers": [16, 16], "epochs": 200, "warmup_steps": 500}
TUNED |= {"n_samples": 100, "n_thinning": 1}
CHAINS: dict[str, Any] = {  # all draws predict, as bde's do
    "hidden_layer_sizes": (16, 16),
    "prior": GaussianPrior(1.0),
    "likelihood": "heteroscedastic",
    "inference": Sampling(HMC(max_steps=30), chains=8, draws=100, warm_up=100),
    "dtype": "float32",
    "predict_samples": 800,
}
SCORES = ("nll", "rmse", "crps", "coverage", "seconds")


def bde(settings: dict[str, Any], rows: tuple[Array, Array], new: tuple[Array, Array]) -> Forecast:
    """Return the forecast of all members' draws, an equal mixture of Gaussians, in units of y."""
    from bde import BdeRegressor  # type: ignore[import-not-found, import-untyped, unused-ignore]

    model = BdeRegressor(seed=0, **settings).fit(*rows)
    raw = np.asarray(model.predict(new[0], raw=True), float)
    mean, free = raw.reshape(-1, *raw.shape[-2:]).transpose(2, 0, 1)  # (T, N) each
    scale = softplus(free) + 1e-6
    y = new[1]
    density = logsumexp(stats.norm.logpdf(y, mean, scale), axis=0) - np.log(len(mean))
    mixed = mean[..., None], scale[..., None], y[:, None]
    return Forecast(density, mean.mean(axis=0), crps_mixture(*mixed)[:, 0], pit(*mixed)[:, 0])


def ours(settings: dict[str, Any], rows: tuple[Array, Array], new: tuple[Array, Array]) -> Forecast:
    """Return the forecast of the learner with `settings`."""
    model = BayesianMLPRegressor(random_state=0, progress=False, **settings).fit(*rows)
    return forecast_learner(model, *new, np.random.default_rng(0))


HETEROSCEDASTIC = {"inference": "mean-field", "likelihood": "heteroscedastic"}
CONTESTANTS: dict[str, tuple[Callable[..., Forecast], dict[str, Any]]] = {
    "bde": (bde, {}),
    "bde, tuned": (bde, TUNED),
    "ours, eight chains": (ours, CHAINS),
    "ours, heteroscedastic": (ours, HETEROSCEDASTIC),
    "ours, heteroscedastic, 50 units": (ours, HETEROSCEDASTIC | {"hidden_layer_sizes": (50,)}),
    "ours, hmc": (ours, {"inference": "hmc"}),
    "ours, hmc, heteroscedastic": (ours, {"inference": "hmc", "likelihood": "heteroscedastic"}),
}


def measure(name: str, split: int, contestant: str) -> dict[str, Any]:
    """Fit and score one contestant on one split; scores are in the units of the target."""
    data = uci.load(name)
    train = data.training_rows(split)
    test = data.test_rows[split]
    x_mean, x_scale = moments(data.x[train], True)
    y_mean, y_scale = moments(data.y[train], True)
    x, y = (data.x - x_mean) / x_scale, ((data.y - y_mean) / y_scale)[:, 0]
    fit, settings = CONTESTANTS[contestant]
    start_time = time.process_time()
    forecast = fit(settings, (x[train], y[train]), (x[test], y[test]))
    seconds = time.process_time() - start_time
    scale = float(y_scale[0])
    scores = {metric: score.value for metric, score in score_forecast(forecast, y[test]).items()}
    return {
        "set": name,
        "split": split,
        "who": contestant,
        "rmse": scores["rmse"] * scale,
        "nll": np.log(scale) - scores["log_density"],
        "crps": scores["crps"] * scale,
        "coverage": scores["coverage"],
        "seconds": seconds,
    }


def table(records: list[dict[str, Any]]) -> str:
    """Return a table of means over the splits."""
    names = [name for name in uci.UCI_NAMES if any(record["set"] == name for record in records)]
    lines = ["| NLL / RMSE / CRPS / coverage (s) | " + " | ".join(names) + " |"]
    lines += ["|---" * (len(names) + 1) + "|"]
    for contestant in CONTESTANTS:
        cells = []
        for name in names:
            matching = [
                record for record in records if (record["set"], record["who"]) == (name, contestant)
            ]
            if not matching:
                cells.append("–")
                continue
            mean = {k: np.mean([record[k] for record in matching]) for k in SCORES}
            cell_format = "{nll:.3f} / {rmse:.4g} / {crps:.3g} / {coverage:.2f} ({seconds:.0f})"
            cells.append(cell_format.format(**mean))
        lines.append(f"| {contestant} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    """Measure what the file does not have yet, or print the table of what it has."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("file", type=Path, help="records, a line each")
    parser.add_argument("--data", nargs="+", choices=uci.UCI_NAMES, default=uci.UCI_NAMES)
    parser.add_argument("--who", nargs="+", choices=CONTESTANTS, default=list(CONTESTANTS))
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--table", action="store_true", help="print what was measured")
    args = parser.parse_args()
    text = args.file.read_text("utf-8") if args.file.exists() else ""
    records = [json.loads(line) for line in text.splitlines()]
    if args.table:
        print(table(records))
        return
    measured = {(record["set"], record["split"], record["who"]) for record in records}
    warnings.simplefilter("ignore")  # of fits that have not converged: their scores say it
    for split in range(args.splits):
        for name in args.data:
            for contestant in args.who:
                if (name, split, contestant) in measured or split >= uci.published_splits(name):
                    continue
                with args.file.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(measure(name, split, contestant)) + "\n")


if __name__ == "__main__":
    main()
