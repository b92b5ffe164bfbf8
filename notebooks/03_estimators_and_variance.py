# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Estimators and their variance
#
# Every step of training estimates one gradient from a few samples. Below are 2000 estimates by each
# of five estimators, for one $\rho$ of a small regression. They have one mean, and different noise.
#
# **It takes** about 45 minutes to read and 10 seconds of processor time to run.

# %%
import matplotlib.pyplot as plt
import numpy as np

import bbb_numpy as bbb
from bbb_numpy.numeric.elementary import LOG_2PI, sigmoid, softplus
from bbb_numpy.plots.style import BLACK, BLUE, GREEN, GREY, SKY, VERMILLION, plain_numbers

plt.rcParams.update({"figure.dpi": 150, "figure.constrained_layout.use": True, "font.size": 9})
rng = np.random.default_rng(3)
s_0, s_y = 1.5, 0.4  # standard deviations of prior and noise
x = rng.standard_normal((6, 3))
y = x @ np.array([[1.0], [-0.5], [0.3]]) + 0.2 + s_y * rng.standard_normal((6, 1))
phi = np.column_stack([x, np.ones(6)])  # (B, P)
model = bbb.Model(bbb.MLP((3, 1)), bbb.GaussianPrior(s_0), bbb.GaussianLikelihood(s_y))
theta = np.concatenate([rng.standard_normal(4), rng.uniform(-1.5, 0.5, 4)])  # mu, rho
ESTIMATORS = {
    "reparameterised": bbb.Reparameterised,
    "closed-form KL": bbb.ClosedFormKL,
    "sticking the landing": bbb.StickingTheLanding,
    "local reparam.": bbb.LocalReparameterisation,
    "Flipout": bbb.Flipout,
}
fig, ax = plt.subplots(figsize=(7, 2.8))
for row, kind in enumerate(ESTIMATORS.values()):
    one, dice = kind(model), np.random.default_rng(1)
    noises = (one.draw(dice, 2, rows=6) for _ in range(2000))
    found = np.array([one.value_and_grad(theta, noise, x, y)[1][4] for noise in noises])
    ax.plot(found, row + np.linspace(-0.3, 0.3, 2000), ".", color=BLUE, ms=0.8)
    ax.plot(found.mean(), row, "D", color=VERMILLION, mec=BLACK)
ax.set_yticks(range(5), ESTIMATORS)
ax.set(
    xlabel="estimates (dots) and their mean (diamond) of the gradient for the first rho",
    xlim=(-70, 100),
)
ax.invert_yaxis()
plt.show()

# %% [markdown]
# *Five rows of dots, one for each estimator, about the same mean. That of local reparameterisation
# is the narrowest.*
#
# Each is derived here in a few lines and **checked in the cell where it is coded**. Section 8
# measures where each of them helps and where it hurts. The notebook takes half an hour to read, and
# needs [01](01_from_one_weight_to_the_network.ipynb). Tags such as D20 are entries of the
# derivations, most of them of [Estimators](../derivations/estimators.md). Free energies are in
# nats.
#
# ## 1. The setting
#
# One linear layer, $\hat y = \Phi w$ with $\Phi = [x, 1]$: six rows, three inputs and a bias, four
# weights. Noise and prior are Gaussian, $q$ is mean field, $w = \mu + \sigma\epsilon$, $\sigma =
# \log(1 + e^\rho)$. The report differentiates one sampled free energy
# ([R3](../derivations/estimators.md#r3-the-same-as-a-mean-over-samples)) through the samples
# ([W3](../derivations/estimators.md#w3-the-gradient-identity)). With $g_w = \partial(-\log
# P(D|w))/\partial w$ and $d_w = w/\sigma_0^2 + g_w$,
#
# $$\hat\nabla_\mu = d_w \;(\text{K21}), \qquad
# \hat\nabla_\rho = \Big[d_w\,\epsilon - \frac1\sigma\Big]\,\mathrm{sig}(\rho) \;(\text{K30}).$$


# %%
def verify(name, value_and_grad, theta):
    """Check a gradient by complex step and by central differences; stop if one fails."""
    for method in ("complex", "central"):
        report = bbb.check(value_and_grad, theta, method=method)
        print(f"{name}: {method} error {report.error:.0e}, bar {report.tolerance:.0e}")
        assert report.passed, str(report)


def same(name, ours, library):
    """Compare value and gradient with the library's."""
    pairs = zip(ours, library[: len(ours)], strict=True)
    gap = max(np.abs(a - b).max() / np.abs(b).max() for a, b in pairs)
    print(f"{name}: the library's own, to {gap:.0e}")
    assert gap < 1e-12


