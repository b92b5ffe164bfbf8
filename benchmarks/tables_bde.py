"""Fit Bayesian deep ensembles on JAX, in an environment of their own: called by tables_peers.py.

The settings are those of `peer_bde.py` that do better than the defaults (two members of four units
and ten draws each), in as much time. Its progress bars are off: programs with callbacks are not
kept in JAX's cache, and would be compiled again for every fold.
"""

import sys
from pathlib import Path

import numpy as np

SETTINGS = {"n_members": 4, "hidden_layers": [16, 16], "epochs": 200, "warmup_steps": 500}
SETTINGS |= {"n_samples": 100, "n_thinning": 1}


def main() -> None:
    """Read rows from the first argument, and write what is predicted beside it.

    That is (2, T, N) means and standard deviations of all draws, or (N, C) probabilities.
    """
    import jax

    jax.debug.callback = lambda *_, **__: None
    from bde import (  # type: ignore[import-not-found, import-untyped, unused-ignore]
        BdeClassifier,
        BdeRegressor,
    )

    path = Path(sys.argv[1])
    rows = np.load(path)
    x = rows["x"].astype(np.float32)
    x_new = rows["x_new"].astype(np.float32)
    if sys.argv[2] == "classes":
        model = BdeClassifier(seed=0, **SETTINGS).fit(x, rows["y"].astype(int))
        prediction = np.asarray(model.predict_proba(x_new))
    else:
        model = BdeRegressor(seed=0, **SETTINGS).fit(x, rows["y"].astype(np.float32))
        raw = np.asarray(model.predict(x_new, raw=True), float)
        mean, free = raw.reshape(-1, *raw.shape[-2:]).transpose(2, 0, 1)
        prediction = np.stack([mean, np.logaddexp(free, 0.0) + 1e-6])
    np.save(path.with_suffix(".npy"), prediction)


if __name__ == "__main__":
    main()
