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
# A gradient derived by hand is a claim: *these lines are the derivatives of those lines*. This
# notebook holds ten lines of code to that claim in four ways, each built from nothing: finite
# differences, the complex step, automatic differentiation, and arithmetic in a finite field, in
# which nothing is rounded. The first three *check*; the last one *proves*
# ([D9](../derivations/numbers-and-proofs.md#d9-two-oracles-for-a-gradient),
# [D44](../derivations/numbers-and-proofs.md#d44-a-gradient-proved-in-a-finite-field)). Then it
# plants errors, runs every method on every error, and prints who notices. No method notices them
# all, and the gradient is only one of the things that can be wrong.
#
# **At the end you will know** how each of the four works, which digits each of them can see, why
# one random point of a finite field is as good as all, and which errors no check of a gradient
# finds.
#
# **It needs** derivatives, complex numbers, fractions, Python classes, and the first two sections
# of [notebook 01](01_from_one_weight_to_the_network.ipynb). **It takes** about an hour to read; its
# cells run in some three seconds. The notebook before this one is
# [08, what separates the methods](08_what_separates_the_methods.ipynb); this one is the last.

# %%
import inspect
import random
from fractions import Fraction
from itertools import combinations
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import NullLocator

from bbb_numpy import gradcheck, prove
from bbb_numpy.exact import prove_same
from bbb_numpy.plots.style import BLACK, BLUE, GREEN, VERMILLION

plt.rcParams.update({"figure.dpi": 150, "figure.constrained_layout.use": True, "font.size": 9})
LOG_2PI = np.log(2 * np.pi)

# %% [markdown]
# ## 1. Ten lines, and their gradient
#
# The spring of [notebook 01](01_from_one_weight_to_the_network.ipynb), pulled to $x_i$ (cm) with
# the force $y_i = w x_i + \text{noise}$ (N), whose stiffness is now known to be *positive*: $w =
# e^u$ with $u \sim N(\mu, \sigma^2)$ and $\sigma = \log(1 + e^\rho)$. So $q(w)$ is a log-normal
# density, and that of $u$ has to be multiplied by the Jacobian $du/dw = 1/w = e^{-u}$. The prior is
# exponential, $P(w) = \lambda e^{-\lambda w}$. A minibatch pays the share $\pi$ of the KL term:
#
# $$F = \pi\,[\log q(w) - \log P(w)] + \sum_i \Big[\frac{(y_i - w x_i)^2}{2\sigma_y^2}
#   + \log\sigma_y + \tfrac12\log 2\pi\Big],$$
#
# as a mean over samples $w = e^{\mu + \sigma\epsilon}$. The value takes ten lines; what follows
# them is the gradient by hand. The other two functions say how large $\pi$ is and where $\epsilon$
# comes from.

# %%
rng = np.random.default_rng(9)
x = rng.uniform(0.5, 3.0, 8)  # cm
noise, rate = 0.7, 0.5  # N, cm/N
y = 1.0 * x + noise * rng.standard_normal(8)  # N; the true stiffness is 1 N/cm


# %%
def value_and_grad(theta, eps, x, y, pi):
    """Return the free energy (nats) of samples eps (S,), rows x, y (B,); and its gradient."""
    mu, rho = np.split(theta, 2)
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
    d_mu = d_u.mean()
    d_rho = slope * (-pi / sigma + d_u * eps).mean()
    return value, np.append(d_mu, d_rho)


def share(rows, total):
    return rows / total


def draw(rng, samples):
    return rng.standard_normal(samples)


theta = np.array([0.1, -1.0])
eps = draw(rng, 4)
value, grad = value_and_grad(theta, eps, x, y, 1.0)
print(f"F = {value:.4f} nats, gradient {grad.round(4)}")