eps = rng.standard_normal((2, 4))  # (S, P): two weight samples


def nll_and_slope(z):
    """Return -log P(D|outputs z) (S,) and its slope for z (S, B)."""
    residual = z - y[:, 0]
    rowwise = 0.5 * (residual / s_y) ** 2 + np.log(s_y) + 0.5 * LOG_2PI
    return rowwise.sum(axis=1), residual / s_y**2


def log_prior(w):
    return np.sum(-0.5 * (w / s_0) ** 2 - np.log(s_0) - 0.5 * LOG_2PI, axis=1)


def log_q(w, mu, sigma):
    return np.sum(-0.5 * ((w - mu) / sigma) ** 2 - np.log(sigma) - 0.5 * LOG_2PI, axis=1)


def split(theta):
    """Return mu, sigma = softplus(rho) and its slope sig(rho)."""
    mu, rho = theta[:4], theta[4:]
    return mu, softplus(rho), sigmoid(rho)


def reparameterised(theta, eps):
    mu, sigma, slope = split(theta)
    w = mu + sigma * eps  # (S, P)
    nll, d_z = nll_and_slope(w @ phi.T)
    d_w = w / s_0**2 + d_z @ phi
    grad = np.concatenate([d_w.mean(axis=0), ((d_w * eps - 1 / sigma) * slope).mean(axis=0)])
    return np.mean(log_q(w, mu, sigma) - log_prior(w) + nll), grad


verify("K21, K30", lambda t: reparameterised(t, eps), theta)
library = bbb.Reparameterised(model).value_and_grad(theta, eps, x, y)
same("reparameterised", reparameterised(theta, eps), library)

# %% [markdown]
# ## 2. Antithetic noise
#
# Use $\epsilon$ and $-\epsilon$ together
# ([D23](../derivations/estimators.md#d23-antithetic-noise)). The mean of the pair is the even part
# $h_+$ of any component $h$, $h_\pm(\epsilon) = \frac12[h(\epsilon) \pm h(-\epsilon)]$. Two
# independent samples have the variance $\frac12(\mathrm{Var}\,h_+ + \mathrm{Var}\,h_-)$. The pair
# is better where $h$ is mostly odd, and at worst doubles the variance. Here $d_w$ is linear in
# $\epsilon$: for $\mu$ nothing is left.

# %%
draws = rng.standard_normal((4000, 2, 4))
independent = np.array([reparameterised(theta, e)[1] for e in draws])
pairs = np.array([reparameterised(theta, np.stack([e[0], -e[0]]))[1] for e in draws])
ratio = pairs.var(axis=0) / independent.var(axis=0)
print("variance of the pair over that of two independent samples, at a random theta")
print("mu: ", *(f"{r:.0e}" if r > 1e-20 else "0" for r in ratio[:4]))
print("rho:", *(f"{r:.2f}" for r in ratio[4:]))
assert ratio[:4].max() < 1e-20

# %% [markdown]
# For $\rho_j$, with the posterior's precision $\Lambda$ and mean $m$, up to
# $\mathrm{sig}(\rho_j)^2$,
#
# $$\mathrm{Var}\,h_- = (\Lambda (\mu - m))_j^2, \qquad
# \mathrm{Var}\,h_+ = \sum_k \Lambda_{jk}^2\sigma_k^2 + \Lambda_{jj}^2\sigma_j^2 .$$
#
# The ratio is 2 at $\mu = m$, and falls to 0 far from there. Three nodes of Gauss and Hermite in
# each direction are exact for these polynomials of degree 4:

# %%
precision = phi.T @ phi / s_y**2 + np.eye(4) / s_0**2
best = np.linalg.solve(precision, phi.T @ y[:, 0] / s_y**2)  # m
even = (precision * split(theta)[1]) ** 2
even = even.sum(axis=1) + np.diag(even)

nodes, weights = np.polynomial.hermite_e.hermegauss(3)
grid = np.stack(np.meshgrid(*[nodes] * 4), axis=-1).reshape(-1, 4)  # backwards it is -grid
mass = np.stack(np.meshgrid(*[weights] * 4), axis=-1).reshape(-1, 4).prod(axis=1)
mass /= mass.sum()


def exact_ratio(theta):
    """Return the pair's variance over that of two independent samples, of every rho."""
    one = np.array([reparameterised(theta, e[None])[1][4:] for e in grid])
    spread = [mass @ g**2 - (mass @ g) ** 2 for g in (one, (one + one[::-1]) / 2)]
    return spread[1] / (spread[0] / 2)


