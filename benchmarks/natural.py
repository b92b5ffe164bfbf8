"""IVON beside Adam: the ELBO after a fifth of the steps, on the nine UCI sets (D62).

``python benchmarks/natural.py [set ...]`` prints nats per training row of split 0, at the last
theta of seeds 1 to 3, of sets of more than 8,500 rows of seed 1: network, prior, start and noise
are those of the UCI page, its Adam and its steps, of 32 rows; a fifth of them has more in each.
"""

import sys
from typing import Any

import numpy as np

from bbb_numpy import IVON, Adam, Cosine, LinearWarmUp, LocalReparameterisation, Reparameterised
from bbb_numpy.gradients.closed_form import ClosedFormKL
from bbb_numpy.numeric.standardisation import moments, standardise
from bbb_numpy.training import Recipe, fit, start
from bbb_studies.data import uci
from bbb_studies.uci.methods import MEAN_FIELD, Candidate, Settings, model, natural_rows
from bbb_studies.uci.trials import PROTEIN

RULES = {"Adam": Adam(1e-2, schedule=Cosine()), "IVON": IVON(schedule=Cosine())}
ESTIMATORS = {"reparameterised": Reparameterised, "local": LocalReparameterisation}


def elbo(name: str, rule: Any, estimator_class: Any, share: float, seed: int) -> float:
    """Return the ELBO, nats per row, of 32 weight vectors in pairs, after a share of the steps."""
    table = uci.load(name)
    settings = Settings(**(PROTEIN if name == "protein" else {}))
    x, y = (part[table.training_rows(0)] for part in (table.x, table.y))
    x, y = (standardise(part, *moments(part, True), "float64", "part") for part in (x, y))
    network = model(x.shape[1], Candidate(1.0), settings)
    estimator = estimator_class(network, MEAN_FIELD)
    rng = np.random.default_rng(seed)
    batch_size = settings.batch_size if share == 1.0 else natural_rows(len(x), settings)
    epochs = round(share * settings.steps / -(-len(x) // batch_size))
    recipe = Recipe(rule, epochs, batch_size, warm_up=LinearWarmUp(0.5))
    state = start(estimator, rng, rule, np.float32)
    theta = fit(estimator, state, x, y, recipe, rng=rng, progress=False).theta.astype(float)
    half = np.random.default_rng(123).standard_normal((16, network.layout.size))
    closed_form = ClosedFormKL(network, MEAN_FIELD)
    total = 0.0
    for first_row in range(0, len(x), 1000):
        part = slice(first_row, first_row + 1000)
        weight = len(x[part]) / len(x)
        noise = np.concatenate([half, -half])
        total += closed_form.value_and_grad(theta, noise, x[part], y[part], weight).value
    return -total / len(x)


if __name__ == "__main__":
    for name in sys.argv[1:] or uci.UCI_NAMES:
        for rule, estimator, share in (
            *(("Adam", estimator, 1.0) for estimator in ESTIMATORS),
            *((rule, "local", 0.2) for rule in RULES),
        ):
            seeds = (1,) if len(uci.load(name).y) > 8500 else (1, 2, 3)
            elbos = [elbo(name, RULES[rule], ESTIMATORS[estimator], share, seed) for seed in seeds]
            print(
                f"{name}: {rule}, {estimator}, {share:g} of the steps: {np.round(elbos, 3)}",
                flush=True,
            )
