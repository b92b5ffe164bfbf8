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
# # A prior that is learned: the scale mixture
#
# A Gaussian prior says that all weights are of one size. A mixture of a wide and a narrow Gaussian
# says that most weights are small and some are not. Its own three numbers can be learned with
# everything else. Here are 32 points, and the network of M. Krasser's post *Variational inference
# in Bayesian neural networks* (2019), which learns them. Beside it the same network, with the prior
# fixed at its start.
#
# **It takes** about 40 minutes to read and 7 seconds of processor time to run.

# %%
import matplotlib.pyplot as plt
import numpy as np

import bbb_numpy as bbb
from bbb_numpy.numeric.elementary import LOG_2PI, inverse_softplus, sigmoid, softplus
from bbb_numpy.plots import fits
from bbb_numpy.plots.style import BLACK, BLUE, GREY, SKY, VERMILLION
from bbb_studies import krasser

plt.rcParams.update({"figure.dpi": 150, "figure.constrained_layout.use": True})
ABOVE = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "frameon": False}  # of a legend
TITLES = {"post": "prior learned, as in the post", "fixed": "prior fixed"}

runs = {name: krasser.run(name) for name in TITLES}
fig, axes = plt.subplots(1, 2, figsize=(11, 4.2), sharey=True)
for ax, (name, result) in zip(axes, runs.items(), strict=True):
    data = {"data": result.data[:2], "truth": result.data.truth}
    fits.fit(result.x, result.predictive, **data, y_limits=(-16, 16), ax=ax)
    ax.set(xlabel="x (dimensionless)", ylabel="y (dimensionless)")
    ax.set_title(TITLES[name], fontsize="medium", pad=36)
axes[1].set_ylabel("")
plt.show()

# %% [markdown]
# *Two fits of 32 noisy points of one period of a sine, between -0.5 and 0.5. With the learned prior
# the inner band opens on either side of the data; with the fixed one it stays narrow, and runs on
# with confidence.*
#
# Sections 1 to 5 derive what the left one needs, and **check every gradient in the cell where it is
# coded**, by complex step (error at most $10^{-12}$) and by central differences ($10^{-6}$), as in
# [01](01_from_one_weight_to_the_network.ipynb). Sections 6 to 8 say what the difference comes from.
# The notebook takes half an hour to read, and some ten seconds to run. Tags such as R4 are entries
# of [Priors](../derivations/priors.md). Log densities are in nats.
#
# ## 1. The density, and its logarithm
#
# With $\lambda$ the share of the wide component
# ([R4](../derivations/priors.md#r4-the-scale-mixture-prior)),
#
# $$P(w) = \lambda\,N(w; 0, \sigma_1^2) + (1 - \lambda)\,N(w; 0, \sigma_2^2), \qquad
#   \sigma_1 \gt \sigma_2 .$$
#
# The post computes $\log P$ as it stands here. In floating point a density is 0 below $e^{-745}$,
# and the logarithm $-\infty$. So never leave the logarithmic scale:
#
# $$l_1 = \log\lambda - \log\sigma_1 - \frac{w^2}{2\sigma_1^2}, \qquad
#   l_2 = \log(1 - \lambda) - \log\sigma_2 - \frac{w^2}{2\sigma_2^2}, \qquad c = \max(l_1, l_2),$$
#
# $$\log P(w) = c + \log\big(e^{l_1 - c} + e^{l_2 - c}\big) - \tfrac12\log 2\pi \;(\text{R4}).$$


# %%
def components(w, pi, s1, s2):
    """Return l1 and l2, each like w."""
    l1 = np.log(pi) - np.log(s1) - 0.5 * (w / s1) ** 2
    l2 = np.log(1 - pi) - np.log(s2) - 0.5 * (w / s2) ** 2
    return l1, l2


def log_mixture(w, pi, s1, s2):
    """Return log P(w), each like w (R4)."""
    l1, l2 = components(w, pi, s1, s2)
    c = np.where(l1.real > l2.real, l1, l2)  # real parts: so a complex step passes
    return c + np.log(np.exp(l1 - c) + np.exp(l2 - c)) - 0.5 * LOG_2PI


