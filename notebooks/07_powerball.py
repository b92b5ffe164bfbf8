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
# # Powerball: a data set that knows the right answer
#
# Mullachery, Khera and Husain (2018) sort the five white balls of a Powerball draw and ask: given
# the number of one ball, is it the smallest (*bin 1*) or the third (*bin 3*)? They print accuracies
# of 81.23 % for a Bayesian network, 82.96 % for a random forest and for AdaBoost, and 84.93 % for a
# Gaussian process.
#
# Every probability follows from the rules of the game. So one can say what the best accuracy is,
# and mark each credible interval right or wrong. **It needs** notebooks
# [01](01_from_one_weight_to_the_network.ipynb) and [06](06_samplers_from_scratch.ipynb), and
# binomial coefficients. The comparison on held-out draws is `bbb-numpy reproduce powerball`.
# **It takes** about 40 minutes to read and 10 seconds of processor time to run.

# %%
from itertools import combinations
from math import comb
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import AdaBoostClassifier, RandomForestClassifier
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF

import bbb_numpy as bbb
from bbb_numpy.numeric.elementary import sigmoid
from bbb_numpy.plots.style import BLACK, BLUE, GREEN, GREY, ORANGE, PALE, VERMILLION, legend_above
from bbb_studies.data import powerball as data
from bbb_studies.data.locate import MissingDataError

plt.rcParams.update({"figure.dpi": 150, "figure.constrained_layout.use": True})
PRINTED = {  # the paper's accuracies
    "network": 0.8123,
    "random forest": 0.8296,
    "AdaBoost": 0.8296,
    "Gaussian process": 0.8493,
}

for balls in (59, 69):
    found = data.exact(balls)
    print(
        f"{balls} balls: bin 1 up to {found.limit}, ceiling {100 * found.accuracy:.2f} %, "
        f"least log loss {found.log_loss:.4f} nats"
    )
v = 17
assert np.isclose(data.exact(59).probability[v], 1 / (1 + 6 * 16 * 15 / (40 * 39)))
assert f"{data.exact(59).accuracy:.4f} {data.exact(69).accuracy:.4f}" == "0.8460 0.8443"
fig, ax = plt.subplots(figsize=(6, 3))
numbers, (bin_3, bin_1) = np.arange(1, 60), 100 * data.exact(59).mass[:, 1:]
ax.fill_between(numbers, np.maximum(bin_1, bin_3), color=PALE, lw=0, label="the likelier bin")
ax.plot(numbers, bin_1, color=GREEN, label="bin 1")
ax.plot(numbers, bin_3, "--", color=ORANGE, label="bin 3")
ax.set(xlim=(0, 60), ylim=(0, None), xlabel="number of the ball", ylabel="probability (%)")
legend_above(ax, 3)
plt.show()

# %% [markdown]
# *How probable each number of 59 is as the smallest and as the third ball. Who always names the
# likelier bin is right as often as the shaded area says.*
#
# ## 1. The ceiling
#
# For $w_k = v$, the number $v$ is drawn, $k - 1$ of the $v - 1$ smaller balls and $5 - k$ of the
# $N - v$ larger ones:
#
# $$P(w_k = v) = \binom{v-1}{k-1}\binom{N-v}{5-k} \Big/ \binom N5 .$$
#
# Both bins come equally often. With $\binom{N-v}{4} = \binom{N-v}{2}(N-v-2)(N-v-3)/12$ the odds are
#
# $$\frac{P(1 \mid v)}{P(3 \mid v)} = \frac{(N-v-2)(N-v-3)}{6\,(v-1)(v-2)},$$
#
# and a classifier $c$ is right with probability $\sum_v P(v, c(v)) \le \sum_v \max_j P(v, j)$:
# **none does better on average than the one that names the likelier bin**
# ([D37](../derivations/calibration.md#d37-powerball-exactly)). Count a small urn:

# %%
balls = 12
every = np.array(list(combinations(range(1, balls + 1), 5)))
counted = np.bincount(every[:, 2], minlength=balls + 1) / len(every)
formula = data.mass_of_place(balls, 3)
print(f"{len(every)} draws; P(w3 = 6): counted {counted[6]:.6f}, by the formula {formula[6]:.6f}")
assert np.allclose(counted, formula, rtol=1e-12)

