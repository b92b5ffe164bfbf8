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
# # Bounds around the evidence
#
# The evidence $P(D) = \int P(D|w)\,P(w)\,dw$ says how probable the data are under a model. For a
# network it is out of reach, and objectives are bounds on its logarithm. On linear regression it is
# known, and so is the best $q$ of every bound. Here is a line through 12 points, whose slope and
# intercept are correlated under the posterior, and the best mean field of either KL divergence.
#
# **It takes** about 35 minutes to read and 10 seconds of processor time to run.

# %%
import matplotlib.pyplot as plt
import numpy as np

import bbb_numpy as bbb
from bbb_numpy.model.objectives import log_weights
from bbb_numpy.plots.style import BLACK, BLUE, VERMILLION, legend_of_figure
from bbb_studies import linear_gaussian as exact
from bbb_studies.ours import evidence_bounds

plt.rcParams.update({"figure.dpi": 150})
data = exact.draw(np.random.default_rng(4), rows=12, d_in=1, noise=0.6, prior=1.0)
truth = exact.exact(data)
posterior = truth.posterior
r = posterior.covariance[0, 1] / posterior.deviation.prod()
best = {
    "posterior": (posterior, BLACK, "-"),
    "least KL(q ‖ posterior): ELBO": (exact.reverse_optimum(truth), BLUE, "--"),
    "least KL(posterior ‖ q): EUBO": (exact.inclusive_optimum(truth), VERMILLION, "-."),
}
turn = np.linspace(0, 2 * np.pi, 200)
circle = np.stack([np.cos(turn), np.sin(turn)])


def ellipse(q, deviations):
    """Return the points at this many standard deviations from the mean of q."""
    return q.mean[:, None] + np.linalg.cholesky(q.covariance) @ (deviations * circle)


fig, ax = plt.subplots(figsize=(6.4, 5.6), layout="constrained")
for name, (q, colour, style) in best.items():
    for deviations in (1, 2):
        label = name if deviations == 1 else None
        ax.plot(*ellipse(q, deviations), color=colour, ls=style, lw=1.8, label=label)
ax.set(xlabel="slope w (units of y per unit of x)", ylabel="intercept b (units of y)")
ax.set_aspect("equal")
fig.legend(loc="outside upper center", frameon=False)
plt.show()

# %% [markdown]
# *The posterior of slope and intercept is a slanting ellipse. The mean field of the reverse KL
# divergence is a smaller upright one; that of the inclusive one is upright too, as wide and as high
# as the posterior.*
#
# (The ellipses hold 39 % and 86 % of a Gaussian, one and two standard deviations.) The notebook
# takes half an hour to read, and some ten seconds to run. It needs
# [01](01_from_one_weight_to_the_network.ipynb), covariance matrices, and Jensen's inequality. Tags
# such as D28 are entries of [Bounds on the evidence](../derivations/bounds.md). Everything is in
# nats.
#
# ## 1. A posterior with two weights
#
# The posterior is Gaussian, with precision $\Lambda$ and mean $m$
# ([D8](../derivations/why.md#d8-the-exact-answers-of-linear-regression)):
#
# $$\Lambda = \frac{\Phi^\top\Phi}{\sigma_y^2} + \frac{I}{\sigma_0^2}, \qquad
# m = \Lambda^{-1}\,\frac{\Phi^\top y}{\sigma_y^2}, \qquad
# \log P(D) = \log N(y;\, 0,\, \sigma_y^2 I + \sigma_0^2\,\Phi\Phi^\top).$$
#
# There is another way to the evidence, joint density over posterior density at any $w$:

# %%
estimator, theta = evidence_bounds.estimator_of(data, posterior)
noise = estimator.draw(np.random.default_rng(0), 1000)
logs = log_weights(exact.log_densities(estimator, theta, noise, data), 1.0)
print(f"log evidence {truth.log_evidence:.4f}; joint over posterior at 1000 random weights:")
print(f"{logs.mean():.4f}, largest difference {np.abs(logs - truth.log_evidence).max():.0e}")
print(f"posterior: slope {posterior.mean[0]:.3f} ± {posterior.deviation[0]:.3f}, intercept")
print(f"{posterior.mean[1]:.3f} ± {posterior.deviation[1]:.3f}, correlation {r:.3f}")
assert np.abs(logs - truth.log_evidence).max() < 1e-11

