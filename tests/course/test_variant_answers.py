"""The answers of variants that edit the key, against others written from the statements alone.

Each is for the first result, and for all where the key does not prove slopes against a value.
"""

import itertools

import numpy as np
import pytest

from bbb_course.judging import FLOAT_SEEDS
from bbb_course.keys import exercises, find
from bbb_course.variants import combinations, n_variants, varied

stats = pytest.importorskip("scipy.stats")
special = pytest.importorskip("scipy.special")
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(40)


def softplus(rho):
    return np.logaddexp(0, rho)


def right(name, *arguments):
    """Return the book's answer, which other tests hold, for other arguments."""
    return find(name).right(*arguments)


def least_squares(x, y, prior, noise, mean):
    rows = np.append(x / noise, 1 / prior)
    targets = np.append(y / noise, mean / prior)
    solution = np.linalg.lstsq(rows[:, None], targets)[0]
    return solution[0], 1 / (rows @ rows)


def free_energy(
    mu, rho, eps, x, y, prior, noise, pi, sd=softplus, law_of_prior=None, law_of_noise=None
):
    """Return the first result of value_and_gradient, by densities of scipy."""
    sigma = sd(rho)
    w = mu + sigma * eps
    law_of_prior = law_of_prior or stats.norm(0, prior)
    law_of_noise = law_of_noise or stats.norm(0, noise)
    log_q = stats.norm(mu, sigma).logpdf(w).sum(axis=1)
    complexity = log_q - law_of_prior.logpdf(w).sum(axis=1)
    return np.mean(pi * complexity - law_of_noise.logpdf(y - w @ x.T).sum(axis=1))


def half_the_squares(x, W0, b0, W1, b1, y, activation):
    return 0.5 * ((activation(x @ W0 + b0) @ W1 + b1 - y) ** 2).sum()


def nadam(theta, m, v, grad, t, eta, beta1, beta2, tiny):
    m, v = beta1 * m + (1 - beta1) * grad, beta2 * v + (1 - beta2) * grad**2
    looked_ahead = (beta1 * m + (1 - beta1) * grad) / (1 - beta1**t)
    return theta - eta * looked_ahead / (np.sqrt(v / (1 - beta2**t)) + tiny), m, v


def over_masks(a, v, b, p, noise):
    masks = np.array([*itertools.product([0, 1], repeat=len(a))])
    probability = np.prod(np.where(masks, 1 - p, p), axis=1)
    f = b + masks @ (a * v)
    mean = probability @ f
    variance = probability @ (f - mean) ** 2
    return mean, variance, variance + noise**2


def quadratic_entropies(p):
    mean = p.mean(axis=0)
    total = sum(mean * (1 - mean))
    aleatoric = np.mean([sum(row * (1 - row)) for row in p])
    return total, aleatoric, total - aleatoric


def by_hermite(function, mu, sigma, x):
    values = function((mu + sigma * NODES)[:, None] * x)
    return WEIGHTS @ values / WEIGHTS.sum(), function(mu * x)


def mixed(w, a, s1, s2, share=None):
    share = special.expit(a) if share is None else share
    wide, narrow = stats.laplace(0, s1), stats.laplace(0, s2)
    return -np.log(share * wide.pdf(w) + (1 - share) * narrow.pdf(w)).sum()


def geometric(z, y):
    return -stats.geom(1 / (1 + np.exp(z))).logpmf(y + 1).sum()


def poisson(rate, y):
    return -(stats.poisson(rate).logpmf(y) + special.gammaln(y + 1)).sum()


def laplace_scores(log_weights, eps, sigma):
    share, h = special.softmax(log_weights), 1e-6

    def log_q(mu, sigma):
        return share @ stats.laplace(mu, sigma).logpdf(w)

    w = sigma * eps
    moves = h * np.eye(len(sigma))
    d_mu = [(log_q(move, sigma) - log_q(-move, sigma)).item(i) / (2 * h)
            for i, move in enumerate(moves)]  # fmt: skip
    d_sigma = [(log_q(0, sigma + move) - log_q(0, sigma - move)).item(i) / (2 * h)
               for i, move in enumerate(moves)]  # fmt: skip
    return -np.array(d_mu), -np.array(d_sigma)


def exp_factor(C, rho, d_w, eps):
    outer = np.mean([np.outer(row, noise) for row, noise in zip(d_w, eps, strict=True)], axis=0)
    return np.tril(outer, -1), np.diag(outer) * np.exp(rho) - 1


