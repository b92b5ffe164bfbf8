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
# A spring's stretch beyond proportion, measured a hundred times, a network of 61 weights, and what
# it believes of loads that nobody tried. Afterwards every line of the program is derived and
# checked, first for one weight, then for the network.
#
# **It needs** calculus and NumPy, no statistics.
# **It takes** about 60 minutes to read and 20 seconds of processor time to run.
# Next: [02, a prior that is learned](02_mixture_prior.ipynb).

# %%
import matplotlib.pyplot as plt
import numpy as np

from bbb_numpy import plain

plt.rcParams.update({"figure.dpi": 150, "figure.constrained_layout.use": True})
rng = np.random.default_rng(0)
x = rng.uniform(-2, 2, (100, 1))  # loads in kg, below 0 a push
y = x**2 + 0.3 * rng.standard_normal((100, 1))  # mm beyond proportion
net, prior, noise = (1, 20, 1), 1.0, 0.3
steps = {"eta": 2e-3, "epochs": 300, "batch_size": 10, "samples": 1, "rng": rng}
theta = plain.fit(net, plain.init(net, rng), x, y, prior, noise, **steps)

line = np.linspace(-6, 6, 121)[:, None]
mean, epistemic, total = plain.predict(net, theta, line, noise, 1000, rng)
at = np.searchsorted(line[:, 0].round(6), (0, 1, 2, 3, 4, 6))
print("x                            " + "".join(f"{value:6.0f}" for value in line[at, 0]))
print("epistemic standard deviation " + "".join(f"{value:6.2f}" for value in epistemic[at, 0]))
assert epistemic[at[5]] > 3 * epistemic[at[2]] > 9 * epistemic[at[0]]

fig, ax = plt.subplots(figsize=(7, 4))
for width, shade in ((total, "#D9ECF8"), (epistemic, "#7FC4EE")):
    ax.fill_between(line[:, 0], *((mean + 2 * s * width)[:, 0] for s in (-1, 1)), color=shade, lw=0)

ax.plot(line, line**2, "k--", label="truth")
ax.plot(line, mean, color="#D55E00", label="mean ± 2 standard deviations")
ax.plot(x, y, ".", color="#5A5A5A", ms=4, label="data")
ax.set(xlabel="load x (kg)", ylabel="stretch beyond proportion, y (mm)", ylim=(-3, 24))
ax.legend(loc="upper center", frameon=False)
plt.show()

# %% [markdown]
# *The points between -2 and 2 kg, and the mean on them. Outside it goes on in straight lines, and
# the dark band around it, thin among the points, is wide. The truth leaves the band.*
#
# The dark band is that of the functions (*epistemic*); the pale one, where a new point may fall,
# adds the noise. **The band is wide where there are no data, but not wide enough**: Sections 7 and
# 9 say why. It comes from one $\mu$ and one $\sigma$ for each weight. The data have pinned some
# down:

# %%
from bbb_numpy.numeric.elementary import LOG_2PI, inverse_softplus, sigmoid, softplus

sigma = softplus(np.split(theta, 2)[1])


def without_data(rho, epochs, eta=2e-3):
    """Sigma after so many epochs of the first term of K30 alone, which no data enter: Section 9."""
    for _ in range(epochs):
        rho += eta * sigmoid(rho) / softplus(rho)
    return softplus(rho)


first, free = softplus(-2.0), without_data(-2.0, 300)
print(f"sigma: {first:.3f} at the start, {sigma.min():.3f} to {sigma.max():.3f} at the end")
print(f"{(sigma < first).sum()} of {sigma.size} fell; without data all would be {free:.3f}")
print(f"{(sigma > 0.8 * free).sum()} stand near that, and the data have told only the others")
assert sigma.min() < 0.5 * first
assert np.median(sigma) < 0.95 * free

# %% [markdown]
# Every gradient below is checked in the cell where it is coded, at fixed noise
# ([D9](../derivations/numbers-and-proofs.md#d9-two-oracles-for-a-gradient)): by the *complex step*
# $\mathrm{Im}\,f(\theta + ih)/h$, $h = 10^{-30}$, to $10^{-12}$, and by central differences to
# $10^{-6}$. Tags such as K30 lead to the [derivations](../derivations.md). Costs are in nats.

# %%
from bbb_numpy import gradcheck


def verify(name, value_and_grad, theta, **options):
    """Check a gradient in both ways, print the largest errors, stop if one is too large."""
    for method in ("complex", "central"):
        report = gradcheck.check(value_and_grad, theta, method=method, **options)
        print(f"{name}: {method} error {report.error:.0e}, bar {report.tolerance:.0e}")
        assert report.passed, str(report)
        assert report.skipped <= 0.02, "too many coordinates skipped at kinks"


verify("K24", lambda rho: (softplus(rho).sum(), sigmoid(rho)), np.array([-5.0, 0.0, 5.0]))

# %% [markdown]
# ## 1. One weight: a spring
#
# Now the proportion. A load $x_i$ (kg) stretches the spring by $y_i$ (cm), and the catalogue says
# 5 cm per kilogram, give or take 0.5
# ([as in the book](../derivations.md#one-weight-and-bayes-rule)):
#
# $$y_i = w\,x_i + \text{noise}, \qquad \text{noise} \sim N(0, \sigma_y^2), \qquad
# w \sim N(w_0, \sigma_0^2), \quad w_0 = 5,\; \sigma_0 = 0.5 .$$
#
# Bayes' rule multiplies two Gaussians in $w$: the posterior is one, with precision $\Lambda$ and
# mean $m$. A grid confirms both, and the evidence $P(D)$.
#
# $$P(w|D) = \frac{P(w)\,P(D|w)}{P(D)} = N(w;\, m,\, \Lambda^{-1}), \qquad
# \Lambda = \frac{1}{\sigma_0^2} + \frac{\sum_i x_i^2}{\sigma_y^2}, \qquad
# m = \frac{1}{\Lambda}\Big(\frac{w_0}{\sigma_0^2} + \frac{\sum_i x_i y_i}{\sigma_y^2}\Big).$$

# %%
rng = np.random.default_rng(2018)
centre, prior, noise = 5.0, 0.5, 1.0  # cm per kg, cm per kg, cm
x = rng.uniform(0.5, 3.0, 8)  # kg
y = 6.0 * x + noise * rng.standard_normal(8)  # cm; the true weight is 6 cm per kg

