"""Every density and every loss as it stands in textbooks, what code is held to.

Written from the equations alone, with no function of bbb_numpy. `like` is NumPy, or what stands for
it: to be differentiated, or to compute with exact numbers.
"""

from itertools import pairwise
from math import pi, sqrt

import numpy as np
from scipy import special

from bbb_numpy import (
    EUBO,
    MAP,
    MLE,
    ClosedFormKL,
    Flipout,
    FullRank,
    LayerwiseGaussianPrior,
    LocalReparameterisation,
    LowRank,
    PACBayes,
    PointMass,
    Renyi,
)


class Numpy:
    """The functions that are used below."""

    exp, log, abs, tanh, sqrt, erf = np.exp, np.log, np.abs, np.tanh, np.sqrt, special.erf

    @staticmethod
    def rising(y, r):
        """log Gamma(y + r) - log Gamma(r) - y log r."""
        return special.gammaln(y + r) - special.gammaln(r) - y * np.log(r)

    @staticmethod
    def half_step(nu):
        """log Gamma((nu + 1)/2) - log Gamma(nu/2) - log(nu/2)/2."""
        return special.gammaln((nu + 1) / 2) - special.gammaln(nu / 2) - 0.5 * np.log(nu / 2)


def normal(like, value, mean, deviation):
    z = (value - mean) / deviation
    return -0.5 * z**2 - like.log(deviation) - 0.5 * np.log(2 * np.pi)


def student(like, value, location, scale, nu):
    z = (value - location) / scale
    constant = like.half_step(nu) - 0.5 * np.log(2 * np.pi)  # log[G((nu+1)/2)/G(nu/2)/sqrt(pi nu)]
    return constant - like.log(scale) - 0.5 * (nu + 1) * like.log(1 + z**2 / nu)


# --- priors: (like, prior, learned numbers by block, weights (P,)) -> log density of each weight


def gaussian_prior(like, prior, params, w):
    """Return the Gaussian log density of weights (K11, D17)."""
    scale = like.exp(params["prior_log_scale"]) if prior.learn else np.array([prior.scale])
    return normal(like, w, 0.0, scale)


def layerwise_prior(like, prior, params, w):
    """Return the Gaussian log density with a scale of each layer (D39)."""
    counts = [d_in * d_out + d_out for d_in, d_out in pairwise(prior.sizes)]
    of_layer = np.repeat(np.eye(len(counts)), counts, axis=0)  # (P, L)
    scales = like.exp(params["prior_log_scale"]) if prior.learn else np.array(prior.scales)
    return normal(like, w, 0.0, of_layer @ scales)


def centred_prior(like, prior, params, w):
    """Return the Gaussian log density around given means (D57)."""
    return gaussian_prior(like, prior, params, w - np.array([prior.centre]))


def laplace_prior(like, prior, params, w):
    """Return the Laplace log density of weights (D16)."""
    return -np.log(2 * prior.scale) - like.abs(w) / prior.scale


def student_prior(like, prior, params, w):
    """Return the Student-t log density of weights (D42)."""
    if not prior.learn:
        return student(like, w, 0.0, np.array(prior.scale), np.array(prior.df))
    scale, nu = like.exp(params["prior_log_scale"]), like.exp(params["prior_log_df"])
    return student(like, w, 0.0, scale, nu)


def ard_groups(sizes):
    """Return each group of an `ARDPrior`: indices of weights, their number of inputs, output."""
    groups, first, last = [], 0, len(sizes) - 2
    for layer, (d_in, d_out) in enumerate(pairwise(sizes)):
        weights = first + np.arange(d_in * d_out).reshape(d_in, d_out)
        biases = weights.max() + 1 + np.arange(d_out)
        first = biases.max() + 1
        rows = list(weights) if layer == 0 else [weights]
        outputs = range(d_out) if layer == last else [None]
        for output in outputs:
            chosen = slice(None) if output is None else [output]
            groups += [(row[..., chosen].ravel(), d_in, output) for row in rows]
            groups.append((biases[chosen], 1, output))
    return groups


