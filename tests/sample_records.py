"""Artificial records of trials, of the form that the benchmark writes: nothing was trained."""

from __future__ import annotations

from typing import Any

import numpy as np

SETS = ("boston", "concrete", "energy", "wine_red", "protein", "yacht", "power", "kin8nm", "naval")
METHODS = (
    *("mean-field", "local-reparam", "full-rank", "map", "renyi", "eubo"),
    *("hmc", "nuts", "ensemble", "hmc-heteroscedastic", "default", "chees", "mclmc", "laplace"),
    *("ivon", "low-rank", "dropout", "swag", "last-layer", "sghmc"),
)
N_ROWS_OF_SET = {
    **{"boston": 506, "concrete": 1030, "energy": 768, "protein": 45730, "wine_red": 1599},
    **{"yacht": 308, "power": 9568, "kin8nm": 8192, "naval": 11934},
}
SPLITS = dict.fromkeys(SETS, 20) | dict.fromkeys(("protein", "power", "kin8nm", "naval"), 5)
LEVELS = np.arange(1, 20) / 20
SCALE = {
    **{"boston": 2.6, "concrete": 4.6, "energy": 0.5, "protein": 4.3, "wine_red": 0.6},
    **{"yacht": 0.6, "power": 4.0, "kin8nm": 0.08, "naval": 0.001},
}


def record(
    name: str = "boston",
    method: str = "hmc",
    split: int = 0,
    rmse: float = 2.5,
    nll: float = 2.4,
    seed: int = 0,
    **entries: Any,
) -> dict[str, Any]:
    """Return one finished trial; `entries` replaces entries of it."""
    rng = np.random.default_rng([seed, split])
    train = round(0.9 * N_ROWS_OF_SET[name])
    pits = rng.beta(1.2, 1.2, min(N_ROWS_OF_SET[name] - train, 400))
    trial = {
        "key": f"{name}/{method}/{split:02d}",
        "set": name,
        "method": method,
        "split": split,
        "status": "ok",
        "error": None,
        "settings": {"units": 50, "epochs": 400, "draws": 500, "seed": 0},
        "seed": 1000 * split + seed,
        "chosen": {"first_scale": 1.0, "output_scale": 0.141},
        "metrics": {
            "rmse": rmse,
            "nll": nll,
            "crps": 0.55 * rmse,
            "pit": np.histogram(pits, 20, (0.0, 1.0))[0].tolist(),
            "coverage": [float(np.mean(np.abs(pits - 0.5) <= level / 2)) for level in LEVELS],
        },
        "notes": {
            "noise": 0.9 * rmse,
            "epistemic": 0.4 * rmse,
            "train_rmse": 0.8 * rmse,
            "train_nll": nll - 0.2,
        },
        "rows": {"train": train, "test": N_ROWS_OF_SET[name] - train},
        "seconds": {"wall": 12.5 + split, "cpu": 12.0 + split},
        "versions": {"bbb_numpy": "0.2.0", "numpy": "2.4.6", "python": "3.12.3"},
    }
    return trial | entries


def failure(name: str = "boston", method: str = "hmc", split: int = 0, **entries: Any) -> Any:
    """Return one failed trial."""
    trial = record(name, method, split, status="failed", error="ValueError: planted")
    nothing = dict.fromkeys(("metrics", "notes", "chosen", "rows"))
    return trial | nothing | entries


def sample(
    sets: tuple[str, ...] = SETS,
    methods: tuple[str, ...] = METHODS,
    splits: int | None = None,
    seed: int = 0,
) -> list[dict[str, Any]]:
    """Return every trial, by default on all published splits; splits differ more than methods."""
    rng = np.random.default_rng(seed)
    trials = []
    for name in sets:
        n_splits = splits or SPLITS[name]
        hard = rng.normal(0.0, 0.15, n_splits)
        for i, method in enumerate(methods):
            level = SCALE[name] * (1.0 + 0.03 * i) * (3.0 if method == "eubo" else 1.0)
            for split in range(n_splits):
                rmse = float(level * np.exp(hard[split] + rng.normal(0.0, 0.02)))
                nll = float(np.log(rmse) + 1.42 + rng.normal(0.0, 0.02))
                trials.append(record(name, method, split, rmse, nll, seed=i))
    return trials
