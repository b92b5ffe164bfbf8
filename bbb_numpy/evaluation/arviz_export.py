"""Draws in ArviZ's container. ArviZ is optional: extra `diagnostics`."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ..model.log_joint import LogJoint
from ..numeric.validation import accepts, flag
from .convergence import draws_of, evaluate_draws, import_arviz, known_model

__all__ = ["to_arviz"]


@accepts(log_likelihood=flag)
def to_arviz(
    draws: Any, x: Any = None, y: Any = None, *, log_likelihood: bool = True
) -> Any:
    """Return posterior draws in ArviZ's data container, for its tables and plots.

    Parameters
    ----------
    draws : Draws, or a learner with ``draws_``
        T draws of each of S chains.
    x, y : array-like (N, d_in), (N, K), optional
        Inputs and targets of the log likelihood, standardised like the rows that the chains were
        fitted to. By default these rows, the only ones for which LOO has a meaning. Draws that
        were loaded from a file hold no data: give both x and y.
    log_likelihood : bool
        Whether to include log P(y|x, w) of every row and draw, T * S * N numbers.

    Returns
    -------
    xarray.DataTree, before ArviZ 1 arviz.InferenceData
        Groups ``posterior`` (weights, learned numbers such as ``log_noise``, and the learned scales
        themselves, such as ``noise``), ``sample_stats`` and, if model and data are known,
        ``log_likelihood``. The energy has a meaning for Hamiltonian kernels only.

    Notes
    -----
    ``az.loo`` warns where one row changes the posterior so much that its importance weights have
    a heavy tail (Pareto k above 0.7): its number is then not to be trusted there. ArviZ's
    R-hat of weights is judged in `convergence`.

    A learner's chains saw standardised targets: in units of y the log likelihood of a row is
    ``log(y_scale_)`` lower, with ``target="log"`` by ``log(y_scale_) + log(y)``, summed over the
    targets.
    """
    az = import_arviz()
    draws = draws_of(draws)
    joint: Any = draws.target
    if x is not None or y is not None:
        dtype = draws.positions.dtype
        x, y = np.asarray(x, dtype), np.asarray(y, dtype)
        joint = LogJoint(known_model(draws), x, y)
    # ArviZ expects chains on the first axis and draws on the second
    blocks = draws.layout.views(draws.positions.swapaxes(0, 1))
    scales = {
        name.replace("log_", "", 1): np.exp(log_scale)
        for name, log_scale in blocks.items()
        if "log_" in name
    }
    stats = {
        "lp": draws.log_density.T,
        "acceptance_rate": draws.stats["acceptance"].T,
        "diverging": draws.stats["divergent"].T > 0,
        "energy": draws.stats["energy"].T,
        "n_steps": draws.stats["gradients"].T,
        "tree_depth": draws.stats["depth"].T,
    }
    groups = {"posterior": scales | blocks, "sample_stats": stats}
    if log_likelihood and isinstance(joint, LogJoint):
        likelihood = joint.model.likelihood
        rowwise = evaluate_draws(
            joint,
            draws.flat,
            lambda params, f: likelihood.log_density(params, f, joint.y)[0],
        )
        # (T, S, N) log likelihood of T draws of S chains at N rows
        rowwise = rowwise.reshape(*draws.log_density.shape, len(joint.x))
        groups["log_likelihood"] = {"y": rowwise.swapaxes(0, 1)}
    # If chains outnumber draws ArviZ warns that axes may be swapped, which they are not
    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", "More chains|Found chain dimension", UserWarning
        )
        if az.__version__.startswith("0."):
            return az.from_dict(**groups)
        return az.from_dict(groups)