def printed(w, pi, s1, s2):
    """Return log P(w) as the post programs it."""
    n1, n2 = (np.exp(-0.5 * (w / s) ** 2) / (s * np.sqrt(2 * np.pi)) for s in (s1, s2))
    with np.errstate(divide="ignore"):
        return np.log(pi * n1 + (1 - pi) * n2)


start = (0.2, 1.0, 0.1)  # pi, sigma1, sigma2 of the post
print("     w      as printed           R4")
for w in (0.0, 1.0, 30.0, 39.0, 1000.0):
    print(f"{w:6g} {printed(w, *start):15.4f} {log_mixture(np.array(w), *start):12.4f}")
assert printed(39.0, *start) == -np.inf
assert np.isclose(log_mixture(np.array(30.0), *start), printed(30.0, *start), rtol=1e-12)
assert np.isfinite(log_mixture(np.array(1000.0), *start))
grid = np.linspace(-12, 12, 200_001)
mass = np.trapezoid(np.exp(log_mixture(grid, *start)), grid)
print(f"mass {mass:.6f}")
assert np.isclose(mass, 1, rtol=1e-9)

# %% [markdown]
# ## 2. The slope: a precision that depends on the weight
#
# The slope of $\log(e^{l_1} + e^{l_2})$ is a mean of $l_1'$ and $l_2'$, and $l_k' = -w/\sigma_k^2$
# ([R5](../derivations/priors.md#r5-its-slope)). The weight of the first is the *responsibility* of
# the wide component, the probability that $w$ came from it:
#
# $$\xi = \frac{e^{l_1}}{e^{l_1} + e^{l_2}} = \frac{1}{1 + e^{-(l_1 - l_2)}}, \qquad
# \frac{\partial \log P}{\partial w} = -w\,\Big[\frac{\xi}{\sigma_1^2}
#   + \frac{1 - \xi}{\sigma_2^2}\Big] \;(\text{R5}).$$


# %%
def verify(name, value_and_grad, theta):
    """Check a gradient in both ways, print the largest errors, stop if one is too large."""
    for method in ("complex", "central"):
        report = bbb.check(value_and_grad, theta, method=method)
        print(f"{name}: {method} error {report.error:.0e}, bar {report.tolerance:.0e}")
        assert report.passed, str(report)


def refute(name, value_and_grad, theta):
    """Check a wrong gradient, and stop if the check does not notice."""
    report = bbb.check(value_and_grad, theta)
    assert not report.passed
    print(f"{name}: error {report.error:.2f}, caught")


def responsibility(w, pi, s1, s2):
    l1, l2 = components(w, pi, s1, s2)
    return sigmoid(l1 - l2)


def slope(w, pi, s1, s2):
    """Return d log P / dw, each like w (R5)."""
    xi = responsibility(w, pi, s1, s2)
    return -w * (xi / s1**2 + (1 - xi) / s2**2)


rng = np.random.default_rng(2019)
weights = np.concatenate([rng.normal(0, 1.0, 6), rng.normal(0, 0.1, 6), [0.27, -3.0, 20.0]])
verify("R5", lambda w: (log_mixture(w, *start).sum(), slope(w, *start)), weights)
refute(
    "R5 with the prior's share pi in place of xi",
    lambda w: (log_mixture(w, *start).sum(), -w * (0.2 / 1.0**2 + 0.8 / 0.1**2)),
    weights,
)

