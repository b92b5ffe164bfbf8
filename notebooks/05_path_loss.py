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
# # A radio map, and two questions about its errors
#
# P. Wu's slides *Bayesian Neural network* end with a network that learns the power of a radio
# signal over a plane with buildings, pictures of its error and its standard deviation, and two
# questions without an answer:
#
# > The location that have large error prediction should have large variance, but why is not this
# > situation?
# >
# > How to train a neural network that can approximate the simulated function perfectly?
#
# Each is answered here, and measured on the data sets of three seeds. **It needs** the [first
# notebook](01_from_one_weight_to_the_network.ipynb), and decibels: 10 dB is a factor of 10 in
# power, dBm is decibels above a milliwatt. `bbb-numpy reproduce wu-path-loss --full` trains longer,
# on more data.
#
# **It takes** about 35 minutes to read and 10 seconds of processor time to run.

# %%
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np

import bbb_numpy as bbb
from bbb_numpy.evaluation import predictive
from bbb_numpy.plots.style import BLACK, BLUE, GREEN, ORANGE, legend_above
from bbb_studies.data import path_loss as radio
from bbb_studies.replicates import fit_replicates

plt.rcParams.update({"figure.dpi": 150, "figure.constrained_layout.use": True})
scene = radio.Scene()


def draw_map(ax, values, colour="white", **look):
    """Draw values of the cells of the plane, row by row, with the walls and the transmitter."""
    side = int(np.sqrt(len(values)))
    image = ax.imshow(values.reshape(side, side), origin="lower", extent=(0, 100, 0, 100), **look)
    for left, bottom, right, top, _ in scene.buildings:
        walls = plt.Rectangle((left, bottom), right - left, top - bottom, fill=False, ec=colour)
        ax.add_patch(walls)
    ax.plot(*np.transpose(scene.transmitters), "^", color=colour, markeredgecolor="black")
    return image


SEEDS = (0, 1, 2)  # of receivers and of training, in every table
data = [radio.receivers(scene, np.random.default_rng(seed), 400) for seed in SEEDS]
fig, ax = plt.subplots(figsize=(5, 4))
fine = radio.field(scene, radio.grid(scene, 200))
fig.colorbar(draw_map(ax, fine, cmap="cividis", vmin=-85, vmax=-35), label="power (dBm)")
ax.plot(*data[0].places.T, ".", color="white", markersize=2)
ax.set(xlabel="x (m)", ylabel="y (m)", title="power without shadowing, and 400 receivers")
plt.show()

# %% [markdown]
# *A map of 100 m by 100 m. The power falls from the transmitter (triangle) outwards, and drops at
# the edges of five shadows that the buildings (rectangles) throw; 400 receivers (dots) lie
# anywhere.*
#
# ## 1. The field
#
# In decibels the received power is a sum
# ([W6](../derivations/likelihoods.md#w6-the-path-loss-model)):
#
# $$y = P_T - P_0 - 10\,\lambda \log_{10}\frac{d}{d_0} - \sum_j \varphi_{c_j} + \eta,
# \qquad \eta \sim N(0, \sigma_\eta^2).$$
#
# A doubling of the distance $d$ costs $10\lambda\log_{10} 2$ dB, building $j$ some dB for each of
# its walls on the straight line to the transmitter; $\eta$ is shadowing. At the *edges of the
# shadows* the field jumps by 8 to 14 dB.

# %%
here = np.array([[30.0, 42.0], [23.0, 65.0], [12.0, 80.0]])
for (x, y), count, power in zip(
    here, radio.walls(scene, here).sum(axis=1), radio.field(scene, here)[:, 0], strict=True
):
    print(f"at ({x:g}, {y:g}) m: {count} walls on the line, {power:.1f} dBm")
doubled = radio.field(radio.Scene(buildings=()), np.array([[52.0, 42.0], [62.0, 42.0]]))[:, 0]
print(f"from 10 m to 20 m: {doubled[0] - doubled[1]:.3f} dB, 25 log10(2) = {25 * np.log10(2):.3f}")
assert np.isclose(doubled[0] - doubled[1], 25 * np.log10(2))