precision = 1 / prior**2 + x @ x / noise**2
m, s = (centre / prior**2 + x @ y / noise**2) / precision, precision**-0.5


def log_normal(y, covariance):
    """Return log N(y; 0, covariance)."""
    log_det = np.linalg.slogdet(covariance)[1]
    return -0.5 * (y @ np.linalg.solve(covariance, y) + log_det + len(y) * LOG_2PI)


def normal(z, mean, deviation):
    return np.exp(-0.5 * ((z - mean) / deviation) ** 2) / (deviation * np.sqrt(2 * np.pi))


log_evidence = log_normal(y - centre * x, noise**2 * np.eye(8) + prior**2 * np.outer(x, x))

w = np.linspace(2, 9, 20_001)
likelihood = np.prod([normal(y_i, w * x_i, noise) for x_i, y_i in zip(x, y, strict=True)], axis=0)
joint = normal(w, centre, prior) * likelihood
evidence = np.trapezoid(joint, w)
grid_mean = np.trapezoid(w * joint, w) / evidence
grid_deviation = np.sqrt(np.trapezoid((w - grid_mean) ** 2 * joint, w) / evidence)
assert np.allclose([grid_mean, grid_deviation], [m, s], rtol=1e-9)
assert np.isclose(np.log(evidence), log_evidence, rtol=1e-9)
print(f"posterior: mean {m:.4f}, standard deviation {s:.4f} cm per kg")
print(f"log evidence {log_evidence:.4f} nats")

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4))
line = np.linspace(0, 4, 50)
left.fill_between(line, (m - 2 * s) * line, (m + 2 * s) * line, color="#5A5A5A", alpha=0.3, lw=0)
left.plot(line, m * line, color="k", label="w x: posterior mean, ±2 standard deviations")
left.plot(x, y, "o", color="k", label="data")
left.set(xlabel="load x (kg)", ylabel="stretch y (cm)", xlim=(0, 4))
left.legend(frameon=False, loc="upper left")
scaled = likelihood / np.trapezoid(likelihood, w)
right.plot(w, normal(w, centre, prior), color="#E69F00", ls=":", lw=2, label="prior")
right.plot(w, scaled, color="#009E73", ls="--", label="likelihood (scaled)")
right.plot(w, normal(w, m, s), color="k", label="posterior")
right.set(xlabel="weight w (cm per kg)", ylabel="density (kg per cm)", xlim=(3.5, 7), ylim=(0, 3))
right.legend(frameon=False, loc="upper left")
plt.show()

# %% [markdown]
# *Left: eight measured stretches, and the band of lines that the posterior allows, from a point at
# load zero to two and a half centimetres wide at 4 kg. Right: the prior around 5, the likelihood
# to the right of it, and the posterior between the two, narrower than both.*
#
# Eight noisy points do not fix one $w$. The posterior keeps all that fit, and the standard
# deviation of $w x$ is $|x|\,\Lambda^{-1/2}$, growing with the load.
#
# ## 2. The free energy
#
# For a network the integral $P(D)$ is out of reach. Choose a family, $q(w) = N(w; \mu, \sigma^2)$,
# and minimise ([K5](../derivations.md#k5))
#
# $$F(\mu, \sigma) = \mathrm{KL}(q\,\|\,P(w)) + E_q[-\log P(D|w)]
#   = \mathrm{KL}(q\,\|\,P(w|D)) - \log P(D).$$
#
# The first form can be computed; the second says that $F \ge -\log P(D)$, with equality where $q$
# is the posterior. For one weight
#
# $$\mathrm{KL} = \log\frac{\sigma_0}{\sigma} + \frac{(\mu - w_0)^2 + \sigma^2}{2\sigma_0^2}
#   - \frac12, \qquad
# E_q[-\log P(D|w)] = \frac N2 \log 2\pi\sigma_y^2
#   + \sum_i \frac{(y_i - \mu x_i)^2 + \sigma^2 x_i^2}{2\sigma_y^2},$$
#
# and differentiated, with $\Lambda$ and $m$ of Section 1,
#
# $$\frac{\partial F}{\partial\mu} = \Lambda\,(\mu - m), \qquad
# \frac{\partial F}{\partial\sigma} = \Lambda\,\sigma - \frac1\sigma :$$
#
# both vanish at the exact posterior.


# %%
def kl_to(mean, deviation, mu, sigma):
    """KL(N(mu, sigma^2) || N(mean, deviation^2)) in nats."""
    squares = (sigma**2 + (mu - mean) ** 2) / (2 * deviation**2)
    return np.log(deviation / sigma) + squares - 0.5


def exact_free_energy(mu, sigma):
    squares = y @ y - 2 * mu * (x @ y) + (mu**2 + sigma**2) * (x @ x)
    expected_nll = 0.5 * len(x) * (LOG_2PI + 2 * np.log(noise)) + squares / (2 * noise**2)
    return kl_to(centre, prior, mu, sigma) + expected_nll


def exact_value_and_grad(theta):
    mu, sigma = theta
    grad = np.array([precision * (mu - m), precision * sigma - 1 / sigma])
    return exact_free_energy(mu, sigma), grad


verify("F(mu, sigma)", exact_value_and_grad, np.array([5.3, 0.4]))
grid_mu, grid_sigma = np.meshgrid(np.linspace(5.1, 7.1, 201), np.linspace(0.004, 0.6, 299))
F = exact_free_energy(grid_mu, grid_sigma)
difference = F + log_evidence - kl_to(m, s, grid_mu, grid_sigma)
print(f"largest |F - [KL(q || posterior) - log P(D)]|: {np.abs(difference).max():.0e} nats")
assert np.abs(difference).max() < 1e-11
print(f"F(m, s) = {exact_free_energy(m, s):.4f}, -log P(D) = {-log_evidence:.4f} nats")
assert np.isclose(exact_free_energy(m, s), -log_evidence, rtol=1e-13)