# %% [markdown]
# ## 2. Finite differences, and their U
#
# Measure the slope. The central difference of second order and that of fourth order are
#
# $$\frac{F(\mu + h) - F(\mu - h)}{2h} = F' + \frac{h^2}{6} F''' + \dots, \qquad
# \frac{8\,[F(\mu + h) - F(\mu - h)] - [F(\mu + 2h) - F(\mu - 2h)]}{12h}
#   = F' - \frac{h^4}{30} F^{(5)} + \dots$$
#
# A large step truncates the series. A small one subtracts numbers that agree in nearly all their
# digits, and divides what rounding has left of them: about $2^{-53}\,|F|/h$. Here both can be said
# beforehand, for $F$ is a polynomial in $e^\mu$. The error is taken over 40 points $(\mu, \rho)$,
# as root mean square, relative to that of the slopes.

# %%
points = np.column_stack([rng.uniform(-0.5, 0.5, 40), rng.uniform(-2.0, 0.0, 40)])
along_mu = np.array([1.0, 0.0])


def F(theta):
    return value_and_grad(theta, eps, x, y, 1.0)[0]


def second_order(theta, h):
    return (F(theta + h * along_mu) - F(theta - h * along_mu)) / (2 * h)


def fourth_order(theta, h):
    return (4 * second_order(theta, h) - second_order(theta, 2 * h)) / 3


def rms(numbers):
    return np.sqrt(np.mean(np.square(numbers)))


def derivative(order, theta):
    """d^k F / d mu^k for k > 1: the terms of F are proportional to e^mu and to e^2mu."""
    w = np.exp(theta[0] + np.log1p(np.exp(theta[1])) * eps)
    return np.mean((rate - x @ y / noise**2) * w + 2**order * (x @ x) / (2 * noise**2) * w**2)


by_hand = np.array([value_and_grad(point, eps, x, y, 1.0)[1][0] for point in points])
size = rms(by_hand)


def error_of(method, h):
    return rms([method(point, h) for point in points] - by_hand) / size


steps = np.logspace(-14, -0.5, 46)
errors = {method: [error_of(method, h) for h in steps] for method in (second_order, fourth_order)}
rounding = 2.0**-53 * rms([F(point) for point in points]) / size / steps
truncation = {
    second_order: steps**2 / 6 * rms([derivative(3, point) for point in points]) / size,
    fourth_order: steps**4 / 30 * rms([derivative(5, point) for point in points]) / size,
}
for method, order in ((second_order, 2), (fourth_order, 4)):
    h = np.array([0.02, 0.04])
    slope = np.diff(np.log([error_of(method, one) for one in h]))[0] / np.log(2)
    best = int(np.argmin(errors[method]))
    print(f"{method.__name__}: order {slope:.2f}; smallest error {errors[method][best]:.0e}")
    assert abs(slope - order) < 0.05
small = steps < 1e-6
fall = np.polyfit(np.log(steps[small]), np.log(np.array(errors[second_order])[small]), 1)[0]
print(f"below h = 1e-6 the error grows as h^{fall:.1f}")
assert abs(fall + 1) < 0.1

# %% [markdown]
# ## 3. The complex step
#
# Go sideways. With $F(\mu + ih) = F + ihF' - \frac{h^2}{2}F'' - \dots$ the imaginary part is
# $hF' + O(h^3)$: *nothing is subtracted*, so $h$ may be so small that $h^2$ is lost in rounding.


# %%
def complex_step(theta, h):
    return F(theta + 1j * h * along_mu).imag / h


sideways = np.logspace(-300, -0.5, 60)
errors[complex_step] = [error_of(complex_step, h) for h in sideways]
print(f"h = 1e-200: relative error {error_of(complex_step, 1e-200):.0e}")
assert max(error_of(complex_step, h) for h in (1e-8, 1e-30, 1e-200)) < 1e-15