# %%
fig, axes = plt.subplots(1, 3, figsize=(12, 3.4))
grid = np.linspace(-1.5, 1.5, 1201)
half = np.sqrt(2 * np.log(0.8 * 1.0 / (0.2 * 0.1)) / (1 / 0.1**2 - 1 / 1.0**2))  # l1 = l2
deviation = np.sqrt(0.2 * 1.0**2 + 0.8 * 0.1**2)
gaussian = -0.5 * (grid / deviation) ** 2 - np.log(deviation) - 0.5 * LOG_2PI
axes[0].plot(grid, log_mixture(grid, *start), color=BLUE, label="mixture")
axes[0].plot(grid, gaussian, "--", color=GREY, label="one Gaussian")
axes[0].set(xlabel="weight w", ylabel="log density (nats)", ylim=(-6.5, 1.6))
axes[1].plot(grid, responsibility(grid, *start), color=BLUE, label="$\\xi(w)$")
axes[1].set(xlabel="weight w", ylabel="responsibility $\\xi$ of the wide part", ylim=(0, 1.05))
axes[2].plot(grid, slope(grid, *start), color=BLUE, label="mixture")
axes[2].plot(grid, -grid / deviation**2, "--", color=GREY, label="one Gaussian")
axes[2].set(xlabel="weight w", ylabel="slope of the log density (nats)", ylim=(-19, 19))
for ax in axes:
    for edge in (-half, half):
        ax.axvline(edge, color=BLACK, ls=":", lw=1)
    ax.legend(**ABOVE, ncols=2)
for ax, title in zip(axes, ("log density", "responsibility", "slope"), strict=True):
    ax.set_title(title, fontsize="medium", pad=24)
plt.show()
print(f"both components are equally likely at |w| = {half:.3f}")
assert np.isclose(responsibility(np.array(half), *start), 0.5)

# %% [markdown]
# *The mixture (solid) beside one Gaussian of the same standard deviation (dashed), against the
# weight, with dotted lines where both components are equally likely. Its log density has a sharp
# peak on a wide foot; the responsibility of the wide component rises from nearly 0 to 1 at the
# lines; the slope is steep between them and nearly nothing outside.*
#
# Below 0.27 a weight is taken for noise and pulled to 0 with the precision $1/\sigma_2^2 = 100$.
# Beyond, it is taken for signal and nearly let go. One Gaussian pulls large weights hardest.

# %% [markdown]
# ## 3. The gradient for the prior's own numbers
#
# The same mean, of the derivatives for the prior's numbers
# ([R6](../derivations/priors.md#r6-its-gradient-for-the-two-standard-deviations),
# [R7](../derivations/priors.md#r7-its-gradient-for-the-weight-of-the-components)):
#
# $$\frac{\partial\log P}{\partial\sigma_1} = \sum_j \xi_j \Big(\frac{w_j^2}{\sigma_1^3}
#   - \frac{1}{\sigma_1}\Big), \qquad
# \frac{\partial\log P}{\partial\sigma_2} = \sum_j (1 - \xi_j) \Big(\frac{w_j^2}{\sigma_2^3}
#   - \frac{1}{\sigma_2}\Big) \;(\text{R6}),$$
#
# $$\frac{\partial\log P}{\partial\lambda} = \sum_j \Big(\frac{\xi_j}{\lambda}
#   - \frac{1 - \xi_j}{1 - \lambda}\Big)
#   = \sum_j \frac{\xi_j - \lambda}{\lambda\,(1 - \lambda)} \;(\text{R7}).$$
#
# At rest $\sigma_1$ is the standard deviation of the weights that are its own, and $\lambda$ the
# mean responsibility.


# %%
def d_raw(w, pi, s1, s2):
    """Return d log P for (pi, sigma1, sigma2): R7, then R6 twice."""
    xi = responsibility(w, pi, s1, s2)
    d_pi = np.sum(xi - pi) / (pi * (1 - pi))
    d_s1 = np.sum(xi * (w**2 / s1**3 - 1 / s1))
    d_s2 = np.sum((1 - xi) * (w**2 / s2**3 - 1 / s2))
    return np.array([d_pi, d_s1, d_s2])


verify(
    "R6, R7",
    lambda raw: (log_mixture(weights, *raw).sum(), d_raw(weights, *raw)),
    np.array(start),
)