# %% [markdown]
# ## 2. MLE, MAP, VI
#
# One network, 2-32-32-1 with ReLU, on the places in standard units, with its noise learned. MLE
# ([W1](../derivations/why.md#w1-maximum-likelihood)) and MAP
# ([W2](../derivations/why.md#w2-maximum-a-posteriori)) are points: their standard deviation is the
# noise, the same everywhere. VI is a mean field. Networks of one shape train side by side
# ([D40](../derivations/training.md#d40-replicates-are-one-block-diagonal-problem)), one for each
# data set.

# %%
LEARNED = bbb.GaussianLikelihood(
    0.3, learn=True
)  # standard deviation of the noise, in standard units


class Fit(NamedTuple):
    """Trained networks, of equal weight, and the units of their data."""

    estimator: bbb.Reparameterised
    thetas: list
    x: np.ndarray  # (N, d_in)  inputs of the training rows
    y: np.ndarray  # (N, 1)  dBm


def estimator_of(method, d_in=2, hidden=(32, 32), likelihood=LEARNED, prior=0.5):
    net = bbb.MLP((d_in, *hidden, likelihood.heads(1)))
    model = bbb.Model(net, bbb.GaussianPrior(prior), likelihood)
    if method == "VI":
        return bbb.Reparameterised(model, bbb.MeanField(0.3, -4.0))
    return bbb.Reparameterised(
        model, bbb.PointMass(0.3), {"MLE": bbb.MLE(), "MAP": bbb.MAP()}[method]
    )


def standard(values, of):
    return (values - of.mean(axis=0)) / of.std(axis=0)