# %%
fig, (left, right) = plt.subplots(1, 2, figsize=(9.6, 4.4), sharey=True, width_ratios=(3, 2))
left.loglog(steps, errors[second_order], "o", color=VERMILLION, ms=4, label="second order")
left.loglog(steps, errors[fourth_order], "s", color=BLUE, ms=4, mfc="white", label="fourth order")
left.loglog(steps, rounding, "-", color=BLACK, lw=1, label="rounding, $2^{-53}|F| / h$")
left.loglog(
    *(steps, truncation[second_order], "--"), color=VERMILLION, label="truncation, $h^2 F''' / 6$"
)
left.loglog(
    *(steps, truncation[fourth_order], ":"), color=BLUE, label="truncation, $h^4 F^{(5)} / 30$"
)
for text, place in {
    "slope −1": (2e-11, 1e-4),
    "slope 2": (2e-6, 1e-6),
    "slope 4": (3e-2, 1e-8),
}.items():
    left.annotate(text, place)
left.set(xlabel="step h of μ (no unit)", ylabel="relative error of dF/dμ", ylim=(1e-17, 10))
left.set(title="finite differences")
fig.legend(frameon=False, loc="outside upper center", ncols=3)
right.loglog(sideways, errors[complex_step], "^", color=GREEN, ms=4)
right.set(
    xlabel="step h of μ (no unit)", title="complex step", xticks=10.0 ** np.arange(-300, 1, 100)
)
right.xaxis.set_minor_locator(NullLocator())
# alt: Relative error against the step, logarithmic. Finite differences of second and fourth order
# are a V each: rounding falls with slope minus one, truncation rises with slope two or four. The
# complex step stays at rounding level from 1e-300 to 1e-8 and rises only beyond.
plt.show()

# %% [markdown]
# The best step keeps eleven of sixteen digits in second order and thirteen in fourth, and nobody
# who does not know the answer knows that step. The complex step keeps all of them from $10^{-8}$
# down to $10^{-300}$.
#
# **What it cannot pass through** is what does not continue to complex numbers: `abs`, `conj`, and
# what is made of them (`np.vdot`, `np.linalg.norm`). There are four ways to square a residual that
# are one and the same for real numbers:

# %%
squares = {
    "r * r": lambda r: np.sum(r * r),
    "abs(r)**2": lambda r: np.sum(np.abs(r) ** 2),
    "r * conj(r)": lambda r: np.sum(r * np.conj(r)),
    "vdot(r, r)": lambda r: np.vdot(r, r),
}
stiffness = 1.2  # N/cm
right = -2 * x @ (y - stiffness * x)
for name, square in squares.items():
    sideways_slope = np.imag(square(y - (stiffness + 1e-30j) * x)) / 1e-30
    central = (square(y - (stiffness + 1e-5) * x) - square(y - (stiffness - 1e-5) * x)) / 2e-5
    print(f"{name:12} complex step {sideways_slope:7.3f}, difference {central:7.3f}")
    assert abs(central - right) < 1e-6
    assert (abs(sideways_slope - right) < 1e-12) == (name == "r * r")

# %% [markdown]
# ## 4. Automatic differentiation, in ten lines
#
# A *dual number* $a + b\,\delta$ with $\delta^2 = 0$ carries a number and its slope. Its arithmetic
# is school algebra, $(a + b\delta)(c + d\delta) = ac + (ad + bc)\,\delta$, and
# $f(a + b\delta) = f(a) + f'(a)\,b\,\delta$. NumPy computes with arrays of any objects that know
# `+`, `*` and `/`; of `np.exp` it makes a call of their method `exp`. What follows from
# those three operations is written once, for another class will need it:


# %%
class Algebra:
    """What follows from +, * and /."""

    def __neg__(self):
        return self * -1

    def __sub__(self, other):
        return self + other * -1

    def __rsub__(self, other):
        return self * -1 + other

    def __rtruediv__(self, other):
        return type(self)(other) / self

    def __pow__(self, n):
        return self if n == 1 else self * self ** (n - 1)

    def __radd__(self, other):
        return self + other

    def __rmul__(self, other):
        return self * other


