"""log P(w, s, D) of a model over its weights and scales: what samplers draw from (D33).

The weights' part is `Model.forward` and `Model.vjp`, the functions by which variational inference
is trained. A chain has its own noise and prior scales beside its own weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import groupby, pairwise
from typing import Any

import numpy as np

from ..numeric.buffers import ThreadLocalBuffers
from ..numeric.layout import Array, Layout, Params
from ..numeric.threads import both
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

DEFAULT_HYPERPRIOR = LogNormal()
# Largest number of activations, of all layers and chains, in one of several blocks of rows: 2 MB in
# float64, of which what a layer needs fits into the processor's cache. Up to twice as many make one
# block, since each costs a tenth of a millisecond of Python.
MAX_ACTIVATIONS = 2**18


def _float_array(name: str, value: Any) -> Array:
    """Return `value` unchanged; raise an error that mentions `name` unless it is a float array.

    Parameters
    ----------
    name : str
        Name of the argument, for error messages.
    value : object
        Value that is checked.
    """
    return FLOATS(name, InstanceOf(np.ndarray)(name, value))


@dataclass(frozen=True, eq=False)
class LogJoint:
    r"""Log joint density of weights, scales and data for S chains, and its gradient (D33).

    .. math::
        \log P(w, u, D) = \log P(w \mid u) + \beta \log P(D \mid w, u) + \log p(u)

    with u the learned numbers (logarithms of scales) of prior and likelihood.

    Parameters
    ----------
    model : Model
        Network, prior and likelihood.
    x : ndarray (N, d_in)
        Inputs of all the data.
    y : ndarray (N, K)
        Targets of all the data.
    hyperpriors : dict of str to LogNormal, HalfNormal or HalfCauchy
        By name of the block, e.g. ``{"log_noise": HalfNormal(1.0)}``. Blocks that are not named
        get ``LogNormal()``: within a factor of e of the value that the model was made with.
    power : float
        Exponent beta in [0, 1] of the likelihood: with 1 the density is that of the posterior, with
        0 that of the prior.
    sample_weight : ndarray (N,), optional
        Weight >= 0 of each row's log likelihood; by default all are 1 (D45).

    Raises
    ------
    ValueError
        If numbers of rows differ, a hyperprior names no learned block, or `power` is out of range.
    """

    model: Model
    x: Array
    y: Array
    hyperpriors: Mapping[str, Hyperprior] = field(default_factory=dict)
    power: float = 1.0
    sample_weight: Array | None = None
    # Buffers by number of chains, which falls while chains of NUTS finish one by one, and by rows
    # per block
    buffers: ThreadLocalBuffers = field(
        default_factory=ThreadLocalBuffers, init=False, repr=False
    )

    def __post_init__(self) -> None:
        """Raise an error unless the arguments are valid and fit together."""
        InstanceOf(Model)("model", self.model)
        check_fields(self, x=_float_array, y=_float_array, power=SHARE)
        check_fields(self, hyperpriors=lambda _, value: check_hyperpriors(value))
        check_fields(self, x=Numbers((None, self.model.network.n_columns)))
        check_fields(self, y=Numbers((len(self.x), self.model.outputs)))
        check_fields(self, sample_weight=Optional(Numbers((len(self.x),), low=0.0)))
        if self.sample_weight is not None:
            object.__setattr__(
                self, "sample_weight", self.sample_weight.astype(self.y.dtype)
            )
        names = [name for name, _ in self.model.learned()]
        for name in self.hyperpriors:
            if name not in names:
                listed = ", ".join(names) or "none, as nothing is learned (learn=True)"
                raise ValueError(
                    f"hyperpriors must name learned blocks of the model, which are {listed}; "
                    f"got {name!r}"
                )

    @cached_property
    def layout(self) -> Layout:
        """Names and shapes of the blocks of a position: weights by layer, then learned numbers."""
        return Layout(self.model.layout.blocks + self._learned.blocks)

    @cached_property
    def _learned(self) -> Layout:
        """Names and shapes of the learned blocks of prior and likelihood."""
        return Layout(self.model.learned())

    @cached_property
    def _initial_values(self) -> Params:
        """Initial values of the learned numbers by block name, as set by prior and likelihood."""
        model = self.model
        flat = (
            model.prior.init(np.float64),
            model.likelihood.init(model.outputs, np.float64),
        )
        return self._learned.views(np.concatenate(flat))

    @cached_property
    def _hyperpriors(self) -> list[tuple[Hyperprior, slice, Array]]:
        """Tuples of a hyperprior, the learned numbers it is for, and their initial values.

        Adjacent blocks with the same hyperprior are merged, as it treats each number alone.
        """
        groups = []
        first_column = 0
        by_block = {
            name: self.hyperpriors.get(name, DEFAULT_HYPERPRIOR)
            for name in self._initial_values
        }
        for _, group in groupby(by_block, lambda name: id(by_block[name])):
            names = list(group)
            initial = np.concatenate([self._initial_values[name] for name in names])
            columns = slice(first_column, first_column + len(initial))
            groups.append((by_block[names[0]], columns, initial))
            first_column = columns.stop
        return groups

    @cached_property
    def _rows(self) -> tuple[Array, Array, Array | None]:
        """The inputs, targets and row weights of the data.

        Equal rows are merged into one with their number as its weight, if that halves the rows.
        """
        x, y, v = self.x, self.y, self.sample_weight
        rows = np.concatenate([x, y], axis=1)
        unique_rows, counts = np.unique(rows, axis=0, return_counts=True)
        if 2 * len(unique_rows) <= len(rows) and v is None:
            d_in = x.shape[1]
            x = np.ascontiguousarray(unique_rows[:, :d_in])
            y = np.ascontiguousarray(unique_rows[:, d_in:])
            v = counts.astype(y.dtype)  # weight of a row: its count (D45)
        return x, y, v

    @cached_property
    def _blocks_by_chains(self) -> dict[int, list[tuple[Array, Array, Array | None]]]:
        """Results of `_row_blocks` by the number of chains."""
        return {}

    def _row_blocks(self, chains: int) -> list[tuple[Array, Array, Array | None]]:
        """Return the data in blocks of about equally many rows: inputs, targets and row weights.

        Blocks are so small that the activations of all chains are still in the processor's cache
        when the backward pass of the block needs them.
        """
        if chains not in self._blocks_by_chains:
            x, y, v = self._rows
            row_numbers = max(1, chains) * sum(self.model.network.sizes[1:])
            n_blocks = 1
            if len(x) * row_numbers > 2 * MAX_ACTIVATIONS:
                n_blocks = min(len(x), -(-len(x) * row_numbers // MAX_ACTIVATIONS))
            edges = np.linspace(0, len(x), n_blocks + 1).astype(int)
            self._blocks_by_chains[chains] = [
                (x[first:last], y[first:last], None if v is None else v[first:last])
                for first, last in pairwise(edges)
            ]
        return self._blocks_by_chains[chains]

    def weights(self, position: Array) -> Array:
        """Return the weights of positions (..., D), as a view (..., P)."""
        return position[..., : self.model.layout.size]

    def params(self, position: Array) -> Params:
        """Return the learned numbers of positions (..., D) by block name, as views."""
        return self._learned.views(position[..., self.model.layout.size :])

    def draw_rows(
        self, rng: np.random.Generator, chains: int, size: int
    ) -> Array | None:
        """Draw indices of minibatch rows with replacement, independently for each chain.

        Parameters
        ----------
        rng : numpy.random.Generator
        chains : int
            Number S of chains.
        size : int
            Number of rows of a minibatch.

        Returns
        -------
        ndarray (S, size) of int, or None
            Indices of rows; None, which stands for all rows, if there are no more than `size`.
        """
        if size >= len(self.x):
            return None
        return rng.integers(len(self.x), size=(chains, size))

    def __call__(
        self, position: Array, rows: Array | None = None
    ) -> tuple[Array, Array]:
        """Return the log joint density of S positions, and its gradient.

        Threads may share one `LogJoint`.

        Parameters
        ----------
        position : ndarray (S, D)
            One row per chain: the weights, then the learned numbers, as `layout` names them.
        rows : ndarray (S, B), optional
            Indices of a minibatch, from `draw_rows`; by default all rows. The log likelihood of
            each chain's rows is then multiplied by N / B: its mean over all draws of rows, and
            that of its gradient, are those of all N rows (D64).

        Returns
        -------
        value : ndarray (S,)
            Log density in nats, a new array; not finite if the network overflows.
        gradient : ndarray (S, D)
            Derivative of the log density with respect to the position, a new array.

        Raises
        ------
        ValueError
            If `position` is not an array of floats of this shape.
        """
        fits = isinstance(position, np.ndarray) and position.dtype.kind in "fc"
        if not fits or position.shape[1:] != (self.layout.size,):
            raise ValueError(
                f"position must be an array of shape (chains, {self.layout.size}) of floats; got "
                f"{short_repr(position)}"
            )
        buffers_by_rows = self.buffers.for_size(len(position))
        power = self.power
        if rows is None:
            blocks = self._row_blocks(len(position))
        else:
            # The sum over B rows of a minibatch, times N / B, estimates the sum over all N rows
            power *= len(self.x) / rows.shape[1]  # N / B (D64)
            row_weights = self.sample_weight
            if row_weights is not None:
                row_weights = row_weights[rows]
            blocks = [(self.x[rows], self.y[rows], row_weights)]
        # The weights w are used for all blocks, so w and the first block share buffers that no
        # other block rewinds
        buffers = buffers_by_rows[0 if rows is None else -1].rewind()
        n_weights = self.model.layout.size
        # Contiguous copies in memory that every call reuses, so that views are made only once
        w = buffers.array((len(position), n_weights), position.dtype)
        np.copyto(w, position[:, :n_weights])
        learned = buffers.array((len(position), self._learned.size), position.dtype)
        np.copyto(learned, position[:, n_weights:])
        d_learned = buffers.like(learned)
        params = buffers.views(learned, self._learned.views)
        d_params = buffers.views(d_learned, self._learned.views)

        model = self.model
        x, y, v = blocks[0]
        # log P(w), and log P(D|w) of the first block of rows
        joint = model.forward(w, params, x, y, buffers, v)  # K11-K16, K31-K36
        # log P(w) plus beta times the log likelihood
        value = joint.log_prior + power * joint.log_likelihood  # log joint (D33)
        ones = np.ones(len(position), position.dtype)
        # Gradient of the value for the weights; the cotangents of its two terms are 1 and `power`
        d_w = model.vjp(joint, ones, power * ones, d_params, buffers)  # K19, K37-K42
        if len(blocks) > 1:
            # The halves are the same, and so are the sums, on one core
            middle = (len(blocks) + 1) // 2
            halves = both(
                partial(self._log_likelihood, w, learned, blocks[1:middle]),
                partial(self._log_likelihood, w, learned, blocks[middle:]),
            )
            for log_likelihood, d_w_half, d_learned_half in halves:
                value = value + log_likelihood
                d_w += d_w_half
                d_learned += d_learned_half
        for hyperprior, columns, initial in self._hyperpriors:
            u = learned[:, columns]
            value = value + np.add.reduce(hyperprior.log_density(u, initial), axis=-1)
            d_learned[:, columns] += hyperprior.slope(u, initial)  # d log p / du (D32)
        return value, np.concatenate([d_w, d_learned], axis=1)

    def _log_likelihood(
        self, w: Array, learned: Array, blocks: list[tuple[Array, Array, Array | None]]
    ) -> tuple[Array, Array, Array]:
        """Return beta log P(D|w) of blocks of rows, and its gradients by `w` and `learned` (D33).

        Parameters
        ----------
        w : ndarray (S, P)
            Weights.
        learned : ndarray (S, L)
            Learned numbers of prior and likelihood.
        blocks : list
            Inputs, targets and row weights of each block.
        """
        buffers_by_rows = self.buffers.for_size(len(w))
        params = self._learned.views(learned)
        value = np.zeros(len(w), w.dtype)
        d_w = np.zeros_like(w)
        d_learned = np.zeros_like(learned)
        cotangent = np.full(len(w), self.power, w.dtype)
        for x, y, v in blocks:  # log P(D|w) is a sum over blocks
            buffers = buffers_by_rows[len(x)].rewind()
            evaluation = self.model.evaluate(w, params, x, y, buffers, v)
            value += self.power * evaluation.log_likelihood  # D33
            d_block = np.zeros_like(
                learned
            )  # the likelihood writes its own blocks alone
            d_w += self.model.likelihood_vjp(
                evaluation, cotangent, self._learned.views(d_block), buffers
            )
            d_learned += d_block
        return value, d_w, d_learned

    def rowwise(self, position: Array) -> Array:
        """Return the log likelihood of each of N rows for S positions, (S, N), without row weights.

        Parameters
        ----------
        position : ndarray (S, D)
            Weights and learned numbers, one row per chain.
        """
        f = self.model.predict(np.ascontiguousarray(self.weights(position)), self.x)
        return self.model.likelihood.log_density(self.params(position), f, self.y)[0]

    def log_likelihood(self, position: Array) -> Array:
        """Return the log likelihood of all rows for S positions, (S,) in nats, with row weights.

        The exponent `power` does not enter.

        Parameters
        ----------
        position : ndarray (S, D)
            Weights and learned numbers, one row per chain.
        """
        log_likelihood = self.rowwise(position)
        if self.sample_weight is not None:
            log_likelihood = log_likelihood * self.sample_weight
        return log_likelihood.sum(axis=-1)

    @accepts(rng=GENERATOR, chains=SAMPLES, dtype=DTYPE)
    def draw_prior(
        self, rng: np.random.Generator, chains: int, dtype: Any = np.float64
    ) -> Array:
        """Draw positions from the prior: learned numbers from hyperpriors, then weights given them.

        Parameters
        ----------
        rng : numpy.random.Generator
        chains : int
            Number S of positions.
        dtype : dtype
            Dtype of the result, float64 or float32.

        Returns
        -------
        ndarray (S, D)
            One position in each row.
        """
        position = np.empty((chains, self.layout.size))
        for name, block in self.params(position).items():
            hyperprior = self.hyperpriors.get(name, DEFAULT_HYPERPRIOR)
            block[...] = hyperprior.draw(
                rng, (chains, block.shape[-1]), self._initial_values[name]
            )
        weights = self.weights(position)
        weights[...] = self.model.prior.draw(
            rng, self.params(position), (chains, weights.shape[-1])
        )
        return position.astype(dtype)
