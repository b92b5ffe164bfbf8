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
# # From one weight to the network
#
# Bayes by Backprop learns a distribution over every weight of a network by gradient descent.
# This notebook derives its gradients for one weight, then for many, then for a network with a
# hidden layer, and ends at the library's own `value_and_grad`. **Every gradient that is derived
# is checked in the cell where it is coded**, against its own value, in two ways:
#
# - the *complex step*, $\mathrm{Im}\,f(\theta + ih)/h$ with $h = 10^{-30}$: nothing is
#   subtracted, so nothing cancels, and the error must be at rounding level ($\le 10^{-12}$);
# - *central differences* of fourth order, which ask nothing of $f$ ($\le 10^{-6}$).
#
# The error of one derivative, $g$ by hand and $n$ measured, is
# $|g - n| / \max(|g|, |n|, 10^{-3}\max|n|)$, the last maximum over all derivatives. Tags such as
# K30 are the equation numbers of Kebude's *Bayes by Backprop Report* (2018);
# [derivations.md](../derivations.md) has all of them. Free energies are in nats, all constants
# kept.

# %%
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Ellipse

import bbb_numpy as bbb
from bbb_numpy.training import Recipe
from bbb_numpy import data as datasets
from bbb_numpy import gradcheck, training
from bbb_numpy.evaluation import predictive
from bbb_numpy.model import objectives
from bbb_numpy.numeric.elementary import LOG_2PI, sigmoid, softplus
from bbb_numpy.parts import network
from bbb_numpy.plots import fits as plots

BLUE, ORANGE, GREEN, BLACK = "#0072B2", "#E69F00", "#009E73", "#000000"  # Okabe and Ito
SKY, VERMILLION, GREY = "#56B4E9", "#D55E00", "#666666"
plt.rcParams.update({"figure.dpi": 100, "figure.constrained_layout.use": True})


def verify(name, value_and_grad, theta, **options):
    """Check a gradient in both ways, print the largest errors, stop if one is too large."""
    for method in ("complex", "central"):
        report = gradcheck.check(value_and_grad, theta, method=method, **options)
        print(f"{name}: {method} error {report.error:.0e}, bar {report.bar:.0e}")
        assert report.passed, str(report)
        assert report.skipped <= 0.02, "too many coordinates skipped at kinks"


# %% [markdown]
# ## 1. One weight: why a distribution
#
# A spring is stretched by $x_i$ (cm) and pulls with the force $y_i$ (N):
#
# $$y_i = w\,x_i + \text{noise}, \qquad \text{noise} \sim N(0, \sigma_y^2), \qquad
# w \sim N(0, \sigma_0^2).$$
#
# The stiffness $w$ (N/cm) is our only weight. The noise deviation $\sigma_y$ is known and
# $\sigma_0$ is the deviation of the prior (the report's $\sigma_{data}$). Bayes' rule multiplies
# two Gaussians in $w$, so the posterior is a Gaussian, with precision $\Lambda$ and mean $m$:
#
# $$P(w|D) = \frac{P(w)\,P(D|w)}{P(D)} = N(w;\, m,\, \Lambda^{-1}), \qquad
# \Lambda = \frac{1}{\sigma_0^2} + \frac{\sum_i x_i^2}{\sigma_y^2}, \qquad
# m = \frac{1}{\Lambda}\,\frac{\sum_i x_i y_i}{\sigma_y^2}.$$
#
# The evidence $P(D) = \int P(w)\,P(D|w)\,dw$ is a Gaussian density of $y$ with covariance
# $\sigma_y^2 I + \sigma_0^2\, x x^T$. A grid in $w$ confirms all three.

# %%
rng = np.random.default_rng(2018)
s_0, s_y = 0.5, 1.0  # N/cm, N
x = rng.uniform(0.5, 3.0, 8)  # cm
y = 1.0 * x + s_y * rng.standard_normal(8)  # N; the true stiffness is 1 N/cm

precision = 1 / s_0**2 + x @ x / s_y**2
m, s = (x @ y) / s_y**2 / precision, precision**-0.5


def log_normal(y, covariance):
    """Return log N(y; 0, covariance)."""
    log_det = np.linalg.slogdet(covariance)[1]
    return -0.5 * (y @ np.linalg.solve(covariance, y) + log_det + len(y) * LOG_2PI)


def normal(z, mean, deviation):
    return np.exp(-0.5 * ((z - mean) / deviation) ** 2) / (deviation * np.sqrt(2 * np.pi))


log_evidence = log_normal(y, s_y**2 * np.eye(8) + s_0**2 * np.outer(x, x))

w = np.linspace(-3, 4, 20_001)
likelihood = np.prod([normal(y_i, w * x_i, s_y) for x_i, y_i in zip(x, y, strict=True)], axis=0)
joint = normal(w, 0, s_0) * likelihood
evidence = np.trapezoid(joint, w)
grid_mean = np.trapezoid(w * joint, w) / evidence
grid_deviation = np.sqrt(np.trapezoid((w - grid_mean) ** 2 * joint, w) / evidence)
assert np.allclose([grid_mean, grid_deviation], [m, s], rtol=1e-9)
assert np.isclose(np.log(evidence), log_evidence, rtol=1e-9)
print(f"posterior: mean {m:.4f}, deviation {s:.4f} N/cm; log evidence {log_evidence:.4f} nats")