# %% [markdown]
# ## 3. The reparameterised gradient
#
# With a network inside, $E_q$ has no closed form, but it can be sampled. Write the weight as a
# function of the parameters and of noise that does not depend on them:
#
# $$\epsilon \sim N(0, 1)\;(\text{K1}), \quad \theta = (\mu, \rho)\;(\text{K2}), \quad
# \sigma = \log(1 + e^\rho)\;(\text{K3}), \quad w = \mu + \sigma\epsilon\;(\text{K4}).$$
#
# At fixed $\epsilon$ the cost $\log q - \log P(w) - \log P(D|w)$ is an ordinary function of
# $\theta$. The constants of the first two terms cancel (K9):
#
# $$\log q = -\log\sigma - \tfrac12\epsilon^2 \;(\text{K10}), \qquad
# \log P(w) = -\log\sigma_0 - \frac{(w - w_0)^2}{2\sigma_0^2} \;(\text{K13}),$$
#
# $$-\log P(D|w) = \sum_i \Big[\frac{(y_i - f_i)^2}{2\sigma_y^2} + \log\sigma_y
#   + \tfrac12\log 2\pi\Big] \;(\text{K15}), \qquad f_i = w x_i .$$
#
# In K10 **$\mu$ has dropped out of $\log q$**. The inner derivatives are
#
# $$\frac{\partial w}{\partial\mu} = 1 \;(\text{K20}), \qquad
# \frac{\partial\sigma}{\partial\rho} = \frac{e^\rho}{1 + e^\rho} = \mathrm{sig}(\rho)
# \;(\text{K24}), \qquad
# \frac{\partial w}{\partial\rho} = \epsilon\,\mathrm{sig}(\rho) \;(\text{K28}).$$
#
# With $g_w = \partial(-\log P(D|w))/\partial w = -\sum_i (y_i - w x_i)\,x_i/\sigma_y^2$ the chain
# rule gives
#
# $$\frac{\partial F}{\partial\mu} = \frac{w - w_0}{\sigma_0^2} + g_w \;(\text{K21}), \qquad
# \frac{\partial F}{\partial\rho} = \Big[-\frac1\sigma
#   + \Big(\frac{w - w_0}{\sigma_0^2} + g_w\Big)\,\epsilon\Big]\,\mathrm{sig}(\rho)
#   \;(\text{K30}).$$


# %%
def free_energy(theta, eps):
    """Return F, the mean over the samples eps (S,), and its gradient for theta = (mu, rho)."""
    mu, rho = theta  # K2
    sigma = softplus(rho)  # K3
    w = mu + sigma * eps  # K4  (S,)
    f = w[:, None] * x  # (S, N)

    log_q = -np.log(sigma) - eps**2 / 2  # K10
    log_prior = -np.log(prior) - (w - centre) ** 2 / (2 * prior**2)  # K13
    nll = (y - f) ** 2 / (2 * noise**2) + np.log(noise) + LOG_2PI / 2  # K15  (S, N)
    value = np.mean(log_q - log_prior + nll.sum(axis=1))  # K5, K9

    g_w = -(y - f) @ x / noise**2  # (S,)
    d_w = (w - centre) / prior**2 + g_w
    d_mu = d_w.mean()  # K21
    d_rho = (-1 / sigma + d_w * eps).mean() * sigmoid(rho)  # K30
    return value, np.array([d_mu, d_rho])


theta = np.array([5.4, -1.0])
eps = rng.standard_normal(5)
verify("K21, K30", lambda theta: free_energy(theta, eps), theta)

# %% [markdown]
# ### A check must be able to fail
#
# Two mistakes that are easy to make: $+1/\sigma$ in K30, and *the score counted twice*. In the
# second one remembers that $q$ contains $\mu$ and $\rho$ directly, which K10 has already taken
# into account, and adds
#
# $$\frac{\partial\log q}{\partial\mu}\Big|_w = \frac\epsilon\sigma, \qquad
# \frac{\partial\log q}{\partial\rho}\Big|_w = \frac{\epsilon^2 - 1}{\sigma}\,\mathrm{sig}(\rho).$$


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
# ### Right on average?
#
# The mean over $\epsilon$ should be the gradient of the exact $F$,
# $\partial F/\partial\rho = (\Lambda\sigma - 1/\sigma)\,\mathrm{sig}(\rho)$. In units of its
# standard error
# (s.e.), $|z| \gt 4$ has probability below $10^{-4}$.


# %%
def exact_in_rho(theta):
    sigma = softplus(theta[1])
    value, (d_mu, d_sigma) = exact_value_and_grad(np.array([theta[0], sigma]))
    return value, np.array([d_mu, d_sigma * sigmoid(theta[1])])


verify("F(mu, rho)", exact_in_rho, theta)
exact = exact_in_rho(theta)[1]
z = {}
draws = np.random.default_rng(1).standard_normal((2000, 5))
print(f"exact {np.round(exact, 3)}; means of 2000 draws for (mu, rho):")
for estimator in (free_energy, plus_one_over_sigma, score_counted_twice):
    grads = np.array([estimator(theta, row)[1] for row in draws])
    mean, error = grads.mean(axis=0), grads.std(axis=0, ddof=1) / np.sqrt(2000)
    name = estimator.__name__
    z[name] = (mean - exact) / error
    print(f"{name:<20} {np.round(mean, 3)}, s.e. {np.round(error, 3)}, z {np.round(z[name], 1)}")
assert np.abs(z["free_energy"]).max() < 4
assert np.abs(z["plus_one_over_sigma"][1]) > 10
assert np.abs(z["score_counted_twice"]).max() < 4

optimum = np.array([m, inverse_softplus(s)])
spread = {
    f.__name__: np.std([f(optimum, row)[1][0] for row in draws])
    for f in (free_energy, score_counted_twice)
}
ratio = spread["score_counted_twice"] / spread["free_energy"]
print(f"standard deviation of dF/dmu at the optimum, score counted twice / once: {ratio:.6f}")
assert np.isclose(ratio, 2)

# %% [markdown]
# **The score has mean zero: no average over samples finds that it was counted twice; the check at
# fixed noise does.** It does harm: at the optimum, where
# $(w - w_0)/\sigma_0^2 + g_w = \epsilon/\sigma$, it doubles the noise of $\partial F/\partial\mu$.
#
# ### What no gradient check sees
#
# The report prints $-\log\sigma_0$ in the cost for the $+\log\sigma_0$ that K13 gives. A constant
# has no gradient. The value tells: the mean of $\log q - \log P(w)$ is a KL divergence.

# %%
draws = np.random.default_rng(4).standard_normal(200_000)
sigma, wide = softplus(theta[1]), 2.5  # a prior standard deviation of 2.5 cm per kg
sampled = theta[0] + sigma * draws
kl = -np.log(sigma) - 0.5 * draws**2 + np.log(wide) + 0.5 * ((sampled - centre) / wide) ** 2
kl_error = kl.std(ddof=1) / np.sqrt(kl.size)
closed = kl_to(centre, wide, theta[0], sigma)
printed = kl.mean() - 2 * np.log(wide)
print(f"closed form                    {closed:8.4f} nats")
print(f"sampled, + log sigma_0         {kl.mean():8.4f} (s.e. {kl_error:.4f})")
print(f"sampled, - log sigma_0         {printed:8.4f}: a KL divergence below zero")
assert abs(kl.mean() - closed) < 4 * kl_error
assert printed < 0