# %% [markdown]
# ## 4. Numbers that cannot leave their domain
#
# A gradient step does not know that $0 \lt \lambda \lt 1$. And $(\lambda, \sigma_1, \sigma_2)$ is
# the same prior as $(1 - \lambda, \sigma_2, \sigma_1)$. Three numbers that may be anything end both
# ([R8](../derivations/priors.md#r8-numbers-that-cannot-leave-their-domain)):
#
# $$\sigma_2 = c + \log(1 + e^{t_2}), \qquad \sigma_1 = \sigma_2 + \log(1 + e^{t_1}), \qquad
#   \lambda = \mathrm{sig}(a) = \frac{1}{1 + e^{-a}} \;(\text{R8}).$$
#
# The floor $c = 10^{-6}$ keeps $1/\sigma_2^3$ from overflowing. In the chain rule $t_2$ moves
# **both** standard deviations, and the slope $\lambda (1 - \lambda)$ of the sigmoid cancels a
# denominator:
#
# $$\frac{\partial}{\partial t_1} = \mathrm{sig}(t_1)\,\frac{\partial}{\partial\sigma_1}, \qquad
# \frac{\partial}{\partial t_2} = \mathrm{sig}(t_2)\,\Big(\frac{\partial}{\partial\sigma_1}
#   + \frac{\partial}{\partial\sigma_2}\Big), \qquad
# \frac{\partial\log P}{\partial a} = \sum_j (\xi_j - \lambda).$$


# %%
from bbb_numpy.parts.mixture import MIN_SIGMA  # the floor c


def constrained(free):
    """Return pi, sigma1, sigma2 of (t1, t2, a) (R8)."""
    t1, t2, a = free
    s2 = MIN_SIGMA + softplus(t2)
    return sigmoid(a), s2 + softplus(t1), s2


def mixture_and_grad(free, w):
    """Return log P of all weights and its gradient for (t1, t2, a)."""
    t1, t2, _ = free
    pi, s1, s2 = constrained(free)
    _, d_s1, d_s2 = d_raw(w, pi, s1, s2)
    d_a = np.sum(responsibility(w, pi, s1, s2) - pi)
    grad = [d_s1 * sigmoid(t1), (d_s1 + d_s2) * sigmoid(t2), d_a]
    return log_mixture(w, pi, s1, s2).sum(), np.array(grad)


def sigma1_forgotten(free, w):
    """As above, but as if t2 moved sigma2 alone."""
    value, grad = mixture_and_grad(free, w)
    d_s2 = d_raw(w, *constrained(free))[2]
    return value, np.array([grad[0], d_s2 * sigmoid(free[1]), grad[2]])


free = np.array([*inverse_softplus([1.0 - 0.1, 0.1 - MIN_SIGMA]), np.log(0.2 / 0.8)])
print("back at", [f"{float(v):.3f}" for v in constrained(free)])
assert np.allclose(constrained(free), start)
verify("R8", lambda f: mixture_and_grad(f, weights), free)
refute("R8 without the part through sigma1", lambda f: sigma1_forgotten(f, weights), free)
far = rng.normal(0, 30, (2000, 3))
ordered = np.array([constrained(f) for f in far])
in_domain = (ordered[:, 0] >= 0) & (ordered[:, 0] <= 1) & (ordered[:, 2] > 0)
in_order = ordered[:, 1] >= ordered[:, 2]
print(f"of 2000 wild (t1, t2, a): in the domain {in_domain.mean():.0%},", end=" ")
print(f"in order {in_order.mean():.0%}")
assert in_domain.all()
assert in_order.all()

# %% [markdown]
# ### Does it find what is there?
#
# 5000 weights from a known mixture, and plain ascent of $\log P$ per weight from the post's start.
# The last line has the conditions of rest.

# %%
truth = (0.35, 2.0, 0.4)
wide = rng.random(5000) < truth[0]
given = np.where(wide, rng.normal(0, truth[1], 5000), rng.normal(0, truth[2], 5000))
path = [free]
for _ in range(3000):
    value, grad = mixture_and_grad(path[-1], given)
    path.append(path[-1] + 1.0 * grad / len(given))