# %%
fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4))
line = np.linspace(0, 4, 50)
left.fill_between(line, (m - 2 * s) * line, (m + 2 * s) * line, color=SKY, alpha=0.5, lw=0)
left.plot(line, m * line, color=BLUE, label="w x: posterior mean, ±2 deviations")
left.plot(x, y, "o", color=BLACK, label="data")
left.set(xlabel="extension x (cm)", ylabel="force y (N)", xlim=(0, 4))
left.legend(frameon=False, loc="upper left")
scaled = likelihood / np.trapezoid(likelihood, w)
right.plot(w, normal(w, 0, s_0), color=ORANGE, ls=":", lw=2, label="prior")
right.plot(w, scaled, color=GREEN, ls="--", label="likelihood (scaled)")
right.plot(w, normal(w, m, s), color=BLUE, label="posterior")
right.set(xlabel="stiffness w (N/cm)", ylabel="density (cm/N)", xlim=(-1.5, 2), ylim=(0, 3))
right.legend(frameon=False, loc="upper left")
plt.show()

# %% [markdown]
# Eight noisy points do not fix one stiffness: a whole range of lines fits. A single best $w$
# hides that. The posterior keeps it and hands it on to predictions: the deviation of $w x$ is
# $|x|\,\Lambda^{-1/2}$, zero at $x = 0$ and growing with $|x|$.

# %% [markdown]
# ## 2. The variational free energy
#
# For a network the integral $P(D)$ is out of reach. Instead choose a family, here
# $q(w) = N(w; \mu, \sigma^2)$, and minimise
#
# $$F(\mu, \sigma) = \mathrm{KL}(q\,\|\,P(w)) + E_q[-\log P(D|w)]
#   = \mathrm{KL}(q\,\|\,P(w|D)) - \log P(D).$$
#
# The two forms are equal because $P(w)\,P(D|w) = P(w|D)\,P(D)$. The first can be computed; the
# second says why to minimise it. A KL divergence is never negative, so $F \ge -\log P(D)$, and $F$
# is least where $q$ is the posterior. For one weight both parts of $F$ are elementary:
#
# $$\mathrm{KL} = \log\frac{\sigma_0}{\sigma} + \frac{\mu^2 + \sigma^2}{2\sigma_0^2}
#   - \frac12, \qquad
# E_q[-\log P(D|w)] = \frac N2 \log 2\pi\sigma_y^2
#   + \sum_i \frac{(y_i - \mu x_i)^2 + \sigma^2 x_i^2}{2\sigma_y^2}.$$
#
# Differentiate both, and collect the terms with $\Lambda$ and $m$ of Section 1:
#
# $$\frac{\partial F}{\partial\mu} = \Lambda\,(\mu - m), \qquad
# \frac{\partial F}{\partial\sigma} = \Lambda\,\sigma - \frac1\sigma .$$
#
# Both vanish at $\mu = m$, $\sigma = \Lambda^{-1/2}$: the exact posterior.


# %%
def kl_to(mean, deviation, mu, sigma):
    """KL(N(mu, sigma^2) || N(mean, deviation^2)) in nats."""
    squares = (sigma**2 + (mu - mean) ** 2) / (2 * deviation**2)
    return np.log(deviation / sigma) + squares - 0.5


def exact_free_energy(mu, sigma):
    squares = y @ y - 2 * mu * (x @ y) + (mu**2 + sigma**2) * (x @ x)
    expected_nll = 0.5 * len(x) * (LOG_2PI + 2 * np.log(s_y)) + squares / (2 * s_y**2)
    return kl_to(0, s_0, mu, sigma) + expected_nll


def exact_value_and_grad(theta):
    mu, sigma = theta
    grad = np.array([precision * (mu - m), precision * sigma - 1 / sigma])
    return exact_free_energy(mu, sigma), grad


verify("F(mu, sigma)", exact_value_and_grad, np.array([0.3, 0.4]))
grid_mu, grid_sigma = np.meshgrid(np.linspace(0.1, 2.1, 201), np.linspace(0.05, 0.75, 141))
F = exact_free_energy(grid_mu, grid_sigma)
difference = F + log_evidence - kl_to(m, s, grid_mu, grid_sigma)
print(f"largest |F - [KL(q || posterior) - log P(D)]|: {np.abs(difference).max():.0e} nats")
assert np.abs(difference).max() < 1e-11
print(f"F(m, s) = {exact_free_energy(m, s):.4f}, -log P(D) = {-log_evidence:.4f} nats")
assert np.isclose(exact_free_energy(m, s), -log_evidence, rtol=1e-13)


# %%
def draw_free_energy(ax):
    levels = [0.1, 0.3, 1, 3, 10]
    lines = ax.contour(grid_mu, grid_sigma, F + log_evidence, levels, colors=GREY, linewidths=1)
    ax.clabel(lines, fmt="%g")
    ax.plot(m, s, "*", color=VERMILLION, ms=13, mec="white", zorder=3, label="exact posterior")
    ax.legend(loc="upper right")
    ax.set(xlabel="mean μ (N/cm)", ylabel="deviation σ (N/cm)")


fig, ax = plt.subplots(figsize=(5.5, 3.6))
draw_free_energy(ax)
ax.set_title("F + log P(D) in nats = KL(q ‖ posterior)", fontsize=10)
plt.show()