class Dual(Algebra):
    """A number a, of any kind, and its slope b."""

    def __init__(self, a, b=0):
        self.a, self.b = (a.a, a.b) if isinstance(a, Dual) else (a, b)

    def __add__(self, other):
        o = Dual(other)
        return Dual(self.a + o.a, self.b + o.b)

    def __mul__(self, other):
        o = Dual(other)
        return Dual(self.a * o.a, self.a * o.b + self.b * o.a)

    def __truediv__(self, other):
        o = Dual(other)
        return Dual(self.a / o.a, (self.b - self.a / o.a * o.b) / o.a)

    def exp(self):
        return Dual(np.exp(self.a), np.exp(self.a) * self.b)

    def log(self):
        return Dual(np.log(self.a), self.b / self.a)


t = Dual(2.0, 1.0)
print(f"(t^2 + 1) / t at t = 2: {((t**2 + 1) / t).a}, its slope 1 - 1 / t^2: {((t**2 + 1) / t).b}")
assert ((t**2 + 1) / t).b == 0.75


def duals(numbers, slopes):
    return np.array([Dual(a, b) for a, b in zip(numbers, slopes, strict=True)])


def automatic(value_and_grad, theta, *arguments):
    """Differentiate the value, one coordinate after the other."""
    return np.array(
        [value_and_grad(duals(theta, row), *arguments)[0].b for row in np.eye(len(theta))]
    )


found = automatic(value_and_grad, theta, eps, x, y, 1.0)
print(f"automatic {found.round(4)}; by hand {grad.round(4)}")
print(f"largest relative difference {np.abs(found / grad - 1).max():.0e}")
assert np.abs(found / grad - 1).max() < 1e-13

# %% [markdown]
# No step, nothing truncated; but floats are still rounded, and two formulas that are the same
# differ in their last digits. So there is a bar ($10^{-12}$, say), and below the bar nothing is
# known. JAX and PyTorch do this backwards, which is quicker for many parameters and no more exact.
#
# ## 5. Exact arithmetic
#
# Put other numbers into the same `Dual`. The *residues* modulo a prime $p$ are $0, 1, \dots, p - 1$
# with sums and products taken modulo $p$. They are a field: everything but 0 has an inverse, so
# $1/2$ is a whole number, and every fraction is one. Nothing is ever rounded.


# %%
class Residue(Algebra):
    """A whole number modulo a prime; a fraction n / d is n times the inverse of d."""

    p = 2**61 - 1

    def __init__(self, x):
        top, bottom = (x.n, 1) if isinstance(x, Residue) else Fraction(x).as_integer_ratio()
        self.n = int(top) * pow(int(bottom), -1, self.p) % self.p

    def __add__(self, other):
        return type(self)(self.n + type(self)(other).n)

    def __mul__(self, other):
        return type(self)(self.n * type(self)(other).n)

    def __truediv__(self, other):
        return type(self)(self.n * pow(type(self)(other).n, -1, self.p))


half = 1 / Residue(2)
print(f"1/2 = {half.n}, 1/2 + 1/2 = {(half + half).n}, 0.1 + 0.2 - 0.3 = {0.1 + 0.2 - 0.3:.0e}")
tenth = 1 / Residue(10)
print(f"1/10 + 2/10 - 3/10 = {(tenth + 2 * tenth - 3 * tenth).n}")
assert (half + half).n == 1
assert (tenth + 2 * tenth - 3 * tenth).n == 0

# %% [markdown]
# A polynomial, $f(t) = t^5 - 3t^2$, and two candidates for its derivative; the second has a surplus
# of $(t - 1)(t - 2)(t - 3)/10^{13}$. Take a *random* residue for $t$ and compare.


# %%
def polynomial(t):
    return t**5 - 3 * t**2, 5 * t**4 - 6 * t


def with_surplus(t):
    value, slope = polynomial(t)
    return value, slope + (t - 1) * (t - 2) * (t - 3) / 10**13