print("(mu - m) / (that above)   variance of the pair over independent, rho")
found = []
for far in (0.0, 0.1, 0.3, 1.0, 3.0):
    delta = far * (theta[:4] - best)
    found.append(exact_ratio(np.concatenate([best + delta, theta[4:]])))
    odd = (precision @ delta) ** 2
    assert np.allclose(found[-1], 2 * even / (even + odd), rtol=1e-9)
    print(f"{far:16.1f}          ", *(f"{r:.2f}" for r in found[-1]))
assert np.allclose(found[0], 2, rtol=1e-9)
assert np.all(np.diff(found, axis=0) < 0)
assert np.all(np.abs(ratio[4:] / found[3] - 1) < 0.2)  # what was measured above

# %% [markdown]
# ## 3. The KL divergence in closed form
#
# For Gaussian prior and $q$ only the likelihood needs samples
# ([R2](../derivations/estimators.md#r2-the-same-as-three-expectations),
# [D18](../derivations/estimators.md#d18-the-complexity-cost-in-closed-form-mean-field)):
#
# $$F = \sum_j \Big[\log\frac{\sigma_0}{\sigma_j} + \frac{\mu_j^2 + \sigma_j^2}{2\sigma_0^2}
#   - \frac12\Big] + E_q[-\log P(D|w)],$$
#
# $$\hat\nabla_\mu = \frac{\mu}{\sigma_0^2} + g_w, \qquad
# \hat\nabla_\rho = \Big[\frac{\sigma}{\sigma_0^2} - \frac1\sigma + g_w\,\epsilon\Big]\,
# \mathrm{sig}(\rho).$$


# %%
def kl_and_grad(theta):
    mu, sigma, slope = split(theta)
    kl = np.sum(np.log(s_0 / sigma) + (mu**2 + sigma**2) / (2 * s_0**2) - 0.5)
    return kl, np.concatenate([mu / s_0**2, (sigma / s_0**2 - 1 / sigma) * slope])


def closed_form_kl(theta, eps):
    mu, sigma, slope = split(theta)
    nll, d_z = nll_and_slope((mu + sigma * eps) @ phi.T)
    g_w = d_z @ phi
    kl, grad = kl_and_grad(theta)
    grad = grad + np.concatenate([g_w.mean(axis=0), (g_w * eps * slope).mean(axis=0)])
    return kl + np.mean(nll), grad


verify("D18", lambda t: closed_form_kl(t, eps), theta)
library = bbb.ClosedFormKL(model).value_and_grad(theta, eps, x, y)
same("closed-form KL", closed_form_kl(theta, eps), library)

# %% [markdown]
# ## 4. Sticking the landing
#
# The gradient of $\log q(w|\theta)$ has a part through $w$, and a direct part, the *score*
# ([W4](../derivations/estimators.md#w4-the-split-form-for-mu),
# [W5](../derivations/estimators.md#w5-the-split-form-for-rho)). The score has mean zero:
# $E_q[\partial\log q/\partial\theta] = \partial\,(\int q)/\partial \theta = 0$. Leave it out
# ([D20](../derivations/estimators.md#d20-sticking-the-landing)):
#
# $$\tilde d_w = d_w + \frac{\partial\log q}{\partial w} = d_w - \frac\epsilon\sigma, \qquad
# \hat\nabla_\mu = \tilde d_w, \qquad \hat\nabla_\rho = \tilde d_w\,\epsilon\,\mathrm{sig}(\rho).$$
#
# $\tilde d_w$ is the slope of $\log q(w) - \log P(w, D)$. Where $q$ is the posterior that is
# constant, and **every sample gives the gradient 0**. It is not the gradient of the sampled $F$,
# but of a surrogate, with the parameters inside $\log q$ frozen. The check differentiates the
# surrogate.


# %%
def sticking_the_landing(theta, eps, frozen=None):
    mu, sigma, slope = split(theta)
    _, *fixed = (0, *split(theta if frozen is None else frozen)[:2])
    w = mu + sigma * eps
    nll, d_z = nll_and_slope(w @ phi.T)
    d_w = w / s_0**2 + d_z @ phi - eps / sigma
    grad = np.concatenate([d_w.mean(axis=0), (d_w * eps * slope).mean(axis=0)])
    return np.mean(log_q(w, *fixed) - log_prior(w) + nll), grad


verify("D20", lambda t: sticking_the_landing(t, eps, theta), theta)
library = bbb.StickingTheLanding(model).value_and_grad(theta, eps, x, y)
same("sticking the landing", sticking_the_landing(theta, eps), library)
report = bbb.check(
    lambda t: sticking_the_landing(t, eps), theta
)  # nothing frozen: another function
print(f"against the sampled free energy itself: error {report.error:.2f}, caught")
assert not report.passed

