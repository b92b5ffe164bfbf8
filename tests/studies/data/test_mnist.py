"""MNIST's files: read as they are written, and refused when they are anything else."""

import gzip
import os
import struct

import numpy as np
import pytest

from bbb_studies.data import mnist
from bbb_studies.data.locate import ENVIRONMENT, DamagedDataError, MissingDataError
from bbb_studies.data.mnist import COUNTS, FILES, load

needs_data = pytest.mark.skipif(
    not os.environ.get(ENVIRONMENT), reason=f"{ENVIRONMENT} is not set: no MNIST images"
)
FEW = {"train": (2, 1, 1, 1, 1, 1, 1, 1, 1, 3), "test": (1,) * 10}


def idx(array, magic=None):
    head = struct.pack(f">{array.ndim + 1}I", magic or 2048 + array.ndim, *array.shape)
    return head + array.astype(np.uint8).tobytes()


@pytest.fixture
def few(root, monkeypatch):
    """A data folder with 13 + 10 images, and what is in it."""
    monkeypatch.setattr(mnist, "COUNTS", FEW)
    folder = root / "mnist"
    folder.mkdir()
    rng = np.random.default_rng(0)
    arrays = []
    for counts in FEW.values():
        labels = rng.permutation(np.repeat(np.arange(10), counts)).astype(np.uint8)
        arrays += [rng.integers(0, 256, (len(labels), 28, 28), np.uint8), labels]
    for name, array in zip(FILES, arrays, strict=True):
        (folder / name).write_bytes(gzip.compress(idx(array)))
    return folder, arrays


def test_the_files_are_read_as_they_were_written(few):
    found, (images, labels, test_images, test_labels) = load(), few[1]
    np.testing.assert_array_equal(found.train_images, images.reshape(13, 784))
    np.testing.assert_array_equal(found.train_labels, labels)
    np.testing.assert_array_equal(found.test_images, test_images.reshape(10, 784))
    np.testing.assert_array_equal(found.test_labels, test_labels)
    assert all(array.dtype == np.uint8 for array in found)


@pytest.mark.parametrize("file", FILES)
def test_a_missing_file_is_named_with_its_source(few, file):
    (few[0] / file).unlink()
    with pytest.raises(MissingDataError, match=f"{file}.*LeCun"):
        load()


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("share", [0.0, 0.02, 0.5, 0.99])
def test_a_file_that_was_cut_short_is_named(few, file, share):
    whole = (few[0] / file).read_bytes()
    (few[0] / file).write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(DamagedDataError, match=file):
        load()


@pytest.mark.parametrize("change", [b"\0", -1])
def test_more_or_fewer_bytes_than_announced_are_refused(few, change):
    path = few[0] / FILES[2]
    content = gzip.decompress(path.read_bytes())
    content = content + change if isinstance(change, bytes) else content[:change]
    path.write_bytes(gzip.compress(content))
    with pytest.raises(DamagedDataError, match=f"{FILES[2]} announces 10 x 28 x 28 bytes"):
        load()


@pytest.mark.parametrize(
    ("file", "array", "said"),
    [
        (0, np.zeros((13, 14, 56)), "must hold 13 images of 28 x 28"),
        (0, np.zeros((12, 28, 28)), "must hold 13 images"),
        (1, np.arange(13), r"holds them .*, 1, 1, 1\)"),
        (1, np.arange(13) % 10, r"must hold the digits 0 to 9 \(2, 1"),
        (3, np.zeros(10), r"holds them \(10, 0"),
    ],
)
def test_another_data_set_of_the_same_name_is_refused(few, file, array, said):
    (few[0] / FILES[file]).write_bytes(gzip.compress(idx(array)))
    with pytest.raises(DamagedDataError, match=f"{FILES[file]}.*{said}"):
        load()


@needs_data
def test_the_images_are_those_of_the_published_description():
    found = load()
    for images, mean, deviation in (
        (found.train_images, 0.1307, 0.3081),
        (found.test_images, 0.1325, 0.3105),
    ):
        assert round(float(images.mean()) / 255, 4) == mean
        assert round(float(images.std()) / 255, 4) == deviation
    assert tuple(np.bincount(found.train_labels)) == COUNTS["train"]
    assert (len(found.train_images), len(found.test_images)) == (60_000, 10_000)
    assert sum(COUNTS["train"]) == 60_000