# %% [markdown]
# ## 3. The reparameterised gradient
#
# With a network inside, $E_q[-\log P(D|w)]$ has no closed form, but it can be sampled. Write the
# random weight as a function of the parameters and of noise that does not depend on them:
#
# $$\epsilon \sim N(0, 1)\;(\text{K1}), \quad \theta = (\mu, \rho)\;(\text{K2}), \quad
# \sigma = \log(1 + e^\rho)\;(\text{K3}), \quad w = \mu + \sigma\epsilon\;(\text{K4}).$$
#
# Softplus keeps $\sigma$ positive for every real $\rho$. With $\epsilon$ held fixed, the free
# energy of one sample is an ordinary function of $\theta$ (K5),
#
# $$F = \log q(w|\theta) - \log P(w) - \log P(D|w),$$
#
# $$\log q = -\log\sigma - \tfrac12\epsilon^2 - \tfrac12\log 2\pi \;(\text{K10}), \qquad
# -\log P(w) = \log\sigma_0 + \frac{w^2}{2\sigma_0^2} + \tfrac12\log 2\pi \;(\text{K13}).$$
#
# In K10 the squared distance $(w - \mu)^2/2\sigma^2$ is $\epsilon^2/2$ exactly, so **$\mu$ has
# dropped out of $\log q$**. Write $g_w = \partial(-\log P(D|w))/\partial w$, which is
# $-\sum_i (y_i - w x_i)\,x_i/\sigma_y^2$ here. The inner derivatives are
#
# $$\frac{\partial w}{\partial\mu} = 1 \;(\text{K20}), \qquad
# \frac{\partial\sigma}{\partial\rho} = \frac{e^\rho}{1 + e^\rho} = s(\rho) \;(\text{K24}), \qquad
# \frac{\partial w}{\partial\rho} = \epsilon\,s(\rho) \;(\text{K28}),$$
#
# and the chain rule gives
#
# $$\frac{\partial F}{\partial\mu} = \frac{w}{\sigma_0^2} + g_w \;(\text{K21}), \qquad
# \frac{\partial F}{\partial\rho} = \Big[-\frac1\sigma
#   + \Big(\frac{w}{\sigma_0^2} + g_w\Big)\,\epsilon\Big]\,s(\rho) \;(\text{K30}).$$
#
# The report prints $\partial P(D|w)/\partial w$ for $g_w$; the negative logarithm is meant. Its
# factor $1/n$ on the first terms shares them out over the $n$ steps of an epoch; here all data
# are in every step, so it is 1.


# %%
def free_energy(theta, eps):
    """Return F, the mean over the samples eps (S,), and its gradient for theta = (mu, rho)."""
    mu, rho = theta
    sigma = softplus(rho)  # K3
    w = mu + sigma * eps  # K4  (S,)
    residual = y - w[:, None] * x  # (S, N)
    log_q = -np.log(sigma) - 0.5 * eps**2 - 0.5 * LOG_2PI  # K10
    log_prior = -np.log(s_0) - 0.5 * (w / s_0) ** 2 - 0.5 * LOG_2PI  # K13
    rowwise = -0.5 * (residual / s_y) ** 2 - np.log(s_y) - 0.5 * LOG_2PI  # K16
    value = np.mean(log_q - log_prior - rowwise.sum(axis=1))  # K5

    d_w = w / s_0**2 - residual @ x / s_y**2  # w / sigma_0^2 + g_w  (S,)
    d_mu = np.mean(d_w)  # K21
    d_rho = np.mean(-1 / sigma + d_w * eps) * sigmoid(rho)  # K30
    return value, np.array([d_mu, d_rho])


verify("K24", lambda rho: (softplus(rho).sum(), sigmoid(rho)), np.array([-5.0, 0.0, 5.0]))
theta = np.array([0.4, -1.0])
eps = rng.standard_normal(5)
verify("K21, K30", lambda theta: free_energy(theta, eps), theta)

# %% [markdown]
# ### A check must be able to fail
#
# Two mistakes that are easy to make. The first has $+1/\sigma$ in K30. The second *counts the
# score twice*: one remembers that $q(w|\theta)$ contains $\mu$ and $\rho$ directly, and adds
#
# $$\frac{\partial\log q}{\partial\mu}\Big|_w = \frac{w - \mu}{\sigma^2} = \frac\epsilon\sigma,
# \qquad
# \frac{\partial\log q}{\partial\rho}\Big|_w = \frac{\epsilon^2 - 1}{\sigma}\,s(\rho),$$
#
# although K10 has already taken them into account.


# %%
def plus_one_over_sigma(theta, eps):
    value, grad = free_energy(theta, eps)
    sigma, slope = softplus(theta[1]), sigmoid(theta[1])
    return value, grad + np.array([0, 2 * slope / sigma])


def score_counted_twice(theta, eps):
    value, grad = free_energy(theta, eps)
    sigma, slope = softplus(theta[1]), sigmoid(theta[1])
    return value, grad + np.array([np.mean(eps), np.mean(eps**2 - 1) * slope]) / sigma


for wrong in (plus_one_over_sigma, score_counted_twice):
    for method in ("complex", "central"):
        report = gradcheck.check(lambda t, f=wrong: f(t, eps), theta, method=method)
        assert not report.passed
        print(f"{wrong.__name__}: {method} error {report.error:.2f}, caught")

# %% [markdown]
# ### Is the right gradient right on average?
#
# The mean over $\epsilon$ should be the gradient of the exact $F$ of Section 2, with
# $\partial F/\partial\rho = (\Lambda\sigma - 1/\sigma)\,s(\rho)$. Compare in units of the standard
# error (s.e.): $|z| \gt 4$ has probability below $10^{-4}$.