# %% [markdown]
# ## 5. Local reparameterisation
#
# An output of a layer is Gaussian. Draw *it*, one number $\zeta$ for each row, instead of weights
# that all rows share ([D21](../derivations/estimators.md#d21-local-reparameterisation)). With
# $\delta = \partial\,\mathrm{NLL}/\partial z$ and $\delta_v = \delta\,\zeta / (2\sqrt v)$
#
# $$z = \Phi\mu + \sqrt v\,\zeta, \qquad v = \Phi^2\sigma^2, \qquad
# \nabla_\mu = \Phi^\top \delta, \qquad
# \nabla_\rho = [(\Phi^2)^\top \delta_v]\,2\sigma\,\mathrm{sig}(\rho).$$
#
# With shared weights the $B$ terms of the likelihood have $B(B-1)$ covariances; here these are 0.
# No $w$ exists, so the KL divergence has to be in closed form.


# %%
def local_reparameterisation(theta, zeta):
    mu, sigma, slope = split(theta)
    root = np.sqrt(phi**2 @ sigma**2)  # (B,)
    nll, g = nll_and_slope(phi @ mu + root * zeta)  # g (S, B)
    h = g * zeta / (2 * root)
    kl, grad = kl_and_grad(theta)
    d_rho = (h @ phi**2) * 2 * sigma * slope
    grad = grad + np.concatenate([(g @ phi).mean(axis=0), d_rho.mean(axis=0)])
    return kl + np.mean(nll), grad


zeta = rng.standard_normal((2, 6))  # (S, B)
verify("D21", lambda t: local_reparameterisation(t, zeta), theta)
library = bbb.LocalReparameterisation(model).value_and_grad(theta, zeta, x, y)
same("local reparameterisation", local_reparameterisation(theta, zeta), library)

# %% [markdown]
# ## 6. Flipout
#
# One perturbation $\Delta = \sigma\epsilon$ for all rows, with random signs for each
# ([D22](../derivations/estimators.md#d22-flipout)): $w^{(b)} = \mu + R^{in}_b\,R^{out}_b\,\Delta$.
# Each $w^{(b)}$ has the distribution $q$, and two rows are uncorrelated. The signs move from the
# weights to inputs and outputs:
#
# $$z = \Phi\mu + ((\Phi \circ R^{in})\,\Delta) \circ R^{out}, \qquad \nabla_\mu = \Phi^\top \delta,
# \qquad \nabla_\rho = [(\Phi \circ R^{in})^\top (\delta \circ R^{out})]\,\epsilon\,
# \mathrm{sig}(\rho).$$


# %%
def flipout(theta, eps, signs):
    """`signs` (S, B, P) are the products R_in R_out; the last column is R_bias."""
    mu, sigma, slope = split(theta)
    flipped = phi * signs  # (S, B, P)
    z = phi @ mu + np.einsum("sbp,sp->sb", flipped, sigma * eps)
    nll, g = nll_and_slope(z)
    kl, grad = kl_and_grad(theta)
    d_rho = np.einsum("sbp,sb->sp", flipped, g) * eps * slope
    grad = grad + np.concatenate([(g @ phi).mean(axis=0), d_rho.mean(axis=0)])
    return kl + np.mean(nll), grad


estimator = bbb.Flipout(model)
noise = estimator.draw(rng, 2, rows=6)  # (S, P + B (inputs + 2 outputs))
flips = noise[:, 4:]
r, c, t = flips[:, :18].reshape(2, 6, 3), flips[:, 18:24, None], flips[:, 24:, None]
signs = np.concatenate([r * c, t], axis=2)
verify("D22", lambda theta: flipout(theta, noise[:, :4], signs), theta)
library = estimator.value_and_grad(theta, noise, x, y)
same("Flipout", flipout(theta, noise[:, :4], signs), library)

# %% [markdown]
# ## 7. The doubly reparameterised gradient of IWAE
#
# With $\log\omega_s = \log P(w_s, D) - \log q(w_s)$ the gradient of $-\log\frac1k\sum_s \omega_s$
# weighs the samples by $\hat\omega_s = \omega_s/\sum_t\omega_t$. These depend on $w_s$, and the
# score cannot be dropped. But it can be traded for a slope, $E_q[h\,\partial\log q/\partial\theta]
# = E_\epsilon[(\partial h/\partial w)(\partial w/\partial \theta)]$. That leaves
# ([D26](../derivations/bounds.md#d26-the-doubly-reparameterised-gradient))
#
# $$\nabla J = -E\sum_s \hat\omega_s^2\,\frac{\partial\log\omega_s}{\partial w_s}
#   \frac{\partial w_s}{\partial\theta}, \qquad
# -\frac{\partial\log\omega_s}{\partial w_s} = d_{w_s} - \frac{\epsilon_s}{\sigma}.$$


