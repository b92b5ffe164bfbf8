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
# # What is a proof of a gradient?
#
# A gradient derived by hand is a claim: *these lines are the derivatives of those*. Here such
# claims are proved and refuted, errors are planted, and a table shows who notices which. **No
# method notices them all.**
#
# You need derivatives, fractions and NumPy.
# **It takes** about 35 minutes to read and 5 seconds of processor time to run.
# Theory: [D9](../derivations/numbers-and-proofs.md#d9-two-oracles-for-a-gradient) (measuring),
# [D44](../derivations/numbers-and-proofs.md#d44-a-gradient-proved-in-a-finite-field) (proving).
# Before: [08](08_what_separates_the_methods.ipynb).
#
# ## 1. Proved, and refuted
#
# The spring of [notebook 01](01_from_one_weight_to_the_network.ipynb): a load $x_i$ (kg) stretches
# it by $y_i = w x_i + \text{noise}$ (cm). Now $w$ is known to be *positive*: $w = e^u$ with $u \sim
# N(\mu, \sigma^2)$, $\sigma = \log(1 + e^\rho)$. The density of $u$ times the Jacobian $du/dw =
# e^{-u}$ is $q(w)$, a log-normal. The prior is exponential, $P(w) = \lambda e^{-\lambda w}$; a
# minibatch pays the share $\pi_i$ of the KL term:
#
# $$F = \pi_i\,[\log q(w) - \log P(w)] + \sum_i \Big[\frac{(y_i - w x_i)^2}{2\sigma_y^2}
#   + \log\sigma_y + \tfrac12\log 2\pi\Big],$$
#
# as a mean over samples $w = e^{\mu + \sigma\epsilon}$.

# %%
import numpy as np

import bbb_numpy as bbb

LOG_2PI = np.log(2 * np.pi)
noise, rate = 1.0, 0.2  # sigma_y in cm, lambda in kg/cm


def value_and_grad(theta, eps, x, y, pi):
    """Return the free energy (nats) of samples eps (S,), rows x, y (B,); and its gradient."""
    mu, rho = theta
    e = np.exp(rho)
    sigma, slope = np.log(1 + e), e / (1 + e)
    u = mu + sigma * eps
    w = np.exp(u)  # (S,)
    r = y - w[:, None] * x  # (S, B)
    log_q = -np.log(sigma) - eps**2 / 2 - LOG_2PI / 2 - u
    log_prior = np.log(rate) - rate * w
    nll = r**2 / (2 * noise**2) + np.log(noise) + LOG_2PI / 2
    value = np.mean(pi * (log_q - log_prior) + nll.sum(axis=1))

    d_u = pi * (rate * w - 1) - (r * x).sum(axis=1) * w / noise**2
    d_rho = slope * (-pi / sigma + d_u * eps).mean()
    return value, np.append(d_u.mean(), d_rho)


rng = np.random.default_rng(9)
x = rng.uniform(0.5, 3.0, 8)  # kg
y = 5.0 * x + noise * rng.standard_normal(8)  # cm; the true w is 5 cm/kg
theta, eps = np.array([1.6, -2.0]), rng.standard_normal(4)
proof = bbb.prove(value_and_grad, theta, eps, x, y, 1.0)
print(proof)
assert proof.proved

# %% [markdown]
# A theorem: for *all* $\mu$, $\rho$, noise, data and $\pi_i$, exactly, of the function as it runs.
# Now with one factor forgotten:

# %%
import inspect


def changed(function, *edits):
    """Return the function with parts of its text replaced, each of which occurs once."""
    text = inspect.getsource(function)
    for old, new in edits:
        assert text.count(old) == 1, f"{old!r} occurs {text.count(old)} times"
        text = text.replace(old, new)
    names = dict(globals())
    exec(text, names)
    return names[function.__name__]


wrong = bbb.prove(changed(value_and_grad, ("* w / noise**2", "/ noise**2")), theta, eps, x, y, 1.0)
print(wrong)
assert wrong.verdict == "refuted"