found = np.array([constrained(f) for f in path])  # (3001, 3)
pi, s1, s2 = found[-1]
xi = responsibility(given, pi, s1, s2)
print("             pi  sigma1  sigma2")
print(f"true    {truth[0]:7.3f} {truth[1]:7.3f} {truth[2]:7.3f}")
print(f"found   {pi:7.3f} {s1:7.3f} {s2:7.3f}")
print(f"at rest {xi.mean():7.3f} {np.sqrt(xi @ given**2 / xi.sum()):7.3f}", end=" ")
print(f"{np.sqrt((1 - xi) @ given**2 / (1 - xi).sum()):7.3f}")
assert np.allclose(found[-1], truth, rtol=0.12)
assert np.isclose(pi, xi.mean(), rtol=1e-3)

# %% [markdown]
# ## 5. In the free energy
#
# R5 takes the place of $w/\sigma_0^2$ in the report's K21 and K30, and the prior's own numbers get
# the mean over weight samples of minus R8. The library's
# [`mixture.ScaleMixturePrior`](../bbb_numpy/parts/mixture.py) has the same four formulas for all
# samples at once:

# %%
from bbb_numpy.numeric.buffers import Buffers

library = bbb.ScaleMixturePrior(*start, learn=True)
params = {"prior_mixture": free}
w = weights[None]
value, saved = library.log_density(params, w, Buffers())
d_w, d_params = np.zeros_like(w), {"prior_mixture": np.zeros(3)}
library.add_vjp(saved, np.ones(1), d_w, d_params)
by_hand, grad = mixture_and_grad(free, weights)
gaps = {
    "R4": abs(value[0] / by_hand - 1),
    "R5": np.abs(d_w[0] - slope(weights, *start)).max() / np.abs(d_w).max(),
    "R6-R8": np.abs(d_params["prior_mixture"] - grad).max() / np.abs(grad).max(),
}
for name, gap in gaps.items():
    print(f"{name}: library and by hand differ by {gap:.0e}")
    assert gap < 1e-13

# %% [markdown]
# Through the whole free energy of a network, by the `value_and_grad` that training calls:

# %% tags=["rounding"]
from bbb_numpy import gradcheck

model = bbb.Model(bbb.MLP((1, 4, 3, 1)), library, bbb.GaussianLikelihood(1.0))
estimator = bbb.Reparameterised(model, bbb.MeanField(0.456, 0.0, 0.0))
theta = estimator.init(rng)
noise = estimator.draw(rng, 3)
x_few, y_few = rng.standard_normal((5, 1)), rng.standard_normal((5, 1))
reports = []
for method in ("complex", "central"):
    report = gradcheck.check(
        lambda t: estimator.value_and_grad(t, noise, x_few, y_few),
        theta,
        method=method,
        blocks=estimator.layout.slices,
        coordinate=estimator.coordinate,
        gates=lambda t: estimator.gates(t, noise, x_few),
    )
    assert report.passed, str(report)
    reports.append(("free energy", report))
print(gradcheck.format_table(reports))

# %% [markdown]
# ## 6. Krasser's network
#
# The network of the first picture: $y = 10\sin 2\pi x$ with noise of standard deviation 1, a
# network 1-20-20-1 with ReLU, Adam with learning rate 0.03 for 1500 epochs, all points in every
# step, one weight sample per step, $\mu \sim N(0, 0.456^2)$ and $\rho = 0$ at the start
# ([`bbb_studies.krasser`](../bbb_studies/krasser.py)).

# %% tags=["rounding"]
print(f"{'':<8}{'F':>7}{'rmse':>7}{'inside':>14}{'out':>7}{'share':>8}{'sigma1':>8}{'sigma2':>8}")
for name, result in runs.items():
    n = result.numbers
    print(
        f"{name:<8}{n.free_energy:>7.0f}{n.rmse:>7.2f}{n.epistemic_inside:>14.2f}"
        f"{n.epistemic_outside:>7.2f}{n.pi:>8.3f}{n.sigma1:>8.3f}{n.sigma2:>8.3f}"
    )