# %%
def doubly_reparameterised(theta, eps, frozen=None):
    mu, sigma, slope = split(theta)
    fixed = theta if frozen is None else frozen
    mu_0, sigma_0, _ = split(fixed)

    def log_omega(w):
        nll, d_z = nll_and_slope(w @ phi.T)
        return log_prior(w) - nll - log_q(w, mu_0, sigma_0), d_z

    there, d_z = log_omega(mu_0 + sigma_0 * eps)  # frozen, as are the shares
    share = np.exp(there - there.max())
    share = share / share.sum()
    w = mu + sigma * eps
    here, d_z = log_omega(w)
    d_w = share[:, None] ** 2 * (w / s_0**2 + d_z @ phi - eps / sigma)
    return -(share**2) @ here, np.concatenate([d_w.sum(axis=0), (d_w * eps * slope).sum(axis=0)])


verify("D26", lambda t: doubly_reparameterised(t, eps, theta), theta)
library = bbb.DoublyReparameterised(model, objective=bbb.Renyi(0.0)).value_and_grad(
    theta, eps, x, y
)
ours = doubly_reparameterised(theta, eps)[1]
same("doubly reparameterised, gradient", [ours], [library.grad])

# %% [markdown]
# ## 8. Measured
#
# Variances, summed over all $\mu$ or all $\rho$, relative to the reparameterised estimator, with
# two weight samples (marked ±: one antithetic pair):
#
# - a network 13-20-1 with 32 of its 128 rows, at the start of training, half way, and at the end;
# - linear regression with correlated inputs at its mean-field optimum
#   ([D28](../derivations/bounds.md#d28-where-the-objectives-lead-exactly)), and at its full-rank
#   optimum, where $q$ is the posterior.
#
# Leaving out one of 20 batches after the other gives the standard error of a ratio (the jackknife).

# %%
from bbb_numpy.training import start

PAIRED = ("reparameterised", "closed-form KL", "sticking the landing")
ROWWISE = ("local reparam.", "Flipout")  # they need independent weights


def gradients(estimator, place, samples, steps):
    """Return one gradient per row (steps, ...) at a place (theta, rows, targets, KL weight)."""
    theta, rows, targets, pi = place
    rng = np.random.default_rng(1)
    noises = (estimator.draw(rng, samples, rows=len(rows)) for _ in range(steps))
    return np.array(
        [estimator.value_and_grad(theta, noise, rows, targets, pi)[1] for noise in noises]
    )


def ratio(own, reference, batches=20):
    """Return the ratio of the summed variances and its standard error."""
    squares = [
        np.array([part.sum() for part in np.array_split((g - g.mean(axis=0)) ** 2, batches)])
        for g in (own, reference)
    ]
    left_out = np.divide(*(one.sum() - one for one in squares))
    error = np.sqrt((batches - 1) * np.mean((left_out - left_out.mean()) ** 2))
    return squares[0].sum() / squares[1].sum(), error


def measure(model, q, place, steps=300):
    """Return {estimator: (ratio for mu, ratio for rho or the factor)}, each with its error."""
    drawn = {}
    for name, kind in ESTIMATORS.items():
        if isinstance(q, bbb.FullRank) and name in ROWWISE:
            continue
        drawn[name] = gradients(kind(model, q), place, 2, steps)
        if name in PAIRED:
            drawn[name + " ±"] = gradients(kind(model, q, antithetic=True), place, 2, steps)
    cut, reference = model.layout.size, drawn["reparameterised"]
    return {
        name: (ratio(g[:, :cut], reference[:, :cut]), ratio(g[:, cut:], reference[:, cut:]))
        for name, g in drawn.items()
    }


# %%
rng = np.random.default_rng(0)
inputs = rng.standard_normal((128, 13))
curve = np.sin(inputs @ rng.standard_normal((13, 2)) * 0.5).sum(axis=1, keepdims=True)
targets = curve + 0.3 * rng.standard_normal((128, 1))
network = bbb.Model(bbb.MLP((13, 20, 1)), bbb.GaussianPrior(0.5), bbb.GaussianLikelihood(0.3))
estimator = bbb.Reparameterised(network)
state = start(estimator, rng, bbb.Adam(5e-3))
thetas = {"network, start": state.theta}
for name, adam in (
    ("network, half way", bbb.Adam(5e-3)),
    ("network, end", bbb.Adam(5e-3, schedule=bbb.Cosine())),
):
    recipe = bbb.Recipe(optimizer=adam, epochs=500, batch_size=32, samples=2)
    state = bbb.fit(estimator, state, inputs, targets, recipe, rng=rng)
    thetas[name] = state.theta