# %%
def ridge(theta, x, y, decay):
    r = x * theta[0] + theta[1] - y
    value = (r**2).sum() / len(x) + decay * (theta**2).sum()
    d_r = r / len(x)
    return value, np.array([d_r @ x, d_r.sum()]) + 2 * decay * theta


print(bbb.prove(ridge, theta, x, y, 0.1))
assert bbb.prove(ridge, theta, x, y, 0.1).verdict == "refuted"

# %% [markdown]
# Told are the wrong derivatives, by how much, and the line to look at first.
#
# ## 2. Why one random residue proves
#
# Run the code on numbers that are never rounded. The *residues* modulo a prime $p$ are $0, \dots,
# p - 1$; sums and products are taken modulo $p$. They are a field: all but 0 have an inverse, so
# $1/2$ is a whole number. A *dual number* $a + b\,\delta$ with $\delta^2 = 0$ carries a number and
# its slope. Both in one class:


# %%
class Dual:
    """A residue a and its slope b, modulo p."""

    p = 2**61 - 1

    def __init__(self, a, b=0):
        self.a, self.b = a % self.p, b % self.p

    def __add__(self, other):
        return type(self)(self.a + other.a, self.b + other.b)

    def __mul__(self, other):
        return type(self)(self.a * other.a, self.a * other.b + self.b * other.a)

    def over(self, n):
        """Return the number divided by n: times the inverse of n."""
        return self * type(self)(pow(n, -1, self.p))


half = Dual(1).over(2)
print(f"1/2 = {half.a}, 1/2 + 1/2 = {(half + half).a}, and in floats 0.1 + 0.2 - 0.3 =", end=" ")
print(f"{0.1 + 0.2 - 0.3:.0e}")
tenths = Dual(1).over(10) + Dual(2).over(10) + Dual(-3).over(10)
assert (half + half).a == 1
assert tenths.a == 0

# %% [markdown]
# Take $f(t) = t^5 - 3t^2$ and two candidates for its derivative; one has a surplus of $(t - 1)(t -
# 2)(t - 3)/10^{14}$. The *excess* is the slope of the value less the slope by hand.


# %%
def excess(t, surplus=0):
    """Return f'(t) less the candidate: of a Dual with slope 1, the residue."""

    def number(n):
        return type(t)(n)

    square = t * t
    value = square * square * t + number(-3) * square
    by_hand = number(5) * square * square + number(-6) * t
    extra = (t + number(-1)) * (t + number(-2)) * (t + number(-3))
    by_hand = by_hand + (number(surplus) * extra).over(10**14)
    return (value.b - by_hand.a) % t.p


places = [int(t) for t in rng.integers(0, Dual.p, 60)]
of_right, of_wrong = ([excess(Dual(t, 1), k) for t in places] for k in (0, 1))
print(f"excess 0: the right one at {of_right.count(0)} of 60 random points, "
      f"the wrong one at {of_wrong.count(0)}")  # fmt: skip
assert of_right.count(0) == 60
assert of_wrong.count(0) == 0

# %% [markdown]
# **One random point is enough.** The excess is a polynomial. Unless it is zero it has at most as
# many roots as its degree $m$: a random point misses it with probability at most $m/p$ (Schwartz
# and Zippel: also in several variables). In small fields one can count where the surplus of degree
# 3 goes unnoticed:

# %%
for prime in (11, 101, 1009):
    small = type("Small", (Dual,), {"p": prime})
    unnoticed = [t for t in range(prime) if excess(small(t, 1), 1) == 0]
    print(f"p = {prime:4}: unnoticed at t = {unnoticed}, {len(unnoticed) / prime:.4f} of all")
    assert unnoticed == [1, 2, 3]
print(f"p = 2^61 - 1: a degree of 1000 goes unnoticed with {1000 / Dual.p:.0e} at most")

# %% [markdown]
# Floats have a step $h$: large ones truncate Taylor's series, small ones subtract numbers that
# agree in nearly all digits. The complex step $\operatorname{Im} f(t + ih) / h$ subtracts nothing,
# and still is rounded.

# %%
import matplotlib.pyplot as plt

from bbb_numpy.plots import style

