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
# # Samplers from scratch, against variational inference
#
# A sampler draws from the posterior itself, and so it can say what a variational family cost.
# Below are twelve points, and forty networks that HMC drew given them.
#
# **At the end** you have written Metropolis-Hastings, HMC and NUTS, seen what some misprints in
# Mullachery, Khera and Husain's *Bayesian Neural Networks* do to the draws, and know where a
# variational fit is too sure of itself. **It needs** densities, NumPy, and notebook
# [01](01_from_one_weight_to_the_network.ipynb).
# **It takes** about 80 minutes to read and 20 seconds of processor time to run.
# Tags such as M5 lead to the [samplers](../derivations/samplers.md) and the
# [microcanonical samplers](../derivations/microcanonical.md). Before this:
# [05, path loss](05_path_loss.ipynb).

# %%
import matplotlib.pyplot as plt
import numpy as np

import bbb_numpy as bbb
from bbb_numpy.plots.style import BLACK, BLUE, GREEN, GREY, PALE, SKY, VERMILLION
from bbb_numpy.sampling import mcmc, sample_target

plt.rcParams.update({"figure.dpi": 150, "figure.constrained_layout.use": True, "font.size": 9})
COLOURS = {"Metropolis": GREY, "HMC": VERMILLION, "NUTS": VERMILLION, "mean field": BLUE}

rng = np.random.default_rng(5)
x = np.sort(np.concatenate([rng.uniform(-2, -0.6, 6), rng.uniform(0.7, 1.6, 6)]))[:, None]
y = np.sin(2 * x) + 0.3 * rng.standard_normal(x.shape)
grid = np.linspace(-3.2, 2.8, 25)[:, None]
prior, noise = bbb.GaussianPrior(1.2), bbb.GaussianLikelihood(0.3, learn=True)
model = bbb.Model(bbb.MLP((1, 3, 1), "tanh"), prior, noise)
common = {"chains": 8, "hyperpriors": {"log_noise": bbb.LogNormal(0.3, 0.2)}, "seed": 0}
draws = {
    "HMC": bbb.sample(
        model, x, y, sampler="hmc", draws=600, warm_up=200, target_accept=0.9, **common
    )
}

fig, ax = plt.subplots(figsize=(5.6, 3.4))
joint = draws["HMC"].target
some = np.ascontiguousarray(joint.weights(draws["HMC"].flat[::121]))  # 40 of 4,800, of all chains
ax.plot(grid, model.predict(some, grid)[..., 0].T, color=VERMILLION, linewidth=0.5)
ax.plot(x, y, "o", color=BLACK)
ax.set(xlabel="x", ylabel="y", title="twelve points, forty draws of a network 1-3-1")
# alt: Forty curves through two clusters of points. They keep together at the points and spread in
# the gap between them and far more to either side.
plt.show()

# %% [markdown]
# ## 1. Metropolis-Hastings
#
# *Proved in [M5](../derivations/samplers.md#m5-detailed-balance-and-what-it-does-not-give) and
# [M6](../derivations/samplers.md#m6-the-acceptance-probability).*
#
# At $x$, propose $x'$ from a density $q(x'|x)$. Go there with probability
#
# $$\alpha(x, x') = \min\Big(1, \frac{P(x')\, q(x|x')}{P(x)\, q(x'|x)}\Big),$$
#
# else *stay*. The two make the transition kernel $\mathcal K(x'|x) = q(x'|x)\,\alpha(x, x')$. (The
# paper's proof writes $q$ where $\mathcal K$ belongs.) On five states both are matrices:

# %%
rng = np.random.default_rng(0)
target = np.array([0.1, 0.3, 0.05, 0.35, 0.2])
q = rng.dirichlet(np.ones(5), size=5)  # row: where from; no symmetry
alpha = np.minimum(1.0, (target[None, :] * q.T) / (target[:, None] * q))
kernel = q * alpha
np.fill_diagonal(kernel, 0.0)
np.fill_diagonal(kernel, 1.0 - kernel.sum(axis=1))  # refused proposals stay

flux = target[:, None] * kernel  # from i to j
print(f"P_i K_ij - P_j K_ji, largest: {np.abs(flux - flux.T).max():.0e}")
print(f"P K - P:                     {np.abs(target @ kernel - target).max():.0e}")
proposed = target[:, None] * q
print(f"the same for the proposal q: {np.abs(proposed - proposed.T).max():.2f}")
assert np.abs(flux - flux.T).max() < 1e-15
assert np.abs(target @ kernel - target).max() < 1e-15
assert np.abs(proposed - proposed.T).max() > 0.1

# %% [markdown]
# Detailed balance, $P(x)\,\mathcal K(x'|x) = P(x')\,\mathcal K(x|x')$, makes $P$ *stationary*. The
# paper's theorem says that the chain then forgets where it began. It need not: two states that
# always exchange their places are in detailed balance with $(\frac12, \frac12)$ and never
# converge.

# %%
exchange = np.array([[0.0, 1.0], [1.0, 0.0]])
half = np.array([0.5, 0.5])
start = np.array([1.0, 0.0])
after = [start @ np.linalg.matrix_power(exchange, t) for t in (100, 101)]
print("after 100 and 101 steps:", *after)
assert np.array_equal(half @ exchange, half)
assert np.array_equal(after[0], start)
assert not np.array_equal(after[1], after[0])

# %% [markdown]
# **Where $q$ does not cancel.** Walk on a positive number in its logarithm: $x' = x\,e^{s z}$,
# $z \sim N(0, 1)$. Then $q(x|x')/q(x'|x) = x'/x$. *Without* that ratio the chain takes $P(x)$ for
# the density of $\log x$, and draws $x$ from $P(x)/x$. Of the Gamma density $x^2 e^{-x}/2$, mean
# 3, that is $x\,e^{-x}$, mean 2.


# %%
def gamma(position):
    """log x^2 e^-x and its derivative; minus infinity outside."""
    x = position[:, 0]
    return 2.0 * np.log(x) - x, 2.0 / position - 1.0


class Forgetful(mcmc.LogNormalWalk):
    """The same walk, whose ratio of proposals is left out."""

    def propose(self, target, rng, state):
        new, log_ratio = super().propose(target, rng, state)
        return new, np.zeros_like(log_ratio)


walks, chains = {}, 500
for name, walk in {"with q": mcmc.LogNormalWalk(1.0), "without q": Forgetful(1.0)}.items():
    kernel = mcmc.MetropolisHastings(walk)
    found = sample_target(
        gamma, np.full((chains, 1), 3.0), sampler=kernel, draws=200, warm_up=50, seed=1
    )
    walks[name] = found.positions[..., 0]
    each = walks[name].mean(axis=0)  # one mean per chain: these are independent
    print(f"{name:10} mean {each.mean():.3f} +- {each.std() / chains**0.5:.3f}")
    wanted = 3.0 if name == "with q" else 2.0
    assert abs(each.mean() - wanted) < 4 * each.std() / chains**0.5

# detailed balance, counted: as many steps from below 2 to above 4 as back
walk = walks["with q"]
up = np.sum((walk[:-1] < 2) & (walk[1:] > 4), axis=0)
down = np.sum((walk[:-1] > 4) & (walk[1:] < 2), axis=0)
error = np.std(up - down) * chains**0.5
print(f"steps from below 2 to above 4: {up.sum()}, back: {down.sum()}, s.e. {error:.0f}")
assert abs(np.sum(up - down)) < 4 * error

