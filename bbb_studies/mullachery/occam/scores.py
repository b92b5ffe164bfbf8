"""What the models are judged by: evidence, divergences, Bayes factors (M20, M21)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbb_numpy.evaluation.model_checks import BayesFactor, bayes_factor
from bbb_numpy.model.log_joint import LogJoint
from bbb_numpy.progress import Done, unseen
from bbb_studies import linear_gaussian
from bbb_studies.annealing import Annealed, evidence

from .models import LABELS, POINTS, ROWS, Budget, Labelled, changes, regression_models

__all__ = ["Checked", "Found", "Measured", "best_rival", "check_labels", "divergences", "measure"]

Array = NDArray[Any]


class Found(NamedTuple):
    """A log evidence in nats and its standard error."""

    log_evidence: float
    error: float
    lower: float  # mean log weight, below on average


class Checked(NamedTuple):
    """A log evidence of a label vector found once more, by annealing."""

    model: str
    labels: int  # index in `LABELS`
    known: float  # nats
    known_error: float  # 0 by quadrature
    run: Annealed

    @property
    def off(self) -> float:
        """Annealing less the known value, in standard errors of both."""
        error = np.hypot(self.run.error, self.known_error)
        return float((self.run.log_evidence - self.known) / error)


class Measured(NamedTuple):
    """A data set and what every model says of it."""

    source: str
    y: Array  # (N, 1)
    found: dict[str, Found]


def divergences(models: Mapping[str, Labelled]) -> dict[str, dict[str, float]]:
    """Return KL(m || m') in nats: what m' loses on average on data from m (M21)."""
    return {
        m: {
            other: float(np.sum(one.probability * np.log(one.probability / two.probability)))
            for other, two in models.items()
        }
        for m, one in models.items()
    }


def check_labels(
    models: Mapping[str, Labelled], rng: np.random.Generator, budget: Budget
) -> Iterator[Checked]:
    """Anneal on label vectors of growing complexity."""
    asked = np.linspace(0, POINTS - 2, budget.checked).astype(int)
    by_changes = [np.flatnonzero(changes(LABELS) == c) for c in asked]
    for which in (int(rng.choice(some)) for some in by_changes):
        y = LABELS[which][:, None].astype(float)
        for name in ("line", "parabola", "degree 7", "network"):
            model = models[name]
            known = model.probability[which]
            run = evidence(
                LogJoint(model.model, model.x, y),
                chains=2 * budget.chains,
                steps=budget.steps // 2,
                seed=rng,
            )
            error = float(model.error[which] / known)
            yield Checked(name, which, float(np.log(known)), error, run)


def measure(rng: np.random.Generator, budget: Budget, done: Done = unseen) -> list[Measured]:
    """Draw regressions from every model, and find every model's evidence of each."""
    models, x = regression_models(), np.linspace(-2.0, 2.0, ROWS)[:, None]
    found = []
    for source, model in models.items():
        for _ in range(budget.sets):
            w = model.prior.draw(rng, {}, (1, model.layout.size))
            y = model.likelihood.draw(rng, {}, model.predict(w, x))[0]
            line = linear_gaussian.exact(linear_gaussian.Regression(models["line"], x, y))
            row = {"line": Found(line.log_evidence, 0.0, line.log_evidence)}
            for name in ("small network", "large network"):
                run = evidence(
                    LogJoint(models[name], x, y), chains=budget.chains, steps=budget.steps,
                    pilot_chains=max(budget.chains // 2, 10), seed=rng,
                )  # fmt: skip
                row[name] = Found(run.log_evidence, run.error, run.lower)
            found.append(Measured(source, y, row))
            done(4)  # as long as all checks of one label vector
    return found


def best_rival(measured: Measured) -> tuple[str, BayesFactor]:
    """Return the best model but the source, and the Bayes factor of the source against it."""
    own = measured.found[measured.source]
    rivals = {name: one for name, one in measured.found.items() if name != measured.source}
    rival = max(rivals, key=lambda name: rivals[name].log_evidence)
    return rival, bayes_factor(own, rivals[rival])