at, steps = 0.3, np.logspace(-12, -0.5, 47)
slope, planted = 5 * at**4 - 6 * at, abs((at - 1) * (at - 2) * (at - 3)) / 1e14


def f(t):
    return t**5 - 3 * t**2


measured = {
    "(f(t + h) − f(t − h)) / 2h": (f(at + steps) - f(at - steps)) / (2 * steps),
    "Im f(t + ih) / h": f(at + 1j * steps).imag / steps,
}
errors = {name: np.abs(found / slope - 1) + 1e-17 for name, found in measured.items()}

fig, (left, right) = plt.subplots(1, 2, figsize=(9.6, 3.8), dpi=150, layout="constrained")
for (name, error), look in zip(errors.items(), ((style.VERMILLION, "o"), (style.GREEN, "^")),
                               strict=True):  # fmt: skip
    left.loglog(steps, error, look[1], color=look[0], ms=4, label=name)
left.axhline(planted / abs(slope), color=style.BLACK, lw=1, ls="--", label="the planted error")
left.set(xlabel="step h", ylabel="relative error of the slope", ylim=(1e-18, 10))
left.set(title="floats: how wrong a measured slope is")
left.legend(frameon=False, loc="upper left")
for found, color, mark, name in (
    (of_wrong, style.VERMILLION, "o", "with the surplus"),
    (of_right, style.BLUE, "s", "right"),
):
    shares = [one / Dual.p for one in found]
    right.plot(range(1, 61), shares, mark, color=color, ms=4, label=name)
right.set(xlabel="random point", ylabel="excess / p", ylim=(-0.05, 1.25))
right.set(title="residues: the excess at 60 random points")
right.legend(frameon=False, ncols=2, loc="upper right")
# alt: Left: the relative error of a measured slope against the step. Central differences are a V
# whose lowest point lies above the planted error; the complex step lies below it, at rounding
# level. Right: the excess at sixty random points of the field. That of the right gradient is always
# 0, that of the wrong one is scattered evenly between 0 and p.
plt.show()
best = errors["(f(t + h) − f(t − h)) / 2h"].min()
print(f"differences are right to {best:.0e} at best; planted is {planted / abs(slope):.0e}")

# %% [markdown]
# Left is a bar below which nothing is known. Right is none: equal is equal.
#
# `prove` does this with arrays of residues and slopes on which NumPy's own functions work. It
# draws the prime at random; a fixed one could be met on purpose. Modulo $2^{61} - 1$ the number
# $2^{61}$ is 1:

# %%
t = np.array([0.5, 2.0])
print(bbb.prove(lambda t: ((t**2).sum(), 2**61 * 2 * t), t).verdict)
a = rng.standard_normal((3, 3))
logdet = bbb.prove(lambda w: (np.linalg.slogdet(w)[1], np.linalg.inv(w).T), a + 3 * np.eye(3))
print(f"log |det W|, and its gradient, the inverse transposed: {logdet}")
assert logdet.proved

# %% [markdown]
# ## 3. Functions that a field does not have, and their laws
#
# $e^t$ has no value modulo $p$. It gets a random residue $E$ with the slope $E\,t'$: what holds for
# *any* $E$ holds for $e^t$. The converse is false: $e^{s + t} = e^s e^t$ has to be known. `prove`
# knows the laws of exponentials and logarithms. What is right by another law is *not proved*; only
# sixty digits refute.

# %%
laws = {
    "sigmoid written in two ways": lambda t: (
        np.log(1 + np.exp(t)).sum(),
        1 / (1 + np.exp(-t)),
    ),
    "sin(a + b), by its parts": lambda t: (
        np.sin(t.sum()),
        (np.cos(t[0]) * np.cos(t[1]) - np.sin(t[0]) * np.sin(t[1])) * np.ones(2),
    ),
}
for name, program in laws.items():
    print(f"{name}: {bbb.prove(program, t).verdict}")
assert [bbb.prove(program, t).verdict for program in laws.values()] == ["proved", "not proved"]

# %% [markdown]
# Add a function with its derivative. Dawson's integral has $D' = 1 - 2 x D$:

# %%
from scipy.special import dawsn

from exactgrad import function