# %% [markdown]
# ## 2. From Jensen to four bounds
#
# The mean of $\omega(w) = P(w, D)/q(w)$ under $q$ is the evidence
# ([G1](../derivations/bounds.md#g1-the-evidence)). The logarithm is concave
# ([G2](../derivations/bounds.md#g2-the-bound-that-is-not-there)), so
#
# $$\underbrace{E_q[\log\omega]}_{\text{ELBO}\, =\, -F} \;\le\;
# \underbrace{E_q\Big[\log\frac1k\sum_{s=1}^k\omega_s\Big]}_{\text{IWAE, grows with } k} \;\le\;
# \log P(D) \;\le\; \underbrace{E_{P(w|D)}[\log\omega]}_{\text{EUBO}} .$$
#
# The outer two gaps are $\mathrm{KL}(q\,\|\,P(w|D))$ and $\mathrm{KL}(P(w|D)\,\|\,q)$. Rényi's
# bound $\frac{1}{1-\alpha}\log E_q[\omega^{1-\alpha}]$ joins them
# ([D25](../derivations/bounds.md#d25-the-renyi-and-the-importance-weighted-bounds)): the ELBO at
# $\alpha = 1$, the evidence at $\alpha = 0$, above it for $\alpha \lt 0$. Sagar's algorithm
# estimates the EUBO from samples of $q$, weighed by $\hat\omega_s = \omega_s/\sum_t\omega_t$
# ([G6](../derivations/bounds.md#g6-the-estimate-of-the-upper-bound),
# [G7](../derivations/bounds.md#g7-the-weights-of-algorithm-1)).
#
# The gradients that will train $q$ are checked first; sticking the landing (D20) and the EUBO's
# (G8) as gradients of their surrogates.

# %%
rng = np.random.default_rng(1)
for family in (bbb.MeanField(0.5, 0.0, 1.0), bbb.FullRank(0.5, 0.0, 1.0)):
    for checked in (
        bbb.Reparameterised(data.model, family),
        bbb.Reparameterised(data.model, family, bbb.Renyi(0.5)),
        bbb.StickingTheLanding(data.model, family),
        bbb.SelfNormalised(data.model, family, bbb.EUBO()),
    ):
        point, eps = checked.init(rng), checked.draw(rng, 4)

        def value_and_grad(theta, checked=checked, point=point, at=(eps, data.x, data.y)):
            if hasattr(checked, "surrogate"):
                value = checked.surrogate(theta, point, *at)
                return value, checked.value_and_grad(point, *at).grad
            return checked.value_and_grad(theta, *at)

        report = bbb.check(value_and_grad, point)
        label = f"{type(family).__name__}, {type(checked).__name__}, {checked.objective}"
        print(f"{label:<52} complex error {report.error:.0e}, bar {report.tolerance:.0e}")
        assert report.passed

# %% [markdown]
# ## 3. Where training leads
#
# A mean field has two best versions
# ([D28](../derivations/bounds.md#d28-where-the-objectives-lead-exactly)):
#
# $$\text{reverse (ELBO): } \sigma_j = \frac{1}{\sqrt{\Lambda_{jj}}}, \qquad
# \text{inclusive (EUBO): } \sigma_j = \sqrt{(\Lambda^{-1})_{jj}}.$$
#
# The first is the standard deviation of a weight when the other is *known*, the second its marginal
# one. With full rank
# ([M1-M4](../derivations/correlated-posteriors.md#m1-one-gaussian-with-all-correlations)) both
# objectives lead to the posterior. Train all four:


# %%
from bbb_numpy.training import start