# %% [markdown]
# ## 4. Descent meets the exact posterior
#
# $$\mu \leftarrow \mu - \eta\,\frac{\partial F}{\partial\mu} \;(\text{K43}), \qquad
# \rho \leftarrow \rho - \eta\,\frac{\partial F}{\partial\rho} \;(\text{K44}).$$
#
# Fresh noise in every step makes the path wander around the optimum; a falling $\eta$ quietens it.
# Twelve runs give standard errors.


# %%
def update(theta, grad, eta):
    """Take one step of gradient descent with learning rate eta."""
    return theta - eta * grad  # K43, K44


def descend(step, theta, steps=2000, eta=0.01):
    """Return the path (steps, size of theta) of `step(theta, eta)`; eta falls as 1 / (1 + 5 t)."""
    path = np.empty((steps, len(theta)))
    for k in range(steps):
        theta = step(theta, eta / (1 + 5 * k / steps))
        path[k] = theta
    return path


def summarise(paths):
    """Return mean and standard error over runs of the path's second half; rho as sigma."""
    half = paths.shape[2] // 2
    ends = paths[:, paths.shape[1] // 2 :].copy()  # (runs, steps / 2, size of theta)
    ends[..., half:] = softplus(ends[..., half:])
    ends = ends.mean(axis=1)
    return ends.mean(axis=0), ends.std(axis=0, ddof=1) / np.sqrt(len(ends))


def one_weight(seed):
    rng = np.random.default_rng(seed)
    return lambda theta, eta: update(theta, free_energy(theta, rng.standard_normal(1))[1], eta)


start = np.array([5.3, -0.5])
paths = np.array([descend(one_weight(seed), start) for seed in range(12)])
found, error = summarise(paths)
for name, value, se, truth in zip(
    ("mean", "standard deviation"), found, error, (m, s), strict=True
):
    print(f"posterior {name}: exact {truth:.4f}, descent {value:.4f} (s.e. {se:.4f}) cm per kg")
    assert abs(value - truth) < 4 * se

# %%
from IPython.display import HTML

from bbb_course.moving import slider

shown = np.unique(np.geomspace(1, 2001, 24).astype(int)) - 1  # few at the end, many early
path, levels = np.vstack([start, paths[0]]), [0.1, 0.3, 1, 3]
film, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), dpi=64)
left.contour(grid_mu, grid_sigma, F + log_evidence, levels, colors="#5A5A5A", linewidths=1)
left.plot(m, s, "*", color="k", ms=13, mec="white", zorder=3)
(trail,) = left.plot([], [], color="#0072B2", lw=0.8)
(dot,) = left.plot([], [], "o", color="#0072B2")
left.set(ylim=(0, 0.6), xlabel="mean μ (cm per kg)", ylabel="standard deviation σ (cm per kg)")
right.plot(w, normal(w, m, s), color="k", label="exact posterior")
(density,) = right.plot([], [], "--", color="#0072B2", label="q")
highest = 1.1 * normal(0, 0, min(s, softplus(path[:, 1]).min()))
right.set(
    xlabel="weight w (cm per kg)", ylabel="density (kg per cm)", xlim=(4, 8), ylim=(0, highest)
)
right.legend(loc="upper right", frameon=False)


def frame(step):
    """Draw q after so many steps."""
    mu, sigma = path[step, 0], softplus(path[step, 1])
    trail.set_data(path[: step + 1, 0], softplus(path[: step + 1, 1]))
    dot.set_data([mu], [sigma])
    density.set_data(w, normal(w, mu, sigma))
    left.set_title(f"step {step}: KL(q ‖ posterior) = {kl_to(m, s, mu, sigma):.3f} nats", size=10)


plt.close(film)
text = (
    "Left, the point of q slides over the contours of F; right, its density beside the posterior's"
)
HTML(slider(film, lambda k: frame(shown[k]), len(shown), text, dpi=64))

# %% [markdown]
# *A film: q starts wide at the left of the contours of F, is soon over the posterior, and stays
# there, trembling.*

# %%
kl_of = kl_to(m, s, path[:, 0], softplus(path[:, 1]))
print(f"KL at the start {kl_of[0]:.3f}, after 100 steps {kl_of[100]:.3f} nats")
print(f"mean of steps 100 to 1000 {kl_of[100:1000].mean():.4f}, of the last 1000", end=" ")
print(f"{kl_of[-1000:].mean():.4f} nats")
assert kl_of[100] < 0.2 * kl_of[0]
assert kl_of[-1000:].mean() < kl_of[100:1000].mean()

# %% [markdown]
# ## 5. The network
#
# Now the weights of a network with the widths `net` $= (d_{in}, \dots, K)$, in one flat vector. A
# leading axis carries $S$ samples of them. Rows of data are rows of matrices. With one hidden
# layer
#
# $$z_0 = x W_0 + b_0 \;(\text{K31}), \qquad a_0 = \mathrm{ReLU}(z_0) = z_0\,[z_0 \gt 0]
# \;(\text{K32}), \qquad f = z_1 = a_0 W_1 + b_1 \;(\text{K36}),$$
#
# and every further one repeats the first two (K33, K34, K35). Backwards, let
# $\delta_l = \partial(-\log P(D|w))/\partial z_l$. From
# $\partial z_1[b,k]/\partial W_1[h,k] = a_0[b,h]$, summed over the rows $b$,
#
# $$\delta_1 = -(y - f)/\sigma_y^2 \;(\text{K37}), \qquad
# dW_1 = a_0^T \delta_1 \;(\text{K38}), \qquad db_1 = \mathbf 1^T \delta_1 \;(\text{K37}),$$
#
# and through the hidden layer, with the gate $[z_0 \gt 0]$ as the slope of ReLU,
#
# $$\delta_0 = (\delta_1 W_1^T) \circ [z_0 \gt 0] \;(\text{K39}), \qquad
# dW_0 = x^T \delta_0 \;(\text{K40, K42}), \qquad
# db_0 = \mathbf 1^T \delta_0 \;(\text{K39, K41}).$$
#
# So a layer remembers what went in, its gate, and its weights.