# %%
fig, ax = plt.subplots(figsize=(5.6, 3.4))
line = np.linspace(0.01, 12, 300)
bins = np.linspace(0, 12, 49)
for (name, walk), (style, colour), power in zip(
    walks.items(), (("-", BLUE), ("--", VERMILLION)), (2, 1), strict=True
):
    ax.hist(walk.ravel(), bins, density=True, histtype="step", color=colour, linestyle=style)
    ax.plot([], [], style, color=colour, label=f"draws {name}")
    label = {2: "$x^2 e^{-x}/2$", 1: "$x\\,e^{-x}$"}[power]
    ax.plot(line, line**power * np.exp(-line) / power, ":", color=BLACK, linewidth=1.8)
    at = {2: (5.2, 0.1), 1: (2.2, 0.3)}[power]
    ax.annotate(label, at)
ax.set(xlabel="x", ylabel="density", xlim=(0, 12), title="a walk in log x, with and without q")
ax.legend(frameon=False)
# alt: Two histograms over x with the densities they follow as dotted curves. The draws with the
# ratio of proposals follow x squared times e to the minus x over 2, which peaks at 2; those without
# it follow x times e to the minus x, which peaks at 1.
plt.show()

# %% [markdown]
# ## 2. The leapfrog
#
# *Proved in [M8](../derivations/samplers.md#m8-the-leapfrog).*
#
# A walk must take small steps and forgets their direction. Give the point a momentum
# $r \sim N(0, I)$ and let it roll: $\dot\theta = r$, $\dot r = \nabla \log P(\theta)$ keeps the
# energy $H = -\log P(\theta) + \frac12 r^T r$. A leapfrog step is half a step of $r$, a step of
# $\theta$, half a step of $r$. The acceptance $\min(1, e^{H_0 - H_1})$
# ([M7](../derivations/samplers.md#m7-hamiltonian-monte-carlo)) needs it *reversible* and keeping
# *volume*. Both are checked, and the order of the energy error:

# %%
from typing import NamedTuple


def hill(position):
    """-(a^2 + b^2)/2 - (a b)^2/4 - a^4/10: log density and gradient of two coordinates."""
    a, b = position[:, 0], position[:, 1]
    value = -0.5 * (a**2 + b**2) - 0.25 * (a * b) ** 2 - 0.1 * a**4
    slope = np.stack([-a - 0.5 * a * b**2 - 0.4 * a**3, -b - 0.5 * a**2 * b], axis=1)
    return value, slope


class Point(NamedTuple):
    """Positions and momenta (S, D) of S chains, with log density (S,) and its gradient (S, D)."""

    theta: np.ndarray
    r: np.ndarray
    log_density: np.ndarray
    gradient: np.ndarray


def point(target, theta, r):
    return Point(theta, r, *target(theta))


def energy(z):
    return 0.5 * np.sum(z.r**2, axis=1) - z.log_density


def leapfrog(target, z, eps):
    r = z.r + 0.5 * eps * z.gradient
    theta = z.theta + eps * r
    log_density, gradient = target(theta)
    return Point(theta, r + 0.5 * eps * gradient, log_density, gradient)


def roll(target, z, eps, steps, last_half=True):
    """Return where `steps` leapfrog steps lead, or that without the last half step of r."""
    for _ in range(steps):
        z = leapfrog(target, z, eps)
    return z if last_half else z._replace(r=z.r - 0.5 * eps * z.gradient)


rng = np.random.default_rng(2)
start = point(hill, *rng.standard_normal((2, 40, 2)))
sizes = 0.2 / 2.0 ** np.arange(5)
errors = {}
for last_half in (True, False):
    ends = [roll(hill, start, eps, round(1.2 / eps), last_half) for eps in sizes]
    errors[last_half] = [np.sqrt(np.mean((energy(end) - energy(start)) ** 2)) for end in ends]
order = {key: np.log2(e[-2] / e[-1]) for key, e in errors.items()}
print(
    f"order of the energy error: {order[True]:.2f}; without the last half step {order[False]:.2f}"
)
assert abs(order[True] - 2) < 0.05
assert abs(order[False] - 1) < 0.05

for last_half, words in (
    (True, "there, turned round, and back"),
    (False, "the same, no last half"),
):
    end = roll(hill, start, 0.2, 6, last_half)
    back = roll(hill, end._replace(r=-end.r), 0.2, 6, last_half)
    gap = np.abs(back.theta - start.theta).max()
    print(f"{words}: {gap:.0e}")
    assert gap < 1e-13 if last_half else gap > 0.1


def flow(z):
    """The map of phase space (4 numbers) that six steps make."""
    end = roll(hill, point(hill, z[None, :2], z[None, 2:]), 0.2, 6)
    return np.concatenate([end.theta[0], end.r[0]])


z = np.concatenate([start.theta[0], start.r[0]])
columns = [(flow(z + h) - flow(z - h)) / 2e-5 for h in 1e-5 * np.eye(4)]
determinant = np.linalg.det(np.array(columns))
print(f"determinant of the map: 1 {determinant - 1:+.0e}")
assert abs(determinant - 1) < 1e-8

unit = mcmc.DiagonalMetric(np.ones(2))
library = mcmc.leapfrog(hill, unit, mcmc.Phase(*start), 0.2)
gap = max(np.abs(a - b).max() for a, b in zip(leapfrog(hill, start, 0.2), library, strict=True))
print(f"one step, against the library's: {gap:.0e}")
assert gap < 1e-14

# %%
fig, ax = plt.subplots(figsize=(5.0, 3.4))
ax.loglog(sizes, errors[True], "o-", color=BLUE, label="leapfrog: slope 2")
ax.loglog(sizes, errors[False], "s--", color=VERMILLION, label="no last half step: slope 1")
ax.set(xlabel=r"step size $\epsilon$", ylabel="energy error (nats)", title="after time 1.2")
ax.set_xticks(sizes, [f"{eps:g}" for eps in sizes])
ax.minorticks_off()
ax.legend(frameon=False, loc="lower right")
# alt: Energy error against step size, both axes logarithmic. The leapfrog is a straight line of
# slope 2; without the last half step the line lies higher and has slope 1.
plt.show()

# %% [markdown]
# ## 3. Hamiltonian Monte Carlo
#
# *Proved in [M7](../derivations/samplers.md#m7-hamiltonian-monte-carlo).*
#
# Draw a momentum, roll for a while, accept with probability $\min(1, e^{H_0 - H_1})$, forget the
# momentum. The length of the path is random; below we see why.


# %%
def hmc(target, theta, eps, path, draws, rng, last_half=True):
    """Return draws (draws, S, D) of S chains, and the mean acceptance probability."""
    kept, chances, z = [], [], point(target, theta, np.zeros_like(theta))
    for _ in range(draws):
        start = z._replace(r=rng.standard_normal(theta.shape))
        steps = int(np.ceil(np.ceil(path / eps) * (1 - rng.random())))
        end = roll(target, start, eps, steps, last_half)
        chance = np.exp(np.minimum(0, energy(start) - energy(end)))  # M7
        moves = (rng.random(len(theta)) < chance)[:, None]
        z = Point(
            np.where(moves, end.theta, z.theta), z.r,
            np.where(moves[:, 0], end.log_density, z.log_density),
            np.where(moves, end.gradient, z.gradient),
        )  # fmt: skip
        kept.append(z.theta)
        chances.append(chance.mean())
    return np.array(kept), np.mean(chances)