def train(estimator, epochs, samples, rate):
    """Train on all rows at once from a wide q and return the end as a Gaussian."""
    rng, optimizer = np.random.default_rng(0), bbb.Adam(rate, schedule=bbb.Cosine())
    start_from = (np.zeros(2), np.ones(2))
    if isinstance(estimator.posterior, bbb.FullRank):
        start_from = (np.zeros(2), np.eye(2))
    begin = start(estimator, rng, optimizer, variational=estimator.posterior.pack(*start_from))
    recipe = bbb.Recipe(optimizer, epochs=epochs, batch_size=len(data.x), samples=samples)
    end = bbb.fit(estimator, begin, data.x, data.y, recipe, rng=rng)
    return exact.gaussian(estimator, end.theta)


trained = {
    "reverse, mean field": train(
        bbb.StickingTheLanding(data.model, bbb.MeanField()), 3000, 8, 2e-2
    ),
    "reverse, full rank": train(bbb.StickingTheLanding(data.model, bbb.FullRank()), 3000, 8, 2e-2),
    "inclusive, mean field": train(
        bbb.SelfNormalised(data.model, bbb.MeanField(), bbb.EUBO()), 2000, 1000, 2e-2
    ),
    "inclusive, full rank": train(
        bbb.SelfNormalised(data.model, bbb.FullRank(), bbb.EUBO()), 2000, 1000, 2e-2
    ),
}
targets = {
    "reverse, mean field": exact.reverse_optimum(truth),
    "reverse, full rank": posterior,
    "inclusive, mean field": exact.inclusive_optimum(truth),
    "inclusive, full rank": posterior,
}
print("               standard deviations           exact    ELBO gap  EUBO gap   least possible")
for name, q in trained.items():
    best = targets[name]
    gaps = exact.kl(q, posterior), exact.kl(posterior, q)
    least = exact.kl(best, posterior) if name[0] == "r" else exact.kl(posterior, best)
    print(
        f"{name:<22}{q.deviation[0]:6.3f}{q.deviation[1]:6.3f}"
        f"{best.deviation[0]:8.3f}{best.deviation[1]:6.3f}"
        f"{gaps[0]:12.4f}{gaps[1]:10.4f}{least + 0.0:17.4f}"
    )
    assert np.abs(q.deviation / best.deviation - 1).max() < 0.02
    assert np.abs((q.mean - best.mean) / best.deviation).max() < 0.03
assert exact.kl(trained["reverse, full rank"], posterior) < 1e-6

# %% [markdown]
# With full rank $-F$ *is* the log evidence, to $10^{-6}$: the noise of sticking the landing
# vanishes as $q$ gets there.
#
# Reverse KL avoids places where the posterior has no mass: too narrow for each weight alone.
# Inclusive KL covers every place where it has mass: each weight alone is right, but slope and
# intercept may be large together.
#
# ### What a correlation costs
#
# For two weights of standard deviation 1 and correlation $r$, $\sigma^2 = 1 - r^2$ for the reverse
# optimum and $\sigma = 1$ for the inclusive one. Both gaps are
#
# $$\mathrm{KL}(q\,\|\,P(w|D)) = \mathrm{KL}(P(w|D)\,\|\,q) = -\tfrac12\log(1 - r^2).$$
#
# Move the slider under the film: the posterior becomes a needle, one mean field shrinks with it,
# the other stays.

# %%
correlations = np.append(np.linspace(0, 0.95, 20), 0.99)


def two_weights(r):
    """Return the posterior of correlation r, and the mean fields of both KL divergences."""
    needle = exact.Gaussian(np.zeros(2), np.array([[1, r], [r, 1]]))
    small = exact.Gaussian(np.zeros(2), (1 - r**2) * np.eye(2))
    return needle, small, exact.Gaussian(np.zeros(2), np.eye(2))


for r in correlations:
    needle, small, wide = two_weights(r)
    gap = -0.5 * np.log(1 - r**2)
    assert np.isclose(exact.kl(small, needle), gap, atol=1e-12)
    assert np.isclose(exact.kl(needle, wide), gap, atol=1e-12)
    for other in (0.99, 1.01):  # narrower or wider q has a larger gap
        near = exact.Gaussian(np.zeros(2), other * small.covariance)
        assert exact.kl(near, needle) > gap