found = {
    name: measure(network, bbb.MeanField(), (at, inputs[:32], targets[:32], 32 / 128))
    for name, at in thetas.items()
}


def regression(correlation, seed=0):
    """Return model, rows, targets, and posterior precision and mean of 2 inputs and a bias."""
    rng = np.random.default_rng(seed)
    factor = np.linalg.cholesky([[1, correlation], [correlation, 1]])
    rows = 1 + rng.standard_normal((40, 2)) @ factor.T
    design = np.column_stack([rows, np.ones(40)])
    targets = design @ rng.standard_normal(3) + 0.3 * rng.standard_normal(40)
    model = bbb.Model(bbb.MLP((2, 1)), bbb.GaussianPrior(1.5), bbb.GaussianLikelihood(0.3))
    precision = design.T @ design / 0.3**2 + np.eye(3) / 1.5**2
    mean = np.linalg.solve(precision, design.T @ targets / 0.3**2)
    return model, rows, targets[:, None], precision, mean


linear, rows, responses, precision, mean = regression(0.8)
q, full = bbb.MeanField(), bbb.FullRank()
optimum = q.pack(mean, 1 / np.sqrt(np.diag(precision)))
found["linear, mean field"] = measure(linear, q, (optimum, rows, responses, 1.0), 1000)
optimum = full.pack(mean, np.linalg.inv(precision))
found["linear, full rank"] = measure(linear, full, (optimum, rows, responses, 1.0), 1000)

print(f"{'variance of mu / rho':24}" + "".join(f"{name:>20}" for name in found))
for name in found["network, end"]:
    line = f"{name:24}"
    for row in found.values():
        shown = [f"{one[0]:.2f}" if one[0] > 1e-20 else "0" for one in row.get(name, [])]
        line += f"{' / '.join(shown) or '-':>20}"
    print(line)

# %% [markdown]
# (`-`: these need independent weights.) What the pair does, place by place, and whether the numbers
# agree with Sections 2 and 4:

# %%
pair = {name: row["reparameterised ±"] for name, row in found.items()}
for name, ((mu, _), (rho, error)) in pair.items():
    verdict = "helps" if rho < 1 else "hurts"
    print(f"{name:18} the pair for mu {mu:.2f}, for rho {rho:.2f} +- {error:.2f}: {verdict} rho")
assert all(mu[0] < 0.6 for mu, _ in pair.values())
assert pair["network, start"][1][0] < 0.1
assert min(rho[0] for name, (_, rho) in pair.items() if name != "network, start") > 1
assert all(abs(pair[name][1][0] - 2) < 5 * pair[name][1][1] for name in list(pair)[3:])
landing = found["linear, full rank"]["sticking the landing"]
assert max(one[0] for one in landing) < 1e-20
end, at_start = found["network, end"], found["network, start"]
assert all(abs(one[0] - 1) < 0.15 for one in end["closed-form KL"])
assert at_start["sticking the landing"][1][0] > 10
assert min(end, key=lambda name: end[name][1][0]) == "local reparam."
assert max(end[name][0][0] for name in ROWWISE) < 0.7
assert end["Flipout"][1][0] > end["local reparam."][1][0]

# %%
LOOK = {"reparameterised": (BLUE, "o"), "closed-form KL": (SKY, "s"), "Flipout": (BLACK, "v")}
LOOK |= {"sticking the landing": (VERMILLION, "D"), "local reparam.": (GREEN, "^")}
fig, axes = plt.subplots(2, 5, figsize=(10, 5.2), sharey=True, sharex="col")
names = list(found["network, end"])[::-1]
for column, (place, row) in enumerate(found.items()):
    seen = [one[0] for both in row.values() for one in both if one[0] > 1e-20]
    edge = 0.6 * min(*seen, 0.1)
    for part, ax in enumerate(axes[:, column]):
        ax.axvline(1, color=GREY, linewidth=0.8, linestyle=":")
        for name, both in row.items():
            (value, error), (colour, marker) = both[part], LOOK[name.removesuffix(" ±")]
            face = "white" if name.endswith("±") else colour
            style = {"color": colour, "marker": marker, "markerfacecolor": face, "markersize": 5}
            if value > 1e-20:
                ax.errorbar(value, names.index(name), xerr=2 * error, capsize=2, **style)
            else:
                ax.text(edge, names.index(name), " 0", color=colour, va="center")
        ax.set(xscale="log", xlim=(0.6 * edge, 2.5 * max(seen)))
        ax.minorticks_off()
    axes[0, column].set_title(place)
    axes[1, column].set_xlabel("relative variance")