# %% [markdown]
# The printed 84.93 % is above both ceilings. How far can luck go? On $L$ draws the accuracy of the
# *perfect* classifier has the standard deviation $\tau / \sqrt L$:

# %%
best, luck = data.exact(69).accuracy, data.exact(69).draw_deviation
printed = {"GP": PRINTED["Gaussian process"], "network": PRINTED["network"]}
below = {}
for count in (100, 165, 300, 824):
    below[count] = {who: (best - p) / (luck / np.sqrt(count)) for who, p in printed.items()}
    off = ", ".join(f"{who} {-by:+.1f}" for who, by in below[count].items())
    print(f"{count} draws: +- {100 * luck / np.sqrt(count):.1f} points; off by so many: {off}")
assert all(abs(row["GP"]) < 1 for row in below.values())
assert below[165]["network"] < 2 < below[300]["network"]

# %% [markdown]
# 84.93 % needs no more than a little luck. 81.23 % is within two standard deviations of the ceiling
# with 165 draws, and not with 300: then bad luck alone does not explain it. The paper does not say
# how many were held out.
#
# They do not *rank* classifiers, either. On common draws the *difference* of two scatters only by
# draws that they answer differently, here of boundaries, under the exact $P(w_1, w_3)$:

# %%
w1, w3 = (one.ravel() for one in np.meshgrid(np.arange(1, 70), np.arange(1, 70)))
ways = np.array([max(b - a - 1, 0) * comb(69 - b, 2) for a, b in zip(w1, w3, strict=True)])
mass = ways / comb(69, 5)
assert np.isclose(mass.sum(), 1)


def right_share(cut):
    """Return the share of right answers on the balls of a draw, of 'bin 1 up to cut'."""
    return 0.5 * ((w1 <= cut).astype(float) + (w3 > cut))


def deviation(of):
    return np.sqrt(mass @ of**2 - (mass @ of) ** 2)


top = right_share(data.exact(69).limit)
assert np.isclose(deviation(top), luck)
print("69 balls, 300 draws: 'bin 1 up to 20' less another boundary, in points")
for cut in (15, 19, 23, 27):
    other = right_share(cut)
    apart = np.hypot(luck, deviation(other)) / np.sqrt(300)  # if each had draws of its own
    paired = deviation(top - other) / np.sqrt(300)
    print(
        f"up to {cut}: {100 * mass @ (top - other):.2f}; +- {100 * paired:.2f} on common draws, "
        f"+- {100 * apart:.2f} on different ones"
    )
    assert paired < 0.8 * apart

# %% [markdown]
# From four printed accuracies alone that cannot be seen; so they rank nothing.
#
# ## 2. The draws
#
# Those before the paper, from the folder that `BBB_NUMPY_DATA` names. The urn had 59 balls until
# October 2015, then 69. The classifiers are not told, and their ceiling is that of the mixture.


# %%
def play(shares, draws, rng):
    """Play the game: the rules one after the other, each for its share of the draws."""
    ends = np.round(np.cumsum([0.0, *shares.values()]) * draws).astype(int)
    balls = np.repeat(list(shares), np.diff(ends))
    white = [np.sort(rng.choice(urn, 5, replace=False)) + 1 for urn in balls]
    days = np.datetime64("2000-01-01") + np.arange(draws)
    return data.examples(data.Draws(days, np.array(white), balls))


# %% tags=["rounding"]
shares = {59: 591 / 824, 69: 233 / 824}
try:
    draws = data.load("2017-12-31")  # the last day before the paper
    rows, shares = data.examples(draws), data.rules(draws)
    print(f"{len(draws.days)} draws from {draws.days[0]} to {draws.days[-1]}")
except MissingDataError:
    rows = play(shares, 824, np.random.default_rng(0))
    print("BBB_NUMPY_DATA has no draws: what follows is shown on 824 draws played by the rules")