def dawson(t):
    return dawsn(t).sum(), 1 - 2 * t * dawsn(t)


print(bbb.prove(dawson, t).reason)
function("dawsn", derivative=lambda x: 1 - 2 * x * dawsn(x))
print(bbb.prove(dawson, t))
assert bbb.prove(dawson, t).proved

# %% [markdown]
# ## 4. One path, and the signs of roots
#
# Residues are neither large nor small: a comparison looks at the float that each exact number
# carries. So a proof is for one *path*. `prove` tries eight more thetas, and says how many
# comparisons went one way only. A path that no theta took is a limit of the method:


# %%
def far_away(t):
    return (t**2).sum(), np.where(t.sum() > 1000, 0, 2) * t


for theta_of in (t, t + 1000):
    print(bbb.prove(far_away, theta_of))
assert bbb.prove(far_away, t).proved
assert bbb.prove(far_away, t + 1000).verdict == "refuted"

# %% [markdown]
# $r^2 = a$ has two solutions, and a field does not know the positive one. Where a root is taken
# sixty digits have the last word:

# %%
fooled = {
    "|t|, with the slope of t": lambda t: (np.sqrt(t**2).sum(), np.ones_like(t)),
    "no value at all": lambda t: (np.log(t).sum(), 1 / t),
}
for name, program in fooled.items():
    print(f"{name}, at t = -1.2: {bbb.prove(program, np.array([-1.2]))}")
    assert not bbb.prove(program, np.array([-1.2]))

# %% [markdown]
# ## 5. Right for some data alone
#
# Data are random residues too. The gradient $X^\top (P - Y)$ of softmax regression is right only
# where the rows of $Y$ sum to 1. `prove` finds the condition and makes it part of the theorem.
# *Order* is no such condition: an equation fits into a field, $x_1 < x_2$ does not.


# %%
def softmax_regression(w, x, y):
    z = x @ w
    p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    return -(y * np.log(p)).sum(), x.T @ (p - y)


w, rows, one_hot = rng.standard_normal((2, 3)), rng.standard_normal((4, 2)), np.eye(3)[[0, 2, 1, 0]]
print(bbb.prove(softmax_regression, w, rows, one_hot))
coincidence = bbb.prove(lambda t, x: ((x * t).sum(), x**2), t, np.ones(2))
print(coincidence)
assert bbb.prove(softmax_regression, w, rows, one_hot).verdict == "proved for these data"
assert not coincidence

# %% [markdown]
# ## 6. Who notices what
#
# A gradient can be the exact gradient of the wrong value. Two more questions:
#
# - *Is the value the formula's?* `prove_same` compares the costs of an epoch's minibatches, added
#   up, with a formula written from the three densities alone.
# - *Is its mean right?* Over 200 000 draws, means of cost and gradient are compared with the
#   expectations, known here: $E[w] = e^{\mu + \sigma^2/2}$, $E[w^2] = e^{2\mu + 2\sigma^2}$. More
#   than four standard errors are noticed.


# %%
def formula(theta, eps, x, y):
    """All data: mean over samples of log q(w) - log P(w) - log P(D|w)."""
    mu, sigma = theta[0], np.log(1 + np.exp(theta[1]))
    w = np.exp(mu + sigma * eps)
    log_normal = -np.log(w) - np.log(sigma) - LOG_2PI / 2 - (np.log(w) - mu) ** 2 / (2 * sigma**2)
    exponential = np.log(rate) - rate * w
    gaussian = -((y - w[:, None] * x) ** 2) / (2 * noise**2) - np.log(noise) - LOG_2PI / 2
    return np.mean(log_normal - exponential - gaussian.sum(axis=1))


def expectation(theta, x, y):
    """E[F] over the noise and its gradient."""
    mu, rho = theta
    sigma = np.log1p(np.exp(rho))
    mean, square = np.exp(mu + sigma**2 / 2), np.exp(2 * mu + 2 * sigma**2)
    kl = -np.log(sigma) - 0.5 - LOG_2PI / 2 - mu - np.log(rate) + rate * mean
    squares = y @ y - 2 * mean * (x @ y) + square * (x @ x)
    value = kl + squares / (2 * noise**2) + len(x) * (np.log(noise) + LOG_2PI / 2)
    d_mean, d_square = rate - (x @ y) / noise**2, (x @ x) / (2 * noise**2)
    d_mu = -1 + d_mean * mean + 2 * d_square * square
    d_sigma = -1 / sigma + sigma * d_mean * mean + 4 * sigma * d_square * square
    return value, np.array([d_mu, d_sigma / (1 + np.exp(-rho))])


