"""Draws of several chains, as a sampler returns them, and as a posterior for predictions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.random import Generator

from ..model.joint import Model
from ..numeric.buffers import Buffers
from ..numeric.layout import Array, Layout
from ..numeric.validation import InstanceOf
from .mcmc import Target

__all__ = ["DrawnWeights", "Draws"]

# The inverse of the golden ratio, 1 / 1.618...: its multiples modulo 1 are spread over [0, 1) more
# evenly than those of any other number
INVERSE_GOLDEN_RATIO = 0.5 * (5.0**0.5 - 1.0)


@dataclass(frozen=True, eq=False, repr=False)
class Draws:
    """T draws of S chains, after warm-up.

    Attributes
    ----------
    positions : ndarray (T, S, D)
        The draws themselves.
    log_density : ndarray (T, S)
        Log density at the positions, in nats and up to a constant.
    stats : dict of str to ndarray (T, S)
        Statistics by name; the keys are the fields of `mcmc.Info`. With thinning, "gradients" and
        "divergent" are sums over the steps since the draw before; the other statistics are those
        of the last step.
    kernel : Kernel
        Kernel of the first group of chains, as adapted in the warm-up.
    target : Target
        Log density that was sampled.
    layout : Layout
        Names and shapes of the blocks of the D numbers.
    warm_up : int
        Number of warm-up steps, made before the first draw.
    warm_up_divergent : int
        Number of divergent transitions among these steps; they do no harm.
    finished : bool
        False if sampling was interrupted by Ctrl-C.
    other_kernels : tuple of Kernel
        Adapted kernels of the second group of chains and of those after it.
    """

    positions: Array
    log_density: Array
    stats: dict[str, Array]
    kernel: Any
    target: Target
    layout: Layout
    warm_up: int
    warm_up_divergent: int
    finished: bool
    other_kernels: tuple[Any, ...] = ()

    @property
    def kernels(self) -> tuple[Any, ...]:
        """Adapted kernels, one for each group of chains."""
        return (self.kernel, *self.other_kernels)

    @property
    def flat(self) -> Array:
        """All draws of all chains as a matrix (T * S, D), one row for each draw of a chain."""
        return self.positions.reshape(-1, self.positions.shape[-1])

    def block(self, name: str) -> Array:
        """Return the draws (T, S, ...) of the block `name`, whose own shape is at the end.

        Parameters
        ----------
        name : str
            Name of a block of `layout`, e.g. ``'W0'`` or ``'log_noise'``.

        Raises
        ------
        KeyError
            If no block has that name; the message lists them.
        """
        blocks = self.layout.views(self.positions)
        if not isinstance(name, str) or name not in blocks:
            raise KeyError(
                f"name must be one of {', '.join(map(repr, blocks))}; got {name!r}"
            )
        return blocks[name]

    @property
    def divergences(self) -> int:
        """Number of draws, over all chains, with a divergent transition since the draw before."""
        return int(np.count_nonzero(self.stats["divergent"]))

    @property
    def step_size(self) -> float:
        """Mean step size of the groups' kernels, in units of the metric; nan if they have none."""
        sizes = [getattr(kernel, "step_size", np.nan) for kernel in self.kernels]
        return float(np.mean(sizes))

    @property
    def expected_bias(self) -> float:
        """Estimated relative bias of the draws' variances; 0 for kernels that reject (D50, D64).

        0.1 means that variances are wrong by about 10 %. For MCLMC it is computed from the energy
        errors of these draws (`stats["acceptance"]` of MCLMC refers to single steps, none of which
        it rejects), as if the posterior were a Gaussian of many dimensions and the metric its
        covariance; it is inf where the steps are too large for an estimate. A posterior far from
        Gaussian is sampled worse: for a banana-shaped one with an estimate of 0.18 one mean was
        off by 0.28 standard deviations. For SGHMC it is computed from the temperature of the
        momenta, and is the mean over all directions; stiff directions have more than the mean.
        """
        if not getattr(self.kernel, "unadjusted", False) or not self.log_density.size:
            return 0.0
        return float(self.kernel.expected_bias(self))

    @property
    def too_large_steps(self) -> float:
        """Share of draws, from 0 to 1, during which steps of MAMS, SGHMC or SGLD were too large.

        It counts paths whose energy error makes rejection almost certain (MAMS), and draws whose
        momenta are too hot (SGHMC, SGLD); it is 0 for a Gaussian, and for all other kernels. Above
        0.001 the chains miss narrow regions of the posterior: for a banana-shaped one the variance
        of the curved coordinate was 31 % too small with SGHMC and 34 % with SGLD, where
        `expected_bias` was 11 and 12 %. It stays 0 if the chains never came near such a region, and
        for MCLMC always: its variance was 8 % too small, where `expected_bias` was 2 %.
        """
        share = getattr(self.kernel, "share_too_large", None)
        if share is None or not self.log_density.size:
            return 0.0
        return float(share(self))

    def __repr__(self) -> str:
        """Return `summary` in angle brackets; the arrays would fill the screen."""
        return f"<Draws: {self.summary()}>"

    def summary(self) -> str:
        """Return one line of text: numbers of draws, acceptance, divergences, gradients, bias."""
        draws, chains = self.log_density.shape
        unfinished = "" if self.finished else " (interrupted)"
        if not draws:
            return f"no draws of {chains} chains{unfinished}"
        gradients = int(self.stats["gradients"].sum())
        missed = (
            " (narrow places may be missed even if R-hat is 1)"
            if self.divergences
            else ""
        )
        biased = ""
        if getattr(self.kernel, "unadjusted", False):
            share = f"{100 * self.expected_bias:.2g} %"
            biased = f"; unadjusted: variances off by about {share} for a Gaussian, too small by "
            biased += "several times that along curved ridges"
        return (
            f"{draws} draws of {chains} chains{unfinished}, "
            f"acceptance {self.stats['acceptance'].mean():.2f}, step size {self.step_size:.3g}, "
            f"{self.divergences} divergent{missed}, {gradients:,} gradient evaluations{biased}"
        )