exact = data.exact(shares)
print(f"ceiling {100 * exact.accuracy:.2f} %, bin 1 up to {exact.limit}")
right = (exact.probability[rows.number] > 0.5) == (rows.label == 1)
print(f"the exact rule on these draws: {100 * right.mean():.2f} %")
assert abs(right.mean() - exact.accuracy) < 3 * exact.draw_deviation / np.sqrt(824)

# %%
NUMBERS = np.arange(70)  # 0 is no ball; 69 is the largest there ever was
fig, ax = plt.subplots(figsize=(7, 3.4))
for label, place, colour, line, mark in ((1, 1, GREEN, "-", "o"), (0, 3, ORANGE, "--", "s")):
    seen = np.bincount(rows.number[rows.label == label], minlength=70)
    ax.plot(NUMBERS[1:], seen[1:], mark, color=colour, ms=4, label=f"bin {place}, seen")
    due = 2 * 824 * exact.mass[label, 1:]
    ax.plot(NUMBERS[1 : len(due) + 1], due, line, color=colour, label=f"bin {place}, exact")
ax.axvline(exact.limit + 0.5, color=GREY, ls=":", lw=1, label="best boundary")
ax.set(xlim=(0.5, 70), ylim=(0, None), xlabel="number of the ball", ylabel="draws (of 824)")
legend_above(ax, 5)
plt.show()

# %% [markdown]
# *How often each number came as the smallest ball (bin 1) and as the third (bin 3), dots and
# squares, and how often it should have, lines. Small numbers are of bin 1; the two lines cross at
# the best boundary, between 18 and 19.*
#
# ## 3. Seven classifiers
#
# The paper's network has 5 tanh units on the logarithm of the number, a Bernoulli likelihood
# ([D13](../derivations/likelihoods.md#d13-two-classes)), and weights $N(0, 1)$ or $N(0, 4^2)$
# beforehand. NUTS and mean-field VI run on the same model object. Beside them scikit-learn's three
# with the paper's settings; the Gaussian process has 300 of the draws.
#
# Only about a hundred of the 1648 rows differ. A row that comes $v$ times is one row of weight $v$
# ([D45](../derivations/training.md#d45-rows-that-count-more-than-once)). A trained classifier is a
# table of 70 probabilities.


# %%
def network(scale):
    net = bbb.MLP((1, 5, 1), "tanh")
    return bbb.Model(net, bbb.GaussianPrior(scale), bbb.BernoulliLikelihood())


def prepare(rows, offset=1.0):
    """Return inputs and targets of the rows that differ, and the inputs of all numbers."""
    different = np.stack([rows.number, rows.label], axis=1)
    pairs, times = np.unique(different, axis=0, return_counts=True)
    logs = np.log(rows.number + offset)
    x, table = (np.log(v + offset)[:, None] for v in (pairs[:, 0], NUMBERS))
    data = (x - logs.mean()) / logs.std(), pairs[:, 1:].astype(float), times.astype(float)
    return data, (table - logs.mean()) / logs.std()  # inputs, labels, weights; and all inputs


class Posterior(NamedTuple):
    """Functions and weights drawn from a posterior, or from what stands for it."""

    logits: np.ndarray  # (S, 70)
    weights: np.ndarray  # (S, 16)
    draws: object = None  # of NUTS

    @property
    def functions(self):
        return sigmoid(self.logits)  # P(bin 1 | number, w)


def nuts(scale, rows, seed=0, warm_up=40, draws=30, offset=1.0):
    model, ((x, y, v), table) = network(scale), prepare(rows, offset)
    begin = 0.5 * np.random.default_rng(seed).standard_normal((8, model.layout.size))
    drawn = bbb.sample(
        model,
        x,
        y,
        sample_weight=v,
        sampler=bbb.NUTS(max_depth=5),
        target_accept=0.9,
        chains=8,
        warm_up=warm_up,
        draws=draws,
        start=begin,
        seed=seed,
        progress=False,
    )
    weights = np.ascontiguousarray(drawn.flat)
    return Posterior(model.predict(weights, table)[..., 0], weights, drawn)


