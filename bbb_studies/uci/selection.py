"""Hyperparameters of the UCI benchmark, chosen inside one training part.

Methods that minimise a bound on the evidence are compared by that bound, on all training rows:
the fit that reached the lowest is the result. The others are fitted to four fifths of the training
rows and compared by the log density of the rest, of one or several folds; the best is fitted again
to all. The noise is no candidate: every method learns it with the weights. Nothing at all is chosen
for the default learner, nor for Laplace's approximation, whose evidence chooses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from math import ceil, inf, isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bbb_numpy.evaluation.predictive import log_predictive_density
from bbb_numpy.numeric.elementary import logsumexp

from .methods import METHODS, SAMPLERS, Candidate, Fit, Settings, fit

Array = NDArray[Any]
VALIDATION_SHARE = 0.2  # of the training rows, in each fold
PILOT_SAMPLES = 100  # in the predictive mixture by which candidates are compared


def candidates(method: str) -> list[Candidate]:
    """Return the priors that a method chooses from: N(0, 1) as Sagar; layer by layer, and wider.

    Dropout chooses what it leaves out, SWAG its start and its step size, both with one prior.
    """
    if method == "sghmc":
        return [Candidate(1.0), Candidate(4.0)]
    if method in SAMPLERS:
        return [Candidate(1.0), Candidate(2.0), Candidate(4.0)]
    if method == "dropout":
        return [
            Candidate(1.0, length=0.5, left_out=share) for share in (0.005, 0.02, 0.1)
        ]
    if method == "swag":
        return [
            Candidate(1.0, length=0.1),
            Candidate(1.0, length=0.5),
            Candidate(1.0, 3e-3, 0.25),
        ]
    return [Candidate(prior, length=0.5) for prior in (None, 1.0, 2.0)]


def refinements(method: str, best: Candidate) -> list[Candidate]:
    """Return the candidates to try with the best prior: other step sizes and lengths of training.

    Parameters
    ----------
    method : str
        A key of `METHODS`.
    best : Candidate
        The best of `candidates`.
    """
    if method in (*SAMPLERS, "eubo", "dropout", "swag"):
        return []
    if METHODS[method].criterion == "bound":
        return [Candidate(best.prior), Candidate(best.prior, 3e-3)]
    return [Candidate(best.prior, length=0.1), Candidate(best.prior, 3e-3, 0.25)]


def select_and_fit(
    x: Array, y: Array, method: str, settings: Settings, seed: int
) -> tuple[Fit, dict[str, Any]]:
    """Return the fit with the best hyperparameters, and what they are.

    Parameters
    ----------
    x : array (N, d_in)
        Inputs of the training part, standardised.
    y : array (N, 1)
        Targets of the training part, standardised.
    method : str
        A key of `METHODS`.
    settings : Settings
        Sizes of the computation.
    seed : int
        Of everything random.

    Returns
    -------
    fit : Fit
        On all N rows.
    chosen : dict
        The hyperparameters; ``tried`` has the criterion of each candidate, nats per row.

    Raises
    ------
    ArithmeticError
        If every candidate diverged.
    """
    criterion = METHODS[method].criterion
    if criterion == "nothing":
        only = fit(x, y, method, [Candidate(None)], settings, [seed, 0])[0]
        return only, {"by": criterion, "tried": {}}
    order = np.random.default_rng([seed, 2]).permutation(len(x))
    held_out = max(1, int(VALIDATION_SHARE * len(x)))
    folds = [order[k * held_out : (k + 1) * held_out] for k in range(settings.folds)]
    pilot = replace(
        settings,
        warm_up=ceil(settings.pilot * settings.warm_up),
        draws=ceil(settings.pilot * settings.draws),
        members=min(2, settings.members),
        chains=min(2, settings.chains),
    )

    def fit_candidates(
        rows: tuple[Array, Array],
        candidates: list[Candidate],
        sizes: Settings,
        stream: int,
    ) -> Any:
        """Return a fit for each candidate, None for one that diverges.

        Parameters
        ----------
        rows : tuple of array
            Inputs and targets to train on.
        candidates : list of Candidate
            They differ in their prior alone.
        sizes : Settings
            Sizes of the computation.
        stream : int
            Number of the random stream, apart from the seed.
        """
        try:
            x, y = rows
            return fit(x, y, method, candidates, sizes, [seed, stream])
        except ArithmeticError:
            if len(candidates) == 1:
                return [None]
            return [
                fit_candidates(rows, [candidate], sizes, stream)[0]
                for candidate in candidates
            ]

    def losses(candidates: list[Candidate], out: Array) -> list[float]:
        """Return the losses of candidates on the rows `out`, fitted to all other rows."""
        is_training = np.ones(len(x), bool)
        is_training[out] = False
        fits = fit_candidates((x[is_training], y[is_training]), candidates, pilot, 3)
        return [
            inf
            if candidate_fit is None
            else _loss(candidate_fit, x[~is_training], y[~is_training], seed)
            for candidate_fit in fits
        ]

    tried: dict[Candidate, float] = {}
    # Fits to all training rows, of the candidates that are compared by their bound.
    fits: dict[Candidate, Any] = {}

    def compare(candidates: Sequence[Candidate]) -> Candidate:
        for _, group in groupby(candidates, lambda candidate: candidate[1:]):
            similar = list(group)  # they differ in their prior alone
            if criterion == "bound":
                fits_of_all = fit_candidates((x, y), similar, settings, 0)
                fits.update(zip(similar, fits_of_all, strict=True))
                tried.update(
                    {c: inf if fits[c] is None else fits[c].bound for c in similar}
                )
            else:
                fold_losses = [losses(similar, out) for out in folds]
                tried.update(
                    zip(similar, np.mean(fold_losses, axis=0).tolist(), strict=True)
                )
        finite = {
            candidate: value for candidate, value in tried.items() if isfinite(value)
        }
        if not finite:
            raise ArithmeticError(
                f"every candidate diverged: {', '.join(map(_label, tried))}"
            )
        return min(finite, key=finite.__getitem__)

    best = compare(refinements(method, compare(candidates(method))))
    final = fits.get(best) or fit(x, y, method, [best], settings, [seed, 0])[0]
    return final, {
        "prior": _prior(best),
        "learning_rate": best.learning_rate,
        "length": best.length,
        **({"left_out": best.left_out} if best.left_out else {}),
        "by": criterion,
        "tried": {_label(c): v if isfinite(v) else None for c, v in tried.items()},
    }


def _loss(fitted: Fit, x: Array, y: Array, seed: int) -> float:
    """Return minus the log predictive density per row, in nats."""
    logs = []
    for source, theta, share in fitted.members(PILOT_SAMPLES):
        rng = np.random.default_rng([seed, 4])
        logs.append(log_predictive_density(source, theta, x, y, rng=rng, samples=share))
    log_densities = np.stack(logs, axis=-1).astype(float)  # (N, members)
    return -float(np.mean(logsumexp(log_densities) - np.log(len(logs))))


def _label(candidate: Candidate) -> str:
    left_out = f", left out {candidate.left_out:g}" if candidate.left_out else ""
    rate = candidate.learning_rate
    length = candidate.length
    return f"{_prior(candidate)}, rate {rate:g}, length {length:g}{left_out}"


def _prior(candidate: Candidate) -> str:
    if candidate.prior is None:
        return "N(0, 1)"
    return f"{candidate.prior:g} x (1, 1/sqrt(units))"