gaps = -0.5 * np.log(1 - correlations**2)
print("r   ", *(f"{r:6.2f}" for r in correlations[[0, 10, 18, 20]]))
print("gap ", *(f"{gap + 0.0:6.3f}" for gap in gaps[[0, 10, 18, 20]]), "nats")

# %%
from IPython.display import HTML

from bbb_course.moving import slider

film, (left, right) = plt.subplots(1, 2, figsize=(9, 4.2), dpi=64, layout="constrained")
line = np.linspace(0, 0.99, 200)
right.plot(line, -0.5 * np.log(1 - line**2), color=BLACK, lw=1)
(dot,) = right.plot([], [], "o", color=BLUE)
right.set(xlabel="correlation r", ylabel="gap of either bound (nats)", xlim=(0, 1), ylim=(0, 2.1))
left.set(
    xlabel="weight 1 (its standard deviations)",
    ylabel="weight 2 (its standard deviations)",
    aspect="equal",
)
left.set(xlim=(-2.2, 2.2), ylim=(-2.2, 2.2))
curves = [
    left.plot([], [], color=colour, ls=style, label=name)[0]
    for colour, style, name in (
        (BLACK, "-", "posterior"),
        (BLUE, "--", "reverse KL"),
        (VERMILLION, "-.", "inclusive KL"),
    )
]
legend_of_figure(film, left, 3)


def frame(step):
    """Draw the three Gaussians at two standard deviations, and the gap."""
    for curve, q in zip(curves, two_weights(correlations[step]), strict=True):
        curve.set_data(*ellipse(q, 2))
    dot.set_data([correlations[step]], [gaps[step]])
    left.set_title(f"r = {correlations[step]:.2f}", fontsize="medium")
    right.set_title(f"gap {gaps[step] + 0.0:.3f} nats", fontsize="medium")


plt.close(film)
text = (
    "Left, ellipses of the posterior and both mean fields as r grows; right, the gap of the bounds"
)
HTML(slider(film, frame, len(correlations), text, dpi=64))

# %% [markdown]
# *A film: as r grows from 0 to 0.99, the circle of the posterior becomes a needle. The reverse mean
# field shrinks to the width of the needle, the inclusive one stays as wide as it is long. The gap
# rises slowly at first, to 0.14 nats at r = 0.5, and to 1.96 nats at 0.99.*
#
# ## 4. Rényi's family
#
# The regression again. Exactly, without samples, the bound is $\log P(D) -
# D_\alpha(q\,\|\,P(w|D))$, and falls as $\alpha$ grows.

# %%
line = np.linspace(-1, 2, 241)
fig, ax = plt.subplots(figsize=(7, 4.0), layout="constrained")
for name, colour, style in (
    ("reverse, mean field", BLUE, "--"),
    ("inclusive, mean field", VERMILLION, "-."),
):
    q = targets[name]
    values = np.array([exact.renyi(truth, q, a) - truth.log_evidence for a in line])
    values[~np.isfinite(values)] = np.nan
    assert np.all(np.diff(values[np.isfinite(values)]) < 0)
    values[values < -2] = np.nan  # on its way to minus infinity
    ax.plot(line, values, color=colour, ls=style, label=f"q: {name.split(',')[0]}-KL optimum")
    ax.plot(1, -exact.kl(q, posterior), "o", color=colour)
    print(f"{name}: alpha = 1/2 {exact.renyi(truth, q, 0.5) - truth.log_evidence:+.4f},")
    print(f"  ELBO {-exact.kl(q, posterior):+.4f}, EUBO {exact.kl(posterior, q):+.4f}")
ax.plot([], [], "o", color=BLACK, label="ELBO")
ax.axhline(0, color=BLACK, lw=1)
ax.set(xlabel="order α", ylabel="bound − log evidence (nats)", ylim=(-2.2, 1.6))
ax.set_title("Rényi's bound of infinitely many samples", fontsize="medium")
ax.legend(frameon=False, loc="upper right")
plt.show()