def low_rank(a, v, variance):
    covariance = variance * np.eye(len(a)) + np.outer(v, v)
    log_q = stats.multivariate_normal(np.zeros(len(a)), covariance).logpdf(a)
    return log_q + len(a) / 2 * np.log(2 * np.pi * variance)


def inverse_gamma(zeta, a, b):
    theta = np.exp(zeta)
    constant = a * np.log(b) - special.gammaln(a)
    return (stats.invgamma(a, scale=b).logpdf(theta) + zeta - constant).sum()


def hmc_of_mass(log_pi, new_log_pi, r, new_r, mass):
    joint = [log - (momentum**2 / mass).sum() / 2 for log, momentum in
             [(new_log_pi, new_r), (log_pi, r)]]  # fmt: skip
    return joint[0] - joint[1]


def leapfrog(q, r, step, slope, mass):
    r = r + step * slope(q) / 2
    q = q + step * r / mass
    return q, r + step * slope(q) / 2


def position_first(q, r, step, slope):
    q = q + step * r / 2
    r = r + step * slope(q)
    return q + step * r / 2, r


def barker(p, q):
    """Return the kernel of which p_i T_ij = f_i f_j / (f_i + f_j), f the flows of the proposal."""
    flow = p[:, None] * q
    kernel = flow * flow.T / (flow + flow.T) / p[:, None]
    np.fill_diagonal(kernel, 0)
    return kernel + np.diag(1 - kernel.sum(axis=1))


def kernel_score(draws, y, kernel, pairs):
    spread = sum(kernel(a - b) for a, b in pairs(draws, 2)) / len([*pairs(draws, 2)])
    return np.mean(kernel(draws - y)) - spread / 2


def from_the_middle(low, high, y, new_low, new_high, percent):
    distances = sorted(np.abs(y - (low + high) / 2))
    rank = next(k for k in range(1, len(y) + 1) if 100 * k >= percent * (len(y) + 1))
    middle = (new_low + new_high) / 2
    return middle - distances[rank - 1], middle + distances[rank - 1]