def vi(scale, rows, seed=0, epochs=1000):
    model, ((x, y, v), table) = network(scale), prepare(rows)
    estimator, rng = bbb.ClosedFormKL(model, bbb.MeanField(0.5, -3.0)), np.random.default_rng(seed)
    optimizer = bbb.Adam(0.02, schedule=bbb.Cosine())
    recipe = bbb.training.Recipe(optimizer, epochs=epochs, batch_size=len(x), samples=4)
    begin = bbb.training.start(estimator, rng, optimizer)
    options = {"rng": rng, "sample_weight": v, "progress": False}
    end = bbb.training.fit(estimator, begin, x, y, recipe, **options)
    weights = estimator.weights(end.theta, estimator.draw_weights(rng, 2000))
    return Posterior(model.predict(weights, table)[..., 0], weights)


def process(x, label):
    first = GaussianProcessClassifier(1.0 * RBF(1.0)).fit(x[:200], label[:200])
    return GaussianProcessClassifier(first.kernel_, optimizer=None).fit(x[:600], label[:600])


# %% tags=["rounding"]
posteriors = {
    "NUTS, prior 1": nuts(1, rows),
    "NUTS, prior 4": nuts(4, rows),
    "VI, prior 1": vi(1, rows),
    "VI, prior 4": vi(4, rows),
}
balls, order = rows.number[:, None].astype(float), np.random.default_rng(0).permutation(824)
shuffled = (2 * order[:, None] + [0, 1]).ravel()  # whole draws
peers = {
    "random forest": RandomForestClassifier(10, max_depth=5, random_state=0).fit(balls, rows.label),
    "AdaBoost": AdaBoostClassifier(random_state=0).fit(balls, rows.label),
    "Gaussian process": process(balls[shuffled] / 20, rows.label[shuffled]),
}
tables = {name: found.functions.mean(axis=0) for name, found in posteriors.items()}
for name, peer in peers.items():
    asked = NUMBERS[:, None] / (20 if name == "Gaussian process" else 1)
    tables[name] = peer.predict_proba(asked)[:, 1]

# %% [markdown]
# What a table is worth *in the long run* follows from the rules, without held-out data and their
# noise:

# %% tags=["rounding"]
bin_3, bin_1 = np.pad(exact.mass, ((0, 0), (0, 70 - exact.mass.shape[1])))  # (70,) each
truth = np.divide(bin_1, bin_1 + bin_3, out=np.full(70, np.nan), where=bin_1 + bin_3 > 0)


def worth(p):
    """Return expected accuracy, log loss (nats) and RMSE of probabilities under the rules."""
    accuracy = np.where(p > 0.5, bin_1, bin_3).sum()
    safe = np.clip(p, 1e-6, 1 - 1e-6)
    log_loss = -(bin_1 @ np.log(safe) + bin_3 @ np.log(1 - safe))
    return accuracy, log_loss, np.sqrt((bin_1 + bin_3) @ (p - np.nan_to_num(truth)) ** 2)


print("                  accuracy   log loss   RMSE of p")
for name, p in tables.items():
    accuracy, log_loss, rmse = worth(p)
    print(f"{name:17} {100 * accuracy:.2f} %   {log_loss:.4f}   {rmse:.3f}")
    assert accuracy <= exact.accuracy + 1e-12
    assert log_loss >= exact.log_loss
    if name in posteriors:
        assert accuracy > exact.accuracy - 0.004
        assert rmse < 0.04
print(f"{'ceiling':17} {100 * exact.accuracy:.2f} %   {exact.log_loss:.4f}   0")
assert worth(tables["AdaBoost"])[2] > 3 * max(worth(tables[name])[2] for name in posteriors)

# %%
fig, panels = plt.subplots(2, 4, figsize=(11, 5), sharex=True, sharey=True)
for ax, (name, p) in zip(panels.flat, tables.items(), strict=False):
    colour = {"NUTS": VERMILLION, "VI, ": BLUE}.get(name[:4], GREY)
    says = np.where(p > 0.5, 1.05, -0.05)
    ax.stairs(says, np.arange(71) - 0.5, baseline=-0.05, fill=True, color=PALE, label="says bin 1")
    ax.plot(truth, color=BLACK, lw=1.2, ls="--", label="exact")
    ax.step(NUMBERS, p, where="mid", color=colour, lw=1.5, label="classifier")
    ax.axvline(exact.limit + 0.5, color=BLACK, lw=1, ls=":", label="best boundary")
    ax.set(xlim=(-0.5, 69.5), ylim=(-0.05, 1.05))
    ax.set_title(name, fontsize="medium")