def ard_prior(like, prior, params, w):
    """Return the log density of each group, a multivariate Student t (D67)."""
    nu, factors = prior.df, prior.output_scales or (1.0,) * prior.sizes[-1]
    terms, constants = [], 0.0
    for members, d_in, output in ard_groups(prior.sizes):
        scale = prior.scale / d_in**0.5 * (1.0 if output is None else factors[output])
        z = (np.eye(len(w))[members] * (1.0 / scale)) @ w
        n = len(members)
        constants += special.gammaln((nu + n) / 2) - special.gammaln(nu / 2)
        constants -= n / 2 * np.log(nu * np.pi) + n * np.log(scale)
        terms.append(-(nu + n) / 2 * like.log(1 + np.ones(n) @ z**2 / nu))
    shipped = prior._groups.constant  # the same numbers, added in another order
    return np.array([*terms, shipped if np.isclose(shipped, constants, rtol=1e-12) else constants])


def mixture_prior(like, prior, params, w):
    """Return the log density of a mixture of two Gaussians (R4, R8)."""
    if prior.learn:
        t1, t2, a = (params["prior_mixture"][i] for i in range(3))
        narrow = 1e-6 + like.log(1 + like.exp(t2))
        wide, share = narrow + like.log(1 + like.exp(t1)), 1 / (1 + like.exp(-a))
    else:
        share, wide, narrow = prior.pi, prior.sigma1, prior.sigma2
    components = ((share, wide), (1 - share, narrow))
    return like.log(sum(like.exp(like.log(a) + normal(like, w, 0.0, s)) for a, s in components))


PRIORS = {
    "ARDPrior": ard_prior,
    "GaussianPrior": gaussian_prior,
    "CentredGaussianPrior": centred_prior,
    "LayerwiseGaussianPrior": layerwise_prior,
    "LaplacePrior": laplace_prior,
    "StudentTPrior": student_prior,
    "ScaleMixturePrior": mixture_prior,
}


# --- likelihoods: (like, likelihood, learned numbers, outputs (B, heads), targets (B, K)) -> (B, K)


def gaussian_likelihood(like, likelihood, params, f, y):
    """Return the Gaussian log density of targets (K14, K15, D1)."""
    noise = like.exp(params["log_noise"]) if likelihood.learn else np.array([likelihood.scale])
    return normal(like, y, f, noise)


def heteroscedastic_likelihood(like, likelihood, params, f, y):
    """Return the Gaussian log density with a scale of each row (D12, D68)."""
    half = f.shape[1] // 2
    factor = like.exp(params["log_noise"]) if likelihood.learn else np.array([likelihood.scale])
    sigma = likelihood.floor + factor * like.log(1 + like.exp(f[:, half:]))
    return normal(like, y, f[:, :half], sigma)


def student_likelihood(like, likelihood, params, f, y):
    """Return the Student-t log density of targets (D43)."""
    if not likelihood.learn:
        return student(like, y, f, np.array(likelihood.scale), np.array(likelihood.df))
    return student(like, y, f, like.exp(params["log_noise"]), like.exp(params["log_df"]))


def bernoulli_likelihood(like, likelihood, params, f, y):
    """Return the log probability of targets 0 and 1 by logits (D13)."""
    p = 1 / (1 + like.exp(-f))
    return y * like.log(p) + (1 - y) * like.log(1 - p)


def categorical_likelihood(like, likelihood, params, f, y):
    """Return the log probability of classes by logits (D14)."""
    return y * like.log(like.exp(f) / like.exp(f).sum(axis=1).reshape((-1, 1)))


def poisson_likelihood(like, likelihood, params, f, y):
    """Return the log probability of counts by log rates (D15)."""
    return y * f - like.exp(f) - special.gammaln(y + 1)


def negative_binomial_likelihood(like, likelihood, params, f, y):
    """Return the log probability of counts of the mean e^f and variance e^f + a e^2f (D70)."""
    a, r = like.exp(params["log_dispersion"]), like.exp(-params["log_dispersion"])
    ways = like.rising(y, r) - special.gammaln(y + 1)  # log[G(y + r) / G(r) / y!] + y log a
    return ways + y * f - (y + r) * like.log(1 + a * like.exp(f))


def zero_inflated_likelihood(like, likelihood, params, f, y):
    """Return the log probability of counts of which a share is 0 in any case (D71)."""
    share = 1 / (1 + like.exp(-params["logit_zeros"]))
    counts = poisson_likelihood if likelihood.dispersion is None else negative_binomial_likelihood
    log_p, is_zero = counts(like, likelihood, params, f, y), y == 0
    of_zero = like.log(share + (1 - share) * like.exp(log_p))
    return is_zero * of_zero + (1 - is_zero) * (like.log(1 - share) + log_p)