def train(method, xs, ys, steps=1000, batch=50, members=1, **parts):
    """Train `members` networks on each of the data sets; return one Fit for each data set."""
    estimator = estimator_of(method, xs[0].shape[1], **parts)
    optimizer, count = bbb.Adam(1e-2, schedule=bbb.Cosine()), len(xs) * members
    recipe = bbb.Recipe(optimizer, epochs=steps * batch // len(xs[0]), batch_size=batch)
    rngs = [np.random.default_rng(seed) for seed in range(count)]
    begin = [bbb.training.start(estimator, rng, optimizer) for rng in rngs]
    inputs = [standard(x, x) for x in xs] * members
    targets = [standard(y, y) for y in ys] * members
    if parts.get("likelihood", LEARNED) is LEARNED:
        apart = [estimator] * count, begin, inputs, targets, recipe
        ends = fit_replicates(*apart, rngs=rngs, progress=False)
    else:
        ends = [
            bbb.fit(estimator, one, x, y, recipe, rng=rng, progress=False)
            for one, x, y, rng in zip(begin, inputs, targets, rngs, strict=True)
        ]
    return [
        Fit(estimator, [end.theta for end in ends[i :: len(xs)]], x, y)
        for i, (x, y) in enumerate(zip(xs, ys, strict=True))
    ]


# %% [markdown]
# The spread of the functions is the *epistemic* standard deviation; with the noise it makes the
# *total* one ([D4](../derivations/prediction.md#d4-epistemic-and-aleatoric-variance)).


# %%
class Prediction(NamedTuple):
    """What a fit says of rows x, in the units of y."""

    functions: np.ndarray  # (S, N)
    mean: np.ndarray  # (N,)
    epistemic: np.ndarray  # (N,)
    total: np.ndarray  # (N,)


def predict(fitted, x, samples=60):
    e, given = fitted.estimator, standard(x, fitted.x)
    samples = samples if isinstance(e.posterior, bbb.MeanField) else 1  # a point is one function
    centre, scale, f, noise = fitted.y.mean(), fitted.y.std(), [], []
    for theta in fitted.thetas:
        rng = np.random.default_rng(0)
        f.append(predictive.sample_functions(e, theta, given, rng=rng, samples=samples)[..., 0])
        said = predictive.predict(e, theta, given, rng=np.random.default_rng(0), samples=samples)
        noise.append(said.aleatoric[:, 0])
    f = centre + scale * np.concatenate(f)
    epistemic = f.std(axis=0, ddof=1) if len(f) > 1 else 0 * f[0]
    aleatoric = scale * np.sqrt(np.mean(np.square(noise), axis=0))
    return Prediction(f, f.mean(axis=0), epistemic, np.hypot(epistemic, aleatoric))  # D4


def rms(values):
    return np.sqrt(np.mean(values**2))


def show(title, values, unit="", digits=2):
    """Print the mean over the data sets, and in brackets every one of them."""
    each = ", ".join(f"{one:.{digits}f}" for one in values)
    print(f"{title:50}{np.mean(values):6.{digits}f}  ({each}) {unit}")


cells = radio.grid(scene, 40)  # the middles of 2.5 m by 2.5 m
truth = radio.field(scene, cells)[:, 0]
near = radio.near_edge(scene, cells, 3.0)  # within 3 m of a jump of the field
xs, ys = [known.places for known in data], [known.y for known in data]
fresh = [radio.receivers(scene, np.random.default_rng(100 + seed), 500) for seed in SEEDS]

# %% tags=["rounding"]
fits = {method: train(method, xs, ys) for method in ("MLE", "MAP", "VI")}
maps = {method: [predict(one, cells) for one in three] for method, three in fits.items()}
for method, three in fits.items():
    held = [predict(one, new.places) for one, new in zip(three, fresh, strict=True)]
    within = [
        np.mean(np.abs(new.y[:, 0] - p.mean) < 1.96 * p.total)
        for p, new in zip(held, fresh, strict=True)
    ]
    show(f"{method}: RMSE over the map", [rms(p.mean - truth) for p in maps[method]], "dB")
    show("  new receivers in mean ± 1.96 total standard deviations", within)
    show("  epistemic standard deviation", [p.epistemic.mean() for p in maps[method]], "dB")
    assert np.all(np.abs(np.array(within) - 0.95) < 0.1)

# %%
first = {method: three[0] for method, three in maps.items()}
rows = (
    ("predicted power (dBm)", "cividis", -85, -35, lambda p: p.mean),
    ("|error| (dB)", "inferno", 0, 12, lambda p: np.abs(p.mean - truth)),
    ("total standard deviation (dB)", "viridis", 2, 6, lambda p: p.total),
)
fig, panels = plt.subplots(3, 3, figsize=(9, 8), sharex=True, sharey=True)
for line, (label, colours, low, high, of) in zip(panels, rows, strict=True):
    for ax, (method, p) in zip(line, first.items(), strict=True):
        image = draw_map(ax, of(p), cmap=colours, vmin=low, vmax=high)
        ax.set_title(f"{method}: {label.split(' (')[0]}", fontsize="medium")
    fig.colorbar(image, ax=line, label=label)
for ax in panels[-1]:
    ax.set_xlabel("x (m)")
for ax in panels[:, 0]:
    ax.set_ylabel("y (m)")
plt.show()

# %% [markdown]
# *Nine maps of data set 0, for MLE, MAP and VI: the predicted power, the absolute error, the total
# standard deviation. The errors draw the edges of the shadows and the place of the transmitter. The
# standard deviation of MLE and MAP is one number; that of VI is smooth and knows nothing of the
# edges.*
#
# ## 3. Why is the standard deviation not large where the error is?
#
# Spearman's rank correlation of $|\text{error}|$ and standard deviation, over the cells, is 1 if
# the larger error always has the larger standard deviation. No correct one reaches that: an error
# is *one draw* from $N(0, s^2)$. What could be reached is measured by taking a function from the
# posterior itself for the truth.


# %% tags=["rounding"]
def rank_correlation(one, other):
    """Return Spearman's rank correlation of two arrays without ties."""
    ranks = [np.argsort(np.argsort(values)) for values in (one, other)]
    return np.corrcoef(ranks)[0, 1]


def ranks(p):
    """Return rank correlations of |error| with both standard deviations, and what could be."""
    error = np.abs(p.mean - truth)
    right = [rank_correlation(np.abs(f - p.mean), p.epistemic) for f in p.functions[:30]]
    return {
        "epistemic": rank_correlation(error, p.epistemic),
        "total": rank_correlation(error, p.total),
        "were the truth from the posterior": np.mean(right),
    }


def show_ranks(title, three, kinds):
    found = [ranks(p) for p in three]
    columns = {kind: np.array([row[kind] for row in found]) for kind in kinds}
    for kind, values in columns.items():
        show(f"{title}: {kind}", values)
    return columns


REACHED = "were the truth from the posterior"
of_vi = show_ranks("VI", maps["VI"], ("epistemic", REACHED))
assert max(of_vi["epistemic"]) < 0.35
assert max(of_vi[REACHED]) < 0.45

# %% tags=["rounding"]
errors = [np.abs(p.mean - truth) for p in maps["VI"]]
worst = np.array([near[error >= np.quantile(error, 0.9)].mean() for error in errors])
near_rms, far_rms = (np.array([rms(error[where]) for error in errors]) for where in (near, ~near))
near_said, far_said = (
    np.array([p.epistemic[where].mean() for p in maps["VI"]]) for where in (near, ~near)
)
print(f"share of the plane within 3 m of a jump           {near.mean():6.2f}")
show("the same, of the tenth of largest error", worst)
show("VI: RMSE near jumps", near_rms, "dB")
show("VI: RMSE elsewhere", far_rms, "dB")
show("VI: epistemic standard deviation near jumps", near_said, "dB")
show("VI: epistemic standard deviation elsewhere", far_said, "dB")
assert np.all(worst > 1.5 * near.mean())
assert np.all(near_rms > 1.2 * far_rms)
assert np.all(np.abs(near_said / far_said - 1) < 0.2)

# %% [markdown]
# The correlation is low, but little could be reached: this standard deviation hardly varies. In
# every data set the error near jumps is about one and a half times that elsewhere, and the standard
# deviation is the same.
#
# **Two kinds of error.** Over new receivers, the mean of the fits less the truth is the *bias*; how
# fits differ is the *spread*. The epistemic standard deviation speaks of the spread. None over the
# weights of a continuous network speaks of a jump, beside which each errs by at least half of it
# ([W6](../derivations/likelihoods.md#w6-the-path-loss-model)).

# %% tags=["rounding"]
means = np.array([p.mean for p in maps["VI"]])  # (data sets, cells)
variance = means.var(axis=0, ddof=1)
bias_squared = (means.mean(axis=0) - truth) ** 2 - variance / len(means)  # free of the mean's own
for name, where in (("near jumps", near), ("elsewhere", ~near)):
    bias, spread = np.sqrt(bias_squared[where].mean()), np.sqrt(variance[where].mean())
    print(f"{name}: bias {bias:.1f} dB, spread between data sets {spread:.1f} dB")
    assert bias > (2.5 if name == "near jumps" else 1.5) * spread
assert np.mean(far_said) > 1.5 * spread

# %% [markdown]
# Most of the error is bias, and more of it near jumps. Nor is the epistemic standard deviation of
# VI the spread: it says 2.4 dB where new receivers move the fit by 1.0 dB.
#
# ### What changes it
#
# - An **ensemble** of five starts varies more over the map, but its members share their errors.
# - **More data** make the error smaller, and do not move the standard deviation to its place.
# - A **noise head** ([D12](../derivations/likelihoods.md#d12-noise-that-depends-on-the-input)) sees
#   the residuals near an edge and calls them noise: it puts the bias into the *aleatoric* part.

# %% tags=["rounding"]
many = [radio.receivers(scene, np.random.default_rng(seed), 1600) for seed in SEEDS]
more = [known.places for known in many], [known.y for known in many]
head = bbb.HeteroscedasticLikelihood(0.05)
fits |= {
    "5 MLE": train("MLE", xs, ys, members=5),
    "VI, 1600": train("VI", *more, batch=100),
    "VI, 1600, noise head": train("VI", *more, batch=100, likelihood=head),
}
for name in list(fits)[3:]:
    maps[name] = [predict(one, cells) for one in fits[name]]
of_ensemble = show_ranks("5 MLE", maps["5 MLE"], ("epistemic", REACHED))
of_more = show_ranks("VI, 1600", maps["VI, 1600"], ("epistemic",))
of_head = show_ranks("VI, 1600, noise head", maps["VI, 1600, noise head"], ("epistemic", "total"))
assert np.all(of_ensemble[REACHED] > 1.3 * of_vi[REACHED])
assert max(*of_ensemble["epistemic"], *of_more["epistemic"]) < 0.35
assert np.all(of_head["total"] > of_more["epistemic"])
assert of_head["total"].mean() > of_more["epistemic"].mean() + 0.1

# %%
fig, ax = plt.subplots(figsize=(5, 4))
for name, mark, colour in (
    ("VI", "o-", BLUE),
    ("5 MLE", "^--", GREEN),
    ("VI, 1600, noise head", "s-.", ORANGE),
):
    total = np.concatenate([p.total for p in maps[name]])  # of all three data sets
    error = np.concatenate([p.mean - truth for p in maps[name]])
    tenths = np.array_split(np.argsort(total), 10)
    said, seen = ([rms(values[tenth]) for tenth in tenths] for values in (total, error))
    ax.plot(said, seen, mark, color=colour, label=name, markersize=5)
reach = ax.get_xlim()[1]
line = np.linspace(
    scene.shadowing, reach, 100
)  # the shadowing is in the total standard deviation alone
ax.plot(line, np.sqrt(line**2 - scene.shadowing**2), ":", color=BLACK, label="were it right")
ax.set(
    xlabel="total standard deviation (dB), by tenths of the cells", ylabel="RMSE of the mean (dB)"
)
ax.set(ylim=(0, None), xlim=(None, reach))
legend_above(ax, 2)
plt.show()

# %% [markdown]
# *Error against total standard deviation, in tenths of the cells. The errors of VI do not rise with
# its standard deviation. Those of the noise head do, most of them below the dotted line, on which
# total² = error² + shadowing². The ensemble hardly varies, and lies above that line.*
#
# The noise head says where the error is, but cannot tell the edge of a shadow from stronger fading.
#
# The epistemic standard deviation does see places without data. Take all receivers out of one
# corner, and train the ensemble again.

# %% tags=["rounding"]
corner = np.all(cells > 60, axis=1)
emptied = [
    radio.receivers(scene, np.random.default_rng(seed), 400, lambda p: ~np.all(p > 60, axis=1))
    for seed in SEEDS
]
places, powers = [known.places for known in emptied], [known.y for known in emptied]
without = [predict(one, cells) for one in train("MLE", places, powers, members=5)]
full_said, empty_said = (
    np.array([p.epistemic[corner].mean() for p in three]) for three in (maps["5 MLE"], without)
)
show("5 MLE: epistemic standard deviation, x and y > 60 m", full_said, "dB")
show("the same without receivers there", empty_said, "dB")
assert np.all(empty_said > 2 * full_said)

# %% [markdown]
# Near the jumps the error is bias, and the standard deviation speaks of what the receivers leave
# undecided.
#
# ## 4. How to fit the simulated function exactly?
#
# More receivers, more units, more steps, less noise; then other inputs. In $\log_{10} d$ and the
# number of walls of each building the function is linear, and least squares with 7 weights and $N$
# receivers has the error $\sigma_\eta\sqrt{7/N}$ (root mean square, at the receivers): the limit
# that the noise sets.


# %% tags=["rounding"]
def map_error(given, inputs=lambda places: places, **settings):
    """Train by least squares and return the RMSE over the map, of every data set."""
    rows = [inputs(known.places) for known in given]
    trained = train("MLE", rows, [known.y for known in given], **settings)
    return np.array([rms(predict(one, inputs(cells)).mean - truth) for one in trained])


def receivers(count, scene=scene):
    return [radio.receivers(scene, np.random.default_rng(seed), count) for seed in SEEDS]


def features(places):
    return radio.features(scene, places)  # log10 d, walls of each building


silent = radio.Scene(shadowing=0.0)
rmse = {
    "x, y: 400 receivers, 32-32, 1000 steps, 2 dB": map_error(data),
    "100 receivers": map_error(receivers(100)),
    "1600 receivers": map_error(many, batch=100),
    "64-64": map_error(data, hidden=(64, 64)),
    "4000 steps": map_error(data, steps=4000),
    "0 dB": map_error(receivers(400, silent)),
    "log10 d, walls of each: 32-32": map_error(data, features),
}


def least_squares(given):
    """Return the RMSE over the map of the linear function of the features."""
    found = []
    for known in given:
        design, at = (np.c_[features(p), np.ones(len(p))] for p in (known.places, cells))
        weights = np.linalg.lstsq(design, known.y, rcond=None)[0]
        found.append(rms(at @ weights[:, 0] - truth))
    return np.array(found)


rmse["log10 d, walls of each: linear"] = least_squares(data)
rmse["the same, 0 dB"] = least_squares(receivers(400, silent))
limit = scene.shadowing * np.sqrt(7 / 400)
print("RMSE over the map, mean and data sets 0, 1, 2")
for name, values in rmse.items():
    show(name, values, "dB")
print(f"{'limit of the noise for 7 weights':50}{limit:6.2f}")
coordinates = list(rmse)[:6]
assert np.all(rmse["1600 receivers"] < rmse["100 receivers"])
for name in coordinates:
    assert np.all(rmse["log10 d, walls of each: 32-32"] < 0.5 * rmse[name])
assert np.all(rmse["log10 d, walls of each: linear"] < 2.5 * limit)
assert np.all(rmse["the same, 0 dB"] < 1e-6)

# %% [markdown]
# Told $x$ and $y$, a network spends data and units on every edge and never gets there. Told what
# the signal meets on its way, seven numbers are at the noise limit. "Perfectly" is a matter of the
# inputs.
#
# ## 5. Exercises
#
# 1. Put the transmitter into a building. Which losses change, and by how many walls?
# 2. `Scene(correlation=20)` makes the shadowing correlated over 20 m. Does the share of new
#    receivers within 1.96 standard deviations of VI change? Should it?
# 3. Plot $|\text{error}|$ against the distance to the nearest jump. How wide is the band of large
#    errors with 400 receivers, and with 6400?
# 4. Give the network $\log_{10} d$ beside $x$ and $y$. Which of the two kinds of large error goes?
# 5. One receiver reports a power 100 dB too high. What does it do to the map of Section 2, and what
#    with `StudentTLikelihood` for the noise
#    ([D43](../derivations/likelihoods.md#d43-noise-with-outliers))?
#
# <details><summary>Hints</summary>
#
# 1. Count the sides of the rectangle that the line crosses: two from outside, one from inside.
# 2. The scatter of one new receiver is what it was, but neighbours err together, and the likelihood
#    takes them as independent.
# 3. Compare with the distance between neighbouring receivers, about $100\,\mathrm{m}/\sqrt N$: 5 m
#    and 1.25 m.
# 4. The peak is a function of $\log_{10} d$. The edges of the shadows are not.
# 5. The slope of Gaussian noise grows with the residual, without a bound. That of Student's t is
#    multiplied by $(\nu + 1) / (\nu + z^2)$, with $z$ the residual in scales.
#
# </details>
#
# **Next:** [06](06_samplers_from_scratch.ipynb), what the *family* of $q$ costs. **Before:**
# [04](04_bounds_around_the_evidence.ipynb).