panels[0, 3].tick_params(labelbottom=True)
panels[1, 3].set_axis_off()
panels[1, 3].legend(*panels[0, 0].get_legend_handles_labels(), loc="center", frameon=False)
fig.supxlabel("number of the ball")
fig.supylabel("P(bin 1 | number)")
plt.show()

# %% [markdown]
# *P(bin 1 | number) of seven classifiers beside the exact one. All change sides at or near the best
# boundary. The four networks and the Gaussian process follow the exact curve; the random forest has
# steps, and AdaBoost stays near 1/2 on either side.*
#
# The network reaches the ceiling, to a few hundredths of a point: accuracy sees nothing but the
# boundary. Log loss and the distance to the exact probabilities tell the classifiers apart.
#
# The paper prints the network's confusion matrix, too. Accuracy is one minus the mean of its two
# errors:

# %%
third, first = 0.26, 0.068  # printed: balls of bin 3 called bin 1, of bin 1 called bin 3
below_1, below_3 = (2 * np.cumsum(exact.mass[label]) for label in (1, 0))
cut, limit = int(np.argmin(np.abs(below_3 - third))), exact.limit
implied = 1 - (third + first) / 2
print(f"printed accuracy {100 * PRINTED['network']:.2f} %, ", end="")
print(f"that of its confusion matrix {100 * implied:.2f} %")
for name, wrong in (
    ("printed", (third, first)),
    (f"'bin 1 up to {cut}'", (below_3[cut], 1 - below_1[cut])),
    (f"'bin 1 up to {limit}'", (below_3[limit], 1 - below_1[limit])),
):
    print(f"wrong in bins 3 and 1, {name}: {100 * wrong[0]:.1f} and {100 * wrong[1]:.1f} %")
assert implied - PRINTED["network"] > 0.02
assert cut > limit + 2

# %% [markdown]
# The two printed results do not belong together, unless far more than half of the held-out balls
# were of bin 3. And the matrix is that of a boundary some numbers above the best.
#
# ## 4. Uncertainty, marked
#
# A posterior's interval should hold the exact probability 95 times in a hundred
# ([D35](../derivations/calibration.md#d35-pit-coverage-reliability-calibration-errors)).
# Neighbouring intervals are right or wrong together; two more sets of 824 draws, played by the
# rules, give more cases.

# %% tags=["rounding"]
possible = np.flatnonzero((truth > 0) & (truth < 1))  # elsewhere: no ball, or no doubt


def interval(functions, level=0.95):
    return np.quantile(functions, [0.5 - 0.5 * level, 0.5 + 0.5 * level], axis=0)


def held(functions):
    """Return the share of the numbers, and of the balls, whose interval holds the truth."""
    low, high = interval(functions)
    holds = ((low <= truth) & (truth <= high))[possible]
    weight = (bin_1 + bin_3)[possible]
    return holds.mean(), holds @ weight / weight.sum()


shares_held = {name: [held(found.functions)] for name, found in posteriors.items()}
for which in (1, 2):
    played = play(shares, 824, np.random.default_rng(which))
    for name in posteriors:
        method, scale = (nuts, vi)[name.startswith("VI")], int(name[-1])
        shares_held[name].append(held(method(scale, played, seed=which).functions))
print("95 % intervals hold    of the numbers       of the balls   (real draws, two played sets)")
for name, found in shares_held.items():
    numbers, weighted = (
        " ".join(f"{share:5.0%}" for share in part) for part in np.transpose(found)
    )
    print(f"{name:19} {numbers:>18} {weighted:>20}")