for ax, part in zip(axes[:, 0], ("$\\mu$", "$\\rho$ (or the factor)"), strict=True):
    ax.set_yticks(range(len(names)), names)
    ax.set_ylabel(part)
# alt: Variances of eight estimators relative to the reparameterised one, for mu above and for rho
# below, at five places. Open markers are antithetic pairs. Sticking the landing is far to the right
# at the start of the network's training and zero at the full-rank optimum; local reparameterisation
# is the leftmost for rho at the network's end.
plt.show()

# %% [markdown]
# Other objectives against the number of samples, relative to the size of the true gradient, on
# linear regression beside the optimum and with a $q$ wider than the posterior. The true gradient of
# the EUBO ([G4](../derivations/bounds.md#g4-the-gradient-of-the-upper-bound)) is $-(m -
# \mu)/\sigma^2$ for $\mu$ and
# $[1/\sigma - (v + (m - \mu)^2)/\sigma^3]\,\mathrm{sig}(\rho)$ for $\rho$, with
# the posterior's marginal mean $m$ and variance $v$. That of IWAE is the mean of the doubly
# reparameterised estimates.

# %%
linear, rows, responses, precision, mean = regression(0.3)
variance = np.diag(np.linalg.inv(precision))
sigma, gap = 1.5 * np.sqrt(variance), 0.5 * np.sqrt(variance)
beside = (q.pack(mean - gap, sigma), rows, responses, 1.0)
d_rho = (1 / sigma - (variance + gap**2) / sigma**3) * sigmoid(beside[0][3:])
slope = np.concatenate([-gap / sigma**2, d_rho])
bounds = {
    "IWAE, reparameterised": bbb.Reparameterised(linear, q, bbb.Renyi(0.0)),
    "IWAE, doubly reparameterised": bbb.DoublyReparameterised(linear, q, bbb.Renyi(0.0)),
    "EUBO": bbb.SelfNormalised(linear, q, bbb.EUBO()),
}
COUNTS, STEPS = (1, 3, 10, 30, 100), 800
deviations, bias = {name: [] for name in bounds}, []
print("samples    IWAE, reparam.   doubly      EUBO    bias of EUBO")
for count in COUNTS:
    drawn = {name: gradients(one, beside, count, STEPS) for name, one in bounds.items()}
    iwae = drawn["IWAE, doubly reparameterised"].mean(axis=0)
    for name, g in drawn.items():
        size = np.linalg.norm(slope if name == "EUBO" else iwae)
        deviations[name].append(np.sqrt(g.var(axis=0).sum()) / size)
    off = np.linalg.norm(drawn["EUBO"].mean(axis=0) - slope) / np.linalg.norm(slope)
    bias.append((off, deviations["EUBO"][-1] / np.sqrt(STEPS)))
    now = [values[-1] for values in deviations.values()]
    print(f"{count:7d}{now[0]:16.1f}{now[1]:10.1f}{now[2]:10.2f}{off:10.3f} +- {bias[-1][1]:.3f}")
plain, doubly, eubo = deviations.values()
assert plain[-1] > plain[0]
assert doubly[-1] < 0.1 * plain[-1]
assert abs(bias[0][0] - 1) < 4 * bias[0][1]  # with one sample all of the gradient
assert bias[-1][0] < 4 * bias[-1][1]
assert 0.5 < (eubo[-1] / eubo[-2]) * np.sqrt(COUNTS[-1] / COUNTS[-2]) < 2

# %%
from matplotlib.ticker import NullLocator

fig, (left, right) = plt.subplots(1, 2, figsize=(8.6, 3.4))
for name, (colour, style) in zip(
    bounds, ((BLUE, "o-"), (VERMILLION, "s--"), (BLACK, "o-")), strict=True
):
    ax = right if name == "EUBO" else left
    label = "standard deviation" if name == "EUBO" else name.removeprefix("IWAE, ")
    ax.loglog(COUNTS, deviations[name], style, color=colour, label=label)
right.errorbar(
    COUNTS, *np.transpose(bias), color=GREY, marker="s", linestyle="--", capsize=2, label="bias"
)
for ax, name in ((left, "IWAE"), (right, "EUBO, score form")):
    ax.set(xlabel="weight samples per step", title=name)
    ax.set_xticks(COUNTS, COUNTS)
    ax.xaxis.set_minor_locator(NullLocator())
    plain_numbers(ax.yaxis, minor="25")
    ax.legend(frameon=False)