MEANS = (1, 2, 3)
SIGNED_ROOT = lambda d: np.sqrt(1 + d**2)  # noqa: E731
ORACLES = {
    "completing_the_square": {
        f"Before the measurements w is believed to be about {m},": (
            lambda *a, m=m: least_squares(*a, mean=m)
        )
        for m in (1, 2, 3, 5)
    },
    "posterior_predictive": {
        f"The new y is the mean of {k} measurements": (
            lambda mean, variance, x, noise, k=k: right(
                "posterior_predictive", mean, variance, x, noise / np.sqrt(k)
            )
        )
        for k in (2, 3, 4)
    },
    "evidence_of_one_datum": {
        f"The prior of w has the mean {m},": lambda y, x, prior, noise, m=m: stats.norm(
            m * x, np.hypot(x * prior, noise)
        ).logpdf(y)
        for m in (1, 2, 3, 5)
    },
    "from_noise_to_weights": {
        "sigma is exp(rho),": lambda mu, rho, eps: mu + np.exp(rho) * eps,
        "rho is the logarithm": lambda mu, rho, eps: mu + np.sqrt(np.exp(rho)) * eps,
    },
    "log_posterior_of_the_noise": {
        "q is Laplace's": lambda sigma, eps: stats.laplace(0, sigma).logpdf(sigma * eps).sum(1),
        "q is logistic": lambda sigma, eps: stats.logistic(0, sigma).logpdf(sigma * eps).sum(1),
    },
    "free_energy": {
        f"The complexity is multiplied by the temperature {k},": (
            lambda log_q, log_prior, log_likelihood, pi, k=k: np.average(
                (log_q - log_prior) * k * pi - np.einsum("sb->s", log_likelihood)
            )
        )
        for k in (2, 3, 4, 5)
    },
    "value_and_gradient": {
        "sigma is exp(rho)": lambda *a: free_energy(*a, sd=np.exp),
        "The prior is Laplace's": lambda *a: free_energy(*a, law_of_prior=stats.laplace(0, a[5])),
        "The noise is Laplace's": lambda *a: free_energy(*a, law_of_noise=stats.laplace(0, a[6])),
        **{
            f"The prior of each weight is N({m},": (
                lambda *a, m=m: free_energy(*a, law_of_prior=stats.norm(m, a[5]))
            )
            for m in MEANS
        },
    },
    "backward_pass": {
        **{
            f"The activation is a leaky ReLU: z for z > 0, and {c} z": (
                lambda *a, c=c: half_the_squares(*a, activation=lambda z: np.maximum(z, c * z))
            )
            for c in (0.05, 0.1, 0.2)
        },
        "The activation is tanh": lambda *a: half_the_squares(*a, activation=np.tanh),
        "The activation is the square": (
            lambda *a: half_the_squares(*a, activation=lambda z: np.maximum(z, 0) ** 2)
        ),
        "The activation is softplus": lambda *a: half_the_squares(*a, activation=softplus),
    },
    "geometric_shares": {
        f"Each minibatch pays {c} times": (
            lambda parts, c=c: c ** np.arange(parts - 1.0, -1, -1)
            / sum(c ** np.arange(float(parts)))
        )
        for c in (3, 4, 5, 10)
    },
    "adam_step": {"The gradient counts once more": nadam},
    "mean_of_functions": {
        "The function is f(x) = (w x)^3": lambda *a: by_hermite(lambda f: f**3, *a),
        "The function is f(x) = (w x)^4": lambda *a: by_hermite(lambda f: f**4, *a),
        "The function is f(x) = exp": lambda *a: by_hermite(np.exp, *a),
    },
    "entropy_of_a_class": {"The entropy is the quadratic one": quadratic_entropies},
    "one_row_more": {
        "The factor stands the other way round": (
            lambda m, L, *a: right("one_row_more", m, L.T, *a)
        ),
    },
    "what_dropout_believes": {"Inputs that stay are not divided": over_masks},
    "gaussian_prior": {
        "The prior is Cauchy's": lambda w, prior: -stats.cauchy(0, prior).logpdf(w).sum(),
        **{
            f"The prior is N({m},": lambda w, prior, m=m: -stats.norm(m, prior).logpdf(w).sum()
            for m in MEANS
        },
    },
    "laplace_prior": {
        f"The peak is at {m},": lambda w, b, m=m: -stats.laplace(m, b).logpdf(w).sum()
        for m in MEANS
    },
    "scale_mixture_prior": {
        "Both components are Laplace's": mixed,
        "The share pi": lambda w, share, s1, s2: right(
            "scale_mixture_prior", w, special.logit(share), s1, s2
        )[0],
    },
    "learned_prior_scale": {
        f"The mean of the prior is {m},": (
            lambda w, t, m=m: -(stats.norm(m, np.exp(t)).logpdf(w) + np.log(2 * np.pi) / 2).sum()
        )
        for m in MEANS
    },
    "covariance_of_functions": {  # H units of the variance s1^2 / H are as one of s1^2
        "The weights of the last layer": lambda x, z, s0, s1, H: right(
            "covariance_of_functions", x, z, s0, s1, 1
        ),
    },
    "gaussian_likelihood": {
        f"The noise is {name}": (
            lambda f, y, noise, law=law: -law(f, noise).logpdf(y).sum()
        )
        for name, law in {
            "Laplace's": stats.laplace, "logistic": stats.logistic, "Cauchy's": stats.cauchy,
        }.items()
    },
    "noise_that_depends_on_the_input": {
        "sigma is c + exp(h)": lambda m, h, y, c: -stats.norm(m, c + np.exp(h)).logpdf(y).sum(),
    },
    "counts": {
        "The rate is softplus": lambda z, y: poisson(softplus(z), y),
        "Counts are geometric": geometric,
    },
    "complexity_in_closed_form": {
        "sigma is exp(rho)": lambda mu, rho, prior: sum(
            right("kl_of_two_normals", m, sd, 0.0, prior)
            for m, sd in zip(mu, np.exp(rho), strict=True)
        ),
        **{
            f"The prior of each weight is N({mean},": lambda mu, rho, prior, mean=mean: sum(
                right("kl_of_two_normals", m, sd, mean, prior)
                for m, sd in zip(mu, softplus(rho), strict=True)
            )
            for mean in MEANS
        },
    },
    "sticking_the_landing": {
        "sigma is exp(rho)": lambda sigma, rho, eps, d_w, pi: (
            np.mean(d_w - pi * eps / sigma, axis=0),
            np.mean((d_w - pi * eps / sigma) * eps * sigma, axis=0),
        ),
    },
    "antithetic_noise": {
        "Each pair has the middle": lambda h, mu, sigma, eps: np.mean(
            [(h(mu + e) + h(mu) + h(mu - e)) / 3 for e in sigma * eps], axis=0
        ),
        "Return half the difference": lambda h, mu, sigma, eps: np.mean(
            [(h(mu + e) - h(mu - e)) / 2 for e in sigma * eps], axis=0
        ),
    },
    "gradient_of_the_upper_bound": {"q is Laplace's distribution": laplace_scores},
    "weights_that_hang_together": {
        "C is upper triangular": lambda mu, C, eps: [mu + np.triu(C) @ e for e in eps],
        "The diagonal of C": lambda mu, C, eps: [
            mu + (np.eye(len(C)) + np.tril(C, -1)) @ e for e in eps
        ],
    },
    "gradient_for_the_factor": {"The diagonal of C is exp(rho)": exp_factor},
    "log_joint_in_real_coordinates": {
        "theta is an inverse Gamma": inverse_gamma,
        "theta has the log density": lambda zeta, a, b: sum(
            (a - 1) * np.log(theta) - b * theta**2 + np.log(theta) for theta in np.exp(zeta)
        ),
    },
    "density_of_low_rank": {
        f"The noises of their own have the variance {k}:": lambda a, v, k=k: low_rank(a, v, k)
        for k in (2, 3, 4)
    },
    "anchored_member": {
        f"The prior of each weight has the mean {m},": (
            lambda w, x, y, eps, eps_prior, sigma, s, m=m: right(
                "anchored_member", w - m, x, y - x.sum(1) * m, eps, eps_prior, sigma, s
            )[0]
        )
        for m in MEANS
    },
    "acceptance_probability": {
        "Return Barker's": lambda density, new, forward, backward: (
            new * backward / (new * backward + density * forward)
        ),
    },
    "transition_matrix": {"A step is accepted by Barker's": barker},
    "leapfrog": {
        "The halves change their places": position_first,
        **{
            f"All weights have the mass {k}": lambda *a, k=k: leapfrog(*a, mass=k)
            for k in (2, 3, 4)
        },
    },
    "log_acceptance_of_hmc": {
        f"All momenta belong to the mass {k}": lambda *a, k=k: hmc_of_mass(*a, mass=k)
        for k in (2, 3, 4, 5)
    },
    "too_wide": {
        "The friction is given": lambda lam, v, temperature, h, friction: right(
            "too_wide", lam, v, temperature, h, np.exp(-friction * h)
        ),
    },
    "crps_of_draws": {
        "The mean over pairs leaves out": (
            lambda draws, y: kernel_score(draws, y, np.abs, itertools.permutations)
        ),
        "Return another proper score": lambda draws, y: kernel_score(
            draws, y, SIGNED_ROOT, lambda some, n: itertools.product(some, repeat=n)
        ),
    },
    "coverage": {
        "The ends do not belong": lambda low, high, y: sum(
            a < t < b for a, b, t in zip(low, high, y, strict=True)
        ) / len(y),
    },
    "information_gain": {
        f"At each place {k} readings are taken,": lambda features, factor, scale, k=k: [
            np.linalg.slogdet(
                np.eye(len(phi)) + k * factor.T @ np.outer(phi, phi) @ factor / scale**2
            )[1] / 2 for phi in features
        ]
        for k in (2, 3, 4)
    },
    "conformal_interval": {"The score is the distance from the middle": from_the_middle},
}  # fmt: skip
EDITED = {
    (name, variations[0].asks): variations
    for name in exercises()
    for variations in combinations(name)
    if len(variations) == 1 and variations[0].edits
}