# %% [markdown]
# *Both curves fall with the order, through the evidence (zero) at order 0 and the ELBO (dots) at
# order 1. The dashed one of the reverse optimum begins where its integral becomes finite; the other
# falls without end before order 2.*
#
# The tails of the narrow $q$ are too light for a large power of $\omega$. The wide one has mass
# that the posterior lacks.
#
# ## 5. All bounds against the number of samples
#
# Three weights now, and four $q$, from the prior to the posterior. Every row of samples serves all
# $k$, so differences between $k$ have the error of the difference alone.

# %%
from bbb_studies.kit import concise

bigger = evidence_bounds.problem(0)
answer = exact.exact(bigger)
seeds = np.random.SeedSequence(0).spawn(4)
cases = [
    evidence_bounds.measure(bigger, name, q, answer, np.random.default_rng(seed))
    for (name, q), seed in zip(
        evidence_bounds.approximations(answer, 1.0).items(), seeds, strict=True
    )
]
for case in cases:
    print(f"{case.name:<24} ELBO {case.elbo:+10.4f}   EUBO {case.eubo:+8.4f}")
    for kind in evidence_bounds.BOUND_NAMES:
        shown = [
            case.bounds[kind][evidence_bounds.BOUND_SAMPLE_COUNTS.index(k)]
            for k in (1, 10, 100, 1000)
        ]
        cells = "".join(f"{concise(*bound):>13}" for bound in shown)
        print(f"  {kind:<10} k = 1, 10, 100, 1000:{cells}")

# %%
for case in cases[:3]:
    for kind, limit in (("IWAE", 0.0), ("Renyi 1/2", case.renyi), ("EUBO", case.eubo)):
        assert all(step.mean > 4 * step.error for step in case.steps[kind])  # each rise is seen
        assert all(b.mean < limit + 4 * b.error for b in case.bounds[kind])
    for sampled, value in ((case.sampled_elbo, case.elbo), (case.sampled_eubo, case.eubo)):
        assert abs(sampled.mean - value) < 4 * sampled.error
    assert case.bounds["EUBO"][0] == case.bounds["IWAE"][0]  # one sample: the ELBO, exactly
print("in order: ELBO <= IWAE_k, rising with k, <= log evidence <= EUBO")

# %%
fig = plt.figure(figsize=(12.6, 4.2), layout="constrained")
evidence_bounds.draw_bounds(cases, evidence_bounds.BOUND_SAMPLE_COUNTS, fig)
for ax, letter, case in zip(fig.axes, "abcd", cases, strict=True):
    ax.set_xlabel("samples k")
    ax.set_title(f"({letter}) q: {case.name}", fontsize="medium")
plt.show()

# %% [markdown]
# *Three estimated bounds against the number of samples, for four q. The importance-weighted one
# rises to the evidence (zero) from below, the Rényi one to a limit below it, and the EUBO's
# estimate from the ELBO upwards. In (d), where q is the posterior, all are the evidence.*
#
# - **The IWAE tightens with $k$,** fast where $q$ covers the posterior, slowly where it is too
#   narrow (b): the weights have no finite variance, and the samples that would tell of the missing
#   mass are rare. The best $q$ for the ELBO is not the best one to importance-sample from.
# - **The Rényi bound of order 1/2 stops** at its own limit.
# - **The EUBO's estimate is no upper bound until it has crossed the evidence.** With one sample it
#   *is* the ELBO. On average it stays below $\log P(D) + \log k$: it takes $e^{\mathrm{KL}}$
#   samples to show a gap of that KL divergence. With a narrow $q$ (b) a thousand are not enough.
#
# **And with minibatches?** Their likelihood is scaled by $N/B_i$
# ([G3](../derivations/bounds.md#g3-stochastic-ascent)). Only an objective that is linear in the log
# weights has then the right mean
# ([D30](../derivations/bounds.md#d30-minibatches-of-objectives-that-are-not-linear)). The twelve
# rows of Section 1, one at a time, with $q$ the inclusive mean field and 1000 samples:

# %% tags=["rounding"]
estimator, theta = evidence_bounds.estimator_of(data, trained["inclusive, mean field"])
noise = estimator.draw(np.random.default_rng(30), 1000)