of_numbers = {name: np.array(found)[:, 0] for name, found in shares_held.items()}
assert np.all(of_numbers["NUTS, prior 4"] > of_numbers["NUTS, prior 1"])
assert np.all(of_numbers["NUTS, prior 4"] > of_numbers["VI, prior 4"] + 0.1)
assert np.all(of_numbers["NUTS, prior 4"] > 0.85)
assert np.all(of_numbers["VI, prior 1"] < 0.85)

# %%
fig, panels = plt.subplots(3, 2, figsize=(10, 8), sharex=True)
for (left, right), name in zip(panels, list(posteriors)[:3], strict=True):
    found, colour = posteriors[name], BLUE if name.startswith("VI") else VERMILLION
    low, high = interval(found.functions)
    holds = np.zeros(70, bool)
    holds[possible] = ((low <= truth) & (truth <= high))[possible]
    for ax, values in ((left, found.functions), (right, found.logits)):
        middle, ends = np.median(values, axis=0), interval(values)
        sizes = np.abs(ends - middle)
        wrong = np.setdiff1d(possible, np.flatnonzero(holds))
        for some, mark, look, label in (
            (np.flatnonzero(holds), "o", colour, "95 % interval, right"),
            (wrong, "X", GREY, "95 % interval, wrong"),
        ):
            ax.errorbar(
                some, middle[some], sizes[:, some], fmt=mark, color=look, ms=4, lw=1.2, label=label
            )
        with np.errstate(divide="ignore"):
            line = truth if ax is left else np.log(bin_1[possible] / bin_3[possible])
        ax.plot(
            NUMBERS if ax is left else possible, line, color=BLACK, lw=1.2, ls="--", label="exact"
        )
        ax.set_title(f"{name}: {'probability' if ax is left else 'logit'}", fontsize="medium")
    left.set_ylabel("P(bin 1 | number)")
    right.set_ylabel("its logit (nats)")
for ax in panels[-1]:
    ax.set_xlabel("number of the ball")
fig.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
plt.show()

# %% [markdown]
# *95 % intervals of NUTS with either prior and of VI, as probabilities on the left and as logits on
# the right; crosses miss the exact value. Those of NUTS with the wide prior hold nearly all. With
# the narrow one the intervals lie above the exact curve at large numbers, as do those of VI.*
#
# Where the data are, the intervals of NUTS are right. At large numbers the exact logit falls to
# $-\infty$; the network with $N(0, 1)$ weights flattens out and is *sure* of it. Not the sampler is
# at fault but the prior: five tanh units with weights around 1 say that no logit is far from 0.
# With $N(0, 4^2)$ NUTS follows, on each of the three data sets. Mean-field VI does not: its
# independent weights cannot move along the ridge that a wide prior opens.
#
# ## 5. And zero?
#
# > A curious observation is the high uncertainty for the number zero.
#
# What the paper did with the logarithm of 0 is not said. With an offset, $\log(v + a)$, the answer
# can be computed, for any $a > 0$:

# %% tags=["rounding"]
zeros = {1.0: posteriors["NUTS, prior 1"], 0.001: nuts(1, rows, offset=0.001)}
for offset, found in zeros.items():
    spread, logit_spread = found.functions.std(axis=0), found.logits.std(axis=0)
    widest = 1 + int(np.argmax(spread[1:]))
    print(
        f"log(v + {offset:<5g}): P(bin 1 | 0) = {found.functions[:, 0].mean():.3f} "
        f"+- {spread[0]:.3f}, largest +- {spread[widest]:.3f} at {widest}; "
        f"logit +- {logit_spread[0]:.1f} at 0, +- {logit_spread[18]:.1f} at 18"
    )
    assert found.functions[:, 0].mean() > 0.9
    assert spread[0] < 0.5 * spread[widest]
    assert logit_spread[0] > 2 * logit_spread[18]

# %% [markdown]
# The network is *certain* that 0 would be of bin 1: every function that fits the data has settled
# before. Only the logit is uncertain, among values that all mean "certainly". That a number was
# never seen does not make a network uncertain. (With the wide prior a few functions turn back below
# 1; the full experiment has chains long enough to count them.)
#
# ## 6. The weights
#
# Exchanging hidden units, or turning all signs around one, changes no function: every posterior
# mode has $5!\,2^5 = 3840$ copies. So densities are pooled over the units of a layer, and
# convergence is judged by what the network computes.