# %%
def exact_in_rho(theta):
    sigma = softplus(theta[1])
    value, (d_mu, d_sigma) = exact_value_and_grad(np.array([theta[0], sigma]))
    return value, np.array([d_mu, d_sigma * sigmoid(theta[1])])


verify("F(mu, rho)", exact_in_rho, theta)
exact = exact_in_rho(theta)[1]
z = {}
print(f"{'':<22}{'exact':>17}{'mean of 2000 (s.e.)':>30}{'z':>14}")
for estimator in (free_energy, plus_one_over_sigma, score_counted_twice):
    draws = np.random.default_rng(1).standard_normal((2000, 5))
    grads = np.array([estimator(theta, row)[1] for row in draws])
    mean, error = grads.mean(axis=0), grads.std(axis=0, ddof=1) / np.sqrt(2000)
    name = estimator.__name__
    z[name] = (mean - exact) / error
    for j, letter in enumerate(("mu", "rho")):
        print(
            f"{name:<20}{letter:>4}{exact[j]:>15.3f}{mean[j]:>20.3f} ({error[j]:.3f})"
            f"{z[name][j]:>14.1f}"
        )
assert np.abs(z["free_energy"]).max() < 4
assert np.abs(z["plus_one_over_sigma"][1]) > 10
assert np.abs(z["score_counted_twice"]).max() < 4

# %% [markdown]
# The last two rows teach a lesson. The score has mean zero, so counting it twice leaves the
# estimator unbiased: no average over samples finds the mistake, the check at fixed noise does.
# It is not harmless either. At the optimum $w/\sigma_0^2 + g_w = \epsilon/\sigma$, so the mistake
# doubles the noise of $\partial F/\partial\mu$ where it matters most.

# %%
optimum = np.array([m, np.log(np.expm1(s))])  # expm1 and log undo softplus
spread = {
    f.__name__: np.std([f(optimum, row)[1][0] for row in draws])
    for f in (free_energy, score_counted_twice)
}
ratio = spread["score_counted_twice"] / spread["free_energy"]
print(f"deviation of dF/dmu at the optimum, score counted twice / once: {ratio:.6f}")
assert np.isclose(ratio, 2)

# %% [markdown]
# ### What no gradient check sees
#
# K18 prints $-\log\sigma_{data}$ where K13 gives $+\log\sigma_0$. A constant has no gradient, so
# a check of the gradient passes either way. The value tells: the mean of
# $\log q - \log P(w)$ is a KL divergence, known in closed form.

# %%
draws = np.random.default_rng(4).standard_normal(200_000)
sigma, wide = softplus(theta[1]), 2.5  # a prior deviation of 2.5 N/cm
sampled = theta[0] + sigma * draws
kl = -np.log(sigma) - 0.5 * draws**2 + np.log(wide) + 0.5 * (sampled / wide) ** 2
kl_error = kl.std(ddof=1) / np.sqrt(kl.size)
closed = kl_to(0, wide, theta[0], sigma)
printed = kl.mean() - 2 * np.log(wide)
print(f"closed form                    {closed:8.4f} nats")
print(f"sampled, + log sigma_0         {kl.mean():8.4f} (s.e. {kl_error:.4f})")
print(f"sampled, - log sigma_0 of K18  {printed:8.4f}: a KL divergence below zero")
assert abs(kl.mean() - closed) < 4 * kl_error
assert printed < 0

# %% [markdown]
# ## 4. Descent meets the exact posterior
#
# Gradient descent with learning rate $\eta$:
#
# $$\mu \leftarrow \mu - \eta\,\frac{\partial F}{\partial\mu} \;(\text{K43}), \qquad
# \rho \leftarrow \rho - \eta\,\frac{\partial F}{\partial\rho} \;(\text{K44}).$$
#
# Fresh noise in every step makes the path wander around the optimum; a falling $\eta$ quietens
# it, and the mean over the second half of the path averages the rest. Twelve runs with noise of
# their own give the standard errors.


# %%
def descend(value_and_grad, theta, shape, rng, steps=2000, eta=0.01):
    """Return the path (steps, size of theta) of K43 and K44; eta falls as 1 / (1 + 5 t)."""
    path = np.empty((steps, len(theta)))
    for step in range(steps):
        grad = value_and_grad(theta, rng.standard_normal(shape))[1]
        theta = theta - eta / (1 + 5 * step / steps) * grad  # K43, K44
        path[step] = theta
    return path


def summarise(paths):
    """Return mean and standard error over runs of the path's second half; rho as sigma."""
    half = paths.shape[2] // 2
    ends = paths[:, paths.shape[1] // 2 :].copy()  # (runs, steps / 2, size of theta)
    ends[..., half:] = softplus(ends[..., half:])
    ends = ends.mean(axis=1)
    return ends.mean(axis=0), ends.std(axis=0, ddof=1) / np.sqrt(len(ends))


start = np.array([0.3, -0.5])
paths = np.array([descend(free_energy, start, 1, np.random.default_rng(k)) for k in range(12)])
found, error = summarise(paths)
for name, value, se, truth in zip(("mean", "deviation"), found, error, (m, s), strict=True):
    print(f"posterior {name}: exact {truth:.4f}, descent {value:.4f} (s.e. {se:.4f}) N/cm")
    assert abs(value - truth) < 4 * se

# %%
fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6))
draw_free_energy(left)
path = np.vstack([start, paths[0]])
left.plot(path[:, 0], softplus(path[:, 1]), color=BLUE, lw=0.6, label="one run")
left.legend(loc="upper right")
right.plot(path[:, 0], color=BLUE, lw=0.8, label="μ")
right.plot(softplus(path[:, 1]), color=ORANGE, lw=1.3, label="σ")
right.axhline(m, color=BLACK, ls="--", lw=1, label="exact")
right.axhline(s, color=BLACK, ls="--", lw=1)
right.set(xlabel="step", ylabel="μ and σ (N/cm)", xlim=(0, 2000))
right.legend(frameon=False, loc="upper right", bbox_to_anchor=(1, 0.65))
plt.show()

