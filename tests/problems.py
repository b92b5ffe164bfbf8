"""What hypothesis draws: whole problems of every shape, and helpers that several tests share."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

from bbb_numpy import (
    MLP,
    GaussianLikelihood,
    GaussianPrior,
    MeanField,
    Model,
    Reparameterised,
    network,
)
from bbb_numpy.objectives import free_energy

COMPLEX_STEP = 1e-30


class Problem(NamedTuple):
    """One call of value_and_grad: an estimator and all its arguments."""

    estimator: Reparameterised
    theta: np.ndarray
    noise: np.ndarray  # (S, P)
    x: np.ndarray  # (B, d_in)
    y: np.ndarray  # (B, K)
    kl_weight: float

    def value_and_grad(self, theta):
        return self.estimator.value_and_grad(theta, self.noise, self.x, self.y, self.kl_weight)

    def gates(self, theta):
        """Which ReLU units are on: where this changes lies a kink."""
        w = self.estimator.weights(theta, self.noise)
        return network.gates(self.estimator.model.network, w, self.x)

    def with_objective(self, objective):
        return self._replace(estimator=replace(self.estimator, objective=objective))


scales = st.floats(-2.0, 2.0).map(lambda exponent: 10.0**exponent)


RHO = st.sampled_from([-5.0, -20.0, -2.0, 0.0, 3.0])
ACTIVATION = st.sampled_from(["relu", "tanh"])
LEARN = st.booleans()
ROWS = st.integers(0, 5)
HIDDEN = st.lists(st.integers(1, 5), max_size=3)


@st.composite
def problems(
    draw,
    rho=RHO,
    activation=ACTIVATION,
    learn=LEARN,
    rows=ROWS,
    hidden=HIDDEN,
    objective=free_energy,
    scales=scales,
):
    """Any depth, width, S, B, K, prior and noise scale; rho spread over a unit around `rho`."""
    sizes = (draw(st.integers(1, 4)), *draw(hidden), draw(st.integers(1, 3)))
    model = Model(
        MLP(sizes, draw(activation)),
        GaussianPrior(draw(scales)),
        GaussianLikelihood(draw(scales), draw(learn)),
    )
    estimator = Reparameterised(model, MeanField(0.7, draw(rho), 1.0), objective)
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    theta = estimator.init(rng)
    noise = estimator.draw(rng, draw(st.integers(1, 4)))
    count = draw(rows)
    x = rng.standard_normal((count, sizes[0]))
    y = draw(scales) * rng.standard_normal((count, sizes[-1]))
    return Problem(estimator, theta, noise, x, y, draw(st.sampled_from([1.0, 0.25, 1e-3])))


def linear_problem(seed=0, rows=40, d_in=2, noise=0.3, prior=1.5):
    """Bayesian linear regression: no hidden layer, Gaussian noise; everything has a closed form."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((rows, d_in)) @ np.array([[1.0, 0.6], [0.0, 0.8]])[:d_in, :d_in]
    y = x @ rng.standard_normal((d_in, 1)) + 0.4 + noise * rng.standard_normal((rows, 1))
    estimator = Reparameterised(
        Model(MLP((d_in, 1)), GaussianPrior(prior), GaussianLikelihood(noise))
    )
    return estimator, x, y


class ExactPosterior(NamedTuple):
    """D8: the posterior N(mean, precision^-1) over [W; b] and the log evidence."""

    mean: np.ndarray
    precision: np.ndarray
    log_evidence: float


def exact_posterior(estimator, x, y):
    """Solve the conjugate model in closed form (D8), by dense linear algebra."""
    prior, noise = estimator.model.prior.scale, estimator.model.likelihood.scale
    design = np.hstack([x, np.ones((len(x), 1))])
    precision = design.T @ design / noise**2 + np.eye(design.shape[1]) / prior**2
    mean = np.linalg.solve(precision, design.T @ y[:, 0] / noise**2)
    covariance = noise**2 * np.eye(len(x)) + prior**2 * design @ design.T
    _, log_det = np.linalg.slogdet(covariance)
    quadratic = y[:, 0] @ np.linalg.solve(covariance, y[:, 0])
    return ExactPosterior(
        mean, precision, -0.5 * (quadratic + log_det + len(x) * np.log(2 * np.pi))
    )