def agrees(function, t):
    """Whether the slope of the value is the slope by hand, in the field of t."""
    value, slope = function(Dual(t, type(t)(1)))
    return (value.b - slope.a).n == 0


random.seed(9)
t = Residue(random.randrange(Residue.p))
for function in (polynomial, with_surplus):
    print(f"{function.__name__:12} at t = {t.n}: {agrees(function, t)}")
assert agrees(polynomial, t)
assert not agrees(with_surplus, t)

# %% [markdown]
# **Why one random point is enough.** The difference of the two sides is a polynomial. If it is not
# zero, it has at most as many roots as its degree $m$, so that a random point of the field is a
# root with a probability of at most $m/p$. Schwartz and Zippel proved the same for several
# variables. In small fields it can be counted: of all $p$ points, at how many does the surplus of
# degree 3 go unnoticed?

# %%
for prime in (11, 101, 1009):
    small_field = type("SmallField", (Residue,), {"p": prime})
    unnoticed = [t for t in range(prime) if agrees(with_surplus, small_field(t))]
    print(f"p = {prime:4}: unnoticed at t = {unnoticed}, {len(unnoticed) / prime:.4f} of all")
    assert unnoticed == [1, 2, 3]
print(f"p = 2^61 - 1: a degree of 1000 goes unnoticed with {1000 / Residue.p:.0e} at most")

# %% [markdown]
# (Somebody who checks at $t = 2$ finds nothing with any method. And with $p = 11$ the surplus
# would go unnoticed everywhere if its factor were $11$: a prime of 61 bits is not met by accident.)
#
# **Exponentials** have no value in the field, and need none. A number of which nothing is known but
# its derivative gets a random residue: if the two sides agree for *any* $E$ in place of $e^t$ with
# $E' = E\,t'$, they agree for $e^t$. The same for the logarithm, which is to undo the exponential.


# %%
class Transcendental(Residue):
    """Residues whose exponentials and logarithms are random, each drawn once."""

    exps, logs = {}, {}

    def pair(self, t, e):
        self.exps[t], self.logs[e] = e, t

    def exp(self):
        if self.n not in self.exps:
            self.pair(self.n, random.randrange(1, self.p))
        return type(self)(self.exps[self.n])

    def log(self):
        if self.n not in self.logs:
            self.pair(random.randrange(1, self.p), self.n)
        return type(self)(self.logs[self.n])


def excess(value_and_grad, theta, *arguments):
    """Return F' - grad . direction, at a random point along a random direction."""
    at, along = ([Transcendental(random.randrange(Residue.p)) for _ in theta] for _ in "ab")
    value, grad = value_and_grad(duals(at, along), *arguments)
    return (value.b - sum(Dual(g).a * d for g, d in zip(grad, along, strict=True))).n


def one_entry_off(*arguments):
    value, grad = value_and_grad(*arguments)
    return value, grad + np.array([0, 1e-13])


def another_sigmoid(theta, *arguments):
    value, grad = value_and_grad(theta, *arguments)
    e = np.exp(theta[1])
    return value, grad * np.append(1, (1 + e) / e / (1 + np.exp(-theta[1])))


for function in (value_and_grad, one_entry_off, another_sigmoid):
    print(f"{function.__name__:16} equal: {excess(function, theta, eps, x, y, 1.0) == 0}")
assert excess(value_and_grad, theta, eps, x, y, 1.0) == 0
assert excess(one_entry_off, theta, eps, x, y, 1.0) != 0
assert excess(another_sigmoid, theta, eps, x, y, 1.0) != 0

# %% [markdown]
# The gradient is proved. The other two are unequal, and yet one of them is right: it writes the
# sigmoid as $1/(1 + e^{-\rho})$, which is the same by $e^{-\rho} = 1/e^{\rho}$, a law of which our
# random $E$ know nothing. So *unequal* is no refutation yet. `bbb_numpy.prove` is these lines with
# the laws put in, and comparisons, roots and `tanh`; what is still unequal it computes to sixty
# digits, and these refute, with the amount. Data and noise are random residues as well.