left.set_ylabel("relative to |true gradient|")
# alt: Noise against weight samples. Left, IWAE: the standard deviation of the reparameterised
# gradient rises throughout; the other one's rises, then falls. Right, EUBO: standard deviation and
# bias fall.
plt.show()

# %% [markdown]
# ## 9. Why this order
#
# - **Antithetic pairs take away what is odd in $\epsilon$**, and pay twice for what is even. For
#   $\mu$ the gradient is odd to first order: half of the variance is left on the network, nothing
#   on linear regression. For $\rho$ the *slope* of the loss times $\epsilon$ is odd, its curvature
#   times $\epsilon^2$ even. **Where the slope is large, at the start, the pair helps $\rho$; near
#   the optimum it hurts.**
# - **The KL divergence in closed form gains next to nothing:** the noise of the prior's terms is
#   small.
# - **Sticking the landing is noiseless where $q$ is the posterior**, and terrible at the start,
#   where $\epsilon/\sigma$ is large and nothing cancels it. The pair cancels it again for $\mu$,
#   where it is odd, but not for $\rho$.
# - **Local reparameterisation is the quietest for $\rho$ on the trained network:** rows do not
#   share noise. For $\mu$ it halves the variance. **Flipout** does that as well, but gains less for
#   $\rho$: its rows share $|\epsilon|$.
# - **Time** is not in these numbers. `bbb-numpy reproduce estimator-variance` measures it, too.
# - **IWAE** needs the doubly reparameterised gradient. The signal of the plain one shrinks faster
#   than its noise.
# - **The EUBO's** gradient with one sample is noise around 0. With several the bias is soon below
#   what is resolved here; but only where several of them share the weights, which for a whole
#   network they do not: see [04](04_bounds_around_the_evidence.ipynb).
#
# ## 10. Exercises
#
# 1. In Section 2, what is the antithetic ratio of $\rho$ if the likelihood is left out, so that $F$
#    is the KL divergence alone? Derive it, then measure.
# 2. Write an estimator that is the mean of `reparameterised` and `sticking_the_landing`. What is
#    its variance at the full-rank optimum, and which weight of the two is best at the network's
#    start?
# 3. Give every row of Flipout the *same* signs. Is it still unbiased? Which variance comes back?
# 4. Measure with one weight sample per step instead of two. Which columns change, and why not all?
# 5. Derive the KL divergence of a Gaussian $q$ to a Laplace prior
#    ([D16](../derivations/priors.md#d16-the-laplace-prior)): the mean of $|w|$ has a closed form.
#    Does knowing it gain more than it does for the Gaussian prior?
# 6. Let the samples of the EUBO's gradient move with $q$
#    ([G5](../derivations/bounds.md#g5-the-reparameterised-gradient)). What is its standard
#    deviation where $q$ is the posterior? And elsewhere, if $P(w, D)$ is multiplied by $e^{100}$?
#
# <details><summary>Hints</summary>
#
# 1. The formulas of Section 2 hold with $\Lambda = I/\sigma_0^2$ and $m = 0$. The ratio is
#    $4\sigma_j^2 / (2\sigma_j^2 + \mu_j^2)$.
# 2. At the full-rank optimum one of the two is 0, so that the mean is half of the other. For the
#    best weight $a$ minimise the variance of $g + a\,(\tilde g - g)$: it is a parabola in $a$.
# 3. Each row still has weights from $q$, and a sum over rows needs no more than that. But now all
#    rows have *the same* weights.
# 4. The numbers are ratios. For estimators that average independent samples, numerator and
#    denominator are doubled alike. A pair is no such average.
# 5. $E_q|w|$ is step 4 of [D16](../derivations/priors.md#d16-the-laplace-prior), and the entropy is
#    in D18. The complexity cost is
#    $\sum_j [\log 2b + E_q|w_j|/b - \log\sigma_j - \frac12(1 + \log 2\pi)]$. How large is the noise
#    that it removes beside that of the likelihood?
# 6. At the posterior $\log\omega$ is the same for all $w$, so that the bracket of G5 is 0 for every
#    sample. Elsewhere 100 is added to the factor before the bracket, which is right on average and
#    a hundred times the noise. The score form does not change: its weights are normalised.
#
# </details>
#
# **Where to read on.** The next notebook, [04](04_bounds_around_the_evidence.ipynb), compares the
# objectives themselves. The proofs are in the chapter on
# [estimators](../derivations/estimators.md).