def test_every_variant_with_an_edited_key_has_an_answer_here():
    with_oracles = {(name, start) for name, starts in ORACLES.items() for start in starts}
    for name, asks in EDITED:
        matching = {
            (of, start) for of, start in with_oracles if of == name and asks.startswith(start)
        }
        assert len(matching) == 1, (name, asks)
        with_oracles -= matching
    assert not with_oracles
    assert all(n_variants(name) for name in ORACLES)


@pytest.mark.parametrize(("name", "asks"), EDITED)
def test_the_answer_to_a_variant_is_that_of_its_statement(name, asks):
    exercise = varied(find(name), EDITED[name, asks])
    (oracle,) = (found for start, found in ORACLES[name].items() if asks.startswith(start))
    cases = [*map(exercise.draw, FLOAT_SEEDS[:3])]
    if name == "coverage":  # whose ends differ only where targets are ends
        cases += exercise.edge_cases
    for arguments in cases:
        expected = oracle(*arguments)
        blocks = exercise.blocks(exercise.right(*arguments))
        if exercise.slopes:  # which are proved to be those of the value
            blocks = blocks[:1]
        if len(blocks) == 1:
            expected = (expected,)
        for block, value in zip(blocks, expected, strict=True):
            tolerance = 1e-6 if name == "gradient_of_the_upper_bound" else 1e-10
            assert np.allclose(block, value, rtol=tolerance, atol=tolerance)