# %% [markdown]
# Moments of the hill can be summed on a grid. The library draws its random numbers in another
# order, so acceptance and moments must agree, within their standard errors, and not the draws.

# %%
axis = np.linspace(-6, 6, 401)
a, b = np.meshgrid(axis, axis)
mass = np.exp(hill(np.column_stack([a.ravel(), b.ravel()]))[0])
mass /= mass.sum()
MOMENTS = {
    "E[a^2]": lambda theta: theta[..., 0] ** 2,
    "E[b^2]": lambda theta: theta[..., 1] ** 2,
    "E[a^2 b^2]": lambda theta: theta[..., 0] ** 2 * theta[..., 1] ** 2,
    "E[a b]": lambda theta: theta[..., 0] * theta[..., 1],
}
exact = {
    name: mass @ moment(np.column_stack([a.ravel(), b.ravel()])) for name, moment in MOMENTS.items()
}


def compare(ours, library):
    """Print moments of draws (T, S, 2) beside the exact ones; stop if they are not the same."""
    print("            exact    ours            library")
    for name, moment in MOMENTS.items():
        shown = f"{name:10}{exact[name]:8.3f}"
        for draws in (ours, library):
            means = moment(draws).mean(axis=0)  # one per chain
            mean, error = means.mean(), means.std(ddof=1) / np.sqrt(len(means))
            shown += f"   {mean:6.3f} +- {error:.3f}"
            assert abs(mean - exact[name]) < 4 * error
        print(shown)


EPS, PATH = 0.6, 2.4
rng = np.random.default_rng(3)
begin = rng.standard_normal((400, 2))
ours, chance = hmc(hill, begin, EPS, PATH, 120, rng)
kernel = mcmc.HMC(step_size=EPS, path=PATH, small_steps=0.0)  # one step size, as ours
library = sample_target(hill, begin, sampler=kernel, draws=120, warm_up=0, seed=4)
compare(ours[20:], library.positions[20:])
print(f"acceptance: ours {chance:.3f}, library {library.stats['acceptance'].mean():.3f}")
assert abs(chance - library.stats["acceptance"].mean()) < 0.01

# %% [markdown]
# **What a missing half step does.** Leave out the last half step of each path: no crash tells of
# it. Volume is kept, but the map is no longer its own inverse. On a standard normal the variance
# is wrong:

# %%
normal = lambda position: (-0.5 * np.sum(position**2, axis=1), -position)  # noqa: E731
for last_half, name in ((True, "with"), (False, "without")):
    rng = np.random.default_rng(3)
    found, _ = hmc(normal, rng.standard_normal((1500, 2)), 0.5, 1.5, 60, rng, last_half)
    squares = np.mean(found[20:] ** 2, axis=(0, 2))  # one number per chain
    variance, error = squares.mean(), squares.std() / np.sqrt(len(squares))
    print(f"{name:8} the last half step: variance {variance:.3f} +- {error:.3f}")
    assert (abs(variance - 1) < 4 * error) == last_half

# %% [markdown]
# **A ridge.** Two coordinates of variance 1 and correlation 0.98. A walk may step no further than
# the ridge is wide; a path follows it. The *effective sample size* is the number of independent
# draws whose mean would have the same error, here from the spread of many chains' means. (The
# kernels are the library's.)

# %%
covariance = np.array([[1.0, 0.98], [0.98, 1.0]])
precision = np.linalg.inv(covariance)


def ridge(position):
    slope = -position @ precision
    return 0.5 * np.sum(position * slope, axis=1), slope


rng = np.random.default_rng(4)
start = rng.multivariate_normal(np.zeros(2), covariance, size=200)  # from the target itself
kernels = {
    "Metropolis": mcmc.MetropolisHastings(mcmc.GaussianWalk(0.35)),
    "Langevin": mcmc.MetropolisHastings(mcmc.Langevin(0.2)),
    "HMC": mcmc.HMC(step_size=0.18, path=2.5, small_steps=0.0),
    "NUTS": mcmc.NUTS(step_size=0.18),
}
print("            acceptance  gradients/draw  effective draws per 1000 gradients")
efficiency, runs = {}, {}
for name, kernel in kernels.items():
    runs[name] = found = sample_target(ridge, start, sampler=kernel, draws=100, warm_up=0, seed=5)
    means = found.positions[..., 0].mean(axis=0)  # (200,)
    effective = 1.0 / means.var()  # per chain: Var of the mean = 1 / ESS
    cost = found.stats["gradients"].sum(axis=0).mean()
    efficiency[name] = 1000 * effective / cost
    print(
        f"{name:11} {found.stats['acceptance'].mean():10.2f} {cost / 100:14.1f} "
        f"{efficiency[name]:12.1f}"
    )
assert efficiency["HMC"] > 2 * efficiency["Metropolis"]

# %%
fig, axes = plt.subplots(1, 2, figsize=(8.4, 4.0), sharex=True, sharey=True)
angle = np.linspace(0, 2 * np.pi, 200)
edge = 2 * np.linalg.cholesky(covariance) @ [np.cos(angle), np.sin(angle)]
budget = 100  # gradients
for ax, name in zip(axes, ("Metropolis", "HMC"), strict=True):
    spent = np.cumsum(runs[name].stats["gradients"][:, 0])
    path = runs[name].positions[: np.searchsorted(spent, budget) + 1, 0]
    ax.plot(*edge, "-", color=BLACK, linewidth=1)
    ax.plot(*path.T, "o-", color=COLOURS[name], markersize=4, linewidth=0.6)
    ax.set(title=f"{name}: {len(path)} draws", xlabel="$\\theta_1$")
axes[0].set_ylabel("$\\theta_2$")
# alt: A long narrow ellipse, twice. The draws of Metropolis' walk lie close together in a part of
# it; the few draws of HMC, for as many gradients, are spread over its length.
plt.show()

# %% [markdown]
# The ellipse holds 86 % of the mass. For a hundred gradients the walk has a hundred draws that lie
# close together; HMC has a few that go from end to end.
#
# **The periodic path.** On a Gaussian every coordinate has the period $2\pi$, in units of its
# standard deviation. A path of that length ends where it began, *every time*: accepted with
# probability one, and going nowhere. The library draws each path at random between 0 and the
# longest (`jitter`). (One in ten has smaller steps, `small_steps`:
# [M7](../derivations/samplers.md#m7-hamiltonian-monte-carlo), step 6. Here none has.)

# %%
rng = np.random.default_rng(6)
start = rng.standard_normal((200, 1))
kept = {}
for jitter in (0.0, 1.0):
    step = 0.1 * 2 * np.pi / 6.3
    kernel = mcmc.HMC(step, path=2 * np.pi, jitter=jitter, small_steps=0.0)
    found = sample_target(normal, start, sampler=kernel, draws=60, warm_up=0, seed=7)
    kept[jitter] = found.positions[..., 0]
    correlation = np.corrcoef(kept[jitter][-1], start[:, 0])[0, 1]
    print(
        f"jitter {jitter:g}: acceptance {found.stats['acceptance'].mean():.3f}, correlation of the "
        f"60th draw with the start {correlation:+.2f}"
    )
    assert (correlation > 0.9) == (jitter == 0.0)