LIKELIHOODS = {
    "GaussianLikelihood": gaussian_likelihood,
    "HeteroscedasticLikelihood": heteroscedastic_likelihood,
    "StudentTLikelihood": student_likelihood,
    "BernoulliLikelihood": bernoulli_likelihood,
    "CategoricalLikelihood": categorical_likelihood,
    "PoissonLikelihood": poisson_likelihood,
    "NegativeBinomialLikelihood": negative_binomial_likelihood,
    "ZeroInflatedLikelihood": zero_inflated_likelihood,
}


# --- optimizers: (like, rule, theta (P,), gradients (T, P)) -> theta after all T of them


def sgd(like, rule, theta, grads):
    """K43, K44."""
    return theta - rule.learning_rate * sum(grads)


def momentum(like, rule, theta, grads):
    """D2."""
    velocity = 0
    for grad in grads:
        velocity = rule.momentum * velocity + grad
        theta = theta - rule.learning_rate * velocity
    return theta


def adam(like, rule, theta, grads):
    """D3."""
    m = v = 0
    for t, grad in enumerate(grads, start=1):
        m = rule.beta1 * m + (1 - rule.beta1) * grad
        v = rule.beta2 * v + (1 - rule.beta2) * grad**2
        root = like.sqrt(v / (1 - rule.beta2**t))
        theta = theta - rule.learning_rate * m / (1 - rule.beta1**t) / (root + rule.epsilon)
    return theta


OPTIMIZERS = {"SGD": sgd, "Momentum": momentum, "Adam": adam}


# --- proposals of unit metric: (like, proposal, position, slope of log pi, candidate), each (S, D)
# -> log q(candidate | position), one number for each coordinate


def walk_proposal(like, proposal, old, slope, new):
    """M6."""
    return normal(like, new, old, proposal.step_size)


def log_normal_proposal(like, proposal, old, slope, new):
    """M6."""
    return normal(like, like.log(new), like.log(old), proposal.step_size) - like.log(new)


def langevin_proposal(like, proposal, old, slope, new):
    """M6."""
    return normal(like, new, old + 0.5 * proposal.step_size**2 * slope, proposal.step_size)


PROPOSALS = {
    "GaussianWalk": walk_proposal,
    "LogNormalWalk": log_normal_proposal,
    "Langevin": langevin_proposal,
}


TABLES = {  # by family of the registry
    "prior": PRIORS,
    "likelihood": LIKELIHOODS,
    "optimizer": OPTIMIZERS,
    "proposal": PROPOSALS,
}


def of(table, part):
    """Return the entry of `table` for the class of `part`."""
    for cls in type(part).__mro__:
        if cls.__name__ in table:
            return table[cls.__name__]
    raise KeyError(f"tests/textbook.py has no density of {type(part).__name__}: add it")


def log_prior(prior, params, w):
    """Return the log density (P,) of each of the weights `w` (P,)."""
    return of(PRIORS, prior)(Numpy, prior, params, w)


def log_likelihood(likelihood, params, f, y):
    """Return the log density (B, K) of every target."""
    return of(LIKELIHOODS, likelihood)(Numpy, likelihood, params, f, y)


# --- losses: (like, theta, case) -> value, for a Case of bbb_numpy.combinations


def blocks_of(theta, layout):
    """Cut theta by name."""
    cut, start = {}, 0
    for name, shape in layout.blocks:
        stop = start + int(np.prod(shape))
        cut[name], start = theta[start:stop].reshape(shape), stop
    return cut


def layers_of(w, network):
    """Cut a flat vector into W (d_in, d_out) and b (d_out,) of every layer."""
    cut, start = [], 0
    for d_in, d_out in pairwise(network.sizes):
        middle, stop = start + d_in * d_out, start + d_in * d_out + d_out
        cut.append((w[start:middle].reshape((d_in, d_out)), w[middle:stop]))
        start = stop
    return cut


ACTIVATIONS = {
    "relu": lambda like, z: z * (z > 0),
    "tanh": lambda like, z: like.tanh(z),
    "sigmoid": lambda like, z: 1 / (1 + like.exp(-z)),
    "silu": lambda like, z: z / (1 + like.exp(-z)),
    "softplus": lambda like, z: like.log(1 + like.exp(z)),
    "gelu": lambda like, z: 0.5 * z * (1 + like.erf(z * sqrt(0.5))),
    "gelu-tanh": lambda like, z: 0.5 * z * (1 + like.tanh(sqrt(2 / pi) * (z + 0.044715 * z**3))),
}


TABLES["activation"] = ACTIVATIONS