# %%
for function in (value_and_grad, one_entry_off, another_sigmoid):
    print(f"{function.__name__}: {prove(function, theta, eps, x, y, 1.0)}")
assert prove(value_and_grad, theta, eps, x, y, 1.0).proved
assert prove(one_entry_off, theta, eps, x, y, 1.0).verdict == "refuted"
assert prove(another_sigmoid, theta, eps, x, y, 1.0).proved

# %% [markdown]
# A field knows neither sizes nor signs. Modulo $p = 2^{61} - 1$ the number $2^{61}$ is 1, and the
# root of $t^2$ is as well $t$ as $-t$. With the numbers above, both of these wrong gradients can
# pass. `prove` therefore draws its prime, and before it says *proved* it computes once more with
# sixty digits, at theta itself. There a root is positive, and the logarithm of a negative number
# does not exist.

# %%
print(f"2^61 = {Residue(2**61).n} modulo 2^61 - 1\n")
fooled = {
    "2^61 times too large": lambda t: ((t**2).sum(), 2**61 * 2 * t),
    "|t|, with the slope of t": lambda t: (np.sqrt(t**2).sum(), np.ones_like(t)),
    "no value at all": lambda t: (np.log(t).sum(), 1 / t),
}
for name, program in fooled.items():
    print(f"{name}: {prove(program, np.array([-1.2]))}")
    assert not prove(program, np.array([-1.2]))

# %% [markdown]
# ## 6. Who notices what
#
# A gradient can be the exact gradient of the wrong value. Two more questions are to be asked:
#
# - *Is the value the formula's?* `prove_same` compares, in the same field, the costs of all
#   minibatches of an epoch, added up, with a formula written from the three densities alone.
# - *Is its mean what it should be?* The noise is drawn 200 000 times; the mean of the epoch's cost
#   and that of its gradient are compared with the expectations, which for this example have a
#   closed form: $E[w] = e^{\mu + \sigma^2/2}$ and $E[w^2] = e^{2\mu + 2\sigma^2}$. More than four
#   standard errors are noticed.


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


print(f"the expectation's gradient is {prove(expectation, theta, x, y)}")
assert prove(expectation, theta, x, y).proved

# %% [markdown]
# Each wrong program is the right one with one edit, of its text:

# %%
source = "\n".join(inspect.getsource(part) for part in (value_and_grad, share, draw))
edits = {
    "right": [],
    "1e-13 too much in one entry": [("slope * (", "1e-13 + slope * (")],
    "a sign: + 1 / sigma": [("(-pi / sigma", "(pi / sigma")],
    "a factor: no sigmoid": [("slope * (", "(")],
    "score counted twice": [
        ("d_mu = d_u.mean()", "d_mu = (d_u + pi * eps / sigma).mean()"),
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
    "minibatch weight 1/N": [("rows / total", "1 / total")],
    "noise uniform, variance 1": [("standard_normal(", "uniform(-(3**0.5), 3**0.5, ")],
}


def program(changes):
    """Return the functions of the source after some changes, each of which must fit once."""
    text = source
    for old, new in changes:
        assert text.count(old) == 1, f"{old!r} occurs {text.count(old)} times"
        text = text.replace(old, new)
    names = dict(globals())
    exec(text, names)
    return SimpleNamespace(**{part: names[part] for part in ("value_and_grad", "share", "draw")})


# %%
minibatches = (slice(0, 5), slice(5, 8))


def costs(one, theta, eps, x, y):
    """Return value and gradient of an epoch: all minibatches added up."""
    pairs = [
        one.value_and_grad(theta, eps, x[rows], y[rows], one.share(len(x[rows]), len(x)))
        for rows in minibatches
    ]
    return sum(pair[0] for pair in pairs), sum(pair[1] for pair in pairs)


def of_minibatch(one):
    rows, pi = minibatches[0], one.share(5, 8)
    return lambda theta: one.value_and_grad(theta, eps, x[rows], y[rows], pi)


def differences_notice(one, theta):
    return not gradcheck.check(of_minibatch(one), theta, method="central").passed


def complex_step_notices(one, theta):
    return not gradcheck.check(of_minibatch(one), theta, method="complex").passed


def automatic_notices(one, theta):
    right, grad = automatic(of_minibatch(one), theta), of_minibatch(one)(theta)[1]
    return np.abs(grad - right).max() > 1e-12 * np.abs(right).max()


def proof_notices(one, theta):
    rows, pi = minibatches[0], one.share(5, 8)
    return not prove(one.value_and_grad, theta, eps, x[rows], y[rows], pi).proved


def formula_notices(one, theta):
    return not prove_same(lambda *at: costs(one, *at)[0], formula, theta, eps, x, y).proved


def deviations(one, theta):
    """Return how many standard errors the means of value and gradient are off."""
    rng = np.random.default_rng(0)
    pairs = [costs(one, theta, one.draw(rng, 1000), x, y) for _ in range(200)]
    found = np.array([np.append(value, grad) for value, grad in pairs])
    error = found.std(axis=0, ddof=1) / np.sqrt(len(found))
    return (found.mean(axis=0) - np.append(*expectation(theta, x, y))) / error


def means_notice(one, theta):
    return np.abs(deviations(one, theta)).max() > 4


judges = {
    "differences": differences_notice,
    "complex step": complex_step_notices,
    "automatic": automatic_notices,
    "prove": proof_notices,
    "prove_same": formula_notices,
    "means": means_notice,
}
rows = {name: (program(changes), theta) for name, changes in edits.items()}
rows["right, but rho = -30"] = program([]), np.array([0.1, -30.0])
noticed = {
    name: {judge: bool(notices(*row)) for judge, notices in judges.items()}
    for name, row in rows.items()
}
print(f"{'noticed by':32}" + "".join(f"{judge:>13}" for judge in judges))
for name, row in noticed.items():
    print(f"{name:32}" + "".join(f"{'yes' if seen else '-':>13}" for seen in row.values()))

# %%
planted = {name: row for name, row in noticed.items() if not name.startswith("right")}
of_gradients = ("differences", "complex step", "automatic", "prove")
assert not any(noticed["right"].values())
assert all(any(row.values()) for row in planted.values())
for judge in judges:
    print(f"{judge:13} notices {sum(row[judge] for row in planted.values())} of {len(planted)}")
    assert not all(row[judge] for row in planted.values())
enough = [
    pair
    for pair in combinations(judges, 2)
    if all(row[pair[0]] or row[pair[1]] for row in planted.values())
]
print("two that notice all of them together:", *(" and ".join(pair) for pair in enough))
assert all(len({row[judge] for judge in of_gradients[:3]}) == 1 for row in planted.values())
assert [judge for judge in judges if planted["1e-13 too much in one entry"][judge]] == ["prove"]
assert [judge for judge in judges if planted["noise uniform, variance 1"][judge]] == ["means"]
for name in list(planted)[4:]:
    assert not any(planted[name][judge] for judge in of_gradients)
z = np.abs(deviations(*rows["score counted twice"])).max()
print(f"score counted twice: the means are within {z:.1f} standard errors")
assert z < 4
unsafe = noticed["right, but rho = -30"]
assert unsafe["differences"]
assert not unsafe["complex step"]
assert not unsafe["automatic"]
assert not unsafe["prove"]

# %% [markdown]
# - **Finite differences, complex step and automatic differentiation agree** on each planted error.
#   They ask one question, whether the gradient is that of the value, with bars of $10^{-6}$ and
#   $10^{-12}$. `prove` asks the same without a bar. No training would suffer from $10^{-13}$; but
#   where there is no bar there is no *almost*, and what is proved at one random point holds for all
#   data, all noise and every $\theta$ that takes the same branches.
# - **None of the four sees a wrong value with its own right gradient**: a constant, a forgotten
#   half or Jacobian, a minibatch that pays too little of the KL term. The formula does, and so do
#   the means.
# - **The score counted twice** has mean zero. The means stay right, and only the noise grows
#   ([notebook 01](01_from_one_weight_to_the_network.ipynb)): means do not replace the others.
# - **Uniform noise** leaves every line right, and every comparison at fixed noise. That an estimate
#   is unbiased is a statement about expectations, which only an expectation can refute.
# - **The last row is no wrong formula.** At $\rho = -30$ the sum $1 + e^\rho$ keeps three digits of
#   $e^\rho$. Complex step and automatic differentiation go through the same rounding as the
#   gradient, and agree with it; in a field there is no rounding. Differences of values see it, and
#   the means do. The library's softplus is right there
#   ([D7](../derivations/numbers-and-proofs.md#d7-the-stable-softplus-family)).
#
# So `prove` and `prove_same` say that the code is the formula, for every number; the numerical
# checks that the floats are close to it; the means that the formula is estimated without bias. What
# nobody sees is a formula that was misread before it was written twice: that takes somebody who
# derives it ([derivations.md](../derivations.md)). Here the expectations had a closed form; a
# network has none, and there the noise is tested by itself.
#
# ## 7. Exercises
#
# 1. Divide the $10^{-13}$ of the first error by ten, and again. What does `prove` say instead of
#    *refuted*, and why must it?
# 2. Write the value's $\sigma$ as $\rho + \log(1 + e^{-\rho})$ and leave the gradient as it is.
#    Which methods are content, and which law does `excess` of section 5 lack?
# 3. Let $\sigma = e^\rho$ where $\rho \lt -20$, with a slope that is wrong there by a factor of
#    two. At which $\theta$ does `prove` notice? How would you choose the points of your own proofs?
# 4. Add `np.tanh` to `Dual` and to `Transcendental`, and prove the gradient of a network with one
#    hidden unit. Which law of `tanh` does its derivative need?
# 5. Two constants are dangerous in floating point. Compute $g(\nu)$ of
#    [D41](../derivations/likelihoods.md#d41-the-constant-of-students-t) at $\nu = 10^8$ with two
#    calls of `math.lgamma`: how many digits are right? And Stirling's series for $\log 9!$
#    ([D31](../derivations/likelihoods.md#d31-the-logarithm-of-a-factorial), step 3, at $z = 10$):
#    is the error after each term smaller than the next term, and of its sign?
#
# <details><summary>Hints</summary>
#
# 1. It says *not proved*. The constants of the program are rounded in their sixteenth digit, and a
#    difference below that may come from them; so it is no proof of an error, either.
# 2. All that compute with floats. `excess` lacks two laws, $e^{-\rho} = 1/e^{\rho}$ and
#    $\log(ab) = \log a + \log b$; `prove` has both.
# 3. At $\rho \lt -20$ only: a proof is for one path of comparisons. One point for every branch is
#    what it takes.
# 4. Its slope $1 - \tanh^2$ needs none, if the gradient is written with it. Written with
#    exponentials it needs $\tanh z = (e^z - e^{-z}) / (e^z + e^{-z})$.
# 5. The true value is $-1/(4\nu) = -2.5\cdot 10^{-9}$, and each `lgamma` is about $10^9$, rounded
#    in its sixteenth digit: none is right. Stirling's terms keep step 4 of D31 down to $10^{-13}$;
#    below that you see the rounding of $\log 9!$ itself.
#
# </details>
#
# **Where to read on.** The chapter [What can go wrong](../derivations/numbers-and-proofs.md) has
# the library's `prove` and its limits, [proofs.md](../proofs.md) the proof of every equation. The
# first notebook is [01](01_from_one_weight_to_the_network.ipynb).