# %%
from itertools import pairwise

import bbb_numpy as bbb


def unpack(net, w):
    """Cut flat weights (S, P) into W (S, d_in, d_out) and b (S, 1, d_out) of every layer."""
    layers = []
    for d_in, d_out in pairwise(net):
        W, b, w = np.split(w, [d_in * d_out, d_in * d_out + d_out], axis=1)
        layers.append((W.reshape(-1, d_in, d_out), b.reshape(-1, 1, d_out)))
    return layers


def forward(net, w, x):
    """Return the outputs (S, B, K) for the rows x (B, d_in), and what `vjp` needs."""
    a, gate, tape = x, np.ones_like(x), []  # a_{-1} = x is never off
    for W, b in unpack(net, w):
        tape.append((a, gate, W))  # a_{l-1}, its gate, W_l
        z = a @ W + b  # K31, K33, K36  (S, B, d_out)
        gate = z.real > 0  # [z > 0]; z is complex in a complex step
        a = z * gate  # K32, K34, K35: ReLU(z)
    return z, tape  # K36: no ReLU at the end


def vjp(tape, d_f):
    """Pull d_f (S, B, K), a slope for the outputs, back to the slope for the weights (S, P)."""
    d_w = []
    delta = d_f  # delta_{L-1}
    for a, gate, W in reversed(tape):
        d_b = delta.sum(axis=1)  # K37, K39, K41
        d_W = a.mT @ delta  # K38, K40, K42
        d_w = [d_W.reshape(len(W), -1), d_b, *d_w]  # in the order of unpack
        delta = (delta @ W.mT) * gate  # K39, K41: delta_{l-1}
    return np.concatenate(d_w, axis=1)


def network_nll(w, net, x, y):
    """Return -log P(D|w) and its gradient g_w for one flat weight vector w (P,)."""
    f, tape = forward(net, w[None], x)
    nll = (y - f) ** 2 / (2 * noise**2) + np.log(noise) + LOG_2PI / 2  # K15
    return nll.sum(), vjp(tape, -(y - f) / noise**2)[0]  # K37


def gates(net, w, x):
    """Return which units are on: central differences keep off places where this changes."""
    return np.concatenate([gate.ravel() for _, gate, _ in forward(net, w, x)[1]])


rng = np.random.default_rng(6)
noise = 0.7
net = (2, 4, 5, 3)
x, y = rng.standard_normal((6, 2)), rng.standard_normal((6, 3))
verify(
    "K37-K42",
    lambda w: network_nll(w, net, x, y),
    rng.standard_normal(bbb.MLP(net).layout.size),
    gates=lambda w: gates(net, w[None], x),
)

# %% [markdown]
# ### The order of the factors
#
# The report prints $-(y - \hat y)\,w_n\,[z_{n-1} \gt 0]\,a_{n-2}$ for $dW_{n-1}$ (K40). Read as
# elementwise products, with equal widths and $B = 1$, this *has the right shape* and wrong
# numbers:
#
# $$\text{right: } dW_0[i, h] = x_i\,[z_h \gt 0] \sum_k \delta_1[k]\,W_1[h, k], \qquad
# \text{elementwise: } \delta_1[h]\,W_1[i, h]\,[z_h \gt 0]\,x_h .$$


# %%
def elementwise_k40(w, net, x, y):
    """Return the value, and the gradient with K40 read as elementwise products."""
    nll, g = network_nll(w, net, x, y)
    f, ((_, _, W0), (_, gate, W1)) = forward(net, w[None], x)
    d_W0 = -(y - f) / noise**2 * W1 * gate * x
    assert d_W0.shape == W0.shape  # no error betrays it
    return nll, np.concatenate([d_W0.ravel(), g[W0.size :]])


rng = np.random.default_rng(2)
square = (3, 3, 3)
x, y = rng.standard_normal((1, 3)), rng.standard_normal((1, 3))
w = rng.standard_normal(bbb.MLP(square).layout.size)
for function in (network_nll, elementwise_k40):
    report = gradcheck.check(lambda w, f=function: f(w, square, x, y), w)
    print(f"{function.__name__}: error {report.error:.0e}, {'ok' if report.passed else 'caught'}")
    assert report.passed == (function is network_nll)

# %% [markdown]
# ## 6. The step
#
# One $\mu_j$ and one $\rho_j$ for each weight, independent noise: the *mean field*. K21 and K30
# hold for each $j$; all they need of the model is $g_w$, and `vjp` has it. The prior is around 0
# again.
#
# A step sees a minibatch $D_i$. The KL term belongs to all data, so minibatch $i$ pays the share
# $\pi_i$ ([K18](../derivations.md#k18),
# [D6](../derivations/training.md#d6-sharing-the-complexity-cost-between-minibatches)), for $B_i$
# of $N$ rows $B_i/N$:
#
# $$F_i = \pi_i\,\big[\log q(w|\theta) - \log P(w)\big] - \log P(D_i|w), \qquad \sum_i \pi_i = 1 .$$


# %%
def value_and_grad(net, theta, eps, x, y, prior, noise, pi):
    """Return the free energy of a minibatch (nats) and its gradient for theta."""
    mu, rho = np.split(theta, 2)  # K2  (P,)
    sigma = softplus(rho)  # K3
    w = mu + sigma * eps  # K4  (S, P)
    f, tape = forward(net, w, x)  # K31-K36  (S, B, K)

    log_q = -np.log(sigma) - eps**2 / 2  # K10  (S, P)
    log_prior = -np.log(prior) - w**2 / (2 * prior**2)  # K13  (S, P)
    nll = (y - f) ** 2 / (2 * noise**2) + np.log(noise) + LOG_2PI / 2  # K15  (S, B, K)
    kl = np.sum(log_q - log_prior, axis=1)  # K9: log 2 pi cancels  (S,)
    value = np.mean(pi * kl + np.sum(nll, axis=(1, 2)))  # K5, K18

    g_w = vjp(tape, -(y - f) / noise**2)  # K37-K42  (S, P)
    d_w = pi * w / prior**2 + g_w  # K21  (S, P)
    d_mu = d_w.mean(axis=0)  # K20: dw/dmu = 1  (P,)
    d_rho = (-pi / sigma + d_w * eps).mean(axis=0) * sigmoid(rho)  # K30  (P,)
    return value, np.concatenate([d_mu, d_rho])


