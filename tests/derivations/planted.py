"""One planted error for every tag of derivations.md: a line that computes the entry, made wrong.

Each is a mistake that a person could make: a sign, a factor, an index, a term left out. A tag has
several where several lines compute it, one in `plain.py` and one in the fast path for instance.
`make planted` puts them one by one into a copy of the package and lists the tests with the tag's
mark that notice (benchmarks/planted.md); test_planted.py only holds this table to the code.
"""

from __future__ import annotations

import re
from typing import NamedTuple

PLAIN = "plain.py"
ELEMENTARY = "numeric/elementary.py"
MEAN_FIELD = "parts/posteriors.py"
FULL_RANK = "parts/full_rank.py"
PRIORS = "parts/priors.py"
MIXTURE = "parts/mixture.py"
LIKELIHOODS = "parts/likelihoods.py"
DISCRETE = "parts/discrete.py"
STUDENT_T = "parts/student_t.py"
WEIGHTED = "parts/weighted.py"
NETWORK = "parts/network.py"
ACTIVATIONS = "parts/activations.py"
PRODUCTS = "parts/products.py"
OBJECTIVES = "model/objectives.py"
REPARAMETERISED = "gradients/reparameterised.py"
IMPORTANCE = "gradients/importance.py"
OPTIMIZERS = "training/optimizers.py"
TRANSFORMS = "training/transforms.py"
ADVI = "training/advi.py"
CHEES = "sampling/mcmc/chees.py"
PREDICTIVE = "evaluation/predictive.py"
MICROCANONICAL = "sampling/mcmc/microcanonical.py"
CONJUGATE = "studies/mullachery/coin/conjugate.py"


class Planted(NamedTuple):
    """`old`, which stands once in a file of the package, and the mistake in its place."""

    file: str
    old: str
    new: str

    def planted_in(self, source: str) -> str:
        """Return the file's source with the error in it."""
        assert source.count(self.old) == 1, f"{self.file}: {source.count(self.old)} x {self.old!r}"
        return source.replace(self.old, self.new)

    @property
    def shown(self) -> str:
        """Return the change as it stands in a cell of a table."""
        return " → ".join(_code(text) for text in (self.old, self.new))


def _code(text: str) -> str:
    return "`" + re.sub(r"\s*\n\s*", " ⏎ ", text.strip()).replace("|", "\\|") + "`"