def log_omega(rows):
    """Return log weights (S,) in which the likelihood of `rows` stands for that of all."""
    part = data._replace(x=data.x[rows], y=data.y[rows])
    terms = exact.log_densities(estimator, theta, noise, part)
    return log_weights(terms, len(part.x) / len(data.x))


def importance(logs):
    """Return the logarithm of the mean weight: the importance-weighted bound of these samples."""
    return logs.max() + np.log(np.mean(np.exp(logs - logs.max())))


print(f"log evidence {truth.log_evidence:.3f}    all rows  mean of minibatches")
for name, bound in (("ELBO", np.mean), ("importance-weighted", importance)):
    whole = bound(log_omega(slice(None)))
    parts = np.mean([bound(log_omega(slice(i, i + 1))) for i in range(len(data.x))])
    print(f"{name:24} {whole:9.3f} {parts:20.3f}")
    assert parts > truth.log_evidence if bound is importance else abs(parts - whole) < 1e-9

# %% [markdown]
# A mean of logarithms of means is larger than the logarithm of the mean: the "bound" of an epoch of
# minibatches bounds nothing.
#
# ## 6. A number that must be positive
#
# *Automatic differentiation variational inference* fits its Gaussian to the logarithm of a number
# that must be positive ([M13-M17](../derivations/correlated-posteriors.md#m13-what-is-minimised)).
# Six counts, a rate $\theta$ with the prior $e^{-\theta}$: the joint density is $\theta^{a-1}
# e^{-b\theta} / \prod_i y_i!$ with $a = 1 + \sum_i y_i$, $b = 1 + N$. For $\zeta = \log\theta$ the
# Jacobian $d\theta/d\zeta = e^\zeta$ comes in (M14, M15):
#
# $$\log P(D, \zeta) = a\,\zeta - b\,e^\zeta - \sum_i \log y_i!, \qquad g = a - b\,e^\zeta .$$
#
# With $\zeta = \mu + \sigma\eta$ (M16),
#
# $$F = -E[\log P(D, \zeta)] - \tfrac12\log 2\pi e\,\sigma^2 \;(\text{M13}), \qquad
# \hat\nabla_\mu = -g, \qquad
# \hat\nabla_\rho = -\Big(g\,\eta + \frac1\sigma\Big)\,\mathrm{sig}(\rho) \;(\text{M17}).$$
#
# As $E[e^\zeta] = e^{\mu + \sigma^2/2}$, the optimum is $\sigma = a^{-1/2}$, $\mu = \log\frac ab -
# \frac1{2a}$.

# %%
from math import lgamma

from bbb_numpy.numeric.elementary import sigmoid, softplus
from bbb_studies.advi import ADVI, Blockwise, Log

counts = np.array([3, 1, 4, 1, 5, 2])
a, b = 1 + counts.sum(), 1 + len(counts)
factorials = sum(lgamma(y + 1) for y in counts)


def joint(theta):
    """Return log P(D, theta) (S,) of rates (S, 1), and its slope."""
    return ((a - 1) * np.log(theta) - b * theta)[:, 0] - factorials, (a - 1) / theta - b


def positive(phi, eta, jacobian=True):
    """Return -ELBO of noise (S, 1) and its gradient for (mu, rho), by hand."""
    mu, rho = phi
    zeta = mu + softplus(rho) * eta
    value = (a - 1 + jacobian) * zeta - b * np.exp(zeta) - factorials
    g = a - 1 + jacobian - b * np.exp(zeta)
    entropy = 0.5 * np.log(2 * np.pi * np.e) + np.log(softplus(rho))
    slopes = -g.mean(), -(np.mean(g * eta) + 1 / softplus(rho)) * sigmoid(rho)
    return -value.mean() - entropy, np.array(slopes)


phi, eta = np.array([0.4, -0.7]), np.random.default_rng(2).standard_normal((5, 1))
library = ADVI(joint, Blockwise((("theta", (1,), Log()),))).value_and_grad(phi, eta)
assert np.isclose(positive(phi, eta)[0], library[0], rtol=1e-13)
assert np.allclose(positive(phi, eta)[1], library[1], rtol=1e-12)