rng = np.random.default_rng(6)
net, prior, noise, S = (2, 5, 3), 1.5, 0.7, 4
x, y = rng.standard_normal((6, 2)), rng.standard_normal((6, 3))
P = bbb.MLP(net).layout.size  # 33 weights and biases
eps = rng.standard_normal((S, P))
theta = np.concatenate([rng.standard_normal(P), rng.uniform(-3, 0, P)])


def cost(theta, rows=slice(None), pi=1.0):
    return value_and_grad(net, theta, eps, x[rows], y[rows], prior, noise, pi)


def gates_of(theta):
    mu, rho = np.split(theta, 2)
    return gates(net, mu + softplus(rho) * eps, x)


verify("all data, K1-K42", cost, theta, gates=gates_of)
verify("a minibatch", lambda t: cost(t, slice(4), pi=4 / 6), theta, gates=gates_of)
parts = cost(theta, slice(4), pi=4 / 6)[0] + cost(theta, slice(4, 6), pi=2 / 6)[0]
print(f"F {cost(theta)[0]:.6f}, of two minibatches together {parts:.6f} nats")
assert np.isclose(parts, cost(theta)[0], rtol=1e-13)

# %% [markdown]
# ## 7. Training and prediction
#
# An epoch visits all rows once, in a new order. A prediction is a mean over weights, and its
# variance is that of the functions and that of the noise around them
# ([D4](../derivations/prediction.md#d4-epistemic-and-aleatoric-variance)):
#
# $$\mathrm{Var}[y] = \underbrace{\mathrm{Var}_q[f(x, w)]}_{\text{epistemic}} + \sigma_y^2 .$$