# %%
blocks = {
    "W0": "input to hidden",
    "b0": "bias of hidden",
    "W1": "hidden to output",
    "b1": "bias of output",
}
layout = network(1).layout
fig, panels = plt.subplots(1, 4, figsize=(11, 3.2))
for ax, (block, title) in zip(panels, blocks.items(), strict=True):
    drawn = {
        name: layout.views(posteriors[f"{name}, prior 1"].weights)[block].ravel()
        for name in ("NUTS", "VI")
    }
    reach = 1.1 * max(np.abs(values).max() for values in drawn.values())
    edges = np.linspace(-reach, reach, 46)
    for (name, values), colour, style in zip(
        drawn.items(), (VERMILLION, BLUE), ("-", "--"), strict=True
    ):
        density = np.histogram(values, edges, density=True)[0]
        ax.stairs(density, edges, color=colour, ls=style, lw=1.5, label=name)
    line = np.linspace(-reach, reach, 201)
    ax.plot(line, np.exp(-0.5 * line**2) / np.sqrt(2 * np.pi), ":", color=BLACK, label="prior")
    ax.set(xlabel=f"{block} (dimensionless)", ylim=(0, None))
    ax.set_title(title, fontsize="medium")
panels[0].set_ylabel("density")
fig.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
plt.show()

# %% [markdown]
# *The density of the weights of each layer under the prior N(0, 1), pooled over the units. NUTS
# spreads over several copies of a mode; VI sits in one of them, in narrow peaks.*

# %% tags=["rounding"]
for name in ("NUTS, prior 1", "NUTS, prior 4"):
    found = posteriors[name]
    steps, chains = found.draws.positions.shape[:2]
    logits = found.logits.reshape(steps, chains, 70)
    weights = found.draws.positions
    r_hat = [
        np.sqrt(
            (steps - 1) / steps
            + values.mean(axis=0).var(axis=0, ddof=1) / values.var(axis=0, ddof=1).mean(axis=0)
        )
        for values in (logits, weights)
    ]
    print(f"{name}: R-hat of the logit {r_hat[0][18]:.2f} at 18, {r_hat[0][1]:.2f} at 1;", end=" ")
    print(f"of a weight up to {r_hat[1].max():.2f}; {found.draws.divergences} divergences")
    assert r_hat[0][18] < 1.2
    assert r_hat[1].max() > 1.2

# %% [markdown]
# The short chains have mixed well where balls are, less so at the ends under the wide prior, where
# 0.9999 and 0.999999 fit alike. The mean field predicts well, and misjudges its uncertainty.
#
# ## 7. Exercises
#
# 1. Ask for bin 2 against bin 4. What is the ceiling now, and why is the best boundary at the
#    middle of the urn?
# 2. Tell the classifiers by which rule, 59 or 69 balls, a ball was drawn. By how much does the
#    ceiling rise?
# 3. Play 8240 draws in place of 824. Why can more data make intervals worse?
# 4. Fit a Bernoulli whose logit is $a + b \log v$. Where does it differ from the exact logit of
#    Section 1, and do its intervals say so?
#
# <details><summary>Hints</summary>
#
# 1. By the mirror of [D37](../derivations/calibration.md#d37-powerball-exactly), step 1, bin 4 at
#    $v$ is bin 2 at $N + 1 - v$. The ceiling is 0.8234 for 59 balls and 0.8218 for 69.
# 2. D37 has both in the table of step 4: 0.8441 and 0.8455 for these draws.
# 3. Intervals become narrower as $1/\sqrt N$. What the network, its prior or the mean field cannot
#    say does not.
# 4. The exact logit goes to $\infty$ at 2 and to $-\infty$ at $N - 3$. A line in $\log v$ does
#    neither, and two weights are soon known well.
#
# </details>
#
# **Next:** [08](08_what_separates_the_methods.ipynb), the methods on real tables. **Before:**
# [06](06_samplers_from_scratch.ipynb).
