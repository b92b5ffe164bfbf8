"""MNIST, 70,000 images of handwritten digits, from the four original IDX files.

The files are checked by their own header and by what is known of the set: the number of images
and how often each digit occurs.
"""

from __future__ import annotations

import gzip
import zlib
from math import prod
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .locate import DamagedDataError, locate

__all__ = ["CLASSES", "COUNTS", "FILES", "MNIST", "SIDE", "load", "read_idx"]

Bytes = NDArray[np.uint8]
SIDE, CLASSES = 28, 10
FILES = (
    "train-images-idx3-ubyte.gz",
    "train-labels-idx1-ubyte.gz",
    "t10k-images-idx3-ubyte.gz",
    "t10k-labels-idx1-ubyte.gz",
)
COUNTS = {  # how often each digit occurs
    "train": (5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949),
    "test": (980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009),
}
MAGIC = 2048  # unsigned bytes; the number of axes is added


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
        If a file cannot be unpacked or is not what its name says; names it.
    """
    images, labels, test_images, test_labels = (locate("mnist", name) for name in FILES)
    return MNIST(
        *_part(images, labels, COUNTS["train"]), *_part(test_images, test_labels, COUNTS["test"])
    )


def read_idx(path: Path, axes: int) -> Bytes:
    """Return the bytes of a gzipped IDX file as an array with the axes that it names.

    IDX is a magic number, 2048 + the number of axes for unsigned bytes, then the length of each
    axis, all as big-endian 32-bit integers, then the bytes.

    Raises
    ------
    DamagedDataError
        If it cannot be unpacked, or magic number, lengths and size do not agree.
    """
    try:
        with gzip.open(path) as file:
            content = file.read()
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DamagedDataError(
            f"{path.name} cannot be unpacked ({error}): it is damaged or was cut short. Get it "
            "again"
        ) from None
    begin = 4 * (axes + 1)
    magic, *shape = np.frombuffer(content[:begin].ljust(begin, b"\0"), ">u4").tolist()
    if magic != MAGIC + axes:
        raise DamagedDataError(
            f"{path.name} begins with the number {magic}; an IDX file of {axes} axes of bytes "
            f"begins with {MAGIC + axes}"
        )
    if len(content) - begin != prod(shape):
        raise DamagedDataError(
            f"{path.name} announces {' x '.join(map(str, shape))} bytes and holds "
            f"{len(content) - begin}"
        )
    return np.frombuffer(content, np.uint8, offset=begin).reshape(shape)


def _part(image_file: Path, label_file: Path, counts: tuple[int, ...]) -> tuple[Bytes, Bytes]:
    """Read images (N, 784) and labels (N,) of one part, and check them."""
    rows = sum(counts)
    images, labels = read_idx(image_file, 3), read_idx(label_file, 1)
    if images.shape != (rows, SIDE, SIDE):
        raise DamagedDataError(
            f"{image_file.name} must hold {rows} images of {SIDE} x {SIDE}; its shape is "
            f"{images.shape}"
        )
    found = tuple(np.bincount(labels, minlength=CLASSES).tolist())
    if found != counts:
        raise DamagedDataError(
            f"{label_file.name} must hold the digits 0 to 9 {counts} times; it holds them {found} "
            "times"
        )
    return images.reshape(rows, SIDE * SIDE), labels