# %%
def fit(net, theta, x, y, prior, noise, eta, epochs, batch_size, samples, rng):
    """Return theta after descent with rate eta: shuffled minibatches, fresh noise at every step."""
    for _ in range(epochs):
        order = rng.permutation(len(x))
        for rows in np.split(order, range(batch_size, len(x), batch_size)):
            eps = rng.standard_normal((samples, theta.size // 2))  # K1  (S, P)
            pi = len(rows) / len(x)  # these add up to 1
            _, grad = value_and_grad(net, theta, eps, x[rows], y[rows], prior, noise, pi)
            theta = update(theta, grad, eta)
    return theta


def predict(net, theta, x, noise, samples, rng):
    """Return the mean of a new y, its epistemic and its total standard deviation, (B, K) each."""
    mu, rho = np.split(theta, 2)  # K2
    eps = rng.standard_normal((samples, mu.size))  # K1  (S, P)
    f, _ = forward(net, mu + softplus(rho) * eps, x)  # K3, K4, K31-K36  (S, B, K)
    epistemic = f.std(axis=0, ddof=1)  # D4: between functions
    total = np.sqrt(epistemic**2 + noise**2)  # D4: and the noise of y
    return f.mean(axis=0), epistemic, total


# %% [markdown]
# A network without a hidden layer has an exact answer
# ([D8](../derivations/why.md#d8-the-exact-answers-of-linear-regression)). Two springs hang one
# below the other. The upper carries $x_1$, the lower $x_2$, nearly the same load (kg, counted from
# a middle one), and the ruler's zero is off: the weights are $w_1$, $w_2$ and an offset. With the
# rows $(x_1, x_2, 1)$ in $X$, the posterior is $N(m, \Lambda^{-1})$,
# $\Lambda = I/\sigma_0^2 + X^T X/\sigma_y^2$, a full matrix: only the sum of $w_1$ and $w_2$ is
# well measured. For the mean field
#
# $$F = \tfrac12 (\mu - m)^T \Lambda\,(\mu - m) + \sum_j \big[\tfrac12\Lambda_{jj}\sigma_j^2
#   - \log\sigma_j\big] + \text{const},$$
#
# least at $\mu = m$, $\sigma_j = \Lambda_{jj}^{-1/2}$. That is at most the standard deviation
# $(\Lambda^{-1})_{jj}^{1/2}$ of the weight alone: **a mean field is too sure of itself**. What
# remains of $\mathrm{KL}(q\,\|\,P(w|D))$ is the gap
# $\tfrac12\big(\sum_j \log\Lambda_{jj} - \log\det\Lambda\big)$.

# %%
rng = np.random.default_rng(5)
net, prior, noise = (2, 1), 2.0, 1.0
common = rng.uniform(-1, 1, 30)
x = np.column_stack([common, common + 0.4 * rng.standard_normal(30)])
X = np.column_stack([x, np.ones(30)])  # (N, P)
y = (X @ [1.0, 1.5, -0.5] + noise * rng.standard_normal(30))[:, None]

precision = np.eye(3) / prior**2 + X.T @ X / noise**2
m = np.linalg.solve(precision, X.T @ y[:, 0]) / noise**2
covariance = np.linalg.inv(precision)
mean_field, alone = np.diag(precision) ** -0.5, np.sqrt(np.diag(covariance))
log_evidence = log_normal(y[:, 0], noise**2 * np.eye(30) + prior**2 * X @ X.T)

exact = np.concatenate([m, mean_field])
optimum = np.concatenate([m, inverse_softplus(mean_field)])
gap = 0.5 * (np.log(np.diag(precision)).sum() - np.linalg.slogdet(precision)[1])
draws = rng.standard_normal((4000, 1, 3))
results = [value_and_grad(net, optimum, eps, x, y, prior, noise, 1.0) for eps in draws]
sampled = np.array([[value, *grad] for value, grad in results])
mean, se = sampled.mean(axis=0), sampled.std(axis=0, ddof=1) / np.sqrt(4000)
print(f"-log P(D) {-log_evidence:.4f} + gap {gap:.4f} = {-log_evidence + gap:.4f} nats")
print(f"F there, mean of 4000 samples {mean[0]:.4f} (s.e. {se[0]:.4f}) nats")
print(f"its gradient there in units of its s.e. {np.round(mean[1:] / se[1:], 1)}")
assert (np.abs(mean - [-log_evidence + gap, *np.zeros(6)]) < 4 * se).all()


# %%
def one_epoch(seed):
    """One step of `descend` is one epoch: all rows at once, two samples."""
    rng = np.random.default_rng(seed)
    return lambda theta, eta: fit(net, theta, x, y, prior, noise, eta, 1, 30, 2, rng)


start = np.concatenate([np.zeros(3), np.full(3, -1.0)])
found, error = summarise(np.array([descend(one_epoch(seed), start) for seed in range(12)]))
names = [f"{what} {of}" for what in ("mean", "standard deviation") for of in ("w1", "w2", "offset")]
for name, *numbers in zip(names, exact, found, error, strict=True):
    print("{:<17} best {:7.4f}, descent {:7.4f} (s.e. {:.4f})".format(name, *numbers))
print(f"exact posterior standard deviations of single weights: {np.round(alone, 4)}")
assert (np.abs(found - exact) < 4 * error).all()

# %% [markdown]
# Of both springs stretched together the mean field knows less than the data say; of the difference
# between them it claims to know more.

# %%
rows = np.array([[1.0, 1.0], [1.0, -1.0]])
_, sampled, _ = predict(net, optimum, rows, noise, 4000, np.random.default_rng(0))
rows = np.column_stack([rows, np.ones(2)])
closed = np.sqrt(rows**2 @ mean_field**2)
print("standard deviation of f at (1, 1) and (1, -1), in cm")
print(f"exact posterior {np.round(np.sqrt(np.diag(rows @ covariance @ rows.T)), 3)}")
print(f"mean field      {np.round(closed, 3)}, predicted {np.round(sampled[:, 0], 3)}")
assert (np.abs(sampled[:, 0] / closed - 1) < 4 / np.sqrt(2 * 4000)).all()

angle = np.linspace(0, 2 * np.pi, 200)
circle = 2 * np.array([np.cos(angle), np.sin(angle)])  # two standard deviations
fig, ax = plt.subplots(figsize=(5, 3.8))
w1, w2 = m[:2, None] + np.linalg.cholesky(covariance[:2, :2]) @ circle
ax.fill(w1, w2, color="#5A5A5A", alpha=0.4, lw=0, label="exact posterior")
ax.plot(*(m[:2, None] + mean_field[:2, None] * circle), "--", color="#0072B2", label="mean field")
ax.plot(*m[:2], "+", color="k")
ax.set(xlabel="w1 (cm per kg)", ylabel="w2 (cm per kg)", aspect="equal")
ax.set_title("contours at two standard deviations", fontsize=10)
ax.legend(loc="upper right", frameon=False)
plt.show()

# %% [markdown]
# *The exact posterior of the two weights is a narrow ellipse from the upper left to the lower
# right: their sum is known, their difference is not. The mean field is an upright ellipse, much
# shorter, and a little too wide across.*
#
# ## 8. These lines are `plain.py`
#
# [plain.py](../bbb_numpy/plain.py) holds these functions, and computes the same to the last bit:

# %%
from types import SimpleNamespace

rng = np.random.default_rng(8)
net, prior, noise = (2, 5, 3), 1.5, 0.7
x, y, eps = (rng.standard_normal(shape) for shape in ((6, 2), (6, 3), (4, P)))
theta = np.concatenate([rng.standard_normal(P), rng.uniform(-3, 0, P)])
problem = (net, theta, eps, x, y, prior, noise, 0.25)
run, asked = (net, theta, x, y, prior, noise, 1e-3, 10, 4, 2), (net, theta, x, noise, 50)


def numbers_of(functions):
    """Return all numbers of a module's, or this notebook's, functions, each with the same noise."""
    value, grad = functions.value_and_grad(*problem)
    trained = functions.fit(*run, np.random.default_rng(0))
    return value, grad, trained, *functions.predict(*asked, np.random.default_rng(0))


here = SimpleNamespace(value_and_grad=value_and_grad, fit=fit, predict=predict)
assert all(np.array_equal(a, b) for a, b in zip(numbers_of(here), numbers_of(plain), strict=True))
print("the same bits")

# %% [markdown]
# The fast path has the same pieces with buffers, for other models too:
# [`network.vjp`](../bbb_numpy/parts/network.py) holds K37-K42,
# [`posteriors.MeanField.pull_back`](../bbb_numpy/parts/posteriors.py) K21 and K30,
# [`Reparameterised`](../bbb_numpy/gradients/reparameterised.py) joins them. It is what trains, so
# it is what is checked; `bbb-numpy gradcheck` does that for any network.

# %%
model = bbb.Model(bbb.MLP(net), bbb.GaussianPrior(prior), bbb.GaussianLikelihood(noise))
fast = bbb.Reparameterised(model)
value, grad = fast.value_and_grad(theta, eps, x, y, 0.25)[:2]
plain_value, plain_grad = plain.value_and_grad(*problem)
difference = np.abs(grad - plain_grad).max() / np.abs(plain_grad).max()
print(f"F: fast {value:.6f}, plain {plain_value:.6f} nats")
print(f"largest difference of the gradients / largest gradient: {difference:.0e}")
assert np.isclose(value, plain_value, rtol=1e-13)
assert difference < 1e-13
verify("fast path", lambda t: fast.value_and_grad(t, eps, x, y, 0.25)[:2], theta, gates=gates_of)

# %% [markdown]
# ## 9. The report's cubic
#
# The report's second problem is $y = x^3 + N(0, 3^2)$ on $[-4, 4]$. Here $x$ and $y$ are scaled to
# unit standard deviation, the noise is given its true one in place of 1, and $\sigma$ starts at
# 0.13.

# %%
from bbb_numpy.evaluation.predictive import Predictive
from bbb_numpy.plots import fits as plots
from bbb_studies.data import toys

rng = np.random.default_rng(7)
x, y, truth = toys.cubic(rng, rows=500, low=-4, high=4, noise=3)
x_scale, y_scale = x.std(), y.std()
net, prior, noise = (1, 50, 1), 1.0, 3 / y_scale
size = {"eta": 5e-4, "epochs": 400, "batch_size": 25, "samples": 1}
theta = plain.init(net, rng)
theta = plain.fit(net, theta, x / x_scale, y / y_scale, prior, noise, **size, rng=rng)

line = np.linspace(-6.5, 6.5, 261)[:, None]
mean, deviation, _ = plain.predict(net, theta, line / x_scale, noise, 500, rng)
shown = Predictive(y_scale * mean, y_scale * deviation, 3 + 0 * mean)  # in the units of y
error, inside = shown.mean - truth(line), np.abs(line) <= 4
rmse, edge = np.sqrt(np.mean(error[inside] ** 2)), np.abs(np.abs(line) - 6) < 1e-9
print(
    f"inside the data: RMSE of the mean {rmse:.2f}, epistemic {shown.epistemic[inside].mean():.2f}"
)
print(
    f"at -6 and 6: errors {np.round(error[edge])}, epistemic {np.round(shown.epistemic[edge], 1)}"
)
assert rmse < 3  # below the noise
assert shown.epistemic[edge].min() > 4 * shown.epistemic[inside].mean()

fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2))
plots.fit(line, shown, data=(x, y), truth=truth, y_limits=(-290, 290), ax=left)
plots.fit(line, shown, data=(x, y), truth=truth, less_truth=True, y_limits=(-18, 18), ax=right)
left.set(xlabel="x (dimensionless)", ylabel="y (dimensionless)")
for ax, title in ((left, "(a) the fit"), (right, "(b) the same, less the truth")):
    ax.set_title(title, pad=36, fontsize=10)