fig, axes = plt.subplots(1, 2, figsize=(8.4, 2.8), sharey=True)
for ax, jitter, name in zip(axes, kept, ("always $2\\pi$", "up to $2\\pi$"), strict=True):
    for chain, (style, colour) in enumerate((("-", BLUE), ("--", VERMILLION), (":", GREEN))):
        ax.plot(kept[jitter][:, chain], style, color=colour)
    ax.set(xlabel="draw", title=f"three chains, path {name}")
axes[0].set_ylabel("$\\theta$")
# alt: Three chains against the number of the draw. With paths of exactly two pi the chains are
# nearly level lines; with paths of random length they jump up and down.
plt.show()

# %% [markdown]
# ## 4. NUTS: how long should a path be?
#
# *Proved in [M9](../derivations/samplers.md#m9-the-u-turn-criterion) and
# [M10](../derivations/samplers.md#m10-the-no-u-turn-sampler-completed).*
#
# Until its distance from the start stops growing:
#
# $$\frac{d}{dt}\,\frac{(\theta' - \theta)^T(\theta' - \theta)}{2}
#   = (\theta' - \theta)^T \frac{d\theta'}{dt} = (\theta' - \theta)^T r'.$$
#
# The paper prints $(d\theta'/dt)^T(\theta - \theta')$ for the middle term: with the opposite sign
# a path would stop at its first step. The library takes the sum of all momenta for
# $\theta' - \theta$, of which it is the integral.

# %%
eps = 0.05
path = [point(ridge, np.array([[-1.2, -1.35]]), np.array([[0.9, 0.4]]))]
for _ in range(120):
    path.append(leapfrog(ridge, path[-1], eps))
theta = np.array([one.theta[0] for one in path])  # (T, 2)
r = np.array([one.r[0] for one in path])
away = theta - theta[0]
right, printed = np.sum(away * r, axis=1), -np.sum(away * r, axis=1)
numeric = np.gradient(0.5 * np.sum(away**2, axis=1), eps)
total = eps * (np.cumsum(r, axis=0) - 0.5 * (r + r[0]))  # the trapezium rule, of r
summed = np.sum(total * r, axis=1)

inside = slice(1, -1)
error = np.abs(numeric - right)[inside].max()
wrong = np.abs(numeric - printed)[inside].max()
print(f"numerical derivative - criterion {error:.3f}; - the printed middle term {wrong:.2f}")
print(f"criterion - its sum of momenta {np.abs(right - summed).max():.4f}")
first = int(np.argmax(right[1:] < 0)) + 1
print(f"the path turns back at t = {first * eps:.2f}; printed, at t = {eps:.2f}")
assert error < 0.02 < wrong
assert np.abs(right - summed).max() < 0.02
assert printed[1] < 0 < right[1]

# %%
fig, axes = plt.subplots(1, 2, figsize=(9.2, 4.0))
axes[0].plot(*edge, "-", color=BLACK, linewidth=1)
axes[0].plot(*theta[: first + 1].T, ".-", color=VERMILLION, label="until it turns back")
axes[0].plot(*theta[first:].T, ":", color=GREY, label="after that")
axes[0].plot(*theta[0], "D", color=BLACK, markersize=6, label="start")
axes[0].set(xlabel="$\\theta_1$", ylabel="$\\theta_2$", title="a path")
axes[0].legend(frameon=False, loc="upper left")
time = eps * np.arange(len(theta))
axes[1].plot(time, 0.5 * np.sum(away**2, axis=1), "-", color=BLACK, label="distance$^2$ / 2")
axes[1].plot(
    time, right, "-.", color=VERMILLION, label="its derivative, $(\\theta' - \\theta)^T r'$"
)
axes[1].plot(time, printed, "--", color=GREY, label="as printed")
axes[1].axhline(0, color=BLACK, linewidth=0.6)
axes[1].axvline(first * eps, color=BLACK, linewidth=0.6)
axes[1].set(xlabel="time", ylabel="squared units of $\\theta$")
axes[1].set_title("its distance from the start")
axes[1].set_ylim(-5, 15)
axes[1].legend(frameon=False, fontsize="small", loc="upper left")
# alt: Left, a path that slides along a narrow ellipse, swinging from side to side, until it turns
# back. Right, half its squared distance from the start rises and falls; the derivative is positive
# until the path turns back, and the printed formula is its mirror image.
plt.show()

# %% [markdown]
# Stopping a path where it turns is not reversible: from its end another path would have been
# taken. NUTS doubles the path forwards *or* backwards in time at random, until any subtree of
# $2, 4, 8, \dots$ points turns back. Then every point of the path could have made it with the same
# probability ([M10](../derivations/samplers.md#m10-the-no-u-turn-sampler-completed)), and one is
# chosen by weight. (The paper has a slice variable instead; both are right,
# [D52](../derivations/samplers.md#d52-the-slice-form-of-nuts).)
#
# A `Tree` is a stretch of the path. Two side by side `join` to one; whether that turns back is
# asked at both ends, and once more where the two meet.


# %%
class Tree(NamedTuple):
    """A stretch of a path."""

    first: Point  # in time
    last: Point
    total: np.ndarray  # (2,)  sum of the momenta
    drawn: np.ndarray  # (2,)  one position of it
    log_weight: float


def turned(first, last, total):
    return first.r[0] @ total <= 0 or last.r[0] @ total <= 0  # M9


def join(a, b):
    """Return first, last and total of a followed by b, and whether that turns back."""
    total = a.total + b.total
    back = (
        turned(a.first, b.last, total)
        or turned(a.first, b.first, a.total + b.first.r[0])
        or turned(a.last, b.last, b.total + a.last.r[0])
    )
    return a.first, b.last, total, back


def nuts_step(target, theta, eps, rng, max_depth=10, seen=None):
    """Move one chain (2,); return position, mean acceptance and number of points computed.

    `seen`, a list, gets each point that is computed, with the number of its doubling.
    """
    start = point(target, theta[None], rng.standard_normal((1, 2)))
    h0, chances = energy(start)[0], []

    def grow(z, sign, depth):
        """Return the tree of the 2^depth points after z; None when it turns back inside."""
        if depth == 0:
            z = leapfrog(target, z, sign * eps)
            fall = h0 - energy(z)[0]
            chances.append(np.exp(min(0.0, fall)))
            if seen is not None:
                seen.append((z, doubling))
            return Tree(z, z, z.r[0], z.theta[0], fall) if fall > -1000 else None  # diverged
        near = grow(z, sign, depth - 1)
        far = near and grow(near.last if sign > 0 else near.first, sign, depth - 1)
        if not far:
            return None
        first, last, total, back = join(near, far) if sign > 0 else join(far, near)
        weight = np.logaddexp(near.log_weight, far.log_weight)
        chosen = far if np.log(rng.random()) < far.log_weight - weight else near  # by weight
        return None if back else Tree(first, last, total, chosen.drawn, weight)

    tree = Tree(start, start, start.r[0], theta, 0.0)
    for doubling in range(max_depth):
        sign = rng.choice((-1, 1))
        new = grow(tree.last if sign > 0 else tree.first, sign, doubling)
        if new is None:  # a part of the new half turns back: all of it is thrown away
            break
        first, last, total, back = join(tree, new) if sign > 0 else join(new, tree)
        chosen = new if np.log(rng.random()) < new.log_weight - tree.log_weight else tree
        weight = np.logaddexp(tree.log_weight, new.log_weight)
        tree = Tree(first, last, total, chosen.drawn, weight)
        if back:
            break
    return tree.drawn, np.mean(chances), len(chances)


