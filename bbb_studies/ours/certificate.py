"""What is certain of MNIST digits to come: PAC-Bayes certificates of four q (D57, D58).

Half of the training images may teach a prior; the other half trains q and certifies it. Whatever
has been trained is stored, so that the same call goes on after an interruption.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import log
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from bbb_numpy.evaluation.certificate import Certificate, certificate, invert_kl
from bbb_numpy.gradients.local_reparameterisation import LocalReparameterisation
from bbb_numpy.model.joint import Model
from bbb_numpy.model.objectives import FreeEnergy, PACBayes
from bbb_numpy.numeric.storing import Format, read_state, write_state
from bbb_numpy.parts.discrete import CategoricalLikelihood
from bbb_numpy.parts.network import MLP
from bbb_numpy.parts.posteriors import MeanField
from bbb_numpy.parts.priors import CentredGaussianPrior, GaussianPrior
from bbb_numpy.plots import style
from bbb_numpy.training import Recipe, fit, start
from bbb_numpy.training.optimizers import Adam, Cosine
from bbb_studies.data import mnist as data
from bbb_studies.data.mnist import MNIST
from bbb_studies.kit import (
    Claim,
    claims,
    classes_of_mean,
    listed,
    panels,
    plain,
    text,
    values,
    write,
)
from bbb_studies.progress import steps

Array = NDArray[Any]
DELTA = 0.025  # probability that a certificate fails for the sample of images
DELTA_DRAWS = 0.01  # probability that it fails for the draws of networks
LEARNING_RATE = 1e-3  # of Adam
SLOW_LEARNING_RATE = 1e-4  # of Adam where every step away from the prior costs


@dataclass(frozen=True)
class Settings:
    """How large the study is; the defaults are those of the command."""

    seed: int = 0
    hidden: int = 400  # units of each of two layers
    half: int = 30_000  # images that teach the prior; as many others certify
    test: int = 10_000
    batch: int = 250
    prior_epochs: int = 30  # on the first half
    epochs: int = 6  # of every q, on the second half
    wide: float = 0.1  # scale of the free energy's prior, around 0
    at_random: float = 0.02  # scale of the prior around a random start
    taught: float = 0.01  # scale of the prior around what the first half taught
    draws: int = 20  # networks for every image


class Stored(NamedTuple):
    """What the file of a q holds."""

    settings: Settings
    theta: Array


CERTIFICATE_FORMAT = Format("bbb_numpy.certificate", 1, (Settings, Stored))


class Images(NamedTuple):
    """Pixels / 126 in float32, (N, 784), and one-hot classes (N, 10)."""

    x: Array
    y: Array


class Row(NamedTuple):
    """Certificate and test errors of one q."""

    certificate: Certificate
    test: float  # share of wrong test images, of networks drawn anew for every image
    mean_network: float  # the same, of the network with the mean weights
    # Bound on the error of the mean network; None if the second half has trained it.
    held_out: float | None


def build_estimator(
    settings: Settings, prior: GaussianPrior, objective: Any
) -> LocalReparameterisation:
    """Return the network with this prior and objective, every sigma at the start the prior's scale.

    Parameters
    ----------
    settings : Settings
        Gives the hidden units.
    prior : GaussianPrior
        Prior of the weights.
    objective : FreeEnergy or PACBayes
        What the training minimises.
    """
    sizes = (784, settings.hidden, settings.hidden, 10)
    model = Model(MLP(sizes), prior, CategoricalLikelihood())
    return LocalReparameterisation(model, MeanField(0.05, -5.0), objective)


def train_theta(
    estimator: LocalReparameterisation,
    images: Images,
    settings: Settings,
    epochs: int,
    rate: float,
    initial: Array | None,
) -> Array:
    """Return theta after `epochs` of Adam, from `initial` or from the start of the posterior.

    Parameters
    ----------
    estimator : LocalReparameterisation
        What is trained.
    images : Images
        Training rows.
    settings : Settings
        Gives the seed and the batch size.
    epochs : int
        Passes over the images.
    rate : float
        Learning rate of Adam at the start; it falls to 0 by half a cosine.
    initial : array, optional
        Theta to start from.

    Returns
    -------
    array
        Theta in float32.

    Raises
    ------
    KeyboardInterrupt
        After Ctrl-C, since a half-trained q must not be stored.
    """
    rng = np.random.default_rng(settings.seed)
    optimizer = Adam(rate, schedule=Cosine())
    state = start(estimator, rng, optimizer, np.float32, initial)
    recipe = Recipe(optimizer, epochs=epochs, batch_size=settings.batch)
    state = fit(estimator, state, images.x, images.y, recipe, rng=rng, progress=False)
    if state.stopped == "interrupted":
        raise KeyboardInterrupt
    return state.theta


def load_or_train(path: Path, settings: Settings, make: Callable[[], Array]) -> Array:
    """Return the theta stored at `path`; if there is no such file, compute and store it first.

    Parameters
    ----------
    path : Path
        File of one q.
    settings : Settings
        Settings of this call, stored with theta.
    make : callable
        Called without arguments to compute theta.

    Raises
    ------
    ValueError
        If the file was written with other settings.
    """
    if not path.exists():
        write_state(path, Stored(settings, make()), CERTIFICATE_FORMAT)
    stored: Stored = read_state(path, Stored, CERTIFICATE_FORMAT)
    if stored.settings != settings:
        raise ValueError(
            f"{path} was written with other settings: {stored.settings}; delete it, or use another "
            "folder"
        )
    return stored.theta


def prepare(digits: MNIST, settings: Settings) -> tuple[Images, Images, Images]:
    """Return the images that teach a prior, those that certify, and the test images.

    Parameters
    ----------
    digits : MNIST
        Bytes from 0 to 255.
    settings : Settings
        Gives the number of images in each part.
    """
    half = settings.half
    eye = np.eye(10, dtype=np.float32)
    scale = np.float32(1.0 / 126.0)
    train = Images(digits.train_images * scale, eye[digits.train_labels])
    test = Images(digits.test_images * scale, eye[digits.test_labels])
    return (
        Images(*(part[:half] for part in train)),
        Images(*(part[half : 2 * half] for part in train)),
        Images(*(part[: settings.test] for part in test)),
    )


def measure(
    estimator: LocalReparameterisation,
    theta: Array,
    rows: Images,
    test: Images,
    settings: Settings,
    unseen: bool,
) -> Row:
    """Return the certificate of a q, and its errors on the test images.

    Parameters
    ----------
    estimator : LocalReparameterisation
        Model and posterior.
    theta : array
        Parameters of q.
    rows : Images
        Rows that certify.
    test : Images
        Test rows.
    settings : Settings
        Gives the seed and the number of networks for every image.
    unseen : bool
        Whether q was trained without `rows`: only then they are a test set for its mean.
    """
    rng = np.random.default_rng(settings.seed + 1)

    def certify(images: Images) -> Certificate:
        return certificate(
            estimator,
            theta,
            images.x,
            images.y,
            rng=rng,
            samples=settings.draws,
            delta=DELTA,
            delta_draws=DELTA_DRAWS,
        )

    def error_of_mean(images: Images) -> float:
        classes = classes_of_mean(estimator.model, theta, images.x)
        return float(np.mean(classes != images.y.argmax(1)))

    certificate_on_rows = certify(rows)
    on_test = certify(test)
    bound = None
    if unseen:
        bound = invert_kl(error_of_mean(rows), log(1.0 / DELTA) / len(rows.x))
    return Row(certificate_on_rows, on_test.risk, error_of_mean(test), bound)


POSTERIOR_NAMES = (
    "free energy, prior around 0",
    "bound, prior around the random start",
    "the prior that the first half taught",
    "bound, around that prior",
)


def run(
    out: Path,
    first: Images,
    second: Images,
    test: Images,
    settings: Settings,
    progress: bool | None,
) -> dict[str, Row]:
    """Train and certify the four q, and return their rows in the order of `POSTERIOR_NAMES`.

    Parameters
    ----------
    out : Path
        Folder in which every trained theta is stored.
    first : Images
        Half of the training images that teaches a prior.
    second : Images
        Half that trains q and certifies it.
    test : Images
        Test images.
    settings : Settings
        Size of the study.
    progress : bool, optional
        Show a progress bar; by default only in a terminal.
    """
    with steps(settings.prior_epochs + 3 * settings.epochs, progress) as report:

        def stored_or_trained(
            name: str,
            estimator: LocalReparameterisation,
            images: Images,
            rate: float = LEARNING_RATE,
            initial: Array | None = None,
        ) -> Array:
            """Return theta of the file `name`, trained on `images` if there is no such file."""
            epochs = settings.prior_epochs if images is first else settings.epochs

            def make() -> Array:
                return train_theta(estimator, images, settings, epochs, rate, initial)

            theta = load_or_train(out / f"{name}.npz", settings, make)
            report(epochs)
            return theta

        around_zero = GaussianPrior(settings.wide)
        free_energy = build_estimator(settings, around_zero, FreeEnergy())
        tempered = build_estimator(settings, around_zero, FreeEnergy(0.1))
        n_weights = free_energy.model.layout.size
        random = free_energy.init(np.random.default_rng(settings.seed))[:n_weights]
        around_random, random_theta = _around(random, settings.at_random, settings)
        prior_theta = stored_or_trained("prior", tempered, first)
        around_taught, taught_theta = _around(
            prior_theta[:n_weights], settings.taught, settings
        )
        posteriors = (
            (free_energy, stored_or_trained("free-energy", free_energy, second)),
            (
                around_random,
                stored_or_trained(
                    "random-start", around_random, second, initial=random_theta
                ),
            ),
            (around_taught, taught_theta),
            (
                around_taught,
                stored_or_trained(
                    "taught", around_taught, second, SLOW_LEARNING_RATE, taught_theta
                ),
            ),
        )
    return {
        name: measure(
            estimator,
            theta,
            second,
            test,
            settings,
            unseen=name == POSTERIOR_NAMES[2],
        )
        for name, (estimator, theta) in zip(POSTERIOR_NAMES, posteriors, strict=True)
    }


def _around(
    centre: Array, scale: float, settings: Settings
) -> tuple[LocalReparameterisation, Array]:
    """Return the estimator of the bound with a prior around `centre`, and theta of that prior."""
    prior = CentredGaussianPrior(scale, centre=centre)
    theta = MeanField().pack(centre, np.full_like(centre, scale))
    return build_estimator(settings, prior, PACBayes(settings.half, DELTA)), theta


def draw(rows: Mapping[str, Row]) -> Figure:
    """Draw for every q its errors on the rows and on the test images below its certificate."""
    figure, ax = panels(8.4, 3.4)
    for position, row in enumerate(rows.values()):
        certificate = row.certificate
        ax.plot(
            [100 * certificate.risk, 100 * certificate.bound],
            [position, position],
            color=style.GREY,
            zorder=1,
        )
        for value, marker, colour, name in (
            (certificate.risk, "o", style.BLUE, "share wrong on its rows"),
            (row.test, "x", style.VERMILLION, "on test images"),
            (certificate.bound, "|", style.BLACK, "certificate: at most"),
        ):
            label = name if position == 0 else None
            ax.plot(
                100 * value, position, marker, color=colour, ms=10, ls="", label=label
            )
    ax.set_xscale("log")
    style.plain_numbers(ax.xaxis, minor="25")
    ax.set_yticks(range(len(rows)), rows)
    ax.invert_yaxis()
    style.finish(
        ax, "digits classified wrongly (%), a new network for every image", "", 3
    )
    return figure


def quick(seed: int) -> dict[str, Any]:
    """Return the arguments of `reproduce` for a quick look: a fifth of the images, few epochs."""
    return {
        "seed": seed,
        "settings": Settings(seed, half=6000, prior_epochs=15, epochs=3, draws=5),
    }


def reproduce(
    out: Path,
    seed: int = 0,
    *,
    settings: Settings | None = None,
    digits: MNIST | None = None,
    progress: bool | None = None,
) -> str:
    """Train, certify and test; write ``certificate.png`` and ``.json``; return the tables.

    Every trained theta is stored in `out`: the same call goes on from there.

    Parameters
    ----------
    out : Path
        Folder of the results.
    seed : int
        Of training and certificates, if `settings` are not given.
    settings : Settings, optional
        Size of the study; by default ``Settings(seed)``.
    digits : MNIST, optional
        Images to use; by default those of the data folder.
    progress : bool, optional
        Show a progress bar; by default only in a terminal.

    Returns
    -------
    str
        The tables.

    Raises
    ------
    ValueError
        If `out` holds a theta of other settings.
    """
    settings = settings or Settings(seed)
    out.mkdir(parents=True, exist_ok=True)
    if digits is None:
        digits = data.load()
    first, second, test = prepare(digits, settings)
    rows = run(out, first, second, test, settings, progress)
    write(
        out,
        {"certificate": draw(rows)},
        {"settings": settings, "rows": rows},
        "certificate",
    )
    return lay_out(settings, rows)


def percent(share: float) -> str:
    """Return a share in per cent."""
    return f"{100 * share:.2f} %"


def lay_out(settings: Settings, rows: Mapping[str, Row]) -> str:
    """Return the text of the study: every printed number, and which claims hold.

    Parameters
    ----------
    settings : Settings
        Size of the study.
    rows : mapping of str to Row
        Results of `run`.
    """

    def cells(row: Row) -> str:
        c = row.certificate
        texts = (
            percent(c.risk),
            percent(c.risk_bound),
            f"{c.kl / c.n_rows:.4f}",
            percent(c.bound),
        )
        return " | ".join((*texts, percent(row.test), percent(row.mean_network)))

    best = rows[POSTERIOR_NAMES[3]]
    vacuous = rows[POSTERIOR_NAMES[0]].certificate
    bound_of_mean = rows[POSTERIOR_NAMES[2]].held_out
    measured = f"{percent(best.certificate.bound)}, test {percent(best.test)}"
    return text(
        values("MNIST, 784-hidden-hidden-10, ReLU.", "setting", plain(settings)),
        listed(
            "Networks drawn anew for every image; certain with probability "
            f"{1 - DELTA - DELTA_DRAWS:g}. KL in nats per image.",
            "q | wrong | of all draws | KL | certificate | test | mean weights, test",
            rows,
            cells,
        ),
        f"The mean weights of the taught prior have not seen the second half, so these are a test "
        f"set\nfor them: at most {percent(bound_of_mean or 1.0)} with probability {1 - DELTA:g} "
        "(Langford's test set bound).",
        claims(
            "What D57 says, and what others print.",
            "others",
            [
                Claim(
                    "prior from data: certificate",
                    "2.8 %",
                    measured,
                    best.certificate.bound <= 0.03,
                ),
                Claim(
                    "free energy around 0 certifies little",
                    "> 90 %",
                    percent(vacuous.bound),
                    vacuous.bound > 0.9,
                    ours=True,
                ),
                Claim(
                    "every certificate is above the test error",
                    "4 of 4",
                    f"{sum(row.certificate.bound > row.test for row in rows.values())} of 4",
                    all(row.certificate.bound > row.test for row in rows.values()),
                    ours=True,
                ),
            ],
        ),
    )