PLANTED: dict[str, tuple[Planted, ...]] = {
    "K1": (  # one number for all weights
        Planted(
            REPARAMETERISED,
            "            standard_normal(rng, noise)\n",
            "            noise[...] = rng.standard_normal((len(noise), 1))\n",
        ),
        Planted(
            PLAIN,
            "rng.standard_normal((samples, theta.size // 2))",
            "rng.standard_normal((samples, 1))",
        ),
    ),
    "K2": (
        Planted(
            MEAN_FIELD,
            'return (("mu", (size,)), ("rho", (size,)))',
            'return (("rho", (size,)), ("mu", (size,)))',
        ),
        Planted(
            PLAIN,
            "mu, rho = np.split(theta, 2)                                     # K2  (P,)",
            "rho, mu = np.split(theta, 2)                                     # K2  (P,)",
        ),
    ),
    "K3": (
        Planted(ELEMENTARY, "log1p(e, out=sp)", "np.copyto(sp, e)"),
        Planted(PLAIN, "sigma = softplus(rho)", "sigma = np.exp(rho)"),
    ),
    "K4": (
        Planted(MEAN_FIELD, "w += mu[None]  # K4", "w -= mu[None]  # K4"),
        Planted(PLAIN, "w = mu + sigma * eps", "w = mu + sigma**2 * eps"),
    ),
    "K5": (
        Planted(OBJECTIVES, "(weight, -weight, -1.0)", "(weight, weight, -1.0)"),
        Planted(PLAIN, "pi * kl + np.sum(nll", "pi * kl - np.sum(nll"),
    ),
    "K6": (  # the 1 / sigma of the density left out
        Planted(
            MEAN_FIELD,
            "constant = np.add.reduce(sample.parts.log_softplus) + 0.5",
            "constant = 0.5",
        ),
    ),
    "K7": (  # log sqrt(2 pi) without the root
        Planted(
            MEAN_FIELD,
            "0.5 * LOG_2PI * sample.eps.shape[-1]",
            "LOG_2PI * sample.eps.shape[-1]",
        ),
    ),
    "K8": (
        Planted(
            MEAN_FIELD,
            "constant = np.add.reduce(sample.parts.log_softplus) +",
            "constant = -np.add.reduce(sample.parts.log_softplus) +",
        ),
    ),
    "K9": (  # a constant of every weight counted once
        Planted(MEAN_FIELD, "0.5 * LOG_2PI * sample.eps.shape[-1]", "0.5 * LOG_2PI"),
        Planted(PLAIN, "np.sum(log_q - log_prior, axis=1)", "np.sum(log_q + log_prior, axis=1)"),
    ),
    "K10": (
        Planted(
            MEAN_FIELD,
            "return -0.5 * sums_of_squares(sample.eps) - constant",
            "return -sums_of_squares(sample.eps) - constant",
        ),
        Planted(PLAIN, "-np.log(sigma) - eps**2 / 2", "-np.log(sigma) + eps**2 / 2"),
    ),
    "K11": (  # the deviation read as a variance
        Planted(
            PRIORS,
            "return self.scale**-2, log(self.scale)",
            "return self.scale**-1, log(self.scale)",
        ),
    ),
    "K12": (
        Planted(
            PRIORS,
            "return -0.5 * precision * saved.squares - constants",
            "return -precision * saved.squares - constants",
        ),
    ),
    "K13": (
        Planted(
            PRIORS,
            "constants = w.shape[-1] * (log_scale + 0.5 * LOG_2PI)",
            "constants = w.shape[-1] * (0.5 * LOG_2PI - log_scale)",
        ),
        Planted(
            PLAIN,
            "-np.log(prior) - w**2 / (2 * prior**2)",
            "np.log(prior) - w**2 / (2 * prior**2)",
        ),
    ),
    "K14": (
        Planted(
            LIKELIHOODS,
            "precision, log_scales = self.scale**-2, f",
            "precision, log_scales = self.scale**-1, f",
        ),
    ),
    "K15": (
        Planted(
            LIKELIHOODS,
            "rowwise -= log_scales + 0.5 * LOG_2PI * f.shape[-1]",
            "rowwise -= 0.5 * LOG_2PI * f.shape[-1]",
        ),
        Planted(PLAIN, "+ np.log(noise) + LOG_2PI / 2", "- np.log(noise) + LOG_2PI / 2"),
    ),
    "K16": (Planted(LIKELIHOODS, "rowwise *= -0.5", "rowwise *= -1.0"),),
    "K17": (Planted(OBJECTIVES, "(weight, -weight, -1.0)", "(weight, 0.0, -1.0)"),),
    "K18": (
        Planted(OBJECTIVES, "(weight, -weight, -1.0)", "(weight, -weight, -kl_weight)"),
        Planted(PLAIN, "value = np.mean(pi * kl +", "value = np.mean(kl +"),
    ),
    "K19": (
        Planted(
            "model/joint.py",
            "self.prior.add_vjp(joint.prior, d_log_prior, d_w, d_params)",
            "self.prior.add_vjp(joint.prior, d_log_likelihood, d_w, d_params)",
        ),
    ),
    "K20": (
        Planted(
            MEAN_FIELD, "np.add.reduce(d_w, axis=0, out=d_mu)", "np.mean(d_w, axis=0, out=d_mu)"
        ),
        Planted(PLAIN, "d_mu = d_w.mean(axis=0)", "d_mu = (d_w * sigma).mean(axis=0)"),
    ),
    "K21": (
        Planted(
            PRIORS,
            "add_scaled(d_w, w, (-cotangent * precision)[:, None])",
            "add_scaled(d_w, w, (cotangent * precision)[:, None])",
        ),
        Planted(PLAIN, "d_w = pi * w / prior**2 + g_w", "d_w = w / prior**2 + g_w"),
    ),
    "K22": (  # 1 / sigma left out of the chain
        Planted(
            ELEMENTARY,
            "    else:\n        np.log(sp, out=log_sp)\n        np.divide(s, sp, out=ratio)",
            "    else:\n        np.log(sp, out=log_sp)\n        np.copyto(ratio, s)",
        ),
    ),
    "K23": (  # the sigmoid left out
        Planted(
            ELEMENTARY,
            "    else:\n        np.log(sp, out=log_sp)\n        np.divide(s, sp, out=ratio)",
            "    else:\n        np.log(sp, out=log_sp)\n        np.divide(1.0, sp, out=ratio)",
        ),
    ),
    "K24": (Planted(ELEMENTARY, "np.divide(e, s, out=s)", "np.divide(1.0, s, out=s)"),),
    "K25": (
        Planted(
            ELEMENTARY,
            "    else:\n        np.log(sp, out=log_sp)\n        np.divide(s, sp, out=ratio)",
            "    else:\n        np.log(sp, out=log_sp)\n        np.multiply(s, sp, out=ratio)",
        ),
        Planted(
            MEAN_FIELD,
            "add_scaled(d_rho, sample.parts.ratio, -np.add.reduce(d_log_q))",
            "add_scaled(d_rho, sample.parts.ratio, np.add.reduce(d_log_q))",
        ),
    ),
    "K26": (
        Planted(
            PRIORS,
            "add_scaled(d_w, w, (-cotangent * precision)[:, None])",
            "add_scaled(d_w, w, -cotangent[:, None])",
        ),
    ),
    "K27": (
        Planted(
            REPARAMETERISED,
            "d_w = self.model.vjp(joint, c.prior, c.likelihood, d_blocks, buffers)  # (S, P)",
            "d_w = self.model.vjp(joint, c.prior, -c.likelihood, d_blocks, buffers)  # (S, P)",
        ),
    ),
    "K28": (
        Planted(
            MEAN_FIELD,
            "d_rho *= sample.parts.sigmoid",
            "d_rho *= sample.parts.softplus",
        ),
    ),
    "K29": (  # eps left out
        Planted(
            MEAN_FIELD,
            'np.einsum("sp,sp->p", d_w, sample.eps, out=d_rho, casting="same_kind")',
            "np.add.reduce(d_w, axis=0, out=d_rho)",
        ),
    ),
    "K30": (
        Planted(
            MEAN_FIELD,
            "add_scaled(d_rho, sample.parts.ratio, -np.add.reduce(d_log_q))",
            "add_scaled(d_rho, sample.parts.softplus, -np.add.reduce(d_log_q))",
        ),
        Planted(PLAIN, "d_rho = (-pi / sigma + d_w", "d_rho = (pi / sigma + d_w"),
    ),
    "K31": (
        Planted(PRODUCTS, "out[..., -1, :] = 1.0", "out[..., -1, :] = 0.0"),
        Planted(PLAIN, "z = a @ W + b", "z = a @ W - b"),
    ),
    "K32": (
        Planted(ACTIVATIONS, "np.greater(z.real, 0, out=slope)", "np.less(z.real, 0, out=slope)"),
        Planted(PLAIN, "a = z * gate ", "a = z "),
    ),
    "K33": (
        Planted(PRODUCTS, "    out += bias\n", "    out -= bias\n"),
        Planted(PLAIN, "z = a @ W + b", "z = a @ W"),
    ),
    "K34": (
        Planted(
            ACTIVATIONS,
            "np.greater(z.real, 0, out=slope)",
            "np.greater_equal(z.real, 0, out=slope)",
        ),
        Planted(PLAIN, "gate = z.real > 0", "gate = z.real < 0"),
    ),
    "K35": (  # the last hidden layer without activation
        Planted(NETWORK, "if len(inputs) < len(layers):", "if len(inputs) < len(layers) - 1:"),
        Planted(PLAIN, "a = z * gate ", "a = 1.0 * gate "),
    ),
    "K36": (  # the output with one
        Planted(NETWORK, "if len(inputs) < len(layers):", "if len(inputs) <= len(layers):"),
        Planted(PLAIN, "return z, tape", "return a, tape"),
    ),
    "K37": (
        Planted(LIKELIHOODS, "residual = np.subtract(y, f, ", "residual = np.subtract(f, y, "),
        Planted(PLAIN, "vjp(tape, -(y - f) / noise**2)", "vjp(tape, (y - f) / noise**2)"),
    ),
    "K38": (
        Planted(
            PRODUCTS,
            "np.matmul(transposed, rows, out=weight)",
            "np.matmul(transposed, -rows, out=weight)",
        ),
        Planted(PLAIN, "d_W = a.mT @ delta", "d_W = -a.mT @ delta"),
    ),
    "K39": (
        Planted(PRODUCTS, "np.multiply(slope, rows, out=out)", "np.multiply(1.0, rows, out=out)"),
        Planted(PLAIN, "delta = (delta @ W.mT) * gate", "delta = delta @ W.mT"),
    ),
    "K40": (
        Planted(PRODUCTS, "        weight *= columns", "        weight *= 1.0"),
        Planted(PLAIN, "d_W = a.mT @ delta", "d_W = np.abs(a.mT) @ delta"),
    ),
    "K41": (
        Planted(NETWORK, "slopes[index - 1], narrow", "slopes[-1], narrow"),
        Planted(PLAIN, "d_b = delta.sum(axis=1)", "d_b = delta.mean(axis=1)"),
    ),
    "K42": (
        Planted(
            PRODUCTS,
            "np.matmul(transposed, rows, out=both)",
            "np.matmul(transposed, -rows, out=both)",
        ),
        Planted(
            PLAIN,
            "[d_W.reshape(len(W), -1), d_b, *d_w]",
            "[d_b, d_W.reshape(len(W), -1), *d_w]",
        ),
    ),
    "K43": (
        Planted(OPTIMIZERS, "theta -= grad  # K43, K44", "theta += grad  # K43, K44"),
        Planted(PLAIN, "return theta - eta * grad", "return theta + eta * grad"),
    ),
    "K44": (  # rho without the learning rate, and not at all
        Planted(
            OPTIMIZERS,
            "grad *= self.learning_rate * factor",
            "grad[: len(grad) // 2] *= self.learning_rate * factor",
        ),
        Planted(
            PLAIN,
            "return theta - eta * grad",
            "return theta - eta * grad * (np.arange(theta.size) < theta.size // 2)",
        ),
    ),
    "R1": (
        Planted(
            "gradients/closed_form.py",
            "value = weight * kl + each @ found.log_likelihood",
            "value = weight * kl - each @ found.log_likelihood",
        ),
    ),
    "R2": (
        Planted(OBJECTIVES, "value += prior.dot(terms.prior)", "value -= prior.dot(terms.prior)"),
    ),
    "R3": (  # a sum over samples
        Planted(
            OBJECTIVES,
            "each = np.full(samples, 1.0 / samples, terms.prior.real.dtype)",
            "each = np.full(samples, 1.0, terms.prior.real.dtype)",
        ),
    ),
    "R4": (Planted(MIXTURE, "c.log_share[k] - c.log_sigma[k]", "c.log_share[k] + c.log_sigma[k]"),),
    "R5": (
        Planted(
            MIXTURE,
            "precision += narrow[block] * s2**-2",
            "precision += narrow[block] * s1**-2",
        ),
    ),
    "R6": (
        Planted(MIXTURE, "moment[0] * s1**-3 - mass[0] / s1", "moment[0] * s1**-2 - mass[0] / s1"),
    ),
    "R7": (
        Planted(
            MIXTURE,
            "mass[0] * (1.0 - slopes[2]) - mass[1] * slopes[2]",
            "mass[0] * (1.0 - slopes[2]) + mass[1] * slopes[2]",
        ),
    ),
    "R8": (
        Planted(
            MIXTURE,
            "d_t2 = (d_wide + d_narrow) * slopes[0]",
            "d_t2 = d_narrow * slopes[0]",
        ),
    ),
    "R9": (  # one pass with the posterior means
        Planted(
            "gradients/family.py",
            "return self.posterior.sample(self.layout.views(theta), eps, buffers).w",
            "return self.posterior.sample(self.layout.views(theta), 0.0 * eps, buffers).w",
        ),
    ),
    "R10": (
        Planted(
            PREDICTIVE, "return np.hypot(self.epistemic, self.aleatoric)", "return self.epistemic"
        ),
    ),
    "W1": (
        Planted(
            OBJECTIVES,
            "\n        return _weighted_means(terms, (0.0, 0.0, -1.0))",
            "\n        return _weighted_means(terms, (0.0, 0.0, -kl_weight))",
        ),
    ),
    "W2": (  # the whole prior in every minibatch
        Planted(OBJECTIVES, "(0.0, -kl_weight, -1.0)", "(0.0, -1.0, -1.0)"),
    ),
    "W3": (
        Planted(
            MEAN_FIELD,
            "d_w -= cotangent[:, None] * sample.eps / sample.parts.softplus",
            "d_w += cotangent[:, None] * sample.eps / sample.parts.softplus",
        ),
    ),
    "W4": (
        Planted(
            MEAN_FIELD,
            'np.divide(d_log_q @ eps, parts.softplus, out=d_theta["mu"])',
            'np.multiply(d_log_q @ eps, parts.softplus, out=d_theta["mu"])',
        ),
    ),
    "W5": (Planted(MEAN_FIELD, "(eps * eps - 1.0)", "(eps * eps + 1.0)"),),
    "W6": (
        Planted(
            "data/path_loss.py",
            "- 10.0 * scene.exponent * _log_distance",
            "- 20.0 * scene.exponent * _log_distance",
        ),
    ),
    "M1": (
        Planted(
            FULL_RANK,
            "np.matmul(eps, factor.lower.T, out=w)",
            "np.matmul(eps, factor.lower, out=w)",
        ),
    ),
    "M2": (
        Planted(
            FULL_RANK,
            'np.add.reduce(d_w, axis=0, out=d_theta["mu"])',
            'np.mean(d_w, axis=0, out=d_theta["mu"])',
        ),
    ),
    "M3": (Planted(FULL_RANK, "d_w.T @ sample.eps", "sample.eps.T @ d_w"),),
    "M4": (  # the determinant of C C^T for that of C
        Planted(
            FULL_RANK,
            "value = np.add.reduce(factor.diagonal.log_softplus) + constant",
            "value = 2.0 * np.add.reduce(factor.diagonal.log_softplus) + constant",
        ),
    ),
    "M5": (
        Planted(
            "sampling/mcmc/metropolis.py",
            "accepted = -rng.standard_exponential(len(log_alpha)) < log_alpha",
            "accepted = -rng.standard_exponential(len(log_alpha)) < 0.5 * log_alpha",
        ),
    ),
    "M6": (
        Planted(
            "sampling/mcmc/metropolis.py",
            "new.log_density - state.log_density + log_ratio",
            "new.log_density - state.log_density - log_ratio",
        ),
    ),
    "M7": (Planted("sampling/mcmc/hmc.py", "error = after - before", "error = before - after"),),
    "M8": (
        Planted(
            "sampling/mcmc/leapfrog.py",
            "momentum += half * gradient",
            "momentum += step_size * gradient",
        ),
    ),
    "M9": (  # the printed sign
        Planted(
            "sampling/mcmc/nuts.py",
            "(np.vecdot(first, way) <= 0) | (np.vecdot(last, way) <= 0)",
            "(np.vecdot(first, way) >= 0) | (np.vecdot(last, way) >= 0)",
        ),
    ),
    "M10": (
        Planted(
            "sampling/mcmc/nuts.py",
            "forwards = rng.random(len(growing)) < 0.5",
            "forwards = rng.random(len(growing)) < 0.6",
        ),
    ),
    "M11": (
        Planted(
            "sampling/mcmc/adaptation.py",
            "log_step = self.anchor - error * sqrt(count) / 0.1",
            "log_step = self.anchor + error * sqrt(count) / 0.1",
        ),
    ),
    "M12": (  # M for its inverse
        Planted(
            "sampling/mcmc/adaptation.py",
            "((self.squares + 5e-3) / (seen + 5.0)).astype(dtype)",
            "((seen + 5.0) / (self.squares + 5e-3)).astype(dtype)",
        ),
    ),
    "M13": (Planted(ADVI, "return -np.mean(log_p) - entropy", "return -np.mean(log_p) + entropy"),),
    "M14": (
        Planted(
            ADVI,
            "value = value + self.transforms.log_det(zeta)",
            "value = value - self.transforms.log_det(zeta)",
        ),
    ),
    "M15": (
        Planted(
            TRANSFORMS,
            "return log(self._width) - softplus(zeta) - softplus(-zeta)",
            "return -softplus(zeta) - softplus(-zeta)",
        ),
        Planted(TRANSFORMS, "return -softplus(-zeta)  #", "return softplus(-zeta)  #"),
        Planted(
            TRANSFORMS,
            "np.add.reduce(self._check(zeta)[..., 1:], axis=-1)",
            "np.add.reduce(self._check(zeta), axis=-1)",
        ),
        Planted(
            TRANSFORMS,
            "return sigmoid(-zeta) - sigmoid(zeta)",
            "return sigmoid(zeta) - sigmoid(-zeta)",
        ),
    ),
    "M16": (  # the Jacobian 1, as printed
        Planted(
            FULL_RANK,
            "return -0.5 * sums_of_squares(sample.eps) - logs -",
            "return -0.5 * sums_of_squares(sample.eps) -",
        ),
    ),
    "M17": (
        Planted(
            ADVI,
            "slope = self.transforms.pull_back(zeta, d_theta)",
            "slope = d_theta",
        ),
    ),
    "M18": (
        Planted(CONJUGATE, "log_factorial(heads + tails + 1) -", "log_factorial(heads + tails) -"),
    ),
    "M19": (
        Planted(
            CONJUGATE,
            "return Beta(self.alpha + successes, self.beta + failures)",
            "return Beta(self.alpha + failures, self.beta + successes)",
        ),
        Planted(CONJUGATE, "self.rate + len(flat))", "self.rate + 1.0 / len(flat))"),
        Planted(
            CONJUGATE,
            "return Dirichlet(tuple(np.add(self.alpha, counts)))",
            "return Dirichlet(tuple(np.add(self.alpha, counts.sum())))",
        ),
    ),
    "M20": (
        Planted(
            "sampling/annealing.py",
            "new.log_density - state.log_density)",
            "state.log_density - new.log_density)",
        ),
    ),
    "M21": (
        Planted(
            "studies/mullachery/occam/models.py",
            "[product * (1.0 - p[:, i : i + 1]), product * p[:, i : i + 1]], 1",
            "[product * p[:, i : i + 1], product * (1.0 - p[:, i : i + 1])], 1",
        ),
    ),
    "M22": (
        Planted(
            "evaluation/model_checks.py",
            "above = self.replicated > self.observed",
            "above = self.replicated < self.observed",
        ),
        Planted(
            "evaluation/model_checks.py",
            "rise = other(positions)[0] - joint(positions)[0]",
            "rise = joint(positions)[0] - other(positions)[0]",
        ),
    ),
    "G1": (
        Planted(
            OBJECTIVES,
            "return terms.prior - terms.posterior + terms.likelihood / kl_weight",
            "return terms.prior + terms.posterior + terms.likelihood / kl_weight",
        ),
    ),
    "G2": (
        Planted(
            OBJECTIVES,
            "return kl_weight * (share @ seen), cotangents",
            "return -kl_weight * (share @ seen), cotangents",
        ),
    ),
    "G3": (  # ascent
        Planted(
            OBJECTIVES,
            "cotangents = Cotangents(-kl_weight * share, -kl_weight * share, -share)",
            "cotangents = Cotangents(kl_weight * share, kl_weight * share, share)",
        ),
    ),
    "G4": (
        Planted(
            IMPORTANCE,
            "self.posterior.pull_back_direct(sample, c.posterior, d_blocks)",
            "self.posterior.pull_back_direct(sample, -c.posterior, d_blocks)",
        ),
    ),
    "G5": (
        Planted(
            "studies/sagar/printed.py",
            "factor = log_weights(terms, kl_weight) + 1.0",
            "factor = log_weights(terms, kl_weight)",
        ),
        Planted(
            "studies/sagar/printed.py",
            "d_log_q = c.posterior * factor if self.corrected else c.posterior",
            "d_log_q = c.posterior",
        ),
    ),
    "G6": (  # plain shares
        Planted(
            OBJECTIVES,
            "share = _self_normalised(logs.real)",
            "share = np.full_like(logs.real, 1.0 / len(logs))",
        ),
    ),
    "G7": (  # the printed shift
        Planted(OBJECTIVES, "np.exp(logs - logs.max())", "np.exp(logs + logs.min())"),
    ),
    "G8": (  # through the samples
        Planted(
            IMPORTANCE,
            "self.posterior.pull_back_direct(sample, c.posterior, d_blocks)",
            "self.posterior.pull_back(sample, 0.0 * sample.w, c.posterior, d_blocks)",
        ),
    ),
    "D1": (Planted(LIKELIHOODS, "squares -= saved.plain.shape[1]", "squares -= 1.0"),),
    "D2": (Planted(OPTIMIZERS, "velocity *= self.momentum", "velocity *= 1.0 - self.momentum"),),
    "D3": (
        Planted(OPTIMIZERS, "v *= self.beta2", "v *= self.beta1"),
        Planted(OPTIMIZERS, "floor = self.epsilon / unbias_root_v", "floor = self.epsilon"),
    ),
    "D4": (
        Planted(PREDICTIVE, "squares / max(samples - 1, 1)", "squares / samples"),
        Planted(PLAIN, "total = np.sqrt(epistemic**2 + noise**2)", "total = epistemic + noise"),
    ),
    "D5": (  # a sum of densities for their mean
        Planted(PREDICTIVE, "return log_sum - log(samples)", "return log_sum"),
    ),
    "D6": (  # equal shares, whatever the rows; and 1 / N
        Planted(
            "model/kl_weights.py",
            "return rows / rows.sum()",
            "return np.full(len(rows), 1.0 / len(rows))",
        ),
        Planted(PLAIN, "pi = len(rows) / len(x)", "pi = 1 / len(x)"),
    ),
    "D7": (
        Planted(
            ELEMENTARY, "np.copyto(ratio, 1.0, where=tail)", "np.copyto(ratio, 0.0, where=tail)"
        ),
    ),
    "D8": (
        Planted(
            "studies/linear_gaussian.py",
            "-0.5 * (quadratic + _log_det(of_y) + len(y) * LOG_2PI)",
            "-0.5 * (quadratic - _log_det(of_y) + len(y) * LOG_2PI)",
        ),
    ),
    "D9": (
        Planted(
            "gradcheck.py",
            "(-1, -8 / 12), (1, 8 / 12)",
            "(-1, -7 / 12), (1, 7 / 12)",
        ),
        Planted("gradcheck.py", "np.maximum(np.abs(g), np.abs(n)), floor", "1.0 + floor, floor"),
    ),
    "D10": (Planted(ELEMENTARY, "np.divide(4.0 * e,", "np.divide(2.0 * e,"),),
    "D11": (Planted(ELEMENTARY, "radius *= -2.0", "radius *= -1.0"),),
    "D12": (
        Planted(
            LIKELIHOODS,
            "d_raw = (r * r - 1.0) / sigma * slope",
            "d_raw = (r * r - 1.0) / sigma",
        ),
    ),
    "D13": (
        Planted(
            DISCRETE,
            "- np.add.reduce(parts.softplus, axis=-1)",
            "+ np.add.reduce(parts.softplus, axis=-1)",
        ),
    ),
    "D14": (
        Planted(
            DISCRETE,
            "inner(logs, np.broadcast_to(y, f.shape))",
            "inner(f, np.broadcast_to(y, f.shape))",
        ),
    ),
    "D15": (Planted(DISCRETE, "np.subtract(y, rate, out=rate)", "np.subtract(y, f, out=rate)"),),
    "D16": (
        Planted(
            PRIORS,
            "constant = w.shape[-1] * log(2.0 * self.scale)",
            "constant = w.shape[-1] * log(self.scale)",
        ),
    ),
    "D17": (
        Planted(
            PRIORS,
            "slope = precision * squares - w.shape[-1]",
            "slope = precision * squares - 1.0",
        ),
        Planted(PRIORS, "[0] = precision * squares - size", "[0] = precision * squares + size"),
    ),
    "D18": (
        Planted(
            MEAN_FIELD,
            "0.5 * (1.0 + LOG_2PI) * len(sigma)",
            "0.5 * LOG_2PI * len(sigma)",
        ),
    ),
    "D19": (Planted(FULL_RANK, "+= 2.0 * self.unit * d_squares", "+= self.unit * d_squares"),),
    "D20": (
        Planted(
            REPARAMETERISED,
            "self.posterior.add_density_slope(sample, c.posterior, d_w)",
            "self.posterior.add_density_slope(sample, -c.posterior, d_w)",
        ),
        Planted(  # a baseline of which the sample itself is a part
            "studies/ours/estimator_variance/models.py",
            "(costs - costs.mean()) * len(costs) / (len(costs) - 1)",
            "costs - costs.mean()",
        ),
    ),
    "D21": (
        Planted(
            "gradients/local_reparameterisation.py",
            "h /= tape.roots[layer]",
            "h *= tape.roots[layer]",
        ),
    ),
    "D22": (
        Planted(
            "gradients/flipout.py", "            a *= sign.outputs", "            a *= sign.bias"
        ),
    ),
    "D23": (
        Planted(
            REPARAMETERISED,
            "np.negative(standard_normal(rng, noise[:half]), out=noise[half:])",
            "np.positive(standard_normal(rng, noise[:half]), out=noise[half:])",
        ),
    ),
    "D24": (
        Planted(OBJECTIVES, "weight = self.beta * kl_weight", "weight = kl_weight"),
        Planted(
            "model/kl_weights.py",
            "inside = epoch - length * min(epoch // length, self.cycles - 1)",
            "inside = epoch",
        ),
    ),
    "D25": (
        Planted(
            OBJECTIVES,
            "bound = (logsumexp(order * logs) - log(len(logs))) / order",
            "bound = logsumexp(order * logs) / order",
        ),
    ),
    "D26": (Planted(IMPORTANCE, "d_w *= -c.likelihood[:, None]", "d_w *= 1.0"),),
    "D27": (  # what minimising the bound would do
        Planted(
            IMPORTANCE,
            "if self.model.learned():  # D27\n"
            "            self.model.vjp(joint, c.prior, c.likelihood, d_blocks, buffers)",
            "if self.model.learned():  # D27\n"
            "            self.model.vjp(joint, -c.prior, -c.likelihood, d_blocks, buffers)",
        ),
    ),
    "D28": (  # the two optima, one for the other
        Planted(
            "studies/linear_gaussian.py",
            "np.diag(1.0 / np.diag(truth.precision))",
            "np.diag(np.diag(np.linalg.inv(truth.precision)))",
        ),
        Planted(
            "studies/linear_gaussian.py",
            "np.diag(np.diag(truth.posterior.covariance))",
            "np.diag(1.0 / np.diag(truth.precision))",
        ),
    ),
    "D29": (
        Planted(
            PREDICTIVE,
            "aleatoric[rows] += _entropy(p).sum(axis=0) / samples",
            "aleatoric[rows] += _entropy(p.mean(axis=0)) * len(p) / samples",
        ),
    ),
    "D30": (Planted(OBJECTIVES, "+ terms.likelihood / kl_weight", "+ terms.likelihood"),),
    "D31": (Planted(ELEMENTARY, "1 / 1260, -1 / 360, 1 / 12)", "1 / 1260, 1 / 360, 1 / 12)"),),
    "D32": (  # without the Jacobian
        Planted(
            "parts/hyperpriors.py",
            "- 0.5 * self._ratio(u) ** 2 + u",
            "- 0.5 * self._ratio(u) ** 2",
        ),
    ),
    "D33": (
        Planted(
            "model/log_joint.py",
            "value = value + np.add.reduce(hyperprior",
            "value = value - np.add.reduce(hyperprior",
        ),
    ),
    "D34": (
        Planted(
            "evaluation/calibration.py",
            "(1.0 - 2.0 * tail) + 2.0 * scale * density",
            "(1.0 - 2.0 * tail) + scale * density",
        ),
        Planted(
            "evaluation/calibration.py",
            "pairs = count * (count - 1) if fair else count * count",
            "pairs = count * count if fair else count * (count - 1)",
        ),
    ),
    "D35": (
        Planted(
            "evaluation/calibration.py", "ndtr((y - means) / scales)", "ndtr((means - y) / scales)"
        ),
        Planted(
            "evaluation/reliability.py",
            "variance = sums @ sums * len(names) / (len(names) - 1)",
            "variance = sums @ sums",
        ),
        Planted(
            "evaluation/calibration.py",
            "below + rng.random(len(labels)) * proba[rows, place]",
            "below + proba[rows, place]",
        ),
        Planted("evaluation/calibration.py", "- 0.5) <= 0.5 * levels)", "- 0.5) <= levels)"),
        Planted(
            "evaluation/reliability.py",
            "table.rows @ np.abs(table.stated - table.seen) / table.rows.sum()",
            "np.abs(table.stated - table.seen).mean()",
        ),
        Planted(
            "evaluation/reliability.py",
            "stray * stray - 2.0 * stray * y",
            "stray * stray - stray * y",
        ),
    ),
    "D36": (
        Planted(
            "evaluation/pruning.py",
            "return np.abs(mean) / deviation",
            "return np.abs(mean) * deviation",
        ),
        Planted(  # mu = 0 alone
            "evaluation/pruning.py",
            'blocks["rho"][removed] = REMOVED_RHO',
            'blocks["rho"][removed] += 0.0',
        ),
    ),
    "D37": (Planted("data/powerball.py", "comb(v - 1, place - 1)", "comb(v, place - 1)"),),
    "D38": (  # what becomes known on the next day
        Planted(
            "data/sp500.py",
            "table.known <= table.made[test].min()",
            "table.made <= table.made[test].min()",
        ),
        Planted(  # the same day for the next one
            "data/sp500.py",
            "y = (prices.close[day + 1] > prices.close[day])",
            "y = (prices.close[day] > prices.close[day - 1])",
        ),
        Planted(
            "data/sp500.py",
            "change = np.diff(np.log(close), axis=0)",
            "change = np.diff(np.log(close), axis=0) / np.log(close).std()",
        ),
    ),
    "D39": (
        Planted(
            PRIORS,
            "precision = np.exp(-2.0 * log_scales)  # (L,) or (S, L)",
            "precision = np.exp(-log_scales)  # (L,) or (S, L)",
        ),
    ),
    "D40": (  # row r S + s for row s R + r
        Planted(
            "gradients/replicated.py",
            "slope.reshape(samples, count, -1).swapaxes(0, 1)",
            "slope.reshape(count, samples, -1)",
        ),
    ),
    "D41": (
        Planted(ELEMENTARY, "-1 / 20, 1 / 24, -1 / 4)", "-1 / 20, -1 / 24, -1 / 4)"),
        Planted(
            ELEMENTARY,
            "tail = -nu * square * (series + 2.0 * square * slopes)",
            "tail = -nu * square * (series + square * slopes)",
        ),
    ),
    "D42": (
        Planted(
            STUDENT_T,
            "factor = (-cotangent * ((numbers.nu + 1.0) * numbers.precision))[:, None]",
            "factor = (-cotangent * (numbers.nu * numbers.precision))[:, None]",
        ),
    ),
    "D43": (  # every row with the weight of a Gaussian one
        Planted(STUDENT_T, "d_f = residual / (1.0 + ratio)", "d_f = 1.0 * residual"),
    ),
    "D44": (
        Planted(
            "exact/numbers.py",
            "(self.b - q * o.b) * over % p",
            "(self.b + q * o.b) * over % p",
        ),
        Planted("exact/proofs.py", "        if one == other:", "        if one != other:"),
    ),
    "D45": (
        Planted(WEIGHTED, "return rowwise * weights, Weighted", "return rowwise, Weighted"),
        Planted(
            WEIGHTED,
            "d_f: Array = self.likelihood.vjp(saved.residuals, each * saved.weights, d_params)",
            "d_f: Array = self.likelihood.vjp(saved.residuals, cotangent, d_params)",
        ),
        Planted(  # the noise's constant once for all rows
            LIKELIHOODS,
            "squares = saved.plain * saved.scaled - 1.0",
            "squares = saved.plain * saved.scaled - 1.0 / saved.plain.shape[1]",
        ),
        Planted(
            "training/loop.py",
            "shares = recipe.shares(estimator, sizes_by_weight)",
            "recipe.shares(estimator, sizes_by_weight)",
        ),
        Planted(
            "training/stopping.py",
            "self.size = total_weight(self.y) if weighted else len(self.x)",
            "self.size = len(self.x)",
        ),
        Planted(
            "numeric/standardisation.py",
            "scale = np.sqrt(shares @ (scaled - mean) ** 2)",
            "scale = scaled.std(axis=0)",
        ),
    ),
    "D46": (
        Planted(  # the mean of quantiles, near enough: that of the nearest component
            "evaluation/quantiles.py",
            "[one[row] for one in df]).mean(axis=1) - q",
            "[one[row] for one in df]).max(axis=1) - q",
        ),
        Planted(
            "evaluation/quantiles.py",
            "return pdtr(count[:, None], rates).mean(axis=1) >= q",
            "return pdtr(count[:, None], rates.mean(axis=1)[:, None])[:, 0] >= q",
        ),
        Planted("evaluation/quantiles.py", "return total / samples", "return total"),
        Planted(
            "evaluation/quantiles.py", "chosen = rest > 1.0 - coverage", "chosen = rest > coverage"
        ),
        Planted(
            PREDICTIVE,
            "by_output.swapaxes(1, 2) @ by_output / max(samples - 1, 1)",
            "by_output.swapaxes(1, 2) @ by_output / samples",
        ),
    ),
    "D47": (
        Planted(  # down the criterion
            CHEES,
            "slope[used] = time * change",
            "slope[used] = -time * change",
        ),
        Planted(  # that the path is h T and not T
            CHEES,
            "            self.length(turn),",
            "            self.path,",
        ),
        Planted(  # the jitter in the steps, but not in the slope's factor
            CHEES,
            "slope[used] = time * change",
            "slope[used] = change",
        ),
        Planted(  # rejected ends count as much as others
            CHEES,
            "return float(slope @ acceptance) / total if",
            "return float(slope.mean()) if",
        ),
        Planted(
            CHEES,
            "acceptance[used] @ end / acceptance[used].sum()",
            "end.mean(axis=0)",
        ),
        Planted(
            CHEES,
            "0.025 * slope / sqrt(square / (1.0 - 0.95**count))",
            "0.025 * slope / sqrt(square)",
        ),
        Planted(  # digits not mirrored
            CHEES,
            "        place *= 0.5\n",
            "        number *= 0.5\n",
        ),
        Planted(  # a rejected end forgotten, but not its weight
            CHEES, "end.position - state.center", "new.position - state.center"
        ),
        Planted(  # one center for all modes
            CHEES,
            "share = 1.0 / min(turn, MEMORY)",
            "share = 0.0",
        ),
        Planted(  # all chains start the sequence again with every path
            CHEES,
            "state.turn + 1, slope, center",
            "state.turn, slope, center",
        ),
    ),
    "D48": (
        Planted(  # the noise is the same in any dimension
            MICROCANONICAL,
            "share = sqrt(np.expm1(min(2.0 * step_size / length, 700.0)) / momentum.shape[1])",
            "share = sqrt(np.expm1(min(2.0 * step_size / length, 700.0)))",
        ),
        Planted(  # the dimension of space for that of the sphere
            MICROCANONICAL, "freedom = momentum.shape[1] - 1", "freedom = momentum.shape[1]"
        ),
    ),
    "D49": (
        Planted(
            MICROCANONICAL,
            "work = freedom * (delta + np.log1p(0.5 * (1.0 - along) * np.expm1(-2.0 * delta)))",
            "work = freedom * (delta + np.log1p(0.5 * (1.0 + along) * np.expm1(-2.0 * delta)))",
        ),
        Planted(  # as if volume were kept
            MICROCANONICAL,
            "error = state.log_density - phase.log_density + work  # D49",
            "error = state.log_density - phase.log_density",
        ),
    ),
    "D50": (
        Planted(
            MICROCANONICAL, "np.cbrt(energy_variance / 12.0)", "np.sqrt(energy_variance / 12.0)"
        ),
        Planted(  # the law of errors in the target, q^2 / 2 on average, for that along the chain
            MICROCANONICAL,
            "accepted = 0.5 + 0.5 * exp(0.5 * q * q) * erfc(q / sqrt(2.0))",
            "accepted = erfc(0.5 * q / sqrt(2.0))",
        ),
        Planted(  # a guard that never fires: min(nan, 10) is nan
            MICROCANONICAL, "return ratio if ratio < 10.0 else 10.0", "return min(ratio, 10.0)"
        ),
        Planted(  # and one that looks for what is not there
            MICROCANONICAL, "fine = error < DIVERGENT", "fine = error == error"
        ),
        Planted(  # a bias that goes untold
            "sampling/draws.py",
            'if not getattr(self.kernel, "unadjusted", False) or not',
            'if getattr(self.kernel, "unadjusted", False) or not',
        ),
    ),
    "D51": (
        Planted(ACTIVATIONS, "slope += gate", "slope[...] = gate"),
        Planted(ACTIVATIONS, "(1.0 + 3.0 * cubic)", "(1.0 + cubic)"),
        Planted(ACTIVATIONS, "parts.softplus, parts.sigmoid", "parts.softplus, parts.ratio"),
        Planted(ACTIVATIONS, "ERF_SLOPE * (0.5 * ROOT_HALF)", "ERF_SLOPE * 0.5"),
        Planted(ELEMENTARY, "larger, e), larger * e", "larger, e), larger * (1.0 - larger)"),
        Planted(ELEMENTARY, "2.0 * far / (1.0 + far)", "2.0 * far"),
    ),
    "D53": (
        Planted(  # the variance of a sum for the mean of squares
            "studies/ours/elbo_minima.py",
            "second @ (v**2 + sv**2) - first**2 @ v**2",
            "(second - first**2) @ (v**2 + sv**2)",
        ),
        Planted(  # the means of two units exchanged, their deviations not
            "studies/ours/elbo_minima.py",
            "(mu * signs)[:, order].ravel(), rho[:, order].ravel()",
            "(mu * signs)[:, order].ravel(), rho.ravel()",
        ),
    ),
}

# Claims of a source, or of floating point, that no line of the package computes
NO_CODE: dict[str, str] = {
    "D52": "a form of NUTS that is not shipped; its own errors are in test_slice_form.py",
}