evidence, many = lgamma(a) - a * np.log(b) - factorials, np.random.default_rng(3)
for jacobian in (True, False):
    report = bbb.check(lambda t, on=jacobian: positive(t, eta, on), phi)
    assert report.passed  # with the Jacobian and without it
    k = a - 1 + jacobian
    sigma = k**-0.5
    mu = np.log(k / b) - 0.5 / k
    mean = np.exp(mu + 0.5 * sigma**2)  # of theta under the best q
    assert np.allclose([b * mean - k, b * mean * sigma - 1 / sigma], 0, atol=1e-12)
    elbo = k * mu - b * mean - factorials + 0.5 * np.log(2 * np.pi * np.e) + np.log(sigma)
    best = np.array([mu, np.log(np.expm1(sigma))])
    one_by_one = [-positive(best, e[None, None], jacobian)[0] for e in many.standard_normal(4000)]
    assert abs(np.mean(one_by_one) - elbo) < 4 * np.std(one_by_one) / 4000**0.5
    print(f"{'with' if jacobian else 'no  '} Jacobian: gradient error {report.error:.0e}, ", end="")
    print(f"mean rate {mean:.3f} (exact {a / b:.3f}), ELBO - log evidence {elbo - evidence:+.4f}")
    assert (abs(mean - a / b) < 1e-12) == jacobian

# %% [markdown]
# The gradient check passes in both cases: without the Jacobian value and gradient belong together
# and to another prior, whose posterior has the mean $(a - 1)/b$. Only an integral tells.
#
# ## 7. Exercises
#
# 1. Derive $-\tfrac12\log(1 - r^2)$ for both KL divergences of Section 3. Why are they equal here,
#    and are they still for three weights?
# 2. Centre the $x$ of Section 1. What becomes of the correlation, of the two mean fields, and of
#    the four gaps in the table?
# 3. Train with `Renyi(0.5)` and ten samples. Where between the two mean fields do the standard
#    deviations end, and how do they move with the number of samples?
# 4. Prove a sentence of Section 5: on average the EUBO's estimate from $k$ samples is at most
#    $\log P(D) + \log k$. (A weighted mean of $\log\omega_s$ is at most $\log\sum_s\omega_s$.)
# 5. Draw from the posterior instead of $q$, and estimate the EUBO with 10 and 1000 samples. Is it
#    an upper bound on average now, for either number? For every set of samples?
# 6. Let the noise of Section 1 be learned by *descending* $U$, with $q$ the posterior. Where does
#    it go? What should one do instead
#    ([D27](../derivations/bounds.md#d27-learned-numbers-under-the-upper-bound))?
#
# <details><summary>Hints</summary>
#
# 1. Put $\Lambda$ and $\Sigma = \Lambda^{-1}$ into both gaps of
#    [D28](../derivations/bounds.md#d28-where-the-objectives-lead-exactly). For three weights they
#    differ: with all correlations $\frac12$ they are 0.26 and 0.35 nats.
# 2. $\Phi^\top\Phi$ is then diagonal, and so is $\Lambda$. The posterior factorises, and a mean
#    field can be it.
# 3. With one sample every order is the ELBO; with many it is the exact bound of its order. Step 6
#    of [D25](../derivations/bounds.md#d25-the-renyi-and-the-importance-weighted-bounds) says in
#    which direction that moves the standard deviations.
# 4. $\log\sum_s\omega_s = \log k + \log\frac1k\sum_s\omega_s$. Take the mean, and use Section 2.
# 5. A mean of $\log\omega$ over draws of the posterior has the expectation $U$, for any number of
#    draws. It still scatters.
# 6. There $U$ is the log evidence and has its slope, so that descending makes the data ever less
#    probable. Ascend $\log P(D)$ itself: its slope is a posterior mean, for which the weights
#    $\hat\omega_s$ are there anyway.
#
# </details>
#
# **Next:** [05](05_path_loss.ipynb) asks what a standard deviation of VI says about errors on a
# map.
# **Before:** [03](03_estimators_and_variance.ipynb). Full rank and how it is trained:
# [M1 to M4](../derivations/correlated-posteriors.md#m1-one-gaussian-with-all-correlations).