# %% [markdown]
# Between halves the choice goes to the new candidate with probability
# $\min(1, W_{new} / W_{old})$, the ratio of the summed weights. Again moments are compared:

# %%
EPS = 0.7
rng = np.random.default_rng(5)
kept, chances, points = [], [], []
for theta in ours[-1, :150]:  # 150 independent chains
    chain = []
    for _ in range(20):
        theta, chance, count = nuts_step(hill, theta, EPS, rng)
        chain.append(theta)
        chances.append(chance)
        points.append(count)
    kept.append(chain)
kernel = mcmc.NUTS(step_size=EPS)
library = sample_target(hill, ours[-1], sampler=kernel, draws=60, warm_up=0, seed=6)
compare(np.swapaxes(kept, 0, 1), library.positions)
for name, own, other in (
    ("acceptance", chances, library.stats["acceptance"]),
    ("points per draw", points, library.stats["gradients"]),
):
    means = [np.reshape(own, (150, 20)).mean(axis=1), np.mean(other, axis=0)]  # one per chain
    error = np.hypot(*(one.std(ddof=1) / np.sqrt(len(one)) for one in means))
    print(f"{name}: ours {means[0].mean():.3f}, library {means[1].mean():.3f}, s.e. {error:.3f}")
    assert abs(means[0].mean() - means[1].mean()) < 4 * error

# %% [markdown]
# **Moving.** A valley of correlation 0.9, one start, one push. Left, HMC with a path that is too
# long. Right, NUTS. Move the slider. (Where a page shows none, the picture below has the last
# frame.)

# %%
from IPython.display import HTML, display
from matplotlib.figure import Figure

from bbb_course.moving import slider

valley_covariance = np.array([[1.0, 0.9], [0.9, 1.0]])


def valley(position):
    slope = -position @ np.linalg.inv(valley_covariance)
    return 0.5 * np.sum(position * slope, axis=1), slope


EPS = 0.27
theta = np.array([-0.9, -1.1])
seen, steps = [], 30
chosen, _, _ = nuts_step(valley, theta, EPS, np.random.default_rng(32), seen=seen)
doubles = np.array([doubling for _, doubling in seen])
tree = np.array([z.theta[0] for z, _ in seen])
z = point(valley, theta[None], np.random.default_rng(32).standard_normal((1, 2)))  # the same push
rolled = [theta]
for _ in range(steps):
    z = leapfrog(valley, z, EPS)
    rolled.append(z.theta[0])
rolled = np.array(rolled)
far = np.linalg.norm(rolled - theta, axis=1)
print(f"HMC is farthest from its start, {far.max():.2f}, after {far.argmax()} of {steps} steps;")
print(f"it ends at a distance of {far[-1]:.2f}")
print(f"NUTS computes {len(seen)} points, in doublings of", *np.bincount(doubles))
assert far[-1] < 0.5 * far.max()
assert len(seen) < steps

TINTS = (BLACK, SKY, BLUE, GREEN)  # of the doublings
oval = 2 * np.linalg.cholesky(valley_covariance) @ [np.cos(angle), np.sin(angle)]


def panels(figure):
    """Return a function that draws both after k steps."""
    left, right = figure.subplots(1, 2, sharex=True, sharey=True)
    for ax in (left, right):
        ax.plot(*oval, color=BLACK, linewidth=0.8)
        ax.plot(*(0.5 * oval), color=BLACK, linewidth=0.4)
        ax.plot(*theta, "D", color=BLACK, markersize=6)
        ax.set(xlabel="$\\theta_1$", xlim=(-2.6, 2.6), ylim=(-2.6, 2.6), aspect="equal")
    left.set_ylabel("$\\theta_2$")
    (rolling,) = left.plot([], [], ".-", color=COLOURS["HMC"], linewidth=0.8)
    growing = [right.plot([], [], ".-", color=tint, linewidth=0.8)[0] for tint in TINTS]
    (star,) = right.plot([], [], "*", color=GREEN, markersize=13)

    def draw(k):
        now = min(k, len(seen))
        rolling.set_data(*rolled[: k + 1].T)
        for doubling, line in enumerate(growing):
            line.set_data(*tree[:now][doubles[:now] == doubling].T)
        star.set_data(*(chosen[:, None] if k > len(seen) else ([], [])))
        left.set_title(f"HMC, step {k}")
        part = f"point {now}" + (f", doubling {doubles[now - 1] + 1}" if k else "")
        right.set_title(f"NUTS, {part}" if k <= len(seen) else f"NUTS, {now} points: the draw")

    return draw


figure = Figure(figsize=(6.4, 3.5), layout="none")  # nothing moves but the path
figure.subplots_adjust(0.09, 0.14, 0.98, 0.91, 0.12)
text = "Left, a path of HMC in an oval valley. Right, the path of NUTS, growing at both ends."
display(HTML(slider(figure, panels(figure), steps + 1, text)))

# %%
fig = plt.figure(figsize=(6.4, 3.6))
panels(fig)(steps)
# alt: The last frame. Left, the path of HMC has gone along the oval valley and back to near its
# start. Right, the path of NUTS, a colour for each doubling, has grown at both ends from the start;
# a star marks the point that was drawn from it.
plt.show()

# %% [markdown]
# **Which choice between the halves?** By weight from both, $W_{new} / (W_{old} + W_{new})$, would
# be right as well, and stays more often. Counted after one doubling:

# %%
rng = np.random.default_rng(8)
start = np.tile([[0.6, 0.8]], (20_000, 1))
once = mcmc.NUTS(step_size=0.25, max_depth=1)
moved = once.step(ridge, rng, once.init(ridge, start))[1].accepted.mean()
before = point(ridge, start, rng.standard_normal(start.shape))
after = leapfrog(ridge, before, once.step_size)  # backwards in time it is -momentum
log_ratio = energy(before) - energy(after)
rules = {
    "min(1, W_new / W_old)": np.exp(np.minimum(log_ratio, 0)),
    "W_new / (W_old + W_new)": 1 / (1 + np.exp(-log_ratio)),
}
print(f"NUTS moves to the new point in {moved:.3f} of {len(start)} chains")
error = np.sqrt(0.5 / len(start))  # of two shares, at most
for (name, share), right in zip(rules.items(), (True, False), strict=True):
    print(f"{name:24} would be {share.mean():.3f}")
    assert (abs(moved - share.mean()) < 4 * error) == right

old, new = 0.3, 0.7  # the summed weights of two halves, as states of a chain
for name, rule in {"min": lambda a, b: min(1, b / a), "share": lambda a, b: b / (a + b)}.items():
    there, back = rule(old, new), rule(new, old)
    print(f"{name:5}: flux there {old * there:.2f}, back {new * back:.2f}")
    assert np.isclose(old * there, new * back)

# %% [markdown]
# ## 5. One posterior, five answers
#
# The network of the first picture: 11 numbers, of which the noise is one, with a log-normal prior
# ([D32](../derivations/samplers.md#d32-priors-of-learned-scales)), drawn with the weights
# ([D33](../derivations/samplers.md#d33-the-log-joint-over-weights-and-scales)). The walk keeps
# every sixth draw.