post, fixed = runs["post"].numbers, runs["fixed"].numbers
assert post.free_energy < fixed.free_energy - 50
assert post.sigma2 > 3 * 0.1

# %% [markdown]
# ### The band that is missing
#
# The post draws the inner band only, where the *curve* may run. A new observation carries its noise
# as well: the outer band, $\sqrt{\text{epistemic}^2 + \text{noise}^2}$
# ([R10](../derivations/prediction.md#r10-the-total-band)).

# %% tags=["rounding"]
n = post
print(f"new y within 1.96 epistemic standard deviations: {n.coverage_epistemic:.0%}")
print(f"new y within 1.96 total standard deviations:     {n.coverage:.0%}")
assert n.coverage_epistemic < n.coverage - 0.05

# %% [markdown]
# ### What the learned prior does
#
# The narrow component starts at 0.1. Learned, it soon widens to seven times that: at the start few
# of the 481 weights are that small, and each that is not costs. Fixed, it costs the difference in
# free energy above, and ties the unused weights down. Where there are no data, the functions then
# agree for no reason. "Epistemic uncertainty is much higher in regions of no training data" is a
# property of the *prior*.

# %%
fig, axes = plt.subplots(1, 3, figsize=(12, 3.6))
trace = runs["post"].trace
for ax, column, name in ((axes[0], 0, "λ"), (axes[1], 1, "σ₁"), (axes[1], 2, "σ₂")):
    style = ("-", "-", "--")[column]
    ax.plot(trace.epochs, trace.prior[:, column], style, color=(BLUE, BLUE, VERMILLION)[column])
    ax.plot([], [], style, color=(BLUE, BLUE, VERMILLION)[column], label=f"{name}, learned")
    ax.axhline(start[column], color=GREY, ls=":", lw=1.5)
for ax, label in ((axes[0], "share λ"), (axes[1], "standard deviation of a weight")):
    ax.plot([], [], ":", color=GREY, lw=1.5, label="start")
    ax.set(xlabel="epoch", ylabel=label, xlim=(0, 1500))
    ax.set_ylim(0, ax.get_ylim()[1])
    ax.legend(**ABOVE, ncols=3, columnspacing=1)
for (name, result), style, colour in zip(
    runs.items(), ("-", "--"), (BLUE, VERMILLION), strict=True
):
    label = TITLES[name].removesuffix(", as in the post")
    axes[2].plot(result.x, result.predictive.epistemic, style, color=colour, label=label)
for edge in krasser.DATA_RANGE:
    axes[2].axvline(edge, color=BLACK, ls=":", lw=1)
axes[2].set(xlabel="x (dimensionless)", ylabel="epistemic standard deviation (units of y)")
axes[2].set_ylim(0, axes[2].get_ylim()[1])
axes[2].legend(**ABOVE, ncols=2)
for ax, title in zip(
    axes, ("share", "standard deviations", "epistemic standard deviation"), strict=True
):
    ax.set_title(title, fontsize="medium", pad=24)
plt.show()

# %% [markdown]
# *The share of the wide component and both standard deviations as training goes, from their starts
# (dotted); and the epistemic standard deviation of both fits, which differ most where there are no
# data, outside the dotted lines.*
#
# ## 7. The mean of the outputs is not the output of the means
#
# "The predictive mean could have also been obtained with a single forward pass" with the posterior
# means for weights, says the post. For one ReLU and $w = \mu + \sigma\epsilon$
# ([R9](../derivations/prediction.md#r9-the-prediction-from-posterior-means))
#
# $$E[\max(w, 0)] = \int_{-\mu/\sigma}^\infty (\mu + \sigma\epsilon)\,\varphi(\epsilon)\,d\epsilon
#   = \mu\,\Phi\Big(\frac\mu\sigma\Big) + \sigma\,\varphi\Big(\frac\mu\sigma\Big),$$
#
# which is not $\max(\mu, 0)$. The average rounds off the kinks of the one network of means.