def activated(like, network, z):
    if network.activation not in ACTIVATIONS:
        raise KeyError(f"tests/textbook.py has no activation {network.activation!r}: add it")
    return ACTIVATIONS[network.activation](like, z)


def outputs(like, w, x, network):
    """Return the network's outputs for one weight vector, layer by layer (K31-K36)."""
    a = x
    for layer, (weight, bias) in enumerate(layers_of(w, network)):
        a = activated(like, network, a) if layer else a
        a = a @ weight + bias
    return a


def gram(first, second):
    """Return |I + V^T V| of two columns, and its entries: two diagonal ones, one beside (D59)."""
    p, q, r = 1 + first @ first, 1 + second @ second, first @ second
    return p * q - r**2, p, q, r


def weights(like, case, parts, e):
    """Return one weight vector and its log q, in which |L^-1 (w - mu)|^2 = |e|^2 (K4, K10, M1)."""
    mu, size = parts["mu"], case.estimator.model.layout.size
    if isinstance(case.estimator.posterior, PointMass):
        return mu, 0.0
    sigma = like.log(1 + like.exp(parts["rho"]))
    noise = sigma * e[:size]
    if isinstance(case.estimator.posterior, LowRank):  # rank 2: determinants written out
        first, second = parts["v"][:, 0], parts["v"][:, 1]
        a = e[:size] + first * e[size] + second * e[size + 1]
        det, p, q, r = gram(first, second)
        b, c = first @ a, second @ a
        square = a @ a - (q * b**2 - 2 * r * b * c + p * c**2) / det
        log_q = -like.log(sigma).sum() - (like.log(det) + square) / 2
        return mu + sigma * a, log_q - 0.5 * size * np.log(2 * np.pi)
    if isinstance(case.estimator.posterior, FullRank):
        rows, columns = np.nonzero(np.tri(size, k=-1))
        pick = np.zeros((size, len(rows)), e.dtype)
        pick[rows, np.arange(len(rows))] = e[columns]
        noise = noise + pick @ parts["lower"]
    log_q = -like.log(sigma).sum() - 0.5 * (e @ e) - 0.5 * size * np.log(2 * np.pi)
    return mu + noise, log_q


def log_densities(like, case, parts, w, f):
    """Return log P(w) and log P(D|w) of one weight vector and its outputs."""
    model = case.estimator.model
    log_prior = of(PRIORS, model.prior)(like, model.prior, parts, w).sum()
    log_data = of(LIKELIHOODS, model.likelihood)(like, model.likelihood, parts, f, case.y).sum()
    return log_prior, log_data


def sampled_loss(like, theta, case):
    """Return the loss of an objective that samples weights (K18, W1, W2, D24, D25, G2)."""
    estimator = case.estimator
    pi = case.kl_weight
    samples = len(case.noise)
    parts = blocks_of(theta, estimator.layout)
    objective = case.estimator.objective
    log_data, log_prior, log_weight = [], [], []
    for e in case.noise:
        w, log_q = weights(like, case, parts, e)
        prior, data = log_densities(
            like, case, parts, w, outputs(like, w, case.x, estimator.model.network)
        )
        log_prior.append(prior)
        log_data.append(data)
        log_weight.append(prior - log_q + data / pi)  # D30
    nll = -sum(log_data) / samples
    if isinstance(objective, MLE):
        return nll
    if isinstance(objective, MAP):
        return nll - pi * sum(log_prior) / samples
    largest = max(log_weight)  # sums of weights are relative to it, for numbers that overflow
    if isinstance(objective, Renyi):
        order = 1 - objective.alpha
        mean = sum(like.exp(order * (v - largest)) for v in log_weight) / samples
        return -pi * (largest + like.log(mean) / order)
    if isinstance(objective, EUBO):
        shares = [like.exp(v - largest) for v in log_weight]
        return (
            pi * sum(share * v for share, v in zip(shares, log_weight, strict=True)) / sum(shares)
        )
    kl = -pi * sum(log_weight) / samples - nll
    return objective.beta * kl + nll