# %% [markdown]
# ## 5. Many weights
#
# For $P$ weights take one $\mu_j$ and one $\rho_j$ each and independent noise: the *mean-field*
# family. $\log q$ and $\log P(w)$ become sums over $j$, and K21 and K30 hold for each $j$. They
# do not know the model: all they need is $-\log P(D|w)$ and its gradient $g_w$. So pass in a
# function that returns these two.


# %%
def variational(theta, eps, nll_and_grad, s_0):
    """Return F and its gradient; theta (2P,) = mu then rho, eps (S, P)."""
    mu, rho = theta.reshape(2, -1)
    sigma = softplus(rho)  # K3
    w = mu + sigma * eps  # K4  (S, P)
    nll, g_w = nll_and_grad(w)  # (S,), (S, P)
    log_q = np.sum(-np.log(sigma) - 0.5 * eps**2 - 0.5 * LOG_2PI, axis=1)  # K10
    log_prior = np.sum(-np.log(s_0) - 0.5 * (w / s_0) ** 2 - 0.5 * LOG_2PI, axis=1)  # K13
    d_w = w / s_0**2 + g_w
    d_mu = np.mean(d_w, axis=0)  # K21
    d_rho = np.mean(-1 / sigma + d_w * eps, axis=0) * sigmoid(rho)  # K30
    return np.mean(log_q - log_prior + nll), np.concatenate([d_mu, d_rho])


# %% [markdown]
# The test case is linear regression: two springs side by side, their extensions nearly equal,
# and a force meter whose zero is off. The weights are two stiffnesses (N/cm) and an offset (N).
# For rows $(x_1, x_2, 1)$ in $X$ the gradient is $g_w = -X^T (y - Xw)/\sigma_y^2$.

# %%
rng = np.random.default_rng(5)
s_0, s_y = 2.0, 1.0
common = rng.uniform(-1, 1, 30)
X = np.column_stack([common, common + 0.4 * rng.standard_normal(30), np.ones(30)])  # (N, P)
y = X @ [1.0, 1.5, -0.5] + s_y * rng.standard_normal(30)


def linear_nll(w):
    residual = y - w @ X.T  # (S, N)
    rowwise = 0.5 * (residual / s_y) ** 2 + np.log(s_y) + 0.5 * LOG_2PI  # K16
    return rowwise.sum(axis=1), -residual @ X / s_y**2


def linear_free_energy(theta, eps):
    return variational(theta, eps, linear_nll, s_0)


eps = rng.standard_normal((4, 3))
theta = np.concatenate([rng.standard_normal(3), [-1.0, 0.0, 0.5]])
verify("K21, K30, three weights", lambda t: linear_free_energy(t, eps), theta)

# %% [markdown]
# The exact posterior is $N(m, \Lambda^{-1})$ with $\Lambda = I/\sigma_0^2 + X^T X/\sigma_y^2$, a
# full matrix: the two stiffnesses are correlated, because only their sum is well measured. The
# free energy of the mean-field $q$ is, with all terms collected,
#
# $$F = \tfrac12 (\mu - m)^T \Lambda\,(\mu - m) + \sum_j \big[\tfrac12\Lambda_{jj}\sigma_j^2
#   - \log\sigma_j\big] + \text{const}.$$
#
# So $\mu = m$, but $\sigma_j = \Lambda_{jj}^{-1/2}$, which is at most the deviation
# $(\Lambda^{-1})_{jj}^{1/2}$ of that weight alone: mean-field is too sure of itself. What
# remains of $\mathrm{KL}(q\,\|\,P(w|D))$ is the gap
# $\tfrac12\big(\sum_j \log\Lambda_{jj} - \log\det\Lambda\big)$.

# %%
precision = np.eye(3) / s_0**2 + X.T @ X / s_y**2
m = np.linalg.solve(precision, X.T @ y) / s_y**2
mean_field, alone = np.diag(precision) ** -0.5, np.sqrt(np.diag(np.linalg.inv(precision)))
log_evidence = log_normal(y, s_y**2 * np.eye(30) + s_0**2 * X @ X.T)


def exact_linear(theta):
    """Return F in closed form, and its gradient for (mu, sigma)."""
    mu, sigma = theta.reshape(2, 3)
    residual = y - X @ mu
    nll = 0.5 * (residual @ residual + sigma**2 @ (X**2).sum(axis=0)) / s_y**2
    value = kl_to(0, s_0, mu, sigma).sum() + nll + 15 * (LOG_2PI + 2 * np.log(s_y))
    d_sigma = np.diag(precision) * sigma - 1 / sigma
    return value, np.concatenate([precision @ (mu - m), d_sigma])


