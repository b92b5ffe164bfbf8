"""The densities of all priors and likelihoods as they stand in textbooks: an entry for each class.

Written from the equations alone, with no function of bbb_numpy and no trick against overflow: what
the parts are held to. `like` is NumPy, or what stands for it to be differentiated.
"""

from itertools import pairwise

import numpy as np
from scipy import special

from bbb_numpy import (
    BernoulliLikelihood,
    CategoricalLikelihood,
    GaussianLikelihood,
    GaussianPrior,
    HeteroscedasticLikelihood,
    LaplacePrior,
    LayerwiseGaussianPrior,
    PoissonLikelihood,
    ScaleMixturePrior,
    StudentTLikelihood,
    StudentTPrior,
)


class Numpy:
    """The functions that the densities below use."""

    exp, log, abs, tanh = np.exp, np.log, np.abs, np.tanh
    lgamma = special.gammaln


def normal(like, value, mean, deviation):
    z = (value - mean) / deviation
    return -0.5 * np.log(2 * np.pi) - like.log(deviation) - 0.5 * z**2


def student(like, value, location, scale, nu):
    z = (value - location) / scale
    constant = like.lgamma((nu + 1) / 2) - like.lgamma(nu / 2) - 0.5 * like.log(nu * np.pi)
    return constant - like.log(scale) - 0.5 * (nu + 1) * like.log(1 + z**2 / nu)


# --- priors: (like, prior, learned numbers by block, weights (P,)) -> log density of each weight


def gaussian_prior(like, prior, params, w):
    scale = like.exp(params["prior_log_scale"]) if prior.learn else np.array([prior.scale])
    return normal(like, w, 0.0, scale)


def layerwise_prior(like, prior, params, w):
    counts = [d_in * d_out + d_out for d_in, d_out in pairwise(prior.sizes)]
    of_layer = np.repeat(np.eye(len(counts)), counts, axis=0)  # (P, L)
    scales = like.exp(params["prior_log_scale"]) if prior.learn else np.array(prior.scales)
    return normal(like, w, 0.0, of_layer @ scales)


def laplace_prior(like, prior, params, w):
    return -np.log(2 * prior.scale) - like.abs(w) / prior.scale


def student_prior(like, prior, params, w):
    if not prior.learn:
        return student(like, w, 0.0, np.array(prior.scale), np.array(prior.df))
    scale, nu = like.exp(params["prior_log_scale"]), like.exp(params["prior_log_df"])
    return student(like, w, 0.0, scale, nu)


def mixture_prior(like, prior, params, w):
    if prior.learn:
        t1, t2, a = (params["prior_mixture"][i] for i in range(3))
        narrow = 1e-6 + like.log(1 + like.exp(t2))
        wide, share = narrow + like.log(1 + like.exp(t1)), 1 / (1 + like.exp(-a))
    else:
        share, wide, narrow = prior.pi, prior.sigma1, prior.sigma2
    both = (like.exp(normal(like, w, 0.0, deviation)) for deviation in (wide, narrow))
    return like.log(share * next(both) + (1 - share) * next(both))


PRIORS = {
    GaussianPrior: gaussian_prior,
    LayerwiseGaussianPrior: layerwise_prior,
    LaplacePrior: laplace_prior,
    StudentTPrior: student_prior,
    ScaleMixturePrior: mixture_prior,
}


# --- likelihoods: (like, likelihood, learned numbers, outputs (B, heads), targets (B, K)) -> (B, K)


def gaussian_likelihood(like, likelihood, params, f, y):
    noise = like.exp(params["log_noise"]) if likelihood.learn else np.array([likelihood.scale])
    return normal(like, y, f, noise)


def heteroscedastic_likelihood(like, likelihood, params, f, y):
    half = f.shape[1] // 2
    return normal(like, y, f[:, :half], likelihood.floor + like.log(1 + like.exp(f[:, half:])))


def student_likelihood(like, likelihood, params, f, y):
    if not likelihood.learn:
        return student(like, y, f, np.array(likelihood.scale), np.array(likelihood.df))
    return student(like, y, f, like.exp(params["log_noise"]), like.exp(params["log_df"]))


def bernoulli_likelihood(like, likelihood, params, f, y):
    p = 1 / (1 + like.exp(-f))
    return y * like.log(p) + (1 - y) * like.log(1 - p)


def categorical_likelihood(like, likelihood, params, f, y):
    return y * like.log(like.exp(f) / like.exp(f).sum(axis=1).reshape((-1, 1)))


def poisson_likelihood(like, likelihood, params, f, y):
    return y * f - like.exp(f) - special.gammaln(y + 1)


LIKELIHOODS = {
    GaussianLikelihood: gaussian_likelihood,
    HeteroscedasticLikelihood: heteroscedastic_likelihood,
    StudentTLikelihood: student_likelihood,
    BernoulliLikelihood: bernoulli_likelihood,
    CategoricalLikelihood: categorical_likelihood,
    PoissonLikelihood: poisson_likelihood,
}


def of(table, part):
    """The entry of `table` for the class of `part`; a planted error has that of its right form."""
    for kind in type(part).__mro__:
        if kind in table:
            return table[kind]
    raise KeyError(f"tests/textbook.py has no density of {type(part).__name__}: add it")


def log_prior(prior, params, w):
    """The log density (P,) of each of the weights `w` (P,)."""
    return of(PRIORS, prior)(Numpy, prior, params, w)


def log_likelihood(likelihood, params, f, y):
    """The log density (B, K) of every target."""
    return of(LIKELIHOODS, likelihood)(Numpy, likelihood, params, f, y)