# %%
mu, sigma = 0.1, float(softplus(np.array(0.0)))  # sigma as the post starts it
draws = np.maximum(mu + sigma * np.random.default_rng(0).standard_normal(1_000_000), 0)
density = np.exp(-0.5 * (mu / sigma) ** 2 - 0.5 * LOG_2PI)
fine = np.linspace(-9, mu / sigma, 100_001)
below = np.trapezoid(np.exp(-0.5 * fine**2 - 0.5 * LOG_2PI), fine)
exact = mu * below + sigma * density
error = draws.std() / 1000
print(f"exact {exact:.4f}, mean of a million draws {draws.mean():.4f} (s.e. {error:.4f})")
print(f"output of the mean: {max(mu, 0.0):.4f}")
assert abs(draws.mean() - exact) < 4 * error

# %%
fig, (left, right) = plt.subplots(1, 2, figsize=(11, 3.8))
result = runs["post"]
line, p = result.x[:, 0], result.predictive
left.plot(line, p.mean[:, 0], color=VERMILLION, label="mean of 500 functions")
left.plot(line, result.of_means[:, 0], "--", color=BLUE, label="function of the mean weights")
left.set(xlabel="x (dimensionless)", ylabel="y (dimensionless)", ylim=(-11, 11))
left.legend(**ABOVE, ncols=2)
four = 4 * p.epistemic[:, 0] / np.sqrt(krasser.N_FUNCTIONS)
right.fill_between(line, -four, four, color=SKY, alpha=0.6, lw=0, label="± 4 standard errors")
right.plot(line, (p.mean - result.of_means)[:, 0], color=BLACK, lw=1.2, label="difference")
right.set(xlabel="x (dimensionless)", ylabel="difference (units of y)")
right.legend(**ABOVE, ncols=2)
left.set_title("two predictions", fontsize="medium", pad=24)
right.set_title("their difference", fontsize="medium", pad=24)
plt.show()
assert result.numbers.gap_seen > 0

# %% [markdown]
# *The mean of 500 functions and the function of the mean weights lie close together. Their
# difference, on the right, leaves its band of four standard errors in some places: there it is
# real.*

# %% [markdown]
# ## 8. The same at a larger learning rate
#
# At 0.03 the post's raw numbers happen to stay in their domain. At 0.1 they do not:

# %% tags=["rounding"]
raised = krasser.domains(seed=5, seeds=4, epochs=120)
fig, axes = plt.subplots(1, 2, figsize=(10, 3.6), sharey=True)
for ax, (name, domain) in zip(axes, raised.items(), strict=True):
    for t, finite in zip(domain.traces, domain.finite, strict=True):
        ax.plot(t.epochs, t.prior[:, 0], color=BLUE, lw=1)
        if not finite:
            ax.plot(t.epochs[-1], t.prior[-1, 0], "X", color=VERMILLION, ms=10, mec=BLACK)
    ax.axhspan(1, 1.25, color="#F3D9C8", lw=0)
    ax.text(118, 1.17, "no density: λ ≥ 1", va="center", ha="right")
    ax.set(xlabel="epoch", ylim=(0, 1.25), xlim=(0, 120))
    ax.set_title(name, fontsize="medium")
    print(
        f"{name}: outside the domain in {domain.left} of {len(domain.traces)} seeds, "
        f"nan in {domain.finite.count(False)}"
    )
axes[0].set_ylabel("share λ of the wide component")
plt.show()
assert raised["as the post trains it"].left > 0
assert raised["through a sigmoid (R8)"].left == 0