verify("F(mu, sigma)", exact_linear, np.concatenate([m + 0.5, [0.3, 0.6, 0.9]]))
gap = 0.5 * (np.log(np.diag(precision)).sum() - np.linalg.slogdet(precision)[1])
best = exact_linear(np.concatenate([m, mean_field]))[0]
print(f"-log P(D) = {-log_evidence:.4f}, least F = {best:.4f}, gap {gap:.4f} nats")
assert np.isclose(best, -log_evidence + gap, rtol=1e-12)
elsewhere = np.concatenate(
    [m + rng.standard_normal((1000, 3)), rng.exponential(1, (1000, 3))], axis=1
)
lowest = min(exact_linear(point)[0] for point in elsewhere)
print(f"lowest F of 1000 random q: {lowest:.4f} nats")
assert lowest > best > -log_evidence

# %%
start = np.concatenate([np.zeros(3), np.full(3, -1.0)])
seeds = [np.random.default_rng(k) for k in range(12)]
paths = np.array([descend(linear_free_energy, start, (2, 3), rng) for rng in seeds])
found, error = summarise(paths)
exact = np.concatenate([m, mean_field])
print("          exact mean   descent (s.e.)      1/sqrt(Lambda_jj)   descent (s.e.)     alone")
for j, name in enumerate(("w1, N/cm", "w2, N/cm", "offset, N")):
    print(
        f"{name:<9}{m[j]:>10.4f}{found[j]:>10.4f} ({error[j]:.4f}){mean_field[j]:>16.4f}"
        f"{found[3 + j]:>13.4f} ({error[3 + j]:.4f}){alone[j]:>10.4f}"
    )
assert (np.abs(found - exact) < 4 * error).all()

# %%
fig, ax = plt.subplots(figsize=(5, 3.8))
values, vectors = np.linalg.eigh(np.linalg.inv(precision)[:2, :2])
angle = np.degrees(np.arctan2(vectors[1, 1], vectors[0, 1]))
sizes = 4 * np.sqrt(values)  # width and height of the two-deviation contour
exact = Ellipse(m[:2], sizes[1], sizes[0], angle=angle, fc=SKY, alpha=0.5, label="exact posterior")
q = Ellipse(m[:2], *(4 * mean_field[:2]), fc="none", ec=VERMILLION, lw=2, ls="--")
q.set_label("mean-field q")
ax.add_patch(exact)
ax.add_patch(q)
ax.plot(*m[:2], "+", color=BLACK)
ax.set(xlabel="stiffness w1 (N/cm)", ylabel="stiffness w2 (N/cm)", aspect="equal")
ax.set_title("contours at two deviations", fontsize=10)
ax.autoscale_view()
ax.legend(loc="upper right", frameon=False)
plt.show()

# %% [markdown]
# ## 6. One hidden layer
#
# Rows of data are rows of matrices: $X$ is $(B, d)$, $W_0$ is $(d, H)$, $W_1$ is $(H, K)$.
#
# $$Z_0 = X W_0 + b_0 \;(\text{K31}), \qquad A_0 = \mathrm{ReLU}(Z_0) \;(\text{K32}), \qquad
# \hat Y = A_0 W_1 + b_1 \;(\text{K36}).$$
#
# Backwards, let $\Delta_l = \partial(-\log P(D|w))/\partial Z_l$, where $Z_1 = \hat Y$. One entry
# at a time, $\partial Z_1[b,k]/\partial W_1[h,k] = A_0[b,h]$, and every row $b$ contributes:
#
# $$\Delta_1 = -(Y - \hat Y)/\sigma_y^2 \;(\text{K37}), \qquad
# dW_1 = A_0^T \Delta_1 \;(\text{K38}), \qquad db_1 = \mathbf 1^T \Delta_1 \;(\text{K37}).$$
#
# Through the hidden layer, $\partial Z_1[b,k]/\partial A_0[b,h] = W_1[h,k]$, and the gate
# $[Z_0 \gt 0]$ is the slope of ReLU:
#
# $$\Delta_0 = (\Delta_1 W_1^T) \circ [Z_0 \gt 0] \;(\text{K39}), \qquad
# dW_0 = X^T \Delta_0 \;(\text{K40, K42}), \qquad
# db_0 = \mathbf 1^T \Delta_0 \;(\text{K39, K41}).$$
#
# A deeper network repeats the last line once per layer.


# %%
def unpack(w, sizes):
    """View one flat weight vector as W0 (d, H), b0 (H,), W1 (H, K), b1 (K,)."""
    d, H, K = sizes
    parts = np.split(w, np.cumsum([d * H, H, H * K]))
    return parts[0].reshape(d, H), parts[1], parts[2].reshape(H, K), parts[3]


def network_nll(w, X, Y, s_y, sizes):
    """Return -log P(D|w) and its gradient g_w for one flat weight vector w (P,)."""
    W0, b0, W1, b1 = unpack(w, sizes)
    Z0 = X @ W0 + b0  # K31  (B, H)
    gate = Z0.real > 0
    A0 = Z0 * gate  # K32
    Y_hat = A0 @ W1 + b1  # K36  (B, K)
    nll = np.sum(0.5 * ((Y - Y_hat) / s_y) ** 2 + np.log(s_y) + 0.5 * LOG_2PI)  # K16
    D1 = -(Y - Y_hat) / s_y**2  # K37
    D0 = (D1 @ W1.T) * gate  # K39  (B, H)
    g = [X.T @ D0, D0.sum(axis=0), A0.T @ D1, D1.sum(axis=0)]  # K40, K39, K38, K37
    return nll, np.concatenate([block.ravel() for block in g])