# %% tags=["rounding"]
settings = {
    "NUTS": {"sampler": "nuts", "draws": 40, "warm_up": 40, "target_accept": 0.9},
    "Metropolis": {"sampler": "mh", "draws": 600, "warm_up": 600, "thin": 6},
}
for name, options in settings.items():
    draws[name] = bbb.sample(model, x, y, **options, **common)
for name, found in draws.items():
    print(f"{name:10} {found.summary()}")

# %% [markdown]
# Our `hmc` does it too. What the library's warm-up has learned, a step size
# ([M11](../derivations/samplers.md#m11-the-step-size-by-dual-averaging)) and a standard deviation
# $s_j$ for each number ([M12](../derivations/samplers.md#m12-the-metric-learned-in-windows)), is
# for us a change of units, $\theta_j = s_j u_j$.

# %% tags=["rounding"]
learned = draws["HMC"].kernel
unit_size = np.sqrt(learned.metric.variance)


def in_own_units(u):
    value, gradient = joint(u * unit_size)
    return value, gradient * unit_size


rng = np.random.default_rng(8)
begin = draws["HMC"].positions[-1] / unit_size
ours, chance = hmc(in_own_units, begin, learned.step_size, learned.path, 400, rng)
at = np.array([[0.0], [2.5]])
shown = {}
for name, positions in {"ours": ours * unit_size, "library": draws["HMC"].positions}.items():
    flat = positions.reshape(-1, positions.shape[-1])
    f = model.predict(np.ascontiguousarray(joint.weights(flat)), at)[..., 0]
    f = f.reshape(*positions.shape[:2], 2)  # (T, S, 2)
    means = f.mean(axis=0)
    error = means.std(axis=0, ddof=1) / np.sqrt(len(means))
    shown[name] = means.mean(axis=0), error
    places = zip(at[:, 0], *shown[name], strict=True)
    print(f"{name:8}" + ", ".join(f"E f({x0:g}) = {m:5.2f} +- {e:.2f}" for x0, m, e in places))
print(f"acceptance: ours {chance:.2f}, library {draws['HMC'].stats['acceptance'].mean():.2f}")
gap = np.abs(shown["ours"][0] - shown["library"][0])
assert np.all(gap < 4 * np.hypot(shown["ours"][1], shown["library"][1]))
assert abs(chance - draws["HMC"].stats["acceptance"].mean()) < 0.05

# %% [markdown]
# ### Have the chains converged? In functions, or in weights?
#
# $\hat R$ compares the variance between chains with that within them. Exchange two hidden units,
# or turn the signs around a tanh unit, and the function stays: every mode has $3! \cdot 2^3 = 48$
# copies. Which of them a chain visits is of no interest, but it is what $\hat R$ of the *weights*
# measures. ([What else can be asked](../derivations/has-it-converged.md), and what fools it.)

# %% tags=["rounding"]
found = {name: bbb.convergence(d, grid) for name, d in draws.items()}
print(found["HMC"])
print()
print("            R-hat            effective draws of the functions (the worst)")
print("            functions weights         per 1000 gradients")
per_thousand = {}
for name, table in found.items():
    functions, weights = table.worst("functions"), table.worst("weights")
    gradients = draws[name].stats["gradients"].sum()
    per_thousand[name] = 1000 * functions.ess_bulk / gradients
    print(
        f"{name:10} {functions.r_hat:9.3f} {weights.r_hat:8.3f} {functions.ess_bulk:7.0f} "
        f"{per_thousand[name]:10.2f}"
    )
assert found["HMC"].worst("functions").r_hat < 1.1
assert found["HMC"].worst("weights").r_hat > found["HMC"].worst("functions").r_hat + 0.05
assert found["Metropolis"].worst("functions").r_hat > found["HMC"].worst("functions").r_hat
assert per_thousand["HMC"] > per_thousand["Metropolis"]

# %%
fig, axes = plt.subplots(2, 2, figsize=(9.2, 4.6), sharex="col", sharey="row")
for column, name in enumerate(("HMC", "Metropolis")):
    kept = draws[name].positions
    w = np.ascontiguousarray(draws[name].target.weights(draws[name].flat))
    f = model.predict(w, np.array([[0.0]])).reshape(kept.shape[:2])
    first = draws[name].block("W0")[:, :, 0, 0]
    for chain, colour in enumerate((SKY, VERMILLION, BLACK)):
        axes[0, column].plot(f[:, chain], color=colour, linewidth=0.6)
        axes[1, column].plot(first[:, chain], color=colour, linewidth=0.6)
    axes[0, column].set(title=f"{name}, three chains")
    axes[1, column].set(xlabel="kept draw")
axes[0, 0].set_ylabel("function at x = 0")
axes[1, 0].set_ylabel("weight $W_0[0, 0]$")
# alt: Three chains of HMC and of Metropolis' walk, for a function value and for one weight. HMC's
# function values mix and its weight stays for long at one of several levels; the walk's function
# values wander slowly and apart, and its weight stays where it is.
plt.show()

# %% [markdown]
# HMC's functions agree between chains while single weights stay for long in one copy of the mode.
# The walk's functions do not agree either.  *ChEES* finds one length of path for many chains in the
# warm-up ([D47](../derivations/samplers.md#d47-the-length-of-the-path-learned)).
#
# ### Constant speed instead of constant energy
#
# The youngest samplers keep the length of the momentum, and the gradient turns its direction $u$
# ([D48](../derivations/microcanonical.md#d48-motion-at-constant-speed-and-what-it-keeps)). A kick
# does not keep volume. With $e = g/|g|$, $c = e\cdot u$ and $\delta = \epsilon|g|/(d-1)$ it is
# ([D49](../derivations/microcanonical.md#d49-the-isokinetic-leapfrog-its-volume-and-mams))
#
# $$u \leftarrow \frac{u + (\sinh\delta + c\,(\cosh\delta - 1))\,e}{\cosh\delta + c\sinh\delta},
# \qquad -\log|\det| = (d-1)\log(\cosh\delta + c\sinh\delta),$$
#
# and the second number, its *work*, takes the place of the kinetic energy in the acceptance. That
# is MAMS, here on the hill of Section 2.


# %%
def kick(u, gradient, eps):
    """Turn directions u (S, D) towards the gradient; return them and the work (S,)."""
    length = np.linalg.norm(gradient, axis=1, keepdims=True)
    e, delta = gradient / length, eps * length / (u.shape[1] - 1)
    c = np.sum(e * u, axis=1, keepdims=True)
    grown = np.cosh(delta) + c * np.sinh(delta)
    u = (u + (np.sinh(delta) + c * (np.cosh(delta) - 1)) * e) / grown
    return u, (u.shape[1] - 1) * np.log(grown[:, 0])


def steer(target, z, eps, steps):
    """Return the end of a path of constant speed, and the work of its kicks."""
    work = 0.0
    for _ in range(steps):
        u, first = kick(z.r, z.gradient, eps / 2)
        z = point(target, z.theta + eps * u, u)
        u, second = kick(z.r, z.gradient, eps / 2)
        z, work = z._replace(r=u), work + first + second
    return z, work


def mams(target, theta, eps, longest, draws, rng, with_work=True):
    """Return draws (draws, S, D) of S chains, and the mean acceptance probability."""
    kept, chances = [], []
    for _ in range(draws):
        u = rng.standard_normal(theta.shape)
        start = point(target, theta, u / np.linalg.norm(u, axis=1, keepdims=True))
        end, work = steer(target, start, eps, rng.integers(1, longest + 1))
        lost = start.log_density - end.log_density + with_work * work  # D49
        chance = np.exp(np.minimum(0, -lost))
        theta = np.where((rng.random(len(theta)) < chance)[:, None], end.theta, theta)
        kept.append(theta)
        chances.append(chance.mean())
    return np.array(kept), np.mean(chances)


