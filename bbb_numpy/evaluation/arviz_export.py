"""Draws as ArviZ's InferenceData or DataTree.

ArviZ is optional: extra `diagnostics`.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ..model.joint import Model
from ..model.log_joint import LogJoint
from ..numeric.layout import Array
from ..numeric.validation import COUNT, MOST_SAMPLES, Numbers, accepts, flag, whole
from ..sampling.draws import Draws
from ..sampling.mcmc import MetropolisHastings
from ..version import __version__
from .convergence import draws_of, import_arviz, model_of, of_positions

__all__ = ["to_arviz"]


def _joint(draws: Draws, x: Any, y: Any) -> LogJoint | None:
    """Return the density of the draws with its data, or with those given instead."""
    rows, dtype = Numbers(low=-1e100, high=1e100), draws.positions.dtype
    given: dict[str, Any] = {
        name: np.asarray(rows(name, value), dtype)
        for name, value in (("x", x), ("y", y))
        if value is not None
    }
    if isinstance(draws.target, LogJoint):
        return replace(draws.target, **given)
    if not given:
        return None
    model = model_of(draws)
    if model is None or len(given) < 2:
        raise ValueError("draws without data: give both x and y, of a model that is known")
    return LogJoint(model, **given)


def _natural(blocks: dict[str, Array]) -> dict[str, Array]:
    """Return the scales of blocks that are named as logarithms: log_noise makes noise."""
    return {
        name.replace("log_", "", 1): np.exp(values)
        for name, values in blocks.items()
        if "log_" in name
    }


def _dims(model: Model) -> dict[str, list[str]]:
    """Name the axes of every block, of the scales in natural units, and of the data."""
    last = len(model.network.sizes) - 2
    dims = {"x": ["row", "input"], "y": ["row", "target"][: 1 + (model.outputs > 1)]}
    below = "input"
    for layer in range(last + 1):
        above = "output" if layer == last else f"unit_{layer}"
        dims |= {f"W{layer}": [below, above], f"b{layer}": [above]}
        below = above
    for name, shape in model.likelihood.blocks(model.outputs):
        if shape == (model.outputs,):
            dims |= {name: ["target"], name.replace("log_", "", 1): ["target"]}
    return dims


@accepts(
    log_likelihood=flag,
    predictive=flag,
    prior=partial(whole, least=0, most=MOST_SAMPLES),
    thin=COUNT,
    seed=partial(whole, least=0, most=None),
)
def to_arviz(
    draws: Any,
    x: Any = None,
    y: Any = None,
    *,
    log_likelihood: bool = True,
    predictive: bool = True,
    prior: int = 500,
    thin: int = 1,
    seed: int = 0,
) -> Any:
    """Return draws in ArviZ's container, for its tables and pictures.

    Parameters
    ----------
    draws : Draws, or a learner with ``draws_``
    x, y : array-like (N, d_in), (N, K), optional
        Rows for the log likelihood and the predictive, in the units in which the chains saw
        them; by default the very rows that they saw. LOO has a meaning for these alone. Draws
        that were loaded have no data: give both.
    log_likelihood, predictive : bool
        Include log P(y|x, w) of every row and draw, and a drawn y: T * S * N numbers each.
    prior : int
        Draws from the prior and its predictive, >= 0.
    thin : int
        Keep every so many-th draw.
    seed : int
        Of the draws from the predictive and the prior.

    Returns
    -------
    xarray.DataTree, before ArviZ 1 arviz.InferenceData
        Groups posterior (the blocks of the weights with the units as dimensions, the learned
        numbers, and their scales in natural units), sample_stats; if model and data are known
        also log_likelihood, posterior_predictive, prior, prior_predictive, observed_data and
        constant_data. The energy is that of Hamiltonian kernels only. Without a `LogJoint`
        hyperpriors are not known: then a model that learns numbers has no prior groups.

    Notes
    -----
    ``az.loo`` warns where one row changes the posterior so much that its importance weights have
    a heavy tail (Pareto k above 0.7): its number is then not to be trusted there. ArviZ's
    R-hat of weights is judged in `convergence`.

    A learner's chains saw standardised targets: in units of y the log likelihood of a row is
    ``log(y_scale_)`` lower, summed over the targets.
    """
    az, found = import_arviz(), draws_of(draws)
    joint = _joint(found, x, y)
    kept = found.positions[::thin].swapaxes(0, 1)  # (S, T, D): the chain first
    flat = kept.reshape(-1, kept.shape[-1])
    attributes = {
        "inference_library": "bbb_numpy",
        "inference_library_version": __version__,
        "sampler": type(found.kernel).__name__,
        "tuning_steps": found.warm_up,
    }
    posterior = dict(found.layout.views(kept))
    groups = {"posterior": posterior, "sample_stats": _statistics(found, thin)}
    dims = {}
    known = model_of(found) if joint is None else joint.model
    if known is not None:
        names = {name for name, _ in known.learned()}
        posterior |= _natural({name: posterior[name] for name in names})
        dims = _dims(known)
    if joint is not None:
        rng, lead = np.random.default_rng(seed), kept.shape[:2]
        likelihood = joint.model.likelihood
        drawn = partial(likelihood.draw, rng)
        shape = joint.y.shape if joint.model.outputs > 1 else joint.y.shape[:1]
        groups |= {"observed_data": {"y": joint.y.reshape(shape)}, "constant_data": {"x": joint.x}}
        if log_likelihood:
            rowwise = of_positions(
                joint, flat, lambda params, f: likelihood.log_density(params, f, joint.y)[0]
            )
            groups["log_likelihood"] = {"y": rowwise.reshape(*lead, len(joint.x))}  # (S, T, N)
        if predictive:
            replicated = of_positions(joint, flat, drawn)
            groups["posterior_predictive"] = {"y": replicated.reshape(*lead, *shape)}
        if prior and (isinstance(found.target, LogJoint) or not names):
            before = joint.draw_prior(rng, prior, flat.dtype)
            numbers = {name: b[None] for name, b in joint.layout.views(before).items()}
            groups["prior"] = numbers | _natural({name: numbers[name] for name in names})
            replicated = of_positions(joint, before, drawn)
            groups["prior_predictive"] = {"y": replicated.reshape(1, prior, *shape)}
    return _exported(az, groups, dims, attributes)


def _exported(
    az: Any,
    groups: dict[str, dict[str, Array]],
    dims: dict[str, list[str]],
    attributes: dict[str, Any],
) -> Any:
    """Return the groups in ArviZ's container: a DataTree, before ArviZ 1 an InferenceData."""
    with warnings.catch_warnings():  # the axes are in order, however few the draws are
        told = "More chains|Found chain dimension"  # by ArviZ before 1, and since
        warnings.filterwarnings("ignore", told, UserWarning)
        if not az.__version__.startswith("0."):
            attrs = {"/": attributes, "posterior": attributes}
            return az.from_dict(groups, dims=dims, attrs=attrs)
        likelihood = groups.pop("log_likelihood", None)
        made = az.from_dict(**groups, dims=dims, attrs=dict(attributes), posterior_attrs=attributes)
        if likelihood is not None:  # one number per row, whatever the targets of a row
            made.extend(az.from_dict(log_likelihood=likelihood, dims={"y": ["row"]}))
    return made


def _statistics(draws: Draws, thin: int) -> dict[str, Array]:
    """Return what the kernel tells of every draw under ArviZ's names, (S, T) each."""
    stats = {name: values[::thin].T for name, values in draws.stats.items()}
    out = {
        "lp": draws.log_density[::thin].T,
        "acceptance_rate": stats["acceptance"],
        "diverging": stats["divergent"].astype(bool),
        "n_steps": stats["gradients"],
    }
    if not isinstance(draws.kernel, MetropolisHastings):
        out["energy"] = stats["energy"]
    if stats["depth"].any():
        out["tree_depth"] = stats["depth"]
    if np.isfinite(draws.step_size):
        out["step_size"] = np.full(out["lp"].shape, draws.step_size)
    return out