rng = np.random.default_rng(6)
sizes, s_y = (2, 5, 3), 0.7
net = bbb.MLP(sizes)
X, Y = rng.standard_normal((6, 2)), rng.standard_normal((6, 3))
w = rng.standard_normal(net.layout.size)
verify(
    "K37-K42",
    lambda w: network_nll(w, X, Y, s_y, sizes),
    w,
    gates=lambda w: network.gates(net, w[None], X),  # central differences keep off ReLU kinks
)

# %% [markdown]
# ### The order of the factors
#
# The report prints $-(y - \hat y)\,w_n\,[z_{n-1} \gt 0]\,a_{n-2}$ for $dW_{n-1}$ (K40). As
# matrices, $(B, K)$ times $(H, K)$ does not conform in general, so one is tempted to read
# elementwise products. When all widths are equal and $B = 1$ these even *have the right shape*.
# Their values are wrong: the sum over the outputs that a hidden unit feeds is missing, and the
# inputs are paired with the wrong axis.
#
# $$\text{right: } dW_0[i, h] = x_i\,[z_h \gt 0] \sum_k \Delta_1[k]\,W_1[h, k], \qquad
# \text{elementwise: } \Delta_1[h]\,W_1[i, h]\,[z_h \gt 0]\,x_h .$$


# %%
def elementwise_k40(w, X, Y, s_y, sizes):
    """Return the value, and the gradient with K40 read as elementwise products."""
    nll, g = network_nll(w, X, Y, s_y, sizes)
    W0, b0, W1, b1 = unpack(w, sizes)
    Z0 = X @ W0 + b0
    Y_hat = (Z0 * (Z0.real > 0)) @ W1 + b1
    d_W0 = -(Y - Y_hat) / s_y**2 * W1 * (Z0.real > 0) * X
    assert d_W0.shape == W0.shape  # no error betrays it
    return nll, np.concatenate([d_W0.ravel(), g[W0.size :]])


rng = np.random.default_rng(2)
square = (3, 3, 3)
x_row, y_row = rng.standard_normal((1, 3)), rng.standard_normal((1, 3))
w = rng.standard_normal(bbb.MLP(square).layout.size)
for function in (network_nll, elementwise_k40):
    report = gradcheck.check(lambda w, f=function: f(w, x_row, y_row, s_y, square), w)
    print(f"{function.__name__}: error {report.error:.0e}, {'ok' if report.passed else 'caught'}")
    assert report.passed == (function is network_nll)

# %% [markdown]
# ### The whole free energy
#
# Nothing new is needed: `variational` of Section 5 takes `network_nll` as its likelihood.

# %%
s_0, S = 1.5, 4


def network_free_energy(theta, eps):
    """Return F of the network and its gradient; theta (2P,), eps (S, P)."""

    def nll_and_grad(w):  # (S, P)
        pairs = [network_nll(row, X, Y, s_y, sizes) for row in w]
        return tuple(np.array(part) for part in zip(*pairs, strict=True))

    return variational(theta, eps, nll_and_grad, s_0)


def gates(theta):
    mu, rho = theta.reshape(2, -1)
    return network.gates(net, mu + softplus(rho) * eps, X)


P = net.layout.size
eps = rng.standard_normal((S, P))
theta = np.concatenate([rng.standard_normal(P), rng.uniform(-3, 0, P)])
verify("network, K1-K42", lambda t: network_free_energy(t, eps), theta, gates=gates)

# %% [markdown]
# ## 7. The library does the same
#
# `bbb_numpy` has the same pieces under the same names, for any depth, with all samples and rows
# at once: [`network.vjp`](../bbb_numpy/parts/network.py) holds K37-K42,
# [`posteriors.MeanField.pull_back`](../bbb_numpy/parts/posteriors.py) holds K21 and K30, and
# [`Reparameterised`](../bbb_numpy/gradients/reparameterised.py) joins them. Same theta, same
# noise, same numbers:

# %%
model = bbb.Model(net, bbb.GaussianPrior(s_0), bbb.GaussianLikelihood(s_y))
library = bbb.Reparameterised(model)
value, grad, _ = library.value_and_grad(theta, eps, X, Y)
by_hand, grad_by_hand = network_free_energy(theta, eps)
difference = np.abs(grad - grad_by_hand).max() / np.abs(grad).max()
print(f"F: library {value:.6f}, by hand {by_hand:.6f} nats")
print(f"largest difference of the gradients / largest gradient: {difference:.0e}")
assert np.isclose(value, by_hand, rtol=1e-13)
assert difference < 1e-13

# %% [markdown]
# Training calls this very function, so it is the one to check: each term of K5 alone, then their
# sum. The worst coordinate is named down to the layer.

# %% tags=["rounding"]
reports = []
for term, objective in objectives.TERMS.items():
    single = bbb.Reparameterised(model, objective=objective)
    for method in ("complex", "central"):
        report = gradcheck.check(
            lambda t, f=single: f.value_and_grad(t, eps, X, Y),
            theta,
            method=method,
            blocks=library.layout.slices,
            coordinate=library.coordinate,
            gates=gates,
        )
        assert report.passed, str(report)
        assert report.skipped <= 0.02
        if method == "complex" or term == "free energy":
            reports.append((term, report))
print(gradcheck.format_table(reports))

# %% [markdown]
# ## 8. The report's cubic
#
# The report's second problem is $y = x^3 + N(0, 3^2)$ for $x$ in $[-4, 4]$. Three choices differ
# from the report: $x$ and $y$ are scaled to unit deviation, the noise deviation is learned
# instead of fixed at 1 (its gradient is D1 of [derivations.md](../derivations.md)), and the
# optimizer is Adam, because plain descent leaves $\sigma$ near its starting value. What trains is
# checked first, the learned noise included.