def divergence(like, case, parts):
    """Return KL(q || P(w)): sum of log(S/L_jj) + (Var w_j + mu_j^2)/(2 S^2) - 1/2 (D18, D19)."""
    prior = case.estimator.model.prior
    size = case.estimator.model.layout.size
    sigma = like.log(1 + like.exp(parts["rho"]))
    scale = like.exp(parts["prior_log_scale"]) if prior.learn else None
    if isinstance(prior, LayerwiseGaussianPrior):
        counts = [d_in * d_out + d_out for d_in, d_out in pairwise(prior.sizes)]
        of_layer = np.repeat(np.eye(len(counts)), counts, axis=0)
        scale = of_layer @ (np.array(prior.scales) if scale is None else scale)
    elif scale is None:
        scale = np.array([prior.scale])
    variance = sigma**2
    if isinstance(case.estimator.posterior, FullRank):
        rows, _ = np.nonzero(np.tri(size, k=-1))
        variance = variance + np.eye(size)[:, rows] @ parts["lower"] ** 2
    log_det = 0.0
    if isinstance(case.estimator.posterior, LowRank):
        first, second = parts["v"][:, 0], parts["v"][:, 1]
        variance = variance * (1 + first**2 + second**2)
        log_det = like.log(gram(first, second)[0])
    log_ratio = (like.log(scale) + 0 * variance) - like.log(sigma)
    terms = log_ratio + (variance + parts["mu"] ** 2) / (2 * scale**2) - 0.5
    return terms.sum() - log_det / 2


def local_outputs(like, case, parts, zeta):
    """Return outputs sampled layer by layer: mean a mu, variance a^2 sigma^2 (D21)."""
    network = case.estimator.model.network
    a = case.x
    at = 0
    sigma = like.log(1 + like.exp(parts["rho"]))
    layers = zip(layers_of(parts["mu"], network), layers_of(sigma, network), strict=True)
    for layer, ((mean, bias), (spread, bias_spread)) in enumerate(layers):
        a = activated(like, network, a) if layer else a
        count = len(a) * mean.shape[1]
        noise, at = zeta[at : at + count].reshape((len(a), -1)), at + count
        a = a @ mean + bias + like.sqrt(a**2 @ spread**2 + bias_spread**2) * noise
    return a


def flipped_outputs(like, case, parts, noise):
    """Return outputs of rows with weights mu + (r s^T) o sigma eps, r and s signs (D22)."""
    network = case.estimator.model.network
    size = len(parts["mu"])
    rows = len(case.x)
    shift = like.log(1 + like.exp(parts["rho"])) * noise[:size]
    at, signs = size, []
    for d_in, d_out in pairwise(network.sizes):
        cut = []
        for width in (d_in, d_out, d_out):
            cut.append(noise[at : at + rows * width].reshape((rows, width)))
            at += rows * width
        signs.append(cut)
    rows_of_outputs = []
    for row in range(rows):
        layers = zip(signs, layers_of(shift, network), strict=True)
        pushes = [
            ((r[row][:, None] * s[row] * W).ravel(), t[row] * b) for (r, s, t), (W, b) in layers
        ]
        flat = np.concatenate([part for pair in pushes for part in pair])
        rows_of_outputs.append(outputs(like, parts["mu"] + flat, case.x[row : row + 1], network))
    return np.concatenate(rows_of_outputs)


def pac_bayes(like, objective, kl, nll):
    """Return the quadratic bound on r + sqrt(2 r k) + 2 k and more, in nats of N rows (D58)."""
    rows = objective.rows
    k = (kl + np.log(2 * np.sqrt(rows) / objective.delta)) / (2 * rows)
    return (like.sqrt(nll / rows / np.log(2) + k) + like.sqrt(k)) ** 2 * rows * np.log(2)


def closed_form_loss(like, theta, case):
    """Return pi beta KL in closed form plus the sampled likelihood (R1, D18, D21, D22)."""
    estimator = case.estimator
    parts = blocks_of(theta, case.estimator.layout)
    likelihood = estimator.model.likelihood
    total = 0.0
    for e in case.noise:
        if isinstance(estimator, LocalReparameterisation):
            f = local_outputs(like, case, parts, e)
        elif isinstance(estimator, Flipout):
            f = flipped_outputs(like, case, parts, e)
        else:
            w, _ = weights(like, case, parts, e)
            f = outputs(like, w, case.x, estimator.model.network)
        total = total + of(LIKELIHOODS, likelihood)(like, likelihood, parts, f, case.y).sum()
    kl = divergence(like, case, parts)
    nll = -total / len(case.noise)
    pi = case.kl_weight
    if isinstance(estimator.objective, PACBayes):
        return pac_bayes(like, estimator.objective, kl, nll / pi) * pi
    return estimator.objective.beta * pi * kl + nll


def loss(like, theta, case):
    """Return the value of any estimator."""
    exact = isinstance(case.estimator, ClosedFormKL | LocalReparameterisation | Flipout)
    return (closed_form_loss if exact else sampled_loss)(like, theta, case)
