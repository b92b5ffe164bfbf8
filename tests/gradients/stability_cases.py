"""Every combination of parts in floats beside decimals, at usual and at extreme parameters.

``python tests/gradients/stability_cases.py float64`` judges all of them once, in ten minutes of
processor time, and prints how many lose digits; ``... float32 200`` judges 200 of them.
"""

import sys
import warnings
from collections import Counter
from pathlib import Path

import numpy as np

if __name__ == "__main__":
    ROOT = Path(__file__).resolve().parents[2]
    sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from exact_cases import FAR_LEFT, numbered_case
from problems import VALID

from exactgrad import stability

NARROW = {"float64": -40.0, "float32": -20.0}  # rho: sigma is far below the rounding of mu


def settings(case, which, dtype):
    """Yield the name of a setting and a theta: drawn, of confident predictions, narrow, and wide.

    The rates of a Poisson likelihood stay floats.
    """
    counts = "poisson" in which.likelihood or which.likelihood.startswith("zero-")
    blocks = case.estimator.layout.slices
    yield "usual", case.theta
    theta = case.theta.copy()
    theta[blocks["mu"]] *= 3.0 if counts else 30.0
    yield "confident", theta
    if "rho" not in blocks:
        return
    theta = case.theta.copy()
    theta[blocks["rho"]] = NARROW[dtype]
    if "lower" in blocks:  # the correlations stay those of a narrow posterior
        theta[blocks["lower"]] *= np.exp(NARROW[dtype])
    yield "narrow", theta
    theta = case.theta.copy()
    theta[blocks["rho"]] = 0.0 if counts else 8.0
    yield "wide", theta


def judged(which, dtype):
    """Yield the name of each setting of a combination, and what `stability` says of its gradient.

    Losses are judged beside their size at this theta, and derivatives beside the largest of them.
    """
    case = numbered_case(VALID.index(which), which, FAR_LEFT)
    real = case.estimator.model.likelihood.target_kind == "real"
    y = case.y if real else case.y.astype(int)

    def value_and_grad(theta, noise, x, y, kl_weight):
        return case.estimator.value_and_grad(theta, noise, x, y, kl_weight)[:2]

    data = case.noise, case.x, y, case.kl_weight
    for name, theta in settings(case, which, dtype):
        yield name, stability(value_and_grad, theta, *data, dtype=dtype, n_inputs=1)


def main(dtype="float64", n_combinations=10_000):
    """Judge combinations in a random order; print those that lose digits, and all counts.

    Parameters
    ----------
    dtype : str
        'float64' or 'float32'.
    n_combinations : int or str
        How many of them. By default all.
    """
    warnings.simplefilter("ignore")
    counts = Counter()
    order = np.random.default_rng(0).permutation(len(VALID))[: int(n_combinations)]
    for n_done, index in enumerate(order, 1):
        which = VALID[index]
        for name, result in judged(which, dtype):
            counts[which.posterior, name, "stable" if result else "loses digits"] += 1
            if not result:
                print(f"{which}, {name}: {result}", flush=True)
        if n_done % 100 == 0:
            print(f"{n_done} combinations: {counts.total()} settings", flush=True)
    for (posterior, name, word), count in sorted(counts.items()):
        print(f"{posterior:<12}{name:<11}{word:<13}{count:>6}")


if __name__ == "__main__":
    main(*sys.argv[1:])