# %%
rng = np.random.default_rng(7)
x, y, truth = datasets.cubic(rng, rows=500, low=-4, high=4, noise=3)
x_scale, y_scale = x.std(), y.std()

estimator = bbb.Reparameterised(
    bbb.Model(bbb.MLP((1, 50, 1)), bbb.GaussianPrior(1.0), bbb.GaussianLikelihood(0.5, learn=True))
)
adam = bbb.Adam(learning_rate=0.02, schedule=bbb.Cosine())
state = training.start(estimator, rng, adam)
eps = estimator.draw(rng, 2)
report = gradcheck.check(
    lambda t: estimator.value_and_grad(t, eps, x[:9] / x_scale, y[:9] / y_scale), state.theta
)
print(f"gradient error {report.error:.0e} over {state.theta.size} coordinates")
assert report.passed, str(report)

# %%
state = training.fit(estimator, state, x / x_scale, y / y_scale, Recipe(optimizer=adam, epochs=1000, batch_size=125, samples=2), rng=rng, progress=False)
noise = y_scale * np.exp(estimator.layout.views(state.theta)["log_noise"][0])
print(f"noise deviation: learned {noise:.2f}, true 3")

# %%
line = np.linspace(-6.5, 6.5, 261)[:, None]
scaled = predictive.predict(estimator, state.theta, line / x_scale, rng=rng, samples=500)
fit = predictive.Predictive(*(y_scale * part for part in scaled))  # in the units of y
error, epistemic = (fit.mean - truth(line))[:, 0], fit.epistemic[:, 0]
inside, edge = np.abs(line[:, 0]) <= 4, np.abs(np.abs(line[:, 0]) - 6) < 1e-9

rmse = np.sqrt(np.mean(error[inside] ** 2))
print(f"inside the data: RMSE of the mean {rmse:.2f}, epistemic {epistemic[inside].mean():.2f}")
print(f"at x = -6 and 6: errors {np.round(error[edge], 0)},")
print(f"                 epistemic {np.round(epistemic[edge], 1)}")
x_new, y_new, _ = datasets.cubic(rng, rows=4000)
new = predictive.predict(estimator, state.theta, x_new / x_scale, rng=rng, samples=500)
covered = np.mean(np.abs(y_new - y_scale * new.mean) < 2 * y_scale * new.total)
print(f"new targets inside ±2 total deviations: {covered:.1%} (a Gaussian has 95.4%)")
assert rmse < 1.5
assert epistemic[edge].min() > 3 * epistemic[inside].mean()
assert 0.92 < covered < 0.98

# %%
fig, ax = plt.subplots(figsize=(5.5, 3.4))
plots.loss(state.history, rows=500, ax=ax)
ax.set_ylabel("nats per row (y scaled)")
plt.show()

# %%
fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2))
plots.fit(line, fit, data=(x, y), truth=truth, y_limits=(-250, 250), ax=left)
rest = fit._replace(mean=fit.mean - truth(line))
plots.fit(line, rest, data=(x, y - truth(x)), truth=np.zeros_like, y_limits=(-15, 15), ax=right)
left.set(xlabel="x (dimensionless)", ylabel="y (dimensionless)")
right.set(xlabel="x (dimensionless)", ylabel="y − x³ (dimensionless)", xlim=(-5, 5))
plt.show()

# %% [markdown]
# Inside the data the mean follows the curve and the noise is found (on the right the truth is
# subtracted). Outside, the epistemic deviation grows, as it should, but far too little: the mean
# goes on as a straight line, as that of a ReLU network must, and the cubic leaves the band. The
# gradients are exact all the same. What is limited is the network, and the mean-field family,
# which Section 5 showed to be too sure of itself. A gradient check proves the derivative of $F$,
# not that $q$ is a good posterior.
#
# ## 9. Exercises
#
# 1. K19 prints $\partial P(D|w)/\partial w$ where $\partial(-\log P(D|w))/\partial w$ is meant.
#    Code it as printed, for one weight, and read what `gradcheck.check` says.
# 2. In Section 3, *subtract* $\epsilon/\sigma$ from $\partial F/\partial\mu$ instead of adding it.
#    What is its deviation at the optimum now? Is it unbiased? Does it pass the check? Why not?
# 3. Give Section 5 a full covariance: $w = \mu + L\epsilon$ with $L$ lower triangular. Derive the
#    gradient for $L$, check it, and see the gap close.
# 4. Put $\tanh$ for ReLU in Section 6. Which lines change, and why does the central difference
#    then need no `gates`?
# 5. Add a second hidden layer by hand. Which line of `network_nll` is repeated?
# 6. Set $\rho = -40$ and replace `softplus` by `np.log(1 + np.exp(rho))`. What becomes of
#    $1/\sigma$, and of $s(\rho)/\sigma$?
# 7. Train on $[-1, 1]$ with 125 rows. How does the epistemic deviation at $x = \pm 6$ compare
#    with the error there?
#
# **Where to read on.** [derivations.md](../derivations.md) derives K1 to K44 in the report's order,
# with the printed form beside the corrected one. Then the code, from the floor up:
# [numerics](../bbb_numpy/numeric/elementary.py), [network](../bbb_numpy/parts/network.py),
# [posteriors](../bbb_numpy/parts/posteriors.py),
# [the gradient](../bbb_numpy/gradients/reparameterised.py),
# [training](../bbb_numpy/training/loop.py).
