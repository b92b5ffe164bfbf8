"""MNIST, 70,000 images of handwritten digits, from the four original IDX files."""

from __future__ import annotations

import gzip
import zlib
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .locate import SETS, DamagedDataError, check_content, locate

Bytes = NDArray[np.uint8]
SIDE = 28
N_CLASSES = 10
# Unpacked size of the largest file: its header and the training images.
MAX_FILE_BYTES = 16 + 60_000 * SIDE**2
# Training images and labels, then test images and labels.
FILES = tuple(SETS["mnist"]["sha256"])


class MNIST(NamedTuple):
    """The official training and test part, in the official order."""

    train_images: Bytes  # (60000, 784)  0 is the background, 255 full ink
    train_labels: Bytes  # (60000,)  0 to 9
    test_images: Bytes  # (10000, 784)
    test_labels: Bytes  # (10000,)


def load() -> MNIST:
    """Load MNIST from the data folder.

    Raises
    ------
    MissingDataError
        If a file is not there; says where to get it and where to put it.
    DamagedDataError
        If a file cannot be unpacked or is not the published one; names it.
    """
    images, labels, test_images, test_labels = (_read(file) for file in FILES)
    side = SIDE * SIDE
    return MNIST(
        images.reshape(-1, side), labels, test_images.reshape(-1, side), test_labels
    )


def _read(file: str) -> Bytes:
    """Return the bytes behind the header of an IDX file: 16 of images, 8 of labels."""
    path = locate("mnist", file)
    try:
        with gzip.open(path) as packed:
            # The limit is for damaged files, which may unpack to a thousand times their size.
            content = packed.read(MAX_FILE_BYTES)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DamagedDataError(
            f"{file} cannot be unpacked ({error}): it is damaged or was cut short. Get it again"
        ) from None
    check_content("mnist", file, content)
    return np.frombuffer(content, np.uint8, offset=16 if "images" in file else 8)