angle, h = np.linspace(0.1, 6.0, 9), 1e-6  # in two dimensions a direction is one angle
pull, angles, works = np.tile([[1.3, -0.4]], (9, 1)), {}, {}
for side in (-h, 0.0, h):
    u, works[side] = kick(np.column_stack([np.cos(angle + side), np.sin(angle + side)]), pull, 0.5)
    angles[side] = np.unwrap(np.arctan2(u[:, 1], u[:, 0]))
gap = np.abs(np.log((angles[h] - angles[-h]) / (2 * h)) + works[0.0]).max()
print(f"the work is minus the logarithm of the slope of the angle, to {gap:.0e}")
assert gap < 1e-8
assert np.abs(np.linalg.norm(u, axis=1) - 1).max() < 1e-14

rng = np.random.default_rng(13)
begin = rng.standard_normal((400, 2))
ours, chance = mams(hill, begin, 0.8, 4, 160, rng)
kernel = mcmc.MAMS(step_size=0.8, decoherence_length=1.6)
library = sample_target(hill, begin, sampler=kernel, draws=160, warm_up=0, seed=5)
compare(ours[60:], library.positions[60:])
print(f"acceptance: ours {chance:.3f}, library {library.stats['acceptance'].mean():.3f}")
assert abs(chance - library.stats["acceptance"].mean()) < 0.01
wrong, _ = mams(hill, begin, 0.8, 4, 160, np.random.default_rng(13), with_work=False)
variance = np.mean(wrong[60:, :, 0] ** 2)
print(f"without the work E[a^2] = {variance:.2f}, and should be {exact['E[a^2]']:.2f}")
assert abs(variance / exact["E[a^2]"] - 1) > 0.1

# %% [markdown]
# *MCLMC* takes the same steps, with a little noise for the direction after each, and accepts them
# all. Its draws are biased, and no number of them mends that; the errors of energy tell how much
# ([D50](../derivations/microcanonical.md#d50-mclmc-its-bias-and-its-tuning)). Along the chain
# their mean is 0, and a share $\tfrac12 + e^{q^2/2}\,\Phi(-q)$ of the steps would have been
# accepted, with $q^2$ their variance; in the target it would be $2\,\Phi(-q/2)$. On a thousand
# independent standard normal numbers:

# %%
import warnings
from statistics import NormalDist

rng = np.random.default_rng(6)
for eps in (20.0, 27.0):
    kernel, begin = mcmc.MCLMC(step_size=eps), rng.standard_normal((40, 1000))
    with warnings.catch_warnings():  # of a bias above 6 %, which is what we look at
        warnings.simplefilter("ignore", UserWarning)
        found = sample_target(normal, begin, sampler=kernel, draws=50, warm_up=0, seed=8)
    squares = np.mean(found.positions[10:] ** 2, axis=(0, 2))  # one number per chain
    bias, error = squares.mean() - 1, squares.std(ddof=1) / np.sqrt(len(squares))
    accepted, told = found.stats["acceptance"].mean(), found.expected_bias
    q = np.sqrt(1000) * (eps / np.sqrt(1000)) ** 3 / 12  # D50, v = h^6 / 144
    along, in_target = 0.5 + np.exp(q * q / 2) * NormalDist().cdf(-q), 2 * NormalDist().cdf(-q / 2)
    print(f"eps {eps:g}: variance off by {100 * bias:.1f} +- {100 * error:.1f} %", end=", ")
    print(f"told {100 * told:.1f} %. Of the steps {accepted:.3f} would be accepted;")
    print(
        f"        of normal errors with mean 0 {along:.3f}, with the target's mean {in_target:.3f}"
    )
    assert bias > 4 * error
    assert abs(bias - told) < 4 * error + 0.6 * told**2
    assert in_target < accepted - 0.05

# %% [markdown]
# ## 6. Where are VI's standard deviations too small?
#
# The fits maximise the ELBO, with the KL divergence in closed form
# ([D18](../derivations/estimators.md#d18-the-complexity-cost-in-closed-form-mean-field),
# [D19](../derivations/correlated-posteriors.md#d19-the-complexity-cost-in-closed-form-full-rank)):
# with the noise fitted ([D1](../derivations/likelihoods.md#d1-learned-noise)), and with the noise
# *held* at the mean that HMC found, where HMC is run again. The better of two starts is kept.

# %% tags=["rounding"]
from bbb_numpy.training import start as start_training

seen = float(np.exp(draws["HMC"].block("log_noise")).mean())
held = bbb.Model(model.network, prior, bbb.GaussianLikelihood(seen))
exact = bbb.sample(
    held, x, y, sampler="hmc", chains=8, draws=400, warm_up=150, target_accept=0.9, seed=1
)
print(f"HMC, noise held at {seen:.2f}: {exact.summary()}")
assert bbb.convergence(exact, grid, weights=False).worst("functions").r_hat < 1.1


def better_of_two(model, posterior):
    """Return estimator, theta and ELBO of the start that ended highest."""
    estimator, found = bbb.ClosedFormKL(model, posterior), []
    for seed in range(2):
        rng, adam = np.random.default_rng(seed), bbb.Adam(0.05, schedule=bbb.Cosine())
        state = start_training(estimator, rng, adam)
        state = bbb.fit(
            estimator,
            state,
            x,
            y,
            bbb.Recipe(optimizer=adam, epochs=2000, batch_size=12, samples=4),
            rng=rng,
        )
        noise = estimator.draw(np.random.default_rng(9), 4000)  # the same for all
        elbo = -estimator.value_and_grad(state.theta, noise, x, y, 1.0)[0]
        found.append((elbo, state.theta))
    elbo, theta = max(found, key=lambda pair: pair[0])
    return estimator, theta, elbo


fits = {
    "mean field, noise fitted": better_of_two(model, bbb.MeanField(1.0, -3.0)),
    "mean field": better_of_two(held, bbb.MeanField(1.0, -3.0)),
    "full rank": better_of_two(held, bbb.FullRank(1.0, -3.0)),
}
for name, (_, _, elbo) in fits.items():
    print(f"{name:25} ELBO {elbo:.1f} nats")

# %% tags=["rounding"]
band = {
    "HMC": bbb.predict(
        bbb.DrawnWeights(held), exact.flat, grid, rng=np.random.default_rng(1), samples=4000
    )
}
for name, d in draws.items():
    band[f"{name}, noise drawn"] = bbb.predict(
        bbb.DrawnWeights(model), d.flat, grid, rng=np.random.default_rng(1), samples=4000
    )
for name, (estimator, theta, _) in fits.items():
    band[name] = bbb.predict(estimator, theta, grid, rng=np.random.default_rng(1), samples=4000)