print(f"the expectation's gradient is {bbb.prove(expectation, theta, x, y)}")
assert bbb.prove(expectation, theta, x, y).proved

# %% [markdown]
# Each wrong program is the right one with an edit of its text, or another share or noise:

# %%
edits = {
    "right": [],
    "1e-13 too much in one entry": [("slope * (", "1e-13 + slope * (")],
    "a sign: + 1 / sigma": [("(-pi / sigma", "(pi / sigma")],
    "score counted twice": [
        ("(d_u.mean()", "((d_u + pi * eps / sigma).mean()"),
        ("d_u * eps)", "d_u * eps + pi * (eps**2 - 1) / sigma)"),
    ],
    "a constant: - log rate": [("= np.log(rate)", "= -np.log(rate)")],
    "value and gradient: no 1/2": [
        ("r**2 / (2 * noise**2)", "r**2 / noise**2"),
        (") * w", ") * 2 * w"),
    ],
    "value and gradient: no Jacobian": [
        ("LOG_2PI / 2 - u", "LOG_2PI / 2"),
        ("rate * w - 1", "rate * w"),
    ],
}


def share(rows, total):
    return rows / total


def draw(samples):
    return rng.standard_normal(samples)


def uniform(samples):  # of variance 1
    return rng.uniform(-(3**0.5), 3**0.5, samples)


programs = {name: (changed(value_and_grad, *each), share, draw) for name, each in edits.items()}
programs["minibatch weight 1/N"] = value_and_grad, lambda rows, total: 1 / total, draw
programs["noise uniform, variance 1"] = value_and_grad, share, uniform


# %%
def costs(program, theta, eps):
    """Return value and gradient of an epoch: all minibatches added up."""
    value_and_grad, share, _ = program
    minibatches = (slice(0, 5), slice(5, 8))
    pairs = [value_and_grad(theta, eps, x[b], y[b], share(len(x[b]), 8)) for b in minibatches]
    return sum(pair[0] for pair in pairs), sum(pair[1] for pair in pairs)


def checked(program, theta, method):
    return bbb.check(lambda t: program[0](t, eps, x, y, 0.6), theta, method=method).passed


def off_by(program, theta):
    """Return how many standard errors the means of value and gradient are off."""
    pairs = [costs(program, theta, program[2](1000)) for _ in range(200)]
    found = np.array([np.append(value, grad) for value, grad in pairs])
    error = found.std(axis=0, ddof=1) / np.sqrt(len(found))
    return np.abs((found.mean(axis=0) - np.append(*expectation(theta, x, y))) / error).max()


judges = {  # whether a program is right, says
    "differences": lambda program, theta: checked(program, theta, "central"),
    "complex step": lambda program, theta: checked(program, theta, "complex"),
    "prove": lambda program, theta: bbb.prove(program[0], theta, eps, x, y, 0.6).proved,
    "prove_same": lambda program, theta: (
        bbb.prove_same(
            lambda theta, eps: costs(program, theta, eps)[0],
            lambda theta, eps: formula(theta, eps, x, y),
            *(theta, eps),
        ).proved
    ),
    "means": lambda program, theta: off_by(program, theta) < 4,
}
at_theta = {name: (program, theta) for name, program in programs.items()}
at_theta["right, but rho = -30"] = programs["right"], np.array([1.6, -30.0])
noticed = {
    name: {judge: not content(*of) for judge, content in judges.items()}
    for name, of in at_theta.items()
}
print(f"{'noticed by':32}" + "".join(f"{judge:>14}" for judge in judges))
for name, row in noticed.items():
    print(f"{name:32}" + "".join(f"{'yes' if seen else '-':>14}" for seen in row.values()))

