"""MNIST's files: read as they are written, and refused when they are anything else."""

import gzip
import hashlib
import struct

import numpy as np
import pytest
from synthetic_data import needs_data

from bbb_studies.data.locate import SETS, DamagedDataError, MissingDataError
from bbb_studies.data.mnist import FILES, load


@pytest.fixture
def few(root, monkeypatch):
    """A data folder with 13 + 10 images, whose checksums are taken for those of MNIST."""
    (root / "mnist").mkdir()
    rng, arrays = np.random.default_rng(0), []
    for rows in (13, 10):
        arrays += [rng.integers(0, 256, (rows, 28, 28), np.uint8), rng.integers(0, 10, rows, "u1")]
    for name, array in zip(FILES, arrays, strict=True):
        shape = struct.pack(f">{array.ndim + 1}I", 2048 + array.ndim, *array.shape)
        content = shape + array.tobytes()
        (root / "mnist" / name).write_bytes(gzip.compress(content))
        monkeypatch.setitem(SETS["mnist"]["sha256"], name, hashlib.sha256(content).hexdigest())
    return root / "mnist", arrays


def test_the_files_are_read_as_they_were_written(few):
    for found, array in zip(load(), few[1], strict=True):
        assert found.dtype == np.uint8
        np.testing.assert_array_equal(found, array.reshape(len(array), -1).squeeze())


@pytest.mark.parametrize("file", FILES)
def test_a_file_that_is_missing_cut_short_or_another_is_named(few, file):
    path = few[0] / file
    whole = path.read_bytes()
    for content in (*(whole[: int(share * len(whole))] for share in (0.0, 0.02, 0.99)),
                    gzip.compress(gzip.decompress(whole) + b"\0")):  # fmt: skip
        path.write_bytes(content)
        with pytest.raises(DamagedDataError, match=f"{file}.*Get it again"):
            load()
    path.unlink()
    with pytest.raises(MissingDataError, match=f"{file}.*LeCun"):
        load()


@needs_data
def test_the_images_are_those_of_the_published_description():
    found = load()
    for images, rows, mean, deviation in (
        (found.train_images, 60_000, 0.1307, 0.3081),
        (found.test_images, 10_000, 0.1325, 0.3105),
    ):
        assert images.shape == (rows, 784)
        counts = sum(
            np.bincount(part.ravel(), minlength=256) for part in np.array_split(images, 99)
        )
        average = np.average(np.arange(256), weights=counts)
        variance = np.average((np.arange(256) - average) ** 2, weights=counts)
        assert round(average / 255, 4) == mean
        assert round(variance**0.5 / 255, 4) == deviation
    assert np.bincount(found.train_labels)[:3].tolist() == [5923, 6742, 5958]
    assert np.bincount(found.test_labels)[:3].tolist() == [980, 1135, 1032]