order = (
    *("HMC, noise drawn", "NUTS, noise drawn", "Metropolis, noise drawn"),
    *("HMC", "mean field", "full rank"),
)
fig, axes = plt.subplots(2, 3, figsize=(9.6, 6.2), sharex=True, sharey=True)
for ax, name in zip(axes.ravel(), order, strict=True):
    b, line = band[name], grid[:, 0]
    mean = b.mean[:, 0]
    for width, colour, label in (
        (2 * b.total[:, 0], PALE, "± 2 total standard deviations"),
        (2 * b.epistemic[:, 0], SKY, "± 2 epistemic standard deviations"),
    ):
        ax.fill_between(line, mean - width, mean + width, color=colour, label=label)
    ax.plot(line, mean, "-", color=VERMILLION, label="predictive mean")
    ax.plot(line, np.sin(2 * line), ":", color=BLACK, label="sin 2x")
    ax.plot(x[:, 0], y[:, 0], "o", color=GREY, markersize=4, label="data")
    ax.set(title=name if "drawn" in name else f"{name}, noise held")
for ax in axes[1]:
    ax.set(xlabel="x")
for ax in axes[:, 0]:
    ax.set(ylabel="y")
fig.legend(
    *axes[0, 0].get_legend_handles_labels(), frameon=False, loc="outside upper center", ncols=5
)
# alt: Six panels with the data, sin 2x, and predictive means with bands. HMC, NUTS and Metropolis
# with the noise drawn look alike, wide in the gap and wider outside. With the noise held, the mean
# field's epistemic band is much narrower outside than HMC's; full rank lies between.
plt.show()

# %% tags=["rounding"]
line = grid[:, 0]
data = ((line > -2) & (line < -0.6)) | ((line > 0.7) & (line < 1.6))
gap = (line > -0.6) & (line < 0.7)
places = {"at the data": data, "in the gap": gap, "outside": ~data & ~gap}
size = {
    name: {where: np.sqrt(np.mean(b.epistemic[rows] ** 2)) for where, rows in places.items()}
    for name, b in band.items()
}
print(f"{'epistemic std. deviation':25}", *(f"{where:>12}" for where in places))
for name, by_place in size.items():
    print(f"{name:25}", *(f"{value:12.3f}" for value in by_place.values()))
print("as shares of HMC's")
for name in ("mean field", "full rank"):
    print(f"{name:25}", *(f"{size[name][where] / size['HMC'][where]:12.2f}" for where in places))

drawn = np.exp(draws["HMC"].block("log_noise"))
fitted = float(band["mean field, noise fitted"].aleatoric[0, 0])
print(f"\nnoise: drawn {drawn.mean():.2f} +- {drawn.std():.2f}, fitted by the ELBO {fitted:.2f}")

nuts, hmc = size["NUTS, noise drawn"], size["HMC, noise drawn"]
assert all(0.8 < nuts[where] / hmc[where] < 1.25 for where in places)
assert size["mean field"]["outside"] < 0.6 * size["HMC"]["outside"]
assert size["mean field"]["in the gap"] < 0.85 * size["HMC"]["in the gap"]
assert size["mean field"]["outside"] < size["full rank"]["outside"] < size["HMC"]["outside"]
assert size["mean field, noise fitted"]["outside"] > 1.5 * size["mean field"]["outside"]
assert fits["full rank"][2] > fits["mean field"][2]
assert fitted > 1.5 * drawn.mean()

# %% [markdown]
# With the noise held, both fits are at the data about as wide as the posterior, or a little wider.
# Where there are none they are too narrow, the mean field most: there functions differ by what
# several weights do *together*. Full rank brings back much of it outside, but not all: the
# posterior is no Gaussian. With its noise fitted the mean field is not narrower than HMC: what it
# approximates is another, wider posterior.
#
# **Why does the ELBO want so much noise?** Annealed importance sampling ([M20][1]) estimates the
# log evidence with the noise held at any value; what the ELBO lacks of it is
# $\mathrm{KL}(q \| p)$.
#
# [1]: ../derivations/model-checking.md#m20-evidence-bayes-factors-and-annealed-importance-sampling

# %% tags=["rounding"]
from bbb_studies import annealing

at_fit = bbb.Model(model.network, prior, bbb.GaussianLikelihood(fitted))
evidence = {
    scale: annealing.evidence(bbb.LogJoint(m, x, y), chains=300, steps=80, seed=0)
    for scale, m in ((seen, held), (fitted, at_fit))
}
print("noise                        log evidence      ELBO   KL(q || posterior)")
gap = {}
for name, scale in (
    ("full rank", seen),
    ("mean field", seen),
    ("mean field, noise fitted", fitted),
):
    known, elbo = evidence[scale], fits[name][2]
    gap[name] = known.log_evidence - elbo
    print(
        f"{scale:.2f} {name:24}{known.log_evidence:7.2f} +- {known.error:.2f} {elbo:8.2f} "
        f"{gap[name]:10.1f} nats"
    )
print(f"for one of 48 copies alone, log 48 = {np.log(48):.2f} nats")
cost = 0.5 * (np.log(fitted / 0.3) / 0.2) ** 2 - 0.5 * (np.log(seen / 0.3) / 0.2) ** 2
print(f"the hyperprior of the samplers would charge {cost:.1f} nats for the larger noise")
assert abs(evidence[seen].log_evidence - evidence[fitted].log_evidence) < 1.5
assert gap["mean field"] > gap["mean field, noise fitted"] + 3
assert gap["mean field"] > gap["full rank"] > np.log(48) - 1

# %% [markdown]
# The data do not decide between a curve with little noise and no curve with much: the evidence is
# nearly the same. The ELBO decides, for a reason that is not in the data. With much noise the
# posterior is close to the prior, a Gaussian that $q$ can be; with little it is 48 curved copies,
# of which $q$ covers one. **Fitting a scale by the ELBO prefers scales at which $q$ is good, not
# those that are likely.** A prior on the noise, such as the samplers have, settles it.
#
# ## 7. Exercises
#
# 1. Write a proposal for Section 1 that makes the chain reducible, and one that makes it periodic.
#    Which of the printed checks notice?
# 2. In Section 2, leave out the *first* half step instead of the last. What is the order now?
# 3. In `nuts_step`, let `grow` return its tree where it now returns `None` for a turn. How many
#    chains do you need until `compare` notices? Then put the printed sign of Section 4 into
#    `turned`: what do the moments say, and what the points per draw?
# 4. Give HMC on the ridge the metric `mcmc.DenseMetric(covariance)`. What is the best path now?
# 5. Take `HalfCauchy(1.0)` for the noise. Where do the chains go, and does $\hat R$ in function
#    space notice?
#
# <details><summary>Hints</summary>
#
# 1. Two places between which nothing is ever proposed; the matrix `exchange`. Detailed balance and
#    stationarity hold in both cases; only a high power of the matrix differs.
# 2. The order is 1 in either case: the momentum that enters the energy is half a step off.
# 3. A path is kept although from some of its points NUTS would have stopped earlier (M10). Begin
#    with few chains and double them. With the wrong sign look at the points per draw.
# 4. In the metric of the posterior the ridge is round: every direction has the period $2\pi$.
#    After a quarter of it the place has forgotten where it was.
# 5. A half-Cauchy density vanishes neither at 0 nor soon for large noise. Plot the draws of the
#    logarithm of the noise, chain by chain, before $\hat R$.
#
# </details>
#
# **Next:** [07](07_powerball.ipynb), a data set that knows the right answer.
# [08](08_what_separates_the_methods.ipynb) compares HMC and the mean field on real data. The
# library's kernels are [hmc.py](../bbb_numpy/sampling/mcmc/hmc.py) and
# [nuts.py](../bbb_numpy/sampling/mcmc/nuts.py).