# %%
planted = {name: row for name, row in noticed.items() if not name.startswith("right")}
who = {name: [judge for judge, seen in row.items() if seen] for name, row in noticed.items()}
assert not who["right"]
assert all(who[name] for name in planted)
assert who["1e-13 too much in one entry"] == ["prove"]
assert who["noise uniform, variance 1"] == ["means"]
assert "means" not in who["score counted twice"]
for name in list(planted)[3:]:
    assert not {"differences", "complex step", "prove"} & {*who[name]}
assert who["right, but rho = -30"] == ["differences", "means"]
for judge in judges:
    print(f"{judge:13} notices {sum(row[judge] for row in planted.values())} of {len(planted)}")

# %% [markdown]
# - **Differences, complex step and `prove`** ask whether the gradient is that of the value; the
#   first two have bars of $10^{-6}$ and $10^{-12}$.
# - **None of the three sees a wrong value with its own right gradient.** The formula does, and so
#   do the means.
# - **The score counted twice** has mean zero: only the noise grows
#   ([notebook 01](01_from_one_weight_to_the_network.ipynb)). Means do not replace the others.
# - **Uniform noise** leaves every comparison at fixed noise right. Only an expectation refutes it.
# - **The last row is no wrong formula.** At $\rho = -30$ the sum $1 + e^\rho$ keeps three digits
#   of $e^\rho$. The complex step is rounded alike and agrees; a field does not round. The library's
#   softplus is right there
#   ([D7](../derivations/numbers-and-proofs.md#d7-the-stable-softplus-family)).
#
# What nobody sees is a formula misread before it was written twice: that takes somebody who derives
# it ([derivations.md](../derivations.md)). A network's expectations have no closed form; there the
# noise is tested by itself.
#
# ## 7. Exercises
#
# 1. Divide the $10^{-13}$ of the first error by ten, and again. What does `prove` say instead of
#    *refuted*, and why must it?
# 2. Write the value's $\sigma$ as $\rho + \log(1 + e^{-\rho})$ and leave the gradient as it is.
#    Which methods are content, and which laws does `prove` need?
# 3. Let $\sigma = e^\rho$ where $\rho \lt -20$, with a slope that is wrong there by a factor of
#    two. At which $\theta$ does `prove` notice? How would you choose the points of your own proofs?
# 4. Give `function` a wrong derivative of `dawsn`. What does `prove` say of `dawson`, and of the
#    same with your derivative in it? What does a proof take for granted?
# 5. Compute $g(\nu)$ of [D41](../derivations/likelihoods.md#d41-the-constant-of-students-t) at
#    $\nu = 10^8$ with two calls of `math.lgamma`: how many digits are right? And Stirling's series
#    for $\log 9!$ ([D31](../derivations/likelihoods.md#d31-the-logarithm-of-a-factorial), step 3,
#    $z = 10$): is the error after each term smaller than the next term, and of its sign?
#
# <details><summary>Hints</summary>
#
# 1. *Not proved*. The constants are rounded in their sixteenth digit, and a difference below that
#    may come from them.
# 2. All of them: $e^{-\rho} = 1/e^{\rho}$ and $\log(ab) = \log a + \log b$ are known.
# 3. At $\rho \lt -20$ only. Take one point for every branch.
# 4. The derivative of an opaque function is an axiom: the right gradient is found wrong and yours
#    right. `gradcheck.check`, with floats, is not fooled.
# 5. The true value is $-1/(4\nu) = -2.5\cdot 10^{-9}$, and each `lgamma` is about $10^9$, rounded
#    in its sixteenth digit: none. Stirling's terms keep step 4 of D31 down to $10^{-13}$; below
#    that you see the rounding of $\log 9!$.
#
# </details>
#
# **Where to read on.** [10](10_from_prior_to_decision.ipynb): a table, from prior to decision.
# [docs/prove.md](../docs/prove.md): the command line and the test.
# [A gallery](../docs/exact-gallery.md): public gradients.
# [What can go wrong](../derivations/numbers-and-proofs.md): the limits of `prove`.
# [proofs.md](../proofs.md): a proof of every equation.
