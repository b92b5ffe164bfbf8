"""The figures of the derivations: computed by the package where it can, drawn as PNG at 150 dpi.

Usage: ``python figures/derivations.py [NAME ...]`` writes all figures, or those that are named,
into this folder; ``fit`` and ``training``, the moving one, are the README's. Each chapter's figures
are in a module of chapters/. They are drawn as for white paper; chapters/grounds.py makes of that
what reads on a dark page too. Each function that computes stands apart from the one that draws, so
that the tests can check the numbers without a picture.
"""

import sys
from io import BytesIO
from pathlib import Path

import numpy as np
from PIL import Image

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from chapters import (  # noqa: E402
    approximations,
    bounds,
    calibration,
    calibration_after_training,
    correlated_posteriors,
    estimators,
    function_priors,
    has_it_converged,
    likelihoods,
    microcanonical,
    model_checking,
    numbers_and_proofs,
    prediction,
    priors,
    report,
    samplers,
    shift_and_active_learning,
    stochastic_samplers,
    ten_minutes,
    training,
    why,
)
from chapters.grounds import for_both_grounds  # noqa: E402

CHAPTERS = (  # in the order of the book
    report,
    ten_minutes,
    numbers_and_proofs,
    why,
    training,
    prediction,
    priors,
    function_priors,
    likelihoods,
    estimators,
    bounds,
    correlated_posteriors,
    approximations,
    samplers,
    microcanonical,
    stochastic_samplers,
    has_it_converged,
    model_checking,
    calibration,
    calibration_after_training,
    shift_and_active_learning,
)
FIGURES = {name: draw for chapter in CHAPTERS for name, draw in chapter.FIGURES.items()}


def few_colours(picture: Image.Image) -> Image.Image:
    """Return a picture in the 256 colours that it has most often: a third of the bytes."""
    pixels = np.array(picture.convert("RGBA"))
    pixels[..., 3] = 17 * np.rint(pixels[..., 3] / 17)  # 16 steps from clear to opaque
    pixels[pixels[..., 3] == 0] = 0
    colours, which, counts = np.unique(
        pixels.view(np.uint32), return_inverse=True, return_counts=True
    )
    most_frequent = np.argsort(-counts)[:256]
    visible = colours.view(np.uint8).reshape(-1, 4) / 255
    visible[:, :3] *= visible[:, 3:]  # what is nearly clear may have any colour
    distances = ((visible[:, None] - visible[most_frequent]) ** 2).sum(axis=2)
    reduced = Image.fromarray(
        np.argmin(distances, axis=1).astype(np.uint8)[which].reshape(pixels.shape[:2])
    )
    reduced.putpalette(colours[most_frequent].tobytes(), "RGBA")
    return reduced


def write(name: str, folder: Path = HERE) -> Path:
    """Draw one figure into `folder`."""
    if name == "training":
        return ten_minutes.training(folder)
    path = folder / f"{name}.png"
    figure = {**FIGURES, "fit": ten_minutes.fit}[name]()
    png = BytesIO()
    for_both_grounds(figure).savefig(png, dpi=150, transparent=True)
    few_colours(Image.open(png)).save(path, dpi=(150, 150), optimize=True)
    return path


if __name__ == "__main__":
    for chosen in sys.argv[1:] or (*FIGURES, "fit", "training"):
        print(write(chosen))