right.set(xlabel="x (dimensionless)", ylabel="y − x³ (dimensionless)", xlim=(-4.4, 4.4))
plt.show()

# %% [markdown]
# *The cubic, 500 noisy points between -4 and 4, and the fit with its bands. Between the dotted
# ends of the data the mean lies near the curve; beyond them it runs on as a straight line, in a
# band that widens, while the curve turns away. On the right, less the truth, the bands within the
# data.*
#
# Outside the data the band opens, not nearly as far as the error goes. The gradients are exact all
# the same. What is limited is the network, which goes on in straight lines, and the mean field.
#
# ### The report's own start
#
# The report starts at $\rho = -5$, $\sigma = 0.0067$, and stops after 100 epochs with
# $\eta = 10^{-3}$. As long as $-1/\sigma$ rules K30, an epoch adds $\eta$ to $\rho$ whatever the
# data say; the start is forgotten after about $\log(\Lambda^{-1/2} / \sigma_{start})/\eta$ epochs
# ([derivation](../derivations/training.md#how-long-sigma-stays-at-its-start)). The spring, from
# both starts:

# %%
net, prior, noise, marks = (1, 20, 1), 1.0, 0.3, (0, 300, 1000, 2000, 4000)
end, sigmas = {}, {}
for name, first in (("-2", -2), ("-5", plain.SECTION_7)):
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, (100, 1))
    y = x**2 + 0.3 * rng.standard_normal((100, 1))
    theta = plain.init(net, rng, first)
    for before, mark in pairwise((0, *marks)):
        theta = plain.fit(net, theta, x, y, prior, noise, 2e-3, mark - before, 10, 1, rng)
        sigmas[name, mark] = softplus(np.split(theta, 2)[1])
        end[name, mark] = plain.predict(
            net, theta, np.array([[6.0]]), noise, 1000, np.random.default_rng(1)
        )[1].item()
print("epochs, then from rho = -2 and -5: median sigma (without data), epistemic at x = 6")
for mark in marks:
    text = [
        f"{np.median(sigmas[name, mark]):6.3f} ({without_data(first, mark):6.3f})"
        f"{end[name, mark]:6.2f}"
        for name, first in (("-2", -2.0), ("-5", -5.0))
    ]
    print(f"{mark:5}   " + "     ".join(text))
free = without_data(plain.SECTION_7, 300)
print(f"-5, 300 epochs: {np.mean(np.abs(sigmas['-5', 300] / free - 1) < 0.05):.0%} of the weights")
print("within 5% of what they would be without data")
assert end["-2", 300] > 4 * end["-5", 300]
assert np.isclose(end["-2", 4000], end["-5", 4000], rtol=0.25)

# %% [markdown]
# From $\rho = -5$ the band after 300 epochs is that of the start: no data have entered. After
# 4,000 both starts are at the same place. **Whoever stops early has learned nothing of the
# uncertainty.** Momentum divides the time by ten, and Adam counts steps in place of epochs:
# `BayesianMLPRegressor` and `bbb-numpy report` use it. No check of a gradient makes $q$ a good
# posterior.
#
# ## 10. Exercises
#
# 1. The report prints $\partial P(D|w)/\partial w$ where $\partial(-\log P(D|w))/\partial w$ is
#    meant. Code it as printed, for one weight, and read what `gradcheck.check` says.
# 2. In Section 3, *subtract* $\epsilon/\sigma$ from $\partial F/\partial\mu$. What is its standard
#    deviation at the optimum now? Is it unbiased? Why does it not pass the check?
# 3. Give the springs of Section 7 a full covariance: $w = \mu + C\epsilon$, $C$ lower triangular.
#    Derive the gradient for $C$, check it, and see the gap close.
# 4. Put $\tanh$ for ReLU in Section 5. Which lines change, and why does the central difference
#    then need no `gates`?
# 5. Train the cubic on $[-1, 1]$ with 125 rows. How does the epistemic standard deviation at
#    $x = \pm 6$ compare with the error there?
# 6. Give the descent of Section 4 a memory ([D2](../derivations/training.md#d2-momentum)):
#    $v \leftarrow 0.9\,v + g$, and a step of $-\eta\,v$. Up to which $\eta$ does $\mu$ stay at its
#    optimum, without and with it?
# 7. Make the noise of K1 yourself, from uniform numbers
#    ([D11](../derivations/numbers-and-proofs.md#d11-normal-noise-from-uniform-noise)). Which is
#    the largest number that can come out if the uniform ones are float32?
#
# <details><summary>Hints</summary>
#
# 1. [K19](../derivations.md#k19): $\partial P/\partial w = -P\,g_w$, and a density of eight
#    targets is a tiny number.
# 2. At the optimum $(w - w_0)/\sigma_0^2 + g_w$ is $\epsilon/\sigma$: the difference is 0 for
#    every $\epsilon$. It is the gradient of another function:
#    [D20](../derivations/estimators.md#d20-sticking-the-landing).
# 3. [M3](../derivations/correlated-posteriors.md#m3-the-gradient-for-l) is a lower triangle. The
#    posterior is now in the family.
# 4. The gate becomes $1 - a^2$ ([D10](../derivations/numbers-and-proofs.md#d10-tanh)), which has
#    no kink.
# 5. Outside the data the mean goes on as a straight line, and at $x = 6$ the truth is 216.
# 6. The curvature of $F$ for $\mu$ is $1/s^2$. Powers die out for $\eta / s^2 \lt 2$ without a
#    memory, and $\eta / s^2 \lt 2\,(1 + 0.9)$ with it.
# 7. A uniform float32 number is a multiple of $2^{-24}$, so that no radius is above
#    $\sqrt{48\log 2} = 5.77$.
#
# </details>
#
# **Next:** [02](02_mixture_prior.ipynb) puts a mixture in the place of the Gaussian prior. All
# equations in their order: [derivations.md](../derivations.md).
