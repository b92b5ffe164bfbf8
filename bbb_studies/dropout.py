"""MC dropout, the gradient estimator that studies put beside Bayes by Backprop (D79)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bbb_numpy.gradients.estimator import Batch, GradientEstimator
from bbb_numpy.gradients.rowwise import sum_outer
from bbb_numpy.model.objectives import MAP, LogDensities
from bbb_numpy.numeric.buffers import Buffers
from bbb_numpy.parts.network import activate

Array = NDArray[Any]


@dataclass(frozen=True)
class Dropout(GradientEstimator):
    """A point estimate of a network, of which every row leaves out inputs and units of its own.

    Those that stay are divided by the probability of it, so that the whole network predicts as it
    is (Hinton et al. 2012). Draws that leave out some are taken for those of a posterior (Gal and
    Ghahramani 2016; D79). The gradient is K37-K42, with masked activations.
    """

    # Share of the inputs of each layer that is left out.
    rates: tuple[float, ...] = (0.2, 0.5, 0.5)

    @property
    def noise_per_sample(self) -> int:
        """0, since every row has noise of its own."""
        return 0

    @property
    def noise_per_row(self) -> int:
        """Number of uniform numbers of a row: one for each input of each layer."""
        return sum(self.model.network.sizes[:-1])

    def fill(self, rng: np.random.Generator, noise: Array) -> None:
        """Overwrite `noise` (1, ...) with uniform numbers.

        Parameters
        ----------
        rng : numpy.random.Generator
            Draws the numbers.
        noise : array (1, ...)
            Overwritten.
        """
        rng.random(dtype=noise.dtype, out=noise)

    def draw_weights(
        self,
        rng: np.random.Generator,
        samples: int,
        dtype: Any = float,
        out: Array | None = None,
    ) -> Array:
        """Return uniform numbers that decide what each of `samples` weight vectors leaves out.

        Parameters
        ----------
        rng : numpy.random.Generator
            Draws the numbers.
        samples : int
            Number S of weight vectors.
        dtype : dtype
            Of the numbers.
        out : array, optional
            Where to write them; by default a new array.

        Returns
        -------
        array (S, noise_per_row)
        """
        return rng.random((samples, self.noise_per_row), dtype, out)

    def weights(
        self, theta: Array, eps: Array, buffers: Buffers | None = None
    ) -> Array:
        """Return weights (S, P), 0 where their input is left out.

        Parameters
        ----------
        theta : array
            Parameters, as `layout` names them.
        eps : array (S, noise_per_row)
            Uniform numbers, from `draw_weights`.
        buffers : Buffers, optional
            Not used: the weights are a new array.
        """
        w = np.repeat(self.layout.views(theta)["mu"][None], len(eps), 0)
        first_input = 0
        for (weight, *_), rate in zip(
            self.model.network.layers(w), self.rates, strict=True
        ):
            uniform = eps[:, first_input : first_input + weight.shape[1], None]
            first_input += weight.shape[1]
            keep = (uniform >= rate) / theta.dtype.type(1 - rate)
            weight *= keep  # m_j w_j / (1 - p) (D79)
        return w

    def fill_gradient(self, at: Batch) -> tuple[Any, LogDensities]:
        """Write the gradient of the objective, MAP or MLE, of the rows."""
        net = self.model.network
        prior = self.model.prior
        likelihood = self.model.likelihood
        f = at.x
        first_input = 0
        slope = np.ones_like(at.x)
        tape = list[tuple[Array, ...]]()
        views, d_views = (
            [*net.layout.views(blocks["mu"]).values()]
            for blocks in (at.blocks, at.d_blocks)
        )
        for layer, rate in enumerate(self.rates):
            slope = activate(net, f, np.empty_like(f)) if layer else slope
            uniform = at.noise[0, first_input : first_input + f.size].reshape(f.shape)
            mask = (uniform >= rate) / f.dtype.type(1 - rate)
            first_input += f.size
            weight, bias = views[2 * layer : 2 * layer + 2]
            tape.append(
                (f * mask, slope * mask, weight, *d_views[2 * layer : 2 * layer + 2])
            )
            f = tape[-1][0] @ weight + bias
        log_likelihood, saved = likelihood.log_likelihood(
            at.blocks, f[None], at.y, at.sample_weight
        )
        log_prior = 0 * log_likelihood
        of_prior = None  # MLE does not evaluate the prior
        if isinstance(self.objective, MAP):
            log_prior, of_prior = prior.log_density(
                at.blocks, at.blocks["mu"][None], at.buffers
            )
        terms = LogDensities(0 * log_likelihood, log_prior, log_likelihood)
        value, c = self.objective(terms, at.kl_weight)
        (delta,) = likelihood.log_likelihood_vjp(saved, c.likelihood, at.d_blocks)
        for a, slope, weight, d_weight, d_bias in reversed(tape):
            sum_outer(a, delta[None], d_weight, d_bias)
            delta = (delta @ weight.T) * slope
        if of_prior is not None:
            prior.add_vjp(of_prior, c.prior, at.d_blocks["mu"][None], at.d_blocks)
        return value, terms
