"""log P(w, s, D) of a model over its weights and scales: what samplers draw from (D33).

The weights' part is `Model.forward` and `Model.vjp`, the functions by which variational inference
is trained. A chain has its own noise and prior scales beside its own weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from typing import Any

import numpy as np

from ..numeric.buffers import ThreadLocalBuffers
from ..numeric.layout import Array, Layout, Params
from ..numeric.validation import (
    DTYPE,
    FLOATS,
    GENERATOR,
    SAMPLES,
    SHARE,
    InstanceOf,
    Numbers,
    Optional,
    accepts,
    check_fields,
    short_repr,
)
from ..parts.hyperpriors import Hyperprior, LogNormal, check_hyperpriors
from .joint import Model

__all__ = ["LogJoint"]

DEFAULT = LogNormal()
# numbers of a layer, of one chain, that are evaluated together: 0.5 MB in float64
BLOCK = 2**16


def _rows(name: str, value: Any) -> Array:
    return FLOATS(name, InstanceOf(np.ndarray)(name, value))


@dataclass(frozen=True, eq=False)
class LogJoint:
    r"""The log joint density of weights, scales and data, and its gradient, of S chains (D33).

    .. math::
        \log P(w, u, D) = \log P(w \mid u) + \beta \log P(D \mid w, u) + \log p(u)

    with u the learned numbers (logarithms of scales) of prior and likelihood.

    Parameters
    ----------
    model : Model
    x, y : ndarray (N, d_in), (N, K)
        All the data.
    hyperpriors : dict of str to LogNormal, HalfNormal or HalfCauchy
        By name of the block, e.g. ``{"log_noise": HalfNormal(1.0)}``. Blocks that are not named
        get ``LogNormal()``: within a factor of e of the value that the model was made with.
    power : float
        beta in [0, 1], of the likelihood alone: 1 is the posterior, 0 the prior.
    sample_weight : ndarray (N,), optional
        How often each row counts, >= 0 (D45).

    Raises
    ------
    ValueError
        If rows do not match, a name is no block of the model, or `power` is out of range.
    """

    model: Model
    x: Array
    y: Array
    hyperpriors: Mapping[str, Hyperprior] = field(default_factory=dict)
    power: float = 1.0
    sample_weight: Array | None = None
    # By number of chains, as trees of NUTS end one by one; and of rows of a block
    buffers: ThreadLocalBuffers = field(
        default_factory=ThreadLocalBuffers, init=False, repr=False
    )

    def __post_init__(self) -> None:
        InstanceOf(Model)("model", self.model)
        check_fields(self, x=_rows, y=_rows, power=SHARE)
        check_fields(self, hyperpriors=lambda _, given: check_hyperpriors(given))
        check_fields(self, x=Numbers((None, self.model.network.sizes[0])))
        check_fields(self, y=Numbers((len(self.x), self.model.outputs)))
        check_fields(self, sample_weight=Optional(Numbers((len(self.x),), low=0.0)))
        if self.sample_weight is not None:
            object.__setattr__(
                self, "sample_weight", self.sample_weight.astype(self.y.dtype)
            )
        known = [name for name, _ in self.model.learned()]
        for name in self.hyperpriors:
            if name not in known:
                there = ", ".join(known) or "none: nothing is learned (learn=True)"
                raise ValueError(
                    f"hyperpriors names {name!r}; the model's blocks are {there}"
                )

    @cached_property
    def layout(self) -> Layout:
        """The blocks of one position: the weights layer by layer, then the learned numbers."""
        return Layout(self.model.layout.blocks + self._learned.blocks)

    @cached_property
    def _learned(self) -> Layout:
        return Layout(self.model.learned())

    @cached_property
    def _start(self) -> Params:
        """The learned numbers that the model was made with."""
        model = self.model
        flat = (
            model.prior.init(np.float64),
            model.likelihood.init(model.outputs, np.float64),
        )
        return self._learned.views(np.concatenate(flat))

    @cached_property
    def _hyperpriors(self) -> list[tuple[Hyperprior, slice, Array]]:
        """Hyperprior, place in a position and start of the learned numbers.

        Blocks side by side with the same hyperprior are one: it looks at each number alone.
        """
        found, end = [], self.model.layout.size
        own = {name: self.hyperpriors.get(name, DEFAULT) for name in self._start}
        for _, names in groupby(own, lambda name: id(own[name])):
            first, *others = names
            start = np.concatenate([self._start[name] for name in (first, *others)])
            found.append((own[first], slice(end, end + len(start)), start))
            end += len(start)
        return found

    @cached_property
    def _evaluated(self) -> list[tuple[Array, Array, Array | None]]:
        """Rows and their weights to evaluate: equal rows once, if that halves them; in blocks.

        What a block leaves for its way back is then still in the processor's cache.
        """
        x, y, v = self.x, self.y, self.sample_weight
        both = np.concatenate([x, y], axis=1)
        rows, counts = np.unique(both, axis=0, return_counts=True)
        if 2 * len(rows) <= len(both) and v is None:
            x, y = (
                np.ascontiguousarray(part)
                for part in np.split(rows, [x.shape[1]], axis=1)
            )
            v = counts.astype(y.dtype)  # D45
        step = max(1, BLOCK // max(self.model.network.sizes[1:]))
        blocks = [
            slice(begin, begin + step) for begin in range(0, max(1, len(x)), step)
        ]
        return [
            (x[block], y[block], None if v is None else v[block]) for block in blocks
        ]

    def weights(self, position: Array) -> Array:
        """View the weights (..., P) of positions (..., D)."""
        return position[..., : self.model.layout.size]

    def params(self, position: Array) -> Params:
        """View the learned numbers of positions (..., D), by block."""
        return self._learned.views(position[..., self.model.layout.size :])

    def draw_rows(
        self, rng: np.random.Generator, chains: int, size: int
    ) -> Array | None:
        """Draw the rows (S, size) of a minibatch, each chain's own; None: all of them are fewer.

        Each row is drawn from all N, whatever the others are, so that one may come twice.
        """
        return (
            rng.integers(len(self.x), size=(chains, size))
            if size < len(self.x)
            else None
        )

    def __call__(
        self, position: Array, rows: Array | None = None
    ) -> tuple[Array, Array]:
        """Return the log density (S,), in nats, and its gradient (S, D), at positions (S, D).

        Both are fresh arrays. Non-finite where the network overflows. Threads may share it. With
        `rows` (S, B) of `draw_rows` the likelihood is N / B times that of each chain's rows: over
        all draws of rows its mean, and the gradient's, are those of all N (D64).

        Raises
        ------
        ValueError
            If `position` is no array of this shape.
        """
        fits = isinstance(position, np.ndarray) and position.dtype.kind in "fc"
        if not fits or position.shape[1:] != (self.layout.size,):
            raise ValueError(
                f"position must be an array of shape (chains, {self.layout.size}) of floats; got "
                f"{short_repr(position)}"
            )
        kept = self.buffers.for_size(len(position))  # of rows of a block
        power, evaluated = self.power, self._evaluated
        if rows is not None:
            power *= len(self.x) / rows.shape[1]  # D64
            counted = None if self.sample_weight is None else self.sample_weight[rows]
            evaluated = [(self.x[rows], self.y[rows], counted)]
        # of w and the first block: w outlives it
        buffers = kept[0 if rows is None else -1].rewind()
        weights = self.weights(position)
        w = buffers.like(weights)  # in one piece, and the same array as the call before
        np.copyto(w, weights)
        gradient = np.empty_like(position)
        params, d_params = self.params(position), self.params(gradient)

        model, ((x, y, v), *others) = self.model, evaluated
        joint = model.forward(w, params, x, y, buffers, v)  # K11-K16, K31-K36
        value = joint.log_prior + power * joint.log_likelihood  # D33
        ones = np.ones(len(position), position.dtype)
        d_w = model.vjp(joint, ones, power * ones, d_params, buffers)  # K19, K37-K42
        np.copyto(self.weights(gradient), d_w)
        for x, y, v in others:  # their likelihood: it is a sum over rows
            buffers = kept[len(x)].rewind()
            found = model.evaluate(w, params, x, y, buffers, v)
            value = value + self.power * found.log_likelihood  # D33
            more = np.zeros_like(position)
            d_w = model.likelihood_vjp(
                found, self.power * ones, self.params(more), buffers
            )
            np.copyto(self.weights(more), d_w)
            gradient += more
        for hyperprior, where, start in self._hyperpriors:
            u = position[:, where]
            value = value + np.add.reduce(hyperprior.log_density(u, start), axis=-1)
            gradient[:, where] += hyperprior.slope(u, start)  # D32
        return value, gradient

    def rowwise(self, position: Array) -> Array:
        """Return log P(y|x, w, u) (S, N) of every row, counted once, for positions (S, D)."""
        f = self.model.predict(np.ascontiguousarray(self.weights(position)), self.x)
        return self.model.likelihood.log_density(self.params(position), f, self.y)[0]

    def log_likelihood(self, position: Array) -> Array:
        """Return log P(D|w, u) (S,) for positions (S, D), to the power 1 whatever `power` is."""
        rows = self.rowwise(position)
        return (rows if self.sample_weight is None else rows * self.sample_weight).sum(
            axis=-1
        )

    @accepts(rng=GENERATOR, chains=SAMPLES, dtype=DTYPE)
    def draw_prior(
        self, rng: np.random.Generator, chains: int, dtype: Any = np.float64
    ) -> Array:
        """Draw positions (S, D) from hyperpriors and prior."""
        position = np.empty((chains, self.layout.size))
        for name, block in self.params(position).items():
            hyperprior = self.hyperpriors.get(name, DEFAULT)
            block[...] = hyperprior.draw(
                rng, (chains, block.shape[-1]), self._start[name]
            )
        weights = self.weights(position)
        weights[...] = self.model.prior.draw(
            rng, self.params(position), (chains, weights.shape[-1])
        )
        return position.astype(dtype)