@dataclass(frozen=True)
class DrawnWeights:
    """Draws of weights as a posterior, for everything in `evaluation.predictive`.

    In its methods `theta` is the matrix of equally weighted draws (T, D), such as `Draws.flat`:
    each row holds P weights, then the parameters of prior and likelihood that were sampled with
    them. The noise `eps` (S,) holds numbers in [0, 1), each of which selects a row.

    Parameters
    ----------
    model : Model
        The model whose posterior was sampled.
    """

    model: Model

    def __post_init__(self) -> None:
        InstanceOf(Model)("model", self.model)

    @cached_property
    def layout(self) -> Layout:
        """Blocks of the D numbers of a draw, the same as `LogJoint.layout`."""
        return Layout(self.model.layout.blocks + self.model.learned())

    def draw_weights(
        self, rng: Generator, samples: int, dtype: Any = np.float64
    ) -> Array:
        """Return `samples` evenly spread numbers (S,) in [0, 1), each of which selects a draw.

        Each interval of length 1 / S holds one number; its position within the interval advances
        by the golden ratio from one interval to the next. With equal steps all numbers might
        select draws of one chain, because `Draws.flat` alternates between chains: of four chains,
        every twentieth row belongs to the same one.

        Parameters
        ----------
        rng : Generator
            Source of the random numbers.
        samples : int
            S, the number of draws to select.
        dtype : dtype
            Ignored: the numbers are always float64.
        """
        interval = np.arange(samples)
        position = (rng.random() + INVERSE_GOLDEN_RATIO * interval) % 1.0
        return rng.permutation((interval + position) / samples)

    def noise_blocks(
        self, rng: Generator, samples: int, block: int, dtype: Any
    ) -> Iterator[Array]:
        """Yield the numbers that `draw_weights` returns, in blocks of at most `block`.

        All numbers are drawn at once: so if S equals the number of draws T, each draw is selected
        exactly once.

        Parameters
        ----------
        rng : Generator
            Source of the random numbers.
        samples : int
            S, the number of draws to select in all.
        block : int
            Largest length of a block.
        dtype : dtype
            Ignored, as in `draw_weights`.
        """
        eps = self.draw_weights(rng, samples, dtype)
        for first in range(0, samples, block):
            yield eps[first : first + block]

    def _chosen(self, theta: Array, eps: Array) -> Array:
        """Return the S draws (S, D) that `eps` (S,) selects; ValueError unless theta is (T, D)."""
        if theta.ndim != 2 or theta.shape[1] != self.layout.size or not len(theta):
            raise ValueError(
                f"theta must have shape (T, {self.layout.size}), with T >= 1 draws; got "
                f"{theta.shape}"
            )
        return theta[(eps * len(theta)).astype(int)]

    def weights(
        self, theta: Array, eps: Array, buffers: Buffers | None = None
    ) -> Array:
        """Return the network weights (S, P), biases included, of the selected draws.

        Parameters
        ----------
        theta : ndarray (T, D)
            All draws.
        eps : ndarray (S,)
            Numbers in [0, 1), from `draw_weights`, that select the draws.
        buffers : Buffers, optional
            Ignored: the result is a new array.
        """
        chosen = self._chosen(theta, eps)
        return np.ascontiguousarray(chosen[:, : self.model.layout.size])

    def outputs(self, theta: Array, w: Array, x: Array, buffers: Buffers) -> Array:
        """Return the network's outputs (S, B, heads) for S samples of weights at B rows.

        Parameters
        ----------
        theta : ndarray (T, D)
            Ignored: the weights are given by `w`.
        w : ndarray (S, P)
            Weights, from `weights`.
        x : ndarray (B, d_in)
            Input rows.
        buffers : Buffers
            Owner of the returned array, which the next call overwrites.
        """
        return self.model.predict(w, x, buffers)

    def params(self, theta: Array, eps: Array) -> dict[str, Array]:
        """Return learned prior and likelihood parameters of the selected draws, (S, ...) by name.

        They are what prior and likelihood learn, for example ``'log_noise'``.

        Parameters
        ----------
        theta : ndarray (T, D)
            All draws.
        eps : ndarray (S,)
            Numbers in [0, 1), from `draw_weights`, that select the draws.
        """
        learned = Layout(self.model.learned())
        return learned.views(self._chosen(theta, eps)[:, self.model.layout.size :])