# %% [markdown]
# *The share of the wide component in four trainings at a large learning rate. As the post trains
# it, on the left, it leaves the domain upwards; through a sigmoid, on the right, it stays inside.*
#
# The cross marks a seed whose cost became nan. The others got away with it: no weight was small
# enough for the "density" to be negative, and their numbers belong to no prior.
#
# `bbb-numpy reproduce krasser` repeats Sections 6 to 8 for several seeds. The epistemic standard
# deviation rises outside the data in every one with the learned prior, not in every one with the
# fixed. With learned noise and all else as in the post, the curve is given up as noise: a network
# that says nothing costs no complexity, and that saves more nats than the worse likelihood costs.
# With a tenth of the KL term and narrow starts the noise comes out about right, but such a
# posterior counts the data ten times.
#
# ## 9. Exercises
#
# 1. Give the mixture a third component. Which of R4 to R7 change, and how do you keep three shares
#    in their domain?
# 2. Start the ascent of Section 4 at $\lambda = 1/2$, $\sigma_1 = \sigma_2$, with the raw numbers.
#    Why can it never leave? What does R8 do with such a start?
# 3. Show that for $\sigma_1 = \sigma_2$ R5 is the slope of one Gaussian, whatever $\lambda$ is.
# 4. Let $\sigma_2 \to 0$ with $\lambda$ fixed. Which weights does the slope still see? How is this
#    "spike and slab" prior related to pruning
#    ([D36](../derivations/model-checking.md#d36-signal-to-noise-pruning))?
# 5. At which $\mu/\sigma$ is the difference of Section 7 largest, for one ReLU and fixed $\sigma$?
# 6. Put Student's t in the place of the mixture
#    ([D42](../derivations/priors.md#d42-the-student-t-prior)). At which weight is its pull to 0
#    largest, and what becomes of it further out? Draw it beside the slope of Section 2.
# 7. How large are the functions that the prior of Section 6 expects, before any data? Follow the
#    mean square through the layers ([D39](../derivations/priors.md#d39-a-scale-for-every-layer),
#    step 3), and draw networks from the prior to see whether it is right. What if both widths are
#    four times as large?
#
# <details><summary>Hints</summary>
#
# 1. R4 becomes a logsumexp of three. The responsibilities are $\xi_k = e^{l_k} / \sum_j e^{l_j}$,
#    and R5 and R6 keep their form. Let $\lambda_k = e^{a_k} / \sum_j e^{a_j}$; then R7 is $\sum_j
#    (\xi_{jk} - \lambda_k)$ for each $a_k$.
# 2. Every responsibility is $\frac12$, so both standard deviations have the same slope, and
#    $\lambda$ has the slope 0. R8 cannot begin there: $\sigma_1 = \sigma_2$ needs $t_1 = -\infty$.
# 3. What is $\xi$ when both densities are equal? And what becomes of the bracket in R5?
# 4. Put a small $\sigma_2$ into the formula for the place where both components are equally likely
#    (R5). It tends to 0 like $\sigma_2$ times the root of a logarithm. Outside, the slope is $-w /
#    \sigma_1^2$.
# 5. The difference is $\sigma\,[z\,\Phi(z) + \varphi(z) - \max(z, 0)]$ with $z = \mu/\sigma$. Its
#    slope is $\Phi(z)$ on one side of 0 and $\Phi(z) - 1$ on the other. At its largest it is
#    $0.40\,\sigma$.
# 6. The slope is $-(\nu + 1)\,w / (\nu s^2 + w^2)$, largest at $|w| = s\sqrt\nu$. Beyond, it falls
#    like $1/|w|$, where that of the mixture grows again with $w/\sigma_1^2$.
# 7. The recursion uses that the weights are independent, symmetric about 0 and have the mean square
#    $s^2 = \lambda\sigma_1^2 + (1 - \lambda)\,\sigma_2^2$; no Gaussian is needed. At the start $s^2
#    = 0.208$, and the standard deviation of $f(1)$ is 1.6. With the widths 80 it is 5.5: a scale
#    for every layer mends that.
#
# </details>
#
# **Next:** [03](03_estimators_and_variance.ipynb) asks how noisy the gradient is, and what can be
# done about it. **Before:** [01](01_from_one_weight_to_the_network.ipynb).
